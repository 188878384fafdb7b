/* graph_split.c - Graph: parts of graphs, and graphs cut into parts. */
#include "graph/graph_methods.h"

/* ---- results as Python objects ------------------------------------------------------------- */

static PyObject *wrap_part(PyGraph *self, const cfx_subgraph *part)
{
    PyObject *graph = graph_wrap(self->st, part->graph);
    if (graph && copy_part_meta((PyGraph *)graph, part->origins, part->n_origins) < 0)
        Py_CLEAR(graph);
    return graph;
}

PyObject *list_nodes(PyGraph *self, cfx_node *const *nodes, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *node = node_wrap(self, nodes[i]);
        if (!node) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, node);
    }
    return list;
}

/* ---- one part ------------------------------------------------------------------------------ */

cfx_node **read_nodes(PyGraph *self, PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "expected a list of nodes, got %R",
                     (PyObject *)Py_TYPE(list));
        return NULL;
    }
    const Py_ssize_t n = PyList_GET_SIZE(list);
    cfx_node **nodes = PyMem_Malloc(((size_t)n + 1) * sizeof *nodes);
    if (!nodes)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; nodes && i < n; i++) {
        if (!need_node(self, PyList_GET_ITEM(list, i))) {
            PyMem_Free(nodes);
            return NULL;
        }
        nodes[i] = ((PyNode *)PyList_GET_ITEM(list, i))->n;
    }
    return nodes;
}

static PyObject *extract_nodes(PyGraph *self, const cfx_extract_options *what)
{
    cfx_error err = {0};
    cfx_subgraph part;
    if (cfx_graph_extract(self->g, what, &part, &err) != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    PyObject *graph = wrap_part(self, &part);
    PyObject *inputs = graph ? list_nodes(self, part.inputs, part.n_inputs) : NULL;
    PyObject *outputs = inputs ? list_nodes(self, part.outputs, part.n_outputs) : NULL;
    cfx_subgraph_free(&part);
    if (outputs)
        return Py_BuildValue("(NNN)", graph, inputs, outputs);
    Py_XDECREF(graph);
    Py_XDECREF(inputs);
    return NULL;
}

PyObject *graph_extract(PyGraph *self, PyObject *args)
{
    PyObject *lists[3];
    cfx_node **nodes[3] = {NULL, NULL, NULL};
    size_t sizes[3] = {0, 0, 0};
    unsigned flags;
    PyObject *answer = NULL;
    if (!PyArg_ParseTuple(args, "OOOI:_extract", &lists[0], &lists[1], &lists[2], &flags))
        return NULL;
    bool good = true;
    for (int i = 0; good && i < 3; i++) {
        if (lists[i] == Py_None)
            continue;
        nodes[i] = read_nodes(self, lists[i]);
        good = nodes[i] != NULL;
        sizes[i] = good ? (size_t)PyList_GET_SIZE(lists[i]) : 0;
    }
    if (good) {
        const cfx_extract_options what = {nodes[0], sizes[0], nodes[1], sizes[1],
                                          nodes[2], sizes[2], NULL,     flags};
        cfx_iter here = hold(self->g);
        answer = extract_nodes(self, &what);
        cfx_iter_end(&here);
    }
    for (int i = 0; i < 3; i++)
        PyMem_Free(nodes[i]);
    return answer;
}

/* ---- labels -------------------------------------------------------------------------------- */

typedef struct split_job {
    PyGraph *self;
    PyObject *label_of;   /* a callable */
    PyObject *prefix;     /* of the names, a str */
    PyObject *numbers;    /* {str(label): number} */
    PyObject *names;      /* a list of str, by number */
    PyObject *keep;       /* a list: what the pointers of `texts` lie in */
    bool closed;          /* no other labels than those that are known */
    size_t *parts;        /* by position */
    const char **texts;   /* by number */
} split_job;

/* The number of a new label: -1 with an exception. */
static Py_ssize_t add_label(split_job *job, PyObject *label)
{
    Py_ssize_t number = PyList_GET_SIZE(job->names);
    PyObject *name = PyUnicode_Concat(job->prefix, label);
    PyObject *value = name ? PyLong_FromSsize_t(number) : NULL;
    if (!value || PyDict_SetItem(job->numbers, label, value) < 0 ||
        PyList_Append(job->names, name) < 0)
        number = -1;
    Py_XDECREF(value);
    Py_XDECREF(name);
    return number;
}

static Py_ssize_t number_of(split_job *job, PyObject *answer)
{
    PyObject *label = PyObject_Str(answer);
    PyObject *known = label ? PyDict_GetItemWithError(job->numbers, label) : NULL;
    Py_ssize_t number = -1;
    if (known)
        number = PyLong_AsSsize_t(known);
    else if (label && !PyErr_Occurred() && job->closed)
        PyErr_SetObject(PyExc_KeyError, label);
    else if (label && !PyErr_Occurred())
        number = add_label(job, label);
    Py_XDECREF(label);
    return number;
}

static int take_label(split_job *job, cfx_node *n, size_t *part)
{
    PyObject *node = node_wrap(job->self, n);
    PyObject *answer = node ? PyObject_CallOneArg(job->label_of, node) : NULL;
    Py_ssize_t number = answer ? number_of(job, answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    *part = (size_t)number;
    return number < 0 ? -1 : 0;
}

/* Asks for the part of each call. */
static int take_labels(split_job *job)
{
    cfx_graph *g = job->self->g;
    const uint64_t version = cfx_graph_version(g);
    size_t i = 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), i++) {
        cfx_opcode op = cfx_node_op(n);
        if (op == CFX_OP_PLACEHOLDER || op == CFX_OP_GET_ATTR || op == CFX_OP_OUTPUT)
            continue;
        if (take_label(job, n, &job->parts[i]) < 0)
            return -1;
        if (cfx_graph_version(g) != version) {
            PyErr_Format(PyExc_RuntimeError, "the callback that assigns nodes to parts changed the "
                         "graph at node %s", cfx_node_name(n, NULL));
            return -1;
        }
    }
    return 0;
}

