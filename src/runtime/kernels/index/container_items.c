/* container_items.c - a[b], a[b] = c and del a[b] of lists, tuples, dicts and strings. */
#include "container_items_impl.h"

#include <cfx/embed/tensor.h>

/* ---- where --------------------------------------------------------------------------------- */

/* Position `key` of `n`, counted from the end if negative. */
static cfx_status position(cfxi_call *c, cfx_datum key, size_t n, const char *what,
                           const char *to_do, size_t *out)
{
    cfx_datum i;
    CFX_TRY(cfxi_rt_python_index(c, key, &i));
    if (i.symbolic)
        return cfxi_fail(c, CFX_E_VALUE, "the index must be a known integer");
    int64_t at = i.as.i < 0 ? i.as.i + (int64_t)n : i.as.i;
    if (at < 0 || at >= (int64_t)n)
        return cfxi_fail(c, CFX_E_INDEX, "%s%s index out of range", what, to_do);
    *out = (size_t)at;
    return CFX_OK;
}

/* Start, step and how many items of a slice of `n`, as Python has them. */
static cfx_status slice_items(cfxi_call *c, cfx_datum slice, int64_t n, int64_t out[3])
{
    size_t three;
    const cfx_datum *parts = cfx_datum_items(slice, &three);
    int64_t given[3];
    for (size_t i = 0; i < 3; i++) {
        cfx_datum number = cfx_datum_int(0);
        if (parts[i].kind != CFX_DATUM_NONE)
            CFX_TRY(cfxi_rt_python_index(c, parts[i], &number));
        if (number.symbolic)
            return cfxi_fail(c, CFX_E_VALUE, "the bounds of the slice must be known integers");
        given[i] = number.as.i;
    }
    int64_t step = parts[2].kind == CFX_DATUM_NONE ? 1 : given[2];
    if (step == 0)
        return cfxi_fail(c, CFX_E_VALUE, "slice step cannot be zero");
    if (step < -INT64_MAX)
        step = -INT64_MAX;
    int64_t low = step < 0 ? -1 : 0;
    int64_t high = step < 0 ? n - 1 : n;
    for (size_t i = 0; i < 2; i++) {
        int64_t at = given[i] < 0 ? given[i] + n : given[i];
        given[i] = at < low ? low : at > high ? high : at;
    }
    int64_t start = parts[0].kind != CFX_DATUM_NONE ? given[0] : step < 0 ? n - 1 : 0;
    int64_t stop = parts[1].kind != CFX_DATUM_NONE ? given[1] : step < 0 ? -1 : n;
    int64_t span = step < 0 ? start - stop : stop - start;
    out[0] = start;
    out[1] = step;
    out[2] = span > 0 ? (span - 1) / (step < 0 ? -step : step) + 1 : 0;
    return CFX_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static cfx_status sequence_slice(cfxi_call *c, cfx_datum seq, cfx_datum slice)
{
    size_t n;
    size_t bytes;
    const cfx_datum *items = cfx_datum_items(seq, &n);
    int64_t at[3];
    CFX_TRY(slice_items(c, slice, (int64_t)n, at));
    cfx_datum *some = cfxi_base_mul_size((size_t)at[2] + 1, sizeof *some, 0, &bytes)
                          ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!some)
        return cfxi_base_nomem(c->err);
    for (int64_t i = 0; i < at[2]; i++)
        some[i] = items[at[0] + i * at[1]];
    cfx_datum result = cfx_datum_seq((cfx_datum_kind)seq.kind, some, (size_t)at[2],
                                     c->rt->allocator, c->err);
    if (cfx_datum_row(seq) == CFX_OPID_size)  /* a part of sizes is sizes */
        cfx_datum_set_row(result, CFX_OPID_size);
    cfxi_rt_scratch_free(c->rt, some);
    cfxi_rt_result_datum(c, 0, result);
    return result.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

/* The byte where character `i` begins. */
static size_t byte_of(const char *text, size_t size, int64_t i)
{
    size_t at = 0;
    while (at < size && i > 0) {
        at++;
        while (at < size && ((unsigned char)text[at] & 0xc0) == 0x80)
            at++;
        i--;
    }
    return at;
}

static cfx_status text_item(cfxi_call *c, cfx_datum text, cfx_datum key)
{
    size_t size;
    const char *data = cfx_datum_text(text, &size);
    int64_t at[3] = {0, 1, 1};
    int64_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)data[i] & 0xc0) != 0x80;
    if (key.kind == CFX_DATUM_SLICE) {
        CFX_TRY(slice_items(c, key, n, at));
        if (at[1] != 1 && at[2] > 1)
            return cfxi_fail(c, CFX_E_UNSUPPORTED, "slicing a string with a step is not supported");
    } else {
        size_t where;
        CFX_TRY(position(c, key, (size_t)n, "string", "", &where));
        at[0] = (int64_t)where;
    }
    size_t first = byte_of(data, size, at[0]);
    size_t length = byte_of(data + first, size - first, at[2]);
    cfxi_rt_result_datum(
        c, 0, cfx_datum_from_text(CFX_DATUM_STR, data + first, length, c->rt->allocator, c->err));
    return c->results[0].kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

