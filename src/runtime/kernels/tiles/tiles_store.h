/* tiles_store.h - how tiles begin and end: bias; then sums, clamps, and a last panel that may have
 * fewer columns. Included by the templates of tiles after vector.h and MOST_WIDTH, the vectors of
 * the widest row.
 */
/* Sizes are constants, so that gcc takes the array apart into registers. */
enum { MOST_SUMS = 28, MOST_PARTS = 4 };
typedef V sums_of_tile[CFXI_TILE_MOST_ROWS][MOST_WIDTH];

/* Few rows wait for memory, which is read fastest in order: one panel at a time. Their sums have
 * parts then, which follow each other in k, so that none waits for the one before it. */
INLINE int parts_of(int rows, int panels)
{
    const int parts = panels > 1 ? 1 : 8 / (rows * (CFXI_PANEL / LANES));
    return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

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

INLINE void begin_parts(int parts, int rows, int width, sums_of_tile sums[MOST_PARTS],
                        const cfxi_sum_tile *t)
{
    begin(rows, width, sums[0], t);
    UNROLL for (int u = 1; u < parts; u++)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[u][i][v] = (V){0};
}

INLINE void add_parts(int parts, int rows, int width, sums_of_tile sums[MOST_PARTS])
{
    UNROLL for (int u = 1; u < parts; u++)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[0][i][v] += sums[u][i][v];
}

/* Stores the sums, if need be by way of memory. */
INLINE void finish(int rows, int width, sums_of_tile sums, const cfxi_sum_tile *t)
{
    if (t->columns == width * LANES) {
        store_whole(rows, width, sums, t);
        return;
    }
    float memory[MOST_SUMS * LANES];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++)
            *(V *)(memory + (i * width + v) * LANES) = sums[i][v];
    store_part(rows, width, memory, t);
}
