/* sources.c - Graph: nodes by the function or module of the user's program that they came from.
 *
 * Metadata tells: the last entry of "source_fn_stack", a pair of a name and a function or class; or
 * where there is none, "torch_fn", a pair of a name and "kind.function"; or the last entry of
 * "nn_module_stack", a pair of a path and a class or its name. Nodes with the same name are what
 * one call has become.
 */
#include "graph_methods.h"

#include <cfx/embed/partition.h>

typedef struct sources_job {
    PyGraph *self;
    PyObject *wanted;   /* a list */
    PyObject *classes;  /* {qualified name: class} of those that are classes */
    PyObject *found;    /* {source: {name: [nodes]}} */
} sources_job;

/* What a node came from. New references or NULL: comparing runs code of the user's, which may
 * change the metadata. */
typedef struct origin {
    PyObject *name, *source;
} origin;

/* A new reference; NULL without an exception where there is none or it is None. */
static PyObject *meta_entry(PyObject *meta, const char *key)
{
    PyObject *value = PyDict_Check(meta) ? PyDict_GetItemString(meta, key) : NULL;
    return value == Py_None ? NULL : Py_XNewRef(value);
}

/* ---- which source a node has: 1 with it, 0, -1 with an exception --------------------------- */

static int take_pair(PyObject *pair, origin *found)
{
    if (!PyTuple_Check(pair) && !PyList_Check(pair)) {
        PyErr_Format(PyExc_TypeError, "expected a pair in the metadata of a node, got %R", pair);
        return -1;
    }
    if (PySequence_Fast_GET_SIZE(pair) != 2) {
        PyErr_Format(PyExc_ValueError, "expected a pair in the metadata of a node, got %R", pair);
        return -1;
    }
    Py_XSETREF(found->name, Py_NewRef(PySequence_Fast_GET_ITEM(pair, 0)));
    Py_XSETREF(found->source, Py_NewRef(PySequence_Fast_GET_ITEM(pair, 1)));
    return 1;
}

static int is_wanted(const sources_job *job, origin *found)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(job->wanted); i++) {
        PyObject *wanted = PyList_GET_ITEM(job->wanted, i);  /* a list of our own */
        int same = PyObject_RichCompareBool(found->source, wanted, Py_EQ);
        if (same > 0)
            Py_SETREF(found->source, Py_NewRef(wanted));
        if (same != 0)
            return same;
    }
    return 0;
}

static int from_stack(const sources_job *job, PyObject *stack, origin *found)
{
    const Py_ssize_t n = PyList_Check(stack) || PyTuple_Check(stack)
                             ? PySequence_Fast_GET_SIZE(stack) : 0;
    if (n == 0) {
        PyErr_Format(PyExc_IndexError, "source_fn_stack has no last entry: %R", stack);
        return -1;
    }
    if (take_pair(PySequence_Fast_GET_ITEM(stack, n - 1), found) < 0)
        return -1;
    return is_wanted(job, found);
}

