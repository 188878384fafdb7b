/* kernel_product.c - products with constant weights: linear layers, and 1x1 convolutions.
 *
 * Weights are packed in panels. Work is cut into chunks of panels, whose weights stay in the
 * second-level cache, and blocks of rows; a thread takes neighbouring ones, so that each part of
 * the weights is read by one of them.
 */
#include "backend_impl.h"

enum {
    CHUNK_BYTES = 256 << 10,  /* of weights, that stay in the cache */
    BLOCK_BYTES = 128 << 10,  /* of x */
    FINISHED = 1 << 13,       /* floats of the result that are computed before posts follow */
    PIECES = 4,               /* of work, for each thread */
    LEAST_WORK = 1 << 16      /* multiplications for which another thread is worth waking */
};

typedef struct product_kernel {
    cfxi_kernel head;
    cfxi_fused_posts posts;
    cfxi_tiling tiling;
    const cfxi_tiles *tiles;
    int64_t panels;
    int64_t chunk;        /* panels of a chunk */
    int64_t chunks;
    int64_t block;        /* rows of a block */
    int64_t blocks;
    int64_t row;          /* floats from row to row of what tiles read */
    size_t scratch;       /* bytes of a block that is multiplied by factors; or 0 */
    const float *factors, *shifts;  /* of x, if they are known */
    const float *bias;    /* or NULL */
    float *packed;
} product_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* ---- asking -------------------------------------------------------------------------------- */

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_PRODUCT || cfxi_backend_rounds(p) || p->m <= 0 ||
        p->n <= 0 || p->k <= 0)
        return false;
    const cfxi_tiling t = cfxi_tiles_tiling(p->isa, p->m, cfxi_tiles_panels(p->n), p->x_row);
    *cost = t.cycles * (double)p->k / 3.0 / (p->threads > 0 ? p->threads : 1) +
            cfxi_backend_weight_cost(p->n * p->k);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

static int64_t line_at(const void *ctx, int64_t q, int64_t p)
{
    (void)q;
    return p * ((const cfxi_problem *)ctx)->w_k;
}

/* Panels of a chunk, of which there are at least `chunks` if that is possible. */
static void cut_panels(product_kernel *k, int64_t chunks)
{
    const int64_t tile = k->tiling.panels;
    k->chunk = larger(tile, parts(parts(k->panels, chunks), tile) * tile);
    k->chunks = parts(k->panels, k->chunk);
}

/* Rows of a block, of which there are at least `blocks` if that is possible. */
static void cut_rows(product_kernel *k, int64_t blocks)
{
    const int64_t tile = k->tiling.rows;
    const int64_t m = k->head.problem.m;
    k->block = larger(tile, parts(parts(m, blocks), tile) * tile);
    k->blocks = parts(m, k->block);
}

/* Cuts the work so that weights of a chunk and rows of a block fit, there is enough for all
 * threads, and the same for each: several chunks are a multiple of the threads. */
