/* builtin.c - Python's builtin functions, and what the calls of builtin classes make. */
#include "world_impl.h"

#include <math.h>
#include <stdio.h>

/* ---- arguments ----------------------------------------------------------------------------- */

cfx_status cfxi_w_args(cfxi_world *w, const cfx_call_args *a, const char *function,
                       const char *const *names, size_t least, size_t most, cfx_object **out,
                       cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    for (size_t i = 0; i < most; i++)
        out[i] = NULL;
    if (plain > most)
        return cfxi_w_throw(w, err, CFXI_TypeError, "%s() takes at most %zu arguments (%zu given)",
                            function, most, plain);
    for (size_t i = 0; i < plain; i++) {
        if (names && names[i] && names[i][0] == '*')
            return cfxi_w_throw(w, err, CFXI_TypeError, "%s() takes '%s' by name only", function,
                                names[i] + 1);
        out[i] = a->args[i];
    }
    for (size_t k = 0; k < a->n_named; k++) {
        size_t i = 0;
        while (names && i < most && (!names[i] || strcmp(names[i] + (names[i][0] == '*'),
                                                         a->names[k]) != 0))
            i++;
        if (!names || i == most)
            return cfxi_w_throw(w, err, CFXI_TypeError, "%s() got an unexpected keyword argument "
                                "'%s'", function, a->names[k]);
        if (out[i])
            return cfxi_w_throw(w, err, CFXI_TypeError, "%s() got multiple values for argument "
                                "'%s'", function, a->names[k]);
        out[i] = a->args[plain + k];
    }
    for (size_t i = 0; i < least; i++)
        if (!out[i])
            return cfxi_w_throw(w, err, CFXI_TypeError, "%s() is missing its argument %zu",
                                function,
                                i + 1);
    return CFX_OK;
}

cfx_object *cfxi_w_builtin_object(cfxi_world *w, const char *name, cfxi_builtin_fn *fn,
                                  cfx_operator op, cfx_error *err)
{
    const size_t size = strlen(name) + 1;
    cfx_object *o = cfxi_w_object_new(w, CFXI_TYPE_BUILTIN, err);
    char *copy = o ? cfxi_world_alloc(w, size, err) : NULL;
    if (!copy) {
        cfxi_w_unref(o);
        return NULL;
    }
    memcpy(copy, name, size);
    o->as.builtin.name = copy;
    o->as.builtin.fn = fn;
    o->as.builtin.op = op;
    o->flag = op != CFX_OPID_NONE;
    return o;
}

