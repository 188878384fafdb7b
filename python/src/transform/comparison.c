/* comparison.c - cfx._core.Comparison: the layers of two graphs, and how far their values are
 * apart; and cfx._core.Correction: what the biases of the second lack. Tensors of torch, numpy and
 * whatever has DLPack are looked at where they are. */
#include "transform/comparison.h"

#include <cfx/compare.h>
#include <cfx/correct.h>

typedef struct PyComparison {
    PyObject_HEAD
    cfx_comparison *c;  /* of a Comparison */
    cfx_correction *k;  /* of a Correction */
    PyObject *graphs;   /* a pair: they keep the nodes */
} PyComparison;

static module_state *state_of_self(const PyComparison *self)
{
    return state_of(Py_TYPE((PyObject *)self));
}

/* Comparison(a, b), Correction(a, b): see cfx_comparison_new, cfx_correction_new. */
static PyObject *comparison_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const module_state *st = state_of(type);
    const bool corrects = type == (PyTypeObject *)st->CorrectionType;
    const char *const name = corrects ? "Correction" : "Comparison";
    cfx_error err = {0};
    PyObject *a, *b;
    (void)kwargs;
    if (!PyArg_UnpackTuple(args, name, 2, 2, &a, &b))
        return NULL;
    if (!is_graph(st, a) || !is_graph(st, b))
        return PyErr_Format(PyExc_TypeError, "%s() needs two Graphs", name);
    cfx_graph *const graphs[] = {((PyGraph *)a)->g, ((PyGraph *)b)->g};
    PyComparison *self = (PyComparison *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->graphs = PyTuple_Pack(2, a, b);
    if (self->graphs && corrects)
        self->k = cfx_correction_new(graphs[0], graphs[1], NULL, &err);
    else if (self->graphs)
        self->c = cfx_comparison_new(graphs[0], graphs[1], NULL, &err);
    if (self->c || self->k)
        return (PyObject *)self;
    const bool told = self->graphs == NULL;
    Py_DECREF(self);
    return told ? NULL : raise_cfx(&err);
}

static int comparison_traverse(PyComparison *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->graphs);
    return 0;
}

static int comparison_clear(PyComparison *self)
{
    Py_CLEAR(self->graphs);
    return 0;
}

