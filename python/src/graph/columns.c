/* columns.c - the nodes of a graph attribute by attribute, which pickle writes faster than node by
 * node; and a graph from that.
 *
 * Nodes inside arguments are references (objects of a class of ints) to their numbers, so that no
 * recursion follows the graph's edges. What few nodes have stands in dicts by their number.
 */
#include "graph_methods.h"

/* The columns in their order: a list with an entry for each node, or a dict. */
enum { OPS, NAMES, TARGETS, ARGS, KWARGS, TYPES, LOCATIONS, SCOPES, ORDER, N_COLUMNS };
static const int last_list = ARGS;

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct writing {
    module_state *st;
    PyObject *refs;      /* {node: its reference} */
    PyObject *portable;  /* what is pickled for an object */
    PyObject *columns[N_COLUMNS];
} writing;

/* Values that stand for themselves need not be asked about. */
static bool is_plain(PyObject *o)
{
    return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
           PyUnicode_CheckExact(o);
}

/* A node of another graph is left to pickle. */
static PyObject *leaf_out(void *ctx, PyObject *leaf)
{
    const writing *w = ctx;
    if (is_plain(leaf))
        return Py_NewRef(leaf);
    if (!is_node(w->st, leaf))
        return PyObject_CallOneArg(w->portable, leaf);
    PyObject *ref = PyDict_GetItemWithError(w->refs, leaf);
    return ref || !PyErr_Occurred() ? Py_NewRef(ref ? ref : leaf) : NULL;
}

static PyObject *number_nodes(PyObject *nodes, PyObject *ref_class)
{
    PyObject *refs = PyDict_New();
    for (Py_ssize_t i = 0; refs && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *ref = PyObject_CallFunction(ref_class, "n", i);
        if (!ref || PyDict_SetItem(refs, PyList_GET_ITEM(nodes, i), ref) < 0)
            Py_CLEAR(refs);
        Py_XDECREF(ref);
    }
    return refs;
}

/* Adds what a node has to a column: a reference that is given up. */
static int add(writing *w, int column, Py_ssize_t i, PyObject *value)
{
    int failed = value ? 0 : -1;
    if (value && column <= last_list) {
        failed = PyList_Append(w->columns[column], value);
    } else if (value && value != Py_None) {
        PyObject *number = PyLong_FromSsize_t(i);
        failed = number ? PyDict_SetItem(w->columns[column], number, value) : -1;
        Py_XDECREF(number);
    }
    Py_XDECREF(value);
    return failed;
}

static PyObject *mapped(writing *w, PyObject *node, const char *attribute)
{
    PyObject *value = PyObject_GetAttrString(node, attribute);
    if (value)
        Py_SETREF(value, map_all(w->st, value, leaf_out, w));
    return value;
}

/* The arguments by name as a plain dict, None if there are none. */
static PyObject *kwargs_of(writing *w, PyObject *node)
{
    PyObject *kwargs = mapped(w, node, "kwargs");
    if (!kwargs)
        return NULL;
    PyObject *plain = PyDict_GET_SIZE(kwargs) ? PyDict_New() : Py_NewRef(Py_None);
    if (plain && plain != Py_None && PyDict_Update(plain, kwargs) < 0)
        Py_CLEAR(plain);
    Py_DECREF(kwargs);
    return plain;
}

static bool add_node(writing *w, Py_ssize_t i, PyObject *node)
{
    PyObject *target = ((PyNode *)node)->target;
    return add(w, OPS, i, PyObject_GetAttr(node, w->st->str_op)) == 0 &&
           add(w, NAMES, i, PyObject_GetAttrString(node, "name")) == 0 &&
           add(w, TARGETS, i, leaf_out(w, target)) == 0 &&
           add(w, ARGS, i, mapped(w, node, "args")) == 0 &&
           add(w, KWARGS, i, kwargs_of(w, node)) == 0 &&
           add(w, TYPES, i, PyObject_GetAttrString(node, "type")) == 0 &&
           add(w, LOCATIONS, i, PyObject_GetAttrString(node, "_location")) == 0 &&
           add(w, SCOPES, i, PyObject_GetAttrString(node, "_scope")) == 0;
}

static bool add_nodes(writing *w, PyObject *nodes)
{
    for (int c = 0; c < ORDER; c++)
        if (!(w->columns[c] = c <= last_list ? PyList_New(0) : PyDict_New()))
            return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); i++)
        if (!add_node(w, i, PyList_GET_ITEM(nodes, i)))
            return false;
    w->columns[ORDER] = order_of_uses(nodes);  /* `users` has its own */
    return w->columns[ORDER] != NULL;
}

