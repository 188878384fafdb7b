/* datum.c - Python objects to run-time data and back: the only place that knows both. */
#include "base/pycfx.h"

#include <cfx/embed/tensor.h>

static const cfx_datum invalid = {.kind = CFX_DATUM_INVALID};

static cfx_datum checked(cfx_datum d, const cfx_error *err)
{
    if (d.kind == CFX_DATUM_INVALID)
        raise_cfx(err);
    return d;
}

/* ---- texts and tokens ---------------------------------------------------------------------- */

static cfx_datum text_datum(cfx_datum_kind kind, PyObject *str)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep;
    const char *text = utf8_of(str, &size, &keep);
    if (!text)
        return invalid;
    cfx_datum d = checked(cfx_datum_from_text(kind, text, (size_t)size, NULL, &err), &err);
    Py_XDECREF(keep);
    return d;
}

static cfx_datum_kind kind_of_token(cfx_kind kind)
{
    return kind == CFX_KIND_DTYPE    ? CFX_DATUM_DTYPE
           : kind == CFX_KIND_LAYOUT ? CFX_DATUM_LAYOUT
           : kind == CFX_KIND_DEVICE ? CFX_DATUM_DEVICE
                                     : CFX_DATUM_MEMORY_FORMAT;
}

/* torch's dtypes, layouts, memory formats and devices; `row` is what _register_tokens keeps. */
static cfx_datum token_datum(PyObject *o, PyObject *row)
{
    PyObject *numbers = PyTuple_GET_ITEM(row, 1);
    cfx_datum_kind kind = kind_of_token((cfx_kind)PyLong_AsLong(PyTuple_GET_ITEM(row, 0)));
    if (kind == CFX_DATUM_DEVICE) {
        PyObject *name = PyObject_Str(o);
        cfx_datum d = name ? text_datum(CFX_DATUM_DEVICE, name) : invalid;
        Py_XDECREF(name);
        return d;
    }
    PyObject *number = PyDict_GetItemWithError(numbers, o);
    if (!number) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%R is not supported by cfx", o);
        return invalid;
    }
    return cfx_datum_scalar(kind, PyLong_AsLong(number));
}

/* A token that is known by its name, without torch (cfx._glue.Name). */
static cfx_datum name_datum(PyObject *o)
{
    int kind = 0;
    const char *name = NULL;
    cfx_datum d = invalid;
    PyObject *token = PyObject_GetAttrString(o, "token");
    if (token && token != Py_None && PyArg_ParseTuple(token, "is:token", &kind, &name)) {
        for (int64_t i = 0; token_name((cfx_kind)kind, i); i++)
            if (strcmp(token_name((cfx_kind)kind, i), name) == 0)
                d = cfx_datum_scalar(kind_of_token((cfx_kind)kind), i);
    } else if (token == Py_None) {
        d = text_datum(CFX_DATUM_STR, o);
    }
    Py_XDECREF(token);
    if (d.kind == CFX_DATUM_INVALID && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "'%S' is not supported by cfx", o);
    return d;
}

/* Python's types of numbers stand for element types, as in torch. */
static int dtype_of_class(PyObject *o)
{
    return o == (PyObject *)&PyFloat_Type     ? CFX_DTYPE_FLOAT64
           : o == (PyObject *)&PyLong_Type    ? CFX_DTYPE_INT64
           : o == (PyObject *)&PyBool_Type    ? CFX_DTYPE_BOOL
           : o == (PyObject *)&PyComplex_Type ? CFX_DTYPE_COMPLEX128
                                              : -1;
}

bool dtype_from_py(module_state *st, PyObject *o, cfx_dtype *dtype)
{
    arrays_seen seen = {0};
    if (PyUnicode_Check(o) && !is_name(st, o)) {
        for (int i = 0; i < CFX_DTYPE_COUNT; i++)
            if (PyUnicode_CompareWithASCIIString(o, cfx_dtype_name((cfx_dtype)i)) == 0) {
                *dtype = (cfx_dtype)i;
                return true;
            }
        PyErr_Format(PyExc_ValueError, "'%U' is not the name of a dtype", o);
        return false;
    }
    cfx_datum d = datum_from_py(st, o, &seen);
    if (d.kind == CFX_DATUM_DTYPE)
        *dtype = (cfx_dtype)d.as.i;
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R is not a dtype", o);
    cfx_datum_release(d);
    return d.kind == CFX_DATUM_DTYPE;
}

/* ---- containers ---------------------------------------------------------------------------- */

