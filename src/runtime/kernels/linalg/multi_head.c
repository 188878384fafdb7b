/* multi_head.c - multi_head_attention_forward: projections, attention of each head, its weights.
 *
 * Sequences come first: query [L, N, E], key and value [S, N, ...], or without the batch. `bias_k`
 * and zeros are further keys that no mask covers.
 */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

#include <math.h>

enum {
    QUERY, KEY, VALUE, EMBED_DIM, NUM_HEADS, IN_WEIGHT, IN_BIAS, BIAS_K, BIAS_V, ADD_ZERO, DROPOUT,
    OUT_WEIGHT, OUT_BIAS, TRAINING, KEY_PADDING_MASK, NEED_WEIGHTS, ATTN_MASK, SEPARATE, Q_WEIGHT,
    K_WEIGHT, V_WEIGHT, STATIC_K, STATIC_V, AVERAGE, IS_CAUSAL
};

typedef struct heads {
    cfxi_call *c;
    cfx_dtype dtype;  /* float32 or float64: what is computed in */
    size_t size;
    int64_t queries, keys, more, batch, heads, embed;  /* more: keys and those that are added */
    cfx_tensor *q, *k, *v;  /* [L, N, E], [more, N, E], contiguous */
    cfx_tensor *scores;     /* [N, H, L, more] */
    double drop;            /* the probability that a weight becomes 0 */
    cfxi_random random;     /* one number for each */
} heads;

/* ---- rule ---------------------------------------------------------------------------------- */

static cfx_status check_masks(cfxi_call *c, int64_t queries, int64_t keys, int64_t batch,
                              int64_t count)
{
    const cfx_tensor *mask = cfxi_rt_tensor(c, ATTN_MASK);
    const cfx_tensor *padding = cfxi_rt_tensor(c, KEY_PADDING_MASK);
    const cfx_tensor *both[] = {mask, padding};
    for (size_t i = 0; i < 2; i++)
        if (both[i] && both[i]->dtype != CFX_DTYPE_BOOL &&
            !cfx_dtype_is_float((cfx_dtype)both[i]->dtype))
            return cfxi_fail(c, CFX_E_SHAPE, "only bool and floating types of masks are supported");
    if (mask &&
        ((mask->ndim != 2 && mask->ndim != 3) ||
         !cfxi_rt_same_size(c, mask->size[mask->ndim - 2], queries) ||
         !cfxi_rt_same_size(c, mask->size[mask->ndim - 1], keys) ||
         (mask->ndim == 3 &&
          !cfxi_rt_same_size(c, mask->size[0], cfx_dim_mul(c->dims, batch, count, c->err)))))
        return cfxi_fail(c, CFX_E_SHAPE, "attn_mask does not have the shape of the scores");
    bool batched = cfxi_rt_tensor(c, QUERY)->ndim == 3;
    if (padding && (padding->ndim != (batched ? 2 : 1) ||
                    !cfxi_rt_same_size(c, padding->size[padding->ndim - 1], keys) ||
                    (batched && !cfxi_rt_same_size(c, padding->size[0], batch))))
        return cfxi_fail(c, CFX_E_SHAPE, "key_padding_mask does not match key in batch size or "
                         "sequence length");
    if (cfxi_rt_bool(c, IS_CAUSAL) && !mask)
        return cfxi_fail(c, CFX_E_SHAPE, "Need attn_mask if specifying the is_causal hint.");
    return CFX_OK;
}

