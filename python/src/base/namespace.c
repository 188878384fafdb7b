/* namespace.c - _Namespace: unique names, and the objects they stand for.
 *
 * The names are the core's. Stand-alone, a namespace owns them; attached to a Graph, it shows the
 * graph's own, where every node already stands for its name. Objects are told apart by their hash
 * and equality, as keys of a dict.
 */
#include "pycfx.h"

typedef struct PyNamespace {
    PyObject_HEAD
    cfx_namespace *own;  /* NULL if attached */
    PyGraph *graph;      /* NULL if stand-alone */
    PyObject *objects;   /* dict: object to name; NULL until something is put there */
} PyNamespace;

static cfx_namespace *names_of(const PyNamespace *self)
{
    if (self->own)
        return self->own;
    if (self->graph && self->graph->g)
        return cfx_graph_namespace(self->graph->g);
    PyErr_SetString(PyExc_ReferenceError, "the graph of this namespace no longer exists");
    return NULL;
}

/* ---- objects and their names --------------------------------------------------------------- */

static bool is_node_of(const PyGraph *graph, PyObject *object)
{
    return graph && graph->g && is_node(graph->st, object) &&
           cfx_node_graph(((PyNode *)object)->n) == graph->g;
}

/* The name of an object: a new reference, or NULL, also without an exception if it has none. */
static PyObject *name_of(const PyNamespace *self, PyObject *object)
{
    if (PyObject_Hash(object) == -1)  /* asked for even where there is nothing to look up */
        return NULL;
    if (self->objects) {
        PyObject *name = PyDict_GetItemWithError(self->objects, object);
        if (name || PyErr_Occurred())
            return Py_XNewRef(name);
    }
    if (!is_node_of(self->graph, object))
        return NULL;
    size_t size;
    const char *text = cfx_node_name(((PyNode *)object)->n, &size);
    return str_from_utf8(text, size);
}

static bool set_name(PyNamespace *self, PyObject *object, PyObject *name)
{
    if (!self->objects)
        self->objects = PyDict_New();
    return self->objects && PyDict_SetItem(self->objects, object, name) == 0;
}

static bool check_name(PyObject *name)
{
    if (!PyUnicode_Check(name))
        PyErr_Format(PyExc_TypeError, "a name must be a str, got '%.200s'", Py_TYPE(name)->tp_name);
    return PyUnicode_Check(name);
}

/* ---- names that mean something ------------------------------------------------------------- */

/* What was registered under a reserved name: borrowed; NULL, maybe with an exception. */
static PyObject *registered(module_state *st, PyObject *name)
{
    PyObject *globals = PyObject_GetAttrString(st->NamespaceType, "_globals");
    if (!globals) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Clear();  /* nothing was registered yet */
        return NULL;
    }
    PyObject *object = PyDict_GetItemWithError(globals, name);
    Py_DECREF(globals);  /* the type has another reference */
    return object;
}

/* Whether `object` is what the reserved `name` means wherever generated code runs: the builtin
 * itself, or what was registered. 1, 0, or -1 with an exception. */
static int is_meant(module_state *st, PyObject *name, PyObject *object)
{
    if (object == (PyObject *)Py_TYPE(Py_None))  /* a global of generated code, no builtin */
        return PyUnicode_CompareWithASCIIString(name, "NoneType") == 0;
    PyObject *known = PyDict_GetItemWithError(PyEval_GetBuiltins(), name);
    if (!known && !PyErr_Occurred())
        known = registered(st, name);
    return PyErr_Occurred() ? -1 : known == object;
}

PyDoc_STRVAR(register_global_doc,
"_register_global($type, name, obj, /)\n--\n\n"
"Lets create_name(name, obj) give this reserved name to this very object.");

