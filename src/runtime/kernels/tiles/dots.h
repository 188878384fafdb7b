/* dots.h - tiles of bfloat16: sums of products as in tiles.h, whose operands are rounded.
 *
 * A tile is the same, but a float of `b` stands for a pair: two elements of bfloat16, neighbours of
 * k, the first in the lower half. Steps of k are pairs, so panels take half of the memory. `a` has
 * pairs, too, or, where the machine has no instruction for them, two floats of rounded elements:
 * `width`. Who has an odd number of elements fills them up with a zero on both sides. Sums are
 * float32; elements below the normal range may count as zero.
 */
#ifndef CFXI_DOTS_H
#define CFXI_DOTS_H

#include "tiles.h"

enum { CFXI_DOTS_MOST_ROWS = 32 };

typedef struct cfxi_dots {
    const char *name;
    /* A tile of 1 to most_rows[panels - 1] rows; 0 for numbers of panels that there are none of. */
    void (*tile)(const cfxi_sum_tile *t, int rows, int panels);
    int most_rows[CFXI_TILE_MOST_PANELS];
    int width;  /* floats of `a` for each pair */
    int pairs;  /* that the length of a product must be a multiple of, if it is not less */
    double (*cycles)(int rows, int panels);  /* of one step of k */
    /* n elements as `a` has them: n * width / 2 floats. */
    void (*round)(int64_t n, const float *from, void *to);
} cfxi_dots;

CFXI_ISA_TABLES(cfxi_dots, cfxi_tiles_dots)
extern const cfxi_dots cfxi_tiles_dots_bf16, cfxi_tiles_dots_amx;

const cfxi_dots *cfxi_tiles_dots_of_isa(cfx_isa isa);  /* without what is for bfloat16 (dots.c) */
/* What suits products of `rows` rows and `pairs` pairs. (dots.c) */
const cfxi_dots *cfxi_tiles_dots_of(cfx_isa isa, cfxi_bf16 bf16, int64_t rows, int64_t pairs);
/* How a matrix is cut into tiles at the least cost. (dots.c) */
cfxi_tiling cfxi_tiles_dots_tiling(const cfxi_dots *dots, int64_t rows, int64_t panels);

#endif
