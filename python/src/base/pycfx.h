/* pycfx.h - what the files of the extension share: module state, object layouts, conversions.
 *
 * Who owns what (docs/ownership.md tells it at length):
 *   Graph  owns its core graph (one count), and one reference to each Node object of a live node.
 *   Node   owns a reference to its Graph object; its core node carries a borrowed pointer back.
 * The Graph alone shows the garbage collector the host objects that the core graph holds.
 */
#ifndef PYCFX_H
#define PYCFX_H

#include "base/pythons.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

/* ---- module state -------------------------------------------------------------------------- */

/* Every object of the module's state stands here once, so that traverse and clear cannot forget
 * one. The second line of each block is registered by the Python glue (_register): `graph_class` is
 * the Python shell of Graph, `glue` the module cfx._glue, NameType its class for objects that are
 * known by name only; `node_meta` is called with each new node that a tracer records, or NULL;
 * `flag_hooks` and all that begins with `fx_` are explained in cfx/interop/presence.py. What
 * begins with `script_` is explained where cfx/_glue/scripting.py registers it, what captured runs
 * need in capture/capture.h. */
#define STATE_OBJECTS(X)                                                                           \
    X(GraphType) X(NodeType) X(NodeListType) X(NodeIterType) X(UsersType) X(UsersIterType)         \
    X(ImmutableListType) X(ImmutableDictType) X(NamespaceType) X(LazyType)                         \
    X(ProxyType) X(AttributeType) X(TracerBaseType) X(TracerType) X(WrappedType)                   \
    X(InterpreterType) X(step_names) X(meta_names) X(fill_meta) X(node_source) X(sequence_nr)      \
    X(NameType) X(graph_class) X(glue) X(node_meta) X(appending_tracer) X(scope_class)             \
    X(empty_tuple) X(empty_dict) X(token_types) X(op_names) X(operators) X(builtin_getattr)        \
    X(library_paths) X(trace_code) X(patches) X(torch_targets) X(tracer_steps) X(tracer_switches)  \
    X(hooked_class) X(sequential) X(tensor_types)                                                  \
    X(module_class) X(parameter_class) X(tensor_class) X(listeners) X(shape_names)                 \
    X(tensor_metadata) X(flag_hooks) X(flag_saved) X(fx_globals) X(fx_node_class) X(fx_readers)    \
    X(TensorType) X(RuntimeType) X(OperatorType) X(operator_functions) X(runtime)                  \
    X(result_types) X(result_rows)                                                                 \
    X(runtime_variable) X(torch_tensor) X(torch_to_dlpack) X(torch_from_dlpack) X(ProgramType)     \
    X(SessionType)                                                                                 \
    X(ExecutableType)                                                                              \
    X(ScriptType) X(ScriptFunctionType) X(script_sources) X(script_files)                          \
    X(script_specials) X(script_builtins) X(script_operators) X(script_facts) X(script_methods)    \
    X(script_plain) X(script_contexts) X(script_inlined) X(graph_module_class) X(names)            \
    X(resolved) X(script_trace_error) X(script_replaced) X(script_set_grad) X(script_refused)      \
    X(script_refusal) X(script_environ) X(script_generator) X(script_linecache)                    \
    X(script_started) X(script_dunders) X(script_layers) X(script_requires_grad) X(script_packed)  \
    X(RecorderType) X(NumberType) X(SymbolType) X(number_functions) X(witness_class) X(int_class)  \
    X(float_class) X(symbol_classes) X(capture_torch) X(capture_describe) X(GuardsType) \
    X(EntryType) X(ObserverType) X(RulesType) X(ComparisonType)                                \
    X(CorrectionType)

