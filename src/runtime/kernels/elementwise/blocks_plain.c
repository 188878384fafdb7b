/* blocks_plain.c - element-wise functions in plain C, for each type that is computed in. */
#pragma GCC optimize("O3", "no-math-errno")
#include "blocks.h"

#include <math.h>
#include <tgmath.h>

typedef double complex c128;

/* ---- of floats ----------------------------------------------------------------------------- */

/* Python's: the quotient is whole, and quotient * b + remainder is a. */
static double floor_of_quotient(double a, double b)
{
    if (b == 0)
        return a / b;
    double mod = fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0))
        div -= 1;
    if (div == 0)
        return copysign(0.0, a / b);
    double whole = floor(div);
    return div - whole > 0.5 ? whole + 1 : whole;
}

static double remainder_of(double a, double b)
{
    double mod = fmod(a, b);
    return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

/* Without overflow; equal infinities are themselves. */
static double log_add_exp(double a, double b)
{
    if (isinf(a) && a == b)
        return a;
    double most = a > b || a != a ? a : b;
    return most + log1p(exp(-fabs(a - b)));
}

static double log_add_exp2(double a, double b)
{
    if (isinf(a) && a == b)
        return a;
    double most = a > b || a != a ? a : b;
    return most + log1p(exp2(-fabs(a - b))) / 0.69314718055994530942;
}

/* The slopes of gelu: of x times the normal distribution, and of the form with tanh. */
static double gelu_slope(double x)
{
    return 0.5 * (1 + erf(x * 0.70710678118654752440)) +
           x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

static double gelu_tanh_slope(double x)
{
    const double root = 0.79788456080286535588;
    double t = tanh(root * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

static double logit_of(double x) { return log(x / (1 - x)); }

/* ---- of integers --------------------------------------------------------------------------- */

static int64_t by_zero(const cfxi_scalars *s)
{
    atomic_store_explicit(s->bad, 1, memory_order_relaxed);
    return 0;
}

/* x / -1 is negation, which wraps: the division would trap. */
static int64_t int_quotient(int64_t a, int64_t b, const cfxi_scalars *s)
{
    return b == 0 ? by_zero(s) : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t int_floor_quotient(int64_t a, int64_t b, const cfxi_scalars *s)
{
    int64_t q = int_quotient(a, b, s);
    return b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t int_fmod(int64_t a, int64_t b, const cfxi_scalars *s)
{
    return b == 0 ? by_zero(s) : b == -1 ? 0 : a % b;
}

static int64_t int_remainder(int64_t a, int64_t b, const cfxi_scalars *s)
{
    int64_t mod = int_fmod(a, b, s);
    return mod != 0 && (mod < 0) != (b < 0) ? mod + b : mod;
}

static int64_t int_pow(int64_t a, int64_t b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (uint64_t square = (uint64_t)a; b; b >>= 1, square *= square)
        if (b & 1)
            result *= square;
    return (int64_t)result;
}

/* Results that do not fit wrap. */
static int64_t int_gcd(int64_t a, int64_t b)
{
    return (int64_t)cfxi_base_gcd(cfxi_base_gcd(0, a), b);
}

static int64_t int_lcm(int64_t a, int64_t b)
{
    const uint64_t gcd = cfxi_base_gcd(cfxi_base_gcd(0, a), b);
    if (gcd == 0)
        return 0;
    const uint64_t product = cfxi_base_gcd(0, a) / gcd * cfxi_base_gcd(0, b);
    return (int64_t)cfxi_base_gcd(0, (int64_t)product);
}

/* ---- of complex numbers -------------------------------------------------------------------- */

/* By the schoolbook: unlike C's product it does not find out what infinities were meant to be. */
static c128 times(c128 a, c128 b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

static c128 divide(c128 a, c128 b) { return a / b; }

/* Whether nothing says in which direction it goes. */
static bool is_nowhere(c128 x) { return !isfinite(creal(x)) && !isfinite(cimag(x)); }

static c128 inverse(c128 x) { return is_nowhere(x) ? CMPLX(NAN, NAN) : divide(1, x); }

static c128 complex_silu(c128 x)
{
    c128 below = 1 + cexp(-x);
    return is_nowhere(x) || is_nowhere(below) ? CMPLX(NAN, NAN) : divide(x, below);
}

static c128 complex_expm1(c128 x)
{
    double half = sin(cimag(x) / 2);
    return CMPLX(expm1(creal(x)) * cos(cimag(x)) - 2 * half * half,
                 exp(creal(x)) * sin(cimag(x)));
}

static c128 complex_log1p(c128 x)
{
    double re = creal(x);
    double im = cimag(x);
    double more = 2 * re + re * re + im * im;  /* |1 + x|^2 - 1, which is exact near x = 0 */
    bool near = more >= -0.5 && more < 1;
    return CMPLX(near ? 0.5 * log1p(more) : log(hypot(1 + re, im)), atan2(im, 1 + re));
}

static double number_for(double x, const cfxi_scalars *s)
{
    return x != x ? s->f[0] : isfinite(x) ? x : x > 0 ? s->f[1] : s->f[2];
}

static c128 complex_nan_to_num(c128 x, const cfxi_scalars *s)
{
    return CMPLX(number_for(creal(x), s), number_for(cimag(x), s));
}

/* To the power of a number. */
static c128 complex_power(c128 a, c128 b) { return b == 0 ? 1 : b == 1 ? a : cpow(a, b); }

static c128 complex_log_add_exp(c128 a, c128 b)
{
    if (a != a || b != b)
        return CMPLX(NAN, NAN);
    c128 most = creal(a) >= creal(b) ? a : b;
    c128 least = creal(a) >= creal(b) ? b : a;
    if (isinf(creal(most)) && creal(most) == creal(least))
        return creal(most) < 0 ? b : clog(cexp(a) + cexp(b));
    return most + complex_log1p(cexp(least - most));
}

/* ---- over blocks --------------------------------------------------------------------------- */

#define LOOP(name, type, body)                                                                     \
    static void name(const cfxi_scalars *s, int64_t n, const void *const *from, void *to)          \
    {                                                                                              \
        type *y = to;                                                                              \
        (void)s;                                                                                   \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                       \
        {                                                                                          \
            body                                                                                   \
        }                                                                                          \
    }
#define READ(name, k) const T name = ((const T *)from[k])[i];
#define UNARY(name, type, expr) LOOP(name, type, READ(x, 0) y[i] = (type)(expr);)
#define BINARY(name, type, expr) LOOP(name, type, READ(a, 0) READ(b, 1) y[i] = (type)(expr);)
#define TERNARY(name, type, expr)                                                                  \
    LOOP(name, type, READ(a, 0) READ(b, 1) READ(d, 2) y[i] = (type)(expr);)

#define T float
#define S(k) ((float)s->f[k])
#define X(name, expr) UNARY(name##_f32, float, expr)
CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PLAIN_UNARY(X)
#undef X
#define X(name, expr) BINARY(name##_f32, float, expr)
CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X) CFXI_PLAIN_BINARY(X)
#undef X
#define X(name, expr) TERNARY(name##_f32, float, expr)
CFXI_CHEAP_TERNARY(X)
#undef X
#define X(name, expr) UNARY(name##_f32, uint8_t, expr)
CFXI_PREDICATES(X)
#undef X
#define X(name, expr) BINARY(name##_f32, uint8_t, expr)
CFXI_EQUALITIES(X) CFXI_ORDERS(X)
#undef X
#undef T
#undef S

#define T double
#define S(k) (s->f[k])
#define X(name, expr) UNARY(name##_f64, double, expr)
CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PLAIN_UNARY(X)
#undef X
#define X(name, expr) BINARY(name##_f64, double, expr)
CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X) CFXI_PLAIN_BINARY(X)
#undef X
#define X(name, expr) TERNARY(name##_f64, double, expr)
CFXI_CHEAP_TERNARY(X)
#undef X
#define X(name, expr) UNARY(name##_f64, uint8_t, expr)
CFXI_PREDICATES(X)
#undef X
#define X(name, expr) BINARY(name##_f64, uint8_t, expr)
CFXI_EQUALITIES(X) CFXI_ORDERS(X)
#undef X
#undef T
#undef S

#define T int64_t
#define S(k) (s->i[k])
#define X(name, expr) UNARY(name##_i64, int64_t, expr)
CFXI_INT_UNARY(X)
#undef X
#define X(name, expr) BINARY(name##_i64, int64_t, expr)
CFXI_INT_BINARY(X)
#undef X
#define X(name, expr) TERNARY(name##_i64, int64_t, expr)
CFXI_INT_TERNARY(X)
#undef X
UNARY(logical_not_i64, uint8_t, x == 0)
UNARY(isnan_i64, uint8_t, x & 0)
UNARY(isinf_i64, uint8_t, x & 0)
UNARY(isfinite_i64, uint8_t, x | 1 ? 1 : 0)
#define X(name, expr) BINARY(name##_i64, uint8_t, expr)
CFXI_EQUALITIES(X) CFXI_ORDERS(X)
#undef X
#undef T
#undef S

#define T c128
#define S(k) CMPLX(s->f[k], s->im[k])
#define X(name, expr) UNARY(name##_c128, c128, expr)
CFXI_COMPLEX_UNARY(X)
#undef X
#define X(name, expr) BINARY(name##_c128, c128, expr)
CFXI_COMPLEX_BINARY(X)
#undef X
#define X(name, expr) TERNARY(name##_c128, c128, expr)
CFXI_COMPLEX_TERNARY(X)
#undef X
UNARY(logical_not_c128, uint8_t, x == 0)
UNARY(isnan_c128, uint8_t, x != x)
UNARY(isinf_c128, uint8_t, isinf(creal(x)) || isinf(cimag(x)))
UNARY(isfinite_c128, uint8_t, isfinite(creal(x)) && isfinite(cimag(x)))
UNARY(complex_abs_c128, double, cabs(x))
UNARY(complex_angle_c128, double, carg(x))
#define X(name, expr) BINARY(name##_c128, uint8_t, expr)
CFXI_EQUALITIES(X)
#undef X

/* ---- the table ----------------------------------------------------------------------------- */

const cfxi_blocks cfxi_elementwise_blocks_plain = {{
#define X(name, expr) [CFXI_FN_##name] = name##_f32,
    CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PLAIN_UNARY(X) CFXI_PREDICATES(X)
    CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X) CFXI_PLAIN_BINARY(X) CFXI_EQUALITIES(X)
    CFXI_ORDERS(X) CFXI_CHEAP_TERNARY(X)
#undef X
}};

const cfxi_blocks cfxi_elementwise_blocks_of_type[] = {
#define X(name, expr) [CFXI_FN_##name] = name##_f64,
    [CFXI_IN_F64] = {{
        CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PLAIN_UNARY(X) CFXI_PREDICATES(X)
        CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X) CFXI_PLAIN_BINARY(X) CFXI_EQUALITIES(X)
        CFXI_ORDERS(X) CFXI_CHEAP_TERNARY(X)
    }},
#undef X
#define X(name, expr) [CFXI_FN_##name] = name##_i64,
    [CFXI_IN_I64] = {{
        CFXI_INT_UNARY(X) CFXI_INT_BINARY(X) CFXI_EQUALITIES(X) CFXI_ORDERS(X) CFXI_INT_TERNARY(X)
        X(logical_not, 0) X(isnan, 0) X(isinf, 0) X(isfinite, 0)
    }},
#undef X
#define X(name, expr) [CFXI_FN_##name] = name##_c128,
    [CFXI_IN_C128] = {{
        CFXI_COMPLEX_UNARY(X) CFXI_COMPLEX_BINARY(X) CFXI_EQUALITIES(X) CFXI_COMPLEX_TERNARY(X)
        X(logical_not, 0) X(isnan, 0) X(isinf, 0) X(isfinite, 0) X(complex_abs, 0)
        X(complex_angle, 0)
    }},
#undef X
};