static cfx_status check_weights(cfxi_call *c, int64_t embed)
{
    static const uint8_t separate[] = {Q_WEIGHT, K_WEIGHT, V_WEIGHT};
    const cfx_tensor *x = cfxi_rt_tensor(c, QUERY);
    const cfx_tensor *in = cfxi_rt_tensor(c, IN_WEIGHT);
    const cfx_tensor *out = cfxi_rt_tensor(c, OUT_WEIGHT);
    int64_t three = cfx_dim_mul(c->dims, embed, 3, c->err);
    bool fits =
        out->ndim == 2 && cfxi_rt_same_size(c, out->size[1], embed) && out->dtype == x->dtype;
    if (cfxi_rt_bool(c, SEPARATE)) {
        for (size_t i = 0; i < 3; i++) {
            const cfx_tensor *w = cfxi_rt_tensor(c, separate[i]);
            const cfx_tensor *from = cfxi_rt_tensor(c, QUERY + i);
            fits = fits && w && w->ndim == 2 && cfxi_rt_same_size(c, w->size[0], embed) &&
                   cfxi_rt_same_size(c, w->size[1], from->size[from->ndim - 1]) &&
                   w->dtype == x->dtype;
        }
    } else {
        fits = fits && in && in->ndim == 2 && cfxi_rt_same_size(c, in->size[0], three) &&
               in->dtype == x->dtype;
        for (size_t i = 0; fits && i < 3; i++) {
            const cfx_tensor *from = cfxi_rt_tensor(c, QUERY + i);
            fits = cfxi_rt_same_size(c, in->size[1], from->size[from->ndim - 1]);
        }
    }
    const cfx_tensor *bias = cfxi_rt_tensor(c, IN_BIAS);
    const cfx_tensor *last = cfxi_rt_tensor(c, OUT_BIAS);
    if (bias)
        fits = fits && bias->ndim == 1 && cfxi_rt_same_size(c, bias->size[0], three);
    if (last)
        fits = fits && last->ndim == 1 && cfxi_rt_same_size(c, last->size[0], out->size[0]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the projection weights do not match query, key and value "
                         "in size or dtype");
    return CFX_OK;
}

cfx_status cfxi_rule_multi_head(cfxi_call *c)
{
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    const cfx_tensor *k = cfxi_rt_tensor(c, KEY);
    const cfx_tensor *v = cfxi_rt_tensor(c, VALUE);
    int64_t count, sizes[CFX_MAX_DIMS];
    CFX_TRY(cfxi_rt_number(c, NUM_HEADS, &count));
    if ((q->ndim != 2 && q->ndim != 3) || k->ndim != q->ndim || v->ndim != q->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "query, key and value should be unbatched 2D or batched "
                         "3D tensors");
    int64_t embed = q->size[q->ndim - 1];
    int64_t batch = q->ndim == 3 ? q->size[1] : 1;
    if (count < 1 || (!cfx_dim_is_symbol(embed) &&
                      (embed % count != 0 || (embed == 0 && count > INT16_MAX))))
        return cfxi_fail(c, CFX_E_SHAPE, "embed_dim must be divisible by num_heads");
    if (!cfxi_rt_same_size(c, k->size[0], v->size[0]) ||
        (q->ndim == 3 && (!cfxi_rt_same_size(c, k->size[1], batch) ||
                          !cfxi_rt_same_size(c, v->size[1], batch))))
        return cfxi_fail(c, CFX_E_SHAPE, "key and value do not match in sequence length or batch "
                         "size");
    if (!cfx_dtype_is_float((cfx_dtype)q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "query, key and value must have the same floating-point "
                         "dtype");
    if (!cfxi_rt_tensor(c, BIAS_K) != !cfxi_rt_tensor(c, BIAS_V))
        return cfxi_fail(c, CFX_E_SHAPE, "bias_k and bias_v must be given together");
    if (cfxi_rt_tensor(c, STATIC_K) || cfxi_rt_tensor(c, STATIC_V))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "static_k and static_v are not supported");
    if (!(cfxi_rt_float(c, DROPOUT) >= 0 && cfxi_rt_float(c, DROPOUT) <= 1))
        return cfxi_fail(c, CFX_E_SHAPE, "dropout probability has to be between 0 and 1, but got "
                         "%g", cfxi_rt_float(c, DROPOUT));
    CFX_TRY(check_weights(c, embed));
    CFX_TRY(check_masks(c, q->size[0], k->size[0], batch, count));
    memcpy(sizes, q->size, sizeof sizes);
    sizes[q->ndim - 1] = cfxi_rt_tensor(c, OUT_WEIGHT)->size[0];
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)q->dtype, sizes, q->ndim));
    cfxi_rt_result_datum(c, 1, cfx_datum_none());
    if (!cfxi_rt_bool(c, NEED_WEIGHTS))
        return CFX_OK;
    size_t n = 0;
    if (q->ndim == 3)
        sizes[n++] = batch;
    if (!cfxi_rt_bool(c, AVERAGE))
        sizes[n++] = count;
    sizes[n++] = q->size[0];
    int64_t added = (cfxi_rt_tensor(c, BIAS_K) != NULL) + cfxi_rt_bool(c, ADD_ZERO);
    sizes[n++] = cfx_dim_add(c->dims, k->size[0], added, c->err);
    return cfxi_rt_result(c, 1, (cfx_dtype)q->dtype, sizes, n);
}

