/* shuffle.c - channels to pixels and back, channels among groups: copies through other strides. */
#include "runtime/spatial.h"

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status result(cfxi_call *c, int64_t channels, int64_t height, int64_t width)
{
    const cfx_tensor *x = c->args[0].as.tensor;
    int64_t sizes[CFX_MAX_DIMS];
    for (size_t d = 0; d < x->ndim; d++)
        sizes[d] = x->size[d];
    sizes[x->ndim - 3] = channels;
    sizes[x->ndim - 2] = height;
    sizes[x->ndim - 1] = width;
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, x->ndim));
    if (x->ndim == 4 && cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

static cfx_status check_factor(cfxi_call *c, const char *name, int64_t *r)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim < 3)
        return cfxi_fail(c, CFX_E_SHAPE, "%s expects input to have at least 3 dimensions, but got "
                         "input with %u dimension(s)", cfx_operator_name(c->op), x->ndim);
    CFX_TRY(cfxi_rt_number(c, 1, r));
    if (*r <= 0 || *r > INT32_MAX)
        return cfxi_fail(c, CFX_E_SHAPE, "%s expects a positive %s, but got %lld",
                         cfx_operator_name(c->op), name, (long long)*r);
    return CFX_OK;
}

static bool divides(int64_t r, int64_t size) { return cfx_dim_is_symbol(size) || size % r == 0; }

cfx_status cfxi_rule_pixel_shuffle(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t r;
    CFX_TRY(check_factor(c, "upscale_factor", &r));
    const int64_t *last = x->size + x->ndim - 3;
    if (!divides(r * r, last[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "pixel_shuffle expects its input's 'channel' dimension to "
                         "be divisible by the square of upscale_factor, but input.size(-3)=%lld is "
                         "not divisible by %lld", (long long)last[0], (long long)(r * r));
    return result(c, cfx_dim_div(c->dims, last[0], r * r, c->err),
                  cfx_dim_mul(c->dims, last[1], r, c->err),
                  cfx_dim_mul(c->dims, last[2], r, c->err));
}

cfx_status cfxi_rule_pixel_unshuffle(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t r;
    CFX_TRY(check_factor(c, "downscale_factor", &r));
    const int64_t *last = x->size + x->ndim - 3;
    for (size_t i = 1; i < 3; i++)
        if (!divides(r, last[i]))
            return cfxi_fail(c, CFX_E_SHAPE, "pixel_unshuffle expects %s to be divisible by "
                             "downscale_factor, but input.size(%d)=%lld is not divisible by %lld",
                             i == 1 ? "height" : "width", (int)i - 3, (long long)last[i],
                             (long long)r);
    return result(c, cfx_dim_mul(c->dims, last[0], r * r, c->err),
                  cfx_dim_div(c->dims, last[1], r, c->err),
                  cfx_dim_div(c->dims, last[2], r, c->err));
}

cfx_status cfxi_rule_channel_shuffle(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t groups;
    CFX_TRY(cfxi_rt_number(c, 1, &groups));
    if (x->ndim < 3)
        return cfxi_fail(c, CFX_E_SHAPE, "channel_shuffle expects input with > 2 dims, but got "
                         "input with sizes [%s]", cfxi_rt_shape_of(x).text);
    if (groups <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Number of groups to divide channels in must be positive. "
                         "Value of groups:%lld", (long long)groups);
    size_t at = x->ndim == 3 ? 0 : 1;
    if (!divides(groups, x->size[at]))
        return cfxi_fail(c, CFX_E_SHAPE, "Number of channels must be divisible by groups. Got %lld "
                         "channels and %lld groups.", (long long)x->size[at], (long long)groups);
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Copies x, read with these sizes and strides, to the result with the others. */
static cfx_status copy_through(cfxi_call *c, cfx_tensor *x, const int64_t *sizes, size_t ndim,
                               const int64_t *from, const int64_t *to)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    cfx_tensor *a = cfx_tensor_view(x, (cfx_dtype)x->dtype, sizes, from, ndim, 0, c->err);
    cfx_tensor *b = a ? cfx_tensor_view(y, (cfx_dtype)y->dtype, sizes, to, ndim, 0, c->err) : NULL;
    cfx_status status = b ? cfxi_rt_copy(c->rt, b, a, c->err) : c->err->status;
    cfx_tensor_release(b);
    cfx_tensor_release(a);
    return status;
}

/* Dimensions: all before the channels as one, channels, r, r, height, width; of the side that has
 * more channels (`many`) and the one that has more pixels. */
static void pixel_strides(const cfx_tensor *t, bool many, int64_t r, int64_t out[6])
{
    const int64_t *s = t->stride + t->ndim - 3;
    out[0] = t->ndim > 3 ? t->stride[t->ndim - 4] : 0;
    out[1] = many ? s[0] * r * r : s[0];
    out[2] = many ? s[0] * r : s[1];
    out[3] = many ? s[0] : s[2];
    out[4] = many ? s[1] : s[1] * r;
    out[5] = many ? s[2] : s[2] * r;
}

static cfx_status shuffle_pixels(cfxi_call *c, bool up)
{
    int64_t r = cfxi_rt_int(c, 1);
    int64_t from[6];
    int64_t to[6];
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfxi_tensor_numel(x) == 0)
        return CFX_OK;
    x = x->ndim <= 4 ? cfx_tensor_retain(x) : cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);
    if (!x)
        return c->err->status;
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const int64_t *many = (up ? x : y)->size + x->ndim - 3;
    int64_t sizes[6] = {1, many[0] / (r * r), r, r, many[1], many[2]};
    for (size_t d = 0; d + 3 < x->ndim; d++)
        sizes[0] *= x->size[d];
    pixel_strides(x, up, r, from);
    pixel_strides(y, !up, r, to);
    cfx_status status = copy_through(c, x, sizes, 6, from, to);
    cfx_tensor_release(x);
    return status;
}

cfx_status cfxi_kernel_pixel_shuffle(cfxi_call *c) { return shuffle_pixels(c, true); }
cfx_status cfxi_kernel_pixel_unshuffle(cfxi_call *c) { return shuffle_pixels(c, false); }

/* Channel g * n + i becomes channel i * groups + g. */
cfx_status cfxi_kernel_channel_shuffle(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t groups = cfxi_rt_int(c, 1);
    size_t at = t->ndim == 3 ? 0 : 1;
    int64_t n = t->size[at] / groups;
    if (cfxi_tensor_numel(t) == 0)  /* `groups` may then be as large as numbers get */
        return CFX_OK;
    cfx_tensor *x = cfxi_rt_contiguous(c, t, (cfx_dtype)t->dtype);
    if (!x)
        return c->err->status;
    int64_t length = 1;
    for (size_t d = at + 1; d < t->ndim; d++)
        length *= t->size[d];
    const int64_t sizes[] = {at ? t->size[0] : 1, groups, n, length};
    const int64_t from[] = {at ? x->stride[0] : 0, x->stride[at] * n, x->stride[at],
                            (int64_t)cfxi_tensor_itemsize(x)};
    const int64_t to[] = {at ? y->stride[0] : 0, y->stride[at], y->stride[at] * groups,
                          y->stride[y->ndim - 1]};
    cfx_status status = copy_through(c, x, sizes, 4, from, to);
    cfx_tensor_release(x);
    return status;
}
