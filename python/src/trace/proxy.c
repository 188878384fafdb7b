/* proxy.c - Proxy: whatever is done to it is recorded; and Attribute, `proxy.name` before it is
 * known what becomes of it.
 *
 * Operators are slots of the type, so that `x + 1` goes from Python's interpreter straight into
 * C. A class that overrides one in Python has its own slot there, as for any type.
 */
#include "trace.h"

#include <structmember.h>

/* ---- operators ----------------------------------------------------------------------------- */

/* The functions of the module `operator` that stand in nodes; UNARY and BINARY name the slot. */
#define UNARY_OPERATORS(X) X(negative, neg) X(positive, pos) X(absolute, abs) X(invert, invert)
#define BINARY_OPERATORS(X)                                                                        \
    X(add, add) X(subtract, sub) X(multiply, mul) X(floor_divide, floordiv)                        \
    X(true_divide, truediv) X(remainder, mod) X(lshift, lshift) X(rshift, rshift) X(and, and_)     \
    X(or, or_) X(xor, xor) X(matrix_multiply, matmul)
/* In the order of Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE. */
#define COMPARISONS(X) X(lt, lt) X(le, le) X(eq, eq) X(ne, ne) X(gt, gt) X(ge, ge)
#define OTHER_OPERATORS(X) X(power, pow) X(getitem, getitem)
#define ALL_OPERATORS(X)                                                                           \
    COMPARISONS(X) UNARY_OPERATORS(X) BINARY_OPERATORS(X) OTHER_OPERATORS(X)

enum {
#define X(slot, name) OPERATOR_##slot,
    ALL_OPERATORS(X)
#undef X
    N_OPERATORS
};

PyObject *proxy_operators(void)
{
    static const char *const names[] = {
#define X(slot, name) #name,
        ALL_OPERATORS(X)
#undef X
    };
    PyObject *module = PyImport_ImportModule("operator");
    PyObject *all = module ? PyTuple_New(N_OPERATORS) : NULL;
    for (int i = 0; all && i < N_OPERATORS; i++) {
        PyObject *function = PyObject_GetAttrString(module, names[i]);
        if (!function)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, i, function);
    }
    Py_XDECREF(module);
    return all;
}

static PyObject *record_operator(module_state *st, PyObject *proxy, int operator_,
                                 PyObject *const *args, Py_ssize_t n)
{
    PyObject *tracer = proxy_tracer(st, proxy);
    if (!tracer)
        return NULL;
    trace_call call = {.op = CFX_OP_CALL_FUNCTION, .args = args, .n = n,
                       .target = PyTuple_GET_ITEM(st->operators, operator_)};
    PyObject *result = tracer_record(st, tracer, &call);
    Py_DECREF(tracer);
    return result;
}

/* The state if `o` is a Proxy, else NULL without an exception. */
static module_state *state_of_proxy(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
        return NULL;
    PyObject *module = PyType_GetModuleByDef(type, &pycfx_module);
    if (!module) {
        PyErr_Clear();  /* some other class */
        return NULL;
    }
    module_state *st = PyModule_GetState(module);
    return is_proxy(st, o) ? st : NULL;
}

/* One of the operands is a Proxy; it may be the right one. */
static PyObject *record_binary(PyObject *left, PyObject *right, int operator_)
{
    PyObject *const args[2] = {left, right};
    module_state *st = state_of_proxy(left);
    if (st)
        return record_operator(st, left, operator_, args, 2);
    st = state_of_proxy(right);
    if (!st)
        Py_RETURN_NOTIMPLEMENTED;
    return record_operator(st, right, operator_, args, 2);
}

