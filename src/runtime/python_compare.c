/* python_compare.c - Python's ==, < and max of numbers, strings and containers. */
#include "python_impl.h"

#include <cfx/embed/dim.h>

cfx_datum cfxi_rt_truth_datum(cfxi_truth t)
{
    return t == CFXI_DEPENDS ? cfxi_rt_py_unknown(CFX_DATUM_BOOL) : cfx_datum_bool(t == CFXI_TRUE);
}

static cfxi_truth truth_of(int answer)  /* of cfx_dim_compare_* */
{
    return answer < 0 ? CFXI_DEPENDS : answer ? CFXI_TRUE : CFXI_FALSE;
}

/* A long double holds every int64_t and every double. */
static long double exact_of(cfx_datum d)
{
    return cfxi_rt_py_is_integral(d) ? (long double)cfxi_rt_py_int(d) : (long double)d.as.f;
}

static cfxi_truth numbers_equal(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (a.symbolic || b.symbolic) {
        if (!cfxi_rt_py_is_reckonable(a) || !cfxi_rt_py_is_reckonable(b))
            return CFXI_DEPENDS;
        return truth_of(cfx_dim_compare_eq(c->dims, cfxi_rt_py_int(a), cfxi_rt_py_int(b)));
    }
    if (a.kind == CFX_DATUM_COMPLEX || b.kind == CFX_DATUM_COMPLEX)
        return cfxi_rt_py_float(a) == cfxi_rt_py_float(b) &&
                       cfxi_rt_py_imaginary(a) == cfxi_rt_py_imaginary(b) ? CFXI_TRUE : CFXI_FALSE;
    return exact_of(a) == exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
}

static cfxi_truth numbers_less(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (!a.symbolic && !b.symbolic)
        return exact_of(a) < exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
    if (!cfxi_rt_py_is_reckonable(a) || !cfxi_rt_py_is_reckonable(b))
        return CFXI_DEPENDS;
    return truth_of(cfx_dim_compare_lt(c->dims, cfxi_rt_py_int(a), cfxi_rt_py_int(b)));
}

static int compare_texts(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const char *x = cfx_datum_text(a, &n);
    const char *y = cfx_datum_text(b, &m);
    int order = memcmp(x, y, n < m ? n : m);  /* UTF-8 sorts as its characters do */
    return order ? order : (n > m) - (n < m);
}

bool cfxi_rt_python_identical(cfx_datum a, cfx_datum b)
{
    if (a.kind == CFX_DATUM_TENSOR)
        return b.kind == CFX_DATUM_TENSOR && a.as.tensor == b.as.tensor;
    return cfxi_tensor_is_seq(a) && a.kind == b.kind && a.as.seq == b.as.seq;
}

cfx_status cfxi_rt_python_same_item(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    *out = CFXI_TRUE;
    return cfxi_rt_python_identical(a, b) ? CFX_OK : cfxi_rt_python_equal(c, a, b, out);
}

cfx_status cfxi_rt_python_same_key(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    *out = CFXI_FALSE;
    if ((a.kind == CFX_DATUM_TENSOR || b.kind == CFX_DATUM_TENSOR) &&
        !cfxi_rt_python_identical(a, b))
        return CFX_OK;
    return cfxi_rt_python_same_item(c, a, b, out);
}

/* Fails for what Python cannot hash: it is no key of a dict. */
static cfx_status check_hash(cfxi_call *c, cfx_datum key)
{
    size_t n = 0;
    const cfx_datum *items = key.kind == CFX_DATUM_TUPLE ? cfx_datum_items(key, &n) : NULL;
    if (key.kind == CFX_DATUM_LIST || key.kind == CFX_DATUM_DICT || key.kind == CFX_DATUM_SLICE)
        return cfxi_fail(c, CFX_E_TYPE, "unhashable type: '%s'", cfxi_rt_py_kind_of(key));
    for (size_t i = 0; i < n; i++)
        CFX_TRY(check_hash(c, items[i]));
    return CFX_OK;
}

