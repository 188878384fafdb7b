/* witness.c - tensors of a run, and their sizes as numbers of the graph. */
#include "capture.h"

PyObject *witness_part(PyObject *witness, PyObject *name)
{
    PyObject *dict = instance_dict(witness);
    PyObject *part = dict ? PyDict_GetItemWithError(dict, name) : NULL;
    if (!part && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "this tensor of a captured run has no %U", name);
    return part;
}

/* ---- making one ---------------------------------------------------------------------------- */

/* What torch needs to know of the tensor that a witness stands for: a new dict. */
static PyObject *properties(module_state *st, PyObject *real)
{
    PyObject *const copied[] = {st->str_dtype, st->str_device, st->str_layout,
                                st->str_requires_grad};
    PyObject *named = PyDict_New();
    bool failed = !named || PyDict_SetItem(named, st->str_policy, st->str_sizes_policy) < 0;
    for (int i = 0; i < 4 && !failed; i++) {
        PyObject *value = PyObject_GetAttr(real, copied[i]);
        failed = !value || PyDict_SetItem(named, copied[i], value) < 0;
        if (!failed && copied[i] == st->str_layout && value == torch_part(st, TORCH_strided)) {
            PyObject *strides = PyObject_CallMethodNoArgs(real, st->str_stride);
            failed = !strides || PyDict_SetItem(named, st->str_strides, strides) < 0;
            Py_XDECREF(strides);
        }
        Py_XDECREF(value);
    }
    if (failed)
        Py_CLEAR(named);
    return named;
}

static PyObject *bare_witness(module_state *st, PyObject *real)
{
    PyObject *shape = PyObject_GetAttr(real, st->str_shape);
    PyObject *args = shape ? PyTuple_Pack(2, st->witness_class, shape) : NULL;
    PyObject *named = args ? properties(st, real) : NULL;
    PyObject *made = named ? PyObject_Call(torch_part(st, TORCH_make_wrapper), args, named) : NULL;
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(shape);
    return made;
}

PyObject *witness_new(PyRecorder *r, PyObject *node, PyObject *real)
{
    module_state *st = state_of(Py_TYPE(r));
    if (quiet_begin(r) < 0)
        return NULL;
    PyObject *made = bare_witness(st, real);
    quiet_end(r);
    PyObject *sizes = made ? PyDict_New() : NULL;
    if (!sizes || PyObject_SetAttr(made, st->str_recorder, (PyObject *)r) < 0 ||
        PyObject_SetAttr(made, st->str_own_node, node) < 0 ||
        PyObject_SetAttr(made, st->str_real, real) < 0 ||
        PyObject_SetAttr(made, st->str_sizes, sizes) < 0)
        Py_CLEAR(made);
    Py_XDECREF(sizes);
    return made;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Whether a size is one of those that do not change; -1 with an exception. */
static int is_fixed(const PyRecorder *r, PyObject *node, PyObject *dim)
{
    if (!PyDict_GET_SIZE(r->fixed))
        return 0;
    PyObject *key = PyTuple_Pack(2, node, dim);
    int known = key ? PyDict_Contains(r->fixed, key) : -1;
    Py_XDECREF(key);
    return known;
}

/* The Int of a size that nobody has asked for yet; or its value. `item`: which item it is of what
 * the program asked for, or -1 if it is all of that. */
static PyObject *new_size(PyRecorder *r, module_state *st, PyObject *node, PyObject *dim,
                          PyObject *value, Py_ssize_t item)
{
    PyObject *args = PyTuple_Pack(2, node, dim);
    PyObject *name = args && r->sizes_asked ? recorder_name(r, NULL, item) : NULL;
    PyObject *size = args ? recorder_node(r, CFX_OP_CALL_METHOD, st->str_size, args, NULL, name)
                          : NULL;
    PyObject *number = size ? number_new(st, r, size, value, false) : NULL;
    Py_XDECREF(size);
    Py_XDECREF(args);
    if (!number || !r->plain_sizes)
        return number_symbol(st, number);
    PyObject *plain = number_plain((PyNumber *)number, "torch");
    Py_DECREF(number);
    return plain;
}

/* `dim` is not negative; `value` is the size in this run; `item` as in new_size. */
static PyObject *size_in(PyRecorder *r, PyObject *witness, PyObject *dim, PyObject *value,
                         Py_ssize_t item)
{
    module_state *st = state_of(Py_TYPE(r));
    PyObject *known = witness_part(witness, st->str_sizes);
    PyObject *node = known ? witness_part(witness, st->str_own_node) : NULL;
    PyObject *found = node ? PyDict_GetItemWithError(known, dim) : NULL;
    if (found || PyErr_Occurred())
        return Py_XNewRef(found);
    int fixed = is_fixed(r, node, dim);
    if (fixed)
        return fixed < 0 ? NULL : Py_NewRef(value);
    PyObject *size = new_size(r, st, node, dim, value, item);
    /* While a function is evaluated, the node may be part of a region. */
    if (size && !r->evaluating && PyDict_SetItem(known, dim, size) < 0)
        Py_CLEAR(size);
    return size;
}

/* The sizes of the real tensor: a new tuple. */
static PyObject *real_shape(PyRecorder *r, PyObject *witness)
{
    module_state *st = state_of(Py_TYPE(r));
    PyObject *real = witness_part(witness, st->str_real);
    if (!real || quiet_begin(r) < 0)
        return NULL;
    PyObject *shape = PyObject_GetAttr(real, st->str_shape);
    quiet_end(r);
    return shape;
}

PyObject *witness_size(PyRecorder *r, PyObject *witness, PyObject *dim)
{
    PyObject *shape = real_shape(r, witness);
    Py_ssize_t n = shape ? PyTuple_GET_SIZE(shape) : 0;
    Py_ssize_t at = shape ? PyNumber_AsSsize_t(dim, PyExc_IndexError) : -1;
    PyObject *size = NULL;
    if (!shape || (at == -1 && PyErr_Occurred())) {
        Py_XDECREF(shape);
        return NULL;
    }
    if (at < -n || at >= n) {  /* torch words the error */
        PyObject *real = witness_part(witness, state_of(Py_TYPE(r))->str_real);
        size = real ? PyObject_CallMethod(real, "size", "n", at) : NULL;
    } else {
        at += at < 0 ? n : 0;
        PyObject *index = PyLong_FromSsize_t(at);
        size = index ? size_in(r, witness, index, PyTuple_GET_ITEM(shape, at), -1) : NULL;
        Py_XDECREF(index);
    }
    Py_DECREF(shape);
    return size;
}

PyObject *witness_sizes(PyRecorder *r, PyObject *witness)
{
    PyObject *shape = real_shape(r, witness);
    Py_ssize_t n = shape ? PyTuple_GET_SIZE(shape) : 0;
    PyObject *list = shape ? PyList_New(n) : NULL;
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *index = PyLong_FromSsize_t(i);
        PyObject *size = index ? size_in(r, witness, index, PyTuple_GET_ITEM(shape, i), i) : NULL;
        Py_XDECREF(index);
        if (size)
            PyList_SET_ITEM(list, i, size);
        else
            Py_CLEAR(list);
    }
    PyObject *sizes = list ? PyObject_CallOneArg(torch_part(state_of(Py_TYPE(r)), TORCH_Size), list)
                           : NULL;
    Py_XDECREF(list);
    Py_XDECREF(shape);
    return sizes;
}
