/* script_object.c - the world of scripts: what objects are, literals, containers. */
#include "scripting.h"

static void world_retain(void *ctx, cfx_object *o)
{
    (void)ctx;
    Py_INCREF(py(o));
}

static void world_release(void *ctx, cfx_object *o)
{
    (void)ctx;
    Py_DECREF(py(o));
}

/* ---- kinds --------------------------------------------------------------------------------- */

static bool is_heap_class(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
}

/* Whether a class is torch's or Python's own: their objects are not for programs to take apart. */
static bool is_library_class(const module_state *st, PyTypeObject *type)
{
    PyObject *home = class_lookup(type, st->str_module);
    const char *name = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    PyErr_Clear();  /* a name that is no text is no library's */
    return name && (strcmp(name, "torch") == 0 || strncmp(name, "torch.", 6) == 0 ||
                    strcmp(name, "builtins") == 0 || strcmp(name, "functools") == 0 ||
                    strncmp(name, "cfx.", 4) == 0);
}

bool is_instance(const module_state *st, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return has_dict(o) && is_heap_class(type) && !PyType_Check(o) && !PyModule_Check(o) &&
           !PyFunction_Check(o) && !PyExceptionInstance_Check(o) && !is_nn_module(st, o) &&
           !is_proxy(st, o) && !is_tensor(st, o) && !is_mutable(o) && !PyTuple_Check(o) &&
           !PyUnicode_Check(o) && !PyLong_Check(o) && !PyFloat_Check(o) &&
           !is_library_class(st, type);
}

static cfx_object_kind kind_of_number(PyObject *o)
{
    if (o == Py_None)
        return CFX_OBJECT_NONE;
    if (PyBool_Check(o))
        return CFX_OBJECT_BOOL;
    if (PyLong_CheckExact(o))
        return CFX_OBJECT_INT;
    if (PyFloat_CheckExact(o))
        return CFX_OBJECT_FLOAT;
    return PyComplex_CheckExact(o) ? CFX_OBJECT_COMPLEX : CFX_OBJECT_OTHER;
}

static cfx_object_kind world_kind(void *ctx, cfx_object *object_)
{
    PyScript *w = ctx;
    PyObject *o = py(object_);
    cfx_object_kind number = kind_of_number(o);
    if (number != CFX_OBJECT_OTHER)
        return number;
    if (PyUnicode_Check(o))
        return CFX_OBJECT_STR;
    if (PyTuple_Check(o))
        return is_named_tuple(w->st, o) ? CFX_OBJECT_NAMED_TUPLE : CFX_OBJECT_TUPLE;
    if (PyList_Check(o))
        return CFX_OBJECT_LIST;
    if (PyDict_Check(o))
        return CFX_OBJECT_DICT;
    if (PyAnySet_Check(o))
        return CFX_OBJECT_SET;
    if (PyType_Check(o))
        return CFX_OBJECT_CLASS;
    if (is_proxy(w->st, o))
        return CFX_OBJECT_OTHER;
    if (is_tensor(w->st, o))
        return CFX_OBJECT_TENSOR;
    if (is_nn_module(w->st, o))
        return CFX_OBJECT_MODULE;
    return is_instance(w->st, o) ? CFX_OBJECT_INSTANCE : CFX_OBJECT_OTHER;
}

static bool world_integer(void *ctx, cfx_object *o, int64_t *i)
{
    (void)ctx;
    int overflow;
    if (!PyLong_Check(py(o)))
        return false;
    long long value = PyLong_AsLongLongAndOverflow(py(o), &overflow);
    *i = value;
    return !overflow;
}

static const char *world_text(void *ctx, cfx_object *o, size_t *size)
{
    (void)ctx;
    Py_ssize_t n = 0;
    const char *text = PyUnicode_Check(py(o)) ? PyUnicode_AsUTF8AndSize(py(o), &n) : NULL;
    PyErr_Clear();  /* lone surrogates: it has none */
    *size = (size_t)n;
    return text;
}