static bool is_value(const cfx_object *o)
{
    return o->type == CFXI_TYPE_VALUE || o->type == CFXI_TYPE_ATTRIBUTE ||
           o->type == CFXI_TYPE_TENSOR;
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* A text without white space around it. */
static void trim(const cfx_object *s, const char **text, size_t *size)
{
    *text = s->as.text.data;
    *size = s->as.text.size;
    while (*size > 0 && strchr(" \t\n\r", **text)) {
        ++*text;
        --*size;
    }
    while (*size > 0 && strchr(" \t\n\r", (*text)[*size - 1]))
        --*size;
}

static cfx_object *int_of_text(cfxi_world *w, const cfx_object *s, int64_t base, cfx_error *err)
{
    const char *at;
    size_t size;
    trim(s, &at, &size);
    bool good = base >= 2 && base <= 36;
    const bool negative = size > 0 && *at == '-';
    size_t i = size > 0 && (*at == '-' || *at == '+');
    if (size > i + 2 && at[i] == '0' && (at[i + 1] | 32) == (base == 16 ? 'x' : base == 2 ? 'b'
                                                             : base == 8 ? 'o' : 0))
        i += 2;
    good = good && i < size;
    int64_t n = 0;
    for (; good && i < size; i++) {
        const int c = at[i] | 32;
        const int digit = cfxi_is_digit(at[i]) ? at[i] - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10
                                                                                    : 99;
        if (at[i] == '_')
            continue;
        good = digit < base && !__builtin_mul_overflow(n, base, &n) &&
               !__builtin_add_overflow(n, negative ? -digit : digit, &n);
    }
    if (!good)
        return cfxi_w_raise(w, err, CFXI_ValueError, "invalid literal for int() with base %lld: "
                            "'%.100s'", (long long)base, s->as.text.data);
    return cfxi_w_int_object(w, n, err);
}

CFXI_BUILTIN(make_int)
{
    static const char *const names[] = {"x", "base"};
    cfx_object *in[2];
    int64_t base = 10;
    bool found = false;
    if (cfxi_w_args(w, a, "int", names, 0, 2, in, err) != CFX_OK ||
        (in[1] && cfxi_w_index_of(w, in[1], "the base", &base, err) != CFX_OK))
        return NULL;
    if (!in[0])
        return cfxi_w_int_object(w, 0, err);
    if (is_value(in[0]))
        return cfxi_w_perform_on(w, "builtins.int", in[0], NULL, err);
    if (in[0]->type == CFXI_TYPE_STR)
        return int_of_text(w, in[0], base, err);
    if (cfxi_w_is_whole(in[0]))
        return cfxi_w_int_object(w, cfxi_w_whole(in[0]), err);
    if (in[0]->type == CFXI_TYPE_FLOAT) {
        const double f = trunc(in[0]->as.f);
        if (isnan(f))
            return cfxi_w_raise(w, err, CFXI_ValueError, "cannot convert float NaN to integer");
        if (!(f >= -0x1p63 && f < 0x1p63))
            return cfxi_w_raise(w, err, CFXI_OverflowError, "a float that is no integer of 64 "
                                "bits");
        return cfxi_w_int_object(w, (int64_t)f, err);
    }
    cfx_object *made = cfxi_w_special(w, in[0], "__int__", NULL, 0, &found, err);
    if (found)
        return made;
    return cfxi_w_raise(w, err, CFXI_TypeError, "int() argument must be a string, a bytes-like "
                        "object or a real number, not '%s'", cfxi_w_type_name(w, in[0]));
}

CFXI_BUILTIN(make_float)
{
    cfx_object *in[1];
    double f;
    const char *text;
    size_t size;
    bool found = false;
    if (cfxi_w_args(w, a, "float", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (!in[0])
        return cfxi_w_float_object(w, 0, err);
    if (is_value(in[0]))
        return cfxi_w_perform_on(w, "builtins.float", in[0], NULL, err);
    if (cfxi_w_is_real(in[0]))
        return cfxi_w_float_object(w, cfxi_w_real(in[0]), err);
    if (in[0]->type == CFXI_TYPE_STR) {
        trim(in[0], &text, &size);
        if (cfxi_parse_float(text, size, &f))
            return cfxi_w_float_object(w, f, err);
        const bool minus = size > 0 && *text == '-';
        const size_t sign = minus || (size > 0 && *text == '+');
        if ((size == sign + 3 && strncmp(text + sign, "Inf", 3) == 0) ||
            (size == sign + 8 && strncmp(text + sign, "infinity", 8) == 0))
            return cfxi_w_float_object(w, minus ? -INFINITY : INFINITY, err);
        return cfxi_w_raise(w, err, CFXI_ValueError, "could not convert string to float: '%.100s'",
                            in[0]->as.text.data);
    }
    cfx_object *made = cfxi_w_special(w, in[0], "__float__", NULL, 0, &found, err);
    if (found)
        return made;
    return cfxi_w_raise(w, err, CFXI_TypeError, "float() argument must be a string or a real "
                        "number, not '%s'", cfxi_w_type_name(w, in[0]));
}

CFXI_BUILTIN(make_complex)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "complex", NULL, 0, 2, in, err) != CFX_OK)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (in[i] && !cfxi_w_is_real(in[i]))
            return cfxi_w_raise(w, err, CFXI_TypeError, "complex() takes real numbers here, not "
                                "'%s'", cfxi_w_type_name(w, in[i]));
    return cfxi_w_complex_object(w, in[0] ? cfxi_w_real(in[0]) : 0,
                                 in[1] ? cfxi_w_real(in[1]) : 0, err);
}

CFXI_BUILTIN(make_bool)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "bool", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && is_value(in[0]))
        return cfxi_w_perform_on(w, "builtins.bool", in[0], NULL, err);
    const int t = in[0] ? cfxi_w_truth_of(w, in[0], err) : 0;
    return t < 0 ? NULL : cfxi_w_truth_object(w, t);
}

