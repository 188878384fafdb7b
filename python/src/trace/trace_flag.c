/* trace_flag.c - whether a trace runs in this thread, for those who ask: cfx's own functions, and
 * torch.fx's while a trace runs.
 *
 * The answer is a flag of each thread, as torch.fx has one for the process: a trace sets it and
 * puts back what was before; a program may set it, too. torch.fx's functions that tell its flag are
 * hooked like those of nn.Module, by their code, from the first trace to the last.
 */
#include "trace.h"

/* ---- the flag ------------------------------------------------------------------------------ */

bool flag_get(module_state *st) { return PyThread_tss_get(&st->flag) != NULL; }

int flag_set(module_state *st, bool on)
{
    if (PyThread_tss_set(&st->flag, on ? &st->flag : NULL) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static PyObject *is_tracing(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(flag_get(PyModule_GetState(module)));
}

/* _set_tracing(on): what _is_tracing answers in this thread, until a trace begins or ends. */
static PyObject *set_tracing(PyObject *module, PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0 || flag_set(PyModule_GetState(module), on) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- torch.fx's functions ------------------------------------------------------------------ */

/* Swaps the code of flag_hooks, a tuple of (function, code), and notes what each had. */
int flag_install(module_state *st)
{
    Py_ssize_t n = st->flag_hooks ? PyTuple_GET_SIZE(st->flag_hooks) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *function = PyTuple_GET_ITEM(PyTuple_GET_ITEM(st->flag_hooks, i), 0);
        PyObject *code = PyTuple_GET_ITEM(PyTuple_GET_ITEM(st->flag_hooks, i), 1);
        PyObject *before = PyObject_GetAttr(function, st->str_code);
        PyObject *entry = before ? PyTuple_Pack(2, function, before) : NULL;
        int failed = entry ? PyList_Append(st->flag_saved, entry) : -1;
        if (!failed)
            failed = PyObject_SetAttr(function, st->str_code, code);
        Py_XDECREF(entry);
        Py_XDECREF(before);
        if (failed) {
            flag_remove(st);
            return -1;
        }
    }
    return 0;
}

void flag_remove(module_state *st)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (Py_ssize_t n; (n = PyList_GET_SIZE(st->flag_saved)) > 0;) {
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(st->flag_saved, n - 1));
        PyObject *function = PyTuple_GET_ITEM(entry, 0);
        if (PyList_SetSlice(st->flag_saved, n - 1, n, NULL) < 0 ||
            PyObject_SetAttr(function, st->str_code, PyTuple_GET_ITEM(entry, 1)) < 0)
            PyErr_WriteUnraisable(function);
        Py_DECREF(entry);
    }
    PyErr_Restore(type, value, traceback);
}

bool flag_is_torchs(module_state *st)
{
    if (!st->fx_globals)
        return false;
    PyObject *flag = PyDict_GetItemWithError(st->fx_globals, st->str_fx_flag);
    if (!flag)
        PyErr_Clear();  /* not there: not set */
    return flag == Py_True;
}

PyMethodDef flag_functions[] = {
    {"_is_tracing", is_tracing, METH_NOARGS, NULL},
    {"_set_tracing", set_tracing, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
