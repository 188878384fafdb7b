/* script_raise.c - the world of scripts: exceptions, and how an evaluation that failed is told. */
#include "scripting.h"

#include <cfx/embed/script.h>

/* ---- exceptions on their way --------------------------------------------------------------- */

/* The exception that is set, normalized and with its traceback: a new reference, or NULL. */
static PyObject *take_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && value)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

static void set_exception(PyObject *exception)
{
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
}

cfx_status script_failed(PyScript *w, cfx_error *err)
{
    PyObject *exception = take_exception();
    PyObject *text = exception ? PyObject_Str(exception) : NULL;
    const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
    const bool refused =
        exception && ((w->refused && (PyObject *)Py_TYPE(exception) == PyExc_NotImplementedError) ||
                      (PyObject *)Py_TYPE(exception) == w->st->script_refusal);
    PyErr_Clear();  /* an exception without a text has none to show */
    w->refused = false;  /* whoever swallowed it went on without */
    if (refused) {
        cfx_status status = cfx_error_set(err, CFX_E_UNSUPPORTED, "%s", message ? message : "");
        Py_XDECREF(text);
        Py_XDECREF(exception);
        return status;
    }
    cfx_error_set(err, CFX_E_HOST, "%s%s%s",
                  exception ? Py_TYPE(exception)->tp_name : "an exception was raised",
                  message && *message ? ": " : "", message ? message : "");
    Py_XDECREF(text);
    Py_XSETREF(w->pending, exception);
    return CFX_E_HOST;
}

PyObject *script_refuse(PyScript *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(PyExc_NotImplementedError, format, args);
    va_end(args);
    w->refused = true;
    return NULL;
}

bool script_refuses_text(PyScript *w)
{
    if (!w || w->in_text == 0)
        return false;
    script_refuse(w, "cannot convert this object to text: it holds a graph value; format its "
                  "values instead: f\"{o.x}\"");
    return true;
}

Py_hash_t script_refuse_key(PyScript *w)
{
    script_refuse(w, "a graph value cannot be a key of a dict or an item of a set: its value is "
                  "not known during capture; use a list of pairs and compare (==), index a tensor, "
                  "or use a tuple with `in`");
    return -1;
}

cfx_object *script_result(PyScript *w, PyObject *o, cfx_error *err)
{
    if (!o)
        script_failed(w, err);
    return object(o);
}

/* ---- entries ------------------------------------------------------------------------------- */

/* An exception that is raised: an instance of a class, or itself. */
static PyObject *instance_of(PyObject *exc)
{
    if (PyExceptionClass_Check(exc))
        exc = PyObject_CallNoArgs(exc);
    else
        Py_INCREF(exc);
    if (exc && !PyExceptionInstance_Check(exc)) {
        PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
        Py_CLEAR(exc);
    }
    return exc;
}

static cfx_status world_raise(void *ctx, cfx_object *exc, cfx_object *cause, cfx_error *err)
{
    PyObject *instance = instance_of(py(exc));
    PyObject *reason = NULL;
    if (instance && cause && py(cause) != Py_None && !(reason = instance_of(py(cause))))
        Py_CLEAR(instance);
    if (instance) {
        if (cause)
            PyException_SetCause(instance, reason);
        set_exception(instance);
        Py_DECREF(instance);
    }
    return script_failed(ctx, err);
}

static cfx_object *world_caught(void *ctx)
{
    PyScript *w = ctx;
    PyObject *pending = w->pending;
    w->pending = NULL;
    if (!pending)
        pending = take_exception();  /* of a graph's host, which knows no world */
    return object(pending);
}

static int world_matches(void *ctx, cfx_object *exc, cfx_object *classes, cfx_error *err)
{
    PyObject *c = py(classes);
    bool fit = PyExceptionClass_Check(c);
    if (PyTuple_Check(c)) {
        fit = true;
        for (Py_ssize_t i = 0; fit && i < PyTuple_GET_SIZE(c); i++)
            fit = PyExceptionClass_Check(PyTuple_GET_ITEM(c, i));
    }
    if (!fit) {
        PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException "
                                         "is not allowed");
        script_failed(ctx, err);
        return -1;
    }
    return PyErr_GivenExceptionMatches(py(exc), c);
}

/* Whether functions of Python's or PyTorch's may raise it. */
static bool is_librarys(PyObject *class)
{
    if (!PyType_HasFeature((PyTypeObject *)class, Py_TPFLAGS_HEAPTYPE))
        return true;
    PyObject *module = PyObject_GetAttrString(class, "__module__");
    const char *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    const bool is = name && strncmp(name, "torch", 5) == 0;
    PyErr_Clear();  /* a class without a module is the user's */
    Py_XDECREF(module);
    return is;
}

static int would_catch(PyObject *class, PyObject *raised, bool users)
{
    if (!PyExceptionClass_Check(class))
        return 1;  /* Python would complain, but only then */
    int catches = PyObject_IsSubclass(raised, class);
    if (catches == 0 && (users || is_librarys(class)))
        catches = PyObject_IsSubclass(class, raised);
    return catches;
}

