/* kernel_convolution.c - convolutions of images whose channels lie side by side.
 *
 * A line of the window is contiguous in memory: its pixels follow each other, each with all its
 * channels. So a convolution is a sum of as many small products as the window has lines (tiles.h),
 * which read the image in place. Where there is padding, or a group of channels, a few lines of the
 * image are copied first, with zeros around them; a window with gaps (dilation) has a product for
 * each of its places.
 */
#include "backend_impl.h"

enum {
    LINES_BYTES = 192 << 10,  /* of copied lines, that stay in the cache */
    CHUNK_BYTES = 384 << 10,  /* of weights */
    MOST_PLACES = 1024        /* of a window */
};

typedef struct conv_kernel {
    cfxi_kernel head;
    cfxi_fused_posts posts;
    const cfxi_tiles *tiles;
    cfxi_tiling tiling;     /* of a line of the result */
    bool copies;            /* lines of the image are copied */
    int64_t count;          /* products for each sum */
    int64_t k;              /* and their length */
    int64_t width;          /* pixels of a line that windows see */
    int64_t lines;          /* of the result, in a piece of work */
    int64_t panels;         /* of a group */
    int64_t chunk;          /* panels whose weights stay in the cache */
    size_t scratch;         /* bytes of copied lines */
    int64_t *a_at, *b_at;
    const float *bias;
    float *packed;          /* group by group */
} conv_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- asking -------------------------------------------------------------------------------- */

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind != CFXI_CONVOLUTION || cfxi_backend_rounds(p) || c->transposed || c->in[0] != 1 ||
        c->kernel[0] != 1 || c->xs[1] != 1 || c->ys[1] != 1 ||
        c->kernel[1] * c->kernel[2] > MOST_PLACES || c->batch <= 0 || c->out[1] <= 0 ||
        c->out[2] <= 0)
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

/* Line p of block q: a place of the window, and a channel. */
static int64_t line_at(const void *ctx, int64_t q, int64_t p)
{
    const conv_kernel *k = ctx;
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t at = q * k->k + p;
    const int64_t place = at / c->in_channels;
    return at % c->in_channels * c->ws[1] + place / c->kernel[2] * c->ws[3] +
           place % c->kernel[2] * c->ws[4];
}

