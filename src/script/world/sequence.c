/* sequence.c - items, slices and lengths. */
#include "world_impl.h"

/* ---- lengths and slices -------------------------------------------------------------------- */

cfx_status cfxi_world_length(cfxi_world *w, cfx_object *o, int64_t *n, cfx_error *err)
{
    bool found = false;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_STR: *n = (int64_t)cfxi_world_text_length(o); return CFX_OK;
    case CFXI_TYPE_BYTES: *n = (int64_t)o->as.text.size; return CFX_OK;
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST: *n = (int64_t)o->as.seq.n; return cfxi_world_check_known(o, err);
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: *n = (int64_t)o->as.dict.n; return cfxi_world_check_known(o, err);
    case CFXI_TYPE_RANGE: *n = o->as.range.n; return CFX_OK;
    default: break;
    }
    cfx_object *made = o->cls ? cfxi_world_special(w, o, "__len__", NULL, 0, &found, err) : NULL;
    if (found) {
        const bool good = made && cfxi_world_is_whole(made);
        *n = good ? cfxi_world_whole(made) : 0;
        if (made && !good)
            cfxi_world_throw(w, err, CFXI_TypeError, "__len__ must return an integer");
        cfxi_world_unref(made);
        return good ? CFX_OK : err->status;
    }
    *n = o->type == CFXI_TYPE_MODULE ? cfxi_world_layer_length(o) : -1;
    if (*n >= 0)
        return CFX_OK;
    return cfxi_world_throw(w, err, CFXI_TypeError, "object of type '%s' has no len()",
                      cfxi_world_type_name(o));
}

static cfx_status bound(cfxi_world *w, cfx_object *o, int64_t n, int64_t low, int64_t high,
                        int64_t usual, int64_t *out, cfx_error *err)
{
    *out = usual;
    if (o->type == CFXI_TYPE_NONE)
        return CFX_OK;
    CFX_TRY(cfxi_world_index_of(w, o, "a slice index", out, err));
    if (*out < 0)
        *out = *out + n < low ? low : *out + n;
    else if (*out > high)
        *out = high;
    return CFX_OK;
}

cfx_status cfxi_world_slice_ends(cfxi_world *w, cfx_object *slice, int64_t n, int64_t *start,
                                 int64_t *stop, int64_t *step, cfx_error *err)
{
    cfx_object *const *part = slice->as.seq.items;
    *step = 1;
    if (part[2]->type != CFXI_TYPE_NONE)
        CFX_TRY(cfxi_world_index_of(w, part[2], "a slice index", step, err));
    if (*step == 0)
        return cfxi_world_throw(w, err, CFXI_ValueError, "slice step cannot be zero");
    const bool back = *step < 0;
    const int64_t low = back ? -1 : 0;
    const int64_t high = back ? n - 1 : n;
    CFX_TRY(bound(w, part[0], n, low, high, back ? high : low, start, err));
    return bound(w, part[1], n, low, high, back ? low : high, stop, err);
}

/* The three numbers of a slice for a sequence of n: *count items from *start in steps of *step. */
static cfx_status slice_of(cfxi_world *w, cfx_object *slice, int64_t n, int64_t *start,
                           int64_t *step, int64_t *count, cfx_error *err)
{
    int64_t stop;
    CFX_TRY(cfxi_world_slice_ends(w, slice, n, start, &stop, step, err));
    const bool back = *step < 0;
    const int64_t span = back ? *start - stop : stop - *start;
    const uint64_t size = back ? 0 - (uint64_t)*step : (uint64_t)*step;
    *count = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / size) + 1;
    return CFX_OK;
}

cfx_status cfxi_world_place_of(cfxi_world *w, cfx_object *o, cfx_object *key, int64_t n, int64_t *i,
                               cfx_error *err)
{
    const char *name = o->type == CFXI_TYPE_STR ? "string" : cfxi_world_type_name(o);
    if (!cfxi_world_is_whole(key) && !key->cls)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "%s indices must be integers or slices, not %s", name,
                                cfxi_world_type_name(key));
    CFX_TRY(cfxi_world_index_of(w, key, "an index", i, err));
    if (*i < 0)
        *i += n;
    if (*i < 0 || *i >= n)
        return cfxi_world_throw(w, err, CFXI_IndexError, "%s index out of range", name);
    return CFX_OK;
}

/* ---- reading items ------------------------------------------------------------------------- */

