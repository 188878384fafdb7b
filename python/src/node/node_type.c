/* node_type.c - Node: the Python face of a core node. */
#include "node_docs.h"
#include "node_methods.h"
#include "trace/trace.h"

#include <structmember.h>

/* ---- the target ---------------------------------------------------------------------------- */

/* The target as Python sees it: a str, the object, or the name of one that is not loaded. */
static PyObject *target_to_py(PyGraph *graph, cfx_node *n)
{
    PyObject *object = cfx_node_target_object(n);
    if (object)
        return Py_NewRef(object);
    cfx_error err = {0};
    size_t size;
    const char *name = cfx_node_target(n, &size, &err);
    if (!name)
        return raise_cfx(&err);
    if (cfx_node_op(n) == CFX_OP_CALL_FUNCTION)
        return name_object(graph->st, name, size);
    PyObject *str = str_from_utf8(name, size);
    if (str)
        PyUnicode_InternInPlace(&str);  /* many nodes call the same method */
    return str;
}

bool node_retarget(PyNode *node)
{
    PyGraph *graph = node_graph(node);
    bool root = node->n == cfx_graph_root(graph->g);
    PyObject *op = root ? graph->st->str_root
                        : PyTuple_GET_ITEM(graph->st->op_names, cfx_node_op(node->n));
    PyObject *target = root ? Py_NewRef(graph->st->str_empty) : target_to_py(graph, node->n);
    if (!target)
        return false;
    Py_XSETREF(node->op, Py_NewRef(op));
    Py_XSETREF(node->target, target);
    return true;
}

/* ---- life ---------------------------------------------------------------------------------- */

PyObject *node_wrap(PyGraph *graph, cfx_node *n)
{
    PyNode *node = cfx_node_binding(n);
    if (node)
        return Py_NewRef((PyObject *)node);
    node = alloc_quietly((PyTypeObject *)graph->st->NodeType);
    if (!node)
        return NULL;
    node->n = n;
    Py_INCREF((PyObject *)graph);
    cfx_node_set_binding(n, node);
    cfx_node_args_changed(n);
    if (!node_retarget(node)) {
        Py_DECREF((PyObject *)node);
        return NULL;
    }
    if (n != cfx_graph_root(graph->g)) {
        cfx_node_pin(n);
        node->owned = !cfx_node_is_erased(n);
        if (node->owned) {
            graph->n_owned++;
            Py_INCREF((PyObject *)node);
        }
    }
    return (PyObject *)node;
}

static int node_traverse(PyNode *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->target);
    Py_VISIT(self->args);
    Py_VISIT(self->kwargs);
    Py_VISIT(self->meta);
    Py_VISIT(self->users);
    Py_VISIT(self->dict);
    PyObject *graph = (PyObject *)node_graph(self);
    Py_VISIT(graph);
    return 0;
}

/* The reference to the graph stays: the cycle is broken by the graph's own clear. */
static int node_clear(PyNode *self)
{
    Py_CLEAR(self->target);
    Py_CLEAR(self->args);
    Py_CLEAR(self->kwargs);
    Py_CLEAR(self->meta);
    Py_CLEAR(self->users);
    Py_CLEAR(self->dict);
    return 0;
}

static void node_dealloc(PyNode *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyGraph *graph = node_graph(self);
    PyObject_GC_UnTrack(self);
    /* First, so that code which runs below finds no way to this object any more. */
    cfx_node_set_binding(self->n, NULL);
    if (self->n != cfx_graph_root(graph->g))
        cfx_node_unpin(self->n);
    if (self->weak)
        PyObject_ClearWeakRefs((PyObject *)self);
    node_clear(self);
    Py_CLEAR(self->op);
    type->tp_free(self);
    Py_DECREF((PyObject *)graph);
    Py_DECREF(type);
}

/* ---- targets and opcodes ------------------------------------------------------------------- */

bool opcode_from_py(PyObject *o, cfx_opcode *op)
{
    const char *name = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
    if (name && cfx_opcode_parse(name, op))
        return true;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_AssertionError, "op '%S' is not in _legal_ops: placeholder, get_attr, "
                     "call_function, call_module, call_method, output", o);
    return false;
}

bool is_name(const module_state *st, PyObject *o)
{
    return Py_TYPE(o) == (PyTypeObject *)st->NameType;
}

