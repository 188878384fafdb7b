/* script_call.c - the world of scripts: calls of what is not evaluated from a source.
 *
 * Recorded are: methods of graph values, leaf modules, functions that are wrapped, and builtins
 * with a graph value among their arguments. All else is called as a trace would call it, in a mode
 * that records every function of torch's that makes or takes a tensor.
 */
#include "scripting.h"

#include <structmember.h>

/* A call on its way; all borrowed. */
typedef struct call {
    PyObject *f;
    PyObject *const *args;
    Py_ssize_t n;
    PyObject *kwargs;  /* a dict, or NULL */
} call;

/* Rules that only Python's world has, besides those of policy.def. */
enum {
    RULE_MODE = CFX_RULE_ALWAYS + 1,  /* cfx/_glue/contexts.py knows more */
    RULE_REFUSED,
    RULE_REFUSED_OF_GRAPH,            /* if a graph value is an argument */
    RULE_ASKED                        /* cfx/_glue/chance.py looks at the arguments */
};

/* ---- arguments ----------------------------------------------------------------------------- */

static int mentions(module_state *st, const call *c)
{
    int found = 0;
    for (Py_ssize_t i = 0; found == 0 && i < c->n; i++)
        found = mentions_graph(st, c->args[i]);
    return found == 0 && c->kwargs ? mentions_graph(st, c->kwargs) : found;
}

/* Whether an argument itself is a graph value, or also a tensor. */
static bool takes_graph(const module_state *st, const call *c, bool tensors)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    for (Py_ssize_t i = 0; i < c->n; i++)
        if (is_proxy(st, c->args[i]) || (tensors && is_tensor(st, c->args[i])))
            return true;
    while (c->kwargs && PyDict_Next(c->kwargs, &at, &name, &value))
        if (is_proxy(st, value) || (tensors && is_tensor(st, value)))
            return true;
    return false;
}

/* ---- as a trace would ---------------------------------------------------------------------- */

/* A proxy was asked for what only a value knows: says in whose code, and what to do. */
static void explain(PyObject *f)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *name = PyObject_GetAttrString(f, "__qualname__");
    if (!name) {
        PyErr_Clear();  /* some other callable */
        name = PyObject_Repr(f);
    }
    PyObject *note = !name ? NULL : PyUnicode_FromFormat(
        "in '%S', which is traced, not captured from its source; to do: cfx.wrap it, so that the "
        "graph calls it as a whole", name);
    PyObject *done = note && value ? PyObject_CallMethod(value, "add_note", "O", note) : NULL;
    PyErr_Clear();  /* the exception itself is what counts */
    Py_XDECREF(done);
    Py_XDECREF(note);
    Py_XDECREF(name);
    PyErr_Restore(type, value, traceback);
}

