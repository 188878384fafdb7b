/* script_operate.c - the world of scripts: operators, items, truth, iteration, text.
 *
 * Where a class of the user's has an operator with a source, the evaluator runs it; where a graph
 * value or a tensor of the program is an operand, a node is recorded; all else is Python's own.
 */
#include "scripting.h"

#include <cfx/ops.h>

/* ---- the signs ----------------------------------------------------------------------------- */

/* What `operator` calls them, and what stands between the underscores of their methods. */
static const struct { const char *function, *in_place, *method; } names[CFX_SIGNS] = {
#define CFX_SIGN_UNARY(id, sign, function, ast) [CFX_SIGN_##id] = {function, NULL, function},
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, ...)                                 \
    [CFX_SIGN_##id] = {function, in_place, method},
#define CFX_SIGN_COMPARE(id, sign, function, ...) [CFX_SIGN_##id] = {function, NULL, function},
#define CFX_SIGN_WORD(id, words, function, ast) [CFX_SIGN_##id] = {function, NULL, function},
#include <cfx/embed/sign.def>
};

enum { METHOD_SIZE = 24 };

/* "__add__", "__radd__" or "__iadd__", by what stands before the name. */
static const char *method_name(cfx_script_sign sign, const char *before, char out[METHOD_SIZE])
{
    snprintf(out, METHOD_SIZE, "__%s%s__", before, names[sign].method);
    return out;
}

typedef PyObject *binary_fn(PyObject *, PyObject *);
typedef struct sign_row {
    binary_fn *plain, *in_place;
} sign_row;

static PyObject *power(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
static PyObject *power_in_place(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

#define ROW(id, name) [CFX_SIGN_##id] = {PyNumber_##name, PyNumber_InPlace##name}
static const sign_row rows[CFX_SIGNS] = {
    ROW(ADD, Add), ROW(SUB, Subtract), ROW(MUL, Multiply), ROW(MATMUL, MatrixMultiply),
    ROW(TRUEDIV, TrueDivide), ROW(MOD, Remainder), [CFX_SIGN_POW] = {power, power_in_place},
    ROW(LSHIFT, Lshift), ROW(RSHIFT, Rshift), ROW(OR, Or), ROW(XOR, Xor), ROW(AND, And),
    ROW(FLOORDIV, FloorDivide),
};

/* ---- the user's own operators -------------------------------------------------------------- */

/* Whether o's class may be the user's. */
static bool may_be_users(const PyScript *w, PyObject *o)
{
    if (Py_TYPE(o) == (PyTypeObject *)w->st->ProxyType)
        return false;
    return is_instance(w->st, o) || is_nn_module(w->st, o) ||
           PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE);
}

PyObject *script_call_users(PyScript *w, PyObject *o, const char *method, PyObject *other)
{
    if (!may_be_users(w, o))
        return NULL;
    PyObject *name = PyUnicode_InternFromString(method);
    PyObject *function = name ? users_method(w, Py_TYPE(o), name) : NULL;
    PyObject *const args[2] = {o, other};
    PyObject *result = function ? script_call(w, function, args, other ? 2 : 1, NULL) : NULL;
    Py_XDECREF(name);
    if (result == Py_NotImplemented)
        Py_CLEAR(result);
    return result;
}

/* The same for the method of an operator; see method_name. */
static PyObject *call_operator(PyScript *w, PyObject *o, cfx_script_sign sign, const char *before,
                               PyObject *other)
{
    char name[METHOD_SIZE];
    if (!may_be_users(w, o))
        return NULL;
    return script_call_users(w, o, method_name(sign, before, name), other);
}

/* a.__add__(b), then b.__radd__(a), of classes of the user's. */
static PyObject *users_binary(PyScript *w, cfx_script_sign sign, PyObject *a, PyObject *b,
                              bool in_place)
{
    PyObject *result = NULL;
    if (in_place)
        result = call_operator(w, a, sign, "i", b);
    if (!result && !PyErr_Occurred())
        result = call_operator(w, a, sign, "", b);
    if (!result && !PyErr_Occurred() && Py_TYPE(a) != Py_TYPE(b))
        result = call_operator(w, b, sign, "r", a);
    return result;
}

/* ---- operators ----------------------------------------------------------------------------- */

static PyObject *unary(PyScript *w, cfx_script_sign sign, PyObject *o)
{
    PyObject *a = script_read(w, o);
    PyObject *result = NULL;
    if (!a)
        return NULL;
    if (sign == CFX_SIGN_NOT && is_proxy(w->st, a))
        result = script_record_operator(w, names[sign].function, &a, 1);
    else if (sign != CFX_SIGN_NOT)
        result = call_operator(w, a, sign, "", NULL);
    if (!result && !PyErr_Occurred()) {
        if (sign == CFX_SIGN_INVERT)
            result = PyNumber_Invert(a);
        else if (sign == CFX_SIGN_POS)
            result = PyNumber_Positive(a);
        else if (sign == CFX_SIGN_NEG)
            result = PyNumber_Negative(a);
        else {
            int truth = PyObject_IsTrue(a);
            result = truth < 0 ? NULL : PyBool_FromLong(!truth);
        }
    }
    Py_DECREF(a);
    return result;
}

static cfx_object *world_unary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_error *err)
{
    return script_result(ctx, unary(ctx, sign, py(a)), err);
}

