/* blocks.h - element-wise functions on blocks: what the files of this family share.
 *
 * A function computes n elements that lie without gaps, of one of four types: float (for float16,
 * bfloat16, float32), double, int64_t (for bool and all integers) and double complex. cfxi_map
 * (map_blocks.c) brings the operands into that form, a block at a time, and only where they are not
 * in it already; so a function is written once, not once for every element type.
 *
 * blocks_plain.c has all of them in plain C; blocks_avx2.c, blocks_avx512.c and blocks_neon.c those
 * of float that matter, from one source (blocks_vector.h).
 */
#ifndef CFXI_BLOCKS_H
#define CFXI_BLOCKS_H

#include "runtime/isa.h"

/* The numbers that a function takes besides tensors: alpha, negative_slope, ... */
typedef struct cfxi_scalars {
    double f[3];
    double im[3];  /* imaginary parts */
    int64_t i[3];
    atomic_int *bad;  /* set by a division by zero */
} cfxi_scalars;

typedef void cfxi_block_fn(const cfxi_scalars *s, int64_t n, const void *const *x, void *y);

/* ---- functions of one argument ------------------------------------------------------------- */

/* Those that are cheap: x is the argument, T its type, S(k) the k-th number. They are compiled for
 * each instruction set as they stand. */
#define CFXI_CHEAP_UNARY(X)                                                                        \
    X(neg, -x)                                                                                     \
    X(abs, fabs(x))                                                                                \
    X(square, x * x)                                                                               \
    X(cube, x * x * x)                                                                             \
    X(sqrt, sqrt(x))                                                                               \
    X(rsqrt, 1 / sqrt(x))                                                                          \
    X(reciprocal, 1 / x)                                                                           \
    X(reciprocal_square, 1 / (x * x))                                                              \
    X(sign, (T)((x > 0) - (x < 0)))                                                                \
    X(floor, floor(x))                                                                             \
    X(ceil, ceil(x))                                                                               \
    X(trunc, trunc(x))                                                                             \
    X(round, rint(x))                                                                              \
    X(frac, x - trunc(x))                                                                          \
    X(deg2rad, x * (T)0.017453292519943295)                                                        \
    X(rad2deg, x * (T)57.295779513082320877)                                                       \
    X(relu, x < 0 ? (T)0 : x)                                                                      \
    X(hardtanh, CFXI_MIN(CFXI_MAX(x, S(0)), S(1)))                                                 \
    X(clamp_min_s, CFXI_MAX(x, S(0)))                                                              \
    X(clamp_max_s, CFXI_MIN(x, S(1)))                                                              \
    X(leaky_relu, x > 0 ? x : x * S(0))                                                            \
    X(threshold, x <= S(0) ? S(1) : x)                                                             \
    X(hardshrink, x >= -S(0) && x <= S(0) ? (T)0 : x)                                              \
    X(softshrink, x > S(0) ? x - S(0) : x < -S(0) ? x + S(0) : x != x ? x : (T)0)                  \
    X(softsign, x / (1 + fabs(x)))

#define CFXI_PI 3.14159265358979323846

/* NaN wins. */
#define CFXI_MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define CFXI_MIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* Those that have a vector version of their own (blocks_vector.h). */
#define CFXI_VECTOR_UNARY(X)                                                                       \
    X(hardsigmoid, CFXI_MIN(CFXI_MAX(x + 3, (T)0), (T)6) / 6)                                      \
    X(hardswish, x * CFXI_MIN(CFXI_MAX(x + 3, (T)0), (T)6) / 6)                                    \
    X(exp, exp(x))                                                                                 \
    X(exp2, exp2(x))                                                                               \
    X(expm1, expm1(x))                                                                             \
    X(log, log(x))                                                                                 \
    X(log2, log2(x))                                                                               \
    X(log10, log10(x))                                                                             \
    X(log1p, log1p(x))                                                                             \
    X(sin, sin(x))                                                                                 \
    X(cos, cos(x))                                                                                 \
    X(tanh, tanh(x))                                                                               \
    X(erf, erf(x))                                                                                 \
    X(sigmoid, 1 / (1 + exp(-x)))                                                                  \
    X(silu, x / (1 + exp(-x)))                                                                     \
    X(gelu, x * (T)0.5 * erfc(x * (T)-0.70710678118654752440)) /* 1 + erf(x) would cancel */       \
    X(gelu_tanh, (T)0.5 * x *                                                                      \
        (1 + tanh((T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x))))                     \
    X(mish, x * tanh(log1p(exp(x))))                                                               \
    X(softplus, x * S(0) > S(1) ? x : log1p(exp(x * S(0))) / S(0))                                 \
    X(log_sigmoid, CFXI_MIN(x, (T)0) - log1p(exp(-fabs(x))))                                       \
    X(elu, x < 0 || x != x ? S(0) * expm1(x * S(2)) : x * S(1))

