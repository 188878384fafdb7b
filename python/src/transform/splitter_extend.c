/* splitter_extend.c - Graph: who uses a call's value, fusions that are one, and extending a part of
 * the splitter. Parts are known by the attribute `tag` of their nodes. */
#include "graph/graph_methods.h"

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

/* The users of all nodes of the group that are outside of it. */
static PyObject *outer_users(PyObject *deps, PyObject *group)
{
    PyObject *users = PySet_New(NULL);
    PyObject *it = users ? PyObject_GetIter(group) : NULL;
    for (PyObject *node; it && (node = PyIter_Next(it)) != NULL; Py_DECREF(node)) {
        PyObject *mine = PyDict_GetItemWithError(deps, node);
        PyObject *done = mine ? PyObject_CallMethod(users, "update", "O", mine) : NULL;
        Py_XDECREF(done);
        if (PyErr_Occurred())
            Py_CLEAR(it);
    }
    Py_XDECREF(it);
    PyObject *outer = users && !PyErr_Occurred() ? PyNumber_Subtract(users, group) : NULL;
    Py_XDECREF(users);
    return outer;
}

/* {node: its group} */
static PyObject *groups_by_node(PyObject *groups)
{
    PyObject *by_node = PyDict_New();
    for (Py_ssize_t i = 0; by_node && i < PyList_GET_SIZE(groups); i++) {
        PyObject *nodes = PySequence_List(PyList_GET_ITEM(groups, i));
        int failed = nodes ? 0 : -1;
        for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(nodes); k++)
            failed = PyDict_SetItem(by_node, PyList_GET_ITEM(nodes, k), PyList_GET_ITEM(groups, i));
        Py_XDECREF(nodes);
        if (failed)
            Py_CLEAR(by_node);
    }
    return by_node;
}

/* The users with all of their groups, a new set; NULL without an exception if none has a group. */
static PyObject *with_groups(PyObject *users, PyObject *by_node)
{
    PyObject *all = NULL;
    PyObject *it = PyObject_GetIter(users);
    for (PyObject *user; it && (user = PyIter_Next(it)) != NULL; Py_DECREF(user)) {
        PyObject *group = PyDict_GetItemWithError(by_node, user);
        if (group && !all)
            all = PySet_New(users);
        PyObject *done = group && all ? PyObject_CallMethod(all, "update", "O", group) : NULL;
        Py_XDECREF(done);
        if (PyErr_Occurred())
            Py_CLEAR(it);
    }
    Py_XDECREF(it);
    if (PyErr_Occurred())
        Py_CLEAR(all);
    return all;
}

/* Who has one node of a group as a user has all of them. */
static int expand_users(PyObject *deps, PyObject *by_node)
{
    PyObject *nodes = PyDict_Keys(deps);
    int failed = nodes ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *node = PyList_GET_ITEM(nodes, i);
        PyObject *users = Py_XNewRef(PyDict_GetItemWithError(deps, node));
        PyObject *all = users ? with_groups(users, by_node) : NULL;
        failed = PyErr_Occurred() || (all && PyDict_SetItem(deps, node, all) < 0) ? -1 : 0;
        Py_XDECREF(all);
        Py_XDECREF(users);
    }
    Py_XDECREF(nodes);
    return failed;
}

PyObject *graph_fuse_users(PyGraph *self, PyObject *args)
{
    PyObject *deps, *groups;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!:_fuse_users", &PyDict_Type, &deps, &PyList_Type, &groups))
        return NULL;
    PyObject *by_node = groups_by_node(groups);
    int failed = by_node ? expand_users(deps, by_node) : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(groups); i++) {
        PyObject *group = Py_NewRef(PyList_GET_ITEM(groups, i));
        PyObject *outer = outer_users(deps, group);
        PyObject *nodes = outer ? PySequence_List(group) : NULL;
        failed = nodes ? 0 : -1;
        for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(nodes); k++)
            failed = PyDict_SetItem(deps, PyList_GET_ITEM(nodes, k), outer);
        Py_XDECREF(nodes);
        Py_XDECREF(outer);
        Py_DECREF(group);
    }
    Py_XDECREF(by_node);
    return failed ? NULL : Py_NewRef(Py_None);
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

typedef struct extend_job {
    PyGraph *self;
    PyObject *tag, *acc, *fusions, *deps;
    PyObject *parents;  /* all that was ever read from outside by a call of the part */
    PyObject *waiting;  /* {call: how many of its users are not in the part} */
    PyObject *givers;   /* {call: a list of the calls that wait for it} */
    PyObject *ready;    /* a list of calls to be taken into the part */
} extend_job;

static int append_to(PyObject *lists, PyObject *key, PyObject *item)
{
    PyObject *list = PyDict_GetItemWithError(lists, key);
    if (list)
        return PyList_Append(list, item);
    PyObject *fresh = PyErr_Occurred() ? NULL : Py_BuildValue("[O]", item);
    int failed = fresh ? PyDict_SetItem(lists, key, fresh) : -1;
    Py_XDECREF(fresh);
    return failed;
}

