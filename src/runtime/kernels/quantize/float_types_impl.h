/* float_types_impl.h - what quantize and dequantize share: types, scales by channel, and rows made
 * of others. (float_types.c) */
#ifndef CFXI_FLOAT_TYPES_IMPL_H
#define CFXI_FLOAT_TYPES_IMPL_H

#include "integer_impl.h"

/* The least and the greatest number of a type that values are quantized to; false for others. */
bool cfxi_integer_limits(cfx_dtype dtype, int64_t *least, int64_t *most);
/* Fails with PyTorch's words if `low` or `high` is not within the type. */
cfx_status cfxi_integer_check_range(cfxi_call *c, cfx_dtype dtype, int64_t low, int64_t high);
/* In a rule: quant_min, quant_max and dtype, arguments number `first` and on, fit together. */
cfx_status cfxi_integer_check_limits(cfxi_call *c, size_t first);
/* In a rule: argument i is a tensor of one element. */
cfx_status cfxi_integer_check_one(cfxi_call *c, size_t i, const char *name);
/* In a rule or kernel: arguments (input, scales, zero_points, axis) fit together. */
cfx_status cfxi_integer_check_channels(cfxi_call *c, size_t *axis);

/* A float32 on the stack as a tensor without dimensions, for cfxi_rt_loop alone. */
static inline cfx_tensor cfxi_integer_shown_number(float *value)
{
    return (cfx_tensor){.dtype = CFX_DTYPE_FLOAT32, .data = (char *)value};
}

/* Float32 scales and zero points of channels, as tensors that are broadcast along an axis, for
 * cfxi_rt_loop alone. One block of scratch, which begins at `scale`. */
typedef struct cfxi_integer_by_channel {
    int64_t n;  /* scales: one for each channel, or one for all */
    float *scale;
    float *zero;
    cfx_tensor scales, zeros;
} cfxi_integer_by_channel;
cfx_status cfxi_integer_by_channel_new(cfxi_call *c, size_t axis, cfxi_integer_by_channel *by);

/* ---- rows made of others -------------------------------------------------------------------- */

/* Argument i, one number for each channel, with sizes that are broadcast along `axis` of the
 * input. */
cfx_tensor *cfxi_integer_along(cfxi_call *c, size_t i, size_t axis);
/* In a kernel: result 0 becomes a copy of x, converted; x is released. */
cfx_status cfxi_integer_give(cfxi_call *c, cfx_tensor *x);

#endif
