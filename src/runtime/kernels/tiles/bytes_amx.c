/* bytes_amx.c - tiles of 8-bit integers by AMX. */
#include "bytes.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("amx-tile,amx-int8")

#include "bytes_store.h"

#define DOTS _tile_dpbusd
#include "amx.h"

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

static void one_tile(const cfxi_byte_tile *t, int rows, int panels)
{
    _Alignas(CFXI_ALIGN) int32_t sums[CFXI_BYTES_MOST_ROWS * 2 * CFXI_PANEL];
    matrices m = {.a = (const char *)t->a, .a_row = t->a_row, .a_at = t->a_at,
                  .b_panel = t->b_panel, .b_at = t->b_at, .unit = 1, .count = t->count,
                  .k = t->k};
    for (int panel = 0; panel < panels; panel += 2) {
        const int n = panels - panel < 2 ? 1 : 2;
        m.b = (const char *)t->b + panel * t->b_panel;
        m.first[0] = t->first + panel * CFXI_PANEL;
        m.first[1] = n == 2 ? t->first + (panel + 1) * CFXI_PANEL : NULL;
        sum_panels(rows, n, &m, sums);
        store_panels(t, rows, n, panel * CFXI_PANEL, sums);
    }
}

static void tile(const cfxi_byte_tile *t, int rows, int panels)
{
    cfxi_byte_tile next = *t;
    set_up(rows, t->k);
    for (int64_t i = 0; i < t->down; i++, go_down(&next, rows))
        one_tile(&next, rows, panels);
    _tile_release();
}

static void interleave(int64_t n, const uint8_t *from, int64_t plane, uint8_t flip, uint8_t *to)
{
    interleave_planes(n, from, plane, flip, to);
}

const cfxi_bytes cfxi_tiles_bytes_amx = {
    "amx", tile, interleave, {32, 32, 32, 32, 32, 32, 32, 32}, TURN, cycles};
#endif
