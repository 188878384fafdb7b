/* import_resize.c - resizing, sampling, cutting to a size; boxes. */
#include "rules_impl.h"

/* ---- resizing ------------------------------------------------------------------------------ */

/* Upsample, and Resize of opset 10: places begin at the same corner. Scales are input 1, or an
 * attribute before opset 9. */
cfx_var cfxi_import_upsample(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var items[CFX_MAX_DIMS];
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, "scales");
    const bool linear = cfxi_import_is(c, "mode", "nearest", "linear") ||
                        cfxi_import_is(c, "mode", "nearest", "bilinear");
    cfx_var scales;
    if (a && a->floats.n <= CFX_MAX_DIMS) {
        for (size_t i = 0; i < a->floats.n; i++)
            items[i] = cfx_v(a->floats.items[i]);
        scales = cfxi_import_tuple(s, items, a->floats.n);
    } else {
        scales = cfxi_import_floats_of(c, 1);
    }
    return cfx_resize_nd(s, cfxi_import_in(c, 0), .scales = scales,
                         .mode = cfx_v(linear ? "linear" : "nearest"),
                         .transform = cfx_v("asymmetric"), .rounding = cfx_v("floor"));
}

cfx_var cfxi_import_resize(cfxi_import_call *c)
{
    enum { X, REGION, SCALES, SIZES };
    cfx_scope *s = c->scope;
    size_t n;
    const int64_t *axes = cfxi_import_ints(c, "axes", &n);
    const bool by_size = !cfxi_import_is_empty(c, SIZES);
    const bool by_scale = !by_size && !cfxi_import_is_empty(c, SCALES);
    const bool crops = cfxi_import_is(c, "coordinate_transformation_mode", "half_pixel",
                                      "tf_crop_and_resize");
    if (!by_size && !by_scale)
        return cfxi_import_fail(c, CFX_E_VALUE, "either scales or sizes must be given");
    return cfx_resize_nd(
        s, cfxi_import_in(c, X), .size = by_size ? cfxi_import_ints_of(c, SIZES) : cfx_var_empty(),
        .scales = by_scale ? cfxi_import_floats_of(c, SCALES) : cfx_var_empty(),
        .roi = crops && !cfxi_import_is_empty(c, REGION) ? cfxi_import_floats_of(c, REGION)
                                                         : cfx_var_empty(),
        .dims = n ? cfx_var_ints(s, axes, n) : cfx_var_empty(),
        .mode = cfxi_import_str(c, "mode", "nearest"),
        .transform = cfxi_import_str(c, "coordinate_transformation_mode", "half_pixel"),
        .rounding = cfxi_import_str(c, "nearest_mode", "round_prefer_floor"),
        .cubic_a = cfx_v(cfxi_import_float(c, "cubic_coeff_a", -0.75)),
        .exclude_outside = cfx_v(cfxi_import_int(c, "exclude_outside", 0) != 0),
        .antialias = cfx_v(cfxi_import_int(c, "antialias", 0) != 0),
        .extrapolation = cfx_v(cfxi_import_float(c, "extrapolation_value", 0)),
        .policy = cfxi_import_str(c, "keep_aspect_ratio_policy", "stretch"));
}

/* ---- sampling ------------------------------------------------------------------------------ */

cfx_var cfxi_import_grid_sample(cfxi_import_call *c)
{
    const bool cubic = cfxi_import_is(c, "mode", "linear", "bicubic") ||
                       cfxi_import_is(c, "mode", "linear", "cubic");
    const bool nearest = cfxi_import_is(c, "mode", "linear", "nearest");
    return cfx_grid_sample(c->scope, cfxi_import_in(c, 0), cfxi_import_in(c, 1),
                           .mode = cfx_v(cubic ? "bicubic" : nearest ? "nearest" : "bilinear"),
                           .padding_mode = cfxi_import_str(c, "padding_mode", "zeros"),
                           .align_corners = cfx_v(cfxi_import_int(c, "align_corners", 0) != 0));
}

cfx_var cfxi_import_affine_grid(cfxi_import_call *c)
{
    return cfx_affine_grid(c->scope, cfxi_import_in(c, 0), cfxi_import_ints_of(c, 1),
                           .align_corners = cfx_v(cfxi_import_int(c, "align_corners", 0) != 0));
}

/* Cuts off what is too much, or adds zeros, at both ends; the odd element at the end. */
cfx_var cfxi_import_center_crop_pad(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var asked[CFX_MAX_DIMS], before[CFX_MAX_DIMS], after[CFX_MAX_DIMS];
    size_t n;
    const int64_t *axes = cfxi_import_ints(c, "axes", &n);
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank < 0 || cfxi_import_each_int(c, 1, asked, CFX_MAX_DIMS) != (n ? (int)n : rank))
        return cfxi_import_fail(c, CFX_E_VALUE, "the shape must have a size for each axis");
    for (int i = 0; i < rank; i++)
        before[i] = after[i] = cfx_v(0);
    for (int i = 0; i < (n ? (int)n : rank); i++) {
        const int axis = n ? cfxi_import_axis(c, axes[i], rank) : i;
        if (axis < 0)
            return cfx_var_empty();
        const cfx_var size = cfxi_import_size(c, 0, axis);
        const cfx_var more = cfxi_import_minus(s, asked[i], size);
        const cfx_var less = cfxi_import_larger(s, cfxi_import_minus(s, cfx_v(0), more), cfx_v(0));
        const cfx_var cut = cfxi_import_over(s, less, cfx_v(2));
        const cfx_var add = cfxi_import_over(s, cfxi_import_larger(s, more, cfx_v(0)), cfx_v(2));
        before[axis] = cfxi_import_minus(s, add, cut);
        after[axis] = cfxi_import_minus(s, more, before[axis]);
    }
    return cfxi_import_pad_ends(s, cfxi_import_in(c, 0), before, after, rank, cfx_v(0));
}

/* ---- boxes --------------------------------------------------------------------------------- */

cfx_var cfxi_import_non_max_suppression(cfxi_import_call *c)
{
    return cfx_non_max_suppression(
        c->scope, cfxi_import_in(c, 0), cfxi_import_in(c, 1),
        .max_output = cfxi_import_number(c, 2), .iou_threshold = cfxi_import_number(c, 3),
        .score_threshold = cfxi_import_number(c, 4),
        .center = cfx_v(cfxi_import_int(c, "center_point_box", 0) != 0));
}
