/* convert.c - one element: to a number and back. */
#include "tensor_impl.h"

#include <math.h>

/* ---- 16-bit floats ------------------------------------------------------------------------- */

typedef union bits32 {
    uint32_t i;
    float f;
} bits32;

float cfxi_tensor_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 0x1f;
    uint32_t mantissa = h & 0x3ff;
    if (exponent == 0) {  /* zero, or below the normal range: mantissa * 2^-24 is exact */
        bits32 u = {.f = (float)mantissa * 0x1p-24f};
        u.i |= sign;
        return u.f;
    }
    bits32 u = {sign | (exponent == 31 ? 0xffu : exponent + 112) << 23 | mantissa << 13};
    return u.f;
}

uint16_t cfxi_tensor_float_to_half(float f)
{
    bits32 u = {.f = f};
    uint32_t sign = u.i >> 16 & 0x8000;
    u.i &= 0x7fffffff;
    if (u.i > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (u.i >= 0x477ff000)  /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (u.i < 0x38800000) {  /* below the normal range: the sum has its last bit at 2^-24 */
        bits32 sum = {.f = u.f + 0.5f};
        return (uint16_t)(sign | (sum.i - 0x3f000000));
    }
    uint32_t rounded = u.i + 0xfff + (u.i >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

uint16_t cfxi_tensor_float_to_bfloat(float f)
{
    bits32 u = {.f = f};
    if (f != f)
        return 0x7fc0;
    return (uint16_t)((u.i + 0x7fff + (u.i >> 16 & 1)) >> 16);
}

/* ---- loading ------------------------------------------------------------------------------- */

#define LOAD(type) (*(const type *)at)

double cfxi_tensor_load_float(cfx_dtype dtype, const void *at)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT16: return cfxi_tensor_half_to_float(LOAD(uint16_t));
    case CFX_DTYPE_BFLOAT16: return cfxi_tensor_bfloat_to_float(LOAD(uint16_t));
    case CFX_DTYPE_FLOAT32:
    case CFX_DTYPE_COMPLEX64: return LOAD(float);
    case CFX_DTYPE_FLOAT64:
    case CFX_DTYPE_COMPLEX128: return LOAD(double);
    case CFX_DTYPE_UINT64: return (double)LOAD(uint64_t);
    default:
        return cfxi_tensor_dtype_is_float8(dtype)
                   ? cfxi_tensor_float8_to_float(dtype, LOAD(uint8_t))
                   : (double)cfxi_tensor_load_int(dtype, at);
    }
}

/* Out of range is what x86 gives, as in PyTorch, but never undefined. */
static int64_t truncate(double f)
{
    return f >= -0x1p63 && f < 0x1p63 ? (int64_t)f : INT64_MIN;
}

int64_t cfxi_tensor_load_int(cfx_dtype dtype, const void *at)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: return LOAD(uint8_t) != 0;
    case CFX_DTYPE_UINT8: return LOAD(uint8_t);
    case CFX_DTYPE_INT8: return LOAD(int8_t);
    case CFX_DTYPE_INT16: return LOAD(int16_t);
    case CFX_DTYPE_INT32: return LOAD(int32_t);
    case CFX_DTYPE_INT64: return LOAD(int64_t);
    case CFX_DTYPE_UINT16: return LOAD(uint16_t);
    case CFX_DTYPE_UINT32: return LOAD(uint32_t);
    case CFX_DTYPE_UINT64: return (int64_t)LOAD(uint64_t);
    default: return truncate(cfxi_tensor_load_float(dtype, at));
    }
}

void cfxi_tensor_load_complex(cfx_dtype dtype, const void *at, double out[2])
{
    out[0] = cfxi_tensor_load_float(dtype, at);
    out[1] = dtype == CFX_DTYPE_COMPLEX64    ? ((const float *)at)[1]
             : dtype == CFX_DTYPE_COMPLEX128 ? ((const double *)at)[1]
                                             : 0;
}

