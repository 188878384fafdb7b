/* entry.c - a call of a captured module: whether its arguments are what the graph was captured for.
 *
 * An entry has the arguments' nesting, a rule for each of their leaves, the guards, and the modes
 * that the graph holds in. `enter` checks all of it at once and gives the inputs of the graph.
 * It knows tensors, numbers, strings, None, tuples, lists and dicts. Whatever else it meets, and
 * whatever does not fit, is left to Python (cfx/capturing/boundary.py), which knows every kind of
 * object and says what is wrong: then `enter` gives None. `leave` puts a result together.
 */
#include "capture/capture.h"
#include "capture/capture_entry.h"

#include <structmember.h>

typedef enum step_kind { STEP_LEAF, STEP_TUPLE, STEP_LIST, STEP_DICT, STEP_SAME } step_kind;

/* A part of a nest, the whole before its parts. */
typedef struct step {
    step_kind kind;
    Py_ssize_t n;    /* parts; of SAME the number of the object */
    PyObject *keys;  /* of a DICT: a tuple; else NULL */
} step;

typedef struct nest {
    step *steps;
    Py_ssize_t size;
    Py_ssize_t objects;  /* the number of the next list or dict: results go on after arguments */
} nest;

typedef enum rule_kind { RULE_TENSOR, RULE_NUMBER, RULE_AGAIN, RULE_FIXED } rule_kind;

typedef struct rule {
    rule_kind kind;
    Py_ssize_t number;  /* of a TENSOR its dimensions; of AGAIN the leaf that it is */
    PyObject *what;     /* its dtype; the type of a NUMBER; the value of a FIXED; or NULL */
    PyObject *device;   /* of a TENSOR */
    PyObject *sizes;    /* of a TENSOR with sizes that are fixed: a tuple of int or None; or NULL */
} rule;

/* A module that the program went through, and its flag `training`. */
typedef struct PyEntry {
    PyObject_HEAD
    nest arguments;
    nest result;
    rule *rules;
    Py_ssize_t num_rules;
    PyObject *paths;   /* of the modules whose flags matter: a tuple of tuples of names */
    PyObject *known;   /* the settings of these flags that are right: a tuple of bytes */
    PyObject *call;    /* the class of what `enter` gives */
    PyObject *out;     /* for each leaf of the result (is it of the graph, or this value) */
    PyObject *guards;  /* a PyGuards */
    PyObject *dtype;   /* the default dtype */
    PyObject *device;  /* the default device; NULL: the modes are Python's to check */
    bool on_cpu;       /* which is the CPU */
    bool can_leave;    /* `leave` knows what to do */
} PyEntry;

/* ---- making -------------------------------------------------------------------------------- */

enum { MOST_NESTING = 50 };

static void nest_free(nest *all)
{
    for (Py_ssize_t i = 0; i < all->size; i++)
        Py_XDECREF(all->steps[i].keys);
    PyMem_Free(all->steps);
}

