/* tensor_export.c - tensors for other libraries: DLPack, the buffer protocol, torch, numpy. */
#include "base/pycfx.h"

/* ---- DLPack -------------------------------------------------------------------------------- */

/* Of a capsule that nobody has used. */
static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        cfx_dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        m->deleter(m);
    }
}

static void drop_unversioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        cfx_dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    }
}

/* What cannot be shared is a BufferError, as the standard wants it. */
static PyObject *raise_unshared(cfx_error *err)
{
    if (err->status == CFX_E_VALUE)
        return PyErr_Format(PyExc_BufferError, "%s", err->message);
    return raise_cfx(err);
}

static PyObject *capsule_of(cfx_tensor *t, bool versioned)
{
    cfx_error err = {0};
    PyObject *capsule;
    if (versioned) {
        cfx_dl_versioned *m = cfx_tensor_to_dlpack(t, &err);
        if (!m)
            return raise_unshared(&err);
        capsule = PyCapsule_New(m, "dltensor_versioned", drop_versioned);
        if (!capsule)
            m->deleter(m);
    } else {
        cfx_dl_managed *m = cfx_tensor_to_dlpack_unversioned(t, &err);
        if (!m)
            return raise_unshared(&err);
        capsule = PyCapsule_New(m, "dltensor", drop_unversioned);
        if (!capsule)
            m->deleter(m);
    }
    return capsule;
}

/* The first number of a tuple (major, minor) or (device type, number); -1 with an exception. */
static long first_of(PyObject *pair, const char *what)
{
    int first;
    int second;
    if (PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", &first, &second))
        return first;
    PyErr_Format(PyExc_TypeError, "%s must be a pair of numbers", what);
    return -1;
}

static PyObject *dlpack_copy(module_state *st, cfx_tensor *t, bool versioned)
{
    cfx_datum arg = cfx_datum_tensor(t);
    cfx_datum copy = run_operator(st, CFX_OPID_clone, &arg, 1);
    if (copy.kind == CFX_DATUM_INVALID)
        return NULL;
    PyObject *capsule = capsule_of(copy.as.tensor, versioned);
    if (capsule && versioned) {
        cfx_dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        m->flags |= CFX_DL_COPIED;
    }
    cfx_datum_release(copy);
    return capsule;
}

PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy"};
    static const arg_spec spec = {"__dlpack__", names, 4, 0, 0};
    PyObject *given[4];
    cfx_tensor *t = ((PyTensor *)self)->t;
    if (!take_args(&spec, args, nargs, kwnames, given))
        return NULL;
    if (given[0] && given[0] != Py_None)
        return PyErr_Format(PyExc_BufferError, "a tensor on the CPU has no stream");
    long major = given[1] && given[1] != Py_None ? first_of(given[1], "max_version") : 0;
    long device = given[2] && given[2] != Py_None ? first_of(given[2], "dl_device") : CFX_DL_CPU;
    if (PyErr_Occurred())
        return NULL;
    if (device != CFX_DL_CPU)
        return PyErr_Format(PyExc_BufferError, "the tensor is on the CPU, not on device type %ld",
                            device);
    int copy = given[3] && given[3] != Py_None ? PyObject_IsTrue(given[3]) : 0;
    if (copy < 0)
        return NULL;
    return copy ? dlpack_copy(state_of(Py_TYPE(self)), t, major >= 1) : capsule_of(t, major >= 1);
}

/* ---- the buffer protocol ------------------------------------------------------------------- */

static const char *format_of(cfx_dtype dtype)
{
    switch ((int)dtype) {
    case CFX_DTYPE_BOOL: return "?";
    case CFX_DTYPE_UINT8: return "B";
    case CFX_DTYPE_INT8: return "b";
    case CFX_DTYPE_INT16: return "h";
    case CFX_DTYPE_INT32: return "i";
    case CFX_DTYPE_INT64: return sizeof(long) == 8 ? "l" : "q";
    case CFX_DTYPE_UINT16: return "H";
    case CFX_DTYPE_UINT32: return "I";
    case CFX_DTYPE_UINT64: return sizeof(long) == 8 ? "L" : "Q";
    case CFX_DTYPE_FLOAT16: return "e";
    case CFX_DTYPE_FLOAT32: return "f";
    case CFX_DTYPE_FLOAT64: return "d";
    case CFX_DTYPE_COMPLEX64: return "Zf";
    case CFX_DTYPE_COMPLEX128: return "Zd";
    default: return NULL;
    }
}

