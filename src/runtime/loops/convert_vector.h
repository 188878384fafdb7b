/* convert_vector.h - conversions of element types, for one instruction set; included once for each,
 * after vector.h. Mostly plain C that the compiler makes vectors of.
 *
 * Floats become small integers as x86 does it, and so PyTorch: by way of int32, where what is out
 * of range is INT32_MIN.
 */
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
LOOP(bf16_f32, uint16_t, uint32_t, (uint32_t)x << 16)

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

/* ---- float16 ------------------------------------------------------------------------------- */

LOOP(f16_f32_each, uint16_t, float, cfxi_tensor_half_to_float(x))
LOOP(f32_f16_each, float, uint16_t, cfxi_tensor_float_to_half(x))

#if LANES == 16
#define NEAREST_HALF (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
INLINE V load_halves(const uint16_t *x)
{
    return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x));
}
INLINE void store_halves(uint16_t *y, V x)
{
    _mm256_storeu_si256((__m256i *)(void *)y, _mm512_cvtps_ph(x, NEAREST_HALF));
}
#elif LANES == 8
INLINE V load_halves(const uint16_t *x)
{
    return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x));
}
INLINE void store_halves(uint16_t *y, V x)
{
    _mm_storeu_si128((__m128i *)(void *)y, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(NEON)
INLINE V load_halves(const uint16_t *x)
{
    return (V)vcvt_f32_f16((float16x4_t)vld1_u16(x));
}
INLINE void store_halves(uint16_t *y, V x)
{
    vst1_u16(y, (uint16x4_t)vcvt_f16_f32((float32x4_t)x));
}
#endif

#if LANES > 4 || defined(NEON)
static void f16_f32(int64_t n, const void *from, void *to)
{
    const uint16_t *a = from;
    float *y = to;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        STORE(y + i, load_halves(a + i));
    f16_f32_each(n - i, a + i, y + i);
}

static void f32_f16(int64_t n, const void *from, void *to)
{
    const float *a = from;
    uint16_t *y = to;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_halves(y + i, LOAD(a + i));
    f32_f16_each(n - i, a + i, y + i);
}
#else
#define f16_f32 f16_f32_each
#define f32_f16 f32_f16_each
#endif

/* ---- the table ----------------------------------------------------------------------------- */

#define D(name) CFX_DTYPE_##name
const cfxi_converts ISA(cfxi_rt_converts) = {{
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
}};
#undef D