/* A kind of Tree, or -1 for one that is left to Python. */
static int kind_of(PyObject *name)
{
    static const char *const names[] = {[STEP_TUPLE] = "tuple", [STEP_LIST] = "list",
                                        [STEP_DICT] = "dict", [STEP_SAME] = "same"};
    if (name == Py_None)
        return STEP_LEAF;
    for (int i = STEP_TUPLE; i <= STEP_SAME; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    return -1;
}

/* Adds the steps of a Tree (kind, type, key, parts, number): 1; 0 if it is left to Python; -1 with
 * an exception. Numbers of objects go up as they are met. */
static int add_steps(nest *all, PyObject *tree, int depth)
{
    PyObject *name, *type, *key, *parts, *number;
    if (depth == 0 || !PyTuple_Check(tree) ||
        !PyArg_ParseTuple(tree, "OOOO!O:Tree", &name, &type, &key, &PyTuple_Type, &parts, &number))
        return PyErr_Occurred() ? -1 : 0;
    const int kind = kind_of(name);
    step *steps = PyMem_Resize(all->steps, step, (size_t)all->size + 1);
    if (!steps) {
        PyErr_NoMemory();
        return -1;
    }
    all->steps = steps;
    if (kind < 0)
        return 0;
    step made = {.kind = (step_kind)kind, .n = PyTuple_GET_SIZE(parts)};
    if (kind == STEP_SAME && (made.n = PyLong_AsSsize_t(key)) < 0)
        return -1;
    if (kind == STEP_DICT && PyTuple_Check(key))
        made.keys = Py_NewRef(key);
    all->steps[all->size++] = made;
    if (kind == STEP_LIST || kind == STEP_DICT) {
        if (PyLong_AsSsize_t(number) != all->objects++)
            return PyErr_Occurred() ? -1 : 0;  /* an object of the caller's, with new contents */
        if (kind == STEP_DICT && !made.keys)
            return 0;
    }
    int good = 1;
    for (Py_ssize_t i = 0; good == 1 && kind != STEP_LEAF && i < PyTuple_GET_SIZE(parts); i++)
        good = add_steps(all, PyTuple_GET_ITEM(parts, i), depth - 1);
    return good;
}

/* ("tensor", dtype, ndim, device, sizes or None), ("number", type), ("again", leaf), ("fixed",
 * value) */
static bool rule_from_py(PyObject *row, rule *out)
{
    PyObject *sizes = NULL;
    const char *kind = PyTuple_Check(row) && PyTuple_GET_SIZE(row) > 1 &&
                               PyUnicode_Check(PyTuple_GET_ITEM(row, 0))
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(row, 0)) : NULL;
    if (!kind)
        return PyErr_Occurred() ? false : (PyErr_BadArgument(), false);
    PyObject *what = PyTuple_GET_ITEM(row, 1);
    *out = (rule){0};
    if (kind[0] == 't') {
        if (!PyArg_ParseTuple(row, "OOnOO:rule", &what, &out->what, &out->number, &out->device,
                              &sizes))
            return false;
        Py_INCREF(out->what);
        Py_INCREF(out->device);
        out->sizes = sizes == Py_None ? NULL : Py_NewRef(sizes);
    } else if (kind[0] == 'a') {
        out->kind = RULE_AGAIN;
        out->number = PyLong_AsSsize_t(what);
    } else {
        out->kind = kind[0] == 'n' ? RULE_NUMBER : RULE_FIXED;
        out->what = Py_NewRef(what);
    }
    return !PyErr_Occurred();
}

static bool take_rules(PyEntry *self, PyObject *rows)
{
    const Py_ssize_t n = PyList_GET_SIZE(rows);
    self->rules = PyMem_New(rule, (size_t)n + 1);
    if (!self->rules)
        return PyErr_NoMemory() != NULL;
    for (; self->num_rules < n; self->num_rules++)
        if (!rule_from_py(PyList_GET_ITEM(rows, self->num_rules), &self->rules[self->num_rules]))
            return false;
    return true;
}

/* ((path, ...), (setting, ...)): a setting has a byte for each path. */
static bool take_flags(PyEntry *self, PyObject *flags)
{
    if (!PyArg_ParseTuple(flags, "O!O!:flags", &PyTuple_Type, &self->paths, &PyTuple_Type,
                          &self->known))
        return false;
    Py_INCREF(self->paths);
    Py_INCREF(self->known);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->paths); i++)
        if (!PyTuple_Check(PyTuple_GET_ITEM(self->paths, i)))
            return PyErr_Format(PyExc_TypeError, "a path is a tuple of names") != NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->known); i++) {
        PyObject *setting = PyTuple_GET_ITEM(self->known, i);
        if (!PyBytes_Check(setting) ||
            PyBytes_GET_SIZE(setting) != PyTuple_GET_SIZE(self->paths))
            return PyErr_Format(PyExc_TypeError, "a setting has a byte for each path") != NULL;
    }
    return true;
}

