/* scripting.h - evaluating programs from their source: the world of Python's objects.
 *
 * The evaluator (<cfx/script.h>) runs the statements of a function and asks a world for all that
 * objects do. Here a cfx_object is a PyObject, and a graph value is a Proxy of the tracer that the
 * nodes go to.
 *
 * Nothing is baked into the graph by accident. A tensor of the program stays itself while it is
 * handed around or asked for what never changes (its shape); whatever is computed with it reads it
 * with a get_attr. Functions that have no source are called as a trace would call them, in a mode
 * of torch's that records its functions, also those that make tensors of nothing. Attributes
 * that the program assigns to objects that outlive it are kept aside, so that nobody else sees
 * proxies in them, and containers that outlive it cannot be changed.
 *
 * An entry of the world that raises leaves no exception set: it lies in `pending` until the
 * evaluator takes it (`caught`) or fails for good.
 */
#ifndef PYCFX_SCRIPTING_H
#define PYCFX_SCRIPTING_H

#include "trace/trace.h"

#include <cfx/embed/script.h>

/* One evaluation. Python's part of it is an object, because functions that the program made may
 * outlive it; then nothing but `sources` is left in it. */
#define SCRIPT_OBJECTS(X)                                                                          \
    X(mode) X(pending) X(kept) X(aside) X(flags) X(outside) X(defs) X(message) X(classes)          \
    X(looked_at) X(seen_lines) X(spaces) X(cached) X(begun)
typedef struct PyScript {
    PyObject_HEAD
    module_state *st;
    PyObject *module;      /* keeps `st` */
    PyTracer *tracer;      /* owned; NULL once it is over */
    cfx_evaluator *ev;     /* likewise */
    PyObject *sources;     /* a list of capsules: the scripts that functions come from */
    cfx_world world;
    /* mode: torch's, that records; pending: an exception; kept: a list of what the evaluator
     * borrows; aside: {(id of a module, name): (module, value)} of attributes that were assigned,
     * Ellipsis if deleted; flags: {id of a module: (module, graph value of its `training`)};
     * outside: {id: object} of what can change and the program found; defs: {function: address of
     * its def, or None}; message: of the last `explain`; classes: a set of those that the program
     * made; spaces: {id: dict} of those that hold the attributes of an object, as vars() gives
     * them; looked_at: the file that was last looked for, and its lines, if it has not changed;
     * cached: {key: (number of a region, result, whether it has effects, cache, arguments, places
     * of its nodes if it outlives the call)} of functools' caches; begun: {key: (last node,
     * changes)} when the function was called. */
#define X(name) PyObject *name;
    SCRIPT_OBJECTS(X)
#undef X
    cfx_node *flag;        /* behind which the next flag is read: an input or a flag, or NULL */
    int training;          /* what `training` is fixed to: 1, 0; -1: the graph reads it; -2: what
                              it is now, and the graph checks that */
    bool grad_read;        /* `requires_grad` of a tensor was taken for a constant */
    bool grad_changed;     /* it was changed: the graph reads it from now on */
    bool reads_flags;      /* the program has asked for one that was not fixed */
    bool refused;          /* script_refuse has set the exception */
    PyObject *assigning;   /* the module whose __setattr__ called nn.Module's, until it is set */
    PyObject *calling;     /* the module that nn.Module.__call__ was called with, until it is */
    int in_mode;           /* how many calls are in the mode */
    int in_text;           /* how many texts are made by Python itself */
    int applied;           /* how many calls see what is aside */
    unsigned changes;      /* how many attributes of modules were assigned to */
    const char *file;      /* what is evaluated; lives as long as the sources */
    uint32_t line;
    scope_frame **scopes;  /* of the modules that are entered */
    size_t n_scopes, room;
} PyScript;

static inline PyObject *py(cfx_object *o) { return (PyObject *)o; }
static inline cfx_object *object(PyObject *o) { return (cfx_object *)o; }

extern PyType_Spec script_spec, script_function_spec;
extern PyMethodDef script_functions[];

/* ---- errors (script_raise.c) --------------------------------------------------------------- */

/* Takes the exception that is set: *err says CFX_E_HOST, and what it is. */
cfx_status script_failed(PyScript *w, cfx_error *err);
/* Sets an exception that says what cfx cannot do: script_failed makes it CFX_E_UNSUPPORTED, so that
 * the evaluator shows the line. Returns NULL. */
PyObject *script_refuse(PyScript *w, const char *format, ...);
/* A result for the evaluator: `o`, or NULL and script_failed. */
cfx_object *script_result(PyScript *w, PyObject *o, cfx_error *err);
/* Raises what ended an evaluation: the exception that is pending, with a note that says where, or
 * the one that fits the status. Returns NULL. */
