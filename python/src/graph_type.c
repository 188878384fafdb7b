/* graph_type.c - Graph: creating, finding, erasing, copying and printing nodes from Python. */
#include "pycfx.h"

#include <structmember.h>

/* ---- life ---------------------------------------------------------------------------------- */

static PyObject *wrap_as(PyTypeObject *type, module_state *st, cfx_graph *g)
{
    PyGraph *self = alloc_quietly(type);
    if (!self)
        return NULL;
    self->st = st;
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
    return wrap_as(type, st, g);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    module_state *st = state_of(type);
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, &st->host, &err);
    if (!g)
        return raise_cfx(&err);
    PyObject *self = wrap_as(type, st, g);
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
    Py_VISIT(self->owning_module);
    Py_VISIT(self->root);
    Py_VISIT(self->names);
    if (!self->g)
        return 0;
    for (cfx_node *n = cfx_graph_first(self->g); n; n = cfx_node_next(n)) {
        PyNode *node = cfx_node_binding(n);
        if (node && node->owned)
            Py_VISIT((PyObject *)node);
    }
    return cfx_graph_visit_hosts(self->g, visit_object, &job);
}

static int graph_clear(PyGraph *self)
{
    Py_CLEAR(self->owning_module);
    Py_CLEAR(self->root);
    Py_CLEAR(self->names);
    if (self->g)
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
    if (self->g) {  /* no Node object is left: each would have kept this one alive */
        cfx_graph_set_binding(self->g, NULL);
        cfx_graph_release(self->g);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- hooks of the owning module ------------------------------------------------------------ */

/* The hooks of one kind, as a tuple: a hook may change the list. NULL with an exception. */
static PyObject *hooks_of(PyObject *owner, PyObject *list_name)
{
    PyObject *hooks = PyObject_GetAttr(owner, list_name);
    PyObject *copy = hooks ? PySequence_Tuple(hooks) : NULL;
    if (!hooks && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();  /* a plain module has no hooks */
        copy = PyTuple_New(0);
    }
    Py_XDECREF(hooks);
    return copy;
}

static int call_all(PyObject *hooks, PyObject *args, PyObject *kwargs)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hooks); i++) {
        PyObject *result = PyObject_Call(PyTuple_GET_ITEM(hooks, i), args, kwargs);
        if (!result)
            return -1;
        Py_DECREF(result);
    }
    return 0;
}

/* Calls the owning module's hooks of one kind with `node`, or with the keywords if there is none.
 * With an exception pending an edit is being taken back, which is no business of hooks. */
static cfx_status run_hooks(PyGraph *graph, PyObject *list_name, cfx_node *n, PyObject *kwargs,
                            cfx_error *err)
{
    PyObject *hooks = hooks_of(graph->owning_module, list_name);
    int failed = hooks ? 0 : -1;
    if (hooks && PyTuple_GET_SIZE(hooks) > 0) {
        PyObject *node = node_wrap(graph, n);
        PyObject *args = NULL;
        if (node)
            args = kwargs ? PyTuple_New(0) : PyTuple_Pack(1, node);
        failed = args ? call_all(hooks, args, kwargs) : -1;
        Py_XDECREF(args);
        Py_XDECREF(node);
    }
    Py_XDECREF(hooks);
    return failed ? cfx_error_set(err, CFX_E_HOST, "a hook failed") : CFX_OK;
}

static PyGraph *hooked_graph(const cfx_node *n)
{
    PyGraph *graph = cfx_graph_binding(cfx_node_graph(n));
    return graph && graph->owning_module && !PyErr_Occurred() ? graph : NULL;
}

static cfx_status on_create(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    PyGraph *graph = hooked_graph(n);
    (void)ctx, (void)with, (void)user;
    return graph ? run_hooks(graph, graph->st->str_create_hooks, n, NULL, err) : CFX_OK;
}