static bool count_leaves(const nest *all, Py_ssize_t wanted)
{
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < all->size; i++)
        n += all->steps[i].kind == STEP_LEAF;
    return n == wanted;
}

/* Whether all objects of a result are new: nothing is there twice. */
static bool is_plain(const nest *all)
{
    for (Py_ssize_t i = 0; i < all->size; i++)
        if (all->steps[i].kind == STEP_SAME)
            return false;
    return true;
}

/* _Entry(call, tree, rules, guards, flags, modes, result): `flags` as in take_flags, `modes` is
 * (default dtype, default device) or None, `result` is (tree, out) or None; where they are None,
 * Python takes care of them. `usable` tells whether `enter` can do anything. */
static PyObject *entry_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    module_state *st = state_of(type);
    PyObject *call, *tree, *rules, *guards, *flags, *modes, *result;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!OO!O!O!OO:_Entry", &PyType_Type, &call, &tree, &PyList_Type,
                          &rules, st->GuardsType, &guards, &PyTuple_Type, &flags, &modes, &result))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)call, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "a call is a tuple");
    PyEntry *self = (PyEntry *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = Py_NewRef(call);
    self->guards = Py_NewRef(guards);
    PyObject *nested = NULL, *out = NULL;
    const int known = add_steps(&self->arguments, tree, MOST_NESTING);
    bool good = known >= 0 && take_rules(self, rules) && take_flags(self, flags) &&
                (modes == Py_None || PyArg_ParseTuple(modes, "OO:modes", &self->dtype,
                                                      &self->device)) &&
                (result == Py_None || PyArg_ParseTuple(result, "OO!:result", &nested, &PyList_Type,
                                                       &out));
    Py_XINCREF(self->dtype);
    Py_XINCREF(self->device);
    if (good && nested) {
        self->result.objects = self->arguments.objects;
        const int simple = add_steps(&self->result, nested, MOST_NESTING);
        good = simple >= 0;
        self->out = Py_NewRef(out);
        self->can_leave = simple == 1 && is_plain(&self->result) &&
                          count_leaves(&self->result, PyList_GET_SIZE(out));
    }
    if (good && (known == 0 || !count_leaves(&self->arguments, self->num_rules)))
        Py_CLEAR(self->device);
    if (good && self->device) {
        PyObject *text = PyObject_Str(self->device);
        self->on_cpu = text && PyUnicode_CompareWithASCIIString(text, "cpu") == 0;
        good = text != NULL;
        Py_XDECREF(text);
    }
    if (!good)
        Py_CLEAR(self);
    return (PyObject *)self;
}

#define ENTRY_OBJECTS(X) X(call) X(out) X(guards) X(dtype) X(device) X(paths) X(known)

static int entry_traverse(PyEntry *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
#define X(member) Py_VISIT(self->member);
    ENTRY_OBJECTS(X)
#undef X
    for (Py_ssize_t i = 0; i < self->num_rules; i++)
        Py_VISIT(self->rules[i].what);
    return 0;
}

static int entry_clear(PyEntry *self)
{
#define X(member) Py_CLEAR(self->member);
    ENTRY_OBJECTS(X)
#undef X
    for (Py_ssize_t i = 0; i < self->num_rules; i++)
        Py_CLEAR(self->rules[i].what);
    return 0;
}

