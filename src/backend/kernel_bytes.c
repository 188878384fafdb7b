/* kernel_bytes.c - products and convolutions of 8-bit integers.
 *
 * A piece of work is some lines of an image, or a part of a line; a product is an image of one
 * line. Channels lie side by side, so that a line of a window is contiguous, and a convolution is a
 * sum of as many small products as its window has lines (bytes.h). They read the image in place,
 * unless there is padding, or numbers have a sign, or do not come in fours: then what the windows
 * see is copied first.
 *
 * Tiles multiply unsigned numbers by signed ones. Numbers of the other kind, and their zero points,
 * are moved by 128. What zero points add to a sum is known for each column, but where weights have
 * some: then it depends on the sum of what is multiplied, too.
 */
#include "pieces.h"

#pragma GCC optimize("O3")  /* loops over bytes become vectors */

enum {
    LINES_BYTES = 160 << 10,  /* of lines that stay in the cache */
    CHUNK_BYTES = 320 << 10,  /* of weights, likewise */
    LONGEST_PART = 512,       /* pixels of a line */
    PIECES = 4,               /* of work, for each thread */
    MOST_PLACES = 1024,       /* of a window */
    MOST_PLANES = 4,          /* channels */
    MOST_AHEAD = 32,          /* tiles that bring other weights into the cache */
    SLACK = 64,               /* bytes behind copied lines, which are read */
    MIDDLE = 128,
    MOST_LINES = 7,           /* of a window, of which those in the padding are left out */
    LEAST_WORK = 1 << 18      /* multiplications for which another thread is worth waking */
};

typedef struct bytes_kernel {
    cfxi_kernel head;
    cfxi_conv conv;         /* a product, too; with groups that are joined */
    int64_t joined;         /* how many are one */
    int64_t rows[CFXI_MOST_POSTS][3];  /* strides of posts: image, line, pixel */
    int64_t other[3];       /* and of what is added */
    const cfxi_bytes *bytes;
    cfxi_tiling tiling;     /* of a part of a line */
    bool copies;            /* what windows see */
    bool sums;              /* of what is multiplied count: weights have zero points */
    uint8_t zero;           /* of x, as an unsigned number */
    int64_t channels;       /* of a pixel that is read: three of a picture become four */
    int64_t count, k;       /* products for each sum, and their length */
    int64_t steps;          /* bytes of a column: k in whole steps */
    int64_t down, across;   /* from one result to the next, in lines and pixels of what is read */
    int64_t pixel, line;    /* these, in bytes */
    int64_t window;         /* lines */
    cfxi_pieces cut;
    size_t copied;          /* bytes of copied lines */
    size_t scratch;
    int64_t *a_at, *b_at;
    int32_t *first, *w_zero;  /* group by group, whole panels; */
    int64_t spans;          /* `first` for each choice of lines of the window that are inside */
    float *factor, *bias;
    int8_t *packed;         /* group by group */
} bytes_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t round_up(int64_t n, int64_t to) { return divide_up(n, to) * to; }

/* ---- asking -------------------------------------------------------------------------------- */

/* Whether there are few channels, each of which lies for itself. */
static bool has_planes(const cfxi_conv *c)
{
    return c->xs[1] != 1 && c->groups == 1 && c->in_channels <= MOST_PLANES;
}