static cfx_status on_erase(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    PyGraph *graph = hooked_graph(n);
    (void)ctx, (void)with, (void)user;
    return graph ? run_hooks(graph, graph->st->str_erase_hooks, n, NULL, err) : CFX_OK;
}

/* torch.fx gives these hooks the name of the new node. */
static PyObject *replacement(PyGraph *graph, cfx_value with)
{
    size_t size;
    if (with.kind != CFX_KIND_NODE)
        return value_to_py(graph, with);
    const char *name = cfx_node_name(with.as.node, &size);
    return str_from_utf8(name, size);
}

static cfx_status on_replace(void *ctx, cfx_node *n, cfx_value with, cfx_node *user,
                             cfx_error *err)
{
    PyGraph *graph = hooked_graph(user);
    (void)ctx;
    if (!graph)
        return CFX_OK;
    PyObject *old = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *new_ = old ? replacement(graph, with) : NULL;
    PyObject *of = new_ ? node_wrap(graph, user) : NULL;
    PyObject *kwargs = of ? Py_BuildValue("{sOsOsO}", "old", old, "new", new_, "user", of) : NULL;
    cfx_status status = CFX_E_HOST;
    if (kwargs)
        status = run_hooks(graph, graph->st->str_replace_hooks, user, kwargs, err);
    else
        cfx_error_set(err, status, "a hook could not be called");
    Py_XDECREF(kwargs);
    Py_XDECREF(of);
    Py_XDECREF(new_);
    Py_XDECREF(old);
    return status;
}

static int add_hooks(PyGraph *self)
{
    cfx_error err = {0};
    if (self->hooked)
        return 0;
    self->hooked = cfx_graph_add_hook(self->g, CFX_HOOK_CREATE, on_create, NULL, &err) &&
                   cfx_graph_add_hook(self->g, CFX_HOOK_ERASE, on_erase, NULL, &err) &&
                   cfx_graph_add_hook(self->g, CFX_HOOK_REPLACE, on_replace, NULL, &err);
    if (!self->hooked)
        raise_cfx(&err);
    return self->hooked ? 0 : -1;
}

/* ---- creating nodes ------------------------------------------------------------------------ */

/* torch.fx warns or raises where the owning module lacks what a node refers to. */
static int check_reference(PyGraph *self, cfx_opcode op, PyObject *target)
{
    if (!self->owning_module || (op != CFX_OP_GET_ATTR && op != CFX_OP_CALL_MODULE))
        return 0;
    PyObject *job = Py_BuildValue("(OOO)", self->owning_module,
                                  PyTuple_GET_ITEM(self->st->op_names, op), target);
    PyObject *done = job ? call_glue(self->st, "check_reference", job) : NULL;
    Py_XDECREF(job);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

typedef struct node_parts {
    cfx_opcode op;
    PyObject *target, *args, *kwargs, *name, *type;  /* borrowed; NULL or None where absent */
} node_parts;

static bool convert_parts(PyGraph *self, const node_parts *parts, cfx_value *args,
                          cfx_value *kwargs, cfx_value *type)
{
    *args = args_from_py(self, parts->args);
    *kwargs = *type = cfx_invalid();
    if (!PyErr_Occurred())
        *kwargs = kwargs_from_py(self, parts->kwargs);
    if (!PyErr_Occurred() && parts->type && parts->type != Py_None)
        *type = value_from_py(self, parts->type);
    if (!PyErr_Occurred())
        return true;
    cfx_value_discard(self->g, *args);
    cfx_value_discard(self->g, *kwargs);
    return false;
}

/* The wish for a name as UTF-8, to be released after use; what no name can have is left to the
 * core, but for the null character, which would end it. */
static PyObject *wish_of(PyObject *name)
{
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *text = PyUnicode_Check(name) ? utf8_of(name, &size, &keep) : NULL;
    PyObject *wish = text ? PyBytes_FromStringAndSize(text, size) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "the name of a node must be a str, got %R",
                     (PyObject *)Py_TYPE(name));
    for (Py_ssize_t i = 0; wish && i < size; i++)
        if (PyBytes_AS_STRING(wish)[i] == '\0')
            PyBytes_AS_STRING(wish)[i] = '.';
    Py_XDECREF(keep);
    return wish;
}

