/* graph_parts.c - Graph: nodes that can become one call, and walks from node to node. */
#include "graph/graph_methods.h"

#include <cfx/embed/partition.h>

/* ---- proposing parts ----------------------------------------------------------------------- */

static int ask_yes(void *callable, cfx_node *n)
{
    if (PyErr_Occurred())
        return -1;
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? PyObject_CallOneArg(callable, node) : NULL;
    int supported = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return supported;
}

static int add_to_part(PyGraph *self, PyObject *part, cfx_node *n, size_t place)
{
    PyObject *node = node_wrap(self, n);
    PyObject *value = node ? PyLong_FromSize_t(place) : NULL;
    int failed = value ? PyDict_SetItem(part, node, value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(node);
    return failed;
}

static PyObject *parts_to_py(PyGraph *self, const uint32_t *parts, size_t n)
{
    size_t i = 0;
    const size_t size = cfx_graph_size(self->g);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t k = 0; list && k < n; k++) {
        PyObject *part = PyDict_New();
        if (part)
            PyList_SET_ITEM(list, (Py_ssize_t)k, part);
        else
            Py_CLEAR(list);
    }
    for (cfx_node *node = cfx_graph_first(self->g); list && node; node = cfx_node_next(node), i++)
        if (parts[i] != CFX_NO_PART &&
            add_to_part(self, PyList_GET_ITEM(list, parts[i]), node, size - 1 - i) < 0)
            Py_CLEAR(list);
    return list;
}

PyObject *graph_partition(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *answer = NULL;
    cfx_partition_options options = {.supported = ask_yes};
    size_t n;
    int connected;
    int in_order = 0;
    if (!PyArg_ParseTuple(args, "Op|p:_partition", (PyObject **)&options.ctx, &connected,
                          &in_order))
        return NULL;
    options.connected = connected;
    options.in_order = in_order;
    uint32_t *parts = PyMem_Malloc((cfx_graph_size(self->g) + 1) * sizeof *parts);
    if (!parts)
        return PyErr_NoMemory();
    if (cfx_graph_partition(self->g, &options, parts, &n, &err) != CFX_OK || PyErr_Occurred())
        raise_cfx(&err);
    else
        answer = parts_to_py(self, parts, n);
    PyMem_Free(parts);
    return answer;
}

/* The nodes of a list, in their order, that are transparent and at an edge of it. */
PyObject *graph_edges(PyGraph *self, PyObject *args)
{
    PyObject *list, *callable, *edges = NULL;
    if (!PyArg_ParseTuple(args, "O!O:_edges", &PyList_Type, &list, &callable))
        return NULL;
    const Py_ssize_t n = PyList_GET_SIZE(list);
    cfx_iter here = hold(self->g);
    cfx_node **nodes = read_nodes(self, list);
    bool *flags = nodes ? PyMem_Malloc((size_t)n + 1) : NULL;
    bool good = flags != NULL;
    if (nodes && !flags)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < n; i++) {
        int answer = ask_yes(callable, nodes[i]);
        flags[i] = answer > 0;
        good = answer >= 0;
    }
    if (good) {
        size_t kept = 0;
        cfx_nodes_find_boundary(nodes, (size_t)n, flags);
        for (size_t i = 0; i < (size_t)n; i++)
            if (flags[i])
                nodes[kept++] = nodes[i];
        edges = list_nodes(self, nodes, kept);
    }
    PyMem_Free(nodes);
    PyMem_Free(flags);
    cfx_iter_end(&here);
    return edges;
}

/* ---- fusing -------------------------------------------------------------------------------- */

static int read_part(PyGraph *self, PyObject *list, uint32_t part, PyObject *numbers)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *node = PyList_GET_ITEM(list, i);
        if (!need_node(self, node))
            return -1;
        int twice = PyDict_Contains(numbers, node);
        PyObject *number = twice == 0 ? PyLong_FromUnsignedLong(part) : NULL;
        int failed = number ? PyDict_SetItem(numbers, node, number) : -1;
        Py_XDECREF(number);
        if (twice > 0)
            PyErr_Format(PyExc_AssertionError, "%S is in several partitions, or twice in one",
                         node);
        if (failed)
            return -1;
    }
    return 0;
}

