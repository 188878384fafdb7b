/* resize_pixels.c - resizing of float32 images with channels last: a pixel of the result is a
 * weighted sum of a few pixels, which are rows of channels. */
#include "pixels.h"
#include "resize_impl.h"

enum { LEAST_WORK = 16384 };  /* elements of the result that are worth waking another thread */

typedef struct pixel_job {
    const cfxi_resize_axis *axes;
    const cfxi_pixels *pixels;
    const cfx_tensor *x;
    cfx_tensor *y;
} pixel_job;

/* Pixels and their weights. */
typedef struct terms {
    const char *at[CFXI_MOST_PIXELS];
    float weight[CFXI_MOST_PIXELS];
    int64_t n;
} terms;

/* Each term becomes one for each tap of place o. A further tap of weight 0 does not count, as in a
 * pass along an axis. */
static void multiply_terms(terms *to, const terms *from, const cfxi_resize_axis *a, int64_t o,
                           int64_t step)
{
    to->n = 0;
    for (int64_t i = 0; i < from->n; i++)
        for (int64_t k = 0; k < a->taps; k++) {
            const float w = (float)a->weight[o * a->taps + k];
            if (k > 0 && w == 0)
                continue;
            to->at[to->n] = from->at[i] + a->index[o * a->taps + k] * step;
            to->weight[to->n++] = from->weight[i] * w;
        }
}

static void resize_lines(void *ctx, int64_t begin, int64_t end)
{
    const pixel_job *j = ctx;
    const cfxi_resize_axis *a = j->axes;
    const size_t spatial = (size_t)j->x->ndim - 2;
    const int64_t *xs = j->x->stride + 2;
    const int64_t *ys = j->y->stride + 2;
    for (int64_t line = begin; line < end; line++) {
        const int64_t place[] = {line / a[1].out % a[0].out, line % a[1].out};
        const int64_t image = line / a[1].out / a[0].out;
        char *to = j->y->data + image * j->y->stride[0];
        terms sums[2] = {{.at = {j->x->data + image * j->x->stride[0]}, .weight = {1}, .n = 1}};
        int now = 0;
        for (size_t d = CFXI_SPATIAL - spatial; d + 1 < CFXI_SPATIAL; d++, now = !now) {
            const size_t at = d + spatial - CFXI_SPATIAL;
            multiply_terms(&sums[!now], &sums[now], &a[d], place[d], xs[at]);
            to += place[d] * ys[at];
        }
        for (int64_t o = 0; o < a[2].out; o++, to += ys[spatial - 1]) {
            terms all;
            multiply_terms(&all, &sums[now], &a[2], o, xs[spatial - 1]);
            j->pixels->mix((const float *const *)all.at, all.weight, all.n, j->x->size[1],
                           (float *)to);
        }
    }
}

bool cfxi_conv_resizes_pixels(const cfx_runtime *rt, const cfxi_resize_axis axes[CFXI_SPATIAL],
                              const cfx_tensor *x, const cfx_tensor *y)
{
    int64_t taps = 1;
    for (size_t d = 0; d < CFXI_SPATIAL && taps <= CFXI_MOST_PIXELS; d++)
        taps *= axes[d].taps > 0 ? axes[d].taps : 1;
    return !rt->reference && taps <= CFXI_MOST_PIXELS && cfxi_conv_has_pixels(x) &&
           cfxi_conv_has_pixels(y);
}

void cfxi_conv_resize_pixels(cfx_runtime *rt, const cfxi_resize_axis axes[CFXI_SPATIAL],
                             const cfx_tensor *x, cfx_tensor *y)
{
    pixel_job j = {axes, cfxi_conv_pixels_of(rt->isa), x, y};
    const int64_t lines = x->size[0] * axes[0].out * axes[1].out;
    cfxi_rt_parallel(rt, lines, 1 + LEAST_WORK / (axes[2].out * x->size[1] + 1), resize_lines, &j);
}
