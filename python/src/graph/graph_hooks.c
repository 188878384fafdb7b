/* graph_hooks.c - the hooks of a graph's owning module, called by the core's; and what waits for
 * the next edit. */
#include "graph_methods.h"

/* The hooks of one kind, as a tuple: a hook may change the list. NULL with an exception. */
static PyObject *hooks_of(PyObject *owner, PyObject *list_name)
{
    PyObject *hooks = PyObject_GetAttr(owner, list_name);
    PyObject *copy = hooks ? PySequence_Tuple(hooks) : NULL;
    if (!hooks && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();  /* a plain module has no hooks */
        copy = PyTuple_New(0);
    }
    Py_XDECREF(hooks);
    return copy;
}

static int call_all(PyObject *hooks, PyObject *args, PyObject *kwargs)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hooks); i++) {
        PyObject *result = PyObject_Call(PyTuple_GET_ITEM(hooks, i), args, kwargs);
        if (!result)
            return -1;
        Py_DECREF(result);
    }
    return 0;
}

static cfx_status told(PyObject *hooks, int failed, cfx_error *err)
{
    Py_XDECREF(hooks);
    return failed ? cfx_error_set(err, CFX_E_HOST, "a hook failed") : CFX_OK;
}

/* Calls the owning module's hooks of one kind with `node`. With an exception pending an edit is
 * being taken back, which is no business of hooks. */
static cfx_status run_hooks(PyGraph *graph, PyObject *list_name, cfx_node *n, cfx_error *err)
{
    PyObject *hooks = hooks_of(graph->owning_module, list_name);
    int failed = hooks ? 0 : -1;
    if (hooks && PyTuple_GET_SIZE(hooks) > 0) {
        PyObject *node = node_wrap(graph, n);
        PyObject *args = node ? PyTuple_Pack(1, node) : NULL;
        failed = args ? call_all(hooks, args, NULL) : -1;
        Py_XDECREF(args);
        Py_XDECREF(node);
    }
    return told(hooks, failed, err);
}

static PyGraph *hooked_graph(const cfx_node *n)
{
    PyGraph *graph = cfx_graph_binding(cfx_node_graph(n));
    return graph && graph->owning_module && !PyErr_Occurred() ? graph : NULL;
}

static cfx_status on_create(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    PyGraph *graph = hooked_graph(n);
    (void)ctx, (void)with, (void)user;
    return graph ? run_hooks(graph, graph->st->str_create_hooks, n, err) : CFX_OK;
}

static cfx_status on_erase(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    PyGraph *graph = hooked_graph(n);
    (void)ctx, (void)with, (void)user;
    return graph ? run_hooks(graph, graph->st->str_erase_hooks, n, err) : CFX_OK;
}

/* torch.fx gives these hooks the name of the new node. */
static PyObject *replacement(PyGraph *graph, cfx_value with)
{
    size_t size;
    if (with.kind != CFX_KIND_NODE)
        return value_to_py(graph, with);
    const char *name = cfx_node_name(with.as.node, &size);
    return str_from_utf8(name, size);
}

static int call_with_keywords(PyGraph *graph, PyObject *hooks, cfx_node *n, cfx_value with,
                              cfx_node *user)
{
    PyObject *old = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *new_ = old ? replacement(graph, with) : NULL;
    PyObject *of = new_ ? node_wrap(graph, user) : NULL;
    PyObject *kwargs = of ? Py_BuildValue("{sOsOsO}", "old", old, "new", new_, "user", of) : NULL;
    PyObject *args = kwargs ? PyTuple_New(0) : NULL;
    int failed = args ? call_all(hooks, args, kwargs) : -1;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(of);
    Py_XDECREF(new_);
    Py_XDECREF(old);
    return failed;
}

static cfx_status on_replace(void *ctx, cfx_node *n, cfx_value with, cfx_node *user,
                             cfx_error *err)
{
    PyGraph *graph = hooked_graph(user);
    (void)ctx;
    if (!graph)
        return CFX_OK;
    PyObject *hooks = hooks_of(graph->owning_module, graph->st->str_replace_hooks);
    int failed = hooks ? 0 : -1;
    if (hooks && PyTuple_GET_SIZE(hooks) > 0)  /* mostly there are none */
        failed = call_with_keywords(graph, hooks, n, with, user);
    return told(hooks, failed, err);
}

int graph_add_hooks(PyGraph *self)
{
    cfx_error err = {0};
    if (self->hooked)
        return 0;
    self->hooked = cfx_graph_add_hook(self->g, CFX_HOOK_CREATE, on_create, NULL, &err) &&
                   cfx_graph_add_hook(self->g, CFX_HOOK_ERASE, on_erase, NULL, &err) &&
                   cfx_graph_add_hook(self->g, CFX_HOOK_REPLACE, on_replace, NULL, &err);
    if (!self->hooked)
        raise_cfx(&err);
    return self->hooked ? 0 : -1;
}

/* ---- before the next edit ------------------------------------------------------------------ */

/* Calls what waits, if it is still alive and still something to call; it waits no longer then. It
 * has nobody to report to. */
static void call_waiting(PyGraph *graph)
{
    PyObject *weak = graph->waiting;
    graph->waiting = NULL;
    PyObject *callable = weak ? weak_target(weak) : NULL;
    Py_XDECREF(weak);
    if (callable && PyCallable_Check(callable)) {
        PyObject *type, *value, *traceback;  /* an edit may be taken back because of an exception */
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *result = PyObject_CallNoArgs(callable);
        if (!result)
            PyErr_WriteUnraisable(callable);
        Py_XDECREF(result);
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(callable);
}

static void before_edit(void *ctx, cfx_graph *g)
{
    PyGraph *graph = cfx_graph_binding(g);
    (void)ctx;
    if (graph)
        call_waiting(graph);
}

/* There is room for one: whatever waits already is called now. */
PyObject *graph_on_edit(PyGraph *self, PyObject *callable)
{
    PyObject *weak = PyWeakref_NewRef(callable, NULL);
    if (!weak)
        return NULL;
    call_waiting(self);
    Py_XSETREF(self->waiting, weak);
    cfx_graph_on_edit(self->g, before_edit, NULL);
    Py_RETURN_NONE;
}