/* The rest. */
#define CFXI_PLAIN_UNARY(X)                                                                        \
    X(tan, tan(x))                                                                                 \
    X(asin, asin(x))                                                                               \
    X(acos, acos(x))                                                                               \
    X(atan, atan(x))                                                                               \
    X(sinh, sinh(x))                                                                               \
    X(cosh, cosh(x))                                                                               \
    X(asinh, asinh(x))                                                                             \
    X(acosh, acosh(x))                                                                             \
    X(atanh, atanh(x))                                                                             \
    X(erfc, erfc(x))                                                                               \
    X(tanhshrink, x - tanh(x))                                                                     \
    X(erfinv, (T)cfxi_elementwise_erfinv(x))                                                       \
    X(lgamma, (T)cfxi_elementwise_lgamma(x))                                                       \
    X(digamma, (T)cfxi_elementwise_digamma(x))                                                     \
    X(i0, (T)cfxi_elementwise_i0(x))                                                               \
    X(sinc, x == 0 ? (T)1 : sin((T)CFXI_PI * x) / ((T)CFXI_PI * x))                                \
    X(ndtr, (T)0.5 * erfc(x * (T)-0.70710678118654752440))                                         \
    X(angle, x != x ? x : x < 0 ? (T)CFXI_PI : (T)0)                                               \
    X(logit, log(x / (1 - x)))                                                                     \
    X(logit_eps, logit_of(x < S(0) ? S(0) : x > 1 - S(0) ? 1 - S(0) : x))                          \
    X(round_up, rint(x * S(0)) / S(0))                                                             \
    X(round_down, rint(x / S(0)) * S(0))                                                           \
    X(nan_to_num, x != x ? S(0) : fabs(x) < (T)INFINITY ? x : x > 0 ? S(1) : S(2))                 \
    X(pow_s, pow(x, S(0)))                                                                         \
    X(s_pow, pow(S(0), x))

/* On integers (those that keep the type). */
#define CFXI_INT_UNARY(X)                                                                          \
    X(neg, (int64_t)(0 - (uint64_t)x))                                                             \
    X(abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)                                                 \
    X(square, (int64_t)((uint64_t)x * (uint64_t)x))                                                \
    X(sign, (x > 0) - (x < 0))                                                                     \
    X(relu, x < 0 ? 0 : x)                                                                         \
    X(hardtanh, CFXI_MIN(CFXI_MAX(x, S(0)), S(1)))                                                 \
    X(clamp_min_s, CFXI_MAX(x, S(0)))                                                              \
    X(clamp_max_s, CFXI_MIN(x, S(1)))                                                              \
    X(threshold, x <= S(0) ? S(1) : x)                                                             \
    X(bitwise_not, ~x)

