/* capture.h - a run that is captured: its tensors, its numbers, and the recorder of its calls.
 *
 * A tensor of the run is a Witness, a subclass of torch.Tensor that has `_recorder`, `_node` (what
 * computes it in the graph) and `_real` (what this run computed). A number of the run is an Int or
 * a Float for the program; behind it is a Number, which answers torch's C++ under its names.
 * The recorder computes a call on the real values, makes a node for it, and hands the program
 * witnesses and numbers again. What happens rarely (guards, writes, contexts, transforms of
 * torch.func) is left to the Python class Recorder, which derives from the type here.
 */
#ifndef PYCFX_CAPTURE_H
#define PYCFX_CAPTURE_H

#include "trace/trace.h"

/* ---- what is taken from torch -------------------------------------------------------------- */

/* The members of the tuple `capture_torch`, which cfx/capturing/protocol.py registers. */
#define TORCH_PARTS(X)                                                                             \
    X(DisableTorchFunction) X(make_wrapper) X(Size) X(Generator) X(strided) X(is_transformed)      \
    X(is_grad_enabled) X(is_inference_mode_enabled) X(is_autocast_enabled) X(get_default_dtype)    \
    X(get_default_device) X(mode_stack_size)
enum {
#define X(name) TORCH_##name,
    TORCH_PARTS(X)
#undef X
    TORCH_COUNT
};
static inline PyObject *torch_part(const module_state *st, int part)
{
    return PyTuple_GET_ITEM(st->capture_torch, part);
}

/* ---- objects ------------------------------------------------------------------------------- */

typedef struct PyRecorder {
    PyObject_HEAD
    PyObject *tracer;     /* a Tracer */
    PyObject *constants;  /* {id: (tensor, node)} of parameters, buffers, tensors from elsewhere */
    PyObject *assumed;    /* a set of the questions whose answers are guards already */
    PyObject *fixed;      /* {(node, dimension): size} of sizes that do not change */
    PyObject *facts;      /* {function: what is known of it}, of this run: see record.c */
    PyObject *symbols;    /* a list of weak references to the Ints and Floats of the run */
    PyObject *dtype;      /* the default dtype that the graph has set by now, or NULL */
    PyObject *silence;    /* the context that has switched torch's function modes off, or NULL */
    unsigned long thread;  /* that runs the program; 0: the run is over */
    char evaluating;      /* a function is evaluated from its source: nothing is recorded here */
    char computing;       /* a module or a node is computed: nothing is noted */
    char hashes;          /* numbers have hashes */
    char sizes_asked;     /* the program itself asks a tensor for its sizes */
    char plain_sizes;     /* sizes are plain numbers, each of which is a guard */
    char grad, inference, autocast;  /* the modes that the graph is in by now */
    int quiet;            /* how often `silence` was asked for */
    size_t calls;         /* that were recorded */
} PyRecorder;

/* A number: a node, and its value in this run. Without a recorder it is a literal: its node is the
 * value. */
typedef struct PyNumber {
    PyObject_HEAD
    PyRecorder *recorder;  /* or NULL */
    PyObject *node;
    PyObject *value;
    bool of_data;          /* it comes from data, not from sizes or arguments */
} PyNumber;

/* The base of Int and Float. */
typedef struct PySymbol {
    PyObject_HEAD
    PyObject *node;  /* a Number; or NULL */
} PySymbol;

extern PyType_Spec recorder_spec, number_spec, symbol_spec;

/* ---- numbers (number.c) -------------------------------------------------------------------- */

/* The functions of numbers that are recorded: where they are from. */
#define NUMBER_FUNCTIONS(X)                                                                        \
    X(add, "operator") X(sub, "operator") X(mul, "operator") X(mod, "operator")                    \
    X(floordiv, "operator") X(truediv, "operator") X(pow, "operator") X(lshift, "operator")        \
    X(rshift, "operator") X(and_, "operator") X(or_, "operator") X(xor, "operator")                \
    X(lt, "operator") X(le, "operator") X(eq, "operator") X(ne, "operator") X(gt, "operator")      \
    X(ge, "operator") X(neg, "operator") X(invert, "operator") X(not_, "operator")                 \
    X(abs, "builtins") X(min, "builtins") X(max, "builtins") X(round, "builtins")                  \
    X(int, "builtins") X(float, "builtins")                                                        \
    X(floor, "math") X(ceil, "math") X(trunc, "math") X(sqrt, "math")                              \
    X(getitem, "operator")  /* which takes results apart */
typedef enum number_function {
#define X(name, module) NUMBER_##name,
    NUMBER_FUNCTIONS(X)
#undef X
    NUMBER_FUNCTION_COUNT
} number_function;

