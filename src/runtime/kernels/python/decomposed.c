/* decomposed.c - what only graphs of torch's dispatcher call: forms that also give what a gradient
 * needs, or take what their function has prepared. Each is made of other rows. */
#include "runtime/runtime_impl.h"

#include <math.h>

static cfx_tensor *then_with(cfxi_call *c, cfx_operator op, cfx_tensor *x, cfx_datum other)
{
    return cfxi_rt_then(c, op, x, &other, 1);
}

/* Result i is `t`, which is taken over. */
static cfx_status give(cfxi_call *c, size_t i, cfx_tensor *t)
{
    if (!t)
        return c->err->status;
    cfxi_rt_result_datum(c, i, cfx_datum_tensor(t));
    return CFX_OK;
}

/* ---- activations --------------------------------------------------------------------------- */

/* The weight is broadcast already. */
cfx_status cfxi_rule_prelu_kernel(cfxi_call *c)
{
    const cfx_datum compared[] = {c->args[0], cfx_datum_int(0)};
    const cfx_datum scaled[] = {c->args[1], c->args[0]};
    cfx_tensor *positive = cfxi_rt_sub_tensor(c, CFX_OPID_gt, compared, 2);
    cfx_tensor *below = positive ? cfxi_rt_sub_tensor(c, CFX_OPID_mul, scaled, 2) : NULL;
    if (!below) {
        cfx_tensor_release(positive);
        return c->err->status;
    }
    const cfx_datum both[] = {c->args[0], cfx_datum_tensor(below)};
    cfx_tensor *y = cfxi_rt_then(c, CFX_OPID_where, positive, both, 2);
    cfx_tensor_release(below);
    return give(c, 0, y);
}

/* The second is exp(-|x|). */
cfx_status cfxi_rule_log_sigmoid_forward(cfxi_call *c)
{
    CFX_TRY(give(c, 0, cfxi_rt_sub_tensor(c, CFX_OPID_log_sigmoid, c->args, 1)));
    cfx_tensor *size = cfxi_rt_sub_tensor(c, CFX_OPID_abs, c->args, 1);
    size = cfxi_rt_then(c, CFX_OPID_neg, size, NULL, 0);
    return give(c, 1, cfxi_rt_then(c, CFX_OPID_exp, size, NULL, 0));
}

/* Lanes of minus infinity alone give zeros, not NaN. */
cfx_status cfxi_rule_safe_softmax(cfxi_call *c)
{
    const cfx_datum low[] = {c->args[0], cfx_datum_float(-INFINITY)};
    const cfx_datum lane[] = {c->args[1], cfx_datum_bool(true)};
    cfx_tensor *hidden = cfxi_rt_sub_tensor(c, CFX_OPID_eq, low, 2);
    hidden = cfxi_rt_then(c, CFX_OPID_all, hidden, lane, 2);
    cfx_tensor *y = hidden ? cfxi_rt_sub_tensor(c, CFX_OPID_softmax, c->args, 3) : NULL;
    const cfx_datum zero[] = {cfx_datum_tensor(hidden), cfx_datum_float(0)};
    y = cfxi_rt_then(c, CFX_OPID_masked_fill, y, zero, 2);
    cfx_tensor_release(hidden);
    return give(c, 0, y);
}

cfx_status cfxi_rule_dist(cfxi_call *c)
{
    cfx_tensor *apart = cfxi_rt_sub_tensor(c, CFX_OPID_sub, c->args, 2);
    return give(c, 0, then_with(c, CFX_OPID_linalg_vector_norm, apart, c->args[2]));
}

/* ---- weight normalisation ------------------------------------------------------------------ */

/* The norm of v over all dimensions but `dim`; -1 (as PyTorch says None here): over all. */
static cfx_tensor *norm_except(cfxi_call *c, int64_t dim)
{
    const cfx_tensor *v = cfxi_rt_tensor(c, 0);
    cfx_datum dims[CFX_MAX_DIMS];
    size_t kept = 0;
    size_t n = 0;
    if (dim != -1 && cfxi_rt_dim(c, dim, v->ndim, &kept) != CFX_OK)
        return NULL;
    for (size_t d = 0; d < v->ndim; d++)
        if (dim == -1 || d != kept)
            dims[n++] = cfx_datum_int((int64_t)d);
    if (dim != -1 && n == 0)  /* of a vector each element is its own norm */
        return cfxi_rt_sub_tensor(c, CFX_OPID_abs, c->args, 1);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, dims, n, c->rt->allocator, c->err);
    if (list.kind == CFX_DATUM_INVALID)
        return NULL;
    const cfx_datum args[] = {c->args[0], cfx_datum_int(2), list, cfx_datum_bool(dim != -1)};
    cfx_tensor *norm = cfxi_rt_sub_tensor(c, CFX_OPID_linalg_vector_norm, args, 4);
    cfx_datum_release(list);
    return norm;
}

