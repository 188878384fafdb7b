/* regions.c - Graph._outline: regions as modules that get_attr nodes read, as torch has them. The
 * core does it; cfx/interop makes the modules. */
#include "graph_methods.h"

typedef struct outline_job {
    PyGraph *self;
    PyObject *targets;   /* a dict {operator's name: torch's operator} */
    PyObject *is_taken;  /* whether a path is in use */
    PyObject *branches;  /* the answer: a dict {path: Graph} */
} outline_job;

static int ask_taken(void *ctx, const char *path)
{
    const outline_job *job = ctx;
    PyObject *answer = PyObject_CallFunction(job->is_taken, "s", path);
    int taken = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return taken;
}

/* A region as a Graph; a copy of one is of the same class, with the same metadata. */
static PyObject *wrap_region(const outline_job *job, const cfx_region *region)
{
    if (!region->copied_from)
        return graph_wrap(job->self->st, region->graph);
    PyObject *source = graph_wrap(job->self->st, region->copied_from);
    PyObject *graph = source ? graph_wrap_as(Py_TYPE(source), job->self->st, region->graph) : NULL;
    if (graph && copy_all_meta((PyGraph *)source, (PyGraph *)graph) < 0)
        Py_CLEAR(graph);
    Py_XDECREF(source);
    return graph;
}

static cfx_status add_branch(void *ctx, const char *path, const cfx_region *region, cfx_error *err)
{
    const outline_job *job = ctx;
    PyObject *graph = wrap_region(job, region);
    int failed = graph ? PyDict_SetItemString(job->branches, path, graph) : -1;
    (void)err;
    Py_XDECREF(graph);
    return failed ? CFX_E_HOST : CFX_OK;
}

static cfx_target find_target(void *ctx, cfx_operator op)
{
    const outline_job *job = ctx;
    return (cfx_target){.object = PyDict_GetItemString(job->targets, cfx_operator_name(op))};
}

/* _outline(targets, is_taken): {path: Graph} of the regions, which get_attr nodes read now. */
PyObject *graph_outline(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    outline_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "O!O:_outline", &PyDict_Type, &job.targets, &job.is_taken))
        return NULL;
    const cfx_outline how = {ask_taken, add_branch, find_target, &job};
    job.branches = PyDict_New();
    if (job.branches &&
        (cfx_graph_outline(self->g, &how, &err) != CFX_OK || PyErr_Occurred())) {
        Py_CLEAR(job.branches);
        raise_cfx(&err);
    }
    return job.branches;
}
