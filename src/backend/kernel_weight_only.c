/* kernel_weight_only.c - products with constant weights of 8 or 4 bits: linear layers of models
 * whose weights alone are integers.
 *
 * Few rows wait for weights to come from memory: these are read once, in order, as they are packed,
 * and become floats in registers. For many rows, blocks of weights become floats in the
 * second-level cache, which the tiles of other products multiply.
 */
#include "backend_impl.h"

#include "runtime/kernels/tiles/weight_only.h"

#include <math.h>

enum {
    LEAST_ROWS = 32,          /* of a block, beside widening its weights */
    BLOCK_LINES = 1024,       /* of weights as floats, that stay in the cache */
    BLOCK_BYTES = 128 << 10,  /* of x */
    PIECES = 4,               /* of work, for each thread */
    FINISHED = 1 << 13,       /* floats of the result that are computed before posts follow */
    LEAST_WORK = 1 << 17      /* multiplications for which another thread is worth waking */
};

typedef struct weight_only_kernel {
    cfxi_kernel head;
    const cfxi_weight_only *fns;
    const cfxi_tiles *tiles;
    cfxi_tiling tiling;
    cfxi_fused_posts posts;  /* of many rows */
    int codes;               /* in a word */
    int64_t groups, words;   /* words of a group */
    int64_t length;          /* of a row, whose groups are filled up to whole words */
    int64_t panels;
    int64_t panel;           /* floats */
    int64_t lines;           /* of words, that become floats together */
    int64_t block;           /* rows that are multiplied by them */
    int64_t blocks;
    int64_t near;            /* rows that stay in the cache beside them */
    const float *bias;       /* or NULL */
    float *packed;
} weight_only_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

static bool is_few(const weight_only_kernel *k)
{
    return k->head.problem.m <= k->fns->few_rows;
}

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_WEIGHT_ONLY || p->m <= 0 || p->n <= 0 || p->k <= 0)
        return false;
    *cost = (double)p->m * (double)p->n * (double)p->k / 64;
    return true;
}

/* ---- packing ------------------------------------------------------------------------------- */

typedef struct packing {
    const weight_only_kernel *k;
    const cfx_tensor *codes, *scale, *zero;
    float *to;
} packing;

/* Tiles take codes with signs: those without are 128 less, as are their zero points then. */
static bool has_zeros(const cfxi_problem *p)
{
    return p->weight_only.zeros || p->weight_only.positive;
}

/* Code number `at` of a row, in the lowest bits. */
static uint32_t code_at(const packing *s, const char *row, int64_t at)
{
    const int64_t step = s->codes->stride[1];
    if (s->k->codes == 4)
        return (uint8_t)row[at * step];
    return (uint8_t)row[at / 2 * step] >> (at % 2 * 4) & 15;
}

/* The codes from `at` on, before `end`, in a word. */
static uint32_t word_at(const packing *s, const char *row, int64_t at, int64_t end)
{
    const int64_t codes = s->k->codes;
    const int bits = 32 / (int)codes;
    const int64_t n = smaller(codes, end - at);
    const uint32_t flip = s->k->head.problem.weight_only.positive ? 0x80808080u : 0;
    uint32_t word = 0;
    if (n == codes && s->codes->stride[1] == 1 && at * bits % 8 == 0) {
        const uint8_t *b = (const uint8_t *)row + at * bits / 8;
        word = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        return word ^ flip;
    }
    for (int64_t i = 0; i < n; i++)
        word |= code_at(s, row, at + i) << (i * bits);
    return word ^ flip;
}

/* One number may be for all. */
static const char *element(const cfx_tensor *t, int64_t column, int64_t group)
{
    if (t->ndim < 2 && cfxi_tensor_numel(t) == 1)
        return t->data;
    return t->data + column * t->stride[0] + (t->ndim > 1 ? group * t->stride[1] : 0);
}

static float zero_at(const packing *s, int64_t column, int64_t group)
{
    const int64_t zero = s->zero ? cfxi_tensor_load_int((cfx_dtype)s->zero->dtype,
                                                        element(s->zero, column, group)) : 0;
    return (float)((double)zero - (s->k->head.problem.weight_only.positive ? 128 : 0));
}

