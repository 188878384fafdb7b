/* pooling.c - max, average, adaptive, fractional and power-average pooling: arguments and sizes. */
#include "pixels.h"
#include "pooling_impl.h"

#include <math.h>

typedef struct arguments {
    size_t n;          /* dimensions of a plane */
    bool batched;
    bool adaptive;
    bool maximum;
    bool ceil_mode;
    bool include_pad;
    int64_t kernel[CFXI_SPATIAL];
    int64_t stride[CFXI_SPATIAL];
    int64_t pad[CFXI_SPATIAL];
    int64_t dilation[CFXI_SPATIAL];
    int64_t in[CFXI_SPATIAL];
    int64_t out[CFXI_SPATIAL];
} arguments;

static size_t plane_dims(cfx_operator op)
{
    switch (op) {
    case CFX_OPID_max_pool1d: case CFX_OPID_max_pool1d_with_indices: case CFX_OPID_avg_pool1d:
    case CFX_OPID_adaptive_avg_pool1d: case CFX_OPID_adaptive_max_pool1d:
    case CFX_OPID_adaptive_max_pool1d_with_indices: return 1;
    case CFX_OPID_max_pool3d: case CFX_OPID_max_pool3d_with_indices: case CFX_OPID_avg_pool3d:
    case CFX_OPID_adaptive_avg_pool3d: return 3;
    default: return 2;
    }
}

static bool is_fractional(cfx_operator op)
{
    return op == CFX_OPID_fractional_max_pool2d ||
           op == CFX_OPID_fractional_max_pool2d_with_indices;
}

/* ---- sizes --------------------------------------------------------------------------------- */

static cfx_status read_image(cfxi_call *c, arguments *a)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    a->n = plane_dims(c->op);
    a->batched = x->ndim == a->n + 2;
    if (!a->batched && x->ndim != a->n + 1)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected %zuD or %zuD (batch mode) tensor, but got input "
                         "with sizes: [%s]", a->n + 1, a->n + 2, cfxi_rt_shape_of(x).text);
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        a->kernel[d] = a->stride[d] = a->dilation[d] = a->in[d] = a->out[d] = 1;
        a->pad[d] = 0;
        if (d + a->n >= CFXI_SPATIAL)
            a->in[d] = x->size[d + a->n - CFXI_SPATIAL + 1 + a->batched];
    }
    for (size_t d = a->batched; d < x->ndim; d++)
        if (x->size[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "Expected %zuD or %zuD (batch mode) tensor with "
                             "non-zero size for non-batch dimensions, but got sizes [%s] with "
                             "dimension %zu being empty", a->n + 1, a->n + 2,
                             cfxi_rt_shape_of(x).text, d);
    return CFX_OK;
}

/* (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded down or up; a last window that
 * would begin in the padding after the image is left out. */
static int64_t windows(cfxi_call *c, const arguments *a, size_t d)
{
    int64_t wide = a->dilation[d] * (a->kernel[d] - 1) + 1;
    int64_t span = cfx_dim_add(c->dims, a->in[d], 2 * a->pad[d] - wide, c->err);
    if (a->in[d] == CFX_DIM_UNKNOWN)
        return CFX_DIM_UNKNOWN;
    if (a->ceil_mode)
        span = cfx_dim_add(c->dims, span, a->stride[d] - 1, c->err);
    int64_t n = cfx_dim_add(c->dims, cfx_dim_div(c->dims, span, a->stride[d], c->err), 1, c->err);
    if (a->ceil_mode && !cfx_dim_is_symbol(n) && (n - 1) * a->stride[d] >= a->in[d] + a->pad[d])
        n--;
    return n;
}

