/* regions.c - Graph: regions in the form that torch.fx has for them.
 *
 * torch has no regions: a graph reads GraphModules with get_attr and hands them to an operator.
 * _outline brings a graph into that form; cfx/interop.py makes the modules. On the way back regions
 * are arguments from the start, so that there is nothing to do.
 */
#include "graph_methods.h"

#include <cfx/ops.h>

/* How the arguments of an operator lie, and what torch.export calls the modules. */
typedef struct region_form {
    unsigned args;
    unsigned first;
    unsigned regions;
    const char *names[2];
} region_form;

static const region_form forms[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_cond] = {4, 1, 2, {"true_graph", "false_graph"}},
    [CFX_OPID_while_loop] = {3, 0, 2, {"while_loop_cond_graph", "while_loop_body_graph"}},
    [CFX_OPID_for_loop] = {3, 1, 1, {"for_loop_body_graph"}},
};
enum { MAX_ARGS = 4, BODY = 1, STATE = 2, ADDITIONAL = 3 };

typedef struct outline_job {
    PyGraph *self;
    PyObject *targets;   /* a dict {operator's name: torch's operator} */
    PyObject *is_taken;  /* whether a path is in use */
    PyObject *branches;  /* the answer: a dict {path: Graph} */
    PyObject *readers;   /* a dict {Graph: its get_attr Node} */
    unsigned next[CFX_OPERATOR_COUNT][2];  /* number of the next path of each name */
} outline_job;

static int raise_at(const cfx_node *n, const char *what)
{
    PyErr_Format(PyExc_RuntimeError, "node %%%s %s", cfx_node_name(n, NULL), what);
    return -1;
}

/* ---- the state of a loop ------------------------------------------------------------------- */

/* How many items of a loop's result its users read: each of them takes one, counted from the
 * start; else all. */
static size_t items_read(const cfx_node *n, size_t all)
{
    size_t most = 0;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const cfx_node *user = cfx_use_user(use);
        const char *target = cfx_node_target(user, NULL, NULL);
        cfx_value item = cfx_node_arg(user, 1);
        bool takes = target && cfx_node_op(user) == CFX_OP_CALL_FUNCTION &&
                     (strcmp(target, "operator.getitem") == 0 ||
                      strcmp(target, "_operator.getitem") == 0);
        if (!takes || item.kind != CFX_KIND_INT || item.as.i < 0 || (size_t)item.as.i >= all)
            return all;
        most = (size_t)item.as.i + 1 > most ? (size_t)item.as.i + 1 : most;
    }
    return most;
}

static bool is_items(cfx_value v) { return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST; }

static bool is_shorter(const cfx_node *n, size_t kept)
{
    size_t size;
    cfx_value_items(cfx_node_arg(n, STATE), &size);
    return kept < size;
}

/* How much of a loop's state must be state: what the body hands on unchanged, at the end, and
 * nobody reads afterwards, torch wants as additional inputs. At least one value stays. */
static size_t state_kept(const cfx_node *n)
{
    size_t size;
    cfx_value_items(cfx_node_arg(n, STATE), &size);
    const cfx_graph *body = cfx_value_graph(cfx_node_arg(n, BODY));
    const cfx_node *last = cfx_graph_last(body);
    cfx_value result = last && cfx_node_op(last) == CFX_OP_OUTPUT ? cfx_node_arg(last, 0)
                                                                  : cfx_value_invalid();
    size_t results, inputs = 0, kept = 0;
    const cfx_value *items = cfx_value_items(result, &results);
    size_t least = items_read(n, size);
    if (!is_items(result) || !is_items(cfx_node_arg(n, STATE)) || results != size)
        return size;
    for (const cfx_node *in = cfx_graph_first(body);
         in && cfx_node_op(in) == CFX_OP_PLACEHOLDER; in = cfx_node_next(in), inputs++)
        if (inputs < size && (items[inputs].kind != CFX_KIND_NODE || items[inputs].as.node != in))
            kept = inputs + 1;
    kept = kept > least ? kept : least;
    return inputs != size ? size : kept > 0 || size == 0 ? kept : 1;
}