/* Column j of a panel; those behind the last one are zeros. */
static void pack_column(const packing *s, int64_t column, int64_t j, float *to)
{
    const cfxi_problem *p = &s->k->head.problem;
    const int64_t width = s->k->fns->columns;
    const int64_t group = p->weight_only.group;
    const bool there = column + j < p->n;
    const char *row = there ? s->codes->data + (column + j) * s->codes->stride[0] : NULL;
    for (int64_t g = 0; g < s->k->groups; g++) {
        const int64_t end = smaller(p->k, (g + 1) * group);
        to[j] = there ? *(const float *)(const void *)element(s->scale, column + j, g) : 0;
        to += width;
        if (has_zeros(p)) {
            to[j] = there ? zero_at(s, column + j, g) : 0;
            to += width;
        }
        for (int64_t i = 0; i < s->k->words; i++, to += width) {
            const int64_t at = g * group + i * s->k->codes;
            const uint32_t word = there && at < end ? word_at(s, row, at, end) : 0;
            memcpy(to + j, &word, sizeof word);
        }
    }
}

static void pack_panels(void *ctx, int64_t begin, int64_t end)
{
    const packing *s = ctx;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->k->fns->columns; j++)
            pack_column(s, i * s->k->fns->columns, j, s->to + i * s->k->panel);
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* Cuts the rows so that a block stays in the cache and there is enough for all threads. Tiles do
 * posts only where they have all of k at once. */
static void cut(weight_only_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const int64_t threads = larger(1, p->threads);
    const int64_t depth = smaller(k->length, BLOCK_LINES);
    const int64_t wanted = threads > 1 ? parts(PIECES * threads, k->panels) : 1;
    const int64_t fits = BLOCK_BYTES / (depth * (int64_t)sizeof(float));
    const int64_t most = parts(p->m, LEAST_ROWS);
    const int64_t blocks = smaller(most, wanted);
    k->lines = parts(depth, k->codes);
    if (k->lines < k->groups * k->words)
        k->posts = (cfxi_fused_posts){.low = -INFINITY, .high = INFINITY};
    k->block = parts(parts(p->m, blocks), k->tiling.rows) * k->tiling.rows;
    k->blocks = parts(p->m, k->block);
    k->near = larger(1, fits / k->tiling.rows) * k->tiling.rows;
}

static void describe(weight_only_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_weight_only_form *form = &p->weight_only;
    k->fns = cfxi_tiles_weight_only_of(p->isa);
    k->tiles = cfxi_tiles_of(p->isa);
    k->posts = cfxi_backend_fuse_posts(p);
    k->codes = 32 / form->bits;
    k->groups = parts(p->k, form->group);
    k->words = parts(smaller(form->group, p->k), k->codes);
    k->length = k->groups * k->words * k->codes;
    k->panels = parts(p->n, k->fns->columns);
    k->panel = k->groups * cfxi_tiles_weight_only_group(k->fns->columns, has_zeros(p), k->words);
    k->tiling = cfxi_tiles_tiling(p->isa, p->m, k->fns->columns / CFXI_PANEL,
                                  k->length == p->k ? p->x_row : k->length);
    cut(k);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_weight_only_form *form = &p->weight_only;
    const int64_t width = cfxi_tiles_weight_only_of(p->isa)->columns;
    const packing from = {.codes = c->tensors[0], .scale = c->tensors[1], .zero = c->tensors[2]};
    const int64_t sizes[8] = {p->n, p->k, form->bits, form->group, width,
                              (int64_t)(intptr_t)from.scale->data,
                              from.zero ? (int64_t)(intptr_t)from.zero->data : 0,
                              form->positive};
    const size_t columns = (size_t)(parts(p->n, width) * width);
    size_t room;
    size_t floats;
    bool fresh;
    if (!cfxi_base_mul_size(columns, sizeof(float), sizeof(weight_only_kernel), &room))
        return cfxi_base_nomem(err), NULL;
    weight_only_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (weight_only_kernel){
        .head = {&cfxi_backend_weight_only, allocator, *p, room, NULL}};
    describe(k);
    if (!cfxi_base_mul_size((size_t)k->panels, (size_t)k->panel, 0, &floats) ||
        !cfxi_backend_take_packed(&k->head, c, sizes, (size_t)p->n, floats, &fresh, err)) {
        cfxi_base_free(allocator, k, room);
        return cfxi_base_nomem(err), NULL;
    }
    k->packed = k->head.packed->data;
    packing s = from;
    s.k = k;
    s.to = k->packed;
    if (fresh)
        cfxi_backend_each_panel(c->rt, k->panels, k->panel, pack_panels, &s);
    float *bias = (float *)(k + 1);
    for (size_t i = 0; i < columns; i++)
        bias[i] = c->bias && (int64_t)i < p->n ? c->bias[i] : 0;
    k->bias = c->bias ? bias : NULL;
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const weight_only_kernel *k;
    const cfxi_run *r;
    const float *x;  /* rows whose groups are filled up */
    int64_t x_row;
    atomic_bool no_memory;
} running;

