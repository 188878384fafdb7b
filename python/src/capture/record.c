/* record.c - a call of a run: computed on this run's values, and written down as a node.
 *
 * What is known of a function of torch is a tuple, which Python makes when the function is first
 * met (describe in cfx/capturing/net.py): how its calls are spelled in a graph, what they do to
 * their arguments, and what answers instead where a tensor is asked about itself.
 */
#include "capture.h"

/* ---- what is known of a function ----------------------------------------------------------- */

/* How calls are spelled; net.py has the same names. */
enum form {
    FORM_FUNCTION,  /* a call of the target */
    FORM_METHOD,    /* a call of the method of that name */
    FORM_REVERSED,  /* a call of the target with two arguments, the second first */
    FORM_READ,      /* getattr(x, name) */
    FORM_WRITE,     /* setattr(x, name, value) */
    FORM_SIGN       /* an operator, if there are two arguments and no keywords; else a method */
};
enum {
    FACT_WRITES = 1,      /* it writes to its arguments */
    FACT_MAY_WRITE = 2,   /* it may, although its name does not say so */
    FACT_COUNTS = 4,      /* how many results there are depends on sizes */
    FACT_RESHAPES = 8,    /* it changes the sizes of its first argument */
    FACT_SETTING = 16     /* it changes a mode, which later calls are recorded in */
};

/* Borrowed from the recorder's table. */
typedef struct facts {
    long form;
    PyObject *target;
    PyObject *name;
    long flags;
    PyObject *handler;  /* or None */
} facts;

static bool facts_of(PyRecorder *r, PyObject *function, facts *out)
{
    PyObject *row = PyDict_GetItemWithError(r->facts, function);
    if (!row && !PyErr_Occurred()) {
        row = PyObject_CallOneArg(state_of(Py_TYPE(r))->capture_describe, function);
        if (row && PyDict_SetItem(r->facts, function, row) < 0)
            Py_CLEAR(row);
        Py_XDECREF(row);  /* the table has it */
    }
    return row && PyArg_ParseTuple(row, "lOOlO", &out->form, &out->target, &out->name, &out->flags,
                                   &out->handler);
}

static bool is_given(PyObject *kwargs, PyObject *name)
{
    PyObject *value = kwargs ? PyDict_GetItemWithError(kwargs, name) : NULL;
    return value && value != Py_None && PyObject_IsTrue(value) != 0;
}

/* Whether a call writes to its arguments; -1 with an exception. */
static int call_writes(const module_state *st, const facts *f, PyObject *kwargs)
{
    if (f->flags & FACT_WRITES)
        return 1;
    PyObject *out = kwargs ? PyDict_GetItemWithError(kwargs, st->str_out) : NULL;
    bool writes = (out && out != Py_None) || is_given(kwargs, st->str_inplace);
    return PyErr_Occurred() ? -1 : writes;
}

/* ---- results ------------------------------------------------------------------------------- */

static bool is_tensor(const module_state *st, PyObject *o)
{
    return PyObject_TypeCheck(o, (PyTypeObject *)st->tensor_class);
}

/* A call whose results are looked at. */
typedef struct call {
    PyRecorder *r;
    module_state *st;
    PyObject *args, *kwargs;  /* as the program gave them; NULL if it writes to none of them */
    PyObject *function;       /* that is called; NULL: a module */
    bool of_graph;            /* something of the graph is among them */
} call;

typedef struct search {
    module_state *st;
    PyObject *real;
    PyObject *found;  /* borrowed */
} search;

static int stop_at_tensor(void *ctx, PyObject *leaf)
{
    return is_tensor(ctx, leaf);
}

