/* export_resize.c - interpolation and sampling of images. */
#include "export_impl.h"

/* ---- Resize -------------------------------------------------------------------------------- */

typedef struct resizing {
    const char *mode;        /* "nearest", "linear" or "cubic" */
    const char *transform;   /* of coordinates */
    const char *rounding;    /* of the nearest; or NULL */
    bool antialias;
} resizing;

static void set_resize(cfxi_export_call *c, const resizing *r)
{
    SET_TEXT("mode", r->mode);
    SET_TEXT("coordinate_transformation_mode", r->transform);
    if (r->rounding)
        SET_TEXT("nearest_mode", r->rounding);
    if (strcmp(r->mode, "cubic") == 0)
        SET_FLOAT("cubic_coeff_a", r->antialias ? -0.5 : -0.75);
    if (r->antialias)
        SET_INT("antialias", 1);
}

/* To sizes: those of batch and channels stay. */
static cfxi_ev *to_sizes(cfxi_export_call *c, cfxi_ev *const *items, size_t n, const resizing *r)
{
    cfxi_ev *sizes[CFX_MAX_DIMS] = {SIZE(c->args[0], 0), SIZE(c->args[0], 1)};
    for (size_t i = 0; i < n && i + 2 < CFX_MAX_DIMS; i++)
        sizes[i + 2] = items[i];
    cfxi_ev *made = NODE("Resize", ARG(0), NULL, NULL, cfxi_export_shape_of(c->x, sizes, n + 2));
    set_resize(c, r);
    return made;
}

/* By factors: PyTorch computes with the factor that was given. */
static cfxi_ev *by_factors(cfxi_export_call *c, const double *factors, size_t n, const resizing *r)
{
    float scales[CFX_MAX_DIMS] = {1, 1};
    for (size_t i = 0; i < n; i++)
        scales[i + 2] = (float)factors[i];
    cfxi_ev *made = NODE("Resize", ARG(0), NULL,
                         cfxi_export_constant(c->x, CFX_DTYPE_FLOAT32, scales, n + 2, 1));
    set_resize(c, r);
    return made;
}

static resizing resizing_of(const char *mode, bool corners, bool antialias)
{
    resizing r = {.mode = "linear", .antialias = antialias,
                  .transform = corners ? "align_corners" : "pytorch_half_pixel"};
    if (strncmp(mode, "nearest", 7) == 0) {
        const bool exact = strcmp(mode, "nearest-exact") == 0;
        r.mode = "nearest";
        r.transform = exact ? "half_pixel" : "asymmetric";
        r.rounding = exact ? "round_prefer_ceil" : "floor";
    } else if (strcmp(mode, "bicubic") == 0) {
        r.mode = "cubic";
    }
    return r;
}

static size_t factors_of(cfxi_export_call *c, size_t i, double *out, size_t most)
{
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(c->full[i], &n);
    const size_t spatial = (size_t)c->args[0]->rank - 2;
    if (!items) {
        for (n = 0; n < spatial; n++)
            out[n] = cfxi_export_float(c, i);
        return n;
    }
    for (size_t k = 0; k < n && k < most; k++) {
        out[k] = items[k].kind == CFX_DATUM_INT ? (double)items[k].as.i : items[k].as.f;
        if (items[k].symbolic)
            cfxi_export_refuse(c, "a scale factor is computed while the graph runs; give sizes");
    }
    for (; n == 1 && n < spatial; n++)
        out[n] = out[0];
    return n;
}

cfxi_ev *cfxi_export_interpolate(cfxi_export_call *c)
{
    cfxi_ev **items;
    double factors[CFX_MAX_DIMS];
    const resizing r = resizing_of(cfxi_export_str(c, 3), cfxi_export_bool(c, 4),
                                   cfxi_export_bool(c, 6));
    const size_t spatial = (size_t)c->args[0]->rank - 2;
    if (cfxi_export_is(c, 3, "area"))
        return cfxi_export_refuse(c, "the mode 'area' has no counterpart in ONNX; use adaptive "
                                  "average pooling");
    if (cfxi_export_given(c, 1)) {
        cfxi_ev *all[CFX_MAX_DIMS];
        const size_t n = cfxi_export_items(c, 1, &items);
        for (size_t i = 0; i < spatial; i++)
            all[i] = items[n == 1 ? 0 : i];
        return to_sizes(c, all, spatial, &r);
    }
    if (cfxi_export_bool(c, 5))
        return cfxi_export_refuse(c, "recompute_scale_factor is not written; give sizes");
    return by_factors(c, factors, factors_of(c, 2, factors, CFX_MAX_DIMS), &r);
}

static const char *mode_of_row(const cfxi_export_call *c, bool *antialias)
{
    const char *name = cfx_operator_name(c->op);
    *antialias = strstr(name, "_aa") != NULL;
    if (strstr(name, "nearest_exact"))
        return "nearest-exact";
    return strstr(name, "nearest") ? "nearest" : strstr(name, "bicubic") ? "bicubic" : "linear";
}

/* Rows of aten: sizes, or factors, then perhaps a factor for each dimension. */
cfxi_ev *cfxi_export_upsample(cfxi_export_call *c)
{
    cfxi_ev **items;
    double factors[CFX_MAX_DIMS];
    bool antialias;
    const char *mode = mode_of_row(c, &antialias);
    const bool nearest = strncmp(mode, "nearest", 7) == 0;
    const size_t at = nearest ? 2 : 3;
    const resizing r = resizing_of(mode, !nearest && cfxi_export_bool(c, 2), antialias);
    if (cfxi_export_given(c, 1)) {
        const size_t n = cfxi_export_items(c, 1, &items);
        return to_sizes(c, items, n, &r);
    }
    return by_factors(c, factors, factors_of(c, at, factors, CFX_MAX_DIMS), &r);
}

/* ---- sampling ------------------------------------------------------------------------------ */

static cfxi_ev *sampled(cfxi_export_call *c, const char *mode, const char *padding, bool corners)
{
    const bool new_words = c->x->opset >= 20;
    if (c->args[0]->rank != 4 && !new_words)
        return cfxi_export_refuse(c, "grid_sample of volumes needs opset 20; save the model with "
                                  "opset=20 or later");
    cfxi_ev *made = NODE("GridSample", ARG(0), ARG(1));
    if (new_words)
        mode = strcmp(mode, "bilinear") == 0 ? "linear" : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                                                       : mode;
    SET_TEXT("mode", mode);
    SET_TEXT("padding_mode", padding);
    SET_INT("align_corners", corners);
    return made;
}

cfxi_ev *cfxi_export_grid_sample(cfxi_export_call *c)
{
    return sampled(c, cfxi_export_str(c, 2), cfxi_export_str(c, 3), cfxi_export_bool(c, 4));
}

cfxi_ev *cfxi_export_grid_sampler(cfxi_export_call *c)
{
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const int64_t mode = cfxi_export_int(c, 2);
    const int64_t padding = cfxi_export_int(c, 3);
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
        return cfxi_export_refuse(c, "the mode of grid_sampler is not known");
    return sampled(c, modes[mode], paddings[padding], cfxi_export_bool(c, 4));
}

cfxi_ev *cfxi_export_affine_grid_20(cfxi_export_call *c)
{
    cfxi_ev **items;
    const size_t n = cfxi_export_items(c, 1, &items);
    cfxi_ev *made = NODE("AffineGrid", ARG(0), cfxi_export_shape_of(c->x, items, n));
    SET_INT("align_corners", cfxi_export_bool(c, 2));
    return made;
}
