/* import_signal.c - Fourier transforms, windows, and the mel scale. */
#include "rules_impl.h"

/* ---- complex numbers ----------------------------------------------------------------------- */

/* Pairs in the last dimension become complex numbers; single ones stay real, without it. */
static cfx_var numbers_of(cfxi_import_call *c, cfx_var x, bool *is_complex)
{
    cfx_scope *s = c->scope;
    const cfx_var parts = cfxi_import_dim_of(s, x, -1);
    if (parts.kind != CFX_VAR_INT || (parts.as.i != 1 && parts.as.i != 2))
        return cfxi_import_fail(c, CFX_E_VALUE, "the last dimension must have size 1 or 2");
    *is_complex = parts.as.i == 2;
    x = cfxi_import_widened(s, x);
    return *is_complex ? cfx_view_as_complex(s, cfx_contiguous(s, x))
                       : cfx_squeeze_dim(s, x, -1);
}

static cfx_var parts_of(cfxi_import_call *c, cfx_var y)
{
    return cfxi_import_cast_to(c->scope, cfx_view_as_real(c->scope, y), cfxi_import_dtype(c, 0));
}

/* A transform of numbers along one of their dimensions. */
typedef struct transform {
    bool inverse, half;
    cfx_var n;   /* its length, if that is a constant or not given */
    int axis;    /* that is tried: if only a run knows which it is */
    int rank;    /* of the numbers */
} transform;

static cfx_var transformed(cfx_scope *s, const transform *t, cfx_var x, cfx_var n)
{
    const cfx_var dim = cfx_v(t->axis);
    if (t->half && t->inverse)
        return cfx_unsqueeze(s, cfx_fft_irfft(s, x, .n = n, .dim = dim), -1);
    const cfx_var y = t->half      ? cfx_fft_rfft(s, x, .n = n, .dim = dim)
                      : t->inverse ? cfx_fft_ifft(s, x, .n = n, .dim = dim)
                                   : cfx_fft_fft(s, x, .n = n, .dim = dim);
    return cfx_view_as_real(s, y);
}

static cfx_var try_axis(cfx_scope *s, const transform *t, const cfx_var *in, size_t n);

/* Blocks of a branch: the numbers, the axis, and the length if only a run knows it. */
static cfx_var this_axis(cfx_scope *s, void *ctx, const cfx_var *in)
{
    const transform *t = ctx;
    return transformed(s, t, in[0], t->n.kind == CFX_VAR_NONE ? in[2] : t->n);
}

static cfx_var next_axis(cfx_scope *s, void *ctx, const cfx_var *in)
{
    transform next = *(const transform *)ctx;
    next.axis++;
    return try_axis(s, &next, in, next.n.kind == CFX_VAR_NONE ? 3 : 2);
}

static cfx_var try_axis(cfx_scope *s, const transform *t, const cfx_var *in, size_t n)
{
    transform own = *t;
    if (own.axis == own.rank - 1)
        return this_axis(s, &own, in);
    const cfx_var size = cfxi_import_dim_of(s, in[0], own.axis);
    const bool empty = size.kind == CFX_VAR_INT && size.as.i < 2 && own.n.kind == CFX_VAR_EMPTY;
    if (own.half && own.inverse && empty)  /* it would have no elements */
        return next_axis(s, &own, in);
    return cfx_if_at(CFX_HERE(s), cfx_eq(s, in[1], own.axis), this_axis, next_axis, &own,
                     cfx_vars_make(in, n));
}

/* `axis` counts the dimension of the parts; a variable if only a run knows it. */
static cfx_var transform_along(cfxi_import_call *c, cfx_var axis)
{
    cfx_scope *s = c->scope;
    bool is_complex = false;
    const int rank = cfxi_import_need_rank(c, 0);
    transform t = {.inverse = cfxi_import_int(c, "inverse", 0) != 0,
                   .half = cfxi_import_int(c, "onesided", 0) != 0, .n = cfxi_import_number(c, 1),
                   .rank = rank - 1};
    if (rank < 1)
        return cfx_var_empty();
    const cfx_var x = numbers_of(c, cfxi_import_in(c, 0), &is_complex);
    cfx_var y;
    if (axis.kind == CFX_VAR_INT) {
        t.axis = cfxi_import_axis(c, axis.as.i, rank);
        y = t.axis < 0 ? cfx_var_empty() : transformed(s, &t, x, t.n);
    } else {
        const cfx_var in[] = {x, cfx_remainder(s, axis, rank), t.n};
        const bool known = t.n.kind == CFX_VAR_INT || t.n.kind == CFX_VAR_EMPTY;
        t.n = known ? t.n : cfx_var_none();
        y = try_axis(s, &t, in, known ? 2 : 3);
    }
    return cfxi_import_cast_to(s, y, cfxi_import_dtype(c, 0));
}

