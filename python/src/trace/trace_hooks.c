/* trace_hooks.c - what is hooked while traces run, and what the hooks do.
 *
 * nn.Module.__call__ and __getattr__ (module_hooks.c) from the first trace to the end of the last;
 * names in the globals of the traced code are replaced by wrappers, likewise until the last trace
 * ends. Other threads run through the hooks to what was there before.
 */
#include "trace.h"

/* One trace; it lives on the C stack of tracer_run. */
typedef struct trace_session {
    PyTracer *tracer;
    struct trace_session *outer;  /* that this thread was running before */
    PyObject *globals;            /* of the code that is traced, borrowed */
    bool wraps;                   /* the tracer's own functions are wrapped, see tracer_wrap */
    PyObject **functions;         /* those functions, borrowed: only compared */
    Py_ssize_t n_functions;
    PyObject **seen;              /* the globals that were searched for them, likewise */
    Py_ssize_t n_seen, room;
    PyObject *call, *getattr;     /* what nn.Module had when it began, likewise */
    bool flag;                    /* what the thread's flag was then */
} trace_session;

static trace_session *current_session(module_state *st)
{
    return st->sessions ? PyThread_tss_get(&st->session) : NULL;
}

static PyObject *module_has(module_state *st, PyObject *name)
{
    return st->sequential ? class_lookup((PyTypeObject *)st->sequential, name) : NULL;
}

/* Whether another library has hooked nn.Module under that name since it had `before`. */
static bool is_taken(module_state *st, PyObject *name, PyObject *before)
{
    PyObject *now = module_has(st, name);
    return now != before && module_hook_is_foreign(now);
}

/* The same unless torch.fx traces inside: then modules are its business until it puts back what
 * nn.Module had. Others who wrap a function of nn.Module during a trace do not trace. */
static trace_session *session_in_charge(module_state *st)
{
    trace_session *session = current_session(st);
    if (session && (is_taken(st, st->str_call, session->call) ||
                    is_taken(st, st->str_getattr, session->getattr)))
        return NULL;
    return session;
}

bool others_trace(module_state *st)
{
    return current_session(st) ? !session_in_charge(st) : flag_is_torchs(st);
}

/* ---- names --------------------------------------------------------------------------------- */

/* Puts a wrapper for the function `original` in its place, a dict or a class. */
static int patch(module_state *st, PyObject *place, PyObject *name, PyObject *original,
                 bool was_there, bool for_all)
{
    bool is_class = PyType_Check(place);
    PyObject *wrapper = wrapped_new(st, original, is_class ? name : NULL, for_all);
    PyObject *entry = wrapper ? PyTuple_Pack(4, place, name, was_there ? original : Py_Ellipsis,
                                             wrapper) : NULL;
    int failed = entry ? PyList_Append(st->patches, entry) : -1;
    if (!failed)
        failed = is_class ? PyObject_SetAttr(place, name, wrapper)
                          : PyDict_SetItem(place, name, wrapper);
    Py_XDECREF(entry);
    Py_XDECREF(wrapper);
    return failed;
}

/* Puts back what was there, unless somebody has put something else there since. Nothing may fail
 * here for good, nor hide the exception that ended a trace. */
static void unpatch(PyObject *entry)
{
    PyObject *place = PyTuple_GET_ITEM(entry, 0);
    PyObject *name = PyTuple_GET_ITEM(entry, 1);
    PyObject *original = PyTuple_GET_ITEM(entry, 2);
    bool is_class = PyType_Check(place);
    PyObject *now = is_class ? class_entry((PyTypeObject *)place, name)
                             : PyDict_GetItemWithError(place, name);
    PyErr_Clear();  /* a name that cannot be looked up is not ours */
    if (now != PyTuple_GET_ITEM(entry, 3))
        return;
    PyObject *value = original == Py_Ellipsis ? NULL : original;
    if (is_class)
        PyObject_SetAttr(place, name, value);
    else if (value)
        PyDict_SetItem(place, name, value);
    else
        PyDict_DelItem(place, name);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(place);
}

