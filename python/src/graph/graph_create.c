/* graph_create.c - Graph: creating and erasing nodes, the insertion point. */
#include "graph_methods.h"

/* ---- creating nodes ------------------------------------------------------------------------ */

static bool convert_parts(PyGraph *self, const node_parts *parts, cfx_value *args,
                          cfx_value *kwargs, cfx_value *type)
{
    if (parts->items)
        *args = args_from_array(self, parts->items, parts->n);
    else
        *args = args_from_py(self, parts->args);
    *kwargs = *type = cfx_value_invalid();
    if (!PyErr_Occurred())
        *kwargs = kwargs_from_py(self, parts->kwargs);
    self->tracer = NULL;  /* a type is no argument */
    if (!PyErr_Occurred() && parts->type && parts->type != Py_None)
        *type = value_from_py(self, parts->type);
    if (!PyErr_Occurred())
        return true;
    cfx_value_discard(self->g, *args);
    cfx_value_discard(self->g, *kwargs);
    return false;
}

/* The wish for a name as UTF-8, to be released after use; what no name can have is left to the
 * core, but for the null character, which would end it. */
static PyObject *wish_of(PyObject *name)
{
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *text = PyUnicode_Check(name) ? utf8_of(name, &size, &keep) : NULL;
    /* Filled here: bytes that are made from a text may be shared, as all of one character are. */
    PyObject *wish = text ? PyBytes_FromStringAndSize(NULL, size) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "the name of a node must be a str, got %R",
                     (PyObject *)Py_TYPE(name));
    for (Py_ssize_t i = 0; wish && i < size; i++)
        PyBytes_AS_STRING(wish)[i] = text[i] ? text[i] : '.';
    Py_XDECREF(keep);
    return wish;
}

static cfx_node *create_held(PyGraph *self, const node_parts *parts)
{
    cfx_error err = {0};
    cfx_target target;
    cfx_value args, kwargs, type;
    PyObject *keep = NULL;
    PyObject *wish = NULL;
    if (parts->name && parts->name != Py_None && !(wish = wish_of(parts->name)))
        return NULL;
    if (!target_from_py(self->st, parts->op, parts->target, &target, &keep)) {
        Py_XDECREF(wish);
        return NULL;
    }
    const char *name = wish ? PyBytes_AS_STRING(wish) : NULL;
    cfx_node *n = NULL;
    struct PyTracer *outer = self->tracer;
    self->tracer = parts->tracer;
    bool converted = convert_parts(self, parts, &args, &kwargs, &type);
    self->tracer = outer;
    if (converted) {
        n = cfx_graph_create(self->g, parts->op, target, args, kwargs, name, type, &err);
        if (!n) {
            cfx_value_discard(self->g, args);
            cfx_value_discard(self->g, kwargs);
            cfx_value_discard(self->g, type);
            raise_cfx(&err);
        }
    }
    Py_XDECREF(keep);
    Py_XDECREF(wish);
    return n;
}

/* The graph is held, because Python code may run between the conversion of two arguments. */
cfx_node *graph_create_core(PyGraph *self, const node_parts *parts)
{
    cfx_iter pin = hold(self->g);
    cfx_node *n = create_held(self, parts);
    cfx_iter_end(&pin);
    return n;
}

PyObject *graph_create(PyGraph *self, const node_parts *parts)
{
    cfx_node *n = graph_create_core(self, parts);
    return n ? node_wrap(self, n) : NULL;
}

static PyObject *none_if_absent(PyObject *o) { return o ? o : Py_None; }

PyObject *graph_create_by_method(PyGraph *self, const node_parts *parts)
{
    module_state *st = self->st;
    if ((PyObject *)Py_TYPE(self) == st->graph_class)
        return graph_create(self, parts);
    return PyObject_CallMethodObjArgs(
        (PyObject *)self, st->str_create_node, PyTuple_GET_ITEM(st->op_names, parts->op),
        parts->target, none_if_absent(parts->args), none_if_absent(parts->kwargs),
        none_if_absent(parts->name), none_if_absent(parts->type), NULL);
}

PyObject *graph_create_node(FAST_ARGS)
{
    static const char *const names[] = {"op", "target", "args", "kwargs", "name", "type_expr"};
    static const arg_spec spec = {"create_node", names, 6, 2, 6};
    PyObject *in[6];
    node_parts parts = {0};
    if (!take_args(&spec, args, nargs, kwnames, in) || !opcode_from_py(in[0], &parts.op))
        return NULL;
    if (!is_empty(in[2]) && !PyTuple_Check(in[2]))
        return PyErr_Format(PyExc_AssertionError, "args must be a tuple, got %R",
                            (PyObject *)Py_TYPE(in[2]));
    parts.target = in[1];
    parts.args = in[2];
    parts.kwargs = in[3];
    parts.name = in[4];
    parts.type = in[5];
    return graph_create(self, &parts);
}

PyObject *graph_call_function(FAST_ARGS)
{
    static const char *const names[] = {"the_function", "args", "kwargs", "type_expr", "name"};
    static const arg_spec spec = {"call_function", names, 5, 1, 5};
    PyObject *in[5];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    node_parts parts = {.op = CFX_OP_CALL_FUNCTION, .target = in[0], .args = in[1],
                        .kwargs = in[2], .name = in[4], .type = in[3]};
    return graph_create_by_method(self, &parts);
}

