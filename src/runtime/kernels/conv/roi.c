/* roi.c - regions of images brought to one size: roi_align samples between the elements,
 * roi_max_pool takes the largest of each part.
 *
 * Regions are corners (x1, y1, x2, y2) that `spatial_scale` brings to the image. One region is one
 * piece of work for the threads.
 */
#include "runtime/spatial.h"

#include <math.h>

typedef struct job {
    cfx_runtime *rt;
    cfx_dtype type;          /* float32 or float64 */
    const char *x;
    char *y;
    const double *rois;      /* four corners each */
    const int64_t *images;   /* which image a region is of */
    int64_t channels, height, width;
    int64_t out_h, out_w;
    double scale;
    int64_t sampling;        /* points along each side of a part; 0: by its size */
    double offset;           /* of the middle of an element */
    bool aligned;
    bool largest;
    atomic_bool failed;      /* memory was out */
} job;

static double element(const job *j, int64_t plane, int64_t at)
{
    int64_t i = plane * j->height * j->width + at;
    return j->type == CFX_DTYPE_FLOAT32 ? (double)((const float *)j->x)[i]
                                        : ((const double *)j->x)[i];
}

static void store(const job *j, int64_t i, double v)
{
    if (j->type == CFX_DTYPE_FLOAT32)
        ((float *)j->y)[i] = (float)v;
    else
        ((double *)j->y)[i] = v;
}

/* ---- arguments ----------------------------------------------------------------------------- */

static cfx_status check(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *rois, int64_t columns,
                        size_t size_at)
{
    int64_t out[CFXI_SPATIAL];
    CFX_TRY(cfxi_rt_window_ints(c, size_at, 2, 1, NULL, "output_size", out));
    if (x->ndim != 4 || rois->ndim != 2 || !cfxi_rt_same_size(c, rois->size[1], columns))
        return cfxi_fail(c, CFX_E_SHAPE, "images must have 4 dimensions, and regions [n, %lld]",
                         (long long)columns);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype) || rois->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "images and regions must be floats of one type");
    for (size_t i = 1; i < CFXI_SPATIAL; i++)
        if (out[i] < 1 && !cfx_dim_is_symbol(out[i]))
            return cfxi_fail(c, CFX_E_VALUE, "output_size must be positive");
    const int64_t sizes[] = {rois->size[0], x->size[1], out[1], out[2]};
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, 4);
}

static cfx_status check_images(cfxi_call *c, const int64_t *images, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < n; i++)
        if (images[i] < 0 || images[i] >= count)
            return cfxi_fail(c, CFX_E_INDEX, "region %lld is of image %lld; there are %lld",
                             (long long)i, (long long)images[i], (long long)count);
    return CFX_OK;
}

static void set_sizes(job *j, const cfx_tensor *x, const cfx_tensor *y)
{
    j->type = (cfx_dtype)x->dtype;
    j->x = x->data;
    j->y = y->data;
    j->channels = x->size[1];
    j->height = x->size[2];
    j->width = x->size[3];
    j->out_h = y->size[2];
    j->out_w = y->size[3];
}

/* ---- roi_align ----------------------------------------------------------------------------- */

enum { ALIGN_INPUT, ALIGN_ROIS, ALIGN_IMAGES, ALIGN_SIZE, ALIGN_SCALE, ALIGN_SAMPLING,
       ALIGN_ALIGNED, ALIGN_MODE };
enum { MOST_POINTS = 1024 };  /* along one side of a part, so that the work has an end */

cfx_status cfxi_rule_roi_align(cfxi_call *c)
{
    const cfx_tensor *rois = cfxi_rt_tensor(c, ALIGN_ROIS);
    const cfx_tensor *images = cfxi_rt_tensor(c, ALIGN_IMAGES);
    const char *mode = cfxi_rt_str(c, ALIGN_MODE);
    int64_t sampling;
    CFX_TRY(cfxi_rt_number(c, ALIGN_SAMPLING, &sampling));
    if (sampling > MOST_POINTS)
        return cfxi_fail(c, CFX_E_VALUE, "sampling_ratio is %lld; it must be at most %d",
                         (long long)sampling, MOST_POINTS);
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
        return cfxi_fail(c, CFX_E_VALUE, "mode is '%s'; it must be avg or max", mode);
    if (images->ndim != 1 || !cfx_dtype_is_integer((cfx_dtype)images->dtype) ||
        (rois->ndim == 2 && !cfxi_rt_same_size(c, images->size[0], rois->size[0])))
        return cfxi_fail(c, CFX_E_SHAPE, "batch_indices must be integers, one for each region");
    return check(c, cfxi_rt_tensor(c, ALIGN_INPUT), rois, 4, ALIGN_SIZE);
}

/* Points along one side of a region: how far those of one part lie apart. */
typedef struct side {
    double begin, step;
    int64_t parts;   /* of the result */
    int64_t points;  /* of a part */
    int64_t size;    /* of the image */
} side;