CFXI_BUILTIN(b_abs)
{
    cfx_object *in[1];
    bool found = false;
    if (cfxi_w_args(w, a, "abs", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (is_value(in[0]))
        return cfxi_w_perform_on(w, "operator.abs", in[0], NULL, err);
    if (in[0]->type == CFXI_TYPE_FLOAT)
        return cfxi_w_float_object(w, fabs(in[0]->as.f), err);
    if (in[0]->type == CFXI_TYPE_COMPLEX)
        return cfxi_w_float_object(w, hypot(in[0]->as.c[0], in[0]->as.c[1]), err);
    if (cfxi_w_is_whole(in[0]))
        return cfxi_w_unary(w, cfxi_w_whole(in[0]) < 0 ? CFX_SIGN_NEG : CFX_SIGN_POS, in[0], err);
    cfx_object *made = cfxi_w_special(w, in[0], "__abs__", NULL, 0, &found, err);
    return found ? made : cfxi_w_raise(w, err, CFXI_TypeError, "bad operand type for abs(): '%s'",
                                       cfxi_w_type_name(w, in[0]));
}

/* To the nearest multiple of 10^-digits, of two the even one: by the digits, as Python does. */
static double round_digits(double f, int64_t digits)
{
    char text[400];
    if (!isfinite(f) || digits > 300)
        return f;
    if (digits < -308)
        return copysign(0, f);
    if (digits < 0) {
        const double unit = pow(10, (double)-digits);
        return nearbyint(f / unit) * unit;
    }
    snprintf(text, sizeof text, "%.*f", (int)digits, f);
    for (char *c = text; *c; c++)
        if (!cfxi_is_digit(*c) && *c != '-')
            *c = '.';
    double rounded;
    return cfxi_parse_float(text, strlen(text), &rounded) ? rounded : f;
}

CFXI_BUILTIN(b_round)
{
    static const char *const names[] = {"number", "ndigits"};
    cfx_object *in[2];
    int64_t digits = 0;
    if (cfxi_w_args(w, a, "round", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (is_value(in[0]))
        return cfxi_w_record(w, CFX_OP_CALL_FUNCTION, "builtins.round", a, err);
    const bool whole = !in[1] || in[1]->type == CFXI_TYPE_NONE;
    if (!whole && cfxi_w_index_of(w, in[1], "ndigits", &digits, err) != CFX_OK)
        return NULL;
    if (!cfxi_w_is_real(in[0]))
        return cfxi_w_raise(w, err, CFXI_TypeError, "type %s doesn't define __round__ method",
                            cfxi_w_type_name(w, in[0]));
    if (cfxi_w_is_whole(in[0]) && (whole || digits >= 0))
        return cfxi_w_int_object(w, cfxi_w_whole(in[0]), err);
    if (cfxi_w_is_whole(in[0]))
        return cfxi_w_int_object(w, (int64_t)round_digits(cfxi_w_real(in[0]), digits), err);
    if (!whole)
        return cfxi_w_float_object(w, round_digits(in[0]->as.f, digits), err);
    const double f = nearbyint(in[0]->as.f);
    if (!(f >= -0x1p63 && f < 0x1p63))
        return cfxi_w_raise(w, err, isnan(f) ? CFXI_ValueError : CFXI_OverflowError,
                            "cannot convert float to integer");
    return cfxi_w_int_object(w, (int64_t)f, err);
}

CFXI_BUILTIN(b_pow)
{
    static const char *const names[] = {"base", "exp", "mod"};
    cfx_object *in[3];
    if (cfxi_w_args(w, a, "pow", names, 2, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *made = cfxi_w_binary(w, CFX_SIGN_POW, in[0], in[1], false, err);
    if (!made || !in[2])
        return made;
    cfx_object *rest = cfxi_w_binary(w, CFX_SIGN_MOD, made, in[2], false, err);
    cfxi_w_unref(made);
    return rest;
}

CFXI_BUILTIN(b_divmod)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "divmod", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *both[2] = {cfxi_w_binary(w, CFX_SIGN_FLOORDIV, in[0], in[1], false, err), NULL};
    both[1] = both[0] ? cfxi_w_binary(w, CFX_SIGN_MOD, in[0], in[1], false, err) : NULL;
    return cfxi_w_seq_take(w, CFXI_TYPE_TUPLE, both, 2, err);
}

/* ---- of several ---------------------------------------------------------------------------- */

CFXI_BUILTIN(b_len)
{
    cfx_object *in[1];
    int64_t n;
    if (cfxi_w_args(w, a, "len", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type == CFXI_TYPE_TENSOR && cfx_tensor_ndim(in[0]->as.tensor) > 0)
        return cfxi_w_int_object(w, cfx_tensor_sizes(in[0]->as.tensor)[0], err);
    if (is_value(in[0]))
        return cfxi_w_perform_on(w, "builtins.len", in[0], NULL, err);
    return cfxi_w_length(w, in[0], &n, err) == CFX_OK ? cfxi_w_int_object(w, n, err) : NULL;
}

/* The better one of two, by their keys: NULL if comparing failed. Borrowed. */
static cfx_object *choose(cfxi_world *w, cfx_object *best, cfx_object *other, cfx_object *key,
                          bool larger, cfx_error *err)
{
    cfx_object *x = key ? cfxi_w_call_with(w, key, &best, 1, err) : cfxi_w_ref(best);
    cfx_object *y = x && key ? cfxi_w_call_with(w, key, &other, 1, err) : cfxi_w_ref(other);
    const int better = !x || !y ? -1 : larger ? cfxi_w_less(w, x, y, err)
                                              : cfxi_w_less(w, y, x, err);
    cfxi_w_unref(x);
    cfxi_w_unref(y);
    return better < 0 ? NULL : better ? other : best;
}

/* Sizes of the graph have a function for the larger of two. */
static cfx_object *choose_value(cfxi_world *w, const cfx_object *items, bool larger, cfx_error *err)
{
    cfx_object *best = cfxi_w_ref(items->as.seq.items[0]);
    for (size_t i = 1; best && i < items->as.seq.n; i++) {
        cfx_object *args[] = {best, items->as.seq.items[i]};
        cfx_object *next = cfxi_w_record(w, CFX_OP_CALL_FUNCTION,
                                         larger ? "torch.sym_max" : "torch.sym_min",
                                         &(cfx_call_args){.args = args, .n = 2}, err);
        cfxi_w_unref(best);
        best = next;
    }
    return best;
}

static cfx_object *extreme(cfxi_world *w, const cfx_call_args *a, bool larger, cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    cfx_object *key = NULL;
    cfx_object *usual = NULL;
    for (size_t i = 0; i < a->n_named; i++)
        if (strcmp(a->names[i], "key") == 0 && a->args[plain + i]->type != CFXI_TYPE_NONE)
            key = a->args[plain + i];
        else if (strcmp(a->names[i], "default") == 0)
            usual = a->args[plain + i];
    if (plain == 1 && a->args[0]->type == CFXI_TYPE_VALUE)
        return cfxi_w_record(w, CFX_OP_CALL_FUNCTION, larger ? "builtins.max" : "builtins.min", a,
                             err);
    cfx_object *items = plain == 1 ? cfxi_w_collect(w, CFXI_TYPE_LIST, a->args[0], err)
                                   : cfxi_w_seq_object(w, CFXI_TYPE_LIST, a->args, plain, err);
    if (!items)
        return NULL;
    cfx_object *best = items->as.seq.n ? items->as.seq.items[0] : usual;
    cfx_object *made = NULL;
    if (!best)
        cfxi_w_raise(w, err, CFXI_ValueError, "%s() iterable argument is empty",
                     larger ? "max" : "min");
    else if (!key && items->as.seq.n > 1 && cfxi_w_has_value(items, false))
        made = choose_value(w, items, larger, err);
    else {
        for (size_t i = 1; best && i < items->as.seq.n; i++)
            best = choose(w, best, items->as.seq.items[i], key, larger, err);
        made = cfxi_w_ref(best);
    }
    cfxi_w_unref(items);
    return made;
}

CFXI_BUILTIN(b_min) { return extreme(w, a, false, err); }
CFXI_BUILTIN(b_max) { return extreme(w, a, true, err); }

CFXI_BUILTIN(b_sum)
{
    static const char *const names[] = {"iterable", "start"};
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "sum", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_w_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *sum = in[1] ? cfxi_w_ref(in[1]) : cfxi_w_int_object(w, 0, err);
    for (size_t i = 0; items && sum && i < items->as.seq.n; i++) {
        cfx_object *next = cfxi_w_binary(w, CFX_SIGN_ADD, sum, items->as.seq.items[i], false, err);
        cfxi_w_unref(sum);
        sum = next;
    }
    if (!items)
        cfxi_w_clear(&sum);
    cfxi_w_unref(items);
    return sum;
}

/* Whether one (or all) of them are true. */
static cfx_object *any_or_all(cfxi_world *w, const cfx_call_args *a, bool all, cfx_error *err)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, all ? "all" : "any", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *it = cfxi_w_iterate(w, in[0], err);
    int t = all;
    if (!it)
        return NULL;
    err->status = CFX_OK;
    for (cfx_object *x; t == (int)all && (x = cfxi_w_next(w, it, err)) != NULL; cfxi_w_unref(x))
        t = cfxi_w_truth_of(w, x, err);
    cfxi_w_unref(it);
    return t < 0 || err->status != CFX_OK ? NULL : cfxi_w_truth_object(w, t);
}

CFXI_BUILTIN(b_any) { return any_or_all(w, a, false, err); }
CFXI_BUILTIN(b_all) { return any_or_all(w, a, true, err); }

CFXI_BUILTIN(b_sorted)
{
    if (a->n == a->n_named)
        return cfxi_w_raise(w, err, CFXI_TypeError, "sorted expected 1 argument, got 0");
    cfx_object *list = cfxi_w_collect(w, CFXI_TYPE_LIST, a->args[0], err);
    if (!list)
        return NULL;
    const cfx_call_args rest = {a->args + 1, a->n - 1, a->names, a->n_named};
    cfx_object *none = cfxi_w_sequence_method(CFXI_TYPE_LIST, "sort")->fn(w, list, &rest, err);
    if (!none)
        cfxi_w_clear(&list);
    cfxi_w_unref(none);
    return list;
}

/* ---- iterators ----------------------------------------------------------------------------- */

CFXI_BUILTIN(b_iter)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "iter", NULL, 1, 1, in, err) == CFX_OK ? cfxi_w_iterate(w, in[0], err)
                                                                    : NULL;
}

CFXI_BUILTIN(b_next)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "next", NULL, 1, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *made = cfxi_w_next(w, in[0], err);
    if (made || err->status != CFX_OK)
        return made;
    return in[1] ? cfxi_w_ref(in[1]) : cfxi_w_raise(w, err, CFXI_StopIteration, "%s", "");
}

CFXI_BUILTIN(b_enumerate)
{
    static const char *const names[] = {"iterable", "start"};
    cfx_object *in[2];
    int64_t start = 0;
    if (cfxi_w_args(w, a, "enumerate", names, 1, 2, in, err) != CFX_OK ||
        (in[1] && cfxi_w_index_of(w, in[1], "start", &start, err) != CFX_OK))
        return NULL;
    cfx_object *it = cfxi_w_iterate(w, in[0], err);
    cfx_object *made = it ? cfxi_w_iterator(w, CFXI_STEP_ENUMERATE, it, NULL, start, err) : NULL;
    cfxi_w_unref(it);
    return made;
}

/* A tuple of iterators over the arguments from `first` on. */
static cfx_object *iterators(cfxi_world *w, const cfx_call_args *a, size_t first, cfx_error *err)
{
    cfx_object *all = cfxi_w_seq_object(w, CFXI_TYPE_TUPLE, NULL, 0, err);
    for (size_t i = first; all && i < a->n - a->n_named; i++) {
        cfx_object *it = cfxi_w_iterate(w, a->args[i], err);
        if (!it || cfxi_w_list_append(all, it, err) != CFX_OK)
            cfxi_w_clear(&all);
        cfxi_w_unref(it);
    }
    return all;
}

CFXI_BUILTIN(b_zip)
{
    cfx_object *all = iterators(w, a, 0, err);
    cfx_object *made = all ? cfxi_w_iterator(w, CFXI_STEP_ZIP, NULL, all, 0, err) : NULL;
    cfxi_w_unref(all);
    return made;
}

CFXI_BUILTIN(b_map)
{
    if (a->n < 2)
        return cfxi_w_raise(w, err, CFXI_TypeError, "map() must have at least two arguments.");
    cfx_object *all = iterators(w, a, 1, err);
    cfx_object *made = all ? cfxi_w_iterator(w, CFXI_STEP_MAP, a->args[0], all, 0, err) : NULL;
    cfxi_w_unref(all);
    return made;
}

CFXI_BUILTIN(b_filter)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "filter", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *it = cfxi_w_iterate(w, in[1], err);
    cfx_object *made = it ? cfxi_w_iterator(w, CFXI_STEP_FILTER, in[0], it, 0, err) : NULL;
    cfxi_w_unref(it);
    return made;
}

CFXI_BUILTIN(b_reversed)
{
    cfx_object *in[1];
    int64_t n;
    if (cfxi_w_args(w, a, "reversed", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *seq = cfxi_w_ref(in[0]);
    if (seq->type == CFXI_TYPE_DICT) {
        cfxi_w_unref(seq);
        seq = cfxi_w_collect(w, CFXI_TYPE_LIST, in[0], err);
    }
    cfx_object *made = seq && cfxi_w_length(w, seq, &n, err) == CFX_OK
                           ? cfxi_w_iterator(w, CFXI_STEP_BACK, seq, NULL, n, err) : NULL;
    cfxi_w_unref(seq);
    return made;
}

/* ---- containers ---------------------------------------------------------------------------- */

static cfx_object *make_container(cfxi_world *w, cfxi_type type, const char *name,
                                  const cfx_call_args *a, cfx_error *err)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, name, NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && in[0]->type == CFXI_TYPE_VALUE) {
        char target[32];
        snprintf(target, sizeof target, "builtins.%s", name);
        return cfxi_w_record(w, CFX_OP_CALL_FUNCTION, target, a, err);
    }
    return in[0] ? cfxi_w_collect(w, type, in[0], err) : cfxi_w_object_new(w, type, err);
}

CFXI_BUILTIN(make_list) { return make_container(w, CFXI_TYPE_LIST, "list", a, err); }
CFXI_BUILTIN(make_tuple) { return make_container(w, CFXI_TYPE_TUPLE, "tuple", a, err); }
CFXI_BUILTIN(make_set) { return make_container(w, CFXI_TYPE_SET, "set", a, err); }
CFXI_BUILTIN(make_frozenset)
{
    return make_container(w, CFXI_TYPE_FROZENSET, "frozenset", a, err);
}

CFXI_BUILTIN(make_dict)
{
    cfx_object *d = cfxi_w_dict_object(w, CFXI_TYPE_DICT, err);
    cfx_object *none = d ? cfxi_w_sequence_method(CFXI_TYPE_DICT, "update")->fn(w, d, a, err)
                         : NULL;
    if (!none)
        cfxi_w_clear(&d);
    cfxi_w_unref(none);
    return d;
}

CFXI_BUILTIN(make_slice)
{
    cfx_object *in[3];
    if (cfxi_w_args(w, a, "slice", NULL, 1, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *part[] = {in[1] ? in[0] : w->none, in[1] ? in[1] : in[0], in[2] ? in[2] : w->none};
    return cfxi_w_seq_object(w, CFXI_TYPE_SLICE, part, 3, err);
}

CFXI_BUILTIN(make_range)
{
    cfx_object *in[3];
    int64_t i[3] = {0, 0, 1};
    if (cfxi_w_args(w, a, "range", NULL, 1, 3, in, err) != CFX_OK)
        return NULL;
    for (int k = 0; k < 3; k++)
        if (in[k] && cfxi_w_index_of(w, in[k], "the arguments of range()", &i[k], err) != CFX_OK)
            return NULL;
    return in[1] ? cfxi_w_range_object(w, i[0], i[1], i[2], err)
                 : cfxi_w_range_object(w, 0, i[0], 1, err);
}

/* ---- texts --------------------------------------------------------------------------------- */

typedef cfx_status shower(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err);

static cfx_object *shown(cfxi_world *w, cfx_object *o, shower *show, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    if (show(w, o, &text, err) == CFX_OK)
        return cfxi_w_str_of_buffer(w, &text, err);
    cfx_buffer_free(&text);
    return NULL;
}

CFXI_BUILTIN(make_str)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "str", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && cfxi_w_has_value(in[0], false))
        return cfxi_w_record(w, CFX_OP_CALL_FUNCTION, "builtins.str", a, err);
    return in[0] ? shown(w, in[0], cfxi_w_show, err) : cfxi_w_str(w, "", err);
}

CFXI_BUILTIN(b_repr)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "repr", NULL, 1, 1, in, err) == CFX_OK
               ? shown(w, in[0], cfxi_w_repr, err) : NULL;
}

