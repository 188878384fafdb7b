/* package.c - .cfx files for Python (cfx/package.py): texts and weights in and out. */
#include "run/package.h"

#include <cfx/onnx.h>

/* ---- saving -------------------------------------------------------------------------------- */

/* What a save calls while it writes; the GIL is not held then. */
typedef struct progress {
    PyObject *function;
    bool failed;  /* with an exception */
} progress;

static bool report(void *ctx, uint64_t done, uint64_t all)
{
    progress *p = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = PyErr_CheckSignals() == 0 && p->function != Py_None
                           ? PyObject_CallFunction(p->function, "KK", (unsigned long long)done,
                                                   (unsigned long long)all)
                           : NULL;
    p->failed = PyErr_Occurred() != NULL;
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return !p->failed;
}

cfx_package_part *package_parts(PyObject *texts)
{
    PyObject *name, *text;
    Py_ssize_t at = 0;
    size_t n = 0;
    cfx_package_part *parts = PyMem_Calloc((size_t)PyDict_GET_SIZE(texts) + 1, sizeof *parts);
    if (!parts)
        return (cfx_package_part *)PyErr_NoMemory();
    while (PyDict_Next(texts, &at, &name, &text)) {
        Py_ssize_t size = 0;
        parts[n].name = PyUnicode_AsUTF8(name);
        parts[n].data = parts[n].name ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
        if (!parts[n].data) {
            PyMem_Free(parts);
            return NULL;
        }
        parts[n++].size = (size_t)size;
    }
    return parts;
}

/* _save_package(path, model, {name: text}, {name: tensor} or None, progress or None,
 * name of a file with weights or None, bytes of a shard or 0) */
static PyObject *save_package(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *path, *texts, *tensors, *function;
    const char *model;
    const char *file = NULL;
    unsigned long long shard_size = 0;
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyArg_ParseTuple(args, "O&sO!OO|zK:_save_package", PyUnicode_FSConverter, &path, &model,
                          &PyDict_Type, &texts, &tensors, &function, &file, &shard_size))
        return NULL;
    progress told = {function, false};
    cfx_package_part *parts = package_parts(texts);
    cfx_state *state = parts && tensors != Py_None ? state_from_py(st, tensors, &seen) : NULL;
    cfx_status status = CFX_E_HOST;
    if (parts && (state || tensors == Py_None)) {
        const cfx_package_contents contents = {
            .model = model, .parts = parts, .num_parts = (size_t)PyDict_GET_SIZE(texts),
            .weights = state, .weights_file = file, .shard_size = shard_size,
            .progress = report, .progress_ctx = &told};
        Py_BEGIN_ALLOW_THREADS
        status = cfx_package_save(PyBytes_AS_STRING(path), &contents, &err);
        Py_END_ALLOW_THREADS
    }
    cfx_state_free(state);
    PyMem_Free(parts);
    Py_DECREF(path);
    if (status == CFX_OK)
        Py_RETURN_NONE;
    return PyErr_Occurred() ? NULL : raise_cfx(&err);
}

/* ---- loading ------------------------------------------------------------------------------- */

static PyObject *texts_of(const cfx_package *p)
{
    PyObject *texts = PyDict_New();
    const char *name;
    for (size_t i = 0; texts && (name = cfx_package_entry(p, i, NULL)) != NULL; i++) {
        size_t size;
        const char *data = cfx_package_text(p, name, &size);
        PyObject *text = data ? str_from_utf8(data, size) : NULL;
        if ((data && !text) || (text && PyDict_SetItemString(texts, name, text) < 0))
            Py_CLEAR(texts);
        Py_XDECREF(text);
    }
    return texts;
}

/* (model, producer, format, {name: text}, {name: Tensor} or None) */
static PyObject *contents_of(module_state *st, const cfx_package *p)
{
    const cfx_state *state = cfx_package_weights(p);
    PyObject *texts = texts_of(p);
    PyObject *weights = !texts ? NULL : state ? state_to_py(st, state) : Py_NewRef(Py_None);
    PyObject *all = weights ? Py_BuildValue("(ssiOO)", cfx_package_model(p),
                                            cfx_package_producer(p), cfx_package_format(p), texts,
                                            weights) : NULL;
    Py_XDECREF(weights);
    Py_XDECREF(texts);
    return all;
}

/* Called by whatever thread lets go of the last tensor. */
static void release_view(void *ctx)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyBuffer_Release(ctx);
    PyMem_Free(ctx);
    PyGILState_Release(gil);
}

/* Whether a path or bytes are an ONNX model: a .cfx file begins as a zip archive does, and a model
 * of ONNX with the number of its format. */
static bool is_onnx_path(const char *path)
{
    const size_t size = strlen(path);
    return size >= 5 && strcmp(path + size - 5, ".onnx") == 0;
}

