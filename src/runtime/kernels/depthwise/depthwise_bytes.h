/* depthwise_bytes.h - the inner loop of depthwise convolutions of 8-bit integers: one line of the
 * result.
 *
 *     sum[i][c] = sum over r < lines, s < places of
 *                     (x[r][left + i * step + s * gap][c] - x_zero) * w[r][s][c]
 *
 * Places whose column is outside of the image are left out. Weights are whole numbers, their zero
 * points taken off, and sums are below 2^24, so that floats have them exactly. What becomes of them
 * is in bytes.h.
 */
#ifndef CFXI_DEPTHWISE_BYTES_H
#define CFXI_DEPTHWISE_BYTES_H

#include "runtime/kernels/tiles/bytes.h"

typedef struct cfxi_byte_line {
    int64_t pixels, channels;
    const uint8_t *x;          /* column 0 of the image, on the first line of the windows */
    int64_t x_column, x_line;  /* from column to column; from line to line of a window */
    bool x_signed;
    int32_t x_zero;
    int64_t columns;           /* of the image */
    int64_t left;              /* the first column of the window of pixel 0: may be below 0 */
    int64_t step;              /* columns from window to window */
    int64_t gap;               /* columns from place to place */
    int64_t lines, places;
    const float *w;
    int64_t w_line, w_place;
    const float *factor, *bias;
    const cfxi_byte_end *end;
    void *y;                   /* floats or bytes */
    int64_t y_pixel;           /* in such elements */
    const uint8_t *other;      /* or NULL; may be y */
    int64_t other_pixel;
} cfxi_byte_line;

typedef struct cfxi_byte_lines {
    void (*line)(const cfxi_byte_line *t);
} cfxi_byte_lines;

CFXI_ISA_TABLES(cfxi_byte_lines, cfxi_depthwise_byte_lines)
const cfxi_byte_lines *cfxi_depthwise_bytes_of(cfx_isa isa);  /* (depthwise.c) */

#endif
