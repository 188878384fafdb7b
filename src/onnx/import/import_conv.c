/* import_conv.c - convolution: plain, transposed, of integers, deformable; sums of columns. */
#include "rules_impl.h"

#include <math.h>

cfx_var cfxi_import_conv(cfxi_import_call *c)
{
    cfxi_window w;
    if (!cfxi_import_window(c, 1, &w))
        return cfx_var_empty();
    return cfxi_import_convolve(c, cfxi_import_in(c, 0), cfxi_import_in(c, 1),
                                cfxi_import_optional(c, 2), &w);
}

/* ---- transposed ---------------------------------------------------------------------------- */

/* How much is taken away at both ends, and added at the end, so that the result has the sizes that
 * the node asks for. */
static void set_output_shape(cfxi_import_call *c, cfxi_window *w, const int64_t *shape,
                             const int64_t *extra)
{
    cfx_scope *s = c->scope;
    const bool upper = cfxi_import_is(c, "auto_pad", "NOTSET", "SAME_UPPER");
    for (int i = 0; i < w->n; i++) {
        const cfx_var size = cfxi_import_size(c, 0, i + 2);
        const cfx_var steps = cfxi_import_times(s, cfxi_import_minus(s, size, cfx_var_int(1)),
                                                cfx_var_int(w->stride[i]));
        const cfx_var full = cfxi_import_plus(s, steps,
                                              cfx_var_int(cfxi_import_reach(w, i) + extra[i]));
        const cfx_var to = shape ? cfx_var_int(shape[i])
                                 : cfxi_import_times(s, size, cfx_var_int(w->stride[i]));
        const cfx_var total = cfxi_import_minus(s, full, to);
        const cfx_var half = cfxi_import_over(s, total, cfx_var_int(2));
        const cfx_var rest = cfxi_import_minus(s, total, half);
        w->before[i] = upper ? half : rest;
        w->after[i] = upper ? rest : half;
    }
}

/* Whether the row can do it: the same at both ends, and what is added is less than a step. */
static bool fits_row(const cfxi_window *w, const int64_t *extra)
{
    for (int i = 0; i < w->n; i++)
        if (extra[i] >= w->stride[i] && extra[i] >= w->dilation[i])
            return false;
    return cfxi_import_is_symmetric(w) && w->before[0].as.i >= 0;
}

static cfx_var transposed(cfxi_import_call *c, const cfxi_window *w, cfx_var bias, cfx_var padding,
                          cfx_var extra)
{
    cfx_scope *s = c->scope;
    return cfx_convolution(s, cfxi_import_in(c, 0), cfxi_import_in(c, 1), bias,
                           cfxi_import_window_ints(s, w, w->stride), padding,
                           cfxi_import_window_ints(s, w, w->dilation), true, extra,
                           cfxi_import_int(c, "group", 1));
}

cfx_var cfxi_import_conv_transpose(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window w;
    size_t shapes, extras;
    int64_t extra[CFX_MAX_DIMS] = {0};
    static const int64_t zeros[CFX_MAX_DIMS] = {0};
    if (!cfxi_import_window(c, 1, &w))
        return cfx_var_empty();
    if (w.n > 3)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "convolution of %d dimensions; cfx has 1 to "
                                "3", w.n);
    const int64_t *shape = cfxi_import_ints(c, "output_shape", &shapes);
    const int64_t *given = cfxi_import_ints(c, "output_padding", &extras);
    if ((shapes != 0 && shapes != (size_t)w.n && shapes != (size_t)w.n + 2) ||
        (extras != 0 && extras != (size_t)w.n))
        return cfxi_import_fail(c, CFX_E_VALUE, "output_shape and output_padding must have %d "
                                "numbers", w.n);
    for (size_t i = 0; i < extras; i++)
        extra[i] = given[i];
    const bool same = cfxi_import_is(c, "auto_pad", "NOTSET", "SAME_UPPER") ||
                      cfxi_import_is(c, "auto_pad", "NOTSET", "SAME_LOWER");
    if (shapes || same)
        set_output_shape(c, &w, shapes ? shape + (shapes - (size_t)w.n) : NULL, extra);
    cfx_var bias = cfxi_import_optional(c, 2);
    if (bias.kind == CFX_VAR_EMPTY)
        bias = cfx_var_none();
    if (fits_row(&w, extra))
        return transposed(c, &w, bias, cfxi_import_window_padding(s, &w),
                          cfxi_import_window_ints(s, &w, extra));
    cfx_var y = transposed(c, &w, cfx_var_none(), cfxi_import_window_ints(s, &w, zeros),
                           cfxi_import_window_ints(s, &w, zeros));
    for (int i = 0; i < w.n; i++) {
        w.before[i] = cfxi_import_minus(s, cfx_var_int(0), w.before[i]);
        w.after[i] = cfxi_import_minus(s, cfx_var_int(extra[i]), w.after[i]);
    }
    y = cfxi_import_pad_ends(s, y, w.before, w.after, w.n, cfx_var_int(0));
    return bias.kind == CFX_VAR_NONE ? y : cfx_add(s, y, cfxi_import_along(s, bias, 1, w.n + 2));
}