/* Strings that are made once: the member's name, and the text. */
#define STATE_STRINGS(X)                                                                           \
    X(str_root, "root") X(str_empty, "") X(str_fields, "_fields") X(str_name, "__name__")          \
    X(str_create_hooks, "_create_node_hooks") X(str_erase_hooks, "_erase_node_hooks")              \
    X(str_replace_hooks, "_replace_hooks") X(str_repr_fn, "_repr_fn")                              \
    X(str_stack_trace, "stack_trace") X(str_op, "op") X(str_target, "target")                      \
    X(str_node, "node") X(str_tracer, "tracer") X(str_call, "__call__") X(str_graph, "graph")      \
    X(str_code, "__code__") X(str_globals, "__globals__") X(str_forward, "forward")                \
    X(str_module, "__module__") X(str_create_node, "create_node")                                  \
    X(str_create_proxy, "create_proxy") X(str_nn_module_stack, "nn_module_stack")                  \
    X(str_is_wrapped, "is_wrapped") X(str_parameters, "_parameters") X(str_buffers, "_buffers")    \
    X(str_modules, "_modules") X(str_wrapped, "__cfx_wrapped__") X(str_get, "__get__")             \
    X(str_getattr, "__getattr__") X(str_overloadpacket, "overloadpacket")                          \
    X(str_forward_hooks, "_forward_hooks") X(str_forward_pre_hooks, "_forward_pre_hooks")          \
    X(str_backward_hooks, "_backward_hooks") X(str_backward_pre_hooks, "_backward_pre_hooks")      \
    X(str_dlpack, "__dlpack__") X(str_is_conj, "is_conj") X(str_is_neg, "is_neg")                  \
    X(str_max_version, "max_version") X(str_input, "input") X(str_seen, "__cfx_seen__")            \
    X(str_fx_flag, "_is_fx_tracing_flag")                                                          \
    X(str_recorder, "_recorder") X(str_own_node, "_node") X(str_real, "_real")                     \
    X(str_sizes, "_sizes") X(str_shape, "shape") X(str_size, "size") X(str_stride, "stride")       \
    X(str_strides, "strides") X(str_dtype, "dtype") X(str_device, "device")                        \
    X(str_layout, "layout") X(str_requires_grad, "requires_grad")                                  \
    X(str_policy, "dispatch_sizes_strides_policy") X(str_sizes_policy, "sizes")                    \
    X(str_enter, "__enter__") X(str_exit, "__exit__") X(str_cpu, "cpu") X(str_cuda, "cuda")        \
    X(str_follow_modes, "follow_modes") X(str_remade, "remade") X(str_out, "out")                  \
    X(str_inplace, "inplace") X(str_torch_function, "__torch_function__")                          \
    X(str_wrapped_number, "_wrapped_number") X(str_training, "training") X(str_ndim, "ndim")

/* Freed memory of graphs, by size: see chunks.c. */
enum { CHUNK_CLASSES = 9 };
typedef struct chunk_cache {
    void *lists[CHUNK_CLASSES];
    size_t held;
} chunk_cache;

/* A function of nn.Module that is hooked while traces run: see module_hooks.c. */
#define MODULE_HOOK_OBJECTS(X)                                                                     \
    X(function)    /* nn.Module's own */                                                           \
    X(code)        /* that it has while it is hooked */                                            \
    X(plain)       /* a function with the code that it has otherwise */                            \
    X(saved_code)  /* of `function` while it is hooked, else NULL */                               \
    X(stand_in)    /* a function with `code` that stands in the class instead, or NULL */          \
    X(replaced)    /* what it is in the place of, or NULL */                                       \
    X(active)      /* while it is hooked, what is called plainly: `plain`, or what is replaced */
enum { MODULE_CALL, MODULE_GETATTR };
typedef struct module_hook {
#define X(name) PyObject *name;
    MODULE_HOOK_OBJECTS(X)
#undef X
} module_hook;

typedef struct module_state {
#define X(name) PyObject *name;
    STATE_OBJECTS(X)
#undef X
#define X(name, text) PyObject *name;
    STATE_STRINGS(X)
#undef X
    cfx_host host;         /* ctx is this state */
    cfx_allocator allocator;  /* of graphs; ctx is `chunks` */
    chunk_cache chunks;
    struct PyProxy *spare_proxies;  /* see proxy.c */
    int n_spare;
    Py_tss_t session;      /* the trace that runs in a thread: a trace_session */
    int sessions;          /* how many run in all threads */
    Py_tss_t flag;         /* whether a thread says that it traces (trace_flag.c): NULL if not */
    module_hook hooks[2];     /* MODULE_CALL, MODULE_GETATTR of `hooked_class` */
    long preserving;          /* contexts that preserve metadata, of all threads */
} module_state;

