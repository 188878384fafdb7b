/* depthwise.h - the inner loop of depthwise convolutions: one line of the result.
 *
 *     y[i][c] = clamp(sum over r < lines, s < places of
 *                         x[r][left + i * step + s * gap][c] * w[r][s][c]
 *                     + bias[c] + add[i][c], low, high)
 *
 * Places whose column is outside of the image are left out.
 */
#ifndef CFXI_DEPTHWISE_H
#define CFXI_DEPTHWISE_H

#include "runtime/isa.h"

typedef struct cfxi_depthwise_line {
    int64_t pixels, channels;
    const float *x;            /* column 0 of the image, on the first line of the windows */
    int64_t x_column, x_line;  /* from column to column; from line to line of a window */
    int64_t columns;           /* of the image */
    int64_t left;              /* the first column of the window of pixel 0: may be below 0 */
    int64_t step;              /* columns from window to window */
    int64_t gap;               /* columns from place to place */
    int64_t lines, places;
    const float *w;
    int64_t w_line, w_place;
    float *y;
    int64_t y_pixel;
    const float *bias;  /* or NULL */
    const float *add;   /* or NULL; may be y */
    int64_t add_pixel;
    float low, high;
} cfxi_depthwise_line;

typedef struct cfxi_depthwise {
    void (*line)(const cfxi_depthwise_line *t);
} cfxi_depthwise;

CFXI_ISA_TABLES(cfxi_depthwise, cfxi_depthwise_lines)
const cfxi_depthwise *cfxi_depthwise_of(cfx_isa isa);  /* (depthwise.c) */

#endif
