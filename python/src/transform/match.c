/* match.c - Graph: finding patterns and replacing them (cfx.subgraph_rewriter, the matchers). */
#include "graph/graph_methods.h"

#include <stddef.h>

/* ---- options ------------------------------------------------------------------------------- */

/* The options that are yes or no, by their names in Python. */
static const struct {
    const char *name;
    size_t offset;
} switches[] = {
#define SWITCH(name) {#name, offsetof(cfx_match_options, name)}
    SWITCH(match_output), SWITCH(match_placeholder), SWITCH(ignore_literals), SWITCH(overlaps),
    SWITCH(regions), SWITCH(variadic), SWITCH(any_spelling), SWITCH(commutative), SWITCH(strict),
    SWITCH(jointly),
#undef SWITCH
};

static PyObject *wrap(cfx_node *n)
{
    return node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
}

/* What a get_attr reads, or None if its graph has no module: a new reference. */
static PyObject *attribute_of(cfx_node *n)
{
    const PyGraph *graph = cfx_graph_binding(cfx_node_graph(n));
    size_t size;
    if (!graph->owning_module || graph->owning_module == Py_None)
        return Py_NewRef(Py_None);
    const char *name = cfx_node_target(n, &size, NULL);
    PyObject *path = name ? str_from_utf8(name, size) : PyErr_NoMemory();
    PyObject *value = path ? path_get(graph->st, graph->owning_module, path) : NULL;
    Py_XDECREF(path);
    return value;
}

/* Tensors and parameters match those of the same class. */
static int same_class(PyObject *wanted, PyObject *value, const module_state *st)
{
    if (Py_TYPE(wanted) != Py_TYPE(value))
        return 0;
    int tensor = st->tensor_class ? PyObject_IsInstance(wanted, st->tensor_class) : 0;
    if (tensor == 0)
        PyErr_Format(PyExc_RuntimeError, "Unsupported type %S when matching attributes", wanted);
    return tensor > 0 ? 1 : -1;
}

/* Without modules to look at, the paths must be the same. */
static int same_attr(void *ctx, cfx_node *p, cfx_node *n)
{
    PyObject *wanted = attribute_of(p);
    PyObject *value = wanted ? attribute_of(n) : NULL;
    int same = -1;
    if (value && (wanted == Py_None || value == Py_None)) {
        const char *path = cfx_node_target(p, NULL, NULL);
        const char *other = cfx_node_target(n, NULL, NULL);
        same = path && other && strcmp(path, other) == 0;
    } else if (value) {
        same = same_class(wanted, value, ctx);
    }
    Py_XDECREF(wanted);
    Py_XDECREF(value);
    return same;
}

/* What a node passes for parameter `i` of a schema of torch.ops, or its default: a new
 * reference. */
static PyObject *argument(PyObject *args, PyObject *kwargs, PyObject *param, Py_ssize_t i)
{
    if (i < PyTuple_GET_SIZE(args))
        return Py_NewRef(PyTuple_GET_ITEM(args, i));
    PyObject *name = PyObject_GetAttrString(param, "name");
    PyObject *given = name ? PyDict_GetItemWithError(kwargs, name) : NULL;
    Py_XDECREF(name);
    if (given || PyErr_Occurred())
        return Py_XNewRef(given);
    return PyObject_GetAttrString(param, "default_value");
}

static PyObject *in_order(PyObject *node, PyObject *params)
{
    PyObject *args = PyObject_GetAttrString(node, "args");
    PyObject *kwargs = args ? PyObject_GetAttrString(node, "kwargs") : NULL;
    PyObject *list = kwargs ? PySequence_Fast(params, "expected a list of parameters") : NULL;
    PyObject *all = list ? PyTuple_New(PySequence_Fast_GET_SIZE(list)) : NULL;
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *one = argument(args, kwargs, PySequence_Fast_GET_ITEM(list, i), i);
        if (one)
            PyTuple_SET_ITEM(all, i, one);
        else
            Py_CLEAR(all);
    }
    Py_XDECREF(list);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    return all;
}

