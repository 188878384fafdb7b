/* tiles.c - which tiles a machine has, and which of them suit a matrix. */
#include "tiles.h"
#include "weight_only.h"

#include <math.h>

CFXI_ISA_CHOICE(cfxi_tiles, cfxi_tiles_of, cfxi_tiles_all)
CFXI_ISA_CHOICE(cfxi_weight_only, cfxi_tiles_weight_only_of, cfxi_tiles_weight_only)

enum {
    LATENCY = 4,    /* cycles until a sum can be added to again */
    WAY = 4096,     /* bytes after which lines meet in the first-level cache, */
    MOST_MEET = 9,  /* and how many of them it holds beside others */
    STREAMS = 4,    /* panels of one row, which waits for memory: more are not read faster */
    CHOICES = 4,    /* numbers of rows that are tried for each number of panels */
    AMX_ROWS = 4,   /* for which AMX, which takes as long for 16, is as fast as vectors, */
    AMX_PART = 4    /* and which part of a turn it needs for that */
};

/* Cycles of one step of k. In each, a machine adds to two vectors of sums, and loads fewer than two
 * operands: so tiles that are nearly square are fast, and those with many sums. Packed lines come
 * from the second-level cache, which costs a little beside arithmetic, as does the loop. A step
 * never takes less than what a sum takes, which may be in parts (tiles_store.h).
 *
 * Some machines add one long vector in a cycle. There every tile waits for its sums, and those that
 * are chosen here are as good as any: so nothing has to be known about that. */
static double cycles_of(double rows, int panels, int vectors)
{
    const double adds = rows * panels * vectors * 0.5;
    const double loads = (rows + panels * vectors) * 0.6;
    const double parts = panels > 1 ? 1 : fmax(1, fmin(4, 8 / (rows * vectors)));
    return fmax(fmax(adds, loads), LATENCY / parts) + (panels + 1) * 0.2;
}

/* All tiles of some panels: those of `each` rows, and what is left. */
static double column_cycles(int64_t rows, int64_t each, int panels, int vectors)
{
    const double whole = (double)(rows / each) * cycles_of((double)each, panels, vectors);
    return rows % each ? whole + cycles_of((double)(rows % each), panels, vectors) : whole;
}

bool cfxi_tiles_suit_amx(int64_t rows, int64_t k, int64_t turn)
{
    return rows >= AMX_ROWS && (k % turn == 0 || (k < turn && k >= turn / AMX_PART));
}

int64_t cfxi_tiles_across(const int most_rows[], cfxi_tiling tiling, int64_t left)
{
    int64_t n = tiling.panels < left ? tiling.panels : left;
    while (most_rows[n - 1] < tiling.rows)
        n--;
    return n;
}

static double all_cycles(const cfxi_tiles *tiles, int64_t rows, int64_t panels, cfxi_tiling t,
                         int vectors)
{
    int64_t left = panels % t.panels;
    double cycles =
        (double)(panels / t.panels) * column_cycles(rows, t.rows, t.panels, vectors);
    for (int64_t n; left > 0; left -= n) {
        n = cfxi_tiles_across(tiles->most_rows, t, left);
        cycles += column_cycles(rows, t.rows, (int)n, vectors);
    }
    return cycles;
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
        if (most == 0 || (n > panels && n > 1) || (rows == 1 && n > STREAMS))
            continue;
        const int64_t down = (rows + most - 1) / most;
        for (int64_t i = down; i < down + CHOICES; i++) {
            cfxi_tiling t = {(int)((rows + i - 1) / i), n, 0};
            t.cycles = all_cycles(tiles, rows, panels, t, vectors);
            if (t.cycles < best.cycles)
                best = t;
        }
    }
    return best;
}

cfxi_tiling cfxi_tiles_cut(const int most_rows[], double (*cycles_of_step)(int rows, int panels),
                           int64_t rows, int64_t panels)
{
    cfxi_tiling best = {1, 1, INFINITY};
    for (int n = 1; n <= CFXI_TILE_MOST_PANELS; n++) {
        const int most = most_rows[n - 1];
        if (most == 0 || (n > panels && n > 1))
            continue;
        const int64_t down = (rows + most - 1) / most;
        const int64_t across = (panels + n - 1) / n;
        const int each = (int)((rows + down - 1) / down);
        const double cycles = (double)(down * across) * cycles_of_step(each, n);
        if (cycles < best.cycles)
            best = (cfxi_tiling){each, n, cycles};
    }
    return best;
}
