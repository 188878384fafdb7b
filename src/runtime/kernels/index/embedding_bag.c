/* embedding_bag.c - sums, means or maxima of rows of a table. */
#include "bags.h"

#include "bag_sums.h"

/* (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
 * include_last_offset, padding_idx) -> (rows, bag of each index, sizes of bags, where the maxima
 * are); the last three serve gradients, and are empty or zero for sums. Indices in two dimensions
 * are a bag a row, and have no offsets. */
enum { WEIGHT, INDICES, OFFSETS, MODE = 4, SAMPLES = 6, LAST = 7, PADDING = 8 };
enum { SUM, MEAN, MAX };

static bool is_index(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_INT64 || t->dtype == CFX_DTYPE_INT32;
}

static cfx_status check_bags(cfxi_call *c, const cfx_tensor *weight, const cfx_tensor *indices,
                             const cfx_tensor *offsets)
{
    if (indices->ndim != 1 && indices->ndim != 2)
        return cfxi_fail(c, CFX_E_VALUE, "input has to be 1D or 2D Tensor, but got Tensor of "
                         "dimension %u", indices->ndim);
    if (indices->ndim == 2 && offsets)
        return cfxi_fail(c, CFX_E_VALUE, "if input is 2D, then offsets has to be None, as input is "
                         "treated is a mini-batch of fixed length sequences");
    if (indices->ndim == 1 && (!offsets || offsets->ndim != 1))
        return cfxi_fail(c, CFX_E_VALUE, "offsets has to be a 1D Tensor");
    if (weight->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "weight has to be a 2D Tensor");
    if (!is_index(indices) || (offsets && !is_index(offsets)))
        return cfxi_fail(c, CFX_E_SHAPE, "expected indices and offsets of type Long or Int");
    const int64_t rows = weight->size[0];
    const int64_t padding = cfxi_rt_is_none(c, PADDING) ? 0 : cfxi_rt_int(c, PADDING);
    if (padding && !cfx_dim_is_symbol(rows) && (padding < -rows || padding >= rows))
        return cfxi_fail(c, CFX_E_SHAPE, "padding_idx must be within the number of embeddings, "
                         "%lld through %lld, but got %lld", (long long)-rows, (long long)rows - 1,
                         (long long)padding);
    return CFX_OK;
}

cfx_status cfxi_rule_embedding_bag(cfxi_call *c)
{
    const cfx_tensor *weight = cfxi_rt_tensor(c, WEIGHT);
    const cfx_tensor *indices = cfxi_rt_tensor(c, INDICES);
    const cfx_tensor *offsets = cfxi_rt_tensor(c, OFFSETS);
    int64_t mode = cfxi_rt_int(c, MODE);
    CFX_TRY(check_bags(c, weight, indices, offsets));
    if (mode < SUM || mode > MAX)
        return cfxi_fail(c, CFX_E_SHAPE, "mode has to be 0 (sum), 1 (mean) or 2 (max)");
    if (mode != SUM && cfxi_rt_tensor(c, SAMPLES))
        return cfxi_fail(c, CFX_E_SHAPE, "per_sample_weights only supported with mode='sum'");
    bool last = offsets && cfxi_rt_bool(c, LAST);
    if (last && offsets->size[0] == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "include_last_offset: number of offsets should be at "
                         "least 1");
    const int64_t listed = (offsets ? offsets : indices)->size[0];
    int64_t bags = last ? cfx_dim_sub(c->dims, listed, 1, c->err) : listed;
    int64_t count = indices->size[0];
    for (size_t d = 1; d < indices->ndim; d++)
        count = cfx_dim_mul(c->dims, count, indices->size[d], c->err);
    int64_t rows[] = {bags, weight->size[1]};
    int64_t none = 0;
    cfx_dtype index = indices->dtype == CFX_DTYPE_INT32 &&
                              (!offsets || offsets->dtype == CFX_DTYPE_INT32)
                          ? CFX_DTYPE_INT32
                          : CFX_DTYPE_INT64;
    const int64_t *sizes = mode == SUM ? &listed : &bags;
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)weight->dtype, rows, 2));
    CFX_TRY(cfxi_rt_result(c, 1, index, mode == SUM ? &none : &count, 1));
    CFX_TRY(cfxi_rt_result(c, 2, index, sizes, 1));
    return cfxi_rt_result(c, 3, index, mode == MAX ? rows : sizes, mode == MAX ? 2 : 1);
}

enum {
    BLOCK = 256,  /* columns that are added up together */
    AHEAD = 8     /* how many rows before one that is read another is fetched */
};

CFXI_ISA_CHOICE(cfxi_bag_sums, cfxi_index_bag_sums_of, cfxi_index_bag_sums)

