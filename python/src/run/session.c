/* session.c - _Session: values that lowered programs keep from run to run (capturing/lowered.py).
 *
 * What a program takes and keeps is told by two tuples: ((name, input, type, rank), ...), where the
 * type is a dtype or, for a number, int or float; and ((name, result), ...).
 */
#include "run/session.h"

typedef struct PySession {
    PyObject_HEAD
    cfx_session *s;
} PySession;

cfx_session *session_of(PyObject *session) { return ((PySession *)session)->s; }

/* ---- what a program takes and keeps -------------------------------------------------------- */

static bool read_take(module_state *st, PyObject *row, cfx_kept_input *out)
{
    PyObject *type;
    Py_ssize_t input;
    if (!PyArg_ParseTuple(row, "snOi:_Session.run", &out->name, &input, &type, &out->rank))
        return false;
    out->input = (size_t)input;
    out->kind = CFX_DATUM_TENSOR;
    if (type == (PyObject *)&PyLong_Type)
        out->kind = CFX_DATUM_INT;
    else if (type == (PyObject *)&PyFloat_Type)
        out->kind = CFX_DATUM_FLOAT;
    return out->kind != CFX_DATUM_TENSOR || dtype_from_py(st, type, &out->dtype);
}

static bool read_keep(PyObject *row, cfx_kept_result *out)
{
    Py_ssize_t result;
    if (!PyArg_ParseTuple(row, "sn:_Session.run", &out->name, &result))
        return false;
    out->result = (size_t)result;
    return true;
}

void keeping_free(cfx_keeping *k)
{
    PyMem_Free((void *)k->takes);
    PyMem_Free((void *)k->keeps);
    *k = (cfx_keeping){0};
}

bool keeping_from_py(module_state *st, PyObject *takes, PyObject *keeps, cfx_keeping *out)
{
    *out = (cfx_keeping){0};
    if (!PyTuple_Check(takes) || !PyTuple_Check(keeps)) {
        PyErr_SetString(PyExc_TypeError, "_Session.run needs two tuples of tuples");
        return false;
    }
    const Py_ssize_t num_takes = PyTuple_GET_SIZE(takes);
    const Py_ssize_t num_keeps = PyTuple_GET_SIZE(keeps);
    cfx_kept_input *in = PyMem_New(cfx_kept_input, (size_t)num_takes + 1);
    cfx_kept_result *results = PyMem_New(cfx_kept_result, (size_t)num_keeps + 1);
    bool good = in && results;
    *out = (cfx_keeping){in, (size_t)num_takes, results, (size_t)num_keeps};
    if (!good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < num_takes; i++)
        good = read_take(st, PyTuple_GET_ITEM(takes, i), &in[i]);
    for (Py_ssize_t i = 0; good && i < num_keeps; i++)
        good = read_keep(PyTuple_GET_ITEM(keeps, i), &results[i]);
    if (!good)
        keeping_free(out);
    return good;
}

/* ---- the type ------------------------------------------------------------------------------ */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    cfx_error err = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, ":_Session"))
        return NULL;
    PySession *self = (PySession *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->s = cfx_session_new(NULL, &err);
    if (self->s)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_cfx(&err);
}

PyObject *session_wrap(module_state *st, cfx_session *s)
{
    PyTypeObject *type = (PyTypeObject *)st->SessionType;
    PySession *self = (PySession *)type->tp_alloc(type, 0);
    if (self)
        self->s = s;
    else
        cfx_session_free(s);
    return (PyObject *)self;
}

static void session_dealloc(PySession *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cfx_session_free(self->s);
    type->tp_free(self);
    Py_DECREF(type);
}

/* set(name, value) */
static PyObject *session_set(PySession *self, PyObject *args)
{
    const char *name;
    PyObject *value;
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyArg_ParseTuple(args, "sO:set", &name, &value))
        return NULL;
    cfx_datum d = datum_from_py(state_of(Py_TYPE(self)), value, &seen);
    if (d.kind == CFX_DATUM_INVALID)
        return NULL;
    cfx_status status = cfx_session_set(self->s, name, d, &err);
    cfx_datum_release(d);
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

/* get(name): tensors as torch's, sharing the memory; KeyError if there is no such value. */
static PyObject *session_get(PySession *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name)
        return NULL;
    const cfx_datum d = cfx_session_get(self->s, name);
    if (d.kind == CFX_DATUM_INVALID)
        return PyErr_Format(PyExc_KeyError, "%U", arg);
    return datum_to_py(state_of(Py_TYPE(self)), d, ARRAY_TORCH);
}

static PyMethodDef session_methods[] = {
    {"set", (PyCFunction)(void (*)(void))session_set, METH_VARARGS, NULL},
    {"get", (PyCFunction)(void (*)(void))session_get, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot session_slots[] = {
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, session_methods},
    {0, NULL},
};

PyType_Spec session_spec = {
    .name = "cfx._core._Session",
    .basicsize = sizeof(PySession),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = session_slots,
};
