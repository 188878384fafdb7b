/* resize.c - interpolate and the upsample rows: arguments, and the weights of each place.
 *
 * Every method works along one axis after the other: a place of the result is a weighted sum of a
 * few places of the input. The nearest place has one, of weight 1, and keeps any type. */
#include "pixels.h"
#include "resize_impl.h"

#include <math.h>

typedef enum method { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, AREA } method;

typedef struct arguments {
    size_t n;
    method method;
    bool align;
    bool smooth;   /* antialias */
    int64_t in[CFXI_SPATIAL];
    int64_t out[CFXI_SPATIAL];
    double scale[CFXI_SPATIAL];  /* as given; 0: not */
} arguments;

/* ---- arguments ----------------------------------------------------------------------------- */

static bool sets_align(method m) { return m == LINEAR || m == CUBIC; }

typedef struct row_kind {
    uint16_t op;
    uint8_t n;
    uint8_t method;
    bool smooth;
} row_kind;

static const row_kind kinds[] = {
    {CFX_OPID_upsample_nearest1d, 1, NEAREST, false},
    {CFX_OPID_upsample_nearest2d, 2, NEAREST, false},
    {CFX_OPID_upsample_nearest3d, 3, NEAREST, false},
    {CFX_OPID_upsample_nearest_exact1d, 1, NEAREST_EXACT, false},
    {CFX_OPID_upsample_nearest_exact2d, 2, NEAREST_EXACT, false},
    {CFX_OPID_upsample_nearest_exact3d, 3, NEAREST_EXACT, false},
    {CFX_OPID_upsample_linear1d, 1, LINEAR, false},
    {CFX_OPID_upsample_bilinear2d, 2, LINEAR, false},
    {CFX_OPID_upsample_trilinear3d, 3, LINEAR, false},
    {CFX_OPID_upsample_bicubic2d, 2, CUBIC, false},
    {CFX_OPID_upsample_bilinear2d_aa, 2, LINEAR, true},
    {CFX_OPID_upsample_bicubic2d_aa, 2, CUBIC, true},
};

/* The number of a size times a scale, rounded down; a symbol times a whole number stays one. */
static cfx_status scaled(cfxi_call *c, int64_t size, double scale, int64_t *out)
{
    *out = CFX_DIM_UNKNOWN;
    if (size == CFX_DIM_UNKNOWN)
        return CFX_OK;
    if (cfx_dim_is_symbol(size)) {
        double inverse = 1 / scale;
        if (scale == floor(scale) && scale < 0x1p31)
            *out = cfx_dim_mul(c->dims, size, (int64_t)scale, c->err);
        else if (inverse == floor(inverse) && inverse < 0x1p31)
            *out = cfx_dim_div(c->dims, size, (int64_t)inverse, c->err);
        else
            *out = cfxi_rt_fresh(c);
        return CFX_OK;
    }
    double product = floor((double)size * scale);
    if (!(fabs(product) < 0x1p62))
        return cfxi_fail(c, CFX_E_SHAPE, "a size does not fit in 64 bits");
    *out = (int64_t)product;
    return CFX_OK;
}

/* Sizes by argument `size_at`, or the scales of argument `scale_at`, which are kept. */
static cfx_status read_sizes(cfxi_call *c, arguments *a, size_t size_at, size_t scale_at)
{
    size_t sizes;
    size_t scales;
    const cfx_datum *size = cfx_datum_items(c->args[size_at], &sizes);
    const cfx_datum *scale = cfx_datum_items(c->args[scale_at], &scales);
    if (cfxi_rt_is_none(c, size_at) == cfxi_rt_is_none(c, scale_at))
        return cfxi_fail(c, CFX_E_VALUE, cfxi_rt_is_none(c, size_at)
                         ? "either size or scale_factor should be defined"
                         : "only one of size or scale_factor should be defined");
    if (sizes + scales != 1 && sizes + scales != a->n)
        return cfxi_fail(c, CFX_E_VALUE, "Input and output must have the same number of spatial "
                         "dimensions, but got input with %zu spatial dimensions and %zu sizes or "
                         "scales", a->n, sizes + scales);
    for (size_t i = 0; i < a->n; i++) {
        size_t d = CFXI_SPATIAL - a->n + i;
        if (sizes) {
            a->out[d] = size[sizes == 1 ? 0 : i].as.i;
        } else {
            a->scale[d] = scale[scales == 1 ? 0 : i].as.f;
            CFX_TRY(scaled(c, a->in[d], a->scale[d], &a->out[d]));
        }
    }
    return CFX_OK;
}