cfx_status cfxi_rt_python_find_key(cfxi_call *c, const cfx_datum *items, size_t n, cfx_datum key,
                                   size_t *at)
{
    CFX_TRY(check_hash(c, key));
    for (*at = 0; *at < n; *at += 2) {
        const cfx_datum have = items[*at];
        cfxi_truth same = CFXI_FALSE;
        if (have.kind == CFX_DATUM_INT && key.kind == CFX_DATUM_INT && !have.symbolic &&
            !key.symbolic)  /* the most common one, and there is no index */
            same = have.as.i == key.as.i ? CFXI_TRUE : CFXI_FALSE;
        else
            CFX_TRY(cfxi_rt_python_same_key(c, have, key, &same));
        if (same == CFXI_TRUE)
            return CFX_OK;
        if (cfxi_rt_py_is_nan(have) && cfxi_rt_py_is_nan(key))
            return cfxi_rt_py_fail_nan(c);
    }
    return CFX_OK;
}

/* By their elements: bool() of what == gives, which has to be one element. */
static cfx_status elements_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    const bool turned = a.kind != CFX_DATUM_TENSOR;
    const cfx_datum both[] = {turned ? b : a, turned ? a : b};
    const cfx_datum same = cfxi_rt_sub(c, CFX_OPID_eq, both, 2);
    if (same.kind == CFX_DATUM_INVALID)
        return c->err->status;
    const cfx_status status = cfxi_rt_python_truth(c, same, out);
    cfx_datum_release(same);
    return status;
}

static cfx_status dicts_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    *out = n == m ? CFXI_TRUE : CFXI_FALSE;
    for (size_t i = 0; i < n && *out != CFXI_FALSE; i += 2) {
        cfxi_truth same = CFXI_FALSE;
        for (size_t k = 0; k < m && same == CFXI_FALSE; k += 2) {  /* mostly at the same place */
            size_t at = (i + k) % m;
            CFX_TRY(cfxi_rt_python_same_key(c, x[i], y[at], &same));
            cfxi_truth values = CFXI_TRUE;
            if (same == CFXI_TRUE)
                CFX_TRY(cfxi_rt_python_same_item(c, x[i + 1], y[at + 1], &values));
            *out = values == CFXI_TRUE ? *out : values;
        }
        if (same != CFXI_TRUE && *out != CFXI_FALSE)
            *out = same;
    }
    return CFX_OK;
}

static cfx_status sequences_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    cfxi_truth all = n == m ? CFXI_TRUE : CFXI_FALSE;
    for (size_t i = 0; i < n && all != CFXI_FALSE; i++) {
        cfxi_truth one;
        CFX_TRY(cfxi_rt_python_same_item(c, x[i], y[i], &one));
        if (cfxi_rt_py_is_nan(x[i]) && cfxi_rt_py_is_nan(y[i]))
            return cfxi_rt_py_fail_nan(c);
        all = one == CFXI_TRUE ? all : one;
    }
    *out = all;
    return CFX_OK;
}

cfx_status cfxi_rt_python_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    *out = CFXI_FALSE;
    if (cfxi_rt_is_number(a) && cfxi_rt_is_number(b)) {
        *out = numbers_equal(c, a, b);
        return CFX_OK;
    }
    if ((a.kind == CFX_DATUM_TENSOR && (b.kind == CFX_DATUM_TENSOR || cfxi_rt_is_number(b))) ||
        (b.kind == CFX_DATUM_TENSOR && cfxi_rt_is_number(a)))
        return elements_equal(c, a, b, out);
    if (a.kind != b.kind)
        return CFX_OK;
    if (cfxi_tensor_is_text(a))
        *out = compare_texts(a, b) == 0 ? CFXI_TRUE : CFXI_FALSE;
    else if (a.kind == CFX_DATUM_DICT)
        return dicts_equal(c, a, b, out);
    else if (a.kind == CFX_DATUM_LIST || a.kind == CFX_DATUM_TUPLE || a.kind == CFX_DATUM_SLICE)
        return sequences_equal(c, a, b, out);
    else if (a.kind == CFX_DATUM_NONE || a.kind == CFX_DATUM_ELLIPSIS)
        *out = CFXI_TRUE;
    else
        *out = a.as.i == b.as.i ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}

