/* scope.c - the core's scopes as torch.fx shows them: {key: (path, class)}, outermost first. */
#include "node_methods.h"
#include "trace/trace.h"

PyObject *scope_class_of(PyGraph *graph, uint32_t scope)
{
    PyObject *object = cfx_graph_stack_object(graph->g, scope);
    if (object)
        return Py_NewRef(object);
    const char *name = cfx_graph_stack_type(graph->g, scope);
    PyObject *found = resolve_name(graph->st, name, strlen(name));
    return found || PyErr_Occurred() ? found : name_object(graph->st, name, strlen(name));
}

PyObject *scope_pair(PyGraph *graph, uint32_t scope)
{
    const char *path = scope ? cfx_graph_stack_path(graph->g, scope) : "";
    const char *call = strrchr(path, '@');
    PyObject *type = scope ? scope_class_of(graph, scope) : Py_NewRef(Py_None);
    PyObject *text = type ? str_from_utf8(path, call ? (size_t)(call - path) : strlen(path)) : NULL;
    PyObject *pair = text ? PyTuple_Pack(2, text, type) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(type);
    return pair;
}

/* Adds the scope behind those that it is in. */
static int add_scopes(PyGraph *graph, uint32_t scope, PyObject *stack)
{
    if (!scope)
        return 0;
    if (enter_nested(" while listing the modules of a node"))
        return -1;
    int failed = add_scopes(graph, cfx_graph_stack_outer(graph->g, scope), stack);
    leave_nested();
    if (failed)
        return -1;
    const char *path = cfx_graph_stack_path(graph->g, scope);
    PyObject *key = str_from_utf8(path, strlen(path));
    PyObject *pair = key ? scope_pair(graph, scope) : NULL;
    failed = pair ? PyODict_SetItem(stack, key, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(key);
    return failed;
}

PyObject *scope_stack(PyGraph *graph, uint32_t scope)
{
    PyObject *stack = PyODict_New();
    if (stack && add_scopes(graph, scope, stack) < 0)
        Py_CLEAR(stack);
    return stack;
}

/* "module.Class", as torch.fx's own texts write a class. */
PyObject *scope_class_name(PyObject *class_)
{
    PyObject *module = PyObject_GetAttrString(class_, "__module__");
    PyObject *name = module ? PyObject_GetAttrString(class_, "__qualname__") : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("%S.%S", module, name) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(name);
    return text;
}

uint32_t scope_enter(PyGraph *graph, uint32_t parent, PyObject *key, PyObject *class_,
                     PyObject *class_name)
{
    cfx_error err = {0};
    PyObject *keep_path = NULL;
    PyObject *keep_name = NULL;
    const char *path = c_string_of(key, "the path of a module", &keep_path);
    const char *type = path ? c_string_of(class_name, "the name of a class", &keep_name) : NULL;
    uint32_t scope = 0;
    if (type && !(scope = cfx_graph_intern_stack(graph->g, parent, path, type, class_, &err)))
        raise_cfx(&err);
    Py_XDECREF(keep_path);
    Py_XDECREF(keep_name);
    return scope;
}

/* ---- Node._scope --------------------------------------------------------------------------- */

PyObject *node_get_scope(PyNode *self, void *unused)
{
    (void)unused;
    PyGraph *graph = node_graph(self);
    uint32_t scope = cfx_node_module_stack(self->n);
    if (!scope)
        Py_RETURN_NONE;
    PyObject *stack = scope_stack(graph, scope);
    PyObject *chain = stack ? PyList_New(0) : NULL;
    PyObject *key, *pair;
    Py_ssize_t at = 0;
    while (chain && PyDict_Next(stack, &at, &key, &pair)) {
        PyObject *link = PyTuple_Pack(2, key, PyTuple_GET_ITEM(pair, 1));
        if (!link || PyList_Append(chain, link) < 0)
            Py_CLEAR(chain);
        Py_XDECREF(link);
    }
    PyObject *result = chain ? PyList_AsTuple(chain) : NULL;
    Py_XDECREF(chain);
    Py_XDECREF(stack);
    return result;
}

int node_set_scope(PyNode *self, PyObject *chain, void *unused)
{
    (void)unused;
    PyGraph *graph = node_graph(self);
    uint32_t scope = 0;
    Py_ssize_t n = chain && chain != Py_None ? PySequence_Size(chain) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *key, *class_;
        PyObject *link = PySequence_GetItem(chain, i);
        PyObject *name = NULL;
        if (link && !PyTuple_Check(link))
            PyErr_SetString(PyExc_TypeError, "each item of a scope must be a tuple (key, class)");
        else if (link && PyArg_ParseTuple(link, "UO:_scope", &key, &class_))
            name = scope_class_name(class_);
        if (name)
            scope = scope_enter(graph, scope, key, class_, name);
        Py_XDECREF(name);
        Py_XDECREF(link);
        if (PyErr_Occurred())
            return -1;
    }
    if (n < 0)
        return -1;
    cfx_node_set_module_stack(self->n, scope);
    return 0;
}
