/* sequence.c - items, slices and lengths; methods of lists, tuples, dicts and sets. */
#include "world_impl.h"

/* ---- lengths and slices -------------------------------------------------------------------- */

cfx_status cfxi_w_length(cfxi_world *w, cfx_object *o, int64_t *n, cfx_error *err)
{
    bool found = false;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_STR: *n = (int64_t)cfxi_w_text_length(o); return CFX_OK;
    case CFXI_TYPE_BYTES: *n = (int64_t)o->as.text.size; return CFX_OK;
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST: *n = (int64_t)o->as.seq.n; return CFX_OK;
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: *n = (int64_t)o->as.dict.n; return CFX_OK;
    case CFXI_TYPE_RANGE: *n = o->as.range.n; return CFX_OK;
    default: break;
    }
    cfx_object *made = o->cls ? cfxi_w_special(w, o, "__len__", NULL, 0, &found, err) : NULL;
    if (found) {
        const bool good = made && cfxi_w_is_whole(made);
        *n = good ? cfxi_w_whole(made) : 0;
        if (made && !good)
            cfxi_w_throw(w, err, CFXI_TypeError, "__len__ must return an integer");
        cfxi_w_unref(made);
        return good ? CFX_OK : err->status;
    }
    *n = o->type == CFXI_TYPE_MODULE ? cfxi_w_layer_length(o) : -1;
    if (*n >= 0)
        return CFX_OK;
    return cfxi_w_throw(w, err, CFXI_TypeError, "object of type '%s' has no len()",
                      cfxi_w_type_name(w, o));
}

static cfx_status bound(cfxi_world *w, cfx_object *o, int64_t n, int64_t low, int64_t high,
                        int64_t usual, int64_t *out, cfx_error *err)
{
    *out = usual;
    if (o->type == CFXI_TYPE_NONE)
        return CFX_OK;
    CFX_TRY(cfxi_w_index_of(w, o, "slice indices", out, err));
    if (*out < 0)
        *out = *out + n < low ? low : *out + n;
    else if (*out > high)
        *out = high;
    return CFX_OK;
}

cfx_status cfxi_w_slice_of(cfxi_world *w, cfx_object *slice, int64_t n, int64_t *start,
                           int64_t *step,
                         int64_t *count, cfx_error *err)
{
    cfx_object *const *part = slice->as.seq.items;
    int64_t stop;
    *step = 1;
    if (part[2]->type != CFXI_TYPE_NONE)
        CFX_TRY(cfxi_w_index_of(w, part[2], "slice indices", step, err));
    if (*step == 0)
        return cfxi_w_throw(w, err, CFXI_ValueError, "slice step cannot be zero");
    const bool back = *step < 0;
    const int64_t low = back ? -1 : 0;
    const int64_t high = back ? n - 1 : n;
    CFX_TRY(bound(w, part[0], n, low, high, back ? high : low, start, err));
    CFX_TRY(bound(w, part[1], n, low, high, back ? low : high, &stop, err));
    const int64_t span = back ? *start - stop : stop - *start;
    const uint64_t size = back ? 0 - (uint64_t)*step : (uint64_t)*step;
    *count = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / size) + 1;
    return CFX_OK;
}

/* An index from the end if negative. */
static cfx_status place_of(cfxi_world *w, cfx_object *o, cfx_object *key, int64_t n, int64_t *i,
                           cfx_error *err)
{
    if (!cfxi_w_is_whole(key) && !key->cls)
        return cfxi_w_throw(w, err, CFXI_TypeError, "%s indices must be integers or slices, not %s",
                          o->type == CFXI_TYPE_TUPLE ? "tuple" : o->type == CFXI_TYPE_LIST
                          ? "list" : o->type == CFXI_TYPE_STR ? "string" : "range",
                          cfxi_w_type_name(w, key));
    CFX_TRY(cfxi_w_index_of(w, key, "indices", i, err));
    if (*i < 0)
        *i += n;
    if (*i < 0 || *i >= n)
        return cfxi_w_throw(w, err, CFXI_IndexError, "%s index out of range",
                          o->type == CFXI_TYPE_STR ? "string" : cfxi_w_type_name(w, o));
    return CFX_OK;
}

