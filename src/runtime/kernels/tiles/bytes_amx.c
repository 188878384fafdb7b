/* bytes_amx.c - tiles of 8-bit integers by AMX: a register holds 16 rows of 64 bytes.
 *
 * As in dots_amx.c, four registers have the sums of up to 32 rows by two panels, two have rows of
 * `a`, and two have 16 steps of a panel, which lie there as the instruction takes them.
 */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("amx-tile,amx-int8")

#include "bytes.h"

#include "bytes_store.h"

enum { ROWS = 16, LINE = 64, TURN = 64 };  /* TURN: bytes of k that are multiplied at a time */

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
    const int of[] = {top, top, rest, rest, top, rest, ROWS, ROWS};
    for (int i = 0; i < 8; i++) {
        s.bytes[i] = LINE;
        s.rows[i] = (uint8_t)of[i];
    }
    SEEN(&s);
    _tile_loadconfig(&s);
}

/* Sums of two panels (or one) by 16 rows, or more if `both`. */
INLINE void sum_panels(bool both, bool two, const cfxi_byte_tile *t, int32_t *sums)
{
    const int32_t *second = t->first + CFXI_PANEL;
    _tile_loadd(0, t->first, 0);  /* the same for all rows */
    if (two)
        _tile_loadd(1, second, 0);
    if (both)
        _tile_loadd(2, t->first, 0);
    if (both && two)
        _tile_loadd(3, second, 0);
    for (int64_t q = 0; q < t->count; q++) {
        const uint8_t *a = t->a + t->a_at[q];
        const int8_t *b = t->b + t->b_at[q];
        for (int64_t p = 0; p < t->k; p += TURN, a += TURN, b += TURN * CFXI_PANEL) {
            _tile_loadd(6, b, LINE);
            if (two)
                _tile_loadd(7, b + t->b_panel, LINE);
            _tile_loadd(4, a, t->a_row);
            _tile_dpbusd(0, 4, 6);
            if (two)
                _tile_dpbusd(1, 4, 7);
            if (both) {
                _tile_loadd(5, a + ROWS * t->a_row, t->a_row);
                _tile_dpbusd(2, 5, 6);
            }
            if (both && two)
                _tile_dpbusd(3, 5, 7);
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

/* Columns from `column` on, of which `sums` has `panels` panels. */
static void store_panels(const cfxi_byte_tile *t, int rows, int panels, int64_t column,
                         const int32_t *sums)
{
    const ends s = ends_of(t->end);
    const cfxi_byte_end *e = t->end;
    const int64_t end = column + panels * CFXI_PANEL;
    const int64_t last = end < t->columns ? end : t->columns;
    for (int i = 0; i < rows; i++, sums += panels * CFXI_PANEL)
        for (int64_t j = column; j < last; j += CFXI_PANEL) {
            const int64_t n = last - j < CFXI_PANEL ? last - j : CFXI_PANEL;
            VI x = (VI)LOAD((const float *)(const void *)(sums + j - column));
            if (t->b_zero)
                x -= VI_SET(t->a_sums[i]) * (VI)LOAD((const float *)(const void *)(t->b_zero + j));
            const V r = FMA(FLOAT(x), LOAD(t->factor + j), LOAD(t->bias + j));
            if (e->to_float)
                v_store((float *)t->c + i * t->c_row + j, r, n);
            else
                store_bytes((uint8_t *)t->c + i * t->c_row + j,
                            ended(r, &s, e->adds, e,
                                  e->adds ? t->other + i * t->other_row + j : NULL, n), n);
        }
}

static void tile(const cfxi_byte_tile *t, int rows, int panels)
{
    _Alignas(CFXI_ALIGN) int32_t sums[CFXI_BYTES_MOST_ROWS * 2 * CFXI_PANEL];
    cfxi_byte_tile part = *t;
    set_up(rows);
    for (int panel = 0; panel < panels; panel += 2) {
        const int n = panels - panel < 2 ? 1 : 2;
        part.b = t->b + panel * t->b_panel;
        part.first = t->first + panel * CFXI_PANEL;
        if (rows > ROWS && n == 2)
            sum_panels(true, true, &part, sums);
        else if (rows > ROWS)
            sum_panels(true, false, &part, sums);
        else if (n == 2)
            sum_panels(false, true, &part, sums);
        else
            sum_panels(false, false, &part, sums);
        store_panels(t, rows, n, panel * CFXI_PANEL, sums);
    }
    _tile_release();
}

/* 16 cycles for each product of two registers, which has 16 steps. */
static double cycles(int rows, int panels)
{
    return (rows > ROWS ? 2 : 1) * (panels + 0.5);
}

const cfxi_bytes cfxi_tiles_bytes_amx = {
    "amx", tile, {32, 32, 32, 32, 32, 32, 32, 32}, TURN, cycles};
#endif
