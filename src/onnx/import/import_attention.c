/* import_attention.c - attention of the standard: heads, caches, masks, windows, what it shows. */
#include "rules_impl.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };

typedef struct attention {
    cfx_var q, k, v;         /* [batch, heads, sequence, size]; keys and values with their past */
    cfx_var queries, keys;   /* lengths of the sequences */
    cfx_var past;            /* how many keys come from the cache */
    double scale;
    cfx_dtype dtype;
} attention;

/* ---- inputs -------------------------------------------------------------------------------- */

/* Input i as [batch, heads, sequence, size]; [batch, sequence, heads * size] is taken apart. */
static cfx_var heads_of(cfxi_import_call *c, size_t i, const char *heads)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, i);
    const int rank = cfxi_import_need_rank(c, i);
    const int64_t n = cfxi_import_int(c, heads, 0);
    if (rank == 4 || rank < 0)
        return x;
    if (rank != 3 || n < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "input %zu must have 4 dimensions, or 3 and the "
                                "number of heads in '%s'", i, heads);
    const cfx_var size = cfxi_import_over(s, cfxi_import_size(c, i, 2), cfx_v(n));
    const cfx_var sizes[] = {cfxi_import_size(c, i, 0), cfxi_import_size(c, i, 1), cfx_v(n), size};
    return cfx_transpose(s, cfx_reshape(s, x, cfxi_import_tuple(s, sizes, 4)), 1, 2);
}

/* Each head of keys and values serves several of the queries. */
static cfx_var repeated(cfx_scope *s, cfx_var x, cfx_var heads)
{
    const cfx_var own = cfxi_import_dim_of(s, x, 1);
    if (heads.kind == CFX_VAR_INT && own.kind == CFX_VAR_INT && heads.as.i == own.as.i)
        return x;
    return cfx_repeat_interleave(s, x, cfxi_import_over(s, heads, own), .dim = cfx_v(1));
}

static bool read_inputs(cfxi_import_call *c, attention *a)
{
    cfx_scope *s = c->scope;
    a->q = heads_of(c, Q, "q_num_heads");
    a->k = heads_of(c, K, "kv_num_heads");
    a->v = heads_of(c, V, "kv_num_heads");
    a->past = cfx_v(0);
    if (cfxi_import_has(c, PAST_KEY)) {
        a->past = cfxi_import_size(c, PAST_KEY, 2);
        a->k = cfx_cat(s, cfx_list(s, cfxi_import_in(c, PAST_KEY), a->k), .dim = cfx_v(2));
        a->v = cfx_cat(s, cfx_list(s, cfxi_import_in(c, PAST_VALUE), a->v), .dim = cfx_v(2));
    }
    cfxi_import_set(c, 1, a->k);
    cfxi_import_set(c, 2, a->v);
    const cfx_var size = cfxi_import_dim_of(s, a->q, 3);
    const cfxi_onnx_attribute *scale = cfxi_import_attribute(c, "scale");
    if (!scale && size.kind != CFX_VAR_INT)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the size of a head is not known"), false;
    a->scale = scale ? (double)scale->f : 1 / sqrt((double)size.as.i);
    a->queries = cfxi_import_dim_of(s, a->q, 2);
    a->keys = cfxi_import_dim_of(s, a->k, 2);
    a->dtype = cfxi_import_dtype(c, Q);
    const cfx_var heads = cfxi_import_dim_of(s, a->q, 1);
    a->k = repeated(s, a->k, heads);
    a->v = repeated(s, a->v, heads);
    return cfx_scope_ok(s);
}

/* ---- which keys a query sees --------------------------------------------------------------- */

static cfx_var both(cfx_scope *s, cfx_var a, cfx_var b)
{
    return a.kind == CFX_VAR_EMPTY ? b : cfx_logical_and(s, a, b);
}

/* One number for each image of the batch, in the first of four dimensions. */
static cfx_var nonpad(cfxi_import_call *c)
{
    return cfx_reshape(c->scope, cfxi_import_in(c, NONPAD), cfx_ints(c->scope, -1, 1, 1, 1));
}

