/* pass_order.c - the order of passes, under constraints: Python callables that say of two passes
 * (a, b) whether a may run before b. */
#include "base/pycfx.h"

#include <cfx/pass.h>

typedef struct order_job {
    PyObject *passes;       /* a tuple */
    PyObject *constraints;  /* a tuple */
} order_job;

/* Whether all constraints allow a before b. */
static int allows(void *ctx, size_t a, size_t b)
{
    const order_job *job = ctx;
    int allowed = 1;
    PyObject *in[] = {PyTuple_GET_ITEM(job->passes, (Py_ssize_t)a),
                      PyTuple_GET_ITEM(job->passes, (Py_ssize_t)b)};
    for (Py_ssize_t i = 0; allowed == 1 && i < PyTuple_GET_SIZE(job->constraints); i++) {
        PyObject *answer = PyObject_Vectorcall(PyTuple_GET_ITEM(job->constraints, i), in, 2, NULL);
        allowed = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
    }
    return allowed;
}

static PyObject *py_check_pass_order(PyObject *module, PyObject *args)
{
    PyObject *constraint, *list;
    cfx_error err = {0};
    size_t a, b;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_check_pass_order", &constraint, &list))
        return NULL;
    order_job job = {PySequence_Tuple(list), PyTuple_Pack(1, constraint)};
    cfx_status status = CFX_E_HOST;
    if (job.passes && job.constraints)
        status = cfx_order_check((size_t)PyTuple_GET_SIZE(job.passes), allows, &job, &a, &b, &err);
    if (status == CFX_E_GRAPH) {
        PyObject *first = PyTuple_GET_ITEM(job.passes, (Py_ssize_t)a);
        PyObject *second = PyTuple_GET_ITEM(job.passes, (Py_ssize_t)b);
        PyErr_Format(PyExc_RuntimeError, "pass schedule constraint violated. Expected %R before %R "
                     "but found %R at index %zu and %R at index %zu in pass list.", second, first,
                     first, a, second, b);
    }
    Py_XDECREF(job.passes);
    Py_XDECREF(job.constraints);
    return status == CFX_OK ? Py_NewRef(Py_None) : NULL;
}

/* The passes at `n` places, as a list. */
static PyObject *passes_at(PyObject *passes, const size_t *places, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++)
        PyList_SET_ITEM(list, (Py_ssize_t)i,
                        Py_NewRef(PyTuple_GET_ITEM(passes, (Py_ssize_t)places[i])));
    return list;
}

/* The job's tuples, neither NULL. */
static PyObject *sort_passes(order_job *job)
{
    cfx_error err = {0};
    const size_t n = (size_t)PyTuple_GET_SIZE(job->passes);
    PyObject *list = NULL;
    size_t sorted;
    size_t *order = PyMem_New(size_t, n + 1);
    if (!order)
        return PyErr_NoMemory();
    cfx_status status = cfx_order_sort(n, allows, job, order, &sorted, NULL, &err);
    if (status == CFX_OK || status == CFX_E_GRAPH)
        list = status == CFX_OK ? passes_at(job->passes, order, n)
                                : passes_at(job->passes, order + sorted, n - sorted);
    else
        raise_cfx(&err);
    if (status == CFX_E_GRAPH && list) {
        PyErr_Format(PyExc_RuntimeError,
                     "Circular dependency detected within the following passes: %R", list);
        Py_CLEAR(list);
    }
    PyMem_Free(order);
    return list;
}

static PyObject *py_sort_passes(PyObject *module, PyObject *args)
{
    PyObject *list, *given;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_sort_passes", &list, &given))
        return NULL;
    order_job job = {.constraints = PySequence_Tuple(given)};
    job.passes = job.constraints ? PySequence_Tuple(list) : NULL;
    PyObject *result = job.passes ? sort_passes(&job) : NULL;
    Py_XDECREF(job.passes);
    Py_XDECREF(job.constraints);
    return result;
}

PyMethodDef pass_order_functions[] = {
    {"_check_pass_order", py_check_pass_order, METH_VARARGS, NULL},
    {"_sort_passes", py_sort_passes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