/* On complex numbers. */
#define CFXI_COMPLEX_UNARY(X)                                                                      \
    X(neg, -x)                                                                                     \
    X(square, times(x, x))                                                                         \
    X(cube, times(times(x, x), x))                                                                 \
    X(sqrt, csqrt(x))                                                                              \
    X(rsqrt, inverse(csqrt(x)))                                                                    \
    X(reciprocal, inverse(x))                                                                      \
    X(reciprocal_square, inverse(times(x, x)))                                                     \
    X(sgn, x == 0 ? 0 : x / cabs(x))                                                               \
    X(exp, cexp(x))                                                                                \
    X(exp2, cexp(x * 0.69314718055994530942))                                                      \
    X(expm1, complex_expm1(x))                                                                     \
    X(log, clog(x))                                                                                \
    X(log2, clog(x) / 0.69314718055994530942)                                                      \
    X(log10, clog(x) / 2.30258509299404568402)                                                     \
    X(log1p, complex_log1p(x))                                                                     \
    X(sin, csin(x))                                                                                \
    X(cos, ccos(x))                                                                                \
    X(tan, ctan(x))                                                                                \
    X(asin, casin(x))                                                                              \
    X(acos, cacos(x))                                                                              \
    X(atan, catan(x))                                                                              \
    X(sinh, csinh(x))                                                                              \
    X(cosh, ccosh(x))                                                                              \
    X(tanh, ctanh(x))                                                                              \
    X(asinh, casinh(x))                                                                            \
    X(acosh, cacosh(x))                                                                            \
    X(atanh, catanh(x))                                                                            \
    X(sigmoid, inverse(1 + cexp(-x)))                                                              \
    X(silu, complex_silu(x))                                                                       \
    X(tanhshrink, x - ctanh(x))                                                                    \
    X(sinc, x == 0 ? 1 : csin(CFXI_PI * x) / (CFXI_PI * x))                                        \
    X(softsign, x / (1 + cabs(x)))                                                                 \
    X(nan_to_num, complex_nan_to_num(x, s))                                                        \
    X(pow_s, complex_power(x, S(0)))                                                               \
    X(s_pow, S(0) == 1 ? 1 : cpow(S(0), x))

/* To bool, on each type. */
#define CFXI_PREDICATES(X)                                                                         \
    X(isnan, x != x)                                                                               \
    X(isinf, fabs(x) == (T)INFINITY)                                                               \
    X(isfinite, fabs(x) < (T)INFINITY)                                                             \
    X(logical_not, x == 0)

/* ---- functions of two arguments, a and b --------------------------------------------------- */

#define CFXI_CHEAP_BINARY(X)                                                                       \
    X(add, a + b)                                                                                  \
    X(sub, a - b)                                                                                  \
    X(add_alpha, a + S(0) * b)                                                                     \
    X(mul, a * b)                                                                                  \
    X(div, a / b)                                                                                  \
    X(div_trunc, trunc(a / b))                                                                     \
    X(maximum, CFXI_MAX(a, b))                                                                     \
    X(minimum, CFXI_MIN(a, b))                                                                     \
    X(fmax, a >= b || b != b ? a : b)                                                              \
    X(fmin, a <= b || b != b ? a : b)                                                              \
    X(prelu, a > 0 ? a : a * b)                                                                    \
    X(tanh_backward, a * (1 - b * b))                                                              \
    X(sigmoid_backward, a * (1 - b) * b)                                                           \
    X(hardswish_backward, b <= -3 ? (T)0 : b < 3 ? a * (b / 3 + (T)0.5) : a)                       \
    X(hardsigmoid_backward, b > -3 && b < 3 ? a / 6 : (T)0)                                        \
    X(threshold_backward, b <= S(0) ? (T)0 : a)                                                    \
    X(native_dropout_backward, a * (b * S(0)))

/* With a vector version of its own. */
#define CFXI_VECTOR_BINARY(X)                                                                      \
    X(glu, a / (1 + exp(-b)))                                                                      \
    X(silu_backward, a * (1 + b / (1 + exp(b))) / (1 + exp(-b)))                                   \
    X(gelu_backward, a * gelu_slope(b))                                                            \
    X(gelu_tanh_backward, a * gelu_tanh_slope(b))

#define CFXI_PLAIN_BINARY(X)                                                                       \
    X(div_floor, floor_of_quotient(a, b))                                                          \
    X(remainder, remainder_of(a, b))                                                               \
    X(fmod, fmod(a, b))                                                                            \
    X(pow, pow(a, b))                                                                              \
    X(atan2, atan2(a, b))                                                                          \
    X(hypot, hypot(a, b))                                                                          \
    X(copysign, copysign(a, b))                                                                    \
    X(logaddexp, log_add_exp(a, b))                                                                \
    X(logaddexp2, log_add_exp2(a, b))                                                              \
    X(xlogy, b != b ? b : a == 0 ? (T)0 : a * log(b))

