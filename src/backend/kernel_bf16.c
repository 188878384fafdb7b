/* kernel_bf16.c - products and convolutions whose operands are rounded to bfloat16.
 *
 * A piece of work is some lines of an image, or a part of a line; a product is an image of one
 * line. What its windows see is copied first: rounded, with zeros around the image, and with a
 * zero after an odd number of channels, so that what is summed up consists of pairs (dots.h). A
 * line of the window is then contiguous, and a convolution is a sum of as many small products as
 * the window has lines. Weights are packed in panels of pairs, in chunks that stay in the cache.
 */
#include "pieces.h"

enum {
    LINES_BYTES = 160 << 10,  /* of copied lines, that stay in the cache */
    CHUNK_BYTES = 512 << 10,  /* of weights, likewise */
    LONGEST_PART = 512,       /* pixels of a line */
    MOST_PLACES = 1024,       /* of a window */
    SPREAD = 512,             /* elements that are rounded together */
    LEAST_WORK = 1 << 16,     /* multiplications for which another thread is worth waking */
    SAME_SET = 1024           /* floats after which lines meet in the first-level cache */
};

typedef struct bf16_kernel {
    cfxi_kernel head;
    cfxi_conv conv;         /* a product, too */
    int64_t rows[CFXI_MOST_POSTS][3];  /* strides of posts: image, line, pixel */
    cfxi_fused_posts posts;
    const cfxi_dots *dots;
    cfxi_tiling tiling;     /* of a part of a line */
    int64_t channels;       /* of a group, an even number */
    int64_t count, pairs;   /* products for each sum, and their length */
    int64_t down, across;   /* from one result to the next, in copied lines and pixels */
    int64_t pixel, line;    /* copied ones, in floats */
    int64_t window;         /* lines */
    cfxi_pieces cut;
    size_t scratch;         /* bytes of copied lines */
    int64_t *a_at, *b_at;
    const float *bias;
    const float *packed;    /* group by group */
} bf16_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- asking -------------------------------------------------------------------------------- */

/* Which tiles, and what they multiply. */
static void choose_tiles(bf16_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &k->conv;
    const bool whole_lines = c->dilation[2] == 1;
    k->channels = c->in_channels + c->in_channels % 2;
    k->cut.panels = cfxi_tiles_panels(c->out_channels);
    k->count = whole_lines ? c->kernel[1] : c->kernel[1] * c->kernel[2];
    k->pairs = (whole_lines ? c->kernel[2] : 1) * k->channels / 2;
    k->cut.part = smaller(c->out[2], LONGEST_PART);
    k->dots = cfxi_tiles_dots_of(p->isa, p->bf16, k->cut.part, k->pairs);
    k->tiling = cfxi_tiles_dots_tiling(k->dots, k->cut.part, k->cut.panels);
}

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv c = cfxi_backend_conv_of(p);
    if (!cfxi_backend_rounds(p) || c.transposed || c.in[0] != 1 || c.kernel[0] != 1 ||
        c.xs[1] != 1 || c.ys[1] != 1 || c.kernel[1] * c.kernel[2] > MOST_PLACES ||
        c.batch <= 0 || c.out[1] <= 0 ||
        c.out[2] <= 0 || c.in_channels <= 0 || c.out_channels <= 0)
        return false;
    bf16_kernel k = {.head.problem = *p, .conv = c};
    choose_tiles(&k);
    *cost = k.tiling.cycles * (double)(k.count * k.pairs) * (double)(c.batch * c.groups) *
            (double)c.out[1] * (double)c.out[2] / (double)k.cut.part / 3.0 /
            (p->threads > 0 ? p->threads : 1);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* How pieces are cut, so that what they read stays in the cache and there is work for all. */