static void comparison_dealloc(PyComparison *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    cfx_comparison_free(self->c);
    cfx_correction_free(self->k);
    Py_CLEAR(self->graphs);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *wrap(cfx_node *n) { return node_wrap(cfx_graph_binding(cfx_node_graph(n)), n); }

static bool pair_at(const PyComparison *self, size_t i, cfx_node **a, cfx_node **b)
{
    return self->c ? cfx_comparison_pair(self->c, i, a, b)
                   : cfx_correction_pair(self->k, i, a, b);
}

/* [(node of a, node of b)] */
static PyObject *comparison_pairs(PyComparison *self, PyObject *unused)
{
    cfx_node *a, *b;
    PyObject *pairs = PyList_New(0);
    (void)unused;
    for (size_t i = 0; pairs && pair_at(self, i, &a, &b); i++) {
        PyObject *first = wrap(a);
        PyObject *second = first ? wrap(b) : NULL;
        PyObject *pair = second ? PyTuple_Pack(2, first, second) : NULL;
        if (!pair || PyList_Append(pairs, pair) < 0)
            Py_CLEAR(pairs);
        Py_XDECREF(pair);
        Py_XDECREF(second);
        Py_XDECREF(first);
    }
    return pairs;
}

/* add(i, x, y): the values of the i-th pair. */
static PyObject *comparison_add(PyComparison *self, PyObject *args)
{
    module_state *st = state_of_self(self);
    cfx_error err = {0};
    arrays_seen seen = {0};
    Py_ssize_t i;
    PyObject *x, *y;
    if (!PyArg_ParseTuple(args, "nOO:add", &i, &x, &y))
        return NULL;
    cfx_tensor *a = tensor_from_py(st, x, &seen);
    cfx_tensor *b = a ? tensor_from_py(st, y, &seen) : NULL;
    cfx_status status = CFX_OK;
    if (b)
        status = cfx_comparison_add(self->c, i < 0 ? SIZE_MAX : (size_t)i, a, b, &err);
    cfx_tensor_release(a);
    cfx_tensor_release(b);
    if (!b)
        return NULL;
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

/* (sqnr, cosine, error, largest, elements, not_finite) */
static PyObject *closeness(const cfx_closeness *close)
{
    return Py_BuildValue("(ddddLL)", close->sqnr, close->cosine, close->error, close->largest,
                         (long long)close->elements, (long long)close->not_finite);
}

/* [(name, partner, module, operation, file, line, closeness, input_sqnr, own_error, advice)], the
 * worst first. */
static PyObject *comparison_rows(PyComparison *self, PyObject *unused)
{
    cfx_compared row;
    PyObject *rows = PyList_New(0);
    (void)unused;
    for (size_t k = 0; rows && cfx_comparison_row(self->c, k, &row); k++) {
        PyObject *close = closeness(&row.close);
        PyObject *one = close ? Py_BuildValue("(sssszIOddz)", row.name, row.partner, row.module,
                                              row.operation, row.file, row.line, close,
                                              row.input_sqnr, row.own_error, row.advice) : NULL;
        if (!one || PyList_Append(rows, one) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(one);
        Py_XDECREF(close);
    }
    return rows;
}

static PyObject *comparison_result(PyComparison *self, PyObject *unused)
{
    cfx_closeness close;
    (void)unused;
    return cfx_comparison_result(self->c, &close) ? closeness(&close) : Py_NewRef(Py_None);
}

/* text(json, width, most): see cfx_comparison_print. */
static PyObject *comparison_text(PyComparison *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_buffer text;
    int json;
    Py_ssize_t width, most;
    if (!PyArg_ParseTuple(args, "pnn:text", &json, &width, &most))
        return NULL;
    cfx_buffer_init(&text, NULL);
    const cfx_status status = cfx_comparison_print(
        self->c, json ? CFX_COMPARISON_JSON : CFX_COMPARISON_TABLE,
        width > 0 ? (size_t)width : 0, most > 0 ? (size_t)most : 0, cfx_buffer_sink(&text), &err);
    PyObject *result = status == CFX_OK
                           ? PyUnicode_FromStringAndSize(text.data, (Py_ssize_t)text.size)
                           : raise_cfx(&err);
    cfx_buffer_free(&text);
    return result;
}

static bool is_skipped(void *ctx, const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    const int found = text ? PySet_Contains(ctx, text) : -1;
    Py_XDECREF(text);
    return found != 0;
}

/* worst_own(skip): the name of the layer with the greatest error of its own that is not in the set,
 * and that error; or None. */
static PyObject *comparison_worst_own(PyComparison *self, PyObject *skip)
{
    cfx_compared row;
    if (!PySet_Check(skip))
        return PyErr_Format(PyExc_TypeError, "worst_own() needs a set of names");
    const bool found = cfx_comparison_worst_own(self->c, is_skipped, skip, &row);
    if (PyErr_Occurred())
        return NULL;
    return found ? Py_BuildValue("(sd)", row.name, row.own_error) : Py_NewRef(Py_None);
}

/* ---- corrections --------------------------------------------------------------------------- */

/* expect(i, x): what the i-th layer of the float model gives. */
static PyObject *correction_expect(PyComparison *self, PyObject *args)
{
    cfx_error err = {0};
    arrays_seen seen = {0};
    Py_ssize_t i;
    PyObject *x;
    if (!PyArg_ParseTuple(args, "nO:expect", &i, &x))
        return NULL;
    cfx_tensor *t = tensor_from_py(state_of_self(self), x, &seen);
    if (!t)
        return NULL;
    const cfx_status status = cfx_correction_expect(self->k, i < 0 ? SIZE_MAX : (size_t)i, t, &err);
    cfx_tensor_release(t);
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

/* meet(i, x): what is to be subtracted from what that of the quantized one gives; or None. */
static PyObject *correction_meet(PyComparison *self, PyObject *args)
{
    module_state *st = state_of_self(self);
    cfx_error err = {0};
    arrays_seen seen = {0};
    cfx_tensor *shift;
    Py_ssize_t i;
    PyObject *x;
    if (!PyArg_ParseTuple(args, "nO:meet", &i, &x))
        return NULL;
    cfx_tensor *t = tensor_from_py(st, x, &seen);
    if (!t)
        return NULL;
    const cfx_status status = cfx_correction_meet(self->k, i < 0 ? SIZE_MAX : (size_t)i, t, &shift,
                                                  &err);
    cfx_tensor_release(t);
    if (status != CFX_OK)
        return raise_cfx(&err);
    PyObject *result = shift ? tensor_to_py(st, shift, ARRAY_TORCH) : Py_NewRef(Py_None);
    cfx_tensor_release(shift);
    return result;
}

/* finish(module): its biases, those of the second graph, less the mean shifts. */
static PyObject *correction_finish(PyComparison *self, PyObject *module)
{
    cfx_error err = {0};
    module_view view;
    cfx_status status = CFX_E_HOST;
    if (modules_over(state_of_self(self), module, &view))
        status = cfx_correction_finish(self->k, &view.table, NULL, &err);
    modules_done(&view);
    if (PyErr_Occurred())
        return NULL;
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

static PyMethodDef correction_methods[] = {
    {"pairs", (PyCFunction)(void (*)(void))comparison_pairs, METH_NOARGS,
     SIGNED("pairs($self, /)", "The layers that can be corrected: [(of the float graph, of the "
                               "quantized one)].")},
    {"expect", (PyCFunction)(void (*)(void))correction_expect, METH_VARARGS,
     SIGNED("expect($self, i, x, /)", "What the i-th layer of the float model gives in a call.")},
    {"meet", (PyCFunction)(void (*)(void))correction_meet, METH_VARARGS,
     SIGNED("meet($self, i, x, /)", "What is to be subtracted from what that of the quantized one "
                                    "gives; or None.")},
    {"finish", (PyCFunction)(void (*)(void))correction_finish, METH_O,
     SIGNED("finish($self, module, /)", "Gives the layers of the quantized graph new biases.")},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef comparison_methods[] = {
    {"pairs", (PyCFunction)(void (*)(void))comparison_pairs, METH_NOARGS,
     SIGNED("pairs($self, /)", "The nodes that are compared: [(of the first graph, of the "
                               "second)].")},
    {"add", (PyCFunction)(void (*)(void))comparison_add, METH_VARARGS,
     SIGNED("add($self, i, a, b, /)", "Takes the values of the i-th pair into account.")},
    {"rows", (PyCFunction)(void (*)(void))comparison_rows, METH_NOARGS,
     SIGNED("rows($self, /)", "What is known of each layer, the worst first.")},
    {"result", (PyCFunction)(void (*)(void))comparison_result, METH_NOARGS,
     SIGNED("result($self, /)", "How far the results are apart; None if that is not known.")},
    {"text", (PyCFunction)(void (*)(void))comparison_text, METH_VARARGS,
     SIGNED("text($self, json, width, most, /)", "A table, or JSON.")},
    {"worst_own", (PyCFunction)(void (*)(void))comparison_worst_own, METH_O,
     SIGNED("worst_own($self, skip, /)", "The layer that adds most, and what it adds.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot comparison_slots[] = {
    {Py_tp_new, comparison_new},
    {Py_tp_dealloc, comparison_dealloc},
    {Py_tp_traverse, comparison_traverse},
    {Py_tp_clear, comparison_clear},
    {Py_tp_methods, comparison_methods},
    {Py_tp_doc, "Comparison(a, b, /)\n--\n\nThe layers of two graphs, and how far their values "
                "are apart."},
    {0, NULL},
};

PyType_Spec comparison_spec = {
    .name = "cfx._core.Comparison",
    .basicsize = sizeof(PyComparison),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = comparison_slots,
};

static PyType_Slot correction_slots[] = {
    {Py_tp_new, comparison_new},
    {Py_tp_dealloc, comparison_dealloc},
    {Py_tp_traverse, comparison_traverse},
    {Py_tp_clear, comparison_clear},
    {Py_tp_methods, correction_methods},
    {Py_tp_doc, "Correction(a, b, /)\n--\n\nThe layers of a float graph and a quantized one, and "
                "by how much the means of the second are off."},
    {0, NULL},
};

PyType_Spec correction_spec = {
    .name = "cfx._core.Correction",
    .basicsize = sizeof(PyComparison),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = correction_slots,
};
