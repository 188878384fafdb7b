/* copy.c - elements from one tensor to another, broadcast and converted. */
#include "runtime_impl.h"

/* Plain, one element at a time; integers and floats go through the wider type of their own kind. */
static void copy_element(cfx_dtype to, char *dst, cfx_dtype from, const char *src)
{
    if (to == from) {
        memmove(dst, src, cfx_dtype_size(to));
    } else if (cfx_dtype_is_complex(from)) {
        double both[2];
        cfxi_load_complex(from, src, both);
        cfxi_store_complex(to, dst, both);
    } else if (cfx_dtype_is_float(from)) {
        cfxi_store_float(to, dst, cfxi_load_float(from, src));
    } else {
        cfxi_store_int(to, dst, cfxi_load_int(from, src));
    }
}

cfx_status cfxi_copy(cfx_runtime *rt, cfx_tensor *dst, const cfx_tensor *src, cfx_error *err)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    int64_t step[CFX_MAX_DIMS] = {0};
    (void)rt;
    if (src->ndim > dst->ndim)
        return cfx_error_set(err, CFX_E_SHAPE, "a copy of %u dimensions to %u", src->ndim,
                             dst->ndim);
    size_t skip = (size_t)(dst->ndim - src->ndim);
    for (size_t d = skip; d < dst->ndim; d++) {
        if (src->size[d - skip] != dst->size[d] && src->size[d - skip] != 1)
            return cfx_error_set(err, CFX_E_SHAPE, "a copy of size %lld to size %lld",
                                 (long long)src->size[d - skip], (long long)dst->size[d]);
        step[d] = src->size[d - skip] == 1 ? 0 : src->stride[d - skip];
    }
    const char *from = src->data;
    char *to = dst->data;
    for (int64_t n = cfxi_numel(dst); n > 0; n--) {
        copy_element((cfx_dtype)dst->dtype, to, (cfx_dtype)src->dtype, from);
        for (size_t d = dst->ndim; d-- > 0;) {
            to += dst->stride[d];
            from += step[d];
            if (++at[d] < dst->size[d])
                break;
            to -= dst->stride[d] * dst->size[d];
            from -= step[d] * dst->size[d];
            at[d] = 0;
        }
    }
    return CFX_OK;
}

cfx_tensor *cfxi_contiguous(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    if (t->dtype == dtype && cfx_tensor_is_contiguous(t))
        return cfx_tensor_retain((cfx_tensor *)t);
    cfx_tensor *copy = cfx_tensor_new(dtype, t->size, t->ndim, c->rt->allocator, c->err);
    if (copy && cfxi_copy(c->rt, copy, t, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        return NULL;
    }
    return copy;
}