extern struct PyModuleDef pycfx_module;

/* The state of the module that defines `type` or one of its bases; never fails for our types. */
module_state *state_of(PyTypeObject *type);

/* ---- objects ------------------------------------------------------------------------------- */

/* The last node, in the graph's order, that uses a node. */
typedef struct last_use {
    cfx_node *user, *def;
} last_use;

typedef struct PyGraph {
    PyObject_HEAD
    cfx_graph *g;
    module_state *st;
    PyObject *module;         /* keeps `st`, which the core graph's host lies in */
    PyObject *owning_module;  /* or NULL */
    PyObject *root;           /* the Node of the sentinel, made when first asked for */
    PyObject *names;          /* its Namespace, likewise */
    PyObject *waiting;        /* weak reference to what is called before the next edit, or NULL */
    PyObject *weak;
    cfx_pycode *code;         /* while code is generated: nodes show the names they have there */
    last_use *last_uses;      /* the interpreter's plan, of `planned_version`; or NULL */
    size_t n_last_uses;
    uint64_t planned_version;
    struct PyTracer *tracer;  /* while it converts arguments: proxies stand for their nodes */
    unsigned nesting;         /* containers that are being converted, one in the other */
    size_t n_owned;           /* how many Node objects it holds a reference to */
    bool hooked;              /* whether the hooks of owning modules are called */
} PyGraph;

typedef struct PyNode {
    PyObject_HEAD
    cfx_node *n;
    PyObject *op;      /* read as plain members, as fast as Python can: kept by node_retarget */
    PyObject *target;
    PyObject *args;    /* cached, or NULL; stays NULL for the empty tuple */
    PyObject *kwargs;  /* likewise */
    PyObject *meta;    /* NULL until first asked for */
    PyObject *users;   /* likewise */
    PyObject *dict;
    PyObject *weak;
    bool owned;        /* whether the graph holds a reference to this object */
} PyNode;

static inline PyGraph *node_graph(const PyNode *node)
{
    return cfx_graph_binding(cfx_node_graph(node->n));
}
static inline module_state *node_state(const PyNode *node) { return node_graph(node)->st; }
static inline bool is_node(const module_state *st, PyObject *o)
{
    return Py_TYPE(o) == (PyTypeObject *)st->NodeType;
}
static inline bool is_graph(const module_state *st, PyObject *o)
{
    return PyObject_TypeCheck(o, (PyTypeObject *)st->GraphType);
}

/* ---- errors (module.c) --------------------------------------------------------------------- */

/* Raises the exception that status.def names, unless the host (Python) has raised already.
 * Returns NULL, so that a function can end with `return raise_cfx(&err);`. */
PyObject *raise_cfx(const cfx_error *err);

/* A tuple of interned names: a new reference. */
PyObject *interned_names(const char *const *texts, int n);

/* Calls a function of the Python glue (cfx/_glue.py) by name. */
PyObject *call_glue(module_state *st, const char *function, PyObject *argument);

/* Sorts the arguments of a FASTCALL function into `out` (borrowed, NULL where absent), by position
 * and by name; false with a TypeError. `names` has n entries, the first `required` must be given;
 * at most `positional` may be given by position. */
typedef struct arg_spec {
    const char *function;
    const char *const *names;
    int n, required, positional;
} arg_spec;
bool take_args(const arg_spec *spec, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
               PyObject **out);
#define FAST(fn) ((PyCFunction)(void (*)(void))(fn)), METH_FASTCALL | METH_KEYWORDS

/* A doc string with the signature that inspect.signature reads. */
#define SIGNED(signature, text) PyDoc_STR(signature "\n--\n\n" text)

