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

/* Combines some pixels with those of the window so far; the last time, `by` divides. */
static void combine(const pixel_pooling *w, const float **at, int64_t n, bool more, int64_t first,
                    int64_t channels, float by, float *y)
{
    for (int64_t i = 0; i < n; i++)
        at[i] += first;
    if (w->maximum)
        w->pixels->most(at, n, channels, more, y);
    else
        w->pixels->mean(at, n, channels, more, by, y);
}

/* One window, from channel `first` on. */
static void window(const pixel_pooling *w, const char *image, const int64_t place[3], int64_t first,
                   int64_t channels, float *y)
{
    const cfxi_pool_axis *a = w->p->axes;
    const size_t spatial = (size_t)w->x->ndim - 2;
    const float *at[CFXI_MOST_PIXELS];
    int64_t n = 0;
    bool more = false;
    int64_t count = 1;
    int64_t step[CFXI_SPATIAL] = {0};
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        count *= a[d].count[place[d]];
        if (d + spatial >= CFXI_SPATIAL)
            step[d] = w->x->stride[2 + d + spatial - CFXI_SPATIAL];
    }
    for (int64_t i = a[0].lo[place[0]]; i < a[0].hi[place[0]]; i += a[0].step)
        for (int64_t j = a[1].lo[place[1]]; j < a[1].hi[place[1]]; j += a[1].step)
            for (int64_t k = a[2].lo[place[2]]; k < a[2].hi[place[2]]; k += a[2].step) {
                if (n == CFXI_MOST_PIXELS) {
                    combine(w, at, n, more, first, channels, 1, y);
                    more = true;
                    n = 0;
                }
                at[n++] = (const float *)(image + i * step[0] + j * step[1] + k * step[2]);
            }
    combine(w, at, n, more, first, channels, (float)(w->p->divisor ? w->p->divisor : count), y);
}

static void pool_lines(void *ctx, int64_t begin, int64_t end)
{
    const pixel_pooling *w = ctx;
    const cfxi_pool_axis *a = w->p->axes;
    const int64_t channels = w->x->size[1];
    const size_t spatial = (size_t)w->x->ndim - 2;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = channels * (i % w->shares) / w->shares;
        const int64_t last = channels * (i % w->shares + 1) / w->shares;
        const int64_t line = i / w->shares;
        int64_t place[] = {line / a[1].out % a[0].out, line % a[1].out, 0};
        const int64_t image = line / a[1].out / a[0].out;
        for (; place[2] < a[2].out; place[2]++) {
            char *y = w->y->data + image * w->y->stride[0];
            for (size_t d = CFXI_SPATIAL - spatial; d < CFXI_SPATIAL; d++)
                y += place[d] * w->y->stride[2 + d + spatial - CFXI_SPATIAL];
            window(w, w->x->data + image * w->x->stride[0], place, first, last - first,
                   (float *)y + first);
        }
    }
}

bool cfxi_conv_pools_pixels(const cfxi_pooling *p, const cfx_tensor *x, const cfx_tensor *y)
{
    bool hollow = false;
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        hollow = hollow || p->axes[d].hollow;
    return !p->rt->reference && !hollow && !p->index && !p->axes_step && cfxi_conv_has_pixels(x) &&
           cfxi_conv_has_pixels(y);
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
