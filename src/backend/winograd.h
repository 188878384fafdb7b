/* winograd.h - the transforms of Winograd's convolution with windows of 3x3, F(2x2, 3x3).
 *
 *     out = A' ((G w G') * (B' x B)) A           x: 4x4 pixels, w: 3x3, out: 2x2, of one channel
 *
 *          1  0 -1  0           1   0   0             1  1  1  0
 *     B' = 0  1  1  0      G = 1/2 1/2 1/2       A' = 0  1 -1 -1
 *          0 -1  1  0          1/2-1/2 1/2
 *          0  1  0 -1           0   0   1
 *
 * The product between them is by element: 16 multiplications for what otherwise takes 36. Over
 * channels it is a sum, so each of the 16 places is a matrix product of its own.
 */
#ifndef CFXI_WINOGRAD_H
#define CFXI_WINOGRAD_H

#include "runtime/isa.h"

enum { CFXI_WINOGRAD_PLACES = 16, CFXI_WINOGRAD_SIDE = 4 };

/* B' x B of one tile. */
typedef struct cfxi_winograd_in {
    const float *pixels[CFXI_WINOGRAD_PLACES];  /* line by line; zeros for those outside */
    int64_t channels;
    float *to;
    int64_t to_place;  /* from one place to the next */
} cfxi_winograd_in;

/* A' s A of one tile, for some columns. */
typedef struct cfxi_winograd_out {
    const float *sums;
    int64_t sums_place;
    int64_t columns;
    float *to[4];          /* NULL: outside */
    const float *bias;     /* of whole vectors; or NULL */
    const float *add[4];   /* beside `to`; or all NULL */
    float low, high;       /* NaN stays */
} cfxi_winograd_out;

typedef struct cfxi_winograd {
    /* False if not all pixels are finite: then differences of them mean nothing. */
    bool (*in)(const cfxi_winograd_in *t);
    void (*out)(const cfxi_winograd_out *t);
} cfxi_winograd;

CFXI_ISA_TABLES(cfxi_winograd, cfxi_backend_winograd_tile)
const cfxi_winograd *cfxi_backend_winograd_of(cfx_isa isa);  /* (kernel_winograd.c) */

#endif
