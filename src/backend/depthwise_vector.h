/* depthwise_vector.h - a line of a depthwise convolution, a vector of channels at a time; included
 * once for each instruction set, after vector.h. */
enum { MOST_PIXELS = 8 };

/* `pixels` neighbours, LANES channels of each: every weight is loaded once for all of them. */
INLINE void sum_pixels(int pixels, const cfxi_depthwise_line *t, const float *x, const float *w,
                       const float *bias, const float *add, float *y)
{
    V sums[MOST_PIXELS];
    UNROLL for (int i = 0; i < pixels; i++)
        sums[i] = bias ? *(const V *)bias : (V){0};
    for (int64_t r = 0; r < t->lines; r++)
        for (int64_t s = 0; s < t->places; s++) {
            const V weight = *(const V *)(w + r * t->w_line + s * t->w_place);
            const float *at = x + r * t->x_line + s * t->x_place;
            UNROLL for (int i = 0; i < pixels; i++)
                sums[i] += *(const V *)(at + i * t->x_pixel) * weight;
        }
    UNROLL for (int i = 0; i < pixels; i++) {
        V v = sums[i];
        if (add)
            v += *(const V *)(add + i * t->add_pixel);
        STORE(y + i * t->y_pixel, v_clamp(v, SET(t->low), SET(t->high)));
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

static void line(const cfxi_depthwise_line *t)
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

const cfxi_depthwise ISA(cfxi_backend_depthwise_line) = {line};