static int fill_parts(PyGraph *self, PyObject *numbers, uint32_t *parts)
{
    size_t i = 0, found = 0;
    for (cfx_node *n = cfx_graph_first(self->g); n; n = cfx_node_next(n)) {
        PyObject *node = node_wrap(self, n);
        PyObject *number = node ? PyDict_GetItemWithError(numbers, node) : NULL;
        parts[i++] = number ? (uint32_t)PyLong_AsUnsignedLong(number) : CFX_NO_PART;
        found += number != NULL;
        Py_XDECREF(node);
        if (!node)
            return -1;
    }
    if (found == (size_t)PyDict_GET_SIZE(numbers))
        return 0;
    PyErr_SetString(PyExc_AssertionError, "a node of a partition is not in this graph, or has been "
                    "removed from it");
    return -1;
}

PyObject *graph_check_parts(PyGraph *self, PyObject *lists)
{
    cfx_error err = {0};
    if (!PyList_Check(lists))
        return PyErr_Format(PyExc_TypeError, "expected a list of lists of nodes, got %R",
                            (PyObject *)Py_TYPE(lists));
    PyObject *numbers = PyDict_New();
    uint32_t *parts = PyMem_Malloc((cfx_graph_size(self->g) + 1) * sizeof *parts);
    int failed = numbers && parts ? 0 : -1;
    if (!parts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(lists); i++) {
        PyObject *list = PySequence_List(PyList_GET_ITEM(lists, i));
        failed = list ? read_part(self, list, (uint32_t)i, numbers) : -1;
        Py_XDECREF(list);
    }
    if (!failed)
        failed = fill_parts(self, numbers, parts);
    if (!failed && cfx_graph_check_parts(self->g, parts, (size_t)PyList_GET_SIZE(lists), &err) !=
                       CFX_OK) {
        raise_cfx(&err);
        failed = -1;
    }
    PyMem_Free(parts);
    Py_XDECREF(numbers);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* `call` lacks the arrays and `getitem`. */
static PyObject *insert_fused(PyGraph *self, cfx_fused *call, PyObject *getitem)
{
    cfx_error err = {0};
    const cfx_target target = {.object = getitem};
    cfx_node **made = PyMem_Malloc((call->n_outputs + 1) * sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    cfx_node *n = cfx_graph_insert_fused(self->g, call, target, made, &err);
    PyObject *node = n && !PyErr_Occurred() ? node_wrap(self, n) : raise_cfx(&err);
    PyObject *results = node ? list_nodes(self, made, call->n_outputs) : NULL;
    PyMem_Free(made);
    if (results)
        return Py_BuildValue("(NN)", node, results);
    Py_XDECREF(node);
    return NULL;
}

PyObject *graph_insert_fused(PyGraph *self, PyObject *args)
{
    PyObject *inputs, *outputs, *getitem, *after, *answer = NULL;
    int tuple;
    cfx_fused call = {0};
    if (!PyArg_ParseTuple(args, "sO!O!OpO:_insert_fused", &call.path, &PyList_Type, &inputs,
                          &PyList_Type, &outputs, &getitem, &tuple, &after) ||
        (after != Py_None && !need_node(self, after)))
        return NULL;
    cfx_node **in = read_nodes(self, inputs);
    cfx_node **out = in ? read_nodes(self, outputs) : NULL;
    if (out) {
        call.inputs = in;
        call.n_inputs = (size_t)PyList_GET_SIZE(inputs);
        call.outputs = out;
        call.n_outputs = (size_t)PyList_GET_SIZE(outputs);
        call.tuple = tuple;
        call.after = after == Py_None ? NULL : ((PyNode *)after)->n;
        cfx_iter here = hold(self->g);
        answer = insert_fused(self, &call, getitem);
        cfx_iter_end(&here);
    }
    PyMem_Free(in);
    PyMem_Free(out);
    return answer;
}

/* ---- walks --------------------------------------------------------------------------------- */

static cfx_status append_node(void *list, cfx_node *n)
{
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    int failed = node ? PyList_Append(list, node) : -1;
    Py_XDECREF(node);
    return failed ? CFX_E_HOST : CFX_OK;
}

PyObject *graph_reached(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *list;
    int down;
    if (!PyArg_ParseTuple(args, "O!p:_reached", &PyList_Type, &list, &down))
        return NULL;
    cfx_node **from = read_nodes(self, list);
    PyObject *answer = from ? PyList_New(0) : NULL;
    if (answer && cfx_graph_each_reached(self->g, from, (size_t)PyList_GET_SIZE(list), down,
                                         append_node, answer, &err) != CFX_OK) {
        Py_CLEAR(answer);
        raise_cfx(&err);
    }
    PyMem_Free(from);
    return answer;
}