/* The first `n` items of a tuple or list, floating. */
static cfx_value head(cfx_graph *g, cfx_value v, size_t n, cfx_error *err)
{
    size_t size;
    return cfx_value_seq(g, (cfx_kind)v.kind, cfx_value_items(v, &size), n, err);
}

/* A copy of a loop's body that returns only the first `kept` values; the body may be used by
 * another loop. */
static PyObject *shortened(PyObject *body, size_t kept)
{
    cfx_error err = {0};
    PyObject *copy = graph_clone((PyGraph *)body, NULL);
    if (!copy)
        return NULL;
    cfx_graph *g = ((PyGraph *)copy)->g;
    cfx_node *output = cfx_graph_last(g);
    cfx_value result = head(g, cfx_node_arg(output, 0), kept, &err);
    if (result.kind == CFX_KIND_INVALID || cfx_node_set_arg(output, 0, result, &err) != CFX_OK) {
        Py_DECREF(copy);
        return raise_cfx(&err);
    }
    return copy;
}

/* args[STATE] becomes two arguments. */
static bool split_state(cfx_graph *g, cfx_value *args, size_t kept, cfx_error *err)
{
    size_t size;
    const cfx_value *items = cfx_value_items(args[STATE], &size);
    size_t more = kept < size ? size - kept : 0;
    args[ADDITIONAL] = cfx_value_tuple(g, more ? items + kept : NULL, more, err);
    if (more)
        args[STATE] = head(g, args[STATE], kept, err);
    return args[STATE].kind != CFX_KIND_INVALID && args[ADDITIONAL].kind != CFX_KIND_INVALID;
}

/* ---- regions to get_attr nodes ------------------------------------------------------------- */

static PyObject *free_path(outline_job *job, cfx_operator op, unsigned i)
{
    for (;;) {
        PyObject *path = PyUnicode_FromFormat("%s_%u", forms[op].names[i], job->next[op][i]++);
        PyObject *answer = path ? PyObject_CallOneArg(job->is_taken, path) : NULL;
        int taken = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (taken == 0)
            return path;
        Py_XDECREF(path);
        if (taken < 0)
            return NULL;
    }
}

/* A get_attr node before `n`, for a region that has none. */
static PyObject *make_reader(outline_job *job, cfx_node *n, PyObject *region, cfx_operator op,
                             unsigned i)
{
    cfx_error err = {0};
    cfx_graph *g = job->self->g;
    PyObject *node = NULL;
    PyObject *path = free_path(job, op, i);
    const char *text = path ? PyUnicode_AsUTF8(path) : NULL;
    if (text && cfx_graph_set_insert_point(g, (cfx_insert_point){n, false}, &err) == CFX_OK) {
        cfx_node *reader = cfx_graph_get_attr(g, text, &err);
        if (reader)
            cfx_node_set_module_stack(reader, cfx_node_module_stack(n));
        node = reader ? node_wrap(job->self, reader) : NULL;
    }
    if (text && !node && !PyErr_Occurred())
        raise_cfx(&err);
    if (node && (PyDict_SetItem(job->branches, path, region) < 0 ||
                 PyDict_SetItem(job->readers, region, node) < 0))
        Py_CLEAR(node);
    Py_XDECREF(path);
    return node;
}

/* The get_attr node for a region, as a value; INVALID with an exception. A loop's body returns the
 * first `kept` values of its state. */
static cfx_value reader_of(outline_job *job, cfx_node *n, cfx_operator op, unsigned i, size_t kept)
{
    cfx_value v = cfx_node_arg(n, forms[op].first + i);
    bool shorter = op == CFX_OPID_while_loop && i == BODY && is_shorter(n, kept);
    PyObject *region = graph_wrap(job->self->st, cfx_value_graph(v));
    if (region && shorter)
        Py_SETREF(region, shortened(region, kept));
    PyObject *node = region ? Py_XNewRef(PyDict_GetItemWithError(job->readers, region)) : NULL;
    if (region && !node && !PyErr_Occurred())
        node = make_reader(job, n, region, op, i);
    cfx_value reader = node ? cfx_value_node(((PyNode *)node)->n) : cfx_value_invalid();
    Py_XDECREF(node);  /* the graph has it */
    Py_XDECREF(region);
    return reader;
}

