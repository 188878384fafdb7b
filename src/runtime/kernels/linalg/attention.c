/* attention.c - scaled_dot_product_attention: softmax(scale Q K^T + mask) V.
 *
 * The plain way, in double, is the reference, and what float64 takes; attention_blocks.c has the
 * fast one.
 */
#include "attention_impl.h"
#include "product_impl.h"

#include <math.h>

/* ---- rule ---------------------------------------------------------------------------------- */

static cfx_status check_types(cfxi_call *c, const cfx_tensor *q, const cfx_tensor *k,
                              const cfx_tensor *v, const cfx_tensor *mask)
{
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected query, key, and value to have the same dtype, "
                         "but got %s, %s and %s", cfx_dtype_name((cfx_dtype)q->dtype),
                         cfx_dtype_name((cfx_dtype)k->dtype), cfx_dtype_name((cfx_dtype)v->dtype));
    if (!cfx_dtype_is_float((cfx_dtype)q->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "attention is not implemented for %s",
                         cfx_dtype_name((cfx_dtype)q->dtype));
    if (mask && mask->dtype != CFX_DTYPE_BOOL && mask->dtype != CFX_DTYPE_FLOAT32 &&
        mask->dtype != q->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected attn_mask dtype to be bool or float or to match "
                         "query dtype, but got %s and query %s",
                         cfx_dtype_name((cfx_dtype)mask->dtype),
                         cfx_dtype_name((cfx_dtype)q->dtype));
    return CFX_OK;
}

/* Heads of keys or values that serve several heads of queries count as theirs. */
static cfx_status repeat_heads(cfxi_call *c, const cfx_tensor *q, cfx_tensor *t)
{
    if (q->ndim < 3 || t->ndim < 3)
        return cfxi_fail(c, CFX_E_SHAPE, "grouped heads need tensors with a head dimension");
    int64_t heads = q->size[q->ndim - 3];
    int64_t *own = &t->size[t->ndim - 3];
    if (cfx_dim_is_symbol(heads) || cfx_dim_is_symbol(*own) || *own == 0 || heads % *own != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Number of heads in key and value must divide the number "
                         "of heads in query");
    *own = heads;
    return CFX_OK;
}

cfx_status cfxi_rule_attention(cfxi_call *c)
{
    cfx_tensor q = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor k = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    cfx_tensor v = cfxi_linalg_shown(cfxi_rt_tensor(c, 2));
    const cfx_tensor *mask = cfxi_rt_tensor(c, 3);
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(check_types(c, &q, &k, &v, mask));
    if (q.ndim < 2 || k.ndim < 2 || v.ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected query, key, and value to all be at least 2 "
                         "dimensional, but got %u, %u and %u dimensions", q.ndim, k.ndim, v.ndim);
    if (!(cfxi_rt_float(c, 4) >= 0 && cfxi_rt_float(c, 4) <= 1))
        return cfxi_fail(c, CFX_E_SHAPE, "dropout probability has to be between 0 and 1, but got "
                         "%g", cfxi_rt_float(c, 4));
    int64_t queries = q.size[q.ndim - 2];
    int64_t keys = k.size[k.ndim - 2];
    int64_t value_size = v.size[v.ndim - 1];
    if (!cfxi_rt_same_size(c, q.size[q.ndim - 1], k.size[k.ndim - 1]))
        return cfxi_fail(c, CFX_E_SHAPE, "query and key differ in the size of their last "
                         "dimension");
    if (!cfxi_rt_same_size(c, keys, v.size[v.ndim - 2]))
        return cfxi_fail(c, CFX_E_SHAPE, "key and value differ in their sequence length");
    if (cfxi_rt_bool(c, 7)) {
        CFX_TRY(repeat_heads(c, &q, &k));
        CFX_TRY(repeat_heads(c, &q, &v));
    }
    bool like_query = q.ndim == 4 && k.ndim == 4 && q.size[3] == value_size && q.size[2] > 0;
    q.ndim = (uint8_t)(q.ndim - 2), k.ndim = (uint8_t)(k.ndim - 2), v.ndim = (uint8_t)(v.ndim - 2);
    const cfx_tensor *all[] = {&q, &k, &v};
    CFX_TRY(cfxi_rt_broadcast(c, all, 3, sizes, &ndim));
    for (size_t d = 0; like_query && d < ndim; d++)
        like_query = sizes[d] == q.size[d] && sizes[d] == k.size[d] && sizes[d] == v.size[d];
    sizes[ndim] = queries;
    if (mask) {
        if (mask->ndim < 2)
            return cfxi_fail(c, CFX_E_INDEX, "Dimension out of range: attn_mask needs two "
                             "dimensions or more");
        sizes[ndim + 1] = keys;
        for (size_t d = 0; d < mask->ndim; d++) {
            size_t at = ndim + 2 - mask->ndim + d;
            if (mask->ndim > ndim + 2 ||
                !cfxi_rt_broadcasts(c, mask->size[d], sizes[at]))
                return cfxi_fail(c, CFX_E_SHAPE, "attn_mask cannot be broadcast to the shape of "
                                 "the scores");
        }
    }
    sizes[ndim + 1] = value_size;
    if (like_query)
        return cfxi_rt_result_like(c, 0, (cfx_dtype)q.dtype, cfxi_rt_tensor(c, 0));
    return cfxi_rt_result(c, 0, (cfx_dtype)q.dtype, sizes, ndim + 2);
}