/* Rows whose groups have whole words. */
static void fill_up(const weight_only_kernel *k, const float *x, float *to)
{
    const cfxi_problem *p = &k->head.problem;
    const int64_t group = p->weight_only.group;
    const int64_t room = k->words * k->codes;
    for (int64_t i = 0; i < p->m; i++, x += p->x_row)
        for (int64_t g = 0; g < k->groups; g++, to += room) {
            const int64_t n = smaller(group, p->k - g * group);
            memcpy(to, x + g * group, (size_t)n * sizeof *to);
            memset(to + n, 0, (size_t)(room - n) * sizeof *to);
        }
}

static void finish(const running *w, size_t first, int64_t row, int64_t rows, int64_t panel,
                   int64_t last_panel)
{
    const cfxi_problem *p = &w->k->head.problem;
    const int64_t column = panel * w->k->fns->columns;
    const int64_t columns = smaller(p->n, last_panel * w->k->fns->columns) - column;
    int64_t offset[CFXI_MOST_POSTS];
    if (first == p->num_posts)
        return;
    for (size_t s = first; s < p->num_posts; s++)
        offset[s] = row * p->posts[s].rows[0] + column;
    cfxi_backend_finish_rows(p, w->r, first, w->r->out + row * p->out_row + column, rows,
                             p->out_row, columns, 0, offset);
}

/* Few rows. */
static void sum_panel(const running *w, int64_t panel)
{
    const weight_only_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const int64_t column = panel * k->fns->columns;
    const int64_t each = parts(p->m, parts(p->m, k->fns->most_rows));
    for (int64_t row = 0; row < p->m; row += each) {
        const cfxi_weight_only_tile t = {
            .bits = p->weight_only.bits,
            .zeros = has_zeros(p),
            .a = w->x + row * w->x_row,
            .a_row = w->x_row,
            .b = k->packed + panel * k->panel,
            .groups = k->groups,
            .words = k->words,
            .c = w->r->out + row * p->out_row + column,
            .c_row = p->out_row,
            .columns = smaller(k->fns->columns, p->n - column),
            .bias = k->bias ? k->bias + column : NULL,
        };
        k->fns->sum(&t, (int)smaller(each, p->m - row));
    }
}

static void sum_panels(void *ctx, int64_t begin, int64_t end)
{
    const running *w = ctx;
    const int64_t step =
        larger(1, FINISHED / (w->k->fns->columns * w->k->head.problem.m));
    for (int64_t panel = begin; panel < end; panel += step) {
        const int64_t last = smaller(end, panel + step);
        for (int64_t i = panel; i < last; i++)
            sum_panel(w, i);
        finish(w, 0, 0, w->k->head.problem.m, panel, last);
    }
}

/* Lines of a panel, which are floats by now. */
typedef struct widened {
    const float *floats;
    int64_t panel;
    int64_t first, depth;  /* which elements of k they are */
} widened;

