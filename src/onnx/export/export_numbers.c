/* export_numbers.c - sizes, numbers and functions of Python on them. */
#include "export_impl.h"

/* ---- sizes --------------------------------------------------------------------------------- */

static cfxi_ev *all_sizes(cfxi_export_call *c)
{
    cfxi_ev *sizes[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    for (int i = 0; i < rank; i++)
        sizes[i] = SIZE(c->args[0], i);
    return cfxi_export_list(c->x, sizes, (size_t)rank);
}

cfxi_ev *cfxi_export_size_row(cfxi_export_call *c)
{
    return cfxi_export_given(c, 1) ? SIZE(c->args[0], cfxi_export_int(c, 1)) : all_sizes(c);
}

cfxi_ev *cfxi_export_numel(cfxi_export_call *c)
{
    cfxi_ev *made = INT(1);
    for (int64_t i = 0; i < c->args[0]->rank; i++)
        made = NODE("Mul", made, SIZE(c->args[0], i));
    return made;
}

cfxi_ev *cfxi_export_stride(cfxi_export_call *c)
{
    return cfxi_export_refuse(c, "ONNX has no strides; compute with sizes instead");
}

cfxi_ev *cfxi_export_len(cfxi_export_call *c) { return SIZE(c->args[0], 0); }

/* ---- attributes ---------------------------------------------------------------------------- */

/* The result of that name of the row that a tuple comes from. */
static cfxi_ev *named_item(cfxi_export_call *c, const char *name)
{
    const cfxi_ev *v = c->args[0];
    cfx_schema_param result;
    const cfx_operator op = (cfx_operator)cfx_datum_row(v->datum);
    for (size_t i = 0; i < v->n && cfx_operator_result(op, i, &result); i++)
        if (result.name.size == strlen(name) &&
            memcmp(result.name.text, name, result.name.size) == 0)
            return v->items[i];
    return cfxi_export_refuse(c, "the attribute '%s' is not written", name);
}

cfxi_ev *cfxi_export_getattr(cfxi_export_call *c)
{
    const char *name = cfxi_export_str(c, 1);
    if (c->args[0]->datum.kind != CFX_DATUM_TENSOR)
        return named_item(c, name ? name : "");
    if (name && strcmp(name, "shape") == 0)
        return all_sizes(c);
    if (name && (strcmp(name, "T") == 0 || strcmp(name, "H") == 0))
        return APPLY(numpy_T, c->args[0]);
    if (name && (strcmp(name, "mT") == 0 || strcmp(name, "mH") == 0))
        return APPLY(mT, c->args[0]);
    if (name && (strcmp(name, "data") == 0 || strcmp(name, "real") == 0))
        return ARG(0);
    return cfxi_export_refuse(c, "the attribute '%s' of a tensor is not written",
                              name ? name : "");
}

/* ---- numbers ------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_scalar(cfxi_export_call *c, cfxi_ev *v, const cfxi_ev *like)
{
    if (cfxi_export_is_number(like) || like->rank == 0)
        return v;
    for (int i = 0; i < like->rank; i++)
        if (cfxi_export_known_size(c->x, like, i) != 1) {  /* only a run knows that it is one */
            cfxi_ev *made = NODE("Gather", NODE("Reshape", v, INTS(-1)), INT(0));
            SET_INT("axis", 0);
            return made;
        }
    return NODE("Reshape", v, cfxi_export_const_ints(c->x, NULL, 0));
}

static cfxi_ev *scalar(cfxi_export_call *c, cfxi_ev *v) { return cfxi_export_scalar(c, v, v); }

cfxi_ev *cfxi_export_item(cfxi_export_call *c) { return scalar(c, ARG(0)); }

cfxi_ev *cfxi_export_truth(cfxi_export_call *c)
{
    return CAST(scalar(c, ARG(0)), CFX_DTYPE_BOOL);
}

cfxi_ev *cfxi_export_not(cfxi_export_call *c) { return NODE("Not", cfxi_export_truth(c)); }

/* All operands of a variadic row, in the type of the result. As Python has it, a later one counts
 * if it is greater (or less): NaN is neither. */
static cfxi_ev *extreme(cfxi_export_call *c, const char *op, cfxi_ev *const *items, size_t n)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    cfxi_ev *made = CAST(items[0], dtype);
    for (size_t i = 1; i < n; i++) {
        cfxi_ev *next = CAST(items[i], dtype);
        made = NODE("Where", NODE(op, next, made), next, made);
    }
    return made;
}

static cfxi_ev *extreme_of_list(cfxi_export_call *c, const char *op)
{
    const cfxi_ev *list = c->args[0];
    if (list->n == 1 && list->items[0]->n > 0)
        list = list->items[0];
    if (list->n == 0)
        return cfxi_export_refuse(c, "min and max are written for numbers and lists of them");
    return extreme(c, op, list->items, list->n);
}