/* By position alone: causal, windows, the ends of caches. EMPTY if a query sees all. */
static cfx_var visible(cfxi_import_call *c, const attention *a)
{
    cfx_scope *s = c->scope;
    const int64_t left = cfxi_import_int(c, "left_window_size", -1);
    const int64_t right = cfxi_import_int(c, "right_window_size", -1);
    const bool causal = cfxi_import_int(c, "is_causal", 0) != 0;
    cfx_var sees = cfx_var_empty();
    const cfx_var j = cfx_arange(s, a->keys);
    if (cfxi_import_has(c, NONPAD))
        sees = cfx_lt(s, j, nonpad(c));
    if (!causal && left < 0 && right < 0)
        return sees;
    const bool outside = cfxi_import_has(c, NONPAD) && !cfxi_import_has(c, PAST_KEY);
    const cfx_var offset = outside ? cfx_sub(s, nonpad(c), a->queries) : a->past;
    const cfx_var i = cfx_add(s, cfx_unsqueeze(s, cfx_arange(s, a->queries), 1), offset);
    if (causal)
        sees = both(s, sees, cfx_le(s, j, i));
    if (left >= 0)
        sees = both(s, sees, cfx_ge(s, j, cfx_sub(s, i, left)));
    if (right >= 0)
        sees = both(s, sees, cfx_le(s, j, cfx_add(s, i, right)));
    return sees;
}

/* The mask of the node; keys that it does not reach are not seen. */
static cfx_var mask_of(cfxi_import_call *c, const attention *a)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, MASK);
    if (rank < 1)
        return cfx_var_empty();
    const cfx_var own = cfxi_import_size(c, MASK, rank - 1);
    const cfx_var none = cfx_v(0);
    const bool is_bool = cfxi_import_dtype(c, MASK) == CFX_DTYPE_BOOL;
    const bool one = own.kind == CFX_VAR_INT && own.as.i == 1;
    const cfx_var missing = one ? none : cfxi_import_minus(s, a->keys, own);
    return cfxi_import_pad_ends(s, cfxi_import_in(c, MASK), &none, &missing, 1,
                                is_bool ? cfx_v(0) : cfx_v(-INFINITY));
}

/* Scores with the mask added. */
static cfx_var masked(cfxi_import_call *c, const attention *a, cfx_var scores)
{
    cfx_scope *s = c->scope;
    cfx_var sees = visible(c, a);
    if (cfxi_import_has(c, MASK)) {
        const cfx_var mask = mask_of(c, a);
        if (cfxi_import_dtype(c, MASK) == CFX_DTYPE_BOOL)
            sees = both(s, sees, mask);
        else
            scores = cfx_add(s, scores, mask);
    }
    if (sees.kind == CFX_VAR_EMPTY)
        return scores;
    return cfx_masked_fill(s, scores, cfx_logical_not(s, sees), cfx_v(-INFINITY));
}

/* ---- computing ----------------------------------------------------------------------------- */

/* A query that sees no key gives zeros. */
static cfx_var weights_of(cfxi_import_call *c, const attention *a, cfx_var scores)
{
    cfx_scope *s = c->scope;
    const int64_t precision = cfxi_import_int(c, "softmax_precision", 0);
    if (precision)
        scores = cfxi_import_cast_to(s, scores, cfxi_onnx_dtype(precision));
    const cfx_var most = cfx_amax(s, scores, .dim = cfx_ints(s, -1), .keepdim = cfx_v(true));
    const cfx_var weights = cfx_masked_fill(s, cfx_softmax(s, scores, -1),
                                            cfx_eq(s, most, cfx_v(-INFINITY)), cfx_v(0.0));
    return cfxi_import_cast_to(s, weights, a->dtype);
}

static cfx_var attend(cfxi_import_call *c, const attention *a)
{
    cfx_scope *s = c->scope;
    const double cap = cfxi_import_float(c, "softcap", 0);
    const cfx_var part = cfx_scalar_tensor(s, sqrt(a->scale), .dtype = cfx_var_dtype(a->dtype));
    const int64_t shown = cfxi_import_wants(c, 3) ? cfxi_import_int(c, "qk_matmul_output_mode", 0)
                                                  : -1;
    const cfx_var turned = cfx_transpose(s, a->k, -2, -1);
    cfx_var scores = cfx_matmul(s, cfx_mul(s, a->q, part), cfx_mul(s, turned, part));
    if (shown == 0)
        cfxi_import_set(c, 3, scores);
    if (cap != 0)
        scores = cfx_mul(s, cfx_tanh(s, cfx_div(s, scores, cap)), cap);
    if (shown == 1)
        cfxi_import_set(c, 3, scores);
    scores = masked(c, a, scores);
    if (shown == 2)
        cfxi_import_set(c, 3, scores);
    const cfx_var weights = weights_of(c, a, scores);
    if (shown == 3)
        cfxi_import_set(c, 3, weights);
    return cfx_matmul(s, cfxi_import_cast_to(s, weights, cfxi_import_dtype(c, V)), a->v);
}

