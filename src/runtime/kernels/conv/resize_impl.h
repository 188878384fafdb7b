/* resize_impl.h - resizing along one axis, by weights: what the ways of resizing share. */
#ifndef CFXI_RESIZE_IMPL_H
#define CFXI_RESIZE_IMPL_H

#include "runtime/spatial.h"

/* Place o is the sum of weight[o * taps + k] * place index[o * taps + k]. */
typedef struct cfxi_resize_axis {
    int64_t in;
    int64_t out;
    int64_t taps;
    int64_t *index;
    double *weight;
    int bits;  /* of weights that are integers */
} cfxi_resize_axis;

/* The weight of a place that is `x` away, by the cubic whose shape `a` gives. */
double cfxi_conv_cubic(double x, double a);
/* Resizes [outer, in, inner] to [outer, out, inner]: float32, float64 or uint8, contiguous. */
void cfxi_conv_resize_pass(cfx_dtype type, const cfxi_resize_axis *a, int64_t outer, int64_t inner,
                           const void *x, void *y);

/* Whether the images can be resized where they lie, with channels last; and does it. An axis
 * without taps has one place. (resize_pixels.c) */
bool cfxi_conv_resizes_pixels(const cfx_runtime *rt, const cfxi_resize_axis axes[CFXI_SPATIAL],
                              const cfx_tensor *x, const cfx_tensor *y);
void cfxi_conv_resize_pixels(cfx_runtime *rt, const cfxi_resize_axis axes[CFXI_SPATIAL],
                             const cfx_tensor *x, cfx_tensor *y);

#endif
