/* number.c - Number: what is behind the Ints and Floats of a run, and answers torch's C++. */
#include "capture.h"

#include <structmember.h>

int numbers_init(module_state *st)
{
    static const struct {
        const char *name, *module;
    } rows[] = {
#define X(name, module) {#name, module},
        NUMBER_FUNCTIONS(X)
#undef X
    };
    PyObject *functions = PyTuple_New(NUMBER_FUNCTION_COUNT);
    for (int i = 0; functions && i < NUMBER_FUNCTION_COUNT; i++) {
        PyObject *module = PyImport_ImportModule(rows[i].module);
        PyObject *function = module ? PyObject_GetAttrString(module, rows[i].name) : NULL;
        Py_XDECREF(module);
        if (function)
            PyTuple_SET_ITEM(functions, i, function);
        else
            Py_CLEAR(functions);
    }
    st->number_functions = functions;
    return functions ? 0 : -1;
}

PyObject *number_new(module_state *st, PyRecorder *recorder, PyObject *node, PyObject *value,
                     bool of_data)
{
    PyTypeObject *type = (PyTypeObject *)st->NumberType;
    PyNumber *made = (PyNumber *)type->tp_alloc(type, 0);
    if (!made)
        return NULL;
    made->recorder = (PyRecorder *)Py_XNewRef((PyObject *)recorder);
    made->node = Py_NewRef(node);
    made->value = Py_NewRef(value);
    made->of_data = of_data;
    return (PyObject *)made;
}

static PyObject *literal_new(module_state *st, PyObject *value)
{
    return value ? number_new(st, NULL, value, value, false) : NULL;
}

static PyObject *literal_bool(PyNumber *self, bool value)
{
    return literal_new(state_of(Py_TYPE(self)), value ? Py_True : Py_False);
}

/* ---- operands ------------------------------------------------------------------------------ */

static bool is_torch_symbol(const module_state *st, PyObject *o)
{
    Py_ssize_t n = st->symbol_classes ? PyTuple_GET_SIZE(st->symbol_classes) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyObject_TypeCheck(o, (PyTypeObject *)PyTuple_GET_ITEM(st->symbol_classes, i)))
            return true;
    return false;
}

PyNumber *number_behind(module_state *st, PyObject *o)
{
    PyObject *type = (PyObject *)Py_TYPE(o);
    if (type == st->NumberType)
        return (PyNumber *)o;
    PyObject *node = NULL;
    if (PyObject_TypeCheck(o, (PyTypeObject *)st->SymbolType)) {
        node = ((PySymbol *)o)->node;
    } else if (is_torch_symbol(st, o)) {
        node = PyObject_GetAttr(o, st->str_node);
        Py_XDECREF(node);  /* `o` has it */
        if (!node)
            PyErr_Clear();  /* a symbol that is not one of ours */
    }
    return node && (PyObject *)Py_TYPE(node) == st->NumberType ? (PyNumber *)node : NULL;
}

/* A number, or a plain value. Borrowed. */
typedef struct operand {
    PyNumber *number;      /* NULL for a plain value */
    PyRecorder *recorder;  /* NULL for a literal */
    PyObject *node, *value;
} operand;

static operand operand_of(module_state *st, PyObject *o)
{
    PyNumber *n = number_behind(st, o);
    if (n && n->recorder && !n->recorder->thread)
        o = n->value;  /* somebody has kept it, and the run is over: a plain value */
    else if (n)
        return (operand){n, n->recorder, n->node, n->value};
    return (operand){NULL, NULL, o, o};
}

/* ---- computing ----------------------------------------------------------------------------- */

static bool is_literal(const operand *o, long value)
{
    return !o->recorder && PyLong_CheckExact(o->value) && PyLong_AsLong(o->value) == value;
}

/* The operand that is the result, if the other one leaves it as it is; or NULL. */
static const operand *unchanged(number_function f, const operand *in)
{
    if (!PyLong_CheckExact(in[0].value) || !PyLong_CheckExact(in[1].value))
        return NULL;
    bool zero = f == NUMBER_add || f == NUMBER_sub;
    bool one = f == NUMBER_mul || f == NUMBER_floordiv;
    if ((zero && is_literal(&in[1], 0)) || (one && is_literal(&in[1], 1)))
        return &in[0];
    return f == NUMBER_mul && is_literal(&in[0], 1) ? &in[1] : NULL;
}