static cfx_status check_windows(cfxi_call *c, const arguments *a)
{
    int64_t taps = 1;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        if (a->stride[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "stride should not be zero");
        if (a->kernel[d] <= 0 || a->stride[d] < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "kernel size should be greater than zero, but got %lld"
                             " with stride %lld", (long long)a->kernel[d], (long long)a->stride[d]);
        if (a->dilation[d] <= 0)
            return cfxi_fail(c, CFX_E_SHAPE, "dilation should be greater than zero, but got %lld",
                             (long long)a->dilation[d]);
        if (a->pad[d] < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "pad must be non-negative, but got pad: %lld",
                             (long long)a->pad[d]);
        const int64_t wide = (a->kernel[d] - 1) * a->dilation[d];
        if (__builtin_mul_overflow(taps, a->kernel[d], &taps))
            return cfxi_fail(c, CFX_E_SHAPE, "kernel_size is too large: 64 bits cannot count the "
                             "elements of a window");
        if (a->pad[d] > (wide + 1) / 2)
            return cfxi_fail(c, CFX_E_SHAPE, "pad should be at most half of effective kernel size, "
                             "but got pad=%lld, kernel_size=%lld and dilation=%lld",
                             (long long)a->pad[d], (long long)a->kernel[d],
                             (long long)a->dilation[d]);
    }
    return CFX_OK;
}

static cfx_status read_windows(cfxi_call *c, arguments *a)
{
    bool power = c->op == CFX_OPID_lp_pool2d;
    size_t at = power ? 2 : 1;
    CFX_TRY(cfxi_rt_window_ints(c, at, a->n, 1, NULL, "kernel_size", a->kernel));
    CFX_TRY(cfxi_rt_window_ints(c, at + 1, a->n, 1, a->kernel, "stride", a->stride));
    if (!power)
        CFX_TRY(cfxi_rt_window_ints(c, 3, a->n, 0, NULL, "padding", a->pad));
    if (a->maximum)
        CFX_TRY(cfxi_rt_window_ints(c, 4, a->n, 1, NULL, "dilation", a->dilation));
    a->ceil_mode = cfxi_rt_bool(c, a->maximum ? 5 : 4);
    a->include_pad = !a->maximum && !power && cfxi_rt_bool(c, 5);
    CFX_TRY(check_windows(c, a));
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        a->out[d] = windows(c, a, d);
        if (a->out[d] < 1 && !cfx_dim_is_symbol(a->out[d]) && a->out[d] != CFX_DIM_UNKNOWN)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Given input size: (%s). Calculated output size: %lld "
                             "in dimension %zu. Output size is too small",
                             cfxi_rt_shape_ints(a->in, CFXI_SPATIAL, "x").text,
                             (long long)a->out[d], d);
    }
    return CFX_OK;
}

/* None keeps the size. */
static cfx_status read_sizes(cfxi_call *c, arguments *a)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(c->args[1], &n);
    if (n != a->n && n != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "output_size must have %zu elements, not %zu", a->n, n);
    for (size_t i = 0; i < a->n; i++) {
        cfx_datum d = items[n == 1 ? 0 : i];
        size_t at = CFXI_SPATIAL - a->n + i;
        a->out[at] = d.kind == CFX_DATUM_NONE ? a->in[at] : d.as.i;
        if (a->out[at] < 0 && !cfx_dim_is_symbol(a->out[at]) && d.kind != CFX_DATUM_NONE)
            return cfxi_fail(c, CFX_E_SHAPE, "elements of output_size must be greater than or equal"
                             " to 0 but received %lld", (long long)a->out[at]);
    }
    return CFX_OK;
}

