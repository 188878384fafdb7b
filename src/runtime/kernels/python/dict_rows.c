/* dict_rows.c - dicts of keys that a graph computes: dict(pairs), get, keys, values, items.
 *
 * Dicts of graphs are small, and have no index. A view is a list of what the dict holds now: what
 * lowers a graph sees to it that nobody looks at it later.
 */
#include "python_rows_impl.h"

/* ---- dict() -------------------------------------------------------------------------------- */

/* The two items of an element of what dict() was given. */
static cfx_status pair_of(cfxi_call *c, cfx_datum d, size_t i, cfx_datum out[2])
{
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_TUPLE)
        return cfxi_fail(c, CFX_E_TYPE, "cannot convert dictionary update sequence element #%zu to "
                         "a sequence", i);
    if (n != 2)
        return cfxi_fail(c, CFX_E_VALUE, "dictionary update sequence element #%zu has length %zu; "
                         "2 is required", i, n);
    out[0] = items[0];
    out[1] = items[1];
    return CFX_OK;
}

/* The last value of a key that comes twice counts, at its first place. */
static cfx_status put_pairs(cfxi_call *c, const cfx_datum *pairs, size_t n, cfx_datum *all,
                            size_t *size)
{
    for (size_t i = 0; i < n; i++) {
        cfx_datum pair[2];
        size_t at;
        CFX_TRY(pair_of(c, pairs[i], i, pair));
        CFX_TRY(cfxi_rt_python_find_key(c, all, *size, pair[0], &at));
        if (at == *size) {
            all[at] = pair[0];
            *size += 2;
        }
        all[at + 1] = pair[1];
    }
    return CFX_OK;
}

static cfx_status dict_of_pairs(cfxi_call *c, const cfx_datum *pairs, size_t n)
{
    size_t bytes;
    size_t size = 0;
    cfx_datum *all = cfxi_base_mul_size(2 * n + 1, sizeof *all, 0, &bytes)
                         ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!all)
        return cfxi_base_nomem(c->err);
    cfx_status status = put_pairs(c, pairs, n, all, &size);
    if (status == CFX_OK)
        status = cfxi_python_give(c, cfx_datum_seq(CFX_DATUM_DICT, all, size, c->rt->allocator,
                                                   c->err));
    cfxi_rt_scratch_free(c->rt, all);
    return status;
}

cfx_status cfxi_rule_dict(cfxi_call *c)
{
    const cfx_datum d = c->args[0];
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_DICT || d.kind == CFX_DATUM_INVALID)
        return cfxi_python_give(c, cfx_datum_seq(CFX_DATUM_DICT, items, n, c->rt->allocator,
                                                 c->err));
    if (d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_TUPLE)
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object is not a dict", cfxi_rt_py_kind_of(d));
    return dict_of_pairs(c, items, n);
}

/* ---- methods ------------------------------------------------------------------------------- */

static cfx_status check_dict(cfxi_call *c, const char *method)
{
    if (c->args[0].kind == CFX_DATUM_DICT)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_TYPE, "'%s' object is not a dict, and has no '%s' here",
                     cfxi_rt_py_kind_of(c->args[0]), method);
}

cfx_status cfxi_rule_dict_get(cfxi_call *c)
{
    size_t n;
    size_t at;
    CFX_TRY(check_dict(c, "get"));
    const cfx_datum *items = cfx_datum_items(c->args[0], &n);
    CFX_TRY(cfxi_rt_python_find_key(c, items, n, c->args[1], &at));
    return cfxi_python_give(c, cfx_datum_retain(at < n ? items[at + 1] : c->args[2]));
}

/* (key, value) */
static cfx_datum item_at(cfxi_call *c, const cfx_datum *items, size_t i)
{
    return cfx_datum_seq(CFX_DATUM_TUPLE, &items[i], 2, c->rt->allocator, c->err);
}

cfx_status cfxi_rule_dict_view(cfxi_call *c)
{
    size_t n;
    size_t made = 0;
    size_t bytes;
    CFX_TRY(check_dict(c, "items"));
    const cfx_datum *items = cfx_datum_items(c->args[0], &n);
    cfx_datum *all = cfxi_base_mul_size(n + 1, sizeof *all, 0, &bytes)
                         ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!all)
        return cfxi_base_nomem(c->err);
    for (size_t i = 0; i < n && c->err->status == CFX_OK; i += 2)
        all[made++] = c->op == CFX_OPID_dict_items ? item_at(c, items, i)
                      : cfx_datum_retain(items[c->op == CFX_OPID_dict_keys ? i : i + 1]);
    cfx_status status = c->err->status;
    if (status == CFX_OK)
        status = cfxi_python_give(c, cfx_datum_seq(CFX_DATUM_LIST, all, made, c->rt->allocator,
                                                   c->err));
    while (made-- > 0)
        cfx_datum_release(all[made]);
    cfxi_rt_scratch_free(c->rt, all);
    return status;
}
