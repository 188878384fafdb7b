/* mlp.c - a small network that tells two moons apart: made, fitted and captured in C.
 *
 *     make build/examples/c/mlp && build/examples/c/mlp        runs it in several ways
 *     build/cfx trace examples/c/mlp.c                         prints its graph
 *
 * `forward` is the model. It is written once: it computes if it is called with tensors, and becomes
 * a graph if it is traced. `fit` is a program of the same kind that is never captured.
 */
#include <cfx/cfx.h>

enum { POINTS = 256, HIDDEN = 64 };

/* ---- the model ----------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_relu(s, cfx_call_child(s, self, "fc1", x));
    x = cfx_call_child(s, self, "dropout", x);
    return cfx_softmax(s, cfx_call_child(s, self, "fc2", x), -1);
}

static const cfx_class mlp_class = {.name = "MLP", .inputs = "x", .forward = forward};

/* ---- the data ------------------------------------------------------------------------------ */

/* Points of two half circles that reach into each other: first the upper moon, then the lower. */
static cfx_var moons(cfx_scope *s)
{
    cfx_var t = cfx_linspace(s, 0, 3.14159265, POINTS / 2);
    cfx_var cosine = cfx_cos(s, t);
    cfx_var sine = cfx_sin(s, t);
    cfx_var upper = cfx_stack(s, cfx_list(s, cosine, sine), .dim = cfx_v(1));
    cfx_var lower = cfx_stack(s, cfx_list(s, cfx_rsub(s, cosine, 1), cfx_rsub(s, sine, 0.5)),
                              .dim = cfx_v(1));
    cfx_var x = cfx_cat(s, cfx_list(s, upper, lower));
    return cfx_add(s, x, cfx_randn(s, cfx_ints(s, POINTS, 2)), .alpha = cfx_v(0.08));
}

/* One row for each point: 4 where the moon is that of the column, else -4. */
static cfx_var wanted(cfx_scope *s)
{
    cfx_var upper = cfx_cat(s, cfx_list(s, cfx_ones(s, cfx_ints(s, POINTS / 2)),
                                        cfx_full(s, cfx_ints(s, POINTS / 2), -1.0)));
    return cfx_mul(s, cfx_stack(s, cfx_list(s, upper, cfx_neg(s, upper)), .dim = cfx_v(1)), 4);
}

/* ---- fitting ------------------------------------------------------------------------------- */

/* The hidden layer stays as it was initialised; the last one is the least-squares solution, with a
 * little of the unit matrix that keeps it small: (H'H + I/100) W = H'Y. */
static void fit(cfx_scope *s, cfx_module *m)
{
    const size_t mark = cfx_scope_mark(s);
    cfx_var h = cfx_relu(s, cfx_call_child(s, m, "fc1", moons(s)));
    cfx_var transposed = cfx_transpose(s, h, 0, 1);
    cfx_var square = cfx_add(s, cfx_matmul(s, transposed, h), cfx_eye(s, HIDDEN),
                             .alpha = cfx_v(0.01));
    cfx_var weight = cfx_linalg_solve(s, square, cfx_matmul(s, transposed, wanted(s)));
    cfx_copy_(s, cfx_module_param(s, m, "fc2.weight"), cfx_transpose(s, weight, 0, 1));
    cfx_scope_reset(s, mark, cfx_var_empty());
}

/* ---- what the command and the program around it ask for ------------------------------------ */

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &mlp_class);
    cfx_module_add(s, m, "fc1", cfx_nn_linear(s, 2, HIDDEN));
    cfx_module_add(s, m, "dropout", cfx_nn_dropout(s, .p = cfx_v(0.2)));
    cfx_module_add(s, m, "fc2", cfx_nn_linear(s, HIDDEN, 2, .bias = cfx_v(false)));
    fit(s, m);
    cfx_module_train(m, false);
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return moons(s); }

#include "five_ways.h"
