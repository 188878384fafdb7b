/* dots_amx.c - tiles of bfloat16 by AMX: a register holds 16 rows of 64 bytes.
 *
 * Four registers have the sums of up to 32 rows by two panels, two have rows of `a`, and two have
 * 16 steps of a panel, which lie there as the instruction takes them. A function that is compiled
 * for tiles ends with their release, so that nobody else pays for saving them.
 */
#include "dots.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("amx-tile,amx-bf16")

enum { STEPS = 16, ROWS = 16, MOST_WIDTH = 2, LINE = 64 };

#include "tiles_store.h"

/* What is in memory may be read by instructions that the compiler does not see through. */
#define SEEN(x) __asm__ volatile("" : : "r"(x) : "memory")

typedef struct shapes {
    uint8_t palette, first_row, unused[14];
    uint16_t bytes[16];  /* of a row of each register */
    uint8_t rows[16];
} shapes;

static void set_up(int rows)
{
    shapes s = {.palette = 1};
    const int top = rows < ROWS ? rows : ROWS;
    const int rest = rows - top > 0 ? rows - top : 1;
    const int of[] = {top, top, rest, rest, top, rest, STEPS, STEPS};
    for (int i = 0; i < 8; i++) {
        s.bytes[i] = LINE;
        s.rows[i] = (uint8_t)of[i];
    }
    SEEN(&s);
    _tile_loadconfig(&s);
}

/* Sums of two panels (or one) by 16 rows, or more if `both`. */
INLINE void sum_panels(bool both, bool two, const cfxi_sum_tile *t, float *sums)
{
    const float none[CFXI_PANEL] = {0};
    const float *first = t->bias ? t->bias : none;
    const float *second = t->bias && two ? t->bias + CFXI_PANEL : none;
    const int64_t a_row = t->a_row * (int64_t)sizeof(float);
    SEEN(none);
    _tile_loadd(0, first, 0);  /* the same for all rows */
    if (two)
        _tile_loadd(1, second, 0);
    if (both)
        _tile_loadd(2, first, 0);
    if (both && two)
        _tile_loadd(3, second, 0);
    for (int64_t q = 0; q < t->count; q++) {
        const float *a = t->a + t->a_at[q];
        const float *b = t->b + t->b_at[q];
        for (int64_t p = 0; p < t->k; p += STEPS, a += STEPS, b += STEPS * CFXI_PANEL) {
            _tile_loadd(6, b, LINE);
            if (two)
                _tile_loadd(7, b + t->b_panel, LINE);
            _tile_loadd(4, a, a_row);
            _tile_dpbf16ps(0, 4, 6);
            if (two)
                _tile_dpbf16ps(1, 4, 7);
            if (both) {
                _tile_loadd(5, a + ROWS * t->a_row, a_row);
                _tile_dpbf16ps(2, 5, 6);
            }
            if (both && two)
                _tile_dpbf16ps(3, 5, 7);
        }
    }
    const int64_t line = (two ? 2 : 1) * LINE;
    _tile_stored(0, sums, line);
    if (two)
        _tile_stored(1, sums + CFXI_PANEL, line);
    if (both)
        _tile_stored(2, sums + (two ? 2 : 1) * ROWS * CFXI_PANEL, line);
    if (both && two)
        _tile_stored(3, sums + 2 * ROWS * CFXI_PANEL + CFXI_PANEL, line);
    SEEN(sums);
}

static void tile(const cfxi_sum_tile *t, int rows, int panels)
{
    _Alignas(CFXI_ALIGN) float sums[CFXI_DOTS_MOST_ROWS * 2 * CFXI_PANEL];
    cfxi_sum_tile part = *t;
    set_up(rows);
    for (int panel = 0; panel < panels; panel += 2) {
        const int n = panels - panel < 2 ? 1 : 2;
        const int64_t column = panel * CFXI_PANEL;
        const int64_t left = t->columns - column;
        part.b = t->b + panel * t->b_panel;
        part.bias = t->bias ? t->bias + column : NULL;
        part.add = t->add ? t->add + column : NULL;
        part.c = t->c + column;
        part.columns = left < n * CFXI_PANEL ? left : n * CFXI_PANEL;
        if (rows > ROWS && n == 2)
            sum_panels(true, true, &part, sums);
        else if (rows > ROWS)
            sum_panels(true, false, &part, sums);
        else if (n == 2)
            sum_panels(false, true, &part, sums);
        else
            sum_panels(false, false, &part, sums);
        store_part(rows, n, sums, &part);
    }
    _tile_release();
}

/* 16 cycles for each product of two registers, which has 16 steps. */
static double cycles(int rows, int panels)
{
    return (rows > ROWS ? 2 : 1) * (panels + 0.5);
}

static void round_elements(int64_t n, const float *from, void *to)
{
    cfxi_tiles_dots_bf16.round(n, from, to);
}

const cfxi_dots cfxi_tiles_dots_amx = {
    "amx", tile, {32, 32, 32, 32, 32, 32, 32, 32}, 1, STEPS, cycles, round_elements};
#endif
