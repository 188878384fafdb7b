/* elementwise.c - what the rules of element-wise rows share, and two lists: the rows of one and of
 * two tensors that are a function of blocks, and nothing more. */
#include "blocks.h"

#include <float.h>
#include <math.h>

/* ---- types --------------------------------------------------------------------------------- */

cfx_status cfxi_elementwise_takes(cfxi_call *c, cfx_dtype d, unsigned categories)
{
    unsigned category = d == CFX_DTYPE_BOOL         ? CFXI_BOOLS
                        : cfx_dtype_is_complex(d) ? CFXI_COMPLEXES
                        : cfx_dtype_is_float(d)   ? CFXI_FLOATS
                                                  : CFXI_INTS;
    if (category & categories)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "\"%s\" not implemented for '%s'",
                     cfx_operator_name(c->op), cfx_dtype_name(d));
}

cfx_dtype cfxi_elementwise_float_of(cfx_dtype d)
{
    return d == CFX_DTYPE_BOOL || cfx_dtype_is_integer(d) ? CFX_DTYPE_FLOAT32 : d;
}

cfx_dtype cfxi_elementwise_real_of(cfx_dtype d)
{
    return d == CFX_DTYPE_COMPLEX64    ? CFX_DTYPE_FLOAT32
           : d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64
                                       : d;
}

double cfxi_elementwise_most_of(cfx_dtype d)
{
    switch ((int)d) {
    case CFX_DTYPE_BOOL: return 1;
    case CFX_DTYPE_UINT8: return UINT8_MAX;
    case CFX_DTYPE_INT8: return INT8_MAX;
    case CFX_DTYPE_UINT16: return UINT16_MAX;
    case CFX_DTYPE_UINT32: return UINT32_MAX;
    case CFX_DTYPE_UINT64: return 0x1p64;
    case CFX_DTYPE_INT16: return INT16_MAX;
    case CFX_DTYPE_INT32: return INT32_MAX;
    case CFX_DTYPE_INT64: return 0x1p63;
    case CFX_DTYPE_FLOAT16: return 65504;
    case CFX_DTYPE_BFLOAT16: return 0x1.fep127;
    case CFX_DTYPE_FLOAT32:
    case CFX_DTYPE_COMPLEX64: return FLT_MAX;
    }
    return DBL_MAX;
}

cfx_status cfxi_elementwise_check_fits(cfxi_call *c, cfx_dtype dtype, double number)
{
    double most = cfxi_elementwise_most_of(dtype);
    bool whole = cfx_dtype_is_integer(dtype);
    double least = whole && !cfxi_tensor_dtype_is_unsigned(dtype) ? -most - 1 : -most;
    if (dtype == CFX_DTYPE_BOOL || (!whole && !isfinite(number)))
        return CFX_OK;
    if (number >= least && number <= most)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "value cannot be converted to type %s without overflow",
                     cfx_dtype_name(dtype));
}

const cfx_tensor *cfxi_elementwise_as_operand(cfx_datum d, cfx_tensor *header, double room[2])
{
    if (d.kind == CFX_DATUM_TENSOR)
        return d.as.tensor;
    if (d.kind == CFX_DATUM_NONE || d.kind == CFX_DATUM_INVALID)
        return NULL;
    memcpy(room, &d.as, sizeof d.as);
    *header = (cfx_tensor){.dtype = (uint8_t)cfxi_rt_scalar_dtype(d), .number = true,
                           .data = (char *)room};
    return header;
}

/* ---- rows of one tensor -------------------------------------------------------------------- */

typedef enum result_type {
    SAME,      /* the type of the arguments together */
    FLOAT,     /* float32 where that is no float */
    REAL,      /* the real type of complex */
    REAL_FLOAT,
    BOOLEAN,
    INT_NOT_BOOL  /* int64 for bool */
} result_type;

typedef struct row {
    cfxi_fn fn;
    unsigned takes;
    result_type gives;
} row;

