/* executable.c - _Executable: a .cfx file that runs without torch (cfx/runtime.py). */
#include "run/inputs.h"
#include "run/package.h"
#include "run/session.h"

#include <cfx/executable.h>

#include <stdio.h>

typedef struct PyExecutable {
    PyObject_HEAD
    cfx_executable *e;
    PyObject *texts;  /* of signatures: [str or None, ...], one for each graph */
} PyExecutable;

/* ---- loading ------------------------------------------------------------------------------- */

/* Python reads of a signature what C does not: how arguments are nested. */
static PyObject *texts_of(const cfx_package *p, size_t n)
{
    PyObject *texts = PyList_New(0);
    for (size_t i = 0; texts && i < n; i++) {
        char name[64] = "signature.ir";
        size_t size;
        if (i > 0)
            snprintf(name, sizeof name, "graphs/%zu/signature.ir", i);
        const char *data = cfx_package_text(p, name, &size);
        PyObject *text = data ? str_from_utf8(data, size) : Py_NewRef(Py_None);
        if (!text || PyList_Append(texts, text) < 0)
            Py_CLEAR(texts);
        Py_XDECREF(text);
    }
    return texts;
}

/* False with an exception, or with *err set. */
static bool prepare(PyExecutable *self, const cfx_package *p, const cfx_state *weights,
                    bool append, cfx_error *err)
{
    const cfx_compile_options compile = {.append = append};
    const cfx_executable_options options = {.weights = weights, .compile = &compile};
    Py_BEGIN_ALLOW_THREADS
    self->e = cfx_executable_new(p, &options, err);
    Py_END_ALLOW_THREADS
    self->texts = self->e ? texts_of(p, cfx_executable_num_graphs(self->e)) : NULL;
    return self->texts != NULL;
}

/* _Executable(path or bytes, copy, verify, {name: tensor} or None, append) */
static PyObject *executable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source, *weights;
    int copy, verify;
    int append = 0;
    cfx_error err = {0};
    arrays_seen seen = {0};
    Py_buffer view = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OppO|p:_Executable", &source, &copy, &verify, &weights,
                          &append))
        return NULL;
    if (weights != Py_None && !PyDict_Check(weights))
        return PyErr_Format(PyExc_TypeError, "weights must be a dict, not %s",
                            Py_TYPE(weights)->tp_name);
    cfx_state *state = NULL;
    if (weights != Py_None && !(state = state_from_py(state_of(type), weights, &seen)))
        return NULL;
    PyExecutable *self = (PyExecutable *)type->tp_alloc(type, 0);
    const cfx_package_options options = {.copy = copy, .verify = verify, .read_only = true};
    cfx_package *p = self ? package_open(source, &options, &view, &err) : NULL;
    if (self && !(p && prepare(self, p, state, append, &err))) {
        if (!PyErr_Occurred())
            raise_cfx(&err);
        Py_CLEAR(self);
    }
    cfx_package_free(p);
    cfx_state_free(state);
    if (view.obj)
        PyBuffer_Release(&view);
    return (PyObject *)self;
}

static void executable_dealloc(PyExecutable *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cfx_executable_free(self->e);
    Py_XDECREF(self->texts);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- what it takes ------------------------------------------------------------------------- */

/* (3, "n", None), or None */
static PyObject *sizes_of(const cfx_signature_input *in)
{
    if (in->rank < 0)
        Py_RETURN_NONE;
    PyObject *sizes = PyTuple_New(in->rank);
    for (int i = 0; sizes && i < in->rank; i++) {
        PyObject *size = in->sizes[i] >= 0 ? PyLong_FromLongLong(in->sizes[i])
                         : in->dims[i]     ? PyUnicode_FromString(in->dims[i])
                                           : Py_NewRef(Py_None);
        if (!size)
            Py_CLEAR(sizes);
        else
            PyTuple_SET_ITEM(sizes, i, size);
    }
    return sizes;
}

/* (name, kind, dtype or None, sizes or None, whether it is state) */
static PyObject *input_row(const cfx_signature_input *in)
{
    PyObject *sizes = sizes_of(in);
    if (!sizes)
        return NULL;
    return Py_BuildValue("(sszNN)", in->name,
                         in->kind == CFX_DATUM_INVALID ? "any" : cfx_datum_kind_name(in->kind),
                         in->dtype == CFX_DTYPE_COUNT ? NULL : cfx_dtype_name(in->dtype), sizes,
                         PyBool_FromLong(in->state));
}

static bool append(PyObject *list, PyObject *item)
{
    const bool good = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return good;
}

static PyObject *printed(const cfx_signature *s)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    PyObject *made = NULL;
    if (cfx_signature_print(s, cfx_buffer_sink(&text), &err) == CFX_OK)
        made = str_from_utf8(text.data, text.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    return made;
}

/* ([inputs], [(result, whether it is state)], text) */
static PyObject *signature_row(const cfx_signature *s)
{
    cfx_signature_input in;
    cfx_signature_result out;
    PyObject *inputs = PyList_New(0);
    PyObject *results = inputs ? PyList_New(0) : NULL;
    PyObject *text = results ? printed(s) : NULL;
    bool good = text != NULL;
    for (size_t i = 0; good && cfx_signature_input_at(s, i, &in); i++)
        good = append(inputs, input_row(&in));
    for (size_t i = 0; good && cfx_signature_result_at(s, i, &out); i++)
        good = append(results, Py_BuildValue("(sN)", out.name, PyBool_FromLong(out.state)));
    PyObject *row = good ? PyTuple_Pack(3, inputs, results, text) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(results);
    Py_XDECREF(inputs);
    return row;
}

static PyObject *executable_signatures(PyExecutable *self, PyObject *unused)
{
    const cfx_signature *s;
    (void)unused;
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && (s = cfx_executable_signature(self->e, i)) != NULL; i++)
        if (!append(all, signature_row(s)))
            Py_CLEAR(all);
    return all;
}