/* Says which row's results are of that type: 0 for none. */
static bool note_row(module_state *st, PyObject *type, cfx_operator row)
{
    PyObject *number = PyDict_GetItemWithError(st->result_rows, type);
    if (number || PyErr_Occurred())
        return number != NULL;
    number = PyLong_FromLong(row);
    const bool fine = number && PyDict_SetItem(st->result_rows, type, number) == 0;
    Py_XDECREF(number);
    return fine;
}

/* The row whose results a torch.Size or a named tuple of torch.return_types is; -1 with an
 * exception. */
static int row_of_tuple(module_state *st, PyObject *o)
{
    PyObject *type = (PyObject *)Py_TYPE(o);
    PyObject *row = PyDict_GetItemWithError(st->result_rows, type);
    if (row)
        return (int)PyLong_AsLong(row);
    if (PyErr_Occurred())
        return -1;
    if (strncmp(Py_TYPE(o)->tp_name, "torch.", 6) != 0)
        return CFX_OPID_NONE;
    PyObject *text = call_glue(st, "result_row", type);
    const char *id = text && text != Py_None ? PyUnicode_AsUTF8(text) : NULL;
    const cfx_operator found = id ? cfx_operator_parse(id) : CFX_OPID_NONE;
    const bool fine = text && !PyErr_Occurred() && note_row(st, type, found);
    Py_XDECREF(text);
    return fine ? (int)found : -1;
}

enum { SOME = 16 };  /* items on the stack */

/* The container of items[0 .. n): they are released. `ok`: whether all were made. */
static cfx_datum container(cfx_datum_kind kind, cfx_datum *items, size_t n, bool ok)
{
    cfx_error err = {0};
    cfx_datum d = ok ? checked(cfx_datum_seq(kind, items, n, NULL, &err), &err) : invalid;
    while (n-- > 0)
        cfx_datum_release(items[n]);
    return d;
}

/* A list, tuple or any other PySequence_Fast; converting an item may run Python code. */
static cfx_datum seq_datum(module_state *st, PyObject *o, cfx_datum_kind kind, arrays_seen *seen)
{
    cfx_datum some[SOME];
    size_t room = (size_t)PySequence_Fast_GET_SIZE(o);
    cfx_datum *items = room <= SOME ? some : PyMem_New(cfx_datum, room);
    if (!items) {
        PyErr_NoMemory();
        return invalid;
    }
    size_t n = 0;
    bool ok = true;
    while (ok && n < room && (Py_ssize_t)n < PySequence_Fast_GET_SIZE(o)) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, (Py_ssize_t)n));
        items[n] = datum_from_py(st, item, seen);
        Py_DECREF(item);
        ok = items[n].kind != CFX_DATUM_INVALID;
        n += ok;
    }
    cfx_datum d = container(kind, items, n, ok);
    if (items != some)
        PyMem_Free(items);
    return d;
}

static cfx_datum tuple_datum(module_state *st, PyObject *o, arrays_seen *seen)
{
    const int row = PyTuple_CheckExact(o) ? CFX_OPID_NONE : row_of_tuple(st, o);
    cfx_datum d = row >= 0 ? seq_datum(st, o, CFX_DATUM_TUPLE, seen) : invalid;
    if (row > 0)
        cfx_datum_set_row(d, (uint32_t)row);
    return d;
}

static cfx_datum dict_datum(module_state *st, PyObject *o, arrays_seen *seen)
{
    PyObject *pairs = PyDict_Items(o);
    PyObject *flat = pairs ? PyList_New(0) : NULL;
    bool ok = flat != NULL;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        ok = PyList_Append(flat, PyTuple_GET_ITEM(pair, 0)) == 0 &&
             PyList_Append(flat, PyTuple_GET_ITEM(pair, 1)) == 0;
    }
    cfx_datum d = ok ? seq_datum(st, flat, CFX_DATUM_DICT, seen) : invalid;
    Py_XDECREF(flat);
    Py_XDECREF(pairs);
    return d;
}

static cfx_datum slice_datum(module_state *st, PySliceObject *slice, arrays_seen *seen)
{
    PyObject *parts = PyTuple_Pack(3, slice->start, slice->stop, slice->step);
    cfx_datum d = parts ? seq_datum(st, parts, CFX_DATUM_SLICE, seen) : invalid;
    Py_XDECREF(parts);
    return d;
}

/* ---- to data ------------------------------------------------------------------------------- */

static cfx_datum int_datum(PyObject *o)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow)
        return i == -1 && PyErr_Occurred() ? invalid : cfx_datum_int(i);
    PyErr_Format(PyExc_OverflowError, "%R does not fit into 64 bits", o);
    return invalid;
}