/* v * (g / norm) */
static cfx_status weight_norm(cfxi_call *c, const cfx_tensor *norm)
{
    if (!norm)
        return c->err->status;
    const cfx_datum parts[] = {c->args[1], cfx_datum_tensor((cfx_tensor *)norm)};
    return give(c, 0, then_with(c, CFX_OPID_mul, cfxi_rt_sub_tensor(c, CFX_OPID_div, parts, 2),
                                c->args[0]));
}

cfx_status cfxi_rule_weight_norm(cfxi_call *c)
{
    cfx_tensor *norm = norm_except(c, cfxi_rt_int(c, 2));
    cfx_status status = weight_norm(c, norm);
    cfx_tensor_release(norm);
    return status;
}

cfx_status cfxi_rule_weight_norm_interface(cfxi_call *c)
{
    cfx_tensor *norm = norm_except(c, cfxi_rt_int(c, 2));
    cfx_status status = weight_norm(c, norm);
    if (status == CFX_OK)
        return give(c, 1, norm);
    cfx_tensor_release(norm);
    return status;
}

/* ---- attention ----------------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, DROPOUT, CAUSAL, MASK, SCALE };

static cfx_tensor *swap(cfxi_call *c, cfx_tensor *x, int64_t a, int64_t b)
{
    const cfx_datum dims[] = {cfx_datum_int(a), cfx_datum_int(b)};
    return cfxi_rt_then(c, CFX_OPID_transpose, x, dims, 2);
}

/* Scores that do not count: -inf where `mask`, which is released, is true. */
static cfx_tensor *leave_out(cfxi_call *c, cfx_tensor *scores, cfx_tensor *mask)
{
    const cfx_datum more[] = {cfx_datum_tensor(mask), cfx_datum_float(-INFINITY)};
    cfx_tensor *left = mask ? cfxi_rt_then(c, CFX_OPID_masked_fill, scores, more, 2) : NULL;
    if (!mask)
        cfx_tensor_release(scores);
    cfx_tensor_release(mask);
    return left;
}

/* `at_mask` is the place of the mask among the arguments. */
static cfx_tensor *mask_scores(cfxi_call *c, cfx_tensor *scores, size_t at_mask, bool causal)
{
    const cfx_tensor *mask = cfxi_rt_tensor(c, at_mask);
    if (scores && mask && mask->dtype == CFX_DTYPE_BOOL)
        scores =
            leave_out(c, scores, cfxi_rt_sub_tensor(c, CFX_OPID_logical_not, c->args + at_mask, 1));
    else if (mask)
        scores = then_with(c, CFX_OPID_add, scores, c->args[at_mask]);
    if (scores && causal) {
        const cfx_datum shown = cfx_datum_tensor(scores);
        cfx_tensor *later = cfxi_rt_sub_tensor(c, CFX_OPID_ones_like, &shown, 1);
        later = then_with(c, CFX_OPID_triu, later, cfx_datum_int(1));
        scores = leave_out(c, scores, cfxi_rt_then(c, CFX_OPID_cast_bool, later, NULL, 0));
    }
    return scores;
}

