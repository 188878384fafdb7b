/* operators.c - the operator table, for Python: cfx.ops.find. */
#include "base/pycfx.h"

#include <cfx/ops.h>

/* ---- a row as a tuple ---------------------------------------------------------------------- */

static int add_text(PyObject *list, const char *text)
{
    PyObject *str = PyUnicode_FromString(text);
    int failed = str ? PyList_Append(list, str) : -1;
    Py_XDECREF(str);
    return failed;
}

static PyObject *spellings_of(cfx_operator op)
{
    char name[CFX_SPELLING_SIZE];
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && cfx_operator_spelling(op, i, name, NULL); i++)
        if (add_text(list, name) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *flags_of(cfx_operator op)
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && cfx_operator_flag_name(i); i++)
        if ((cfx_operator_flags(op) & 1u << i) && add_text(list, cfx_operator_flag_name(i)) < 0)
            Py_CLEAR(list);
    return list;
}

/* A list that the caller gives up, as a tuple. */
static PyObject *as_tuple(PyObject *list)
{
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *row_of(cfx_operator op)
{
    if (!cfx_operator_name(op))
        Py_RETURN_NONE;
    PyObject *flags = as_tuple(flags_of(op));
    PyObject *spellings = as_tuple(spellings_of(op));
    PyObject *row = flags && spellings
                        ? Py_BuildValue("(ssOO)", cfx_operator_name(op), cfx_operator_schema(op),
                                        flags, spellings)
                        : NULL;
    Py_XDECREF(flags);
    Py_XDECREF(spellings);
    return row;
}

/* ---- finding it ---------------------------------------------------------------------------- */

/* `ids`: whether a row's id counts as a name of it. */
static PyObject *row_of_name(PyObject *name, bool ids)
{
    PyObject *keep;
    const char *text = c_string_of(name, "the name of an operator", &keep);
    PyObject *row = NULL;
    if (text)
        row = row_of(ids ? cfx_operator_parse(text) : cfx_operator_find(text, strlen(text)));
    Py_XDECREF(keep);
    return row;
}

/* _operator(target): by a name, a function or class, a Node, or the row's number. */
PyObject *py_operator(PyObject *module, PyObject *target)
{
    module_state *st = PyModule_GetState(module);
    if (PyLong_Check(target)) {
        long number = PyLong_AsLong(target);
        return number == -1 && PyErr_Occurred() ? NULL : row_of((cfx_operator)number);
    }
    if (is_node(st, target))
        return row_of(cfx_node_operator(((PyNode *)target)->n));
    if (PyUnicode_Check(target))
        return row_of_name(target, true);
    PyObject *name = object_name(st, target);
    if (!name && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();  /* what has no name is in no row */
        Py_RETURN_NONE;
    }
    if (!name || name == Py_None)
        return name;
    PyObject *row = row_of_name(name, false);
    Py_DECREF(name);
    return row;
}
