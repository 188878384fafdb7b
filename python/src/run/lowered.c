/* lowered.c - graphs lowered and run in C: _lower, and the type of programs (cfx/lowering.py). */
#include "graph/graph_methods.h"
#include "run/inputs.h"
#include "run/session.h"

#include <cfx/effect.h>
#include <cfx/freeze.h>
#include <cfx/lower.h>
#include <cfx/quantize.h>

/* ---- lowering ------------------------------------------------------------------------------ */

typedef struct lower_job {
    PyObject *found;  /* [(node, file or None, line, why), ...] */
    PyObject *stay;   /* {node: why}, or NULL */
} lower_job;

static cfx_status note_finding(void *ctx, const cfx_node *n, const char *why)
{
    const lower_job *job = ctx;
    PyObject *row = Py_BuildValue("(szIs)", cfx_node_name(n, NULL), cfx_node_file(n),
                                  (unsigned)cfx_node_line(n), why);
    int failed = row ? PyList_Append(job->found, row) : -1;
    Py_XDECREF(row);
    return failed ? CFX_E_HOST : CFX_OK;
}

static const char *reason_to_stay(void *ctx, const cfx_node *n)
{
    const lower_job *job = ctx;
    PyObject *why = PyDict_GetItemString(job->stay, cfx_node_name(n, NULL));
    return why ? PyUnicode_AsUTF8(why) : NULL;
}

/* _lower(graph, root, stay=None): lowers the graph in place. Returns a list of what is in the way,
 * which is empty if it went well; else the graph is as it was. With `stay`, {name: why}, these
 * nodes and all that cannot be lowered remain what they are, and the others are lowered. */
static PyObject *py_lower(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *graph, *root;
    PyObject *stay = Py_None;
    cfx_error err = {0};
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OO|O:_lower", &graph, &root, &stay))
        return NULL;
    if (stay != Py_None && !PyDict_Check(stay))
        return PyErr_Format(PyExc_TypeError, "_lower needs a dict of nodes that stay");
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "_lower needs a Graph");
    lower_job job = {PyList_New(0), stay != Py_None ? stay : NULL};
    bool has_root = root != Py_None;
    bool good = job.found && (!has_root || modules_over(st, root, &view));
    if (good) {
        cfx_graph *g = ((PyGraph *)graph)->g;
        const cfx_lower_options options = {.each = note_finding, .ctx = &job,
                                           .stay = job.stay ? reason_to_stay : NULL,
                                           .partial = job.stay != NULL};
        cfx_status status = cfx_graph_lower(g, has_root ? &view.table : NULL, &options, &err);
        good = !PyErr_Occurred() && (status == CFX_OK || PyList_GET_SIZE(job.found) > 0);
    }
    if (has_root)
        modules_done(&view);
    if (good)
        return job.found;
    Py_XDECREF(job.found);
    return raise_cfx(&err);
}

/* _integers(graph, root): the pass `integers` on a lowered graph, in place. Returns what stays
 * float, as _lower does what is in the way. */
static PyObject *py_integers(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *graph, *root;
    cfx_error err = {0};
    module_view view = {0};
    if (!PyArg_ParseTuple(args, "OO:_integers", &graph, &root))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "_integers needs a Graph");
    lower_job job = {PyList_New(0), NULL};
    cfx_status status = CFX_E_HOST;
    if (job.found && modules_over(st, root, &view)) {
        const cfx_integers_options options = {.each = note_finding, .ctx = &job};
        status = cfx_graph_integers(((PyGraph *)graph)->g, &view.table, &options, NULL, &err);
        modules_done(&view);
    }
    if (status == CFX_OK && !PyErr_Occurred())
        return job.found;
    Py_XDECREF(job.found);
    return PyErr_Occurred() ? NULL : raise_cfx(&err);
}

/* The targets of get_attr in `g` and its regions, as keys: no code of the user's runs meanwhile. */
static bool add_paths(const cfx_graph *g, PyObject *paths)
{
    bool good = true;
    for (const cfx_node *n = cfx_graph_first(g); good && n; n = cfx_node_next(n)) {
        size_t size;
        if (cfx_node_op(n) == CFX_OP_GET_ATTR) {
            const char *path = cfx_node_target(n, &size, NULL);
            PyObject *text = str_from_utf8(path, size);
            good = text && PyDict_SetItem(paths, text, Py_None) == 0;
            Py_XDECREF(text);
        }
        for (size_t i = 0; good && i < cfx_node_num_args(n); i++) {
            const cfx_graph *region = cfx_value_graph(cfx_node_arg(n, i));
            good = !region || add_paths(region, paths);  /* regions nest some 100 deep */
        }
    }
    return good;
}