/* Where the value of this key is in a dict; *n, the number of its items, if there is none. */
static cfx_status find_key(cfxi_call *c, cfx_datum dict, cfx_datum key, size_t *at, size_t *n)
{
    const cfx_datum *items = cfx_datum_items(dict, n);
    CFX_TRY(cfxi_rt_python_find_key(c, items, *n, key, at));
    *at += *at < *n;
    return CFX_OK;
}

/* The message of Python's KeyError is the key. */
static cfx_status missing_key(cfxi_call *c, cfx_datum key)
{
    cfx_buffer text;
    cfx_buffer_init(&text, c->rt->allocator);
    cfx_status status = cfx_datum_print(key, c->dims, cfx_buffer_sink(&text), c->err);
    if (status == CFX_OK)
        status = cfxi_fail(c, CFX_E_KEY, "%.*s", (int)(text.size < 200 ? text.size : 200),
                           text.data ? text.data : "");
    cfx_buffer_free(&text);
    return status;
}

static bool is_container(cfx_datum d)
{
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE || d.kind == CFX_DATUM_DICT;
}

cfx_status cfxi_index_container_item(cfxi_call *c, cfx_datum container, cfx_datum key)
{
    size_t n;
    size_t at;
    const cfx_datum *items = cfx_datum_items(container, &n);
    if (container.kind == CFX_DATUM_STR)
        return text_item(c, container, key);
    if (!is_container(container))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object is not subscriptable",
                         cfxi_rt_py_kind_of(container));
    if (container.kind == CFX_DATUM_DICT)
        CFX_TRY(find_key(c, container, key, &at, &n));
    else if (key.kind == CFX_DATUM_SLICE)
        return sequence_slice(c, container, key);
    else
        CFX_TRY(position(c, key, n, cfxi_rt_py_kind_of(container), "", &at));
    if (at == n)
        return missing_key(c, key);
    cfxi_rt_result_datum(c, 0, cfx_datum_retain(items[at]));
    return CFX_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

static cfx_status check_mutable(cfxi_call *c, cfx_datum d, const char *what)
{
    if (d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_DICT)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_TYPE, "'%s' object %s item %s", cfxi_rt_py_kind_of(d),
                     strcmp(what, "deletion") == 0 ? "doesn't support" : "does not support", what);
}

