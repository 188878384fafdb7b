/* export_lists.c - what Python does with lists whose length only a run knows.
 *
 * ONNX's sequences have single items, a length, and two ways to change them: SequenceInsert and
 * SequenceErase. All else is a Loop over the items: part of a list, a sum, the greatest, whether
 * one is there.
 */
#include "dim/dim_impl.h"
#include "export_control_impl.h"

/* ---- loops over items ---------------------------------------------------------------------- */

/* What follows from the value so far, at this index. */
typedef cfxi_ev *item_step(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx);

static void name_value(cfxi_export_call *c, cfxi_onnx_value *to, const cfxi_ev *v,
                       const cfxi_ev *type)
{
    const char *name = v->name ? v->name : "";
    to->name = (cfxi_text){name, strlen(name)};
    to->type = cfxi_export_type(c->x, type, false);
}

static cfxi_onnx_graph *body_of(cfxi_export_call *c, const cfxi_ev *first, item_step *next,
                                const void *ctx)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope *scope = cfxi_export_room(x, 1, sizeof *scope);
    cfxi_onnx_value *inputs = cfxi_export_room(x, 3, sizeof *inputs);
    cfxi_onnx_value *outputs = cfxi_export_room(x, 2, sizeof *outputs);
    if (!scope || !inputs || !outputs)
        return NULL;
    cfxi_export_scope_begin(x, scope);
    cfxi_ev *index = cfxi_export_inner_value(c, cfxi_export_of_datum(x, cfx_datum_int(0)));
    cfxi_ev *going = cfxi_export_inner_value(c, cfxi_export_of_datum(x, cfx_datum_bool(true)));
    cfxi_ev *so_far = cfxi_export_inner_value(c, first);
    name_value(c, &inputs[0], index, index);
    name_value(c, &inputs[1], going, going);
    name_value(c, &inputs[2], so_far, first);
    cfxi_ev *made = next(c, so_far, index, ctx);
    name_value(c, &outputs[0], NODE("Identity", going), going);
    name_value(c, &outputs[1], made, first);
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, "items");
    if (!g || made->broken)
        return NULL;
    g->inputs.items = inputs;
    g->inputs.n = 3;
    g->outputs.items = outputs;
    g->outputs.n = 2;
    return g;
}

/* So many steps from `first`, whose type the value keeps: a number, a tensor or a sequence. */
static cfxi_ev *looped(cfxi_export_call *c, cfxi_ev *count, cfxi_ev *first, item_step *next,
                       const void *ctx)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *output = &x->broken;
    if (first->broken || count->broken)
        return output;
    cfxi_onnx_graph *body = body_of(c, first, next, ctx);
    cfxi_ev *inputs[] = {count, NULL, first};
    if (!body || !cfxi_export_nodes(x, "Loop", inputs, 3, &output, 1))
        return &x->broken;
    cfxi_export_set_graph(x, "body", body);
    return first->element ? cfxi_export_new_sequence(x, first->element, output)
                          : cfxi_export_value_like(x, first, output);
}

/* ---- items --------------------------------------------------------------------------------- */

static cfxi_ev *length_of(cfxi_export_call *c, cfxi_ev *list)
{
    static const cfxi_ev number = {.datum = {.kind = CFX_DATUM_INT}};
    return cfxi_export_value_like(c->x, &number, NODE("SequenceLength", list));
}

static cfxi_ev *item_at(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *index)
{
    cfxi_ev *v = cfxi_export_value_like(c->x, list->element,
                                        NODE("SequenceAt", list, CAST(index, CFX_DTYPE_INT64)));
    if (!v->broken)
        v->shared = v->datum.kind == CFX_DATUM_TENSOR;
    return v;
}

static cfxi_ev *insert(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *item)
{
    return cfxi_export_new_sequence(c->x, list->element, NODE("SequenceInsert", list, item));
}

static cfxi_ev *empty_like(cfxi_export_call *c, cfxi_ev *element)
{
    cfxi_ev *none = cfxi_export_list(c->x, NULL, 0);
    return none->broken ? none : cfxi_export_as_sequence(c, none, element);
}

/* Items from `first` on, `step` apart. */
typedef struct selection {
    cfxi_ev *list;
    cfxi_ev *first;
    int64_t step;
} selection;

