/* binary.c - arithmetic of two tensors, that which has parameters or cases. */
#include "elementwise_impl.h"
#include "blocks.h"

static cfx_status run(cfxi_call *c, cfxi_map *m)
{
    return cfxi_elementwise_map_run(c, m, cfxi_rt_result_at(c, 0));
}

/* Both arguments, in the type that they have together. */
static cfxi_map map_both(cfxi_call *c, cfxi_fn fn)
{
    cfxi_map m = {.fn = fn, .n = 2, .args = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)}};
    m.common = cfxi_tensor_promote(m.args, 2);
    return m;
}

static bool is_whole(cfx_dtype d) { return d == CFX_DTYPE_BOOL || cfx_dtype_is_integer(d); }

/* ---- sums ---------------------------------------------------------------------------------- */

static cfx_status check_alpha(cfxi_call *c, cfx_dtype common)
{
    cfx_dtype alpha = c->args[2].kind == CFX_DATUM_TENSOR
                          ? (cfx_dtype)c->args[2].as.tensor->dtype
                          : cfxi_rt_scalar_dtype(c->args[2]);
    if (alpha == CFX_DTYPE_BOOL && common != CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE, "Boolean alpha only supported for Boolean results.");
    if (is_whole(common) && !is_whole(alpha))
        return cfxi_fail(c, CFX_E_SHAPE, "For integral input tensors, argument alpha must not be "
                         "a floating point number.");
    if (cfx_dtype_is_complex(alpha) && !cfx_dtype_is_complex(common))
        return cfxi_fail(c, CFX_E_SHAPE, "For non-complex input tensors, argument alpha must not "
                         "be a complex number.");
    return CFX_OK;
}

/* The sum of arguments `first` and `second`; the former's order of dimensions counts first. */
static cfx_status sum_result(cfxi_call *c, size_t first, size_t second)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, first), cfxi_rt_tensor(c, second)};
    cfx_dtype common = cfxi_tensor_promote(both, 2);
    CFX_TRY(check_alpha(c, common));
    return cfxi_rt_result_broadcast(c, 0, common, both, 2);
}

cfx_status cfxi_rule_add(cfxi_call *c) { return sum_result(c, 0, 1); }

cfx_status cfxi_elementwise_check_subtraction(cfxi_call *c)
{
    bool a = cfxi_rt_tensor(c, 0)->dtype == CFX_DTYPE_BOOL;
    bool b = cfxi_rt_tensor(c, 1)->dtype == CFX_DTYPE_BOOL;
    if (a && b)
        return cfxi_fail(c, CFX_E_SHAPE, "Subtraction, the `-` operator, with two bool tensors is "
                         "not supported. Use the `^` or `logical_xor()` operator instead.");
    if (a || b)
        return cfxi_fail(c, CFX_E_SHAPE, "Subtraction, the `-` operator, with a bool tensor is not "
                         "supported. If you are trying to invert a mask, use the `~` or "
                         "`logical_not()` operator instead.");
    return CFX_OK;
}

cfx_status cfxi_rule_sub(cfxi_call *c)
{
    CFX_TRY(cfxi_elementwise_check_subtraction(c));
    return sum_result(c, 0, 1);
}

cfx_status cfxi_rule_rsub(cfxi_call *c)
{
    CFX_TRY(cfxi_elementwise_check_subtraction(c));
    return sum_result(c, 1, 0);
}

/* a + alpha b, where alpha times `sign` is the factor. */
static cfx_status sum(cfxi_call *c, cfxi_map *m, int sign)
{
    cfxi_elementwise_set_scalar(&m->s, 0, c, 2);
    CFX_TRY(cfxi_elementwise_check_fits(c, m->common, m->s.f[0]));
    if (m->s.f[0] == 1 && m->s.im[0] == 0) {
        m->fn = sign > 0 ? CFXI_FN_add : CFXI_FN_sub;
        return run(c, m);
    }
    m->fn = CFXI_FN_add_alpha;
    if (m->common == CFX_DTYPE_FLOAT16 || m->common == CFX_DTYPE_BFLOAT16) {
        uint16_t rounded;  /* as PyTorch does */
        cfxi_tensor_store_float(m->common, &rounded, m->s.f[0]);
        m->s.f[0] = cfxi_tensor_load_float(m->common, &rounded);
    }
    m->s.f[0] *= sign;
    m->s.im[0] *= sign;
    m->s.i[0] = sign < 0 ? (int64_t)(0 - (uint64_t)m->s.i[0]) : m->s.i[0];
    return run(c, m);
}

cfx_status cfxi_kernel_add(cfxi_call *c)
{
    cfxi_map m = map_both(c, CFXI_FN_add);
    return sum(c, &m, 1);
}

cfx_status cfxi_kernel_sub(cfxi_call *c)
{
    cfxi_map m = map_both(c, CFXI_FN_sub);
    return sum(c, &m, -1);
}

/* other - alpha self */
cfx_status cfxi_kernel_rsub(cfxi_call *c)
{
    cfxi_map m = map_both(c, CFXI_FN_sub);
    const cfx_tensor *self = m.args[0];
    m.args[0] = m.args[1];
    m.args[1] = self;
    return sum(c, &m, -1);
}

/* ---- quotients ----------------------------------------------------------------------------- */

