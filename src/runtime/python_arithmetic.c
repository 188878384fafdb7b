/* python_arithmetic.c - arithmetic and comparison rows on Python's numbers and containers. */
#include "python_impl.h"

#include <math.h>

/* ---- the table ----------------------------------------------------------------------------- */

static const uint8_t actions[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_add] = CFXI_PY_ADD,
    [CFX_OPID_sub] = CFXI_PY_SUB,
    [CFX_OPID_mul] = CFXI_PY_MUL,
    [CFX_OPID_div] = CFXI_PY_TRUE_DIV,
    [CFX_OPID_floor_divide] = CFXI_PY_FLOOR_DIV,
    [CFX_OPID_remainder] = CFXI_PY_MOD,
    [CFX_OPID_pow] = CFXI_PY_POW,
    [CFX_OPID_bitwise_and] = CFXI_PY_AND,
    [CFX_OPID_bitwise_or] = CFXI_PY_OR,
    [CFX_OPID_bitwise_xor] = CFXI_PY_XOR,
    [CFX_OPID_bitwise_left_shift] = CFXI_PY_SHIFT_LEFT,
    [CFX_OPID_bitwise_right_shift] = CFXI_PY_SHIFT_RIGHT,
    [CFX_OPID_eq] = CFXI_PY_EQ,
    [CFX_OPID_ne] = CFXI_PY_NE,
    [CFX_OPID_lt] = CFXI_PY_LT,
    [CFX_OPID_le] = CFXI_PY_LE,
    [CFX_OPID_gt] = CFXI_PY_GT,
    [CFX_OPID_ge] = CFXI_PY_GE,
    [CFX_OPID_maximum] = CFXI_PY_MAX,
    [CFX_OPID_minimum] = CFXI_PY_MIN,
    [CFX_OPID_neg] = CFXI_PY_NEG,
    [CFX_OPID_positive] = CFXI_PY_POS,
    [CFX_OPID_abs] = CFXI_PY_ABS,
    [CFX_OPID_bitwise_not] = CFXI_PY_INVERT,
    [CFX_OPID_floor] = CFXI_PY_FLOOR,
    [CFX_OPID_ceil] = CFXI_PY_CEIL,
    [CFX_OPID_trunc] = CFXI_PY_TRUNC,
    [CFX_OPID_round] = CFXI_PY_ROUND,
    [CFX_OPID_sqrt] = CFXI_PY_SQRT,
    [CFX_OPID_exp] = CFXI_PY_EXP,
    [CFX_OPID_log] = CFXI_PY_LOG,
    [CFX_OPID_sin] = CFXI_PY_SIN,
    [CFX_OPID_cos] = CFXI_PY_COS,
};

static cfxi_py_action action_of(cfx_operator op)
{
    cfxi_py_action a = (cfxi_py_action)actions[op];
    return a ? a : (cfxi_py_action)actions[cfx_operator_functional(op)];
}

bool cfxi_rt_python_takes(cfx_operator op, const cfx_datum *args, size_t n)
{
    cfxi_py_action a = action_of(op);
    size_t operands = a >= CFXI_PY_FIRST_UNARY ? 1 : 2;
    if (a == CFXI_PY_NOTHING || n < operands)
        return false;
    bool same = a == CFXI_PY_EQ || a == CFXI_PY_NE;
    if (same && args[0].kind == CFX_DATUM_TENSOR)  /* tensor == None */
        return args[1].kind != CFX_DATUM_TENSOR && !cfxi_rt_is_number(args[1]);
    for (size_t i = 0; i < operands; i++)
        if (args[i].kind == CFX_DATUM_TENSOR || args[i].kind == CFX_DATUM_INVALID)
            return false;
    for (size_t i = operands; i < n; i++)  /* alpha, rounding_mode: a call of torch's */
        if (args[i].kind != CFX_DATUM_INVALID && args[i].kind != CFX_DATUM_NONE)
            return false;
    return true;
}

/* ---- containers ---------------------------------------------------------------------------- */