static side side_of(const job *j, double begin, double end, int64_t parts, int64_t size)
{
    begin = begin * j->scale - j->offset;
    double length = end * j->scale - j->offset - begin;
    if (!j->aligned)
        length = length > 1 ? length : 1;
    double n = j->sampling > 0 ? (double)j->sampling : ceil(length / (double)parts);
    side s = {.begin = begin, .parts = parts, .size = size};
    s.points = !(n > 0) ? 0 : n > MOST_POINTS ? MOST_POINTS : (int64_t)n;
    s.step = length / (double)parts / (double)(s.points ? s.points : 1);
    return s;
}

/* The two neighbours of a point and their weights; false if it is outside. */
static bool neighbours(const side *s, int64_t part, int64_t point, int64_t at[2], double weight[2])
{
    double x = s->begin + ((double)(part * s->points + point) + 0.5) * s->step;
    if (!(x >= -1 && x <= (double)s->size))
        return false;
    x = x < 0 ? 0 : x > (double)(s->size - 1) ? (double)(s->size - 1) : x;
    at[0] = (int64_t)x;
    at[1] = at[0] + (at[0] < s->size - 1);
    weight[1] = x - (double)at[0];
    weight[0] = 1 - weight[1];
    return true;
}

/* What the points of a part weigh together at each place of the image, from its first to its last:
 * the mean of all points is a sum over rows of sums over columns. */
typedef struct weights {
    double *of;            /* size of the image */
    int64_t first, last;   /* none if first > last */
} weights;

static void add_weights(const side *s, int64_t part, weights *w)
{
    int64_t at[2];
    double weight[2];
    memset(w->of, 0, (size_t)s->size * sizeof *w->of);
    w->first = s->size;
    w->last = -1;
    for (int64_t i = 0; i < s->points; i++) {
        if (!neighbours(s, part, i, at, weight))
            continue;
        w->of[at[0]] += weight[0];
        w->of[at[1]] += weight[1];
        w->first = at[0] < w->first ? at[0] : w->first;
        w->last = at[1] > w->last ? at[1] : w->last;
    }
}

static double mean_of(const job *j, int64_t plane, const weights *rows, const weights *columns,
                      int64_t points)
{
    double sum = 0;
    for (int64_t y = rows->first; y <= rows->last; y++)
        for (int64_t x = columns->first; x <= columns->last; x++)
            sum += rows->of[y] * columns->of[x] * element(j, plane, y * j->width + x);
    return sum / (double)(points > 1 ? points : 1);
}

/* The largest of what the neighbours of the points weigh. */
static double largest_of(const job *j, int64_t plane, const side *v, const side *h, int64_t row,
                         int64_t column)
{
    double result = 0;
    bool any = false;
    int64_t y[2], x[2];
    double wy[2] = {0, 0}, wx[2] = {0, 0};
    for (int64_t i = 0; i < v->points * h->points; i++) {
        bool inside = neighbours(v, row, i / h->points, y, wy) &&
                      neighbours(h, column, i % h->points, x, wx);
        for (int k = 0; k < (inside ? 4 : 1); k++) {
            double value = inside ? wy[k / 2] * wx[k % 2] *
                                    element(j, plane, y[k / 2] * j->width + x[k % 2]) : 0;
            result = any && result >= value ? result : value;
            any = true;
        }
    }
    return result;
}

static void align_region(const job *j, int64_t r, weights *rows, weights *columns)
{
    const double *roi = j->rois + 4 * r;
    const side h = side_of(j, roi[0], roi[2], j->out_w, j->width);
    const side v = side_of(j, roi[1], roi[3], j->out_h, j->height);
    for (int64_t i = 0; i < j->out_h * j->out_w; i++) {
        const int64_t row = i / j->out_w, column = i % j->out_w;
        if (!j->largest && column == 0)
            add_weights(&v, row, rows);
        if (!j->largest)
            add_weights(&h, column, columns);
        for (int64_t ch = 0; ch < j->channels; ch++) {
            const int64_t plane = j->images[r] * j->channels + ch;
            store(j, (r * j->channels + ch) * j->out_h * j->out_w + i,
                  j->largest ? largest_of(j, plane, &v, &h, row, column)
                             : mean_of(j, plane, rows, columns, v.points * h.points));
        }
    }
}

static void align_regions(void *ctx, int64_t begin, int64_t end)
{
    job *j = ctx;
    double *room = cfxi_rt_scratch(j->rt, (size_t)(j->height + j->width) * sizeof *room);
    weights rows = {.of = room}, columns = {.of = room ? room + j->height : NULL};
    if (!room)
        atomic_store(&j->failed, true);
    for (int64_t r = begin; room && r < end; r++)
        align_region(j, r, &rows, &columns);
    cfxi_rt_scratch_free(j->rt, room);
}

