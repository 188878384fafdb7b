/* grid_sample.c - images read at any places: grid_sample and affine_grid.
 *
 * Along each axis a place in between is a few neighbours with weights; what lies outside has none,
 * or is brought inside by the padding. */
#include "runtime/spatial.h"

#include <math.h>

typedef enum method { BILINEAR, NEAREST, BICUBIC } method;
typedef enum outside { ZEROS, BORDER, REFLECTION } outside;

/* ---- grid_sample: rule --------------------------------------------------------------------- */

typedef struct arguments {
    const cfx_tensor *x;
    const cfx_tensor *grid;
    size_t n;  /* dimensions of the image */
    int64_t method;
    int64_t outside;
    bool align;
} arguments;

static cfx_status by_name(cfxi_call *c, const char *name, const char *const *names, size_t n,
                          const char *what, int64_t *out)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (int64_t)i;
            return CFX_OK;
        }
    return cfxi_fail(c, CFX_E_VALUE, "nn.functional.grid_sample(): expected %s to be '%s', '%s' or "
                     "'%s', but got: '%.40s'", what, names[0], names[1], names[2], name);
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    static const char *const methods[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    a->x = cfxi_rt_tensor(c, 0);
    a->grid = cfxi_rt_tensor(c, 1);
    a->n = a->x->ndim < 3 ? 0 : a->x->ndim - 2u;
    a->align = !cfxi_rt_is_none(c, 4) && cfxi_rt_bool(c, 4);
    if (c->op == CFX_OPID_grid_sample) {
        CFX_TRY(by_name(c, cfxi_rt_str(c, 2), methods, 3, "mode", &a->method));
        return by_name(c, cfxi_rt_str(c, 3), paddings, 3, "padding_mode", &a->outside);
    }
    CFX_TRY(cfxi_rt_number(c, 2, &a->method));
    CFX_TRY(cfxi_rt_number(c, 3, &a->outside));
    if (a->method < 0 || a->method > BICUBIC || a->outside < 0 || a->outside > REFLECTION)
        return cfxi_fail(c, CFX_E_SHAPE, "invalid interpolation_mode or padding_mode: %lld, %lld",
                         (long long)a->method, (long long)a->outside);
    return CFX_OK;
}

