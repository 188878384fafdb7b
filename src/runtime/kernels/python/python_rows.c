/* python_rows.c - Python's functions and operators on any value: len, int, is, in, tuple, ... */
#include "python_rows_impl.h"
#include "runtime/view_impl.h"

#include <math.h>

cfx_status cfxi_python_give(cfxi_call *c, cfx_datum d)
{
    if (d.kind == CFX_DATUM_INVALID)
        return c->err->status != CFX_OK ? c->err->status : CFX_E_TYPE;
    cfxi_rt_result_datum(c, 0, d);
    return CFX_OK;
}

/* ---- len, tuple, list ---------------------------------------------------------------------- */

static int64_t count_characters(const char *text, size_t size)
{
    int64_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

cfx_status cfxi_rule_len(cfxi_call *c)
{
    cfx_datum d = c->args[0];
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR) {
        if (d.as.tensor->ndim == 0)
            return cfxi_fail(c, CFX_E_TYPE, "len() of a 0-d tensor");
        return cfxi_python_give(c, cfxi_rt_size_datum(d.as.tensor->size[0]));
    }
    if (d.kind == CFX_DATUM_STR) {
        const char *text = cfx_datum_text(d, &n);
        return cfxi_python_give(c, cfx_datum_int(count_characters(text, n)));
    }
    if (!cfx_datum_items(d, &n) || d.kind == CFX_DATUM_SLICE)
        return cfxi_fail(c, CFX_E_TYPE, "object of type '%s' has no len()", cfxi_rt_py_kind_of(d));
    return cfxi_python_give(c, cfx_datum_int((int64_t)(d.kind == CFX_DATUM_DICT ? n / 2 : n)));
}

/* The keys of a dict, the characters of a string: a list. */
static cfx_datum loose_items(cfxi_call *c, cfx_datum d)
{
    size_t n;
    size_t made = 0;
    size_t bytes;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const char *text = items ? NULL : cfx_datum_text(d, &n);
    cfx_datum result = cfxi_rt_invalid();
    cfx_datum *out =
        cfxi_base_mul_size(n + 1, sizeof *out, 0, &bytes) ? cfxi_rt_scratch(c->rt, bytes) : NULL;
    if (!out) {
        cfxi_base_nomem(c->err);
        return result;
    }
    for (size_t i = 0; i < n;) {
        size_t next = i + 1;
        while (text && next < n && ((unsigned char)text[next] & 0xc0) == 0x80)
            next++;
        out[made++] = items ? cfx_datum_retain(items[i])
                            : cfx_datum_from_text(CFX_DATUM_STR, text + i, next - i,
                                                  c->rt->allocator, c->err);
        i = items ? i + 2 : next;
    }
    if (c->err->status == CFX_OK)
        result = cfx_datum_seq(CFX_DATUM_LIST, out, made, c->rt->allocator, c->err);
    while (made-- > 0)
        cfx_datum_release(out[made]);
    cfxi_rt_scratch_free(c->rt, out);
    return result;
}

cfx_datum cfxi_python_items(cfxi_call *c, cfx_datum d)
{
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR)
        return cfxi_rt_sub(c, CFX_OPID_unbind, &d, 1);
    if (d.kind == CFX_DATUM_DICT || d.kind == CFX_DATUM_STR)
        return loose_items(c, d);
    if (cfx_datum_items(d, &n) && d.kind != CFX_DATUM_SLICE)
        return cfx_datum_retain(d);
    cfxi_fail(c, CFX_E_TYPE, "'%s' object is not iterable", cfxi_rt_py_kind_of(d));
    return cfxi_rt_invalid();
}

static cfx_status collect(cfxi_call *c, cfx_datum_kind kind)
{
    cfx_datum d = c->args[0];
    size_t n;
    if (cfxi_rt_is_none(c, 0) && d.kind == CFX_DATUM_INVALID)
        return cfxi_python_give(c, cfx_datum_seq(kind, NULL, 0, c->rt->allocator, c->err));
    cfx_datum all = cfxi_python_items(c, d);
    if (all.kind == CFX_DATUM_INVALID ||  /* sizes are not a plain tuple */
        (all.kind == CFX_DATUM_TUPLE && kind == CFX_DATUM_TUPLE && !all.as.seq->op))
        return cfxi_python_give(c, all);
    const cfx_datum *items = cfx_datum_items(all, &n);
    cfx_status status = cfxi_python_give(c, cfx_datum_seq(kind, items, n, c->rt->allocator,
                                                          c->err));
    cfx_datum_release(all);
    return status;
}

cfx_status cfxi_rule_tuple(cfxi_call *c) { return collect(c, CFX_DATUM_TUPLE); }
cfx_status cfxi_rule_list(cfxi_call *c) { return collect(c, CFX_DATUM_LIST); }

