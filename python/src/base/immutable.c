/* immutable.c - list and dict that refuse to change: what a Node shows of its arguments.
 *
 * They are subclasses, so that everything that reads a list or a dict reads them too. Only the
 * methods that would change one are overridden; list.append(x, 1) still gets through, as it does
 * in torch.fx.
 */
#include "pycfx.h"

#include <structmember.h>

typedef struct PyImmutableList {
    PyListObject base;
    PyObject *dict;
    PyObject *weak;
} PyImmutableList;

typedef struct PyImmutableDict {
    PyDictObject base;
    PyObject *dict;
    PyObject *weak;
} PyImmutableDict;

/* ---- refusing ------------------------------------------------------------------------------ */

static PyObject *refuse(PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self));
    if (!name)
        return NULL;
    PyErr_Format(PyExc_TypeError,
                 "'%U' object does not support mutation. If you are attempting to modify the "
                 "kwargs or args of a cfx.Node object,\n"
                 "instead create a new copy of it and assign the copy to the node:\n\n"
                 "    new_args = ...  # copy and mutate args\n"
                 "    node.args = new_args",
                 name);
    Py_DECREF(name);
    return NULL;
}

static PyObject *refuse_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    (void)args, (void)nargs, (void)kwnames;
    return refuse(self);
}

static PyObject *refuse_object(PyObject *self, PyObject *other)
{
    (void)other;
    return refuse(self);
}

static PyObject *refuse_repeat(PyObject *self, Py_ssize_t n)
{
    (void)n;
    return refuse(self);
}

static int refuse_item(PyObject *self, Py_ssize_t i, PyObject *value)
{
    (void)i, (void)value;
    refuse(self);
    return -1;
}

static int refuse_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    refuse(self);
    return -1;
}

#define REFUSED(name)                                                                              \
    {name, FAST(refuse_call),                                                                      \
     PyDoc_STR(name "($self, /, *args, **kwargs)\n--\n\nRaises a TypeError.")}

/* ---- the list ------------------------------------------------------------------------------ */

static PyObject *list_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *items = PyList_AsTuple(self);
    return items ? Py_BuildValue("O(N)", Py_TYPE(self), items) : NULL;
}

static Py_hash_t list_hash(PyObject *self)
{
    PyObject *items = PyList_AsTuple(self);
    Py_hash_t hash = -1;
    if (items && enter_nested(" while hashing an immutable_list") == 0) {
        hash = PyObject_Hash(items);
        leave_nested();
    }
    Py_XDECREF(items);
    return hash;
}

/* A type with a hash of its own does not inherit its comparison. */
static PyObject *list_compare(PyObject *a, PyObject *b, int how)
{
    return PyList_Type.tp_richcompare(a, b, how);
}

static int list_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PyImmutableList *)self)->dict);
    return PyList_Type.tp_traverse(self, visit, arg);
}

static int list_clear(PyObject *self)
{
    Py_CLEAR(((PyImmutableList *)self)->dict);
    return PyList_Type.tp_clear(self);
}

static void list_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, list_dealloc)
    if (((PyImmutableList *)self)->weak)
        PyObject_ClearWeakRefs(self);
    Py_CLEAR(((PyImmutableList *)self)->dict);
    PyList_Type.tp_dealloc(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

static PyMethodDef list_methods[] = {
    REFUSED("append"),
    REFUSED("clear"),
    REFUSED("extend"),
    REFUSED("insert"),
    REFUSED("pop"),
    REFUSED("remove"),
    REFUSED("reverse"),
    REFUSED("sort"),
    {"__reduce__", list_reduce, METH_NOARGS, PyDoc_STR("The class and the items.")},
    {0},
};

static PyMemberDef list_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyImmutableList, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyImmutableList, weak), READONLY, NULL},
    {0},
};

