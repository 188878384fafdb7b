/* dots_vector.h - tiles of bfloat16 of one instruction set; included once for each, after vector.h.
 *
 * Expects FORMS(X), MOST_PANELS and MOST_ROWS as tiles_vector.h, DOTS, the name of the table, and
 * NAME, how it is called. With PAIRS both operands are pairs, for an instruction that takes them:
 * DOT(sums, a, b). Otherwise `a` has floats, and pairs of `b` are taken apart into two vectors.
 */
#define VECTORS (CFXI_PANEL / LANES)  /* of a panel */

enum { AHEAD = 32, MOST_WIDTH = MOST_PANELS * VECTORS };

#include "tiles_store.h"

INLINE VU load_pairs(const float *b)
{
    return (VU)LOAD(b);
}

#ifdef PAIRS
enum { WIDTH = 1 };

INLINE void add_step(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t, const float *a,
                     const float *b)
{
    VU line[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = load_pairs(b + v / VECTORS * t->b_panel + v % VECTORS * LANES);
    UNROLL for (int i = 0; i < rows; i++) {
        int32_t pair;
        memcpy(&pair, a + i * t->a_row, sizeof pair);
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] = DOT(sums[i][v], VI_SET(pair), line[v]);
    }
}

static double cycles(int rows, int panels)
{
    const double adds = rows * panels;
    const double loads = rows * 0.5 + panels;
    const double most = adds > loads ? adds : loads;
    const double streams = panels * panels / 8.0;  /* memory is read ahead for few at once */
    const double wait = 6.0 / parts_of(rows, panels);  /* until a sum can be added to again */
    return (most > wait ? most : wait) + streams;
}
#else
enum { WIDTH = 2 };

INLINE void add_step(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t, const float *a,
                     const float *b)
{
    V first[MOST_WIDTH];
    V second[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++) {
        const VU line = load_pairs(b + v / VECTORS * t->b_panel + v % VECTORS * LANES);
        first[v] = (V)(line << 16);
        second[v] = (V)(line & 0xffff0000u);
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const V x = SET(a[i * t->a_row]);
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] += x * first[v];
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const V x = SET(a[i * t->a_row + 1]);
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] += x * second[v];
    }
}

static double cycles(int rows, int panels)
{
    const int vectors = panels * VECTORS;
    const double adds = (2 * rows + 2) * vectors * (VECTORS > 1 ? 0.5 : 1);
    const double wait = 8.0 / parts_of(rows, panels);
    return adds > wait ? adds : wait;
}
#endif

INLINE void sum(int rows, int panels, const cfxi_sum_tile *t)
{
    const int width = panels * VECTORS;
    const int parts = parts_of(rows, panels);
    sums_of_tile sums[MOST_PARTS];
    begin_parts(parts, rows, width, sums, t);
    for (int64_t q = 0; q < t->count; q++) {
        const float *a = t->a + t->a_at[q];
        const float *b = t->b + t->b_at[q];
        int64_t p = 0;
        for (; p + parts <= t->k; p += parts, a += parts * WIDTH, b += parts * CFXI_PANEL) {
            if (rows >= 4)  /* the machine itself reads ahead what is read in order */
                UNROLL for (int v = 0; v < panels; v++)
                    __builtin_prefetch(b + v * t->b_panel + AHEAD * CFXI_PANEL);
            UNROLL for (int u = 0; u < parts; u++)
                add_step(rows, width, sums[u], t, a + u * WIDTH, b + u * CFXI_PANEL);
        }
        for (; parts > 1 && p < t->k; p++, a += WIDTH, b += CFXI_PANEL)
            add_step(rows, width, sums[0], t, a, b);
    }
    add_parts(parts, rows, width, sums);
    finish(rows, width, sums[0], t);
}

#define X(panels, rows)                                                                            \
    static void tile_##panels##_##rows(const cfxi_sum_tile *t) { sum(rows, panels, t); }
FORMS(X)
#undef X

static void tile(const cfxi_sum_tile *t, int rows, int panels)
{
    static cfxi_sum_tile_fn *const all[MOST_PANELS][CFXI_TILE_MOST_ROWS] = {
#define X(panels, rows) [panels - 1][rows - 1] = tile_##panels##_##rows,
        FORMS(X)
#undef X
    };
    all[panels - 1][rows - 1](t);
}

const cfxi_dots DOTS = {NAME, tile, MOST_ROWS, WIDTH, 1, cycles, round_elements};
