/* element_run.c - runs of elements, converted to a type to compute with and back. */
#include "reduce_impl.h"

CFXI_ISA_CHOICE(cfxi_floats, cfxi_reduce_floats_of, cfxi_reduce_floats)

const cfxi_rows *cfxi_reduce_rows(const cfxi_float_rows *r)
{
    const cfxi_floats *all = cfxi_reduce_floats_of(r->rt->isa);
    return r->type == CFX_DTYPE_FLOAT64 ? &all->rows_of_doubles : &all->rows;
}

cfxi_run_type cfxi_reduce_run_type_of(cfx_dtype dtype)
{
    return cfx_dtype_is_complex(dtype)   ? CFXI_C128
           : dtype == CFX_DTYPE_FLOAT64  ? CFXI_F64
           : cfx_dtype_is_float(dtype)   ? CFXI_F32
                                         : CFXI_I64;
}

cfx_dtype cfxi_reduce_run_dtype(cfxi_run_type k)
{
    static const cfx_dtype dtypes[] = {CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64, CFX_DTYPE_INT64,
                                       CFX_DTYPE_COMPLEX128};
    return dtypes[k];
}

/* ---- loading ------------------------------------------------------------------------------- */

#define GATHER(type, value)                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type v = *(const type *)(at + i * stride);                                                 \
        out[i] = value;                                                                            \
    }                                                                                              \
    break

static void load_f32(float *out, cfx_dtype dtype, const char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT16: GATHER(uint16_t, cfxi_tensor_half_to_float(v));
    case CFX_DTYPE_BFLOAT16: GATHER(uint16_t, cfxi_tensor_bfloat_to_float(v));
    case CFX_DTYPE_FLOAT32: GATHER(float, v);
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)cfxi_tensor_load_float(dtype, at + i * stride);
    }
}

static void load_f64(double *out, cfx_dtype dtype, const char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT32: GATHER(float, v);
    case CFX_DTYPE_FLOAT64: GATHER(double, v);
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = cfxi_tensor_load_float(dtype, at + i * stride);
    }
}

static void load_i64(int64_t *out, cfx_dtype dtype, const char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: GATHER(uint8_t, v != 0);
    case CFX_DTYPE_UINT8: GATHER(uint8_t, v);
    case CFX_DTYPE_INT8: GATHER(int8_t, v);
    case CFX_DTYPE_UINT16: GATHER(uint16_t, v);
    case CFX_DTYPE_UINT32: GATHER(uint32_t, v);
    case CFX_DTYPE_INT16: GATHER(int16_t, v);
    case CFX_DTYPE_INT32: GATHER(int32_t, v);
    case CFX_DTYPE_INT64: GATHER(int64_t, v);
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = cfxi_tensor_load_int(dtype, at + i * stride);
    }
}

void cfxi_reduce_load_run(cfx_isa isa, cfxi_run_type k, void *buf, cfx_dtype dtype, const char *at,
                          int64_t stride, int64_t n)
{
    if (n == 0)
        return;  /* then there need be no buffer */
    if (dtype == cfxi_reduce_run_dtype(k) && stride == (int64_t)cfx_dtype_size(dtype)) {
        memcpy(buf, at, (size_t)n * cfx_dtype_size(dtype));
        return;
    }
    if (stride == (int64_t)cfx_dtype_size(dtype) && cfx_dtype_is_float(dtype) && k == CFXI_F32) {
        cfxi_rt_convert(isa, CFX_DTYPE_FLOAT32, buf, dtype, at, n);
        return;
    }
    switch (k) {
    case CFXI_F32: load_f32(buf, dtype, at, stride, n); break;
    case CFXI_F64: load_f64(buf, dtype, at, stride, n); break;
    case CFXI_I64: load_i64(buf, dtype, at, stride, n); break;
    case CFXI_C128:
        for (int64_t i = 0; i < n; i++)
            cfxi_tensor_load_complex(dtype, at + i * stride, (double *)buf + 2 * i);
    }
}

/* ---- storing ------------------------------------------------------------------------------- */

#define SCATTER(type, value)                                                                       \
    for (int64_t i = 0; i < n; i++)                                                                \
        *(type *)(at + i * stride) = (type)(value);                                                \
    break

static void store_f32(const float *x, cfx_dtype dtype, char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT16: SCATTER(uint16_t, cfxi_tensor_float_to_half(x[i]));
    case CFX_DTYPE_BFLOAT16: SCATTER(uint16_t, cfxi_tensor_float_to_bfloat(x[i]));
    case CFX_DTYPE_FLOAT32: SCATTER(float, x[i]);
    default:
        for (int64_t i = 0; i < n; i++)
            cfxi_tensor_store_float(dtype, at + i * stride, x[i]);
    }
}

static void store_f64(const double *x, cfx_dtype dtype, char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT64: SCATTER(double, x[i]);
    default:
        for (int64_t i = 0; i < n; i++)
            cfxi_tensor_store_float(dtype, at + i * stride, x[i]);
    }
}

static void store_i64(const int64_t *x, cfx_dtype dtype, char *at, int64_t stride, int64_t n)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: SCATTER(uint8_t, x[i] != 0);
    case CFX_DTYPE_UINT8:
    case CFX_DTYPE_INT8: SCATTER(uint8_t, x[i]);
    case CFX_DTYPE_INT32: SCATTER(uint32_t, x[i]);
    case CFX_DTYPE_INT64: SCATTER(int64_t, x[i]);
    default:
        for (int64_t i = 0; i < n; i++)
            cfxi_tensor_store_int(dtype, at + i * stride, x[i]);
    }
}

void cfxi_reduce_store_run(cfx_isa isa, cfxi_run_type k, const void *buf, cfx_dtype dtype, char *at,
                           int64_t stride, int64_t n)
{
    if (n == 0)
        return;  /* memory may be NULL */
    if (dtype == cfxi_reduce_run_dtype(k) && stride == (int64_t)cfx_dtype_size(dtype)) {
        memcpy(at, buf, (size_t)n * cfx_dtype_size(dtype));
        return;
    }
    if (stride == (int64_t)cfx_dtype_size(dtype) && cfx_dtype_is_float(dtype) && k == CFXI_F32) {
        cfxi_rt_convert(isa, dtype, at, CFX_DTYPE_FLOAT32, buf, n);
        return;
    }
    switch (k) {
    case CFXI_F32: store_f32(buf, dtype, at, stride, n); break;
    case CFXI_F64: store_f64(buf, dtype, at, stride, n); break;
    case CFXI_I64: store_i64(buf, dtype, at, stride, n); break;
    case CFXI_C128:
        for (int64_t i = 0; i < n; i++)
            cfxi_tensor_store_complex(dtype, at + i * stride, (const double *)buf + 2 * i);
    }
}