static cfx_status check_grid(cfxi_call *c, const arguments *a)
{
    const cfx_tensor *x = a->x;
    const cfx_tensor *grid = a->grid;
    cfxi_shape_text given = cfxi_rt_shape_of(grid);
    if (x->ndim == 0 || grid->ndim == 0 || !cfxi_rt_same_size(c, x->size[0], grid->size[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "grid_sampler(): expected grid and input to have same "
                         "batch size, but got input with sizes [%s] and grid with sizes [%s]",
                         cfxi_rt_shape_of(x).text, given.text);
    if ((x->ndim != 4 && x->ndim != 5) || x->ndim != grid->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "grid_sampler(): expected 4D or 5D input and grid with "
                         "same number of dimensions, but got input with sizes [%s] and grid with "
                         "sizes [%s]", cfxi_rt_shape_of(x).text, given.text);
    if (!cfxi_rt_same_size(c, grid->size[grid->ndim - 1], (int64_t)a->n))
        return cfxi_fail(c, CFX_E_SHAPE, "grid_sampler(): expected grid to have size %zu in last "
                         "dimension, but got grid with sizes [%s]", a->n, given.text);
    for (size_t d = 2; d < x->ndim; d++)
        if (x->size[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "grid_sampler(): expected input to have non-empty "
                             "spatial dimensions, but input has sizes [%s] with dimension %zu being"
                             " empty", cfxi_rt_shape_of(x).text, d);
    if (a->n == 3 && a->method == BICUBIC)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "grid_sampler(): bicubic interpolation only supports 4D input");
    if (x->dtype != grid->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "expected scalar type %s but found %s",
                         cfx_dtype_name((cfx_dtype)x->dtype),
                         cfx_dtype_name((cfx_dtype)grid->dtype));
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    return CFX_OK;
}

cfx_status cfxi_rule_grid_sample(cfxi_call *c)
{
    arguments a;
    int64_t sizes[2 + CFXI_SPATIAL];
    CFX_TRY(read_arguments(c, &a));
    CFX_TRY(check_grid(c, &a));
    sizes[0] = a.x->size[0];
    sizes[1] = a.x->size[1];
    for (size_t i = 0; i < a.n; i++)
        sizes[2 + i] = a.grid->size[1 + i];
    return cfxi_rt_result(c, 0, (cfx_dtype)a.x->dtype, sizes, a.n + 2);
}

/* ---- grid_sample: computing ---------------------------------------------------------------- */

typedef struct job {
    arguments a;
    bool narrow;               /* float32, else float64 */
    int64_t in[CFXI_SPATIAL];  /* the last n are used */
    int64_t area;              /* elements of a plane of the image */
    int64_t places;            /* of the grid, for an image */
    int64_t channels;
    const void *x;
    const void *grid;
    void *y;
} job;

/* Neighbours along an axis; an index of -1 is outside. */
typedef struct taps {
    int n;
    int64_t index[4];
    double weight[4];
} taps;

static inline double rounded(const job *j, double v) { return j->narrow ? (float)v : v; }

/* From [-1, 1] to places of the image: -1 and 1 are the outer edges of the pixels at the ends, or
 * their middles. */
static double place_of(const job *j, double at, int64_t size)
{
    if (j->a.align)
        return rounded(j, rounded(j, rounded(j, at + 1) / 2) * (double)(size - 1));
    return rounded(j, rounded(j, rounded(j, at + 1) * (double)size - 1) / 2);
}

static double clip(double at, int64_t size)
{
    return at > 0 ? (at < (double)(size - 1) ? at : (double)(size - 1)) : 0;  /* NaN: 0 */
}

static double reflect(const job *j, double at, int64_t size)
{
    double low = j->a.align ? 0 : -0.5;
    double span = j->a.align ? (double)(size - 1) : (double)size;
    if (span == 0 || !isfinite(at))
        return 0;
    double distance = fabs(at - low);
    double rest = fmod(distance, span);
    return fmod(floor(distance / span), 2) == 0 ? rest + low : span - rest + low;
}

static double bring_inside(const job *j, double at, int64_t size)
{
    if (j->a.outside == REFLECTION)
        at = rounded(j, reflect(j, at, size));
    return j->a.outside == ZEROS ? at : clip(at, size);
}

/* A whole number as an index: -1 if there is no such place. */
static int64_t index_of(double at, int64_t size)
{
    return at >= 0 && at < (double)size ? (int64_t)at : -1;
}

static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static taps taps_of(const job *j, double at, int64_t size)
{
    taps t = {0};
    at = place_of(j, at, size);
    if (j->a.method == BICUBIC) {
        double first = floor(at);
        t.n = 4;
        for (int k = 0; k < 4; k++) {
            t.index[k] = index_of(bring_inside(j, first - 1 + k, size), size);
            t.weight[k] = cubic(at - first + 1 - k);
        }
        return t;
    }
    at = bring_inside(j, at, size);
    if (j->a.method == NEAREST) {
        t.n = 1;
        t.index[0] = index_of(nearbyint(at), size);
        t.weight[0] = 1;
        return t;
    }
    double first = floor(at);
    t.n = 2;
    t.index[0] = index_of(first, size);
    t.index[1] = index_of(first + 1, size);
    t.weight[1] = at - first;
    t.weight[0] = 1 - t.weight[1];
    return t;
}

/* The neighbours of a place in the whole image: up to 16 that are there. */
static int neighbours(const job *j, int64_t place, int64_t offset[16], double weight[16])
{
    taps t[CFXI_SPATIAL] = {{1, {0}, {1}}, {1, {0}, {1}}, {1, {0}, {1}}};
    int n = 0;
    for (size_t i = 0; i < j->a.n; i++) {  /* the grid has x first */
        int64_t at = place * (int64_t)j->a.n + (int64_t)i;
        double value = j->narrow ? (double)((const float *)j->grid)[at]
                                 : ((const double *)j->grid)[at];
        t[CFXI_SPATIAL - 1 - i] = taps_of(j, value, j->in[CFXI_SPATIAL - 1 - i]);
    }
    for (int z = 0; z < t[0].n; z++)
        for (int y = 0; y < t[1].n; y++)
            for (int x = 0; x < t[2].n; x++) {
                if (t[0].index[z] < 0 || t[1].index[y] < 0 || t[2].index[x] < 0)
                    continue;
                offset[n] = (t[0].index[z] * j->in[1] + t[1].index[y]) * j->in[2] + t[2].index[x];
                weight[n++] = t[0].weight[z] * t[1].weight[y] * t[2].weight[x];
            }
    return n;
}

static void sample_places(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int64_t offset[16];
    double weight[16];
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / j->places;
        int n = neighbours(j, i, offset, weight);
        for (int64_t c = 0; c < j->channels; c++) {
            int64_t plane = image * j->channels + c;
            int64_t to = plane * j->places + i % j->places;
            double sum = 0;
            if (j->narrow) {
                const float *x = (const float *)j->x + plane * j->area;
                for (int k = 0; k < n; k++)
                    sum += weight[k] * (double)x[offset[k]];
                ((float *)j->y)[to] = (float)sum;
            } else {
                const double *x = (const double *)j->x + plane * j->area;
                for (int k = 0; k < n; k++)
                    sum += weight[k] * x[offset[k]];
                ((double *)j->y)[to] = sum;
            }
        }
    }
}

static void sample(cfxi_call *c, job *j, const cfx_tensor *x, const cfx_tensor *grid, cfx_tensor *y)
{
    j->x = x->data;
    j->grid = grid->data;
    j->y = y->data;
    j->channels = x->size[1];
    j->area = j->places = 1;
    for (size_t i = 0; i < CFXI_SPATIAL; i++)
        j->in[i] = 1;
    for (size_t i = 0; i < j->a.n; i++) {
        j->in[CFXI_SPATIAL - j->a.n + i] = x->size[2 + i];
        j->area *= x->size[2 + i];
        j->places *= grid->size[1 + i];
    }
    cfxi_rt_parallel(c->rt, x->size[0] * j->places, 1 + 4096 / (j->channels + 1), sample_places, j);
}

static cfx_status run_sample(cfxi_call *c)
{
    job j = {0};
    CFX_TRY(read_arguments(c, &j.a));
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)j.a.x->dtype);
    j.narrow = type == CFX_DTYPE_FLOAT32;
    cfx_tensor *x = cfxi_rt_contiguous(c, j.a.x, type);
    cfx_tensor *grid = x ? cfxi_rt_contiguous(c, j.a.grid, type) : NULL;
    cfx_tensor *y = grid ? cfxi_rt_work(c, 0, type, true) : NULL;
    if (y && cfxi_tensor_numel(y) > 0)
        sample(c, &j, x, grid, y);
    cfx_status status = cfxi_rt_work_done(c, 0, y, y ? CFX_OK : c->err->status);
    cfx_tensor_release(grid);
    cfx_tensor_release(x);
    return status;
}