/* `times` copies of `a` one after the other, then `b` (INVALID: nothing). */
static cfx_datum join(cfxi_call *c, cfx_datum a, int64_t times, cfx_datum b)
{
    size_t n;
    size_t m;
    size_t total;
    size_t bytes;
    bool text = a.kind == CFX_DATUM_STR;
    const char *as = cfx_datum_text(a, &n);
    const char *bs = cfx_datum_text(b, &m);
    const cfx_datum *ai = text ? NULL : cfx_datum_items(a, &n);
    const cfx_datum *bi = text ? NULL : cfx_datum_items(b, &m);
    size_t item = text ? 1 : sizeof *ai;
    char *made = NULL;
    times = times < 0 ? 0 : times;
    if (cfxi_base_mul_size(n, (size_t)times, m, &total) &&
        cfxi_base_mul_size(total, item, 1, &bytes))
        made = cfxi_rt_scratch(c->rt, bytes);
    if (!made) {
        cfxi_base_nomem(c->err);
        return cfxi_rt_invalid();
    }
    const void *from_a = text ? (const void *)as : (const void *)ai;
    const void *from_b = text ? (const void *)bs : (const void *)bi;
    for (size_t i = 0; n > 0 && i < (size_t)times; i++)
        memcpy(made + i * n * item, from_a, n * item);
    if (m > 0)
        memcpy(made + (size_t)times * n * item, from_b, m * item);
    cfx_datum r = text ? cfx_datum_from_text(CFX_DATUM_STR, made, total, c->rt->allocator, c->err)
                       : cfx_datum_seq((cfx_datum_kind)a.kind, (const cfx_datum *)(void *)made,
                                       total, c->rt->allocator, c->err);
    cfxi_rt_scratch_free(c->rt, made);
    if (cfx_datum_row(a) == CFX_OPID_size || cfx_datum_row(b) == CFX_OPID_size)
        cfx_datum_set_row(r, CFX_OPID_size);  /* sizes and others are sizes */
    return r;
}

static bool is_sequence(cfx_datum d)
{
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE || d.kind == CFX_DATUM_STR;
}

cfx_datum cfxi_rt_python_concat(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (!is_sequence(a) || a.kind != b.kind)
        return cfxi_rt_py_fail_kinds(c, CFXI_PY_ADD, a, b);
    return join(c, a, 1, b);
}

/* d | e: the keys of both, the values of the second. */
static cfx_datum unite(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    size_t bytes;
    const cfx_datum *left = cfx_datum_items(a, &n);
    const cfx_datum *right = cfx_datum_items(b, &m);
    cfx_datum *all = cfxi_base_mul_size(n + m + 1, sizeof *all, 0, &bytes)
                         ? cfxi_rt_scratch(c->rt, bytes)
                         : NULL;
    cfx_datum result = cfxi_rt_invalid();
    if (!all) {
        cfxi_base_nomem(c->err);
        return result;
    }
    if (n > 0)
        memcpy(all, left, n * sizeof *all);
    for (size_t i = 0; i < m; i += 2) {
        size_t at;
        if (cfxi_rt_python_find_key(c, all, n, right[i], &at) != CFX_OK)
            break;
        all[at] = at < n ? all[at] : right[i];
        all[at + 1] = right[i + 1];
        n = at < n ? n : n + 2;
    }
    if (c->err->status == CFX_OK)
        result = cfx_datum_seq(CFX_DATUM_DICT, all, n, c->rt->allocator, c->err);
    cfxi_rt_scratch_free(c->rt, all);
    return result;
}

/* ---- containers that change ---------------------------------------------------------------- */

static cfx_datum given_back(cfx_status status, cfx_datum d)
{
    return status == CFX_OK ? cfx_datum_retain(d) : cfxi_rt_invalid();
}

/* list += items: the same list, for all who hold it. */
static cfx_datum extend(cfxi_call *c, cfx_datum list, cfx_datum more)
{
    size_t at;
    size_t n;
    const cfx_datum *items = cfx_datum_items(more, &n);
    if (more.kind != CFX_DATUM_LIST && more.kind != CFX_DATUM_TUPLE) {
        cfxi_fail(c, CFX_E_TYPE, "only a list or a tuple can be added to a list, not '%s'",
                  cfxi_rt_py_kind_of(more));
        return cfxi_rt_invalid();
    }
    cfx_datum_items(list, &at);
    return given_back(cfxi_tensor_splice(list, at, 0, items, n, c->err), list);
}

/* The items of `from`, which is made from those of `d` and is released, take their place. */
static cfx_datum become(cfxi_call *c, cfx_datum d, cfx_datum from)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(from, &m);
    cfx_datum_items(d, &n);
    if (from.kind == CFX_DATUM_INVALID)
        return from;
    const cfx_status status = cfxi_tensor_splice(d, 0, n, items, m, c->err);
    cfx_datum_release(from);
    return given_back(status, d);
}

static cfx_datum repeat(cfxi_call *c, cfx_datum sequence, cfx_datum times)
{
    if (times.symbolic)
        return cfxi_rt_py_fail_value(c, "a sequence cannot be repeated a symbolic number of times");
    return join(c, sequence, cfxi_rt_py_int(times), cfxi_rt_invalid());
}

/* ---- one operand --------------------------------------------------------------------------- */