typedef struct bags {
    cfxi_call *c;
    const cfxi_bag_sums *fast;
    const cfx_tensor *weight;
    const cfxi_index_table *table;  /* or NULL: `weight` has elements */
    const int64_t *indices;
    const int64_t *offsets;  /* or NULL: each bag has `length` */
    const double *samples;
    int64_t length;
    int64_t n;         /* bags */
    int64_t count;     /* of indices */
    int64_t mode;
    int64_t padding;   /* -1: none */
} bags;

static int64_t begin_of(const bags *b, int64_t bag)
{
    return b->offsets ? b->offsets[bag] : bag * b->length;
}

static int64_t end_of(const bags *b, int64_t bag)
{
    if (!b->offsets)
        return (bag + 1) * b->length;
    return bag + 1 == b->n && !cfxi_rt_bool(b->c, LAST) ? b->count : b->offsets[bag + 1];
}

static void put_index(cfx_tensor *t, int64_t at, int64_t value)
{
    cfxi_tensor_store_int((cfx_dtype)t->dtype, t->data + at * (int64_t)cfxi_tensor_itemsize(t),
                          value);
}

/* ---- one bag ------------------------------------------------------------------------------- */

/* Some columns of a bag. */
typedef struct piece {
    int64_t from, n;
    int64_t seen;  /* rows */
    double sum[BLOCK];
    int64_t where[BLOCK];
} piece;

static void take_greater(piece *p, int64_t k, double x, int64_t row)
{
    if (p->seen == 0 || x > p->sum[k]) {
        p->sum[k] = x;
        p->where[k] = row;
    }
}

__attribute__((always_inline)) static inline void fetch(const bags *b, int64_t row)
{
    if (b->table)
        b->table->fetch(b->table->table, row);
    else
        cfxi_index_fetch(b->weight, row);
}

/* Float32 need not ask for the type of each element. */
static bool has_float_rows(const cfx_tensor *w)
{
    return w->dtype == CFX_DTYPE_FLOAT32 && w->stride[1] == sizeof(float);
}

/* Those of a row. */
static void add_row(const bags *b, int64_t i, piece *p)
{
    float room[BLOCK];
    const cfx_tensor *w = b->weight;
    const int64_t at = b->indices[i];
    const char *row = b->table ? NULL : w->data + at * w->stride[0] + p->from * w->stride[1];
    const bool floats = b->table || has_float_rows(w);
    const float *x = b->table ? room : (const float *)(const void *)row;
    const double by = b->samples ? b->samples[i] : 1;
    if (b->table)
        b->table->row(b->table->table, at, p->from, p->n, room);
    if (b->table && b->mode != MAX) {
        b->fast->add(p->sum, by, x, p->n);
        return;
    }
    for (int64_t k = 0; k < p->n; k++) {
        const double v = floats ? (double)x[k] : cfxi_tensor_load_float((cfx_dtype)w->dtype,
                                                                        row + k * w->stride[1]);
        if (b->mode == MAX)
            take_greater(p, k, v, at);
        else
            p->sum[k] += by * v;
    }
}

static void store_piece(const bags *b, int64_t bag, const piece *p)
{
    cfx_tensor *out = cfxi_rt_result_at(b->c, 0);
    for (int64_t k = 0; k < p->n; k++) {
        const int64_t at = bag * b->weight->size[1] + p->from + k;
        const double x = b->mode == MEAN && p->seen ? p->sum[k] / (double)p->seen : p->sum[k];
        if (out->dtype == CFX_DTYPE_FLOAT32)
            ((float *)(void *)out->data)[at] = (float)x;
        else
            cfxi_tensor_store_float((cfx_dtype)out->dtype,
                                    out->data + at * (int64_t)cfxi_tensor_itemsize(out), x);
        if (b->mode == MAX && !b->table)
            put_index(cfxi_rt_result_at(b->c, 3), at, p->where[k]);
    }
}

/* Rows that are added where they are. */
static void add_rows(const bags *b, int64_t bag, int64_t all, piece *p)
{
    const int64_t begin = begin_of(b, bag), end = end_of(b, bag);
    const cfxi_bag_rows rows = {
        .table = b->weight->data + p->from * b->weight->stride[1], .stride = b->weight->stride[0],
        .indices = b->indices + begin, .n = end - begin, .known = all - begin,
        .samples = b->samples ? b->samples + begin : NULL, .padding = b->padding};
    b->fast->rows(&rows, p->n, p->sum);
    p->seen = rows.n;
    for (int64_t i = begin; b->padding >= 0 && i < end; i++)
        p->seen -= b->indices[i] == b->padding;
    store_piece(b, bag, p);
}

/* Some columns of a bag; `all`: where the last one ends. */
static void add_piece(const bags *b, int64_t bag, int64_t all, piece *p)
{
    if (!b->table && b->mode != MAX && has_float_rows(b->weight)) {
        add_rows(b, bag, all, p);
        return;
    }
    p->seen = 0;
    memset(p->sum, 0, (size_t)p->n * sizeof *p->sum);
    memset(p->where, 0, (size_t)p->n * sizeof *p->where);
    for (int64_t i = begin_of(b, bag), end = end_of(b, bag); i < end; i++) {
        if (p->from == 0 && i + AHEAD < all)
            fetch(b, b->indices[i + AHEAD]);
        if (b->indices[i] == b->padding)
            continue;
        add_row(b, i, p);
        p->seen++;
    }
    store_piece(b, bag, p);
}

