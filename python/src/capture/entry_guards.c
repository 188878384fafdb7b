/* entry_guards.c - sets of guards (cfx/guard.h) for Python: made from questions about nodes,
 * checked before a graph runs. */
#include "capture/capture_entry.h"

/* ---- making -------------------------------------------------------------------------------- */

/* Reads the names of inputs; the texts live as long as `keep`, a new list. */
static const char **names_from_py(PyObject *names, Py_ssize_t *n, PyObject **keep)
{
    *n = PyList_GET_SIZE(names);
    *keep = PyList_New(0);
    const char **texts = *keep ? PyMem_New(const char *, (size_t)*n + 1) : NULL;
    for (Py_ssize_t i = 0; texts && i < *n; i++) {
        PyObject *own = NULL;
        PyObject *name = PyList_GET_ITEM(names, i);
        texts[i] = PyUnicode_Check(name) ? c_string_of(name, "the name of an input", &own) : NULL;
        if (!texts[i] && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the names of inputs are strings");
        if (!texts[i] || (own && PyList_Append(*keep, own) < 0)) {
            PyMem_Free(texts);
            texts = NULL;
        }
        Py_XDECREF(own);
    }
    if (!texts && !PyErr_Occurred())
        PyErr_NoMemory();
    return texts;
}

/* _Guards(names, text=""): reads guards that `text` has. */
static PyObject *guards_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *names, *text = NULL, *keep;
    Py_ssize_t n, size;
    cfx_error err = {0};
    if ((kwargs && PyDict_GET_SIZE(kwargs)) ||
        !PyArg_ParseTuple(args, "O!|U:_Guards", &PyList_Type, &names, &text))
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "_Guards takes no keywords");
    const char **texts = names_from_py(names, &n, &keep);
    PyGuards *made = texts ? (PyGuards *)type->tp_alloc(type, 0) : NULL;
    if (made)
        made->guards = cfx_guards_new(texts, (size_t)n, NULL, &err);
    PyMem_Free(texts);
    Py_XDECREF(keep);
    if (made && !made->guards) {
        Py_DECREF(made);
        return raise_cfx(&err);
    }
    const char *from = made && text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (from && cfx_guards_parse(made->guards, from, (size_t)size, &err) != CFX_OK)
        raise_cfx(&err);
    if (made && PyErr_Occurred())
        Py_CLEAR(made);
    return (PyObject *)made;
}

static void guards_dealloc(PyGuards *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cfx_guards_free(self->guards);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* A finite choice by its name. */
static bool choice_from_py(PyObject *o, const char *const *names, int n, int *out)
{
    for (*out = 0; PyUnicode_Check(o) && *out < n; ++*out)
        if (PyUnicode_CompareWithASCIIString(o, names[*out]) == 0)
            return true;
    PyErr_Format(PyExc_ValueError, "%R is not one of the words that guards have", o);
    return false;
}

/* A node or a number; INVALID, without an exception, for what guards cannot be about. */
static cfx_value side_from_py(const module_state *st, PyObject *o)
{
    int overflow = 0;
    if (is_node(st, o))
        return cfx_value_node(((PyNode *)o)->n);
    if (PyFloat_CheckExact(o))
        return cfx_value_float(PyFloat_AS_DOUBLE(o));
    const long long i = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &overflow) : 0;
    return PyLong_CheckExact(o) && !overflow ? cfx_value_int(i) : cfx_value_invalid();
}

static cfx_datum answer_from_py(const module_state *st, PyObject *o)
{
    if (PyBool_Check(o))
        return cfx_datum_bool(o == Py_True);
    const cfx_value v = side_from_py(st, o);
    return v.kind == CFX_KIND_INT     ? cfx_datum_int(v.as.i)
           : v.kind == CFX_KIND_FLOAT ? cfx_datum_float(v.as.f)
                                      : cfx_datum_invalid();
}

