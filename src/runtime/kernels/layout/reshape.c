/* reshape.c - other sizes for the same elements: a view where strides allow it, else a copy. */
#include "runtime/spatial.h"
#include "runtime/view_impl.h"

/* Whether an image with its channels innermost, which has them in several dimensions, gets them in
 * one: shuffled channels. */
static bool merges_channels(const cfx_tensor *x, const int64_t *sizes, size_t n)
{
    if (n != 4 || x->ndim <= n || sizes[0] != x->size[0] || sizes[2] != x->size[x->ndim - 2] ||
        sizes[3] != x->size[x->ndim - 1])
        return false;
    for (size_t i = 1; i + 2 < x->ndim; i++)
        if (x->stride[i] >= x->stride[x->ndim - 1] || x->stride[i] >= x->stride[x->ndim - 2])
            return false;
    return true;
}

/* Result 0 has these sizes; it shares memory if that can be, else the kernel copies. */
static cfx_status reshaped(cfxi_call *c, cfxi_view *v, const int64_t *sizes, size_t n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfxi_rt_view_reshape(v, sizes, n))
        return cfxi_rt_view_result(c, 0, x, v);
    CFX_TRY(cfxi_rt_result(c, 0, v->dtype, sizes, n));
    if (c->planner && c->planner->any_layout && merges_channels(x, sizes, n))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* The elements of `x`, in its order, to the new tensor `y`. */
static cfx_status copy_in_order(cfxi_call *c, cfx_tensor *y, const cfx_tensor *x)
{
    cfxi_view v = cfxi_rt_view_of(y);
    cfx_tensor as_x;
    if (!cfxi_rt_view_reshape(&v, x->size, x->ndim))  /* y is dense, or its channels are divided */
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "no view of the result has the input's sizes");
    cfxi_rt_view_borrow(&as_x, y, &v);
    return cfxi_rt_copy(c->rt, &as_x, x, c->err);
}

/* For all rows here: the copy, if the rule did not find a view. */
cfx_status cfxi_kernel_reshape(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    if (y->storage)
        return CFX_OK;
    CFX_TRY(cfxi_rt_result_allocate(c, 0));
    return copy_in_order(c, y, cfxi_rt_tensor(c, 0));
}
cfx_status cfxi_kernel_reshape_as(cfxi_call *c) { return cfxi_kernel_reshape(c); }
cfx_status cfxi_kernel_flatten(cfxi_call *c) { return cfxi_kernel_reshape(c); }
cfx_status cfxi_kernel_unflatten(cfxi_call *c) { return cfxi_kernel_reshape(c); }
cfx_status cfxi_kernel_ravel(cfxi_call *c) { return cfxi_kernel_reshape(c); }

cfx_status cfxi_rule_reshape(cfxi_call *c)
{
    cfxi_view v = cfxi_rt_view_of(cfxi_rt_tensor(c, 0));
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, sizes, &n));
    CFX_TRY(cfxi_rt_infer_sizes(c, &v, sizes, n));
    return reshaped(c, &v, sizes, n);
}

cfx_status cfxi_rule_reshape_as(cfxi_call *c)
{
    const cfx_tensor *other = cfxi_rt_tensor(c, 1);
    cfxi_view v = cfxi_rt_view_of(cfxi_rt_tensor(c, 0));
    int64_t sizes[CFX_MAX_DIMS];
    for (size_t i = 0; i < other->ndim; i++)
        sizes[i] = other->size[i];
    CFX_TRY(cfxi_rt_infer_sizes(c, &v, sizes, other->ndim));
    return reshaped(c, &v, sizes, other->ndim);
}

/* ---- views only ---------------------------------------------------------------------------- */

static cfx_status viewed(cfxi_call *c, int64_t *sizes, size_t n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    CFX_TRY(cfxi_rt_infer_sizes(c, &v, sizes, n));
    if (!cfxi_rt_view_reshape(&v, sizes, n) && x->storage)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "view size is not compatible with input tensor's size and stride (at "
                         "least one dimension spans across two contiguous subspaces). Use "
                         ".reshape(...) instead.");
    v.ndim = n;
    memcpy(v.size, sizes, n * sizeof *sizes);
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_view(cfxi_call *c)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, sizes, &n));
    return viewed(c, sizes, n);
}

