/* graph_copy.c - Graph: copies of graphs and of nodes. */
#include "graph_methods.h"

/* A shallow copy of the metadata of `from`, if it has any. */
int copy_meta(PyGraph *graph, const cfx_node *from, cfx_node *to)
{
    const PyNode *old = cfx_node_binding(from);
    if (!old || !old->meta || (PyDict_GET_SIZE(old->meta) == 0 && !cfx_node_module_stack(from)))
        return 0;
    PyNode *node = (PyNode *)node_wrap(graph, to);
    PyObject *meta = node ? PyDict_Copy(old->meta) : NULL;
    if (meta)
        Py_XSETREF(node->meta, meta);
    Py_XDECREF((PyObject *)node);
    return meta ? 0 : -1;
}

int first_visit(PyObject *done, const cfx_graph *g)
{
    PyObject *key = PyLong_FromVoidPtr((void *)g);
    int known = key ? PySet_Contains(done, key) : -1;
    int failed = known == 0 ? PySet_Add(done, key) : 0;
    Py_XDECREF(key);
    return known < 0 || failed < 0 ? -1 : !known;
}

void *with_room(void *items, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return items;
    const size_t more = 2 * *room + 8;
    void *moved = PyMem_Realloc(items, more * size);
    if (!moved)
        return PyErr_NoMemory();
    *room = more;
    return moved;
}

/* Regions and their copies whose metadata is yet to be copied: they wait, because regions nest, in
 * values that nest as well. */
typedef struct meta_job {
    PyObject *done;  /* a set of the copies that have been met */
    struct {
        cfx_graph *from, *to;
    } *waiting;
    size_t n, room;
} meta_job;

static int add_region(meta_job *job, cfx_graph *from, cfx_graph *to)
{
    int first = first_visit(job->done, to);
    if (first <= 0)
        return first;
    void *waiting = with_room(job->waiting, job->n, &job->room, sizeof *job->waiting);
    if (!waiting)
        return -1;
    job->waiting = waiting;
    job->waiting[job->n].from = cfx_graph_retain(from);
    job->waiting[job->n++].to = cfx_graph_retain(to);
    return 0;
}

/* Finds the regions in a value and in its copy, which is built alike. */
static int add_regions(meta_job *job, cfx_value from, cfx_value to)
{
    if (from.kind == CFX_KIND_GRAPH)
        return add_region(job, cfx_value_graph(from), cfx_value_graph(to));
    size_t n, twins;
    const cfx_value *items = cfx_value_items(from, &n);
    const cfx_value *copies = cfx_value_items(to, &twins);
    int failed = 0;
    for (size_t i = 0; !failed && i < n && i < twins; i++)
        if (items[i].kind >= CFX_KIND_SLICE)
            failed = add_regions(job, items[i], copies[i]);
    return failed;
}

/* What a copy of metadata needs at each node. `job` is NULL for a graph without regions: most
 * graphs have none, and looking for them costs as much as the copy itself. */
static int copy_node_meta(PyGraph *copy, const cfx_node *from, cfx_node *to, meta_job *job)
{
    if (copy_meta(copy, from, to) < 0)
        return -1;
    if (!job)
        return 0;
    if (add_regions(job, cfx_node_args(from), cfx_node_args(to)) < 0)
        return -1;
    return add_regions(job, cfx_node_kwargs(from), cfx_node_kwargs(to));
}

static int is_region(void *object, void *st) { return is_graph(st, object); }

/* The metadata of the nodes of a graph for their copies, which stand in the same order. */
static int copy_graph_meta(PyGraph *copy, cfx_graph *source, meta_job *job)
{
    int failed = 0;
    cfx_iter from, to;
    if (!cfx_graph_visit_hosts(source, is_region, copy->st))
        job = NULL;
    cfx_iter_begin(&from, source, false);
    cfx_iter_begin(&to, copy->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&from)) != NULL;) {
        cfx_node *twin = cfx_iter_next(&to);
        failed = twin ? copy_node_meta(copy, n, twin, job) : 0;
    }
    cfx_iter_end(&from);
    cfx_iter_end(&to);
    return failed;
}