/* Appends the UTF-8 of a str (lone surrogates allowed) to a sink. */
cfx_status write_str(PyObject *str, cfx_sink out, cfx_error *err);

/* ---- conversion (convert.c) ---------------------------------------------------------------- */

/* A Python object as an argument of `graph`, floating; INVALID with a Python exception set.
 * Containers are copied, as torch.fx does: tuples to tuples, lists and dicts of any class to
 * immutable ones, named tuples and slices item by item. A node of another graph becomes a host
 * value. Whoever does not use the value discards it. */
cfx_value value_from_py(PyGraph *graph, PyObject *o);

/* Whether `o` stands for no arguments: NULL, None, or an empty tuple, list or dict. */
bool is_empty(PyObject *o);

/* The tuple or dict of a node's arguments. An empty one is INVALID without an exception: check
 * PyErr_Occurred. Lists are taken for tuples. */
cfx_value args_from_py(PyGraph *graph, PyObject *args);
cfx_value kwargs_from_py(PyGraph *graph, PyObject *kwargs);
cfx_value args_from_array(PyGraph *graph, PyObject *const *args, Py_ssize_t n);

/* A new reference; NULL with an exception. */
PyObject *value_to_py(PyGraph *graph, cfx_value v);

/* The name of a DTYPE, LAYOUT or MEMORY_FORMAT by its number; NULL past the last. */
const char *token_name(cfx_kind kind, int64_t number);

/* The UTF-8 of `str`, borrowed from it or from *keep (a new reference to release, or NULL). */
const char *utf8_of(PyObject *str, Py_ssize_t *size, PyObject **keep);
/* Likewise for what the core takes as a C string: NULL with a ValueError that calls it `what` if it
 * has a NUL inside, and with a TypeError if it is no str. */
const char *c_string_of(PyObject *str, const char *what, PyObject **keep);
PyObject *str_from_utf8(const char *text, size_t size);
/* What stands for an object that is known by its qualified name only. */
PyObject *name_object(module_state *st, const char *name, size_t size);

/* ---- names (names.c, resolve.c): new references, NULL with an exception -------------------- */

/* getattr(o, name, None) */
PyObject *attr_or_none(PyObject *o, PyObject *name);
/* A module that is loaded, borrowed; NULL without an exception. */
PyObject *loaded_module(const char *name);
/* A type as annotations spell it; how generated code calls a function; how people call it. */
PyObject *type_repr(PyObject *o);
PyObject *function_name(module_state *st, PyObject *function);
PyObject *target_name(module_state *st, PyObject *target);
int is_from_torch(module_state *st, PyObject *o);  /* -1 with an exception */
/* The name under which resolve_name finds an object again; None if it has none. */
PyObject *object_name(module_state *st, PyObject *o);
/* A type of Python's own, a function of C's that belongs to a module or class, or one of torch's or
 * cfx's that was made when they were imported: it is there for good, and so is its name. */
bool is_lasting(PyObject *o);
/* The object that a name stands for, among what is loaded: NULL, too, if there is none. */
PyObject *resolve_name(module_state *st, const char *name, size_t size);
/* From here on resolve_name, in this thread, is asked by a text that may be a stranger's: names
 * lead only into torch, operator, builtins, math, cfx, and the modules that annotations come from;
 * to the functions that cfx.script records (policy.def); and into `modules`, a set of their names
 * (borrowed) or NULL. `before` ends it. */
typedef struct text_names {
    PyObject *allowed;
    bool from_text;
} text_names;
void resolve_from_text(PyObject *modules, text_names *before);
void resolve_as_before(text_names before);
/* Whether it is a member of an enum; whether its class is one of those that annotations are made
 * of. -1 with an exception. (names.c) */
int is_enum(PyObject *o);
bool is_annotation(const module_state *st, PyObject *o);

/* ---- names in generated code (codegen_names.c): likewise ----------------------------------- */

typedef struct code_names {
    module_state *st;
    cfx_pycode *gen;  /* NULL until the core has begun */
    PyObject *known;  /* {object: the name of its global} */
} code_names;