static void cut(bf16_kernel *k)
{
    const cfxi_conv *c = &k->conv;
    const unsigned threads = k->head.problem.threads;
    const int64_t wanted = threads > 1 ? 4 * (int64_t)threads : 1;
    const int64_t images = c->batch * c->groups;
    const int64_t panel_bytes = k->count * k->pairs * CFXI_PANEL * (int64_t)sizeof(float);
    const int64_t most = LINES_BYTES / (int64_t)sizeof(float);  /* floats that are copied */
    k->down = cfxi_backend_down(c);
    k->across = cfxi_backend_across(c);
    k->window = (c->kernel[1] - 1) * c->dilation[1] + 1;
    k->pixel = k->channels / 2 * k->dots->width;
    if (c->kernel[2] == 1 && k->pixel % (SAME_SET / 2) == 0)
        k->pixel += CFXI_PANEL;
    const int64_t reach = (c->kernel[2] - 1) * c->dilation[2] + 1;
    const int64_t fits = most / k->window / k->pixel / k->across;  /* pixels */
    k->cut.part = larger(k->tiling.rows, smaller(k->cut.part, fits));
    if (c->out[1] * images * divide_up(c->out[2], k->cut.part) < wanted)
        k->cut.part = larger(k->tiling.rows, c->out[2] * c->out[1] * images / wanted);
    k->cut.part = divide_up(k->cut.part, k->tiling.rows) * k->tiling.rows;
    k->cut.parts = divide_up(c->out[2], k->cut.part);
    k->line = ((smaller(k->cut.part, c->out[2]) - 1) * k->across + reach) * k->pixel;
    k->cut.lines = k->cut.parts > 1 ? 1 : larger(1, (most / k->line - k->window) / k->down + 1);
    k->cut.lines =
        smaller(smaller(k->cut.lines, c->out[1]), larger(1, c->out[1] * images / wanted));
    k->cut.bands = divide_up(c->out[1], k->cut.lines);
    k->scratch = (size_t)(((k->cut.lines - 1) * k->down + k->window) * k->line) * sizeof(float);
    const int64_t tile = k->tiling.panels;
    k->cut.chunk = larger(tile, CHUNK_BYTES / panel_bytes / tile * tile);
    const int64_t pieces = k->cut.parts * k->cut.bands * images;
    while (k->cut.chunk > tile && pieces * divide_up(k->cut.panels, k->cut.chunk) < wanted)
        k->cut.chunk = larger(tile, k->cut.chunk / 2 / tile * tile);
    k->cut.chunks = divide_up(k->cut.panels, k->cut.chunk);
}

/* Where the blocks of a sum are, in the copied lines and in a panel. */
static void place_blocks(bf16_kernel *k)
{
    const cfxi_conv *c = &k->conv;
    for (int64_t q = 0; q < k->count; q++) {
        const int64_t down = c->dilation[2] == 1 ? q : q / c->kernel[2];
        const int64_t across = c->dilation[2] == 1 ? 0 : q % c->kernel[2];
        k->a_at[q] = down * c->dilation[1] * k->line + across * c->dilation[2] * k->pixel;
        k->b_at[q] = q * k->pairs * CFXI_PANEL;
    }
}

/* Element `at` of a sum, in `columns` columns from `first` on: line[2 i] is that of column i. */
static void take_line(const bf16_kernel *k, const cfxi_constants *from, int64_t group, int64_t at,
                      int64_t first, int64_t columns, float *line)
{
    const cfxi_conv *c = &k->conv;
    const int64_t place = at / k->channels;
    const int64_t channel = at % k->channels;
    const float *w = from->w + group * c->wg + first * c->ws[0] + channel * c->ws[1] +
                     place / c->kernel[2] * c->ws[3] + place % c->kernel[2] * c->ws[4];
    const float *scale = from->scale ? from->scale + group * c->out_channels + first : NULL;
    for (int64_t i = 0; i < CFXI_PANEL; i++)
        line[2 * i] = i >= columns || channel >= c->in_channels ? 0
                      : scale ? w[i * c->ws[0]] * scale[i] : w[i * c->ws[0]];
}

static void pack(const bf16_kernel *k, const cfxi_constants *from, float *to)
{
    const cfxi_conv *c = &k->conv;
    float line[2 * CFXI_PANEL];
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t j = 0; j < c->out_channels; j += CFXI_PANEL) {
            const int64_t columns = smaller(CFXI_PANEL, c->out_channels - j);
            for (int64_t at = 0; at < 2 * k->count * k->pairs; at += 2, to += CFXI_PANEL) {
                take_line(k, from, g, at, j, columns, line);
                take_line(k, from, g, at + 1, j, columns, line + 1);
                cfxi_rt_convert(k->head.problem.isa, CFX_DTYPE_BFLOAT16, to, CFX_DTYPE_FLOAT32,
                                line, 2 * CFXI_PANEL);
            }
        }
}

static bool take_weights(bf16_kernel *k, const cfxi_constants *from, size_t columns, cfx_error *err)
{
    const cfxi_conv *c = &k->conv;
    const int64_t sizes[8] = {c->groups,    c->out_channels, c->in_channels, c->kernel[1],
                              c->kernel[2], k->count,        c->ws[0],       c->ws[1]};
    size_t floats;
    bool fresh;
    if (!cfxi_base_mul_size(columns, (size_t)(k->count * k->pairs), 0, &floats))
        return cfxi_base_nomem(err), false;
    if (!cfxi_backend_take_packed(&k->head, from, sizes, (size_t)(c->groups * c->out_channels),
                                  floats, &fresh, err))
        return false;
    k->packed = k->head.packed->data;
    if (fresh)
        pack(k, from, k->head.packed->data);
    return true;
}

