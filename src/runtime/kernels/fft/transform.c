/* transform.c - the discrete Fourier transform of one line, in double precision.
 *
 * A length is split into its prime factors, and a transform of p m numbers into p transforms of m.
 * With a prime factor above LARGEST the line is multiplied by a chirp, exp(pi i k k / n), instead:
 * the transform is then a convolution with it, which transforms of a power of two compute. Both
 * take n log n steps.
 */
#include "fft_impl.h"

#include <math.h>

typedef double complex z;

enum { LARGEST = 31 };

static z multiply(z a, z b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* exp(sign 2 pi i k / n) */
static z root(int64_t k, int64_t n, int sign)
{
    const double angle = 6.283185307179586477 * ((double)k / (double)n);
    return CMPLX(cos(angle), sign * sin(angle));
}

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p <= LARGEST && p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static bool has_small_factors(int64_t n)
{
    while (n > 1) {
        const int64_t p = smallest_factor(n);
        if (p > LARGEST)
            return false;
        n /= p;
    }
    return true;
}

/* ---- lengths of small factors -------------------------------------------------------------- */

/* Transforms of m numbers each, one behind the other in y, become one of p m. roots[step] is the
 * p m-th root of one. */
static void combine(const z *roots, int64_t step, int64_t p, int64_t m, z *y)
{
    z part[LARGEST];
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++)
            part[r] = multiply(y[r * m + k], roots[r * k * step]);
        for (int64_t q = 0; q < p; q++) {
            z sum = part[0];
            for (int64_t r = 1; r < p; r++)
                sum += multiply(part[r], roots[r * q % p * m * step]);
            y[q * m + k] = sum;
        }
    }
}

/* Of every `step`-th number of x. */
static void split(const z *roots, int64_t step, int64_t n, const z *x, z *y)
{
    if (n == 1) {
        y[0] = x[0];
        return;
    }
    const int64_t p = smallest_factor(n);
    const int64_t m = n / p;
    for (int64_t r = 0; r < p; r++)
        split(roots, step * p, m, x + r * step, y + r * m);
    combine(roots, step, p, m, y);
}

/* ---- other lengths ------------------------------------------------------------------------- */

/* A cyclic convolution with the kernel. The inverse transform is the transform of the conjugate. */
static void convolve(const cfxi_transform *t)
{
    z *a = t->work[0];
    z *b = t->work[1];
    split(t->roots, 1, t->padded, a, b);
    for (int64_t k = 0; k < t->padded; k++)
        b[k] = conj(multiply(b[k], t->kernel[k]));
    split(t->roots, 1, t->padded, b, a);
    for (int64_t k = 0; k < t->padded; k++)
        a[k] = conj(a[k]) / (double)t->padded;
}

static void run_padded(const cfxi_transform *t, const z *x, z *y)
{
    for (int64_t k = 0; k < t->padded; k++)
        t->work[0][k] = k < t->n ? multiply(x[k], t->chirp[k]) : 0;
    convolve(t);
    for (int64_t k = 0; k < t->n; k++)
        y[k] = multiply(t->work[0][k], t->chirp[k]);
}

static void make_chirp(cfxi_transform *t, int sign)
{
    const int64_t n = t->n;
    int64_t square = 0;  /* of k, modulo 2 n */
    for (int64_t k = 0; k < t->padded; k++)
        t->work[0][k] = 0;
    for (int64_t k = 0; k < n; k++) {
        t->chirp[k] = root(square, 2 * n, sign);
        t->work[0][k] = conj(t->chirp[k]);
        t->work[0][k ? t->padded - k : 0] = conj(t->chirp[k]);
        square = (square + 2 * k + 1) % (2 * n);
    }
    split(t->roots, 1, t->padded, t->work[0], t->kernel);
}

/* ---- both ---------------------------------------------------------------------------------- */

cfx_status cfxi_fft_begin(cfxi_call *c, cfxi_transform *t, int64_t n, int sign)
{
    *t = (cfxi_transform){.n = n};
    int64_t length = n;
    if (!has_small_factors(n)) {
        if (n > INT64_MAX / 8)
            return cfxi_base_nomem(c->err);
        for (length = 1; length < 2 * n - 1;)
            length *= 2;
        t->padded = length;
    }
    size_t size;
    if (!cfxi_base_mul_size((size_t)length, t->padded ? 5 * sizeof(z) : sizeof(z), 0, &size))
        return cfxi_base_nomem(c->err);
    t->roots = cfxi_rt_scratch(c->rt, size);
    if (!t->roots)
        return cfxi_base_nomem(c->err);
    for (int64_t k = 0; k < length; k++)
        t->roots[k] = root(k, length, t->padded ? -1 : sign);
    if (t->padded) {
        t->chirp = t->roots + length;
        t->kernel = t->chirp + length;
        t->work[0] = t->kernel + length;
        t->work[1] = t->work[0] + length;
        make_chirp(t, sign);
    }
    return CFX_OK;
}

void cfxi_fft_run(const cfxi_transform *t, const z *x, z *y)
{
    if (t->padded)
        run_padded(t, x, y);
    else
        split(t->roots, 1, t->n, x, y);
}

void cfxi_fft_end(cfxi_call *c, cfxi_transform *t)
{
    if (t->roots)
        cfxi_rt_scratch_free(c->rt, t->roots);
    t->roots = NULL;
}