/* Operands that are known, but have graph values inside: "%s" % (x,). */
static int formats_graph(PyScript *w, cfx_script_sign sign, PyObject *a, PyObject *b)
{
    return sign == CFX_SIGN_MOD && PyUnicode_Check(a) ? mentions_graph(w->st, b) : 0;
}

/* Calls a method that the class of a module has; refuses what it changes in the module. NULL
 * without an exception: it is not a module, or has no such method. */
static PyObject *call_of_module(PyScript *w, PyObject *o, const char *name, PyObject *const *args,
                                Py_ssize_t n)
{
    if (!is_nn_module(w->st, o) || !PyObject_HasAttrString((PyObject *)Py_TYPE(o), name))
        return NULL;
    PyObject *method = PyObject_GetAttrString(o, name);
    PyObject *all = method ? tuple_of(args, n) : NULL;
    PyObject *result = all ? script_call_changed(w, method, all, NULL) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(method);
    return result;
}

static PyObject *known_binary(PyScript *w, cfx_script_sign sign, PyObject *a, PyObject *b,
                              bool in_place)
{
    const sign_row *row = &rows[sign];
    int formats = formats_graph(w, sign, a, b);
    if (formats < 0)
        return NULL;
    PyObject *const args[2] = {a, b};
    if (formats || (in_place && is_proxy(w->st, a)))
        return script_record_operator(w, in_place && !formats ? names[sign].in_place
                                                              : names[sign].function, args, 2);
    PyObject *result = users_binary(w, sign, a, b, in_place);
    if (!result && !PyErr_Occurred() && in_place) {
        char name[METHOD_SIZE];
        result = call_of_module(w, a, method_name(sign, "i", name), &b, 1);
    }
    if (result || PyErr_Occurred())
        return result;
    if (script_check_opaque(w, a) < 0 || script_check_opaque(w, b) < 0)
        return NULL;
    const bool text = sign == CFX_SIGN_MOD && PyUnicode_Check(a);
    w->in_text += text;
    result = in_place ? row->in_place(a, b) : row->plain(a, b);
    w->in_text -= text;
    return result;
}

/* Whether it is a member of an enum, whose class is not left in a graph. */
static bool is_enum_number(PyObject *o)
{
    return (PyLong_Check(o) || PyFloat_Check(o)) && !PyLong_CheckExact(o) && !PyBool_Check(o) &&
           strncmp(Py_TYPE(Py_TYPE(o))->tp_name, "Enum", 4) == 0;
}

/* An operand as script_read gives it; but numpy's numbers would take a graph value for an array,
 * and members of an IntEnum are the numbers they stand for. */
static PyObject *operand(PyScript *w, PyObject *o, PyObject *other)
{
    if (is_graph_like(w->st, other) && is_numpy_scalar(o))
        return PyObject_CallMethod(o, "item", NULL);
    if (is_graph_like(w->st, other) && is_enum_number(o))
        return PyLong_Check(o) ? PyNumber_Long(o) : PyNumber_Float(o);
    return script_read(w, o);
}

static PyObject *binary(PyScript *w, cfx_script_sign sign, PyObject *left, PyObject *right,
                        bool in_place)
{
    PyObject *a = operand(w, left, right);
    PyObject *b = a ? operand(w, right, left) : NULL;
    PyObject *result = b ? known_binary(w, sign, a, b, in_place) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return result;
}

static cfx_object *world_binary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                                bool in_place, cfx_error *err)
{
    return script_result(ctx, binary(ctx, sign, py(a), py(b), in_place), err);
}

/* ---- comparisons --------------------------------------------------------------------------- */