/* (batch, heads, queries), stored with the heads last. */
static cfx_tensor *log_sum(cfxi_call *c)
{
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    cfx_tensor *k = cfx_tensor_retain(cfxi_rt_tensor(c, KEY));
    const int64_t heads = k->size[1];
    const double size = (double)q->size[3];
    const cfx_datum wide = cfx_datum_dtype(q->dtype == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64
                                                                         : CFX_DTYPE_FLOAT32);
    if (heads > 0 && heads != q->size[1]) {
        const cfx_datum times[] = {cfx_datum_int(q->size[1] / heads), cfx_datum_int(1)};
        k = cfxi_rt_then(c, CFX_OPID_repeat_interleave, k, times, 2);
    }
    k = then_with(c, CFX_OPID_to, swap(c, k, -2, -1), wide);
    if (!k)
        return NULL;
    cfx_tensor *x = then_with(c, CFX_OPID_to, cfx_tensor_retain(cfxi_rt_tensor(c, QUERY)), wide);
    x = then_with(c, CFX_OPID_matmul, x, cfx_datum_tensor(k));
    cfx_tensor_release(k);
    const double scale = cfxi_rt_is_none(c, SCALE) ? 1 / sqrt(size) : cfxi_rt_float(c, SCALE);
    x = then_with(c, CFX_OPID_mul, x, cfx_datum_float(scale));
    x = then_with(c, CFX_OPID_logsumexp, mask_scores(c, x, MASK, cfxi_rt_bool(c, CAUSAL)),
                  cfx_datum_int(-1));
    return swap(c, cfxi_rt_then(c, CFX_OPID_contiguous, swap(c, x, 1, 2), NULL, 0), 1, 2);
}

cfx_status cfxi_rule_flash_attention(cfxi_call *c)
{
    const cfx_datum args[] = {c->args[QUERY], c->args[KEY],     c->args[VALUE],
                              c->args[MASK],  c->args[DROPOUT], c->args[CAUSAL],
                              c->args[SCALE], cfx_datum_bool(true)};
    for (size_t i = QUERY; i <= VALUE; i++)
        if (cfxi_rt_tensor(c, i)->ndim != 4)
            return cfxi_fail(c, CFX_E_SHAPE, "query, key and value must have 4 dimensions");
    CFX_TRY(give(c, 0, cfxi_rt_sub_tensor(c, CFX_OPID_scaled_dot_product_attention, args, 8)));
    return give(c, 1, log_sum(c));
}

/* ---- the gradient of attention ------------------------------------------------------------- */

enum { BACK_GRAD, BACK_Q, BACK_K, BACK_V, BACK_OUT, BACK_LSE, BACK_DROPOUT, BACK_CAUSAL, BACK_MASK,
       BACK_SCALE };

/* How many heads of the query share a head of the keys. */
static int64_t sharing(const cfxi_call *c)
{
    const int64_t heads = cfxi_rt_tensor(c, BACK_K)->size[1];
    return heads > 0 ? cfxi_rt_tensor(c, BACK_Q)->size[1] / heads : 1;
}

/* Keys or values, with as many heads as the query has. */
static cfx_tensor *keys(cfxi_call *c, size_t i)
{
    const cfx_datum times[] = {cfx_datum_int(sharing(c)), cfx_datum_int(1)};
    cfx_tensor *x = cfxi_rt_hold(c, i);
    return sharing(c) > 1 ? cfxi_rt_then(c, CFX_OPID_repeat_interleave, x, times, 2) : x;
}

/* The sum over heads that share keys. */
static cfx_tensor *add_heads(cfxi_call *c, cfx_tensor *x)
{
    cfx_datum sizes[5];
    const int64_t times = sharing(c);
    const int64_t *at = x ? x->size : NULL;
    if (!x || times == 1)
        return x;
    const int64_t wanted[] = {at[0], at[1] / times, times, at[2], at[3]};
    for (size_t i = 0; i < 5; i++)
        sizes[i] = cfx_datum_int(wanted[i]);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, sizes, 5, c->rt->allocator, c->err);
    const bool made = list.kind != CFX_DATUM_INVALID;
    cfx_tensor *parts = made ? then_with(c, CFX_OPID_reshape, x, list) : NULL;
    if (!made)
        cfx_tensor_release(x);
    cfx_datum_release(list);
    return then_with(c, CFX_OPID_sum, parts, cfx_datum_int(2));
}

/* Stored with the heads behind the sequence, as PyTorch's kernel does. */
static cfx_tensor *heads_behind(cfxi_call *c, cfx_tensor *x)
{
    return swap(c, cfxi_rt_then(c, CFX_OPID_contiguous, swap(c, x, 1, 2), NULL, 0), 1, 2);
}

/* x times y, which are released. */
static cfx_tensor *product(cfxi_call *c, cfx_tensor *x, cfx_tensor *y)
{
    return cfxi_rt_then_with(c, CFX_OPID_matmul, x, y);
}