/* (kind, asker, line, value, relation, left, right, truth); `line` is borrowed from the tuple. */
static bool question_from_py(const module_state *st, PyObject *tuple, cfx_question *q)
{
    static const char *const kinds[] = {
#define CFX_GUARD_KIND(id, name) name,
#include <cfx/guard.def>
#undef CFX_GUARD_KIND
    };
    static const char *const askers[] = {
#define CFX_GUARD_ASKER(id, name) name,
#include <cfx/guard.def>
#undef CFX_GUARD_ASKER
    };
    static const char *const relations[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    PyObject *kind, *asker, *value, *relation, *left, *right;
    int choice[3], truth;
    *q = (cfx_question){0};
    if (!PyTuple_Check(tuple) ||
        !PyArg_ParseTuple(tuple, "OOsOOOOp:question", &kind, &asker, &q->guard.line, &value,
                          &relation, &left, &right, &truth) ||
        !choice_from_py(kind, kinds, CFX_GUARD_KIND_COUNT, &choice[0]) ||
        !choice_from_py(asker, askers, CFX_GUARD_ASKER_COUNT, &choice[1]) ||
        !choice_from_py(relation, relations, CFX_GUARD_RELATION_COUNT, &choice[2]))
        return false;
    q->guard.kind = (cfx_guard_kind)choice[0];
    q->guard.asker = (cfx_guard_asker)choice[1];
    q->relation = (cfx_guard_relation)choice[2];
    q->guard.value = answer_from_py(st, value);
    q->left = side_from_py(st, left);
    q->right = side_from_py(st, right);
    q->truth = truth != 0;
    if (q->guard.value.kind == CFX_DATUM_INVALID)  /* nothing that the core could tell: it stays */
        q->left = cfx_value_invalid();
    return true;
}

/* ---- inputs -------------------------------------------------------------------------------- */

enum { MOST_DIMS = 64 };  /* torch's own limit */

typedef struct input_sizes {
    int64_t sizes[MOST_DIMS];
    bool fixed[MOST_DIMS];
} input_sizes;

/* An int or a float, or (dtype, sizes, which of them are fixed). */
static bool input_from_py(module_state *st, PyObject *o, cfx_guard_input *in, input_sizes *room)
{
    PyObject *dtype, *sizes, *fixed;
    *in = (cfx_guard_input){.number = PyTuple_Check(o) ? cfx_datum_invalid()
                                                       : answer_from_py(st, o)};
    if (!PyTuple_Check(o)) {
        if (in->number.kind == CFX_DATUM_INVALID)  /* an integer of more than 64 bits */
            in->number = cfx_datum_float(0);       /* nothing can be told of it, as of floats */
        return true;
    }
    if (!PyArg_ParseTuple(o, "OO!O!:input", &dtype, &PyTuple_Type, &sizes, &PyTuple_Type, &fixed))
        return false;
    in->ndim = (size_t)PyTuple_GET_SIZE(sizes);
    if (in->ndim > MOST_DIMS || (size_t)PyTuple_GET_SIZE(fixed) != in->ndim) {
        PyErr_SetString(PyExc_ValueError, "sizes of an input do not fit");
        return false;
    }
    for (size_t d = 0; d < in->ndim; d++) {
        room->sizes[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, (Py_ssize_t)d));
        room->fixed[d] = PyTuple_GET_ITEM(fixed, (Py_ssize_t)d) == Py_True;
        if (room->sizes[d] == -1 && PyErr_Occurred())
            return false;
    }
    in->sizes = room->sizes;
    in->fixed = room->fixed;
    if (!dtype_from_py(st, dtype, &in->dtype)) {
        PyErr_Clear();  /* a dtype that only torch has: no rule can be asked about it */
        in->dtype = CFX_DTYPE_COUNT;
    }
    return true;
}

/* ---- parameters ---------------------------------------------------------------------------- */

typedef struct settle_job {
    module_state *st;
    PyObject *root;
} settle_job;