static cfx_status read_image(cfxi_call *c, arguments *a)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim != a->n + 2)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "Got %uD input, but this mode needs %zuD input",
                         x->ndim, a->n + 2);
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        a->in[d] = a->out[d] = 1;
        a->scale[d] = 0;
        if (d + a->n >= CFXI_SPATIAL)
            a->in[d] = x->size[d + a->n - CFXI_SPATIAL + 2];
    }
    return CFX_OK;
}

/* A row of PyTorch's: input, output_size, [align_corners,] scale_factors, and a scale for each
 * dimension, which the overloads without scale_factors have. */
static cfx_status read_row(cfxi_call *c, const row_kind *kind, arguments *a)
{
    a->n = kind->n;
    a->method = (method)kind->method;
    a->smooth = kind->smooth;
    a->align = sets_align(a->method) && cfxi_rt_bool(c, 2);
    size_t at = sets_align(a->method) ? 3 : 2;
    CFX_TRY(read_image(c, a));
    CFX_TRY(read_sizes(c, a, 1, at));
    for (size_t i = 0; i < a->n; i++)
        if (!cfxi_rt_is_none(c, at + 1 + i))
            a->scale[CFXI_SPATIAL - a->n + i] = cfxi_rt_float(c, at + 1 + i);
    return CFX_OK;
}

static cfx_status read_mode(cfxi_call *c, arguments *a)
{
    static const struct { const char *name; uint8_t n, method; } modes[] = {
        {"nearest", 0, NEAREST}, {"nearest-exact", 0, NEAREST_EXACT}, {"linear", 1, LINEAR},
        {"bilinear", 2, LINEAR}, {"trilinear", 3, LINEAR},            {"bicubic", 2, CUBIC},
        {"area", 0, AREA},
    };
    const char *name = cfxi_rt_str(c, 3);
    size_t ndim = cfxi_rt_tensor(c, 0)->ndim;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) != 0 || ndim < 3 || ndim > 5)
            continue;
        a->n = ndim - 2;
        a->method = (method)modes[i].method;
        if (modes[i].n && modes[i].n != a->n)
            return cfxi_fail(c, CFX_E_UNSUPPORTED, "Got %zuD input, but %s mode needs %uD input",
                             ndim, name, modes[i].n + 2u);
        return CFX_OK;
    }
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "Input Error: Only 3D, 4D and 5D input Tensors supported"
                     " (got %zuD) for the modes: nearest | linear | bilinear | bicubic | trilinear "
                     "| area | nearest-exact (got %.20s)", ndim, name);
}

