/* module_tree.c - the modules below a root and the tensors that are plain attributes of them. */
#include "trace.h"

typedef struct tree {
    module_state *st;
    PyObject *paths;    /* {module: path}, the first one found */
    PyObject *tensors;  /* {tensor: path}, the last one found, as in torch.fx */
    PyTypeObject *others[16];  /* classes that are known to be none of tensors */
    unsigned n_others;
} tree;

/* Modules have many attributes of few classes, so these are remembered. */
static bool is_tensor(tree *t, PyTypeObject *type)
{
    const unsigned room = sizeof t->others / sizeof *t->others;
    for (unsigned i = 0; i < t->n_others && i < room; i++)
        if (t->others[i] == type)
            return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->st->tensor_types); i++)
        if (PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(t->st->tensor_types, i)))
            return true;
    t->others[t->n_others++ % room] = type;
    return false;
}

/* The path of a module, and with a dot behind it once somebody needs that: most have nothing. */
typedef struct place {
    PyObject *path;    /* borrowed */
    PyObject *prefix;  /* owned, or NULL */
} place;

static PyObject *join(place *at, PyObject *name)
{
    if (!at->prefix)
        at->prefix = PyUnicode_GET_LENGTH(at->path) ? PyUnicode_FromFormat("%U.", at->path)
                                                    : Py_NewRef(at->path);
    if (!at->prefix || PyUnicode_Check(name))
        return at->prefix ? PyUnicode_Concat(at->prefix, name) : NULL;
    return PyUnicode_FromFormat("%U%S", at->prefix, name);
}

static int add_tensors(tree *t, PyObject *attributes, place *at)
{
    PyObject *name, *value;
    Py_ssize_t i = 0;
    while (PyDict_Next(attributes, &i, &name, &value)) {
        if (!is_tensor(t, Py_TYPE(value)))
            continue;
        PyObject *path = join(at, name);
        int failed = path ? PyDict_SetItem(t->tensors, value, path) : -1;
        Py_XDECREF(path);
        if (failed)
            return -1;
    }
    return 0;
}

static int visit(tree *t, PyObject *module, PyObject *path);

static int visit_children(tree *t, PyObject *children, place *at)
{
    PyObject *pairs = PyDict_Items(children);
    int failed = pairs ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        PyObject *child = PyTuple_GET_ITEM(pair, 1);
        PyObject *path = child == Py_None ? NULL : join(at, PyTuple_GET_ITEM(pair, 0));
        if (path)
            failed = visit(t, child, path);
        else if (PyErr_Occurred())
            failed = -1;
        Py_XDECREF(path);
    }
    Py_XDECREF(pairs);
    return failed;
}

/* The attributes and children of a module that is called `path`. */
static int visit_inside(tree *t, PyObject *attributes, PyObject *path)
{
    place at = {path, NULL};
    int failed = add_tensors(t, attributes, &at);
    PyObject *children = failed ? NULL : PyDict_GetItemWithError(attributes, t->st->str_modules);
    if (children && PyDict_Check(children) && PyDict_GET_SIZE(children) > 0 &&
        Py_EnterRecursiveCall(" while looking at the modules of a model") == 0) {
        failed = visit_children(t, children, &at);
        Py_LeaveRecursiveCall();
    }
    Py_XDECREF(at.prefix);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int visit(tree *t, PyObject *module, PyObject *path)
{
    PyObject **dict = _PyObject_GetDictPtr(module);
    if (!PyDict_SetDefault(t->paths, module, path))
        return -1;
    if (!dict || !*dict)
        return 0;
    PyObject *attributes = Py_NewRef(*dict);
    int failed = visit_inside(t, attributes, path);
    Py_DECREF(attributes);
    return failed;
}

/* Adds what one module has to {id: path}. */
static int add_members(PyObject *names, PyObject *members, PyObject *path)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(members, &at, &name, &value)) {
        if (value == Py_None)
            continue;
        PyObject *full = PyUnicode_GET_LENGTH(path) ? PyUnicode_FromFormat("%U.%S", path, name)
                                                    : PyObject_Str(name);
        PyObject *id = full ? PyLong_FromVoidPtr(value) : NULL;
        bool failed = !id || !PyDict_SetDefault(names, id, full);
        Py_XDECREF(id);
        Py_XDECREF(full);
        if (failed)
            return -1;
    }
    return 0;
}

PyObject *member_names(PyObject *paths, PyObject *kind)
{
    PyObject *names = PyDict_New();
    PyObject *module, *path;
    Py_ssize_t at = 0;
    while (names && PyDict_Next(paths, &at, &module, &path)) {
        PyObject **dict = _PyObject_GetDictPtr(module);
        PyObject *members = dict && *dict ? PyDict_GetItemWithError(*dict, kind) : NULL;
        if ((members && PyDict_Check(members) && add_members(names, members, path) < 0) ||
            PyErr_Occurred())
            Py_CLEAR(names);
    }
    return names;
}

PyObject *module_tree(PyObject *module, PyObject *root)
{
    module_state *st = PyModule_GetState(module);
    tree t = {.st = st, .paths = PyDict_New(), .tensors = PyDict_New()};
    PyObject *result = NULL;
    if (t.paths && t.tensors && visit(&t, root, st->str_empty) == 0)
        result = PyTuple_Pack(2, t.paths, t.tensors);
    Py_XDECREF(t.paths);
    Py_XDECREF(t.tensors);
    return result;
}