static int take_names(split_job *job)
{
    const Py_ssize_t n = PyList_GET_SIZE(job->names);
    job->texts = PyMem_Malloc(((size_t)n + 1) * sizeof *job->texts);
    if (!job->texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *keep = NULL;
        job->texts[i] = c_string_of(PyList_GET_ITEM(job->names, i), "the name of a part", &keep);
        int failed = job->texts[i] && keep ? PyList_Append(job->keep, keep) : 0;
        Py_XDECREF(keep);
        if (!job->texts[i] || failed)
            return -1;
    }
    return 0;
}

/* ---- the parts ----------------------------------------------------------------------------- */

/* What regions of a part name keeps its path; -1 with an exception. */
static int add_region_paths(PyGraph *part, PyObject *paths)
{
    PyObject *all = graph_paths(part, Py_False);
    Py_ssize_t n = all ? PyList_GET_SIZE(all) : 0;
    int failed = all ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        PyObject *path = PyList_GET_ITEM(all, i);
        if (!PyDict_SetDefault(paths, path, path))
            failed = -1;
    }
    Py_XDECREF(all);
    return failed;
}

/* The paths that a part names, with what they are in the source. */
static PyObject *paths_of(PyGraph *part, cfx_node *const *origins, size_t n)
{
    PyObject *paths = PyDict_New();
    cfx_node *copy = cfx_graph_first(part->g);
    for (size_t i = 0; paths && copy && i < n; i++, copy = cfx_node_next(copy)) {
        cfx_opcode op = cfx_node_op(copy);
        if (!origins[i] || cfx_node_op(origins[i]) != op ||
            (op != CFX_OP_CALL_MODULE && op != CFX_OP_GET_ATTR))
            continue;
        PyObject *here = str_from_utf8(cfx_node_target(copy, NULL, NULL),
                                       strlen(cfx_node_target(copy, NULL, NULL)));
        PyObject *there = str_from_utf8(cfx_node_target(origins[i], NULL, NULL),
                                        strlen(cfx_node_target(origins[i], NULL, NULL)));
        if (!here || !there || PyDict_SetItem(paths, here, there) < 0)
            Py_CLEAR(paths);
        Py_XDECREF(here);
        Py_XDECREF(there);
    }
    if (paths && add_region_paths(part, paths) < 0)
        Py_CLEAR(paths);
    return paths;
}

