/* tiles_vector.h - the tiles of one instruction set; included once for each, after vector.h.
 *
 * Expects FORMS(X), which calls X(panels, rows) for each tile, and MOST_PANELS and MOST_ROWS of
 * them. Vectors are gcc's: once the loops over a tile are unrolled it lies in registers.
 */
#define VECTORS (CFXI_PANEL / LANES)  /* of a panel */

/* Sizes are constants, so that gcc takes the array apart into registers. */
enum { AHEAD = 32, MOST_WIDTH = MOST_PANELS * VECTORS, MOST_SUMS = 28 };
typedef V sums_of_tile[CFXI_TILE_MOST_ROWS][MOST_WIDTH];

/* What the sums begin with. */
INLINE void begin(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t)
{
    V line[MOST_WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = t->bias ? *(const V *)(t->bias + v * LANES) : (V){0};
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++)
            sums[i][v] = line[v];
}

INLINE void store_whole(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t)
{
    const V low = SET(t->low);
    const V high = SET(t->high);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++) {
            V x = sums[i][v];
            if (t->add)
                x += *(const V *)(t->add + i * t->add_row + v * LANES);
            *(V *)(t->c + i * t->c_row + v * LANES) = v_clamp(x, low, high);
        }
}

/* The last panel of a matrix may have fewer columns: whole vectors of a row, then what is left. */
static __attribute__((noinline)) void store_part(int rows, int width, const float *sums,
                                                 const cfxi_sum_tile *t)
{
    const V low = SET(t->low);
    const V high = SET(t->high);
    const int64_t whole = t->columns / LANES * LANES;
    const int64_t left = t->columns - whole;
    for (int i = 0; i < rows; i++) {
        const float *from = sums + i * width * LANES;
        const float *add = t->add ? t->add + i * t->add_row : NULL;
        float *c = t->c + i * t->c_row;
        for (int64_t j = 0; j < whole; j += LANES) {
            V x = LOAD(from + j);
            if (add)
                x += LOAD(add + j);
            STORE(c + j, v_clamp(x, low, high));
        }
        if (left == 0)
            continue;
        V x = LOAD(from + whole);
        if (add)
            x += LOAD_SOME(add + whole, left);
        STORE_SOME(c + whole, v_clamp(x, low, high), left);
    }
}

INLINE void tile(int rows, int panels, const cfxi_sum_tile *t)
{
    const int width = panels * VECTORS;
    sums_of_tile sums;
    begin(rows, width, sums, t);
    for (int64_t q = 0; q < t->count; q++) {
        const float *a = t->a + t->a_at[q];
        const float *b = t->b + t->b_at[q];
        for (int64_t p = 0; p < t->k; p++, a++, b += CFXI_PANEL) {
            V line[MOST_WIDTH];
            UNROLL for (int v = 0; v < width; v++)
                line[v] = *(const V *)(b + v / VECTORS * t->b_panel + v % VECTORS * LANES);
            if (rows >= 4)  /* fewer wait for memory alone, and it is read as fast as it can be */
                UNROLL for (int v = 0; v < width; v += VECTORS)
                    __builtin_prefetch(b + v / VECTORS * t->b_panel + AHEAD * CFXI_PANEL);
            UNROLL for (int i = 0; i < rows; i++) {
                const V x = SET(a[i * t->a_row]);
                UNROLL for (int v = 0; v < width; v++)
                    sums[i][v] += x * line[v];
            }
        }
    }
    if (t->columns == panels * CFXI_PANEL) {
        store_whole(rows, width, sums, t);
        return;
    }
    float memory[MOST_SUMS * LANES];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++)
            *(V *)(memory + (i * width + v) * LANES) = sums[i][v];
    store_part(rows, width, memory, t);
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
