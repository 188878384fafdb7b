/* passes.c - the table of passes, and passes with options of their own. */
#include "graph_methods.h"

/* [(name, summary, needs, keeps), ...] in the order of the table. */
static PyObject *py_passes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && cfx_pass_at(i); i++) {
        const cfx_pass *pass = cfx_pass_at(i);
        PyObject *row = Py_BuildValue("(ssss)", pass->name, pass->summary, pass->needs,
                                      pass->keeps);
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

PyMethodDef pass_functions[] = {
    {"_passes", py_passes, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Whether anything had to be moved; stable unless breadth-first is asked for. */
PyObject *graph_toposort(PyGraph *self, PyObject *breadth_first)
{
    cfx_error err = {0};
    bool changed = false;
    const cfx_toposort_options options = {breadth_first == Py_True};
    cfx_status status = cfx_pass_toposort(self->g, NULL, &options, &changed, &err);
    return status == CFX_OK ? PyBool_FromLong(changed) : raise_cfx(&err);
}
