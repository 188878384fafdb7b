/* kernel_winograd.c - convolutions with windows of 3x3 and steps of 1, by Winograd (winograd.h).
 *
 * The result is cut into tiles of 2x2 pixels, and these into blocks. For a block, the pixels that
 * its tiles see are transformed, then each of 16 places is a product of [tiles][channels] with
 * weights that were transformed when they were packed, and the sums are transformed back:
 *
 *     x [4x4 pixels][channels] -> 16 x [tiles][channels] -> 16 x [tiles][columns] -> out
 *
 * Columns are done in chunks, so that sums stay in the cache. Where a pixel is not finite, its
 * neighbours would get NaN from differences: such a block is computed without transforms, with the
 * weights turned back. Numbers near the largest of float32 may overflow.
 */
#include "backend_impl.h"
#include "winograd.h"

#include <math.h>

CFXI_ISA_CHOICE(cfxi_winograd, cfxi_backend_winograd_of, cfxi_backend_winograd_tile)

enum {
    PLACES = CFXI_WINOGRAD_PLACES,
    SIDE = CFXI_WINOGRAD_SIDE,
    TAPS = 9,
    LEAST_CHANNELS = 8,      /* with fewer, transforms take longer than they save */
    BLOCK_BYTES = 640 << 10, /* of transformed pixels */
    SUMS_BYTES = 256 << 10,
    LEAST_BLOCK = 56,        /* tiles for which weights are read once, if there are as many */
    SKEW = 16                /* floats between places, so that they do not meet in the cache */
};

typedef struct winograd_kernel {
    cfxi_kernel head;
    cfxi_fused_posts posts;
    const cfxi_tiles *tiles;
    const cfxi_winograd *transforms;
    cfxi_tiling tiling;
    int64_t across, down;    /* tiles of an image */
    int64_t all;             /* tiles */
    int64_t block, blocks;   /* tiles of a block */
    int64_t panels;
    int64_t chunk;           /* panels of a chunk */
    int64_t shares;          /* parts that the panels are cut into, for threads */
    int64_t row, place;      /* of transformed pixels: floats from tile to tile, place to place */
    int64_t sums_row, sums_place;
    size_t scratch;          /* bytes */
    const float *bias;       /* or NULL */
    const float *zeros;      /* a pixel outside of the image */
    float *packed;           /* [panel][place][channel][CFXI_PANEL] */
} winograd_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* ---- asking -------------------------------------------------------------------------------- */

/* How the work is cut. */
static void shape(winograd_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const int64_t threads = p->threads > 0 ? p->threads : 1;
    k->across = parts(c->out[2], 2);
    k->down = parts(c->out[1], 2);
    k->all = c->batch * k->across * k->down;
    k->panels = cfxi_tiles_panels(c->out_channels);
    k->row = parts(c->in_channels, CFXI_PANEL) * CFXI_PANEL + SKEW;
    const int64_t fit = BLOCK_BYTES / (PLACES * k->row * (int64_t)sizeof(float));
    k->blocks = parts(k->all, larger(LEAST_BLOCK, fit));
    if (threads > 1)
        k->blocks = larger(k->blocks, smaller(2 * threads, k->all / LEAST_BLOCK));
    if (k->blocks > threads)
        k->blocks = parts(k->blocks, threads) * threads;
    k->block = parts(k->all, k->blocks);
    k->blocks = parts(k->all, k->block);
    k->shares = smaller(k->panels, parts(threads, k->blocks));
    const int64_t share = parts(k->panels, k->shares);
    k->tiling = cfxi_tiles_tiling(p->isa, k->block, share, k->row);
    const int64_t sums = PLACES * k->block * CFXI_PANEL * (int64_t)sizeof(float);
    const int64_t wide = k->tiling.panels;
    k->chunk = smaller(share, larger(wide, SUMS_BYTES / sums / wide * wide));
    k->place = k->block * k->row + SKEW;
    k->sums_row = k->chunk * CFXI_PANEL;
    k->sums_place = k->block * k->sums_row + SKEW;
    k->scratch = (size_t)(PLACES * (k->place + k->sums_place)) * sizeof(float);
}

