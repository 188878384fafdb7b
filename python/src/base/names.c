/* names.c - what generated code, prints and annotations call functions and types. */
#include "pycfx.h"

PyObject *attr_or_none(PyObject *o, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(o, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();  /* absent is an answer */
    return Py_NewRef(Py_None);
}

PyObject *loaded_module(const char *name)
{
    return PyDict_GetItemString(PyImport_GetModuleDict(), name);
}

/* Whether getattr(owner, name, None) is `object`: -1 with an exception. No owner has nothing. */
static int owns(PyObject *owner, PyObject *name, PyObject *object)
{
    PyObject *found = owner ? attr_or_none(owner, name) : NULL;
    Py_XDECREF(found);
    return found ? found == object : owner ? -1 : 0;
}

/* ---- types --------------------------------------------------------------------------------- */

/* The values of two attributes with a dot between them. */
static PyObject *join_attributes(PyObject *o, const char *first, const char *second)
{
    PyObject *left = PyObject_GetAttrString(o, first);
    PyObject *right = left ? PyObject_GetAttrString(o, second) : NULL;
    PyObject *text = right ? PyUnicode_FromFormat("%S.%S", left, right) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return text;
}

PyObject *type_repr(PyObject *o)
{
    if (PyFunction_Check(o))
        return PyObject_GetAttrString(o, "__name__");
    if (!PyType_Check(o))
        return o == Py_Ellipsis ? PyUnicode_FromString("...") : PyObject_Repr(o);
    PyObject *module = PyObject_GetAttrString(o, "__module__");
    bool is_builtin = module && PyUnicode_Check(module) &&
                      PyUnicode_CompareWithASCIIString(module, "builtins") == 0;
    Py_XDECREF(module);
    if (!module)
        return NULL;
    return is_builtin ? PyObject_GetAttrString(o, "__qualname__")
                      : join_attributes(o, "__module__", "__qualname__");
}

/* ---- functions ----------------------------------------------------------------------------- */

/* torch.nn.functional: a new reference. */
static PyObject *functional_of(PyObject *torch)
{
    PyObject *nn = PyObject_GetAttrString(torch, "nn");
    PyObject *functional = nn ? PyObject_GetAttrString(nn, "functional") : NULL;
    Py_XDECREF(nn);
    return functional;
}

/* Where in torch a function that does not say it lives: a new reference, None if nowhere. */
static PyObject *guess_module(module_state *st, PyObject *function, PyObject *name)
{
    PyObject *torch = call_glue(st, "find_torch", Py_None);
    PyObject *functional = torch && torch != Py_None ? functional_of(torch) : NULL;
    PyObject *module = NULL;
    if (functional) {
        int found = owns(torch, name, function);
        int inside = found ? 0 : owns(functional, name, function);
        if (found >= 0 && inside >= 0)
            module = Py_NewRef(found ? torch : inside ? functional : Py_None);
    } else if (torch == Py_None) {
        module = Py_NewRef(Py_None);
    }
    Py_XDECREF(functional);
    Py_XDECREF(torch);
    return module;
}

/* The module that has a method of one of its objects for a function (random.random), if `found` is
 * None. Steals `found`. */
static PyObject *module_of_method(module_state *st, PyObject *found, PyObject *function,
                                  PyObject *name)
{
    bool lost = found == Py_None && PyCFunction_Check(function);
    PyObject *self = lost ? PyCFunction_GET_SELF(function) : NULL;
    PyObject *home = self ? attr_or_none((PyObject *)Py_TYPE(self), st->str_module) : NULL;
    const char *text = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    PyObject *module = text ? loaded_module(text) : NULL;
    int has = module ? owns(module, name, function) : 0;
    if (has > 0)
        Py_SETREF(found, Py_NewRef(module));
    else if (has < 0)
        Py_CLEAR(found);
    Py_XDECREF(home);
    return found;
}

/* The name of the module that a function is in: a new reference. */
static PyObject *module_of(module_state *st, PyObject *function)
{
    PyObject *module = PyObject_GetAttr(function, st->str_module);
    if (module != Py_None)
        return module;
    PyObject *name = PyObject_GetAttr(function, st->str_name);
    Py_SETREF(module, name ? guess_module(st, function, name) : NULL);
    module = module ? module_of_method(st, module, function, name) : NULL;
    Py_XDECREF(name);
    if (module == Py_None)
        PyErr_Format(PyExc_RuntimeError, "cannot find module for %S", function);
    PyObject *text = module && module != Py_None ? PyObject_GetAttr(module, st->str_name) : NULL;
    Py_XDECREF(module);
    return text;
}

static int is_tensor_method(module_state *st, PyObject *function, PyObject *name)
{
    if (!Py_IS_TYPE(function, &PyMethodDescr_Type) && !Py_IS_TYPE(function, &PyWrapperDescr_Type))
        return 0;
    PyObject *torch = call_glue(st, "find_torch", Py_None);
    if (!torch)
        return -1;
    PyObject *tensor = torch != Py_None ? PyObject_GetAttrString(torch, "Tensor") : NULL;
    int found = PyErr_Occurred() ? -1 : owns(tensor, name, function);
    Py_XDECREF(tensor);
    Py_DECREF(torch);
    return found;
}

/* `module.name`, where torch._ops is known as torch.ops, and the system's module as os. */
static PyObject *join_module(PyObject *module, PyObject *name)
{
    static const char hidden[] = "torch._ops";
    const Py_ssize_t size = sizeof hidden - 1;
    const char *text = PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    if (text && strncmp(text, hidden, size) == 0 && (text[size] == '\0' || text[size] == '.'))
        return PyUnicode_FromFormat("torch.ops%s.%S", text + size, name);
    if (text && (strcmp(text, "posix") == 0 || strcmp(text, "nt") == 0))
        return PyUnicode_FromFormat("os.%S", name);
    PyErr_Clear();  /* a name without UTF-8 is not this one */
    return PyUnicode_FromFormat("%S.%S", module, name);
}

/* Whether its module has another function of torch's under its name: torch.manual_seed, once
 * torch._dynamo is loaded, is not torch.random.manual_seed. */
static bool is_replaced(PyObject *function, PyObject *name)
{
    PyObject *home = PyFunction_Check(function) ? PyFunction_GET_MODULE(function) : NULL;
    const char *text = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    PyObject *module = text && strncmp(text, "torch.", 6) == 0 ? loaded_module(text) : NULL;
    PyObject *found = module ? attr_or_none(module, name) : NULL;
    const bool other = found && found != function && PyFunction_Check(found);
    Py_XDECREF(found);
    PyErr_Clear();  /* without UTF-8 it is not torch's */
    return other;
}

static PyObject *outside_builtins(module_state *st, PyObject *function, PyObject *name)
{
    int method = is_tensor_method(st, function, name);
    if (method)
        return method > 0 ? PyUnicode_FromFormat("torch.Tensor.%U", name) : NULL;
    const bool elsewhere = PyMethod_Check(function) || is_replaced(function, name);
    PyObject *own = elsewhere ? call_glue(st, "attribute_name", function) : NULL;
    if (own != Py_None && (own || PyErr_Occurred()))
        return own;
    Py_XDECREF(own);
    bool is_lambda = PyUnicode_Check(name) &&
                     PyUnicode_CompareWithASCIIString(name, "<lambda>") == 0;
    PyObject *shown = is_lambda ? call_glue(st, "lambda_name", function) : Py_NewRef(name);
    PyObject *module = shown ? module_of(st, function) : NULL;
    PyObject *text = module ? join_module(module, shown) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(shown);
    return text;
}

PyObject *function_name(module_state *st, PyObject *function)
{
    PyObject *name = PyObject_GetAttr(function, st->str_name);
    int is_builtin = name ? owns(loaded_module("builtins"), name, function) : -1;
    PyObject *text = NULL;
    if (is_builtin >= 0)
        text = is_builtin ? Py_NewRef(name) : outside_builtins(st, function, name);
    Py_XDECREF(name);
    return text;
}

/* Whether the class of an object is one of those that annotations are made of. */
bool is_annotation(const module_state *st, PyObject *o)
{
    PyObject *module = attr_or_none((PyObject *)Py_TYPE(o), st->str_module);
    bool found = module && PyUnicode_Check(module) &&
                 (PyUnicode_CompareWithASCIIString(module, "typing") == 0 ||
                  PyUnicode_CompareWithASCIIString(module, "types") == 0);
    Py_XDECREF(module);
    return found;
}

static PyObject *named_target(module_state *st, PyObject *target, PyObject *name)
{
    int found = owns(loaded_module("builtins"), name, target);
    if (found)
        return found > 0 ? PyUnicode_FromFormat("builtins.%U", name) : NULL;
    found = PyType_Check(target) ? 0 : owns(loaded_module("operator"), name, target);
    if (found)
        return found > 0 ? PyUnicode_FromFormat("operator.%U", name) : NULL;
    return function_name(st, target);
}

PyObject *target_name(module_state *st, PyObject *target)
{
    if (PyUnicode_Check(target))
        return Py_NewRef(target);
    PyObject *name = attr_or_none(target, st->str_name);
    PyObject *text = NULL;
    if (name && PyUnicode_Check(name))
        text = named_target(st, target, name);
    else if (name && is_annotation(st, target))
        text = type_repr(target);
    else if (name)
        text = function_name(st, target);
    Py_XDECREF(name);
    return text;
}

/* Where in torch it is, generated code can say, and needs no global for it. */
int is_from_torch(module_state *st, PyObject *o)
{
    PyObject *module = attr_or_none(o, st->str_module);
    if (module && module != Py_None) {
        const char *text = PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
        PyErr_Clear();  /* a name without UTF-8 is none of torch's */
        bool found = text && strncmp(text, "torch", 5) == 0 &&
                     (text[5] == '\0' ||
                      (text[5] == '.' && strncmp(text, "torch._dynamo.", 14) != 0));
        Py_DECREF(module);
        return found;
    }
    Py_XDECREF(module);
    PyObject *name = module ? attr_or_none(o, st->str_name) : NULL;
    PyObject *found = NULL;
    if (name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "torch") != 0)
        found = guess_module(st, o, name);
    bool failed = PyErr_Occurred();
    Py_XDECREF(name);
    Py_XDECREF(found);
    return failed ? -1 : found && found != Py_None;
}

