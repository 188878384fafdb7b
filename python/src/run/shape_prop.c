/* shape_prop.c - what a tensor looks like, written into the metadata of nodes.
 *
 * The Python side registers `tensor_metadata`, a tuple: the named tuple to make, torch's formats
 * (contiguous, channels_last, channels_last_3d), torch.strided, the set of layouts without strides,
 * and a function for what is rare: the format of a tensor whose sizes are symbols. Contiguity
 * follows from sizes and strides, so torch is not asked.
 */
#include "node/node_methods.h"

enum { HELP_class, HELP_contiguous, HELP_channels_last, HELP_channels_last_3d, HELP_strided,
       HELP_sparse, HELP_symbolic_format, N_HELP };
#define HELP(st, id) PyTuple_GET_ITEM((st)->tensor_metadata, HELP_##id)

/* The fields of the named tuple, in its order; then the other names that are looked up. */
#define FIELDS(X)                                                                                  \
    X(shape) X(dtype) X(requires_grad) X(stride) X(memory_format) X(is_quantized) X(qparams)
#define NAMES(X) X(layout) X(tensor_meta) X(type) X(fake_module) X(_run_fake)

enum {
#define X(name) NAME_##name,
    FIELDS(X) NAMES(X)
#undef X
    N_NAMES,
    N_FIELDS = NAME_layout,
};
#define NAME(st, id) PyTuple_GET_ITEM((st)->shape_names, NAME_##id)

static const char *const texts[] = {
#define X(name) #name,
    FIELDS(X) NAMES(X)
#undef X
};

/* ---- memory formats ------------------------------------------------------------------------ */

enum { MAX_DIMS = 64 };  /* torch's own limit */

typedef struct extents {
    Py_ssize_t n;
    long long size[MAX_DIMS], stride[MAX_DIMS];
} extents;

/* One entry of a tuple of plain integers. */
static bool read_extent(PyObject *tuple, Py_ssize_t i, long long *out)
{
    PyObject *item = PyTuple_GET_ITEM(tuple, i);
    int overflow = 0;
    *out = PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : -1;
    return PyLong_CheckExact(item) && !overflow;
}

/* False if anything is not a plain integer. */
static bool read_extents(PyObject *shape, PyObject *stride, extents *e)
{
    if (!PyTuple_Check(shape) || !PyTuple_Check(stride))
        return false;
    e->n = PyTuple_GET_SIZE(shape);
    if (e->n != PyTuple_GET_SIZE(stride) || e->n > MAX_DIMS)
        return false;
    for (Py_ssize_t i = 0; i < e->n; i++)
        if (!read_extent(shape, i, &e->size[i]) || !read_extent(stride, i, &e->stride[i]))
            return false;
    return true;
}

/* Whether the dimensions lie in memory in this order, the innermost first. Strides of dimensions of
 * size 1 mean nothing, and an empty tensor lies in any order. */
static bool is_dense(const extents *e, const int *order)
{
    unsigned long long expected = 1;  /* wraps for what fits into no memory, and matches nothing */
    bool dense = true;
    for (Py_ssize_t i = 0; i < e->n; i++) {
        Py_ssize_t d = order ? order[i] : e->n - 1 - i;
        if (e->size[d] == 0)
            return true;
        if (e->size[d] == 1)
            continue;
        dense = dense && (unsigned long long)e->stride[d] == expected;
        expected *= (unsigned long long)e->size[d];
    }
    return dense;
}

/* Borrowed: the first format of a tensor's that fits, or None. */
static PyObject *dense_format(const module_state *st, const extents *e)
{
    static const int last[] = {1, 3, 2, 0};
    static const int last_3d[] = {1, 4, 3, 2, 0};
    if (is_dense(e, NULL))
        return HELP(st, contiguous);
    if (e->n == 4 && is_dense(e, last))
        return HELP(st, channels_last);
    if (e->n == 5 && is_dense(e, last_3d))
        return HELP(st, channels_last_3d);
    return Py_None;
}

/* ---- one tensor ---------------------------------------------------------------------------- */

/* Whether a tensor has strides: -1 with an exception. */
static int has_strides(const module_state *st, PyObject *tensor)
{
    PyObject *layout = PyObject_GetAttr(tensor, NAME(st, layout));
    int sparse = -1;
    if (layout)
        sparse = layout == HELP(st, strided) ? 0 : PySet_Contains(HELP(st, sparse), layout);
    Py_XDECREF(layout);
    return sparse < 0 ? -1 : !sparse;
}