#define X(slot, name)                                                                              \
    static PyObject *binary_##slot(PyObject *left, PyObject *right)                                \
    {                                                                                              \
        return record_binary(left, right, OPERATOR_##slot);                                        \
    }
BINARY_OPERATORS(X)
#undef X

#define X(slot, name)                                                                              \
    static PyObject *unary_##slot(PyObject *self)                                                  \
    {                                                                                              \
        return record_operator(state_of(Py_TYPE(self)), self, OPERATOR_##slot, &self, 1);          \
    }
UNARY_OPERATORS(X)
#undef X

static PyObject *proxy_power(PyObject *base, PyObject *exponent, PyObject *modulo)
{
    if (modulo == Py_None)
        return record_binary(base, exponent, OPERATOR_power);
    PyObject *const args[3] = {base, exponent, modulo};
    module_state *st = state_of_proxy(base);
    if (!st)
        Py_RETURN_NOTIMPLEMENTED;
    return record_operator(st, base, OPERATOR_power, args, 3);
}

static PyObject *proxy_compare(PyObject *self, PyObject *other, int comparison)
{
    PyObject *const args[2] = {self, other};
    return record_operator(state_of(Py_TYPE(self)), self, comparison, args, 2);
}

static PyObject *proxy_getitem(PyObject *self, PyObject *index)
{
    PyObject *const args[2] = {self, index};
    return record_operator(state_of(Py_TYPE(self)), self, OPERATOR_getitem, args, 2);
}

/* In a program that is evaluated a value is meant, which is not known; in a trace, the proxy. */
static Py_hash_t proxy_hash(PyObject *self)
{
    PyObject *tracer = ((PyProxy *)self)->tracer;
    if (tracer && is_tracer(state_of(Py_TYPE(self)), tracer) && ((PyTracer *)tracer)->script)
        return script_refuse_key(((PyTracer *)tracer)->script);
    return hash_of_address(self);
}

/* ---- parts --------------------------------------------------------------------------------- */

/* ---- spare proxies ------------------------------------------------------------------------- */

/* Most proxies live for one operation only, so a few dead ones are kept for the next: without
 * fields, unseen by the garbage collector, linked by `weak`. */
enum { MAX_SPARE = 32 };

static PyProxy *take_spare(module_state *st)
{
    PyProxy *self = st->spare_proxies;
    if (!self)
        return alloc_quietly((PyTypeObject *)st->ProxyType);
    st->spare_proxies = (PyProxy *)self->weak;
    st->n_spare--;
    self->weak = NULL;
    Py_INCREF(st->ProxyType);
    revive((PyObject *)self);
    PyObject_GC_Track(self);
    return self;
}

/* Keeps a dead proxy, if there is room and it is of the plain class. */
static bool keep_spare(PyProxy *self)
{
#ifdef __SANITIZE_ADDRESS__
    return self == NULL;  /* what is freed must be found out when it is used */
#else
    module_state *st = state_of(Py_TYPE(self));
    if (Py_TYPE(self) != (PyTypeObject *)st->ProxyType || st->n_spare >= MAX_SPARE)
        return false;
    self->weak = (PyObject *)st->spare_proxies;
    st->spare_proxies = self;
    st->n_spare++;
    return true;
#endif
}

void proxy_free_spares(module_state *st)
{
    while (st->spare_proxies) {
        PyProxy *self = st->spare_proxies;
        st->spare_proxies = (PyProxy *)self->weak;
        PyObject_GC_Del(self);
    }
    st->n_spare = MAX_SPARE;  /* the type is on its way out: no more */
}

/* ---- making them --------------------------------------------------------------------------- */

PyObject *proxy_new(module_state *st, PyObject *node, PyObject *tracer)
{
    PyProxy *self = alloc_quietly((PyTypeObject *)st->ProxyType);
    if (!self)
        return NULL;
    self->node = Py_NewRef(node);
    self->tracer = Py_NewRef(tracer);
    return (PyObject *)self;
}

PyObject *proxy_of_core(module_state *st, PyGraph *graph, cfx_node *n, PyObject *tracer)
{
    PyProxy *self = take_spare(st);
    if (!self)
        return NULL;
    Py_INCREF((PyObject *)graph);
    self->graph = graph;
    self->n = n;
    cfx_node_pin(n);
    self->tracer = Py_NewRef(tracer);
    return (PyObject *)self;
}

/* Lets go of the core's node. */
static void forget_core(PyProxy *self)
{
    PyGraph *graph = self->graph;
    if (!graph)
        return;
    self->graph = NULL;
    cfx_node_unpin(self->n);
    Py_DECREF((PyObject *)graph);
}

static PyObject *proxy_get_node(PyProxy *self, void *unused)
{
    (void)unused;
    if (!self->node && self->graph) {
        self->node = node_wrap(self->graph, self->n);
        if (!self->node)
            return NULL;
        forget_core(self);
    }
    if (!self->node)
        PyErr_SetString(PyExc_AttributeError, "node");
    return Py_XNewRef(self->node);
}

static int proxy_set_node(PyProxy *self, PyObject *value, void *unused)
{
    (void)unused;
    forget_core(self);
    Py_XSETREF(self->node, Py_XNewRef(value));
    return 0;
}

PyObject *proxy_node(module_state *st, PyObject *proxy)
{
    if (Py_TYPE(proxy) == (PyTypeObject *)st->ProxyType)
        return proxy_get_node((PyProxy *)proxy, NULL);
    return PyObject_GetAttr(proxy, st->str_node);
}

PyObject *proxy_tracer(module_state *st, PyObject *proxy)
{
    PyProxy *self = (PyProxy *)proxy;
    if (self->tracer)
        return Py_NewRef(self->tracer);
    return PyObject_GetAttr(proxy, st->str_tracer);
}

static int visit_items(PyObject *o, leaf_fn *fn, void *ctx)
{
    int stop = 0;
    if (PyDict_Check(o)) {
        Py_ssize_t at = 0;
        PyObject *key, *value;
        while (!stop && PyDict_Next(o, &at, &key, &value))
            stop = visit_leaves(value, fn, ctx);
    } else if (PySlice_Check(o)) {
        PySliceObject *slice = (PySliceObject *)o;
        PyObject *const parts[3] = {slice->start, slice->stop, slice->step};
        for (int i = 0; !stop && i < 3; i++)
            stop = visit_leaves(parts[i], fn, ctx);
    } else {
        for (Py_ssize_t i = 0; !stop && i < PySequence_Fast_GET_SIZE(o); i++)
            stop = visit_leaves(PySequence_Fast_GET_ITEM(o, i), fn, ctx);
    }
    return stop;
}

int visit_leaves(PyObject *o, leaf_fn *fn, void *ctx)
{
    if (!PyTuple_Check(o) && !PyList_Check(o) && !PyDict_Check(o) && !PySlice_Check(o))
        return fn(ctx, o);
    if (enter_nested(" while looking for proxies"))
        return -1;
    int stop = visit_items(o, fn, ctx);
    leave_nested();
    return stop;
}

typedef struct proxy_search {
    module_state *st;
    PyObject *found;  /* borrowed */
} proxy_search;

static int stop_at_proxy(void *ctx, PyObject *leaf)
{
    proxy_search *search = ctx;
    search->found = is_proxy(search->st, leaf) ? leaf : NULL;
    return search->found != NULL;
}

PyObject *find_proxy(module_state *st, PyObject *o)
{
    proxy_search search = {st, NULL};
    visit_leaves(o, stop_at_proxy, &search);
    return search.found;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Proxy(node, tracer=None): without a tracer, one that appends to the node's graph. */
static int proxy_init(PyProxy *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "tracer", NULL};
    module_state *st = state_of(Py_TYPE(self));
    PyObject *node;
    PyObject *tracer = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Proxy", names, &node, &tracer))
        return -1;
    if (tracer && tracer != Py_None) {
        Py_INCREF(tracer);
    } else {
        PyObject *graph = PyObject_GetAttr(node, st->str_graph);
        tracer = graph ? PyObject_CallOneArg(st->appending_tracer, graph) : NULL;
        Py_XDECREF(graph);
    }
    if (!tracer)
        return -1;
    Py_XSETREF(self->tracer, tracer);
    return proxy_set_node(self, node, NULL);
}

static int proxy_traverse(PyProxy *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->node);
    Py_VISIT((PyObject *)self->graph);
    Py_VISIT(self->tracer);
    Py_VISIT(self->dict);
    return 0;
}

static int proxy_clear(PyProxy *self)
{
    forget_core(self);
    Py_CLEAR(self->node);
    Py_CLEAR(self->tracer);
    Py_CLEAR(self->dict);
    return 0;
}

static void proxy_dealloc(PyProxy *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weak)
        PyObject_ClearWeakRefs((PyObject *)self);
    self->weak = NULL;
    proxy_clear(self);
    if (!keep_spare(self))
        type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *proxy_repr(PyObject *self)
{
    PyObject *tracer = ((PyProxy *)self)->tracer;
    module_state *st = state_of(Py_TYPE(self));
    if (tracer && is_tracer(st, tracer) && script_refuses_text(((PyTracer *)tracer)->script))
        return NULL;
    PyObject *node = proxy_node(st, self);
    PyObject *name = node ? PyObject_GetAttrString(node, "name") : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("Proxy(%S)", name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(node);
    return text;
}

/* ---- attributes ---------------------------------------------------------------------------- */

PyObject *attribute_new(module_state *st, PyObject *root, PyObject *attr)
{
    PyObject *tracer = proxy_tracer(st, root);
    PyAttribute *self = tracer ? alloc_quietly((PyTypeObject *)st->AttributeType) : NULL;
    if (!self) {
        Py_XDECREF(tracer);
        return NULL;
    }
    self->base.tracer = tracer;
    self->root = Py_NewRef(root);
    self->attr = Py_NewRef(attr);
    return (PyObject *)self;
}

/* Anything that a Proxy does not have is an attribute of the value it stands for; but not its own
 * members, which a class may have left unset, nor what another library's tracer asks a stranger
 * for: then it would record a call instead of saying that it does not know proxies of ours. */
static PyObject *proxy_missing(PyObject *self, PyObject *name)
{
    module_state *st = state_of(Py_TYPE(self));
    if (PyUnicode_GET_LENGTH(name) > 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
        PyUnicode_CompareWithASCIIString(name, "__fx_create_arg__") == 0) {
        PyErr_SetObject(PyExc_AttributeError, name);
        return NULL;
    }
    if (PyUnicode_Compare(name, st->str_node) != 0 && PyUnicode_Compare(name, st->str_tracer) != 0)
        return attribute_new(st, self, name);
    return PyErr_Format(PyExc_AttributeError, "this %s has no '%U': was Proxy.__init__ called?",
                        Py_TYPE(self)->tp_name, name);
}

static PyObject *proxy_getattro(PyObject *self, PyObject *name)
{
    /* Does not make an exception only to clear it: most names are not its own. */
    PyObject *found = generic_getattr(self, name);
    return found || PyErr_Occurred() ? found : proxy_missing(self, name);
}

/* Set here and not in the slots: then Python classes derived from it see a class with __getattr__
 * and without __getattribute__, and can override __getattr__ as in torch.fx. */
void proxy_type_ready(PyTypeObject *type)
{
    type->tp_getattro = proxy_getattro;
    PyType_Modified(type);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* The dict of the keyword arguments of a vectorcall, or NULL if there are none; -1 on failure. */
static int named_args(PyObject *const *values, PyObject *names, PyObject **dict)
{
    *dict = NULL;
    if (!names || PyTuple_GET_SIZE(names) == 0)
        return 0;
    *dict = PyDict_New();
    for (Py_ssize_t i = 0; *dict && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(*dict, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(*dict);
    return *dict ? 0 : -1;
}

static PyObject *record_method(module_state *st, PyObject *self, PyObject *name,
                               PyObject *const *args, Py_ssize_t n, PyObject *kwargs)
{
    PyObject *tracer = proxy_tracer(st, self);
    if (!tracer)
        return NULL;
    trace_call call = {.op = CFX_OP_CALL_METHOD, .target = name, .args = args, .n = n,
                       .kwargs = kwargs};
    PyObject *result = tracer_record(st, tracer, &call);
    Py_DECREF(tracer);
    return result;
}

/* Calls the method `name` of `root` with the arguments of a call. */
static PyObject *call_method_of(PyObject *self, PyObject *root, PyObject *name, PyObject *args,
                                PyObject *kwargs)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *head = PyTuple_Pack(1, root);
    PyObject *all = head ? PySequence_Concat(head, args) : NULL;
    PyObject *result = NULL;
    if (all)
        result = record_method(st, self, name, ((PyTupleObject *)all)->ob_item,
                               PyTuple_GET_SIZE(all), kwargs);
    Py_XDECREF(all);
    Py_XDECREF(head);
    return result;
}

static PyObject *proxy_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return call_method_of(self, self, state_of(Py_TYPE(self))->str_call, args, kwargs);
}

/* ---- questions that a symbolic value cannot answer ----------------------------------------- */

/* Asks the tracer: one of its steps to_bool, iter and keys. */
static PyObject *ask_tracer(PyObject *self, int step)
{
    module_state *st = state_of(Py_TYPE(self));
    static const char *const names[] = {
#define X(name) #name,
        TRACER_STEPS(X)
#undef X
    };
    PyObject *tracer = proxy_tracer(st, self);
    PyObject *answer = tracer ? PyObject_CallMethod(tracer, names[step], "O", self) : NULL;
    Py_XDECREF(tracer);
    return answer;
}

/* Whether an `assert` asks for the truth of this proxy. Where the instruction compares as well, it
 * must be the result, not that of two items on the way: (x, 1) != (y, 1) asks whether x == y. */
static bool is_asserted(module_state *st, PyObject *self)
{
    static const int reflected[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
    int comparison;
    if (!bytecode_in_assert(&comparison))
        return false;
    if (comparison < 0 || comparison > Py_GE)
        return comparison < 0;
    PyNode *node = (PyNode *)proxy_node(st, self);
    PyObject *target = node && is_node(st, (PyObject *)node) ? node->target : NULL;
    bool result = target == PyTuple_GET_ITEM(st->operators, comparison) ||
                  target == PyTuple_GET_ITEM(st->operators, reflected[comparison]);
    Py_XDECREF(node);
    PyErr_Clear();  /* a proxy without a node is not the result of anything */
    return result;
}

static int proxy_bool(PyObject *self)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *tracer = proxy_tracer(st, self);
    if (!tracer)
        return -1;
    if (is_tracer(st, tracer) && tracer_refresh((PyTracer *)tracer) == 0 &&
        ((PyTracer *)tracer)->switches & SWITCH_trace_asserts && is_asserted(st, self)) {
        Py_DECREF(tracer);
        PyObject *recorded = call_glue(st, "record_assert", self);
        Py_XDECREF(recorded);
        return recorded ? 1 : -1;
    }
    Py_DECREF(tracer);
    if (PyErr_Occurred())
        return -1;
    PyObject *answer = ask_tracer(self, STEP_INDEX_to_bool);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

/* `a, b = proxy` is two items; the size of anything else is not known. */
static PyObject *proxy_iter(PyObject *self)
{
    Py_ssize_t n = bytecode_unpack_count();
    if (n < 0) {
        PyObject *answer = ask_tracer(self, STEP_INDEX_iter);
        if (answer && PyIter_Check(answer))  /* as it is: iter() of a proxy would ask again */
            return answer;
        PyObject *iterator = NULL;
        if (answer && is_proxy(state_of(Py_TYPE(self)), answer))
            PyErr_Format(PyExc_TypeError, "the tracer's iter() returned a %.100s, which is not an "
                         "iterator", Py_TYPE(answer)->tp_name);
        else if (answer)
            iterator = PyObject_GetIter(answer);
        Py_XDECREF(answer);
        return iterator;
    }
    PyObject *items = PyTuple_New(n);
    for (Py_ssize_t i = 0; items && i < n; i++) {
        PyObject *index = PyLong_FromSsize_t(i);
        PyObject *item = index ? PyObject_GetItem(self, index) : NULL;
        Py_XDECREF(index);
        if (!item)
            Py_CLEAR(items);
        else
            PyTuple_SET_ITEM(items, i, item);
    }
    PyObject *iterator = items ? PyObject_GetIter(items) : NULL;
    Py_XDECREF(items);
    return iterator;
}

/* reversed() and their like take what has this for a sequence. */
static PyObject *proxy_item(PyObject *self, Py_ssize_t i)
{
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *item = index ? proxy_getitem(self, index) : NULL;
    Py_XDECREF(index);
    return item;
}

static Py_ssize_t proxy_len(PyObject *self)
{
    refuse(state_of(Py_TYPE(self)), "len", self);
    return -1;
}

static PyObject *proxy_keys(PyObject *self, PyObject *unused)
{
    (void)unused;
    return ask_tracer(self, STEP_INDEX_keys);
}

/* ---- torch's functions --------------------------------------------------------------------- */

/* The one tracer of all proxies of a class. */
typedef struct tracer_search {
    module_state *st;
    PyTypeObject *class_;
    PyObject *tracer;  /* owned; NULL before the first proxy */
} tracer_search;

static int same_tracer(void *ctx, PyObject *leaf)
{
    tracer_search *search = ctx;
    if (!PyObject_TypeCheck(leaf, search->class_))
        return 0;
    PyObject *other = proxy_tracer(search->st, leaf);
    if (!other)
        return -1;
    if (!search->tracer) {
        search->tracer = other;
        return 0;
    }
    bool same = search->tracer == other;
    Py_DECREF(other);
    if (!same)
        refuse(search->st, "tracers", leaf);
    return same ? 0 : -1;
}

/* Whether the function lives as long as torch does. */
static bool is_torchs(PyObject *function)
{
    PyTypeObject *type = Py_TYPE(function);
    if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || PyCFunction_Check(function))
        return true;
    if (!PyFunction_Check(function))
        return false;
    PyObject *home = ((PyFunctionObject *)function)->func_module;
    const char *name = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    return name && (strcmp(name, "torch") == 0 || strncmp(name, "torch.", 6) == 0);
}

/* How a call of the function is recorded (cfx/_glue/tracing.py: torch_target). The answers for
 * functions of torch itself, which live as long as torch, are kept. */
static PyObject *torch_target(module_state *st, PyObject *function)
{
    PyObject *plan = PyDict_GetItemWithError(st->torch_targets, function);
    if (plan)
        return Py_NewRef(plan);
    if (PyErr_Occurred())
        PyErr_Clear();  /* a function that cannot be hashed is asked about each time */
    plan = call_glue(st, "torch_target", function);
    if (plan && is_torchs(function) &&
        PyDict_SetItem(st->torch_targets, function, plan) < 0)
        Py_CLEAR(plan);
    return plan;
}

PyObject *record_torch(module_state *st, PyObject *tracer, PyObject *function, PyObject *args,
                       PyObject *kwargs)
{
    PyObject *plan = torch_target(st, function);
    PyObject *result = NULL;
    if (plan && plan != Py_None && !PyUnicode_Check(plan)) {  /* it has its own way */
        PyObject *job = PyTuple_Pack(3, tracer, args, kwargs ? kwargs : Py_None);
        result = job ? PyObject_CallObject(plan, job) : NULL;
        Py_XDECREF(job);
    } else if (plan) {
        bool method = plan != Py_None;
        trace_call call = {.op = method ? CFX_OP_CALL_METHOD : CFX_OP_CALL_FUNCTION,
                           .target = method ? plan : function,
                           .args = ((PyTupleObject *)args)->ob_item,
                           .n = PyTuple_GET_SIZE(args), .kwargs = kwargs};
        result = tracer_record(st, tracer, &call);
    }
    Py_XDECREF(plan);
    return result;
}

static PyObject *proxy_torch_function(PyObject *class_, PyObject *const *args, Py_ssize_t nargs,
                                      PyObject *kwnames)
{
    static const char *const names[] = {"orig_method", "types", "args", "kwargs"};
    static const arg_spec spec = {"__torch_function__", names, 4, 2, 4};
    module_state *st = state_of((PyTypeObject *)class_);
    PyObject *in[4];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *call_args = in[2] && in[2] != Py_None ? in[2] : st->empty_tuple;
    PyObject *call_kwargs = in[3] && in[3] != Py_None ? in[3] : NULL;
    tracer_search search = {st, (PyTypeObject *)class_, NULL};
    if (!PyTuple_Check(call_args) || (call_kwargs && !PyDict_Check(call_kwargs)))
        return PyErr_Format(PyExc_TypeError, "__torch_function__ takes args as a tuple and kwargs "
                            "as a dict");
    if (visit_leaves(call_args, same_tracer, &search) < 0 ||
        (call_kwargs && visit_leaves(call_kwargs, same_tracer, &search) < 0)) {
        Py_XDECREF(search.tracer);
        return NULL;
    }
    if (!search.tracer)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *result = record_torch(st, search.tracer, in[0], call_args, call_kwargs);
    Py_DECREF(search.tracer);
    return result;
}

/* ---- copies -------------------------------------------------------------------------------- */

static PyObject *proxy_getstate(PyProxy *self, PyObject *unused)
{
    (void)unused;
    PyObject *state = self->dict ? PyDict_Copy(self->dict) : PyDict_New();
    PyObject *node = self->graph ? proxy_get_node(self, NULL) : Py_XNewRef(self->node);
    if (state && ((node && PyDict_SetItemString(state, "node", node) < 0) ||
                  (self->tracer && PyDict_SetItemString(state, "tracer", self->tracer) < 0)))
        Py_CLEAR(state);
    Py_XDECREF(node);
    if (PyErr_Occurred())
        Py_CLEAR(state);
    return state;
}

static PyObject *proxy_setstate(PyObject *self, PyObject *state)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    if (!PyDict_Check(state))
        return PyErr_Format(PyExc_TypeError, "the state of a Proxy must be a dict");
    while (PyDict_Next(state, &at, &name, &value))
        if (PyObject_SetAttr(self, name, value) < 0)
            return NULL;
    Py_RETURN_NONE;
}

/* copy.deepcopy(o, memo) */
static PyObject *deepcopy(PyObject *o, PyObject *memo)
{
    PyObject *module = PyImport_ImportModule("copy");
    PyObject *copy = module ? PyObject_CallMethod(module, "deepcopy", "OO", o, memo) : NULL;
    Py_XDECREF(module);
    return copy;
}

/* Everything it has is copied: it stands for the node of a copied graph. */
static PyObject *proxy_deepcopy(PyProxy *self, PyObject *memo)
{
    PyObject *copy = Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0);
    PyObject *id = copy ? PyLong_FromVoidPtr(self) : NULL;
    bool noted = id && PyObject_SetItem(memo, id, copy) == 0;
    PyObject *mine = noted ? proxy_getstate(self, NULL) : NULL;
    PyObject *state = mine ? deepcopy(mine, memo) : NULL;
    PyObject *done = state ? proxy_setstate(copy, state) : NULL;
    Py_XDECREF(id);
    Py_XDECREF(mine);
    Py_XDECREF(state);
    if (!done)
        Py_CLEAR(copy);
    Py_XDECREF(done);
    return copy;
}

/* ---- the type ------------------------------------------------------------------------------ */

static PyMethodDef methods[] = {
    {"__getattr__", proxy_missing, METH_O,
     SIGNED("__getattr__($self, k, /)", "An attribute of the value: it is recorded when used.")},
    {"__torch_function__", (PyCFunction)(void (*)(void))proxy_torch_function,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     SIGNED("__torch_function__($type, /, orig_method, types, args=None, kwargs=None)",
            "Records a call of one of torch's functions.")},
    {"__getstate__", (PyCFunction)proxy_getstate, METH_NOARGS, NULL},
    {"__setstate__", proxy_setstate, METH_O, NULL},
    {"__deepcopy__", (PyCFunction)proxy_deepcopy, METH_O, NULL},
    {"keys", proxy_keys, METH_NOARGS,
     SIGNED("keys($self, /)", "What `**proxy` asks for: the tracer decides.")},
    {NULL, NULL, 0, NULL},
};

/* Code that knows only torch.fx asks isinstance(x, torch.fx.Proxy): a proxy of ours says yes, by a
 * class that is made of both (cfx/interop/presence.py); but to torch.fx itself, while it traces, it
 * is a stranger. */
static PyObject *proxy_get_class(PyObject *self, void *unused)
{
    (void)unused;
    PyTypeObject *type = Py_TYPE(self);
    module_state *st = state_of(type);
    if (others_trace(st))
        return Py_NewRef((PyObject *)type);
    PyObject *dict = class_dict(type);
    PyObject *seen = dict ? Py_XNewRef(PyDict_GetItemWithError(dict, st->str_seen)) : NULL;
    Py_XDECREF(dict);
    if (seen || PyErr_Occurred())
        return seen;
    return call_glue(st, "seen_class", (PyObject *)type);
}

static int proxy_set_class(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    PyObject *name = PyUnicode_InternFromString("__class__");
    PyObject *plain = name ? class_lookup(&PyBaseObject_Type, name) : NULL;
    Py_XDECREF(name);
    return plain ? Py_TYPE(plain)->tp_descr_set(plain, self, value) : -1;
}

static PyMemberDef members[] = {
    {"tracer", T_OBJECT_EX, offsetof(PyProxy, tracer), 0, "what records its uses"},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyProxy, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyProxy, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"node", (getter)proxy_get_node, (setter)proxy_set_node, "the Node it stands for", NULL},
    {"__class__", proxy_get_class, proxy_set_class, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, SIGNED("Proxy(node, tracer=None)",
                       "A symbolic value: what is done to it is recorded as nodes of a graph.")},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, proxy_init},
    {Py_tp_dealloc, proxy_dealloc},
    {Py_tp_traverse, proxy_traverse},
    {Py_tp_clear, proxy_clear},
    {Py_tp_repr, proxy_repr},
    {Py_tp_hash, proxy_hash},
    {Py_tp_richcompare, proxy_compare},
    {Py_tp_iter, proxy_iter},
    {Py_tp_call, proxy_call},