static cfx_object *range_at(cfxi_world *w, const cfx_object *r, int64_t i, cfx_error *err)
{
    return cfxi_world_int_object(w, r->as.range.start + i * r->as.range.step, err);
}

static cfx_object *sliced(cfxi_world *w, cfx_object *o, cfx_object *slice, int64_t n,
                          cfx_error *err)
{
    int64_t start;
    int64_t step;
    int64_t count;
    if (slice_of(w, slice, n, &start, &step, &count, err) != CFX_OK)
        return NULL;
    if (o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_BYTES)
        return cfxi_world_text_slice(w, o, start, step, count, err);
    if (o->type == CFXI_TYPE_RANGE) {
        const int64_t first = o->as.range.start + start * o->as.range.step;
        cfx_object *r = cfxi_world_range_object(w, 0, 0, 1, err);
        if (r) {
            r->as.range.start = first;
            r->as.range.step = o->as.range.step * step;
            r->as.range.n = count;
        }
        return r;
    }
    cfx_object *made = cfxi_world_seq_object(w, (cfxi_type)o->type, NULL, 0, err);
    for (int64_t i = 0; made && i < count; i++)
        if (cfxi_world_list_append(made, o->as.seq.items[start + i * step], err) != CFX_OK)
            cfxi_world_clear(&made);
    return made;
}

static cfx_object *dict_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    cfx_object *value;
    bool found = false;
    const bool has_default = o->cls || o->attrs;
    if (key->type == CFXI_TYPE_VALUE && !has_default)
        return cfxi_world_perform_on(w, "operator.getitem", o, key, err);
    if (cfxi_world_dict_find(o, key, &value, err) != CFX_OK)
        return NULL;
    if (value)
        return cfxi_world_ref(value);
    if (o->cls) {
        cfx_object *made = cfxi_world_special(w, o, "__missing__", &key, 1, &found, err);
        if (found)
            return made;
    }
    if (o->attrs && cfxi_world_dict_get(o->attrs, "default_factory")) {
        cfx_object *made =
            cfxi_world_call_with(w, cfxi_world_dict_get(o->attrs, "default_factory"), NULL, 0, err);
        if (made && cfxi_world_dict_set(o, key, made, err) != CFX_OK)
            cfxi_world_clear(&made);
        return made;
    }
    cfxi_world_throw_key(w, key, err);
    return NULL;
}

cfx_object *cfxi_world_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    int64_t n;
    int64_t i;
    bool found = false;
    if (o->cls && o->type != CFXI_TYPE_TENSOR) {
        cfx_object *made = cfxi_world_special(w, o, "__getitem__", &key, 1, &found, err);
        if (found)
            return made;
    }
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_VALUE:
    case CFXI_TYPE_ATTRIBUTE:
    case CFXI_TYPE_TENSOR: return cfxi_world_perform_on(w, "operator.getitem", o, key, err);
    case CFXI_TYPE_DICT:
        return cfxi_world_has_value(key, false)
                   ? cfxi_world_perform_on(w, "operator.getitem", o, key, err)
                   : dict_item(w, o, key, err);
    case CFXI_TYPE_MODULE: return cfxi_world_layer_item(w, o, key, err);
    case CFXI_TYPE_CLASS:      /* list[int], Optional[Tensor], nn.Module[...]: a type, all alike */
    case CFXI_TYPE_NAMESPACE: return cfxi_world_ref(o);
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_RANGE: break;
    default:
        return cfxi_world_raise(w, err, CFXI_TypeError, "'%s' object is not subscriptable",
                          cfxi_world_type_name(o));
    }
    if (cfxi_world_has_value(key, false))
        return cfxi_world_perform_on(w, "operator.getitem", o, key, err);
    if (cfxi_world_length(w, o, &n, err) != CFX_OK)
        return NULL;
    if (key->type == CFXI_TYPE_SLICE)
        return sliced(w, o, key, n, err);
    if (cfxi_world_place_of(w, o, key, n, &i, err) != CFX_OK)
        return NULL;
    if (o->type == CFXI_TYPE_STR)
        return cfxi_world_text_at(w, o, i, err);
    if (o->type == CFXI_TYPE_BYTES)
        return cfxi_world_int_object(w, (unsigned char)o->as.text.data[i], err);
    return o->type == CFXI_TYPE_RANGE ? range_at(w, o, i, err) : cfxi_world_ref(o->as.seq.items[i]);
}

/* ---- writing items ------------------------------------------------------------------------- */