/* a < b, or a <= b if `or_equal`. Fails where Python has no order. */
static cfx_status less(cfxi_call *c, cfx_datum a, cfx_datum b, bool or_equal, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    bool complex = a.kind == CFX_DATUM_COMPLEX || b.kind == CFX_DATUM_COMPLEX;
    if (cfxi_rt_is_number(a) && cfxi_rt_is_number(b) && !complex) {
        if (or_equal && !a.symbolic && !b.symbolic) {  /* not by turning it round: NaN */
            *out = exact_of(a) <= exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
            return CFX_OK;
        }
        *out = or_equal ? numbers_less(c, b, a) : numbers_less(c, a, b);
        if (or_equal && *out != CFXI_DEPENDS)
            *out = *out == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
        return CFX_OK;
    }
    if (a.kind == CFX_DATUM_STR && b.kind == CFX_DATUM_STR) {
        *out = compare_texts(a, b) < (or_equal ? 1 : 0) ? CFXI_TRUE : CFXI_FALSE;
        return CFX_OK;
    }
    if (a.kind != b.kind || (a.kind != CFX_DATUM_TUPLE && a.kind != CFX_DATUM_LIST))
        return cfxi_fail(c, CFX_E_TYPE, "'<' not supported between instances of '%s' and '%s'",
                         cfx_datum_kind_name((cfx_datum_kind)a.kind),
                         cfx_datum_kind_name((cfx_datum_kind)b.kind));
    for (size_t i = 0; i < n && i < m; i++) {
        cfxi_truth same;
        CFX_TRY(cfxi_rt_python_same_item(c, x[i], y[i], &same));
        if (same == CFXI_FALSE)
            return less(c, x[i], y[i], or_equal, out);
        if (same == CFXI_DEPENDS) {
            *out = CFXI_DEPENDS;
            return CFX_OK;
        }
    }
    *out = n < m || (or_equal && n == m) ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}

cfx_datum cfxi_rt_py_compare(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y)
{
    cfxi_truth t = CFXI_FALSE;
    cfx_status status;
    if (a == CFXI_PY_EQ || a == CFXI_PY_NE) {
        status = cfxi_rt_python_equal(c, x, y, &t);
        if (a == CFXI_PY_NE && t != CFXI_DEPENDS)
            t = t == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
    } else {
        bool turned = a == CFXI_PY_GT || a == CFXI_PY_GE;
        status = less(c, turned ? y : x, turned ? x : y, a == CFXI_PY_LE || a == CFXI_PY_GE, &t);
    }
    return status == CFX_OK ? cfxi_rt_truth_datum(t) : cfxi_rt_invalid();
}

cfx_datum cfxi_rt_python_choose(cfxi_call *c, cfx_datum a, cfx_datum b, bool larger)
{
    cfxi_truth first;
    if (cfxi_rt_py_is_reckonable(a) && cfxi_rt_py_is_reckonable(b) && (a.symbolic || b.symbolic)) {
        int64_t x = cfxi_rt_py_int(a);
        int64_t y = cfxi_rt_py_int(b);
        cfx_datum r = cfx_datum_int(larger ? cfx_dim_max(c->dims, x, y, c->err)
                                           : cfx_dim_min(c->dims, x, y, c->err));
        r.symbolic = cfx_dim_is_symbol(r.as.i) || r.as.i == CFX_DIM_UNKNOWN;
        return r;
    }
    if (less(c, larger ? a : b, larger ? b : a, false, &first) != CFX_OK)
        return cfxi_rt_invalid();
    if (first == CFXI_DEPENDS)
        return cfxi_rt_py_unknown(cfxi_rt_py_is_integral(a) && cfxi_rt_py_is_integral(b)
                                      ? CFX_DATUM_INT
                                      : CFX_DATUM_FLOAT);
    return cfx_datum_retain(first == CFXI_TRUE ? b : a);
}
