/* product_impl.h - matrix products, as kernels use them. */
#ifndef CFXI_PRODUCT_IMPL_H
#define CFXI_PRODUCT_IMPL_H

#include "runtime/runtime_impl.h"

/* C = alpha * A B + beta * C, A is m x k, B k x n; element strides in elements for rows and
 * columns, so that transposed operands need no copy. beta 0 does not read C. On the pool. `bias`
 * (may be NULL) is added: one for each column (or row, if `bias_rows`) of C. */
typedef struct cfxi_gemm {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    void *c;
    int64_t c_row, c_col;
    double alpha, beta;
    const void *bias;
    bool bias_rows;
} cfxi_gemm;
/* `dtype` is float32 or float64; NOMEM if there is no scratch. */
cfx_status cfxi_linalg_gemm_run(cfx_runtime *rt, cfx_dtype dtype, const cfxi_gemm *g,
                                cfx_error *err);

/* out = alpha * a b + beta * out for tensors [..., m, k], [..., k, n] and [..., m, n] of one
 * computable type but bool, batches broadcast, any strides; `out` shares no memory with the others.
 * Integers wrap; 16-bit floats are summed in float32. (product.c) */
typedef struct cfxi_factors {
    double alpha[2], beta[2];  /* real, imaginary */
    const cfx_tensor *bias;    /* added if not NULL: out's type, n contiguous elements */
} cfxi_factors;
cfx_status cfxi_linalg_product(cfxi_call *c, cfx_tensor *out, const cfx_tensor *a,
                               const cfx_tensor *b, const cfxi_factors *factors);
/* A header on the stack that shows the memory of `t`: to change sizes and strides of, never to
 * retain or release. */
static inline cfx_tensor cfxi_linalg_shown(const cfx_tensor *t)
{
    cfx_tensor shown;
    memcpy(&shown, t, sizeof shown);
    return shown;
}
/* How many matrices `out` has, and where number `index` of `t` begins, whose batch is broadcast to
 * out's. (linalg.c) */
int64_t cfxi_linalg_matrix_count(const cfx_tensor *out);
char *cfxi_linalg_matrix_at(const cfx_tensor *t, const cfx_tensor *out, int64_t index);
/* Inserts a dimension of size 1 before dimension `dim`. */
void cfxi_linalg_unsqueeze(cfx_tensor *t, size_t dim);

#endif
