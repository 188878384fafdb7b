/* convert_blocks.c - many elements from one type to another.
 *
 * Pairs that matter have a loop of their own; the others go through a type in between, a block at a
 * time. Floats become small integers as x86 does it, and so PyTorch: by way of int32, where what is
 * out of range is INT32_MIN.
 */
#pragma GCC optimize("O3")
#include "runtime_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef void convert_fn(int64_t n, const void *from, void *to);

static inline int32_t to_i32(double f)
{
    return f >= -0x1p31 && f < 0x1p31 ? (int32_t)f : INT32_MIN;
}

static inline int64_t to_i64(double f)
{
    return f >= -0x1p63 && f < 0x1p63 ? (int64_t)f : INT64_MIN;
}

#define LOOP(name, from_type, to_type, expr)                                                       \
    static void name(int64_t n, const void *from, void *to)                                        \
    {                                                                                              \
        const from_type *a = from;                                                                 \
        to_type *y = to;                                                                           \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                       \
        {                                                                                          \
            const from_type x = a[i];                                                              \
            y[i] = (to_type)(expr);                                                                \
        }                                                                                          \
    }

/* id, C type, element type: what is read to, and written from, the three wide types */
#define SMALL(X) X(u8, uint8_t, UINT8) X(i8, int8_t, INT8) X(i16, int16_t, INT16)                  \
    X(i32, int32_t, INT32)
#define X(id, type, DTYPE)                                                                         \
    LOOP(id##_i64, type, int64_t, x)                                                               \
    LOOP(id##_f32, type, float, x)                                                                 \
    LOOP(id##_f64, type, double, x)                                                                \
    LOOP(i64_##id, int64_t, type, x)                                                               \
    LOOP(f32_##id, float, type, to_i32(x))                                                         \
    LOOP(f64_##id, double, type, to_i32(x))
SMALL(X)
#undef X
LOOP(bool_i64, uint8_t, int64_t, x != 0)
LOOP(bool_f32, uint8_t, float, x != 0)
LOOP(bool_f64, uint8_t, double, x != 0)
LOOP(i64_bool, int64_t, uint8_t, x != 0)
LOOP(f32_bool, float, uint8_t, x != 0)
LOOP(f64_bool, double, uint8_t, x != 0)
LOOP(i64_f32, int64_t, float, x)
LOOP(i64_f64, int64_t, double, x)
LOOP(f32_i64, float, int64_t, to_i64(x))
LOOP(f64_i64, double, int64_t, to_i64(x))
LOOP(f32_f64, float, double, x)
LOOP(f64_f32, double, float, x)
LOOP(f16_f32, uint16_t, float, cfxi_tensor_half_to_float(x))
LOOP(f32_f16, float, uint16_t, cfxi_tensor_float_to_half(x))
LOOP(bf16_f32, uint16_t, float, cfxi_tensor_bfloat_to_float(x))

typedef struct c128 {
    double re, im;
} c128;
typedef struct c64 {
    float re, im;
} c64;
LOOP(c128_f64, c128, double, x.re)
LOOP(c128_bool, c128, uint8_t, x.re != 0 || x.im != 0)
#define PAIRS(name, from_type, to_type, re_, im_)                                                  \
    static void name(int64_t n, const void *from, void *to)                                        \
    {                                                                                              \
        const from_type *a = from;                                                                 \
        to_type *y = to;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const from_type x = a[i];                                                              \
            y[i] = (to_type){re_, im_};                                                            \
        }                                                                                          \
    }
PAIRS(f64_c128, double, c128, x, 0)
PAIRS(f32_c64, float, c64, x, 0)
PAIRS(c64_c128, c64, c128, x.re, x.im)
PAIRS(c128_c64, c128, c64, (float)x.re, (float)x.im)

/* Bits as cfxi_tensor_float_to_bfloat, without a branch. */
static inline uint16_t round_to_bfloat(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}
LOOP(f32_bf16, uint32_t, uint16_t, round_to_bfloat(x))

#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static void f16_f32_avx2(int64_t n, const void *from, void *to)
{
    const uint16_t *a = from;
    float *y = to;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(a + i))));
    f16_f32(n - i, a + i, y + i);
}

__attribute__((target("avx2,f16c"))) static void f32_f16_avx2(int64_t n, const void *from, void *to)
{
    const float *a = from;
    uint16_t *y = to;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
    f32_f16(n - i, a + i, y + i);
}

#define BFLOATS(isa, targets)                                                                      \
    __attribute__((target(targets))) static void bf16_f32_##isa(int64_t n, const void *from,       \
                                                                void *to)                          \
    {                                                                                              \
        const uint16_t *a = from;                                                                  \
        uint32_t *y = to;                                                                          \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                       \
            y[i] = (uint32_t)a[i] << 16;                                                           \
    }                                                                                              \
    __attribute__((target(targets))) static void f32_bf16_##isa(int64_t n, const void *from,       \
                                                                void *to)                          \
    {                                                                                              \
        const uint32_t *a = from;                                                                  \
        uint16_t *y = to;                                                                          \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                       \
            y[i] = round_to_bfloat(a[i]);                                                          \
    }