/* The name of the global for an object, made of a wish if it has none yet. */
PyObject *code_global(const code_names *names, PyObject *wish, PyObject *o);
PyObject *code_add_global(const code_names *names, PyObject *wish, PyObject *o,
                          bool allow_reserved);
/* How a function is called, and the annotation for a type. */
PyObject *code_target(const code_names *names, PyObject *function);
PyObject *code_type(const code_names *names, PyObject *type);

/* ---- graphs and nodes ---------------------------------------------------------------------- */

/* While Python code may run, nodes that it erases stay readable: until cfx_iter_end. */
static inline cfx_iter hold(cfx_graph *g)
{
    cfx_iter pin;
    cfx_iter_begin(&pin, g, false);
    return pin;
}
/* Allocates an object without collecting garbage, which could run any code. */
void *alloc_quietly(PyTypeObject *type);
/* The Node object of a core node: a new reference. Runs no code, so that it may be called in the
 * middle of things. */
PyObject *node_wrap(PyGraph *graph, cfx_node *n);
/* Brings a Node's `op` and `target` up to date: false with an exception. */
bool node_retarget(PyNode *node);
/* The Graph object of a core graph that may have none yet: a new reference. */
PyObject *graph_wrap(module_state *st, cfx_graph *g);
/* Whether `o` stands for an object that is not loaded (cfx._glue.Name). */
bool is_name(const module_state *st, PyObject *o);
/* `o` as a target for `op`: false with torch.fx's exception. *keep is to be released after use. */
bool target_from_py(const module_state *st, cfx_opcode op, PyObject *o, cfx_target *target,
                    PyObject **keep);
/* An opcode by its name; false with an AssertionError. */
bool opcode_from_py(PyObject *o, cfx_opcode *op);

/* What a node is made of. Borrowed; NULL or None where absent. The arguments are an array if
 * `items` is not NULL. With a `tracer`, proxies among them stand for their nodes. */
typedef struct node_parts {
    cfx_opcode op;
    PyObject *target, *args, *kwargs, *name, *type;
    PyObject *const *items;
    Py_ssize_t n;
    struct PyTracer *tracer;
} node_parts;
/* A new node at the insertion point, borrowed; or a new reference to its Node. */
cfx_node *graph_create_core(PyGraph *graph, const node_parts *parts);
PyObject *graph_create(PyGraph *graph, const node_parts *parts);
/* By way of create_node, which a class of graphs may have overridden. `items` is not looked at. */
PyObject *graph_create_by_method(PyGraph *graph, const node_parts *parts);

PyObject *users_new(PyNode *node);
PyObject *users_of(PyNode *node);  /* node.users */
PyObject *node_iter_new(PyGraph *graph, bool reverse);
PyObject *namespace_for_graph(PyGraph *graph);

/* ---- immutable containers and mapping (immutable.c, map_blocks.c) -------------------------- */

/* New, with room for n items: the caller fills it before anyone else sees it. */
PyObject *immutable_list_new(module_state *st, Py_ssize_t n);
PyObject *immutable_dict_new(module_state *st);

/* map_aggregate in C: `fn(ctx, item)` gives a new reference for each leaf. */
typedef PyObject *map_leaf_fn(void *ctx, PyObject *leaf);
PyObject *map_tree(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx);
/* Likewise for the arguments of a call, a tuple or a dict. A list or dict among them becomes an
 * ordinary one, which the call may keep and change, if `plain` says so; `inside`: it is an item of
 * another one. */
typedef bool map_plain_fn(void *ctx, bool inside);
PyObject *map_arguments(module_state *st, PyObject *given, map_leaf_fn *fn, map_plain_fn *plain,
                        void *ctx);

/* Likewise, and the keys of dicts and the members of sets, which map_tree leaves as they are. */
PyObject *map_all(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx);

