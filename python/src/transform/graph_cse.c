/* graph_cse.c - Graph: computing once what is computed twice, and what calls of modules do. */
#include "graph/graph_methods.h"

/* Who answers for the calls of a graph. Borrowed. */
typedef struct cse_job {
    module_state *st;
    PyObject *root;    /* where the paths of modules begin, or None */
    PyObject *effect;  /* a callable that is asked of every node, or a set of functions to keep */
} cse_job;

/* ---- modules ------------------------------------------------------------------------------- */

static int is_true(module_state *st, PyObject *module, PyObject *name)
{
    PyObject *value = module_getattr(st, module, name, true);
    int answer = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return answer;
}

/* What the class of a module and its flags say, without its sub-modules. */
static int own_effect(module_state *st, PyObject *module)
{
    int writes = is_true(st, module, st->str_inplace);
    if (writes == 0)
        writes = is_true(st, module, st->str_is_impure);
    if (writes)
        return writes < 0 ? -1 : CFX_EFFECT_WRITES;
    int training = is_true(st, module, st->str_training);
    if (training < 0)
        return -1;
    int alone = PyObject_IsInstance(module, st->lone_modules);
    if (alone == 0 && training)
        alone = PyObject_IsInstance(module, st->lone_in_training);
    return alone < 0 ? -1 : alone ? CFX_EFFECT_ALONE : CFX_EFFECT_NONE;
}

static int module_effect(module_state *st, PyObject *module);

static int worst_effect(module_state *st, PyObject *modules, int worst)
{
    for (Py_ssize_t i = 0; worst >= 0 && i < PyList_GET_SIZE(modules); i++) {
        PyObject *child = PyList_GET_ITEM(modules, i);
        int effect = child == Py_None ? CFX_EFFECT_NONE : module_effect(st, child);
        worst = effect < 0 || effect > worst ? effect : worst;
    }
    return worst;
}

/* What calling a module does, a cfx_effect: the worst of it and of all below it; -1 with an
 * exception. Of classes that torch does not have, nothing else is known. */
static int module_effect(module_state *st, PyObject *module)
{
    int worst = own_effect(st, module);
    PyObject *all = worst < 0 ? NULL : module_getattr(st, module, st->str_modules, true);
    PyObject *children = all && PyDict_Check(all) && PyDict_GET_SIZE(all) ? PyDict_Values(all)
                                                                          : NULL;
    Py_XDECREF(all);
    if (children && Py_EnterRecursiveCall(" in a module inside others") == 0) {
        worst = worst_effect(st, children, worst);
        Py_LeaveRecursiveCall();
    }
    Py_XDECREF(children);
    return PyErr_Occurred() ? -1 : worst;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static int called_module_effect(const cse_job *job, const cfx_node *n)
{
    size_t size;
    const char *target = cfx_node_target(n, &size, NULL);
    PyObject *path = target ? str_from_utf8(target, size) : PyErr_NoMemory();
    PyObject *module = path ? path_get(job->st, job->root, path) : NULL;
    int effect = module ? module_effect(job->st, module) : -1;
    Py_XDECREF(module);
    Py_XDECREF(path);
    return effect;
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
        cfx_iter here = hold(self->g);
        cfx_status status = cfx_pass_run(cfx_pass_find("cse"), self->g,
                                         has_root ? &view.table : NULL,
                                         job.effect == Py_None ? NULL : &options, &changed, &err);
        cfx_iter_end(&here);
        good = status == CFX_OK && !PyErr_Occurred();
    }
    if (has_root)
        modules_done(&view);
    return good ? PyBool_FromLong(changed) : raise_cfx(&err);
}
