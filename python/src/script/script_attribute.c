/* script_attribute.c - the world of scripts: attributes, names, classes.
 *
 * Attributes of modules are read around nn.Module's own __getattr__, which is hooked: a parameter
 * stays itself here. Those that the program assigns to modules are kept aside.
 */
#include "scripting.h"

/* ---- what was there before ----------------------------------------------------------------- */

static int note_items(PyScript *w, PyObject *o)
{
    PyObject *items = PyDict_Check(o) ? PyDict_Values(o) : PySequence_List(o);
    int failed = items ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(items); i++)
        failed = script_note(w, PyList_GET_ITEM(items, i));
    Py_XDECREF(items);
    return failed;
}

/* Whether attributes of some other object may be set: one with __slots__, a SimpleNamespace, what
 * functools makes. */
static bool has_attributes(const module_state *st, PyObject *o)
{
    return (has_dict(o) || PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE)) &&
           !PyType_Check(o) && !PyModule_Check(o) && !is_nn_module(st, o) && !is_graph_like(st, o);
}

int script_note(PyScript *w, PyObject *o)
{
    bool container = is_mutable(o) || PyTuple_Check(o) || is_deque(o);
    PyObject *owner = o;
    if (!container && script_change(w, &owner) == CFX_CHANGE_NEVER && !has_attributes(w->st, o))
        return 0;
    if (!PyTuple_Check(o)) {
        PyObject *id = PyLong_FromVoidPtr(owner);
        int known = id ? PyDict_Contains(w->outside, id) : -1;
        if (known == 0)
            known = PyDict_SetItem(w->outside, id, owner);
        else if (known > 0)
            container = false;  /* what is in it was noted then */
        Py_XDECREF(id);
        if (known < 0)
            return -1;
    }
    if (!container)
        return 0;
    if (enter_nested(" while looking at containers"))
        return -1;
    int failed = note_items(w, o);
    leave_nested();
    return failed;
}

PyObject *script_found(PyScript *w, PyObject *o)
{
    if (o && script_note(w, o) < 0)
        Py_CLEAR(o);
    return o;
}

