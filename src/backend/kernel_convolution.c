/* kernel_convolution.c - convolutions of images whose channels lie side by side.
 *
 * A line of the window is contiguous in memory: its pixels follow each other, each with all its
 * channels. So a convolution is a sum of as many small products as the window has lines (tiles.h),
 * which read the image in place. Where there is padding, or a group of channels, some lines of the
 * image are copied first, with zeros around them. A window with gaps (dilation) has a product for
 * each of its places. Where each of the few channels of a picture lies for itself, it has products
 * of its own, too: their lines are copied as they are.
 */
#include "backend_impl.h"

enum {
    LINES_BYTES = 192 << 10,  /* of copied lines, that stay in the cache */
    CHUNK_BYTES = 384 << 10,  /* of weights */
    OWN_CACHE = 1 << 20,      /* bytes that a thread has for itself */
    MEETING = 4096,           /* bytes after which rows meet in the first-level cache */
    PIECES = 4,               /* of work, for each thread */
    MOST_PLACES = 1024,       /* of a window */
    MOST_PLANES = 4           /* channels */
};

typedef struct conv_kernel {
    cfxi_kernel head;
    cfxi_fused_posts posts;
    const cfxi_tiles *tiles;
    cfxi_tiling tiling;     /* of a line of the result */
    bool copies;            /* lines of the image are copied */
    int64_t pixel;          /* floats from pixel to pixel of what is read */
    int64_t count;          /* products for each sum */
    int64_t k;              /* and their length */
    int64_t lines;          /* of the result, in a piece of work, */
    int64_t stretch;        /* and pixels of each; */
    int64_t width;          /* so many pixels do their windows see */
    int64_t line;           /* floats of these */
    int64_t panels;         /* of a group */
    int64_t share;          /* panels in a piece of work */
    int64_t shares;         /* of a group */
    int64_t chunk;          /* panels whose weights stay in the cache */
    size_t scratch;         /* bytes of copied lines */
    int64_t *a_at, *b_at;
    const float *bias;
    float *packed;          /* group by group */
} conv_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* ---- asking -------------------------------------------------------------------------------- */

/* Whether there are few channels, each of which lies for itself. */
static bool has_planes(const cfxi_conv *c)
{
    return c->xs[1] != 1 && c->groups == 1 && c->in_channels <= MOST_PLANES;
}

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind != CFXI_CONVOLUTION || cfxi_backend_rounds(p) || c->transposed || c->in[0] != 1 ||
        c->kernel[0] != 1 ||
        (c->xs[1] != 1 && !has_planes(c)) || c->ys[1] != 1 ||
        c->kernel[1] * c->kernel[2] > MOST_PLACES ||
        c->batch <= 0 || c->out[1] <= 0 || c->out[2] <= 0)
        return false;
    const cfxi_tiling t =
        cfxi_tiles_tiling(p->isa, c->out[2], cfxi_tiles_panels(c->out_channels),
                            c->stride[2] * c->xs[4]);
    *cost = t.cycles * (double)(c->in_channels * c->kernel[1] * c->kernel[2]) *
            (double)(c->batch * c->groups * c->out[1]) / 3.0 / (p->threads > 0 ? p->threads : 1) +
            cfxi_backend_weight_cost(c->groups * c->in_channels * c->out_channels * c->kernel[1] *
                                     c->kernel[2]);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* Line p of block q: a line and a place of the window, and a channel. */
static int64_t line_at(const void *ctx, int64_t q, int64_t p)
{
    const conv_kernel *k = ctx;
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t line = c->in_channels * c->kernel[2];
    const int64_t at = q * k->k + p;
    const int64_t in_line = at % line;
    const bool planes = has_planes(c);
    const int64_t channel = planes ? in_line / c->kernel[2] : in_line % c->in_channels;
    const int64_t place = planes ? in_line % c->kernel[2] : in_line / c->in_channels;
    return channel * c->ws[1] + at / line * c->ws[3] + place * c->ws[4];
}

