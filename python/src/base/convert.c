/* convert.c - Python objects to values and back: the only place that knows both. */
#include "trace/trace.h"

/* ---- strings ------------------------------------------------------------------------------- */

const char *utf8_of(PyObject *str, Py_ssize_t *size, PyObject **keep)
{
    *keep = NULL;
    const char *text = PyUnicode_AsUTF8AndSize(str, size);
    if (text || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return text;
    PyErr_Clear();  /* lone surrogates have no UTF-8: spell them as surrogatepass does */
    *keep = PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass");
    if (!*keep)
        return NULL;
    *size = PyBytes_GET_SIZE(*keep);
    return PyBytes_AS_STRING(*keep);
}

const char *c_string_of(PyObject *str, const char *what, PyObject **keep)
{
    Py_ssize_t size;
    *keep = NULL;
    if (!PyUnicode_Check(str)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str", what);
        return NULL;
    }
    const char *text = utf8_of(str, &size, keep);
    if (!text || strlen(text) == (size_t)size)
        return text;
    Py_CLEAR(*keep);
    PyErr_Format(PyExc_ValueError, "%s must not contain a NUL character", what);
    return NULL;
}

static bool is_ascii(const char *text, size_t size)
{
    uint64_t all = 0;
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        all |= word;
    }
    for (; i < size; i++)
        all |= (unsigned char)text[i];
    return (all & 0x8080808080808080u) == 0;
}

PyObject *str_from_utf8(const char *text, size_t size)
{
    if (!is_ascii(text, size))
        return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogatepass");
    PyObject *str = PyUnicode_New((Py_ssize_t)size, 127);
    if (str && size > 0)
        memcpy(PyUnicode_1BYTE_DATA(str), text, size);
    return str;
}

PyObject *name_object(module_state *st, const char *name, size_t size)
{
    PyObject *text = str_from_utf8(name, size);
    PyObject *object = text ? PyObject_CallOneArg(st->NameType, text) : NULL;
    Py_XDECREF(text);
    return object;
}

cfx_status write_str(PyObject *str, cfx_sink out, cfx_error *err)
{
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *text = PyUnicode_Check(str) ? utf8_of(str, &size, &keep) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a name must be a str");
        return cfx_error_set(err, CFX_E_HOST, "not a string");
    }
    cfx_status status = out.write(out.ctx, text, (size_t)size);
    Py_XDECREF(keep);
    return status == CFX_OK ? CFX_OK : cfx_error_set(err, status, "%s", cfx_status_text(status));
}

/* ---- to values ----------------------------------------------------------------------------- */

static cfx_value checked(cfx_value v, const cfx_error *err)
{
    if (v.kind == CFX_KIND_INVALID)
        raise_cfx(err);
    return v;
}

static cfx_value str_value(PyGraph *graph, PyObject *o)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep;
    const char *text = utf8_of(o, &size, &keep);
    if (!text)
        return cfx_value_invalid();
    cfx_value v = checked(cfx_value_str(graph->g, text, (size_t)size, &err), &err);
    Py_XDECREF(keep);
    return v;
}

static cfx_value host_value(PyGraph *graph, PyObject *o)
{
    cfx_error err = {0};
    const PyObject *theirs = graph->st->fx_node_class;
    if (theirs && PyObject_TypeCheck(o, (PyTypeObject *)theirs)) {
        PyErr_Format(PyExc_TypeError, "%S is a node of torch.fx and cannot be an argument here; "
                     "copy it with node_copy or graph_copy, or convert its graph with "
                     "cfx.interop.from_torch", o);
        return cfx_value_invalid();
    }
    return checked(cfx_value_host(graph->g, o, &err), &err);
}

static cfx_value int_value(PyGraph *graph, PyObject *o)
{
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow)
        return cfx_value_int(small);
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *digits = PyNumber_ToBase(o, 10);
    if (!digits && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();  /* more digits than sys.get_int_max_str_digits() allows */
        return host_value(graph, o);
    }
    const char *text = digits ? PyUnicode_AsUTF8AndSize(digits, &size) : NULL;
    cfx_value v = cfx_value_invalid();
    if (text)
        v = checked(cfx_value_integer(graph->g, text, (size_t)size, &err), &err);
    Py_XDECREF(digits);
    return v;
}

/* The items of a container on their way to a value. */
typedef struct item_list {
    cfx_value stack[8];
    cfx_value *items;
    Py_ssize_t n;
    Py_ssize_t capacity;
} item_list;

