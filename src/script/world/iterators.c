/* iterators.c - iterators: of containers, enumerate, zip, and of the user's own. */
#include "world_impl.h"

#include <math.h>

cfx_object *cfxi_world_iterator(cfxi_world *w, cfxi_step step, cfx_object *a, cfx_object *b,
                                int64_t i, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_ITERATOR, err);
    if (o) {
        o->as.iterator.a = cfxi_world_ref(a);
        o->as.iterator.b = cfxi_world_ref(b);
        o->as.iterator.i = i;
        o->as.iterator.step = (uint8_t)step;
    }
    return o;
}

/* What __iter__ gives, if the user has written one; or item by item, by __getitem__ and __len__. */
static cfx_object *iterate_own(cfxi_world *w, cfx_object *o, bool *found, cfx_error *err)
{
    cfx_object *own = cfxi_world_special(w, o, "__iter__", NULL, 0, found, err);
    if (!*found || !own || own->type == CFXI_TYPE_ITERATOR)
        return own;
    cfx_object *made = own->type == CFXI_TYPE_INSTANCE
                           ? cfxi_world_iterator(w, CFXI_STEP_OWN, own, NULL, 0, err)
                           : cfxi_world_iterate(w, own, err);
    cfxi_world_unref(own);
    return made;
}

cfx_object *cfxi_world_iterate(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    bool found = false;
    if (o->cls && o->cls->type == CFXI_TYPE_CLASS) {
        cfx_object *made = iterate_own(w, o, &found, err);
        if (found)
            return made;
        if (cfxi_world_class_find(o->cls, "__getitem__") &&
            cfxi_world_class_find(o->cls, "__len__"))
            return cfxi_world_iterator(w, CFXI_STEP_INDEX, o, NULL, 0, err);
    }
    if (cfxi_world_check_known(o, err) != CFX_OK)
        return NULL;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_ITERATOR: return cfxi_world_ref(o);
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST: return cfxi_world_iterator(w, CFXI_STEP_INDEX, o, NULL, 0, err);
    case CFXI_TYPE_STR: return cfxi_world_iterator(w, CFXI_STEP_TEXT, o, NULL, 0, err);
    case CFXI_TYPE_RANGE: return cfxi_world_iterator(w, CFXI_STEP_RANGE, o, NULL, 0, err);
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: return cfxi_world_iterator(w, CFXI_STEP_KEYS, o, NULL, 0, err);
    case CFXI_TYPE_MODULE: {
        cfx_object *list = cfxi_world_layer_children(w, o, err);
        cfx_object *made =
            list ? cfxi_world_iterator(w, CFXI_STEP_INDEX, list, NULL, 0, err) : NULL;
        cfxi_world_unref(list);
        return made;
    }
    case CFXI_TYPE_TENSOR: {  /* its rows, by the same rules as x[i] */
        const size_t n = cfx_tensor_ndim(o->as.tensor);
        if (n == 0)
            return cfxi_world_raise(w, err, CFXI_TypeError, "iteration over a 0-d tensor");
        return cfxi_world_iterator(w, CFXI_STEP_INDEX, o, NULL, 0, err);
    }
    case CFXI_TYPE_VALUE:
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "the number of items in a graph value depends on data");
    default:
        return cfxi_world_raise(w, err, CFXI_TypeError, "'%s' object is not iterable",
                                cfxi_world_type_name(o));
    }
}

/* ---- the next item ------------------------------------------------------------------------- */

static cfx_object *next_index(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    cfx_object *o = it->as.iterator.a;
    const int64_t i = it->as.iterator.i;
    int64_t n = 0;
    if (o->type == CFXI_TYPE_TENSOR)
        n = cfx_tensor_sizes(o->as.tensor)[0];
    else if (cfxi_world_length(w, o, &n, err) != CFX_OK)
        return NULL;
    if (i >= n)
        return NULL;
    it->as.iterator.i++;
    if (o->type == CFXI_TYPE_LIST || (o->type == CFXI_TYPE_TUPLE && !o->cls))
        return cfxi_world_ref(o->as.seq.items[i]);
    cfx_object *key = cfxi_world_int_object(w, i, err);
    cfx_object *made = key ? cfxi_world_item(w, o, key, err) : NULL;
    cfxi_world_unref(key);
    return made;
}

