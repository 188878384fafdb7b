/* weight_only_vector.h - products with weights of 8 or 4 bits, of one instruction set; included
 * once for each, after vector.h.
 *
 * Expects COLUMNS, those of a panel, MOST_ROWS, FORMS(X), which calls X(rows) for all up to these,
 * WIDE_ROWS, for which there is room for the sums of all columns, and FEW_ROWS.
 */
enum { WIDTH = COLUMNS / LANES, PART_SUMS = 8 };

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

INLINE void add_words(int bits, bool zeros, int rows, int width, sums_of_rows *sums,
                      const cfxi_weight_only_tile *t, const float *a, const float *b,
                      const V zero[WIDTH])
{
    const int parts = parts_of(rows, width);
    const int codes = 32 / bits;
    VU line[WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        line[v] = (VU)LOAD(b + v * LANES);
    UNROLL for (int k = 0; k < codes; k++)
        UNROLL for (int v = 0; v < width; v++) {
            V w = code_of(bits, line[v], k);
            if (zeros)
                w -= zero[v];
            UNROLL for (int i = 0; i < rows; i++)
                sums[k % parts][i][v] += SET(a[i * t->a_row + k]) * w;
        }
}

/* What a group adds, once it is multiplied by its scales. */
INLINE void add_group(int bits, bool zeros, int rows, int width, sums_of_rows all,
                      const cfxi_weight_only_tile *t, const float *a, const float *b)
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
    for (int64_t k = 0; k < t->words; k++)
        add_words(bits, zeros, rows, width, sums, t, a + k * (32 / bits), words + k * COLUMNS,
                  zero);
    UNROLL for (int u = 1; u < parts; u++)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < width; v++)
                sums[0][i][v] += sums[u][i][v];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++)
            all[i][v] += LOAD(b + v * LANES) * sums[0][i][v];
}

/* `width` vectors of columns, from `column` on. */
INLINE void sum_columns(int bits, bool zeros, int rows, int width, const cfxi_weight_only_tile *t,
                        int64_t column)
{
    const int64_t floats = cfxi_tiles_weight_only_group(COLUMNS, t->zeros, t->words);
    const float *a = t->a;
    const float *b = t->b + column;
    sums_of_rows all;
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++)
            all[i][v] = t->bias ? LOAD(t->bias + column + v * LANES) : (V){0};
    for (int64_t g = 0; g < t->groups; g++, b += floats, a += t->words * (32 / bits))
        add_group(bits, zeros, rows, width, all, t, a, b);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < width; v++) {
            const int64_t at = column + v * LANES;
            if (at < t->columns)
                v_store(t->c + i * t->c_row + at, all[i][v], t->columns - at);
        }
}

/* More rows leave room for the sums of fewer columns. Beside their products, it does not matter
 * that something is subtracted. */
INLINE void sum_rows(int bits, int rows, const cfxi_weight_only_tile *t)
{
    if (rows <= WIDE_ROWS && t->zeros)
        sum_columns(bits, true, rows, WIDTH, t, 0);
    else if (rows <= WIDE_ROWS)
        sum_columns(bits, false, rows, WIDTH, t, 0);
    else
        for (int64_t at = 0; at < t->columns; at += COLUMNS / 2)
            sum_columns(bits, true, rows, WIDTH / 2, t, at);
}

#define X(rows)                                                                                    \
    static void sum_4_##rows(const cfxi_weight_only_tile *t) { sum_rows(4, rows, t); }             \
    static void sum_8_##rows(const cfxi_weight_only_tile *t) { sum_rows(8, rows, t); }
FORMS(X)
#undef X

static void sum(const cfxi_weight_only_tile *t, int rows)
{
    static void (*const all[MOST_ROWS][2])(const cfxi_weight_only_tile *t) = {
#define X(rows) [rows - 1] = {sum_4_##rows, sum_8_##rows},
        FORMS(X)
#undef X
    };
    all[rows - 1][t->bits == 8](t);
}

INLINE void widen_line(int bits, bool zeros, const cfxi_weight_only_block *t, const float *group,
                       const float *words, float *to)
{
    const int codes = 32 / bits;
    UNROLL for (int v = 0; v < WIDTH; v++) {
        const int at = v * LANES;
        const VU line = (VU)LOAD(words + at);
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
