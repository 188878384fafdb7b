/* graph_cse.c - Graph: computing once what is computed twice. */
#include "graph/graph_methods.h"

/* Who answers for the calls of a graph. Borrowed. */
typedef struct cse_job {
    module_state *st;
    PyObject *root;    /* where the paths of modules begin, or None */
    const cfx_module_tree *modules;
    PyObject *effect;  /* a callable that is asked of every node, or a set of functions to keep */
} cse_job;

/* ---- nodes --------------------------------------------------------------------------------- */

static int called_module_effect(const cse_job *job, const cfx_node *n)
{
    size_t size;
    cfx_error err = {0};
    cfx_effect effect;
    const char *target = cfx_node_target(n, &size, NULL);
    PyObject *path = target ? str_from_utf8(target, size) : PyErr_NoMemory();
    PyObject *module = path ? path_get(job->st, job->root, path) : NULL;  /* or its exception */
    Py_XDECREF(path);
    Py_XDECREF(module);
    if (!module)
        return -1;
    if (cfx_module_tree_effect(job->modules, cfx_node_graph(n), target, &effect, &err) == CFX_OK &&
        !PyErr_Occurred())
        return (int)effect;
    raise_cfx(&err);
    return -1;
}

/* An overload is banned with its packet, methods and modules by their names. */
static int is_banned(const cse_job *job, const cfx_node *n)
{
    size_t size;
    if (PySet_GET_SIZE(job->effect) == 0)
        return 0;
    PyObject *function = cfx_node_target_object(n);
    const char *name = function ? NULL : cfx_node_target(n, &size, NULL);
    PyObject *key = function ? attr_or_none(function, job->st->str_overloadpacket)
                             : name ? str_from_utf8(name, size) : PyErr_NoMemory();
    if (key == Py_None)
        Py_SETREF(key, Py_NewRef(function));
    int banned = key ? PySet_Contains(job->effect, key) : -1;
    Py_XDECREF(key);
    return banned;
}

static int known_effect(const cse_job *job, const cfx_node *n)
{
    int banned = is_banned(job, n);
    if (banned)
        return banned < 0 ? -1 : CFX_EFFECT_ALONE;
    if (cfx_node_op(n) == CFX_OP_GET_ATTR)  /* stays apart, as in torch.fx */
        return CFX_EFFECT_ALONE;
    if (cfx_node_op(n) != CFX_OP_CALL_MODULE)
        return CFX_EFFECT_NONE;
    return job->root == Py_None ? CFX_EFFECT_WRITES : called_module_effect(job, n);
}

static int ask_effect(void *ctx, cfx_node *n)
{
    const cse_job *job = ctx;
    if (PyAnySet_Check(job->effect))
        return PyErr_Occurred() ? -1 : known_effect(job, n);
    PyObject *answer = ask_node(job->effect, n);
    long effect = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    return effect < 0 || effect > CFX_EFFECT_WRITES ? -1 : (int)effect;
}

/* _cse(effect, root): `effect` answers a cfx_effect for a node, or is a set of targets that stay
 * apart; either may be None. */
PyObject *graph_cse(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    bool changed = false;
    cse_job job = {.st = self->st};
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OO:_cse", &job.effect, &job.root))
        return NULL;
    bool has_root = job.root != Py_None;
    bool good = !has_root || modules_over(self->st, job.root, &view);
    if (good) {
        cfx_cse_options options = {ask_effect, &job};
        job.modules = &view.table;
        cfx_iter here = hold(self->g);
        cfx_status status =
            cfx_pass_run(cfx_pass_find("cse"), self->g, has_root ? &view.table : NULL,
                         job.effect == Py_None ? NULL : &options, &changed, &err);
        cfx_iter_end(&here);
        good = status == CFX_OK && !PyErr_Occurred();
    }
    if (has_root)
        modules_done(&view);
    return good ? PyBool_FromLong(changed) : raise_cfx(&err);
}
