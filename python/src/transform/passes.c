/* passes.c - the table of passes, passes with options of their own, repeated parts. */
#include "graph/graph_methods.h"

/* {name: (what it is if it is not given, summary)} */
static PyObject *options_of(const cfx_pass *pass)
{
    const cfx_pass_option *option;
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && (option = cfx_pass_get_option(pass, i)) != NULL; i++) {
        PyObject *value = option->is_flag ? PyBool_FromLong((long)option->default_value)
                                          : PyLong_FromUnsignedLongLong(option->default_value);
        PyObject *row = Py_BuildValue("(Ns)", value, option->summary);
        if (!row || PyDict_SetItemString(all, option->name, row) < 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all;
}

/* Adds the names of set bits to a set, in lower case: "needs_modules". */
static int add_flags(PyObject *set, const char *prefix, unsigned bits,
                     const char *(*name_of)(unsigned bit))
{
    for (unsigned bit = 0; name_of(bit); bit++) {
        if (!(bits & 1u << bit))
            continue;
        PyObject *upper = PyUnicode_FromFormat("%s_%s", prefix, name_of(bit));
        PyObject *name = upper ? PyObject_CallMethod(upper, "lower", NULL) : NULL;
        const int status = name ? PySet_Add(set, name) : -1;
        Py_XDECREF(name);
        Py_XDECREF(upper);
        if (status < 0)
            return -1;
    }
    return 0;
}

static PyObject *flags_of(const cfx_pass *pass)
{
    PyObject *set = PyFrozenSet_New(NULL);
    if (set && (add_flags(set, "needs", pass->needs, cfx_pass_need_name) < 0 ||
                add_flags(set, "keeps", pass->keeps, cfx_pass_keep_name) < 0))
        Py_CLEAR(set);
    return set;
}

/* [(name, summary, needs, keeps, options, flags), ...] in the order of the table. */
static PyObject *py_passes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && cfx_pass_get(i); i++) {
        const cfx_pass *pass = cfx_pass_get(i);
        char needs[CFX_PASS_WORDS_SIZE];
        char keeps[CFX_PASS_WORDS_SIZE];
        PyObject *row = Py_BuildValue("(ssssNN)", pass->name, pass->summary,
                                      cfx_pass_needs_words(pass->needs, needs),
                                      cfx_pass_keeps_words(pass->keeps, keeps), options_of(pass),
                                      flags_of(pass));
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

static PyObject *refuse_pass(PyObject *name)
{
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && cfx_pass_get(i); i++) {
        PyObject *known = PyUnicode_FromString(cfx_pass_get(i)->name);
        if (!known || PyList_Append(names, known) < 0)
            Py_CLEAR(names);
        Py_XDECREF(known);
    }
    PyObject *comma = names ? PyUnicode_FromString(", ") : NULL;
    PyObject *all = comma ? PyUnicode_Join(comma, names) : NULL;
    if (all)
        PyErr_Format(PyExc_ValueError, "there is no pass %R; the passes are %U", name, all);
    Py_XDECREF(all);
    Py_XDECREF(comma);
    Py_XDECREF(names);
    return NULL;
}

/* _graph_for(module, *names): the graph that these passes are to run on, if there are such passes;
 * all is looked at before the first runs. */
static PyObject *py_graph_for(PyObject *module, PyObject *args)
{
    const module_state *st = PyModule_GetState(module);
    PyObject *given = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : Py_None;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *name = PyTuple_GET_ITEM(args, i), *keep;
        const char *text = c_string_of(name, "the name of a pass", &keep);
        const cfx_pass *pass = text ? cfx_pass_find(text) : NULL;
        Py_XDECREF(keep);
        if (!pass)
            return text ? refuse_pass(name) : NULL;
    }
    if (is_graph(st, given))
        return Py_NewRef(given);
    PyObject *graph = PyObject_GetAttrString(given, "graph");
    if (graph && is_graph(st, graph))
        return graph;
    if (!graph && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    Py_XDECREF(graph);
    return PyErr_Format(PyExc_TypeError, "passes run on a cfx.GraphModule or a cfx.Graph, not on "
                        "%.100s; trace it with cfx.symbolic_trace, or convert a graph of torch.fx "
                        "with cfx.interop.from_torch", Py_TYPE(given)->tp_name);
}