static int from_function(const sources_job *job, PyObject *entry, origin *found)
{
    if (take_pair(entry, found) < 0)
        return -1;
    PyObject *words = PyUnicode_Check(found->source)
                          ? PyObject_CallMethod(found->source, "split", "s", ".") : NULL;
    if (!words || PyList_GET_SIZE(words) < 2) {
        Py_XDECREF(words);
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_SETREF(found->source, Py_NewRef(PyList_GET_ITEM(words, 1)));
    Py_DECREF(words);
    return is_wanted(job, found);
}

static int from_modules(const sources_job *job, PyObject *stack, origin *found)
{
    PyObject *entries = PyMapping_Values(stack);
    const Py_ssize_t n = entries ? PyList_GET_SIZE(entries) : 0;
    int wanted = entries ? 0 : -1;
    if (n > 0)
        wanted = take_pair(PyList_GET_ITEM(entries, n - 1), found);
    Py_XDECREF(entries);
    if (wanted <= 0 || !PyUnicode_Check(found->source))
        return wanted > 0 ? is_wanted(job, found) : wanted;
    PyObject *class = PyDict_GetItemWithError(job->classes, found->source);
    if (class)
        Py_SETREF(found->source, Py_NewRef(class));
    return class ? 1 : PyErr_Occurred() ? -1 : 0;
}

typedef int origin_reader(const sources_job *job, PyObject *entry, origin *found);

static int source_of(const sources_job *job, const cfx_node *n, PyObject *meta, origin *found)
{
    static const struct {
        const char *key;
        origin_reader *read;
    } places[] = {{"source_fn_stack", from_stack}, {"torch_fn", from_function},
                  {"nn_module_stack", from_modules}};
    /* the module that an attribute is in is not one that has become a get_attr */
    const size_t n_places = cfx_node_op(n) == CFX_OP_GET_ATTR ? 2 : 3;
    for (size_t i = 0; i < n_places; i++) {
        PyObject *entry = meta_entry(meta, places[i].key);
        int answer = entry ? places[i].read(job, entry, found) : 0;
        bool last = entry && i == 0;  /* a stack of functions says all */
        Py_XDECREF(entry);
        if (answer != 0 || last)
            return answer;
    }
    return 0;
}

/* ---- grouping ------------------------------------------------------------------------------ */

/* dict.setdefault(key, make()): borrowed. */
static PyObject *set_default(PyObject *dict, PyObject *key, PyObject *made)
{
    PyObject *value = made ? PyDict_SetDefault(dict, key, made) : NULL;
    Py_XDECREF(made);
    return value;
}

static int add_node(const sources_job *job, cfx_node *n)
{
    origin from = {NULL, NULL};
    PyObject *node = node_wrap(job->self, n);
    PyObject *meta = node ? PyObject_GetAttrString(node, "meta") : NULL;
    int found = meta ? source_of(job, n, meta, &from) : -1;
    if (found > 0) {
        PyObject *groups = set_default(job->found, from.source, PyDict_New());
        PyObject *nodes = groups ? set_default(groups, from.name, PyList_New(0)) : NULL;
        found = nodes ? PyList_Append(nodes, node) : -1;
    }
    Py_XDECREF(from.name);
    Py_XDECREF(from.source);
    Py_XDECREF(meta);
    Py_XDECREF(node);
    return found;
}

static int name_classes(const sources_job *job)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(job->wanted); i++) {
        PyObject *source = PyList_GET_ITEM(job->wanted, i);
        if (!PyType_Check(source))
            continue;
        PyObject *module = PyObject_GetAttrString(source, "__module__");
        PyObject *class = module ? PyObject_GetAttrString(source, "__qualname__") : NULL;
        PyObject *name = class ? PyUnicode_FromFormat("%S.%S", module, class) : NULL;
        int failed = name ? PyDict_SetItem(job->classes, name, source) : -1;
        Py_XDECREF(module);
        Py_XDECREF(class);
        Py_XDECREF(name);
        if (failed)
            return -1;
    }
    return 0;
}

static int group_nodes(const sources_job *job)
{
    int failed = name_classes(job);
    cfx_iter it;
    cfx_iter_begin(&it, job->self->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&it)) != NULL;)
        failed = add_node(job, n) < 0;
    cfx_iter_end(&it);
    return failed ? -1 : 0;
}

PyObject *graph_sources(PyGraph *self, PyObject *wanted)
{
    if (!PyList_Check(wanted))
        return PyErr_Format(PyExc_TypeError, "wanted_sources must be a list, got %R",
                            (PyObject *)Py_TYPE(wanted));
    sources_job job = {.self = self, .wanted = PySequence_List(wanted), .classes = PyDict_New(),
                       .found = PyDict_New()};
    if (!job.wanted || !job.classes || !job.found || group_nodes(&job) < 0)
        Py_CLEAR(job.found);
    Py_XDECREF(job.wanted);
    Py_XDECREF(job.classes);
    return job.found;
}

/* ---- the boundary of a group --------------------------------------------------------------- */

static cfx_status add_to_list(void *ctx, cfx_boundary_kind kind, cfx_node *n)
{
    PyObject **lists = ctx;
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    int failed = node ? PyList_Append(lists[kind], node) : -1;
    Py_XDECREF(node);
    return failed ? CFX_E_HOST : CFX_OK;
}

/* (inputs, outputs, params) of a list of nodes. */
PyObject *graph_boundary(PyGraph *self, PyObject *list)
{
    cfx_error err = {0};
    cfx_node **nodes = read_nodes(self, list);
    if (!nodes)
        return NULL;
    PyObject *lists[CFX_BOUNDARY_COUNT] = {PyList_New(0), PyList_New(0), PyList_New(0)};
    bool good = lists[0] && lists[1] && lists[2];
    if (good && cfx_nodes_boundary(nodes, (size_t)PyList_GET_SIZE(list), add_to_list, lists,
                                   &err) != CFX_OK) {
        raise_cfx(&err);
        good = false;
    }
    PyMem_Free(nodes);
    if (good)
        return Py_BuildValue("(NNN)", lists[0], lists[1], lists[2]);
    for (int i = 0; i < CFX_BOUNDARY_COUNT; i++)
        Py_XDECREF(lists[i]);
    return NULL;
}