static void cut(product_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const int64_t panel_bytes = p->k * CFXI_PANEL * (int64_t)sizeof(float);
    const int64_t row_bytes = p->k * (int64_t)sizeof(float);
    const int64_t threads = larger(1, p->threads);
    const int64_t wanted = threads > 1 ? PIECES * threads : 1;
    const int64_t fits = larger(k->tiling.panels, CHUNK_BYTES / panel_bytes);
    const int64_t chunks = parts(k->panels, fits);
    cut_panels(k, chunks > 1 ? parts(chunks, threads) * threads : 1);
    cut_rows(k, larger(parts(p->m * row_bytes, BLOCK_BYTES), parts(wanted, k->chunks)));
    if (k->blocks * k->chunks < wanted)
        cut_panels(k, parts(wanted, k->blocks));
    k->scratch = p->factors.scaled ? (size_t)(k->block * k->row) * sizeof(float) : 0;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const int64_t panels = cfxi_tiles_panels(p->n);
    const int64_t sizes[8] = {p->n, p->k, p->w_n, p->w_k};
    const size_t columns = (size_t)panels * CFXI_PANEL;
    const size_t known = p->factors.scaled && p->factors.known ? (size_t)p->k : 0;
    size_t room;
    size_t floats;
    bool fresh;
    if (!cfxi_base_mul_size(columns + 2 * known, sizeof(float), sizeof(product_kernel), &room))
        return cfxi_base_nomem(err), NULL;
    product_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (product_kernel){.head = {&cfxi_backend_product, allocator, *p, room, NULL},
                          .panels = panels};
    k->posts = cfxi_backend_fuse_posts(p);
    k->tiles = cfxi_tiles_of(p->isa);
    k->row = p->factors.scaled ? p->k + CFXI_PANEL : p->x_row;
    k->tiling = cfxi_tiles_tiling(p->isa, p->m, panels, k->row);
    cut(k);
    if (!cfxi_base_mul_size(columns, (size_t)p->k, 0, &floats) ||
        !cfxi_backend_take_packed(&k->head, c, sizes, (size_t)p->n, floats, &fresh, err)) {
        cfxi_base_free(allocator, k, room);
        return cfxi_base_nomem(err), NULL;
    }
    k->packed = k->head.packed->data;
    if (fresh)
        cfxi_backend_pack(c->rt, k->packed, p->n, 1, p->k, c->w, p->w_n, c->scale, line_at,
                          &k->head.problem);
    float *bias = (float *)(k + 1);
    cfxi_backend_pack_bias(bias, p->n, c->bias);
    k->bias = c->bias ? bias : NULL;
    if (known) {
        k->factors = memcpy(bias + columns, c->factors, known * sizeof(float));
        k->shifts = memcpy(bias + columns + known, c->shifts, known * sizeof(float));
    }
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const product_kernel *k;
    const cfxi_run *r;
    atomic_bool no_memory;
} running;

/* Rows, multiplied by their factors. */
static void scale_rows(const running *w, int64_t row, int64_t last, float *to)
{
    const product_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    for (; row < last; row++, to += k->row) {
        const float *factors = k->factors ? k->factors
                                          : w->r->operands[p->factors.operand] +
                                                row / p->factors.rows * p->factors.step;
        k->tiles->scale_row(p->k, w->r->x + row * p->x_row, factors, k->shifts, p->factors.low,
                            p->factors.high, to);
    }
}

/* The posts that tiles do not do, on rows that were just computed. */
static void finish(const running *w, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const cfxi_problem *p = &w->k->head.problem;
    int64_t offset[CFXI_MOST_POSTS];
    for (size_t s = w->k->posts.rest; s < p->num_posts; s++)
        offset[s] = row * p->posts[s].rows[0] + column;
    cfxi_backend_finish_rows(p, w->r, w->k->posts.rest, w->r->out + row * p->out_row + column, rows,
                             p->out_row, columns, 0, offset);
}

/* Weights that are brought into the cache while tiles are computed. */
typedef struct weights_ahead {
    const float *at;
    int64_t step;  /* floats for each k */
} weights_ahead;

/* Those behind panel `panel` + n, while `down` tiles of these n panels are computed, in block
 * number `block`. After the last panels of a chunk, they are needed when all blocks are done. A
 * single tile reads its own weights as fast as the machine can. */
static weights_ahead look_ahead(const product_kernel *k, int64_t panel, int64_t n, int64_t down,
                                int64_t block)
{
    const int64_t next = panel + n;
    const int64_t blocks = next % k->chunk == 0 ? k->blocks : 1;
    const bool several = down * blocks > 1 && next + n <= k->panels;
    const int64_t step = several ? n * CFXI_PANEL / (down * blocks) : 0;
    const int64_t before = blocks > 1 ? block * down * step : 0;
    return (weights_ahead){k->packed + (next * CFXI_PANEL + before) * k->head.problem.k, step};
}

