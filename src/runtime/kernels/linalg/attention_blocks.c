/* attention_blocks.c - attention of float32, by blocks of keys: no matrix of scores in memory.
 *
 * A piece of work is some queries of one head. As many keys and values as stay in the second-level
 * cache are packed in panels (tiles.h), keys transposed, values as they are. A few tiles of queries
 * go over them by blocks, whose scores stay in the first-level cache from the product with keys
 * over their softmax to the product with values. For each row the greatest score so far and the sum
 * of exponentials relative to it are kept; when a greater score comes, what was summed is scaled
 * down.
 *
 * Few queries (a step of decoding) are bound by memory: keys and values are read once, where they
 * lie. Heads that share them (grouped heads) are then the rows of one piece.
 */
#include "attention_impl.h"
#include "gemm_impl.h"
#include "runtime/kernels/reduce/reduce_impl.h"
#include "runtime/kernels/tiles/tiles.h"

#include <math.h>

enum {
    KEY_BLOCK = 256,
    PACKED = 512 << 10,   /* bytes of keys and values that stay in the second-level cache */
    MOST_ROWS = 28,       /* whose scores of a block fit the first-level cache */
    MOST_QUERIES = 512,   /* of a piece: what is kept for each row is on the stack */
    FEW_BLOCK = 64,       /* keys, where queries are few */
    LEAST_WORK = 1 << 17,          /* multiplications worth waking another thread */
    READS_FOR_A_THREAD = 1 << 16   /* elements, where reading them is the work */
};

typedef struct work {
    cfxi_attention *a;
    const cfxi_attention_rows *rows;
    const cfxi_tiles *tiles;
    const cfxi_gemm_kernel *gemm;
    int64_t q_row, k_row, v_row, out_row;  /* in elements */
    int64_t pieces;      /* of the queries of a batch */
    int64_t block;       /* keys of a block, a multiple of CFXI_PANEL */
    int64_t packed;      /* keys that are packed together, a multiple of that */
    int64_t group;       /* batches that are rows of one piece, where queries are few */
    int64_t group_mask;  /* bytes from one's mask to the next */
} work;

/* Some queries of a batch. */
typedef struct piece {
    const float *q, *k, *v;
    const char *mask;  /* of the batch; or NULL */
    float *out;
    int64_t index;     /* of the batch */
    int64_t first, n;  /* queries; q and out begin with the first */
    int64_t mask_row;  /* bytes */
} piece;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t floats(int64_t bytes) { return bytes / (int64_t)sizeof(float); }

/* ---- masks --------------------------------------------------------------------------------- */

/* A mask's row as `weigh` takes it: where it lies, or in `room`. */
typedef struct mask_view {
    const uint8_t *seen;
    const float *added;
} mask_view;

static mask_view mask_at(const work *w, const piece *p, int64_t query, int64_t key, int64_t n,
                         float *room)
{
    mask_view v = {NULL, NULL};
    const cfx_tensor *m = w->a->mask;
    if (!p->mask)
        return v;
    const int64_t step = m->size[m->ndim - 1] == 1 ? 0 : m->stride[m->ndim - 1];
    const char *at = p->mask + query * p->mask_row + key * step;
    if (m->dtype == CFX_DTYPE_BOOL) {
        uint8_t *bytes = (uint8_t *)room;
        for (int64_t i = 0; step != 1 && i < n; i++)
            bytes[i] = (uint8_t)at[i * step];
        v.seen = step == 1 ? (const uint8_t *)at : bytes;
        return v;
    }
    const bool lies = m->dtype == CFX_DTYPE_FLOAT32 && step == (int64_t)sizeof(float);
    for (int64_t i = 0; !lies && i < n; i++)
        room[i] = (float)cfxi_tensor_load_float((cfx_dtype)m->dtype, at + i * step);
    v.added = lies ? (const float *)at : room;
    return v;
}

CFXI_ISA_CHOICE(cfxi_attention_rows, cfxi_linalg_attention_rows_of, cfxi_linalg_attention_rows)