#define X(slot, name) {Py_nb_##slot, binary_##slot},
    BINARY_OPERATORS(X)
#undef X
#define X(slot, name) {Py_nb_##slot, unary_##slot},
    UNARY_OPERATORS(X)
#undef X
    {Py_nb_power, proxy_power},
    {Py_nb_bool, proxy_bool},
    {Py_mp_subscript, proxy_getitem},
    {Py_mp_length, proxy_len},
    {Py_sq_item, proxy_item},
    {Py_sq_length, proxy_len},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {0, NULL},
};

PyType_Spec proxy_spec = {
    .name = "cfx.proxy.Proxy",
    .basicsize = sizeof(PyProxy),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

/* ---- Attribute ----------------------------------------------------------------------------- */

static int attribute_init(PyAttribute *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"root", "attr", NULL};
    module_state *st = state_of(Py_TYPE(self));
    PyObject *root, *attr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Attribute", names, &root, &attr))
        return -1;
    PyObject *tracer = PyObject_GetAttr(root, st->str_tracer);
    if (!tracer)
        return -1;
    Py_XSETREF(self->base.tracer, tracer);
    Py_XSETREF(self->root, Py_NewRef(root));
    Py_XSETREF(self->attr, Py_NewRef(attr));
    return 0;
}

static int attribute_traverse(PyAttribute *self, visitproc visit, void *arg)
{
    Py_VISIT(self->root);
    Py_VISIT(self->attr);
    return proxy_traverse(&self->base, visit, arg);
}