/* ---- any object ---------------------------------------------------------------------------- */

int is_enum(PyObject *o)
{
    PyObject *enums = loaded_module("enum");
    PyObject *base = enums ? PyObject_GetAttrString(enums, "Enum") : NULL;
    int found = base ? PyObject_IsInstance(o, base) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(base);
    return found;
}

static PyObject *enum_name(PyObject *o)
{
    PyObject *class = join_attributes((PyObject *)Py_TYPE(o), "__module__", "__qualname__");
    PyObject *member = class ? PyObject_GetAttrString(o, "name") : NULL;
    PyObject *text = member ? PyUnicode_FromFormat("%U.%S", class, member) : NULL;
    Py_XDECREF(class);
    Py_XDECREF(member);
    return text;
}

/* Whether it is list[int], typing.Optional[int], int | str or the like: -1 with an exception. */
static int is_generic(PyObject *o)
{
    PyObject *typing = loaded_module("typing");
    PyObject *origin = typing ? PyObject_CallMethod(typing, "get_origin", "O", o) : NULL;
    Py_XDECREF(origin);
    return origin ? origin != Py_None : PyErr_Occurred() ? -1 : 0;
}

bool is_lasting(PyObject *o)
{
    if (PyType_Check(o))
        return !PyType_HasFeature((PyTypeObject *)o, Py_TPFLAGS_HEAPTYPE);
    /* static methods, too, as torch.zeros is one */
    PyObject *self = PyCFunction_CheckExact(o) ? ((PyCFunctionObject *)o)->m_self : NULL;
    if (!PyFunction_Check(o))
        return self && (PyModule_Check(self) || PyType_Check(self));
    PyObject *module = PyFunction_GET_MODULE(o);
    const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    const char *name = text ? PyUnicode_AsUTF8(((PyFunctionObject *)o)->func_qualname) : NULL;
    PyErr_Clear();  /* without UTF-8 it is none of them */
    return name && (strncmp(text, "torch", 5) == 0 || strncmp(text, "cfx", 3) == 0) &&
           !strchr(name, '<');
}

