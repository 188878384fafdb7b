/* splitter.c - Graph: the steps of the splitter, on the sets and dicts that its users see. */
#include "graph/graph_methods.h"
#include "splitter.h"

/* ---- from Python --------------------------------------------------------------------------- */

bool is_unchanged(PyGraph *self, uint64_t version)
{
    if (!PyErr_Occurred() && cfx_graph_version(self->g) != version)
        PyErr_SetString(PyExc_RuntimeError, "the graph was changed while the splitter read it");
    return !PyErr_Occurred();
}

/* Whether the value of a node is a tensor, if `is_tensor` can tell without changing the graph;
 * else -1 with an exception. */
static int ask(PyGraph *self, PyObject *is_tensor, PyObject *node)
{
    const uint64_t version = cfx_graph_version(self->g);
    PyObject *answer = PyObject_CallOneArg(is_tensor, node);
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (yes < 0 || cfx_graph_version(self->g) == version)
        return yes;
    PyErr_SetString(PyExc_RuntimeError, "the callback that checks which nodes return tensors "
                    "changed the graph");
    return -1;
}

unsigned char *read_acc(PyGraph *self, PyObject *acc, PyObject *is_tensor, bool all_calls)
{
    size_t i = 0;
    const uint64_t version = cfx_graph_version(self->g);
    unsigned char *flags = PyMem_Malloc(cfx_graph_size(self->g) + 1);
    if (!flags)
        return PyErr_NoMemory(), NULL;
    for (cfx_node *n = cfx_graph_first(self->g); n; n = cfx_node_next(n), i++) {
        PyObject *node = node_wrap(self, n);
        int inside = node ? PySet_Contains(acc, node) : -1;
        bool asked = is_tensor && (inside > 0 || (all_calls && is_call(n)));
        int tensor = inside >= 0 && asked ? ask(self, is_tensor, node) : 0;
        Py_XDECREF(node);
        if (inside < 0 || tensor < 0 || !is_unchanged(self, version)) {
            PyMem_Free(flags);
            return NULL;
        }
        flags[i] =
            (unsigned char)((inside ? CFX_FUSION_ACC : 0) | (tensor ? CFX_FUSION_TENSOR : 0));
    }
    return flags;
}

/* Adds a pair for each node of this graph in `others`. */
static int read_pairs_of(PyGraph *self, cfx_node *n, PyObject *others, need_list *list)
{
    PyObject *it = PyObject_GetIter(others);
    int failed = it ? 0 : -1;
    for (PyObject *other; !failed && (other = PyIter_Next(it)) != NULL; Py_DECREF(other)) {
        if (!is_node(self->st, other) || node_graph((PyNode *)other) != self)
            continue;
        if (list->n == list->capacity) {
            list->capacity = list->capacity ? 2 * list->capacity : 64;
            cfx_need *pairs = PyMem_Resize(list->pairs, cfx_need, list->capacity);
            if (!pairs) {
                PyErr_NoMemory();
                failed = -1;
                continue;
            }
            list->pairs = pairs;
        }
        list->pairs[list->n++] = (cfx_need){n, ((PyNode *)other)->n};
    }
    Py_XDECREF(it);
    return failed || PyErr_Occurred() ? -1 : 0;
}

int read_pairs(PyGraph *self, PyObject *deps, need_list *list)
{
    PyObject *items = PyDict_Items(deps);
    *list = (need_list){.pairs = PyMem_New(cfx_need, 1), .capacity = 1};
    if (!list->pairs)
        PyErr_NoMemory();
    int failed = items && list->pairs ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(items); i++) {
        PyObject *node = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        if (is_node(self->st, node) && node_graph((PyNode *)node) == self)
            failed = read_pairs_of(self, ((PyNode *)node)->n,
                                   PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1), list);
    }
    Py_XDECREF(items);
    return failed;
}

