/* depthwise_vector.h - a line of a depthwise convolution, a vector of channels at a time; included
 * once for each instruction set. Expects LANES and FUNCTION, the name of what it defines. */
#include "depthwise.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)),
                                 may_alias));
typedef float plain_vec __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));

enum { MOST_PIXELS = 8 };

INLINE vec spread(float x) { return x - (vec){0}; }

INLINE plain_vec chosen(mask m, plain_vec yes, plain_vec no)
{
    return (plain_vec)((m & (mask)yes) | (~m & (mask)no));
}

/* `pixels` neighbours, LANES channels of each: every weight is loaded once for all of them. */
INLINE void sum_pixels(int pixels, const cfxi_depthwise_line *t, const float *x, const float *w,
                       const float *bias, const float *add, float *y)
{
    vec sums[MOST_PIXELS];
    UNROLL for (int i = 0; i < pixels; i++)
        sums[i] = bias ? *(const vec *)bias : (vec){0};
    for (int64_t r = 0; r < t->lines; r++)
        for (int64_t s = 0; s < t->places; s++) {
            const vec weight = *(const vec *)(w + r * t->w_line + s * t->w_place);
            const float *at = x + r * t->x_line + s * t->x_place;
            UNROLL for (int i = 0; i < pixels; i++)
                sums[i] += *(const vec *)(at + i * t->x_pixel) * weight;
        }
    UNROLL for (int i = 0; i < pixels; i++) {
        plain_vec v = sums[i];
        if (add)
            v += *(const vec *)(add + i * t->add_pixel);
        v = chosen(v < (plain_vec)spread(t->low), spread(t->low), v);
        *(vec *)(y + i * t->y_pixel) = chosen(v > (plain_vec)spread(t->high), spread(t->high), v);
    }
}

/* One channel that is left over. */
static void sum_one(const cfxi_depthwise_line *t, int64_t i, int64_t c)
{
    float sum = t->bias ? t->bias[c] : 0;
    for (int64_t r = 0; r < t->lines; r++)
        for (int64_t s = 0; s < t->places; s++)
            sum += t->x[i * t->x_pixel + r * t->x_line + s * t->x_place + c] *
                   t->w[r * t->w_line + s * t->w_place + c];
    if (t->add)
        sum += t->add[i * t->add_pixel + c];
    sum = sum < t->low ? t->low : sum;
    t->y[i * t->y_pixel + c] = sum > t->high ? t->high : sum;
}

void FUNCTION(const cfxi_depthwise_line *t)
{
    int64_t c = 0;
    for (; c + LANES <= t->channels; c += LANES) {
        const float *bias = t->bias ? t->bias + c : NULL;
        int64_t i = 0;
        for (; i + MOST_PIXELS <= t->pixels; i += MOST_PIXELS)
            sum_pixels(MOST_PIXELS, t, t->x + i * t->x_pixel + c, t->w + c, bias,
                       t->add ? t->add + i * t->add_pixel + c : NULL, t->y + i * t->y_pixel + c);
        for (; i < t->pixels; i++)
            sum_pixels(1, t, t->x + i * t->x_pixel + c, t->w + c, bias,
                       t->add ? t->add + i * t->add_pixel + c : NULL, t->y + i * t->y_pixel + c);
    }
    for (; c < t->channels; c++)
        for (int64_t i = 0; i < t->pixels; i++)
            sum_one(t, i, c);
}
#undef INLINE
#undef UNROLL
