/* bag_sums_vector.h - sums of rows, for one instruction set; included once for each, after
 * vector.h.
 */
enum {
    HALF = LANES / 2,      /* doubles of a vector */
    WIDTH = 8,             /* vectors whose sums stay in registers */
    AHEAD = 16,            /* how many rows before one that is read another is fetched */
    LINE = 64
};

INLINE VD by_all(double x) { return x - (VD){0}; }

INLINE VD load_double(const double *x) { return *(const VD *)x; }
INLINE void store_double(double *to, VD x) { *(VD *)to = x; }

INLINE void fetch(const cfxi_bag_rows *r, int64_t i, int64_t column, int64_t floats)
{
    const char *at = r->table + r->indices[i] * r->stride + column * (int64_t)sizeof(float);
    for (int64_t k = 0; k < floats * (int64_t)sizeof(float); k += LINE)
        __builtin_prefetch(at + k);
}

/* `width` vectors of columns, from `column` on. */
INLINE void sum_columns(const cfxi_bag_rows *r, int width, int64_t column, double *sum)
{
    VD sums[WIDTH];
    UNROLL for (int v = 0; v < width; v++)
        sums[v] = (VD){0};
    for (int64_t i = 0; i < r->n; i++) {
        if (i + AHEAD < r->known)
            fetch(r, i + AHEAD, column, width * HALF);
        if (r->indices[i] == r->padding)
            continue;
        const float *x = (const float *)(const void *)(r->table + r->indices[i] * r->stride);
        if (r->samples) {
            const VD by = by_all(r->samples[i]);
            UNROLL for (int v = 0; v < width; v++)
                sums[v] += by * WIDEN(x + column + v * HALF);
        } else {
            UNROLL for (int v = 0; v < width; v++)
                sums[v] += WIDEN(x + column + v * HALF);
        }
    }
    UNROLL for (int v = 0; v < width; v++)
        store_double(sum + column + v * HALF, sums[v]);
}

static void add(double *sum, double by, const float *x, int64_t n)
{
    const VD all = by_all(by);
    int64_t k = 0;
    for (; k + HALF <= n; k += HALF)
        store_double(sum + k, load_double(sum + k) + all * WIDEN(x + k));
    for (; k < n; k++)
        sum[k] += by * (double)x[k];
}

static void sum_last(const cfxi_bag_rows *r, int64_t column, int64_t columns, double *sum)
{
    memset(sum + column, 0, (size_t)(columns - column) * sizeof *sum);
    for (int64_t i = 0; i < r->n; i++)
        if (r->indices[i] != r->padding) {
            const char *row = r->table + r->indices[i] * r->stride;
            add(sum + column, r->samples ? r->samples[i] : 1,
                (const float *)(const void *)row + column, columns - column);
        }
}

static void rows(const cfxi_bag_rows *r, int64_t columns, double *sum)
{
    int64_t at = 0;
    for (; at + WIDTH * HALF <= columns; at += WIDTH * HALF)
        sum_columns(r, WIDTH, at, sum);
    if (at < columns)
        sum_last(r, at, columns, sum);
}

const cfxi_bag_sums ISA(cfxi_index_bag_sums) = {rows, add};
