/* vector.h - vectors of floats, for code that is compiled once for each instruction set.
 *
 * A file that is compiled so defines LANES, the floats of a vector (4: any machine, or with NEON
 * that; 8: AVX2, 16: AVX-512), sets its own `#pragma GCC optimize`, includes this, and then the
 * template. It gives ISA(name), the name of a table of this instruction set (isa.h), the vectors V,
 * VI and VU, and below. Without the optimization fp-contract=fast only FMA rounds once.
 */
#include "runtime_impl.h"

#if LANES == 16
#include <immintrin.h>
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512")
#define ISA(name) name##_avx512
#elif LANES == 8
#include <immintrin.h>
#pragma GCC target("avx2,fma,f16c")
#define ISA(name) name##_avx2
#elif defined(NEON)
#include <arm_neon.h>
#define ISA(name) name##_neon
#else
#define ISA(name) name##_plain
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 32")

/* A vector may lie at any address of a float. */
typedef float V __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)),
                               may_alias));
typedef int32_t VI __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t VU __attribute__((vector_size(LANES * sizeof(float))));
typedef double VD __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(double)),
                                 may_alias));

INLINE V LOAD(const float *x) { return *(const V *)x; }
INLINE void STORE(float *to, V x) { *(V *)to = x; }
INLINE V SET(float x) { return x - (V){0}; }
INLINE VI VI_SET(int32_t x) { return x - (VI){0}; }
INLINE V AND(V x, V y) { return (V)((VI)x & (VI)y); }
INLINE V XOR(V x, V y) { return (V)((VI)x ^ (VI)y); }

/* FMA(a, b, c) = a * b + c; MAX and MIN give the second if one is NaN; NEAREST is a whole number,
 * |x| < 2^22; SCALE(p, n) = p * 2^n for a whole n, also below the normal range; LOAD_SOME reads n
 * < LANES floats and zeros for the rest, STORE_SOME writes n; WIDEN reads LANES / 2 floats as
 * doubles. */
#if LANES == 16
#define FMA _mm512_fmadd_ps
#define MAX _mm512_max_ps
#define MIN _mm512_min_ps
#define NEAREST(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define INT(x) ((VI)_mm512_cvtps_epi32(x))
#define FLOAT(x) _mm512_cvtepi32_ps((__m512i)(x))
#define SCALE _mm512_scalef_ps
#define WIDEN(x) ((VD)_mm512_cvtps_pd(_mm256_loadu_ps(x)))
#define SELECT(op, a, b, x, y) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, op), y, x)
INLINE V LOAD_SOME(const float *x, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x);
}
INLINE void STORE_SOME(float *to, V x, int64_t n)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), x);
}
#else
#if LANES == 8
#define FMA _mm256_fmadd_ps
#define MAX _mm256_max_ps
#define MIN _mm256_min_ps
#define NEAREST(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define INT(x) ((VI)_mm256_cvtps_epi32(x))
#define FLOAT(x) _mm256_cvtepi32_ps((__m256i)(x))
#define SELECT(op, a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, op))
#define WIDEN(x) ((VD)_mm256_cvtps_pd(_mm_loadu_ps(x)))
INLINE __m256i FIRST(int64_t n)  /* lanes */
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE V LOAD_SOME(const float *x, int64_t n) { return _mm256_maskload_ps(x, FIRST(n)); }
INLINE void STORE_SOME(float *to, V x, int64_t n) { _mm256_maskstore_ps(to, FIRST(n), x); }
#else
INLINE V LOAD_SOME(const float *x, int64_t n)
{
    return (V){n > 0 ? x[0] : 0, n > 1 ? x[1] : 0, n > 2 ? x[2] : 0};
}
INLINE void STORE_SOME(float *to, V x, int64_t n)
{
    UNROLL for (int i = 0; i < LANES - 1; i++)
        if (i < n)
            to[i] = x[i];
}
#endif
#if defined(NEON)
/* Predicates have the names of immintrin.h. */
#define COMPARED_CMP_EQ_OQ(a, b) ((a) == (b))
#define COMPARED_CMP_NEQ_UQ(a, b) ((a) != (b))
#define COMPARED_CMP_LT_OQ(a, b) ((a) < (b))
#define COMPARED_CMP_LE_OQ(a, b) ((a) <= (b))
#define COMPARED_CMP_GT_OQ(a, b) ((a) > (b))
#define COMPARED_CMP_GE_OQ(a, b) ((a) >= (b))
#define COMPARED_CMP_NLT_UQ(a, b) (~((a) < (b)))
#define COMPARED_CMP_UNORD_Q(a, b) (((a) != (a)) | ((b) != (b)))
#define COMPARED(op, a, b) ((uint32x4_t)(COMPARED##op(a, b)))
#define SELECT(op, a, b, x, y) ((V)vbslq_f32(COMPARED(op, a, b), x, y))
INLINE V FMA(V a, V b, V c) { return (V)vfmaq_f32(c, a, b); }
INLINE V MAX(V a, V b) { return SELECT(_CMP_GT_OQ, a, b, a, b); }
INLINE V MIN(V a, V b) { return SELECT(_CMP_LT_OQ, a, b, a, b); }
INLINE V NEAREST(V x) { return (V)vrndnq_f32(x); }
INLINE VI INT(V x) { return (VI)vcvtq_s32_f32(x); }
INLINE V FLOAT(VI x) { return (V)vcvtq_f32_s32((int32x4_t)x); }
INLINE VD WIDEN(const float *x) { return (VD)vcvt_f64_f32(vld1_f32(x)); }
#elif LANES == 4
INLINE V FMA(V a, V b, V c) { return a * b + c; }
INLINE V MAX(V a, V b)
{
    const VI m = a > b;
    return (V)((m & (VI)a) | (~m & (VI)b));
}
INLINE V MIN(V a, V b)
{
    const VI m = a < b;
    return (V)((m & (VI)a) | (~m & (VI)b));
}
INLINE V NEAREST(V x) { return (x + 12582912.f) - 12582912.f; }
INLINE VI INT(V x) { return __builtin_convertvector(x, VI); }
INLINE VD WIDEN(const float *x) { return (VD){(double)x[0], (double)x[1]}; }
#endif
/* In two steps, so that results below the normal range come out right. */
INLINE V SCALE(V p, V n)
{
    const VI whole = INT(n);
    const VI half = whole >> 1;
    return p * (V)((half + 127) << 23) * (V)((whole - half + 127) << 23);
}
#endif