bool target_from_py(const module_state *st, cfx_opcode op, PyObject *o, cfx_target *target,
                    PyObject **keep)
{
    *keep = NULL;
    *target = (cfx_target){0};
    if (PyUnicode_Check(o) && (op != CFX_OP_CALL_FUNCTION || is_name(st, o))) {
        Py_ssize_t size;
        target->name = utf8_of(o, &size, keep);
        target->size = (size_t)size;
        return target->name != NULL;
    }
    if (op == CFX_OP_CALL_FUNCTION && PyCallable_Check(o)) {
        target->object = o;
        return true;
    }
    if (PyUnicode_Check(o) || PyCallable_Check(o))
        PyErr_Format(PyExc_ValueError, "the target %R of a %s node has type %s but a %s is "
                     "expected", o, cfx_opcode_name(op), Py_TYPE(o)->tp_name,
                     op == CFX_OP_CALL_FUNCTION ? "Callable" : "str");
    else
        PyErr_Format(PyExc_AssertionError, "Expected target to be str, got %R",
                     (PyObject *)Py_TYPE(o));
    return false;
}

static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "name", "op", "target", "args", "kwargs", "return_type", NULL};
    PyObject *in[7] = {NULL};
    cfx_opcode op;
    cfx_target target;
    PyObject *keep = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOOO:Node", names, &in[0], &in[1], &in[2],
                                     &in[3], &in[4], &in[5], &in[6]))
        return NULL;
    if (in[3] && opcode_from_py(in[2], &op))  /* what torch.fx complains about comes first */
        target_from_py(state_of(type), op, in[3], &target, &keep);
    Py_XDECREF(keep);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a Node belongs to a Graph: create it with "
                                         "Graph.create_node, Graph.call_function, ...");
    return NULL;
}

static bool is_root(const PyNode *self)
{
    return self->n == cfx_graph_root(cfx_node_graph(self->n));
}

/* Unlike create_node, an assignment may leave opcode and target at odds until both are set. */
static int set_target(PyNode *self, PyObject *value)
{
    cfx_error err = {0};
    cfx_target target;
    PyObject *keep = NULL;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "the target of a node cannot be deleted");
        return -1;
    }
    cfx_opcode op = PyUnicode_Check(value) ? CFX_OP_CALL_METHOD : CFX_OP_CALL_FUNCTION;
    if (!target_from_py(node_state(self), op, value, &target, &keep))
        return -1;
    cfx_status status = cfx_node_set_target(self->n, target, &err);
    Py_XDECREF(keep);
    if (status != CFX_OK)
        raise_cfx(&err);
    return status == CFX_OK ? 0 : -1;
}

static int set_op(PyNode *self, PyObject *value)
{
    cfx_error err = {0};
    cfx_opcode op;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "the op of a node cannot be deleted");
        return -1;
    }
    if (!opcode_from_py(value, &op))
        return -1;
    if (cfx_node_set_op(self->n, op, &err) == CFX_OK)
        return 0;
    raise_cfx(&err);
    return -1;
}

/* ---- plain attributes ---------------------------------------------------------------------- */

static PyObject *get_graph(PyNode *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)node_graph(self));
}

static PyObject *get_name(PyNode *self, void *unused)
{
    (void)unused;
    size_t size;
    const char *name = cfx_node_name(self->n, &size);
    return is_root(self) ? Py_NewRef(node_state(self)->str_empty) : str_from_utf8(name, size);
}

static int set_name(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep = NULL;
    if (!value || !PyUnicode_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "the name of a node must be a str");
        return -1;
    }
    const char *name = utf8_of(value, &size, &keep);
    cfx_status status = CFX_E_HOST;
    if (name)
        status = cfx_node_set_name(self->n, name, (size_t)size, &err);
    Py_XDECREF(keep);
    if (status != CFX_OK)
        raise_cfx(&err);
    return status == CFX_OK ? 0 : -1;
}

static PyObject *get_type(PyNode *self, void *unused)
{
    (void)unused;
    cfx_value type = cfx_node_type(self->n);
    if (type.kind == CFX_KIND_INVALID)
        Py_RETURN_NONE;
    return value_to_py(node_graph(self), type);
}

