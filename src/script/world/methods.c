/* methods.c - methods of lists, tuples, dicts and sets. */
#include "world_impl.h"

/* ---- methods of lists and tuples ----------------------------------------------------------- */

/* The first `n` arguments, all by position. */
static cfx_status plain_args(cfxi_world *w, const cfx_call_args *a, const char *name, size_t least,
                             size_t most, cfx_error *err)
{
    if (a->n_named == 0 && a->n >= least && a->n <= most)
        return CFX_OK;
    return cfxi_world_throw(w, err, CFXI_TypeError, "%s() takes %zu to %zu arguments (%zu given)",
                            name, least, most, a->n);
}

CFXI_BUILTIN(list_append)
{
    if (plain_args(w, a, "append", 1, 1, err) != CFX_OK)
        return NULL;
    return cfxi_world_done(w, cfxi_world_list_append(self, a->args[0], err));
}

CFXI_BUILTIN(list_extend)
{
    if (plain_args(w, a, "extend", 1, 1, err) != CFX_OK)
        return NULL;
    cfx_object *same = cfxi_world_binary(w, CFX_SIGN_ADD, self, a->args[0], true, err);
    cfxi_world_unref(same);
    return same ? cfxi_world_none(w) : NULL;
}

CFXI_BUILTIN(list_insert)
{
    int64_t at;
    if (plain_args(w, a, "insert", 2, 2, err) != CFX_OK ||
        cfxi_world_index_of(w, a->args[0], "the index", &at, err) != CFX_OK)
        return NULL;
    const int64_t n = (int64_t)self->as.seq.n;
    at = at < 0 ? (at + n < 0 ? 0 : at + n) : at > n ? n : at;
    cfx_object *one = cfxi_world_seq_object(w, CFXI_TYPE_LIST, &a->args[1], 1, err);
    cfx_status status = one ? cfxi_world_splice(w, self, (size_t)at, (size_t)at, one, err)
                            : err->status;
    cfxi_world_unref(one);
    return cfxi_world_done(w, status);
}

CFXI_BUILTIN(list_pop)
{
    int64_t at = -1;
    const int64_t n = (int64_t)self->as.seq.n;
    if (plain_args(w, a, "pop", 0, 1, err) != CFX_OK ||
        (a->n && cfxi_world_index_of(w, a->args[0], "the index", &at, err) != CFX_OK))
        return NULL;
    at = at < 0 ? at + n : at;
    if (at < 0 || at >= n)
        return cfxi_world_raise(w, err, CFXI_IndexError, n ? "pop index out of range"
                                                     : "pop from empty list");
    cfx_object *item = self->as.seq.items[at];
    memmove(self->as.seq.items + at, self->as.seq.items + at + 1,
            (size_t)(n - at - 1) * sizeof item);
    self->as.seq.n--;
    return item;
}

/* -1 if it is nowhere, -2 if comparing failed. */
static int64_t find_item(cfxi_world *w, cfx_object *self, cfx_object *o, cfx_error *err)
{
    for (size_t i = 0; i < self->as.seq.n; i++) {
        const int same = self->as.seq.items[i] == o
                             ? 1 : cfxi_world_equal(w, self->as.seq.items[i], o, err);
        if (same)
            return same < 0 ? -2 : (int64_t)i;
    }
    return -1;
}

CFXI_BUILTIN(list_remove)
{
    if (plain_args(w, a, "remove", 1, 1, err) != CFX_OK)
        return NULL;
    const int64_t at = find_item(w, self, a->args[0], err);
    if (at == -1)
        return cfxi_world_raise(w, err, CFXI_ValueError, "list.remove(x): x not in list");
    if (at < 0)
        return NULL;
    return cfxi_world_done(w, cfxi_world_splice(w, self, (size_t)at, (size_t)at + 1, NULL, err));
}

CFXI_BUILTIN(seq_index)
{
    if (plain_args(w, a, "index", 1, 1, err) != CFX_OK)
        return NULL;
    const int64_t at = find_item(w, self, a->args[0], err);
    if (at == -1)
        return cfxi_world_raise(w, err, CFXI_ValueError, "%s.index(x): x not in %s",
                          cfxi_world_type_name(self), cfxi_world_type_name(self));
    return at < 0 ? NULL : cfxi_world_int_object(w, at, err);
}

