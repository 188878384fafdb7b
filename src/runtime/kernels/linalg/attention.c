/* attention.c - scaled_dot_product_attention: softmax(scale Q K^T + mask) V.
 *
 * The fast way goes over blocks of rows of Q and blocks of keys, and keeps for each row the
 * greatest score so far and the sum of exponentials below it; when a greater score comes, what was
 * summed is scaled down. So a row needs memory for one block of keys, however many there are. The
 * plain way, in double, is the reference, and what float64 takes.
 */
#include "product_impl.h"
#include "runtime/kernels/elementwise/blocks.h"

#include <math.h>

enum { QUERY_BLOCK = 128, KEY_BLOCK = 512 };

typedef struct attention {
    cfx_runtime *rt;
    const cfx_tensor *q, *k, *v;
    const cfx_tensor *mask;  /* may be NULL; bool or a float type */
    cfx_tensor *out;
    size_t batch_dims;
    int64_t queries, keys, size, value_size;
    double scale;
    bool causal;
    double drop;         /* the probability that a weight becomes 0; the others grow by as much */
    cfxi_random random;  /* one number for each weight */
    int64_t blocks;      /* of queries */
    int64_t block;
    cfxi_block_fn *exp;
    atomic_bool no_memory;
} attention;

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

/* Where batch number `index` of `t` begins; heads of `t` may serve several of out's. */
static char *batch_at(const attention *a, const cfx_tensor *t, int64_t index)
{
    char *at = t->data;
    const size_t own = (size_t)t->ndim - 2;
    for (size_t d = a->batch_dims; d-- > 0;) {
        int64_t i = index % a->out->size[d];
        index /= a->out->size[d];
        if (d + own < a->batch_dims)
            continue;
        size_t from = d + own - a->batch_dims;
        int64_t size = t->size[from];
        if (size > 1)
            at += i / (a->out->size[d] / size) * t->stride[from];
    }
    return at;
}

static int64_t row_stride(const cfx_tensor *t) { return t->stride[t->ndim - 2]; }
static int64_t column_stride(const cfx_tensor *t) { return t->stride[t->ndim - 1]; }

/* Keys [first, first + n) of query `row`: adds the mask to its scores. */
#define MASK_ROW(name, type)                                                                       \
    static void name(const attention *a, const char *mask, type *scores, int64_t row,              \
                     int64_t first, int64_t n)                                                     \
    {                                                                                              \
        if (mask) {                                                                                \
            const cfx_tensor *m = a->mask;                                                         \
            int64_t step = m->size[m->ndim - 1] == 1 ? 0 : column_stride(m);                       \
            const char *at = mask + (m->size[m->ndim - 2] == 1 ? 0 : row * row_stride(m)) +        \
                             first * step;                                                         \
            if (m->dtype == CFX_DTYPE_BOOL)                                                        \
                for (int64_t i = 0; i < n; i++)                                                    \
                    scores[i] = at[i * step] ? scores[i] : (type)-INFINITY;                        \
            else if (m->dtype == CFX_DTYPE_FLOAT32)                                                \
                for (int64_t i = 0; i < n; i++)                                                    \
                    scores[i] += (type)*(const float *)(at + i * step);                            \
            else                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                    \
                    scores[i] += (type)cfxi_tensor_load_float((cfx_dtype)m->dtype, at + i * step); \
        }                                                                                          \
        for (int64_t i = row + 1 > first ? row + 1 - first : 0; a->causal && i < n; i++)           \
            scores[i] = (type)-INFINITY;                                                           \
    }
MASK_ROW(mask_floats, float)
MASK_ROW(mask_doubles, double)

/* What weight (row, key) of a batch is multiplied by. */
static double kept(const attention *a, int64_t index, int64_t row, int64_t key)
{
    const int64_t i = (index * a->queries + row) * a->keys + key;
    return cfxi_rt_random_uniform(a->random, i) >= a->drop ? 1 / (1 - a->drop) : 0;
}

/* ---- plain --------------------------------------------------------------------------------- */

static void plain_row(const attention *a, int64_t index, int64_t row, double *scores, double *sums)
{
    const cfx_dtype dtype = (cfx_dtype)a->q->dtype;
    const char *q = batch_at(a, a->q, index) + row * row_stride(a->q);
    const char *k = batch_at(a, a->k, index);
    const char *v = batch_at(a, a->v, index);
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
    mask_doubles(a, a->mask ? batch_at(a, a->mask, index) : NULL, scores, row, 0, a->keys);
    for (int64_t j = 0; j < a->keys; j++)
        most = scores[j] > most ? scores[j] : most;
    for (int64_t e = 0; e < a->value_size; e++)
        sums[e] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        double weight = scores[j] == -INFINITY ? 0 : exp(scores[j] - most);
        total += weight;
        if (a->drop > 0)
            weight *= kept(a, index, row, j);
        for (int64_t e = 0; e < a->value_size; e++)
            sums[e] += weight * cfxi_tensor_load_float(dtype, v + j * row_stride(a->v) +
                                                           e * column_stride(a->v));
    }
    char *out = batch_at(a, a->out, index) + row * row_stride(a->out);
    for (int64_t e = 0; e < a->value_size; e++)
        cfxi_tensor_store_float(dtype, out + e * column_stride(a->out),
                                total == 0 ? 0 : sums[e] / total);
}

