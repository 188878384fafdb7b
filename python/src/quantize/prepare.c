/* prepare.c - preparing and converting graphs of nn.Modules: a Python object makes the observers.
 *
 * The host has observe(path, config, weight), share(path, with), spec(path), look(path, tensor),
 * scales(path) and train(path, norm, config). spec() returns what spec_from_py takes, or None if
 * there is no observer; scales() a pair, a text that says why there is none, or (None, why) if the
 * value has to stay float.
 */
#include "graph/graph_methods.h"
#include "quantize/quantizing.h"
#include "trace/trace.h"

typedef struct quantize_host {
    cfx_quantize_host table;  /* ctx is this */
    module_view view;
    PyGraph *graph;           /* borrowed, as the object is */
    PyObject *object;
    PyObject *left;           /* [(name of a node, reason)] of what stays float */
} quantize_host;

static cfx_status failed(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "Python raised an exception");
}

/* What a call of the host gave: CFX_OK, or CFX_E_HOST. The tree may have changed. */
static cfx_status done(quantize_host *h, PyObject *result, cfx_error *err)
{
    Py_CLEAR(h->view.last);
    if (!result)
        return failed(err);
    Py_DECREF(result);
    return CFX_OK;
}

/* ---- the host ------------------------------------------------------------------------------- */

static cfx_status observe(void *ctx, const char *path, const cfx_qconfig *config, bool weight,
                          cfx_error *err)
{
    quantize_host *h = ctx;
    return done(h, PyObject_CallMethod(h->object, "observe", "sOO", path, (PyObject *)config->host,
                                       weight ? Py_True : Py_False), err);
}

static cfx_status share(void *ctx, const char *path, const char *with, cfx_error *err)
{
    quantize_host *h = ctx;
    return done(h, PyObject_CallMethod(h->object, "share", "ss", path, with), err);
}

static cfx_status train(void *ctx, const char *path, const char *norm, const cfx_qconfig *config,
                        cfx_error *err)
{
    quantize_host *h = ctx;
    return done(h, PyObject_CallMethod(h->object, "train", "szO", path, norm,
                                       (PyObject *)config->host), err);
}

static cfx_status find_spec(void *ctx, const char *path, cfx_quantize_spec *spec, cfx_error *err)
{
    quantize_host *h = ctx;
    PyObject *dict = PyObject_CallMethod(h->object, "spec", "s", path);
    if (!dict)
        return failed(err);
    cfx_status status = CFX_OK;
    if (dict == Py_None)
        status = cfx_error_set(err, CFX_E_KEY, "'%.200s' is not an observer", path);
    else if (!spec_from_py(h->view.st, dict, spec))
        status = failed(err);
    Py_DECREF(dict);
    return status;
}

static cfx_status look(void *ctx, cfx_graph *g, const char *path, cfx_value tensor, cfx_error *err)
{
    quantize_host *h = ctx;
    PyObject *graph = graph_wrap(h->view.st, g);
    PyObject *value = graph ? value_to_py((PyGraph *)graph, tensor) : NULL;
    PyObject *result = value ? PyObject_CallMethod(h->object, "look", "sO", path, value) : NULL;
    Py_XDECREF(value);
    Py_XDECREF(graph);
    return done(h, result, err);
}

static cfx_status pair_of(PyGraph *graph, PyObject *pair, cfx_value *scale, cfx_value *zero,
                          cfx_error *err)
{
    if (PyUnicode_Check(pair)) {
        const char *why = PyUnicode_AsUTF8(pair);
        return why ? cfx_error_set(err, CFX_E_VALUE, "%s", why) : failed(err);
    }
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_Format(PyExc_TypeError, "expected a scale and a zero point, got %R", pair);
        return failed(err);
    }
    if (PyTuple_GET_ITEM(pair, 0) == Py_None) {
        const char *why = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 1));
        return why ? cfx_error_set(err, CFX_E_UNSUPPORTED, "%s", why) : failed(err);
    }
    *scale = value_from_py(graph, PyTuple_GET_ITEM(pair, 0));
    *zero = value_from_py(graph, PyTuple_GET_ITEM(pair, 1));
    return scale->kind == CFX_KIND_INVALID || zero->kind == CFX_KIND_INVALID ? failed(err) : CFX_OK;
}

static cfx_status scales(void *ctx, cfx_graph *g, const char *path, cfx_value *scale,
                         cfx_value *zero, cfx_error *err)
{
    quantize_host *h = ctx;
    PyObject *graph = graph_wrap(h->view.st, g);
    PyObject *pair = graph ? PyObject_CallMethod(h->object, "scales", "s", path) : NULL;
    cfx_status status = pair ? pair_of((PyGraph *)graph, pair, scale, zero, err) : failed(err);
    Py_XDECREF(pair);
    Py_XDECREF(graph);
    return status;
}

static void add_left(void *ctx, const cfx_node *n, const char *why)
{
    PyObject *list = ((quantize_host *)ctx)->left;
    PyObject *pair = Py_BuildValue("(ss)", cfx_node_name(n, NULL), why);
    if (!pair || PyList_Append(list, pair) < 0)
        PyErr_WriteUnraisable(list);
    Py_XDECREF(pair);
}