static cfx_status read_fractions(cfxi_call *c, arguments *a)
{
    size_t n;
    const cfx_datum *ratio = cfx_datum_items(c->args[3], &n);
    bool by_size = !cfxi_rt_is_none(c, 2);
    CFX_TRY(cfxi_rt_window_ints(c, 1, 2, 1, NULL, "kernel_size", a->kernel));
    if (by_size == !cfxi_rt_is_none(c, 3))
        return cfxi_fail(c, CFX_E_VALUE, "fractional_max_pool2d requires specifying either an "
                         "output_size or an output_ratio");
    if (by_size)
        CFX_TRY(cfxi_rt_window_ints(c, 2, 2, 1, NULL, "output_size", a->out));
    else if (n != 1 && n != 2)
        return cfxi_fail(c, CFX_E_VALUE, "output_ratio must have 1 or 2 elements, not %zu", n);
    const cfx_tensor *samples = cfxi_rt_tensor(c, 5);
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (samples && (samples->ndim != 3 || !cfxi_rt_same_size(c, samples->size[2], 2) ||
                    !cfxi_rt_same_size(c, samples->size[1], x->size[a->batched]) ||
                    !cfxi_rt_same_size(c, samples->size[0], a->batched ? x->size[0] : 1)))
        return cfxi_fail(c, CFX_E_SHAPE, "Expect _random_samples to be of [images, channels, 2], "
                         "but got [%s]", cfxi_rt_shape_of(samples).text);
    for (size_t d = 1; d < CFXI_SPATIAL; d++) {
        if (!by_size && cfx_dim_is_symbol(a->in[d]))
            return cfxi_fail(c, CFX_E_UNSUPPORTED, "output_ratio needs a known input size");
        if (!by_size) {
            double r = ratio[n == 2 ? d - 1 : 0].as.f;
            if (!(r > 0 && r < 1))
                return cfxi_fail(c, CFX_E_VALUE, "fractional_max_pool2d requires output_ratio to "
                                 "both be between 0 and 1 (exclusive)");
            a->out[d] = (int64_t)((double)a->in[d] * r);
        }
        if (a->kernel[d] < 1 || a->out[d] < 1 ||
            (!cfx_dim_is_symbol(a->in[d]) && a->out[d] + a->kernel[d] - 1 > a->in[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "fractional_max_pool2d(): pool %s %lld too large "
                             "relative to input %s %lld", d == 1 ? "height" : "width",
                             (long long)a->kernel[d], d == 1 ? "height" : "width",
                             (long long)a->in[d]);
    }
    return CFX_OK;
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    *a = (arguments){0};
    switch (c->op) {
    case CFX_OPID_adaptive_avg_pool1d: case CFX_OPID_adaptive_avg_pool2d:
    case CFX_OPID_adaptive_avg_pool3d: a->adaptive = true; break;
    case CFX_OPID_adaptive_max_pool1d: case CFX_OPID_adaptive_max_pool2d:
    case CFX_OPID_adaptive_max_pool1d_with_indices: case CFX_OPID_adaptive_max_pool2d_with_indices:
        a->adaptive = a->maximum = true;
        break;
    case CFX_OPID_avg_pool1d: case CFX_OPID_avg_pool2d: case CFX_OPID_avg_pool3d:
    case CFX_OPID_lp_pool2d: break;
    default: a->maximum = true;
    }
    CFX_TRY(read_image(c, a));
    if (is_fractional(c->op))
        return read_fractions(c, a);
    return a->adaptive ? read_sizes(c, a) : read_windows(c, a);
}

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status check_type(cfxi_call *c, const arguments *a)
{
    cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    bool integers = !a->adaptive && cfx_dtype_is_integer(type) &&
                    !is_fractional(c->op) &&
                    (a->maximum ? c->op != CFX_OPID_max_pool1d : type == CFX_DTYPE_INT64);
    if (!cfx_dtype_is_float(type) && !integers)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    return CFX_OK;
}

/* PyTorch pools a row as an image of height 1: whose channels may come last. */
static bool is_row_channels_last(const cfx_tensor *x)
{
    if (x->ndim != 3 || !x->storage)
        return false;
    cfx_tensor image = {.dtype = x->dtype, .ndim = 4, .storage = x->storage,
                        .size = {x->size[0], x->size[1], 1, x->size[2]},
                        .stride = {x->stride[0], x->stride[1], x->size[2] * x->stride[2],
                                   x->stride[2]}};
    return cfxi_rt_prefers_channels_last(&image);
}

static cfx_status make_result(cfxi_call *c, const arguments *a, size_t i, cfx_dtype type)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = 0;
    for (; ndim < 1u + a->batched; ndim++)
        sizes[ndim] = x->size[ndim];
    for (size_t d = CFXI_SPATIAL - a->n; d < CFXI_SPATIAL; d++)
        sizes[ndim++] = a->out[d];
    CFX_TRY(cfxi_rt_result(c, i, type, sizes, ndim));
    bool keeps = a->maximum ? !is_fractional(c->op) : a->n == 2;
    if (keeps && a->batched && cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, i);
    if (a->n == 1 && c->op != CFX_OPID_max_pool1d && is_row_channels_last(x))
        cfxi_tensor_ordered_strides(sizes, ndim, cfx_dtype_size(type), (const uint8_t[]){0, 2, 1},
                                    cfxi_rt_result_at(c, i)->stride);
    return CFX_OK;
}

cfx_status cfxi_rule_pool(cfxi_call *c)
{
    arguments a;
    cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    CFX_TRY(read_arguments(c, &a));
    CFX_TRY(check_type(c, &a));
    if ((c->op == CFX_OPID_avg_pool2d || c->op == CFX_OPID_avg_pool3d) && !cfxi_rt_is_none(c, 6) &&
        cfxi_rt_int(c, 6) == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "divisor must be not zero");
    return make_result(c, &a, 0, type);
}

cfx_status cfxi_rule_pool_with_indices(cfxi_call *c)
{
    arguments a;
    CFX_TRY(cfxi_rule_pool(c));
    CFX_TRY(read_arguments(c, &a));
    return make_result(c, &a, 1, CFX_DTYPE_INT64);
}

/* With return_indices=True the result is what the row with indices gives: a pair. */
cfx_status cfxi_rule_pool_or_pair(cfxi_call *c)
{
    static const struct { uint16_t op, pair, flag, params; } pairs[] = {
        {CFX_OPID_max_pool1d, CFX_OPID_max_pool1d_with_indices, 6, 6},
        {CFX_OPID_max_pool2d, CFX_OPID_max_pool2d_with_indices, 6, 6},
        {CFX_OPID_max_pool3d, CFX_OPID_max_pool3d_with_indices, 6, 6},
        {CFX_OPID_adaptive_max_pool1d, CFX_OPID_adaptive_max_pool1d_with_indices, 2, 2},
        {CFX_OPID_adaptive_max_pool2d, CFX_OPID_adaptive_max_pool2d_with_indices, 2, 2},
        {CFX_OPID_fractional_max_pool2d, CFX_OPID_fractional_max_pool2d_with_indices, 4, 6},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].op != c->op || !cfxi_rt_bool(c, pairs[i].flag))
            continue;
        cfx_datum pair = cfxi_rt_sub(c, (cfx_operator)pairs[i].pair, c->args, pairs[i].params);
        if (pair.kind == CFX_DATUM_INVALID)
            return c->err->status;
        cfxi_rt_result_datum(c, 0, pair);
        return CFX_OK;
    }
    return cfxi_rule_pool(c);
}