CFXI_BUILTIN(seq_count)
{
    int64_t n = 0;
    if (plain_args(w, a, "count", 1, 1, err) != CFX_OK)
        return NULL;
    for (size_t i = 0; i < self->as.seq.n; i++) {
        const int same = cfxi_world_equal(w, self->as.seq.items[i], a->args[0], err);
        if (same < 0)
            return NULL;
        n += same;
    }
    return cfxi_world_int_object(w, n, err);
}

CFXI_BUILTIN(list_reverse)
{
    cfx_object **items = self->as.seq.items;
    if (plain_args(w, a, "reverse", 0, 0, err) != CFX_OK)
        return NULL;
    for (size_t i = 0, j = self->as.seq.n; i + 1 < j--; i++) {
        cfx_object *swap = items[i];
        items[i] = items[j];
        items[j] = swap;
    }
    return cfxi_world_none(w);
}

CFXI_BUILTIN(list_sort)
{
    static const char *const names[] = {"*key", "*reverse"};
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "sort", names, 0, 2, in, err) != CFX_OK)
        return NULL;
    const int reverse = in[1] ? cfxi_world_truth_of(w, in[1], err) : 0;
    if (reverse < 0)
        return NULL;
    cfx_object *key = in[0] && in[0]->type != CFXI_TYPE_NONE ? in[0] : NULL;
    return cfxi_world_done(w, cfxi_world_sort(w, self, key, reverse, err));
}

CFXI_BUILTIN(list_copy)
{
    if (plain_args(w, a, "copy", 0, 0, err) != CFX_OK)
        return NULL;
    return cfxi_world_seq_object(w, (cfxi_type)self->type, self->as.seq.items, self->as.seq.n, err);
}

CFXI_BUILTIN(list_clear)
{
    if (plain_args(w, a, "clear", 0, 0, err) != CFX_OK)
        return NULL;
    return cfxi_world_done(w, cfxi_world_splice(w, self, 0, self->as.seq.n, NULL, err));
}

/* ---- methods of dicts ---------------------------------------------------------------------- */

CFXI_BUILTIN(dict_get)
{
    cfx_object *value;
    if (plain_args(w, a, "get", 1, 2, err) != CFX_OK ||
        cfxi_world_dict_find(self, a->args[0], &value, err) != CFX_OK)
        return NULL;
    return cfxi_world_ref(value ? value : a->n > 1 ? a->args[1] : w->none);
}

/* Of 'k'eys, 'v'alues, or 'i'tems, as they are now. */
static cfx_object *dict_list(cfxi_world *w, cfx_object *d, char what, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    cfx_object *list = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    for (size_t at = 0; list && cfxi_world_dict_next(d, &at, &key, &value);) {
        cfx_object *both[] = {key, value};
        cfx_object *item = what == 'i' ? cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, both, 2, err)
                                       : cfxi_world_ref(what == 'k' ? key : value);
        if (!item || cfxi_world_list_append(list, item, err) != CFX_OK)
            cfxi_world_clear(&list);
        cfxi_world_unref(item);
    }
    return list;
}

cfx_status cfxi_world_refresh(cfx_object *o, cfx_error *err)
{
    cfx_object *d = o->type == CFXI_TYPE_LIST ? o->as.seq.of : NULL;
    if (!d || o->version == d->version)
        return CFX_OK;
    cfx_object *now = dict_list(o->world, d, o->as.seq.part, err);
    if (!now)
        return err->status;
    const cfx_object old = *o;
    o->as.seq.items = now->as.seq.items;
    o->as.seq.n = now->as.seq.n;
    o->as.seq.capacity = now->as.seq.capacity;
    now->as.seq.items = old.as.seq.items;
    now->as.seq.n = old.as.seq.n;
    now->as.seq.capacity = old.as.seq.capacity;
    o->version = d->version;
    cfxi_world_unref(now);
    return CFX_OK;
}

cfx_status cfxi_world_check_known(cfx_object *o, cfx_error *err)
{
    const cfxi_world *w = o->world;
    if (!w->evaluator || !cfx_evaluator_is_value(w->evaluator, o))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "this reads a %s whose contents depend on data "
                         "by way of another object; use the list or dict itself, or copy it "
                         "before (list(x), dict(x))", cfxi_world_type_name(o));
}

/* A list that is filled anew when it is looked at after the dict has changed. */
static cfx_object *dict_view(cfxi_world *w, cfx_object *d, char part, cfx_error *err)
{
    cfx_object *list = dict_list(w, d, part, err);
    if (list) {
        list->as.seq.of = cfxi_world_ref(d);
        list->as.seq.part = part;
        list->version = d->version;
    }
    return list;
}