static PyObject *leave_mode(PyScript *w, PyObject *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallMethod(w->mode, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (!done) {
        Py_CLEAR(result);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return NULL;
    }
    Py_DECREF(done);
    PyErr_Restore(type, value, traceback);
    return result;
}

/* Whether it is str(), repr() and their like, or a method of a text. */
static bool makes_text(PyObject *f)
{
    if (!PyCFunction_Check(f))
        return f == (PyObject *)&PyUnicode_Type;
    PyObject *self = PyCFunction_GET_SELF(f);
    const char *name = ((PyCFunctionObject *)f)->m_ml->ml_name;
    return self && (PyUnicode_Check(self) ||
                    (PyModule_Check(self) && (strcmp(name, "repr") == 0 ||
                                              strcmp(name, "ascii") == 0 ||
                                              strcmp(name, "format") == 0)));
}

PyObject *script_call_plain(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwargs)
{
    const bool is_c = PyCFunction_Check(f) ||
                      (PyType_Check(f) &&
                       !PyType_HasFeature((PyTypeObject *)f, Py_TPFLAGS_HEAPTYPE));
    if (script_check_call(w, f, args, n, kwargs) < 0)
        return NULL;
    PyObject *all = is_c || tracer_wrap(w->tracer) == 0 ? tuple_of(args, n) : NULL;
    PyObject *entered = !all ? NULL : w->in_mode ? Py_NewRef(Py_None)
                                    : PyObject_CallMethod(w->mode, "__enter__", NULL);
    PyObject *result = NULL;
    if (entered) {
        const bool text = makes_text(f);
        w->in_mode++;
        w->in_text += text;
        result = script_call_changed(w, f, all, kwargs);
        w->in_text -= text;
        if (--w->in_mode == 0)
            result = leave_mode(w, result);
    }
    Py_XDECREF(entered);
    Py_XDECREF(all);
    if (!result && w->st->script_trace_error &&
        PyErr_ExceptionMatches(w->st->script_trace_error))
        explain(f);
    return result;
}

/* _script_torch(tracer, function, args, kwargs): what the mode makes of a call of torch's function:
 * recorded, unless it asks a tensor of the program for what never changes. */
PyObject *script_torch(PyObject *module, PyObject *const *in, Py_ssize_t n)
{
    module_state *st = PyModule_GetState(module);
    if (n != 4 || !PyTuple_Check(in[2]) || !is_tracer(st, in[0]))
        return PyErr_Format(PyExc_TypeError, "_script_torch takes a tracer, a function, a tuple "
                                             "and a dict");
    PyObject *kwargs = in[3] == Py_None ? NULL : in[3];
    struct PyScript *w = ((PyTracer *)in[0])->script;
    if (w && in[1] == st->script_requires_grad && script_change_grad(w) < 0)
        return NULL;
    int plain = st->script_plain ? PySet_Contains(st->script_plain, in[1]) : 0;
    if (plain < 0) {
        PyErr_Clear();  /* a function that cannot be hashed is in no list */
        plain = 0;
    }
    if (plain > 0 && !find_proxy(st, in[2]) && !(kwargs && find_proxy(st, kwargs)))
        return PyErr_Occurred() ? NULL : PyObject_Call(in[1], in[2], kwargs);
    return record_torch(st, in[0], in[1], in[2], kwargs);
}

/* ---- what is recorded ---------------------------------------------------------------------- */

/* How calls of a builtin function, or of one of torch's that is no function of tensors, are
 * recorded. */
static long record_rule(const module_state *st, PyObject *f)
{
    PyObject *rule = NULL;
    if (PyCFunction_Check(f) || PyType_Check(f) || PyFunction_Check(f) || PyMethod_Check(f) ||
        Py_TYPE(f) == &PyMethodDescr_Type)
        rule = st->script_builtins ? PyDict_GetItemWithError(st->script_builtins, f) : NULL;
    if (!rule)
        PyErr_Clear();  /* a method of what cannot be hashed is in no list */
    return rule ? PyLong_AsLong(rule) : CFX_RULE_NEVER;
}

/* The same for one that torch has wrapped since the list was made, as Dynamo does. */
static long record_rule_of(const module_state *st, PyObject *f)
{
    long rule = record_rule(st, f);
    if (rule != CFX_RULE_NEVER || !PyFunction_Check(f))
        return rule;
    PyObject *wrapped = PyObject_GetAttrString(f, "__wrapped__");
    if (wrapped)
        rule = record_rule(st, wrapped);
    else
        PyErr_Clear();  /* most are not wrapped */
    Py_XDECREF(wrapped);
    return rule;
}

bool script_is_recorded(const module_state *st, PyObject *f)
{
    return record_rule_of(st, f) == CFX_RULE_ALWAYS;
}

static int is_recorded(const module_state *st, long rule, const call *c)
{
    switch (rule) {
    case CFX_RULE_ITEM:
        return takes_graph(st, c, true);
    case CFX_RULE_VALUE:
        return takes_graph(st, c, false);
    case CFX_RULE_DEEP:
        return mentions((module_state *)st, c);
    default:
        return rule == CFX_RULE_ALWAYS;
    }
}

/* Whether the type is one of those whose objects are always recorded: torch.ops.* */
static int is_operator(const module_state *st, PyObject *f)
{
    return st->script_operators ? PyObject_IsInstance(f, st->script_operators) : 0;
}

/* Whether a builtin function or method is torch's own, as torch.ones: with graph values among sizes
 * it could not be called. */
static bool is_torchs_builtin(PyObject *f)
{
    PyObject *module = PyCFunction_Check(f) ? ((PyCFunctionObject *)f)->m_module : NULL;
    const char *home = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    if (Py_TYPE(f) == &PyMethodDescr_Type)
        home = PyDescr_TYPE(f)->tp_name;
    else if (!home)
        PyErr_Clear();  /* a name that is no text is not torch's */
    return home && strncmp(home, "torch", 5) == 0 && (home[5] == '.' || home[5] == '\0');
}

/* Records a call of torch's function. */
static PyObject *call_torch(PyScript *w, const call *c)
{
    PyObject *args = tuple_of(c->args, c->n);
    PyObject *result = args ? record_torch(w->st, (PyObject *)w->tracer, c->f, args, c->kwargs)
                            : NULL;
    Py_XDECREF(args);
    return result;
}

static bool searches(PyObject *self, const char *name)
{
    return (PyList_Check(self) || PyTuple_Check(self)) &&
           (strcmp(name, "index") == 0 || strcmp(name, "count") == 0);
}

/* Methods of known objects: texts that graph values are put into, and lists that they are looked
 * for in, wait until the graph runs. NULL without an exception: it is called. */
static PyObject *call_bound(PyScript *w, const call *c)
{
    PyObject *self = PyCFunction_GET_SELF(c->f);
    const char *name = ((PyCFunctionObject *)c->f)->m_ml->ml_name;
    if (!self || PyModule_Check(self))
        return NULL;
    const bool search = searches(self, name);
    int found = search || PyUnicode_Check(self) ? mentions(w->st, c) : 0;
    if (found == 0 && search)
        found = mentions_graph(w->st, self);
    if (found <= 0)
        return NULL;
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject **all = PyMem_New(PyObject *, (size_t)c->n + 1);
    PyObject *result = NULL;
    if (all && text) {
        all[0] = self;
        memcpy(all + 1, c->args, (size_t)c->n * sizeof *all);
        result = script_record_method(w, text, all, c->n + 1, c->kwargs);
    } else if (!all) {
        PyErr_NoMemory();
    }
    PyMem_Free(all);
    Py_XDECREF(text);
    return result;
}

static PyObject *call_module(PyScript *w, const call *c)
{
    module_state *st = w->st;
    PyObject *args = tuple_of(c->args, c->n);
    PyObject *result = NULL;
    int leaf = args && tracer_refresh(w->tracer) == 0 ? tracer_is_leaf(w->tracer, c->f) : -1;
    if (leaf > 0 && w->tracer->overrides & STEP_call_module) {
        PyObject *forward = PyObject_GetAttr(c->f, st->str_forward);
        PyObject *const step[4] = {c->f, forward, args, c->kwargs ? c->kwargs : st->empty_dict};
        result = forward ? call_step(w->tracer, STEP_INDEX_call_module, step, 4) : NULL;
        Py_XDECREF(forward);
    } else if (leaf > 0) {
        result = tracer_call_module(w->tracer, c->f, NULL, args, c->kwargs);
    } else if (leaf == 0) {
        PyObject *job = PyTuple_Pack(4, (PyObject *)w->tracer, c->f, args,
                                     c->kwargs ? c->kwargs : st->empty_dict);
        result = job ? call_glue(st, "inline_graph", job) : NULL;
        Py_XDECREF(job);
    }
    Py_XDECREF(args);
    return result;
}

/* Asks cfx/_glue/contexts.py about a call, with the mode before its parts. */
static PyObject *ask_contexts(PyScript *w, const char *glue, PyObject *a, const call *c)
{
    PyObject *args = tuple_of(c->args, c->n);
    PyObject *job = args ? PyTuple_Pack(4, w->mode, a, args,
                                        c->kwargs ? c->kwargs : w->st->empty_dict) : NULL;
    PyObject *result = job ? call_glue(w->st, glue, job) : NULL;
    Py_XDECREF(job);
    Py_XDECREF(args);
    return result;
}

/* What `with torch.no_grad():` and its like do is recorded. NULL without an exception: it is no
 * such context. */
static PyObject *call_context(PyScript *w, const call *c)
{
    PyObject *self = PyMethod_GET_SELF(c->f);
    int found = w->st->script_contexts ? PyObject_IsInstance(self, w->st->script_contexts) : 0;
    PyObject *name = found > 0 ? PyObject_GetAttr(c->f, w->st->str_name) : NULL;
    PyObject *job = name ? PyTuple_Pack(3, w->mode, self, name) : NULL;
    PyObject *result = job ? call_glue(w->st, "script_context", job) : NULL;
    Py_XDECREF(job);
    Py_XDECREF(name);
    if (result == Py_NotImplemented)
        Py_CLEAR(result);
    return result;
}

/* Whether it is o.__enter__ of a manager that Python runs; *self is o, borrowed. */
static bool is_enter(PyObject *f, PyObject **self)
{
    if (PyMethod_Check(f)) {
        PyObject *function = PyMethod_GET_FUNCTION(f);
        *self = PyMethod_GET_SELF(f);
        return PyFunction_Check(function) &&
               PyUnicode_CompareWithASCIIString(((PyFunctionObject *)function)->func_name,
                                                "__enter__") == 0;
    }
    *self = PyCFunction_Check(f) ? PyCFunction_GET_SELF(f) : NULL;
    return *self && !PyModule_Check(*self) &&
           strcmp(((PyCFunctionObject *)f)->m_ml->ml_name, "__enter__") == 0;
}

/* What a manager sets when Python enters it, the graph would not set: then it is left again. */
static PyObject *enter_plain(PyScript *w, const call *c, PyObject *manager)
{
    PyObject *may = call_glue(w->st, "script_manager", manager);
    PyObject *result = may ? script_call_plain(w, c->f, c->args, c->n, c->kwargs) : NULL;
    PyObject *fits = result ? call_glue(w->st, "script_entered", w->mode) : NULL;
    if (result && !fits) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *left = PyObject_CallMethod(manager, "__exit__", "OOO", Py_None, Py_None, Py_None);
        PyErr_Clear();  /* why it was left is what counts */
        Py_XDECREF(left);
        PyErr_Restore(type, value, traceback);
        Py_CLEAR(result);
    }
    Py_XDECREF(fits);
    Py_XDECREF(may);
    return result;
}

