/* grouped_scales.c - quantize and dequantize with a scale for each token, or for each group of a
 * row: made of other rows, so that types are promoted as PyTorch does.
 *
 * These round (x * (1 / scale) + zero), where the others round before they add the zero point. */
#include "float_types_impl.h"

enum { INPUT, SCALES, ZEROS, LOW, HIGH, DTYPE, LAST };

/* `op` of x and y, which are released, in the type that both are promoted to: PyTorch rounds
 * integers to floats of 16 bits before it computes. */
static cfx_tensor *promoted(cfxi_call *c, cfx_operator op, cfx_tensor *x, cfx_tensor *y)
{
    if (!x || !y)
        return cfxi_rt_then_with(c, op, x, y);
    const cfx_datum type = cfx_datum_dtype(
        cfxi_tensor_promote_types((cfx_dtype)x->dtype, (cfx_dtype)y->dtype));
    x = cfxi_rt_then(c, CFX_OPID_to, x, &type, 1);
    y = cfxi_rt_then(c, CFX_OPID_to, y, &type, 1);
    return cfxi_rt_then_with(c, op, x, y);
}

/* clamp(round(x / scales + zeros)), all of which are released. */
static cfx_tensor *quantized(cfxi_call *c, cfx_tensor *x, cfx_tensor *scales, cfx_tensor *zeros)
{
    const cfx_datum limits[] = {c->args[LOW], c->args[HIGH]};
    scales = cfxi_rt_then(c, CFX_OPID_reciprocal, scales, NULL, 0);
    x = promoted(c, CFX_OPID_mul, x, scales);
    x = promoted(c, CFX_OPID_add, x, zeros);
    x = cfxi_rt_then(c, CFX_OPID_round, x, NULL, 0);
    x = cfxi_rt_then(c, CFX_OPID_clamp, x, limits, 2);
    return cfxi_rt_then(c, CFX_OPID_to, x, &c->args[DTYPE], 1);
}

/* (x - zeros) * scales, all of which are released; no zeros: NULL, with `has_zeros` false. */
static cfx_tensor *dequantized(cfxi_call *c, cfx_tensor *x, cfx_tensor *scales, cfx_tensor *zeros,
                               bool has_zeros)
{
    if (has_zeros)
        x = promoted(c, CFX_OPID_sub, x, zeros);
    x = promoted(c, CFX_OPID_mul, x, scales);
    return cfxi_rt_then(c, CFX_OPID_to, x, &c->args[LAST], 1);
}

static cfx_status give(cfxi_call *c, cfx_tensor *x)
{
    if (!x)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(x));
    return CFX_OK;
}

static cfx_status check_output(cfxi_call *c, size_t i)
{
    const cfx_dtype out = (cfx_dtype)c->args[i].as.i;
    if (!cfx_dtype_is_float(out) || !cfxi_tensor_dtype_is_computable(out))
        return cfxi_fail(c, CFX_E_TYPE, "output_dtype must be float16, bfloat16, float32 or "
                         "float64, not %s", cfx_dtype_name(out));
    return CFX_OK;
}

/* ---- by token ------------------------------------------------------------------------------ */

/* The number of elements in dimensions before `ndim`, as a size. */
static int64_t count(cfxi_call *c, const cfx_tensor *t, size_t ndim)
{
    int64_t n = 1;
    for (size_t d = 0; d < ndim; d++)
        n = cfx_dim_mul(c->dims, n, t->size[d], c->err);
    return n;
}

static cfx_status check_tokens(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const int64_t tokens = count(c, x, x->ndim ? x->ndim - 1u : 0);
    for (size_t i = SCALES; i <= ZEROS; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (!cfxi_rt_same_size(c, count(c, t, t->ndim), tokens))
            return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each token, but has "
                             "sizes [%s]", i == SCALES ? "scales" : "zero_points",
                             cfxi_rt_shape_of(t).text);
    }
    if (!cfx_dtype_is_float((cfx_dtype)cfxi_rt_tensor(c, SCALES)->dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'scales' must be of floats");
    return c->err->status;
}

cfx_status cfxi_rule_quantize_per_token(cfxi_call *c)
{
    CFX_TRY(cfxi_integer_check_limits(c, LOW));
    CFX_TRY(check_tokens(c));
    return give(c, quantized(c, cfxi_rt_hold(c, INPUT), cfxi_rt_hold(c, SCALES),
                             cfxi_rt_hold(c, ZEROS)));
}

cfx_status cfxi_rule_dequantize_per_token(cfxi_call *c)
{
    CFX_TRY(check_output(c, LAST));
    CFX_TRY(check_tokens(c));
    return give(c, dequantized(c, cfxi_rt_hold(c, INPUT), cfxi_rt_hold(c, SCALES),
                               cfxi_rt_hold(c, ZEROS), true));
}

/* ---- by group ------------------------------------------------------------------------------ */

/* The elements that share a scale: group_size, but a whole row if there is one scale for it. The
 * last group of a row may be shorter, which PyTorch's rows do not allow. */
static cfx_status find_group(cfxi_call *c, int64_t *group)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *scales = cfxi_rt_tensor(c, SCALES);
    CFX_TRY(cfxi_rt_number(c, LAST, group));
    if (*group <= 1)
        return cfxi_fail(c, CFX_E_VALUE, "group_size must be > 1, not %lld", (long long)*group);
    if (x->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "input must be 2-dimensional, not %u", x->ndim);
    if (cfx_dim_is_symbol(x->size[1]))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "the length of a row must be known");
    if (*group > x->size[1] && scales->ndim > 0 && scales->size[scales->ndim - 1] == 1)
        *group = x->size[1];
    if (*group == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "the rows of the input must not be empty");
    return CFX_OK;
}