/* ---- reading items ------------------------------------------------------------------------- */

static cfx_object *range_at(cfxi_world *w, const cfx_object *r, int64_t i, cfx_error *err)
{
    return cfxi_w_int_object(w, r->as.range.start + i * r->as.range.step, err);
}

static cfx_object *sliced(cfxi_world *w, cfx_object *o, cfx_object *slice, int64_t n,
                          cfx_error *err)
{
    int64_t start;
    int64_t step;
    int64_t count;
    if (cfxi_w_slice_of(w, slice, n, &start, &step, &count, err) != CFX_OK)
        return NULL;
    if (o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_BYTES)
        return cfxi_w_text_slice(w, o, start, step, count, err);
    if (o->type == CFXI_TYPE_RANGE) {
        const int64_t first = o->as.range.start + start * o->as.range.step;
        cfx_object *r = cfxi_w_range_object(w, 0, 0, 1, err);
        if (r) {
            r->as.range.start = first;
            r->as.range.step = o->as.range.step * step;
            r->as.range.n = count;
        }
        return r;
    }
    cfx_object *made = cfxi_w_seq_object(w, (cfxi_type)o->type, NULL, 0, err);
    for (int64_t i = 0; made && i < count; i++)
        if (cfxi_w_list_append(made, o->as.seq.items[start + i * step], err) != CFX_OK)
            cfxi_w_clear(&made);
    return made;
}

static cfx_object *dict_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    cfx_object *value;
    bool found = false;
    if (cfxi_w_dict_find(o, key, &value, err) != CFX_OK)
        return NULL;
    if (value)
        return cfxi_w_ref(value);
    if (o->cls) {
        cfx_object *made = cfxi_w_special(w, o, "__missing__", &key, 1, &found, err);
        if (found)
            return made;
    }
    if (o->attrs && cfxi_w_dict_get(o->attrs, "default_factory")) {
        cfx_object *made = cfxi_w_call_with(w, cfxi_w_dict_get(o->attrs, "default_factory"), NULL,
                                            0,
                                          err);
        if (made && cfxi_w_dict_set(o, key, made, err) != CFX_OK)
            cfxi_w_clear(&made);
        return made;
    }
    cfxi_w_throw_key(w, key, err);
    return NULL;
}

cfx_object *cfxi_w_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    int64_t n;
    int64_t i;
    bool found = false;
    if (o->cls && o->type != CFXI_TYPE_TENSOR) {
        cfx_object *made = cfxi_w_special(w, o, "__getitem__", &key, 1, &found, err);
        if (found)
            return made;
    }
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_VALUE:
    case CFXI_TYPE_ATTRIBUTE:
    case CFXI_TYPE_TENSOR: return cfxi_w_perform_on(w, "operator.getitem", o, key, err);
    case CFXI_TYPE_DICT:
        return cfxi_w_has_value(key, false) ? cfxi_w_perform_on(w, "operator.getitem", o, key, err)
                                            : dict_item(w, o, key, err);
    case CFXI_TYPE_MODULE: return cfxi_w_layer_item(w, o, key, err);
    case CFXI_TYPE_CLASS:      /* list[int], Optional[Tensor], nn.Module[...]: a type, all alike */
    case CFXI_TYPE_NAMESPACE: return cfxi_w_ref(o);
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_RANGE: break;
    default:
        return cfxi_w_raise(w, err, CFXI_TypeError, "'%s' object is not subscriptable",
                          cfxi_w_type_name(w, o));
    }
    if (cfxi_w_has_value(key, false))
        return cfxi_w_perform_on(w, "operator.getitem", o, key, err);
    if (cfxi_w_length(w, o, &n, err) != CFX_OK)
        return NULL;
    if (key->type == CFXI_TYPE_SLICE)
        return sliced(w, o, key, n, err);
    if (place_of(w, o, key, n, &i, err) != CFX_OK)
        return NULL;
    if (o->type == CFXI_TYPE_STR)
        return cfxi_w_text_at(w, o, i, err);
    if (o->type == CFXI_TYPE_BYTES)
        return cfxi_w_int_object(w, (unsigned char)o->as.text.data[i], err);
    return o->type == CFXI_TYPE_RANGE ? range_at(w, o, i, err) : cfxi_w_ref(o->as.seq.items[i]);
}

