/* depthwise_vector.h - a line of a depthwise convolution, a vector of channels at a time; included
 * once for each instruction set, after vector.h. */
enum { MOST_PIXELS = 8 };

/* `pixels` neighbours from number i on, n channels of each from c on: every weight is loaded once
 * for all of them. */
INLINE void sum_pixels(int pixels, const cfxi_depthwise_line *t, int64_t i, int64_t c, int64_t n)
{
    const float *x = t->x + i * t->x_pixel + c;
    V sums[MOST_PIXELS];
    UNROLL for (int k = 0; k < pixels; k++)
        sums[k] = t->bias ? v_load(t->bias + c, n) : (V){0};
    for (int64_t r = 0; r < t->lines; r++)
        for (int64_t s = 0; s < t->places; s++) {
            const V weight = v_load(t->w + c + r * t->w_line + s * t->w_place, n);
            const float *at = x + r * t->x_line + s * t->x_place;
            UNROLL for (int k = 0; k < pixels; k++)
                sums[k] += v_load(at + k * t->x_pixel, n) * weight;
        }
    UNROLL for (int k = 0; k < pixels; k++) {
        float *y = t->y + (i + k) * t->y_pixel + c;
        V v = sums[k];
        if (t->add)
            v += v_load(t->add + (i + k) * t->add_pixel + c, n);
        v = v_clamp(v, SET(t->low), SET(t->high));
        v_store(y, v, n);
    }
}

/* All pixels, n channels of each. */
INLINE void sum_line(const cfxi_depthwise_line *t, int64_t c, int64_t n)
{
    int64_t i = 0;
    for (; i + MOST_PIXELS <= t->pixels; i += MOST_PIXELS)
        sum_pixels(MOST_PIXELS, t, i, c, n);
    for (; i + MOST_PIXELS / 2 <= t->pixels; i += MOST_PIXELS / 2)
        sum_pixels(MOST_PIXELS / 2, t, i, c, n);
    for (; i < t->pixels; i++)
        sum_pixels(1, t, i, c, n);
}

static void line(const cfxi_depthwise_line *t)
{
    int64_t c = 0;
    for (; c + LANES <= t->channels; c += LANES)
        sum_line(t, c, LANES);
    if (c < t->channels)
        sum_line(t, c, t->channels - c);
}

const cfxi_depthwise ISA(cfxi_backend_depthwise_line) = {line};