/* Cycles for a vector of channels of a tile: loads, stores and sums. */
enum { IN_CYCLES = 60, OUT_CYCLES = 50 };

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind != CFXI_CONVOLUTION || cfxi_backend_rounds(p) || c->transposed || c->in[0] != 1 ||
        c->kernel[0] != 1 || c->kernel[1] != 3 || c->kernel[2] != 3 ||
        c->stride[1] != 1 || c->stride[2] != 1 || c->dilation[1] != 1 || c->dilation[2] != 1 ||
        c->groups != 1 || c->xs[1] != 1 || c->ys[1] != 1 || c->in_channels < LEAST_CHANNELS ||
        c->batch <= 0 || c->out[1] <= 0 || c->out[2] <= 0)
        return false;
    winograd_kernel k = {.head = {.problem = *p}};
    shape(&k);
    const double lanes = p->isa == CFX_ISA_AVX512 ? 16 : p->isa == CFX_ISA_AVX2 ? 8 : 4;
    const double share = (double)k.panels / (double)parts(k.panels, k.shares);
    const double products = k.tiling.cycles * PLACES * (double)c->in_channels *
                            (double)k.blocks * share;
    const double transforms = (double)k.all / lanes *
                              ((double)(c->in_channels * k.shares) * IN_CYCLES +
                               (double)c->out_channels * OUT_CYCLES);
    *cost = (products + transforms) / 3.0 / (p->threads > 0 ? p->threads : 1) +
            cfxi_backend_weight_cost(PLACES * c->in_channels * c->out_channels);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* One number of the window for each column of a panel. */
typedef float column_row[CFXI_PANEL];

static void turn_weights(const column_row *x, size_t step, column_row *to, size_t to_step)
{
    for (int j = 0; j < CFXI_PANEL; j++) {
        const float first = x[0][j];
        const float middle = x[step][j];
        const float last = x[2 * step][j];
        to[0][j] = first;
        to[to_step][j] = (first + middle + last) / 2;
        to[2 * to_step][j] = (first - middle + last) / 2;
        to[3 * to_step][j] = last;
    }
}

/* G w G' of the windows of a panel. */
static void transform_weights(const column_row *w, column_row *to)
{
    column_row half[3 * SIDE];
    for (size_t i = 0; i < 3; i++)  /* each column of a window */
        turn_weights(w + i, 3, half + i, 3);
    for (size_t i = 0; i < SIDE; i++)
        turn_weights(half + 3 * i, 1, to + SIDE * i, 1);
}

/* Weights on their way into panels. */
typedef struct packing {
    const winograd_kernel *k;
    const cfxi_constants *from;
    atomic_bool infinite;  /* something that was packed is not finite */
} packing;

/* The windows of a panel, from one channel, scaled. Columns that there are not have zeros. */
static void read_windows(const packing *s, int64_t panel, int64_t channel, column_row *windows)
{
    const cfxi_conv *c = &s->k->head.problem.conv;
    const int64_t first = panel * CFXI_PANEL;
    const int64_t columns = smaller(CFXI_PANEL, c->out_channels - first);
    for (int64_t j = 0; j < columns; j++) {
        const float *w = s->from->w + (first + j) * c->ws[0] + channel * c->ws[1];
        const float scale = s->from->scale ? s->from->scale[first + j] : 1;
        for (int tap = 0; tap < TAPS; tap++)
            windows[tap][j] = w[tap / 3 * c->ws[3] + tap % 3 * c->ws[4]] * scale;
    }
}

static void pack_panels(void *ctx, int64_t begin, int64_t end)
{
    packing *s = ctx;
    const int64_t channels = s->k->head.problem.conv.in_channels;
    column_row wrong = {0};
    for (int64_t panel = begin; panel < end; panel++) {
        column_row windows[TAPS] = {{0}};
        column_row turned[PLACES];
        float *to = s->k->packed + panel * PLACES * channels * CFXI_PANEL;
        for (int64_t i = 0; i < channels; i++, to += CFXI_PANEL) {
            read_windows(s, panel, i, windows);
            transform_weights(windows, turned);
            for (int q = 0; q < PLACES; q++)
                memcpy(to + q * channels * CFXI_PANEL, turned[q], sizeof *turned);
            for (int q = 0; q < PLACES * CFXI_PANEL; q++)
                wrong[q % CFXI_PANEL] += turned[q / CFXI_PANEL][q % CFXI_PANEL] * 0;
        }
    }
    for (int j = 0; j < CFXI_PANEL; j++)
        if (wrong[j] != 0)
            atomic_store(&s->infinite, true);
}

