/* export_arithmetic.c - element-wise arithmetic of tensors and numbers.
 *
 * Operands are cast to the type of the result, as PyTorch's promotion has it; ONNX has no
 * arithmetic on bool, and its engines none on small integers, so that those are computed in int32.
 */
#include "export_impl.h"

#include <math.h>

/* Two operands in the type to compute in. */
static cfxi_ev *both(cfxi_export_call *c, const char *op, cfxi_ev *a, cfxi_ev *b)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    return NODE(op, CAST(a, dtype), CAST(b, dtype));
}

/* x * alpha, in the type of the result. */
static cfxi_ev *times_alpha(cfxi_export_call *c, cfxi_ev *x, size_t alpha)
{
    if (cfxi_export_is_known(c->args[alpha]) && cfxi_export_float(c, alpha) == 1)
        return x;
    return both(c, "Mul", x, ARG(alpha));
}

/* (a, b) + (c, d), as operator.add of Python's lists has it. */
static cfxi_ev *join_lists(cfxi_export_call *c)
{
    const cfxi_ev *a = c->args[0];
    const cfxi_ev *b = c->args[1];
    cfxi_ev **items = cfxi_export_room(c->x, a->n + b->n, sizeof *items);
    if (!items)
        return &c->x->broken;
    for (size_t i = 0; i < a->n + b->n; i++)
        items[i] = i < a->n ? a->items[i] : b->items[i - a->n];
    return cfxi_export_list(c->x, items, a->n + b->n);
}

static bool is_list(const cfxi_export_call *c)
{
    size_t n;
    return cfx_datum_items(c->result, &n) != NULL;
}

cfxi_ev *cfxi_export_add(cfxi_export_call *c)
{
    if (is_list(c))
        return join_lists(c);
    return both(c, "Add", ARG(0), times_alpha(c, ARG(1), 2));
}

cfxi_ev *cfxi_export_sub(cfxi_export_call *c)
{
    return both(c, "Sub", ARG(0), times_alpha(c, ARG(1), 2));
}

cfxi_ev *cfxi_export_rsub(cfxi_export_call *c)
{
    return both(c, "Sub", ARG(1), times_alpha(c, ARG(0), 2));
}

cfxi_ev *cfxi_export_mul(cfxi_export_call *c)
{
    if (!is_list(c))
        return both(c, "Mul", ARG(0), ARG(1));
    const size_t of = c->args[0]->items ? 0 : 1;
    const cfxi_ev *list = c->args[of];
    size_t n;
    cfx_datum_items(c->result, &n);
    cfxi_ev **items = cfxi_export_room(c->x, n, sizeof *items);
    for (size_t i = 0; items && list->n && i < n; i++)
        items[i] = list->items[i % list->n];
    return items ? cfxi_export_list(c->x, items, n) : &c->x->broken;
}

/* ---- division ------------------------------------------------------------------------------ */

/* Towards zero. */
static cfxi_ev *truncate(cfxi_export_call *c, cfxi_ev *x)
{
    return NODE("Mul", NODE("Sign", x), NODE("Floor", NODE("Abs", x)));
}

/* Integers: ONNX's Mod has the sign of the divisor, so what it leaves can be divided. */
static cfxi_ev *floor_divide(cfxi_export_call *c, cfxi_ev *a, cfxi_ev *b)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    a = CAST(a, dtype);
    b = CAST(b, dtype);
    if (cfx_dtype_is_float(dtype))
        return NODE("Floor", NODE("Div", a, b));
    return NODE("Div", NODE("Sub", a, NODE("Mod", a, b)), b);
}

cfxi_ev *cfxi_export_floor_divide(cfxi_export_call *c) { return floor_divide(c, ARG(0), ARG(1)); }

cfxi_ev *cfxi_export_div(cfxi_export_call *c)
{
    if (cfxi_export_is(c, 2, "floor"))
        return floor_divide(c, ARG(0), ARG(1));
    cfxi_ev *made = both(c, "Div", ARG(0), ARG(1));
    const bool whole = cfxi_export_is(c, 2, "trunc") && cfx_dtype_is_float(made->dtype);
    return whole ? truncate(c, made) : made;
}

cfxi_ev *cfxi_export_remainder(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    cfxi_ev *a = CAST(ARG(0), dtype);
    cfxi_ev *b = CAST(ARG(1), dtype);
    cfxi_ev *m = NODE("Mod", a, b);
    if (!cfx_dtype_is_float(dtype))
        return m;
    SET_INT("fmod", 1);
    cfxi_ev *zero = LIKE(m, 0);
    cfxi_ev *turned = NODE("Less", NODE("Mul", NODE("Sign", m), NODE("Sign", b)), zero);
    return NODE("Where", turned, NODE("Add", m, b), m);
}