cfx_status cfxi_world_splice(cfxi_world *w, cfx_object *list, size_t from, size_t to,
                             cfx_object *with, cfx_error *err)
{
    cfx_object *made = cfxi_world_seq_object(w, CFXI_TYPE_LIST, list->as.seq.items, from, err);
    cfx_status status = made ? CFX_OK : err->status;
    for (size_t i = 0; with && status == CFX_OK && i < with->as.seq.n; i++)
        status = cfxi_world_list_append(made, with->as.seq.items[i], err);
    for (size_t i = to; status == CFX_OK && i < list->as.seq.n; i++)
        status = cfxi_world_list_append(made, list->as.seq.items[i], err);
    if (status == CFX_OK) {
        cfx_object swap;
        swap.as.seq = list->as.seq;
        list->as.seq = made->as.seq;
        made->as.seq = swap.as.seq;
    }
    cfxi_world_unref(made);
    return status;
}

static cfx_status set_slice(cfxi_world *w, cfx_object *list, cfx_object *slice, cfx_object *v,
                            cfx_error *err)
{
    int64_t start;
    int64_t step;
    int64_t count;
    CFX_TRY(slice_of(w, slice, (int64_t)list->as.seq.n, &start, &step, &count, err));
    cfx_object *with = v ? cfxi_world_collect(w, CFXI_TYPE_LIST, v, err) : NULL;
    if (v && !with)
        return err->status;
    cfx_status status = CFX_OK;
    if (step == 1) {
        status = cfxi_world_splice(w, list, (size_t)start, (size_t)(start + count), with, err);
    } else if (v && (int64_t)with->as.seq.n != count) {
        status = cfxi_world_throw(w, err, CFXI_ValueError,
                                  "attempt to assign sequence of size %zu to "
                                  "extended slice of size %lld",
                                  with->as.seq.n, (long long)count);
    } else {
        const int64_t first = step < 0 ? start + (count - 1) * step : start;
        for (int64_t i = count; i-- > 0 && status == CFX_OK;) {
            if (!v) {
                const size_t at = (size_t)(first + i * (step < 0 ? -step : step));
                status = cfxi_world_splice(w, list, at, at + 1, NULL, err);
                continue;
            }
            cfx_object **at = &list->as.seq.items[start + i * step];
            cfx_object *old = *at;
            *at = cfxi_world_ref(with->as.seq.items[i]);
            cfxi_world_unref(old);
        }
    }
    cfxi_world_unref(with);
    return status;
}

static cfx_status set_dict(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                           cfx_error *err)
{
    cfx_object *old;
    if (v)
        return cfxi_world_dict_set(o, key, v, err);
    CFX_TRY(cfxi_world_dict_remove(o, key, &old, err));
    if (old) {
        cfxi_world_unref(old);
        return CFX_OK;
    }
    return cfxi_world_throw_key(w, key, err);
}

static cfx_status set_by_method(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                                bool *found, cfx_error *err)
{
    cfx_object *args[] = {key, v};
    cfx_object *made = cfxi_world_special(w, o, v ? "__setitem__" : "__delitem__", args, v ? 2 : 1,
                                          found,
                                    err);
    const cfx_status status = *found && !made ? err->status : CFX_OK;
    cfxi_world_unref(made);
    return status;
}

cfx_status cfxi_world_set_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
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
        cfx_object *made = cfxi_world_perform(w, CFX_OP_CALL_FUNCTION,
                                        v ? "operator.setitem" : "operator.delitem",
                                        &(cfx_call_args){.args = args, .n = v ? 3 : 2}, err);
        cfxi_world_unref(made);
        return made ? CFX_OK : err->status;
    }
    if (o->type == CFXI_TYPE_DICT)
        return set_dict(w, o, key, v, err);
    if (o->type == CFXI_TYPE_MODULE)
        return cfxi_world_layer_set_item(w, o, key, v, err);
    if (o->type != CFXI_TYPE_LIST)
        return cfxi_world_throw(w, err, CFXI_TypeError, "'%s' object does not support item %s",
                          cfxi_world_type_name(o), v ? "assignment" : "deletion");
    if (key->type == CFXI_TYPE_SLICE)
        return set_slice(w, o, key, v, err);
    CFX_TRY(cfxi_world_place_of(w, o, key, (int64_t)o->as.seq.n, &i, err));
    if (!v)
        return cfxi_world_splice(w, o, (size_t)i, (size_t)i + 1, NULL, err);
    cfx_object *old = o->as.seq.items[i];
    o->as.seq.items[i] = cfxi_world_ref(v);
    cfxi_world_unref(old);
    return CFX_OK;
}

