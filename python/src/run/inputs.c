/* inputs.c - the arguments of a run as data, and what comes back. */
#include "run/inputs.h"

bool run_inputs_begin(run_inputs *in, module_state *st, PyObject *const *args, Py_ssize_t n,
                      bool may_lack, shared_tensors *shared)
{
    in->seen = (arrays_seen){.shared = shared, .both = &in->both};
    in->count = 0;
    in->room = (size_t)n;
    in->data = n <= INPUTS_FEW ? in->few : PyMem_New(cfx_datum, (size_t)n);
    crossing_begin(&in->both);
    if (!in->data) {
        PyErr_NoMemory();
        return false;
    }
    for (; in->count < in->room; in->count++) {
        cfx_datum *d = &in->data[in->count];
        *d = cfx_datum_invalid();
        if (may_lack && args[in->count] == Py_NotImplemented)
            continue;
        *d = datum_from_py(st, args[in->count], &in->seen);
        if (d->kind == CFX_DATUM_INVALID)
            return false;
    }
    return true;
}

void run_inputs_end(run_inputs *in)
{
    for (size_t i = 0; i < in->count; i++)
        cfx_datum_release(in->data[i]);
    crossing_end(&in->both);
    if (in->data != in->few)
        PyMem_Free(in->data);
}

PyObject *run_inputs_result(run_inputs *in, module_state *st, array_kind kind, cfx_datum result,
                            cfx_error *err)
{
    const bool written = crossing_write_back(st, &in->both, kind);
    if (result.kind == CFX_DATUM_INVALID)
        return written ? raise_cfx(err) : NULL;
    PyObject *object = written ? datum_back_to_py(st, result, kind, &in->both) : NULL;
    cfx_datum_release(result);
    return object;
}
