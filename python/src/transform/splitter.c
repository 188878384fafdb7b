/* splitter.c - Graph: the walks of the splitter, over the sets and dicts that its users see. */
#include "graph/graph_methods.h"

#include <cfx/embed/partition.h>

/* Whether the value of a node is a tensor, if `is_tensor` can tell without changing the graph, as
 * that is being walked: else -1 with an exception. */
static int ask(PyGraph *self, PyObject *is_tensor, PyObject *node)
{
    const uint64_t version = cfx_graph_version(self->g);
    PyObject *answer = PyObject_CallOneArg(is_tensor, node);
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (yes < 0 || cfx_graph_version(self->g) == version)
        return yes;
    PyErr_SetString(PyExc_RuntimeError, "the graph was changed while it was asked which of its "
                    "nodes give tensors");
    return -1;
}

static int has(PyGraph *self, PyObject *set, cfx_node *n)
{
    PyObject *node = node_wrap(self, n);
    int member = node ? PySet_Contains(set, node) : -1;
    Py_XDECREF(node);
    return member;
}

/* ---- which calls need which ---------------------------------------------------------------- */

static PyObject *deps_of(PyGraph *self, const cfx_node *n)
{
    PyObject *deps = PySet_New(NULL);
    for (size_t i = 0; deps && i < cfx_node_num_inputs(n); i++) {
        PyObject *def = is_call(cfx_node_input(n, i)) ? node_wrap(self, cfx_node_input(n, i))
                                                      : NULL;
        if (def ? PySet_Add(deps, def) < 0 : PyErr_Occurred() != NULL)
            Py_CLEAR(deps);
        Py_XDECREF(def);
    }
    return deps;
}

PyObject *graph_deps(PyGraph *self, PyObject *unused)
{
    (void)unused;
    PyObject *all = PyDict_New();
    for (cfx_node *n = cfx_graph_first(self->g); all && n; n = cfx_node_next(n)) {
        if (!is_call(n))
            continue;
        PyObject *deps = deps_of(self, n);
        PyObject *node = deps && PySet_GET_SIZE(deps) > 0 ? node_wrap(self, n) : NULL;
        if (!deps || (node && PyDict_SetItem(all, node, deps) < 0) || PyErr_Occurred())
            Py_CLEAR(all);
        Py_XDECREF(node);
        Py_XDECREF(deps);
    }
    return all;
}

/* deps[node] |= more, without `node` itself. */
static int add_deps(PyObject *deps, PyObject *node, PyObject *more)
{
    PyObject *old = PyDict_GetItemWithError(deps, node);
    if (!old && PyErr_Occurred())
        return -1;
    PyObject *merged = old ? Py_NewRef(old) : PySet_New(NULL);
    PyObject *done = merged ? PyObject_CallMethod(merged, "update", "O", more) : NULL;
    int failed = done && PySet_Discard(merged, node) >= 0 ? PyDict_SetItem(deps, node, merged)
                                                          : -1;
    Py_XDECREF(done);
    Py_XDECREF(merged);
    return failed;
}

/* What the group needs from outside, and who outside needs it. */
static int look_around(PyGraph *self, PyObject *deps, PyObject *group, PyObject *needs,
                       PyObject *users)
{
    PyObject *it = PyObject_GetIter(group);
    PyObject *node = NULL;
    int failed = it ? 0 : -1;
    while (!failed && (node = PyIter_Next(it)) != NULL) {
        PyObject *mine = need_node(self, node) ? PyDict_GetItemWithError(deps, node) : NULL;
        PyObject *outer = mine ? PyNumber_Subtract(mine, group) : NULL;
        PyObject *done = outer ? PyObject_CallMethod(needs, "update", "O", outer) : NULL;
        failed = PyErr_Occurred() ? -1 : 0;
        const cfx_use *use = failed ? NULL : cfx_node_first_use(((PyNode *)node)->n);
        for (; !failed && use; use = cfx_use_next(use)) {
            PyObject *user = is_call(cfx_use_user(use)) ? node_wrap(self, cfx_use_user(use)) : NULL;
            int inside = user ? PySet_Contains(group, user) : 1;
            failed = inside < 0 || (inside == 0 && PySet_Add(users, user) < 0) ? -1 : 0;
            Py_XDECREF(user);
        }
        Py_XDECREF(done);
        Py_XDECREF(outer);
        Py_DECREF(node);
    }
    Py_XDECREF(it);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int add_deps_of_all(PyObject *deps, PyObject *nodes, PyObject *more)
{
    PyObject *list = PySequence_List(nodes);
    int failed = list ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(list); i++)
        failed = add_deps(deps, PyList_GET_ITEM(list, i), more);
    Py_XDECREF(list);
    return failed;
}

