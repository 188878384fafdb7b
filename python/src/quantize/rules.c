/* rules.c - cfx._core.Rules: which configuration a node has. Configurations are Python objects,
 * with the two specs that they stand for. */
#include "quantize/quantizing.h"

typedef struct PyRules {
    PyObject_HEAD
    cfx_qrules *r;
    PyObject *match;    /* match(regex, name): whether it does */
    PyObject *configs;  /* a list: what rules point to */
} PyRules;

/* Python's own regular expressions decide. */
static cfx_status match(void *ctx, const char *regex, const char *name, bool *matches,
                        cfx_error *err)
{
    PyRules *self = ctx;
    PyObject *answer = PyObject_CallFunction(self->match, "ss", regex, name);
    const int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    *matches = yes > 0;
    return yes >= 0 ? CFX_OK : cfx_error_set(err, CFX_E_HOST, "a regular expression failed");
}

static PyObject *rules_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    cfx_error err = {0};
    PyObject *matcher;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O:Rules", &matcher))
        return NULL;
    PyRules *self = (PyRules *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->match = Py_NewRef(matcher);
    self->configs = PyList_New(0);
    self->r = self->configs ? cfx_qrules_new(NULL, &err) : NULL;
    if (self->r && cfx_qrules_set_matcher(self->r, match, self, &err) == CFX_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_cfx(&err);
}

static int rules_traverse(PyRules *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->match);
    Py_VISIT(self->configs);
    return 0;
}

static int rules_clear(PyRules *self)
{
    Py_CLEAR(self->match);
    Py_CLEAR(self->configs);
    return 0;
}

static void rules_dealloc(PyRules *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    rules_clear(self);
    cfx_qrules_free(self->r);
    type->tp_free(self);
    Py_DECREF(type);
}

const cfx_qrules *rules_from_py(module_state *st, PyObject *rules)
{
    if (PyObject_TypeCheck(rules, (PyTypeObject *)st->RulesType))
        return ((PyRules *)rules)->r;
    PyErr_Format(PyExc_TypeError, "expected Rules, not %.100s", Py_TYPE(rules)->tp_name);
    return NULL;
}

/* ---- setting ------------------------------------------------------------------------------- */

/* Reads (object, activation, weight); None is float. *config points to `room`, or is NULL. */
static bool config_from_py(PyRules *self, PyObject *o, cfx_qconfig *room,
                           const cfx_qconfig **config)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *host, *activation, *weight;
    *config = NULL;
    if (o == Py_None)
        return true;
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "a configuration is (object, activation, weight) or None");
        return false;
    }
    if (!PyArg_ParseTuple(o, "OOO:Rules", &host, &activation, &weight) ||
        !spec_from_py(st, activation, &room->activation) ||
        !spec_from_py(st, weight, &room->weight) || PyList_Append(self->configs, host) < 0)
        return false;
    room->host = host;
    *config = room;
    return true;
}

PyObject *type_name(module_state *st, PyObject *o)
{
    if (PyUnicode_Check(o))
        return Py_NewRef(o);
    if (PyType_Check(o))
        return module_class_name(o);
    PyObject *name = object_name(st, o);
    if (name ? name != Py_None : !PyErr_ExceptionMatches(PyExc_AttributeError))
        return name;
    PyErr_Clear();  /* what has no __name__ has none of its own */
    Py_XDECREF(name);
    return PyErr_Format(PyExc_TypeError, "%R has no name by which a node could be told to call it; "
                        "use a function of a module, or a rule for module names", o);
}

static PyObject *done(cfx_status status, const cfx_error *err)
{
    return status == CFX_OK ? Py_NewRef(Py_None) : raise_cfx(err);
}

static PyObject *rules_set_global(PyRules *self, PyObject *o)
{
    cfx_error err = {0};
    cfx_qconfig room;
    const cfx_qconfig *config;
    if (!config_from_py(self, o, &room, &config))
        return NULL;
    return done(cfx_qrules_set_global(self->r, config, &err), &err);
}

static PyObject *rules_set_type(PyRules *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_qconfig room;
    const cfx_qconfig *config;
    PyObject *type, *o;
    if (!PyArg_ParseTuple(args, "OO:set_type", &type, &o) ||
        !config_from_py(self, o, &room, &config))
        return NULL;
    PyObject *keep = NULL;
    PyObject *name = type_name(state_of(Py_TYPE(self)), type);
    const char *text = name ? c_string_of(name, "the name of a type", &keep) : NULL;
    PyObject *result = text ? done(cfx_qrules_set_type(self->r, text, config, &err), &err) : NULL;
    Py_XDECREF(keep);
    Py_XDECREF(name);
    return result;
}