/* ---- places -------------------------------------------------------------------------------- */

static int64_t row_stride(const cfx_tensor *t) { return t->stride[t->ndim - 2]; }
static int64_t column_stride(const cfx_tensor *t) { return t->stride[t->ndim - 1]; }

/* Adds the mask of query `row` to its scores. */
static void mask_scores(const cfxi_attention *a, const char *mask, double *scores, int64_t row)
{
    const cfx_tensor *m = a->mask;
    if (mask) {
        const int64_t step = m->size[m->ndim - 1] == 1 ? 0 : column_stride(m);
        const char *at = mask + (m->size[m->ndim - 2] == 1 ? 0 : row * row_stride(m));
        for (int64_t i = 0; i < a->keys; i++, at += step) {
            if (m->dtype != CFX_DTYPE_BOOL)
                scores[i] += cfxi_tensor_load_float((cfx_dtype)m->dtype, at);
            else if (!*at)
                scores[i] = -INFINITY;
        }
    }
    for (int64_t i = row + 1; a->causal && i < a->keys; i++)
        scores[i] = -INFINITY;
}

/* ---- plain --------------------------------------------------------------------------------- */

static void plain_row(const cfxi_attention *a, int64_t index, int64_t row, double *scores,
                      double *sums)
{
    const cfx_dtype dtype = (cfx_dtype)a->q->dtype;
    const char *q = cfxi_linalg_batch_at(a, a->q, index) + row * row_stride(a->q);
    const char *k = cfxi_linalg_batch_at(a, a->k, index);
    const char *v = cfxi_linalg_batch_at(a, a->v, index);
    double most = -INFINITY;
    double total = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        double sum = 0;
        for (int64_t e = 0; e < a->size; e++)
            sum +=
                cfxi_tensor_load_float(dtype, q + e * column_stride(a->q)) *
                cfxi_tensor_load_float(dtype, k + j * row_stride(a->k) + e * column_stride(a->k));
        scores[j] = sum * a->scale;
    }
    mask_scores(a, a->mask ? cfxi_linalg_batch_at(a, a->mask, index) : NULL, scores, row);
    for (int64_t j = 0; j < a->keys; j++)
        most = scores[j] > most ? scores[j] : most;
    for (int64_t e = 0; e < a->value_size; e++)
        sums[e] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        double weight = scores[j] == -INFINITY ? 0 : exp(scores[j] - most);
        total += weight;
        if (a->drop > 0)
            weight *= cfxi_linalg_kept(a, index, row, j);
        for (int64_t e = 0; e < a->value_size; e++)
            sums[e] += weight * cfxi_tensor_load_float(dtype, v + j * row_stride(a->v) +
                                                           e * column_stride(a->v));
    }
    char *out = cfxi_linalg_batch_at(a, a->out, index) + row * row_stride(a->out);
    for (int64_t e = 0; e < a->value_size; e++)
        cfxi_tensor_store_float(dtype, out + e * column_stride(a->out),
                                total == 0 ? a->unseen : sums[e] / total);
}

