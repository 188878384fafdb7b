/* bytes.c - which tiles of 8-bit integers a machine has, and which of them suit a matrix. */
#include "bytes.h"

#include <math.h>

CFXI_ISA_CHOICE(cfxi_bytes, cfxi_tiles_bytes_of_isa, cfxi_tiles_bytes)

enum { CHOICES = 3 };  /* of rows, for each number of panels */

const cfxi_bytes *cfxi_tiles_bytes_of(cfx_isa isa, cfxi_int8 int8, int64_t rows, int64_t k)
{
#if defined(__x86_64__)
    if (int8 == CFXI_INT8_TILES && cfxi_tiles_suit_amx(rows, k, cfxi_tiles_bytes_amx.steps))
        return &cfxi_tiles_bytes_amx;
    if (int8 >= CFXI_INT8_DOTS)
        return isa == CFX_ISA_AVX512 ? &cfxi_tiles_bytes_vnni : &cfxi_tiles_bytes_avxvnni;
#else
    (void)int8, (void)rows, (void)k;
#endif
    return cfxi_tiles_bytes_of_isa(isa);
}

/* Of a tile: its steps, what becomes of its sums, and what each tile costs beside that. */
static double cycles_of(const cfxi_bytes *bytes, int64_t rows, int64_t panels, double steps)
{
    const double ends = 50 + 4.0 * (double)(rows * panels);
    return rows > 0 ? bytes->cycles((int)rows, (int)panels) * steps + ends : 0;
}

/* All tiles of `panels` panels side by side. */
static double column_cycles(const cfxi_bytes *bytes, int64_t rows, int64_t each, int64_t panels,
                            double steps)
{
    return (double)(rows / each) * cycles_of(bytes, each, panels, steps) +
           cycles_of(bytes, rows % each, panels, steps);
}

static double all_cycles(const cfxi_bytes *bytes, int64_t rows, int64_t panels, cfxi_tiling t,
                         double steps)
{
    double cycles = (double)(panels / t.panels) *
                    column_cycles(bytes, rows, t.rows, t.panels, steps);
    int64_t left = panels % t.panels;
    for (int64_t n; left > 0; left -= n) {
        n = cfxi_tiles_across(bytes->most_rows, t, left);
        cycles += column_cycles(bytes, rows, t.rows, n, steps);
    }
    return cycles;
}

cfxi_tiling cfxi_tiles_bytes_tiling(const cfxi_bytes *bytes, int64_t rows, int64_t panels,
                                    int64_t k)
{
    const double steps = (double)((k + CFXI_STEP - 1) / CFXI_STEP);
    cfxi_tiling best = {1, 1, INFINITY};
    for (int n = 1; n <= CFXI_TILE_MOST_PANELS; n++) {
        const int most = bytes->most_rows[n - 1];
        if (most == 0 || (n > panels && n > 1))
            continue;
        const int64_t down = (rows + most - 1) / most;
        for (int64_t i = down; i < down + CHOICES; i++) {
            cfxi_tiling t = {(int)((rows + i - 1) / i), n, 0};
            t.cycles = all_cycles(bytes, rows, panels, t, steps);
            if (t.cycles < best.cycles)
                best = t;
        }
    }
    return best;
}
