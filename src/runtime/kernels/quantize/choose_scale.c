/* choose_scale.c - the scale and zero point for what a tensor holds: of all, or of each token.
 *
 * With PyTorch's roundings. The least and greatest element, and the scale, have the type of the
 * input; the zero point is computed in float32 and 32 bits, which wrap where a number is not
 * finite. */
#include "float_types_impl.h"

/* ---- of a tensor --------------------------------------------------------------------------- */

enum { INPUT, LOW, HIGH, EPS, DTYPE };

cfx_status cfxi_rule_choose_qparams(cfxi_call *c)
{
    const cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    const cfx_dtype target = (cfx_dtype)c->args[DTYPE].as.i;
    const int64_t one = 1;
    int64_t low, high, least, most;
    if (type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_FLOAT16 && type != CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_TYPE, "Expecting input to have dtype torch.float32/16/b16, but "
                         "got dtype: %s", cfx_dtype_name(type));
    if (!cfxi_integer_limits(target, &least, &most))
        return cfxi_fail(c, CFX_E_VALUE, "Unsupported dtype: %s", cfx_dtype_name(target));
    CFX_TRY(cfxi_rt_number(c, LOW, &low));
    CFX_TRY(cfxi_rt_number(c, HIGH, &high));
    if (low > 0 || high < 0)
        return cfxi_fail(c, CFX_E_VALUE, "the range from %lld to %lld must include 0",
                         (long long)low, (long long)high);
    if (low == high || low < INT32_MIN || high > INT32_MAX)
        return cfxi_fail(c, CFX_E_VALUE, "quant_min must be less than quant_max, and both within "
                         "32 bits; they are %lld and %lld", (long long)low, (long long)high);
    CFX_TRY(cfxi_rt_result(c, 0, CFX_DTYPE_FLOAT64, &one, 1));
    return cfxi_rt_result(c, 1, CFX_DTYPE_INT64, &one, 1);
}

/* The nearest number of a type of 16 bits, or of float32. */
static float as_type(cfx_dtype dtype, float x)
{
    if (dtype == CFX_DTYPE_FLOAT16)
        return cfxi_tensor_half_to_float(cfxi_tensor_float_to_half(x));
    return dtype == CFX_DTYPE_BFLOAT16
               ? cfxi_tensor_bfloat_to_float(cfxi_tensor_float_to_bfloat(x)) : x;
}

/* The greater one; NaN if one is. */
static float greater(float a, float b) { return a > b || isnan(a) ? a : b; }

/* Of the elements and 0. */
static cfx_status find_range(cfxi_call *c, float *low, float *high)
{
    const cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    cfx_datum both = cfxi_rt_sub(c, CFX_OPID_aminmax, c->args, 1);
    size_t n;
    const cfx_datum *items = cfx_datum_items(both, &n);
    if (n != 2)
        return c->err->status;
    *low = -greater(-(float)cfxi_tensor_load_float(type, items[0].as.tensor->data), 0);
    *high = greater((float)cfxi_tensor_load_float(type, items[1].as.tensor->data), 0);
    cfx_datum_release(both);
    return CFX_OK;
}

/* (low - round(x)), in 32 bits, limited. */
static int64_t zero_point(float x, int64_t low, int64_t high)
{
    const float whole = rintf(x);
    const int32_t steps =
        whole >= -0x1p31f && whole < 0x1p31f ? (int32_t)whole : INT32_MIN;
    const uint32_t wrapped = (uint32_t)low - (uint32_t)steps;
    int64_t zero = wrapped <= INT32_MAX ? (int64_t)wrapped : (int64_t)wrapped - 0x100000000;
    zero = zero < low ? low : zero;
    return zero > high ? high : zero;
}

void cfxi_integer_choose(float low, float high, int64_t first, int64_t last, float eps,
                         float *scale, int64_t *zero)
{
    *scale = greater((high - low) / (float)(last - first), eps);
    *zero = zero_point(low / *scale, first, last);
}

static void put(cfxi_call *c, float scale, int64_t zero)
{
    *(double *)cfxi_rt_result_at(c, 0)->data = scale;
    *(int64_t *)cfxi_rt_result_at(c, 1)->data = zero;
}

cfx_status cfxi_kernel_choose_qparams(cfxi_call *c)
{
    const cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    const int64_t first = cfxi_rt_int(c, LOW);
    const int64_t last = cfxi_rt_int(c, HIGH);
    float low, high;
    CFX_TRY(find_range(c, &low, &high));
    const float range = as_type(type, high - low);
    const float scale = greater(as_type(type, range / (float)(last - first)),
                                (float)cfxi_rt_float(c, EPS));
    put(c, scale, zero_point(low / scale, first, last));
    return CFX_OK;
}

cfx_status cfxi_kernel_choose_qparams_symmetric(cfxi_call *c)
{
    const cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    const double half = (double)(cfxi_rt_int(c, HIGH) - cfxi_rt_int(c, LOW)) / 2;
    float low, high;
    CFX_TRY(find_range(c, &low, &high));
    const float scale = greater(as_type(type, greater(-low, high) / (float)half),
                                (float)cfxi_rt_float(c, EPS));
    put(c, scale, c->args[DTYPE].as.i == CFX_DTYPE_UINT8 ? 128 : 0);
    return CFX_OK;
}

/* ---- of each token ------------------------------------------------------------------------- */

static cfx_tensor *reduce_rows(cfxi_call *c, cfx_operator op, cfx_tensor *x)
{
    const cfx_datum last[] = {cfx_datum_int(-1), cfx_datum_bool(true)};
    return cfxi_rt_then(c, op, x, last, 2);
}