float cfxi_linalg_weigh(cfx_isa isa, float *scores, int64_t n, float scale, const uint8_t *seen,
                        const float *added, cfxi_weighed *w)
{
    const cfxi_floats *loops = cfxi_reduce_floats_of(isa);
    const bool masks = seen || added;
    if (masks)
        cfxi_linalg_attention_rows_of(isa)->mask(scores, n, scale, seen, added);
    else if (!(scale > 0))  /* then the greatest would not stay the greatest */
        loops->rows.scale(scores, scores, n, scale, 0);
    const float by = masks || !(scale > 0) ? 1 : scale;
    const float here = n > 0 ? loops->peak(scores, n) * by : -INFINITY;
    const float most = here > w->most ? here : w->most;
    const float less = most == -INFINITY ? 0 : most;  /* all are masked: exp(-inf) is 0 */
    const double total = loops->exponentials(scores, scores, n, by, less);
    const float earlier = w->most == -INFINITY ? 0 : w->most == most ? 1 : expf(w->most - less);
    w->total = w->total * earlier + (float)total;
    w->most = most;
    return earlier;
}

/* Scores of keys [key, key + n) of a row become weights; returns the factor of earlier sums. */
static float weigh(const work *w, const piece *p, float *scores, int64_t query, int64_t key,
                   int64_t n, float *room, cfxi_weighed *state)
{
    const cfxi_attention *a = w->a;
    const mask_view m = mask_at(w, p, query, key, n, room);
    int64_t seen = n;
    if (a->causal)
        seen = query < key ? 0 : smaller(n, query + 1 - key);
    const float earlier = cfxi_linalg_weigh(a->rt->isa, scores, seen, (float)a->scale, m.seen,
                                            m.added, state);
    for (int64_t i = seen; i < n; i++)
        scores[i] = 0;
    for (int64_t i = 0; a->drop > 0 && i < seen; i++)
        scores[i] *= (float)cfxi_linalg_kept(a, p->index, query, key + i);
    return earlier;
}

static void scale(const work *w, float *row, float by)
{
    cfxi_reduce_floats_of(w->a->rt->isa)->rows.scale(row, row, w->a->value_size, by, 0);
}

static void finish_row(const work *w, float *out, const cfxi_weighed *state)
{
    if (state->total != 0)
        scale(w, out, 1 / state->total);
    else
        for (int64_t i = 0; i < w->a->value_size; i++)
            out[i] = (float)w->a->unseen;
}

/* ---- many queries --------------------------------------------------------------------------- */

/* c = a b, or is added to it: rows of k elements by panels that lie `step` apart. Of the last panel
 * only `columns` are written, or all if `whole`. */
typedef struct panel_product {
    const float *a;
    int64_t a_row, rows, k;
    const float *b;
    int64_t step, columns;
    bool whole;
    float *c;
    int64_t c_row;
    bool add;
} panel_product;

static void multiply(const work *w, const panel_product *m)
{
    static const int64_t at = 0;
    const int64_t panels = cfxi_tiles_panels(m->columns);
    const cfxi_tiling tiling = cfxi_tiles_tiling(w->a->rt->isa, m->rows, panels, m->a_row);
    cfxi_sum_tile t = {.a_row = m->a_row, .a_at = &at, .b_panel = m->step, .b_at = &at, .count = 1,
                       .k = m->k, .c_row = m->c_row, .add_row = m->c_row, .low = -INFINITY,
                       .high = INFINITY};
    for (int64_t panel = 0, n; panel < panels; panel += n) {
        n = cfxi_tiles_across(w->tiles->most_rows, tiling, panels - panel);
        const int64_t column = panel * CFXI_PANEL;
        t.b = m->b + panel * m->step;
        t.columns = m->whole ? n * CFXI_PANEL : smaller(n * CFXI_PANEL, m->columns - column);
        for (int64_t row = 0; row < m->rows; row += tiling.rows) {
            t.a = m->a + row * m->a_row;
            t.c = m->c + row * m->c_row + column;
            t.add = m->add ? t.c : NULL;
            w->tiles->fn[n - 1][smaller(tiling.rows, m->rows - row) - 1](&t);
        }
    }
}

