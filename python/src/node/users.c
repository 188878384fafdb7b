/* users.c - node.users: a dict that always shows the users the core knows.
 *
 * It is a real dict, so that it passes wherever a dict does; its contents are brought up to date
 * when somebody looks, and only if the graph was edited since. Length and membership are asked of
 * the core directly, and iteration walks the core's use edges: `while x.users: erase(next(iter(
 * x.users)))` must not rebuild the dict every time.
 */
#include "base/pycfx.h"

/* ---- the iterator -------------------------------------------------------------------------- */

typedef struct UsersIter {
    PyObject_HEAD
    PyNode *node;        /* NULL once the walk is over */
    PyNode *last;        /* the user yielded last; NULL before the first */
    const cfx_use *use;  /* its edge, good while the graph has `version` */
    uint64_t version;
    size_t total, yielded;
} UsersIter;

static PyObject *users_iter_new(PyNode *node)
{
    PyTypeObject *type = (PyTypeObject *)node_state(node)->UsersIterType;
    UsersIter *self = (UsersIter *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->node = (PyNode *)Py_NewRef((PyObject *)node);
    self->version = cfx_graph_version(cfx_node_graph(node->n));
    self->total = cfx_node_num_users(node->n);
    return (PyObject *)self;
}

/* An edit may have moved the edges in memory: looks the last one up again. False if the edit was to
 * these users; others, such as adding users of a user, are fine, as they are for a dict. */
static bool catch_up(UsersIter *self)
{
    const cfx_node *n = self->node->n;
    uint64_t version = cfx_graph_version(cfx_node_graph(n));
    if (version == self->version)
        return true;
    self->version = version;
    if (self->last)
        self->use = cfx_node_find_use(self->last->n, n);
    return cfx_node_num_users(n) == self->total && (self->use || !self->last);
}

static PyObject *users_iter_next(UsersIter *self)
{
    if (!self->node)
        return NULL;
    bool same = catch_up(self);
    const cfx_use *use = NULL;
    if (same)
        use = self->use ? cfx_use_next(self->use) : cfx_node_first_use(self->node->n);
    /* Users that changed places would be yielded twice or never. */
    same = same && (use != NULL) == (self->yielded < self->total);
    PyObject *user = same && use ? node_wrap(node_graph(self->node), cfx_use_user(use)) : NULL;
    if (user) {
        self->use = use;
        self->yielded++;
        Py_XSETREF(self->last, (PyNode *)Py_NewRef(user));
        return user;
    }
    Py_CLEAR(self->node);
    if (!same)
        PyErr_SetString(PyExc_RuntimeError, "users changed during iteration");
    return NULL;
}

static int users_iter_traverse(UsersIter *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->node);
    Py_VISIT(self->last);
    return 0;
}

static int users_iter_clear(UsersIter *self)
{
    Py_CLEAR(self->node);
    Py_CLEAR(self->last);
    return 0;
}

static void users_iter_dealloc(UsersIter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    users_iter_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot users_iter_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, users_iter_next},
    {Py_tp_traverse, users_iter_traverse},
    {Py_tp_clear, users_iter_clear},
    {Py_tp_dealloc, users_iter_dealloc},
    {0, NULL},
};