static cfx_object *next_back(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    if (it->as.iterator.i <= 0)
        return NULL;
    cfx_object *key = cfxi_world_int_object(w, --it->as.iterator.i, err);
    cfx_object *made = key ? cfxi_world_item(w, it->as.iterator.a, key, err) : NULL;
    cfxi_world_unref(key);
    return made;
}

static cfx_object *next_character(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    const cfx_object *s = it->as.iterator.a;
    const size_t from = (size_t)it->as.iterator.i;
    uint32_t code;
    if (from >= s->as.text.size)
        return NULL;
    size_t n = cfxi_base_utf8_decode(s->as.text.data + from, s->as.text.size - from, &code);
    n = n ? n : 1;
    it->as.iterator.i += (int64_t)n;
    return cfxi_world_text_object(w, CFXI_TYPE_STR, s->as.text.data + from, n, err);
}

static cfx_object *next_key(cfx_object *it)
{
    cfx_object *key;
    size_t at = (size_t)it->as.iterator.i;
    if (!cfxi_world_dict_next(it->as.iterator.a, &at, &key, NULL))
        return NULL;
    it->as.iterator.i = (int64_t)at;
    return cfxi_world_ref(key);
}

static cfx_object *next_enumerated(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    cfx_object *item = cfxi_world_next(w, it->as.iterator.a, err);
    if (!item)
        return NULL;
    cfx_object *both[] = {cfxi_world_int_object(w, it->as.iterator.i++, err), item};
    return cfxi_world_seq_take(w, CFXI_TYPE_TUPLE, both, 2, err);
}

/* One of each iterator; NULL at the end of the first that ends. */
static cfx_object *next_of_each(cfxi_world *w, const cfx_object *iterators, cfx_error *err)
{
    cfx_object *row = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, NULL, 0, err);
    const size_t n = iterators->as.seq.n;
    for (size_t i = 0; row && i < n; i++) {
        cfx_object *item = cfxi_world_next(w, iterators->as.seq.items[i], err);
        if (!item || cfxi_world_list_append(row, item, err) != CFX_OK)
            cfxi_world_clear(&row);
        cfxi_world_unref(item);
    }
    if (row && n == 0)
        cfxi_world_clear(&row);
    return row;
}

static cfx_object *next_own(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    bool found = false;
    cfx_object *made = cfxi_world_special(w, it->as.iterator.a, "__next__", NULL, 0, &found, err);
    if (!found)
        return cfxi_world_raise(w, err, CFXI_TypeError, "iter() returned non-iterator of type '%s'",
                                cfxi_world_type_name(it->as.iterator.a));
    if (!made && cfxi_world_catch(w, CFXI_StopIteration, err))
        return NULL;
    return made;
}

cfx_object *cfxi_world_next(cfxi_world *w, cfx_object *it, cfx_error *err)
{
    err->status = CFX_OK;
    if (it->type != CFXI_TYPE_ITERATOR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "'%s' object is not an iterator",
                                cfxi_world_type_name(it));
    switch ((cfxi_step)it->as.iterator.step) {
    case CFXI_STEP_INDEX: return next_index(w, it, err);
    case CFXI_STEP_BACK: return next_back(w, it, err);
    case CFXI_STEP_TEXT: return next_character(w, it, err);
    case CFXI_STEP_RANGE: {
        const cfx_object *r = it->as.iterator.a;
        const int64_t i = it->as.iterator.i;
        if (i >= r->as.range.n)
            return NULL;
        it->as.iterator.i++;
        return cfxi_world_int_object(w, r->as.range.start + i * r->as.range.step, err);
    }
    case CFXI_STEP_KEYS: return next_key(it);
    case CFXI_STEP_ENUMERATE: return next_enumerated(w, it, err);
    case CFXI_STEP_ZIP: return next_of_each(w, it->as.iterator.b, err);
    case CFXI_STEP_OWN: return next_own(w, it, err);
    }
    return NULL;
}