/* What lies in scratch memory for a block of keys. */
typedef struct block_room {
    float *keys;    /* panels of keys */
    float *values;
    float *scores;  /* MOST_ROWS x block */
    float *mask;
} block_room;

static void pack_keys(const work *w, const piece *p, const block_room *room, int64_t key, int64_t n)
{
    const cfxi_attention *a = w->a;
    for (int64_t j = 0; j < n; j += CFXI_PANEL)
        w->gemm->pack(room->keys + j * a->size, CFXI_PANEL, p->k + (key + j) * w->k_row, w->k_row,
                      1, smaller(CFXI_PANEL, n - j), a->size);
    for (int64_t j = 0; j < a->value_size; j += CFXI_PANEL)
        w->gemm->pack(room->values + j * n, CFXI_PANEL, p->v + key * w->v_row + j, 1, w->v_row,
                      smaller(CFXI_PANEL, a->value_size - j), n);
}

/* Queries [row, row + rows) of a piece by keys [key, key + seen), of those that are packed: n from
 * `first` on. */
static void attend_rows(const work *w, const piece *p, const block_room *room, int64_t row,
                        int64_t rows, int64_t first, int64_t n, int64_t key, int64_t seen,
                        cfxi_weighed *state)
{
    const cfxi_attention *a = w->a;
    float *out = p->out + row * w->out_row;
    const panel_product score = {
        .a = p->q + row * w->q_row, .a_row = w->q_row, .rows = rows, .k = a->size,
        .b = room->keys + (key - first) * a->size, .step = CFXI_PANEL * a->size, .columns = seen,
        .whole = true,
        .c = room->scores, .c_row = w->block};
    multiply(w, &score);
    for (int64_t i = 0; i < rows; i++) {
        const float earlier = weigh(w, p, room->scores + i * w->block, p->first + row + i, key,
                                    seen, room->mask, &state[row + i]);
        if (key > 0 && earlier != 1)
            scale(w, out + i * w->out_row, earlier);
    }
    const panel_product sum = {
        .a = room->scores, .a_row = w->block, .rows = rows, .k = seen,
        .b = room->values + (key - first) * CFXI_PANEL, .step = CFXI_PANEL * n,
        .columns = a->value_size, .c = out, .c_row = w->out_row, .add = key > 0};
    multiply(w, &sum);
}

static void attend_piece(const work *w, const piece *p, const block_room *room)
{
    const cfxi_attention *a = w->a;
    cfxi_weighed state[MOST_QUERIES];
    for (int64_t i = 0; i < p->n; i++)
        state[i] = (cfxi_weighed){-INFINITY, 0};
    const int64_t groups = (p->n + MOST_ROWS - 1) / MOST_ROWS;
    const int64_t most = (p->n + groups - 1) / groups;
    const int64_t seen = a->causal ? smaller(a->keys, p->first + p->n) : a->keys;
    for (int64_t first = 0; first < seen; first += w->packed) {
        const int64_t n = smaller(w->packed, seen - first);
        pack_keys(w, p, room, first, n);
        for (int64_t row = 0; row < p->n; row += most) {
            const int64_t rows = smaller(most, p->n - row);
            int64_t last = first + n;  /* nobody of these sees more */
            if (a->causal)
                last = smaller(last, p->first + row + rows);
            for (int64_t key = first; key < last; key += w->block)
                attend_rows(w, p, room, row, rows, first, n, key, smaller(w->block, last - key),
                            state);
        }
    }
    for (int64_t i = 0; i < p->n; i++)
        finish_row(w, p->out + i * w->out_row, &state[i]);
}