cfxi_ev *cfxi_export_builtin_max(cfxi_export_call *c) { return extreme_of_list(c, "Greater"); }
cfxi_ev *cfxi_export_builtin_min(cfxi_export_call *c) { return extreme_of_list(c, "Less"); }
cfxi_ev *cfxi_export_sym_max(cfxi_export_call *c) { return extreme(c, "Greater", c->args, 2); }
cfxi_ev *cfxi_export_sym_min(cfxi_export_call *c) { return extreme(c, "Less", c->args, 2); }
cfxi_ev *cfxi_export_sym_ite(cfxi_export_call *c)
{
    return NODE("Where", CAST(ARG(0), CFX_DTYPE_BOOL), IN(1), IN(2));
}

cfxi_ev *cfxi_export_builtin_sum(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev *made = c->args[1];
    if (!list->items)
        return cfxi_export_refuse(c, "sum is written for lists");
    for (size_t i = 0; i < list->n; i++)
        made = APPLY(add, made, list->items[i]);
    return made;
}

static cfxi_ev *fold_logic(cfxi_export_call *c, const char *op)
{
    const cfxi_ev *list = c->args[0];
    if (list->n == 0)
        return cfxi_export_refuse(c, "any and all are written for lists");
    cfxi_ev *made = CAST(scalar(c, list->items[0]), CFX_DTYPE_BOOL);
    for (size_t i = 1; i < list->n; i++)
        made = NODE(op, made, CAST(scalar(c, list->items[i]), CFX_DTYPE_BOOL));
    return made;
}

cfxi_ev *cfxi_export_builtin_any(cfxi_export_call *c) { return fold_logic(c, "Or"); }
cfxi_ev *cfxi_export_builtin_all(cfxi_export_call *c) { return fold_logic(c, "And"); }

cfxi_ev *cfxi_export_math_prod(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev *made = cfxi_export_given(c, 1) ? IN(1) : CAST(INT(1), cfxi_export_result_dtype(c));
    for (size_t i = 0; i < list->n; i++)
        made = NODE("Mul", made, CAST(list->items[i], cfxi_export_result_dtype(c)));
    return made;
}

/* ---- functions of math --------------------------------------------------------------------- */

static cfxi_ev *math(cfxi_export_call *c, const char *op)
{
    return NODE(op, CAST(scalar(c, ARG(0)), CFX_DTYPE_FLOAT64));
}

cfxi_ev *cfxi_export_math_sqrt(cfxi_export_call *c) { return math(c, "Sqrt"); }
cfxi_ev *cfxi_export_math_exp(cfxi_export_call *c) { return math(c, "Exp"); }
cfxi_ev *cfxi_export_math_sin(cfxi_export_call *c) { return math(c, "Sin"); }
cfxi_ev *cfxi_export_math_cos(cfxi_export_call *c) { return math(c, "Cos"); }
cfxi_ev *cfxi_export_math_tanh(cfxi_export_call *c) { return math(c, "Tanh"); }
cfxi_ev *cfxi_export_math_fabs(cfxi_export_call *c) { return math(c, "Abs"); }
cfxi_ev *cfxi_export_math_floor(cfxi_export_call *c) { return math(c, "Floor"); }
cfxi_ev *cfxi_export_math_ceil(cfxi_export_call *c) { return math(c, "Ceil"); }

cfxi_ev *cfxi_export_math_log(cfxi_export_call *c)
{
    cfxi_ev *made = math(c, "Log");
    if (!cfxi_export_given(c, 1))
        return made;
    return NODE("Div", made, NODE("Log", CAST(ARG(1), CFX_DTYPE_FLOAT64)));
}

static cfxi_ev *log_of(cfxi_export_call *c, double base)
{
    cfxi_ev *made = math(c, "Log");
    return NODE("Div", made, NODE("Log", LIKE(made, base)));
}

cfxi_ev *cfxi_export_math_log2(cfxi_export_call *c) { return log_of(c, 2); }
cfxi_ev *cfxi_export_math_log10(cfxi_export_call *c) { return log_of(c, 10); }

cfxi_ev *cfxi_export_math_pow(cfxi_export_call *c)
{
    return NODE("Pow", CAST(ARG(0), CFX_DTYPE_FLOAT64), CAST(ARG(1), CFX_DTYPE_FLOAT64));
}

