/* deform_conv.c - convolution whose places move: an offset, and a factor if there is a mask, for
 * each element of the window at each place of the result.
 *
 * What the windows see is sampled between the elements and written as columns, which the weights
 * then multiply, image by image and group by group.
 */
#include "runtime/kernels/linalg/product_impl.h"
#include "runtime/spatial.h"

#include <math.h>

enum { INPUT, WEIGHT, OFFSET, BIAS, MASK, STRIDE, PADDING, DILATION, GROUPS, OFFSET_GROUPS };

typedef struct arguments {
    int64_t stride[CFXI_SPATIAL], padding[CFXI_SPATIAL], dilation[CFXI_SPATIAL];
    int64_t groups, offset_groups;
    int64_t kernel[2], in[2], out[2];
} arguments;

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    if (x->ndim != 4 || w->ndim != 4 || cfxi_rt_tensor(c, OFFSET)->ndim != 4)
        return cfxi_fail(c, CFX_E_SHAPE, "images, weight and offset must have 4 dimensions");
    CFX_TRY(cfxi_rt_window_ints(c, STRIDE, 2, 1, NULL, "stride", a->stride));
    CFX_TRY(cfxi_rt_window_ints(c, PADDING, 2, 0, NULL, "padding", a->padding));
    CFX_TRY(cfxi_rt_window_ints(c, DILATION, 2, 1, NULL, "dilation", a->dilation));
    CFX_TRY(cfxi_rt_number(c, GROUPS, &a->groups));
    CFX_TRY(cfxi_rt_number(c, OFFSET_GROUPS, &a->offset_groups));
    if (a->groups < 1 || a->offset_groups < 1 || a->groups > INT32_MAX ||
        a->offset_groups > INT32_MAX)
        return cfxi_fail(c, CFX_E_VALUE, "groups and offset_groups must be positive");
    for (size_t i = 0; i < 2; i++) {
        if (a->stride[i + 1] < 1 || a->dilation[i + 1] < 1 || a->padding[i + 1] < 0)
            return cfxi_fail(c, CFX_E_VALUE, "stride and dilation must be positive, and padding "
                             "not negative");
        a->in[i] = x->size[i + 2];
        a->kernel[i] = w->size[i + 2];
        if (!cfx_dim_is_symbol(a->kernel[i]) && (a->kernel[i] < 1 || a->kernel[i] > INT32_MAX))
            return cfxi_fail(c, CFX_E_SHAPE, "the window has no elements");
        int64_t reach = cfx_dim_mul(c->dims, a->dilation[i + 1],
                                    cfx_dim_sub(c->dims, a->kernel[i], 1, c->err), c->err);
        int64_t room = cfx_dim_sub(c->dims, cfx_dim_add(c->dims, a->in[i], 2 * a->padding[i + 1],
                                                        c->err), reach, c->err);
        int64_t last = cfx_dim_sub(c->dims, room, 1, c->err);
        a->out[i] = cfx_dim_add(c->dims, cfx_dim_div(c->dims, last, a->stride[i + 1], c->err), 1,
                                c->err);
        if (!cfx_dim_is_symbol(last) && last < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "the window is larger than the image");
    }
    return c->err->status;
}

/* Whether a tensor is [images, channels, out_h, out_w] and of the input's type. */
static bool fits(cfxi_call *c, const arguments *a, const cfx_tensor *t, int64_t channels)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    return t->dtype == x->dtype && t->ndim == 4 && cfxi_rt_same_size(c, t->size[0], x->size[0]) &&
           cfxi_rt_same_size(c, t->size[1], channels) &&
           cfxi_rt_same_size(c, t->size[2], a->out[0]) &&
           cfxi_rt_same_size(c, t->size[3], a->out[1]);
}

