/* tensor.c - cfx.Tensor: an array of numbers that shares memory with other libraries' arrays. */
#include "base/pycfx.h"

#include <structmember.h>

PyObject *tensor_wrap(module_state *st, cfx_tensor *t)
{
    PyTypeObject *type = (PyTypeObject *)st->TensorType;
    PyTensor *self = t ? (PyTensor *)type->tp_alloc(type, 0) : NULL;
    if (self)
        self->t = t;
    else
        cfx_tensor_release(t);
    return (PyObject *)self;
}

static void tensor_dealloc(PyTensor *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->weak)
        PyObject_ClearWeakRefs((PyObject *)self);
    cfx_tensor_release(self->t);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- from numbers and lists ---------------------------------------------------------------- */

typedef struct nested {
    module_state *st;
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    cfx_dtype dtype;  /* the least that holds all numbers */
    char *next;       /* where the next element goes */
} nested;

static bool is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

/* A number of Python's or numpy's; a tensor of one element counts as one. */
static bool number_of(nested *nest, PyObject *o, cfx_datum *out)
{
    arrays_seen seen = {0};
    *out = datum_from_py(nest->st, o, &seen);
    if (out->kind == CFX_DATUM_TENSOR && !cfx_tensor_is_abstract(out->as.tensor) &&
        cfx_tensor_numel(out->as.tensor) == 1) {
        cfx_datum number = cfx_datum_load(cfx_tensor_dtype(out->as.tensor),
                                          cfx_tensor_data(out->as.tensor));
        cfx_datum_release(*out);
        *out = number;
    }
    if (out->kind >= CFX_DATUM_BOOL && out->kind <= CFX_DATUM_COMPLEX)
        return true;
    cfx_datum_release(*out);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a number, got %R", (PyObject *)Py_TYPE(o));
    return false;
}

static bool measure(nested *nest, PyObject *o, size_t depth)
{
    static const cfx_dtype by_kind[] = {CFX_DTYPE_BOOL, CFX_DTYPE_INT64, CFX_DTYPE_FLOAT32,
                                        CFX_DTYPE_COMPLEX64};
    if (!is_list(o)) {
        cfx_datum number;
        if (depth != nest->ndim) {
            PyErr_SetString(PyExc_ValueError, "expected a list, got a number");
            return false;
        }
        if (!number_of(nest, o, &number))
            return false;
        cfx_dtype dtype = by_kind[number.kind - CFX_DATUM_BOOL];
        nest->dtype = dtype > nest->dtype ? dtype : nest->dtype;
        return true;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (depth >= nest->ndim || n != nest->sizes[depth]) {
        PyErr_Format(PyExc_ValueError, "lists have different lengths at dimension %zu", depth);
        return false;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < n && i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));  /* __index__ may empty `o` */
        good = measure(nest, item, depth + 1);
        Py_DECREF(item);
    }
    return good;
}

static bool fill(nested *nest, PyObject *o, char *end)
{
    cfx_datum number;
    if (!is_list(o)) {
        if (nest->next >= end || !number_of(nest, o, &number))
            return false;
        cfx_datum_store(number, nest->dtype, nest->next);
        nest->next += cfx_dtype_size(nest->dtype);
        return true;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));
        good = fill(nest, item, end);
        Py_DECREF(item);
    }
    return good;
}

/* `dtype` is -1 for what the numbers need. */
static cfx_tensor *tensor_from_nest(module_state *st, PyObject *o, int dtype)
{
    cfx_error err = {0};
    nested nest = {.st = st, .dtype = CFX_DTYPE_BOOL};
    for (PyObject *at = o; is_list(at); at = PySequence_Fast_GET_ITEM(at, 0)) {
        if (nest.ndim == CFX_MAX_DIMS)
            return (void *)PyErr_Format(PyExc_RuntimeError, "lists nest deeper than %d",
                                        CFX_MAX_DIMS);
        nest.sizes[nest.ndim++] = PySequence_Fast_GET_SIZE(at);
        if (PySequence_Fast_GET_SIZE(at) == 0) {
            nest.dtype = CFX_DTYPE_FLOAT32;
            break;
        }
    }
    if (!measure(&nest, o, 0))
        return NULL;
    if (dtype >= 0)
        nest.dtype = (cfx_dtype)dtype;
    cfx_tensor *t = cfx_tensor_new(nest.dtype, nest.sizes, nest.ndim, NULL, &err);
    if (!t)
        return (void *)raise_cfx(&err);
    nest.next = cfx_tensor_data(t);
    char *end = nest.next + (size_t)cfx_tensor_numel(t) * cfx_dtype_size(nest.dtype);
    if (fill(&nest, o, end) && nest.next == end)
        return t;
    cfx_tensor_release(t);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the list changed while it was read");
    return NULL;
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "dtype", NULL};
    module_state *st = state_of(type);
    PyObject *o;
    PyObject *wanted = Py_None;
    cfx_dtype dtype = CFX_DTYPE_COUNT;
    arrays_seen seen = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Tensor", names, &o, &wanted) ||
        (wanted != Py_None && !dtype_from_py(st, wanted, &dtype)))
        return NULL;
    if (is_list(o) || PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o))
        return tensor_wrap(st, tensor_from_nest(st, o, wanted != Py_None ? (int)dtype : -1));
    cfx_tensor *t = tensor_from_py(st, o, &seen);
    if (!t || wanted == Py_None || cfx_tensor_dtype(t) == dtype)
        return tensor_wrap(st, t);
    cfx_tensor_release(t);
    return PyErr_Format(PyExc_TypeError, "the tensor's dtype is not %s; convert it with "
                        "cfx.ops.to", cfx_dtype_name(dtype));
}