PyObject *script_raise(PyScript *w, const cfx_error *err);
/* The same where no evaluation runs: a ScriptError. */
PyObject *script_raise_error(module_state *st, const cfx_error *err);

/* ---- objects (script_object.c) ------------------------------------------------------------- */

static inline bool is_tensor(const module_state *st, PyObject *o)
{
    return st->tensor_class && PyObject_TypeCheck(o, (PyTypeObject *)st->tensor_class);
}
static inline bool is_nn_module(const module_state *st, PyObject *o)
{
    return st->module_class && PyObject_TypeCheck(o, (PyTypeObject *)st->module_class);
}
static inline bool is_mutable(PyObject *o)
{
    return PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o);
}
/* Whether the object itself is a graph value, or a tensor that would become one. */
static inline bool is_graph_like(const module_state *st, PyObject *o)
{
    return is_proxy(st, o) || is_tensor(st, o);
}
/* Whether there is such a one in it: 1, 0, -1 with an exception. */
int mentions_graph(module_state *st, PyObject *o);
bool is_instance(const module_state *st, PyObject *o);  /* CFX_OBJECT_INSTANCE */
/* Whether either may stand for both: what can be changed is only the same as itself. */
bool script_same(PyObject *a, PyObject *b);

/* ---- graph values (script_graph.c) --------------------------------------------------------- */

/* A Proxy that reads the tensor; any other object itself. A new reference; NULL with an
 * exception. */
PyObject *script_read(PyScript *w, PyObject *o);
/* Records a call: a new reference to the Proxy; NULL with an exception. */
PyObject *script_record(PyScript *w, PyObject *target, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwargs);
PyObject *script_record_method(PyScript *w, PyObject *name, PyObject *const *args, Py_ssize_t n,
                               PyObject *kwargs);
/* The same by the number of a function of `operator`, see sign.def. */
PyObject *script_record_operator(PyScript *w, const char *name, PyObject *const *args,
                                 Py_ssize_t n);

/* ---- modules (script_module.c) ------------------------------------------------------------- */

/* Attributes that the program assigns to modules are kept aside: nobody else sees them, and the
 * modules are as before when the capture ends. */

/* What was assigned: borrowed, Ellipsis if it was deleted; NULL if nothing was, perhaps with an
 * exception. */
PyObject *script_aside(PyScript *w, PyObject *module, PyObject *name);
/* Keeps a value aside; NULL: the attribute is deleted. What the module has anyway is not kept.
 * -1 with an exception. */
int script_put_aside(PyScript *w, PyObject *module, PyObject *name, PyObject *value);
/* Whether the module or one below it has attributes aside: then a call of it cannot be recorded as
 * a call of the module. 1, 0, -1 with an exception. */
int script_is_changed(PyScript *w, PyObject *module);
/* Calls f with the attributes put where Python's own code finds them. It may not change modules
 * that it is given. NULL with an exception. */
PyObject *script_call_changed(PyScript *w, PyObject *f, PyObject *args, PyObject *kwargs);
/* The flag `training` of a module: a graph value that reads it when the graph runs, or what it is
 * fixed to. A new reference; NULL with an exception. */
PyObject *script_training(PyScript *w, PyObject *module);
/* The program looks into the dicts of a module. What is aside is not seen there, so that is
 * refused, and the flag is fixed to what it is now, which the graph checks. -1 with an
 * exception. */
int script_look_inside(PyScript *w, PyObject *module, PyObject *name);
/* Records that a module is left with another flag. -1 with an exception. */
int script_keep_training(PyScript *w, PyObject *module, PyObject *v);

/* ---- caches (script_cache.c) --------------------------------------------------------------- */

/* How a function behind one of functools' caches is called: (helper, script, cache, function), a
 * new reference; NULL with an exception. */
PyObject *script_cached(PyScript *w, PyObject *cache, PyObject *function);
/* Whether the program writes to a tensor that a cache keeps after the call: -1 with *err set or an
 * exception. */
int script_check_caches(PyScript *w, cfx_error *err);
/* _script_recall(script, cache, args, kwargs): (True, result), or (False, None). */
PyObject *script_recall(PyObject *module, PyObject *const *in, Py_ssize_t n);
/* _script_remember(script, cache, args, kwargs, result) */
PyObject *script_remember(PyObject *module, PyObject *const *in, Py_ssize_t n);

/* ---- attributes (script_attribute.c) ------------------------------------------------------- */

