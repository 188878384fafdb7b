/* crossing.c - objects that become data for one call: each is one datum, which comes back as it.
 *
 * So `is` and == see in C what they see in Python, and a list that C writes to is changed for all
 * who hold it.
 */
#include "base/pycfx.h"

#include <cfx/embed/tensor.h>

void crossing_begin(crossing *both)
{
    both->n = 0;
    both->room = CROSSING_FEW;
    both->all = both->few;
    both->slots = 0;
    both->index[0] = both->index[1] = NULL;
}

void crossing_end(crossing *both)
{
    for (size_t i = 0; i < both->n; i++) {
        Py_DECREF(both->all[i].object);
        cfx_datum_release(both->all[i].datum);
    }
    if (both->all != both->few)
        PyMem_Free(both->all);
    PyMem_Free(both->index[0]);
    PyMem_Free(both->index[1]);
}

/* What a datum is recognised by: the address of its tensor or items; NULL: it is a plain value. */
static const void *identity_of(cfx_datum d)
{
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_TENSOR: return d.as.tensor;
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT: return d.as.seq;
    default: return NULL;
    }
}

static const void *key_of(const crossed *at, int side)
{
    return side == 0 ? (const void *)at->object : identity_of(at->datum);
}

/* ---- finding ------------------------------------------------------------------------------- */

/* Where a key is in the index, or belongs. Numbers in it count from 1; 0 is free. */
static size_t slot_of(const crossing *both, int side, const void *key)
{
    const size_t mask = both->slots - 1;
    size_t slot = (size_t)(((uint64_t)(uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (both->index[side][slot] &&
           key_of(&both->all[both->index[side][slot] - 1], side) != key)
        slot = (slot + 1) & mask;
    return slot;
}

static const crossed *find(const crossing *both, int side, const void *key)
{
    if (both->slots > 0) {
        const uint32_t number = both->index[side][slot_of(both, side, key)];
        return number ? &both->all[number - 1] : NULL;
    }
    for (size_t i = 0; i < both->n; i++)
        if (key_of(&both->all[i], side) == key)
            return &both->all[i];
    return NULL;
}

bool crossing_datum(const crossing *both, PyObject *o, cfx_datum *out)
{
    const crossed *at = find(both, 0, o);
    if (at)
        *out = cfx_datum_retain(at->datum);
    return at != NULL;
}

PyObject *crossing_object(const crossing *both, cfx_datum d)
{
    const void *key = identity_of(d);
    const crossed *at = key ? find(both, 1, key) : NULL;
    return at && at->datum.kind == d.kind ? at->object : NULL;
}

/* ---- adding -------------------------------------------------------------------------------- */

static void put(crossing *both, size_t i)
{
    for (int side = 0; side < 2; side++) {
        const size_t slot = slot_of(both, side, key_of(&both->all[i], side));
        if (!both->index[side][slot])
            both->index[side][slot] = (uint32_t)i + 1;
    }
}

/* Twice the room, with an index from here on. */
static bool grow(crossing *both)
{
    const size_t room = 2 * both->room;
    crossed *all = PyMem_New(crossed, room);
    uint32_t *index[2] = {PyMem_Calloc(4 * room, sizeof **index),
                          PyMem_Calloc(4 * room, sizeof **index)};
    if (!all || !index[0] || !index[1] || room > UINT32_MAX) {
        PyMem_Free(all);
        PyMem_Free(index[0]);
        PyMem_Free(index[1]);
        PyErr_NoMemory();
        return false;
    }
    memcpy(all, both->all, both->n * sizeof *all);
    if (both->all != both->few)
        PyMem_Free(both->all);
    both->all = all;
    both->room = room;
    both->slots = 4 * room;
    for (int side = 0; side < 2; side++) {
        PyMem_Free(both->index[side]);
        both->index[side] = index[side];
    }
    for (size_t i = 0; i < both->n; i++)
        put(both, i);
    return true;
}

bool crossing_add(crossing *both, PyObject *o, cfx_datum d)
{
    if (!identity_of(d))
        return true;
    if (both->n == both->room && !grow(both))
        return false;
    both->all[both->n++] = (crossed){Py_NewRef(o), cfx_datum_retain(d)};
    if (both->slots > 0)
        put(both, both->n - 1);
    return true;
}

/* ---- what C has changed -------------------------------------------------------------------- */

static bool fill_list(PyObject *list, PyObject *items)
{
    return PyList_SetSlice(list, 0, PyList_GET_SIZE(list), items) == 0;
}

/* `items` are keys and values. A class derived from dict may have more to do than a dict. */
static bool fill_dict(PyObject *dict, PyObject *items)
{
    PyObject *done = PyObject_CallMethod(dict, "clear", NULL);
    bool fine = done != NULL;
    for (Py_ssize_t i = 0; fine && i + 1 < PyList_GET_SIZE(items); i += 2)
        fine = PyObject_SetItem(dict, PyList_GET_ITEM(items, i),
                                PyList_GET_ITEM(items, i + 1)) == 0;
    Py_XDECREF(done);
    return fine;
}

/* A range is a list in C, but cannot be written to. */
static bool fill(PyObject *o, PyObject *items)
{
    if (PyList_Check(o))
        return fill_list(o, items);
    if (PyDict_Check(o))
        return fill_dict(o, items);
    PyErr_Format(PyExc_TypeError, "'%s' object does not support item assignment",
                 Py_TYPE(o)->tp_name);
    return false;
}

/* torch's tensor gets the header that C has given to the one that shares its memory. */
static bool reshape_torch(module_state *st, PyObject *o, const cfx_tensor *t)
{
    const Py_ssize_t n = (Py_ssize_t)cfx_tensor_ndim(t);
    PyObject *sizes = PyTuple_New(n);
    PyObject *strides = PyTuple_New(n);
    bool fine = sizes && strides;
    for (Py_ssize_t i = 0; fine && i < n; i++) {
        PyObject *size = PyLong_FromLongLong(cfx_tensor_sizes(t)[i]);
        PyObject *stride = PyLong_FromLongLong(cfx_tensor_strides(t)[i]);
        fine = size && stride;
        PyTuple_SET_ITEM(sizes, i, size);
        PyTuple_SET_ITEM(strides, i, stride);
    }
    PyObject *in = fine ? Py_BuildValue("(OOOK)", o, sizes, strides,
                                        (unsigned long long)(uintptr_t)cfx_tensor_data(t))
                        : NULL;
    PyObject *done = in ? call_glue(st, "reshape_in_place", in) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(in);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return done != NULL;
}

static bool is_torch(const module_state *st, PyObject *o)
{
    return st->torch_tensor && PyObject_TypeCheck(o, (PyTypeObject *)st->torch_tensor);
}

bool crossing_write_back(module_state *st, crossing *both, array_kind kind)
{
    bool fine = true;
    const size_t n = both->n;  /* those that are added on the way are new */
    for (size_t i = 0; fine && i < n; i++) {
        const crossed at = both->all[i];
        if (at.datum.kind == CFX_DATUM_TENSOR && cfx_tensor_is_reshaped(at.datum.as.tensor) &&
            is_torch(st, at.object))
            fine = reshape_torch(st, at.object, at.datum.as.tensor);
        if (cfx_datum_changes(at.datum) == 0)
            continue;
        PyObject *items = data_to_py(st, at.datum, kind, both);
        fine = items && fill(at.object, items);
        Py_XDECREF(items);
    }
    return fine;
}
