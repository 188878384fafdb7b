/* resize_nd.c - resizing along any dimensions, as ONNX defines it: how places of the result lie on
 * the input, how the nearest is chosen, what is outside.
 *
 * One dimension is resized after the other, by weights, as in resize.c. The nearest place keeps any
 * type; the others compute integers in float64.
 */
#include "resize_impl.h"

#include <math.h>

enum { INPUT, SIZE, SCALES, ROI, DIMS, MODE, TRANSFORM, ROUNDING, CUBIC_A, EXCLUDE_OUTSIDE,
       ANTIALIAS, EXTRAPOLATION, POLICY };

typedef enum method { NEAREST, LINEAR, CUBIC } method;
static const char *const methods[] = {"nearest", "linear", "cubic", NULL};

typedef enum transform {
    HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN, TF_CROP_AND_RESIZE
} transform;
static const char *const transforms[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};

typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                        NULL};

enum { STRETCH, NOT_LARGER, NOT_SMALLER };
static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};

/* One dimension that is resized. */
typedef struct dimension {
    size_t dim;
    int64_t in;
    int64_t out;
    double scale;        /* 0: not known */
    double begin, end;   /* of the region, as parts of the input */
} dimension;

typedef struct arguments {
    method method;
    transform transform;
    rounding rounding;
    double cubic_a;
    bool exclude_outside;
    bool smooth;
    bool wide;  /* elements are float64 */
    size_t n;
    dimension dims[CFX_MAX_DIMS];
} arguments;

/* ---- arguments ----------------------------------------------------------------------------- */

static cfx_status read_word(cfxi_call *c, size_t i, const char *name, const char *const *words,
                            int *out)
{
    const char *word = cfxi_rt_str(c, i);
    for (*out = 0; words[*out]; (*out)++)
        if (strcmp(words[*out], word) == 0)
            return CFX_OK;
    return cfxi_fail(c, CFX_E_VALUE, "'%s' is not a %s", word, name);
}

static cfx_status read_dims(cfxi_call *c, arguments *a)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    int64_t dims[CFX_MAX_DIMS];
    bool seen[CFX_MAX_DIMS] = {false};
    CFX_TRY(cfxi_rt_ints(c, DIMS, dims, &a->n));
    bool all = cfxi_rt_is_none(c, DIMS);
    a->n = all ? x->ndim : a->n;
    for (size_t i = 0; i < a->n; i++) {
        size_t d = i;
        if (!all)
            CFX_TRY(cfxi_rt_dim(c, dims[i], x->ndim, &d));
        if (seen[d])
            return cfxi_fail(c, CFX_E_VALUE, "dimension %zu is resized twice", d);
        seen[d] = true;
        a->dims[i] = (dimension){.dim = d, .in = x->size[d], .out = CFX_DIM_UNKNOWN, .end = 1};
    }
    return CFX_OK;
}

/* The items of a list of numbers, one for each dimension that is resized. */
static cfx_status read_list(cfxi_call *c, size_t i, const char *name, size_t n,
                            const cfx_datum **items)
{
    size_t have;
    *items = cfxi_rt_is_none(c, i) ? NULL : cfxi_rt_list(c, i, &have);
    if (*items && have != n)
        return cfxi_fail(c, CFX_E_VALUE, "'%s' has %zu numbers; it must have %zu", name, have, n);
    return CFX_OK;
}

/* The scale that all dimensions have together, so that none is larger (smaller) than its size. */
static cfx_status keep_ratio(cfxi_call *c, arguments *a, bool smallest, const cfx_datum *size)
{
    double scale = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->dims[i].in < 0 || size[i].symbolic || cfx_dim_is_symbol(size[i].as.i))
            return CFX_OK;
        if (a->dims[i].in == 0 || size[i].as.i < 0)
            return cfxi_fail(c, CFX_E_VALUE, "dimension %zu of size %lld cannot get size %lld",
                             a->dims[i].dim, (long long)a->dims[i].in, (long long)size[i].as.i);
        double own = (double)size[i].as.i / (double)a->dims[i].in;
        if (i == 0 || (smallest ? own < scale : own > scale))
            scale = own;
    }
    for (size_t i = 0; i < a->n; i++) {
        double out = floor(scale * (double)a->dims[i].in + 0.5);
        if (!(out < 0x1p62))
            return cfxi_fail(c, CFX_E_VALUE, "a size does not fit in 64 bits");
        a->dims[i].scale = scale;
        a->dims[i].out = (int64_t)out;
    }
    return CFX_OK;
}

