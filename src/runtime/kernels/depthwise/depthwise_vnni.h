/* depthwise_vnni.h - lines of depthwise convolutions by AVX512_VNNI: up to 64 channels of a line of
 * the result.
 *
 * The instruction adds four products to a sum: those of four lines of a window at one place. The
 * bytes of four lines are interleaved once for each column of the image, for all windows that see
 * it. Each window has all of its lines: those that are outside of the image, and columns that are,
 * have the zero point of x.
 *
 * Channels are in an order that interleaving gives and packing takes back: number i of vector v of
 * four is channel 16 * (i / 4) + 4 * v + i % 4.
 */
#ifndef CFXI_DEPTHWISE_VNNI_H
#define CFXI_DEPTHWISE_VNNI_H

#include "runtime/kernels/tiles/bytes.h"

enum {
    CFXI_BLOCK = 64,         /* channels */
    CFXI_BLOCK_VECTORS = 4,
    CFXI_BLOCK_LINES = 4,    /* of a window, that are multiplied together */
    CFXI_BLOCK_MOST_LINES = 8
};

typedef struct cfxi_byte_block {
    int64_t pixels;
    int64_t channels;         /* 1 to CFXI_BLOCK */
    /* Of each line of the window: column 0 of the image, and from column to column. Lines that are
     * outside of the image, and those that fill up four, are CFXI_BLOCK zero points, step 0. */
    const uint8_t *x[CFXI_BLOCK_MOST_LINES];
    int64_t x_column[CFXI_BLOCK_MOST_LINES];
    uint8_t x_zero;
    int64_t columns;          /* of the image */
    int64_t left;             /* the first column of the window of pixel 0: may be below 0 */
    int64_t step;             /* columns from window to window: 1 or 2 */
    int64_t lines, places;    /* places: 3, 5 or 7 */
    const int8_t *w;          /* [four lines][place][vector][number in it][line] */
    const int32_t *first;     /* what sums begin with: [vector][number in it], */
    const float *factor, *bias;  /* like these */
    const cfxi_byte_end *end; /* bytes, and no sum with others */
    uint8_t *y;
    int64_t y_pixel;
} cfxi_byte_block;

/* Where a machine has AVX512_VNNI. */
void cfxi_depthwise_vnni_line(const cfxi_byte_block *t);
/* The channel of a block that is number `i` of vector `v`. */
static inline int64_t cfxi_depthwise_channel_at(int64_t v, int64_t i)
{
    return 16 * (i / 4) + 4 * v + i % 4;
}

#endif
