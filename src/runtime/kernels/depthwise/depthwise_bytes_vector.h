/* depthwise_bytes_vector.h - lines of depthwise convolutions of 8-bit integers: included once for
 * each instruction set, after vector.h. Sums are whole numbers that floats have. */
#include "depthwise_bytes.h"

#include "runtime/kernels/tiles/bytes_store.h"

enum { MOST_PIXELS = 7, MOST_PLACES = 7 };
#define LINE_TYPE cfxi_byte_line
#define X_TYPE uint8_t

INLINE V load_x(const LINE_TYPE *t, const uint8_t *x, int64_t n)
{
    return TO_FLOAT(load_bytes(x, t->x_signed, n) - VI_SET(t->x_zero));
}

INLINE bool may_repeat(const LINE_TYPE *t) { return !t->end->adds; }

INLINE void begin(int pixels, V *sums, const LINE_TYPE *t, int64_t c, int64_t n)
{
    (void)t, (void)c, (void)n;
    UNROLL for (int k = 0; k < pixels; k++)
        sums[k] = (V){0};
}

/* n channels from c on, of pixels from number i on. */
static __attribute__((noinline)) void finish_some(int pixels, const V *sums, const LINE_TYPE *t,
                                                  int64_t i, int64_t c, int64_t n)
{
    const ends s = ends_of(t->end);
    const V factor = v_load(t->factor + c, n);
    const V bias = v_load(t->bias + c, n);
    for (int k = 0; k < pixels; k++) {
        const V r = EXACT_FMA(sums[k], factor, bias);
        const int64_t at = (i + k) * t->y_pixel + c;
        const uint8_t *other =
            t->end->adds ? t->other + (i + k) * t->other_pixel + c : NULL;
        if (t->end->to_float)
            v_store((float *)t->y + at, r, n);
        else
            store_bytes((uint8_t *)t->y + at, ended(r, &s, t->end->adds, t->end, other, n), n);
    }
}

INLINE void finish(int pixels, const V *sums, const LINE_TYPE *t, int64_t i, int64_t c, int64_t n)
{
    if (n < LANES || t->end->to_float || t->end->adds) {
        V memory[MOST_PIXELS];
        UNROLL for (int k = 0; k < pixels; k++)
            memory[k] = sums[k];
        finish_some(pixels, memory, t, i, c, n);
        return;
    }
    const ends s = ends_of(t->end);
    const V factor = LOAD(t->factor + c);
    const V bias = LOAD(t->bias + c);
    UNROLL for (int k = 0; k < pixels; k++)
        store_bytes((uint8_t *)t->y + (i + k) * t->y_pixel + c,
                    ended(EXACT_FMA(sums[k], factor, bias), &s, false, t->end, NULL, LANES),
                    LANES);
}

#include "depthwise_vector.h"

const cfxi_byte_lines ISA(cfxi_depthwise_byte_lines) = {line};
