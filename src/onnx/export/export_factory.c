/* export_factory.c - tensors that are made: filled, counted, drawn at random. */
#include "export_impl.h"

#include <math.h>

/* ---- filled -------------------------------------------------------------------------------- */

static cfxi_ev *shape_arg(cfxi_export_call *c, size_t i)
{
    cfxi_ev **items;
    const size_t n = cfxi_export_items(c, i, &items);
    return cfxi_export_shape_of(c->x, items, n);
}

static cfxi_ev *filled(cfxi_export_call *c, cfxi_ev *shape, cfxi_ev *value)
{
    return NODE("Expand", CAST(value, cfxi_export_result_dtype(c)), shape);
}

static cfxi_ev *filled_by(cfxi_export_call *c, cfxi_ev *shape, double value)
{
    return cfxi_export_filled(c, shape, cfxi_export_result_dtype(c), value);
}

cfxi_ev *cfxi_export_zeros(cfxi_export_call *c) { return filled_by(c, shape_arg(c, 0), 0); }
cfxi_ev *cfxi_export_ones(cfxi_export_call *c) { return filled_by(c, shape_arg(c, 0), 1); }
cfxi_ev *cfxi_export_full(cfxi_export_call *c) { return filled(c, shape_arg(c, 0), ARG(1)); }
cfxi_ev *cfxi_export_zeros_like(cfxi_export_call *c)
{
    return filled_by(c, SHAPE(c->args[0]), 0);
}
cfxi_ev *cfxi_export_ones_like(cfxi_export_call *c) { return filled_by(c, SHAPE(c->args[0]), 1); }
cfxi_ev *cfxi_export_full_like(cfxi_export_call *c)
{
    return filled(c, SHAPE(c->args[0]), ARG(1));
}
cfxi_ev *cfxi_export_new_zeros(cfxi_export_call *c) { return filled_by(c, shape_arg(c, 1), 0); }
cfxi_ev *cfxi_export_new_ones(cfxi_export_call *c) { return filled_by(c, shape_arg(c, 1), 1); }
cfxi_ev *cfxi_export_new_full(cfxi_export_call *c) { return filled(c, shape_arg(c, 1), ARG(2)); }
cfxi_ev *cfxi_export_scalar_tensor(cfxi_export_call *c)
{
    return CAST(ARG(0), cfxi_export_result_dtype(c));
}

/* copy_(x, src) and fill_(x, v): the other's elements in this shape. */
cfxi_ev *cfxi_export_copy(cfxi_export_call *c) { return filled(c, SHAPE(c->args[0]), ARG(1)); }

/* out=: the result's elements, in a tensor that has its sizes. */
cfxi_ev *cfxi_export_write_out(cfxi_export_call *c)
{
    cfxi_ev *out = c->args[0];
    const cfxi_ev *made = c->args[1];
    bool fits = out->rank == made->rank;
    for (int i = 0; fits && i < out->rank; i++)
        fits = out->sizes[i] != 0 || made->sizes[i] == 0;
    if (!fits)
        return cfxi_export_refuse(c, "'out' becomes another size, which a tensor of ONNX cannot; "
                                  "pass one of the result's shape, or none");
    return cfxi_export_write(c, out, ARG(1));
}

/* torch.tensor([a, b]): nested lists of numbers. */
static cfxi_ev *of_numbers(cfxi_export_call *c, cfxi_ev *v, cfx_dtype dtype)
{
    if (!v->items)
        return CAST(v, dtype);
    cfxi_ev **parts = cfxi_export_room(c->x, v->n, sizeof *parts);
    for (size_t i = 0; parts && i < v->n; i++)
        parts[i] = cfxi_export_unsqueeze(c, of_numbers(c, v->items[i], dtype), 0);
    return parts && v->n ? cfxi_export_concat(c, parts, v->n, 0) : &c->x->broken;
}

static cfxi_ev *tensor_of(cfxi_export_call *c, cfxi_ev *data)
{
    const cfx_tensor *t = cfxi_export_result(c, 0);
    if (cfx_tensor_ndim(t) > 0 && data->items && data->n == 0)
        return filled_by(c, INTS(0), 0);
    return of_numbers(c, data, cfxi_export_result_dtype(c));
}

cfxi_ev *cfxi_export_tensor(cfxi_export_call *c) { return tensor_of(c, c->args[0]); }
cfxi_ev *cfxi_export_new_tensor(cfxi_export_call *c) { return tensor_of(c, c->args[1]); }

/* ---- counted ------------------------------------------------------------------------------- */

static cfxi_ev *counted(cfxi_export_call *c, cfxi_ev *start, cfxi_ev *end, cfxi_ev *step)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    const bool known = dtype == CFX_DTYPE_FLOAT16 || dtype == CFX_DTYPE_BFLOAT16;
    const cfx_dtype wide = known ? CFX_DTYPE_FLOAT32 : dtype;
    return NODE("Range", CAST(start, wide), CAST(end, wide), CAST(step, wide));
}

cfxi_ev *cfxi_export_arange(cfxi_export_call *c) { return counted(c, INT(0), ARG(0), INT(1)); }
cfxi_ev *cfxi_export_arange_start(cfxi_export_call *c)
{
    return counted(c, ARG(0), ARG(1), ARG(2));
}

