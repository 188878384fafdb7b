/* to_integers.c - quantize, by tensor and by channel: round(x * (1 / scale)) + zero, limited.
 *
 * As PyTorch computes it: in float32, with the reciprocal of the scale. NaN becomes what a
 * conversion to the type makes of it. Scales and zero points of other types go through PyTorch's
 * promotion: other rows compute that. */
#include "byte_rows.h"
#include "float_types_impl.h"

/* ---- rules --------------------------------------------------------------------------------- */

enum { INPUT, SCALE, ZERO };

static cfx_status check_floats(cfxi_call *c)
{
    const cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    if (dtype != CFX_DTYPE_FLOAT32 && dtype != CFX_DTYPE_FLOAT16 && dtype != CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_TYPE, "Expecting input to have dtype torch.float32, but got "
                         "dtype: %s", cfx_dtype_name(dtype));
    return CFX_OK;
}

static cfx_status result_like_input(cfxi_call *c, size_t dtype)
{
    return cfxi_rt_result_like(c, 0, (cfx_dtype)c->args[dtype].as.i, cfxi_rt_tensor(c, INPUT));
}

static cfx_status check_scale(cfxi_call *c, double scale)
{
    if (scale == 0)
        return cfxi_fail(c, CFX_E_VALUE, "the scale is 0");
    return CFX_OK;
}

cfx_status cfxi_rule_quantize_per_tensor(cfxi_call *c)
{
    CFX_TRY(check_floats(c));
    CFX_TRY(cfxi_integer_check_limits(c, 3));
    if (!c->args[SCALE].symbolic)
        CFX_TRY(check_scale(c, cfxi_rt_float(c, SCALE)));
    return result_like_input(c, 5);
}

cfx_status cfxi_rule_quantize_per_tensor_tensor(cfxi_call *c)
{
    CFX_TRY(check_floats(c));
    CFX_TRY(cfxi_integer_check_one(c, ZERO, "zero_point"));
    CFX_TRY(cfxi_integer_check_one(c, SCALE, "scale"));
    CFX_TRY(cfxi_integer_check_limits(c, 3));
    return result_like_input(c, 5);
}

cfx_status cfxi_rule_quantize_per_tensor_tensor2(cfxi_call *c)
{
    int64_t least, most;
    CFX_TRY(check_floats(c));
    CFX_TRY(cfxi_integer_check_one(c, ZERO, "zero_point"));
    CFX_TRY(cfxi_integer_check_one(c, SCALE, "scale"));
    CFX_TRY(cfxi_integer_check_one(c, 3, "quant_min"));
    CFX_TRY(cfxi_integer_check_one(c, 4, "quant_max"));
    if (!cfxi_integer_limits((cfx_dtype)c->args[5].as.i, &least, &most))
        return cfxi_fail(c, CFX_E_VALUE, "Unsupported dtype: %s",
                         cfx_dtype_name((cfx_dtype)c->args[5].as.i));
    return result_like_input(c, 5);
}

cfx_status cfxi_rule_quantize_per_channel(cfxi_call *c)
{
    size_t axis;
    CFX_TRY(check_floats(c));
    CFX_TRY(cfxi_integer_check_channels(c, &axis));
    CFX_TRY(cfxi_integer_check_limits(c, 4));
    return result_like_input(c, 6);
}

/* ---- rows ---------------------------------------------------------------------------------- */

enum { BLOCK = 256, GRAIN = 8192 };

typedef struct to_integers {
    const cfxi_integer_rows *rows;  /* of float32 to 8-bit integers, with `by`; or NULL */
    cfxi_integer_quantizing by;
    cfx_isa isa;
    cfx_dtype from, to;
    float low, high;
} to_integers;

/* One scale and zero point for all. */
static void round_all(const to_integers *q, int64_t n, float *x, float inverse, float zero)
{
    for (int64_t i = 0; i < n; i++) {
        float y = rintf(x[i] * inverse) + zero;
        y = y < q->low ? q->low : y;  /* NaN stays */
        x[i] = y > q->high ? q->high : y;
    }
}

