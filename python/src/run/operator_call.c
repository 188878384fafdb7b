/* operator_call.c - cfx.ops.add and the other rows of the operator table as functions. */
#include "base/pycfx.h"

#include <structmember.h>

enum { MOST_PARAMS = 32 };  /* bits of a mask; no row has as many */

typedef struct PyOperator {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    module_state *st;
    PyObject *module;      /* keeps `st` */
    PyObject *names;       /* of the parameters: interned */
    PyObject *name;
    cfx_operator op;
    int variadic;          /* the parameter that takes all further arguments, or -1 */
    uint32_t writes;       /* bit i: parameter i is written to */
    uint32_t dtypes;       /* bit i: it is an element type, for which a str may stand */
    bool changes_header;   /* in place, and the result is a view: squeeze_ */
    bool is_python;        /* Python does it to its own containers */
} PyOperator;

/* ---- arguments ----------------------------------------------------------------------------- */

/* The arguments by parameters, borrowed; `rest` receives those of a variadic one. */
typedef struct bound {
    PyObject *args[MOST_PARAMS];
    PyObject *rest;
    size_t n;  /* up to the last that is given */
} bound;

static Py_ssize_t param_index(const PyOperator *self, PyObject *name)
{
    Py_ssize_t n = PyTuple_GET_SIZE(self->names);
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyTuple_GET_ITEM(self->names, i) == name)
            return i;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(self->names, i), name) == 0)
            return i;
    /* functions of torch call the first one `input` */
    return n > 0 && PyUnicode_Compare(name, self->st->str_input) == 0 ? 0 : -1;
}

static bool bind_positions(PyOperator *self, PyObject *const *args, Py_ssize_t n, bound *b)
{
    Py_ssize_t room = PyTuple_GET_SIZE(self->names);
    Py_ssize_t fixed = self->variadic >= 0 && self->variadic < n ? self->variadic : n;
    if (self->variadic < 0 && n > room) {
        PyErr_Format(PyExc_TypeError, "%U() takes at most %zd arguments (%zd given)", self->name,
                     room, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < fixed; i++)
        b->args[i] = args[i];
    b->n = (size_t)fixed;
    if (fixed == n)
        return true;
    if (fixed + 1 == n && PyList_Check(args[fixed])) {  /* as a lowered graph passes them */
        b->args[fixed] = args[fixed];
        b->n = (size_t)n;
        return true;
    }
    b->rest = PyList_New(n - fixed);
    for (Py_ssize_t i = fixed; b->rest && i < n; i++)
        PyList_SET_ITEM(b->rest, i - fixed, Py_NewRef(args[i]));
    b->args[fixed] = b->rest;
    b->n = (size_t)fixed + 1;
    return b->rest != NULL;
}

static bool bind(PyOperator *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                 bound *b)
{
    *b = (bound){.rest = NULL};
    if (!bind_positions(self, args, nargs, b))
        return false;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        Py_ssize_t i = param_index(self, name);
        if (i < 0 || b->args[i]) {
            PyErr_Format(PyExc_TypeError, i < 0 ? "%U() got an unexpected keyword argument '%U'"
                                                : "%U() got multiple values for argument '%U'",
                         self->name, name);
            return false;
        }
        b->args[i] = args[nargs + k];
        if (b->n <= (size_t)i)
            b->n = (size_t)i + 1;
    }
    return true;
}

static bool convert_one(PyOperator *self, const bound *b, size_t i, cfx_datum *out,
                        arrays_seen *seen)
{
    cfx_dtype dtype;
    *out = cfx_datum_invalid();
    if (!b->args[i])
        return true;
    if ((self->dtypes & 1u << i) && PyUnicode_Check(b->args[i])) {
        if (!dtype_from_py(self->st, b->args[i], &dtype))
            return false;
        *out = cfx_datum_dtype(dtype);
        return true;
    }
    bool before = seen->copied;
    seen->copied = false;
    *out = datum_from_py(self->st, b->args[i], seen);
    bool lost = seen->copied && self->writes & 1u << i;
    seen->copied = seen->copied || before;
    if (out->kind != CFX_DATUM_INVALID && lost)
        PyErr_Format(PyExc_TypeError, "%U() would write to '%U', a lazy conjugate or negative "
                     "view; call resolve_conj() and resolve_neg() "
                     "on it first", self->name, PyTuple_GET_ITEM(self->names, i));
    return out->kind != CFX_DATUM_INVALID && !lost;
}

/* ---- what Python does itself --------------------------------------------------------------- */

static bool is_container(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o);
}

