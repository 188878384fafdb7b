/* map_blocks.c - map_aggregate and map_arg: a copy of nested containers with each leaf replaced.
 *
 * The function that is applied to the leaves may be Python code that changes the very container
 * that is being read: sizes are read anew for every item, and every item is held while in use.
 */
#include "pycfx.h"

/* ---- containers ---------------------------------------------------------------------------- */

typedef struct mapping {
    module_state *st;
    map_leaf_fn *fn;
    map_plain_fn *plain;  /* or NULL: lists and dicts become immutable */
    void *ctx;
    PyObject *top;        /* keyword arguments, which are no dict of the program's; or NULL */
} mapping;

static PyObject *map_any(const mapping *m, PyObject *tree, bool inside);

/* Whether a list or dict, which is inside of another or not, becomes an ordinary one. */
static bool is_plain(const mapping *m, bool inside)
{
    return m->plain && m->plain(m->ctx, inside);
}

/* A tuple that is being filled is kept from the garbage collector, and so from gc.get_objects. */
static PyObject *map_items(const mapping *m, PyObject *tuple, bool inside)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    PyObject *result = PyTuple_New(n);
    if (!result || n == 0)
        return result;
    PyObject_GC_UnTrack(result);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = map_any(m, PyTuple_GET_ITEM(tuple, i), inside);
        if (!item) {
            Py_DECREF(result);
            return NULL;
        }
        PyTuple_SET_ITEM(result, i, item);
    }
    PyObject_GC_Track(result);
    return result;
}

/* Named tuples keep their class; any other class of tuple becomes a plain one. */
static PyObject *map_tuple(const mapping *m, PyObject *tuple, bool inside)
{
    PyObject *items = map_items(m, tuple, inside);
    if (!items || PyTuple_CheckExact(tuple) || !has_attribute(tuple, m->st->str_fields))
        return items;
    PyObject *result = PyObject_Call((PyObject *)Py_TYPE(tuple), items, NULL);
    Py_DECREF(items);
    return result;
}

/* Items that are added on the way are not mapped; where some are removed, the result is shorter. */
static PyObject *map_list(const mapping *m, PyObject *list, bool inside)
{
    Py_ssize_t n = PyList_GET_SIZE(list);
    PyObject *result = is_plain(m, inside) ? PyList_New(n) : immutable_list_new(m->st, n);
    if (!result)
        return NULL;
    PyObject_GC_UnTrack(result);
    Py_ssize_t i = 0;
    for (; i < n && i < PyList_GET_SIZE(list); i++) {
        PyObject *item = Py_NewRef(PyList_GET_ITEM(list, i));
        PyObject *mapped = map_any(m, item, true);
        Py_DECREF(item);
        if (!mapped) {
            Py_DECREF(result);
            return NULL;
        }
        PyList_SET_ITEM(result, i, mapped);
    }
    Py_SET_SIZE(result, i);
    PyObject_GC_Track(result);
    return result;
}

