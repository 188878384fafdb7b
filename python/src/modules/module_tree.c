/* module_tree.c - the modules below a root and the tensors that are plain attributes of them. */
#include "trace/trace.h"

typedef struct tree {
    module_state *st;
    PyObject *paths;    /* {module: path}, the first one found */
    PyObject *tensors;  /* {tensor: path}, the last one found, as in torch.fx; NULL: not wanted */
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
    int failed = t->tensors ? add_tensors(t, attributes, &at) : 0;
    PyObject *children = failed ? NULL : PyDict_GetItemWithError(attributes, t->st->str_modules);
    if (children && PyDict_Check(children) && PyDict_GET_SIZE(children) > 0 &&
        enter_nested(" while looking at the modules of a model") == 0) {
        failed = visit_children(t, children, &at);
        leave_nested();
    }
    Py_XDECREF(at.prefix);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int visit(tree *t, PyObject *module, PyObject *path)
{
    PyObject *attributes = instance_dict(module);
    if (!PyDict_SetDefault(t->paths, module, path))
        return -1;
    if (!attributes)
        return 0;
    Py_INCREF(attributes);
    int failed = visit_inside(t, attributes, path);
    Py_DECREF(attributes);
    return failed;
}

static int need_text(PyObject *name, const char *what)
{
    if (PyUnicode_Check(name))
        return 0;
    PyErr_Format(PyExc_TypeError, "the %s of a module must be a str, got %R", what, name);
    return -1;
}

/* Adds what one module has to {id: path}. */
static int add_members(PyObject *names, PyObject *members, PyObject *path)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (need_text(path, "path") < 0)
        return -1;
    while (PyDict_Next(members, &at, &name, &value)) {
        if (value == Py_None)
            continue;
        if (need_text(name, "name of a member") < 0)
            return -1;
        PyObject *full = PyUnicode_GET_LENGTH(path) ? PyUnicode_FromFormat("%U.%U", path, name)
                                                    : Py_NewRef(name);
        PyObject *id = full ? PyLong_FromVoidPtr(value) : NULL;
        bool failed = !id || !PyDict_SetDefault(names, id, full);
        Py_XDECREF(id);
        Py_XDECREF(full);
        if (failed)
            return -1;
    }
    return 0;
}

/* {id: path} of the `kind` ("_parameters", "_buffers") that modules have, by their paths. */
static PyObject *member_names(PyObject *paths, PyObject *kind)
{
    PyObject *names = PyDict_New();
    PyObject *module, *path;
    Py_ssize_t at = 0;
    while (names && PyDict_Next(paths, &at, &module, &path)) {
        PyObject *dict = instance_dict(module);
        PyObject *members = dict ? PyDict_GetItemWithError(dict, kind) : NULL;
        if ((members && PyDict_Check(members) && add_members(names, members, path) < 0) ||
            PyErr_Occurred())
            Py_CLEAR(names);
    }
    return names;
}

/* An entry of one of the dicts of a module: borrowed, or NULL, perhaps with an exception. */
PyObject *module_entry(PyObject *module, PyObject *kind, PyObject *name)
{
    PyObject *dict = instance_dict(module);
    PyObject *table = dict ? PyDict_GetItemWithError(dict, kind) : NULL;
    return table && PyDict_Check(table) ? PyDict_GetItemWithError(table, name) : NULL;
}

/* Whether the path leads to that very object now. */
static bool leads_to(module_state *st, PyObject *root, PyObject *path, PyObject *kind,
                     PyObject *value)
{
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *steps = dot ? PyUnicode_Split(path, dot, -1) : NULL;
    Py_ssize_t last = steps ? PyList_GET_SIZE(steps) - 1 : -1;
    PyObject *at = steps ? root : NULL;
    for (Py_ssize_t i = 0; at && i <= last; i++)
        at = module_entry(at, i < last ? st->str_modules : kind, PyList_GET_ITEM(steps, i));
    Py_XDECREF(steps);
    Py_XDECREF(dot);
    return at == value;
}

/* The path of `value` by what was read before: a new reference, or NULL, perhaps with an exception.
 * The traced code may have given the module something else since, and an object that is gone may
 * have left its address to another: so the path is followed. */
static PyObject *known_path(PyTracer *t, PyObject *root, PyObject **names, PyObject *kind,
                            PyObject *value, bool check)
{
    if (!*names && t->paths)
        *names = member_names(t->paths, kind);
    PyObject *id = *names ? PyLong_FromVoidPtr(value) : NULL;
    PyObject *path = id ? Py_XNewRef(PyDict_GetItemWithError(*names, id)) : NULL;
    Py_XDECREF(id);
    if (path && check && !leads_to(state_of(Py_TYPE(t)), root, path, kind, value))
        Py_CLEAR(path);
    return path;
}

/* Reads again which members the root has. */
static int read_members(PyTracer *t, module_state *st, PyObject *root)
{
    PyObject *paths = call_glue(st, "module_paths", root);
    PyObject *parameters = paths ? member_names(paths, st->str_parameters) : NULL;
    PyObject *buffers = parameters ? member_names(paths, st->str_buffers) : NULL;
    Py_XDECREF(paths);
    if (!buffers) {
        Py_XDECREF(parameters);
        return -1;
    }
    Py_XSETREF(t->parameters, parameters);
    Py_XSETREF(t->buffers, buffers);
    return 0;
}

PyObject *member_path(PyTracer *t, bool or_buffer, PyObject *value)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *root = PyObject_GetAttr((PyObject *)t, st->str_root);
    PyObject *path = NULL;
    if (!root && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();  /* a tracer without a module has no members */
    for (int again = 0; root && !path && !PyErr_Occurred() && again < 2; again++) {
        if (again && read_members(t, st, root) < 0)
            break;
        path = known_path(t, root, &t->parameters, st->str_parameters, value, !again);
        if (!path && or_buffer && !PyErr_Occurred())
            path = known_path(t, root, &t->buffers, st->str_buffers, value, !again);
    }
    Py_XDECREF(root);
    return path;
}

PyObject *module_paths(PyObject *module, PyObject *root)
{
    module_state *st = PyModule_GetState(module);
    tree t = {.st = st, .paths = PyDict_New()};
    if (t.paths && visit(&t, root, st->str_empty) < 0)
        Py_CLEAR(t.paths);
    return t.paths;
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