/* ---- reading ------------------------------------------------------------------------------- */

static PyObject *extents(const int64_t *values, size_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, number);
    }
    return tuple;
}

static PyObject *get_shape(PyTensor *self, void *unused)
{
    (void)unused;
    return extents(cfx_tensor_sizes(self->t), cfx_tensor_ndim(self->t));
}

static PyObject *get_strides(PyTensor *self, void *unused)
{
    (void)unused;
    return extents(cfx_tensor_strides(self->t), cfx_tensor_ndim(self->t));
}

static PyObject *get_ndim(PyTensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(cfx_tensor_ndim(self->t));
}

static PyObject *get_dtype(PyTensor *self, void *unused)
{
    (void)unused;
    return datum_to_py(state_of(Py_TYPE(self)), cfx_datum_dtype(cfx_tensor_dtype(self->t)),
                       ARRAY_CFX);
}

static PyObject *get_read_only(PyTensor *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(cfx_tensor_is_read_only(self->t));
}

static PyObject *tensor_numel(PyTensor *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(cfx_tensor_numel(self->t));
}

static PyObject *tensor_data_ptr(PyTensor *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(cfx_tensor_numel(self->t) ? cfx_tensor_data(self->t) : NULL);
}

static PyObject *tensor_is_contiguous(PyTensor *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(cfx_tensor_is_contiguous(self->t));
}

static bool expect_elements(const cfx_tensor *t)
{
    if (cfx_tensor_is_abstract(t))
        PyErr_SetString(PyExc_ValueError, "the tensor has only a shape, no elements");
    return !cfx_tensor_is_abstract(t);
}

static PyObject *tensor_item(PyTensor *self, PyObject *unused)
{
    (void)unused;
    if (!expect_elements(self->t))
        return NULL;
    if (cfx_tensor_numel(self->t) != 1)
        return PyErr_Format(PyExc_RuntimeError,
                            "a Tensor with %lld elements cannot be converted to Scalar",
                            (long long)cfx_tensor_numel(self->t));
    return datum_to_py(NULL, cfx_datum_load(cfx_tensor_dtype(self->t), cfx_tensor_data(self->t)),
                       ARRAY_CFX);
}

