/* float_rows_vector.h - loops over rows of numbers of one type, for one instruction set; included
 * by floats.h for each type, after vector.h.
 *
 * Expects NAME(x), REAL, VEC (a vector of them) and TOTAL (its sum).
 */
#define WIDTH ((int)(sizeof(VEC) / sizeof(REAL)))
#define AT(x, i) (*(const VEC *)((x) + (i)))

/* The sum of x, or with `squares` that of (x - mean)^2. Sums of a block are added up in double:
 * long rows lose nothing. */
INLINE double NAME(sum_up)(const REAL *x, int64_t n, bool squares, REAL mean)
{
    double total = 0;
    int64_t i = 0;
    while (i + WIDTH <= n) {
        VEC sums[SUMS] = {{0}};
        const int64_t end = n - i < ROW_BLOCK * WIDTH ? n : i + ROW_BLOCK * WIDTH;
        for (; i + SUMS * WIDTH <= end; i += SUMS * WIDTH)
            UNROLL for (int v = 0; v < SUMS; v++) {
                VEC d = AT(x, i + v * WIDTH) - mean;
                if (squares)
                    d *= d;
                sums[v] += d;
            }
        for (; i + WIDTH <= end; i += WIDTH) {
            VEC d = AT(x, i) - mean;
            if (squares)
                d *= d;
            sums[0] += d;
        }
        UNROLL for (int v = 1; v < SUMS; v++)
            sums[0] += sums[v];
        total += (double)TOTAL(sums[0]);
    }
    for (; i < n; i++) {
        const double d = (double)(x[i] - mean);
        total += squares ? d * d : d;
    }
    return total;
}

static double NAME(sum)(const void *x, int64_t n) { return NAME(sum_up)(x, n, false, 0); }

static double NAME(squares)(const void *x, int64_t n, double mean)
{
    return NAME(sum_up)(x, n, true, (REAL)mean);
}

static void NAME(add)(void *to, const void *from, int64_t n)
{
    REAL *y = to;
    const REAL *x = from;
    for (int64_t i = 0; i < n; i++)  /* the compiler's vectors: also for what is left of them */
        y[i] += x[i];
}

static void NAME(scale)(void *to, const void *from, int64_t n, double by, double plus)
{
    REAL *y = to;
    const REAL *x = from;
    const REAL a = (REAL)by;
    const REAL b = (REAL)plus;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        *(VEC *)(y + i) = AT(x, i) * a + b;
    for (; i < n; i++)
        y[i] = x[i] * a + b;
}

static void NAME(affine)(void *to, const void *from, int64_t n, double mean, double factor,
                         const void *weights, const void *biases)
{
    REAL *y = to;
    const REAL *x = from;
    const REAL *w = weights;
    const REAL *b = biases;
    const REAL m = (REAL)mean;
    const REAL f = (REAL)factor;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        VEC v = (AT(x, i) - m) * f;
        if (w)
            v *= AT(w, i);
        if (b)
            v += AT(b, i);
        *(VEC *)(y + i) = v;
    }
    for (; i < n; i++)
        y[i] = (x[i] - m) * f * (w ? w[i] : 1) + (b ? b[i] : 0);
}

/* Some rows at a time, whose sums are added up in double. */
static void NAME(columns)(double *sums, const void *from, int64_t rows, int64_t n,
                          const void *means)
{
    const REAL *x = from;
    const REAL *mean = means;
    for (int64_t first = 0; first < rows; first += ROW_BLOCK) {
        const int64_t end = rows - first < ROW_BLOCK ? rows : first + ROW_BLOCK;
        int64_t j = 0;
        for (; j + WIDTH <= n; j += WIDTH) {
            VEC sum = {0};
            VEC m = {0};
            if (mean)
                m = AT(mean, j);
            for (int64_t i = first; i < end; i++) {
                VEC v = AT(x, i * n + j) - m;
                if (mean)
                    v *= v;
                sum += v;
            }
            for (int k = 0; k < WIDTH; k++)
                sums[j + k] += (double)sum[k];
        }
        for (; j < n; j++)
            for (int64_t i = first; i < end; i++) {
                const REAL v = x[i * n + j] - (mean ? mean[j] : 0);
                sums[j] += (double)(mean ? v * v : v);
            }
    }
}

static void NAME(dots)(const void *gradients, const void *from, const void *weights, int64_t n,
                       double mean, double sums[2])
{
    const REAL *g = gradients;
    const REAL *x = from;
    const REAL *w = weights;
    const REAL m = (REAL)mean;
    int64_t i = 0;
    while (i + WIDTH <= n) {
        VEC a = {0};
        VEC b = {0};
        const int64_t end = n - i < ROW_BLOCK * WIDTH ? n : i + ROW_BLOCK * WIDTH;
        for (; i + WIDTH <= end; i += WIDTH) {
            VEC p = AT(g, i);
            if (w)
                p *= AT(w, i);
            a += p;
            b += p * (AT(x, i) - m);
        }
        sums[0] += (double)TOTAL(a);
        sums[1] += (double)TOTAL(b);
    }
    for (; i < n; i++) {
        const double p = (double)g[i] * (w ? (double)w[i] : 1);
        sums[0] += p;
        sums[1] += p * (double)(x[i] - m);
    }
}

static void NAME(blend)(void *to, const void *gradients, const void *from, const void *weights,
                        int64_t n, double mean, double by, double slope, double plus)
{
    REAL *y = to;
    const REAL *g = gradients;
    const REAL *x = from;
    const REAL *w = weights;
    const REAL m = (REAL)mean;
    const REAL a = (REAL)by;
    const REAL b = (REAL)slope;
    const REAL c = (REAL)plus;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        VEC v = AT(g, i) * a;
        if (w)
            v *= AT(w, i);
        *(VEC *)(y + i) = v + (AT(x, i) - m) * b + c;
    }
    for (; i < n; i++)
        y[i] = g[i] * a * (w ? w[i] : 1) + (x[i] - m) * b + c;
}

static void NAME(gather)(void *weights, void *biases, const void *gradients, const void *from,
                         int64_t n, double mean, double factor)
{
    REAL *dw = weights;
    REAL *db = biases;
    const REAL *g = gradients;
    const REAL *x = from;
    const REAL m = (REAL)mean;
    const REAL f = (REAL)factor;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        const VEC v = AT(g, i);
        *(VEC *)(dw + i) += v * ((AT(x, i) - m) * f);
        *(VEC *)(db + i) += v;
    }
    for (; i < n; i++) {
        dw[i] += g[i] * ((x[i] - m) * f);
        db[i] += g[i];
    }
}

#undef WIDTH
#undef AT
#undef NAME
#undef REAL
#undef VEC
#undef TOTAL