static bool needs_copy(const cfxi_conv *c)
{
    const int64_t down = (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t across =
        (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
    return c->before[1] > 0 || c->before[2] > 0 || down > c->in[1] || across > c->in[2] ||
           c->groups > 1 || c->xs[4] != c->in_channels;
}

/* The shape of the work: what a sum is made of, and how many lines a piece has. */
static void shape(conv_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const bool whole_lines = c->dilation[2] == 1;
    k->posts = cfxi_backend_fuse_posts(p);
    k->tiles = cfxi_tiles_of(p->isa);
    k->panels = cfxi_tiles_panels(c->out_channels);
    k->copies = needs_copy(c);
    k->tiling = cfxi_tiles_tiling(p->isa, c->out[2], k->panels,
                                    c->stride[2] * (k->copies ? c->in_channels : c->xs[4]));
    k->count = whole_lines ? c->kernel[1] : c->kernel[1] * c->kernel[2];
    k->k = whole_lines ? c->kernel[2] * c->in_channels : c->in_channels;
    k->width = (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
    const int64_t line = k->width * c->in_channels * (int64_t)sizeof(float);
    const int64_t window = (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t wanted = p->threads > 1 ? 4 * (int64_t)p->threads : 1;
    const int64_t images = c->batch * c->groups;
    k->lines = larger(1, (LINES_BYTES / line - window) / c->stride[1] + 1);
    k->lines = smaller(k->lines, larger(1, c->out[1] * images / wanted));
    k->lines = smaller(k->lines, c->out[1]);
    k->scratch = k->copies
                     ? (size_t)(((k->lines - 1) * c->stride[1] + window) * line) : 0;
    const int64_t panel = k->count * k->k * CFXI_PANEL * (int64_t)sizeof(float);
    k->chunk = larger(k->tiling.panels, CHUNK_BYTES / panel / k->tiling.panels * k->tiling.panels);
}

/* Where the blocks of a sum are, in the lines that windows see and in a panel. */
static void place_blocks(conv_kernel *k)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t pixel = k->copies ? c->in_channels : c->xs[4];
    const int64_t line = k->copies ? k->width * c->in_channels : c->xs[3];
    for (int64_t q = 0; q < k->count; q++) {
        const int64_t down = c->dilation[2] == 1 ? q : q / c->kernel[2];
        const int64_t across = c->dilation[2] == 1 ? 0 : q % c->kernel[2];
        k->a_at[q] = down * c->dilation[1] * line + across * c->dilation[2] * pixel;
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
    int64_t pieces;     /* of an image */
    atomic_bool no_memory;
} running;

/* One line of the image as windows see it: zeros, pixels, zeros. */
static void copy_line(const conv_kernel *k, float *to, const float *from, int64_t y)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t n = c->in_channels;
    const int64_t left = smaller(c->before[2], k->width);
    const int64_t pixels = larger(0, smaller(c->in[2], k->width - left));
    if (y < 0 || y >= c->in[1]) {
        memset(to, 0, (size_t)(k->width * n) * sizeof(float));
        return;
    }
    from += y * c->xs[3];
    memset(to, 0, (size_t)(left * n) * sizeof(float));
    if (c->xs[4] == n)
        memcpy(to + left * n, from, (size_t)(pixels * n) * sizeof(float));
    else
        for (int64_t i = 0; i < pixels; i++)
            memcpy(to + (left + i) * n, from + i * c->xs[4], (size_t)n * sizeof(float));
    memset(to + (left + pixels) * n, 0,
           (size_t)((k->width - left - pixels) * n) * sizeof(float));
}

/* A line of the result, or a part of its channels. */
typedef struct line {
    int64_t image, group, y;
    const float *a;  /* what the windows of its first pixel see */
    int64_t a_pixel;
} line;

/* The posts that tiles do not do, on some channels of a line that was just computed. */
static void finish(const running *w, const line *at, int64_t panel, int64_t last)
{
    const cfxi_problem *p = &w->k->head.problem;
    const cfxi_conv *c = &p->conv;
    const int64_t first = at->group * c->out_channels;
    const int64_t channel = first + panel * CFXI_PANEL;
    int64_t offset[CFXI_MOST_POSTS];
    for (size_t s = w->k->posts.rest; s < p->num_posts; s++)
        offset[s] = at->image * p->posts[s].rows[0] + at->y * p->posts[s].rows[1] + channel;
    cfxi_backend_finish_rows(p, w->r, w->k->posts.rest,
                             w->r->out + at->image * c->ys[0] + at->y * c->ys[3] + channel,
                             c->out[2], c->ys[4],
                             smaller(first + c->out_channels, first + last * CFXI_PANEL) - channel,
                             2, offset);
}

static void run_tile(const running *w, const line *at, int64_t x, int64_t n, int64_t panel,
                     int64_t panels)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const int64_t all = at->group * k->panels + panel;
    const int64_t channel = at->group * c->out_channels + panel * CFXI_PANEL;
    const int64_t channels = smaller(panels * CFXI_PANEL, c->out_channels - panel * CFXI_PANEL);
    const cfxi_sum_tile t = {
        .a = at->a + x * at->a_pixel,
        .a_row = at->a_pixel,
        .a_at = k->a_at,
        .b = k->packed + all * CFXI_PANEL * k->count * k->k,
        .b_panel = CFXI_PANEL * k->count * k->k,
        .b_at = k->b_at,
        .count = k->count,
        .k = k->k,
        .c = w->r->out + at->image * c->ys[0] + at->y * c->ys[3] + x * c->ys[4] + channel,
        .c_row = c->ys[4],
        .columns = channels,
        .bias = k->bias ? k->bias + all * CFXI_PANEL : NULL,
        .add = add ? w->r->operands[add->operand] + at->image * add->rows[0] +
                         at->y * add->rows[1] + x * add->rows[2] + channel : NULL,
        .add_row = add ? add->rows[2] : 0,
        .low = k->posts.low,
        .high = k->posts.high,
    };
    k->tiles->fn[panels - 1][n - 1](&t);
}

static int64_t panels_of_tile(const conv_kernel *k, int64_t left)
{
    int64_t n = smaller(k->tiling.panels, left);
    while (k->tiles->most_rows[n - 1] < k->tiling.rows)
        n--;
    return n;
}

/* The lines y to `last` of one group of an image, a chunk of channels after the other. */
static void run_lines(const running *w, int64_t image, int64_t group, int64_t y, int64_t last,
                      const float *a, int64_t a_line, int64_t a_pixel)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    for (int64_t chunk = 0; chunk < k->panels; chunk += k->chunk) {
        const int64_t end = smaller(k->panels, chunk + k->chunk);
        for (int64_t i = y; i < last; i++) {
            const line at = {image, group, i, a + (i - y) * a_line, a_pixel};
            for (int64_t panel = chunk, n; panel < end; panel += n) {
                n = panels_of_tile(k, end - panel);
                for (int64_t x = 0; x < c->out[2]; x += k->tiling.rows)
                    run_tile(w, &at, x, smaller(k->tiling.rows, c->out[2] - x), panel, n);
            }
            if (k->posts.rest < k->head.problem.num_posts)
                finish(w, &at, chunk, end);
        }
    }
}

static void run_piece(const running *w, int64_t image, int64_t group, int64_t y, float *scratch)
{
    const conv_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t last = smaller(c->out[1], y + k->lines);
    const float *x = w->r->x + image * c->xs[0] + group * c->in_channels;
    if (!k->copies) {
        run_lines(w, image, group, y, last, x + y * c->stride[1] * c->xs[3],
                  c->stride[1] * c->xs[3], c->stride[2] * c->xs[4]);
        return;
    }
    const int64_t first = y * c->stride[1] - c->before[1];
    const int64_t lines = (last - y - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t size = k->width * c->in_channels;
    for (int64_t i = 0; i < lines; i++)
        copy_line(k, scratch + i * size, x, first + i);
    run_lines(w, image, group, y, last, scratch, c->stride[1] * size,
              c->stride[2] * c->in_channels);
}

static void run_pieces(void *ctx, int64_t begin, int64_t end)
{
    running *w = ctx;
    const conv_kernel *k = w->k;
    const int64_t groups = k->head.problem.conv.groups;
    float *scratch = k->scratch ? cfxi_rt_scratch(w->r->rt, k->scratch) : NULL;
    if (k->scratch && !scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        run_piece(w, i / w->pieces / groups, i / w->pieces % groups, i % w->pieces * k->lines,
                  scratch);
    cfxi_rt_scratch_free(w->r->rt, scratch);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const conv_kernel *k = (const conv_kernel *)kernel;
    const cfxi_conv *c = &kernel->problem.conv;
    running w = {.k = k, .r = r, .pieces = (c->out[1] + k->lines - 1) / k->lines};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel(r->rt, w.pieces * c->batch * c->groups, 1, run_pieces, &w);
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