/* A dict with these keys, in order if there is one. */
static PyObject *dict_of_keys(PyObject *keys)
{
    PyObject *items = PySequence_List(keys);
    PyObject *dict = items ? PyDict_New() : NULL;
    if (items && PyAnySet_Check(keys) && PyList_Sort(items) < 0)
        PyErr_Clear();  /* any order does */
    for (Py_ssize_t i = 0; dict && i < PyList_GET_SIZE(items); i++)
        if (PyDict_SetItem(dict, PyList_GET_ITEM(items, i), Py_None) < 0)
            Py_CLEAR(dict);
    Py_XDECREF(items);
    return dict;
}

/* What a graph can hold of the view of a dict: a list of its values or items; of keys and sets a
 * dict, since a tensor is looked for among keys by identity. */
static PyObject *items_of_view(PyObject *container)
{
    if (PyDictKeys_Check(container) || PyAnySet_Check(container))
        return dict_of_keys(container);
    if (!PyDictViewSet_Check(container) && !PyDictValues_Check(container))
        return Py_NewRef(container);
    return PySequence_List(container);
}

static PyObject *record_contains(PyScript *w, PyObject *item, PyObject *container)
{
    PyObject *items = items_of_view(container);
    PyObject *const args[2] = {items, item};
    PyObject *found = items ? script_record_operator(w, "contains", args, 2) : NULL;
    Py_XDECREF(items);
    return found;
}

/* Whether items are found by their hash: a tensor's is its identity. */
static bool is_hashed(PyObject *container)
{
    return PyAnySet_Check(container) || PyDict_Check(container) || PyDictKeys_Check(container);
}

/* Whether `item in container` depends on a graph value: on the item, or one in a list. */
static int asks_graph(PyScript *w, PyObject *item, PyObject *container)
{
    if (is_hashed(container) && !is_proxy(w->st, item) && is_tensor(w->st, item))
        return 0;
    if (is_graph_like(w->st, container) || is_graph_like(w->st, item))
        return 1;
    int inside = mentions_graph(w->st, item);
    const bool list = PyList_CheckExact(container) || PyTuple_CheckExact(container);
    return inside == 0 && list ? mentions_graph(w->st, container) : inside;
}

/* `item in container`; graph values of either sort are recorded. */
static PyObject *contains(PyScript *w, PyObject *item, PyObject *container, bool negated)
{
    if (container == w->st->script_environ)
        return script_refuse(w, "os.environ is read once, during capture; use os.getenv(...) is "
                             "not None, which the graph calls");
    /* a container that is known is looked through by identity first: a tensor's own == says more */
    PyObject *found = script_call_users(w, container, "__contains__", item);
    int symbolic = found || PyErr_Occurred() ? 0 : asks_graph(w, item, container);
    if (symbolic > 0) {
        found = record_contains(w, item, container);
    } else if (!found && !PyErr_Occurred()) {
        const bool hashed = PyDict_CheckExact(container) || PyAnySet_Check(container);
        if (!hashed && (script_check_stale(w, container) < 0 || script_check_stale(w, item) < 0))
            return NULL;
        int is_in = PySequence_Contains(container, item);
        found = is_in < 0 ? NULL : PyBool_FromLong(is_in);
    }
    PyObject *result = found && negated ? unary(w, CFX_SIGN_NOT, found) : Py_XNewRef(found);
    Py_XDECREF(found);
    return result;
}

/* Whether a module is torch's own: none of those gives None. */
static bool is_torchs_module(PyScript *w, const char *path)
{
    PyObject *root = PyObject_GetAttr((PyObject *)w->tracer, w->st->str_root);
    PyObject *text = root ? PyUnicode_FromString(path) : NULL;
    PyObject *module = text ? path_get(w->st, root, text) : NULL;
    bool is = module && is_nn_module(w->st, module) && module_is_leaf(w->st, module);
    Py_XDECREF(module);
    Py_XDECREF(text);
    Py_XDECREF(root);
    PyErr_Clear();  /* a path that leads nowhere */
    return is;
}

static bool is_result_of_torchs_module(PyScript *w, PyObject *proxy)
{
    const cfx_node *n = w->world.node(w, object(proxy));
    const char *target = n ? cfx_node_target(n, NULL, NULL) : NULL;
    return target && cfx_node_op(n) == CFX_OP_CALL_MODULE && is_torchs_module(w, target);
}

