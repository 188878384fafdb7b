/* import_pool.c - pooling: the largest, mean or norm of windows, of whole images, and back.
 *
 * What PyTorch's rows can do, they do. Everything else (padding that differs at the two ends,
 * dilated means, integers, four dimensions) looks at the windows as views of the padded image, and
 * reduces their dimensions.
 */
#include "rules_impl.h"

#include <math.h>

/* ---- windows as views ---------------------------------------------------------------------- */

/* How many places there are along dimension i, and thereby what is padded at the end: as much as
 * the last window needs. A last window that would begin in that padding is left out. */
static void round_up(cfxi_import_call *c, cfxi_window *w)
{
    cfx_scope *s = c->scope;
    if (!cfxi_import_int(c, "ceil_mode", 0))
        return;
    for (int i = 0; i < w->n; i++) {
        const cfx_var step = cfx_var_int(w->stride[i]);
        const cfx_var reach = cfx_var_int(cfxi_import_reach(w, i));
        const cfx_var more = cfx_var_int(w->stride[i] - 1);
        const cfx_var begin = cfxi_import_plus(s, cfxi_import_size(c, 0, i + 2), w->before[i]);
        const cfx_var all = cfxi_import_plus(s, begin, w->after[i]);
        const cfx_var last = cfxi_import_over(
            s, cfxi_import_plus(s, cfxi_import_minus(s, all, reach), more), step);
        const cfx_var inside = cfxi_import_over(
            s, cfxi_import_minus(s, begin, cfx_var_int(1)), step);
        const cfx_var steps = cfxi_import_smaller(s, last, inside);
        const cfx_var length = cfxi_import_plus(s, cfxi_import_times(s, steps, step), reach);
        w->after[i] = cfxi_import_minus(s, length, begin);
    }
}

/* The windows of a padded image: n further dimensions at the end. */
static cfx_var windows_of(cfx_scope *s, cfx_var x, const cfxi_window *w)
{
    for (int i = 0; i < w->n; i++) {
        x = cfx_unfold(s, x, i + 2, cfxi_import_reach(w, i), w->stride[i]);
        if (w->dilation[i] > 1)
            x = cfx_slice(s, x, .dim = cfx_v(-1), .step = cfx_v(w->dilation[i]));
    }
    return x;
}

/* The last n dimensions. */
static cfx_var last_dims(cfx_scope *s, int n)
{
    int64_t dims[CFX_MAX_DIMS];
    for (int i = 0; i < n; i++)
        dims[i] = i - n;
    return cfx_var_ints(s, dims, (size_t)n);
}

/* Whether a row of PyTorch's has this window: its padding is at most half of it. */
static bool has_row(const cfxi_window *w)
{
    if (w->n > 3 || !cfxi_import_is_symmetric(w))
        return false;
    for (int i = 0; i < w->n; i++)
        if (w->before[i].as.i * 2 > w->kernel[i])
            return false;
    return true;
}

static bool is_dilated(const cfxi_window *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->dilation[i] != 1)
            return true;
    return false;
}

/* ---- the largest --------------------------------------------------------------------------- */

/* The least element of a type: what is padded. */
static cfx_var least_of(cfx_dtype dtype)
{
    switch (dtype) {
    case CFX_DTYPE_UINT8: return cfx_v(0);
    case CFX_DTYPE_INT8: return cfx_v(-128);
    default: return cfx_v(-INFINITY);
    }
}

/* The places of one image, numbered by rows, or by columns. */
static cfx_var numbers_of(cfxi_import_call *c, const cfxi_window *w, cfx_var *count)
{
    cfx_scope *s = c->scope;
    cfx_var sizes[CFX_MAX_DIMS] = {cfx_v(1), cfx_v(1)};
    int64_t order[CFX_MAX_DIMS] = {0, 1};
    const bool columns = cfxi_import_int(c, "storage_order", 0) != 0;
    *count = cfx_v(1);
    for (int i = 0; i < w->n; i++) {
        sizes[2 + i] = cfxi_import_size(c, 0, 2 + (columns ? w->n - 1 - i : i));
        order[2 + i] = columns ? w->n + 1 - i : i + 2;
        *count = cfxi_import_times(s, *count, sizes[2 + i]);
    }
    const cfx_var all = cfx_reshape(s, cfx_arange(s, *count),
                                    cfxi_import_tuple(s, sizes, (size_t)w->n + 2));
    return columns ? cfx_permute(s, all, cfx_var_ints(s, order, (size_t)w->n + 2)) : all;
}

