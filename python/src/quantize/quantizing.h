/* quantizing.h - observers and rules of quantization, as Python has them. */
#ifndef PYCFX_QUANTIZING_H
#define PYCFX_QUANTIZING_H

#include "base/pycfx.h"

#include <cfx/quantize.h>

extern PyType_Spec observer_spec, rules_spec;

/* How a value becomes integers, by a dict of the spec's fields: {"observer": "histogram", "dtype":
 * "uint8", "low": 0, ...}; what is missing is as usual. None: it stays float. False with an
 * exception. (specs.c) */
bool spec_from_py(module_state *st, PyObject *dict, cfx_quantize_spec *spec);
PyObject *spec_to_py(const cfx_quantize_spec *spec);  /* a new dict; NULL with an exception */

/* The rules of a Rules object, borrowed; NULL with a TypeError for other objects. The `host` of a
 * configuration is the Python object that it was made for, borrowed from the rules. (rules.c) */
const cfx_qrules *rules_from_py(module_state *st, PyObject *rules);

/* The name by which nodes are told to call a class or a function, or a name of a method as it is: a
 * new reference; NULL with an exception. (rules.c) */
PyObject *type_name(module_state *st, PyObject *o);

/* A list of patterns as a backend, which the caller frees; NULL of None. False with an exception.
 * (backend.c) */
bool backend_from_py(module_state *st, PyObject *list, cfx_backend **backend);

#endif
