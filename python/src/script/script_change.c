/* script_change.c - the world of scripts: how objects can change, and what was there before. */
#include "scripting.h"

/* ---- types --------------------------------------------------------------------------------- */

/* Whether the type is, or derives from, one of that name: of Python's own modules, which need not
 * be imported. */
static bool derives_from(PyTypeObject *type, const char *name)
{
    for (; type; type = type->tp_base)
        if (strcmp(type->tp_name, name) == 0)
            return true;
    return false;
}

bool is_deque(PyObject *o) { return derives_from(Py_TYPE(o), "collections.deque"); }

static bool is_ndarray(PyObject *o) { return derives_from(Py_TYPE(o), "numpy.ndarray"); }
static bool is_array(PyObject *o) { return derives_from(Py_TYPE(o), "array.array"); }

bool is_whole(PyObject *o) { return PyByteArray_Check(o) || is_array(o) || is_ndarray(o); }

/* Types whose objects cannot change, or only by ways that are recorded. */
static bool is_constant_type(PyTypeObject *type)
{
    static const char *const names[] = {
        "int", "float", "complex", "bool", "str", "bytes", "NoneType", "ellipsis",
        "NotImplementedType", "range", "slice", "frozenset", "type", "module", "function",
        "builtin_function_or_method", "method", "method-wrapper", "wrapper_descriptor",
        "method_descriptor", "classmethod_descriptor", "getset_descriptor", "member_descriptor",
        "property", "staticmethod", "classmethod", "code", "cell", "mappingproxy", "super",
        "dict_keys", "dict_values", "dict_items", "odict_keys", "odict_values", "odict_items",
        "functools.partial", "functools._lru_cache_wrapper", "re.Pattern", "re.Match",
        "types.GenericAlias", "types.UnionType", "operator.itemgetter", "operator.attrgetter",
        "operator.methodcaller", "decimal.Decimal", "datetime.date", "datetime.time",
        "datetime.datetime", "datetime.timedelta", "datetime.timezone", "weakref.ReferenceType",
        "numpy.dtype", "numpy.generic", "numpy.ufunc", "object", "PyCapsule", "traceback", "frame",
        "numpy._ArrayFunctionDispatcher", "typing.TypeVar",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type->tp_name, names[i]) == 0)
            return true;
    return false;
}

/* torch's own objects are recorded, or made by what is. */
static bool is_torchs(PyTypeObject *type)
{
    return strncmp(type->tp_name, "torch.", 6) == 0 || strncmp(type->tp_name, "cfx.", 4) == 0;
}

static bool is_constant(PyScript *w, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (PyTuple_Check(o) || PyUnicode_Check(o) || PyLong_Check(o) || PyFloat_Check(o) ||
        PyComplex_Check(o) || PyBytes_Check(o) || PyFrozenSet_Check(o) || PyType_Check(o) ||
        PyModule_Check(o) || PyFunction_Check(o) || PyExceptionInstance_Check(o) ||
        is_graph_like(w->st, o) || is_nn_module(w->st, o) || is_numpy_scalar(o) ||
        script_function_of(w, o) || o == (PyObject *)w)
        return true;
    if (is_mutable(o))
        return false;
    if (is_constant_type(type))
        return true;
    return is_torchs(type) && !has_dict(o);
}

/* The array whose memory a view shows; NULL: something else has it. */
static PyObject *owner_of_array(PyObject *o)
{
    PyObject *at = o;  /* views keep what they show */
    for (;;) {
        PyObject *base = PyObject_GetAttrString(at, "base");
        Py_XDECREF(base);
        if (!base || base == Py_None) {
            PyErr_Clear();  /* a class that hides it */
            return base ? at : NULL;
        }
        if (!is_ndarray(base))
            return NULL;
        at = base;
    }
}

/* Whether objects of the type hold more than attributes: a class that is written in C has fields of
 * its own, as random.Random and io.StringIO do. */