static double round_even(double x) { return nearbyint(x); }

/* What gives an integer of a float. */
static cfx_datum to_whole(cfxi_call *c, double (*f)(double), cfx_datum d)
{
    if (cfxi_rt_py_is_integral(d))
        return d.symbolic ? d : cfx_datum_int(cfxi_rt_py_int(d));
    double whole = f(d.as.f);
    if (!(whole >= -0x1p63 && whole < 0x1p63)) {
        cfxi_rt_py_fail_whole(c, d.as.f);
        return cfxi_rt_invalid();
    }
    return cfx_datum_int((int64_t)whole);
}

static cfx_datum float_function(cfxi_call *c, cfxi_py_action a, cfx_datum d)
{
    double x = cfxi_rt_py_float(d);
    if (d.symbolic)
        return cfxi_rt_py_unknown(CFX_DATUM_FLOAT);
    if ((a == CFXI_PY_SQRT && x < 0) || (a == CFXI_PY_LOG && x <= 0))
        return cfxi_rt_py_fail_value(c, "math domain error");
    if ((a == CFXI_PY_SIN || a == CFXI_PY_COS) && isinf(x))
        return cfxi_rt_py_fail_value(c, "math domain error");
    const double y = a == CFXI_PY_SQRT  ? sqrt(x)
                     : a == CFXI_PY_EXP ? exp(x)
                     : a == CFXI_PY_LOG ? log(x)
                     : a == CFXI_PY_SIN ? sin(x)
                                        : cos(x);
    if (isinf(y) && isfinite(x)) {
        cfxi_fail(c, CFX_E_OVERFLOW, "math range error");
        return cfxi_rt_invalid();
    }
    return cfx_datum_float(y);
}

static cfx_datum negated(cfxi_call *c, cfx_datum d)
{
    return cfxi_rt_py_arithmetic(c, CFXI_PY_SUB, cfx_datum_int(0), d);
}

static cfx_datum absolute(cfxi_call *c, cfx_datum d)
{
    if (d.kind == CFX_DATUM_COMPLEX) {
        const double size = hypot(d.as.c[0], d.as.c[1]);
        if (isinf(size) && isfinite(d.as.c[0]) && isfinite(d.as.c[1])) {
            cfxi_fail(c, CFX_E_OVERFLOW, "absolute value too large");
            return cfxi_rt_invalid();
        }
        return cfx_datum_float(size);
    }
    if (d.kind == CFX_DATUM_FLOAT)
        return cfx_datum_float(fabs(d.as.f));
    if (d.symbolic)
        return cfxi_rt_python_choose(c, d, negated(c, d), true);
    return cfxi_rt_py_int(d) < 0 ? negated(c, d) : cfx_datum_int(cfxi_rt_py_int(d));
}

/* What is known of an action on a bool, float or complex number that nobody knows: its kind. */
static cfx_datum unary_unknown(cfxi_py_action a, cfx_datum d)
{
    const bool whole = a >= CFXI_PY_FLOOR && a <= CFXI_PY_ROUND;
    const bool sign = a >= CFXI_PY_NEG && a <= CFXI_PY_INVERT;
    if (whole || (sign && d.kind == CFX_DATUM_BOOL))
        return cfxi_rt_py_unknown(CFX_DATUM_INT);
    return cfxi_rt_py_unknown(sign && a != CFXI_PY_ABS ? (cfx_datum_kind)d.kind : CFX_DATUM_FLOAT);
}

cfx_datum cfxi_rt_py_unary(cfxi_call *c, cfxi_py_action a, cfx_datum d)
{
    bool complex = d.kind == CFX_DATUM_COMPLEX;
    if (!cfxi_rt_is_number(d) || (complex && a > CFXI_PY_ABS) ||
        (a == CFXI_PY_INVERT && !cfxi_rt_py_is_integral(d))) {
        cfxi_fail(c, CFX_E_TYPE, "bad operand type: '%s'",
                  cfx_datum_kind_name((cfx_datum_kind)d.kind));
        return cfxi_rt_invalid();
    }
    if (d.symbolic && d.kind != CFX_DATUM_INT)
        return unary_unknown(a, d);
    switch (a) {
    case CFXI_PY_NEG:
        if (complex)
            return cfx_datum_complex(-d.as.c[0], -d.as.c[1]);
        if (d.kind == CFX_DATUM_FLOAT) {
            d.as.f = -d.as.f;
            return d;
        }
        return negated(c, d);
    case CFXI_PY_POS: return d.kind == CFX_DATUM_BOOL ? cfx_datum_int(d.as.b) : d;
    case CFXI_PY_ABS: return absolute(c, d);
    case CFXI_PY_INVERT:
        return d.symbolic ? cfxi_rt_py_arithmetic(c, CFXI_PY_SUB, negated(c, d), cfx_datum_int(1))
                          : cfx_datum_int(~cfxi_rt_py_int(d));
    case CFXI_PY_FLOOR: return to_whole(c, floor, d);
    case CFXI_PY_CEIL: return to_whole(c, ceil, d);
    case CFXI_PY_TRUNC: return to_whole(c, trunc, d);
    case CFXI_PY_ROUND: return to_whole(c, round_even, d);
    default: return float_function(c, a, d);
    }
}