static bool items_begin(item_list *list, Py_ssize_t capacity)
{
    list->items = list->stack;
    list->n = 0;
    list->capacity = capacity;
    if (capacity > (Py_ssize_t)(sizeof list->stack / sizeof *list->stack))
        list->items = PyMem_New(cfx_value, (size_t)capacity);
    if (!list->items)
        PyErr_NoMemory();
    return list->items != NULL;
}

/* The container that the items make; they are discarded if it cannot be made. */
static cfx_value items_end(item_list *list, PyGraph *graph, cfx_kind kind, bool ok)
{
    cfx_error err = {0};
    cfx_value v = cfx_value_invalid();
    if (ok)
        v = checked(cfx_value_seq(graph->g, kind, list->items, (size_t)list->n, &err), &err);
    for (Py_ssize_t i = 0; v.kind == CFX_KIND_INVALID && i < list->n; i++)
        cfx_value_discard(graph->g, list->items[i]);
    if (list->items != list->stack)
        PyMem_Free(list->items);
    return v;
}

static bool items_add(item_list *list, cfx_value v)
{
    if (v.kind == CFX_KIND_INVALID)
        return false;
    if (list->n == list->capacity) {  /* a container that grew while it was being read */
        cfx_value *items = PyMem_New(cfx_value, (size_t)list->n * 2 + 8);
        if (!items) {
            PyErr_NoMemory();
            return false;
        }
        memcpy(items, list->items, (size_t)list->n * sizeof *items);
        if (list->items != list->stack)
            PyMem_Free(list->items);
        list->items = items;
        list->capacity = list->n * 2 + 8;
    }
    list->items[list->n++] = v;
    return true;
}

cfx_value args_from_array(PyGraph *graph, PyObject *const *args, Py_ssize_t n)
{
    item_list list;
    if (n == 0 || !items_begin(&list, n))
        return cfx_value_invalid();
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = items_add(&list, value_from_py(graph, args[i]));
    return items_end(&list, graph, CFX_KIND_TUPLE, ok);
}

/* A list or tuple. Items are borrowed one at a time: converting one may run Python code. */
static cfx_value seq_value(PyGraph *graph, PyObject *o, cfx_kind kind)
{
    item_list list;
    if (!items_begin(&list, PySequence_Fast_GET_SIZE(o)))
        return cfx_value_invalid();
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));
        ok = items_add(&list, value_from_py(graph, item));
        Py_DECREF(item);
    }
    return items_end(&list, graph, kind, ok);
}

static bool mentions_node(const module_state *st, PyObject *key)
{
    if (!PyTuple_Check(key))
        return is_node(st, key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (mentions_node(st, PyTuple_GET_ITEM(key, i)))
            return true;
    return false;
}

/* Nodes in keys are no uses, as in torch.fx: such a key is held as a plain object. */
static cfx_value key_value(PyGraph *graph, PyObject *key)
{
    if (graph->tracer && find_proxy(graph->st, key))
        refuse(graph->st, "key", key);
    if (PyErr_Occurred())
        return cfx_value_invalid();
    return mentions_node(graph->st, key) ? host_value(graph, key) : value_from_py(graph, key);
}

/* A keyword may be of any subclass of str: only its text matters to a call. */
static cfx_value keyword_value(PyGraph *graph, PyObject *key)
{
    return PyUnicode_Check(key) ? str_value(graph, key) : key_value(graph, key);
}

static cfx_value dict_value(PyGraph *graph, PyObject *o,
                            cfx_value convert_key(PyGraph *graph, PyObject *key))
{
    item_list list;
    PyObject *items = PyDict_Items(o);
    if (!items || !items_begin(&list, 2 * PyList_GET_SIZE(items))) {
        Py_XDECREF(items);
        return cfx_value_invalid();
    }
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(items); i++) {
        PyObject *pair = PyList_GET_ITEM(items, i);
        ok = items_add(&list, convert_key(graph, PyTuple_GET_ITEM(pair, 0))) &&
             items_add(&list, value_from_py(graph, PyTuple_GET_ITEM(pair, 1)));
    }
    Py_DECREF(items);
    return items_end(&list, graph, CFX_KIND_DICT, ok);
}

