/* export_heads.c - attention with several heads and their projections (nn.MultiheadAttention). */
#include "export_impl.h"

#include <math.h>

enum {  /* parameters of multi_head_attention_forward */
    QUERY, KEY, VALUE, EMBED, HEADS, IN_WEIGHT, IN_BIAS, BIAS_K, BIAS_V, ADD_ZERO, DROPOUT,
    OUT_WEIGHT, OUT_BIAS, TRAINING, PADDING_MASK, NEED_WEIGHTS, MASK, SEPARATE, Q_WEIGHT, K_WEIGHT,
    V_WEIGHT, STATIC_K, STATIC_V, AVERAGE, CAUSAL
};

/* Rows i*embed to (i + 1)*embed of the weight or bias that all three projections share. */
static cfxi_ev *third(cfxi_export_call *c, size_t param, int64_t i)
{
    const int64_t embed = cfxi_export_int(c, EMBED);
    return cfxi_export_slice(c, IN(param), 0, INT(i * embed), INT((i + 1) * embed), 1);
}

static cfxi_ev *projected(cfxi_export_call *c, size_t from, int64_t i)
{
    cfxi_ev *w = cfxi_export_bool(c, SEPARATE) ? IN(Q_WEIGHT + (size_t)i) : third(c, IN_WEIGHT, i);
    cfxi_ev *x = NODE("MatMul", IN(from), cfxi_export_swap(c, w, 2, 0, 1));
    return cfxi_export_given(c, IN_BIAS) ? NODE("Add", x, third(c, IN_BIAS, i)) : x;
}

/* (time, batch, embed) as (batch, heads, time, size of a head). */
static cfxi_ev *by_heads(cfxi_export_call *c, cfxi_ev *x)
{
    const int64_t heads = cfxi_export_int(c, HEADS);
    const int64_t perm[] = {1, 2, 0, 3};
    x = NODE("Reshape", x, INTS(0, 0, heads, cfxi_export_int(c, EMBED) / heads));
    return cfxi_export_transpose(c, x, perm, 4);
}

static cfxi_ev *as_added(cfxi_export_call *c, cfxi_ev *mask, cfxi_ev *like)
{
    if (cfxi_export_dtype(mask) != CFX_DTYPE_BOOL)
        return CAST(mask, cfxi_export_dtype(like));
    return NODE("Where", mask, LIKE(like, -INFINITY), LIKE(like, 0));
}

/* The mask of the call: (time, time), or one for each head of each batch. */
static cfxi_ev *own_mask(cfxi_export_call *c, cfxi_ev *like)
{
    const int64_t heads = cfxi_export_int(c, HEADS);
    cfxi_ev *mask = as_added(c, ARG(MASK), like);
    if (c->args[MASK]->rank == 2)
        return mask;
    cfxi_ev *items[] = {cfxi_export_of_datum(c->x, cfx_datum_int(-1)),
                        cfxi_export_of_datum(c->x, cfx_datum_int(heads)), SIZE(c->args[MASK], 1),
                        SIZE(c->args[MASK], 2)};
    return NODE("Reshape", mask, cfxi_export_shape_of(c->x, items, 4));
}

/* Keys that are padding: (batch, time) -> (batch, 1, 1, time). */
static cfxi_ev *padding_mask(cfxi_export_call *c, cfxi_ev *like, bool single)
{
    cfxi_ev *mask = as_added(c, ARG(PADDING_MASK), like);
    if (single)
        mask = cfxi_export_unsqueeze(c, mask, 0);
    return NODE("Unsqueeze", mask, INTS(1, 2));
}

static bool refuses(cfxi_export_call *c)
{
    const char *why = NULL;
    if (cfxi_export_given(c, BIAS_K) || cfxi_export_bool(c, ADD_ZERO) ||
        cfxi_export_given(c, STATIC_K))
        why = "bias_k, bias_v, add_zero_attn and static keys are not written";
    if (cfxi_export_bool(c, TRAINING) && cfxi_export_float(c, DROPOUT) != 0)
        why = "attention with dropout has no counterpart in ONNX; save the model after "
              "model.eval()";
    if (why)
        cfxi_export_refuse(c, "%s", why);
    return why != NULL;
}

static cfxi_ev *scores_of(cfxi_export_call *c, cfxi_ev *q, cfxi_ev *k, bool single)
{
    const double size = (double)cfxi_export_int(c, EMBED) / (double)cfxi_export_int(c, HEADS);
    q = NODE("Mul", q, LIKE(q, 1 / sqrt(size)));
    cfxi_ev *scores = NODE("MatMul", q, cfxi_export_swap(c, k, 4, 2, 3));
    if (cfxi_export_given(c, MASK))
        scores = NODE("Add", scores, own_mask(c, q));
    else if (cfxi_export_bool(c, CAUSAL))
        cfxi_export_refuse(c, "is_causal needs attn_mask");
    if (cfxi_export_given(c, PADDING_MASK))
        scores = NODE("Add", scores, padding_mask(c, q, single));
    cfxi_ev *weights = NODE("Softmax", scores);
    SET_INT("axis", -1);
    return weights;
}

/* The weights that the caller may want: of all heads, or their mean. */
static cfxi_ev *weights_result(cfxi_export_call *c, cfxi_ev *weights, bool single)
{
    const int64_t heads[] = {1};
    if (!cfxi_export_bool(c, NEED_WEIGHTS))
        return cfxi_export_of_datum(c->x, cfx_datum_none());
    if (cfxi_export_bool(c, AVERAGE))
        weights = cfxi_export_reduce(c, "ReduceMean", weights, heads, 1, false);
    return single ? cfxi_export_squeeze(c, weights, 0) : weights;
}

cfxi_ev *cfxi_export_heads(cfxi_export_call *c)
{
    const bool single = c->args[QUERY]->rank == 2;
    const int64_t perm[] = {2, 0, 1, 3};
    cfxi_ev *parts[3];
    if (refuses(c))
        return &c->x->broken;
    for (size_t i = 0; i < 3; i++) {
        cfxi_ev *x = projected(c, QUERY + i, (int64_t)i);
        parts[i] = by_heads(c, single ? cfxi_export_unsqueeze(c, x, 1) : x);
    }
    cfxi_ev *weights = scores_of(c, parts[0], parts[1], single);
    cfxi_ev *x = cfxi_export_transpose(c, NODE("MatMul", weights, parts[2]), perm, 4);
    x = NODE("Reshape", x, INTS(0, 0, cfxi_export_int(c, EMBED)));
    x = NODE("MatMul", x, cfxi_export_swap(c, IN(OUT_WEIGHT), 2, 0, 1));
    if (cfxi_export_given(c, OUT_BIAS))
        x = NODE("Add", x, IN(OUT_BIAS));
    x = single ? cfxi_export_squeeze(c, x, 1) : x;
    return cfxi_export_list(c->x, CFXI_EVS(x, weights_result(c, weights, single)), 2);
}
