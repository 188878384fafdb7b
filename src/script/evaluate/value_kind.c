/* value_kind.c - what is known of a graph value: a tensor, a number, a tuple.
 *
 * By the operator table, by Python's rules for numbers, and by what the evaluator has noted of the
 * results of branches and loops. OTHER where nothing is known: such a value may be anything.
 */
#include "evaluate_impl.h"

#include "ops/ops_impl.h"

bool cfxi_eval_note_kind(cfx_evaluator *ev, const cfx_node *n, cfx_object_kind kind)
{
    if (cfxi_base_pointers_set(&ev->kinds, n, (void *)((uintptr_t)kind + 1), ev->allocator))
        return true;
    cfxi_base_nomem(ev->err);
    return false;
}

static bool is_number(cfx_object_kind kind)
{
    return kind == CFX_OBJECT_BOOL || kind == CFX_OBJECT_INT || kind == CFX_OBJECT_FLOAT;
}

/* ---- signs --------------------------------------------------------------------------------- */

typedef enum family {
    NO_FAMILY,
    ARITHMETIC,
    DIVISION,
    POWER,
    BITS,
    COMPARISON,
    QUESTION,
    SAME
} family;

static family family_of(const char *name)
{
    static const struct {
        char name[10];
        uint8_t family;
    } rows[] = {
        {"truth", QUESTION}, {"truediv", DIVISION}, {"itruediv", DIVISION}, {"abs", SAME},
        {"pow", POWER},      {"ipow", POWER},       {"and_", BITS},         {"iand", BITS},
        {"or_", BITS},       {"ior", BITS},         {"xor", BITS},          {"ixor", BITS},
#define CFX_SIGN_UNARY(id, sign, function, ast) {function, SAME},
#define CFX_SIGN_BINARY(id, sign, function, in_place, ...)                                         \
    {function, ARITHMETIC}, {in_place, ARITHMETIC},
#define CFX_SIGN_COMPARE(id, sign, function, ...) {function, COMPARISON},
#define CFX_SIGN_WORD(id, words, function, ast) {function, QUESTION},
#include <cfx/embed/sign.def>
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (family)rows[i].family;
    return NO_FAMILY;
}

static cfx_object_kind joined_number(cfx_object_kind a, cfx_object_kind b)
{
    if (a == CFX_OBJECT_FLOAT || b == CFX_OBJECT_FLOAT)
        return CFX_OBJECT_FLOAT;
    return CFX_OBJECT_INT;
}

/* 2 ** -1 is a float, (-8.) ** 0.5 is complex. */
static cfx_object_kind power_kind(cfx_object_kind a, cfx_object_kind b, cfx_value exponent)
{
    if (b == CFX_OBJECT_FLOAT)
        return CFX_OBJECT_OTHER;
    if (a == CFX_OBJECT_FLOAT)
        return CFX_OBJECT_FLOAT;
    const bool known = exponent.kind == CFX_KIND_INT && exponent.as.i >= 0;
    return known || b == CFX_OBJECT_BOOL ? CFX_OBJECT_INT : CFX_OBJECT_OTHER;
}

static cfx_object_kind number_kind(const cfx_node *n, family f, cfx_object_kind a,
                                   cfx_object_kind b)
{
    if (f == COMPARISON)
        return CFX_OBJECT_BOOL;
    if (f == DIVISION)
        return CFX_OBJECT_FLOAT;
    if (f == POWER)
        return power_kind(a, b, cfx_node_arg(n, 1));
    if (f == BITS && a == CFX_OBJECT_BOOL && b == CFX_OBJECT_BOOL)
        return CFX_OBJECT_BOOL;
    return joined_number(a, b);
}

/* Whether an operator of a tensor and this gives a tensor: `x == None` does not. */
static bool may_meet_tensor(cfx_value v, cfx_object_kind kind)
{
    return v.kind != CFX_KIND_NONE && kind != CFX_OBJECT_STR && kind != CFX_OBJECT_TUPLE &&
           kind != CFX_OBJECT_LIST;
}

static cfx_object_kind sign_kind(cfx_evaluator *ev, const cfx_node *n, family f)
{
    const cfx_value other = cfx_node_num_args(n) > 1 ? cfx_node_arg(n, 1) : cfx_node_arg(n, 0);
    const cfx_object_kind a = cfxi_eval_value_kind(ev, cfx_node_arg(n, 0));
    const cfx_object_kind b = cfxi_eval_value_kind(ev, other);
    if (f == QUESTION)
        return CFX_OBJECT_BOOL;
    if (a == CFX_OBJECT_TENSOR || b == CFX_OBJECT_TENSOR)
        return may_meet_tensor(other, b) && may_meet_tensor(cfx_node_arg(n, 0), a)
                   ? CFX_OBJECT_TENSOR : CFX_OBJECT_OTHER;
    if (f == SAME)
        return a == CFX_OBJECT_BOOL ? CFX_OBJECT_INT : a;
    if (is_number(a) && is_number(b))
        return number_kind(n, f, a, b);
    if (a == b && f == BITS && a == CFX_OBJECT_DICT)
        return a;
    if (a == b && (a == CFX_OBJECT_STR || a == CFX_OBJECT_LIST || a == CFX_OBJECT_TUPLE))
        return f == COMPARISON ? CFX_OBJECT_BOOL : a;
    return CFX_OBJECT_OTHER;
}

/* ---- attributes and items ------------------------------------------------------------------ */

static bool is_word(const char *text, size_t size, const char *words)
{
    for (const char *at = words; (at = strstr(at, "|")) && at[1]; at++)
        if (strncmp(at + 1, text, size) == 0 && at[1 + size] == '|')
            return true;
    return false;
}

static cfx_object_kind attribute_kind(cfx_evaluator *ev, const cfx_node *n)
{
    size_t size;
    const cfx_object_kind of = cfxi_eval_value_kind(ev, cfx_node_arg(n, 0));
    const cfx_value name = cfx_node_arg(n, 1);
    const char *text = name.kind == CFX_KIND_STR ? cfx_value_text(name, &size) : NULL;
    if (!text || cfx_node_num_args(n) > 2)
        return CFX_OBJECT_OTHER;
    if (is_word(text, size, "|shape|"))
        return CFX_OBJECT_TUPLE;
    if (is_word(text, size, "|ndim|itemsize|nbytes|"))
        return CFX_OBJECT_INT;
    if (is_word(text, size, "|T|mT|H|mH|"))
        return CFX_OBJECT_TENSOR;
    if (is_word(text, size, "|data|real|imag|"))  /* numbers have parts, too */
        return of == CFX_OBJECT_TENSOR ? CFX_OBJECT_TENSOR : CFX_OBJECT_OTHER;
    return is_word(text, size, "|requires_grad|is_cuda|is_leaf|is_sparse|") ? CFX_OBJECT_BOOL
                                                                           : CFX_OBJECT_OTHER;
}

bool cfxi_eval_is_attribute(cfx_evaluator *ev, const cfx_node *n)
{
    size_t size;
    const cfx_value name = cfx_node_arg(n, 1);
    const char *text = name.kind == CFX_KIND_STR ? cfx_value_text(name, &size) : NULL;
    return attribute_kind(ev, n) != CFX_OBJECT_OTHER ||
           (text && is_word(text, size, "|dtype|device|layout|grad|"));
}

/* Whether it gives the sizes of a tensor. */
static bool is_shape(cfx_evaluator *ev, const cfx_node *n)
{
    size_t size;
    const char *target = cfx_node_target(n, &size, NULL);
    if (!target)
        return false;
    if (cfx_node_op(n) == CFX_OP_CALL_METHOD)
        return strcmp(target, "size") == 0;
    return strcmp(target, "builtins.getattr") == 0 && attribute_kind(ev, n) == CFX_OBJECT_TUPLE;
}

static cfx_object_kind item_kind(cfx_evaluator *ev, const cfx_node *n)
{
    const cfx_value of = cfx_node_arg(n, 0);
    const cfx_value key = cfx_node_arg(n, 1);
    const cfx_object_kind kind = cfxi_eval_value_kind(ev, of);
    if (kind == CFX_OBJECT_TENSOR || kind == CFX_OBJECT_STR)
        return kind;
    if (key.kind == CFX_KIND_SLICE && (kind == CFX_OBJECT_TUPLE || kind == CFX_OBJECT_LIST))
        return kind;
    if (of.kind == CFX_KIND_NODE && is_shape(ev, of.as.node))
        return CFX_OBJECT_INT;
    return CFX_OBJECT_OTHER;
}

/* min and max give one of their arguments. */
static cfx_object_kind choice_kind(cfx_evaluator *ev, const cfx_node *n)
{
    const size_t count = cfx_node_num_args(n);
    const cfx_object_kind kind = cfxi_eval_value_kind(ev, cfx_node_arg(n, 0));
    for (size_t i = 1; i < count; i++)
        if (cfxi_eval_value_kind(ev, cfx_node_arg(n, i)) != kind)
            return CFX_OBJECT_OTHER;
    return count > 1 ? kind : CFX_OBJECT_OTHER;
}

/* ---- the table ----------------------------------------------------------------------------- */

static cfx_object_kind builtin_kind(cfx_evaluator *ev, const cfx_node *n, const char *name)
{
    static const struct {
        char name[12];
        uint8_t kind;
    } rows[] = {{"int", CFX_OBJECT_INT}, {"len", CFX_OBJECT_INT}, {"float", CFX_OBJECT_FLOAT},
                {"bool", CFX_OBJECT_BOOL}, {"str", CFX_OBJECT_STR}, {"repr", CFX_OBJECT_STR},
                {"list", CFX_OBJECT_LIST}, {"sorted", CFX_OBJECT_LIST},
                {"tuple", CFX_OBJECT_TUPLE}, {"divmod", CFX_OBJECT_TUPLE},
                {"dict", CFX_OBJECT_DICT},
                {"isinstance", CFX_OBJECT_BOOL}, {"hasattr", CFX_OBJECT_BOOL},
                {"callable", CFX_OBJECT_BOOL}, {"any", CFX_OBJECT_BOOL},
                {"all", CFX_OBJECT_BOOL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (cfx_object_kind)rows[i].kind;
    if (strcmp(name, "getattr") == 0)
        return attribute_kind(ev, n);
    if (strcmp(name, "abs") == 0)
        return sign_kind(ev, n, SAME);
    if (strcmp(name, "pow") == 0)
        return cfx_node_num_args(n) == 2 ? sign_kind(ev, n, POWER) : CFX_OBJECT_OTHER;
    return strcmp(name, "min") == 0 || strcmp(name, "max") == 0 ? choice_kind(ev, n)
                                                                : CFX_OBJECT_OTHER;
}

static cfx_object_kind math_kind(const char *name)
{
    if (is_word(name, strlen(name), "|floor|ceil|trunc|gcd|lcm|comb|perm|factorial|isqrt|"))
        return CFX_OBJECT_INT;
    return strncmp(name, "is", 2) == 0 ? CFX_OBJECT_BOOL
           : is_word(name, strlen(name), "|prod|frexp|modf|") ? CFX_OBJECT_OTHER : CFX_OBJECT_FLOAT;
}

static cfx_object_kind table_kind(cfx_operator op)
{
    cfx_schema_param result;
    if (op == CFX_OPID_NONE || cfx_operator_num_results(op) == 0)
        return CFX_OBJECT_OTHER;
    if (cfx_operator_num_results(op) > 1)
        return CFX_OBJECT_TUPLE;
    if (!cfx_operator_result(op, 0, &result))
        return CFX_OBJECT_OTHER;
    static const struct {
        char type[9];
        uint8_t kind;
    } rows[] = {{"Tensor", CFX_OBJECT_TENSOR}, {"int", CFX_OBJECT_INT}, {"bool", CFX_OBJECT_BOOL},
                {"float", CFX_OBJECT_FLOAT}, {"str", CFX_OBJECT_STR},
                {"Tensor[]", CFX_OBJECT_TUPLE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, result.type) == 0)
            return (cfx_object_kind)rows[i].kind;
    return CFX_OBJECT_OTHER;
}

/* Of functions that give a tensor, or a tuple if a dimension or a flag is given. */
static cfx_object_kind overload_kind(cfx_evaluator *ev, const cfx_node *n, const char *name)
{
    const size_t count = cfx_node_num_args(n);
    const cfx_object_kind second =
        count > 1 ? cfxi_eval_value_kind(ev, cfx_node_arg(n, 1)) : CFX_OBJECT_OTHER;
    const bool more = count > 1 || n->kwargs;
    if (is_word(name, strlen(name), "|max|min|median|nanmedian|") && more)
        return second == CFX_OBJECT_INT      ? CFX_OBJECT_TUPLE
               : second == CFX_OBJECT_TENSOR ? CFX_OBJECT_TENSOR : CFX_OBJECT_OTHER;
    if (is_word(name, strlen(name), "|where|") && count < 3 && !n->kwargs)
        return count == 1 ? CFX_OBJECT_TUPLE : CFX_OBJECT_OTHER;
    return is_word(name, strlen(name), "|nonzero|unique|unique_consecutive|") && more
               ? CFX_OBJECT_OTHER : CFX_OBJECT_KINDS;
}

static const char *behind(const char *name, const char *prefix)
{
    const size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

static cfx_object_kind function_kind(cfx_evaluator *ev, const cfx_node *n, const char *target)
{
    const char *name = behind(target, "operator.");
    if (!name)
        name = behind(target, "_operator.");
    if (name && strcmp(name, "getitem") == 0)
        return item_kind(ev, n);
    if (name) {
        const family f = family_of(name);
        return f == NO_FAMILY ? CFX_OBJECT_OTHER : sign_kind(ev, n, f);
    }
    if ((name = behind(target, "builtins.")) != NULL)
        return builtin_kind(ev, n, name);
    if ((name = behind(target, "math.")) != NULL)
        return math_kind(name);
    const char *mode = behind(target, "torch.is_");
    if (mode && strlen(mode) > 8 && strcmp(mode + strlen(mode) - 8, "_enabled") == 0)
        return CFX_OBJECT_BOOL;
    const char *last = strrchr(target, '.');
    const cfx_object_kind overload = last ? overload_kind(ev, n, last + 1) : CFX_OBJECT_KINDS;
    return overload != CFX_OBJECT_KINDS ? overload : table_kind(cfx_node_operator(n));
}

/* Of a text that is not known: what the methods of str give. */
static cfx_object_kind text_method_kind(const char *name)
{
    const size_t size = strlen(name);
    if (is_word(name, size, "|split|rsplit|splitlines|"))
        return CFX_OBJECT_LIST;
    if (is_word(name, size, "|find|rfind|index|rindex|count|"))
        return CFX_OBJECT_INT;
    if (strncmp(name, "is", 2) == 0 || is_word(name, size, "|startswith|endswith|"))
        return CFX_OBJECT_BOOL;
    if (is_word(name, size, "|partition|rpartition|"))
        return CFX_OBJECT_TUPLE;
    return is_word(name, size, "|upper|lower|strip|lstrip|rstrip|replace|join|title|format|zfill|")
               ? CFX_OBJECT_STR : CFX_OBJECT_OTHER;
}

static cfx_object_kind method_kind(cfx_evaluator *ev, const cfx_node *n, const char *name)
{
    const cfx_object_kind of = cfxi_eval_value_kind(ev, cfx_node_arg(n, 0));
    if (of == CFX_OBJECT_STR || strcmp(name, "format") == 0)
        return text_method_kind(name);
    if (of != CFX_OBJECT_TENSOR && is_word(name, strlen(name), "|split|sort|"))
        return CFX_OBJECT_OTHER;  /* texts and lists have them, too */
    if (strcmp(name, "size") == 0)
        return cfx_node_num_args(n) > 1 || n->kwargs ? CFX_OBJECT_INT : CFX_OBJECT_TUPLE;
    const cfx_object_kind overload = overload_kind(ev, n, name);
    return overload != CFX_OBJECT_KINDS ? overload
                                        : table_kind(cfxi_ops_of_method(name, strlen(name)));
}

static cfx_object_kind node_kind(cfx_evaluator *ev, const cfx_node *n)
{
    const uintptr_t noted = (uintptr_t)cfxi_base_pointers_get(&ev->kinds, n);
    if (noted)
        return (cfx_object_kind)(noted - 1);
    cfx_error ignored = {0};
    const char *target = cfx_node_target(n, NULL, &ignored);
    if (cfx_node_op(n) == CFX_OP_GET_ATTR)
        return cfxi_ir_is_flag(n) ? CFX_OBJECT_BOOL : CFX_OBJECT_TENSOR;
    if (!target)
        return CFX_OBJECT_OTHER;
    if (cfx_node_op(n) == CFX_OP_CALL_FUNCTION)
        return function_kind(ev, n, target);
    return cfx_node_op(n) == CFX_OP_CALL_METHOD ? method_kind(ev, n, target) : CFX_OBJECT_OTHER;
}

cfx_object_kind cfxi_eval_value_kind(cfx_evaluator *ev, cfx_value v)
{
    switch (v.kind) {
    case CFX_KIND_NODE:
        return node_kind(ev, v.as.node);
    case CFX_KIND_BOOL:
        return CFX_OBJECT_BOOL;
    case CFX_KIND_INT:
        return CFX_OBJECT_INT;
    case CFX_KIND_FLOAT:
        return CFX_OBJECT_FLOAT;
    case CFX_KIND_STR:
        return CFX_OBJECT_STR;
    case CFX_KIND_LIST:
        return CFX_OBJECT_LIST;
    case CFX_KIND_TUPLE:
        return CFX_OBJECT_TUPLE;
    default:  /* nothing else can be reckoned with */
        return CFX_OBJECT_OTHER;
    }
}

/* ---- objects ------------------------------------------------------------------------------- */

cfx_object_kind cfxi_eval_kind(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_node *n = cfxi_eval_node(ev, o);
    if (!n)
        return ev->w->kind(ev->w->ctx, o);
    const cfx_object_kind kind = node_kind(ev, n);
    /* once for each node: an expression of a thousand signs asks each of them */
    cfxi_base_pointers_set(&ev->kinds, n, (void *)((uintptr_t)kind + 1), ev->allocator);
    return kind;
}

size_t cfxi_eval_length(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_node *n = cfxi_eval_node(ev, o);
    const cfx_operator op = n ? cfx_node_operator(n) : CFX_OPID_NONE;
    cfx_error ignored = {0};
    const char *target = n ? cfx_node_target(n, NULL, &ignored) : NULL;
    if (op != CFX_OPID_NONE && cfx_operator_num_results(op) > 1)
        return cfx_operator_num_results(op);
    if (!target || cfx_node_op(n) != CFX_OP_CALL_FUNCTION)
        return SIZE_MAX;
    return strcmp(target, "builtins.divmod") == 0 || strcmp(target, "math.modf") == 0 ||
                   strcmp(target, "math.frexp") == 0
               ? 2 : SIZE_MAX;
}

const char *cfxi_eval_kind_name(cfx_evaluator *ev, cfx_object *o)
{
    static const char names[CFX_OBJECT_KINDS][12] = {
        [CFX_OBJECT_OTHER] = "value", [CFX_OBJECT_BOOL] = "bool", [CFX_OBJECT_INT] = "int",
        [CFX_OBJECT_FLOAT] = "float", [CFX_OBJECT_STR] = "str", [CFX_OBJECT_TUPLE] = "tuple",
        [CFX_OBJECT_LIST] = "list", [CFX_OBJECT_TENSOR] = "Tensor", [CFX_OBJECT_NONE] = "None",
        [CFX_OBJECT_DICT] = "dict"};
    if (!o)
        return "nothing";
    if (!cfxi_eval_node(ev, o))
        return ev->w->type_name(ev->w->ctx, o);
    return names[cfxi_eval_kind(ev, o)];
}