static cfxi_ev *add_selected(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    const selection *s = ctx;
    cfxi_ev *place = NODE("Add", NODE("Mul", index, INT(s->step)), s->first);
    return insert(c, so_far, NODE("SequenceAt", s->list, place));
}

/* A bound of a slice as a place from 0; `otherwise` if it is None. */
static cfxi_ev *place_of(cfxi_export_call *c, cfxi_ev *bound, cfxi_ev *length, cfxi_ev *otherwise,
                         bool turned)
{
    if (cfxi_export_is_none(bound))
        return otherwise;
    cfxi_ev *from_end = NODE("Where", NODE("Less", bound, INT(0)), NODE("Add", bound, length),
                             bound);
    cfxi_ev *most = turned ? NODE("Sub", length, INT(1)) : length;
    return NODE("Max", NODE("Min", from_end, most), INT(turned ? -1 : 0));
}

static cfxi_ev *part_of(cfxi_export_call *c, cfxi_ev *list, const cfxi_ev *slice)
{
    const bool every = cfxi_export_is_none(slice->items[2]);
    const int64_t step = every ? 1 : slice->items[2]->datum.as.i;
    if (!every && (!cfxi_export_is_known(slice->items[2]) || step == 0 || step == INT64_MIN))
        return cfxi_export_refuse(c, "the step of a slice must be a constant");
    cfxi_ev *n = length_of(c, list);
    cfxi_ev *last = NODE("Sub", n, INT(1));
    cfxi_ev *start = place_of(c, slice->items[0], n, step > 0 ? INT(0) : last, step < 0);
    cfxi_ev *end = place_of(c, slice->items[1], n, step > 0 ? n : INT(-1), step < 0);
    cfxi_ev *span = step > 0 ? NODE("Sub", end, start) : NODE("Sub", start, end);
    const int64_t size = step > 0 ? step : -step;
    cfxi_ev *count = NODE("Max", NODE("Div", NODE("Add", span, INT(size - 1)), INT(size)), INT(0));
    const selection s = {list, start, step};
    return looped(c, count, empty_like(c, list->element), add_selected, &s);
}

static cfxi_ev *get_item(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_ev *list = given[0];
    cfxi_ev *index = n > 1 ? given[1] : NULL;
    if (index && list->element) {
        if (cfxi_export_is_number(index) || index->datum.kind == CFX_DATUM_TENSOR)
            return item_at(c, list, index);
        if (index->datum.kind == CFX_DATUM_SLICE && index->n == 3)
            return part_of(c, list, index);
    }
    const size_t at = !index || list->element ? SIZE_MAX : cfxi_export_item_place(list, index);
    return at != SIZE_MAX ? list->items[at]
                          : cfxi_export_refuse(c, "which item is meant of a list that holds lists "
                                               "is only known when the graph runs; keep one list "
                                               "for each part");
}

/* ---- joining ------------------------------------------------------------------------------- */

/* a + b: the items of one, put to the end of the other. */
static cfxi_ev *join_lists(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_exporter *x = c->x;
    if (n < 2 || !cfxi_export_is_list(given[0]) || !cfxi_export_is_list(given[1]))
        return cfxi_export_refuse(c, "a list is only added to a list");
    cfxi_ev *type = cfxi_export_either_list(c, given[0], given[1]);
    if (type->broken)
        return type;
    cfxi_ev *all = cfxi_export_as_sequence(c, given[0], type->element);
    cfxi_ev *more = given[1];
    if (more->element) {
        const selection s = {cfxi_export_as_sequence(c, more, type->element), INT(0), 1};
        return looped(c, length_of(c, more), all, add_selected, &s);
    }
    for (size_t i = 0; i < more->n && !all->broken; i++)
        all = NODE("SequenceInsert", all, cfxi_export_as_item(c, more->items[i], type->element));
    return cfxi_export_new_sequence(x, type->element, all);
}

/* The items of a list of known length, once more. */
static cfxi_ev *add_all(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    const cfxi_ev *list = ctx;
    (void)index;
    for (size_t i = 0; i < list->n && !so_far->broken; i++)
        so_far = insert(c, so_far, cfxi_export_as_item(c, list->items[i], so_far->element));
    return so_far;
}