/* list[slice] = items. A slice with a step keeps the number of items. */
static cfx_status set_slice(cfxi_call *c, cfx_datum list, cfx_datum slice, cfx_datum value)
{
    size_t n;
    size_t m;
    int64_t at[3];
    const bool tensor = value.kind == CFX_DATUM_TENSOR;
    const cfx_datum all = tensor ? cfxi_rt_sub(c, CFX_OPID_unbind, &value, 1)
                                 : cfx_datum_retain(value);
    const cfx_datum *items = cfx_datum_items(all, &m);
    cfx_datum_items(list, &n);
    cfx_status status = c->err->status;
    if (status == CFX_OK && all.kind != CFX_DATUM_LIST && all.kind != CFX_DATUM_TUPLE)
        status = cfxi_fail(c, CFX_E_TYPE, "only a list, a tuple or a tensor can be assigned to a "
                           "slice of a list, not '%s'", cfxi_rt_py_kind_of(all));
    if (status == CFX_OK)
        status = slice_items(c, slice, (int64_t)n, at);
    if (status == CFX_OK && at[1] == 1)
        status = cfxi_tensor_splice(list, (size_t)at[0], (size_t)at[2], items, m, c->err);
    else if (status == CFX_OK && (int64_t)m != at[2])
        status = cfxi_fail(c, CFX_E_VALUE, "attempt to assign sequence of size %zu to extended "
                           "slice of size %lld", m, (long long)at[2]);
    else if (status == CFX_OK && all.kind == CFX_DATUM_LIST && all.as.seq == list.as.seq)
        status = cfxi_fail(c, CFX_E_UNSUPPORTED, "a list cannot be assigned to a slice of itself "
                           "with a step; assign list(...) of it");
    else
        for (int64_t i = 0; status == CFX_OK && i < at[2]; i++)
            status = cfxi_tensor_set_item(list, (size_t)(at[0] + i * at[1]), items[i], c->err);
    cfx_datum_release(all);
    return status;
}

cfx_status cfxi_index_set_container_item(cfxi_call *c, cfx_datum container, cfx_datum key,
                                         cfx_datum value)
{
    size_t n;
    size_t at;
    const cfx_datum entry[] = {key, value};
    CFX_TRY(check_mutable(c, container, "assignment"));
    cfx_datum_items(container, &n);
    if (container.kind == CFX_DATUM_DICT)
        CFX_TRY(find_key(c, container, key, &at, &n));
    else if (key.kind == CFX_DATUM_SLICE)
        return set_slice(c, container, key, value);
    else
        CFX_TRY(position(c, key, n, "list", " assignment", &at));
    return at < n ? cfxi_tensor_set_item(container, at, value, c->err)
                  : cfxi_tensor_splice(container, n, 0, entry, 2, c->err);
}

static cfx_status delete_slice(cfxi_call *c, cfx_datum list, cfx_datum slice)
{
    size_t n;
    size_t bytes;
    size_t kept = 0;
    int64_t at[3];
    const cfx_datum *items = cfx_datum_items(list, &n);
    CFX_TRY(slice_items(c, slice, (int64_t)n, at));
    if (at[1] == 1 || at[2] == 0)
        return cfxi_tensor_splice(list, (size_t)at[0], (size_t)at[2], NULL, 0, c->err);
    cfx_datum *some = cfxi_base_mul_size(n + 1, sizeof *some, 0, &bytes)
                          ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!some)
        return cfxi_base_nomem(c->err);
    const int64_t last = at[0] + (at[2] - 1) * at[1];
    const int64_t from = at[1] < 0 ? last : at[0];
    const int64_t to = at[1] < 0 ? at[0] : last;
    for (int64_t i = 0; i < (int64_t)n; i++)
        if (i < from || i > to || (i - from) % at[1] != 0)
            some[kept++] = items[i];
    const cfx_status status = cfxi_tensor_splice(list, 0, n, some, kept, c->err);
    cfxi_rt_scratch_free(c->rt, some);
    return status;
}

cfx_status cfxi_index_delete_item(cfxi_call *c, cfx_datum container, cfx_datum key)
{
    size_t n;
    size_t at;
    CFX_TRY(check_mutable(c, container, "deletion"));
    cfx_datum_items(container, &n);
    if (container.kind == CFX_DATUM_DICT) {
        CFX_TRY(find_key(c, container, key, &at, &n));
        return at == n ? missing_key(c, key)
                       : cfxi_tensor_splice(container, at - 1, 2, NULL, 0, c->err);
    }
    if (key.kind == CFX_DATUM_SLICE)
        return delete_slice(c, container, key);
    CFX_TRY(position(c, key, n, "list", " assignment", &at));
    return cfxi_tensor_splice(container, at, 1, NULL, 0, c->err);
}
