/* host.c - what the core asks of Python: names, reprs, references. */
#include "pycfx.h"

static void retain(void *ctx, void *object)
{
    (void)ctx;
    Py_INCREF((PyObject *)object);
}

static void release(void *ctx, void *object)
{
    (void)ctx;
    Py_DECREF((PyObject *)object);
}

static cfx_status failed(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "Python raised an exception");
}

/* An object whose name cannot be told has none: the core goes on without it, so no exception may be
 * left behind. Anything but an Exception (Ctrl-C) is not for us to swallow. */
static cfx_status nameless(cfx_error *err)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return failed(err);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *text = PyObject_Str(value);
    const char *why = text ? PyUnicode_AsUTF8(text) : NULL;
    PyErr_Clear();  /* even the reason could not be told */
    cfx_error_set(err, CFX_E_KEY, "%s", why ? why : "the object has no name");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return CFX_E_KEY;
}

/* Writes a str that the caller owns and gives up. */
static cfx_status write_result(PyObject *str, cfx_sink out, cfx_error *err)
{
    if (!str)
        return failed(err);
    cfx_status status = write_str(str, out, err);
    Py_DECREF(str);
    return status;
}

static cfx_status repr(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    return PyErr_Occurred() ? failed(err) : write_result(PyObject_Repr(object), out, err);
}

static cfx_status qualified_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    if (PyErr_Occurred())
        return failed(err);
    PyObject *name = object_name(ctx, object);
    if (!name)
        return nameless(err);
    if (name != Py_None)
        return write_result(name, out, err);
    Py_DECREF(name);
    return cfx_error_set(err, CFX_E_KEY, "an object of type %.100s has no qualified name",
                         Py_TYPE((PyObject *)object)->tp_name);
}

static PyObject *show_argument(module_state *st, PyObject *object)
{
    if (is_node(st, object))  /* of another graph */
        return PyUnicode_FromFormat("%%%S", object);
    PyObject *custom = PyObject_GetAttrString(object, "_custom_fx_repr_fn");
    if (!custom) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return NULL;
        PyErr_Clear();  /* most objects have no spelling of their own */
        return PyObject_Str(object);
    }
    PyObject *text = PyObject_CallNoArgs(custom);
    Py_DECREF(custom);
    return text;
}

static cfx_status show(void *ctx, void *object, cfx_show where, cfx_sink out, cfx_error *err)
{
    if (PyErr_Occurred())
        return failed(err);
    switch (where) {
    case CFX_SHOW_ARG:
        return write_result(show_argument(ctx, object), out, err);
    case CFX_SHOW_STR:
        return write_result(PyObject_Str(object), out, err);
    case CFX_SHOW_TYPE:
        return write_result(type_repr(object), out, err);
    case CFX_SHOW_TARGET:
        break;
    }
    return qualified_name(ctx, object, out, err);
}

static cfx_status name_hint(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    module_state *st = ctx;
    return write_result(PyObject_GetAttr(object, st->str_name), out, err);
}

static cfx_status resolve(void *ctx, const char *name, void **object, cfx_error *err)
{
    *object = resolve_name(ctx, name, strlen(name));
    return PyErr_Occurred() ? failed(err) : CFX_OK;
}

/* Objects that cannot be compared (tensors, say) are equal only if they are the same. */
static int equal(void *ctx, void *a, void *b)
{
    (void)ctx;
    if (a == b)
        return 1;
    if (Py_TYPE((PyObject *)a) != Py_TYPE((PyObject *)b))
        return 0;
    PyObject *answer = PyObject_RichCompare(a, b, Py_EQ);
    if (!answer && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;  /* an interrupt is not an answer */
    if (!answer)
        PyErr_Clear();  /* as said above: no answer means different */
    int same = answer == Py_True;
    Py_XDECREF(answer);
    return same;
}

static void *bind_region(void *ctx, cfx_graph *region) { return graph_wrap(ctx, region); }

static void unbind(void *ctx, void *binding)
{
    (void)ctx;
    PyNode *node = binding;
    if (!node->owned)
        return;
    node->owned = false;
    node_graph(node)->n_owned--;
    Py_DECREF((PyObject *)node);
}

static void retarget(void *ctx, cfx_node *n)
{
    (void)ctx;
    if (!node_retarget(cfx_node_binding(n)))
        PyErr_Clear();  /* out of memory: the Node goes on showing what it showed */
}

/* What shape propagation and its like have put there. */
static void outdate(void *ctx, cfx_node *n)
{
    static const char *const keys[] = {"tensor_meta", "val", "example_value"};
    PyNode *node = cfx_node_binding(n);
    (void)ctx;
    for (size_t i = 0; node->meta && i < sizeof keys / sizeof *keys; i++)
        if (PyDict_GetItemString(node->meta, keys[i]) &&
            PyDict_DelItemString(node->meta, keys[i]) < 0)
            PyErr_Clear();  /* out of memory */
}

static int is_impure(void *ctx, cfx_node *n)
{
    module_state *st = ctx;
    if (PyErr_Occurred())
        return -1;
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? call_glue(st, "is_impure", node) : NULL;
    int impure = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(node);
    return impure;
}

/* Whether NumPy has made it to hold one number of this kind ("int", "float", ...). */
static bool is_numpys(PyObject *o, const char *kind)
{
    const char *name = Py_TYPE(o)->tp_name;
    return strncmp(name, "numpy.", 6) == 0 && strncmp(name + 6, kind, strlen(kind)) == 0;
}

/* Subclasses of int and float, and the numbers of NumPy's that are none. */
static cfx_status number(void *ctx, void *object, cfx_value *out, cfx_error *err)
{
    (void)ctx;
    PyObject *o = object;
    PyObject *own = NULL;  /* as a number of Python's */
    if (PyErr_Occurred())
        return failed(err);
    if (is_numpys(o, "bool")) {
        const int truth = PyObject_IsTrue(o);
        *out = truth < 0 ? *out : cfx_value_bool(truth);
        return truth < 0 ? failed(err) : CFX_OK;
    }
    if (PyFloat_Check(o) || is_numpys(o, "float"))
        own = PyNumber_Float(o);
    else if (PyLong_Check(o) || is_numpys(o, "int") || is_numpys(o, "uint"))
        own = PyNumber_Index(o);
    else
        return CFX_OK;
    int overflow = 0;
    if (own && PyFloat_Check(own))
        *out = cfx_value_float(PyFloat_AS_DOUBLE(own));
    else if (own) {
        const long long value = PyLong_AsLongLongAndOverflow(own, &overflow);
        *out = overflow ? *out : cfx_value_int(value);
    }
    Py_XDECREF(own);
    return own ? CFX_OK : failed(err);
}

void host_init(module_state *st)
{
    st->host = (cfx_host){
        .retain = retain,
        .release = release,
        .repr = repr,
        .show = show,
        .qualified_name = qualified_name,
        .resolve = resolve,
        .name_hint = name_hint,
        .equal = equal,
        .bind_region = bind_region,
        .unbind = unbind,
        .retarget = retarget,
        .outdate = outdate,
        .is_impure = is_impure,
        .number = number,
        .ctx = st,
    };
}