static void plain_range(void *ctx, int64_t begin, int64_t end)
{
    cfxi_attention *a = ctx;
    double *scores = cfxi_rt_scratch(a->rt, (size_t)(a->keys + a->value_size) * sizeof *scores);
    if (!scores) {
        atomic_store(&a->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        plain_row(a, i / a->queries, i % a->queries, scores, scores + a->keys);
    cfxi_rt_scratch_free(a->rt, scores);
}

/* ---- kernel -------------------------------------------------------------------------------- */

cfxi_attention cfxi_linalg_attention_of(cfx_runtime *rt, const cfx_tensor *q, const cfx_tensor *k,
                                        const cfx_tensor *v, const cfx_tensor *mask,
                                        cfx_tensor *out)
{
    cfxi_attention a = {.rt = rt, .q = q, .k = k, .v = v, .mask = mask, .out = out,
                        .batch_dims = (size_t)out->ndim - 2, .batches = 1};
    for (size_t d = 0; d < a.batch_dims; d++)
        a.batches *= out->size[d];
    a.queries = q->size[q->ndim - 2];
    a.size = q->size[q->ndim - 1];
    a.keys = k->size[k->ndim - 2];
    a.value_size = out->size[out->ndim - 1];
    a.scale = a.size ? 1 / sqrt((double)a.size) : 1;
    return a;
}

/* Whether the fast way can read it as it is. */
static bool has_float_rows(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_FLOAT32 && cfxi_tensor_has_whole_strides(t) &&
           (t->size[t->ndim - 1] <= 1 || column_stride(t) == (int64_t)sizeof(float));
}

cfx_status cfxi_linalg_attention_run(cfxi_attention *a, cfx_error *err)
{
    if (cfxi_tensor_numel(a->out) == 0)
        return CFX_OK;
    if (a->drop > 0)
        a->random = cfxi_rt_random_reserve(a->rt, a->batches * a->queries * a->keys);
    if (!a->rt->reference && has_float_rows(a->q) && has_float_rows(a->k) &&
        has_float_rows(a->v) && has_float_rows(a->out))
        cfxi_linalg_attention_blocks(a);
    else
        cfxi_rt_parallel(a->rt, a->batches * a->queries, 16, plain_range, a);
    return atomic_load(&a->no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

cfx_status cfxi_kernel_scaled_dot_product_attention(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    const bool plain = c->rt->reference || out->dtype == CFX_DTYPE_FLOAT64;
    const cfx_tensor *args[3];
    cfx_tensor *made[4] = {NULL};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < 3 && status == CFX_OK; i++) {
        args[i] = cfxi_rt_tensor(c, i);
        if (plain || has_float_rows(args[i]))
            continue;
        args[i] = made[i] = cfxi_rt_contiguous(c, args[i], CFX_DTYPE_FLOAT32);
        status = made[i] ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK && !plain && !has_float_rows(out)) {
        made[3] = cfx_tensor_new(CFX_DTYPE_FLOAT32, out->size, out->ndim, c->rt->allocator, c->err);
        status = made[3] ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK) {
        cfxi_attention a =
            cfxi_linalg_attention_of(c->rt, args[0], args[1], args[2], cfxi_rt_tensor(c, 3),
                                     made[3] ? made[3] : out);
        a.drop = cfxi_rt_float(c, 4);
        a.causal = cfxi_rt_bool(c, 5);
        if (!cfxi_rt_is_none(c, 6))
            a.scale = cfxi_rt_float(c, 6);
        status = cfxi_linalg_attention_run(&a, c->err);
    }
    if (status == CFX_OK && made[3])
        status = cfxi_rt_copy(c->rt, out, made[3], c->err);
    for (size_t i = 0; i < 4; i++)
        cfx_tensor_release(made[i]);
    return status;
}