static PyGetSetDef dict_attribute[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

static PyType_Slot list_slots[] = {
    {Py_tp_base, &PyList_Type},
    {Py_tp_doc, (void *)PyDoc_STR("A list that cannot be changed, and that can be hashed.")},
    {Py_tp_methods, list_methods},
    {Py_tp_members, list_members},
    {Py_tp_getset, dict_attribute},
    {Py_tp_hash, list_hash},
    {Py_tp_richcompare, list_compare},
    {Py_tp_traverse, list_traverse},
    {Py_tp_clear, list_clear},
    {Py_tp_dealloc, list_dealloc},
    {Py_sq_ass_item, refuse_item},
    {Py_sq_inplace_concat, refuse_object},
    {Py_sq_inplace_repeat, refuse_repeat},
    {Py_mp_ass_subscript, refuse_subscript},
    {0, NULL},
};

PyType_Spec immutable_list_spec = {
    .name = "cfx.immutable_collections.immutable_list",
    .basicsize = sizeof(PyImmutableList),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = list_slots,
};

PyObject *immutable_list_new(module_state *st, Py_ssize_t n)
{
    PyTypeObject *type = (PyTypeObject *)st->ImmutableListType;
    PyListObject *list = (PyListObject *)PyType_GenericAlloc(type, 0);
    if (!list || n == 0)
        return (PyObject *)list;
    list->ob_item = PyMem_Calloc((size_t)n, sizeof *list->ob_item);
    if (!list->ob_item) {
        Py_DECREF(list);
        return PyErr_NoMemory();
    }
    Py_SET_SIZE(list, n);
    list->allocated = n;
    return (PyObject *)list;
}

/* ---- the dict ------------------------------------------------------------------------------ */

static PyObject *dict_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *items = PyDict_Items(self);
    PyObject *pairs = items ? PyList_AsTuple(items) : NULL;
    Py_XDECREF(items);
    return pairs ? Py_BuildValue("O(N)", Py_TYPE(self), pairs) : NULL;
}

static Py_hash_t dict_hash(PyObject *self)
{
    PyObject *items = PyDict_Items(self);
    PyObject *pairs = NULL;
    Py_hash_t hash = -1;
    if (items && enter_nested(" while hashing an immutable_dict") == 0) {
        pairs = PyFrozenSet_New(items);
        hash = pairs ? PyObject_Hash(pairs) : -1;
        leave_nested();
    }
    Py_XDECREF(pairs);
    Py_XDECREF(items);
    return hash;
}

static PyObject *dict_compare(PyObject *a, PyObject *b, int how)
{
    return PyDict_Type.tp_richcompare(a, b, how);
}

static int dict_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PyImmutableDict *)self)->dict);
    return PyDict_Type.tp_traverse(self, visit, arg);
}

static int dict_clear(PyObject *self)
{
    Py_CLEAR(((PyImmutableDict *)self)->dict);
    return PyDict_Type.tp_clear(self);
}

static void dict_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, dict_dealloc)
    if (((PyImmutableDict *)self)->weak)
        PyObject_ClearWeakRefs(self);
    Py_CLEAR(((PyImmutableDict *)self)->dict);
    PyDict_Type.tp_dealloc(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

static PyMethodDef dict_methods[] = {
    REFUSED("clear"),
    REFUSED("pop"),
    REFUSED("popitem"),
    REFUSED("setdefault"),
    REFUSED("update"),
    {"__reduce__", dict_reduce, METH_NOARGS, PyDoc_STR("The class and the items.")},
    {0},
};

static PyMemberDef dict_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyImmutableDict, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyImmutableDict, weak), READONLY, NULL},
    {0},
};

static PyType_Slot dict_slots[] = {
    {Py_tp_base, &PyDict_Type},
    {Py_tp_doc, (void *)PyDoc_STR("A dict that cannot be changed, and that can be hashed.")},
    {Py_tp_methods, dict_methods},
    {Py_tp_members, dict_members},
    {Py_tp_getset, dict_attribute},
    {Py_tp_hash, dict_hash},
    {Py_tp_richcompare, dict_compare},
    {Py_tp_traverse, dict_traverse},
    {Py_tp_clear, dict_clear},
    {Py_tp_dealloc, dict_dealloc},
    {Py_nb_inplace_or, refuse_object},
    {Py_mp_ass_subscript, refuse_subscript},
    {0, NULL},
};

PyType_Spec immutable_dict_spec = {
    .name = "cfx.immutable_collections.immutable_dict",
    .basicsize = sizeof(PyImmutableDict),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = dict_slots,
};

PyObject *immutable_dict_new(module_state *st)
{
    return PyDict_Type.tp_new((PyTypeObject *)st->ImmutableDictType, st->empty_tuple, NULL);
}
