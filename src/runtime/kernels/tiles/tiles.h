/* tiles.h - the inner loop that products and convolutions share: sums of small products.
 *
 *     c[i][j] = clamp(sum over q < count, p < k of a[a_at[q] + i * a_row + p] * b[b_at[q] + p][j]
 *                     + bias[j] + add[i][j], low, high)
 *
 * A product has one pair of blocks (count 1); a convolution has one for each row of its window, and
 * `a` lies in place, because the channels of neighbouring pixels follow each other. `b` is packed
 * in panels of CFXI_PANEL columns: panel n/CFXI_PANEL has k lines of CFXI_PANEL numbers for each
 * pair, the last one padded with zeros. Sums stay in registers from the first product to the last.
 */
#ifndef CFXI_TILES_H
#define CFXI_TILES_H

#include "runtime/isa.h"

enum { CFXI_PANEL = 16, CFXI_TILE_MOST_ROWS = 14, CFXI_TILE_MOST_PANELS = 8 };

typedef struct cfxi_sum_tile {
    const float *a;
    int64_t a_row;          /* from one row to the next */
    const int64_t *a_at;    /* where the q-th block begins */
    const float *b;
    int64_t b_panel;        /* from one panel to the next */
    const int64_t *b_at;
    int64_t count;
    int64_t k;
    float *c;
    int64_t c_row;
    int64_t columns;        /* at most panels * CFXI_PANEL; the others are not written */
    const float *bias;      /* panels * CFXI_PANEL of them; or NULL */
    const float *add;       /* of c's shape; may be c; or NULL */
    int64_t add_row;
    float low, high;        /* -INFINITY, INFINITY: all as it is. NaN stays */
    const float *next;      /* what will be read soon: tiles of several rows bring it into the */
    int64_t next_step;      /* second-level cache, so many floats for each k; or 0 */
} cfxi_sum_tile;

/* A tile of a fixed number of rows and panels. */
typedef void cfxi_sum_tile_fn(const cfxi_sum_tile *t);

/* to[i] = clamp(x[i] * factors[i] + shifts[i], low, high): a row before it is multiplied. `shifts`
 * may be NULL. */
typedef void cfxi_scale_row_fn(int64_t n, const float *x, const float *factors, const float *shifts,
                               float low, float high, float *to);

/* The functions of an instruction set: fn[panels - 1][rows - 1], for all rows up to
 * most_rows[panels - 1], which is 0 for numbers of panels that it has no tiles of. */
typedef struct cfxi_tiles {
    cfxi_sum_tile_fn *fn[CFXI_TILE_MOST_PANELS][CFXI_TILE_MOST_ROWS];
    int most_rows[CFXI_TILE_MOST_PANELS];
    cfxi_scale_row_fn *scale_row;
} cfxi_tiles;

CFXI_ISA_TABLES(cfxi_tiles, cfxi_tiles_all)
const cfxi_tiles *cfxi_tiles_of(cfx_isa isa);  /* (tiles.c) */
/* How many panels n columns are. */
static inline int64_t cfxi_tiles_panels(int64_t n) { return (n + CFXI_PANEL - 1) / CFXI_PANEL; }

/* How a matrix of `rows` rows and `panels` panels is cut into tiles at the least cost. Rows of the
 * left operand are `a_row` floats apart. */
typedef struct cfxi_tiling {
    int rows;
    int panels;
    double cycles;  /* for one k */
} cfxi_tiling;
cfxi_tiling cfxi_tiles_tiling(cfx_isa isa, int64_t rows, int64_t panels, int64_t a_row);
/* The same for tiles that are known by their rows and by the cycles of one k. */
cfxi_tiling cfxi_tiles_cut(const int most_rows[], double (*cycles_of_step)(int rows, int panels),
                           int64_t rows, int64_t panels);
/* Whether AMX, which multiplies `turn` elements of k at a time, or fewer if these are all, pays for
 * products of `rows` rows. (tiles.c) */
bool cfxi_tiles_suit_amx(int64_t rows, int64_t k, int64_t turn);
/* Panels of the next tile of `tiling`, where `left` (at least 1) remain: what is left over may be a
 * number that there are no tiles of. */
int64_t cfxi_tiles_across(const int most_rows[], cfxi_tiling tiling, int64_t left);

#endif
