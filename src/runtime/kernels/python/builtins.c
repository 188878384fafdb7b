/* builtins.c - Python's functions of numbers and lists: min, max, sorted, round, sum, any, all,
 * divmod. */
#include "python_rows_impl.h"

#include <math.h>
#include <stdio.h>

/* ---- min and max --------------------------------------------------------------------------- */

/* The smaller or larger of two: the first if neither is. Of tensors it may depend on elements that
 * nobody knows; then they are taken to be alike. */
static cfx_datum choose(cfxi_call *c, cfx_datum a, cfx_datum b, bool larger)
{
    if (a.kind != CFX_DATUM_TENSOR && b.kind != CFX_DATUM_TENSOR)
        return cfxi_rt_python_choose(c, a, b, larger);
    cfxi_truth other;
    const cfx_datum both[] = {b, a};
    cfx_datum less = cfxi_rt_sub(c, larger ? CFX_OPID_gt : CFX_OPID_lt, both, 2);
    if (less.kind == CFX_DATUM_INVALID)
        return less;
    const cfx_status status = cfxi_rt_python_truth(c, less, &other);
    cfx_datum_release(less);
    return status != CFX_OK ? cfxi_rt_invalid() : cfx_datum_retain(other == CFXI_TRUE ? b : a);
}

static cfx_status extreme(cfxi_call *c, bool larger)
{
    size_t n;
    const char *name = larger ? "max" : "min";
    const cfx_datum *args = cfx_datum_items(c->args[0], &n);
    if (n == 0)
        return cfxi_fail(c, CFX_E_TYPE, "%s expected at least 1 argument, got 0", name);
    cfx_datum all = n == 1 ? cfxi_python_items(c, args[0]) : cfx_datum_retain(c->args[0]);
    if (all.kind == CFX_DATUM_INVALID)
        return c->err->status;
    const cfx_datum *items = cfx_datum_items(all, &n);
    cfx_datum best = n > 0 ? cfx_datum_retain(items[0]) : cfxi_rt_invalid();
    if (n == 0)
        cfxi_fail(c, CFX_E_VALUE, "%s() arg is an empty sequence", name);
    for (size_t i = 1; i < n && best.kind != CFX_DATUM_INVALID; i++) {
        cfx_datum next = choose(c, best, items[i], larger);
        cfx_datum_release(best);
        best = next;
    }
    cfx_datum_release(all);
    return cfxi_python_give(c, best);
}

cfx_status cfxi_rule_builtin_min(cfxi_call *c) { return extreme(c, false); }
cfx_status cfxi_rule_builtin_max(cfxi_call *c) { return extreme(c, true); }

/* ---- sorted -------------------------------------------------------------------------------- */

typedef struct sorting {
    cfxi_call *c;
    const cfx_datum *items;
    bool known;              /* no comparison depends on what nobody knows */
} sorting;

/* What nobody knows leaves two items as they are. */
static int is_less(void *ctx, size_t i, size_t k)
{
    sorting *s = ctx;
    const cfx_datum both[] = {s->items[i], s->items[k]};
    const bool tensors = both[0].kind == CFX_DATUM_TENSOR || both[1].kind == CFX_DATUM_TENSOR;
    cfx_datum less = tensors ? cfxi_rt_sub(s->c, CFX_OPID_lt, both, 2)
                             : cfxi_rt_py_compare(s->c, CFXI_PY_LT, both[0], both[1]);
    cfxi_truth t;
    if (less.kind == CFX_DATUM_INVALID)
        return -1;
    const cfx_status status = cfxi_rt_python_truth(s->c, less, &t);
    cfx_datum_release(less);
    if (status != CFX_OK)
        return -1;
    s->known = s->known && t != CFXI_DEPENDS;
    return t == CFXI_TRUE;
}

/* Whether one of them is not a number, in lists and tuples, too. */
static bool has_nan(const cfx_datum *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t m = 0;
        const cfx_datum *inner = cfx_datum_items(items[i], &m);
        if ((items[i].kind == CFX_DATUM_FLOAT && isnan(items[i].as.f)) ||
            (inner && has_nan(inner, m)))
            return true;
    }
    return false;
}

