/* retype.c - the same memory as elements of another type, and complex numbers as pairs. */
#include "runtime/view_impl.h"

static cfx_dtype real_type(cfx_dtype d)
{
    return d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
}

/* Elements of another size divide or join those along the last dimension. */
cfx_status cfxi_rule_view_dtype(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    v.dtype = cfxi_rt_dtype_or(c, 1, v.dtype);
    int64_t old = (int64_t)cfxi_tensor_itemsize(x);
    int64_t item = (int64_t)cfx_dtype_size(v.dtype);
    const char *from = cfx_dtype_name((cfx_dtype)x->dtype);
    const char *to = cfx_dtype_name(v.dtype);
    if (item == old)
        return cfxi_rt_view_result(c, 0, x, &v);
    if (v.ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "self.dim() cannot be 0 to view %s as %s (different element sizes)", from,
                         to);
    size_t last = v.ndim - 1;
    if (x->storage && v.stride[last] != old && !(item < old && v.size[last] == 1))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "self.stride(-1) must be 1 to view %s as %s (different element sizes), "
                         "but got %lld", from, to, (long long)(v.stride[last] / old));
    v.stride[last] = item;
    if (item < old) {
        v.size[last] = cfx_dim_mul(c->dims, v.size[last], old / item, c->err);
        return cfxi_rt_view_result(c, 0, x, &v);
    }
    int64_t ratio = item / old;
    if (!cfx_dim_is_symbol(v.size[last]) && v.size[last] % ratio != 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "self.size(-1) must be divisible by %lld to view %s as %s (different "
                         "element sizes), but got %lld", (long long)ratio, from, to,
                         (long long)v.size[last]);
    for (size_t i = 0; x->storage && i < last; i++)
        if (v.stride[i] % item != 0)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "self.stride(%zu) must be divisible by %lld to view %s as %s "
                             "(different element sizes), but got %lld", i, (long long)ratio, from,
                             to, (long long)(v.stride[i] / old));
    if (x->storage && (x->data - x->storage->data) % item != 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "self.storage_offset() must be divisible by %lld to view %s as %s "
                         "(different element sizes)", (long long)ratio, from, to);
    v.size[last] = cfx_dim_div(c->dims, v.size[last], ratio, c->err);
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* One part of complex numbers; of others `real` is the tensor itself. */
static cfx_status part(cfxi_call *c, int64_t which)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    v.dtype = real_type(v.dtype);
    v.offset = which * (int64_t)cfx_dtype_size(v.dtype);
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_real(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return part(c, 0);
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
    return CFX_OK;
}

cfx_status cfxi_rule_imag(cfxi_call *c)
{
    if (!cfx_dtype_is_complex((cfx_dtype)cfxi_rt_tensor(c, 0)->dtype))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "imag is not implemented for tensors with non-complex dtypes.");
    return part(c, 1);
}

cfx_status cfxi_rule_view_as_real(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    if (!cfx_dtype_is_complex(v.dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "view_as_real is only supported for complex tensors");
    v.dtype = real_type(v.dtype);
    CFX_TRY(cfxi_rt_view_insert(c, &v, v.ndim, 2, (int64_t)cfx_dtype_size(v.dtype)));
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_view_as_complex(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t item = (int64_t)cfxi_tensor_itemsize(x);
    if (v.dtype != CFX_DTYPE_FLOAT32 && v.dtype != CFX_DTYPE_FLOAT64)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "view_as_complex is only supported for half, float and double tensors, "
                         "but got a tensor of scalar type: %s", cfx_dtype_name(v.dtype));
    if (v.ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Input tensor must have one or more dimensions");
    size_t last = v.ndim - 1;
    if (!cfxi_rt_same_size(c, v.size[last], 2))
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor must have a last dimension of size 2");
    if (x->storage && v.stride[last] != item)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor must have a last dimension with stride 1");
    for (size_t i = 0; x->storage && i < last; i++)
        if (v.stride[i] % (2 * item) != 0)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Tensor must have a stride divisible by 2 for all but last dimension");
    if (x->storage && (x->data - x->storage->data) % (2 * item) != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor must have a storage_offset divisible by 2");
    v.dtype = v.dtype == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_COMPLEX128 : CFX_DTYPE_COMPLEX64;
    v.ndim = last;
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* ---- conj ---------------------------------------------------------------------------------- */

/* Complex numbers are copied: there is no bit that would conjugate them later. */
cfx_status cfxi_rule_conj(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
    return CFX_OK;
}

cfx_status cfxi_kernel_conj(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    if (y->storage)
        return CFX_OK;
    CFX_TRY(cfxi_rt_result_allocate(c, 0));
    CFX_TRY(cfxi_rt_copy(c->rt, y, x, c->err));
    int64_t n = 2 * cfxi_tensor_numel(y);  /* dense, whatever its order */
    if (y->dtype == CFX_DTYPE_COMPLEX64)
        for (int64_t i = 1; i < n; i += 2)
            ((float *)y->data)[i] = -((float *)y->data)[i];
    else
        for (int64_t i = 1; i < n; i += 2)
            ((double *)y->data)[i] = -((double *)y->data)[i];
    return CFX_OK;
}
