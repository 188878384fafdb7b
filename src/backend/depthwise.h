/* depthwise.h - the inner loop of depthwise convolutions: neighbouring pixels of a line whose
 * windows lie inside of the image.
 *
 *     y[i][c] = clamp(sum over r < lines, s < places of x[i][r][s][c] * w[r][s][c]
 *                     + bias[c] + add[i][c], low, high)
 */
#ifndef CFXI_DEPTHWISE_H
#define CFXI_DEPTHWISE_H

#include "runtime/isa.h"

typedef struct cfxi_depthwise_line {
    int64_t pixels, channels;
    const float *x;
    int64_t x_pixel, x_line, x_place;  /* from pixel to pixel of y; lines and places of a window */
    int64_t lines, places;
    const float *w;
    int64_t w_line, w_place;
    float *y;
    int64_t y_pixel;
    const float *bias;  /* or NULL */
    const float *add;   /* or NULL */
    int64_t add_pixel;
    float low, high;
} cfxi_depthwise_line;

typedef struct cfxi_depthwise {
    void (*line)(const cfxi_depthwise_line *t);
} cfxi_depthwise;

CFXI_ISA_TABLES(cfxi_depthwise, cfxi_backend_depthwise_line)
const cfxi_depthwise *cfxi_backend_depthwise_of(cfx_isa isa);  /* (kernel_depthwise.c) */

#endif