static int set_type(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    cfx_error err = {0};
    PyGraph *graph = node_graph(self);
    bool some = value && value != Py_None;
    int failed = 0;
    cfx_iter pin = hold(graph->g);
    cfx_value type = some ? value_from_py(graph, value) : cfx_value_invalid();
    if (some && type.kind == CFX_KIND_INVALID) {
        failed = -1;
    } else if (cfx_node_set_type(self->n, type, &err) != CFX_OK) {
        cfx_value_discard(graph->g, type);
        raise_cfx(&err);
        failed = -1;
    }
    cfx_iter_end(&pin);
    return failed;
}

/* A node that was traced keeps the modules it was traced in as a number: here they are. */
static PyObject *make_meta(PyNode *self)
{
    uint32_t scope = cfx_node_module_stack(self->n);
    PyObject *meta = PyDict_New();
    PyObject *stack = meta && scope ? scope_stack(node_graph(self), scope) : NULL;
    if (scope && meta &&
        (!stack || PyDict_SetItem(meta, node_state(self)->str_nn_module_stack, stack) < 0))
        Py_CLEAR(meta);
    Py_XDECREF(stack);
    return meta;
}

PyObject *node_get_meta(PyNode *self, void *unused)
{
    (void)unused;
    if (!self->meta)
        self->meta = make_meta(self);
    return Py_XNewRef(self->meta);
}

/* The metadata without what the graph keeps for it; None if nobody has asked for it yet. */
static PyObject *get_own_meta(PyNode *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->meta ? self->meta : Py_None);
}

static int set_meta(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    if (value && !PyDict_Check(value)) {
        PyErr_Format(PyExc_TypeError, "meta must be a dict, got %R", (PyObject *)Py_TYPE(value));
        return -1;
    }
    Py_XSETREF(self->meta, Py_XNewRef(value));
    return 0;
}

static PyObject *get_stack_trace(PyNode *self, void *unused)
{
    (void)unused;
    PyObject *trace = NULL;
    if (self->meta)
        trace = PyDict_GetItemWithError(self->meta, node_state(self)->str_stack_trace);
    if (!trace && PyErr_Occurred())
        return NULL;
    return Py_NewRef(trace ? trace : Py_None);
}

static int set_stack_trace(PyNode *self, PyObject *value, void *unused)
{
    PyObject *meta = node_get_meta(self, unused);
    if (!meta)
        return -1;
    int failed = PyDict_SetItem(meta, node_state(self)->str_stack_trace, value ? value : Py_None);
    Py_DECREF(meta);
    return failed;
}

static PyObject *wrap_or_root(PyNode *self, cfx_node *n)
{
    PyGraph *graph = node_graph(self);
    return node_wrap(graph, n ? n : cfx_graph_root(graph->g));
}

static PyObject *get_next(PyNode *self, void *unused)
{
    (void)unused;
    return wrap_or_root(self, cfx_node_next(self->n));
}

static PyObject *get_prev(PyNode *self, void *unused)
{
    (void)unused;
    return wrap_or_root(self, cfx_node_prev(self->n));
}

static PyObject *get_erased(PyNode *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(cfx_node_is_erased(self->n));
}

static PyObject *get_sort_key(PyNode *self, void *unused)
{
    (void)unused;
    return is_root(self) ? PyTuple_New(0)
                         : Py_BuildValue("(K)", (unsigned long long)cfx_node_order(self->n));
}

/* ---- position ------------------------------------------------------------------------------ */

static PyObject *move(PyNode *self, PyObject *other, bool after)
{
    cfx_error err = {0};
    if (!is_node(node_state(self), other))
        return PyErr_Format(PyExc_TypeError, "only a Node can be moved next to a Node, not %R",
                            (PyObject *)Py_TYPE(other));
    cfx_node *n = ((PyNode *)other)->n;
    if (cfx_node_graph(n) != cfx_node_graph(self->n)) {
        PyErr_SetString(PyExc_AssertionError, "Attempting to move a Node into a different Graph");
        return NULL;
    }
    cfx_status status = after ? cfx_node_append(self->n, n, &err)
                              : cfx_node_prepend(self->n, n, &err);
    if (status != CFX_OK)
        return raise_cfx(&err);
    Py_RETURN_NONE;
}

static PyObject *prepend(PyNode *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"x"};
    static const arg_spec spec = {"prepend", names, 1, 1, 1};
    PyObject *other;
    return take_args(&spec, args, nargs, kwnames, &other) ? move(self, other, false) : NULL;
}