/* Takes the patches off the list one by one: what is put back may run code that traces. */
static void unpatch_all(module_state *st)
{
    for (Py_ssize_t n; (n = PyList_GET_SIZE(st->patches)) > 0;) {
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(st->patches, n - 1));
        if (PyList_SetSlice(st->patches, n - 1, n, NULL) < 0)
            PyErr_Clear();  /* it shrinks: memory is not asked for */
        unpatch(entry);
        Py_DECREF(entry);
    }
}

/* Wraps `name` in `place`, where a builtin of that name may be meant. */
static int wrap_name(module_state *st, PyObject *place, PyObject *name)
{
    bool is_class = PyType_Check(place);
    PyObject *original = is_class ? class_entry((PyTypeObject *)place, name)
                                  : PyDict_GetItemWithError(place, name);
    bool there = original != NULL;
    if (!original && !PyErr_Occurred())
        original = is_class ? class_lookup((PyTypeObject *)place, name)
                            : PyDict_GetItemWithError(PyEval_GetBuiltins(), name);
    if (!original) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_NameError, "'%U' is wrapped, but there is no such name",
                         name);
        return -1;
    }
    if (Py_TYPE(original) == (PyTypeObject *)st->WrappedType)
        return 0;  /* by another trace */
    return patch(st, place, name, original, there, true);
}

static bool is_autowrapped(const trace_session *session, PyObject *o)
{
    for (Py_ssize_t i = 0; i < session->n_functions; i++)
        if (session->functions[i] == o)
            return true;
    return false;
}

/* Globals that generated code has marked say themselves which names are wrapped. */
static int wrap_marked(module_state *st, PyObject *globals)
{
    PyObject *names = PyDict_GetItemWithError(globals, st->str_wrapped);
    for (Py_ssize_t i = 0; names && PyTuple_Check(names) && i < PyTuple_GET_SIZE(names); i++)
        if (wrap_name(st, globals, PyTuple_GET_ITEM(names, i)) < 0)
            return -1;
    return PyErr_Occurred() ? -1 : 0;
}

/* Wraps the functions that the tracer wraps by itself, wherever `globals` has one. */
static int wrap_found(module_state *st, const trace_session *session, PyObject *globals)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    PyObject *found = PyList_New(0);
    int failed = found ? 0 : -1;
    while (!failed && PyDict_Next(globals, &at, &name, &value)) {
        if (!Py_TYPE(value)->tp_call || !PyUnicode_Check(name) || !is_autowrapped(session, value) ||
            PyUnicode_READ_CHAR(name, 0) == '_')
            continue;
        failed = PyList_Append(found, name);
    }
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(found); i++) {
        name = PyList_GET_ITEM(found, i);
        value = PyDict_GetItemWithError(globals, name);
        failed = value ? patch(st, globals, name, value, true, false) : -1;
    }
    Py_XDECREF(found);
    return failed;
}

/* Wraps what is to be wrapped in these globals, once in a trace. */
static int search_globals(module_state *st, trace_session *session, PyObject *globals)
{
    for (Py_ssize_t i = session->n_seen; i > 0; i--)  /* mostly the last one, or few */
        if (session->seen[i - 1] == globals)
            return 0;
    if (session->n_seen == session->room) {
        Py_ssize_t room = 2 * session->room + 8;
        PyObject **seen = PyMem_Resize(session->seen, PyObject *, (size_t)room);
        if (!seen) {
            PyErr_NoMemory();
            return -1;
        }
        session->seen = seen;
        session->room = room;
    }
    session->seen[session->n_seen++] = globals;
    return wrap_marked(st, globals) < 0 || wrap_found(st, session, globals) < 0 ? -1 : 0;
}

/* ---- modules ------------------------------------------------------------------------------- */

static bool starts_with(PyObject *text, const char *prefix)
{
    Py_ssize_t size;
    const char *data = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (!data)
        PyErr_Clear();  /* a name that is no text starts with nothing */
    return data && strncmp(data, prefix, strlen(prefix)) == 0;
}

int module_is_leaf(module_state *st, PyObject *module)
{
    PyObject *home = class_lookup(Py_TYPE(module), st->str_module);  /* borrowed */
    bool torchs = home && (starts_with(home, "torch.nn") || starts_with(home, "torch.ao.nn"));
    if (!torchs || !st->sequential)
        return torchs;
    return !PyObject_TypeCheck(module, (PyTypeObject *)st->sequential);
}

