/* python_impl.h - what Python does with numbers, strings and containers. */
#ifndef CFXI_PYTHON_IMPL_H
#define CFXI_PYTHON_IMPL_H

#include "runtime_impl.h"

/* What a row does to Python's values. */
typedef enum cfxi_py_action {
    CFXI_PY_NOTHING,
    CFXI_PY_ADD,
    CFXI_PY_SUB,
    CFXI_PY_MUL,
    CFXI_PY_TRUE_DIV,
    CFXI_PY_FLOOR_DIV,
    CFXI_PY_MOD,
    CFXI_PY_POW,
    CFXI_PY_AND,
    CFXI_PY_OR,
    CFXI_PY_XOR,
    CFXI_PY_SHIFT_LEFT,
    CFXI_PY_SHIFT_RIGHT,
    CFXI_PY_EQ,
    CFXI_PY_NE,
    CFXI_PY_LT,
    CFXI_PY_LE,
    CFXI_PY_GT,
    CFXI_PY_GE,
    CFXI_PY_MAX,
    CFXI_PY_MIN,
    CFXI_PY_FIRST_UNARY,
    CFXI_PY_NEG = CFXI_PY_FIRST_UNARY,
    CFXI_PY_POS,
    CFXI_PY_ABS,
    CFXI_PY_INVERT,
    CFXI_PY_FLOOR,
    CFXI_PY_CEIL,
    CFXI_PY_TRUNC,
    CFXI_PY_ROUND,
    CFXI_PY_SQRT,
    CFXI_PY_EXP,
    CFXI_PY_LOG,
    CFXI_PY_SIN,
    CFXI_PY_COS
} cfxi_py_action;

/* What depends on what nobody knows yet: sizes that are symbols. */
typedef enum cfxi_truth { CFXI_FALSE, CFXI_TRUE, CFXI_DEPENDS } cfxi_truth;

static inline cfx_datum cfxi_rt_invalid(void) { return cfx_datum_invalid(); }
/* A BOOL; unknown if it depends. */
cfx_datum cfxi_rt_truth_datum(cfxi_truth t);

/* ---- comparison (python_compare.c) --------------------------------------------------------- */

/* Whether they are one object: a tensor or a container that is there once. */
bool cfxi_rt_python_identical(cfx_datum a, cfx_datum b);
/* bool(a == b) of any two data. */
cfx_status cfxi_rt_python_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out);
/* a == b of two items of containers: the same object is equal to itself, whatever its == says. */
cfx_status cfxi_rt_python_same_item(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out);
/* Whether two are one key of a dict: tensors are only if they are one object. */
cfx_status cfxi_rt_python_same_key(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out);
/* Where a key is among those of a dict, `items` being keys and values in turn; n if it is not
 * there. Fails if it cannot be one. */
cfx_status cfxi_rt_python_find_key(cfxi_call *c, const cfx_datum *items, size_t n, cfx_datum key,
                                   size_t *at);
/* The smaller or larger of two numbers. */
cfx_datum cfxi_rt_python_choose(cfxi_call *c, cfx_datum a, cfx_datum b, bool larger);
/* EQ to GE. */
cfx_datum cfxi_rt_py_compare(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y);

/* ---- numbers (python_numbers.c) ------------------------------------------------------------ */

/* ADD to SHIFT_RIGHT of two numbers. */
cfx_datum cfxi_rt_py_arithmetic(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y);
/* These fail: INVALID. */
cfx_datum cfxi_rt_py_fail_kinds(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y);
cfx_datum cfxi_rt_py_fail_value(cfxi_call *c, const char *why);
/* Fails where it depends on whether two NaN are one object: `a in items`, [a] == [b]. */
cfx_status cfxi_rt_py_fail_nan(cfxi_call *c);
/* Fails with what int(f) raises for a float that has no integer of 64 bits. */
cfx_status cfxi_rt_py_fail_whole(cfxi_call *c, double f);

static inline bool cfxi_rt_py_is_integral(cfx_datum d)
{
    return d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_BOOL;
}
/* One that is known, or a size: of a bool that nobody knows there is no number to reckon with. */
static inline bool cfxi_rt_py_is_reckonable(cfx_datum d)
{
    return d.kind == CFX_DATUM_INT || (d.kind == CFX_DATUM_BOOL && !d.symbolic);
}
static inline int64_t cfxi_rt_py_int(cfx_datum d)
{
    return d.kind == CFX_DATUM_BOOL ? d.as.b : d.as.i;
}
static inline double cfxi_rt_py_float(cfx_datum d)
{
    return cfxi_rt_py_is_integral(d)      ? (double)cfxi_rt_py_int(d)
           : d.kind == CFX_DATUM_FLOAT ? d.as.f
                                       : d.as.c[0];
}
static inline double cfxi_rt_py_imaginary(cfx_datum d)
{
    return d.kind == CFX_DATUM_COMPLEX ? d.as.c[1] : 0;
}

static inline bool cfxi_rt_py_is_nan(cfx_datum d)
{
    return d.kind == CFX_DATUM_FLOAT && !d.symbolic && d.as.f != d.as.f;
}

static inline const char *cfxi_rt_py_kind_of(cfx_datum d)
{
    return cfx_datum_kind_name((cfx_datum_kind)d.kind);
}

/* A number of that kind which nobody knows. */
static inline cfx_datum cfxi_rt_py_unknown(cfx_datum_kind kind)
{
    cfx_datum d = cfx_datum_scalar(kind, 0);
    if (kind == CFX_DATUM_INT)
        d.as.i = CFX_DIM_UNKNOWN;
    d.symbolic = 1;
    return d;
}

/* ---- calls (python_arithmetic.c) ----------------------------------------------------------- */

/* NEG to COS of a number. */
cfx_datum cfxi_rt_py_unary(cfxi_call *c, cfxi_py_action a, cfx_datum d);

/* bool(d). Of a tensor its only element. */
cfx_status cfxi_rt_python_truth(cfxi_call *c, cfx_datum d, cfxi_truth *out);
/* a + b of two strings, lists or tuples. */
cfx_datum cfxi_rt_python_concat(cfxi_call *c, cfx_datum a, cfx_datum b);
/* A tensor of one element as the number it is; other data as they are. Abstract ones give a number
 * nobody knows. */
cfx_status cfxi_rt_python_number(cfxi_call *c, cfx_datum d, cfx_datum *out);
/* d.__index__(): a BOOL, INT or integer tensor of one element as an INT. */
cfx_status cfxi_rt_python_index(cfxi_call *c, cfx_datum d, cfx_datum *out);

/* Whether the row does Python's work on these: none of the first two arguments is a tensor. */
bool cfxi_rt_python_takes(cfx_operator op, const cfx_datum *args, size_t n);
/* Does it; `in_place` changes a list or dict that is the first argument, as += does. Owned by the
 * caller; INVALID with c->err set. */
cfx_datum cfxi_rt_python_call(cfxi_call *c, bool in_place);

#endif
