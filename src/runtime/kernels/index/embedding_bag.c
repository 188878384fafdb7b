/* embedding_bag.c - sums, means or maxima of rows of a table. */
#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

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

typedef struct bags {
    cfxi_call *c;
    const cfx_tensor *weight;
    const int64_t *indices;
    const int64_t *offsets;  /* or NULL: each bag has `length` */
    const double *samples;
    int64_t length;
    int64_t count;     /* of indices */
    int64_t mode;
    int64_t padding;   /* -1: none */
    double *sum;       /* one row */
    int64_t *where;
} bags;

static void put_index(cfx_tensor *t, int64_t at, int64_t value)
{
    cfxi_tensor_store_int((cfx_dtype)t->dtype, t->data + at * (int64_t)cfxi_tensor_itemsize(t),
                          value);
}

/* Sums of float32 need not ask for the type of each element. */
static bool has_floats(const bags *b)
{
    return b->mode != MAX && b->weight->dtype == CFX_DTYPE_FLOAT32 && b->weight->stride[1] == 4;
}

static void add_row(bags *b, int64_t i, int64_t seen)
{
    const cfx_tensor *w = b->weight;
    const char *row = w->data + b->indices[i] * w->stride[0];
    double by = b->samples ? b->samples[i] : 1;
    if (has_floats(b)) {
        const float *x = (const float *)(const void *)row;
        for (int64_t k = 0; k < w->size[1]; k++)
            b->sum[k] += by * (double)x[k];
        return;
    }
    for (int64_t k = 0; k < w->size[1]; k++) {
        double x = cfxi_tensor_load_float((cfx_dtype)w->dtype, row + k * w->stride[1]);
        if (b->mode != MAX) {
            b->sum[k] += by * x;
        } else if (seen == 0 || x > b->sum[k]) {
            b->sum[k] = x;
            b->where[k] = b->indices[i];
        }
    }
}

static cfx_status one_bag(bags *b, int64_t bag, int64_t begin, int64_t end)
{
    cfx_tensor *out = cfxi_rt_result_at(b->c, 0);
    int64_t width = b->weight->size[1];
    int64_t seen = 0;
    memset(b->sum, 0, (size_t)width * sizeof *b->sum);
    memset(b->where, 0, (size_t)width * sizeof *b->where);
    for (int64_t i = begin; i < end; i++) {
        if (b->indices[i] < 0 || b->indices[i] >= b->weight->size[0])
            return cfxi_fail(b->c, CFX_E_SHAPE, "Index %lld is out of bounds: the table has %lld "
                             "rows", (long long)b->indices[i], (long long)b->weight->size[0]);
        if (b->mode != SUM)
            put_index(cfxi_rt_result_at(b->c, 1), i, bag);
        if (b->indices[i] == b->padding)
            continue;
        add_row(b, i, seen++);
    }
    for (int64_t k = 0; k < width; k++) {
        const int64_t at = bag * width + k;
        double x = b->mode == MEAN && seen ? b->sum[k] / (double)seen : b->sum[k];
        if (out->dtype == CFX_DTYPE_FLOAT32)
            ((float *)(void *)out->data)[at] = (float)x;
        else
            cfxi_tensor_store_float((cfx_dtype)out->dtype,
                                    out->data + at * (int64_t)cfxi_tensor_itemsize(out), x);
        if (b->mode == MAX)
            put_index(cfxi_rt_result_at(b->c, 3), at, b->where[k]);
    }
    if (b->mode != SUM)
        put_index(cfxi_rt_result_at(b->c, 2), bag, seen);
    if (b->mode == MEAN)
        put_index(cfxi_rt_result_at(b->c, 3), bag, seen);
    return CFX_OK;
}

static cfx_status all_bags(bags *b, int64_t n)
{
    for (size_t r = 2; r < 4; r++) {
        cfx_tensor *t = cfxi_rt_result_at(b->c, r);
        memset(t->data, 0, (size_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t));
    }
    for (int64_t bag = 0; bag < n; bag++) {
        bool open = bag + 1 == n && !cfxi_rt_bool(b->c, LAST);
        int64_t begin = b->offsets ? b->offsets[bag] : bag * b->length;
        int64_t end = !b->offsets ? begin + b->length : open ? b->count : b->offsets[bag + 1];
        if (begin < 0 || end > b->count || begin > end || (bag == 0 && begin != 0))
            return cfxi_fail(b->c, CFX_E_SHAPE, "offsets must begin with 0, must not decrease, and "
                             "must not exceed the number of indices");
        CFX_TRY(one_bag(b, bag, begin, end));
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_embedding_bag(cfxi_call *c)
{
    const cfx_tensor *weight = cfxi_rt_tensor(c, WEIGHT);
    const cfx_tensor *samples = cfxi_rt_tensor(c, SAMPLES);
    const cfx_tensor *indices = cfxi_rt_tensor(c, INDICES);
    const cfx_tensor *offsets = cfxi_rt_tensor(c, OFFSETS);
    cfx_tensor *held[3] = {cfxi_rt_contiguous(c, indices, CFX_DTYPE_INT64),
                           offsets ? cfxi_rt_contiguous(c, offsets, CFX_DTYPE_INT64) : NULL,
                           samples ? cfxi_rt_contiguous(c, samples, CFX_DTYPE_FLOAT64) : NULL};
    size_t bytes;
    double *row = cfxi_base_mul_size((size_t)weight->size[1], 16, 0, &bytes)
                      ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    cfx_status status = CFX_OK;
    if (!held[0] || (offsets && !held[1]) || (samples && !held[2]) || !row)
        status = cfxi_base_nomem(c->err);
    if (status == CFX_OK && samples && cfxi_tensor_numel(samples) != cfxi_tensor_numel(indices))
        status = cfxi_fail(c, CFX_E_SHAPE, "per_sample_weights must have the shape of the indices");
    if (status == CFX_OK) {
        int64_t padding = cfxi_rt_is_none(c, PADDING) ? -1 : cfxi_rt_int(c, PADDING);
        if (padding < 0 && !cfxi_rt_is_none(c, PADDING))
            padding += weight->size[0];
        bags b = {.c = c, .weight = weight, .indices = (const int64_t *)held[0]->data,
                  .offsets = offsets ? (const int64_t *)held[1]->data : NULL,
                  .length = indices->ndim == 2 ? indices->size[1] : 0,
                  .count = cfxi_tensor_numel(indices), .padding = padding,
                  .samples = samples ? (const double *)held[2]->data : NULL,
                  .mode = cfxi_rt_int(c, MODE), .sum = row,
                  .where = (int64_t *)(row + weight->size[1])};
        status = all_bags(&b, cfxi_rt_result_at(c, 0)->size[0]);
    }
    cfxi_rt_scratch_free(c->rt, row);
    for (size_t i = 0; i < 3; i++)
        cfx_tensor_release(held[i]);
    return status;
}
