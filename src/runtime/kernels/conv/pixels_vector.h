/* pixels_vector.h - rows of channels combined; included once for each instruction set, after
 * vector.h. Four vectors of channels at a time stay in registers over all pixels. */
#include "pixels.h"

/* Calls WORK(i, width, left) for all channels from i on: `width` vectors, and the last with `left`
 * elements. */
#define OVER_CHANNELS(n, WORK)                                                                     \
    int64_t i = 0;                                                                                 \
    for (; i + 4 * LANES <= (n); i += 4 * LANES)                                                   \
        WORK(4, LANES);                                                                            \
    for (; i + LANES <= (n); i += LANES)                                                           \
        WORK(1, LANES);                                                                            \
    if (i < (n))                                                                                   \
        WORK(1, (n) - i);

INLINE void most_of(const float *const *x, int64_t count, int64_t i, int width, int64_t left,
                    bool more, float *y)
{
    V best[4];
    UNROLL for (int v = 0; v < width; v++)
        best[v] = v_load((more ? y : x[0]) + i + v * LANES, left);
    for (int64_t p = !more; p < count; p++)
        UNROLL for (int v = 0; v < width; v++)
            best[v] = v_larger(best[v], v_load(x[p] + i + v * LANES, left));
    UNROLL for (int v = 0; v < width; v++)
        v_store(y + i + v * LANES, best[v], left);
}

static void most(const float *const *x, int64_t count, int64_t n, bool more, float *y)
{
#define WORK(width, left) most_of(x, count, i, width, left, more, y)
    OVER_CHANNELS(n, WORK)
#undef WORK
}

INLINE void mean_of(const float *const *x, int64_t count, int64_t i, int width, int64_t left,
                    bool more, float by, float *y)
{
    V sums[4];
    UNROLL for (int v = 0; v < width; v++)
        sums[v] = v_load(x[0] + i + v * LANES, left);
    for (int64_t p = 1; p < count; p++)
        UNROLL for (int v = 0; v < width; v++)
            sums[v] += v_load(x[p] + i + v * LANES, left);
    UNROLL for (int v = 0; v < width; v++) {
        if (more)
            sums[v] += v_load(y + i + v * LANES, left);
        v_store(y + i + v * LANES, sums[v] / SET(by), left);
    }
}

static void mean(const float *const *x, int64_t count, int64_t n, bool more, float by, float *y)
{
#define WORK(width, left) mean_of(x, count, i, width, left, more, by, y)
    OVER_CHANNELS(n, WORK)
#undef WORK
}

INLINE void mix_of(const float *const *x, const float *weights, int64_t count, int64_t i, int width,
                   int64_t left, float *y)
{
    V sums[4];
    UNROLL for (int v = 0; v < width; v++)
        sums[v] = v_load(x[0] + i + v * LANES, left) * SET(weights[0]);
    for (int64_t p = 1; p < count; p++)
        UNROLL for (int v = 0; v < width; v++)
            sums[v] = FMA(v_load(x[p] + i + v * LANES, left), SET(weights[p]), sums[v]);
    UNROLL for (int v = 0; v < width; v++)
        v_store(y + i + v * LANES, sums[v], left);
}

static void mix(const float *const *x, const float *weights, int64_t count, int64_t n, float *y)
{
#define WORK(width, left) mix_of(x, weights, count, i, width, left, y)
    OVER_CHANNELS(n, WORK)
#undef WORK
}

const cfxi_pixels ISA(cfxi_conv_pixels) = {most, mean, mix};
