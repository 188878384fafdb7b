/* weights.c - tensors in files (cfx/weights.py), types and shapes of programs (cfx/shapes.py). */
#include "base/pycfx.h"

#include <cfx/weights.h>

/* A path: str, bytes or anything with __fspath__; a new reference to its bytes. */
static PyObject *path_of(PyObject *o)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(o, &bytes) ? bytes : NULL;
}

/* ---- files --------------------------------------------------------------------------------- */

PyObject *state_to_py(module_state *st, const cfx_state *state)
{
    PyObject *dict = PyDict_New();
    cfx_tensor *t;
    const char *name;
    for (size_t i = 0; dict && (name = cfx_state_entry(state, i, &t)) != NULL; i++) {
        PyObject *tensor = tensor_wrap(st, cfx_tensor_retain(t));
        if (!tensor || PyDict_SetItemString(dict, name, tensor) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(tensor);
    }
    return dict;
}

/* _load_weights(path): {name: Tensor}, in the order of the file. */
static PyObject *load_weights(PyObject *module, PyObject *file)
{
    cfx_error err = {0};
    PyObject *path = path_of(file);
    if (!path)
        return NULL;
    cfx_state *state = cfx_state_load(PyBytes_AS_STRING(path), NULL, &err);
    Py_DECREF(path);
    if (!state)
        return raise_cfx(&err);
    PyObject *dict = state_to_py(PyModule_GetState(module), state);
    cfx_state_free(state);
    return dict;
}

typedef cfx_status save_fn(const cfx_state *s, const char *path, cfx_error *err);

/* Writes {name: tensor} to a path. */
static PyObject *save_state(PyObject *module, PyObject *args, save_fn *save)
{
    PyObject *dict, *file;
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &file))
        return NULL;
    PyObject *path = path_of(file);
    cfx_state *state = path ? state_from_py(PyModule_GetState(module), dict, &seen) : NULL;
    cfx_status status = CFX_E_HOST;
    if (state) {
        Py_BEGIN_ALLOW_THREADS
        status = save(state, PyBytes_AS_STRING(path), &err);
        Py_END_ALLOW_THREADS
    }
    cfx_state_free(state);
    Py_XDECREF(path);
    if (status == CFX_OK)
        Py_RETURN_NONE;
    return state ? raise_cfx(&err) : NULL;
}

/* _save_weights({name: tensor}, path): in the format of the path's extension. */
static PyObject *save_weights(PyObject *module, PyObject *args)
{
    return save_state(module, args, cfx_state_save);
}

/* _save_npz({name: tensor}, path) */
static PyObject *save_npz(PyObject *module, PyObject *args)
{
    return save_state(module, args, cfx_state_save_npz);
}

typedef cfx_tensor *load_fn(const char *path, const cfx_allocator *allocator, cfx_error *err);
typedef cfx_status save_tensor_fn(const cfx_tensor *t, const char *path, cfx_error *err);

static PyObject *load_one(PyObject *module, PyObject *file, load_fn *load)
{
    cfx_error err = {0};
    PyObject *path = path_of(file);
    if (!path)
        return NULL;
    cfx_tensor *t = load(PyBytes_AS_STRING(path), NULL, &err);
    Py_DECREF(path);
    return t ? tensor_wrap(PyModule_GetState(module), t) : raise_cfx(&err);
}

/* (tensor, path) */
static PyObject *save_one(PyObject *module, PyObject *args, save_tensor_fn *save)
{
    PyObject *tensor, *file;
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyArg_ParseTuple(args, "OO", &tensor, &file))
        return NULL;
    PyObject *path = path_of(file);
    cfx_tensor *t = path ? tensor_from_py(PyModule_GetState(module), tensor, &seen) : NULL;
    cfx_status status = CFX_E_HOST;
    if (t)
        status = save(t, PyBytes_AS_STRING(path), &err);
    Py_XDECREF(path);
    bool had = t != NULL;
    cfx_tensor_release(t);
    if (status == CFX_OK)
        Py_RETURN_NONE;
    return had ? raise_cfx(&err) : NULL;
}

static PyObject *load_npy(PyObject *module, PyObject *file)
{
    return load_one(module, file, cfx_tensor_load_npy);
}

static PyObject *save_npy(PyObject *module, PyObject *args)
{
    return save_one(module, args, cfx_tensor_save_npy);
}

/* _load_tensor(path): in any format that holds one tensor. */
static PyObject *load_tensor(PyObject *module, PyObject *file)
{
    return load_one(module, file, cfx_tensor_load);
}

/* _save_tensor(tensor, path): in the format of the path's extension. */
static PyObject *save_tensor(PyObject *module, PyObject *args)
{
    return save_one(module, args, cfx_tensor_save);
}

