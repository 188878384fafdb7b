/* graph_compare.c - Graph: pairs of nodes with another version of it, who is to blame for what
 * differs, the smallest part that shows it, and one graph from those of two modes. */
#include "graph/graph_methods.h"

#include <cfx/embed/check.h>

/* The Node of `n`, or None. Regions may have no Graph object yet. */
static PyObject *node_or_none(module_state *st, cfx_node *n)
{
    if (!n)
        return Py_NewRef(Py_None);
    PyObject *graph = graph_wrap(st, cfx_node_graph(n));
    PyObject *node = graph ? node_wrap((PyGraph *)graph, n) : NULL;
    Py_XDECREF(graph);
    return node;
}

typedef struct pair_job {
    module_state *st;
    PyObject *pairs;
} pair_job;

static cfx_status add_pair(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how)
{
    const pair_job *job = ctx;
    PyObject *first = node_or_none(job->st, a);
    PyObject *second = first ? node_or_none(job->st, b) : NULL;
    PyObject *pair = second ? Py_BuildValue("(OOs)", first, second, cfx_pairing_name(how)) : NULL;
    int failed = pair ? PyList_Append(job->pairs, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(second);
    Py_XDECREF(first);
    return failed ? CFX_E_HOST : CFX_OK;
}

/* [(node or None, its partner or None, why)]: see cfx_graph_correspond. */
PyObject *graph_correspond(PyGraph *self, PyObject *other)
{
    cfx_error err = {0};
    if (!is_graph(self->st, other))
        return PyErr_Format(PyExc_TypeError, "expected a Graph, got %R",
                            (PyObject *)Py_TYPE(other));
    pair_job job = {self->st, PyList_New(0)};
    if (!job.pairs)
        return NULL;
    if (cfx_graph_correspond(self->g, ((PyGraph *)other)->g, add_pair, &job, &err) == CFX_OK &&
        !PyErr_Occurred())
        return job.pairs;
    Py_DECREF(job.pairs);
    return raise_cfx(&err);
}

/* Nodes have the hash of their identity, so that looking one up runs no code of the user's. */
static int look_up(void *ctx, cfx_node *n)
{
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *wrong = node ? PyDict_GetItemWithError(ctx, node) : NULL;
    Py_XDECREF(node);
    if (!wrong)
        return PyErr_Occurred() ? -1 : CFX_VERDICT_UNKNOWN;
    return wrong == Py_False ? CFX_VERDICT_RIGHT : CFX_VERDICT_WRONG;
}

/* The node to blame, or None, given {node: whether its value is wrong}: see cfx_graph_blame. */
PyObject *graph_blame(PyGraph *self, PyObject *verdicts)
{
    cfx_error err = {0};
    cfx_node *culprit;
    if (!PyDict_Check(verdicts))
        return PyErr_Format(PyExc_TypeError, "expected a dict, got %R",
                            (PyObject *)Py_TYPE(verdicts));
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_graph_blame(self->g, look_up, verdicts, &culprit, &err);
    PyObject *node = status == CFX_OK ? node_or_none(self->st, culprit) : raise_cfx(&err);
    cfx_iter_end(&here);
    return node;
}

typedef struct minimize_job {
    PyGraph *self;
    PyObject *test;
    PyObject *best;  /* the last pair that failed: kept, or the collector would empty its graph */
} minimize_job;

/* (graph, [the nodes that its inputs stand for]): a new reference. */
static PyObject *part_to_py(PyGraph *self, const cfx_subgraph *part)
{
    PyObject *inputs = PyList_New(0);
    int failed = inputs ? 0 : -1;
    for (size_t i = 0; !failed && i < part->n_inputs; i++) {
        PyObject *node = node_wrap(self, part->inputs[i]);
        failed = node ? PyList_Append(inputs, node) : -1;
        Py_XDECREF(node);
    }
    PyObject *graph = failed ? NULL : graph_wrap(self->st, part->graph);
    PyObject *pair = graph ? PyTuple_Pack(2, graph, inputs) : NULL;
    Py_XDECREF(graph);
    Py_XDECREF(inputs);
    return pair;
}

static int ask_part(void *ctx, const cfx_subgraph *part)
{
    minimize_job *job = ctx;
    PyObject *pair = part_to_py(job->self, part);
    PyObject *answer = pair ? PyObject_CallObject(job->test, pair) : NULL;
    int fails = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (fails > 0)
        Py_XSETREF(job->best, Py_NewRef(pair));
    Py_XDECREF(pair);
    return fails;
}

/* _minimize(test, max_tests): `test(graph, nodes)` tells whether a part still fails, see
 * cfx_graph_minimize; returns the smallest such pair. */
PyObject *graph_minimize(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_subgraph part;
    minimize_job job = {.self = self};
    Py_ssize_t max_tests;
    if (!PyArg_ParseTuple(args, "On:_minimize", &job.test, &max_tests))
        return NULL;
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_graph_minimize(self->g, ask_part, &job,
                                           max_tests > 0 ? (size_t)max_tests : 0, &part, &err);
    cfx_iter_end(&here);
    if (status == CFX_OK) {
        cfx_subgraph_free(&part);
        return job.best;
    }
    Py_XDECREF(job.best);
    return raise_cfx(&err);
}

/* The texts of a list of str: borrowed; to be freed. */
static const char **texts_of(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    const char **texts = PyMem_Calloc((size_t)n + 1, sizeof *texts);
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < n; i++)
        if (!(texts[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i)))) {
            PyMem_Free(texts);
            return NULL;
        }
    return texts;
}

/* _merge_modes(other, paths, flags): whether `other` could be merged into this graph, see
 * cfx_graph_merge_modes. `flags` has a byte for each path and setting. */
PyObject *graph_merge_modes(PyGraph *self, PyObject *args)
{
    PyObject *other, *paths, *flags;
    cfx_error err = {0};
    bool merged = false;
    if (!PyArg_ParseTuple(args, "O!O!S:_merge_modes", self->st->GraphType, &other, &PyList_Type,
                          &paths, &flags))
        return NULL;
    const size_t n = (size_t)PyList_GET_SIZE(paths), count = (size_t)PyBytes_GET_SIZE(flags);
    if (n == 0 || count % n)
        return PyErr_Format(PyExc_ValueError, "%zu flags for %zu modules", count, n);
    const char **texts = texts_of(paths);
    bool *on = texts ? PyMem_Calloc(count + 1, sizeof *on) : NULL;
    if (texts && !on)
        PyErr_NoMemory();
    for (size_t i = 0; on && i < count; i++)
        on[i] = PyBytes_AS_STRING(flags)[i] != 0;
    const cfx_mode_table modes = {texts, n, on, count / n};
    const cfx_status status =
        on ? cfx_graph_merge_modes(self->g, ((PyGraph *)other)->g, &modes, &merged, &err)
           : CFX_E_HOST;
    PyMem_Free(texts);
    PyMem_Free(on);
    if (status == CFX_OK && !PyErr_Occurred())
        return PyBool_FromLong(merged);
    return PyErr_Occurred() ? NULL : raise_cfx(&err);
}