PyObject *graph_fuse_deps(PyGraph *self, PyObject *args)
{
    PyObject *deps, *groups;
    int failed = 0;
    if (!PyArg_ParseTuple(args, "O!O!:_fuse_deps", &PyDict_Type, &deps, &PyList_Type, &groups))
        return NULL;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(groups); i++) {
        PyObject *group = Py_NewRef(PyList_GET_ITEM(groups, i));
        PyObject *needs = PySet_New(NULL);
        PyObject *users = PySet_New(NULL);
        failed = !needs || !users || look_around(self, deps, group, needs, users) < 0 ||
                 add_deps_of_all(deps, group, needs) < 0 || add_deps_of_all(deps, users, group) < 0;
        Py_XDECREF(needs);
        Py_XDECREF(users);
        Py_DECREF(group);
    }
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---- subgraphs in turn --------------------------------------------------------------------- */

typedef struct turns_job {
    PyGraph *self;
    PyObject *acc;
    PyObject *calls;     /* a list, in their order */
    PyObject *numbers;   /* {call: its number} */
    PyObject *users;     /* a list of lists of numbers: who needs a call */
    Py_ssize_t *missing; /* by number: how many calls it still waits for */
    PyObject *ready[2];  /* lists of calls that can run: others, accelerated */
    PyObject *answer;
} turns_job;

static int make_ready(turns_job *job, Py_ssize_t number)
{
    PyObject *node = PyList_GET_ITEM(job->calls, number);
    int acc = PySet_Contains(job->acc, node);
    return acc < 0 ? -1 : PyList_Append(job->ready[acc], node);
}

static int number_calls(turns_job *job)
{
    for (cfx_node *n = cfx_graph_first(job->self->g); n; n = cfx_node_next(n)) {
        if (!is_call(n))
            continue;
        PyObject *node = node_wrap(job->self, n);
        PyObject *number = node ? PyLong_FromSsize_t(PyList_GET_SIZE(job->calls)) : NULL;
        PyObject *users = number ? PyList_New(0) : NULL;
        int failed = !users || PyList_Append(job->calls, node) < 0 ||
                     PyDict_SetItem(job->numbers, node, number) < 0 ||
                     PyList_Append(job->users, users) < 0;
        Py_XDECREF(users);
        Py_XDECREF(number);
        Py_XDECREF(node);
        if (failed)
            return -1;
    }
    return 0;
}

static int wait_for(turns_job *job, Py_ssize_t number, PyObject *deps)
{
    PyObject *it = PyObject_GetIter(deps);
    PyObject *me = it ? PyLong_FromSsize_t(number) : NULL;
    int failed = me ? 0 : -1;
    for (PyObject *dep; !failed && (dep = PyIter_Next(it)) != NULL; Py_DECREF(dep)) {
        PyObject *other = PyDict_GetItemWithError(job->numbers, dep);
        if (other) {
            failed = PyList_Append(PyList_GET_ITEM(job->users, PyLong_AsSsize_t(other)), me);
            job->missing[number]++;
        }
    }
    Py_XDECREF(me);
    Py_XDECREF(it);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int begin_turns(turns_job *job, PyObject *deps)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(job->calls); i++) {
        PyObject *mine = PyDict_GetItemWithError(deps, PyList_GET_ITEM(job->calls, i));
        if (mine ? wait_for(job, i, mine) < 0 : PyErr_Occurred() != NULL)
            return -1;
        if (job->missing[i] == 0 && make_ready(job, i) < 0)
            return -1;
    }
    return 0;
}

/* All that can run now of one kind, and what can run then. */
static int take_turn(turns_job *job, int acc)
{
    PyObject *run = job->ready[acc];
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(run); i++) {
        PyObject *number = PyDict_GetItemWithError(job->numbers, PyList_GET_ITEM(run, i));
        PyObject *users = PyList_GET_ITEM(job->users, PyLong_AsSsize_t(number));
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(users); k++) {
            Py_ssize_t user = PyLong_AsSsize_t(PyList_GET_ITEM(users, k));
            if (--job->missing[user] == 0 && make_ready(job, user) < 0)
                return -1;
        }
    }
    PyObject *turn = Py_BuildValue("(NO)", PyBool_FromLong(acc), run);
    int failed = turn ? PyList_Append(job->answer, turn) : -1;
    Py_XDECREF(turn);
    Py_SETREF(job->ready[acc], PyList_New(0));
    return failed || !job->ready[acc] ? -1 : 0;
}

