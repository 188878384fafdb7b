/* export_compare.c - comparisons, logic and bits. */
#include "export_control_impl.h"

/* Two operands in the type that they have together. */
static cfxi_ev *compare(cfxi_export_call *c, const char *op)
{
    const cfx_dtype common = cfxi_export_common(c, 0, 1);
    const bool as_is = common == CFX_DTYPE_BOOL && strcmp(op, "Equal") == 0;
    const cfx_dtype dtype = as_is ? common : cfxi_export_computes(common);
    return NODE(op, CAST(ARG(0), dtype), CAST(ARG(1), dtype));
}

/* a == b of lists: each item, if they have as many. */
static cfxi_ev *equal_lists(cfxi_export_call *c)
{
    const cfxi_ev *a = c->args[0];
    const cfxi_ev *b = c->args[1];
    cfxi_ev *all = cfxi_export_of_datum(c->x, cfx_datum_bool(a->n == b->n));
    for (size_t i = 0; a->n == b->n && i < a->n; i++)
        all = NODE("And", all, cfxi_export_condition(c, APPLY(eq, a->items[i], b->items[i])));
    return all;
}

/* a < b of lists: the first items that differ decide, or else how many there are. */
static cfxi_ev *less_list(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b, bool or_equal)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    cfxi_ev *less = cfxi_export_of_datum(c->x, cfx_datum_bool(or_equal ? a->n <= b->n
                                                                       : a->n < b->n));
    for (size_t i = n; i-- > 0;) {
        cfxi_ev *x = a->items[i];
        cfxi_ev *y = b->items[i];
        cfxi_ev *same = cfxi_export_condition(c, APPLY(eq, x, y));
        less = NODE("Or", cfxi_export_condition(c, APPLY(lt, x, y)), NODE("And", same, less));
    }
    return less;
}

/* Two lists of known length, two tensors or numbers. */
static bool are_lists(const cfxi_export_call *c)
{
    return cfxi_export_is_list(c->args[0]) && cfxi_export_is_list(c->args[1]);
}

cfxi_ev *cfxi_export_eq(cfxi_export_call *c)
{
    return are_lists(c) ? equal_lists(c) : compare(c, "Equal");
}
cfxi_ev *cfxi_export_ne(cfxi_export_call *c)
{
    return NODE("Not", are_lists(c) ? equal_lists(c) : compare(c, "Equal"));
}
cfxi_ev *cfxi_export_lt(cfxi_export_call *c)
{
    return are_lists(c) ? less_list(c, c->args[0], c->args[1], false) : compare(c, "Less");
}
cfxi_ev *cfxi_export_le(cfxi_export_call *c)
{
    return are_lists(c) ? less_list(c, c->args[0], c->args[1], true) : compare(c, "LessOrEqual");
}
cfxi_ev *cfxi_export_gt(cfxi_export_call *c)
{
    return are_lists(c) ? less_list(c, c->args[1], c->args[0], false) : compare(c, "Greater");
}
cfxi_ev *cfxi_export_ge(cfxi_export_call *c)
{
    return are_lists(c) ? less_list(c, c->args[1], c->args[0], true)
                        : compare(c, "GreaterOrEqual");
}

/* value in x: of a tensor any element, of a list an item, of a dict a key. */
cfxi_ev *cfxi_export_contains(cfxi_export_call *c)
{
    cfxi_ev *all = c->args[0];
    cfxi_ev *wanted = c->args[1];
    const size_t step = all->datum.kind == CFX_DATUM_DICT ? 2 : 1;
    const bool number = cfxi_export_is_number(wanted);
    cfxi_ev *found = cfxi_export_of_datum(c->x, cfx_datum_bool(false));
    if (all->datum.kind == CFX_DATUM_TENSOR)
        return APPLY(any, APPLY(eq, all, wanted));
    if (!number && wanted->datum.kind != CFX_DATUM_TENSOR)
        return cfxi_export_refuse(c, "what is looked for must be a number or a tensor");
    for (size_t i = 0; i < all->n; i += step)
        if (cfxi_export_is_number(all->items[i]) || all->items[i]->datum.kind == CFX_DATUM_TENSOR)
            found = NODE("Or", found, cfxi_export_condition(c, APPLY(eq, all->items[i], wanted)));
    return found;
}

/* Each element of an integer tensor is false. */
static cfxi_ev *never(cfxi_export_call *c, cfxi_ev *x)
{
    return NODE("Not", NODE("Equal", x, x));
}

cfxi_ev *cfxi_export_isnan(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    return cfx_dtype_is_float(cfxi_export_dtype(x)) ? NODE("IsNaN", x) : never(c, x);
}

cfxi_ev *cfxi_export_isinf(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    return cfx_dtype_is_float(cfxi_export_dtype(x)) ? NODE("IsInf", x) : never(c, x);
}

cfxi_ev *cfxi_export_isfinite(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    if (!cfx_dtype_is_float(cfxi_export_dtype(x)))
        return NODE("Equal", x, x);
    return NODE("Not", NODE("Or", NODE("IsNaN", x), NODE("IsInf", x)));
}

