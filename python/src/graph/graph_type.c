/* graph_type.c - Graph: its life, its attributes, and the table of its methods. */
#include "graph_methods.h"

#include <structmember.h>

/* ---- life ---------------------------------------------------------------------------------- */

PyObject *graph_wrap_as(PyTypeObject *type, module_state *st, cfx_graph *g)
{
    PyGraph *self = alloc_quietly(type);
    if (!self)
        return NULL;
    self->st = st;
    self->module = Py_NewRef(PyType_GetModuleByDef(type, &pycfx_module));
    self->g = cfx_graph_retain(g);
    cfx_graph_set_binding(g, self);
    return (PyObject *)self;
}

PyObject *graph_wrap(module_state *st, cfx_graph *g)
{
    PyObject *graph = cfx_graph_binding(g);
    if (graph)
        return Py_NewRef(graph);
    PyTypeObject *type = (PyTypeObject *)(st->graph_class ? st->graph_class : st->GraphType);
    return graph_wrap_as(type, st, g);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    module_state *st = state_of(type);
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(&st->allocator, &st->host, &err);
    if (!g)
        return raise_cfx(&err);
    PyObject *self = graph_wrap_as(type, st, g);
    cfx_graph_release(g);
    return self;
}

typedef struct visit_job {
    visitproc visit;
    void *arg;
} visit_job;

static int visit_object(void *object, void *ctx)
{
    visit_job *job = ctx;
    return job->visit(object, job->arg);
}

static int graph_traverse(PyGraph *self, visitproc visit, void *arg)
{
    visit_job job = {visit, arg};
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->module);
    Py_VISIT(self->owning_module);
    Py_VISIT(self->root);
    Py_VISIT(self->names);
    Py_VISIT(self->waiting);
    if (!self->g)
        return 0;
    size_t left = self->n_owned;
    for (cfx_node *n = cfx_graph_first(self->g); n && left > 0; n = cfx_node_next(n)) {
        PyNode *node = cfx_node_binding(n);
        if (!node || !node->owned)
            continue;
        left--;
        Py_VISIT((PyObject *)node);
    }
    return cfx_graph_visit_hosts(self->g, visit_object, &job);
}

/* Whether an object that a graph holds can be a part of a cycle that only the graph can break:
 * functions, classes and regions break their own. */
static int needs_graph(void *object, void *ctx)
{
    PyObject *o = object;
    return !PyFunction_Check(o) && !PyCFunction_Check(o) && !PyType_Check(o) && !is_graph(ctx, o);
}

static int graph_clear(PyGraph *self)
{
    Py_CLEAR(self->owning_module);
    Py_CLEAR(self->root);
    Py_CLEAR(self->names);
    Py_CLEAR(self->waiting);
    if (self->g && (self->n_owned > 0 || cfx_graph_visit_hosts(self->g, needs_graph, self->st)))
        cfx_graph_clear(self->g);  /* drops the arguments, and through unbind the Node objects */
    return 0;
}

static void graph_dealloc(PyGraph *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weak)
        PyObject_ClearWeakRefs((PyObject *)self);
    Py_CLEAR(self->owning_module);
    Py_CLEAR(self->root);
    Py_CLEAR(self->names);
    Py_CLEAR(self->waiting);
    if (self->g) {  /* no Node object is left: each would have kept this one alive */
        cfx_graph_set_binding(self->g, NULL);
        cfx_graph_release(self->g);
    }
    PyMem_Free(self->last_uses);
    Py_XDECREF(self->module);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* Whether the caller is code of torch.fx that would not see that our nodes are nodes, and would go
 * on with them as if they were values: 1, 0, -1 with an exception. */
static int is_refused_reader(module_state *st)
{
    PyObject *globals = st->fx_readers ? PyEval_GetGlobals() : NULL;
    PyObject *name = globals ? PyDict_GetItemWithError(globals, st->str_name) : NULL;
    return name ? PySet_Contains(st->fx_readers, name) : PyErr_Occurred() ? -1 : 0;
}

static PyObject *get_nodes(PyGraph *self, void *unused)
{
    (void)unused;
    int refused = is_refused_reader(self->st);
    if (refused > 0)
        PyErr_SetString(PyExc_TypeError, "torch.fx cannot work with a graph of cfx: convert it, or "
                        "its module, with cfx.interop.to_torch; or use cfx's function instead");
    if (refused)
        return NULL;
    return PyObject_CallOneArg(self->st->NodeListType, (PyObject *)self);
}

static PyObject *get_root(PyGraph *self, void *unused)
{
    (void)unused;
    if (!self->root)
        self->root = node_wrap(self, cfx_graph_root(self->g));
    return Py_XNewRef(self->root);
}