static cfx_status scaled(cfxi_call *c, dimension *d)
{
    /* Scales of files are float32, and so is the product: 6 times 7/6 is 7. */
    double product = (double)floorf((float)d->in * (float)d->scale);
    if (cfx_dim_is_symbol(d->in) && d->scale == floor(d->scale) && d->scale < 0x1p31) {
        d->out = cfx_dim_mul(c->dims, d->in, (int64_t)d->scale, c->err);
        return c->err->status;
    }
    if (d->in < 0)
        return CFX_OK;
    if (!(product >= 0 && product < 0x1p62))
        return cfxi_fail(c, CFX_E_VALUE, "a scale of %g is not positive, or too large", d->scale);
    d->out = (int64_t)product;
    return CFX_OK;
}

static cfx_status read_sizes(cfxi_call *c, arguments *a)
{
    const cfx_datum *size, *scale, *roi;
    int keeps;
    CFX_TRY(read_word(c, POLICY, "policy", policies, &keeps));
    CFX_TRY(read_list(c, SIZE, "size", a->n, &size));
    CFX_TRY(read_list(c, SCALES, "scales", a->n, &scale));
    CFX_TRY(read_list(c, ROI, "roi", 2 * a->n, &roi));
    if (!size == !scale && a->n > 0)
        return cfxi_fail(c, CFX_E_VALUE, "give either 'size' or 'scales'");
    for (size_t i = 0; i < a->n; i++) {
        dimension *d = &a->dims[i];
        if (roi) {
            d->begin = roi[i].as.f;
            d->end = roi[a->n + i].as.f;
        }
        if (scale && !scale[i].symbolic) {
            d->scale = scale[i].as.f;
            CFX_TRY(scaled(c, d));
        } else if (size && keeps == STRETCH) {
            d->out = size[i].as.i;
            if (d->in > 0 && d->out >= 0)
                d->scale = (double)d->out / (double)d->in;
        }
    }
    if (size && keeps != STRETCH)
        return keep_ratio(c, a, keeps == NOT_LARGER, size);
    return CFX_OK;
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    int how, lies, rounds;
    *a = (arguments){0};
    CFX_TRY(read_word(c, MODE, "mode", methods, &how));
    CFX_TRY(read_word(c, TRANSFORM, "coordinate transformation", transforms, &lies));
    CFX_TRY(read_word(c, ROUNDING, "way to round", roundings, &rounds));
    a->method = (method)how;
    a->transform = (transform)lies;
    a->rounding = (rounding)rounds;
    a->cubic_a = cfxi_rt_float(c, CUBIC_A);
    a->exclude_outside = cfxi_rt_bool(c, EXCLUDE_OUTSIDE);
    a->smooth = cfxi_rt_bool(c, ANTIALIAS) && a->method != NEAREST;
    a->wide = cfxi_rt_tensor(c, INPUT)->dtype == CFX_DTYPE_FLOAT64;
    CFX_TRY(read_dims(c, a));
    return read_sizes(c, a);
}

cfx_status cfxi_rule_resize_nd(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    int64_t sizes[CFX_MAX_DIMS];
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    for (size_t i = 0; i < a.n; i++) {
        const dimension *d = &a.dims[i];
        bool known = d->out != CFX_DIM_UNKNOWN && !cfx_dim_is_symbol(d->out);
        if (!known && !c->infer)
            return cfxi_fail(c, CFX_E_VALUE, "the size of dimension %zu is not known", d->dim);
        if (known && (d->out < 0 || (d->in == 0 && d->out > 0)))
            return cfxi_fail(c, CFX_E_SHAPE, "dimension %zu of size %lld cannot get size %lld",
                             d->dim, (long long)d->in, (long long)d->out);
        if (known && !(d->scale > 0) && d->out > 0 && d->in > 0)
            return cfxi_fail(c, CFX_E_VALUE, "scales must be positive");
        sizes[d->dim] = d->out == CFX_DIM_UNKNOWN ? cfxi_rt_fresh(c) : d->out;
    }
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, x->ndim);
}

/* ---- places -------------------------------------------------------------------------------- */

/* Where place o of the result lies on the input: computed in the type of the elements, as others
 * do it. What rounding does to a place shows where it lies between two. */
#define PLACE(type)                                                                                \
    static type place_##type(transform t, const dimension *d, int64_t o)                           \
    {                                                                                              \
        const type at = (type)o, scale = (type)d->scale, in = (type)d->in;                         \
        const type out = scale * in;  /* before it was rounded */                                  \
        const type half = (type)0.5, middle = (at + half) / scale;                                 \
        const type begin = (type)d->begin, end = (type)d->end;                                     \
        switch (t) {                                                                               \
        case HALF_PIXEL: return middle - half;                                                     \
        case HALF_PIXEL_SYMMETRIC: return in / 2 * (1 - (type)d->out / out) + middle - half;       \
        case PYTORCH_HALF_PIXEL: return d->out > 1 ? middle - half : 0;                            \
        case ALIGN_CORNERS: return out == 1 || d->out == 1 ? 0 : at * (in - 1) / (out - 1);        \
        case ASYMMETRIC: return at / scale;                                                        \
        case TF_HALF_PIXEL_FOR_NN: return middle;                                                  \
        case TF_CROP_AND_RESIZE:                                                                   \
            if (d->out == 1)                                                                       \
                return half * (begin + end) * (in - 1);                                            \
            return begin * (in - 1) + at * (end - begin) * (in - 1) / (type)(d->out - 1);          \
        }                                                                                          \
        return 0;                                                                                  \
    }