cfxi_ev *cfxi_export_math_hypot(cfxi_export_call *c)
{
    cfxi_ev **items;
    cfxi_ev *sum = cfxi_export_number(c->x, CFX_DTYPE_FLOAT64, cfx_datum_float(0));
    const size_t n = cfxi_export_items(c, 0, &items);
    for (size_t i = 0; i < n; i++) {
        cfxi_ev *x = CAST(scalar(c, items[i]), CFX_DTYPE_FLOAT64);
        sum = NODE("Add", sum, NODE("Mul", x, x));
    }
    return NODE("Sqrt", sum);
}

/* The same tests as those of tensors. */
cfxi_ev *cfxi_export_math_isnan(cfxi_export_call *c) { return APPLY(isnan, c->args[0]); }
cfxi_ev *cfxi_export_math_isinf(cfxi_export_call *c) { return APPLY(isinf, c->args[0]); }
cfxi_ev *cfxi_export_math_isfinite(cfxi_export_call *c) { return APPLY(isfinite, c->args[0]); }

/* Whether |a - b| is at most rel times the greater of both, or abs. */
cfxi_ev *cfxi_export_math_isclose(cfxi_export_call *c)
{
    cfxi_ev *n[4];
    for (size_t i = 0; i < 4; i++)
        n[i] = CAST(scalar(c, ARG(i)), CFX_DTYPE_FLOAT64);
    cfxi_ev *most = NODE("Max", NODE("Abs", n[0]), NODE("Abs", n[1]));
    cfxi_ev *room = NODE("Max", NODE("Mul", n[2], most), n[3]);
    cfxi_ev *apart = NODE("Abs", NODE("Sub", n[0], n[1]));
    cfxi_ev *finite = NODE("Not", NODE("IsInf", apart));
    cfxi_ev *near = NODE("And", finite, NODE("LessOrEqual", apart, room));
    return NODE("Or", NODE("Equal", n[0], n[1]), near);
}

cfxi_ev *cfxi_export_math_fmod(cfxi_export_call *c)
{
    cfxi_ev *made = NODE("Mod", CAST(scalar(c, ARG(0)), CFX_DTYPE_FLOAT64),
                         CAST(scalar(c, ARG(1)), CFX_DTYPE_FLOAT64));
    SET_INT("fmod", 1);
    return made;
}

/* round(x, digits): of the decimal number that is nearest to x times 10 ** digits. */
cfxi_ev *cfxi_export_builtin_round(cfxi_export_call *c)
{
    const int64_t digits = cfxi_export_given(c, 1) ? cfxi_export_int(c, 1) : 0;
    double scale = 1;
    if (digits < -15 || digits > 15)
        return cfxi_export_refuse(c, "round is written for up to 15 digits");
    for (int64_t i = digits < 0 ? -digits : digits; i > 0; i--)
        scale *= 10;
    cfxi_ev *x = CAST(scalar(c, ARG(0)), CFX_DTYPE_FLOAT64);
    cfxi_ev *by = LIKE(x, scale);
    const bool whole = digits < 0;
    return NODE(whole ? "Mul" : "Div", NODE("Round", NODE(whole ? "Div" : "Mul", x, by)), by);
}

/* A number of the type that the row gives. */
cfxi_ev *cfxi_export_to_number(cfxi_export_call *c)
{
    return CAST(scalar(c, ARG(0)), cfxi_export_result_dtype(c));
}

/* tuple(x), list(x): the items themselves; of a tensor, its parts. */
cfxi_ev *cfxi_export_as_list(cfxi_export_call *c)
{
    if (c->args[0]->datum.kind == CFX_DATUM_TENSOR)
        return APPLY(unbind, c->args[0]);
    return cfxi_export_list(c->x, c->args[0]->items, c->args[0]->n);
}

/* dict([(key, value), ...]) or of another dict. */
cfxi_ev *cfxi_export_as_dict(cfxi_export_call *c)
{
    const cfxi_ev *from = c->args[0];
    cfxi_ev **items = cfxi_export_room(c->x, from->n * 2, sizeof *items);
    if (!items || from->datum.kind == CFX_DATUM_DICT)
        return cfxi_export_list(c->x, from->items, from->n);
    for (size_t i = 0; i < from->n; i++) {
        if (from->items[i]->n != 2)
            return cfxi_export_refuse(c, "a dict is written from pairs of a key and a value");
        items[2 * i] = from->items[i]->items[0];
        items[2 * i + 1] = from->items[i]->items[1];
    }
    return cfxi_export_list(c->x, items, from->n * 2);
}

/* Which object a value is, ONNX does not know; whether it is None, is known before. */
cfxi_ev *cfxi_export_identity(cfxi_export_call *c)
{
    return cfxi_export_refuse(c, "whether two tensors are the same object is not known in ONNX");
}

cfxi_ev *cfxi_export_concat_lists(cfxi_export_call *c)
{
    return APPLY(add, c->args[0], c->args[1]);
}