extern PyMethodDef map_functions[];      /* map_arg, map_aggregate */
extern PyMethodDef codegen_functions[];  /* _generate, _signature */
extern PyMethodDef use_order_functions[];  /* _order_of_uses */
extern PyMethodDef pass_functions[];       /* _passes, _graph_for */
PyObject *py_operator(PyObject *module, PyObject *target);  /* _operator (operators.c) */
extern PyMethodDef name_functions[];       /* _type_repr, _get_qualified_name, ... */
extern PyMethodDef resolve_functions[];    /* _resolve */
extern PyMethodDef own_class_functions[];  /* _own_class */
extern PyMethodDef attribute_functions[];  /* _get_attr, _copy_attr, ... */

/* The numbers of a list of nodes in the order in which they were given arguments; None if that
 * is the order of the nodes (use_order.c). */
PyObject *order_of_uses(PyObject *nodes);

/* ---- types --------------------------------------------------------------------------------- */

extern PyType_Spec graph_spec, node_spec, node_list_spec, node_iter_spec, users_spec,
    users_iter_spec, immutable_list_spec, immutable_dict_spec, namespace_spec, lazy_spec;

/* Fills state->host (host.c), state->allocator (chunks.c); gives back what that keeps. */
void host_init(module_state *st);
void chunks_init(module_state *st);
void chunks_release(module_state *st);

/* ---- attributes by path (attributes.c): NULL or -1 with an exception ----------------------- */

/* getattr(o, name), or with `or_none` getattr(o, name, None); faster than nn.Module's own where it
 * does nothing else. */
PyObject *module_getattr(const module_state *st, PyObject *o, PyObject *name, bool or_none);
/* getattr(o, name); NULL without an exception if there is no such attribute. */
PyObject *module_find_attr(const module_state *st, PyObject *o, PyObject *name);
PyObject *path_get(const module_state *st, PyObject *o, PyObject *path);  /* a new reference */
int path_delete(const module_state *st, PyObject *o, PyObject *path);
/* Modules that are missing on the way are made; a tensor that is no parameter becomes a buffer. */
int path_assign(module_state *st, PyObject *o, PyObject *path, PyObject *value);

/* ---- trees of modules (modules.c) ---------------------------------------------------------- */

/* What the core sees of an nn.Module, as long as the caller holds that. */
typedef struct module_view {
    cfx_module_tree table;  /* ctx is this view */
    module_state *st;
    PyObject *root;     /* borrowed */
    PyObject *own;      /* {id: module}: copies of what lay on the way to what was changed */
    PyObject *gone;     /* [module]: those that others replaced. They live as long as this does: an
                           identity is an address, which nothing else may get meanwhile */
    PyObject *names;    /* {class: its public name} */
    PyObject *last;     /* the module that was asked for last, or NULL: mostly it is asked again */
    char last_path[200];
    size_t last_size;
} module_view;
/* False with an exception if `root` is no nn.Module; modules_done is due in any case. */
bool modules_over(module_state *st, PyObject *root, module_view *view);
void modules_done(module_view *view);
/* "torch.nn.Conv2d": the name under which torch.nn has the class, or its own. A new reference. */
PyObject *module_class_name(PyObject *class);

/* ---- running graphs (interpreter.c) -------------------------------------------------------- */

extern PyType_Spec interpreter_spec;
int interpreter_init(module_state *st);
/* The module's state, without a search. */
module_state *interpreter_state(PyObject *self);
/* Interpreter.run_node of an Interpreter and a Node: a new reference, NULL with an exception. */
PyObject *interpreter_run_node(PyObject *self, PyObject *node);

/* ---- the metadata that new nodes inherit (meta.c) ------------------------------------------ */

int meta_init(PyObject *module);
extern PyMethodDef meta_functions[];

/* Makes the metadata of a node the thread's current one, if the thread preserves any: gives what
 * meta_leave is to put back, a new reference; NULL with an exception. */
PyObject *meta_enter(module_state *st, PyNode *node, PyObject *pass_name);
/* Leaves a pending exception alone. */
void meta_leave(module_state *st, PyObject *saved);

