/* from_integers.c - dequantize, by tensor and by channel: (integer - zero) * scale.
 *
 * As PyTorch computes it: by tensor in the type of the result, by channel in the type that
 * integers, zero points and scales are promoted to. */
#include "byte_rows.h"
#include "float_types_impl.h"

/* ---- rules --------------------------------------------------------------------------------- */

enum { INPUT, SCALE, ZERO };

/* `dtype` and out_dtype are arguments number `first` and the next. */
static cfx_status dequantized(cfxi_call *c, size_t first)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype dtype = (cfx_dtype)c->args[first].as.i;
    const cfx_dtype out = cfxi_rt_dtype_or(c, first + 1, CFX_DTYPE_FLOAT32);
    int64_t least, most;
    if (x->dtype != dtype)
        return cfxi_fail(c, CFX_E_TYPE, "Expecting input to have dtype: %s, but got %s",
                         cfx_dtype_name(dtype), cfx_dtype_name((cfx_dtype)x->dtype));
    if (!cfxi_integer_limits(dtype, &least, &most))
        return cfxi_fail(c, CFX_E_VALUE, "Unsupported dtype in dequantize: %s",
                         cfx_dtype_name(dtype));
    if (!cfx_dtype_is_float(out) || !cfxi_tensor_dtype_is_computable(out))
        return cfxi_fail(c, CFX_E_TYPE, "out_dtype must be float16, bfloat16, float32 or float64, "
                         "not %s", cfx_dtype_name(out));
    return cfxi_rt_result_like(c, 0, out, x);
}

cfx_status cfxi_rule_dequantize_per_tensor(cfxi_call *c) { return dequantized(c, 5); }

cfx_status cfxi_rule_dequantize_per_tensor_tensor(cfxi_call *c)
{
    CFX_TRY(cfxi_integer_check_one(c, ZERO, "zero_point"));
    CFX_TRY(cfxi_integer_check_one(c, SCALE, "scale"));
    return dequantized(c, 5);
}

cfx_status cfxi_rule_dequantize_per_channel(cfxi_call *c)
{
    size_t axis;
    CFX_TRY(cfxi_integer_check_channels(c, &axis));
    CFX_TRY(cfxi_integer_check_limits(c, 4));
    return dequantized(c, 6);
}

/* ---- rows ---------------------------------------------------------------------------------- */

enum { BLOCK = 256, GRAIN = 8192 };

typedef struct from_integers {
    const cfxi_integer_rows *rows;  /* of 8-bit integers; or NULL */
    cfx_isa isa;
    cfx_dtype from;
} from_integers;

/* The operands: result, input, scales and zero points; all but the input float32. */
static void dequantize_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const from_integers *q = ctx;
    float x[BLOCK];
    float side[BLOCK];
    const size_t item = cfx_dtype_size(q->from);
    const float first = *(const float *)at[3];
    if (q->rows && step[0] == (int64_t)sizeof(float) && step[1] == 1 && step[2] == 0 &&
        step[3] == 0 && fabsf(first) < 1 << 20 && rintf(first) == first) {
        const cfxi_integer_bytes b = {(const uint8_t *)at[1], q->from == CFX_DTYPE_INT8,
                                      (int32_t)first, *(const float *)at[2]};
        q->rows->dequantize(n, &b, (float *)at[0]);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = n - i < BLOCK ? n - i : BLOCK;
        const char *scale = at[2] + i * step[2];
        const char *zero = at[3] + i * step[3];
        cfxi_rt_move(item, m, at[1] + i * step[1], step[1], (char *)side, (int64_t)item);
        cfxi_rt_convert(q->isa, CFX_DTYPE_FLOAT32, x, q->from, side, m);
        for (int64_t j = 0; j < m; j++)
            *(float *)(at[0] + (i + j) * step[0]) =
                (x[j] - *(const float *)(zero + j * step[3])) *
                *(const float *)(scale + j * step[2]);
    }
}

static void dequantize(cfxi_call *c, const cfx_tensor *scale, const cfx_tensor *zero)
{
    const cfx_tensor *operands[] = {cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, INPUT), scale, zero};
    from_integers q = {.isa = c->rt->isa, .from = (cfx_dtype)operands[1]->dtype};
    if (!c->rt->reference && (q.from == CFX_DTYPE_UINT8 || q.from == CFX_DTYPE_INT8))
        q.rows = cfxi_integer_rows_of(c->rt->isa);
    cfxi_rt_loop(c->rt, operands, 4, GRAIN, dequantize_row, &q);
}

