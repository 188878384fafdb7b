/* import_elementwise.c - element-wise operators that are not one row of ops.def. */
#include "import_impl.h"

#include <cfx/embed/tensor.h>

/* ---- arithmetic ---------------------------------------------------------------------------- */

/* Integers are cut off towards zero, and keep their type. */
cfx_var cfxi_import_div(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    const cfx_var a = cfxi_import_in(c, 0);
    const cfx_var b = cfxi_import_in(c, 1);
    if (dtype == CFX_DTYPE_COUNT)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the element type is not known: integers are "
                                "divided otherwise; give the inputs of the file their types");
    return cfx_dtype_is_integer(dtype) ? cfx_div(s, a, b, .rounding_mode = cfx_v("trunc"))
                             : cfx_div(s, a, b);
}

/* The result has the type of the first. */
cfx_var cfxi_import_pow(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_dtype a = cfxi_import_dtype(c, 0);
    const cfx_dtype b = cfxi_import_dtype(c, 1);
    const cfx_var power = cfx_pow(s, cfxi_import_in(c, 0), cfxi_import_in(c, 1));
    return a == b || a == CFX_DTYPE_COUNT ? power : cfx_to(s, power, cfx_var_dtype(a));
}

/* Until opset 6: `axis` is the dimension of the first that the dimensions of the second begin with,
 * if `broadcast` is given. */
cfx_var cfxi_import_aligned(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int other = cfxi_import_need_rank(c, 1);
    const cfx_var a = cfxi_import_in(c, 0);
    cfx_var b = cfxi_import_in(c, 1);
    if (cfxi_import_int(c, "broadcast", 0) && cfxi_import_attribute(c, "axis") && rank >= 0) {
        const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 0), rank);
        for (int i = axis + other; i < rank && axis >= 0; i++)
            b = cfx_unsqueeze(s, b, -1);
    }
    const char first = c->node->op.data[0];
    const bool whole = cfx_dtype_is_integer(cfxi_import_dtype(c, 0));
    return first == 'A'   ? cfx_add(s, a, b)
           : first == 'S' ? cfx_sub(s, a, b)
           : first == 'M' ? cfx_mul(s, a, b)
           : first == 'P' ? cfx_pow(s, a, b)
           : whole        ? cfx_div(s, a, b, .rounding_mode = cfx_v("trunc"))
                          : cfx_div(s, a, b);
}

/* Until opset 6: one slope for each channel. */
cfx_var cfxi_import_prelu_of_channels(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    cfx_var slope = cfxi_import_in(c, 1);
    for (int i = 2; i < cfxi_import_rank(c, 0); i++)
        slope = cfx_unsqueeze(s, slope, -1);
    return cfx_where(s, cfx_lt(s, x, 0), cfx_mul(s, x, slope), x);
}

/* ---- any number of inputs ------------------------------------------------------------------ */

typedef cfx_var pair_fn(cfx_scope *s, cfx_var a, cfx_var b);

static cfx_var of_all(cfxi_import_call *c, pair_fn *fn)
{
    cfx_var all = cfxi_import_in(c, 0);
    for (size_t i = 1; i < c->node->inputs.n; i++)
        all = fn(c->scope, all, cfxi_import_in(c, i));
    return all;
}

static cfx_var larger(cfx_scope *s, cfx_var a, cfx_var b) { return cfx_maximum(s, a, b); }
static cfx_var smaller(cfx_scope *s, cfx_var a, cfx_var b) { return cfx_minimum(s, a, b); }
static cfx_var plus(cfx_scope *s, cfx_var a, cfx_var b) { return cfx_add(s, a, b); }

cfx_var cfxi_import_max(cfxi_import_call *c) { return of_all(c, larger); }
cfx_var cfxi_import_min(cfxi_import_call *c) { return of_all(c, smaller); }
cfx_var cfxi_import_sum(cfxi_import_call *c) { return of_all(c, plus); }

cfx_var cfxi_import_mean(cfxi_import_call *c)
{
    return cfx_div(c->scope, of_all(c, plus), (int64_t)c->node->inputs.n);
}

/* ---- limits -------------------------------------------------------------------------------- */

cfx_var cfxi_import_clip_attributes(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const bool low = cfxi_import_attribute(c, "min") != NULL;
    const bool high = cfxi_import_attribute(c, "max") != NULL;
    const cfx_var x = cfxi_import_in(c, 0);
    if (!low && !high)
        return x;
    return cfx_clamp(s, x, .min = low ? cfx_v(cfxi_import_float(c, "min", 0)) : cfx_var_empty(),
                     .max = high ? cfx_v(cfxi_import_float(c, "max", 0)) : cfx_var_empty());
}

/* If the least is above the largest, the largest counts. */
cfx_var cfxi_import_clip(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var x = cfxi_import_in(c, 0);
    if (cfxi_import_has(c, 1))
        x = cfx_maximum(s, x, cfxi_import_in(c, 1));
    if (cfxi_import_has(c, 2))
        x = cfx_minimum(s, x, cfxi_import_in(c, 2));
    return x;
}

cfx_var cfxi_import_identity(cfxi_import_call *c)
{
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    return cfxi_import_in(c, 0);
}

/* ---- remainders, bits, infinities ---------------------------------------------------------- */

/* The remainder has the sign of the divisor, or with fmod that of the number. */
cfx_var cfxi_import_mod(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var a = cfxi_import_in(c, 0);
    const cfx_var b = cfxi_import_in(c, 1);
    return cfxi_import_int(c, "fmod", 0) ? cfx_fmod(s, a, b) : cfx_remainder(s, a, b);
}

cfx_var cfxi_import_bit_shift(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var a = cfxi_import_in(c, 0);
    const cfx_var b = cfxi_import_in(c, 1);
    if (cfxi_import_is(c, "direction", "", "LEFT"))
        return cfx_bitwise_left_shift(s, a, b);
    if (cfxi_import_is(c, "direction", "", "RIGHT"))
        return cfx_bitwise_right_shift(s, a, b);
    return cfxi_import_fail(c, CFX_E_VALUE, "'direction' must be LEFT or RIGHT");
}

cfx_var cfxi_import_is_inf(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const bool below = cfxi_import_int(c, "detect_negative", 1) != 0;
    const bool above = cfxi_import_int(c, "detect_positive", 1) != 0;
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var any = cfx_isinf(s, x);
    if (below && above)
        return any;
    const cfx_var zero = cfx_zeros_like(s, x);
    const cfx_var side = below ? cfx_lt(s, x, zero) : above ? cfx_gt(s, x, zero) : cfx_ne(s, x, x);
    return cfx_logical_and(s, any, side);
}