/* [0] * n */
static cfxi_ev *repeated(cfxi_export_call *c, const cfxi_ev *list, cfxi_ev *count)
{
    cfxi_ev *element = cfxi_export_item_type(c, list);
    return element ? looped(c, CAST(count, CFX_DTYPE_INT64), empty_like(c, element), add_all, list)
                   : &c->x->broken;
}

/* ---- as tensors ---------------------------------------------------------------------------- */

/* The same as cfxi_export_made, with its type in the file. */
static cfxi_ev *typed(cfxi_exporter *x, const cfxi_ev *made, cfx_dtype dtype, const int64_t *sizes,
                      int rank)
{
    cfxi_ev *v = cfxi_export_made(x, made, dtype, sizes, rank);
    cfxi_export_note_type(x, v);
    return v;
}

/* Items joined along a dimension, which is new if they are stacked. */
static cfxi_ev *joined_along(cfxi_export_call *c, cfxi_ev *list, int64_t dim, bool stack)
{
    int64_t sizes[CFX_MAX_DIMS + 1];
    cfxi_exporter *x = c->x;
    const cfxi_ev *element = list->element;
    const int rank = (cfxi_export_is_number(element) ? 0 : element->rank) + stack;
    for (int i = 0, k = 0; i < rank; i++) {
        const bool joins = i == dim;
        sizes[i] = joins ? cfxi_dim_fresh(x->dims, x->err) : element->sizes[k];
        k += !(joins && stack);
    }
    cfxi_ev *made = NODE("ConcatFromSequence", list);
    SET_INT("axis", dim);
    SET_INT("new_axis", stack);
    return typed(x, made, cfxi_export_dtype(element), sizes, rank);
}

/* stack and cat. */
static cfxi_ev *concatenate(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    const bool stack = c->op == CFX_OPID_stack;
    const int rank = given[0]->element->rank + stack;
    const bool has_dim = n > 1 && given[1] && cfxi_export_is_known(given[1]);
    const int64_t wish = has_dim ? given[1]->datum.as.i : 0;
    const int64_t dim = wish < 0 ? wish + rank : wish;
    if (given[0]->element->datum.kind != CFX_DATUM_TENSOR || rank > CFX_MAX_DIMS || dim < 0 ||
        dim >= rank)
        return cfxi_export_refuse(c, "what the list holds cannot be joined along dimension %lld",
                                  (long long)wish);
    return joined_along(c, given[0], dim, stack);
}

/* Numbers as a tensor of one dimension. Nothing can be joined to nothing: one more is put in front,
 * and taken away. */
static cfxi_ev *vector_of(cfxi_export_call *c, cfxi_ev *list)
{
    const cfx_dtype dtype = cfxi_export_dtype(list->element);
    cfxi_ev *zero = cfxi_export_number(c->x, dtype, cfx_datum_int(0));
    cfxi_ev *more = cfxi_export_new_sequence(c->x, list->element,
                                             NODE("SequenceInsert", list, zero, INT(0)));
    if (more->broken)
        return more;
    cfxi_ev *all = joined_along(c, more, 0, true);
    if (all->broken)
        return all;
    const int64_t size = cfxi_dim_fresh(c->x->dims, c->x->err);
    return typed(c->x, cfxi_export_slice(c, all, 0, INT(1), NULL, 1), dtype, &size, 1);
}

/* The parts of a tensor along a dimension. */
static cfxi_ev *parts_of(cfxi_export_call *c, cfxi_ev *x, int64_t dim, cfxi_ev *element)
{
    cfxi_ev *made = NODE("SplitToSequence", x);
    SET_INT("axis", dim);
    SET_INT("keepdims", 0);
    return cfxi_export_new_sequence(c->x, element, made);
}

