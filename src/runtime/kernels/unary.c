/* unary.c - functions of one tensor, element by element. */
#include "../runtime_impl.h"

/* The type and layout of the argument. */
cfx_status cfxi_rule_same(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_tensor(c, 0);
    return cfxi_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

cfx_status cfxi_kernel_relu(cfxi_call *c)
{
    cfx_tensor *y = cfxi_result_at(c, 0);
    cfx_tensor *x = cfxi_contiguous(c, cfxi_tensor(c, 0), CFX_DTYPE_FLOAT32);
    if (!x)
        return c->err->status;
    cfx_status status = CFX_OK;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, x->size, x->ndim, c->rt->allocator, c->err);
    if (t) {
        const float *from = (const float *)x->data;
        float *to = (float *)t->data;
        for (int64_t i = 0, n = cfxi_numel(x); i < n; i++)
            to[i] = from[i] < 0 ? 0 : from[i];
        status = cfxi_copy(c->rt, y, t, c->err);
    } else {
        status = c->err->status;
    }
    cfx_tensor_release(t);
    cfx_tensor_release(x);
    return status;
}