cfx_status cfxi_rule_deform_conv2d(cfxi_call *c)
{
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    const cfx_tensor *bias = cfxi_rt_tensor(c, BIAS);
    const cfx_tensor *mask = cfxi_rt_tensor(c, MASK);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype) || w->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "images and weight must be floats of one type");
    int64_t channels = cfx_dim_mul(c->dims, w->size[1], a.groups, c->err);
    bool divides = (x->size[1] < 0 || x->size[1] % a.offset_groups == 0) &&
                   (w->size[0] < 0 || w->size[0] % a.groups == 0);
    if (!cfxi_rt_same_size(c, x->size[1], channels) || !divides)
        return cfxi_fail(c, CFX_E_SHAPE, "the channels do not fit the weight and the groups");
    int64_t window = cfx_dim_mul(c->dims, a.kernel[0], a.kernel[1], c->err);
    int64_t places = cfx_dim_mul(c->dims, a.offset_groups, window, c->err);
    if (!fits(c, &a, cfxi_rt_tensor(c, OFFSET), cfx_dim_mul(c->dims, 2, places, c->err)) ||
        (mask && !fits(c, &a, mask, places)))
        return cfxi_fail(c, CFX_E_SHAPE, "offset and mask must have two and one channels for each "
                         "element of the window, and the sizes of the result");
    if (bias && (bias->dtype != x->dtype || bias->ndim != 1 ||
                 !cfxi_rt_same_size(c, bias->size[0], w->size[0])))
        return cfxi_fail(c, CFX_E_SHAPE, "bias must have one element for each channel of the "
                         "result");
    const int64_t sizes[] = {x->size[0], w->size[0], a.out[0], a.out[1]};
    CFX_TRY(c->err->status);
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, 4);
}

/* ---- columns ------------------------------------------------------------------------------- */

typedef struct job {
    const arguments *a;
    cfx_dtype type;      /* float32 or float64 */
    const char *x;       /* one image */
    const char *offset;
    const char *mask;    /* or NULL */
    char *columns;       /* [channels, window, out] */
    int64_t channels;
} job;

static double number(const job *j, const char *from, int64_t i)
{
    return j->type == CFX_DTYPE_FLOAT32 ? (double)((const float *)from)[i]
                                        : ((const double *)from)[i];
}

/* The image between its elements; what is outside is 0. */
static double between(const job *j, int64_t plane, double y, double x)
{
    const int64_t h = j->a->in[0], w = j->a->in[1];
    if (!(y > -1 && y < (double)h && x > -1 && x < (double)w))
        return 0;
    int64_t y0 = (int64_t)floor(y), x0 = (int64_t)floor(x);
    double dy = y - (double)y0, dx = x - (double)x0;
    double sum = 0;
    for (int64_t k = 0; k < 4; k++) {
        int64_t row = y0 + k / 2, column = x0 + k % 2;
        if (row >= 0 && row < h && column >= 0 && column < w)
            sum += (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx) *
                   number(j, j->x, (plane * h + row) * w + column);
    }
    return sum;
}

/* One element of the window in one channel, for all places: a row of the columns. */
static void sample_row(const job *j, int64_t channel, int64_t k)
{
    const arguments *a = j->a;
    const int64_t window = a->kernel[0] * a->kernel[1], out = a->out[0] * a->out[1];
    const int64_t group = channel / (j->channels / a->offset_groups);
    const int64_t at = (group * window + k) * out;
    const int64_t to = (channel * window + k) * out;
    for (int64_t i = 0; i < out; i++) {
        int64_t row = i / a->out[1] * a->stride[1] - a->padding[1] +
                      k / a->kernel[1] * a->dilation[1];
        int64_t column = i % a->out[1] * a->stride[2] - a->padding[2] +
                         k % a->kernel[1] * a->dilation[2];
        double v = between(j, channel, (double)row + number(j, j->offset, 2 * at + i),
                           (double)column + number(j, j->offset, 2 * at + out + i));
        if (j->mask)
            v *= number(j, j->mask, at + i);
        if (j->type == CFX_DTYPE_FLOAT32)
            ((float *)j->columns)[to + i] = (float)v;
        else
            ((double *)j->columns)[to + i] = v;
    }
}