PyObject *module_path(PyTracer *t, PyObject *module)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *path = NULL;
    if (t->paths && PyDict_Check(t->paths))
        path = PyDict_GetItemWithError(t->paths, module);
    if (path || PyErr_Occurred())
        return Py_XNewRef(path);
    PyObject *pair = PyTuple_Pack(2, (PyObject *)t, module);
    PyObject *found = pair ? call_glue(st, "module_path", pair) : NULL;
    Py_XDECREF(pair);
    return found;
}

/* The key of this call in nn_module_stack: the path, from the second call on with its number. */
static PyObject *call_key(PyTracer *t, PyObject *path)
{
    if (!t->num_calls && !(t->num_calls = PyDict_New()))
        return NULL;
    if (!PyDict_Check(t->num_calls)) {
        PyErr_Format(PyExc_TypeError, "the tracer's num_calls must be a dict, got %R",
                     (PyObject *)Py_TYPE(t->num_calls));
        return NULL;
    }
    PyObject *count = PyDict_GetItemWithError(t->num_calls, path);
    if (!count && PyErr_Occurred())
        return NULL;
    long n = count ? PyLong_AsLong(count) : 0;
    PyObject *next = PyErr_Occurred() ? NULL : PyLong_FromLong(n + 1);
    PyObject *key = NULL;
    if (next && PyDict_SetItem(t->num_calls, path, next) == 0)
        key = n ? PyUnicode_FromFormat("%U@%ld", path, n) : Py_NewRef(path);
    Py_XDECREF(next);
    return key;
}

/* What is to be put back when a module's call ends. */
struct scope_frame {
    uint32_t number;
    PyObject *graph;          /* whose number it is, owned */
    PyObject *key;            /* owned */
    PyObject *path, *type;    /* of the Scope object, owned, or NULL if there is none */
};

static int set_scope_object(PyObject *scope, PyObject *path, PyObject *type)
{
    return PyObject_SetAttrString(scope, "module_path", path) < 0 ||
           PyObject_SetAttrString(scope, "module_type", type) < 0 ? -1 : 0;
}

/* Keeps torch.fx's objects up to date, for those who have asked for them. */
static int enter_objects(PyTracer *t, scope_frame *frame, PyObject *path, PyObject *type)
{
    if (t->scope) {
        frame->path = PyObject_GetAttrString(t->scope, "module_path");
        frame->type = PyObject_GetAttrString(t->scope, "module_type");
        if (!frame->path || !frame->type || set_scope_object(t->scope, path, type) < 0)
            return -1;
    }
    if (!t->module_stack)
        return 0;
    PyObject *pair = PyTuple_Pack(2, path, type);
    int failed = pair ? PyObject_SetItem(t->module_stack, frame->key, pair) : -1;
    Py_XDECREF(pair);
    return failed;
}

/* The qualified name of a class, borrowed: asked for once in a trace. */
static PyObject *name_of_class(PyTracer *t, PyObject *class_)
{
    if (!t->class_names && !(t->class_names = PyDict_New()))
        return NULL;
    PyObject *name = PyDict_GetItemWithError(t->class_names, class_);
    if (name || PyErr_Occurred())
        return name;
    PyObject *new_ = scope_class_name(class_);
    if (new_ && PyDict_SetItem(t->class_names, class_, new_) == 0)
        name = new_;
    Py_XDECREF(new_);
    return name;
}

static int enter_scope(PyTracer *t, module_state *st, scope_frame *frame, PyObject *path,
                       PyObject *module)
{
    PyObject *type = (PyObject *)Py_TYPE(module);
    tracer_follow(t, t->graph);
    frame->graph = Py_XNewRef(t->graph);
    frame->number = t->scope_number;
    frame->key = call_key(t, path);
    if (!frame->key)
        return -1;
    if (t->graph && is_graph(st, t->graph)) {
        PyObject *name = name_of_class(t, type);
        uint32_t number = 0;
        if (name)
            number = scope_enter((PyGraph *)t->graph, t->scope_number, frame->key, type, name);
        if (!number)
            return -1;
        t->scope_number = number;
    }
    return t->scope || t->module_stack ? enter_objects(t, frame, path, type) : 0;
}

