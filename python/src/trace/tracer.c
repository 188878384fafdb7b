/* tracer.c - TracerBase and Tracer: recording calls, step by step as a class may override them. */
#include "trace.h"

#include <structmember.h>

static const char *const step_names[] = {
#define X(name) #name,
    TRACER_STEPS(X)
#undef X
};
static const char *const switch_names[] = {
#define X(name) #name,
    TRACER_SWITCHES(X)
#undef X
};
#define N_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- what a class overrides ---------------------------------------------------------------- */

/* Whether `name` leads elsewhere from an object of `type`, whose dict this is, than from the C
 * class. */
static bool is_overridden(PyTypeObject *type, PyObject *dict, PyTypeObject *c_class, PyObject *name)
{
    PyObject *ours = class_lookup(c_class, name);  /* NULL: TracerBase has no steps for modules */
    return ours && (class_lookup(type, name) != ours ||
                    (dict && PyDict_GetItemWithError(dict, name)));
}

static int read_overrides(PyTracer *t, module_state *st)
{
    PyTypeObject *c_class = (PyTypeObject *)(is_full_tracer(st, t) ? st->TracerType
                                                                   : st->TracerBaseType);
    uint32_t bits = 0;
    for (int i = 0; i < N_OF(step_names); i++) {
        PyObject *name = PyTuple_GET_ITEM(st->tracer_steps, i);
        bits |= (uint32_t)is_overridden(Py_TYPE(t), t->dict, c_class, name) << i;
    }
    if (t->graph && is_overridden(Py_TYPE(t->graph), NULL, (PyTypeObject *)st->GraphType,
                                  st->str_create_node))
        bits |= STEP_graph;
    t->overrides = bits;
    return PyErr_Occurred() ? -1 : 0;
}

static int read_switches(PyTracer *t, module_state *st)
{
    uint32_t bits = 0;
    for (int i = 0; i < N_OF(switch_names); i++) {
        PyObject *value = PyObject_GetAttr((PyObject *)t, PyTuple_GET_ITEM(st->tracer_switches, i));
        int on = value ? PyObject_IsTrue(value) : 0;
        if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Clear();  /* a class of tracers without that switch */
        Py_XDECREF(value);
        if (on < 0 || PyErr_Occurred())
            return -1;
        bits |= (uint32_t)on << (SWITCH_INDEX_record_stack_traces + i);
    }
    t->switches = bits;
    return 0;
}

void tracer_follow(PyTracer *t, PyObject *graph)
{
    if (t->sources.graph == graph)
        return;
    source_clear(&t->sources);
    t->scope_number = 0;
    t->origin = 0;
    t->here = 0;
    Py_XSETREF(t->sources.graph, Py_XNewRef(graph));
}

int tracer_refresh(PyTracer *t)
{
    PyTypeObject *type = Py_TYPE(t);
    if (t->version && t->version == class_version(type))
        return 0;
    module_state *st = state_of(type);
    tracer_follow(t, t->graph);
    if (read_overrides(t, st) < 0 || read_switches(t, st) < 0)
        return -1;
    t->version = class_version(type);
    return 0;
}

/* Whatever is assigned may be a step or a switch. */
static int tracer_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    ((PyTracer *)self)->version = 0;
    return PyObject_GenericSetAttr(self, name, value);
}

