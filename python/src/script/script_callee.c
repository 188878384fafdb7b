/* script_callee.c - the world of scripts: how an object is called.
 *
 * What the user has written is evaluated from its source: functions, methods, classes, modules.
 * What is torch's, Python's or has no source is called by the world (script_call.c).
 */
#include "scripting.h"

/* Hands an object over to the evaluation, which keeps it to its end: borrowed; NULL with an
 * exception. Steals `o`, which may be NULL. */
static PyObject *keep(PyScript *w, PyObject *o)
{
    int failed = o ? PyList_Append(w->kept, o) : -1;
    Py_XDECREF(o);
    return failed ? NULL : o;
}

/* Memory for n pointers that lasts as long as the evaluation; NULL with an exception. */
static void *keep_room(PyScript *w, size_t n)
{
    PyObject *room = keep(w, PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((n + 1) *
                                                                         sizeof(void *))));
    return room ? PyBytes_AS_STRING(room) : NULL;
}

PyObject *users_method(PyScript *w, PyTypeObject *type, PyObject *name)
{
    PyObject *found = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? class_lookup(type, name)
                                                                   : NULL;
    if (found && script_function_of(w, found))
        return found;
    return found && PyFunction_Check(found) && script_def(w, found, NULL) ? found : NULL;
}

/* ---- functions ----------------------------------------------------------------------------- */

static int fill_free(PyScript *w, PyObject *function, cfx_script_callee *out)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    PyObject *closure = PyFunction_GET_CLOSURE(function);
    Py_ssize_t n = closure ? PyTuple_GET_SIZE(closure) : 0;
    PyObject *names = n ? keep(w, PyCode_GetFreevars(code)) : NULL;
    const char **texts = names ? keep_room(w, (size_t)n) : NULL;
    cfx_object **values = texts ? keep_room(w, (size_t)n) : NULL;
    if (n == 0)
        return 0;
    for (Py_ssize_t i = 0; values && i < n; i++) {
        PyObject *value = Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(closure, i)));
        texts[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (!texts[i] || (value && (!script_found(w, value) || !keep(w, value))))
            return -1;
        values[i] = object(value);
    }
    out->n_free = (size_t)n;
    out->free_names = texts;
    out->free_values = values;
    return values ? 0 : -1;
}

static int fill_source(PyScript *w, PyObject *function, const cfx_script_def *def,
                       cfx_script_callee *out)
{
    PyFunctionObject *f = (PyFunctionObject *)function;
    out->kind = CFX_CALLEE_SOURCE;
    out->def = def;
    out->globals = object(f->func_globals);
    if (script_note_globals(w, f->func_globals) < 0)
        return -1;
    out->defaults = object(f->func_defaults);
    out->kw_defaults = object(f->func_kwdefaults);
    if ((f->func_defaults && script_note(w, f->func_defaults) < 0) ||
        (f->func_kwdefaults && script_note(w, f->func_kwdefaults) < 0))
        return -1;
    return fill_free(w, function, out);
}

static int fill(PyScript *w, PyObject *f, cfx_script_callee *out, cfx_error *err);

/* `function` with `parts` before its arguments. */
static int fill_partial(PyScript *w, PyObject *function, PyObject *parts, PyObject *named,
                        cfx_script_callee *out)
{
    if (!keep(w, Py_NewRef(parts)) || !keep(w, Py_NewRef(function)))
        return -1;
    out->kind = CFX_CALLEE_PARTIAL;
    out->function = object(function);
    out->parts = (cfx_object *const *)((PyTupleObject *)parts)->ob_item;
    out->n_parts = (size_t)PyTuple_GET_SIZE(parts);
    out->named = named ? object(keep(w, Py_NewRef(named))) : NULL;
    return 0;
}

/* What is called by a helper that has a source, as cfx/_glue/scripting.py says: a function that
 * torch.no_grad() and its like made of one of the user's, or a dataclass. 1 if it is one, 0, or -1
 * with an exception. */