/* torch.vmap and its like run a function on tensors of their own, which no graph value is. */
static int refuse_transform(PyScript *w, const call *c)
{
    PyObject *name = PyFunction_Check(c->f) && w->st->script_refused
                         ? PyDict_GetItemWithError(w->st->script_refused, PyFunction_GET_CODE(c->f))
                         : NULL;
    int found = name ? mentions(w->st, c) : PyErr_Occurred() ? -1 : 0;
    if (found > 0)
        script_refuse(w, "%S needs tensors with values, not graph values; use batched functions, "
                      "loop over the rows, or cfx.wrap the function that calls it", name);
    return found == 0 ? 0 : -1;
}

/* len(o) and its like of an object of the user's class: what its method gives. NULL without an
 * exception: it has none. */
static PyObject *call_dunder(PyScript *w, const call *c)
{
    PyObject *methods = NULL;
    PyObject *result = NULL;
    if ((PyCFunction_Check(c->f) || PyType_Check(c->f)) && c->n > 0 && c->n < 3 && !c->kwargs &&
        !is_graph_like(w->st, c->args[0]) && w->st->script_dunders &&
        PyType_HasFeature(Py_TYPE(c->args[0]), Py_TPFLAGS_HEAPTYPE))
        methods = PyDict_GetItemWithError(w->st->script_dunders, c->f);
    for (Py_ssize_t i = 0; methods && !result && i < PyTuple_GET_SIZE(methods); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(methods, i));
        result = name ? script_call_users(w, c->args[0], name, c->n > 1 ? c->args[1] : NULL) : NULL;
        if (PyErr_Occurred())
            return NULL;
    }
    if (!result || c->f != (PyObject *)&PyBool_Type || PyBool_Check(result))
        return result;
    PyObject *truth = script_call(w, c->f, &result, 1, NULL);
    Py_DECREF(result);
    return truth;
}