/* ---- the call ------------------------------------------------------------------------------ */

cfx_datum cfxi_rt_python_call(cfxi_call *c, bool in_place)
{
    cfxi_py_action a = action_of(c->op);
    cfx_datum x = c->args[0];
    if (a >= CFXI_PY_FIRST_UNARY)
        return cfxi_rt_py_unary(c, a, x);
    cfx_datum y = c->args[1];
    if (a >= CFXI_PY_EQ && a <= CFXI_PY_GE)
        return cfxi_rt_py_compare(c, a, x, y);
    if (a == CFXI_PY_MAX || a == CFXI_PY_MIN)
        return cfxi_rt_python_choose(c, x, y, a == CFXI_PY_MAX);
    const bool list = in_place && x.kind == CFX_DATUM_LIST;
    if (a == CFXI_PY_ADD && list)
        return extend(c, x, y);
    if (a == CFXI_PY_ADD && is_sequence(x))
        return cfxi_rt_python_concat(c, x, y);
    if (a == CFXI_PY_OR && x.kind == CFX_DATUM_DICT && y.kind == CFX_DATUM_DICT)
        return in_place ? become(c, x, unite(c, x, y)) : unite(c, x, y);
    if (a == CFXI_PY_MUL && is_sequence(x) && cfxi_rt_py_is_integral(y))
        return list ? become(c, x, repeat(c, x, y)) : repeat(c, x, y);
    if (a == CFXI_PY_MUL && is_sequence(y) && cfxi_rt_py_is_integral(x))
        return repeat(c, y, x);
    if (!cfxi_rt_is_number(x) || !cfxi_rt_is_number(y))
        return cfxi_rt_py_fail_kinds(c, a, x, y);
    return cfxi_rt_py_arithmetic(c, a, x, y);
}

/* ---- for the rows of Python's functions ---------------------------------------------------- */

cfx_status cfxi_rt_python_number(cfxi_call *c, cfx_datum d, cfx_datum *out)
{
    *out = d;
    if (d.kind != CFX_DATUM_TENSOR)
        return CFX_OK;
    *out = cfxi_rt_sub(c, CFX_OPID_item, &d, 1);
    return out->kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

cfx_status cfxi_rt_python_index(cfxi_call *c, cfx_datum d, cfx_datum *out)
{
    CFX_TRY(cfxi_rt_python_number(c, d, out));
    if (!cfxi_rt_py_is_integral(*out))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object cannot be interpreted as an integer",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (out->kind == CFX_DATUM_BOOL)
        *out = cfx_datum_int(out->as.b);
    return CFX_OK;
}

cfx_status cfxi_rt_python_truth(cfxi_call *c, cfx_datum d, cfxi_truth *out)
{
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR) {
        int64_t elements = 1;
        for (size_t i = 0; i < d.as.tensor->ndim; i++)
            elements = cfx_dim_mul(c->dims, elements, d.as.tensor->size[i], c->err);
        if (elements != CFX_DIM_UNKNOWN && !cfxi_rt_same_size(c, elements, 1))
            return cfxi_fail(c, CFX_E_SHAPE, "Boolean value of Tensor with %s is ambiguous",
                             elements ? "more than one value" : "no values");
        CFX_TRY(cfxi_rt_python_number(c, d, &d));
    }
    if (cfxi_rt_is_number(d)) {
        CFX_TRY(cfxi_rt_python_equal(c, d, cfx_datum_int(0), out));
        *out = *out == CFXI_DEPENDS ? *out : *out == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
        if (d.kind == CFX_DATUM_BOOL)
            *out = d.symbolic ? CFXI_DEPENDS : d.as.b ? CFXI_TRUE : CFXI_FALSE;
        return CFX_OK;
    }
    bool full = d.kind != CFX_DATUM_NONE;
    if (cfx_datum_items(d, &n) && d.kind != CFX_DATUM_SLICE)
        full = n > 0;
    if (d.kind == CFX_DATUM_STR && cfx_datum_text(d, &n))
        full = n > 0;
    *out = full ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}
