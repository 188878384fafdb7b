/* graph_find.c - Graph: nodes by opcode, target and name; the paths that nodes name. */
#include "graph_methods.h"

typedef struct found_list {
    cfx_node **nodes;
    size_t n, capacity;
} found_list;

static cfx_status add_found(void *ctx, cfx_node *n)
{
    found_list *found = ctx;
    if (found->n == found->capacity) {
        size_t capacity = found->capacity ? found->capacity * 2 : 16;
        cfx_node **nodes = PyMem_Resize(found->nodes, cfx_node *, capacity);
        if (!nodes)
            return CFX_E_NOMEM;
        found->nodes = nodes;
        found->capacity = capacity;
    }
    found->nodes[found->n++] = n;
    return CFX_OK;
}

static int compare_order(const void *a, const void *b)
{
    uint64_t left = cfx_node_order(*(cfx_node *const *)a);
    uint64_t right = cfx_node_order(*(cfx_node *const *)b);
    return (left > right) - (left < right);
}

static PyObject *found_to_py(PyGraph *self, const found_list *found)
{
    PyObject *list = PyList_New((Py_ssize_t)found->n);
    for (size_t i = 0; list && i < found->n; i++) {
        PyObject *node = node_wrap(self, found->nodes[i]);
        if (!node)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, node);
    }
    return list;
}

/* Each mention of a bound method (`Function.apply`) makes a new object, equal to the others. The
 * nodes that call one of those take the place of all that were found. */
static cfx_status keep_equal(found_list *found, PyObject *method)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->n; i++) {
        PyObject *target = cfx_node_target_object(found->nodes[i]);
        int equal = target && Py_TYPE(target) == &PyMethod_Type
                        ? PyObject_RichCompareBool(target, method, Py_EQ) : 0;
        if (equal < 0)
            return CFX_E_HOST;
        if (equal)
            found->nodes[kept++] = found->nodes[i];
    }
    found->n = kept;
    return CFX_OK;
}

static PyObject *find_held(PyGraph *self, cfx_opcode op, const cfx_target *target, bool sort)
{
    PyObject *method = target && target->object ? target->object : NULL;
    PyObject *list = NULL;
    found_list found = {0};
    if (method && Py_TYPE(method) == &PyMethod_Type)
        target = NULL;
    else
        method = NULL;
    cfx_iter pin = hold(self->g);
    cfx_status status = cfx_graph_find_nodes(self->g, op, target, add_found, &found);
    if (status == CFX_OK && method)
        status = keep_equal(&found, method);
    if (sort && found.n > 1)
        qsort(found.nodes, found.n, sizeof *found.nodes, compare_order);
    if (status == CFX_OK)
        list = found_to_py(self, &found);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    cfx_iter_end(&pin);
    PyMem_Free(found.nodes);
    return list;
}

PyObject *graph_find_nodes(FAST_ARGS)
{
    static const char *const names[] = {"op", "target", "sort"};
    static const arg_spec spec = {"find_nodes", names, 3, 1, 0};
    PyObject *in[3];
    cfx_opcode op;
    cfx_target target = {0};
    PyObject *keep = NULL;
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    const char *name = PyUnicode_Check(in[0]) ? PyUnicode_AsUTF8(in[0]) : "";
    if (!name || !cfx_opcode_parse(name, &op))
        return name ? PyList_New(0) : NULL;
    bool any = !in[1] || in[1] == Py_None;
    if (any && op == CFX_OP_CALL_FUNCTION)
        return PyErr_Format(PyExc_AssertionError, "target must not be None for call_function op");
    if (!any && !PyUnicode_Check(in[1]) && PyObject_Hash(in[1]) == -1)
        return NULL;
    bool callee = !any && (!PyUnicode_Check(in[1]) || is_name(self->st, in[1]));
    if (!any && callee != (op == CFX_OP_CALL_FUNCTION))
        return PyList_New(0);
    if (!any && PyUnicode_Check(in[1]) && !target_from_py(self->st, op, in[1], &target, &keep))
        return NULL;
    if (!any && !target.name)
        target.object = in[1];
    int sort = in[2] ? PyObject_IsTrue(in[2]) : 1;
    PyObject *list = NULL;
    if (sort >= 0)
        list = find_held(self, op, any ? NULL : &target, sort);
    Py_XDECREF(keep);
    return list;
}