cfx_status cfxi_rule_div(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    const char *mode = cfxi_rt_str(c, 2);
    cfx_dtype common = cfxi_tensor_promote(both, 2);
    if (!mode)
        return cfxi_rt_result_broadcast(c, 0, cfxi_elementwise_float_of(common), both, 2);
    if (strcmp(mode, "trunc") != 0 && strcmp(mode, "floor") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "div expected rounding_mode to be one of None, 'trunc', "
                         "or 'floor' but found '%.40s'", mode);
    CFX_TRY(cfxi_elementwise_takes(c, common, CFXI_INTS | CFXI_FLOATS));
    return cfxi_rt_result_broadcast(c, 0, common, both, 2);
}

cfx_status cfxi_kernel_div(cfxi_call *c)
{
    const char *mode = cfxi_rt_str(c, 2);
    cfxi_map m = map_both(c, CFXI_FN_div);
    if (!mode)
        m.common = cfxi_elementwise_float_of(m.common);
    else if (mode[0] == 'f')
        m.fn = CFXI_FN_div_floor;
    else if (m.common != CFX_DTYPE_FLOAT16 && m.common != CFX_DTYPE_BFLOAT16)
        m.fn = CFXI_FN_div_trunc;
    CFX_TRY(run(c, &m));
    if (!mode || mode[0] == 'f' || m.fn == CFXI_FN_div_trunc)
        return CFX_OK;
    /* The quotient of 16-bit floats is rounded before it is cut, as PyTorch does. */
    cfxi_map cut = {.fn = CFXI_FN_trunc, .common = m.common, .n = 1,
                    .args = {cfxi_rt_result_at(c, 0)}};
    return run(c, &cut);
}

/* ---- extremes, shifts ---------------------------------------------------------------------- */

/* Without NaN they are maximum and minimum. */
static cfx_status extreme(cfxi_call *c, cfxi_fn fn, cfxi_fn of_integers)
{
    cfxi_map m = map_both(c, fn);
    if (is_whole(m.common))
        m.fn = of_integers;
    return run(c, &m);
}

cfx_status cfxi_kernel_fmax(cfxi_call *c)
{
    return extreme(c, CFXI_FN_fmax, CFXI_FN_maximum);
}

cfx_status cfxi_kernel_fmin(cfxi_call *c)
{
    return extreme(c, CFXI_FN_fmin, CFXI_FN_minimum);
}

static cfx_status shift(cfxi_call *c, cfxi_fn fn)
{
    cfxi_map m = map_both(c, fn);
    m.s.i[0] = (int64_t)cfx_dtype_size(m.common) * 8;
    return run(c, &m);
}

cfx_status cfxi_kernel_bitwise_left_shift(cfxi_call *c)
{
    return shift(c, CFXI_FN_bitwise_left_shift);
}

cfx_status cfxi_kernel_bitwise_right_shift(cfxi_call *c)
{
    return shift(c, CFXI_FN_bitwise_right_shift);
}

/* ---- powers -------------------------------------------------------------------------------- */

/* A function of the base alone, for an exponent that has one. */
static bool simple_power(double exponent, cfxi_fn *fn)
{
    static const struct {
        double exponent;
        cfxi_fn fn;
    } known[] = {{2, CFXI_FN_square}, {3, CFXI_FN_cube}, {0.5, CFXI_FN_sqrt},
                 {-0.5, CFXI_FN_rsqrt}, {-1, CFXI_FN_reciprocal}, {-2, CFXI_FN_reciprocal_square}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].exponent == exponent) {
            *fn = known[i].fn;
            return true;
        }
    }
    return false;
}

/* m.args[at] is a number: the function takes it as such. */
static void bind_number(cfxi_map *m, size_t at)
{
    const cfx_tensor *t = m->args[at];
    double both[2];
    cfxi_tensor_load_complex((cfx_dtype)t->dtype, t->data, both);
    m->s.f[0] = both[0];
    m->s.im[0] = both[1];
    m->fn = at == 1 ? CFXI_FN_pow_s : CFXI_FN_s_pow;
    if (at == 1 && both[1] == 0)
        simple_power(both[0], &m->fn);
    m->args[0] = m->args[1 - at];
    m->n = 1;
}

static cfx_status power(cfxi_call *c, cfxi_map *m)
{
    if (is_whole(m->common)) {
        const cfx_tensor *e = m->args[1];
        if (e->number && cfxi_tensor_load_int((cfx_dtype)e->dtype, e->data) < 0)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Integers to negative integer powers are not allowed.");
        return run(c, m);
    }
    if (m->args[1]->number)
        bind_number(m, 1);
    else if (m->args[0]->number)
        bind_number(m, 0);
    return run(c, m);
}

/* Of bools only with a number for exponent. */
cfx_status cfxi_rule_pow(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_dtype common = cfxi_tensor_promote(both, 2);
    CFX_TRY(cfxi_elementwise_takes(c, common, both[1]->number ? CFXI_ANY : CFXI_NUMBERS));
    return cfxi_rt_result_broadcast(c, 0, common, both, 2);
}

cfx_status cfxi_kernel_pow(cfxi_call *c)
{
    cfxi_map m = map_both(c, CFXI_FN_pow);
    return power(c, &m);
}

static cfx_dtype float_power_type(const cfx_tensor *const *both)
{
    return cfx_dtype_is_complex(cfxi_tensor_promote(both, 2)) ? CFX_DTYPE_COMPLEX128
                                                              : CFX_DTYPE_FLOAT64;
}

cfx_status cfxi_rule_float_power(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    return cfxi_rt_result_broadcast(c, 0, float_power_type(both), both, 2);
}

cfx_status cfxi_kernel_float_power(cfxi_call *c)
{
    cfxi_map m = map_both(c, CFXI_FN_pow);
    m.common = float_power_type(m.args);
    return power(c, &m);
}
