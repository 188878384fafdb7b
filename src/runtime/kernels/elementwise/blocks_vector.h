/* blocks_vector.h - functions of float, a vector at a time; included once for each instruction set.
 *
 * The file that includes it has included vector.h, and defines STORE_COMPARED(op, a, b, to): a
 * compare predicate of immintrin.h to LANES bytes.
 *
 * Polynomials are least-maximum fits made for the intervals named; errors are below 3 ulp.
 */
#include "blocks.h"

#include <math.h>
#include <tgmath.h>

#define K(x) SET(x)

/* ---- elementary functions ------------------------------------------------------------------ */

INLINE V vabs(V x) { return AND(x, (V)(VI_SET(0x7fffffff))); }
INLINE V with_sign_of(V x, V sign) { return XOR(x, AND(sign, (V)(VI_SET(INT32_MIN)))); }

INLINE V vexp2(V x)
{
    x = MAX(K(-151.f), MIN(K(129.f), x));
    V n = NEAREST(x);
    V r = x - n;
    V p = FMA(K(1.53100693e-05f), r, K(0.000154614472f));
    p = FMA(p, r, K(0.00133334546f));
    p = FMA(p, r, K(0.00961805667f));
    p = FMA(p, r, K(0.0555041093f));
    p = FMA(p, r, K(0.240226509f));
    p = FMA(p, r, K(0.693147181f));
    return SCALE(FMA(p, r, K(1.f)), n);
}

/* Near 0 e^x - 1 = x + x^2 P(x): the difference would cancel. */
INLINE V vexpm1(V x)
{
    V p = FMA(K(0.00019979471f), x, K(0.00139821957f));
    p = FMA(p, x, K(0.00833312802f));
    p = FMA(p, x, K(0.041665791f));
    p = FMA(p, x, K(0.166666675f));
    p = FMA(p, x, K(0.5f));
    p = FMA(p, x * x, x);
    return SELECT(_CMP_LT_OQ, vabs(x), K(0.5f), p, v_exp(x) - K(1.f));
}

/* x = m 2^e, m in [sqrt(1/2), sqrt(2)): the exponent, and log(m) = f - f^2/2 + f^3 P(f). */
INLINE V vlog_parts(V x, V *exponent)
{
    V tiny = SELECT(_CMP_LT_OQ, x, K(1.17549435e-38f), K(1.f), K(0.f));
    x = SELECT(_CMP_LT_OQ, x, K(1.17549435e-38f), x * K(8388608.f), x);
    VI bits = (VI)((VU)x - (VU)VI_SET(0x3f3504f3));  /* of negative numbers it wraps */
    *exponent = FLOAT(bits >> 23) - tiny * K(23.f);
    V f = (V)((bits & VI_SET(0x007fffff)) + VI_SET(0x3f3504f3)) - K(1.f);
    V p = FMA(K(0.0733213968f), f, K(-0.116597508f));
    p = FMA(p, f, K(0.116347244f));
    p = FMA(p, f, K(-0.123967295f));
    p = FMA(p, f, K(0.142511524f));
    p = FMA(p, f, K(-0.166691496f));
    p = FMA(p, f, K(0.200006882f));
    p = FMA(p, f, K(-0.249999812f));
    p = FMA(p, f, K(0.333333313f));
    V z = f * f;
    return FMA(p * f, z, FMA(z, K(-0.5f), f));
}

/* What a logarithm of 0, infinity, negative numbers and NaN is. */
INLINE V vlog_ends(V x, V y)
{
    y = SELECT(_CMP_NEQ_UQ, x, K(0.f), y, K(-INFINITY));
    y = SELECT(_CMP_LT_OQ, x, K(0.f), K(NAN), y);
    return SELECT(_CMP_NLT_UQ, x, K(INFINITY), x, y);
}

INLINE V vlog(V x)
{
    V e;
    V m = vlog_parts(x, &e);
    return vlog_ends(x, FMA(e, K(0.693359375f), FMA(e, K(-2.12194440e-4f), m)));
}

INLINE V vlog2(V x)
{
    V e;
    V m = vlog_parts(x, &e);
    return vlog_ends(x, FMA(m, K(1.44269504f), e));
}

INLINE V vlog10(V x)
{
    V e;
    V m = vlog_parts(x, &e);
    return vlog_ends(x, FMA(m, K(0.434294482f), e * K(0.301029996f)));
}

/* log(1 + x) of the rounded sum, and what the rounding lost. */
INLINE V vlog1p(V x)
{
    V u = K(1.f) + x;
    V y = vlog(u);
    V lost = (x - (u - K(1.f))) / u;
    V sure = SELECT(_CMP_LT_OQ, vabs(u), K(INFINITY), y + lost, y);
    return SELECT(_CMP_NEQ_UQ, u, K(0.f), sure, y);
}