/* ---- integers ------------------------------------------------------------------------------ */

/* Input i less its zero point, input `zero`; one zero point for each channel lies along `axis`. */
static cfx_var centred(cfxi_import_call *c, size_t i, size_t zero, int axis, cfx_dtype dtype)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfx_to(s, cfxi_import_in(c, i), cfx_var_dtype(dtype));
    if (!cfxi_import_has(c, zero))
        return x;
    cfx_var z = cfx_to(s, cfxi_import_in(c, zero), cfx_var_dtype(dtype));
    if (cfxi_import_rank(c, zero) == 1)
        z = cfxi_import_along(s, z, axis, cfxi_import_need_rank(c, i));
    return cfx_sub(s, x, z);
}

/* The type in which a convolution of bytes is exact: float32, if no sum of products can have more
 * digits than it has. */
static cfx_dtype exact_type(cfxi_import_call *c, size_t weight, size_t zero, int rank)
{
    double sum = 255 * 255;
    const cfx_tensor *z = cfxi_import_known(c, zero);
    bool centred_weight = !cfxi_import_has(c, zero) || z;
    for (int64_t i = 0; z && i < cfx_tensor_numel(z); i++)
        centred_weight = centred_weight && ((const char *)cfx_tensor_data(z))[i] == 0;
    if (centred_weight && cfxi_import_dtype(c, weight) == CFX_DTYPE_INT8)
        sum = 255 * 128;
    for (int i = 1; i < rank; i++) {
        const cfx_var size = cfxi_import_size(c, weight, i);
        sum *= size.kind == CFX_VAR_INT ? (double)size.as.i : INFINITY;
    }
    return sum < 0x1p24 ? CFX_DTYPE_FLOAT32 : CFX_DTYPE_FLOAT64;
}

/* A convolution of integers in floats, without a rounding. */
static cfx_var integer_conv(cfxi_import_call *c, size_t x, size_t x_zero, size_t weight,
                            size_t weight_zero)
{
    cfxi_window w;
    if (!cfxi_import_window(c, (int)weight, &w))
        return cfx_var_empty();
    const cfx_dtype dtype = exact_type(c, weight, weight_zero, w.n + 2);
    return cfxi_import_convolve(c, centred(c, x, x_zero, 1, dtype),
                                centred(c, weight, weight_zero, 0, dtype), cfx_var_empty(), &w);
}

cfx_var cfxi_import_conv_integer(cfxi_import_call *c)
{
    return cfx_to(c->scope, integer_conv(c, 0, 2, 1, 3), cfx_var_dtype(CFX_DTYPE_INT32));
}

/* A scale in double; one for each channel lies along `axis` of `rank`. */
static cfx_var scale_of(cfxi_import_call *c, size_t i, int axis, int rank)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfx_to(s, cfxi_import_in(c, i), cfx_var_dtype(CFX_DTYPE_FLOAT64));
    return cfxi_import_rank(c, i) == 1 ? cfxi_import_along(s, x, axis, rank) : x;
}

