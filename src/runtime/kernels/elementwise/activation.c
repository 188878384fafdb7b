/* activation.c - activations that have parameters. */
#include "blocks.h"

static cfx_status run(cfxi_call *c, cfxi_map *m, cfxi_fn fn)
{
    m->fn = fn;
    m->n = 1;
    m->args[0] = cfxi_rt_tensor(c, 0);
    m->common = (cfx_dtype)m->args[0]->dtype;
    return cfxi_elementwise_map_run(c, m, cfxi_rt_result_at(c, 0));
}

/* Of the argument's type and sizes, but contiguous whatever it is. */
static cfx_status contiguous_result(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(cfxi_rule_unary(c));
    return cfxi_rt_result(c, 0, cfx_tensor_dtype(x), x->size, x->ndim);
}

/* ---- pieces of lines ----------------------------------------------------------------------- */

cfx_status cfxi_kernel_relu6(cfxi_call *c)
{
    cfxi_map m = {.s = {.f = {0, 6}, .i = {0, 6}}};
    return run(c, &m, CFXI_FN_hardtanh);
}

cfx_status cfxi_rule_hardtanh(cfxi_call *c)
{
    if (cfxi_rt_scalar(c, 1) > cfxi_rt_scalar(c, 2))
        return cfxi_fail(c, CFX_E_VALUE, "min_val cannot be greater than max_val");
    if (cfxi_rt_tensor(c, 0)->dtype == CFX_DTYPE_UINT8 &&
        (cfxi_rt_scalar(c, 1) < 0 || cfxi_rt_scalar(c, 2) < 0))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "cannot do hardtanh on an unsigned type with negative limits");
    return cfxi_rule_unary(c);
}

cfx_status cfxi_kernel_hardtanh(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    cfxi_elementwise_set_scalar(&m.s, 1, c, 2);
    for (size_t k = 0; k < 2; k++)
        CFX_TRY(cfxi_elementwise_check_fits(c, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype, m.s.f[k]));
    return run(c, &m, CFXI_FN_hardtanh);
}

cfx_status cfxi_kernel_threshold(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    cfxi_elementwise_set_scalar(&m.s, 1, c, 2);
    for (size_t k = 0; k < 2; k++)
        CFX_TRY(cfxi_elementwise_check_fits(c, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype, m.s.f[k]));
    return run(c, &m, CFXI_FN_threshold);
}

cfx_status cfxi_kernel_leaky_relu(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    return run(c, &m, CFXI_FN_leaky_relu);
}

cfx_status cfxi_kernel_hardshrink(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    return run(c, &m, CFXI_FN_hardshrink);
}

cfx_status cfxi_rule_softshrink(cfxi_call *c)
{
    double lambd = cfxi_rt_scalar(c, 1);
    if (!(lambd >= 0))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "lambda must be greater or equal to 0, but found to be %g.", lambd);
    return cfxi_rule_unary(c);
}

cfx_status cfxi_kernel_softshrink(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    return run(c, &m, CFXI_FN_softshrink);
}

/* Integers: |x| + 1 in their own type, where it wraps around. */
static cfx_status whole_softsign(cfxi_call *c)
{
    cfx_datum one[2] = {cfx_datum_tensor(cfxi_rt_sub_tensor(c, CFX_OPID_abs, c->args, 1)),
                        cfx_datum_int(1)};
    cfx_tensor *below = one[0].as.tensor ? cfxi_rt_sub_tensor(c, CFX_OPID_add, one, 2) : NULL;
    cfx_datum both[2] = {c->args[0], cfx_datum_tensor(below)};
    cfx_tensor *y = below ? cfxi_rt_sub_tensor(c, CFX_OPID_div, both, 2) : NULL;
    cfx_status status =
        y ? cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), y, c->err) : c->err->status;
    cfx_tensor_release(one[0].as.tensor);
    cfx_tensor_release(below);
    cfx_tensor_release(y);
    return status;
}

cfx_status cfxi_kernel_softsign(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    if (cfx_dtype_is_integer(cfx_tensor_dtype(cfxi_rt_tensor(c, 0))))
        return whole_softsign(c);
    return run(c, &m, CFXI_FN_softsign);
}

/* ---- exponential --------------------------------------------------------------------------- */

/* Below 0 f[0] (e^(f[2] x) - 1), above f[1] x. */
static cfx_status elu(cfxi_call *c, double below, double above, double inner)
{
    cfxi_map m = {.s = {.f = {below, above, inner}}};
    return run(c, &m, CFXI_FN_elu);
}

