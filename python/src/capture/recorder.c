/* recorder.c - the recorder of a run, and the two sides of its values: this run's, the graph's. */
#include "capture.h"

#include <structmember.h>

/* ---- torch's function modes ---------------------------------------------------------------- */

int quiet_begin(PyRecorder *r)
{
    if (r->quiet++)
        return 0;
    module_state *st = state_of(Py_TYPE(r));
    r->silence = PyObject_CallNoArgs(torch_part(st, TORCH_DisableTorchFunction));
    PyObject *entered = r->silence ? PyObject_CallMethodNoArgs(r->silence, st->str_enter) : NULL;
    Py_XDECREF(entered);
    if (entered)
        return 0;
    r->quiet--;
    Py_CLEAR(r->silence);
    return -1;
}

void quiet_end(PyRecorder *r)
{
    if (--r->quiet)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *silence = r->silence;
    r->silence = NULL;
    PyObject *left = PyObject_CallMethodObjArgs(silence, state_of(Py_TYPE(r))->str_exit, Py_None,
                                                Py_None, Py_None, NULL);
    Py_XDECREF(left);
    Py_XDECREF(silence);
    if (type)
        PyErr_Restore(type, value, trace);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static PyObject *new_node(PyRecorder *r, const node_parts *parts)
{
    if (!is_tracer(state_of(Py_TYPE(r)), r->tracer)) {
        PyErr_SetString(PyExc_TypeError, "a recorder needs a tracer");
        return NULL;
    }
    return tracer_node((PyTracer *)r->tracer, parts);
}

PyObject *recorder_name(PyRecorder *r, PyObject *function, Py_ssize_t i)
{
    module_state *st = state_of(Py_TYPE(r));
    if (r->evaluating || !is_tracer(st, r->tracer))  /* the evaluator knows names of its own */
        return NULL;
    PyObject *found = source_targets(&((PyTracer *)r->tracer)->sources, st, function);
    if (!found)
        PyErr_Clear();  /* memory is out: whoever needs some next says so */
    if (found && i >= 0)
        found = PyTuple_Check(found) && i < PyTuple_GET_SIZE(found) ? PyTuple_GET_ITEM(found, i)
                                                                    : NULL;
    return found && PyUnicode_Check(found) ? found : NULL;
}

PyObject *recorder_node(PyRecorder *r, cfx_opcode op, PyObject *target, PyObject *args,
                        PyObject *kwargs, PyObject *name)
{
    const node_parts parts = {.op = op, .target = target, .args = args, .kwargs = kwargs,
                              .name = name};
    return new_node(r, &parts);
}

PyObject *recorder_call(PyRecorder *r, PyObject *function, PyObject *const *args, Py_ssize_t n,
                        PyObject *name)
{
    const node_parts parts = {.op = CFX_OP_CALL_FUNCTION, .target = function, .items = args,
                              .n = n, .name = name};
    return new_node(r, &parts);
}

/* call(function, *args) and method(name, *args, **kwargs) */
static PyObject *py_call(PyRecorder *self, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1)
        return PyErr_Format(PyExc_TypeError, "call needs a function");
    return recorder_call(self, args[0], args + 1, n - 1, NULL);
}

static PyObject *py_method(PyRecorder *self, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *rest = n ? PyTuple_GetSlice(args, 1, n) : NULL;
    if (!rest)
        return n ? NULL : PyErr_Format(PyExc_TypeError, "method needs a name");
    PyObject *node = recorder_node(self, CFX_OP_CALL_METHOD, PyTuple_GET_ITEM(args, 0), rest,
                                   kwargs, NULL);
    Py_DECREF(rest);
    return node;
}

/* ---- modes --------------------------------------------------------------------------------- */