/* Near 0 x + x^3 P(x^2), else 1 - 2 / (e^2x + 1). */
INLINE V vtanh(V x)
{
    V a = vabs(x);
    V z = x * x;
    V p = FMA(K(-0.00611317521f), z, K(0.0210100688f));
    p = FMA(p, z, K(-0.0538540667f));
    p = FMA(p, z, K(0.133327945f));
    p = FMA(p, z, K(-0.333333292f));
    p = FMA(p, z * a, a);
    V far = K(1.f) - K(2.f) / (v_exp(a + a) + K(1.f));
    return with_sign_of(SELECT(_CMP_LT_OQ, a, K(0.625f), p, far), x);  /* that of zero, too */
}

/* Up to 1: x P(x^2); then 1 - e^(-x^2) Q(1 / (1 + 0.3275911 x)), which is 1 from 4 on. */
INLINE V verf(V x)
{
    V a = vabs(x);
    V z = x * x;
    V p = FMA(K(7.88910889e-05f), z, K(-0.000802083809f));
    p = FMA(p, z, K(0.00518953498f));
    p = FMA(p, z, K(-0.0268544444f));
    p = FMA(p, z, K(0.112836002f));
    p = FMA(p, z, K(-0.376126271f));
    p = FMA(p, z, K(1.12837917f)) * x;
    V t = K(1.f) / FMA(K(0.3275911f), a, K(1.f));
    V q = FMA(K(0.267688959f), t, K(0.0689357996f));
    q = FMA(q, t, K(0.0150358911f));
    q = FMA(q, t, K(0.34289019f));
    q = FMA(q, t, K(0.103927824f));
    q = FMA(q, t, K(0.203603488f));
    q = FMA(q, t, K(-0.00173639265f));
    V far = FMA(v_exp(-z), -q, K(1.f));
    far = SELECT(_CMP_LT_OQ, a, K(4.2f), far, K(1.f));
    V y = SELECT(_CMP_LT_OQ, a, K(1.f), p, with_sign_of(far, x));
    return SELECT(_CMP_UNORD_Q, x, x, x, y);
}

enum { FAR_ANGLE = 30000 };  /* from here on the reduction loses bits: libm does it */

/* sin(x + quarter * pi / 2), |x| < FAR_ANGLE. */
INLINE V vsin_from(V x, VI quarter)
{
    V n = NEAREST(x * K(0.636619772f));
    V r = FMA(n, K(-1.5707964f), x);
    r = FMA(n, K(4.3711388e-8f), r);
    r = FMA(n, K(1.7151245e-15f), r);
    VI q = INT(n) + quarter;
    V z = r * r;
    V s = FMA(K(2.72500014e-06f), z, K(-0.000198400874f));
    s = FMA(s, z, K(0.00833333188f));
    s = FMA(s, z, K(-0.166666667f));
    s = FMA(s, z * r, r);
    V c = FMA(K(2.45480404e-05f), z, K(-0.00138883036f));
    c = FMA(c, z, K(0.0416666647f));
    c = FMA(c, z * z, FMA(z, K(-0.5f), K(1.f)));
    V odd = FLOAT(q & VI_SET(1));
    V y = SELECT(_CMP_NEQ_UQ, odd, K(0.f), c, s);
    return XOR(y, (V)((q & VI_SET(2)) << 30));
}

INLINE V vsigmoid(V x) { return K(1.f) / (K(1.f) + v_exp(-x)); }
INLINE V vsilu(V x) { return x / (K(1.f) + v_exp(-x)); }
/* The share of a normal distribution below -|x| is e^(-x^2/2) P(1 / (1 + 0.3 |x|)), to 1.2e-7 of
 * itself: nothing cancels where x is negative. From 20 on it is 0, also for infinity. */
INLINE V vgelu(V x)
{
    V a = vabs(x);
    V t = K(1.f) / FMA(K(0.3f), a, K(1.f));
    V p = FMA(K(0.0360889116f), t, K(-0.158934021f));
    p = FMA(p, t, K(0.209346868f));
    p = FMA(p, t, K(-0.0564505134f));
    p = FMA(p, t, K(0.130032828f));
    p = FMA(p, t, K(0.0994650038f));
    p = FMA(p, t, K(0.120826324f));
    p = FMA(p, t, K(0.11962454f)) * t;
    V below = p * v_exp(x * x * K(-0.5f));
    return SELECT(_CMP_GT_OQ, x, K(0.f), FMA(-MIN(K(20.f), a), below, x), x * below);
}
INLINE V vgelu_tanh(V x)
{
    V inner = K(0.79788456f) * FMA(K(0.044715f) * x, x * x, x);
    V half = x * K(0.5f);
    return FMA(half, vtanh(inner), half);
}