/* The parts of a tensor along a dimension, of these sizes. */
static cfxi_ev *split_by_sizes(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_exporter *x = c->x;
    cfxi_ev *t = given[0];
    cfxi_ev *list = n > 1 ? given[1] : NULL;
    const int64_t wish = n > 2 && given[2] && cfxi_export_is_known(given[2]) ? given[2]->datum.as.i
                                                                             : 0;
    const int64_t dim = wish < 0 ? wish + t->rank : wish;
    if (t->datum.kind != CFX_DATUM_TENSOR || !list || !list->element || dim < 0 ||
        dim >= t->rank || cfxi_export_dtype(list->element) != CFX_DTYPE_INT64)
        return cfxi_export_refuse(c, "a tensor is split by a list of integers");
    memcpy(sizes, t->sizes, (size_t)t->rank * sizeof *sizes);
    sizes[dim] = cfxi_dim_fresh(x->dims, x->err);
    cfxi_ev *element = cfxi_export_of_datum(x, cfxi_export_abstract(x, t->dtype, sizes, t->rank));
    cfxi_ev *made = NODE("SplitToSequence", cfxi_export_fresh(x, t), vector_of(c, list));
    SET_INT("axis", dim);
    return cfxi_export_new_sequence(x, element, made);
}

static cfxi_ev *number_type(cfxi_exporter *x, cfx_dtype dtype)
{
    return cfxi_export_of_datum(x, cfx_dtype_is_float(dtype) ? cfx_datum_float(0)
                                                             : cfx_datum_int(0));
}

static cfxi_ev *sort_items(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_ev *list = given[0];
    const bool turned = n > 1 && given[1] && given[1]->datum.kind == CFX_DATUM_BOOL &&
                        given[1]->datum.as.b;
    if (!cfxi_export_is_number(list->element) || list->element->datum.kind == CFX_DATUM_BOOL)
        return cfxi_export_refuse(c, "a list whose length only a run knows is sorted if it holds "
                                  "integers or floats; stack tensors and sort that");
    cfxi_ev *sorted = APPLY(sort, vector_of(c, list), INT(0),
                            cfxi_export_of_datum(c->x, cfx_datum_bool(turned)));
    return sorted->broken ? sorted : parts_of(c, sorted->items[0], 0, list->element);
}

static cfxi_ev *as_tensor(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    const cfxi_ev *element = given[0]->element;
    const bool typed = n > 1 && given[1] && given[1]->datum.kind == CFX_DATUM_DTYPE;
    const cfx_dtype dtype = typed ? (cfx_dtype)given[1]->datum.as.i
                            : element->datum.kind == CFX_DATUM_FLOAT ? CFX_DTYPE_FLOAT32
                                                                     : cfxi_export_dtype(element);
    const int64_t size = cfxi_dim_fresh(c->x->dims, c->x->err);
    if (!cfxi_export_is_number(element))
        return cfxi_export_refuse(c, "a tensor is made of a list of numbers; stack tensors");
    return cfxi_export_made(c->x, CAST(vector_of(c, given[0]), dtype), dtype, &size, 1);
}

/* ---- one value from all items -------------------------------------------------------------- */

static cfxi_ev *later_item(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *index)
{
    return item_at(c, list, NODE("Add", index, INT(1)));
}

static cfxi_ev *add_item(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    cfxi_ev *item = item_at(c, (cfxi_ev *)(uintptr_t)ctx, index);
    return NODE("Add", so_far, CAST(item, cfxi_export_dtype(so_far)));
}

static cfxi_ev *add_later(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    return NODE("Add", so_far, later_item(c, (cfxi_ev *)(uintptr_t)ctx, index));
}

/* Of numbers, from the number that it begins with; of tensors, from the first. */
static cfxi_ev *sum_items(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *list = given[0];
    cfxi_ev *start = n > 1 ? given[1] : cfxi_export_of_datum(x, cfx_datum_int(0));
    if (!cfxi_export_is_number(list->element) && list->element->rank == 0 &&
        cfxi_export_is_known(start))
        return looped(c, length_of(c, list), cfxi_export_value_like(
            x, list->element, NODE("Identity", CAST(start, list->element->dtype))), add_item, list);
    if (cfxi_export_is_number(list->element) && cfxi_export_is_number(start)) {
        const bool whole = !cfx_dtype_is_float(cfxi_export_dtype(list->element)) &&
                           start->datum.kind != CFX_DATUM_FLOAT;
        cfxi_ev *type = number_type(x, whole ? CFX_DTYPE_INT64 : CFX_DTYPE_FLOAT64);
        cfxi_ev *first = cfxi_export_value_like(
            x, type, NODE("Identity", CAST(start, cfxi_export_dtype(type))));
        return looped(c, length_of(c, list), first, add_item, list);
    }
    cfxi_ev *count = NODE("Sub", length_of(c, list), INT(1));
    cfxi_ev *sum = looped(c, count, item_at(c, list, INT(0)), add_later, list);
    if (!sum->broken)
        sum->shared = false;
    return cfxi_export_is_known(start) && start->datum.as.i == 0 ? sum : APPLY(add, sum, start);
}

