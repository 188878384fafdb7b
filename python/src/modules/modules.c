/* modules.c - the core's view of a tree of nn.Modules (cfx/module.h), and passes that need one.
 *
 * Whatever Python raises goes up as CFX_E_HOST with the exception pending; but an AttributeError
 * on the way to an attribute only says that there is none.
 */
#include "graph/graph_methods.h"
#include "trace/trace.h"

#include <cfx/embed/ops.h>

static cfx_status failed(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "Python raised an exception");
}

static cfx_status missing(const char *path, cfx_error *err)
{
    PyErr_Clear();  /* said by the status */
    return cfx_error_set(err, CFX_E_KEY, "the module has no attribute '%s'", path);
}

/* After a look-up that failed: what the pending exception means. */
static cfx_status why_not(const char *path, cfx_error *err)
{
    return PyErr_ExceptionMatches(PyExc_AttributeError) ? missing(path, err) : failed(err);
}

/* ---- paths --------------------------------------------------------------------------------- */

/* An analysis asks many questions about one module: it is looked up once, until the tree
 * changes. */
static void remember(module_view *tree, const char *path, PyObject *module)
{
    const size_t size = strlen(path);
    if (size >= sizeof tree->last_path)
        return;
    memcpy(tree->last_path, path, size + 1);
    tree->last_size = size;
    Py_XSETREF(tree->last, Py_NewRef(module));
}

static void forget(module_view *tree) { Py_CLEAR(tree->last); }

/* The module to begin with on the way to *path, borrowed, and the rest of the path from there. */
static PyObject *nearest(const module_view *tree, const char **path)
{
    const size_t size = tree->last_size;
    if (!tree->last || strncmp(*path, tree->last_path, size) != 0)
        return tree->root;
    if ((*path)[size] != '\0' && (*path)[size] != '.')
        return tree->root;
    *path += size + ((*path)[size] == '.');
    return tree->last;
}

/* What a path leads to, "" being the root: a new reference; NULL with an exception. */
static PyObject *at_path(module_view *tree, const char *path)
{
    const char *rest = path;
    if (PyErr_Occurred())
        return NULL;
    PyObject *from = nearest(tree, &rest);
    if (rest[0] == '\0')
        return Py_NewRef(from);
    PyObject *text = str_from_utf8(rest, strlen(rest));
    PyObject *found = text ? path_get(tree->st, from, text) : NULL;
    Py_XDECREF(text);
    if (found && PyObject_TypeCheck(found, (PyTypeObject *)tree->st->module_class))
        remember(tree, path, found);
    return found;
}

/* Likewise; NULL without an exception if there is nothing. */
static PyObject *find_at_path(module_view *tree, const char *path)
{
    const char *rest = path;
    if (PyErr_Occurred())
        return NULL;
    PyObject *from = nearest(tree, &rest);
    if (from == tree->last && rest[0] && !strchr(rest, '.')) {
        PyObject *name = PyUnicode_InternFromString(rest);
        PyObject *found = name ? module_find_attr(tree->st, from, name) : NULL;
        Py_XDECREF(name);
        return found;
    }
    PyObject *found = at_path(tree, path);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return found;
}

/* Likewise a module: an AttributeError for what is none. */
static PyObject *module_at(module_view *tree, const char *path)
{
    PyObject *module = at_path(tree, path);
    if (module && !PyObject_TypeCheck(module, (PyTypeObject *)tree->st->module_class)) {
        PyErr_Format(PyExc_AttributeError, "'%s' is not a module", path);
        Py_CLEAR(module);
    }
    return module;
}

/* ---- classes ------------------------------------------------------------------------------- */

/* Whether calling the module does what its class says: no hooks, no `forward` of its own. 1, 0, or
 * -1 with an exception. */
static int is_as_its_class(const module_state *st, PyObject *module)
{
    PyObject *const hooks[] = {st->str_forward_hooks, st->str_forward_pre_hooks,
                               st->str_backward_hooks, st->str_backward_pre_hooks};
    PyObject *dict = PyObject_GenericGetDict(module, NULL);
    int plain = dict ? PyDict_Contains(dict, st->str_forward) : -1;
    plain = plain < 0 ? -1 : !plain;
    for (size_t i = 0; plain > 0 && i < sizeof hooks / sizeof *hooks; i++) {
        PyObject *found = PyDict_GetItemWithError(dict, hooks[i]);
        Py_ssize_t size = found ? PyObject_Size(found) : 0;
        plain = size < 0 || PyErr_Occurred() ? -1 : size == 0;
    }
    Py_XDECREF(dict);
    return plain;
}

