/* weight_only_vector.h - products with weights of 8 or 4 bits, of one instruction set; included
 * once for each, after vector.h.
 *
 * Expects COLUMNS, those of a panel, MOST_ROWS, FORMS(X), which calls X(rows) for all up to these,
 * WIDE_ROWS, for which there is room for the sums of all columns, and FEW_ROWS.
 */
enum {
    WIDTH = COLUMNS / LANES,
    PART_SUMS = 8,
    AHEAD = 128  /* codes of a column that are fetched before they are used */
};

/* The code number `i` of each word. */
INLINE V code_of(int bits, VU words, int i)
{
#if LANES == 16
    if (bits == 4) {  /* of an index, only the lowest four bits count */
        const V all = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
        return _mm512_permutexvar_ps((__m512i)(words >> 4 * i), all);
    }
#endif
    const VI whole = (VI)(words << (32 - bits * (i + 1))) >> (32 - bits);
#if LANES == 4 && !defined(NEON)
    return __builtin_convertvector(whole, V);
#else
    return FLOAT(whole);
#endif
}

/* Sums of few columns have parts, of which none waits for the one before it. */
INLINE int parts_of(int rows, int width)
{
    const int parts = PART_SUMS / (rows * width);
    return parts < 1 ? 1 : parts;
}

typedef V sums_of_rows[MOST_ROWS][WIDTH];

/* `codes` codes of the words in `line`, the first of which are in the lowest bits. */
INLINE void add_codes(int bits, int codes, bool zeros, int rows, int width, sums_of_rows *sums,
                      int64_t a_row, const float *a, const VU line[WIDTH], const V zero[WIDTH])
{
    const int parts = parts_of(rows, width);
    UNROLL for (int k = 0; k < codes; k++)
        UNROLL for (int v = 0; v < width; v++) {
            V w = code_of(bits, line[v], k);
            if (zeros)
                w -= zero[v];
            UNROLL for (int i = 0; i < rows; i++)
                sums[k % parts][i][v] += SET(a[i * a_row + k]) * w;
        }
}

/* One word of each column. With more rows, four codes at a time are long enough. */
INLINE void add_words(int bits, bool zeros, int rows, int width, sums_of_rows *sums,
                      const cfxi_weight_only_tile *t, const float *a, const float *b,
                      const V zero[WIDTH])
{
    const int codes = rows > WIDE_ROWS ? 4 : 32 / bits;
    VU line[WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = (VU)LOAD(b + v * LANES);
    for (int k = 0; k < 32 / bits; k += codes) {
        add_codes(bits, codes, zeros, rows, width, sums, t->a_row, a + k, line, zero);
        UNROLL for (int v = 0; v < width; v++)
            line[v] >>= 16;
    }
}

/* Adds what a group gives, times its scales, to all[rows][COLUMNS]. */
INLINE void add_group(int bits, bool zeros, int rows, int width, const cfxi_weight_only_tile *t,
                      float *all, const float *a, const float *b)
{
    const int parts = parts_of(rows, width);
    const float *words = b + (t->zeros ? 2 : 1) * COLUMNS;
    sums_of_rows sums[PART_SUMS];
    V zero[WIDTH];
    UNROLL for (int u = 0; u < parts; u++)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[u][i][v] = (V){0};
    UNROLL for (int v = 0; v < width; v++)
        zero[v] = t->zeros ? LOAD(b + COLUMNS + v * LANES) : (V){0};
    for (int64_t k = 0; k < t->words; k++) {
        UNROLL for (int v = 0; v < width; v++)
            __builtin_prefetch(words + (k + AHEAD * bits / 32) * COLUMNS + v * LANES);
        add_words(bits, zeros, rows, width, sums, t, a + k * (32 / bits), words + k * COLUMNS,
                  zero);
    }
    UNROLL for (int u = 1; u < parts; u++)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[0][i][v] += sums[u][i][v];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++) {
            float *at = all + i * COLUMNS + v * LANES;
            STORE(at, LOAD(at) + LOAD(b + v * LANES) * sums[0][i][v]);
        }
}