PLACE(float)
PLACE(double)

static double place_of(const arguments *a, const dimension *d, int64_t o)
{
    return a->wide ? place_double(a->transform, d, o) : (double)place_float(a->transform, d, o);
}

/* Whether a dimension is left as it is. */
static bool stays(const arguments *a, const dimension *d)
{
    return d->in == d->out && d->scale == 1 && a->transform != TF_CROP_AND_RESIZE;
}

static bool is_outside(const arguments *a, const dimension *d, double at)
{
    return a->transform == TF_CROP_AND_RESIZE && !(at >= 0 && at <= (double)(d->in - 1));
}

/* The place itself, within n places; scales and regions may be anything. */
static int64_t within(double at, int64_t n)
{
    return !(at > 0) ? 0 : at > (double)(n - 1) ? n - 1 : (int64_t)at;
}

static int64_t nearest(rounding r, double at, int64_t n)
{
    switch (r) {
    case PREFER_FLOOR: return within(ceil(at - 0.5), n);
    case PREFER_CEIL: return within(floor(at + 0.5), n);
    case FLOOR: return within(floor(at), n);
    case CEIL: return within(ceil(at), n);
    }
    return 0;
}

/* How many places of the input lie under the filter. */
static int64_t taps_of(const arguments *a, const dimension *d)
{
    int64_t half = a->method == LINEAR ? 1 : 2;
    if (a->smooth && d->scale < 1) {
        double reach = ceil((double)half / d->scale);
        double most = (double)(2 * d->in + 4);  /* farther ones are all at the edges */
        half = (int64_t)(reach < most ? reach : most);
    }
    return 2 * half;
}

/* The weights of one place. */
static void weigh(const arguments *a, const dimension *d, double at, cfxi_resize_axis *x, int64_t o)
{
    int64_t *index = x->index + o * x->taps;
    double *weight = x->weight + o * x->taps;
    double first = floor(at) - (at == floor(at)) + 1 - (double)(x->taps / 2);
    double shrink = a->smooth && d->scale < 1 ? d->scale : 1;
    double sum = 0;
    for (int64_t k = 0; k < x->taps; k++) {
        double away = fabs(first + (double)k - at) * shrink;
        double place = first + (double)k;
        weight[k] = a->method == CUBIC ? cfxi_conv_cubic(away, a->cubic_a)
                    : away < 1         ? 1 - away : 0;
        if (a->exclude_outside && !(place >= 0 && place < (double)d->in))
            weight[k] = 0;
        index[k] = within(place, d->in);
        sum += weight[k];
    }
    for (int64_t k = 0; (a->smooth || a->exclude_outside) && sum != 0 && k < x->taps; k++)
        weight[k] /= sum;
}

/* ---- computing ----------------------------------------------------------------------------- */

typedef struct pass {
    cfx_dtype type;
    cfxi_resize_axis axis;
    int64_t inner;
    const char *x;
    char *y;
} pass;

static void run_pass(void *ctx, int64_t begin, int64_t end)
{
    const pass *p = ctx;
    int64_t item = (int64_t)cfx_dtype_size(p->type) * p->inner;
    cfxi_conv_resize_pass(p->type, &p->axis, end - begin, p->inner,
                          p->x + begin * p->axis.in * item, p->y + begin * p->axis.out * item);
}

