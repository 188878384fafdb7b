/* backend.c - what a backend computes in integers, as Python says it: [(calls, result, types)].
 * Calls are classes, functions and names of methods; types are dicts {"input": ..., "output": ...,
 * "weight": ..., "each_run": bool}, whose values are None (any) or dicts of cfx_backend_value. */
#include "quantize/quantizing.h"

enum { MOST_CALLS = 8, MOST_TYPES = 64 };

static bool number_from_py(PyObject *dict, const char *name, double *out, bool *has)
{
    PyObject *o = PyDict_GetItemString(dict, name);
    *has = o != NULL && o != Py_None;
    if (*has)
        *out = PyFloat_AsDouble(o);
    return !PyErr_Occurred();
}

static bool value_of(module_state *st, PyObject *types, const char *name, cfx_backend_value *v)
{
    double low = 0, high = 0, zero = 0;
    bool has_low, has_high, has_scale, has_zero, has_min;
    PyObject *dict = PyDict_GetItemString(types, name);
    *v = (cfx_backend_value){.any = !dict || dict == Py_None};
    if (v->any)
        return true;
    PyObject *dtype = PyDict_Check(dict) ? PyDict_GetItemString(dict, "dtype") : NULL;
    if (!dtype) {
        PyErr_SetString(PyExc_TypeError, "a value of a backend is a dict with a 'dtype', or None");
        return false;
    }
    if (!dtype_from_py(st, dtype, &v->dtype) || !number_from_py(dict, "low", &low, &has_low) ||
        !number_from_py(dict, "high", &high, &has_high) ||
        !number_from_py(dict, "scale", &v->scale, &has_scale) ||
        !number_from_py(dict, "zero", &zero, &has_zero) ||
        !number_from_py(dict, "scale_min", &v->scale_min, &has_min))
        return false;
    v->ranged = has_low && has_high;
    v->fixed = has_scale && has_zero;
    v->low = (int64_t)low;
    v->high = (int64_t)high;
    v->zero = (int64_t)zero;
    return true;
}

static bool types_of(module_state *st, PyObject *dict, cfx_backend_types *t)
{
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "the types of a backend's pattern are dicts");
        return false;
    }
    PyObject *each_run = PyDict_GetItemString(dict, "each_run");
    t->each_run = each_run && PyObject_IsTrue(each_run) > 0;
    return value_of(st, dict, "input", &t->input) && value_of(st, dict, "output", &t->output) &&
           value_of(st, dict, "weight", &t->weight);
}

/* Adds one pattern; false with an exception. `names` keeps the texts. */
static bool add(module_state *st, cfx_backend *b, PyObject *item, PyObject *names)
{
    const char *calls[MOST_CALLS];
    cfx_backend_types types[MOST_TYPES];
    PyObject *of_calls, *of_types;
    cfx_error err = {0};
    int result;
    if (!PyTuple_Check(item) ||
        !PyArg_ParseTuple(item, "O!iO!:pattern", &PyTuple_Type, &of_calls, &result, &PyList_Type,
                          &of_types))
        return false;
    cfx_backend_pattern p = {.calls = calls, .types = types, .result = (cfx_backend_result)result,
                             .n_calls = (size_t)PyTuple_GET_SIZE(of_calls),
                             .n_types = (size_t)PyList_GET_SIZE(of_types)};
    if (p.n_calls > MOST_CALLS || p.n_types > MOST_TYPES) {
        PyErr_Format(PyExc_ValueError, "a pattern of a backend config has at most %d calls and %d "
                     "dtype configs", MOST_CALLS, MOST_TYPES);
        return false;
    }
    for (size_t i = 0; i < p.n_calls; i++) {
        PyObject *name = type_name(st, PyTuple_GET_ITEM(of_calls, (Py_ssize_t)i));
        const bool kept = name && PyList_Append(names, name) == 0;
        calls[i] = kept ? PyUnicode_AsUTF8(name) : NULL;
        Py_XDECREF(name);
        if (!calls[i])
            return false;
    }
    for (size_t i = 0; i < p.n_types; i++)
        if (!types_of(st, PyList_GET_ITEM(of_types, (Py_ssize_t)i), &types[i]))
            return false;
    if (cfx_backend_add(b, &p, &err) == CFX_OK)
        return true;
    raise_cfx(&err);
    return false;
}

bool backend_from_py(module_state *st, PyObject *list, cfx_backend **backend)
{
    cfx_error err = {0};
    *backend = NULL;
    if (list == Py_None)
        return true;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a backend is a list of patterns, or None");
        return false;
    }
    PyObject *names = PyList_New(0);
    *backend = names ? cfx_backend_new(NULL, &err) : NULL;
    bool ok = *backend != NULL;
    if (names && !ok)
        raise_cfx(&err);
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(list); i++)
        ok = add(st, *backend, PyList_GET_ITEM(list, i), names);
    Py_XDECREF(names);
    if (!ok) {
        cfx_backend_free(*backend);
        *backend = NULL;
    }
    return ok;
}