/* The items in order, retained, as a list. Where the order is not known, neither is any number. */
static cfx_datum ordered(cfxi_call *c, const sorting *s, const size_t *order, size_t n)
{
    size_t bytes;
    cfx_datum list = cfxi_rt_invalid();
    cfx_datum *out = cfxi_base_mul_size(n + 1, sizeof *out, 0, &bytes)
                         ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!out) {
        cfxi_base_nomem(c->err);
        return list;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = s->items[order[i]];
        if (!s->known && cfxi_rt_is_number(out[i]))
            out[i] = cfxi_rt_py_unknown((cfx_datum_kind)out[i].kind);
    }
    list = cfx_datum_seq(CFX_DATUM_LIST, out, n, c->rt->allocator, c->err);
    cfxi_rt_scratch_free(c->rt, out);
    return list;
}

cfx_status cfxi_rule_builtin_sorted(cfxi_call *c)
{
    size_t n;
    size_t bytes;
    cfx_datum list = cfxi_rt_invalid();
    cfx_datum all = cfxi_python_items(c, c->args[0]);
    if (all.kind == CFX_DATUM_INVALID)
        return c->err->status;
    sorting s = {.c = c, .items = cfx_datum_items(all, &n), .known = true};
    size_t *order = cfxi_base_mul_size(n + 1, 2 * sizeof *order, 0, &bytes)
                        ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!order)
        cfxi_base_nomem(c->err);
    else if (n >= CFXI_SHORT_SORT && has_nan(s.items, n))
        cfxi_fail(c, CFX_E_UNSUPPORTED, "cannot sort %d or more numbers if one is NaN: it has no "
                  "place in the order; take NaN out first", CFXI_SHORT_SORT);
    else if (cfxi_base_sort(order, order + n, n, cfxi_rt_bool(c, 1), is_less, &s))
        list = ordered(c, &s, order, n);
    if (order)
        cfxi_rt_scratch_free(c->rt, order);
    cfx_datum_release(all);
    return cfxi_python_give(c, list);
}

/* ---- round --------------------------------------------------------------------------------- */

/* To so many digits after the point: the decimal that is nearest to what the float is exactly. */
static double round_to(double x, int64_t digits)
{
    enum { MOST = 323 };  /* a double has no more */
    char text[2 * MOST + 8];
    double nearest;
    if (!isfinite(x) || digits > MOST)
        return x;
    if (digits < -MOST)
        return copysign(0, x);
    if (digits < 0) {
        const double unit = pow(10, (double)-digits);
        return nearbyint(x / unit) * unit;
    }
    const int size = snprintf(text, sizeof text, "%.*f", (int)digits, x);
    for (int i = 0; i < size; i++)
        if (text[i] != '-' && (text[i] < '0' || text[i] > '9'))
            text[i] = '.';  /* whatever the locale has in its place */
    return cfxi_base_parse_float(text, (size_t)size, &nearest) ? nearest : x;
}

/* An integer to tens, hundreds, ...; of two that are as near, the even one. */
static cfx_datum round_whole(cfxi_call *c, int64_t x, int64_t digits)
{
    int64_t unit = 1;
    for (int64_t i = 0; i > digits; i--)
        if (unit > INT64_MAX / 10)
            return cfx_datum_int(0);
        else
            unit *= 10;
    const int64_t rest = ((x % unit) + unit) % unit;
    const int64_t down = (x - rest) / unit;
    const bool up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
    return cfxi_rt_py_arithmetic(c, CFXI_PY_MUL, cfx_datum_int(down + up), cfx_datum_int(unit));
}

