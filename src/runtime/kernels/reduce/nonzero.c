/* nonzero.c - where elements are not zero, and what a mask lets pass. */
#include "runtime/view_impl.h"

static bool is_set(cfx_dtype dtype, const char *at)
{
    switch (cfx_dtype_size(dtype)) {
    case 1: return *at != 0;
    default: break;
    }
    if (cfx_dtype_is_complex(dtype)) {
        double both[2];
        cfxi_tensor_load_complex(dtype, at, both);
        return both[0] != 0 || both[1] != 0;
    }
    return cfx_dtype_is_float(dtype) ? cfxi_tensor_load_float(dtype, at) != 0
                                     : cfxi_tensor_load_int(dtype, at) != 0;
}

static int64_t count_set(const cfx_tensor *dense)
{
    int64_t n = 0;
    size_t item = cfxi_tensor_itemsize(dense);
    const char *end = dense->data + cfxi_tensor_numel(dense) * (int64_t)item;
    if (item == 1) {  /* masks, mostly */
        for (const char *at = dense->data; at < end; at++)
            n += *at != 0;
        return n;
    }
    for (const char *at = dense->data; at < end; at += item)
        n += is_set((cfx_dtype)dense->dtype, at);
    return n;
}

enum { CHUNK = 256 };

/* Which of `n` elements, at most CHUNK, are set; how many. Without a branch for each of a mask:
 * nobody could guess them. */
static int64_t find_set(cfx_dtype dtype, const char *at, int64_t n, int64_t out[CHUNK])
{
    size_t item = cfx_dtype_size(dtype);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        out[found] = i;
        found += item == 1 ? at[i] != 0 : is_set(dtype, at + i * (int64_t)item);
    }
    return found;
}

/* ---- nonzero ------------------------------------------------------------------------------- */

cfx_status cfxi_rule_nonzero(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t sizes[2] = {cfxi_rt_fresh(c), x->ndim};
    return cfxi_rt_result(c, 0, CFX_DTYPE_INT64, sizes, 2);
}

/* The positions along the last dimension of what is set in one row, to out[0..); how many. */
static int64_t row_positions(const cfx_tensor *dense, const char *row, int64_t size, int64_t *out)
{
    int64_t n = 0;
    size_t item = cfxi_tensor_itemsize(dense);
    int64_t some[CHUNK];
    for (int64_t i = 0; i < size; i += CHUNK) {
        int64_t count = size - i < CHUNK ? size - i : CHUNK;
        int64_t found = find_set((cfx_dtype)dense->dtype, row + i * (int64_t)item, count, some);
        for (int64_t k = 0; k < found; k++)
            out[n + k] = i + some[k];
        n += found;
    }
    return n;
}

/* Writes the position of each element that is set: its d-th part to out[d * n + i]. */
static void write_positions(const cfx_tensor *dense, int64_t n, int64_t *out)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    size_t last = dense->ndim - 1u;
    int64_t size = dense->size[last];
    const char *row = dense->data;
    for (int64_t i = 0; i < n; row += size * (int64_t)cfxi_tensor_itemsize(dense)) {
        int64_t found = row_positions(dense, row, size, out + (int64_t)last * n + i);
        for (size_t d = 0; d < last; d++)
            for (int64_t k = 0; k < found; k++)
                out[(int64_t)d * n + i + k] = at[d];
        i += found;
        for (size_t d = last; d-- > 0;) {
            if (++at[d] < dense->size[d])
                break;
            at[d] = 0;
        }
    }
}

cfx_status cfxi_kernel_nonzero(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *dense = cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);
    if (!dense)
        return c->err->status;
    y->size[0] = count_set(dense);
    y->stride[0] = 8;  /* column after column, as PyTorch has it */
    y->stride[1] = 8 * (y->size[0] ? y->size[0] : 1);
    cfx_status status = cfxi_rt_result_allocate(c, 0);
    if (status == CFX_OK && y->ndim == 2 && dense->ndim > 0)
        write_positions(dense, y->size[0], (int64_t *)(void *)y->data);
    cfx_tensor_release(dense);
    return status;
}