CFXI_BUILTIN(dict_keys) { return dict_view(w, self, 'k', err); }
CFXI_BUILTIN(dict_values) { return dict_view(w, self, 'v', err); }
CFXI_BUILTIN(dict_items) { return dict_view(w, self, 'i', err); }

/* From a dict, or from pairs. */
static cfx_status update_from(cfxi_world *w, cfx_object *d, cfx_object *from, cfx_error *err)
{
    if (from->type == CFXI_TYPE_DICT)
        return cfxi_world_dict_update(d, from, err);
    cfx_object *pairs = cfxi_world_collect(w, CFXI_TYPE_LIST, from, err);
    cfx_status status = pairs ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < pairs->as.seq.n; i++) {
        cfx_object *pair = cfxi_world_collect(w, CFXI_TYPE_TUPLE, pairs->as.seq.items[i], err);
        if (!pair)
            status = err->status;
        else if (pair->as.seq.n != 2)
            status = cfxi_world_throw(w, err, CFXI_ValueError,
                                      "dictionary update sequence element #%zu "
                                "has length %zu; 2 is required", i, pair->as.seq.n);
        else
            status = cfxi_world_dict_set(d, pair->as.seq.items[0], pair->as.seq.items[1], err);
        cfxi_world_unref(pair);
    }
    cfxi_world_unref(pairs);
    return status;
}

CFXI_BUILTIN(dict_update)
{
    const size_t plain = a->n - a->n_named;
    cfx_status status = plain > 1 ? cfxi_world_throw(w, err, CFXI_TypeError,
                                                     "update expected at most 1 "
                                               "argument, got %zu", plain) : CFX_OK;
    if (plain == 1)
        status = update_from(w, self, a->args[0], err);
    for (size_t i = 0; status == CFX_OK && i < a->n_named; i++)
        status = cfxi_world_dict_put(self, a->names[i], a->args[plain + i], err);
    return cfxi_world_done(w, status);
}

CFXI_BUILTIN(dict_pop)
{
    cfx_object *old;
    if (plain_args(w, a, "pop", 1, 2, err) != CFX_OK ||
        cfxi_world_dict_remove(self, a->args[0], &old, err) != CFX_OK)
        return NULL;
    if (old)
        return old;
    return a->n > 1 ? cfxi_world_ref(a->args[1])
                    : (cfxi_world_throw_key(w, a->args[0], err), (cfx_object *)NULL);
}

CFXI_BUILTIN(dict_setdefault)
{
    cfx_object *value;
    if (plain_args(w, a, "setdefault", 1, 2, err) != CFX_OK ||
        cfxi_world_dict_find(self, a->args[0], &value, err) != CFX_OK)
        return NULL;
    if (value)
        return cfxi_world_ref(value);
    value = a->n > 1 ? a->args[1] : w->none;
    return cfxi_world_dict_set(self, a->args[0], value, err) == CFX_OK ? cfxi_world_ref(value)
                                                                       : NULL;
}

CFXI_BUILTIN(dict_copy)
{
    cfx_object *made = cfxi_world_dict_object(w, (cfxi_type)self->type, err);
    if (made && cfxi_world_dict_update(made, self, err) != CFX_OK)
        cfxi_world_clear(&made);
    return made;
}

CFXI_BUILTIN(dict_clear)
{
    cfxi_world_dict_clear(self);
    return cfxi_world_none(w);
}

/* ---- methods of sets ----------------------------------------------------------------------- */

CFXI_BUILTIN(set_add)
{
    if (plain_args(w, a, "add", 1, 1, err) != CFX_OK)
        return NULL;
    return cfxi_world_done(w, cfxi_world_dict_set(self, a->args[0], NULL, err));
}

CFXI_BUILTIN(set_discard)
{
    if (plain_args(w, a, "discard", 1, 1, err) != CFX_OK)
        return NULL;
    return cfxi_world_done(w, cfxi_world_dict_remove(self, a->args[0], NULL, err));
}

CFXI_BUILTIN(set_remove)
{
    cfx_object *old;
    if (plain_args(w, a, "remove", 1, 1, err) != CFX_OK ||
        cfxi_world_dict_remove(self, a->args[0], &old, err) != CFX_OK)
        return NULL;
    cfxi_world_unref(old);
    return cfxi_world_done(w, old ? CFX_OK : cfxi_world_throw_key(w, a->args[0], err));
}

