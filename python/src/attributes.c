/* attributes.c - copying what paths lead to from one tree of nn.Modules to another.
 *
 * A path is a str like "layers.0.weight". What lies on the way to it becomes a plain nn.Module.
 * Going through nn.Module's own __getattr__ and __setattr__ costs as much as tracing the model, so
 * the dicts behind them are read and written where they would do just that.
 */
#include "pycfx.h"

typedef struct copy_run {
    module_state *st;
    PyTypeObject *module_type;        /* torch.nn.Module */
    PyObject *parameter, *tensor;     /* torch's classes */
    PyObject *assign;                 /* assign(module, name, value): the way with all checks */
    PyObject *module_getattr;         /* nn.Module.__getattr__ */
    PyObject *blank;                  /* the dict of an nn.Module that was just made */
    PyObject *places;                 /* {prefix: (module to copy from, module to copy to)} */
    bool fast;                        /* whether nobody listens to assignments */
} copy_run;

/* ---- reading ------------------------------------------------------------------------------- */

/* Whether attributes of `o` that are not in its own dict or class are found in nn.Module's. */
static bool is_plain_module(const copy_run *run, PyObject *o)
{
    return PyObject_TypeCheck(o, run->module_type) &&
           Py_TYPE(o)->tp_getattro == run->module_type->tp_getattro &&
           _PyType_Lookup(Py_TYPE(o), run->st->str_getattr) == run->module_getattr;
}

/* An entry of a dict that is an entry of `dict`, borrowed; NULL if there is none, or an error. */
static PyObject *find_in(PyObject *dict, PyObject *which, PyObject *name)
{
    PyObject *inner = PyDict_GetItemWithError(dict, which);
    return inner && PyDict_Check(inner) ? PyDict_GetItemWithError(inner, name) : NULL;
}

/* An attribute of a plain module that its class has not: a new reference; NULL if there is none, or
 * an error. */
static PyObject *find(const copy_run *run, PyObject *module, PyObject *name)
{
    PyObject *dict = PyObject_GenericGetDict(module, NULL);
    if (!dict)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(dict, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, run->st->str_parameters, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, run->st->str_buffers, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, run->st->str_modules, name);
    Py_XINCREF(found);
    Py_DECREF(dict);
    return found;
}

/* getattr(o, name), or with `or_none` getattr(o, name, None): a new reference, or NULL with an
 * exception. */
static PyObject *get(const copy_run *run, PyObject *o, PyObject *name, bool or_none)
{
    PyObject *found = NULL;
    bool plain = is_plain_module(run, o) && !_PyType_Lookup(Py_TYPE(o), name);
    if (plain)
        found = find(run, o, name);
    if (found || PyErr_Occurred())
        return found;
    if (!plain || !or_none)  /* which also finds the words for an error */
        found = PyObject_GetAttr(o, name);
    if (found || !or_none || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)))
        return found;
    PyErr_Clear();  /* absent is an answer */
    return Py_NewRef(Py_None);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The dict of an nn.Module that a value belongs into, or NULL: perhaps with an exception. */
static PyObject *dict_for(const copy_run *run, PyObject *value)
{
    if (PyObject_TypeCheck(value, run->module_type))
        return run->st->str_modules;
    int is = PyObject_IsInstance(value, run->parameter);
    if (is)
        return is > 0 ? run->st->str_parameters : NULL;
    is = PyObject_IsInstance(value, run->tensor);
    return is > 0 ? run->st->str_buffers : NULL;
}

/* Stores `value` without looking further: 1, or 0 if that would not do, or -1. */
static int put_fast(const copy_run *run, PyObject *to, PyObject *name, PyObject *value)
{
    PyObject *which = run->fast ? dict_for(run, value) : NULL;
    if (!which || !is_plain_module(run, to) || _PyType_Lookup(Py_TYPE(to), name))
        return PyErr_Occurred() ? -1 : 0;
    PyObject *dict = PyObject_GenericGetDict(to, NULL);
    int known = dict ? PyDict_Contains(dict, name) : -1;
    PyObject *inner = known == 0 ? PyDict_GetItemWithError(dict, which) : NULL;
    int done = known < 0 || PyErr_Occurred() ? -1 : 0;
    if (inner && PyDict_Check(inner))
        done = PyDict_SetItem(inner, name, value) < 0 ? -1 : 1;
    Py_XDECREF(dict);
    return done;
}