/* ---- windows of an axis -------------------------------------------------------------------- */

static void fixed_windows(const arguments *a, size_t d, cfxi_pool_axis *axis)
{
    axis->step = a->dilation[d];
    for (int64_t o = 0; o < axis->out; o++) {
        int64_t lo = o * a->stride[d] - a->pad[d];
        int64_t hi = lo + a->dilation[d] * (a->kernel[d] - 1) + 1;
        int64_t padded = hi < a->in[d] + a->pad[d] ? hi : a->in[d] + a->pad[d];
        int64_t all = padded - lo;
        if (lo < 0)
            lo += (-lo + axis->step - 1) / axis->step * axis->step;
        axis->lo[o] = lo;
        axis->hi[o] = hi < a->in[d] ? hi : a->in[d];
        axis->hollow |= lo >= axis->hi[o];
        axis->count[o] = a->include_pad ? all : axis->hi[o] - lo;
    }
    if (axis->step > axis->in)  /* a step past the end is as good as any, and does not overflow */
        axis->step = axis->in + 1;
}

static void adaptive_windows(cfxi_pool_axis *axis)
{
    axis->step = 1;
    for (int64_t o = 0; o < axis->out; o++) {
        axis->lo[o] = o * axis->in / axis->out;
        axis->hi[o] = ((o + 1) * axis->in + axis->out - 1) / axis->out;
        axis->count[o] = axis->hi[o] - axis->lo[o];
    }
}

/* A number in [0, 1) for an axis of a plane: of argument 5, [image, channel, (width, height)], or
 * at random. */
static double sample_of(const cfxi_call *c, size_t d, cfxi_random r, int64_t plane)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 5);
    if (d == 0)
        return 0;
    if (!t)
        return cfxi_rt_random_uniform(r, 2 * plane + (int64_t)d - 1);
    return cfxi_tensor_load_float((cfx_dtype)t->dtype,
                                  t->data + plane / t->size[1] * t->stride[0] +
                               plane % t->size[1] * t->stride[1] + (d == 1) * t->stride[2]);
}

