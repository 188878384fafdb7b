/* float_rows.h - loops over rows of float32 or float64, for norms, gradients and reductions. */
#ifndef CFXI_FLOAT_ROWS_H
#define CFXI_FLOAT_ROWS_H

#include "runtime/runtime_impl.h"

/* Of n adjacent elements of one type, which is that of all rows; for each instruction set
 * (float_rows_vector.h). */
typedef struct cfxi_rows {
    double (*sum)(const void *x, int64_t n);
    /* The sum of (x - mean)^2. */
    double (*squares)(const void *x, int64_t n, double mean);
    /* y += x */
    void (*add)(void *y, const void *x, int64_t n);
    /* y = x * a + b; y may be x. */
    void (*scale)(void *y, const void *x, int64_t n, double a, double b);
    /* y = (x - mean) * factor * w + b, w and b for each element; either may be NULL. */
    void (*affine)(void *y, const void *x, int64_t n, double mean, double factor, const void *w,
                   const void *b);
    /* sums[j] += the sum of x[row][j] over `rows` rows of n; with means, of (x - mean[j])^2. */
    void (*columns)(double *sums, const void *x, int64_t rows, int64_t n, const void *mean);

    /* ---- of gradients: g is that of the result, w (for each element) may be NULL ----------- */

    /* sums[0] += the sum of g * w, sums[1] += that of g * w * (x - mean). */
    void (*dots)(const void *g, const void *x, const void *w, int64_t n, double mean,
                 double sums[2]);
    /* y = g * w * a + (x - mean) * b + c */
    void (*blend)(void *y, const void *g, const void *x, const void *w, int64_t n, double mean,
                  double a, double b, double c);
    /* dw += g * (x - mean) * factor and db += g, element by element. */
    void (*gather)(void *dw, void *db, const void *g, const void *x, int64_t n, double mean,
                   double factor);
} cfxi_rows;

/* What rows are computed with: `type` is float32 or float64. */
typedef struct cfxi_float_rows {
    cfx_runtime *rt;
    cfx_dtype type;
} cfxi_float_rows;
const cfxi_rows *cfxi_reduce_rows(const cfxi_float_rows *r);  /* (element_run.c) */

#endif