static void entry_dealloc(PyEntry *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    nest_free(&self->arguments);
    nest_free(&self->result);
    for (Py_ssize_t i = 0; i < self->num_rules; i++) {
        Py_XDECREF(self->rules[i].device);
        Py_XDECREF(self->rules[i].sizes);
    }
    PyMem_Free(self->rules);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- answers: 1 yes, 0 no, -1 with an exception -------------------------------------------- */

/* A question of torch's whose answer is compared by identity or truth. */
static int torch_says(const module_state *st, int part, PyObject *argument, PyObject *wanted)
{
    PyObject *function = torch_part(st, part);
    PyObject *answer = argument ? PyObject_CallOneArg(function, argument)
                                : PyObject_CallNoArgs(function);
    const int same = answer ? answer == wanted : -1;
    Py_XDECREF(answer);
    return same;
}

/* A default device other than the CPU is a function mode. */
static int same_device(const module_state *st, const PyEntry *self)
{
    PyObject *size = PyObject_CallNoArgs(torch_part(st, TORCH_mode_stack_size));
    const int empty = size ? PyObject_Not(size) : -1;
    Py_XDECREF(size);
    if (empty != 0)
        return empty < 0 ? -1 : self->on_cpu;
    PyObject *device = PyObject_CallNoArgs(torch_part(st, TORCH_get_default_device));
    const int same = device ? PyObject_RichCompareBool(device, self->device, Py_EQ) : -1;
    Py_XDECREF(device);
    return same;
}

static int same_modes(const module_state *st, const PyEntry *self)
{
    int good = torch_says(st, TORCH_get_default_dtype, NULL, self->dtype);
    if (good == 1)
        good = torch_says(st, TORCH_is_autocast_enabled, st->str_cpu, Py_False);
    if (good == 1)
        good = torch_says(st, TORCH_is_autocast_enabled, st->str_cuda, Py_False);
    return good == 1 ? same_device(st, self) : good;
}

/* A member of a module's own dict: borrowed from that; NULL if there is none, maybe with an
 * exception. */
static PyObject *own_member(PyObject *o, PyObject *name)
{
    PyObject *dict = PyObject_GenericGetDict(o, NULL);
    PyObject *found = dict ? PyDict_GetItemWithError(dict, name) : NULL;
    Py_XDECREF(dict);
    return found;
}

/* The flag of the module at a path; of one that is not there, that of the module around it. */
static int flag_at(const module_state *st, PyObject *home, PyObject *path)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path); i++) {
        PyObject *modules = own_member(home, st->str_modules);
        PyObject *inner = modules && PyDict_Check(modules)
                              ? PyDict_GetItemWithError(modules, PyTuple_GET_ITEM(path, i)) : NULL;
        if (!inner || inner == Py_None)
            break;
        home = inner;
    }
    PyObject *now = own_member(home, st->str_training);
    return PyErr_Occurred() ? -1 : now && PyObject_IsTrue(now) == 1;
}

/* Whether the flags are as in one of the settings. */
static int same_flags(const module_state *st, PyObject *home, const PyEntry *self)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(self->paths);
    const Py_ssize_t settings = PyTuple_GET_SIZE(self->known);
    uint64_t wrong = 0;  /* a bit for each setting that is not the present one */
    if (n == 0)
        return 1;
    if (settings > 64)
        return 0;  /* Python looks */
    const uint64_t all = settings == 64 ? UINT64_MAX : ((uint64_t)1 << settings) - 1;
    for (Py_ssize_t i = 0; i < n && wrong != all; i++) {
        const int flag = flag_at(st, home, PyTuple_GET_ITEM(self->paths, i));
        if (flag < 0)
            return -1;
        for (Py_ssize_t k = 0; k < settings; k++)
            if (PyBytes_AS_STRING(PyTuple_GET_ITEM(self->known, k))[i] != flag)
                wrong |= (uint64_t)1 << k;
    }
    return wrong != all;
}

/* ---- arguments ----------------------------------------------------------------------------- */

typedef struct walk {
    const module_state *st;
    const step *at;
    PyObject **leaves;  /* new references */
    Py_ssize_t num_leaves;
    PyObject *objects;  /* a list */
} walk;

/* What nobody looks into, of the kinds that are known here. */
static bool is_leaf(const module_state *st, PyObject *o)
{
    return o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyUnicode_CheckExact(o) || PyObject_TypeCheck(o, (PyTypeObject *)st->tensor_class);
}