static int attribute_clear(PyAttribute *self)
{
    Py_CLEAR(self->root);
    Py_CLEAR(self->attr);
    return proxy_clear(&self->base);
}

static void attribute_dealloc(PyAttribute *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->root);
    Py_CLEAR(self->attr);
    proxy_dealloc(&self->base);
}

/* Whether nobody has taken its parts away; else an AttributeError. */
static bool is_complete(const PyAttribute *self)
{
    if (self->root && self->attr && self->base.tracer)
        return true;
    PyErr_Format(PyExc_AttributeError, "this %s has no root, name or tracer: was "
                 "Attribute.__init__ called?", Py_TYPE(self)->tp_name);
    return false;
}

/* The node exists only once somebody asks for it: `x.relu` alone becomes `getattr(x, 'relu')`,
 * but `x.relu()` a method call. */
static PyObject *attribute_get_node(PyAttribute *self, void *unused)
{
    (void)unused;
    module_state *st = state_of(Py_TYPE(self));
    if (self->base.node)
        return Py_NewRef(self->base.node);
    if (!is_complete(self))
        return NULL;
    PyObject *tracer = Py_NewRef(self->base.tracer);  /* a tracer's own code may assign others */
    PyObject *const args[2] = {Py_NewRef(self->root), Py_NewRef(self->attr)};
    trace_call call = {.op = CFX_OP_CALL_FUNCTION, .target = st->builtin_getattr, .args = args,
                       .n = 2};
    PyObject *proxy = tracer_record(st, tracer, &call);
    PyObject *node = proxy ? PyObject_GetAttr(proxy, st->str_node) : NULL;
    Py_XDECREF(proxy);
    Py_DECREF(args[0]);
    Py_DECREF(args[1]);
    Py_DECREF(tracer);
    if (node)
        Py_XSETREF(self->base.node, Py_NewRef(node));
    return node;
}

