/* unary.c - functions of one tensor that are more than a function of blocks. */
#include "blocks.h"

#include <math.h>

static cfxi_map map_of(cfxi_call *c, cfxi_fn fn)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    return (cfxi_map){.fn = fn, .common = cfx_tensor_dtype(x), .n = 1, .args = {x}};
}

static cfx_status run(cfxi_call *c, const cfxi_map *m)
{
    return cfxi_elementwise_map_run(c, m, cfxi_rt_result_at(c, 0));
}

cfx_status cfxi_kernel_abs(cfxi_call *c)
{
    cfxi_map m = map_of(c, CFXI_FN_abs);
    if (cfx_dtype_is_complex(m.common)) {
        m.fn = CFXI_FN_complex_abs;
        m.gives = CFXI_GIVES_REAL;
    }
    return run(c, &m);
}

cfx_status cfxi_kernel_angle(cfxi_call *c)
{
    cfxi_map m = map_of(c, CFXI_FN_angle);
    m.common = cfxi_elementwise_float_of(m.common);
    if (cfx_dtype_is_complex(m.common)) {
        m.fn = CFXI_FN_complex_angle;
        m.gives = CFXI_GIVES_REAL;
    }
    return run(c, &m);
}

cfx_status cfxi_kernel_sgn(cfxi_call *c)
{
    cfxi_map m = map_of(c, CFXI_FN_sign);
    if (cfx_dtype_is_complex(m.common))
        m.fn = CFXI_FN_sgn;
    return run(c, &m);
}

cfx_status cfxi_kernel_bitwise_not(cfxi_call *c)
{
    cfxi_map m = map_of(c, CFXI_FN_bitwise_not);
    if (m.common == CFX_DTYPE_BOOL) {
        m.fn = CFXI_FN_logical_not;
        m.gives = CFXI_GIVES_BOOL;
    }
    return run(c, &m);
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Integers are whole already. */
static cfx_status rounded(cfxi_call *c, cfxi_fn fn)
{
    cfxi_map m = map_of(c, fn);
    if (cfx_dtype_is_integer(m.common))
        return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0), c->err);
    return run(c, &m);
}

cfx_status cfxi_kernel_floor(cfxi_call *c) { return rounded(c, CFXI_FN_floor); }
cfx_status cfxi_kernel_ceil(cfxi_call *c) { return rounded(c, CFXI_FN_ceil); }
cfx_status cfxi_kernel_trunc(cfxi_call *c) { return rounded(c, CFXI_FN_trunc); }

cfx_status cfxi_rule_round(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfxi_rt_int(c, 1) != 0)
        CFX_TRY(cfxi_elementwise_takes(c, cfx_tensor_dtype(x), CFXI_FLOATS));
    return cfxi_rule_unary(c);
}

cfx_status cfxi_kernel_round(cfxi_call *c)
{
    int64_t decimals;
    CFX_TRY(cfxi_rt_number(c, 1, &decimals));
    if (decimals == 0)
        return rounded(c, CFXI_FN_round);
    cfxi_map m = map_of(c, decimals > 0 ? CFXI_FN_round_up : CFXI_FN_round_down);
    m.s.f[0] = pow(10, fabs((double)decimals));
    return run(c, &m);
}

/* ---- values that are not finite ------------------------------------------------------------ */

cfx_status cfxi_kernel_nan_to_num(cfxi_call *c)
{
    cfxi_map m = map_of(c, CFXI_FN_nan_to_num);
    if (m.common == CFX_DTYPE_BOOL || cfx_dtype_is_integer(m.common))
        return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0), c->err);
    double most = cfxi_elementwise_most_of(m.common);
    m.s.f[0] = cfxi_rt_is_none(c, 1) ? 0 : cfxi_rt_float(c, 1);
    m.s.f[1] = cfxi_rt_is_none(c, 2) ? most : cfxi_rt_float(c, 2);
    m.s.f[2] = cfxi_rt_is_none(c, 3) ? -most : cfxi_rt_float(c, 3);
    return run(c, &m);
}

cfx_status cfxi_kernel_logit(cfxi_call *c)
{
    cfxi_map m = map_of(c, cfxi_rt_is_none(c, 1) ? CFXI_FN_logit : CFXI_FN_logit_eps);
    m.common = cfxi_elementwise_float_of(m.common);
    m.s.f[0] = cfxi_rt_is_none(c, 1) ? 0 : cfxi_rt_float(c, 1);
    return run(c, &m);
}

/* The argument itself. */
cfx_status cfxi_rule_positive(cfxi_call *c)
{
    if (cfxi_rt_tensor(c, 0)->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE, "The `+` operator, on a bool tensor is not supported.");
    cfxi_rt_result_datum(c, 0, cfx_datum_retain(c->args[0]));
    return CFX_OK;
}
