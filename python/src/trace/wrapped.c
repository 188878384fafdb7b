/* wrapped.c - what stands for a function while it is wrapped: called with a proxy it is recorded,
 * with anything else it is called. */
#include "trace.h"

#include <structmember.h>

typedef struct PyWrapped {
    PyObject_HEAD
    PyObject *fn;
    PyObject *method;  /* its name, if it is recorded as a call of a method; else NULL */
    bool for_all;      /* for every tracer, or only for those that autowrap it */
} PyWrapped;

PyObject *wrapped_new(module_state *st, PyObject *fn, PyObject *method, bool for_all)
{
    PyWrapped *self = alloc_quietly((PyTypeObject *)st->WrappedType);
    if (!self)
        return NULL;
    self->fn = Py_NewRef(fn);
    self->method = Py_XNewRef(method);
    self->for_all = for_all;
    return (PyObject *)self;
}

PyObject *wrapped_function(module_state *st, PyObject *o, bool *for_all)
{
    if (Py_TYPE(o) != (PyTypeObject *)st->WrappedType)
        return NULL;
    *for_all = ((PyWrapped *)o)->for_all;
    return ((PyWrapped *)o)->fn;
}

static int wrapped_traverse(PyWrapped *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->fn);
    return 0;
}

static int wrapped_clear(PyWrapped *self)
{
    Py_CLEAR(self->fn);
    Py_CLEAR(self->method);
    return 0;
}

static void wrapped_dealloc(PyWrapped *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    wrapped_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Whether the tracer wants calls of this function: 1, 0, or -1 with an exception. */
static int is_wanted(PyWrapped *self, PyObject *tracer)
{
    if (self->for_all)
        return 1;
    PyObject *ids = PyObject_GetAttrString(tracer, "_autowrap_function_ids");
    PyObject *id = ids ? PyLong_FromVoidPtr(self->fn) : NULL;
    int wanted = id ? PySequence_Contains(ids, id) : -1;
    if (!ids && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();  /* a tracer that wraps nothing by itself */
        wanted = 0;
    }
    Py_XDECREF(id);
    Py_XDECREF(ids);
    return wanted;
}

/* Generated code has to wrap what the node calls. */
static int mark_node(module_state *st, PyObject *node)
{
    PyObject *meta = PyObject_GetAttrString(node, "meta");
    int failed = meta ? PyObject_SetItem(meta, st->str_is_wrapped, Py_True) : -1;
    Py_XDECREF(meta);
    return failed;
}

static int mark_wrapped(module_state *st, PyObject *proxy)
{
    if (!is_proxy(st, proxy))
        return 0;
    PyObject *node = proxy_node(st, proxy);
    int failed = !node ? -1 : node == Py_None ? 0 : mark_node(st, node);
    Py_XDECREF(node);
    return failed;
}

typedef struct mark_job {
    module_state *st;
    PyObject *functions;  /* a set */
} mark_job;

/* Marks the nodes of a graph, and of its regions, that call one of the functions. */
static int mark_graph(void *object, void *ctx)
{
    const mark_job *job = ctx;
    PyGraph *graph = object;
    int failed = 0;
    if (!is_graph(job->st, object))
        return 0;
    cfx_iter held = hold(graph->g);
    for (cfx_node *n = cfx_graph_first(graph->g); n && !failed; n = cfx_node_next(n)) {
        PyObject *target = cfx_node_target_object(n);
        int wanted = target ? PySet_Contains(job->functions, target) : 0;
        if (wanted < 0)
            PyErr_Clear();  /* what cannot be hashed was not wrapped */
        PyObject *node = wanted > 0 ? node_wrap(graph, n) : NULL;
        failed = wanted > 0 ? (node ? mark_node(job->st, node) : -1) : 0;
        Py_XDECREF(node);
    }
    cfx_iter_end(&held);
    return failed ? failed : cfx_graph_visit_hosts(graph->g, mark_graph, ctx);
}

/* _mark_wrapped(graph, functions) */
static PyObject *py_mark_wrapped(PyObject *module, PyObject *args)
{
    mark_job job = {.st = PyModule_GetState(module)};
    PyObject *graph;
    if (!PyArg_ParseTuple(args, "O!O!:_mark_wrapped", job.st->GraphType, &graph, &PySet_Type,
                          &job.functions))
        return NULL;
    return mark_graph(graph, &job) ? NULL : Py_NewRef(Py_None);
}

PyMethodDef wrapped_functions[] = {
    {"_mark_wrapped", py_mark_wrapped, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tracer_note_wrapped(PyTracer *t, PyObject *fn)
{
    PyObject *called = t->script ? PyObject_GetAttrString((PyObject *)t, "_called") : NULL;
    int failed = called ? PySet_Add(called, fn) : t->script ? -1 : 0;
    Py_XDECREF(called);
    return failed;
}

static PyObject *wrapped_call(PyWrapped *self, PyObject *args, PyObject *kwargs)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *proxy = find_proxy(st, args);
    if (!proxy && kwargs && !PyErr_Occurred())
        proxy = find_proxy(st, kwargs);
    PyObject *tracer = proxy ? proxy_tracer(st, proxy) : NULL;
    int wanted = tracer ? is_wanted(self, tracer) : 0;
    PyObject *result = NULL;
    if (wanted > 0) {
        trace_call call = {.op = self->method ? CFX_OP_CALL_METHOD : CFX_OP_CALL_FUNCTION,
                           .target = self->method ? self->method : self->fn,
                           .args = ((PyTupleObject *)args)->ob_item,
                           .n = PyTuple_GET_SIZE(args), .kwargs = kwargs};
        result = tracer_record(st, tracer, &call);
        if (result && !self->method &&
            (mark_wrapped(st, result) < 0 ||
             (is_full_tracer(st, (PyTracer *)tracer) &&
              tracer_note_wrapped((PyTracer *)tracer, self->fn) < 0)))
            Py_CLEAR(result);
    } else if (wanted == 0 && !PyErr_Occurred()) {
        result = PyObject_Call(self->fn, args, kwargs);
    }
    Py_XDECREF(tracer);
    return result;
}

/* It passes for the function in all else. */
static PyObject *wrapped_getattro(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
        return Py_NewRef(((PyWrapped *)self)->fn);
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((PyWrapped *)self)->fn, name);
}

static PyObject *wrapped_repr(PyWrapped *self) { return PyObject_Repr(self->fn); }

static PyObject *wrapped_bind(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "A function whose calls with proxies are recorded."},
    {Py_tp_dealloc, wrapped_dealloc},
    {Py_tp_traverse, wrapped_traverse},
    {Py_tp_clear, wrapped_clear},
    {Py_tp_call, wrapped_call},
    {Py_tp_getattro, wrapped_getattro},
    {Py_tp_repr, wrapped_repr},
    {Py_tp_descr_get, wrapped_bind},
    {0, NULL},
};

PyType_Spec wrapped_spec = {
    .name = "cfx._core.Wrapped",
    .basicsize = sizeof(PyWrapped),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