static void take_posts(bf16_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    k->posts = cfxi_backend_fuse_posts(p);
    for (size_t i = 0; i < p->num_posts; i++)
        cfxi_backend_rows_of(p, p->posts[i].rows, k->rows[i]);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    bf16_kernel made = {.head = {&cfxi_backend_bf16, allocator, *p, 0, NULL},
                        .conv = cfxi_backend_conv_of(p)};
    choose_tiles(&made);
    cut(&made);
    take_posts(&made);
    size_t columns, room;
    const size_t tables = 2 * sizeof(int64_t) * (size_t)made.count;
    if (!cfxi_base_mul_size((size_t)made.conv.groups, (size_t)made.cut.panels * CFXI_PANEL, 0,
                            &columns) ||
        !cfxi_base_mul_size(columns, sizeof(float), sizeof made + tables, &room))
        return cfxi_base_nomem(err), NULL;
    bf16_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = made;
    k->head.bytes = room;
    k->a_at = (int64_t *)(k + 1);
    k->b_at = k->a_at + k->count;
    if (!take_weights(k, from, columns, err)) {
        cfxi_base_free(allocator, k, room);
        return NULL;
    }
    place_blocks(k);
    float *bias = (float *)(k->b_at + k->count);
    for (int64_t g = 0; g < k->conv.groups; g++)
        cfxi_backend_pack_bias(bias + g * k->cut.panels * CFXI_PANEL, k->conv.out_channels,
                               from->bias ? from->bias + g * k->conv.out_channels : NULL);
    k->bias = from->bias ? bias : NULL;
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const bf16_kernel *k;
    const cfxi_run *r;
    atomic_bool no_memory;
} running;

static char *skip(const bf16_kernel *k, char *to, int64_t pixels)
{
    return to + pixels * k->pixel * (int64_t)sizeof(float);
}

/* Pixels with an odd number of channels, which lie side by side: rounded together, then spread. */
static void spread_pixels(const bf16_kernel *k, char *to, const float *from, int64_t n)
{
    const int64_t size = k->conv.in_channels;
    const int64_t bytes = k->dots->width * 2;  /* of an element */
    const int64_t most = larger(1, SPREAD / size);
    _Alignas(CFXI_ALIGN) char room[SPREAD * sizeof(float)];
    for (int64_t i = 0; i < n; i += most) {
        const int64_t some = smaller(most, n - i);
        k->dots->round(some * size, from + i * size, room);
        for (int64_t p = 0; p < some; p++, to = skip(k, to, 1)) {
            const char *one = room + p * size * bytes;
            for (int64_t b = 0; b < size * bytes; b += 2)
                memcpy(to + b, one + b, 2);
            memset(to + size * bytes, 0, (size_t)bytes);
        }
    }
}

/* Pixels of the image that are `step` apart become copied ones. */
static void copy_pixels(const bf16_kernel *k, char *to, const float *from, int64_t n, int64_t step)
{
    const int64_t size = k->conv.in_channels;
    const int64_t pixel = k->pixel * 2 / k->dots->width;  /* elements */
    if (step == size && pixel == size) {
        k->dots->round(n * size, from, to);
    } else if (step == size && size % 2 && size <= SPREAD) {
        spread_pixels(k, to, from, n);
    } else {
        for (int64_t i = 0; i < n; i++, to = skip(k, to, 1)) {
            k->dots->round(size, from + i * step, to);
            if (size % 2)
                memset(to + size * k->dots->width * 2, 0, (size_t)k->dots->width * 2);
        }
    }
}

/* What is copied, and where to. */
typedef struct copying {
    const bf16_kernel *k;
    const float *image;
    float *to;
} copying;

static void copy_line(const void *ctx, const cfxi_piece *at, int64_t y, int64_t line)
{
    const copying *w = ctx;
    const bf16_kernel *k = w->k;
    const cfxi_conv *c = &k->conv;
    const cfxi_seen s = cfxi_backend_seen(c, at, y);
    char *to = (char *)(w->to + line * k->line);
    memset(to, 0, (size_t)(skip(k, to, s.left) - to));
    copy_pixels(k, skip(k, to, s.left), w->image + y * c->xs[3] + s.first * c->xs[4],
                s.right - s.left, s.step * c->xs[4]);
    memset(skip(k, to, s.right), 0, (size_t)(skip(k, to, s.width) - skip(k, to, s.right)));
}

