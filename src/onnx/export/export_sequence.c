/* export_sequence.c - lists whose length only a run knows: ONNX's sequences.
 *
 * A list of known length is a value with items, and no ONNX value at all. One that a loop makes
 * longer, or that has another length on each way of a branch, becomes a sequence: all its items
 * have one type, which is `element`. What a sequence has is shared with whoever put it there, so a
 * tensor in one is not written to any more.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"

bool cfxi_export_has_sequence(const cfxi_ev *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (cfxi_export_has_sequence(v->items[i]))
            return true;
    return v->element != NULL;
}

bool cfxi_export_is_list(const cfxi_ev *v)
{
    return v->element || v->datum.kind == CFX_DATUM_LIST || v->datum.kind == CFX_DATUM_TUPLE;
}

/* ---- making them --------------------------------------------------------------------------- */

/* A sequence of such elements, under the name that a node has given it; NULL: none yet. */
cfxi_ev *cfxi_export_new_sequence(cfxi_exporter *x, cfxi_ev *element, const cfxi_ev *made)
{
    cfxi_ev *v = cfxi_export_room(x, 1, sizeof *v);
    const cfx_datum d = cfx_datum_seq(CFX_DATUM_LIST, NULL, 0, x->allocator, x->err);
    if (!v || d.kind == CFX_DATUM_INVALID)
        return cfxi_export_fail(x);
    *v = (cfxi_ev){.datum = cfxi_export_own(x, d), .rank = -1, .element = element};
    if (!made)
        return v;
    if (made->broken)
        return &x->broken;
    v->name = made->name;
    v->scope = made->scope;
    return v;
}

static bool add_type(cfxi_export_call *c, cfxi_ev *item, cfxi_ev **element)
{
    if (item->datum.kind != CFX_DATUM_TENSOR && !cfxi_export_is_number(item)) {
        cfxi_export_refuse(c, "a list whose length only a run knows holds something that is "
                           "neither a tensor nor a number; keep one list for each part");
        return false;
    }
    *element = cfxi_export_of_datum(c->x, cfxi_export_either(c, *element ? *element : item, item));
    return !c->refused && !(*element)->broken;
}

static bool add_types(cfxi_export_call *c, const cfxi_ev *list, cfxi_ev **element)
{
    if (list->element)
        return add_type(c, list->element, element);
    for (size_t i = 0; i < list->n; i++)
        if (!add_type(c, list->items[i], element))
            return false;
    return true;
}

cfxi_ev *cfxi_export_either_list(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b)
{
    cfxi_ev *element = NULL;
    if (!add_types(c, a, &element) || !add_types(c, b, &element))
        return &c->x->broken;
    if (!element)  /* both are empty: no time around gives it anything */
        return cfxi_export_refuse(c, "nothing tells the type of what a list will hold");
    return cfxi_export_new_sequence(c->x, element, NULL);
}

static cfxi_ev *empty_of(cfxi_export_call *c, const cfxi_ev *element)
{
    cfxi_ev *made = cfxi_export_node(c->x, "SequenceEmpty", NULL, 0);
    SET_INT("dtype", cfxi_onnx_dtype_number(cfxi_export_dtype(element)));
    return made;
}

/* An item as a sequence has it. */
static cfxi_ev *item_of(cfxi_export_call *c, cfxi_ev *item, const cfxi_ev *element)
{
    if (item->datum.kind == CFX_DATUM_TENSOR)
        cfxi_export_root(item)->shared = true;
    item = cfxi_export_fresh(c->x, item);
    return CAST(item, cfxi_export_dtype(element));
}

cfxi_ev *cfxi_export_as_sequence(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *element)
{
    cfxi_exporter *x = c->x;
    if (list->element)
        return cfxi_export_dtype(list->element) == cfxi_export_dtype(element) ? list
               : cfxi_export_refuse(c, "a list holds values of several types; keep to one");
    cfxi_ev **items = cfxi_export_room(x, list->n, sizeof *items);
    for (size_t i = 0; items && i < list->n; i++)
        items[i] = item_of(c, list->items[i], element);
    if (!items)
        return &x->broken;
    return cfxi_export_new_sequence(x, element, list->n == 0 ? empty_of(c, element)
                                    : cfxi_export_node(x, "SequenceConstruct", items, list->n));
}