/* The arguments of an operator of torch.ops, defaults included, in the order of its schema. */
static cfx_status bind(void *ctx, cfx_node *n, cfx_value *args, cfx_error *err)
{
    PyObject *target = cfx_node_target_object(n);
    PyObject *schema = target ? PyObject_GetAttrString(target, "_schema") : NULL;
    (void)ctx;
    if (!schema && (!target || PyErr_ExceptionMatches(PyExc_AttributeError))) {
        PyErr_Clear();  /* a function of which nothing is known */
        return CFX_OK;
    }
    if (!schema)
        return cfx_error_set(err, CFX_E_HOST, "the schema of a function could not be read");
    PyObject *params = PyObject_GetAttrString(schema, "arguments");
    PyObject *node = params ? wrap(n) : NULL;
    PyObject *all = node ? in_order(node, params) : NULL;
    if (all)
        *args = value_from_py(cfx_graph_binding(cfx_node_graph(n)), all);
    Py_XDECREF(all);
    Py_XDECREF(node);
    Py_XDECREF(params);
    Py_DECREF(schema);
    return PyErr_Occurred() ? cfx_error_set(err, CFX_E_HOST, "arguments could not be bound")
                            : CFX_OK;
}

/* What options refer to. */
typedef struct options_keep {
    PyObject *name;
    module_view modules;
} options_keep;

static void release_options(options_keep *keep)
{
    Py_XDECREF(keep->name);
    modules_done(&keep->modules);
}

/* Reads a dict of options; false with an exception. release_options is due in any case. */
static bool read_options(const PyGraph *graph, PyObject *dict, cfx_match_options *opts,
                         options_keep *keep)
{
    PyObject *name = PyDict_GetItemString(dict, "node_name");
    PyObject *root = graph->owning_module;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        PyObject *on = PyDict_GetItemString(dict, switches[i].name);
        int yes = on ? PyObject_IsTrue(on) : 0;
        if (yes < 0)
            return false;
        *(bool *)((char *)opts + switches[i].offset) = yes;
    }
    opts->same_attr = same_attr;
    opts->bind = bind;
    opts->ctx = graph->st;
    if (root && root != Py_None && graph->st->module_class &&
        PyObject_TypeCheck(root, (PyTypeObject *)graph->st->module_class)) {
        if (!modules_over(graph->st, root, &keep->modules))
            return false;
        opts->modules = &keep->modules.table;
    }
    if (name)
        opts->node_name = c_string_of(name, "the name of a node", &keep->name);
    return !name || opts->node_name;
}

/* The core graphs of a sequence of Graphs: an array to be freed; NULL with an exception. */
static cfx_graph **read_graphs(PyGraph *self, PyObject *list)
{
    Py_ssize_t n = PyList_Check(list) ? PyList_GET_SIZE(list) : -1;
    cfx_graph **graphs = n < 0 ? NULL : PyMem_New(cfx_graph *, n + 1);
    if (!graphs)
        return n < 0 ? (PyErr_SetString(PyExc_TypeError, "expected a list of Graphs"), NULL)
                     : (PyErr_NoMemory(), NULL);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *graph = PyList_GET_ITEM(list, i);
        if (!is_graph(self->st, graph)) {
            PyErr_Format(PyExc_TypeError, "expected a Graph, got %R", (PyObject *)Py_TYPE(graph));
            PyMem_Free(graphs);
            return NULL;
        }
        graphs[i] = ((PyGraph *)graph)->g;
    }
    return graphs;
}

/* ---- results ------------------------------------------------------------------------------- */

