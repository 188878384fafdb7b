/* norm_backward_impl.h - what the gradients of normalisations share: (gradient, input, ..., mask)
 * give those of input, weight and bias. (norm_backward.c) */
#ifndef CFXI_NORM_BACKWARD_IMPL_H
#define CFXI_NORM_BACKWARD_IMPL_H

#include "norm_impl.h"

/* Whether item i of the mask asks for result i. */
bool cfxi_norm_wants(const cfxi_call *c, size_t mask, size_t i);
/* In a rule: refuses types that are no floats, other sizes, and a mask of other than 3 items. */
cfx_status cfxi_norm_check_gradient(cfxi_call *c, size_t mask);
/* In a rule: the three results; those of weight and bias have these sizes. */
cfx_status cfxi_norm_gradient_results(cfxi_call *c, size_t mask, const cfx_tensor *weight,
                                      const int64_t *sizes, size_t ndim);
/* In a kernel: element `at` of result i, unless it is None. */
void cfxi_norm_store(const cfxi_call *c, size_t i, int64_t at, double value);

#endif
