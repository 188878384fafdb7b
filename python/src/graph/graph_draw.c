/* graph_draw.c - Graph._dot: a picture of a graph, with what Python knows of its nodes.
 *
 * Of a module that is called: its class, its constants (`__constants__`), its parameters and
 * buffers. Of any node: the tensors in meta["tensor_meta"], or else in meta["val"]. Asking for them
 * may run any code; the core has frozen the graph meanwhile.
 */
#include "graph_methods.h"

typedef struct draw_job {
    module_state *st;
    PyObject *module;      /* that call_module looks in, or NULL */
    PyObject *highlights;  /* a set of names, or NULL */
    bool tensors;          /* whether parameters and buffers are shown */
} draw_job;

/* ---- lines --------------------------------------------------------------------------------- */

/* Takes the reference to `line`; -1 with an exception, also if it is NULL. */
static int add_line(PyObject *lines, PyObject *line)
{
    int failed = line ? PyList_Append(lines, line) : -1;
    Py_XDECREF(line);
    return failed;
}

/* "name: torch.float32[2, 3]"; without the name if it is NULL. `shape` may be any sequence. */
static int add_tensor(PyObject *lines, PyObject *name, PyObject *dtype, PyObject *shape)
{
    PyObject *sizes = PySequence_List(shape);
    PyObject *line = NULL;
    if (sizes)
        line = name ? PyUnicode_FromFormat("%S: %S%R", name, dtype, sizes)
                    : PyUnicode_FromFormat("%S%R", dtype, sizes);
    Py_XDECREF(sizes);
    return add_line(lines, line);
}

/* 1 if `o` has a dtype and a shape, 0 if not, -1 with an exception. */
static int add_if_tensor(PyObject *lines, PyObject *name, PyObject *o)
{
    static const char *const wanted[] = {"dtype", "shape"};
    PyObject *found[2] = {NULL, NULL};
    int result = 1;
    for (int i = 0; result == 1 && i < 2; i++) {
        found[i] = PyObject_GetAttrString(o, wanted[i]);
        if (!found[i])
            result = PyErr_ExceptionMatches(PyExc_AttributeError) ? 0 : -1;
        if (!found[i] && result == 0)
            PyErr_Clear();  /* it is no tensor */
    }
    if (result == 1 && add_tensor(lines, name, found[0], found[1]) < 0)
        result = -1;
    Py_XDECREF(found[0]);
    Py_XDECREF(found[1]);
    return result;
}

/* The tensors in a value, down through lists, tuples and dicts. */
static int add_tensors(PyObject *lines, PyObject *value)
{
    int done = value == Py_None || PyUnicode_Check(value) ? 1 : add_if_tensor(lines, NULL, value);
    if (done != 0)
        return done < 0 ? -1 : 0;
    PyObject *items = NULL;
    if (PyDict_Check(value))
        items = PyDict_Values(value);
    else if (PyTuple_Check(value) || PyList_Check(value))
        items = PySequence_List(value);
    if (!items)
        return PyErr_Occurred() ? -1 : 0;
    int failed = enter_nested(" while drawing a graph");
    if (!failed) {
        for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(items); i++)
            failed = add_tensors(lines, PyList_GET_ITEM(items, i));
        leave_nested();
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

static int describe_meta(PyObject *lines, PyObject *meta)
{
    PyObject *value = PyDict_GetItemString(meta, "tensor_meta");
    if (!value)
        value = PyDict_GetItemString(meta, "val");
    Py_XINCREF(value);
    int failed = value ? add_tensors(lines, value) : 0;
    Py_XDECREF(value);
    return failed;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* "in_features: 3" for each constant that the module has. */
static int add_constants(PyObject *lines, PyObject *module)
{
    PyObject *text = PyUnicode_FromString("__constants__");
    PyObject *names = text ? attr_or_none(module, text) : NULL;
    PyObject *each = names && names != Py_None ? PySequence_List(names) : NULL;
    int failed = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; each && !failed && i < PyList_GET_SIZE(each); i++) {
        PyObject *name = PyList_GET_ITEM(each, i);
        PyObject *value = attr_or_none(module, name);
        if (!value)
            failed = -1;
        else if (value != Py_None)
            failed = add_line(lines, PyUnicode_FromFormat("%S: %S", name, value));
        Py_XDECREF(value);
    }
    Py_XDECREF(each);
    Py_XDECREF(names);
    Py_XDECREF(text);
    return failed;
}

/* What module.named_parameters() or named_buffers() has. */
static int add_named(PyObject *lines, PyObject *module, const char *method)
{
    PyObject *named = PyObject_CallMethod(module, method, NULL);
    PyObject *each = named ? PySequence_List(named) : NULL;
    int failed = each ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(each); i++) {
        PyObject *name, *tensor;
        failed = PyArg_ParseTuple(PyList_GET_ITEM(each, i), "OO", &name, &tensor) ? 0 : -1;
        if (!failed && add_if_tensor(lines, name, tensor) < 0)
            failed = -1;
    }
    Py_XDECREF(each);
    Py_XDECREF(named);
    return failed;
}