/* The slopes of silu and gelu. */
INLINE V vsilu_slope(V x)
{
    V p = vsigmoid(x);
    return p * FMA(x, K(1.f) - p, K(1.f));
}
INLINE V vgelu_slope(V x)
{
    V below = FMA(K(0.5f), verf(x * K(0.70710678f)), K(0.5f));
    return FMA(x * K(0.39894228f), v_exp(x * x * K(-0.5f)), below);
}
INLINE V vgelu_tanh_slope(V x)
{
    V z = x * x;
    V t = vtanh(K(0.79788456f) * FMA(K(0.044715f) * x, z, x));
    V inner = K(0.79788456f) * FMA(K(0.134145f), z, K(1.f));
    return FMA(K(0.5f) * x * (K(1.f) - t * t), inner, FMA(K(0.5f), t, K(0.5f)));
}

/* x tanh(log(1 + e^x)) = x w / (w + 2), w = e^x (e^x + 2). */
INLINE V vmish(V x)
{
    V e = v_exp(x);
    V w = e * (e + K(2.f));
    return SELECT(_CMP_GT_OQ, x, K(20.f), x, x * w / (w + K(2.f)));
}

INLINE V vsoftplus(V x, V beta, V threshold)
{
    V z = x * beta;
    return SELECT(_CMP_GT_OQ, z, threshold, x, vlog1p(v_exp(z)) / beta);
}

INLINE V vlog_sigmoid(V x)
{
    return MIN(K(0.f), x) - vlog1p(v_exp(-vabs(x)));
}

INLINE V velu(V x, V below, V above, V inner)
{
    return SELECT(_CMP_GT_OQ, x, K(0.f), x * above, below * vexpm1(x * inner));
}

/* ---- over blocks --------------------------------------------------------------------------- */

/* The last, incomplete vector is computed in a buffer. */
#define VECTOR_UNARY(name, expr)                                                                   \
    static void name##_v(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)      \
    {                                                                                              \
        const float *a = from[0];                                                                  \
        float *y = to;                                                                             \
        int64_t i = 0;                                                                             \
        (void)s;                                                                                   \
        for (; i + LANES <= n; i += LANES) {                                                       \
            V x = LOAD(a + i);                                                                     \
            STORE(y + i, expr);                                                                    \
        }                                                                                          \
        if (i < n) {                                                                               \
            float rest[LANES] = {0};                                                               \
            memcpy(rest, a + i, (size_t)(n - i) * sizeof *rest);                                   \
            V x = LOAD(rest);                                                                      \
            STORE(rest, expr);                                                                     \
            memcpy(y + i, rest, (size_t)(n - i) * sizeof *rest);                                   \
        }                                                                                          \
    }
VECTOR_UNARY(hardsigmoid, v_clamp(x + K(3.f), K(0.f), K(6.f)) / K(6.f))
VECTOR_UNARY(hardswish, x * v_clamp(x + K(3.f), K(0.f), K(6.f)) / K(6.f))
VECTOR_UNARY(exp, v_exp(x))
VECTOR_UNARY(exp2, vexp2(x))
VECTOR_UNARY(expm1, vexpm1(x))
VECTOR_UNARY(log, vlog(x))
VECTOR_UNARY(log2, vlog2(x))
VECTOR_UNARY(log10, vlog10(x))
VECTOR_UNARY(log1p, vlog1p(x))
VECTOR_UNARY(tanh, vtanh(x))
VECTOR_UNARY(erf, verf(x))
VECTOR_UNARY(sigmoid, vsigmoid(x))
VECTOR_UNARY(silu, vsilu(x))
VECTOR_UNARY(gelu, vgelu(x))
VECTOR_UNARY(gelu_tanh, vgelu_tanh(x))
VECTOR_UNARY(mish, vmish(x))
VECTOR_UNARY(softplus, vsoftplus(x, K((float)s->f[0]), K((float)s->f[1])))
VECTOR_UNARY(log_sigmoid, vlog_sigmoid(x))
VECTOR_UNARY(elu, velu(x, K((float)s->f[0]), K((float)s->f[1]), K((float)s->f[2])))