extern PyMethodDef pass_order_functions[];  /* _check_pass_order, _sort_passes */
extern PyMethodDef placement_functions[];   /* _longest_ways, _fit_parts, _part_links */

/* ---- the metadata of tensors (shape_prop.c) ------------------------------------------------ */

int shape_prop_init(PyObject *module);
extern PyMethodDef run_and_record_def;  /* the method ShapeProp.run_node */
/* What it does, of an Interpreter and a Node: a new reference, NULL with an exception. */
PyObject *run_and_record(PyObject *self, PyObject *node);

/* ---- tensors (tensor.c, tensor_import.c, tensor_export.c) ---------------------------------- */

typedef struct PyTensor {
    PyObject_HEAD
    cfx_tensor *t;
    PyObject *weak;
} PyTensor;

static inline bool is_cfx_tensor(const module_state *st, PyObject *o)
{
    return Py_TYPE(o) == (PyTypeObject *)st->TensorType;
}

/* A tensor of torch: none is known before torch is loaded. */
static inline bool is_torch_tensor(const module_state *st, PyObject *o)
{
    return st->torch_tensor && PyObject_TypeCheck(o, (PyTypeObject *)st->torch_tensor);
}

/* Whose arrays were seen among arguments; results are given back as those of the last of these. */
typedef enum array_kind { ARRAY_NONE, ARRAY_CFX, ARRAY_NUMPY, ARRAY_TORCH } array_kind;

/* What squeeze_ and its like change of a tensor. */
typedef struct tensor_header {
    size_t ndim;
    int64_t sizes[CFX_MAX_DIMS];
    int64_t strides[CFX_MAX_DIMS];
    const void *data;
} tensor_header;

/* A tensor of torch's and what shares its memory, and how that was before a run. Owned. */
typedef struct shared_tensor {
    PyObject *o;
    cfx_tensor *t;
    tensor_header before;
} shared_tensor;

typedef struct shared_tensors {
    shared_tensor *items;
    size_t n, room;
} shared_tensors;
/* Objects that are data for the time of a call (crossing.c). */
enum { CROSSING_FEW = 8 };
typedef struct crossed {
    PyObject *object;
    cfx_datum datum;
} crossed;
typedef struct crossing {
    size_t n;
    size_t room;
    crossed *all;        /* `few`, or a block */
    size_t slots;        /* of each index; 0: they are few, and looked through */
    uint32_t *index[2];  /* by object and by datum */
    crossed few[CROSSING_FEW];
} crossing;

/* What reading arguments has found out. Start it as {0}. */
typedef struct arrays_seen {
    array_kind kind;
    bool copied;  /* an array could only be copied: writing to the tensor does not reach it */
    shared_tensors *shared;  /* receives those of torch's that were not copied; or NULL */
    crossing *both;  /* collects tensors and containers, so that each becomes one datum; or NULL */
} arrays_seen;

/* A cfx.Tensor that takes over `t`; NULL with an exception, also if `t` is NULL. */
PyObject *tensor_wrap(module_state *st, cfx_tensor *t);
/* The tensor that shares memory with a cfx.Tensor, a torch tensor, or whatever has __dlpack__ or
 * the buffer protocol: a new reference; NULL with an exception. */
cfx_tensor *tensor_from_py(module_state *st, PyObject *o, arrays_seen *seen);
/* Likewise, but NULL without an exception if `o` is no torch tensor or ndarray. */
cfx_tensor *array_from_py(module_state *st, PyObject *o, arrays_seen *seen);
/* `t` as an object of that library: a new reference, sharing the memory. ARRAY_NONE is CFX. */
PyObject *tensor_to_py(module_state *st, cfx_tensor *t, array_kind kind);
/* A run may change the sizes of tensors that are shared with torch: squeeze_. After `add`, and
 * before each run, `remember`; after it, `follow` gives torch's tensors what has changed. -1 with
 * an exception. (tensor_export.c) */
