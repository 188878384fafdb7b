/* script_graph.c - the world of scripts: graph values, tensors, and where nodes come from. */
#include "scripting.h"

/* ---- recording ----------------------------------------------------------------------------- */

PyObject *script_record(PyScript *w, PyObject *target, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwargs)
{
    trace_call call = {.op = CFX_OP_CALL_FUNCTION, .target = target, .args = args, .n = n,
                       .kwargs = kwargs};
    return tracer_record(w->st, (PyObject *)w->tracer, &call);
}

PyObject *script_record_method(PyScript *w, PyObject *name, PyObject *const *args, Py_ssize_t n,
                               PyObject *kwargs)
{
    trace_call call = {.op = CFX_OP_CALL_METHOD, .target = name, .args = args, .n = n,
                       .kwargs = kwargs};
    return tracer_record(w->st, (PyObject *)w->tracer, &call);
}

PyObject *script_record_operator(PyScript *w, const char *name, PyObject *const *args,
                                 Py_ssize_t n)
{
    char full[40];
    const int size = snprintf(full, sizeof full, "operator.%s", name);
    PyObject *function = resolve_name(w->st, full, (size_t)size);
    PyObject *proxy = function ? script_record(w, function, args, n, NULL) : NULL;
    if (!function && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "there is no %s", full);
    Py_XDECREF(function);
    return proxy;
}

/* ---- tensors of the program ---------------------------------------------------------------- */

PyObject *script_read(PyScript *w, PyObject *o)
{
    if (!is_tensor(w->st, o) || is_proxy(w->st, o))
        return Py_NewRef(o);
    PyObject *node = tracer_refresh(w->tracer) == 0 ? tracer_arg(w->tracer, o) : NULL;
    PyObject *proxy = NULL;
    if (node && is_node(w->st, node))
        proxy = tracer_proxy(w->tracer, node);
    else if (node)
        PyErr_Format(PyExc_TypeError, "the tracer's create_arg must return a Node for a tensor, "
                     "got %R", (PyObject *)Py_TYPE(node));
    Py_XDECREF(node);
    return proxy;
}

static cfx_object *world_tensor(void *ctx, cfx_object *o, cfx_error *err)
{
    PyScript *w = ctx;
    if (err)
        err->status = CFX_OK;
    return is_tensor(w->st, py(o)) ? script_result(w, script_read(w, py(o)), err) : NULL;
}

/* ---- graph values -------------------------------------------------------------------------- */

static cfx_node *world_node(void *ctx, cfx_object *o)
{
    PyScript *w = ctx;
    PyProxy *proxy = (PyProxy *)o;
    if (!is_proxy(w->st, py(o)) || proxy->tracer != (PyObject *)w->tracer)
        return NULL;
    if (proxy->graph)
        return proxy->n;
    PyObject *node = proxy_node(w->st, py(o));
    cfx_node *n = node && is_node(w->st, node) ? ((PyNode *)node)->n : NULL;
    if (!node)
        PyErr_Clear();  /* memory is out: whoever uses the value next will find out */
    Py_XDECREF(node);
    return n && (PyObject *)cfx_graph_binding(cfx_node_graph(n)) == w->tracer->graph ? n : NULL;
}

static cfx_object *world_proxy(void *ctx, cfx_node *n, cfx_error *err)
{
    PyScript *w = ctx;
    return script_result(w, proxy_of_core(w->st, (PyGraph *)w->tracer->graph, n,
                                          (PyObject *)w->tracer), err);
}

static int stop_at_module(void *ctx, PyObject *leaf) { return is_nn_module(ctx, leaf); }

/* What no graph can hold, said in the words of who writes the program. */
static int check_value(PyScript *w, PyObject *o)
{
    const bool function = script_function_of(w, o) || PyFunction_Check(o) || PyMethod_Check(o) ||
                          PyCFunction_Check(o);
    const int modules = function ? 0 : visit_leaves(o, stop_at_module, w->st);
    if (function || modules > 0)
        script_refuse(w, "a %s cannot be a graph value: a branch or loop that depends on data "
                      "cannot select or return one; call it inside each "
                      "branch instead", function ? "function" : "module");
    return PyErr_Occurred() ? -1 : 0;
}