static int buffer_refused(Py_buffer *view, const char *why, const char *what)
{
    PyErr_Format(PyExc_BufferError, why, what);
    PyMem_Free(view->internal);
    view->obj = NULL;
    return -1;
}

/* What the consumer asked for, in `flags`, less what it has. */
static const char *misses(const Py_buffer *view, int flags)
{
    if ((flags & PyBUF_WRITABLE) && view->readonly)
        return "writable";
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'C'))
        return "contiguous";
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'F'))
        return "Fortran-contiguous";
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'A'))
        return "contiguous";
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !PyBuffer_IsContiguous(view, 'C'))
        return "contiguous";
    return NULL;
}

int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[16];  /* of an empty tensor: a buffer has an address */
    const cfx_tensor *t = ((PyTensor *)self)->t;
    cfx_dtype dtype = cfx_tensor_dtype(t);
    size_t ndim = cfx_tensor_ndim(t);
    *view = (Py_buffer){.obj = NULL};
    if (cfx_tensor_is_abstract(t))
        return buffer_refused(view, "a tensor without elements has no buffer%s", "");
    if (!format_of(dtype))
        return buffer_refused(view, "the buffer protocol has no format for %s; use __dlpack__",
                              cfx_dtype_name(dtype));
    Py_ssize_t *extents = PyMem_New(Py_ssize_t, 2 * CFX_MAX_DIMS);
    if (!extents) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < ndim; i++) {  /* its own: an operator in place may change the shape */
        extents[i] = cfx_tensor_sizes(t)[i];
        extents[CFX_MAX_DIMS + i] = cfx_tensor_strides(t)[i];
    }
    int64_t numel = cfx_tensor_numel(t);
    *view = (Py_buffer){
        .buf = numel && cfx_tensor_data(t) ? cfx_tensor_data(t) : nothing,
        .len = numel * (Py_ssize_t)cfx_dtype_size(dtype),
        .itemsize = (Py_ssize_t)cfx_dtype_size(dtype),
        .readonly = cfx_tensor_is_read_only(t),
        .ndim = (int)ndim,
        .format = (char *)(uintptr_t)format_of(dtype),
        .shape = extents,
        .strides = extents + CFX_MAX_DIMS,
        .internal = extents,
    };
    const char *missing = misses(view, flags);
    if (missing)
        return buffer_refused(view, "the tensor is not %s", missing);
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    view->obj = Py_NewRef(self);
    return 0;
}

void tensor_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    PyMem_Free(view->internal);
}

/* ---- torch and numpy ----------------------------------------------------------------------- */

/* torch knows no negative strides. */
static bool has_negative_stride(const cfx_tensor *t)
{
    for (size_t i = 0; i < cfx_tensor_ndim(t); i++)
        if (cfx_tensor_strides(t)[i] < 0)
            return true;
    return false;
}

static PyObject *to_torch(module_state *st, cfx_tensor *t)
{
    if (!st->torch_from_dlpack) {
        PyObject *torch = PyImport_ImportModule("torch");
        PyObject *found = torch ? call_glue(st, "find_torch", Py_None) : NULL;
        Py_XDECREF(torch);
        Py_XDECREF(found);
        if (!st->torch_from_dlpack)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ImportError, "torch is not loaded");
    }
    cfx_datum arg = cfx_datum_tensor(t);
    cfx_datum owned = {0};
    if (has_negative_stride(t)) {
        owned = run_operator(st, CFX_OPID_contiguous, &arg, 1);
        if (owned.kind == CFX_DATUM_INVALID)
            return NULL;
        t = owned.as.tensor;
    }
    PyObject *capsule = capsule_of(t, cfx_tensor_is_read_only(t));
    PyObject *result = capsule ? PyObject_CallOneArg(st->torch_from_dlpack, capsule) : NULL;
    Py_XDECREF(capsule);
    cfx_datum_release(owned);
    return result;
}