static PyObject *part_to_py(const split_job *job, const cfx_split_result *result, size_t number)
{
    const cfx_subgraph *part = &result->parts[number];
    PyObject *name = PyList_GET_ITEM(job->names, (Py_ssize_t)number);
    PyObject *graph = wrap_part(job->self, part);
    PyObject *paths = graph ? paths_of((PyGraph *)graph, part->origins, part->n_origins) : NULL;
    if (paths)
        return Py_BuildValue("(ONN)", name, graph, paths);
    Py_XDECREF(graph);
    return NULL;
}

static PyObject *parts_to_py(const split_job *job, const cfx_split_result *result)
{
    PyObject *parts = PyList_New((Py_ssize_t)result->n);
    for (size_t i = 0; parts && i < result->n; i++) {
        PyObject *part = part_to_py(job, result, result->order[i]);
        if (part)
            PyList_SET_ITEM(parts, (Py_ssize_t)i, part);
        else
            Py_CLEAR(parts);
    }
    return parts;
}

static PyObject *name_or_none(const split_job *job, size_t part)
{
    return part == CFX_SPLIT_BASE ? Py_None : PyList_GET_ITEM(job->names, (Py_ssize_t)part);
}

static PyObject *cuts_to_py(const split_job *job, const cfx_split_result *result)
{
    PyObject *cuts = PyList_New((Py_ssize_t)result->n_cuts);
    for (size_t i = 0; cuts && i < result->n_cuts; i++) {
        const cfx_cut *cut = &result->cuts[i];
        PyObject *node = node_wrap(job->self, cut->value);
        PyObject *item = node ? Py_BuildValue("(OON)", name_or_none(job, cut->from),
                                              name_or_none(job, cut->to), node) : NULL;
        if (item)
            PyList_SET_ITEM(cuts, (Py_ssize_t)i, item);
        else
            Py_CLEAR(cuts);
    }
    return cuts;
}

static PyObject *split_labelled(const split_job *job, unsigned flags)
{
    cfx_error err = {0};
    cfx_split_result result;
    const cfx_split_options what = {job->parts, job->texts, (size_t)PyList_GET_SIZE(job->names),
                                    flags};
    if (cfx_graph_split(job->self->g, &what, &result, &err) != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    PyObject *base = wrap_part(job->self, &result.base);
    PyObject *parts = base ? parts_to_py(job, &result) : NULL;
    PyObject *cuts = parts ? cuts_to_py(job, &result) : NULL;
    cfx_split_result_free(&result);
    if (cuts)
        return Py_BuildValue("(NNN)", base, parts, cuts);
    Py_XDECREF(base);
    Py_XDECREF(parts);
    return NULL;
}

static PyObject *split_with(split_job *job, PyObject *names, unsigned flags)
{
    for (Py_ssize_t i = 0; job->closed && i < PyList_GET_SIZE(names); i++)
        if (number_of(&(split_job){.prefix = job->prefix, .numbers = job->numbers,
                                   .names = job->names}, PyList_GET_ITEM(names, i)) < 0)
            return NULL;
    return take_labels(job) == 0 && take_names(job) == 0 ? split_labelled(job, flags) : NULL;
}

PyObject *graph_split(PyGraph *self, PyObject *args)
{
    split_job job = {.self = self};
    PyObject *names;
    PyObject *answer = NULL;
    unsigned flags;
    if (!PyArg_ParseTuple(args, "OOUI:_split", &job.label_of, &names, &job.prefix, &flags))
        return NULL;
    if (names != Py_None && !PyList_Check(names))
        return PyErr_Format(PyExc_TypeError, "the names of the parts must be a list, got %R",
                            (PyObject *)Py_TYPE(names));
    job.closed = names != Py_None;
    job.numbers = PyDict_New();
    job.names = PyList_New(0);
    job.keep = PyList_New(0);
    job.parts = PyMem_Calloc(cfx_graph_size(self->g) + 1, sizeof *job.parts);
    if (!job.parts)
        PyErr_NoMemory();
    cfx_iter here = hold(self->g);
    if (job.numbers && job.names && job.keep && job.parts)
        answer = split_with(&job, names, flags);
    cfx_iter_end(&here);
    PyMem_Free(job.parts);
    PyMem_Free(job.texts);
    Py_XDECREF(job.numbers);
    Py_XDECREF(job.names);
    Py_XDECREF(job.keep);
    return answer;
}

/* ---- constants ----------------------------------------------------------------------------- */

static int ask_skip(void *ctx, cfx_node *n)
{
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? PyObject_CallOneArg(ctx, node) : NULL;
    int skip = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return skip;
}

/* A new reference to (graph, paths); NULL with an exception. */
static PyObject *graph_and_paths(PyGraph *self, const cfx_subgraph *part)
{
    PyObject *graph = wrap_part(self, part);
    PyObject *paths = graph ? paths_of((PyGraph *)graph, part->origins, part->n_origins) : NULL;
    if (paths)
        return Py_BuildValue("(NN)", graph, paths);
    Py_XDECREF(graph);
    return NULL;
}

PyObject *graph_split_constants(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_subgraph constants, rest;
    PyObject *skip, *root;
    const char *path;
    int strict;
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OsOp:_split_constants", &skip, &path, &root, &strict) ||
        !modules_over(self->st, root, &view))
        return NULL;
    const cfx_constants_options what = {.skip = skip == Py_None ? NULL : ask_skip, .ctx = skip,
                                        .path = path, .modules = &view.table, .strict = strict};
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_graph_split_constants(self->g, &what, &constants, &rest, &err);
    cfx_iter_end(&here);
    modules_done(&view);
    if (status != CFX_OK || PyErr_Occurred())
        return raise_cfx(&err);
    if (!rest.graph)
        Py_RETURN_NONE;
    PyObject *first = graph_and_paths(self, &constants);
    PyObject *second = first ? graph_and_paths(self, &rest) : NULL;
    cfx_subgraph_free(&constants);
    cfx_subgraph_free(&rest);
    if (second)
        return Py_BuildValue("(NN)", first, second);
    Py_XDECREF(first);
    return NULL;
}