static int same_keys(PyObject *dict, PyObject *keys)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    Py_ssize_t i = 0;
    int same = PyDict_GET_SIZE(dict) == PyTuple_GET_SIZE(keys);
    while (same == 1 && i < PyTuple_GET_SIZE(keys) && PyDict_Next(dict, &at, &key, &value)) {
        PyObject *wanted = PyTuple_GET_ITEM(keys, i++);
        if (key == wanted)
            continue;
        /* others may be of classes that compare as they like: Python looks at those */
        same = PyUnicode_CheckExact(key) && PyUnicode_CheckExact(wanted)
                   ? PyUnicode_Compare(key, wanted) == 0
                   : PyLong_CheckExact(key) && PyLong_CheckExact(wanted)
                         ? PyObject_RichCompareBool(key, wanted, Py_EQ) : 0;
    }
    return same;
}

/* Notes a list or dict; 0 if it was met before. */
static int note_object(walk *w, PyObject *o)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(w->objects); i++)
        if (PyList_GET_ITEM(w->objects, i) == o)
            return 0;
    return PyList_Append(w->objects, o) < 0 ? -1 : 1;
}

static int follow(walk *w, PyObject *o)
{
    const step *s = w->at++;
    int good = 1;
    switch (s->kind) {
    case STEP_LEAF:
        if (!is_leaf(w->st, o))
            return 0;
        w->leaves[w->num_leaves++] = Py_NewRef(o);
        return 1;
    case STEP_SAME:
        return s->n < PyList_GET_SIZE(w->objects) && PyList_GET_ITEM(w->objects, s->n) == o;
    case STEP_TUPLE:
        if (!PyTuple_CheckExact(o) || PyTuple_GET_SIZE(o) != s->n)
            return 0;
        for (Py_ssize_t i = 0; good == 1 && i < s->n; i++)
            good = follow(w, PyTuple_GET_ITEM(o, i));
        return good;
    case STEP_LIST:
        if (!PyList_CheckExact(o) || PyList_GET_SIZE(o) != s->n)
            return 0;
        good = note_object(w, o);
        for (Py_ssize_t i = 0; good == 1 && i < s->n; i++)  /* no code of the user's runs here */
            good = follow(w, PyList_GET_ITEM(o, i));
        return good;
    case STEP_DICT: break;
    }
    PyObject *value;
    Py_ssize_t at = 0;
    good = PyDict_CheckExact(o) ? same_keys(o, s->keys) : 0;
    if (good == 1)
        good = note_object(w, o);
    while (good == 1 && PyDict_Next(o, &at, NULL, &value))
        good = follow(w, value);
    return good;
}

/* ---- rules --------------------------------------------------------------------------------- */

static int same_sizes(const module_state *st, const rule *r, PyObject *tensor)
{
    PyObject *shape = PyObject_GetAttr(tensor, st->str_shape);
    int good = shape ? PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == r->number : -1;
    for (Py_ssize_t d = 0; good == 1 && d < r->number; d++) {
        PyObject *wanted = PyTuple_GET_ITEM(r->sizes, d);
        if (wanted != Py_None)
            good = PyObject_RichCompareBool(PyTuple_GET_ITEM(shape, d), wanted, Py_EQ);
    }
    Py_XDECREF(shape);
    return good;
}

/* Another index of the same kind of device is left to Python. */
static int same_tensor(const module_state *st, const rule *r, PyObject *o)
{
    if (!PyObject_TypeCheck(o, (PyTypeObject *)st->tensor_class))
        return 0;
    PyObject *dtype = PyObject_GetAttr(o, st->str_dtype);
    int good = dtype ? dtype == r->what : -1;
    Py_XDECREF(dtype);
    if (good == 1) {
        PyObject *ndim = PyObject_GetAttr(o, st->str_ndim);
        good = ndim ? PyLong_AsSsize_t(ndim) == r->number : -1;
        Py_XDECREF(ndim);
    }
    if (good == 1) {
        PyObject *device = PyObject_GetAttr(o, st->str_device);
        good = device ? PyObject_RichCompareBool(device, r->device, Py_EQ) : -1;
        Py_XDECREF(device);
    }
    return good == 1 && r->sizes ? same_sizes(st, r, o) : good;
}

