/* meta.c - what new nodes inherit: the current metadata of each thread (cfx.traceback).
 *
 * A thread's state is a dict in Python's own dict of the thread:
 *     meta             the current metadata
 *     preserve         whether new nodes get it
 *     preserve_seq_nr  their sequence number is that of the metadata, not autograd's next
 *     replay_node      the node in whose place new ones are made, or None
 *     node             the node that is being run, or None: new ones get its place in the source
 * Tracers call state->node_meta for each new node; it is NULL unless some thread preserves.
 */
#include "node_methods.h"

/* The fields that a new node gets a copy of, in the order in which it gets them. */
#define FIELDS(X)                                                                                  \
    X(nn_module_stack) X(torch_fn) X(source_fn_stack) X(original_aten) X(recompute)                \
    X(ac_graph_id) X(has_backward_hook) X(from_node) X(quantization_tag)                           \
    X(_numeric_debug_handle) X(custom) X(partitioner_tag)

#define NAMES(X)                                                                                   \
    X(meta) X(preserve) X(preserve_seq_nr) X(replay_node) X(node) X(stack_trace)                   \
    X(is_gradient_acc) X(autograd_backward) X(in_grad_fn) X(grad_fn_seq_nr) X(seq_nr)              \
    X(is_functional_regenerated)

enum {
#define X(name) NAME_##name,
    FIELDS(X) NAMES(X)
#undef X
    N_NAMES,
    N_FIELDS = NAME_meta,
};

#define NAME(st, id) PyTuple_GET_ITEM((st)->meta_names, NAME_##id)

/* What stands in the stack trace of a node that only adds gradients up. */
static const char gradient_stack[] = "Gradient addition node due to multiple use of tensor around:";

static const char *const texts[] = {
#define X(name) #name,
    FIELDS(X) NAMES(X)
#undef X
};

int meta_init(PyObject *module)
{
    module_state *st = PyModule_GetState(module);
    st->meta_names = interned_names(texts, N_NAMES);
    if (!st->meta_names || PyModule_AddFunctions(module, meta_functions) < 0)
        return -1;
    st->fill_meta = PyObject_GetAttrString(module, "_fill_meta");
    PyObject *fields = PyTuple_GetSlice(st->meta_names, 0, N_FIELDS);
    PyObject *list = fields ? PySequence_List(fields) : NULL;
    Py_XDECREF(fields);
    int failed = list ? PyModule_AddObjectRef(module, "_COPY_META_FIELDS", list) : -1;
    Py_XDECREF(list);
    return failed < 0 || !st->fill_meta ? -1 : 0;
}

/* ---- the state of a thread ----------------------------------------------------------------- */

/* Borrowed; NULL with an exception. The key is an object that nobody else has. */
static PyObject *thread_state(module_state *st)
{
    PyObject *thread = PyThreadState_GetDict();
    PyObject *state = thread ? PyDict_GetItemWithError(thread, st->fill_meta) : NULL;
    if (state || PyErr_Occurred())
        return state;
    state = Py_BuildValue("{O{}OOOOOOOO}", NAME(st, meta), NAME(st, preserve), Py_False,
                          NAME(st, preserve_seq_nr), Py_False, NAME(st, replay_node), Py_None,
                          NAME(st, node), Py_None);
    if (state && (!thread || PyDict_SetItem(thread, st->fill_meta, state) < 0))
        Py_CLEAR(state);
    Py_XDECREF(state);  /* the thread keeps it */
    return state;
}

/* An entry of the state, borrowed; a KeyError if somebody has removed it. */
static PyObject *entry(PyObject *state, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(state, name);
    if (!value && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, name);
    return value;
}

/* The current metadata if this thread preserves it: a new reference; or NULL, perhaps with an
 * exception. */
static PyObject *preserved_meta(module_state *st, PyObject *state)
{
    PyObject *flag = state ? entry(state, NAME(st, preserve)) : NULL;
    if (!flag || PyObject_IsTrue(flag) <= 0)
        return NULL;
    return Py_XNewRef(entry(state, NAME(st, meta)));
}