static cfx_status read_interpolate(cfxi_call *c, arguments *a)
{
    CFX_TRY(read_mode(c, a));
    a->align = !cfxi_rt_is_none(c, 4) && cfxi_rt_bool(c, 4);
    a->smooth = cfxi_rt_bool(c, 6);
    if (!sets_align(a->method) && !cfxi_rt_is_none(c, 4))
        return cfxi_fail(c, CFX_E_VALUE, "align_corners option can only be set with the "
                         "interpolating modes: linear | bilinear | bicubic | trilinear");
    if (a->smooth && !(sets_align(a->method) && a->n == 2))
        return cfxi_fail(c, CFX_E_VALUE, "Anti-alias option is restricted to bilinear and bicubic "
                         "modes and requires a 4-D tensor as input");
    CFX_TRY(read_image(c, a));
    CFX_TRY(read_sizes(c, a, 1, 2));
    bool recompute = !cfxi_rt_is_none(c, 5) && cfxi_rt_bool(c, 5);
    if (recompute && cfxi_rt_is_none(c, 2))
        return cfxi_fail(c, CFX_E_VALUE,
                         "recompute_scale_factor is not meaningful with an explicit size.");
    for (size_t d = 0; recompute && d < CFXI_SPATIAL; d++)
        a->scale[d] = 0;
    return CFX_OK;
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    *a = (arguments){0};
    if (c->op == CFX_OPID_interpolate)
        return read_interpolate(c, a);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].op == c->op)
            return read_row(c, &kinds[i], a);
    return cfxi_fail(c, CFX_E_TYPE, "not a resize operator");
}

/* ---- rule ---------------------------------------------------------------------------------- */

static cfx_status check(cfxi_call *c, const arguments *a)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype type = (cfx_dtype)x->dtype;
    bool bytes = type == CFX_DTYPE_UINT8 && a->method != AREA &&
                 !(a->method == LINEAR && a->n != 2);
    if (!cfx_dtype_is_float(type) && !bytes)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    if (x->size[1] == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Non-empty %uD data tensor expected but got a tensor with "
                         "sizes [%s]", x->ndim, cfxi_rt_shape_of(x).text);
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        if (a->in[d] == 0 || (a->out[d] < 1 && !cfx_dim_is_symbol(a->out[d]) &&
                              a->out[d] != CFX_DIM_UNKNOWN) ||
            (a->out[d] == CFX_DIM_UNKNOWN && a->in[d] >= 0 && !c->infer))
            return cfxi_fail(c, CFX_E_SHAPE, "Input and output sizes should be greater than 0, but "
                             "got input (%s) output (%s)",
                             cfxi_rt_shape_ints(a->in, CFXI_SPATIAL, ", ").text,
                             cfxi_rt_shape_ints(a->out, CFXI_SPATIAL, ", ").text);
    return CFX_OK;
}

