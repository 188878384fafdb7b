/* gemm.c - matrix products. */
#include "runtime_impl.h"

#define PLAIN_GEMM(name, type)                                                                     \
    static void name(const cfxi_gemm *g)                                                           \
    {                                                                                              \
        const type *a = g->a;                                                                      \
        const type *b = g->b;                                                                      \
        const type *bias = g->bias;                                                                \
        type *c = g->c;                                                                            \
        for (int64_t i = 0; i < g->m; i++)                                                         \
            for (int64_t j = 0; j < g->n; j++) {                                                   \
                type sum = 0;                                                                      \
                for (int64_t p = 0; p < g->k; p++)                                                 \
                    sum += a[i * g->a_row + p * g->a_col] * b[p * g->b_row + j * g->b_col];        \
                type *at = c + i * g->c_row + j * g->c_col;                                        \
                *at = (type)g->alpha * sum + (g->beta == 0 ? 0 : (type)g->beta * *at) +            \
                      (bias ? bias[g->bias_rows ? i : j] : 0);                                     \
            }                                                                                      \
    }
PLAIN_GEMM(plain_f32, float)
PLAIN_GEMM(plain_f64, double)

cfx_status cfxi_gemm_run(cfx_runtime *rt, cfx_dtype dtype, const cfxi_gemm *g, cfx_error *err)
{
    (void)rt;
    if (dtype == CFX_DTYPE_FLOAT32)
        plain_f32(g);
    else if (dtype == CFX_DTYPE_FLOAT64)
        plain_f64(g);
    else
        return cfx_error_set(err, CFX_E_TYPE, "no matrix product of %s", cfx_dtype_name(dtype));
    return CFX_OK;
}