static PyObject *values_to_list(PyGraph *graph, const cfx_value *values, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *value = value_to_py(graph, values[i]);
        if (value)
            PyList_SET_ITEM(list, (Py_ssize_t)i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static int bind_into(PyObject *dict, const cfx_match_binding *bound, PyGraph *graph)
{
    PyObject *key = wrap(bound->node);
    PyObject *value = key ? value_to_py(graph, bound->value) : NULL;
    int failed = value ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(key);
    return failed;
}

/* (pattern, nodes_map, inputs, outputs, made); inputs and outputs only if somebody will look. */
static PyObject *match_to_py(const cfx_match *match, bool whole)
{
    PyGraph *graph = cfx_graph_binding(match->graph);
    size_t n_inputs = whole ? match->n_inputs : 0;
    size_t n_outputs = whole ? match->n_outputs : 0;
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < match->n_bound; i++)
        if (bind_into(map, &match->bound[i], graph) < 0)
            Py_CLEAR(map);
    PyObject *inputs = map ? values_to_list(graph, match->inputs, n_inputs) : NULL;
    PyObject *outputs = inputs ? values_to_list(graph, match->outputs, n_outputs) : NULL;
    PyObject *made = outputs ? PyList_New(0) : NULL;
    PyObject *result = made ? Py_BuildValue("nOOOO", (Py_ssize_t)match->pattern, map, inputs,
                                            outputs, made) : NULL;
    Py_XDECREF(map);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    Py_XDECREF(made);
    return result;
}

/* While many objects are made that all stay, looking for garbage among them over and over would
 * take most of the time. Whether it was on. */
static int without_gc(void) { return PyGC_Disable(); }

static void with_gc(int on)
{
    if (on)
        PyGC_Enable();
}

static PyObject *matches_to_py(const cfx_matches *matches, bool whole)
{
    size_t n = cfx_matches_size(matches);
    PyObject *list = PyList_New((Py_ssize_t)n);
    int gc = without_gc();
    for (size_t i = 0; list && i < n; i++) {
        PyObject *match = match_to_py(cfx_matches_get(matches, i), whole);
        if (match)
            PyList_SET_ITEM(list, (Py_ssize_t)i, match);
        else
            Py_CLEAR(list);
    }
    with_gc(gc);
    return list;
}

/* What the caller wants in the place of the tuples: the first `n` of (anchor, nodes_map, made) for
 * `type`, where `anchors` has one for each pattern. */
typedef struct maker {
    PyObject *type, *anchors;
    Py_ssize_t n;
    bool carry_meta;
} maker;

static int make_results(PyObject *results, const maker *make)
{
    int gc = without_gc();
    Py_ssize_t n = PyList_GET_SIZE(results);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *match = PyList_GET_ITEM(results, i);
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(match, 0));
        PyObject *parts[] = {PyList_GetItem(make->anchors, number), PyTuple_GET_ITEM(match, 1),
                             PyTuple_GET_ITEM(match, 4)};
        PyObject *made = parts[0] ? PyObject_Vectorcall(make->type, parts, (size_t)make->n, NULL)
                                  : NULL;
        if (!made || PyList_SetItem(results, i, made) < 0)
            break;
    }
    with_gc(gc);
    return PyErr_Occurred() ? -1 : 0;
}

/* The new nodes of a match with the metadata of those that they are copies of, and the inputs that
 * have been replaced meanwhile. */
static int finish_match(PyObject *result, const cfx_match *match, cfx_graph *replacement)
{
    PyGraph *graph = cfx_graph_binding(match->graph);
    PyObject *map = PyTuple_GET_ITEM(result, 1);
    PyObject *made = PyTuple_GET_ITEM(result, 4);
    size_t i = 0;
    for (cfx_node *n = cfx_graph_first(replacement); n && i < match->n_made; n = cfx_node_next(n)) {
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER)
            continue;
        cfx_node *copy = match->made[i++];
        PyObject *node = copy_meta(graph, n, copy) < 0 ? NULL : node_wrap(graph, copy);
        int failed = node ? PyList_Append(made, node) : -1;
        Py_XDECREF(node);
        if (failed)
            return -1;
    }
    for (i = 0; i < match->n_bound; i++)
        if (cfx_node_op(match->bound[i].node) == CFX_OP_PLACEHOLDER &&
            bind_into(map, &match->bound[i], graph) < 0)
            return -1;
    return 0;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static PyObject *meta_of(cfx_node *n)
{
    PyObject *node = wrap(n);
    PyObject *meta = node ? PyObject_GetAttrString(node, "meta") : NULL;
    Py_XDECREF(node);
    return meta;
}

