/* pixels.h - rows of channels that lie side by side, combined: what pooling and resizing of images
 * with channels last are made of. For each instruction set. */
#ifndef CFXI_PIXELS_H
#define CFXI_PIXELS_H

#include "runtime/isa.h"

enum { CFXI_MOST_PIXELS = 64 };  /* that are combined at once */

/* Windows that follow one another: n channels of `count` >= 1 pixels, at most CFXI_MOST_PIXELS, are
 * combined; with `more` also what y has so far. Those of the next window begin `step` bytes later,
 * and what it gives `y_step` bytes later. */
typedef struct cfxi_windows {
    const char *const *x;  /* of the first window */
    int64_t count;
    int64_t n;
    bool more;
    char *y;
    int64_t windows;
    int64_t step, y_step;
} cfxi_windows;

typedef struct cfxi_pixels {
    /* The largest; what is not a number wins. */
    void (*most)(const cfxi_windows *w);
    /* The largest of uint8, or of int8. */
    void (*most_bytes)(const cfxi_windows *w, bool is_signed);
    /* The sum over `by`. */
    void (*mean)(const cfxi_windows *w, float by);
    /* The sum of n channels of `count` pixels, each times its weight. */
    void (*mix)(const float *const *x, const float *weights, int64_t count, int64_t n, float *y);
} cfxi_pixels;

CFXI_ISA_TABLES(cfxi_pixels, cfxi_conv_pixels)
const cfxi_pixels *cfxi_conv_pixels_of(cfx_isa isa);

/* The channels of an image lie side by side, with whole elements between them. */
static inline bool cfxi_conv_has_channels_last(const cfx_tensor *t)
{
    return t->size[1] > 1 && t->stride[1] == (int64_t)cfxi_tensor_itemsize(t) &&
           cfxi_tensor_has_whole_strides(t);
}

/* Likewise, and they are float32. */
static inline bool cfxi_conv_has_pixels(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_FLOAT32 && cfxi_conv_has_channels_last(t);
}

#endif