static bool needs_copy(const cfxi_conv *c)
{
    const int64_t down = (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t across =
        (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
    return c->before[1] > 0 || c->before[2] > 0 || down > c->in[1] || across > c->in[2] ||
           c->groups > 1 || c->xs[4] != c->in_channels || has_planes(c);
}

/* Whether neighbouring rows of a tile meet in the cache. */
static bool meet(const cfxi_conv *c, int64_t pixel)
{
    return c->out[2] > 1 && c->stride[2] * pixel * (int64_t)sizeof(float) % MEETING == 0;
}

/* Pieces of work: lines, and where there are few of them, or weights that no cache holds, parts of
 * the channels too. */
static void cut(conv_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const int64_t line = k->line * (int64_t)sizeof(float);
    const int64_t window = (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t stretches = parts(c->out[2], k->stretch);
    const int64_t panel = k->count * k->k * CFXI_PANEL * (int64_t)sizeof(float);
    const int64_t tile = k->tiling.panels;
    const int64_t all = c->out[1] * stretches * c->batch * c->groups;  /* lines */
    int64_t wanted = p->threads > 1 ? PIECES * (int64_t)p->threads : 1;
    k->share = k->panels;
    if (wanted > 1 && (all < wanted || k->panels * panel > OWN_CACHE)) {
        const int64_t shares = all < wanted ? parts(wanted, all) : p->threads;
        k->share = smaller(k->panels, parts(k->panels / shares, tile) * tile);
        k->share = larger(k->share, tile);
    }
    k->shares = parts(k->panels, k->share);
    wanted = parts(wanted, k->shares);
    k->lines = larger(1, (LINES_BYTES / line - window) / c->stride[1] + 1);
    k->lines = smaller(k->lines, larger(1, all / wanted));
    k->lines = smaller(k->lines, c->out[1]);
    if (p->threads > 1)
        k->lines = cfxi_backend_even_lines(p->threads, c->out[1], k->lines,
                                           all / c->out[1] * k->shares);
    k->chunk = larger(tile, CHUNK_BYTES / panel / tile * tile);
    k->scratch = k->copies ? (size_t)(((k->lines - 1) * c->stride[1] + window) * line) : 0;
}

/* A part of a line whose pixels stay in the cache, for whole tiles. */
static void cut_line(conv_kernel *k)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t window = (c->kernel[2] - 1) * c->dilation[2] + 1;
    const int64_t planes = has_planes(c) ? c->in_channels : 1;
    const int64_t most =
        LINES_BYTES / 2 / (planes * k->pixel * (int64_t)sizeof(float));  /* pixels */
    const int64_t fit = (most - window) / c->stride[2] + 1;
    const int64_t rows = k->tiling.rows;
    k->stretch = smaller(c->out[2], larger(4, fit / rows) * rows);
    k->width = (k->stretch - 1) * c->stride[2] + window;
    k->line = planes * k->width * k->pixel;
}

/* What a sum is made of, and how the work is cut. */
static void shape(conv_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const bool planes = has_planes(c);
    const bool apart = !planes && meet(c, c->in_channels);
    k->posts = cfxi_backend_fuse_posts(p);
    k->tiles = cfxi_tiles_of(p->isa);
    k->panels = cfxi_tiles_panels(c->out_channels);
    k->copies = needs_copy(c) || apart;
    k->pixel = !k->copies ? c->xs[4] : planes ? 1 : c->in_channels + (apart ? CFXI_PANEL : 0);
    k->tiling = cfxi_tiles_tiling(p->isa, c->out[2], k->panels, c->stride[2] * k->pixel);
    const bool whole_lines = c->dilation[2] == 1 && !apart;
    k->count = c->kernel[1] * (whole_lines ? 1 : c->kernel[2]) * (planes ? c->in_channels : 1);
    k->k = c->kernel[1] * c->kernel[2] * c->in_channels / k->count;
    cut_line(k);
    cut(k);
}

/* Where the blocks of a sum are, in the lines that windows see and in a panel. */
static void place_blocks(conv_kernel *k)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t line = k->copies ? k->line : c->xs[3];
    const int64_t blocks = k->count / c->kernel[1];  /* of a line of the window, */
    const int64_t places = blocks / (has_planes(c) ? c->in_channels : 1);  /* and of a plane */
    for (int64_t q = 0; q < k->count; q++) {
        const int64_t down = q / blocks;
        const int64_t plane = q % blocks / places;
        const int64_t across = q % places;
        k->a_at[q] = down * c->dilation[1] * line + plane * k->width * k->pixel +
                     across * c->dilation[2] * k->pixel;
        k->b_at[q] = q * k->k * CFXI_PANEL;
    }
}

static void pack(conv_kernel *k, const cfxi_constants *from, bool fresh, float *bias)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t group = k->panels * CFXI_PANEL * k->count * k->k;
    for (int64_t g = 0; g < c->groups; g++) {
        const int64_t first = g * c->out_channels;
        if (fresh)
            cfxi_backend_pack(from->rt, k->packed + g * group, c->out_channels, k->count, k->k,
                              from->w + g * c->wg, c->ws[0],
                              from->scale ? from->scale + first : NULL, line_at, k);
        cfxi_backend_pack_bias(bias + g * k->panels * CFXI_PANEL, c->out_channels,
                               from->bias ? from->bias + first : NULL);
    }
    k->bias = from->bias ? bias : NULL;
}

