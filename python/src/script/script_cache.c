/* script_cache.c - the world of scripts: functools.lru_cache and cached_property.
 *
 * The helper `call_cached` of cfx/_glue/scripting.py is evaluated in their place: it asks for what
 * was computed before (recall), or calls the function and notes what that gave (remember). The
 * caches of Python's own stay as they are.
 *
 * A value that was computed in a way of a branch exists only there. Behind it the function is
 * called again, which gives the same unless it has effects; then it is refused.
 *
 * A cache that outlives the call keeps in Python what the first call computed. The graph computes
 * it in each run. That is the same only if it depends on nothing but the arguments of the cache.
 */
#include "scripting.h"

/* ---- keys ---------------------------------------------------------------------------------- */

static bool is_property(PyObject *cache)
{
    return strcmp(Py_TYPE(cache)->tp_name, "cached_property") == 0;
}

/* What a cache takes an argument for: graph values are known by their nodes, and the owner of a
 * property is itself, whatever it says of its hash. */
static PyObject *key_of(PyScript *w, PyObject *cache, PyObject *o)
{
    void *n = is_property(cache)      ? (void *)o
              : is_proxy(w->st, o) ? (void *)w->world.node(w, object(o)) : NULL;
    if (!n)
        return Py_NewRef(o);
    PyObject *address = PyLong_FromVoidPtr(n);
    PyObject *key = address ? PyTuple_Pack(2, (PyObject *)w, address) : NULL;
    Py_XDECREF(address);
    return key;
}

static int add_key(PyScript *w, PyObject *cache, PyObject *list, PyObject *o)
{
    PyObject *key = key_of(w, cache, o);
    int failed = key ? PyList_Append(list, key) : -1;
    Py_XDECREF(key);
    return failed;
}

/* What lru_cache was made with, by name: a new reference; None for a property. */
static PyObject *setting_of(PyObject *cache, const char *name)
{
    if (is_property(cache))
        return Py_NewRef(Py_None);
    PyObject *all = PyObject_CallMethod(cache, "cache_parameters", NULL);
    PyObject *found = all ? PyMapping_GetItemString(all, name) : NULL;
    Py_XDECREF(all);
    return found;
}

/* Adds the arguments, a mark, names and values; if `typed`, the types of the arguments. */
static int add_keys(PyScript *w, PyObject *cache, PyObject *list, PyObject *args, PyObject *kwargs,
                    bool typed)
{
    PyObject *name, *value;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(args); i++)
        failed = add_key(w, cache, list, PyTuple_GET_ITEM(args, i));
    if (!failed && PyDict_GET_SIZE(kwargs) > 0)
        failed = PyList_Append(list, (PyObject *)w);
    for (Py_ssize_t at = 0; !failed && PyDict_Next(kwargs, &at, &name, &value);)
        failed = PyList_Append(list, name) < 0 || add_key(w, cache, list, value) < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; typed && !failed && i < PyTuple_GET_SIZE(args); i++)
        failed = PyList_Append(list, (PyObject *)Py_TYPE(PyTuple_GET_ITEM(args, i)));
    for (Py_ssize_t at = 0; typed && !failed && PyDict_Next(kwargs, &at, &name, &value);)
        failed = PyList_Append(list, (PyObject *)Py_TYPE(value));
    return failed;
}

/* (id of the cache, key of the arguments): a new reference. As lru_cache, it tells 1 from 1.0 if
 * that is the only argument. */
static PyObject *call_key(PyScript *w, PyObject *cache, PyObject *args, PyObject *kwargs)
{
    PyObject *typed = setting_of(cache, "typed");
    PyObject *list = typed ? PyList_New(0) : NULL;
    PyObject *first = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *inner = NULL, *key = NULL;
    if (list && first && typed != Py_True && PyDict_GET_SIZE(kwargs) == 0 &&
        (PyLong_CheckExact(first) || PyUnicode_CheckExact(first)))
        inner = Py_NewRef(first);
    else if (list && add_keys(w, cache, list, args, kwargs, typed == Py_True) == 0)
        inner = PyList_AsTuple(list);
    PyObject *id = inner ? PyLong_FromVoidPtr(cache) : NULL;
    if (id)
        key = PyTuple_Pack(2, id, inner);
    Py_XDECREF(id);
    Py_XDECREF(inner);
    Py_XDECREF(list);
    Py_XDECREF(typed);
    return key;
}