static cfxi_ev *close_to(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_common(c, 0, 1);
    const cfx_dtype wide = cfx_dtype_is_float(dtype) ? dtype : CFX_DTYPE_FLOAT64;
    cfxi_ev *a = CAST(ARG(0), wide);
    cfxi_ev *b = CAST(ARG(1), wide);
    cfxi_ev *room = NODE("Add", LIKE(a, cfxi_export_float(c, 3)),
                         NODE("Mul", LIKE(a, cfxi_export_float(c, 2)), NODE("Abs", b)));
    cfxi_ev *near = NODE("LessOrEqual", NODE("Abs", NODE("Sub", a, b)), room);
    near = NODE("Or", NODE("Equal", a, b), near);
    if (!cfxi_export_bool(c, 4))
        return near;
    return NODE("Or", near, NODE("And", NODE("IsNaN", a), NODE("IsNaN", b)));
}

cfxi_ev *cfxi_export_isclose(cfxi_export_call *c) { return close_to(c); }

static cfxi_ev *all_of(cfxi_export_call *c, cfxi_ev *x)
{
    return CAST(cfxi_export_reduce(c, "ReduceMin", CAST(x, CFX_DTYPE_INT32), NULL, 0, false),
                CFX_DTYPE_BOOL);
}

cfxi_ev *cfxi_export_allclose(cfxi_export_call *c) { return all_of(c, close_to(c)); }
cfxi_ev *cfxi_export_equal(cfxi_export_call *c) { return all_of(c, compare(c, "Equal")); }

cfxi_ev *cfxi_export_isin(cfxi_export_call *c)
{
    const int64_t last[] = {-1};
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_common(c, 0, 1));
    cfxi_ev *x = cfxi_export_unsqueeze(c, CAST(ARG(0), dtype), -1);
    cfxi_ev *all = NODE("Reshape", CAST(ARG(1), dtype), INTS(-1));
    cfxi_ev *found = CAST(NODE("Equal", x, all), CFX_DTYPE_INT32);
    found = CAST(cfxi_export_reduce(c, "ReduceMax", found, last, 1, false), CFX_DTYPE_BOOL);
    return cfxi_export_bool(c, 3) ? NODE("Not", found) : found;
}

/* ---- logic --------------------------------------------------------------------------------- */

static cfxi_ev *truth(cfxi_export_call *c, size_t i) { return CAST(ARG(i), CFX_DTYPE_BOOL); }

cfxi_ev *cfxi_export_logical_and(cfxi_export_call *c)
{
    return NODE("And", truth(c, 0), truth(c, 1));
}
cfxi_ev *cfxi_export_logical_or(cfxi_export_call *c)
{
    return NODE("Or", truth(c, 0), truth(c, 1));
}
cfxi_ev *cfxi_export_logical_xor(cfxi_export_call *c)
{
    return NODE("Xor", truth(c, 0), truth(c, 1));
}
cfxi_ev *cfxi_export_logical_not(cfxi_export_call *c) { return NODE("Not", truth(c, 0)); }

static cfxi_ev *bits(cfxi_export_call *c, const char *logic, const char *op)
{
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    return cfxi_export_dtype(a) == CFX_DTYPE_BOOL ? NODE(logic, a, b) : NODE(op, a, b);
}

cfxi_ev *cfxi_export_bitwise_and(cfxi_export_call *c) { return bits(c, "And", "BitwiseAnd"); }
cfxi_ev *cfxi_export_bitwise_or(cfxi_export_call *c)
{
    if (c->result.kind == CFX_DATUM_DICT)
        return cfxi_export_merged(c);
    return bits(c, "Or", "BitwiseOr");
}
cfxi_ev *cfxi_export_bitwise_xor(cfxi_export_call *c) { return bits(c, "Xor", "BitwiseXor"); }

cfxi_ev *cfxi_export_bitwise_not(cfxi_export_call *c)
{
    cfxi_ev *x = ARG(0);
    return cfxi_export_dtype(x) == CFX_DTYPE_BOOL ? NODE("Not", x) : NODE("BitwiseNot", x);
}

/* 2 ** n: ONNX shifts unsigned integers alone. */
static cfxi_ev *power_of_two(cfxi_export_call *c, cfx_dtype dtype)
{
    cfxi_ev *n = CAST(ARG(1), dtype);
    return NODE("Pow", LIKE(n, 2), n);
}

cfxi_ev *cfxi_export_left_shift(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    return NODE("Mul", CAST(ARG(0), dtype), power_of_two(c, dtype));
}

cfxi_ev *cfxi_export_right_shift(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    cfxi_ev *x = CAST(ARG(0), dtype);
    cfxi_ev *by = power_of_two(c, dtype);
    return NODE("Div", NODE("Sub", x, NODE("Mod", x, by)), by);
}

/* ---- choosing ------------------------------------------------------------------------------ */

cfxi_ev *cfxi_export_where(cfxi_export_call *c)
{
    return NODE("Where", truth(c, 0), IN(1), IN(2));
}

cfxi_ev *cfxi_export_masked_fill(cfxi_export_call *c)
{
    return NODE("Where", truth(c, 1), IN(2), IN(0));
}