cfx_var cfxi_import_dft_axis(cfxi_import_call *c)
{
    return transform_along(c, cfx_v(cfxi_import_int(c, "axis", 1)));
}

cfx_var cfxi_import_dft(cfxi_import_call *c)
{
    if (!cfxi_import_has(c, 2))
        return transform_along(c, cfx_v(-2));
    const cfx_var axis = cfxi_import_known(c, 2) ? cfxi_import_number(c, 2)
                                                 : cfxi_import_in(c, 2);
    return transform_along(c, axis);
}

/* Parts of a signal [batch, length], which begin `step` apart: a view if that is known. */
static cfx_var frames_of(cfxi_import_call *c, cfx_var x, cfx_var length, cfx_var step)
{
    cfx_scope *s = c->scope;
    if (length.kind == CFX_VAR_INT && step.kind == CFX_VAR_INT)
        return cfx_unfold(s, x, 1, length, step);
    const cfx_var room = cfxi_import_minus(s, cfxi_import_size(c, 0, 1), length);
    const cfx_var n = cfxi_import_plus(s, cfxi_import_over(s, room, step), cfx_v(1));
    const cfx_var begin = cfx_unsqueeze(s, cfx_mul(s, cfx_arange(s, n), step), 1);
    const cfx_var index = cfx_add(s, begin, cfx_arange(s, length));
    const cfx_var sizes[] = {cfxi_import_size(c, 0, 0), n, length};
    return cfx_reshape(s, cfx_index_select(s, x, 1, cfx_flatten(s, index)),
                       cfxi_import_tuple(s, sizes, 3));
}

cfx_var cfxi_import_stft(cfxi_import_call *c)
{
    enum { SIGNAL, STEP, WINDOW, LENGTH };
    cfx_scope *s = c->scope;
    bool is_complex = false;
    const cfx_var x = numbers_of(c, cfxi_import_in(c, SIGNAL), &is_complex);
    const cfx_var length = cfxi_import_has(c, LENGTH)   ? cfxi_import_number(c, LENGTH)
                           : cfxi_import_has(c, WINDOW) ? cfxi_import_size(c, WINDOW, 0)
                                                        : cfxi_import_size(c, SIGNAL, 1);
    cfx_var frames = frames_of(c, x, length, cfxi_import_number(c, STEP));
    if (cfxi_import_has(c, WINDOW))
        frames = cfx_mul(s, frames, cfxi_import_in(c, WINDOW));
    const bool half = cfxi_import_int(c, "onesided", 1) != 0 && !is_complex;
    return parts_of(c, half ? cfx_fft_rfft(s, frames) : cfx_fft_fft(s, frames));
}

/* ---- windows ------------------------------------------------------------------------------- */

/* a - b cos(t) + c cos(2 t), where t goes once around. */
static cfx_var cosine_window(cfxi_import_call *c, double a, double b, double d)
{
    cfx_scope *s = c->scope;
    const cfx_var n = cfxi_import_number(c, 0);
    const bool periodic = cfxi_import_int(c, "periodic", 1) != 0;
    const cfx_dtype to = cfxi_onnx_dtype(cfxi_import_int(c, "output_datatype", 1));
    const cfx_var around = periodic ? n : cfxi_import_minus(s, n, cfx_v(1));
    const cfx_var count = cfx_arange(s, n, .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT64));
    const cfx_var t = cfx_div(s, cfx_mul(s, count, 2 * 3.14159265358979323846), around);
    cfx_var y = cfx_sub(s, a, cfx_mul(s, cfx_cos(s, t), b));
    if (d != 0)
        y = cfx_add(s, y, cfx_mul(s, cfx_cos(s, cfx_mul(s, t, 2)), d));
    return cfxi_import_cast_to(s, y, to);
}