PyObject *call_step(PyTracer *t, int step, PyObject *const *args, Py_ssize_t n)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *method = PyObject_GetAttr((PyObject *)t, PyTuple_GET_ITEM(st->tracer_steps, step));
    PyObject *result = method ? PyObject_Vectorcall(method, args, (size_t)n, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

/* ---- a new node ---------------------------------------------------------------------------- */

static PyGraph *graph_of(PyTracer *t, module_state *st)
{
    if (t->graph && is_graph(st, t->graph))
        return (PyGraph *)t->graph;
    if (t->graph)
        PyErr_Format(PyExc_TypeError, "the tracer's graph must be a cfx.Graph, got %R",
                     (PyObject *)Py_TYPE(t->graph));
    else
        PyErr_SetString(PyExc_AttributeError, "this tracer has no graph yet: call trace(), or "
                                              "assign a Graph to its attribute 'graph'");
    return NULL;
}

/* torch.fx's objects for the scope, for those who have asked for them. */
static int note_scope(PyTracer *t, PyObject *node)
{
    module_state *st = state_of(Py_TYPE(t));
    if (t->module_stack && PyObject_IsTrue(t->module_stack) == 1) {
        PyObject *meta = PyObject_GetAttrString(node, "meta");
        PyObject *copy = PyObject_CallMethod(t->module_stack, "copy", NULL);
        int failed = !meta || !copy || PyDict_SetItem(meta, st->str_nn_module_stack, copy) < 0;
        Py_XDECREF(meta);
        Py_XDECREF(copy);
        if (failed)
            return -1;
    }
    if (!t->name_scopes)
        return 0;
    PyObject *scope = PyObject_GetAttrString((PyObject *)t, "scope");
    PyObject *path = scope ? PyObject_GetAttrString(scope, "module_path") : NULL;
    PyObject *type = path ? PyObject_GetAttrString(scope, "module_type") : NULL;
    PyObject *name = type ? PyObject_GetAttrString(node, "name") : NULL;
    PyObject *pair = name ? PyTuple_Pack(2, path, type) : NULL;
    int failed = pair ? PyObject_SetItem(t->name_scopes, name, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(path);
    Py_XDECREF(scope);
    return failed;
}

/* Gives a new node its scope and source line; false with an exception. `n` must be held: garbage
 * may be collected. */
static bool place(PyTracer *t, PyGraph *graph, cfx_node *n)
{
    tracer_follow(t, (PyObject *)graph);  /* code that ran may have assigned another one */
    cfx_node_set_module_stack(n, t->scope_number);
    bool is_input = cfx_node_op(n) == CFX_OP_PLACEHOLDER;  /* pytrees make inputs in torch's code */
    uint32_t location = t->here ? t->here : source_location(&t->sources, graph, is_input);
    cfx_node_set_location_id(n, location ? location : t->origin);
    return !PyErr_Occurred();
}

/* Whether new nodes get metadata that only Python can make. */
static bool needs_dress(const PyTracer *t, const module_state *st)
{
    return t->module_stack || t->name_scopes || st->node_meta ||
           t->switches & SWITCH_record_stack_traces;
}

/* Gives it to the node. Steals `node`; NULL if something fails. */
static PyObject *dress(PyTracer *t, module_state *st, PyObject *node)
{
    PyObject *done = Py_None;
    if ((t->module_stack || t->name_scopes) && note_scope(t, node) < 0)
        done = NULL;
    if (done && st->node_meta) {
        done = PyObject_CallOneArg(st->node_meta, node);
        Py_XDECREF(done);
    }
    if (done && t->switches & SWITCH_record_stack_traces) {
        PyObject *pair = PyTuple_Pack(2, (PyObject *)t, node);
        done = pair ? call_glue(st, "record_stack", pair) : NULL;
        Py_XDECREF(pair);
        Py_XDECREF(done);
    }
    if (!done)
        Py_CLEAR(node);
    return node;
}

static int check_mutation(PyTracer *t, module_state *st, const node_parts *parts)
{
    if (parts->op != CFX_OP_CALL_FUNCTION || !(t->switches & SWITCH_check_mutable_operations))
        return 0;
    PyObject *job = PyTuple_Pack(3, parts->target, parts->args ? parts->args : st->empty_tuple,
                                 parts->kwargs ? parts->kwargs : st->empty_dict);
    PyObject *done = job ? call_glue(st, "check_mutation", job) : NULL;
    Py_XDECREF(job);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *none_if_absent(PyObject *o) { return o ? o : Py_None; }

/* A graph of its own kind may make its own kind of nodes, or put them elsewhere. */
static PyObject *node_through_graph(PyTracer *t, module_state *st, const node_parts *parts)
{
    PyObject *node = graph_create_by_method((PyGraph *)t->graph, parts);
    if (!node || !is_node(st, node) || (PyObject *)node_graph((PyNode *)node) != t->graph)
        return node;
    if (!place(t, (PyGraph *)t->graph, ((PyNode *)node)->n))
        Py_CLEAR(node);
    return node ? dress(t, st, node) : NULL;
}

/* create_node, not overridden: the arguments are nodes and values already, unless parts->tracer. */
static PyObject *new_node(PyTracer *t, module_state *st, const node_parts *parts)
{
    PyGraph *graph = graph_of(t, st);
    if (!graph || check_mutation(t, st, parts) < 0)
        return NULL;
    if (t->overrides & STEP_graph)
        return node_through_graph(t, st, parts);
    Py_INCREF((PyObject *)graph);  /* code that runs may assign another graph */
    PyObject *node = graph_create(graph, parts);
    if (node && !place(t, graph, ((PyNode *)node)->n))
        Py_CLEAR(node);
    if (node && needs_dress(t, st))
        node = dress(t, st, node);
    Py_DECREF((PyObject *)graph);
    return node;
}

PyObject *tracer_node(PyTracer *t, const node_parts *parts)
{
    return tracer_refresh(t) < 0 ? NULL : new_node(t, state_of(Py_TYPE(t)), parts);
}

/* ---- recording ----------------------------------------------------------------------------- */

/* create_node by way of whatever the class has for it; `args` and `kwargs` are converted. */
static PyObject *node_by_steps(PyTracer *t, module_state *st, const trace_call *call,
                               PyObject *args, PyObject *kwargs)
{
    PyObject *const in[6] = {PyTuple_GET_ITEM(st->op_names, call->op), call->target, args, kwargs,
                             none_if_absent(call->name), none_if_absent(call->type)};
    if (t->overrides & STEP_create_node)
        return call_step(t, STEP_INDEX_create_node, in, 6);
    node_parts parts = {.op = call->op, .target = call->target, .args = args, .kwargs = kwargs,
                        .name = call->name, .type = call->type};
    return new_node(t, st, &parts);
}

PyObject *tuple_of(PyObject *const *items, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(items[i]));
    return tuple;
}

static PyObject *record_by_steps(PyTracer *t, module_state *st, const trace_call *call)
{
    PyObject *plain = tuple_of(call->args, call->n);
    PyObject *named = call->kwargs ? Py_NewRef(call->kwargs) : PyDict_New();
    PyObject *args = plain && named ? tracer_arg(t, plain) : NULL;
    PyObject *kwargs = args ? tracer_arg(t, named) : NULL;
    PyObject *node = NULL;
    if (kwargs && (!PyTuple_Check(args) || !PyDict_Check(kwargs)))
        PyErr_Format(PyExc_AssertionError, "create_arg must return a tuple for a tuple and a dict "
                     "for a dict, got %R and %R", (PyObject *)Py_TYPE(args),
                     (PyObject *)Py_TYPE(kwargs));
    else if (kwargs)
        node = node_by_steps(t, st, call, args, kwargs);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(named);
    Py_XDECREF(plain);
    return node;
}

PyObject *tracer_proxy(PyTracer *t, PyObject *node)
{
    return t->overrides & STEP_proxy ? call_step(t, STEP_INDEX_proxy, &node, 1)
                                     : proxy_new(state_of(Py_TYPE(t)), node, (PyObject *)t);
}

/* All in C: nothing is overridden, and nobody wants to see the node. */
static PyObject *record_in_core(PyTracer *t, module_state *st, const node_parts *parts)
{
    PyGraph *graph = graph_of(t, st);
    if (!graph)
        return NULL;
    Py_INCREF((PyObject *)graph);
    cfx_iter held = hold(graph->g);
    cfx_node *n = graph_create_core(graph, parts);
    PyObject *proxy = n && place(t, graph, n) ? proxy_of_core(st, graph, n, (PyObject *)t) : NULL;
    cfx_iter_end(&held);
    Py_DECREF((PyObject *)graph);
    return proxy;
}

/* create_proxy, not overridden. */
static PyObject *record(PyTracer *t, module_state *st, const trace_call *call)
{
    const uint32_t steps = STEP_create_arg | STEP_create_node | STEP_graph;
    PyObject *node;
    if (t->overrides & steps || t->switches & SWITCH_check_mutable_operations) {
        node = record_by_steps(t, st, call);
    } else {
        node_parts parts = {.op = call->op, .target = call->target, .kwargs = call->kwargs,
                            .name = call->name, .type = call->type, .items = call->args,
                            .n = call->n, .tracer = t};
        if (!call->factory && !(t->overrides & STEP_proxy) && !needs_dress(t, st))
            return record_in_core(t, st, &parts);
        node = new_node(t, st, &parts);
    }
    if (!node)
        return NULL;
    PyObject *proxy = call->factory ? PyObject_CallOneArg(call->factory, node)
                                    : tracer_proxy(t, node);
    Py_DECREF(node);
    return proxy;
}

/* Through create_proxy of the class: torch.fx gives it the optional arguments by name. */
static PyObject *record_through(module_state *st, PyObject *tracer, const trace_call *call)
{
    PyObject *method = PyObject_GetAttr(tracer, st->str_create_proxy);
    PyObject *args = method ? tuple_of(call->args, call->n) : NULL;
    PyObject *kwargs = call->kwargs ? Py_NewRef(call->kwargs) : PyDict_New();
    PyObject *in = args && kwargs ? PyTuple_Pack(4, PyTuple_GET_ITEM(st->op_names, call->op),
                                                 call->target, args, kwargs) : NULL;
    PyObject *named = in ? PyDict_New() : NULL;
    PyObject *result = NULL;
    if (named && (!call->name || PyDict_SetItemString(named, "name", call->name) == 0) &&
        (!call->type || PyDict_SetItemString(named, "type_expr", call->type) == 0) &&
        (!call->factory || PyDict_SetItemString(named, "proxy_factory_fn", call->factory) == 0))
        result = PyObject_Call(method, in, named);
    Py_XDECREF(named);
    Py_XDECREF(in);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(method);
    return result;
}

PyObject *tracer_record(module_state *st, PyObject *tracer, const trace_call *call)
{
    PyTracer *t = (PyTracer *)tracer;
    if (!is_tracer(st, tracer))
        return record_through(st, tracer, call);
    if (tracer_refresh(t) < 0)
        return NULL;
    return t->overrides & STEP_create_proxy ? record_through(st, tracer, call)
                                            : record(t, st, call);
}

/* ---- the steps as methods ------------------------------------------------------------------ */

#define FAST_ARGS PyTracer *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

static bool given(PyObject *o) { return o && o != Py_None; }

static PyObject *py_create_node(FAST_ARGS)
{
    static const char *const names[] = {"kind", "target", "args", "kwargs", "name", "type_expr"};
    static const arg_spec spec = {"create_node", names, 6, 4, 6};
    module_state *st = state_of(Py_TYPE(self));
    PyObject *in[6];
    node_parts parts = {0};
    if (!take_args(&spec, args, nargs, kwnames, in) || !opcode_from_py(in[0], &parts.op) ||
        tracer_refresh(self) < 0)
        return NULL;
    parts.target = in[1];
    parts.args = in[2];
    parts.kwargs = in[3];
    parts.name = given(in[4]) ? in[4] : NULL;
    parts.type = given(in[5]) ? in[5] : NULL;
    return new_node(self, st, &parts);
}

static PyObject *py_create_proxy(FAST_ARGS)
{
    static const char *const names[] = {"kind", "target", "args", "kwargs", "name", "type_expr",
                                        "proxy_factory_fn"};
    static const arg_spec spec = {"create_proxy", names, 7, 4, 7};
    PyObject *in[7];
    trace_call call = {0};
    if (!take_args(&spec, args, nargs, kwnames, in) || !opcode_from_py(in[0], &call.op) ||
        tracer_refresh(self) < 0)
        return NULL;
    if (!PyTuple_Check(in[2]) || !PyDict_Check(in[3]))
        return PyErr_Format(PyExc_AssertionError, "create_proxy takes a tuple of arguments and a "
                            "dict, got %R and %R", (PyObject *)Py_TYPE(in[2]),
                            (PyObject *)Py_TYPE(in[3]));
    call.target = in[1];
    call.args = ((PyTupleObject *)in[2])->ob_item;
    call.n = PyTuple_GET_SIZE(in[2]);
    call.kwargs = in[3];
    call.name = given(in[4]) ? in[4] : NULL;
    call.type = given(in[5]) ? in[5] : NULL;
    call.factory = given(in[6]) ? in[6] : NULL;
    return record(self, state_of(Py_TYPE(self)), &call);
}

/* _output(result, hint): the output node, by create_arg and create_node like any other. */
static PyObject *py_output(PyTracer *self, PyObject *args)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *result, *hint;
    if (!PyArg_ParseTuple(args, "OO:_output", &result, &hint) || tracer_refresh(self) < 0)
        return NULL;
    trace_call call = {.op = CFX_OP_OUTPUT, .args = &result, .n = 1, .type = hint,
                       .target = PyTuple_GET_ITEM(st->op_names, CFX_OP_OUTPUT)};
    PyObject *node = NULL;
    if (self->overrides & (STEP_create_arg | STEP_create_node | STEP_graph)) {
        PyObject *arg = tracer_arg(self, result);
        PyObject *in = arg ? PyTuple_Pack(1, arg) : NULL;
        PyObject *named = in ? PyDict_New() : NULL;
        node = named ? node_by_steps(self, st, &call, in, named) : NULL;
        Py_XDECREF(named);
        Py_XDECREF(in);
        Py_XDECREF(arg);
    } else {
        node_parts parts = {.op = call.op, .target = call.target, .type = hint, .items = &result,
                            .n = 1, .tracer = self};
        node = needs_dress(self, st) ? new_node(self, st, &parts)
                                     : record_in_core(self, st, &parts);
    }
    Py_XDECREF(node);
    return node ? Py_NewRef(Py_None) : NULL;
}

/* _begin(file, line): where the traced function begins. */
static PyObject *py_begin(PyTracer *self, PyObject *args)
{
    cfx_error err = {0};
    const char *file;
    unsigned line;
    PyGraph *graph = graph_of(self, state_of(Py_TYPE(self)));
    if (!graph || !PyArg_ParseTuple(args, "sI:_begin", &file, &line) || tracer_refresh(self) < 0)
        return NULL;
    self->origin = cfx_graph_intern_location(graph->g, file, line, &err);
    if (!self->origin && err.status == CFX_E_NOMEM)
        return raise_cfx(&err);
    Py_RETURN_NONE;
}

static PyObject *py_find_user_frame(PyTracer *self, PyObject *unused)
{
    (void)unused;
    return call_glue(state_of(Py_TYPE(self)), "user_frame", Py_None);
}

static PyObject *py_filter_frames(PyTracer *self, PyObject *summary)
{
    (void)self;
    return Py_NewRef(summary);
}

static PyObject *py_create_arg(PyTracer *self, PyObject *a)
{
    return tracer_refresh(self) < 0 ? NULL : tracer_create_arg(self, a);
}

static PyObject *py_proxy(PyTracer *self, PyObject *node)
{
    return proxy_new(state_of(Py_TYPE(self)), node, (PyObject *)self);
}

static PyObject *py_to_bool(PyTracer *self, PyObject *proxy)
{
    return refuse(state_of(Py_TYPE(self)), "bool", proxy);
}

static PyObject *py_iter(PyTracer *self, PyObject *proxy)
{
    return refuse(state_of(Py_TYPE(self)), "iter", proxy);
}

static PyObject *py_keys(PyTracer *self, PyObject *proxy)
{
    (void)self;
    PyObject *attribute = PyObject_CallMethod(proxy, "__getattr__", "s", "keys");
    PyObject *result = attribute ? PyObject_CallNoArgs(attribute) : NULL;
    Py_XDECREF(attribute);
    return result;
}

static PyObject *py_is_leaf_module(FAST_ARGS)
{
    static const char *const names[] = {"m", "module_qualified_name"};
    static const arg_spec spec = {"is_leaf_module", names, 2, 2, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    int leaf = module_is_leaf(state_of(Py_TYPE(self)), in[0]);
    return leaf < 0 ? NULL : PyBool_FromLong(leaf);
}

static PyObject *py_path_of_module(FAST_ARGS)
{
    static const char *const names[] = {"mod"};
    static const arg_spec spec = {"path_of_module", names, 1, 1, 1};
    PyObject *module;
    return take_args(&spec, args, nargs, kwnames, &module) ? module_path(self, module) : NULL;
}

static PyObject *py_call_module(FAST_ARGS)
{
    static const char *const names[] = {"m", "forward", "args", "kwargs"};
    static const arg_spec spec = {"call_module", names, 4, 4, 4};
    PyObject *in[4];
    if (!take_args(&spec, args, nargs, kwnames, in) || tracer_refresh(self) < 0)
        return NULL;
    return tracer_call_module(self, in[0], in[1], in[2], in[3]);
}

static PyObject *py_getattr(FAST_ARGS)
{
    static const char *const names[] = {"attr", "attr_val", "parameter_proxy_cache"};
    static const arg_spec spec = {"getattr", names, 3, 3, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in) || tracer_refresh(self) < 0)
        return NULL;
    return tracer_getattr(self, in[1], in[2]);
}

PyObject *refuse(module_state *st, const char *what, PyObject *o)
{
    PyObject *job = Py_BuildValue("(sO)", what, o);
    PyObject *never = job ? call_glue(st, "refuse", job) : NULL;
    Py_XDECREF(never);
    Py_XDECREF(job);
    return NULL;
}

/* ---- torch.fx's objects for scopes --------------------------------------------------------- */

static PyGraph *graph_or_null(PyTracer *self)
{
    module_state *st = state_of(Py_TYPE(self));
    return self->graph && is_graph(st, self->graph) ? (PyGraph *)self->graph : NULL;
}

static PyObject *make_scope(PyTracer *self)
{
    module_state *st = state_of(Py_TYPE(self));
    PyGraph *graph = graph_or_null(self);
    PyObject *pair = graph ? scope_pair(graph, self->scope_number)
                           : Py_BuildValue("(sO)", "", Py_None);
    PyObject *scope = pair ? PyObject_CallObject(st->scope_class, pair) : NULL;
    Py_XDECREF(pair);
    return scope;
}

static PyObject *make_module_stack(PyTracer *self)
{
    PyGraph *graph = graph_or_null(self);
    return graph ? scope_stack(graph, self->scope_number) : PyODict_New();
}

static PyObject *make_name_scopes(PyTracer *self)
{
    PyGraph *graph = graph_or_null(self);
    PyObject *dict = PyDict_New();
    cfx_node *n = graph && dict ? cfx_graph_first(graph->g) : NULL;
    for (; dict && n; n = cfx_node_next(n)) {
        size_t size;
        const char *text = cfx_node_name(n, &size);
        PyObject *name = str_from_utf8(text, size);
        PyObject *pair = name ? scope_pair(graph, cfx_node_module_stack(n)) : NULL;
        if (!pair || PyDict_SetItem(dict, name, pair) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(pair);
    }
    return dict;
}

/* An attribute of the tracer that is made when first asked for; `closure` is its row here. */
typedef struct lazy {
    size_t offset;
    PyObject *(*make)(PyTracer *self);
} lazy;

static PyObject *get_lazy(PyTracer *self, void *closure)
{
    const lazy *row = closure;
    PyObject **slot = (PyObject **)((char *)self + row->offset);
    if (*slot)
        return Py_NewRef(*slot);
    tracer_follow(self, self->graph);
    PyObject *made = row->make(self);
    if (made)
        Py_XSETREF(*slot, Py_NewRef(made));
    return made;
}

static int set_lazy(PyTracer *self, PyObject *value, void *closure)
{
    const lazy *row = closure;
    PyObject **slot = (PyObject **)((char *)self + row->offset);
    Py_XSETREF(*slot, Py_XNewRef(value));
    return 0;
}

/* Whoever asks for the dict may put a step or a switch there. */
static PyObject *get_dict(PyTracer *self, void *unused)
{
    self->version = 0;
    return PyObject_GenericGetDict((PyObject *)self, unused);
}

static PyObject *get_busy(PyTracer *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->session != NULL);
}

static PyObject *make_num_calls(PyTracer *self)
{
    (void)self;
    return PyDict_New();
}

static const lazy lazy_scope = {offsetof(PyTracer, scope), make_scope};
static const lazy lazy_module_stack = {offsetof(PyTracer, module_stack), make_module_stack};
static const lazy lazy_name_scopes = {offsetof(PyTracer, name_scopes), make_name_scopes};
static const lazy lazy_num_calls = {offsetof(PyTracer, num_calls), make_num_calls};

/* ---- life ---------------------------------------------------------------------------------- */

#define TRACER_OBJECTS(X)                                                                          \
    X(graph) X(dict) X(paths) X(parameters) X(buffers) X(proxies) X(class_names) X(num_calls)      \
    X(scope) X(module_stack) X(name_scopes)

void tracer_end(PyTracer *t)
{
    Py_CLEAR(t->paths);
    Py_CLEAR(t->parameters);
    Py_CLEAR(t->buffers);
    Py_CLEAR(t->proxies);
    Py_CLEAR(t->class_names);
    source_clear(&t->sources);
    Py_CLEAR(t->sources.graph);
    t->version = 0;
}

static int tracer_traverse(PyTracer *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->sources.graph);
#define X(name) Py_VISIT(self->name);
    TRACER_OBJECTS(X)
#undef X
    return 0;
}