static int stop_at_same(void *ctx, PyObject *leaf)
{
    search *s = ctx;
    PyObject *real = is_witness(s->st, leaf) ? witness_part(leaf, s->st->str_real) : leaf;
    s->found = real == s->real ? leaf : NULL;
    return s->found ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* What the program has already for a tensor that a call wrote to: a new reference, or NULL. */
static PyObject *had_before(const call *c, PyObject *real)
{
    search s = {c->st, real, NULL};
    if (c->args && !visit_leaves(c->args, stop_at_same, &s) && c->kwargs)
        visit_leaves(c->kwargs, stop_at_same, &s);
    return Py_XNewRef(s.found);
}

static PyObject *wrap(const call *c, PyObject *node, PyObject *result, bool whole);

/* Whether an item of a result has to be taken out of it by a node of its own. */
static bool matters(const module_state *st, PyObject *item)
{
    return is_tensor(st, item) || PyTuple_Check(item) || PyList_Check(item) || PyDict_Check(item) ||
           PyLong_CheckExact(item) || PyFloat_CheckExact(item) || PyBool_Check(item);
}

static PyObject *wrap_item(const call *c, PyObject *node, Py_ssize_t i, PyObject *item, bool whole)
{
    if (!matters(c->st, item))
        return Py_NewRef(item);
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *const in[2] = {node, index};
    PyObject *getitem = number_function_of(c->st, NUMBER_getitem);
    PyObject *name = whole ? recorder_name(c->r, c->function, i) : NULL;
    PyObject *part = index ? recorder_call(c->r, getitem, in, 2, name) : NULL;
    PyObject *wrapped = part ? wrap(c, part, item, false) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(index);
    return wrapped;
}

static PyObject *wrap_sequence(const call *c, PyObject *node, PyObject *result, bool whole)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
    PyObject *items = PyList_New(n);
    for (Py_ssize_t i = 0; items && i < n; i++) {
        PyObject *item = wrap_item(c, node, i, PySequence_Fast_GET_ITEM(result, i), whole);
        if (item)
            PyList_SET_ITEM(items, i, item);
        else
            Py_CLEAR(items);
    }
    if (!items || PyList_CheckExact(result))
        return items;
    PyObject *made = PyTuple_CheckExact(result)
                         ? PyList_AsTuple(items)
                         : PyObject_CallMethodObjArgs((PyObject *)c->r, c->st->str_remade, result,
                                                      items, NULL);
    Py_DECREF(items);
    return made;
}

static PyObject *wrap_truth(const call *c, PyObject *node, PyObject *truth)
{
    PyObject *done = PyObject_CallMethod((PyObject *)c->r, "assume_value", "OOs", node, truth,
                                         "data");
    Py_XDECREF(done);
    return done ? Py_NewRef(truth) : NULL;
}

/* A result for the program: tensors and numbers that remember their nodes. `whole`: it is all that
 * the call gives, and not an item of it. */
static PyObject *wrap(const call *c, PyObject *node, PyObject *result, bool whole)
{
    if (is_tensor(c->st, result)) {
        PyObject *same = c->args ? had_before(c, result) : NULL;
        return same || PyErr_Occurred() ? same : witness_new(c->r, node, result);
    }
    if (PyTuple_Check(result) || PyList_Check(result))
        return wrap_sequence(c, node, result, whole);
    if (PyDict_Check(result))
        return PyObject_CallMethod((PyObject *)c->r, "wrap", "OO{}O", node, result,
                                   c->of_graph ? Py_True : Py_False);
    if (c->of_graph && PyBool_Check(result))
        return wrap_truth(c, node, result);
    if (c->of_graph && (PyLong_CheckExact(result) || PyFloat_CheckExact(result)))
        return number_symbol(c->st, number_new(c->st, c->r, node, result, true));
    return Py_NewRef(result);
}

/* ---- writing a call down ------------------------------------------------------------------- */

