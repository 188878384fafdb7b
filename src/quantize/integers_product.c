/* integers_product.c - linear layers, convolutions, matrix products and embeddings of integers.
 *
 *     before                                          after
 *     %x = dequantize_per_tensor(%q, 0.5, 3, ...)     %y = integer_linear(%q, 0.5, 3, %w, %ws, %wz,
 *     %w = dequantize_per_channel(%w8, %ws, %wz, 0, ...)       %bias, 0.25, 128, 128, 255, uint8)
 *     %fc = linear(%x, %w, %bias)
 *     %relu = relu(%fc)
 *     %y = quantize_per_tensor(%relu, 0.25, 128, 0, 255, uint8)
 *
 * A product whose result is not quantized gives floats. A linear layer whose input is rounded with
 * a scale that each run chooses becomes dynamic_linear, one with a float input weight_linear. An
 * embedding becomes weight_embedding.
 */
#include "integers_impl.h"

#include <cfx/tensor.h>

/* The weights of a layer, with the output channels first. */
typedef struct weights {
    cfx_node *integers;
    cfx_value scale, zero;  /* tensors of the channels, or of one element; zero may be None */
    cfx_dtype dtype;
    int64_t group, size;    /* see weight_linear */
} weights;

static const char no_weights[] = "its weights are not quantized in a way that integer operators "
                                 "have";
static const char too_long[] = "its sums have so many products that they may exceed 32 bits";

/* ---- weights -------------------------------------------------------------------------------- */

static cfx_value full(cfxi_integers *job, cfx_node *before, cfx_value number, cfx_dtype dtype)
{
    const int64_t one = 1;
    const cfx_value args[] = {cfxi_quantize_list(job, &one, 1), number, cfx_value_dtype(dtype)};
    cfx_node *n = cfxi_quantize_add(job, before, CFX_OPID_full, args, 3);
    return n ? cfx_value_node(n) : cfx_value_invalid();
}

static cfx_value transposed(cfxi_integers *job, cfx_node *before, cfx_node *x)
{
    const cfx_value args[] = {cfx_value_node(x), cfx_value_int(0), cfx_value_int(1)};
    cfx_node *n = cfxi_quantize_add(job, before, CFX_OPID_transpose, args, 3);
    return n ? cfx_value_node(n) : cfx_value_invalid();
}

/* Whether `real` can be weights with the channels in dimension `axis`, of `rank`. */
static bool are_weights(const cfxi_real *real, int64_t axis, int64_t rank)
{
    if (real->kind == CFXI_REAL_INTEGERS)
        return true;
    const int64_t at = real->axis < 0 ? real->axis + rank : real->axis;
    return real->kind == CFXI_REAL_WEIGHTS && (real->group > 0 ? axis == 0 : at == axis);
}

/* Fills in `w`, with new nodes before `n` where tensors have to be made. */
static cfx_status take_weights(cfxi_integers *job, cfx_node *n, const cfxi_real *real, weights *w)
{
    const cfxi_grid *grid = &real->grid;
    *w = (weights){.integers = real->integers, .dtype = grid->dtype, .group = real->group,
                   .zero = cfx_value_none()};
    if (real->kind == CFXI_REAL_INTEGERS) {
        w->scale = full(job, n, cfx_value_float(grid->scale), CFX_DTYPE_FLOAT32);
        if (grid->zero != 0)
            w->zero = full(job, n, cfx_value_int(grid->zero), CFX_DTYPE_INT64);
        return w->scale.kind == CFX_KIND_INVALID || w->zero.kind == CFX_KIND_INVALID
                   ? job->err->status : CFX_OK;
    }
    w->scale = cfx_value_node(real->scales);
    if (real->zeros && !cfxi_quantize_is_zero(job, real->zeros))
        w->zero = cfx_value_node(real->zeros);
    return CFX_OK;
}

/* Whether a sum over all dimensions of the weights but `channels` fits 32 bits. Unknown sizes are
 * taken to fit. */
static bool fits(cfxi_integers *job, const cfxi_real *real, int channels)
{
    int64_t shape[CFX_MAX_DIMS];
    double products = 1;
    const bool zeros = real->kind == CFXI_REAL_INTEGERS
                           ? real->grid.zero != 0
                           : real->zeros && !cfxi_quantize_is_zero(job, real->zeros);
    const bool narrow = real->grid.dtype == CFX_DTYPE_INT8 && !zeros;
    const int rank = cfxi_quantize_shape(job, real->integers, shape);
    for (int i = 0; i < rank; i++)
        if (i != channels)
            products *= (double)shape[i];
    return products * 255 * (narrow ? 128 : 255) < 2147483648.0;
}

/* ---- linear --------------------------------------------------------------------------------- */