/* ---- writing items ------------------------------------------------------------------------- */

/* items[from:to] become those of `with` (may be NULL: none). */
static cfx_status splice(cfxi_world *w, cfx_object *list, size_t from, size_t to, cfx_object *with,
                         cfx_error *err)
{
    cfx_object *made = cfxi_w_seq_object(w, CFXI_TYPE_LIST, list->as.seq.items, from, err);
    cfx_status status = made ? CFX_OK : err->status;
    for (size_t i = 0; with && status == CFX_OK && i < with->as.seq.n; i++)
        status = cfxi_w_list_append(made, with->as.seq.items[i], err);
    for (size_t i = to; status == CFX_OK && i < list->as.seq.n; i++)
        status = cfxi_w_list_append(made, list->as.seq.items[i], err);
    if (status == CFX_OK) {
        cfx_object swap;
        swap.as.seq = list->as.seq;
        list->as.seq = made->as.seq;
        made->as.seq = swap.as.seq;
    }
    cfxi_w_unref(made);
    return status;
}

static cfx_status set_slice(cfxi_world *w, cfx_object *list, cfx_object *slice, cfx_object *v,
                            cfx_error *err)
{
    int64_t start;
    int64_t step;
    int64_t count;
    CFX_TRY(cfxi_w_slice_of(w, slice, (int64_t)list->as.seq.n, &start, &step, &count, err));
    cfx_object *with = v ? cfxi_w_collect(w, CFXI_TYPE_LIST, v, err) : NULL;
    if (v && !with)
        return err->status;
    cfx_status status = CFX_OK;
    if (step == 1) {
        status = splice(w, list, (size_t)start, (size_t)(start + count), with, err);
    } else if (v && (int64_t)with->as.seq.n != count) {
        status = cfxi_w_throw(w, err, CFXI_ValueError, "attempt to assign sequence of size %zu to "
                            "extended slice of size %lld", with->as.seq.n, (long long)count);
    } else {
        const int64_t first = step < 0 ? start + (count - 1) * step : start;
        for (int64_t i = count; i-- > 0 && status == CFX_OK;) {
            if (!v) {
                const size_t at = (size_t)(first + i * (step < 0 ? -step : step));
                status = splice(w, list, at, at + 1, NULL, err);
                continue;
            }
            cfx_object **at = &list->as.seq.items[start + i * step];
            cfx_object *old = *at;
            *at = cfxi_w_ref(with->as.seq.items[i]);
            cfxi_w_unref(old);
        }
    }
    cfxi_w_unref(with);
    return status;
}

static cfx_status set_dict(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                           cfx_error *err)
{
    cfx_object *old;
    if (v)
        return cfxi_w_dict_set(o, key, v, err);
    CFX_TRY(cfxi_w_dict_remove(o, key, &old, err));
    if (old) {
        cfxi_w_unref(old);
        return CFX_OK;
    }
    return cfxi_w_throw_key(w, key, err);
}

static cfx_status set_by_method(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                                bool *found, cfx_error *err)
{
    cfx_object *args[] = {key, v};
    cfx_object *made = cfxi_w_special(w, o, v ? "__setitem__" : "__delitem__", args, v ? 2 : 1,
                                      found,
                                    err);
    const cfx_status status = *found && !made ? err->status : CFX_OK;
    cfxi_w_unref(made);
    return status;
}