/* What Python's own functions do to attributes around the evaluator: -1 with an exception if they
 * may not. */
static int check_attributes(PyScript *w, const call *c)
{
    PyObject *f = c->f, *of = c->n > 0 ? c->args[0] : NULL;
    const bool slot = Py_TYPE(f) == &PyWrapperDescr_Type;
    const char *name = slot                   ? ((PyWrapperDescrObject *)f)->d_base->name
                       : PyCFunction_Check(f) ? ((PyCFunctionObject *)f)->m_ml->ml_name : "";
    PyObject *inside = NULL;
    int failed = 0;
    if (slot && c->n > 1 && PyUnicode_Check(c->args[1]) &&
        (strcmp(name, "__setattr__") == 0 || strcmp(name, "__delattr__") == 0))
        return script_may_assign(w, of, c->args[1]);
    if (c->n == 1 && PyCFunction_Check(f) && strcmp(name, "vars") == 0 && is_nn_module(w->st, of)) {
        inside = PyUnicode_InternFromString("__dict__");
        failed = inside ? script_look_inside(w, of, inside) : -1;
    }
    Py_XDECREF(inside);
    return failed;
}

/* Whether a function may be one of numpy.random, or a method of a random generator. */
static bool may_draw(PyObject *f)
{
    PyObject *self = PyMethod_Check(f)      ? PyMethod_GET_SELF(f)
                     : PyCFunction_Check(f) ? PyCFunction_GET_SELF(f) : NULL;
    const char *name = self             ? Py_TYPE(self)->tp_name
                       : PyType_Check(f) ? ((PyTypeObject *)f)->tp_name : Py_TYPE(f)->tp_name;
    return strncmp(name, "numpy.random.", 13) == 0 || (self && strcmp(name, "Random") == 0) ||
           (!self && strstr(name, "cython_function"));
}

