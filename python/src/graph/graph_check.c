/* graph_check.c - Graph: checking, dead-code elimination, texts, comparison. */
#include "graph_methods.h"

/* ---- checking and passes ------------------------------------------------------------------- */

static void add_finding(void *ctx, const cfx_node *n, const char *message)
{
    (void)n;
    PyObject *text = str_from_utf8(message, strlen(message));
    if (!text || PyList_Append(ctx, text) < 0)
        PyErr_Clear();  /* the first finding is in the error, too */
    Py_XDECREF(text);
}

/* A node of another graph is held as a plain object. As a key of a dict it is no use of that node,
 * as in torch.fx. */
typedef struct foreign_job {
    module_state *st;
    cfx_node *user;
    PyObject *findings;
    PyObject *done;       /* a set of the regions that have been met */
    cfx_graph **waiting;  /* regions that are yet to be checked */
    size_t n, room;
} foreign_job;

static int add_foreign_node(const foreign_job *job, PyObject *node)
{
    PyObject *text = PyUnicode_FromFormat(
        "Argument '%S' of Node '%s' does not belong to this Graph, but was used as an argument! If "
        "you are copying nodes from another graph, make sure to use ``arg_transform`` on "
        "node_copy() to remap values", node, cfx_node_name(job->user, NULL));
    int failed = text ? PyList_Append(job->findings, text) : -1;
    Py_XDECREF(text);
    return failed;
}

/* Regions nest, in values that nest as well: they wait until their graph is done. */
static int add_region(foreign_job *job, cfx_graph *region)
{
    int first = first_visit(job->done, region);
    if (first <= 0)
        return first;
    void *waiting = with_room(job->waiting, job->n, &job->room, sizeof *job->waiting);
    if (!waiting)
        return -1;
    job->waiting = waiting;
    job->waiting[job->n++] = cfx_graph_retain(region);
    return 0;
}

static int add_foreign_in(foreign_job *job, cfx_value v)
{
    size_t n;
    if (v.kind == CFX_KIND_GRAPH)
        return add_region(job, cfx_value_graph(v));
    PyObject *object = v.kind == CFX_KIND_HOST ? cfx_value_object(v) : NULL;
    if (object && is_node(job->st, object))
        return add_foreign_node(job, object);
    const cfx_value *items = cfx_value_items(v, &n);
    const size_t step = v.kind == CFX_KIND_DICT ? 2 : 1;
    for (size_t i = step - 1; i < n; i += step)
        if (add_foreign_in(job, items[i]) < 0)
            return -1;
    return 0;
}

static int is_suspect(void *object, void *ctx)
{
    return is_node(ctx, object) || is_graph(ctx, object);
}

static int add_foreign_of(foreign_job *job, cfx_graph *g)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        job->user = n;
        if (add_foreign_in(job, cfx_node_args(n)) < 0 ||
            add_foreign_in(job, cfx_node_kwargs(n)) < 0)
            return -1;
    }
    return 0;
}

/* Adds what is wrong with `g` and its regions; most graphs hold nothing that could be. */
static int add_foreign(module_state *st, cfx_graph *g, PyObject *findings)
{
    if (!cfx_graph_visit_hosts(g, is_suspect, st))
        return 0;
    foreign_job job = {.st = st, .findings = findings, .done = PySet_New(NULL)};
    int failed = job.done ? add_foreign_of(&job, g) : -1;
    while (job.n > 0) {
        cfx_graph *region = job.waiting[--job.n];
        failed = failed ? -1 : add_foreign_of(&job, region);
        cfx_graph_release(region);
    }
    PyMem_Free(job.waiting);
    Py_XDECREF(job.done);
    return failed;
}

/* The findings as a list of messages: of lint, or of the stricter verifier. */
PyObject *graph_faults(PyGraph *self, PyObject *strict)
{
    cfx_error err = {0};
    PyObject *findings = PyList_New(0);
    if (!findings || add_foreign(self->st, self->g, findings) < 0) {
        Py_XDECREF(findings);
        return NULL;
    }
    cfx_status status = strict == Py_True ? cfx_graph_verify(self->g, add_finding, findings, &err)
                                          : cfx_graph_lint(self->g, add_finding, findings, &err);
    if ((status == CFX_OK || PyList_GET_SIZE(findings) > 0) && !PyErr_Occurred())
        return findings;
    Py_DECREF(findings);
    return raise_cfx(&err);
}

PyObject *ask_node(PyObject *callable, cfx_node *n)
{
    if (PyErr_Occurred())
        return NULL;
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? PyObject_CallOneArg(callable, node) : NULL;
    Py_XDECREF(node);
    return answer;
}

