/* write_out.c - results that go to a tensor that is there already: out=. */
#include "runtime/runtime_impl.h"

enum { OUT, RESULT, SAME_DTYPE, RESIZE };

/* Nothing is assumed of symbols here: an `out` of another size is not yet a mistake. */
static bool has_sizes_of(const cfx_tensor *a, const cfx_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0;
}

static bool is_empty(const cfx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++)
        if (t->size[i] == 0)
            return true;
    return false;
}

static cfx_status check_sizes(cfxi_call *c, const cfx_tensor *out, const cfx_tensor *result)
{
    bool fits = out->ndim == result->ndim;
    for (size_t i = 0; fits && i < out->ndim; i++)
        fits = cfxi_rt_same_size(c, out->size[i], result->size[i]);
    if (fits)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, is_empty(out)
                     ? "'out' has a different shape from the result and is an input, which cannot "
                       "be resized; pass a tensor of the result's shape"
                     : "'out' has a different shape from the result; pass a tensor of the result's "
                       "shape");
}

cfx_status cfxi_rule_write_out(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_tensor(c, OUT);
    const cfx_tensor *result = cfxi_rt_tensor(c, RESULT);
    const cfx_dtype type = cfx_tensor_dtype(out);
    if (cfxi_rt_bool(c, SAME_DTYPE) && out->dtype != result->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected out tensor to have dtype %s, but got %s instead",
                         cfx_dtype_name(cfx_tensor_dtype(result)), cfx_dtype_name(type));
    CFX_TRY(cfxi_rt_check_cast(c, cfx_tensor_dtype(result), type));
    CFX_TRY(cfxi_rt_check_written(c, out));
    if (cfxi_rt_bool(c, RESIZE) && is_empty(out) && !has_sizes_of(out, result))
        return cfxi_rt_result_like(c, 0, type, result);
    CFX_TRY(check_sizes(c, out, result));
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(out)));
    return CFX_OK;
}

cfx_status cfxi_kernel_write_out(cfxi_call *c)
{
    if (cfxi_rt_result_at(c, 0) != cfxi_rt_tensor(c, OUT))
        CFX_TRY(cfxi_rt_result_allocate(c, 0));
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, RESULT), c->err);
}