cfxi_ev *cfxi_export_fmod(cfxi_export_call *c)
{
    cfxi_ev *m = both(c, "Mod", ARG(0), ARG(1));
    SET_INT("fmod", 1);
    return m;
}

cfxi_ev *cfxi_export_divmod(cfxi_export_call *c)
{
    cfxi_ev *parts[] = {APPLY(floor_divide, c->args[0], c->args[1]),
                        APPLY(remainder, c->args[0], c->args[1])};
    return cfxi_export_list(c->x, parts, 2);
}

/* ---- powers and logarithms ----------------------------------------------------------------- */

/* Python's 2 ** -1 is a float, which is not what types alone tell. */
cfxi_ev *cfxi_export_pow(cfxi_export_call *c)
{
    const cfxi_ev *by = c->args[1];
    if (c->result.kind == CFX_DATUM_INT && cfxi_export_is_known(by) && by->datum.as.i < 0)
        return cfxi_export_refuse(c, "an integer to a negative power is not written; use a float");
    return both(c, "Pow", ARG(0), ARG(1));
}

cfxi_ev *cfxi_export_square(cfxi_export_call *c) { return both(c, "Mul", ARG(0), ARG(0)); }

cfxi_ev *cfxi_export_rsqrt(cfxi_export_call *c)
{
    return NODE("Reciprocal", NODE("Sqrt", IN(0)));
}

cfxi_ev *cfxi_export_exp2(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Pow", LIKE(x, 2), x);
}

/* 2 sinh(x/2) exp(x/2), which is exact where exp(x) is nearly 1. */
cfxi_ev *cfxi_export_expm1(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *half = NODE("Mul", x, LIKE(x, 0.5));
    return NODE("Mul", NODE("Mul", NODE("Sinh", half), NODE("Exp", half)), LIKE(x, 2));
}

static cfxi_ev *log_base(cfxi_export_call *c, double base)
{
    cfxi_ev *x = IN(0);
    return NODE("Div", NODE("Log", x), LIKE(x, log(base)));
}

cfxi_ev *cfxi_export_log2(cfxi_export_call *c) { return log_base(c, 2); }
cfxi_ev *cfxi_export_log10(cfxi_export_call *c) { return log_base(c, 10); }

/* 2 atanh(x/(2 + x)) near zero, where 1 + x loses what x has. */
static cfxi_ev *log1p_of(cfxi_export_call *c, cfxi_ev *x)
{
    cfxi_ev *two = LIKE(x, 2);
    cfxi_ev *near = NODE("Mul", two, NODE("Atanh", NODE("Div", x, NODE("Add", x, two))));
    cfxi_ev *far = NODE("Log", NODE("Add", x, LIKE(x, 1)));
    return NODE("Where", NODE("Less", NODE("Abs", x), LIKE(x, 0.5)), near, far);
}

cfxi_ev *cfxi_export_log1p(cfxi_export_call *c) { return log1p_of(c, IN(0)); }

cfxi_ev *cfxi_export_logaddexp(cfxi_export_call *c)
{
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    cfxi_ev *apart = NODE("Neg", NODE("Abs", NODE("Sub", a, b)));
    return NODE("Add", NODE("Max", a, b), log1p_of(c, NODE("Exp", apart)));
}

cfxi_ev *cfxi_export_logaddexp2(cfxi_export_call *c)
{
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    cfxi_ev *apart = NODE("Neg", NODE("Abs", NODE("Sub", a, b)));
    cfxi_ev *power = NODE("Pow", LIKE(a, 2), apart);
    return NODE("Add", NODE("Max", a, b), NODE("Div", log1p_of(c, power), LIKE(a, CFXI_LN2)));
}

cfxi_ev *cfxi_export_xlogy(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    cfxi_ev *product = NODE("Mul", x, NODE("Log", y));
    cfxi_ev *zero = NODE("And", NODE("Equal", x, LIKE(x, 0)), NODE("Not", NODE("IsNaN", y)));
    return NODE("Where", zero, LIKE(x, 0), product);
}

cfxi_ev *cfxi_export_logit(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    if (cfxi_export_given(c, 1)) {
        const double eps = cfxi_export_float(c, 1);
        x = NODE("Clip", x, LIKE(x, eps), LIKE(x, 1 - eps));
    }
    return NODE("Log", NODE("Div", x, NODE("Sub", LIKE(x, 1), x)));
}

