/* gemm.c - matrix products: which way to go, blocks that fit the caches, threads.
 *
 * Large products copy ("pack") blocks of A and B into panels that the inner loop reads from end to
 * end: a block of A of BLOCK_ROWS x BLOCK_DEPTH stays in the second-level cache while panels of B
 * pass by. Threads have rectangles of C of their own and share nothing. Where packing would cost
 * more than it saves, operands are read in place: few rows (memory-bound: every element of B is
 * read once), or small products.
 */
#include "product_impl.h"
#include "gemm_impl.h"

enum {
    BLOCK_DEPTH = 256,
    BLOCK_PANELS = 16,    /* of A */
    WIDE_PANELS = 64,     /* of B */
    FEW_ROWS = 8,         /* up to here dot products are better than packing */
    SMALL_WORK = 24 * 24 * 24,
    WORK_FOR_A_THREAD = 1 << 19,  /* multiplications worth waking another thread */
    READS_FOR_A_THREAD = 1 << 17  /* elements, where reading them is the work */
};

CFXI_ISA_CHOICE(cfxi_gemm_kernels, cfxi_linalg_gemm_of, cfxi_linalg_gemm_all)

typedef struct product {
    cfx_runtime *rt;
    const cfxi_gemm_kernel *kernel;
    cfxi_gemm g;
    int64_t across, down;  /* how many rectangles there are in a row, and in a column */
    atomic_bool no_memory;
} product;

