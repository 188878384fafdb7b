/* module_tree.c - the modules below a root and the tensors that are plain attributes of them. */
#include "trace.h"

typedef struct tree {
    module_state *st;
    PyObject *paths;    /* {module: path}, the first one found */
    PyObject *tensors;  /* {tensor: path}, the last one found, as in torch.fx */
} tree;

static PyObject *join(PyObject *prefix, PyObject *name)
{
    return PyUnicode_GET_LENGTH(prefix) ? PyUnicode_FromFormat("%U.%S", prefix, name)
                                        : PyObject_Str(name);
}

static int add_tensors(const tree *t, PyObject *attributes, PyObject *prefix)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(attributes, &at, &name, &value)) {
        bool wanted = false;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->st->tensor_types) && !wanted; i++)
            wanted = PyObject_TypeCheck(
                value, (PyTypeObject *)PyTuple_GET_ITEM(t->st->tensor_types, i));
        if (!wanted)
            continue;
        PyObject *path = join(prefix, name);
        int failed = path ? PyDict_SetItem(t->tensors, value, path) : -1;
        Py_XDECREF(path);
        if (failed)
            return -1;
    }
    return 0;
}

static int visit(const tree *t, PyObject *module, PyObject *prefix);

static int visit_children(const tree *t, PyObject *children, PyObject *prefix)
{
    PyObject *pairs = PyDict_Items(children);
    int failed = pairs ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        PyObject *child = PyTuple_GET_ITEM(pair, 1);
        PyObject *path = child == Py_None ? NULL : join(prefix, PyTuple_GET_ITEM(pair, 0));
        if (path)
            failed = visit(t, child, path);
        else if (PyErr_Occurred())
            failed = -1;
        Py_XDECREF(path);
    }
    Py_XDECREF(pairs);
    return failed;
}

static int visit(const tree *t, PyObject *module, PyObject *prefix)
{
    PyObject **dict = _PyObject_GetDictPtr(module);
    if (!PyDict_GetItemWithError(t->paths, module) &&
        (PyErr_Occurred() || PyDict_SetItem(t->paths, module, prefix) < 0))
        return -1;
    if (!dict || !*dict)
        return 0;
    PyObject *attributes = Py_NewRef(*dict);
    int failed = add_tensors(t, attributes, prefix);
    PyObject *children = failed ? NULL : PyDict_GetItemWithError(attributes, t->st->str_modules);
    if (children && PyDict_Check(children) &&
        Py_EnterRecursiveCall(" while looking at the modules of a model") == 0) {
        failed = visit_children(t, children, prefix);
        Py_LeaveRecursiveCall();
    }
    Py_DECREF(attributes);
    return failed || PyErr_Occurred() ? -1 : 0;
}

PyObject *module_tree(PyObject *module, PyObject *root)
{
    module_state *st = PyModule_GetState(module);
    tree t = {st, PyDict_New(), PyDict_New()};
    PyObject *result = NULL;
    if (t.paths && t.tensors && visit(&t, root, st->str_empty) == 0)
        result = PyTuple_Pack(2, t.paths, t.tensors);
    Py_XDECREF(t.paths);
    Py_XDECREF(t.tensors);
    return result;
}
