/* floats.h - loops over runs of floats; included once for each instruction set, after vector.h.
 * Mostly plain C, in strides of MANY that the compiler makes vectors of; the order of additions is
 * the same everywhere. */
#include "reduce_impl.h"

/* Vectors that are added up side by side; vectors of which sums of floats are made. */
enum { SUMS = 4, ROW_BLOCK = 64 };

#define NAME(x) f32_##x
#define REAL float
#define VEC V
#define TOTAL v_sum
#include "float_rows_vector.h"

#define NAME(x) f64_##x
#define REAL double
#define VEC VD
#define TOTAL vd_sum
#include "float_rows_vector.h"

enum { MANY = 64, PART = 16 };

/* Lanes onto half as many, until one is left: spelled out, so that they stay in registers. */
#define HALVE(n, statement)                                                                        \
    for (int j = 0; j < (n); j++) {                                                                \
        const int k = j + (n);                                                                     \
        statement;                                                                                 \
    }
#define FOLD(statement)                                                                            \
    HALVE(32, statement)                                                                           \
    HALVE(16, statement)                                                                           \
    HALVE(8, statement)                                                                            \
    HALVE(4, statement)                                                                            \
    HALVE(2, statement)                                                                            \
    HALVE(1, statement)

static void add(double *acc, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] += x[i];
}

static void add_four(double *acc, const float *x, const float *y, const float *z, const float *w,
                     int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] += (x[i] + y[i]) + (z[i] + w[i]);
}

/* A lane's greatest, and whether it had a NaN: the comparison passes over those. */
#define EXTREME(name, beats)                                                                       \
    static float name(const float *x, int64_t n)                                                   \
    {                                                                                              \
        float lane[MANY];                                                                         \
        int32_t bad[MANY] = {0};                                                                  \
        float best = x[0];                                                                         \
        int32_t nan = 0;                                                                           \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < MANY; j++)                                                            \
            lane[j] = best;                                                                        \
        for (; i + MANY <= n; i += MANY)                                                         \
            for (int j = 0; j < MANY; j++) {                                                      \
                float v = x[i + j];                                                                \
                lane[j] = v beats lane[j] ? v : lane[j];                                           \
                bad[j] |= v != v;                                                                  \
            }                                                                                      \
        for (; i + PART <= n; i += PART)                                                           \
            for (int j = 0; j < PART; j++) {                                                       \
                float v = x[i + j];                                                                \
                lane[j] = v beats lane[j] ? v : lane[j];                                           \
                bad[j] |= v != v;                                                                  \
            }                                                                                      \
        FOLD(lane[j] = lane[k] beats lane[j] ? lane[k] : lane[j]; bad[j] |= bad[k])                \
        best = lane[0];                                                                            \
        nan = bad[0];                                                                              \
        for (; i < n; i++) {                                                                       \
            best = x[i] beats best ? x[i] : best;                                                  \
            nan |= x[i] != x[i];                                                                   \
        }                                                                                          \
        return nan || best != best ? __builtin_nanf("") : best;                                    \
    }                                                                                              \
    static void name##_row(float *acc, const float *x, int64_t n)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float v = x[i];                                                                        \
            float a = acc[i];                                                                      \
            float b = v beats a ? v : a;                                                           \
            acc[i] = v != v ? v : b;                                                               \
        }                                                                                          \
    }
EXTREME(most, >)
EXTREME(least, <)

/* The sum of (x - mean)^2, in double: neither the differences nor their squares are rounded. */
INLINE double spread_around(const float *x, int64_t n, double mean)
{
    enum { HALF = LANES / 2 };
    VD sums[SUMS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + SUMS * HALF <= n; i += SUMS * HALF)
        UNROLL for (int v = 0; v < SUMS; v++) {
            const VD d = WIDEN(x + i + v * HALF) - mean;
            sums[v] += d * d;
        }
    for (; i < n; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    return rest + vd_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static double spread(const float *x, int64_t n, double mean)
{
    return mean == 0 ? spread_around(x, n, 0) : spread_around(x, n, mean);
}

static void shift_each(float *y, const float *by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] -= by[i];
}

static void scale_each(float *y, const float *by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= by[i];
}

/* NaN may be passed over. */
static float peak(const float *x, int64_t n)
{
    V best[4];
    int64_t i = 0;
    if (n >= 4 * LANES) {
        UNROLL for (int v = 0; v < 4; v++)
            best[v] = LOAD(x + v * LANES);
        for (i = 4 * LANES; i + 4 * LANES <= n; i += 4 * LANES)
            UNROLL for (int v = 0; v < 4; v++)
                best[v] = MAX(LOAD(x + i + v * LANES), best[v]);
        best[0] = MAX(MAX(best[0], best[1]), MAX(best[2], best[3]));
    }
    float all = i ? v_most(best[0]) : x[0];
    for (; i < n; i++)
        all = x[i] > all ? x[i] : all;
    return all;
}

INLINE V exponential(V x, float scale, float less) { return v_exp(x * SET(scale) - SET(less)); }

static double exponentials(float *y, const float *x, int64_t n, float scale, float less)
{
    V sums[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        UNROLL for (int v = 0; v < 4; v++) {
            const V e = exponential(LOAD(x + i + v * LANES), scale, less);
            if (y)
                STORE(y + i + v * LANES, e);
            sums[v] += e;
        }
    for (; i + LANES <= n; i += LANES) {
        const V e = exponential(LOAD(x + i), scale, less);
        if (y)
            STORE(y + i, e);
        sums[0] += e;
    }
    double total = 0;
    if (i < n) {
        float rest[LANES];
        STORE(rest, exponential(LOAD_SOME(x + i, n - i), scale, less));
        if (y)
            memcpy(y + i, rest, (size_t)(n - i) * sizeof *y);
        for (int64_t j = 0; j < n - i; j++)
            total += rest[j];
    }
    return total + v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

#define ROWS(type)                                                                                 \
    {                                                                                              \
        type##_sum, type##_squares, type##_add, type##_scale, type##_affine, type##_columns,       \
            type##_dots, type##_blend, type##_gather                                               \
    }

const cfxi_floats ISA(cfxi_reduce_floats) = {
    ROWS(f32), ROWS(f64), add,        add_four,   most, least,        most_row,
    least_row, spread,    shift_each, scale_each, peak, exponentials,
};
