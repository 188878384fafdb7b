/* script_stale.c - the world of scripts: what holds a list or dict that has become a graph value.
 *
 * What such a list holds is computed when the graph runs, and Python's own object has what it held
 * before. The evaluator never reads that. But Python's own code would, where it comes upon the
 * list in an object that only Python looks into: a ChainMap, a partial function, a generator, a
 * bound method. So all that is handed to it is looked through first.
 */
#include "scripting.h"

/* ---- looking through objects --------------------------------------------------------------- */

static bool is_builtin_container(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o) ||
           PyUnicode_Check(o) || PyBytes_Check(o) || PyRange_Check(o) || is_deque(o);
}

enum { MOST_OBJECTS = 100000 };  /* beyond that, it is a part of Python itself */

typedef struct search {
    PyScript *w;
    PyObject *todo;  /* a list */
    PyObject *seen;  /* a set of addresses */
    bool flat;       /* what a builtin container holds does not matter, only which it is */
    bool found;
    int failed;
} search;

/* What leads nowhere, or everywhere. */
static bool is_leaf(const PyScript *w, PyObject *o)
{
    return !PyObject_IS_GC(o) || PyType_Check(o) || PyModule_Check(o) || PyCode_Check(o) ||
           is_graph_like(w->st, o) || is_nn_module(w->st, o) || o == (PyObject *)w ||
           o == (PyObject *)w->tracer || o == w->mode || script_function_of(w, o);
}

static int note(PyObject *o, void *ctx)
{
    search *s = ctx;
    if (!o || s->found || s->failed || is_leaf(s->w, o))
        return 0;
    if (cfx_evaluator_is_value(s->w->ev, object(o))) {
        s->found = true;
        return 0;
    }
    if (s->flat && is_builtin_container(o) && !PyTuple_Check(o))
        return 0;
    PyObject *id = PyLong_FromVoidPtr(o);
    int known = id ? PySet_Contains(s->seen, id) : -1;
    if (known == 0)
        known = PySet_Add(s->seen, id) < 0 || PyList_Append(s->todo, o) < 0 ? -1 : 0;
    s->failed = known < 0 ? -1 : 0;
    Py_XDECREF(id);
    return 0;
}

/* What an object refers to, as the garbage collector sees it. The globals of a function are not of
 * what it holds. */
static void look_into(search *s, PyObject *o)
{
    if (s->flat && PyTuple_Check(o)) {  /* zip has its iterators in one, and the last items */
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            if (PyIter_Check(PyTuple_GET_ITEM(o, i)))
                note(PyTuple_GET_ITEM(o, i), s);
    } else if (PyFunction_Check(o)) {
        note(PyFunction_GET_CLOSURE(o), s);
        note(PyFunction_GET_DEFAULTS(o), s);
        note(PyFunction_GET_KW_DEFAULTS(o), s);
    } else if (Py_TYPE(o)->tp_traverse) {
        Py_TYPE(o)->tp_traverse(o, note, s);
    }
}

/* Whether an object leads to such a list or dict: 1, 0, -1 with an exception. */
static int leads_to_value(PyScript *w, PyObject *root, bool flat)
{
    search s = {.w = w, .todo = PyList_New(0), .seen = PySet_New(NULL), .flat = flat};
    s.failed = s.todo && s.seen ? 0 : -1;
    note(root, &s);
    for (Py_ssize_t i = 0; !s.failed && !s.found && i < PyList_GET_SIZE(s.todo); i++) {
        if (i >= MOST_OBJECTS)
            break;
        look_into(&s, PyList_GET_ITEM(s.todo, i));
    }
    Py_XDECREF(s.todo);
    Py_XDECREF(s.seen);
    return s.failed ? -1 : s.found;
}

static int check(PyScript *w, PyObject *o, bool flat)
{
    if (!w->ev || !cfx_evaluator_is_value(w->ev, NULL) || is_leaf(w, o))
        return 0;
    int found = leads_to_value(w, o, flat);
    if (found > 0)
        script_refuse(w, "this %s holds a list or dict whose contents depend on data, and Python's "
                      "own code would see what it held before; use the list or dict itself, or "
                      "copy it before (list(x), dict(x))", Py_TYPE(o)->tp_name);
    return found == 0 ? 0 : -1;
}

/* ---- operands ------------------------------------------------------------------------------ */

int script_check_stale(PyScript *w, PyObject *o) { return check(w, o, false); }

int script_check_next(PyScript *w, PyObject *iterator)
{
    return check(w, iterator, !PyGen_Check(iterator) &&
                              !PyType_HasFeature(Py_TYPE(iterator), Py_TPFLAGS_HEAPTYPE));
}

