/* capture_entry.h - the entry of a captured module: guards, and what arguments must be like. */
#ifndef PYCFX_CAPTURE_ENTRY_H
#define PYCFX_CAPTURE_ENTRY_H

#include "base/pycfx.h"

#include <cfx/embed/guard.h>

/* ---- guards (entry_guards.c) --------------------------------------------------------------- */

/* A set of guards over the inputs of a graph. Nobody changes it once it is settled. */
typedef struct PyGuards {
    PyObject_HEAD
    cfx_guards *guards;
} PyGuards;

extern PyType_Spec guards_spec;
extern PyMethodDef guards_functions[];  /* _drop_numbers */

/* Which guard does not hold for these inputs of the graph: SIZE_MAX if all do. False with an
 * exception if an input is not a tensor or a number. `*why` says what failed. */
bool guards_check(PyGuards *self, PyObject *const *inputs, size_t *which, cfx_error *why);

/* ---- arguments (entry.c) ------------------------------------------------------------------- */

extern PyType_Spec entry_spec;

#endif
