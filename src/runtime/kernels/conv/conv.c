/* conv.c - convolution and transposed convolution: arguments, sizes, which kernel. */
#include "conv_impl.h"

/* ---- arguments ----------------------------------------------------------------------------- */

/* Sizes and the like in the last `n` of three. */
typedef struct arguments {
    size_t n;  /* dimensions of the images */
    bool transposed;
    bool batched;
    const cfx_tensor *input;
    const cfx_tensor *weight;
    const cfx_tensor *bias;
    int64_t groups;
    int64_t stride[CFXI_SPATIAL];
    int64_t before[CFXI_SPATIAL];
    int64_t after[CFXI_SPATIAL];
    int64_t extra[CFXI_SPATIAL];  /* output_padding */
    int64_t dilation[CFXI_SPATIAL];
    int64_t in[CFXI_SPATIAL];
    int64_t kernel[CFXI_SPATIAL];
    int64_t out[CFXI_SPATIAL];
    int64_t out_channels;
} arguments;

static size_t image_dims(cfx_operator op)
{
    switch (op) {
    case CFX_OPID_conv1d: case CFX_OPID_conv_transpose1d: return 1;
    case CFX_OPID_conv2d: case CFX_OPID_conv_transpose2d: return 2;
    case CFX_OPID_conv3d: case CFX_OPID_conv_transpose3d: return 3;
    default: return 0;  /* `convolution`: by the weight */
    }
}

static cfx_status check_dims(cfxi_call *c, arguments *a)
{
    size_t ndim = a->input->ndim;
    if (a->n == 0) {
        a->n = a->weight->ndim < 3 || a->weight->ndim > 5 ? 1 : a->weight->ndim - 2u;
        if (ndim != a->n + 2)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Expected %u-dimensional input for %u-dimensional "
                             "weight [%s], but got %zu-dimensional input of size [%s] instead",
                             a->weight->ndim, a->weight->ndim, cfxi_rt_shape_of(a->weight).text,
                             ndim, cfxi_rt_shape_of(a->input).text);
    }
    if (ndim != a->n + 1 && ndim != a->n + 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected %zuD (unbatched) or %zuD (batched) input to "
                         "%s, but got input of size: [%s]", a->n + 1, a->n + 2,
                         cfx_operator_name(c->op), cfxi_rt_shape_of(a->input).text);
    if (a->weight->ndim != a->n + 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected %zu-dimensional weight, but got weight of size "
                         "[%s]", a->n + 2, cfxi_rt_shape_of(a->weight).text);
    a->batched = ndim == a->n + 2;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        bool is_there = d + a->n >= CFXI_SPATIAL;
        size_t at = d + a->n - CFXI_SPATIAL;
        a->in[d] = is_there ? a->input->size[at + 1 + a->batched] : 1;
        a->kernel[d] = is_there ? a->weight->size[at + 2] : 1;
    }
    return CFX_OK;
}

/* "same": as much on both sides, one more after the image if it is odd. */
static cfx_status named_padding(cfxi_call *c, arguments *a, const char *name)
{
    bool same = strcmp(name, "same") == 0;
    if (!same && strcmp(name, "valid") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Invalid padding string: '%s'", name);
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        if (same && a->stride[d] != 1)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "padding='same' is not supported for strided convolutions");
        int64_t all = !same ? 0
                            : cfx_dim_mul(c->dims, a->dilation[d],
                                          cfx_dim_sub(c->dims, a->kernel[d], 1, c->err), c->err);
        a->before[d] = cfx_dim_div(c->dims, all, 2, c->err);
        a->after[d] = cfx_dim_sub(c->dims, all, a->before[d], c->err);
    }
    return CFX_OK;
}

/* Of a symbol nobody knows: it may turn out to fit. */
static bool is_below(int64_t size, int64_t limit)
{
    return !cfx_dim_is_symbol(size) && size < limit;
}

static bool is_at_most(int64_t a, int64_t b)
{
    return !cfx_dim_is_symbol(b) && is_below(a, b + 1);
}