/* The node of a name, or None: the one that owns it where several have it. */
PyObject *graph_find_name(PyGraph *self, PyObject *name)
{
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *text = PyUnicode_Check(name) ? utf8_of(name, &size, &keep) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(name));
        return NULL;
    }
    cfx_node *n = strlen(text) == (size_t)size ? cfx_graph_find(self->g, text) : NULL;
    Py_XDECREF(keep);
    return n ? node_wrap(self, n) : Py_NewRef(Py_None);
}

/* ---- paths --------------------------------------------------------------------------------- */

/* Keeps one node for each target, the first in the graph; nodes with one target come together. */
static cfx_status add_first(void *ctx, cfx_node *n)
{
    found_list *found = ctx;
    cfx_node **last = found->n ? &found->nodes[found->n - 1] : NULL;
    if (cfx_node_target_object(n))
        return CFX_OK;  /* no path: the node is being changed */
    if (!last || cfx_node_op(*last) != cfx_node_op(n) || !cfx_node_same_target(*last, n))
        return add_found(found, n);
    if (cfx_node_before(n, *last))
        *last = n;
    return CFX_OK;
}

static int append_paths(PyObject *list, const found_list *found)
{
    for (size_t i = 0; i < found->n; i++) {
        size_t size;
        const char *name = cfx_node_target(found->nodes[i], &size, NULL);
        PyObject *path = name ? str_from_utf8(name, size) : PyErr_NoMemory();
        int failed = path ? PyList_Append(list, path) : -1;
        Py_XDECREF(path);
        if (failed)
            return -1;
    }
    return 0;
}

static int own_paths(PyGraph *graph, bool calls_only, PyObject *list)
{
    found_list found = {0};
    int failed = -1;
    cfx_iter pin = hold(graph->g);
    cfx_status status = cfx_graph_find_nodes(graph->g, CFX_OP_CALL_MODULE, NULL, add_first, &found);
    if (status == CFX_OK && !calls_only)
        status = cfx_graph_find_nodes(graph->g, CFX_OP_GET_ATTR, NULL, add_first, &found);
    if (status != CFX_OK) {
        PyErr_NoMemory();
    } else {
        if (found.n > 1)
            qsort(found.nodes, found.n, sizeof *found.nodes, compare_order);
        failed = append_paths(list, &found);
    }
    cfx_iter_end(&pin);
    PyMem_Free(found.nodes);
    return failed;
}

typedef struct region_list {
    PyGraph **regions;
    size_t n;
    module_state *st;
} region_list;

/* Runs no code: the graph's table is being walked. */
static int add_region(void *object, void *ctx)
{
    region_list *list = ctx;
    if (!is_graph(list->st, object))
        return 0;
    PyGraph **regions = PyMem_Resize(list->regions, PyGraph *, list->n + 1);
    if (!regions)
        return -1;
    list->regions = regions;
    regions[list->n++] = (PyGraph *)Py_NewRef((PyObject *)object);
    return 0;
}

/* The paths of a graph, then those of its regions, which share its modules. */
static int all_paths(PyGraph *graph, bool calls_only, PyObject *list)
{
    region_list inner = {.st = graph->st};
    int failed = own_paths(graph, calls_only, list);
    if (!failed && cfx_graph_visit_hosts(graph->g, add_region, &inner) < 0) {
        PyErr_NoMemory();
        failed = -1;
    }
    for (size_t i = 0; i < inner.n; i++) {
        if (!failed)
            failed = all_paths(inner.regions[i], calls_only, list);
        Py_DECREF((PyObject *)inner.regions[i]);
    }
    PyMem_Free(inner.regions);
    return failed;
}

PyObject *graph_paths(PyGraph *self, PyObject *calls_only)
{
    int only = PyObject_IsTrue(calls_only);
    PyObject *list = only < 0 ? NULL : PyList_New(0);
    if (list && all_paths(self, only, list) < 0)
        Py_CLEAR(list);
    return list;
}
