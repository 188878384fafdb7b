/* integer_conv.c - convolution of integers. Padding is the input's zero point: it adds nothing. */
#include "integer_impl.h"

enum { INPUT, WEIGHT = 3, BIAS = 6, STRIDE, PADDING, DILATION, GROUPS, RESULT };

static cfx_operator conv_of(size_t ndim)
{
    static const uint16_t by_dims[] = {CFX_OPID_conv1d, CFX_OPID_conv2d, CFX_OPID_conv3d};
    return ndim >= 3 && ndim <= 5 ? (cfx_operator)by_dims[ndim - 3] : CFX_OPID_NONE;
}

/* The products in a sum. */
static int64_t taps_of(cfxi_call *c, const cfx_tensor *w)
{
    int64_t taps = 1;
    for (size_t d = 1; d < w->ndim; d++)
        taps = cfx_dim_mul(c->dims, taps, w->size[d], c->err);
    return taps;
}

cfx_status cfxi_rule_integer_conv(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    CFX_TRY(cfxi_integer_check_operand(c, INPUT, "input"));
    CFX_TRY(cfxi_integer_check_result(c, RESULT, true));
    if (conv_of(w->ndim) == CFX_OPID_NONE)
        return cfxi_fail(c, CFX_E_SHAPE, "'weight' must have 3, 4 or 5 dimensions, not %u",
                         w->ndim);
    CFX_TRY(cfxi_integer_check_weight(c, w->size[0]));
    const int64_t taps = taps_of(c, w);
    if (c->err->status != CFX_OK)
        return c->err->status;
    CFX_TRY(cfxi_integer_check_sum(c, taps, cfxi_integer_most_product(
        cfxi_integer_is_signed(w), !cfxi_rt_is_none(c, WEIGHT + 2))));
    cfx_tensor *stand_in = cfxi_integer_stand_in(c, w, (cfx_dtype)x->dtype);
    if (!stand_in)
        return c->err->status;
    const cfx_datum args[] = {c->args[INPUT],   cfx_datum_tensor(stand_in), cfx_datum_none(),
                              c->args[STRIDE],  c->args[PADDING],
                              c->args[DILATION], c->args[GROUPS]};
    const cfx_tensor *like = cfxi_rt_prefers_channels_last(w) ? w : x;
    const cfx_status status =
        cfxi_integer_result_as(c, cfxi_rt_dtype_or(c, RESULT + 4, CFX_DTYPE_UINT8),
                               conv_of(w->ndim), args, 7, like);
    cfx_tensor_release(stand_in);
    return status;
}

/* Sizes in the last of three, steps in bytes: of images and channels, then of pixels. */
typedef struct conv {
    const cfx_tensor *input, *weight;
    cfx_tensor *y;
    size_t n;
    bool batched;
    int64_t groups;
    int64_t in[CFXI_SPATIAL], out[CFXI_SPATIAL], kernel[CFXI_SPATIAL];
    int64_t stride[CFXI_SPATIAL], pad[CFXI_SPATIAL], dilation[CFXI_SPATIAL];
    int64_t xs[2 + CFXI_SPATIAL], ws[2 + CFXI_SPATIAL], ys[2 + CFXI_SPATIAL];
    int64_t channels;     /* of a group of the input */
    int64_t outputs;      /* channels of the result, of all groups */
    bool x_signed, w_signed;
    int32_t zero;
    cfxi_integer_channels ch;
    cfxi_integer_store store;
} conv;

static void read_strides(const cfx_tensor *t, bool batched, size_t n, int64_t out[])
{
    out[0] = batched ? t->stride[0] : 0;
    out[1] = t->stride[batched];
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        out[2 + d] = d + n < CFXI_SPATIAL ? 0 : t->stride[d + n - CFXI_SPATIAL + 1 + batched];
}

static void read_sizes(const cfx_tensor *t, bool batched, size_t n, int64_t out[])
{
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        out[d] = d + n < CFXI_SPATIAL ? 1 : t->size[d + n - CFXI_SPATIAL + 1 + batched];
}

