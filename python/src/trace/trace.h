/* trace.h - capturing a program: proxies, tracers, and what is hooked while a tracer runs.
 *
 * A Proxy stands for the value of a node; what is done to it becomes new nodes, which its tracer
 * records. A class of tracers may override any step in Python (create_proxy, create_arg, ...): a
 * step that is not overridden never goes through Python. While a trace runs, nn.Module's __call__
 * and __getattr__ are hooked for all threads, and let those through that are not tracing.
 */
#ifndef PYCFX_TRACE_H
#define PYCFX_TRACE_H

#include "base/pycfx.h"

/* ---- objects ------------------------------------------------------------------------------- */

/* A proxy that was just recorded knows its node in the core only, and pins it: most proxies are
 * used once and gone, and their nodes need no Python object. */
typedef struct PyProxy {
    PyObject_HEAD
    PyObject *node;    /* NULL if nobody has asked for it yet */
    PyGraph *graph;    /* owned, if `n` is the node; else NULL */
    cfx_node *n;
    PyObject *tracer;
    PyObject *dict;
    PyObject *weak;
} PyProxy;

/* `proxy.name`, before it is known whether it is called (a method) or used (an attribute). */
typedef struct PyAttribute {
    PyProxy base;
    PyObject *root;
    PyObject *attr;
    vectorcallfunc vectorcall;
} PyAttribute;

/* The source lines of the code objects that nodes come from; see source_text.c. */
typedef struct source_cache {
    struct source_code *slots;
    size_t n, capacity;
    PyObject *graph;  /* owned: whose numbers the cached locations are; or NULL */
} source_cache;

/* The steps that a class of tracers can override, and the switches it can set. One bit each, in
 * this order; a tracer's `overrides` and `switches` have the bits of those that it has. */
#define TRACER_STEPS(X)                                                                            \
    X(create_node) X(create_proxy) X(create_arg) X(proxy) X(to_bool) X(iter) X(keys)               \
    X(is_leaf_module) X(path_of_module) X(call_module) X(getattr)
#define TRACER_SWITCHES(X)                                                                         \
    X(record_stack_traces) X(_record_forward_stack_traces_only) X(check_mutable_operations)        \
    X(trace_asserts)                                                                               \
    X(proxy_buffer_attributes) X(param_shapes_constant)

enum {
#define X(name) STEP_INDEX_##name,
    TRACER_STEPS(X)
#undef X
#define X(name) SWITCH_INDEX_##name,
    TRACER_SWITCHES(X)
#undef X
};
enum {
#define X(name) STEP_##name = 1 << STEP_INDEX_##name,
    TRACER_STEPS(X)
#undef X
    STEP_graph = 1 << 30  /* the graph's own create_node is overridden */
};
enum {
#define X(name) SWITCH_##name = 1 << SWITCH_INDEX_##name,
    TRACER_SWITCHES(X)
#undef X
};

typedef struct PyTracer {
    PyObject_HEAD
    PyObject *graph;         /* where nodes go; NULL before the first trace */
    PyObject *dict;
    PyObject *weak;
    PyObject *paths;         /* {module: path} while a trace runs, else NULL */
    PyObject *parameters;    /* {id: path} of the root's parameters when last read, or NULL */
    PyObject *buffers;       /* likewise of its buffers */
    PyObject *proxies;       /* {name: Proxy} of the parameters read so far, while a trace runs */
    PyObject *class_names;   /* {class: its qualified name}, likewise */
    PyObject *num_calls;     /* {path: how often the module was called} */
    /* What torch.fx keeps as objects. Each is made when somebody first asks for it; from then on
     * it is kept up to date, and obeyed. */
    PyObject *scope;
    PyObject *module_stack;
    PyObject *name_scopes;
    uint32_t scope_number;   /* the current scope in the graph */
    uint32_t origin;         /* the location of the traced function in the graph, or 0 */
    uint32_t here;           /* likewise of what is evaluated (script_graph.c), or 0 */
    uint32_t overrides;
    uint32_t switches;
    unsigned version;        /* of the class when these were read; 0: read them again */
    source_cache sources;
    struct trace_session *session;  /* the trace that it runs now, or NULL */
    struct PyScript *script;        /* the evaluation that it runs now, or NULL */
} PyTracer;