static int ask(PyObject *question, PyObject *argument)
{
    PyObject *answer = argument ? PyObject_CallOneArg(question, argument)
                                : PyObject_CallNoArgs(question);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

int recorder_follow_modes(PyRecorder *r)
{
    module_state *st = state_of(Py_TYPE(r));
    PyObject *autocast = torch_part(st, TORCH_is_autocast_enabled);
    int grad = ask(torch_part(st, TORCH_is_grad_enabled), NULL);
    int inference = ask(torch_part(st, TORCH_is_inference_mode_enabled), NULL);
    int cpu = ask(autocast, st->str_cpu);
    int cuda = ask(autocast, st->str_cuda);
    PyObject *dtype = PyObject_CallNoArgs(torch_part(st, TORCH_get_default_dtype));
    if (grad < 0 || inference < 0 || cpu < 0 || cuda < 0 || !dtype) {
        Py_XDECREF(dtype);
        return -1;
    }
    /* What autocast does is more than one flag: Python looks at it. */
    bool casts = cpu || cuda;
    if (dtype != r->dtype || grad != r->grad || inference != r->inference || casts || r->autocast) {
        PyObject *done = PyObject_CallMethodNoArgs((PyObject *)r, st->str_follow_modes);
        Py_XDECREF(done);
        if (!done) {
            Py_DECREF(dtype);
            return -1;
        }
    }
    Py_XSETREF(r->dtype, dtype);
    r->grad = (char)grad;
    r->inference = (char)inference;
    r->autocast = casts;
    return 0;
}

/* ---- the two sides of a value -------------------------------------------------------------- */

typedef struct walk {
    PyRecorder *r;
    module_state *st;
    value_side side;
    call_contents *found;
} walk;

static PyObject *walk_value(const walk *w, PyObject *o);

/* New references; *changed tells whether one is not the item itself. */
static PyObject *walk_items(const walk *w, PyObject *const *items, Py_ssize_t n, bool *changed)
{
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *item = walk_value(w, items[i]);
        *changed = *changed || item != items[i];
        if (item)
            PyTuple_SET_ITEM(made, i, item);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* Items as a container of the class of `o`. Steals `items`. */
static PyObject *like(const walk *w, PyObject *o, PyObject *items)
{
    PyObject *made;
    if (PyTuple_CheckExact(o))
        return items;
    PyObject *list = PySequence_List(items);
    Py_DECREF(items);
    if (!list || PyList_CheckExact(o))
        return list;
    made = PyObject_CallMethodObjArgs((PyObject *)w->r, w->st->str_remade, o, list, NULL);
    Py_DECREF(list);
    return made;
}

static PyObject *walk_sequence(const walk *w, PyObject *o)
{
    bool changed = false;
    bool is_list = PyList_Check(o);
    /* Code that runs may change a list: its items are taken first. */
    PyObject *fixed = is_list ? PyList_AsTuple(o) : Py_NewRef(o);
    PyObject *items = fixed ? walk_items(w, ((PyTupleObject *)fixed)->ob_item,
                                         PyTuple_GET_SIZE(fixed), &changed) : NULL;
    Py_XDECREF(fixed);
    if (items && changed)
        return like(w, o, items);
    Py_XDECREF(items);
    return items ? Py_NewRef(o) : NULL;
}

static PyObject *walk_dict(const walk *w, PyObject *o)
{
    PyObject *made = PyDict_Copy(o);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool changed = false;
    while (made && PyDict_Next(made, &at, &key, &value)) {  /* values of known keys may be set */
        PyObject *item = walk_value(w, value);
        changed = changed || item != value;
        if (!item || (item != value && PyDict_SetItem(made, key, item) < 0))
            Py_CLEAR(made);
        Py_XDECREF(item);
    }
    if (made && !changed)
        Py_SETREF(made, Py_NewRef(o));
    return made;
}

static PyObject *walk_slice(const walk *w, PyObject *o)
{
    PySliceObject *slice = (PySliceObject *)o;
    PyObject *const parts[3] = {slice->start, slice->stop, slice->step};
    bool changed = false;
    PyObject *made = walk_items(w, parts, 3, &changed);
    if (made && changed)
        Py_SETREF(made, PySlice_New(PyTuple_GET_ITEM(made, 0), PyTuple_GET_ITEM(made, 1),
                                    PyTuple_GET_ITEM(made, 2)));
    else if (made)
        Py_SETREF(made, Py_NewRef(o));
    return made;
}

static PyObject *walk_container(const walk *w, PyObject *o)
{
    if (enter_nested(" while reading the arguments of a call"))
        return NULL;
    PyObject *made = PyDict_CheckExact(o)   ? walk_dict(w, o)
                     : PySlice_Check(o) ? walk_slice(w, o)
                                        : walk_sequence(w, o);
    leave_nested();
    return made;
}

/* What is of a run that is over, or of another thread, is an error: -1. */
static int check_owner(const walk *w, PyObject *owner)
{
    if (owner == (PyObject *)w->r)
        return 0;
    PyObject *fine = PyObject_CallMethod(owner, "check_running", NULL);
    Py_XDECREF(fine);
    return fine ? 0 : -1;
}

static PyObject *walk_number(const walk *w, PyNumber *number)
{
    if (number->recorder && check_owner(w, (PyObject *)number->recorder) < 0)
        return NULL;
    if (w->found)
        w->found->of_graph = w->found->of_graph || number->recorder;
    if (w->side == SIDE_PLAIN)
        return number_plain(number, "program");
    return Py_NewRef(w->side == SIDE_NODE ? number->node : number->value);
}

static PyObject *walk_witness(const walk *w, PyObject *o)
{
    PyObject *owner = witness_part(o, w->st->str_recorder);
    if (!owner || check_owner(w, owner) < 0)
        return NULL;
    if (w->found)
        w->found->of_graph = true;
    PyObject *part = w->side == SIDE_NODE ? w->st->str_own_node : w->st->str_real;
    return Py_XNewRef(witness_part(o, part));
}

/* The node of a parameter, a buffer, or a tensor from elsewhere. */
static PyObject *constant_node(const walk *w, PyObject *tensor)
{
    PyObject *key = w->r->evaluating ? NULL : PyLong_FromVoidPtr(tensor);
    PyObject *known = key ? PyDict_GetItemWithError(w->r->constants, key) : NULL;
    Py_XDECREF(key);
    if (known)
        return Py_NewRef(PyTuple_GET_ITEM(known, 1));
    return PyErr_Occurred() ? NULL
                            : PyObject_CallMethod((PyObject *)w->r, "constant", "O", tensor);
}

/* A tensor that is not of the run. Where an operator takes a tensor, torch passes one that
 * remembers the number it was made of. */
static PyObject *walk_tensor(const walk *w, PyObject *o)
{
    PyObject *dict = instance_dict(o);
    PyObject *wrapped = dict ? PyDict_GetItemWithError(dict, w->st->str_wrapped_number) : NULL;
    PyNumber *number = wrapped ? number_behind(w->st, wrapped) : NULL;
    if (number)
        return walk_number(w, number);
    if (PyErr_Occurred())
        return NULL;
    if (w->side == SIDE_NODE)
        return constant_node(w, o);
    if (w->found && !w->found->transformed) {
        int truth = ask(torch_part(w->st, TORCH_is_transformed), o);
        if (truth < 0)
            return NULL;
        w->found->transformed = truth;
    }
    return Py_NewRef(o);
}

static PyObject *walk_other(const walk *w, PyObject *o)
{
    if (w->side != SIDE_NODE)
        return Py_NewRef(o);
    if ((PyObject *)Py_TYPE(o) == torch_part(w->st, TORCH_Generator))
        return PyObject_CallMethod((PyObject *)w->r, "generator", "O", o);
    /* torch takes a number of numpy's for a number */
    return is_numpy_scalar(o) ? PyObject_CallMethod(o, "item", NULL) : Py_NewRef(o);
}

static PyObject *walk_value(const walk *w, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (is_witness(w->st, o))
        return walk_witness(w, o);
    if (o == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
        type == &PyUnicode_Type)
        return Py_NewRef(o);
    if (PyTuple_Check(o) || PyList_Check(o) || type == &PyDict_Type || type == &PySlice_Type)
        return walk_container(w, o);
    PyNumber *number = number_behind(w->st, o);
    if (number)
        return walk_number(w, number);
    if (PyObject_TypeCheck(o, (PyTypeObject *)w->st->tensor_class))
        return walk_tensor(w, o);
    return walk_other(w, o);
}

PyObject *recorder_side(PyRecorder *r, PyObject *o, value_side side, call_contents *found)
{
    const walk w = {r, state_of(Py_TYPE(r)), side, found};
    return walk_value(&w, o);
}

static PyObject *py_real(PyRecorder *self, PyObject *o)
{
    return recorder_side(self, o, SIDE_REAL, NULL);
}

static PyObject *py_plain(PyRecorder *self, PyObject *o)
{
    return recorder_side(self, o, SIDE_PLAIN, NULL);
}

static PyObject *py_node(PyRecorder *self, PyObject *o)
{
    return recorder_side(self, o, SIDE_NODE, NULL);
}

/* ---- witnesses, as methods ----------------------------------------------------------------- */

static PyObject *py_witness(PyRecorder *self, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "witness needs a node and a tensor");
    return witness_new(self, args[0], args[1]);
}

static PyObject *py_size_of(PyRecorder *self, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "size_of needs a witness and a dimension");
    return witness_size(self, args[0], args[1]);
}

