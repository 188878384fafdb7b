/* symbol.c - Symbol: Python's operators on the Ints and Floats of a run. */
#include "capture.h"

#include <structmember.h>

PyObject *number_symbol(module_state *st, PyObject *number)
{
    if (!number)
        return NULL;
    PyNumber *n = (PyNumber *)number;
    PyObject *made;
    if (!n->recorder) {
        made = Py_NewRef(n->value);
    } else {
        PyTypeObject *type = (PyTypeObject *)(PyFloat_CheckExact(n->value) ? st->float_class
                                                                           : st->int_class);
        made = type->tp_alloc(type, 0);
        if (made)
            ((PySymbol *)made)->node = Py_NewRef(number);
        PyObject *weak = made ? PyWeakref_NewRef(made, NULL) : NULL;
        if (made && (!weak || PyList_Append(n->recorder->symbols, weak) < 0))
            Py_CLEAR(made);
        Py_XDECREF(weak);
    }
    Py_DECREF(number);
    return made;
}

/* _symbol(number) */
static PyObject *py_symbol(PyObject *module, PyObject *number)
{
    module_state *st = PyModule_GetState(module);
    if ((PyObject *)Py_TYPE(number) != st->NumberType)
        return PyErr_Format(PyExc_TypeError, "expected a Number, got %R", number);
    return number_symbol(st, Py_NewRef(number));
}

PyMethodDef symbol_functions[] = {
    {"_symbol", py_symbol, METH_O, "A Number as the program gets it; a literal as its value."},
    {NULL, NULL, 0, NULL},
};

/* ---- operators ----------------------------------------------------------------------------- */

/* The state of the module, of operands one of which is a Symbol; NULL if the other one is not a
 * number: then the operator is not ours. */
static module_state *state_for(PyObject *a, PyObject *b)
{
    /* A slot is called with a Symbol on one side at least; a subclass of int has another state. */
    bool first = !PyLong_Check(a) && !PyFloat_Check(a) && PyType_GetModuleByDef(
        Py_TYPE(a), &pycfx_module);
    if (!first)
        PyErr_Clear();  /* `a` is of no class of ours */
    module_state *st = state_of(Py_TYPE(first ? a : b));
    PyObject *other = first ? b : a;
    bool fits = PyLong_Check(other) || PyFloat_Check(other) || number_behind(st, other);
    return fits ? st : NULL;
}

static PyObject *operate(number_function f, PyObject *a, PyObject *b)
{
    module_state *st = state_for(a, b);
    if (!st)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *const in[2] = {a, b};
    return number_symbol(st, number_compute(st, f, in, 2));
}

#define OPERATORS(X)                                                                               \
    X(add, add) X(subtract, sub) X(multiply, mul) X(remainder, mod) X(floor_divide, floordiv)      \
    X(true_divide, truediv) X(lshift, lshift) X(rshift, rshift) X(and, and_) X(or, or_) X(xor, xor)

#define X(slot, f)                                                                                 \
    static PyObject *symbol_##slot(PyObject *a, PyObject *b)                                       \
    {                                                                                              \
        return operate(NUMBER_##f, a, b);                                                          \
    }
OPERATORS(X)
#undef X

static PyObject *symbol_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return operate(NUMBER_pow, a, b);
}

static PyObject *symbol_divmod(PyObject *a, PyObject *b)
{
    PyObject *quotient = operate(NUMBER_floordiv, a, b);
    if (!quotient || quotient == Py_NotImplemented)
        return quotient;
    PyObject *rest = operate(NUMBER_mod, a, b);
    PyObject *pair = rest ? PyTuple_Pack(2, quotient, rest) : NULL;
    Py_DECREF(quotient);
    Py_XDECREF(rest);
    return pair;
}

static PyObject *operate_alone(number_function f, PyObject *self)
{
    module_state *st = state_of(Py_TYPE(self));
    return number_symbol(st, number_compute(st, f, &self, 1));
}

static PyObject *symbol_negative(PyObject *self) { return operate_alone(NUMBER_neg, self); }
static PyObject *symbol_absolute(PyObject *self) { return operate_alone(NUMBER_abs, self); }
static PyObject *symbol_invert(PyObject *self) { return operate_alone(NUMBER_invert, self); }
static PyObject *symbol_positive(PyObject *self) { return Py_NewRef(self); }

static int symbol_bool(PyObject *self)
{
    PyObject *zero = PyLong_FromLong(0);
    int truth = zero ? number_compare(state_of(Py_TYPE(self)), NUMBER_ne, self, zero, "program")
                     : -1;
    Py_XDECREF(zero);
    return truth;
}

static PyObject *symbol_compare(PyObject *a, PyObject *b, int op)
{
    static const number_function functions[] = {
        [Py_LT] = NUMBER_lt, [Py_LE] = NUMBER_le, [Py_EQ] = NUMBER_eq,
        [Py_NE] = NUMBER_ne, [Py_GT] = NUMBER_gt, [Py_GE] = NUMBER_ge,
    };
    module_state *st = state_for(a, b);
    if (!st)
        Py_RETURN_NOTIMPLEMENTED;
    int truth = number_compare(st, functions[op], a, b, "program");
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* ---- the type ------------------------------------------------------------------------------ */

static PyMemberDef symbol_members[] = {
    {"node", T_OBJECT_EX, offsetof(PySymbol, node), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static int symbol_traverse(PySymbol *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->node);
    return 0;
}

static int symbol_clear(PySymbol *self)
{
    Py_CLEAR(self->node);
    return 0;
}

static void symbol_dealloc(PySymbol *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->node);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot symbol_slots[] = {
    {Py_tp_members, symbol_members},
#define X(slot, f) {Py_nb_##slot, symbol_##slot},
    OPERATORS(X)
#undef X
    {Py_nb_power, symbol_power},
    {Py_nb_divmod, symbol_divmod},
    {Py_nb_negative, symbol_negative},
    {Py_nb_absolute, symbol_absolute},
    {Py_nb_invert, symbol_invert},
    {Py_nb_positive, symbol_positive},
    {Py_nb_bool, symbol_bool},
    {Py_tp_richcompare, symbol_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_traverse, symbol_traverse},
    {Py_tp_clear, symbol_clear},
    {Py_tp_dealloc, symbol_dealloc},
    {Py_tp_doc, "The base of the numbers of a run that is captured."},
    {0, NULL},
};

PyType_Spec symbol_spec = {"cfx._core.Symbol", sizeof(PySymbol), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           symbol_slots};
