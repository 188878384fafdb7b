/* pooling_impl.h - windows over planes, and what is made of them. */
#ifndef CFXI_POOLING_IMPL_H
#define CFXI_POOLING_IMPL_H

#include "runtime/spatial.h"

/* The windows along an axis: window o has places lo[o], lo[o] + step, ... below hi[o], all of them
 * inside the image; `count` is how many there are with the padding that counts. A window that lies
 * in the padding alone has lo[o] >= hi[o], and lo[o] may be far outside. */
typedef struct cfxi_pool_axis {
    int64_t in;
    int64_t out;
    int64_t step;
    bool hollow;  /* some window lies in the padding alone */
    int64_t *lo;
    int64_t *hi;
    int64_t *count;
} cfxi_pool_axis;

typedef struct cfxi_pooling {
    cfx_runtime *rt;
    cfx_dtype type;        /* float32, float64 or int64 */
    cfxi_pool_axis axes[CFXI_SPATIAL];
    int64_t planes;
    const void *x;         /* dense, a plane after the other */
    void *y;
    int64_t *index;        /* of maxima; or NULL */
    int64_t lowest;        /* what a window in the padding alone gives, of integers; floats: -inf */
    int64_t divisor;       /* of averages; 0: the count of the window */
    int64_t axes_step;     /* from plane to plane in lo and hi: 0, or 1 if each has its own */
    atomic_bool failed;    /* memory is out */
} cfxi_pooling;

/* The largest element of each window, and where it was; the mean of each window. As in PyTorch, the
 * index of a window in the padding alone is what its first place would have, and outside. */
cfx_status cfxi_conv_pool_max(cfxi_pooling *p, cfx_error *err);
cfx_status cfxi_conv_pool_mean(cfxi_pooling *p, cfx_error *err);

/* Of images [N, C, ...] whose channels lie side by side, in any order of the rest, in x and in y;
 * p->x, p->y and p->planes are not used. Whether that can be done; and does it.
 * (pooling_pixels.c) */
bool cfxi_conv_pools_pixels(const cfxi_pooling *p, const cfx_tensor *x, const cfx_tensor *y,
                            bool maximum);
void cfxi_conv_pool_pixels(const cfxi_pooling *p, const cfx_tensor *x, cfx_tensor *y, bool maximum);

#endif