/* ---- angles -------------------------------------------------------------------------------- */

static cfxi_ev *scaled(cfxi_export_call *c, double factor)
{
    cfxi_ev *x = IN(0);
    return NODE("Mul", x, LIKE(x, factor));
}

cfxi_ev *cfxi_export_deg2rad(cfxi_export_call *c) { return scaled(c, CFXI_PI / 180); }
cfxi_ev *cfxi_export_rad2deg(cfxi_export_call *c) { return scaled(c, 180 / CFXI_PI); }

/* atan(y/x), and half a turn more where x is negative. */
cfxi_ev *cfxi_export_atan2(cfxi_export_call *c)
{
    cfxi_ev *y = IN(0);
    cfxi_ev *x = IN(1);
    cfxi_ev *zero = LIKE(y, 0);
    cfxi_ev *angle = NODE("Atan", NODE("Div", y, x));
    cfxi_ev *up = NODE("GreaterOrEqual", y, zero);
    cfxi_ev *turn = NODE("Where", up, LIKE(y, CFXI_PI), LIKE(y, -CFXI_PI));
    cfxi_ev *left = NODE("Where", NODE("Less", x, zero), NODE("Add", angle, turn), angle);
    cfxi_ev *still = NODE("And", NODE("Equal", x, zero), NODE("Equal", y, zero));
    return NODE("Where", still, zero, left);
}

cfxi_ev *cfxi_export_hypot(cfxi_export_call *c)
{
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    return NODE("Sqrt", NODE("Add", NODE("Mul", a, a), NODE("Mul", b, b)));
}

/* Dividing by it shows the sign of a zero. */
cfxi_ev *cfxi_export_copysign(cfxi_export_call *c)
{
    cfxi_ev *size = NODE("Abs", IN(0));
    cfxi_ev *b = IN(1);
    cfxi_ev *zero = LIKE(b, 0);
    cfxi_ev *low = NODE("Less", NODE("Reciprocal", b), zero);
    return NODE("Where", NODE("Or", low, NODE("Less", b, zero)), NODE("Neg", size), size);
}

cfxi_ev *cfxi_export_sinc(cfxi_export_call *c)
{
    cfxi_ev *x = scaled(c, CFXI_PI);
    cfxi_ev *one = LIKE(x, 1);
    return NODE("Where", NODE("Equal", x, LIKE(x, 0)), one, NODE("Div", NODE("Sin", x), x));
}

cfxi_ev *cfxi_export_erfc(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Sub", LIKE(x, 1), NODE("Erf", x));
}