/* Numbers of other classes: numpy's scalars. */
static cfx_datum number_datum(PyObject *o)
{
    if (PyIndex_Check(o)) {
        PyObject *number = PyNumber_Index(o);
        cfx_datum d = number ? int_datum(number) : invalid;
        Py_XDECREF(number);
        return d;
    }
    if (strcmp(Py_TYPE(o)->tp_name, "numpy.bool") == 0) {
        int truth = PyObject_IsTrue(o);
        return truth < 0 ? invalid : cfx_datum_bool(truth);
    }
    double f = PyFloat_AsDouble(o);
    return f == -1 && PyErr_Occurred() ? invalid : cfx_datum_float(f);
}

static bool is_number_like(PyObject *o)
{
    PyNumberMethods *number = Py_TYPE(o)->tp_as_number;
    return number && (number->nb_index || number->nb_float);
}

static cfx_datum other_datum(module_state *st, PyObject *o, arrays_seen *seen)
{
    if (dtype_of_class(o) >= 0)
        return cfx_datum_dtype((cfx_dtype)dtype_of_class(o));
    PyObject *row = PyDict_GetItemWithError(st->token_types, (PyObject *)Py_TYPE(o));
    if (row || PyErr_Occurred())
        return row ? token_datum(o, row) : invalid;
    bool shares = has_attribute((PyObject *)Py_TYPE(o), st->str_dlpack);
    if (!shares && is_number_like(o))
        return number_datum(o);
    if (shares || (PyObject_CheckBuffer(o) && !PyBytes_Check(o))) {
        cfx_tensor *t = tensor_from_py(st, o, seen);
        return cfx_datum_tensor(t);
    }
    PyErr_Format(PyExc_TypeError, "cfx cannot compute with %R", (PyObject *)Py_TYPE(o));
    return invalid;
}

static cfx_datum container_datum(module_state *st, PyObject *o, arrays_seen *seen)
{
    if (PyTuple_Check(o))
        return tuple_datum(st, o, seen);
    if (PyList_Check(o))
        return seq_datum(st, o, CFX_DATUM_LIST, seen);
    if (PyDict_Check(o))
        return dict_datum(st, o, seen);
    if (PySlice_Check(o))
        return slice_datum(st, (PySliceObject *)o, seen);
    if (Py_TYPE(o) != &PyRange_Type)
        return other_datum(st, o, seen);
    PyObject *list = PySequence_List(o);
    cfx_datum d = list ? seq_datum(st, list, CFX_DATUM_LIST, seen) : invalid;
    Py_XDECREF(list);
    return d;
}

/* A tensor or container: the same object is the same datum, so that C sees it as one. */
static cfx_datum object_datum(module_state *st, PyObject *o, arrays_seen *seen)
{
    const bool before = seen->copied;
    cfx_datum d;
    if (seen->both && crossing_datum(seen->both, o, &d))
        return d;
    seen->copied = false;
    cfx_tensor *t = array_from_py(st, o, seen);
    if (t || PyErr_Occurred()) {
        d = cfx_datum_tensor(t);
    } else if (enter_nested(" while reading an argument")) {
        d = invalid;
    } else {
        d = container_datum(st, o, seen);
        leave_nested();
    }
    const bool itself = d.kind != CFX_DATUM_TENSOR || !seen->copied;
    seen->copied = seen->copied || before;
    if (seen->both && itself && d.kind != CFX_DATUM_INVALID && !crossing_add(seen->both, o, d)) {
        cfx_datum_release(d);
        return invalid;
    }
    return d;
}