static int check_form(const cfx_node *n, const region_form *form)
{
    size_t n_kwargs;
    cfx_value_items(cfx_node_kwargs(n), &n_kwargs);
    if (n_kwargs > 0 || cfx_node_num_args(n) != form->args)
        return raise_at(n, "must pass all arguments of an operator with regions by position");
    for (unsigned i = 0; i < form->regions; i++)
        if (cfx_node_arg(n, form->first + i).kind != CFX_KIND_GRAPH)
            return raise_at(n, "has something that is no Graph in the place of a region");
    return 0;
}

/* Whether there is a literal that torch's operators do not take, or give: they know tensors and
 * integers. A bool is passed, and None is given. */
static bool has_other(cfx_value v, cfx_kind allowed)
{
    size_t size;
    const cfx_value *items = cfx_value_items(v, &size);
    for (size_t i = 0; is_items(v) && i < size; i++)
        if (items[i].kind != CFX_KIND_NODE && items[i].kind != CFX_KIND_INT &&
            items[i].kind != allowed)
            return true;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_BOOL || v.kind == CFX_KIND_STR;
}

/* Whether torch's operator refuses what is passed or given. The call then stays cfx's, which runs
 * modules as well. */
static bool is_refused(const cfx_node *n, const region_form *form)
{
    if (has_other(cfx_node_arg(n, form->args - 1), CFX_KIND_BOOL))
        return true;
    const unsigned first = form->first + (form->first == 0);  /* a test gives a bool */
    for (unsigned i = first; i < form->first + form->regions; i++) {
        const cfx_graph *region = cfx_value_graph(cfx_node_arg(n, i));
        const cfx_node *last = cfx_graph_last(region);
        if (last && cfx_node_op(last) == CFX_OP_OUTPUT &&
            has_other(cfx_node_arg(last, 0), CFX_KIND_NONE))
            return true;
    }
    return false;
}

static int outline_node(outline_job *job, cfx_node *n, cfx_operator op)
{
    cfx_error err = {0};
    cfx_value args[MAX_ARGS];
    const region_form *form = &forms[op];
    if (check_form(n, form) < 0)
        return -1;
    const bool stays = is_refused(n, form);
    const bool loop = op == CFX_OPID_while_loop && !stays;
    const size_t kept = loop ? state_kept(n) : SIZE_MAX;
    for (unsigned i = 0; i < form->args; i++)
        args[i] = cfx_node_arg(n, i);
    for (unsigned i = 0; i < form->regions; i++) {
        args[form->first + i] = reader_of(job, n, op, i, kept);
        if (args[form->first + i].kind == CFX_KIND_INVALID)
            return -1;
    }
    cfx_target target = {NULL, NULL, 0};
    if (!stays)
        target.object = PyDict_GetItemString(job->targets, cfx_operator_name(op));
    cfx_value all = cfx_value_invalid();
    if (!loop || split_state(job->self->g, args, kept, &err))
        all = cfx_value_tuple(job->self->g, args, form->args + loop, &err);
    if (all.kind == CFX_KIND_INVALID || cfx_node_set_args(n, all, &err) != CFX_OK ||
        (target.object && cfx_node_set_target(n, target, &err) != CFX_OK)) {
        raise_cfx(&err);
        return -1;
    }
    return 0;
}

static int outline_all(outline_job *job)
{
    int failed = 0;
    cfx_iter it;
    cfx_iter_begin(&it, job->self->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_operator op = cfx_node_operator(n);
        if (cfx_operator_regions(op) > 0)
            failed = outline_node(job, n, op);
    }
    cfx_iter_end(&it);
    return failed;
}

/* _outline(targets, is_taken): {path: Graph} of the regions, which get_attr nodes read now. */
PyObject *graph_outline(PyGraph *self, PyObject *args)
{
    outline_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "O!O:_outline", &PyDict_Type, &job.targets, &job.is_taken))
        return NULL;
    cfx_insert_point old = cfx_graph_insert_point(self->g);
    job.branches = PyDict_New();
    job.readers = PyDict_New();
    if (!job.branches || !job.readers || outline_all(&job) < 0)
        Py_CLEAR(job.branches);
    cfx_graph_set_insert_point(self->g, old, NULL);
    Py_XDECREF(job.readers);
    return job.branches;
}