/* Whether all weights are finite, which are packed then. */
static bool pack(const winograd_kernel *k, const cfxi_constants *from)
{
    packing s = {.k = k, .from = from};
    atomic_init(&s.infinite, false);
    const int64_t floats = PLACES * k->head.problem.conv.in_channels * CFXI_PANEL;  /* of a panel */
    cfxi_backend_each_panel(from->rt, k->panels, floats, pack_panels, &s);
    return !atomic_load(&s.infinite);
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static bool take_weights(winograd_kernel *k, const cfxi_constants *from, bool *fresh,
                         cfx_error *err)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t sizes[8] = {c->out_channels, c->in_channels, c->ws[0],
                              c->ws[1],        c->ws[3],       c->ws[4]};
    size_t floats;
    if (!cfxi_base_mul_size((size_t)k->panels * PLACES * CFXI_PANEL, (size_t)c->in_channels, 0,
                            &floats))
        return cfxi_base_nomem(err), false;
    return cfxi_backend_take_packed(&k->head, from, sizes, (size_t)c->out_channels, floats, fresh,
                                    err);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_conv *c = &p->conv;
    const size_t columns = (size_t)cfxi_tiles_panels(c->out_channels) * CFXI_PANEL;
    size_t room;
    bool fresh;
    if (!cfxi_base_mul_size(columns + (size_t)c->in_channels, sizeof(float),
                            sizeof(winograd_kernel), &room))
        return cfxi_base_nomem(err), NULL;
    winograd_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (winograd_kernel){.head = {&cfxi_backend_winograd, allocator, *p, room, NULL},
                           .posts = cfxi_backend_fuse_posts(p), .tiles = cfxi_tiles_of(p->isa),
                           .transforms = cfxi_backend_winograd_of(p->isa)};
    shape(k);
    if (!take_weights(k, from, &fresh, err)) {
        cfxi_base_free(allocator, k, room);
        return NULL;
    }
    float *bias = (float *)(k + 1);
    cfxi_backend_pack_bias(bias, c->out_channels, from->bias);
    memset(bias + columns, 0, (size_t)c->in_channels * sizeof(float));
    k->bias = from->bias ? bias : NULL;
    k->zeros = bias + columns;
    k->packed = k->head.packed->data;
    if (!fresh || pack(k, from))
        return &k->head;
    if (from->packs)
        cfxi_backend_forget_packed(from->packs, allocator);
    release(&k->head);
    return cfxi_backend_convolution.prepare(p, from, allocator, err);
}

/* ---- where tiles are ----------------------------------------------------------------------- */

typedef struct running {
    const winograd_kernel *k;
    const cfxi_run *r;
    atomic_bool no_memory;
} running;

/* A tile: its image, and its first pixel in the result. */
typedef struct spot {
    int64_t image, y, x;
} spot;

static spot spot_of(const winograd_kernel *k, int64_t tile)
{
    return (spot){tile / k->across / k->down, tile / k->across % k->down * 2, tile % k->across * 2};
}

static const float *pixel_of(const running *w, int64_t image, int64_t y, int64_t x)
{
    const cfxi_conv *c = &w->k->head.problem.conv;
    return w->r->x + image * c->xs[0] + y * c->xs[3] + x * c->xs[4];
}

/* Where a pixel of the result is in the operand of a post. */
static int64_t post_at(const cfxi_post *post, const spot *at, int64_t y, int64_t x)
{
    return at->image * post->rows[0] + y * post->rows[1] + x * post->rows[2];
}

/* The posts that neither tiles nor transforms do. */
static void finish(const running *w, const spot *at, int64_t y, int64_t x, int64_t channel,
                   float *to, int64_t columns)
{
    const cfxi_problem *p = &w->k->head.problem;
    int64_t offset[CFXI_MOST_POSTS];
    for (size_t s = w->k->posts.rest; s < p->num_posts; s++)
        offset[s] = post_at(&p->posts[s], at, y, x) + channel;
    cfxi_backend_apply_posts(p, w->r, w->k->posts.rest, to, columns, offset);
}

/* ---- with transforms ----------------------------------------------------------------------- */

/* False if a pixel is not finite. */
static bool transform_pixels(const running *w, int64_t first, int64_t n, float *to)
{
    const winograd_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    bool finite = true;
    for (int64_t i = 0; i < n && finite; i++) {
        const spot at = spot_of(k, first + i);
        cfxi_winograd_in t = {.channels = c->in_channels, .to = to + i * k->row,
                              .to_place = k->place};
        for (int64_t q = 0; q < PLACES; q++) {
            const int64_t y = at.y + q / SIDE - c->before[1];
            const int64_t x = at.x + q % SIDE - c->before[2];
            const bool inside = y >= 0 && y < c->in[1] && x >= 0 && x < c->in[2];
            t.pixels[q] = inside ? pixel_of(w, at.image, y, x) : k->zeros;
        }
        finite = k->transforms->in(&t);
    }
    return finite;
}