/* Whether a cache is full, so that it forgets a result: 1, 0, -1 with an exception. */
static int is_full(PyScript *w, PyObject *cache)
{
    PyObject *most = setting_of(cache, "maxsize"), *key, *entry;
    Py_ssize_t room = most && most != Py_None ? PyLong_AsSsize_t(most) : PY_SSIZE_T_MAX;
    Py_XDECREF(most);
    for (Py_ssize_t at = 0; room > 0 && PyDict_Next(w->cached, &at, &key, &entry);)
        room -= PyTuple_GET_ITEM(entry, 3) == cache;
    return PyErr_Occurred() ? -1 : room <= 0;
}

/* ---- what a value depends on --------------------------------------------------------------- */

typedef struct search {
    PyScript *w;
    PyObject *args, *kwargs;
    PyObject *seen;          /* a set of addresses of nodes */
    PyObject *todo;          /* a list of them */
    const char *found;       /* what it depends on, in words */
} search;

static int push_node(search *s, cfx_node *n)
{
    PyObject *address = PyLong_FromVoidPtr(n);
    int known = address ? PySet_Contains(s->seen, address) : -1;
    if (known == 0)
        known = PySet_Add(s->seen, address) < 0 || PyList_Append(s->todo, address) < 0 ? -1 : 0;
    Py_XDECREF(address);
    return known < 0 ? -1 : 0;
}

static int push_leaf(void *ctx, PyObject *leaf)
{
    search *s = ctx;
    cfx_node *n = is_proxy(s->w->st, leaf) ? s->w->world.node(s->w, object(leaf)) : NULL;
    return n ? push_node(s, n) : 0;
}

static int mark_leaf(void *ctx, PyObject *leaf)
{
    search *s = ctx;
    cfx_node *n = is_proxy(s->w->st, leaf) ? s->w->world.node(s->w, object(leaf)) : NULL;
    PyObject *address = n ? PyLong_FromVoidPtr(n) : NULL;
    int failed = n && (!address || PySet_Add(s->seen, address) < 0) ? -1 : 0;
    Py_XDECREF(address);
    return failed;
}

/* Whether the node of a graph value is a number or a text, which a cache compares by value. */
static int stop_at_data(void *ctx, PyObject *leaf)
{
    search *s = ctx;
    cfx_node *n = is_proxy(s->w->st, leaf) ? s->w->world.node(s->w, object(leaf)) : NULL;
    const cfx_value type = n ? cfx_node_type(n) : cfx_value_invalid();
    size_t size = 0;
    const char *name = type.kind != CFX_KIND_INVALID ? cfx_value_text(type, &size) : NULL;
    if (!n || (name && (strcmp(name, "int") == 0 || strcmp(name, "float") == 0 ||
                        strcmp(name, "bool") == 0 || strcmp(name, "str") == 0)))
        return 0;
    switch (cfx_evaluator_kind(s->w->ev, object(leaf))) {
    case CFX_OBJECT_BOOL:
    case CFX_OBJECT_INT:
    case CFX_OBJECT_FLOAT:
    case CFX_OBJECT_STR:
        return 0;
    default:
        return 1;
    }
}

/* Goes back from what is in `value` to where it comes from, but not behind the arguments. */
static int find_data(search *s, PyObject *value)
{
    if (visit_leaves(s->args, mark_leaf, s) < 0 || visit_leaves(s->kwargs, mark_leaf, s) < 0 ||
        visit_leaves(value, push_leaf, s) < 0)
        return -1;
    for (Py_ssize_t i = 0; !s->found && i < PyList_GET_SIZE(s->todo); i++) {
        cfx_node *n = PyLong_AsVoidPtr(PyList_GET_ITEM(s->todo, i));
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER)
            s->found = "inputs";
        else if (cfx_node_op(n) == CFX_OP_GET_ATTR)
            s->found = "a parameter, a buffer, a mode or another tensor from outside";
        for (size_t k = 0; k < cfx_node_num_inputs(n); k++)
            if (push_node(s, cfx_node_input(n, k)) < 0)
                return -1;
    }
    return 0;
}