/* _attributes_read(graph): what a lowered graph reads of its module, by path, each once. */
static PyObject *py_attributes_read(PyObject *module, PyObject *graph)
{
    if (!is_graph(PyModule_GetState(module), graph))
        return PyErr_Format(PyExc_TypeError, "_attributes_read needs a Graph");
    PyObject *paths = PyDict_New();
    PyObject *list = paths && add_paths(((PyGraph *)graph)->g, paths) ? PyDict_Keys(paths) : NULL;
    Py_XDECREF(paths);
    return list;
}

typedef struct written_job {
    PyObject *found;
    Py_ssize_t position;  /* of the last input that was looked at, among the inputs */
    const cfx_node *at;
} written_job;

static cfx_status note_written(void *ctx, cfx_node *input)
{
    written_job *job = ctx;
    for (; job->at != input; job->at = cfx_node_next(job->at))
        job->position += cfx_node_op(job->at) == CFX_OP_PLACEHOLDER;
    PyObject *number = PyLong_FromSsize_t(job->position);
    const int failed = number ? PyList_Append(job->found, number) : -1;
    Py_XDECREF(number);
    return failed ? CFX_E_HOST : CFX_OK;
}

/* _written_inputs(graph): the positions of the inputs that a lowered graph may write to. */
static PyObject *py_written_inputs(PyObject *module, PyObject *graph)
{
    cfx_error err = {0};
    if (!is_graph(PyModule_GetState(module), graph))
        return PyErr_Format(PyExc_TypeError, "_written_inputs needs a Graph");
    cfx_graph *g = ((PyGraph *)graph)->g;
    written_job job = {.found = PyList_New(0), .at = cfx_graph_first(g)};
    if (job.found && cfx_graph_each_written_input(g, NULL, note_written, &job, &err) == CFX_OK)
        return job.found;
    Py_XDECREF(job.found);
    return raise_cfx(&err);
}

enum { DRAWS = 4 };  /* besides cfx_effect: it is a row that draws random numbers */

/* _effects(graph): for each node its cfx_effect, plus DRAWS. */
static PyObject *py_effects(PyObject *module, PyObject *graph)
{
    cfx_error err = {0};
    if (!is_graph(PyModule_GetState(module), graph))
        return PyErr_Format(PyExc_TypeError, "_effects needs a Graph");
    cfx_iter it;
    PyObject *list = PyList_New(0);
    cfx_iter_begin(&it, ((PyGraph *)graph)->g, false);
    for (cfx_node *n; list && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_effect effect;
        if (cfx_node_effect(n, NULL, &effect, &err) != CFX_OK) {
            Py_CLEAR(list);
            break;
        }
        const unsigned flags = cfx_operator_flags(cfx_node_operator(n));
        const bool draws = effect != CFX_EFFECT_NONE && (flags & CFX_OPERATOR_RANDOM);
        PyObject *number = PyLong_FromLong((long)effect + (draws ? DRAWS : 0));
        if (!number || PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    cfx_iter_end(&it);
    return list || PyErr_Occurred() ? list : raise_cfx(&err);
}

/* ---- programs ------------------------------------------------------------------------------ */

typedef struct PyProgram {
    PyObject_HEAD
    cfx_program *p;
    cfx_program *frozen;  /* which runs instead, once it is compiled; or NULL */
    array_kind kind;  /* whose tensors the parameters are */
    PyObject *runtime;  /* what it runs with; NULL: the current one */
    bool reshapes;      /* it may change the sizes of an input or a parameter: squeeze_ */
    shared_tensors state;  /* if so: those of the parameters */
} PyProgram;

cfx_state *state_from_py(module_state *st, PyObject *dict, arrays_seen *seen)
{
    cfx_error err = {0};
    cfx_state *state = cfx_state_new(NULL, &err);
    PyObject *name, *value;
    Py_ssize_t at = 0;
    bool good = state != NULL;
    while (good && PyDict_Next(dict, &at, &name, &value)) {
        PyObject *keep;
        Py_INCREF(name);  /* __dlpack__ may do anything, to the dict too */
        Py_INCREF(value);
        const char *text = c_string_of(name, "the name of a tensor", &keep);
        cfx_tensor *t = text ? tensor_from_py(st, value, seen) : NULL;
        good = t && cfx_state_set(state, text, t, &err) == CFX_OK;
        cfx_tensor_release(t);
        Py_XDECREF(keep);
        Py_DECREF(value);
        Py_DECREF(name);
    }
    if (good)
        return state;
    cfx_state_free(state);
    raise_cfx(&err);
    return NULL;
}

static bool has_reshapes(const cfx_graph *g)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        size_t count = 0;
        const cfx_value *args = cfx_value_items(cfx_node_args(n), &count);
        if (changes_header(cfx_node_operator(n)))
            return true;
        for (size_t i = 0; i < count; i++) {
            const cfx_graph *region = cfx_value_graph(args[i]);
            if (region && has_reshapes(region))
                return true;
        }
    }
    return false;
}