cfx_status cfxi_rule_resize(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    CFX_TRY(check(c, &a));
    int64_t sizes[2 + CFXI_SPATIAL] = {x->size[0], x->size[1]};
    for (size_t i = 0; i < a.n; i++)
        sizes[2 + i] = a.out[CFXI_SPATIAL - a.n + i];
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, a.n + 2));
    if (!(a.method == AREA && a.n == 3) && cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* ---- weights ------------------------------------------------------------------------------- */

typedef cfxi_resize_axis axis;

/* PyTorch computes places in the type of the elements: what rounding does to them shows. */
static inline double rounded(double v, bool narrow) { return narrow ? (float)v : v; }

/* From place to place of the result, that many of the input. */
static double step_of(const arguments *a, size_t d, bool narrow)
{
    if (a->align)
        return a->out[d] > 1
                   ? rounded((double)(a->in[d] - 1) / (double)(a->out[d] - 1), narrow) : 0;
    double step = a->scale[d] > 0 ? 1 / a->scale[d] : (double)a->in[d] / (double)a->out[d];
    return rounded(step, narrow);
}

static double place_of(const arguments *a, double step, int64_t o, bool narrow)
{
    if (a->align)
        return rounded(step * (double)o, narrow);
    double middle = rounded(step * ((double)o + 0.5), narrow);
    return rounded(middle - 0.5, narrow);
}

/* A place as a whole number, not far outside of n places: scales may be anything. */
static int64_t whole(double at, int64_t n)
{
    return !(at > -4) ? -4 : at > (double)n ? n : (int64_t)at;
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

double cfxi_conv_cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static void interpolation_weights(const arguments *a, size_t d, bool narrow, axis *x)
{
    double step = step_of(a, d, narrow);
    for (int64_t o = 0; o < x->out; o++) {
        double at = place_of(a, step, o, narrow);
        int64_t *index = x->index + o * x->taps;
        double *weight = x->weight + o * x->taps;
        if (a->method == LINEAR) {
            at = at < 0 ? 0 : at;
            int64_t first = clamp(whole(at, x->in), x->in);
            double t = at - (double)first;
            index[0] = first;
            index[1] = first + (first < x->in - 1);
            weight[1] = t < 0 ? 0 : t > 1 ? 1 : t;
            weight[0] = 1 - weight[1];
        } else {
            double first = floor(at);
            for (int k = 0; k < 4; k++) {
                index[k] = clamp(whole(first, x->in + 1) - 1 + k, x->in);
                weight[k] = cfxi_conv_cubic(at - first + 1 - k, -0.75);
            }
        }
    }
}

/* Half the width of the filter, in places of the input. */
static double support_of(const arguments *a, size_t d, bool narrow)
{
    double step = step_of(a, d, narrow);
    double half = a->method == LINEAR ? 1 : 2;
    return step >= 1 ? half * step : half;
}

static void smooth_weights(const arguments *a, size_t d, bool narrow, axis *x)
{
    double step = step_of(a, d, narrow);
    double support = support_of(a, d, narrow);
    double inverse = step >= 1 ? 1 / step : 1;
    for (int64_t o = 0; o < x->out; o++) {
        double center = step * ((double)o + 0.5);
        int64_t lo = whole(center - support + 0.5, x->in);
        int64_t hi = whole(center + support + 0.5, x->in);
        lo = lo < 0 ? 0 : lo;
        double sum = 0;
        for (int64_t k = 0; k < x->taps; k++) {
            double t = ((double)(lo + k) - center + 0.5) * inverse;
            double w = lo + k >= hi ? 0
                       : a->method == CUBIC ? cfxi_conv_cubic(t, -0.5)
                                            : fabs(t) < 1 ? 1 - fabs(t) : 0;
            x->index[o * x->taps + k] = clamp(lo + k, x->in);
            x->weight[o * x->taps + k] = w;
            sum += w;
        }
        for (int64_t k = 0; sum != 0 && k < x->taps; k++)
            x->weight[o * x->taps + k] /= sum;
    }
}

static int64_t taps_of(const arguments *a, size_t d, bool narrow)
{
    if (a->in[d] == a->out[d] && d + a->n < CFXI_SPATIAL)
        return 0;  /* no dimension of the image */
    if (a->smooth)
        return 1 + 2 * whole(ceil(support_of(a, d, narrow)), a->in[d]);
    return a->method == LINEAR ? 2 : 4;
}

/* ---- computing ----------------------------------------------------------------------------- */

typedef struct job {
    cfx_runtime *rt;
    cfx_dtype type;   /* float32, float64 or uint8 */
    axis axes[CFXI_SPATIAL];
    const char *x;
    char *y;
    int64_t largest;  /* elements of a plane between two passes */
    atomic_bool failed;
} job;

/* Along the innermost axis a place is one number. */
#define PASS(type)                                                                                 \
    static void inner_##type(const axis *a, int64_t outer, const type *x, type *y)                 \
    {                                                                                              \
        for (int64_t i = 0; i < outer; i++, x += a->in, y += a->out)                               \
            for (int64_t o = 0; o < a->out; o++) {                                                 \
                const int64_t *index = a->index + o * a->taps;                                     \
                const double *weight = a->weight + o * a->taps;                                    \
                type sum = (type)weight[0] * x[index[0]];                                          \
                for (int64_t k = 1; k < a->taps; k++)                                              \
                    sum += (type)weight[k] == 0 ? 0 : (type)weight[k] * x[index[k]];               \
                y[o] = sum;                                                                        \
            }                                                                                      \
    }                                                                                              \
    static void pass_##type(const axis *a, int64_t outer, int64_t inner, const type *x, type *y)   \
    {                                                                                              \
        if (inner == 1) {                                                                          \
            inner_##type(a, outer, x, y);                                                          \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < outer; i++, x += a->in * inner)                                    \
            for (int64_t o = 0; o < a->out; o++, y += inner) {                                     \
                const int64_t *index = a->index + o * a->taps;                                     \
                const double *weight = a->weight + o * a->taps;                                    \
                for (int64_t j = 0; j < inner; j++)                                                \
                    y[j] = (type)weight[0] * x[index[0] * inner + j];                              \
                for (int64_t k = 1; k < a->taps; k++) {                                            \
                    const type w = (type)weight[k];                                                \
                    const type *from = x + index[k] * inner;                                       \
                    for (int64_t j = 0; j < inner && w != 0; j++)                                  \
                        y[j] += w * from[j];                                                       \
                }                                                                                  \
            }                                                                                      \
    }
PASS(float)
PASS(double)

/* Bytes: weights are integers of 15 bits, and each pass rounds and clips, as PyTorch's do. */
static void pass_bytes(const axis *a, int64_t outer, int64_t inner, const uint8_t *x, uint8_t *y)
{
    for (int64_t i = 0; i < outer; i++, x += a->in * inner)
        for (int64_t o = 0; o < a->out; o++, y += inner)
            for (int64_t j = 0; j < inner; j++) {
                int32_t sum = a->bits ? 1 << (a->bits - 1) : 0;
                for (int64_t k = 0; k < a->taps; k++)
                    sum += (int32_t)a->weight[o * a->taps + k] *
                           x[a->index[o * a->taps + k] * inner + j];
                sum >>= a->bits;
                y[j] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
            }
}

/* Scales may be anything, and weights then nan or huge: such a place has none, so that sums of
 * bytes fit in 32 bits. Weights add up to about 2^bits, and bits are at most 22. */
static void drop_wild_weights(axis *a)
{
    const double most = 1.9 * (1 << 22);
    for (int64_t o = 0; o < a->out; o++) {
        double sum = 0;
        for (int64_t k = 0; k < a->taps; k++)
            sum += fabs(a->weight[o * a->taps + k]);
        for (int64_t k = 0; k < a->taps && !(sum < most); k++)
            a->weight[o * a->taps + k] = 0;
    }
}

/* As many bits as let the largest weight stay below 2^15. */
static void round_weights(axis *a)
{
    int64_t n = a->out * a->taps;
    double largest = 0;
    for (int64_t i = 1; i < n; i++)  /* at the edges several fall on one place */
        if (i % a->taps != 0 && a->index[i] == a->index[i - 1]) {
            a->weight[i] += a->weight[i - 1];
            a->weight[i - 1] = 0;
        }
    for (int64_t i = 0; i < n; i++)
        largest = a->weight[i] > largest ? a->weight[i] : largest;
    for (a->bits = 0; a->bits < 22; a->bits++)
        if (0.5 + largest * (double)(1 << (a->bits + 1)) >= 1 << 15)
            break;
    for (int64_t i = 0; i < n; i++)
        a->weight[i] = round(a->weight[i] * (double)(1 << a->bits));
    drop_wild_weights(a);
}

void cfxi_conv_resize_pass(cfx_dtype type, const cfxi_resize_axis *a, int64_t outer, int64_t inner,
                           const void *x, void *y)
{
    if (type == CFX_DTYPE_FLOAT32)
        pass_float(a, outer, inner, x, y);
    else if (type == CFX_DTYPE_FLOAT64)
        pass_double(a, outer, inner, x, y);
    else
        pass_bytes(a, outer, inner, x, y);
}

/* The width first, then the height and depth; `temp` holds two planes. */
static void resize_plane(const job *j, const char *x, char *y, char *temp)
{
    size_t item = cfx_dtype_size(j->type);
    int64_t size[CFXI_SPATIAL] = {j->axes[0].in, j->axes[1].in, j->axes[2].in};
    size_t last = j->axes[0].taps ? 0 : j->axes[1].taps ? 1 : 2;
    for (size_t d = CFXI_SPATIAL; d-- > last;) {
        int64_t outer = 1;
        int64_t inner = 1;
        for (size_t i = 0; i < CFXI_SPATIAL; i++) {
            outer *= i < d ? size[i] : 1;
            inner *= i > d ? size[i] : 1;
        }
        char *to = d == last ? y : temp + (d % 2) * (size_t)j->largest * item;
        cfxi_conv_resize_pass(j->type, &j->axes[d], outer, inner, x, to);
        size[d] = j->axes[d].out;
        x = to;
    }
}

static void resize_planes(void *ctx, int64_t begin, int64_t end)
{
    job *j = ctx;
    size_t item = cfx_dtype_size(j->type);
    size_t in = item;
    size_t out = item;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        in *= (size_t)j->axes[d].in;
        out *= (size_t)j->axes[d].out;
    }
    char *temp = cfxi_rt_scratch(j->rt, 2 * (size_t)j->largest * item);
    if (!temp)
        atomic_store(&j->failed, true);
    for (int64_t i = begin; temp && i < end; i++)
        resize_plane(j, j->x + (size_t)i * in, j->y + (size_t)i * out, temp);
    cfxi_rt_scratch_free(j->rt, temp);
}

/* The axes' weights, in scratch memory that is returned; NULL if it is out. */
static void *set_axes(cfxi_call *c, const arguments *a, job *j)
{
    bool narrow = j->type == CFX_DTYPE_FLOAT32;
    size_t total = 8;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        size_t bytes;
        j->axes[d] = (axis){.in = a->in[d], .out = a->out[d], .taps = taps_of(a, d, narrow)};
        if (!cfxi_base_mul_size((size_t)a->out[d] * 16, (size_t)j->axes[d].taps, total, &bytes))
            return NULL;
        total = bytes;
    }
    char *room = cfxi_rt_scratch(c->rt, total);
    char *next = room;
    for (size_t d = 0; room && d < CFXI_SPATIAL; d++) {
        axis *x = &j->axes[d];
        x->index = (int64_t *)next;
        x->weight = (double *)next + x->out * x->taps;
        next += x->out * x->taps * 16;
        if (x->taps && a->smooth)
            smooth_weights(a, d, narrow, x);
        else if (x->taps)
            interpolation_weights(a, d, narrow, x);
        if (j->type == CFX_DTYPE_UINT8)
            round_weights(x);
    }
    return room;
}

static cfx_status resize(cfxi_call *c, const arguments *a, const cfx_tensor *x, cfx_tensor *y)
{
    job j = {.rt = c->rt, .type = (cfx_dtype)x->dtype, .x = x->data, .y = y->data};
    int64_t wide = a->in[0] * a->in[1] * a->out[2];
    int64_t high = a->in[0] * a->out[1] * a->out[2];
    j.largest = wide > high ? wide : high;
    void *room = set_axes(c, a, &j);
    if (!room)
        return cfxi_base_nomem(c->err);
    if (cfxi_conv_resizes_pixels(c->rt, j.axes, x, y))
        cfxi_conv_resize_pixels(c->rt, j.axes, x, y);
    else
        cfxi_rt_parallel(c->rt, x->size[0] * x->size[1], 1 + 8192 / (j.largest + 1), resize_planes,
                         &j);
    cfxi_rt_scratch_free(c->rt, room);
    return atomic_load(&j.failed) ? cfxi_base_nomem(c->err) : CFX_OK;
}

static cfx_status interpolate(cfxi_call *c, const arguments *a)
{
    cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    if (type != CFX_DTYPE_UINT8)
        type = cfxi_rt_compute_dtype(type);
    const cfx_tensor *given = cfxi_rt_tensor(c, 0);
    const cfx_tensor *result = cfxi_rt_result_at(c, 0);
    const bool pixels = !c->rt->reference && a->n > 1 && !a->smooth &&
                        cfxi_conv_has_pixels(given) && cfxi_conv_has_pixels(result);
    cfx_tensor *x = pixels ? cfxi_rt_typed(c, given, type) : cfxi_rt_contiguous(c, given, type);
    cfx_tensor *y = x ? cfxi_rt_work(c, 0, type, !pixels) : NULL;
    cfx_status status = y ? resize(c, a, x, y) : c->err->status;
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(x);
    return status;
}

/* In float, whatever the elements are. */
static int64_t nearest(const arguments *a, size_t d, int64_t o)
{
    float step = a->scale[d] > 0 ? (float)(1 / a->scale[d]) : (float)a->in[d] / (float)a->out[d];
    float at = a->method == NEAREST ? (float)o * step : ((float)o + 0.5f) * step;
    if (a->method == NEAREST && a->out[d] == a->in[d])
        return o;
    if (a->method == NEAREST && a->out[d] == 2 * a->in[d])
        return o / 2;
    return clamp(whole(floorf(at), a->in[d]), a->in[d]);
}

static cfx_status take_nearest(cfxi_call *c, const arguments *a)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t *map[CFX_MAX_DIMS];
    int64_t *room = cfxi_rt_places_new(c, map);
    if (!room)
        return cfxi_base_nomem(c->err);
    for (size_t d = 0; d < y->ndim; d++)
        for (int64_t o = 0; o < y->size[d]; o++)
            map[d][o] = d < 2 ? o : nearest(a, d - 2 + CFXI_SPATIAL - a->n, o);
    cfxi_rt_places_take(c->rt, y, cfxi_rt_tensor(c, 0), map, NULL);
    cfxi_rt_scratch_free(c->rt, room);
    return CFX_OK;
}