/* Whether the host can begin; host_end is due in any case. */
static bool host_begin(PyGraph *self, PyObject *module, PyObject *object, quantize_host *h)
{
    *h = (quantize_host){.graph = self, .object = object, .left = PyList_New(0)};
    h->table = (cfx_quantize_host){.ctx = h, .observe = observe, .share = share, .spec = find_spec,
                                   .look = look, .scales = scales, .train = train};
    return h->left && modules_over(self->st, module, &h->view);
}

/* The list of what stays float, or NULL with an exception. */
static PyObject *host_end(quantize_host *h, cfx_status status, cfx_error *err)
{
    PyObject *left = h->left;
    modules_done(&h->view);
    if (left && status == CFX_OK && !PyErr_Occurred())
        return left;
    Py_XDECREF(left);
    return PyErr_Occurred() && status == CFX_OK ? NULL : raise_cfx(err);
}

/* ---- methods of Graph ----------------------------------------------------------------------- */

enum { MOST_PLACES = 64 };

static Py_ssize_t read_places(PyObject *list, size_t places[MOST_PLACES])
{
    if (!PyList_Check(list) || PyList_GET_SIZE(list) > MOST_PLACES) {
        PyErr_Format(PyExc_ValueError, "expected a list of at most %d numbers", MOST_PLACES);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        places[i] = PyLong_AsSize_t(PyList_GET_ITEM(list, i));
        if (PyErr_Occurred())
            return -1;
    }
    return PyList_GET_SIZE(list);
}

/* _quantize_prepare(module, host, rules, training, every_spelling, quantized_inputs,
 * integer_inputs, backend, backend_adds): [(name, reason)] of what stays float. */
PyObject *graph_quantize_prepare(PyGraph *self, PyObject *args)
{
    PyObject *module, *object, *given, *inputs, *integers, *patterns;
    cfx_backend *backend;
    int training, every, adds;
    size_t places[MOST_PLACES], whole[MOST_PLACES];
    cfx_error err = {0};
    quantize_host h;
    if (!PyArg_ParseTuple(args, "OOOppOOOp:_quantize_prepare", &module, &object, &given, &training,
                          &every, &inputs, &integers, &patterns, &adds))
        return NULL;
    const Py_ssize_t n = read_places(inputs, places);
    const Py_ssize_t n_whole = n < 0 ? -1 : read_places(integers, whole);
    const cfx_qrules *rules = n_whole < 0 ? NULL : rules_from_py(self->st, given);
    if (!rules || !backend_from_py(self->st, patterns, &backend))
        return NULL;
    cfx_status status = CFX_E_HOST;
    if (host_begin(self, module, object, &h)) {
        const cfx_prepare_options opts = {
            .training = training, .every_spelling = every, .inputs = places,
            .n_inputs = (size_t)n, .left = add_left, .ctx = &h, .whole = whole,
            .n_whole = (size_t)n_whole, .backend = backend,
            .backend_adds = adds};
        cfx_iter here = hold(self->g);
        status = cfx_graph_prepare(self->g, &h.view.table, &h.table, rules, &opts, &err);
        cfx_iter_end(&here);
    }
    cfx_backend_free(backend);
    return host_end(&h, status, &err);
}

/* The texts of a list, which they belong to; NULL with an exception. */
static const char **read_texts(PyObject *list, size_t *n)
{
    *n = PyList_Check(list) ? (size_t)PyList_GET_SIZE(list) : 0;
    const char **texts = PyMem_Calloc(*n + 1, sizeof *texts);
    for (size_t i = 0; texts && i < *n; i++) {
        texts[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, (Py_ssize_t)i));
        if (!texts[i]) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts ? texts : (const char **)PyErr_NoMemory();
}

/* _quantize_convert(module, host, keep, quantized_outputs): [(name, reason)] of what stays
 * float. */
PyObject *graph_quantize_convert(PyGraph *self, PyObject *args)
{
    PyObject *module, *object, *keep, *outputs;
    size_t places[MOST_PLACES], n_keep;
    cfx_error err = {0};
    quantize_host h;
    if (!PyArg_ParseTuple(args, "OOOO:_quantize_convert", &module, &object, &keep, &outputs))
        return NULL;
    const Py_ssize_t n = read_places(outputs, places);
    const char **names = n < 0 ? NULL : read_texts(keep, &n_keep);
    if (!names)
        return NULL;
    cfx_status status = CFX_E_HOST;
    if (host_begin(self, module, object, &h)) {
        const cfx_convert_options opts = {.keep = names, .n_keep = n_keep, .outputs = places,
                                          .n_outputs = (size_t)n, .left = add_left, .ctx = &h};
        cfx_iter here = hold(self->g);
        status = cfx_graph_convert(self->g, &h.view.table, &h.table, &opts, &err);
        cfx_iter_end(&here);
    }
    PyMem_Free(names);
    return host_end(&h, status, &err);
}
