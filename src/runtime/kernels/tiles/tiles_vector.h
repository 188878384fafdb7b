/* tiles_vector.h - the tiles of one instruction set; included once for each, after vector.h.
 *
 * Expects FORMS(X), which calls X(panels, rows) for each tile, and MOST_PANELS and MOST_ROWS of
 * them. Vectors are gcc's: once the loops over a tile are unrolled it lies in registers.
 */
#define VECTORS (CFXI_PANEL / LANES)  /* of a panel */

enum { AHEAD = 32, MOST_WIDTH = MOST_PANELS * VECTORS };

#include "tiles_store.h"

INLINE void add_step(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t, const float *a,
                     const float *b)
{
    V line[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = *(const V *)(b + v / VECTORS * t->b_panel + v % VECTORS * LANES);
    UNROLL for (int i = 0; i < rows; i++) {
        const V x = SET(a[i * t->a_row]);
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] += x * line[v];
    }
}

INLINE void tile(int rows, int panels, const cfxi_sum_tile *t)
{
    const int width = panels * VECTORS;
    const int parts = parts_of(rows, panels);
    sums_of_tile sums[MOST_PARTS];
    const float *next = t->next;
    begin_parts(parts, rows, width, sums, t);
    for (int64_t q = 0; q < t->count; q++) {
        const float *a = t->a + t->a_at[q];
        const float *b = t->b + t->b_at[q];
        int64_t p = 0;
        for (; p + parts <= t->k; p += parts, a += parts, b += parts * CFXI_PANEL) {
            if (rows >= 4) {  /* the machine itself reads ahead what is read in order */
                UNROLL for (int v = 0; v < panels; v++)
                    __builtin_prefetch(b + v * t->b_panel + AHEAD * CFXI_PANEL);
                __builtin_prefetch(next, 0, 2);
                next += t->next_step;
            }
            UNROLL for (int u = 0; u < parts; u++)
                add_step(rows, width, sums[u], t, a + u, b + u * CFXI_PANEL);
        }
        for (; parts > 1 && p < t->k; p++, a++, b += CFXI_PANEL)
            add_step(rows, width, sums[0], t, a, b);
    }
    add_parts(parts, rows, width, sums);
    finish(rows, width, sums[0], t);
}

INLINE V load(const float *x, int64_t n) { return n == LANES ? LOAD(x) : LOAD_SOME(x, n); }

INLINE V scaled(const float *x, const float *factors, const float *shifts, int64_t n)
{
    V y = load(x, n) * load(factors, n);
    if (shifts)
        y += load(shifts, n);
    return y;
}

static void scale_row(int64_t n, const float *x, const float *factors, const float *shifts,
                      float low, float high, float *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        STORE(to + i, v_clamp(scaled(x + i, factors + i, shifts ? shifts + i : NULL, LANES),
                              SET(low), SET(high)));
    if (i < n)
        STORE_SOME(to + i, v_clamp(scaled(x + i, factors + i, shifts ? shifts + i : NULL, n - i),
                                   SET(low), SET(high)), n - i);
}

#define X(panels, rows)                                                                            \
    static void tile_##panels##_##rows(const cfxi_sum_tile *t) { tile(rows, panels, t); }
FORMS(X)
#undef X

const cfxi_tiles ISA(cfxi_tiles_all) = {
    .fn = {
#define X(panels, rows) [panels - 1][rows - 1] = tile_##panels##_##rows,
        FORMS(X)
#undef X
    },
    .most_rows = MOST_ROWS,
    .scale_row = scale_row,
};