/* Whether a text that is made while a program is captured would have a graph value in it: refused
 * then, with an exception. (script_raise.c) */
bool script_refuses_text(struct PyScript *script);

static inline bool is_proxy(const module_state *st, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type == (PyTypeObject *)st->ProxyType ||
           PyType_IsSubtype(type, (PyTypeObject *)st->ProxyType);
}
static inline bool is_tracer(const module_state *st, PyObject *o)
{
    return PyObject_TypeCheck(o, (PyTypeObject *)st->TracerBaseType);
}

/* Whether it is a Tracer, which has a module to trace, and not only a TracerBase. */
static inline bool is_full_tracer(const module_state *st, const PyTracer *t)
{
    return PyObject_TypeCheck((PyObject *)t, (PyTypeObject *)st->TracerType);
}

/* ---- proxies (proxy.c) --------------------------------------------------------------------- */

extern PyType_Spec proxy_spec, attribute_spec;

/* The functions of `operator` that proxies record, as a tuple; NULL with an exception. */
PyObject *proxy_operators(void);
/* Finishes the type of Proxy once it exists: see there. */
void proxy_type_ready(PyTypeObject *type);
/* Frees the dead proxies that are kept, for good. */
void proxy_free_spares(module_state *st);
/* A Proxy of the plain class; a new reference. */
PyObject *proxy_new(module_state *st, PyObject *node, PyObject *tracer);
PyObject *proxy_of_core(module_state *st, PyGraph *graph, cfx_node *n, PyObject *tracer);
/* `root.attr`, which becomes a node when that is asked for; a new reference. */
PyObject *attribute_new(module_state *st, PyObject *root, PyObject *attr);
/* proxy.node and proxy.tracer, whatever a class makes of them; new references. */
PyObject *proxy_node(module_state *st, PyObject *proxy);
PyObject *proxy_tracer(module_state *st, PyObject *proxy);
/* Calls `fn` for what is in tuples, lists, slices and the values of dicts, until it gives anything
 * but 0, and returns that; -1 with an exception if they nest too deep. */
typedef int leaf_fn(void *ctx, PyObject *leaf);
int visit_leaves(PyObject *o, leaf_fn *fn, void *ctx);
/* The first Proxy inside `o`, which may be a container: borrowed, or NULL, perhaps with an
 * exception. */
PyObject *find_proxy(module_state *st, PyObject *o);

/* ---- tracers (tracer.c) -------------------------------------------------------------------- */

extern PyType_Spec tracer_base_spec, tracer_spec;

/* Finishes the type of TracerBase; -1 with an exception. */
int tracer_type_ready(PyObject *type);

/* What is recorded. Borrowed; NULL where absent. */
typedef struct trace_call {
    cfx_opcode op;
    PyObject *target;
    PyObject *const *args;
    Py_ssize_t n;
    PyObject *kwargs;   /* a dict */
    PyObject *name;
    PyObject *type;
    PyObject *factory;  /* makes the proxy of the node */
} trace_call;

/* Records a call the way `tracer` does and returns the Proxy: a new reference. `tracer` may be any
 * object with a method create_proxy. */
PyObject *tracer_record(module_state *st, PyObject *tracer, const trace_call *call);
/* A new node of arguments that are nodes and values already: a new reference. */
PyObject *tracer_node(PyTracer *t, const node_parts *parts);
/* Records a call of torch's function: a call_function or, for methods of Tensor, a call_method. A
 * new reference to the Proxy. `kwargs` may be NULL. */
PyObject *record_torch(module_state *st, PyObject *tracer, PyObject *function, PyObject *args,
                       PyObject *kwargs);