CFXI_BUILTIN(b_format)
{
    cfx_object *in[2];
    cfx_buffer text;
    if (cfxi_w_args(w, a, "format", NULL, 1, 2, in, err) != CFX_OK)
        return NULL;
    cfx_buffer_init(&text, w->allocator);
    const bool given = in[1] && in[1]->type == CFXI_TYPE_STR;
    if (cfxi_w_format(w, in[0], given ? in[1]->as.text.data : "", given ? in[1]->as.text.size : 0,
                      &text, err) == CFX_OK)
        return cfxi_w_str_of_buffer(w, &text, err);
    cfx_buffer_free(&text);
    return NULL;
}

CFXI_BUILTIN(b_ord)
{
    cfx_object *in[1];
    uint32_t code;
    if (cfxi_w_args(w, a, "ord", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_STR || in[0]->as.text.size == 0 ||
        cfxi_utf8_decode(in[0]->as.text.data, in[0]->as.text.size, &code) != in[0]->as.text.size)
        return cfxi_w_raise(w, err, CFXI_TypeError, "ord() expected a character");
    return cfxi_w_int_object(w, code, err);
}

CFXI_BUILTIN(b_chr)
{
    cfx_object *in[1];
    int64_t code;
    char utf8[4];
    if (cfxi_w_args(w, a, "chr", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_w_index_of(w, in[0], "chr()'s argument", &code, err) != CFX_OK)
        return NULL;
    if (code < 0 || code > 0x10ffff)
        return cfxi_w_raise(w, err, CFXI_ValueError, "chr() arg not in range(0x110000)");
    return cfxi_w_text_object(w, CFXI_TYPE_STR, utf8, cfxi_utf8_encode((uint32_t)code, utf8), err);
}

/* To where the caller wants it; nowhere if he does not. */
CFXI_BUILTIN(b_print)
{
    const size_t plain = a->n - a->n_named;
    const char *sep = " ";
    const char *end = "\n";
    cfx_buffer text;
    for (size_t i = 0; i < a->n_named; i++)
        if (a->args[plain + i]->type == CFXI_TYPE_STR) {
            sep = strcmp(a->names[i], "sep") == 0 ? a->args[plain + i]->as.text.data : sep;
            end = strcmp(a->names[i], "end") == 0 ? a->args[plain + i]->as.text.data : end;
        }
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < plain; i++) {
        status = i > 0 ? cfxi_w_put(&text, sep, err) : CFX_OK;
        if (status == CFX_OK)
            status = cfxi_w_show(w, a->args[i], &text, err);
    }
    if (status == CFX_OK)
        status = cfxi_w_put(&text, end, err);
    if (status == CFX_OK && w->out.write)
        status = cfxi_failed(err, w->out.write(w->out.ctx, text.data, text.size));
    cfx_buffer_free(&text);
    return cfxi_w_done(w, status);
}

/* ---- objects ------------------------------------------------------------------------------- */

CFXI_BUILTIN(b_getattr)
{
    cfx_object *in[3];
    if (cfxi_w_args(w, a, "getattr", NULL, 2, 3, in, err) != CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_w_raise(w, err, CFXI_TypeError, "attribute name must be string, not '%s'",
                            cfxi_w_type_name(w, in[1]));
    cfx_object *made = cfxi_w_get(w, in[0], in[1]->as.text.data, err);
    if (!made && in[2] && cfxi_w_catch(w, CFXI_AttributeError, err))
        return cfxi_w_ref(in[2]);
    return made;
}

CFXI_BUILTIN(b_hasattr)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "hasattr", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_w_raise(w, err, CFXI_TypeError, "attribute name must be string");
    cfx_object *made = cfxi_w_get(w, in[0], in[1]->as.text.data, err);
    cfxi_w_unref(made);
    if (!made && !cfxi_w_catch(w, CFXI_AttributeError, err))
        return NULL;
    return cfxi_w_truth_object(w, made != NULL);
}

static cfx_object *set_or_delete(cfxi_world *w, const cfx_call_args *a, bool set, cfx_error *err)
{
    cfx_object *in[3];
    if (cfxi_w_args(w, a, set ? "setattr" : "delattr", NULL, set ? 3 : 2, set ? 3 : 2, in, err) !=
        CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_w_raise(w, err, CFXI_TypeError, "attribute name must be string");
    return cfxi_w_done(w, cfxi_w_set(w, in[0], in[1]->as.text.data, set ? in[2] : NULL, err));
}

CFXI_BUILTIN(b_setattr) { return set_or_delete(w, a, true, err); }
CFXI_BUILTIN(b_delattr) { return set_or_delete(w, a, false, err); }

CFXI_BUILTIN(b_isinstance)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "isinstance", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    const int t = cfxi_w_is_instance(w, in[0], in[1], err);
    return t < 0 ? NULL : cfxi_w_truth_object(w, t);
}

CFXI_BUILTIN(b_issubclass)
{
    cfx_object *in[2];
    if (cfxi_w_args(w, a, "issubclass", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_CLASS)
        return cfxi_w_raise(w, err, CFXI_TypeError, "issubclass() arg 1 must be a class");
    const size_t n = in[1]->type == CFXI_TYPE_TUPLE ? in[1]->as.seq.n : 1;
    for (size_t i = 0; i < n; i++) {
        const cfx_object *of = in[1]->type == CFXI_TYPE_TUPLE ? in[1]->as.seq.items[i] : in[1];
        if (of->type == CFXI_TYPE_CLASS && cfxi_w_is_subclass(in[0], of))
            return cfxi_w_truth_object(w, true);
    }
    return cfxi_w_truth_object(w, false);
}

CFXI_BUILTIN(b_callable)
{
    cfx_object *in[1];
    cfx_callee how;
    if (cfxi_w_args(w, a, "callable", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    const bool can = cfxi_w_callee(w, in[0], &how, err) == CFX_OK;
    if (!can && !cfxi_w_catch(w, CFXI_TypeError, err))
        return NULL;
    return cfxi_w_truth_object(w, can);
}

CFXI_BUILTIN(make_type)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "type", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_w_class_of(w, in[0], err) : NULL;
}

CFXI_BUILTIN(b_id)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "id", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_w_int_object(w, (int64_t)((uintptr_t)in[0] >> 1), err) : NULL;
}

CFXI_BUILTIN(b_hash)
{
    cfx_object *in[1];
    uint32_t hash;
    if (cfxi_w_args(w, a, "hash", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_w_hash(w, in[0], &hash, err) != CFX_OK)
        return NULL;
    return cfxi_w_int_object(w, hash, err);
}

CFXI_BUILTIN(make_object)
{
    return cfxi_w_object_new(w, CFXI_TYPE_INSTANCE, err);
}

static cfx_object *wrapper(cfxi_world *w, cfxi_type type, const cfx_call_args *a, cfx_error *err)
{
    static const char *const names[] = {"fget", "fset", "fdel"};
    cfx_object *in[3];
    const size_t most = type == CFXI_TYPE_PROPERTY ? 3 : 1;
    if (cfxi_w_args(w, a, "property", names, most == 1, most, in, err) != CFX_OK)
        return NULL;
    return cfxi_w_parts_object(w, type, in[0], most > 1 ? in[1] : NULL, NULL, err);
}

CFXI_BUILTIN(make_property) { return wrapper(w, CFXI_TYPE_PROPERTY, a, err); }
CFXI_BUILTIN(make_static) { return wrapper(w, CFXI_TYPE_STATIC_METHOD, a, err); }
CFXI_BUILTIN(make_class_method) { return wrapper(w, CFXI_TYPE_CLASS_METHOD, a, err); }

/* property.setter and its like: a property with another function. */
CFXI_BUILTIN(p_setter)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "setter", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_w_parts_object(w, CFXI_TYPE_PROPERTY, self->as.parts.a, in[0], NULL, err)
               : NULL;
}

CFXI_BUILTIN(p_getter)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "getter", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_w_parts_object(w, CFXI_TYPE_PROPERTY, in[0], self->as.parts.b, NULL, err)
               : NULL;
}

/* ---- the tables ---------------------------------------------------------------------------- */

static const cfxi_builtin functions[] = {
    {"abs", b_abs}, {"all", b_all}, {"any", b_any}, {"callable", b_callable}, {"chr", b_chr},
    {"delattr", b_delattr}, {"divmod", b_divmod}, {"enumerate", b_enumerate},
    {"filter", b_filter}, {"format", b_format}, {"getattr", b_getattr}, {"hasattr", b_hasattr},
    {"hash", b_hash}, {"id", b_id}, {"isinstance", b_isinstance}, {"issubclass", b_issubclass},
    {"iter", b_iter}, {"len", b_len}, {"map", b_map}, {"max", b_max}, {"min", b_min},
    {"next", b_next}, {"ord", b_ord}, {"pow", b_pow}, {"print", b_print}, {"repr", b_repr},
    {"reversed", b_reversed}, {"round", b_round}, {"setattr", b_setattr}, {"sorted", b_sorted},
    {"sum", b_sum}, {"zip", b_zip}, {" setter", p_setter}, {" getter", p_getter}, {NULL, NULL},
};

cfxi_builtin_fn *cfxi_w_constructor(cfxi_type type)
{
    static cfxi_builtin_fn *const makers[CFXI_TYPES] = {
        [CFXI_TYPE_BOOL] = make_bool, [CFXI_TYPE_INT] = make_int, [CFXI_TYPE_FLOAT] = make_float,
        [CFXI_TYPE_COMPLEX] = make_complex, [CFXI_TYPE_STR] = make_str,
        [CFXI_TYPE_TUPLE] = make_tuple, [CFXI_TYPE_LIST] = make_list,
        [CFXI_TYPE_DICT] = make_dict, [CFXI_TYPE_SET] = make_set,
        [CFXI_TYPE_FROZENSET] = make_frozenset, [CFXI_TYPE_SLICE] = make_slice,
        [CFXI_TYPE_RANGE] = make_range, [CFXI_TYPE_CLASS] = make_type,
        [CFXI_TYPE_INSTANCE] = make_object, [CFXI_TYPE_PROPERTY] = make_property,
        [CFXI_TYPE_STATIC_METHOD] = make_static, [CFXI_TYPE_CLASS_METHOD] = make_class_method,
    };
    return makers[type];
}

/* Names of exceptions, and of builtin classes. */
static cfx_object *builtin_class(cfxi_world *w, const char *name, cfx_error *err)
{
    static const struct {
        const char *name;
        bool builtin;
    } types[CFXI_TYPES] = {
#define CFX_TYPE(id, text, is_builtin) {text, is_builtin},
#include "type.def"
#undef CFX_TYPE
    };
    static const char *const exceptions[CFXI_EXCEPTIONS] = {
#define CFX_EXCEPTION(id, base) #id,
#include "exception.def"
#undef CFX_EXCEPTION
    };
    for (int i = 0; i < CFXI_TYPES; i++)
        if (types[i].builtin && strcmp(types[i].name, name) == 0)
            return cfxi_w_type_class(w, (cfxi_type)i, err);
    for (int i = 0; i < CFXI_EXCEPTIONS; i++)
        if (strcmp(exceptions[i], name) == 0)
            return cfxi_w_exception_class(w, (cfxi_exception)i, err);
    return NULL;
}

cfx_object *cfxi_w_builtin_get(cfxi_world *w, const char *name, cfx_error *err)
{
    char full[64];
    cfx_object *made = cfxi_w_dict_get(w->builtins, name);
    err->status = CFX_OK;
    if (made)
        return cfxi_w_ref(made);
    const cfxi_builtin *row = cfxi_w_row_find(functions, name);
    snprintf(full, sizeof full, "builtins.%.40s", name);
    if (row)
        made = cfxi_w_builtin_object(w, full, row->fn, CFX_OPID_NONE, err);
    else if (strcmp(name, "NotImplemented") == 0)
        made = cfxi_w_ref(w->not_implemented);
    else if (strcmp(name, "Ellipsis") == 0)
        made = cfxi_w_ref(w->ellipsis);
    else if (strcmp(name, "__debug__") == 0)
        made = cfxi_w_truth_object(w, true);
    else
        made = builtin_class(w, name, err);
    if (!made && err->status == CFX_OK && (strcmp(name, "globals") == 0 ||
                                           strcmp(name, "locals") == 0))
        made = cfxi_w_builtin_object(w, full, NULL, CFX_OPID_NONE, err);
    if (made && cfxi_w_dict_put(w->builtins, name, made, err) != CFX_OK)
        cfxi_w_clear(&made);
    return made;
}