/* The weights of attention once more: exp(scores - their logsumexp). */
static cfx_tensor *weights_again(cfxi_call *c, double scale)
{
    cfx_tensor *scores = product(c, cfxi_rt_hold(c, BACK_Q), swap(c, keys(c, BACK_K), -2, -1));
    scores = then_with(c, CFX_OPID_mul, scores, cfx_datum_float(scale));
    scores = mask_scores(c, scores, BACK_MASK, cfxi_rt_bool(c, BACK_CAUSAL));
    cfx_tensor *sum = scores ? then_with(c, CFX_OPID_unsqueeze, cfxi_rt_hold(c, BACK_LSE),
                                         cfx_datum_int(-1)) : NULL;
    if (!sum) {
        cfx_tensor_release(scores);
        return NULL;
    }
    scores = then_with(c, CFX_OPID_sub, scores, cfx_datum_tensor(sum));
    cfx_tensor_release(sum);
    return cfxi_rt_then(c, CFX_OPID_exp, scores, NULL, 0);
}

/* Of the scores: p * (grad v^T - sum(grad * out)) * scale. */
static cfx_tensor *score_gradient(cfxi_call *c, cfx_tensor *p, double scale)
{
    const cfx_datum last[] = {cfx_datum_int(-1), cfx_datum_bool(true)};
    cfx_tensor *ds = product(c, cfxi_rt_hold(c, BACK_GRAD), swap(c, keys(c, BACK_V), -2, -1));
    cfx_tensor *sum = then_with(c, CFX_OPID_mul, cfxi_rt_hold(c, BACK_GRAD), c->args[BACK_OUT]);
    sum = cfxi_rt_then(c, CFX_OPID_sum, sum, last, 2);
    if (!sum) {
        cfx_tensor_release(ds);
        return NULL;
    }
    ds = then_with(c, CFX_OPID_sub, ds, cfx_datum_tensor(sum));
    cfx_tensor_release(sum);
    ds = then_with(c, CFX_OPID_mul, ds, cfx_datum_tensor(p));
    return then_with(c, CFX_OPID_mul, ds, cfx_datum_float(scale));
}

static cfx_status check_heads(cfxi_call *c)
{
    const cfx_tensor *q = cfxi_rt_tensor(c, BACK_Q);
    for (size_t i = BACK_GRAD; i <= BACK_OUT; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t->ndim != 4)
            return cfxi_fail(c, CFX_E_SHAPE, "query, key and value must have 4 dimensions");
        if (t->dtype != CFX_DTYPE_FLOAT32 && t->dtype != CFX_DTYPE_FLOAT64)
            return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                             cfx_dtype_name((cfx_dtype)t->dtype));
        if (cfx_dim_is_symbol(t->size[1]) || t->size[1] == 0 || q->size[1] % t->size[1] != 0)
            return cfxi_fail(c, CFX_E_SHAPE, "the heads of query, key and value do not fit");
    }
    if (cfxi_rt_float(c, BACK_DROPOUT) != 0)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "dropout is not implemented");
    return CFX_OK;
}

cfx_status cfxi_rule_flash_attention_backward(cfxi_call *c)
{
    CFX_TRY(check_heads(c));
    const double size = (double)cfxi_rt_tensor(c, BACK_Q)->size[3];
    const double scale =
        cfxi_rt_is_none(c, BACK_SCALE) ? 1 / sqrt(size) : cfxi_rt_float(c, BACK_SCALE);
    cfx_tensor *p = weights_again(c, scale);
    cfx_tensor *ds = p ? score_gradient(c, p, scale) : NULL;
    cfx_status status = ds ? CFX_OK : c->err->status;
    if (status == CFX_OK)
        status = give(c, 0, heads_behind(c, product(c, cfx_tensor_retain(ds), keys(c, BACK_K))));
    if (status == CFX_OK)
        status = give(c, 1, heads_behind(c, add_heads(c, product(
            c, swap(c, cfx_tensor_retain(ds), -2, -1), cfxi_rt_hold(c, BACK_Q)))));
    if (status == CFX_OK)
        status = give(c, 2, heads_behind(c, add_heads(c, product(
            c, swap(c, cfx_tensor_retain(p), -2, -1), cfxi_rt_hold(c, BACK_GRAD)))));
    cfx_tensor_release(ds);
    cfx_tensor_release(p);
    return status;
}