/* `a` is row number `row`, as it is multiplied by the weights; *next those that follow. */
static void run_tile(const running *w, const float *a, int64_t row, int64_t rows, int64_t panel,
                     int64_t panels, const weights_ahead *next)
{
    static const int64_t at = 0;
    const product_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const int64_t column = panel * CFXI_PANEL;
    const cfxi_sum_tile t = {
        .a = a,
        .a_row = k->row,
        .a_at = &at,
        .b = k->packed + panel * CFXI_PANEL * p->k,
        .b_panel = CFXI_PANEL * p->k,
        .b_at = &at,
        .count = 1,
        .k = p->k,
        .c = w->r->out + row * p->out_row + column,
        .c_row = p->out_row,
        .columns = smaller(panels * CFXI_PANEL, p->n - column),
        .bias = k->bias ? k->bias + column : NULL,
        .add = add ? w->r->operands[add->operand] + row * add->rows[0] + column : NULL,
        .add_row = add ? add->rows[0] : 0,
        .low = k->posts.low,
        .high = k->posts.high,
        .next = next->at,
        .next_step = next->step,
    };
    k->tiles->fn[panels - 1][rows - 1](&t);
}

static void run_rows(const running *w, const float *a, int64_t row, int64_t last_row, int64_t panel,
                     int64_t last_panel)
{
    const product_kernel *k = w->k;
    const int64_t down = parts(last_row - row, k->tiling.rows);
    for (int64_t n; panel < last_panel; panel += n) {
        n = cfxi_tiles_across(k->tiles->most_rows, k->tiling, last_panel - panel);
        weights_ahead next = look_ahead(k, panel, n, down, row / k->block);
        for (int64_t i = row; i < last_row; i += k->tiling.rows) {
            run_tile(w, a + (i - row) * k->row, i, smaller(k->tiling.rows, last_row - i), panel, n,
                     &next);
            next.at += next.step * k->head.problem.k;
        }
    }
}

static void run_piece(const running *w, int64_t chunk, int64_t block, float *scratch)
{
    const product_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const int64_t last_row = smaller(p->m, (block + 1) * k->block);
    const int64_t panel = chunk * k->chunk;
    const int64_t last_panel = smaller(k->panels, panel + k->chunk);
    const int64_t columns = smaller(p->n, last_panel * CFXI_PANEL) - panel * CFXI_PANEL;
    const int64_t fit = FINISHED / columns / k->tiling.rows * k->tiling.rows;
    const bool rest = k->posts.rest < p->num_posts;
    const int64_t step = rest ? larger(k->tiling.rows, fit) : k->block;
    const int64_t first = block * k->block;
    const float *a = scratch ? scratch : w->r->x + first * p->x_row;
    if (scratch)
        scale_rows(w, first, last_row, scratch);
    for (int64_t row = first; row < last_row; row += step) {
        const int64_t end = smaller(last_row, row + step);
        run_rows(w, a + (row - first) * k->row, row, end, panel, last_panel);
        if (rest)
            finish(w, row, end - row, panel * CFXI_PANEL, columns);
    }
}

static void run_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    const product_kernel *k = w->k;
    float *scratch = k->scratch ? cfxi_rt_worker_scratch(self, k->scratch) : NULL;
    if (k->scratch && !scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        run_piece(w, i / k->blocks, i % k->blocks, scratch);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const product_kernel *k = (const product_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    running w = {.k = k, .r = r};
    const int64_t pieces = k->chunks * k->blocks;
    const bool small = (double)p->m * (double)p->n * (double)p->k < LEAST_WORK;
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel_work(r->rt, pieces, small ? pieces : 1, run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const product_kernel *k = (const product_kernel *)kernel;
    cfxi_base_out_printf(out, "product, tiles of %d x %d", k->tiling.rows,
                         k->tiling.panels * CFXI_PANEL);
}

const cfxi_backend cfxi_backend_product = {"built-in", query, prepare, run, release, print};