/* ---- projections --------------------------------------------------------------------------- */

/* out [rows, columns] = x [rows, k] w^T + bias, where w and bias are shown from row `first`. */
static cfx_status project(heads *h, cfx_tensor *out, const cfx_tensor *x, const cfx_tensor *w,
                          const cfx_tensor *bias, int64_t first)
{
    cfx_tensor weight = cfxi_linalg_shown(w);
    cfx_tensor rows = cfxi_linalg_shown(x);
    cfx_tensor to = cfxi_linalg_shown(out);
    int64_t columns = out->size[out->ndim - 1];
    cfxi_factors f = {.alpha = {1, 0}};
    weight.data += first * w->stride[0];
    weight.size[0] = w->size[1], weight.stride[0] = w->stride[1];
    weight.size[1] = columns, weight.stride[1] = w->stride[0];
    if (bias) {
        cfx_tensor part = cfxi_linalg_shown(bias);
        part.data += first * bias->stride[0];
        part.size[0] = columns;
        CFX_TRY(cfxi_rt_copy(h->c->rt, out, &part, h->c->err));
        f.beta[0] = 1;
    }
    return cfxi_linalg_product(h->c, &to, &rows, &weight, &f);
}

/* [rows, N, E] of which the first are the projection of argument `arg`, then the bias' row, then
 * zeros. */
static cfx_tensor *projected(heads *h, size_t arg, int64_t rows, const cfx_tensor *extra)
{
    cfxi_call *c = h->c;
    const int64_t sizes[] = {rows, h->batch, h->embed};
    bool separate = cfxi_rt_bool(c, SEPARATE);
    cfx_tensor x = cfxi_linalg_shown(cfxi_rt_tensor(c, arg));
    cfx_tensor *t = cfx_tensor_new(h->dtype, sizes, 3, c->rt->allocator, c->err);
    if (!t)
        return NULL;
    if (cfxi_tensor_numel(t) > 0)
        memset(t->data, 0, (size_t)cfxi_tensor_numel(t) * h->size);
    if (x.ndim == 2)
        cfxi_linalg_unsqueeze(&x, 1);
    cfx_tensor part = cfxi_linalg_shown(t);
    part.size[0] = x.size[0];
    cfx_tensor bias =
        cfxi_linalg_shown(cfxi_rt_tensor(c, IN_BIAS) ? cfxi_rt_tensor(c, IN_BIAS) : t);
    if (cfxi_rt_tensor(c, IN_BIAS))
        bias.data += (int64_t)(arg - QUERY) * h->embed * bias.stride[0];
    cfx_tensor w =
        cfxi_linalg_shown(cfxi_rt_tensor(c, separate ? Q_WEIGHT + (arg - QUERY) : IN_WEIGHT));
    if (!separate)
        w.data += (int64_t)(arg - QUERY) * h->embed * w.stride[0];
    cfx_status status = project(h, &part, &x, &w, cfxi_rt_tensor(c, IN_BIAS) ? &bias : NULL, 0);
    if (status == CFX_OK && extra) {
        part.data += x.size[0] * part.stride[0];
        part.size[0] = 1;
        status = cfxi_rt_copy(c->rt, &part, extra, c->err);
    }
    if (status == CFX_OK)
        return t;
    cfx_tensor_release(t);
    return NULL;
}

/* ---- heads --------------------------------------------------------------------------------- */

