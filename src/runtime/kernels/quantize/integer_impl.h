/* integer_impl.h - what the rows of integer tensors share: their arguments, and how results are
 * rounded. docs/quantization.md is the law. */
#ifndef CFXI_INTEGER_IMPL_H
#define CFXI_INTEGER_IMPL_H

#include "runtime/runtime_impl.h"
#include "runtime/spatial.h"

#include <math.h>

/* ---- results ------------------------------------------------------------------------------- */

/* What a result in units of its scale becomes. */
typedef struct cfxi_integer_range {
    float low, high;  /* less the zero point */
    int32_t zero;
} cfxi_integer_range;

/* The integer of `r`, float32. NaN becomes the least one. */
static inline int32_t cfxi_integer_of(float r, cfxi_integer_range range)
{
    r = r > range.low ? r : range.low;
    r = r < range.high ? r : range.high;
    return (int32_t)rintf(r) + range.zero;
}

/* Of a row whose arguments (scale, zero, low, high, dtype) begin with number `first`. */
static inline cfxi_integer_range cfxi_integer_range_of(const cfxi_call *c, size_t first)
{
    const int64_t zero = cfxi_rt_int(c, first + 1);
    return (cfxi_integer_range){.low = (float)(cfxi_rt_int(c, first + 2) - zero),
                                .high = (float)(cfxi_rt_int(c, first + 3) - zero),
                                .zero = (int32_t)zero};
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* An integer operand: 0..255 or -128..127, less its zero point. */
typedef struct cfxi_integer_operand {
    const cfx_tensor *t;
    double scale;
    int32_t zero;
} cfxi_integer_operand;

/* Of a row whose arguments (tensor, scale, zero) begin with number `first`. */
static inline cfxi_integer_operand cfxi_integer_operand_of(const cfxi_call *c, size_t first)
{
    return (cfxi_integer_operand){cfxi_rt_tensor(c, first), cfxi_rt_float(c, first + 1),
                                  (int32_t)cfxi_rt_int(c, first + 2)};
}

/* An element of int8 (`is_signed`) or uint8. */
static inline int32_t cfxi_integer_load(bool is_signed, const void *at)
{
    return is_signed ? *(const int8_t *)at : *(const uint8_t *)at;
}

static inline bool cfxi_integer_is_signed(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_INT8;
}

/* In a rule: a tensor of uint8 or int8, its scale, positive and finite, and its zero point, within
 * the type; `name` is for messages. (integer_elements.c) */
cfx_status cfxi_integer_check_operand(cfxi_call *c, size_t first, const char *name);
/* In a rule: scale, zero, low, high and dtype of the result. `floats`: float32 may be asked for. */
cfx_status cfxi_integer_check_result(cfxi_call *c, size_t first, bool floats);
/* In a rule: fails if a sum of `count` terms of at most `most` may leave 32 bits; of a symbol
 * nobody knows. */
cfx_status cfxi_integer_check_sum(cfxi_call *c, int64_t count, int64_t most);
/* In a rule: the result is of that type and has the sizes of result 0 of `op`, for which `args`
 * stand in; channels last if tensor `like` has them last. */
cfx_status cfxi_integer_result_as(cfxi_call *c, cfx_dtype dtype, cfx_operator op,
                                  const cfx_datum *args, size_t n, const cfx_tensor *like);
/* A tensor without elements, of these sizes and another type; NULL with c->err set. */
cfx_tensor *cfxi_integer_stand_in(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype);

/* The scale and zero point of integers from `first` to `last` for float32 numbers from `low` to
 * `high`, with 0 among them, as choose_qparams finds them. (choose_scale.c) */
void cfxi_integer_choose(float low, float high, int64_t first, int64_t last, float eps,
                         float *scale, int64_t *zero);

/* ---- weights of linear layers and convolutions ---------------------------------------------- */

/* For each output channel: r = fma(sum, factor, bias); `zero` is the weight's. One block of
 * scratch, which begins at `factor`. */
typedef struct cfxi_integer_channels {
    float *factor;
    float *bias;
    int32_t *zero;
} cfxi_integer_channels;

/* Arguments weight, weight_scale, weight_zero and bias are number 3 to 6; `n` output channels.
 * Integer zero points of the weight's type are checked by cfxi_integer_channels_new. */
cfx_status cfxi_integer_check_weight(cfxi_call *c, int64_t n);
/* The greatest product of an input and a weight: 255 * 255, or 255 * 128. */
static inline int64_t cfxi_integer_most_product(bool is_signed, bool has_zero)
{
    return is_signed && !has_zero ? 255 * 128 : 255 * 255;
}
/* `scale` is the input's, `out` the result's. factor is NULL if it fails. */
cfx_status cfxi_integer_channels_new(cfxi_call *c, int64_t n, double scale, double out,
                                     cfxi_integer_channels *ch);

/* A result of a product: the integer of r, or r itself. */
typedef struct cfxi_integer_store {
    bool floats;
    cfxi_integer_range range;
} cfxi_integer_store;
static inline void cfxi_integer_put(const cfxi_integer_store *s, void *at, float r)
{
    if (s->floats)
        *(float *)at = r;
    else
        *(uint8_t *)at = (uint8_t)cfxi_integer_of(r, s->range);
}
static inline cfxi_integer_store cfxi_integer_store_of(const cfxi_call *c, size_t first)
{
    if (cfxi_rt_result_at(c, 0)->dtype == CFX_DTYPE_FLOAT32)
        return (cfxi_integer_store){.floats = true};  /* the range may be anything */
    return (cfxi_integer_store){false, cfxi_integer_range_of(c, first)};
}
/* The scale of the result: 1 if it is float32. */
static inline double cfxi_integer_scale_of(const cfxi_call *c, size_t first)
{
    return cfxi_rt_result_at(c, 0)->dtype == CFX_DTYPE_FLOAT32 ? 1 : cfxi_rt_float(c, first);
}

#endif
