/* floats.h - loops over runs of floats, compiled once for each instruction set: the file that
 * includes it names the table, FLOATS, and sets the target. Plain C, in strides of LANES that the
 * compiler makes vectors of; the order of additions is the same everywhere. */
#include "reduce_impl.h"

enum { LANES = 64, PART = 16 };

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

static double sum(const float *x, int64_t n)
{
    float lane[LANES] = {0};
    double total = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += x[i + j];
    for (; i + PART <= n; i += PART)
        for (int j = 0; j < PART; j++)
            lane[j] += x[i + j];
    for (; i < n; i++)
        total += x[i];
    FOLD(lane[j] += lane[k])
    return total + lane[0];
}

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
        float lane[LANES];                                                                         \
        int32_t bad[LANES] = {0};                                                                  \
        float best = x[0];                                                                         \
        int32_t nan = 0;                                                                           \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < LANES; j++)                                                            \
            lane[j] = best;                                                                        \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++) {                                                      \
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

static void moments(const float *x, int64_t n, double *mean_of, double *squares)
{
    double lane[LANES] = {0};
    double all = 0;
    int64_t i = 0;
    double mean = sum(x, n) / (double)n;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            double d = x[i + j] - mean;
            lane[j] += d * d;
        }
    for (; i < n; i++)
        all += (x[i] - mean) * (x[i] - mean);
    for (int j = 0; j < LANES; j++)
        all += lane[j];
    *mean_of = mean;
    *squares = all;
}

static void shift(float *y, const float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - by;
}

static void scale(float *y, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= by;
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

const cfxi_floats FLOATS = {
    sum,     add,   add_four, most,       least,      most_row, least_row,
    moments, shift, scale,    shift_each, scale_each,
};
