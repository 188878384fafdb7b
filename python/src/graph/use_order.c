/* use_order.c - the order in which the nodes of a graph were given their arguments.
 *
 * `users` lists nodes in that order, so a graph that is built anew must be given arguments in it.
 * Each `users` is a chain; the order is found by merging the chains of all nodes. Works on the
 * nodes of any library: it asks for nothing but `users`. Linear in nodes and uses.
 */
#include "graph_methods.h"

#include <cfx/pass.h>

/* A graph with an edge from each user to the next one of its chain. */
typedef struct chains {
    size_t nodes;
    size_t n, capacity;
    cfx_order_pair *pairs;
    bool descends;     /* whether some chain is not in the order of the nodes */
} chains;

static int add_pair(chains *c, size_t from, size_t to)
{
    void *pairs = with_room(c->pairs, c->n, &c->capacity, sizeof *c->pairs);
    if (!pairs)
        return -1;
    c->pairs = pairs;
    c->pairs[c->n++] = (cfx_order_pair){from, to};
    c->descends = c->descends || from > to;
    return 0;
}

/* The numbers of the nodes by the nodes; NULL with an exception. */
static PyObject *number_nodes(PyObject *nodes)
{
    PyObject *numbers = PyDict_New();
    for (Py_ssize_t i = 0; numbers && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *number = PyLong_FromSsize_t(i);
        if (!number || PyDict_SetItem(numbers, PyList_GET_ITEM(nodes, i), number) < 0)
            Py_CLEAR(numbers);
        Py_XDECREF(number);
    }
    return numbers;
}

/* Adds the users of one node; those of other graphs (torch.fx allows them) are left out. */
static int add_chain(chains *c, PyObject *node, PyObject *numbers, PyObject *str_users)
{
    PyObject *users = PyObject_GetAttr(node, str_users);
    Py_ssize_t size = users ? PyObject_Size(users) : -1;
    PyObject *it = size > 1 ? PyObject_GetIter(users) : NULL;
    Py_XDECREF(users);
    if (!it)
        return PyErr_Occurred() ? -1 : 0;
    Py_ssize_t last = -1;
    int failed = 0;
    for (PyObject *user; !failed && (user = PyIter_Next(it)) != NULL;) {
        PyObject *number = PyDict_GetItemWithError(numbers, user);
        Py_ssize_t i = number ? PyLong_AsSsize_t(number) : -1;
        if (number && last >= 0)
            failed = add_pair(c, (size_t)last, (size_t)i);
        last = number ? i : last;
        Py_DECREF(user);
        failed = failed || PyErr_Occurred();
    }
    Py_DECREF(it);
    return failed || PyErr_Occurred() ? -1 : 0;
}

/* insert_arg gives a node an input later than its others: then no order explains all chains, and
 * the nodes in question come last. */
static PyObject *merged(const chains *c)
{
    cfx_error err = {0};
    size_t sorted;
    PyObject *list = NULL;
    size_t *order = PyMem_New(size_t, c->nodes + 1);
    if (!order)
        return PyErr_NoMemory();
    cfx_status status = cfx_order_sort_pairs(c->nodes, c->pairs, c->n, order, &sorted, NULL, &err);
    if (status == CFX_OK || status == CFX_E_GRAPH)
        list = PyList_New((Py_ssize_t)c->nodes);
    else
        raise_cfx(&err);
    for (size_t i = 0; list && i < c->nodes; i++) {
        PyObject *place = PyLong_FromSize_t(order[i]);
        if (place)
            PyList_SET_ITEM(list, (Py_ssize_t)i, place);
        else
            Py_CLEAR(list);
    }
    PyMem_Free(order);
    return list;
}

PyObject *order_of_uses(PyObject *nodes)
{
    if (!PyList_Check(nodes))
        return PyErr_Format(PyExc_TypeError, "expected a list of nodes");
    chains c = {.nodes = (size_t)PyList_GET_SIZE(nodes)};
    PyObject *numbers = number_nodes(nodes);
    PyObject *str_users = PyUnicode_InternFromString("users");
    bool failed = !numbers || !str_users;
    for (size_t i = 0; !failed && i < c.nodes; i++)
        failed = add_chain(&c, PyList_GET_ITEM(nodes, (Py_ssize_t)i), numbers, str_users) < 0;
    PyObject *order = NULL;
    if (!failed)
        order = c.descends ? merged(&c) : Py_NewRef(Py_None);
    PyMem_Free(c.pairs);
    Py_XDECREF(numbers);
    Py_XDECREF(str_users);
    return order;
}

static PyObject *py_order_of_uses(PyObject *module, PyObject *nodes)
{
    (void)module;
    return order_of_uses(nodes);
}

PyMethodDef use_order_functions[] = {
    {"_order_of_uses", py_order_of_uses, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
