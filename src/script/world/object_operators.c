/* object_operators.c - what signs do: arithmetic, comparison, truth, equality and hashing. */
#include "world_impl.h"

#include "runtime/python_impl.h"

#include <math.h>
#include <stdio.h>

static const char *const sign_text[CFX_SIGNS] = {
#define CFX_SIGN_UNARY(id, sign, ...) [CFX_SIGN_##id] = sign,
#define CFX_SIGN_BINARY(id, sign, ...) [CFX_SIGN_##id] = sign,
#define CFX_SIGN_COMPARE(id, sign, ...) [CFX_SIGN_##id] = sign,
#define CFX_SIGN_WORD(id, words, ...) [CFX_SIGN_##id] = words,
#include <cfx/embed/sign.def>
};

/* What `operator` calls them, and what stands between the underscores of their methods. */
static const struct {
    const char *function, *in_place, *method;
} sign_names[CFX_SIGNS] = {
#define CFX_SIGN_UNARY(id, sign, function, ast) [CFX_SIGN_##id] = {function, NULL, function},
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, ...)                                 \
    [CFX_SIGN_##id] = {function, in_place, method},
#define CFX_SIGN_COMPARE(id, sign, function, ...) [CFX_SIGN_##id] = {function, NULL, function},
#define CFX_SIGN_WORD(id, words, function, ast) [CFX_SIGN_##id] = {function, NULL, function},
#include <cfx/embed/sign.def>
};

static const uint8_t sign_action[CFX_SIGNS] = {
    [CFX_SIGN_ADD] = CFXI_PY_ADD, [CFX_SIGN_SUB] = CFXI_PY_SUB, [CFX_SIGN_MUL] = CFXI_PY_MUL,
    [CFX_SIGN_TRUEDIV] = CFXI_PY_TRUE_DIV, [CFX_SIGN_MOD] = CFXI_PY_MOD,
    [CFX_SIGN_POW] = CFXI_PY_POW, [CFX_SIGN_LSHIFT] = CFXI_PY_SHIFT_LEFT,
    [CFX_SIGN_RSHIFT] = CFXI_PY_SHIFT_RIGHT, [CFX_SIGN_OR] = CFXI_PY_OR,
    [CFX_SIGN_XOR] = CFXI_PY_XOR, [CFX_SIGN_AND] = CFXI_PY_AND,
    [CFX_SIGN_FLOORDIV] = CFXI_PY_FLOOR_DIV, [CFX_SIGN_EQ] = CFXI_PY_EQ,
    [CFX_SIGN_LT] = CFXI_PY_LT, [CFX_SIGN_LE] = CFXI_PY_LE, [CFX_SIGN_GT] = CFXI_PY_GT,
    [CFX_SIGN_GE] = CFXI_PY_GE,
};

bool cfxi_world_is_real(const cfx_object *o)
{
    return cfxi_world_is_whole(o) || o->type == CFXI_TYPE_FLOAT;
}

double cfxi_world_real(const cfx_object *o)
{
    return o->type == CFXI_TYPE_FLOAT ? o->as.f : (double)cfxi_world_whole(o);
}

static bool is_number(const cfx_object *o)
{
    return cfxi_world_is_real(o) || o->type == CFXI_TYPE_COMPLEX;
}

static cfx_datum number_datum(const cfx_object *o)
{
    return o->type == CFXI_TYPE_BOOL    ? cfx_datum_bool(o->as.b)
           : o->type == CFXI_TYPE_INT   ? cfx_datum_int(o->as.i)
           : o->type == CFXI_TYPE_FLOAT ? cfx_datum_float(o->as.f)
                                        : cfx_datum_complex(o->as.c[0], o->as.c[1]);
}

/* The name of the function of `operator` behind a sign. */
static const char *operator_name(cfx_script_sign sign, bool in_place, char out[CFX_SPELLING_SIZE])
{
    snprintf(out, CFX_SPELLING_SIZE, "operator.%s",
             in_place ? sign_names[sign].in_place : sign_names[sign].function);
    return out;
}