/* `width` vectors of columns, from `column` on. */
INLINE void sum_columns(int bits, bool zeros, int rows, int width, const cfxi_weight_only_tile *t,
                        int64_t column, float *all)
{
    const int64_t floats = cfxi_tiles_weight_only_group(COLUMNS, t->zeros, t->words);
    const float *a = t->a;
    const float *b = t->b + column;
    for (int64_t g = 0; g < t->groups; g++, b += floats, a += t->words * (32 / bits))
        add_group(bits, zeros, rows, width, t, all + column, a, b);
}

/* More rows leave room for the sums of fewer columns. Beside their products, it does not matter
 * that something is subtracted. */
INLINE void sum_rows(int bits, int rows, const cfxi_weight_only_tile *t, float *all)
{
    if (rows <= WIDE_ROWS / 2 && !t->zeros)
        sum_columns(bits, false, rows, WIDTH, t, 0, all);
    else if (rows <= WIDE_ROWS)
        sum_columns(bits, true, rows, WIDTH, t, 0, all);
    else
        for (int64_t at = 0; at < COLUMNS; at += COLUMNS / 2)
            sum_columns(bits, true, rows, WIDTH / 2, t, at, all);
}

#define X(rows)                                                                                    \
    static void sum_4_##rows(const cfxi_weight_only_tile *t, float *sums)                          \
    {                                                                                              \
        sum_rows(4, rows, t, sums);                                                                \
    }                                                                                              \
    static void sum_8_##rows(const cfxi_weight_only_tile *t, float *sums)                          \
    {                                                                                              \
        sum_rows(8, rows, t, sums);                                                                \
    }
FORMS(X)
#undef X

/* Groups add to sums that lie side by side, however c lies and whatever part of a panel it has. */
static void sum(const cfxi_weight_only_tile *t, int rows)
{
    static void (*const all[MOST_ROWS][2])(const cfxi_weight_only_tile *t, float *sums) = {
#define X(rows) [rows - 1] = {sum_4_##rows, sum_8_##rows},
        FORMS(X)
#undef X
    };
    float sums[MOST_ROWS * COLUMNS] __attribute__((aligned(64)));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < COLUMNS; j += LANES)
            STORE(sums + i * COLUMNS + j, t->bias ? LOAD(t->bias + j) : (V){0});
    all[rows - 1][t->bits == 8](t, sums);
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < t->columns; j += LANES)
            v_store(t->c + i * t->c_row + j, LOAD(sums + i * COLUMNS + j), t->columns - j);
}

INLINE void widen_line(int bits, bool zeros, const cfxi_weight_only_block *t, const float *group,
                       const float *words, float *to)
{
    const int codes = 32 / bits;
    UNROLL for (int v = 0; v < WIDTH; v++) {
        const int at = v * LANES;
        const VU line = (VU)LOAD(words + at);
        __builtin_prefetch(words + at + AHEAD * bits / 32 * COLUMNS);
        const V scale = LOAD(group + at);
        const V zero = zeros ? LOAD(group + COLUMNS + at) : (V){0};
        UNROLL for (int k = 0; k < codes; k++) {
            V w = code_of(bits, line, k);
            if (zeros)
                w -= zero;
            STORE(to + at / CFXI_PANEL * t->to_panel + k * CFXI_PANEL + at % CFXI_PANEL, w * scale);
        }
    }
}

INLINE void widen_lines(int bits, bool zeros, const cfxi_weight_only_block *t)
{
    const int64_t floats = cfxi_tiles_weight_only_group(COLUMNS, zeros, t->words);
    float *to = t->to;
    for (int64_t line = t->first; line < t->end; line++, to += 32 / bits * CFXI_PANEL) {
        const float *group = t->b + line / t->words * floats;
        widen_line(bits, zeros, t, group,
                   group + (1 + zeros + line % t->words) * COLUMNS, to);
    }
}

static void widen(const cfxi_weight_only_block *t)
{
    if (t->bits == 4 && !t->zeros)
        widen_lines(4, false, t);
    else if (t->bits == 4)
        widen_lines(4, true, t);
    else if (!t->zeros)
        widen_lines(8, false, t);
    else
        widen_lines(8, true, t);
}

const cfxi_weight_only ISA(cfxi_tiles_weight_only) = {COLUMNS, MOST_ROWS, FEW_ROWS, sum, widen};
