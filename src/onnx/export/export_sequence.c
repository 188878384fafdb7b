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

cfxi_ev *cfxi_export_as_item(cfxi_export_call *c, cfxi_ev *item, const cfxi_ev *element)
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
        items[i] = cfxi_export_as_item(c, list->items[i], element);
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

cfxi_ev *cfxi_export_value_like(cfxi_exporter *x, const cfxi_ev *like, const cfxi_ev *made)
{
    cfxi_ev *v = cfxi_export_of_datum(x, like->datum);
    if (v->broken || made->broken)
        return &x->broken;
    if (v->datum.kind == CFX_DATUM_INT)
        v->datum.as.i = cfxi_dim_fresh_number(x->dims, x->err);
    v->datum.symbolic = cfxi_export_is_number(v);
    v->name = made->name;
    v->scope = made->scope;
    cfxi_export_note_type(x, v);
    return v;
}

cfxi_ev *cfxi_export_item_type(cfxi_export_call *c, const cfxi_ev *list)
{
    cfxi_ev *element = NULL;
    if (!add_types(c, list, &element))
        return NULL;
    return element;
}