cfx_status cfxi_w_set_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                         cfx_error *err)
{
    int64_t i;
    bool found = false;
    if (o->cls && o->type != CFXI_TYPE_TENSOR) {
        cfx_status status = set_by_method(w, o, key, v, &found, err);
        if (found)
            return status;
    }
    if (o->type == CFXI_TYPE_VALUE || o->type == CFXI_TYPE_TENSOR) {
        cfx_object *args[] = {o, key, v};
        cfx_object *made = cfxi_w_perform(w, CFX_OP_CALL_FUNCTION,
                                        v ? "operator.setitem" : "operator.delitem",
                                        &(cfx_call_args){.args = args, .n = v ? 3 : 2}, err);
        cfxi_w_unref(made);
        return made ? CFX_OK : err->status;
    }
    if (o->type == CFXI_TYPE_DICT)
        return set_dict(w, o, key, v, err);
    if (o->type == CFXI_TYPE_MODULE && v) {
        cfx_buffer text;
        cfx_buffer_init(&text, w->allocator);
        if (key->type == CFXI_TYPE_INT && key->as.i < 0)
            return cfxi_w_throw(w, err, CFXI_IndexError, "index %lld is out of range",
                              (long long)key->as.i);
        cfx_status status = cfxi_w_show(w, key, &text, err);
        if (status == CFX_OK)
            status = cfxi_w_layer_set(w, o, text.data, v, err);
        cfx_buffer_free(&text);
        return status;
    }
    if (o->type != CFXI_TYPE_LIST)
        return cfxi_w_throw(w, err, CFXI_TypeError, "'%s' object does not support item %s",
                          cfxi_w_type_name(w, o), v ? "assignment" : "deletion");
    if (key->type == CFXI_TYPE_SLICE)
        return set_slice(w, o, key, v, err);
    CFX_TRY(place_of(w, o, key, (int64_t)o->as.seq.n, &i, err));
    if (!v)
        return splice(w, o, (size_t)i, (size_t)i + 1, NULL, err);
    cfx_object *old = o->as.seq.items[i];
    o->as.seq.items[i] = cfxi_w_ref(v);
    cfxi_w_unref(old);
    return CFX_OK;
}

/* ---- joining, repeating, searching --------------------------------------------------------- */

cfx_object *cfxi_w_concat(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    if (a->type == CFXI_TYPE_STR || a->type == CFXI_TYPE_BYTES) {
        cfx_buffer text;
        cfx_buffer_init(&text, w->allocator);
        if (cfx_buffer_append(&text, a->as.text.data, a->as.text.size) != CFX_OK ||
            cfx_buffer_append(&text, b->as.text.data, b->as.text.size) != CFX_OK)
            cfxi_nomem(err);
        else {
            cfx_object *made = cfxi_w_text_object(w, (cfxi_type)a->type, text.data, text.size, err);
            cfx_buffer_free(&text);
            return made;
        }
        cfx_buffer_free(&text);
        return NULL;
    }
    cfx_object *made = cfxi_w_seq_object(w, (cfxi_type)a->type, a->as.seq.items, a->as.seq.n, err);
    for (size_t i = 0; made && i < b->as.seq.n; i++)
        if (cfxi_w_list_append(made, b->as.seq.items[i], err) != CFX_OK)
            cfxi_w_clear(&made);
    return made;
}