static piece piece_of(const work *w, int64_t index, int64_t first, int64_t n)
{
    const cfxi_attention *a = w->a;
    const cfx_tensor *m = a->mask;
    return (piece){
        .q = (const float *)cfxi_linalg_batch_at(a, a->q, index) + first * w->q_row,
        .k = (const float *)cfxi_linalg_batch_at(a, a->k, index),
        .v = (const float *)cfxi_linalg_batch_at(a, a->v, index),
        .mask = m ? cfxi_linalg_batch_at(a, m, index) : NULL,
        .mask_row = !m || m->size[m->ndim - 2] == 1 ? 0 : m->stride[m->ndim - 2],
        .out = (float *)cfxi_linalg_batch_at(a, a->out, index) + first * w->out_row,
        .index = index, .first = first, .n = n};
}

static void many_range(void *ctx, int64_t begin, int64_t end)
{
    const work *w = ctx;
    cfxi_attention *a = w->a;
    const int64_t values = cfxi_tiles_panels(a->value_size) * CFXI_PANEL;
    const int64_t each = (a->queries + w->pieces - 1) / w->pieces;
    float *all = cfxi_rt_scratch(a->rt, (size_t)(w->packed * (a->size + values) +
                                                 w->block * (MOST_ROWS + 1)) * sizeof(float));
    if (!all) {
        atomic_store(&a->no_memory, true);
        return;
    }
    float *scores = all + w->packed * (a->size + values);
    const block_room room = {all, all + w->packed * a->size, scores, scores + w->block * MOST_ROWS};
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % w->pieces * each;
        if (first >= a->queries)
            continue;
        const piece p = piece_of(w, i / w->pieces, first, smaller(each, a->queries - first));
        attend_piece(w, &p, &room);
    }
    cfxi_rt_scratch_free(a->rt, all);
}

/* ---- few queries ---------------------------------------------------------------------------- */

/* Rows of a piece by keys [key, key + n), and their values. */
static void attend_few(const work *w, const piece *p, int64_t key, int64_t n, cfxi_weighed *state)
{
    const cfxi_attention *a = w->a;
    float scores[CFXI_FEW_QUERIES * FEW_BLOCK];
    float mask[FEW_BLOCK];
    for (int64_t row = 0; row < p->n; row += CFXI_FEW_QUERIES) {
        const int rows = (int)smaller(CFXI_FEW_QUERIES, p->n - row);
        float *out = p->out + row * w->out_row;
        w->gemm->dots(rows, n, a->size, p->q + row * w->q_row, w->q_row, p->k + key * w->k_row,
                      w->k_row, scores, FEW_BLOCK);
        for (int64_t i = 0; i < rows; i++) {
            const float earlier = weigh(w, p, scores + i * FEW_BLOCK, row + i, key, n, mask,
                                        &state[row + i]);
            if (key == 0)
                memset(out + i * w->out_row, 0, (size_t)a->value_size * sizeof *out);
            else if (earlier != 1)
                scale(w, out + i * w->out_row, earlier);
        }
        w->rows->mix(rows, scores, FEW_BLOCK, p->v + key * w->v_row, w->v_row, n, a->value_size,
                     out, w->out_row);
    }
}

/* Batches, in groups: all of them by a block of keys, then by the next. Where heads lie side by
 * side in memory it is read from end to end. */
static void few_range(void *ctx, int64_t begin, int64_t end)
{
    const work *w = ctx;
    cfxi_attention *a = w->a;
    const int64_t rows = w->group > 1 ? w->group : a->queries;
    cfxi_weighed *state = cfxi_rt_scratch(a->rt, (size_t)((end - begin) * rows) * sizeof *state);
    if (!state) {
        atomic_store(&a->no_memory, true);
        return;
    }
    for (int64_t i = 0; i < (end - begin) * rows; i++)
        state[i] = (cfxi_weighed){-INFINITY, 0};
    for (int64_t key = 0; key < a->keys; key += FEW_BLOCK)
        for (int64_t i = begin; i < end; i++) {
            piece p = piece_of(w, i * w->group, 0, rows);
            if (w->group > 1)
                p.mask_row = w->group_mask;
            attend_few(w, &p, key, smaller(FEW_BLOCK, a->keys - key), state + (i - begin) * rows);
        }
    for (int64_t i = begin; i < end; i++) {
        const piece p = piece_of(w, i * w->group, 0, rows);
        for (int64_t r = 0; r < rows; r++)
            finish_row(w, p.out + r * w->out_row, &state[(i - begin) * rows + r]);
    }
    cfxi_rt_scratch_free(a->rt, state);
}

