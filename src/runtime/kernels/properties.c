/* properties.c - what a tensor is: its sizes, its type. Rules alone: no element is looked at. */
#include "../runtime_impl.h"

/* An INT that may be a symbol. */
static cfx_datum size_datum(int64_t size)
{
    cfx_datum d = cfx_datum_int(size);
    d.symbolic = cfx_dim_is_symbol(size);
    return d;
}

cfx_status cfxi_rule_numel(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_tensor(c, 0);
    int64_t n = 1;
    for (size_t i = 0; i < t->ndim; i++)
        n = cfx_dim_mul(c->dims, n, t->size[i], c->err);
    cfxi_result_datum(c, 0, size_datum(n));
    return CFX_OK;
}
