/* byte_rows_vector.h - rows of 8-bit integers, a vector of floats at a time; included once for each
 * instruction set, after vector.h. */
typedef uint8_t VB __attribute__((vector_size(LANES)));

/* n <= LANES bytes; zeros for the rest. */
INLINE VB load_bytes(const uint8_t *x, int64_t n)
{
    VB b = {0};
    if (n == LANES)
        memcpy(&b, x, LANES);
    else
#if LANES == 16
        b = (VB)_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), x);
#else
        memcpy(&b, x, (size_t)n);
#endif
    return b;
}

INLINE void store_bytes(uint8_t *to, VB b, int64_t n)
{
    if (n == LANES)
        memcpy(to, &b, LANES);
    else
#if LANES == 16
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << n) - 1), (__m128i)b);
#else
        memcpy(to, &b, (size_t)n);
#endif
}

/* An operand in registers: int8 with its sign bit turned is uint8, 128 more. */
typedef struct operand {
    const uint8_t *x;
    VB flip;
    VI zero;
    V factor;
} operand;

INLINE operand operand_of(const cfxi_integer_bytes *x)
{
    return (operand){x->x, (uint8_t)(x->is_signed ? 0x80 : 0) - (VB){0},
                     VI_SET(x->zero + (x->is_signed ? 128 : 0)), SET(x->factor)};
}

/* x - zero */
INLINE VI load_integers(const operand *x, int64_t at, int64_t n)
{
    return __builtin_convertvector(load_bytes(x->x + at, n) ^ x->flip, VI) - x->zero;
}

INLINE V to_floats(VI x) { return __builtin_convertvector(x, V); }

/* Numbers within the range, rounded, and the zero point. */
INLINE void store_whole(uint8_t *to, V r, int32_t zero, int64_t n)
{
#if LANES == 4
    r = NEAREST(r);
#endif
    store_bytes(to, __builtin_convertvector(INT(r) + VI_SET(zero), VB), n);
}

/* The integers of numbers in units of the result's scale. */
INLINE void store_integers(uint8_t *to, V r, cfxi_integer_range range, int64_t n)
{
    store_whole(to, MIN(MAX(r, SET(range.low)), SET(range.high)), range.zero, n);
}

/* Calls WORK(i, count) for all vectors, the last of `count` elements. */
#define OVER_ROW(n, WORK)                                                                          \
    int64_t i = 0;                                                                                 \
    for (; i + LANES <= (n); i += LANES)                                                           \
        WORK(i, LANES);                                                                            \
    if (i < (n))                                                                                   \
        WORK(i, (n) - i);

INLINE void quantize_vector(V x, cfxi_integer_range range, V nan, uint8_t *to, int64_t n)
{
    const VI known = (VI)(x == x);
    x = MIN(MAX(x, SET(range.low)), SET(range.high));
    x = (V)((known & (VI)x) | (~known & (VI)nan));
    store_whole(to, x, range.zero, n);
}

static void quantize(int64_t n, const float *from, const cfxi_integer_quantizing *q, uint8_t *to)
{
    const cfxi_integer_range range = q->range;
    const V inverse = SET(q->inverse);
    const V nan = SET((float)(q->nan - range.zero));
#define WORK(i, count)                                                                             \
    quantize_vector(v_load(from + i, count) * inverse, range, nan, to + i, count)
    OVER_ROW(n, WORK)
#undef WORK
}

static void dequantize(int64_t n, const cfxi_integer_bytes *x, float *to)
{
#define WORK(i, count)                                                                             \
    v_store(to + i, to_floats(load_integers(&a, i, count)) * a.factor, count)
    const operand a = operand_of(x);
    OVER_ROW(n, WORK)
#undef WORK
}

/* Calls WORK(i, count) for all vectors of all rows; a and b are the operands. */
#define OVER_ROWS(WORK)                                                                            \
    operand a = operand_of(x);                                                                     \
    operand b = operand_of(y);                                                                     \
    for (; rows > 0; rows--, to += step[0], a.x += step[1], b.x += step[2]) {                      \
        OVER_ROW(n, WORK)                                                                          \
    }

