/* conv_tile_vector.h - the inner loop of convolution: a tile of the output, some channels by three
 * vectors of places, kept in registers while the taps go by; included once for each instruction
 * set, after vector.h and ROWS, the channels that registers hold: half of CFXI_TILE_ROWS or all.
 */
enum { VECTORS = 3, MOST = VECTORS * LANES, MOST_OF_ROW = 4 * LANES };

/* Calls WORK(vectors, left) for n > 0 places, at most three vectors: the last one has `left`. */
#define WITH_VECTORS(n, WORK)                                                                      \
    {                                                                                              \
        if ((n) > 2 * LANES)                                                                       \
            WORK(3, (n) - 2 * LANES);                                                              \
        else if ((n) > LANES)                                                                      \
            WORK(2, (n) - LANES);                                                                  \
        else                                                                                       \
            WORK(1, n);                                                                            \
    }

/* How many places of vector v there are. */
#define PLACES(v) ((v) + 1 < vectors ? LANES : left)

/* Channels [row, row + ROWS), those that there are; `vectors` of places, from number `place` on. */
INLINE void sum_rows(const cfxi_tile *t, int row, int64_t place, int vectors, int64_t left)
{
    V sums[ROWS][VECTORS];
    const float *a = t->a + row;
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            sums[r][v] = SET(t->bias[row + r]);
    for (int64_t i = 0; i < t->k; i++, a += CFXI_TILE_ROWS) {
        const float *b = t->b + t->offset[i] + place;
        V line[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
            line[v] = v_load(b + v * LANES, PLACES(v));
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] = FMA(SET(a[r]), line[v], sums[r][v]);
    }
    UNROLL for (int r = 0; r < ROWS; r++)
        if (row + r < t->rows)
            UNROLL for (int v = 0; v < vectors; v++)
                v_store(t->c + (row + r) * t->c_row + place + v * LANES, sums[r][v], PLACES(v));
}

INLINE void sum_places(const cfxi_tile *t, int row)
{
    int64_t place = 0;
    for (; place + MOST <= t->columns; place += MOST)
        sum_rows(t, row, place, VECTORS, LANES);
#define WORK(vectors, left) sum_rows(t, row, place, vectors, left)
    if (place < t->columns)
        WITH_VECTORS(t->columns - place, WORK)
#undef WORK
}

static void tile(const cfxi_tile *t)
{
    sum_places(t, 0);
    if (ROWS < CFXI_TILE_ROWS && t->rows > ROWS)
        sum_places(t, ROWS);
}

INLINE void sum_row(const cfxi_tile *t, int64_t place, int vectors, int64_t left)
{
    V sums[MOST_OF_ROW / LANES];
    UNROLL for (int v = 0; v < vectors; v++)
        sums[v] = SET(t->bias[0]);
    for (int64_t i = 0; i < t->k; i++) {
        const float *b = t->b + t->offset[i] + place;
        UNROLL for (int v = 0; v < vectors; v++)
            sums[v] = FMA(SET(t->a[i]), v_load(b + v * LANES, PLACES(v)), sums[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++)
        v_store(t->c + place + v * LANES, sums[v], PLACES(v));
}

/* Four vectors, whose sums hide the latency of each other. */
static void row(const cfxi_tile *t)
{
    int64_t place = 0;
    for (; place + MOST_OF_ROW <= t->columns; place += MOST_OF_ROW)
        sum_row(t, place, MOST_OF_ROW / LANES, LANES);
    if (place + MOST < t->columns)
        sum_row(t, place, MOST_OF_ROW / LANES, t->columns - place - MOST);
#define WORK(vectors, left) sum_row(t, place, vectors, left)
    else if (place < t->columns)
        WITH_VECTORS(t->columns - place, WORK)
#undef WORK
}

const cfxi_conv_tiles ISA(cfxi_conv_tiles_all) = {tile, row};
