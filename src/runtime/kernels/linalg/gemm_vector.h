/* gemm_vector.h - the inner loops of matrix products, of one type and instruction set; included
 * twice for each, after vector.h, by gemm_types.h.
 *
 * Expects NAME(x), REAL, VEC (a vector of them) and TOTAL (its sum), COLUMNS (vectors in a row of a
 * tile), ROWS, and BLOCK (the size of square blocks that are transposed in registers: 8 floats, 4
 * doubles; 1: none). Vectors are gcc's: the tile lies in registers once the loops over it are
 * unrolled.
 */
#define WIDTH ((int)(sizeof(VEC) / sizeof(REAL)))

/* ---- tiles --------------------------------------------------------------------------------- */

/* From the sums of a tile that lie in memory; not unrolled: it is little work, and many copies. */
static __attribute__((noinline)) void NAME(finish)(int rows, const REAL *sums,
                                                   const cfxi_gemm_tile *t)
{
    const REAL alpha = (REAL)t->alpha;
    const REAL beta = (REAL)t->beta;
    const REAL *bias = t->bias;
    for (int i = 0; i < rows; i++) {
        REAL *c = (REAL *)t->c + i * t->c_row;
        UNROLL for (int v = 0; v < COLUMNS; v++) {
            VEC x = *(const VEC *)(sums + (i * COLUMNS + v) * WIDTH) * alpha;
            if (beta != 0)
                x += *(const VEC *)(c + v * WIDTH) * beta;
            if (bias && t->bias_rows)
                x += bias[i];
            else if (bias)
                x += *(const VEC *)(bias + v * WIDTH);
            *(VEC *)(c + v * WIDTH) = x;
        }
    }
}

INLINE void NAME(store)(int rows, VEC sums[ROWS][COLUMNS], const cfxi_gemm_tile *t)
{
    REAL memory[ROWS * COLUMNS * WIDTH];
    bool plain = t->alpha == 1 && t->beta == 0 && !t->bias;
    REAL *to = plain ? t->c : memory;
    int64_t step = plain ? t->c_row : COLUMNS * WIDTH;
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < COLUMNS; v++)
            *(VEC *)(to + i * step + v * WIDTH) = sums[i][v];
    if (!plain)
        NAME(finish)(rows, memory, t);
}

INLINE void NAME(tile)(int rows, int64_t k, const REAL *a, int64_t a_row, int64_t a_col,
                       const REAL *b, int64_t b_row, const cfxi_gemm_tile *t)
{
    VEC sums[ROWS][COLUMNS] = {{{0}}};
    for (int64_t p = 0; p < k; p++) {
        VEC line[COLUMNS];
        UNROLL for (int v = 0; v < COLUMNS; v++)
            line[v] = *(const VEC *)(b + v * WIDTH);
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int v = 0; v < COLUMNS; v++)
                sums[i][v] += a[i * a_row] * line[v];
        a += a_col;
        b += b_row;
    }
    NAME(store)(rows, sums, t);
}

static void NAME(packed)(int rows, int64_t k, const void *a, const void *b, const cfxi_gemm_tile *t)
{
    if (rows > 8)
        NAME(tile)(ROWS, k, a, 1, ROWS, b, COLUMNS * WIDTH, t);
    else if (rows > 4)
        NAME(tile)(ROWS < 8 ? ROWS : 8, k, a, 1, ROWS, b, COLUMNS * WIDTH, t);
    else
        NAME(tile)(4, k, a, 1, ROWS, b, COLUMNS * WIDTH, t);
}

static void NAME(direct)(int rows, int64_t k, const void *a, int64_t a_row, int64_t a_col,
                         const void *b, int64_t b_row, const cfxi_gemm_tile *t)
{
    const REAL *from = a;
    cfxi_gemm_tile at = *t;
    while (rows > 0) {
        int n = rows >= ROWS ? ROWS : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        if (n == ROWS && ROWS > 4)
            NAME(tile)(ROWS, k, from, a_row, a_col, b, b_row, &at);
        else if (n == 4)
            NAME(tile)(4, k, from, a_row, a_col, b, b_row, &at);
        else if (n == 2)
            NAME(tile)(2, k, from, a_row, a_col, b, b_row, &at);
        else
            NAME(tile)(1, k, from, a_row, a_col, b, b_row, &at);
        rows -= n;
        from += n * a_row;
        at.c = (REAL *)at.c + n * at.c_row;
        if (at.bias && at.bias_rows)
            at.bias = (const REAL *)at.bias + n;
    }
}

/* ---- dot products -------------------------------------------------------------------------- */

