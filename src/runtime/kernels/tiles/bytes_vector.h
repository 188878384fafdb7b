/* bytes_vector.h - tiles of 8-bit integers of one instruction set; included once for each, after
 * vector.h.
 *
 * Expects FORMS(X), MOST_PANELS and MOST_ROWS as tiles_vector.h, BYTES, the name of the table, and
 * NAME, how it is called; and DOT(sums, a, b), which adds the products of four bytes, or, where no
 * instruction does that exactly, MADD(a, b), the sums of products of two 16-bit numbers: then
 * operands are taken apart into those at even and at odd places.
 */
#include "bytes.h"

#include "bytes_store.h"

#define VECTORS (CFXI_PANEL / LANES)  /* of a panel */

enum {
    AHEAD = 16,  /* steps */
    MOST_WIDTH = MOST_PANELS * VECTORS,
    LINE = CFXI_PANEL * CFXI_STEP,  /* bytes of a step */
    MOST_SUMS = 28
};
typedef VI sums_of_bytes[CFXI_TILE_MOST_ROWS][MOST_WIDTH];

INLINE VI four_bytes(const uint8_t *a)
{
    int32_t four;
    memcpy(&four, a, sizeof four);
    return VI_SET(four);
}

INLINE VI load_line(const int8_t *b, int v, int64_t b_panel)
{
    VI line;
    memcpy(&line, b + v / VECTORS * b_panel + v % VECTORS * LANES * CFXI_STEP, sizeof line);
    return line;
}

#ifdef DOT
INLINE void add_step(int rows, int width, sums_of_bytes sums, const cfxi_byte_tile *t,
                     const uint8_t *a, const int8_t *b)
{
    VI line[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = load_line(b, v, t->b_panel);
    UNROLL for (int i = 0; i < rows; i++) {
        const VI four = four_bytes(a + i * t->a_row);
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] = DOT(sums[i][v], four, line[v]);
    }
}
enum { DOTS = 1 };  /* instructions for each vector */
#else
typedef int16_t VS __attribute__((vector_size(LANES * sizeof(float))));

INLINE void add_step(int rows, int width, sums_of_bytes sums, const cfxi_byte_tile *t,
                     const uint8_t *a, const int8_t *b)
{
    VI even[MOST_WIDTH];
    VI odd[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++) {
        const VS line = (VS)load_line(b, v, t->b_panel);
        even[v] = (VI)((VS)(line << 8) >> 8);
        odd[v] = (VI)(line >> 8);
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const VI four = four_bytes(a + i * t->a_row);
        const VI first = four & 0x00ff00ff;
        const VI second = (VI)((VU)four >> 8) & 0x00ff00ff;
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] += MADD(first, even[v]) + MADD(second, odd[v]);
    }
}
enum { DOTS = 4 };
#endif

INLINE void store_tile(int rows, int width, sums_of_bytes sums, const cfxi_byte_tile *t)
{
    const ends s = ends_of(t->end);
    UNROLL for (int v = 0; v < width; v++) {
        const V factor = LOAD(t->factor + v * LANES);
        const V bias = LOAD(t->bias + v * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            const V r = EXACT_FMA(TO_FLOAT(sums[i][v]), factor, bias);
            const int64_t at = i * t->c_row + v * LANES;
            store_bytes((uint8_t *)t->c + at, ended(r, &s, false, t->end, NULL, LANES), LANES);
        }
    }
}

/* n columns from j on, at most a vector, of all rows. */
INLINE void store_columns(int rows, int width, bool adds, const VI *sums, const cfxi_byte_tile *t,
                          int64_t j, int64_t n)
{
    const ends s = ends_of(t->end);
    const V factor = LOAD(t->factor + j);
    const V bias = LOAD(t->bias + j);
    for (int i = 0; i < rows; i++) {
        const V r = EXACT_FMA(TO_FLOAT(sums[i * width + j / LANES]), factor, bias);
        const int64_t at = i * t->c_row + j;
        if (t->end->to_float)
            v_store((float *)t->c + at, r, n);
        else
            store_bytes((uint8_t *)t->c + at,
                        ended(r, &s, adds, t->end,
                              adds ? t->other + i * t->other_row + j : NULL, n), n);
    }
}

