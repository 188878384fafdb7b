/* roi.c - regions of images brought to one size: roi_align samples between the elements,
 * roi_max_pool takes the largest of each part.
 *
 * Regions are corners (x1, y1, x2, y2) that `spatial_scale` brings to the image. One region is one
 * piece of work for the threads.
 */
#include "runtime/spatial.h"

#include <math.h>

typedef struct job {
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

cfx_status cfxi_rule_roi_align(cfxi_call *c)
{
    const cfx_tensor *rois = cfxi_rt_tensor(c, ALIGN_ROIS);
    const cfx_tensor *images = cfxi_rt_tensor(c, ALIGN_IMAGES);
    const char *mode = cfxi_rt_str(c, ALIGN_MODE);
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
        return cfxi_fail(c, CFX_E_VALUE, "mode is '%s'; it must be avg or max", mode);
    if (images->ndim != 1 || !cfx_dtype_is_integer((cfx_dtype)images->dtype) ||
        (rois->ndim == 2 && !cfxi_rt_same_size(c, images->size[0], rois->size[0])))
        return cfxi_fail(c, CFX_E_SHAPE, "batch_indices must be integers, one for each region");
    return check(c, cfxi_rt_tensor(c, ALIGN_INPUT), rois, 4, ALIGN_SIZE);
}

/* Four neighbours of a point; all weights are 0 if it is outside. */
typedef struct corners {
    int64_t at[4];
    double weight[4];
} corners;

static corners corners_of(const job *j, double y, double x)
{
    corners p = {{0}, {0}};
    if (!(y >= -1 && y <= (double)j->height && x >= -1 && x <= (double)j->width))
        return p;
    y = y < 0 ? 0 : y > (double)(j->height - 1) ? (double)(j->height - 1) : y;
    x = x < 0 ? 0 : x > (double)(j->width - 1) ? (double)(j->width - 1) : x;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x;
    int64_t y1 = y0 + (y0 < j->height - 1), x1 = x0 + (x0 < j->width - 1);
    double dy = y - (double)y0, dx = x - (double)x0;
    return (corners){{y0 * j->width + x0, y0 * j->width + x1, y1 * j->width + x0,
                      y1 * j->width + x1},
                     {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

/* The points of one part, in the mean or the largest: for every channel of region r. */
typedef struct part {
    double y, x;        /* where it begins */
    double step_y, step_x;
    int64_t rows, columns;
} part;

static double sample_part(const job *j, const part *p, int64_t plane)
{
    double result = 0;
    bool any = false;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t k = 0; k < p->columns; k++) {
            corners at = corners_of(j, p->y + ((double)i + 0.5) * p->step_y,
                                    p->x + ((double)k + 0.5) * p->step_x);
            for (int n = 0; n < 4; n++) {
                double v = at.weight[n] * element(j, plane, at.at[n]);
                result = !j->largest ? result + v : any && result >= v ? result : v;
                any = true;
            }
        }
    int64_t count = p->rows * p->columns;
    return j->largest ? result : result / (double)(count > 1 ? count : 1);
}

static int64_t points_along(const job *j, double length, int64_t parts)
{
    if (j->sampling > 0)
        return j->sampling;
    double n = ceil(length / (double)parts);
    return !(n > 0) ? 0 : n > 4096 ? 4096 : (int64_t)n;
}

static void align_regions(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t r = begin; r < end; r++) {
        const double *roi = j->rois + 4 * r;
        double x = roi[0] * j->scale - j->offset, y = roi[1] * j->scale - j->offset;
        double w = roi[2] * j->scale - j->offset - x, h = roi[3] * j->scale - j->offset - y;
        if (!j->aligned) {
            w = w > 1 ? w : 1;
            h = h > 1 ? h : 1;
        }
        const double bin_h = h / (double)j->out_h, bin_w = w / (double)j->out_w;
        part p = {.rows = points_along(j, h, j->out_h), .columns = points_along(j, w, j->out_w)};
        p.step_y = bin_h / (double)p.rows;
        p.step_x = bin_w / (double)p.columns;
        for (int64_t ch = 0; ch < j->channels; ch++)
            for (int64_t i = 0; i < j->out_h * j->out_w; i++) {
                p.y = y + (double)(i / j->out_w) * bin_h;
                p.x = x + (double)(i % j->out_w) * bin_w;
                store(j, (r * j->channels + ch) * j->out_h * j->out_w + i,
                      sample_part(j, &p, j->images[r] * j->channels + ch));
            }
    }
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
        job j = {.rois = (const double *)rois->data, .images = (const int64_t *)images->data,
                 .scale = cfxi_rt_float(c, ALIGN_SCALE), .sampling = cfxi_rt_int(c, ALIGN_SAMPLING),
                 .offset = aligned ? 0.5 : 0, .aligned = aligned,
                 .largest = strcmp(cfxi_rt_str(c, ALIGN_MODE), "max") == 0};
        set_sizes(&j, x, y);
        cfxi_rt_parallel(c->rt, rois->size[0], 1, align_regions, &j);
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
