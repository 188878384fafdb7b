/* python_impl.h - what Python does with numbers, strings and containers. (python_ops.c) */
#ifndef CFXI_PYTHON_IMPL_H
#define CFXI_PYTHON_IMPL_H

#include "runtime_impl.h"

/* What depends on what nobody knows yet: sizes that are symbols. */
typedef enum cfxi_truth { CFXI_FALSE, CFXI_TRUE, CFXI_DEPENDS } cfxi_truth;

static inline cfx_datum cfxi_invalid(void) { return cfx_datum_scalar(CFX_DATUM_INVALID, 0); }
/* A BOOL; unknown if it depends. */
cfx_datum cfxi_truth_datum(cfxi_truth t);

/* a == b of any two data. CFX_E_VALUE if it is to be found out from the elements of a tensor. */
cfx_status cfxi_python_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out);
/* bool(d). Of a tensor its only element. */
cfx_status cfxi_python_truth(cfxi_call *c, cfx_datum d, cfxi_truth *out);
/* The smaller or larger of two numbers. */
cfx_datum cfxi_python_choose(cfxi_call *c, cfx_datum a, cfx_datum b, bool larger);
/* a + b of two strings, lists or tuples. */
cfx_datum cfxi_python_concat(cfxi_call *c, cfx_datum a, cfx_datum b);
/* A tensor of one element as the number it is; other data as they are. Abstract ones give a number
 * nobody knows. */
cfx_status cfxi_python_number(cfxi_call *c, cfx_datum d, cfx_datum *out);
/* d.__index__(): a BOOL, INT or integer tensor of one element as an INT. */
cfx_status cfxi_python_index(cfxi_call *c, cfx_datum d, cfx_datum *out);

/* Whether the row does Python's work on these: none of the first two arguments is a tensor. */
bool cfxi_python_takes(cfx_operator op, const cfx_datum *args, size_t n);
/* Does it. Owned by the caller; INVALID with c->err set. */
cfx_datum cfxi_python_call(cfxi_call *c);

#endif
