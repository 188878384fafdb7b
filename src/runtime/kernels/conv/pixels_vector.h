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

INLINE V pixel(const char *x, int64_t i, int64_t n)
{
    return v_load((const float *)(const void *)x + i, n);
}

INLINE void put_pixel(char *y, int64_t i, V x, int64_t n)
{
    v_store((float *)(void *)y + i, x, n);
}

/* The chain of maxima is short if it is the new pixel that is looked at for not being a number. */
INLINE void most_of(const cfxi_windows *w, int64_t at, int64_t i, int width, int64_t left, char *y)
{
    V best[4];
    UNROLL for (int v = 0; v < width; v++)
        best[v] = pixel(w->more ? y : w->x[0] + at, i + v * LANES, left);
    for (int64_t p = !w->more; p < w->count; p++)
        UNROLL for (int v = 0; v < width; v++)
            best[v] = v_larger(pixel(w->x[p] + at, i + v * LANES, left), best[v]);
    UNROLL for (int v = 0; v < width; v++)
        put_pixel(y, i + v * LANES, best[v], left);
}

static void most(const cfxi_windows *w)
{
#define WORK(width, left) most_of(w, k * w->step, i, width, left, w->y + k * w->y_step)
    for (int64_t k = 0; k < w->windows; k++) {
        OVER_CHANNELS(w->n, WORK)
    }
#undef WORK
}

typedef uint8_t WIDE_BYTES __attribute__((vector_size(4 * LANES)));
typedef uint8_t BYTES __attribute__((vector_size(8)));

/* Largest bytes: int8 with its sign bit turned is in the order of uint8. */
#define MOST_BYTES(type, name)                                                                     \
    INLINE void name(const cfxi_windows *w, int64_t at, int64_t i, char *y, uint8_t flip)          \
    {                                                                                              \
        type best, x;                                                                              \
        memcpy(&best, (w->more ? y : w->x[0] + at) + i, sizeof best);                              \
        best ^= flip;                                                                              \
        for (int64_t p = !w->more; p < w->count; p++) {                                            \
            memcpy(&x, w->x[p] + at + i, sizeof x);                                                \
            x ^= flip;                                                                             \
            const type larger = (type)(x > best);                                                  \
            best = (x & larger) | (best & ~larger);                                                \
        }                                                                                          \
        best ^= flip;                                                                              \
        memcpy(y + i, &best, sizeof best);                                                         \
    }
MOST_BYTES(WIDE_BYTES, most_of_many)
MOST_BYTES(BYTES, most_of_some)

INLINE void most_of_one(const cfxi_windows *w, int64_t at, int64_t i, char *y, uint8_t flip)
{
    uint8_t best = (uint8_t)((w->more ? y : w->x[0] + at)[i]) ^ flip;
    for (int64_t p = !w->more; p < w->count; p++) {
        const uint8_t x = (uint8_t)w->x[p][at + i] ^ flip;
        best = x > best ? x : best;
    }
    y[i] = (char)(best ^ flip);
}

static void most_bytes(const cfxi_windows *w, bool is_signed)
{
    const uint8_t flip = is_signed ? 0x80 : 0;
    for (int64_t k = 0; k < w->windows; k++) {
        char *y = w->y + k * w->y_step;
        int64_t i = 0;
        for (; i + (int64_t)sizeof(WIDE_BYTES) <= w->n; i += (int64_t)sizeof(WIDE_BYTES))
            most_of_many(w, k * w->step, i, y, flip);
        for (; i + (int64_t)sizeof(BYTES) <= w->n; i += (int64_t)sizeof(BYTES))
            most_of_some(w, k * w->step, i, y, flip);
        for (; i < w->n; i++)
            most_of_one(w, k * w->step, i, y, flip);
    }
}

INLINE void mean_of(const cfxi_windows *w, float by, int64_t at, int64_t i, int width, int64_t left,
                    char *y)
{
    V sums[4];
    UNROLL for (int v = 0; v < width; v++)
        sums[v] = pixel(w->x[0] + at, i + v * LANES, left);
    for (int64_t p = 1; p < w->count; p++)
        UNROLL for (int v = 0; v < width; v++)
            sums[v] += pixel(w->x[p] + at, i + v * LANES, left);
    UNROLL for (int v = 0; v < width; v++) {
        if (w->more)
            sums[v] += pixel(y, i + v * LANES, left);
        put_pixel(y, i + v * LANES, sums[v] / SET(by), left);
    }
}

static void mean(const cfxi_windows *w, float by)
{
#define WORK(width, left) mean_of(w, by, k * w->step, i, width, left, w->y + k * w->y_step)
    for (int64_t k = 0; k < w->windows; k++) {
        OVER_CHANNELS(w->n, WORK)
    }
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

const cfxi_pixels ISA(cfxi_conv_pixels) = {most, most_bytes, mean, mix};