static PyObject *create_held(PyGraph *self, const node_parts *parts)
{
    cfx_error err = {0};
    cfx_target target;
    cfx_value args, kwargs, type;
    PyObject *keep = NULL;
    PyObject *wish = NULL;
    if (parts->name && parts->name != Py_None && !(wish = wish_of(parts->name)))
        return NULL;
    if (!target_from_py(parts->op, parts->target, &target, &keep)) {
        Py_XDECREF(wish);
        return NULL;
    }
    const char *name = wish ? PyBytes_AS_STRING(wish) : NULL;
    cfx_node *n = NULL;
    if (convert_parts(self, parts, &args, &kwargs, &type)) {
        n = cfx_graph_create(self->g, parts->op, target, args, kwargs, name, type, &err);
        if (!n) {
            cfx_value_discard(self->g, args);
            cfx_value_discard(self->g, kwargs);
            cfx_value_discard(self->g, type);
            raise_cfx(&err);
        }
    }
    Py_XDECREF(keep);
    Py_XDECREF(wish);
    return n ? node_wrap(self, n) : NULL;
}

/* The graph is held, because Python code may run between the conversion of two arguments. */
static PyObject *create(PyGraph *self, const node_parts *parts)
{
    cfx_iter pin = hold(self->g);
    PyObject *node = create_held(self, parts);
    cfx_iter_end(&pin);
    return node;
}

static PyObject *create_node(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"op", "target", "args", "kwargs", "name", "type_expr"};
    static const arg_spec spec = {"create_node", names, 6, 2, 6};
    PyObject *in[6];
    node_parts parts;
    if (!take_args(&spec, args, nargs, kwnames, in) || !opcode_from_py(in[0], &parts.op))
        return NULL;
    if (!is_empty(in[2]) && !PyTuple_Check(in[2]))
        return PyErr_Format(PyExc_AssertionError, "args must be a tuple, got %R",
                            (PyObject *)Py_TYPE(in[2]));
    parts.target = in[1];
    parts.args = in[2];
    parts.kwargs = in[3];
    parts.name = in[4];
    parts.type = in[5];
    return create(self, &parts);
}

static PyObject *call_function(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = {"the_function", "args", "kwargs", "type_expr", "name"};
    static const arg_spec spec = {"call_function", names, 5, 1, 5};
    PyObject *in[5];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    node_parts parts = {CFX_OP_CALL_FUNCTION, in[0], in[1], in[2], in[4], in[3]};
    return create(self, &parts);
}

/* call_method and call_module differ in the name of their first parameter only. */
static PyObject *call_named(PyGraph *self, cfx_opcode op, const arg_spec *spec,
                            PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *in[4];
    if (!take_args(spec, args, nargs, kwnames, in) || check_reference(self, op, in[0]) < 0)
        return NULL;
    node_parts parts = {op, in[0], in[1], in[2], NULL, in[3]};
    return create(self, &parts);
}

static PyObject *call_method(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"method_name", "args", "kwargs", "type_expr"};
    static const arg_spec spec = {"call_method", names, 4, 1, 4};
    return call_named(self, CFX_OP_CALL_METHOD, &spec, args, nargs, kwnames);
}

static PyObject *call_module(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"module_name", "args", "kwargs", "type_expr"};
    static const arg_spec spec = {"call_module", names, 4, 1, 4};
    return call_named(self, CFX_OP_CALL_MODULE, &spec, args, nargs, kwnames);
}

static PyObject *get_attr(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames)
{
    static const char *const names[] = {"qualified_name", "type_expr"};
    static const arg_spec spec = {"get_attr", names, 2, 1, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in) ||
        check_reference(self, CFX_OP_GET_ATTR, in[0]) < 0)
        return NULL;
    node_parts parts = {CFX_OP_GET_ATTR, in[0], NULL, NULL, NULL, in[1]};
    return create(self, &parts);
}