/* Samples that are given are elements: only a kernel can look at them. */
static cfx_status check_samples(cfxi_call *c, int64_t planes)
{
    for (int64_t i = 0; i < planes && cfxi_rt_tensor(c, 5); i++)
        for (size_t d = 1; d < CFXI_SPATIAL; d++) {
            const double u = sample_of(c, d, (cfxi_random){0}, i);
            if (!(u >= 0 && u <= 1))
                return cfxi_fail(c, CFX_E_VALUE, "_random_samples must be between 0 and 1, but "
                                 "got %g", u);
        }
    return CFX_OK;
}

/* Windows at places that grow by a random sequence, for each plane anew. */
static void random_windows(const cfxi_call *c, const arguments *a, size_t d, cfxi_pool_axis *axis,
                           cfxi_random r, int64_t planes)
{
    axis->step = 1;
    for (int64_t i = 0; i < planes; i++) {
        double u = sample_of(c, d, r, i);
        double alpha = axis->out > 1
                           ? (double)(axis->in - a->kernel[d]) / (double)(axis->out - 1) : 0;
        for (int64_t o = 0; o < axis->out; o++) {
            int64_t lo = o == axis->out - 1
                             ? axis->in - a->kernel[d]
                             : (int64_t)(((double)o + u) * alpha) - (int64_t)(u * alpha);
            axis->lo[i * axis->out + o] = lo;
            axis->hi[i * axis->out + o] = lo + a->kernel[d];
        }
    }
}

/* One block of memory for the windows of all axes, which is returned; NULL if memory is out. */
static int64_t *make_windows(cfxi_call *c, const arguments *a, cfxi_pooling *p)
{
    int64_t sets = p->axes_step ? p->planes : 1;
    int64_t all = a->out[0] + a->out[1] + a->out[2];
    size_t bytes;
    if (!cfxi_base_mul_size((size_t)all * 3 * sizeof(int64_t), (size_t)sets, 8, &bytes))
        return NULL;
    int64_t *room = cfxi_rt_scratch(c->rt, bytes);
    int64_t *next = room;
    cfxi_random r = {0};
    if (room && p->axes_step)
        r = cfxi_rt_random_reserve(c->rt, 2 * sets);
    for (size_t d = 0; room && d < CFXI_SPATIAL; d++) {
        cfxi_pool_axis *axis = &p->axes[d];
        *axis = (cfxi_pool_axis){.in = a->in[d], .out = a->out[d], .lo = next,
                                 .hi = next + sets * a->out[d]};
        axis->count = next + 2 * sets * a->out[d];
        next += 3 * sets * a->out[d];
        if (p->axes_step)
            random_windows(c, a, d, axis, r, sets);
        else if (a->adaptive)
            adaptive_windows(axis);
        else
            fixed_windows(a, d, axis);
    }
    return room;
}

/* ---- kernels ------------------------------------------------------------------------------- */

static double power_of(double x, double p) { return p == 2 ? x * x : pow(x, p); }

/* Every element to the power p, times `factor` before. */
static void raise(cfx_tensor *t, double p, double factor)
{
    for (int64_t i = 0, n = cfxi_tensor_numel(t); i < n; i++) {
        if (t->dtype == CFX_DTYPE_FLOAT32)
            ((float *)t->data)[i] = (float)power_of(((float *)t->data)[i] * factor, p);
        else
            ((double *)t->data)[i] = power_of(((double *)t->data)[i] * factor, p);
    }
}

/* The argument to compute from: of a power-average, its power. */
static cfx_tensor *operand(cfxi_call *c, cfx_dtype type)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (c->op != CFX_OPID_lp_pool2d)
        return cfxi_rt_contiguous(c, x, type);
    cfx_tensor *t = cfx_tensor_new(type, x->size, x->ndim, c->rt->allocator, c->err);
    if (t && cfxi_rt_copy(c->rt, t, x, c->err) != CFX_OK) {
        cfx_tensor_release(t);
        return NULL;
    }
    if (t)
        raise(t, cfxi_rt_float(c, 1), 1);
    return t;
}

/* The smallest integer of a type. */
static int64_t lowest_of(cfx_dtype type)
{
    const size_t bits = 8 * cfx_dtype_size(type);
    return !cfx_dtype_is_integer(type) || type == CFX_DTYPE_UINT8 ? 0
           : INT64_MIN / (INT64_C(1) << (64 - bits));
}