/* Whether what was recorded behind `from` has effects: 1, 0, -1 with an exception. */
static int has_effects(PyScript *w, cfx_node *from)
{
    cfx_graph *g = ((PyGraph *)w->tracer->graph)->g;
    cfx_error err = {0};
    for (cfx_node *n = from ? cfx_node_next(from) : cfx_graph_first(g); n; n = cfx_node_next(n)) {
        cfx_effect effect = CFX_EFFECT_NONE;
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER)  /* a mark of the evaluator's */
            continue;
        if (cfx_node_effect(n, NULL, &effect, &err) != CFX_OK) {
            if (err.status != CFX_E_HOST)
                raise_cfx(&err);
            return -1;
        }
        if (effect != CFX_EFFECT_NONE)
            return 1;
    }
    return 0;
}

/* ---- caches that outlive the call ---------------------------------------------------------- */

static int refuse_cached(PyScript *w, const char *what)
{
    script_refuse(w, "this result is cached (functools) and outlives the call, but depends on %s: "
                  "later calls would get the first call's value; compute it without the cache, or "
                  "before the capture", what);
    return -1;
}

/* Whether the cache is there before and after the call: 1, 0, -1 with an exception. */
static int outlives(PyScript *w, PyObject *cache, PyObject *args)
{
    if (!is_property(cache))
        return script_is_outside(w, cache);
    PyObject *owner = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : cache;
    return is_nn_module(w->st, owner) ? 1 : script_is_outside(w, owner);
}

static int check_lasting(PyScript *w, PyObject *args, PyObject *kwargs, PyObject *value)
{
    search s = {.w = w, .args = args, .kwargs = kwargs, .seen = PySet_New(NULL),
                .todo = PyList_New(0)};
    int failed = s.seen && s.todo ? 0 : -1;
    int data = failed ? -1 : visit_leaves(args, stop_at_data, &s);
    if (data == 0)
        data = visit_leaves(kwargs, stop_at_data, &s);
    if (data > 0)
        s.found = "an argument that may be a tensor (if it is a number, say so: n: int)";
    if (data == 0)
        failed = find_data(&s, value);
    if (data < 0 || failed)
        failed = -1;
    else if (s.found)
        failed = refuse_cached(w, s.found);
    else
        failed = script_note(w, value);
    Py_XDECREF(s.seen);
    Py_XDECREF(s.todo);
    return failed;
}

/* ---- entries ------------------------------------------------------------------------------- */

static PyScript *take_script(PyObject *module, PyObject *const *in, Py_ssize_t n, Py_ssize_t want)
{
    module_state *st = PyModule_GetState(module);
    PyScript *w = n > 0 && Py_TYPE(in[0]) == (PyTypeObject *)st->ScriptType ? (PyScript *)in[0]
                                                                          : NULL;
    if (n == want && w && w->ev && PyTuple_Check(in[2]) && PyDict_Check(in[3]))
        return w;
    PyErr_SetString(PyExc_TypeError, "expected a script that runs, a cache, a tuple and a dict");
    return NULL;
}

PyObject *script_recall(PyObject *module, PyObject *const *in, Py_ssize_t n)
{
    PyScript *w = take_script(module, in, n, 4);
    PyObject *key = w ? call_key(w, in[1], in[2], in[3]) : NULL;
    PyObject *entry = key ? PyDict_GetItemWithError(w->cached, key) : NULL;
    PyObject *result = NULL;
    if (entry && cfx_evaluator_in_region(
                     w->ev, (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(entry, 0)))) {
        result = PyTuple_Pack(2, Py_True, PyTuple_GET_ITEM(entry, 1));
    } else if (entry && PyTuple_GET_ITEM(entry, 2) == Py_True) {
        script_refuse(w, "this result is cached (functools), has effects or draws random numbers, "
                      "and was computed in a branch or loop that depends on data: it is not known "
                      "whether it is there; compute it before the branch");
    } else if (key && !PyErr_Occurred()) {
        cfx_node *last = cfx_graph_last(((PyGraph *)w->tracer->graph)->g);
        PyObject *begun = Py_BuildValue("(NN)", PyLong_FromVoidPtr(last),
                                        PyLong_FromUnsignedLong(w->changes));
        if (begun && PyDict_SetItem(w->begun, key, begun) == 0)
            result = PyTuple_Pack(2, Py_False, Py_None);
        Py_XDECREF(begun);
    }
    Py_XDECREF(key);
    return result;
}