cfx_object *cfxi_w_repeat(cfxi_world *w, cfx_object *o, int64_t times, cfx_error *err)
{
    const bool text = o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_BYTES;
    const size_t n = text ? o->as.text.size : o->as.seq.n;
    size_t total = 0;
    times = times < 0 || n == 0 ? 0 : times;
    if (!cfxi_mul_size(n, (size_t)times, 0, &total) || total > w->most_bytes / sizeof o)
        return cfxi_w_raise(w, err, CFXI_MemoryError, "a sequence of %zu items %lld times", n,
                          (long long)times);
    if (!text) {
        cfx_object *made = cfxi_w_seq_object(w, (cfxi_type)o->type, NULL, 0, err);
        for (size_t i = 0; made && i < total; i++)
            if (cfxi_w_list_append(made, o->as.seq.items[i % n], err) != CFX_OK)
                cfxi_w_clear(&made);
        return made;
    }
    cfx_buffer all;
    cfx_buffer_init(&all, w->allocator);
    cfx_status status = cfx_buffer_reserve(&all, total);
    for (int64_t i = 0; status == CFX_OK && i < times; i++)
        status = cfx_buffer_append(&all, o->as.text.data, n);
    cfx_object *made = status == CFX_OK ? cfxi_w_text_object(w, (cfxi_type)o->type, all.data,
                                                           all.size, err) : NULL;
    if (status != CFX_OK)
        cfxi_nomem(err);
    cfx_buffer_free(&all);
    return made;
}

static bool has_text(const cfx_object *in, const cfx_object *part)
{
    const size_t n = part->as.text.size;
    for (size_t i = 0; i + n <= in->as.text.size; i++)
        if (memcmp(in->as.text.data + i, part->as.text.data, n) == 0)
            return true;
    return false;
}

int cfxi_w_contains(cfxi_world *w, cfx_object *in, cfx_object *o, cfx_error *err)
{
    cfx_object *there = NULL;
    bool found = false;
    cfx_object *made = in->cls ? cfxi_w_special(w, in, "__contains__", &o, 1, &found, err) : NULL;
    if (found) {
        const int t = made ? cfxi_w_truth_of(w, made, err) : -1;
        cfxi_w_unref(made);
        return t;
    }
    if (in->type == CFXI_TYPE_DICT || in->type == CFXI_TYPE_SET ||
        in->type == CFXI_TYPE_FROZENSET)
        return cfxi_w_dict_find(in, o, &there, err) == CFX_OK ? there != NULL : -1;
    if (in->type == CFXI_TYPE_STR) {
        if (o->type == CFXI_TYPE_STR)
            return has_text(in, o);
        cfxi_w_raise(w, err, CFXI_TypeError,
                     "'in <string>' requires string as left operand, not %s",
                   cfxi_w_type_name(w, o));
        return -1;
    }
    if (in->type == CFXI_TYPE_MODULE && in->as.module->nn == CFX_NN_ModuleDict)
        return o->type == CFXI_TYPE_STR && cfx_child(in->as.module, o->as.text.data) != NULL;
    cfx_object *all = cfxi_w_iterate(w, in, err);
    int answer = all ? 0 : -1;
    err->status = all ? CFX_OK : err->status;
    for (cfx_object *x; answer == 0 && (x = cfxi_w_next(w, all, err)) != NULL; cfxi_w_unref(x))
        answer = x == o ? 1 : cfxi_w_equal(w, x, o, err);
    if (err->status != CFX_OK)
        answer = -1;
    cfxi_w_unref(all);
    return answer;
}

/* ---- methods of lists and tuples ----------------------------------------------------------- */

#define METHOD(name)                                                                               \
    static cfx_object *name(cfxi_world *w, cfx_object *self, const cfx_call_args *a, cfx_error *err)

/* The first `n` arguments, all by position. */
static cfx_status plain_args(cfxi_world *w, const cfx_call_args *a, const char *name, size_t least,
                             size_t most, cfx_error *err)
{
    if (a->n_named == 0 && a->n >= least && a->n <= most)
        return CFX_OK;
    return cfxi_w_throw(w, err, CFXI_TypeError, "%s() takes %zu to %zu arguments (%zu given)", name,
                      least, most, a->n);
}

static cfx_object *done(cfxi_world *w, cfx_status status)
{
    return status == CFX_OK ? cfxi_w_none(w) : NULL;
}

METHOD(list_append)
{
    if (plain_args(w, a, "append", 1, 1, err) != CFX_OK)
        return NULL;
    return done(w, cfxi_w_list_append(self, a->args[0], err));
}