static PyObject *append(PyNode *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"x"};
    static const arg_spec spec = {"append", names, 1, 1, 1};
    PyObject *other;
    return take_args(&spec, args, nargs, kwnames, &other) ? move(self, other, true) : NULL;
}

static PyObject *richcompare(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    if (op == Py_EQ || op == Py_NE)
        return PyBool_FromLong((a == b) == (op == Py_EQ));
    uint64_t left = cfx_node_order(((PyNode *)a)->n);
    uint64_t right = cfx_node_order(((PyNode *)b)->n);
    Py_RETURN_RICHCOMPARE(left, right, op);
}

/* By address, as object's: rotated, because the low bits of an address tell nothing. */
static Py_hash_t hash(PyObject *self)
{
    size_t address = (size_t)self;
    Py_hash_t value = (Py_hash_t)(address >> 4 | address << (8 * sizeof address - 4));
    return value == -1 ? -2 : value;
}

/* ---- text and glue ------------------------------------------------------------------------- */

static PyObject *node_repr(PyNode *self)
{
    PyObject *fn = NULL;
    cfx_pycode *code = node_graph(self)->code;
    if (code && !is_root(self)) {
        size_t size;
        const char *name = cfx_pycode_node_name(code, self->n, &size);
        return str_from_utf8(name, size);
    }
    if (self->dict)
        fn = PyDict_GetItemWithError(self->dict, node_state(self)->str_repr_fn);
    if (fn && fn != Py_None)
        return PyObject_CallOneArg(fn, (PyObject *)self);
    return PyErr_Occurred() ? NULL : get_name(self, NULL);
}

static PyObject *rename_node(PyNode *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"candidate"};
    static const arg_spec spec = {"_rename", names, 1, 1, 1};
    cfx_error err = {0};
    PyObject *candidate;
    if (!take_args(&spec, args, nargs, kwnames, &candidate))
        return NULL;
    PyObject *keep;
    const char *wish = c_string_of(candidate, "the name of a node", &keep);
    if (!wish)
        return NULL;
    bool same = strcmp(wish, cfx_node_name(self->n, NULL)) == 0;  /* fine for erased nodes too */
    cfx_status status = same ? CFX_OK : cfx_node_rename(self->n, wish, &err);
    Py_XDECREF(keep);
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

/* torch.fx's format_node without options, at C speed; the options are Python's (cfx/node.py). */
static PyObject *format_plain(PyNode *self, PyObject *unused)
{
    (void)unused;
    cfx_error err = {0};
    cfx_buffer out;
    if (is_root(self))
        return PyUnicode_FromString("% : [num_users=0] = root[target=](args = (), kwargs = {})");
    cfx_buffer_init(&out, NULL);
    PyObject *text = NULL;
    if (cfx_node_print(self->n, cfx_buffer_sink(&out), &err) == CFX_OK && !PyErr_Occurred())
        text = str_from_utf8(out.data, out.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&out);
    return text;
}

static PyObject *get_location(PyNode *self, void *unused)
{
    (void)unused;
    const char *file = cfx_node_file(self->n);
    if (!file)
        Py_RETURN_NONE;
    return Py_BuildValue("(sI)", file, cfx_node_line(self->n));
}

static int set_location(PyNode *self, PyObject *value, void *unused)
{
    (void)unused;
    cfx_error err = {0};
    const char *file = NULL;
    long long line = 0;
    bool some = value && value != Py_None;
    if (some && !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "a location must be a tuple (file, line)");
        return -1;
    }
    if (some && !PyArg_ParseTuple(value, "sL:_location", &file, &line))
        return -1;
    if (line < 0 || line > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%lld is not a line number", line);
        return -1;
    }
    if (cfx_node_set_location(self->n, file, (uint32_t)line, &err) == CFX_OK)
        return 0;
    raise_cfx(&err);
    return -1;
}