static PyObject *executable_texts(PyExecutable *self, PyObject *unused)
{
    (void)unused;
    return PyList_GetSlice(self->texts, 0, PyList_GET_SIZE(self->texts));
}

static PyObject *executable_model(PyExecutable *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(cfx_executable_model(self->e));
}

static PyObject *executable_session(PyExecutable *self, PyObject *unused)
{
    cfx_error err = {0};
    (void)unused;
    cfx_session *s = cfx_executable_session(self->e, &err);
    return s ? session_wrap(state_of(Py_TYPE(self)), s) : raise_cfx(&err);
}

/* ---- running ------------------------------------------------------------------------------- */

/* How a graph is run. */
typedef struct run_call {
    size_t graph;
    cfx_session *session;  /* or NULL */
    cfx_runtime *rt;
} run_call;

/* (True, result); or (False, why) if the graph is not for these inputs. */
static PyObject *run_with(PyExecutable *self, const run_call *call, run_inputs *in)
{
    module_state *st = state_of(Py_TYPE(self));
    cfx_error err = {0};
    bool agrees;
    cfx_datum result;
    Py_BEGIN_ALLOW_THREADS
    result = cfx_executable_run_graph(self->e, call->graph, call->session, call->rt, in->data,
                                      in->count, &agrees, &err);
    Py_END_ALLOW_THREADS
    if (!agrees && err.status == CFX_E_ASSERTION)
        return crossing_write_back(st, &in->both, in->seen.kind)
                   ? Py_BuildValue("(Os)", Py_False, err.message) : NULL;
    PyObject *object = run_inputs_result(in, st, in->seen.kind, result, &err);
    return object ? Py_BuildValue("(ON)", Py_True, object) : NULL;
}

/* run(graph, session or None, runtime, *inputs): see run_with. Tensors of the result belong to the
 * library of the inputs. One thread at a time with a session. */
static PyObject *executable_run(PyExecutable *self, PyObject *const *args, Py_ssize_t nargs)
{
    const module_state *st = state_of(Py_TYPE(self));
    if (nargs < 3 ||
        (args[1] != Py_None && !Py_IS_TYPE(args[1], (PyTypeObject *)st->SessionType)) ||
        !Py_IS_TYPE(args[2], (PyTypeObject *)st->RuntimeType))
        return PyErr_Format(PyExc_TypeError, "run needs a number, a _Session and a Runtime");
    const size_t graph = PyLong_AsSize_t(args[0]);
    if (PyErr_Occurred())
        return NULL;
    const run_call call = {graph, args[1] == Py_None ? NULL : session_of(args[1]),
                           runtime_of(args[2])};
    run_inputs in;
    const bool read = run_inputs_begin(&in, state_of(Py_TYPE(self)), args + 3, nargs - 3, true,
                                       NULL);
    PyObject *result = read ? run_with(self, &call, &in) : NULL;
    run_inputs_end(&in);
    return result;
}

static PyMethodDef executable_methods[] = {
    {"run", (PyCFunction)(void (*)(void))executable_run, METH_FASTCALL, NULL},
    {"session", (PyCFunction)(void (*)(void))executable_session, METH_NOARGS, NULL},
    {"signatures", (PyCFunction)(void (*)(void))executable_signatures, METH_NOARGS, NULL},
    {"texts", (PyCFunction)(void (*)(void))executable_texts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef executable_getset[] = {
    {"model", (getter)executable_model, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot executable_slots[] = {
    {Py_tp_new, executable_new},
    {Py_tp_dealloc, executable_dealloc},
    {Py_tp_methods, executable_methods},
    {Py_tp_getset, executable_getset},
    {0, NULL},
};

PyType_Spec executable_spec = {
    .name = "cfx._core._Executable",
    .basicsize = sizeof(PyExecutable),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = executable_slots,
};
