/* conv_impl.h - a convolution with everything known: what its kernels work on. */
#ifndef CFXI_CONV_IMPL_H
#define CFXI_CONV_IMPL_H

#include "runtime/isa.h"
#include "runtime/spatial.h"

/* Sizes and strides for depth, height, width; a flat image has depth 1. Strides in elements. */
typedef struct cfxi_conv {
    int64_t batch;
    int64_t groups;
    int64_t in_channels;   /* of a group */
    int64_t out_channels;  /* of a group */
    bool transposed;
    int64_t in[CFXI_SPATIAL];
    int64_t out[CFXI_SPATIAL];
    int64_t kernel[CFXI_SPATIAL];
    int64_t stride[CFXI_SPATIAL];
    int64_t before[CFXI_SPATIAL];  /* padding; what follows the image is told by `out` */
    int64_t dilation[CFXI_SPATIAL];
    const void *x;
    int64_t xs[2 + CFXI_SPATIAL];  /* batch, channel, depth, height, width */
    const void *w;
    int64_t ws[2 + CFXI_SPATIAL];  /* output channel, input channel, depth, height, width */
    int64_t wg;                    /* from group to group */
    const void *bias;              /* dense; or NULL */
    void *y;
    int64_t ys[2 + CFXI_SPATIAL];
} cfxi_conv;

/* A call of a convolution, after its rule, as it would be computed. (conv.c) */
cfx_status cfxi_conv_describe(cfxi_call *c, cfxi_conv *p);

/* Any type that cfxi_rt_compute_dtype gives, one element after the other. (conv_plain.c) */
void cfxi_conv_plain(cfx_runtime *rt, cfx_dtype dtype, const cfxi_conv *p);
/* float32, fast, where it pays: windows that are much wider than the image would be copied with
 * their zeros, and steps of a transposed convolution that are almost as wide as the output leave
 * lattices of a place or two. (conv_fast.c) */
bool cfxi_conv_fast_pays(const cfxi_conv *p);
cfx_status cfxi_conv_fast(cfx_runtime *rt, const cfxi_conv *p, cfx_error *err);

/* ---- tiles (conv_tile_vector.h) ------------------------------------------------------------ */

enum { CFXI_TILE_ROWS = 8, CFXI_TILE_COLUMNS = 48 };

/* c[r][j] = bias[r] + sum over i < k of a[i][r] * b[offset[i] + j], for rows r < rows <=
 * CFXI_TILE_ROWS and columns j < columns <= CFXI_TILE_COLUMNS. a has CFXI_TILE_ROWS for each i, and
 * there are as many biases. */
typedef struct cfxi_tile {
    int64_t k;
    const float *a;
    const float *b;
    const int64_t *offset;
    const float *bias;
    float *c;
    int64_t c_row;
    int rows;
    int columns;
} cfxi_tile;

typedef struct cfxi_conv_tiles {
    void (*tile)(const cfxi_tile *t);
    void (*row)(const cfxi_tile *t);  /* one row: a has one for each i; any number of columns */
} cfxi_conv_tiles;

CFXI_ISA_TABLES(cfxi_conv_tiles, cfxi_conv_tiles_all)
const cfxi_conv_tiles *cfxi_conv_tiles_of(cfx_isa isa);  /* (conv_fast.c) */

#endif