static int describe_module(const draw_job *job, PyObject *lines, const cfx_node *n)
{
    size_t size;
    const char *target = cfx_node_target(n, &size, NULL);
    PyObject *path = target ? str_from_utf8(target, size) : PyErr_NoMemory();
    PyObject *module = path ? path_get(job->st, job->module, path) : NULL;
    Py_XDECREF(path);
    if (!module && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();  /* a graph may be drawn before its modules are there */
        return 0;
    }
    if (!module)
        return -1;
    int failed = add_line(lines, type_repr((PyObject *)Py_TYPE(module))) < 0 ||
                 add_constants(lines, module) < 0 ||
                 (job->tensors && (add_named(lines, module, "named_parameters") < 0 ||
                                   add_named(lines, module, "named_buffers") < 0));
    Py_DECREF(module);
    return failed ? -1 : 0;
}

/* ---- the picture --------------------------------------------------------------------------- */

static cfx_status describe(void *ctx, cfx_node *n, cfx_sink out, cfx_error *err)
{
    const draw_job *job = ctx;
    const PyNode *node = cfx_node_binding(n);
    cfx_status status = CFX_E_HOST;
    PyObject *lines = PyList_New(0);
    int failed = !lines;
    if (!failed && job->module && cfx_node_op(n) == CFX_OP_CALL_MODULE)
        failed = describe_module(job, lines, n);
    if (!failed && node && node->meta)
        failed = describe_meta(lines, node->meta);
    PyObject *newline = failed ? NULL : PyUnicode_FromString("\n");
    PyObject *text = newline ? PyUnicode_Join(newline, lines) : NULL;
    if (text)
        status = write_str(text, out, err);
    Py_XDECREF(text);
    Py_XDECREF(newline);
    Py_XDECREF(lines);
    return status;
}

/* Nodes that are to be seen are yellow, and all others grey. */
static const char *highlight(void *ctx, const cfx_node *n)
{
    const draw_job *job = ctx;
    size_t size;
    const char *name = cfx_node_name(n, &size);
    PyObject *text = str_from_utf8(name, size);
    int found = text ? PySet_Contains(job->highlights, text) : -1;
    Py_XDECREF(text);
    if (found < 0)
        PyErr_Clear();  /* a colour is not worth a failure */
    return found > 0 ? "yellow" : "grey";
}

/* A str argument as UTF-8, or NULL where it is None or not given; false with an exception. */
static bool optional_text(PyObject *o, const char **text)
{
    *text = NULL;
    if (o && o != Py_None)
        *text = PyUnicode_AsUTF8(o);
    return *text || !o || o == Py_None;
}

static bool is_set(PyObject *flag) { return flag && PyObject_IsTrue(flag) == 1; }
static PyObject *given(PyObject *o) { return o == Py_None ? NULL : o; }

static PyObject *dot_text(PyGraph *self, const cfx_dot_options *options)
{
    cfx_error err = {0};
    cfx_buffer out;
    PyObject *text = NULL;
    cfx_buffer_init(&out, NULL);
    if (cfx_codegen_dot(self->g, options, cfx_buffer_sink(&out), &err) == CFX_OK &&
        !PyErr_Occurred())
        text = str_from_utf8(out.data, out.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&out);
    return text;
}

/* _dot(name, module=None, shape=None, highlights=None, *, flags): the text for Graphviz. */
PyObject *graph_dot(FAST_ARGS)
{
    enum { NAME, MODULE, SHAPE, HIGHLIGHTS, SCOPES, LOCATIONS, HIDE_GET_ATTR, LITERALS_ONLY,
           HIDE_TENSORS, N };
    static const char *const names[] = {"name", "module", "shape", "highlights", "scopes",
                                        "locations", "hide_get_attr", "literals_only",
                                        "hide_tensors"};
    static const arg_spec spec = {"_dot", names, N, 1, 4};
    PyObject *in[N];
    cfx_dot_options options = {.describe = describe};
    if (!take_args(&spec, args, nargs, kwnames, in) ||
        !optional_text(in[NAME], &options.name) || !optional_text(in[SHAPE], &options.shape))
        return NULL;
    draw_job job = {self->st, given(in[MODULE]), given(in[HIGHLIGHTS]), !is_set(in[HIDE_TENSORS])};
    if (job.highlights && !PyAnySet_Check(job.highlights))
        return PyErr_Format(PyExc_TypeError, "highlights must be a set of names");
    options.module_stacks = is_set(in[SCOPES]);
    options.locations = is_set(in[LOCATIONS]);
    options.hide_get_attr = is_set(in[HIDE_GET_ATTR]);
    options.literals_only = is_set(in[LITERALS_ONLY]);
    options.colour = job.highlights ? highlight : NULL;
    options.ctx = &job;
    return PyErr_Occurred() ? NULL : dot_text(self, &options);
}
