/* export_leaves.c - what branches and loops take and give: structures, leaf by leaf.
 *
 * What a region returns is written leaf by leaf. Numbers of the state of a loop are scalars, of
 * which nothing is known inside: another time around they are others. What is None on one way and
 * something on another has a value in ONNX that nobody uses.
 */
#include "export_control_impl.h"

#include "dim/dim_impl.h"

bool cfxi_export_collect(const cfxi_ev *like, cfxi_ev *v, cfxi_export_leaves *out)
{
    size_t n;
    if (!like->element && (cfx_datum_items(like->datum, &n) || like->items)) {
        const size_t step = like->datum.kind == CFX_DATUM_DICT ? 2 : 1;
        if (v->n != like->n)
            return false;
        for (size_t i = step - 1; i < like->n; i += step) {
            cfxi_ev *twin = cfxi_export_twin(like, i, v);
            if (!twin || !cfxi_export_collect(like->items[i], twin, out))
                return false;
        }
        return true;
    }
    const bool fits = like->element ? cfxi_export_is_list(v)
                                    : v->datum.kind == CFX_DATUM_TENSOR ||
                                          v->datum.kind == CFX_DATUM_NONE ||
                                          cfxi_export_is_number(v);
    if (out->n == CFXI_MOST_LEAVES || !fits)
        return false;
    out->at[out->n++] = v;
    return true;
}

static cfxi_text text_of(const char *text) { return (cfxi_text){text, strlen(text)}; }

/* ---- what is known of two ways ------------------------------------------------------------- */

cfx_datum cfxi_export_unknown_like(cfxi_exporter *x, cfx_datum d)
{
    d.symbolic = 1;
    if (d.kind == CFX_DATUM_INT)
        d.as.i = cfxi_dim_fresh_number(x->dims, x->err);
    return d;
}

cfx_datum cfxi_export_abstract(cfxi_exporter *x, cfx_dtype dtype, const int64_t *sizes, int rank)
{
    return cfxi_export_own(x, cfx_datum_tensor(cfx_tensor_new_abstract(
        dtype, sizes, (size_t)rank, x->allocator, x->err)));
}

/* Two numbers: the wider kind. */
static cfx_datum either_number(cfxi_exporter *x, cfx_datum a, cfx_datum b)
{
    const bool first = a.kind == b.kind || a.kind == CFX_DATUM_FLOAT || b.kind == CFX_DATUM_BOOL;
    return cfxi_export_unknown_like(x, first ? a : b);
}

/* Whether an element of that type can be the number. */
static bool holds_number(cfx_dtype dtype, cfx_datum number)
{
    return cfx_dtype_is_float(dtype) || number.kind == CFX_DATUM_BOOL ||
           (number.kind == CFX_DATUM_INT && cfx_dtype_is_integer(dtype));
}

/* A number beside a tensor without dimensions is a tensor; what is None on one way is what it is on
 * the other. */
cfx_datum cfxi_export_either(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_exporter *x = c->x;
    if (a->datum.kind == CFX_DATUM_NONE || b->datum.kind == CFX_DATUM_NONE) {
        const cfxi_ev *one = a->datum.kind == CFX_DATUM_NONE ? b : a;
        return cfxi_export_is_number(one) ? cfxi_export_unknown_like(x, one->datum) : one->datum;
    }
    if (cfxi_export_is_number(a) && cfxi_export_is_number(b))
        return either_number(x, a->datum, b->datum);
    const cfxi_ev *t = cfxi_export_is_number(a) ? b : a;
    const cfxi_ev *other = t == a ? b : a;
    if (cfxi_export_is_number(other) && t->rank == 0 && holds_number(t->dtype, other->datum))
        return cfxi_export_abstract(x, t->dtype, NULL, 0);
    if (cfxi_export_is_number(other) || a->rank != b->rank || a->dtype != b->dtype) {
        cfxi_export_refuse(c, "its ways give values of different types or ranks; return tensors of "
                           "one type and rank from each");
        return cfx_datum_none();
    }
    for (int i = 0; i < a->rank; i++)
        sizes[i] = cfx_dim_compare_eq(x->dims, a->sizes[i], b->sizes[i]) == 1
                       ? a->sizes[i] : cfxi_dim_fresh(x->dims, x->err);
    return cfxi_export_abstract(x, a->dtype, sizes, a->rank);
}

bool cfxi_export_join(cfxi_export_call *c, const cfxi_export_leaves *a,
                      const cfxi_export_leaves *b, cfxi_export_leaves *both)
{
    both->n = a->n;
    for (size_t i = 0; i < a->n; i++) {
        const bool list = cfxi_export_is_list(a->at[i]);
        cfxi_ev *v = list ? cfxi_export_either_list(c, a->at[i], b->at[i])
                          : cfxi_export_of_datum(c->x, cfxi_export_either(c, a->at[i], b->at[i]));
        if (c->refused || v->broken)
            return false;
        v->maybe_none = !list && v->datum.kind != CFX_DATUM_NONE &&
                        (a->at[i]->datum.kind == CFX_DATUM_NONE ||
                         b->at[i]->datum.kind == CFX_DATUM_NONE || a->at[i]->maybe_none ||
                         b->at[i]->maybe_none);
        both->at[i] = v;
    }
    return true;
}