/* start + i * (end - start) / (steps - 1) */
static cfxi_ev *steps_of(cfxi_export_call *c)
{
    cfxi_ev *places = CAST(cfxi_export_range(c, ARG(2)), CFX_DTYPE_FLOAT64);
    cfxi_ev *start = CAST(ARG(0), CFX_DTYPE_FLOAT64);
    cfxi_ev *end = CAST(ARG(1), CFX_DTYPE_FLOAT64);
    cfxi_ev *last = NODE("Max", NODE("Sub", CAST(ARG(2), CFX_DTYPE_FLOAT64), LIKE(places, 1)),
                         LIKE(places, 1));
    return NODE("Add", start, NODE("Mul", places, NODE("Div", NODE("Sub", end, start), last)));
}

cfxi_ev *cfxi_export_linspace(cfxi_export_call *c) { return steps_of(c); }

cfxi_ev *cfxi_export_logspace(cfxi_export_call *c)
{
    cfxi_ev *steps = steps_of(c);
    return NODE("Pow", LIKE(steps, cfxi_export_float(c, 3)), steps);
}

cfxi_ev *cfxi_export_eye(cfxi_export_call *c)
{
    cfxi_ev *columns = cfxi_export_given(c, 1) ? ARG(1) : ARG(0);
    cfxi_ev *rows = cfxi_export_unsqueeze(c, cfxi_export_range(c, ARG(0)), 1);
    return NODE("Equal", rows, cfxi_export_range(c, columns));
}

/* a - b cos(2 pi i / n) */
static cfxi_ev *window(cfxi_export_call *c, double a, double b)
{
    const cfx_dtype wide = CFX_DTYPE_FLOAT64;
    cfxi_ev *places = CAST(cfxi_export_range(c, ARG(0)), wide);
    cfxi_ev *n = CAST(ARG(0), wide);
    if (!cfxi_export_bool(c, 1))
        n = NODE("Max", NODE("Sub", n, LIKE(places, 1)), LIKE(places, 1));
    cfxi_ev *turns = NODE("Div", NODE("Mul", places, LIKE(places, 2 * CFXI_PI)), n);
    return NODE("Sub", LIKE(places, a), NODE("Mul", LIKE(places, b), NODE("Cos", turns)));
}

cfxi_ev *cfxi_export_hann_window(cfxi_export_call *c) { return window(c, 0.5, 0.5); }
cfxi_ev *cfxi_export_hamming_window(cfxi_export_call *c)
{
    return window(c, cfxi_export_float(c, 2), cfxi_export_float(c, 3));
}

/* ---- random -------------------------------------------------------------------------------- */

/* ONNX draws floats of the shape of a tensor. */
static cfxi_ev *drawn(cfxi_export_call *c, const char *op, cfxi_ev *shape)
{
    cfxi_ev *like = cfxi_export_filled(c, shape, CFX_DTYPE_FLOAT32, 0);
    return NODE(op, like);
}

cfxi_ev *cfxi_export_rand(cfxi_export_call *c)
{
    return drawn(c, "RandomUniformLike", shape_arg(c, 0));
}
cfxi_ev *cfxi_export_randn(cfxi_export_call *c)
{
    return drawn(c, "RandomNormalLike", shape_arg(c, 0));
}
cfxi_ev *cfxi_export_rand_like(cfxi_export_call *c)
{
    return drawn(c, "RandomUniformLike", SHAPE(c->args[0]));
}
cfxi_ev *cfxi_export_randn_like(cfxi_export_call *c)
{
    return drawn(c, "RandomNormalLike", SHAPE(c->args[0]));
}

static cfxi_ev *drawn_ints(cfxi_export_call *c, cfxi_ev *shape, cfxi_ev *low, cfxi_ev *high)
{
    cfxi_ev *x = drawn(c, "RandomUniformLike", shape);
    cfxi_ev *least = CAST(low, CFX_DTYPE_FLOAT32);
    cfxi_ev *range = NODE("Sub", CAST(high, CFX_DTYPE_FLOAT32), least);
    return NODE("Floor", NODE("Add", NODE("Mul", x, range), least));
}

cfxi_ev *cfxi_export_randint(cfxi_export_call *c)
{
    return drawn_ints(c, shape_arg(c, 2), ARG(0), ARG(1));
}
cfxi_ev *cfxi_export_randint_like(cfxi_export_call *c)
{
    return drawn_ints(c, SHAPE(c->args[0]), ARG(1), ARG(2));
}

cfxi_ev *cfxi_export_uniform(cfxi_export_call *c)
{
    const double low = cfxi_export_float(c, 1);
    cfxi_ev *x = drawn(c, "RandomUniformLike", SHAPE(c->args[0]));
    return NODE("Add", NODE("Mul", x, LIKE(x, cfxi_export_float(c, 2) - low)), LIKE(x, low));
}

cfxi_ev *cfxi_export_normal(cfxi_export_call *c)
{
    cfxi_ev *x = drawn(c, "RandomNormalLike", SHAPE(c->args[0]));
    return NODE("Add", NODE("Mul", x, LIKE(x, cfxi_export_float(c, 2))),
                LIKE(x, cfxi_export_float(c, 1)));
}

cfxi_ev *cfxi_export_bernoulli(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    return CAST(NODE("Bernoulli", x), cfxi_export_result_dtype(c));
}