/* A new tuple of the items, which are retained. */
PyObject *tuple_of(PyObject *const *items, Py_ssize_t n);
/* Reads again what the class overrides, if it may have changed; -1 with an exception. */
int tracer_refresh(PyTracer *t);
/* Makes the tracer's numbers, of its scope and of source lines, those of `graph`, or of none. */
void tracer_follow(PyTracer *t, PyObject *graph);
/* Calls one of the steps through Python. */
PyObject *call_step(PyTracer *t, int step, PyObject *const *args, Py_ssize_t n);
/* The proxy of a node as the tracer makes it. */
PyObject *tracer_proxy(PyTracer *t, PyObject *node);

/* Raises what the glue's function of that name says about `o` (cfx/_refuse.py). Returns NULL. */
PyObject *refuse(module_state *st, const char *what, PyObject *o);

/* ---- arguments (trace_arg.c) --------------------------------------------------------------- */

/* create_arg, as the tracer's class has it. */
PyObject *tracer_arg(PyTracer *t, PyObject *o);
/* create_arg, not overridden: the argument as a node can hold it, with nodes for proxies. */
PyObject *tracer_create_arg(PyTracer *t, PyObject *o);
bool is_named_tuple(module_state *st, PyObject *o);
/* Whether it is a number of numpy's own. */
bool is_numpy_scalar(PyObject *o);
/* One object that is no container and no plain value: a Node, or what stands for it. */
PyObject *tracer_leaf(PyTracer *t, PyObject *o);

/* ---- parameters (parameters.c) ------------------------------------------------------------- */

extern PyMethodDef parameter_functions[];

/* tracer._placeholders(names, defaults, hints): a list of proxies. The dicts are {name: value}. */
PyObject *tracer_placeholders(PyTracer *t, PyObject *args);

/* ---- whether a trace runs (trace_flag.c) --------------------------------------------------- */

extern PyMethodDef flag_functions[];

/* The flag of this thread; set: 0, or -1 with an exception. */
bool flag_get(module_state *st);
int flag_set(module_state *st, bool on);
/* Makes torch.fx's functions tell this flag, too: before the first trace, and until the last. */
int flag_install(module_state *st);
void flag_remove(module_state *st);
/* Whether torch.fx's own flag is set. */
bool flag_is_torchs(module_state *st);
/* Whether another library, such as torch.fx, traces now, inside a trace of ours or without one.
 * (trace_hooks.c) */
bool others_trace(module_state *st);

/* ---- modules and names (trace_hooks.c, wrapped.c) ------------------------------------------ */

extern PyMethodDef trace_functions[], wrapped_functions[];
extern PyType_Spec wrapped_spec;

/* _module_tree(root): ({module: path}, {tensor: path}). */
PyObject *module_tree(PyObject *module, PyObject *root);
/* _module_paths(root): {module: path}. */
PyObject *module_paths(PyObject *module, PyObject *root);
/* An entry of the dict `kind` ("_parameters", "_buffers", "_modules") of a module: borrowed, or
 * NULL, perhaps with an exception. */
PyObject *module_entry(PyObject *module, PyObject *kind, PyObject *name);
/* The path of a parameter, or of a buffer too, that the tracer's root has now: a new reference, or
 * NULL if it has none, perhaps with an exception. */
PyObject *member_path(PyTracer *t, bool or_buffer, PyObject *value);

/* The steps of Tracer that have to do with modules; without Python where nothing is overridden. */
PyObject *module_path(PyTracer *t, PyObject *module);
int module_is_leaf(module_state *st, PyObject *module);
int tracer_is_leaf(PyTracer *t, PyObject *module);
PyObject *tracer_call_module(PyTracer *t, PyObject *module, PyObject *forward, PyObject *args,
                             PyObject *kwargs);
/* The path of a parameter or buffer of the traced module, or None; a new reference. */
PyObject *tracer_member_path(PyTracer *t, PyObject *value);
PyObject *tracer_getattr(PyTracer *t, PyObject *value, PyObject *cache);
PyObject *proxy_of_parameter(PyTracer *t, PyObject *value, PyObject *cache);
/* The module that is called from now on, until scope_pop puts back what was before: NULL with
 * an exception. An exception that is on its way stays when it is left. */
