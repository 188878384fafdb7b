/* norm_impl.h - what the kernels of normalisation share: operands in the type of computation. */
#ifndef CFXI_NORM_IMPL_H
#define CFXI_NORM_IMPL_H

#include "runtime/kernels/reduce/float_rows.h"
#include "runtime/spatial.h"

/* Arguments and results of a normalisation, contiguous, as float32 or float64. */
typedef struct cfxi_norm {
    cfxi_float_rows rows;
    cfx_tensor *x;
    cfx_tensor *w;  /* or NULL */
    cfx_tensor *b;
    cfx_tensor *y;
    int64_t item;   /* bytes of an element */
} cfxi_norm;

/* Of argument 0, the weight and bias at these arguments (as they come, or NULL), and result 0. With
 * `any_layout` x and y keep their strides if x has the type already. */
cfx_status cfxi_norm_open(cfxi_call *c, cfxi_norm *n, const cfx_tensor *weight,
                          const cfx_tensor *bias, bool any_layout);
/* Brings the result home, unless `status` is a failure, and releases all. */
cfx_status cfxi_norm_close(cfxi_call *c, cfxi_norm *n, cfx_status status);

/* Whether argument 0 and result 0 are dense, with channels last, in the type of computation. */
bool cfxi_norm_lies_last(const cfxi_call *c);

/* Refuses what is no float (unless `complex_too`), and a weight and bias of another type: of
 * float32 they may be where x has 16 bits. `*stats` (may be NULL) is the type of statistics. */
cfx_status cfxi_norm_types(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *const *params,
                           size_t n, cfx_dtype *stats);

static inline void *cfxi_norm_at(const cfxi_norm *n, const cfx_tensor *t, int64_t i)
{
    return t ? t->data + i * n->item : NULL;
}
static inline double cfxi_norm_number(const cfxi_norm *n, const cfx_tensor *t, int64_t i,
                                      double otherwise)
{
    return t ? cfxi_tensor_load_float(n->rows.type, t->data + i * n->item) : otherwise;
}
/* Element i of a vector with any type and stride. */
static inline void *cfxi_norm_vector_at(const cfx_tensor *t, int64_t i)
{
    return t->data + i * t->stride[t->ndim - 1];
}

#endif