/* Sums of products of centred integers, brought to the scale and type of the result. */
static cfx_var requantize(cfxi_import_call *c, cfx_var sums, cfx_var factor, size_t scale,
                          size_t zero)
{
    cfx_scope *s = c->scope;
    const cfx_var to = cfx_div(s, factor, scale_of(c, scale, 0, 1));
    const cfx_var y = cfxi_import_saturate(c, cfx_mul(s, sums, to), cfxi_import_optional(c, zero),
                                           cfxi_import_type(c, zero));
    cfxi_import_set_type(c, 0, cfxi_import_type(c, zero));
    return y;
}

cfx_var cfxi_import_qlinear_conv(cfxi_import_call *c)
{
    enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, B };
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, X);
    if (rank < 0)
        return cfx_var_empty();
    cfx_var sums = cfx_to(s, integer_conv(c, X, X_ZERO, W, W_ZERO),
                          cfx_var_dtype(CFX_DTYPE_FLOAT64));
    if (cfxi_import_has(c, B))
        sums = cfx_add(s, sums, cfxi_import_along(s, cfxi_import_in(c, B), 1, rank));
    const cfx_var factor = cfx_mul(s, scale_of(c, X_SCALE, 0, 1), scale_of(c, W_SCALE, 1, rank));
    return requantize(c, sums, factor, Y_SCALE, Y_ZERO);
}

/* The product of two integer matrices: in int32, which wraps as the standard lets it. */
static cfx_var integer_product(cfxi_import_call *c, size_t a, size_t a_zero, size_t b,
                               size_t b_zero)
{
    const int rows = cfxi_import_need_rank(c, a);
    const int columns = cfxi_import_need_rank(c, b);
    if (rows < 0 || columns < 0)
        return cfx_var_empty();
    return cfx_matmul(c->scope, centred(c, a, a_zero, rows > 1 ? rows - 2 : 0, CFX_DTYPE_INT32),
                      centred(c, b, b_zero, columns - 1, CFX_DTYPE_INT32));
}

cfx_var cfxi_import_matmul_integer(cfxi_import_call *c) { return integer_product(c, 0, 2, 1, 3); }

cfx_var cfxi_import_qlinear_matmul(cfxi_import_call *c)
{
    enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };
    cfx_scope *s = c->scope;
    const cfx_var sums = integer_product(c, A, A_ZERO, B, B_ZERO);
    const int rank = cfxi_import_rank_of(s, sums);
    if (rank < 0)
        return sums;
    const cfx_var factor = cfx_mul(s, scale_of(c, A_SCALE, rank > 1 ? rank - 2 : 0, rank),
                                   scale_of(c, B_SCALE, rank - 1, rank));
    return requantize(c, cfx_to(s, sums, cfx_var_dtype(CFX_DTYPE_FLOAT64)), factor, Y_SCALE,
                      Y_ZERO);
}

/* ---- deformable ---------------------------------------------------------------------------- */

cfx_var cfxi_import_deform_conv(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window w;
    if (!cfxi_import_window(c, 1, &w))
        return cfx_var_empty();
    if (w.n != 2)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "deformable convolution of %d dimensions; "
                                "cfx has 2", w.n);
    const cfx_var x = cfxi_import_padded(s, cfxi_import_in(c, 0), &w);
    return cfx_deform_conv2d(s, x, cfxi_import_in(c, 1), cfxi_import_in(c, 2),
                             .bias = cfxi_import_optional(c, 3),
                             .mask = cfxi_import_optional(c, 4),
                             .stride = cfxi_import_window_ints(s, &w, w.stride),
                             .padding = cfxi_import_window_padding(s, &w),
                             .dilation = cfxi_import_window_ints(s, &w, w.dilation),
                             .groups = cfx_v(cfxi_import_int(c, "group", 1)),
                             .offset_groups = cfx_v(cfxi_import_int(c, "offset_group", 1)));
}

/* ---- columns ------------------------------------------------------------------------------- */

/* The numbers of an attribute, or `otherwise`; one list of n after the other. */
static bool read_numbers(cfxi_import_call *c, const char *name, size_t n, int64_t otherwise,
                         int64_t *out)
{
    size_t have;
    const int64_t *ints = cfxi_import_ints(c, name, &have);
    if (have != 0 && have != n)
        return cfxi_import_fail(c, CFX_E_VALUE, "'%s' has %zu numbers; it must have %zu", name,
                                have, n), false;
    for (size_t i = 0; i < n; i++)
        out[i] = have ? ints[i] : otherwise;
    return true;
}