int shared_add(shared_tensors *all, PyObject *o, cfx_tensor *t);
void shared_remember(shared_tensors *all);
int shared_follow(const shared_tensors *all);
void shared_free(shared_tensors *all);
/* Whether the row changes the sizes of its first argument: squeeze_, t_. (operator_call.c) */
bool changes_header(cfx_operator op);
/* A dtype by torch's object, its name, or Python's type: false with an exception. */
bool dtype_from_py(module_state *st, PyObject *o, cfx_dtype *dtype);
int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void tensor_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *tensor_numpy(PyObject *self, PyObject *unused);
PyObject *tensor_torch(PyObject *self, PyObject *unused);

/* ---- what flows when a graph runs (datum.c) ------------------------------------------------ */

/* A Python object as a datum, owned by the caller: numbers, None, strings, torch's dtypes and the
 * like, tensors of any library, and containers of these. INVALID with an exception. *seen (not
 * NULL) collects what arrays there were. */
cfx_datum datum_from_py(module_state *st, PyObject *o, arrays_seen *seen);
/* A new reference; tensors as that library's (see tensor_to_py). NULL with an exception. */
PyObject *datum_to_py(module_state *st, cfx_datum d, array_kind kind);
/* Likewise; what is in `both` comes back as the object that it was, and what is not is added. */
PyObject *datum_back_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both);
/* The items of a list, tuple, dict or slice as a list: keys and values, of a dict. */
PyObject *data_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both);

/* ---- one object, one datum (crossing.c) ---------------------------------------------------- */

void crossing_begin(crossing *both);
void crossing_end(crossing *both);
/* The datum of an object that was added: owned by the caller; false if it was not. */
bool crossing_datum(const crossing *both, PyObject *o, cfx_datum *out);
/* The object of a tensor, list, tuple or dict, borrowed; NULL if there is none. */
PyObject *crossing_object(const crossing *both, cfx_datum d);
/* Both are retained; plain values are not kept. False with an exception. */
bool crossing_add(crossing *both, PyObject *o, cfx_datum d);
/* Gives the lists and dicts that C has changed their new items, and torch's tensors their new sizes
 * and strides. False with an exception. */
bool crossing_write_back(module_state *st, crossing *both, array_kind kind);

/* ---- computing (runtime.c, operator_call.c) ------------------------------------------------ */

/* The Runtime that computes here: of the innermost `with cfx.Runtime(...)`, or the default one,
 * which is made when first asked for. A new reference; NULL with an exception. */
PyObject *runtime_current(module_state *st);
cfx_runtime *runtime_of(PyObject *runtime);  /* borrowed: as long as the object lives */
/* cfx_operator_run in the current runtime, without the interpreter's lock; INVALID with an
 * exception. */
cfx_datum run_operator(module_state *st, cfx_operator op, const cfx_datum *args, size_t n);
extern PyType_Spec tensor_spec, runtime_spec, operator_spec;
extern PyMethodDef runtime_functions[];  /* manual_seed, _operator_function, _kernels */

/* ---- lowered graphs (lowered.c) ------------------------------------------------------------ */

extern PyType_Spec program_spec;
extern PyType_Spec session_spec;
extern PyType_Spec executable_spec;  /* executable.c */
extern PyMethodDef lower_functions[];
extern PyMethodDef command_functions[];
extern PyMethodDef complete_functions[];  /* complete.c */
/* The tensors of a dict, by their names; NULL with an exception. */
cfx_state *state_from_py(module_state *st, PyObject *dict, arrays_seen *seen);
const cfx_program *program_of(PyObject *program);  /* borrowed */

/* ---- files, types and shapes (weights.c) --------------------------------------------------- */

/* {name: Tensor}, in its order: a new reference, NULL with an exception. (weights.c) */
PyObject *state_to_py(module_state *st, const cfx_state *state);
extern PyMethodDef weights_functions[];
extern PyMethodDef package_functions[];  /* _save_package, _load_package */
extern PyMethodDef onnx_save_functions[];  /* _save_onnx */

/* ---- Python source (syntax_api.c) ---------------------------------------------------------- */

extern PyMethodDef syntax_functions[];

#endif