cfx_status cfxi_kernel_elu(cfxi_call *c)
{
    double alpha = cfxi_rt_scalar(c, 1);
    double scale = cfxi_rt_scalar(c, 2);
    return elu(c, alpha * scale, scale, cfxi_rt_scalar(c, 3));
}

cfx_status cfxi_kernel_selu(cfxi_call *c)
{
    const double alpha = 1.6732632423543772848;
    const double scale = 1.0507009873554804934;
    return elu(c, alpha * scale, scale, 1);
}

cfx_status cfxi_rule_log_sigmoid(cfxi_call *c) { return contiguous_result(c); }

cfx_status cfxi_rule_celu(cfxi_call *c)
{
    if (cfxi_rt_scalar(c, 1) == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "ZeroDivisionError: alpha cannot be 0 for CELU");
    return cfxi_rule_unary(c);
}

cfx_status cfxi_kernel_celu(cfxi_call *c)
{
    double alpha = cfxi_rt_scalar(c, 1);
    return elu(c, alpha, 1, 1 / alpha);
}

/* Argument i says which of the two forms. */
static cfx_status check_form(cfxi_call *c, size_t i)
{
    const char *form = cfxi_rt_str(c, i);
    if (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "approximate argument must be either none or tanh.");
    return CFX_OK;
}

cfx_status cfxi_rule_gelu(cfxi_call *c)
{
    CFX_TRY(check_form(c, 1));
    return cfxi_rule_unary(c);
}

cfx_status cfxi_kernel_gelu(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    return run(c, &m, strcmp(cfxi_rt_str(c, 1), "tanh") == 0 ? CFXI_FN_gelu_tanh : CFXI_FN_gelu);
}

cfx_status cfxi_kernel_softplus(cfxi_call *c)
{
    cfxi_map m = {.n = 1};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 1);
    cfxi_elementwise_set_scalar(&m.s, 1, c, 2);
    return run(c, &m, CFXI_FN_softplus);
}

/* ---- of two tensors ------------------------------------------------------------------------ */

/* A weight for all, or one for each channel: dimension 1. */
cfx_status cfxi_rule_prelu(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *weight = cfxi_rt_tensor(c, 1);
    CFX_TRY(cfxi_elementwise_takes(c, (cfx_dtype)x->dtype, CFXI_FLOATS));
    if (x->dtype != weight->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "prelu: Type promoting not supported. Got %s and %s",
                         cfx_dtype_name((cfx_dtype)x->dtype),
                         cfx_dtype_name((cfx_dtype)weight->dtype));
    if (weight->ndim > 1)
        return cfxi_fail(c, CFX_E_SHAPE, "prelu: Expected `weight` to be a scalar or 1D tensor, "
                         "but got: ndim = %u", weight->ndim);
    if (weight->ndim == 1 && weight->size[0] != 1) {
        int64_t channels = x->ndim > 1 ? x->size[1] : 1;
        if (x->ndim == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "Not allow zero-dim input tensor.");
        if (!cfxi_rt_same_size(c, channels, weight->size[0]))
            return cfxi_fail(c, CFX_E_SHAPE, "Mismatch of parameter numbers and input channel size."
                             " Found parameter numbers = %lld and channel size = %lld.",
                             (long long)weight->size[0], (long long)channels);
    }
    return cfxi_rt_result_broadcast(c, 0, (cfx_dtype)x->dtype, &x, 1);
}

cfx_status cfxi_kernel_prelu(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor weight = *cfxi_rt_tensor(c, 1);  /* a header of its own, never released */
    if (weight.ndim == 1 && x->ndim >= 2) {  /* (C, 1, 1, ...) */
        weight.ndim = (uint8_t)(x->ndim - 1);
        for (size_t d = 1; d < weight.ndim; d++) {
            weight.size[d] = 1;
            weight.stride[d] = 0;
        }
    }
    cfxi_map m = {.fn = CFXI_FN_prelu, .common = (cfx_dtype)x->dtype, .n = 2,
                  .args = {x, &weight}};
    return cfxi_elementwise_map_run(c, &m, cfxi_rt_result_at(c, 0));
}

cfx_status cfxi_rule_glu(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor half = *x;
    size_t dim;
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "glu does not support 0-dimensional tensors");
    CFX_TRY(cfxi_elementwise_takes(c, (cfx_dtype)x->dtype, CFXI_FLOATS));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    int64_t odd = cfx_dim_mod(c->dims, x->size[dim], 2, c->err);
    if (!cfxi_rt_same_size(c, odd, 0))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Halving dimension must be even, but dimension %zu is size %lld", dim,
                         (long long)x->size[dim]);
    half.size[dim] = cfx_dim_div(c->dims, x->size[dim], 2, c->err);
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, &half);
}

