/* norm_rows.c - loops over rows, for each type and instruction set. */
#include "norm_rows.h"

#define T float
#define TARGET
#define NAME(x) x##_f32
#include "norm_rows.inc"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "norm_rows.inc"
#undef T
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define T float
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#include "norm_rows.inc"
#undef NAME
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
#define NAME(x) x##_avx512
#include "norm_rows.inc"
#undef NAME
#undef TARGET
#undef T
#endif

typedef struct loops {
    double (*sum)(const float *x, int64_t n);
    double (*squares)(const float *x, int64_t n, float mean);
    void (*scale)(float *y, const float *x, int64_t n, float a, float b);
    void (*affine)(float *y, const float *x, int64_t n, float mean, float factor, const float *w,
                   const float *b);
    void (*columns)(double *sums, const float *x, int64_t rows, int64_t n, const float *mean);
} loops;

static const loops *loops_of(const cfxi_norm_rows *r)
{
    static const loops all[CFX_ISA_COUNT] = {
        {sum_f32, squares_f32, scale_f32, affine_f32, columns_f32},
#if defined(__x86_64__)
        {sum_avx2, squares_avx2, scale_avx2, affine_avx2, columns_avx2},
        {sum_avx512, squares_avx512, scale_avx512, affine_avx512, columns_avx512},
#endif
    };
    return &all[r->rt->isa];
}

double cfxi_norm_rows_sum(const cfxi_norm_rows *r, const void *x, int64_t n)
{
    return r->type == CFX_DTYPE_FLOAT64 ? sum_f64(x, n) : loops_of(r)->sum(x, n);
}

double cfxi_norm_rows_squares(const cfxi_norm_rows *r, const void *x, int64_t n, double mean)
{
    return r->type == CFX_DTYPE_FLOAT64 ? squares_f64(x, n, mean)
                                        : loops_of(r)->squares(x, n, (float)mean);
}

void cfxi_norm_rows_scale(const cfxi_norm_rows *r, void *y, const void *x, int64_t n, double a,
                          double b)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        scale_f64(y, x, n, a, b);
    else
        loops_of(r)->scale(y, x, n, (float)a, (float)b);
}

void cfxi_norm_rows_affine(const cfxi_norm_rows *r, void *y, const void *x, int64_t n, double mean,
                           double factor, const void *w, const void *b)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        affine_f64(y, x, n, mean, factor, w, b);
    else
        loops_of(r)->affine(y, x, n, (float)mean, (float)factor, w, b);
}

void cfxi_norm_rows_columns(const cfxi_norm_rows *r, double *sums, const void *x, int64_t rows,
                            int64_t n, const void *mean)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        columns_f64(sums, x, rows, n, mean);
    else
        loops_of(r)->columns(sums, x, rows, n, mean);
}