static void plain_range(void *ctx, int64_t begin, int64_t end)
{
    attention *a = ctx;
    double *scores = cfxi_rt_scratch(a->rt, (size_t)(a->keys + a->value_size) * sizeof *scores);
    if (!scores) {
        atomic_store(&a->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        plain_row(a, i / a->queries, i % a->queries, scores, scores + a->keys);
    cfxi_rt_scratch_free(a->rt, scores);
}

/* ---- fast ---------------------------------------------------------------------------------- */

/* What is kept for the rows of a block of queries. */
typedef struct rows {
    float most[QUERY_BLOCK];
    float total[QUERY_BLOCK];
    float scores[];  /* QUERY_BLOCK x KEY_BLOCK */
} rows;

static float greatest(const float *x, int64_t n, float most)
{
    float m[8];
    int64_t i = 0;
    for (int l = 0; l < 8; l++)
        m[l] = most;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            m[l] = x[i + l] > m[l] ? x[i + l] : m[l];
    for (; i < n; i++)
        m[0] = x[i] > m[0] ? x[i] : m[0];
    for (int l = 1; l < 8; l++)
        m[0] = m[l] > m[0] ? m[l] : m[0];
    return m[0];
}

static float sum_of(const float *x, int64_t n)
{
    float s[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            s[l] += x[i + l];
    for (; i < n; i++)
        s[0] += x[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* Scores of a row become exponentials, relative to the greatest score so far; returns by what the
 * earlier sums must be multiplied. */
static float weigh(const attention *a, float *scores, int64_t n, float *most, float *total)
{
    const cfxi_scalars none = {{0}, {0}, {0}, NULL};
    const void *args[] = {scores};
    float now = greatest(scores, n, *most);
    float less = now == -INFINITY ? 0 : now;  /* all are masked: exp(-inf) is 0 */
    for (int64_t i = 0; i < n; i++)
        scores[i] -= less;
    a->exp(&none, n, args, scores);
    float earlier = *most == -INFINITY ? 0 : expf(*most - less);
    *total = *total * earlier + sum_of(scores, n);
    *most = now;
    return earlier;
}

/* Queries [first, first + n) by keys [key, key + keys). */
static cfx_status key_block(const attention *a, rows *r, int64_t index, int64_t first, int64_t n,
                            int64_t key, int64_t keys)
{
    const int64_t item = (int64_t)sizeof(float);
    const char *mask = a->mask ? batch_at(a, a->mask, index) : NULL;
    char *out = batch_at(a, a->out, index) + first * row_stride(a->out);
    const cfxi_gemm score = {
        .m = n, .n = keys, .k = a->size, .alpha = a->scale,
        .a = batch_at(a, a->q, index) + first * row_stride(a->q),
        .a_row = row_stride(a->q) / item, .a_col = column_stride(a->q) / item,
        .b = batch_at(a, a->k, index) + key * row_stride(a->k),
        .b_row = column_stride(a->k) / item, .b_col = row_stride(a->k) / item,
        .c = r->scores, .c_row = KEY_BLOCK, .c_col = 1};
    CFX_TRY(cfxi_linalg_gemm_run(a->rt, CFX_DTYPE_FLOAT32, &score, NULL));
    for (int64_t i = 0; i < n; i++) {
        float *scores = r->scores + i * KEY_BLOCK;
        mask_floats(a, mask, scores, first + i, key, keys);
        float earlier = weigh(a, scores, keys, &r->most[i], &r->total[i]);
        for (int64_t j = 0; a->drop > 0 && j < keys; j++)
            scores[j] *= (float)kept(a, index, first + i, key + j);
        float *sums = (float *)(out + i * row_stride(a->out));
        for (int64_t e = 0; key > 0 && earlier != 1 && e < a->value_size; e++)
            sums[e * column_stride(a->out) / item] *= earlier;
    }
    const cfxi_gemm sum = {
        .m = n, .n = a->value_size, .k = keys, .alpha = 1, .beta = key > 0,
        .a = r->scores, .a_row = KEY_BLOCK, .a_col = 1,
        .b = batch_at(a, a->v, index) + key * row_stride(a->v),
        .b_row = row_stride(a->v) / item, .b_col = column_stride(a->v) / item,
        .c = out, .c_row = row_stride(a->out) / item, .c_col = column_stride(a->out) / item};
    return cfxi_linalg_gemm_run(a->rt, CFX_DTYPE_FLOAT32, &sum, NULL);
}

static cfx_status query_block(const attention *a, rows *r, int64_t index, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        r->most[i] = -INFINITY;
        r->total[i] = 0;
    }
    int64_t seen = a->causal && first + n < a->keys ? first + n : a->keys;
    for (int64_t key = 0; key < seen; key += KEY_BLOCK)
        CFX_TRY(key_block(a, r, index, first, n, key,
                          seen - key < KEY_BLOCK ? seen - key : KEY_BLOCK));
    char *out = batch_at(a, a->out, index) + first * row_stride(a->out);
    for (int64_t i = 0; i < n; i++, out += row_stride(a->out)) {
        float inverse = r->total[i] == 0 ? 0 : 1 / r->total[i];
        for (int64_t e = 0; e < a->value_size; e++) {
            float *at = (float *)(out + e * column_stride(a->out));
            *at = r->total[i] == 0 ? 0 : *at * inverse;
        }
    }
    return CFX_OK;
}

static void fast_range(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    attention *a = ctx;
    rows *r =
        cfxi_rt_worker_scratch(self, sizeof *r + QUERY_BLOCK * KEY_BLOCK * sizeof(float));
    cfx_status status = r ? CFX_OK : CFX_E_NOMEM;
    for (int64_t i = begin; status == CFX_OK && i < end; i++) {
        int64_t first = i % a->blocks * a->block;
        int64_t left = a->queries - first;
        status = query_block(a, r, i / a->blocks, first, left < a->block ? left : a->block);
    }
    if (status != CFX_OK) {
        atomic_store(&a->no_memory, true);
        cfxi_rt_worker_stop(self);
    }
}

/* ---- kernel -------------------------------------------------------------------------------- */

static cfx_status run(attention *a, cfxi_call *c)
{
    int64_t batches = 1;
    for (size_t d = 0; d < a->batch_dims; d++)
        batches *= a->out->size[d];
    if (cfxi_tensor_numel(a->out) == 0)
        return CFX_OK;
    if (a->drop > 0)
        a->random = cfxi_rt_random_reserve(a->rt, batches * a->queries * a->keys);
    if (a->rt->reference || a->out->dtype == CFX_DTYPE_FLOAT64) {
        cfxi_rt_parallel(a->rt, batches * a->queries, 16, plain_range, a);
    } else {
        a->blocks = (a->queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
        a->block = (a->queries + a->blocks - 1) / a->blocks;
        a->exp = cfxi_elementwise_block_of(a->rt, CFXI_FN_exp, CFXI_IN_F32);
        cfxi_rt_parallel_work(a->rt, batches * a->blocks, 1, fast_range, a);
    }
    return atomic_load(&a->no_memory) ? cfxi_base_nomem(c->err) : CFX_OK;
}

/* Whether the fast way can read it as it is. */
static bool is_float_matrix(const cfx_tensor *t)
{
    bool whole = t->dtype == CFX_DTYPE_FLOAT32;
    for (size_t d = 0; whole && d < t->ndim; d++)
        whole = t->stride[d] % (int64_t)sizeof(float) == 0;
    return whole;
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
        if (plain || is_float_matrix(args[i]))
            continue;
        args[i] = made[i] = cfxi_rt_contiguous(c, args[i], CFX_DTYPE_FLOAT32);
        status = made[i] ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK && !plain && out->dtype != CFX_DTYPE_FLOAT32) {
        made[3] = cfx_tensor_new(CFX_DTYPE_FLOAT32, out->size, out->ndim, c->rt->allocator, c->err);
        status = made[3] ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK) {
        const cfx_tensor *q = args[0];
        attention a = {.rt = c->rt,
                       .q = q,
                       .k = args[1],
                       .v = args[2],
                       .mask = cfxi_rt_tensor(c, 3),
                       .out = made[3] ? made[3] : out,
                       .batch_dims = (size_t)out->ndim - 2,
                       .causal = cfxi_rt_bool(c, 5),
                       .drop = cfxi_rt_float(c, 4)};
        a.queries = q->size[q->ndim - 2];
        a.size = q->size[q->ndim - 1];
        a.keys = args[1]->size[args[1]->ndim - 2];
        a.value_size = out->size[out->ndim - 1];
        a.scale = !cfxi_rt_is_none(c, 6) ? cfxi_rt_float(c, 6)
                  : a.size            ? 1 / sqrt((double)a.size) : 1;
        status = run(&a, c);
    }
    if (status == CFX_OK && made[3])
        status = cfxi_rt_copy(c->rt, out, made[3], c->err);
    for (size_t i = 0; i < 4; i++)
        cfx_tensor_release(made[i]);
    return status;
}