/* The metadata of `node` with the node itself as its "from_node"; a new reference. */
static PyObject *meta_from(module_state *st, PyNode *node, PyObject *mine, PyObject *pass_name)
{
    PyObject *source = PyObject_CallFunctionObjArgs(st->node_source, (PyObject *)node, pass_name,
                                                    NULL);
    PyObject *list = source ? Py_BuildValue("[N]", source) : NULL;
    PyObject *meta = list ? PyDict_Copy(mine) : NULL;
    if (meta && PyDict_SetItem(meta, NAME(st, from_node), list) < 0)
        Py_CLEAR(meta);
    Py_XDECREF(list);
    return meta;
}

/* A node without metadata leaves what is current as it is. */
static int set_current(module_state *st, PyObject *state, PyNode *node, PyObject *pass_name)
{
    PyObject *mine = node_get_meta(node, NULL);
    int failed = mine ? PyDict_SetItem(state, NAME(st, node), (PyObject *)node) : -1;
    if (!failed && PyDict_GET_SIZE(mine) > 0) {
        PyObject *meta = meta_from(st, node, mine, pass_name);
        failed = meta ? PyDict_SetItem(state, NAME(st, meta), meta) : -1;
        Py_XDECREF(meta);
    }
    Py_XDECREF(mine);
    return failed;
}

PyObject *meta_enter(module_state *st, PyNode *node, PyObject *pass_name)
{
    PyObject *state = Py_XNewRef(thread_state(st));
    PyObject *meta = preserved_meta(st, state);
    PyObject *before = meta ? entry(state, NAME(st, node)) : NULL;
    PyObject *saved = before ? PyTuple_Pack(2, meta, before) : NULL;
    if (saved && set_current(st, state, node, pass_name) < 0) {
        meta_leave(st, saved);
        Py_CLEAR(saved);
    }
    Py_XDECREF(meta);
    Py_XDECREF(state);
    if (!saved && !PyErr_Occurred())
        return Py_NewRef(Py_None);
    return saved;
}

void meta_leave(module_state *st, PyObject *saved)
{
    PyObject *type, *value, *traceback;
    if (saved == Py_None)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *state = thread_state(st);
    if (!state || PyDict_SetItem(state, NAME(st, meta), PyTuple_GET_ITEM(saved, 0)) < 0 ||
        PyDict_SetItem(state, NAME(st, node), PyTuple_GET_ITEM(saved, 1)) < 0)
        PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
}

/* ---- what a new node gets ------------------------------------------------------------------ */

/* copy.copy, without a detour for what metadata mostly is. */
static PyObject *shallow_copy(PyObject *o)
{
    if (PyDict_CheckExact(o))
        return PyDict_Copy(o);
    if (PyList_CheckExact(o))
        return PyList_GetSlice(o, 0, PyList_GET_SIZE(o));
    if (PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || o == Py_None)
        return Py_NewRef(o);
    PyObject *module = PyImport_ImportModule("copy");
    PyObject *copy = module ? PyObject_CallMethod(module, "copy", "(O)", o) : NULL;
    Py_XDECREF(module);
    return copy;
}

static int copy_fields(module_state *st, PyObject *from, PyObject *to)
{
    for (int i = 0; i < N_FIELDS && PyDict_GET_SIZE(from) > 0; i++) {
        PyObject *name = PyTuple_GET_ITEM(st->meta_names, i);
        PyObject *value = PyDict_GetItemWithError(from, name);
        if (!value && PyErr_Occurred())
            return -1;
        PyObject *copy = value ? shallow_copy(value) : NULL;
        int failed = value && (!copy || PyDict_SetItem(to, name, copy) < 0);
        Py_XDECREF(copy);
        if (failed)
            return -1;
    }
    return 0;
}

/* An entry that counts as true, borrowed; or NULL, perhaps with an exception. */
static PyObject *true_entry(PyObject *dict, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(dict, name);
    return value && PyObject_IsTrue(value) > 0 ? value : NULL;
}