cfx_object *cfxi_world_collect(cfxi_world *w, cfxi_type type, cfx_object *from, cfx_error *err)
{
    const bool set = type == CFXI_TYPE_SET || type == CFXI_TYPE_FROZENSET;
    cfx_object *all = set ? cfxi_world_dict_object(w, type, err)
                          : cfxi_world_seq_object(w, type, NULL, 0, err);
    cfx_object *it = all ? cfxi_world_iterate(w, from, err) : NULL;
    if (!it) {
        cfxi_world_unref(all);
        return NULL;
    }
    cfx_status status = CFX_OK;
    for (cfx_object *item; status == CFX_OK && (item = cfxi_world_next(w, it, err)) != NULL;) {
        status = set ? cfxi_world_dict_set(all, item, NULL, err)
                     : cfxi_world_list_append(all, item, err);
        cfxi_world_unref(item);
    }
    cfxi_world_unref(it);
    if (err->status != CFX_OK)
        cfxi_world_clear(&all);
    return all;
}

/* ---- sorting ------------------------------------------------------------------------------- */

typedef struct sorting {
    cfxi_world *w;
    cfx_object *const *keys;
    cfx_error *err;
} sorting;

static int is_less(void *ctx, size_t a, size_t b)
{
    const sorting *s = ctx;
    return cfxi_world_less(s->w, s->keys[a], s->keys[b], s->err);
}

static bool has_nan(cfx_object *const *keys, size_t n, int depth)
{
    for (size_t i = 0; i < n && depth < CFXI_DEEPEST; i++) {
        const bool many = keys[i]->type == CFXI_TYPE_TUPLE || keys[i]->type == CFXI_TYPE_LIST;
        if ((keys[i]->type == CFXI_TYPE_FLOAT && isnan(keys[i]->as.f)) ||
            (many && has_nan(keys[i]->as.seq.items, keys[i]->as.seq.n, depth + 1)))
            return true;
    }
    return false;
}

/* Brings the items into the order of the keys. */
static cfx_status sort_items(cfxi_world *w, cfx_object *const *keys, cfx_object **items, size_t n,
                             bool reverse, cfx_error *err)
{
    sorting s = {w, keys, err};
    size_t bytes = 0;
    if (n >= CFXI_SHORT_SORT && has_nan(keys, n, 0))
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot sort %d or more numbers if one is "
                             "NaN: it has no place in the order; take NaN out first",
                             CFXI_SHORT_SORT);
    size_t *order = cfxi_base_mul_size(n + 1, 2 * sizeof *order + sizeof *items, 0, &bytes)
                        ? cfxi_world_alloc(w, bytes, err) : NULL;
    if (!order)
        return cfxi_base_nomem(err);
    cfx_object **sorted = (cfx_object **)(order + 2 * n);
    const bool good = cfxi_base_sort(order, order + n, n, reverse, is_less, &s);
    for (size_t i = 0; good && i < n; i++)
        sorted[i] = items[order[i]];
    if (good && n > 0)
        memcpy(items, sorted, n * sizeof *items);
    cfxi_world_free(w, order, bytes);
    return good ? CFX_OK : err->status;
}

/* On a copy, because comparing may run user code that looks at the list. */
cfx_status cfxi_world_sort(cfxi_world *w, cfx_object *list, cfx_object *key, bool reverse,
                           cfx_error *err)
{
    const size_t n = list->as.seq.n;
    cfx_object *keys = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    cfx_object *items = cfxi_world_seq_object(w, CFXI_TYPE_LIST, list->as.seq.items, n, err);
    cfx_status status = keys && items ? CFX_OK : cfxi_base_nomem(err);
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        cfx_object *item = items->as.seq.items[i];
        cfx_object *k = key ? cfxi_world_call_with(w, key, &item, 1, err) : cfxi_world_ref(item);
        status = k ? cfxi_world_list_append(keys, k, err) : err->status;
        cfxi_world_unref(k);
    }
    if (status == CFX_OK)
        status = sort_items(w, keys->as.seq.items, items->as.seq.items, n, reverse, err);
    if (status == CFX_OK && list->as.seq.n != n)
        status = cfxi_world_throw(w, err, CFXI_ValueError, "list modified during sort");
    if (status == CFX_OK && n > 0) {
        cfx_object **swap = list->as.seq.items;
        const size_t capacity = list->as.seq.capacity;
        list->as.seq.items = items->as.seq.items;
        list->as.seq.capacity = items->as.seq.capacity;
        items->as.seq.items = swap;
        items->as.seq.capacity = capacity;
    }
    cfxi_world_unref(items);
    cfxi_world_unref(keys);
    return status;
}
