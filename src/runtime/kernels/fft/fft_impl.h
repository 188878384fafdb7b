/* fft_impl.h - the transform of one line of numbers. */
#ifndef CFXI_FFT_IMPL_H
#define CFXI_FFT_IMPL_H

#include "runtime/runtime_impl.h"

#include <complex.h>

/* A transform of n numbers: tables that lines share, and scratch for one line. */
typedef struct cfxi_transform {
    int64_t n;
    int64_t padded;  /* n has a large prime factor: a power of two from 2 n - 1 on; else 0 */
    double complex *roots;   /* the n-th (or padded-th) roots of one, by the transform's sign */
    double complex *chirp;   /* n; the rest only where `padded` is not 0 */
    double complex *kernel;  /* the transform of the chirp's conjugate */
    double complex *work[2];
} cfxi_transform;

/* y[j] = sum of x[k] exp(sign 2 pi i j k / n). Scratch of the runtime's; NOMEM if there is none. */
cfx_status cfxi_fft_begin(cfxi_call *c, cfxi_transform *t, int64_t n, int sign);
void cfxi_fft_run(const cfxi_transform *t, const double complex *x, double complex *y);
void cfxi_fft_end(cfxi_call *c, cfxi_transform *t);

#endif