/* What one dimension of the columns is: places, and what the image has beside them. */
typedef struct columns {
    int n;
    int64_t pads[6], stride[3], dilation[3];
    cfx_var image[3], block[3], places[3], before[3], after[3];
    cfx_var window;  /* elements of a block */
} columns;

static bool read_columns(cfxi_import_call *c, columns *a)
{
    cfx_scope *s = c->scope;
    const cfx_var one = cfx_var_int(1);
    a->n = cfxi_import_each_int(c, 1, a->image, 3);
    if (a->n < 1 || cfxi_import_each_int(c, 2, a->block, 3) != a->n ||
        !read_numbers(c, "pads", 2 * (size_t)a->n, 0, a->pads) ||
        !read_numbers(c, "strides", (size_t)a->n, 1, a->stride) ||
        !read_numbers(c, "dilations", (size_t)a->n, 1, a->dilation))
        return cfxi_import_fail(c, CFX_E_VALUE, "images and blocks must have the same number of "
                                "sizes, one to three"), false;
    a->window = one;
    for (int i = 0; i < a->n; i++) {
        const cfx_var step = cfx_var_int(a->stride[i]);
        if (a->stride[i] < 1 || a->dilation[i] < 1)
            return cfxi_import_fail(c, CFX_E_VALUE, "strides and dilations must be positive"),
                   false;
        const cfx_var reach = cfxi_import_plus(
            s, cfxi_import_times(s, cfxi_import_minus(s, a->block[i], one),
                                 cfx_var_int(a->dilation[i])), one);
        const cfx_var room = cfxi_import_plus(s, a->image[i],
                                              cfx_var_int(a->pads[i] + a->pads[a->n + i]));
        const cfx_var last = cfxi_import_over(s, cfxi_import_minus(s, room, reach), step);
        const cfx_var full = cfxi_import_plus(s, cfxi_import_times(s, last, step), reach);
        a->window = cfxi_import_times(s, a->window, a->block[i]);
        a->places[i] = cfxi_import_plus(s, last, one);
        a->before[i] = cfx_var_int(-a->pads[i]);
        a->after[i] = cfxi_import_minus(s, cfxi_import_minus(s, room, full),
                                        cfx_var_int(a->pads[a->n + i]));
    }
    return cfx_scope_ok(s);
}

/* A transposed convolution with a kernel that has a single 1 for each channel of a block puts the
 * columns where they belong, and adds them up. Channels of the image are images of their own. */
cfx_var cfxi_import_col2im(cfxi_import_call *c)
{
    static const int64_t zeros[3] = {0};
    cfx_scope *s = c->scope;
    columns a;
    if (!read_columns(c, &a))
        return cfx_var_empty();
    const size_t n = (size_t)a.n;
    const cfx_var images = cfxi_import_size(c, 0, 0);
    const cfx_var channels = cfxi_import_over(s, cfxi_import_size(c, 0, 1), a.window);
    cfx_var sizes[5] = {a.window, cfx_v(1)}, result[5] = {images, channels};
    cfx_var places[5] = {cfxi_import_times(s, images, channels), a.window};
    for (size_t i = 0; i < n; i++) {
        sizes[2 + i] = a.block[i];
        places[2 + i] = a.places[i];
        result[2 + i] = a.image[i];
    }
    const cfx_var eye = cfx_eye(s, a.window, .dtype = cfx_var_dtype(cfxi_import_dtype(c, 0)));
    const cfx_var kernel = cfx_reshape(s, eye, cfxi_import_tuple(s, sizes, n + 2));
    const cfx_var x = cfx_reshape(s, cfxi_import_in(c, 0), cfxi_import_tuple(s, places, n + 2));
    const cfx_var zero = cfx_var_ints(s, zeros, n);
    const cfx_var y = cfx_convolution(s, x, kernel, cfx_var_none(), cfx_var_ints(s, a.stride, n),
                                      zero, cfx_var_ints(s, a.dilation, n), true, zero, 1);
    const cfx_var cut = cfxi_import_pad_ends(s, y, a.before, a.after, a.n, cfx_var_int(0));
    return cfx_reshape(s, cut, cfxi_import_tuple(s, result, n + 2));
}