/* Methods of what differs from call to call: random generators and os.environ. NULL without an
 * exception: it is no such method. */
static PyObject *call_changing(PyScript *w, const call *c)
{
    PyObject *self = PyMethod_Check(c->f)      ? PyMethod_GET_SELF(c->f)
                     : PyCFunction_Check(c->f) ? PyCFunction_GET_SELF(c->f) : NULL;
    PyObject *name = NULL, *result = NULL;
    if (may_draw(c->f)) {
        result = ask_contexts(w, "script_chance", c->f, c);
    } else if (self && self == w->st->script_environ) {
        name = PyObject_GetAttr(c->f, w->st->str_name);
        result = name ? ask_contexts(w, "script_environment", name, c) : NULL;
    } else if (self && w->st->script_generator &&
               (PyObject *)Py_TYPE(self) == w->st->script_generator) {
        PyObject **all = PyMem_New(PyObject *, (size_t)c->n + 1);
        name = all ? PyObject_GetAttr(c->f, w->st->str_name) : PyErr_NoMemory();
        if (name) {
            all[0] = self;
            memcpy(all + 1, c->args, (size_t)c->n * sizeof *all);
            result = script_record_method(w, name, all, c->n + 1, c->kwargs);
        }
        PyMem_Free(all);
    }
    Py_XDECREF(name);
    if (result == Py_NotImplemented)
        Py_CLEAR(result);
    return result;
}