/* The value of a fixed argument: the same, or an equal one of a kind whose == is Python's. */
static int same_value(PyObject *fixed, PyObject *o)
{
    if (o == fixed)
        return 1;
    if (Py_TYPE(o) != Py_TYPE(fixed) || !(PyUnicode_CheckExact(o) || PyLong_CheckExact(o) ||
                                          PyFloat_CheckExact(o)))
        return 0;
    return PyObject_RichCompareBool(o, fixed, Py_EQ);
}

static int fits(const module_state *st, const rule *r, PyObject *const *leaves, Py_ssize_t i)
{
    switch (r->kind) {
    case RULE_TENSOR: return same_tensor(st, r, leaves[i]);
    case RULE_NUMBER: return (PyObject *)Py_TYPE(leaves[i]) == r->what;
    case RULE_AGAIN: return leaves[i] == leaves[r->number];
    case RULE_FIXED: return same_value(r->what, leaves[i]);
    }
    return 0;
}

/* The list of the graph's inputs: NULL with an exception, None if something does not fit. */
static PyObject *inputs_of(const module_state *st, const PyEntry *self, PyObject *const *leaves)
{
    PyObject *inputs = PyList_New(0);
    int good = inputs ? 1 : -1;
    for (Py_ssize_t i = 0; good == 1 && i < self->num_rules; i++) {
        const rule *r = &self->rules[i];
        good = fits(st, r, leaves, i);
        if (good == 1 && (r->kind == RULE_TENSOR || r->kind == RULE_NUMBER) &&
            PyList_Append(inputs, leaves[i]) < 0)
            good = -1;
    }
    PyGuards *guards = (PyGuards *)self->guards;
    if (good == 1 && cfx_guards_count(guards->guards) > 0) {
        size_t which;
        PyObject *held = PyList_AsTuple(inputs);  /* asking for a size may run any code */
        good = held && guards_check(guards, &PyTuple_GET_ITEM(held, 0), &which, NULL)
                   ? which == SIZE_MAX : -1;
        Py_XDECREF(held);
    }
    if (good == 1)
        return inputs;
    Py_XDECREF(inputs);
    return good < 0 ? NULL : Py_NewRef(Py_None);
}

/* A named tuple of two: steals both, which may be NULL. */
static PyObject *call_of(const PyEntry *self, PyObject *inputs, PyObject *objects)
{
    PyTypeObject *class = (PyTypeObject *)self->call;
    PyObject *made = inputs && objects ? class->tp_alloc(class, 2) : NULL;
    if (!made) {
        Py_XDECREF(inputs);
        Py_XDECREF(objects);
        return NULL;
    }
    PyTuple_SET_ITEM(made, 0, inputs);
    PyTuple_SET_ITEM(made, 1, objects);
    return made;
}

static PyObject *enter_with(const module_state *st, const PyEntry *self, PyObject *values,
                            PyObject **leaves)
{
    walk w = {st, self->arguments.steps, leaves, 0, PyList_New(0)};
    int good = w.objects ? follow(&w, values) : -1;
    PyObject *inputs = NULL;
    if (good == 1 && w.num_leaves == self->num_rules)
        inputs = inputs_of(st, self, leaves);
    for (Py_ssize_t i = 0; i < w.num_leaves; i++)
        Py_DECREF(leaves[i]);
    if (good == 1 && inputs != Py_None)
        return call_of(self, inputs, w.objects);
    Py_XDECREF(w.objects);
    Py_XDECREF(inputs);
    return good < 0 ? NULL : Py_NewRef(Py_None);
}

