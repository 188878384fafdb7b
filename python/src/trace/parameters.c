/* parameters.c - the parameters of a function that is captured, and the inputs they become. */
#include "trace.h"

/* ---- what a function takes ----------------------------------------------------------------- */

/* Appends the name of local variable i of a function, behind its stars. */
static int append_name(PyObject *names, PyObject *locals, Py_ssize_t i, const char *stars)
{
    PyObject *name = PyTuple_GET_ITEM(locals, i);
    PyObject *text = *stars ? PyUnicode_FromFormat("%s%U", stars, name) : Py_NewRef(name);
    int failed = text ? PyList_Append(names, text) : -1;
    Py_XDECREF(text);
    return failed;
}

/* The names in the order of a function's local variables: plain ones, those that are given by name
 * only, "*args", "**kwargs". */
static PyObject *names_of(const PyCodeObject *code, PyObject *locals)
{
    Py_ssize_t n = code->co_argcount + code->co_kwonlyargcount;
    PyObject *names = PyList_New(0);
    for (Py_ssize_t i = 0; names && i < n; i++)
        if (append_name(names, locals, i, "") < 0)
            Py_CLEAR(names);
    if (names && code->co_flags & CO_VARARGS && append_name(names, locals, n++, "*") < 0)
        Py_CLEAR(names);
    if (names && code->co_flags & CO_VARKEYWORDS && append_name(names, locals, n, "**") < 0)
        Py_CLEAR(names);
    return names;
}

/* {name: value} of parameters that need not be given. */
static PyObject *defaults_of(PyObject *function, const PyCodeObject *code, PyObject *locals)
{
    PyObject *values = PyFunction_GET_DEFAULTS(function);
    PyObject *named = PyFunction_GET_KW_DEFAULTS(function);
    PyObject *found = named ? PyDict_Copy(named) : PyDict_New();
    Py_ssize_t n = values && PyTuple_Check(values) ? PyTuple_GET_SIZE(values) : 0;
    Py_ssize_t first = code->co_argcount - n;
    for (Py_ssize_t i = first < 0 ? -first : 0; found && i < n; i++)
        if (PyDict_SetItem(found, PyTuple_GET_ITEM(locals, first + i),
                           PyTuple_GET_ITEM(values, i)) < 0)
            Py_CLEAR(found);
    return found;
}

/* _parameters(function): (names, defaults). */
static PyObject *parameters(PyObject *module, PyObject *function)
{
    (void)module;
    if (!PyFunction_Check(function))
        return PyErr_Format(PyExc_TypeError, "_parameters takes a function written in Python");
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    PyObject *locals = PyCode_GetVarnames(code);
    PyObject *names = locals ? names_of(code, locals) : NULL;
    PyObject *defaults = names ? defaults_of(function, code, locals) : NULL;
    PyObject *pair = defaults ? PyTuple_Pack(2, names, defaults) : NULL;
    Py_XDECREF(defaults);
    Py_XDECREF(names);
    Py_XDECREF(locals);
    return pair;
}

PyMethodDef parameter_functions[] = {
    {"_parameters", parameters, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- inputs -------------------------------------------------------------------------------- */

static PyObject *placeholder(PyTracer *t, PyObject *name, PyObject *defaults, PyObject *hints)
{
    PyObject *value = PyDict_GetItemWithError(defaults, name);
    PyObject *hint = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(hints, name);
    if (PyErr_Occurred())
        return NULL;
    trace_call call = {.op = CFX_OP_PLACEHOLDER, .target = name, .args = &value, .n = value != NULL,
                       .type = hint == Py_None ? NULL : hint};
    return tracer_record(state_of(Py_TYPE(t)), (PyObject *)t, &call);
}

PyObject *tracer_placeholders(PyTracer *t, PyObject *args)
{
    PyObject *names, *defaults, *hints;
    if (!PyArg_ParseTuple(args, "O!O!O!:_placeholders", &PyList_Type, &names, &PyDict_Type,
                          &defaults, &PyDict_Type, &hints))
        return NULL;
    PyObject *made = PyList_New(0);
    for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(names); i++) {
        PyObject *proxy = placeholder(t, PyList_GET_ITEM(names, i), defaults, hints);
        if (!proxy || PyList_Append(made, proxy) < 0)
            Py_CLEAR(made);
        Py_XDECREF(proxy);
    }
    return made;
}