static PyObject *call_direct(PyScript *w, call *c)
{
    module_state *st = w->st;
    bool for_all = false;
    PyObject *wrapped = wrapped_function(st, c->f, &for_all);
    PyObject *result = NULL;
    if (is_proxy(st, c->f)) {  /* a method of a graph value: its call records it */
        PyObject *args = tuple_of(c->args, c->n);
        result = args ? PyObject_Call(c->f, args, c->kwargs) : NULL;
        Py_XDECREF(args);
        return result;
    }
    c->f = wrapped ? wrapped : c->f;
    result = call_dunder(w, c);
    if (result || PyErr_Occurred())
        return result;
    long rule = record_rule_of(st, c->f);
    if (rule == CFX_RULE_NEVER && ((wrapped && for_all) || is_operator(st, c->f) > 0))
        rule = CFX_RULE_ALWAYS;
    if (rule == RULE_MODE)
        return ask_contexts(w, "script_mode", c->f, c);
    if (rule == RULE_ASKED) {
        result = ask_contexts(w, "script_asked", c->f, c);
        if (result != Py_NotImplemented)
            return result;
        Py_CLEAR(result);
        rule = CFX_RULE_NEVER;
    }
    if (rule == RULE_REFUSED || (rule == RULE_REFUSED_OF_GRAPH && takes_graph(st, c, false)))
        return call_glue(st, "script_refused_call", c->f);
    if (rule == CFX_RULE_NEVER && !wrapped &&
        ((result = call_changing(w, c)) != NULL || PyErr_Occurred()))
        return result;
    int record = is_recorded(st, rule, c);
    if (record > 0 && wrapped && for_all && tracer_note_wrapped(w->tracer, c->f) < 0)
        return NULL;
    if (record != 0)
        return record < 0 ? NULL : script_record(w, c->f, c->args, c->n, c->kwargs);
    if (is_nn_module(st, c->f))
        return call_module(w, c);
    if (c->f == st->script_set_grad)
        return ask_contexts(w, "script_set_grad_enabled", c->f, c);
    if (is_torchs_builtin(c->f) && (record = mentions(st, c)) != 0)
        return record < 0 ? NULL : call_torch(w, c);
    if (PyCFunction_Check(c->f))
        result = call_bound(w, c);
    else if (PyMethod_Check(c->f))
        result = call_context(w, c);
    if (result || PyErr_Occurred() || refuse_transform(w, c) < 0 || check_attributes(w, c) < 0)
        return result;
    PyObject *manager;
    if (is_enter(c->f, &manager))
        return enter_plain(w, c, manager);
    return script_call_plain(w, c->f, c->args, c->n, c->kwargs);
}

/* The named arguments as a dict; NULL if there are none, or with an exception. */
static PyObject *named_args(cfx_call_args args)
{
    size_t first = args.n - args.n_named;
    PyObject *dict = args.n_named ? PyDict_New() : NULL;
    for (size_t i = 0; dict && i < args.n_named; i++)
        if (PyDict_SetItemString(dict, args.names[i], py(args.args[first + i])) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* Whether it is vars(o). */
static bool gives_attributes(PyObject *f, PyObject *o)
{
    return PyCFunction_Check(f) && strcmp(((PyCFunctionObject *)f)->m_ml->ml_name, "vars") == 0 &&
           !PyDict_Check(o);
}

cfx_object *script_world_call(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *kwargs = named_args(args);
    call c = {py(f), (PyObject *const *)args.args, (Py_ssize_t)(args.n - args.n_named), kwargs};
    PyObject *result = NULL;
    if (kwargs || args.n_named == 0)
        result = call_direct(w, &c);
    if (result && c.n == 1 && PyDict_CheckExact(result) && gives_attributes(py(f), c.args[0]) &&
        script_note_space(w, c.args[0], result) < 0)
        Py_CLEAR(result);
    Py_XDECREF(kwargs);
    return script_result(w, result, err);
}

/* ---- by way of the evaluator --------------------------------------------------------------- */

PyObject *script_call(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                      PyObject *kwargs)
{
    Py_ssize_t named = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
    cfx_object **all = PyMem_New(cfx_object *, (size_t)(n + named) + 1);
    const char **names = PyMem_New(const char *, (size_t)named + 1);
    cfx_error err = {0};
    PyObject *key, *value;
    PyObject *result = NULL;
    Py_ssize_t at = 0;
    Py_ssize_t i = 0;
    if (!all || !names)
        PyErr_NoMemory();
    for (; all && names && i < n; i++)
        all[i] = object(args[i]);
    for (; all && names && kwargs && PyDict_Next(kwargs, &at, &key, &value); i++) {
        names[i - n] = PyUnicode_AsUTF8(key);
        all[i] = object(value);
    }
    if (!PyErr_Occurred()) {
        cfx_call_args call_args = {all, (size_t)(n + named), names, (size_t)named};
        result = py(cfx_evaluator_call(w->ev, object(f), call_args, &err));
        if (!result)
            script_raise(w, &err);
    }
    PyMem_Free(all);
    PyMem_Free(names);
    return result;
}