PyObject *module_class_name(PyObject *class)
{
    PyObject *nn = loaded_module("torch.nn");
    PyObject *name = PyObject_GetAttrString(class, "__name__");
    PyObject *public = nn && name ? attr_or_none(nn, name) : NULL;
    PyObject *text = NULL;
    if (public == class)
        text = PyUnicode_FromFormat("torch.nn.%U", name);
    else if (name && !PyErr_Occurred())
        text = scope_class_name(class);
    Py_XDECREF(public);
    Py_XDECREF(name);
    return text;
}

/* The same, a borrowed reference: models have many modules of few classes. */
static PyObject *name_of_class(module_view *tree, PyObject *class)
{
    PyObject *name = PyDict_GetItemWithError(tree->names, class);
    if (name || PyErr_Occurred())
        return name;
    name = module_class_name(class);
    int failed = name ? PyDict_SetItem(tree->names, class, name) : -1;
    Py_XDECREF(name);
    return failed ? NULL : name;
}

static cfx_status class_name(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    module_view *tree = ctx;
    PyObject *module = module_at(tree, path);
    if (!module)
        return why_not(path, err);
    int plain = is_as_its_class(tree->st, module);
    PyObject *name = plain > 0 ? name_of_class(tree, (PyObject *)Py_TYPE(module)) : NULL;
    Py_DECREF(module);
    if (!name)
        return plain == 0 ? CFX_OK : failed(err);
    return write_str(name, out, err);
}

/* torch.nn.Module itself says nothing. */
static cfx_status each_class(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    module_view *tree = ctx;
    cfx_status status = CFX_OK;
    PyObject *module = module_at(tree, path);
    if (!module)
        return why_not(path, err);
    PyObject *classes = Py_NewRef(Py_TYPE(module)->tp_mro);
    Py_DECREF(module);
    for (Py_ssize_t i = 0; status == CFX_OK && i < PyTuple_GET_SIZE(classes); i++) {
        PyObject *class = PyTuple_GET_ITEM(classes, i);
        if (class == tree->st->module_class)
            break;
        PyObject *name = name_of_class(tree, class);
        const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
        status = text ? fn(fn_ctx, text, err) : failed(err);
    }
    Py_DECREF(classes);
    return status;
}

static cfx_status each_child(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    module_view *tree = ctx;
    cfx_status status = CFX_OK;
    PyObject *module = module_at(tree, path);
    PyObject *all = module ? module_getattr(tree->st, module, tree->st->str_modules, true) : NULL;
    PyObject *items = all && PyDict_Check(all) ? PyDict_Items(all) : NULL;
    Py_XDECREF(all);
    if (!module || PyErr_Occurred())
        status = why_not(path, err);
    Py_XDECREF(module);
    for (Py_ssize_t i = 0; items && status == CFX_OK && i < PyList_GET_SIZE(items); i++) {
        PyObject *name = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        if (PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1) == Py_None)
            continue;
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "";
        status = text ? fn(fn_ctx, text, err) : failed(err);
    }
    Py_XDECREF(items);
    return status;
}

static const void *identity(void *ctx, const char *path)
{
    PyObject *found = find_at_path(ctx, path);
    Py_XDECREF(found);
    return found;
}

/* The storage of a tensor: views share it. What has none (a subclass of torch's own) is unknown. */
static const void *memory(void *ctx, const char *path)
{
    module_view *tree = ctx;
    PyObject *found = at_path(tree, path);
    const void *address = NULL;
    if (found && PyObject_IsInstance(found, tree->st->tensor_class) > 0) {
        PyObject *storage = PyObject_CallMethod(found, "untyped_storage", NULL);
        PyObject *data = storage ? PyObject_GetAttrString(storage, "_cdata") : NULL;
        address = data ? PyLong_AsVoidPtr(data) : NULL;
        Py_XDECREF(data);
        Py_XDECREF(storage);
    }
    Py_XDECREF(found);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();  /* said by the answer */
        address = NULL;
    }
    return address;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static cfx_value to_value(module_view *tree, cfx_graph *g, PyObject *o)
{
    PyObject *graph = graph_wrap(tree->st, g);
    /* A torch.Size is as good as a tuple. */
    PyObject *plain = PyTuple_Check(o) ? PySequence_Tuple(o) : Py_NewRef(o);
    cfx_value v = graph && plain ? value_from_py((PyGraph *)graph, plain) : cfx_value_invalid();
    Py_XDECREF(plain);
    Py_XDECREF(graph);
    return v;
}