/* Reads them into the state: -1 with an exception. */
int numbers_init(module_state *st);
static inline PyObject *number_function_of(const module_state *st, number_function f)
{
    return PyTuple_GET_ITEM(st->number_functions, f);
}

/* A new Number. `recorder` may be NULL. */
PyObject *number_new(module_state *st, PyRecorder *recorder, PyObject *node, PyObject *value,
                     bool of_data);
/* What is behind a Number, an Int, a Float, or a symbol of torch around a Number: borrowed from
 * `o`, or NULL without an exception. */
PyNumber *number_behind(module_state *st, PyObject *o);
/* The result of a function of one or two numbers or plain values, of which at least one is a number
 * of the run: a new Number, a literal if nothing of the graph decides it. */
PyObject *number_compute(module_state *st, number_function f, PyObject *const *operands, int n);
/* The answer to a comparison, which becomes a guard: 0, 1, or -1 with an exception. `asker`:
 * "program" or "torch". */
int number_compare(module_state *st, number_function f, PyObject *a, PyObject *b,
                   const char *asker);
/* The value of this run, which becomes a guard: a new reference. */
PyObject *number_plain(PyNumber *number, const char *asker);
/* A Number as the program gets it: an Int or a Float, a literal as a plain value. Steals `number`,
 * which may be NULL. (symbol.c) */
PyObject *number_symbol(module_state *st, PyObject *number);
extern PyMethodDef symbol_functions[];  /* _symbol */

/* ---- tensors (witness.c) ------------------------------------------------------------------- */

static inline bool is_witness(const module_state *st, PyObject *o)
{
    return (PyObject *)Py_TYPE(o) == st->witness_class;
}
/* The parts of a witness: borrowed; NULL with an exception if somebody removed them. */
PyObject *witness_part(PyObject *witness, PyObject *name);
/* The witness of a node whose value in this run is the tensor `real`: a new reference. */
PyObject *witness_new(PyRecorder *r, PyObject *node, PyObject *real);
/* A size, an Int or a plain int if it is fixed; and all of them as a torch.Size. A size that was
 * asked for before gives the same node. */
PyObject *witness_size(PyRecorder *r, PyObject *witness, PyObject *dim);
PyObject *witness_sizes(PyRecorder *r, PyObject *witness);

/* ---- the recorder (recorder.c) ------------------------------------------------------------- */

/* Switches torch's function modes off, and on again, as often: 0, or -1 with an exception. `end`
 * leaves a pending exception alone. */
int quiet_begin(PyRecorder *r);
void quiet_end(PyRecorder *r);

/* What the program calls the result of the call of `function` (or NULL) that runs now, or item `i`
 * of it, if `i` is not -1: borrowed until other code runs. NULL: nothing, or it cannot be told. */
PyObject *recorder_name(PyRecorder *r, PyObject *function, Py_ssize_t i);
/* A new node. `args` is a tuple, `kwargs` a dict or NULL, of nodes and values. `name` is what it
 * should be called, or NULL. */
PyObject *recorder_node(PyRecorder *r, cfx_opcode op, PyObject *target, PyObject *args,
                        PyObject *kwargs, PyObject *name);
/* A call_function node of an array of arguments. */
PyObject *recorder_call(PyRecorder *r, PyObject *function, PyObject *const *args, Py_ssize_t n,
                        PyObject *name);

/* Which side of the values of a run is wanted. */
typedef enum value_side {
    SIDE_REAL,   /* tensors and numbers of this run */
    SIDE_PLAIN,  /* likewise, and each number becomes a guard */
    SIDE_NODE    /* nodes of the graph */
} value_side;
/* What a look at the arguments of a call has found. */
typedef struct call_contents {
    bool of_graph;     /* a witness or a number */
    bool transformed;  /* a tensor that a transform of torch.func wraps */
} call_contents;
/* A value with its tensors and numbers replaced, in containers and slices, too: a new reference,
 * to `o` itself if there is nothing to replace. `found` may be NULL. */
PyObject *recorder_side(PyRecorder *r, PyObject *o, value_side side, call_contents *found);

/* Records the contexts that the program has entered or left: -1 with an exception. */
int recorder_follow_modes(PyRecorder *r);

/* ---- calls (record.c) ---------------------------------------------------------------------- */

/* torch_function(func, types, args, kwargs): a call of torch's Python API. record(func, args,
 * kwargs): computes any call of torch and writes it down. call_leaf(path, module, forward, args,
 * kwargs): likewise a call of a module that stays one node. */
PyObject *py_torch_function(PyRecorder *r, PyObject *const *args, Py_ssize_t n);
PyObject *py_record(PyRecorder *r, PyObject *const *args, Py_ssize_t n);
PyObject *py_call_leaf(PyRecorder *r, PyObject *const *args, Py_ssize_t n);

#endif