/* Whether the row that PyTorch has does all that the node asks for. */
static bool is_plain(cfxi_import_call *c)
{
    const bool causal = cfxi_import_int(c, "is_causal", 0) != 0;
    return !cfxi_import_has(c, MASK) && !cfxi_import_has(c, NONPAD) && !cfxi_import_wants(c, 3) &&
           cfxi_import_float(c, "softcap", 0) == 0 && !cfxi_import_int(c, "softmax_precision", 0) &&
           cfxi_import_int(c, "left_window_size", -1) < 0 &&
           cfxi_import_int(c, "right_window_size", -1) < 0 &&
           !(causal && cfxi_import_has(c, PAST_KEY)) &&
           cfxi_import_dtype(c, Q) == cfxi_import_dtype(c, V);
}

cfx_var cfxi_import_attention(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    attention a;
    if (!read_inputs(c, &a))
        return cfx_var_empty();
    const bool causal = cfxi_import_int(c, "is_causal", 0) != 0;
    const cfx_var y = is_plain(c)
                          ? cfx_scaled_dot_product_attention(s, a.q, a.k, a.v,
                                                             .is_causal = cfx_v(causal),
                                                             .scale = cfx_v(a.scale))
                          : attend(c, &a);
    if (cfxi_import_rank(c, Q) == 4)
        return y;
    return cfx_flatten(s, cfx_transpose(s, y, 1, 2), .start_dim = cfx_v(2));
}

/* ---- positions ----------------------------------------------------------------------------- */

/* Sines or cosines, input i, for each place of [batch, heads, sequence, size]. */
static cfx_var turns_of(cfxi_import_call *c, size_t i)
{
    cfx_scope *s = c->scope;
    cfx_var x = cfxi_import_in(c, i);
    if (cfxi_import_has(c, 3))
        x = cfx_embedding(s, x, cfxi_import_in(c, 3));
    return cfx_unsqueeze(s, x, 1);
}

cfx_var cfxi_import_rotary_embedding(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = heads_of(c, 0, "num_heads");
    const cfx_var last = cfxi_import_dim_of(s, x, 3);
    const int64_t part = cfxi_import_int(c, "rotary_embedding_dim", 0);
    const cfx_var size = part > 0 ? cfx_v(part) : last;
    const bool mixed = cfxi_import_int(c, "interleaved", 0) != 0;
    const cfx_var turned = part > 0 ? cfx_narrow(s, x, 3, 0, size) : x;
    const cfx_var half = cfxi_import_over(s, size, cfx_v(2));
    const cfx_var first = mixed ? cfx_slice(s, turned, .dim = cfx_v(3), .step = cfx_v(2))
                                : cfx_narrow(s, turned, 3, 0, half);
    const cfx_var second = mixed ? cfx_slice(s, turned, .dim = cfx_v(3), .start = cfx_v(1),
                                             .step = cfx_v(2))
                                 : cfx_narrow(s, turned, 3, half, half);
    const cfx_var cos = turns_of(c, 1), sin = turns_of(c, 2);
    const cfx_var real = cfx_sub(s, cfx_mul(s, first, cos), cfx_mul(s, second, sin));
    const cfx_var imag = cfx_add(s, cfx_mul(s, first, sin), cfx_mul(s, second, cos));
    cfx_var y = mixed ? cfx_flatten(s, cfx_stack(s, cfx_list(s, real, imag), .dim = cfx_v(-1)),
                                    .start_dim = cfx_v(-2))
                      : cfx_cat(s, cfx_list(s, real, imag), .dim = cfx_v(-1));
    if (part > 0) {
        const cfx_var rest = cfx_narrow(s, x, 3, size, cfxi_import_minus(s, last, size));
        y = cfx_cat(s, cfx_list(s, y, rest), .dim = cfx_v(-1));
    }
    if (cfxi_import_rank(c, 0) == 4)
        return y;
    return cfx_flatten(s, cfx_transpose(s, y, 1, 2), .start_dim = cfx_v(2));
}