/* Gives a kernel its packed weights, those of another plan if there are such. */
static bool take_weights(conv_kernel *k, const cfxi_constants *from, size_t columns, bool *fresh,
                         cfx_error *err)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t sizes[8] = {c->groups,    c->out_channels, c->in_channels, c->kernel[1],
                              c->kernel[2], k->count,        c->ws[0],       c->ws[1]};
    size_t floats;
    if (!cfxi_base_mul_size(columns, (size_t)(k->count * k->k), 0, &floats))
        return cfxi_base_nomem(err), false;
    return cfxi_backend_take_packed(&k->head, from, sizes, (size_t)(c->groups * c->out_channels),
                                    floats, fresh, err);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    conv_kernel made = {.head = {&cfxi_backend_convolution, allocator, *p, 0, NULL}};
    shape(&made);
    size_t columns, room;
    bool fresh;
    const size_t tables = 2 * sizeof(int64_t) * (size_t)made.count;
    if (!cfxi_base_mul_size((size_t)p->conv.groups, (size_t)made.panels * CFXI_PANEL, 0,
                            &columns) ||
        !cfxi_base_mul_size(columns, sizeof(float), sizeof made + tables, &room))
        return cfxi_base_nomem(err), NULL;
    conv_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = made;
    k->head.bytes = room;
    k->a_at = (int64_t *)(k + 1);
    k->b_at = k->a_at + k->count;
    if (!take_weights(k, from, columns, &fresh, err)) {
        cfxi_base_free(allocator, k, room);
        return NULL;
    }
    k->packed = k->head.packed->data;
    place_blocks(k);
    pack(k, from, fresh, (float *)(k->b_at + k->count));
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const conv_kernel *k;
    const cfxi_run *r;
    int64_t blocks;     /* of lines, in an image */
    int64_t stretches;  /* of a line */
    atomic_bool no_memory;
} running;

/* Pixels of a line, k->pixel floats for each: all their channels, or one that lies for itself. */
static void copy_pixels(const conv_kernel *k, float *to, const float *from, int64_t pixels)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t n = has_planes(c) ? 1 : c->in_channels;
    if (c->xs[4] == n && k->pixel == n)
        memcpy(to, from, (size_t)(pixels * n) * sizeof(float));
    else
        for (int64_t i = 0; i < pixels; i++)
            memcpy(to + i * k->pixel, from + i * c->xs[4], (size_t)n * sizeof(float));
}

/* What the windows of a piece see of one line of the image, from pixel x on: zeros, pixels, zeros.
 * What lies between pixels is never read. */