/* Copies the metadata of all regions that wait, unless something has failed, and ends the job. */
static int end_meta(module_state *st, meta_job *job, int failed)
{
    while (job->n > 0) {
        cfx_graph *from = job->waiting[--job->n].from;
        cfx_graph *to = job->waiting[job->n].to;
        PyObject *copy = failed ? NULL : graph_wrap(st, to);
        failed = copy ? copy_graph_meta((PyGraph *)copy, from, job) : -1;
        Py_XDECREF(copy);
        cfx_graph_release(to);
        cfx_graph_release(from);
    }
    PyMem_Free(job->waiting);
    Py_XDECREF(job->done);
    return failed;
}

/* Likewise for a graph and the regions in it. */
int copy_all_meta(PyGraph *source, PyGraph *copy)
{
    meta_job job = {.done = PySet_New(NULL)};
    return end_meta(copy->st, &job, job.done ? copy_graph_meta(copy, source->g, &job) : -1);
}

int copy_part_meta(PyGraph *copy, cfx_node *const *origins, size_t n)
{
    meta_job job = {.done = PySet_New(NULL)};
    int failed = job.done ? 0 : -1;
    cfx_iter to;
    cfx_iter_begin(&to, copy->g, false);
    for (size_t i = 0; !failed && i < n; i++) {
        cfx_node *twin = cfx_iter_next(&to);
        if (twin && origins[i] && cfx_node_op(twin) == cfx_node_op(origins[i]))
            failed = copy_node_meta(copy, origins[i], twin, &job);
        else if (twin && origins[i])
            failed = copy_meta(copy, origins[i], twin);
    }
    cfx_iter_end(&to);
    return end_meta(copy->st, &job, failed);
}

PyObject *graph_clone(PyGraph *self, PyObject *unused)
{
    (void)unused;
    cfx_error err = {0};
    cfx_graph *copy = cfx_graph_clone(self->g, NULL, &err);
    if (!copy)
        return raise_cfx(&err);
    PyObject *graph = graph_wrap_as(Py_TYPE(self), self->st, copy);
    cfx_graph_release(copy);
    if (graph && copy_all_meta(self, (PyGraph *)graph) < 0)
        Py_CLEAR(graph);
    return graph;
}

/* What the arguments of a copied node become: the answers of a Python callable or mapping. */
typedef struct copy_job {
    PyGraph *source, *dest;
    PyObject *callable;  /* NULL: nodes stay what they are */
    cfx_value *made;     /* held until the copy is done: it may fail and use none of them */
    size_t n_made;
} copy_job;

/* Holds a value that the copy may use: it, or INVALID with an exception. */
static cfx_value keep_made(copy_job *job, cfx_value v)
{
    if (v.kind == CFX_KIND_INVALID || v.kind == CFX_KIND_NODE)
        return v;
    cfx_value *made = PyMem_Realloc(job->made, (job->n_made + 1) * sizeof *made);
    if (!made) {
        PyErr_NoMemory();
        cfx_value_discard(job->dest->g, v);
        return cfx_value_invalid();
    }
    job->made = made;
    made[job->n_made++] = cfx_value_retain(v);
    return v;
}

static void release_made(copy_job *job)
{
    for (size_t i = 0; i < job->n_made; i++)
        cfx_value_release(job->dest->g, job->made[i]);
    PyMem_Free(job->made);
}

static cfx_value copy_arg(void *ctx, cfx_node *n, cfx_error *err)
{
    copy_job *job = ctx;
    PyObject *node = node_wrap(job->source, n);
    PyObject *answer = NULL;
    if (node)
        answer = job->callable ? PyObject_CallOneArg(job->callable, node) : Py_NewRef(node);
    cfx_value v = answer ? keep_made(job, value_from_py(job->dest, answer)) : cfx_value_invalid();
    if (v.kind == CFX_KIND_INVALID)
        cfx_error_set(err, CFX_E_HOST, "the argument could not be mapped");
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return v;
}

/* node_copy or graph_copy of something that is not ours: torch.fx's is converted, the rest refused
 * (cfx/_glue). */
static PyObject *copy_foreign(PyGraph *self, PyObject *from, PyObject *how, PyObject *want_output)
{
    PyObject *job = PyTuple_Pack(4, (PyObject *)self, from, how, want_output);
    PyObject *answer = job ? call_glue(self->st, "copy_foreign", job) : NULL;
    Py_XDECREF(job);
    return answer;
}

