/* depthwise.h - the inner loop of depthwise convolutions: one line of the result.
 *
 *     y[i][c] = clamp(sum over r < lines, s < places of
 *                         x[r][left + i * step + s * gap][c] * w[r][s][c]
 *                     + bias[c] + add[i][c], low, high)
 *
 * Places whose column is outside of the image are left out. Where channels are in small groups,
 * which have as many results, there is a sum over these, too, w[r][s][tap][c]:
 *
 *     ... x[r][left + i * step + s * gap][c - c % taps + tap] * w[r][s][tap][c]
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
    int64_t taps;              /* channels of a group; 1 for `lines` */
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
/* For groups of `channels`; NULL where there is nothing better than products. (depthwise.c) */
extern const cfxi_depthwise cfxi_depthwise_groups_avx512, cfxi_depthwise_groups_avx2;
const cfxi_depthwise *cfxi_depthwise_groups_of(cfx_isa isa, int64_t channels);

#endif