/* "__add__", "__radd__", "__iadd__". */
static const char *special_name(cfx_script_sign sign, const char *before,
                                char out[CFX_SPELLING_SIZE])
{
    snprintf(out, CFX_SPELLING_SIZE, "__%s%s__", before, sign_names[sign].method);
    return out;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static cfx_object *unsupported(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                               bool in_place, cfx_error *err)
{
    char left[64];
    snprintf(left, sizeof left, "%s", cfxi_world_type_name(a));
    return cfxi_world_raise(w, err, CFXI_TypeError,
                            "unsupported operand type(s) for %s%s%s: '%s' and "
                            "'%s'",
                            sign_text[sign], in_place ? "=" : "",
                            sign == CFX_SIGN_POW && !in_place ? " or pow()" : "", left,
                            cfxi_world_type_name(b));
}

static cfx_object *arithmetic(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                              cfx_error *err)
{
    cfx_error why = {0};
    cfxi_call c = {.rt = w->scope ? cfx_scope_runtime(w->scope) : NULL, .err = &why};
    const cfxi_py_action action = (cfxi_py_action)sign_action[sign];
    if (action == CFXI_PY_NOTHING)
        return unsupported(w, sign, a, b, false, err);
    cfx_datum d = cfxi_rt_py_arithmetic(&c, action, number_datum(a), number_datum(b));
    if (d.kind != CFX_DATUM_INVALID)
        return cfxi_world_from_datum(w, d, err);
    if (why.status == CFX_E_TYPE)
        return unsupported(w, sign, a, b, false, err);
    const bool shift = sign == CFX_SIGN_LSHIFT || sign == CFX_SIGN_RSHIFT;
    const cfxi_exception kind = why.status == CFX_E_DIVISION ? CFXI_ZeroDivisionError
                                : shift && cfxi_world_whole(b) < 0 ? CFXI_ValueError
                                                             : CFXI_OverflowError;
    return cfxi_world_raise(w, err, kind, "%s%s", why.message,
                            why.status == CFX_E_VALUE && kind == CFXI_OverflowError
                                ? "; scripts support only 64-bit integers" : "");
}

/* The items of `a` that are (or are not) in `b`, and for | and ^ those of `b`. */
static cfx_object *set_algebra(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                               cfx_error *err)
{
    cfx_object *made = cfxi_world_dict_object(w, (cfxi_type)a->type, err);
    cfx_object *key;
    cfx_object *there;
    cfx_status status = made ? CFX_OK : CFX_E_NOMEM;
    for (size_t at = 0; status == CFX_OK && cfxi_world_dict_next(a, &at, &key, NULL);) {
        status = cfxi_world_dict_find(b, key, &there, err);
        if (status == CFX_OK && (sign == CFX_SIGN_OR || (there != NULL) == (sign == CFX_SIGN_AND)))
            status = cfxi_world_dict_set(made, key, NULL, err);
    }
    const bool both = sign == CFX_SIGN_OR || sign == CFX_SIGN_XOR;
    for (size_t at = 0; both && status == CFX_OK && cfxi_world_dict_next(b, &at, &key, NULL);) {
        status = cfxi_world_dict_find(a, key, &there, err);
        if (status == CFX_OK && !there)
            status = cfxi_world_dict_set(made, key, NULL, err);
    }
    if (status != CFX_OK)
        cfxi_world_clear(&made);
    return made;
}

static bool is_set(const cfx_object *o)
{
    return o->type == CFXI_TYPE_SET || o->type == CFXI_TYPE_FROZENSET;
}

static bool is_sequence(const cfx_object *o)
{
    return o->type == CFXI_TYPE_TUPLE || o->type == CFXI_TYPE_LIST || o->type == CFXI_TYPE_STR ||
           o->type == CFXI_TYPE_BYTES;
}

static bool is_changed_in_place(const cfx_object *o)
{
    return o->type == CFXI_TYPE_LIST || o->type == CFXI_TYPE_DICT || o->type == CFXI_TYPE_SET;
}

static bool is_of_sets(cfx_script_sign sign)
{
    return sign == CFX_SIGN_OR || sign == CFX_SIGN_AND || sign == CFX_SIGN_SUB ||
           sign == CFX_SIGN_XOR;
}

/* What a list, dict or set becomes in place: the same object with other contents. */
static cfx_object *in_place_container(cfxi_world *w, cfx_script_sign sign, cfx_object *a,
                                      cfx_object *b, cfx_error *err)
{
    cfx_status status = CFX_OK;
    if (a->type == CFXI_TYPE_LIST && sign == CFX_SIGN_ADD) {
        cfx_object *more = cfxi_world_collect(w, CFXI_TYPE_LIST, b, err);
        for (size_t i = 0; more && status == CFX_OK && i < more->as.seq.n; i++)
            status = cfxi_world_list_append(a, more->as.seq.items[i], err);
        status = more ? status : err->status;
        cfxi_world_unref(more);
    } else if (a->type == CFXI_TYPE_DICT && sign == CFX_SIGN_OR && b->type == CFXI_TYPE_DICT) {
        status = cfxi_world_dict_update(a, b, err);
    } else if (a->type == CFXI_TYPE_LIST && sign == CFX_SIGN_MUL && cfxi_world_is_whole(b)) {
        status = cfxi_world_become(a, cfxi_world_repeat(w, a, cfxi_world_whole(b), err), err);
    } else if (a->type == CFXI_TYPE_SET && is_set(b) && is_of_sets(sign)) {
        status = cfxi_world_become(a, set_algebra(w, sign, a, b, err), err);
    } else {
        return NULL;
    }
    return status == CFX_OK ? cfxi_world_ref(a) : NULL;
}

static cfx_object *container(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                             cfx_error *err)
{
    if (a->type == CFXI_TYPE_STR && sign == CFX_SIGN_MOD)
        return cfxi_world_percent(w, a, b, err);
    if (sign == CFX_SIGN_ADD && is_sequence(a)) {
        if (a->type == b->type)
            return cfxi_world_concat(w, a, b, err);
        const char *name = cfxi_world_type_name(a);
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "can only concatenate %s (not \"%s\") to %s", name,
                                cfxi_world_type_name(b), name);
    }
    if (sign == CFX_SIGN_MUL && is_sequence(a) && cfxi_world_is_whole(b))
        return cfxi_world_repeat(w, a, cfxi_world_whole(b), err);
    if (sign == CFX_SIGN_MUL && is_sequence(b) && cfxi_world_is_whole(a))
        return cfxi_world_repeat(w, b, cfxi_world_whole(a), err);
    if (is_set(a) && is_set(b) && is_of_sets(sign))
        return set_algebra(w, sign, a, b, err);
    if (a->type == CFXI_TYPE_DICT && b->type == CFXI_TYPE_DICT && sign == CFX_SIGN_OR) {
        cfx_object *made = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
        if (made && (cfxi_world_dict_update(made, a, err) != CFX_OK ||
                     cfxi_world_dict_update(made, b, err) != CFX_OK))
            cfxi_world_clear(&made);
        return made;
    }
    return unsupported(w, sign, a, b, false, err);
}