cfx_status cfxi_kernel_grid_sampler(cfxi_call *c) { return run_sample(c); }
cfx_status cfxi_kernel_grid_sample(cfxi_call *c) { return run_sample(c); }

/* ---- affine_grid --------------------------------------------------------------------------- */

cfx_status cfxi_rule_affine_grid(cfxi_call *c)
{
    const cfx_tensor *theta = cfxi_rt_tensor(c, 0);
    int64_t size[CFX_MAX_DIMS];
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, size, &n));
    if (!cfx_dtype_is_float((cfx_dtype)theta->dtype))
        return cfxi_fail(c, CFX_E_VALUE, "Expected theta to have floating point type, but got %s",
                         cfx_dtype_name((cfx_dtype)theta->dtype));
    if (n != 4 && n != 5)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "affine_grid only supports 4D and 5D sizes, for 2D "
                         "and 3D affine transforms, respectively. Got size [%s].",
                         cfxi_rt_shape_ints(size, n, ", ").text);
    int64_t dims = (int64_t)n - 2;
    if (theta->ndim != 3 || !cfxi_rt_same_size(c, theta->size[1], dims) ||
        !cfxi_rt_same_size(c, theta->size[2], dims + 1))
        return cfxi_fail(c, CFX_E_VALUE, "Expected a batch of %lldD affine matrices of shape "
                         "Nx%lldx%lld for size [%s]. Got [%s].", (long long)dims, (long long)dims,
                         (long long)dims + 1, cfxi_rt_shape_ints(size, n, ", ").text,
                         cfxi_rt_shape_of(theta).text);
    for (size_t i = 0; i < n; i++)
        if (size[i] <= 0 && !cfx_dim_is_symbol(size[i]))
            return cfxi_fail(c, CFX_E_VALUE, "Expected non-zero, positive output size. Got [%s]",
                             cfxi_rt_shape_ints(size, n, ", ").text);
    if (!cfxi_rt_same_size(c, theta->size[0], size[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "Expected a batch of %lld matrices, but got %lld",
                         (long long)size[0], (long long)theta->size[0]);
    sizes[0] = size[0];
    memcpy(sizes + 1, size + 2, (size_t)dims * sizeof *sizes);
    sizes[n - 1] = dims;
    return cfxi_rt_result(c, 0, (cfx_dtype)theta->dtype, sizes, n);
}

/* Place i of `size` between -1 and 1: those are the ends, or the outer edges of the ends. */
static double base_place(int64_t i, int64_t size, bool align)
{
    if (align)
        return size > 1 ? -1 + 2 * (double)i / (double)(size - 1) : 0;
    return (2 * (double)i + 1) / (double)size - 1;
}

cfx_status cfxi_kernel_affine_grid(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype type = (cfx_dtype)y->dtype;
    bool align = !cfxi_rt_is_none(c, 2) && cfxi_rt_bool(c, 2);
    size_t n = y->ndim - 2u;
    cfx_tensor *theta = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), CFX_DTYPE_FLOAT64);
    if (!theta)
        return c->err->status;
    char *to = y->data;
    size_t item = cfxi_tensor_itemsize(y);
    for (int64_t i = 0, all = cfxi_tensor_numel(y) / (int64_t)n; i < all; i++) {
        double place[CFXI_SPATIAL];
        int64_t rest = i;
        for (size_t d = 0; d < n; d++) {  /* x first */
            int64_t size = y->size[n - d];
            place[d] = base_place(rest % size, size, align);
            rest /= size;
        }
        const double *m = (const double *)theta->data + (size_t)rest * n * (n + 1);
        for (size_t r = 0; r < n; r++, m += n + 1, to += item) {
            double sum = m[n];
            for (size_t d = 0; d < n; d++)
                sum += m[d] * place[d];
            cfxi_tensor_store_float(type, to, sum);
        }
    }
    cfx_tensor_release(theta);
    return CFX_OK;
}