static int put(const copy_run *run, PyObject *to, PyObject *name, PyObject *value)
{
    int done = put_fast(run, to, name, value);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *result = PyObject_CallFunctionObjArgs(run->assign, to, name, value, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* ---- new modules --------------------------------------------------------------------------- */

/* What stands for `value`, an attribute of a module that was just made, in another: a new reference;
 * NULL if there is no telling, or with an exception. */
static PyObject *blank_value(PyObject *value)
{
    if (value == Py_None || PyBool_Check(value))
        return Py_NewRef(value);
    if (PyDict_CheckExact(value) && PyDict_GET_SIZE(value) == 0)
        return PyDict_New();
    bool known = PyODict_CheckExact(value) || Py_IS_TYPE(value, &PySet_Type);
    if (!known || PyObject_Size(value) != 0)
        return NULL;
    return PyObject_CallNoArgs((PyObject *)Py_TYPE(value));
}

static bool fill_blank(PyObject *dict, PyObject *blank)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool done = true;
    while (done && PyDict_Next(blank, &at, &key, &value)) {
        PyObject *own = blank_value(value);
        done = own && PyDict_SetItem(dict, key, own) == 0;
        Py_XDECREF(own);
    }
    return done;
}

/* nn.Module(), of which a model has hundreds: made like one that nobody uses, which takes a third of
 * the time that its __init__ takes. */
static PyObject *new_module(copy_run *run)
{
    PyTypeObject *type = run->module_type;
    if (!run->blank) {
        PyObject *unused = PyObject_CallNoArgs((PyObject *)type);
        run->blank = unused ? PyObject_GenericGetDict(unused, NULL) : NULL;
        Py_XDECREF(unused);
        if (!run->blank)
            return NULL;
    }
    PyObject *made = type->tp_alloc(type, 0);
    PyObject *dict = made ? PyObject_GenericGetDict(made, NULL) : NULL;
    if (!dict || !fill_blank(dict, run->blank))
        Py_CLEAR(made);
    Py_XDECREF(dict);
    return made || PyErr_Occurred() ? made : PyObject_CallNoArgs((PyObject *)type);
}

/* ---- places -------------------------------------------------------------------------------- */

static int note_place(copy_run *run, PyObject *path, PyObject *from, PyObject *to)
{
    PyObject *pair = PyTuple_Pack(2, from, to);
    int failed = pair ? PyDict_SetItem(run->places, path, pair) : -1;
    Py_XDECREF(pair);
    return failed;
}

/* Splits "a.b.c" into "a.b" and "c"; the first is "" if there is no dot. */
static bool split(PyObject *path, PyObject **prefix, PyObject **name)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(path);
    Py_ssize_t dot = PyUnicode_FindChar(path, '.', 0, size, -1);
    *prefix = PyUnicode_Substring(path, 0, dot < 0 ? 0 : dot);
    *name = *prefix ? PyUnicode_Substring(path, dot + 1, size) : NULL;
    if (*name)
        PyUnicode_InternInPlace(name);  /* attributes mostly are */
    else
        Py_CLEAR(*prefix);
    return *name != NULL;
}

static PyObject *place_of(copy_run *run, PyObject *path);

/* The module `name` of `to` as a place to copy to: made if there is none. */
static PyObject *make_room(copy_run *run, PyObject *to, PyObject *name)
{
    PyObject *child = get(run, to, name, true);
    if (child != Py_None)
        return child;
    Py_SETREF(child, new_module(run));
    if (child && put(run, to, name, child) < 0)
        Py_CLEAR(child);
    return child;
}