/* row, function, types, result */
#define UNARY_ROWS(X)                                                                              \
    X(neg, neg, CFXI_NUMBERS, SAME)                                                                \
    X(sign, sign, CFXI_REALS, SAME)                                                                \
    X(reciprocal, reciprocal, CFXI_ANY, FLOAT)                                                     \
    X(sqrt, sqrt, CFXI_ANY, FLOAT)                                                                 \
    X(rsqrt, rsqrt, CFXI_ANY, FLOAT)                                                               \
    X(square, square, CFXI_ANY, INT_NOT_BOOL)                                                      \
    X(exp, exp, CFXI_ANY, FLOAT)                                                                   \
    X(exp2, exp2, CFXI_ANY, FLOAT)                                                                 \
    X(expm1, expm1, CFXI_ANY, FLOAT)                                                               \
    X(log, log, CFXI_ANY, FLOAT)                                                                   \
    X(log2, log2, CFXI_ANY, FLOAT)                                                                 \
    X(log10, log10, CFXI_ANY, FLOAT)                                                               \
    X(log1p, log1p, CFXI_ANY, FLOAT)                                                               \
    X(sin, sin, CFXI_ANY, FLOAT)                                                                   \
    X(cos, cos, CFXI_ANY, FLOAT)                                                                   \
    X(tan, tan, CFXI_ANY, FLOAT)                                                                   \
    X(asin, asin, CFXI_ANY, FLOAT)                                                                 \
    X(acos, acos, CFXI_ANY, FLOAT)                                                                 \
    X(atan, atan, CFXI_ANY, FLOAT)                                                                 \
    X(sinh, sinh, CFXI_ANY, FLOAT)                                                                 \
    X(cosh, cosh, CFXI_ANY, FLOAT)                                                                 \
    X(tanh, tanh, CFXI_ANY, FLOAT)                                                                 \
    X(asinh, asinh, CFXI_ANY, FLOAT)                                                               \
    X(acosh, acosh, CFXI_ANY, FLOAT)                                                               \
    X(atanh, atanh, CFXI_ANY, FLOAT)                                                               \
    X(sigmoid, sigmoid, CFXI_ANY, FLOAT)                                                           \
    X(erf, erf, CFXI_REALS, FLOAT)                                                                 \
    X(erfc, erfc, CFXI_REALS, FLOAT)                                                               \
    X(erfinv, erfinv, CFXI_REALS, FLOAT)                                                           \
    X(lgamma, lgamma, CFXI_REALS, FLOAT)                                                           \
    X(digamma, digamma, CFXI_REALS, FLOAT)                                                         \
    X(i0, i0, CFXI_REALS, FLOAT)                                                                   \
    X(sinc, sinc, CFXI_ANY, FLOAT)                                                                 \
    X(special_ndtr, ndtr, CFXI_REALS, FLOAT)                                                       \
    X(deg2rad, deg2rad, CFXI_REALS, FLOAT)                                                         \
    X(rad2deg, rad2deg, CFXI_REALS, FLOAT)                                                         \
    X(frac, frac, CFXI_FLOATS, SAME)                                                               \
    X(isnan, isnan, CFXI_ANY, BOOLEAN)                                                             \
    X(isinf, isinf, CFXI_ANY, BOOLEAN)                                                             \
    X(isfinite, isfinite, CFXI_ANY, BOOLEAN)                                                       \
    X(logical_not, logical_not, CFXI_ANY, BOOLEAN)                                                 \
    X(relu, relu, CFXI_INTS | CFXI_FLOATS, SAME)                                                   \
    X(silu, silu, CFXI_FLOATS | CFXI_COMPLEXES, SAME)                                              \
    X(mish, mish, CFXI_FLOATS, SAME)                                                               \
    X(hardsigmoid, hardsigmoid, CFXI_FLOATS, SAME)                                                 \
    X(hardswish, hardswish, CFXI_FLOATS, SAME)                                                     \
    X(log_sigmoid, log_sigmoid, CFXI_FLOATS, SAME)                                                 \
    X(tanhshrink, tanhshrink, CFXI_NUMBERS, FLOAT)