static const char *world_type_name(void *ctx, cfx_object *o)
{
    (void)ctx;
    const char *name = Py_TYPE(py(o))->tp_name;
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* ---- equality ------------------------------------------------------------------------------ */

static bool same_double(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static bool same_items(PyObject *a, PyObject *b);

bool script_same(PyObject *a, PyObject *b)
{
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyFloat_CheckExact(a))
        return same_double(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    if (PyComplex_CheckExact(a))
        return same_double(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
               same_double(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
    if (PyTuple_Check(a))
        return same_items(a, b);
    if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyBytes_CheckExact(a) &&
        Py_TYPE(a) != &PyRange_Type && strcmp(Py_TYPE(a)->tp_name, "torch.device") != 0)
        return false;
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    PyErr_Clear();  /* what cannot be compared is not the same */
    return equal == 1;
}

static bool same_items(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyTuple_GET_SIZE(a);
    bool same = n == PyTuple_GET_SIZE(b) && enter_nested(" while comparing") == 0;
    for (Py_ssize_t i = 0; same && i < n; i++)
        same = script_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    if (PyErr_Occurred())
        PyErr_Clear();  /* nested too deep to tell */
    else if (n == PyTuple_GET_SIZE(b))
        leave_nested();
    return same;
}

static bool world_equal(void *ctx, cfx_object *a, cfx_object *b)
{
    (void)ctx;
    return script_same(py(a), py(b));
}

static int stop_at_graph(void *ctx, PyObject *leaf) { return is_graph_like(ctx, leaf); }

int mentions_graph(module_state *st, PyObject *o)
{
    int found = visit_leaves(o, stop_at_graph, st);
    return found < 0 ? -1 : found != 0;
}

/* ---- literals ------------------------------------------------------------------------------ */

static PyObject *big_integer(const char *text, size_t size)
{
    char *digits = PyMem_Malloc(size + 1);
    if (!digits)
        return PyErr_NoMemory();
    memcpy(digits, text, size);
    digits[size] = '\0';
    PyObject *number = PyLong_FromString(digits, NULL, 0);
    PyMem_Free(digits);
    return number;
}

static PyObject *make_literal(const cfx_script_literal *literal)
{
    switch (literal->kind) {
    case CFX_OBJECT_NONE:
        Py_RETURN_NONE;
    case CFX_OBJECT_BOOL:
        return PyBool_FromLong((long)literal->i);
    case CFX_OBJECT_INT:
        return literal->text ? big_integer(literal->text, literal->size)
                             : PyLong_FromLongLong(literal->i);
    case CFX_OBJECT_FLOAT:
        return PyFloat_FromDouble(literal->f);
    case CFX_OBJECT_COMPLEX:
        return PyComplex_FromDoubles(0, literal->f);
    case CFX_OBJECT_STR:
        return str_from_utf8(literal->text, literal->size);
    default:
        if (literal->other == CFX_LITERAL_BYTES)
            return PyBytes_FromStringAndSize(literal->text, (Py_ssize_t)literal->size);
        return Py_NewRef(Py_Ellipsis);
    }
}

static cfx_object *world_literal(void *ctx, const cfx_script_literal *literal, cfx_error *err)
{
    return script_result(ctx, make_literal(literal), err);
}

/* ---- containers ---------------------------------------------------------------------------- */

static PyObject *new_tuple(cfx_object *const *items, size_t n)
{
    return tuple_of((PyObject *const *)items, (Py_ssize_t)n);
}

static PyObject *new_list(cfx_object *const *items, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++)
        PyList_SET_ITEM(list, (Py_ssize_t)i, Py_NewRef(py(items[i])));
    return list;
}

static int fill_set(PyObject *set, cfx_object *const *items, size_t n)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < n; i++)
        failed = PySet_Add(set, py(items[i]));
    return failed;
}

/* These are what the dict holds: a __setitem__ of its class has seen them. */
static int fill_dict(PyObject *dict, cfx_object *const *items, size_t n)
{
    int failed = 0;
    for (size_t i = 0; !failed && i + 1 < n; i += 2)
        failed = PyODict_Check(dict) ? PyODict_SetItem(dict, py(items[i]), py(items[i + 1]))
                                     : PyDict_SetItem(dict, py(items[i]), py(items[i + 1]));
    return failed;
}

/* Gives up `o` if something failed. */
static PyObject *unless(int failed, PyObject *o)
{
    if (failed)
        Py_CLEAR(o);
    return o;
}