/* Places within an image become places within the whole tensor. */
static cfx_var with_planes(cfxi_import_call *c, cfx_var index, cfx_var count, int n)
{
    cfx_scope *s = c->scope;
    const cfx_var images = cfxi_import_size(c, 0, 0), channels = cfxi_import_size(c, 0, 1);
    cfx_var sizes[CFX_MAX_DIMS] = {images, channels};
    for (int i = 0; i < n; i++)
        sizes[2 + i] = cfx_v(1);
    const cfx_var planes = cfx_reshape(s, cfx_arange(s, cfxi_import_times(s, images, channels)),
                                       cfxi_import_tuple(s, sizes, (size_t)n + 2));
    return cfx_add(s, index, cfx_mul(s, planes, count));
}

/* Which place of each window has its largest element. */
static cfx_var largest_places(cfxi_import_call *c, const cfxi_window *w, cfx_var windows)
{
    cfx_scope *s = c->scope;
    cfx_var count;
    cfx_var numbers = cfxi_import_pad_ends(s, numbers_of(c, w, &count), w->before, w->after, w->n,
                                           cfx_v(0));
    numbers = cfx_flatten(s, windows_of(s, numbers, w), .start_dim = cfx_v(-w->n));
    const cfx_var flat = cfx_flatten(s, windows, .start_dim = cfx_v(-w->n));
    const cfx_var best = cfx_argmax(s, flat, .dim = cfx_v(-1), .keepdim = cfx_v(true));
    const cfx_var index = cfx_gather(s, cfx_expand_as(s, numbers, flat), -1, best);
    return with_planes(c, cfx_squeeze_dim(s, index, -1), count, w->n);
}

/* The largest of each window of a padded image. */
static cfx_var max_of(cfxi_import_call *c, cfx_var padded, const cfxi_window *w)
{
    cfx_scope *s = c->scope;
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    static const cfx_operator rows[] = {CFX_OPID_max_pool1d, CFX_OPID_max_pool2d,
                                        CFX_OPID_max_pool3d};
    if (w->n > 3 || (dtype != CFX_DTYPE_COUNT && !cfx_dtype_is_float(dtype)))
        return cfx_amax(s, windows_of(s, padded, w), .dim = last_dims(s, w->n));
    const cfx_var args[] = {padded, cfxi_import_window_ints(s, w, w->kernel),
                            cfxi_import_window_ints(s, w, w->stride), cfx_v(0),
                            cfxi_import_window_ints(s, w, w->dilation)};
    return cfx_apply_at(CFX_HERE(s), rows[w->n - 1], args, 5);
}

static cfx_var max_pool_row(cfxi_import_call *c, const cfxi_window *w)
{
    cfx_scope *s = c->scope;
    static const cfx_operator plain[] = {CFX_OPID_max_pool1d, CFX_OPID_max_pool2d,
                                         CFX_OPID_max_pool3d};
    static const cfx_operator both[] = {CFX_OPID_max_pool1d_with_indices,
                                        CFX_OPID_max_pool2d_with_indices,
                                        CFX_OPID_max_pool3d_with_indices};
    const cfx_var args[] = {cfxi_import_in(c, 0), cfxi_import_window_ints(s, w, w->kernel),
                            cfxi_import_window_ints(s, w, w->stride),
                            cfxi_import_window_padding(s, w),
                            cfxi_import_window_ints(s, w, w->dilation),
                            cfx_var_bool(cfxi_import_int(c, "ceil_mode", 0) != 0)};
    if (!cfxi_import_wants(c, 1))
        return cfx_apply_at(CFX_HERE(s), plain[w->n - 1], args, 6);
    const cfx_var result = cfx_apply_at(CFX_HERE(s), both[w->n - 1], args, 6);
    cfx_var count = cfx_v(1);
    for (int i = 0; i < w->n; i++)
        count = cfxi_import_times(s, count, cfxi_import_size(c, 0, 2 + i));
    cfxi_import_set(c, 1, with_planes(c, cfx_getitem(s, result, 1), count, w->n));
    return cfx_getitem(s, result, 0);
}

cfx_var cfxi_import_max_pool(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window w;
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    if (!cfxi_import_window(c, -1, &w))
        return cfx_var_empty();
    const bool columns = cfxi_import_wants(c, 1) && cfxi_import_int(c, "storage_order", 0);
    if (has_row(&w) && !columns && (dtype == CFX_DTYPE_COUNT || cfx_dtype_is_float(dtype)))
        return max_pool_row(c, &w);
    round_up(c, &w);
    const cfx_var padded = cfxi_import_pad_ends(s, cfxi_import_in(c, 0), w.before, w.after, w.n,
                                                least_of(dtype));
    if (cfxi_import_wants(c, 1))
        cfxi_import_set(c, 1, largest_places(c, &w, windows_of(s, padded, &w)));
    return max_of(c, padded, &w);
}

/* ---- means and norms ----------------------------------------------------------------------- */