static int64_t groups_of(int64_t length, int64_t group)
{
    return length / group + (length % group != 0);
}

static cfx_status check_groups(cfxi_call *c, int64_t *group)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    CFX_TRY(find_group(c, group));
    const int64_t groups = cfx_dim_mul(c->dims, x->size[0], groups_of(x->size[1], *group), c->err);
    for (size_t i = SCALES; i <= ZEROS; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t && !cfxi_rt_same_size(c, count(c, t, t->ndim), groups))
            return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each group, but has "
                             "sizes [%s]", i == SCALES ? "scales" : "zero_points",
                             cfxi_rt_shape_of(t).text);
    }
    if (!cfx_dtype_is_float((cfx_dtype)cfxi_rt_tensor(c, SCALES)->dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'scales' must be of floats");
    return c->err->status;
}

cfx_status cfxi_rule_quantize_per_channel_group(cfxi_call *c)
{
    const cfx_dtype out = (cfx_dtype)c->args[DTYPE].as.i;
    int64_t group;
    if (!cfx_dtype_is_float((cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'input' must be of floats");
    if (!cfx_dtype_is_integer(out))
        return cfxi_fail(c, CFX_E_TYPE, "the dtype must be one of integers, not %s",
                         cfx_dtype_name(out));
    CFX_TRY(check_groups(c, &group));
    return cfxi_rt_result_like(c, 0, out, cfxi_rt_tensor(c, INPUT));
}

cfx_status cfxi_rule_dequantize_per_channel_group(cfxi_call *c)
{
    int64_t group;
    CFX_TRY(check_output(c, LAST + 1));
    CFX_TRY(check_groups(c, &group));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)c->args[LAST + 1].as.i, cfxi_rt_tensor(c, INPUT));
}

/* A matrix with `columns` columns, and as many rows as that gives. */
static cfx_tensor *in_rows(cfxi_call *c, cfx_tensor *x, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    return cfxi_rt_then_list(c, CFX_OPID_reshape, cfx_tensor_retain(x), sizes, 2);
}

/* A row for each group of the input; the last one of each of its rows is filled up. */
static cfx_tensor *in_groups(cfxi_call *c, int64_t group)
{
    cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const int64_t rest = x->size[1] % group;
    if (rest == 0)
        return in_rows(c, x, -1, group);
    const int64_t fill[] = {0, group - rest};
    cfx_tensor *full = cfxi_rt_then_list(c, CFX_OPID_constant_pad_nd, cfx_tensor_retain(x), fill,
                                         2);
    cfx_tensor *rows = full ? in_rows(c, full, -1, group) : NULL;
    cfx_tensor_release(full);
    return rows;
}

/* Result 0 is x, which is released, with the sizes of the input. */
static cfx_status give_rows(cfxi_call *c, cfx_tensor *x, int64_t group)
{
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const int64_t length = groups_of(y->size[1], group) * group;
    cfx_tensor *rows = x ? in_rows(c, x, y->size[0], length) : NULL;
    cfx_tensor_release(x);
    if (rows && length != y->size[1]) {
        const cfx_datum part[] = {cfx_datum_int(1), cfx_datum_int(0), cfx_datum_int(y->size[1])};
        rows = cfxi_rt_then(c, CFX_OPID_narrow, rows, part, 3);
        rows = cfxi_rt_then(c, CFX_OPID_contiguous, rows, NULL, 0);
    }
    return cfxi_integer_give(c, rows);
}

static cfx_status check_no_nan(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_then(c, CFX_OPID_isnan, cfxi_rt_hold(c, INPUT), NULL, 0);
    x = cfxi_rt_then(c, CFX_OPID_any, x, NULL, 0);
    if (!x)
        return c->err->status;
    const bool found = *(const uint8_t *)x->data;
    cfx_tensor_release(x);
    return found ? cfxi_fail(c, CFX_E_VALUE, "the input must not contain NaNs") : CFX_OK;
}

cfx_status cfxi_kernel_quantize_per_channel_group(cfxi_call *c)
{
    int64_t group;
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    CFX_TRY(find_group(c, &group));
    CFX_TRY(check_no_nan(c));
    return give_rows(c, quantized(c, in_groups(c, group),
                                  in_rows(c, cfxi_rt_tensor(c, SCALES), -1, 1),
                                  in_rows(c, cfxi_rt_tensor(c, ZEROS), -1, 1)), group);
}

cfx_status cfxi_kernel_dequantize_per_channel_group(cfxi_call *c)
{
    cfx_tensor *zeros = cfxi_rt_tensor(c, ZEROS);
    int64_t group;
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    CFX_TRY(find_group(c, &group));
    cfx_tensor *x = in_groups(c, group);
    cfx_tensor *scales = in_rows(c, cfxi_rt_tensor(c, SCALES), -1, 1);
    if (zeros)
        x = promoted(c, CFX_OPID_sub, x, in_rows(c, zeros, -1, 1));
    return give_rows(c, promoted(c, CFX_OPID_mul, x, scales), group);
}