/* The last panel of a matrix may have fewer columns; or there is another matrix, or floats are
 * stored: code of its own for them in each tile would be half as large again. */
static __attribute__((noinline)) void store_some(int rows, int width, const VI *sums,
                                                 const cfxi_byte_tile *t)
{
    int64_t j = 0;
    for (; j + LANES <= t->columns && t->end->adds; j += LANES)
        store_columns(rows, width, true, sums, t, j, LANES);
    for (; j + LANES <= t->columns; j += LANES)
        store_columns(rows, width, false, sums, t, j, LANES);
    if (j < t->columns)
        store_columns(rows, width, t->end->adds, sums, t, j, t->columns - j);
}

/* Stores the sums, if need be by way of memory. */
INLINE void finish(int rows, int width, sums_of_bytes sums, const cfxi_byte_tile *t)
{
    if (t->b_zero)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[i][v] -= VI_SET(t->a_sums[i]) * (VI)LOAD((const float *)t->b_zero + v * LANES);
    if (t->columns == width * LANES && !t->end->adds && !t->end->to_float) {
        store_tile(rows, width, sums, t);
    } else {
        VI memory[MOST_SUMS];
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                memory[i * width + v] = sums[i][v];
        store_some(rows, width, memory, t);
    }
}

INLINE void sum(int rows, int panels, const cfxi_byte_tile *t)
{
    const int width = panels * VECTORS;
    sums_of_bytes sums;
    UNROLL for (int v = 0; v < width; v++) {
        const VI first = (VI)LOAD((const float *)t->first + v * LANES);
        UNROLL for (int i = 0; i < rows; i++)
            sums[i][v] = first;
    }
    const int8_t *next = t->next;
    for (int64_t q = 0; q < t->count; q++) {
        const uint8_t *a = t->a + t->a_at[q];
        const int8_t *b = t->b + t->b_at[q];
        for (int64_t p = 0; p < t->k; p += CFXI_STEP, a += CFXI_STEP, b += LINE) {
            if (rows >= 4) {  /* the machine itself reads ahead what is read in order */
                UNROLL for (int v = 0; v < panels; v++)
                    __builtin_prefetch(b + v * t->b_panel + AHEAD * LINE);
                __builtin_prefetch(next, 0, 2);
                next += t->next_step;
            }
            add_step(rows, width, sums, t, a, b);
        }
    }
    finish(rows, width, sums, t);
}

typedef void sum_fn(const cfxi_byte_tile *t);
#define X(panels, rows)                                                                            \
    static void tile_##panels##_##rows(const cfxi_byte_tile *t) { sum(rows, panels, t); }
FORMS(X)
#undef X

static void tile(const cfxi_byte_tile *t, int rows, int panels)
{
    static sum_fn *const all[MOST_PANELS][CFXI_TILE_MOST_ROWS] = {
#define X(panels, rows) [panels - 1][rows - 1] = tile_##panels##_##rows,
        FORMS(X)
#undef X
    };
    cfxi_byte_tile next = *t;
    for (int64_t i = 0; i < t->down; i++, go_down(&next, rows))
        all[panels - 1][rows - 1](&next);
}

static double cycles(int rows, int panels)
{
    const double adds = rows * panels * VECTORS * DOTS * 0.5;
    const double loads = (rows + panels * VECTORS) * 0.55;
    const double wait = 4.5;  /* until a sum can be added to again */
    const double most = adds > loads ? adds : loads;
    return (most > wait ? most : wait) + panels * 0.2;
}

static void interleave(int64_t n, const uint8_t *from, int64_t plane, uint8_t flip, uint8_t *to)
{
    interleave_planes(n, from, plane, flip, to);
}

const cfxi_bytes BYTES = {NAME, tile, interleave, MOST_ROWS, CFXI_STEP, cycles};