/* Of a and b; the last, incomplete vector likewise. */
#define VECTOR_BINARY(name, expr)                                                                  \
    static void name##_v(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)      \
    {                                                                                              \
        const float *const *x = (const float *const *)from;                                        \
        float *y = to;                                                                             \
        int64_t i = 0;                                                                             \
        (void)s;                                                                                   \
        for (; i + LANES <= n; i += LANES) {                                                       \
            V a = LOAD(x[0] + i);                                                                  \
            V b = LOAD(x[1] + i);                                                                  \
            STORE(y + i, expr);                                                                    \
        }                                                                                          \
        if (i < n) {                                                                               \
            float rest[2][LANES] = {{0}};                                                          \
            for (int k = 0; k < 2; k++)                                                            \
                memcpy(rest[k], x[k] + i, (size_t)(n - i) * sizeof **rest);                        \
            V a = LOAD(rest[0]);                                                                   \
            V b = LOAD(rest[1]);                                                                   \
            STORE(rest[0], expr);                                                                  \
            memcpy(y + i, rest[0], (size_t)(n - i) * sizeof **rest);                               \
        }                                                                                          \
    }
VECTOR_BINARY(glu, a / (K(1.f) + v_exp(-b)))
VECTOR_BINARY(silu_backward, a * vsilu_slope(b))
VECTOR_BINARY(gelu_backward, a * vgelu_slope(b))
VECTOR_BINARY(gelu_tanh_backward, a * vgelu_tanh_slope(b))

static bool any_far(const float *a, int64_t n)
{
    bool far = false;
    for (int64_t i = 0; i < n; i++)
        far |= !(fabsf(a[i]) < FAR_ANGLE);
    return far;
}

/* Angles that are too far away for the reduction, and infinite ones, are libm's. */
#define VECTOR_ANGLE(name, quarter, plain)                                                         \
    VECTOR_UNARY(near_##name, vsin_from(x, VI_SET(quarter)))                                       \
    static void name##_v(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)      \
    {                                                                                              \
        const float *a = from[0];                                                                  \
        float *y = to;                                                                             \
        for (int64_t i = 0; i < n; i += 256) {                                                     \
            int64_t some = n - i < 256 ? n - i : 256;                                              \
            const void *part = a + i;                                                              \
            if (!any_far(a + i, some))                                                             \
                near_##name##_v(s, some, &part, y + i);                                            \
            else                                                                                   \
                for (int64_t k = i; k < i + some; k++)                                             \
                    y[k] = plain(a[k]);                                                            \
        }                                                                                          \
    }
VECTOR_ANGLE(sin, 0, sinf)
VECTOR_ANGLE(cos, 1, cosf)

/* Cheap ones: the compiler makes the vectors. */
#define T float
#define S(k) ((float)s->f[k])
#define LOOP(name, type, body)                                                                     \
    static void name##_v(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)      \
    {                                                                                              \
        type *y = to;                                                                              \
        (void)s;                                                                                   \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                       \
        {                                                                                          \
            body                                                                                   \
        }                                                                                          \
    }
#define READ(name, k) const float name = ((const float *)from[k])[i];
#define X(name, expr) LOOP(name, float, READ(x, 0) y[i] = expr;)
CFXI_CHEAP_UNARY(X)
#undef X
#define X(name, expr) LOOP(name, float, READ(a, 0) READ(b, 1) y[i] = expr;)
CFXI_CHEAP_BINARY(X)
#undef X
#define X(name, expr) LOOP(name, float, READ(a, 0) READ(b, 1) READ(d, 2) y[i] = expr;)
CFXI_CHEAP_TERNARY(X)
#undef X
#define X(name, expr) LOOP(name, uint8_t, READ(x, 0) y[i] = expr;)
CFXI_PREDICATES(X)
#undef X
#define X(name, expr) LOOP(name, uint8_t, READ(a, 0) READ(b, 1) y[i] = expr;)
CFXI_LOGIC(X)
#undef X

/* A vector of comparisons is LANES bytes. */
#define COMPARE(name, predicate, op)                                                               \
    static void name##_v(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)      \
    {                                                                                              \
        const float *a = from[0];                                                                  \
        const float *b = from[1];                                                                  \
        uint8_t *y = to;                                                                           \
        int64_t i = 0;                                                                             \
        (void)s;                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            STORE_COMPARED(predicate, LOAD(a + i), LOAD(b + i), y + i);                            \
        for (; i < n; i++)                                                                         \
            y[i] = a[i] op b[i];                                                                   \
    }
COMPARE(eq, _CMP_EQ_OQ, ==)
COMPARE(ne, _CMP_NEQ_UQ, !=)
COMPARE(lt, _CMP_LT_OQ, <)
COMPARE(le, _CMP_LE_OQ, <=)
COMPARE(gt, _CMP_GT_OQ, >)
COMPARE(ge, _CMP_GE_OQ, >=)

const cfxi_blocks ISA(cfxi_elementwise_blocks) = {{
#define X(name, expr) [CFXI_FN_##name] = name##_v,
    CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PREDICATES(X) CFXI_CHEAP_BINARY(X)
    CFXI_VECTOR_BINARY(X) CFXI_EQUALITIES(X) CFXI_ORDERS(X) CFXI_CHEAP_TERNARY(X)
#undef X
}};
