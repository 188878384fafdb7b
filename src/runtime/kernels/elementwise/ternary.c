/* ternary.c - functions of three tensors: clamp, lerp, addcmul, addcdiv. */
#include "blocks.h"

static cfx_status run(cfxi_call *c, cfxi_map *m)
{
    return cfxi_elementwise_map_run(c, m, cfxi_rt_result_at(c, 0));
}

/* ---- clamp --------------------------------------------------------------------------------- */

/* What is clamped and by what: args[1] and args[2] are NULL where there is no limit. */
typedef struct limits {
    const cfx_tensor *args[3];
    cfx_tensor headers[2];
    double room[2][2];
} limits;

static void read_limits(const cfxi_call *c, limits *l)
{
    l->args[0] = cfxi_rt_tensor(c, 0);
    l->args[1] = l->args[2] = NULL;
    if (c->op == CFX_OPID_clamp_max) {
        l->args[2] = cfxi_elementwise_as_operand(c->args[1], &l->headers[1], l->room[1]);
        return;
    }
    l->args[1] = cfxi_elementwise_as_operand(c->args[1], &l->headers[0], l->room[0]);
    if (c->op == CFX_OPID_clamp)
        l->args[2] = cfxi_elementwise_as_operand(c->args[2], &l->headers[1], l->room[1]);
}

cfx_status cfxi_rule_clamp(cfxi_call *c)
{
    limits l;
    read_limits(c, &l);
    if (!l.args[1] && !l.args[2])
        return cfxi_fail(c, CFX_E_SHAPE,
                         "torch.clamp: At least one of 'min' or 'max' must not be None");
    cfx_dtype common = cfxi_tensor_promote(l.args, 3);
    if (cfx_dtype_is_complex(common))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "clamp is not supported for complex types");
    if (l.args[1] && l.args[2])
        CFX_TRY(cfxi_elementwise_takes(c, common, CFXI_INTS | CFXI_FLOATS));
    const cfx_tensor *shaped[3] = {l.args[0], l.args[1], l.args[2]};
    for (size_t k = 1; k < 3; k++)
        if (shaped[k] == &l.headers[k - 1])
            shaped[k] = NULL;  /* a number has no say in the layout */
    return cfxi_rt_result_broadcast(c, 0, common, shaped, 3);
}

static bool is_number(const cfx_tensor *t) { return !t || (t->number && t->ndim == 0); }

static cfx_status bind(cfxi_call *c, cfxi_map *m, size_t k, const cfx_tensor *t)
{
    char wrapped[16];
    if (!t)
        return CFX_OK;
    cfxi_rt_convert(CFX_ISA_PLAIN, m->common, wrapped, (cfx_dtype)t->dtype, t->data, 1);
    m->s.i[k] = cfxi_tensor_load_int(m->common, wrapped);
    m->s.f[k] = cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data);
    return cfxi_elementwise_check_fits(c, m->common, m->s.f[k]);
}

static cfx_status clamp(cfxi_call *c)
{
    limits l;
    read_limits(c, &l);
    cfxi_map m = {.common = cfxi_tensor_promote(l.args, 3), .n = 1, .args = {l.args[0]}};
    if (is_number(l.args[1]) && is_number(l.args[2])) {
        CFX_TRY(bind(c, &m, 0, l.args[1]));
        CFX_TRY(bind(c, &m, 1, l.args[2]));
        m.fn = !l.args[1]   ? CFXI_FN_clamp_max_s
               : !l.args[2] ? CFXI_FN_clamp_min_s
                            : CFXI_FN_hardtanh;
        return run(c, &m);
    }
    m.fn = !l.args[1] ? CFXI_FN_minimum : !l.args[2] ? CFXI_FN_maximum : CFXI_FN_clamp;
    for (size_t k = 1; k < 3; k++)
        if (l.args[k])
            m.args[m.n++] = l.args[k];
    return run(c, &m);
}

cfx_status cfxi_kernel_clamp(cfxi_call *c) { return clamp(c); }
cfx_status cfxi_kernel_clamp_min(cfxi_call *c) { return clamp(c); }
cfx_status cfxi_kernel_clamp_max(cfxi_call *c) { return clamp(c); }

/* ---- lerp ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_lerp(cfxi_call *c)
{
    static const char *const names[] = {"self", "end", "weight"};
    const cfx_tensor *args[3] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2)};
    cfx_dtype dtype = (cfx_dtype)args[0]->dtype;
    CFX_TRY(cfxi_elementwise_takes(c, dtype, CFXI_FLOATS | CFXI_COMPLEXES));
    for (size_t k = 1; k < 3; k++) {
        bool counts = k == 1 || args[k]->ndim > 0;  /* a weight without dimensions gives way */
        if (counts && !args[k]->number && args[k]->dtype != dtype)
            return cfxi_fail(c, CFX_E_SHAPE, "expected dtype %s for `%s` but got dtype %s",
                             cfx_dtype_name(dtype), names[k],
                             cfx_dtype_name((cfx_dtype)args[k]->dtype));
    }
    return cfxi_rt_result_broadcast(c, 0, dtype, args, args[2]->number ? 2 : 3);
}

cfx_status cfxi_kernel_lerp(cfxi_call *c)
{
    cfxi_map m = {.fn = CFXI_FN_lerp, .n = 3,
                  .args = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2)}};
    m.common = (cfx_dtype)m.args[0]->dtype;
    return run(c, &m);
}

/* ---- addcmul, addcdiv ---------------------------------------------------------------------- */

static cfxi_map map_three(cfxi_call *c, cfxi_fn fn)
{
    cfxi_map m = {.fn = fn, .n = 3,
                  .args = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2)}};
    m.common = cfxi_tensor_promote(m.args, 3);
    cfxi_elementwise_set_scalar(&m.s, 0, c, 3);
    return m;
}

cfx_status cfxi_rule_addcmul(cfxi_call *c)
{
    cfxi_map m = map_three(c, CFXI_FN_addcmul);
    CFX_TRY(cfxi_elementwise_takes(c, m.common, CFXI_NUMBERS));
    return cfxi_rt_result_broadcast(c, 0, m.common, m.args, 3);
}

cfx_status cfxi_kernel_addcmul(cfxi_call *c)
{
    cfxi_map m = map_three(c, CFXI_FN_addcmul);
    CFX_TRY(cfxi_elementwise_check_fits(c, m.common, m.s.f[0]));
    return run(c, &m);
}

static bool is_whole(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_BOOL || cfx_dtype_is_integer((cfx_dtype)t->dtype);
}

cfx_status cfxi_rule_addcdiv(cfxi_call *c)
{
    cfxi_map m = map_three(c, CFXI_FN_addcdiv);
    if (is_whole(m.args[1]) && is_whole(m.args[2]))
        return cfxi_fail(c, CFX_E_SHAPE, "Integer division with addcdiv is no longer supported");
    CFX_TRY(cfxi_elementwise_takes(c, m.common, CFXI_FLOATS | CFXI_COMPLEXES));
    return cfxi_rt_result_broadcast(c, 0, m.common, m.args, 3);
}

cfx_status cfxi_kernel_addcdiv(cfxi_call *c)
{
    cfxi_map m = map_three(c, CFXI_FN_addcdiv);
    CFX_TRY(cfxi_elementwise_check_fits(c, m.common, m.s.f[0]));
    return run(c, &m);
}
