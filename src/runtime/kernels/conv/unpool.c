/* unpool.c - max_unpool1d, 2d and 3d: maxima go back to where pooling found them. */
#include "runtime/spatial.h"

enum { INPUT, INDICES, OUTPUT_SIZE, STRIDE, PADDING, KERNEL_SIZE };

static size_t axes_of(cfx_operator op)
{
    return op == CFX_OPID_max_unpool1d ? 1 : op == CFX_OPID_max_unpool2d ? 2 : 3;
}

/* ---- rule ---------------------------------------------------------------------------------- */

static cfx_status check_tensors(cfxi_call *c, size_t n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *index = cfxi_rt_tensor(c, INDICES);
    if (index->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "elements in indices should be type int64 but got: %s",
                         cfx_dtype_name((cfx_dtype)index->dtype));
    if (x->ndim != n + 1 && x->ndim != n + 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Input to max_unpooling%zud should be a %zud or %zud "
                         "Tensor, but got a tensor with %u dimensions", n, n + 1, n + 2, x->ndim);
    bool same = index->ndim == x->ndim;
    for (size_t d = 0; same && d < x->ndim; d++)
        same = cfxi_rt_same_size(c, index->size[d], x->size[d]);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected shape of indices to be: [%s], but got: [%s]",
                         cfxi_rt_shape_of(x).text, cfxi_rt_shape_of(index).text);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    return CFX_OK;
}

/* What is asked for must be less than a window away from what pooling would have come from. */
static cfx_status check_size(cfxi_call *c, size_t d, int64_t asked, int64_t usual, int64_t stride)
{
    if (cfx_dim_is_symbol(asked) || cfx_dim_is_symbol(usual) ||
        (asked > usual - stride && asked < usual + stride))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_VALUE, "invalid output_size (dim %zu must be between %lld and %lld)",
                     d, (long long)(usual - stride), (long long)(usual + stride));
}

/* With a kernel_size the sizes follow from it; without, output_size says them. */
static cfx_status read_sizes(cfxi_call *c, size_t n, int64_t *out)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    int64_t kernel[CFXI_SPATIAL], stride[CFXI_SPATIAL], padding[CFXI_SPATIAL];
    int64_t asked[CFX_MAX_DIMS];
    size_t count;
    const bool by_kernel = !cfxi_rt_is_none(c, KERNEL_SIZE);
    CFX_TRY(cfxi_rt_ints(c, OUTPUT_SIZE, asked, &count));
    if (by_kernel && count == n + 2)
        memmove(asked, asked + 2, (count = n) * sizeof *asked);
    if (count != n && !(by_kernel && cfxi_rt_is_none(c, OUTPUT_SIZE)))
        return cfxi_fail(c, by_kernel ? CFX_E_VALUE : CFX_E_SHAPE, "output_size should be a "
                         "sequence containing %zu or %zu elements, but it has a length of '%zu'",
                         n, n + 2, count);
    memcpy(out, asked, n * sizeof *out);
    const int64_t ones[CFXI_SPATIAL] = {1, 1, 1};
    if (by_kernel)
        CFX_TRY(cfxi_rt_window_ints(c, KERNEL_SIZE, n, 1, NULL, "kernel_size", kernel));
    CFX_TRY(cfxi_rt_window_ints(c, STRIDE, n, 1, by_kernel ? kernel : ones, "stride", stride));
    CFX_TRY(cfxi_rt_window_ints(c, PADDING, n, 0, NULL, "padding", padding));
    for (size_t d = 0; d < n; d++) {
        const size_t at = CFXI_SPATIAL - n + d;
        if (stride[at] < 1)
            return cfxi_fail(c, CFX_E_SHAPE, "strides should be greater than zero, but got "
                             "stride: %lld", (long long)stride[at]);
        if (!by_kernel)
            continue;
        int64_t usual = cfx_dim_sub(c->dims, x->size[x->ndim - n + d], 1, c->err);
        usual = cfx_dim_mul(c->dims, usual, stride[at], c->err);
        usual = cfx_dim_add(c->dims, usual, kernel[at] - 2 * padding[at], c->err);
        if (count == n)
            CFX_TRY(check_size(c, d, asked[d], usual, stride[at]));
        else
            out[d] = usual;
    }
    return c->err->status;
}

cfx_status cfxi_rule_max_unpool(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const size_t n = axes_of(c->op);
    int64_t sizes[CFX_MAX_DIMS];
    CFX_TRY(check_tensors(c, n));
    memcpy(sizes, x->size, sizeof sizes);
    CFX_TRY(read_sizes(c, n, sizes + x->ndim - n));
    for (size_t d = x->ndim - n; d < x->ndim; d++)
        if (sizes[d] < 0 && !cfx_dim_is_symbol(sizes[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "the result would have a negative size, %lld",
                             (long long)sizes[d]);
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, x->ndim));
    if (n == 2 && cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* ---- kernel -------------------------------------------------------------------------------- */

static cfx_status unpool(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *index, cfx_tensor *y)
{
    const size_t item = cfxi_tensor_itemsize(x);
    const int64_t *at = (const int64_t *)index->data;
    int64_t in = 1;
    int64_t out = 1;
    const size_t first = x->ndim - axes_of(c->op);
    for (size_t d = first; d < x->ndim; d++) {
        in *= x->size[d];
        out *= y->size[d];
    }
    memset(y->data, 0, (size_t)cfxi_tensor_numel(y) * item);
    for (int64_t i = 0, n = cfxi_tensor_numel(x); i < n; i++) {
        if (at[i] < 0 || at[i] >= out)
            return cfxi_fail(c, CFX_E_SHAPE, "Found an invalid max index: %lld (output volumes are "
                             "of size %s)", (long long)at[i],
                             cfxi_rt_shape_ints(y->size + first, x->ndim - first, "x").text);
        memcpy(y->data + (size_t)(i / in * out + at[i]) * item, x->data + (size_t)i * item, item);
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_max_unpool2d(cfxi_call *c)
{
    cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INPUT), type);
    cfx_tensor *index =
        x ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INDICES), CFX_DTYPE_INT64) : NULL;
    cfx_tensor *y = index ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = c->err->status;
    if (y)
        status = cfxi_tensor_numel(y) ? unpool(c, x, index, y) : CFX_OK;
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(index);
    cfx_tensor_release(x);
    return status;
}
cfx_status cfxi_kernel_max_unpool1d(cfxi_call *c) { return cfxi_kernel_max_unpool2d(c); }
cfx_status cfxi_kernel_max_unpool3d(cfxi_call *c) { return cfxi_kernel_max_unpool2d(c); }