static PyObject *rules_set_name(PyRules *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_qconfig room;
    const cfx_qconfig *config;
    const char *name;
    PyObject *o;
    if (!PyArg_ParseTuple(args, "sO:set_name", &name, &o) ||
        !config_from_py(self, o, &room, &config))
        return NULL;
    return done(cfx_qrules_set_name(self->r, name, config, &err), &err);
}

static PyObject *rules_set_regex(PyRules *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_qconfig room;
    const cfx_qconfig *config;
    const char *regex;
    PyObject *o;
    if (!PyArg_ParseTuple(args, "sO:set_regex", &regex, &o) ||
        !config_from_py(self, o, &room, &config))
        return NULL;
    return done(cfx_qrules_set_regex(self->r, regex, config, &err), &err);
}

static PyObject *rules_set_order(PyRules *self, PyObject *args)
{
    cfx_error err = {0};
    cfx_qconfig room;
    const cfx_qconfig *config;
    const char *path;
    Py_ssize_t index;
    PyObject *type, *o;
    if (!PyArg_ParseTuple(args, "sOnO:set_order", &path, &type, &index, &o) ||
        !config_from_py(self, o, &room, &config))
        return NULL;
    if (index < 0)
        Py_RETURN_NONE;  /* there is no such call */
    PyObject *keep = NULL;
    PyObject *name = type_name(state_of(Py_TYPE(self)), type);
    const char *text = name ? c_string_of(name, "the name of a type", &keep) : NULL;
    PyObject *result = !text ? NULL
                             : done(cfx_qrules_set_order(self->r, path, text, (size_t)index,
                                                         config, &err), &err);
    Py_XDECREF(keep);
    Py_XDECREF(name);
    return result;
}

/* ---- finding ------------------------------------------------------------------------------- */

typedef struct collecting {
    PyGraph *graph;
    PyObject *found;
} collecting;

static cfx_status collect(void *ctx, const cfx_node *n, const cfx_qconfig *config, cfx_error *err)
{
    collecting *c = ctx;
    PyObject *node = PyUnicode_FromString(cfx_node_name(n, NULL));
    PyObject *host = config ? config->host : Py_None;
    const int failed = node ? PyDict_SetItem(c->found, node, host) : -1;
    Py_XDECREF(node);
    return failed ? cfx_error_set(err, CFX_E_HOST, "a node could not be listed") : CFX_OK;
}

/* find(graph, root): {the name of each node that calls or reads something: its object or None}. */
static PyObject *rules_find(PyRules *self, PyObject *args)
{
    module_state *st = state_of(Py_TYPE(self));
    cfx_error err = {0};
    PyObject *graph, *root;
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OO:find", &graph, &root))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "find() needs a Graph, not %.100s",
                            Py_TYPE(graph)->tp_name);
    collecting c = {(PyGraph *)graph, PyDict_New()};
    bool good = c.found && (root == Py_None || modules_over(st, root, &view));
    good = good && cfx_qrules_each(self->r, c.graph->g, root == Py_None ? NULL : &view.table,
                                   collect, &c, &err) == CFX_OK;
    modules_done(&view);
    if (good)
        return c.found;
    Py_XDECREF(c.found);
    return raise_cfx(&err);
}

static PyMethodDef rules_methods[] = {
    {"set_global", (PyCFunction)(void (*)(void))rules_set_global, METH_O, NULL},
    {"set_type", (PyCFunction)(void (*)(void))rules_set_type, METH_VARARGS, NULL},
    {"set_name", (PyCFunction)(void (*)(void))rules_set_name, METH_VARARGS, NULL},
    {"set_regex", (PyCFunction)(void (*)(void))rules_set_regex, METH_VARARGS, NULL},
    {"set_order", (PyCFunction)(void (*)(void))rules_set_order, METH_VARARGS, NULL},
    {"find", (PyCFunction)(void (*)(void))rules_find, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot rules_slots[] = {
    {Py_tp_new, rules_new},
    {Py_tp_dealloc, rules_dealloc},
    {Py_tp_traverse, rules_traverse},
    {Py_tp_clear, rules_clear},
    {Py_tp_methods, rules_methods},
    {Py_tp_doc, "Rules(match, /)\n--\n\nWhich configuration a node has."},
    {0, NULL},
};

PyType_Spec rules_spec = {
    .name = "cfx._core.Rules",
    .basicsize = sizeof(PyRules),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = rules_slots,
};