cfx_status cfxi_rule_builtin_round(cfxi_call *c)
{
    cfx_datum x = c->args[0];
    cfx_datum digits = cfx_datum_int(0);
    const bool whole = cfxi_rt_is_none(c, 1);
    if (!whole)
        CFX_TRY(cfxi_rt_python_index(c, c->args[1], &digits));
    if (x.kind == CFX_DATUM_TENSOR) {
        const cfx_datum args[] = {x, digits};
        return cfxi_python_give(c, cfxi_rt_sub(c, CFX_OPID_round, args, 2));
    }
    if (!cfxi_rt_py_is_integral(x) && x.kind != CFX_DATUM_FLOAT)
        return cfxi_fail(c, CFX_E_TYPE, "type %s doesn't define __round__ method",
                         cfxi_rt_py_kind_of(x));
    if (x.symbolic || digits.symbolic)
        return cfxi_python_give(c, cfxi_rt_py_is_integral(x) && x.symbolic ? x
                                   : cfxi_rt_py_is_integral(x) || whole
                                       ? cfxi_rt_py_unknown(CFX_DATUM_INT)
                                       : cfxi_rt_py_unknown(CFX_DATUM_FLOAT));
    if (cfxi_rt_py_is_integral(x))
        return cfxi_python_give(c, round_whole(c, cfxi_rt_py_int(x), digits.as.i));
    if (!whole) {
        const double rounded = round_to(x.as.f, digits.as.i);
        if (isinf(rounded) && isfinite(x.as.f))
            return cfxi_fail(c, CFX_E_OVERFLOW, "rounded value too large to represent");
        return cfxi_python_give(c, cfx_datum_float(rounded));
    }
    const double f = nearbyint(x.as.f);
    if (!(f >= -0x1p63 && f < 0x1p63))
        return cfxi_rt_py_fail_whole(c, f);
    return cfxi_python_give(c, cfx_datum_int((int64_t)f));
}

/* ---- sum, any, all, divmod ----------------------------------------------------------------- */

cfx_status cfxi_rule_builtin_sum(cfxi_call *c)
{
    size_t n;
    cfx_datum all = cfxi_python_items(c, c->args[0]);
    if (all.kind == CFX_DATUM_INVALID)
        return c->err->status;
    const cfx_datum *items = cfx_datum_items(all, &n);
    cfx_datum sum = cfx_datum_retain(c->args[1]);
    for (size_t i = 0; i < n && sum.kind != CFX_DATUM_INVALID; i++) {
        const cfx_datum both[] = {sum, items[i]};
        cfx_datum next = cfxi_rt_sub(c, CFX_OPID_add, both, 2);
        cfx_datum_release(sum);
        sum = next;
    }
    cfx_datum_release(all);
    return cfxi_python_give(c, sum);
}

/* Whether one item is true, or all are; what is left then does not count. */
static cfx_status truths(cfxi_call *c, cfxi_truth decisive)
{
    size_t n;
    cfxi_truth result = decisive == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
    cfx_datum all = cfxi_python_items(c, c->args[0]);
    if (all.kind == CFX_DATUM_INVALID)
        return c->err->status;
    const cfx_datum *items = cfx_datum_items(all, &n);
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < n && result != decisive; i++) {
        cfxi_truth one;
        status = cfxi_rt_python_truth(c, items[i], &one);
        if (status == CFX_OK && (one == decisive || one == CFXI_DEPENDS))
            result = one;
    }
    cfx_datum_release(all);
    return status == CFX_OK ? cfxi_python_give(c, cfxi_rt_truth_datum(result)) : status;
}

cfx_status cfxi_rule_builtin_any(cfxi_call *c) { return truths(c, CFXI_TRUE); }
cfx_status cfxi_rule_builtin_all(cfxi_call *c) { return truths(c, CFXI_FALSE); }

cfx_status cfxi_rule_builtin_divmod(cfxi_call *c)
{
    cfx_datum both[2];
    both[0] = cfxi_rt_sub(c, CFX_OPID_floor_divide, c->args, 2);
    if (both[0].kind == CFX_DATUM_INVALID)
        return c->err->status;
    both[1] = cfxi_rt_sub(c, CFX_OPID_remainder, c->args, 2);
    cfx_datum pair = cfxi_rt_invalid();
    if (both[1].kind != CFX_DATUM_INVALID)
        pair = cfx_datum_seq(CFX_DATUM_TUPLE, both, 2, c->rt->allocator, c->err);
    cfx_datum_release(both[0]);
    cfx_datum_release(both[1]);
    return cfxi_python_give(c, pair);
}