cfxi_ev *cfxi_export_rebuild(cfxi_exporter *x, const cfxi_ev *like, cfxi_ev *const *values,
                             size_t *at)
{
    size_t n;
    if (like->element || (!like->items && !cfx_datum_items(like->datum, &n)))
        return values[(*at)++];
    const bool dict = like->datum.kind == CFX_DATUM_DICT;
    cfxi_ev **items = cfxi_export_room(x, like->n, sizeof *items);
    cfx_datum *data = cfxi_export_room(x, like->n, sizeof *data);
    for (size_t i = 0; items && data && i < like->n; i++) {
        items[i] = dict && i % 2 == 0 ? like->items[i]
                                      : cfxi_export_rebuild(x, like->items[i], values, at);
        data[i] = items[i]->datum;
    }
    cfxi_ev *made = items && data ? cfxi_export_list(x, items, like->n) : &x->broken;
    if (!made->broken)
        made->datum = cfxi_export_own(x, cfx_datum_seq(
            like->datum.kind ? (cfx_datum_kind)like->datum.kind : CFX_DATUM_TUPLE, data, like->n,
            x->allocator, x->err));
    return made;
}

/* Something of the type of `like`, for a way on which nobody uses it. */
static cfxi_ev *stand_in(cfxi_export_call *c, const cfxi_ev *like)
{
    int64_t ones[CFX_MAX_DIMS];
    for (int i = 0; i < CFX_MAX_DIMS; i++)
        ones[i] = 1;
    const size_t rank = cfxi_export_is_number(like) ? 0 : (size_t)like->rank;
    return cfxi_export_filled(c, cfxi_export_const_ints(c->x, ones, rank), cfxi_export_dtype(like),
                              0);
}

cfxi_ev *cfxi_export_in_type(cfxi_export_call *c, cfxi_ev *v, const cfxi_ev *like)
{
    if (like->element)
        return cfxi_export_as_sequence(c, v, like->element);
    return v->datum.kind == CFX_DATUM_NONE
               ? stand_in(c, like)
               : CAST(cfxi_export_fresh(c->x, v), cfxi_export_dtype(like));
}

size_t cfxi_export_set_outputs(cfxi_export_call *c, cfxi_onnx_value *outputs,
                               cfxi_ev *const *values, cfxi_ev *const *like, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (like[i]->datum.kind == CFX_DATUM_NONE)
            continue;
        cfxi_ev *v = cfxi_export_in_type(c, values[i], like[i]);
        cfxi_ev *own = NODE("Identity", v);
        if (own->broken)
            return 0;
        outputs[k].name = text_of(own->name);
        outputs[k++].type = cfxi_export_type(c->x, like[i], false);
    }
    return k;
}

cfxi_ev *cfxi_export_take_outputs(cfxi_export_call *c, const cfxi_ev *like,
                                  cfxi_export_leaves *both, cfxi_ev *const *outputs)
{
    size_t at = 0;
    size_t k = 0;
    for (size_t i = 0; i < both->n; i++) {
        if (both->at[i]->datum.kind == CFX_DATUM_NONE)
            continue;
        both->at[i]->source = c->node;
        both->at[i]->name = outputs[k]->name;
        both->at[i]->scope = outputs[k++]->scope;
        cfxi_export_note_type(c->x, both->at[i]);
    }
    return cfxi_export_rebuild(c->x, like, both->at, &at);
}

size_t cfxi_export_count_outputs(const cfxi_export_leaves *both)
{
    size_t n = 0;
    for (size_t i = 0; i < both->n; i++)
        n += both->at[i]->datum.kind != CFX_DATUM_NONE;
    return n;
}

cfxi_ev *cfxi_export_inner_value(cfxi_export_call *c, const cfxi_ev *like)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *list = like->element ? cfxi_export_new_sequence(x, like->element, NULL) : NULL;
    const cfx_datum d = like->datum.kind == CFX_DATUM_TENSOR
                            ? cfxi_export_abstract(x, like->dtype, like->sizes, like->rank)
                        : list || like->datum.kind == CFX_DATUM_NONE
                            ? like->datum : cfxi_export_unknown_like(x, like->datum);
    cfxi_ev *made = list ? list : cfxi_export_of_datum(x, d);
    if (made->broken || d.kind == CFX_DATUM_NONE)
        return made;
    made->name = cfxi_export_unique(x, cfxi_export_text(x, "%s/state",
                                                        cfx_node_name(c->node, NULL)));
    made->scope = x->scope;
    made->maybe_none = like->maybe_none;
    return made;
}

cfxi_ev *cfxi_export_condition(cfxi_export_call *c, cfxi_ev *v)
{
    if (v->element)
        return APPLY(bool, v);
    cfxi_ev *made = CAST(v, CFX_DTYPE_BOOL);
    if (!cfxi_export_is_number(v) && v->rank != 0)
        made = cfxi_export_scalar(c, made, v);
    return made;
}


/* ---- what may be the same ------------------------------------------------------------------ */

/* The tensor of outside that a leaf is; NULL if it is the graph's own. */
static cfxi_ev *outer_of(cfxi_ev *leaf, const cfxi_export_scope *inside)
{
    cfxi_ev *root = cfxi_export_root(leaf);
    return root->origin ? root->origin : root->scope == inside ? NULL : root;
}

void cfxi_export_note_partners(cfxi_exporter *x, const cfxi_export_scope *inside,
                               const cfxi_export_leaves *found, const cfxi_export_leaves *results)
{
    for (size_t i = 0; i < found->n; i++) {
        cfxi_ev *leaf = found->at[i];
        if (leaf->datum.kind != CFX_DATUM_TENSOR || results->at[i]->datum.kind != CFX_DATUM_TENSOR)
            continue;
        cfxi_ev *outer = outer_of(leaf, inside);
        if (outer)
            cfxi_export_partner_with(x, results->at[i], outer);
        for (size_t k = 0; k < i; k++)
            if (cfxi_export_root(found->at[k]) == cfxi_export_root(leaf))
                cfxi_export_partner_with(x, results->at[i], results->at[k]);
    }
}