static int add_place(void *ctx, PyObject *leaf);

/* The places of the nodes in a value that outlives the call, None for others: a new reference. */
static PyObject *places_in(PyScript *w, PyObject *value, int lasts)
{
    search s = {.w = w, .seen = lasts ? PySet_New(NULL) : Py_NewRef(Py_None)};
    if (s.seen && lasts && visit_leaves(value, add_place, &s) < 0)
        Py_CLEAR(s.seen);
    return s.seen;
}

static int remember(PyScript *w, PyObject *const *in, PyObject *key)
{
    PyObject *begun = PyDict_GetItemWithError(w->begun, key);
    int lasts = begun ? outlives(w, in[1], in[2]) : -1;
    int effects = lasts < 0 ? -1 : has_effects(w, PyLong_AsVoidPtr(PyTuple_GET_ITEM(begun, 0)));
    if (effects < 0)
        return -1;
    if (PyLong_AsUnsignedLong(PyTuple_GET_ITEM(begun, 1)) != w->changes)
        effects = 1;
    if (effects && lasts)
        return refuse_cached(w, "what it does besides, or on random numbers");
    int by_data = mentions_graph(w->st, in[2]);
    if (by_data == 0)
        by_data = mentions_graph(w->st, in[3]);
    if (effects && by_data > 0) {
        script_refuse(w, "this result is cached (functools), has effects or draws random numbers, "
                      "and its arguments depend on data: it is not known whether it is there");
        return -1;
    }
    int full = effects ? is_full(w, in[1]) : 0;
    if (full > 0)
        script_refuse(w, "this result is cached (functools), has effects or draws random numbers, "
                      "and the cache is full; give it more room (maxsize=None)");
    if (full != 0)
        return -1;
    if (by_data < 0 || (lasts && check_lasting(w, in[2], in[3], in[4]) < 0))
        return -1;
    PyObject *entry = Py_BuildValue("(NOOOON)",
                                    PyLong_FromUnsignedLong(cfx_evaluator_region(w->ev)), in[4],
                                    effects ? Py_True : Py_False, in[1], in[2],
                                    places_in(w, in[4], lasts));
    int failed = entry ? PyDict_SetItem(w->cached, key, entry) : -1;
    Py_XDECREF(entry);
    return failed;
}