/* What tells where a node comes from is that of the anchor, unless it has its own. */
static int carry_origin(cfx_node *n, PyObject *anchor)
{
    static const char *const keys[] = {"stack_trace", "nn_module_stack"};
    PyObject *meta = meta_of(n);
    int failed = meta ? 0 : -1;
    for (size_t i = 0; !failed && i < sizeof keys / sizeof *keys; i++) {
        PyObject *old = PyDict_GetItemString(anchor, keys[i]);
        if (old && !PyDict_GetItemString(meta, keys[i]))
            failed = PyDict_SetItemString(meta, keys[i], old);
    }
    Py_XDECREF(meta);
    return failed;
}

/* A new node that is a result has all else, too, that was known of the old one. */
static int carry_all(cfx_node *old, cfx_node *n)
{
    PyObject *from = meta_of(old);
    PyObject *meta = from ? meta_of(n) : NULL;
    int failed = meta ? PyDict_Merge(meta, from, 0) : -1;
    Py_XDECREF(meta);
    Py_XDECREF(from);
    return failed;
}

static bool is_new(const cfx_match *match, const cfx_node *n)
{
    for (size_t i = 0; i < match->n_made; i++)
        if (match->made[i] == n)
            return true;
    return false;
}

static int carry_meta(const cfx_match *match)
{
    PyObject *anchor = meta_of(match->bound[0].value.as.node);
    int failed = anchor ? 0 : -1;
    for (size_t i = 0; !failed && i < match->n_outputs; i++) {
        cfx_value old = match->outputs[i];
        cfx_value now = match->results[i];
        if (old.kind == CFX_KIND_NODE && now.kind == CFX_KIND_NODE && is_new(match, now.as.node))
            failed = carry_all(old.as.node, now.as.node);
    }
    for (size_t i = 0; !failed && i < match->n_made; i++)
        failed = carry_origin(match->made[i], anchor);
    Py_XDECREF(anchor);
    return failed;
}

/* ---- deciding ------------------------------------------------------------------------------ */

/* The graph for each match, from a list that has one for each pattern. */
static int take_all(PyGraph *self, const cfx_matches *matches, PyObject *list, cfx_graph **graphs)
{
    for (size_t i = 0; i < cfx_matches_size(matches); i++) {
        PyObject *graph = PyList_GetItem(list, (Py_ssize_t)cfx_matches_get(matches, i)->pattern);
        if (!graph)
            return -1;
        if (!is_graph(self->st, graph)) {
            PyErr_SetString(PyExc_AssertionError, "Must provide either a replacement GraphModule "
                            "or a replacement callback");
            return -1;
        }
        graphs[i] = ((PyGraph *)graph)->g;
    }
    return 0;
}

/* `decide(match)`: a Graph to put in its place, or None to leave it alone. A new reference. */
static PyObject *decide_one(PyGraph *self, PyObject *decide, PyObject *match)
{
    PyObject *graph = PyObject_CallOneArg(decide, match);
    if (!graph || graph == Py_None || is_graph(self->st, graph))
        return graph;
    PyErr_Format(PyExc_TypeError, "a replacement must be a Graph, got %R",
                 (PyObject *)Py_TYPE(graph));
    Py_DECREF(graph);
    return NULL;
}

/* Asks for each match. Those that stay move up in `results`; their replacements are in `graphs`,
 * and alive in `alive`. */