/* The function needs plain values: its result is no number of the graph. */
static PyObject *computed_plainly(module_state *st, number_function f, const operand *in, int n)
{
    PyObject *plain[2] = {NULL, NULL};
    bool failed = false;
    for (int i = 0; i < n && !failed; i++) {
        plain[i] = in[i].number ? number_plain(in[i].number, "program") : Py_NewRef(in[i].value);
        failed = !plain[i];
    }
    PyObject *function = number_function_of(st, f);
    PyObject *value = failed ? NULL : PyObject_Vectorcall(function, plain, (size_t)n, NULL);
    PyObject *made = literal_new(st, value);
    Py_XDECREF(value);
    Py_XDECREF(plain[0]);
    Py_XDECREF(plain[1]);
    return made;
}

static PyObject *computed(module_state *st, number_function f, const operand *in, int n,
                          PyObject *value)
{
    PyRecorder *recorder = in[0].recorder ? in[0].recorder : n > 1 ? in[1].recorder : NULL;
    bool same = n == 2 && f == NUMBER_sub && in[0].node == in[1].node &&
                PyLong_CheckExact(value) && PyLong_CheckExact(in[0].value);
    if (!recorder || same)
        return literal_new(st, value);
    const operand *kept = n == 2 ? unchanged(f, in) : NULL;
    if (kept)
        return Py_NewRef((PyObject *)kept->number);
    PyObject *nodes[2] = {in[0].node, n > 1 ? in[1].node : NULL};
    bool of_data = (in[0].number && in[0].number->of_data) ||
                   (n > 1 && in[1].number && in[1].number->of_data);
    PyObject *node = recorder_call(recorder, number_function_of(st, f), nodes, n, NULL);
    PyObject *made = node ? number_new(st, recorder, node, value, of_data) : NULL;
    Py_XDECREF(node);
    return made;
}

PyObject *number_compute(module_state *st, number_function f, PyObject *const *operands, int n)
{
    operand in[2] = {operand_of(st, operands[0])};
    if (n > 1)
        in[1] = operand_of(st, operands[1]);
    PyObject *values[2] = {in[0].value, in[1].value};
    PyObject *value = PyObject_Vectorcall(number_function_of(st, f), values, (size_t)n, NULL);
    if (!value)
        return NULL;
    bool is_number = PyLong_CheckExact(value) || PyFloat_CheckExact(value);
    PyObject *made = is_number ? computed(st, f, in, n, value) : computed_plainly(st, f, in, n);
    Py_DECREF(value);
    return made;
}

/* ---- questions, whose answers are guards --------------------------------------------------- */

/* Whether a question has been asked before: then its answer is a guard already. */
static int is_assumed(PyRecorder *r, PyObject *key)
{
    return r->evaluating ? 0 : PySet_Contains(r->assumed, key);
}

static PyObject *number_of_operand(module_state *st, const operand *o)
{
    return o->number ? Py_NewRef((PyObject *)o->number) : literal_new(st, o->value);
}