/* A copy of a dict of any class, empty. */
static PyObject *empty_like(PyObject *dict)
{
    if (PyDict_CheckExact(dict))
        return PyDict_New();
    PyObject *copy = PyObject_CallMethod(dict, "copy", NULL);
    PyObject *done = copy ? PyObject_CallMethod(copy, "clear", NULL) : NULL;
    Py_XDECREF(done);
    return unless(!done, copy);
}

/* An object of the same class with these attributes; its __init__ is not called. */
static PyObject *instance_like(PyScript *w, PyObject *model, cfx_object *const *items, size_t n)
{
    PyObject *instance = PyBaseObject_Type.tp_new(Py_TYPE(model), w->st->empty_tuple, NULL);
    PyObject *dict = instance ? PyObject_GenericGetDict(instance, NULL) : NULL;
    int failed = dict ? fill_dict(dict, items, n) : -1;
    Py_XDECREF(dict);
    return unless(failed, instance);
}

static PyObject *build_like(PyScript *w, PyObject *model, cfx_object *const *items, size_t n)
{
    PyTypeObject *type = Py_TYPE(model);
    PyObject *copy = NULL;
    if (PyDict_Check(model)) {
        copy = empty_like(model);
        return copy ? unless(fill_dict(copy, items, n), copy) : NULL;
    }
    if (!PyTuple_Check(model) && !PyList_Check(model) && !PyAnySet_Check(model))
        return instance_like(w, model, items, n);
    PyObject *all = PyTuple_Check(model) ? new_tuple(items, n) : new_list(items, n);
    if (!all || type == &PyTuple_Type || type == &PyList_Type)
        return all;
    copy = is_named_tuple(w->st, model) ? PyObject_Call((PyObject *)type, all, NULL)
                                        : PyObject_CallOneArg((PyObject *)type, all);
    Py_DECREF(all);
    return copy;
}

/* The texts of an f-string: joined, or recorded as a call of str.format if one of them is a graph
 * value. */
static PyObject *format_template(cfx_object *const *items, size_t n)
{
    PyObject *parts = PyList_New(0);
    PyObject *whole = parts ? PyUnicode_FromString("") : NULL;
    int failed = whole ? 0 : -1;
    for (size_t i = 0; !failed && i < n; i++) {
        PyObject *text = NULL;
        if (PyUnicode_Check(py(items[i]))) {
            PyObject *half = PyObject_CallMethod(py(items[i]), "replace", "ss", "{", "{{");
            text = half ? PyObject_CallMethod(half, "replace", "ss", "}", "}}") : NULL;
            Py_XDECREF(half);
        } else {
            text = PyUnicode_FromString("{}");
        }
        failed = text ? PyList_Append(parts, text) : -1;
        Py_XDECREF(text);
    }
    PyObject *result = failed ? NULL : PyUnicode_Join(whole, parts);
    Py_XDECREF(whole);
    Py_XDECREF(parts);
    return result;
}

static PyObject *build_text(PyScript *w, cfx_object *const *items, size_t n)
{
    bool known = true;
    for (size_t i = 0; i < n; i++)
        known = known && PyUnicode_Check(py(items[i]));
    if (known) {
        PyObject *list = new_list(items, n);
        PyObject *text = list ? PyUnicode_Join(w->st->str_empty, list) : NULL;
        Py_XDECREF(list);
        return text;
    }
    PyObject *name = PyUnicode_InternFromString("format");
    PyObject **args = PyMem_New(PyObject *, n + 1);
    PyObject *template = args && name ? format_template(items, n) : NULL;
    PyObject *result = NULL;
    Py_ssize_t used = 1;
    if (template) {
        args[0] = template;
        for (size_t i = 0; i < n; i++)
            if (!PyUnicode_Check(py(items[i])))
                args[used++] = py(items[i]);
        result = script_record_method(w, name, args, used, NULL);
    }
    if (!args)
        PyErr_NoMemory();
    Py_XDECREF(template);
    Py_XDECREF(name);
    PyMem_Free(args);
    return result;
}

