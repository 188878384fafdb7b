/* join.c - several tensors one after the other. */
#include "runtime/view_impl.h"

/* Whether its strides say "channels innermost", also where it is a part of such a tensor. */
static bool suggests_channels_last(const cfx_tensor *t)
{
    static const uint8_t inner_first[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t least = 0;
    if (!t->storage || t->ndim < 4 || t->ndim > 5)
        return false;
    for (size_t i = 0; i < t->ndim; i++) {
        size_t d = inner_first[t->ndim - 4][i];
        if (t->size[d] == 0 || t->stride[d] < least)
            return false;
        if (d == 0 && least == t->stride[1])  /* only the batch is not 1: nothing tells */
            return false;
        least = t->size[d] > 1 ? t->stride[d] * t->size[d] : t->stride[d];
    }
    return t->stride[1] != 0;
}

/* An empty tensor of one dimension is skipped: cat took it for "nothing" before sizes were
 * checked. */
static bool is_nothing(const cfx_tensor *t) { return t->ndim == 1 && t->size[0] == 0; }

static bool all_channels_last(const cfx_datum *items, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (is_nothing(items[i].as.tensor))
            continue;
        if (!suggests_channels_last(items[i].as.tensor))
            return false;
        any = true;
    }
    return any;
}

static cfx_dtype common_dtype(const cfx_datum *items, size_t n)
{
    cfx_dtype dtype = (cfx_dtype)items[0].as.tensor->dtype;
    for (size_t i = 1; i < n; i++)
        dtype = cfxi_tensor_promote_types(dtype, (cfx_dtype)items[i].as.tensor->dtype);
    return dtype;
}

/* ---- cat ----------------------------------------------------------------------------------- */

/* Adds `t` (number i of the list) to the sizes so far. */
static cfx_status cat_sizes(cfxi_call *c, int64_t *sizes, size_t ndim, size_t dim,
                            const cfx_tensor *t, size_t i)
{
    if (t->ndim != ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Tensors must have same number of dimensions: got %zu and %u", ndim,
                         t->ndim);
    for (size_t d = 0; d < ndim; d++)
        if (d != dim && !cfxi_rt_same_size(c, sizes[d], t->size[d]))
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Sizes of tensors must match except in dimension %zu. Expected size "
                             "%lld but got size %lld for tensor number %zu in the list.", dim,
                             (long long)sizes[d], (long long)t->size[d], i);
    sizes[dim] = cfx_dim_add(c->dims, sizes[dim], t->size[dim], c->err);
    return c->err->status;
}

cfx_status cfxi_rule_cat(cfxi_call *c)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 0, &n);
    const cfx_tensor *model = NULL;  /* the first that counts */
    int64_t sizes[CFX_MAX_DIMS] = {0};
    size_t dim = 0;
    if (n == 0)
        return cfxi_fail(c, CFX_E_VALUE, "torch.cat(): expected a non-empty list of Tensors");
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = items[i].as.tensor;
        if (t->ndim == 0)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "zero-dimensional tensor (at position %zu) cannot be concatenated", i);
        if (!model && !is_nothing(t))
            model = t;
    }
    if (!model)
        model = items[0].as.tensor;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), model->ndim, &dim));
    memcpy(sizes, model->size, sizeof sizes);
    sizes[dim] = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_nothing(items[i].as.tensor))
            CFX_TRY(cat_sizes(c, sizes, model->ndim, dim, items[i].as.tensor, i));
    CFX_TRY(cfxi_rt_result(c, 0, common_dtype(items, n), sizes, model->ndim));
    if (!c->infer && all_channels_last(items, n))
        cfxi_rt_channels_last_strides(cfxi_rt_result_at(c, 0));
    return CFX_OK;
}

/* Copies the items one after the other along `dim` of y. */
static cfx_status copy_parts(cfxi_call *c, cfx_tensor *y, size_t dim, const cfx_datum *items,
                             size_t n)
{
    cfxi_view v = cfxi_rt_view_of(y);
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = items[i].as.tensor;
        cfx_tensor part;
        if (is_nothing(t))
            continue;
        v.size[dim] = t->size[dim];
        cfxi_rt_view_borrow(&part, y, &v);
        CFX_TRY(cfxi_rt_copy(c->rt, &part, t, c->err));
        v.offset += t->size[dim] * v.stride[dim];
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_cat(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 0, &n);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    return copy_parts(c, y, dim, items, n);
}

/* ---- stack --------------------------------------------------------------------------------- */