METHOD(list_extend)
{
    if (plain_args(w, a, "extend", 1, 1, err) != CFX_OK)
        return NULL;
    cfx_object *same = cfxi_w_binary(w, CFX_SIGN_ADD, self, a->args[0], true, err);
    cfxi_w_unref(same);
    return same ? cfxi_w_none(w) : NULL;
}

METHOD(list_insert)
{
    int64_t at;
    if (plain_args(w, a, "insert", 2, 2, err) != CFX_OK ||
        cfxi_w_index_of(w, a->args[0], "the index", &at, err) != CFX_OK)
        return NULL;
    const int64_t n = (int64_t)self->as.seq.n;
    at = at < 0 ? (at + n < 0 ? 0 : at + n) : at > n ? n : at;
    cfx_object *one = cfxi_w_seq_object(w, CFXI_TYPE_LIST, &a->args[1], 1, err);
    cfx_status status = one ? splice(w, self, (size_t)at, (size_t)at, one, err) : err->status;
    cfxi_w_unref(one);
    return done(w, status);
}

METHOD(list_pop)
{
    int64_t at = -1;
    const int64_t n = (int64_t)self->as.seq.n;
    if (plain_args(w, a, "pop", 0, 1, err) != CFX_OK ||
        (a->n && cfxi_w_index_of(w, a->args[0], "the index", &at, err) != CFX_OK))
        return NULL;
    at = at < 0 ? at + n : at;
    if (at < 0 || at >= n)
        return cfxi_w_raise(w, err, CFXI_IndexError, n ? "pop index out of range"
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
                             ? 1 : cfxi_w_equal(w, self->as.seq.items[i], o, err);
        if (same)
            return same < 0 ? -2 : (int64_t)i;
    }
    return -1;
}

METHOD(list_remove)
{
    if (plain_args(w, a, "remove", 1, 1, err) != CFX_OK)
        return NULL;
    const int64_t at = find_item(w, self, a->args[0], err);
    if (at == -1)
        return cfxi_w_raise(w, err, CFXI_ValueError, "list.remove(x): x not in list");
    return at < 0 ? NULL : done(w, splice(w, self, (size_t)at, (size_t)at + 1, NULL, err));
}

METHOD(seq_index)
{
    if (plain_args(w, a, "index", 1, 1, err) != CFX_OK)
        return NULL;
    const int64_t at = find_item(w, self, a->args[0], err);
    if (at == -1)
        return cfxi_w_raise(w, err, CFXI_ValueError, "%s.index(x): x not in %s",
                          cfxi_w_type_name(w, self), cfxi_w_type_name(w, self));
    return at < 0 ? NULL : cfxi_w_int_object(w, at, err);
}

METHOD(seq_count)
{
    int64_t n = 0;
    if (plain_args(w, a, "count", 1, 1, err) != CFX_OK)
        return NULL;
    for (size_t i = 0; i < self->as.seq.n; i++) {
        const int same = cfxi_w_equal(w, self->as.seq.items[i], a->args[0], err);
        if (same < 0)
            return NULL;
        n += same;
    }
    return cfxi_w_int_object(w, n, err);
}

METHOD(list_reverse)
{
    cfx_object **items = self->as.seq.items;
    if (plain_args(w, a, "reverse", 0, 0, err) != CFX_OK)
        return NULL;
    for (size_t i = 0, j = self->as.seq.n; i + 1 < j--; i++) {
        cfx_object *swap = items[i];
        items[i] = items[j];
        items[j] = swap;
    }
    return cfxi_w_none(w);
}

METHOD(list_sort)
{
    static const char *const names[] = {"*key", "*reverse"};
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "sort", names, 0, 2, in, err) != CFX_OK)
        return NULL;
    const int reverse = in[1] ? cfxi_w_truth_of(w, in[1], err) : 0;
    if (reverse < 0)
        return NULL;
    cfx_object *key = in[0] && in[0]->type != CFXI_TYPE_NONE ? in[0] : NULL;
    return done(w, cfxi_w_sort(w, self, key, reverse, err));
}