static int attribute_set_node(PyAttribute *self, PyObject *value, void *unused)
{
    (void)unused;
    Py_XSETREF(self->base.node, Py_XNewRef(value));
    return 0;
}

static PyObject *attribute_peek(PyAttribute *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->base.node ? self->base.node : Py_None);
}

static PyObject *attribute_call(PyAttribute *self, PyObject *args, PyObject *kwargs)
{
    if (!is_complete(self))
        return NULL;
    PyObject *attr = Py_NewRef(self->attr);
    PyObject *result = call_method_of((PyObject *)self, self->root, attr, args, kwargs);
    Py_DECREF(attr);
    return result;
}

/* Without making tuples of the arguments: the place before the first is ours, or copied. */
static PyObject *attribute_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf,
                                      PyObject *kwnames)
{
    PyAttribute *self = (PyAttribute *)callable;
    module_state *st = state_of(Py_TYPE(self));
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *kwargs;
    if (!is_complete(self) || named_args(args + n, kwnames, &kwargs) < 0)
        return NULL;
    PyObject *root = Py_NewRef(self->root);
    PyObject *attr = Py_NewRef(self->attr);
    PyObject *small[8];
    PyObject **all = n < 8 ? small : PyMem_New(PyObject *, (size_t)n + 1);
    PyObject *result = NULL;
    if (all) {
        all[0] = root;
        if (n > 0)  /* `args` may be NULL */
            memcpy(all + 1, args, (size_t)n * sizeof *args);
        result = record_method(st, callable, attr, all, n + 1, kwargs);
    } else {
        PyErr_NoMemory();
    }
    if (all != small)
        PyMem_Free(all);
    Py_XDECREF(kwargs);
    Py_DECREF(root);
    Py_DECREF(attr);
    return result;
}