/* [N, H, length, E / H] of a tensor [length, N, E]. */
static cfx_tensor by_heads(const heads *h, const cfx_tensor *t)
{
    cfx_tensor v = cfxi_linalg_shown(t);
    int64_t item = (int64_t)h->size;
    int64_t width = h->embed / h->heads;
    v.ndim = 4;
    v.size[0] = h->batch, v.stride[0] = h->embed * item;
    v.size[1] = h->heads, v.stride[1] = width * item;
    v.size[2] = t->size[0], v.stride[2] = h->batch * h->embed * item;
    v.size[3] = width, v.stride[3] = item;
    return v;
}

static double mask_at(const cfx_tensor *mask, const char *at)
{
    if (mask->dtype == CFX_DTYPE_BOOL)
        return *at ? -INFINITY : 0;
    return cfxi_tensor_load_float((cfx_dtype)mask->dtype, at);
}

/* What the masks add to score (n, head, i, j). */
static double masked(const heads *h, int64_t n, int64_t head, int64_t i, int64_t j)
{
    const cfx_tensor *mask = cfxi_rt_tensor(h->c, ATTN_MASK);
    const cfx_tensor *padding = cfxi_rt_tensor(h->c, KEY_PADDING_MASK);
    double sum = 0;
    if (j >= h->keys)
        return 0;
    if (mask) {
        size_t d = (size_t)mask->ndim - 2;
        int64_t first = mask->ndim == 3 ? (n * h->heads + head) * mask->stride[0] : 0;
        sum += mask_at(mask, mask->data + first + i * mask->stride[d] + j * mask->stride[d + 1]);
    }
    if (padding) {
        int64_t first = padding->ndim == 2 ? n * padding->stride[0] : 0;
        sum += mask_at(padding, padding->data + first + j * padding->stride[padding->ndim - 1]);
    }
    return sum;
}

/* A row of scores becomes weights. If all are masked they are NaN where PyTorch's softmax shows,
 * and 0 where its attention hides them. */
static void softmax_row(const heads *h, int64_t n, int64_t head, int64_t i, char *row)
{
    const bool is_masked =
        cfxi_rt_tensor(h->c, ATTN_MASK) || cfxi_rt_tensor(h->c, KEY_PADDING_MASK);
    const int64_t number = ((n * h->heads + head) * h->queries + i) * h->more;
    double most = -INFINITY;
    double total = 0;
    for (int64_t j = 0; j < h->more; j++) {
        char *at = row + j * (int64_t)h->size;
        double x =
            cfxi_tensor_load_float(h->dtype, at) + (is_masked ? masked(h, n, head, i, j) : 0);
        cfxi_tensor_store_float(h->dtype, at, x);
        most = x > most ? x : most;
    }
    for (int64_t j = 0; j < h->more; j++) {
        char *at = row + j * (int64_t)h->size;
        double x = cfxi_tensor_load_float(h->dtype, at);
        x = x == -INFINITY ? 0 : exp(x - most);
        cfxi_tensor_store_float(h->dtype, at, x);
        total += x;
    }
    for (int64_t j = 0; j < h->more; j++) {
        char *at = row + j * (int64_t)h->size;
        double x = total == 0 ? (cfxi_rt_bool(h->c, NEED_WEIGHTS) ? NAN : 0)
                              : cfxi_tensor_load_float(h->dtype, at) / total;
        if (h->drop > 0)
            x *= cfxi_rt_random_uniform(h->random, number + j) >= h->drop ? 1 / (1 - h->drop) : 0;
        cfxi_tensor_store_float(h->dtype, at, x);
    }
}

static void softmax_rows(void *ctx, int64_t begin, int64_t end)
{
    const heads *h = ctx;
    for (int64_t r = begin; r < end; r++)
        softmax_row(h, r / h->queries / h->heads, r / h->queries % h->heads, r % h->queries,
                    h->scores->data + r * h->more * (int64_t)h->size);
}