/* call_method and call_module differ in the name of their first parameter only. */
static PyObject *call_named(PyGraph *self, cfx_opcode op, const arg_spec *spec,
                            PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *in[4];
    if (!take_args(spec, args, nargs, kwnames, in) || check_reference(self, op, in[0]) < 0)
        return NULL;
    node_parts parts = {.op = op, .target = in[0], .args = in[1], .kwargs = in[2], .type = in[3]};
    return graph_create_by_method(self, &parts);
}

PyObject *graph_call_method(FAST_ARGS)
{
    static const char *const names[] = {"method_name", "args", "kwargs", "type_expr"};
    static const arg_spec spec = {"call_method", names, 4, 1, 4};
    return call_named(self, CFX_OP_CALL_METHOD, &spec, args, nargs, kwnames);
}

PyObject *graph_call_module(FAST_ARGS)
{
    static const char *const names[] = {"module_name", "args", "kwargs", "type_expr"};
    static const arg_spec spec = {"call_module", names, 4, 1, 4};
    return call_named(self, CFX_OP_CALL_MODULE, &spec, args, nargs, kwnames);
}

PyObject *graph_get_attr(FAST_ARGS)
{
    static const char *const names[] = {"qualified_name", "type_expr"};
    static const arg_spec spec = {"get_attr", names, 2, 1, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in) ||
        check_reference(self, CFX_OP_GET_ATTR, in[0]) < 0)
        return NULL;
    node_parts parts = {.op = CFX_OP_GET_ATTR, .target = in[0], .type = in[1]};
    return graph_create_by_method(self, &parts);
}

PyObject *graph_placeholder(FAST_ARGS)
{
    static const char *const names[] = {"name", "type_expr", "default_value"};
    static const arg_spec spec = {"placeholder", names, 3, 1, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *defaults = in[2] ? PyTuple_Pack(1, in[2]) : NULL;
    if (in[2] && !defaults)
        return NULL;
    node_parts parts = {.op = CFX_OP_PLACEHOLDER, .target = in[0], .args = defaults, .type = in[1]};
    PyObject *node = graph_create_by_method(self, &parts);
    Py_XDECREF(defaults);
    return node;
}

PyObject *graph_output(FAST_ARGS)
{
    static const char *const names[] = {"result", "type_expr"};
    static const arg_spec spec = {"output", names, 2, 1, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *result = PyTuple_Pack(1, in[0]);
    PyObject *target = PyTuple_GET_ITEM(self->st->op_names, CFX_OP_OUTPUT);
    if (!result)
        return NULL;
    node_parts parts = {.op = CFX_OP_OUTPUT, .target = target, .args = result, .type = in[1]};
    PyObject *node = graph_create_by_method(self, &parts);
    Py_DECREF(result);
    return node;
}

/* ---- erasing and moving the insertion point ------------------------------------------------ */

bool need_node(PyGraph *self, PyObject *o)
{
    if (is_node(self->st, o))
        return true;
    PyErr_Format(PyExc_TypeError, "expected a Node, got %R", (PyObject *)Py_TYPE(o));
    return false;
}

PyObject *graph_erase_node(FAST_ARGS)
{
    static const char *const names[] = {"to_erase"};
    static const arg_spec spec = {"erase_node", names, 1, 1, 1};
    cfx_error err = {0};
    PyObject *o;
    if (!take_args(&spec, args, nargs, kwnames, &o) || !need_node(self, o))
        return NULL;
    cfx_node *n = ((PyNode *)o)->n;
    if (cfx_node_graph(n) == self->g && cfx_node_is_erased(n)) {
        if (PyErr_WarnFormat(PyExc_UserWarning, 1, "erase_node(%S) on an already erased node",
                             o) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    if (cfx_node_graph(n) == self->g && cfx_node_num_users(n) > 0) {
        PyObject *users = users_of((PyNode *)o);
        if (users)
            PyErr_Format(PyExc_RuntimeError, "Tried to erase Node %S but it still had %zu users "
                         "in the graph: %R!", o, cfx_node_num_users(n), users);
        Py_XDECREF(users);
        return NULL;
    }
    if (cfx_graph_erase(self->g, n, &err) != CFX_OK)
        return raise_cfx(&err);
    Py_RETURN_NONE;
}

/* Sets the insertion point and returns the one before, as (node or None, after). */
PyObject *graph_set_insert_point(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *node;
    int after;
    if (!PyArg_ParseTuple(args, "Op:_set_insert_point", &node, &after))
        return NULL;
    if (node != Py_None && !need_node(self, node))
        return NULL;
    cfx_insert_point old = cfx_graph_insert_point(self->g);
    cfx_insert_point at = {node == Py_None ? NULL : ((PyNode *)node)->n, after != 0};
    PyObject *before = old.node ? node_wrap(self, old.node) : Py_NewRef(Py_None);
    if (!before)
        return NULL;
    if (cfx_graph_set_insert_point(self->g, at, &err) != CFX_OK) {
        Py_DECREF(before);
        return raise_cfx(&err);
    }
    return Py_BuildValue("(NN)", before, PyBool_FromLong(old.after));
}

PyObject *graph_clear_nodes(PyGraph *self, PyObject *unused)
{
    (void)unused;
    if (cfx_graph_is_frozen(self->g)) {
        PyErr_SetString(PyExc_RuntimeError, "the graph is being read and cannot be cleared now");
        return NULL;
    }
    cfx_graph_clear(self->g);
    Py_RETURN_NONE;
}