/* ---- two ways ------------------------------------------------------------------------------ */

cfxi_ev *cfxi_export_twin(const cfxi_ev *like, size_t i, const cfxi_ev *other)
{
    const bool dict = like->datum.kind == CFX_DATUM_DICT;
    if (other->n != like->n || dict != (other->datum.kind == CFX_DATUM_DICT))
        return NULL;
    if (!dict)
        return other->items[i];
    const size_t at = cfxi_export_item_place(other, like->items[i - 1]);
    return at == SIZE_MAX ? NULL : other->items[at];
}

/* The container `like` with other items. */
static cfxi_ev *with_items(cfxi_exporter *x, const cfxi_ev *like, cfxi_ev **items)
{
    cfxi_ev *made = cfxi_export_list(x, items, like->n);
    if (!made->broken)
        made->datum = like->datum;
    return made;
}

cfxi_ev *cfxi_export_widen(cfxi_export_call *c, cfxi_ev *a, cfxi_ev *b)
{
    cfxi_exporter *x = c->x;
    if (a->element)
        return a;
    if (cfxi_export_is_list(a) && cfxi_export_is_list(b) && (b->element || a->n != b->n))
        return cfxi_export_either_list(c, a, b);
    if (a->n == 0)
        return a;
    const bool dict = a->datum.kind == CFX_DATUM_DICT;
    cfxi_ev **items = cfxi_export_room(x, a->n, sizeof *items);
    bool same = true;
    for (size_t i = 0; items && i < a->n; i++) {
        cfxi_ev *other = dict && i % 2 == 0 ? NULL : cfxi_export_twin(a, i, b);
        items[i] = other ? cfxi_export_widen(c, a->items[i], other) : a->items[i];
        same = same && items[i] == a->items[i];
    }
    return same ? a : items ? with_items(x, a, items) : &x->broken;
}

/* ---- what calls do with them --------------------------------------------------------------- */

/* A value that a node has made, of which no more is known than the type. */
static cfxi_ev *value_like(cfxi_exporter *x, const cfxi_ev *like, const cfxi_ev *made)
{
    cfxi_ev *v = cfxi_export_of_datum(x, like->datum);
    if (v->broken || made->broken)
        return &x->broken;
    if (v->datum.kind == CFX_DATUM_INT) {
        v->datum.symbolic = 1;
        v->datum.as.i = cfxi_dim_fresh_number(x->dims, x->err);
    }
    v->name = made->name;
    v->scope = made->scope;
    v->shared = true;
    return v;
}

static cfxi_ev *length_of(cfxi_export_call *c, cfxi_ev *list)
{
    static const cfxi_ev number = {.datum = {.kind = CFX_DATUM_INT}};
    cfxi_ev *made = NODE("SequenceLength", list);
    cfxi_ev *v = value_like(c->x, &number, made);
    if (!v->broken)
        v->shared = false;
    return v;
}

static cfxi_ev *item_at(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *index)
{
    if (list->element && (cfxi_export_is_number(index) || index->datum.kind == CFX_DATUM_TENSOR))
        return value_like(c->x, list->element,
                          NODE("SequenceAt", list, CAST(index, CFX_DTYPE_INT64)));
    const size_t at = list->element ? SIZE_MAX : cfxi_export_item_place(list, index);
    if (at != SIZE_MAX)
        return list->items[at];
    return cfxi_export_refuse(c, "part of a list whose length only a run knows cannot be written; "
                              "take single items");
}

