/* weight_only.h - products of floats with weights of 8 or 4 bits, which are packed once.
 *
 *     c[i][j] = bias[j] + sum over groups g of scale[g][j] * (sum over k in g of
 *                                                             a[i][k] * (code[k][j] - zero[g][j]))
 *
 * Few rows wait for the weights to come from memory, so these stay small until they are in
 * registers. Many rows take them as floats, a block at a time: `widen`.
 *
 * Words of 32 bits have the codes of 8 or 4 neighbours of k, the first in the lowest bits, with
 * their signs. A panel has so many columns, and for each group a line of scales, a line of zero
 * points as floats if there are any, then `words` lines of words, all in one stream. Rows of `a`
 * have words * codes floats for each group: who has a group of another length fills both up with
 * zeros.
 */
#ifndef CFXI_WEIGHT_ONLY_H
#define CFXI_WEIGHT_ONLY_H

#include "tiles.h"

typedef struct cfxi_weight_only_tile {
    int bits;            /* of a code: 4 or 8 */
    bool zeros;          /* there are zero points */
    const float *a;
    int64_t a_row;       /* from one row to the next */
    const float *b;      /* the panel */
    int64_t groups;
    int64_t words;       /* of a group, in each column */
    float *c;
    int64_t c_row;
    int64_t columns;     /* those that are written */
    const float *bias;   /* of a whole panel; or NULL */
} cfxi_weight_only_tile;

/* Lines of words as floats: to[k][CFXI_PANEL] of (code - zero) * scale, for each CFXI_PANEL columns
 * of the panel, `to_panel` floats apart. */
typedef struct cfxi_weight_only_block {
    int bits;
    bool zeros;
    const float *b;
    int64_t words;
    int64_t first, end;  /* lines, counted through all groups */
    float *to;
    int64_t to_panel;
} cfxi_weight_only_block;

typedef struct cfxi_weight_only {
    int columns;    /* of a panel: a multiple of CFXI_PANEL */
    int most_rows;  /* that `sum` takes */
    int few_rows;   /* a product with more than these is faster with weights as floats */
    void (*sum)(const cfxi_weight_only_tile *t, int rows);
    void (*widen)(const cfxi_weight_only_block *t);
} cfxi_weight_only;

CFXI_ISA_TABLES(cfxi_weight_only, cfxi_tiles_weight_only)
const cfxi_weight_only *cfxi_tiles_weight_only_of(cfx_isa isa);  /* (tiles.c) */

/* Floats of a group of a panel: lines of scales, zero points and words. */
static inline int64_t cfxi_tiles_weight_only_group(int columns, bool zeros, int64_t words)
{
    return columns * (1 + zeros + words);
}

#endif