/* The arguments of the node, in the order that the spelling has: a new tuple. */
static PyObject *spelled(const facts *f, PyObject *args, PyObject *kwargs, cfx_opcode *op,
                         PyObject **target)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    bool sign = f->form == FORM_SIGN && n == 2 && (!kwargs || !PyDict_GET_SIZE(kwargs));
    bool method = f->form == FORM_METHOD || (f->form == FORM_SIGN && !sign);
    *op = method ? CFX_OP_CALL_METHOD : CFX_OP_CALL_FUNCTION;
    *target = method ? f->name : f->target;
    if (f->form == FORM_REVERSED && n == 2)
        return PyTuple_Pack(2, PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 0));
    if (f->form == FORM_READ && n > 0)
        return PyTuple_Pack(2, PyTuple_GET_ITEM(args, 0), f->name);
    if (f->form == FORM_WRITE && n > 1)
        return PyTuple_Pack(3, PyTuple_GET_ITEM(args, 0), f->name, PyTuple_GET_ITEM(args, 1));
    return Py_NewRef(args);
}

/* Says that so much was recorded, for who waits for a loop that never ends; the more, the rarer.
 * -1 with an exception if warnings are errors: then the capture ends. */
static int tell_progress(PyRecorder *r)
{
    enum { FIRST = 200 * 1000 };
    const size_t n = ++r->calls;
    if (n % FIRST != 0 || (n / FIRST & (n / FIRST - 1)) != 0)
        return 0;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "cfx.capture has recorded %zu calls so far: "
                            "every turn of a loop is recorded, and one that does not end fills the "
                            "memory. Ctrl-C stops it, and so does "
                            "warnings.simplefilter('error', RuntimeWarning)", n);
}

/* The node of a call, in the modes that the program is in. `function` as in recorder_name. */
static PyObject *new_node(PyRecorder *r, cfx_opcode op, PyObject *target, PyObject *args,
                          PyObject *kwargs, PyObject *function)
{
    if (recorder_follow_modes(r) < 0 || tell_progress(r) < 0)
        return NULL;
    PyObject *positional = recorder_side(r, args, SIDE_NODE, NULL);
    PyObject *named = positional && kwargs ? recorder_side(r, kwargs, SIDE_NODE, NULL) : NULL;
    PyObject *node = positional && (named || !kwargs)
                         ? recorder_node(r, op, target, positional, named,
                                         recorder_name(r, function, -1)) : NULL;
    Py_XDECREF(named);
    Py_XDECREF(positional);
    return node;
}

static PyObject *node_of(const call *c, const facts *f, PyObject *args, PyObject *kwargs)
{
    cfx_opcode op;
    PyObject *target;
    PyObject *in_order = spelled(f, args, kwargs, &op, &target);
    PyObject *node = in_order ? new_node(c->r, op, target, in_order, kwargs, c->function) : NULL;
    Py_XDECREF(in_order);
    return node;
}