/* The sum for a channel of the result at a pixel, over the taps that lie in the image. */
static int32_t sum_taps(const conv *p, const char *x, const char *w, const int64_t at[],
                        int32_t wz)
{
    int32_t sum = 0;
    int64_t from[CFXI_SPATIAL], to[CFXI_SPATIAL];
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        const int64_t first = at[d] * p->stride[d] - p->pad[d];
        const int64_t past = p->in[d] - first;
        from[d] = first < 0 ? (-first + p->dilation[d] - 1) / p->dilation[d] : 0;
        to[d] = past <= 0 ? 0 : (past - 1) / p->dilation[d] + 1;
        to[d] = to[d] < p->kernel[d] ? to[d] : p->kernel[d];
        x += first * p->xs[2 + d];
    }
    for (int64_t i = 0; i < p->channels; i++)
        for (int64_t a = from[0]; a < to[0]; a++)
            for (int64_t b = from[1]; b < to[1]; b++)
                for (int64_t e = from[2]; e < to[2]; e++) {
                    const char *px = x + i * p->xs[1] + a * p->dilation[0] * p->xs[2] +
                                     b * p->dilation[1] * p->xs[3] + e * p->dilation[2] * p->xs[4];
                    const char *pw = w + i * p->ws[1] + a * p->ws[2] + b * p->ws[3] + e * p->ws[4];
                    sum += (cfxi_integer_load(p->x_signed, px) - p->zero) *
                           (cfxi_integer_load(p->w_signed, pw) - wz);
                }
    return sum;
}

/* Planes of the result: one channel of one image each. */
static void conv_planes(void *ctx, int64_t begin, int64_t end)
{
    const conv *p = ctx;
    const int64_t group = p->outputs / p->groups;
    for (int64_t i = begin; i < end; i++) {
        const int64_t o = i % p->outputs;
        const char *x = p->input->data + i / p->outputs * p->xs[0] +
                        o / group * p->channels * p->xs[1];
        char *y = p->y->data + i / p->outputs * p->ys[0] + o * p->ys[1];
        const char *w = p->weight->data + o * p->ws[0];
        int64_t at[CFXI_SPATIAL];
        for (at[0] = 0; at[0] < p->out[0]; at[0]++)
            for (at[1] = 0; at[1] < p->out[1]; at[1]++)
                for (at[2] = 0; at[2] < p->out[2]; at[2]++) {
                    const int32_t sum = sum_taps(p, x, w, at, p->ch.zero[o]);
                    cfxi_integer_put(&p->store,
                                     y + at[0] * p->ys[2] + at[1] * p->ys[3] + at[2] * p->ys[4],
                                     fmaf((float)sum, p->ch.factor[o], p->ch.bias[o]));
                }
    }
}

static cfx_status read_conv(cfxi_call *c, conv *p)
{
    const cfxi_integer_operand in = cfxi_integer_operand_of(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    const size_t n = w->ndim - 2u;
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    *p = (conv){.input = in.t, .weight = w, .y = y, .n = n, .batched = in.t->ndim == w->ndim,
                .groups = cfxi_rt_int(c, GROUPS), .channels = w->size[1], .outputs = w->size[0],
                .x_signed = cfxi_integer_is_signed(in.t), .w_signed = cfxi_integer_is_signed(w),
                .zero = in.zero, .store = cfxi_integer_store_of(c, RESULT)};
    read_strides(in.t, p->batched, n, p->xs);
    read_strides(w, true, n, p->ws);
    read_strides(y, p->batched, n, p->ys);
    read_sizes(in.t, p->batched, n, p->in);
    read_sizes(w, true, n, p->kernel);
    read_sizes(y, p->batched, n, p->out);
    CFX_TRY(cfxi_rt_window_ints(c, STRIDE, n, 1, NULL, "stride", p->stride));
    CFX_TRY(cfxi_rt_window_ints(c, PADDING, n, 0, NULL, "padding", p->pad));
    return cfxi_rt_window_ints(c, DILATION, n, 1, NULL, "dilation", p->dilation);
}

cfx_status cfxi_kernel_integer_conv(cfxi_call *c)
{
    conv p;
    const int64_t all = cfxi_tensor_numel(cfxi_rt_result_at(c, 0));
    if (all == 0)
        return CFX_OK;
    CFX_TRY(read_conv(c, &p));
    CFX_TRY(cfxi_integer_channels_new(c, p.outputs, cfxi_rt_float(c, INPUT + 1),
                                      cfxi_integer_scale_of(c, RESULT), &p.ch));
    const int64_t planes = all / (p.out[0] * p.out[1] * p.out[2]);
    cfxi_rt_parallel(c->rt, planes, 1, conv_planes, &p);
    cfxi_rt_scratch_free(c->rt, p.ch.factor);
    return CFX_OK;
}