static cfx_status read_windows(cfxi_call *c, arguments *a)
{
    bool general = c->op == CFX_OPID_convolution;
    size_t at_dilation = general || !a->transposed ? 5 : 7;
    CFX_TRY(cfxi_rt_window_ints(c, 3, a->n, 1, NULL, "stride", a->stride));
    CFX_TRY(cfxi_rt_window_ints(c, at_dilation, a->n, 1, NULL, "dilation", a->dilation));
    if (cfxi_rt_str(c, 4)) {
        CFX_TRY(named_padding(c, a, cfxi_rt_str(c, 4)));
    } else {
        CFX_TRY(cfxi_rt_window_ints(c, 4, a->n, 0, NULL, "padding", a->before));
        memcpy(a->after, a->before, sizeof a->after);
    }
    memset(a->extra, 0, sizeof a->extra);
    if (a->transposed)
        CFX_TRY(cfxi_rt_window_ints(c, general ? 7 : 5, a->n, 0, NULL, "output_padding", a->extra));
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        if (is_below(a->before[d], 0))
            return cfxi_fail(c, CFX_E_SHAPE, "negative padding is not supported");
        if (is_below(a->stride[d], 1))
            return cfxi_fail(c, CFX_E_SHAPE, "non-positive stride is not supported");
        if (is_below(a->dilation[d], 1))
            return cfxi_fail(c, CFX_E_SHAPE, "non-positive dilation is not supported");
        if (is_below(a->extra[d], 0))
            return cfxi_fail(c, CFX_E_SHAPE, "negative output_padding is not supported");
        if (a->extra[d] && is_at_most(a->stride[d], a->extra[d]) &&
            is_at_most(a->dilation[d], a->extra[d]))
            return cfxi_fail(c, CFX_E_SHAPE,
                             "output padding must be smaller than either stride or dilation");
    }
    return CFX_OK;
}

static cfx_status check_types(cfxi_call *c, const arguments *a)
{
    cfx_dtype type = (cfx_dtype)a->input->dtype;
    if (a->weight->dtype != type)
        return cfxi_fail(c, CFX_E_SHAPE, "Input type (%s) and weight type (%s) should be the same",
                         cfx_dtype_name(type), cfx_dtype_name((cfx_dtype)a->weight->dtype));
    if (a->bias && a->bias->dtype != type)
        return cfxi_fail(c, CFX_E_SHAPE, "Input type (%s) and bias type (%s) should be the same",
                         cfx_dtype_name(type), cfx_dtype_name((cfx_dtype)a->bias->dtype));
    if (type == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "convolution is not implemented for 'Bool'");
    return CFX_OK;
}

static cfx_status check_channels(cfxi_call *c, arguments *a)
{
    const int64_t *w = a->weight->size;
    int64_t channels = a->input->size[a->batched];
    if (a->groups <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "non-positive groups is not supported");
    int64_t expected = a->transposed ? w[0] : cfx_dim_mul(c->dims, w[1], a->groups, c->err);
    if (!a->transposed && !cfx_dim_is_symbol(w[0]) && w[0] < a->groups)
        return cfxi_fail(c, CFX_E_SHAPE, "Given groups=%lld, expected weight to be at least %lld at"
                         " dimension 0, but got weight of size [%s] instead", (long long)a->groups,
                         (long long)a->groups, cfxi_rt_shape_of(a->weight).text);
    if (!cfx_dim_is_symbol(w[0]) && w[0] % a->groups != 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Given groups=%lld, expected weight to be divisible by "
                         "%lld at dimension 0, but got weight of size [%s] instead",
                         (long long)a->groups, (long long)a->groups,
                         cfxi_rt_shape_of(a->weight).text);
    if (!cfxi_rt_same_size(c, channels, expected))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Given %s=%lld, weight of size [%s], expected input[%s] to"
                         " have %lld channels, but got %lld channels instead",
                         a->transposed ? "transposed" : "groups",
                         a->transposed ? 1LL : (long long)a->groups,
                         cfxi_rt_shape_of(a->weight).text, cfxi_rt_shape_of(a->input).text,
                         (long long)expected, (long long)channels);
    a->out_channels = a->transposed ? cfx_dim_mul(c->dims, w[1], a->groups, c->err) : w[0];
    if (a->bias && (a->bias->ndim != 1 ||
                    !cfxi_rt_same_size(c, a->bias->size[0], a->out_channels)))
        return cfxi_fail(c, CFX_E_SHAPE, "Given weight of size [%s], expected bias to be "
                         "1-dimensional with %lld elements, but got bias of size [%s] instead",
                         cfxi_rt_shape_of(a->weight).text, (long long)a->out_channels,
                         cfxi_rt_shape_of(a->bias).text);
    if (channels == 0 && !a->transposed)
        a->out_channels = 0;  /* so PyTorch answers */
    return CFX_OK;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* How far the first and the last tap are apart, plus one. */