/* a + b: the items of one, put to the end or the beginning of the other. */
static cfxi_ev *joined(cfxi_export_call *c, cfxi_ev *a, cfxi_ev *b)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *element = NULL;
    if (!cfxi_export_is_list(a) || !cfxi_export_is_list(b) || (a->element && b->element))
        return cfxi_export_refuse(c, "two lists whose lengths only a run knows cannot be joined in "
                                  "ONNX; append to one of them");
    if (!add_types(c, a, &element) || !add_types(c, b, &element))
        return &x->broken;
    cfxi_ev *all = cfxi_export_as_sequence(c, a->element ? a : b, element);
    const cfxi_ev *more = a->element ? b : a;
    cfxi_ev *made = all;
    for (size_t i = 0; i < more->n && !made->broken; i++) {
        cfxi_ev *item = item_of(c, more->items[i], element);
        made = a->element ? NODE("SequenceInsert", made, item)
                          : NODE("SequenceInsert", made, item, INT((int64_t)i));
    }
    return cfxi_export_new_sequence(x, element, made);
}

/* stack and cat. */
static cfxi_ev *concatenated(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *const *given, size_t n,
                             bool stack)
{
    int64_t sizes[CFX_MAX_DIMS + 1];
    cfxi_exporter *x = c->x;
    const cfxi_ev *element = list->element;
    const int rank = element->rank + stack;
    const bool has_dim = n > 1 && given[1] && cfxi_export_is_known(given[1]);
    const int64_t wish = has_dim ? given[1]->datum.as.i : 0;
    const int64_t dim = wish < 0 ? wish + rank : wish;
    if (element->datum.kind != CFX_DATUM_TENSOR || rank > CFX_MAX_DIMS || dim < 0 || dim >= rank)
        return cfxi_export_refuse(c, "what the list holds cannot be joined along dimension %lld",
                                  (long long)wish);
    for (int i = 0, k = 0; i < rank; i++) {
        const bool joins = i == dim;
        sizes[i] = joins ? cfxi_dim_fresh(x->dims, x->err) : element->sizes[k];
        k += !(joins && stack);
    }
    cfxi_ev *made = NODE("ConcatFromSequence", list);
    SET_INT("axis", dim);
    SET_INT("new_axis", stack);
    cfxi_ev *v = cfxi_export_of_datum(x, cfxi_export_own(x, cfx_datum_tensor(
        cfx_tensor_new_abstract(element->dtype, sizes, (size_t)rank, x->allocator, x->err))));
    if (v->broken || made->broken)
        return &x->broken;
    v->name = made->name;
    v->scope = made->scope;
    return v;
}

/* Whether there are items; `not`: whether there are none. */
static cfxi_ev *filled(cfxi_export_call *c, cfxi_ev *list, bool yes)
{
    static const cfxi_ev flag = {.datum = {.kind = CFX_DATUM_BOOL, .symbolic = 1}};
    cfxi_ev *length = NODE("SequenceLength", list);
    length->dtype = CFX_DTYPE_INT64;
    cfxi_ev *v = value_like(c->x, &flag, yes ? NODE("Greater", length, INT(0))
                                             : NODE("Equal", length, INT(0)));
    if (!v->broken)
        v->shared = false;
    return v;
}

cfxi_ev *cfxi_export_on_sequence(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_ev *first = n > 0 ? given[0] : NULL;
    const bool whole = first && first->element;
    switch ((int)c->op) {
    case CFX_OPID_getitem: return item_at(c, first, given[1]);
    case CFX_OPID_add: return joined(c, first, given[1]);
    case CFX_OPID_is:
    case CFX_OPID_is_not:
        if (cfxi_export_is_none(first) || cfxi_export_is_none(given[1]))
            return cfxi_export_of_datum(c->x, cfx_datum_bool(c->op == CFX_OPID_is_not));
        break;
    case CFX_OPID_len:
        if (whole)
            return length_of(c, first);
        break;
    case CFX_OPID_bool:
    case CFX_OPID_not:
        if (whole)
            return filled(c, first, c->op == CFX_OPID_bool);
        break;
    case CFX_OPID_list:
    case CFX_OPID_tuple:
        return first;
    case CFX_OPID_stack:
    case CFX_OPID_cat:
        if (whole)
            return concatenated(c, first, given, n, c->op == CFX_OPID_stack);
        break;
    default: break;
    }
    return cfxi_export_refuse(c, "'%s' of a list whose length only a run knows cannot be written; "
                              "stack the list first", cfx_operator_name(c->op));
}