/* An exception that is on its way stays. */
static void leave_scope(PyTracer *t, scope_frame *frame)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    tracer_follow(t, t->graph);
    if (t->graph == frame->graph)  /* another graph has other scopes */
        t->scope_number = frame->number;
    if (t->scope && frame->path && frame->type)
        set_scope_object(t->scope, frame->path, frame->type);
    if (t->module_stack && frame->key)
        PyObject_DelItem(t->module_stack, frame->key);
    if (PyErr_Occurred())
        PyErr_Clear();  /* the user has taken it out already */
    Py_XDECREF(frame->graph);
    Py_XDECREF(frame->key);
    Py_XDECREF(frame->path);
    Py_XDECREF(frame->type);
    PyErr_Restore(type, value, traceback);
}

static PyObject *record_call(PyTracer *t, module_state *st, PyObject *path, PyObject *args,
                             PyObject *kwargs)
{
    trace_call call = {.op = CFX_OP_CALL_MODULE, .target = path,
                       .args = ((PyTupleObject *)args)->ob_item, .n = PyTuple_GET_SIZE(args),
                       .kwargs = kwargs};
    return tracer_record(st, (PyObject *)t, &call);
}

/* The globals of the module's forward, borrowed; NULL if it is no Python function. */
static PyObject *globals_of_forward(module_state *st, PyObject *module)
{
    PyObject *dict = instance_dict(module);
    PyObject *forward = dict ? PyDict_GetItemWithError(dict, st->str_forward) : NULL;
    if (!forward)
        forward = class_lookup(Py_TYPE(module), st->str_forward);
    PyErr_Clear();  /* a dict that fails has no forward */
    if (forward && PyMethod_Check(forward))
        forward = PyMethod_GET_FUNCTION(forward);
    return forward && PyFunction_Check(forward) ? PyFunction_GET_GLOBALS(forward) : NULL;
}

/* Wraps what is to be wrapped where the module's forward can see it. */
static int prepare_globals(module_state *st, PyTracer *t, PyObject *module)
{
    PyObject *globals = t->session ? globals_of_forward(st, module) : NULL;
    return globals ? search_globals(st, t->session, globals) : 0;
}

/* Calls the module as if nothing were hooked: by `plain`, what the hook knows to be beneath it. */
static PyObject *call_plainly(PyObject *plain, PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *method = module_hook_bind(plain, module);
    PyObject *result = method ? PyObject_Call(method, args, kwargs) : NULL;
    Py_XDECREF(method);
    return result;
}

/* is_leaf_module as the tracer's class has it: 1, 0, -1 with an exception. */
static int leaf_by_step(PyTracer *t, PyObject *module, PyObject *path)
{
    if (!(t->overrides & STEP_is_leaf_module))
        return module_is_leaf(state_of(Py_TYPE(t)), module);
    PyObject *const in[2] = {module, path};
    PyObject *answer = call_step(t, STEP_INDEX_is_leaf_module, in, 2);
    int leaf = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return leaf;
}

/* `forward` is NULL for the module's own. */
static PyObject *call_in_scope(PyTracer *t, module_state *st, PyObject *module, PyObject *path,
                               PyObject *forward, PyObject *args, PyObject *kwargs)
{
    int leaf = leaf_by_step(t, module, path);
    if (leaf < 0)
        return NULL;
    if (leaf)
        return record_call(t, st, path, args, kwargs);
    if (prepare_globals(st, t, module) < 0)
        return NULL;
    const module_hook *hook = &st->hooks[MODULE_CALL];
    return forward ? PyObject_Call(forward, args, kwargs)
                   : call_plainly(hook->active ? hook->active : hook->plain, module, args, kwargs);
}

/* path_of_module as the tracer's class has it. */
static PyObject *path_by_step(PyTracer *t, PyObject *module)
{
    PyObject *path = t->overrides & STEP_path_of_module
                         ? call_step(t, STEP_INDEX_path_of_module, &module, 1)
                         : module_path(t, module);
    if (path && !PyUnicode_Check(path)) {
        PyErr_Format(PyExc_TypeError, "path_of_module must return a str, got %R",
                     (PyObject *)Py_TYPE(path));
        Py_CLEAR(path);
    }
    return path;
}