static int64_t reach(cfxi_call *c, const arguments *a, size_t d)
{
    int64_t steps = cfx_dim_sub(c->dims, a->kernel[d], 1, c->err);
    return cfx_dim_add(c->dims, cfx_dim_mul(c->dims, a->dilation[d], steps, c->err), 1, c->err);
}

static cfx_status output_size(cfxi_call *c, arguments *a, size_t d)
{
    int64_t padding = cfx_dim_add(c->dims, a->before[d], a->after[d], c->err);
    int64_t wide = reach(c, a, d);
    if (a->transposed) {
        int64_t steps = cfx_dim_sub(c->dims, a->in[d], 1, c->err);
        int64_t size = cfx_dim_add(c->dims, cfx_dim_mul(c->dims, steps, a->stride[d], c->err), wide,
                                   c->err);
        size = cfx_dim_sub(c->dims, size, padding, c->err);
        a->out[d] = cfx_dim_add(c->dims, size, a->extra[d], c->err);
    } else {
        int64_t size = cfx_dim_sub(c->dims, cfx_dim_add(c->dims, a->in[d], padding, c->err), wide,
                                   c->err);
        if (size < 0 && !cfx_dim_is_symbol(size))
            return cfxi_fail(c, CFX_E_SHAPE, "Calculated padded input size per channel: (%lld). "
                             "Kernel size: (%lld). Kernel size can't be greater than actual input "
                             "size", (long long)cfx_dim_add(c->dims, a->in[d], padding, c->err),
                             (long long)wide);
        a->out[d] = cfx_dim_add(c->dims, cfx_dim_div(c->dims, size, a->stride[d], c->err), 1,
                                c->err);
    }
    if (a->out[d] < 0 && !cfx_dim_is_symbol(a->out[d]))
        return cfxi_fail(c, CFX_E_SHAPE, "the output would be too small: %lld in dimension %zu",
                         (long long)a->out[d], d);
    return CFX_OK;
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    size_t at_groups = c->op == CFX_OPID_convolution ? 8 : 6;
    a->n = image_dims(c->op);
    a->transposed = c->op == CFX_OPID_convolution ? cfxi_rt_bool(c, 6)
                                                  : c->op == CFX_OPID_conv_transpose1d ||
                                                    c->op == CFX_OPID_conv_transpose2d ||
                                                    c->op == CFX_OPID_conv_transpose3d;
    a->input = cfxi_rt_tensor(c, 0);
    a->weight = cfxi_rt_tensor(c, 1);
    a->bias = cfxi_rt_tensor(c, 2);
    CFX_TRY(cfxi_rt_number(c, at_groups, &a->groups));
    CFX_TRY(check_dims(c, a));
    CFX_TRY(read_windows(c, a));
    CFX_TRY(check_channels(c, a));
    CFX_TRY(check_types(c, a));
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        if (a->in[d] == 0 && a->input->size[a->batched] != 0 &&
            !(a->batched && a->input->size[0] == 0))
            return cfxi_fail(c, CFX_E_SHAPE, "Only zero batch or zero channel inputs are supported,"
                             " but got input shape: [%s]", cfxi_rt_shape_of(a->input).text);
        a->out[d] = CFX_DIM_UNKNOWN;
        if (a->in[d] != CFX_DIM_UNKNOWN)
            CFX_TRY(output_size(c, a, d));
    }
    return CFX_OK;
}

