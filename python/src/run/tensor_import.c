/* tensor_import.c - other libraries' arrays as tensors, sharing their memory: torch's by DLPack,
 * numpy's and Python's by the buffer protocol, others' by __dlpack__. */
#include "base/pycfx.h"

/* ---- DLPack -------------------------------------------------------------------------------- */

/* The tensor in a capsule, which is then used up. */
static cfx_tensor *from_capsule(PyObject *capsule)
{
    cfx_error err = {0};
    cfx_tensor *t = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        t = cfx_tensor_from_dlpack(PyCapsule_GetPointer(capsule, "dltensor_versioned"), NULL, &err);
        if (t && PyCapsule_SetName(capsule, "used_dltensor_versioned") == 0)
            return t;
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        t = cfx_tensor_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, "dltensor"), NULL,
                                               &err);
        if (t && PyCapsule_SetName(capsule, "used_dltensor") == 0)
            return t;
    } else {
        PyErr_Format(PyExc_TypeError, "__dlpack__ must return an unused DLPack capsule, not %R",
                     capsule);
        return NULL;
    }
    raise_cfx(&err);
    return NULL;
}

static cfx_tensor *from_dlpack_method(module_state *st, PyObject *o)
{
    PyObject *method = PyObject_GetAttr(o, st->str_dlpack);
    PyObject *kwargs = method ? Py_BuildValue("{O(ii)}", st->str_max_version, CFX_DL_MAJOR,
                                              CFX_DL_MINOR) : NULL;
    PyObject *capsule = kwargs ? PyObject_Call(method, st->empty_tuple, kwargs) : NULL;
    if (!capsule && kwargs && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();  /* a library from before version 1 knows no such keyword */
        capsule = PyObject_CallNoArgs(method);
    }
    cfx_tensor *t = capsule ? from_capsule(capsule) : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(kwargs);
    Py_XDECREF(method);
    return t;
}

/* ---- torch --------------------------------------------------------------------------------- */

/* 1 if the tensor's elements are not what its memory holds: conj() and real views of it are put
 * off until somebody asks. */
static int is_lazy(module_state *st, PyObject *o)
{
    PyObject *names[] = {st->str_is_conj, st->str_is_neg};
    for (int i = 0; i < 2; i++) {
        PyObject *answer = PyObject_CallMethodNoArgs(o, names[i]);
        Py_XDECREF(answer);
        if (answer != Py_False)
            return answer ? 1 : -1;
    }
    return 0;
}

static PyObject *resolved(PyObject *o)
{
    PyObject *once = PyObject_CallMethod(o, "resolve_conj", NULL);
    PyObject *twice = once ? PyObject_CallMethod(once, "resolve_neg", NULL) : NULL;
    Py_XDECREF(once);
    return twice;
}

/* Says which tensor it was that torch would not share. */
static void explain_torch(PyObject *o)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *layout = PyObject_GetAttrString(o, "layout");
    PyObject *device = layout ? PyObject_GetAttrString(o, "device") : NULL;
    if (device)
        PyErr_Format(PyExc_TypeError,
                     "cfx supports only dense tensors on the CPU; this one has layout %S on device "
                     "%S: %S", layout, device, value ? value : Py_None);
    Py_XDECREF(layout);
    Py_XDECREF(device);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* The function of the method __torch_function__ of a class: a new reference; NULL with an
 * exception. */
static PyObject *torch_function_of(PyObject *type)
{
    PyObject *method = PyObject_GetAttrString(type, "__torch_function__");
    if (!method || !PyMethod_Check(method))
        return method;
    PyObject *function = Py_NewRef(PyMethod_GET_FUNCTION(method));
    Py_DECREF(method);
    return function;
}

/* Refuses a tensor whose class decides itself what operators do with it: in C they would not ask.
 * Parameters have the function of torch's that asks nobody, which is not a Python function. */
static bool check_class(module_state *st, PyObject *o)
{
    PyObject *type = (PyObject *)Py_TYPE(o);
    if (type == st->torch_tensor)
        return true;
    PyObject *own = torch_function_of(type);
    PyObject *plain = own ? torch_function_of(st->torch_tensor) : NULL;
    const bool other = plain && own != plain && PyFunction_Check(own);
    if (other)
        PyErr_Format(PyExc_TypeError,
                     "a tensor of the class %s decides itself what operators do "
                     "(__torch_function__), which a program in C cannot ask; pass "
                     "x.as_subclass(torch.Tensor)", Py_TYPE(o)->tp_name);
    const bool good = plain && !other;
    Py_XDECREF(own);
    Py_XDECREF(plain);
    return good;
}

static cfx_tensor *from_torch(module_state *st, PyObject *o, arrays_seen *seen)
{
    if (!check_class(st, o))
        return NULL;
    int lazy = is_lazy(st, o);
    PyObject *plain = lazy > 0 ? resolved(o) : lazy == 0 ? Py_NewRef(o) : NULL;
    PyObject *capsule = plain ? PyObject_CallOneArg(st->torch_to_dlpack, plain) : NULL;
    if (!capsule && plain)
        explain_torch(o);
    cfx_tensor *t = capsule ? from_capsule(capsule) : NULL;
    seen->kind = ARRAY_TORCH;
    seen->copied = seen->copied || lazy > 0;
    if (t && lazy == 0 && seen->shared && shared_add(seen->shared, o, t) < 0) {
        cfx_tensor_release(t);
        t = NULL;
    }
    Py_XDECREF(capsule);
    Py_XDECREF(plain);
    return t;
}

/* ---- the buffer protocol ------------------------------------------------------------------- */