/* __iadd__, __add__ of the first, __radd__ of the second, if their classes are user-defined and
 * do not answer NotImplemented. NULL with *found false if none does. */
static cfx_object *by_method(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                             bool in_place, bool *found, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    for (int i = in_place ? 0 : 1; i < 3; i++) {
        static const char *const before[] = {"i", "", "r"};
        cfx_object *made =
            cfxi_world_special(w, i == 2 ? b : a, special_name(sign, before[i], name),
                               i == 2 ? &a : &b, 1, found, err);
        if (*found && made != w->not_implemented)
            return made;
        cfxi_world_unref(made);
    }
    *found = false;
    return NULL;
}

cfx_object *cfxi_world_binary(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                              bool in_place, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    bool found = false;
    if (is_number(a) && is_number(b))
        return arithmetic(w, sign, a, b, err);
    if (a->cls || b->cls) {
        cfx_object *made = by_method(w, sign, a, b, in_place, &found, err);
        if (found)
            return made;
    }
    if (sign == CFX_SIGN_ADD && a->type == CFXI_TYPE_MODULE) {
        cfx_object *made = cfxi_world_layer_plus(w, a, b, in_place, err);
        if (made || err->status != CFX_OK)
            return made;
    }
    const bool shown = a->type == CFXI_TYPE_STR && sign == CFX_SIGN_MOD &&
                       cfxi_world_has_value(b, false);
    if (cfxi_world_is_value(a) || cfxi_world_is_value(b) || shown)
        return cfxi_world_perform_on(
            w, operator_name(sign, in_place && cfxi_world_is_value(a), name), a, b, err);
    if (in_place && is_changed_in_place(a)) {
        const cfx_status before = err->status;
        err->status = CFX_OK;
        cfx_object *made = in_place_container(w, sign, a, b, err);
        if (made || err->status != CFX_OK)
            return made;
        err->status = before;
    }
    return container(w, sign, a, b, err);
}

cfx_object *cfxi_world_unary(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    bool found = false;
    if (cfxi_world_is_value(a))
        return cfxi_world_perform_on(w, operator_name(sign, false, name), a, NULL, err);
    if (sign == CFX_SIGN_NOT) {
        const int t = cfxi_world_truth_of(w, a, err);
        return t < 0 ? NULL : cfxi_world_truth_object(w, !t);
    }
    if (a->cls) {
        cfx_object *made =
            cfxi_world_special(w, a, special_name(sign, "", name), NULL, 0, &found, err);
        if (found)
            return made;
    }
    if (!is_number(a) || (sign == CFX_SIGN_INVERT && !cfxi_world_is_whole(a)))
        return cfxi_world_raise(w, err, CFXI_TypeError, "bad operand type for unary %s: '%s'",
                          sign_text[sign], cfxi_world_type_name(a));
    if (sign == CFX_SIGN_INVERT)
        return cfxi_world_int_object(w, ~cfxi_world_whole(a), err);
    const double turn = sign == CFX_SIGN_NEG ? -1 : 1;
    if (a->type == CFXI_TYPE_FLOAT)
        return cfxi_world_float_object(w, turn * a->as.f, err);
    if (a->type == CFXI_TYPE_COMPLEX)
        return cfxi_world_complex_object(w, turn * a->as.c[0], turn * a->as.c[1], err);
    const int64_t i = cfxi_world_whole(a);
    if (sign == CFX_SIGN_NEG && i == INT64_MIN)
        return cfxi_world_raise(w, err, CFXI_OverflowError,
                                "the integer result does not fit in 64 bits; scripts support only "
                                "64-bit integers");
    return cfxi_world_int_object(w, sign == CFX_SIGN_NEG ? -i : i, err);
}