/* What a tensor of the module looks like, without its data: it may be anywhere. */
static cfx_tensor *tensor_at(void *ctx, const char *path, cfx_error *err)
{
    settle_job *job = ctx;
    cfx_tensor *made = NULL;
    cfx_guard_input in;
    input_sizes room;
    PyObject *text = PyUnicode_FromString(path);
    PyObject *t = text ? path_get(job->st, job->root, text) : NULL;
    if (t && PyObject_TypeCheck(t, (PyTypeObject *)job->st->tensor_class)) {
        PyObject *dtype = PyObject_GetAttr(t, job->st->str_dtype);
        PyObject *shape = dtype ? PyObject_GetAttr(t, job->st->str_shape) : NULL;
        PyObject *sizes = shape ? PySequence_Tuple(shape) : NULL;
        PyObject *input = sizes ? PyTuple_Pack(3, dtype, sizes, sizes) : NULL;
        if (input && input_from_py(job->st, input, &in, &room) && in.ndim <= CFX_MAX_DIMS &&
            in.dtype < CFX_DTYPE_COUNT)
            made = cfx_tensor_new_abstract(in.dtype, in.sizes, in.ndim, NULL, err);
        Py_XDECREF(input);
        Py_XDECREF(sizes);
        Py_XDECREF(shape);
        Py_XDECREF(dtype);
    }
    Py_XDECREF(t);
    Py_XDECREF(text);
    PyErr_Clear();  /* what cannot be read is not known; the graph itself will say so */
    return made;
}

/* ---- settling ------------------------------------------------------------------------------ */

static PyObject *settled_list(const cfx_question *questions, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++)
        PyList_SET_ITEM(list, i, PyBool_FromLong(questions[i].settled));
    return list;
}

/* settle(graph, root, inputs, questions): adds the questions that the inputs decide; for each,
 * whether it is settled. */
static PyObject *guards_settle(PyGuards *self, PyObject *args)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *graph, *root, *inputs, *list, *result = NULL;
    module_view view = {0};
    cfx_error err = {0};
    if (!PyArg_ParseTuple(args, "OOO!O!:settle", &graph, &root, &PyList_Type, &inputs,
                          &PyList_Type, &list))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "settle needs a Graph");
    const Py_ssize_t n = PyList_GET_SIZE(list);
    const Py_ssize_t m = PyList_GET_SIZE(inputs);
    cfx_question *questions = PyMem_New(cfx_question, (size_t)n + 1);
    cfx_guard_input *in = PyMem_New(cfx_guard_input, (size_t)m + 1);
    input_sizes *room = PyMem_New(input_sizes, (size_t)m + 1);
    PyObject *runtime = questions && in && room ? runtime_current(st) : PyErr_NoMemory();
    bool good = runtime && modules_over(st, root, &view);
    for (Py_ssize_t i = 0; good && i < m; i++)
        good = input_from_py(st, PyList_GET_ITEM(inputs, i), &in[i], &room[i]);
    for (Py_ssize_t i = 0; good && i < n; i++)
        good = question_from_py(st, PyList_GET_ITEM(list, i), &questions[i]);
    if (good && (size_t)m != cfx_guards_num_inputs(self->guards)) {
        PyErr_Format(PyExc_ValueError, "%zd inputs are given for guards over %zu", m,
                     cfx_guards_num_inputs(self->guards));
        good = false;
    }
    if (good) {
        settle_job job = {st, root};
        const cfx_settle_options options = {.inputs = in, .modules = &view.table,
                                            .rt = runtime_of(runtime), .tensor = tensor_at,
                                            .ctx = &job};
        if (cfx_guards_settle(self->guards, ((PyGraph *)graph)->g, questions, (size_t)n, &options,
                              &err) != CFX_OK)
            raise_cfx(&err);
        else if (!PyErr_Occurred())
            result = settled_list(questions, n);
    }
    modules_done(&view);
    Py_XDECREF(runtime);
    PyMem_Free(questions);
    PyMem_Free(in);
    PyMem_Free(room);
    return result;
}

/* _drop_numbers(graph, inputs): erases numbers that nobody uses; whether there were any. `inputs`:
 * for each placeholder, whether it is a number. */