static int fill_helped(PyScript *w, const char *how, PyObject *function, cfx_script_callee *out)
{
    PyObject *parts = call_glue(w->st, how, function);  /* None, or (helper, ...) */
    int found = !parts ? -1 : parts != Py_None;
    if (found > 0) {
        PyObject *rest = PyTuple_GetSlice(parts, 1, PyTuple_GET_SIZE(parts));
        if (!rest || fill_partial(w, PyTuple_GET_ITEM(parts, 0), rest, NULL, out) < 0)
            found = -1;
        Py_XDECREF(rest);
    }
    Py_XDECREF(parts);
    return found;
}

static int fill_function(PyScript *w, PyObject *f, cfx_script_callee *out, cfx_error *err)
{
    const cfx_script_def *def = script_def(w, f, err);
    if (def)
        return fill_source(w, f, def, out);
    if (PyErr_Occurred() || err->status != CFX_OK)
        return -1;
    if (!PyFunction_GET_CLOSURE(f))
        return 0;
    return fill_helped(w, "script_decorated", f, out) < 0 ? -1 : 0;
}

static int fill_method(PyScript *w, PyObject *method, cfx_script_callee *out, cfx_error *err)
{
    PyObject *function = PyMethod_GET_FUNCTION(method);
    if (fill(w, function, out, err) < 0)
        return -1;
    PyObject *self = PyMethod_GET_SELF(method);
    switch (out->kind) {
    case CFX_CALLEE_OWN:
    case CFX_CALLEE_SOURCE:
        out->self = object(self);
        return 0;
    case CFX_CALLEE_PARTIAL: {
        PyObject *first = PyTuple_Pack(1, self);
        PyObject *parts = tuple_of((PyObject *const *)out->parts, (Py_ssize_t)out->n_parts);
        PyObject *all = first && parts ? PySequence_Concat(parts, first) : NULL;
        int failed = all ? fill_partial(w, py(out->function), all, py(out->named), out) : -1;
        Py_XDECREF(all);
        Py_XDECREF(parts);
        Py_XDECREF(first);
        return failed;
    }
    default:
        *out = (cfx_script_callee){.kind = CFX_CALLEE_DIRECT};
        return 0;
    }
}

/* ---- classes and modules ------------------------------------------------------------------- */

/* A dataclass whose __post_init__ is the user's: that is evaluated, not the __init__ before it. */
static int fill_dataclass(PyScript *w, PyTypeObject *type, cfx_script_callee *out)
{
    PyObject *name = PyUnicode_InternFromString("__post_init__");
    PyObject *found = name ? users_method(w, type, name) : NULL;
    Py_XDECREF(name);
    if (!found)
        return PyErr_Occurred() ? -1 : 0;
    return fill_helped(w, "script_dataclass", (PyObject *)type, out) < 0 ? -1 : 0;
}

/* A class whose __new__, or whose metaclass's __call__, is the user's: those are evaluated, as they
 * may change what outlives the call. 1 if it is one, 0, or -1 with an exception. */
static int fill_made(PyScript *w, PyObject *f, PyObject *meta_call, cfx_script_callee *out)
{
    if (PyFunction_Check(meta_call)) {
        PyObject *first = script_def(w, meta_call, NULL) ? PyTuple_Pack(1, f) : NULL;
        int failed = first ? fill_partial(w, meta_call, first, NULL, out) : 0;
        Py_XDECREF(first);
        return failed || PyErr_Occurred() ? -1 : first != NULL;
    }
    PyObject *new = keep(w, PyObject_GetAttrString(f, "__new__"));
    if (!new || !PyFunction_Check(new) || !script_def(w, new, NULL)) {
        PyErr_Clear();  /* it is made as it is */
        return 0;
    }
    return fill_helped(w, "script_new", f, out);
}

