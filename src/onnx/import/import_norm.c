/* import_norm.c - normalization: by batch, instance, layer, group, neighbours, norm. */
#include "rules_impl.h"

/* The sizes of dimensions `axis` and later of input 0. */
static cfx_var sizes_from(cfxi_import_call *c, int axis, int rank)
{
    cfx_var sizes[CFX_MAX_DIMS];
    for (int i = axis; i < rank; i++)
        sizes[i - axis] = cfxi_import_size(c, 0, i);
    return cfxi_import_tuple(c->scope, sizes, (size_t)(rank - axis));
}

/* Dimensions from `axis` to the last. */
static cfx_var dims_from(cfx_scope *s, int axis, int rank)
{
    int64_t dims[CFX_MAX_DIMS];
    for (int i = axis; i < rank; i++)
        dims[i - axis] = i;
    return cfx_var_ints(s, dims, (size_t)(rank - axis));
}

static cfx_var epsilon(cfxi_import_call *c) { return cfx_v(cfxi_import_float(c, "epsilon", 1e-5)); }

/* ---- batches ------------------------------------------------------------------------------- */

/* Statistics of this batch, and the running ones. */
static cfx_var train(cfxi_import_call *c, int rank)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var wide = cfxi_import_widened(s, x);
    const double keep = cfxi_import_float(c, "momentum", 0.9);
    int64_t dims[CFX_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (i != 1)
            dims[n++] = i;
    const cfx_var over = cfx_var_ints(s, dims, (size_t)n);
    const cfx_var mean = cfx_mean(s, wide, .dim = over);
    const cfx_var var = cfx_var_dim(s, wide, .dim = over, .unbiased = cfx_v(false));
    const cfx_var now[] = {mean, var};
    for (size_t i = 0; i < 2; i++) {
        const cfx_var old = cfxi_import_in(c, 3 + i);
        const cfx_var next = cfx_add(s, cfx_mul(s, old, keep), cfx_mul(s, now[i], 1 - keep));
        cfxi_import_set(c, 1 + i, cfxi_import_cast_to(s, next, cfxi_import_dtype(c, 3 + i)));
    }
    const cfx_var scale = cfx_mul(s, cfx_rsqrt(s, cfx_add(s, var, epsilon(c))),
                                  cfxi_import_in(c, 1));
    const cfx_var centred = cfx_sub(s, wide, cfxi_import_along(s, mean, 1, rank));
    const cfx_var y = cfx_add(s, cfx_mul(s, centred, cfxi_import_along(s, scale, 1, rank)),
                              cfxi_import_along(s, cfxi_import_in(c, 2), 1, rank));
    return cfxi_import_cast_to(s, y, cfxi_import_dtype(c, 0));
}

cfx_var cfxi_import_batch_normalization(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    const bool training = cfxi_import_int(c, "training_mode", 0) != 0;
    if (!cfxi_import_int(c, "spatial", 1) || (c->opset < 14 && cfxi_import_wants(c, 1)))
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "statistics for each element, or training "
                                "before opset 14");
    if (training)
        return train(c, cfxi_import_need_rank(c, 0));
    const cfx_dtype with = cfxi_import_dtype(c, 3);
    const cfx_var y = cfx_batch_norm(
        s, with == dtype ? cfxi_import_in(c, 0) : cfxi_import_widened(s, cfxi_import_in(c, 0)),
        .weight = cfxi_import_cast_to(s, cfxi_import_in(c, 1), with),
        .bias = cfxi_import_cast_to(s, cfxi_import_in(c, 2), with),
        .running_mean = cfxi_import_fixed(c, 3), .running_var = cfxi_import_fixed(c, 4),
        .training = cfx_v(false), .momentum = cfx_v(0.1), .eps = epsilon(c),
        .cudnn_enabled = cfx_v(false));  /* all of them: torch.batch_norm has no defaults */
    return cfxi_import_cast_to(s, y, dtype);
}

cfx_var cfxi_import_instance_normalization(cfxi_import_call *c)
{
    return cfx_instance_norm(c->scope, cfxi_import_in(c, 0), .weight = cfxi_import_in(c, 1),
                             .bias = cfxi_import_in(c, 2), .running_mean = cfx_var_none(),
                             .running_var = cfx_var_none(), .use_input_stats = cfx_v(true),
                             .momentum = cfx_v(0.1), .eps = epsilon(c),
                             .cudnn_enabled = cfx_v(false));
}

/* ---- layers -------------------------------------------------------------------------------- */

/* Whether input i has exactly the dimensions that are normalized, so that the row takes it. */
static bool fits_layer(cfxi_import_call *c, size_t i, int axis, int rank)
{
    if (!cfxi_import_has(c, i))
        return true;
    if (cfxi_import_rank(c, i) != rank - axis || cfxi_import_dtype(c, i) != cfxi_import_dtype(c, 0))
        return false;
    for (int d = axis; d < rank; d++) {
        const cfx_var a = cfxi_import_size(c, 0, d), b = cfxi_import_size(c, i, d - axis);
        if (b.kind != CFX_VAR_INT || (a.kind == CFX_VAR_INT && a.as.i != b.as.i))
            return false;
    }
    return true;
}