/* As if by cat along `dim`, then divided: parts that have channels innermost keep them so. */
static void stacked_strides(cfx_tensor *y, size_t dim, const cfx_tensor *part)
{
    cfx_tensor joined = {.dtype = y->dtype, .ndim = part->ndim};
    memcpy(joined.size, part->size, sizeof joined.size);
    joined.size[dim] *= y->size[dim];
    cfxi_rt_channels_last_strides(&joined);
    for (size_t i = 0; i < part->ndim; i++)
        y->stride[i < dim ? i : i + 1] = joined.stride[i];
    y->stride[dim] = joined.stride[dim] * part->size[dim];
}

cfx_status cfxi_rule_stack(cfxi_call *c)
{
    char first[CFXI_SIZES_TEXT];
    char other[CFXI_SIZES_TEXT];
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 0, &n);
    size_t dim;
    if (n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "stack expects a non-empty TensorList");
    const cfx_tensor *a = items[0].as.tensor;
    cfxi_view v = cfxi_rt_view_of(a);
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim + 1, &dim));
    for (size_t i = 1; i < n; i++) {
        const cfx_tensor *b = items[i].as.tensor;
        bool same = a->ndim == b->ndim;
        for (size_t d = 0; same && d < a->ndim; d++)
            same = cfxi_rt_same_size(c, a->size[d], b->size[d]);
        if (!same)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "stack expects each tensor to be equal size, but got %s at entry 0 "
                             "and %s at entry %zu", cfxi_rt_sizes_text(a->size, a->ndim, first),
                             cfxi_rt_sizes_text(b->size, b->ndim, other), i);
    }
    CFX_TRY(cfxi_rt_view_insert(c, &v, dim, (int64_t)n, 0));
    CFX_TRY(cfxi_rt_result(c, 0, common_dtype(items, n), v.size, v.ndim));
    if (!c->infer && dim < a->ndim && all_channels_last(items, n))
        stacked_strides(cfxi_rt_result_at(c, 0), dim, a);
    return CFX_OK;
}

cfx_status cfxi_kernel_stack(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 0, &n);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    for (size_t i = 0; i < n; i++) {
        cfxi_view v = cfxi_rt_view_of(y);
        cfx_tensor part;
        CFX_TRY(cfxi_rt_view_select(c, &v, dim, (int64_t)i));
        cfxi_rt_view_borrow(&part, y, &v);
        CFX_TRY(cfxi_rt_copy(c->rt, &part, items[i].as.tensor, c->err));
    }
    return CFX_OK;
}

/* ---- cat by another name ------------------------------------------------------------------- */

/* cat of the items, each made to have dimensions by `each`; along `dim`, or 0 if they have one. */
static cfx_status joined(cfxi_call *c, cfx_operator each, int64_t dim)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 0, &n);
    cfx_datum args[2] = {cfx_datum_none(), cfx_datum_int(dim)};
    if (n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "%s expects a non-empty TensorList",
                         cfx_operator_name(c->op));
    size_t size;
    cfx_datum *parts =
        cfxi_base_mul_size(n, sizeof *parts, 0, &size) ? cfxi_rt_scratch(c->rt, size) : NULL;
    if (!parts)
        return cfxi_base_nomem(c->err);
    size_t made = 0;
    while (made < n) {
        parts[made] = cfxi_rt_sub(c, each, &items[made], 1);
        if (parts[made].kind == CFX_DATUM_INVALID)
            break;
        made++;
    }
    if (made == n) {
        if (parts[0].as.tensor->ndim == 1)
            args[1].as.i = 0;
        args[0] = cfx_datum_seq(CFX_DATUM_LIST, parts, n, c->rt->allocator, c->err);
        if (args[0].kind != CFX_DATUM_INVALID)
            cfxi_rt_result_datum(c, 0, cfxi_rt_sub(c, CFX_OPID_cat, args, 2));
        cfx_datum_release(args[0]);
    }
    while (made-- > 0)
        cfx_datum_release(parts[made]);
    cfxi_rt_scratch_free(c->rt, parts);
    return c->results[0].kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

cfx_status cfxi_rule_hstack(cfxi_call *c) { return joined(c, CFX_OPID_atleast_1d, 1); }
cfx_status cfxi_rule_vstack(cfxi_call *c) { return joined(c, CFX_OPID_atleast_2d, 0); }
cfx_status cfxi_rule_dstack(cfxi_call *c) { return joined(c, CFX_OPID_atleast_3d, 2); }
