/* graph_items.c - Graph._annotate_getitem: the types of items, from those of their sequences.
 *
 *     %x : Tuple[int, str] = ...                %x : Tuple[int, str] = ...
 *     %item = operator.getitem(%x, 1)           %item : str = operator.getitem(%x, 1)
 *
 * Known are list[T], tuple[A, B], tuple[T, ...] and named tuples with annotations. Where the index
 * is no number, or the annotation says nothing of the items, the node keeps its type.
 */
#include "graph_methods.h"

/* One getitem node. References are borrowed from whoever made it. */
typedef struct item_job {
    PyObject *node;
    PyObject *type;   /* of the sequence */
    PyObject *index;
} item_job;

/* getattr(o, name, None) */
static PyObject *attribute(PyObject *o, const char *name)
{
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *found = text ? attr_or_none(o, text) : NULL;
    Py_XDECREF(text);
    return found;
}

static PyObject *out_of_range(const item_job *job, PyObject *exception, Py_ssize_t n)
{
    return PyErr_Format(exception, "Index %S out of range for parameterized_types (len=%zd): node "
                        "%%%S indexes %R", job->index, n, job->node, job->type);
}

/* items[index]: a new reference; None where the index is no number. */
static PyObject *at_index(const item_job *job, PyObject *items, PyObject *exception)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (!PyLong_Check(job->index))
        return Py_NewRef(Py_None);
    Py_ssize_t i = PyLong_AsSsize_t(job->index);
    if (i == -1 && PyErr_Occurred())
        PyErr_Clear();  /* too large for any tuple: reported as such */
    else if (i >= -n && i < n)
        return Py_NewRef(PyTuple_GET_ITEM(items, i < 0 ? i + n : i));
    return out_of_range(job, exception, n);
}

/* An item of a class that is a named tuple; None of any other class. */
static PyObject *of_named_tuple(const item_job *job)
{
    PyObject *fields = attribute(job->type, "_fields");
    PyObject *types = fields ? attribute(job->type, "__annotations__") : NULL;
    PyObject *found = NULL;
    if (types && PyTuple_Check(fields) && PyDict_Check(types)) {
        PyObject *field = at_index(job, fields, PyExc_IndexError);
        PyObject *type = field ? PyDict_GetItemWithError(types, field) : NULL;
        found = field && !PyErr_Occurred() ? Py_NewRef(type ? type : Py_None) : NULL;
        Py_XDECREF(field);
    } else if (types) {
        found = Py_NewRef(Py_None);
    }
    Py_XDECREF(types);
    Py_XDECREF(fields);
    return found;
}

/* An item of `origin[args]`. */
static PyObject *of_generic(const item_job *job, PyObject *origin, PyObject *args)
{
    const Py_ssize_t n = PyTuple_Check(args) ? PyTuple_GET_SIZE(args) : -1;
    const bool list = origin == (PyObject *)&PyList_Type && n == 1;
    const bool alike = origin == (PyObject *)&PyTuple_Type && n == 2 &&
                       PyTuple_GET_ITEM(args, 1) == Py_Ellipsis;
    if (list || alike)
        return Py_NewRef(PyTuple_GET_ITEM(args, 0));
    if (origin == (PyObject *)&PyTuple_Type && n >= 0)
        return at_index(job, args, PyExc_AssertionError);
    return Py_NewRef(Py_None);
}

/* What the annotation says of an item: a new reference, None for nothing. */
static PyObject *item_type(const item_job *job)
{
    PyObject *origin = attribute(job->type, "__origin__");
    PyObject *found = NULL;
    if (origin && origin != Py_None) {
        PyObject *args = attribute(job->type, "__args__");
        found = args ? of_generic(job, origin, args) : NULL;
        Py_XDECREF(args);
    } else if (origin) {
        found = PyType_Check(job->type) && PyType_IsSubtype((PyTypeObject *)job->type,
                                                            &PyTuple_Type)
                    ? of_named_tuple(job) : Py_NewRef(Py_None);
    }
    Py_XDECREF(origin);
    return found;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static int annotate_node(module_state *st, PyObject *node)
{
    PyObject *args = PyObject_GetAttrString(node, "args");
    PyObject *sequence = args && PyTuple_GET_SIZE(args) == 2 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *type = NULL;
    PyObject *found = NULL;
    if (sequence && is_node(st, sequence) && (type = PyObject_GetAttrString(sequence, "type"))) {
        const item_job job = {node, type, PyTuple_GET_ITEM(args, 1)};
        found = item_type(&job);
    }
    if (found && found != Py_None)
        PyObject_SetAttrString(node, "type", found);
    Py_XDECREF(found);
    Py_XDECREF(type);
    Py_XDECREF(args);
    return PyErr_Occurred() ? -1 : 0;
}

static int annotate_graph(PyGraph *self, PyObject *getitem);

static int annotate_regions(module_state *st, const cfx_node *n, PyObject *getitem)
{
    size_t size;
    int failed = 0;
    const cfx_value *args = cfx_value_items(cfx_node_args(n), &size);
    for (size_t i = 0; !failed && i < size; i++) {
        cfx_graph *region = cfx_value_graph(args[i]);
        PyObject *graph = region ? graph_wrap(st, region) : NULL;
        if (region)
            failed = graph ? annotate_graph((PyGraph *)graph, getitem) : -1;
        Py_XDECREF(graph);
    }
    return failed;
}

static int annotate_graph(PyGraph *self, PyObject *getitem)
{
    int failed = 0;
    cfx_iter it;
    cfx_iter_begin(&it, self->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&it)) != NULL;) {
        if (cfx_node_op(n) != CFX_OP_CALL_FUNCTION)
            continue;
        failed = annotate_regions(self->st, n, getitem);
        if (failed || cfx_node_target_object(n) != getitem)
            continue;
        PyObject *node = node_wrap(self, n);
        failed = node ? annotate_node(self->st, node) : -1;
        Py_XDECREF(node);
    }
    cfx_iter_end(&it);
    return failed;
}

PyObject *graph_annotate_getitem(PyGraph *self, PyObject *unused)
{
    (void)unused;
    PyObject *operator = PyImport_ImportModule("operator");
    PyObject *getitem = operator ? PyObject_GetAttrString(operator, "getitem") : NULL;
    int failed = getitem ? annotate_graph(self, getitem) : -1;
    Py_XDECREF(getitem);
    Py_XDECREF(operator);
    return failed ? NULL : Py_NewRef(Py_None);
}
