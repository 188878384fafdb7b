/* own_class.c - a class for one object.
 *
 * Each GraphModule has a class to itself, for its `forward`. type() looks up every special method
 * that Python knows in the bases of a new class; this one has none but what it inherits, and to say
 * so takes a third of the time.
 */
#include "pycfx.h"

/* Nobody has looked anything up in the class yet, so its dict can be filled as it is. */
static int fill(PyObject *type, PyObject *name, PyObject *qualname, PyObject *body)
{
    PyObject *dict = class_dict((PyTypeObject *)type);
    int failed = dict ? PyDict_Update(dict, body) : -1;
    Py_XDECREF(dict);
    if (failed)
        return -1;
    PyType_Modified((PyTypeObject *)type);
    return PyObject_SetAttrString(type, "__name__", name) < 0 ||
           PyObject_SetAttrString(type, "__qualname__", qualname) < 0 ? -1 : 0;
}

/* _own_class(base, name, qualname, body): a class of that one base, whose class is `type`. `body`
 * has no special methods. */
static PyObject *own_class(PyObject *module, PyObject *args)
{
    PyObject *base, *name, *qualname, *body;
    if (!PyArg_ParseTuple(args, "O!UUO!:_own_class", &PyType_Type, &base, &name, &qualname,
                          &PyDict_Type, &body))
        return NULL;
    (void)module;
    PyType_Slot slots[] = {{0, NULL}};
    PyType_Spec spec = {
        .name = "cfx.graph_module.GraphModule",
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HEAPTYPE,
        .slots = slots,
    };
    PyObject *bases = PyTuple_Pack(1, base);
    PyObject *type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
    Py_XDECREF(bases);
    if (type && fill(type, name, qualname, body) < 0)
        Py_CLEAR(type);
    return type;
}

PyMethodDef own_class_functions[] = {
    {"_own_class", own_class, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