static bool is_sequence(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

/* Rows on Python's containers that leave their items alone: a list of a thousand tensors need not
 * become data to be asked for one. *done is false if the arguments are others. */
static PyObject *do_as_python(const PyOperator *self, PyObject *const *a, bool *done)
{
    const bool known = a[0] && a[1] && !is_cfx_tensor(self->st, a[1]);
    int failed = -1;
    *done = known && (self->op == CFX_OPID_getattr ? PyTuple_Check(a[0]) : is_container(a[0]));
    if (!*done)
        return NULL;
    switch (self->op) {
    case CFX_OPID_getattr: return PyObject_GetAttr(a[0], a[1]);  /* of a named tuple */
    case CFX_OPID_getitem: return PyObject_GetItem(a[0], a[1]);
    case CFX_OPID_setitem: failed = a[2] ? PyObject_SetItem(a[0], a[1], a[2]) : -1; break;
    case CFX_OPID_delitem: failed = PyObject_DelItem(a[0], a[1]); break;
    default: break;
    }
    if (self->op == CFX_OPID_setitem || self->op == CFX_OPID_delitem)
        return failed ? NULL : Py_NewRef(Py_None);
    const bool numbers = is_sequence(a[0]) && PyLong_Check(a[1]);
    const bool sequences = is_sequence(a[0]) && is_sequence(a[1]);
    const bool dicts = PyDict_Check(a[0]) && PyDict_Check(a[1]);
    *done = self->op == CFX_OPID_bitwise_or_ ? dicts
            : self->op == CFX_OPID_mul || self->op == CFX_OPID_mul_ ? numbers : sequences;
    if (!*done)
        return NULL;
    switch (self->op) {
    case CFX_OPID_add: return PyNumber_Add(a[0], a[1]);
    case CFX_OPID_add_: return PyNumber_InPlaceAdd(a[0], a[1]);
    case CFX_OPID_mul: return PyNumber_Multiply(a[0], a[1]);
    case CFX_OPID_mul_: return PyNumber_InPlaceMultiply(a[0], a[1]);
    default: return PyNumber_InPlaceOr(a[0], a[1]);
    }
}

/* ---- calling ------------------------------------------------------------------------------- */

static PyObject *compute(PyOperator *self, const bound *b)
{
    cfx_datum data[MOST_PARAMS];
    crossing both;
    shared_tensors shared = {0};
    arrays_seen seen = {.shared = self->changes_header ? &shared : NULL, .both = &both};
    size_t n = 0;
    bool ok = true;
    PyObject *result = NULL;
    crossing_begin(&both);
    for (; ok && n < b->n; n++)
        ok = convert_one(self, b, n, &data[n], &seen);
    if (ok) {
        cfx_datum computed = run_operator(self->st, self->op, data, n);
        /* An array of NumPy's keeps its shape: the result is another one. */
        const bool other = self->changes_header && seen.kind == ARRAY_NUMPY;
        if (computed.kind != CFX_DATUM_INVALID && shared_follow(&shared) == 0 &&
            crossing_write_back(self->st, &both, seen.kind))
            result = other ? datum_to_py(self->st, computed, seen.kind)
                           : datum_back_to_py(self->st, computed, seen.kind, &both);
        cfx_datum_release(computed);
    }
    while (n-- > 0)
        cfx_datum_release(data[n]);
    crossing_end(&both);
    shared_free(&shared);
    return result;
}

static PyObject *operator_call(PyObject *callable, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    PyOperator *self = (PyOperator *)callable;
    bound b;
    PyObject *result = NULL;
    bool done = false;
    if (bind(self, args, PyVectorcall_NARGS(nargsf), kwnames, &b)) {
        if (self->is_python && b.n == 2 + (self->op == CFX_OPID_setitem))
            result = do_as_python(self, b.args, &done);
        if (!done)
            result = compute(self, &b);
    }
    Py_XDECREF(b.rest);
    return result;
}

/* ---- the type ------------------------------------------------------------------------------ */

bool changes_header(cfx_operator op)
{
    cfx_schema_param result;
    const cfx_operator functional = cfx_operator_functional(op);
    return functional != CFX_OPID_NONE && cfx_operator_result(functional, 0, &result) &&
           result.alias;
}

static void describe(PyOperator *self)
{
    cfx_schema_param param;
    for (size_t i = 0; i < MOST_PARAMS && cfx_operator_param(self->op, i, &param); i++) {
        if (param.variadic)
            self->variadic = (int)i;
        self->writes |= (uint32_t)param.writes << i;
        self->dtypes |= (uint32_t)(strncmp(param.type, "ScalarType", 10) == 0) << i;
    }
    self->changes_header = changes_header(self->op);
    self->is_python = self->op == CFX_OPID_getitem || self->op == CFX_OPID_setitem ||
                      self->op == CFX_OPID_delitem || self->op == CFX_OPID_getattr ||
                      self->op == CFX_OPID_add ||
                      self->op == CFX_OPID_add_ || self->op == CFX_OPID_mul ||
                      self->op == CFX_OPID_mul_ || self->op == CFX_OPID_bitwise_or_;
}

static PyObject *param_names(cfx_operator op)
{
    size_t n = cfx_operator_num_params(op);
    cfx_schema_param param;
    PyObject *names = PyTuple_New((Py_ssize_t)(n < MOST_PARAMS ? n : MOST_PARAMS));
    for (size_t i = 0; names && i < n && i < MOST_PARAMS && cfx_operator_param(op, i, &param);
         i++) {
        PyObject *name = PyUnicode_FromStringAndSize(param.name.text, (Py_ssize_t)param.name.size);
        if (!name) {
            Py_CLEAR(names);
            break;
        }
        PyUnicode_InternInPlace(&name);
        PyTuple_SET_ITEM(names, (Py_ssize_t)i, name);
    }
    return names;
}

static PyObject *operator_new(PyObject *module, cfx_operator op)
{
    module_state *st = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)st->OperatorType;
    PyOperator *self = (PyOperator *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = operator_call;
    self->st = st;
    self->module = Py_NewRef(module);
    self->op = op;
    self->variadic = -1;
    self->names = param_names(op);
    self->name = PyUnicode_InternFromString(cfx_operator_name(op));
    describe(self);
    if (!self->names || !self->name)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int operator_traverse(PyOperator *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->module);
    Py_VISIT(self->names);
    return 0;
}

static int operator_clear(PyOperator *self)
{
    Py_CLEAR(self->module);
    Py_CLEAR(self->names);
    return 0;
}

static void operator_dealloc(PyOperator *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    operator_clear(self);
    Py_XDECREF(self->name);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *operator_repr(PyOperator *self)
{
    return PyUnicode_FromFormat("<operator cfx.ops.%U%s>", self->name,
                                cfx_operator_schema(self->op));
}

/* By its name, in the module that __module__ says. */
static PyObject *operator_reduce(PyOperator *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self->name);
}

static PyObject *operator_module(PyOperator *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("cfx.ops");
}

static PyObject *operator_schema(PyOperator *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(cfx_operator_schema(self->op));
}

static PyObject *operator_has_kernel(PyOperator *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(cfx_operator_has_kernel(self->op));
}

static PyMethodDef methods[] = {
    {"__reduce__", (PyCFunction)operator_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__name__", T_OBJECT, offsetof(PyOperator, name), READONLY, NULL},
    {"__qualname__", T_OBJECT, offsetof(PyOperator, name), READONLY, NULL},
    {"parameters", T_OBJECT, offsetof(PyOperator, names), READONLY, "Their names, in order."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperator, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"__module__", (getter)operator_module, NULL, NULL, NULL},
    {"schema", (getter)operator_schema, NULL, "Parameters and results.", NULL},
    {"has_kernel", (getter)operator_has_kernel, NULL, "Whether cfx computes it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, PyDoc_STR("A row of the operator table, to be called.")},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, operator_dealloc},
    {Py_tp_traverse, operator_traverse},
    {Py_tp_clear, operator_clear},
    {Py_tp_repr, operator_repr},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {0, NULL},
};

PyType_Spec operator_spec = {
    .name = "cfx._core.OperatorFunction",
    .basicsize = sizeof(PyOperator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ---- functions of the module --------------------------------------------------------------- */

/* _operator_function(id): the row's function, always the same; None if there is no such row. */
static PyObject *py_operator_function(PyObject *module, PyObject *name)
{
    module_state *st = PyModule_GetState(module);
    PyObject *function = PyDict_GetItemWithError(st->operator_functions, name);
    if (function || PyErr_Occurred())
        return Py_XNewRef(function);
    PyObject *keep;
    const char *text = c_string_of(name, "the name of an operator", &keep);
    if (!text)
        return NULL;
    cfx_operator op = cfx_operator_parse(text);
    bool is_id = op != CFX_OPID_NONE && strcmp(cfx_operator_name(op), text) == 0;
    Py_XDECREF(keep);
    if (!is_id)
        Py_RETURN_NONE;
    function = operator_new(module, op);
    if (function && PyDict_SetItem(st->operator_functions, name, function) < 0)
        Py_CLEAR(function);
    return function;
}

static PyObject *py_manual_seed(PyObject *module, PyObject *seed)
{
    uint64_t number = PyLong_AsUnsignedLongLongMask(seed);
    PyObject *runtime = PyErr_Occurred() ? NULL : runtime_current(PyModule_GetState(module));
    if (!runtime)
        return NULL;
    cfx_runtime_seed(runtime_of(runtime), number);
    Py_DECREF(runtime);
    Py_RETURN_NONE;
}

/* _kernels(): the ids of the rows that cfx computes. */
static PyObject *py_kernels(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int op = CFX_OPID_NONE + 1; list && op < CFX_OPERATOR_COUNT; op++) {
        if (!cfx_operator_has_kernel((cfx_operator)op))
            continue;
        PyObject *name = PyUnicode_FromString(cfx_operator_name((cfx_operator)op));
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

PyMethodDef runtime_functions[] = {
    {"manual_seed", py_manual_seed, METH_O,
     SIGNED("manual_seed(seed, /)", "Random numbers of cfx from here on follow this seed.")},
    {"_operator_function", py_operator_function, METH_O, NULL},
    {"_kernels", py_kernels, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