static int decide_all(PyGraph *self, cfx_matches *matches, PyObject *decide, PyObject *results,
                      cfx_graph **graphs, PyObject *alive)
{
    const Py_ssize_t n = (Py_ssize_t)cfx_matches_size(matches);
    bool *keep = PyMem_Calloc((size_t)n + 1, sizeof *keep);
    Py_ssize_t kept = 0;
    int failed = keep ? 0 : -1;
    if (!keep)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        PyObject *match = PyList_GET_ITEM(results, i);
        PyObject *graph = decide_one(self, decide, match);
        failed = graph ? PyList_Append(alive, graph) : -1;
        keep[i] = graph && graph != Py_None;
        if (!failed && keep[i]) {
            graphs[kept] = ((PyGraph *)graph)->g;
            failed = PyList_SetItem(results, kept++, Py_NewRef(match));
        }
        Py_XDECREF(graph);
    }
    if (!failed) {
        cfx_matches_keep(matches, keep);
        failed = PyList_SetSlice(results, kept, n, NULL);
    }
    PyMem_Free(keep);
    return failed;
}

/* A replacement that does not fit is an AssertionError, as in torch.fx. */
static PyObject *raise_misfit(const cfx_error *err, cfx_status misfit)
{
    if (err->status != misfit || PyErr_Occurred())
        return raise_cfx(err);
    PyErr_SetString(PyExc_AssertionError, err->message);
    return NULL;
}

static int replace_all(PyGraph *self, cfx_matches *matches, PyObject *decide, PyObject *results,
                       bool carry)
{
    cfx_error err = {0};
    size_t n = cfx_matches_size(matches);
    cfx_graph **graphs = PyMem_New(cfx_graph *, n + 1);
    PyObject *alive = PyList_New(0);
    int failed = -1;
    if (!graphs)
        PyErr_NoMemory();
    else if (PyList_Check(decide))
        failed = take_all(self, matches, decide, graphs);
    else if (alive)
        failed = decide_all(self, matches, decide, results, graphs, alive);
    if (!failed && (cfx_matches_replace(matches, graphs, &err) != CFX_OK || PyErr_Occurred())) {
        raise_misfit(&err, CFX_E_VALUE);
        failed = -1;
    }
    n = failed ? 0 : cfx_matches_size(matches);
    int gc = without_gc();
    for (size_t i = 0; !failed && i < n; i++) {
        const cfx_match *match = cfx_matches_get(matches, i);
        failed = finish_match(PyList_GET_ITEM(results, (Py_ssize_t)i), match, graphs[i]) < 0 ||
                 (carry && carry_meta(match) < 0) ? -1 : 0;
    }
    with_gc(gc);
    Py_XDECREF(alive);
    PyMem_Free(graphs);
    return failed;
}

static PyObject *match_graphs(PyGraph *self, cfx_graph *const *patterns, size_t n,
                              const cfx_match_options *opts, PyObject *decide, const maker *make)
{
    cfx_error err = {0};
    cfx_matches *matches = cfx_matches_find(self->g, patterns, n, opts, &err);
    if (!matches || PyErr_Occurred()) {
        cfx_matches_free(matches);
        return raise_misfit(&err, CFX_E_GRAPH);
    }
    PyObject *results = matches_to_py(matches, !PyList_Check(decide));
    if (results && decide != Py_None &&
        replace_all(self, matches, decide, results, make->carry_meta) < 0)
        Py_CLEAR(results);
    cfx_matches_free(matches);
    if (results && make->type && make_results(results, make) < 0)
        Py_CLEAR(results);
    return results;
}

/* _match(patterns, options, decide, type, n, anchors): a tuple for each match, see match_to_py, or
 * what `type` makes of it. `decide` is None to replace nothing, a list of Graphs, or a callable. */
