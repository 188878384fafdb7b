/* codegen_names.c - what generated code calls objects: globals, and the annotations for types. */
#include "base/pycfx.h"

/* ---- globals ------------------------------------------------------------------------------- */

/* torch.device is a global of all generated code, so that it is called by that name. */
static int is_device(PyObject *o)
{
    PyObject *torch = PyType_Check(o) ? loaded_module("torch") : NULL;
    PyObject *device = torch ? PyObject_GetAttrString(torch, "device") : NULL;
    Py_XDECREF(device);
    return PyErr_Occurred() ? -1 : device == o;
}

static int is_builtin(PyObject *name, PyObject *o)
{
    PyObject *builtins = loaded_module("builtins");
    PyObject *dict = builtins ? PyModule_GetDict(builtins) : NULL;
    PyObject *found = dict ? PyDict_GetItemWithError(dict, name) : NULL;
    return PyErr_Occurred() ? -1 : found == o;
}

PyObject *code_add_global(const code_names *names, PyObject *wish, PyObject *o, bool allow_reserved)
{
    cfx_error err = {0};
    PyObject *keep = NULL;
    Py_ssize_t size;
    const char *name = NULL;
    const char *text = utf8_of(wish, &size, &keep);
    if (!text)
        return NULL;
    cfx_status status = cfx_pycode_global(names->gen, o, text, (size_t)size, allow_reserved, &name,
                                          &err);
    Py_XDECREF(keep);
    return status == CFX_OK ? PyUnicode_FromString(name) : raise_cfx(&err);
}

/* Equal objects share a global. The dict keeps them alive. */
static PyObject *known_or_new(const code_names *names, PyObject *wish, PyObject *o)
{
    PyObject *name = PyDict_GetItemWithError(names->known, o);
    if (name || PyErr_Occurred())
        return Py_XNewRef(name);
    int allow_reserved = is_builtin(wish, o);
    name = allow_reserved < 0 ? NULL : code_add_global(names, wish, o, allow_reserved);
    if (name && PyDict_SetItem(names->known, o, name) < 0)
        Py_CLEAR(name);
    return name;
}

PyObject *code_global(const code_names *names, PyObject *wish, PyObject *o)
{
    int in_torch = is_from_torch(names->st, o);
    int device = in_torch > 0 ? is_device(o) : 0;
    if (in_torch < 0 || device < 0)
        return NULL;
    return in_torch && !device ? function_name(names->st, o) : known_or_new(names, wish, o);
}

PyObject *code_target(const code_names *names, PyObject *function)
{
    PyObject *wish = function_name(names->st, function);
    PyObject *name = wish ? code_global(names, wish, function) : NULL;
    Py_XDECREF(wish);
    return name;
}

/* ---- types --------------------------------------------------------------------------------- */

/* Whether `o` is an object of a class in a module: -1 with an exception. */
static int is_a(PyObject *o, const char *module_name, const char *class_name)
{
    PyObject *module = loaded_module(module_name);
    PyObject *class = module ? PyObject_GetAttrString(module, class_name) : NULL;
    int found = class ? PyObject_IsInstance(o, class) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(class);
    return found;
}

/* typing.List for list and so on: a new reference, to `origin` itself if there is none. */
static PyObject *in_typing(PyObject *origin)
{
    static const struct { PyTypeObject *type; const char *name; } known[] = {
        {&PyList_Type, "List"}, {&PyDict_Type, "Dict"}, {&PySet_Type, "Set"},
        {&PyFrozenSet_Type, "FrozenSet"}, {&PyTuple_Type, "Tuple"},
    };
    PyObject *typing = loaded_module("typing");
    for (size_t i = 0; typing && i < sizeof known / sizeof *known; i++)
        if ((PyObject *)known[i].type == origin)
            return PyObject_GetAttrString(typing, known[i].name);
    return Py_NewRef(origin);
}

static PyObject *plain_type(const code_names *names, PyObject *type)
{
    PyObject *wish = type_repr(type);
    PyObject *name = wish ? code_global(names, wish, type) : NULL;
    Py_XDECREF(wish);
    return name;
}

/* The annotations of several types, with a separator between them. */
static PyObject *join_types(const code_names *names, PyObject *types, const char *separator)
{
    PyObject *list = PySequence_List(types);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *text = code_type(names, PyList_GET_ITEM(list, i));
        if (!text || PyList_SetItem(list, i, text) < 0)
            Py_CLEAR(list);
    }
    PyObject *between = list ? PyUnicode_FromString(separator) : NULL;
    PyObject *text = between ? PyUnicode_Join(between, list) : NULL;
    Py_XDECREF(between);
    Py_XDECREF(list);
    return text;
}

/* typing.get_args(type), or what it has itself: a new reference, None for none. */
static PyObject *args_of(PyObject *type)
{
    PyObject *typing = loaded_module("typing");
    PyObject *args = typing ? PyObject_CallMethod(typing, "get_args", "O", type) : NULL;
    PyObject *name = args && PyObject_Size(args) == 0 ? PyUnicode_FromString("__args__") : NULL;
    if (name)
        Py_SETREF(args, attr_or_none(type, name));
    Py_XDECREF(name);
    return args;
}

/* list[int], typing.Dict[str, int]: the generic, then its arguments. */
static PyObject *generic_type(const code_names *names, PyObject *type, PyObject *origin)
{
    int old = is_a(type, "typing", "_GenericAlias");
    PyObject *generic = old < 0 ? NULL : old ? in_typing(origin) : Py_NewRef(origin);
    PyObject *name = generic ? plain_type(names, generic) : NULL;
    PyObject *args = name ? args_of(type) : NULL;
    PyObject *text = NULL;
    if (args && (args == Py_None || PyObject_Size(args) == 0)) {
        text = Py_NewRef(name);
    } else if (args) {
        PyObject *inner = join_types(names, args, ",");
        text = inner ? PyUnicode_FromFormat("%U[%U]", name, inner) : NULL;
        Py_XDECREF(inner);
    }
    Py_XDECREF(args);
    Py_XDECREF(name);
    Py_XDECREF(generic);
    return text;
}

static PyObject *union_type(const code_names *names, PyObject *type)
{
    PyObject *members = PyObject_GetAttrString(type, "__args__");
    PyObject *text = members ? join_types(names, members, "|") : NULL;
    Py_XDECREF(members);
    return text;
}

/* The parameters of a Callable. */
static PyObject *list_type(const code_names *names, PyObject *list)
{
    PyObject *inner = join_types(names, list, ",");
    PyObject *text = inner ? PyUnicode_FromFormat("[%U]", inner) : NULL;
    Py_XDECREF(inner);
    return text;
}

static PyObject *any_type(const code_names *names, PyObject *type)
{
    int is_union = is_a(type, "types", "UnionType");
    if (is_union)
        return is_union > 0 ? union_type(names, type) : NULL;
    if (PyList_Check(type))
        return list_type(names, type);
    PyObject *origin = PyObject_GetAttrString(type, "__origin__");
    if (!origin && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    if (!origin)
        PyErr_Clear();  /* it is no generic */
    PyObject *text = origin ? generic_type(names, type, origin) : plain_type(names, type);
    Py_XDECREF(origin);
    return text;
}

PyObject *code_type(const code_names *names, PyObject *type)
{
    if (enter_nested(" while writing a type"))
        return NULL;
    PyObject *text = any_type(names, type);
    leave_nested();
    return text;
}