static PyObject *to_numpy(module_state *st, cfx_tensor *t)
{
    PyObject *wrapped = tensor_wrap(st, cfx_tensor_retain(t));
    PyObject *result = wrapped ? tensor_numpy(wrapped, NULL) : NULL;
    Py_XDECREF(wrapped);
    return result;
}

PyObject *tensor_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *view = PyMemoryView_FromObject(self);  /* says what is wrong with the element type */
    PyObject *numpy = view ? PyImport_ImportModule("numpy") : NULL;
    PyObject *result = numpy ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
    Py_XDECREF(numpy);
    Py_XDECREF(view);
    return result;
}

PyObject *tensor_torch(PyObject *self, PyObject *unused)
{
    (void)unused;
    return to_torch(state_of(Py_TYPE(self)), ((PyTensor *)self)->t);
}

PyObject *tensor_to_py(module_state *st, cfx_tensor *t, array_kind kind)
{
    if (kind == ARRAY_TORCH)
        return to_torch(st, t);
    if (kind == ARRAY_NUMPY)
        return to_numpy(st, t);
    return tensor_wrap(st, cfx_tensor_retain(t));
}

/* ---- headers ------------------------------------------------------------------------------- */

static tensor_header header_of(const cfx_tensor *t)
{
    tensor_header h = {.ndim = cfx_tensor_ndim(t), .data = cfx_tensor_data(t)};
    memcpy(h.sizes, cfx_tensor_sizes(t), h.ndim * sizeof *h.sizes);
    memcpy(h.strides, cfx_tensor_strides(t), h.ndim * sizeof *h.strides);
    return h;
}

int shared_add(shared_tensors *all, PyObject *o, cfx_tensor *t)
{
    if (all->n == all->room) {
        const size_t room = all->room ? 2 * all->room : 4;
        shared_tensor *items = PyMem_Resize(all->items, shared_tensor, room);
        if (!items) {
            PyErr_NoMemory();
            return -1;
        }
        all->items = items;
        all->room = room;
    }
    all->items[all->n++] = (shared_tensor){.o = Py_NewRef(o), .t = cfx_tensor_retain(t),
                                           .before = header_of(t)};
    return 0;
}

void shared_remember(shared_tensors *all)
{
    for (size_t i = 0; i < all->n; i++)
        all->items[i].before = header_of(all->items[i].t);
}

static PyObject *numbers(const int64_t *values, size_t n, int64_t unit)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(values[i] / unit);
        if (number)
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, number);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Gives the tensor of torch's another header, in elements of `unit` bytes. */
static int take_header(PyObject *o, const tensor_header *h, int64_t unit, int64_t moved)
{
    PyObject *offset = PyObject_CallMethod(o, "storage_offset", NULL);
    PyObject *sizes = offset ? numbers(h->sizes, h->ndim, 1) : NULL;
    PyObject *strides = sizes ? numbers(h->strides, h->ndim, unit) : NULL;
    PyObject *done = strides ? PyObject_CallMethod(o, "as_strided_", "OOL", sizes, strides,
                                                   PyLong_AsLongLong(offset) + moved / unit) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(strides);
    Py_XDECREF(sizes);
    Py_XDECREF(offset);
    return done ? 0 : -1;
}

int shared_follow(const shared_tensors *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const shared_tensor *each = &all->items[i];
        const tensor_header *before = &each->before;
        const tensor_header now = header_of(each->t);
        const size_t bytes = now.ndim * sizeof *now.sizes;
        const int64_t unit = (int64_t)cfx_dtype_size(cfx_tensor_dtype(each->t));
        const int64_t moved = (const char *)now.data - (const char *)before->data;
        const bool same = now.ndim == before->ndim && moved == 0 &&
                          memcmp(now.sizes, before->sizes, bytes) == 0 &&
                          memcmp(now.strides, before->strides, bytes) == 0;
        if (!same && take_header(each->o, &now, unit, moved) < 0)
            return -1;
    }
    return 0;
}

void shared_free(shared_tensors *all)
{
    while (all->n > 0) {
        shared_tensor *last = &all->items[--all->n];
        cfx_tensor_release(last->t);
        Py_DECREF(last->o);
    }
    PyMem_Free(all->items);
    *all = (shared_tensors){0};
}