/* ---- joining, repeating, searching --------------------------------------------------------- */

cfx_object *cfxi_world_concat(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    if (a->type == CFXI_TYPE_STR || a->type == CFXI_TYPE_BYTES) {
        cfx_buffer text;
        cfx_buffer_init(&text, w->allocator);
        if (cfx_buffer_append(&text, a->as.text.data, a->as.text.size) != CFX_OK ||
            cfx_buffer_append(&text, b->as.text.data, b->as.text.size) != CFX_OK)
            cfxi_base_nomem(err);
        else {
            cfx_object *made =
                cfxi_world_text_object(w, (cfxi_type)a->type, text.data, text.size, err);
            cfx_buffer_free(&text);
            return made;
        }
        cfx_buffer_free(&text);
        return NULL;
    }
    cfx_object *made =
        cfxi_world_seq_object(w, (cfxi_type)a->type, a->as.seq.items, a->as.seq.n, err);
    for (size_t i = 0; made && i < b->as.seq.n; i++)
        if (cfxi_world_list_append(made, b->as.seq.items[i], err) != CFX_OK)
            cfxi_world_clear(&made);
    return made;
}

cfx_object *cfxi_world_repeat(cfxi_world *w, cfx_object *o, int64_t times, cfx_error *err)
{
    const bool text = o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_BYTES;
    const size_t n = text ? o->as.text.size : o->as.seq.n;
    size_t total = 0;
    times = times < 0 || n == 0 ? 0 : times;
    if (!cfxi_base_mul_size(n, (size_t)times, 0, &total) || total > w->most_bytes / sizeof o)
        return cfxi_world_raise(w, err, CFXI_MemoryError, "repeating %zu items %lld times needs "
                                "too much memory", n,
                          (long long)times);
    if (!text) {
        cfx_object *made = cfxi_world_seq_object(w, (cfxi_type)o->type, NULL, 0, err);
        for (size_t i = 0; made && i < total; i++)
            if (cfxi_world_list_append(made, o->as.seq.items[i % n], err) != CFX_OK)
                cfxi_world_clear(&made);
        return made;
    }
    cfx_buffer all;
    cfx_buffer_init(&all, w->allocator);
    cfx_status status = cfx_buffer_reserve(&all, total);
    for (int64_t i = 0; status == CFX_OK && i < times; i++)
        status = cfx_buffer_append(&all, o->as.text.data, n);
    cfx_object *made = status == CFX_OK ? cfxi_world_text_object(w, (cfxi_type)o->type, all.data,
                                                           all.size, err) : NULL;
    if (status != CFX_OK)
        cfxi_base_nomem(err);
    cfx_buffer_free(&all);
    return made;
}

int cfxi_world_contains(cfxi_world *w, cfx_object *in, cfx_object *o, cfx_error *err)
{
    cfx_object *there = NULL;
    bool found = false;
    cfx_object *made =
        in->cls ? cfxi_world_special(w, in, "__contains__", &o, 1, &found, err) : NULL;
    if (found) {
        const int t = made ? cfxi_world_truth_of(w, made, err) : -1;
        cfxi_world_unref(made);
        return t;
    }
    if (in->type == CFXI_TYPE_DICT || in->type == CFXI_TYPE_SET ||
        in->type == CFXI_TYPE_FROZENSET)
        return cfxi_world_dict_find(in, o, &there, err) == CFX_OK ? there != NULL : -1;
    if (in->type == CFXI_TYPE_STR) {
        if (o->type == CFXI_TYPE_STR)
            return cfxi_world_text_find(in, o, 0) != SIZE_MAX;
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "'in <string>' requires string as left operand, not %s",
                   cfxi_world_type_name(o));
        return -1;
    }
    if (in->type == CFXI_TYPE_MODULE && in->as.module->nn == CFX_NN_ModuleDict)
        return o->type == CFXI_TYPE_STR && cfx_module_child(in->as.module, o->as.text.data) != NULL;
    cfx_object *all = cfxi_world_iterate(w, in, err);
    int answer = all ? 0 : -1;
    err->status = all ? CFX_OK : err->status;
    for (cfx_object *x; answer == 0 && (x = cfxi_world_next(w, all, err)) != NULL;
         cfxi_world_unref(x))
        answer = x == o ? 1 : cfxi_world_equal(w, x, o, err);
    if (err->status != CFX_OK)
        answer = -1;
    cfxi_world_unref(all);
    return answer;
}
