/* transpose_vector.h - matrices turned over, for one instruction set; included once for each, after
 * vector.h. Squares of LANES x LANES are turned in registers: first the squares of 4 x 4 within
 * them, as all vectors have parts of 4 lanes, then the parts change places.
 */

/* Lane i of two vectors that have 4 lanes each, in every part of longer ones. */
#define LANE(i, part) ((i) < 4 ? (i) + 4 * (part) : (i) - 4 + 4 * (part) + LANES)
#define PART(part, a, b, c, d) LANE(a, part), LANE(b, part), LANE(c, part), LANE(d, part)

/* EVEN has the even parts of x, then those of y; ODD the odd ones. FIRST_PAIRS and LAST_PAIRS: an
 * element of x, then that of y, and so on. */
#if LANES == 16
#define FIRST_PAIRS(x, y)                                                                          \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_PAIRS(x, y)                                                                           \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define PICK(x, y, ...)                                                                            \
    __builtin_shufflevector(x, y, PART(0, __VA_ARGS__), PART(1, __VA_ARGS__),                      \
                            PART(2, __VA_ARGS__), PART(3, __VA_ARGS__))
#define EVEN(x, y)                                                                                 \
    __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD(x, y)                                                                                  \
    __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#elif LANES == 8
#define FIRST_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define LAST_PAIRS(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define PICK(x, y, ...) __builtin_shufflevector(x, y, PART(0, __VA_ARGS__), PART(1, __VA_ARGS__))
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11)
#define ODD(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)
#else
#define FIRST_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define LAST_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define PICK(x, y, ...) __builtin_shufflevector(x, y, PART(0, __VA_ARGS__))
#endif

/* Rows become columns. */
INLINE void turn(V r[LANES])
{
    V s[LANES];
    UNROLL for (int i = 0; i < LANES; i += 4) {
        const V a = PICK(r[i], r[i + 1], 0, 4, 1, 5);
        const V b = PICK(r[i + 2], r[i + 3], 0, 4, 1, 5);
        const V c = PICK(r[i], r[i + 1], 2, 6, 3, 7);
        const V d = PICK(r[i + 2], r[i + 3], 2, 6, 3, 7);
        s[i] = PICK(a, b, 0, 1, 4, 5);
        s[i + 1] = PICK(a, b, 2, 3, 6, 7);
        s[i + 2] = PICK(c, d, 0, 1, 4, 5);
        s[i + 3] = PICK(c, d, 2, 3, 6, 7);
    }
    UNROLL for (int i = 0; i < 4; i++) {
#if LANES == 16
        const V a = EVEN(s[i], s[4 + i]);
        const V b = EVEN(s[8 + i], s[12 + i]);
        const V c = ODD(s[i], s[4 + i]);
        const V d = ODD(s[8 + i], s[12 + i]);
        r[i] = EVEN(a, b);
        r[4 + i] = EVEN(c, d);
        r[8 + i] = ODD(a, b);
        r[12 + i] = ODD(c, d);
#elif LANES == 8
        r[i] = EVEN(s[i], s[4 + i]);
        r[4 + i] = ODD(s[i], s[4 + i]);
#else
        r[i] = s[i];
#endif
    }
}

static void turn_square(char *to, int64_t to_row, const char *from, int64_t from_column)
{
    V r[LANES];
    UNROLL for (int i = 0; i < LANES; i++)
        r[i] = LOAD((const float *)(from + i * from_column));
    turn(r);
    UNROLL for (int i = 0; i < LANES; i++)
        STORE((float *)(to + i * to_row), r[i]);
}

/* At the edges: at most LANES rows and columns. */
static void turn_some(int64_t rows, int64_t columns, char *to, int64_t to_row, const char *from,
                      int64_t from_column)
{
    V r[LANES];
    UNROLL for (int i = 0; i < LANES; i++)
        r[i] = i < columns ? v_load((const float *)(from + i * from_column), rows) : (V){0};
    turn(r);
    UNROLL for (int i = 0; i < LANES; i++)
        if (i < rows)
            v_store((float *)(to + i * to_row), r[i], columns);
}

/* Two lines become pairs: channels of two groups that are shuffled. */
static void make_pairs(int64_t rows, float *to, const float *a, const float *b)
{
    for (int64_t r = 0; r < rows; r += LANES) {
        const int64_t n = rows - r < LANES ? rows - r : LANES;
        const V x = v_load(a + r, n);
        const V y = v_load(b + r, n);
        v_store(to + 2 * r, FIRST_PAIRS(x, y), 2 * n < LANES ? 2 * n : LANES);
        if (2 * n > LANES)
            v_store(to + 2 * r + LANES, LAST_PAIRS(x, y), 2 * n - LANES);
    }
}

static void turn_words(int64_t rows, int64_t columns, char *to, int64_t to_row, const char *from,
                       int64_t from_column)
{
    if (columns == 2 && to_row == 2 * (int64_t)sizeof(float)) {
        make_pairs(rows, (float *)to, (const float *)from, (const float *)(from + from_column));
        return;
    }
    for (int64_t k = 0; k < columns; k += LANES) {
        const int64_t wide = columns - k < LANES ? columns - k : LANES;
        for (int64_t r = 0; r < rows; r += LANES) {
            const int64_t high = rows - r < LANES ? rows - r : LANES;
            char *at = to + r * to_row + k * 4;
            const char *source = from + k * from_column + r * 4;
            if (wide == LANES && high == LANES)
                turn_square(at, to_row, source, from_column);
            else
                turn_some(high, wide, at, to_row, source, from_column);
        }
    }
}

const cfxi_transposes ISA(cfxi_rt_transposes) = {.words = turn_words};

#undef LANE
#undef PART
#undef FIRST_PAIRS
#undef LAST_PAIRS
#undef PICK
#undef EVEN
#undef ODD