PyObject *tracer_call_module(PyTracer *t, PyObject *module, PyObject *forward, PyObject *args,
                             PyObject *kwargs)
{
    module_state *st = state_of(Py_TYPE(t));
    scope_frame frame = {0};
    PyObject *result = NULL;
    if (!PyTuple_Check(args) || (kwargs && !PyDict_Check(kwargs)))
        return PyErr_Format(PyExc_TypeError, "call_module takes a tuple and a dict of arguments");
    PyObject *path = path_by_step(t, module);
    if (path && enter_scope(t, st, &frame, path, module) == 0)
        result = call_in_scope(t, st, module, path, forward, args, kwargs);
    leave_scope(t, &frame);
    Py_XDECREF(path);
    return result;
}

int tracer_is_leaf(PyTracer *t, PyObject *module)
{
    if (!(t->overrides & STEP_is_leaf_module))
        return module_is_leaf(state_of(Py_TYPE(t)), module);
    PyObject *path = path_by_step(t, module);
    int leaf = path ? leaf_by_step(t, module, path) : -1;
    Py_XDECREF(path);
    return leaf;
}

scope_frame *scope_push(PyTracer *t, PyObject *module)
{
    PyObject *path = path_by_step(t, module);
    scope_frame *frame = path ? PyMem_Calloc(1, sizeof *frame) : NULL;
    if (path && !frame)
        PyErr_NoMemory();
    if (frame && enter_scope(t, state_of(Py_TYPE(t)), frame, path, module) < 0) {
        scope_pop(t, frame);
        frame = NULL;
    }
    Py_XDECREF(path);
    return frame;
}

void scope_pop(PyTracer *t, scope_frame *frame)
{
    leave_scope(t, frame);
    PyMem_Free(frame);
}

/* ---- attributes of modules ----------------------------------------------------------------- */

PyObject *tracer_member_path(PyTracer *t, PyObject *value)
{
    PyObject *path = member_path(t, true, value);
    return path || PyErr_Occurred() ? path : Py_NewRef(Py_None);
}

static PyObject *parameter_proxy(PyTracer *t, module_state *st, PyObject *name, PyObject *value)
{
    trace_call call = {.op = CFX_OP_GET_ATTR, .target = name, .args = NULL, .n = 0};
    if (!(t->switches & SWITCH_param_shapes_constant))
        return tracer_record(st, (PyObject *)t, &call);
    PyObject *job = PyTuple_Pack(3, (PyObject *)t, name, value);
    call.factory = job ? call_glue(st, "parameter_factory", job) : NULL;
    PyObject *proxy = call.factory ? tracer_record(st, (PyObject *)t, &call) : NULL;
    Py_XDECREF(call.factory);
    Py_XDECREF(job);
    return proxy;
}

PyObject *tracer_getattr(PyTracer *t, PyObject *value, PyObject *cache)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *pair = PyTuple_Pack(2, (PyObject *)t, value);
    PyObject *answer = pair ? call_glue(st, "is_parameter", pair) : NULL;
    int wanted = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(answer);
    if (wanted <= 0)
        return wanted < 0 ? NULL : Py_NewRef(value);
    return proxy_of_parameter(t, value, cache);
}

PyObject *proxy_of_parameter(PyTracer *t, PyObject *value, PyObject *cache)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *name = member_path(t, t->switches & SWITCH_proxy_buffer_attributes, value);
    if (!name)
        return PyErr_Occurred() ? NULL : Py_NewRef(value);  /* of some other module */
    PyObject *proxy = PyObject_GetItem(cache, name);
    if (!proxy && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();  /* the first time it is read */
        proxy = parameter_proxy(t, st, name, value);
        if (proxy && PyObject_SetItem(cache, name, proxy) < 0)
            Py_CLEAR(proxy);
    }
    Py_DECREF(name);
    return proxy;
}

struct PyScript *script_in_charge(module_state *st)
{
    trace_session *session = session_in_charge(st);
    return session ? session->tracer->script : NULL;
}

/* ---- graphs in graphs ---------------------------------------------------------------------- */

static int is_region(void *object, void *st) { return is_graph(st, object); }

/* Whether a module is a graph that cannot be traced through: one with regions, or one that is not
 * part of what is traced, as a function that was scripted. 1, 0, -1 with an exception. */