/* Forgets the sizes that a tensor was asked for before: squeeze_ and its like. */
static int forget_sizes(const module_state *st, PyObject *args)
{
    PyObject *first = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *sizes = first && is_witness(st, first) ? witness_part(first, st->str_sizes) : NULL;
    if (sizes)
        PyDict_Clear(sizes);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *written(const call *c, const facts *f, PyObject *args, PyObject *kwargs,
                         PyObject *result)
{
    PyObject *node = node_of(c, f, args, kwargs);
    bool failed = !node;
    if (node && f->flags & FACT_COUNTS) {
        PyObject *done = PyObject_CallMethod((PyObject *)c->r, "assume_length", "On", node,
                                             PyObject_Size(result));
        Py_XDECREF(done);
        failed = !done;
    }
    if (!failed && f->flags & FACT_RESHAPES)
        failed = forget_sizes(c->st, args) < 0;
    PyObject *wrapped = failed ? NULL : wrap(c, node, result, true);
    Py_XDECREF(node);
    return wrapped;
}

/* ---- a call -------------------------------------------------------------------------------- */

/* Keeps what the call may write to. */
static int save(PyRecorder *r, PyObject *args, PyObject *kwargs)
{
    PyObject *done = PyObject_CallMethod((PyObject *)r, "before_write", "OO", args,
                                         kwargs ? kwargs : Py_None);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *compute(const call *c, const facts *f, PyObject *function, PyObject *args,
                         PyObject *kwargs, PyObject *const *real)
{
    if (quiet_begin(c->r) < 0)
        return NULL;
    PyObject *result = PyObject_Call(function, real[0], real[1]);
    int has_tensor = result ? visit_leaves(result, stop_at_tensor, c->st) : -1;
    PyObject *made = NULL;
    if (has_tensor == 0 && !c->of_graph && !c->args)
        made = Py_NewRef(result);  /* a setting, or a question that the inputs do not decide */
    else if (has_tensor >= 0)
        made = written(c, f, args, kwargs, result);
    quiet_end(c->r);
    Py_XDECREF(result);
    return made;
}

static PyObject *record_on(PyRecorder *r, const facts *f, PyObject *function, PyObject *args,
                           PyObject *kwargs, PyObject *const *real, const call_contents *found)
{
    module_state *st = state_of(Py_TYPE(r));
    if (found->transformed)  /* the lower net sees what becomes of it */
        return PyObject_CallMethod((PyObject *)r, "record_transformed", "OOO", function, args,
                                   kwargs ? kwargs : Py_None);
    int writes = call_writes(st, f, kwargs);
    if (writes < 0 || ((writes || f->flags & FACT_MAY_WRITE) && save(r, args, kwargs) < 0))
        return NULL;
    const call c = {r, st, writes ? args : NULL, writes ? kwargs : NULL, function,
                    found->of_graph};
    return compute(&c, f, function, args, kwargs, real);
}

static PyObject *record(PyRecorder *r, const facts *f, PyObject *function, PyObject *args,
                        PyObject *kwargs)
{
    if (f->flags & FACT_SETTING)  /* seen in the state of later calls */
        return PyObject_Call(function, args, kwargs);
    call_contents found = {false, false};
    PyObject *real[2] = {recorder_side(r, args, SIDE_REAL, &found), NULL};
    if (real[0] && kwargs)
        real[1] = recorder_side(r, kwargs, SIDE_REAL, &found);
    PyObject *made = real[0] && (real[1] || !kwargs)
                         ? record_on(r, f, function, args, kwargs, real, &found) : NULL;
    Py_XDECREF(real[0]);
    Py_XDECREF(real[1]);
    return made;
}

/* The arguments of a call: a tuple, and a dict or NULL. */
static bool are_arguments(PyObject *args, PyObject **kwargs)
{
    if (*kwargs == Py_None || (PyDict_Check(*kwargs) && !PyDict_GET_SIZE(*kwargs)))
        *kwargs = NULL;
    if (PyTuple_Check(args) && (!*kwargs || PyDict_CheckExact(*kwargs)))
        return true;
    PyErr_SetString(PyExc_TypeError, "a call has a tuple of arguments and a dict of keywords");
    return false;
}

PyObject *py_record(PyRecorder *r, PyObject *const *args, Py_ssize_t n)
{
    facts f;
    PyObject *kwargs = n > 2 ? args[2] : Py_None;
    if (n < 2 || n > 3)
        return PyErr_Format(PyExc_TypeError, "record needs a function, its arguments and keywords");
    if (!are_arguments(args[1], &kwargs) || !facts_of(r, args[0], &f))
        return NULL;
    return record(r, &f, args[0], args[1], kwargs);
}

/* ---- the upper net ------------------------------------------------------------------------- */

/* A class of the program's own, not a tensor, that has something to say about calls of torch:
 * borrowed, or NULL. */
static PyObject *own_class(const module_state *st, PyObject *types)
{
    Py_ssize_t n = PyTuple_Check(types) ? PyTuple_GET_SIZE(types) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *type = PyTuple_GET_ITEM(types, i);
        if (PyType_Check(type) &&
            !PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)st->tensor_class) &&
            has_attribute(type, st->str_torch_function))
            return type;
    }
    return NULL;
}