/* A new place, one step below another. */
static PyObject *enter(copy_run *run, PyObject *path)
{
    PyObject *prefix, *name;
    if (!split(path, &prefix, &name))
        return NULL;
    PyObject *above = place_of(run, prefix);
    PyObject *from = NULL;
    PyObject *to = NULL;
    if (above)
        from = get(run, PyTuple_GET_ITEM(above, 0), name, false);
    if (from && PyTuple_GET_ITEM(above, 0) == PyTuple_GET_ITEM(above, 1))
        to = Py_NewRef(from);  /* it is there already, with all that is in it */
    else if (from)
        to = make_room(run, PyTuple_GET_ITEM(above, 1), name);
    if (to)
        note_place(run, path, from, to);
    Py_XDECREF(to);
    Py_XDECREF(from);
    Py_XDECREF(above);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return PyErr_Occurred() ? NULL : Py_XNewRef(PyDict_GetItemWithError(run->places, path));
}

/* (from, to) for a path to a module: a new reference, or NULL with an exception. */
static PyObject *place_of(copy_run *run, PyObject *path)
{
    PyObject *place = PyDict_GetItemWithError(run->places, path);
    if (place || PyErr_Occurred())
        return Py_XNewRef(place);
    if (Py_EnterRecursiveCall(" in a path"))
        return NULL;
    place = enter(run, path);
    Py_LeaveRecursiveCall();
    return place;
}

static int copy_path(copy_run *run, PyObject *path)
{
    PyObject *prefix, *name;
    if (!PyUnicode_Check(path)) {
        PyErr_Format(PyExc_TypeError, "a path must be a str, got %R", (PyObject *)Py_TYPE(path));
        return -1;
    }
    if (!split(path, &prefix, &name))
        return -1;
    int failed = -1;
    PyObject *place = place_of(run, prefix);
    PyObject *from = place ? PyTuple_GET_ITEM(place, 0) : NULL;
    PyObject *value = NULL;
    if (from && from == PyTuple_GET_ITEM(place, 1))
        failed = 0;
    else if (from)
        value = get(run, from, name, false);
    if (value)
        failed = put(run, PyTuple_GET_ITEM(place, 1), name, value);
    if (value && !failed && PyObject_TypeCheck(value, run->module_type))
        failed = note_place(run, path, value, value);
    Py_XDECREF(value);
    Py_XDECREF(place);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return failed;
}

/* ---- a run --------------------------------------------------------------------------------- */

static int copy_paths(copy_run *run, PyObject *paths, PyObject *from, PyObject *to)
{
    int failed = note_place(run, run->st->str_empty, from, to);
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(paths); i++) {
        PyObject *path = Py_NewRef(PyList_GET_ITEM(paths, i));
        failed = copy_path(run, path);
        Py_DECREF(path);
    }
    return failed;
}

PyDoc_STRVAR(copy_attributes_doc,
"_copy_attributes(paths, source, target, module, parameter, tensor, assign, fast, /)\n--\n\n"
"Gives `target`, an nn.Module, what each path leads to in `source`; nothing is copied below what\n"
"is there already. The classes are torch's; assign(module, name, value) is used where `fast` is\n"
"False or storing a value is not plain.");

static PyObject *copy_attributes(PyObject *module, PyObject *args)
{
    PyObject *paths, *from, *to;
    int fast = 0;
    copy_run run = {.st = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "O!OOO!OOOp:_copy_attributes", &PyList_Type, &paths, &from, &to,
                          &PyType_Type, &run.module_type, &run.parameter, &run.tensor,
                          &run.assign, &fast))
        return NULL;
    run.fast = fast;
    run.module_getattr = _PyType_Lookup(run.module_type, run.st->str_getattr);
    run.places = PyDict_New();
    int failed = run.places ? copy_paths(&run, paths, from, to) : -1;
    Py_XDECREF(run.places);
    Py_XDECREF(run.blank);
    return failed ? NULL : Py_NewRef(Py_None);
}

PyMethodDef attribute_functions[] = {
    {"_copy_attributes", copy_attributes, METH_VARARGS, copy_attributes_doc},
    {NULL, NULL, 0, NULL},
};