static PyObject *identity(PyScript *w, PyObject *a, PyObject *b, bool negated)
{
    PyObject *const args[2] = {a, b};
    PyObject *other = a == Py_None ? b : b == Py_None ? a : NULL;
    if (other && is_proxy(w->st, other) && is_result_of_torchs_module(w, other))
        return PyBool_FromLong(negated);
    if (is_proxy(w->st, a) || is_proxy(w->st, b))
        return script_record_operator(w, negated ? "is_not" : "is_", args, 2);
    return PyBool_FromLong((a == b) != negated);
}

/* Python compares them: objects without == of their own by identity. */
static int check_compared(PyScript *w, PyObject *o)
{
    return Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare
               ? 0 : script_check_stale(w, o);
}

static PyObject *compare_values(PyScript *w, cfx_script_sign sign, PyObject *a, PyObject *b)
{
    static const struct { int op; cfx_script_sign mirrored; } how[] = {
        [CFX_SIGN_EQ] = {Py_EQ, CFX_SIGN_EQ}, [CFX_SIGN_NE] = {Py_NE, CFX_SIGN_NE},
        [CFX_SIGN_LT] = {Py_LT, CFX_SIGN_GT}, [CFX_SIGN_LE] = {Py_LE, CFX_SIGN_GE},
        [CFX_SIGN_GT] = {Py_GT, CFX_SIGN_LT}, [CFX_SIGN_GE] = {Py_GE, CFX_SIGN_LE},
    };
    PyObject *const args[2] = {a, b};
    int inside = is_proxy(w->st, a) || is_proxy(w->st, b) ? 0 : mentions_graph(w->st, a);
    if (inside == 0 && !is_proxy(w->st, a) && !is_proxy(w->st, b))
        inside = mentions_graph(w->st, b);
    if (inside != 0)  /* Python would ask each item for its truth */
        return inside < 0 ? NULL : script_record_operator(w, names[sign].function, args, 2);
    PyObject *result = call_operator(w, a, sign, "", b);
    if (!result && !PyErr_Occurred() && Py_TYPE(a) != Py_TYPE(b))
        result = call_operator(w, b, how[sign].mirrored, "", a);
    if (result || PyErr_Occurred() || check_compared(w, a) < 0 ||
        check_compared(w, b) < 0)
        return result;
    return PyObject_RichCompare(a, b, how[sign].op);
}

static PyObject *compare(PyScript *w, cfx_script_sign sign, PyObject *left, PyObject *right)
{
    if (sign == CFX_SIGN_IS || sign == CFX_SIGN_IS_NOT)
        return identity(w, left, right, sign == CFX_SIGN_IS_NOT);
    if (sign == CFX_SIGN_IN || sign == CFX_SIGN_NOT_IN)
        return contains(w, left, right, sign == CFX_SIGN_NOT_IN);
    PyObject *a = operand(w, left, right);
    PyObject *b = a ? operand(w, right, left) : NULL;
    PyObject *result = b ? compare_values(w, sign, a, b) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return result;
}

static cfx_object *world_compare(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                                 cfx_error *err)
{
    return script_result(ctx, compare(ctx, sign, py(a), py(b)), err);
}

/* ---- truth --------------------------------------------------------------------------------- */

/* Whether its class says more than that it is there. */
static bool has_truth(PyObject *o)
{
    const PyTypeObject *type = Py_TYPE(o);
    return (type->tp_as_number && type->tp_as_number->nb_bool) ||
           (type->tp_as_sequence && type->tp_as_sequence->sq_length) ||
           (type->tp_as_mapping && type->tp_as_mapping->mp_length);
}

static int truth(PyScript *w, PyObject *o)
{
    if (is_graph_like(w->st, o)) {
        refuse(w->st, "bool", o);
        return -1;
    }
    PyObject *answer = script_call_users(w, o, "__bool__", NULL);
    if (!answer && !PyErr_Occurred())
        answer = script_call_users(w, o, "__len__", NULL);
    if (PyErr_Occurred() || (!answer && has_truth(o) && script_check_opaque(w, o) < 0))
        return -1;
    int is = answer && is_proxy(w->st, answer) ? (refuse(w->st, "bool", answer), -1)
                                               : PyObject_IsTrue(answer ? answer : o);
    Py_XDECREF(answer);
    return is;
}

static int world_truth(void *ctx, cfx_object *o, cfx_error *err)
{
    int is = truth(ctx, py(o));
    if (is < 0)
        script_failed(ctx, err);
    return is;
}

/* ---- items --------------------------------------------------------------------------------- */