/* NaN stays: it is neither below nor above. */
INLINE V v_clamp(V x, V low, V high) { return MIN(high, MAX(low, x)); }

/* What is not a number wins. */
INLINE V v_larger(V a, V b)
{
#if LANES == 4
    const VI m = (a > b) | (a != a);
    return (V)((m & (VI)a) | (~m & (VI)b));
#else
    return SELECT(_CMP_UNORD_Q, a, a, a, MAX(a, b));
#endif
}

/* n floats, at most LANES. */
INLINE V v_load(const float *x, int64_t n) { return n < LANES ? LOAD_SOME(x, n) : LOAD(x); }
INLINE void v_store(float *to, V x, int64_t n)
{
    if (n < LANES)
        STORE_SOME(to, x, n);
    else
        STORE(to, x);
}

INLINE float v_sum(V x)
{
    float s[LANES];
    STORE(s, x);
    UNROLL for (int w = LANES / 2; w > 0; w /= 2)
        UNROLL for (int i = 0; i < w; i++)
            s[i] += s[i + w];
    return s[0];
}

INLINE double vd_sum(VD x)
{
    double s[LANES / 2];
    *(VD *)s = x;
    UNROLL for (int w = LANES / 4; w > 0; w /= 2)
        UNROLL for (int i = 0; i < w; i++)
            s[i] += s[i + w];
    return s[0];
}

INLINE float v_most(V x)
{
    float s[LANES];
    STORE(s, x);
    UNROLL for (int w = LANES / 2; w > 0; w /= 2)
        UNROLL for (int i = 0; i < w; i++)
            s[i] = s[i] > s[i + w] ? s[i] : s[i + w];
    return s[0];
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 P(r). P is a least-maximum fit; the error is
 * below 1.5 ulp. */
INLINE V v_exp(V x)
{
    x = MAX(SET(-104.f), MIN(SET(89.f), x));
    const V n = NEAREST(x * SET(1.44269504f));
    V r = FMA(n, SET(-0.693359375f), x);
    r = FMA(n, SET(2.12194440e-4f), r);
    V p = FMA(SET(0.00139421369f), r, SET(0.0083637693f));
    p = FMA(p, r, SET(0.0416663637f));
    p = FMA(p, r, SET(0.166665734f));
    p = FMA(p, r, SET(0.5f));
    p = FMA(p, r * r, r) + SET(1.f);
    return SCALE(p, n);
}
