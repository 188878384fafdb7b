/* observer.c - cfx._core.Observer: what was seen of one value. Tensors of torch, numpy and whatever
 * has DLPack are looked at where they are. */
#include "quantize/quantizing.h"

typedef struct PyObserver {
    PyObject_HEAD
    cfx_observer *o;
} PyObserver;

/* Observer(spec): see spec_from_py. */
static PyObject *observer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    cfx_error err = {0};
    cfx_quantize_spec spec;
    PyObject *dict;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O:Observer", &dict) || !spec_from_py(state_of(type), dict, &spec))
        return NULL;
    PyObserver *self = (PyObserver *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->o = cfx_observer_new(&spec, NULL, &err);
    if (self->o)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_cfx(&err);
}

static void observer_dealloc(PyObserver *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cfx_observer_free(self->o);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The interpreter's lock is kept: an observer serves one thread at a time. */
static PyObject *observer_observe(PyObserver *self, PyObject *x)
{
    cfx_error err = {0};
    arrays_seen seen = {0};
    cfx_tensor *t = tensor_from_py(state_of(Py_TYPE(self)), x, &seen);
    if (!t)
        return NULL;
    const cfx_status status = cfx_observer_observe(self->o, t, &err);
    cfx_tensor_release(t);
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

static PyObject *observer_merge(PyObserver *self, PyObject *other)
{
    cfx_error err = {0};
    if (!PyObject_TypeCheck(other, (PyTypeObject *)state_of(Py_TYPE(self))->ObserverType))
        return PyErr_Format(PyExc_TypeError, "merge() needs an Observer, not %.100s",
                            Py_TYPE(other)->tp_name);
    if (cfx_observer_merge(self->o, ((PyObserver *)other)->o, &err) != CFX_OK)
        return raise_cfx(&err);
    Py_RETURN_NONE;
}

static PyObject *observer_scales(PyObserver *self, PyObject *unused)
{
    module_state *st = state_of(Py_TYPE(self));
    cfx_error err = {0};
    cfx_tensor *scale, *zero;
    (void)unused;
    if (cfx_observer_scales(self->o, &scale, &zero, &err) != CFX_OK)
        return raise_cfx(&err);
    PyObject *s = tensor_wrap(st, scale);
    PyObject *z = tensor_wrap(st, zero);
    PyObject *pair = s && z ? PyTuple_Pack(2, s, z) : NULL;
    Py_XDECREF(s);
    Py_XDECREF(z);
    return pair;
}

static PyObject *observer_save(PyObserver *self, PyObject *unused)
{
    cfx_error err = {0};
    cfx_state *state = cfx_observer_save(self->o, &err);
    (void)unused;
    if (!state)
        return raise_cfx(&err);
    PyObject *dict = state_to_py(state_of(Py_TYPE(self)), state);
    cfx_state_free(state);
    return dict;
}

static PyObject *observer_load(PyObserver *self, PyObject *dict)
{
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyDict_Check(dict))
        return PyErr_Format(PyExc_TypeError, "load() needs a dict of tensors, not %.100s",
                            Py_TYPE(dict)->tp_name);
    cfx_state *state = state_from_py(state_of(Py_TYPE(self)), dict, &seen);
    if (!state)
        return NULL;
    const cfx_status status = cfx_observer_load(self->o, state, &err);
    cfx_state_free(state);
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(&err);
}

static PyObject *observer_get_seen(PyObserver *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(cfx_observer_seen(self->o));
}

static PyObject *observer_get_not_finite(PyObserver *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(cfx_observer_not_finite(self->o));
}

static PyObject *observer_get_spec(PyObserver *self, void *unused)
{
    (void)unused;
    return spec_to_py(cfx_observer_spec(self->o));
}

static PyObject *observer_reduce(PyObserver *self, PyObject *unused)
{
    PyObject *spec = observer_get_spec(self, NULL);
    PyObject *state = spec ? observer_save(self, unused) : NULL;
    PyObject *plain = state ? PyDict_New() : NULL;
    PyObject *name, *tensor;
    Py_ssize_t at = 0;
    while (plain && PyDict_Next(state, &at, &name, &tensor)) {
        PyObject *array = tensor_numpy(tensor, NULL);
        if (!array || PyDict_SetItem(plain, name, array) < 0)
            Py_CLEAR(plain);
        Py_XDECREF(array);
    }
    PyObject *result = plain ? Py_BuildValue("(O(O)O)", Py_TYPE(self), spec, plain) : NULL;
    Py_XDECREF(plain);
    Py_XDECREF(state);
    Py_XDECREF(spec);
    return result;
}

static PyMethodDef observer_methods[] = {
    {"observe", (PyCFunction)(void (*)(void))observer_observe, METH_O,
     SIGNED("observe($self, x, /)", "Takes the elements of a tensor into account.")},
    {"merge", (PyCFunction)(void (*)(void))observer_merge, METH_O,
     SIGNED("merge($self, other, /)", "Takes in what another observer of this spec has seen.")},
    {"scales", (PyCFunction)(void (*)(void))observer_scales, METH_NOARGS,
     SIGNED("scales($self, /)", "Scales and zero points, as a pair of Tensors.")},
    {"save", (PyCFunction)(void (*)(void))observer_save, METH_NOARGS,
     SIGNED("save($self, /)", "What it has seen: {name: Tensor}.")},
    {"load", (PyCFunction)(void (*)(void))observer_load, METH_O,
     SIGNED("load($self, state, /)", "Replaces what it has seen by what save() gave.")},
    {"__reduce__", (PyCFunction)(void (*)(void))observer_reduce, METH_NOARGS, NULL},
    {"__setstate__", (PyCFunction)(void (*)(void))observer_load, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef observer_getset[] = {
    {"seen", (getter)(void (*)(void))observer_get_seen, NULL,
     PyDoc_STR("How many elements it has seen."), NULL},
    {"not_finite", (getter)(void (*)(void))observer_get_not_finite, NULL,
     PyDoc_STR("How many of them were NaN or infinite."), NULL},
    {"spec", (getter)(void (*)(void))observer_get_spec, NULL,
     PyDoc_STR("How the value becomes integers: a dict."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot observer_slots[] = {
    {Py_tp_new, observer_new},
    {Py_tp_dealloc, observer_dealloc},
    {Py_tp_methods, observer_methods},
    {Py_tp_getset, observer_getset},
    {Py_tp_doc, "Observer(spec, /)\n--\n\nWhat was seen of one value, and the scale that it "
                "needs."},
    {0, NULL},
};

PyType_Spec observer_spec = {
    .name = "cfx._core.Observer",
    .basicsize = sizeof(PyObserver),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = observer_slots,
};