/* One place of all tiles of a block. */
static void multiply(const winograd_kernel *k, int64_t place, int64_t tiles, int64_t panel,
                     int64_t last, const float *pixels, float *sums)
{
    static const int64_t at = 0;
    const int64_t channels = k->head.problem.conv.in_channels;
    const int64_t size = PLACES * channels * CFXI_PANEL;
    for (int64_t row = 0; row < tiles; row += k->tiling.rows) {
        const int64_t rows = smaller(k->tiling.rows, tiles - row);
        for (int64_t i = panel, n; i < last; i += n) {
            n = cfxi_tiles_across(k->tiles->most_rows, k->tiling, last - i);
            const cfxi_sum_tile t = {
                .a = pixels + place * k->place + row * k->row,
                .a_row = k->row,
                .a_at = &at,
                .b = k->packed + i * size + place * channels * CFXI_PANEL,
                .b_panel = size,
                .b_at = &at,
                .count = 1,
                .k = channels,
                .c = sums + place * k->sums_place + row * k->sums_row + (i - panel) * CFXI_PANEL,
                .c_row = k->sums_row,
                .columns = n * CFXI_PANEL,
                .low = -INFINITY,
                .high = INFINITY,
            };
            k->tiles->fn[n - 1][rows - 1](&t);
        }
    }
}

static void transform_sums(const running *w, int64_t tile, int64_t panel, int64_t columns,
                           const float *sums)
{
    const winograd_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const spot at = spot_of(k, tile);
    const int64_t channel = panel * CFXI_PANEL;
    cfxi_winograd_out t = {.sums = sums, .sums_place = k->sums_place, .columns = columns,
                           .bias = k->bias ? k->bias + channel : NULL, .low = k->posts.low,
                           .high = k->posts.high};
    for (int i = 0; i < 4; i++) {
        const int64_t y = at.y + i / 2;
        const int64_t x = at.x + i % 2;
        if (y >= c->out[1] || x >= c->out[2])
            continue;
        t.to[i] = w->r->out + at.image * c->ys[0] + y * c->ys[3] + x * c->ys[4] + channel;
        t.add[i] = add ? w->r->operands[add->operand] + post_at(add, &at, y, x) + channel : NULL;
    }
    k->transforms->out(&t);
    for (int i = 0; k->posts.rest < k->head.problem.num_posts && i < 4; i++)
        if (t.to[i])
            finish(w, &at, at.y + i / 2, at.x + i % 2, channel, t.to[i], columns);
}

static void run_chunk(const running *w, int64_t first, int64_t tiles, int64_t panel, int64_t last,
                      const float *pixels, float *sums)
{
    const winograd_kernel *k = w->k;
    const int64_t columns =
        smaller((last - panel) * CFXI_PANEL,
                k->head.problem.conv.out_channels - panel * CFXI_PANEL);
    for (int64_t place = 0; place < PLACES; place++)
        multiply(k, place, tiles, panel, last, pixels, sums);
    for (int64_t i = 0; i < tiles; i++)
        transform_sums(w, first + i, panel, columns, sums + i * k->sums_row);
}

/* ---- without transforms -------------------------------------------------------------------- */

/* A weight is what it was but for rounding. One that was 0 is 0 again, so that infinity times it is
 * NaN: a sum of terms is taken for 0 if it is below their rounding errors. */
static float without_rounding(float sum, float terms)
{
    return fabsf(sum) <= terms * 0x1p-22f ? 0 : sum;
}

/* The window that was turned into 16 places, of a panel: [tap][channel][CFXI_PANEL]. */
static void turn_back(const winograd_kernel *k, int64_t panel, float *to)
{
    static const int one[3] = {0, 1, SIDE - 1};
    static const int less[3] = {-1, 2, -1};  /* minus that place */
    const int64_t size = k->head.problem.conv.in_channels * CFXI_PANEL;
    const float *from = k->packed + panel * PLACES * size;
    for (int tap = 0; tap < TAPS; tap++)
        for (int64_t i = 0; i < size; i++) {
            const int r = tap / 3;
            const int s = tap % 3;
            const float terms[4] = {
                from[(one[r] * SIDE + one[s]) * size + i],
                less[r] >= 0 ? -from[(less[r] * SIDE + one[s]) * size + i] : 0,
                less[s] >= 0 ? -from[(one[r] * SIDE + less[s]) * size + i] : 0,
                less[r] >= 0 && less[s] >= 0 ? from[(less[r] * SIDE + less[s]) * size + i] : 0};
            float sum = 0;
            float size_of_terms = 0;
            for (int t = 0; t < 4; t++) {
                sum += terms[t];
                size_of_terms += fabsf(terms[t]);
            }
            to[tap * size + i] = without_rounding(sum, size_of_terms);
        }
}