static PyObject *py_drop_numbers(PyObject *module, PyObject *args)
{
    PyObject *graph, *list;
    cfx_error err = {0};
    bool changed = false;
    if (!PyArg_ParseTuple(args, "OO!:_drop_numbers", &graph, &PyList_Type, &list))
        return NULL;
    if (!is_graph(PyModule_GetState(module), graph))
        return PyErr_Format(PyExc_TypeError, "_drop_numbers needs a Graph");
    cfx_graph *g = ((PyGraph *)graph)->g;
    size_t n = 0;
    for (const cfx_node *node = cfx_graph_first(g); node; node = cfx_node_next(node))
        n += cfx_node_op(node) == CFX_OP_PLACEHOLDER;
    bool *inputs = PyMem_Calloc(n + 1, sizeof *inputs);
    if (!inputs)
        return PyErr_NoMemory();
    for (size_t i = 0; i < n && i < (size_t)PyList_GET_SIZE(list); i++)
        inputs[i] = PyList_GET_ITEM(list, (Py_ssize_t)i) == Py_True;
    const cfx_status status = cfx_graph_drop_numbers(g, inputs, &changed, &err);
    PyMem_Free(inputs);
    return status == CFX_OK ? PyBool_FromLong(changed) : raise_cfx(&err);
}