static void round_each(const to_integers *q, int64_t n, float *x, const char *inverse,
                       int64_t inverse_step, const char *zero, int64_t zero_step)
{
    for (int64_t i = 0; i < n; i++) {
        float y = rintf(x[i] * *(const float *)(inverse + i * inverse_step)) +
                  *(const float *)(zero + i * zero_step);
        y = y < q->low ? q->low : y;
        x[i] = y > q->high ? q->high : y;
    }
}

/* The vectors clamp first: that is the same where all numbers are small and whole. */
bool cfxi_integer_quantizing_of(cfx_dtype dtype, float inverse, float zero, float low, float high,
                                cfxi_integer_quantizing *q)
{
    const float most = 1 << 20;
    const float nan = NAN;
    uint8_t byte;
    if ((dtype != CFX_DTYPE_UINT8 && dtype != CFX_DTYPE_INT8) || !(fabsf(zero) < most) ||
        rintf(zero) != zero || rintf(low) != low || rintf(high) != high || !(low <= high))
        return false;
    cfxi_rt_convert(CFX_ISA_PLAIN, dtype, &byte, CFX_DTYPE_FLOAT32, &nan, 1);
    *q = (cfxi_integer_quantizing){inverse, {low - zero, high - zero, (int32_t)zero},
                                   cfxi_integer_load(dtype == CFX_DTYPE_INT8, &byte)};
    return true;
}

/* The operands: result, input, reciprocals of scales and zero points, float32. */
static void quantize_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const to_integers *q = ctx;
    float x[BLOCK];
    float side[BLOCK];
    const size_t item = cfx_dtype_size(q->from);
    const size_t size = cfx_dtype_size(q->to);
    if (q->rows && step[0] == 1 && step[1] == (int64_t)sizeof(float)) {
        q->rows->quantize(n, (const float *)at[1], &q->by, (uint8_t *)at[0]);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = n - i < BLOCK ? n - i : BLOCK;
        cfxi_rt_move(item, m, at[1] + i * step[1], step[1], (char *)side, (int64_t)item);
        cfxi_rt_convert(q->isa, CFX_DTYPE_FLOAT32, x, q->from, side, m);
        if (step[2] == 0 && step[3] == 0)
            round_all(q, m, x, *(const float *)at[2], *(const float *)at[3]);
        else
            round_each(q, m, x, at[2] + i * step[2], step[2], at[3] + i * step[3], step[3]);
        cfxi_rt_convert(q->isa, q->to, side, CFX_DTYPE_FLOAT32, x, m);
        cfxi_rt_move(size, m, (const char *)side, (int64_t)size, at[0] + i * step[0], step[0]);
    }
}

static void quantize(cfxi_call *c, double low, double high, const cfx_tensor *inverse,
                     const cfx_tensor *zero)
{
    const cfx_tensor *operands[] = {cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, INPUT), inverse,
                                    zero};
    to_integers q = {.isa = c->rt->isa, .from = (cfx_dtype)operands[1]->dtype,
                     .to = (cfx_dtype)operands[0]->dtype, .low = (float)low, .high = (float)high};
    if (!c->rt->reference && q.from == CFX_DTYPE_FLOAT32 && cfxi_tensor_numel(inverse) == 1 &&
        cfxi_integer_quantizing_of(q.to, *(const float *)inverse->data, *(const float *)zero->data,
                                   q.low, q.high, &q.by))
        q.rows = cfxi_integer_rows_of(c->rt->isa);
    cfxi_rt_loop(c->rt, operands, 4, GRAIN, quantize_row, &q);
}