PyObject *script_remember(PyObject *module, PyObject *const *in, Py_ssize_t n)
{
    PyScript *w = take_script(module, in, n, 5);
    PyObject *key = w ? call_key(w, in[1], in[2], in[3]) : NULL;
    int failed = key ? remember(w, in, key) : -1;
    Py_XDECREF(key);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Where a node was recorded: it becomes another one if it comes to stand in a region. */
static PyObject *place_of(const cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    return Py_BuildValue("(ssI)", cfx_node_file(n), target ? target : "", cfx_node_line(n));
}

/* The places of the nodes in the values of caches that outlive the call: a set, or NULL with an
 * exception. */
static PyObject *lasting_places(PyScript *w)
{
    PyObject *places = PySet_New(NULL), *key, *entry;
    Py_ssize_t at = 0;
    int failed = places ? 0 : -1;
    while (!failed && PyDict_Next(w->cached, &at, &key, &entry)) {
        PyObject *more = PyTuple_GET_ITEM(entry, 5);
        PyObject *same = more != Py_None ? PyObject_CallMethod(places, "update", "O", more) : NULL;
        Py_XDECREF(same);
        failed = PyErr_Occurred() ? -1 : 0;
    }
    if (failed)
        Py_CLEAR(places);
    return places;
}

/* Adds the places of the nodes in a value: for visit_leaves. */
static int add_place(void *ctx, PyObject *leaf)
{
    search *s = ctx;
    cfx_node *n = is_proxy(s->w->st, leaf) ? s->w->world.node(s->w, object(leaf)) : NULL;
    PyObject *place = n ? place_of(n) : NULL;
    int failed = n && (!place || PySet_Add(s->seen, place) < 0) ? -1 : 0;
    Py_XDECREF(place);
    return failed;
}

typedef struct sharing {
    PyObject *places;        /* a set */
    PyObject *nodes;         /* a set: addresses of what shares memory with a cached value */
    bool shares, writes;     /* what the node that is looked at does to one of them */
    cfx_error *err;
} sharing;

static cfx_status note_touch(void *ctx, cfx_node *input, unsigned touch)
{
    sharing *s = ctx;
    PyObject *address = touch ? PyLong_FromVoidPtr(input) : NULL;
    int known = address ? PySet_Contains(s->nodes, address) : 0;
    Py_XDECREF(address);
    s->shares = s->shares || (known > 0 && touch & CFX_TOUCH_SHARES);
    s->writes = s->writes || (known > 0 && touch & CFX_TOUCH_WRITES);
    return PyErr_Occurred() ? CFX_E_HOST : CFX_OK;
}

static int check_graph(sharing *s, cfx_graph *g);

static int check_regions(sharing *s, const cfx_node *n)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < cfx_node_num_args(n); i++)
        if (cfx_node_arg(n, i).kind == CFX_KIND_GRAPH)
            failed = check_graph(s, cfx_value_graph(cfx_node_arg(n, i)));
    return failed;
}

static int check_node(sharing *s, cfx_node *n)
{
    PyObject *place = cfx_node_op(n) == CFX_OP_PLACEHOLDER ? Py_NewRef(Py_None) : place_of(n);
    int cached = place ? PySet_Contains(s->places, place) : -1;
    s->shares = s->writes = false;
    int failed = cached < 0 || cfx_node_each_touch(n, NULL, note_touch, s, s->err) ? -1 : 0;
    Py_XDECREF(place);
    if (!failed && (cached || s->shares)) {
        PyObject *address = PyLong_FromVoidPtr(n);
        failed = address ? PySet_Add(s->nodes, address) : -1;
        Py_XDECREF(address);
    }
    if (failed || !s->writes)
        return failed ? -1 : check_regions(s, n);
    cfx_error_set(s->err, CFX_E_UNSUPPORTED, "%s:%u: this changes a tensor that is cached "
                  "(functools) and outlives the call: later calls would find it changed; change a "
                  "copy", cfx_node_file(n) ? cfx_node_file(n) : "", (unsigned)cfx_node_line(n));
    return -1;
}

static int check_graph(sharing *s, cfx_graph *g)
{
    int failed = 0;
    for (cfx_node *n = cfx_graph_first(g); n && !failed; n = cfx_node_next(n))
        failed = check_node(s, n);
    return failed;
}

int script_check_caches(PyScript *w, cfx_error *err)
{
    if (PyDict_GET_SIZE(w->cached) == 0)
        return 0;
    sharing s = {.places = lasting_places(w), .nodes = PySet_New(NULL), .err = err};
    int failed = s.places && s.nodes ? 0 : -1;
    if (!failed && PySet_GET_SIZE(s.places) > 0)
        failed = check_graph(&s, ((PyGraph *)w->tracer->graph)->g);
    Py_XDECREF(s.nodes);
    Py_XDECREF(s.places);
    return failed;
}

PyObject *script_cached(PyScript *w, PyObject *cache, PyObject *function)
{
    PyObject *job = PyTuple_Pack(3, (PyObject *)w, cache, function);
    PyObject *parts = job ? call_glue(w->st, "script_cached", job) : NULL;
    Py_XDECREF(job);
    return parts;
}