/* {node: the number of its group} */
static PyObject *number_groups(PyGraph *self, PyObject *groups)
{
    PyObject *numbers = PyDict_New();
    for (Py_ssize_t i = 0; numbers && i < PyList_GET_SIZE(groups); i++) {
        PyObject *nodes = PySequence_List(PyList_GET_ITEM(groups, i));
        PyObject *number = nodes ? PyLong_FromSsize_t(i) : NULL;
        int failed = number ? 0 : -1;
        for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(nodes); k++)
            failed = need_node(self, PyList_GET_ITEM(nodes, k))
                         ? PyDict_SetItem(numbers, PyList_GET_ITEM(nodes, k), number) : -1;
        Py_XDECREF(number);
        Py_XDECREF(nodes);
        if (failed)
            Py_CLEAR(numbers);
    }
    return numbers;
}

uint32_t *read_groups(PyGraph *self, PyObject *groups)
{
    size_t i = 0;
    PyObject *numbers = number_groups(self, groups);
    const uint64_t version = cfx_graph_version(self->g);
    uint32_t *by_node = numbers ? PyMem_New(uint32_t, cfx_graph_size(self->g) + 1) : NULL;
    if (numbers && !by_node)
        PyErr_NoMemory();
    for (cfx_node *n = cfx_graph_first(self->g); by_node && n; n = cfx_node_next(n), i++) {
        PyObject *node = node_wrap(self, n);
        PyObject *number = node ? PyDict_GetItemWithError(numbers, node) : NULL;
        by_node[i] = number ? (uint32_t)PyLong_AsUnsignedLong(number) : CFX_NO_PART;
        Py_XDECREF(node);
        if (!is_unchanged(self, version)) {
            PyMem_Free(by_node);
            by_node = NULL;
        }
    }
    Py_XDECREF(numbers);
    return by_node;
}

/* ---- which calls need which ---------------------------------------------------------------- */

int add_to_set(PyGraph *self, PyObject *sets, cfx_node *key, cfx_node *member)
{
    PyObject *node = node_wrap(self, key);
    PyObject *other = node && member ? node_wrap(self, member) : NULL;
    PyObject *set = node ? Py_XNewRef(PyDict_GetItemWithError(sets, node)) : NULL;
    int failed = PyErr_Occurred() ? -1 : 0;
    if (!failed && !set) {
        set = PySet_New(NULL);
        failed = set ? PyDict_SetItem(sets, node, set) : -1;
    }
    if (!failed && other)
        failed = PySet_Add(set, other) < 0 || PySet_Discard(set, node) < 0 ? -1 : 0;
    Py_XDECREF(set);
    Py_XDECREF(other);
    Py_XDECREF(node);
    return failed;
}

int begin_sets(PyGraph *self, PyObject *sets, const uint32_t *groups)
{
    int failed = 0;
    const uint64_t version = cfx_graph_version(self->g);
    for (cfx_node *n = cfx_graph_first(self->g); !failed && n; n = cfx_node_next(n), groups++)
        if (*groups != CFX_NO_PART)
            failed = add_to_set(self, sets, n, NULL) < 0 || !is_unchanged(self, version) ? -1 : 0;
    return failed;
}

PyObject *graph_deps(PyGraph *self, PyObject *unused)
{
    (void)unused;
    PyObject *all = PyDict_New();
    for (cfx_node *n = cfx_graph_first(self->g); all && n; n = cfx_node_next(n))
        for (size_t i = 0; all && is_call(n) && i < cfx_node_num_inputs(n); i++)
            if (is_call(cfx_node_input(n, i)) && add_to_set(self, all, n, cfx_node_input(n, i)) < 0)
                Py_CLEAR(all);
    return all;
}

static cfx_status add_need(void *sets, cfx_node *node, cfx_node *needs)
{
    PyGraph *self = cfx_graph_binding(cfx_node_graph(node));
    return add_to_set(self, sets, node, needs) < 0 ? CFX_E_HOST : CFX_OK;
}