/* By area: the mean of what falls into a place, as adaptive pooling has it. */
static cfx_status pool_area(cfxi_call *c, const arguments *a)
{
    static const cfx_operator pools[] = {CFX_OPID_adaptive_avg_pool1d, CFX_OPID_adaptive_avg_pool2d,
                                         CFX_OPID_adaptive_avg_pool3d};
    cfx_datum sizes[CFXI_SPATIAL];
    for (size_t i = 0; i < a->n; i++)
        sizes[i] = cfx_datum_int(a->out[CFXI_SPATIAL - a->n + i]);
    cfx_datum args[2] = {c->args[0], cfx_datum_seq(CFX_DATUM_LIST, sizes, a->n, c->rt->allocator,
                                                   c->err)};
    if (args[1].kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfx_tensor *pooled = cfxi_rt_sub_tensor(c, pools[a->n - 1], args, 2);
    cfx_datum_release(args[1]);
    cfx_status status = pooled ? cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), pooled, c->err)
                               : c->err->status;
    cfx_tensor_release(pooled);
    return status;
}

static cfx_status run(cfxi_call *c)
{
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    if (a.method == AREA)
        return pool_area(c, &a);
    return a.method == NEAREST || a.method == NEAREST_EXACT ? take_nearest(c, &a)
                                                            : interpolate(c, &a);
}

#define RESIZE(id) cfx_status cfxi_kernel_##id(cfxi_call *c) { return run(c); }
RESIZE(interpolate)
RESIZE(upsample_nearest1d)
RESIZE(upsample_nearest2d)
RESIZE(upsample_nearest3d)
RESIZE(upsample_nearest_exact1d)
RESIZE(upsample_nearest_exact2d)
RESIZE(upsample_nearest_exact3d)
RESIZE(upsample_linear1d)
RESIZE(upsample_bilinear2d)
RESIZE(upsample_bicubic2d)
RESIZE(upsample_trilinear3d)
RESIZE(upsample_bilinear2d_aa)
RESIZE(upsample_bicubic2d_aa)