static void sample_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const int64_t window = j->a->kernel[0] * j->a->kernel[1];
    for (int64_t i = begin; i < end; i++)
        sample_row(j, i / window, i % window);
}

/* ---- computing ----------------------------------------------------------------------------- */

enum { NUM_OPERANDS = MASK + 1 };

static cfx_status run_image(cfxi_call *c, job *j, cfx_tensor *const t[NUM_OPERANDS], char *y)
{
    const arguments *a = j->a;
    const int64_t window = a->kernel[0] * a->kernel[1], out = a->out[0] * a->out[1];
    const int64_t rows = t[WEIGHT]->size[0] / a->groups, k = t[WEIGHT]->size[1] * window;
    const size_t item = cfx_dtype_size(j->type);
    cfxi_rt_parallel(c->rt, j->channels * window, 1 + 2048 / (out + 1), sample_rows, j);
    for (int64_t g = 0; g < a->groups; g++) {
        const cfxi_gemm p = {
            .m = rows, .n = out, .k = k, .a = t[WEIGHT]->data + (size_t)(g * rows * k) * item,
            .a_row = k, .a_col = 1, .b = j->columns + (size_t)(g * k * out) * item, .b_row = out,
            .b_col = 1, .c = y + (size_t)(g * rows * out) * item, .c_row = out, .c_col = 1,
            .alpha = 1, .bias_rows = true,
            .bias = t[BIAS] ? t[BIAS]->data + (size_t)(g * rows) * item : NULL};
        CFX_TRY(cfxi_linalg_gemm_run(c->rt, j->type, &p, c->err));
    }
    return CFX_OK;
}

static cfx_status run(cfxi_call *c, const arguments *a, cfx_tensor *const t[NUM_OPERANDS],
                      cfx_tensor *y)
{
    const int64_t window = a->kernel[0] * a->kernel[1], out = a->out[0] * a->out[1];
    job j = {.a = a, .type = (cfx_dtype)y->dtype, .channels = t[INPUT]->size[1]};
    const size_t item = cfx_dtype_size(j.type);
    size_t bytes;
    if (!cfxi_base_mul_size((size_t)(j.channels * window), (size_t)out * item, 8, &bytes) ||
        !(j.columns = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_base_nomem(c->err);
    cfx_status status = CFX_OK;
    for (int64_t i = 0; i < y->size[0] && status == CFX_OK; i++) {
        j.x = t[INPUT]->data + (size_t)(i * j.channels * a->in[0] * a->in[1]) * item;
        j.offset = t[OFFSET]->data + (size_t)(i * t[OFFSET]->size[1] * out) * item;
        j.mask = t[MASK] ? t[MASK]->data + (size_t)(i * t[MASK]->size[1] * out) * item : NULL;
        status = run_image(c, &j, t, y->data + (size_t)(i * y->size[1] * out) * item);
    }
    cfxi_rt_scratch_free(c->rt, j.columns);
    return status;
}

cfx_status cfxi_kernel_deform_conv2d(cfxi_call *c)
{
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype);
    cfx_tensor *t[NUM_OPERANDS] = {NULL};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < NUM_OPERANDS && status == CFX_OK; i++)
        if (cfxi_rt_tensor(c, i) && !(t[i] = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, i), type)))
            status = c->err->status;
    cfx_tensor *y = status == CFX_OK ? cfxi_rt_work(c, 0, type, true) : NULL;
    if (status == CFX_OK && !y)
        status = c->err->status;
    if (status == CFX_OK && cfxi_tensor_numel(y) > 0)
        status = run(c, &a, t, y);
    status = cfxi_rt_work_done(c, 0, y, status);
    for (size_t i = 0; i < NUM_OPERANDS; i++)
        cfx_tensor_release(t[i]);
    return status;
}