/* ---- storing ------------------------------------------------------------------------------- */

#define STORE(type, value) (*(type *)at = (type)(value))

void cfxi_tensor_store_float(cfx_dtype dtype, void *at, double f)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: STORE(uint8_t, f != 0); break;
    case CFX_DTYPE_FLOAT16: STORE(uint16_t, cfxi_tensor_float_to_half((float)f)); break;
    case CFX_DTYPE_BFLOAT16: STORE(uint16_t, cfxi_tensor_float_to_bfloat((float)f)); break;
    case CFX_DTYPE_FLOAT32: STORE(float, f); break;
    case CFX_DTYPE_FLOAT64: STORE(double, f); break;
    case CFX_DTYPE_COMPLEX64:
        STORE(float, f);
        ((float *)at)[1] = 0;
        break;
    case CFX_DTYPE_COMPLEX128:
        STORE(double, f);
        ((double *)at)[1] = 0;
        break;
    case CFX_DTYPE_UINT64:
        STORE(uint64_t, f >= 0x1p63 && f < 0x1p64 ? (uint64_t)f : (uint64_t)truncate(f));
        break;
    default:
        if (cfxi_tensor_dtype_is_float8(dtype))
            STORE(uint8_t, cfxi_tensor_float_to_float8(dtype, (float)f));
        else
            cfxi_tensor_store_int(dtype, at, truncate(f));
    }
}

void cfxi_tensor_store_int(cfx_dtype dtype, void *at, int64_t i)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: STORE(uint8_t, i != 0); break;
    case CFX_DTYPE_UINT8:
    case CFX_DTYPE_INT8: STORE(uint8_t, i); break;
    case CFX_DTYPE_UINT16:
    case CFX_DTYPE_INT16: STORE(uint16_t, i); break;
    case CFX_DTYPE_UINT32:
    case CFX_DTYPE_INT32: STORE(uint32_t, i); break;
    case CFX_DTYPE_UINT64:
    case CFX_DTYPE_INT64: STORE(int64_t, i); break;
    default: cfxi_tensor_store_float(dtype, at, (double)i); break;
    }
}

void cfxi_tensor_store_complex(cfx_dtype dtype, void *at, const double c[2])
{
    if (dtype == CFX_DTYPE_BOOL) {
        STORE(uint8_t, c[0] != 0 || c[1] != 0);
        return;
    }
    cfxi_tensor_store_float(dtype, at, c[0]);
    if (dtype == CFX_DTYPE_COMPLEX64)
        ((float *)at)[1] = (float)c[1];
    else if (dtype == CFX_DTYPE_COMPLEX128)
        ((double *)at)[1] = c[1];
}

/* ---- as data ------------------------------------------------------------------------------- */

cfx_datum cfx_datum_load(cfx_dtype dtype, const void *at)
{
    double c[2];
    if (dtype == CFX_DTYPE_BOOL)
        return cfx_datum_bool(cfxi_tensor_load_int(dtype, at) != 0);
    if (cfx_dtype_is_float(dtype))
        return cfx_datum_float(cfxi_tensor_load_float(dtype, at));
    if (!cfx_dtype_is_complex(dtype))
        return cfx_datum_int(cfxi_tensor_load_int(dtype, at));
    cfxi_tensor_load_complex(dtype, at, c);
    return cfx_datum_complex(c[0], c[1]);
}

bool cfx_datum_store(cfx_datum d, cfx_dtype dtype, void *at)
{
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_BOOL: cfxi_tensor_store_int(dtype, at, d.as.b); return true;
    case CFX_DATUM_INT: cfxi_tensor_store_int(dtype, at, d.as.i); return true;
    case CFX_DATUM_FLOAT: cfxi_tensor_store_float(dtype, at, d.as.f); return true;
    case CFX_DATUM_COMPLEX: cfxi_tensor_store_complex(dtype, at, d.as.c); return true;
    default: return false;
    }
}