PyObject *graph_match(PyGraph *self, PyObject *args)
{
    PyObject *list, *dict, *decide;
    cfx_match_options opts = {0};
    options_keep keep = {.name = NULL};
    PyObject *results = NULL;
    maker make = {.n = 0};
    if (!PyArg_ParseTuple(args, "OO!O|OnO!:_match", &list, &PyDict_Type, &dict, &decide,
                          &make.type, &make.n, &PyList_Type, &make.anchors))
        return NULL;
    if (make.type && (make.n < 0 || make.n > 3 || !make.anchors))
        return PyErr_Format(PyExc_ValueError, "_match: a type takes up to 3 parts and needs a list "
                            "of anchors");
    cfx_graph **patterns = read_graphs(self, list);
    make.carry_meta = PyDict_GetItemString(dict, "carry_meta") == Py_True;
    if (patterns && read_options(self, dict, &opts, &keep))
        results = match_graphs(self, patterns, (size_t)PyList_GET_SIZE(list), &opts, decide,
                               &make);
    release_options(&keep);
    PyMem_Free(patterns);
    return results;
}

/* ---- explaining ---------------------------------------------------------------------------- */

/* (pattern, how many nodes were matched, the node of the pattern, the node or None, the line) */
static PyObject *miss_to_py(const cfx_miss *miss)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    PyObject *result = NULL;
    PyObject *wanted = wrap((cfx_node *)(uintptr_t)miss->wanted);
    PyObject *node = miss->node ? wrap((cfx_node *)(uintptr_t)miss->node) : Py_NewRef(Py_None);
    cfx_error err = {0};
    if (cfx_miss_print(miss, cfx_buffer_sink(&text), &err) != CFX_OK)
        raise_cfx(&err);
    else if (wanted && node)
        result = Py_BuildValue("nnOONN", (Py_ssize_t)miss->pattern, (Py_ssize_t)miss->n_bound,
                               wanted, node, str_from_utf8(miss->reason, strlen(miss->reason)),
                               str_from_utf8(text.data, text.size));
    Py_XDECREF(wanted);
    Py_XDECREF(node);
    cfx_buffer_free(&text);
    return result;
}

static PyObject *misses_to_py(const cfx_miss *misses, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *miss = miss_to_py(&misses[i]);
        if (miss)
            PyList_SET_ITEM(list, (Py_ssize_t)i, miss);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* _explain(patterns, options, max): why not, best first. */
PyObject *graph_explain(PyGraph *self, PyObject *args)
{
    PyObject *list, *dict;
    Py_ssize_t max;
    cfx_match_options opts = {0};
    options_keep keep = {.name = NULL};
    PyObject *result = NULL;
    cfx_error err = {0};
    size_t n = 0;
    if (!PyArg_ParseTuple(args, "OO!n:_explain", &list, &PyDict_Type, &dict, &max))
        return NULL;
    cfx_graph **patterns = read_graphs(self, list);
    cfx_miss *misses = patterns && max > 0 ? PyMem_New(cfx_miss, max) : NULL;
    if (patterns && max > 0 && !misses)
        PyErr_NoMemory();
    if (misses && read_options(self, dict, &opts, &keep)) {
        cfx_status status = cfx_matches_explain(self->g, patterns, (size_t)PyList_GET_SIZE(list),
                                                &opts, misses, (size_t)max, &n, &err);
        result = status == CFX_OK && !PyErr_Occurred() ? misses_to_py(misses, n)
                                                       : raise_misfit(&err, CFX_E_GRAPH);
    } else if (patterns && max <= 0) {
        result = PyList_New(0);
    }
    release_options(&keep);
    PyMem_Free(misses);
    PyMem_Free(patterns);
    return result;
}

/* _anchors(match_output): the anchors of this graph as a pattern. */
PyObject *graph_anchors(PyGraph *self, PyObject *match_output)
{
    cfx_error err = {0};
    size_t n = cfx_graph_size(self->g) + 1;
    const cfx_match_options opts = {.match_output = match_output == Py_True};
    cfx_node **anchors = PyMem_New(cfx_node *, n);
    if (!anchors)
        return PyErr_NoMemory();
    PyObject *list = cfx_pattern_anchors(self->g, &opts, anchors, n, &n, &err) == CFX_OK
                         ? list_nodes(self, anchors, n) : raise_misfit(&err, CFX_E_GRAPH);
    PyMem_Free(anchors);
    return list;
}