METHOD(list_copy)
{
    if (plain_args(w, a, "copy", 0, 0, err) != CFX_OK)
        return NULL;
    return cfxi_w_seq_object(w, (cfxi_type)self->type, self->as.seq.items, self->as.seq.n, err);
}

METHOD(list_clear)
{
    if (plain_args(w, a, "clear", 0, 0, err) != CFX_OK)
        return NULL;
    return done(w, splice(w, self, 0, self->as.seq.n, NULL, err));
}

/* ---- methods of dicts ---------------------------------------------------------------------- */

METHOD(dict_get)
{
    cfx_object *value;
    if (plain_args(w, a, "get", 1, 2, err) != CFX_OK ||
        cfxi_w_dict_find(self, a->args[0], &value, err) != CFX_OK)
        return NULL;
    return cfxi_w_ref(value ? value : a->n > 1 ? a->args[1] : w->none);
}

static cfx_object *dict_list(cfxi_world *w, cfx_object *d, cfxi_step step, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    cfx_object *list = cfxi_w_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    for (size_t at = 0; list && cfxi_w_dict_next(d, &at, &key, &value);) {
        cfx_object *both[] = {key, value};
        cfx_object *item = step == CFXI_STEP_ITEMS ? cfxi_w_seq_object(w, CFXI_TYPE_TUPLE, both, 2,
                                                                     err)
                           : cfxi_w_ref(step == CFXI_STEP_KEYS ? key : value);
        if (!item || cfxi_w_list_append(list, item, err) != CFX_OK)
            cfxi_w_clear(&list);
        cfxi_w_unref(item);
    }
    return list;
}

/* Views are lists as they are now: a program that changes a dict while it looks at a view of it
 * would see the difference. */
METHOD(dict_keys)
{
    (void)a;
    return dict_list(w, self, CFXI_STEP_KEYS, err);
}

METHOD(dict_values)
{
    (void)a;
    return dict_list(w, self, CFXI_STEP_VALUES, err);
}

METHOD(dict_items)
{
    (void)a;
    return dict_list(w, self, CFXI_STEP_ITEMS, err);
}

/* From a dict, or from pairs. */
static cfx_status update_from(cfxi_world *w, cfx_object *d, cfx_object *from, cfx_error *err)
{
    if (from->type == CFXI_TYPE_DICT)
        return cfxi_w_dict_update(d, from, err);
    cfx_object *pairs = cfxi_w_collect(w, CFXI_TYPE_LIST, from, err);
    cfx_status status = pairs ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < pairs->as.seq.n; i++) {
        cfx_object *pair = cfxi_w_collect(w, CFXI_TYPE_TUPLE, pairs->as.seq.items[i], err);
        if (!pair)
            status = err->status;
        else if (pair->as.seq.n != 2)
            status = cfxi_w_throw(w, err, CFXI_ValueError,
                                  "dictionary update sequence element #%zu "
                                "has length %zu; 2 is required", i, pair->as.seq.n);
        else
            status = cfxi_w_dict_set(d, pair->as.seq.items[0], pair->as.seq.items[1], err);
        cfxi_w_unref(pair);
    }
    cfxi_w_unref(pairs);
    return status;
}

METHOD(dict_update)
{
    const size_t plain = a->n - a->n_named;
    cfx_status status = plain > 1 ? cfxi_w_throw(w, err, CFXI_TypeError,
                                                 "update expected at most 1 "
                                               "argument, got %zu", plain) : CFX_OK;
    if (plain == 1)
        status = update_from(w, self, a->args[0], err);
    for (size_t i = 0; status == CFX_OK && i < a->n_named; i++)
        status = cfxi_w_dict_put(self, a->names[i], a->args[plain + i], err);
    return done(w, status);
}

