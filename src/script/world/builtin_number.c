/* builtin_number.c - int, float, complex, bool, and builtin functions of numbers. */
#include "world_impl.h"

#include <math.h>
#include <stdio.h>

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
        const int digit = cfxi_base_is_digit(at[i]) ? at[i] - '0'
                          : c >= 'a' && c <= 'z'    ? c - 'a' + 10
                                                    : 99;
        if (at[i] == '_')
            continue;
        good = digit < base && !__builtin_mul_overflow(n, base, &n) &&
               !__builtin_add_overflow(n, negative ? -digit : digit, &n);
    }
    if (!good)
        return cfxi_world_raise(w, err, CFXI_ValueError,
                                "invalid literal for int() with base %lld: "
                                "'%.100s'",
                                (long long)base, s->as.text.data);
    return cfxi_world_int_object(w, n, err);
}

CFXI_BUILTIN(make_int)
{
    static const char *const names[] = {"x", "base"};
    cfx_object *in[2];
    int64_t base = 10;
    bool found = false;
    if (cfxi_world_args(w, a, "int", names, 0, 2, in, err) != CFX_OK ||
        (in[1] && cfxi_world_index_of(w, in[1], "int() base", &base, err) != CFX_OK))
        return NULL;
    if (!in[0])
        return cfxi_world_int_object(w, 0, err);
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_perform(w, CFX_OP_CALL_FUNCTION, "builtins.int", a, err);
    if (in[0]->type == CFXI_TYPE_STR)
        return int_of_text(w, in[0], base, err);
    if (cfxi_world_is_whole(in[0]))
        return cfxi_world_int_object(w, cfxi_world_whole(in[0]), err);
    if (in[0]->type == CFXI_TYPE_FLOAT) {
        const double f = trunc(in[0]->as.f);
        if (isnan(f))
            return cfxi_world_raise(w, err, CFXI_ValueError, "cannot convert float NaN to integer");
        if (!(f >= -0x1p63 && f < 0x1p63))
            return cfxi_world_raise(w, err, CFXI_OverflowError, "cannot convert float to a 64-bit "
                                    "integer");
        return cfxi_world_int_object(w, (int64_t)f, err);
    }
    cfx_object *made = cfxi_world_special(w, in[0], "__int__", NULL, 0, &found, err);
    if (found)
        return made;
    return cfxi_world_raise(w, err, CFXI_TypeError, "int() argument must be a string, a bytes-like "
                            "object or a real number, not '%s'", cfxi_world_type_name(in[0]));
}

CFXI_BUILTIN(make_float)
{
    cfx_object *in[1];
    double f;
    const char *text;
    size_t size;
    bool found = false;
    if (cfxi_world_args(w, a, "float", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (!in[0])
        return cfxi_world_float_object(w, 0, err);
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_perform_on(w, "builtins.float", in[0], NULL, err);
    if (cfxi_world_is_real(in[0]))
        return cfxi_world_float_object(w, cfxi_world_real(in[0]), err);
    if (in[0]->type == CFXI_TYPE_STR) {
        trim(in[0], &text, &size);
        if (cfxi_base_parse_float(text, size, &f))
            return cfxi_world_float_object(w, f, err);
        const bool minus = size > 0 && *text == '-';
        const size_t sign = minus || (size > 0 && *text == '+');
        if ((size == sign + 3 && strncmp(text + sign, "Inf", 3) == 0) ||
            (size == sign + 8 && strncmp(text + sign, "infinity", 8) == 0))
            return cfxi_world_float_object(w, minus ? -INFINITY : INFINITY, err);
        return cfxi_world_raise(w, err, CFXI_ValueError,
                                "could not convert string to float: '%.100s'", in[0]->as.text.data);
    }
    cfx_object *made = cfxi_world_special(w, in[0], "__float__", NULL, 0, &found, err);
    if (found)
        return made;
    return cfxi_world_raise(w, err, CFXI_TypeError, "float() argument must be a string or a real "
                            "number, not '%s'", cfxi_world_type_name(in[0]));
}

CFXI_BUILTIN(make_complex)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "complex", NULL, 0, 2, in, err) != CFX_OK)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (in[i] && !cfxi_world_is_real(in[i]))
            return cfxi_world_raise(w, err, CFXI_TypeError,
                                    "complex() takes real numbers here, not "
                                    "'%s'",
                                    cfxi_world_type_name(in[i]));
    return cfxi_world_complex_object(w, in[0] ? cfxi_world_real(in[0]) : 0,
                                     in[1] ? cfxi_world_real(in[1]) : 0, err);
}

