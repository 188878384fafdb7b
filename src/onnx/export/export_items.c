/* export_items.c - x[...] of Python: items of lists and dicts, and parts of tensors. */
#include "export_impl.h"

/* ---- containers ---------------------------------------------------------------------------- */

static bool is_key(const cfxi_ev *a, const cfxi_ev *b)
{
    const char *x = cfx_datum_text(a->datum, NULL);
    const char *y = cfx_datum_text(b->datum, NULL);
    if (x && y)
        return strcmp(x, y) == 0;
    return a->datum.kind == b->datum.kind && cfxi_export_is_known(a) && cfxi_export_is_known(b) &&
           a->datum.as.i == b->datum.as.i;
}

size_t cfxi_export_item_place(const cfxi_ev *list, const cfxi_ev *index)
{
    if (list->datum.kind == CFX_DATUM_DICT) {
        for (size_t i = 0; i + 1 < list->n; i += 2)
            if (is_key(list->items[i], index))
                return i + 1;
        return SIZE_MAX;
    }
    if (!cfxi_export_is_known(index) || index->datum.kind != CFX_DATUM_INT)
        return SIZE_MAX;
    const int64_t i = index->datum.as.i;
    const size_t at = (size_t)(i < 0 ? i + (int64_t)list->n : i);
    return at < list->n ? at : SIZE_MAX;
}

/* a | b of dicts: keys in the order of the result, values of b before those of a. */
cfxi_ev *cfxi_export_merged(cfxi_export_call *c)
{
    size_t n;
    const cfx_datum *keys = cfx_datum_items(c->result, &n);
    cfxi_ev **items = cfxi_export_room(c->x, n, sizeof *items);
    for (size_t i = 0; items && i + 1 < n; i += 2) {
        items[i] = cfxi_export_of_datum(c->x, keys[i]);
        size_t at = cfxi_export_item_place(c->args[1], items[i]);
        const cfxi_ev *from = c->args[at == SIZE_MAX ? 0 : 1];
        at = at == SIZE_MAX ? cfxi_export_item_place(from, items[i]) : at;
        if (at == SIZE_MAX)
            return cfxi_export_refuse(c, "the keys of a dict are not known");
        items[i + 1] = from->items[at];
    }
    return items ? cfxi_export_list(c->x, items, n) : &c->x->broken;
}

/* A bound of a slice of n items as a place; backwards, the one before the first is -1. */
static int64_t bound(const cfxi_ev *v, int64_t n, int64_t otherwise, bool backwards)
{
    if (!cfxi_export_is_known(v))
        return otherwise;
    const int64_t i = v->datum.as.i < 0 ? v->datum.as.i + n : v->datum.as.i;
    const int64_t least = backwards ? -1 : 0;
    const int64_t most = backwards ? n - 1 : n;
    return i < least ? least : i > most ? most : i;
}

static cfxi_ev *list_part(cfxi_export_call *c, const cfxi_ev *list, const cfxi_ev *slice)
{
    const int64_t n = (int64_t)list->n;
    const int64_t step = cfxi_export_is_known(slice->items[2]) ? slice->items[2]->datum.as.i : 1;
    const bool backwards = step < 0;
    const int64_t first = bound(slice->items[0], n, backwards ? n - 1 : 0, backwards);
    const int64_t end = bound(slice->items[1], n, backwards ? -1 : n, backwards);
    cfxi_ev **items = cfxi_export_room(c->x, list->n, sizeof *items);
    size_t found = 0;
    for (int64_t i = first; items && (backwards ? i > end : i < end);) {
        items[found++] = list->items[i];
        if (step > n || step < -n)
            break;
        i += step;
    }
    return items ? cfxi_export_list(c->x, items, found) : &c->x->broken;
}

