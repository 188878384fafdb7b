/* pooling_pixels.c - maxima and means of windows of images with channels last: the pixels of a
 * window are rows of channels, which are combined vector by vector. */
#include "pixels.h"
#include "pooling_impl.h"

enum {
    LEAST_WORK = 16384,   /* elements read that are worth waking another thread */
    SHARED_CHANNELS = 64  /* that a thread has at least, where channels are shared */
};

CFXI_ISA_CHOICE(cfxi_pixels, cfxi_conv_pixels_of, cfxi_conv_pixels)

typedef struct pixel_pooling {
    const cfxi_pooling *p;
    const cfxi_pixels *pixels;
    const cfx_tensor *x;
    cfx_tensor *y;
    bool maximum;
    int64_t lines;   /* of all images of the result */
    int64_t shares;  /* of the channels */
} pixel_pooling;

/* Combines pixels with those of their windows so far; the last time, `by` divides. */
static void combine(const pixel_pooling *p, cfxi_windows *w, float by)
{
    if (p->maximum && p->x->dtype == CFX_DTYPE_FLOAT32)
        p->pixels->most(w);
    else if (p->maximum)
        p->pixels->most_bytes(w, p->x->dtype == CFX_DTYPE_INT8);
    else
        p->pixels->mean(w, by);
    w->count = 0;
    w->more = true;
}

/* Windows from `place` on: w has all but their pixels. `x` is the first channel of the image. */
static void run_windows(const pixel_pooling *p, const char *x, const int64_t place[3],
                        cfxi_windows *w)
{
    const cfxi_pool_axis *a = p->p->axes;
    const size_t spatial = (size_t)p->x->ndim - 2;
    const char *at[CFXI_MOST_PIXELS];
    int64_t count = 1;
    int64_t step[CFXI_SPATIAL] = {0};
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        count *= a[d].count[place[d]];
        if (d + spatial >= CFXI_SPATIAL)
            step[d] = p->x->stride[2 + d + spatial - CFXI_SPATIAL];
    }
    w->x = at;
    w->step *= step[2];
    for (int64_t i = a[0].lo[place[0]]; i < a[0].hi[place[0]]; i += a[0].step)
        for (int64_t j = a[1].lo[place[1]]; j < a[1].hi[place[1]]; j += a[1].step)
            for (int64_t k = a[2].lo[place[2]]; k < a[2].hi[place[2]]; k += a[2].step) {
                if (w->count == CFXI_MOST_PIXELS)
                    combine(p, w, 1);
                at[w->count++] = x + i * step[0] + j * step[1] + k * step[2];
            }
    combine(p, w, (float)(p->p->divisor ? p->p->divisor : count));
}

/* How many windows from `first` on are alike but for their places, and `*apart` places from one to
 * the next. */
static int64_t alike(const cfxi_pool_axis *a, int64_t first, int64_t *apart)
{
    int64_t n = 1;
    *apart = first + 1 < a->out ? a->lo[first + 1] - a->lo[first] : 0;
    while (first + n < a->out && a->lo[first + n] == a->lo[first] + n * *apart &&
           a->hi[first + n] == a->hi[first] + n * *apart &&
           a->count[first + n] == a->count[first])
        n++;
    return n;
}

static void pool_lines(void *ctx, int64_t begin, int64_t end)
{
    const pixel_pooling *p = ctx;
    const cfxi_pool_axis *a = p->p->axes;
    const int64_t channels = p->x->size[1];
    const int64_t item = p->x->stride[1];
    const size_t spatial = (size_t)p->x->ndim - 2;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = channels * (i % p->shares) / p->shares;
        const int64_t last = channels * (i % p->shares + 1) / p->shares;
        const int64_t line = i / p->shares;
        const int64_t image = line / a[1].out / a[0].out;
        int64_t place[] = {line / a[1].out % a[0].out, line % a[1].out, 0};
        while (place[2] < a[2].out) {
            cfxi_windows w = {.n = last - first, .y_step = p->y->stride[p->y->ndim - 1]};
            char *y = p->y->data + image * p->y->stride[0];
            for (size_t d = CFXI_SPATIAL - spatial; d < CFXI_SPATIAL; d++)
                y += place[d] * p->y->stride[2 + d + spatial - CFXI_SPATIAL];
            w.y = y + first * item;
            w.windows = alike(&a[2], place[2], &w.step);
            run_windows(p, p->x->data + image * p->x->stride[0] + first * item, place, &w);
            place[2] += w.windows;
        }
    }
}

/* Maxima are also of 8-bit integers. */
static bool has_type(const cfx_tensor *x, bool maximum)
{
    return x->dtype == CFX_DTYPE_FLOAT32 ||
           (maximum && (x->dtype == CFX_DTYPE_UINT8 || x->dtype == CFX_DTYPE_INT8));
}

bool cfxi_conv_pools_pixels(const cfxi_pooling *p, const cfx_tensor *x, const cfx_tensor *y,
                            bool maximum)
{
    bool hollow = false;
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        hollow = hollow || p->axes[d].hollow;
    return !p->rt->reference && !hollow && !p->index && !p->axes_step && has_type(x, maximum) &&
           cfxi_conv_has_channels_last(x) && cfxi_conv_has_channels_last(y);
}

void cfxi_conv_pool_pixels(const cfxi_pooling *p, const cfx_tensor *x, cfx_tensor *y, bool maximum)
{
    const cfxi_pool_axis *a = p->axes;
    pixel_pooling w = {.p = p, .pixels = cfxi_conv_pixels_of(p->rt->isa), .x = x, .y = y,
                       .maximum = maximum, .shares = 1,
                       .lines = x->size[0] * a[0].out * a[1].out};
    const int64_t threads = (int64_t)cfxi_rt_pool_threads(p->rt->pool);
    int64_t work = x->size[1];
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        work *= a[d].in;
    work = work * x->size[0] / w.lines + 1;  /* of a line */
    while (threads > 1 && w.lines * w.shares < threads && work / w.shares > LEAST_WORK &&
           x->size[1] / (w.shares + 1) >= SHARED_CHANNELS)
        w.shares++;
    cfxi_rt_parallel(p->rt, w.lines * w.shares, 1 + LEAST_WORK * w.shares / work, pool_lines, &w);
}
