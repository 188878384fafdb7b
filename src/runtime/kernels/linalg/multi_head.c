/* multi_head.c - multi_head_attention_forward: projections, attention of each head, its weights.
 *
 * Sequences come first: query [L, N, E], key and value [S, N, ...], or without the batch. `bias_k`
 * and zeros are further keys that no mask covers. Unless the weights are a result, attention.c does
 * the work between the projections, and no matrix of scores is made.
 */
#include "attention_impl.h"
#include "multi_head_impl.h"
#include "product_impl.h"

#include "runtime/kernels/reduce/float_rows.h"

#include <math.h>

typedef struct heads {
    cfxi_call *c;
    cfx_dtype dtype;  /* float32 or float64: what is computed in */
    int64_t item;     /* bytes of it */
    int64_t queries, keys, more, batch, heads, embed;  /* more: keys and those that are added */
    cfx_tensor *q, *k, *v;  /* [L, N, E], [more, N, E]: rows of E side by side; or all three in q */
    cfx_tensor *mask;       /* is added to scores: [N, H, L, more], 1 where all have the same */
    cfx_tensor *sums;       /* what the heads give: [L, N, E] */
    cfx_tensor *weights;    /* [N, H, L, more], if they are asked for */
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
    if (c->planner && cfxi_linalg_multi_head_has_parts(c))
        return cfxi_linalg_multi_head_parts(c);
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
    const int64_t columns = out->size[out->ndim - 1];
    cfxi_factors f = {.alpha = {1, 0}};
    weight.data += first * w->stride[0];
    weight.size[0] = w->size[1], weight.stride[0] = w->stride[1];
    weight.size[1] = columns, weight.stride[1] = w->stride[0];
    cfx_tensor part = cfxi_linalg_shown(bias ? bias : w);
    if (bias) {
        part.data += first * bias->stride[0];
        part.size[0] = columns;
        if (bias->stride[0] == (int64_t)cfxi_tensor_itemsize(bias) && bias->dtype == out->dtype) {
            f.bias = &part;
        } else {
            CFX_TRY(cfxi_rt_copy(h->c->rt, out, &part, h->c->err));
            f.beta[0] = 1;
        }
    }
    return cfxi_linalg_product(h->c, &to, &rows, &weight, &f);
}

/* Argument `arg` with a batch. */
static cfx_tensor batched(const heads *h, size_t arg)
{
    cfx_tensor x = cfxi_linalg_shown(cfxi_rt_tensor(h->c, arg));
    if (x.ndim == 2)
        cfxi_linalg_unsqueeze(&x, 1);
    return x;
}

/* [rows, N, E] of which the first are the projection of argument `arg`, then the bias' row, then
 * zeros. */