static PyObject *py_sizes(PyRecorder *self, PyObject *witness)
{
    return witness_sizes(self, witness);
}

/* ---- the type ------------------------------------------------------------------------------ */

#define FASTCALL(name, fn) {name, (PyCFunction)(void (*)(void))(fn), METH_FASTCALL, NULL}
static PyMethodDef recorder_methods[] = {
    FASTCALL("call", py_call),
    {"method", (PyCFunction)(void (*)(void))py_method, METH_VARARGS | METH_KEYWORDS, NULL},
    {"real", (PyCFunction)py_real, METH_O, "A value with the tensors and numbers of this run."},
    {"plain", (PyCFunction)py_plain, METH_O, "Likewise, but each number in it is a guard."},
    {"node", (PyCFunction)py_node, METH_O, "A value as an argument of a node."},
    FASTCALL("witness", py_witness),
    FASTCALL("size_of", py_size_of),
    {"sizes", (PyCFunction)py_sizes, METH_O, NULL},
    FASTCALL("torch_function", py_torch_function),
    FASTCALL("record", py_record),
    FASTCALL("call_leaf", py_call_leaf),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef recorder_members[] = {
    {"tracer", T_OBJECT, offsetof(PyRecorder, tracer), 0, NULL},
    {"constants", T_OBJECT, offsetof(PyRecorder, constants), READONLY, NULL},
    {"fixed", T_OBJECT, offsetof(PyRecorder, fixed), READONLY, NULL},
    {"evaluating", T_BOOL, offsetof(PyRecorder, evaluating), 0, NULL},
    {"computing", T_BOOL, offsetof(PyRecorder, computing), 0, NULL},
    {"quiet", T_INT, offsetof(PyRecorder, quiet), READONLY, NULL},
    {"hashes", T_BOOL, offsetof(PyRecorder, hashes), 0, NULL},
    {"plain_sizes", T_BOOL, offsetof(PyRecorder, plain_sizes), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *get_assumed(PyRecorder *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->assumed);
}

static int set_assumed(PyRecorder *self, PyObject *value, void *unused)
{
    (void)unused;
    if (!value || !PySet_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "assumed is a set");
        return -1;
    }
    Py_SETREF(self->assumed, Py_NewRef(value));
    return 0;
}

static PyObject *get_thread(PyRecorder *self, void *unused)
{
    (void)unused;
    return self->thread ? PyLong_FromUnsignedLong(self->thread) : Py_NewRef(Py_None);
}

static int set_thread(PyRecorder *self, PyObject *value, void *unused)
{
    (void)unused;
    self->thread = value && value != Py_None ? PyLong_AsUnsignedLong(value) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *get_symbols(PyRecorder *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->symbols);
}

static PyGetSetDef recorder_getset[] = {
    {"symbols", (getter)get_symbols, NULL,
     "weak references to the numbers that the program has got", NULL},
    {"assumed", (getter)get_assumed, (setter)set_assumed,
     "the questions whose answers are guards already", NULL},
    {"thread", (getter)get_thread, (setter)set_thread,
     "the thread that runs the program; None: the run is over", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define RECORDER_OBJECTS(X)                                                                        \
    X(tracer) X(constants) X(assumed) X(fixed) X(facts) X(symbols) X(dtype) X(silence)

static PyObject *recorder_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyRecorder *made = (PyRecorder *)type->tp_alloc(type, 0);
    if (!made)
        return NULL;
    made->constants = PyDict_New();
    made->assumed = PySet_New(NULL);
    made->fixed = PyDict_New();
    made->facts = PyDict_New();
    made->symbols = PyList_New(0);
    if (!made->constants || !made->assumed || !made->fixed || !made->facts || !made->symbols)
        Py_CLEAR(made);
    return (PyObject *)made;
}

static int recorder_traverse(PyRecorder *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
#define X(member) Py_VISIT(self->member);
    RECORDER_OBJECTS(X)
#undef X
    return 0;
}

/* The tables stay, though empty: numbers that outlive the recorder's use look into them. */
static int recorder_clear(PyRecorder *self)
{
    Py_CLEAR(self->tracer);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->silence);
    PyDict_Clear(self->constants);
    PyDict_Clear(self->fixed);
    PyDict_Clear(self->facts);
    return PySet_Clear(self->assumed);
}

static void recorder_dealloc(PyRecorder *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
#define X(member) Py_CLEAR(self->member);
    RECORDER_OBJECTS(X)
#undef X
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot recorder_slots[] = {
    {Py_tp_new, recorder_make},
    {Py_tp_methods, recorder_methods},
    {Py_tp_members, recorder_members},
    {Py_tp_getset, recorder_getset},
    {Py_tp_traverse, recorder_traverse},
    {Py_tp_clear, recorder_clear},
    {Py_tp_dealloc, recorder_dealloc},
    {Py_tp_doc, "Computes the calls of a run that is captured, and writes them down."},
    {0, NULL},
};

PyType_Spec recorder_spec = {"cfx._core.Recorder", sizeof(PyRecorder), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                             recorder_slots};