typedef struct scope_frame scope_frame;
scope_frame *scope_push(PyTracer *t, PyObject *module);
void scope_pop(PyTracer *t, scope_frame *frame);
/* The function that a wrapper stands for, borrowed; NULL if `o` is none. *for_all: whether every
 * tracer records it. */
PyObject *wrapped_function(module_state *st, PyObject *o, bool *for_all);
/* A wrapper for `fn`: recorded as a call of the method of that name, if there is one. */
PyObject *wrapped_new(module_state *st, PyObject *fn, PyObject *method, bool for_all);
/* Wraps the functions that the tracer wraps by itself, for code that is about to run, unless that
 * is done: a script has its own eyes for them. */
int tracer_wrap(PyTracer *t);

/* ---- nn.Module's __call__ and __getattr__ (module_hooks.c) --------------------------------- */

/* Hooks both: 0, or -1 with an exception and nothing hooked. */
int module_hooks_install(module_state *st);
/* Puts back what was there, unless somebody has put something else there since. */
void module_hooks_remove(module_state *st);
/* Takes away what somebody has kept of the hooks and put back, when no trace runs: 0, or -1 with an
 * exception. */
int module_hooks_heal(module_state *st);
/* Whether a function that nn.Module has is that of another library that traces: torch.fx. */
bool module_hook_is_foreign(PyObject *function);
/* `function` as a method of `module`: a new reference. */
PyObject *module_hook_bind(PyObject *function, PyObject *module);
/* Adds a wrapped function that is called to tracer._called, if a script is evaluated. */
int tracer_note_wrapped(PyTracer *t, PyObject *fn);
/* Sets the exception for a graph value as a key of a dict or an item of a set; -1. */
Py_hash_t script_refuse_key(struct PyScript *w);
/* The evaluation that runs in this thread, or NULL. (trace_hooks.c) */
struct PyScript *script_in_charge(module_state *st);
/* module(*args, **kwargs) by way of the evaluator: `kwargs` may be NULL (script.c). */
PyObject *script_call_module(struct PyScript *w, PyObject *module, PyObject *args,
                             PyObject *kwargs);
/* Forgets what belonged to a trace. */
void tracer_end(PyTracer *t);

/* ---- scopes (scope.c) ---------------------------------------------------------------------- */

/* The class of a scope, by name if need be; (path, class); {key: (path, class)} of it and those
 * that it is in. New references. Scope 0 is ("", None). */
PyObject *scope_class_of(PyGraph *graph, uint32_t scope);
PyObject *scope_pair(PyGraph *graph, uint32_t scope);
PyObject *scope_stack(PyGraph *graph, uint32_t scope);
/* The name that a class has in scopes. */
PyObject *scope_class_name(PyObject *class_);
/* The number of a call of a module of that class inside `parent`; 0 with an exception. */
uint32_t scope_enter(PyGraph *graph, uint32_t parent, PyObject *key, PyObject *class_,
                     PyObject *class_name);

/* ---- where a node comes from (source_text.c) ----------------------------------------------- */

/* The number in `graph` of the line of the innermost frame that is the user's own code; if there is
 * none before the frame that began to trace, of the innermost of torch's, unless `users_only`. 0 if
 * there is none: where the traced function begins is the answer then (the tracer's `origin`). */
uint32_t source_location(source_cache *cache, PyGraph *graph, bool users_only);
void source_clear(source_cache *cache);

/* ---- the instruction that runs (bytecode.c) ------------------------------------------------ */

/* If it unpacks into n names, n; else -1. */
Py_ssize_t bytecode_unpack_count(void);
/* Whether the truth that is asked for now decides an `assert`. If the instruction compares as well,
 * *comparison is Py_LT to Py_GE: then it may be asked for on the way, too, of the items of a tuple;
 * else it is -1. */
bool bytecode_in_assert(int *comparison);

#endif