/* How many batches side by side have the same keys and values; their one query each is then a row
 * of a piece. */
static void find_group(work *w)
{
    const cfxi_attention *a = w->a;
    w->group = 1;
    if (a->queries != 1 || a->causal || a->drop > 0 || a->batch_dims == 0 || a->q->ndim < 3 ||
        a->k->ndim < 3 || a->v->ndim < 3)
        return;
    const int64_t heads = a->out->size[a->batch_dims - 1];
    const int64_t shared = a->k->size[a->k->ndim - 3];
    if (a->v->size[a->v->ndim - 3] != shared || a->q->size[a->q->ndim - 3] != heads ||
        shared == heads)
        return;
    w->group = heads / shared;
    w->q_row = floats(a->q->stride[a->q->ndim - 3]);
    w->out_row = floats(a->out->stride[a->batch_dims - 1]);
    const cfx_tensor *m = a->mask;
    w->group_mask = m && m->ndim > 2 && m->size[m->ndim - 3] > 1 ? m->stride[m->ndim - 3] : 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void run_few(work *w)
{
    const int64_t threads = (int64_t)cfxi_rt_pool_threads(w->a->rt->pool);
    find_group(w);
    const int64_t groups = w->a->batches / w->group;
    const int64_t work_each = w->a->keys * (w->a->size + w->a->value_size);
    const int64_t least = 1 + READS_FOR_A_THREAD / (work_each + 1);
    const int64_t even = (groups + threads - 1) / threads;
    cfxi_rt_parallel(w->a->rt, groups, even > least ? even : least, few_range, w);
}

static void run_many(work *w)
{
    const cfxi_attention *a = w->a;
    const int64_t threads = (int64_t)cfxi_rt_pool_threads(a->rt->pool);
    const int64_t blocks = (a->keys + KEY_BLOCK - 1) / KEY_BLOCK;
    const int64_t even = blocks ? (a->keys + blocks - 1) / blocks : 1;
    w->block = cfxi_tiles_panels(even) * CFXI_PANEL;
    w->packed = w->block;
    while (w->packed < a->keys &&
           (w->packed + w->block) * (a->size + a->value_size) * (int64_t)sizeof(float) <= PACKED)
        w->packed += w->block;
    w->pieces = (a->queries + MOST_QUERIES - 1) / MOST_QUERIES;
    while (threads > 1 && a->batches * w->pieces < 4 * threads &&
           a->queries / (w->pieces + 1) >= MOST_ROWS)
        w->pieces++;
    const double work_each = (double)a->queries * (double)a->keys *
                             (double)(a->size + a->value_size) / (double)w->pieces;
    cfxi_rt_parallel(a->rt, a->batches * w->pieces,
                     work_each < LEAST_WORK ? 1 + (int64_t)(LEAST_WORK / (work_each + 1)) : 1,
                     many_range, w);
}

void cfxi_linalg_attention_blocks(cfxi_attention *a)
{
    work w = {.a = a,
              .rows = cfxi_linalg_attention_rows_of(a->rt->isa),
              .tiles = cfxi_tiles_of(a->rt->isa),
              .gemm = cfxi_linalg_gemm_of(a->rt->isa)->f32,
              .q_row = floats(a->q->stride[a->q->ndim - 2]),
              .k_row = floats(a->k->stride[a->k->ndim - 2]),
              .v_row = floats(a->v->stride[a->v->ndim - 2]),
              .out_row = floats(a->out->stride[a->out->ndim - 2])};
    if (a->queries <= CFXI_FEW_QUERIES)
        run_few(&w);
    else
        run_many(&w);
}