static PyGetSetDef getset[] = {
    {"graph", (getter)get_graph, NULL, NODE_DOC_GRAPH, NULL},
    {"name", (getter)get_name, (setter)set_name, NODE_DOC_NAME, NULL},
    {"args", (getter)node_get_args, (setter)node_set_args, NODE_DOC_ARGS, NULL},
    {"kwargs", (getter)node_get_kwargs, (setter)node_set_kwargs, NODE_DOC_KWARGS, NULL},
    {"_args", (getter)node_get_args, (setter)node_set_args, NULL, NULL},
    {"_kwargs", (getter)node_get_kwargs, (setter)node_set_kwargs, NULL, NULL},
    {"type", (getter)get_type, (setter)set_type, NODE_DOC_TYPE, NULL},
    {"users", (getter)node_get_users, NULL, NODE_DOC_USERS, NULL},
    {"all_input_nodes", (getter)node_get_inputs, NULL, NODE_DOC_INPUTS, NULL},
    {"_input_nodes", (getter)node_get_input_dict, NULL, NULL, NULL},
    {"meta", (getter)node_get_meta, (setter)set_meta, NODE_DOC_META, NULL},
    {"stack_trace", (getter)get_stack_trace, (setter)set_stack_trace, NODE_DOC_STACK_TRACE, NULL},
    {"next", (getter)get_next, NULL, NODE_DOC_NEXT, NULL},
    {"prev", (getter)get_prev, NULL, NODE_DOC_PREV, NULL},
    {"_next", (getter)get_next, NULL, NULL, NULL},
    {"_prev", (getter)get_prev, NULL, NULL, NULL},
    {"_erased", (getter)get_erased, NULL, NULL, NULL},
    {"_sort_key", (getter)get_sort_key, NULL, NULL, NULL},
    {"_location", (getter)get_location, (setter)set_location, "(file, line) or None.", NULL},
    {"_scope", (getter)node_get_scope, (setter)node_set_scope, "((key, class), ...) or None.",
     NULL},
    {"_own_meta", (getter)get_own_meta, NULL, "meta, or None if nobody has asked for it.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"prepend", FAST(prepend),
     SIGNED("prepend($self, x)", "Moves node x, of the same graph, directly before this one.")},
    {"append", FAST(append),
     SIGNED("append($self, x)", "Moves node x, of the same graph, directly after this one.")},
    {"update_arg", FAST(node_update_arg),
     SIGNED("update_arg($self, idx, arg)", "Replaces args[idx] by arg.")},
    {"insert_arg", FAST(node_insert_arg),
     SIGNED("insert_arg($self, idx, arg)",
            "Inserts arg before args[idx]; the arguments from there on move by one.")},
    {"update_kwarg", FAST(node_update_kwarg),
     SIGNED("update_kwarg($self, key, arg)", "Sets kwargs[key] to arg.")},
    {"replace_all_uses_with", FAST(node_replace_all_uses_with),
     SIGNED("replace_all_uses_with($self, replace_with, delete_user_cb=None, *, "
            "propagate_meta=False)",
            "Makes the users of this node use replace_with; returns the users that changed.\n"
            "delete_user_cb(user) says which users to change (default: all). propagate_meta\n"
            "copies meta to replace_with, which must have none then.")},
    {"replace_input_with", FAST(node_replace_input_with),
     SIGNED("replace_input_with($self, old_input, new_input)",
            "Replaces node old_input by new_input wherever it stands in args and kwargs.")},
    {"_rename", FAST(rename_node),
     SIGNED("_rename($self, candidate)", "Gives the node this name, or one like it.")},
    {"_format_plain", (PyCFunction)format_plain, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* `op` and `target` are members so that reading them is fast; writing goes to the core. */
static int node_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    module_state *st = node_state((PyNode *)self);
    if (PyUnicode_Check(name) && PyUnicode_Compare(name, st->str_target) == 0)
        return set_target((PyNode *)self, value);
    if (PyUnicode_Check(name) && PyUnicode_Compare(name, st->str_op) == 0)
        return set_op((PyNode *)self, value);
    return PyObject_GenericSetAttr(self, name, value);
}

static PyMemberDef members[] = {
    {"op", T_OBJECT_EX, offsetof(PyNode, op), READONLY, NODE_DOC_OP},
    {"target", T_OBJECT_EX, offsetof(PyNode, target), READONLY, NODE_DOC_TARGET},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)NODE_DOC},
    {Py_tp_new, node_new},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear},
    {Py_tp_repr, node_repr},
    {Py_tp_hash, hash},
    {Py_tp_setattro, node_setattro},
    {Py_tp_richcompare, richcompare},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec node_spec = {
    .name = "cfx.node.Node",
    .basicsize = sizeof(PyNode),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
