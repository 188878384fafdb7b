/* references.c - whether the module that a graph belongs to has what nodes refer to by path. */
#include "graph_methods.h"

/* Whether `o` is an nn.Module: -1 with an exception. Without torch nothing is. */
static int is_module(module_state *st, PyObject *o)
{
    static const char name[] = "torch.nn.Module";
    PyObject *class = st->module_class ? Py_NewRef(st->module_class)
                                       : resolve_name(st, name, strlen(name));
    int found = class ? PyObject_IsInstance(o, class) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(class);
    return found;
}

/* ---- of a new node ------------------------------------------------------------------------- */

/* Whether a dict of a module has a name. */
static int has_member(PyObject *module, PyObject *dict_name, PyObject *name)
{
    PyObject *dict = PyObject_GetAttr(module, dict_name);
    int found = dict ? PySequence_Contains(dict, name) : -1;
    Py_XDECREF(dict);
    return found;
}

/* Whether `name` is a sub-module, parameter or buffer of a module. */
static int refers(module_state *st, PyObject *module, PyObject *name)
{
    PyObject *value = attr_or_none(module, name);
    int found = value ? is_module(st, value) : -1;
    Py_XDECREF(value);
    if (found == 0)
        found = has_member(module, st->str_parameters, name);
    return found == 0 ? has_member(module, st->str_buffers, name) : found;
}

/* module.get_submodule(path): None, with a warning, if it raises an AttributeError. */
static PyObject *fetch_module(PyObject *owner, PyObject *path)
{
    PyObject *module = PyObject_CallMethod(owner, "get_submodule", "O", path);
    if (module || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return module;
    PyErr_Clear();  /* said by the warning */
    if (PyErr_WarnFormat(PyExc_UserWarning, 1, "Failed to fetch module %U!", path) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

static int check_attribute(module_state *st, PyObject *owner, PyObject *path)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(path);
    Py_ssize_t dot = PyUnicode_FindChar(path, '.', 0, size, -1);
    PyObject *prefix = PyUnicode_Substring(path, 0, dot < 0 ? 0 : dot);
    PyObject *name = prefix ? PyUnicode_Substring(path, dot + 1, size) : NULL;
    PyObject *module = name ? fetch_module(owner, prefix) : NULL;
    int found = -1;
    if (module)
        found = module == Py_None ? 0 : refers(st, module, name);
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(prefix);
    if (found)
        return found < 0 ? -1 : 0;
    return PyErr_WarnEx(PyExc_UserWarning,
                        "Attempted to insert a get_attr Node with no underlying reference in the "
                        "owning GraphModule! Call GraphModule.add_submodule to add the necessary "
                        "submodule, GraphModule.add_parameter to add the necessary Parameter, or "
                        "nn.Module.register_buffer to add the necessary buffer", 1);
}

/* A path that leads nowhere raises nn.Module's own exception. */
static int check_call(PyObject *owner, PyObject *path)
{
    PyObject *module = PyObject_CallMethod(owner, "get_submodule", "O", path);
    Py_XDECREF(module);
    if (module != Py_None)
        return module ? 0 : -1;
    return PyErr_WarnEx(PyExc_UserWarning,
                        "Attempted to insert a call_module Node with no underlying reference in "
                        "the owning GraphModule! Call GraphModule.add_submodule to add the "
                        "necessary submodule", 1);
}

int check_reference(PyGraph *graph, cfx_opcode op, PyObject *path)
{
    PyObject *owner = graph->owning_module;
    if (!owner || (op != CFX_OP_GET_ATTR && op != CFX_OP_CALL_MODULE) || !PyUnicode_Check(path))
        return 0;
    Py_INCREF(owner);
    int found = is_module(graph->st, owner);
    if (found > 0)
        found = op == CFX_OP_CALL_MODULE ? check_call(owner, path)
                                         : check_attribute(graph->st, owner, path);
    Py_DECREF(owner);
    return found;
}

/* ---- of all nodes -------------------------------------------------------------------------- */

/* Raises what is wrong with one step of a path, in words before and after it. */
static int fail(PyGraph *graph, cfx_node *n, PyObject *steps, Py_ssize_t i, const char *before,
                const char *after)
{
    PyNode *node = (PyNode *)node_wrap(graph, n);
    PyObject *dot = node ? PyUnicode_FromString(".") : NULL;
    PyObject *passed = dot ? PyList_GetSlice(steps, 0, i) : NULL;
    PyObject *parent = passed ? PyUnicode_Join(dot, passed) : NULL;
    if (parent)
        PyErr_Format(PyExc_RuntimeError, "Node %S target %S %s%U of %U%s", node, node->target,
                     before, PyList_GET_ITEM(steps, i), parent, after);
    Py_XDECREF(parent);
    Py_XDECREF(passed);
    Py_XDECREF(dot);
    Py_XDECREF((PyObject *)node);
    return -1;
}

/* Follows the path of a node from `o`, a reference that is given up. */
static int follow(PyGraph *graph, cfx_node *n, PyObject *o, PyObject *steps)
{
    bool is_call = cfx_node_op(n) == CFX_OP_CALL_MODULE;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(steps); i++) {
        Py_SETREF(o, module_getattr(graph->st, o, PyList_GET_ITEM(steps, i), false));
        if (!o && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();  /* said by the next one */
            return fail(graph, n, steps, i, "references nonexistent attribute ", "");
        }
        int is_right = !o ? -1 : is_call ? is_module(graph->st, o) : 1;
        failed = is_right < 0 ? -1 : 0;
        if (is_right == 0)
            failed = fail(graph, n, steps, i, "", " does not reference an nn.Module");
    }
    Py_XDECREF(o);
    return failed;
}

static int check_node(PyGraph *graph, cfx_node *n, PyObject *owner, PyObject *dot)
{
    size_t size;
    const char *target = cfx_node_target(n, &size, NULL);
    PyObject *path = target ? str_from_utf8(target, size) : PyErr_NoMemory();
    PyObject *steps = path ? PyUnicode_Split(path, dot, -1) : NULL;
    int failed = steps ? follow(graph, n, Py_NewRef(owner), steps) : -1;
    Py_XDECREF(steps);
    Py_XDECREF(path);
    return failed;
}

PyObject *graph_check_paths(PyGraph *self, PyObject *unused)
{
    (void)unused;
    if (!self->owning_module)
        Py_RETURN_NONE;
    PyObject *owner = Py_NewRef(self->owning_module);
    PyObject *dot = PyUnicode_FromString(".");
    int failed = dot ? 0 : -1;
    cfx_iter it = hold(self->g);
    for (cfx_node *n; !failed && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_opcode op = cfx_node_op(n);
        if (op == CFX_OP_GET_ATTR || op == CFX_OP_CALL_MODULE)
            failed = check_node(self, n, owner, dot);
    }
    cfx_iter_end(&it);
    Py_XDECREF(dot);
    Py_DECREF(owner);
    return failed ? NULL : Py_NewRef(Py_None);
}