cfx_object *cfxi_world_operator(cfxi_world *w, const char *name, const cfx_call_args *a,
                                bool *known, cfx_error *err)
{
    *known = a->n_named == 0;
    for (int i = 0; *known && i < CFX_SIGNS; i++) {
        const cfx_script_sign sign = (cfx_script_sign)i;
        const bool plain = strcmp(sign_names[i].function, name) == 0;
        if (plain && sign <= CFX_SIGN_INVERT && a->n == 1)
            return cfxi_world_unary(w, sign, a->args[0], err);
        if (a->n != 2 || sign <= CFX_SIGN_INVERT)
            continue;
        if (plain && sign >= CFX_SIGN_EQ)
            return sign == CFX_SIGN_IN ? cfxi_world_compare(w, sign, a->args[1], a->args[0], err)
                                       : cfxi_world_compare(w, sign, a->args[0], a->args[1], err);
        const bool written = sign_names[i].in_place && strcmp(sign_names[i].in_place, name) == 0;
        if (written || plain)
            return cfxi_world_binary(w, sign, a->args[0], a->args[1], written, err);
    }
    if (*known && a->n == 2 && strcmp(name, "getitem") == 0)
        return cfxi_world_item(w, a->args[0], a->args[1], err);
    *known = false;
    return NULL;
}

/* ---- truth --------------------------------------------------------------------------------- */

cfx_object *cfxi_world_truth_method(cfxi_world *w, cfx_object *o, bool *found, cfx_error *err)
{
    *found = false;
    cfx_object *made = o->cls ? cfxi_world_special(w, o, "__bool__", NULL, 0, found, err) : NULL;
    return *found || !o->cls ? made : cfxi_world_special(w, o, "__len__", NULL, 0, found, err);
}

int cfxi_world_truth_of(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    bool found = false;
    int64_t n;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_NONE: return 0;
    case CFXI_TYPE_BOOL:
    case CFXI_TYPE_INT: return cfxi_world_whole(o) != 0;
    case CFXI_TYPE_FLOAT: return o->as.f != 0;
    case CFXI_TYPE_COMPLEX: return o->as.c[0] != 0 || o->as.c[1] != 0;
    case CFXI_TYPE_VALUE:
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "the truth value of a graph value is not known during capture");
        return -1;
    case CFXI_TYPE_ATTRIBUTE:
        if (o->as.parts.a->type != CFXI_TYPE_VALUE)
            return 1;
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "whether '%s' of a graph value is a method, or an attribute with a truth "
                         "value, is not known during capture; call it, or read it from a tensor",
                         o->as.parts.b->as.text.data);
        return -1;
    case CFXI_TYPE_TENSOR: {
        cfx_object *args[] = {o};
        cfx_object *made = cfxi_world_compute(w, CFX_OP_CALL_FUNCTION, "builtins.bool",
                                        &(cfx_call_args){.args = args, .n = 1}, err);
        const int t = made ? cfxi_world_truth_of(w, made, err) : -1;
        cfxi_world_unref(made);
        return t;
    }
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET:
    case CFXI_TYPE_RANGE: return cfxi_world_length(w, o, &n, err) == CFX_OK ? n > 0 : -1;
    default: break;
    }
    cfx_object *made = cfxi_world_truth_method(w, o, &found, err);
    if (!found)
        return 1;
    const int t = made ? cfxi_world_truth_of(w, made, err) : -1;
    cfxi_world_unref(made);
    return t;
}

/* ---- comparison ---------------------------------------------------------------------------- */

cfx_status cfxi_world_deeper(cfxi_world *w, cfx_error *err)
{
    if (w->depth >= CFXI_DEEPEST)
        return cfxi_world_throw(w, err, CFXI_RecursionError,
                                "lists, dicts and tuples nest deeper than "
                                "%d",
                                CFXI_DEEPEST);
    if (++w->work > CFXI_MOST_WORK)  /* [a, a] forty times over has no end */
        return cfx_error_set(err, CFX_E_LIMIT, "lists, dicts and tuples hold more than %d items in "
                             "total", CFXI_MOST_WORK);
    w->depth++;
    return CFX_OK;
}

static int numbers(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b)
{
    cfx_error err = {0};
    cfxi_call c = {.rt = w->scope ? cfx_scope_runtime(w->scope) : NULL, .err = &err};
    const cfx_datum d = cfxi_rt_py_compare(&c, (cfxi_py_action)sign_action[sign], number_datum(a),
                                           number_datum(b));
    return d.kind == CFX_DATUM_BOOL ? d.as.b : -1;
}