PyMethodDef guards_functions[] = {
    {"_drop_numbers", py_drop_numbers, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- looking ------------------------------------------------------------------------------- */

static PyObject *buffer_text(cfx_buffer *buffer, cfx_status status, const cfx_error *err)
{
    PyObject *text = status == CFX_OK ? str_from_utf8(buffer->data, buffer->size) : raise_cfx(err);
    cfx_buffer_free(buffer);
    return text;
}

static PyObject *question_text(const cfx_guards *guards, size_t i)
{
    cfx_buffer out;
    cfx_error err = {0};
    cfx_buffer_init(&out, NULL);
    const cfx_status status = cfx_guards_print_question(guards, i, cfx_buffer_sink(&out), &err);
    return buffer_text(&out, status, &err);
}

static PyObject *answer_to_py(cfx_datum d)
{
    if (d.kind == CFX_DATUM_BOOL)
        return PyBool_FromLong(d.as.b);
    return d.kind == CFX_DATUM_INT ? PyLong_FromLongLong(d.as.i) : PyFloat_FromDouble(d.as.f);
}

/* The i-th guard: (kind, expression, value, line, asker). */
static PyObject *guard_row(const cfx_guards *guards, size_t i)
{
    static const char *const kinds[] = {
#define CFX_GUARD_KIND(id, name) name,
#include <cfx/guard.def>
#undef CFX_GUARD_KIND
    };
    static const char *const askers[] = {
#define CFX_GUARD_ASKER(id, name) name,
#include <cfx/guard.def>
#undef CFX_GUARD_ASKER
    };
    cfx_guard guard;
    cfx_guards_get(guards, i, &guard);
    PyObject *text = question_text(guards, i);
    PyObject *value = text ? answer_to_py(guard.value) : NULL;
    PyObject *row = value ? Py_BuildValue("(sOOss)", kinds[guard.kind], text, value, guard.line,
                                          askers[guard.asker]) : NULL;
    Py_XDECREF(value);
    Py_XDECREF(text);
    return row;
}

static PyObject *guards_rows(PyGuards *self, PyObject *unused)
{
    (void)unused;
    const size_t n = cfx_guards_count(self->guards);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *row = guard_row(self->guards, i);
        if (!row)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *guards_text(PyGuards *self, void *unused)
{
    (void)unused;
    cfx_buffer out;
    cfx_error err = {0};
    cfx_buffer_init(&out, NULL);
    const cfx_status status = cfx_guards_print(self->guards, cfx_buffer_sink(&out), &err);
    return buffer_text(&out, status, &err);
}

static PyObject *guards_reduce(PyGuards *self, PyObject *unused)
{
    (void)unused;
    PyObject *names = PyList_New(0);
    const char *name;
    for (size_t i = 0; names && (name = cfx_guards_input(self->guards, i)) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(names, text) < 0)
            Py_CLEAR(names);
        Py_XDECREF(text);
    }
    PyObject *text = names ? guards_text(self, NULL) : NULL;
    PyObject *made = text ? Py_BuildValue("(O(OO))", (PyObject *)Py_TYPE(self), names, text) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(names);
    return made;
}

/* ---- checking ------------------------------------------------------------------------------ */

/* The value of a term; INVALID for an integer that does not fit in 64 bits: its guards fail. */
static bool term_value(const module_state *st, PyObject *input, size_t dim, cfx_datum *out)
{
    PyObject *size = NULL;
    int overflow = 0;
    if (dim != CFX_GUARD_NUMBER) {
        PyObject *number = PyLong_FromSize_t(dim);
        size = number ? PyObject_CallMethodOneArg(input, st->str_size, number) : NULL;
        Py_XDECREF(number);
        if (!size)
            return false;
        input = size;
    }
    if (PyFloat_Check(input))
        *out = cfx_datum_float(PyFloat_AS_DOUBLE(input));
    else
        *out = cfx_datum_int(PyLong_AsLongLongAndOverflow(input, &overflow));
    Py_XDECREF(size);
    if (overflow)
        *out = cfx_datum_invalid();
    return !PyErr_Occurred();
}

bool guards_check(PyGuards *self, PyObject *const *inputs, size_t *which, cfx_error *why)
{
    const module_state *st = state_of(Py_TYPE(self));
    const size_t n = cfx_guards_num_terms(self->guards);
    cfx_datum few[16];
    size_t input;
    size_t dim;
    cfx_datum *values = n <= 16 ? few : PyMem_New(cfx_datum, n);
    bool good = values != NULL;
    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; good && i < n; i++) {
        cfx_guards_term(self->guards, i, &input, &dim);
        good = term_value(st, inputs[input], dim, &values[i]);
    }
    *which = SIZE_MAX;
    if (good)
        cfx_guards_hold(self->guards, values, which, why);
    if (values != few)
        PyMem_Free(values);
    return good;
}

/* failed(inputs): the row of the first guard that does not hold, or None. */
static PyObject *guards_failed(PyGuards *self, PyObject *inputs)
{
    size_t which;
    if (cfx_guards_count(self->guards) == 0)
        Py_RETURN_NONE;
    if (!PyList_Check(inputs) ||
        (size_t)PyList_GET_SIZE(inputs) != cfx_guards_num_inputs(self->guards))
        return PyErr_Format(PyExc_TypeError, "failed() needs the list of %zu inputs",
                            cfx_guards_num_inputs(self->guards));
    PyObject *held = PyList_AsTuple(inputs);  /* asking for a size may run any code */
    if (!held || !guards_check(self, &PyTuple_GET_ITEM(held, 0), &which, NULL))
        which = SIZE_MAX - 1;
    Py_XDECREF(held);
    if (which == SIZE_MAX - 1)
        return NULL;
    return which == SIZE_MAX ? Py_NewRef(Py_None) : guard_row(self->guards, which);
}

static Py_ssize_t guards_length(PyGuards *self)
{
    return (Py_ssize_t)cfx_guards_count(self->guards);
}

static PyMethodDef guards_methods[] = {
    {"settle", (PyCFunction)guards_settle, METH_VARARGS, NULL},
    {"rows", (PyCFunction)guards_rows, METH_NOARGS, NULL},
    {"failed", (PyCFunction)guards_failed, METH_O, NULL},
    {"__reduce__", (PyCFunction)guards_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef guards_getset[] = {
    {"text", (getter)guards_text, NULL, "the guards, one to a line", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot guards_slots[] = {
    {Py_tp_new, guards_make},
    {Py_tp_dealloc, guards_dealloc},
    {Py_tp_methods, guards_methods},
    {Py_tp_getset, guards_getset},
    {Py_mp_length, guards_length},
    {Py_tp_doc, "What a graph assumes of its inputs, checked before it runs."},
    {0, NULL},
};

PyType_Spec guards_spec = {"cfx._core._Guards", sizeof(PyGuards), 0, Py_TPFLAGS_DEFAULT,
                           guards_slots};