static cfx_status world_value(void *ctx, cfx_object *o, cfx_value *v, cfx_error *err)
{
    PyScript *w = ctx;
    if (check_value(w, py(o)) < 0)
        return script_failed(w, err);
    PyGraph *graph = (PyGraph *)w->tracer->graph;
    struct PyTracer *outer = graph->tracer;
    cfx_iter held = hold(graph->g);
    graph->tracer = w->tracer;
    *v = value_from_py(graph, py(o));
    graph->tracer = outer;
    cfx_iter_end(&held);
    if (v->kind == CFX_KIND_INVALID && PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
        PyErr_Clear();  /* what a trace would advise does not help here */
        script_refuse(w, "an object of type %s cannot be a graph value: a branch or loop that "
                      "depends on data cannot select or return one; select the values it holds "
                      "inside each branch instead", Py_TYPE(py(o))->tp_name);
    }
    return v->kind == CFX_KIND_INVALID ? script_failed(w, err) : CFX_OK;
}

/* Whether a file is cfx's own or torch's: helpers and layers there are evaluated on behalf of the
 * line that calls. */
static bool is_helper(void *ctx, const char *file)
{
    const PyScript *w = ctx;
    PyObject *paths = w->st->library_paths;
    bool found = false;
    for (Py_ssize_t i = 0; paths && !found && i < PyTuple_GET_SIZE(paths); i++) {
        const char *ours = PyUnicode_AsUTF8(PyTuple_GET_ITEM(paths, i));
        if (!ours)
            PyErr_Clear();  /* a path without UTF-8: no harm done */
        found = ours && strncmp(file, ours, strlen(ours)) == 0;
    }
    return found;
}

static void world_place(void *ctx, const char *file, uint32_t line)
{
    PyScript *w = ctx;
    PyGraph *graph = (PyGraph *)w->tracer->graph;
    if ((file == w->file && line == w->line) || (file && file != w->file && is_helper(w, file)))
        return;
    w->file = file;
    w->line = line;
    tracer_follow(w->tracer, (PyObject *)graph);
    /* 0 if memory is out: then it is looked for on Python's stack */
    w->tracer->here = file ? cfx_graph_intern_location(graph->g, file, line, NULL) : 0;
}

/* ---- classes of what is not known ---------------------------------------------------------- */

/* The class of values of a kind, borrowed. What nothing is known of is taken for a tensor: that is
 * what inputs mostly are. */
static PyObject *class_of_kind(const module_state *st, cfx_object_kind kind)
{
    switch (kind) {
    case CFX_OBJECT_NONE:
        return (PyObject *)Py_TYPE(Py_None);
    case CFX_OBJECT_BOOL:
        return (PyObject *)&PyBool_Type;
    case CFX_OBJECT_INT:
        return (PyObject *)&PyLong_Type;
    case CFX_OBJECT_FLOAT:
        return (PyObject *)&PyFloat_Type;
    case CFX_OBJECT_COMPLEX:
        return (PyObject *)&PyComplex_Type;
    case CFX_OBJECT_STR:
        return (PyObject *)&PyUnicode_Type;
    case CFX_OBJECT_TUPLE:
    case CFX_OBJECT_NAMED_TUPLE:
        return (PyObject *)&PyTuple_Type;
    case CFX_OBJECT_LIST:
        return (PyObject *)&PyList_Type;
    case CFX_OBJECT_DICT:
        return (PyObject *)&PyDict_Type;
    case CFX_OBJECT_SET:
        return (PyObject *)&PySet_Type;
    case CFX_OBJECT_CLASS:
        return (PyObject *)&PyType_Type;
    case CFX_OBJECT_MODULE:
        return st->module_class;
    case CFX_OBJECT_OTHER:
    case CFX_OBJECT_TENSOR:
    case CFX_OBJECT_INSTANCE:
    case CFX_OBJECT_KINDS:
        break;
    }
    return st->tensor_class;
}

static int world_kind_is(void *ctx, cfx_object_kind kind, cfx_object *classes, cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *class_ = class_of_kind(w->st, kind);
    int is = PyObject_IsSubclass(class_, py(classes));
    /* torch.FloatTensor and its like know their instances only */
    if (is < 0)
        script_failed(w, err);
    return is;
}