static PyObject *attribute_alloc(PyTypeObject *type, Py_ssize_t n)
{
    PyAttribute *self = (PyAttribute *)PyType_GenericAlloc(type, n);
    if (self)
        self->vectorcall = attribute_vectorcall;
    return (PyObject *)self;
}

static PyMemberDef attribute_members[] = {
    {"root", T_OBJECT_EX, offsetof(PyAttribute, root), 0, "the Proxy it is an attribute of"},
    {"attr", T_OBJECT_EX, offsetof(PyAttribute, attr), 0, "its name"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyAttribute, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef attribute_getset[] = {
    {"node", (getter)attribute_get_node, (setter)attribute_set_node,
     "the Node that reads the attribute, made when first asked for", NULL},
    {"_node", (getter)attribute_peek, (setter)attribute_set_node, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot attribute_slots[] = {
    {Py_tp_doc, SIGNED("Attribute(root, attr)", "`root.attr`, called or read later.")},
    {Py_tp_init, attribute_init},
    {Py_tp_alloc, attribute_alloc},
    {Py_tp_dealloc, attribute_dealloc},
    {Py_tp_traverse, attribute_traverse},
    {Py_tp_clear, attribute_clear},
    {Py_tp_call, attribute_call},
    {Py_tp_members, attribute_members},
    {Py_tp_getset, attribute_getset},
    {0, NULL},
};

PyType_Spec attribute_spec = {
    .name = "cfx.proxy.Attribute",
    .basicsize = sizeof(PyAttribute),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = attribute_slots,
};