static cfx_value or_none(cfx_value v) { return v.kind == CFX_KIND_INVALID ? cfx_value_none() : v; }

static cfx_status integer_linear(cfxi_integers *job, cfx_node *n, const cfxi_real *x,
                                 const weights *w, cfx_value bias)
{
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    cfx_value args[7 + CFXI_END_ARGS] = {
        cfx_value_node(x->integers), cfx_value_float(x->grid.scale), cfx_value_int(x->grid.zero),
        cfx_value_node(w->integers), w->scale, w->zero, or_none(bias)};
    cfxi_quantize_end_args(&end, args + 7);
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_integer_linear,
                                                                args, 7 + CFXI_END_ARGS));
}

static cfx_status dynamic_linear(cfxi_integers *job, cfx_node *n, const cfxi_real *x,
                                 const weights *w, cfx_value bias)
{
    const cfxi_end end = {.last = NULL};
    const cfx_value args[] = {cfx_value_node(x->float_input), cfx_value_node(w->integers),
                              w->scale, w->zero, or_none(bias), cfx_value_int(x->grid.low),
                              cfx_value_int(x->grid.high), cfx_value_float(x->eps)};
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_dynamic_linear,
                                                                args, sizeof args / sizeof *args));
}

/* int4 weights stay packed: the tensor that is read, and the length of its rows then. */
static cfx_value stored(const weights *w, cfx_value *size)
{
    const bool packed = cfxi_quantize_is_row(w->integers, CFX_OPID_unpack_int4);
    *size = packed ? cfx_node_arg(w->integers, 1) : cfx_value_int(0);
    return packed ? cfx_node_arg(w->integers, 0) : cfx_value_node(w->integers);
}

static cfx_status weight_linear(cfxi_integers *job, cfx_node *n, cfx_value x, const weights *w,
                                cfx_value bias)
{
    const cfxi_end end = {.last = NULL};
    cfx_value size;
    const cfx_value weight = stored(w, &size);
    const cfx_value args[] = {x, weight, w->scale, w->zero, or_none(bias),
                              cfx_value_int(w->group), size};
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_weight_linear,
                                                                args, sizeof args / sizeof *args));
}

/* x times weights whose output channels are dimension `axis`: 0 for linear, 1 for matmul. */
static cfx_status visit_linear(cfxi_integers *job, cfx_node *n, cfx_value input, cfx_value weight,
                               cfx_value bias, int axis)
{
    weights w;
    const cfxi_real x = cfxi_quantize_real_of(job, input);
    const cfxi_real real = cfxi_quantize_real_of(job, weight);
    const bool whole = real.group == 0;
    if (!are_weights(&real, axis, 2) || !cfxi_quantize_is_constant(job, real.integers))
        return x.kind == CFXI_REAL_INTEGERS ? cfxi_quantize_stays(job, n, no_weights) : CFX_OK;
    const bool summed = x.kind == CFXI_REAL_INTEGERS || x.kind == CFXI_REAL_EACH_RUN;
    if (summed && whole && !fits(job, &real, axis))
        return cfxi_quantize_stays(job, n, too_long);
    CFX_TRY(take_weights(job, n, &real, &w));
    if (axis == 1) {
        const cfx_value v = transposed(job, n, w.integers);
        if (v.kind == CFX_KIND_INVALID)
            return job->err->status;
        w.integers = v.as.node;
    }
    if (x.kind == CFXI_REAL_INTEGERS && whole)
        return integer_linear(job, n, &x, &w, bias);
    if (x.kind == CFXI_REAL_EACH_RUN && whole)
        return dynamic_linear(job, n, &x, &w, bias);
    return weight_linear(job, n, input, &w, bias);
}

/* ---- matrix products ------------------------------------------------------------------------ */

/* Whether a product with `weight` is a linear layer: a constant matrix. */
static bool is_matrix(cfxi_integers *job, cfx_value weight)
{
    int64_t shape[CFX_MAX_DIMS];
    const cfxi_real real = cfxi_quantize_real_of(job, weight);
    const bool known = real.kind == CFXI_REAL_INTEGERS || real.kind == CFXI_REAL_WEIGHTS;
    return known && cfxi_quantize_is_constant(job, real.integers) &&
           cfxi_quantize_shape(job, real.integers, shape) == 2;
}