/* Those whose kernels (unary.c, activation.c) do more: which types they take. */
#define OTHER_UNARY_ROWS(X)                                                                        \
    X(abs, abs, CFXI_NUMBERS, REAL)                                                                \
    X(angle, angle, CFXI_ANY, REAL_FLOAT)                                                          \
    X(sgn, sgn, CFXI_ANY, SAME)                                                                    \
    X(floor, floor, CFXI_INTS | CFXI_FLOATS, SAME)                                                 \
    X(ceil, ceil, CFXI_INTS | CFXI_FLOATS, SAME)                                                   \
    X(trunc, trunc, CFXI_INTS | CFXI_FLOATS, SAME)                                                 \
    X(round, round, CFXI_INTS | CFXI_FLOATS, SAME)                                                 \
    X(logit, logit, CFXI_REALS, FLOAT)                                                             \
    X(nan_to_num, nan_to_num, CFXI_ANY, SAME)                                                      \
    X(bitwise_not, bitwise_not, CFXI_BOOLS | CFXI_INTS, SAME)                                      \
    X(relu6, hardtanh, CFXI_INTS | CFXI_FLOATS, SAME)                                              \
    X(hardtanh, hardtanh, CFXI_INTS | CFXI_FLOATS, SAME)                                           \
    X(threshold, threshold, CFXI_INTS | CFXI_FLOATS, SAME)                                         \
    X(elu, elu, CFXI_FLOATS, SAME)                                                                 \
    X(selu, elu, CFXI_FLOATS, SAME)                                                                \
    X(celu, elu, CFXI_FLOATS, SAME)                                                                \
    X(gelu, gelu, CFXI_FLOATS, SAME)                                                               \
    X(leaky_relu, leaky_relu, CFXI_FLOATS, SAME)                                                   \
    X(rrelu, leaky_relu, CFXI_FLOATS, SAME)                                                        \
    X(hardshrink, hardshrink, CFXI_FLOATS, SAME)                                                   \
    X(softshrink, softshrink, CFXI_FLOATS, SAME)                                                   \
    X(softplus, softplus, CFXI_FLOATS, SAME)                                                       \
    X(softsign, softsign, CFXI_NUMBERS, FLOAT)

/* row, function, types that they have together, result */
#define BINARY_ROWS(X)                                                                             \
    X(mul, mul, CFXI_ANY, SAME)                                                                    \
    X(floor_divide, div_floor, CFXI_INTS | CFXI_FLOATS, SAME)                                      \
    X(remainder, remainder, CFXI_INTS | CFXI_FLOATS, SAME)                                         \
    X(fmod, fmod, CFXI_INTS | CFXI_FLOATS, SAME)                                                   \
    X(atan2, atan2, CFXI_REALS, FLOAT)                                                             \
    X(maximum, maximum, CFXI_REALS, SAME)                                                          \
    X(minimum, minimum, CFXI_REALS, SAME)                                                          \
    X(hypot, hypot, CFXI_FLOATS, SAME)                                                             \
    X(tanh_backward, tanh_backward, CFXI_FLOATS, SAME)                                             \
    X(silu_backward, silu_backward, CFXI_FLOATS, SAME)                                             \
    X(hardswish_backward, hardswish_backward, CFXI_FLOATS, SAME)                                   \
    X(hardsigmoid_backward, hardsigmoid_backward, CFXI_FLOATS, SAME)                               \
    X(sigmoid_backward, sigmoid_backward, CFXI_FLOATS, SAME)                                       \
    X(copysign, copysign, CFXI_REALS, FLOAT)                                                       \
    X(gcd, gcd, CFXI_INTS, SAME)                                                                   \
    X(lcm, lcm, CFXI_INTS, SAME)                                                                   \
    X(logaddexp, logaddexp, CFXI_FLOATS | CFXI_COMPLEXES, SAME)                                    \
    X(logaddexp2, logaddexp2, CFXI_FLOATS, SAME)                                                   \
    X(xlogy, xlogy, CFXI_REALS, FLOAT)                                                             \
    X(eq, eq, CFXI_ANY, BOOLEAN)                                                                   \
    X(ne, ne, CFXI_ANY, BOOLEAN)                                                                   \
    X(lt, lt, CFXI_REALS, BOOLEAN)                                                                 \
    X(le, le, CFXI_REALS, BOOLEAN)                                                                 \
    X(gt, gt, CFXI_REALS, BOOLEAN)                                                                 \
    X(ge, ge, CFXI_REALS, BOOLEAN)                                                                 \
    X(logical_and, logical_and, CFXI_ANY, BOOLEAN)                                                 \
    X(logical_or, logical_or, CFXI_ANY, BOOLEAN)                                                   \
    X(logical_xor, logical_xor, CFXI_ANY, BOOLEAN)                                                 \
    X(bitwise_and, bitwise_and, CFXI_BOOLS | CFXI_INTS, SAME)                                      \
    X(bitwise_or, bitwise_or, CFXI_BOOLS | CFXI_INTS, SAME)                                        \
    X(bitwise_xor, bitwise_xor, CFXI_BOOLS | CFXI_INTS, SAME)