static int is_inlined(PyTracer *t, module_state *st, PyObject *module)
{
    if (!st->graph_module_class ||
        !PyObject_TypeCheck(module, (PyTypeObject *)st->graph_module_class))
        return 0;
    PyObject *graph = PyObject_GetAttrString(module, "_graph");
    if (!graph)
        return -1;
    cfx_graph *g = is_graph(st, graph) ? ((PyGraph *)graph)->g : NULL;
    int regions = g && cfx_graph_visit_hosts(g, is_region, st);
    Py_DECREF(graph);
    int known = t->paths && PyDict_Check(t->paths) ? PyDict_Contains(t->paths, module) : 1;
    if (known < 0 || (known && !regions))
        return known < 0 ? -1 : 0;
    int leaf = known ? tracer_is_leaf(t, module) : 0;
    return leaf < 0 ? -1 : !leaf;
}

static PyObject *inline_graph(PyTracer *t, module_state *st, PyObject *module, PyObject *args,
                              PyObject *kwargs)
{
    PyObject *job = PyTuple_Pack(4, (PyObject *)t, module, args, kwargs ? kwargs : st->empty_dict);
    PyObject *result = job ? call_glue(st, "inline_graph", job) : NULL;
    Py_XDECREF(job);
    return result;
}

/* ---- the hooks ----------------------------------------------------------------------------- */

/* The trace of this thread whose business a call of a hook is, if any. `plain` is the hook's: it
 * may be one of an earlier trace that somebody has kept. */
static trace_session *session_of_hook(module_state *st, int which, PyObject *plain)
{
    return plain == st->hooks[which].active ? session_in_charge(st) : NULL;
}

/* A trace goes through what torch.compile made, to the module that it was made of: Dynamo could not
 * make anything of proxies. */
static PyObject *call_original(PyObject *compiled, PyObject *args, PyObject *kwargs)
{
    PyObject *original = PyObject_GetAttrString(compiled, "_orig_mod");
    PyObject *result = original ? PyObject_Call(original, args, kwargs) : NULL;
    Py_XDECREF(original);
    return result;
}