/* The layers of torch's ask whether their input is packed; tensors mostly are not. */
static bool world_never(void *ctx, cfx_object *class_)
{
    PyScript *w = ctx;
    return py(class_) == w->st->script_packed;
}

static cfx_object *world_kind_class(void *ctx, cfx_object_kind kind, cfx_error *err)
{
    PyScript *w = ctx;
    return script_result(w, Py_NewRef(class_of_kind(w->st, kind)), err);
}

/* ---- modules ------------------------------------------------------------------------------- */

static cfx_status world_enter(void *ctx, cfx_object *module, cfx_error *err)
{
    PyScript *w = ctx;
    if (w->n_scopes == w->room) {
        size_t room = 2 * w->room + 8;
        scope_frame **scopes = PyMem_Resize(w->scopes, scope_frame *, room);
        if (!scopes)
            return cfx_error_set(err, CFX_E_NOMEM, "out of memory");
        w->scopes = scopes;
        w->room = room;
    }
    scope_frame *frame = tracer_refresh(w->tracer) == 0 ? scope_push(w->tracer, py(module)) : NULL;
    if (!frame)
        return script_failed(w, err);
    w->scopes[w->n_scopes++] = frame;
    return CFX_OK;
}

static void world_leave(void *ctx)
{
    PyScript *w = ctx;
    if (w->n_scopes > 0)
        scope_pop(w->tracer, w->scopes[--w->n_scopes]);
}

static uint32_t world_scope(void *ctx)
{
    PyScript *w = ctx;
    return w->tracer->scope_number;
}

/* ---- buffers that are assigned to ---------------------------------------------------------- */

/* Whether an attribute of two tensors is equal: 1, 0, -1 with an exception. */
static int have_same(PyObject *a, PyObject *b, const char *name)
{
    PyObject *x = PyObject_GetAttrString(a, name);
    PyObject *y = x ? PyObject_GetAttrString(b, name) : NULL;
    const int same = y ? PyObject_RichCompareBool(x, y, Py_EQ) : -1;
    Py_XDECREF(y);
    Py_XDECREF(x);
    return same;
}

/* A tensor whose shape and dtype are known now. */
static int check_known(PyScript *w, PyObject *buffer, PyObject *v)
{
    const int shape = have_same(buffer, v, "shape");
    const int dtype = shape > 0 ? have_same(buffer, v, "dtype") : shape;
    if (shape == 0 || dtype == 0)
        script_refuse(w, "this buffer is assigned a tensor of another %s, which a graph cannot "
                      "keep; register the buffer with the %s that it gets",
                      shape ? "dtype" : "shape", shape ? "dtype" : "shape");
    return shape > 0 && dtype > 0 ? 0 : -1;
}

/* In Python the attribute is the new tensor; the graph copies its elements. `read` is the Proxy
 * that reads the buffer. */
static int check_fits(PyScript *w, PyObject *buffer, PyObject *read, PyObject *v)
{
    cfx_node *from = is_proxy(w->st, read) ? w->world.node(w, object(read)) : NULL;
    cfx_node *n = is_proxy(w->st, v) ? w->world.node(w, object(v)) : NULL;
    cfx_dtype type;
    cfx_error why = {0};
    if (!n)
        return is_tensor(w->st, v) ? check_known(w, buffer, v) : 0;
    PyObject *dtype = PyObject_GetAttrString(buffer, "dtype");
    PyObject *ndim = dtype ? PyObject_GetAttrString(buffer, "ndim") : NULL;
    const size_t dims = ndim ? PyLong_AsSize_t(ndim) : 0;
    const bool known = ndim && !PyErr_Occurred() && dtype_from_py(w->st, dtype, &type);
    Py_XDECREF(ndim);
    Py_XDECREF(dtype);
    if (!known || !from)
        return known ? 0 : -1;
    const cfx_status status = cfx_script_fit_buffer(from, n, dims, type, &why);
    if (status == CFX_E_UNSUPPORTED)
        script_refuse(w, "%s", why.message);
    else if (status != CFX_OK)
        raise_cfx(&why);
    return status == CFX_OK ? 0 : -1;
}