static int take_turns(turns_job *job)
{
    Py_ssize_t done = 0;
    for (int acc = PyList_GET_SIZE(job->ready[0]) == 0; PyList_GET_SIZE(job->ready[acc]) > 0;
         acc = !acc) {
        if (take_turn(job, acc) < 0)
            return -1;
        PyObject *turn = PyList_GET_ITEM(job->answer, PyList_GET_SIZE(job->answer) - 1);
        done += PyList_GET_SIZE(PyTuple_GET_ITEM(turn, 1));
    }
    if (done < PyList_GET_SIZE(job->calls))
        Py_SETREF(job->answer, Py_NewRef(Py_None));
    return 0;
}

PyObject *graph_acc_groups(PyGraph *self, PyObject *args)
{
    PyObject *deps;
    turns_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "O!O!:_acc_groups", &PyDict_Type, &deps, &PySet_Type, &job.acc))
        return NULL;
    job.calls = PyList_New(0);
    job.numbers = PyDict_New();
    job.users = PyList_New(0);
    job.ready[0] = PyList_New(0);
    job.ready[1] = PyList_New(0);
    job.answer = PyList_New(0);
    job.missing = PyMem_Calloc(cfx_graph_size(self->g) + 1, sizeof *job.missing);
    if (!job.missing)
        PyErr_NoMemory();
    if (!job.missing || !job.calls || !job.numbers || !job.users || !job.ready[0] ||
        !job.ready[1] || !job.answer || number_calls(&job) < 0 || begin_turns(&job, deps) < 0 ||
        take_turns(&job) < 0)
        Py_CLEAR(job.answer);
    PyMem_Free(job.missing);
    Py_XDECREF(job.calls);
    Py_XDECREF(job.numbers);
    Py_XDECREF(job.users);
    Py_XDECREF(job.ready[0]);
    Py_XDECREF(job.ready[1]);
    return job.answer;
}

/* ---- values that are no tensors ------------------------------------------------------------ */

typedef struct drop_job {
    PyGraph *self;
    PyObject *acc, *is_tensor;
    PyObject *work;     /* nodes outside whose values are no tensors: their users are dropped */
    PyObject *dropped;
    bool both_ways;     /* also who gives such values to nodes outside */
} drop_job;

static int drop_giver(drop_job *job, cfx_node *n);

static int drop(drop_job *job, PyObject *node)
{
    cfx_node *n = ((PyNode *)node)->n;
    int tensor = PySet_Discard(job->acc, node) < 0 || PyList_Append(job->dropped, node) < 0
                     ? -1 : ask(job->self, job->is_tensor, node);
    if (tensor == 0 && PyList_Append(job->work, node) < 0)
        return -1;
    for (size_t i = 0; tensor >= 0 && job->both_ways && i < cfx_node_num_inputs(n); i++)
        if (drop_giver(job, cfx_node_input(n, i)) < 0)
            return -1;
    return tensor < 0 ? -1 : 0;
}

/* `n` has a user outside. What it gets from others is looked at when its turn in `work` comes: not
 * here, for that would go as deep as the graph. */
static int drop_giver(drop_job *job, cfx_node *n)
{
    PyObject *node = node_wrap(job->self, n);
    int acc = node ? PySet_Contains(job->acc, node) : -1;
    int tensor = acc > 0 ? ask(job->self, job->is_tensor, node) : 1;
    int failed = acc < 0 || tensor < 0;
    if (acc > 0 && tensor == 0)
        failed = PySet_Discard(job->acc, node) < 0 || PyList_Append(job->dropped, node) < 0 ||
                 PyList_Append(job->work, node) < 0;
    Py_XDECREF(node);
    return failed ? -1 : 0;
}

static int drop_users(drop_job *job, PyObject *node)
{
    cfx_node *n = ((PyNode *)node)->n;
    for (size_t i = 0; job->both_ways && i < cfx_node_num_inputs(n); i++)
        if (drop_giver(job, cfx_node_input(n, i)) < 0)
            return -1;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        PyObject *user = node_wrap(job->self, cfx_use_user(use));
        int acc = user ? PySet_Contains(job->acc, user) : -1;
        int failed = acc < 0 || (acc > 0 && drop(job, user) < 0);
        Py_XDECREF(user);
        if (failed)
            return -1;
    }
    return 0;
}

