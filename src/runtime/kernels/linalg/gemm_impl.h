/* gemm_impl.h - the inner loops of matrix products: one set for each type and instruction set. */
#ifndef CFXI_GEMM_IMPL_H
#define CFXI_GEMM_IMPL_H

#include "product_impl.h"

#include "runtime/isa.h"

enum { CFXI_DOT_ROWS = 4, CFXI_DOT_COLUMNS = 4, CFXI_MOST_TILE = 12 * 32 };

/* Where a tile of sums goes: c = alpha * sums + beta * c + bias. Columns of c lie side by side. */
typedef struct cfxi_gemm_tile {
    void *c;
    int64_t c_row;
    double alpha, beta;
    const void *bias;  /* of this tile; may be NULL */
    bool bias_rows;
} cfxi_gemm_tile;

typedef struct cfxi_gemm_kernel {
    int rows, columns;  /* of a tile */
    size_t size;        /* of an element */
    /* The tile of `rows` rows (at most those above) of packed panels: `a` has k times `rows`
     * elements, `b` k times `columns`, both padded with zeros. */
    void (*packed)(int rows, int64_t k, const void *a, const void *b, const cfxi_gemm_tile *t);
    /* The same, where both lie in place: A with any strides, B with columns side by side. */
    void (*direct)(int rows, int64_t k, const void *a, int64_t a_row, int64_t a_col, const void *b,
                   int64_t b_row, const cfxi_gemm_tile *t);
    /* c[i][j] = row i of A by row j of B^T, both contiguous along k: at most CFXI_DOT_ROWS rows,
     * any number of columns. */
    void (*dots)(int rows, int64_t columns, int64_t k, const void *a, int64_t a_row, const void *b,
                 int64_t b_col, void *c, int64_t c_row);
    /* One panel: `count` lines of k elements, `across` apart, their elements `along` apart, laid
     * side by side in lines of `width`; the rest of each line is zero. */
    void (*pack)(void *to, int64_t width, const void *from, int64_t across, int64_t along,
                 int64_t count, int64_t k);
} cfxi_gemm_kernel;

typedef struct cfxi_gemm_kernels {
    const cfxi_gemm_kernel *f32, *f64;
} cfxi_gemm_kernels;

CFXI_ISA_TABLES(cfxi_gemm_kernels, cfxi_linalg_gemm_all)
const cfxi_gemm_kernels *cfxi_linalg_gemm_of(cfx_isa isa);  /* (gemm.c) */

/* Products of float32 through tiles: whether this is one that they compute; and does it.
 * (gemm_tiles.c) */
bool cfxi_linalg_gemm_takes_tiles(const cfxi_gemm *g);
cfx_status cfxi_linalg_gemm_tiles(cfx_runtime *rt, const cfxi_gemm *g, cfx_error *err);

#endif