PyObject *graph_fuse_deps(PyGraph *self, PyObject *args)
{
    PyObject *deps, *list;
    need_list needs = {0};
    cfx_error err = {0};
    bool good = false;
    if (!PyArg_ParseTuple(args, "O!O!:_fuse_deps", &PyDict_Type, &deps, &PyList_Type, &list))
        return NULL;
    uint32_t *groups = read_groups(self, list);
    const uint64_t version = cfx_graph_version(self->g);
    if (groups && read_pairs(self, deps, &needs) == 0 && is_unchanged(self, version) &&
        begin_sets(self, deps, groups) == 0) {
        good = cfx_graph_fuse_needs(self->g, groups, needs.pairs, needs.n, add_need, deps, &err) ==
               CFX_OK;
        if (!good)
            raise_cfx(&err);
    }
    PyMem_Free(groups);
    PyMem_Free(needs.pairs);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* A list of (accelerated, nodes). */
static PyObject *acc_parts_to_py(PyGraph *self, cfx_node *const *nodes, const cfx_acc_part *parts,
                                 size_t n)
{
    size_t start = 0;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; start = parts[i++].end) {
        PyObject *calls = list_nodes(self, nodes + start, parts[i].end - start);
        PyObject *part = calls ? Py_BuildValue("(NN)", PyBool_FromLong(parts[i].acc), calls) : NULL;
        if (part)
            PyList_SET_ITEM(list, (Py_ssize_t)i, part);
        else
            Py_CLEAR(list);
    }
    return list;
}

PyObject *graph_acc_groups(PyGraph *self, PyObject *args)
{
    PyObject *deps, *acc, *answer = NULL;
    need_list needs = {0};
    cfx_error err = {0};
    size_t n;
    const size_t size = cfx_graph_size(self->g) + 1;
    if (!PyArg_ParseTuple(args, "O!O!:_acc_groups", &PyDict_Type, &deps, &PySet_Type, &acc))
        return NULL;
    const uint64_t version = cfx_graph_version(self->g);
    unsigned char *flags = read_acc(self, acc, NULL, false);
    cfx_node **nodes = PyMem_New(cfx_node *, size);
    cfx_acc_part *parts = PyMem_New(cfx_acc_part, size);
    if (!nodes || !parts) {
        PyErr_NoMemory();
    } else if (flags && read_pairs(self, deps, &needs) == 0 && is_unchanged(self, version)) {
        cfx_status status = cfx_graph_acc_parts(self->g, flags, needs.pairs, needs.n, nodes, parts,
                                                &n, &err);
        answer = status == CFX_OK ? acc_parts_to_py(self, nodes, parts, n)
                 : status == CFX_E_GRAPH ? Py_NewRef(Py_None) : raise_cfx(&err);
    }
    PyMem_Free(flags);
    PyMem_Free(nodes);
    PyMem_Free(parts);
    PyMem_Free(needs.pairs);
    return answer;
}

/* The nodes of all parts in one list, and those of accelerated parts in a set: false with an
 * exception. */
static bool read_acc_parts(PyObject *list, PyObject *all, PyObject *acc, cfx_acc_part *parts)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *nodes;
        int is_acc;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "pO!", &is_acc, &PyList_Type, &nodes) ||
            PyList_SetSlice(all, PyList_GET_SIZE(all), PyList_GET_SIZE(all), nodes) < 0)
            return false;
        for (Py_ssize_t k = 0; is_acc && k < PyList_GET_SIZE(nodes); k++)
            if (PySet_Add(acc, PyList_GET_ITEM(nodes, k)) < 0)
                return false;
        parts[i] = (cfx_acc_part){(size_t)PyList_GET_SIZE(all), is_acc};
    }
    return true;
}

PyObject *graph_move_non_tensors(PyGraph *self, PyObject *args)
{
    PyObject *list, *is_tensor, *answer = NULL;
    cfx_error err = {0};
    if (!PyArg_ParseTuple(args, "O!O:_move_non_tensors", &PyList_Type, &list, &is_tensor))
        return NULL;
    const size_t n = (size_t)PyList_GET_SIZE(list);
    PyObject *all = PyList_New(0);
    PyObject *acc = PySet_New(NULL);
    cfx_acc_part *parts = PyMem_New(cfx_acc_part, n + 1);
    if (!parts)
        PyErr_NoMemory();
    bool good = all && acc && parts && read_acc_parts(list, all, acc, parts);
    unsigned char *flags = good ? read_acc(self, acc, is_tensor, false) : NULL;
    cfx_node **nodes = flags ? read_nodes(self, all) : NULL;
    if (nodes && cfx_graph_move_non_tensors(self->g, flags, nodes, parts, n, &err) == CFX_OK)
        answer = acc_parts_to_py(self, nodes, parts, n);
    else if (nodes)
        raise_cfx(&err);
    PyMem_Free(flags);
    PyMem_Free(nodes);
    PyMem_Free(parts);
    Py_XDECREF(all);
    Py_XDECREF(acc);
    return answer;
}

