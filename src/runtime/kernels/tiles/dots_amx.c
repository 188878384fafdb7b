/* dots_amx.c - tiles of bfloat16 by AMX. */
#include "dots.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("amx-tile,amx-bf16")

enum { STEPS = 16, MOST_WIDTH = 2 };

#include "tiles_store.h"

#define DOTS _tile_dpbf16ps
#include "amx.h"

static void tile(const cfxi_sum_tile *t, int rows, int panels)
{
    static const float none[CFXI_PANEL];
    enum { FLOAT = sizeof(float) };
    _Alignas(CFXI_ALIGN) float sums[CFXI_DOTS_MOST_ROWS * 2 * CFXI_PANEL];
    cfxi_sum_tile part = *t;
    matrices m = {.a = (const char *)t->a, .a_row = t->a_row * FLOAT, .a_at = t->a_at,
                  .b_panel = t->b_panel * FLOAT, .b_at = t->b_at, .unit = FLOAT,
                  .count = t->count, .k = t->k * FLOAT};
    set_up(rows, m.k);
    for (int panel = 0; panel < panels; panel += 2) {
        const int n = panels - panel < 2 ? 1 : 2;
        const int64_t column = panel * CFXI_PANEL;
        const int64_t left = t->columns - column;
        m.b = (const char *)(t->b + panel * t->b_panel);
        m.first[0] = t->bias ? t->bias + column : none;
        m.first[1] = t->bias && n == 2 ? t->bias + column + CFXI_PANEL : none;
        part.add = t->add ? t->add + column : NULL;
        part.c = t->c + column;
        part.columns = left < n * CFXI_PANEL ? left : n * CFXI_PANEL;
        sum_panels(rows, n, &m, sums);
        store_part(rows, n, sums, &part);
    }
    _tile_release();
}

static void round_elements(int64_t n, const float *from, void *to)
{
    cfxi_tiles_dots_bf16.round(n, from, to);
}

const cfxi_dots cfxi_tiles_dots_amx = {
    "amx", tile, {32, 32, 32, 32, 32, 32, 32, 32}, 1, STEPS, cycles, round_elements};
#endif
