/* lower_out.c - calls that write their results to tensors of the caller's: torch.add(x, y, out=z).
 *
 *     %add = torch.add(%x, %y, out=%z)
 *     %add_1 = cfx.ops.add(%x, %y)   %add = cfx.ops.write_out(%z, %add_1)
 *
 * The result takes the type of `out`, if that is what PyTorch lets it do: element-wise functions
 * convert to any type that holds their kind of number, functions that have a `dtype` compute in
 * that of `out`, all others want their own type. An `out` that is empty is resized. As tensors here
 * have one size for good, that is another tensor: whoever used `out` from there on uses it instead.
 */
#include "lower_impl.h"

/* ---- types --------------------------------------------------------------------------------- */

/* Element-wise rows that want their own type nevertheless, and others that do not: what PyTorch
 * does, tried out. */
static const cfx_operator strict_rows[] = {
    CFX_OPID_abs, CFX_OPID_bitwise_not, CFX_OPID_ceil, CFX_OPID_float_power, CFX_OPID_floor,
    CFX_OPID_frac, CFX_OPID_gelu, CFX_OPID_hardshrink, CFX_OPID_log_sigmoid, CFX_OPID_nan_to_num,
    CFX_OPID_neg, CFX_OPID_round, CFX_OPID_sgn, CFX_OPID_sign, CFX_OPID_softplus,
    CFX_OPID_softshrink, CFX_OPID_trunc, CFX_OPID_where,
};
static const cfx_operator lenient_rows[] = {
    CFX_OPID_all, CFX_OPID_any, CFX_OPID_cat, CFX_OPID_dstack, CFX_OPID_hstack, CFX_OPID_kron,
    CFX_OPID_logsumexp, CFX_OPID_max, CFX_OPID_mean, CFX_OPID_min, CFX_OPID_normal_of,
    CFX_OPID_normalize, CFX_OPID_outer, CFX_OPID_stack, CFX_OPID_std, CFX_OPID_var,
    CFX_OPID_vstack,
};
/* Of the rows that take tensors, those that compute in the type of `out`. */
static const cfx_operator typed_rows[] = {
    CFX_OPID_cumprod, CFX_OPID_cumsum, CFX_OPID_nansum, CFX_OPID_prod, CFX_OPID_sum,
};

static bool is_among(cfx_operator op, const cfx_operator *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i] == op)
            return true;
    return false;
}

#define AMONG(op, rows) is_among(op, rows, sizeof rows / sizeof *rows)

static bool wants_own_type(cfx_operator op)
{
    if (cfx_operator_flags(op) & CFX_OPERATOR_ELEMENTWISE)
        return AMONG(op, strict_rows);
    return !AMONG(op, lenient_rows);
}

/* torch.zeros(2, out=z), torch.sum(x, out=z): `dtype` is z.dtype if it is not given. */
static cfx_status take_type(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    cfx_schema_param first;
    const size_t at = cfx_operator_find_param(c->op, "dtype");
    const bool makes = cfx_operator_param(c->op, 0, &first) && !strstr(first.type, "Tensor");
    if (at == SIZE_MAX || c->args[at].kind != CFX_KIND_INVALID ||
        (!makes && !AMONG(c->op, typed_rows)))
        return CFX_OK;
    const cfx_value args[] = {c->out, cfx_value_str(l->g, "dtype", 5, l->err)};
    cfx_node *dtype = args[1].kind == CFX_KIND_INVALID
                          ? NULL
                          : cfxi_lower_add(l, n, CFX_OPID_getattr, args, 2);
    if (!dtype)
        return l->err->status;
    c->args[at] = cfx_value_node(dtype);
    return CFX_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* An input belongs to the caller, who would not see that it is another tensor. */
static bool may_resize(cfx_value out)
{
    return out.kind == CFX_KIND_NODE && out.as.node->op != CFX_OP_PLACEHOLDER;
}

static int comes_after(void *ctx, cfx_node *user) { return cfx_node_before(ctx, user); }

/* What is read from `out` after `written` is what was written. */
static cfx_status read_written(cfxi_lower *l, cfx_value out, cfx_node *written)
{
    if (!may_resize(out))
        return CFX_OK;
    return cfx_node_replace_uses(out.as.node, cfx_value_node(written), comes_after, NULL, written,
                                 l->err);
}

/* out=(values, indices): the results stay what the call gives, and are written to each. */
static cfx_status write_several(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    size_t count;
    const cfx_value *each = cfx_value_items(c->out, &count);
    if (cfx_operator_num_results(c->op) != count)
        return cfxi_lower_refuse(l, n, "'out' has %zu tensors, but the operator has %zu results",
                                 count,
                                 cfx_operator_num_results(c->op));
    cfx_value outs[CFXI_MOST_PARAMS];
    if (count > CFXI_MOST_PARAMS)
        return cfxi_lower_refuse(l, n, "'out' has too many tensors");
    for (size_t i = 0; i < count; i++) {
        if (each[i].kind != CFX_KIND_NODE)
            return cfxi_lower_refuse(l, n, "the items of 'out' must be tensors");
        outs[i] = each[i];  /* the list goes with the arguments of `n` */
    }
    c->out = cfx_value_invalid();
    CFX_TRY(cfxi_lower_write(l, n, c));
    cfx_node *last = n;
    for (size_t i = 0; i < count; i++) {
        const cfx_value item[] = {cfx_value_node(n), cfx_value_int((int64_t)i)};
        cfx_node *result = cfxi_lower_add_after(l, last, CFX_OPID_getitem, item, 2);
        if (!result)
            return l->err->status;
        const cfx_value write[] = {outs[i], cfx_value_node(result), cfx_value_bool(true),
                                   cfx_value_bool(may_resize(outs[i]))};
        last = cfxi_lower_add_after(l, result, CFX_OPID_write_out, write, 4);
        if (!last)
            return l->err->status;
        CFX_TRY(read_written(l, outs[i], last));
    }
    return CFX_OK;
}

cfx_status cfxi_lower_out(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    const cfx_value out = c->out;
    const bool strict = wants_own_type(c->op);
    if (out.kind == CFX_KIND_TUPLE || out.kind == CFX_KIND_LIST)
        return write_several(l, n, c);
    if (cfx_operator_num_results(c->op) != 1)
        return cfxi_lower_refuse(l, n, "'out' is one tensor, but the operator has %zu results",
                                 cfx_operator_num_results(c->op));
    CFX_TRY(take_type(l, n, c));
    cfx_node *result = cfxi_lower_before(l, n, c);
    if (!result)
        return l->err->status;
    cfxi_lower_unbind(l, c);
    cfxi_lower_lowered_begin(c, CFX_OPID_write_out);
    c->args[0] = out;
    c->args[1] = cfx_value_node(result);
    c->args[2] = cfx_value_bool(strict);
    c->args[3] = cfx_value_bool(may_resize(out));
    CFX_TRY(cfxi_lower_write(l, n, c));
    return read_written(l, out, n);
}