static int sequences_equal(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    int same = a->as.seq.n == b->as.seq.n;
    if (!same || cfxi_world_deeper(w, err) != CFX_OK)
        return same ? -1 : 0;
    for (size_t i = 0; same == 1 && i < a->as.seq.n && i < b->as.seq.n; i++)
        same = a->as.seq.items[i] == b->as.seq.items[i]
                   ? 1 : cfxi_world_equal(w, a->as.seq.items[i], b->as.seq.items[i], err);
    w->depth--;
    return same;
}

static int dicts_equal(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    cfx_object *other;
    int same = a->as.dict.n == b->as.dict.n;
    if (!same || cfxi_world_deeper(w, err) != CFX_OK)
        return same ? -1 : 0;
    for (size_t at = 0; same == 1 && cfxi_world_dict_next(a, &at, &key, &value);) {
        if (cfxi_world_dict_find(b, key, &other, err) != CFX_OK)
            same = -1;
        else if (!other || (value && value != other))
            same = other ? cfxi_world_equal(w, value, other, err) : 0;
    }
    w->depth--;
    return same;
}

static bool texts_equal(const cfx_object *a, const cfx_object *b)
{
    return a->as.text.size == b->as.text.size &&
           memcmp(a->as.text.data, b->as.text.data, a->as.text.size) == 0;
}

static int ranges_equal(const cfx_object *a, const cfx_object *b)
{
    return a->as.range.n == b->as.range.n &&
           (a->as.range.n == 0 ||
            (a->as.range.start == b->as.range.start &&
             (a->as.range.n == 1 || a->as.range.step == b->as.range.step)));
}

/* Items of containers, of which one is a tensor or a graph value: it is equal to itself. */
static int arrays_equal(const cfx_object *a, const cfx_object *b, cfx_error *err)
{
    if (a->type == CFXI_TYPE_VALUE && b->type == CFXI_TYPE_VALUE && a->as.node == b->as.node)
        return 1;
    if (a->type == CFXI_TYPE_NONE || b->type == CFXI_TYPE_NONE)
        return 0;
    cfx_error_set(
        err, CFX_E_UNSUPPORTED,
        "this compares containers that hold tensors or graph values, whose equality is not known "
        "during capture; compare the items one by one");
    return -1;
}

static int plain_equal(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    if (a == b)
        return a->type != CFXI_TYPE_FLOAT || a->as.f == a->as.f;
    if (is_number(a) && is_number(b))
        return numbers(w, CFX_SIGN_EQ, a, b);
    if (is_set(a) && is_set(b))
        return dicts_equal(w, a, b, err);
    if (cfxi_world_is_value(a) || cfxi_world_is_value(b))
        return arrays_equal(a, b, err);
    if (a->type != b->type)
        return 0;
    switch ((cfxi_type)a->type) {
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_DEVICE: return texts_equal(a, b);
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_SLICE: return sequences_equal(w, a, b, err);
    case CFXI_TYPE_DICT: return dicts_equal(w, a, b, err);
    case CFXI_TYPE_RANGE: return ranges_equal(a, b);
    case CFXI_TYPE_DTYPE:
    case CFXI_TYPE_LAYOUT:
    case CFXI_TYPE_MEMORY_FORMAT: return a->as.i == b->as.i;
    case CFXI_TYPE_METHOD: return a->as.parts.a == b->as.parts.a && a->as.parts.b == b->as.parts.b;
    default: return 0;
    }
}

int cfxi_world_equal(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    bool found = false;
    if (a->cls || b->cls) {
        cfx_object *made = by_method(w, CFX_SIGN_EQ, a, b, false, &found, err);
        const int same = made ? cfxi_world_truth_of(w, made, err) : -1;
        cfxi_world_unref(made);
        if (found)
            return same;
    }
    if (cfxi_world_check_known(a, err) != CFX_OK || cfxi_world_check_known(b, err) != CFX_OK)
        return -1;
    return plain_equal(w, a, b, err);
}

/* -1 less, 0 equal, 1 greater. */
static int order_texts(const cfx_object *a, const cfx_object *b)
{
    const size_t n = a->as.text.size < b->as.text.size ? a->as.text.size : b->as.text.size;
    const int order = memcmp(a->as.text.data, b->as.text.data, n);
    return order ? (order < 0 ? -1 : 1)
                 : (a->as.text.size > b->as.text.size) - (a->as.text.size < b->as.text.size);
}

static int no_order(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                    cfx_error *err)
{
    char left[64];
    snprintf(left, sizeof left, "%s", cfxi_world_type_name(a));
    cfxi_world_raise(w, err, CFXI_TypeError,
                     "'%s' not supported between instances of '%s' and '%s'", sign_text[sign], left,
                     cfxi_world_type_name(b));
    return -1;
}

static int order(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b, cfx_error *err);