/* ---- stages -------------------------------------------------------------------------------- */

/* The numbers of a list with one for each node, to be freed with PyMem_Free; NULL with an exception
 * or, for None, without. */
static double *read_numbers(PyGraph *self, PyObject *list)
{
    const size_t n = cfx_graph_size(self->g);
    if (list == Py_None)
        return NULL;
    if (!PyList_Check(list) || (size_t)PyList_GET_SIZE(list) != n) {
        PyErr_SetString(PyExc_TypeError, "expected a list with a number for each node");
        return NULL;
    }
    return read_doubles(list);
}

static PyObject *stages_to_py(PyGraph *self, const cfx_stages_options *what)
{
    cfx_error err = {0};
    double largest;
    const size_t n = cfx_graph_size(self->g);
    size_t *parts = PyMem_Malloc((n + 1) * sizeof *parts);
    if (!parts)
        return PyErr_NoMemory();
    PyObject *list = NULL;
    if (cfx_graph_stages(self->g, what, parts, &largest, &err) == CFX_OK)
        list = PyList_New((Py_ssize_t)n);
    else
        raise_cfx(&err);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *part = parts[i] == CFX_SPLIT_BASE ? Py_NewRef(Py_None)
                                                    : PyLong_FromSize_t(parts[i]);
        if (part)
            PyList_SET_ITEM(list, (Py_ssize_t)i, part);
        else
            Py_CLEAR(list);
    }
    PyMem_Free(parts);
    return list ? Py_BuildValue("(Nd)", list, largest) : NULL;
}

PyObject *graph_stages(PyGraph *self, PyObject *args)
{
    PyObject *costs, *sizes;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "nOO:_stages", &n, &costs, &sizes))
        return NULL;
    double *numbers[] = {read_numbers(self, costs), NULL};
    if (!PyErr_Occurred())
        numbers[1] = read_numbers(self, sizes);
    const cfx_stages_options what = {n > 0 ? (size_t)n : 0, numbers[0], numbers[1]};
    PyObject *answer = PyErr_Occurred() ? NULL : stages_to_py(self, &what);
    PyMem_Free(numbers[0]);
    PyMem_Free(numbers[1]);
    return answer;
}
