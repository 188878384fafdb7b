/* loss_impl.h - what the losses share. */
#ifndef CFXI_LOSS_IMPL_H
#define CFXI_LOSS_IMPL_H

#include "runtime/kernels/reduce/reduce_impl.h"

typedef enum cfxi_reduce_how {
    CFXI_REDUCE_NONE,
    CFXI_REDUCE_MEAN,
    CFXI_REDUCE_SUM,
    CFXI_REDUCE_BATCHMEAN,  /* the sum divided by the first size */
    CFXI_REDUCE_UNKNOWN
} cfxi_reduce_how;

/* What an integer type makes of a product that is out of its range; others leave it as it is. */
static inline double cfxi_loss_wrapped(cfx_dtype dtype, double d)
{
    int64_t memory;
    if (!cfx_dtype_is_integer(dtype))
        return d;
    cfxi_tensor_store_float(dtype, &memory, d);
    return (double)cfxi_tensor_load_int(dtype, &memory);
}

/* An argument `reduction`: 0, 1, 2 or PyTorch's words. */
cfxi_reduce_how cfxi_loss_reduction_of(const cfxi_call *c, size_t arg);
/* CFX_E_VALUE if it is none of them. */
cfx_status cfxi_loss_check_reduction(cfxi_call *c, size_t arg);
/* Result 0 is `all`, one loss each, reduced; takes over the reference. NULL: c->err is set. */
cfx_status cfxi_loss_reduce_losses(cfxi_call *c, cfx_tensor *all, cfxi_reduce_how how);

#endif