static const char *element(const product *p, const void *base, int64_t at)
{
    return (const char *)base + at * (int64_t)p->kernel->size;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- plain --------------------------------------------------------------------------------- */

/* The oracle, and what is left when there is nothing to sum; `wide` is what it adds up in. */
#define PLAIN_GEMM(name, type, wide)                                                               \
    static void name(const cfxi_gemm *g)                                                           \
    {                                                                                              \
        const type *a = g->a;                                                                      \
        const type *b = g->b;                                                                      \
        const type *bias = g->bias;                                                                \
        for (int64_t i = 0; i < g->m; i++)                                                         \
            for (int64_t j = 0; j < g->n; j++) {                                                   \
                wide sum = 0;                                                                      \
                for (int64_t p = 0; p < g->k; p++)                                                 \
                    sum += (wide)a[i * g->a_row + p * g->a_col] *                                  \
                           (wide)b[p * g->b_row + j * g->b_col];                                   \
                type *at = (type *)g->c + i * g->c_row + j * g->c_col;                             \
                *at = (type)((wide)g->alpha * sum + (g->beta == 0 ? 0 : (wide)g->beta * *at) +     \
                             (bias ? bias[g->bias_rows ? i : j] : 0));                             \
            }                                                                                      \
    }
PLAIN_GEMM(plain_f32, float, double)
PLAIN_GEMM(plain_f64, double, double)

/* ---- tiles at the edge --------------------------------------------------------------------- */

/* C[0..rows)[0..columns) of sums that lie `step` apart; any strides of C. */
#define FINISH(name, type)                                                                         \
    static void name(const cfxi_gemm *g, const type *sums, int64_t step, int64_t rows,             \
                     int64_t columns, type *c, double beta, const type *bias)                      \
    {                                                                                              \
        for (int64_t i = 0; i < rows; i++)                                                         \
            for (int64_t j = 0; j < columns; j++) {                                                \
                type *at = c + i * g->c_row + j * g->c_col;                                        \
                type x = (type)g->alpha * sums[i * step + j];                                      \
                if (beta != 0)                                                                     \
                    x += (type)beta * *at;                                                         \
                *at = bias ? x + bias[g->bias_rows ? i : j] : x;                                   \
            }                                                                                      \
    }
FINISH(finish_f32, float)
FINISH(finish_f64, double)

/* A place in C, with what is to be done there. */
typedef struct place {
    int64_t row, column;
    int64_t rows, columns;
    bool first;  /* of the blocks of k: the old C and the bias count */
} place;

static void finish(const product *p, place at, const void *sums, int64_t step)
{
    const cfxi_gemm *g = &p->g;
    void *c = (void *)element(p, g->c, at.row * g->c_row + at.column * g->c_col);
    const void *bias = g->bias && at.first
                           ? element(p, g->bias, g->bias_rows ? at.row : at.column) : NULL;
    double beta = at.first ? g->beta : 1;
    if (p->kernel->size == sizeof(float))
        finish_f32(g, sums, step, at.rows, at.columns, c, beta, bias);
    else
        finish_f64(g, sums, step, at.rows, at.columns, c, beta, bias);
}

/* Whether the kernel can write there itself. */
static bool is_whole(const product *p, place at)
{
    return at.columns == p->kernel->columns && p->g.c_col == 1;
}

static cfxi_gemm_tile tile_at(const product *p, place at)
{
    const cfxi_gemm *g = &p->g;
    return (cfxi_gemm_tile){
        .c = (void *)element(p, g->c, at.row * g->c_row + at.column),
        .c_row = g->c_row,
        .alpha = g->alpha,
        .beta = at.first ? g->beta : 1,
        .bias = g->bias && at.first ? element(p, g->bias, g->bias_rows ? at.row : at.column) : NULL,
        .bias_rows = g->bias_rows,
    };
}

/* ---- packed -------------------------------------------------------------------------------- */

static void packed_tile(const product *p, place at, int64_t k, const void *a, const void *b)
{
    const cfxi_gemm_kernel *kernel = p->kernel;
    if (is_whole(p, at) && (at.rows == kernel->rows || at.rows == 8 || at.rows == 4)) {
        cfxi_gemm_tile t = tile_at(p, at);
        kernel->packed((int)at.rows, k, a, b, &t);
        return;
    }
    _Alignas(CFXI_ALIGN) double sums[CFXI_MOST_TILE];
    cfxi_gemm_tile t = {.c = sums, .c_row = kernel->columns, .alpha = 1};
    kernel->packed((int)at.rows, k, a, b, &t);
    finish(p, at, sums, kernel->columns);
}

/* Panels of `width` lines, from `count` of them; those of the last one may be fewer. */
static void pack_block(const product *p, char *to, int width, const void *from, int64_t across,
                       int64_t along, int64_t count, int64_t k)
{
    for (int64_t i = 0; i < count; i += width) {
        p->kernel->pack(to, width, element(p, from, i * across), across, along,
                        smaller(width, count - i), k);
        to += (size_t)width * (size_t)k * p->kernel->size;
    }
}

/* A block of packed A by a block of packed B; `at` is the whole of it. */
static void multiply_blocks(const product *p, place at, int64_t k, const char *a, const char *b)
{
    const int rows = p->kernel->rows;
    const int columns = p->kernel->columns;
    for (int64_t j = 0; j < at.columns; j += columns)
        for (int64_t i = 0; i < at.rows; i += rows) {
            place tile = {at.row + i, at.column + j, smaller(rows, at.rows - i),
                          smaller(columns, at.columns - j), at.first};
            packed_tile(p, tile, k, a + (size_t)(i * k) * p->kernel->size,
                        b + (size_t)(j * k) * p->kernel->size);
        }
}

/* Blocks of about the same depth: 300 is 2 x 150, not 256 + 44. */
static int64_t depth_of(int64_t k)
{
    int64_t blocks = (k + BLOCK_DEPTH - 1) / BLOCK_DEPTH;
    return (k + blocks - 1) / blocks;
}

static void rectangle(const product *p, place all, char *a, char *b)
{
    const cfxi_gemm *g = &p->g;
    const int64_t depth = depth_of(g->k);
    const int64_t tall = (int64_t)p->kernel->rows * BLOCK_PANELS;
    const int64_t wide = (int64_t)p->kernel->columns * WIDE_PANELS;
    for (int64_t j = all.column; j < all.column + all.columns; j += wide)
        for (int64_t q = 0; q < g->k; q += depth) {
            int64_t k = smaller(depth, g->k - q);
            int64_t columns = smaller(wide, all.column + all.columns - j);
            pack_block(p, b, p->kernel->columns, element(p, g->b, q * g->b_row + j * g->b_col),
                       g->b_col, g->b_row, columns, k);
            for (int64_t i = all.row; i < all.row + all.rows; i += tall) {
                place at = {i, j, smaller(tall, all.row + all.rows - i), columns, q == 0};
                pack_block(p, a, p->kernel->rows, element(p, g->a, i * g->a_row + q * g->a_col),
                           g->a_row, g->a_col, at.rows, k);
                multiply_blocks(p, at, k, a, b);
            }
        }
}

static int64_t rounded(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* The i-th of `parts` parts of n, in units: where it begins. */
static int64_t part(int64_t n, int64_t unit, int64_t parts, int64_t i)
{
    return smaller(n, (n + unit - 1) / unit * i / parts * unit);
}

static void packed_range(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    product *p = ctx;
    const cfxi_gemm *g = &p->g;
    const cfxi_gemm_kernel *kernel = p->kernel;
    int64_t depth = depth_of(g->k);
    int64_t tall = smaller(rounded(g->m, kernel->rows), (int64_t)kernel->rows * BLOCK_PANELS);
    int64_t wide = smaller(rounded(g->n, kernel->columns), (int64_t)kernel->columns * WIDE_PANELS);
    size_t a_size = (size_t)rounded(tall * depth * (int64_t)kernel->size, CFXI_ALIGN);
    char *a = cfxi_rt_worker_scratch(self, a_size + (size_t)(wide * depth) * kernel->size);
    if (!a) {
        atomic_store(&p->no_memory, true);
        cfxi_rt_worker_stop(self);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t row = part(g->m, kernel->rows, p->down, i / p->across);
        int64_t column = part(g->n, kernel->columns, p->across, i % p->across);
        place all = {row, column, part(g->m, kernel->rows, p->down, i / p->across + 1) - row,
                     part(g->n, kernel->columns, p->across, i % p->across + 1) - column, true};
        rectangle(p, all, a, a + a_size);
    }
}

/* Rectangles for the threads: few, as each packs its own operands, but with the shorter side not
 * shorter than some tiles. */
static void choose_grid(product *p)
{
    const cfxi_gemm *g = &p->g;
    int64_t threads = (int64_t)cfxi_rt_pool_threads(p->rt->pool);
    double work = (double)g->m * (double)g->n * (double)g->k;
    if (work < 2.0 * WORK_FOR_A_THREAD)
        threads = 1;
    int64_t across = smaller(threads, (g->n + p->kernel->columns - 1) / p->kernel->columns);
    int64_t down = 1;
    while (g->n / across * 2 < g->m / down && across > 1)  /* flat pieces pack too much */
        across = (across + 1) / 2;
    down = threads / across;
    p->across = across;
    p->down = smaller(down, (g->m + p->kernel->rows - 1) / p->kernel->rows);
}

/* ---- in place ------------------------------------------------------------------------------ */

/* All rows of A by columns [begin, end) of B, whose columns lie side by side. */
static void direct_range(void *ctx, int64_t begin, int64_t end)
{
    const product *p = ctx;
    const cfxi_gemm *g = &p->g;
    const cfxi_gemm_kernel *kernel = p->kernel;
    const int64_t rows = CFXI_MOST_TILE / kernel->columns;
    begin *= kernel->columns;
    end = smaller(end * kernel->columns, g->n);
    for (int64_t j = begin; j < end; j += kernel->columns) {
        place at = {0, j, g->m, smaller(kernel->columns, end - j), true};
        const void *b = element(p, g->b, j);
        if (is_whole(p, at)) {
            cfxi_gemm_tile t = tile_at(p, at);
            kernel->direct((int)g->m, g->k, g->a, g->a_row, g->a_col, b, g->b_row, &t);
            continue;
        }
        /* The last columns are copied, some of k at a time, as the kernel reads whole vectors. */
        _Alignas(CFXI_ALIGN) double sums[CFXI_MOST_TILE];
        _Alignas(CFXI_ALIGN) double columns[64 * 32];
        for (at.row = 0; at.row < g->m; at.row += rows) {
            at.rows = smaller(rows, g->m - at.row);
            cfxi_gemm_tile t = {.c = sums, .c_row = kernel->columns, .alpha = 1};
            for (int64_t q = 0; q < g->k; q += 64, t.beta = 1) {
                int64_t k = smaller(64, g->k - q);
                kernel->pack(columns, kernel->columns, element(p, b, q * g->b_row), 1, g->b_row,
                             at.columns, k);
                kernel->direct((int)at.rows, k,
                               element(p, g->a, at.row * g->a_row + q * g->a_col), g->a_row,
                               g->a_col, columns, kernel->columns, &t);
            }
            finish(p, at, sums, kernel->columns);
        }
    }
}

/* Few rows of A by columns [begin, end) of B, in units of CFXI_DOT_COLUMNS; both contiguous along
 * k. */
static void dots_range(void *ctx, int64_t begin, int64_t end)
{
    const product *p = ctx;
    const cfxi_gemm *g = &p->g;
    enum { MOST = 16 * CFXI_DOT_COLUMNS };
    double sums[CFXI_DOT_ROWS * MOST];
    /* Columns of B that several rows of A pass by must stay in the cache. */
    const int64_t most = g->m <= CFXI_DOT_ROWS ? MOST : CFXI_DOT_COLUMNS;
    end = smaller(end * CFXI_DOT_COLUMNS, g->n);
    for (int64_t j = begin * CFXI_DOT_COLUMNS; j < end; j += most)
        for (int64_t i = 0; i < g->m;) {
            const int rows = (int)smaller(CFXI_DOT_ROWS, g->m - i);
            place at = {i, j, rows, smaller(most, end - j), true};
            p->kernel->dots(rows, at.columns, g->k, element(p, g->a, i * g->a_row), g->a_row,
                            element(p, g->b, j * g->b_col), g->b_col, sums, MOST);
            finish(p, at, sums, MOST);
            i += rows;
        }
}

/* ---- which way ----------------------------------------------------------------------------- */

/* C^T = B^T A^T */
static void swap(cfxi_gemm *g)
{
    const cfxi_gemm old = *g;
    g->m = old.n;
    g->n = old.m;
    g->a = old.b;
    g->a_row = old.b_col;
    g->a_col = old.b_row;
    g->b = old.a;
    g->b_row = old.a_col;
    g->b_col = old.a_row;
    g->c_row = old.c_col;
    g->c_col = old.c_row;
    g->bias_rows = !old.bias_rows;
}

/* How many units a piece of [0, n) should have that costs `reads` elements for each unit. */
static int64_t grain_of(double reads)
{
    double units = READS_FOR_A_THREAD / (reads < 1 ? 1 : reads);
    return units < 1 ? 1 : (int64_t)units;
}

/* A's one row side by side, if dot products want it so. */
static cfx_status run_dots(product *p, cfx_error *err)
{
    cfxi_gemm *g = &p->g;
    char *row = NULL;
    if (g->a_col != 1 && g->k > 1) {
        row = cfxi_rt_scratch(p->rt, (size_t)g->k * p->kernel->size);
        if (!row)
            return cfxi_base_nomem(err);
        p->kernel->pack(row, 1, g->a, 1, g->a_col, 1, g->k);
        g->a = row;
    }
    cfxi_rt_parallel(p->rt, (g->n + CFXI_DOT_COLUMNS - 1) / CFXI_DOT_COLUMNS,
                     grain_of((double)g->k * CFXI_DOT_COLUMNS), dots_range, p);
    cfxi_rt_scratch_free(p->rt, row);
    return CFX_OK;
}

static bool rows_are_contiguous(const cfxi_gemm *g)
{
    return (g->a_col == 1 || g->m == 1 || g->k == 1) && (g->b_row == 1 || g->k == 1);
}

static cfx_status run_fast(product *p, cfx_error *err)
{
    cfxi_gemm *g = &p->g;
    bool few = g->m <= FEW_ROWS;
    if ((g->n < g->m && g->n <= FEW_ROWS) || (g->c_col != 1 && g->c_row == 1 && !few))
        swap(g);
    if (g->m <= FEW_ROWS && rows_are_contiguous(g))
        return run_dots(p, err);
    double work = (double)g->m * (double)g->n * (double)g->k;
    if ((g->b_col == 1 || g->n == 1) && (g->m <= p->kernel->rows || work <= SMALL_WORK)) {
        cfxi_rt_parallel(p->rt, (g->n + p->kernel->columns - 1) / p->kernel->columns,
                         grain_of((double)g->k * p->kernel->columns), direct_range, p);
        return CFX_OK;
    }
    if (p->kernel->size == sizeof(float) && cfxi_linalg_gemm_takes_tiles(g))
        return cfxi_linalg_gemm_tiles(p->rt, g, err);
    choose_grid(p);
    cfxi_rt_parallel_work(p->rt, p->across * p->down, 1, packed_range, p);
    return atomic_load(&p->no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

cfx_status cfxi_linalg_gemm_run(cfx_runtime *rt, cfx_dtype dtype, const cfxi_gemm *g,
                                cfx_error *err)
{
    if (dtype != CFX_DTYPE_FLOAT32 && dtype != CFX_DTYPE_FLOAT64)
        return cfx_error_set(err, CFX_E_TYPE, "matrix products are not implemented for %s",
                             cfx_dtype_name(dtype));
    if (g->m <= 0 || g->n <= 0)
        return CFX_OK;
    if (rt->reference || g->k <= 0) {
        if (dtype == CFX_DTYPE_FLOAT32)
            plain_f32(g);
        else
            plain_f64(g);
        return CFX_OK;
    }
    const cfxi_gemm_kernels *kernels = cfxi_linalg_gemm_of(rt->isa);
    product p = {.rt = rt, .g = *g,
                 .kernel = dtype == CFX_DTYPE_FLOAT32 ? kernels->f32 : kernels->f64};
    return run_fast(&p, err);
}