CFXI_BUILTIN(set_update)
{
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < a->n; i++) {
        cfx_object *more = cfxi_world_collect(w, CFXI_TYPE_SET, a->args[i], err);
        status = more ? cfxi_world_dict_update(self, more, err) : err->status;
        cfxi_world_unref(more);
    }
    return cfxi_world_done(w, status);
}

static cfx_object *set_with(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                            cfx_script_sign sign, cfx_error *err)
{
    cfx_object *made = cfxi_world_ref(self);
    for (size_t i = 0; made && i < a->n; i++) {
        cfx_object *other = cfxi_world_collect(w, CFXI_TYPE_SET, a->args[i], err);
        cfx_object *next = other ? cfxi_world_binary(w, sign, made, other, false, err) : NULL;
        cfxi_world_unref(other);
        cfxi_world_unref(made);
        made = next;
    }
    return made;
}

CFXI_BUILTIN(set_union) { return set_with(w, self, a, CFX_SIGN_OR, err); }
CFXI_BUILTIN(set_intersection) { return set_with(w, self, a, CFX_SIGN_AND, err); }
CFXI_BUILTIN(set_difference) { return set_with(w, self, a, CFX_SIGN_SUB, err); }

/* ---- slices -------------------------------------------------------------------------------- */

CFXI_BUILTIN(slice_indices)
{
    int64_t n;
    int64_t start;
    int64_t stop;
    int64_t step;
    if (plain_args(w, a, "indices", 1, 1, err) != CFX_OK ||
        cfxi_world_index_of(w, a->args[0], "the length", &n, err) != CFX_OK)
        return NULL;
    if (n < 0)
        return cfxi_world_raise(w, err, CFXI_ValueError, "length should not be negative");
    if (cfxi_world_slice_ends(w, self, n, &start, &stop, &step, err) != CFX_OK)
        return NULL;
    cfx_object *ends[3] = {cfxi_world_int_object(w, start, err),
                           cfxi_world_int_object(w, stop, err),
                           cfxi_world_int_object(w, step, err)};
    return cfxi_world_seq_take(w, CFXI_TYPE_TUPLE, ends, 3, err);
}

/* ---- the tables ---------------------------------------------------------------------------- */

static const cfxi_builtin list_methods[] = {
    {"append", list_append}, {"extend", list_extend}, {"insert", list_insert}, {"pop", list_pop},
    {"remove", list_remove}, {"reverse", list_reverse}, {"sort", list_sort}, {"copy", list_copy},
    {"clear", list_clear}, {"index", seq_index}, {"count", seq_count}, {NULL, NULL},
};
static const cfxi_builtin *const tuple_methods = list_methods + 9;
static const cfxi_builtin dict_methods[] = {
    {"get", dict_get}, {"keys", dict_keys}, {"values", dict_values}, {"items", dict_items},
    {"update", dict_update}, {"pop", dict_pop}, {"setdefault", dict_setdefault},
    {"copy", dict_copy}, {"clear", dict_clear}, {NULL, NULL},
};
static const cfxi_builtin set_methods[] = {
    {"add", set_add}, {"discard", set_discard}, {"remove", set_remove}, {"update", set_update},
    {"clear", dict_clear}, {"union", set_union}, {"intersection", set_intersection},
    {"difference", set_difference}, {"copy", dict_copy}, {NULL, NULL},
};
static const cfxi_builtin *const frozenset_methods = set_methods + 5;
static const cfxi_builtin slice_methods[] = {{"indices", slice_indices}, {NULL, NULL}};

const cfxi_builtin *cfxi_world_row_find(const cfxi_builtin *rows, const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const cfxi_builtin *cfxi_world_sequence_method(cfxi_type type, const char *name)
{
    switch (type) {
    case CFXI_TYPE_LIST: return cfxi_world_row_find(list_methods, name);
    case CFXI_TYPE_TUPLE: return cfxi_world_row_find(tuple_methods, name);
    case CFXI_TYPE_DICT: return cfxi_world_row_find(dict_methods, name);
    case CFXI_TYPE_SET: return cfxi_world_row_find(set_methods, name);
    case CFXI_TYPE_FROZENSET: return cfxi_world_row_find(frozenset_methods, name);
    case CFXI_TYPE_SLICE: return cfxi_world_row_find(slice_methods, name);
    default: return NULL;
    }
}