PyMethodDef pass_functions[] = {
    {"_passes", py_passes, METH_NOARGS, NULL},
    {"_graph_for", py_graph_for, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Whether anything had to be moved; stable unless breadth-first is asked for. */
PyObject *graph_toposort(PyGraph *self, PyObject *breadth_first)
{
    cfx_error err = {0};
    bool changed = false;
    const cfx_toposort_options options = {breadth_first == Py_True};
    cfx_status status =
        cfx_pass_run(cfx_pass_find("toposort"), self->g, NULL, &options, &changed, &err);
    return status == CFX_OK ? PyBool_FromLong(changed) : raise_cfx(&err);
}

/* ---- repeated parts ------------------------------------------------------------------------ */

static PyObject *copy_nodes(const cfx_repeats *found, size_t group, size_t copy)
{
    const size_t n = cfx_repeats_num_nodes(found, group);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        cfx_node *node = cfx_repeats_node(found, group, copy, i);
        PyObject *object = node_wrap(cfx_graph_binding(cfx_node_graph(node)), node);
        if (object)
            PyList_SET_ITEM(list, (Py_ssize_t)i, object);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* ([path or None of each copy], [nodes of each copy]). */
static PyObject *group_copies(const cfx_repeats *found, size_t group)
{
    PyObject *paths = PyList_New(0);
    PyObject *copies = PyList_New(0);
    bool failed = !paths || !copies;
    for (size_t i = 0; !failed && i < cfx_repeats_num_copies(found, group); i++) {
        PyObject *path = Py_BuildValue("z", cfx_repeats_path(found, group, i));
        PyObject *nodes = copy_nodes(found, group, i);
        failed = !path || !nodes || PyList_Append(paths, path) < 0 ||
                 PyList_Append(copies, nodes) < 0;
        Py_XDECREF(path);
        Py_XDECREF(nodes);
    }
    PyObject *pair = failed ? NULL : PyTuple_Pack(2, paths, copies);
    Py_XDECREF(paths);
    Py_XDECREF(copies);
    return pair;
}

/* A pair as above for each group. */
PyObject *graph_repeated(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    Py_ssize_t min_nodes;
    Py_ssize_t min_copies;
    if (!PyArg_ParseTuple(args, "nn:_repeated", &min_nodes, &min_copies))
        return NULL;
    const cfx_repeat_options options = {min_nodes > 0 ? (size_t)min_nodes : 0,
                                        min_copies > 0 ? (size_t)min_copies : 0};
    cfx_repeats *found = cfx_graph_find_repeated(self->g, NULL, &options, &err);
    if (!found || PyErr_Occurred()) {
        cfx_repeats_free(found);
        return raise_cfx(&err);
    }
    PyObject *groups = PyList_New(0);
    for (size_t i = 0; groups && i < cfx_repeats_num_groups(found); i++) {
        PyObject *group = group_copies(found, i);
        if (!group || PyList_Append(groups, group) < 0)
            Py_CLEAR(groups);
        Py_XDECREF(group);
    }
    cfx_repeats_free(found);
    return groups;
}

/* ---- passes that ask back ------------------------------------------------------------------ */

static PyObject *wrapped(cfx_node *n)
{
    return node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
}

/* What callbacks[which] answers for two nodes: 1, 0, or -1 with an exception. */
static int ask_pair(PyObject *callbacks, Py_ssize_t which, cfx_node *a, cfx_node *b)
{
    PyObject *x = PyErr_Occurred() ? NULL : wrapped(a);
    PyObject *y = x ? wrapped(b) : NULL;
    PyObject *answer = y ? PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(callbacks, which), x, y,
                                                        NULL) : NULL;
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(answer);
    return truth;
}

static int ask_fits(void *ctx, cfx_node *n, cfx_node *x) { return ask_pair(ctx, 0, n, x); }

static bool ask_same(void *ctx, cfx_node *a, cfx_node *b) { return ask_pair(ctx, 1, a, b) > 0; }

/* _reinplace((fits, same_elements)) */
PyObject *graph_reinplace(PyGraph *self, PyObject *callbacks)
{
    cfx_error err = {0};
    bool changed = false;
    if (!PyTuple_Check(callbacks) || PyTuple_GET_SIZE(callbacks) != 2)
        return PyErr_Format(PyExc_TypeError, "expected two callables, got %R", callbacks);
    const cfx_reinplace_options options = {.fits = ask_fits, .same_elements = ask_same,
                                           .ctx = callbacks};
    cfx_status status =
        cfx_pass_run(cfx_pass_find("reinplace"), self->g, NULL, &options, &changed, &err);
    if (status != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    return PyBool_FromLong(changed);
}

static cfx_status add_left(void *ctx, cfx_node *n, const char *why, cfx_error *err)
{
    PyObject *node = wrapped(n);
    PyObject *pair = node ? Py_BuildValue("(Os)", node, why) : NULL;
    int failed = pair ? PyList_Append(ctx, pair) : -1;
    Py_XDECREF(node);
    Py_XDECREF(pair);
    return failed ? cfx_error_set(err, CFX_E_HOST, "could not record a node") : CFX_OK;
}

/* _functionalize(same_dtypes): [(node, why)] of the in-place calls that stay. */
PyObject *graph_functionalize(PyGraph *self, PyObject *same_dtypes)
{
    cfx_error err = {0};
    PyObject *left = PyList_New(0);
    const cfx_functionalize_options options = {.same_dtypes = same_dtypes == Py_True,
                                               .left = add_left, .ctx = left};
    if (!left)
        return NULL;
    cfx_status status =
        cfx_pass_run(cfx_pass_find("functionalize"), self->g, NULL, &options, NULL, &err);
    if (status == CFX_OK && !PyErr_Occurred())
        return left;
    Py_DECREF(left);
    return raise_cfx(&err);
}