static int copy_stack_trace(module_state *st, PyObject *from, PyObject *to)
{
    PyObject *trace = true_entry(from, NAME(st, stack_trace));
    if (!trace)
        return PyErr_Occurred() ? -1 : 0;
    if (PyDict_SetItem(to, NAME(st, stack_trace), trace) < 0)
        return -1;
    const char *text = PyUnicode_Check(trace) ? PyUnicode_AsUTF8(trace) : "";
    if (!text || !strstr(text, gradient_stack))
        return text ? 0 : -1;
    return PyDict_SetItem(to, NAME(st, is_gradient_acc), Py_True) < 0
               ? -1
               : PyDict_SetItem(to, NAME(st, autograd_backward), Py_True);
}

/* What autograd's next node will be called, less one; None without torch. */
static PyObject *autograd_number(module_state *st)
{
    if (!st->sequence_nr) {
        PyObject *torch = call_glue(st, "find_torch", Py_None);
        PyObject *autograd = NULL;
        if (!torch || torch == Py_None)
            return torch;
        autograd = PyObject_GetAttrString(torch, "autograd");
        if (autograd)
            st->sequence_nr = PyObject_GetAttrString(autograd, "_get_sequence_nr");
        Py_XDECREF(autograd);
        Py_DECREF(torch);
    }
    PyObject *next = st->sequence_nr ? PyObject_CallNoArgs(st->sequence_nr) : NULL;
    long long number = next ? PyLong_AsLongLong(next) : -1;
    Py_XDECREF(next);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(number - 1);
}

/* A new reference, None for none. */
static PyObject *sequence_number(module_state *st, PyObject *state, PyObject *meta)
{
    PyObject *value = NULL;
    if (true_entry(meta, NAME(st, in_grad_fn))) {
        PyObject *numbers = entry(meta, NAME(st, grad_fn_seq_nr));
        return numbers ? PySequence_GetItem(numbers, -1) : NULL;
    }
    PyObject *own = PyErr_Occurred() ? NULL : entry(state, NAME(st, preserve_seq_nr));
    if (own == Py_False)
        return autograd_number(st);
    if (own)
        value = PyDict_GetItemWithError(meta, NAME(st, seq_nr));
    return PyErr_Occurred() ? NULL : Py_NewRef(value ? value : Py_None);
}

static int set_sequence_number(module_state *st, PyObject *state, PyObject *from, PyObject *to)
{
    PyObject *number = sequence_number(st, state, from);
    int failed = number ? 0 : -1;
    if (number && number != Py_None)
        failed = PyDict_SetItem(to, NAME(st, seq_nr), number);
    Py_XDECREF(number);
    return failed;
}