static cfx_value node_value(PyGraph *graph, PyObject *o)
{
    cfx_node *n = ((PyNode *)o)->n;
    if (cfx_node_graph(n) == graph->g)
        return cfx_value_node(n);
    if (!graph->tracer)
        return host_value(graph, o);
    refuse(graph->st, "foreign", o);
    return cfx_value_invalid();
}

/* What a tracer makes of an object: the node of a proxy, a new node for a tensor, ... The result is
 * taken as it is. Python code may run, which must not find this graph converting for a tracer. */
static cfx_value traced_value(PyGraph *graph, PyObject *o)
{
    PyTracer *tracer = graph->tracer;
    graph->tracer = NULL;
    PyObject *leaf = tracer_leaf(tracer, o);
    cfx_value v = cfx_value_invalid();
    if (leaf && is_node(graph->st, leaf)) {
        graph->tracer = tracer;
        v = node_value(graph, leaf);
    } else if (leaf) {
        v = value_from_py(graph, leaf);
    }
    graph->tracer = tracer;
    Py_XDECREF(leaf);
    return v;
}

static cfx_value namedtuple_value(PyGraph *graph, PyObject *o, PyObject *fields)
{
    item_list list;
    PyObject *names = PySequence_Tuple(fields);
    if (!names || !items_begin(&list, PyTuple_GET_SIZE(o) + 2)) {
        Py_XDECREF(names);
        return cfx_value_invalid();
    }
    bool ok = items_add(&list, host_value(graph, (PyObject *)Py_TYPE(o))) &&
              items_add(&list, seq_value(graph, names, CFX_KIND_TUPLE));
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(o); i++)
        ok = items_add(&list, value_from_py(graph, PyTuple_GET_ITEM(o, i)));
    Py_DECREF(names);
    return items_end(&list, graph, CFX_KIND_NAMEDTUPLE, ok);
}

static cfx_value tuple_value(PyGraph *graph, PyObject *o)
{
    if (PyTuple_CheckExact(o))
        return seq_value(graph, o, CFX_KIND_TUPLE);
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(o), graph->st->str_fields);
    if (!fields) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return cfx_value_invalid();
        PyErr_Clear();  /* no fields: a tuple of a class of its own, taken for a tuple */
        return seq_value(graph, o, CFX_KIND_TUPLE);
    }
    cfx_value v = graph->tracer && is_full_tracer(graph->st, graph->tracer)
                      ? traced_value(graph, o)
                      : namedtuple_value(graph, o, fields);
    Py_DECREF(fields);
    return v;
}

static bool is_plain(cfx_value v) { return v.kind <= CFX_KIND_COMPLEX; }

/* Sets of plain values become values; others stay what they are, as in torch.fx. */
static cfx_value set_value(PyGraph *graph, PyObject *o, cfx_kind kind)
{
    item_list list;
    PyObject *members = PySequence_List(o);
    if (!members || !items_begin(&list, PyList_GET_SIZE(members))) {
        Py_XDECREF(members);
        return cfx_value_invalid();
    }
    bool ok = true;
    bool plain = true;
    for (Py_ssize_t i = 0; ok && plain && i < PyList_GET_SIZE(members); i++) {
        ok = items_add(&list, key_value(graph, PyList_GET_ITEM(members, i)));
        plain = !ok || is_plain(list.items[list.n - 1]);
    }
    Py_DECREF(members);
    cfx_value v = items_end(&list, graph, kind, ok && plain);
    return plain ? v : host_value(graph, o);
}

static cfx_value parts_value(PyGraph *graph, cfx_kind kind, PyObject *const *parts)
{
    item_list list;
    bool ok = items_begin(&list, 3);
    for (int i = 0; ok && i < 3; i++)
        ok = items_add(&list, value_from_py(graph, parts[i]));
    return items_end(&list, graph, kind, ok);
}

static cfx_value range_value(PyGraph *graph, PyObject *o)
{
    PyObject *parts[3] = {PyObject_GetAttrString(o, "start"), PyObject_GetAttrString(o, "stop"),
                          PyObject_GetAttrString(o, "step")};
    cfx_value v = cfx_value_invalid();
    if (parts[0] && parts[1] && parts[2])
        v = parts_value(graph, CFX_KIND_RANGE, parts);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    return v;
}

/* torch's dtypes, layouts and memory formats are looked up among the objects that
 * cfx/_glue/torch_values.py registered: token_types maps a type to (kind, {object: number}) or,
 * for devices, (kind, None). */