/* torch.where(x): nonzero's columns, one tensor each; a number counts as one dimension. */
cfx_status cfxi_rule_where_nonzero(cfxi_call *c)
{
    cfx_datum x = c->args[0];
    cfx_datum flat = cfx_datum_invalid();
    if (cfxi_rt_tensor(c, 0)->ndim == 0) {
        flat = cfxi_rt_sub(c, CFX_OPID_atleast_1d, &x, 1);
        x = flat;
    }
    if (x.kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfx_datum args[2] = {cfxi_rt_sub(c, CFX_OPID_nonzero, &x, 1), cfx_datum_int(1)};
    if (args[0].kind != CFX_DATUM_INVALID)
        cfxi_rt_result_datum(c, 0, cfxi_rt_sub(c, CFX_OPID_unbind, args, 2));
    cfx_datum_release(args[0]);
    cfx_datum_release(flat);
    return c->results[0].kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

/* ---- masks --------------------------------------------------------------------------------- */

static cfx_status check_bool(cfxi_call *c, const cfx_tensor *mask, const char *what)
{
    if (mask->dtype != CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE, "%s: expected BoolTensor for mask", what);
    return CFX_OK;
}

cfx_status cfxi_rule_masked_select(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(check_bool(c, both[1], "masked_select"));
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    sizes[0] = cfxi_rt_fresh(c);
    return cfxi_rt_result(c, 0, (cfx_dtype)both[0]->dtype, sizes, 1);
}

/* `t` broadcast to these sizes, contiguous; owned. */
static cfx_tensor *spread_dense(cfxi_call *c, const cfx_tensor *t, const int64_t *sizes,
                                size_t ndim)
{
    cfxi_view v = cfxi_rt_view_of(t);
    cfx_tensor spread;
    if (cfxi_rt_view_expand(c, &v, sizes, ndim) != CFX_OK)
        return NULL;
    cfxi_rt_view_borrow(&spread, t, &v);
    if (!cfx_tensor_is_contiguous(&spread) || t->ndim != ndim ||
        cfxi_tensor_numel(t) != cfxi_tensor_numel(&spread)) {  /* spread over no elements */
        cfx_tensor *copy = cfx_tensor_new((cfx_dtype)t->dtype, sizes, ndim, c->rt->allocator,
                                          c->err);
        if (copy && cfxi_rt_copy(c->rt, copy, t, c->err) != CFX_OK) {
            cfx_tensor_release(copy);
            return NULL;
        }
        return copy;
    }
    return cfx_tensor_retain((cfx_tensor *)t);
}

cfx_status cfxi_kernel_masked_select(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    cfx_tensor *x = spread_dense(c, both[0], sizes, ndim);
    cfx_tensor *mask = x ? spread_dense(c, both[1], sizes, ndim) : NULL;
    cfx_status status = CFX_E_NOMEM;
    if (mask) {
        y->size[0] = count_set(mask);
        status = cfxi_rt_result_allocate(c, 0);
    } else {
        status = c->err->status;
    }
    if (status == CFX_OK) {
        int64_t item = (int64_t)cfxi_tensor_itemsize(x);
        int64_t some[CHUNK];
        char *to = y->data;
        for (int64_t i = 0, n = cfxi_tensor_numel(mask); i < n; i += CHUNK) {
            int64_t count = n - i < CHUNK ? n - i : CHUNK;
            int64_t found = find_set(CFX_DTYPE_BOOL, mask->data + i, count, some);
            for (int64_t k = 0; k < found; k++, to += item)
                memcpy(to, x->data + (i + some[k]) * item, (size_t)item);
        }
    }
    cfx_tensor_release(mask);
    cfx_tensor_release(x);
    return status;
}

cfx_status cfxi_rule_masked_scatter(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(check_bool(c, both[1], "masked_scatter_"));
    if (cfxi_rt_tensor(c, 2)->dtype != both[0]->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "masked_scatter: expected self and source to have same "
                         "dtypes but got %s and %s", cfx_dtype_name((cfx_dtype)both[0]->dtype),
                         cfx_dtype_name((cfx_dtype)cfxi_rt_tensor(c, 2)->dtype));
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    return cfxi_rt_result(c, 0, (cfx_dtype)both[0]->dtype, sizes, ndim);
}

/* The elements of the source, in order, where the mask is set. */
cfx_status cfxi_kernel_masked_scatter(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const cfx_tensor *given = cfxi_rt_tensor(c, 2);
    cfx_tensor *mask = spread_dense(c, cfxi_rt_tensor(c, 1), y->size, y->ndim);
    cfx_tensor *source = mask ? cfxi_rt_contiguous(c, given, (cfx_dtype)given->dtype) : NULL;
    cfx_status status =
        source ? cfxi_rt_copy(c->rt, y, cfxi_rt_tensor(c, 0), c->err) : c->err->status;
    if (status == CFX_OK && count_set(mask) > cfxi_tensor_numel(source))
        status = cfxi_fail(c, CFX_E_SHAPE,
                           "masked_scatter: expected source to have at least as many elements as "
                           "the number of ones in the mask");
    if (status == CFX_OK) {
        size_t item = cfxi_tensor_itemsize(y);
        const char *from = source->data;
        for (int64_t i = 0, n = cfxi_tensor_numel(mask); i < n; i++)
            if (mask->data[i]) {
                memcpy(y->data + i * (int64_t)item, from, item);
                from += item;
            }
    }
    cfx_tensor_release(source);
    cfx_tensor_release(mask);
    return status;
}
