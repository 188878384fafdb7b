/* import_quantize.c - quantized tensors: to them, from them, by tensor, axis or block. */
#include "rules_impl.h"

/* ---- types --------------------------------------------------------------------------------- */

enum { FLOAT4E2M1 = 23 };

/* What the elements of a type of ONNX can be. */
typedef struct range {
    int64_t type;
    double least, most;
    bool is_float;
} range;

static const range ranges[] = {
    {2, 0, 255, false},        {3, -128, 127, false},  {4, 0, 65535, false},
    {5, -32768, 32767, false}, {6, INT32_MIN, INT32_MAX, false},
    {21, 0, 15, false},        {22, -8, 7, false},     {25, 0, 3, false},
    {26, -2, 1, false},        {17, -448, 448, true},  {18, -240, 240, true},
    {19, -57344, 57344, true}, {20, -57344, 57344, true}, {FLOAT4E2M1, -6, 6, true},
};

static const range *range_of(int64_t type)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].type == type)
            return &ranges[i];
    return NULL;
}

/* The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites; of two the even one. */
static cfx_var round_to_float4(cfx_scope *s, cfx_var x)
{
    const cfx_var size = cfx_abs(s, x);
    const cfx_var half = cfx_full_like(s, size, 0.5);
    const cfx_var one = cfx_full_like(s, size, 1.0);
    const cfx_var two = cfx_full_like(s, size, 2.0);
    const cfx_var step = cfx_where(s, cfx_lt(s, size, 2), half,
                                   cfx_where(s, cfx_lt(s, size, 4), one, two));
    const cfx_var y = cfx_mul(s, cfx_round(s, cfx_div(s, size, step)), step);
    return cfx_copysign(s, cfx_clamp(s, y, .max = cfx_v(6.0)), x);
}

/* To a float type: limited before, because what is too large would become a NaN. */
static cfx_var to_float_type(cfxi_import_call *c, cfx_var x, const range *r, bool saturate)
{
    cfx_scope *s = c->scope;
    if (r->type == FLOAT4E2M1)
        return round_to_float4(s, cfxi_import_cast_to(s, x, CFX_DTYPE_FLOAT32));
    if (saturate)
        x = cfx_clamp(s, x, .min = cfx_v(r->least), .max = cfx_v(r->most));
    return cfx_to(s, x, cfx_var_dtype(cfxi_onnx_dtype(r->type)));
}

cfx_var cfxi_import_saturate(cfxi_import_call *c, cfx_var x, cfx_var zero, int64_t type)
{
    cfx_scope *s = c->scope;
    const range *r = range_of(type);
    if (!r || r->is_float)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the type of the quantized tensor is not "
                                "known, or not an integer");
    x = cfx_round(s, x);
    if (zero.kind != CFX_VAR_EMPTY)
        x = cfx_add(s, x, cfx_to(s, zero, cfx_var_dtype(cfxi_import_dtype_of(s, x))));
    x = cfx_clamp(s, x, .min = cfx_v(r->least), .max = cfx_v(r->most));
    return cfx_to(s, x, cfx_var_dtype(cfxi_onnx_dtype(type)));
}

/* ---- scales -------------------------------------------------------------------------------- */