/* A class that is made by object.__new__, with an __init__ of the user's: that is evaluated. */
static int fill_class(PyScript *w, PyObject *f, cfx_script_callee *out)
{
    PyTypeObject *type = (PyTypeObject *)f;
    PyObject *meta_call = class_lookup(Py_TYPE(f), w->st->str_call);
    const bool own = !PyType_IsSubtype(type, (PyTypeObject *)w->st->module_class);
    bool plain = own && type->tp_new == PyBaseObject_Type.tp_new && !PyFunction_Check(meta_call);
    if (own && !plain && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
        return fill_made(w, f, meta_call, out) < 0 ? -1 : 0;
    PyObject *name = plain ? PyUnicode_InternFromString("__init__") : NULL;
    PyObject *init = name ? users_method(w, type, name) : NULL;
    Py_XDECREF(name);
    if (!init && plain && !PyErr_Occurred())
        return fill_dataclass(w, type, out);
    if (!init)
        return PyErr_Occurred() ? -1 : 0;
    out->kind = CFX_CALLEE_CLASS;
    out->function = object(init);
    return 0;
}

static bool has_entries(PyObject *module, const char *name)
{
    PyObject *dict = PyObject_GetAttrString(module, name);
    bool some = dict && PyDict_Check(dict) && PyDict_GET_SIZE(dict) > 0;
    Py_XDECREF(dict);
    PyErr_Clear();  /* a module whose __init__ was not called has none */
    return some;
}

/* A chain of modules: those of a Sequential. */
static int fill_chain(PyScript *w, PyObject *module, cfx_script_callee *out)
{
    PyObject *children = PyObject_GetAttr(module, w->st->str_modules);
    PyObject *values = children && PyDict_Check(children) ? PyDict_Values(children) : NULL;
    PyObject *parts = values ? keep(w, PyList_AsTuple(values)) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(children);
    if (!parts)
        return -1;
    out->kind = CFX_CALLEE_CHAIN;
    out->parts = (cfx_object *const *)((PyTupleObject *)parts)->ob_item;
    out->n_parts = (size_t)PyTuple_GET_SIZE(parts);
    return 0;
}

static int refuse_graph(PyScript *w, PyObject *module)
{
    script_refuse(w, "this %s, or a module in it, has attributes that were assigned to, but its "
                  "graph is copied as it is; assign before it is captured, or capture the original "
                  "module", Py_TYPE(module)->tp_name);
    return -1;
}

static int fill_module(PyScript *w, PyObject *module, cfx_script_callee *out)
{
    module_state *st = w->st;
    int leaf = tracer_refresh(w->tracer) < 0 ? -1 : tracer_is_leaf(w->tracer, module);
    int changed = leaf < 0 ? -1 : script_is_changed(w, module);
    const bool graph = st->graph_module_class &&
                       PyObject_TypeCheck(module, (PyTypeObject *)st->graph_module_class);
    if (graph && changed > 0)
        return refuse_graph(w, module);
    if (leaf < 0 || changed < 0 || ((leaf || graph) && !changed))
        return leaf < 0 || changed < 0 ? -1 : 0;  /* script_call.c records it, or its graph */
    bool plainly = w->calling == module;  /* its own __call__ has called nn.Module's */
    PyObject *call = plainly ? NULL : users_method(w, Py_TYPE(module), st->str_call);
    w->calling = NULL;
    if (call) {
        out->self = object(module);
        return fill_source(w, call, script_def(w, call, NULL), out);
    }
    if (PyErr_Occurred())
        return -1;
    bool hooked = has_entries(module, "_forward_hooks") ||
                  has_entries(module, "_forward_pre_hooks");
    if ((PyObject *)Py_TYPE(module) == st->sequential && !hooked)
        return fill_chain(w, module, out);
    PyObject *forward = NULL;
    if (hooked)  /* a helper that calls them has a source: cfx/_glue/scripting.py */
        forward = call_glue(st, "script_hooked", module);
    else
        forward = PyObject_GetAttr(module, st->str_forward);
    forward = keep(w, forward);
    out->kind = CFX_CALLEE_MODULE;
    out->function = object(forward);
    return forward ? 0 : -1;
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Whether the function stands in the list of those that the evaluator carries out itself. */
static int fill_special(PyScript *w, PyObject *f, cfx_script_callee *out)
{
    PyObject *number = NULL;
    if (w->st->script_specials && Py_TYPE(f)->tp_hash != PyObject_HashNotImplemented &&
        (PyCFunction_Check(f) || PyType_Check(f) || PyFunction_Check(f)))
        number = PyDict_GetItemWithError(w->st->script_specials, f);
    if (!number)
        return PyErr_Occurred() ? -1 : 0;
    out->kind = CFX_CALLEE_SPECIAL;
    out->special = (cfx_script_special)PyLong_AsLong(number);
    return 1;
}

/* functools.partial and functools.lru_cache, by the names of their classes. */
static int fill_functools(PyScript *w, PyObject *f, cfx_script_callee *out)
{
    const char *type = Py_TYPE(f)->tp_name;
    if (strcmp(type, "functools.partial") == 0) {
        PyObject *function = PyObject_GetAttrString(f, "func");
        PyObject *args = function ? PyObject_GetAttrString(f, "args") : NULL;
        PyObject *named = args ? PyObject_GetAttrString(f, "keywords") : NULL;
        int failed = named && PyTuple_Check(args) ? fill_partial(w, function, args, named, out)
                                                  : -1;
        Py_XDECREF(named);
        Py_XDECREF(args);
        Py_XDECREF(function);
        return failed;
    }
    if (strcmp(type, "functools._lru_cache_wrapper") != 0)
        return 0;
    PyObject *function = keep(w, PyObject_GetAttrString(f, "__wrapped__"));
    PyObject *parts = function ? script_cached(w, f, function) : NULL;
    PyObject *rest = parts ? PyTuple_GetSlice(parts, 1, PyTuple_GET_SIZE(parts)) : NULL;
    int failed = rest ? fill_partial(w, PyTuple_GET_ITEM(parts, 0), rest, NULL, out) : -1;
    Py_XDECREF(rest);
    Py_XDECREF(parts);
    return failed;
}

/* An object of the user's with a __call__ that has a source. */
static int fill_callable(PyScript *w, PyObject *f, cfx_script_callee *out, cfx_error *err)
{
    PyObject *method = is_instance(w->st, f) ? users_method(w, Py_TYPE(f), w->st->str_call) : NULL;
    if (!method)
        return PyErr_Occurred() ? -1 : fill_functools(w, f, out);
    if (fill(w, method, out, err) < 0)
        return -1;
    out->self = object(f);
    return 0;
}

/* A helper with a source that is evaluated instead of f; borrowed. The table has functions, and
 * names of modules, for functions that are known by name alone. */
static PyObject *replacement(PyObject *table, PyObject *f)
{
    PyObject *found = PyDict_GetItemWithError(table, f), *module = PyFunction_GET_MODULE(f);
    if (found || PyErr_Occurred() || !module)
        return found;
    PyObject *by_name = PyDict_GetItemWithError(table, module);
    return by_name ? PyDict_GetItemWithError(by_name, ((PyFunctionObject *)f)->func_name) : NULL;
}

static int fill(PyScript *w, PyObject *f, cfx_script_callee *out, cfx_error *err)
{
    bool for_all = false;
    PyObject *wrapped = wrapped_function(w->st, f, &for_all);
    *out = (cfx_script_callee){.kind = CFX_CALLEE_DIRECT};
    if (wrapped && for_all)
        return 0;
    f = wrapped ? wrapped : f;
    if (PyFunction_Check(f) && w->st->script_replaced) {
        PyObject *other = replacement(w->st->script_replaced, f);
        if (!other && PyErr_Occurred())
            return -1;
        f = other ? other : f;
    }
    int special = is_proxy(w->st, f) ? 0 : fill_special(w, f, out);
    if (special != 0 || is_proxy(w->st, f))
        return special < 0 ? -1 : 0;
    cfx_script_function *own = script_function_of(w, f);
    if (own) {
        out->kind = CFX_CALLEE_OWN;
        out->own = own;
        return 0;
    }
    if (PyFunction_Check(f))
        return fill_function(w, f, out, err);
    if (PyMethod_Check(f))
        return fill_method(w, f, out, err);
    if (PyType_Check(f))
        return fill_class(w, f, out);
    if (is_nn_module(w->st, f))
        return fill_module(w, f, out);
    if (!PyCFunction_Check(f))
        return fill_callable(w, f, out, err);
    PyObject *self = PyCFunction_GET_SELF(f);
    out->self = self && (is_mutable(self) || is_deque(self)) ? object(self) : NULL;
    return 0;
}

cfx_status script_callee(void *ctx, cfx_object *f, cfx_script_callee *out, cfx_error *err)
{
    PyScript *w = ctx;
    cfx_error own = {0};
    if (fill(w, py(f), out, &own) == 0)
        return CFX_OK;
    if (PyErr_Occurred())
        return script_failed(w, err);
    if (err)
        *err = own;
    return own.status;
}