/* The mean of each window of a padded image. */
static cfx_var mean_of(cfx_scope *s, cfx_var padded, const cfxi_window *w)
{
    static const cfx_operator rows[] = {CFX_OPID_avg_pool1d, CFX_OPID_avg_pool2d,
                                        CFX_OPID_avg_pool3d};
    if (w->n > 3 || is_dilated(w))
        return cfx_mean(s, windows_of(s, padded, w), .dim = last_dims(s, w->n));
    const cfx_var args[] = {padded, cfxi_import_window_ints(s, w, w->kernel),
                            cfxi_import_window_ints(s, w, w->stride)};
    return cfx_apply_at(CFX_HERE(s), rows[w->n - 1], args, 3);
}

/* How much of each window is in the image; with the padding that the node gives, if that
 * counts, but never what rounding up has added. */
static cfx_var parts_of(cfxi_import_call *c, const cfxi_window *given, const cfxi_window *w,
                        cfx_dtype dtype)
{
    cfx_scope *s = c->scope;
    cfx_var sizes[CFX_MAX_DIMS] = {cfx_v(1), cfx_v(1)};
    cfx_var rest[CFX_MAX_DIMS];
    const bool all = cfxi_import_int(c, "count_include_pad", 0) != 0;
    for (int i = 0; i < w->n; i++)
        sizes[2 + i] = cfxi_import_size(c, 0, 2 + i);
    cfx_var ones = cfx_ones(s, cfxi_import_tuple(s, sizes, (size_t)w->n + 2),
                            .dtype = cfx_var_dtype(dtype));
    if (all)
        ones = cfxi_import_pad_ends(s, ones, given->before, given->after, w->n, cfx_v(1));
    for (int i = 0; i < w->n; i++) {
        sizes[i] = all ? cfx_v(0) : w->before[i];
        rest[i] = all ? cfxi_import_minus(s, w->after[i], given->after[i]) : w->after[i];
    }
    ones = cfxi_import_pad_ends(s, ones, sizes, rest, w->n, cfx_v(0));
    return mean_of(s, ones, w);
}

static cfx_var avg_pool_row(cfxi_import_call *c, const cfxi_window *w)
{
    cfx_scope *s = c->scope;
    static const cfx_operator rows[] = {CFX_OPID_avg_pool1d, CFX_OPID_avg_pool2d,
                                        CFX_OPID_avg_pool3d};
    const cfx_var args[] = {cfxi_import_in(c, 0), cfxi_import_window_ints(s, w, w->kernel),
                            cfxi_import_window_ints(s, w, w->stride),
                            cfxi_import_window_padding(s, w),
                            cfx_var_bool(cfxi_import_int(c, "ceil_mode", 0) != 0),
                            cfx_var_bool(cfxi_import_int(c, "count_include_pad", 0) != 0)};
    return cfx_apply_at(CFX_HERE(s), rows[w->n - 1], args, 6);
}

cfx_var cfxi_import_average_pool(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window given;
    if (!cfxi_import_window(c, -1, &given))
        return cfx_var_empty();
    if (has_row(&given) && !is_dilated(&given))
        return avg_pool_row(c, &given);
    cfxi_window w = given;
    round_up(c, &w);
    const cfx_var x = cfxi_import_widened(s, cfxi_import_in(c, 0));
    const cfx_var padded = cfxi_import_pad_ends(s, x, w.before, w.after, w.n, cfx_v(0));
    const cfx_dtype dtype = cfxi_import_dtype_of(s, x);
    const cfx_var y = cfx_div(s, mean_of(s, padded, &w), parts_of(c, &given, &w, dtype));
    return cfxi_import_cast_to(s, y, cfxi_import_dtype(c, 0));
}

/* (sum |x|^p)^(1/p) over dimensions. */
static cfx_var norm_over(cfxi_import_call *c, cfx_var x, cfx_var dims, bool keep)
{
    cfx_scope *s = c->scope;
    const double p = (double)cfxi_import_int(c, "p", 2);
    const cfx_var y = cfx_linalg_vector_norm(s, cfxi_import_widened(s, x), .ord = cfx_v(p),
                                             .dim = dims, .keepdim = cfx_v(keep));
    return cfxi_import_cast_to(s, y, cfxi_import_dtype(c, 0));
}

cfx_var cfxi_import_lp_pool(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window w;
    if (!cfxi_import_window(c, -1, &w))
        return cfx_var_empty();
    round_up(c, &w);
    const cfx_var x = cfxi_import_pad_ends(s, cfxi_import_in(c, 0), w.before, w.after, w.n,
                                           cfx_v(0));
    return norm_over(c, windows_of(s, x, &w), last_dims(s, w.n), false);
}

/* ---- whole images -------------------------------------------------------------------------- */