static PyObject *namespace_register_global(PyObject *type, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *namespace_type = state_of((PyTypeObject *)type)->NamespaceType;
    if (nargs != 2 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "_register_global(name, obj): name must be a str");
        return NULL;
    }
    PyObject *globals = PyObject_GetAttrString(namespace_type, "_globals");
    if (!globals && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();  /* the first one */
        globals = PyDict_New();
        if (globals && PyObject_SetAttrString(namespace_type, "_globals", globals) < 0)
            Py_CLEAR(globals);
    }
    int status = globals ? PyDict_SetItem(globals, args[0], args[1]) : -1;
    Py_XDECREF(globals);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- methods ------------------------------------------------------------------------------- */

/* Takes a name in the core: a new reference. */
static PyObject *take_name(PyNamespace *self, PyObject *wish, PyObject *object)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep = NULL;
    PyObject *result = NULL;
    const char *name = NULL;
    int meant = 0;
    const char *text = utf8_of(wish, &size, &keep);
    if (text && cfx_name_is_reserved(text, (size_t)size))
        meant = is_meant(state_of(Py_TYPE(self)), wish, object);
    cfx_namespace *names = text && meant >= 0 ? names_of(self) : NULL;
    if (!names)
        goto done;
    name = cfx_namespace_create(names, text, (size_t)size, meant, &err);
    if (!name)
        raise_cfx(&err);
    else if (PyUnicode_CheckExact(wish) && strcmp(name, text) == 0)
        result = Py_NewRef(wish);
    else
        result = PyUnicode_FromString(name);
done:
    Py_XDECREF(keep);
    return result;
}

PyDoc_STRVAR(create_name_doc,
"create_name($self, /, candidate, obj)\n--\n\n"
"A name that is not taken yet, as close to `candidate` as can be: an identifier, with a number\n"
"at its end where needed. An object that has a name already keeps it. `obj` may be None.");

static PyObject *namespace_create_name(PyNamespace *self, PyObject *const *args, Py_ssize_t nargs,
                                       PyObject *kwnames)
{
    static const char *const names[] = {"candidate", "obj"};
    static const arg_spec spec = {"_Namespace.create_name", names, 2, 2, 2};
    PyObject *given[2];
    if (!take_args(&spec, args, nargs, kwnames, given))
        return NULL;
    PyObject *object = given[1];
    PyObject *name = object != Py_None ? name_of(self, object) : NULL;
    if (name || PyErr_Occurred() || !check_name(given[0]))
        return name;
    name = take_name(self, given[0], object);
    if (name && object != Py_None && !set_name(self, object, name))
        Py_CLEAR(name);
    return name;
}

PyDoc_STRVAR(associate_doc,
"associate_name_with_obj($self, /, name, obj)\n--\n\n"
"Says that `obj` has this name. It must not have one, and the name counts as taken only if\n"
"create_name made it.");

static PyObject *namespace_associate(PyNamespace *self, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *kwnames)
{
    static const char *const names[] = {"name", "obj"};
    static const arg_spec spec = {"_Namespace.associate_name_with_obj", names, 2, 2, 2};
    PyObject *given[2];
    if (!take_args(&spec, args, nargs, kwnames, given) ||
        !check_name(given[0]))
        return NULL;
    PyObject *old = name_of(self, given[1]);
    if (old)
        PyErr_SetString(PyExc_AssertionError, "obj is already associated");
    Py_XDECREF(old);
    if (PyErr_Occurred() || !set_name(self, given[1], given[0]))
        return NULL;
    return Py_NewRef(Py_None);
}

static bool add_name(PyNamespace *self, PyObject *name)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *text = utf8_of(name, &size, &keep);
    cfx_namespace *names = text ? names_of(self) : NULL;
    bool ok = names && cfx_namespace_add(names, text, (size_t)size, &err) == CFX_OK;
    if (names && !ok)
        raise_cfx(&err);
    Py_XDECREF(keep);
    return ok;
}