/* A scale or zero point, input i, so that it fits each element of input 0. */
static cfx_var spread(cfxi_import_call *c, size_t i)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, i);
    const int rank = cfxi_import_need_rank(c, 0);
    const int own = cfxi_import_need_rank(c, i);
    const int64_t block = cfxi_import_int(c, "block_size", 0);
    if (own <= 0 || rank < 1)
        return x;
    const int64_t given = cfxi_import_int(c, "axis", 1);
    const int axis = rank == 1 ? 0 : cfxi_import_axis(c, given, rank);
    if (axis < 0)
        return cfx_var_empty();
    const cfx_var count = cfxi_import_size(c, i, own == 1 ? 0 : axis);
    if (own == 1 && !block)
        return count.kind == CFX_VAR_INT && count.as.i == 1 ? cfx_reshape(s, x, cfx_tuple(s))
                                                            : cfxi_import_along(s, x, axis, rank);
    if (own != rank)
        return cfxi_import_fail(c, CFX_E_VALUE, "input %zu must have %d dimensions", i, rank);
    const cfx_var times = cfx_var_int(block > 0 ? block : 1);
    const cfx_var wide = cfx_repeat_interleave(s, x, times, .dim = cfx_v(axis));
    return cfx_slice(s, wide, .dim = cfx_v(axis), .start = cfx_v(0),
                     .end = cfxi_import_size(c, 0, axis));
}

/* ---- rules --------------------------------------------------------------------------------- */

cfx_var cfxi_import_quantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t asked = cfxi_import_int(c, "output_dtype", 0);
    const int64_t type = asked                      ? asked
                         : cfxi_import_has(c, 2) ? cfxi_import_type(c, 2) : 2;
    const int64_t precision = cfxi_import_int(c, "precision", 0);
    const range *r = range_of(type);
    if (!r)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "quantizing to %s",
                                cfxi_onnx_dtype_name(type));
    cfx_dtype with = precision ? cfxi_onnx_dtype(precision) : cfxi_import_dtype(c, 1);
    if (!precision && (with == CFX_DTYPE_COUNT || !cfx_dtype_is_float(with) ||
                       with == CFX_DTYPE_FLOAT8_E8M0FNU))
        with = CFX_DTYPE_FLOAT32;
    cfx_var x = cfxi_import_cast_to(s, cfxi_import_in(c, 0), with);
    x = cfx_div(s, x, cfxi_import_cast_to(s, spread(c, 1), with));
    cfxi_import_set_type(c, 0, type);
    if (!r->is_float)
        return cfxi_import_saturate(c, cfxi_import_widened(s, x),
                                    cfxi_import_has(c, 2) ? spread(c, 2) : cfx_var_empty(), type);
    if (cfxi_import_has(c, 2))
        x = cfx_add(s, x, cfx_to(s, spread(c, 2), cfx_var_dtype(with)));
    return to_float_type(c, x, r, cfxi_import_int(c, "saturate", 1) != 0);
}

cfx_var cfxi_import_dequantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t asked = cfxi_import_int(c, "output_dtype", 0);
    const cfx_dtype from = cfxi_import_dtype(c, 0);
    const cfx_dtype to = asked ? cfxi_onnx_dtype(asked) : cfxi_import_dtype(c, 1);
    cfx_var x = cfxi_import_in(c, 0);
    if (from == CFX_DTYPE_COUNT || to == CFX_DTYPE_COUNT)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the types of the inputs are not known");
    const cfx_var between = cfx_var_dtype(cfx_dtype_is_float(from) ? to : CFX_DTYPE_INT32);
    if (cfxi_import_has(c, 2))
        x = cfx_sub(s, cfx_to(s, x, between), cfx_to(s, spread(c, 2), between));
    return cfx_mul(s, cfxi_import_cast_to(s, x, to), cfxi_import_cast_to(s, spread(c, 1), to));
}

cfx_var cfxi_import_dynamic_quantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var most = cfx_clamp(s, cfx_amax(s, x), .min = cfx_v(0));
    const cfx_var least = cfx_clamp(s, cfx_amin(s, x), .max = cfx_v(0));
    const cfx_var scale = cfx_div(s, cfx_sub(s, most, least), 255.0);
    const cfx_var zero = cfxi_import_saturate(c, cfx_div(s, cfx_neg(s, least), scale),
                                              cfx_var_empty(), 2);
    cfxi_import_set(c, 1, scale);
    cfxi_import_set(c, 2, zero);
    return cfxi_import_saturate(c, cfx_div(s, x, scale), zero, 2);
}