/* What os.environ has is asked when the graph runs. */
static PyObject *refuse_environment(PyScript *w)
{
    return script_refuse(w, "os.environ is read once, during capture; use os.getenv, which the "
                         "graph calls");
}

static PyObject *refuse_to_set_environment(PyScript *w)
{
    return script_refuse(w, "os.environ would change once, during capture, not when the graph "
                         "runs; change it before the call");
}

static PyObject *item(PyScript *w, PyObject *container, PyObject *key)
{
    PyObject *o = container == w->st->script_environ ? refuse_environment(w)
                                                     : script_read(w, container);
    PyObject *result = NULL;
    if (!o)
        return NULL;
    PyObject *const args[2] = {o, key};
    int symbolic = (is_mutable(o) && !has_missing(o)) || PyTuple_Check(o) || PyUnicode_Check(o);
    if (symbolic && (!is_graph_like(w->st, key) || (PyDict_Check(o) && !is_proxy(w->st, key))))
        symbolic = PySlice_Check(key) ? mentions_graph(w->st, key) : 0;
    if (symbolic > 0)  /* a key that is a graph value is looked up when the graph runs */
        result = script_record_operator(w, "getitem", args, 2);
    else if (symbolic < 0)
        result = NULL;
    else if (!(result = script_call_users(w, o, "__getitem__", key)) && !PyErr_Occurred() &&
             script_check_opaque(w, o) == 0)
        result = PyObject_GetItem(o, key);
    Py_DECREF(o);
    return result;
}

static cfx_object *world_item(void *ctx, cfx_object *o, cfx_object *key, cfx_error *err)
{
    return script_result(ctx, item(ctx, py(o), py(key)), err);
}