static cfx_value get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    PyObject *found = find_at_path(ctx, path);
    cfx_value v = cfx_value_invalid();
    if (!found) {
        PyErr_Occurred() ? failed(err) : missing(path, err);
        return v;
    }
    v = to_value(ctx, g, found);
    if (v.kind == CFX_KIND_INVALID)
        failed(err);
    Py_DECREF(found);
    return v;
}

/* Whether a new parameter in the place of `old` learns: not if there was none, as in torch. */
static int requires_grad(PyObject *old)
{
    PyObject *flag = old == Py_None ? Py_NewRef(Py_False)
                                    : PyObject_GetAttrString(old, "requires_grad");
    int learns = flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flag);
    return learns;
}

/* `tensor` as what stands in the place of a parameter of `owner`, if one does: a new reference. */
static PyObject *as_parameter(const module_state *st, PyObject *owner, PyObject *name,
                              PyObject *tensor)
{
    PyObject *all = PyObject_GetAttr(owner, st->str_parameters);
    PyObject *old = all && PyDict_Check(all) ? PyDict_GetItemWithError(all, name) : NULL;
    PyObject *made = NULL;
    if (!all && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();  /* no module: then there are no parameters */
    if (PyErr_Occurred()) {
        made = NULL;
    } else if (old) {
        int learns = requires_grad(old);
        if (learns >= 0)
            made = PyObject_CallFunction(st->parameter_class, "OO", tensor,
                                         learns ? Py_True : Py_False);
    } else {
        made = Py_NewRef(tensor);
    }
    Py_XDECREF(all);
    return made;
}

/* What is to be stored for a value: weights that a pass computed do not remember how. */
static PyObject *stored(module_view *tree, PyObject *path, PyObject *value)
{
    int tensor = PyObject_IsInstance(value, tree->st->tensor_class);
    if (tensor <= 0)
        return tensor < 0 ? NULL : Py_NewRef(value);
    PyObject *parts = PyObject_CallMethod(path, "rpartition", "s", ".");
    PyObject *prefix = parts ? PyTuple_GET_ITEM(parts, 0) : NULL;
    PyObject *owner = NULL;
    if (prefix)
        owner = PyUnicode_GET_LENGTH(prefix) ? path_get(tree->st, tree->root, prefix)
                                             : Py_NewRef(tree->root);
    if (!owner && prefix && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();  /* an owner that is still to be made has no parameters */
    PyObject *plain = PyErr_Occurred() ? NULL : PyObject_CallMethod(value, "detach", NULL);
    if (plain && owner)
        Py_SETREF(plain, as_parameter(tree->st, owner, PyTuple_GET_ITEM(parts, 2), plain));
    Py_XDECREF(owner);
    Py_XDECREF(parts);
    return plain;
}

/* A module whose dict, and the dicts and sets in it, are its own: a new reference. */
static PyObject *copy_of(PyObject *module)
{
    PyTypeObject *type = Py_TYPE(module);
    PyObject *old = PyObject_GenericGetDict(module, NULL);
    PyObject *made = old ? PyObject_CallMethod((PyObject *)type, "__new__", "O", type) : NULL;
    PyObject *dict = made ? PyObject_GenericGetDict(made, NULL) : NULL;
    PyObject *items = dict ? PyDict_Items(old) : NULL;  /* `copy` may run code of the user's */
    if (!items)
        Py_CLEAR(dict);
    for (Py_ssize_t i = 0; dict && i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        PyObject *value = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
        bool own = PyDict_Check(value) || PySet_Check(value);
        PyObject *item = own ? PyObject_CallMethod(value, "copy", NULL) : Py_NewRef(value);
        if (!item || PyDict_SetItem(dict, key, item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    if (!dict)
        Py_CLEAR(made);
    Py_XDECREF(items);
    Py_XDECREF(dict);
    Py_XDECREF(old);
    return made;
}

/* The module `name` of `parent`, which nobody outside of this tree has: a new reference; NULL, too,
 * if there is no module. */
static PyObject *own_child(module_view *tree, PyObject *parent, PyObject *name)
{
    PyObject *child = attr_or_none(parent, name);
    if (!child || !PyObject_TypeCheck(child, (PyTypeObject *)tree->st->module_class)) {
        Py_XDECREF(child);
        return NULL;
    }
    PyObject *id = PyLong_FromVoidPtr(child);
    int known = id ? PyDict_Contains(tree->own, id) : -1;
    Py_XDECREF(id);
    if (known)
        return known > 0 ? child : (Py_DECREF(child), NULL);
    if (PyList_Append(tree->gone, child) < 0)
        Py_CLEAR(child);
    else
        Py_SETREF(child, copy_of(child));
    id = child ? PyLong_FromVoidPtr(child) : NULL;
    if (!id || PyDict_SetItem(tree->own, id, child) < 0 ||
        PyObject_SetAttr(parent, name, child) < 0)
        Py_CLEAR(child);
    Py_XDECREF(id);
    return child;
}

/* Modules on the way to a path may be shared with other models: puts copies in their places. */
static int own_path(module_view *tree, PyObject *path)
{
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *steps = dot ? PyUnicode_Split(path, dot, -1) : NULL;
    PyObject *at = steps ? Py_NewRef(tree->root) : NULL;
    for (Py_ssize_t i = 0; at && i + 1 < PyList_GET_SIZE(steps); i++)
        Py_SETREF(at, own_child(tree, at, PyList_GET_ITEM(steps, i)));
    Py_XDECREF(at);
    Py_XDECREF(steps);
    Py_XDECREF(dot);
    return PyErr_Occurred() ? -1 : 0;
}

/* What stands at `path` is to be replaced: a module is kept. */
static int keep_gone(module_view *tree, const char *path)
{
    PyObject *old = find_at_path(tree, path);
    const bool module = old && PyObject_TypeCheck(old, (PyTypeObject *)tree->st->module_class);
    const int status = PyErr_Occurred() || (module && PyList_Append(tree->gone, old) < 0) ? -1 : 0;
    Py_XDECREF(old);
    return status;
}

static int store(module_view *tree, const char *path, PyObject *value)
{
    if (keep_gone(tree, path) < 0)
        return -1;
    forget(tree);
    PyObject *text = str_from_utf8(path, strlen(path));
    PyObject *what = text && own_path(tree, text) == 0 ? stored(tree, text, value) : NULL;
    int error = what ? path_assign(tree->st, tree->root, text, what) : -1;
    Py_XDECREF(what);
    Py_XDECREF(text);
    return error;
}

static cfx_status set(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err)
{
    module_view *tree = ctx;
    PyObject *graph = PyErr_Occurred() ? NULL : graph_wrap(tree->st, g);
    PyObject *value = graph ? value_to_py((PyGraph *)graph, v) : NULL;
    int error = value ? store(tree, path, value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(graph);
    return error ? failed(err) : CFX_OK;
}

static cfx_status remove_at(void *ctx, const char *path, cfx_error *err)
{
    module_view *tree = ctx;
    PyObject *text = PyErr_Occurred() || keep_gone(tree, path) < 0
                         ? NULL : str_from_utf8(path, strlen(path));
    forget(tree);
    int error = text && own_path(tree, text) == 0 ? path_delete(tree->st, tree->root, text) : -1;
    Py_XDECREF(text);
    return error ? why_not(path, err) : CFX_OK;
}

/* ---- copies -------------------------------------------------------------------------------- */

static cfx_status copy(void *ctx, const char *from, const char *to, cfx_error *err)
{
    PyObject *module = module_at(ctx, from);
    if (!module)
        return why_not(from, err);
    PyObject *copied = copy_of(module);
    int error = copied ? store(ctx, to, copied) : -1;
    Py_XDECREF(copied);
    Py_DECREF(module);
    return error ? failed(err) : CFX_OK;
}

/* ---- graphs -------------------------------------------------------------------------------- */

/* Whether `o` is of the class with this name, and of none derived from it if `exactly`. */
static bool is_a(module_state *st, PyObject *o, const char *name, bool exactly)
{
    PyObject *class = resolve_name(st, name, strlen(name));
    bool is = class && (exactly ? (PyObject *)Py_TYPE(o) == class
                                : PyObject_IsInstance(o, class) > 0);
    Py_XDECREF(class);
    return is && !PyErr_Occurred();
}

/* A graph whose code is as its nodes say: with the code generator that every graph begins with. */
static bool is_plain_graph(module_state *st, PyObject *graph)
{
    PyObject *codegen = is_graph(st, graph) ? PyObject_GetAttrString(graph, "_codegen") : NULL;
    bool plain = codegen && is_a(st, codegen, "cfx.graph.CodeGen", true);
    PyObject *transformer = plain ? PyObject_GetAttrString(codegen, "_body_transformer") : NULL;
    plain = transformer == Py_None;
    Py_XDECREF(transformer);
    Py_XDECREF(codegen);
    return plain;
}

static cfx_graph *graph_of(void *ctx, const char *path)
{
    module_view *tree = ctx;
    cfx_graph *g = NULL;
    if (PyErr_Occurred())  /* somebody else's */
        return NULL;
    PyObject *module = module_at(tree, path);
    if (module && is_a(tree->st, module, "cfx.graph_module.GraphModule", false) &&
        is_as_its_class(tree->st, module) > 0) {
        PyObject *graph = PyObject_GetAttr(module, tree->st->str_graph);
        PyObject *id = graph && is_plain_graph(tree->st, graph) ? PyLong_FromVoidPtr(graph) : NULL;
        if (id && PyDict_SetItem(tree->own, id, graph) == 0)  /* a property may have made it */
            g = ((PyGraph *)graph)->g;
        Py_XDECREF(id);
        Py_XDECREF(graph);
    }
    Py_XDECREF(module);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();  /* what cannot be looked at was not captured */
    return PyErr_Occurred() ? NULL : g;
}

/* ---- computing ----------------------------------------------------------------------------- */

/* The function that computes an operator, by the first of its spellings; NULL if there is none. */
static PyObject *function_of(module_state *st, cfx_operator op)
{
    char name[CFX_SPELLING_SIZE];
    PyObject *found = NULL;
    for (size_t i = 0; !found && cfx_operator_spelling(op, i, name, NULL); i++)
        found = resolve_name(st, name, strlen(name));
    return found;
}

/* The first parameter that is passed by its name. */
static size_t first_keyword(cfx_operator op)
{
    cfx_schema_param param;
    size_t i = 0;
    while (cfx_operator_param(op, i, &param) && !param.keyword_only)
        i++;
    return i;
}

/* {name: argument} of the arguments from the k-th on. */
static PyObject *keywords_of(PyGraph *graph, cfx_operator op, const cfx_value *args, size_t k,
                             size_t n)
{
    cfx_schema_param param;
    PyObject *keywords = PyDict_New();
    for (; keywords && k < n && cfx_operator_param(op, k, &param); k++) {
        PyObject *name = PyUnicode_FromStringAndSize(param.name.text, (Py_ssize_t)param.name.size);
        PyObject *arg = name ? value_to_py(graph, args[k]) : NULL;
        if (!arg || PyDict_SetItem(keywords, name, arg) < 0)
            Py_CLEAR(keywords);
        Py_XDECREF(arg);
        Py_XDECREF(name);
    }
    return keywords;
}

static PyObject *call_with(PyGraph *graph, cfx_operator op, PyObject *function,
                           const cfx_value *args, size_t n)
{
    const size_t first = first_keyword(op);
    const size_t places = n < first ? n : first;
    PyObject *tuple = PyTuple_New((Py_ssize_t)places);
    for (size_t i = 0; tuple && i < places; i++) {
        PyObject *arg = value_to_py(graph, args[i]);
        if (arg)
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, arg);
        else
            Py_CLEAR(tuple);
    }
    PyObject *keywords = tuple && places < n ? keywords_of(graph, op, args, places, n) : NULL;
    PyObject *result = tuple && (keywords || places == n)
                           ? PyObject_Call(function, tuple, keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(tuple);
    return result;
}

static cfx_value call(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args, size_t n,
                      cfx_error *err)
{
    module_view *tree = ctx;
    PyObject *graph = PyErr_Occurred() ? NULL : graph_wrap(tree->st, g);
    PyObject *function = graph ? function_of(tree->st, op) : NULL;
    PyObject *result = function ? call_with((PyGraph *)graph, op, function, args, n) : NULL;
    cfx_value v = result ? to_value(tree, g, result) : cfx_value_invalid();
    if (v.kind == CFX_KIND_INVALID && !PyErr_Occurred())
        cfx_error_set(err, CFX_E_UNSUPPORTED, "the operator '%s' is not loaded",
                      cfx_operator_name(op));
    else if (v.kind == CFX_KIND_INVALID)
        failed(err);
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(graph);
    return v;
}

/* What is called: the function, or the method of the first argument, which is then taken off. */
static PyObject *callable_of(PyGraph *graph, const cfx_node *n, PyObject **args)
{
    if (cfx_node_op(n) != CFX_OP_CALL_METHOD) {
        PyObject *function = cfx_node_target_object(n);
        if (function)
            return Py_NewRef(function);
        const char *name = cfx_node_target(n, NULL, NULL);
        return name ? resolve_name(graph->st, name, strlen(name)) : NULL;
    }
    PyObject *self = PyTuple_GET_SIZE(*args) > 0 ? PyTuple_GET_ITEM(*args, 0) : NULL;
    PyObject *method = self ? PyObject_GetAttrString(self, cfx_node_target(n, NULL, NULL)) : NULL;
    if (method)
        Py_SETREF(*args, PyTuple_GetSlice(*args, 1, PyTuple_GET_SIZE(*args)));
    return method;
}

static cfx_value evaluate(void *ctx, cfx_graph *g, const cfx_node *n, cfx_value args,
                          cfx_value kwargs, cfx_error *err)
{
    module_view *tree = ctx;
    PyObject *graph = PyErr_Occurred() ? NULL : graph_wrap(tree->st, g);
    PyObject *tuple = graph ? value_to_py((PyGraph *)graph, args) : NULL;
    PyObject *dict = tuple ? value_to_py((PyGraph *)graph, kwargs) : NULL;
    PyObject *plain = dict ? PyDict_New() : NULL;
    if (plain && PyDict_Update(plain, dict) < 0)
        Py_CLEAR(plain);
    PyObject *called = plain ? callable_of((PyGraph *)graph, n, &tuple) : NULL;
    PyObject *result = called && tuple ? PyObject_Call(called, tuple, plain) : NULL;
    cfx_value v = result ? to_value(tree, g, result) : cfx_value_invalid();
    if (v.kind == CFX_KIND_INVALID && !PyErr_Occurred())
        cfx_error_set(err, CFX_E_UNSUPPORTED, "the function is not loaded");
    else if (v.kind == CFX_KIND_INVALID)
        failed(err);
    Py_XDECREF(result);
    Py_XDECREF(called);
    Py_XDECREF(plain);
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    Py_XDECREF(graph);
    return v;
}

/* ---- passes -------------------------------------------------------------------------------- */

void modules_done(module_view *view)
{
    forget(view);
    Py_CLEAR(view->own);
    Py_CLEAR(view->gone);
    Py_CLEAR(view->names);
}

bool modules_over(module_state *st, PyObject *root, module_view *view)
{
    view->own = view->gone = view->names = view->last = NULL;
    if (!st->module_class) {
        PyErr_SetString(PyExc_ImportError, "import cfx.graph_module first");
        return false;
    }
    if (!PyObject_TypeCheck(root, (PyTypeObject *)st->module_class)) {
        PyErr_Format(PyExc_TypeError, "expected a torch.nn.Module, got %R",
                     (PyObject *)Py_TYPE(root));
        return false;
    }
    *view = (module_view){
        .table = {.ctx = view, .class_name = class_name, .identity = identity, .get = get,
                  .set = set, .remove = remove_at, .copy = copy, .graph = graph_of, .call = call,
                  .each_class = each_class, .each_child = each_child, .memory = memory,
                  .evaluate = evaluate},
        .st = st,
        .root = root,
        .own = PyDict_New(),
        .gone = PyList_New(0),
        .names = PyDict_New(),
    };
    return view->own && view->gone && view->names;
}

/* Runs a pass over a module, or None: whether it changed anything; -1 with an exception. Options
 * are its struct, or (NULL) settings. */
static int run_pass(PyGraph *self, const cfx_pass *pass, PyObject *module, const void *opts,
                    const cfx_pass_setting *settings, size_t n)
{
    cfx_error err = {0};
    bool changed = false;
    module_view view = {.own = NULL};
    if (module != Py_None && !modules_over(self->st, module, &view))
        return -1;
    cfx_iter here = hold(self->g);
    const cfx_module_tree *tree = module == Py_None ? NULL : &view.table;
    cfx_status status = opts ? cfx_pass_run(pass, self->g, tree, opts, &changed, &err)
                             : cfx_pass_run_with(pass, self->g, tree, settings, n, &changed, &err);
    cfx_iter_end(&here);
    modules_done(&view);
    if (status == CFX_OK && !PyErr_Occurred())
        return changed;
    raise_cfx(&err);
    return -1;
}

static PyObject *bool_or_null(int answer) { return answer < 0 ? NULL : PyBool_FromLong(answer); }

enum { MOST_SETTINGS = 16 };

/* The options of a pass in a dict, None if there are none: how many; -1 with an exception. */
static Py_ssize_t read_settings(PyObject *given, cfx_pass_setting *settings)
{
    Py_ssize_t at = 0, n = 0;
    PyObject *name, *value;
    while (given != Py_None && PyDict_Next(given, &at, &name, &value)) {
        const bool whole = PyLong_Check(value);
        const unsigned long long number = whole ? PyLong_AsUnsignedLongLong(value) : 0;
        if (!whole || PyErr_Occurred()) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "pass option %U must be a bool or a non-negative "
                         "integer, not %R", name, value);
            return -1;
        }
        if (n == MOST_SETTINGS) {
            PyErr_SetString(PyExc_ValueError, "too many pass options");
            return -1;
        }
        settings[n] = (cfx_pass_setting){PyUnicode_AsUTF8(name), number};
        if (!settings[n++].name)
            return -1;
    }
    return n;
}

/* _pass(name, module=None, options=None): runs a pass of the table; whether it changed anything. */
PyObject *graph_pass(PyGraph *self, PyObject *args)
{
    PyObject *name, *keep;
    PyObject *module = Py_None;
    PyObject *options = Py_None;
    cfx_pass_setting settings[MOST_SETTINGS];
    if (!PyArg_ParseTuple(args, "O|OO:_pass", &name, &module, &options))
        return NULL;
    if (options != Py_None && !PyDict_Check(options))
        return PyErr_Format(PyExc_TypeError, "_pass takes options as a dict");
    const char *text = c_string_of(name, "the name of a pass", &keep);
    const cfx_pass *pass = text ? cfx_pass_find(text) : NULL;
    Py_XDECREF(keep);
    if (!pass)
        return text ? PyErr_Format(PyExc_ValueError, "there is no pass %R", name) : NULL;
    const Py_ssize_t n = read_settings(options, settings);
    return n < 0 ? NULL : bool_or_null(run_pass(self, pass, module, NULL, settings, (size_t)n));
}

/* Scopes are the graph's: its copies of them are nested already, those in the metadata are not. */
static cfx_status keep_meta(void *ctx, cfx_node *from, cfx_node *to, cfx_error *err)
{
    PyGraph *graph = ctx;
    if (copy_meta(graph, from, to) < 0)
        return failed(err);
    const PyNode *node = cfx_node_binding(to);
    PyObject *name = graph->st->str_nn_module_stack;
    if (!node || !node->meta || PyDict_Contains(node->meta, name) <= 0)
        return PyErr_Occurred() ? failed(err) : CFX_OK;
    uint32_t scope = cfx_node_module_stack(to);
    PyObject *stack = scope ? scope_stack(graph, scope) : NULL;
    int error = stack ? PyDict_SetItem(node->meta, name, stack)
                      : PyErr_Occurred() ? -1 : PyDict_DelItem(node->meta, name);
    Py_XDECREF(stack);
    return error ? failed(err) : CFX_OK;
}

/* _inline(module): puts the nodes of captured modules in the places of their calls. */
PyObject *graph_inline(PyGraph *self, PyObject *module)
{
    const cfx_inline_options opts = {keep_meta, self};
    return bool_or_null(run_pass(self, cfx_pass_find("inline"), module, &opts, NULL, 0));
}

static cfx_status add_path(void *ctx, const char *path, cfx_error *err)
{
    PyObject *text = str_from_utf8(path, strlen(path));
    int error = text ? PyList_Append(ctx, text) : -1;
    Py_XDECREF(text);
    return error ? failed(err) : CFX_OK;
}

/* _lift_params(module): makes tensors that are read inputs; the list of their paths. */
PyObject *graph_lift_params(PyGraph *self, PyObject *module)
{
    PyObject *paths = PyList_New(0);
    const cfx_lift_params_options opts = {add_path, paths};
    if (paths && run_pass(self, cfx_pass_find("lift_params"), module, &opts, NULL, 0) < 0)
        Py_CLEAR(paths);
    return paths;
}

/* Borrows the texts of a list of str; NULL with an exception. */
static const char **texts_of(PyObject *list, PyObject *keep)
{
    Py_ssize_t n = PyList_GET_SIZE(list);
    const char **texts = PyMem_Calloc((size_t)n + 1, sizeof *texts);
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < n; i++) {
        PyObject *held = NULL;
        texts[i] = c_string_of(PyList_GET_ITEM(list, i), "a path", &held);
        if (!texts[i] || (held && PyList_Append(keep, held) < 0)) {
            PyMem_Free(texts);
            texts = NULL;
        }
        Py_XDECREF(held);
    }
    return texts;
}

/* _unlift_params(paths, module): the first inputs are read from these paths again. */
PyObject *graph_unlift_params(PyGraph *self, PyObject *args)
{
    PyObject *paths, *module;
    if (!PyArg_ParseTuple(args, "O!O:_unlift_params", &PyList_Type, &paths, &module))
        return NULL;
    PyObject *own = PyList_GetSlice(paths, 0, PyList_GET_SIZE(paths));
    PyObject *keep = own ? PyList_New(0) : NULL;
    const char **texts = keep ? texts_of(own, keep) : NULL;
    int answer = -1;
    if (texts) {
        const cfx_unlift_params_options opts = {texts, (size_t)PyList_GET_SIZE(own)};
        answer = run_pass(self, cfx_pass_find("unlift_params"), module, &opts, NULL, 0);
    }
    PyMem_Free(texts);
    Py_XDECREF(keep);
    Py_XDECREF(own);
    return bool_or_null(answer);
}

/* _remove_dropout(module, training) */
PyObject *graph_remove_dropout(PyGraph *self, PyObject *args)
{
    PyObject *module;
    int training;
    if (!PyArg_ParseTuple(args, "Op:_remove_dropout", &module, &training))
        return NULL;
    const cfx_remove_dropout_options opts = {training};
    return bool_or_null(run_pass(self, cfx_pass_find("remove_dropout"), module, &opts, NULL, 0));
}

/* _merge_matmul(split) */
PyObject *graph_merge_matmul(PyGraph *self, PyObject *split)
{
    const cfx_target target = {.object = split};
    const cfx_merge_matmul_options opts = {.split = &target};
    return bool_or_null(run_pass(self, cfx_pass_find("merge_matmul"), Py_None, &opts, NULL, 0));
}

/* _may_depend_on(a, b, search_depth) */
PyObject *graph_may_depend_on(PyGraph *self, PyObject *args)
{
    PyObject *a, *b;
    Py_ssize_t depth;
    cfx_error err = {0};
    if (!PyArg_ParseTuple(args, "OOn:_may_depend_on", &a, &b, &depth) || !need_node(self, a) ||
        !need_node(self, b))
        return NULL;
    int answer = cfx_node_may_depend_on(((PyNode *)a)->n, ((PyNode *)b)->n,
                                        depth > 0 ? (size_t)depth : 0, &err);
    return answer < 0 ? raise_cfx(&err) : PyBool_FromLong(answer);
}

/* ---- memory layouts ------------------------------------------------------------------------ */

typedef struct relayout_job {
    PyGraph *graph;
    PyObject *supports, *choose;
} relayout_job;

static int ask_supports(void *ctx, cfx_node *n)
{
    const relayout_job *job = ctx;
    PyObject *node = PyErr_Occurred() ? NULL : node_wrap(job->graph, n);
    PyObject *answer = node ? PyObject_CallOneArg(job->supports, node) : NULL;
    long number = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return PyErr_Occurred() ? -1 : number < 0 || number > 2 ? 0 : (int)number;
}

static int ask_choose(void *ctx, const cfx_layout_part *part)
{
    const relayout_job *job = ctx;
    PyObject *nodes = list_nodes(job->graph, part->nodes, part->n_nodes);
    PyObject *starts = nodes ? list_nodes(job->graph, part->starts, part->n_starts) : NULL;
    PyObject *ends = starts ? list_nodes(job->graph, part->ends, part->n_ends) : NULL;
    PyObject *answer = ends ? PyObject_CallFunctionObjArgs(job->choose, nodes, starts, ends, NULL)
                            : NULL;
    int chosen = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(ends);
    Py_XDECREF(starts);
    Py_XDECREF(nodes);
    return chosen;
}

/* _relayout(enter, leave, supports, choose) */
PyObject *graph_relayout(PyGraph *self, PyObject *args)
{
    relayout_job job = {.graph = self};
    cfx_relayout_options how = {.supports = ask_supports, .choose = ask_choose, .ctx = &job};
    cfx_error err = {0};
    bool changed;
    if (!PyArg_ParseTuple(args, "ssOO:_relayout", &how.enter, &how.leave, &job.supports,
                          &job.choose))
        return NULL;
    cfx_iter here = hold(self->g);
    cfx_status status = cfx_graph_relayout(self->g, &how, &changed, &err);
    cfx_iter_end(&here);
    return status == CFX_OK && !PyErr_Occurred() ? PyBool_FromLong(changed) : raise_cfx(&err);
}