static int tracer_clear(PyTracer *self)
{
    source_clear(&self->sources);
    Py_CLEAR(self->sources.graph);
#define X(name) Py_CLEAR(self->name);
    TRACER_OBJECTS(X)
#undef X
    return 0;
}

static void tracer_dealloc(PyTracer *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weak)
        PyObject_ClearWeakRefs((PyObject *)self);
    tracer_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- the types ----------------------------------------------------------------------------- */

static PyMethodDef base_methods[] = {
    {"create_node", FAST(py_create_node),
     SIGNED("create_node($self, kind, target, args, kwargs, name=None, type_expr=None)",
            "Inserts a node; arguments are nodes and values. Override to see every node.")},
    {"create_proxy", FAST(py_create_proxy),
     SIGNED("create_proxy($self, kind, target, args, kwargs, name=None, type_expr=None, "
            "proxy_factory_fn=None)",
            "Records a call whose arguments may contain proxies; returns its Proxy.")},
    {"create_arg", (PyCFunction)py_create_arg, METH_O,
     SIGNED("create_arg($self, a, /)",
            "An object as the argument of a node. Override to allow more kinds of objects.")},
    {"_begin", (PyCFunction)py_begin, METH_VARARGS, NULL},
    {"_placeholders", (PyCFunction)tracer_placeholders, METH_VARARGS, NULL},
    {"_output", (PyCFunction)py_output, METH_VARARGS, NULL},
    {"_find_user_frame", (PyCFunction)py_find_user_frame, METH_NOARGS,
     SIGNED("_find_user_frame($self, /)", "The innermost frame of the user's own code, or None.")},
    {"_filter_traceback_frames", (PyCFunction)py_filter_frames, METH_O,
     SIGNED("_filter_traceback_frames($self, user_stack_summary, /)",
            "Override to choose which frames of the user's become the stack trace of a node.")},
    {"proxy", (PyCFunction)py_proxy, METH_O,
     SIGNED("proxy($self, node, /)", "The Proxy of a node. Override for a class of your own.")},
    {"to_bool", (PyCFunction)py_to_bool, METH_O,
     SIGNED("to_bool($self, obj, /)", "What `if proxy:` asks; by default a TraceError.")},
    {"iter", (PyCFunction)py_iter, METH_O,
     SIGNED("iter($self, obj, /)", "What `for _ in proxy:` asks; by default a TraceError.")},
    {"keys", (PyCFunction)py_keys, METH_O,
     SIGNED("keys($self, obj, /)", "What `**proxy` asks; by default a call of `keys`.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef base_members[] = {
    {"graph", T_OBJECT_EX, offsetof(PyTracer, graph), 0, "the graph that nodes are added to"},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTracer, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTracer, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define LAZY(name, row, doc)                                                                       \
    {name, (getter)get_lazy, (setter)set_lazy, doc, (void *)(uintptr_t)(row)}
static PyGetSetDef base_getset[] = {
    {"__dict__", (getter)get_dict, PyObject_GenericSetDict, NULL, NULL},
    LAZY("scope", &lazy_scope, "the module that is being called"),
    LAZY("module_stack", &lazy_module_stack, "the modules that are being called, outermost first"),
    LAZY("node_name_to_scope", &lazy_name_scopes, "the module that each node was made in"),
    LAZY("num_calls", &lazy_num_calls, "how often each module was called"),
    {"_busy", (getter)get_busy, NULL, "whether it runs a trace", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot base_slots[] = {
    {Py_tp_doc, "What records the uses of proxies in a graph."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, tracer_dealloc},
    {Py_tp_traverse, tracer_traverse},
    {Py_tp_clear, tracer_clear},
    {Py_tp_setattro, tracer_setattro},
    {Py_tp_methods, base_methods},
    {Py_tp_members, base_members},
    {Py_tp_getset, base_getset},
    {0, NULL},
};

PyType_Spec tracer_base_spec = {
    .name = "cfx.proxy.TracerBase",
    .basicsize = sizeof(PyTracer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = base_slots,
};

/* The switches are attributes of the class, all off: a class or an object may set them. */
int tracer_type_ready(PyObject *type)
{
    module_state *st = state_of((PyTypeObject *)type);
    st->tracer_steps = interned_names(step_names, N_OF(step_names));
    st->tracer_switches = interned_names(switch_names, N_OF(switch_names));
    if (!st->tracer_steps || !st->tracer_switches)
        return -1;
    for (int i = 0; i < N_OF(switch_names); i++)
        if (PyObject_SetAttrString(type, switch_names[i], Py_False) < 0)
            return -1;
    PyObject *name = PyUnicode_FromString("forward");
    int failed = name ? PyObject_SetAttrString(type, "traced_func_name", name) : -1;
    Py_XDECREF(name);
    return failed;
}

static PyMethodDef tracer_methods[] = {
    {"is_leaf_module", FAST(py_is_leaf_module),
     SIGNED("is_leaf_module($self, m, module_qualified_name)",
            "Whether a module becomes one call_module node instead of being traced through. By "
            "default torch.nn's own modules do, but for Sequential.")},
    {"path_of_module", FAST(py_path_of_module),
     SIGNED("path_of_module($self, mod)", "The path of a module below the root.")},
    {"call_module", FAST(py_call_module),
     SIGNED("call_module($self, m, forward, args, kwargs)",
            "What happens when a module is called: a call_module node for a leaf, else "
            "forward(*args, **kwargs).")},
    {"_member_path", (PyCFunction)tracer_member_path, METH_O, NULL},
    {"getattr", FAST(py_getattr),
     SIGNED("getattr($self, attr, attr_val, parameter_proxy_cache)",
            "What reading a module's attribute gives: for a parameter, its Proxy.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef tracer_members[] = {
    {"submodule_paths", T_OBJECT, offsetof(PyTracer, paths), 0, "{module: path} during a trace"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tracer_slots[] = {
    {Py_tp_doc, "The part of Tracer that is written in C."},
    {Py_tp_methods, tracer_methods},
    {Py_tp_members, tracer_members},
    {0, NULL},
};

PyType_Spec tracer_spec = {
    .name = "cfx._core.Tracer",
    .basicsize = sizeof(PyTracer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = tracer_slots,
};