static void copy_line(const conv_kernel *k, float *to, const float *from, int64_t y, int64_t x)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const bool is_there = y >= 0 && y < c->in[1];
    const int64_t left = is_there ? larger(0, smaller(-x, k->width)) : k->width;
    const int64_t right = is_there ? larger(left, smaller(c->in[2] - x, k->width)) : k->width;
    const int64_t planes = has_planes(c) ? c->in_channels : 1;
    for (int64_t p = 0; p < planes; p++, to += k->width * k->pixel) {
        memset(to, 0, (size_t)(left * k->pixel) * sizeof(float));
        if (left < right)
            copy_pixels(k, to + left * k->pixel,
                        from + p * c->xs[1] + y * c->xs[3] + (x + left) * c->xs[4], right - left);
        memset(to + right * k->pixel, 0, (size_t)((k->width - right) * k->pixel) * sizeof(float));
    }
}

/* A stretch of a line of the result. */
typedef struct line {
    int64_t image, group, y, x;
    int64_t pixels;
    const float *a;         /* what the windows of its first pixel see */
    int64_t a_pixel;
    int64_t first, count;   /* products of the lines of windows that are inside of the image */
} line;

/* Which lines of the window of line y are inside of the image. */
static void find_inside(const conv_kernel *k, line *at)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t top = at->y * c->stride[1] - c->before[1];
    const int64_t places = k->count / c->kernel[1];
    int64_t first = 0;
    int64_t last = c->kernel[1];
    while (first < last && top + first * c->dilation[1] < 0)
        first++;
    while (first < last && top + (last - 1) * c->dilation[1] >= c->in[1])
        last--;
    at->first = first * places;
    at->count = (last - first) * places;
}

/* The posts that tiles do not do, on some channels of what was just computed. */
static void finish(const running *w, const line *at, int64_t panel, int64_t last)
{
    const cfxi_problem *p = &w->k->head.problem;
    const cfxi_conv *c = &p->conv;
    const int64_t first = at->group * c->out_channels;
    const int64_t channel = first + panel * CFXI_PANEL;
    int64_t offset[CFXI_MOST_POSTS];
    for (size_t s = w->k->posts.rest; s < p->num_posts; s++)
        offset[s] = at->image * p->posts[s].rows[0] + at->y * p->posts[s].rows[1] +
                    at->x * p->posts[s].rows[2] + channel;
    cfxi_backend_finish_rows(p, w->r, w->k->posts.rest,
                             w->r->out + at->image * c->ys[0] + at->y * c->ys[3] +
                                 at->x * c->ys[4] + channel,
                             at->pixels, c->ys[4],
                             smaller(first + c->out_channels, first + last * CFXI_PANEL) - channel,
                             2, offset);
}

/* n pixels from number i of the stretch on. */
static void run_tile(const running *w, const line *at, int64_t i, int64_t n, int64_t panel,
                     int64_t panels)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const int64_t all = at->group * k->panels + panel;
    const int64_t channel = at->group * c->out_channels + panel * CFXI_PANEL;
    const int64_t x = at->x + i;
    const cfxi_sum_tile t = {
        .a = at->a + i * at->a_pixel,
        .a_row = at->a_pixel,
        .a_at = k->a_at + at->first,
        .b = k->packed + all * CFXI_PANEL * k->count * k->k,
        .b_panel = CFXI_PANEL * k->count * k->k,
        .b_at = k->b_at + at->first,
        .count = at->count,
        .k = k->k,
        .c = w->r->out + at->image * c->ys[0] + at->y * c->ys[3] + x * c->ys[4] + channel,
        .c_row = c->ys[4],
        .columns = smaller(panels * CFXI_PANEL, c->out_channels - panel * CFXI_PANEL),
        .bias = k->bias ? k->bias + all * CFXI_PANEL : NULL,
        .add = add ? w->r->operands[add->operand] + at->image * add->rows[0] +
                         at->y * add->rows[1] + x * add->rows[2] + channel : NULL,
        .add_row = add ? add->rows[2] : 0,
        .low = k->posts.low,
        .high = k->posts.high,
    };
    k->tiles->fn[panels - 1][n - 1](&t);
}

