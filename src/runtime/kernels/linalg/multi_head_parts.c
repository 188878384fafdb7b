/* multi_head_parts.c - multi_head_attention_forward as a plan has it: projections, attention, the
 * last projection, each a call of its own, so that weights are packed once.
 *
 * Only the common case: batches, equal sizes of all projections, at most one mask for all heads,
 * and no weights as a result.
 */
#include "multi_head_impl.h"

bool cfxi_linalg_multi_head_has_parts(const cfxi_call *c)
{
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    const cfx_tensor *mask = cfxi_rt_tensor(c, ATTN_MASK);
    return q->ndim == 3 && q->dtype == CFX_DTYPE_FLOAT32 && !cfxi_rt_bool(c, SEPARATE) &&
           !cfxi_rt_tensor(c, BIAS_K) && !cfxi_rt_bool(c, ADD_ZERO) &&
           !(cfxi_rt_bool(c, TRAINING) && cfxi_rt_float(c, DROPOUT) > 0) &&
           !cfxi_rt_tensor(c, KEY_PADDING_MASK) && !cfxi_rt_bool(c, NEED_WEIGHTS) &&
           (!mask || mask->ndim == 2) && cfxi_tensor_numel(q) > 0;
}

/* Rows [first, first + n) of an argument; NULL if there is none, or with c->err set. */
static cfx_tensor *rows_of(cfxi_call *c, size_t arg, int64_t first, int64_t n)
{
    cfx_tensor *t = cfxi_rt_tensor(c, arg);
    const cfx_datum rest[] = {cfx_datum_int(0), cfx_datum_int(first), cfx_datum_int(n)};
    return t ? cfxi_rt_then(c, CFX_OPID_narrow, cfx_tensor_retain(t), rest, 3) : NULL;
}

/* [N, S, parts * E]: `parts` projections at once, those that follow number `first`. */
static cfx_tensor *project(cfxi_call *c, size_t arg, int64_t first, int64_t parts)
{
    cfx_tensor *x = cfxi_rt_tensor(c, arg);
    const int64_t embed = x->size[2];
    const cfx_datum swap[] = {cfx_datum_int(0), cfx_datum_int(1)};
    cfx_tensor *w = rows_of(c, IN_WEIGHT, first * embed, parts * embed);
    cfx_tensor *bias = w ? rows_of(c, IN_BIAS, first * embed, parts * embed) : NULL;
    const cfx_datum rest[] = {cfx_datum_tensor(w),
                              bias ? cfx_datum_tensor(bias) : cfx_datum_none()};
    cfx_tensor *turned =
        w && c->err->status == CFX_OK
            ? cfxi_rt_then(c, CFX_OPID_transpose, cfx_tensor_retain(x), swap, 2) : NULL;
    cfx_tensor *result = cfxi_rt_then(c, CFX_OPID_linear, turned, rest, 2);
    cfx_tensor_release(w);
    cfx_tensor_release(bias);
    return result;
}

/* The part number `part` of a projection, by heads: [N, H, S, E / H]. */
static cfx_tensor *by_heads(cfxi_call *c, cfx_tensor *all, int64_t part)
{
    static const int64_t order[] = {0, 2, 1, 3};
    const int64_t embed = cfxi_rt_tensor(c, QUERY)->size[2];
    const int64_t count = c->args[NUM_HEADS].as.i;
    if (!all)
        return NULL;
    const int64_t sizes[] = {all->size[0], all->size[1], count, embed / count};
    const cfx_datum rest[] = {cfx_datum_int(2), cfx_datum_int(part * embed), cfx_datum_int(embed)};
    cfx_tensor *t = cfxi_rt_then(c, CFX_OPID_narrow, cfx_tensor_retain(all), rest, 3);
    t = cfxi_rt_then_list(c, CFX_OPID_view, t, sizes, 4);
    return cfxi_rt_then_list(c, CFX_OPID_permute, t, order, 4);
}

/* The mask as attention takes it: a bool says which keys count, here it says which do not. */
static cfx_datum mask_of(cfxi_call *c)
{
    cfx_tensor *mask = cfxi_rt_tensor(c, ATTN_MASK);
    if (!mask)
        return cfx_datum_none();
    if (mask->dtype != CFX_DTYPE_BOOL)
        return cfx_datum_tensor(cfx_tensor_retain(mask));
    return cfxi_rt_sub(c, CFX_OPID_logical_not, &c->args[ATTN_MASK], 1);
}

static cfx_tensor *attend(cfxi_call *c, cfx_tensor *q, cfx_tensor *k, cfx_tensor *v)
{
    const cfx_datum mask = q && k && v ? mask_of(c) : cfx_datum_invalid();
    cfx_tensor *result = NULL;
    if (mask.kind != CFX_DATUM_INVALID) {
        const cfx_datum args[] = {cfx_datum_tensor(q), cfx_datum_tensor(k), cfx_datum_tensor(v),
                                  mask};
        result = cfxi_rt_sub_tensor(c, CFX_OPID_scaled_dot_product_attention, args, 4);
    }
    cfx_datum_release(mask);
    cfx_tensor_release(q);
    cfx_tensor_release(k);
    cfx_tensor_release(v);
    return result;
}

/* What the heads give, [N, H, L, E / H], joined and projected: [L, N, E]. Batches come first while
 * it is computed, which spares copies; the result may stay so if strides do not matter. */
static cfx_tensor *leave(cfxi_call *c, cfx_tensor *heads)
{
    static const int64_t order[] = {0, 2, 1, 3};
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    const int64_t sizes[] = {q->size[1], q->size[0], q->size[2]};
    const cfx_datum rest[] = {c->args[OUT_WEIGHT], c->args[OUT_BIAS]};
    const cfx_datum swap[] = {cfx_datum_int(0), cfx_datum_int(1)};
    cfx_tensor *t = cfxi_rt_then_list(c, CFX_OPID_permute, heads, order, 4);
    t = cfxi_rt_then_list(c, CFX_OPID_reshape, t, sizes, 3);
    t = cfxi_rt_then(c, CFX_OPID_linear, t, rest, 2);
    t = cfxi_rt_then(c, CFX_OPID_transpose, t, swap, 2);
    c->planner->finds_layouts = c->planner->finds_layouts || q->size[1] > 1;
    return c->planner->any_layout ? t : cfxi_rt_then(c, CFX_OPID_contiguous, t, NULL, 0);
}

cfx_status cfxi_linalg_multi_head_parts(cfxi_call *c)
{
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY);
    const bool self = q == cfxi_rt_tensor(c, KEY) && q == cfxi_rt_tensor(c, VALUE);
    cfx_tensor *all[3] = {project(c, QUERY, 0, self ? 3 : 1)};
    for (size_t i = 1; i < 3 && all[i - 1]; i++)
        all[i] = self ? cfx_tensor_retain(all[0]) : project(c, i, (int64_t)i, 1);
    cfx_tensor *parts[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < 3 && (i == 0 || parts[i - 1]); i++)
        parts[i] = by_heads(c, all[i], self ? (int64_t)i : 0);
    for (size_t i = 0; i < 3; i++)
        cfx_tensor_release(all[i]);
    cfx_tensor *result = leave(c, attend(c, parts[0], parts[1], parts[2]));
    if (!result)
        return c->err->status == CFX_OK ? CFX_E_UNSUPPORTED : c->err->status;
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(result));
    cfxi_rt_result_datum(c, 1, cfx_datum_none());
    return CFX_OK;
}