static PyObject *placeholder(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"name", "type_expr", "default_value"};
    static const arg_spec spec = {"placeholder", names, 3, 1, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *defaults = in[2] ? PyTuple_Pack(1, in[2]) : NULL;
    if (in[2] && !defaults)
        return NULL;
    node_parts parts = {CFX_OP_PLACEHOLDER, in[0], defaults, NULL, NULL, in[1]};
    PyObject *node = create(self, &parts);
    Py_XDECREF(defaults);
    return node;
}

static PyObject *output(PyGraph *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"result", "type_expr"};
    static const arg_spec spec = {"output", names, 2, 1, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *result = PyTuple_Pack(1, in[0]);
    PyObject *target = PyTuple_GET_ITEM(self->st->op_names, CFX_OP_OUTPUT);
    if (!result)
        return NULL;
    node_parts parts = {CFX_OP_OUTPUT, target, result, NULL, NULL, in[1]};
    PyObject *node = create(self, &parts);
    Py_DECREF(result);
    return node;
}

/* ---- erasing and moving the insertion point ------------------------------------------------ */

static bool need_node(PyGraph *self, PyObject *o)
{
    if (is_node(self->st, o))
        return true;
    PyErr_Format(PyExc_TypeError, "expected a Node, got %R", (PyObject *)Py_TYPE(o));
    return false;
}

static PyObject *erase_node(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    static const char *const names[] = {"to_erase"};
    static const arg_spec spec = {"erase_node", names, 1, 1, 1};
    cfx_error err = {0};
    PyObject *o;
    if (!take_args(&spec, args, nargs, kwnames, &o) || !need_node(self, o))
        return NULL;
    cfx_node *n = ((PyNode *)o)->n;
    if (cfx_node_graph(n) == self->g && cfx_node_is_erased(n)) {
        if (PyErr_WarnFormat(PyExc_UserWarning, 1, "erase_node(%S) on an already erased node",
                             o) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    if (cfx_node_graph(n) == self->g && cfx_node_num_users(n) > 0) {
        PyObject *users = users_of((PyNode *)o);
        if (users)
            PyErr_Format(PyExc_RuntimeError, "Tried to erase Node %S but it still had %zu users "
                         "in the graph: %R!", o, cfx_node_num_users(n), users);
        Py_XDECREF(users);
        return NULL;
    }
    if (cfx_graph_erase(self->g, n, &err) != CFX_OK)
        return raise_cfx(&err);
    Py_RETURN_NONE;
}

/* Sets the insertion point and returns the one before, as (node or None, after). */
static PyObject *set_insert_point(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *node;
    int after;
    if (!PyArg_ParseTuple(args, "Op:_set_insert_point", &node, &after))
        return NULL;
    if (node != Py_None && !need_node(self, node))
        return NULL;
    cfx_insert_point old = cfx_graph_insert_point(self->g);
    cfx_insert_point at = {node == Py_None ? NULL : ((PyNode *)node)->n, after != 0};
    PyObject *before = old.node ? node_wrap(self, old.node) : Py_NewRef(Py_None);
    if (!before)
        return NULL;
    if (cfx_graph_set_insert_point(self->g, at, &err) != CFX_OK) {
        Py_DECREF(before);
        return raise_cfx(&err);
    }
    return Py_BuildValue("(NN)", before, PyBool_FromLong(old.after));
}

static PyObject *clear_nodes(PyGraph *self, PyObject *unused)
{
    (void)unused;
    if (cfx_graph_is_frozen(self->g)) {
        PyErr_SetString(PyExc_RuntimeError, "the graph is being read and cannot be cleared now");
        return NULL;
    }
    cfx_graph_clear(self->g);
    Py_RETURN_NONE;
}

/* ---- finding ------------------------------------------------------------------------------- */

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
    cfx_status status = cfx_graph_each_of(self->g, op, target, add_found, &found);
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

static PyObject *find_nodes(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
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
    if (!any && PyUnicode_Check(in[1]) == (op == CFX_OP_CALL_FUNCTION))
        return PyList_New(0);
    if (!any && PyUnicode_Check(in[1]) && !target_from_py(op, in[1], &target, &keep))
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
static PyObject *find_name(PyGraph *self, PyObject *name)
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

/* ---- copying ------------------------------------------------------------------------------- */

/* A shallow copy of the metadata of `from`, if it has any. */
static int copy_meta(PyGraph *graph, const cfx_node *from, cfx_node *to)
{
    const PyNode *old = cfx_node_binding(from);
    if (!old || !old->meta || PyDict_GET_SIZE(old->meta) == 0)
        return 0;
    PyNode *node = (PyNode *)node_wrap(graph, to);
    PyObject *meta = node ? PyDict_Copy(old->meta) : NULL;
    if (meta)
        Py_XSETREF(node->meta, meta);
    Py_XDECREF((PyObject *)node);
    return meta ? 0 : -1;
}

/* Likewise for the nodes of a graph and their copies, which stand in the same order. */
static int copy_all_meta(PyGraph *source, PyGraph *copy)
{
    int failed = 0;
    cfx_iter from, to;
    cfx_iter_begin(&from, source->g, false);
    cfx_iter_begin(&to, copy->g, false);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&from)) != NULL;) {
        cfx_node *twin = cfx_iter_next(&to);
        failed = twin ? copy_meta(copy, n, twin) : 0;
    }
    cfx_iter_end(&from);
    cfx_iter_end(&to);
    return failed;
}