static bool has_c_state(PyTypeObject *type)
{
    Py_ssize_t room = (Py_ssize_t)sizeof(PyObject);
    room += type->tp_dictoffset > 0 ? (Py_ssize_t)sizeof(PyObject *) : 0;
    room += type->tp_weaklistoffset > 0 ? (Py_ssize_t)sizeof(PyObject *) : 0;
    for (PyTypeObject *t = type; t && t != &PyBaseObject_Type; t = t->tp_base)
        if (PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE))  /* what stands in its __slots__ */
            room += Py_SIZE(t) * (Py_ssize_t)sizeof(PyObject *);
    return type->tp_basicsize > room;
}

/* Whether its elements are references: their bytes say nothing. */
static bool holds_objects(PyObject *array)
{
    PyObject *type = PyObject_GetAttrString(array, "dtype");
    PyObject *answer = type ? PyObject_GetAttrString(type, "hasobject") : NULL;
    const bool plain = answer == Py_False;
    Py_XDECREF(answer);
    Py_XDECREF(type);
    PyErr_Clear();  /* a class that hides it */
    return !plain;
}

/* ---- the dicts of objects ------------------------------------------------------------------ */

static int put_by_id(PyObject *table, PyObject *o)
{
    PyObject *id = PyLong_FromVoidPtr(o);
    int failed = id ? PyDict_SetItem(table, id, o) : -1;
    Py_XDECREF(id);
    return failed;
}

int script_note_space(PyScript *w, PyObject *o, PyObject *dict)
{
    int outside = script_is_outside(w, o);
    if (outside == 0 && (PyModule_Check(o) || PyType_Check(o) || is_nn_module(w->st, o)))
        outside = 1;
    if (outside < 0 || put_by_id(w->spaces, dict) < 0)
        return -1;
    return outside ? script_note(w, dict) : 0;
}

int script_note_globals(PyScript *w, PyObject *globals) { return put_by_id(w->outside, globals); }

static bool is_space(PyScript *w, PyObject *o)
{
    if (PyDict_GET_SIZE(w->spaces) == 0 || !PyDict_CheckExact(o))
        return false;
    PyObject *id = PyLong_FromVoidPtr(o);
    const bool found = id && PyDict_Contains(w->spaces, id) > 0;
    Py_XDECREF(id);
    PyErr_Clear();  /* memory is out: the next call says so */
    return found;
}

/* ---- how objects change -------------------------------------------------------------------- */

cfx_script_change script_change(PyScript *w, PyObject **o)
{
    if (PyList_CheckExact(*o))
        return CFX_CHANGE_ITEMS;
    if (is_constant(w, *o))
        return CFX_CHANGE_NEVER;
    if (is_space(w, *o))
        return CFX_CHANGE_UNKNOWN;
    if (is_mutable(*o) || is_deque(*o))
        return CFX_CHANGE_ITEMS;
    if (is_ndarray(*o)) {
        PyObject *owner = owner_of_array(*o);
        *o = owner ? owner : *o;
        return owner && !holds_objects(owner) ? CFX_CHANGE_WHOLE : CFX_CHANGE_UNKNOWN;
    }
    if (is_whole(*o))
        return CFX_CHANGE_WHOLE;
    if (strcmp(Py_TYPE(*o)->tp_name, "ExitStack") == 0)  /* what it holds has been entered */
        return CFX_CHANGE_UNKNOWN;
    const bool attributes = has_dict(*o) && !has_c_state(Py_TYPE(*o));
    if (!attributes && PyIter_Check(*o))
        return CFX_CHANGE_ITERATOR;
    if (attributes)
        return CFX_CHANGE_ATTRIBUTES;
    /* a class with __slots__: its attributes are set one by one */
    return PyType_HasFeature(Py_TYPE(*o), Py_TPFLAGS_HEAPTYPE) && !has_c_state(Py_TYPE(*o))
               ? CFX_CHANGE_NEVER : CFX_CHANGE_UNKNOWN;
}

static cfx_script_change world_change(void *ctx, cfx_object **o)
{
    PyObject *found = py(*o);
    const cfx_script_change how = script_change(ctx, &found);
    *o = object(found);
    return how;
}

/* ---- what an array holds ------------------------------------------------------------------- */

/* Its sizes and elements. */
static PyObject *ndarray_whole(PyObject *o)
{
    PyObject *shape = PyObject_GetAttrString(o, "shape");
    PyObject *elements = shape ? PyObject_CallMethod(o, "tobytes", NULL) : NULL;
    PyObject *whole = elements ? PyTuple_Pack(2, shape, elements) : NULL;
    Py_XDECREF(elements);
    Py_XDECREF(shape);
    return whole;
}

