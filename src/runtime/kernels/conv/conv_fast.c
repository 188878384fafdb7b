/* conv_fast.c - convolution of float32 without unrolling the image into a matrix.
 *
 * A band (some rows of the output) is computed from a padded copy of the rows of the input that it
 * needs. There, rows lie `wide` apart, so that place p of the band, counted through all its rows,
 * needs the element p + offset[i] for tap i, whatever p is: the taps are the rows of a matrix that
 * needs no copying, only an offset each. Places past the end of a row are computed and dropped.
 * With a step of s from place to place the copy holds every s-th column (row) apart, in slots.
 *
 * A transposed convolution is one of step 1 for each of its stride^n lattices of places, with the
 * taps that meet it.
 *
 * A 1x1 convolution (step 1) reads the image itself; a depthwise one has tiles of one row.
 */
#include "conv_impl.h"

#include "runtime/kernels/linalg/gemm_impl.h"

CFXI_ISA_CHOICE(cfxi_conv_tiles, cfxi_conv_tiles_of, cfxi_conv_tiles_all)

/* ---- an axis ------------------------------------------------------------------------------- */

/* Places q < n of the output, at first + q * step; tap j reads place q * in_step + start +
 * phase[slot[j]] + offset[j] * in_step of the input. */
typedef struct axis {
    int64_t n;
    int64_t first;
    int64_t step;
    int64_t in;
    int64_t in_step;
    int64_t start;
    int64_t reach;  /* the largest offset */
    int64_t taps;
    int64_t slots;
    int64_t *tap;   /* position in the kernel; these four have room for the kernel's size */
    int64_t *slot;
    int64_t *offset;
    int64_t *phase; /* of each slot */
} axis;

/* The slot of this phase, new or known: as few as the taps need. */
static int64_t slot_of(axis *a, int64_t phase)
{
    for (int64_t s = 0; s < a->slots; s++)
        if (a->phase[s] == phase)
            return s;
    a->phase[a->slots] = phase;
    return a->slots++;
}

static void axis_add(axis *a, int64_t tap, int64_t from)
{
    a->tap[a->taps] = tap;
    a->offset[a->taps++] = from;  /* for now: the place in the input */
    if (a->taps == 1 || from < a->start)
        a->start = from;
}

static void axis_finish(axis *a)
{
    a->reach = 0;
    for (int64_t j = 0; j < a->taps; j++) {
        int64_t distance = a->offset[j] - a->start;
        a->slot[j] = slot_of(a, distance % a->in_step);
        a->offset[j] = distance / a->in_step;
        if (a->offset[j] > a->reach)
            a->reach = a->offset[j];
    }
}

static void axis_set(axis *a, const cfxi_conv *p, size_t d, int64_t lattice)
{
    a->taps = a->slots = a->start = 0;
    a->in = p->in[d];
    if (!p->transposed) {
        a->n = p->out[d];
        a->first = 0;
        a->step = 1;
        a->in_step = p->stride[d];
        for (int64_t k = 0; k < p->kernel[d]; k++)
            axis_add(a, k, k * p->dilation[d] - p->before[d]);
    } else {
        a->first = lattice;
        a->step = p->stride[d];
        a->n = lattice < p->out[d] ? (p->out[d] - lattice - 1) / a->step + 1 : 0;
        a->in_step = 1;
        for (int64_t k = 0; k < p->kernel[d]; k++) {
            int64_t from = lattice + p->before[d] - k * p->dilation[d];
            if (from % a->step == 0)
                axis_add(a, k, from / a->step);
        }
    }
    axis_finish(a);
}

/* ---- the plan ------------------------------------------------------------------------------ */