PyType_Spec users_iter_spec = {
    .name = "cfx.node._UsersIter",
    .basicsize = sizeof(UsersIter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = users_iter_slots,
};

/* ---- the dict ------------------------------------------------------------------------------ */

typedef struct Users {
    PyDictObject dict;
    PyNode *node;
    uint64_t version;
    bool fresh;
} Users;

PyObject *users_new(PyNode *node)
{
    PyTypeObject *type = (PyTypeObject *)node_state(node)->UsersType;
    PyObject *nothing = node_state(node)->empty_tuple;
    Users *self = (Users *)type->tp_base->tp_new(type, nothing, NULL);
    if (!self)
        return NULL;
    self->node = (PyNode *)Py_NewRef((PyObject *)node);
    self->fresh = false;
    return (PyObject *)self;
}

/* Fills the dict from the core: 0, or -1 with an exception. */
static int bring_up(Users *self)
{
    PyGraph *graph = node_graph(self->node);
    uint64_t version = cfx_graph_version(graph->g);
    if (self->fresh && self->version == version)
        return 0;
    PyDict_Clear((PyObject *)self);
    for (const cfx_use *use = cfx_node_first_use(self->node->n); use; use = cfx_use_next(use)) {
        PyObject *user = node_wrap(graph, cfx_use_user(use));
        if (!user || PyDict_SetItem((PyObject *)self, user, Py_None) < 0) {
            Py_XDECREF(user);
            return -1;
        }
        Py_DECREF(user);
    }
    self->version = version;
    self->fresh = true;
    return 0;
}

static Py_ssize_t length(Users *self) { return (Py_ssize_t)cfx_node_num_users(self->node->n); }

static int contains(Users *self, PyObject *key)
{
    if (!is_node(node_state(self->node), key))
        return 0;
    const PyNode *user = (PyNode *)key;
    return cfx_node_graph(user->n) == cfx_node_graph(self->node->n) &&
           cfx_node_uses(user->n, self->node->n);
}

static PyObject *iterate(Users *self) { return users_iter_new(self->node); }

static PyObject *subscript(Users *self, PyObject *key)
{
    if (bring_up(self) < 0)
        return NULL;
    return PyDict_Type.tp_as_mapping->mp_subscript((PyObject *)self, key);
}

static int assign(Users *self, PyObject *key, PyObject *value)
{
    (void)self;
    (void)key;
    (void)value;
    PyErr_SetString(PyExc_TypeError, "users is derived from the arguments of other nodes; assign "
                                     "their args instead");
    return -1;
}

static PyObject *compare(Users *self, PyObject *other, int op)
{
    return bring_up(self) < 0 ? NULL : PyDict_Type.tp_richcompare((PyObject *)self, other, op);
}

static PyObject *represent(Users *self)
{
    return bring_up(self) < 0 ? NULL : PyDict_Type.tp_repr((PyObject *)self);
}

/* Either side of `|` may be the users; the result is a plain dict. */
static PyObject *unite(PyObject *a, PyObject *b)
{
    PyObject *dict = PyDict_Check(a) && PyDict_Check(b) ? PyDict_New()
                                                        : Py_NewRef(Py_NotImplemented);
    if (dict && dict != Py_NotImplemented &&
        (PyDict_Update(dict, a) < 0 || PyDict_Update(dict, b) < 0))
        Py_CLEAR(dict);
    return dict;
}

static PyObject *refuse_unite(PyObject *self, PyObject *unused)
{
    (void)unused;
    assign((Users *)self, NULL, NULL);
    return NULL;
}

/* A plain dict with the same keys. */
static PyObject *snapshot(Users *self, PyObject *unused)
{
    (void)unused;
    return bring_up(self) < 0 ? NULL : PyDict_Copy((PyObject *)self);
}

/* Calls dict's method of the same name once the contents are up to date. */
static PyObject *view(Users *self, const char *method)
{
    if (bring_up(self) < 0)
        return NULL;
    PyObject *fn = PyObject_GetAttrString((PyObject *)&PyDict_Type, method);
    PyObject *result = fn ? PyObject_CallOneArg(fn, (PyObject *)self) : NULL;
    Py_XDECREF(fn);
    return result;
}

static PyObject *keys(Users *self, PyObject *unused)
{
    (void)unused;
    return view(self, "keys");
}

static PyObject *values(Users *self, PyObject *unused)
{
    (void)unused;
    return view(self, "values");
}

static PyObject *items(Users *self, PyObject *unused)
{
    (void)unused;
    return view(self, "items");
}

static PyObject *reversed(Users *self, PyObject *unused)
{
    (void)unused;
    return view(self, "__reversed__");
}

static PyObject *get(Users *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2)
        return PyErr_Format(PyExc_TypeError, "get expected 1 or 2 arguments, got %zd", nargs);
    if (contains(self, args[0]))
        Py_RETURN_NONE;
    return Py_NewRef(nargs == 2 ? args[1] : Py_None);
}

static PyObject *refuse(PyObject *self, PyObject *unused)
{
    (void)unused;
    assign((Users *)self, NULL, NULL);
    return NULL;
}

static PyObject *reduce(Users *self, PyObject *unused)
{
    PyObject *dict = snapshot(self, unused);
    return dict ? Py_BuildValue("(O(N))", (PyObject *)&PyDict_Type, dict) : NULL;
}

static int traverse(Users *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->node);
    return PyDict_Type.tp_traverse((PyObject *)self, visit, arg);
}

/* The node stays: its own clear drops this object, which ends the cycle. */
static int clear(Users *self) { return PyDict_Type.tp_clear((PyObject *)self); }

static void dealloc(Users *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyNode *node = self->node;
    PyObject_GC_UnTrack(self);
    self->node = NULL;
    PyDict_Type.tp_dealloc((PyObject *)self);
    Py_XDECREF((PyObject *)node);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"keys", (PyCFunction)keys, METH_NOARGS, NULL},
    {"values", (PyCFunction)values, METH_NOARGS, NULL},
    {"items", (PyCFunction)items, METH_NOARGS, NULL},
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, NULL},
    {"copy", (PyCFunction)snapshot, METH_NOARGS, NULL},
    {"__copy__", (PyCFunction)snapshot, METH_NOARGS, NULL},
    {"__reversed__", (PyCFunction)reversed, METH_NOARGS, NULL},
    {"__reduce__", (PyCFunction)reduce, METH_NOARGS, NULL},
    {"__reduce_ex__", (PyCFunction)reduce, METH_O, NULL},
    {"clear", refuse, METH_VARARGS, NULL},
    {"pop", refuse, METH_VARARGS, NULL},
    {"popitem", refuse, METH_VARARGS, NULL},
    {"setdefault", refuse, METH_VARARGS, NULL},
    {"update", refuse, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_iter, iterate},
    {Py_tp_repr, represent},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_methods, methods},
    {Py_mp_length, length},
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, assign},
    {Py_nb_or, unite},
    {Py_nb_inplace_or, refuse_unite},
    {Py_sq_contains, contains},
    {0, NULL},
};

PyType_Spec users_spec = {
    .name = "cfx.node.Users",
    .basicsize = sizeof(Users),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
