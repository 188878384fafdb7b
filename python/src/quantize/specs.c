/* specs.c - the dict in which Python says how a value becomes integers. */
#include "quantize/quantizing.h"

static const char *const kinds[] = {
    [CFX_OBSERVE_NOTHING] = "nothing",     [CFX_OBSERVE_MIN_MAX] = "min_max",
    [CFX_OBSERVE_MOVING_AVERAGE] = "moving_average",
    [CFX_OBSERVE_HISTOGRAM] = "histogram", [CFX_OBSERVE_PERCENTILE] = "percentile",
    [CFX_OBSERVE_FIXED] = "fixed",         [CFX_OBSERVE_EACH_RUN] = "each_run",
    [CFX_OBSERVE_AS_INPUT] = "as_input",
};
static const char *const pers[] = {
    [CFX_PER_TENSOR] = "tensor", [CFX_PER_CHANNEL] = "channel", [CFX_PER_GROUP] = "group",
};
enum { KINDS = sizeof kinds / sizeof *kinds, PERS = sizeof pers / sizeof *pers };

/* The number of a word; -1 with an exception. */
static int word_from_py(PyObject *o, const char *field, const char *const *words, int n)
{
    for (int i = 0; PyUnicode_Check(o) && i < n; i++)
        if (PyUnicode_CompareWithASCIIString(o, words[i]) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "%R is not a word for '%s' of a quantization spec", o, field);
    return -1;
}

static bool integer(PyObject *o, int64_t *out)
{
    *out = PyLong_AsLongLong(o);
    return *out != -1 || !PyErr_Occurred();
}

static bool number(PyObject *o, double *out)
{
    *out = PyFloat_AsDouble(o);
    return *out != -1 || !PyErr_Occurred();
}

static bool set_field(const char *name, PyObject *o, cfx_quantize_spec *s)
{
    const struct { const char *name; int64_t *at; } integers[] = {
        {"low", &s->low}, {"high", &s->high}, {"axis", &s->axis}, {"group", &s->group},
        {"bins", &s->bins}, {"zero", &s->zero},
    };
    const struct { const char *name; double *at; } numbers[] = {
        {"eps", &s->eps}, {"averaging", &s->averaging}, {"percentile", &s->percentile},
        {"scale", &s->scale},
    };
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (strcmp(name, integers[i].name) == 0)
            return integer(o, integers[i].at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return number(o, numbers[i].at);
    if (strcmp(name, "symmetric") == 0) {
        const int yes = PyObject_IsTrue(o);
        s->symmetric = yes > 0;
        return yes >= 0;
    }
    if (strcmp(name, "per") == 0) {
        const int per = word_from_py(o, name, pers, PERS);
        s->per = (cfx_quantize_per)(per < 0 ? 0 : per);
        return per >= 0;
    }
    if (strcmp(name, "observer") == 0 || strcmp(name, "dtype") == 0)
        return true;  /* read before */
    PyErr_Format(PyExc_ValueError, "a quantization spec has no field '%s'", name);
    return false;
}

bool spec_from_py(module_state *st, PyObject *dict, cfx_quantize_spec *spec)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    *spec = (cfx_quantize_spec){.observer = CFX_OBSERVE_NOTHING};
    if (dict == Py_None)
        return true;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "a quantization spec must be a dict or None, not %.100s",
                     Py_TYPE(dict)->tp_name);
        return false;
    }
    PyObject *kind = PyDict_GetItemString(dict, "observer");
    PyObject *type = PyDict_GetItemString(dict, "dtype");
    if (!kind || !type) {
        PyErr_SetString(PyExc_ValueError, "a quantization spec needs 'observer' and 'dtype'");
        return false;
    }
    const int number_of_kind = word_from_py(kind, "observer", kinds, KINDS);
    cfx_dtype dtype;
    if (number_of_kind < 0 || !dtype_from_py(st, type, &dtype))
        return false;
    cfx_quantize_spec_default(spec, (cfx_observer_kind)number_of_kind, dtype);
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        if (!name || !set_field(name, value, spec))
            return false;
    }
    return true;
}

PyObject *spec_to_py(const cfx_quantize_spec *s)
{
    return Py_BuildValue(
        "{s:s,s:s,s:L,s:L,s:s,s:L,s:L,s:O,s:d,s:d,s:L,s:d,s:d,s:L}", "observer",
        kinds[s->observer], "dtype", cfx_dtype_name(s->dtype), "low", (long long)s->low, "high",
        (long long)s->high, "per", pers[s->per], "axis", (long long)s->axis, "group",
        (long long)s->group, "symmetric", s->symmetric ? Py_True : Py_False, "eps", s->eps,
        "averaging", s->averaging, "bins", (long long)s->bins, "percentile", s->percentile,
        "scale", s->scale, "zero", (long long)s->zero);
}