PyObject *whole_contents(PyObject *o)
{
    PyObject *whole = is_ndarray(o) ? ndarray_whole(o)
                      : PyByteArray_Check(o) ? PyBytes_FromObject(o)
                                             : PyObject_CallMethod(o, "tobytes", NULL);
    PyObject *list = whole ? PyList_New(1) : NULL;
    if (list)
        PyList_SET_ITEM(list, 0, Py_NewRef(whole));
    Py_XDECREF(whole);
    return list;
}

/* o.shape = shape; o[...] = numpy.frombuffer(elements, o.dtype).reshape(shape) */
static int ndarray_refill(PyObject *o, PyObject *whole)
{
    PyObject *shape = PyTuple_GET_ITEM(whole, 0), *elements = PyTuple_GET_ITEM(whole, 1);
    PyObject *now = PyObject_GetAttrString(o, "shape");
    int same = now ? PyObject_RichCompareBool(now, shape, Py_EQ) : -1;
    if (same == 0)
        same = PyObject_SetAttrString(o, "shape", shape) == 0 ? 1 : -1;
    PyObject *numpy = same > 0 ? PyImport_ImportModule("numpy") : NULL;
    PyObject *type = numpy ? PyObject_GetAttrString(o, "dtype") : NULL;
    PyObject *flat = type ? PyObject_CallMethod(numpy, "frombuffer", "OO", elements, type) : NULL;
    PyObject *array = flat ? PyObject_CallMethod(flat, "reshape", "O", shape) : NULL;
    int failed = array ? PyObject_SetItem(o, Py_Ellipsis, array) : -1;
    Py_XDECREF(array);
    Py_XDECREF(flat);
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    Py_XDECREF(now);
    return failed;
}