PyObject *graph_columns(PyGraph *self, PyObject *args)
{
    writing w = {.st = self->st};
    PyObject *ref_class;
    if (!PyArg_ParseTuple(args, "OO:_columns", &ref_class, &w.portable))
        return NULL;
    PyObject *view = PyObject_GetAttrString((PyObject *)self, "nodes");
    PyObject *nodes = view ? PySequence_List(view) : NULL;
    PyObject *result = NULL;
    w.refs = nodes ? number_nodes(nodes, ref_class) : NULL;
    if (w.refs && add_nodes(&w, nodes))
        result = PyTuple_New(N_COLUMNS);
    for (int c = 0; c < N_COLUMNS; c++) {
        if (result)
            PyTuple_SET_ITEM(result, c, w.columns[c]);
        else
            Py_XDECREF(w.columns[c]);
    }
    Py_XDECREF(w.refs);
    Py_XDECREF(nodes);
    Py_XDECREF(view);
    return result;
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct reading {
    PyGraph *graph;
    PyObject *ref_class;
    PyObject *nodes;
    PyObject *columns;
} reading;

static PyObject *leaf_in(void *ctx, PyObject *leaf)
{
    const reading *r = ctx;
    if ((PyObject *)Py_TYPE(leaf) != r->ref_class)
        return Py_NewRef(leaf);
    Py_ssize_t i = PyLong_AsSsize_t(leaf);
    return i == -1 && PyErr_Occurred() ? NULL : PySequence_GetItem(r->nodes, i);
}

/* What a column has for a node: borrowed, NULL if nothing or with an exception. */
static PyObject *entry(const reading *r, int column, Py_ssize_t i)
{
    PyObject *values = PyTuple_GET_ITEM(r->columns, column);
    if (column <= last_list)
        return PyList_GetItem(values, i);
    PyObject *number = PyLong_FromSsize_t(i);
    PyObject *value = number ? PyDict_GetItemWithError(values, number) : NULL;
    Py_XDECREF(number);
    return value;
}

/* The node without its arguments: a new reference. */
static PyObject *make_node(const reading *r, Py_ssize_t i)
{
    node_parts parts = {0};
    PyObject *op = entry(r, OPS, i);
    parts.name = entry(r, NAMES, i);
    parts.target = entry(r, TARGETS, i);
    parts.type = entry(r, TYPES, i);
    if (PyErr_Occurred() || !opcode_from_py(op, &parts.op))
        return NULL;
    PyObject *node = graph_create_by_method(r->graph, &parts);
    PyObject *name = node ? PyObject_GetAttrString(node, "name") : NULL;
    int same = name ? PyObject_RichCompareBool(name, parts.name, Py_EQ) : -1;
    Py_XDECREF(name);
    if (same == 0 && PyObject_SetAttrString(node, "name", parts.name) < 0)
        same = -1;
    if (same < 0)
        Py_CLEAR(node);
    return node;
}

/* node.<attribute> = <what the column has>, with nodes for references; -1 with an exception. */
static int restore(reading *r, int column, Py_ssize_t i, const char *attribute)
{
    PyObject *value = entry(r, column, i);
    if (!value)
        return PyErr_Occurred() ? -1 : 0;
    if (column == ARGS && PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 0)
        return 0;
    PyObject *node = PyList_GetItem(r->nodes, i);
    value = node ? map_all(r->graph->st, value, leaf_in, r) : NULL;
    int failed = value ? PyObject_SetAttrString(node, attribute, value) : -1;
    Py_XDECREF(value);
    return failed;
}

static int restore_arguments(reading *r, Py_ssize_t i)
{
    return restore(r, ARGS, i, "args") < 0 ? -1 : restore(r, KWARGS, i, "kwargs");
}

static int restore_in_order(reading *r)
{
    PyObject *order = PyTuple_GET_ITEM(r->columns, ORDER);
    Py_ssize_t n = order == Py_None ? PyList_GET_SIZE(r->nodes) : PyList_GET_SIZE(order);
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *number = order == Py_None ? NULL : PyList_GetItem(order, k);
        Py_ssize_t i = number ? PyLong_AsSsize_t(number) : k;
        if (PyErr_Occurred() || restore_arguments(r, i) < 0)
            return -1;
    }
    return 0;
}

static int fill(reading *r)
{
    Py_ssize_t n = PyList_GET_SIZE(PyTuple_GET_ITEM(r->columns, OPS));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *node = make_node(r, i);
        int failed = node ? PyList_Append(r->nodes, node) : -1;
        Py_XDECREF(node);
        if (failed || restore(r, LOCATIONS, i, "_location") < 0 ||
            restore(r, SCOPES, i, "_scope") < 0)
            return -1;
    }
    return restore_in_order(r);
}

/* Pickles are made by anyone. */
static bool are_columns(PyObject *columns)
{
    bool good = PyTuple_GET_SIZE(columns) == N_COLUMNS;
    for (int c = 0; good && c < ORDER; c++) {
        PyObject *column = PyTuple_GET_ITEM(columns, c);
        good = c <= last_list ? PyList_Check(column) : PyDict_Check(column);
    }
    PyObject *order = good ? PyTuple_GET_ITEM(columns, ORDER) : NULL;
    good = good && (order == Py_None || PyList_Check(order));
    if (!good)
        PyErr_SetString(PyExc_ValueError, "these are not the columns of a pickled graph");
    return good;
}

PyObject *graph_fill(PyGraph *self, PyObject *args)
{
    reading r = {.graph = self};
    if (!PyArg_ParseTuple(args, "O!O:_fill", &PyTuple_Type, &r.columns, &r.ref_class) ||
        !are_columns(r.columns))
        return NULL;
    r.nodes = PyList_New(0);
    int failed = r.nodes ? fill(&r) : -1;
    Py_XDECREF(r.nodes);
    return failed ? NULL : Py_NewRef(Py_None);
}
