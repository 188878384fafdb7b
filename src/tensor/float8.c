/* float8.c - floats of 8 bits: OCP's two formats, their variants without a negative zero, and
 * powers of two (microscaling). */
#include "tensor_impl.h"

#include <math.h>

typedef struct format {
    int mantissa;      /* bits */
    int bias;          /* of the exponent */
    float most;        /* the largest number */
    uint8_t nan;
    uint8_t above;     /* what is larger becomes: infinity, NaN, or the largest */
    bool signed_zero;
} format;

static const format *format_of(cfx_dtype dtype)
{
    static const format e4m3fn = {3, 7, 448, 0x7f, 0x7e, true};
    static const format e5m2 = {2, 15, 57344, 0x7f, 0x7c, true};
    static const format e4m3fnuz = {3, 8, 240, 0x80, 0x80, false};
    static const format e5m2fnuz = {2, 16, 57344, 0x80, 0x80, false};
    return dtype == CFX_DTYPE_FLOAT8_E4M3FN     ? &e4m3fn
           : dtype == CFX_DTYPE_FLOAT8_E5M2     ? &e5m2
           : dtype == CFX_DTYPE_FLOAT8_E4M3FNUZ ? &e4m3fnuz
                                                : &e5m2fnuz;
}

static bool is_power(cfx_dtype dtype) { return dtype == CFX_DTYPE_FLOAT8_E8M0FNU; }

float cfxi_tensor_float8_to_float(cfx_dtype dtype, uint8_t bits)
{
    if (is_power(dtype))
        return bits == 0xff ? NAN : ldexpf(1, bits - 127);
    const format *t = format_of(dtype);
    const int magnitude = bits & 0x7f;
    const int exponent = magnitude >> t->mantissa;
    const int fraction = magnitude & ((1 << t->mantissa) - 1);
    if (t->signed_zero ? magnitude > t->above : bits == t->nan)
        return NAN;
    const float size = dtype == CFX_DTYPE_FLOAT8_E5M2 && magnitude == t->above
                           ? INFINITY
                       : exponent == 0
                           ? ldexpf((float)fraction, 1 - t->bias - t->mantissa)
                           : ldexpf((float)(fraction + (1 << t->mantissa)),
                                    exponent - t->bias - t->mantissa);
    return bits & 0x80 ? -size : size;
}

/* The nearest power of two; ties go up. */
static uint8_t to_power(float f)
{
    int exponent;
    if (!isfinite(f) || f < 0)
        return 0xff;
    const float fraction = frexpf(f, &exponent);  /* from 0.5 on, below 1 */
    exponent += 126 + (fraction > 0.75f || (fraction == 0.75f));
    return f == 0 || exponent < 0 ? 0 : exponent > 254 ? 254 : (uint8_t)exponent;
}

uint8_t cfxi_tensor_float_to_float8(cfx_dtype dtype, float f)
{
    if (is_power(dtype))
        return to_power(f);
    const format *t = format_of(dtype);
    const uint8_t sign = signbit(f) ? 0x80 : 0;
    const float size = fabsf(f);
    int exponent;
    if (isnan(f))
        return t->signed_zero ? (uint8_t)(t->nan | sign) : t->nan;
    if (isinf(f))
        return t->signed_zero ? (uint8_t)(t->above | sign) : t->above;
    frexpf(size, &exponent);
    exponent -= 1;                          /* size = 1.x * 2^exponent */
    if (size == 0 || exponent < 1 - t->bias)
        exponent = 1 - t->bias;             /* below the normal range */
    const float units = nearbyintf(ldexpf(size, t->mantissa - exponent));
    if (ldexpf(units, exponent - t->mantissa) > t->most)
        return t->signed_zero ? (uint8_t)(t->above | sign) : t->above;
    const int magnitude = (exponent + t->bias - 1) * (1 << t->mantissa) + (int)units;
    return magnitude == 0 && !t->signed_zero ? 0 : (uint8_t)(magnitude | sign);
}