static PyObject *format_of(const module_state *st, PyObject *tensor, PyObject *shape,
                           PyObject *stride)
{
    extents e;
    return read_extents(shape, stride, &e) ? Py_NewRef(dense_format(st, &e))
                                           : PyObject_CallOneArg(HELP(st, symbolic_format), tensor);
}

/* Fills in stride and memory_format; a sparse tensor has neither. */
static int add_layout(const module_state *st, PyObject *tensor, bool contiguity, PyObject **field)
{
    int strided = has_strides(st, tensor);
    if (strided < 0)
        return -1;
    field[NAME_stride] = strided ? PyObject_CallMethodNoArgs(tensor, NAME(st, stride))
                                 : PyTuple_New(0);
    if (!field[NAME_stride])
        return -1;
    field[NAME_memory_format] =
        strided && contiguity ? format_of(st, tensor, field[NAME_shape], field[NAME_stride])
                              : Py_NewRef(Py_None);
    return field[NAME_memory_format] ? 0 : -1;
}

/* found[key] = tensor.method(), as a list if it is a tensor itself. */
static int add_parameter(PyObject *found, PyObject *tensor, const char *key, const char *method,
                         bool listed)
{
    PyObject *value = PyObject_CallMethod(tensor, method, NULL);
    if (value && listed)
        Py_SETREF(value, PyObject_CallMethod(value, "tolist", NULL));
    int failed = value ? PyDict_SetItemString(found, key, value) : -1;
    Py_XDECREF(value);
    return failed;
}

/* How a quantized tensor is to be read: {"qscheme": ..., "scale": ..., "zero_point": ...}, and the
 * axis if each channel has its own. */
static PyObject *quantization(PyObject *tensor)
{
    PyObject *found = PyDict_New();
    int failed = !found || add_parameter(found, tensor, "qscheme", "qscheme", false) < 0;
    PyObject *name = failed ? NULL : PyObject_Str(PyDict_GetItemString(found, "qscheme"));
    const char *scheme = name ? PyUnicode_AsUTF8(name) : NULL;
    if (scheme && strstr(scheme, "per_tensor"))
        failed = add_parameter(found, tensor, "scale", "q_scale", false) < 0 ||
                 add_parameter(found, tensor, "zero_point", "q_zero_point", false) < 0;
    else if (scheme && strstr(scheme, "per_channel"))
        failed = add_parameter(found, tensor, "scale", "q_per_channel_scales", true) < 0 ||
                 add_parameter(found, tensor, "zero_point", "q_per_channel_zero_points",
                               true) < 0 ||
                 add_parameter(found, tensor, "axis", "q_per_channel_axis", false) < 0;
    if (!scheme || failed)
        Py_CLEAR(found);
    Py_XDECREF(name);
    return found;
}

static int add_quantization(const module_state *st, PyObject *tensor, PyObject **field)
{
    field[NAME_is_quantized] = PyObject_GetAttr(tensor, NAME(st, is_quantized));
    int quantized = field[NAME_is_quantized] ? PyObject_IsTrue(field[NAME_is_quantized]) : -1;
    if (quantized >= 0)
        field[NAME_qparams] = quantized ? quantization(tensor) : PyDict_New();
    return field[NAME_qparams] ? 0 : -1;
}