typedef struct plan {
    cfx_runtime *rt;
    cfxi_conv conv;
    axis axes[CFXI_SPATIAL];
    bool direct;         /* no copy of the image */
    bool by_row;         /* tiles of one row: depthwise */
    int64_t tile_rows;   /* 8 or 1 */
    int64_t k;           /* taps of all input channels of a group */
    int64_t *offset;     /* k of them */
    float *packed;       /* [group][block of rows][k][tile_rows] */
    int64_t blocks;      /* of rows, in a group */
    int64_t wide;        /* elements from row to row of the copy */
    int64_t band_rows;   /* rows of the output in a band; columns, if direct */
    int64_t bands;       /* in a slice */
    int64_t plane;       /* elements of a slot of the copy */
    size_t copy_bytes;   /* of a band */
    int64_t chunks;      /* parts that the blocks of a group are computed in */
    bool framed;         /* every copy has its zeros at the same places: they are set once */
    void (*tile)(const cfxi_tile *t);
    atomic_bool failed;
} plan;

/* About what the second cache holds, in elements: of a band's copy. */
enum { BAND_ELEMENTS = 96 * 1024 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A 1x1 convolution of a dense image: all of it is one long row. */
static void flatten(cfxi_conv *p)
{
    int64_t all = p->in[0] * p->in[1] * p->in[2];
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        p->in[d] = p->out[d] = d == CFXI_SPATIAL - 1 ? all : 1;
        p->xs[2 + d] = p->ys[2 + d] = d == CFXI_SPATIAL - 1 ? 1 : all;
    }
}

static bool is_dense(const int64_t size[3], const int64_t s[5])
{
    return (s[4] == 1 || size[2] == 1) && (s[3] == size[2] || size[1] == 1) &&
           (s[2] == size[1] * size[2] || size[0] == 1);
}

static bool is_pointwise(const cfxi_conv *p)
{
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        if (p->kernel[d] != 1 || p->stride[d] != 1 || p->before[d] != 0 || p->in[d] != p->out[d])
            return false;
    return is_dense(p->in, p->xs) && is_dense(p->out, p->ys);
}

/* The elements of a band's copy; false if no memory holds them. */
static bool size_copy(plan *q)
{
    const axis *a = q->axes;
    size_t n = (size_t)q->conv.in_channels;
    return cfxi_base_mul_size(n, (size_t)a[0].taps, 0, &n) &&
           cfxi_base_mul_size(n, (size_t)a[1].slots, 0, &n) &&
           cfxi_base_mul_size(n, (size_t)a[2].slots, 0, &n) &&
           cfxi_base_mul_size(n, (size_t)q->plane, 0, &n) &&
           cfxi_base_mul_size(n, sizeof(float), 0, &q->copy_bytes);
}

/* False if a band does not fit in memory. */
static bool choose_bands(plan *q)
{
    const axis *a = q->axes;
    unsigned threads = cfxi_rt_pool_threads(q->rt->pool);
    int64_t images = q->conv.batch * q->conv.groups * a[0].n;
    q->wide = a[2].n + a[2].reach;
    if (q->direct) {
        int64_t most = BAND_ELEMENTS / (q->k + !q->k) / CFXI_TILE_COLUMNS * CFXI_TILE_COLUMNS;
        q->band_rows = most < 2 * CFXI_TILE_COLUMNS ? 2 * CFXI_TILE_COLUMNS : most;
        q->bands = (a[2].n + q->band_rows - 1) / q->band_rows;
    } else {
        int64_t row = q->conv.in_channels * a[0].taps * a[1].slots * a[2].slots * q->wide;
        int64_t most = BAND_ELEMENTS / (row ? row : 1) - a[1].reach;
        q->bands = most < 1 ? a[1].n : (a[1].n + most - 1) / most;
        q->band_rows = (a[1].n + q->bands - 1) / q->bands;
        q->bands = (a[1].n + q->band_rows - 1) / q->band_rows;
        q->plane = (q->band_rows + a[1].reach) * q->wide;
        if (!size_copy(q))
            return false;
    }
    q->framed = q->bands == 1 && a[0].n == 1 && a[0].in == 1;
    q->chunks = 1;
    while (images * q->bands * q->chunks < 2 * (int64_t)threads && q->chunks * 2 <= q->blocks &&
           threads > 1)
        q->chunks *= 2;
    return true;
}

