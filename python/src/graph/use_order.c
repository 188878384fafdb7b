/* use_order.c - the order in which the nodes of a graph were given their arguments.
 *
 * `users` lists nodes in that order, so a graph that is built anew must be given arguments in it.
 * Each `users` is a chain; the order is found by merging the chains of all nodes. Works on the
 * nodes of any library: it asks for nothing but `users`. Linear in nodes and uses.
 */
#include "base/pycfx.h"

/* A graph with an edge from each user to the next one of its chain. */
typedef struct chains {
    size_t nodes;
    size_t n, capacity;
    size_t *pairs;     /* n edges, two numbers each */
    bool descends;     /* whether some chain is not in the order of the nodes */
} chains;

static int add_pair(chains *c, size_t from, size_t to)
{
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 64;
        size_t *pairs = PyMem_Resize(c->pairs, size_t, 2 * capacity);
        if (!pairs) {
            PyErr_NoMemory();
            return -1;
        }
        c->pairs = pairs;
        c->capacity = capacity;
    }
    c->pairs[2 * c->n] = from;
    c->pairs[2 * c->n + 1] = to;
    c->n++;
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

/* ---- merging ------------------------------------------------------------------------------- */

typedef struct merge {
    size_t *waiting;  /* how many stand before each node, in chains that are not yet done */
    size_t *first;    /* where the followers of each node start */
    size_t *followers;
    size_t *order;
    size_t done;
} merge;

/* Sorts the edges by where they come from. */
static void sort_pairs(merge *m, const chains *c)
{
    for (size_t i = 0; i < c->n; i++) {
        m->first[c->pairs[2 * i] + 1]++;
        m->waiting[c->pairs[2 * i + 1]]++;
    }
    for (size_t i = 0; i < c->nodes; i++)
        m->first[i + 1] += m->first[i];
    for (size_t i = c->n; i > 0; i--)  /* backwards: the order of the edges of a node stays */
        m->followers[--m->first[c->pairs[2 * i - 2] + 1]] = c->pairs[2 * i - 1];
}

static void merge_all(merge *m, const chains *c)
{
    sort_pairs(m, c);
    for (size_t i = 0; i < c->nodes; i++)
        if (m->waiting[i] == 0)
            m->order[m->done++] = i;
    for (size_t i = 0; i < m->done; i++) {
        size_t node = m->order[i];
        size_t end = node + 1 < c->nodes ? m->first[node + 2] : c->n;
        for (size_t f = m->first[node + 1]; f < end; f++)
            if (--m->waiting[m->followers[f]] == 0)
                m->order[m->done++] = m->followers[f];
    }
    /* insert_arg gives a node an input later than its others: then no order explains all chains */
    for (size_t i = 0; i < c->nodes; i++)
        if (m->waiting[i] > 0)
            m->order[m->done++] = i;
}

static PyObject *merged(const chains *c)
{
    size_t *memory = PyMem_Calloc(3 * c->nodes + c->n + 2, sizeof *memory);
    PyObject *list = memory ? PyList_New((Py_ssize_t)c->nodes) : PyErr_NoMemory();
    if (list) {
        merge m = {.waiting = memory, .order = memory + c->nodes, .first = memory + 2 * c->nodes,
                   .followers = memory + 3 * c->nodes + 2};
        merge_all(&m, c);
        for (size_t i = 0; i < c->nodes; i++)
            PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromSize_t(m.order[i]));
    }
    PyMem_Free(memory);
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