/* The result's weights: of each head, or their mean. */
static cfx_status give_weights(const heads *h)
{
    cfxi_call *c = h->c;
    cfx_tensor *out = cfxi_rt_result_at(c, 1);
    if (!cfxi_rt_bool(c, AVERAGE)) {
        cfx_tensor to = cfxi_linalg_shown(out);
        if (to.ndim == 3)
            cfxi_linalg_unsqueeze(&to, 0);
        return cfxi_rt_copy(c->rt, &to, h->scores, c->err);
    }
    const int64_t plane = h->queries * h->more;
    for (int64_t i = 0; i < h->batch * plane; i++) {
        double sum = 0;
        for (int64_t head = 0; head < h->heads; head++)
            sum += cfxi_tensor_load_float(h->dtype, h->scores->data +
                                          ((i / plane * h->heads + head) * plane + i % plane) *
                                       (int64_t)h->size);
        cfxi_tensor_store_float((cfx_dtype)out->dtype,
                                out->data + i * (int64_t)cfxi_tensor_itemsize(out),
                                sum / (double)h->heads);
    }
    return CFX_OK;
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* q becomes what the heads give, and the result its projection. */
static cfx_status attend(heads *h)
{
    cfxi_call *c = h->c;
    cfx_tensor q = by_heads(h, h->q);
    cfx_tensor k = by_heads(h, h->k);
    cfx_tensor v = by_heads(h, h->v);
    const cfxi_factors scale = {.alpha = {1 / sqrt((double)q.size[3]), 0}};
    const cfxi_factors one = {.alpha = {1, 0}};
    int64_t size = k.size[2];
    int64_t stride = k.stride[2];
    k.size[2] = k.size[3], k.stride[2] = k.stride[3];
    k.size[3] = size, k.stride[3] = stride;
    CFX_TRY(cfxi_linalg_product(c, h->scores, &q, &k, &scale));
    if (h->drop > 0)
        h->random = cfxi_rt_random_reserve(c->rt, cfxi_tensor_numel(h->scores));
    cfxi_rt_parallel(c->rt, h->batch * h->heads * h->queries, 64, softmax_rows, h);
    CFX_TRY(cfxi_linalg_product(c, &q, h->scores, &v, &one));
    if (cfxi_rt_bool(c, NEED_WEIGHTS))
        CFX_TRY(give_weights(h));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    if (out.ndim == 2)
        cfxi_linalg_unsqueeze(&out, 1);
    return project(h, &out, h->q, cfxi_rt_tensor(c, OUT_WEIGHT), cfxi_rt_tensor(c, OUT_BIAS), 0);
}

cfx_status cfxi_kernel_multi_head_attention_forward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, QUERY);
    const cfx_tensor *bias_k = cfxi_rt_tensor(c, BIAS_K);
    heads h = {.c = c, .queries = x->size[0], .keys = cfxi_rt_tensor(c, KEY)->size[0],
               .batch = x->ndim == 3 ? x->size[1] : 1, .heads = cfxi_rt_int(c, NUM_HEADS),
               .embed = x->size[x->ndim - 1],
               .drop = cfxi_rt_bool(c, TRAINING) ? cfxi_rt_float(c, DROPOUT) : 0};
    h.dtype = x->dtype == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
    h.size = cfx_dtype_size(h.dtype);
    h.more = h.keys + (bias_k != NULL) + cfxi_rt_bool(c, ADD_ZERO);
    const int64_t sizes[] = {h.batch, h.heads, h.queries, h.more};
    h.q = projected(&h, QUERY, h.queries, NULL);
    h.k = h.q ? projected(&h, KEY, h.more, bias_k) : NULL;
    h.v = h.k ? projected(&h, VALUE, h.more, cfxi_rt_tensor(c, BIAS_V)) : NULL;
    h.scores = h.v ? cfx_tensor_new(h.dtype, sizes, 4, c->rt->allocator, c->err) : NULL;
    cfx_status status = h.scores ? attend(&h) : c->err->status;
    cfx_tensor_release(h.scores);
    cfx_tensor_release(h.v);
    cfx_tensor_release(h.k);
    cfx_tensor_release(h.q);
    return status;
}