static int order_sequences(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                           cfx_error *err)
{
    size_t i = 0;
    int answer = -2;
    if (cfxi_world_deeper(w, err) != CFX_OK)
        return -1;
    for (; answer == -2 && i < a->as.seq.n && i < b->as.seq.n; i++) {
        const int same = cfxi_world_equal(w, a->as.seq.items[i], b->as.seq.items[i], err);
        if (same < 0)
            answer = -1;
        else if (!same)
            answer = order(w, sign, a->as.seq.items[i], b->as.seq.items[i], err);
    }
    w->depth--;
    if (answer != -2)
        return answer;
    const int by_size = (a->as.seq.n > b->as.seq.n) - (a->as.seq.n < b->as.seq.n);
    return sign == CFX_SIGN_LT   ? by_size < 0
           : sign == CFX_SIGN_LE ? by_size <= 0
           : sign == CFX_SIGN_GT ? by_size > 0
                                 : by_size >= 0;
}

/* Whether all of `a` is in `b`; more must be in there if `strict`. */
static int is_subset(cfx_object *a, cfx_object *b, bool strict, cfx_error *err)
{
    cfx_object *key;
    cfx_object *there = NULL;
    if (a->as.dict.n > b->as.dict.n || (strict && a->as.dict.n == b->as.dict.n))
        return 0;
    for (size_t at = 0; cfxi_world_dict_next(a, &at, &key, NULL);) {
        if (cfxi_world_dict_find(b, key, &there, err) != CFX_OK)
            return -1;
        if (!there)
            return 0;
    }
    return 1;
}

/* a < b and its like, for objects without user-defined methods. */
static int plain_order(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                       cfx_error *err)
{
    const bool turned = sign == CFX_SIGN_GT || sign == CFX_SIGN_GE;
    const bool strict = sign == CFX_SIGN_LT || sign == CFX_SIGN_GT;
    if (cfxi_world_is_real(a) && cfxi_world_is_real(b))
        return numbers(w, sign, a, b);
    if (a->type == b->type && (a->type == CFXI_TYPE_STR || a->type == CFXI_TYPE_BYTES)) {
        const int o = order_texts(a, b);
        return strict ? (turned ? o > 0 : o < 0) : (turned ? o >= 0 : o <= 0);
    }
    if (a->type == b->type && (a->type == CFXI_TYPE_TUPLE || a->type == CFXI_TYPE_LIST))
        return order_sequences(w, sign, a, b, err);
    if (is_set(a) && is_set(b))
        return is_subset(turned ? b : a, turned ? a : b, strict, err);
    return no_order(w, sign, a, b, err);
}

static int order(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    bool found = false;
    for (int i = 0; i < 2 && (a->cls || b->cls); i++) {  /* b > a does for a < b */
        static const uint8_t mirror[CFX_SIGNS] = {
            [CFX_SIGN_LT] = CFX_SIGN_GT, [CFX_SIGN_LE] = CFX_SIGN_GE,
            [CFX_SIGN_GT] = CFX_SIGN_LT, [CFX_SIGN_GE] = CFX_SIGN_LE};
        const cfx_script_sign s = i == 0 ? sign : (cfx_script_sign)mirror[sign];
        cfx_object *made = cfxi_world_special(w, i == 0 ? a : b, special_name(s, "", name),
                                        i == 0 ? &b : &a, 1, &found, err);
        if (found && made != w->not_implemented) {
            const int t = made ? cfxi_world_truth_of(w, made, err) : -1;
            cfxi_world_unref(made);
            return t;
        }
        cfxi_world_unref(made);
    }
    return plain_order(w, sign, a, b, err);
}

int cfxi_world_less(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err)
{
    return order(w, CFX_SIGN_LT, a, b, err);
}

static cfx_object *truth_or_null(cfxi_world *w, int t, bool turned)
{
    return t < 0 ? NULL : cfxi_world_truth_object(w, turned ? !t : t);
}

/* A graph value may have any type, unless a module of torch.nn computes it. */
static cfx_object *identity(cfxi_world *w, cfx_object *a, cfx_object *b, bool negated,
                            cfx_error *err)
{
    const cfx_object *value = a->type == CFXI_TYPE_VALUE ? a : b;
    if (value->type != CFXI_TYPE_VALUE || cfx_node_op(value->as.node) == CFX_OP_CALL_MODULE)
        return cfxi_world_truth_object(w, (a == b) != negated);
    return cfxi_world_perform_on(w, negated ? "operator.is_not" : "operator.is_", a, b, err);
}

/* Whether `item in container` depends on a graph value: on the item, or one in a list. */
static bool asks_graph(const cfx_object *item, const cfx_object *container)
{
    if (cfxi_world_is_value(container))
        return true;
    if (container->cls || container->type == CFXI_TYPE_MODULE)
        return false;
    const bool list = container->type == CFXI_TYPE_LIST || container->type == CFXI_TYPE_TUPLE;
    return cfxi_world_has_value(item, false) || (list && cfxi_world_has_value(container, false));
}