/* Whom the call waits for: its users with another tag. */
static int begin_waiting(extend_job *job, PyObject *node, PyObject *users)
{
    long n = 0;
    PyObject *list = PySequence_List(users);
    int failed = list ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(list); i++) {
        PyObject *user = PyList_GET_ITEM(list, i);
        int inside = has_tag(user, job->tag);
        failed = inside < 0 || (!inside && append_to(job->givers, user, node) < 0) ? -1 : 0;
        n += inside == 0;
    }
    PyObject *number = failed ? NULL : PyLong_FromLong(n);
    failed = number ? PyDict_SetItem(job->waiting, node, number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(list);
    return failed;
}

/* A call is ready that is accelerated, is read in the part, and that no user keeps outside. */
static int look_at(extend_job *job, PyObject *node)
{
    PyObject *left = PyDict_GetItemWithError(job->waiting, node);
    int acc = PyErr_Occurred() ? -1 : PySet_Contains(job->acc, node);
    int parent = acc > 0 ? PySet_Contains(job->parents, node) : acc;
    if (parent <= 0)
        return parent;
    return left && PyLong_AsLong(left) > 0 ? 0 : PyList_Append(job->ready, node);
}

static int let_go(extend_job *job, PyObject *node)
{
    PyObject *givers = PyDict_GetItemWithError(job->givers, node);
    for (Py_ssize_t i = 0; givers && i < PyList_GET_SIZE(givers); i++) {
        PyObject *giver = PyList_GET_ITEM(givers, i);
        PyObject *left = PyDict_GetItemWithError(job->waiting, giver);
        PyObject *fewer = left ? PyLong_FromLong(PyLong_AsLong(left) - 1) : NULL;
        int failed = fewer ? PyDict_SetItem(job->waiting, giver, fewer) : -1;
        Py_XDECREF(fewer);
        if (failed || look_at(job, giver) < 0)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Takes a call into the part, unless it is there. */
static int take(extend_job *job, PyObject *node)
{
    int inside = need_node(job->self, node) ? has_tag(node, job->tag) : -1;
    if (inside)
        return inside < 0 ? -1 : 0;
    PyObject *read = PySet_New(NULL);
    int failed = !read || PyObject_SetAttrString(node, "tag", job->tag) < 0 ||
                 add_parents(job->self, ((PyNode *)node)->n, job->tag, read) < 0 ||
                 let_go(job, node) < 0;
    PyObject *list = failed ? NULL : PySequence_List(read);
    for (Py_ssize_t i = 0; list && !failed && i < PyList_GET_SIZE(list); i++) {
        PyObject *def = PyList_GET_ITEM(list, i);
        failed = PySet_Add(job->parents, def) < 0 || look_at(job, def) < 0;
    }
    Py_XDECREF(list);
    Py_XDECREF(read);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int extend(extend_job *job)
{
    Py_ssize_t at = 0;
    PyObject *node, *users;
    PyObject *items = PyDict_Copy(job->deps);
    int failed = items ? 0 : -1;
    while (!failed && PyDict_Next(items, &at, &node, &users))
        failed = begin_waiting(job, node, users);
    Py_XDECREF(items);
    PyObject *first = failed ? NULL : PySequence_List(job->parents);
    failed = first ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(first); i++)
        failed = look_at(job, PyList_GET_ITEM(first, i));
    Py_XDECREF(first);
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(job->ready); i++) {
        node = PyList_GET_ITEM(job->ready, i);
        PyObject *group = PyDict_GetItemWithError(job->fusions, node);
        PyObject *nodes = group ? PySequence_List(group)
                                : PyErr_Occurred() ? NULL : Py_BuildValue("[O]", node);
        failed = nodes ? 0 : -1;
        for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(nodes); k++)
            failed = take(job, PyList_GET_ITEM(nodes, k));
        Py_XDECREF(nodes);
    }
    return failed;
}

PyObject *graph_extend_acc(PyGraph *self, PyObject *args)
{
    PyObject *work;
    extend_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "OOO!O!O!:_extend_acc", &job.tag, &work, &PySet_Type, &job.acc,
                          &PyDict_Type, &job.fusions, &PyDict_Type, &job.deps))
        return NULL;
    job.parents = PySet_New(work);
    job.waiting = PyDict_New();
    job.givers = PyDict_New();
    job.ready = PyList_New(0);
    cfx_iter here = hold(self->g);
    int failed = !job.parents || !job.waiting || !job.givers || !job.ready || extend(&job) < 0;
    cfx_iter_end(&here);
    Py_XDECREF(job.parents);
    Py_XDECREF(job.waiting);
    Py_XDECREF(job.givers);
    Py_XDECREF(job.ready);
    return failed ? NULL : Py_NewRef(Py_None);
}