static PyObject *clone_graph(PyGraph *self, PyObject *unused)
{
    (void)unused;
    cfx_error err = {0};
    cfx_graph *copy = cfx_graph_clone(self->g, NULL, &err);
    if (!copy)
        return raise_cfx(&err);
    PyObject *graph = wrap_as(Py_TYPE(self), self->st, copy);
    cfx_graph_release(copy);
    if (graph && copy_all_meta(self, (PyGraph *)graph) < 0)
        Py_CLEAR(graph);
    return graph;
}

/* What the arguments of a copied node become: the answers of a Python callable or mapping. */
typedef struct copy_job {
    PyGraph *source, *dest;
    PyObject *callable;  /* NULL: nodes stay what they are */
} copy_job;

static cfx_value copy_arg(void *ctx, cfx_node *n, cfx_error *err)
{
    copy_job *job = ctx;
    PyObject *node = node_wrap(job->source, n);
    PyObject *answer = NULL;
    if (node)
        answer = job->callable ? PyObject_CallOneArg(job->callable, node) : Py_NewRef(node);
    cfx_value v = answer ? value_from_py(job->dest, answer) : cfx_invalid();
    if (v.kind == CFX_KIND_INVALID)
        cfx_error_set(err, CFX_E_HOST, "the argument could not be mapped");
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return v;
}

static PyObject *node_copy(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    static const char *const names[] = {"node", "arg_transform"};
    static const arg_spec spec = {"node_copy", names, 2, 1, 2};
    cfx_error err = {0};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in) || !need_node(self, in[0]))
        return NULL;
    PyNode *from = (PyNode *)in[0];
    if (from->n == cfx_graph_root(cfx_node_graph(from->n)))
        return PyErr_Format(PyExc_ValueError, "the root of a graph cannot be copied");
    copy_job job = {node_graph(from), self, in[1] == Py_None ? NULL : in[1]};
    cfx_iter here = hold(self->g);
    cfx_iter there = hold(job.source->g);
    cfx_node *n = cfx_graph_copy_node(self->g, from->n, copy_arg, &job, &err);
    PyObject *node = n ? node_wrap(self, n) : raise_cfx(&err);
    if (node && copy_meta(self, from->n, n) < 0)
        Py_CLEAR(node);
    cfx_iter_end(&there);
    cfx_iter_end(&here);
    return node;
}