/* A piece of work: lines of the result, a stretch of each, and some of the channels of a group. */
typedef struct piece {
    int64_t image, group, y, x, panel;
} piece;

static void run_line(const running *w, const line *at, int64_t panel, int64_t last)
{
    const conv_kernel *k = w->k;
    for (int64_t i = panel, n; i < last; i += n) {
        n = cfxi_tiles_across(k->tiles->most_rows, k->tiling, last - i);
        for (int64_t x = 0; x < at->pixels; x += k->tiling.rows)
            run_tile(w, at, x, smaller(k->tiling.rows, at->pixels - x), i, n);
    }
    if (k->posts.rest < k->head.problem.num_posts)
        finish(w, at, panel, last);
}

/* The lines of a piece, up to `last`, a chunk of channels after the other. */
static void run_lines(const running *w, const piece *of, int64_t last, const float *a,
                      int64_t a_line, int64_t a_pixel)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t last_panel = smaller(k->panels, of->panel + k->share);
    for (int64_t chunk = of->panel; chunk < last_panel; chunk += k->chunk)
        for (int64_t y = of->y; y < last; y++) {
            line at = {.image = of->image, .group = of->group, .y = y, .x = of->x,
                       .pixels = smaller(k->stretch, c->out[2] - of->x),
                       .a = a + (y - of->y) * a_line, .a_pixel = a_pixel};
            find_inside(k, &at);
            run_line(w, &at, chunk, smaller(last_panel, chunk + k->chunk));
        }
}

static void run_piece(const running *w, const piece *of, float *scratch)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t last = smaller(c->out[1], of->y + k->lines);
    const int64_t first = of->y * c->stride[1] - c->before[1];
    const int64_t left = of->x * c->stride[2] - c->before[2];
    const float *x = w->r->x + of->image * c->xs[0] + of->group * c->in_channels;
    if (!k->copies) {
        run_lines(w, of, last, x + first * c->xs[3] + left * c->xs[4],
                  c->stride[1] * c->xs[3], c->stride[2] * c->xs[4]);
        return;
    }
    const int64_t lines =
        (last - of->y - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    for (int64_t i = 0; i < lines; i++)
        copy_line(k, scratch + i * k->line, x, first + i, left);
    run_lines(w, of, last, scratch, c->stride[1] * k->line, c->stride[2] * k->pixel);
}

/* Pieces with the same weights follow each other. */
static piece piece_of(const running *w, int64_t i)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    piece of;
    of.x = i % w->stretches * k->stretch;
    i /= w->stretches;
    of.y = i % w->blocks * k->lines;
    i /= w->blocks;
    of.image = i % c->batch;
    i /= c->batch;
    of.group = i % c->groups;
    of.panel = i / c->groups * k->share;
    return of;
}

static void run_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    const conv_kernel *k = w->k;
    float *scratch = k->scratch ? cfxi_rt_worker_scratch(self, k->scratch) : NULL;
    if (k->scratch && !scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const piece of = piece_of(w, i);
        run_piece(w, &of, scratch);
    }
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const conv_kernel *k = (const conv_kernel *)kernel;
    const cfxi_conv *c = &kernel->problem.conv;
    running w = {.k = k, .r = r, .blocks = parts(c->out[1], k->lines),
                 .stretches = parts(c->out[2], k->stretch)};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel_work(r->rt, w.stretches * w.blocks * c->batch * c->groups * k->shares, 1,
                          run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const conv_kernel *k = (const conv_kernel *)kernel;
    const cfxi_conv *c = &kernel->problem.conv;
    cfxi_base_out_printf(out, "convolution %lldx%lld, tiles of %d x %d", (long long)c->kernel[1],
                         (long long)c->kernel[2], k->tiling.rows, k->tiling.panels * CFXI_PANEL);
}

const cfxi_backend cfxi_backend_convolution = {"built-in", query, prepare, run, release, print};