const cfx_program *program_of(PyObject *program) { return ((PyProgram *)program)->p; }

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    module_state *st = state_of(type);
    PyObject *graph, *dict;
    PyObject *runtime = Py_None;
    cfx_error err = {0};
    arrays_seen seen = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OO!|O:Program", &graph, &PyDict_Type, &dict, &runtime))
        return NULL;
    if (runtime != Py_None && !Py_IS_TYPE(runtime, (PyTypeObject *)st->RuntimeType))
        return PyErr_Format(PyExc_TypeError, "the runtime must be a cfx.Runtime, not %s",
                            Py_TYPE(runtime)->tp_name);
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "Program() needs a Graph");
    const bool reshapes = has_reshapes(((PyGraph *)graph)->g);
    PyProgram *self = (PyProgram *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    seen.shared = reshapes ? &self->state : NULL;
    cfx_state *state = state_from_py(st, dict, &seen);
    if (!state)
        Py_CLEAR(self);
    if (self) {
        self->kind = seen.kind ? seen.kind : ARRAY_TORCH;  /* GraphModules are torch's */
        self->runtime = runtime != Py_None ? Py_NewRef(runtime) : NULL;
        self->reshapes = reshapes;
        self->p = cfx_program_new(((PyGraph *)graph)->g, state, NULL, &err);
        if (!self->p) {
            raise_cfx(&err);
            Py_CLEAR(self);
        }
    }
    cfx_state_free(state);
    return (PyObject *)self;
}

static void program_dealloc(PyProgram *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cfx_program_free(self->p);
    cfx_program_free(self->frozen);
    shared_free(&self->state);
    Py_XDECREF(self->runtime);
    type->tp_free(self);
    Py_DECREF(type);
}

/* What a program keeps from run to run; all NULL: nothing. */
typedef struct kept {
    cfx_session *session;
    const cfx_keeping *keeping;
} kept;

