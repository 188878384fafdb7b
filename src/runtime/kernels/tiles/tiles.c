/* tiles.c - which tiles a machine has, and which of them suit a matrix. */
#include "tiles.h"

#include <math.h>

CFXI_ISA_CHOICE(cfxi_tiles, cfxi_tiles_of, cfxi_tiles_all)

enum {
    LATENCY = 4,    /* cycles until a sum can be added to again */
    WAY = 4096,     /* bytes after which lines meet in the first-level cache, */
    MOST_MEET = 7,  /* and how many of them it holds beside others */
    FEW_ROWS = 2,   /* that wait for the packed operand in any case */
    CACHE_RATE = 12 /* bytes that come from the second-level cache in a cycle, beside arithmetic */
};

/* Cycles of one step of k: a multiply-add for each vector of sums, loads of both operands two at a
 * time, packed lines from the second-level cache, and never less than what a sum takes, which may
 * be in parts (tiles_store.h). */
static double cycles_of(double rows, int panels, int vectors)
{
    const double adds = rows * panels * vectors * (vectors > 1 ? 0.5 : 1);
    const double loads = (rows + panels * vectors) * 0.5;
    const double lines = rows > FEW_ROWS
                             ? panels * CFXI_PANEL * (double)sizeof(float) / CACHE_RATE : 0;
    const double parts = panels > 1 ? 1 : fmax(1, fmin(4, 8 / (rows * vectors)));
    return fmax(fmax(fmax(adds, loads), lines), LATENCY / parts);
}

cfxi_tiling cfxi_tiles_tiling(cfx_isa isa, int64_t rows, int64_t panels, int64_t a_row)
{
    const cfxi_tiles *tiles = cfxi_tiles_of(isa);
    const int vectors = isa == CFX_ISA_AVX512 ? 1 : isa == CFX_ISA_AVX2 ? 2 : 4;
    const bool meet = a_row * (int64_t)sizeof(float) % WAY == 0;
    cfxi_tiling best = {1, 1, INFINITY};
    for (int n = 1; n <= CFXI_TILE_MOST_PANELS; n++) {
        const int there = tiles->most_rows[n - 1];
        const int most = meet && there > MOST_MEET ? MOST_MEET : there;
        if (most == 0 || (n > panels && n > 1))
            continue;
        const int64_t down = (rows + most - 1) / most;
        const int64_t across = (panels + n - 1) / n;
        const int64_t each = (rows + down - 1) / down;
        const double cycles = (double)(down * across) * cycles_of((double)each, n, vectors);
        if (cycles < best.cycles)
            best = (cfxi_tiling){(int)each, n, cycles};
    }
    return best;
}