#if LANES > 4 || defined(NEON)
#define HAS_ADD add
static void add(int64_t n, int64_t rows, const int64_t step[3], const cfxi_integer_bytes *x,
                const cfxi_integer_bytes *y, cfxi_integer_range range, uint8_t *to)
{
#define WORK(i, count)                                                                             \
    store_integers(to + i, FMA(to_floats(load_integers(&a, i, count)), a.factor,                   \
                               to_floats(load_integers(&b, i, count)) * b.factor), range, count)
    OVER_ROWS(WORK)
#undef WORK
}
#else
#define HAS_ADD NULL
#endif

static void mul(int64_t n, int64_t rows, const int64_t step[3], const cfxi_integer_bytes *x,
                const cfxi_integer_bytes *y, cfxi_integer_range range, uint8_t *to)
{
#define WORK(i, count)                                                                             \
    store_integers(to + i, to_floats(load_integers(&a, i, count) * load_integers(&b, i, count)) *  \
                               a.factor, range, count)
    OVER_ROWS(WORK)
#undef WORK
}

#ifndef LOOK_UP
static void look_up(int64_t n, const uint8_t table[256], const uint8_t *x, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = table[x[i]];
}
#endif

/* `width` vectors of columns, the last of them with n elements. */
INLINE void add_columns(const operand *x, int64_t at, int width, int64_t n, int64_t rows,
                        int64_t step, int32_t *sums)
{
    const int64_t bytes = n * (int64_t)sizeof *sums;
    VI all[4] = {{0}};
    for (int64_t p = 0; p < rows; p++)
        UNROLL for (int v = 0; v < width; v++)
            all[v] += __builtin_convertvector(
                load_bytes(x->x + p * step + at + v * LANES, n) ^ x->flip, VI);
    UNROLL for (int v = 0; v < width; v++) {
        VI s = {0};
        memcpy(&s, sums + at + v * LANES, (size_t)bytes);
        s += all[v] - x->zero * (int32_t)rows;
        memcpy(sums + at + v * LANES, &s, (size_t)bytes);
    }
}

static void add_rows(int64_t n, const cfxi_integer_bytes *x, int64_t rows, int64_t step,
                     int32_t *sums)
{
    const operand a = operand_of(x);
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        add_columns(&a, i, 4, LANES, rows, step, sums);
    for (; i + LANES <= n; i += LANES)
        add_columns(&a, i, 1, LANES, rows, step, sums);
    if (i < n)
        add_columns(&a, i, 1, n - i, rows, step, sums);
}

static int32_t sum(int64_t n, const cfxi_integer_bytes *x)
{
    const operand a = operand_of(x);
    VI sums = {0};
    int64_t i = 0;
    int32_t all = 0;
    for (; i + LANES <= n; i += LANES)
        sums += load_integers(&a, i, LANES);
    for (; i < n; i++)
        all += cfxi_integer_load(x->is_signed, x->x + i) - x->zero;
    for (int k = 0; k < LANES; k++)
        all += sums[k];
    return all;
}

static void finish(int64_t n, const int32_t *sums, float factor, cfxi_integer_range range,
                   uint8_t *to)
{
    int64_t i = 0;
    for (; i < n; i += LANES) {
        const int64_t some = n - i < LANES ? n - i : LANES;
        VI s = {0};
        memcpy(&s, sums + i, (size_t)some * sizeof *sums);
        store_integers(to + i, to_floats(s) * SET(factor), range, some);
    }
}

static bool range_of(int64_t n, const float *x, float *low, float *high)
{
    V least = SET(*low);
    V most = SET(*high);
    V wrong = {0};  /* NaN if something is not finite */
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const V y = LOAD(x + i);
        least = MIN(y, least);
        most = MAX(y, most);
        wrong += y - y;
    }
    float rest = v_sum(wrong);
    for (int k = 0; k < LANES; k++) {
        *low = least[k] < *low ? least[k] : *low;
        *high = most[k] > *high ? most[k] : *high;
    }
    for (; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
        rest += x[i] - x[i];
    }
    return rest == 0;
}

const cfxi_integer_rows ISA(cfxi_integer_rows_all) = {quantize, dequantize, HAS_ADD, mul,
                                                     look_up, add_rows, sum, finish, range_of};