static void set_offsets(plan *q)
{
    const axis *a = q->axes;
    int64_t i = 0;
    for (int64_t c = 0; c < q->conv.in_channels; c++)
        for (int64_t z = 0; z < a[0].taps; z++)
            for (int64_t y = 0; y < a[1].taps; y++)
                for (int64_t x = 0; x < a[2].taps; x++) {
                    int64_t slot = (c * a[0].taps + z) * a[1].slots + a[1].slot[y];
                    slot = slot * a[2].slots + a[2].slot[x];
                    q->offset[i++] = q->direct ? c * q->conv.xs[1]
                                               : slot * q->plane + a[1].offset[y] * q->wide +
                                                 a[2].offset[x];
                }
}

/* Whether the weights of a row lie one after the other, in the order of the taps. */
static bool has_dense_rows(const plan *q)
{
    const cfxi_conv *p = &q->conv;
    int64_t area = p->kernel[1] * p->kernel[2];
    return !p->transposed && (p->ws[4] == 1 || p->kernel[2] == 1) &&
           (p->ws[3] == p->kernel[2] || p->kernel[1] == 1) &&
           (p->ws[2] == area || p->kernel[0] == 1) &&
           (p->ws[1] == area * p->kernel[0] || p->in_channels == 1);
}

/* The weights of blocks [begin, end), tap after tap. Rows that are not there are 0. */
static void pack_weights(void *ctx, int64_t begin, int64_t end)
{
    const plan *q = ctx;
    const cfxi_conv *p = &q->conv;
    const axis *a = q->axes;
    const cfxi_gemm_kernel *kernel = cfxi_linalg_gemm_of(q->rt->isa)->f32;
    bool dense = has_dense_rows(q);
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % q->blocks * q->tile_rows;
        int64_t rows = least(q->tile_rows, p->out_channels - first);
        const float *w = (const float *)p->w + item / q->blocks * p->wg + first * p->ws[0];
        float *to = q->packed + item * q->k * q->tile_rows;
        if (dense) {
            kernel->pack(to, q->tile_rows, w, p->ws[0], 1, rows, q->k);
            continue;
        }
        for (int64_t c = 0; c < p->in_channels; c++)
            for (int64_t z = 0; z < a[0].taps; z++)
                for (int64_t y = 0; y < a[1].taps; y++)
                    for (int64_t x = 0; x < a[2].taps; x++) {
                        const float *from = w + c * p->ws[1] + a[0].tap[z] * p->ws[2] +
                                            a[1].tap[y] * p->ws[3] + a[2].tap[x] * p->ws[4];
                        for (int64_t r = 0; r < q->tile_rows; r++)
                            *to++ = r < rows ? from[r * p->ws[0]] : 0;
                    }
    }
}

/* ---- moving floats ------------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(16)));

/* Rows are short: a call of memcpy would cost more than the copy. */
static inline void move(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    if (n > 64) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (; i + 4 <= n; i += 4)
        *(four *)(to + i) = *(const four *)(from + i);
    for (; i < n; i++)
        to[i] = from[i];
}

static inline void move_each_second(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 < n; i += 4)  /* reads one past the last that it takes: not for the last */
        *(four *)(to + i) = __builtin_shuffle(*(const four *)(from + 2 * i),
                                              *(const four *)(from + 2 * i + 4),
                                              (lanes){0, 2, 4, 6});
    for (; i < n; i++)
        to[i] = from[2 * i];
}

/* ---- a band -------------------------------------------------------------------------------- */

/* Part of the output: rows [row, row + rows) of a slice of an image, channels of one group. */
typedef struct band {
    int64_t image;
    int64_t group;
    int64_t slice;
    int64_t row;
    int64_t rows;
} band;