static cfx_value token_value(PyGraph *graph, PyObject *o, PyObject *row)
{
    cfx_error err = {0};
    cfx_kind kind = (cfx_kind)PyLong_AsLong(PyTuple_GET_ITEM(row, 0));
    PyObject *numbers = PyTuple_GET_ITEM(row, 1);
    if (kind == CFX_KIND_DEVICE) {
        PyObject *name = PyObject_Str(o);
        Py_ssize_t size;
        const char *text = name ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
        cfx_value v = cfx_value_invalid();
        if (text)
            v = checked(cfx_value_device(graph->g, text, (size_t)size, &err), &err);
        Py_XDECREF(name);
        return v;
    }
    PyObject *number = PyDict_GetItemWithError(numbers, o);
    if (!number)
        return PyErr_Occurred() ? cfx_value_invalid() : host_value(graph, o);
    return cfx_value_scalar(kind, PyLong_AsLong(number));
}

const char *token_name(cfx_kind kind, int64_t number)
{
    switch (kind) {
    case CFX_KIND_DTYPE:
        return number < CFX_DTYPE_COUNT ? cfx_dtype_name((cfx_dtype)number) : NULL;
    case CFX_KIND_LAYOUT:
        return number < CFX_LAYOUT_COUNT ? cfx_layout_name((cfx_layout)number) : NULL;
    case CFX_KIND_MEMORY_FORMAT:
        return number < CFX_MEMORY_FORMAT_COUNT
                   ? cfx_memory_format_name((cfx_memory_format)number) : NULL;
    default:
        return NULL;
    }
}

/* A Name stands for an object that is not loaded, or for a token of torch's without torch. */
static cfx_value name_value(PyGraph *graph, PyObject *o)
{
    cfx_error err = {0};
    cfx_value v = cfx_value_invalid();
    PyObject *token = PyObject_GetAttrString(o, "token");
    int kind = 0;
    const char *name = NULL;
    Py_ssize_t size = 0;
    if (!token)
        return v;
    if (token == Py_None)
        name = PyUnicode_AsUTF8AndSize(o, &size);
    else if (!PyArg_ParseTuple(token, "is#:token", &kind, &name, &size))
        name = NULL;
    if (name && token == Py_None)
        v = checked(cfx_value_name(graph->g, name, (size_t)size, &err), &err);
    else if (name && kind == CFX_KIND_DEVICE)
        v = checked(cfx_value_device(graph->g, name, (size_t)size, &err), &err);
    for (int64_t i = 0; name && v.kind == CFX_KIND_INVALID && token_name((cfx_kind)kind, i); i++)
        if (strcmp(token_name((cfx_kind)kind, i), name) == 0)
            v = cfx_value_scalar((cfx_kind)kind, i);
    if (v.kind == CFX_KIND_INVALID && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "'%S' is not the name of a token", o);
    Py_DECREF(token);
    return v;
}

static bool is_torch_token(const module_state *st, PyObject *o)
{
    return PyDict_GetItemWithError(st->token_types, (PyObject *)Py_TYPE(o)) != NULL;
}

static cfx_value other_value(PyGraph *graph, PyObject *o)
{
    module_state *st = graph->st;
    if (graph->tracer && !is_graph(st, o) && !is_torch_token(st, o))
        return PyErr_Occurred() ? cfx_value_invalid() : traced_value(graph, o);
    cfx_error err = {0};
    if (is_graph(st, o))
        return checked(cfx_value_region(graph->g, ((PyGraph *)o)->g, &err), &err);
    if (PyDict_GET_SIZE(st->token_types) == 0) {  /* torch may have been loaded since */
        PyObject *torch = call_glue(st, "find_torch", Py_None);
        if (!torch)
            return cfx_value_invalid();
        Py_DECREF(torch);
    }
    PyObject *row = PyDict_GetItemWithError(st->token_types, (PyObject *)Py_TYPE(o));
    if (row)
        return token_value(graph, o, row);
    if (PyErr_Occurred())
        return cfx_value_invalid();
    if (is_name(st, o))
        return name_value(graph, o);
    return host_value(graph, o);
}