INLINE void NAME(dot_tile)(int rows, int columns, int64_t k, const REAL *a, int64_t a_row,
                           const REAL *b, int64_t b_col, REAL *c, int64_t c_row)
{
    VEC part[CFXI_DOT_ROWS][CFXI_DOT_COLUMNS] = {{{0}}};
    int64_t p = 0;
    for (; p + WIDTH <= k; p += WIDTH) {
        VEC left[CFXI_DOT_ROWS];
        UNROLL for (int i = 0; i < rows; i++)
            left[i] = *(const VEC *)(a + i * a_row + p);
        UNROLL for (int j = 0; j < columns; j++) {
            VEC right = *(const VEC *)(b + j * b_col + p);
            UNROLL for (int i = 0; i < rows; i++)
                part[i][j] += left[i] * right;
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) {
            REAL sum = TOTAL(part[i][j]);
            for (int64_t q = p; q < k; q++)
                sum += a[i * a_row + q] * b[j * b_col + q];
            c[i * c_row + j] = sum;
        }
}

INLINE void NAME(dot_rows)(int rows, int64_t columns, int64_t k, const REAL *a, int64_t a_row,
                           const REAL *b, int64_t b_col, REAL *c, int64_t c_row)
{
    int64_t j = 0;
    for (; j + CFXI_DOT_COLUMNS <= columns; j += CFXI_DOT_COLUMNS)
        NAME(dot_tile)(rows, CFXI_DOT_COLUMNS, k, a, a_row, b + j * b_col, b_col, c + j, c_row);
    for (; j < columns; j++)
        NAME(dot_tile)(rows, 1, k, a, a_row, b + j * b_col, b_col, c + j, c_row);
}

static void NAME(dots)(int rows, int64_t columns, int64_t k, const void *a, int64_t a_row,
                       const void *b, int64_t b_col, void *c, int64_t c_row)
{
    switch (rows) {
    case 1: NAME(dot_rows)(1, columns, k, a, a_row, b, b_col, c, c_row); break;
    case 2: NAME(dot_rows)(2, columns, k, a, a_row, b, b_col, c, c_row); break;
    case 3: NAME(dot_rows)(3, columns, k, a, a_row, b, b_col, c, c_row); break;
    default: NAME(dot_rows)(CFXI_DOT_ROWS, columns, k, a, a_row, b, b_col, c, c_row); break;
    }
}

/* ---- packing ------------------------------------------------------------------------------- */

#if BLOCK > 1
typedef REAL NAME(block) __attribute__((vector_size(BLOCK * sizeof(REAL)), aligned(sizeof(REAL)),
                                        may_alias));
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)

/* BLOCK lines of `from`, `across` apart, become the columns of BLOCK lines of `to`. */
INLINE void NAME(transpose)(REAL *to, int64_t width, const REAL *from, int64_t across)
{
    NAME(block) r[BLOCK], s[BLOCK];
    UNROLL for (int i = 0; i < BLOCK; i++)
        r[i] = *(const NAME(block) *)(from + i * across);
#if BLOCK == 8
    UNROLL for (int i = 0; i < 8; i += 2) {
        s[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = SHUFFLE(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
        UNROLL for (int j = 0; j < 2; j++) {
            r[i + 2 * j] = SHUFFLE(s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * j + 1] = SHUFFLE(s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    UNROLL for (int i = 0; i < 4; i++) {
        s[i] = SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        s[i + 4] = SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#else
    UNROLL for (int i = 0; i < 2; i++) {
        s[2 * i] = SHUFFLE(r[2 * i], r[2 * i + 1], 0, 4, 2, 6);
        s[2 * i + 1] = SHUFFLE(r[2 * i], r[2 * i + 1], 1, 5, 3, 7);
    }
    UNROLL for (int i = 0; i < 2; i++) {
        r[i] = SHUFFLE(s[i], s[i + 2], 0, 1, 4, 5);
        r[i + 2] = SHUFFLE(s[i], s[i + 2], 2, 3, 6, 7);
    }
    UNROLL for (int i = 0; i < 4; i++)
        s[i] = r[i];
#endif
    UNROLL for (int i = 0; i < BLOCK; i++)
        *(NAME(block) *)(to + i * width) = s[i];
}
#undef SHUFFLE
#endif

/* Lines first..first + BLOCK - 1 of a panel, whose elements follow each other in memory. */
INLINE void NAME(pack_lines)(REAL *to, int64_t width, const REAL *from, int64_t across, int lines,
                             int64_t k)
{
    int64_t p = 0;
#if BLOCK > 1
    if (lines == BLOCK)
        for (; p + BLOCK <= k; p += BLOCK)
            NAME(transpose)(to + p * width, width, from + p, across);
#endif
    for (; p < k; p++)
        for (int i = 0; i < lines; i++)
            to[p * width + i] = from[i * across + p];
}

static void NAME(pack)(void *to_, int64_t width, const void *from_, int64_t across, int64_t along,
                       int64_t count, int64_t k)
{
    REAL *to = to_;
    const REAL *from = from_;
    if (width == 1 && along == 1) {
        memcpy(to, from, (size_t)k * sizeof(REAL));
        return;
    }
    if (count < width)
        memset(to, 0, (size_t)(width * k) * sizeof(REAL));
    if (along == 1 && across != 1) {
        for (int64_t i = 0; i < count; i += BLOCK)
            NAME(pack_lines)(to + i, width, from + i * across, across,
                             count - i < BLOCK ? (int)(count - i) : BLOCK, k);
        return;
    }
    if (across == 1 && count == width && width % WIDTH == 0) {
        for (int64_t p = 0; p < k; p++, to += width, from += along)
            for (int64_t i = 0; i < width; i += WIDTH)
                *(VEC *)(to + i) = *(const VEC *)(from + i);
        return;
    }
    for (int64_t p = 0; p < k; p++, to += width, from += along) {
        if (across == 1)
            memcpy(to, from, (size_t)count * sizeof(REAL));
        else
            for (int64_t i = 0; i < count; i++)
                to[i] = from[i * across];
    }
}

static const cfxi_gemm_kernel NAME(kernel) = {
    .rows = ROWS,
    .columns = COLUMNS * WIDTH,
    .size = sizeof(REAL),
    .packed = NAME(packed),
    .direct = NAME(direct),
    .dots = NAME(dots),
    .pack = NAME(pack),
};

#undef WIDTH
#undef NAME
#undef REAL
#undef VEC
#undef TOTAL
#undef BLOCK
