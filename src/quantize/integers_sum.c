/* integers_sum.c - sums, element-wise products, means and average pools of integers, whose result
 * is quantized.
 *
 *     before                                          after
 *     %a = dequantize_per_tensor(%p, 0.5, 3, ...)     %y = integer_add(%p, 0.5, 3, %q, 0.25, 0,
 *     %b = dequantize_per_tensor(%q, 0.25, 0, ...)                      1.0, 10, 10, 255, uint8)
 *     %add = add(%a, %b)
 *     %relu = relu(%add)
 *     %y = quantize_per_tensor(%relu, 1.0, 10, 0, 255, uint8)
 */
#include "integers_impl.h"

#include <cfx/tensor.h>

static const char no_quantize[] = "its result is not quantized";

enum { X_ARGS = 3, XY_ARGS = 6, MOST_ARGS = 12 + CFXI_END_ARGS };

static cfx_status add_sum(cfxi_integers *job, cfx_node *n, cfx_operator op, const cfxi_end *end,
                          cfx_value *args, size_t count)
{
    cfxi_quantize_end_args(end, args + count);
    return cfxi_quantize_finish(job, n, end,
                                cfxi_quantize_add(job, n, op, args, count + CFXI_END_ARGS));
}

static void put_integers(const cfxi_real *x, cfx_value *args)
{
    args[0] = cfx_value_node(x->integers);
    args[1] = cfx_value_float(x->grid.scale);
    args[2] = cfx_value_int(x->grid.zero);
}

/* ---- of two --------------------------------------------------------------------------------- */

static cfx_status visit_pair(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    cfx_value args[MOST_ARGS];
    const cfxi_real x = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    const cfxi_real y = cfxi_quantize_real_of(job, cfx_node_arg(n, 1));
    const cfx_value alpha = op == CFX_OPID_add ? cfx_node_arg(n, 2) : cfx_value_invalid();
    if (x.kind != CFXI_REAL_INTEGERS && y.kind != CFXI_REAL_INTEGERS)
        return CFX_OK;
    if (x.kind != y.kind)
        return cfxi_quantize_stays(job, n, "one of its operands is not quantized");
    if (alpha.kind != CFX_KIND_INVALID && !(alpha.kind == CFX_KIND_INT && alpha.as.i == 1))
        return cfxi_quantize_stays(job, n, "integer_add has no `alpha`");
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    if (!end.last)
        return cfxi_quantize_stays(job, n, no_quantize);
    put_integers(&x, args);
    put_integers(&y, args + X_ARGS);
    return add_sum(job, n, op == CFX_OPID_add ? CFX_OPID_integer_add : CFX_OPID_integer_mul, &end,
                   args, XY_ARGS);
}

/* ---- of many -------------------------------------------------------------------------------- */

/* Adds a mean over so many listed dimensions. */
static cfx_status add_mean(cfxi_integers *job, cfx_node *n, const cfxi_real *x,
                           const int64_t *dims, size_t count, bool keepdim)
{
    cfx_value args[MOST_ARGS];
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    if (!end.last)
        return cfxi_quantize_stays(job, n, no_quantize);
    put_integers(x, args);
    args[3] = cfxi_quantize_list(job, dims, count);
    args[4] = cfx_value_bool(keepdim);
    return add_sum(job, n, CFX_OPID_integer_mean, &end, args, 5);
}

static cfx_status visit_mean(cfxi_integers *job, cfx_node *n, const cfxi_real *x)
{
    int64_t dims[CFX_MAX_DIMS];
    size_t count = 0;
    const cfx_value dim = cfx_node_arg(n, 1), keep = cfx_node_arg(n, 2), type = cfx_node_arg(n, 3);
    const cfx_value *items = cfx_value_items(dim, &count);
    if (dim.kind == CFX_KIND_INT) {
        items = &dim;
        count = 1;
    }
    bool known = count <= CFX_MAX_DIMS && dim.kind != CFX_KIND_NODE &&
                 (keep.kind == CFX_KIND_BOOL || keep.kind == CFX_KIND_INVALID) &&
                 (type.kind == CFX_KIND_INVALID || type.kind == CFX_KIND_NONE);
    for (size_t i = 0; known && i < count; i++) {
        known = items[i].kind == CFX_KIND_INT;
        dims[i] = items[i].as.i;
    }
    if (!known)
        return cfxi_quantize_stays(job, n, "its dimensions are not literals, or it has a dtype");
    return add_mean(job, n, x, dims, count, keep.kind == CFX_KIND_BOOL && keep.as.b);
}