static cfxi_ev *list_item(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    const cfxi_ev *index = c->args[1];
    if (index->datum.kind == CFX_DATUM_SLICE && index->n == 3)
        return list_part(c, list, index);
    const size_t at = cfxi_export_item_place(list, index);
    if (at == SIZE_MAX)
        return cfxi_export_refuse(c, "which item of a list is meant is only known when the graph "
                                  "runs; stack the list to one tensor and index that");
    return list->items[at];
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* What is left after numbers, slices and None: tensors, by the dimension that they index. */
typedef struct parts {
    cfxi_ev *x;
    int axis;
    int rank;                       /* of x */
    cfxi_ev *index[CFX_MAX_DIMS];   /* for each dimension up to the last with one */
    size_t n;
    bool any;
} parts;

static cfxi_ev *none_value(cfxi_export_call *c)
{
    return cfxi_export_of_datum(c->x, cfx_datum_none());
}

static int dims_used(const cfxi_ev *v)
{
    if (v->datum.kind == CFX_DATUM_NONE || v->datum.kind == CFX_DATUM_ELLIPSIS)
        return 0;
    const bool mask = v->datum.kind == CFX_DATUM_TENSOR &&
                      (v->dtype == CFX_DTYPE_BOOL || v->dtype == CFX_DTYPE_UINT8);
    return mask ? v->rank : 1;
}

static void keep_tensor(cfxi_export_call *c, parts *p, cfxi_ev *v)
{
    while (p->n < (size_t)p->axis && p->n < CFX_MAX_DIMS)
        p->index[p->n++] = none_value(c);
    if (p->n < CFX_MAX_DIMS)
        p->index[p->n++] = v;
    p->any = true;
    p->axis += dims_used(v);
}

/* [1, 2] is a tensor of places. */
static cfxi_ev *list_as_tensor(cfxi_export_call *c, cfxi_ev *v)
{
    cfxi_ev *made = cfxi_export_shape_of(c->x, v->items, v->n);
    const int64_t sizes[] = {(int64_t)v->n};
    return cfxi_export_made(c->x, made, CFX_DTYPE_INT64, sizes, 1);
}

static void apply_slice(cfxi_export_call *c, parts *p, const cfxi_ev *slice)
{
    cfxi_ev *start = slice->items[0];
    cfxi_ev *end = cfxi_export_is_none(slice->items[1]) ? NULL : slice->items[1];
    const bool from_start = cfxi_export_is_none(start);
    int64_t step = 1;
    if (!cfxi_export_is_none(slice->items[2])) {
        if (!cfxi_export_is_known(slice->items[2]))
            cfxi_export_refuse(c, "the step of a slice must be a constant");
        step = slice->items[2]->datum.as.i;
    }
    if (!from_start || end || step != 1)
        p->x = cfxi_export_slice(c, p->x, p->axis, from_start ? INT(0) : start, end, step);
    p->axis++;
}

static void apply_item(cfxi_export_call *c, parts *p, cfxi_ev *v)
{
    const cfx_datum_kind kind = (cfx_datum_kind)v->datum.kind;
    if (kind == CFX_DATUM_NONE || kind == CFX_DATUM_BOOL) {
        if (kind == CFX_DATUM_BOOL)
            cfxi_export_refuse(c, "an index that is True or False is not written");
        p->x = cfxi_export_unsqueeze(c, p->x, p->axis++);
        p->rank++;
    } else if (kind == CFX_DATUM_SLICE) {
        apply_slice(c, p, v);
    } else if (kind == CFX_DATUM_INT) {
        p->x = NODE("Gather", p->x, v);
        SET_INT("axis", p->axis);
        p->rank--;
    } else if (kind == CFX_DATUM_LIST || kind == CFX_DATUM_TUPLE) {
        keep_tensor(c, p, list_as_tensor(c, v));
    } else if (kind == CFX_DATUM_TENSOR) {
        keep_tensor(c, p, v);
    } else {
        cfxi_export_refuse(c, "an index of type %s is not written", cfx_datum_kind_name(kind));
    }
}

/* The items of an index: itself, or those of a tuple. */
static cfxi_ev *const *index_items(cfxi_ev *const *index, size_t *n)
{
    *n = (*index)->datum.kind == CFX_DATUM_TUPLE ? (*index)->n : 1;
    return (*index)->datum.kind == CFX_DATUM_TUPLE ? (*index)->items : index;
}

static parts split_index(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *index)
{
    size_t n;
    parts p = {.x = x, .rank = x->rank};
    cfxi_ev *const *items = index_items(index, &n);
    int used = 0;
    for (size_t i = 0; i < n; i++)
        used += dims_used(items[i]);
    for (size_t i = 0; i < n; i++) {
        if (items[i]->datum.kind == CFX_DATUM_ELLIPSIS)
            p.axis += x->rank - used;
        else
            apply_item(c, &p, items[i]);
    }
    return p;
}

static cfxi_ev *tensor_item(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *index)
{
    const parts p = split_index(c, x, index);
    if (!p.any || p.x->broken)
        return p.x;
    cfxi_ev *part = cfxi_export_room(c->x, 1, sizeof *part);
    if (!part)
        return &c->x->broken;
    *part = *p.x;
    part->rank = p.rank;
    part->view = NULL;
    return cfxi_export_index(c, part, p.index, p.n);
}

cfxi_ev *cfxi_export_getitem(cfxi_export_call *c)
{
    if (c->args[0]->datum.kind == CFX_DATUM_TENSOR)
        return tensor_item(c, ARG(0), &c->args[1]);
    return list_item(c);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The index with whole dimensions in the place of tensors: what it reads is a view. */
static cfxi_ev *basic_index(cfxi_export_call *c, cfxi_ev *const *items, size_t n)
{
    cfxi_exporter *x = c->x;
    cfx_datum whole[3] = {cfx_datum_none(), cfx_datum_none(), cfx_datum_none()};
    cfx_datum *data = cfxi_export_room(x, n * CFX_MAX_DIMS, sizeof *data);
    cfxi_ev **list = cfxi_export_room(x, n * CFX_MAX_DIMS, sizeof *list);
    size_t k = 0;
    for (size_t i = 0; data && list && i < n; i++) {
        const bool many = items[i]->datum.kind == CFX_DATUM_TENSOR ||
                          items[i]->datum.kind == CFX_DATUM_LIST;
        for (int d = 0; d < (many ? dims_used(items[i]) : 1); d++) {
            list[k] = items[i];
            if (many)
                list[k] = cfxi_export_of_datum(x, cfxi_export_own(x, cfx_datum_seq(
                    CFX_DATUM_SLICE, whole, 3, x->allocator, x->err)));
            data[k] = list[k]->datum;
            k++;
        }
    }
    cfxi_ev *index = cfxi_export_list(x, list, k);
    if (index->broken || !data)
        return &x->broken;
    index->datum = cfxi_export_own(x, cfx_datum_seq(CFX_DATUM_TUPLE, data, k, x->allocator,
                                                    x->err));
    return index;
}

static cfxi_ev *set_list_item(cfxi_export_call *c)
{
    cfxi_ev *list = c->args[0];
    const size_t at = cfxi_export_item_place(list, c->args[1]);
    if (at == SIZE_MAX)
        return cfxi_export_refuse(c, "an item is added to a list or dict, or which one is written "
                                  "is not known; build the list with its items instead");
    list->items[at] = c->args[2];
    return cfxi_export_of_datum(c->x, cfx_datum_none());
}

/* The indices of a view's dimensions, as index_put takes them. */
static cfxi_ev *put_by_tensors(cfxi_export_call *c, cfxi_ev *view, const parts *p)
{
    cfxi_exporter *x = c->x;
    cfx_datum data[CFX_MAX_DIMS];
    for (size_t i = 0; i < p->n; i++)
        data[i] = p->index[i]->datum;
    cfxi_ev *list = cfxi_export_list(x, p->index, p->n);
    if (list->broken)
        return list;
    list->datum = cfxi_export_own(x, cfx_datum_seq(CFX_DATUM_LIST, data, p->n, x->allocator,
                                                   x->err));
    return APPLY(index_put, view, list, c->args[2]);
}

cfxi_ev *cfxi_export_setitem(cfxi_export_call *c)
{
    size_t n;
    cfxi_ev *x = c->args[0];
    if (x->datum.kind != CFX_DATUM_TENSOR)
        return set_list_item(c);
    cfxi_ev *const *items = index_items(&c->args[1], &n);
    cfxi_ev *view = APPLY(getitem, x, basic_index(c, items, n));
    if (view->broken)
        return view;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || items[i]->datum.kind == CFX_DATUM_TENSOR ||
              items[i]->datum.kind == CFX_DATUM_LIST;
    cfxi_ev *value = CAST(cfxi_export_fresh(c->x, c->args[2]), x->dtype);
    if (any) {
        const parts p = split_index(c, x, &c->args[1]);
        value = put_by_tensors(c, view, &p);
    } else {
        value = NODE("Expand", value, SHAPE(view));
    }
    if (value->broken)
        return value;
    cfxi_export_write(c, view, value);
    return cfxi_export_of_datum(c->x, cfx_datum_none());
}