static cfx_tensor *projected(heads *h, size_t arg, int64_t rows, const cfx_tensor *extra)
{
    cfxi_call *c = h->c;
    const int64_t sizes[] = {rows, h->batch, h->embed};
    const bool separate = cfxi_rt_bool(c, SEPARATE);
    const int64_t which = (int64_t)(arg - QUERY) * h->embed;
    const cfx_tensor x = batched(h, arg);
    cfx_tensor *t = cfx_tensor_new(h->dtype, sizes, 3, c->rt->allocator, c->err);
    if (!t)
        return NULL;
    cfx_tensor part = cfxi_linalg_shown(t);
    part.size[0] = x.size[0];
    if (rows > x.size[0] && cfxi_tensor_numel(t) > 0)
        memset(t->data + x.size[0] * t->stride[0], 0,
               (size_t)((rows - x.size[0]) * h->batch * h->embed * h->item));
    const cfx_tensor *bias = cfxi_rt_tensor(c, IN_BIAS);
    cfx_tensor own = cfxi_linalg_shown(bias ? bias : t);
    if (bias)
        own.data += which * own.stride[0];
    cfx_tensor w = cfxi_linalg_shown(cfxi_rt_tensor(c, separate ? Q_WEIGHT + (arg - QUERY)
                                                                : IN_WEIGHT));
    if (!separate)
        w.data += which * w.stride[0];
    cfx_status status = project(h, &part, &x, &w, bias ? &own : NULL, 0);
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

/* Whether query, key and value are one tensor, projected by one matrix. */
static bool is_self_attention(const heads *h)
{
    const cfxi_call *c = h->c;
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    bool same = !cfxi_rt_bool(c, SEPARATE) && h->more == h->keys;
    for (size_t i = KEY; i <= VALUE; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        same = same && t->data == q->data;
        for (size_t d = 0; same && d < q->ndim; d++)
            same = t->size[d] == q->size[d] && t->stride[d] == q->stride[d];
    }
    return same;
}

static cfx_status project_all(heads *h)
{
    cfxi_call *c = h->c;
    const cfx_tensor *bias_k = cfxi_rt_tensor(c, BIAS_K);
    if (is_self_attention(h)) {
        const int64_t sizes[] = {h->queries, h->batch, 3 * h->embed};
        const cfx_tensor x = batched(h, QUERY);
        h->q = cfx_tensor_new(h->dtype, sizes, 3, c->rt->allocator, c->err);
        return !h->q ? c->err->status
                     : project(h, h->q, &x, cfxi_rt_tensor(c, IN_WEIGHT),
                               cfxi_rt_tensor(c, IN_BIAS), 0);
    }
    h->q = projected(h, QUERY, h->queries, NULL);
    h->k = h->q ? projected(h, KEY, h->more, bias_k) : NULL;
    h->v = h->k ? projected(h, VALUE, h->more, cfxi_rt_tensor(c, BIAS_V)) : NULL;
    return h->v ? CFX_OK : c->err->status;
}

/* ---- heads --------------------------------------------------------------------------------- */

/* [N, H, length, E / H] of a tensor [length, N, E], or of the `part`-th E of wider rows. */
static cfx_tensor by_heads(const heads *h, const cfx_tensor *t, int64_t part)
{
    cfx_tensor v = cfxi_linalg_shown(t);
    const int64_t width = h->embed / h->heads;
    v.data += part * h->embed * h->item;
    v.ndim = 4;
    v.size[0] = h->batch, v.stride[0] = t->stride[1];
    v.size[1] = h->heads, v.stride[1] = width * h->item;
    v.size[2] = t->size[0], v.stride[2] = t->stride[0];
    v.size[3] = width, v.stride[3] = h->item;
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

/* Both masks as one that is added, with zeros for the keys that no mask covers. */
static cfx_status make_mask(heads *h)
{
    const cfx_tensor *mask = cfxi_rt_tensor(h->c, ATTN_MASK);
    const cfx_tensor *padding = cfxi_rt_tensor(h->c, KEY_PADDING_MASK);
    const bool each = mask && mask->ndim == 3;
    const int64_t sizes[] = {padding || each ? h->batch : 1, each ? h->heads : 1,
                             mask ? h->queries : 1, h->more};
    if (!mask && !padding)
        return CFX_OK;
    h->mask = cfx_tensor_new(h->dtype, sizes, 4, h->c->rt->allocator, h->c->err);
    if (!h->mask)
        return h->c->err->status;
    char *at = h->mask->data;
    for (int64_t n = 0; n < sizes[0]; n++)
        for (int64_t head = 0; head < sizes[1]; head++)
            for (int64_t i = 0; i < sizes[2]; i++)
                for (int64_t j = 0; j < h->more; j++, at += h->item)
                    cfxi_tensor_store_float(h->dtype, at,
                                            j < h->keys ? masked(h, n, head, i, j) : 0);
    return CFX_OK;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Where row i of a batch and head has its mask; NULL: nowhere. */
static const char *mask_row(const heads *h, int64_t n, int64_t head, int64_t i)
{
    const cfx_tensor *m = h->mask;
    const int64_t at[] = {n, head, i};
    const char *row = m ? m->data : NULL;
    for (size_t d = 0; m && d < 3; d++)
        row += m->size[d] > 1 ? at[d] * m->stride[d] : 0;
    return row;
}

/* A row of scores becomes exponentials; returns their sum. */
static double exponentials(const heads *h, char *row, const char *mask)
{
    if (h->dtype == CFX_DTYPE_FLOAT32) {
        cfxi_weighed w = {-INFINITY, 0};
        cfxi_linalg_weigh(h->c->rt->isa, (float *)row, h->more, 1, NULL, (const float *)mask, &w);
        return w.total;
    }
    double *x = (double *)row;
    double most = -INFINITY;
    double total = 0;
    for (int64_t j = 0; j < h->more; j++) {
        x[j] += mask ? ((const double *)mask)[j] : 0;
        most = x[j] > most ? x[j] : most;
    }
    for (int64_t j = 0; j < h->more; j++)
        total += x[j] = x[j] == -INFINITY ? 0 : exp(x[j] - most);
    return total;
}

/* Rows of scores become weights: NaN if all are masked, as PyTorch's softmax shows it. */
static void softmax_rows(void *ctx, int64_t begin, int64_t end)
{
    const heads *h = ctx;
    const cfxi_float_rows rows = {h->c->rt, h->dtype};
    for (int64_t r = begin; r < end; r++) {
        char *row = h->weights->data + r * h->more * h->item;
        const int64_t i = r % h->queries;
        const int64_t head = r / h->queries % h->heads;
        const double total =
            exponentials(h, row, mask_row(h, r / h->queries / h->heads, head, i));
        const double by = total == 0 ? NAN : 1 / total;
        cfxi_reduce_rows(&rows)->scale(row, row, h->more, by, 0);
        for (int64_t j = 0; h->drop > 0 && j < h->more; j++) {
            char *at = row + j * h->item;
            const bool keeps = cfxi_rt_random_uniform(h->random, r * h->more + j) >= h->drop;
            cfxi_tensor_store_float(h->dtype, at,
                                    cfxi_tensor_load_float(h->dtype, at) *
                                        (keeps ? 1 / (1 - h->drop) : 0));
        }
    }
}

/* The mean of the heads' weights, for some of the batch's rows. */
static void average_rows(void *ctx, int64_t begin, int64_t end)
{
    const heads *h = ctx;
    cfx_tensor *out = cfxi_rt_result_at(h->c, 1);
    const int64_t size = (int64_t)cfxi_tensor_itemsize(out);
    const int64_t plane = h->queries * h->more;
    for (int64_t r = begin; r < end; r++) {
        const int64_t first = r / h->queries * h->heads * plane + r % h->queries * h->more;
        for (int64_t j = 0; j < h->more; j++) {
            double sum = 0;
            for (int64_t head = 0; head < h->heads; head++)
                sum += cfxi_tensor_load_float(
                    h->dtype, h->weights->data + (first + head * plane + j) * h->item);
            cfxi_tensor_store_float((cfx_dtype)out->dtype, out->data + (r * h->more + j) * size,
                                    sum / (double)h->heads);
        }
    }
}

/* The result's weights: of each head, or their mean. */
static cfx_status give_weights(heads *h)
{
    cfxi_call *c = h->c;
    cfx_tensor to = cfxi_linalg_shown(cfxi_rt_result_at(c, 1));
    if (cfxi_rt_bool(c, AVERAGE)) {
        cfxi_rt_parallel(c->rt, h->batch * h->queries, 1 + 4096 / (h->more * h->heads + 1),
                         average_rows, h);
        return CFX_OK;
    }
    if (to.ndim == 3)
        cfxi_linalg_unsqueeze(&to, 0);
    return cfxi_rt_copy(c->rt, &to, h->weights, c->err);
}

/* Attention with its weights in memory. */
static cfx_status attend_weights(heads *h, const cfx_tensor *q, const cfx_tensor *k,
                                 const cfx_tensor *v, cfx_tensor *out)
{
    cfxi_call *c = h->c;
    const int64_t sizes[] = {h->batch, h->heads, h->queries, h->more};
    const cfxi_factors scale = {.alpha = {1 / sqrt((double)q->size[3]), 0}};
    const cfxi_factors one = {.alpha = {1, 0}};
    cfx_tensor turned = cfxi_linalg_shown(k);
    turned.size[2] = k->size[3], turned.stride[2] = k->stride[3];
    turned.size[3] = k->size[2], turned.stride[3] = k->stride[2];
    h->weights = cfx_tensor_new(h->dtype, sizes, 4, c->rt->allocator, c->err);
    if (!h->weights)
        return c->err->status;
    CFX_TRY(cfxi_linalg_product(c, h->weights, q, &turned, &scale));
    if (h->drop > 0)
        h->random = cfxi_rt_random_reserve(c->rt, cfxi_tensor_numel(h->weights));
    cfxi_rt_parallel(c->rt, h->batch * h->heads * h->queries, 1 + 4096 / (h->more + 1),
                     softmax_rows, h);
    CFX_TRY(cfxi_linalg_product(c, out, h->weights, v, &one));
    return give_weights(h);
}

/* ---- kernel -------------------------------------------------------------------------------- */

static cfx_status attend(heads *h)
{
    cfxi_call *c = h->c;
    const int64_t sizes[] = {h->queries, h->batch, h->embed};
    CFX_TRY(project_all(h));
    CFX_TRY(make_mask(h));
    h->sums = cfx_tensor_new(h->dtype, sizes, 3, c->rt->allocator, c->err);
    if (!h->sums)
        return c->err->status;
    const cfx_tensor q = by_heads(h, h->q, 0);
    const cfx_tensor k = by_heads(h, h->k ? h->k : h->q, h->k ? 0 : 1);
    const cfx_tensor v = by_heads(h, h->v ? h->v : h->q, h->v ? 0 : 2);
    cfx_tensor to = by_heads(h, h->sums, 0);
    if (cfxi_rt_bool(c, NEED_WEIGHTS)) {
        CFX_TRY(attend_weights(h, &q, &k, &v, &to));
    } else {
        cfxi_attention a = cfxi_linalg_attention_of(c->rt, &q, &k, &v, h->mask, &to);
        a.drop = h->drop;
        CFX_TRY(cfxi_linalg_attention_run(&a, c->err));
    }
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    if (out.ndim == 2)
        cfxi_linalg_unsqueeze(&out, 1);
    return project(h, &out, h->sums, cfxi_rt_tensor(c, OUT_WEIGHT), cfxi_rt_tensor(c, OUT_BIAS), 0);
}

cfx_status cfxi_kernel_multi_head_attention_forward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, QUERY);
    heads h = {.c = c, .queries = x->size[0], .keys = cfxi_rt_tensor(c, KEY)->size[0],
               .batch = x->ndim == 3 ? x->size[1] : 1, .heads = cfxi_rt_int(c, NUM_HEADS),
               .embed = x->size[x->ndim - 1],
               .drop = cfxi_rt_bool(c, TRAINING) ? cfxi_rt_float(c, DROPOUT) : 0};
    h.dtype = x->dtype == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
    h.item = (int64_t)cfx_dtype_size(h.dtype);
    h.more = h.keys + (cfxi_rt_tensor(c, BIAS_K) != NULL) + cfxi_rt_bool(c, ADD_ZERO);
    cfx_status status = attend(&h);
    cfx_tensor *made[] = {h.q, h.k, h.v, h.mask, h.sums, h.weights};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        cfx_tensor_release(made[i]);
    return status;
}