/* All dimensions but the first two; EMPTY if their number is not known. */
static cfx_var image_dims(cfxi_import_call *c)
{
    int64_t dims[CFX_MAX_DIMS];
    const int rank = cfxi_import_need_rank(c, 0);
    for (int i = 2; i < rank; i++)
        dims[i - 2] = i;
    return rank < 0 ? cfx_var_empty()
                    : cfx_var_ints(c->scope, dims, rank > 2 ? (size_t)rank - 2 : 0);
}

cfx_var cfxi_import_global_average_pool(cfxi_import_call *c)
{
    return cfx_mean(c->scope, cfxi_import_in(c, 0), .dim = image_dims(c), .keepdim = cfx_v(true));
}

cfx_var cfxi_import_global_max_pool(cfxi_import_call *c)
{
    return cfx_amax(c->scope, cfxi_import_in(c, 0), .dim = image_dims(c), .keepdim = cfx_v(true));
}

cfx_var cfxi_import_global_lp_pool(cfxi_import_call *c)
{
    return norm_over(c, cfxi_import_in(c, 0), image_dims(c), true);
}

/* ---- back ---------------------------------------------------------------------------------- */

/* Places are of the tensor that the window and the input give; a larger one that the node asks for
 * has zeros at the ends. */
cfx_var cfxi_import_max_unpool(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_window w;
    cfx_var sizes[CFX_MAX_DIMS], asked[CFX_MAX_DIMS], none[CFX_MAX_DIMS];
    if (!cfxi_import_window(c, -1, &w))
        return cfx_var_empty();
    cfx_var all = cfx_v(1);
    for (int i = 0; i < w.n + 2; i++) {
        sizes[i] = cfxi_import_size(c, 0, i);
        none[i] = cfx_v(0);
        if (i >= 2) {
            const cfx_var steps = cfxi_import_times(
                s, cfxi_import_minus(s, sizes[i], cfx_v(1)), cfx_v(w.stride[i - 2]));
            const cfx_var full = cfxi_import_plus(s, steps, cfx_v(cfxi_import_reach(&w, i - 2)));
            sizes[i] = cfxi_import_minus(s, full, cfxi_import_plus(s, w.before[i - 2],
                                                                   w.after[i - 2]));
        }
        all = cfxi_import_times(s, all, sizes[i]);
    }
    const cfx_var zeros = cfx_zeros(s, cfxi_import_tuple(s, &all, 1),
                                    .dtype = cfx_var_dtype(cfxi_import_dtype(c, 0)));
    const cfx_var flat = cfx_scatter(s, zeros, 0, cfx_flatten(s, cfxi_import_in(c, 1)),
                                     cfx_flatten(s, cfxi_import_in(c, 0)));
    const cfx_var y = cfx_reshape(s, flat, cfxi_import_tuple(s, sizes, (size_t)w.n + 2));
    if (!cfxi_import_has(c, 2))
        return y;
    if (cfxi_import_each_int(c, 2, asked, w.n + 2) != w.n + 2)
        return cfxi_import_fail(c, CFX_E_VALUE, "output_shape must have %d sizes", w.n + 2);
    for (int i = 0; i < w.n + 2; i++)
        asked[i] = cfxi_import_minus(s, asked[i], sizes[i]);
    return cfxi_import_pad_ends(s, y, none, asked, w.n + 2, cfx_v(0));
}

/* ---- regions ------------------------------------------------------------------------------- */

cfx_var cfxi_import_max_roi_pool(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    size_t n;
    const int64_t *sizes = cfxi_import_ints(c, "pooled_shape", &n);
    if (n != 2)
        return cfxi_import_fail(c, CFX_E_VALUE, "pooled_shape must have 2 numbers");
    return cfx_roi_max_pool(s, cfxi_import_in(c, 0), cfxi_import_in(c, 1),
                            cfx_var_ints(s, sizes, 2),
                            .spatial_scale = cfx_v(cfxi_import_float(c, "spatial_scale", 1)));
}

cfx_var cfxi_import_roi_align(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const char *usual = c->opset < 16 ? "output_half_pixel" : "half_pixel";
    const bool aligned = cfxi_import_is(c, "coordinate_transformation_mode", usual, "half_pixel");
    const bool largest = cfxi_import_is(c, "mode", "avg", "max");
    return cfx_roi_align(
        s, cfxi_import_in(c, 0), cfxi_import_in(c, 1), cfxi_import_in(c, 2),
        cfx_ints(s, cfxi_import_int(c, "output_height", 1), cfxi_import_int(c, "output_width", 1)),
        .spatial_scale = cfx_v(cfxi_import_float(c, "spatial_scale", 1)),
        .sampling_ratio = cfx_v(cfxi_import_int(c, "sampling_ratio", 0)),
        .aligned = cfx_v(aligned), .mode = cfx_v(largest ? "max" : "avg"));
}