static PyObject *get_names(PyGraph *self, void *unused)
{
    (void)unused;
    PyObject *names = self->names ? NULL : namespace_for_graph(self);
    if (names && !self->names)
        self->names = names;
    else
        Py_XDECREF(names);  /* somebody was faster, or there is none */
    return Py_XNewRef(self->names);
}

/* A region shares the paths of the graph around it, and so its module. */
static PyObject *get_owner(PyGraph *self, void *unused)
{
    (void)unused;
    for (cfx_graph *g = self->g; g; g = cfx_graph_parent(g)) {
        const PyGraph *graph = cfx_graph_binding(g);
        if (graph && graph->owning_module)
            return Py_NewRef(graph->owning_module);
    }
    Py_RETURN_NONE;
}

/* The module that it was given itself: what is pickled, since a region comes with its graph. */
static PyObject *get_own_owner(PyGraph *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->owning_module ? self->owning_module : Py_None);
}

static int set_owner(PyGraph *self, PyObject *value, void *unused)
{
    (void)unused;
    bool some = value && value != Py_None;
    if (some && graph_add_hooks(self) < 0)
        return -1;
    Py_XSETREF(self->owning_module, some ? Py_NewRef(value) : NULL);
    return 0;
}

/* The bound method that puts a node at the insertion point, as torch.fx keeps it. */
static PyObject *get_insert(PyGraph *self, void *unused)
{
    (void)unused;
    cfx_insert_point at = cfx_graph_insert_point(self->g);
    PyObject *node = node_wrap(self, at.node ? at.node : cfx_graph_root(self->g));
    PyObject *method = NULL;
    if (node)
        method = PyObject_GetAttrString(node, at.after ? "append" : "prepend");
    Py_XDECREF(node);
    return method;
}

static PyObject *get_len(PyGraph *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(cfx_graph_size(self->g));
}

static PyObject *get_version(PyGraph *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(cfx_graph_version(self->g));
}

static PyObject *get_memory(PyGraph *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(cfx_graph_memory(self->g));
}