/* Whether a value has a node of another graph in it, which the graph holds as a plain object. */
static bool has_foreign(module_state *st, cfx_value v)
{
    if (v.kind == CFX_KIND_HOST)
        return cfx_value_object(v) && is_node(st, cfx_value_object(v));
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind >= CFX_KIND_SLICE || items[i].kind == CFX_KIND_HOST)
            if (has_foreign(st, items[i]))
                return true;
    return false;
}

static PyObject *map_leaf(void *ctx, PyObject *leaf)
{
    const copy_job *job = ctx;
    const bool mapped = job->callable && is_node(job->dest->st, leaf);
    return mapped ? PyObject_CallOneArg(job->callable, leaf) : Py_NewRef(leaf);
}

/* node_copy of a node with nodes of other graphs among its arguments: the core maps only nodes that
 * it knows as such, torch.fx maps all, and the copy may well be in the graph of the others. */
static PyObject *copy_with_foreign(copy_job *job, PyObject *from)
{
    static const char *const names[] = {"op", "target", "args", "kwargs", "name", "type"};
    static const char *const after[] = {"_location", "_scope"};
    PyObject *parts[6] = {NULL};
    int n = 0;
    while (n < 6 && (parts[n] = PyObject_GetAttrString(from, names[n])) != NULL) {
        if (n == 2 || n == 3)
            Py_SETREF(parts[n], map_tree(job->dest->st, parts[n], map_leaf, job));
        if (!parts[n])
            break;
        n++;
    }
    PyObject *node = n == 6 ? graph_create_node(job->dest, parts, 6, NULL) : NULL;
    for (int i = 0; node && i < 2; i++) {
        PyObject *part = PyObject_GetAttrString(from, after[i]);
        if (!part || PyObject_SetAttrString(node, after[i], part) < 0)
            Py_CLEAR(node);
        Py_XDECREF(part);
    }
    while (n > 0)
        Py_DECREF(parts[--n]);
    return node;
}

static PyObject *copy_node(copy_job *job, PyNode *from)
{
    cfx_error err = {0};
    if (has_foreign(job->dest->st, cfx_node_args(from->n)) ||
        has_foreign(job->dest->st, cfx_node_kwargs(from->n)))
        return copy_with_foreign(job, (PyObject *)from);
    cfx_node *n = cfx_graph_copy_node(job->dest->g, from->n, copy_arg, job, &err);
    return n ? node_wrap(job->dest, n) : raise_cfx(&err);
}

PyObject *graph_node_copy(FAST_ARGS)
{
    static const char *const names[] = {"node", "arg_transform"};
    static const arg_spec spec = {"node_copy", names, 2, 1, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    if (!is_node(self->st, in[0]))
        return copy_foreign(self, in[0], in[1] ? in[1] : Py_None, Py_False);
    PyNode *from = (PyNode *)in[0];
    if (from->n == cfx_graph_root(cfx_node_graph(from->n)))
        return PyErr_Format(PyExc_ValueError, "the root of a graph cannot be copied");
    copy_job job = {node_graph(from), self, in[1] == Py_None ? NULL : in[1], NULL, 0};
    cfx_iter here = hold(self->g);
    cfx_iter there = hold(job.source->g);
    PyObject *node = copy_node(&job, from);
    if (node && copy_meta(self, from->n, ((PyNode *)node)->n) < 0)
        Py_CLEAR(node);
    release_made(&job);
    cfx_iter_end(&there);
    cfx_iter_end(&here);
    return node;
}

/* Fills `map` from the items of a dict {Node: value}, and holds the values until release_map: 0,
 * or -1 with an exception. */
static int read_map(PyGraph *self, PyObject *items, cfx_node_map *map)
{
    cfx_error err = {0};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        if (!is_node(self->st, key))
            continue;
        cfx_value v = value_from_py(self, PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1));
        if (v.kind == CFX_KIND_INVALID)
            return -1;
        if (cfx_node_map_set(map, ((PyNode *)key)->n, v, &err) != CFX_OK) {
            cfx_value_discard(self->g, v);
            raise_cfx(&err);
            return -1;
        }
        cfx_value_retain(v);
    }
    return 0;
}

