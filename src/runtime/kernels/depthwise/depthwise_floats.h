/* depthwise_floats.h - lines of depthwise convolutions in float32: included once for each
 * instruction set, after vector.h. */
#include "depthwise.h"

enum { MOST_PIXELS = 7, MOST_PLACES = 7 };
#define LINE_TYPE cfxi_depthwise_line
#define X_TYPE float

INLINE V load_x(const LINE_TYPE *t, const float *x, int64_t n)
{
    (void)t;
    return v_load(x, n);
}

INLINE bool may_repeat(const LINE_TYPE *t) { return !t->add; }

INLINE void begin(int pixels, V *sums, const LINE_TYPE *t, int64_t c, int64_t n)
{
    const V first = t->bias ? v_load(t->bias + c, n) : (V){0};
    UNROLL for (int k = 0; k < pixels; k++)
        sums[k] = first;
}

/* n channels from c on, of pixels from number i on. */
INLINE void finish(int pixels, const V *sums, const LINE_TYPE *t, int64_t i, int64_t c,
                   int64_t n)
{
    UNROLL for (int k = 0; k < pixels; k++) {
        float *y = t->y + (i + k) * t->y_pixel + c;
        V v = sums[k];
        if (t->add)
            v += v_load(t->add + (i + k) * t->add_pixel + c, n);
        v = v_clamp(v, SET(t->low), SET(t->high));
        v_store(y, v, n);
    }
}

#include "depthwise_vector.h"

#ifdef GROUPS
const cfxi_depthwise ISA(cfxi_depthwise_groups) = {line};
#else
const cfxi_depthwise ISA(cfxi_depthwise_lines) = {line};
#endif