static int change_item(PyScript *w, PyObject *o, PyObject *key, PyObject *v)
{
    PyObject *const args[3] = {o, key, v};
    PyObject *done = NULL;
    if (is_proxy(w->st, o)) {
        done = script_record_operator(w, v ? "setitem" : "delitem", args, v ? 3 : 2);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    PyObject *name = PyUnicode_InternFromString(v ? "__setitem__" : "__delitem__");
    PyObject *method = name ? users_method(w, Py_TYPE(o), name) : NULL;
    Py_XDECREF(name);
    if (method) {
        done = script_call(w, method, args, v ? 3 : 2, NULL);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    if (!PyErr_Occurred())
        done = call_of_module(w, o, v ? "__setitem__" : "__delitem__", args + 1, v ? 2 : 1);
    if (done || PyErr_Occurred()) {
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    return v ? PyObject_SetItem(o, key, v) : PyObject_DelItem(o, key);
}

static cfx_status world_set_item(void *ctx, cfx_object *container, cfx_object *key, cfx_object *v,
                                 cfx_error *err)
{
    PyScript *w = ctx;
    PyObject *o = py(container) == w->st->script_environ ? refuse_to_set_environment(w)
                                                         : script_read(w, py(container));
    int failed = o ? change_item(ctx, o, py(key), py(v)) : -1;
    Py_XDECREF(o);
    return failed ? script_failed(ctx, err) : CFX_OK;
}

/* ---- iteration ----------------------------------------------------------------------------- */

/* The rows of a tensor of the program, whose number is known. */
static PyObject *iterate_tensor(PyScript *w, PyObject *tensor)
{
    Py_ssize_t n = PyObject_Length(tensor);
    PyObject *proxy = n < 0 ? NULL : script_read(w, tensor);
    PyObject *rows_ = proxy ? PyTuple_New(n) : NULL;
    for (Py_ssize_t i = 0; rows_ && i < n; i++) {
        PyObject *index = PyLong_FromSsize_t(i);
        PyObject *row = index ? PyObject_GetItem(proxy, index) : NULL;
        Py_XDECREF(index);
        if (row)
            PyTuple_SET_ITEM(rows_, i, row);
        else
            Py_CLEAR(rows_);
    }
    PyObject *iterator = rows_ ? PyObject_GetIter(rows_) : NULL;
    Py_XDECREF(rows_);
    Py_XDECREF(proxy);
    return iterator;
}

static PyObject *iterate(PyScript *w, PyObject *o)
{
    if (is_proxy(w->st, o))
        return refuse(w->st, "iter", o);
    if (is_tensor(w->st, o))
        return iterate_tensor(w, o);
    PyObject *iterator = script_call_users(w, o, "__iter__", NULL);
    return iterator || PyErr_Occurred() || script_check_opaque(w, o) < 0 ? iterator
                                                                         : PyObject_GetIter(o);
}

static cfx_object *world_iterate(void *ctx, cfx_object *o, cfx_error *err)
{
    return script_result(ctx, iterate(ctx, py(o)), err);
}

static cfx_object *world_next(void *ctx, cfx_object *iterator, cfx_error *err)
{
    PyScript *w = ctx;
    if (err)
        err->status = CFX_OK;
    PyObject *value = script_call_users(w, py(iterator), "__next__", NULL);
    if (!value && !PyErr_Occurred() && script_check_next(w, py(iterator)) == 0)
        value = PyIter_Check(py(iterator)) ? PyIter_Next(py(iterator))
                                           : PyObject_CallMethod(py(iterator), "__next__", NULL);
    if (!value && PyErr_ExceptionMatches(PyExc_StopIteration))
        PyErr_Clear();  /* the end, as the user's own iterator says it */
    return value || PyErr_Occurred() ? script_result(w, value, err) : NULL;
}

/* ---- text ---------------------------------------------------------------------------------- */

static PyObject *converted(PyObject *o, int conversion)
{
    if (conversion == 's')
        return PyObject_Str(o);
    if (conversion == 'r')
        return PyObject_Repr(o);
    return conversion == 'a' ? PyObject_ASCII(o) : Py_NewRef(o);
}

static PyObject *record_builtin(PyScript *w, const char *name, PyObject *const *args, Py_ssize_t n)
{
    PyObject *function = PyDict_GetItemString(PyEval_GetBuiltins(), name);
    return function ? script_record(w, function, args, n, NULL) : NULL;
}

/* A replacement field with a graph value in it: format(o, spec) or format(repr(o), spec). */
static PyObject *record_format(PyScript *w, PyObject *o, int conversion, PyObject *spec)
{
    const char *name = conversion == 'r' ? "repr" : conversion == 'a' ? "ascii" : "str";
    PyObject *text = conversion ? record_builtin(w, name, &o, 1) : Py_NewRef(o);
    PyObject *const args[2] = {text, spec};
    PyObject *result = NULL;
    if (text)  /* without a spec, the str.format that the text becomes does it */
        result = spec ? record_builtin(w, "format", args, 2) : Py_NewRef(text);
    Py_XDECREF(text);
    return result;
}

/* The text that a method of the user's class gives; NULL without an exception: it has none. */
static PyObject *users_text(PyScript *w, PyObject *o, int conversion, PyObject *spec)
{
    PyObject *text = NULL;
    if (!conversion) {
        PyObject *how = spec ? Py_NewRef(spec) : PyUnicode_FromString("");
        text = how ? script_call_users(w, o, "__format__", how) : NULL;
        Py_XDECREF(how);
    }
    if (text || PyErr_Occurred() || (!conversion && spec))
        return text;
    if (!conversion || conversion == 's')
        text = script_call_users(w, o, "__str__", NULL);
    return text || PyErr_Occurred() ? text : script_call_users(w, o, "__repr__", NULL);
}

static PyObject *format(PyScript *w, PyObject *o, int conversion, PyObject *spec)
{
    PyObject *own = users_text(w, o, conversion, spec);
    if (own && conversion && spec) {
        PyObject *text = format(w, own, 0, spec);
        Py_DECREF(own);
        return text;
    }
    if (own || PyErr_Occurred())
        return own;
    int symbolic = mentions_graph(w->st, o);
    if (symbolic == 0 && spec)
        symbolic = mentions_graph(w->st, spec);
    if (symbolic != 0)
        return symbolic < 0 ? NULL : record_format(w, o, conversion, spec);
    if (script_check_stale(w, o) < 0)
        return NULL;
    w->in_text++;
    PyObject *text = converted(o, conversion);
    PyObject *result = text ? PyObject_Format(text, spec) : NULL;
    w->in_text--;
    Py_XDECREF(text);
    return result;
}

static cfx_object *world_format(void *ctx, cfx_object *o, int conversion, cfx_object *spec,
                                cfx_error *err)
{
    return script_result(ctx, format(ctx, py(o), conversion, py(spec)), err);
}

void script_operate_entries(cfx_world *world)
{
    world->unary = world_unary;
    world->binary = world_binary;
    world->compare = world_compare;
    world->truth = world_truth;
    world->item = world_item;
    world->set_item = world_set_item;
    world->iterate = world_iterate;
    world->next = world_next;
    world->format = world_format;
}