/* Adds what they give to some rows. What the tiles do of the posts is done with the only lines. */
static void run_tiles(const running *w, const widened *b, int64_t row, int64_t last_row)
{
    static const int64_t at = 0;
    const weight_only_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const int64_t begin = b->panel * k->fns->columns;
    const int64_t end = smaller(p->n, begin + k->fns->columns);
    const cfxi_post *post = k->posts.adds ? &p->posts[0] : NULL;
    int64_t n;
    for (int64_t j = begin; j < end; j += n * CFXI_PANEL) {
        const float *add = post ? w->r->operands[post->operand] : b->first > 0 ? w->r->out : NULL;
        const int64_t add_row = post ? post->rows[0] : p->out_row;
        n = cfxi_tiles_across(k->tiles->most_rows, k->tiling, cfxi_tiles_panels(end - j));
        cfxi_sum_tile t = {
            .a_at = &at, .b_at = &at, .count = 1, .k = b->depth, .a_row = w->x_row,
            .b = b->floats + (j - begin) * b->depth, .b_panel = CFXI_PANEL * b->depth,
            .c_row = p->out_row, .columns = smaller(n * CFXI_PANEL, end - j), .add_row = add_row,
            .bias = b->first == 0 && k->bias ? k->bias + j : NULL,
            .low = k->posts.low, .high = k->posts.high,
        };
        for (int64_t i = row; i < last_row; i += k->tiling.rows) {
            t.a = w->x + i * w->x_row + b->first;
            t.c = w->r->out + i * p->out_row + j;
            t.add = add ? add + i * add_row + j : NULL;
            k->tiles->fn[n - 1][smaller(k->tiling.rows, last_row - i) - 1](&t);
        }
    }
}

static void multiply_panel(const running *w, int64_t panel, int64_t row, int64_t last_row,
                           float *scratch)
{
    const weight_only_kernel *k = w->k;
    const int64_t all = k->groups * k->words;
    cfxi_weight_only_block b = {
        .bits = k->head.problem.weight_only.bits,
        .zeros = has_zeros(&k->head.problem),
        .b = k->packed + panel * k->panel,
        .words = k->words,
        .to = scratch,
    };
    for (; b.first < all; b.first = b.end) {
        b.end = smaller(all, b.first + k->lines);
        const widened floats = {scratch, panel, b.first * k->codes, (b.end - b.first) * k->codes};
        b.to_panel = floats.depth * CFXI_PANEL;
        k->fns->widen(&b);
        for (int64_t i = row; i < last_row; i += k->near)
            run_tiles(w, &floats, i, smaller(last_row, i + k->near));
    }
}

/* Piece number i: a panel, and one of the blocks of rows. */
static void multiply_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    const weight_only_kernel *k = w->k;
    const int64_t m = k->head.problem.m;
    float *scratch = cfxi_rt_worker_scratch(
        self, (size_t)(k->lines * k->codes * k->fns->columns) * sizeof *scratch);
    if (!scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t last; begin < end; begin = last) {
        const int64_t panel = begin % k->panels;
        const int64_t row = begin / k->panels * k->block;
        const int64_t rows = smaller(k->block, m - row);
        last = smaller(end, begin - panel + k->panels);
        for (int64_t i = begin; i < last; i++)
            multiply_panel(w, panel + i - begin, row, row + rows, scratch);
        finish(w, k->posts.rest, row, rows, panel, panel + last - begin);
    }
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const weight_only_kernel *k = (const weight_only_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    const bool small = (double)p->m * (double)p->n * (double)p->k < LEAST_WORK;
    running w = {.k = k, .r = r, .x = r->x, .x_row = p->x_row};
    float *filled = NULL;
    atomic_init(&w.no_memory, false);
    if (k->length != p->k) {
        filled = cfxi_rt_scratch(r->rt, (size_t)(p->m * k->length) * sizeof *filled);
        if (!filled)
            return cfxi_base_nomem(err);
        fill_up(k, r->x, filled);
        w.x = filled;
        w.x_row = k->length;
    }
    const int64_t pieces = is_few(k) ? k->panels : k->panels * k->blocks;
    if (is_few(k))
        cfxi_rt_parallel(r->rt, pieces, small ? pieces : 1, sum_panels, &w);
    else
        cfxi_rt_parallel_work(r->rt, pieces, small ? pieces : 1, multiply_pieces, &w);
    if (filled)
        cfxi_rt_scratch_free(r->rt, filled);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const weight_only_kernel *k = (const weight_only_kernel *)kernel;
    cfxi_base_out_printf(out, "weights of %d bits, %lld groups, ",
                         kernel->problem.weight_only.bits, (long long)k->groups);
    if (is_few(k))
        cfxi_base_out_printf(out, "panels of %d", k->fns->columns);
    else
        cfxi_base_out_printf(out, "tiles of %d x %d", k->tiling.rows,
                             k->tiling.panels * CFXI_PANEL);
}

const cfxi_backend cfxi_backend_weight_only = {"built-in", query, prepare, run, release, print};
