/* attributes.c - attributes of nn.Modules by path: reading, deleting, assigning, copying.
 *
 * A path is a str like "layers.0.weight". Modules that are missing on the way to what is assigned
 * are made. Copying goes around nn.Module's own __getattr__ and __setattr__, which cost as much as
 * tracing the model: the dicts behind them are read and written where they would do just that.
 *
 * The Python side registers torch's classes, and `listeners`: nn.Module's dicts of hooks on
 * assignments.
 */
#include "base/pycfx.h"

/* ---- one step ------------------------------------------------------------------------------ */

static PyTypeObject *module_type(const module_state *st)
{
    return (PyTypeObject *)st->module_class;
}

static bool is_module(const module_state *st, PyObject *o)
{
    return PyObject_TypeCheck(o, module_type(st));
}

/* 1 if `value` is a tensor that is no parameter, 0 if not, -1 with an exception. */
static int is_buffer(const module_state *st, PyObject *value)
{
    int parameter = PyObject_IsInstance(value, st->parameter_class);
    return parameter ? (parameter > 0 ? 0 : -1) : PyObject_IsInstance(value, st->tensor_class);
}

/* setattr(module, name, value); a tensor that is no parameter becomes a buffer. */
static int assign(const module_state *st, PyObject *module, PyObject *name, PyObject *value)
{
    int buffer = is_buffer(st, value);
    if (buffer <= 0)
        return buffer < 0 ? -1 : PyObject_SetAttr(module, name, value);
    PyObject *result = PyObject_CallMethod(module, "register_buffer", "OO", name, value);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Whether attributes of `o` that are not in its own dict or class are found in nn.Module's. */
static bool is_plain_module(const module_state *st, PyObject *o)
{
    return st->module_class && is_module(st, o) &&
           Py_TYPE(o)->tp_getattro == module_type(st)->tp_getattro &&
           class_lookup(Py_TYPE(o), st->str_getattr) ==
               class_lookup(module_type(st), st->str_getattr);
}

/* An entry of a dict that is an entry of `dict`, borrowed; NULL if there is none, or an error. */
static PyObject *find_in(PyObject *dict, PyObject *which, PyObject *name)
{
    PyObject *inner = PyDict_GetItemWithError(dict, which);
    return inner && PyDict_Check(inner) ? PyDict_GetItemWithError(inner, name) : NULL;
}

/* An attribute of a plain module that its class has not: a new reference; NULL if there is none, or
 * an error. */
static PyObject *find(const module_state *st, PyObject *module, PyObject *name)
{
    PyObject *dict = PyObject_GenericGetDict(module, NULL);
    if (!dict)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(dict, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, st->str_parameters, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, st->str_buffers, name);
    if (!found && !PyErr_Occurred())
        found = find_in(dict, st->str_modules, name);
    Py_XINCREF(found);
    Py_DECREF(dict);
    return found;
}

PyObject *module_getattr(const module_state *st, PyObject *o, PyObject *name, bool or_none)
{
    bool plain = is_plain_module(st, o) && !class_lookup(Py_TYPE(o), name);
    PyObject *found = plain ? find(st, o, name) : NULL;
    if (found || PyErr_Occurred())
        return found;
    if (plain && or_none)
        return Py_NewRef(Py_None);
    return or_none ? attr_or_none(o, name) : PyObject_GetAttr(o, name);
}

PyObject *module_find_attr(const module_state *st, PyObject *o, PyObject *name)
{
    const bool plain = is_plain_module(st, o) && !class_lookup(Py_TYPE(o), name);
    if (plain)  /* nn.Module would raise: that is slow */
        return find(st, o, name);
    PyObject *found = PyObject_GetAttr(o, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return found;
}

/* ---- paths --------------------------------------------------------------------------------- */

/* Splits "a.b.c" into "a.b" and "c"; the first is "" if there is no dot. */
static bool split(PyObject *path, PyObject **prefix, PyObject **name)
{
    if (!PyUnicode_Check(path)) {
        PyErr_Format(PyExc_TypeError, "a path must be a str, got %R", (PyObject *)Py_TYPE(path));
        return false;
    }
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

/* The names in a path, of which "" has none: a new list. */
static PyObject *steps_of(PyObject *path)
{
    PyObject *dot = PyUnicode_GET_LENGTH(path) ? PyUnicode_FromString(".") : NULL;
    PyObject *steps = dot ? PyUnicode_Split(path, dot, -1) : NULL;
    Py_XDECREF(dot);
    return steps || PyErr_Occurred() ? steps : PyList_New(0);
}

/* What a list of names leads to: a new reference. */
static PyObject *follow(const module_state *st, PyObject *o, PyObject *steps)
{
    Py_INCREF(o);
    for (Py_ssize_t i = 0; o && i < PyList_GET_SIZE(steps); i++) {
        PyObject *name = Py_NewRef(PyList_GET_ITEM(steps, i));
        Py_SETREF(o, module_getattr(st, o, name, false));
        Py_DECREF(name);
    }
    return o;
}

/* getattr(o, name), a new module if that is absent or None: a new reference. */
static PyObject *enter_step(const module_state *st, PyObject *o, PyObject *name)
{
    PyObject *child = attr_or_none(o, name);
    if (child != Py_None)
        return child;
    Py_SETREF(child, PyObject_CallNoArgs(st->module_class));
    if (child && PyObject_SetAttr(o, name, child) < 0)
        Py_CLEAR(child);
    return child;
}

/* What a path leads to, modules that are missing made: a new reference. With `modules_only` it ends
 * at the first object that is none. */
static PyObject *enter_path(const module_state *st, PyObject *o, PyObject *path, bool modules_only)
{
    PyObject *steps = steps_of(path);
    o = steps ? Py_NewRef(o) : NULL;
    for (Py_ssize_t i = 0; o && i < PyList_GET_SIZE(steps); i++)
        if (!modules_only || is_module(st, o))
            Py_SETREF(o, enter_step(st, o, PyList_GET_ITEM(steps, i)));
    Py_XDECREF(steps);
    return o;
}

/* ---- copying: writing ---------------------------------------------------------------------- */

typedef struct copy_run {
    module_state *st;
    PyObject *blank;           /* the dict of an nn.Module that was just made */
    PyObject *places;          /* {prefix: (module to copy from, module to copy to)} */
    bool fast;                 /* whether nobody listens to assignments */
} copy_run;

/* The dict of an nn.Module that a value belongs into, or NULL: perhaps with an exception. */
static PyObject *dict_for(const module_state *st, PyObject *value)
{
    if (is_module(st, value))
        return st->str_modules;
    int buffer = is_buffer(st, value);
    if (buffer)
        return buffer > 0 ? st->str_buffers : NULL;
    return PyObject_IsInstance(value, st->parameter_class) > 0 ? st->str_parameters : NULL;
}

/* Stores `value` without looking further: 1, or 0 if that would not do, or -1. */
static int put_fast(const copy_run *run, PyObject *to, PyObject *name, PyObject *value)
{
    PyObject *which = run->fast ? dict_for(run->st, value) : NULL;
    if (!which || !is_plain_module(run->st, to) || class_lookup(Py_TYPE(to), name))
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
    return done ? (done < 0 ? -1 : 0) : assign(run->st, to, name, value);
}

static copy_run begin_run(module_state *st)
{
    copy_run run = {.st = st, .fast = true};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(st->listeners); i++)
        run.fast = run.fast && PyDict_GET_SIZE(PyTuple_GET_ITEM(st->listeners, i)) == 0;
    return run;
}

/* Assigns to a module that may have an attribute of that name, which then must give way. */
static int put_anew(module_state *st, PyObject *to, PyObject *name, PyObject *value)
{
    copy_run run = begin_run(st);
    PyObject *old = run.fast && is_plain_module(st, to) ? find(st, to, name) : Py_NewRef(to);
    bool is_new = !old && PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 0;
    Py_XDECREF(old);
    if (PyErr_Occurred())
        return -1;
    return is_new ? put(&run, to, name, value) : assign(st, to, name, value);
}

/* ---- copying: new modules ------------------------------------------------------------------ */

/* What stands for `value`, an attribute of a module that was just made, in another: a new
 * reference; NULL if there is no telling, or with an exception. */
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

/* nn.Module(), of which a model has hundreds: made like one that nobody uses, which takes a third
 * of the time that its __init__ takes. */
static PyObject *new_module(copy_run *run)
{
    PyTypeObject *type = module_type(run->st);
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

/* ---- copying: places ----------------------------------------------------------------------- */

static int note_place(copy_run *run, PyObject *path, PyObject *from, PyObject *to)
{
    PyObject *pair = PyTuple_Pack(2, from, to);
    int failed = pair ? PyDict_SetItem(run->places, path, pair) : -1;
    Py_XDECREF(pair);
    return failed;
}

static PyObject *place_of(copy_run *run, PyObject *path);

/* The module `name` of `to` as a place to copy to: made if there is none. */
static PyObject *make_room(copy_run *run, PyObject *to, PyObject *name)
{
    PyObject *child = module_getattr(run->st, to, name, true);
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
        from = module_getattr(run->st, PyTuple_GET_ITEM(above, 0), name, false);
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
    if (enter_nested(" in a path"))
        return NULL;
    place = enter(run, path);
    leave_nested();
    return place;
}

static int copy_path(copy_run *run, PyObject *path)
{
    PyObject *prefix, *name;
    if (!split(path, &prefix, &name))
        return -1;
    int failed = -1;
    PyObject *place = place_of(run, prefix);
    PyObject *from = place ? PyTuple_GET_ITEM(place, 0) : NULL;
    PyObject *value = NULL;
    if (from && from == PyTuple_GET_ITEM(place, 1))
        failed = 0;
    else if (from)
        value = module_getattr(run->st, from, name, false);
    if (value)
        failed = put(run, PyTuple_GET_ITEM(place, 1), name, value);
    if (value && !failed && is_module(run->st, value))
        failed = note_place(run, path, value, value);
    Py_XDECREF(value);
    Py_XDECREF(place);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return failed;
}

static int copy_paths(module_state *st, PyObject *paths, PyObject *from, PyObject *to)
{
    copy_run run = begin_run(st);
    run.places = PyDict_New();
    int failed = run.places ? note_place(&run, st->str_empty, from, to) : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(paths); i++) {
        PyObject *path = Py_NewRef(PyList_GET_ITEM(paths, i));
        failed = copy_path(&run, path);
        Py_DECREF(path);
    }
    Py_XDECREF(run.places);
    Py_XDECREF(run.blank);
    return failed;
}

/* ---- functions ----------------------------------------------------------------------------- */

#define ARGS PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames
#define TAKE(function, n, out, ...)                                                                \
    static const char *const names[] = {__VA_ARGS__};                                              \
    static const arg_spec spec = {function, names, n, n, n};                                       \
    PyObject *out[n];                                                                              \
    module_state *st = PyModule_GetState(module);                                                  \
    if (!take_args(&spec, args, nargs, kwnames, out))                                              \
        return NULL;                                                                               \
    if (!st->module_class)                                                                         \
        return PyErr_Format(PyExc_ImportError, "import cfx.graph_module first")

static PyObject *none_if(int failed) { return failed ? NULL : Py_NewRef(Py_None); }

static PyObject *get_by_list(ARGS)
{
    TAKE("_get_attr_via_attr_list", 2, in, "model", "attr_list");
    PyObject *steps = PySequence_List(in[1]);
    PyObject *found = steps ? follow(st, in[0], steps) : NULL;
    Py_XDECREF(steps);
    return found;
}

/* Unlike elsewhere, "" is a name. */
PyObject *path_get(const module_state *st, PyObject *o, PyObject *path)
{
    PyObject *prefix, *name;
    if (!split(path, &prefix, &name))
        return NULL;
    PyObject *steps = steps_of(prefix);
    PyObject *owner = steps ? follow(st, o, steps) : NULL;
    PyObject *found = owner ? module_getattr(st, owner, name, false) : NULL;
    Py_XDECREF(owner);
    Py_XDECREF(steps);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return found;
}

int path_delete(const module_state *st, PyObject *o, PyObject *path)
{
    PyObject *prefix, *name;
    if (!split(path, &prefix, &name))
        return -1;
    PyObject *steps = steps_of(prefix);
    PyObject *owner = steps ? follow(st, o, steps) : NULL;
    int failed = owner ? PyObject_DelAttr(owner, name) : -1;
    Py_XDECREF(owner);
    Py_XDECREF(steps);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return failed;
}

int path_assign(module_state *st, PyObject *o, PyObject *path, PyObject *value)
{
    PyObject *prefix, *name;
    if (!split(path, &prefix, &name))
        return -1;
    PyObject *owner = enter_path(st, o, prefix, false);
    int failed = owner ? put_anew(st, owner, name, value) : -1;
    Py_XDECREF(owner);
    Py_DECREF(name);
    Py_DECREF(prefix);
    return failed;
}

static PyObject *get_attr(ARGS)
{
    TAKE("_get_attr", 2, in, "model", "attr_name");
    return path_get(st, in[0], in[1]);
}

static PyObject *has_attr(ARGS)
{
    TAKE("_has_attr", 2, in, "model", "attr_name");
    PyObject *found = path_get(st, in[0], in[1]);
    if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    PyErr_Clear();
    Py_XDECREF(found);
    return PyBool_FromLong(found != NULL);
}

static PyObject *del_attr(ARGS)
{
    TAKE("_del_attr", 2, in, "model", "attr_name");
    return none_if(path_delete(st, in[0], in[1]));
}

static PyObject *assign_attr(ARGS)
{
    TAKE("_assign_attr", 3, in, "from_obj", "to_module", "target");
    return none_if(path_assign(st, in[1], in[2], in[0]));
}

static PyObject *copy_attr(ARGS)
{
    TAKE("_copy_attr", 3, in, "from_module", "to_module", "target");
    PyObject *paths = PyList_New(1);
    if (!paths)
        return NULL;
    PyList_SET_ITEM(paths, 0, Py_NewRef(in[2]));
    int failed = copy_paths(st, paths, in[0], in[1]);
    Py_DECREF(paths);
    return none_if(failed);
}

static PyObject *copy_attrs(ARGS)
{
    TAKE("_copy_attrs", 3, in, "from_module", "to_module", "targets");
    if (!PyList_Check(in[2]))
        return PyErr_Format(PyExc_TypeError, "targets must be a list");
    return none_if(copy_paths(st, in[2], in[0], in[1]));
}

static PyObject *enter_module(ARGS)
{
    TAKE("_enter", 2, in, "module", "path");
    if (!PyUnicode_Check(in[1]))
        return PyErr_Format(PyExc_TypeError, "a path must be a str");
    return enter_path(st, in[0], in[1], true);
}

PyMethodDef attribute_functions[] = {
    {"_get_attr_via_attr_list", FAST(get_by_list),
     SIGNED("_get_attr_via_attr_list($module, model, attr_list)",
            "What a list of names leads to.")},
    {"_get_attr", FAST(get_attr),
     SIGNED("_get_attr($module, model, attr_name)", "What a path leads to.")},
    {"_has_attr", FAST(has_attr),
     SIGNED("_has_attr($module, model, attr_name)", "Whether a path leads somewhere.")},
    {"_del_attr", FAST(del_attr),
     SIGNED("_del_attr($module, model, attr_name)", "Deletes what a path leads to.")},
    {"_assign_attr", FAST(assign_attr),
     SIGNED("_assign_attr($module, from_obj, to_module, target)",
            "Puts an object at a path; modules that are missing on the way are made.")},
    {"_copy_attr", FAST(copy_attr),
     SIGNED("_copy_attr($module, from_module, to_module, target)",
            "Gives a module what a path leads to in another; what lies between become plain "
            "modules.")},
    {"_copy_attrs", FAST(copy_attrs),
     SIGNED("_copy_attrs($module, from_module, to_module, targets)", "Likewise for many paths.")},
    {"_enter", FAST(enter_module),
     SIGNED("_enter($module, module, path)",
            "What a path leads to, modules that are missing made; or the first object on the way "
            "that is no module.")},
    {NULL, NULL, 0, NULL},
};