static cfx_status visit_matmul(cfxi_integers *job, cfx_node *n)
{
    const cfx_value x = cfx_node_arg(n, 0), y = cfx_node_arg(n, 1);
    const cfxi_real a = cfxi_quantize_real_of(job, x);
    const cfxi_real b = cfxi_quantize_real_of(job, y);
    if (is_matrix(job, y))
        return visit_linear(job, n, x, y, cfx_value_none(), 1);
    if (a.kind != CFXI_REAL_INTEGERS && b.kind != CFXI_REAL_INTEGERS)
        return CFX_OK;
    if (a.kind != b.kind)
        return cfxi_quantize_stays(job, n, "one of its factors is not quantized");
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    cfx_value args[6 + CFXI_END_ARGS] = {
        cfx_value_node(a.integers), cfx_value_float(a.grid.scale), cfx_value_int(a.grid.zero),
        cfx_value_node(b.integers), cfx_value_float(b.grid.scale), cfx_value_int(b.grid.zero)};
    cfxi_quantize_end_args(&end, args + 6);
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_integer_matmul,
                                                                args, 6 + CFXI_END_ARGS));
}

static bool is_number(cfx_value v, double number)
{
    return v.kind == CFX_KIND_INVALID || (v.kind == CFX_KIND_INT && (double)v.as.i == number) ||
           (v.kind == CFX_KIND_FLOAT && v.as.f == number);
}

/* bias + x @ weights, if the bias has one dimension. */
static cfx_status visit_addmm(cfxi_integers *job, cfx_node *n)
{
    int64_t shape[CFX_MAX_DIMS];
    const cfx_value bias = cfx_node_arg(n, 0), x = cfx_node_arg(n, 1), y = cfx_node_arg(n, 2);
    const bool layer = is_matrix(job, y) && bias.kind == CFX_KIND_NODE &&
                       cfxi_quantize_shape(job, bias.as.node, shape) == 1 &&
                       is_number(cfx_node_arg(n, 3), 1) && is_number(cfx_node_arg(n, 4), 1);
    if (layer)
        return visit_linear(job, n, x, y, bias, 1);
    if (cfxi_quantize_real_of(job, x).kind == CFXI_REAL_INTEGERS)
        return cfxi_quantize_stays(job, n, no_weights);
    return CFX_OK;
}

/* ---- convolutions --------------------------------------------------------------------------- */

enum { MOST_SPACE = 3 };

/* Its arguments behind the bias, for so many dimensions. */
typedef struct window {
    size_t dims;
    int64_t stride[MOST_SPACE], padding[MOST_SPACE], dilation[MOST_SPACE];
    int64_t groups;
} window;

/* "same" as numbers, if it is as many on both sides. */
static bool same_padding(cfxi_integers *job, const cfx_node *weight, window *w)
{
    int64_t shape[CFX_MAX_DIMS];
    if (cfxi_quantize_shape(job, weight, shape) != (int)w->dims + 2)
        return false;
    for (size_t i = 0; i < w->dims; i++) {
        const int64_t all = w->dilation[i] * (shape[i + 2] - 1);
        w->padding[i] = all / 2;
        if (all % 2 != 0 || w->stride[i] != 1)
            return false;
    }
    return true;
}

static bool read_padding(cfxi_integers *job, const cfx_node *weight, cfx_value v, window *w)
{
    if (v.kind != CFX_KIND_STR)
        return cfxi_quantize_ints(v, 0, w->dims, w->padding);
    if (strcmp(cfx_value_text(v, NULL), "valid") == 0)
        return true;
    return strcmp(cfx_value_text(v, NULL), "same") == 0 && same_padding(job, weight, w);
}

static bool read_window(cfxi_integers *job, const cfx_node *n, cfx_operator op,
                        const cfx_node *weight, window *w)
{
    const bool any = op == CFX_OPID_convolution;
    const cfx_value groups = cfx_node_arg(n, any ? 8 : 6);
    const cfx_value transposed = any ? cfx_node_arg(n, 6) : cfx_value_bool(false);
    *w = (window){.dims = op == CFX_OPID_conv1d ? 1 : op == CFX_OPID_conv2d ? 2 : 3, .groups = 1};
    if (any)
        cfx_value_items(cfx_node_arg(n, 3), &w->dims);
    if (groups.kind != CFX_KIND_INVALID)
        w->groups = groups.as.i;
    return w->dims >= 1 && w->dims <= MOST_SPACE && transposed.kind == CFX_KIND_BOOL &&
           !transposed.as.b &&
           (groups.kind == CFX_KIND_INT || groups.kind == CFX_KIND_INVALID) &&
           cfxi_quantize_ints(cfx_node_arg(n, 3), 1, w->dims, w->stride) &&
           cfxi_quantize_ints(cfx_node_arg(n, 5), 1, w->dims, w->dilation) &&
           read_padding(job, weight, cfx_node_arg(n, 4), w);
}