/* The posts that tiles do not do, on what was just computed. */
static void apply_posts(const running *w, const cfxi_piece *at, int64_t y, int64_t x, int64_t n,
                        int64_t panel, int64_t panels)
{
    const bf16_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const int64_t *ys = k->conv.ys;
    const int64_t channel = at->group * k->conv.out_channels + panel * CFXI_PANEL;
    const int64_t channels =
        smaller(panels * CFXI_PANEL, k->conv.out_channels - panel * CFXI_PANEL);
    int64_t offset[CFXI_MOST_POSTS];
    for (int64_t i = x; i < x + n; i++) {
        for (size_t s = k->posts.rest; s < p->num_posts; s++)
            offset[s] = at->image * k->rows[s][0] + y * k->rows[s][1] + i * k->rows[s][2] + channel;
        cfxi_backend_apply_posts(p, w->r, k->posts.rest,
                                 w->r->out + at->image * ys[0] + y * ys[3] + i * ys[4] + channel,
                                 channels, offset);
    }
}

static void run_tile(const running *w, const cfxi_piece *at, const float *a, int64_t y, int64_t x,
                     int64_t rows, int64_t panel, int64_t panels)
{
    const bf16_kernel *k = w->k;
    const cfxi_conv *c = &k->conv;
    const int64_t all = at->group * k->cut.panels + panel;
    const int64_t channel = at->group * c->out_channels + panel * CFXI_PANEL;
    const int64_t channels = smaller(panels * CFXI_PANEL, c->out_channels - panel * CFXI_PANEL);
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const cfxi_sum_tile t = {
        .a = a + (x - at->x) * k->across * k->pixel,
        .a_row = k->across * k->pixel,
        .a_at = k->a_at,
        .b = k->packed + all * CFXI_PANEL * k->count * k->pairs,
        .b_panel = CFXI_PANEL * k->count * k->pairs,
        .b_at = k->b_at,
        .count = k->count,
        .k = k->pairs,
        .c = w->r->out + at->image * c->ys[0] + y * c->ys[3] + x * c->ys[4] + channel,
        .c_row = c->ys[4],
        .columns = channels,
        .bias = k->bias ? k->bias + all * CFXI_PANEL : NULL,
        .add = add ? w->r->operands[add->operand] + at->image * k->rows[0][0] + y * k->rows[0][1] +
                         x * k->rows[0][2] + channel : NULL,
        .add_row = k->rows[0][2],
        .low = k->posts.low,
        .high = k->posts.high,
    };
    k->dots->tile(&t, (int)rows, (int)panels);
}

static void run_piece(const running *w, const cfxi_piece *at, float *scratch)
{
    const bf16_kernel *k = w->k;
    const bool rest = k->posts.rest < k->head.problem.num_posts;
    const copying copies = {
        k, w->r->x + at->image * k->conv.xs[0] + at->group * k->conv.in_channels, scratch};
    cfxi_backend_copy_lines(&k->conv, at, copy_line, &copies);
    for (int64_t panel = at->first, n; panel < at->stop; panel += n) {
        n = cfxi_tiles_across(k->dots->most_rows, k->tiling, at->stop - panel);
        for (int64_t y = at->y; y < at->last; y++)
            for (int64_t x = at->x; x < at->end; x += k->tiling.rows) {
                const int64_t rows = smaller(k->tiling.rows, at->end - x);
                run_tile(w, at, scratch + (y - at->y) * k->down * k->line, y, x, rows, panel, n);
            }
    }
    for (int64_t y = at->y; rest && y < at->last; y++)  /* rows of all panels: they are long */
        apply_posts(w, at, y, at->x, at->end - at->x, at->first, at->stop - at->first);
}

static void run_pieces(void *ctx, int64_t begin, int64_t end)
{
    running *w = ctx;
    float *scratch = cfxi_rt_scratch(w->r->rt, w->k->scratch);
    if (!scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const cfxi_piece at = cfxi_backend_piece_of(&w->k->cut, &w->k->conv, i);
        run_piece(w, &at, scratch);
    }
    cfxi_rt_scratch_free(w->r->rt, scratch);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const bf16_kernel *k = (const bf16_kernel *)kernel;
    const cfxi_conv *c = &k->conv;
    const int64_t pieces = cfxi_backend_count_pieces(&k->cut, c);
    const double work = (double)(c->batch * c->out[1] * c->out[2]) *
                        (double)(c->groups * k->cut.panels) * (double)(k->count * k->pairs) *
                        (2 * CFXI_PANEL);
    running w = {.k = k, .r = r};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel(r->rt, pieces, work < LEAST_WORK ? pieces : 1, run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const bf16_kernel *k = (const bf16_kernel *)kernel;
    cfxi_backend_print_tiles(&kernel->problem, "", k->dots->name, k->tiling, out);
}

const cfxi_backend cfxi_backend_bf16 = {"built-in, bf16", query, prepare, run, release, print};
