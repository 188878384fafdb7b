/* bytes.h - tiles of 8-bit integers: exact sums of small products as in tiles.h, and what becomes
 * of them.
 *
 *     sum[i][j] = first[j] + sum over q < count, p < k of a[a_at[q] + i * a_row + p] * b[q][p][j]
 *                 - a_sums[i] * b_zero[j]
 *
 * `a` is unsigned, `b` signed. `b` is packed in panels of CFXI_PANEL columns, steps of four k: a
 * step is CFXI_PANEL columns of four bytes each. After the last k come zeros up to a whole number
 * of steps; what `a` has there is read, but does not count. Sums are in 32 bits; on the way they
 * may wrap around.
 *
 * Then, as docs/quantization.md says:
 *
 *     r = fma(float(sum), factor[j], bias[j])        a float, or
 *     q = rint(clamp(r, low, high)) + zero           8 bits; low and high are without the zero
 *
 * or that and a sum with another matrix of integers, of which either is the first operand:
 *
 *     r = fma(float(q - own_zero), own_factor, float(other - other_zero) * other_factor)
 *     q = rint(clamp(r, low2, high2)) + zero2
 */
#ifndef CFXI_BYTES_H
#define CFXI_BYTES_H

#include "tiles.h"

enum { CFXI_STEP = 4, CFXI_BYTES_MOST_ROWS = 32 };

/* What becomes of a sum. */
typedef struct cfxi_byte_end {
    bool to_float;         /* r; and nothing else here counts */
    float low, high;
    int32_t zero;
    bool adds;             /* another matrix */
    bool other_signed;
    bool other_first;      /* r = fma(float(other - other_zero), other_factor, ...) */
    int32_t own_zero, other_zero;
    float own_factor, other_factor;
    float low2, high2;
    int32_t zero2;
} cfxi_byte_end;

/* Some tiles, one below the other. */
typedef struct cfxi_byte_tile {
    int64_t down;           /* how many */
    const uint8_t *a;
    int64_t a_row;          /* from one row to the next */
    const int64_t *a_at;    /* where the q-th block begins */
    const int8_t *b;
    int64_t b_panel;        /* from one panel to the next */
    const int64_t *b_at;
    int64_t count;
    int64_t k;
    int64_t columns;        /* at most panels * CFXI_PANEL; the others are not written */
    const int32_t *first;   /* panels * CFXI_PANEL of each */
    const float *factor, *bias;
    const int32_t *b_zero;  /* or NULL */
    const int32_t *a_sums;  /* of all k of a row: with b_zero */
    const cfxi_byte_end *end;
    void *c;                /* floats or bytes */
    int64_t c_row;          /* in such elements */
    const uint8_t *other;   /* or NULL */
    int64_t other_row;
    const int8_t *next;     /* what will be read soon: tiles of several rows bring it into the */
    int64_t next_step;      /* second-level cache, so many bytes for each step; or 0 */
} cfxi_byte_tile;

typedef struct cfxi_bytes {
    const char *name;
    /* Tiles of 1 to most_rows[panels - 1] rows; 0 for numbers of panels that there are none of. */
    void (*tile)(const cfxi_byte_tile *t, int rows, int panels);
    /* Three planes as n pixels of four bytes, the last of which is 0; `flip` changes signs. */
    void (*interleave)(int64_t n, const uint8_t *from, int64_t plane, uint8_t flip, uint8_t *to);
    int most_rows[CFXI_TILE_MOST_PANELS];
    int steps;  /* that the length of a product must be a multiple of, if it is not less: `a` is
                   read up to there, or up to the next CFXI_STEP */
    double (*cycles)(int rows, int panels);  /* of one step */
} cfxi_bytes;

CFXI_ISA_TABLES(cfxi_bytes, cfxi_tiles_bytes)
extern const cfxi_bytes cfxi_tiles_bytes_avxvnni, cfxi_tiles_bytes_vnni, cfxi_tiles_bytes_amx;

/* Without what is for 8-bit integers. (bytes.c) */
const cfxi_bytes *cfxi_tiles_bytes_of_isa(cfx_isa isa);
/* What suits products of `rows` rows and `k` bytes. (bytes.c) */
const cfxi_bytes *cfxi_tiles_bytes_of(cfx_isa isa, cfxi_int8 int8, int64_t rows, int64_t k);
/* How a matrix whose sums have k products is cut into tiles at the least cost. (bytes.c) */
cfxi_tiling cfxi_tiles_bytes_tiling(const cfxi_bytes *bytes, int64_t rows, int64_t panels,
                                    int64_t k);

#endif