static int world_would_catch(void *ctx, cfx_object *classes, const char *name, bool users,
                             cfx_error *err)
{
    PyObject *c = py(classes);
    PyObject *raised = PyDict_GetItemString(PyEval_GetBuiltins(), name);
    const Py_ssize_t n = PyTuple_Check(c) ? PyTuple_GET_SIZE(c) : 1;
    int catches = 0;
    for (Py_ssize_t i = 0; raised && catches == 0 && i < n; i++)
        catches = would_catch(PyTuple_Check(c) ? PyTuple_GET_ITEM(c, i) : c, raised, users);
    if (catches < 0)
        script_failed(ctx, err);
    return catches;
}

static int world_manager_catches(void *ctx, cfx_object *manager, cfx_object **classes,
                                 cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *answer = call_glue(w->st, "script_catches", py(manager));
    if (!answer) {
        script_failed(w, err);
        return -1;
    }
    const int any = answer == Py_True;
    *classes = PyTuple_Check(answer) ? object(Py_NewRef(answer)) : NULL;
    Py_DECREF(answer);
    return any;
}

/* The first class of its ancestors that is Python's own. */
static const char *builtin_name(PyTypeObject *type)
{
    PyObject *builtins = PyEval_GetBuiltins();
    for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        if (PyDict_GetItemString(builtins, base->tp_name) == (PyObject *)base)
            return base->tp_name;
    }
    return "Exception";
}

/* What an exception says, as cfx.fail takes it: nothing, its only argument, or all as a tuple. */
static PyObject *message_of(PyObject *exc)
{
    if (PyType_Check(exc))
        Py_RETURN_NONE;
    PyObject *args = PyObject_GetAttrString(exc, "args");
    Py_ssize_t n = args && PyTuple_Check(args) ? PyTuple_GET_SIZE(args) : 0;
    if (n == 0)
        Py_XSETREF(args, args ? Py_NewRef(Py_None) : NULL);
    else if (n == 1 && !PyTuple_Check(PyTuple_GET_ITEM(args, 0)))
        Py_SETREF(args, Py_NewRef(PyTuple_GET_ITEM(args, 0)));
    return args;
}

static cfx_status world_explain(void *ctx, cfx_object *exc, const char **kind,
                                cfx_object **message, cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *text = message_of(py(exc));
    if (!text)
        return script_failed(w, err);
    Py_XSETREF(w->message, text);
    *kind = builtin_name(PyType_Check(py(exc)) ? (PyTypeObject *)exc : Py_TYPE(py(exc)));
    *message = object(text);
    return CFX_OK;
}

static cfx_status world_interrupted(void *ctx, cfx_error *err)
{
    return PyErr_CheckSignals() < 0 ? script_failed(ctx, err) : CFX_OK;
}

void script_raise_entries(cfx_world *world)
{
    world->raise = world_raise;
    world->caught = world_caught;
    world->matches = world_matches;
    world->would_catch = world_would_catch;
    world->manager_catches = world_manager_catches;
    world->explain = world_explain;
    world->interrupted = world_interrupted;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* [(file, line, column, function), ...] of the calls in which it was raised, innermost first. */
static PyObject *places_of(const PyScript *w)
{
    cfx_script_location place;
    PyObject *places = PyList_New(0);
    for (size_t i = 0; places && w->ev && cfx_evaluator_where(w->ev, i, &place); i++) {
        PyObject *row = Py_BuildValue("(sIIs)", place.file, place.line, place.column,
                                      place.function);
        if (!row || PyList_Append(places, row) < 0)
            Py_CLEAR(places);
        Py_XDECREF(row);
    }
    return places;
}

/* Gives an exception a note that says where in the program it was raised. */
static void note_place(PyScript *w, PyObject *exception)
{
    PyObject *places = places_of(w);
    PyObject *job = places ? PyTuple_Pack(2, exception, places) : NULL;
    PyObject *done = job ? call_glue(w->st, "script_note", job) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(job);
    Py_XDECREF(places);
    PyErr_Clear();  /* the exception itself is what counts */
}

PyObject *script_raise_error(module_state *st, const cfx_error *err)
{
    if (err->status == CFX_E_NOMEM)
        return PyErr_NoMemory();
    PyObject *message = str_from_utf8(err->message, strlen(err->message));
    PyObject *job = message ? Py_BuildValue("(zNII)", cfx_status_exception(err->status), message,
                                            err->line, err->column) : NULL;
    PyObject *never = job ? call_glue(st, "script_error", job) : NULL;
    Py_XDECREF(never);
    Py_XDECREF(job);
    return NULL;
}

PyObject *script_raise(PyScript *w, const cfx_error *err)
{
    PyObject *exception = py(world_caught(w));
    if (err->status == CFX_E_HOST && exception) {
        note_place(w, exception);
        set_exception(exception);
        Py_DECREF(exception);
        return NULL;
    }
    Py_XDECREF(exception);  /* it was caught by what failed afterwards */
    return script_raise_error(w->st, err);
}