/* What the sum of a window is divided by; 0: the number of its elements. */
static int64_t divisor_of(const cfxi_call *c)
{
    const bool given = c->op == CFX_OPID_avg_pool2d || c->op == CFX_OPID_avg_pool3d;
    return given && !cfxi_rt_is_none(c, 6) ? cfxi_rt_int(c, 6) : 0;
}

static cfx_status compute(cfxi_call *c, const arguments *a, cfx_tensor *x, cfx_tensor *y,
                          cfx_tensor *index)
{
    cfxi_pooling p = {.rt = c->rt, .type = (cfx_dtype)x->dtype, .planes = 1, .x = x->data,
                      .y = y->data, .index = index ? (int64_t *)index->data : NULL,
                      .axes_step = is_fractional(c->op)};
    for (size_t d = 0; d < 1u + a->batched; d++)
        p.planes *= x->size[d];
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    p.divisor = divisor_of(c);
    p.lowest = lowest_of((cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
    if (is_fractional(c->op))
        CFX_TRY(check_samples(c, p.planes));
    int64_t *room = make_windows(c, a, &p);
    if (!room)
        return cfxi_base_nomem(c->err);
    cfx_status status =
        a->maximum ? cfxi_conv_pool_max(&p, c->err) : cfxi_conv_pool_mean(&p, c->err);
    cfxi_rt_scratch_free(c->rt, room);
    if (c->op == CFX_OPID_lp_pool2d)
        raise(y, 1 / cfxi_rt_float(c, 1), (double)(a->kernel[1] * a->kernel[2]));
    return status;
}

/* Images with channels last, as they lie; *done is false if that is not possible. */
static cfx_status run_pixels(cfxi_call *c, const arguments *a, bool *done)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfxi_pooling p = {.rt = c->rt, .divisor = divisor_of(c)};
    *done = a->batched && c->op != CFX_OPID_lp_pool2d && !is_fractional(c->op) &&
            cfxi_tensor_numel(y) > 0 && cfxi_conv_has_channels_last(x) &&
            cfxi_conv_has_channels_last(y);
    if (!*done)
        return CFX_OK;
    int64_t *room = make_windows(c, a, &p);
    if (!room)
        return cfxi_base_nomem(c->err);
    *done = cfxi_conv_pools_pixels(&p, x, y, a->maximum);
    if (*done)
        cfxi_conv_pool_pixels(&p, x, y, a->maximum);
    cfxi_rt_scratch_free(c->rt, room);
    return CFX_OK;
}

static cfx_status run(cfxi_call *c, bool with_indices)
{
    arguments a;
    bool done = false;
    if (c->results[0].kind != CFX_DATUM_TENSOR)
        return CFX_OK;  /* the pair is there already */
    CFX_TRY(read_arguments(c, &a));
    if (!with_indices)
        CFX_TRY(run_pixels(c, &a, &done));
    if (done)
        return CFX_OK;
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
    cfx_tensor *x = operand(c, type);
    cfx_tensor *y = x ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_tensor *index = y && with_indices ? cfxi_rt_work(c, 1, CFX_DTYPE_INT64, true) : NULL;
    cfx_status status = c->err->status;
    if (y && (index || !with_indices))
        status = compute(c, &a, x, y, index);
    if (with_indices)
        status = cfxi_rt_work_done(c, 1, index, status);
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(x);
    return status;
}

#define POOL(id) cfx_status cfxi_kernel_##id(cfxi_call *c) { return run(c, false); }
#define POOL_PAIR(id) cfx_status cfxi_kernel_##id(cfxi_call *c) { return run(c, true); }
POOL(max_pool1d)
POOL(max_pool2d)
POOL(max_pool3d)
POOL_PAIR(max_pool1d_with_indices)
POOL_PAIR(max_pool2d_with_indices)
POOL_PAIR(max_pool3d_with_indices)
POOL(avg_pool1d)
POOL(avg_pool2d)
POOL(avg_pool3d)
POOL(adaptive_avg_pool1d)
POOL(adaptive_avg_pool2d)
POOL(adaptive_avg_pool3d)
POOL(adaptive_max_pool1d)
POOL(adaptive_max_pool2d)
POOL_PAIR(adaptive_max_pool1d_with_indices)
POOL_PAIR(adaptive_max_pool2d_with_indices)
POOL(lp_pool2d)
POOL(fractional_max_pool2d)
POOL_PAIR(fractional_max_pool2d_with_indices)