static PyObject *build(PyScript *w, cfx_script_build what, cfx_object *const *items, size_t n)
{
    PyObject *o = NULL;
    switch (what) {
    case CFX_BUILD_TUPLE:
        return new_tuple(items, n);
    case CFX_BUILD_LIST:
        return new_list(items, n);
    case CFX_BUILD_SET:
        o = PySet_New(NULL);
        return o ? unless(fill_set(o, items, n), o) : NULL;
    case CFX_BUILD_DICT:
        o = PyDict_New();
        return o ? unless(fill_dict(o, items, n), o) : NULL;
    case CFX_BUILD_SLICE:
        return PySlice_New(py(items[0]), py(items[1]), py(items[2]));
    case CFX_BUILD_TEXT:
        return build_text(w, items, n);
    case CFX_BUILD_LIKE:
        return build_like(w, py(items[0]), items + 1, n - 1);
    }
    return NULL;
}

static cfx_object *world_build(void *ctx, cfx_script_build what, cfx_object *const *items, size_t n,
                               cfx_error *err)
{
    return script_result(ctx, build(ctx, what, items, n), err);
}

/* ---- what is in them ----------------------------------------------------------------------- */

/* Keys and values in turn. */
static PyObject *flat_dict(PyObject *dict)
{
    PyObject *pairs = PyDict_CheckExact(dict) ? PyDict_Items(dict) : PyMapping_Items(dict);
    PyObject *flat = pairs ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; flat && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        if (PyList_Append(flat, PyTuple_GET_ITEM(pair, 0)) < 0 ||
            PyList_Append(flat, PyTuple_GET_ITEM(pair, 1)) < 0)
            Py_CLEAR(flat);
    }
    Py_XDECREF(pairs);
    return flat;
}

static PyObject *list_contents(PyObject *o)
{
    if (PyDict_Check(o))
        return flat_dict(o);
    if (PyTuple_Check(o) || PyList_Check(o) || PyAnySet_Check(o) || is_deque(o))
        return PySequence_List(o);
    if (is_whole(o))
        return whole_contents(o);
    PyObject *attributes = PyObject_GenericGetDict(o, NULL);
    PyObject *flat = attributes ? flat_dict(attributes) : NULL;
    Py_XDECREF(attributes);
    return flat;
}

static cfx_status world_contents(void *ctx, cfx_object *o, cfx_object ***items, size_t *n,
                                 cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *list = list_contents(py(o));
    Py_ssize_t size = list ? PyList_GET_SIZE(list) : 0;
    *items = list ? PyMem_New(cfx_object *, (size_t)size + 1) : NULL;
    *n = 0;
    if (list && !*items)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; *items && i < size; i++)
        (*items)[(*n)++] = object(Py_NewRef(PyList_GET_ITEM(list, i)));
    Py_XDECREF(list);
    return *items ? CFX_OK : script_failed(w, err);
}

static void world_drop(void *ctx, cfx_object **items, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        Py_DECREF(py(items[i]));
    PyMem_Free(items);
}

static int refill(PyObject *o, cfx_object *const *items, size_t n)
{
    if (PyList_Check(o)) {
        PyObject *list = new_list(items, n);
        int failed = list ? PyList_SetSlice(o, 0, PyList_GET_SIZE(o), list) : -1;
        Py_XDECREF(list);
        return failed;
    }
    if (is_whole(o))
        return n == 1 ? whole_refill(o, py(items[0])) : 0;
    PyObject *base = PyODict_Check(o)  ? (PyObject *)&PyODict_Type
                     : PyDict_Check(o) ? (PyObject *)&PyDict_Type : (PyObject *)Py_TYPE(o);
    PyObject *done = PyObject_CallMethod(base, "clear", "O", o);
    Py_XDECREF(done);
    if (!done)
        return -1;
    if (is_deque(o)) {
        PyObject *list = new_list(items, n);
        done = list ? PyObject_CallMethod(o, "extend", "O", list) : NULL;
        Py_XDECREF(done);
        Py_XDECREF(list);
        return done ? 0 : -1;
    }
    return PyDict_Check(o) ? fill_dict(o, items, n) : fill_set(o, items, n);
}

static cfx_status world_refill(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                               cfx_error *err)
{
    return refill(py(o), items, n) < 0 ? script_failed(ctx, err) : CFX_OK;
}

void script_object_entries(cfx_world *world)
{
    world->retain = world_retain;
    world->release = world_release;
    world->kind = world_kind;
    world->literal = world_literal;
    world->build = world_build;
    world->contents = world_contents;
    world->drop = world_drop;
    world->refill = world_refill;
    world->integer = world_integer;
    world->text = world_text;
    world->equal = world_equal;
    world->type_name = world_type_name;
}