cfx_var cfxi_import_hann_window(cfxi_import_call *c) { return cosine_window(c, 0.5, 0.5, 0); }

cfx_var cfxi_import_hamming_window(cfxi_import_call *c)
{
    return cosine_window(c, 25.0 / 46, 21.0 / 46, 0);
}

cfx_var cfxi_import_blackman_window(cfxi_import_call *c)
{
    return cosine_window(c, 0.42, 0.5, 0.08);
}

/* ---- the mel scale ------------------------------------------------------------------------- */

/* Input i as a number in float64. */
static cfx_var double_of(cfxi_import_call *c, size_t i)
{
    return cfx_to(c->scope, cfxi_import_in(c, i), cfx_var_dtype(CFX_DTYPE_FLOAT64));
}

static cfx_var mel_of(cfx_scope *s, cfx_var hertz)
{
    return cfx_mul(s, cfx_log10(s, cfx_add(s, cfx_div(s, hertz, 700.0), 1.0)), 2595.0);
}

/* The elements of the spectrum at which triangles begin, peak and end: equally far apart on the mel
 * scale, and rounded down. As the standard computes it, a step is a part of bins + 2, so that the
 * last point lies below the upper end. */
static cfx_var mel_edges(cfxi_import_call *c, cfx_var bins)
{
    enum { LENGTH = 1, RATE, LOW, HIGH };
    cfx_scope *s = c->scope;
    const cfx_var low = mel_of(s, double_of(c, LOW)), high = mel_of(s, double_of(c, HIGH));
    const cfx_var points = cfxi_import_plus(s, bins, cfx_v(2));
    const cfx_var step = cfx_div(s, cfx_sub(s, high, low), points);
    const cfx_var count = cfx_arange(s, points,
                                     .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT64));
    const cfx_var mels = cfx_add(s, cfx_mul(s, count, step), low);
    const cfx_var power = cfx_pow(s, cfx_v(10.0), cfx_div(s, mels, 2595.0));
    const cfx_var hertz = cfx_mul(s, cfx_sub(s, power, 1.0), 700.0);
    const cfx_var length = cfx_add(s, double_of(c, LENGTH), 1.0);
    return cfx_floor(s, cfx_div(s, cfx_mul(s, length, hertz), double_of(c, RATE)));
}

cfx_var cfxi_import_mel_weight_matrix(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var bins = cfxi_import_number(c, 0);
    const cfx_var edges = mel_edges(c, bins);
    const cfx_var begin = cfx_narrow(s, edges, 0, 0, bins);
    const cfx_var peak = cfx_narrow(s, edges, 0, 1, bins);
    const cfx_var end = cfx_narrow(s, edges, 0, 2, bins);
    const cfx_var half = cfxi_import_over(s, cfxi_import_number(c, 1), cfx_v(2));
    const cfx_var at = cfx_unsqueeze(s, cfx_arange(s, cfxi_import_plus(s, half, cfx_v(1)),
                                                   .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT64)), 1);
    const cfx_var rise = cfx_div(s, cfx_sub(s, at, begin), cfx_sub(s, peak, begin));
    const cfx_var fall = cfx_div(s, cfx_sub(s, end, at), cfx_sub(s, end, peak));
    const cfx_var rises = cfx_logical_and(s, cfx_ge(s, at, begin), cfx_lt(s, at, peak));
    const cfx_var falls = cfx_logical_and(s, cfx_ge(s, at, peak), cfx_lt(s, at, end));
    const cfx_var zero = cfx_zeros_like(s, rise), one = cfx_ones_like(s, rise);
    cfx_var y = cfx_where(s, rises, rise, cfx_where(s, falls, fall, zero));
    y = cfx_where(s, cfx_eq(s, at, peak), one, y);
    return cfxi_import_cast_to(s, y, cfxi_onnx_dtype(cfxi_import_int(c, "output_datatype", 1)));
}

cfx_var cfxi_import_det(cfxi_import_call *c)
{
    return cfx_linalg_det(c->scope, cfxi_import_in(c, 0));
}