cfx_status cfxi_rule_operator_concat(cfxi_call *c)
{
    return cfxi_python_give(c, cfxi_rt_python_concat(c, c->args[0], c->args[1]));
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool trimmed(cfx_datum d, const char **text, size_t *size)
{
    *text = cfx_datum_text(d, size);
    while (*text && *size && strchr(" \t\n\r\f\v", **text)) {
        ++*text;
        --*size;
    }
    while (*text && *size && strchr(" \t\n\r\f\v", (*text)[*size - 1]))
        --*size;
    return *text != NULL;
}

cfx_status cfxi_rule_int(cfxi_call *c)
{
    cfx_datum d;
    const char *text;
    size_t size;
    int64_t i;
    CFX_TRY(cfxi_rt_python_number(c, c->args[0], &d));
    if (d.kind == CFX_DATUM_BOOL && !d.symbolic)
        return cfxi_python_give(c, cfx_datum_int(d.as.b));
    if (d.kind == CFX_DATUM_INT)
        return cfxi_python_give(c, d);
    if (d.kind == CFX_DATUM_STR && trimmed(d, &text, &size)) {
        if (!cfxi_base_parse_int(text, size, &i))
            return cfxi_fail(c, CFX_E_VALUE, "invalid literal for int() with base 10");
        return cfxi_python_give(c, cfx_datum_int(i));
    }
    if (d.kind != CFX_DATUM_FLOAT && d.kind != CFX_DATUM_BOOL)
        return cfxi_fail(c, CFX_E_TYPE, "int() argument must be a number, not '%s'",
                         cfxi_rt_py_kind_of(d));
    if (d.symbolic)
        return cfxi_python_give(c, cfxi_rt_size_datum(cfxi_rt_fresh(c)));
    if (!(d.as.f >= -0x1p63 && d.as.f < 0x1p63))
        return cfxi_rt_py_fail_whole(c, d.as.f);
    return cfxi_python_give(c, cfx_datum_int((int64_t)d.as.f));
}

cfx_status cfxi_rule_float(cfxi_call *c)
{
    cfx_datum d;
    const char *text;
    size_t size;
    double f;
    CFX_TRY(cfxi_rt_python_number(c, c->args[0], &d));
    if (d.kind == CFX_DATUM_STR && trimmed(d, &text, &size)) {
        if (!cfxi_base_parse_float(text, size, &f))
            return cfxi_fail(c, CFX_E_VALUE, "could not convert string to float");
        return cfxi_python_give(c, cfx_datum_float(f));
    }
    if (!cfxi_rt_is_number(d) || d.kind == CFX_DATUM_COMPLEX)
        return cfxi_fail(c, CFX_E_TYPE, "float() argument must be a number, not '%s'",
                         cfxi_rt_py_kind_of(d));
    cfx_datum r = cfx_datum_float(d.kind == CFX_DATUM_BOOL  ? (double)d.as.b
                                  : d.kind == CFX_DATUM_INT ? (double)d.as.i
                                                            : d.as.f);
    r.symbolic = d.symbolic;
    return cfxi_python_give(c, r);
}

cfx_status cfxi_rule_operator_index(cfxi_call *c)
{
    cfx_datum d;
    CFX_TRY(cfxi_rt_python_index(c, c->args[0], &d));
    return cfxi_python_give(c, d);
}

cfx_status cfxi_rule_sym_max(cfxi_call *c)
{
    return cfxi_python_give(c, cfxi_rt_python_choose(c, c->args[0], c->args[1], true));
}
cfx_status cfxi_rule_sym_min(cfxi_call *c)
{
    return cfxi_python_give(c, cfxi_rt_python_choose(c, c->args[0], c->args[1], false));
}

cfx_status cfxi_rule_sym_ite(cfxi_call *c)
{
    if (c->args[0].symbolic)
        return cfxi_fail(c, CFX_E_VALUE, "the condition must be a known bool");
    return cfxi_python_give(c, cfx_datum_retain(c->args[cfxi_rt_bool(c, 0) ? 1 : 2]));
}

/* ---- truth --------------------------------------------------------------------------------- */

static cfxi_truth negated(cfxi_truth t)
{
    return t == CFXI_DEPENDS ? t : t == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
}

cfx_status cfxi_rule_bool(cfxi_call *c)
{
    cfxi_truth t;
    CFX_TRY(cfxi_rt_python_truth(c, c->args[0], &t));
    return cfxi_python_give(c, cfxi_rt_truth_datum(t));
}

cfx_status cfxi_rule_not(cfxi_call *c)
{
    cfxi_truth t;
    CFX_TRY(cfxi_rt_python_truth(c, c->args[0], &t));
    return cfxi_python_give(c, cfxi_rt_truth_datum(negated(t)));
}

/* Numbers and strings are the same object if they are equal and of one kind: nobody can tell more.
 * */
static cfx_status identical(cfxi_call *c, cfxi_truth *out)
{
    cfx_datum a = c->args[0];
    cfx_datum b = c->args[1];
    *out = cfxi_rt_python_identical(a, b) ? CFXI_TRUE : CFXI_FALSE;
    if (a.kind != b.kind || a.kind == CFX_DATUM_TENSOR || cfxi_tensor_is_seq(a))
        return CFX_OK;
    return cfxi_rt_python_equal(c, a, b, out);
}

cfx_status cfxi_rule_is(cfxi_call *c)
{
    cfxi_truth t;
    CFX_TRY(identical(c, &t));
    return cfxi_python_give(c, cfxi_rt_truth_datum(t));
}

cfx_status cfxi_rule_is_not(cfxi_call *c)
{
    cfxi_truth t;
    CFX_TRY(identical(c, &t));
    return cfxi_python_give(c, cfxi_rt_truth_datum(negated(t)));
}

static bool has_text(const char *text, size_t size, const char *part, size_t part_size)
{
    for (size_t i = 0; i + part_size <= size; i++)
        if (memcmp(text + i, part, part_size) == 0)
            return true;
    return false;
}

/* Whether an element of a tensor is equal to a number, or one of another tensor. */
static cfx_status is_element(cfxi_call *c)
{
    cfx_datum same = cfxi_rt_sub(c, CFX_OPID_eq, c->args, 2);
    cfx_datum any = same.kind == CFX_DATUM_INVALID ? same : cfxi_rt_sub(c, CFX_OPID_any, &same, 1);
    cfxi_truth found = CFXI_FALSE;
    cfx_status status = any.kind == CFX_DATUM_INVALID ? c->err->status
                                                      : cfxi_rt_python_truth(c, any, &found);
    cfx_datum_release(same);
    cfx_datum_release(any);
    return status == CFX_OK ? cfxi_python_give(c, cfxi_rt_truth_datum(found)) : status;
}

cfx_status cfxi_rule_contains(cfxi_call *c)
{
    cfx_datum a = c->args[0];
    cfx_datum b = c->args[1];
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(a, &n);
    cfxi_truth found = CFXI_FALSE;
    if (a.kind == CFX_DATUM_STR && b.kind == CFX_DATUM_STR) {
        const char *text = cfx_datum_text(a, &n);
        const char *part = cfx_datum_text(b, &m);
        return cfxi_python_give(c, cfx_datum_bool(has_text(text, n, part, m)));
    }
    if (a.kind == CFX_DATUM_TENSOR && (b.kind == CFX_DATUM_TENSOR || cfxi_rt_is_number(b)))
        return is_element(c);
    if (!items || a.kind == CFX_DATUM_SLICE)
        return cfxi_fail(c, CFX_E_TYPE, "argument of type '%s' is not iterable",
                         cfxi_rt_py_kind_of(a));
    if (a.kind == CFX_DATUM_DICT && !c->infer) {
        CFX_TRY(cfxi_rt_python_find_key(c, items, n, b, &m));
        return cfxi_python_give(c, cfx_datum_bool(m < n));
    }
    for (size_t i = 0; i < n && found != CFXI_TRUE; i += a.kind == CFX_DATUM_DICT ? 2 : 1) {
        cfxi_truth one;
        CFX_TRY(a.kind == CFX_DATUM_DICT ? cfxi_rt_python_same_key(c, items[i], b, &one)
                                         : cfxi_rt_python_same_item(c, items[i], b, &one));
        if (one == CFXI_FALSE && cfxi_rt_py_is_nan(b) && cfxi_rt_py_is_nan(items[i]))
            return cfxi_rt_py_fail_nan(c);
        found = one == CFXI_FALSE ? found : one;
    }
    return cfxi_python_give(c, cfxi_rt_truth_datum(found));
}

/* ---- isinstance ---------------------------------------------------------------------------- */

/* Names of types, as graphs write them, and the kinds that are of them. */
static const struct {
    const char *name;
    unsigned kinds;
} types[] = {
#define KIND(k) (1u << CFX_DATUM_##k)
    {"int", KIND(INT) | KIND(BOOL)},
    {"bool", KIND(BOOL)},
    {"float", KIND(FLOAT)},
    {"complex", KIND(COMPLEX)},
    {"str", KIND(STR)},
    {"list", KIND(LIST)},
    {"tuple", KIND(TUPLE)},
    {"dict", KIND(DICT)},
    {"slice", KIND(SLICE)},
    {"Tensor", KIND(TENSOR)},
    {"Size", KIND(TUPLE)},
    {"dtype", KIND(DTYPE)},
    {"device", KIND(DEVICE)},
    {"NoneType", KIND(NONE)},
    {"object", ~0u},
#undef KIND
};

static cfx_status is_instance(cfxi_call *c, cfx_datum d, cfx_datum type, bool *yes)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(type, &n);
    const char *name = cfx_datum_text(type, NULL);
    if (items) {
        for (size_t i = 0; i < n && !*yes; i++)
            CFX_TRY(is_instance(c, d, items[i], yes));
        return CFX_OK;
    }
    const char *last = name ? strrchr(name, '.') : NULL;
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(last ? last + 1 : name, types[i].name) == 0) {
            *yes = types[i].kinds >> d.kind & 1 &&
                   (strcmp(types[i].name, "Size") != 0 || cfx_datum_row(d) == CFX_OPID_size);
            return CFX_OK;
        }
    return cfxi_fail(c, CFX_E_TYPE, "isinstance() with a type that cfx does not support");
}

cfx_status cfxi_rule_isinstance(cfxi_call *c)
{
    bool yes = false;
    CFX_TRY(is_instance(c, c->args[0], c->args[1], &yes));
    return cfxi_python_give(c, cfx_datum_bool(yes));
}
