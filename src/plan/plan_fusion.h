/* plan_fusion.h - a kernel in the making: what plan_fuse.c begins, and plan_before.c adds to. */
#ifndef CFXI_PLAN_FUSION_H
#define CFXI_PLAN_FUSION_H

#include "plan_groups.h"

typedef struct cfxi_fuser {
    cfxi_plan *plan;
    cfx_runtime *rt;
    const cfxi_plan_how *how;
    cfxi_groups groups;
    cfxi_bf16 bf16;
    cfxi_int8 int8;
    cfx_error *err;
} cfxi_fuser;

enum { CFXI_FUSED_STEPS = 24 };  /* that become one */

/* A kernel in the making. */
typedef struct cfxi_fusion {
    cfxi_problem problem;
    const cfx_tensor *w;
    cfx_tensor *tensors[3];  /* of weights of 8 or 4 bits: codes, scales, zero points or NULL */
    uint32_t x, out;         /* numbers of tensors */
    uint32_t steps[CFXI_FUSED_STEPS];  /* it stands for these, in the place of the last */
    size_t num_steps;
    uint32_t operands[CFXI_MOST_OPERANDS];
    size_t num_operands;
    cfxi_chain *chain;       /* or NULL */
    float *bias;             /* of all columns or channels: NULL if there is none */
    float *scale;
    int32_t *w_zero;         /* of integers, likewise */
    int64_t columns;
    float *factors, *shifts; /* of x, k of each, in one block: or NULL */
} cfxi_fusion;

static inline bool cfxi_plan_is_none(const cfxi_step *s, size_t i)
{
    return i >= s->num_args || s->args[i].kind == CFX_DATUM_NONE ||
           s->args[i].kind == CFX_DATUM_INVALID;
}

/* A tensor whose elements are known while planning, */
static inline bool cfxi_plan_is_known(const cfx_tensor *t)
{
    return t && cfxi_rt_can_read(t) && cfxi_tensor_has_whole_strides(t);
}
/* and one of float32. */
static inline bool cfxi_plan_is_constant(const cfx_tensor *t)
{
    return cfxi_plan_is_known(t) && t->dtype == CFX_DTYPE_FLOAT32;
}

static inline float cfxi_plan_element_of(const cfx_tensor *t, int64_t i)
{
    return *(const float *)(const void *)(t->data + i * t->stride[0]);
}

/* Elements from row to row of a matrix, which has any number of leading dimensions; 0 if the tensor
 * is none. */
static inline int64_t cfxi_plan_row_of(const cfx_tensor *t)
{
    return t->ndim > 0 ? cfxi_rt_row_step(t, t->ndim - 1) / (int64_t)cfxi_tensor_itemsize(t) : 0;
}

/* A norm of `n` channels with known statistics, as a factor and a sum for each; false if it is
 * another. */
bool cfxi_plan_find_norm(const cfxi_step *s, int64_t n, double *scale, double *bias);

/* A product or convolution of integers with constant weights. (plan_integers.c) */
bool cfxi_plan_begin_integers(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *s);
/* One whose input becomes integers in each run. (plan_integers.c) */
bool cfxi_plan_begin_dynamic(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *s);
/* Takes over the sum that follows one, if it can. (plan_integers.c) */
bool cfxi_plan_take_integer_sum(const cfxi_fuser *f, cfxi_fusion *u);
/* Gives products of two matrices of integers to their kernel. (plan_integers.c) */
cfx_status cfxi_plan_integer_matmuls(cfxi_fuser *f);

/* Takes over what comes before the step `first`, as far as the kernel can. */
void cfxi_plan_fuse_before(const cfxi_fuser *f, cfxi_fusion *u, uint32_t first);

#endif