/* module.__call__(*args, **kwargs) */
static PyObject *hook_call(PyObject *self, PyObject *const *in, Py_ssize_t n)
{
    module_state *st = PyModule_GetState(self);
    (void)n;
    PyObject *module = in[0];
    PyObject *args = in[1];
    PyObject *kwargs = in[2];
    PyObject *plain = in[3];
    trace_session *session = session_of_hook(st, MODULE_CALL, plain);
    if (!session)
        return st->sessions == 0 && module_hooks_heal(st) < 0
                   ? NULL : call_plainly(plain, module, args, kwargs);
    PyTracer *t = session->tracer;
    if (tracer_refresh(t) < 0)
        return NULL;
    if (t->script)
        return script_call_module(t->script, module, args, kwargs);
    if (strcmp(Py_TYPE(module)->tp_name, "OptimizedModule") == 0)
        return call_original(module, args, kwargs);
    int inlined = is_inlined(t, st, module);
    if (inlined != 0)
        return inlined < 0 ? NULL : inline_graph(t, st, module, args, kwargs);
    if (!(t->overrides & STEP_call_module))
        return tracer_call_module(t, module, NULL, args, kwargs);
    if (prepare_globals(st, t, module) < 0)  /* whether it will be called is not known */
        return NULL;
    PyObject *method = module_hook_bind(plain, module);
    PyObject *const step[4] = {module, method, args, kwargs};
    PyObject *result = method ? call_step(t, STEP_INDEX_call_module, step, 4) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyObject *get_plainly(PyObject *plain, PyObject *module, PyObject *name)
{
    PyObject *method = module_hook_bind(plain, module);
    PyObject *found = method ? PyObject_CallOneArg(method, name) : NULL;
    Py_XDECREF(method);
    return found;
}

/* module.__getattr__(name), as nn.Module has it, and the tracer's opinion about what it finds. */
static PyObject *hook_getattr(PyObject *self, PyObject *const *in, Py_ssize_t n)
{
    module_state *st = PyModule_GetState(self);
    (void)n;
    PyObject *module = in[0];
    PyObject *name = in[1];
    PyObject *plain = in[2];
    PyObject *value = module_entry(module, st->str_parameters, name);
    bool parameter = value && value != Py_None;
    bool buffer = false;
    if (!value && !PyErr_Occurred())
        buffer = (value = module_entry(module, st->str_buffers, name)) != NULL && value != Py_None;
    if (!value && !PyErr_Occurred())
        value = module_entry(module, st->str_modules, name);
    Py_XINCREF(value);
    if (!PyErr_Occurred() && (!value || plain != st->hooks[MODULE_GETATTR].plain)) {
        PyObject *found = get_plainly(plain, module, name);
        parameter = parameter && found == value;  /* somebody's own function may give another */
        buffer = buffer && found == value;
        Py_XSETREF(value, found);
    }
    if (!value || PyErr_Occurred() || (st->sessions == 0 && module_hooks_heal(st) < 0)) {
        Py_XDECREF(value);
        return NULL;
    }
    trace_session *session = session_of_hook(st, MODULE_GETATTR, plain);
    PyTracer *t = session ? session->tracer : NULL;
    if (!t || t->script)  /* in a script, a tensor becomes a graph value when it is used */
        return value;
    PyObject *result = NULL;
    if (tracer_refresh(t) == 0) {
        PyObject *const step[3] = {name, value, t->proxies};
        if (t->overrides & STEP_getattr)
            result = call_step(t, STEP_INDEX_getattr, step, 3);
        else if (parameter || (buffer && t->switches & SWITCH_proxy_buffer_attributes))
            result = proxy_of_parameter(t, value, t->proxies);
        else
            result = Py_NewRef(value);
    }
    Py_DECREF(value);
    return result;
}

static void remove_hooks(module_state *st)
{
    module_hooks_remove(st);
    flag_remove(st);
    unpatch_all(st);
}

/* ---- a trace ------------------------------------------------------------------------------- */

static int begin(module_state *st, trace_session *session, PyTracer *t)
{
    session->tracer = t;
    session->outer = current_session(st);
    if (++st->sessions == 1 && module_hooks_install(st) < 0) {
        st->sessions--;
        return -1;
    }
    session->call = module_has(st, st->str_call);
    session->getattr = module_has(st, st->str_getattr);
    session->flag = flag_get(st);
    if ((st->sessions == 1 && flag_install(st) < 0) || flag_set(st, true) < 0 ||
        PyThread_tss_set(&st->session, session) != 0) {
        if (--st->sessions == 0)
            remove_hooks(st);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    t->session = session;
    return 0;
}

static void end(module_state *st, trace_session *session)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    session->tracer->session = NULL;
    PyThread_tss_set(&st->session, session->outer);
    PyThread_tss_set(&st->flag, session->flag ? &st->flag : NULL);  /* there is room: it was set */
    if (--st->sessions == 0)
        remove_hooks(st);
    PyMem_Free(session->functions);
    PyMem_Free(session->seen);
    tracer_end(session->tracer);
    PyErr_Restore(type, value, traceback);
}

/* The functions that the tracer wraps by itself: the ids in a set. */
static int read_functions(trace_session *session, PyObject *ids)
{
    PyObject *list = PySequence_List(ids);
    if (!list)
        return -1;
    session->n_functions = PyList_GET_SIZE(list);
    session->functions = PyMem_New(PyObject *, (size_t)session->n_functions + 1);
    if (!session->functions)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; session->functions && i < session->n_functions; i++)
        session->functions[i] = PyLong_AsVoidPtr(PyList_GET_ITEM(list, i));
    Py_DECREF(list);
    return PyErr_Occurred() ? -1 : 0;
}

static int search_modules(module_state *st, trace_session *session, PyObject *modules)
{
    int failed = 0;
    if (!PyList_Check(modules)) {
        PyErr_SetString(PyExc_TypeError, "the tracer's _autowrap_search must be a list");
        failed = -1;
    }
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(modules); i++) {
        PyObject *module = PyList_GET_ITEM(modules, i);
        if (PyModule_Check(module))
            failed = search_globals(st, session, PyModule_GetDict(module));
    }
    return failed;
}