/* Fills `map` from a dict {Node: value}: 0, or -1 with an exception. */
static int read_map(PyGraph *self, PyObject *dict, cfx_node_map *map)
{
    cfx_error err = {0};
    PyObject *items = PyDict_Items(dict);
    int failed = items ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        if (!is_node(self->st, key))
            continue;
        cfx_value v = value_from_py(self, PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1));
        if (v.kind == CFX_KIND_INVALID) {
            failed = -1;
        } else if (cfx_node_map_set(map, ((PyNode *)key)->n, v, &err) != CFX_OK) {
            cfx_value_discard(self->g, v);
            raise_cfx(&err);
            failed = -1;
        }
    }
    Py_XDECREF(items);
    return failed;
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

static PyObject *copy_held(PyGraph *self, PyGraph *source, PyObject *val_map, bool want_output)
{
    cfx_error err = {0};
    cfx_value result = cfx_invalid();
    cfx_node *out = NULL;
    PyObject *answer = NULL;
    cfx_node_map *map = cfx_node_map_new(NULL, &err);
    if (!map || read_map(self, val_map, map) < 0 ||
        cfx_graph_copy_into(self->g, source->g, map, &result, &out, &err) != CFX_OK) {
        raise_cfx(&err);
    } else {
        result = cfx_value_retain(result);
        if (write_map(self, source, val_map, map) == 0)
            answer = finish_copy(self, source, result, out, want_output);
        cfx_value_release(self->g, result);
    }
    cfx_node_map_free(map);
    return answer;
}

static PyObject *graph_copy(PyGraph *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    static const char *const names[] = {"g", "val_map", "return_output_node"};
    static const arg_spec spec = {"graph_copy", names, 3, 2, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
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

static int add_foreign(module_state *st, cfx_graph *g, PyObject *findings);

static int add_foreign_in(const foreign_job *job, cfx_value v)
{
    size_t n;
    if (v.kind == CFX_KIND_GRAPH)
        return add_foreign(job->st, cfx_value_graph(v), job->findings);
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

/* Adds what is wrong with `g` and its regions; most graphs hold nothing that could be. */
static int add_foreign(module_state *st, cfx_graph *g, PyObject *findings)
{
    if (!cfx_graph_visit_hosts(g, is_suspect, st))
        return 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const foreign_job job = {st, n, findings};
        if (add_foreign_in(&job, cfx_node_args(n)) < 0 ||
            add_foreign_in(&job, cfx_node_kwargs(n)) < 0)
            return -1;
    }
    return 0;
}

/* The findings as a list of messages: of lint, or of the stricter verifier. */
static PyObject *find_faults(PyGraph *self, PyObject *strict)
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

static int ask_impure(void *ctx, cfx_node *n)
{
    if (PyErr_Occurred())
        return -1;
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? PyObject_CallOneArg(ctx, node) : NULL;
    int impure = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return impure;
}

static PyObject *dce(PyGraph *self, PyObject *is_impure)
{
    cfx_error err = {0};
    bool changed = false;
    cfx_dce_options options = {ask_impure, is_impure};
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_pass_dce(self->g, is_impure == Py_None ? NULL : &options, &changed,
                                     &err);
    cfx_iter_end(&here);
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

static PyObject *graph_str(PyGraph *self) { return printed(self, cfx_graph_print); }

static PyObject *graph_table(PyGraph *self, PyObject *unused)
{
    (void)unused;
    return printed(self, print_table);
}

static PyObject *graph_text(PyGraph *self, PyObject *unused)
{
    (void)unused;
    return printed(self, cfx_graph_text);
}

static PyObject *graph_parse(PyObject *type, PyObject *text)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep = NULL;
    module_state *st = state_of((PyTypeObject *)type);
    const char *utf8 = PyUnicode_Check(text) ? utf8_of(text, &size, &keep) : NULL;
    if (!utf8) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(text));
        return NULL;
    }
    cfx_graph *g = cfx_graph_parse(utf8, (size_t)size, NULL, &st->host, &err);
    Py_XDECREF(keep);
    if (!g)
        return raise_cfx(&err);
    PyObject *graph = wrap_as((PyTypeObject *)type, st, g);
    cfx_graph_release(g);
    return graph;
}