cfx_status cfxi_rule_view_as(cfxi_call *c)
{
    const cfx_tensor *other = cfxi_rt_tensor(c, 1);
    int64_t sizes[CFX_MAX_DIMS];
    for (size_t i = 0; i < other->ndim; i++)
        sizes[i] = other->size[i];
    return viewed(c, sizes, other->ndim);
}

/* ---- joining and dividing dimensions ------------------------------------------------------- */

/* Dimensions first..last become one. A tensor without dimensions gets one. */
static cfx_status flattened(cfxi_call *c, size_t first, size_t last)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t sizes[CFX_MAX_DIMS];
    size_t n = 0;
    if (v.ndim > 0 && first == last) {
        cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
        return CFX_OK;
    }
    for (size_t i = 0; i < first; i++)
        sizes[n++] = v.size[i];
    sizes[n++] = v.ndim ? cfxi_rt_numel_dim(c, v.size + first, last - first + 1) : 1;
    for (size_t i = last + 1; i < v.ndim; i++)
        sizes[n++] = v.size[i];
    return reshaped(c, &v, sizes, n);
}

cfx_status cfxi_rule_flatten(cfxi_call *c)
{
    size_t ndim = cfxi_rt_tensor(c, 0)->ndim;
    size_t first;
    size_t last;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), ndim, &first));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), ndim, &last));
    if (first > last)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "flatten() has invalid args: start_dim cannot come after end_dim");
    return flattened(c, first, last);
}

cfx_status cfxi_rule_ravel(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t n = cfxi_rt_numel_dim(c, x->size, x->ndim);
    if (!cfx_tensor_is_contiguous(x))  /* also where a view would do, as PyTorch has it */
        return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, &n, 1);
    cfxi_view v = cfxi_rt_view_of(x);
    return reshaped(c, &v, &n, 1);  /* another tensor, even if it has one dimension already */
}

/* Whether the sizes (one of them may be -1) fill a dimension of `size`. */
static cfx_status fill_dim(cfxi_call *c, int64_t size, int64_t *sizes, size_t n, size_t dim)
{
    char text[CFXI_SIZES_TEXT];
    cfx_error why = {0};
    cfx_error *err = c->err;
    cfxi_view v = {.ndim = 1, .size = {size}};
    cfxi_rt_sizes_text(sizes, n, text);
    c->err = &why;
    cfx_status status = cfxi_rt_infer_sizes(c, &v, sizes, n);
    c->err = err;
    if (status == CFX_OK)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE,
                     "unflatten: Provided sizes %s don't multiply up to the size of dim %zu (%lld) "
                     "in the input tensor", text, dim, (long long)size);
}

cfx_status cfxi_rule_unflatten(cfxi_call *c)
{
    cfxi_view v = cfxi_rt_view_of(cfxi_rt_tensor(c, 0));
    int64_t inner[CFX_MAX_DIMS];
    int64_t sizes[2 * CFX_MAX_DIMS];
    size_t dim;
    size_t num_inner;
    size_t n = 0;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &dim));
    CFX_TRY(cfxi_rt_ints(c, 2, inner, &num_inner));
    if (num_inner == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "unflatten: sizes must be non-empty");
    CFX_TRY(fill_dim(c, v.ndim ? v.size[dim] : 1, inner, num_inner, dim));
    for (size_t i = 0; i < dim; i++)
        sizes[n++] = v.size[i];
    for (size_t i = 0; i < num_inner; i++)
        sizes[n++] = inner[i];
    for (size_t i = dim + 1; i < v.ndim; i++)
        sizes[n++] = v.size[i];
    if (n > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the tensor would have %zu dimensions; cfx supports up to "
                         "%d", n,
                         CFX_MAX_DIMS);
    return reshaped(c, &v, sizes, n);
}