static PyGetSetDef getset[] = {
    {"nodes", (getter)get_nodes, NULL, "The nodes, in order; follows edits.", NULL},
    {"owning_module", (getter)get_owner, (setter)set_owner, "The module it belongs to.", NULL},
    {"_owning_module", (getter)get_owner, (setter)set_owner, NULL, NULL},
    {"_own_owning_module", (getter)get_own_owner, NULL, NULL, NULL},
    {"_root", (getter)get_root, NULL, NULL, NULL},
    {"_insert", (getter)get_insert, NULL, NULL, NULL},
    {"_graph_namespace", (getter)get_names, NULL, NULL, NULL},
    {"_len", (getter)get_len, NULL, NULL, NULL},
    {"_version", (getter)get_version, NULL, NULL, NULL},
    {"_memory", (getter)get_memory, NULL, "Bytes that the core holds for it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"create_node", FAST(graph_create_node),
     SIGNED("create_node($self, op, target, args=None, kwargs=None, name=None, type_expr=None)",
            "Creates a node at the insertion point.")},
    {"placeholder", FAST(graph_placeholder),
     SIGNED("placeholder($self, name, type_expr=None, default_value=...)",
            "Creates an input, with a default value if one is given.")},
    {"get_attr", FAST(graph_get_attr),
     SIGNED("get_attr($self, qualified_name, type_expr=None)",
            "Creates a fetch of a parameter, buffer or module by its path.")},
    {"call_function", FAST(graph_call_function),
     SIGNED("call_function($self, the_function, args=None, kwargs=None, type_expr=None, name=None)",
            "Creates a call of a function.")},
    {"call_method", FAST(graph_call_method),
     SIGNED("call_method($self, method_name, args=None, kwargs=None, type_expr=None)",
            "Creates a call of a method of args[0].")},
    {"call_module", FAST(graph_call_module),
     SIGNED("call_module($self, module_name, args=None, kwargs=None, type_expr=None)",
            "Creates a call of a sub-module by its path.")},
    {"output", FAST(graph_output),
     SIGNED("output($self, result, type_expr=None)", "Creates the output.")},
    {"erase_node", FAST(graph_erase_node),
     SIGNED("erase_node($self, to_erase)", "Erases a node that nobody uses.")},
    {"node_copy", FAST(graph_node_copy),
     SIGNED("node_copy($self, node, arg_transform=None)",
            "Copies a node of any graph; arg_transform says what its inputs become.")},
    {"graph_copy", FAST(graph_graph_copy),
     SIGNED("graph_copy($self, g, val_map, return_output_node=False)",
            "Copies the nodes of g, adds them to val_map and returns the value of its output.")},
    {"find_nodes", FAST(graph_find_nodes),
     SIGNED("find_nodes($self, *, op, target=None, sort=True)",
            "All nodes with an opcode and a target; takes time for what it finds only.")},
    {"_find", (PyCFunction)graph_find_name, METH_O, NULL},
    {"_paths", (PyCFunction)graph_paths, METH_O,
     PyDoc_STR("The distinct targets of call_module and, if the argument is false, of get_attr "
               "nodes; regions included.")},
    {"_on_edit", (PyCFunction)graph_on_edit, METH_O,
     PyDoc_STR("Calls the object, which is held weakly, just before the next edit.")},
    {"_set_insert_point", (PyCFunction)graph_set_insert_point, METH_VARARGS, NULL},
    {"_clear_nodes", (PyCFunction)graph_clear_nodes, METH_NOARGS, NULL},
    {"_columns", (PyCFunction)graph_columns, METH_VARARGS,
     PyDoc_STR("_columns(ref, portable): the nodes attribute by attribute. Among arguments a node "
               "is ref(number), another object portable(object).")},
    {"_fill", (PyCFunction)graph_fill, METH_VARARGS,
     PyDoc_STR("_fill(columns, ref): adds the nodes that _columns gave.")},
    {"_clone", (PyCFunction)graph_clone, METH_NOARGS, NULL},
    {"_extract", (PyCFunction)graph_extract, METH_VARARGS,
     PyDoc_STR("_extract(nodes, inputs, outputs, flags): the graph of a list of nodes, and lists "
               "of what it is given and what it returns; None for inputs or outputs finds them.")},
    {"_place", (PyCFunction)graph_place, METH_VARARGS,
     PyDoc_STR("_place(mode, outputs, totals, latencies, embedding, memory, rate, parts, devices): "
               "the part of each node (None for what is no call) and the device of each part")},
    {"_stages", (PyCFunction)graph_stages, METH_VARARGS,
     PyDoc_STR("_stages(n, costs, sizes): the stage of each node (None for what is no call), and "
               "the largest cost of a stage. Lists with a number for each node, or None.")},
    {"_split_constants", (PyCFunction)graph_split_constants, METH_VARARGS,
     PyDoc_STR("_split_constants(skip, path): what can be computed beforehand and the rest, which "
               "reads it at the path: (graph, {path there: path here}) each; or None.")},
    {"_split", (PyCFunction)graph_split, METH_VARARGS,
     PyDoc_STR("_split(label_of, names, prefix, flags): the base; (path, graph, {path there: path "
               "here}) for each part as called; and (from, to, node) for each value that crosses. "
               "A part is called prefix + str(label); names, if not None, lists all of them.")},
    {"_check_paths", (PyCFunction)graph_check_paths, METH_NOARGS,
     PyDoc_STR("The part of lint that needs the owning module: every path leads somewhere.")},
    {"_faults", (PyCFunction)graph_faults, METH_O, NULL},
    {"_outline", (PyCFunction)graph_outline, METH_VARARGS, NULL},
    {"_functionalize", (PyCFunction)graph_functionalize, METH_O, NULL},
    {"_reinplace", (PyCFunction)graph_reinplace, METH_O, NULL},
    {"_repeated", (PyCFunction)graph_repeated, METH_VARARGS, NULL},
    {"_match", (PyCFunction)graph_match, METH_VARARGS, NULL},
    {"_explain", (PyCFunction)graph_explain, METH_VARARGS, NULL},
    {"_anchors", (PyCFunction)graph_anchors, METH_O, NULL},
    {"_toposort", (PyCFunction)graph_toposort, METH_O, NULL},
    {"_pass", (PyCFunction)graph_pass, METH_VARARGS, NULL},
    {"_inline", (PyCFunction)graph_inline, METH_O, NULL},
    {"_lift_params", (PyCFunction)graph_lift_params, METH_O, NULL},
    {"_unlift_params", (PyCFunction)graph_unlift_params, METH_VARARGS, NULL},
    {"_cse", (PyCFunction)graph_cse, METH_VARARGS, NULL},
    {"_quantize_prepare", (PyCFunction)graph_quantize_prepare, METH_VARARGS, NULL},
    {"_quantize_convert", (PyCFunction)graph_quantize_convert, METH_VARARGS, NULL},
    {"_remove_dropout", (PyCFunction)graph_remove_dropout, METH_VARARGS, NULL},
    {"_merge_matmul", (PyCFunction)graph_merge_matmul, METH_O, NULL},
    {"_may_depend_on", (PyCFunction)graph_may_depend_on, METH_VARARGS, NULL},
    {"_relayout", (PyCFunction)graph_relayout, METH_VARARGS, NULL},
    {"_dce", (PyCFunction)graph_dce, METH_O, NULL},
    {"_annotate_getitem", (PyCFunction)graph_annotate_getitem, METH_NOARGS, NULL},
    {"_dot", FAST(graph_dot), NULL},
    {"_table", (PyCFunction)graph_table, METH_NOARGS, NULL},
    {"_text", (PyCFunction)graph_text, METH_NOARGS, NULL},
    {"_parse", graph_parse, METH_VARARGS | METH_CLASS, NULL},
    {"_correspond", (PyCFunction)graph_correspond, METH_O, NULL},
    {"_blame", (PyCFunction)graph_blame, METH_O, NULL},
    {"_merge_modes", (PyCFunction)graph_merge_modes, METH_VARARGS, NULL},
    {"_minimize", (PyCFunction)graph_minimize, METH_VARARGS, NULL},
    {"_partition", (PyCFunction)graph_partition, METH_VARARGS,
     PyDoc_STR("_partition(supported, connected): a dict {node: its place from the end} for each "
               "part.")},
    {"_edges", (PyCFunction)graph_edges, METH_VARARGS,
     PyDoc_STR("_edges(nodes, transparent): those at the edges for which it answers True.")},
    {"_check_parts", (PyCFunction)graph_check_parts, METH_O,
     PyDoc_STR("Raises RuntimeError if lists of nodes cannot become one call each.")},
    {"_insert_fused", (PyCFunction)graph_insert_fused, METH_VARARGS,
     PyDoc_STR("_insert_fused(path, inputs, outputs, getitem, tuple, after): the call, and what "
               "stands for the outputs.")},
    {"_reached", (PyCFunction)graph_reached, METH_VARARGS,
     PyDoc_STR("_reached(nodes, down): all users, or all inputs, directly or not.")},
    {"_sources", (PyCFunction)graph_sources, METH_O,
     PyDoc_STR("{source: {name: nodes}} for a list of functions, classes and names.")},
    {"_boundary", (PyCFunction)graph_boundary, METH_O,
     PyDoc_STR("What a list of nodes reads from outside, what is read outside, and the get_attr "
               "nodes in it.")},
    {"_deps", (PyCFunction)graph_deps, METH_NOARGS,
     PyDoc_STR("{call: set of the calls whose values it uses}; only calls that use any.")},
    {"_fuse_deps", (PyCFunction)graph_fuse_deps, METH_VARARGS,
     PyDoc_STR("_fuse_deps(deps, groups): makes each group need and be needed as a whole.")},
    {"_acc_groups", (PyCFunction)graph_acc_groups, METH_VARARGS,
     PyDoc_STR("_acc_groups(deps, acc): the calls as few lists (accelerated, calls) in turn; None "
               "if they need each other.")},
    {"_drop_acc", (PyCFunction)graph_drop_acc, METH_VARARGS,
     PyDoc_STR("_drop_acc(acc, is_tensor, work): drops from the set what gets values that are no "
               "tensors from nodes outside: from the list, from all if it is None, or if it is "
               "False what gives such values to nodes outside. The nodes dropped.")},
    {"_move_non_tensors", (PyCFunction)graph_move_non_tensors, METH_VARARGS,
     PyDoc_STR("_move_non_tensors([(accelerated, nodes)], is_tensor): the same after nodes whose "
               "values are not tensors have moved to the part that uses them.")},
    {"_reverse_deps", (PyCFunction)graph_reverse_deps, METH_O,
     PyDoc_STR("_reverse_deps(limit): {call: the calls that use its value}, of those with a tag "
               "that ends with a number below the limit")},
    {"_fuse_users", (PyCFunction)graph_fuse_users, METH_VARARGS,
     PyDoc_STR("_fuse_users(deps, groups): gives all nodes of a group its users")},
    {"_merge_groups", (PyCFunction)graph_merge_groups, METH_O,
     PyDoc_STR("_merge_groups({node: its group}): makes groups that share a node one")},
    {"_parents_of", (PyCFunction)graph_parents_of, METH_O,
     PyDoc_STR("_parents_of(tag): the calls with other tags that calls with this one read")},
    {"_extend_acc", (PyCFunction)graph_extend_acc, METH_VARARGS,
     PyDoc_STR("_extend_acc(tag, parents, acc, groups, users): takes accelerated calls into a part "
               "that has all their users")},
    {"_fusion_groups", (PyCFunction)graph_fusion_groups, METH_VARARGS,
     PyDoc_STR("_fusion_groups(acc, is_tensor): sets of accelerated nodes that pass each other "
               "values that are no tensors.")},
    {"_equal", (PyCFunction)graph_equal, METH_VARARGS, NULL},
    {"_structural_hash", (PyCFunction)graph_structural_hash, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyGraph, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_traverse, graph_traverse},
    {Py_tp_clear, graph_clear},
    {Py_tp_str, graph_str},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec graph_spec = {
    .name = "cfx._core.Graph",
    .basicsize = sizeof(PyGraph),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
