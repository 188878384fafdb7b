/* flow.c - loops in loops, with a branch inside that reads parameters, calls a module and has a
 * loop of its own. */
#include <cfx/cfx.h>

static cfx_var is_large(cfx_scope *s, void *self, const cfx_var *in)
{
    return cfx_gt(s, cfx_max(s, cfx_abs(s, in[0])), cfx_module_param(s, self, "limit"));
}

static cfx_var shrink(cfx_scope *s, void *self, const cfx_var *in)
{
    return cfx_mul(s, in[0], cfx_module_param(s, self, "inner.factor"));
}

static cfx_var even(cfx_scope *s, void *self, const cfx_var *in)
{
    cfx_var y = cfx_call(s, cfx_module_child(self, "fc"), in[0]);
    y = cfx_while(s, is_large, shrink, self, y);
    return cfx_tuple(s, y, cfx_add(s, in[1], 1));
}

static cfx_var odd(cfx_scope *s, void *self, const cfx_var *in)
{
    return cfx_tuple(s, cfx_add(s, in[0], cfx_module_param(s, self, "shift")),
                     cfx_mul(s, in[1], 2));
}

static cfx_var inner(cfx_scope *s, void *self, cfx_var j, const cfx_var *in)
{
    cfx_var is_even = cfx_eq(s, cfx_remainder(s, in[1], 2), 0);
    cfx_var both = cfx_if(s, is_even, even, odd, self, cfx_mul(s, in[0], 1.01), in[1]);
    cfx_var y = cfx_sub(s, cfx_getitem(s, both, 0), cfx_mul(s, j, 0.125));
    return cfx_tuple(s, y, cfx_getitem(s, both, 1));
}

static cfx_var outer(cfx_scope *s, void *self, cfx_var i, const cfx_var *in)
{
    (void)i;
    cfx_var both = cfx_for(s, in[2], inner, self, in[0], in[1]);
    return cfx_tuple(s, cfx_getitem(s, both, 0), cfx_getitem(s, both, 1), in[2]);
}

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var one = cfx_ones(s, cfx_ints(1), .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    return cfx_getitem(s, cfx_for(s, 3, outer, self, x, one, cfx_v(2)), 0);
}

static const cfx_class flow_class = {.name = "Flow", .inputs = "x", .forward = forward};

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &flow_class);
    cfx_module *below = cfx_module_add(s, m, "inner", cfx_module_new(s, NULL));
    cfx_module_add_buffer(s, m, "limit", cfx_var_tensor(s, cfx_full(s, cfx_ints(1), 0.7)));
    cfx_module_add_parameter(s, m, "shift", cfx_var_tensor(s, cfx_randn(s, cfx_ints(4))));
    cfx_module_add_parameter(s, below, "factor", cfx_var_tensor(s, cfx_full(s, cfx_ints(1), 0.5)));
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, 4, 4));
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_randn(s, cfx_ints(3, 4)); }

#include "five_ways.h"