static bool query(const cfxi_problem *p, double *cost)
{
    if (!p->integers.used || (p->kind != CFXI_PRODUCT && p->kind != CFXI_CONVOLUTION) ||
        (p->num_posts > 0 && !p->integers.end.to_float) ||
        cfxi_backend_depthwise_bytes.query(p, cost))
        return false;
    const cfxi_conv c = cfxi_backend_conv_of(p);
    if (c.transposed || c.in[0] != 1 || c.kernel[0] != 1 || (c.xs[1] != 1 && !has_planes(&c)) ||
        c.ys[1] != 1 || c.kernel[1] * c.kernel[2] > MOST_PLACES || c.batch <= 0 ||
        c.out[1] <= 0 || c.out[2] <= 0 || c.in_channels <= 0 || c.out_channels <= 0)
        return false;
    *cost = (double)(c.batch * c.out[1] * c.out[2] * c.groups) *
            (double)(cfxi_tiles_panels(c.out_channels) * CFXI_PANEL) *
            (double)(c.in_channels * c.kernel[1] * c.kernel[2]) / 128.0 / 3.0 /
            (p->threads > 0 ? p->threads : 1);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* Whether windows see what is not there. */
static bool is_padded(const cfxi_conv *c)
{
    const int64_t down = (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t across =
        (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
    return c->before[1] > 0 || c->before[2] > 0 || down > c->in[1] || across > c->in[2];
}

/* Small groups are joined to fill a panel: their weights for each other's channels are zeros. */
static void join_groups(bytes_kernel *k)
{
    cfxi_conv *c = &k->conv;
    k->joined = 1;
    if (k->sums || c->groups == 1 || c->wg != c->out_channels * c->ws[0])
        return;
    for (int64_t n = 2; n <= c->groups && n * c->out_channels <= CFXI_PANEL; n++)
        if (c->groups % n == 0)
            k->joined = n;
    c->groups /= k->joined;
    c->in_channels *= k->joined;
    c->out_channels *= k->joined;
    c->wg *= k->joined;
}

/* What a sum is made of, and where it is read. */
static void shape(bytes_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &k->conv;
    const bool wide = c->dilation[2] == 1 && c->kernel[2] > 1;  /* lines of windows are products */
    const bool beside = c->xs[4] == c->in_channels && c->groups == 1;  /* pixels */
    const int64_t in_place = wide && beside ? c->kernel[2] * c->in_channels : c->in_channels;
    k->copies = is_padded(c) || has_planes(c) || p->integers.x_signed || in_place % CFXI_STEP != 0;
    k->channels = has_planes(c) && c->in_channels == 3 && !k->sums ? CFXI_STEP : c->in_channels;
    k->pixel = k->copies ? k->channels : c->xs[4];
    const int64_t places = wide && (k->copies || beside) ? c->kernel[2] : 1;
    k->k = places * k->channels;
    k->count = c->kernel[1] * c->kernel[2] / places;
    k->down = k->copies ? cfxi_backend_down(c) : c->stride[1];
    k->across = k->copies ? cfxi_backend_across(c) : c->stride[2];
    k->window = (c->kernel[1] - 1) * c->dilation[1] + 1;
    k->cut.panels = cfxi_tiles_panels(c->out_channels);
    k->bytes = cfxi_tiles_bytes_of(p->isa, p->int8, c->out[2], k->k);
    k->tiling = cfxi_tiles_bytes_tiling(k->bytes, c->out[2], k->cut.panels, k->count * k->k);
    k->steps = k->count * round_up(k->k, CFXI_STEP);
    k->zero = (uint8_t)(p->integers.x_zero + (p->integers.x_signed ? MIDDLE : 0));
}

/* Panels whose weights stay in the cache, the same for all threads. */
static void cut_panels(bytes_kernel *k, int64_t threads)
{
    const int64_t tile = k->tiling.panels;
    const int64_t fits = larger(tile, CHUNK_BYTES / (k->steps * CFXI_PANEL) / tile * tile);
    const int64_t chunks = divide_up(k->cut.panels, fits);
    k->cut.chunk = chunks > 1 ? round_up(divide_up(k->cut.panels, round_up(chunks, threads)), tile)
                          : k->cut.panels;
}

/* A part of a line: whole tiles, that stay in the cache. An image of one line gives several pieces
 * of work, if there are not enough others. */
static void cut_line(bytes_kernel *k, int64_t reach, int64_t wanted)
{
    const cfxi_conv *c = &k->conv;
    const int64_t rows = k->tiling.rows;
    const int64_t fits = (LINES_BYTES / k->window / k->pixel - reach) / k->across + 1;
    k->cut.part = smaller(c->out[2], larger(1, smaller(fits, LONGEST_PART) / rows) * rows);
    if (c->out[1] == 1) {
        const int64_t others = c->batch * c->groups * divide_up(k->cut.panels, k->cut.chunk);
        const int64_t parts = larger(divide_up(c->out[2], k->cut.part), divide_up(wanted, others));
        k->cut.part = smaller(c->out[2], round_up(divide_up(c->out[2], parts), rows));
    }
    k->cut.parts = divide_up(c->out[2], k->cut.part);
}

/* Pieces of work, enough for all threads. */
static void cut(bytes_kernel *k)
{
    const cfxi_conv *c = &k->conv;
    const int64_t threads = larger(1, k->head.problem.threads);
    const int64_t wanted = threads > 1 ? PIECES * threads : 1;
    const int64_t images = c->batch * c->groups;
    const int64_t reach = k->copies && c->kernel[2] == 1
                              ? 1 : (c->kernel[2] - 1) * c->dilation[2] + 1;
    const int64_t tile = k->tiling.panels;
    cut_panels(k, threads);
    cut_line(k, reach, wanted);
    const int64_t times = images * divide_up(k->cut.panels, k->cut.chunk);
    k->line = k->copies ? ((k->cut.part - 1) * k->across + reach) * k->pixel : c->xs[3];
    const int64_t line = ((k->cut.part - 1) * k->across + reach) * k->pixel;
    k->cut.lines = k->cut.parts > 1 ? 1 : larger(1, (LINES_BYTES / line - k->window) / k->down + 1);
    k->cut.lines = smaller(smaller(k->cut.lines, c->out[1]), larger(1, c->out[1] * times / wanted));
    if (threads > 1)
        k->cut.lines = cfxi_backend_even_lines((unsigned)threads, c->out[1], k->cut.lines, times);
    k->cut.bands = divide_up(c->out[1], k->cut.lines);
    const int64_t pieces = k->cut.parts * k->cut.bands * images;
    while (k->cut.chunk > tile && pieces * divide_up(k->cut.panels, k->cut.chunk) < wanted)
        k->cut.chunk = round_up(divide_up(k->cut.chunk, 2), tile);
    k->cut.chunks = divide_up(k->cut.panels, k->cut.chunk);
    k->copied = k->copies ? (size_t)(((k->cut.lines - 1) * k->down + k->window) * k->line) : 0;
    k->copied = k->copies ? (k->copied + SLACK + CFXI_ALIGN) / CFXI_ALIGN * CFXI_ALIGN : 0;
    k->scratch = k->copied + (k->sums ? (size_t)(k->cut.lines * k->cut.part) * sizeof(int32_t) : 0);
}

/* Where the blocks of a sum are, in what is read and in a panel. */
static void place_blocks(bytes_kernel *k)
{
    const cfxi_conv *c = &k->conv;
    const int64_t blocks = k->count / c->kernel[1];  /* of a line of the window */
    for (int64_t q = 0; q < k->count; q++) {
        k->a_at[q] = q / blocks * c->dilation[1] * k->line +
                     q % blocks * c->dilation[2] * k->pixel;
        k->b_at[q] = q * round_up(k->k, CFXI_STEP) * CFXI_PANEL;
    }
}

typedef struct packing {
    const bytes_kernel *k;
    const uint8_t *w;
    uint8_t flip;
} packing;

/* Where the byte p of block q is in the weights of a column; -1 if it only fills up a step. */
static int64_t weight_at(const bytes_kernel *k, int64_t q, int64_t p)
{
    const cfxi_conv *c = &k->conv;
    const int64_t blocks = k->count / c->kernel[1];
    const int64_t place = p / k->channels + q % blocks;  /* one of them is 0 */
    if (p >= k->k || p % k->channels >= c->in_channels)
        return -1;
    return p % k->channels % (c->in_channels / k->joined) * c->ws[1] + q / blocks * c->ws[3] +
           place * c->ws[4];
}

/* The columns [first, last) of `columns` that the channel of byte p belongs to. */
typedef struct own_columns {
    int64_t first, last;
} own_columns;

static own_columns columns_of(const bytes_kernel *k, int64_t p, int64_t columns)
{
    const int64_t each = k->conv.out_channels / k->joined;
    const int64_t group = p % k->channels / (k->conv.in_channels / k->joined);
    if (k->joined == 1)
        return (own_columns){0, columns};
    return (own_columns){group * each, (group + 1) * each};
}

/* One panel, whose first column is at `w`. */
static void pack_panel(const packing *s, const uint8_t *w, int64_t columns, int8_t *to)
{
    const bytes_kernel *k = s->k;
    memset(to, 0, (size_t)(k->steps * CFXI_PANEL));
    for (int64_t q = 0; q < k->count; q++)
        for (int64_t p = 0; p < k->k; p += CFXI_STEP, to += CFXI_STEP * CFXI_PANEL)
            for (int64_t u = 0; u < CFXI_STEP; u++) {
                const int64_t at = weight_at(k, q, p + u);
                const own_columns own = columns_of(k, p + u, columns);
                for (int64_t j = own.first; at >= 0 && j < own.last; j++)
                    to[j * CFXI_STEP + u] = (int8_t)(w[at + j * k->conv.ws[0]] ^ s->flip);
            }
}

static void pack_panels(void *ctx, int64_t begin, int64_t end)
{
    const packing *s = ctx;
    const bytes_kernel *k = s->k;
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i % k->cut.panels * CFXI_PANEL;
        pack_panel(s, s->w + i / k->cut.panels * k->conv.wg + column * k->conv.ws[0],
                   smaller(CFXI_PANEL, k->conv.out_channels - column),
                   k->packed + i * k->steps * CFXI_PANEL);
    }
}

/* Windows may lie in the padding above or below the image with some of their lines, which add
 * nothing: these are left out, unless sums of what is multiplied count, too. */
static bool skips_lines(const bytes_kernel *k)
{
    const cfxi_conv *c = &k->conv;
    return is_padded(c) && c->kernel[1] > 1 && c->kernel[1] <= MOST_LINES && !k->sums;
}

/* The sum of a column's weights in some blocks. */
static int64_t sum_blocks(const bytes_kernel *k, int64_t column, int64_t from, int64_t to)
{
    const int64_t block = round_up(k->k, CFXI_STEP);
    const int8_t *at = k->packed + column / CFXI_PANEL * k->steps * CFXI_PANEL +
                       from * block * CFXI_PANEL + column % CFXI_PANEL * CFXI_STEP;
    int64_t sum = 0;
    for (int64_t p = from * block; p < to * block; p += CFXI_STEP, at += CFXI_PANEL * CFXI_STEP)
        for (int64_t u = 0; u < CFXI_STEP; u++)
            sum += at[u];
    return sum;
}

/* Which of k->first belongs to the lines [first, last) of a window. */
static int64_t span_of(const bytes_kernel *k, cfxi_span s)
{
    return k->spans == 1 ? 0 : s.first * (k->conv.kernel[1] + 1) + s.last;
}

/* What sums of a column begin with: what zero points make of the sum of its weights, and of its
 * length. */
static void find_first_of(bytes_kernel *k, int64_t column, int64_t columns)
{
    const int64_t lines = k->conv.kernel[1];
    const int64_t length = k->conv.in_channels * lines * k->conv.kernel[2];
    const int64_t zero = k->zero;
    int64_t below[MOST_LINES + 1] = {0};  /* the sum of the lines before each */
    if (k->spans == 1) {
        const int64_t sum = sum_blocks(k, column, 0, k->count);
        k->first[column] = (int32_t)(uint32_t)(uint64_t)(zero * (length * k->w_zero[column] - sum));
        return;
    }
    for (int64_t i = 0; i < lines; i++)
        below[i + 1] = below[i] + sum_blocks(k, column, i * k->count / lines,
                                             (i + 1) * k->count / lines);
    for (int64_t i = 0; i <= lines; i++)
        for (int64_t j = i; j <= lines; j++)
            k->first[span_of(k, (cfxi_span){i, j}) * columns + column] =
                (int32_t)(uint32_t)(uint64_t)(-zero * (below[j] - below[i]));
}

static void find_first(bytes_kernel *k)
{
    const int64_t columns = k->conv.groups * k->cut.panels * CFXI_PANEL;
    for (int64_t i = 0; i < columns; i++)
        find_first_of(k, i, columns);
}

/* Numbers of the columns, in whole panels. */
static void take_columns(bytes_kernel *k, const cfxi_constants *from)
{
    const cfxi_conv *c = &k->conv;
    const int32_t middle = k->head.problem.integers.w_signed ? 0 : MIDDLE;
    for (int64_t i = 0; i < c->groups * k->cut.panels * CFXI_PANEL; i++) {
        const int64_t column = i % (k->cut.panels * CFXI_PANEL);
        const int64_t all = i / (k->cut.panels * CFXI_PANEL) * c->out_channels + column;
        const bool there = column < c->out_channels;
        k->factor[i] = there ? from->scale[all] : 0;
        k->bias[i] = there && from->bias ? from->bias[all] : 0;
        k->w_zero[i] = there ? (from->w_zero ? from->w_zero[all] : 0) - middle : 0;
    }
}

/* Whether a zero point of the weights is not that of the numbers that tiles take. */
static bool has_sums(const cfxi_problem *p, const cfxi_constants *from, int64_t columns)
{
    const int32_t middle = p->integers.w_signed ? 0 : MIDDLE;
    for (int64_t i = 0; i < columns; i++)
        if ((from->w_zero ? from->w_zero[i] : 0) != middle)
            return true;
    return false;
}

static bool take_weights(bytes_kernel *k, const cfxi_constants *from, size_t columns,
                         cfx_error *err)
{
    const cfxi_conv *c = &k->conv;
    const int64_t sizes[8] = {c->groups,    c->out_channels, c->in_channels, c->kernel[1],
                              c->kernel[2], k->count,        c->ws[0],       c->ws[1]};
    const cfxi_constants weights = {.w = from->w, .packs = from->packs};
    size_t bytes;
    bool fresh;
    if (!cfxi_base_mul_size(columns, (size_t)k->steps, 0, &bytes))
        return cfxi_base_nomem(err), false;
    if (!cfxi_backend_take_packed(&k->head, &weights, sizes, 0, bytes / sizeof(float), &fresh, err))
        return false;
    k->packed = (int8_t *)(void *)k->head.packed->data;
    packing s = {k, (const uint8_t *)(const void *)from->w,
                 k->head.problem.integers.w_signed ? 0 : MIDDLE};
    if (fresh)
        cfxi_backend_each_panel(from->rt, c->groups * k->cut.panels, k->steps * CFXI_PANEL,
                                pack_panels, &s);
    return true;
}

static void take_rows(bytes_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    for (size_t i = 0; i < p->num_posts; i++)
        cfxi_backend_rows_of(p, p->posts[i].rows, k->rows[i]);
    cfxi_backend_rows_of(p, p->integers.other_rows, k->other);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    bytes_kernel made = {.head = {&cfxi_backend_bytes, allocator, *p, 0, NULL},
                         .conv = cfxi_backend_conv_of(p)};
    made.sums = has_sums(p, from, made.conv.groups * made.conv.out_channels);
    join_groups(&made);
    shape(&made);
    cut(&made);
    take_rows(&made);
    made.spans = skips_lines(&made) ? (made.conv.kernel[1] + 1) * (made.conv.kernel[1] + 1) : 1;
    size_t columns, room;
    const size_t tables = 2 * sizeof(int64_t) * (size_t)made.count;
    if (!cfxi_base_mul_size((size_t)made.conv.groups, (size_t)made.cut.panels * CFXI_PANEL, 0,
                            &columns) ||
        !cfxi_base_mul_size(columns, (size_t)(made.spans + 3) * sizeof(float),
                            sizeof made + tables, &room))
        return cfxi_base_nomem(err), NULL;
    bytes_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = made;
    k->head.bytes = room;
    k->a_at = (int64_t *)(k + 1);
    k->b_at = k->a_at + k->count;
    k->first = (int32_t *)(k->b_at + k->count);
    k->w_zero = k->first + (size_t)k->spans * columns;
    k->factor = (float *)(k->w_zero + columns);
    k->bias = k->factor + columns;
    if (!take_weights(k, from, columns, err)) {
        cfxi_base_free(allocator, k, room);
        return NULL;
    }
    place_blocks(k);
    take_columns(k, from);
    find_first(k);
    return &k->head;
}

/* ---- copying ------------------------------------------------------------------------------- */

typedef struct running {
    const bytes_kernel *k;
    const cfxi_run *r;
    atomic_bool no_memory;
} running;

static void copy_bytes(uint8_t *to, const uint8_t *from, int64_t n, bool flips)
{
    if (flips)
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i] ^ MIDDLE;
    else
        memcpy(to, from, (size_t)n);
}

/* Pixels whose numbers lie in planes. */
static void copy_planes(const bytes_kernel *k, uint8_t *to, const uint8_t *from, int64_t n,
                        int64_t step)
{
    const bool flips = k->head.problem.integers.x_signed;
    const int64_t plane = k->conv.xs[1];
    if (k->channels > k->conv.in_channels && step == 1) {
        k->bytes->interleave(n, from, plane, flips ? MIDDLE : 0, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < k->channels; c++)
            to[i * k->channels + c] =
                c < k->conv.in_channels ? from[c * plane + i * step] ^ (flips ? MIDDLE : 0) : 0;
}

/* Pixels of the image that are `step` bytes apart become copied ones. */
static void copy_pixels(const bytes_kernel *k, uint8_t *to, const uint8_t *from, int64_t n,
                        int64_t step)
{
    const int64_t size = k->pixel;
    const bool flips = k->head.problem.integers.x_signed;
    if (has_planes(&k->conv)) {
        copy_planes(k, to, from, n, step);
    } else if (step == size) {
        copy_bytes(to, from, n * size, flips);
    } else {
        for (int64_t i = 0; i < n; i++)
            copy_bytes(to + i * size, from + i * step, size, flips);
    }
}

/* What is copied, and where to. */
typedef struct copying {
    const bytes_kernel *k;
    const uint8_t *image;
    uint8_t *to;
} copying;

static void copy_line(const void *ctx, const cfxi_piece *at, int64_t y, int64_t line)
{
    const copying *w = ctx;
    const bytes_kernel *k = w->k;
    const cfxi_conv *c = &k->conv;
    const cfxi_seen s = cfxi_backend_seen(c, at, y);
    uint8_t *to = w->to + line * k->line;
    memset(to, k->zero, (size_t)(s.left * k->pixel));
    if (s.left < s.right)
        copy_pixels(k, to + s.left * k->pixel, w->image + y * c->xs[3] + s.first * c->xs[4],
                    s.right - s.left, s.step * c->xs[4]);
    memset(to + s.right * k->pixel, k->zero, (size_t)((s.width - s.right) * k->pixel));
}

/* Of what each pixel of a piece is multiplied with. */
static void sum_windows(const bytes_kernel *k, const cfxi_piece *at, const uint8_t *a,
                        int32_t *sums)
{
    for (int64_t y = at->y; y < at->last; y++, a += k->down * k->line)
        for (int64_t x = 0; x < at->end - at->x; x++) {
            int32_t sum = 0;
            for (int64_t q = 0; q < k->count; q++) {
                const uint8_t *block = a + x * k->across * k->pixel + k->a_at[q];
                for (int64_t p = 0; p < k->k; p++)
                    sum += block[p];
            }
            *sums++ = sum;
        }
}

/* ---- running ------------------------------------------------------------------------------- */

/* Weights that are brought into the cache while tiles are computed. */
typedef struct weights_ahead {
    const int8_t *at;
    int64_t step;   /* bytes for each step */
    int64_t tiles;  /* that still do so */
} weights_ahead;

/* Those behind panel number `panel` + n of all, while the tiles of these n panels are computed. */
static weights_ahead look_ahead(const bytes_kernel *k, int64_t panel, int64_t n, int64_t tiles)
{
    const int64_t some = smaller(larger(tiles, n), MOST_AHEAD);
    const bool there = panel + 2 * n <= k->conv.groups * k->cut.panels;
    if (!there)
        return (weights_ahead){k->packed, 0, 0};
    return (weights_ahead){k->packed + (panel + n) * CFXI_PANEL * k->steps,
                           n * CFXI_PANEL * CFXI_STEP / some, some};
}

/* `down` tiles of `rows` rows; `a` is what the window of pixel x of line y sees. */
static void run_tiles(const running *w, const cfxi_piece *at, const uint8_t *a,
                      const int32_t *sums, int64_t y, int64_t x, int64_t down, int64_t rows,
                      int64_t panel, int64_t panels, const weights_ahead *next)
{
    const bytes_kernel *k = w->k;
    const cfxi_conv *c = &k->conv;
    const cfxi_integers *q = &k->head.problem.integers;
    const cfxi_span inside = k->spans == 1 ? (cfxi_span){0, c->kernel[1]}
                                           : cfxi_backend_lines_inside(c, y);
    const int64_t blocks = k->count / c->kernel[1];  /* of a line of the window */
    const int64_t begin = inside.first * blocks;
    const int64_t columns = c->groups * k->cut.panels * CFXI_PANEL;
    const int64_t all = at->group * k->cut.panels + panel;
    const int64_t channel = at->group * c->out_channels + panel * CFXI_PANEL;
    const int64_t out = at->image * c->ys[0] + y * c->ys[3] + x * c->ys[4] + channel;
    const uint8_t *other = q->end.adds
                               ? (const uint8_t *)(const void *)w->r->operands[q->other] : NULL;
    const cfxi_byte_tile t = {
        .down = down,
        .a = a,
        .a_row = k->across * k->pixel,
        .a_at = k->a_at + begin,
        .b = k->packed + all * CFXI_PANEL * k->steps,
        .b_panel = CFXI_PANEL * k->steps,
        .b_at = k->b_at + begin,
        .count = inside.last * blocks - begin,
        .k = k->k,
        .columns = smaller(panels * CFXI_PANEL, c->out_channels - panel * CFXI_PANEL),
        .first = k->first + span_of(k, inside) * columns + all * CFXI_PANEL,
        .factor = k->factor + all * CFXI_PANEL,
        .bias = k->bias + all * CFXI_PANEL,
        .b_zero = k->sums ? k->w_zero + all * CFXI_PANEL : NULL,
        .a_sums = sums,
        .end = &q->end,
        .c = q->end.to_float ? (void *)(w->r->out + out) : (char *)w->r->out + out,
        .c_row = c->ys[4],
        .other = other ? other + at->image * k->other[0] + y * k->other[1] + x * k->other[2] +
                             channel : NULL,
        .other_row = k->other[2],
        .next = next->at,
        .next_step = next->tiles > 0 ? next->step : 0,
    };
    k->bytes->tile(&t, (int)rows, (int)panels);
}

/* The posts, on what was just computed. */
static void finish(const running *w, const cfxi_piece *at)
{
    const bytes_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const int64_t *ys = k->conv.ys;
    const int64_t channel = at->group * k->conv.out_channels + at->first * CFXI_PANEL;
    const int64_t channels =
        smaller(at->stop * CFXI_PANEL, k->conv.out_channels) - at->first * CFXI_PANEL;
    int64_t offset[CFXI_MOST_POSTS];
    for (int64_t y = at->y; y < at->last; y++) {
        for (size_t s = 0; s < p->num_posts; s++)
            offset[s] = at->image * k->rows[s][0] + y * k->rows[s][1] + at->x * k->rows[s][2] +
                        channel;
        cfxi_backend_finish_rows(p, w->r, 0,
                                 w->r->out + at->image * ys[0] + y * ys[3] + at->x * ys[4] +
                                     channel,
                                 at->end - at->x, ys[4], channels,
                                 p->kind == CFXI_PRODUCT ? 0 : 2, offset);
    }
}

static void run_piece(const running *w, const cfxi_piece *at, uint8_t *scratch)
{
    const bytes_kernel *k = w->k;
    const cfxi_conv *c = &k->conv;
    const int64_t pixels = at->end - at->x;
    int32_t *sums = k->sums ? (int32_t *)(void *)(scratch + k->copied) : NULL;
    const uint8_t *image = (const uint8_t *)(const void *)w->r->x + at->image * c->xs[0] +
                           at->group * c->in_channels;
    const uint8_t *a = image + at->y * c->stride[1] * c->xs[3] + at->x * c->stride[2] * c->xs[4];
    if (k->copies) {
        const copying copies = {k, image, scratch};
        cfxi_backend_copy_lines(c, at, copy_line, &copies);
        a = scratch;
    }
    if (sums)
        sum_windows(k, at, a, sums);
    for (int64_t panel = at->first, n; panel < at->stop; panel += n) {
        n = cfxi_tiles_across(k->bytes->most_rows, k->tiling, at->stop - panel);
        weights_ahead next = look_ahead(k, at->group * k->cut.panels + panel, n,
                                        (at->last - at->y) * divide_up(pixels, k->tiling.rows));
        for (int64_t y = 0; y < at->last - at->y; y++)
            for (int64_t x = 0, step; x < pixels; x += step) {
                const int64_t down = larger(1, (pixels - x) / k->tiling.rows);
                const int64_t rows = smaller(k->tiling.rows, pixels - x);
                step = down * rows;
                run_tiles(w, at, a + y * k->down * k->line + x * k->across * k->pixel,
                          sums ? sums + y * pixels + x : NULL, at->y + y, at->x + x, down, rows,
                          panel, n, &next);
                next.tiles -= down;
                next.at += next.tiles > 0 ? down * next.step * (k->steps / CFXI_STEP) : 0;
            }
    }
    if (k->head.problem.num_posts > 0)
        finish(w, at);
}

static void run_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    uint8_t *scratch = w->k->scratch ? cfxi_rt_worker_scratch(self, w->k->scratch) : NULL;
    if (w->k->scratch && !scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const cfxi_piece at = cfxi_backend_piece_of(&w->k->cut, &w->k->conv, i);
        run_piece(w, &at, scratch);
    }
}

static cfx_status run_all(const bytes_kernel *k, const cfxi_run *r, cfx_error *err)
{
    const cfxi_conv *c = &k->conv;
    const int64_t pieces = cfxi_backend_count_pieces(&k->cut, c);
    const double work = (double)(c->batch * c->out[1] * c->out[2]) *
                        (double)(c->groups * k->cut.panels) * (double)k->steps * CFXI_PANEL;
    running w = {.k = k, .r = r};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel_work(r->rt, pieces, work < LEAST_WORK ? pieces : 1, run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

/* With the scale and zero point of this run: the kernel has what they multiply. */
static cfx_status run_each(const bytes_kernel *k, const cfxi_run *r, cfx_error *err)
{
    const int64_t columns = k->conv.groups * k->cut.panels * CFXI_PANEL;
    bytes_kernel now = *k;
    now.first = cfxi_rt_scratch(r->rt, (size_t)columns * 2 * sizeof *now.first);
    if (!now.first)
        return cfxi_base_nomem(err);
    now.factor = (float *)(void *)(now.first + columns);
    for (int64_t i = 0; i < columns; i++) {
        now.first[i] = (int32_t)((uint32_t)k->first[i] * (uint32_t)r->x_zero);
        now.factor[i] = (float)(r->x_scale * (double)k->factor[i]);
    }
    const cfx_status status = run_all(&now, r, err);
    cfxi_rt_scratch_free(r->rt, now.first);
    return status;
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const bytes_kernel *k = (const bytes_kernel *)kernel;
    return kernel->problem.integers.each_run ? run_each(k, r, err) : run_all(k, r, err);
}

static void release(cfxi_kernel *k)
{
    cfxi_backend_packed_release(k->packed);
    cfxi_base_free(k->allocator, k, k->bytes);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const bytes_kernel *k = (const bytes_kernel *)kernel;
    cfxi_backend_print_tiles(&kernel->problem, "integer ", k->bytes->name, k->tiling, out);
}

const cfxi_backend cfxi_backend_bytes = {"built-in, int8", query, prepare, run, release, print};