cfx_status cfxi_rule_conv(cfxi_call *c)
{
    arguments a;
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = 0;
    CFX_TRY(read_arguments(c, &a));
    if (a.batched)
        sizes[ndim++] = a.input->size[0];
    sizes[ndim++] = a.out_channels;
    for (size_t d = CFXI_SPATIAL - a.n; d < CFXI_SPATIAL; d++)
        sizes[ndim++] = a.out[d];
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)a.input->dtype, sizes, ndim));
    bool keeps = a.batched && !(a.transposed && a.n == 3);
    if (keeps &&
        (cfxi_rt_prefers_channels_last(a.input) || cfxi_rt_prefers_channels_last(a.weight)))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* ---- computing ----------------------------------------------------------------------------- */

static void image_strides(const cfx_tensor *t, bool batched, size_t n, int64_t out[5])
{
    int64_t item = (int64_t)cfxi_tensor_itemsize(t);
    out[0] = batched ? t->stride[0] / item : 0;
    out[1] = t->stride[batched] / item;
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        out[2 + d] = d + n < CFXI_SPATIAL
                         ? 0 : t->stride[d + n - CFXI_SPATIAL + 1 + batched] / item;
}

static void describe(const arguments *a, const cfx_tensor *x, const cfx_tensor *w,
                     const cfx_tensor *bias, const cfx_tensor *y, cfxi_conv *p)
{
    *p = (cfxi_conv){
        .batch = a->batched ? x->size[0] : 1, .groups = a->groups,
        .in_channels = x->size[a->batched] / a->groups, .out_channels = a->out_channels / a->groups,
        .transposed = a->transposed,
        .x = x->data, .w = w->data, .bias = bias ? bias->data : NULL, .y = y->data,
    };
    memcpy(p->in, a->in, sizeof p->in);
    memcpy(p->out, a->out, sizeof p->out);
    memcpy(p->kernel, a->kernel, sizeof p->kernel);
    memcpy(p->stride, a->stride, sizeof p->stride);
    memcpy(p->before, a->before, sizeof p->before);
    memcpy(p->dilation, a->dilation, sizeof p->dilation);
    image_strides(x, a->batched, a->n, p->xs);
    image_strides(y, a->batched, a->n, p->ys);
    image_strides(w, true, a->n, p->ws);
    p->wg = a->transposed ? p->in_channels * p->ws[0] : p->out_channels * p->ws[0];
    if (a->transposed) {
        int64_t first = p->ws[0];
        p->ws[0] = p->ws[1];
        p->ws[1] = first;
    }
}

cfx_status cfxi_conv_describe(cfxi_call *c, cfxi_conv *p)
{
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    describe(&a, a.input, a.weight, a.bias, cfxi_rt_result_at(c, 0), p);
    return CFX_OK;
}

static cfx_status compute(cfxi_call *c)
{
    arguments a;
    CFX_TRY(read_arguments(c, &a));
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)a.input->dtype);
    cfx_tensor *x = cfxi_rt_typed(c, a.input, type);
    cfx_tensor *w = x ? cfxi_rt_typed(c, a.weight, type) : NULL;
    cfx_tensor *bias = w && a.bias ? cfxi_rt_contiguous(c, a.bias, type) : NULL;
    cfx_tensor *y = w && (bias || !a.bias) ? cfxi_rt_work(c, 0, type, false) : NULL;
    cfx_status status = y ? CFX_OK : c->err->status;
    if (y) {
        cfxi_conv p;
        describe(&a, x, w, bias, y, &p);
        if (type == CFX_DTYPE_FLOAT32 && !c->rt->reference && cfxi_conv_fast_pays(&p))
            status = cfxi_conv_fast(c->rt, &p, c->err);
        else
            cfxi_conv_plain(c->rt, type, &p);
    }
    status = cfxi_rt_work_done(c, 0, y, status);
    cfx_tensor_release(bias);
    cfx_tensor_release(w);
    cfx_tensor_release(x);
    return status;
}

cfx_status cfxi_kernel_conv1d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_conv2d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_conv3d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_conv_transpose1d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_conv_transpose2d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_conv_transpose3d(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_convolution(cfxi_call *c) { return compute(c); }
