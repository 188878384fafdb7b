/* numbers.c - a model that reckons with numbers: as what loops carry, as their index, and as sizes.
 *
 * In Python its numbers are Python's, for which torch has no functions: what is generated must call
 * those of `operator` and `math`.
 */
#include <cfx/cfx.h>

/* ---- how often 27 goes the way of Collatz before it is 1: in[0] the number, in[1] the count */

static cfx_var is_not_one(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    return cfx_ne(s, in[0], 1);
}

static cfx_var half(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    return cfx_floor_divide(s, in[0], 2);
}

static cfx_var thrice_and_one(cfx_scope *s, void *self, const cfx_var *in)
{
    (void)self;
    return cfx_add(s, cfx_mul(s, 3, in[0]), 1);
}

static cfx_var step(cfx_scope *s, void *self, const cfx_var *in)
{
    cfx_var even = cfx_eq(s, cfx_remainder(s, in[0], 2), 0);
    cfx_var next = cfx_if(s, even, half, thrice_and_one, self, in[0]);
    return cfx_tuple(s, next, cfx_add(s, in[1], 1));
}

/* ---- x and a sum of numbers: in[0] is x, in[1] the sum, in[2] a number that stays */

static cfx_var add_up(cfx_scope *s, void *self, cfx_var i, const cfx_var *in)
{
    (void)self;
    cfx_var part = cfx_remainder(s, cfx_add(s, i, 5), 3);
    part = cfx_maximum(s, part, cfx_neg(s, i));
    part = cfx_add(s, part, cfx_sqrt(s, cfx_add(s, i, in[2])));
    part = cfx_add(s, part, cfx_floor(s, cfx_div(s, i, 2)));
    part = cfx_sub_(s, part, cfx_round(s, cfx_pow(s, i, 2.5)));
    cfx_var x = cfx_add(s, in[0], cfx_mul(s, part, 0.01));
    return cfx_tuple(s, x, cfx_add(s, in[1], part), in[2]);
}

/* ---- the model ----------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var way = cfx_while(s, is_not_one, step, self, cfx_v(27), cfx_v(0));
    cfx_var steps = cfx_getitem(s, way, 1);
    cfx_var rows = cfx_size(s, x, .dim = cfx_v(0));
    cfx_var sums = cfx_for(s, rows, add_up, self, x, cfx_v(0.0), steps);
    cfx_var sum = cfx_getitem(s, sums, 1);
    x = cfx_add(s, cfx_getitem(s, sums, 0), cfx_remainder(s, steps, 100));
    x = cfx_where(s, cfx_gt(s, 12.0, x), x, cfx_neg(s, x));
    cfx_var shape = cfx_size(s, x);
    cfx_var columns = cfx_floor_divide(s, cfx_mul(s, rows, cfx_getitem(s, shape, 1)), rows);
    return cfx_div(s, cfx_mul(s, x, cfx_abs(s, sum)), cfx_exp(s, cfx_div(s, columns, rows)));
}

static const cfx_class numbers_class = {.name = "Numbers", .inputs = "x", .forward = forward};

cfx_module *cfx_model(cfx_scope *s) { return cfx_module_new(s, &numbers_class); }

cfx_var cfx_example(cfx_scope *s)
{
    return cfx_reshape(s, cfx_linspace(s, -1, 1, 12), cfx_ints(s, 4, 3));
}

#include "five_ways.h"
