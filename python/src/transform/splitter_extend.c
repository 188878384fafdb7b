/* splitter_extend.c - Graph: who uses a call's value, fusions that are one, and extending a part of
 * the splitter. Parts are known by the attribute `tag` of their nodes. */
#include "graph/graph_methods.h"
#include "splitter.h"

/* ---- tags ---------------------------------------------------------------------------------- */

/* Whether node.tag is `tag`; -1 with an exception. */
static int has_tag(PyObject *node, PyObject *tag)
{
    PyObject *own = PyObject_GetAttrString(node, "tag");
    int same = own ? PyObject_RichCompareBool(own, tag, Py_EQ) : -1;
    Py_XDECREF(own);
    return same;
}

/* Whether the number at the end of node.tag ("_run_on_acc_3") is below `limit`. */
static int is_tagged_below(PyObject *node, PyObject *limit)
{
    PyObject *tag = PyObject_GetAttrString(node, "tag");
    PyObject *parts = tag ? PyObject_CallMethod(tag, "rsplit", "si", "_", 1) : NULL;
    PyObject *last = parts ? PySequence_GetItem(parts, PySequence_Size(parts) - 1) : NULL;
    PyObject *number = last ? PyNumber_Long(last) : NULL;
    int below = number ? PyObject_RichCompareBool(number, limit, Py_LT) : -1;
    Py_XDECREF(number);
    Py_XDECREF(last);
    Py_XDECREF(parts);
    Py_XDECREF(tag);
    return below;
}

/* ---- who uses a value ---------------------------------------------------------------------- */

/* The calls that use a value: a list, for looking at tags may run any code. */
static PyObject *list_users(PyGraph *self, const cfx_node *n)
{
    PyObject *users = PyList_New(0);
    const cfx_use *use = users ? cfx_node_first_use(n) : NULL;
    for (; users && use; use = cfx_use_next(use)) {
        PyObject *user = is_call(cfx_use_user(use)) ? node_wrap(self, cfx_use_user(use)) : NULL;
        if (user ? PyList_Append(users, user) < 0 : PyErr_Occurred() != NULL)
            Py_CLEAR(users);
        Py_XDECREF(user);
    }
    return users;
}

static PyObject *users_below(PyGraph *self, const cfx_node *n, PyObject *limit)
{
    PyObject *list = list_users(self, n);
    PyObject *users = list ? PySet_New(NULL) : NULL;
    for (Py_ssize_t i = 0; users && i < PyList_GET_SIZE(list); i++) {
        PyObject *user = PyList_GET_ITEM(list, i);
        int wanted = limit == Py_None ? 1 : is_tagged_below(user, limit);
        if (wanted < 0 || (wanted && PySet_Add(users, user) < 0))
            Py_CLEAR(users);
    }
    Py_XDECREF(list);
    return users;
}

PyObject *graph_reverse_deps(PyGraph *self, PyObject *limit)
{
    PyObject *all = PyDict_New();
    cfx_iter here = hold(self->g);
    for (cfx_node *n = cfx_graph_first(self->g); all && n; n = cfx_node_next(n)) {
        if (!is_call(n))
            continue;
        PyObject *users = users_below(self, n, limit);
        PyObject *node = users && PySet_GET_SIZE(users) > 0 ? node_wrap(self, n) : NULL;
        if (!users || (node && PyDict_SetItem(all, node, users) < 0) || PyErr_Occurred())
            Py_CLEAR(all);
        Py_XDECREF(node);
        Py_XDECREF(users);
    }
    cfx_iter_end(&here);
    return all;
}

typedef struct users_job {
    PyGraph *self;
    PyObject *fused;  /* a dict of sets */
} users_job;

static cfx_status add_user(void *ctx, cfx_node *node, cfx_node *user)
{
    const users_job *job = ctx;
    return add_to_set(job->self, job->fused, node, user) < 0 ? CFX_E_HOST : CFX_OK;
}