/* One row of the copy: every in_step-th element of a row of the input, or zeros. */
static void copy_row(const axis *a, const float *from, int64_t stride, int64_t phase, int64_t wide,
                     bool framed, float *to)
{
    int64_t at = a->start + phase;
    int64_t j = 0;
    if (!from)
        at = a->in;
    if (at < 0) {
        j = least((-at + a->in_step - 1) / a->in_step, wide);
        at += j * a->in_step;
        memset(to, 0, framed ? 0 : (size_t)j * sizeof *to);
    }
    int64_t there = at < a->in ? (a->in - at - 1) / a->in_step + 1 : 0;
    there = least(there, wide - j);
    int64_t step = stride * a->in_step;
    if (there > 0 && step == 1)
        move(to + j, from + at, there);
    else if (there > 0 && step == 2)
        move_each_second(to + j, from + at * stride, there);
    else
        for (int64_t i = 0; i < there; i++)
            to[j + i] = from[at * stride + i * step];
    j += there > 0 ? there : 0;
    if (j < wide && !framed)
        memset(to + j, 0, (size_t)(wide - j) * sizeof *to);
}

static void copy_plane(const plan *q, const band *b, const float *from, int64_t slot_y,
                       int64_t slot_x, float *to)
{
    const axis *y = &q->axes[1];
    const axis *x = &q->axes[2];
    for (int64_t r = 0; r < b->rows + y->reach; r++, to += q->wide) {
        int64_t at = (b->row + r) * y->in_step + y->start + y->phase[slot_y];
        const float *row = from && at >= 0 && at < y->in ? from + at * q->conv.xs[3] : NULL;
        if (row || !q->framed)
            copy_row(x, row, q->conv.xs[4], x->phase[slot_x], q->wide, q->framed, to);
    }
}