static cfx_object *record_contains(cfxi_world *w, cfx_object *container, cfx_object *item,
                                   bool negated, cfx_error *err)
{
    const bool plain = cfxi_world_is_value(container) || container->type == CFXI_TYPE_STR ||
                       container->type == CFXI_TYPE_LIST || container->type == CFXI_TYPE_TUPLE;
    cfx_object *in = plain ? cfxi_world_ref(container)
                           : cfxi_world_collect(w, CFXI_TYPE_TUPLE, container, err);
    cfx_object *there = in ? cfxi_world_perform_on(w, "operator.contains", in, item, err) : NULL;
    cfx_object *made = there && negated ? cfxi_world_unary(w, CFX_SIGN_NOT, there, err)
                                        : cfxi_world_ref(there);
    cfxi_world_unref(there);
    cfxi_world_unref(in);
    return made;
}

/* What __contains__ of the user's class says; *found false: it has none. */
static cfx_object *contains_by_method(cfxi_world *w, cfx_object *container, cfx_object *item,
                                      bool negated, bool *found, cfx_error *err)
{
    *found = false;
    cfx_object *there = container->cls ? cfxi_world_special(w, container, "__contains__", &item, 1,
                                                            found, err) : NULL;
    if (!there || (cfxi_world_is_value(there) && !negated))
        return there;
    cfx_object *made = cfxi_world_is_value(there)
                           ? cfxi_world_unary(w, CFX_SIGN_NOT, there, err)
                           : truth_or_null(w, cfxi_world_truth_of(w, there, err), negated);
    cfxi_world_unref(there);
    return made;
}

cfx_object *cfxi_world_compare(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                               cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    bool found = false;
    if (sign == CFX_SIGN_IS || sign == CFX_SIGN_IS_NOT)
        return identity(w, a, b, sign == CFX_SIGN_IS_NOT, err);
    if (sign == CFX_SIGN_IN || sign == CFX_SIGN_NOT_IN) {
        cfx_object *own = contains_by_method(w, b, a, sign == CFX_SIGN_NOT_IN, &found, err);
        if (found)
            return own;
        if (asks_graph(a, b))
            return record_contains(w, b, a, sign == CFX_SIGN_NOT_IN, err);
        return truth_or_null(w, cfxi_world_contains(w, b, a, err), sign == CFX_SIGN_NOT_IN);
    }
    if (!cfxi_world_is_value(a) && !cfxi_world_is_value(b) && a->type == b->type &&
        (cfxi_world_has_value(a, false) || cfxi_world_has_value(b, false)))
        return cfxi_world_perform_on(w, operator_name(sign, false, name), a, b, err);
    if (cfxi_world_is_value(a) || cfxi_world_is_value(b)) {
        const bool same = sign == CFX_SIGN_EQ || sign == CFX_SIGN_NE;
        const bool tensors = a->type == CFXI_TYPE_TENSOR || b->type == CFXI_TYPE_TENSOR;
        if (same && tensors && (a->type == CFXI_TYPE_NONE || b->type == CFXI_TYPE_NONE))
            return cfxi_world_truth_object(w, sign == CFX_SIGN_NE);
        return cfxi_world_perform_on(w, operator_name(sign, false, name), a, b, err);
    }
    if (sign == CFX_SIGN_EQ)
        return truth_or_null(w, cfxi_world_equal(w, a, b, err), false);
    if (sign == CFX_SIGN_NE) {
        cfx_object *made = a->cls ? cfxi_world_special(w, a, "__ne__", &b, 1, &found, err) : NULL;
        return found ? made : truth_or_null(w, cfxi_world_equal(w, a, b, err), true);
    }
    return truth_or_null(w, order(w, sign, a, b, err), false);
}

bool cfxi_world_same(cfxi_world *w, cfx_object *a, cfx_object *b)
{
    cfx_error err = {0};
    if (a == b)
        return true;
    if (a->type != b->type || a->cls != b->cls)
        return false;
    switch ((cfxi_type)a->type) {
    case CFXI_TYPE_FLOAT: return memcmp(&a->as.f, &b->as.f, sizeof a->as.f) == 0;
    case CFXI_TYPE_COMPLEX: return memcmp(a->as.c, b->as.c, sizeof a->as.c) == 0;
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_SLICE:
        if (a->as.seq.n != b->as.seq.n || cfxi_world_deeper(w, &err) != CFX_OK)
            return false;
        for (size_t i = 0; i < a->as.seq.n; i++)
            if (!cfxi_world_same(w, a->as.seq.items[i], b->as.seq.items[i])) {
                w->depth--;
                return false;
            }
        w->depth--;
        return true;
    case CFXI_TYPE_BOOL:
    case CFXI_TYPE_INT:
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_DEVICE:
    case CFXI_TYPE_RANGE:
    case CFXI_TYPE_DTYPE:
    case CFXI_TYPE_LAYOUT:
    case CFXI_TYPE_MEMORY_FORMAT:
    case CFXI_TYPE_VALUE: return plain_equal(w, a, b, &err) == 1;
    default: return false;
    }
}

/* ---- hashing ------------------------------------------------------------------------------- */