PyObject *graph_fuse_users(PyGraph *self, PyObject *args)
{
    PyObject *deps, *list;
    need_list users = {0};
    cfx_error err = {0};
    bool good = false;
    if (!PyArg_ParseTuple(args, "O!O!:_fuse_users", &PyDict_Type, &deps, &PyList_Type, &list))
        return NULL;
    users_job job = {self, PyDict_New()};
    uint32_t *groups = job.fused ? read_groups(self, list) : NULL;
    const uint64_t version = cfx_graph_version(self->g);
    if (groups && read_pairs(self, deps, &users) == 0 && is_unchanged(self, version) &&
        begin_sets(self, job.fused, groups) == 0) {
        good = cfx_graph_fuse_users(self->g, groups, users.pairs, users.n, add_user, &job, &err) ==
               CFX_OK;
        if (!good)
            raise_cfx(&err);
    }
    good = good && PyDict_Update(deps, job.fused) == 0;
    PyMem_Free(groups);
    PyMem_Free(users.pairs);
    Py_XDECREF(job.fused);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* ---- fusions that share a node ------------------------------------------------------------- */

/* Adds to `all` what is reached from `node` by way of groups. */
static int collect(PyObject *fusions, PyObject *node, PyObject *all)
{
    PyObject *work = PyList_New(0);
    int failed = !work || PyList_Append(work, node) < 0 || PySet_Add(all, node) < 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(work); i++) {
        PyObject *group = PyDict_GetItemWithError(fusions, PyList_GET_ITEM(work, i));
        PyObject *fresh = group ? PyNumber_Subtract(group, all) : NULL;
        PyObject *done = fresh ? PyObject_CallMethod(work, "extend", "O", fresh) : NULL;
        PyObject *more = done ? PyObject_CallMethod(all, "update", "O", fresh) : NULL;
        Py_XDECREF(more);
        Py_XDECREF(done);
        Py_XDECREF(fresh);
        failed = PyErr_Occurred() != NULL;
    }
    Py_XDECREF(work);
    return failed ? -1 : 0;
}

/* Whether every member of the group has it as its group. */
static int is_alone(PyObject *fusions, PyObject *group)
{
    PyObject *nodes = PySequence_List(group);
    int alone = nodes ? 1 : -1;
    for (Py_ssize_t i = 0; alone > 0 && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *other = PyDict_GetItemWithError(fusions, PyList_GET_ITEM(nodes, i));
        alone = PyErr_Occurred() ? -1 : other == group;
    }
    Py_XDECREF(nodes);
    return alone;
}

/* Users of a node that is in a group, but not a key, are found as soon as one of the members is. */
PyObject *graph_merge_groups(PyGraph *self, PyObject *fusions)
{
    (void)self;
    if (!PyDict_Check(fusions))
        return PyErr_Format(PyExc_TypeError, "expected a dict, got %R", Py_TYPE(fusions));
    PyObject *keys = PyDict_Keys(fusions);
    PyObject *checked = PySet_New(NULL);  /* keys whose groups are done */
    int failed = keys && checked ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        int known = PySet_Contains(checked, key);
        PyObject *group = known == 0 ? Py_XNewRef(PyDict_GetItemWithError(fusions, key)) : NULL;
        int alone = known ? known : group ? is_alone(fusions, group) : -1;
        if (alone == 0) {
            Py_SETREF(group, PySet_New(NULL));
            failed = !group || collect(fusions, key, group) < 0;
            PyObject *nodes = failed ? NULL : PySequence_List(group);
            for (Py_ssize_t k = 0; nodes && !failed && k < PyList_GET_SIZE(nodes); k++)
                failed = PyDict_SetItem(fusions, PyList_GET_ITEM(nodes, k), group);
            failed = failed || !nodes;
            Py_XDECREF(nodes);
        }
        PyObject *done = group && !failed && alone >= 0
                             ? PyObject_CallMethod(checked, "update", "O", group) : NULL;
        failed = failed || alone < 0 || PyErr_Occurred();
        Py_XDECREF(done);
        Py_XDECREF(group);
    }
    Py_XDECREF(keys);
    Py_XDECREF(checked);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---- extending a part ---------------------------------------------------------------------- */

/* Adds the calls that `n` reads and that have another tag. */
static int add_parents(PyGraph *self, const cfx_node *n, PyObject *tag, PyObject *parents)
{
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++) {
        if (!is_call(cfx_node_input(n, i)))
            continue;
        PyObject *def = node_wrap(self, cfx_node_input(n, i));
        int inside = def ? has_tag(def, tag) : -1;
        int failed = inside < 0 || (!inside && PySet_Add(parents, def) < 0);
        Py_XDECREF(def);
        if (failed)
            return -1;
    }
    return 0;
}