static PyObject *name_of_lasting(module_state *st, PyObject *o)
{
    PyObject *known = PyDict_GetItemWithError(st->names, o);
    if (known || PyErr_Occurred())
        return Py_XNewRef(known);
    PyObject *name = target_name(st, o);
    if (name && PyDict_SetItem(st->names, o, name) < 0)
        Py_CLEAR(name);
    return name;
}

PyObject *object_name(module_state *st, PyObject *o)
{
    if (is_lasting(o))
        return name_of_lasting(st, o);
    int found = is_enum(o);
    if (found)
        return found > 0 ? enum_name(o) : NULL;
    found = is_generic(o);
    if (found)
        return found > 0 ? type_repr(o) : NULL;
    if (!PyCallable_Check(o) && !has_attribute(o, st->str_name))
        return Py_NewRef(Py_None);
    return target_name(st, o);
}

/* ---- for Python ---------------------------------------------------------------------------- */

static PyObject *py_type_repr(PyObject *module, PyObject *o)
{
    (void)module;
    return type_repr(o);
}

static PyObject *py_function_name(PyObject *module, PyObject *function)
{
    return function_name(PyModule_GetState(module), function);
}

static PyObject *py_target_name(PyObject *module, PyObject *target)
{
    return target_name(PyModule_GetState(module), target);
}

static PyObject *py_module_of(PyObject *module, PyObject *function)
{
    return module_of(PyModule_GetState(module), function);
}

static PyObject *py_is_from_torch(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames)
{
    static const char *const names[] = {"obj"};
    static const arg_spec spec = {"_is_from_torch", names, 1, 1, 1};
    PyObject *o;
    if (!take_args(&spec, args, nargs, kwnames, &o))
        return NULL;
    int found = is_from_torch(PyModule_GetState(module), o);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

PyMethodDef name_functions[] = {
    {"_is_from_torch", FAST(py_is_from_torch),
     SIGNED("_is_from_torch($module, /, obj)",
            "Whether generated code can say where in torch `obj` is, and needs no global for it.")},
    {"_type_repr", py_type_repr, METH_O,
     PyDoc_STR("A type as annotations spell it: int, torch.Tensor, typing.List[int].")},
    {"_get_qualified_name", py_function_name, METH_O,
     PyDoc_STR("The name under which generated code calls a function.")},
    {"_pretty_print_target", py_target_name, METH_O,
     PyDoc_STR("The name that people know a function by: operator.add, builtins.len, torch.relu.")},
    {"_find_module_of_method", py_module_of, METH_O,
     PyDoc_STR("The module of a function; of a builtin that does not say where it lives, torch or "
               "torch.nn.functional.")},
    {NULL, NULL, 0, NULL},
};