/* ---- caches -------------------------------------------------------------------------------- */

cfx_var cfxi_import_tensor_scatter(cfxi_import_call *c)
{
    enum { PAST, UPDATE, PLACES };
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, PAST);
    const int axis = rank < 0 ? -1 : cfxi_import_axis(c, cfxi_import_int(c, "axis", -2), rank);
    if (axis < 0)
        return cfx_var_empty();
    cfx_var index = cfxi_import_along(s, cfx_arange(s, cfxi_import_size(c, UPDATE, axis)), axis,
                                      rank);
    if (cfxi_import_has(c, PLACES))
        index = cfx_add(s, index, cfxi_import_along(s, cfxi_import_in(c, PLACES), 0, rank));
    if (cfxi_import_is(c, "mode", "linear", "circular"))
        index = cfx_remainder(s, index, cfxi_import_size(c, PAST, axis));
    return cfx_scatter(s, cfxi_import_in(c, PAST), axis,
                       cfx_expand_as(s, index, cfxi_import_in(c, UPDATE)),
                       cfxi_import_in(c, UPDATE));
}

cfx_var cfxi_import_causal_conv_with_state(cfxi_import_call *c)
{
    enum { X, W, B, PAST };
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, X);
    const cfx_var before = cfxi_import_minus(s, cfxi_import_size(c, W, 2), cfx_v(1));
    const cfx_var zero = cfx_v(0);
    const cfx_var all = cfxi_import_has(c, PAST)
                            ? cfx_cat(s, cfx_list(s, cfxi_import_in(c, PAST), x), .dim = cfx_v(2))
                            : cfxi_import_pad_ends(s, x, &before, &zero, 1, zero);
    cfxi_import_set(c, 1, cfx_narrow(s, all, 2, cfxi_import_size(c, X, 2), before));
    const cfx_var y = cfx_conv1d(s, all, cfxi_import_in(c, W), .bias = cfxi_import_optional(c, B),
                                 .groups = cfxi_import_size(c, X, 1));
    const bool plain = cfxi_import_is(c, "activation", "none", "none");
    return plain ? y : cfx_silu(s, y);
}

/* ---- linear attention ---------------------------------------------------------------------- */

/* Input i, [batch, sequence, heads * size], with heads of their own. */
static cfx_var unpacked(cfxi_import_call *c, size_t i, int64_t heads)
{
    cfx_scope *s = c->scope;
    if (!cfxi_import_has(c, i))
        return cfx_var_empty();
    const cfx_var sizes[] = {cfxi_import_size(c, i, 0), cfxi_import_size(c, i, 1), cfx_v(heads),
                             cfx_v(-1)};
    return cfx_reshape(s, cfxi_import_in(c, i), cfxi_import_tuple(s, sizes, 4));
}

cfx_var cfxi_import_linear_attention(cfxi_import_call *c)
{
    enum { STATE = 3, DECAY, BETA };
    cfx_scope *s = c->scope;
    const int64_t queries = cfxi_import_int(c, "q_num_heads", 0);
    const int64_t keys = cfxi_import_int(c, "kv_num_heads", 0);
    if (queries < 1 || keys < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "q_num_heads and kv_num_heads must be positive");
    const cfx_var result = cfx_linear_attention(
        s, unpacked(c, Q, queries), unpacked(c, K, keys), unpacked(c, V, keys),
        .state = cfxi_import_optional(c, STATE), .decay = unpacked(c, DECAY, keys),
        .beta = cfxi_import_optional(c, BETA),
        .rule = cfxi_import_str(c, "update_rule", "gated_delta"),
        .scale = cfx_v(cfxi_import_float(c, "scale", 0)));
    cfxi_import_set(c, 1, cfx_getitem(s, result, 1));
    return cfx_flatten(s, cfx_getitem(s, result, 0), .start_dim = cfx_v(2));
}