/* Of integers alone. */
#define CFXI_INT_ONLY_BINARY(X)                                                                    \
    X(gcd, int_gcd(a, b))                                                                          \
    X(lcm, int_lcm(a, b))                                                                          \
    X(bitwise_and, a & b)                                                                          \
    X(bitwise_or, a | b)                                                                           \
    X(bitwise_xor, a ^ b)                                                                          \
    X(bitwise_left_shift, b < 0 || b >= S(0) ? 0 : (int64_t)((uint64_t)a << b))                    \
    X(bitwise_right_shift, b < 0 || b >= S(0) ? a >> 63 : a >> b)

#define CFXI_INT_BINARY(X)                                                                         \
    X(add, (int64_t)((uint64_t)a + (uint64_t)b))                                                   \
    X(sub, (int64_t)((uint64_t)a - (uint64_t)b))                                                   \
    X(add_alpha, (int64_t)((uint64_t)a + (uint64_t)S(0) * (uint64_t)b))                            \
    X(mul, (int64_t)((uint64_t)a * (uint64_t)b))                                                   \
    X(div_trunc, int_quotient(a, b, s))                                                            \
    X(div_floor, int_floor_quotient(a, b, s))                                                      \
    X(remainder, int_remainder(a, b, s))                                                           \
    X(fmod, int_fmod(a, b, s))                                                                     \
    X(pow, int_pow(a, b))                                                                          \
    X(maximum, a > b ? a : b)                                                                      \
    X(minimum, a < b ? a : b)                                                                      \
    X(threshold_backward, b <= S(0) ? 0 : a)                                                       \
    CFXI_INT_ONLY_BINARY(X)

/* Sums go through a factor of 1 where there is none: it makes NaN of infinities, as in PyTorch. */
#define CFXI_COMPLEX_BINARY(X)                                                                     \
    X(add, a + times(1, b))                                                                        \
    X(sub, a - times(1, b))                                                                        \
    X(add_alpha, a + times(S(0), b))                                                               \
    X(mul, times(a, b))                                                                            \
    X(native_dropout_backward, times(a, b * S(0)))                                                 \
    X(div, divide(a, b))                                                                           \
    X(pow, cpow(a, b))                                                                             \
    X(logaddexp, complex_log_add_exp(a, b))

/* To bool, on each type; order only where there is one. */
#define CFXI_EQUALITIES(X)                                                                         \
    X(eq, a == b)                                                                                  \
    X(ne, a != b)                                                                                  \
    CFXI_LOGIC(X)
#define CFXI_LOGIC(X)                                                                              \
    X(logical_and, a != 0 && b != 0)                                                               \
    X(logical_or, a != 0 || b != 0)                                                                \
    X(logical_xor, (a != 0) != (b != 0))
#define CFXI_ORDERS(X)                                                                             \
    X(lt, a < b)                                                                                   \
    X(le, a <= b)                                                                                  \
    X(gt, a > b)                                                                                   \
    X(ge, a >= b)

/* ---- functions of three arguments, a, b and d ---------------------------------------------- */

#define CFXI_CHEAP_TERNARY(X)                                                                      \
    X(addcmul, a + S(0) * b * d)                                                                   \
    X(addcdiv, a + S(0) * b / d)                                                                   \
    X(lerp, fabs(d) < (T)0.5 ? a + d * (b - a) : b - (b - a) * (1 - d))                            \
    X(clamp, CFXI_MIN(CFXI_MAX(a, b), d))
#define CFXI_INT_TERNARY(X)                                                                        \
    X(addcmul, (int64_t)((uint64_t)a + (uint64_t)S(0) * (uint64_t)b * (uint64_t)d))                \
    X(clamp, CFXI_MIN(CFXI_MAX(a, b), d))
#define CFXI_COMPLEX_TERNARY(X)                                                                    \
    X(addcmul, a + S(0) * b * d)                                                                   \
    X(addcdiv, a + divide(S(0) * b, d))                                                            \
    X(lerp, cabs(d) < 0.5 ? a + d * (b - a) : b - (b - a) * (1 - d))

/* ---- the table ----------------------------------------------------------------------------- */

/* Functions that not all lists have, so that each name stands here once. */
#define CFXI_ONLY_SOME(X)                                                                          \
    X(sgn, 0) X(bitwise_not, 0) X(complex_abs, 0) X(complex_angle, 0) CFXI_INT_ONLY_BINARY(X)