static cfx_status by_tensor(cfxi_call *c, double scale, cfx_datum zero)
{
    const cfx_dtype out = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    if (out == CFX_DTYPE_FLOAT32) {
        float scales = (float)scale;
        float zeros = zero.kind == CFX_DATUM_INT ? (float)zero.as.i : (float)zero.as.f;
        const cfx_tensor scale_shown = cfxi_integer_shown_number(&scales);
        const cfx_tensor zero_shown = cfxi_integer_shown_number(&zeros);
        dequantize(c, &scale_shown, &zero_shown);
        return CFX_OK;
    }
    const cfx_datum type = cfx_datum_dtype(out);
    const cfx_datum factor = cfx_datum_float(scale);
    cfx_tensor *x = cfxi_rt_hold(c, INPUT);
    x = cfxi_rt_then(c, CFX_OPID_to, x, &type, 1);
    x = cfxi_rt_then(c, CFX_OPID_sub, x, &zero, 1);
    return cfxi_integer_give(c, cfxi_rt_then(c, CFX_OPID_mul, x, &factor, 1));
}

cfx_status cfxi_kernel_dequantize_per_tensor(cfxi_call *c)
{
    return by_tensor(c, cfxi_rt_float(c, SCALE), c->args[ZERO]);
}

cfx_status cfxi_kernel_dequantize_per_tensor_tensor(cfxi_call *c)
{
    const cfx_tensor *scale = cfxi_rt_tensor(c, SCALE);
    const cfx_tensor *zero = cfxi_rt_tensor(c, ZERO);
    const cfx_dtype type = (cfx_dtype)zero->dtype;
    const cfx_datum number = cfx_dtype_is_float(type)
                                 ? cfx_datum_float(cfxi_tensor_load_float(type, zero->data))
                                 : cfx_datum_int(cfxi_tensor_load_int(type, zero->data));
    return by_tensor(c, cfxi_tensor_load_float((cfx_dtype)scale->dtype, scale->data), number);
}

cfx_status cfxi_kernel_dequantize_per_tensor_tensor2(cfxi_call *c)
{
    return cfxi_kernel_dequantize_per_tensor_tensor(c);
}

/* ---- by channel ---------------------------------------------------------------------------- */

enum { SCALES = 1, ZEROS };

/* Whether integers less zero points are exact in float32, as they are in the integers that PyTorch
 * computes with. */
static bool is_exact(const cfxi_call *c)
{
    const cfx_tensor *zeros = cfxi_rt_tensor(c, ZEROS);
    const size_t bytes = cfxi_tensor_itemsize(cfxi_rt_tensor(c, INPUT));
    if (zeros && (!cfx_dtype_is_integer((cfx_dtype)zeros->dtype) ||
                  cfxi_tensor_itemsize(zeros) <= bytes))
        return false;
    if (bytes > 2 || cfxi_rt_tensor(c, SCALES)->dtype != CFX_DTYPE_FLOAT32)
        return false;
    for (int64_t i = 0; zeros && i < zeros->size[0]; i++) {
        const int64_t z = cfxi_tensor_load_int((cfx_dtype)zeros->dtype,
                                               zeros->data + i * zeros->stride[0]);
        if (z < -(1 << 23) || z > 1 << 23)
            return false;
    }
    return true;
}

static cfx_status promoted_by_channel(cfxi_call *c, size_t axis)
{
    cfx_tensor *x = cfxi_rt_hold(c, INPUT);
    if (cfxi_rt_tensor(c, ZEROS))
        x = cfxi_rt_then_with(c, CFX_OPID_sub, x, cfxi_integer_along(c, ZEROS, axis));
    if (!x)
        return c->err->status;
    const cfx_dtype scales = (cfx_dtype)cfxi_rt_tensor(c, SCALES)->dtype;  /* may be of 16 bits */
    const cfx_datum type =
        cfx_datum_dtype(cfxi_tensor_promote_types((cfx_dtype)x->dtype, scales));
    x = cfxi_rt_then(c, CFX_OPID_to, x, &type, 1);
    return cfxi_integer_give(c, cfxi_rt_then_with(c, CFX_OPID_mul, x,
                                                  cfxi_integer_along(c, SCALES, axis)));
}

cfx_status cfxi_kernel_dequantize_per_channel(cfxi_call *c)
{
    size_t axis;
    CFX_TRY(cfxi_integer_check_channels(c, &axis));
    if (cfxi_rt_result_at(c, 0)->dtype != CFX_DTYPE_FLOAT32 || !is_exact(c))
        return promoted_by_channel(c, axis);
    cfxi_integer_by_channel by;
    CFX_TRY(cfxi_integer_by_channel_new(c, axis, &by));
    dequantize(c, &by.scales, &by.zeros);
    cfxi_rt_scratch_free(c->rt, by.scale);
    return CFX_OK;
}