static cfx_value container_value(PyGraph *graph, PyObject *o)
{
    if (PyTuple_Check(o))
        return tuple_value(graph, o);
    if (PyList_Check(o))
        return seq_value(graph, o, CFX_KIND_LIST);
    if (PyDict_Check(o))
        return dict_value(graph, o, key_value);
    if (PySlice_Check(o)) {
        PySliceObject *slice = (PySliceObject *)o;
        PyObject *parts[3] = {slice->start, slice->stop, slice->step};
        return parts_value(graph, CFX_KIND_SLICE, parts);
    }
    if (Py_TYPE(o) == &PyRange_Type)
        return range_value(graph, o);
    if (PySet_CheckExact(o) && !graph->tracer)
        return set_value(graph, o, CFX_KIND_SET);
    if (PyFrozenSet_CheckExact(o) && !graph->tracer)
        return set_value(graph, o, CFX_KIND_FROZENSET);
    return other_value(graph, o);
}

/* Python's own limit may have been raised above what the C stack has room for. */
static cfx_value nested_value(PyGraph *graph, PyObject *o)
{
    cfx_error err = {0};
    if (graph->nesting >= CFX_MAX_DEPTH) {
        cfx_error_set(&err, CFX_E_LIMIT, "an argument nests containers more than %d deep",
                      CFX_MAX_DEPTH);
        return checked(cfx_value_invalid(), &err);
    }
    if (enter_nested(" while reading the arguments of a node"))
        return cfx_value_invalid();
    graph->nesting++;
    cfx_value v = container_value(graph, o);
    graph->nesting--;
    leave_nested();
    return v;
}

cfx_value value_from_py(PyGraph *graph, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (type == (PyTypeObject *)graph->st->NodeType)
        return node_value(graph, o);
    if (type == (PyTypeObject *)graph->st->ProxyType && ((PyProxy *)o)->graph == graph &&
        graph->tracer)
        return cfx_value_node(((PyProxy *)o)->n);
    if (o == Py_None)
        return cfx_value_none();
    if (type == &PyLong_Type)
        return int_value(graph, o);
    if (type == &PyFloat_Type)
        return cfx_value_float(PyFloat_AS_DOUBLE(o));
    if (type == &PyBool_Type)
        return cfx_value_bool(o == Py_True);
    if (type == &PyUnicode_Type)
        return str_value(graph, o);
    if (o == Py_Ellipsis)
        return cfx_value_ellipsis();
    cfx_error err = {0};
    if (type == &PyBytes_Type && !graph->tracer)
        return checked(cfx_value_bytes(graph->g, PyBytes_AS_STRING(o),
                                       (size_t)PyBytes_GET_SIZE(o), &err), &err);
    if (type == &PyComplex_Type)
        return checked(cfx_value_complex(graph->g, PyComplex_RealAsDouble(o),
                                         PyComplex_ImagAsDouble(o), &err), &err);
    return nested_value(graph, o);
}

bool is_empty(PyObject *o)
{
    if (!o || o == Py_None)
        return true;
    return (PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 0) ||
           (PyList_Check(o) && PyList_GET_SIZE(o) == 0) ||
           (PyDict_Check(o) && PyDict_GET_SIZE(o) == 0);
}

cfx_value args_from_py(PyGraph *graph, PyObject *args)
{
    if (is_empty(args))
        return cfx_value_invalid();
    if (PyTuple_Check(args) || PyList_Check(args))
        return seq_value(graph, args, CFX_KIND_TUPLE);
    PyErr_Format(PyExc_AssertionError, "args must be a tuple, got %R", (PyObject *)Py_TYPE(args));
    return cfx_value_invalid();
}

cfx_value kwargs_from_py(PyGraph *graph, PyObject *kwargs)
{
    if (is_empty(kwargs))
        return cfx_value_invalid();
    if (PyDict_Check(kwargs))
        return dict_value(graph, kwargs, keyword_value);
    PyErr_Format(PyExc_AssertionError, "kwargs must be a dict, got %R",
                 (PyObject *)Py_TYPE(kwargs));
    return cfx_value_invalid();
}

/* ---- from values --------------------------------------------------------------------------- */