typedef enum cfxi_fn {
#define X(name, expr) CFXI_FN_##name,
    CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X) CFXI_PLAIN_UNARY(X) CFXI_PREDICATES(X)
    CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X) CFXI_PLAIN_BINARY(X) CFXI_EQUALITIES(X)
    CFXI_ORDERS(X) CFXI_CHEAP_TERNARY(X) CFXI_ONLY_SOME(X)
#undef X
    CFXI_FN_COUNT
} cfxi_fn;

typedef enum cfxi_compute { CFXI_IN_F32, CFXI_IN_F64, CFXI_IN_I64, CFXI_IN_C128 } cfxi_compute;

/* Those of one type. */
typedef struct cfxi_blocks {
    cfxi_block_fn *fn[CFXI_FN_COUNT];  /* NULL: none */
} cfxi_blocks;
/* Of float; what an instruction set lacks is in cfxi_elementwise_blocks_plain. */
CFXI_ISA_TABLES(cfxi_blocks, cfxi_elementwise_blocks)
/* Of the others; that of float has none. (blocks_plain.c) */
extern const cfxi_blocks cfxi_elementwise_blocks_of_type[];
/* The best that this runtime's machine has; NULL if there is none in that type. (map_blocks.c) */
cfxi_block_fn *cfxi_elementwise_block_of(const cfx_runtime *rt, cfxi_fn fn, cfxi_compute in);

/* ---- mapping (map_blocks.c) ---------------------------------------------------------------- */

typedef enum cfxi_gives {
    CFXI_GIVES_SAME,  /* what it computes in */
    CFXI_GIVES_BOOL,  /* bytes */
    CFXI_GIVES_REAL   /* double, of complex arguments */
} cfxi_gives;

typedef struct cfxi_map {
    cfxi_fn fn;
    cfx_dtype common;  /* the type that the arguments are brought to first */
    cfxi_gives gives;
    size_t n;
    const cfx_tensor *args[3];
    cfxi_scalars s;
} cfxi_map;

/* out = fn(args), broadcast. `out` has the sizes that they have together. If c->described is there,
 * it becomes *m, and nothing is computed. */
cfx_status cfxi_elementwise_map_run(cfxi_call *c, const cfxi_map *m, cfx_tensor *out);

/* The k-th number of a function, from a Scalar argument. */
void cfxi_elementwise_set_scalar(cfxi_scalars *s, size_t k, const cfxi_call *c, size_t arg);

/* ---- rules (elementwise.c) ----------------------------------------------------------------- */

/* The categories of types that a function takes, or'ed. */
enum { CFXI_BOOLS = 1, CFXI_INTS = 2, CFXI_FLOATS = 4, CFXI_COMPLEXES = 8, CFXI_REALS = 7,
       CFXI_NUMBERS = 14, CFXI_ANY = 15 };

/* CFX_E_UNSUPPORTED, as PyTorch says it, if `dtype` is none of them. */
cfx_status cfxi_elementwise_takes(cfxi_call *c, cfx_dtype dtype, unsigned categories);
/* The type that a function with fractional results gives: float32 for bool and integers. */
cfx_dtype cfxi_elementwise_float_of(cfx_dtype dtype);
/* The real type of a complex one; others are themselves. */
cfx_dtype cfxi_elementwise_real_of(cfx_dtype dtype);
/* The largest number of a type. */
double cfxi_elementwise_most_of(cfx_dtype dtype);
/* CFX_E_SHAPE if a number does not fit a type that it shall be written as. */
cfx_status cfxi_elementwise_check_fits(cfxi_call *c, cfx_dtype dtype, double number);
/* A number as a tensor without dimensions, over *room, which must live as long; a tensor as it is.
 * NULL for None. */
const cfx_tensor *cfxi_elementwise_as_operand(cfx_datum d, cfx_tensor *header, double room[2]);

/* ---- special functions (special_functions.c) ----------------------------------------------- */

double cfxi_elementwise_erfinv(double x);
double cfxi_elementwise_lgamma(double x);
double cfxi_elementwise_digamma(double x);
double cfxi_elementwise_i0(double x);

#endif