/* Records buffer.copy_(v), so that the buffer keeps from call to call what the program gave it. */
static int keep_buffer(PyScript *w, PyObject *buffer, PyObject *v)
{
    PyObject *name = PyUnicode_InternFromString("copy_");
    PyObject *args[2] = {name ? script_read(w, buffer) : NULL, v};
    bool fits = args[0] && check_fits(w, buffer, args[0], v) == 0;
    const cfx_node *read = fits && is_proxy(w->st, args[0]) ? w->world.node(w, object(args[0]))
                                                            : NULL;
    if (read && cfx_node_num_users(read) > 0) {  /* every use reads it, as in the graph's code */
        Py_SETREF(args[0], script_read(w, buffer));
        fits = args[0] != NULL;
    }
    PyObject *proxy = fits ? script_record_method(w, name, args, 2, NULL) : NULL;
    Py_XDECREF(proxy);
    Py_XDECREF(args[0]);
    Py_XDECREF(name);
    return proxy ? 0 : -1;
}

/* The module is left in another mode. The graph cannot set that of its own root. */
static cfx_status keep_flag(PyScript *w, PyObject *module, PyObject *v, cfx_error *err)
{
    if (!v)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot delete attribute 'training' of %s",
                             Py_TYPE(module)->tp_name);
    PyObject *path = module_path(w->tracer, module);
    if (path && PyUnicode_GET_LENGTH(path) == 0) {
        Py_DECREF(path);
        const int same = script_check_training(w, module, v);
        if (same != 0)
            return same > 0 ? CFX_OK : script_failed(w, err);
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "the call leaves %s, which is captured, in "
                             "another mode: put the mode back before the end (was = self.training; "
                             "...; self.train(was))", Py_TYPE(module)->tp_name);
    }
    Py_XDECREF(path);
    return path && script_keep_training(w, module, v) == 0 ? CFX_OK : script_failed(w, err);
}

static cfx_status world_keep_attribute(void *ctx, cfx_object *module, const char *name,
                                       cfx_object *v, cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *buffer = text ? module_entry(py(module), w->st->str_buffers, text) : NULL;
    PyObject *parameter = text ? module_entry(py(module), w->st->str_parameters, text) : NULL;
    const char *class_ = Py_TYPE(py(module))->tp_name;
    cfx_status status = CFX_OK;
    if (!text || PyErr_Occurred())
        status = script_failed(w, err);
    else if (strcmp(name, "training") == 0)
        status = keep_flag(w, py(module), py(v), err);
    else if (parameter)
        status = cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot assign to '%s', a parameter of %s; "
                               "change it in place under torch.no_grad(), or make "
                               "it a buffer", name, class_);
    else if (buffer && is_tensor(w->st, buffer) && is_graph_like(w->st, py(v)))
        status = buffer == py(v) || keep_buffer(w, buffer, py(v)) == 0 ? CFX_OK
                                                                         : script_failed(w, err);
    else if (buffer)
        status = cfx_error_set(err, CFX_E_UNSUPPORTED, "the buffer '%s' of %s is assigned a %s; a "
                               "buffer that is a tensor must stay a tensor", name,
                               class_, Py_TYPE(py(v))->tp_name);
    else
        status = cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot assign to attribute '%s' of %s: a "
                               "graph keeps only tensors registered as buffers; register it in "
                               "__init__ (self.register_buffer(\"%s\", torch.zeros(...))), or "
                               "put the old value back before the call ends", name, class_,
                               name);
    Py_XDECREF(text);
    return status;
}

void script_graph_entries(cfx_world *world)
{
    world->node = world_node;
    world->proxy = world_proxy;
    world->value = world_value;
    world->tensor = world_tensor;
    world->place = world_place;
    world->hidden = is_helper;
    world->kind_is = world_kind_is;
    world->kind_class = world_kind_class;
    world->never = world_never;
    world->enter = world_enter;
    world->leave = world_leave;
    world->module_stack = world_scope;
    world->keep_attribute = world_keep_attribute;
}