/* [(name, extension, what it holds, summary), ...] in the order of the table. */
static PyObject *py_formats(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && cfx_file_format_get(i); i++) {
        const cfx_file_format *f = cfx_file_format_get(i);
        PyObject *row = Py_BuildValue("(ssss)", f->name, f->extension,
                                      cfx_content_words(f->content), f->summary);
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

/* ---- by name ------------------------------------------------------------------------------- */

/* Copies the elements of each tensor of `from` to that of the same name, which keeps its memory. */
static bool copy_all(module_state *st, const cfx_state *into, const cfx_state *from)
{
    cfx_tensor *t;
    const char *name;
    for (size_t i = 0; (name = cfx_state_entry(into, i, &t)) != NULL; i++) {
        cfx_tensor *given = cfx_state_get(from, name);
        if (!given)
            continue;
        const cfx_datum args[] = {cfx_datum_tensor(t), cfx_datum_tensor(given)};
        cfx_datum done = run_operator(st, CFX_OPID_copy_, args, 2);
        if (done.kind == CFX_DATUM_INVALID)
            return false;
        cfx_datum_release(done);
    }
    return true;
}

/* _take_weights(into, from, flags): elements of `from`'s tensors to those of the same names; all
 * that does not fit is told at once, and then nothing is copied. */
static PyObject *take_weights(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *into, *from;
    unsigned flags;
    cfx_error err = {0};
    arrays_seen seen = {0};
    arrays_seen given = {0};
    if (!PyArg_ParseTuple(args, "O!O!I:_take_weights", &PyDict_Type, &into, &PyDict_Type, &from,
                          &flags))
        return NULL;
    cfx_state *a = state_from_py(st, into, &seen);
    cfx_state *names = a ? state_from_py(st, into, &seen) : NULL;
    cfx_state *b = names ? state_from_py(st, from, &given) : NULL;
    bool good = b != NULL;
    if (good && seen.copied) {
        PyErr_SetString(PyExc_ValueError, "a tensor's memory cannot be written to");
        good = false;
    }
    if (good && cfx_state_assign(names, b, flags, &err) != CFX_OK) {
        raise_cfx(&err);
        good = false;
    }
    good = good && copy_all(st, a, b);
    cfx_state_free(b);
    cfx_state_free(names);
    cfx_state_free(a);
    if (good)
        Py_RETURN_NONE;
    return NULL;
}

/* ---- types and shapes ---------------------------------------------------------------------- */

typedef struct shape_job {
    module_state *st;
    cfx_dims *dims;
    PyObject *make;   /* called with a dtype's name and a tuple of sizes */
    PyObject *nodes;  /* {name: what it gives} */
} shape_job;

static PyObject *size_object(const shape_job *job, int64_t size)
{
    cfx_buffer text;
    if (!cfx_dim_is_symbol(size) && size != CFX_DIM_UNKNOWN)
        return PyLong_FromLongLong(size);
    cfx_buffer_init(&text, NULL);
    cfx_status status = cfx_dims_print(job->dims, size, cfx_buffer_sink(&text), NULL);
    PyObject *name = status ? PyErr_NoMemory()
                            : PyUnicode_FromStringAndSize(text.data, (Py_ssize_t)text.size);
    cfx_buffer_free(&text);
    return name;
}

static PyObject *tensor_object(const shape_job *job, const cfx_tensor *t)
{
    size_t n = cfx_tensor_ndim(t);
    PyObject *sizes = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; sizes && i < n; i++) {
        PyObject *size = size_object(job, cfx_tensor_sizes(t)[i]);
        if (!size) {
            Py_CLEAR(sizes);
            break;
        }
        PyTuple_SET_ITEM(sizes, (Py_ssize_t)i, size);
    }
    if (!sizes)
        return NULL;
    return PyObject_CallFunction(job->make, "sN", cfx_dtype_name(cfx_tensor_dtype(t)), sizes);
}

static PyObject *shape_object(const shape_job *job, cfx_datum d);

static PyObject *items_object(const shape_job *job, cfx_datum d, const cfx_datum *items, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = shape_object(job, items[i]);
        if (!item) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    if (!list || d.kind == CFX_DATUM_LIST)
        return list;
    PyObject *result = NULL;
    if (d.kind == CFX_DATUM_DICT) {
        result = PyDict_New();
        for (size_t i = 0; result && i + 1 < n; i += 2)
            if (PyDict_SetItem(result, PyList_GET_ITEM(list, (Py_ssize_t)i),
                               PyList_GET_ITEM(list, (Py_ssize_t)i + 1)) < 0)
                Py_CLEAR(result);
    } else {
        result = PyList_AsTuple(list);
    }
    Py_DECREF(list);
    return result;
}