cfx_datum datum_from_py(module_state *st, PyObject *o, arrays_seen *seen)
{
    if (o == Py_None)
        return cfx_datum_none();
    if (PyBool_Check(o))
        return cfx_datum_bool(o == Py_True);
    if (PyLong_Check(o))
        return int_datum(o);
    if (PyFloat_Check(o))
        return cfx_datum_float(PyFloat_AS_DOUBLE(o));
    if (PyComplex_Check(o))
        return cfx_datum_complex(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
    if (o == Py_Ellipsis)
        return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    if (PyUnicode_Check(o))
        return is_name(st, o) ? name_datum(o) : text_datum(CFX_DATUM_STR, o);
    return object_datum(st, o, seen);
}

/* ---- from data ----------------------------------------------------------------------------- */

PyObject *data_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = datum_back_to_py(st, items[i], kind, both);
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dict_of(PyObject *list)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i + 1 < PyList_GET_SIZE(list); i += 2)
        if (PyDict_SetItem(dict, PyList_GET_ITEM(list, i), PyList_GET_ITEM(list, i + 1)) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* A tuple, given up, as what PyTorch gives for the results of that row: sizes, or items that have
 * names. */
static PyObject *tuple_of_row(module_state *st, PyObject *tuple, cfx_operator row, array_kind kind)
{
    PyObject *key = Py_BuildValue("(si)", cfx_operator_name(row), kind == ARRAY_TORCH);
    PyObject *make = key ? PyDict_GetItemWithError(st->result_types, key) : NULL;
    Py_XINCREF(make);
    if (key && !make && !PyErr_Occurred()) {
        make = call_glue(st, "result_type", key);
        if (make && PyDict_SetItem(st->result_types, key, make) < 0)
            Py_CLEAR(make);
    }
    PyObject *result = NULL;
    if (make && tuple)
        result = make == Py_None ? Py_NewRef(tuple) : PyObject_CallOneArg(make, tuple);
    if (result && make != Py_None && !note_row(st, (PyObject *)Py_TYPE(result), row))
        Py_CLEAR(result);
    Py_XDECREF(make);
    Py_XDECREF(key);
    Py_XDECREF(tuple);
    return result;
}

static PyObject *seq_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both)
{
    PyObject *list = data_to_py(st, d, kind, both);
    PyObject *result = list;
    const cfx_operator row = (cfx_operator)cfx_datum_row(d);
    if (!list || d.kind == CFX_DATUM_LIST)
        return list;
    if (d.kind == CFX_DATUM_TUPLE)
        result = row ? tuple_of_row(st, PyList_AsTuple(list), row, kind) : PyList_AsTuple(list);
    else if (d.kind == CFX_DATUM_DICT)
        result = dict_of(list);
    else
        result = PySlice_New(PyList_GET_ITEM(list, 0), PyList_GET_ITEM(list, 1),
                             PyList_GET_ITEM(list, 2));
    Py_DECREF(list);
    return result;
}

/* torch's object, or its name where torch is not loaded. */
static PyObject *token_to_py(module_state *st, cfx_kind kind, const char *name)
{
    PyObject *key = Py_BuildValue("(is)", (int)kind, name);
    PyObject *token = key ? call_glue(st, "token", key) : NULL;
    Py_XDECREF(key);
    return token;
}

static PyObject *new_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both)
{
    size_t size;
    const char *text = cfx_datum_text(d, &size);
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_NONE: Py_RETURN_NONE;
    case CFX_DATUM_ELLIPSIS: return Py_NewRef(Py_Ellipsis);
    case CFX_DATUM_BOOL: return PyBool_FromLong(d.as.b);
    case CFX_DATUM_INT: return PyLong_FromLongLong(d.as.i);
    case CFX_DATUM_FLOAT: return PyFloat_FromDouble(d.as.f);
    case CFX_DATUM_COMPLEX: return PyComplex_FromDoubles(d.as.c[0], d.as.c[1]);
    case CFX_DATUM_DTYPE:
        return token_to_py(st, CFX_KIND_DTYPE, token_name(CFX_KIND_DTYPE, d.as.i));
    case CFX_DATUM_LAYOUT:
        return token_to_py(st, CFX_KIND_LAYOUT, token_name(CFX_KIND_LAYOUT, d.as.i));
    case CFX_DATUM_MEMORY_FORMAT:
        return token_to_py(st, CFX_KIND_MEMORY_FORMAT, token_name(CFX_KIND_MEMORY_FORMAT, d.as.i));
    case CFX_DATUM_DEVICE: return token_to_py(st, CFX_KIND_DEVICE, text);
    case CFX_DATUM_STR: return str_from_utf8(text, size);
    case CFX_DATUM_TENSOR: return tensor_to_py(st, d.as.tensor, kind);
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT:
    case CFX_DATUM_SLICE: return seq_to_py(st, d, kind, both);
    case CFX_DATUM_INVALID:
    case CFX_DATUM_REGION: break;
    }
    return PyErr_Format(PyExc_TypeError, "a result of kind '%s' cannot be converted to a Python "
                        "object",
                        cfx_datum_kind_name((cfx_datum_kind)d.kind));
}

PyObject *datum_back_to_py(module_state *st, cfx_datum d, array_kind kind, crossing *both)
{
    PyObject *object = both ? crossing_object(both, d) : NULL;
    if (object)
        return Py_NewRef(object);
    object = new_to_py(st, d, kind, both);
    if (object && both && !crossing_add(both, object, d))
        Py_CLEAR(object);
    return object;
}

PyObject *datum_to_py(module_state *st, cfx_datum d, array_kind kind)
{
    return datum_back_to_py(st, d, kind, NULL);
}
