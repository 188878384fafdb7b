/* trace_arg.c - create_arg: any object as the argument of a node, with nodes for proxies.
 *
 * This is the way of tracers that override a step, and of those who call create_arg themselves.
 * Other tracers convert straight to values of the core (convert.c), and come here for leaves only.
 */
#include "trace.h"

PyObject *tracer_arg(PyTracer *t, PyObject *o)
{
    return t->overrides & STEP_create_arg ? call_step(t, STEP_INDEX_create_arg, &o, 1)
                                          : tracer_create_arg(t, o);
}

static PyObject *convert_items(PyTracer *t, PyObject *seq)
{
    PyObject *items = PySequence_Tuple(seq);
    PyObject *result = items ? PyTuple_New(PyTuple_GET_SIZE(items)) : NULL;
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = tracer_arg(t, PyTuple_GET_ITEM(items, i));
        if (!item)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, item);
    }
    Py_XDECREF(items);
    return result;
}

bool is_named_tuple(module_state *st, PyObject *o)
{
    return PyTuple_Check(o) && !PyTuple_CheckExact(o) && has_attribute(o, st->str_fields);
}

/* Tuples keep their class, classes of lists become plain ones. */
static PyObject *convert_sequence(PyTracer *t, PyObject *seq)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *items = convert_items(t, seq);
    PyObject *result;
    if (!items || PyTuple_CheckExact(seq))
        return items;
    if (PyList_Check(seq))
        result = PySequence_List(items);
    else if (is_named_tuple(st, seq))
        result = PyObject_Call((PyObject *)Py_TYPE(seq), items, NULL);
    else
        result = PyObject_CallOneArg((PyObject *)Py_TYPE(seq), items);
    Py_DECREF(items);
    return result;
}

static PyObject *convert_key(PyTracer *t, PyObject *key)
{
    module_state *st = state_of(Py_TYPE(t));
    if (find_proxy(st, key))
        refuse(st, "key", key);
    return PyErr_Occurred() ? NULL : tracer_arg(t, key);
}

static PyObject *convert_dict(PyTracer *t, PyObject *dict)
{
    PyObject *pairs = PyDict_Items(dict);
    PyObject *result = pairs ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        PyObject *key = convert_key(t, PyTuple_GET_ITEM(pair, 0));
        PyObject *value = key ? tracer_arg(t, PyTuple_GET_ITEM(pair, 1)) : NULL;
        if (!value || PyDict_SetItem(result, key, value) < 0)
            Py_CLEAR(result);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    Py_XDECREF(pairs);
    return result;
}

/* A slice or range: start, stop and step. */
static PyObject *convert_bounds(PyTracer *t, PyObject *o)
{
    static const char *const names[] = {"start", "stop", "step"};
    PyObject *parts = PyTuple_New(3);
    for (int i = 0; parts && i < 3; i++) {
        PyObject *part = PyObject_GetAttrString(o, names[i]);
        PyObject *item = part ? tracer_arg(t, part) : NULL;
        Py_XDECREF(part);
        if (!item)
            Py_CLEAR(parts);
        else
            PyTuple_SET_ITEM(parts, i, item);
    }
    PyObject *result = parts ? PyObject_CallObject((PyObject *)Py_TYPE(o), parts) : NULL;
    Py_XDECREF(parts);
    return result;
}

/* Plain values, and those of a class derived from one. */
static bool is_plain(PyObject *o)
{
    return o == Py_None || o == Py_Ellipsis || PyLong_Check(o) || PyFloat_Check(o) ||
           PyUnicode_Check(o) || PyComplex_Check(o);
}

bool is_numpy_scalar(PyObject *o)
{
    const char *name = Py_TYPE(o)->tp_name;
    return strncmp(name, "numpy.", 6) == 0 && strcmp(name, "numpy.ndarray") != 0 &&
           PyObject_HasAttrString(o, "item") && PyObject_HasAttrString(o, "dtype");
}

PyObject *tracer_leaf(PyTracer *t, PyObject *o)
{
    module_state *st = state_of(Py_TYPE(t));
    if (is_proxy(st, o))
        return proxy_node(st, o);
    if (is_plain(o) || PyDict_Contains(st->token_types, (PyObject *)Py_TYPE(o)) == 1 ||
        (t->script && PyType_Check(o)))  /* isinstance(x, torch.Tensor) */
        return Py_NewRef(o);
    if (t->script && is_numpy_scalar(o))
        return PyObject_CallMethod(o, "item", NULL);
    PyObject *pair = PyTuple_Pack(2, (PyObject *)t, o);
    PyObject *leaf = pair ? call_glue(st, "trace_leaf", pair) : NULL;
    Py_XDECREF(pair);
    return leaf;
}

PyObject *tracer_create_arg(PyTracer *t, PyObject *o)
{
    module_state *st = state_of(Py_TYPE(t));
    PyObject *result;
    if (enter_nested(" while reading the arguments of a call"))
        return NULL;
    if (is_full_tracer(st, t) && is_named_tuple(st, o))
        result = tracer_leaf(t, o);  /* it becomes a call of its class */
    else if (PyTuple_Check(o) || PyList_Check(o))
        result = convert_sequence(t, o);
    else if (PyDict_Check(o))
        result = convert_dict(t, o);
    else if (PySlice_Check(o) || Py_TYPE(o) == &PyRange_Type)
        result = convert_bounds(t, o);
    else if (is_node(st, o) || is_graph(st, o))
        result = Py_NewRef(o);
    else
        result = tracer_leaf(t, o);
    leave_nested();
    return result;
}