/* An entry of the dicts of an instance or module: borrowed, or NULL, perhaps with an exception. */
PyObject *script_own_entry(PyScript *w, PyObject *o, PyObject *name);
/* Notes that an object that can change was found, not made, by the program: it outlives the call,
 * so that changing it while capturing would be wrong. -1 with an exception. */
int script_note(PyScript *w, PyObject *o);
int script_is_outside(PyScript *w, PyObject *o);  /* 1, 0, -1 with an exception */
/* The same for a new reference, which may be NULL: it, or NULL with an exception. */
PyObject *script_found(PyScript *w, PyObject *o);
/* object.__setattr__ and its like: -1 with an exception if that changes what outlives the call. */
int script_may_assign(PyScript *w, PyObject *o, PyObject *name);
/* A tensor's `requires_grad` is about to change. -1 with an exception. */
int script_change_grad(PyScript *w);

/* ---- changes (script_change.c) ------------------------------------------------------------- */

/* Notes that a dict holds the attributes of an object: both would have to be put back. -1 with an
 * exception. */
int script_note_space(PyScript *w, PyObject *o, PyObject *dict);
/* Notes that a dict holds the globals of a function, which come from outside; not what it holds. */
int script_note_globals(PyScript *w, PyObject *globals);
/* How *o can change, as cfx_world.change says. */
cfx_script_change script_change(PyScript *w, PyObject **o);
/* Whether its contents are its items, like those of a list. */
bool is_deque(PyObject *o);
/* Whether they are one object that holds everything: of a bytearray, an array. */
bool is_whole(PyObject *o);
/* A list of that object; and back. */
PyObject *whole_contents(PyObject *o);
int whole_refill(PyObject *o, PyObject *whole);
/* Whether o[key] adds the key: of a dict with an answer for keys that it does not have. */
bool has_missing(PyObject *o);

/* ---- lists and dicts that are graph values (script_stale.c) -------------------------------- */

/* Python's own code is about to read `o`: -1 with an exception if that leads to a list or dict that
 * has become a graph value, so that it would see what that held before. */
int script_check_stale(PyScript *w, PyObject *o);
/* The same, but items of a builtin container may lead there: nobody looks into them. */
int script_check_opaque(PyScript *w, PyObject *o);
/* The same for the next item of an iterator. */
int script_check_next(PyScript *w, PyObject *iterator);
/* The same for what a call of `f` reads. */
int script_check_call(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                      PyObject *kwargs);

/* ---- sources (script_source.c) ------------------------------------------------------------- */

/* The function of a source that a code object was compiled from; NULL: it has none, or none that
 * is the user's own, perhaps with *err set. `code` stays alive. */
const cfx_script_def *script_def(PyScript *w, PyObject *function, cfx_error *err);
/* Whether a file is the user's own: 1, 0, -1 with an exception. */
int script_is_users(module_state *st, PyObject *file);

/* ---- calls (script_callee.c, script_call.c) ------------------------------------------------ */

cfx_status script_callee(void *ctx, cfx_object *f, cfx_script_callee *out, cfx_error *err);
/* Calls a function of the user's class by way of the evaluator. NULL with an exception. */
PyObject *script_call(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                      PyObject *kwargs);
/* The function that a class of the user's has under that name and that has a source, borrowed;
 * NULL, perhaps with an exception. */
PyObject *users_method(PyScript *w, PyTypeObject *type, PyObject *name);
/* Calls the method of that name of o's class with `other` (may be NULL), if that is the user's:
 * NULL without an exception if it is not, or gives NotImplemented. (script_operate.c) */
PyObject *script_call_users(PyScript *w, PyObject *o, const char *method, PyObject *other);
/* Whether every call of it is recorded, whatever its arguments are. */
bool script_is_recorded(const module_state *st, PyObject *f);
/* Calls f as a trace would: in the mode that records. */
PyObject *script_call_plain(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwargs);
PyObject *script_torch(PyObject *module, PyObject *const *in, Py_ssize_t n);  /* _script_torch */
cfx_object *script_world_call(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err);
PyObject *script_function_new(PyScript *w, cfx_script_function *f);
/* The function, if `o` is one that an evaluator of this world made and that can be called. */
cfx_script_function *script_function_of(const PyScript *w, PyObject *o);

/* ---- the entries of the world -------------------------------------------------------------- */

void script_change_entries(cfx_world *world);
void script_stale_entries(cfx_world *world);
void script_object_entries(cfx_world *world);
void script_operate_entries(cfx_world *world);
void script_attribute_entries(cfx_world *world);
void script_graph_entries(cfx_world *world);
void script_raise_entries(cfx_world *world);

#endif
