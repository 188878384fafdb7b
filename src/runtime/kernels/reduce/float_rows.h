/* float_rows.h - loops over rows of float32 or float64, for norms and gradients. (float_rows.c) */
#ifndef CFXI_FLOAT_ROWS_H
#define CFXI_FLOAT_ROWS_H

#include "runtime/runtime_impl.h"

/* Rows are dense; `type` is float32 or float64, and so are x, y, w and b. */
typedef struct cfxi_float_rows {
    cfx_runtime *rt;
    cfx_dtype type;
} cfxi_float_rows;

double cfxi_reduce_rows_sum(const cfxi_float_rows *r, const void *x, int64_t n);
/* The sum of (x - mean)^2. */
double cfxi_reduce_rows_squares(const cfxi_float_rows *r, const void *x, int64_t n, double mean);
/* y = x * a + b */
void cfxi_reduce_rows_scale(const cfxi_float_rows *r, void *y, const void *x, int64_t n, double a,
                          double b);
/* y = (x - mean) * factor * w + b, w and b for each element; either may be NULL. */
void cfxi_reduce_rows_affine(const cfxi_float_rows *r, void *y, const void *x, int64_t n,
                             double mean, double factor, const void *w, const void *b);

/* sums[j] += the sum of x[row][j] over `rows` rows of n; with means, of (x - mean[j])^2. */
void cfxi_reduce_rows_columns(const cfxi_float_rows *r, double *sums, const void *x, int64_t rows,
                              int64_t n, const void *mean);

/* ---- of gradients: g is that of the result, w (for each element) may be NULL -------------------
 */

/* sums[0] += the sum of g * w, sums[1] += that of g * w * (x - mean). */
void cfxi_reduce_rows_dots(const cfxi_float_rows *r, const void *g, const void *x, const void *w,
                         int64_t n, double mean, double sums[2]);
/* y = g * w * a + (x - mean) * b + c */
void cfxi_reduce_rows_blend(const cfxi_float_rows *r, void *y, const void *g, const void *x,
                          const void *w, int64_t n, double mean, double a, double b, double c);
/* dw += g * (x - mean) * factor and db += g, element by element. */
void cfxi_reduce_rows_gather(const cfxi_float_rows *r, void *dw, void *db, const void *g,
                           const void *x, int64_t n, double mean, double factor);

#endif
