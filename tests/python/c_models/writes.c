/* writes.c - a model that writes in place, also through views, and leaves the results of the calls
 * that write unused: they must stay in whatever is made of it. */
#include <cfx/cfx.h>

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var y = cfx_clone(s, x);
    cfx_add_(s, y, 1);
    cfx_mul_(s, cfx_view(s, y, cfx_ints(-1)), 2);
    cfx_var corner = cfx_tuple(s, cfx_v(0), cfx_slice_of(s, 0, 2, cfx_var_none()));
    cfx_setitem(s, y, corner, 7);
    cfx_var z = cfx_sub(s, y, 3);
    cfx_call(s, cfx_module_child(self, "relu"), z);
    cfx_copy_(s, cfx_getitem(s, y, 1), cfx_getitem(s, x, 2));
    cfx_index_fill_(s, z, 1, cfx_module_param(s, self, "columns"), 0.25);
    return cfx_mul(s, y, z);
}

static const cfx_class writes_class = {.name = "Writes", .inputs = "x", .forward = forward};

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &writes_class);
    cfx_var columns = cfx_arange_start(s, 1, 4, .step = cfx_v(2));
    cfx_module_add(s, m, "relu", cfx_nn_relu(s, .inplace = cfx_v(true)));
    cfx_module_add_parameter(s, m, "columns", cfx_var_tensor(s, columns));
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_randn(s, cfx_ints(3, 5)); }

#include "five_ways.h"