/* A pixel of the result, a panel of channels: the taps that lie inside of the image. */
static void sum_pixel(const running *w, const spot *at, int64_t y, int64_t x, int64_t panel,
                      const float *weights)
{
    const winograd_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const cfxi_post *add = k->posts.adds ? &k->head.problem.posts[0] : NULL;
    const int64_t channel = panel * CFXI_PANEL;
    int64_t a_at[TAPS];
    int64_t b_at[TAPS];
    cfxi_sum_tile t = {
        .a = w->r->x + at->image * c->xs[0],
        .a_at = a_at,
        .b = weights,
        .b_at = b_at,
        .k = c->in_channels,
        .c = w->r->out + at->image * c->ys[0] + y * c->ys[3] + x * c->ys[4] + channel,
        .columns = smaller(CFXI_PANEL, c->out_channels - channel),
        .bias = k->bias ? k->bias + channel : NULL,
        .add = add ? w->r->operands[add->operand] + post_at(add, at, y, x) + channel : NULL,
        .low = k->posts.low,
        .high = k->posts.high,
    };
    for (int64_t tap = 0; tap < TAPS; tap++) {
        const int64_t line = y + tap / 3 - c->before[1];
        const int64_t pixel = x + tap % 3 - c->before[2];
        if (line < 0 || line >= c->in[1] || pixel < 0 || pixel >= c->in[2])
            continue;
        a_at[t.count] = line * c->xs[3] + pixel * c->xs[4];
        b_at[t.count++] = tap * c->in_channels * CFXI_PANEL;
    }
    k->tiles->fn[0][0](&t);
    finish(w, at, y, x, channel, t.c, t.columns);
}

static bool run_plainly(const running *w, int64_t first, int64_t tiles, int64_t panel, int64_t last)
{
    const winograd_kernel *k = w->k;
    const cfxi_conv *c = &k->head.problem.conv;
    const size_t size = (size_t)(TAPS * c->in_channels * CFXI_PANEL) * sizeof(float);
    float *weights = cfxi_rt_scratch(w->r->rt, size);
    for (; weights && panel < last; panel++) {
        turn_back(k, panel, weights);
        for (int64_t i = 0; i < tiles * 4; i++) {
            const spot at = spot_of(k, first + i / 4);
            const int64_t y = at.y + i / 2 % 2;
            const int64_t x = at.x + i % 2;
            if (y < c->out[1] && x < c->out[2])
                sum_pixel(w, &at, y, x, panel, weights);
        }
    }
    cfxi_rt_scratch_free(w->r->rt, weights);
    return weights != NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

static void run_piece(running *w, int64_t block, int64_t share, float *scratch)
{
    const winograd_kernel *k = w->k;
    const int64_t first = block * k->block;
    const int64_t tiles = smaller(k->block, k->all - first);
    const int64_t panel = k->panels * share / k->shares;
    const int64_t last = k->panels * (share + 1) / k->shares;
    if (!transform_pixels(w, first, tiles, scratch)) {
        if (!run_plainly(w, first, tiles, panel, last))
            atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = panel; i < last; i += k->chunk)
        run_chunk(w, first, tiles, i, smaller(last, i + k->chunk), scratch,
                  scratch + PLACES * k->place);
}

static void run_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    float *scratch = cfxi_rt_worker_scratch(self, w->k->scratch);
    if (!scratch)
        atomic_store(&w->no_memory, true);
    for (int64_t i = begin; scratch && i < end; i++)
        run_piece(w, i % w->k->blocks, i / w->k->blocks, scratch);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const winograd_kernel *k = (const winograd_kernel *)kernel;
    running w = {.k = k, .r = r};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel_work(r->rt, k->blocks * k->shares, 1, run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const winograd_kernel *k = (const winograd_kernel *)kernel;
    cfxi_base_out_printf(out, "convolution 3x3 by Winograd, tiles of %d x %d", k->tiling.rows,
                         k->tiling.panels * CFXI_PANEL);
}

const cfxi_backend cfxi_backend_winograd = {"built-in", query, prepare, run, release, print};