/* Lets go of what read_map made; what the copy does not use is recycled. */
static void release_map(PyGraph *self, PyObject *items, const cfx_node_map *map)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        if (is_node(self->st, key))
            cfx_value_release(self->g, cfx_node_map_get(map, ((PyNode *)key)->n));
    }
}

/* Adds what was copied to the dict, and copies its metadata. */
static int write_map(PyGraph *self, PyGraph *source, PyObject *dict, const cfx_node_map *map)
{
    int failed = 0;
    cfx_iter it;
    cfx_iter_begin(&it, source->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_value v = cfx_node_map_get(map, n);
        if (v.kind != CFX_KIND_NODE)
            continue;
        PyObject *key = node_wrap(source, n);
        int known = key ? PyDict_Contains(dict, key) : -1;
        PyObject *node = known == 0 ? node_wrap(self, v.as.node) : NULL;
        failed = known < 0 || (known == 0 && (!node || PyDict_SetItem(dict, key, node) < 0 ||
                                              copy_meta(self, n, v.as.node) < 0));
        Py_XDECREF(key);
        Py_XDECREF(node);
    }
    cfx_iter_end(&it);
    return failed ? -1 : 0;
}

static PyObject *finish_copy(PyGraph *self, PyGraph *source, cfx_value result, cfx_node *out,
                             bool want_output)
{
    if (!out)
        Py_RETURN_NONE;
    PyObject *value = value_to_py(self, result);
    if (!value || !want_output)
        return value;
    PyObject *node = node_wrap(source, out);
    return node ? Py_BuildValue("(NN)", value, node) : NULL;
}

/* Copies with a map that has been read. */
static PyObject *copy_mapped(PyGraph *self, PyGraph *source, PyObject *val_map, cfx_node_map *map,
                             bool want_output)
{
    cfx_error err = {0};
    cfx_value result = cfx_value_invalid();
    cfx_node *out = NULL;
    PyObject *answer = NULL;
    if (cfx_graph_copy_from(self->g, source->g, map, &result, &out, &err) != CFX_OK)
        return raise_cfx(&err);
    result = cfx_value_retain(result);
    if (write_map(self, source, val_map, map) == 0)
        answer = finish_copy(self, source, result, out, want_output);
    cfx_value_release(self->g, result);
    return answer;
}

static PyObject *copy_held(PyGraph *self, PyGraph *source, PyObject *val_map, bool want_output)
{
    cfx_error err = {0};
    PyObject *answer = NULL;
    PyObject *items = PyDict_Items(val_map);
    if (!items)
        return NULL;
    cfx_node_map *map = cfx_node_map_new(NULL, &err);
    if (!map) {
        raise_cfx(&err);
    } else {
        if (read_map(self, items, map) == 0)
            answer = copy_mapped(self, source, val_map, map, want_output);
        release_map(self, items, map);
    }
    cfx_node_map_free(map);
    Py_DECREF(items);
    return answer;
}

PyObject *graph_graph_copy(FAST_ARGS)
{
    static const char *const names[] = {"g", "val_map", "return_output_node"};
    static const arg_spec spec = {"graph_copy", names, 3, 2, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    if (!is_graph(self->st, in[0]) && PyDict_Check(in[1]))
        return copy_foreign(self, in[0], in[1], in[2] ? in[2] : Py_False);
    if (!is_graph(self->st, in[0]) || !PyDict_Check(in[1]))
        return PyErr_Format(PyExc_TypeError, "graph_copy needs a Graph and a dict, got %R and %R",
                            (PyObject *)Py_TYPE(in[0]), (PyObject *)Py_TYPE(in[1]));
    PyGraph *source = (PyGraph *)in[0];
    int want_output = in[2] ? PyObject_IsTrue(in[2]) : 0;
    if (want_output < 0)
        return NULL;
    cfx_iter here = hold(self->g);
    cfx_iter there = hold(source->g);
    PyObject *answer = copy_held(self, source, in[1], want_output);
    cfx_iter_end(&there);
    cfx_iter_end(&here);
    return answer;
}