static PyObject *graph_equal(PyGraph *self, PyObject *args)
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

static PyObject *graph_structural_hash(PyGraph *self, PyObject *args)
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

/* ---- attributes ---------------------------------------------------------------------------- */

static PyObject *get_nodes(PyGraph *self, void *unused)
{
    (void)unused;
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

static PyObject *get_owner(PyGraph *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->owning_module ? self->owning_module : Py_None);
}

static int set_owner(PyGraph *self, PyObject *value, void *unused)
{
    (void)unused;
    bool some = value && value != Py_None;
    if (some && add_hooks(self) < 0)
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
    {"_root", (getter)get_root, NULL, NULL, NULL},
    {"_insert", (getter)get_insert, NULL, NULL, NULL},
    {"_graph_namespace", (getter)get_names, NULL, NULL, NULL},
    {"_len", (getter)get_len, NULL, NULL, NULL},
    {"_version", (getter)get_version, NULL, NULL, NULL},
    {"_memory", (getter)get_memory, NULL, "Bytes that the core holds for it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"create_node", FAST(create_node),
     SIGNED("create_node($self, op, target, args=None, kwargs=None, name=None, type_expr=None)",
            "Creates a node at the insertion point.")},
    {"placeholder", FAST(placeholder),
     SIGNED("placeholder($self, name, type_expr=None, default_value=...)",
            "Creates an input, with a default value if one is given.")},
    {"get_attr", FAST(get_attr),
     SIGNED("get_attr($self, qualified_name, type_expr=None)",
            "Creates a fetch of a parameter, buffer or module by its path.")},
    {"call_function", FAST(call_function),
     SIGNED("call_function($self, the_function, args=None, kwargs=None, type_expr=None, name=None)",
            "Creates a call of a function.")},
    {"call_method", FAST(call_method),
     SIGNED("call_method($self, method_name, args=None, kwargs=None, type_expr=None)",
            "Creates a call of a method of args[0].")},
    {"call_module", FAST(call_module),
     SIGNED("call_module($self, module_name, args=None, kwargs=None, type_expr=None)",
            "Creates a call of a sub-module by its path.")},
    {"output", FAST(output),
     SIGNED("output($self, result, type_expr=None)", "Creates the output.")},
    {"erase_node", FAST(erase_node),
     SIGNED("erase_node($self, to_erase)", "Erases a node that nobody uses.")},
    {"node_copy", FAST(node_copy),
     SIGNED("node_copy($self, node, arg_transform=None)",
            "Copies a node of any graph; arg_transform says what its inputs become.")},
    {"graph_copy", FAST(graph_copy),
     SIGNED("graph_copy($self, g, val_map, return_output_node=False)",
            "Copies the nodes of g, adds them to val_map and returns the value of its output.")},
    {"find_nodes", FAST(find_nodes),
     SIGNED("find_nodes($self, *, op, target=None, sort=True)",
            "All nodes with an opcode and a target; takes time for what it finds only.")},
    {"_find", (PyCFunction)find_name, METH_O, NULL},
    {"_set_insert_point", (PyCFunction)set_insert_point, METH_VARARGS, NULL},
    {"_clear_nodes", (PyCFunction)clear_nodes, METH_NOARGS, NULL},
    {"_clone", (PyCFunction)clone_graph, METH_NOARGS, NULL},
    {"_faults", (PyCFunction)find_faults, METH_O, NULL},
    {"_dce", (PyCFunction)dce, METH_O, NULL},
    {"_table", (PyCFunction)graph_table, METH_NOARGS, NULL},
    {"_text", (PyCFunction)graph_text, METH_NOARGS, NULL},
    {"_parse", graph_parse, METH_O | METH_CLASS, NULL},
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
