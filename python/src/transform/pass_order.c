/* pass_order.c - the order of passes, under constraints.
 *
 * A constraint is a Python callable that says of two passes (a, b) whether a may run before b.
 * Every pair is asked, so the time is quadratic in the number of passes; there are few. A pass may
 * stand in the list more than once: places are ordered, not objects.
 */
#include "base/pycfx.h"

/* constraint(a, b): 1, 0, or -1 with an exception. */
static int allows(PyObject *constraint, PyObject *a, PyObject *b)
{
    PyObject *in[] = {a, b};
    PyObject *answer = PyObject_Vectorcall(constraint, in, 2, NULL);
    int allowed = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return allowed;
}

/* Whether all constraints, a tuple, allow a before b. */
static int all_allow(PyObject *constraints, PyObject *a, PyObject *b)
{
    int allowed = 1;
    for (Py_ssize_t i = 0; allowed == 1 && i < PyTuple_GET_SIZE(constraints); i++)
        allowed = allows(PyTuple_GET_ITEM(constraints, i), a, b);
    return allowed;
}

/* ---- checking ------------------------------------------------------------------------------ */

static PyObject *py_check_pass_order(PyObject *module, PyObject *args)
{
    PyObject *constraint, *list;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_check_pass_order", &constraint, &list))
        return NULL;
    PyObject *passes = PySequence_Tuple(list);
    const Py_ssize_t n = passes ? PyTuple_GET_SIZE(passes) : 0;
    int allowed = passes ? 1 : -1;
    for (Py_ssize_t i = 0; allowed == 1 && i < n; i++) {
        for (Py_ssize_t j = i + 1; allowed == 1 && j < n; j++) {
            PyObject *a = PyTuple_GET_ITEM(passes, i);
            PyObject *b = PyTuple_GET_ITEM(passes, j);
            allowed = allows(constraint, a, b);
            if (allowed == 0)
                PyErr_Format(PyExc_RuntimeError, "pass schedule constraint violated. Expected %R "
                             "before %R but found %R at index %zd and %R at index %zd in pass "
                             "list.", b, a, a, i, b, j);
        }
    }
    Py_XDECREF(passes);
    return allowed == 1 ? Py_NewRef(Py_None) : NULL;
}

/* ---- sorting ------------------------------------------------------------------------------- */

typedef struct pass_order {
    PyObject *passes;    /* a tuple */
    Py_ssize_t n;
    char *later;         /* later[i * n + j]: j must come after i */
    Py_ssize_t *waits;   /* for how many others each pass waits */
    Py_ssize_t *order;   /* those that wait for none, in the order in which they came to that */
    Py_ssize_t ready;
} pass_order;

/* Asks about every pair. */
static int find_edges(pass_order *o, PyObject *constraints)
{
    for (Py_ssize_t i = 0; i < o->n; i++) {
        for (Py_ssize_t j = 0; j < o->n; j++) {
            int allowed = i == j ? 1 : all_allow(constraints, PyTuple_GET_ITEM(o->passes, j),
                                                 PyTuple_GET_ITEM(o->passes, i));
            if (allowed < 0)
                return -1;
            o->later[i * o->n + j] = !allowed;
            o->waits[j] += !allowed;
        }
    }
    return 0;
}

static void sort(pass_order *o)
{
    for (Py_ssize_t i = 0; i < o->n; i++)
        if (o->waits[i] == 0)
            o->order[o->ready++] = i;
    for (Py_ssize_t done = 0; done < o->ready; done++)
        for (Py_ssize_t j = 0; j < o->n; j++)
            if (o->later[o->order[done] * o->n + j] && --o->waits[j] == 0)
                o->order[o->ready++] = j;
}

/* The passes that still wait, in an error. */
static PyObject *circle(const pass_order *o)
{
    PyObject *stuck = PyList_New(0);
    int failed = !stuck;
    for (Py_ssize_t i = 0; !failed && i < o->n; i++)
        if (o->waits[i] > 0)
            failed = PyList_Append(stuck, PyTuple_GET_ITEM(o->passes, i));
    if (!failed)
        PyErr_Format(PyExc_RuntimeError,
                     "Circular dependency detected within the following passes: %R", stuck);
    Py_XDECREF(stuck);
    return NULL;
}

static PyObject *sorted_list(const pass_order *o)
{
    if (o->ready < o->n)
        return circle(o);
    PyObject *list = PyList_New(o->n);
    for (Py_ssize_t i = 0; list && i < o->n; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(PyTuple_GET_ITEM(o->passes, o->order[i])));
    return list;
}

static PyObject *py_sort_passes(PyObject *module, PyObject *args)
{
    PyObject *list, *given;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_sort_passes", &list, &given))
        return NULL;
    PyObject *constraints = PySequence_Tuple(given);
    pass_order o = {.passes = constraints ? PySequence_Tuple(list) : NULL};
    o.n = o.passes ? PyTuple_GET_SIZE(o.passes) : 0;
    o.later = PyMem_Calloc((size_t)o.n + 1, (size_t)o.n + 1);
    o.waits = PyMem_Calloc((size_t)o.n + 1, sizeof *o.waits);
    o.order = PyMem_Calloc((size_t)o.n + 1, sizeof *o.order);
    if (o.passes && (!o.later || !o.waits || !o.order)) {
        PyErr_NoMemory();
    } else if (o.passes && find_edges(&o, constraints) == 0) {
        sort(&o);
        result = sorted_list(&o);
    }
    PyMem_Free(o.later);
    PyMem_Free(o.waits);
    PyMem_Free(o.order);
    Py_XDECREF(o.passes);
    Py_XDECREF(constraints);
    return result;
}

PyMethodDef pass_order_functions[] = {
    {"_check_pass_order", py_check_pass_order, METH_VARARGS, NULL},
    {"_sort_passes", py_sort_passes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