/* ---- values that are not tensors ----------------------------------------------------------- */

typedef struct drop_job {
    PyGraph *self;
    PyObject *acc;      /* a set */
    PyObject *dropped;  /* a list */
} drop_job;

static cfx_status drop_node(void *ctx, cfx_node *n)
{
    const drop_job *job = ctx;
    PyObject *node = node_wrap(job->self, n);
    int failed = !node || PySet_Discard(job->acc, node) < 0 ||
                 PyList_Append(job->dropped, node) < 0;
    Py_XDECREF(node);
    return failed ? CFX_E_HOST : CFX_OK;
}

PyObject *graph_drop_acc(PyGraph *self, PyObject *args)
{
    PyObject *is_tensor, *work;
    cfx_error err = {0};
    cfx_node **from = NULL;
    drop_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "O!OO:_drop_acc", &PySet_Type, &job.acc, &is_tensor, &work))
        return NULL;
    job.dropped = PyList_New(0);
    unsigned char *flags = job.dropped ? read_acc(self, job.acc, is_tensor, true) : NULL;
    bool good = flags != NULL;
    if (good && PyList_Check(work))
        good = (from = read_nodes(self, work)) != NULL;
    if (good) {
        cfx_status status =
            work == Py_False
                ? cfx_graph_drop_non_tensor_outputs(self->g, flags, drop_node, &job, &err)
                : cfx_graph_drop_non_tensor_inputs(self->g, flags, from,
                                                   from ? (size_t)PyList_GET_SIZE(work) : 0,
                                                   drop_node, &job, &err);
        good = status == CFX_OK;
        if (!good)
            raise_cfx(&err);
    }
    PyMem_Free(from);
    PyMem_Free(flags);
    if (!good)
        Py_CLEAR(job.dropped);
    return job.dropped;
}

/* ---- groups that must stay together -------------------------------------------------------- */

static PyObject *sets_of_groups(PyGraph *self, const uint32_t *groups, size_t n)
{
    PyObject *sets = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; sets && i < n; i++) {
        PyObject *set = PySet_New(NULL);
        if (set)
            PyList_SET_ITEM(sets, (Py_ssize_t)i, set);
        else
            Py_CLEAR(sets);
    }
    size_t i = 0;
    for (cfx_node *node = cfx_graph_first(self->g); sets && node; node = cfx_node_next(node), i++) {
        if (groups[i] == CFX_NO_PART)
            continue;
        PyObject *member = node_wrap(self, node);
        if (!member || PySet_Add(PyList_GET_ITEM(sets, groups[i]), member) < 0)
            Py_CLEAR(sets);
        Py_XDECREF(member);
    }
    return sets;
}

PyObject *graph_fusion_groups(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *acc, *is_tensor, *answer = NULL;
    size_t n;
    if (!PyArg_ParseTuple(args, "O!O:_fusion_groups", &PySet_Type, &acc, &is_tensor))
        return NULL;
    unsigned char *flags = read_acc(self, acc, is_tensor, false);
    uint32_t *groups = flags ? PyMem_New(uint32_t, cfx_graph_size(self->g) + 1) : NULL;
    if (flags && !groups)
        PyErr_NoMemory();
    else if (flags && cfx_graph_fusion_groups(self->g, flags, groups, &n, &err) == CFX_OK)
        answer = sets_of_groups(self, groups, n);
    else if (flags)
        raise_cfx(&err);
    PyMem_Free(flags);
    PyMem_Free(groups);
    return answer;
}