static int ask_impure(void *ctx, cfx_node *n)
{
    PyObject *answer = ask_node(ctx, n);
    int impure = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return impure;
}

/* The module that the paths of the graph lead from, if anybody needs to know: a new reference, or
 * NULL. */
static PyObject *owner_of_modules(PyGraph *self, PyObject *is_impure)
{
    if (is_impure != Py_None || !self->st->module_class)
        return NULL;
    PyObject *owner = PyObject_GetAttrString((PyObject *)self, "owning_module");
    if (owner && PyObject_TypeCheck(owner, (PyTypeObject *)self->st->module_class))
        return owner;
    Py_XDECREF(owner);
    return NULL;
}

PyObject *graph_dce(PyGraph *self, PyObject *is_impure)
{
    cfx_error err = {0};
    bool changed = false;
    const cfx_dce_options options = {
        .is_impure = is_impure == Py_None ? NULL : ask_impure, .ctx = is_impure,
        .like_torch_fx = true,
    };
    module_view view = {0};
    PyObject *owner = owner_of_modules(self, is_impure);
    if (PyErr_Occurred() || (owner && !modules_over(self->st, owner, &view))) {
        Py_XDECREF(owner);
        return NULL;
    }
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_pass_run(cfx_pass_find("dce"), self->g, owner ? &view.table : NULL,
                                     &options, &changed, &err);
    cfx_iter_end(&here);
    modules_done(&view);
    Py_XDECREF(owner);
    if (status != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    return PyBool_FromLong(changed);
}

/* ---- text ---------------------------------------------------------------------------------- */

static PyObject *printed(PyGraph *self, cfx_status (*print)(cfx_graph *, cfx_sink, cfx_error *))
{
    cfx_error err = {0};
    cfx_buffer out;
    PyObject *text = NULL;
    cfx_buffer_init(&out, NULL);
    cfx_buffer_reserve(&out, cfx_graph_size(self->g) * 96);  /* a guess: growing copies */
    if (print(self->g, cfx_buffer_sink(&out), &err) == CFX_OK && !PyErr_Occurred())
        text = str_from_utf8(out.data, out.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&out);
    return text;
}

static cfx_status print_table(cfx_graph *g, cfx_sink out, cfx_error *err)
{
    return cfx_graph_table(g, 0, out, err);
}

PyObject *graph_str(PyGraph *self) { return printed(self, cfx_graph_print); }

PyObject *graph_table(PyGraph *self, PyObject *unused)
{
    (void)unused;
    return printed(self, print_table);
}

PyObject *graph_text(PyGraph *self, PyObject *unused)
{
    (void)unused;
    return printed(self, cfx_graph_text);
}

/* _parse(text, allowed): a set of modules' names, whose functions the text may name. */
PyObject *graph_parse(PyObject *type, PyObject *args)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *text, *modules;
    PyObject *keep = NULL;
    text_names before;
    module_state *st = state_of((PyTypeObject *)type);
    if (!PyArg_ParseTuple(args, "OO!:_parse", &text, &PyFrozenSet_Type, &modules))
        return NULL;
    const char *utf8 = PyUnicode_Check(text) ? utf8_of(text, &size, &keep) : NULL;
    if (!utf8) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(text));
        return NULL;
    }
    resolve_from_text(modules, &before);
    cfx_graph *g = cfx_graph_parse(utf8, (size_t)size, NULL, &st->host, &err);
    resolve_as_before(before);
    Py_XDECREF(keep);
    if (!g)
        return raise_cfx(&err);
    PyObject *graph = graph_wrap_as((PyTypeObject *)type, st, g);
    cfx_graph_release(g);
    return graph;
}

PyObject *graph_equal(PyGraph *self, PyObject *args)
{
    PyObject *other;
    int shape_only = 0;
    if (!PyArg_ParseTuple(args, "O|p:_equal", &other, &shape_only))
        return NULL;
    if (!is_graph(self->st, other))
        return PyErr_Format(PyExc_TypeError, "expected a Graph, got %R",
                            (PyObject *)Py_TYPE(other));
    cfx_graph *g = ((PyGraph *)other)->g;
    bool same = cfx_graph_equal(self->g, g, shape_only);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(same);
}

PyObject *graph_structural_hash(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    int shape_only = 0;
    uint64_t hash;
    if (!PyArg_ParseTuple(args, "|p:_structural_hash", &shape_only))
        return NULL;
    cfx_status status = cfx_graph_hash(self->g, shape_only, &hash, &err);
    if (status != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    return PyLong_FromUnsignedLongLong(hash);
}