int script_is_outside(PyScript *w, PyObject *o)
{
    PyObject *id = PyLong_FromVoidPtr(o);
    int found = id ? PyDict_Contains(w->outside, id) : -1;
    Py_XDECREF(id);
    return found;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* `x.name` of a graph value. A method that is called at once is not read first, nor is one of
 * tensors that is called later. */
static PyObject *get_symbolic(PyScript *w, PyObject *proxy, PyObject *name, bool called)
{
    PyObject *attribute = attribute_new(w->st, proxy, name);
    int lazy = called;
    if (attribute && !called)
        lazy = w->st->script_methods ? PySet_Contains(w->st->script_methods, name) : 0;
    if (!attribute || lazy > 0)
        return attribute;
    PyObject *node = lazy < 0 ? NULL : PyObject_GetAttr(attribute, w->st->str_node);
    PyObject *result = node ? tracer_proxy(w->tracer, node) : NULL;
    Py_XDECREF(node);
    Py_DECREF(attribute);
    return result;
}

/* A tensor of the program knows what never changes; for all else it becomes a graph value. */
static PyObject *get_of_tensor(PyScript *w, PyObject *tensor, PyObject *name, bool called)
{
    const char *text = PyUnicode_AsUTF8(name);
    const bool grad = text && (strcmp(text, "requires_grad") == 0 || strcmp(text, "is_leaf") == 0);
    if (!text || (strcmp(text, "requires_grad_") == 0 && script_change_grad(w) < 0))
        return NULL;
    int fact = !w->st->script_facts || (grad && w->grad_changed)
                   ? 0 : PySet_Contains(w->st->script_facts, name);
    w->grad_read = w->grad_read || (grad && fact > 0);
    PyObject *dict = fact == 0 ? instance_dict(tensor) : NULL;
    if (dict)
        fact = PyDict_Contains(dict, name);
    if (fact != 0)
        return fact < 0 ? NULL : PyObject_GetAttr(tensor, name);
    PyObject *proxy = script_read(w, tensor);
    PyObject *result = proxy ? get_symbolic(w, proxy, name, called) : NULL;
    Py_XDECREF(proxy);
    return result;
}

static PyObject *get_cached(PyScript *w, PyObject *o, PyObject *descriptor, PyObject *function)
{
    PyObject *parts = script_cached(w, descriptor, function);
    PyObject *result = NULL;
    if (parts) {
        PyObject *const args[4] = {PyTuple_GET_ITEM(parts, 1), descriptor, function, o};
        result = script_call(w, PyTuple_GET_ITEM(parts, 0), args, 4, NULL);
    }
    Py_XDECREF(parts);
    return result;
}

/* What a descriptor of the user's class gives, by way of the evaluator: a property, a cached one, a
 * class with __get__. NULL without an exception if it is none of these. */
static PyObject *get_by_descriptor(PyScript *w, PyObject *o, PyObject *descriptor)
{
    PyTypeObject *type = Py_TYPE(descriptor);
    const char *part = PyObject_TypeCheck(descriptor, &PyProperty_Type) ? "fget"
                       : strcmp(type->tp_name, "cached_property") == 0 ? "func" : NULL;
    if (part) {
        PyObject *function = PyObject_GetAttrString(descriptor, part);
        bool users = function && PyFunction_Check(function) && script_def(w, function, NULL);
        PyObject *result = !users ? NULL
                           : strcmp(part, "func") == 0 ? get_cached(w, o, descriptor, function)
                                                       : script_call(w, function, &o, 1, NULL);
        Py_XDECREF(function);
        return result;
    }
    if (!type->tp_descr_get || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
        return NULL;
    PyObject *method = users_method(w, type, w->st->str_get);
    PyObject *const args[3] = {descriptor, o, (PyObject *)Py_TYPE(o)};
    return method ? script_call(w, method, args, 3, NULL) : NULL;
}

PyObject *script_own_entry(PyScript *w, PyObject *o, PyObject *name)
{
    module_state *st = w->st;
    PyObject *dict = instance_dict(o);
    PyObject *value = dict ? PyDict_GetItemWithError(dict, name) : NULL;
    if (value || PyErr_Occurred() || !is_nn_module(st, o))
        return value;
    value = module_entry(o, st->str_parameters, name);
    if (!value && !PyErr_Occurred())
        value = module_entry(o, st->str_buffers, name);
    if (!value && !PyErr_Occurred())
        value = module_entry(o, st->str_modules, name);
    return value;
}

/* The user's __getattr__, or Python's own way. */
static PyObject *get_missing(PyScript *w, PyObject *o, PyObject *name)
{
    PyObject *method = users_method(w, Py_TYPE(o), w->st->str_getattr);
    PyObject *const args[2] = {o, name};
    if (method)
        return script_call(w, method, args, 2, NULL);
    return PyErr_Occurred() ? NULL : PyObject_GetAttr(o, name);
}

/* As object.__getattribute__ looks for it. */
static PyObject *get_of_instance(PyScript *w, PyObject *o, PyObject *name)
{
    PyObject *value = script_aside(w, o, name);
    if (value && value != Py_Ellipsis)
        return Py_NewRef(value);
    if (PyErr_Occurred())
        return NULL;
    if (value)
        return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'",
                            Py_TYPE(o)->tp_name, name);
    if (is_nn_module(w->st, o) && script_look_inside(w, o, name) < 0)
        return NULL;
    PyObject *descriptor = class_lookup(Py_TYPE(o), name);
    bool strong = descriptor && Py_TYPE(descriptor)->tp_descr_set;
    Py_XINCREF(descriptor);
    PyObject *result = strong ? get_by_descriptor(w, o, descriptor) : NULL;
    if (!descriptor && is_nn_module(w->st, o) &&
        PyUnicode_CompareWithASCIIString(name, "training") == 0)
        result = script_training(w, o);
    if (!result && !strong && !PyErr_Occurred())
        result = Py_XNewRef(script_own_entry(w, o, name));
    if (!result && !strong && descriptor && !PyErr_Occurred())
        result = get_by_descriptor(w, o, descriptor);
    if (!result && !PyErr_Occurred())
        result = descriptor ? PyObject_GetAttr(o, name) : get_missing(w, o, name);
    Py_XDECREF(descriptor);
    return result;
}

static PyObject *get(PyScript *w, PyObject *o, PyObject *name, bool called)
{
    module_state *st = w->st;
    if (PyExceptionInstance_Check(o) &&
        PyUnicode_CompareWithASCIIString(name, "__context__") == 0) {
        script_refuse(w, "the __context__ of an exception is not known during capture; keep the "
                      "exception that the outer handler caught (except KeyError as e), or raise "
                      "with a cause (raise ... from e)");
        return NULL;
    }
    if (is_proxy(st, o))
        return get_symbolic(w, o, name, called);
    if (is_tensor(st, o))
        return get_of_tensor(w, o, name, called);
    bool module = is_nn_module(st, o);
    if (!module && !is_instance(st, o)) {
        int found = PyModule_Check(o) || PyType_Check(o) ? 1 : script_is_outside(w, o);
        PyObject *part = found < 0 ? NULL : PyObject_GetAttr(o, name);
        return found > 0 ? script_found(w, part) : part;
    }
    PyObject *value = get_of_instance(w, o, name);
    int outside = value && !module ? script_is_outside(w, o) : module;
    if (outside < 0)
        Py_CLEAR(value);
    /* what was assigned while evaluating is the program's own */
    if (value && outside > 0 && !script_aside(w, o, name) && !PyErr_Occurred())
        value = script_found(w, value);
    return value;
}

static cfx_object *get_entry(PyScript *w, cfx_object *o, const char *name, bool called,
                             cfx_error *err)
{
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *value = text ? get(w, py(o), text, called) : NULL;
    if (value && strcmp(name, "__dict__") == 0 && PyDict_CheckExact(value) &&
        script_note_space(w, py(o), value) < 0)
        Py_CLEAR(value);
    Py_XDECREF(text);
    return script_result(w, value, err);
}

static cfx_object *world_get(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    return get_entry(ctx, o, name, false, err);
}

static cfx_object *world_get_method(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    return get_entry(ctx, o, name, true, err);
}

/* What was assigned to is aside; a property of the class is not the flag. */
static cfx_object *world_peek(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    PyScript *w = ctx;
    const bool flag = strcmp(name, "training") == 0 && is_nn_module(w->st, py(o));
    PyObject *text = flag ? PyUnicode_InternFromString(name) : NULL;
    const bool plain = text && !class_lookup(Py_TYPE(py(o)), text) && !script_aside(w, py(o), text);
    PyObject *value = plain && !PyErr_Occurred() ? script_peek_training(w, py(o)) : NULL;
    Py_XDECREF(text);
    if (value || PyErr_Occurred())
        return script_result(w, value, err);
    return world_get(ctx, o, name, err);
}

/* ---- assigning ----------------------------------------------------------------------------- */

int script_change_grad(PyScript *w)
{
    if (w->grad_read)
        script_refuse(w, "requires_grad of a tensor changes here, and the program has read one "
                      "before: later calls would read another; change it before the capture");
    w->grad_changed = true;
    return w->grad_read ? -1 : 0;
}

/* setattr(x, name, v) of a graph value, recorded. */
static int set_symbolic(PyScript *w, PyObject *o, PyObject *name, PyObject *v)
{
    if (PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0 && is_tensor(w->st, o) &&
        script_change_grad(w) < 0)
        return -1;
    PyObject *function = PyDict_GetItemString(PyEval_GetBuiltins(), v ? "setattr" : "delattr");
    PyObject *proxy = function ? script_read(w, o) : NULL;
    PyObject *const args[3] = {proxy, name, v};
    PyObject *done = proxy ? script_record(w, function, args, v ? 3 : 2, NULL) : NULL;
    Py_XDECREF(proxy);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* What sets an attribute in the user's code, and what it is called with. */
typedef struct users_setter {
    PyObject *function;  /* a new reference; NULL: there is none, or an exception is set */
    PyObject *args[3];   /* borrowed */
    size_t n;
} users_setter;

static PyObject *users_method_named(PyScript *w, PyTypeObject *type, const char *name)
{
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *method = text ? Py_XNewRef(users_method(w, type, text)) : NULL;
    Py_XDECREF(text);
    return method;
}

/* A property's setter, the __set__ of a descriptor, or a __setattr__; v NULL: what deletes it. */
static users_setter find_setter(PyScript *w, PyObject *o, PyObject *name, PyObject *v)
{
    PyObject *descriptor = class_lookup(Py_TYPE(o), name);
    const char *method = v ? "__setattr__" : "__delattr__";
    users_setter s = {.function = users_method_named(w, Py_TYPE(o), method),
                      .args = {o, name, v}, .n = v ? 3 : 2};
    if (s.function || PyErr_Occurred() || !descriptor)
        return s;
    if (PyObject_TypeCheck(descriptor, &PyProperty_Type)) {
        s = (users_setter){.function = PyObject_GetAttrString(descriptor, v ? "fset" : "fdel"),
                           .args = {o, v}, .n = v ? 2 : 1};
        if (s.function && (!PyFunction_Check(s.function) || !script_def(w, s.function, NULL)))
            Py_CLEAR(s.function);
    } else if (Py_TYPE(descriptor)->tp_descr_set) {
        method = v ? "__set__" : "__delete__";
        s = (users_setter){.function = users_method_named(w, Py_TYPE(descriptor), method),
                           .args = {descriptor, o, v}, .n = v ? 3 : 2};
    }
    return s;
}

/* 1 if the user's code has set it, 0 if there is none, -1 with an exception. */
static int set_by_users(PyScript *w, PyObject *o, PyObject *name, PyObject *v)
{
    users_setter s = find_setter(w, o, name, v);
    PyObject *done = s.function ? script_call(w, s.function, s.args, s.n, NULL) : NULL;
    Py_XDECREF(s.function);
    Py_XDECREF(done);
    return done ? 1 : PyErr_Occurred() ? -1 : 0;
}

static bool world_is_computed(void *ctx, cfx_object *o, const char *name)
{
    PyScript *w = ctx;
    if (is_graph_like(w->st, py(o)) || w->assigning == py(o))
        return false;
    PyObject *text = PyUnicode_InternFromString(name);
    users_setter s = text ? find_setter(w, py(o), text, Py_None) : (users_setter){0};
    PyErr_Clear();  /* setting it meets the same exception, and raises it */
    Py_XDECREF(text);
    Py_XDECREF(s.function);
    return s.function != NULL;
}

static int refuse_outside(PyScript *w, PyObject *o, PyObject *name)
{
    int outside = PyType_Check(o)     ? PySet_Contains(w->classes, o) == 0
                  : PyModule_Check(o) || PyFunction_Check(o) || PyMethod_Check(o) ? 1
                                      : script_is_outside(w, o);
    if (outside > 0)
        script_refuse(w, "cannot assign to attribute '%U' of %s, which comes from outside the "
                      "function: the assignment would happen once, during capture, not in each "
                      "call; return the new value, or keep tensors in buffers of "
                      "an nn.Module", name,
                      PyType_Check(o) ? ((PyTypeObject *)o)->tp_name : Py_TYPE(o)->tp_name);
    return outside ? -1 : 0;
}

int script_may_assign(PyScript *w, PyObject *o, PyObject *name)
{
    return is_graph_like(w->st, o) || is_nn_module(w->st, o) ? 0 : refuse_outside(w, o, name);
}

static int set(PyScript *w, PyObject *o, PyObject *name, PyObject *v)
{
    if (is_graph_like(w->st, o))
        return set_symbolic(w, o, name, v);
    const bool plainly = w->assigning == o;
    w->assigning = NULL;
    int done = plainly ? 0 : set_by_users(w, o, name, v);
    if (done != 0)
        return done < 0 ? -1 : 0;
    if (is_nn_module(w->st, o))
        return script_put_aside(w, o, name, v);
    if (refuse_outside(w, o, name) < 0)
        return -1;
    return PyObject_SetAttr(o, name, v);
}

static cfx_status world_set(void *ctx, cfx_object *o, const char *name, cfx_object *v,
                            cfx_error *err)
{
    PyObject *text = PyUnicode_InternFromString(name);
    int failed = text ? set(ctx, py(o), text, py(v)) : -1;
    Py_XDECREF(text);
    return failed ? script_failed(ctx, err) : CFX_OK;
}

static cfx_status world_put(void *ctx, cfx_object *o, const char *name, cfx_object *v,
                            cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *set = PyUnicode_InternFromString(v ? "__setattr__" : "__delattr__");
    PyObject *own = set ? class_lookup(Py_TYPE(py(o)), set) : NULL;
    int failed = !text || !set ? -1
                 : is_nn_module(w->st, py(o))   ? script_put_aside(w, py(o), text, py(v))
                 : own && PyFunction_Check(own) ? PyObject_GenericSetAttr(py(o), text, py(v))
                                                : PyObject_SetAttr(py(o), text, py(v));
    Py_XDECREF(set);
    Py_XDECREF(text);
    return failed ? script_failed(w, err) : CFX_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/* The builtins that code with these globals sees, borrowed. */
static PyObject *builtins_of(PyObject *globals)
{
    PyObject *builtins = PyDict_GetItemString(globals, "__builtins__");
    if (builtins && PyModule_Check(builtins))
        builtins = PyModule_GetDict(builtins);
    return builtins && PyDict_Check(builtins) ? builtins : PyEval_GetBuiltins();
}

static cfx_object *world_global(void *ctx, cfx_object *globals, const char *name, cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *value = text && globals ? PyDict_GetItemWithError(py(globals), text) : NULL;
    if (text && !value && !PyErr_Occurred())
        value = PyDict_GetItemWithError(globals ? builtins_of(py(globals)) : PyEval_GetBuiltins(),
                                        text);
    Py_XINCREF(value);
    Py_XDECREF(text);
    if (err)
        err->status = CFX_OK;
    value = script_found(w, value);
    return value || PyErr_Occurred() ? script_result(w, value, err) : NULL;
}

static cfx_status world_set_global(void *ctx, cfx_object *globals, const char *name, cfx_object *v,
                                   cfx_error *err)
{
    (void)globals;
    (void)v;
    script_refuse(ctx, "cannot assign to the global variable '%s': the assignment would happen "
                  "once, during capture, not in each call; return the new value, or keep tensors "
                  "in buffers",
                  name);
    return script_failed(ctx, err);
}

static cfx_object *world_import(void *ctx, cfx_object *globals, const char *name, int level,
                                cfx_error *err)
{
    PyObject *star = Py_BuildValue("(s)", "*");  /* so that the last module is what is given */
    PyObject *module = NULL;
    if (star)
        module = PyImport_ImportModuleLevel(name, py(globals), NULL, star, level);
    Py_XDECREF(star);
    return script_result(ctx, module, err);
}

/* ---- classes ------------------------------------------------------------------------------- */

static cfx_object *world_super(void *ctx, cfx_object *cls, cfx_object *self, cfx_error *err)
{
    return script_result(ctx, PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, py(cls),
                                                           py(self), NULL), err);
}

static cfx_object *world_make(void *ctx, cfx_object *cls, cfx_error *err)
{
    PyScript *w = ctx;
    PyTypeObject *type = (PyTypeObject *)cls;
    return script_result(w, type->tp_new(type, w->st->empty_tuple, NULL), err);
}

static PyObject *make_class(module_state *st, const char *name, cfx_object *const *bases, size_t n,
                            const char *const *names, cfx_object *const *values, size_t m)
{
    PyObject *parents = tuple_of((PyObject *const *)bases, (Py_ssize_t)n);
    PyObject *body = parents ? PyDict_New() : NULL;
    int failed = body ? 0 : -1;
    for (size_t i = 0; !failed && i < m; i++)
        failed = PyDict_SetItemString(body, names[i], py(values[i]));
    PyObject *job = failed ? NULL : Py_BuildValue("sOO", name, parents, body);
    PyObject *made = job ? call_glue(st, "script_class", job) : NULL;
    Py_XDECREF(job);
    Py_XDECREF(body);
    Py_XDECREF(parents);
    return made;
}

static cfx_object *world_make_class(void *ctx, const char *name, cfx_object *const *bases, size_t n,
                                    const char *const *names, cfx_object *const *values, size_t m,
                                    cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *made = make_class(w->st, name, bases, n, names, values, m);
    if (made && PySet_Add(w->classes, made) < 0)
        Py_CLEAR(made);
    return script_result(w, made, err);
}

void script_attribute_entries(cfx_world *world)
{
    world->get = world_get;
    world->get_method = world_get_method;
    world->set = world_set;
    world->is_computed = world_is_computed;
    world->put = world_put;
    world->peek = world_peek;
    world->global = world_global;
    world->set_global = world_set_global;
    world->import = world_import;
    world->super = world_super;
    world->make = world_make;
    world->make_class = world_make_class;
}