PyObject *graph_parents_of(PyGraph *self, PyObject *tag)
{
    PyObject *parents = PySet_New(NULL);
    cfx_iter here = hold(self->g);
    for (cfx_node *n = cfx_graph_first(self->g); parents && n; n = cfx_node_next(n)) {
        PyObject *node = is_call(n) ? node_wrap(self, n) : NULL;
        int inside = node ? has_tag(node, tag) : 0;
        if (PyErr_Occurred() || (inside > 0 && add_parents(self, n, tag, parents) < 0))
            Py_CLEAR(parents);
        Py_XDECREF(node);
    }
    cfx_iter_end(&here);
    return parents;
}

/* Which calls have the tag: an array to be freed with PyMem_Free; NULL with an exception. */
static bool *read_inside(PyGraph *self, PyObject *tag)
{
    size_t i = 0;
    int failed = 0;
    bool *inside = PyMem_New(bool, cfx_graph_size(self->g) + 1);
    if (!inside)
        return PyErr_NoMemory(), NULL;
    cfx_iter here = hold(self->g);
    const uint64_t version = cfx_graph_version(self->g);
    for (cfx_node *n = cfx_graph_first(self->g); !failed && n; n = cfx_node_next(n), i++) {
        PyObject *node = is_call(n) ? node_wrap(self, n) : NULL;
        int has = node ? has_tag(node, tag) : 0;
        Py_XDECREF(node);
        inside[i] = has > 0;
        failed = PyErr_Occurred() != NULL;
        if (!failed && cfx_graph_version(self->g) != version) {
            PyErr_SetString(PyExc_RuntimeError, "the graph was changed while tags were compared");
            failed = true;
        }
    }
    cfx_iter_end(&here);
    if (failed)
        PyMem_Free(inside);
    return failed ? NULL : inside;
}

/* Gives the tag to the nodes that came into the part. */
static int tag_new(PyGraph *self, PyObject *tag, const bool *inside, const bool *before)
{
    size_t i = 0, n = 0;
    int failed = 0;
    cfx_node **nodes = PyMem_New(cfx_node *, cfx_graph_size(self->g) + 1);
    for (cfx_node *node = cfx_graph_first(self->g); nodes && node; node = cfx_node_next(node), i++)
        if (inside[i] && !before[i])
            nodes[n++] = node;
    PyObject *list = nodes ? list_nodes(self, nodes, n) : PyErr_NoMemory();
    for (i = 0; list && !failed && i < n; i++)
        failed = PyObject_SetAttrString(PyList_GET_ITEM(list, (Py_ssize_t)i), "tag", tag);
    PyMem_Free(nodes);
    Py_XDECREF(list);
    return list ? failed : -1;
}

PyObject *graph_extend_acc(PyGraph *self, PyObject *args)
{
    PyObject *tag, *parents, *acc, *list, *deps;
    need_list users = {0};
    cfx_error err = {0};
    bool good = false;
    if (!PyArg_ParseTuple(args, "OOO!O!O!:_extend_acc", &tag, &parents, &PySet_Type, &acc,
                          &PyList_Type, &list, &PyDict_Type, &deps))
        return NULL;
    const uint64_t version = cfx_graph_version(self->g);
    bool *before = read_inside(self, tag);
    bool *inside = before ? read_inside(self, tag) : NULL;
    unsigned char *flags = inside ? read_acc(self, acc, NULL, false) : NULL;
    uint32_t *groups = flags ? read_groups(self, list) : NULL;
    PyObject *read = groups ? PySequence_List(parents) : NULL;
    cfx_node **from = read ? read_nodes(self, read) : NULL;
    if (from && read_pairs(self, deps, &users) == 0 && is_unchanged(self, version)) {
        good = cfx_graph_extend_acc(self->g, flags, groups, users.pairs, users.n, from,
                                    (size_t)PyList_GET_SIZE(read), inside, &err) == CFX_OK;
        if (!good)
            raise_cfx(&err);
    }
    good = good && tag_new(self, tag, inside, before) == 0;
    PyMem_Free(before);
    PyMem_Free(inside);
    PyMem_Free(flags);
    PyMem_Free(groups);
    PyMem_Free(from);
    PyMem_Free(users.pairs);
    Py_XDECREF(read);
    return good ? Py_NewRef(Py_None) : NULL;
}
