/* elementwise_impl.h - what element-wise rows do for the rows of other families. */
#ifndef CFXI_ELEMENTWISE_IMPL_H
#define CFXI_ELEMENTWISE_IMPL_H

#include "runtime/runtime_impl.h"

/* In a rule that subtracts arguments 0 and 1: bools cannot be, CFX_E_SHAPE. (binary.c) */
cfx_status cfxi_elementwise_check_subtraction(cfxi_call *c);

/* y[i] = exp(x[i]) for n contiguous elements, vectorised where the machine can; y may be x.
 * (map_blocks.c) */
void cfxi_elementwise_exp_f32(const cfx_runtime *rt, int64_t n, const float *x, float *y);

#endif