/* `x` resized along one dimension: a new tensor, or NULL with c->err set. */
static cfx_tensor *resize_one(cfxi_call *c, const arguments *a, const dimension *d,
                              const cfx_tensor *x)
{
    int64_t sizes[CFX_MAX_DIMS];
    int64_t outer = 1;
    size_t bytes;
    pass p = {.type = (cfx_dtype)x->dtype, .inner = 1, .x = x->data,
              .axis = {.in = d->in, .out = d->out, .taps = taps_of(a, d)}};
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    for (size_t i = 0; i < x->ndim; i++)
        *(i < d->dim ? &outer : &p.inner) *= i == d->dim ? 1 : sizes[i];
    sizes[d->dim] = d->out;
    if (!cfxi_base_mul_size((size_t)p.axis.taps * 16, (size_t)d->out, 8, &bytes)) {
        cfxi_base_nomem(c->err);
        return NULL;
    }
    p.axis.index = cfxi_rt_scratch(c->rt, bytes);
    cfx_tensor *y = p.axis.index ? cfx_tensor_new(p.type, sizes, x->ndim, c->rt->allocator, c->err)
                                 : NULL;
    if (!p.axis.index)
        cfxi_base_nomem(c->err);
    if (y) {
        p.axis.weight = (double *)p.axis.index + d->out * p.axis.taps;
        for (int64_t o = 0; o < d->out; o++)
            weigh(a, d, place_of(a, d, o), &p.axis, o);
        p.y = y->data;
        cfxi_rt_parallel(c->rt, outer, 1 + 8192 / (p.inner * d->out + 1), run_pass, &p);
    }
    cfxi_rt_scratch_free(c->rt, p.axis.index);
    return y;
}

static cfx_status interpolate(cfxi_call *c, const arguments *a)
{
    const cfx_tensor *given = cfxi_rt_tensor(c, INPUT);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)given->dtype);
    bool whole = type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_FLOAT64;
    cfx_tensor *x = cfxi_rt_contiguous(c, given, whole ? CFX_DTYPE_FLOAT64 : type);
    for (size_t i = a->n; x && i-- > 0;) {
        if (stays(a, &a->dims[i]))
            continue;
        cfx_tensor *next = resize_one(c, a, &a->dims[i], x);
        cfx_tensor_release(x);
        x = next;
    }
    cfx_status status = x ? cfxi_rt_copy(c->rt, y, x, c->err) : c->err->status;
    cfx_tensor_release(x);
    return status;
}

/* The nearest place of each; -1 outside, if there is an outside. */
static cfx_status take_nearest(cfxi_call *c, const arguments *a, int64_t *const *map)
{
    char outside[16] = {0};
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    double value = cfxi_rt_float(c, EXTRAPOLATION);
    if (cfx_dtype_is_float((cfx_dtype)x->dtype))
        cfxi_tensor_store_float((cfx_dtype)x->dtype, outside, value);
    else
        cfxi_rt_convert(c->rt->isa, (cfx_dtype)x->dtype, outside, CFX_DTYPE_FLOAT64, &value, 1);
    for (size_t i = 0; i < a->n; i++) {
        const dimension *d = &a->dims[i];
        for (int64_t o = 0; !stays(a, d) && o < d->out; o++) {
            double at = place_of(a, d, o);
            map[d->dim][o] = is_outside(a, d, at) ? -1 : nearest(a->rounding, at, d->in);
        }
    }
    cfxi_rt_places_take(c->rt, y, x, map, outside);
    return CFX_OK;
}

/* What lies outside of the region's image gets the value that was asked for. */
static cfx_status mark_outside(cfxi_call *c, const arguments *a, int64_t *const *map)
{
    char outside[16] = {0};
    double value = cfxi_rt_float(c, EXTRAPOLATION);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfxi_rt_convert(c->rt->isa, (cfx_dtype)y->dtype, outside, CFX_DTYPE_FLOAT64, &value, 1);
    for (size_t i = 0; i < a->n; i++)
        for (int64_t o = 0; o < a->dims[i].out; o++)
            if (is_outside(a, &a->dims[i], place_of(a, &a->dims[i], o)))
                map[a->dims[i].dim][o] = -1;
    cfx_tensor *x = cfx_tensor_new((cfx_dtype)y->dtype, y->size, y->ndim, c->rt->allocator, c->err);
    if (!x || cfxi_rt_copy(c->rt, x, y, c->err) != CFX_OK) {
        cfx_tensor_release(x);
        return c->err->status;
    }
    cfxi_rt_places_take(c->rt, y, x, map, outside);
    cfx_tensor_release(x);
    return CFX_OK;
}

cfx_status cfxi_kernel_resize_nd(cfxi_call *c)
{
    int64_t *map[CFX_MAX_DIMS];
    arguments a;
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    CFX_TRY(read_arguments(c, &a));
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    if (a.method != NEAREST && a.transform != TF_CROP_AND_RESIZE)
        return interpolate(c, &a);
    int64_t *room = cfxi_rt_places_new(c, map);
    if (!room)
        return cfxi_base_nomem(c->err);
    for (size_t d = 0; d < y->ndim; d++)
        for (int64_t o = 0; o < y->size[d]; o++)
            map[d][o] = o;
    cfx_status status = a.method == NEAREST ? take_nearest(c, &a, map) : interpolate(c, &a);
    if (status == CFX_OK && a.method != NEAREST)
        status = mark_outside(c, &a, map);
    cfxi_rt_scratch_free(c->rt, room);
    return status;
}