static cfx_status by_tensor(cfxi_call *c, double scale, double zero, double low, double high)
{
    float inverse = (float)(1 / scale);
    float zeros = (float)zero;
    const cfx_tensor inverse_shown = cfxi_integer_shown_number(&inverse);
    const cfx_tensor zero_shown = cfxi_integer_shown_number(&zeros);
    CFX_TRY(check_scale(c, scale));
    quantize(c, low, high, &inverse_shown, &zero_shown);
    return CFX_OK;
}

cfx_status cfxi_kernel_quantize_per_tensor(cfxi_call *c)
{
    return by_tensor(c, cfxi_rt_float(c, SCALE), (double)cfxi_rt_int(c, ZERO),
                     (double)cfxi_rt_int(c, 3), (double)cfxi_rt_int(c, 4));
}

static double number_at(const cfxi_call *c, size_t i)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    return cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data);
}

cfx_status cfxi_kernel_quantize_per_tensor_tensor(cfxi_call *c)
{
    return by_tensor(c, number_at(c, SCALE), number_at(c, ZERO), (double)cfxi_rt_int(c, 3),
                     (double)cfxi_rt_int(c, 4));
}

/* quant_min and quant_max may be floats, as in PyTorch; then their whole part is compared. */
cfx_status cfxi_kernel_quantize_per_tensor_tensor2(cfxi_call *c)
{
    const double low = number_at(c, 3);
    const double high = number_at(c, 4);
    const double most = 0x1p53;
    CFX_TRY(cfxi_integer_check_range(c, (cfx_dtype)c->args[5].as.i,
                                     low > -most ? (int64_t)floor(low) : INT64_MIN,
                                     high < most ? (int64_t)ceil(high) : INT64_MAX));
    return by_tensor(c, number_at(c, SCALE), number_at(c, ZERO), low, high);
}

/* ---- by channel ---------------------------------------------------------------------------- */

enum { SCALES = 1, ZEROS, AXIS };

/* Scales that are not float32: as the composition that PyTorch computes. */
static cfx_status promoted_by_channel(cfxi_call *c, size_t axis)
{
    const cfx_datum limits[] = {c->args[4], c->args[5]};
    const cfx_datum wide = cfx_datum_dtype(CFX_DTYPE_FLOAT32);
    cfx_tensor *inverse = cfxi_rt_then(c, CFX_OPID_reciprocal,
                                            cfxi_integer_along(c, SCALES, axis), NULL, 0);
    cfx_tensor *x = cfxi_rt_hold(c, INPUT);
    x = cfxi_rt_then(c, CFX_OPID_to, x, &wide, 1);
    x = cfxi_rt_then_with(c, CFX_OPID_mul, x, inverse);
    x = cfxi_rt_then(c, CFX_OPID_round, x, NULL, 0);
    x = cfxi_rt_then_with(c, CFX_OPID_add, x, cfxi_integer_along(c, ZEROS, axis));
    return cfxi_integer_give(c, cfxi_rt_then(c, CFX_OPID_clamp, x, limits, 2));
}

cfx_status cfxi_kernel_quantize_per_channel(cfxi_call *c)
{
    size_t axis;
    const cfx_tensor *scales = cfxi_rt_tensor(c, SCALES);
    CFX_TRY(cfxi_integer_check_channels(c, &axis));
    if (scales->dtype != CFX_DTYPE_FLOAT32 ||
        !cfx_dtype_is_integer((cfx_dtype)cfxi_rt_tensor(c, ZEROS)->dtype))
        return promoted_by_channel(c, axis);
    cfxi_integer_by_channel by;
    CFX_TRY(cfxi_integer_by_channel_new(c, axis, &by));
    for (int64_t i = 0; i < by.n; i++)
        by.scale[i] = 1 / by.scale[i];
    quantize(c, (double)cfxi_rt_int(c, 4), (double)cfxi_rt_int(c, 5), &by.scales, &by.zeros);
    cfxi_rt_scratch_free(c->rt, by.scale);
    return CFX_OK;
}
