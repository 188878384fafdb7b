/* plan_line.c - a convolution over lines is planned as one over images of height 1:
 *
 *     conv1d(x, w, b, [2], [1])     becomes     conv2d(x[:, :, None], w[:, :, None], b, [1, 2],
 *                                                      [0, 1])[:, :, 0]
 *
 * So it has the same back ends, and lies with its channels side by side as images do.
 */
#include "plan_impl.h"

/* Where conv1d and conv2d have their stride, padding and dilation, and what those of height are. */
static const struct {
    size_t at;
    int64_t height;
} windows[] = {{3, 1}, {4, 0}, {5, 1}};

typedef struct caller {
    cfx_runtime *rt;
    cfxi_planner *planner;
    const cfx_allocator *allocator;
    cfx_error *err;
} caller;

static cfx_datum with_number(const caller *c, cfx_operator op, cfx_datum x, cfx_datum number)
{
    const cfx_datum args[] = {x, number};
    return cfxi_rt_call_planned(c->rt, c->planner, op, args, 2, c->err);
}

/* An image of height 1, with its channels side by side. */
static cfx_datum image_of(const caller *c, cfx_datum line)
{
    const cfx_datum image = with_number(c, CFX_OPID_unsqueeze, line, cfx_datum_int(2));
    if (image.kind != CFX_DATUM_TENSOR || cfxi_rt_prefers_channels_last(image.as.tensor))
        return image;
    const cfx_datum turned = cfxi_plan_lay_as(c->rt, c->planner, image.as.tensor,
                                              CFX_MEMORY_FORMAT_CHANNELS_LAST, c->err);
    cfx_datum_release(image);
    return turned;
}

/* [2] or 2 becomes [1, 2]; a text, as of padding, stays. */
static cfx_datum window_of(const caller *c, cfx_datum d, int64_t height)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_datum both[] = {cfx_datum_int(height), n == 1 ? items[0] : d};
    return both[1].kind == CFX_DATUM_INT
               ? cfx_datum_seq(CFX_DATUM_LIST, both, 2, c->allocator, c->err)
               : cfx_datum_retain(d);
}

bool cfxi_plan_is_line(cfx_operator op, const cfx_datum *args, size_t n)
{
    const cfx_tensor *x = n > 1 && args[0].kind == CFX_DATUM_TENSOR ? args[0].as.tensor : NULL;
    const cfx_tensor *w = n > 1 && args[1].kind == CFX_DATUM_TENSOR ? args[1].as.tensor : NULL;
    return op == CFX_OPID_conv1d && x && w && x->ndim == 3 && x->storage->planned &&
           x->dtype == CFX_DTYPE_FLOAT32 && !w->storage->planned;
}

cfx_datum cfxi_plan_call_line(cfx_runtime *rt, cfxi_planner *planner, const cfx_datum *args,
                              size_t n, cfx_error *err)
{
    const caller c = {rt, planner, rt->allocator, err};
    cfx_datum own[CFXI_MOST_PARAMS];
    cfx_datum result = cfx_datum_invalid();
    for (size_t i = 0; i < n; i++)
        own[i] = i >= 2 ? cfx_datum_retain(args[i]) : cfx_datum_invalid();
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (windows[i].at < n) {
            cfx_datum_release(own[windows[i].at]);
            own[windows[i].at] = window_of(&c, args[windows[i].at], windows[i].height);
        }
    own[0] = image_of(&c, args[0]);
    if (own[0].kind != CFX_DATUM_INVALID)
        own[1] = with_number(&c, CFX_OPID_unsqueeze, args[1], cfx_datum_int(2));
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole = whole && (own[i].kind != CFX_DATUM_INVALID || args[i].kind == CFX_DATUM_INVALID);
    if (whole)
        result = cfxi_rt_call_planned(rt, planner, CFX_OPID_conv2d, own, n, err);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(own[i]);
    if (result.kind == CFX_DATUM_INVALID)
        return result;
    const cfx_datum line = with_number(&c, CFX_OPID_squeeze_dim, result, cfx_datum_int(2));
    cfx_datum_release(result);
    return line;
}
