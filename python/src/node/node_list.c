/* node_list.c - graph.nodes and its iterator, which follows the list as it changes. */
#include "base/pycfx.h"

#include <structmember.h>

/* ---- the iterator -------------------------------------------------------------------------- */

typedef struct NodeIter {
    PyObject_HEAD
    PyGraph *graph;
    cfx_iter it;
} NodeIter;

PyObject *node_iter_new(PyGraph *graph, bool reverse)
{
    PyTypeObject *type = (PyTypeObject *)graph->st->NodeIterType;
    NodeIter *self = (NodeIter *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->graph = (PyGraph *)Py_NewRef((PyObject *)graph);
    cfx_iter_begin(&self->it, graph->g, reverse);
    return (PyObject *)self;
}

static PyObject *iter_next(NodeIter *self)
{
    if (!self->graph)
        return NULL;
    cfx_node *n = cfx_iter_next(&self->it);
    return n ? node_wrap(self->graph, n) : NULL;
}

static int iter_traverse(NodeIter *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->graph);
    return 0;
}

static int iter_clear(NodeIter *self)
{
    if (self->graph)
        cfx_iter_end(&self->it);
    Py_CLEAR(self->graph);
    return 0;
}

static void iter_dealloc(NodeIter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    iter_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot iter_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, iter_next},
    {Py_tp_traverse, iter_traverse},
    {Py_tp_clear, iter_clear},
    {Py_tp_dealloc, iter_dealloc},
    {0, NULL},
};

PyType_Spec node_iter_spec = {
    .name = "cfx.graph._NodeIter",
    .basicsize = sizeof(NodeIter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iter_slots,
};

/* ---- the list ------------------------------------------------------------------------------ */

typedef struct NodeList {
    PyObject_HEAD
    PyGraph *graph;
    PyObject *direction;  /* "_next" or "_prev" */
} NodeList;

static PyObject *list_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "direction", NULL};
    PyObject *graph;
    const char *direction = "_next";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s:_node_list", names, &graph, &direction))
        return NULL;
    if (!is_graph(state_of(type), graph))
        return PyErr_Format(PyExc_TypeError, "_node_list needs a Graph, got %R",
                            (PyObject *)Py_TYPE(graph));
    if (strcmp(direction, "_next") != 0 && strcmp(direction, "_prev") != 0)
        return PyErr_Format(PyExc_AssertionError, "direction must be '_next' or '_prev', got %s",
                            direction);
    NodeList *self = (NodeList *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->graph = (PyGraph *)Py_NewRef(graph);
    self->direction = PyUnicode_InternFromString(direction);
    return (PyObject *)self;
}

static bool is_reverse(const NodeList *self)
{
    return PyUnicode_CompareWithASCIIString(self->direction, "_prev") == 0;
}

static PyObject *list_iter(NodeList *self) { return node_iter_new(self->graph, is_reverse(self)); }

static PyObject *list_reversed(NodeList *self, PyObject *unused)
{
    (void)unused;
    return node_iter_new(self->graph, !is_reverse(self));
}

static Py_ssize_t list_length(NodeList *self)
{
    return (Py_ssize_t)cfx_graph_size(self->graph->g);
}

static int list_contains(NodeList *self, PyObject *o)
{
    if (!is_node(self->graph->st, o))
        return 0;
    cfx_node *n = ((PyNode *)o)->n;
    return cfx_node_graph(n) == self->graph->g && !cfx_node_is_erased(n) &&
           n != cfx_graph_root(self->graph->g);
}

static int list_traverse(NodeList *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->graph);
    return 0;
}

static int list_clear(NodeList *self)
{
    Py_CLEAR(self->graph);
    return 0;
}

static void list_dealloc(NodeList *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    list_clear(self);
    Py_XDECREF(self->direction);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef list_methods[] = {
    {"__reversed__", (PyCFunction)list_reversed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef list_members[] = {
    {"graph", T_OBJECT_EX, offsetof(NodeList, graph), READONLY, NULL},
    {"direction", T_OBJECT_EX, offsetof(NodeList, direction), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot list_slots[] = {
    {Py_tp_new, list_new},
    {Py_tp_iter, list_iter},
    {Py_tp_methods, list_methods},
    {Py_tp_members, list_members},
    {Py_tp_traverse, list_traverse},
    {Py_tp_clear, list_clear},
    {Py_tp_dealloc, list_dealloc},
    {Py_sq_length, list_length},
    {Py_sq_contains, list_contains},
    {0, NULL},
};

PyType_Spec node_list_spec = {
    .name = "cfx.graph._node_list",
    .basicsize = sizeof(NodeList),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = list_slots,
};