/* All calls outside whose values are no tensors; or who gives such values to nodes outside. */
static int find_work(drop_job *job)
{
    for (cfx_node *n = cfx_graph_first(job->self->g); n; n = cfx_node_next(n)) {
        int inside = has(job->self, job->acc, n);
        if (inside < 0)
            return -1;
        if (inside)
            continue;
        for (size_t i = 0; job->both_ways && i < cfx_node_num_inputs(n); i++)
            if (drop_giver(job, cfx_node_input(n, i)) < 0)
                return -1;
        if (job->both_ways || !is_call(n))
            continue;
        PyObject *node = node_wrap(job->self, n);
        int tensor = node ? ask(job->self, job->is_tensor, node) : -1;
        int failed = tensor < 0 || (tensor == 0 && PyList_Append(job->work, node) < 0);
        Py_XDECREF(node);
        if (failed)
            return -1;
    }
    return 0;
}

PyObject *graph_drop_acc(PyGraph *self, PyObject *args)
{
    PyObject *work;
    drop_job job = {.self = self};
    if (!PyArg_ParseTuple(args, "O!OO:_drop_acc", &PySet_Type, &job.acc, &job.is_tensor, &work))
        return NULL;
    cfx_iter here = hold(self->g);
    job.both_ways = work == Py_False;
    job.dropped = PyList_New(0);
    job.work = work == Py_None || work == Py_False ? PyList_New(0) : PySequence_List(work);
    bool good = job.dropped && job.work;
    if (good && (work == Py_None || work == Py_False))
        good = find_work(&job) == 0;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(job.work); i++) {
        PyObject *node = PyList_GET_ITEM(job.work, i);
        good = need_node(self, node) && drop_users(&job, node) == 0;
    }
    cfx_iter_end(&here);
    Py_XDECREF(job.work);
    if (!good)
        Py_CLEAR(job.dropped);
    return job.dropped;
}

/* ---- groups that must stay together -------------------------------------------------------- */

static int read_flags(PyGraph *self, PyObject *acc, PyObject *is_tensor, unsigned char *flags)
{
    size_t i = 0;
    for (cfx_node *n = cfx_graph_first(self->g); n; n = cfx_node_next(n), i++) {
        PyObject *node = node_wrap(self, n);
        int inside = node ? PySet_Contains(acc, node) : -1;
        int tensor = inside > 0 ? ask(self, is_tensor, node) : inside;
        Py_XDECREF(node);
        if (tensor < 0)
            return -1;
        flags[i] =
            (unsigned char)((inside ? CFX_FUSION_ACC : 0) | (tensor ? CFX_FUSION_TENSOR : 0));
    }
    return 0;
}

static PyObject *sets_of_groups(PyGraph *self, const uint32_t *groups, size_t n)
{
    PyObject *sets = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; sets && i < n; i++) {
        PyObject *set = PySet_New(NULL);
        if (set)
            PyList_SET_ITEM(sets, (Py_ssize_t)i, set);
        else
            Py_CLEAR(sets);
    }
    size_t i = 0;
    for (cfx_node *node = cfx_graph_first(self->g); sets && node; node = cfx_node_next(node), i++) {
        if (groups[i] == CFX_NO_PART)
            continue;
        PyObject *member = node_wrap(self, node);
        if (!member || PySet_Add(PyList_GET_ITEM(sets, groups[i]), member) < 0)
            Py_CLEAR(sets);
        Py_XDECREF(member);
    }
    return sets;
}

PyObject *graph_fusion_groups(PyGraph *self, PyObject *args)
{
    cfx_error err = {0};
    PyObject *acc, *is_tensor, *answer = NULL;
    size_t n;
    const size_t size = cfx_graph_size(self->g);
    if (!PyArg_ParseTuple(args, "O!O:_fusion_groups", &PySet_Type, &acc, &is_tensor))
        return NULL;
    unsigned char *flags = PyMem_Malloc(size + 1);
    uint32_t *groups = PyMem_Malloc((size + 1) * sizeof *groups);
    if (!flags || !groups)
        PyErr_NoMemory();
    else if (read_flags(self, acc, is_tensor, flags) == 0) {
        if (cfx_graph_fusion_groups(self->g, flags, groups, &n, &err) == CFX_OK)
            answer = sets_of_groups(self, groups, n);
        else
            raise_cfx(&err);
    }
    PyMem_Free(flags);
    PyMem_Free(groups);
    return answer;
}