METHOD(dict_pop)
{
    cfx_object *old;
    if (plain_args(w, a, "pop", 1, 2, err) != CFX_OK ||
        cfxi_w_dict_remove(self, a->args[0], &old, err) != CFX_OK)
        return NULL;
    if (old)
        return old;
    return a->n > 1 ? cfxi_w_ref(a->args[1])
                    : (set_dict(w, self, a->args[0], NULL, err), (cfx_object *)NULL);
}

METHOD(dict_setdefault)
{
    cfx_object *value;
    if (plain_args(w, a, "setdefault", 1, 2, err) != CFX_OK ||
        cfxi_w_dict_find(self, a->args[0], &value, err) != CFX_OK)
        return NULL;
    if (value)
        return cfxi_w_ref(value);
    value = a->n > 1 ? a->args[1] : w->none;
    return cfxi_w_dict_set(self, a->args[0], value, err) == CFX_OK ? cfxi_w_ref(value) : NULL;
}

METHOD(dict_copy)
{
    cfx_object *made = cfxi_w_dict_object(w, (cfxi_type)self->type, err);
    (void)a;
    if (made && cfxi_w_dict_update(made, self, err) != CFX_OK)
        cfxi_w_clear(&made);
    return made;
}

METHOD(dict_clear)
{
    (void)a;
    (void)err;
    cfxi_w_dict_clear(self);
    return cfxi_w_none(w);
}

/* ---- methods of sets ----------------------------------------------------------------------- */

METHOD(set_add)
{
    if (plain_args(w, a, "add", 1, 1, err) != CFX_OK)
        return NULL;
    return done(w, cfxi_w_dict_set(self, a->args[0], NULL, err));
}

METHOD(set_discard)
{
    if (plain_args(w, a, "discard", 1, 1, err) != CFX_OK)
        return NULL;
    return done(w, cfxi_w_dict_remove(self, a->args[0], NULL, err));
}

METHOD(set_remove)
{
    if (plain_args(w, a, "remove", 1, 1, err) != CFX_OK)
        return NULL;
    return done(w, set_dict(w, self, a->args[0], NULL, err));
}

METHOD(set_update)
{
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < a->n; i++) {
        cfx_object *more = cfxi_w_collect(w, CFXI_TYPE_SET, a->args[i], err);
        status = more ? cfxi_w_dict_update(self, more, err) : err->status;
        cfxi_w_unref(more);
    }
    return done(w, status);
}

static cfx_object *set_with(cfxi_world *w, cfx_object *self, const cfx_call_args *a, cfx_sign sign,
                            cfx_error *err)
{
    cfx_object *made = cfxi_w_ref(self);
    for (size_t i = 0; made && i < a->n; i++) {
        cfx_object *other = cfxi_w_collect(w, CFXI_TYPE_SET, a->args[i], err);
        cfx_object *next = other ? cfxi_w_binary(w, sign, made, other, false, err) : NULL;
        cfxi_w_unref(other);
        cfxi_w_unref(made);
        made = next;
    }
    return made;
}

METHOD(set_union) { return set_with(w, self, a, CFX_SIGN_OR, err); }
METHOD(set_intersection) { return set_with(w, self, a, CFX_SIGN_AND, err); }
METHOD(set_difference) { return set_with(w, self, a, CFX_SIGN_SUB, err); }

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
    {"union", set_union}, {"intersection", set_intersection}, {"difference", set_difference},
    {"copy", dict_copy}, {"clear", dict_clear}, {NULL, NULL},
};

const cfxi_builtin *cfxi_w_row_find(const cfxi_builtin *rows, const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const cfxi_builtin *cfxi_w_sequence_method(cfxi_type type, const char *name)
{
    switch (type) {
    case CFXI_TYPE_LIST: return cfxi_w_row_find(list_methods, name);
    case CFXI_TYPE_TUPLE: return cfxi_w_row_find(tuple_methods, name);
    case CFXI_TYPE_DICT: return cfxi_w_row_find(dict_methods, name);
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: return cfxi_w_row_find(set_methods, name);
    default: return NULL;
    }
}
