/* import_cast.c - other element types: Cast, CastLike, BitCast. */
#include "import_impl.h"

#include <math.h>

enum { FLOAT4 = 23, FLOAT8_E8M0 = 24 };

/* ---- narrow types -------------------------------------------------------------------------- */

/* Integers of 2 and 4 bits, held in 8: what does not fit is cut off, as in wider types. */
static cfx_var to_narrow_int(cfxi_import_call *c, cfx_var x, int64_t to)
{
    cfx_scope *s = c->scope;
    const int bits = cfxi_onnx_narrow_bits(to);
    const cfx_dtype dtype = cfxi_onnx_dtype(to);
    const int64_t sign = INT64_C(1) << (bits - 1);
    x = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_INT32));
    x = cfx_bitwise_and(s, x, 2 * sign - 1);
    if (dtype == CFX_DTYPE_INT8)
        x = cfx_sub(s, cfx_bitwise_xor(s, x, sign), sign);
    return cfx_to(s, x, cfx_var_dtype(dtype));
}

/* Floats of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites; ties go to the even one. */
static cfx_var to_float4(cfxi_import_call *c, cfx_var x)
{
    cfx_scope *s = c->scope;
    x = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT32));
    const cfx_var is_nan = cfx_isnan(s, x);
    x = cfx_where(s, is_nan, cfx_full_like(s, x, -0.0), x);  /* there is no NaN */
    const cfx_var size = cfx_clamp(s, cfx_abs(s, x), .max = cfx_v(6.0));
    const cfx_var low = cfx_div(s, cfx_round(s, cfx_mul(s, size, 2.0)), 2.0);
    const cfx_var high = cfx_mul(s, cfx_round(s, cfx_div(s, size, 2.0)), 2.0);
    const cfx_var middle = cfx_round(s, size);
    cfx_var y = cfx_where(s, cfx_le(s, size, 2.0), low,
                          cfx_where(s, cfx_le(s, size, 4.0), middle, high));
    return cfx_copysign(s, y, x);
}

/* ---- floats of 8 bits ---------------------------------------------------------------------- */

/* The largest number of a type. */
static double most_of(cfx_dtype t)
{
    switch (t) {
    case CFX_DTYPE_FLOAT8_E4M3FN: return 448;
    case CFX_DTYPE_FLOAT8_E4M3FNUZ: return 240;
    default: return 57344;
    }
}

/* Powers of two: `round_mode` says which. */
static cfx_var to_power(cfxi_import_call *c, cfx_var x)
{
    cfx_scope *s = c->scope;
    const bool saturate = cfxi_import_int(c, "saturate", 1) != 0;
    const bool up = cfxi_import_is(c, "round_mode", "up", "up");
    const bool down = cfxi_import_is(c, "round_mode", "up", "down");
    x = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT32));
    if (saturate)
        x = cfx_clamp(s, x, .min = cfx_v(0x1p-127), .max = cfx_v(0x1p127));
    if (!up && !down)
        return cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT8_E8M0FNU));
    const cfx_var near = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT8_E8M0FNU));
    const cfx_var back = cfx_to(s, near, cfx_var_dtype(CFX_DTYPE_FLOAT32));
    const cfx_var other = up ? cfx_mul(s, back, 2.0) : cfx_div(s, back, 2.0);
    const cfx_var wrong = up ? cfx_lt(s, back, x) : cfx_gt(s, back, x);
    return cfx_to(s, cfx_where(s, wrong, other, back), cfx_var_dtype(CFX_DTYPE_FLOAT8_E8M0FNU));
}

static cfx_var to_float8(cfxi_import_call *c, cfx_var x, cfx_dtype to)
{
    cfx_scope *s = c->scope;
    const double most = most_of(to);
    x = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT32));
    if (cfxi_import_int(c, "saturate", 1))
        x = cfx_clamp(s, x, .min = cfx_v(-most), .max = cfx_v(most));
    const cfx_var y = cfx_to(s, x, cfx_var_dtype(to));
    if (cfxi_import_int(c, "saturate", 1) || to != CFX_DTYPE_FLOAT8_E4M3FN)
        return y;
    const cfx_var beyond = cfx_gt(s, cfx_abs(s, x), 464.0);  /* what rounds to more than 448 */
    const cfx_var none = cfx_to(s, cfx_full_like(s, x, (double)NAN), cfx_var_dtype(to));
    return cfx_where(s, beyond, none, y);
}

/* ---- the operators ------------------------------------------------------------------------- */

static bool is_float8(cfx_dtype t)
{
    return t >= CFX_DTYPE_FLOAT8_E4M3FN && t <= CFX_DTYPE_FLOAT8_E5M2FNUZ;
}

static cfx_var cast(cfxi_import_call *c, int64_t to)
{
    cfx_scope *s = c->scope;
    const cfx_dtype dtype = cfxi_onnx_dtype(to);
    cfxi_items l;
    if (dtype == CFX_DTYPE_COUNT)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "cfx does not have the element type %s",
                                cfxi_onnx_dtype_name(to));
    if ((dtype == CFX_DTYPE_INT64 || dtype == CFX_DTYPE_INT32) && !cfxi_import_known(c, 0) &&
        cfxi_import_items(c, 0, &l)) {
        cfxi_import_set_items(c, 0, l.items, l.n, l.is_scalar);
        cfxi_import_set_items_type(c, 0, dtype);
        return cfx_var_empty();
    }
    const cfx_var x = cfxi_import_in(c, 0);
    cfxi_import_set_type(c, 0, to);
    if (to == FLOAT4)
        return to_float4(c, x);
    if (cfxi_onnx_narrow_bits(to))
        return to_narrow_int(c, x, to);
    if (to == FLOAT8_E8M0)
        return to_power(c, x);
    if (is_float8(dtype))
        return to_float8(c, x, dtype);
    return cfx_to(s, x, cfx_var_dtype(dtype));
}

cfx_var cfxi_import_cast(cfxi_import_call *c)
{
    return cast(c, cfxi_import_int(c, "to", 0));
}

cfx_var cfxi_import_cast_like(cfxi_import_call *c)
{
    const int64_t to = cfxi_import_type(c, 1);
    if (to == 0)
        return cfx_to_other(c->scope, cfxi_import_in(c, 0), cfxi_import_in(c, 1));
    return cast(c, to);
}

/* The same bits as another type of the same size. */
cfx_var cfxi_import_bit_cast(cfxi_import_call *c)
{
    const int64_t to = cfxi_import_int(c, "to", 0);
    const cfx_dtype dtype = cfxi_onnx_dtype(to);
    if (dtype == CFX_DTYPE_COUNT || cfxi_onnx_narrow_bits(to) ||
        cfxi_onnx_narrow_bits(cfxi_import_type(c, 0)))
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "cfx cannot read the bits of type %s",
                                cfxi_onnx_dtype_name(to));
    return cfx_view_dtype(c->scope, cfxi_import_in(c, 0), cfx_var_dtype(dtype));
}
