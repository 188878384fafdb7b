/* lazy.c - LazyFunction: stands in a class for a function that is made when somebody touches it.
 *
 * In C because tools that look into a class (Dynamo) would follow a __get__ of Python step by step.
 */
#include "pycfx.h"

#include <structmember.h>

typedef struct PyLazy {
    PyObject_HEAD
    PyObject *name;  /* under which it stands in the class */
    PyObject *make;  /* make(): the function */
} PyLazy;

static PyObject *lazy_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *name, *make;
    if ((kwargs && PyDict_GET_SIZE(kwargs) > 0) ||
        !PyArg_ParseTuple(args, "UO:_LazyFunction", &name, &make))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "_LazyFunction() takes no "
                                                      "keyword arguments");
    PyLazy *self = (PyLazy *)type->tp_alloc(type, 0);
    if (self) {
        self->name = Py_NewRef(name);
        self->make = Py_NewRef(make);
    }
    return (PyObject *)self;
}

static int lazy_traverse(PyLazy *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->make);
    return 0;
}

static int lazy_clear(PyLazy *self)
{
    Py_CLEAR(self->make);
    return 0;
}

static void lazy_dealloc(PyLazy *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    lazy_clear(self);
    Py_XDECREF(self->name);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Puts the function where this object stands in a class or one of its bases. */
static int take_place(PyLazy *self, PyTypeObject *type, PyObject *function)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *owner = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *found = class_entry(owner, self->name);
        if (found == (PyObject *)self)
            return PyObject_SetAttr((PyObject *)owner, self->name, function);
        if (!found && PyErr_Occurred())
            return -1;
    }
    return 0;  /* something else has taken it */
}

static PyObject *lazy_get(PyLazy *self, PyObject *obj, PyTypeObject *type)
{
    if (!self->make)
        return PyErr_Format(PyExc_RuntimeError, "'%U' is no longer available", self->name);
    if (type && (PyObject *)type != Py_None && !PyType_Check(type))
        return PyErr_Format(PyExc_TypeError, "expected a class, got %R", (PyObject *)type);
    PyObject *keep = Py_NewRef((PyObject *)self);  /* it leaves the class */
    PyObject *function = PyObject_CallNoArgs(self->make);
    PyObject *bound = NULL;
    type = type && (PyObject *)type != Py_None ? type : Py_TYPE(obj);
    if (function && take_place(self, type, function) == 0) {
        descrgetfunc get = Py_TYPE(function)->tp_descr_get;
        bound = get ? get(function, obj, (PyObject *)type) : Py_NewRef(function);
    }
    Py_XDECREF(function);
    Py_DECREF(keep);
    return bound;
}

static PyMemberDef members[] = {
    {"make", T_OBJECT, offsetof(PyLazy, make), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, lazy_new},
    {Py_tp_dealloc, lazy_dealloc},
    {Py_tp_traverse, lazy_traverse},
    {Py_tp_clear, lazy_clear},
    {Py_tp_descr_get, lazy_get},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec lazy_spec = {
    .name = "cfx._core._LazyFunction",
    .basicsize = sizeof(PyLazy),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