typedef struct comparison {
    cfxi_ev *list;
    const char *op;
} comparison;

/* A later item counts if it is greater (or less): NaN is neither. */
static cfxi_ev *keep_extreme(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    const comparison *by = ctx;
    cfxi_ev *item = later_item(c, by->list, index);
    return NODE("Where", NODE(by->op, item, so_far), item, so_far);
}

static cfxi_ev *extreme_item(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_ev *list = given[0]->n == 1 ? given[0]->items[0] : given[0];
    (void)n;
    if (!list->element || (!cfxi_export_is_number(list->element) && list->element->rank != 0))
        return cfxi_export_refuse(c, "min and max are written for numbers and lists of them");
    const comparison by = {list, c->op == CFX_OPID_builtin_max ? "Greater" : "Less"};
    return looped(c, NODE("Sub", length_of(c, list), INT(1)), item_at(c, list, INT(0)),
                  keep_extreme, &by);
}

static cfxi_ev *fold_item(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    const comparison *by = ctx;
    return NODE(by->op, so_far, cfxi_export_condition(c, item_at(c, by->list, index)));
}

static cfxi_ev *flag(cfxi_exporter *x, bool value)
{
    static const cfxi_ev like = {.datum = {.kind = CFX_DATUM_BOOL, .symbolic = 1}};
    return cfxi_export_value_like(x, &like, cfxi_export_number(x, CFX_DTYPE_BOOL,
                                                               cfx_datum_bool(value)));
}

static cfxi_ev *fold_items(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    const bool any = c->op == CFX_OPID_builtin_any;
    const comparison by = {given[0], any ? "Or" : "And"};
    (void)n;
    return looped(c, length_of(c, given[0]), flag(c->x, !any), fold_item, &by);
}

typedef struct search {
    cfxi_ev *list;
    cfxi_ev *wanted;
} search;

static cfxi_ev *find_item(cfxi_export_call *c, cfxi_ev *so_far, cfxi_ev *index, const void *ctx)
{
    const search *s = ctx;
    return NODE("Or", so_far, cfxi_export_condition(c, APPLY(eq, item_at(c, s->list, index),
                                                             s->wanted)));
}

/* value in list */
static cfxi_ev *contains(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    if (n < 2 || !given[0]->element)
        return cfxi_export_refuse(c, "a list is not looked for in a list");
    const search s = {given[0], given[1]};
    return looped(c, length_of(c, given[0]), flag(c->x, false), find_item, &s);
}

/* ---- questions ----------------------------------------------------------------------------- */

static cfxi_ev *count_items(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    (void)n;
    return length_of(c, given[0]);
}

/* Whether there are items; `not`: whether there are none. */
static cfxi_ev *has_items(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    static const cfxi_ev like = {.datum = {.kind = CFX_DATUM_BOOL, .symbolic = 1}};
    cfxi_ev *length = length_of(c, given[0]);
    (void)n;
    return cfxi_export_value_like(c->x, &like, NODE(c->op == CFX_OPID_bool ? "Greater" : "Equal",
                                                    length, INT(0)));
}

static cfxi_ev *is_none(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    if (n > 1 && (cfxi_export_is_none(given[0]) || cfxi_export_is_none(given[1])))
        return cfxi_export_of_datum(c->x, cfx_datum_bool(c->op == CFX_OPID_is_not));
    return cfxi_export_refuse(c, "whether two lists are the same object is not known in ONNX");
}

static cfxi_ev *itself(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    (void)c;
    (void)n;
    return given[0];
}

/* ---- calls --------------------------------------------------------------------------------- */

typedef cfxi_ev *list_rule(cfxi_export_call *c, cfxi_ev *const *given, size_t n);