/* enter(home, values): the call, or None if Python has to look. */
static PyObject *entry_enter(PyEntry *self, PyObject *const *args, Py_ssize_t n)
{
    const module_state *st = state_of(Py_TYPE(self));
    PyObject *few[16];
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "enter() needs the module and the arguments");
    int good = self->device ? same_flags(st, args[0], self) : 0;
    if (good == 1)
        good = same_modes(st, self);
    if (good != 1)
        return good < 0 ? NULL : Py_NewRef(Py_None);
    PyObject **leaves = self->num_rules <= 16 ? few
                                              : PyMem_New(PyObject *, (size_t)self->num_rules);
    PyObject *call = leaves ? enter_with(st, self, args[1], leaves) : PyErr_NoMemory();
    if (leaves != few)
        PyMem_Free(leaves);
    return call;
}

/* ---- results ------------------------------------------------------------------------------- */

typedef struct building {
    const step *at;
    PyObject *out;
    Py_ssize_t leaf;      /* how many are taken */
    PyObject *results;    /* a tuple */
    Py_ssize_t computed;  /* likewise */
} building;

static PyObject *build_leaf(building *b)
{
    PyObject *row = PyList_GET_ITEM(b->out, b->leaf++);
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 2)
        return PyErr_Format(PyExc_TypeError, "a leaf of a result is a pair");
    if (PyTuple_GET_ITEM(row, 0) != Py_True)
        return Py_NewRef(PyTuple_GET_ITEM(row, 1));
    if (b->computed >= PyTuple_GET_SIZE(b->results))
        return PyErr_Format(PyExc_RuntimeError, "the graph gives too few results");
    return Py_NewRef(PyTuple_GET_ITEM(b->results, b->computed++));
}

static PyObject *build(building *b)
{
    const step *s = b->at++;
    if (s->kind == STEP_LEAF)
        return build_leaf(b);
    PyObject *made = s->kind == STEP_DICT   ? PyDict_New()
                     : s->kind == STEP_LIST ? PyList_New(s->n)
                                            : PyTuple_New(s->n);
    for (Py_ssize_t i = 0; made && i < s->n; i++) {
        PyObject *part = build(b);
        if (!part)
            Py_CLEAR(made);
        else if (s->kind == STEP_LIST)
            PyList_SET_ITEM(made, i, part);
        else if (s->kind == STEP_TUPLE)
            PyTuple_SET_ITEM(made, i, part);
        else {
            const int failed = PyDict_SetItem(made, PyTuple_GET_ITEM(s->keys, i), part);
            Py_DECREF(part);
            if (failed)
                Py_CLEAR(made);
        }
    }
    return made;
}

/* leave(results): the result of the program. Only if `can_leave` says so. */
static PyObject *entry_leave(PyEntry *self, PyObject *results)
{
    if (!self->can_leave)
        return PyErr_Format(PyExc_RuntimeError, "this result is Python's to make");
    PyObject *held = PySequence_Tuple(results);
    building b = {.at = self->result.steps, .out = self->out, .results = held};
    PyObject *made = held ? build(&b) : NULL;
    Py_XDECREF(held);
    return made;
}

/* ---- the type ------------------------------------------------------------------------------ */

/* Copies make their own when they are called. */
static PyObject *entry_reduce(PyEntry *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(O())", (PyObject *)Py_TYPE(Py_None));
}

static PyMethodDef entry_methods[] = {
    {"enter", (PyCFunction)(void (*)(void))entry_enter, METH_FASTCALL, NULL},
    {"leave", (PyCFunction)entry_leave, METH_O, NULL},
    {"__reduce__", (PyCFunction)entry_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef entry_members[] = {
    {"can_leave", T_BOOL, offsetof(PyEntry, can_leave), READONLY, "whether `leave` can be asked"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_new, entry_make},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},
    {Py_tp_methods, entry_methods},
    {Py_tp_members, entry_members},
    {Py_tp_doc, "Checks the arguments of a captured module, and puts its results together."},
    {0, NULL},
};

PyType_Spec entry_spec = {"cfx._core._Entry", sizeof(PyEntry), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, entry_slots};