int whole_refill(PyObject *o, PyObject *whole)
{
    if (is_ndarray(o))
        return ndarray_refill(o, whole);
    PyObject *all = PySlice_New(NULL, NULL, NULL);
    PyObject *done = NULL;
    if (all && PyByteArray_Check(o))
        done = PyObject_SetItem(o, all, whole) == 0 ? Py_NewRef(Py_None) : NULL;
    else if (all && PyObject_DelItem(o, all) == 0)
        done = PyObject_CallMethod(o, "frombytes", "O", whole);
    Py_XDECREF(all);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* ---- questions ----------------------------------------------------------------------------- */

static bool world_is_outside(void *ctx, cfx_object *o)
{
    int found = script_is_outside(ctx, py(o));
    PyErr_Clear();  /* memory is out: the next call says so */
    return found > 0;
}

static bool world_is_new(void *ctx, cfx_object *o)
{
    (void)ctx;
    return Py_REFCNT(py(o)) == 1;
}

bool has_missing(PyObject *o)
{
    return !PyDict_CheckExact(o) && PyDict_Check(o) && PyObject_HasAttrString(o, "__missing__");
}

static bool world_item_adds(void *ctx, cfx_object *o, cfx_object *key)
{
    (void)ctx;
    int found = has_missing(py(o)) ? PyDict_Contains(py(o), py(key)) : 1;
    PyErr_Clear();  /* a key that cannot be hashed is added nowhere */
    return found == 0;
}

/* ---- names --------------------------------------------------------------------------------- */

/* The name of the builtin type that the object's class is or derives from. */
static const char *builtin_type(PyTypeObject *type)
{
    while (type->tp_base && type->tp_base != &PyBaseObject_Type &&
           PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !strchr(type->tp_name, '.'))
        type = type->tp_base;
    return type->tp_name;
}

static bool put_name(char *name, size_t size, const char *home, const char *own)
{
    snprintf(name, size, "%s.%s", home, own);
    return true;
}

/* module.qualified name of a function or class that is written in Python. */
static bool name_by_attributes(PyObject *f, char *name, size_t size)
{
    PyObject *home = PyObject_GetAttrString(f, "__module__");
    PyObject *own = home ? PyObject_GetAttrString(f, "__qualname__") : NULL;
    const char *texts[2] = {home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL,
                            own && PyUnicode_Check(own) ? PyUnicode_AsUTF8(own) : NULL};
    bool found = texts[0] && texts[1] && put_name(name, size, texts[0], texts[1]);
    Py_XDECREF(own);
    Py_XDECREF(home);
    PyErr_Clear();  /* most objects have no name */
    return found;
}

/* x.__setitem__ of a builtin type, and its like. */
static bool name_of_wrapper(PyObject *f, char *name, size_t size, cfx_object **self)
{
    PyObject *of = PyObject_GetAttrString(f, "__self__");
    PyObject *own = of ? PyObject_GetAttrString(f, "__name__") : NULL;
    const char *text = own && PyUnicode_Check(own) ? PyUnicode_AsUTF8(own) : NULL;
    bool found = text && put_name(name, size, builtin_type(Py_TYPE(of)), text);
    *self = object(of);
    Py_XDECREF(own);
    Py_XDECREF(of);  /* f has it */
    PyErr_Clear();
    return found;
}

static bool name_of_builtin(PyObject *f, char *name, size_t size, cfx_object **self)
{
    const char *own = ((PyCFunctionObject *)f)->m_ml->ml_name;
    PyObject *of = PyCFunction_GET_SELF(f);
    PyObject *home = ((PyCFunctionObject *)f)->m_module;
    const char *module = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    PyErr_Clear();
    if (of && !PyModule_Check(of)) {
        *self = object(of);
        return put_name(name, size, builtin_type(Py_TYPE(of)), own);
    }
    return module && put_name(name, size, module, own);
}

static const char *method_name(PyObject *method)
{
    PyObject *f = PyMethod_GET_FUNCTION(method);
    return PyFunction_Check(f) ? PyUnicode_AsUTF8(((PyFunctionObject *)f)->func_name) : "function";
}

static bool world_call_name(void *ctx, cfx_object *function, char *name, size_t size,
                            cfx_object **self)
{
    PyScript *w = ctx;
    PyObject *f = py(function);
    bool for_all = false;
    *self = NULL;
    if (strcmp(Py_TYPE(f)->tp_name, "functools.partial") == 0) {
        PyObject *inner = PyObject_GetAttrString(f, "func");
        const bool named = inner && world_call_name(ctx, object(inner), name, size, self);
        if (!inner)
            PyErr_Clear();  /* memory is out: nothing is known of it */
        Py_XDECREF(inner);  /* the partial has it */
        return named;
    }
    if (Py_IS_TYPE(f, (PyTypeObject *)w->st->AttributeType))  /* a method of a graph value */
        return put_name(name, size, "recorded", PyUnicode_AsUTF8(((PyAttribute *)f)->attr));
    if (is_nn_module(w->st, f) || is_proxy(w->st, f) || wrapped_function(w->st, f, &for_all))
        return put_name(name, size, "torch", "nn");
    if (script_is_recorded(w->st, f))  /* what its self is does not matter */
        return put_name(name, size, "recorded", PyMethod_Check(f) ? method_name(f) : "function");
    if (PyCFunction_Check(f))
        return name_of_builtin(f, name, size, self);
    if (PyMethod_Check(f)) {
        *self = object(PyMethod_GET_SELF(f));
        return name_by_attributes(PyMethod_GET_FUNCTION(f), name, size);
    }
    if (Py_TYPE(f) == &PyMethodDescr_Type || Py_TYPE(f) == &PyWrapperDescr_Type)
        return put_name(name, size, PyDescr_TYPE(f)->tp_name,
                        PyUnicode_AsUTF8(PyDescr_NAME(f)));
    if (strcmp(Py_TYPE(f)->tp_name, "method-wrapper") == 0)
        return name_of_wrapper(f, name, size, self);
    if (PyFunction_Check(f) || PyType_Check(f))
        return name_by_attributes(f, name, size);
    *self = function;  /* an object that can be called */
    return false;
}

void script_change_entries(cfx_world *world)
{
    world->change = world_change;
    world->is_outside = world_is_outside;
    world->is_new = world_is_new;
    world->item_adds = world_item_adds;
    world->call_name = world_call_name;
}