static const struct {
    cfx_operator op;
    bool whole;       /* the first argument must be the sequence itself */
    list_rule *rule;
} rows[] = {
    {CFX_OPID_getitem, false, get_item},
    {CFX_OPID_add, false, join_lists},
    {CFX_OPID_operator_concat, false, join_lists},
    {CFX_OPID_is, false, is_none},
    {CFX_OPID_is_not, false, is_none},
    {CFX_OPID_list, false, itself},
    {CFX_OPID_tuple, false, itself},
    {CFX_OPID_check_length, true, itself},
    {CFX_OPID_len, true, count_items},
    {CFX_OPID_bool, true, has_items},
    {CFX_OPID_not, true, has_items},
    {CFX_OPID_stack, true, concatenate},
    {CFX_OPID_cat, true, concatenate},
    {CFX_OPID_split, false, split_by_sizes},
    {CFX_OPID_split_with_sizes, false, split_by_sizes},
    {CFX_OPID_tensor, true, as_tensor},
    {CFX_OPID_as_tensor, true, as_tensor},
    {CFX_OPID_builtin_sorted, true, sort_items},
    {CFX_OPID_builtin_sum, true, sum_items},
    {CFX_OPID_builtin_any, true, fold_items},
    {CFX_OPID_builtin_all, true, fold_items},
    {CFX_OPID_builtin_max, false, extreme_item},
    {CFX_OPID_builtin_min, false, extreme_item},
    {CFX_OPID_contains, false, contains},
};

cfxi_ev *cfxi_export_on_sequence(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    const bool whole = n > 0 && given[0] && given[0]->element;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == c->op && (whole || (!rows[i].whole && n > 0 && given[0])))
            return rows[i].rule(c, given, n);
    return cfxi_export_refuse(c, "'%s' of a list whose length only a run knows cannot be written; "
                              "stack the list first", cfx_operator_name(c->op));
}

/* ---- lists that become sequences ----------------------------------------------------------- */

/* x.tolist() and x.unbind() of a size that is not known. */
static cfxi_ev *split_tensor(cfxi_export_call *c, cfxi_ev *x, int64_t dim, bool numbers)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n = 0;
    if (x->rank < 1 || x->dtype == CFX_DTYPE_BOOL || (numbers && x->rank > 1))
        return NULL;
    dim += dim < 0 ? x->rank : 0;
    for (int i = 0; i < x->rank; i++)
        if (i != dim)
            sizes[n++] = x->sizes[i];
    cfxi_ev *element = numbers ? number_type(c->x, x->dtype)
                               : cfxi_export_of_datum(c->x, cfxi_export_abstract(
                                     c->x, x->dtype, sizes, (int)n));
    x = cfxi_export_fresh(c->x, x);
    return parts_of(c, CAST(x, cfxi_export_dtype(element)), dim, element);
}

/* An item, or a part, of a list of known length. */
static cfxi_ev *of_known_list(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *index)
{
    cfxi_ev *element = list->n > 0 ? cfxi_export_item_type(c, list) : NULL;
    cfxi_ev *given[] = {element ? cfxi_export_as_sequence(c, list, element) : NULL, index};
    return element ? get_item(c, given, 2) : NULL;
}

cfxi_ev *cfxi_export_by_sequence(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_ev *first = n > 0 ? given[0] : NULL;
    cfxi_ev *second = n > 1 ? given[1] : NULL;
    const bool tensor = first && first->datum.kind == CFX_DATUM_TENSOR;
    const bool list = first && cfxi_export_is_list(first);
    switch ((int)c->op) {
    case CFX_OPID_tolist: return tensor ? split_tensor(c, first, 0, true) : NULL;
    case CFX_OPID_list:
    case CFX_OPID_tuple: return tensor ? split_tensor(c, first, 0, false) : NULL;
    case CFX_OPID_unbind:
        return !tensor || (second && !cfxi_export_is_known(second))
                   ? NULL : split_tensor(c, first, second ? second->datum.as.i : 0, false);
    case CFX_OPID_getitem: return list && second ? of_known_list(c, first, second) : NULL;
    case CFX_OPID_mul:
        return list && second && cfxi_export_is_number(second) ? repeated(c, first, second) : NULL;
    default: return NULL;
    }
}