/* A node made in the place of another says where that one comes from. */
static int copy_replayed(module_state *st, PyObject *replayed, PyObject *to)
{
    PyObject *const fields[] = {NAME(st, seq_nr), NAME(st, custom), NAME(st, stack_trace)};
    PyObject *from = PyObject_GetAttr(replayed, NAME(st, meta));
    int failed = from ? PyDict_SetItem(to, NAME(st, is_functional_regenerated), Py_True) : -1;
    for (int i = 0; !failed && i < 3; i++) {
        PyObject *value = PyObject_GetItem(from, fields[i]);
        if (value)
            failed = PyDict_SetItem(to, fields[i], value);
        else if (PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();  /* it has no such field */
        else
            failed = -1;
        Py_XDECREF(value);
    }
    Py_XDECREF(from);
    return failed;
}

static int fill(module_state *st, PyObject *state, PyObject *from, PyObject *to)
{
    if (copy_stack_trace(st, from, to) < 0 || copy_fields(st, from, to) < 0 ||
        set_sequence_number(st, state, from, to) < 0)
        return -1;
    PyObject *replayed = entry(state, NAME(st, replay_node));
    if (!replayed || (replayed != Py_None && copy_replayed(st, replayed, to) < 0))
        return -1;
    if (true_entry(from, NAME(st, autograd_backward)))
        return PyDict_SetItem(to, NAME(st, autograd_backward), Py_True);
    return PyErr_Occurred() ? -1 : 0;
}

/* The scope of a node in another graph, there and all those it is in; 0 for none. */
static uint32_t copy_scope(cfx_graph *to, const cfx_graph *from, uint32_t scope, cfx_error *err)
{
    if (!scope)
        return 0;
    uint32_t parent = copy_scope(to, from, cfx_graph_stack_outer(from, scope), err);
    return cfx_graph_intern_stack(to, parent, cfx_graph_stack_path(from, scope),
                                  cfx_graph_stack_type(from, scope),
                                  cfx_graph_stack_object(from, scope), err);
}

/* A node comes from where the node that is being run came from. */
static int copy_place(module_state *st, PyObject *state, cfx_node *to)
{
    cfx_error err = {0};
    PyObject *node = entry(state, NAME(st, node));
    if (!node || !is_node(st, node))
        return node ? 0 : -1;
    const cfx_node *from = ((PyNode *)node)->n;
    cfx_node_set_location(to, cfx_node_file(from), cfx_node_line(from), &err);
    cfx_node_set_module_stack(to, copy_scope(cfx_node_graph(to), cfx_node_graph(from),
                                             cfx_node_module_stack(from), &err));
    if (err.status != CFX_OK)
        raise_cfx(&err);
    return err.status == CFX_OK ? 0 : -1;
}

static bool need_node(module_state *st, PyObject *o)
{
    if (is_node(st, o))
        return true;
    PyErr_Format(PyExc_TypeError, "expected a Node, got %R", (PyObject *)Py_TYPE(o));
    return false;
}

/* ---- functions ----------------------------------------------------------------------------- */

static PyObject *py_fill_meta(PyObject *module, PyObject *node)
{
    module_state *st = PyModule_GetState(module);
    if (!need_node(st, node))
        return NULL;
    PyObject *state = Py_XNewRef(thread_state(st));
    PyObject *from = preserved_meta(st, state);
    PyNode *new_ = (PyNode *)node;
    if (from && !new_->meta)  /* as in torch.fx, the tracer's own scope is not part of it */
        new_->meta = PyDict_New();
    PyObject *to = from ? Py_XNewRef(new_->meta) : NULL;
    if (to && copy_place(st, state, new_->n) == 0)
        fill(st, state, from, to);
    Py_XDECREF(to);
    Py_XDECREF(from);
    Py_XDECREF(state);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_enter_meta(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *node;
    PyObject *pass_name;
    if (!PyArg_ParseTuple(args, "OO:_enter_meta", &node, &pass_name) || !need_node(st, node))
        return NULL;
    return meta_enter(st, (PyNode *)node, pass_name);
}

static PyObject *py_leave_meta(PyObject *module, PyObject *saved)
{
    if (saved != Py_None && (!PyTuple_Check(saved) || PyTuple_GET_SIZE(saved) != 2)) {
        PyErr_SetString(PyExc_TypeError, "_leave_meta() needs what _enter_meta() returned");
        return NULL;
    }
    meta_leave(PyModule_GetState(module), saved);
    Py_RETURN_NONE;
}

static PyObject *py_thread_meta(PyObject *module, PyObject *unused)
{
    (void)unused;
    return Py_XNewRef(thread_state(PyModule_GetState(module)));
}

static PyObject *py_count_preserving(PyObject *module, PyObject *change)
{
    module_state *st = PyModule_GetState(module);
    st->preserving += PyLong_AsLong(change);
    Py_XSETREF(st->node_meta, st->preserving > 0 ? Py_NewRef(st->fill_meta) : NULL);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef meta_functions[] = {
    {"_fill_meta", py_fill_meta, METH_O,
     SIGNED("_fill_meta($module, node, /)", "Gives a new node what the current metadata has.")},
    {"_enter_meta", py_enter_meta, METH_VARARGS,
     SIGNED("_enter_meta($module, node, pass_name, /)",
            "Makes the metadata of a node current; gives what _leave_meta is to put back.")},
    {"_leave_meta", py_leave_meta, METH_O, SIGNED("_leave_meta($module, saved, /)", "Ends that.")},
    {"_thread_meta", py_thread_meta, METH_NOARGS,
     SIGNED("_thread_meta($module)", "The state of this thread, a dict.")},
    {"_count_preserving", py_count_preserving, METH_O,
     SIGNED("_count_preserving($module, change, /)",
            "Counts the contexts that preserve metadata, of all threads.")},
    {NULL, NULL, 0, NULL},
};