/* The named tuple of a tensor: a new reference. */
static PyObject *tensor_metadata(const module_state *st, PyObject *tensor, bool contiguity)
{
    PyObject *field[N_FIELDS] = {NULL};
    PyTypeObject *class = (PyTypeObject *)HELP(st, class);
    PyObject *made = NULL;
    for (int i = NAME_shape; i <= NAME_requires_grad; i++)
        if (!(field[i] = PyObject_GetAttr(tensor, PyTuple_GET_ITEM(st->shape_names, i))))
            goto done;
    if (add_layout(st, tensor, contiguity, field) == 0 &&
        add_quantization(st, tensor, field) == 0)
        made = class->tp_alloc(class, N_FIELDS);
done:
    for (int i = 0; i < N_FIELDS; i++) {
        if (made)
            PyTuple_SET_ITEM(made, i, field[i]);
        else
            Py_XDECREF(field[i]);
    }
    return made;
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool is_ready(const module_state *st)
{
    if (st->tensor_metadata && PyTuple_Check(st->tensor_metadata) &&
        PyTuple_GET_SIZE(st->tensor_metadata) == N_HELP && PyType_Check(HELP(st, class)) &&
        PyType_IsSubtype((PyTypeObject *)HELP(st, class), &PyTuple_Type))
        return true;
    PyErr_SetString(PyExc_RuntimeError, "cfx.passes.shape_prop is not loaded");
    return false;
}

static PyObject *py_tensor_metadata(PyObject *module, PyObject *args)
{
    PyObject *tensor;
    int contiguity = 1;
    module_state *st = PyModule_GetState(module);
    if (!is_ready(st) || !PyArg_ParseTuple(args, "O|p:_tensor_metadata", &tensor, &contiguity))
        return NULL;
    return tensor_metadata(st, tensor, contiguity);
}

typedef struct leaf_job {
    module_state *st;
    bool found;
} leaf_job;

static PyObject *describe_leaf(void *ctx, PyObject *leaf)
{
    leaf_job *job = ctx;
    if (!PyObject_TypeCheck(leaf, (PyTypeObject *)job->st->tensor_class))
        return Py_NewRef(leaf);
    job->found = true;
    return tensor_metadata(job->st, leaf, true);
}

/* meta["tensor_meta"], where `value` is a tensor or has some inside, and meta["type"]. */
static int record(module_state *st, PyNode *node, PyObject *value)
{
    leaf_job job = {st, false};
    PyObject *found = map_tree(st, value, describe_leaf, &job);
    PyObject *meta = found ? node_get_meta(node, NULL) : NULL;
    int failed = !meta || (job.found && PyDict_SetItem(meta, NAME(st, tensor_meta), found) < 0) ||
                 PyDict_SetItem(meta, NAME(st, type), (PyObject *)Py_TYPE(value)) < 0;
    Py_XDECREF(meta);
    Py_XDECREF(found);
    return failed ? -1 : 0;
}

/* ---- one node ------------------------------------------------------------------------------ */

/* `raise ... from cause`, of the exception that is pending. */
static void chain(PyObject *cause)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetCause(value, Py_NewRef(cause));
    PyException_SetContext(value, Py_NewRef(cause));
    PyErr_Restore(type, value, traceback);
}

/* What went wrong, with the node; raised from the exception that is pending. */
static void explain(PyObject *node)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *shown = PyObject_CallMethod(node, "format_node", NULL);
    PyObject *meta = shown ? node_get_meta((PyNode *)node, NULL) : NULL;
    if (meta) {
        PyErr_Format(PyExc_RuntimeError, "ShapeProp error for: node=%S with meta=%S\n%s: %S", shown,
                     meta, Py_TYPE(value)->tp_name, value);
        chain(value);
    }
    Py_XDECREF(meta);
    Py_XDECREF(shown);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

PyObject *run_and_record(PyObject *self, PyObject *node)
{
    module_state *st = interpreter_state(self);
    PyObject *fake = is_ready(st) ? PyObject_GetAttr(self, NAME(st, fake_module)) : NULL;
    PyObject *value = NULL;
    if (fake == Py_None)
        value = interpreter_run_node(self, node);
    else if (fake)
        value = PyObject_CallMethodOneArg(self, NAME(st, _run_fake), node);
    Py_XDECREF(fake);
    if (!value)
        explain(node);
    else if (record(st, (PyNode *)node, value) < 0)
        Py_CLEAR(value);
    return value;
}

static PyObject *run_node(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames)
{
    static const char *const names[] = {"n"};
    static const arg_spec spec = {"run_node", names, 1, 1, 1};
    PyObject *node;
    module_state *st = interpreter_state(self);
    if (!take_args(&spec, args, nargs, kwnames, &node))
        return NULL;
    if (is_node(st, node))
        return run_and_record(self, node);
    return PyErr_Format(PyExc_TypeError, "run_node() expects a Node, got %R",
                        (PyObject *)Py_TYPE(node));
}

PyMethodDef run_and_record_def = {
    "run_node", FAST(run_node),
    SIGNED("run_node($self, n)", "Runs a node and notes what its value looks like."),
};

static PyMethodDef functions[] = {
    {"_tensor_metadata", py_tensor_metadata, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int shape_prop_init(PyObject *module)
{
    module_state *st = PyModule_GetState(module);
    st->shape_names = interned_names(texts, N_NAMES);
    PyObject *method = PyDescr_NewMethod((PyTypeObject *)st->InterpreterType,
                                         &run_and_record_def);
    int failed = !method || PyModule_AddObjectRef(module, "_run_and_record", method) < 0;
    Py_XDECREF(method);
    return failed || !st->shape_names ? -1 : PyModule_AddFunctions(module, functions);
}
