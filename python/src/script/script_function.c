/* script_function.c - functions that a program makes while it is evaluated, as Python's objects. */
#include "scripting.h"

#include <structmember.h>

typedef struct PyScriptFunction {
    PyObject_HEAD
    PyScript *script;   /* owned */
    cfx_script_function *f;
    PyObject *dict;
} PyScriptFunction;

PyObject *script_function_new(PyScript *w, cfx_script_function *f)
{
    PyScriptFunction *self = alloc_quietly((PyTypeObject *)w->st->ScriptFunctionType);
    if (!self)
        return NULL;
    self->script = (PyScript *)Py_NewRef((PyObject *)w);
    self->f = cfx_script_function_retain(f);
    return (PyObject *)self;
}

cfx_script_function *script_function_of(const PyScript *w, PyObject *o)
{
    PyScriptFunction *self = (PyScriptFunction *)o;
    if (Py_TYPE(o) != (PyTypeObject *)w->st->ScriptFunctionType || self->script != w)
        return NULL;
    return self->f;
}

/* Called by Python's own code: by functools.reduce, say. */
static PyObject *function_call(PyScriptFunction *self, PyObject *args, PyObject *kwargs)
{
    PyScript *w = self->script;
    if (!w->ev)
        return PyErr_Format(PyExc_RuntimeError,
                            "'%s' was defined during an earlier capture, which has ended, and can "
                            "no longer be called",
                            cfx_script_function_name(self->f));
    return script_call(w, (PyObject *)self, ((PyTupleObject *)args)->ob_item,
                       PyTuple_GET_SIZE(args), kwargs);
}

static PyObject *function_bind(PyObject *self, PyObject *o, PyObject *type)
{
    (void)type;
    return o && o != Py_None ? PyMethod_New(self, o) : Py_NewRef(self);
}

/* The name that the source gives it, unless somebody has set another, as functools.wraps does. */
static PyObject *function_name_(PyScriptFunction *self, void *key)
{
    const char *name = cfx_script_function_name(self->f);
    PyObject *set = self->dict ? PyDict_GetItemString(self->dict, key) : NULL;
    return set ? Py_NewRef(set) : str_from_utf8(name, strlen(name));
}

static int set_function_name(PyScriptFunction *self, PyObject *name, void *key)
{
    if (!self->dict)
        self->dict = PyDict_New();
    if (!self->dict)
        return -1;
    return name ? PyDict_SetItemString(self->dict, key, name)
                : PyDict_DelItemString(self->dict, key);
}

static PyObject *function_repr(PyScriptFunction *self)
{
    return PyUnicode_FromFormat("<scripted function %s>", cfx_script_function_name(self->f));
}

static int function_traverse(PyScriptFunction *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)self->script);
    Py_VISIT(self->dict);
    return 0;
}

static int function_clear(PyScriptFunction *self)
{
    Py_CLEAR(self->dict);
    return 0;
}

static void function_dealloc(PyScriptFunction *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    function_clear(self);
    cfx_script_function_release(self->f);
    Py_XDECREF((PyObject *)self->script);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyScriptFunction, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"__name__", (getter)function_name_, (setter)set_function_name, NULL, "__name__"},
    {"__qualname__", (getter)function_name_, (setter)set_function_name, NULL, "__qualname__"},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A function that a scripted program has made."},
    {Py_tp_dealloc, function_dealloc},
    {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},
    {Py_tp_call, function_call},
    {Py_tp_repr, function_repr},
    {Py_tp_descr_get, function_bind},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {0, NULL},
};

PyType_Spec script_function_spec = {
    .name = "cfx._core.ScriptFunction",
    .basicsize = sizeof(PyScriptFunction),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