static bool is_onnx_bytes(const Py_buffer *view)
{
    const char *data = view->buf;
    return view->len >= 2 && data[0] == 0x08;
}

/* Tensors point into memory that may be written to, and keep it alive. They are copies of what may
 * not, because weights can be trained; then *view is to be released after the package. */
static cfx_package *open_memory(PyObject *source, const cfx_package_options *options,
                                Py_buffer *view, cfx_error *err)
{
    cfx_package *p;
    if (PyObject_GetBuffer(source, view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (is_onnx_bytes(view)) {
        Py_BEGIN_ALLOW_THREADS
        p = cfx_onnx_read(view->buf, (size_t)view->len, NULL, NULL, err);
        Py_END_ALLOW_THREADS
        return p;
    }
    Py_buffer *kept = options->copy || view->readonly ? NULL : PyMem_Malloc(sizeof *kept);
    if (kept) {
        *kept = *view;
        view->obj = NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    p = kept ? cfx_package_borrow(kept->buf, (size_t)kept->len, release_view, kept, options, err)
             : cfx_package_read(view->buf, (size_t)view->len, options, err);
    Py_END_ALLOW_THREADS
    return p;
}

cfx_package *package_open(PyObject *source, const cfx_package_options *options, Py_buffer *view,
                          cfx_error *err)
{
    cfx_package *p;
    PyObject *path = NULL;
    if (PyLong_Check(source)) {
        const long file = PyLong_AsLong(source);
        if (file == -1 && PyErr_Occurred())
            return NULL;
        Py_BEGIN_ALLOW_THREADS
        p = cfx_package_load_fd((int)file, options, err);
        Py_END_ALLOW_THREADS
        return p;
    }
    if (!PyUnicode_Check(source) && PyObject_CheckBuffer(source))
        return open_memory(source, options, view, err);
    if (!PyUnicode_FSConverter(source, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    const cfx_onnx_read_options onnx = {.read_only = options->read_only};
    p = is_onnx_path(PyBytes_AS_STRING(path)) ? cfx_onnx_load(PyBytes_AS_STRING(path), &onnx, err)
                                              : cfx_package_load(PyBytes_AS_STRING(path), options,
                                                                 err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return p;
}

/* _load_package(path, bytes or descriptor, copy, verify, skip_files): see contents_of. */
static PyObject *load_package(PyObject *module, PyObject *args)
{
    PyObject *source;
    int copy, verify;
    int skip = 0;
    cfx_error err = {0};
    Py_buffer view = {0};
    if (!PyArg_ParseTuple(args, "Opp|p:_load_package", &source, &copy, &verify, &skip))
        return NULL;
    const cfx_package_options options = {.copy = copy, .verify = verify, .skip_files = skip};
    cfx_package *p = package_open(source, &options, &view, &err);
    PyObject *contents = p ? contents_of(PyModule_GetState(module), p) : NULL;
    if (!p && !PyErr_Occurred())
        raise_cfx(&err);
    cfx_package_free(p);
    if (view.obj)
        PyBuffer_Release(&view);
    return contents;
}

/* ---- ONNX ---------------------------------------------------------------------------------- */

/* Adds a finding to a list; the GIL is held. */
static void add_finding(void *ctx, const cfx_onnx_finding *finding)
{
    PyObject *row = Py_BuildValue("(ssss)", finding->where, finding->node, finding->op,
                                  finding->why);
    if (row && !PyErr_Occurred())
        PyList_Append(ctx, row);
    Py_XDECREF(row);
}

/* _onnx_findings(path or bytes): (where, node, operator, why) of all that cannot be read. */
static PyObject *onnx_findings(PyObject *module, PyObject *source)
{
    PyObject *list = PyList_New(0);
    PyObject *path = NULL;
    Py_buffer view = {0};
    cfx_error err = {0};
    cfx_package *p = NULL;
    const cfx_onnx_read_options options = {.each = add_finding, .ctx = list};
    (void)module;
    if (list && PyBytes_Check(source) && PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) == 0)
        p = cfx_onnx_read(view.buf, (size_t)view.len, NULL, &options, &err);
    else if (list && !PyErr_Occurred() && PyUnicode_FSConverter(source, &path))
        p = cfx_onnx_load(PyBytes_AS_STRING(path), &options, &err);
    if (!p && list && !PyErr_Occurred() && PyList_GET_SIZE(list) == 0)
        raise_cfx(&err);
    cfx_package_free(p);
    if (view.obj)
        PyBuffer_Release(&view);
    Py_XDECREF(path);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

PyMethodDef package_functions[] = {
    {"_onnx_findings", onnx_findings, METH_O, NULL},
    {"_save_package", save_package, METH_VARARGS, NULL},
    {"_load_package", load_package, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