/* Keys stay what they are. PyDict_Next survives a dict that changes under it. */
static PyObject *map_dict(const mapping *m, PyObject *dict, bool inside)
{
    const bool plain = dict != m->top && is_plain(m, inside);
    PyObject *result = plain ? PyDict_New() : immutable_dict_new(m->st);
    PyObject *key = NULL;
    PyObject *value = NULL;
    Py_ssize_t at = 0;
    while (result && PyDict_Next(dict, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        PyObject *mapped = map_any(m, value, dict != m->top);
        if (!mapped || PyDict_SetItem(result, key, mapped) < 0)
            Py_CLEAR(result);
        Py_XDECREF(mapped);
        Py_DECREF(value);
        Py_DECREF(key);
    }
    return result;
}

static PyObject *map_slice(const mapping *m, PySliceObject *slice)
{
    PyObject *const parts[3] = {slice->start, slice->stop, slice->step};
    PyObject *mapped[3] = {NULL, NULL, NULL};
    PyObject *result = NULL;
    int i = 0;
    while (i < 3 && (mapped[i] = map_any(m, parts[i], true)))
        i++;
    if (i == 3)
        result = PySlice_New(mapped[0], mapped[1], mapped[2]);
    for (i = 0; i < 3; i++)
        Py_XDECREF(mapped[i]);
    return result;
}

static PyObject *map_any(const mapping *m, PyObject *tree, bool inside)
{
    const unsigned long containers =
        Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS;
    if (!PyType_HasFeature(Py_TYPE(tree), containers) && !PySlice_Check(tree))
        return m->fn(m->ctx, tree);
    if (enter_nested(" while mapping nested arguments"))
        return NULL;
    PyObject *result = NULL;
    if (PyTuple_Check(tree))
        result = map_tuple(m, tree, inside);
    else if (PyList_Check(tree))
        result = map_list(m, tree, inside);
    else if (PyDict_Check(tree))
        result = map_dict(m, tree, inside);
    else
        result = map_slice(m, (PySliceObject *)tree);
    leave_nested();
    return result;
}

PyObject *map_tree(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx)
{
    const mapping m = {.st = st, .fn = fn, .ctx = ctx};
    return map_any(&m, tree, false);
}

PyObject *map_arguments(module_state *st, PyObject *given, map_leaf_fn *fn, map_plain_fn *plain,
                        void *ctx)
{
    const mapping m = {.st = st, .fn = fn, .plain = plain, .ctx = ctx, .top = given};
    return map_any(&m, given, false);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static bool is_set(PyObject *o) { return PyAnySet_CheckExact(o); }

static bool is_container(PyObject *o)
{
    return PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PySlice_Check(o) || is_set(o);
}

/* A key that stays equal stays what it is: a tuple of another class would become a plain one. */
static PyObject *map_key(module_state *st, PyObject *key, map_leaf_fn *fn, void *ctx)
{
    PyObject *mapped = map_tree(st, key, fn, ctx);
    int same = mapped && mapped != key ? PyObject_RichCompareBool(mapped, key, Py_EQ) : 0;
    if (same)
        Py_SETREF(mapped, same > 0 ? Py_NewRef(key) : NULL);
    return mapped;
}

static PyObject *map_keys(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx);

/* The class of `like` called with `content`, a reference that is given up. */
static PyObject *make_like(PyObject *like, PyObject *content)
{
    PyObject *made = content ? PyObject_CallOneArg((PyObject *)Py_TYPE(like), content) : NULL;
    Py_XDECREF(content);
    return made;
}

static PyObject *map_keys_of_dict(module_state *st, PyObject *dict, map_leaf_fn *fn, void *ctx)
{
    PyObject *pairs = PyMapping_Items(dict);
    PyObject *result = pairs ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        PyObject *key = map_key(st, PyTuple_GET_ITEM(pair, 0), fn, ctx);
        PyObject *value = key ? map_keys(st, PyTuple_GET_ITEM(pair, 1), fn, ctx) : NULL;
        if (!value || PyDict_SetItem(result, key, value) < 0)
            Py_CLEAR(result);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    Py_XDECREF(pairs);
    return make_like(dict, result);
}

/* A list of `items`, each mapped. */
static PyObject *map_list_with(module_state *st, PyObject *items, map_leaf_fn *fn, void *ctx,
                               PyObject *(*map)(module_state *, PyObject *, map_leaf_fn *, void *))
{
    PyObject *list = PySequence_List(items);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *mapped = map(st, PyList_GET_ITEM(list, i), fn, ctx);
        if (!mapped || PyList_SetItem(list, i, mapped) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *map_keys_of_slice(module_state *st, PySliceObject *s, map_leaf_fn *fn, void *ctx)
{
    PyObject *parts = PyTuple_Pack(3, s->start, s->stop, s->step);
    PyObject *list = parts ? map_list_with(st, parts, fn, ctx, map_keys) : NULL;
    PyObject *result = NULL;
    if (list)
        result = PySlice_New(PyList_GET_ITEM(list, 0), PyList_GET_ITEM(list, 1),
                             PyList_GET_ITEM(list, 2));
    Py_XDECREF(parts);
    Py_XDECREF(list);
    return result;
}

static PyObject *map_keys_of_items(module_state *st, PyObject *items, map_leaf_fn *fn, void *ctx)
{
    PyObject *list = map_list_with(st, items, fn, ctx, map_keys);
    if (!list || !has_attribute(items, st->str_fields))
        return make_like(items, list);
    PyObject *fields = PyList_AsTuple(list);  /* a named tuple takes them one by one */
    PyObject *result = fields ? PyObject_CallObject((PyObject *)Py_TYPE(items), fields) : NULL;
    Py_XDECREF(fields);
    Py_DECREF(list);
    return result;
}

static bool has_containers(PyObject *items)
{
    PyObject **item = PySequence_Fast_ITEMS(items);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++)
        if (is_container(item[i]))
            return true;
    return false;
}

static PyObject *map_keys(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx)
{
    PyObject *result = NULL;
    bool has_items = PyTuple_Check(tree) || PyList_Check(tree);
    if (has_items ? !has_containers(tree) : !is_container(tree))
        return Py_NewRef(tree);
    if (enter_nested(" while mapping nested arguments"))
        return NULL;
    if (has_items)
        result = map_keys_of_items(st, tree, fn, ctx);
    else if (PyDict_Check(tree))
        result = map_keys_of_dict(st, tree, fn, ctx);
    else if (PySlice_Check(tree))
        result = map_keys_of_slice(st, (PySliceObject *)tree, fn, ctx);
    else
        result = make_like(tree, map_list_with(st, tree, fn, ctx, map_key));
    leave_nested();
    return result;
}

PyObject *map_all(module_state *st, PyObject *tree, map_leaf_fn *fn, void *ctx)
{
    PyObject *mapped = map_tree(st, tree, fn, ctx);
    if (mapped)
        Py_SETREF(mapped, map_keys(st, mapped, fn, ctx));
    return mapped;
}

/* ---- the functions ------------------------------------------------------------------------- */

static const char *const names[] = {"a", "fn"};
static const arg_spec map_aggregate_args = {"map_aggregate", names, 2, 2, 2};
static const arg_spec map_arg_args = {"map_arg", names, 2, 2, 2};

static PyObject *call_leaf(void *ctx, PyObject *leaf) { return PyObject_CallOneArg(ctx, leaf); }

typedef struct node_call {
    module_state *st;
    PyObject *fn;
} node_call;

static PyObject *call_node(void *ctx, PyObject *leaf)
{
    const node_call *call = ctx;
    return is_node(call->st, leaf) ? PyObject_CallOneArg(call->fn, leaf) : Py_NewRef(leaf);
}

static PyObject *map_aggregate(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    PyObject *given[2];
    if (!take_args(&map_aggregate_args, args, nargs, kwnames, given))
        return NULL;
    return map_tree(PyModule_GetState(module), given[0], call_leaf, given[1]);
}

static PyObject *map_arg(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames)
{
    PyObject *given[2];
    if (!take_args(&map_arg_args, args, nargs, kwnames, given))
        return NULL;
    if (!PyCallable_Check(given[1])) {
        PyErr_SetString(PyExc_AssertionError, "cfx.map_arg(a, fn): fn must be a callable");
        return NULL;
    }
    node_call call = {PyModule_GetState(module), given[1]};
    return map_tree(call.st, given[0], call_node, &call);
}

static PyObject *py_map_all(PyObject *module, PyObject *args)
{
    PyObject *tree, *fn;
    if (!PyArg_ParseTuple(args, "OO:_map_all", &tree, &fn))
        return NULL;
    return map_all(PyModule_GetState(module), tree, call_leaf, fn);
}

PyDoc_STRVAR(map_aggregate_doc,
"map_aggregate($module, /, a, fn)\n--\n\n"
"A copy of `a` with fn(item) in the place of every item that is no container.\n\n"
"Tuples, named tuples, lists, dicts and slices are containers. Lists and dicts become immutable\n"
"ones; the keys of a dict are kept.");

PyDoc_STRVAR(map_arg_doc,
"map_arg($module, /, a, fn)\n--\n\n"
"A copy of `a` with fn(node) in the place of every Node. See map_aggregate.");

PyMethodDef map_functions[] = {
    {"map_aggregate", FAST(map_aggregate), map_aggregate_doc},
    {"map_arg", FAST(map_arg), map_arg_doc},
    {"_map_all", py_map_all, METH_VARARGS,
     PyDoc_STR("map_aggregate, and the keys of dicts and members of sets, which that leaves.")},
    {0},
};