/* A tensor by its type and sizes, an unknown number by its name (None if it has none). */
static PyObject *shape_object(const shape_job *job, cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_TENSOR)
        return tensor_object(job, d.as.tensor);
    if (items)
        return items_object(job, d, items, n);
    if (d.symbolic && d.kind == CFX_DATUM_INT)
        return size_object(job, d.as.i);
    if (d.symbolic)
        Py_RETURN_NONE;
    return datum_to_py(job->st, d, ARRAY_CFX);
}

static cfx_status note_shape(void *ctx, const char *node, cfx_datum result)
{
    const shape_job *job = ctx;
    PyObject *object = shape_object(job, result);
    int failed = object ? PyDict_SetItemString(job->nodes, node, object) : -1;
    Py_XDECREF(object);
    return failed ? CFX_E_HOST : CFX_OK;
}

/* Descriptions as text ("float32[N, 3]"), or values. */
static cfx_datum input_of(const shape_job *job, PyObject *o)
{
    arrays_seen seen = {0};
    Py_ssize_t size;
    cfx_error err = {0};
    if (!PyUnicode_Check(o))
        return datum_from_py(job->st, o, &seen);
    const char *text = PyUnicode_AsUTF8AndSize(o, &size);
    cfx_datum d = {0};
    if (text)
        d = cfx_datum_parse(job->dims, text, (size_t)size, NULL, &err);
    if (text && d.kind == CFX_DATUM_INVALID)
        raise_cfx(&err);
    return d;
}

static PyObject *assumptions_of(const cfx_dims *dims)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    PyObject *list = NULL;
    if (cfx_dims_print_assumptions(dims, cfx_buffer_sink(&text), NULL, NULL) != CFX_OK) {
        PyErr_NoMemory();
    } else {
        PyObject *all = PyUnicode_FromStringAndSize(text.data, (Py_ssize_t)text.size);
        list = all ? PyUnicode_Splitlines(all, 0) : NULL;
        Py_XDECREF(all);
    }
    cfx_buffer_free(&text);
    return list;
}

static PyObject *infer_with(shape_job *job, const cfx_program *p, const cfx_datum *inputs, size_t n)
{
    cfx_error err = {0};
    PyObject *runtime = runtime_current(job->st);
    if (!runtime)
        return NULL;
    cfx_datum d = cfx_program_infer(p, runtime_of(runtime), job->dims, inputs, n, note_shape, job,
                                    &err);
    Py_DECREF(runtime);
    if (d.kind == CFX_DATUM_INVALID)
        return raise_cfx(&err);
    PyObject *result = shape_object(job, d);
    cfx_datum_release(d);
    PyObject *assumptions = result ? assumptions_of(job->dims) : NULL;
    PyObject *all = NULL;
    if (assumptions)
        all = PyTuple_Pack(3, job->nodes, result, assumptions);
    Py_XDECREF(assumptions);
    Py_XDECREF(result);
    return all;
}

/* _infer(program, inputs, make): (what each node gives, the result, the assumptions). */
static PyObject *infer(PyObject *module, PyObject *args)
{
    shape_job job = {.st = PyModule_GetState(module)};
    PyObject *program, *list;
    cfx_error err = {0};
    if (!PyArg_ParseTuple(args, "O!O!O:_infer", job.st->ProgramType, &program, &PyList_Type, &list,
                          &job.make))
        return NULL;
    size_t count = (size_t)PyList_GET_SIZE(list);
    cfx_datum *inputs = PyMem_New(cfx_datum, count + 1);
    if (!inputs)
        return PyErr_NoMemory();
    job.dims = cfx_dims_new(NULL, &err);
    job.nodes = PyDict_New();
    size_t n = 0;
    if (!job.dims)
        raise_cfx(&err);
    while (job.dims && n < count &&
           (inputs[n] = input_of(&job, PyList_GET_ITEM(list, (Py_ssize_t)n))).kind)
        n++;
    PyObject *result = NULL;
    if (job.dims && job.nodes && n == count)
        result = infer_with(&job, program_of(program), inputs, n);
    while (n > 0)
        cfx_datum_release(inputs[--n]);
    PyMem_Free(inputs);
    Py_XDECREF(job.nodes);
    cfx_dims_free(job.dims);
    return result;
}

PyMethodDef weights_functions[] = {
    {"_load_weights", load_weights, METH_O, NULL},
    {"_save_weights", save_weights, METH_VARARGS, NULL},
    {"_save_npz", save_npz, METH_VARARGS, NULL},
    {"_take_weights", take_weights, METH_VARARGS, NULL},
    {"_load_npy", load_npy, METH_O, NULL},
    {"_save_npy", save_npy, METH_VARARGS, NULL},
    {"_load_tensor", load_tensor, METH_O, NULL},
    {"_save_tensor", save_tensor, METH_VARARGS, NULL},
    {"_formats", py_formats, METH_NOARGS, NULL},
    {"_infer", infer, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