/* Only for int8, whose greatest number is 127; the zero points are of the scales' type. */
cfx_status cfxi_rule_choose_qparams_per_token(cfxi_call *c)
{
    const cfx_dtype target = (cfx_dtype)c->args[1].as.i;
    const cfx_datum wide = cfx_datum_dtype(CFX_DTYPE_FLOAT32);
    const cfx_datum least = cfx_datum_float(1e-5);
    const cfx_datum most = cfx_datum_int(127);
    if (target != CFX_DTYPE_INT8)
        return cfxi_fail(c, CFX_E_VALUE, "unsupported dtype in choose_qparams_per_token: %s",
                         cfx_dtype_name(target));
    cfx_tensor *x = cfxi_rt_hold(c, INPUT);
    x = reduce_rows(c, CFX_OPID_amax, cfxi_rt_then(c, CFX_OPID_abs, x, NULL, 0));
    if (x && x->dtype == CFX_DTYPE_FLOAT16)
        x = cfxi_rt_then(c, CFX_OPID_to, x, &wide, 1);
    x = cfxi_rt_then(c, CFX_OPID_clamp, x, &least, 1);
    x = cfxi_rt_then(c, CFX_OPID_div, x, &most, 1);
    cfx_tensor *zeros = cfxi_rt_then(c, CFX_OPID_zeros_like, cfx_tensor_retain(x), NULL, 0);
    if (!zeros) {
        cfx_tensor_release(x);
        return c->err->status;
    }
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(x));
    cfxi_rt_result_datum(c, 1, cfx_datum_tensor(zeros));
    return CFX_OK;
}

/* The least (or greatest) element of each row and 0. */
static cfx_tensor *row_end(cfxi_call *c, cfx_operator of_row, cfx_operator of_two)
{
    cfx_tensor *x = reduce_rows(c, of_row, cfxi_rt_hold(c, INPUT));
    cfx_tensor *zeros = cfxi_rt_then(c, CFX_OPID_zeros_like, cfx_tensor_retain(x), NULL, 0);
    return cfxi_rt_then_with(c, of_two, x, zeros);
}

/* The zero point from whichever end gives the smaller error: what -128 + low and 127 + high, in
 * units of the scale, add up to says which. Both are released. */
static cfx_tensor *zero_of_ends(cfxi_call *c, cfx_tensor *low, cfx_tensor *high)
{
    const cfx_datum limits[] = {cfx_datum_int(-128), cfx_datum_int(127)};
    const cfx_datum nothing = cfx_datum_int(0);
    cfx_tensor *a = cfxi_rt_then(c, CFX_OPID_add, cfx_tensor_retain(low), &limits[0], 1);
    cfx_tensor *b = cfxi_rt_then(c, CFX_OPID_add, cfx_tensor_retain(high), &limits[1], 1);
    cfx_tensor *is_low = cfxi_rt_then_with(c, CFX_OPID_add, a, b);
    is_low = cfxi_rt_then(c, CFX_OPID_gt, is_low, &nothing, 1);
    low = cfxi_rt_then(c, CFX_OPID_rsub, low, &limits[0], 1);
    high = cfxi_rt_then(c, CFX_OPID_rsub, high, &limits[1], 1);
    const cfx_datum both[] = {cfx_datum_tensor(low), cfx_datum_tensor(high)};
    cfx_tensor *zero = NULL;
    if (low && high)
        zero = cfxi_rt_then(c, CFX_OPID_where, is_low, both, 2);
    else
        cfx_tensor_release(is_low);
    cfx_tensor_release(low);
    cfx_tensor_release(high);
    zero = cfxi_rt_then(c, CFX_OPID_clamp, zero, limits, 2);
    return cfxi_rt_then(c, CFX_OPID_round, zero, NULL, 0);
}

/* Always from -128 to 127, whatever the dtype. */
cfx_status cfxi_rule_choose_qparams_per_token_asymmetric(cfxi_call *c)
{
    const cfx_datum steps = cfx_datum_float(255);
    const cfx_datum least = cfx_datum_float(0x1p-23);
    const cfx_datum types[] = {cfx_datum_dtype(CFX_DTYPE_FLOAT64),
                               cfx_datum_dtype(CFX_DTYPE_INT64)};
    cfx_tensor *low = row_end(c, CFX_OPID_amin, CFX_OPID_minimum);
    cfx_tensor *high = low ? row_end(c, CFX_OPID_amax, CFX_OPID_maximum) : NULL;
    cfx_tensor *scale = cfxi_rt_then_with(c, CFX_OPID_sub, cfx_tensor_retain(high),
                                          cfx_tensor_retain(low));
    scale = cfxi_rt_then(c, CFX_OPID_div, scale, &steps, 1);
    scale = cfxi_rt_then(c, CFX_OPID_clamp, scale, &least, 1);
    low = cfxi_rt_then_with(c, CFX_OPID_div, low, cfx_tensor_retain(scale));
    high = cfxi_rt_then_with(c, CFX_OPID_div, high, cfx_tensor_retain(scale));
    cfx_tensor *zero = zero_of_ends(c, low, high);
    scale = cfxi_rt_then(c, CFX_OPID_to, scale, &types[0], 1);
    zero = cfxi_rt_then(c, CFX_OPID_to, zero, &types[1], 1);
    if (!scale || !zero) {
        cfx_tensor_release(scale);
        cfx_tensor_release(zero);
        return c->err->status;
    }
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(scale));
    cfxi_rt_result_datum(c, 1, cfx_datum_tensor(zero));
    return CFX_OK;
}