cfx_status cfxi_kernel_roi_align(cfxi_call *c)
{
    const cfx_tensor *given = cfxi_rt_tensor(c, ALIGN_INPUT);
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)given->dtype);
    cfx_tensor *x = cfxi_rt_contiguous(c, given, type);
    cfx_tensor *rois = x ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, ALIGN_ROIS), CFX_DTYPE_FLOAT64)
                         : NULL;
    cfx_tensor *images = rois ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, ALIGN_IMAGES),
                                                   CFX_DTYPE_INT64) : NULL;
    cfx_tensor *y = images ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = y ? check_images(c, (const int64_t *)images->data, rois->size[0],
                                         x->size[0])
                          : c->err->status;
    if (status == CFX_OK && cfxi_tensor_numel(y) > 0 && cfxi_tensor_numel(x) > 0) {
        bool aligned = cfxi_rt_bool(c, ALIGN_ALIGNED);
        job j = {.rt = c->rt, .rois = (const double *)rois->data,
                 .images = (const int64_t *)images->data,
                 .scale = cfxi_rt_float(c, ALIGN_SCALE), .sampling = cfxi_rt_int(c, ALIGN_SAMPLING),
                 .offset = aligned ? 0.5 : 0, .aligned = aligned,
                 .largest = strcmp(cfxi_rt_str(c, ALIGN_MODE), "max") == 0};
        set_sizes(&j, x, y);
        cfxi_rt_parallel(c->rt, rois->size[0], 1, align_regions, &j);
        if (atomic_load(&j.failed))
            status = cfxi_base_nomem(c->err);
    }
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(images);
    cfx_tensor_release(rois);
    cfx_tensor_release(x);
    return status;
}

/* ---- roi_max_pool -------------------------------------------------------------------------- */

enum { POOL_INPUT, POOL_ROIS, POOL_SIZE, POOL_SCALE };

cfx_status cfxi_rule_roi_max_pool(cfxi_call *c)
{
    return check(c, cfxi_rt_tensor(c, POOL_INPUT), cfxi_rt_tensor(c, POOL_ROIS), 5, POOL_SIZE);
}

/* A number within [0, most]. */
static int64_t bounded(double v, int64_t most)
{
    return !(v > 0) ? 0 : v > (double)most ? most : (int64_t)v;
}

static double largest_in(const job *j, int64_t plane, int64_t top, int64_t bottom, int64_t left,
                         int64_t right)
{
    if (bottom <= top || right <= left)
        return 0;
    double most = -INFINITY;
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++) {
            double v = element(j, plane, y * j->width + x);
            most = v > most || isnan(v) ? v : most;
        }
    return most;
}

static void pool_regions(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t r = begin; r < end; r++) {
        const double *roi = j->rois + 5 * r + 1;
        double x = round(roi[0] * j->scale), y = round(roi[1] * j->scale);
        double w = round(roi[2] * j->scale) - x + 1, h = round(roi[3] * j->scale) - y + 1;
        double bin_w = (w > 1 ? w : 1) / (double)j->out_w;
        double bin_h = (h > 1 ? h : 1) / (double)j->out_h;
        for (int64_t ch = 0; ch < j->channels; ch++)
            for (int64_t i = 0; i < j->out_h * j->out_w; i++) {
                double row = (double)(i / j->out_w), column = (double)(i % j->out_w);
                store(j, (r * j->channels + ch) * j->out_h * j->out_w + i,
                      largest_in(j, (int64_t)j->rois[5 * r] * j->channels + ch,
                                 bounded(floor(row * bin_h) + y, j->height),
                                 bounded(ceil((row + 1) * bin_h) + y, j->height),
                                 bounded(floor(column * bin_w) + x, j->width),
                                 bounded(ceil((column + 1) * bin_w) + x, j->width)));
            }
    }
}

cfx_status cfxi_kernel_roi_max_pool(cfxi_call *c)
{
    const cfx_tensor *given = cfxi_rt_tensor(c, POOL_INPUT);
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)given->dtype);
    cfx_tensor *x = cfxi_rt_contiguous(c, given, type);
    cfx_tensor *rois = x ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, POOL_ROIS), CFX_DTYPE_FLOAT64)
                         : NULL;
    cfx_tensor *y = rois ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = y ? CFX_OK : c->err->status;
    for (int64_t i = 0; status == CFX_OK && i < rois->size[0]; i++) {
        double image = ((const double *)rois->data)[5 * i];
        if (!(image >= 0 && image < (double)x->size[0]))
            status = cfxi_fail(c, CFX_E_INDEX, "region %lld is of image %g; there are %lld",
                               (long long)i, image, (long long)x->size[0]);
    }
    if (status == CFX_OK && cfxi_tensor_numel(y) > 0) {
        job j = {.rois = (const double *)rois->data, .scale = cfxi_rt_float(c, POOL_SCALE)};
        set_sizes(&j, x, y);
        cfxi_rt_parallel(c->rt, rois->size[0], 1, pool_regions, &j);
    }
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(rois);
    cfx_tensor_release(x);
    return status;
}