/* An adaptive pool to size 1 is a mean. The windows of others depend on the size of the input. */
static cfx_status visit_adaptive(cfxi_integers *job, cfx_node *n, const cfxi_real *x, size_t space)
{
    static const int64_t dims[] = {-3, -2, -1};
    int64_t sizes[CFX_MAX_DIMS];
    bool ones = cfxi_quantize_ints(cfx_node_arg(n, 1), 0, space, sizes);
    for (size_t i = 0; ones && i < space; i++)
        ones = sizes[i] == 1;
    if (!ones)
        return cfxi_quantize_stays(job, n, "adaptive pools to other sizes than 1 have no integer "
                                           "form");
    return add_mean(job, n, x, dims + 3 - space, space, true);
}

static cfx_value or_bool(cfx_value v, bool missing)
{
    return v.kind == CFX_KIND_INVALID ? cfx_value_bool(missing) : v;
}

static cfx_status visit_pool(cfxi_integers *job, cfx_node *n, const cfxi_real *x, size_t space)
{
    cfx_value args[MOST_ARGS];
    int64_t kernel[CFX_MAX_DIMS], stride[CFX_MAX_DIMS], padding[CFX_MAX_DIMS];
    const cfx_value step = cfx_node_arg(n, 2), divisor = cfx_node_arg(n, 6);
    size_t given;
    cfx_value_items(step, &given);
    const bool same = step.kind == CFX_KIND_INVALID || step.kind == CFX_KIND_NONE ||
                      (step.kind != CFX_KIND_INT && given == 0);
    if (!cfxi_quantize_ints(cfx_node_arg(n, 1), 0, space, kernel) ||
        !cfxi_quantize_ints(same ? cfx_node_arg(n, 1) : step, 0, space, stride) ||
        !cfxi_quantize_ints(cfx_node_arg(n, 3), 0, space, padding))
        return cfxi_quantize_stays(job, n, "its kernel, stride or padding are not literals");
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    if (!end.last)
        return cfxi_quantize_stays(job, n, no_quantize);
    put_integers(x, args);
    args[3] = cfxi_quantize_list(job, kernel, space);
    args[4] = cfxi_quantize_list(job, stride, space);
    args[5] = cfxi_quantize_list(job, padding, space);
    args[6] = or_bool(cfx_node_arg(n, 4), false);
    args[7] = or_bool(cfx_node_arg(n, 5), true);
    args[8] = divisor.kind == CFX_KIND_INVALID ? cfx_value_none() : divisor;
    return add_sum(job, n, CFX_OPID_integer_avg_pool, &end, args, 9);
}

cfx_status cfxi_quantize_sum(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    const cfxi_real x = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    if (op == CFX_OPID_add || op == CFX_OPID_mul)
        return visit_pair(job, n, op);
    if (x.kind != CFXI_REAL_INTEGERS)
        return CFX_OK;
    switch ((int)op) {
    case CFX_OPID_mean:
        return visit_mean(job, n, &x);
    case CFX_OPID_adaptive_avg_pool1d:
        return visit_adaptive(job, n, &x, 1);
    case CFX_OPID_adaptive_avg_pool2d:
        return visit_adaptive(job, n, &x, 2);
    case CFX_OPID_adaptive_avg_pool3d:
        return visit_adaptive(job, n, &x, 3);
    case CFX_OPID_avg_pool1d:
        return visit_pool(job, n, &x, 1);
    case CFX_OPID_avg_pool2d:
        return visit_pool(job, n, &x, 2);
    case CFX_OPID_avg_pool3d:
        return visit_pool(job, n, &x, 3);
    default:
        return CFX_OK;
    }
}