/* handler(recorder, *args, **kwargs) */
static PyObject *call_handler(PyRecorder *r, PyObject *handler, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *all = PyTuple_New(n + 1);
    if (!all)
        return NULL;
    PyTuple_SET_ITEM(all, 0, Py_NewRef((PyObject *)r));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    PyObject *answer = PyObject_Call(handler, all, kwargs);
    Py_DECREF(all);
    return answer;
}

/* What a tensor says about itself. */
static PyObject *handled(PyRecorder *r, const facts *f, PyObject *args, PyObject *kwargs)
{
    module_state *st = state_of(Py_TYPE(r));
    const char before = r->sizes_asked;
    r->sizes_asked = PyUnicode_Check(f->name) && (PyUnicode_Compare(f->name, st->str_size) == 0 ||
                                                  PyUnicode_Compare(f->name, st->str_shape) == 0);
    PyObject *answer = call_handler(r, f->handler, args, kwargs);
    r->sizes_asked = before;
    return answer;
}

PyObject *py_torch_function(PyRecorder *r, PyObject *const *args, Py_ssize_t n)
{
    module_state *st = state_of(Py_TYPE(r));
    if (n != 4)
        return PyErr_Format(PyExc_TypeError, "torch_function needs four arguments");
    PyObject *function = args[0], *types = args[1], *given = args[2], *kwargs = args[3];
    if (!are_arguments(given, &kwargs))
        return NULL;
    if (r->evaluating)  /* the evaluator of scripts records */
        return PyObject_Call(function, given, kwargs);
    PyObject *own = own_class(st, types);
    if (own)
        return PyObject_CallMethod((PyObject *)r, "through_object", "OOOOO", own, function, types,
                                   given, kwargs ? kwargs : Py_None);
    facts f;
    if (!facts_of(r, function, &f))
        return NULL;
    bool about_itself = f.handler != Py_None && PyTuple_GET_SIZE(given) &&
                        is_witness(st, PyTuple_GET_ITEM(given, 0));
    return about_itself ? handled(r, &f, given, kwargs)
                        : record(r, &f, function, given, kwargs);
}

/* ---- modules ------------------------------------------------------------------------------- */

/* The result of a module, and the node of its call. */
static PyObject *leaf_written(const call *c, PyObject *path, PyObject *args, PyObject *kwargs,
                              PyObject *result)
{
    PyObject *node = new_node(c->r, CFX_OP_CALL_MODULE, path, args, kwargs, NULL);
    PyObject *wrapped = node ? wrap(c, node, result, true) : NULL;
    Py_XDECREF(node);
    return wrapped;
}

PyObject *py_call_leaf(PyRecorder *r, PyObject *const *args, Py_ssize_t n)
{
    if (n != 5)
        return PyErr_Format(PyExc_TypeError, "call_leaf needs five arguments");
    PyObject *path = args[0], *forward = args[2], *given = args[3], *kwargs = args[4];
    if (!are_arguments(given, &kwargs))
        return NULL;
    PyObject *saved = PyObject_CallMethod((PyObject *)r, "before_leaf", "OO", path, args[1]);
    Py_XDECREF(saved);
    if (!saved || quiet_begin(r) < 0)
        return NULL;
    PyObject *real = recorder_side(r, given, SIDE_REAL, NULL);
    PyObject *named = real && kwargs ? recorder_side(r, kwargs, SIDE_REAL, NULL) : NULL;
    PyObject *made = NULL;
    if (real && (named || !kwargs)) {
        const call c = {r, state_of(Py_TYPE(r)), NULL, NULL, NULL, true};
        char before = r->computing;
        r->computing = 1;
        PyObject *result = PyObject_Call(forward, real, named);
        r->computing = before;
        made = result ? leaf_written(&c, path, given, kwargs, result) : NULL;
        Py_XDECREF(result);
    }
    quiet_end(r);
    Py_XDECREF(named);
    Py_XDECREF(real);
    return made;
}