cfx_var cfxi_import_layer_normalization(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = rank < 0 ? -1 : cfxi_import_axis(c, cfxi_import_int(c, "axis", -1), rank);
    if (axis < 0)
        return cfx_var_empty();
    const bool more = cfxi_import_wants(c, 1) || cfxi_import_wants(c, 2);
    if (!more && fits_layer(c, 1, axis, rank) && fits_layer(c, 2, axis, rank))
        return cfx_layer_norm(s, cfxi_import_in(c, 0), sizes_from(c, axis, rank),
                              .weight = cfxi_import_optional(c, 1),
                              .bias = cfxi_import_optional(c, 2), .eps = epsilon(c));
    const cfx_var x = cfxi_import_widened(s, cfxi_import_in(c, 0));
    const cfx_var dims = dims_from(s, axis, rank);
    const cfx_var mean = cfx_mean(s, x, .dim = dims, .keepdim = cfx_v(true));
    const cfx_var var = cfx_var_dim(s, x, .dim = dims, .unbiased = cfx_v(false),
                                    .keepdim = cfx_v(true));
    const cfx_var scale = cfx_rsqrt(s, cfx_add(s, var, epsilon(c)));
    cfx_var y = cfx_mul(s, cfx_sub(s, x, mean), scale);
    y = cfx_mul(s, cfxi_import_cast_to(s, y, cfxi_import_dtype(c, 0)), cfxi_import_in(c, 1));
    if (cfxi_import_has(c, 2))
        y = cfx_add(s, y, cfxi_import_in(c, 2));
    cfxi_import_set(c, 1, mean);
    cfxi_import_set(c, 2, scale);
    return y;
}

cfx_var cfxi_import_rms_normalization(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = rank < 0 ? -1 : cfxi_import_axis(c, cfxi_import_int(c, "axis", -1), rank);
    if (axis < 0)
        return cfx_var_empty();
    if (fits_layer(c, 1, axis, rank))
        return cfx_rms_norm(s, cfxi_import_in(c, 0), sizes_from(c, axis, rank),
                            .weight = cfxi_import_in(c, 1), .eps = epsilon(c));
    const cfx_var y = cfx_rms_norm(s, cfxi_import_in(c, 0), sizes_from(c, axis, rank),
                                   .eps = epsilon(c));
    return cfx_mul(s, y, cfxi_import_in(c, 1));
}

/* Until opset 21 there is one scale for each group. */
static cfx_var group_norm_of(cfxi_import_call *c, bool by_group)
{
    cfx_scope *s = c->scope;
    const int64_t groups = cfxi_import_int(c, "num_groups", 1);
    cfx_var scale = cfxi_import_in(c, 1), bias = cfxi_import_in(c, 2);
    if (groups < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "num_groups must be positive");
    if (by_group) {
        const cfx_var each = cfxi_import_over(s, cfxi_import_size(c, 0, 1), cfx_v(groups));
        scale = cfx_repeat_interleave(s, scale, each);
        bias = cfx_repeat_interleave(s, bias, each);
    }
    return cfx_group_norm(s, cfxi_import_in(c, 0), groups, .weight = scale, .bias = bias,
                          .eps = epsilon(c));
}

cfx_var cfxi_import_group_normalization_by_group(cfxi_import_call *c)
{
    return group_norm_of(c, true);
}

cfx_var cfxi_import_group_normalization(cfxi_import_call *c) { return group_norm_of(c, false); }

/* ---- others -------------------------------------------------------------------------------- */

/* PyTorch's row has the same neighbours where their number is odd. */
cfx_var cfxi_import_lrn(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const int64_t size = cfxi_import_int(c, "size", 1);
    const double alpha = cfxi_import_float(c, "alpha", 1e-4);
    const double beta = cfxi_import_float(c, "beta", 0.75);
    const double bias = cfxi_import_float(c, "bias", 1);
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank < 3 || size < 1 || size > INT32_MAX)
        return cfxi_import_fail(c, CFX_E_VALUE, "size must be positive, and the input have images");
    if (size % 2 == 1)
        return cfx_local_response_norm(s, x, size, .alpha = cfx_v(alpha), .beta = cfx_v(beta),
                                       .k = cfx_v(bias));
    cfx_var before[CFX_MAX_DIMS], after[CFX_MAX_DIMS];
    for (int i = 0; i < rank - 1; i++)
        before[i] = after[i] = cfx_v(0);
    before[0] = cfx_v((size - 1) / 2);
    after[0] = cfx_v(size / 2);
    const cfx_var squares = cfxi_import_pad_ends(s, cfx_square(s, x), before, after, rank - 1,
                                                 cfx_v(0));
    const cfx_var sums = cfx_sum(s, cfx_unfold(s, squares, 1, size, 1), .dim = cfx_ints(s, -1));
    const cfx_var base = cfx_add(s, cfx_mul(s, sums, alpha / (double)size), bias);
    return cfx_div(s, x, cfx_pow(s, base, beta));
}

cfx_var cfxi_import_lp_normalization(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var norm = cfx_linalg_vector_norm(
        s, x, .ord = cfx_v((double)cfxi_import_int(c, "p", 2)),
        .dim = cfx_ints(s, cfxi_import_int(c, "axis", -1)), .keepdim = cfx_v(true));
    return cfx_where(s, cfx_eq(s, norm, 0), cfx_zeros_like(s, x), cfx_div(s, x, norm));
}

cfx_var cfxi_import_mean_variance_normalization(cfxi_import_call *c)
{
    static const int64_t usual[] = {0, 2, 3};
    cfx_scope *s = c->scope;
    size_t n;
    const int64_t *axes = cfxi_import_ints(c, "axes", &n);
    const cfx_var dims = n ? cfx_var_ints(s, axes, n) : cfx_var_ints(s, usual, 3);
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var mean = cfx_mean(s, x, .dim = dims, .keepdim = cfx_v(true));
    const cfx_var std = cfx_std_dim(s, x, .dim = dims, .unbiased = cfx_v(false),
                                    .keepdim = cfx_v(true));
    return cfx_div(s, cfx_sub(s, x, mean), cfx_add(s, std, 1e-9));
}