static const struct {
    const char *format;
    int dtype;  /* -1: an integer, by its size */
} formats[] = {
    {"?", CFX_DTYPE_BOOL},      {"e", CFX_DTYPE_FLOAT16},     {"f", CFX_DTYPE_FLOAT32},
    {"d", CFX_DTYPE_FLOAT64},   {"Zf", CFX_DTYPE_COMPLEX64},  {"Zd", CFX_DTYPE_COMPLEX128},
    {"F", CFX_DTYPE_COMPLEX64}, {"D", CFX_DTYPE_COMPLEX128},  {"B", CFX_DTYPE_UINT8},
    {"b", -1},                  {"h", -1},                    {"i", -1},
    {"l", -1},                  {"q", -1},                    {"H", CFX_DTYPE_UINT16},
    {"I", CFX_DTYPE_UINT32},    {"L", CFX_DTYPE_UINT64},      {"Q", CFX_DTYPE_UINT64},
};

static bool dtype_of_buffer(const Py_buffer *view, cfx_dtype *dtype)
{
    static const int integers[] = {0, CFX_DTYPE_INT8, CFX_DTYPE_INT16, 0, CFX_DTYPE_INT32, 0, 0, 0,
                                   CFX_DTYPE_INT64};
    const char *format = view->format ? view->format : "B";
    bool swapped = *format == '>' || *format == '!';
    if (*format == '<' || *format == '=' || *format == '@')
        format++;
    for (size_t i = 0; !swapped && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(format, formats[i].format) != 0 || (formats[i].dtype < 0 && view->itemsize > 8))
            continue;
        *dtype = (cfx_dtype)(formats[i].dtype >= 0 ? formats[i].dtype : integers[view->itemsize]);
        if (cfx_dtype_size(*dtype) == (size_t)view->itemsize)
            return true;
    }
    PyErr_Format(PyExc_TypeError, "cfx does not support the buffer format '%s'",
                 view->format ? view->format : "B");
    return false;
}

/* The last tensor may go in any thread. */
static void release_buffer(void *ctx)
{
    Py_buffer *view = ctx;
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyBuffer_Release(view);
    PyMem_RawFree(view);
    PyGILState_Release(lock);
}

static cfx_tensor *over_buffer(Py_buffer *view)
{
    cfx_error err = {0};
    cfx_dtype dtype;
    int64_t sizes[CFX_MAX_DIMS];
    int64_t strides[CFX_MAX_DIMS];
    if (view->ndim > CFX_MAX_DIMS)
        return (void *)PyErr_Format(PyExc_RuntimeError,
                                    "the array has %d dimensions; cfx "
                                    "supports up to %d", view->ndim,
                                    CFX_MAX_DIMS);
    if (view->suboffsets)
        return (void *)PyErr_Format(PyExc_BufferError, "arrays of row pointers (suboffsets) are "
                                    "not supported");
    if (!dtype_of_buffer(view, &dtype))
        return NULL;
    int64_t last = (int64_t)(cfx_dtype_size(dtype) / (cfx_dtype_is_complex(dtype) ? 2 : 1)) - 1;
    int64_t odd = view->len ? (int64_t)(uintptr_t)view->buf : 0;
    for (int i = 0; i < view->ndim; i++) {
        sizes[i] = view->shape[i];
        strides[i] = view->strides[i];
        odd |= sizes[i] > 1 ? strides[i] : 0;
    }
    if (view->len && odd & last)
        return (void *)PyErr_Format(PyExc_ValueError,
                                    "the elements are not aligned to %lld bytes; copy the array",
                                    (long long)last + 1);
    cfx_tensor *t = cfx_tensor_from_memory(dtype, sizes, strides, (size_t)view->ndim, view->buf,
                                           view->readonly, release_buffer, view, NULL, &err);
    return t ? t : (void *)raise_cfx(&err);
}

static cfx_tensor *from_buffer(PyObject *o)
{
    Py_buffer *view = PyMem_RawMalloc(sizeof *view);
    if (!view)
        return (void *)PyErr_NoMemory();
    if (PyObject_GetBuffer(o, view, PyBUF_FULL_RO) < 0) {
        PyMem_RawFree(view);
        return NULL;
    }
    cfx_tensor *t = over_buffer(view);
    if (!t) {
        PyBuffer_Release(view);
        PyMem_RawFree(view);
    }
    return t;
}

/* ---- any of them --------------------------------------------------------------------------- */

static bool is_ndarray(PyObject *o) { return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0; }

cfx_tensor *array_from_py(module_state *st, PyObject *o, arrays_seen *seen)
{
    if (is_cfx_tensor(st, o)) {
        if (seen->kind < ARRAY_CFX)
            seen->kind = ARRAY_CFX;
        return cfx_tensor_retain(((PyTensor *)o)->t);
    }
    if (!st->torch_tensor) {  /* it may have been loaded since */
        PyObject *torch = call_glue(st, "find_torch", Py_None);
        if (!torch)
            return NULL;
        Py_DECREF(torch);
    }
    if (is_torch_tensor(st, o))
        return from_torch(st, o, seen);
    if (!is_ndarray(o))
        return NULL;
    if (seen->kind < ARRAY_NUMPY)
        seen->kind = ARRAY_NUMPY;
    return from_buffer(o);
}

cfx_tensor *tensor_from_py(module_state *st, PyObject *o, arrays_seen *seen)
{
    cfx_tensor *t = array_from_py(st, o, seen);
    if (t || PyErr_Occurred())
        return t;
    if (has_attribute((PyObject *)Py_TYPE(o), st->str_dlpack))
        return from_dlpack_method(st, o);
    if (PyObject_CheckBuffer(o))
        return from_buffer(o);
    PyErr_Format(PyExc_TypeError, "%R supports neither __dlpack__ nor the buffer protocol",
                 (PyObject *)Py_TYPE(o));
    return NULL;
}