#define OTHER_BINARY_ROWS(X)                                                                       \
    X(fmax, fmax, CFXI_REALS, SAME)                                                                \
    X(fmin, fmin, CFXI_REALS, SAME)                                                                \
    X(threshold_backward, threshold_backward, CFXI_INTS | CFXI_FLOATS, SAME)                       \
    X(gelu_backward, gelu_backward, CFXI_FLOATS, SAME)                                             \
    X(bitwise_left_shift, bitwise_left_shift, CFXI_INTS, SAME)                                     \
    X(bitwise_right_shift, bitwise_right_shift, CFXI_INTS, SAME)

static row row_of(cfx_operator op)
{
    switch ((int)op) {
#define X(id, fn, takes, gives)                                                                    \
    case CFX_OPID_##id: return (row){CFXI_FN_##fn, takes, gives};
    UNARY_ROWS(X) OTHER_UNARY_ROWS(X) BINARY_ROWS(X) OTHER_BINARY_ROWS(X)
#undef X
    }
    return (row){CFXI_FN_COUNT, 0, SAME};
}

static cfx_dtype result_of(result_type gives, cfx_dtype d)
{
    switch (gives) {
    case SAME: return d;
    case FLOAT: return cfxi_elementwise_float_of(d);
    case REAL: return cfxi_elementwise_real_of(d);
    case REAL_FLOAT: return cfxi_elementwise_real_of(cfxi_elementwise_float_of(d));
    case BOOLEAN: return CFX_DTYPE_BOOL;
    case INT_NOT_BOOL: return d == CFX_DTYPE_BOOL ? CFX_DTYPE_INT64 : d;
    }
    return d;
}

/* PyTorch has words of its own for some types. */
static cfx_status check_type(cfxi_call *c, cfx_dtype d, unsigned takes)
{
    bool hard = c->op == CFX_OPID_hardtanh || c->op == CFX_OPID_relu6;
    if (d == CFX_DTYPE_BOOL && c->op == CFX_OPID_neg)
        return cfxi_fail(c, CFX_E_SHAPE, "Negation, the `-` operator, on a bool tensor is not "
                         "supported. If you are trying to invert a mask, use the `~` or "
                         "`logical_not()` operator instead.");
    if (d == CFX_DTYPE_BOOL && (c->op == CFX_OPID_relu || hard))
        return cfxi_fail(c, CFX_E_SHAPE, "Boolean inputs not supported for %s",
                         cfx_operator_name(c->op));
    bool extreme = c->op == CFX_OPID_maximum || c->op == CFX_OPID_minimum ||
                   c->op == CFX_OPID_fmax || c->op == CFX_OPID_fmin;
    if (cfx_dtype_is_complex(d) && extreme)
        return cfxi_fail(c, CFX_E_SHAPE, "%s not implemented for complex tensors.",
                         cfx_operator_name(c->op));
    return cfxi_elementwise_takes(c, d, takes);
}

cfx_status cfxi_rule_unary(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    row r = row_of(c->op);
    CFX_TRY(check_type(c, (cfx_dtype)x->dtype, r.takes));
    const cfx_dtype gives = result_of(r.gives, (cfx_dtype)x->dtype);
    if (c->op == CFX_OPID_angle && cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_rt_result(c, 0, gives, x->size, x->ndim);  /* contiguous, as in PyTorch */
    return cfxi_rt_result_broadcast(c, 0, gives, &x, 1);
}

cfx_status cfxi_rule_binary(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    row r = row_of(c->op);
    cfx_dtype common = cfxi_tensor_promote(both, 2);
    CFX_TRY(check_type(c, common, r.takes));
    return cfxi_rt_result_broadcast(c, 0, result_of(r.gives, common), both, 2);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static cfx_status map_row(cfxi_call *c, size_t n)
{
    row r = row_of(c->op);
    cfxi_map m = {.fn = r.fn, .n = n, .gives = r.gives == BOOLEAN ? CFXI_GIVES_BOOL
                                                                  : CFXI_GIVES_SAME};
    for (size_t k = 0; k < n; k++)
        m.args[k] = cfxi_rt_tensor(c, k);
    m.common = cfxi_tensor_promote(m.args, n);
    if (r.gives == FLOAT)
        m.common = cfxi_elementwise_float_of(m.common);
    return cfxi_elementwise_map_run(c, &m, cfxi_rt_result_at(c, 0));
}

#define X(id, fn, takes, gives)                                                                    \
    cfx_status cfxi_kernel_##id(cfxi_call *c) { return map_row(c, 1); }
UNARY_ROWS(X)
#undef X
#define X(id, fn, takes, gives)                                                                    \
    cfx_status cfxi_kernel_##id(cfxi_call *c) { return map_row(c, 2); }
BINARY_ROWS(X)
#undef X