static void copy_band(const plan *q, const band *b, float *to)
{
    const cfxi_conv *p = &q->conv;
    const axis *z = &q->axes[0];
    const float *image = (const float *)p->x + b->image * p->xs[0] +
                         b->group * p->in_channels * p->xs[1];
    for (int64_t c = 0; c < p->in_channels; c++)
        for (int64_t j = 0; j < z->taps; j++) {
            int64_t at = b->slice * z->in_step + z->start + z->phase[z->slot[j]] +
                         z->offset[j] * z->in_step;
            const float *slice = at < 0 || at >= z->in ? NULL
                                                       : image + c * p->xs[1] + at * p->xs[2];
            for (int64_t sy = 0; sy < q->axes[1].slots; sy++)
                for (int64_t sx = 0; sx < q->axes[2].slots; sx++, to += q->plane)
                    copy_plane(q, b, slice, sy, sx, to);
        }
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* What a tile has of places in rows goes to the output. */
static void scatter(const plan *q, const float *tile, int64_t row_elements, int64_t rows,
                    int64_t place, int64_t columns, float *y)
{
    const int64_t *ys = q->conv.ys;
    int64_t right = ys[4] * q->axes[2].step;
    int64_t column = place % q->wide;
    float *line = y + place / q->wide * ys[3] * q->axes[1].step;
    for (int64_t at = 0; at < columns; line += ys[3] * q->axes[1].step) {
        int64_t run = least(q->axes[2].n - column, columns - at);
        for (int64_t r = 0; run > 0 && r < rows; r++) {
            const float *from = tile + r * row_elements + at;
            float *to = line + column * right + r * ys[1];
            if (right == 1)
                move(to, from, run);
            else
                for (int64_t j = 0; j < run; j++)
                    to[j * right] = from[j];
        }
        at += q->wide - column;
        column = 0;
    }
}

/* Block `block` of rows, all places of the band. `base` is the band's copy; `y` the first output
 * element of the block. */
static void compute_block(const plan *q, const band *b, int64_t block, const float *base, float *y)
{
    float buffer[CFXI_TILE_ROWS * CFXI_TILE_COLUMNS];
    float bias[CFXI_TILE_ROWS] = {0};
    const cfxi_conv *p = &q->conv;
    int64_t columns = q->direct ? b->rows : (b->rows - 1) * q->wide + q->axes[2].n;
    int64_t most = q->by_row ? CFXI_TILE_ROWS * CFXI_TILE_COLUMNS : CFXI_TILE_COLUMNS;
    bool straight = q->direct || (q->wide == q->axes[2].n && p->ys[4] * q->axes[2].step == 1 &&
                                  p->ys[3] * q->axes[1].step == q->wide);
    int64_t rows = least(q->tile_rows, p->out_channels - block * q->tile_rows);
    for (int64_t r = 0; p->bias && r < rows; r++)
        bias[r] = ((const float *)p->bias)[b->group * p->out_channels + block * q->tile_rows + r];
    cfxi_tile t = {
        .k = q->k, .a = q->packed + (b->group * q->blocks + block) * q->k * q->tile_rows,
        .offset = q->offset, .bias = bias, .rows = (int)rows,
        .c = buffer, .c_row = CFXI_TILE_COLUMNS,
    };
    for (int64_t place = 0; place < columns; place += most) {
        t.b = base + place;
        t.columns = (int)least(most, columns - place);
        if (straight) {
            t.c = y + place;
            t.c_row = p->ys[1];
        }
        q->tile(&t);
        if (!straight)
            scatter(q, buffer, CFXI_TILE_COLUMNS, rows, place, t.columns, y);
    }
}

/* Chunk `chunk` of the band's channels. */
static void compute_chunk(const plan *q, const band *b, int64_t chunk, const float *copy)
{
    const cfxi_conv *p = &q->conv;
    const axis *a = q->axes;
    const float *base = copy;
    float *y = (float *)p->y + b->image * p->ys[0] + b->group * p->out_channels * p->ys[1];
    if (q->direct) {
        base = (const float *)p->x + b->image * p->xs[0] + b->group * p->in_channels * p->xs[1] +
               b->row;
        y += b->row;
    } else {
        y += (a[0].first + b->slice * a[0].step) * p->ys[2] +
             (a[1].first + b->row * a[1].step) * p->ys[3] + a[2].first * p->ys[4];
    }
    int64_t first = chunk * q->blocks / q->chunks;
    int64_t end = (chunk + 1) * q->blocks / q->chunks;
    for (int64_t block = first; block < end; block++)
        compute_block(q, b, block, base, y + block * q->tile_rows * p->ys[1]);
}

static band band_at(const plan *q, int64_t i)
{
    band b;
    b.row = i % q->bands * q->band_rows;
    b.rows = least(q->band_rows, (q->direct ? q->axes[2].n : q->axes[1].n) - b.row);
    i /= q->bands;
    b.slice = i % q->axes[0].n;
    i /= q->axes[0].n;
    b.group = i % q->conv.groups;
    b.image = i / q->conv.groups;
    return b;
}

static void compute_items(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    plan *q = ctx;
    float *copy = q->direct ? NULL : cfxi_rt_worker_scratch(self, q->copy_bytes);
    int64_t copied = -1;
    if (!copy && !q->direct) {
        atomic_store(&q->failed, true);
        cfxi_rt_worker_stop(self);
        return;
    }
    if (copy && q->framed)
        memset(copy, 0, q->copy_bytes);
    for (int64_t item = begin; item < end; item++) {
        band b = band_at(q, item / q->chunks);
        if (copy && copied != item / q->chunks)
            copy_band(q, &b, copy);
        copied = item / q->chunks;
        compute_chunk(q, &b, item % q->chunks, copy);
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* One lattice of the output; the axes are set. */
static cfx_status compute_lattice(plan *q)
{
    const axis *a = q->axes;
    const cfxi_conv *p = &q->conv;
    size_t bytes;
    if (a[0].n == 0 || a[1].n == 0 || a[2].n == 0)
        return CFX_OK;
    q->k = p->in_channels * a[0].taps * a[1].taps * a[2].taps;
    q->blocks = (p->out_channels + q->tile_rows - 1) / q->tile_rows;
    int64_t items = p->groups * q->blocks;
    if (!cfxi_base_mul_size((size_t)items, (size_t)(q->k * q->tile_rows + 1) * sizeof(float), 0,
                            &bytes))
        return CFX_E_NOMEM;
    q->packed = cfxi_rt_scratch(q->rt, bytes);
    q->offset = cfxi_rt_scratch(q->rt, (size_t)(q->k + 1) * sizeof *q->offset);
    if (q->packed && q->offset && choose_bands(q)) {
        set_offsets(q);
        cfxi_rt_parallel(q->rt, items, 1 + 32768 / (q->k * q->tile_rows + 1), pack_weights, q);
        int64_t work = q->k * q->tile_rows * q->band_rows * q->wide;  /* at the least */
        cfxi_rt_parallel_work(q->rt, p->batch * p->groups * a[0].n * q->bands * q->chunks,
                              1 + 65536 / (work + 1), compute_items, q);
    } else {
        atomic_store(&q->failed, true);
    }
    cfxi_rt_scratch_free(q->rt, q->offset);
    cfxi_rt_scratch_free(q->rt, q->packed);
    return atomic_load(&q->failed) ? CFX_E_NOMEM : CFX_OK;
}

static cfx_status compute_lattices(plan *q)
{
    const cfxi_conv *p = &q->conv;
    int64_t lattices[CFXI_SPATIAL];
    cfx_status status = CFX_OK;
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        lattices[d] = p->transposed ? least(p->stride[d], p->out[d]) : 1;
    for (int64_t z = 0; z < lattices[0]; z++)
        for (int64_t y = 0; y < lattices[1]; y++)
            for (int64_t x = 0; x < lattices[2] && status == CFX_OK; x++) {
                axis_set(&q->axes[0], p, 0, z);
                axis_set(&q->axes[1], p, 1, y);
                axis_set(&q->axes[2], p, 2, x);
                status = compute_lattice(q);
            }
    return status;
}

bool cfxi_conv_fast_pays(const cfxi_conv *p)
{
    enum { WIDE = 1024, MANY = 4096, FEW = 4 };
    int64_t lattices = 1;
    int64_t places = 1;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        const int64_t reach = p->dilation[d] * (p->kernel[d] - 1);
        if (reach > WIDE && reach / 4 > p->in[d] + p->out[d])
            return false;
        lattices *= p->transposed ? least(p->stride[d], p->out[d]) : 1;
        places *= p->out[d];
    }
    return lattices < MANY || places / lattices >= FEW;
}

cfx_status cfxi_conv_fast(cfx_runtime *rt, const cfxi_conv *p, cfx_error *err)
{
    plan q = {.rt = rt, .conv = *p};
    int64_t taps = p->kernel[0] + p->kernel[1] + p->kernel[2];
    int64_t *room = cfxi_rt_scratch(rt, (size_t)taps * 4 * sizeof *room);
    if (!room)
        return cfxi_base_nomem(err);
    q.direct = is_pointwise(p);
    if (q.direct)
        flatten(&q.conv);
    q.by_row = p->in_channels == 1 && p->out_channels <= 2;
    q.tile_rows = q.by_row ? 1 : CFXI_TILE_ROWS;
    const cfxi_conv_tiles *tiles = cfxi_conv_tiles_of(rt->isa);
    q.tile = q.by_row ? tiles->row : tiles->tile;
    int64_t *next = room;
    for (size_t d = 0; d < CFXI_SPATIAL; next += 4 * p->kernel[d++]) {
        q.axes[d].tap = next;
        q.axes[d].slot = next + p->kernel[d];
        q.axes[d].offset = next + 2 * p->kernel[d];
        q.axes[d].phase = next + 3 * p->kernel[d];
    }
    cfx_status status = compute_lattices(&q);
    cfxi_rt_scratch_free(rt, room);
    return status == CFX_E_NOMEM ? cfxi_base_nomem(err) : status;
}
