/* node_uses.c - Node: users, inputs, replacing uses. */
#include "node_methods.h"

PyObject *users_of(PyNode *self)
{
    PyObject *users = self->users ? NULL : users_new(self);
    if (users && !self->users)
        self->users = users;
    else
        Py_XDECREF(users);
    return Py_XNewRef(self->users);
}

PyObject *node_get_users(PyNode *self, void *unused)
{
    (void)unused;
    return users_of(self);
}

PyObject *node_get_inputs(PyNode *self, void *unused)
{
    (void)unused;
    PyGraph *graph = node_graph(self);
    size_t n = cfx_node_num_inputs(self->n);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *input = node_wrap(graph, cfx_node_input(self->n, i));
        if (!input)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, input);
    }
    return list;
}

PyObject *node_get_input_dict(PyNode *self, void *unused)
{
    PyObject *list = node_get_inputs(self, unused);
    PyObject *dict = list ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < PyList_GET_SIZE(list); i++)
        if (PyDict_SetItem(dict, PyList_GET_ITEM(list, i), Py_None) < 0)
            Py_CLEAR(dict);
    Py_XDECREF(list);
    return dict;
}

typedef struct replace_job {
    PyNode *old;
    PyObject *with;
    PyObject *filter;   /* or NULL */
    PyObject *changed;  /* list */
} replace_job;

static int replace_filter(void *ctx, cfx_node *user)
{
    replace_job *job = ctx;
    PyGraph *graph = node_graph(job->old);
    int yes = 1;
    PyObject *node = node_wrap(graph, user);
    if (!node)
        return -1;
    if (job->filter) {
        PyObject *answer = PyObject_CallOneArg(job->filter, node);
        yes = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
    }
    Py_DECREF(node);
    return yes;
}

static void replace_changed(void *ctx, cfx_node *user)
{
    replace_job *job = ctx;
    PyObject *node = node_wrap(node_graph(job->old), user);
    if (node && PyList_Append(job->changed, node) < 0)
        PyErr_Clear();  /* the edit is done; a list that lacks an entry is all that is lost */
    Py_XDECREF(node);
}

/* Whether `with` can be given the metadata of the node it replaces. */
static int check_propagate(const PyNode *self, PyObject *with)
{
    if (!is_node(node_state(self), with)) {
        PyErr_SetString(PyExc_TypeError, "propagate_meta=True needs a Node as replacement");
        return -1;
    }
    const PyNode *other = (PyNode *)with;
    if (!other->meta || PyDict_GET_SIZE(other->meta) == 0)
        return 0;
    PyErr_SetString(PyExc_AssertionError,
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys");
    return -1;
}

static int propagate(const PyNode *self, PyObject *with)
{
    PyObject *meta = self->meta ? node_get_meta((PyNode *)with, NULL) : NULL;
    int failed = meta ? PyDict_Update(meta, self->meta) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(meta);
    return failed;
}

static cfx_status replace_held(PyGraph *graph, replace_job *job, cfx_error *err)
{
    cfx_value with = value_from_py(graph, job->with);
    if (with.kind == CFX_KIND_INVALID)
        return CFX_E_HOST;
    with = cfx_value_retain(with);
    cfx_status status = cfx_node_replace_uses(job->old->n, with,
                                              job->filter ? replace_filter : NULL,
                                              replace_changed, job, err);
    cfx_value_release(graph->g, with);
    return status;
}

PyObject *node_replace_all_uses_with(FAST_ARGS)
{
    static const char *const names[] = {"replace_with", "delete_user_cb", "propagate_meta"};
    static const arg_spec spec = {"replace_all_uses_with", names, 3, 1, 2};
    cfx_error err = {0};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    int meta = in[2] ? PyObject_IsTrue(in[2]) : 0;
    if (meta < 0 || (meta && check_propagate(self, in[0]) < 0))
        return NULL;
    PyGraph *graph = node_graph(self);
    replace_job job = {self, in[0], in[1] == Py_None ? NULL : in[1], PyList_New(0)};
    if (!job.changed)
        return NULL;
    cfx_iter pin = hold(graph->g);
    cfx_status status = replace_held(graph, &job, &err);
    cfx_iter_end(&pin);
    if (status == CFX_OK && !PyErr_Occurred() && (!meta || propagate(self, in[0]) == 0))
        return job.changed;
    Py_DECREF(job.changed);
    return raise_cfx(&err);
}

PyObject *node_replace_input_with(FAST_ARGS)
{
    static const char *const names[] = {"old_input", "new_input"};
    static const arg_spec spec = {"replace_input_with", names, 2, 2, 2};
    cfx_error err = {0};
    PyObject *in[2];
    PyGraph *graph = node_graph(self);
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    if (!is_node(graph->st, in[0]))
        return PyErr_Format(PyExc_TypeError, "old_input must be a Node, got %R",
                            (PyObject *)Py_TYPE(in[0]));
    cfx_iter pin = hold(graph->g);
    cfx_value with = value_from_py(graph, in[1]);
    if (with.kind != CFX_KIND_INVALID) {
        with = cfx_value_retain(with);
        if (cfx_node_replace_input(self->n, ((PyNode *)in[0])->n, with, &err) != CFX_OK)
            raise_cfx(&err);
        cfx_value_release(graph->g, with);
    }
    cfx_iter_end(&pin);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
