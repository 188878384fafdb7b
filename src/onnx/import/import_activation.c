/* import_activation.c - activations that are not a row of their own. */
#include "rules_impl.h"

cfx_var cfxi_import_selu(cfxi_import_call *c)
{
    const double alpha = cfxi_import_float(c, "alpha", 1.67326319217681884765625);
    const double gamma = cfxi_import_float(c, "gamma", 1.05070102214813232421875);
    return cfx_elu(c->scope, cfxi_import_in(c, 0), .alpha = cfx_v(alpha), .scale = cfx_v(gamma));
}

cfx_var cfxi_import_hard_sigmoid(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const double alpha = cfxi_import_float(c, "alpha", 0.2);
    const double beta = cfxi_import_float(c, "beta", 0.5);
    const cfx_var y = cfx_add(s, cfx_mul(s, cfxi_import_in(c, 0), alpha), beta);
    return cfx_clamp(s, y, .min = cfx_v(0.0), .max = cfx_v(1.0));
}

cfx_var cfxi_import_thresholded_relu(cfxi_import_call *c)
{
    return cfx_threshold(c->scope, cfxi_import_in(c, 0), cfxi_import_float(c, "alpha", 1), 0.0);
}

cfx_var cfxi_import_shrink(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const double limit = cfxi_import_float(c, "lambd", 0.5), bias = cfxi_import_float(c, "bias", 0);
    const cfx_var zero = cfx_zeros_like(s, x);
    const cfx_var above = cfx_where(s, cfx_gt(s, x, limit),
                                    cfxi_import_cast_to(s, cfx_sub(s, x, bias),
                                                        cfxi_import_dtype(c, 0)), zero);
    return cfx_where(s, cfx_lt(s, x, -limit),
                     cfxi_import_cast_to(s, cfx_add(s, x, bias), cfxi_import_dtype(c, 0)), above);
}

static cfx_var swish_of(cfxi_import_call *c, cfx_var x)
{
    cfx_scope *s = c->scope;
    const double alpha = cfxi_import_float(c, "alpha", 1);
    return alpha == 1 ? cfx_silu(s, x) : cfx_mul(s, x, cfx_sigmoid(s, cfx_mul(s, x, alpha)));
}

cfx_var cfxi_import_swish(cfxi_import_call *c) { return swish_of(c, cfxi_import_in(c, 0)); }

cfx_var cfxi_import_swiglu(cfxi_import_call *c)
{
    return cfx_mul(c->scope, swish_of(c, cfxi_import_in(c, 0)), cfxi_import_in(c, 1));
}