static int assume(module_state *st, PyRecorder *r, number_function f, const operand *in,
                  PyObject *answer, const char *asker)
{
    PyObject *key = PyTuple_Pack(3, number_function_of(st, f), in[0].node, in[1].node);
    int known = key ? is_assumed(r, key) : -1;
    Py_XDECREF(key);
    if (known)
        return known < 0 ? -1 : 0;
    PyObject *one = number_of_operand(st, &in[0]);
    PyObject *two = one ? number_of_operand(st, &in[1]) : NULL;
    PyObject *done = two ? PyObject_CallMethod((PyObject *)r, "assume", "OOOOs",
                                               number_function_of(st, f), one, two, answer, asker)
                         : NULL;
    Py_XDECREF(one);
    Py_XDECREF(two);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int number_compare(module_state *st, number_function f, PyObject *a, PyObject *b,
                   const char *asker)
{
    operand in[2] = {operand_of(st, a), operand_of(st, b)};
    PyObject *const values[2] = {in[0].value, in[1].value};
    PyObject *answer = PyObject_Vectorcall(number_function_of(st, f), values, 2, NULL);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    PyRecorder *r = in[0].recorder ? in[0].recorder : in[1].recorder;
    if (truth >= 0 && r && in[0].node != in[1].node && assume(st, r, f, in, answer, asker) < 0)
        truth = -1;
    Py_XDECREF(answer);
    return truth;
}

PyObject *number_plain(PyNumber *number, const char *asker)
{
    PyRecorder *r = number->recorder;
    if (!r || !r->thread)
        return Py_NewRef(number->value);
    PyObject *key = Py_BuildValue("(sO)", "value", number->node);
    int known = key ? is_assumed(r, key) : -1;
    Py_XDECREF(key);
    if (known < 0)
        return NULL;
    if (!known) {
        PyObject *done = PyObject_CallMethod((PyObject *)r, "assume_value", "OOss", number->node,
                                             number->value, number->of_data ? "data" : "size",
                                             asker);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
    return Py_NewRef(number->value);
}

/* ---- what torch calls: arithmetic ---------------------------------------------------------- */

static PyObject *of_two(PyNumber *self, number_function f, PyObject *a, PyObject *b)
{
    PyObject *const in[2] = {a, b};
    return number_compute(state_of(Py_TYPE(self)), f, in, 2);
}

static PyObject *of_one(PyNumber *self, number_function f)
{
    PyObject *const in[1] = {(PyObject *)self};
    return number_compute(state_of(Py_TYPE(self)), f, in, 1);
}

static PyObject *answer(PyNumber *self, number_function f, PyObject *other)
{
    int truth = number_compare(state_of(Py_TYPE(self)), f, (PyObject *)self, other, "torch");
    return truth < 0 ? NULL : literal_bool(self, truth);
}

/* The names that torch has for functions of two numbers; it has each the other way round, too. */
#define OF_TWO(X)                                                                                  \
    X(add, add) X(sub, sub) X(mul, mul) X(mod, mod) X(floordiv, floordiv) X(truediv, truediv)      \
    X(pow, pow) X(lshift, lshift) X(rshift, rshift) X(and_, and_) X(or_, or_) X(xor, xor)          \
    X(int_floordiv, floordiv) X(int_truediv, truediv) X(float_truediv, truediv)                    \
    X(pow_by_natural, pow) X(float_pow, pow) X(bitwise_and, and_) X(bitwise_or, or_)               \
    X(bitwise_xor, xor) X(sym_min, min) X(sym_max, max) X(sym_and, and_) X(sym_or, or_)
#define OF_ONE(X)                                                                                  \
    X(neg, neg) X(abs, abs) X(invert, invert) X(floor, floor) X(ceil, ceil) X(trunc, trunc)        \
    X(sym_float, float) X(sym_int, int) X(sym_sqrt, sqrt) X(sym_not, not_)
#define COMPARISONS(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define X(name, f)                                                                                 \
    static PyObject *py_##name(PyNumber *self, PyObject *other)                                    \
    {                                                                                              \
        return of_two(self, NUMBER_##f, (PyObject *)self, other);                                  \
    }                                                                                              \
    static PyObject *py_r##name(PyNumber *self, PyObject *other)                                   \
    {                                                                                              \
        return of_two(self, NUMBER_##f, other, (PyObject *)self);                                  \
    }
OF_TWO(X)
#undef X
#define X(name, f)                                                                                 \
    static PyObject *py_##name(PyNumber *self, PyObject *unused)                                   \
    {                                                                                              \
        (void)unused;                                                                              \
        return of_one(self, NUMBER_##f);                                                           \
    }
OF_ONE(X)
#undef X
#define X(name)                                                                                    \
    static PyObject *py_##name(PyNumber *self, PyObject *other)                                    \
    {                                                                                              \
        return answer(self, NUMBER_##name, other);                                                 \
    }
COMPARISONS(X)
#undef X

static PyObject *py_round(PyNumber *self, PyObject *args)
{
    PyObject *digits = NULL;
    if (!PyArg_ParseTuple(args, "|O:round", &digits))
        return NULL;
    if (!digits || digits == Py_None)
        return of_one(self, NUMBER_round);
    return of_two(self, NUMBER_round, (PyObject *)self, digits);
}

/* ---- what torch asks ----------------------------------------------------------------------- */

static PyObject *py_is_int(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(PyLong_CheckExact(self->value));
}

static PyObject *py_is_float(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(PyFloat_CheckExact(self->value));
}

static PyObject *py_is_bool(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(PyBool_Check(self->value));
}

static PyObject *py_is_constant(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(!self->recorder);
}

static PyObject *py_is_symbolic(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(self->recorder != NULL);
}

static PyObject *py_constant(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self->recorder ? Py_None : self->value);
}

static PyObject *py_itself(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)self);
}

static PyObject *py_wrap(PyNumber *self, PyObject *value)
{
    return literal_new(state_of(Py_TYPE(self)), value);
}

static PyObject *py_plain_value(PyNumber *self, PyObject *where)
{
    (void)where;
    return number_plain(self, "torch");
}

static PyObject *py_truth(PyNumber *self, PyObject *where)
{
    (void)where;
    if (PyBool_Check(self->value))
        return number_plain(self, "torch");
    PyObject *zero = PyLong_FromLong(0);
    int truth = zero ? number_compare(state_of(Py_TYPE(self)), NUMBER_ne, (PyObject *)self, zero,
                                      "torch") : -1;
    Py_XDECREF(zero);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

static PyObject *py_str(PyNumber *self, PyObject *unused)
{
    (void)unused;
    PyObject *value = number_plain(self, "torch");
    PyObject *text = value ? PyObject_Str(value) : NULL;
    Py_XDECREF(value);
    return text;
}

static PyObject *py_known_true(PyNumber *self, PyObject *where)
{
    (void)where;
    int truth = self->recorder ? 0 : PyObject_IsTrue(self->value);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

static PyObject *py_true(PyNumber *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_TRUE;
}

static PyObject *py_false(PyNumber *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_FALSE;
}

static PyObject *py_none(PyNumber *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_NONE;
}

/* Layouts of what has such sizes are asked for, never recorded. */
static PyObject *py_literal_true(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return literal_bool(self, true);
}

static PyObject *py_literal_false(PyNumber *self, PyObject *unused)
{
    (void)unused;
    return literal_bool(self, false);
}

/* plain(asker="program"), for the shells of numbers. */
static PyObject *py_plain(PyNumber *self, PyObject *args)
{
    const char *asker = "program";
    return PyArg_ParseTuple(args, "|s:plain", &asker) ? number_plain(self, asker) : NULL;
}

static PyObject *number_repr(PyNumber *self)
{
    return self->recorder ? PyUnicode_FromFormat("%S=%S", self->node, self->value)
                          : PyObject_Str(self->value);
}

/* ---- the type ------------------------------------------------------------------------------ */

#define NO_ARGS(name, fn) {name, (PyCFunction)(fn), METH_NOARGS, NULL}
#define ANY_ARGS(name, fn) {name, (PyCFunction)(fn), METH_VARARGS, NULL}
static PyMethodDef number_methods[] = {
#define X(name, f)                                                                                 \
    {#name, (PyCFunction)py_##name, METH_O, NULL},                                                 \
    {"r" #name, (PyCFunction)py_r##name, METH_O, NULL},
    OF_TWO(X)
#undef X
#define X(name, f) NO_ARGS(#name, py_##name),
    OF_ONE(X)
#undef X
#define X(name) {#name, (PyCFunction)py_##name, METH_O, NULL},
    COMPARISONS(X)
#undef X
    ANY_ARGS("round", py_round), ANY_ARGS("plain", py_plain),
    NO_ARGS("is_int", py_is_int), NO_ARGS("is_float", py_is_float), NO_ARGS("is_bool", py_is_bool),
    NO_ARGS("is_constant", py_is_constant), NO_ARGS("is_symbolic", py_is_symbolic),
    NO_ARGS("has_hint", py_true), NO_ARGS("is_nested_int", py_false),
    NO_ARGS("nested_int", py_none),
    NO_ARGS("constant_int", py_constant), NO_ARGS("constant_bool", py_constant),
    NO_ARGS("maybe_as_int", py_constant), NO_ARGS("maybe_as_float", py_constant),
    NO_ARGS("maybe_as_bool", py_constant),
    NO_ARGS("clone", py_itself), NO_ARGS("pos", py_itself),
    NO_ARGS("str", py_str), NO_ARGS("_graph_repr", py_str),
    {"wrap_int", (PyCFunction)py_wrap, METH_O, NULL},
    {"wrap_float", (PyCFunction)py_wrap, METH_O, NULL},
    {"wrap_bool", (PyCFunction)py_wrap, METH_O, NULL},
    ANY_ARGS("int_", py_plain_value), ANY_ARGS("float_", py_plain_value),
    ANY_ARGS("guard_int", py_plain_value), ANY_ARGS("guard_float", py_plain_value),
    ANY_ARGS("bool_", py_truth), ANY_ARGS("guard_bool", py_truth),
    ANY_ARGS("guard_size_oblivious", py_truth), ANY_ARGS("guard_or_false", py_truth),
    ANY_ARGS("guard_or_true", py_truth), ANY_ARGS("expect_true", py_truth),
    ANY_ARGS("expect_size", py_true), ANY_ARGS("statically_known_true", py_known_true),
    ANY_ARGS("is_contiguous", py_literal_true),
    ANY_ARGS("is_non_overlapping_and_dense", py_literal_true),
    ANY_ARGS("is_non_overlapping_and_dense_indicator", py_literal_true),
    ANY_ARGS("is_channels_last_contiguous_2d", py_literal_false),
    ANY_ARGS("is_channels_last_contiguous_3d", py_literal_false),
    ANY_ARGS("is_channels_last_strides_2d", py_literal_false),
    ANY_ARGS("is_channels_last_strides_3d", py_literal_false),
    {NULL, NULL, 0, NULL},
};

static PyObject *get_none(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_NONE;
}

/* What torch reads of the nodes of its own. */
static PyGetSetDef number_getset[] = {
    {"expr", get_none, NULL, NULL, NULL},
    {"shape_env", get_none, NULL, NULL, NULL},
    {"constant", get_none, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef number_members[] = {
    {"recorder", T_OBJECT, offsetof(PyNumber, recorder), READONLY, NULL},
    {"node", T_OBJECT, offsetof(PyNumber, node), READONLY, NULL},
    {"value", T_OBJECT, offsetof(PyNumber, value), READONLY, NULL},
    {"of_data", T_BOOL, offsetof(PyNumber, of_data), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Number(recorder, node, value, of_data=False) */
static PyObject *number_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    module_state *st = state_of(type);
    PyObject *recorder, *node, *value;
    int of_data = 0;
    if (!PyArg_ParseTuple(args, "OOO|p:Number", &recorder, &node, &value, &of_data))
        return NULL;
    if (recorder == Py_None)
        return literal_new(st, value);
    if (!PyObject_TypeCheck(recorder, (PyTypeObject *)st->RecorderType))
        return PyErr_Format(PyExc_TypeError, "Number needs a recorder or None, not %R", recorder);
    return number_new(st, (PyRecorder *)recorder, node, value, of_data);
}

static int number_traverse(PyNumber *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)self->recorder);
    Py_VISIT(self->node);
    Py_VISIT(self->value);
    return 0;
}

static int number_clear(PyNumber *self)
{
    Py_CLEAR(self->recorder);
    return 0;  /* the others cannot be part of a cycle without it, and are read without a look */
}

static void number_dealloc(PyNumber *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF((PyObject *)self->recorder);
    Py_XDECREF(self->node);
    Py_XDECREF(self->value);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot number_slots[] = {
    {Py_tp_new, number_make},
    {Py_tp_methods, number_methods},
    {Py_tp_members, number_members},
    {Py_tp_getset, number_getset},
    {Py_tp_repr, number_repr},
    {Py_tp_traverse, number_traverse},
    {Py_tp_clear, number_clear},
    {Py_tp_dealloc, number_dealloc},
    {Py_tp_doc, "A number of a run that is captured: its node, and its value in this run."},
    {0, NULL},
};

PyType_Spec number_spec = {"cfx._core.Number", sizeof(PyNumber), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, number_slots};