static PyObject *run_with(PyProgram *self, module_state *st, run_inputs *in, kept k)
{
    cfx_error err = {0};
    cfx_datum result = {0};
    const cfx_program *p = self->frozen ? self->frozen : self->p;
    PyObject *runtime = self->runtime ? Py_NewRef(self->runtime) : runtime_current(st);
    if (!runtime)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = k.session ? cfx_session_run(k.session, p, k.keeping, runtime_of(runtime),
                                         in->data, in->count, &err)
                       : cfx_program_run(p, runtime_of(runtime), in->data, in->count, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(runtime);
    return run_inputs_result(in, st, in->seen.kind ? in->seen.kind : self->kind, result, &err);
}

static PyObject *run_on(PyProgram *self, PyObject *const *args, Py_ssize_t nargs, kept k)
{
    module_state *st = state_of(Py_TYPE(self));
    shared_tensors shared = {0};
    run_inputs in;
    const bool read =
        run_inputs_begin(&in, st, args, nargs, false, self->reshapes ? &shared : NULL);
    shared_remember(&self->state);
    PyObject *result = read ? run_with(self, st, &in, k) : NULL;
    if (result && (shared_follow(&shared) < 0 || shared_follow(&self->state) < 0))
        Py_CLEAR(result);
    shared_free(&shared);
    run_inputs_end(&in);
    return result;
}

/* run(*inputs), by position; results are tensors of the inputs' library, or the parameters'. */
static PyObject *program_run(PyProgram *self, PyObject *const *args, Py_ssize_t nargs)
{
    return run_on(self, args, nargs, (kept){0});
}

/* run_kept(session, takes, keeps, *inputs): likewise, with values of a session (session.c). The
 * results that it keeps are not returned. One thread at a time. */
static PyObject *program_run_kept(PyProgram *self, PyObject *const *args, Py_ssize_t nargs)
{
    module_state *st = state_of(Py_TYPE(self));
    cfx_keeping keeping;
    if (nargs < 3 || !Py_IS_TYPE(args[0], (PyTypeObject *)st->SessionType))
        return PyErr_Format(PyExc_TypeError, "run_kept needs a _Session and two tuples");
    if (!keeping_from_py(st, args[1], args[2], &keeping))
        return NULL;
    PyObject *result =
        run_on(self, args + 3, nargs - 3, (kept){session_of(args[0]), &keeping});
    keeping_free(&keeping);
    return result;
}

static PyObject *program_inputs(PyProgram *self, PyObject *unused)
{
    (void)unused;
    PyObject *names = PyList_New(0);
    const char *name;
    for (size_t i = 0; names && (name = cfx_program_input(self->p, i)) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(names, text) < 0)
            Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

/* compile(graph, {name: tensor}, onednn, tune, cache, precision, append): later runs are those of
 * the frozen graph, as planned. Its tensors must not change any more. */
static PyObject *program_compile(PyProgram *self, PyObject *args)
{
    module_state *st = state_of(Py_TYPE(self));
    PyObject *graph, *dict;
    cfx_error err = {0};
    arrays_seen seen = {0};
    cfx_compile_options options = {0};
    int tune = 0;
    int append = 0;
    const char *precision;
    if (!PyArg_ParseTuple(args, "OO!zpzsp:compile", &graph, &PyDict_Type, &dict, &options.onednn,
                          &tune, &options.cache, &precision, &append))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "compile() needs a Graph");
    options.tune = tune;
    options.append = append;
    while (strcmp(cfx_precision_name(options.precision), precision) != 0)
        if (++options.precision == CFX_PRECISION_COUNT)
            return PyErr_Format(PyExc_ValueError, "precision must be 'float32' or 'bf16', not '%s'",
                                precision);
    if (self->reshapes || self->frozen)
        Py_RETURN_NONE;
    cfx_state *state = state_from_py(st, dict, &seen);
    if (!state)
        return NULL;
    self->frozen = cfx_program_freeze(((PyGraph *)graph)->g, state, NULL, &options, &err);
    cfx_state_free(state);
    return self->frozen ? Py_NewRef(Py_None) : raise_cfx(&err);
}

/* use(runtime): computes with it from here on; returns what it was, or None. */
static PyObject *program_use(PyProgram *self, PyObject *runtime)
{
    module_state *st = state_of(Py_TYPE(self));
    if (runtime != Py_None && !Py_IS_TYPE(runtime, (PyTypeObject *)st->RuntimeType))
        return PyErr_Format(PyExc_TypeError, "use() needs a Runtime or None");
    PyObject *was = self->runtime ? self->runtime : Py_NewRef(Py_None);
    self->runtime = runtime != Py_None ? Py_NewRef(runtime) : NULL;
    return was;
}

/* plans(): the plans that were made so far, as text. */
static PyObject *program_plans(PyProgram *self, PyObject *unused)
{
    cfx_error err = {0};
    cfx_buffer text;
    PyObject *object = NULL;
    cfx_status status;
    (void)unused;
    if (!self->frozen)
        return PyUnicode_FromString("");
    cfx_buffer_init(&text, NULL);
    Py_BEGIN_ALLOW_THREADS  /* waits for a thread that plans, which may ask for signals */
    status = cfx_program_print_plans(self->frozen, cfx_buffer_sink(&text), &err);
    Py_END_ALLOW_THREADS
    if (status == CFX_OK)
        object = PyUnicode_FromStringAndSize(text.data, (Py_ssize_t)text.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    return object;
}

static PyMethodDef program_methods[] = {
    {"compile", (PyCFunction)(void (*)(void))program_compile, METH_VARARGS, NULL},
    {"use", (PyCFunction)(void (*)(void))program_use, METH_O, NULL},
    {"plans", (PyCFunction)(void (*)(void))program_plans, METH_NOARGS, NULL},
    {"run", (PyCFunction)(void (*)(void))program_run, METH_FASTCALL, NULL},
    {"run_kept", (PyCFunction)(void (*)(void))program_run_kept, METH_FASTCALL, NULL},
    {"inputs", (PyCFunction)(void (*)(void))program_inputs, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

PyType_Spec program_spec = {
    .name = "cfx._core._Program",
    .basicsize = sizeof(PyProgram),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = program_slots,
};

PyMethodDef lower_functions[] = {
    {"_lower", py_lower, METH_VARARGS, NULL},
    {"_integers", py_integers, METH_VARARGS, NULL},
    {"_written_inputs", py_written_inputs, METH_O, NULL},
    {"_effects", py_effects, METH_O, NULL},
    {"_attributes_read", py_attributes_read, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