BFLOATS(avx2, "avx2")
BFLOATS(avx512, "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

/* ---- which loop ---------------------------------------------------------------------------- */

static convert_fn *with_isa(cfx_isa isa, convert_fn *fn)
{
#if defined(__x86_64__)
    if (isa == CFX_ISA_AVX512 && (fn == bf16_f32 || fn == f32_bf16))
        return fn == bf16_f32 ? bf16_f32_avx512 : f32_bf16_avx512;
    if (isa >= CFX_ISA_AVX2)
        return fn == f16_f32    ? f16_f32_avx2
               : fn == f32_f16  ? f32_f16_avx2
               : fn == bf16_f32 ? bf16_f32_avx2
               : fn == f32_bf16 ? f32_bf16_avx2
                                : fn;
#endif
    (void)isa;
    return fn;
}

static convert_fn *direct(cfx_dtype to, cfx_dtype from)
{
#define D(name) CFX_DTYPE_##name
    static convert_fn *const table[D(COMPLEX128) + 1][D(COMPLEX128) + 1] = {
#define X(id, type, DTYPE)                                                                         \
    [D(DTYPE)][D(INT64)] = id##_i64, [D(DTYPE)][D(FLOAT32)] = id##_f32,                            \
    [D(DTYPE)][D(FLOAT64)] = id##_f64, [D(INT64)][D(DTYPE)] = i64_##id,                            \
    [D(FLOAT32)][D(DTYPE)] = f32_##id, [D(FLOAT64)][D(DTYPE)] = f64_##id,
        SMALL(X)
        X(bool, uint8_t, BOOL)
#undef X
        [D(INT64)][D(FLOAT32)] = i64_f32,       [D(INT64)][D(FLOAT64)] = i64_f64,
        [D(FLOAT32)][D(INT64)] = f32_i64,       [D(FLOAT64)][D(INT64)] = f64_i64,
        [D(FLOAT32)][D(FLOAT64)] = f32_f64,     [D(FLOAT64)][D(FLOAT32)] = f64_f32,
        [D(FLOAT16)][D(FLOAT32)] = f16_f32,     [D(FLOAT32)][D(FLOAT16)] = f32_f16,
        [D(BFLOAT16)][D(FLOAT32)] = bf16_f32,   [D(FLOAT32)][D(BFLOAT16)] = f32_bf16,
        [D(COMPLEX128)][D(FLOAT64)] = c128_f64, [D(COMPLEX128)][D(BOOL)] = c128_bool,
        [D(FLOAT64)][D(COMPLEX128)] = f64_c128, [D(FLOAT32)][D(COMPLEX64)] = f32_c64,
        [D(COMPLEX64)][D(COMPLEX128)] = c64_c128, [D(COMPLEX128)][D(COMPLEX64)] = c128_c64,
    };
#undef D
    return to <= CFX_DTYPE_COMPLEX128 && from <= CFX_DTYPE_COMPLEX128 ? table[from][to] : NULL;
}

/* Where a pair without a loop goes through. */
static cfx_dtype between(cfx_dtype to, cfx_dtype from)
{
    bool half_to = to == CFX_DTYPE_FLOAT16 || to == CFX_DTYPE_BFLOAT16;
    if (from == CFX_DTYPE_FLOAT16 || from == CFX_DTYPE_BFLOAT16)
        return CFX_DTYPE_FLOAT32;
    if (from == CFX_DTYPE_COMPLEX64)
        return CFX_DTYPE_COMPLEX128;
    if (from == CFX_DTYPE_COMPLEX128)
        return CFX_DTYPE_FLOAT64;
    return half_to                       ? CFX_DTYPE_FLOAT32
           : to == CFX_DTYPE_COMPLEX64   ? CFX_DTYPE_COMPLEX128
           : to == CFX_DTYPE_COMPLEX128  ? CFX_DTYPE_FLOAT64
                                         : CFX_DTYPE_INT64;
}

enum { BLOCK = 256 };

/* Types that are seldom: element by element. */
static void convert_each(cfx_dtype to, char *dst, cfx_dtype from, const char *src, int64_t n)
{
    const int64_t in = (int64_t)cfx_dtype_size(from);
    const int64_t out = (int64_t)cfx_dtype_size(to);
    const bool whole = !cfx_dtype_is_float(from) && !cfx_dtype_is_float(to);
    for (int64_t i = 0; i < n; i++) {
        if (whole)
            cfxi_tensor_store_int(to, dst + i * out, cfxi_tensor_load_int(from, src + i * in));
        else
            cfxi_tensor_store_float(to, dst + i * out, cfxi_tensor_load_float(from, src + i * in));
    }
}

void cfxi_rt_convert(cfx_isa isa, cfx_dtype to, void *dst, cfx_dtype from, const void *src,
                     int64_t n)
{
    _Alignas(CFXI_ALIGN) char middle[BLOCK * sizeof(c128)];
    if (to == from) {
        memmove(dst, src, (size_t)n * cfx_dtype_size(to));
        return;
    }
    convert_fn *fn = direct(to, from);
    if (fn) {
        with_isa(isa, fn)(n, src, dst);
        return;
    }
    if ((cfxi_tensor_dtype_is_rare(to) || cfxi_tensor_dtype_is_rare(from)) &&
        !cfx_dtype_is_complex(from) && !cfx_dtype_is_complex(to)) {
        convert_each(to, dst, from, src, n);
        return;
    }
    cfx_dtype mid = between(to, from);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t some = n - i < BLOCK ? n - i : BLOCK;
        cfxi_rt_convert(isa, mid, middle, from,
                        (const char *)src + (size_t)i * cfx_dtype_size(from), some);
        cfxi_rt_convert(isa, to, (char *)dst + (size_t)i * cfx_dtype_size(to), mid, middle, some);
    }
}