PyDoc_STRVAR(rename_doc,
"_rename_object($self, /, obj, name)\n--\n\n"
"Gives an object that has a name exactly this one, taken or not. The old one stays taken.");

static PyObject *namespace_rename(PyNamespace *self, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames)
{
    static const char *const names[] = {"obj", "name"};
    static const arg_spec spec = {"_Namespace._rename_object", names, 2, 2, 2};
    PyObject *given[2];
    if (!take_args(&spec, args, nargs, kwnames, given) ||
        !check_name(given[1]))
        return NULL;
    PyObject *old = name_of(self, given[0]);
    if (!old && !PyErr_Occurred())
        PyErr_Format(PyExc_AssertionError, "Object %S is not in _obj_to_name", given[0]);
    Py_XDECREF(old);
    if (!old || !add_name(self, given[1]) || !set_name(self, given[0], given[1]))
        return NULL;
    return Py_NewRef(Py_None);
}

/* A copy that cannot be changed: adding to it would have no effect on the names. */
static PyObject *namespace_used_names(PyNamespace *self, void *closure)
{
    (void)closure;
    cfx_namespace *names = names_of(self);
    PyObject *used = names ? PyFrozenSet_New(NULL) : NULL;
    const char *text = NULL;
    size_t cursor = 0;
    size_t size = 0;
    while (used && (text = cfx_namespace_each(names, &cursor, &size))) {
        PyObject *name = str_from_utf8(text, size);
        if (!name || PySet_Add(used, name) < 0)
            Py_CLEAR(used);
        Py_XDECREF(name);
    }
    return used;
}

/* ---- the type ------------------------------------------------------------------------------ */

static PyObject *namespace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    cfx_error err = {0};
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "_Namespace() takes no arguments");
        return NULL;
    }
    PyNamespace *self = (PyNamespace *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->own = cfx_namespace_new(NULL, &err);
    if (!self->own) {
        Py_DECREF(self);
        return raise_cfx(&err);
    }
    return (PyObject *)self;
}

PyObject *namespace_for_graph(PyGraph *graph)
{
    PyTypeObject *type = (PyTypeObject *)graph->st->NamespaceType;
    PyNamespace *self = (PyNamespace *)type->tp_alloc(type, 0);
    if (self)
        self->graph = (PyGraph *)Py_NewRef((PyObject *)graph);
    return (PyObject *)self;
}

static int namespace_traverse(PyNamespace *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->graph);
    Py_VISIT(self->objects);
    return 0;
}

static int namespace_clear(PyNamespace *self)
{
    Py_CLEAR(self->graph);
    Py_CLEAR(self->objects);
    return 0;
}

static void namespace_dealloc(PyNamespace *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    namespace_clear(self);
    cfx_namespace_free(self->own);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef namespace_methods[] = {
    {"create_name", FAST(namespace_create_name), create_name_doc},
    {"associate_name_with_obj", FAST(namespace_associate), associate_doc},
    {"_rename_object", FAST(namespace_rename), rename_doc},
    {"_register_global", (PyCFunction)(void (*)(void))namespace_register_global,
     METH_FASTCALL | METH_CLASS, register_global_doc},
    {0},
};

static PyGetSetDef namespace_getset[] = {
    {"_used_names", (getter)namespace_used_names, NULL,
     PyDoc_STR("The names that are taken, as a new frozenset."), NULL},
    {0},
};

static PyType_Slot namespace_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("_Namespace()\n--\n\nUnique names, and what they stand for.")},
    {Py_tp_new, namespace_new},
    {Py_tp_methods, namespace_methods},
    {Py_tp_getset, namespace_getset},
    {Py_tp_traverse, namespace_traverse},
    {Py_tp_clear, namespace_clear},
    {Py_tp_dealloc, namespace_dealloc},
    {0, NULL},
};

PyType_Spec namespace_spec = {
    .name = "cfx.graph._Namespace",
    .basicsize = sizeof(PyNamespace),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = namespace_slots,
};