CFXI_BUILTIN(make_bool)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "bool", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && cfxi_world_is_value(in[0]))
        return cfxi_world_perform_on(w, "builtins.bool", in[0], NULL, err);
    bool found = false;
    cfx_object *answer = in[0] ? cfxi_world_truth_method(w, in[0], &found, err) : NULL;
    if (found && !answer)
        return NULL;
    if (answer && cfxi_world_is_value(answer)) {
        cfx_object *made = cfxi_world_perform_on(w, "builtins.bool", answer, NULL, err);
        cfxi_world_unref(answer);
        return made;
    }
    const int t = in[0] ? cfxi_world_truth_of(w, answer ? answer : in[0], err) : 0;
    cfxi_world_unref(answer);
    return t < 0 ? NULL : cfxi_world_truth_object(w, t);
}

CFXI_BUILTIN(b_abs)
{
    cfx_object *in[1];
    bool found = false;
    if (cfxi_world_args(w, a, "abs", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_perform_on(w, "operator.abs", in[0], NULL, err);
    if (in[0]->type == CFXI_TYPE_FLOAT)
        return cfxi_world_float_object(w, fabs(in[0]->as.f), err);
    if (in[0]->type == CFXI_TYPE_COMPLEX)
        return cfxi_world_float_object(w, hypot(in[0]->as.c[0], in[0]->as.c[1]), err);
    if (cfxi_world_is_whole(in[0]))
        return cfxi_world_unary(w, cfxi_world_whole(in[0]) < 0 ? CFX_SIGN_NEG : CFX_SIGN_POS, in[0],
                                err);
    cfx_object *made = cfxi_world_special(w, in[0], "__abs__", NULL, 0, &found, err);
    return found ? made
                 : cfxi_world_raise(w, err, CFXI_TypeError, "bad operand type for abs(): '%s'",
                                    cfxi_world_type_name(in[0]));
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
        if (!cfxi_base_is_digit(*c) && *c != '-')
            *c = '.';
    double rounded;
    return cfxi_base_parse_float(text, strlen(text), &rounded) ? rounded : f;
}

CFXI_BUILTIN(b_round)
{
    static const char *const names[] = {"number", "ndigits"};
    cfx_object *in[2];
    int64_t digits = 0;
    if (cfxi_world_args(w, a, "round", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, "builtins.round", a, err);
    const bool whole = !in[1] || in[1]->type == CFXI_TYPE_NONE;
    if (!whole && cfxi_world_index_of(w, in[1], "ndigits", &digits, err) != CFX_OK)
        return NULL;
    if (!cfxi_world_is_real(in[0]))
        return cfxi_world_raise(w, err, CFXI_TypeError, "type %s doesn't define __round__ method",
                                cfxi_world_type_name(in[0]));
    if (cfxi_world_is_whole(in[0]) && (whole || digits >= 0))
        return cfxi_world_int_object(w, cfxi_world_whole(in[0]), err);
    if (cfxi_world_is_whole(in[0]))
        return cfxi_world_int_object(w, (int64_t)round_digits(cfxi_world_real(in[0]), digits), err);
    if (!whole)
        return cfxi_world_float_object(w, round_digits(in[0]->as.f, digits), err);
    const double f = nearbyint(in[0]->as.f);
    if (!(f >= -0x1p63 && f < 0x1p63))
        return cfxi_world_raise(w, err, isnan(f) ? CFXI_ValueError : CFXI_OverflowError,
                                "cannot convert float to integer");
    return cfxi_world_int_object(w, (int64_t)f, err);
}

CFXI_BUILTIN(b_pow)
{
    static const char *const names[] = {"base", "exp", "mod"};
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "pow", names, 2, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *made = cfxi_world_binary(w, CFX_SIGN_POW, in[0], in[1], false, err);
    if (!made || !in[2])
        return made;
    cfx_object *rest = cfxi_world_binary(w, CFX_SIGN_MOD, made, in[2], false, err);
    cfxi_world_unref(made);
    return rest;
}

CFXI_BUILTIN(b_divmod)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "divmod", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *both[2] = {cfxi_world_binary(w, CFX_SIGN_FLOORDIV, in[0], in[1], false, err), NULL};
    both[1] = both[0] ? cfxi_world_binary(w, CFX_SIGN_MOD, in[0], in[1], false, err) : NULL;
    return cfxi_world_seq_take(w, CFXI_TYPE_TUPLE, both, 2, err);
}

const cfxi_builtin cfxi_world_number_builtins[] = {
    {"abs", b_abs}, {"bool", make_bool}, {"complex", make_complex}, {"divmod", b_divmod},
    {"float", make_float}, {"int", make_int}, {"pow", b_pow}, {"round", b_round}, {NULL, NULL},
};
