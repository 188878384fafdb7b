/* inputs.h - the arguments of a run as data, and what comes back: programs and files alike. */
#ifndef PYCFX_INPUTS_H
#define PYCFX_INPUTS_H

#include "base/pycfx.h"

enum { INPUTS_FEW = 16 };

/* The arguments of one run. It points into itself, so it stays where it is. */
typedef struct run_inputs {
    cfx_datum few[INPUTS_FEW];
    cfx_datum *data;   /* `count` of them */
    size_t count;
    size_t room;
    crossing both;
    arrays_seen seen;
} run_inputs;

/* Reads the arguments. Where NotImplemented stands for one that is not given (`may_lack`), the
 * datum is invalid: every other object may be an argument. `shared`: see arrays_seen; or NULL.
 * False with an exception. The caller ends it in any case. */
bool run_inputs_begin(run_inputs *in, module_state *st, PyObject *const *args, Py_ssize_t n,
                      bool may_lack, shared_tensors *shared);
void run_inputs_end(run_inputs *in);

/* Gives Python what a run has written, also if it failed, and then its result, which it takes
 * over. Tensors become those of `kind`. NULL with an exception: if `result` is invalid, that of
 * `err`. */
PyObject *run_inputs_result(run_inputs *in, module_state *st, array_kind kind, cfx_datum result,
                            cfx_error *err);

#endif
