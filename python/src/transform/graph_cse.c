/* graph_cse.c - Graph: computing once what is computed twice. */
#include "graph/graph_methods.h"

/* Who says which nodes stay apart. Borrowed. */
typedef struct cse_job {
    module_state *st;
    PyObject *keep;  /* a callable that is asked of every node, or a set of targets */
} cse_job;

/* An overload is banned with its packet, methods and modules by their names. */
static int is_banned(const cse_job *job, const cfx_node *n)
{
    size_t size;
    if (PySet_GET_SIZE(job->keep) == 0)
        return 0;
    PyObject *function = cfx_node_target_object(n);
    const char *name = function ? NULL : cfx_node_target(n, &size, NULL);
    PyObject *key = function ? attr_or_none(function, job->st->str_overloadpacket)
                             : name ? str_from_utf8(name, size) : PyErr_NoMemory();
    if (key == Py_None)
        Py_SETREF(key, Py_NewRef(function));
    int banned = key ? PySet_Contains(job->keep, key) : -1;
    Py_XDECREF(key);
    return banned;
}

static int ask_keep(void *ctx, cfx_node *n)
{
    const cse_job *job = ctx;
    if (PyAnySet_Check(job->keep)) {
        if (PyErr_Occurred())
            return -1;
        return cfx_node_op(n) == CFX_OP_GET_ATTR ? 1 : is_banned(job, n);  /* as in torch.fx */
    }
    PyObject *answer = ask_node(job->keep, n);
    int keep = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return keep;
}

/* _cse(keep, root): `keep` tells of a node whether it stays apart, or is a set of targets that do;
 * either may be None. Modules that nothing is known about are merged, as in torch.fx. */
PyObject *graph_cse(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    bool changed = false;
    cse_job job = {.st = self->st};
    PyObject *root;
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OO:_cse", &job.keep, &root))
        return NULL;
    bool has_root = root != Py_None;
    bool good = !has_root || modules_over(self->st, root, &view);
    if (good) {
        const cfx_cse_options options = {.keep = job.keep == Py_None ? NULL : ask_keep,
                                         .ctx = &job, .like_torch_fx = has_root};
        cfx_iter here = hold(self->g);
        cfx_status status = cfx_pass_run(cfx_pass_find("cse"), self->g,
                                         has_root ? &view.table : NULL, &options, &changed, &err);
        cfx_iter_end(&here);
        good = status == CFX_OK && !PyErr_Occurred();
    }
    if (has_root)
        modules_done(&view);
    return good ? PyBool_FromLong(changed) : raise_cfx(&err);
}
