/* node_args.c - Node: reading and assigning arguments. */
#include "node_methods.h"

/* Drops what was cached if the core has changed the arguments since. */
static void refresh(PyNode *self)
{
    while (cfx_node_args_changed(self->n)) {  /* what is dropped may run code that changes them */
        Py_CLEAR(self->args);
        Py_CLEAR(self->kwargs);
    }
}

/* The Python object of some arguments, which Python code may replace meanwhile. */
static PyObject *read_args(PyNode *self, cfx_value v)
{
    PyGraph *graph = node_graph(self);
    cfx_iter pin = hold(graph->g);
    v = cfx_value_retain(v);
    PyObject *object = value_to_py(graph, v);
    cfx_value_release(graph->g, v);
    cfx_iter_end(&pin);
    return object;
}

/* Keeps `object` in a cache, unless what it shows is out of date by now. */
static void keep(PyNode *self, PyObject **cache, PyObject *object)
{
    if (cfx_node_args_changed(self->n)) {
        Py_CLEAR(self->args);
        Py_CLEAR(self->kwargs);
    } else if (object && !*cache) {
        *cache = Py_NewRef(object);
    }
}

PyObject *node_get_args(PyNode *self, void *unused)
{
    (void)unused;
    refresh(self);
    if (self->args)
        return Py_NewRef(self->args);
    if (cfx_node_num_args(self->n) == 0)
        return Py_NewRef(node_state(self)->empty_tuple);
    PyObject *args = read_args(self, cfx_node_args(self->n));
    keep(self, &self->args, args);
    return args;
}

PyObject *node_get_kwargs(PyNode *self, void *unused)
{
    (void)unused;
    size_t n;
    refresh(self);
    if (self->kwargs)
        return Py_NewRef(self->kwargs);
    cfx_value_items(cfx_node_kwargs(self->n), &n);
    if (n == 0)
        return Py_NewRef(node_state(self)->empty_dict);
    PyObject *kwargs = read_args(self, cfx_node_kwargs(self->n));
    keep(self, &self->kwargs, kwargs);
    return kwargs;
}

static cfx_value or_empty(cfx_value v, cfx_kind kind)
{
    if (v.kind == CFX_KIND_INVALID) {
        v = cfx_value_scalar(kind, 0);
        v.as.seq = NULL;
    }
    return v;
}

static int set_held(PyNode *self, PyObject *value, bool keywords)
{
    cfx_error err = {0};
    PyGraph *graph = node_graph(self);
    cfx_value new_ = keywords ? kwargs_from_py(graph, value) : args_from_py(graph, value);
    if (PyErr_Occurred())
        return -1;
    cfx_value args = keywords ? cfx_node_args(self->n) : or_empty(new_, CFX_KIND_TUPLE);
    cfx_value kwargs = keywords ? or_empty(new_, CFX_KIND_DICT) : cfx_node_kwargs(self->n);
    if (cfx_node_set_args_kwargs(self->n, args, kwargs, &err) == CFX_OK)
        return 0;
    cfx_value_discard(graph->g, new_);
    raise_cfx(&err);
    return -1;
}

static int set_arguments(PyNode *self, PyObject *value, bool keywords)
{
    cfx_graph *g = cfx_node_graph(self->n);
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "the arguments of a node cannot be deleted");
        return -1;
    }
    cfx_iter pin = hold(g);
    int failed = set_held(self, value, keywords);
    cfx_iter_end(&pin);
    return failed;
}

int node_set_args(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    return set_arguments(self, value, false);
}

int node_set_kwargs(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    return set_arguments(self, value, true);
}

/* Which edit takes a new value, and where it goes. */
typedef struct value_edit {
    enum { UPDATE_ARG, INSERT_ARG, UPDATE_KWARG } kind;
    size_t index;
    const char *key;
} value_edit;

static cfx_status apply(cfx_node *n, const value_edit *edit, cfx_value v, cfx_error *err)
{
    switch (edit->kind) {
    case UPDATE_ARG:
        return cfx_node_set_arg(n, edit->index, v, err);
    case INSERT_ARG:
        return cfx_node_insert_arg(n, edit->index, v, err);
    case UPDATE_KWARG:
        break;
    }
    return cfx_node_set_kwarg(n, edit->key, v, err);
}

static PyObject *edit_value(PyNode *self, const value_edit *edit, PyObject *value)
{
    cfx_error err = {0};
    PyGraph *graph = node_graph(self);
    cfx_iter pin = hold(graph->g);
    cfx_value v = value_from_py(graph, value);
    if (v.kind != CFX_KIND_INVALID && apply(self->n, edit, v, &err) != CFX_OK) {
        cfx_value_discard(graph->g, v);
        raise_cfx(&err);
    }
    cfx_iter_end(&pin);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* The arguments of update_arg and insert_arg: an index, and a new value (borrowed). */
static bool take_index(const char *function, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames, Py_ssize_t *index, PyObject **value)
{
    static const char *const names[] = {"idx", "arg"};
    const arg_spec spec = {function, names, 2, 2, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return false;
    *index = PyNumber_AsSsize_t(in[0], PyExc_IndexError);
    *value = in[1];
    return *index != -1 || !PyErr_Occurred();
}

PyObject *node_update_arg(FAST_ARGS)
{
    Py_ssize_t i;
    PyObject *value;
    if (!take_index("update_arg", args, nargs, kwnames, &i, &value))
        return NULL;
    if (i < 0)
        i += (Py_ssize_t)cfx_node_num_args(self->n);
    if (i < 0)
        i = PY_SSIZE_T_MAX;  /* out of range, for the core to say so */
    value_edit edit = {.kind = UPDATE_ARG, .index = (size_t)i};
    return edit_value(self, &edit, value);
}

PyObject *node_insert_arg(FAST_ARGS)
{
    Py_ssize_t i;
    PyObject *value;
    if (!take_index("insert_arg", args, nargs, kwnames, &i, &value))
        return NULL;
    if (i < 0 || (size_t)i > cfx_node_num_args(self->n))
        return PyErr_Format(PyExc_AssertionError, "insert_args index must be between 0 and "
                            "len(self.args), got %zd", i);
    value_edit edit = {.kind = INSERT_ARG, .index = (size_t)i};
    return edit_value(self, &edit, value);
}

PyObject *node_update_kwarg(FAST_ARGS)
{
    static const char *const names[] = {"key", "arg"};
    static const arg_spec spec = {"update_kwarg", names, 2, 2, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *keep;
    const char *key = c_string_of(in[0], "the key of a keyword argument", &keep);
    if (!key)
        return NULL;
    value_edit edit = {.kind = UPDATE_KWARG, .key = key};
    PyObject *done = edit_value(self, &edit, in[1]);
    Py_XDECREF(keep);
    return done;
}