static void add_bags(void *ctx, int64_t first, int64_t last)
{
    const bags *b = ctx;
    const int64_t width = b->weight->size[1], all = end_of(b, b->n - 1);
    piece p;
    for (int64_t bag = first; bag < last; bag++)
        for (p.from = 0; p.from < width; p.from += BLOCK) {
            p.n = width - p.from < BLOCK ? width - p.from : BLOCK;
            add_piece(b, bag, all, &p);
        }
}

/* ---- all of them --------------------------------------------------------------------------- */

static cfx_status check_contents(const bags *b)
{
    const int64_t rows = b->weight->size[0];
    for (int64_t bag = 0; bag < b->n; bag++) {
        const int64_t begin = begin_of(b, bag), end = end_of(b, bag);
        if (begin < 0 || end > b->count || begin > end || (bag == 0 && begin != 0))
            return cfxi_fail(b->c, CFX_E_SHAPE, "offsets must begin with 0, must not decrease, and "
                             "must not exceed the number of indices");
        for (int64_t i = begin; i < end; i++)
            if (b->indices[i] < 0 || b->indices[i] >= rows)
                return cfxi_fail(b->c, CFX_E_SHAPE, "Index %lld is out of bounds: the table has "
                                 "%lld rows", (long long)b->indices[i], (long long)rows);
    }
    return CFX_OK;
}

/* The results that serve gradients, but for the rows of maxima. */
static void put_bags(const bags *b)
{
    for (size_t r = 2; r < 4; r++) {
        cfx_tensor *t = cfxi_rt_result_at(b->c, r);
        memset(t->data, 0, (size_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t));
    }
    for (int64_t bag = 0; bag < b->n && b->mode != SUM; bag++)
        for (int64_t i = begin_of(b, bag); i < end_of(b, bag); i++)
            put_index(cfxi_rt_result_at(b->c, 1), i, bag);
}

static cfx_status run_bags(bags *b)
{
    const int64_t each = b->n ? b->count / b->n + 1 : 1;
    CFX_TRY(check_contents(b));
    if (!b->table)
        put_bags(b);
    cfxi_rt_parallel(b->c->rt, b->n, 1 + 16384 / (each * (1 + b->weight->size[1])), add_bags, b);
    return CFX_OK;
}

cfx_status cfxi_index_bags(cfxi_call *c, const cfxi_index_table *table)
{
    const cfx_tensor *weight = cfxi_rt_tensor(c, WEIGHT);
    const cfx_tensor *samples = cfxi_rt_tensor(c, SAMPLES);
    const cfx_tensor *indices = cfxi_rt_tensor(c, INDICES);
    const cfx_tensor *offsets = cfxi_rt_tensor(c, OFFSETS);
    cfx_tensor *held[3] = {cfxi_rt_contiguous(c, indices, CFX_DTYPE_INT64),
                           offsets ? cfxi_rt_contiguous(c, offsets, CFX_DTYPE_INT64) : NULL,
                           samples ? cfxi_rt_contiguous(c, samples, CFX_DTYPE_FLOAT64) : NULL};
    cfx_status status = CFX_OK;
    if (!held[0] || (offsets && !held[1]) || (samples && !held[2]))
        status = cfxi_base_nomem(c->err);
    if (status == CFX_OK && samples && cfxi_tensor_numel(samples) != cfxi_tensor_numel(indices))
        status = cfxi_fail(c, CFX_E_SHAPE, "per_sample_weights must have the shape of the indices");
    if (status == CFX_OK) {
        int64_t padding = cfxi_rt_is_none(c, PADDING) ? -1 : cfxi_rt_int(c, PADDING);
        if (padding < 0 && !cfxi_rt_is_none(c, PADDING))
            padding += weight->size[0];
        bags b = {.c = c, .weight = weight, .table = table,
                  .fast = cfxi_index_bag_sums_of(c->rt->reference ? CFX_ISA_PLAIN : c->rt->isa),
                  .indices = (const int64_t *)held[0]->data,
                  .offsets = offsets ? (const int64_t *)held[1]->data : NULL,
                  .length = indices->ndim == 2 ? indices->size[1] : 0,
                  .n = cfxi_rt_result_at(c, 0)->size[0],
                  .count = cfxi_tensor_numel(indices), .padding = padding,
                  .samples = samples ? (const double *)held[2]->data : NULL,
                  .mode = cfxi_rt_int(c, MODE)};
        status = run_bags(&b);
    }
    for (size_t i = 0; i < 3; i++)
        cfx_tensor_release(held[i]);
    return status;
}

cfx_status cfxi_kernel_embedding_bag(cfxi_call *c) { return cfxi_index_bags(c, NULL); }