int tracer_wrap(PyTracer *t)
{
    trace_session *session = t->session;
    if (!session || session->wraps)
        return 0;
    module_state *st = state_of(Py_TYPE(t));
    PyObject *ids = PyObject_GetAttrString((PyObject *)t, "_autowrap_function_ids");
    PyObject *modules = ids ? PyObject_GetAttrString((PyObject *)t, "_autowrap_search") : NULL;
    int failed = modules ? 0 : -1;
    session->wraps = true;
    if (failed || read_functions(session, ids) < 0 ||
        search_globals(st, session, session->globals) < 0 ||
        search_modules(st, session, modules) < 0)
        failed = -1;
    Py_XDECREF(modules);
    Py_XDECREF(ids);
    return failed;
}

static int wrap_names(module_state *st, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
        PyObject *place, *name;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(names, i), "OU", &place, &name) ||
            wrap_name(st, place, name) < 0)
            return -1;
    }
    return 0;
}

/* _run_trace(tracer, body, paths, globals, wrapped, evaluates): calls body() with all hooked.
 * `globals` are those of the traced code; `wrapped` is a list of (globals or class, name). Where it
 * evaluates sources, functions that the tracer wraps by itself are wrapped before code is run that
 * needs it. Whatever happens, nothing stays hooked. */
static PyObject *run_trace(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *tracer, *body, *paths, *globals, *wrapped;
    int evaluates;
    if (!PyArg_ParseTuple(args, "O!OOO!O!p:_run_trace", st->TracerType, &tracer, &body, &paths,
                          &PyDict_Type, &globals, &PyList_Type, &wrapped, &evaluates))
        return NULL;
    PyTracer *t = (PyTracer *)tracer;
    trace_session session = {.globals = globals};
    if (t->session)
        return refuse(st, "busy", tracer);
    if (!st->hooked_class) {
        PyErr_SetString(PyExc_RuntimeError, "cfx._core._hook_modules was not called");
        return NULL;
    }
    Py_XSETREF(t->paths, Py_NewRef(paths));
    Py_XSETREF(t->proxies, PyDict_New());
    if (!t->proxies || begin(st, &session, t) < 0)
        return NULL;
    PyObject *result = NULL;
    if (wrap_names(st, wrapped) == 0 &&
        (evaluates ? wrap_marked(st, globals) : tracer_wrap(t)) == 0)
        result = PyObject_CallNoArgs(body);
    end(st, &session);
    return result;
}

/* _hook_modules(class, call, getattr): what to hook in nn.Module. Each is a tuple: the function,
 * the code to give it while a trace runs, a function with the code that it has. */
static PyObject *hook_modules(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *class_, *f[2], *code[2], *plain[2];
    if (!PyArg_ParseTuple(args, "O!(O!O!O)(O!O!O):_hook_modules", &PyType_Type, &class_,
                          &PyFunction_Type, &f[0], &PyCode_Type, &code[0], &plain[0],
                          &PyFunction_Type, &f[1], &PyCode_Type, &code[1], &plain[1]))
        return NULL;
    Py_XSETREF(st->hooked_class, Py_NewRef(class_));
    for (int i = 0; i < 2; i++) {
        Py_XSETREF(st->hooks[i].function, Py_NewRef(f[i]));
        Py_XSETREF(st->hooks[i].code, Py_NewRef(code[i]));
        Py_XSETREF(st->hooks[i].plain, Py_NewRef(plain[i]));
    }
    Py_RETURN_NONE;
}

/* Whether a trace runs in this thread, whatever its flag says. */
static PyObject *in_trace(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(current_session(PyModule_GetState(module)) != NULL);
}

static PyObject *py_find_proxy(PyObject *module, PyObject *o)
{
    PyObject *found = find_proxy(PyModule_GetState(module), o);
    return PyErr_Occurred() ? NULL : Py_NewRef(found ? found : Py_None);
}

PyMethodDef trace_functions[] = {
    {"_run_trace", run_trace, METH_VARARGS, NULL},
    {"_hook_modules", hook_modules, METH_VARARGS, NULL},
    {"_hook_call", (PyCFunction)(void (*)(void))hook_call, METH_FASTCALL, NULL},
    {"_hook_getattr", (PyCFunction)(void (*)(void))hook_getattr, METH_FASTCALL, NULL},
    {"_module_tree", module_tree, METH_O, NULL},
    {"_module_paths", module_paths, METH_O, NULL},
    {"_in_trace", in_trace, METH_NOARGS, NULL},
    {"_find_proxy", py_find_proxy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