cfx_status cfxi_kernel_glu(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor half[2] = {*x, *x};
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    half[0].size[dim] /= 2;
    half[1].size[dim] /= 2;
    half[1].data += half[0].size[dim] * x->stride[dim];
    cfxi_map m = {.fn = CFXI_FN_glu, .common = (cfx_dtype)x->dtype, .n = 2,
                  .args = {&half[0], &half[1]}};
    return cfxi_elementwise_map_run(c, &m, cfxi_rt_result_at(c, 0));
}

/* ---- gradients ----------------------------------------------------------------------------- */

static cfx_status run_gradient(cfxi_call *c, cfxi_map *m, cfxi_fn fn)
{
    m->fn = fn;
    m->n = 2;
    m->args[0] = cfxi_rt_tensor(c, 0);
    m->args[1] = cfxi_rt_tensor(c, 1);
    m->common = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    return cfxi_elementwise_map_run(c, m, cfxi_rt_result_at(c, 0));
}

cfx_status cfxi_kernel_threshold_backward(cfxi_call *c)
{
    cfxi_map m = {.n = 2};
    cfxi_elementwise_set_scalar(&m.s, 0, c, 2);
    CFX_TRY(cfxi_elementwise_check_fits(c, (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype, m.s.f[0]));
    return run_gradient(c, &m, CFXI_FN_threshold_backward);
}

cfx_status cfxi_rule_gelu_backward(cfxi_call *c)
{
    CFX_TRY(check_form(c, 2));
    return cfxi_rule_binary(c);
}

cfx_status cfxi_kernel_gelu_backward(cfxi_call *c)
{
    cfxi_map m = {.n = 2};
    const bool by_tanh = strcmp(cfxi_rt_str(c, 2), "tanh") == 0;
    return run_gradient(c, &m, by_tanh ? CFXI_FN_gelu_tanh_backward : CFXI_FN_gelu_backward);
}

/* (grad_output, mask, scale) */
cfx_status cfxi_rule_native_dropout_backward(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    if (both[1]->dtype != CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE, "Mask should be Bool Scalar Type %s",
                         cfx_dtype_name((cfx_dtype)both[1]->dtype));
    return cfxi_rt_result_broadcast(
        c, 0, cfxi_elementwise_float_of((cfx_dtype)both[0]->dtype), both, 2);
}

cfx_status cfxi_kernel_native_dropout_backward(cfxi_call *c)
{
    cfxi_map m = {.s = {.f = {cfxi_rt_float(c, 2)}}};
    return run_gradient(c, &m, CFXI_FN_native_dropout_backward);
}

/* ---- rrelu --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_rrelu(cfxi_call *c)
{
    if (cfxi_rt_scalar(c, 1) > cfxi_rt_scalar(c, 2))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Lower bound should be less than or equal to the upper bound");
    return contiguous_result(c);
}

/* Training draws a slope for each element below 0. */
static cfx_status draw_slopes(cfxi_call *c, cfx_tensor *slopes, double lower, double upper)
{
    int64_t n = cfxi_tensor_numel(slopes);
    cfxi_random random = cfxi_rt_random_reserve(c->rt, n);
    for (int64_t i = 0; i < n; i++)
        ((double *)slopes->data)[i] = lower + (upper - lower) * cfxi_rt_random_uniform(random, i);
    return CFX_OK;
}

cfx_status cfxi_kernel_rrelu(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    double lower = cfxi_rt_scalar(c, 1);
    double upper = cfxi_rt_scalar(c, 2);
    if (!cfxi_rt_bool(c, 3)) {
        cfxi_map m = {.s = {.f = {(lower + upper) / 2}}};
        return run(c, &m, CFXI_FN_leaky_relu);
    }
    cfx_tensor *slopes = cfx_tensor_new(CFX_DTYPE_FLOAT64, x->size, x->ndim, c->rt->allocator,
                                        c->err);
    if (!slopes)
        return c->err->status;
    cfx_status status = draw_slopes(c, slopes, lower, upper);
    cfxi_map m = {.fn = CFXI_FN_prelu, .common = (cfx_dtype)x->dtype, .n = 2, .args = {x, slopes}};
    if (status == CFX_OK)
        status = cfxi_elementwise_map_run(c, &m, cfxi_rt_result_at(c, 0));
    cfx_tensor_release(slopes);
    return status;
}
