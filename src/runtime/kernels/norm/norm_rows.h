/* norm_rows.h - loops over rows of float32 or float64 that normalisation is made of. (norm_rows.c)
 */
#ifndef CFXI_NORM_ROWS_H
#define CFXI_NORM_ROWS_H

#include "runtime/runtime_impl.h"

/* Rows are dense; `type` is float32 or float64, and so are x, y, w and b. */
typedef struct cfxi_norm_rows {
    cfx_runtime *rt;
    cfx_dtype type;
} cfxi_norm_rows;

double cfxi_norm_rows_sum(const cfxi_norm_rows *r, const void *x, int64_t n);
/* The sum of (x - mean)^2. */
double cfxi_norm_rows_squares(const cfxi_norm_rows *r, const void *x, int64_t n, double mean);
/* y = x * a + b */
void cfxi_norm_rows_scale(const cfxi_norm_rows *r, void *y, const void *x, int64_t n, double a,
                          double b);
/* y = (x - mean) * factor * w + b, w and b for each element; either may be NULL. */
void cfxi_norm_rows_affine(const cfxi_norm_rows *r, void *y, const void *x, int64_t n, double mean,
                           double factor, const void *w, const void *b);
/* sums[j] += the sum of x[row][j] over `rows` rows of n; with means, of (x - mean[j])^2. */
void cfxi_norm_rows_columns(const cfxi_norm_rows *r, double *sums, const void *x, int64_t rows,
                            int64_t n, const void *mean);

#endif