static PyObject *list_to_py(PyGraph *graph, const cfx_value *items, size_t n)
{
    PyObject *list = immutable_list_new(graph->st, (Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = value_to_py(graph, items[i]);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyObject *tuple_to_py(PyGraph *graph, const cfx_value *items, size_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple && i < n; i++) {
        PyObject *item = value_to_py(graph, items[i]);
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
    }
    return tuple;
}

static PyObject *dict_to_py(PyGraph *graph, const cfx_value *items, size_t n)
{
    PyObject *dict = immutable_dict_new(graph->st);
    for (size_t i = 0; dict && i < n; i += 2) {
        PyObject *key = value_to_py(graph, items[i]);
        PyObject *value = key ? value_to_py(graph, items[i + 1]) : NULL;
        if (!value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *call_with_items(PyGraph *graph, PyObject *callable, const cfx_value *items,
                                 size_t n)
{
    PyObject *args = tuple_to_py(graph, items, n);
    PyObject *result = args ? PyObject_CallObject(callable, args) : NULL;
    Py_XDECREF(args);
    return result;
}

static PyObject *set_to_py(PyGraph *graph, const cfx_value *items, size_t n, bool frozen)
{
    PyObject *members = tuple_to_py(graph, items, n);
    PyObject *set = NULL;
    if (members)
        set = frozen ? PyFrozenSet_New(members) : PySet_New(members);
    Py_XDECREF(members);
    return set;
}

static PyObject *slice_to_py(PyGraph *graph, const cfx_value *items)
{
    PyObject *parts = tuple_to_py(graph, items, 3);
    PyObject *slice = NULL;
    if (parts)
        slice = PySlice_New(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1),
                            PyTuple_GET_ITEM(parts, 2));
    Py_XDECREF(parts);
    return slice;
}

static PyObject *seq_to_py(PyGraph *graph, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_TUPLE:
        return tuple_to_py(graph, items, n);
    case CFX_KIND_LIST:
        return list_to_py(graph, items, n);
    case CFX_KIND_DICT:
        return dict_to_py(graph, items, n);
    case CFX_KIND_SLICE:
        return slice_to_py(graph, items);
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
        return set_to_py(graph, items, n, v.kind == CFX_KIND_FROZENSET);
    case CFX_KIND_COMPLEX:
        return PyComplex_FromDoubles(items[0].as.f, items[1].as.f);
    case CFX_KIND_RANGE:
        return call_with_items(graph, (PyObject *)&PyRange_Type, items, 3);
    default: {  /* NAMEDTUPLE, whose class may be known by name only */
        PyObject *class_ = value_to_py(graph, items[0]);
        PyObject *result = class_ ? call_with_items(graph, class_, items + 2, n - 2) : NULL;
        Py_XDECREF(class_);
        return result;
    }
    }
}

/* torch's object for a token, or its name where torch is not loaded. */
static PyObject *token_to_py(PyGraph *graph, cfx_value v)
{
    const char *name = v.kind == CFX_KIND_DEVICE ? cfx_value_text(v, NULL)
                                                 : token_name((cfx_kind)v.kind, v.as.i);
    PyObject *key = Py_BuildValue("(is)", (int)v.kind, name);
    PyObject *token = key ? call_glue(graph->st, "token", key) : NULL;
    Py_XDECREF(key);
    return token;
}

static PyObject *host_to_py(PyGraph *graph, cfx_value v)
{
    PyObject *object = cfx_value_object(v);
    if (object)
        return Py_NewRef(object);
    cfx_error err = {0};
    const char *name = cfx_value_host_name(graph->g, v, &err);
    return name ? name_object(graph->st, name, strlen(name)) : raise_cfx(&err);
}

PyObject *value_to_py(PyGraph *graph, cfx_value v)
{
    size_t size;
    const char *text;
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NODE:
        return node_wrap(graph, v.as.node);
    case CFX_KIND_NONE:
        Py_RETURN_NONE;
    case CFX_KIND_ELLIPSIS:
        return Py_NewRef(Py_Ellipsis);
    case CFX_KIND_BOOL:
        return PyBool_FromLong(v.as.i != 0);
    case CFX_KIND_INT:
        return PyLong_FromLongLong(v.as.i);
    case CFX_KIND_FLOAT:
        return PyFloat_FromDouble(v.as.f);
    case CFX_KIND_STR:
        text = cfx_value_text(v, &size);
        return str_from_utf8(text, size);
    case CFX_KIND_BYTES:
        text = cfx_value_text(v, &size);
        return PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
    case CFX_KIND_BIGINT:
        return PyLong_FromString(cfx_value_text(v, NULL), NULL, 10);
    case CFX_KIND_DTYPE:
    case CFX_KIND_LAYOUT:
    case CFX_KIND_MEMORY_FORMAT:
    case CFX_KIND_DEVICE:
        return token_to_py(graph, v);
    case CFX_KIND_HOST:
        return host_to_py(graph, v);
    case CFX_KIND_GRAPH:
        return graph_wrap(graph->st, cfx_value_graph(v));
    default:
        return seq_to_py(graph, v);
    }
}
