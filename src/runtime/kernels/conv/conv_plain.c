/* conv_plain.c - convolution one output element after the other: the oracle, and what computes the
 * types that are rare. */
#include "conv_impl.h"

#include <complex.h>

/* The coordinate of the input that tap `k` brings to output `o` in dimension d; -1 if none. */
static inline int64_t source(const cfxi_conv *p, size_t d, int64_t o, int64_t k)
{
    int64_t at;
    if (p->transposed) {
        at = o + p->before[d] - k * p->dilation[d];
        if (at < 0 || at % p->stride[d] != 0)
            return -1;
        at /= p->stride[d];
    } else {
        at = o * p->stride[d] - p->before[d] + k * p->dilation[d];
    }
    return at < 0 || at >= p->in[d] ? -1 : at;
}

#define PLAIN_CONV(name, type, sum_type)                                                           \
    static sum_type name##_element(const cfxi_conv *p, const type *x, const type *w,               \
                                   const int64_t o[3])                                             \
    {                                                                                              \
        sum_type sum = 0;                                                                          \
        for (int64_t kz = 0; kz < p->kernel[0]; kz++) {                                            \
            int64_t z = source(p, 0, o[0], kz);                                                    \
            for (int64_t ky = 0; z >= 0 && ky < p->kernel[1]; ky++) {                              \
                int64_t y = source(p, 1, o[1], ky);                                                \
                for (int64_t kx = 0; y >= 0 && kx < p->kernel[2]; kx++) {                          \
                    int64_t at = source(p, 2, o[2], kx);                                           \
                    const type *a = x + z * p->xs[2] + y * p->xs[3] + at * p->xs[4];               \
                    const type *b = w + kz * p->ws[2] + ky * p->ws[3] + kx * p->ws[4];             \
                    for (int64_t i = 0; at >= 0 && i < p->in_channels; i++)                        \
                        sum += (sum_type)a[i * p->xs[1]] * (sum_type)b[i * p->ws[1]];              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static void name(void *ctx, int64_t begin, int64_t end)                                        \
    {                                                                                              \
        const cfxi_conv *p = ctx;                                                                  \
        int64_t channels = p->groups * p->out_channels;                                            \
        for (int64_t item = begin; item < end; item++) {                                           \
            int64_t n = item / channels, oc = item % channels, g = oc / p->out_channels;           \
            const type *x = (const type *)p->x + n * p->xs[0] + g * p->in_channels * p->xs[1];     \
            const type *w = (const type *)p->w + g * p->wg + oc % p->out_channels * p->ws[0];      \
            type *y = (type *)p->y + n * p->ys[0] + oc * p->ys[1];                                 \
            sum_type bias = p->bias ? (sum_type)((const type *)p->bias)[oc] : (sum_type)0;         \
            int64_t o[3];                                                                          \
            for (o[0] = 0; o[0] < p->out[0]; o[0]++)                                               \
                for (o[1] = 0; o[1] < p->out[1]; o[1]++)                                           \
                    for (o[2] = 0; o[2] < p->out[2]; o[2]++)                                       \
                        y[o[0] * p->ys[2] + o[1] * p->ys[3] + o[2] * p->ys[4]] =                   \
                            (type)(name##_element(p, x, w, o) + bias);                             \
        }                                                                                          \
    }
PLAIN_CONV(plain_float, float, double)
PLAIN_CONV(plain_double, double, double)
PLAIN_CONV(plain_int, int64_t, uint64_t)  /* wraps around */
PLAIN_CONV(plain_complex, double complex, double complex)

void cfxi_conv_plain(cfx_runtime *rt, cfx_dtype dtype, const cfxi_conv *p)
{
    cfxi_range_fn *fn = dtype == CFX_DTYPE_FLOAT32     ? plain_float
                        : dtype == CFX_DTYPE_FLOAT64   ? plain_double
                        : dtype == CFX_DTYPE_COMPLEX128 ? plain_complex
                                                        : plain_int;
    cfxi_rt_parallel(rt, p->batch * p->groups * p->out_channels, 1, fn, (void *)p);
}