/* Numbers that are equal have the same hash, whatever their type. */
static uint32_t hash_number(double f)
{
    if (f == floor(f) && fabs(f) < 0x1p63)
        return (uint32_t)cfxi_base_hash_mix(17, (uint64_t)(int64_t)f);
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint32_t)cfxi_base_hash_mix(19, bits);
}

static cfx_status hash_items(cfxi_world *w, cfx_object *o, uint32_t *hash, cfx_error *err)
{
    uint64_t h = 23;
    cfx_status status = cfxi_world_deeper(w, err);
    if (status != CFX_OK)
        return status;
    for (size_t i = 0; status == CFX_OK && i < o->as.seq.n; i++) {
        uint32_t one = 0;
        status = cfxi_world_hash(w, o->as.seq.items[i], &one, err);
        h = cfxi_base_hash_mix(h, one);
    }
    w->depth--;
    *hash = (uint32_t)h;
    return status;
}

/* A class that says what is equal has to say how it is hashed, or that it is not. */
static bool has_hash(const cfx_object *cls)
{
    const cfx_object *mro = cls ? cls->as.cls.mro : NULL;
    for (size_t i = 0; mro && i < mro->as.seq.n; i++) {
        const cfx_object *attrs = mro->as.seq.items[i]->attrs;
        const cfx_object *own = attrs ? cfxi_world_dict_get(attrs, "__hash__") : NULL;
        if (own)
            return own->type != CFXI_TYPE_NONE;
        if (attrs && cfxi_world_dict_get(attrs, "__eq__"))
            return false;
    }
    return true;
}

static cfx_status hash_own(cfxi_world *w, cfx_object *o, uint32_t *hash, cfx_error *err)
{
    bool found = false;
    if (!has_hash(o->cls))
        return cfxi_world_throw(w, err, CFXI_TypeError, "unhashable type: '%s'",
                                cfxi_world_type_name(o));
    cfx_object *made = cfxi_world_special(w, o, "__hash__", NULL, 0, &found, err);
    *hash = cfxi_base_hash_pointer(o);
    if (!found)
        return CFX_OK;
    if (!made)
        return err->status;
    *hash = made->type == CFXI_TYPE_INT
                ? (uint32_t)cfxi_base_hash_mix(29, (uint64_t)made->as.i) : 0;
    cfxi_world_unref(made);
    return CFX_OK;
}

cfx_status cfxi_world_hash(cfxi_world *w, cfx_object *o, uint32_t *hash, cfx_error *err)
{
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_BOOL:
    case CFXI_TYPE_INT:
        *hash = (uint32_t)cfxi_base_hash_mix(17, (uint64_t)cfxi_world_whole(o));
        return CFX_OK;
    case CFXI_TYPE_FLOAT: *hash = hash_number(o->as.f); return CFX_OK;
    case CFXI_TYPE_COMPLEX: *hash = hash_number(o->as.c[0]); return CFX_OK;
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_DEVICE:
        *hash = (uint32_t)cfxi_base_hash_bytes(o->as.text.data, o->as.text.size);
        return CFX_OK;
    case CFXI_TYPE_DTYPE:
        *hash = (uint32_t)cfxi_base_hash_mix(31, (uint64_t)o->as.i);
        return CFX_OK;
    case CFXI_TYPE_TUPLE: return hash_items(w, o, hash, err);
    case CFXI_TYPE_FROZENSET:
    case CFXI_TYPE_RANGE: *hash = 37; return CFX_OK;
    case CFXI_TYPE_VALUE:  /* which it is equal to is not known */
        return cfx_error_set(
            err, CFX_E_UNSUPPORTED,
            "a graph value cannot be a key of a dict or an item of a set: its value is not known "
            "during capture");
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_SLICE:
        return cfxi_world_throw(w, err, CFXI_TypeError, "unhashable type: '%s'",
                                cfxi_world_type_name(o));
    case CFXI_TYPE_INSTANCE: return hash_own(w, o, hash, err);
    default: *hash = cfxi_base_hash_pointer(o); return CFX_OK;
    }
}

cfx_status cfxi_world_index_of(cfxi_world *w, cfx_object *o, const char *what, int64_t *i,
                               cfx_error *err)
{
    bool found = false;
    if (cfxi_world_is_whole(o)) {
        *i = cfxi_world_whole(o);
        return CFX_OK;
    }
    cfx_object *made = o->cls ? cfxi_world_special(w, o, "__index__", NULL, 0, &found, err) : NULL;
    if (made && cfxi_world_is_whole(made)) {
        *i = cfxi_world_whole(made);
        cfxi_world_unref(made);
        return CFX_OK;
    }
    cfxi_world_unref(made);
    if (found && !made)
        return err->status;
    if (o->type == CFXI_TYPE_VALUE)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "%s must be known during capture, but it is a graph value", what);
    return cfxi_world_throw(w, err, CFXI_TypeError, "%s must be an integer, not '%s'", what,
                      cfxi_world_type_name(o));
}
