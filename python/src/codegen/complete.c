/* complete.c - captured models as complete programs, in C or Python: _c_code, _python_module. */
#include "graph/graph_methods.h"

typedef cfx_status write_fn(cfx_graph *g, const cfx_module_tree *modules, const char *class_name,
                            cfx_sink out, cfx_error *err);

/* (graph, root or None, class name): the text of the file. */
static PyObject *write_program(PyObject *module, PyObject *args, const char *format,
                               write_fn *write)
{
    module_state *st = PyModule_GetState(module);
    PyObject *graph, *root;
    const char *name;
    cfx_error err = {0};
    module_view view = {0};
    cfx_buffer text;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, format, &graph, &root, &name))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "a Graph is needed, not %s", Py_TYPE(graph)->tp_name);
    const bool has_root = root != Py_None;
    if (has_root && !modules_over(st, root, &view))
        return NULL;
    cfx_buffer_init(&text, NULL);
    cfx_status status = write(((PyGraph *)graph)->g, has_root ? &view.table : NULL, name,
                              cfx_buffer_sink(&text), &err);
    if (status == CFX_OK && !PyErr_Occurred())
        result = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogatepass");
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    if (has_root)
        modules_done(&view);
    return result;
}

static PyObject *py_c_code(PyObject *module, PyObject *args)
{
    return write_program(module, args, "OOs:_c_code", cfx_codegen_c);
}

static PyObject *py_python_module(PyObject *module, PyObject *args)
{
    return write_program(module, args, "OOs:_python_module", cfx_codegen_python_module);
}

PyMethodDef complete_functions[] = {
    {"_c_code", py_c_code, METH_VARARGS, NULL},
    {"_python_module", py_python_module, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