int script_check_opaque(PyScript *w, PyObject *o)
{
    return is_builtin_container(o) ? 0 : PyIter_Check(o) ? script_check_next(w, o)
                                                         : script_check_stale(w, o);
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* Methods of containers that compare what is in them, or write it as text; others move it. */
static bool reads_items(const char *name)
{
    static const char *const names[] = {
        "index", "count", "remove", "sort", "__contains__", "__eq__", "__ne__", "__lt__", "__le__",
        "__gt__", "__ge__", "__repr__", "__str__", "__format__", NULL};
    return is_one_of(name, names);
}

/* Builtin functions that look at nothing but the object itself. */
static bool asks_for_self(const char *name)
{
    static const char *const names[] = {
        "isinstance", "issubclass", "id", "callable", "hasattr", "getattr", "setattr", "delattr",
        "print", "vars", "dir", NULL};
    return is_one_of(name, names);
}

/* Classes that keep what they are given, or copy it item by item. */
static bool only_keeps(PyTypeObject *type)
{
    static const char *const names[] = {
        "list", "tuple", "dict", "set", "frozenset", "zip", "enumerate", "reversed", "type",
        "collections.deque", "collections.OrderedDict", "functools.partial",
        "types.SimpleNamespace", "super", "property", NULL};
    return is_one_of(type->tp_name, names) || PyType_IsSubtype(type, &PyTuple_Type) ||
           PyObject_HasAttrString((PyObject *)type, "__dataclass_fields__");
}

/* Functions written in Python that copy an object, but not what it holds. */
static bool copies_one(PyObject *f)
{
    PyObject *home = PyFunction_GET_MODULE(f), *name = ((PyFunctionObject *)f)->func_name;
    const bool is_copy = PyUnicode_CompareWithASCIIString(name, "copy") == 0;
    const bool is_replace = PyUnicode_CompareWithASCIIString(name, "replace") == 0;
    if ((!is_copy && !is_replace) || !home || !PyUnicode_Check(home))
        return false;
    return PyUnicode_CompareWithASCIIString(home, is_copy ? "copy" : "dataclasses") == 0;
}

/* Whether the function reads its arguments no deeper than their items: *items is cleared if it
 * does not read the items either. */
static bool is_shallow(PyObject *f, bool *items)
{
    *items = true;
    if (PyType_Check(f))
        return only_keeps((PyTypeObject *)f);
    if (PyFunction_Check(f) && copies_one(f)) {
        *items = false;
        return true;
    }
    if (!PyCFunction_Check(f))
        return false;
    PyObject *self = PyCFunction_GET_SELF(f);
    const char *name = ((PyCFunctionObject *)f)->m_ml->ml_name;
    if (self && is_builtin_container(self))
        return !reads_items(name);
    const bool builtin = self && PyModule_Check(self);
    *items = !(builtin && asks_for_self(name));
    return builtin && (!*items || strcmp(name, "len") == 0 || strcmp(name, "iter") == 0);
}

int script_check_call(PyScript *w, PyObject *f, PyObject *const *args, Py_ssize_t n,
                      PyObject *kwargs)
{
    bool items;
    if (!w->ev || !cfx_evaluator_is_value(w->ev, NULL))
        return 0;
    const bool shallow = is_shallow(f, &items);
    if (shallow && !items)
        return 0;
    int failed = shallow ? 0 : script_check_stale(w, f);
    for (Py_ssize_t i = 0; !failed && i < n; i++)
        failed = shallow ? script_check_opaque(w, args[i]) : script_check_stale(w, args[i]);
    return failed || shallow || !kwargs ? failed : script_check_stale(w, kwargs);
}

/* ---- views --------------------------------------------------------------------------------- */

static int take_dict(PyObject *o, void *ctx)
{
    *(PyObject **)ctx = PyDict_Check(o) ? o : *(PyObject **)ctx;
    return 0;
}

static cfx_object *world_view_of(void *ctx, cfx_object *view, const char **method)
{
    PyObject *o = py(view), *dict = NULL;
    (void)ctx;
    if (!PyDictKeys_Check(o) && !PyDictValues_Check(o) && !PyDictItems_Check(o))
        return NULL;
    *method = PyDictKeys_Check(o) ? "keys" : PyDictValues_Check(o) ? "values" : "items";
    Py_TYPE(o)->tp_traverse(o, take_dict, &dict);
    return object(dict);
}

void script_stale_entries(cfx_world *world) { world->view_of = world_view_of; }