static cfx_status visit_conv(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    weights w;
    window space;
    const cfxi_real x = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    const cfxi_real real = cfxi_quantize_real_of(job, cfx_node_arg(n, 1));
    if (x.kind != CFXI_REAL_INTEGERS)
        return CFX_OK;
    if (!are_weights(&real, 0, 0) || real.group > 0 ||
        !cfxi_quantize_is_constant(job, real.integers))
        return cfxi_quantize_stays(job, n, no_weights);
    if (!read_window(job, n, op, real.integers, &space))
        return cfxi_quantize_stays(job, n, "integer_conv has no such stride, padding or dilation, "
                                           "and is not transposed");
    if (!fits(job, &real, 0))
        return cfxi_quantize_stays(job, n, too_long);
    CFX_TRY(take_weights(job, n, &real, &w));
    const cfxi_end end = cfxi_quantize_end_of(job, n);
    cfx_value args[11 + CFXI_END_ARGS] = {
        cfx_value_node(x.integers), cfx_value_float(x.grid.scale), cfx_value_int(x.grid.zero),
        cfx_value_node(w.integers), w.scale, w.zero, or_none(cfx_node_arg(n, 2)),
        cfxi_quantize_list(job, space.stride, space.dims),
        cfxi_quantize_list(job, space.padding, space.dims),
        cfxi_quantize_list(job, space.dilation, space.dims), cfx_value_int(space.groups)};
    cfxi_quantize_end_args(&end, args + 11);
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_integer_conv,
                                                                args, 11 + CFXI_END_ARGS));
}

/* ---- embeddings ----------------------------------------------------------------------------- */

static cfx_value or_default(cfx_value v, cfx_value missing)
{
    return v.kind == CFX_KIND_INVALID ? missing : v;
}

/* Whether of a tuple only the first item is read. */
static bool gives_first(const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!cfxi_quantize_is_row(use->user, CFX_OPID_getitem) ||
            !cfx_value_equal(cfx_node_arg(use->user, 1), cfx_value_int(0)))
            return false;
    return true;
}

static cfx_status weight_bag(cfxi_integers *job, cfx_node *n, const weights *w)
{
    cfx_value size;
    const cfx_value weight = stored(w, &size);
    const cfx_value args[] = {
        cfx_node_arg(n, 1), or_none(cfx_node_arg(n, 2)), weight, w->scale, w->zero,
        cfx_value_int(w->group), size, or_default(cfx_node_arg(n, 4), cfx_value_int(0)),
        or_none(cfx_node_arg(n, 6)), or_default(cfx_node_arg(n, 7), cfx_value_bool(false)),
        or_none(cfx_node_arg(n, 8))};
    cfx_node *made = cfxi_quantize_add(job, n, CFX_OPID_weight_embedding_bag, args,
                                       sizeof args / sizeof *args);
    if (!made)
        return job->err->status;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        CFX_TRY(cfxi_quantize_replace(job, cfx_use_user(use), made));
    return CFX_OK;
}

/* Rows of a table, or bags of them: only those that are asked for become floats. */
static cfx_status visit_embedding(cfxi_integers *job, cfx_node *n, bool bag)
{
    weights w;
    cfx_value size;
    const cfxi_real real = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    if (real.kind == CFXI_REAL_UNKNOWN)
        return CFX_OK;
    if (!are_weights(&real, 0, 2) || !cfxi_quantize_is_constant(job, real.integers))
        return cfxi_quantize_stays(job, n, no_weights);
    if (bag && !gives_first(n))
        return cfxi_quantize_stays(job, n, "more of its results are used than the rows");
    CFX_TRY(take_weights(job, n, &real, &w));
    if (bag)
        return weight_bag(job, n, &w);
    const cfx_value weight = stored(&w, &size);
    const cfxi_end end = {.last = NULL};
    const cfx_value args[] = {cfx_node_arg(n, 1), weight, w.scale, w.zero, cfx_value_int(w.group),
                              size};
    return cfxi_quantize_finish(job, n, &end, cfxi_quantize_add(job, n, CFX_OPID_weight_embedding,
                                                                args, sizeof args / sizeof *args));
}

/* ---- all ------------------------------------------------------------------------------------ */

cfx_status cfxi_quantize_product(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_linear:
        return visit_linear(job, n, cfx_node_arg(n, 0), cfx_node_arg(n, 1), cfx_node_arg(n, 2), 0);
    case CFX_OPID_matmul:
    case CFX_OPID_mm:
    case CFX_OPID_bmm:
        return visit_matmul(job, n);
    case CFX_OPID_addmm:
        return visit_addmm(job, n);
    case CFX_OPID_conv1d:
    case CFX_OPID_conv2d:
    case CFX_OPID_conv3d:
    case CFX_OPID_convolution:
        return visit_conv(job, n, op);
    case CFX_OPID_embedding:
    case CFX_OPID_embedding_bag:
        return visit_embedding(job, n, op == CFX_OPID_embedding_bag);
    default:
        return CFX_OK;
    }
}
