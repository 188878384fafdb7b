/* newton.c - a model that looks at its data: a loop that ends when it is done, a branch, a count.
 *
 *     make build/examples/c/newton && build/examples/c/newton
 *     build/cfx trace examples/c/newton.c
 *
 * It computes exp(sqrt(|x|)) with the four operations of arithmetic: Newton's steps until the root
 * is good enough, then twenty terms of a series. How many steps it takes, the data say; so `if` and
 * `while` of C will not do, which would look at numbers that are not there while tracing. Their
 * blocks are functions: both run when the model is captured, and become parts of the graph.
 */
#include <cfx/cfx.h>

enum { TERMS = 20 };

/* ---- a branch: numbers below zero lose their sign ------------------------------------------ */

static cfx_var without_sign(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    return cfx_abs(s, in[0]);
}

static cfx_var as_it_is(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    return cfx_mul(s, in[0], 1.0);
}

/* ---- a loop until it is done: in[0] is x, in[1] the root so far ----------------------------- */

static cfx_var far_off(cfx_scope *s, void *self, const cfx_var *in)
{
    cfx_var off = cfx_sub(s, cfx_mul(s, in[1], in[1]), in[0]);
    cfx_var largest = cfx_max(s, cfx_abs(s, off));
    return cfx_gt(s, largest, cfx_module_param(s, self, "tolerance"));
}

static cfx_var newton_step(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    cfx_var better = cfx_mul(s, cfx_add(s, in[1], cfx_div(s, in[0], in[1])), 0.5);
    return cfx_tuple(s, in[0], better);
}

/* ---- a counted loop: in[0] is x, in[1] the sum, in[2] its last term, x^i / i! ---------------- */

static cfx_var add_term(cfx_scope *s, void *self, cfx_var i, const cfx_var *in)
{
    (void)self;
    cfx_var term = cfx_div(s, cfx_mul(s, in[2], in[0]), cfx_add(s, i, 1));
    return cfx_tuple(s, in[0], cfx_add(s, in[1], term), term);
}

/* ---- the model ----------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var negative = cfx_lt(s, cfx_min(s, x), 0);
    x = cfx_if(s, negative, without_sign, as_it_is, self, x);
    cfx_var one = cfx_ones_like(s, x);
    cfx_var root = cfx_getitem(s, cfx_while(s, far_off, newton_step, self, x, one), 1);
    return cfx_getitem(s, cfx_for(s, TERMS, add_term, self, root, one, one), 1);
}

static const cfx_class newton_class = {.name = "Newton", .inputs = "x", .forward = forward};

static cfx_tensor *number(cfx_scope *s, float value)
{
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, NULL, 0, cfx_scope_allocator(s), &err);
    if (t)
        *(float *)cfx_tensor_data(t) = value;
    else
        cfx_scope_fail(s, err.status, "%s", err.message);
    return t;
}

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &newton_class);
    cfx_tensor *tolerance = number(s, 1e-4f);
    cfx_module_add_buffer(s, m, "tolerance", tolerance);
    cfx_tensor_release(tolerance);
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_linspace(s, -4, 6, 11); }

#include "five_ways.h"
