/* float_rows.c - loops over rows, for each type and instruction set. */
#include "float_rows.h"

#define T float
#define TARGET
#define NAME(x) x##_f32
#include "float_rows.inc"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "float_rows.inc"
#undef T
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define T float
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#include "float_rows.inc"
#undef NAME
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
#define NAME(x) x##_avx512
#include "float_rows.inc"
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
    void (*dots)(const float *g, const float *x, const float *w, int64_t n, float mean,
                 double sums[2]);
    void (*blend)(float *y, const float *g, const float *x, const float *w, int64_t n, float mean,
                  float a, float b, float c);
    void (*gather)(float *dw, float *db, const float *g, const float *x, int64_t n, float mean,
                   float factor);
    void (*columns)(double *sums, const float *x, int64_t rows, int64_t n, const float *mean);
} loops;

static const loops *loops_of(const cfxi_float_rows *r)
{
    static const loops all[CFX_ISA_COUNT] = {
        {sum_f32, squares_f32, scale_f32, affine_f32, dots_f32, blend_f32,
         gather_f32, columns_f32},
#if defined(__x86_64__)
        {sum_avx2, squares_avx2, scale_avx2, affine_avx2, dots_avx2, blend_avx2,
         gather_avx2, columns_avx2},
        {sum_avx512, squares_avx512, scale_avx512, affine_avx512, dots_avx512, blend_avx512,
         gather_avx512, columns_avx512},
#elif defined(__aarch64__)
        [CFX_ISA_NEON] = {sum_f32, squares_f32, scale_f32, affine_f32, dots_f32, blend_f32,
                          gather_f32, columns_f32},
#endif
    };
    return &all[r->rt->isa];
}

double cfxi_reduce_rows_sum(const cfxi_float_rows *r, const void *x, int64_t n)
{
    return r->type == CFX_DTYPE_FLOAT64 ? sum_f64(x, n) : loops_of(r)->sum(x, n);
}

double cfxi_reduce_rows_squares(const cfxi_float_rows *r, const void *x, int64_t n, double mean)
{
    return r->type == CFX_DTYPE_FLOAT64 ? squares_f64(x, n, mean)
                                        : loops_of(r)->squares(x, n, (float)mean);
}

void cfxi_reduce_rows_scale(const cfxi_float_rows *r, void *y, const void *x, int64_t n, double a,
                          double b)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        scale_f64(y, x, n, a, b);
    else
        loops_of(r)->scale(y, x, n, (float)a, (float)b);
}

void cfxi_reduce_rows_affine(const cfxi_float_rows *r, void *y, const void *x, int64_t n,
                             double mean, double factor, const void *w, const void *b)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        affine_f64(y, x, n, mean, factor, w, b);
    else
        loops_of(r)->affine(y, x, n, (float)mean, (float)factor, w, b);
}

void cfxi_reduce_rows_dots(const cfxi_float_rows *r, const void *g, const void *x, const void *w,
                         int64_t n, double mean, double sums[2])
{
    if (r->type == CFX_DTYPE_FLOAT64)
        dots_f64(g, x, w, n, mean, sums);
    else
        loops_of(r)->dots(g, x, w, n, (float)mean, sums);
}

void cfxi_reduce_rows_blend(const cfxi_float_rows *r, void *y, const void *g, const void *x,
                          const void *w, int64_t n, double mean, double a, double b, double c)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        blend_f64(y, g, x, w, n, mean, a, b, c);
    else
        loops_of(r)->blend(y, g, x, w, n, (float)mean, (float)a, (float)b, (float)c);
}

void cfxi_reduce_rows_gather(const cfxi_float_rows *r, void *dw, void *db, const void *g,
                           const void *x, int64_t n, double mean, double factor)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        gather_f64(dw, db, g, x, n, mean, factor);
    else
        loops_of(r)->gather(dw, db, g, x, n, (float)mean, (float)factor);
}

void cfxi_reduce_rows_columns(const cfxi_float_rows *r, double *sums, const void *x, int64_t rows,
                              int64_t n, const void *mean)
{
    if (r->type == CFX_DTYPE_FLOAT64)
        columns_f64(sums, x, rows, n, mean);
    else
        loops_of(r)->columns(sums, x, rows, n, mean);
}