static PyObject *to_list(const cfx_tensor *t, size_t dim, const char *at)
{
    if (dim == cfx_tensor_ndim(t))
        return datum_to_py(NULL, cfx_datum_load(cfx_tensor_dtype(t), at), ARRAY_CFX);
    int64_t n = cfx_tensor_sizes(t)[dim];
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *item = to_list(t, dim + 1, at + i * cfx_tensor_strides(t)[dim]);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyObject *tensor_tolist(PyTensor *self, PyObject *unused)
{
    (void)unused;
    return expect_elements(self->t) ? to_list(self->t, 0, cfx_tensor_data(self->t)) : NULL;
}

static PyObject *tensor_repr(PyTensor *self)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    PyObject *result = NULL;
    if (cfx_tensor_print(self->t, cfx_buffer_sink(&text), &err) == CFX_OK)
        result = str_from_utf8(text.data, text.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    return result;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static PyObject *converted(PyTensor *self, PyObject *convert(PyObject *))
{
    PyObject *number = tensor_item(self, NULL);
    PyObject *result = number ? convert(number) : NULL;
    Py_XDECREF(number);
    return result;
}

static PyObject *tensor_int(PyTensor *self) { return converted(self, PyNumber_Long); }
static PyObject *tensor_float(PyTensor *self) { return converted(self, PyNumber_Float); }

static PyObject *tensor_index(PyTensor *self)
{
    cfx_dtype dtype = cfx_tensor_dtype(self->t);
    if (dtype == CFX_DTYPE_BOOL || cfx_dtype_is_integer(dtype))
        return converted(self, PyNumber_Long);
    return PyErr_Format(PyExc_TypeError, "only integer tensors of a single element can be "
                        "converted to an index");
}

static int tensor_bool(PyTensor *self)
{
    PyObject *number = tensor_item(self, NULL);
    int truth = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return truth;
}

static Py_ssize_t tensor_length(PyTensor *self)
{
    if (cfx_tensor_ndim(self->t) > 0)
        return (Py_ssize_t)cfx_tensor_sizes(self->t)[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

static PyObject *tensor_getitem(PyTensor *self, PyObject *key)
{
    module_state *st = state_of(Py_TYPE(self));
    arrays_seen seen = {0};
    cfx_datum args[2] = {cfx_datum_tensor(self->t), datum_from_py(st, key, &seen)};
    if (args[1].kind == CFX_DATUM_INVALID)
        return NULL;
    cfx_datum part = run_operator(st, CFX_OPID_getitem, args, 2);
    PyObject *result = part.kind == CFX_DATUM_INVALID ? NULL : datum_to_py(st, part, ARRAY_CFX);
    cfx_datum_release(part);
    cfx_datum_release(args[1]);
    return result;
}

/* ---- for others ---------------------------------------------------------------------------- */

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", CFX_DL_CPU, 0);
}

static PyObject *tensor_contiguous(PyTensor *self, PyObject *unused)
{
    (void)unused;
    if (cfx_tensor_is_contiguous(self->t))
        return Py_NewRef(self);
    module_state *st = state_of(Py_TYPE(self));
    cfx_datum arg = cfx_datum_tensor(self->t);
    cfx_datum dense = run_operator(st, CFX_OPID_contiguous, &arg, 1);
    return dense.kind == CFX_DATUM_TENSOR ? tensor_wrap(st, dense.as.tensor) : NULL;
}

static PyObject *tensor_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    static const char *const names[] = {"dtype", "copy"};
    static const arg_spec spec = {"__array__", names, 2, 0, 2};
    PyObject *given[2];
    if (!take_args(&spec, args, nargs, kwnames, given))
        return NULL;
    PyObject *array = tensor_numpy(self, NULL);
    PyObject *numpy = array ? PyImport_ImportModule("numpy") : NULL;
    PyObject *result = NULL;
    if (numpy)  /* it knows what its arguments mean */
        result = PyObject_CallMethod(numpy, given[1] == Py_True ? "array" : "asarray", "OO", array,
                                     given[0] ? given[0] : Py_None);
    Py_XDECREF(numpy);
    Py_XDECREF(array);
    return result;
}

static PyMethodDef methods[] = {
    {"numel", (PyCFunction)tensor_numel, METH_NOARGS,
     SIGNED("numel($self, /)", "How many elements.")},
    {"data_ptr", (PyCFunction)tensor_data_ptr, METH_NOARGS,
     SIGNED("data_ptr($self, /)", "The address of the first element.")},
    {"is_contiguous", (PyCFunction)tensor_is_contiguous, METH_NOARGS,
     SIGNED("is_contiguous($self, /)", "Whether the elements lie row by row, without gaps.")},
    {"item", (PyCFunction)tensor_item, METH_NOARGS,
     SIGNED("item($self, /)", "The only element, as a number.")},
    {"tolist", (PyCFunction)tensor_tolist, METH_NOARGS,
     SIGNED("tolist($self, /)", "The elements, in lists of lists.")},
    {"contiguous", (PyCFunction)tensor_contiguous, METH_NOARGS,
     SIGNED("contiguous($self, /)", "Itself, or a contiguous copy.")},
    {"numpy", tensor_numpy, METH_NOARGS,
     SIGNED("numpy($self, /)", "A numpy array that shares the memory.")},
    {"torch", tensor_torch, METH_NOARGS,
     SIGNED("torch($self, /)", "A torch tensor that shares the memory.")},
    {"__array__", FAST(tensor_array), SIGNED("__array__($self, dtype=None, copy=None)", "")},
    {"__dlpack__", FAST(tensor_dlpack),
     SIGNED("__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)", "")},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     SIGNED("__dlpack_device__($self, /)", "")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"shape", (getter)get_shape, NULL, NULL, NULL},
    {"strides", (getter)get_strides, NULL, "In bytes.", NULL},
    {"ndim", (getter)get_ndim, NULL, NULL, NULL},
    {"dtype", (getter)get_dtype, NULL, "torch's dtype, or its name where torch is not loaded.",
     NULL},
    {"read_only", (getter)get_read_only, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, SIGNED("Tensor(obj, /, dtype=None)",
                       "An array of numbers over the memory of `obj`: of anything with __dlpack__ "
                       "or the buffer protocol.\nNumbers and lists of them are copied.")},
    {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_nb_int, tensor_int},
    {Py_nb_float, tensor_float},
    {Py_nb_index, tensor_index},
    {Py_nb_bool, tensor_bool},
    {Py_mp_length, tensor_length},
    {Py_mp_subscript, tensor_getitem},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_bf_releasebuffer, tensor_releasebuffer},
    {0, NULL},
};

PyType_Spec tensor_spec = {
    .name = "cfx._core.Tensor",
    .basicsize = sizeof(PyTensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