cfxi_ev *cfxi_export_ndtr(cfxi_export_call *c)
{
    cfxi_ev *x = scaled(c, CFXI_ROOT_HALF);
    return NODE("Mul", LIKE(x, 0.5), NODE("Add", LIKE(x, 1), NODE("Erf", x)));
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Integers are whole already. */
static cfxi_ev *whole(cfxi_export_call *c, const char *op)
{
    cfxi_ev *x = ARG(0);
    return cfx_dtype_is_float(cfxi_export_dtype(x)) ? NODE(op, x) : x;
}

cfxi_ev *cfxi_export_floor(cfxi_export_call *c) { return whole(c, "Floor"); }
cfxi_ev *cfxi_export_ceil(cfxi_export_call *c) { return whole(c, "Ceil"); }

cfxi_ev *cfxi_export_trunc(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    return cfx_dtype_is_float(cfxi_export_dtype(x)) ? truncate(c, x) : x;
}

cfxi_ev *cfxi_export_frac(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Sub", x, truncate(c, x));
}

cfxi_ev *cfxi_export_round(cfxi_export_call *c)
{
    const int64_t decimals = cfxi_export_given(c, 1) ? cfxi_export_int(c, 1) : 0;
    cfxi_ev *x = ARG(0);
    if (decimals == 0 || !cfx_dtype_is_float(cfxi_export_dtype(x)))
        return whole(c, "Round");
    cfxi_ev *factor = LIKE(x, pow(10, (double)decimals));
    return NODE("Div", NODE("Round", NODE("Mul", x, factor)), factor);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static cfxi_ev *bounded(cfxi_export_call *c, cfxi_ev *low, cfxi_ev *high)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    cfxi_ev *x = CAST(ARG(0), dtype);
    if (low)
        x = NODE("Max", x, CAST(low, dtype));
    return high ? NODE("Min", x, CAST(high, dtype)) : x;
}

cfxi_ev *cfxi_export_clamp(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    cfxi_ev *low = ARG(1);
    cfxi_ev *high = ARG(2);
    if ((low && !cfxi_export_is_number(low)) || (high && !cfxi_export_is_number(high)))
        return bounded(c, low, high);
    return NODE("Clip", CAST(ARG(0), dtype), low ? CAST(low, dtype) : NULL,
                high ? CAST(high, dtype) : NULL);
}

cfxi_ev *cfxi_export_clamp_min(cfxi_export_call *c) { return bounded(c, ARG(1), NULL); }
cfxi_ev *cfxi_export_clamp_max(cfxi_export_call *c) { return bounded(c, NULL, ARG(1)); }
cfxi_ev *cfxi_export_maximum(cfxi_export_call *c) { return both(c, "Max", ARG(0), ARG(1)); }
cfxi_ev *cfxi_export_minimum(cfxi_export_call *c) { return both(c, "Min", ARG(0), ARG(1)); }

static cfxi_ev *ignoring_nan(cfxi_export_call *c, const char *op)
{
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    if (!cfx_dtype_is_float(a->dtype))
        return both(c, op, a, b);
    cfxi_ev *most = NODE("Where", NODE("IsNaN", b), a, NODE(op, a, b));
    return NODE("Where", NODE("IsNaN", a), b, most);
}

cfxi_ev *cfxi_export_fmax(cfxi_export_call *c) { return ignoring_nan(c, "Max"); }
cfxi_ev *cfxi_export_fmin(cfxi_export_call *c) { return ignoring_nan(c, "Min"); }

/* The largest finite number of a type. */
static double largest(cfx_dtype dtype)
{
    return dtype == CFX_DTYPE_FLOAT64 ? 1.7976931348623157e308
           : dtype == CFX_DTYPE_FLOAT16 ? 65504.0
           : dtype == CFX_DTYPE_BFLOAT16 ? 3.3895313892515355e38 : 3.4028234663852886e38;
}

cfxi_ev *cfxi_export_nan_to_num(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    const cfx_dtype dtype = cfxi_export_dtype(x);
    if (!cfx_dtype_is_float(dtype))
        return x;
    const double nan = cfxi_export_given(c, 1) ? cfxi_export_float(c, 1) : 0;
    const double high = cfxi_export_given(c, 2) ? cfxi_export_float(c, 2) : largest(dtype);
    const double low = cfxi_export_given(c, 3) ? cfxi_export_float(c, 3) : -largest(dtype);
    cfxi_ev *made = NODE("Where", NODE("IsNaN", x), LIKE(x, nan), x);
    made = NODE("Where", NODE("Equal", x, LIKE(x, INFINITY)), LIKE(x, high), made);
    return NODE("Where", NODE("Equal", x, LIKE(x, -INFINITY)), LIKE(x, low), made);
}

/* ---- three operands ------------------------------------------------------------------------ */

cfxi_ev *cfxi_export_lerp(cfxi_export_call *c)
{
    cfxi_ev *a = IN(0);
    return NODE("Add", a, NODE("Mul", IN(2), NODE("Sub", IN(1), a)));
}

static cfxi_ev *add_scaled(cfxi_export_call *c, const char *op)
{
    cfxi_ev *made = both(c, op, ARG(1), ARG(2));
    return both(c, "Add", ARG(0), times_alpha(c, made, 3));
}

cfxi_ev *cfxi_export_addcmul(cfxi_export_call *c) { return add_scaled(c, "Mul"); }
cfxi_ev *cfxi_export_addcdiv(cfxi_export_call *c) { return add_scaled(c, "Div"); }

/* ---- one operand --------------------------------------------------------------------------- */

/* In a type that ONNX computes in. */
static cfxi_ev *unary(cfxi_export_call *c, const char *op)
{
    return NODE(op, CAST(ARG(0), cfxi_export_computes(cfxi_export_result_dtype(c))));
}

cfxi_ev *cfxi_export_neg(cfxi_export_call *c) { return unary(c, "Neg"); }
cfxi_ev *cfxi_export_abs(cfxi_export_call *c) { return unary(c, "Abs"); }
cfxi_ev *cfxi_export_sign(cfxi_export_call *c) { return unary(c, "Sign"); }
cfxi_ev *cfxi_export_relu(cfxi_export_call *c) { return unary(c, "Relu"); }

/* The argument, in the type of the result. */
cfxi_ev *cfxi_export_itself(cfxi_export_call *c) { return IN(0); }
