/* runtime.c - cfx.Runtime: threads, random numbers and kernels that computing uses. */
#include "base/pycfx.h"

#include <cfx/profile.h>
#include <time.h>

typedef struct PyRuntime {
    PyObject_HEAD
    cfx_runtime *rt;
    cfx_profile *profile;  /* of what it computes; or NULL */
} PyRuntime;

cfx_runtime *runtime_of(PyObject *runtime) { return ((PyRuntime *)runtime)->rt; }

enum { ASK_EVERY = 20000000 };  /* ns: nobody feels it, and Python's lock is taken rarely */

/* Whether a signal's handler has raised, Ctrl-C's say: the exception stays for raise_cfx. Each
 * thread has its own clock, as only the main one gets signals: the others must not use up its
 * turns. */
static bool interrupted(void *ctx)
{
    static _Thread_local int64_t asked;
    struct timespec t;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (now - asked < ASK_EVERY)
        return false;
    asked = now;
    PyGILState_STATE lock = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() < 0;
    PyGILState_Release(lock);
    return raised;
}

/* What a program prints goes to sys.stdout, as it is then. */
static cfx_status print_text(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *text = PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, "surrogatepass");
    PyObject *out = text ? PySys_GetObject("stdout") : NULL;  /* borrowed; NULL or None: nowhere */
    const bool good = text && (!out || out == Py_None ||
                               PyFile_WriteObject(text, out, Py_PRINT_RAW) == 0);
    Py_XDECREF(text);
    PyGILState_Release(lock);
    return good ? CFX_OK : CFX_E_HOST;
}

static PyObject *make(PyTypeObject *type, cfx_runtime_options options, bool profiles)
{
    cfx_error err = {0};
    PyRuntime *self = (PyRuntime *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    options.interrupted = interrupted;
    options.print = (cfx_sink){.write = print_text};
    if (profiles && (self->profile = cfx_profile_new(NULL, &err)) != NULL)
        cfx_profile_watch(self->profile, &options);
    if (!profiles || self->profile)
        self->rt = cfx_runtime_new(&options, &err);
    if (self->rt)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_cfx(&err);
}

static bool read_isa(PyObject *o, cfx_runtime_options *options)
{
    if (o == Py_None)
        return true;
    options->limit_isa = true;
    for (int i = 0; PyUnicode_Check(o) && i < CFX_ISA_COUNT; i++) {
        options->isa = (cfx_isa)i;
        if (PyUnicode_CompareWithASCIIString(o, cfx_isa_name(options->isa)) == 0)
            return true;
    }
    PyErr_Format(PyExc_ValueError, "isa must be 'plain', 'avx2', 'avx512' or 'neon', not %R", o);
    return false;
}

static PyObject *runtime_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"threads", "seed", "reference", "isa", NULL};
    cfx_runtime_options options = {0};
    int threads = 0;
    int reference = 0;
    unsigned long long seed = 0;
    PyObject *isa = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$iKpO:Runtime", names, &threads, &seed,
                                     &reference, &isa) || !read_isa(isa, &options))
        return NULL;
    if (threads < 0 || threads > 1024)
        return PyErr_Format(PyExc_ValueError, "threads must be from 0 to 1024, not %d", threads);
    options.threads = (unsigned)threads;
    options.seed = seed;
    options.reference = reference;
    return make(type, options, false);
}

static int runtime_traverse(PyRuntime *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void runtime_dealloc(PyRuntime *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    cfx_runtime *rt = self->rt;
    Py_BEGIN_ALLOW_THREADS  /* joins its threads */
    cfx_runtime_free(rt);
    Py_END_ALLOW_THREADS
    cfx_profile_free(self->profile);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *runtime_current(module_state *st)
{
    PyObject *current = NULL;
    if (PyContextVar_Get(st->runtime_variable, NULL, &current) < 0)
        return NULL;
    if (current && current != Py_None) {
        PyObject *runtime = Py_NewRef(PyTuple_GET_ITEM(current, 0));
        Py_DECREF(current);
        return runtime;
    }
    Py_XDECREF(current);
    if (!st->runtime)
        st->runtime = make((PyTypeObject *)st->RuntimeType, (cfx_runtime_options){0}, false);
    return Py_XNewRef(st->runtime);
}

cfx_datum run_operator(module_state *st, cfx_operator op, const cfx_datum *args, size_t n)
{
    cfx_error err = {0};
    PyObject *runtime = runtime_current(st);
    cfx_datum result = {0};
    if (!runtime)
        return result;
    Py_BEGIN_ALLOW_THREADS
    result = cfx_operator_run(runtime_of(runtime), op, args, n, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(runtime);
    if (result.kind == CFX_DATUM_INVALID)
        raise_cfx(&err);
    return result;
}

/* ---- methods ------------------------------------------------------------------------------- */

/* The variable is (the runtime, what it was before) or None: threads that enter the same runtime do
 * not leave one another's blocks. */
static bool set_current(module_state *st, PyObject *value)
{
    PyObject *token = PyContextVar_Set(st->runtime_variable, value);
    Py_XDECREF(token);
    return token != NULL;
}

static PyObject *runtime_enter(PyRuntime *self, PyObject *unused)
{
    (void)unused;
    module_state *st = state_of(Py_TYPE(self));
    PyObject *before = NULL;
    if (PyContextVar_Get(st->runtime_variable, Py_None, &before) < 0)
        return NULL;
    PyObject *value = PyTuple_Pack(2, self, before);
    bool good = value && set_current(st, value);
    Py_XDECREF(value);
    Py_DECREF(before);
    return good ? Py_NewRef(self) : NULL;
}

static PyObject *runtime_exit(PyRuntime *self, PyObject *args)
{
    (void)args;
    module_state *st = state_of(Py_TYPE(self));
    PyObject *current = NULL;
    if (PyContextVar_Get(st->runtime_variable, Py_None, &current) < 0)
        return NULL;
    bool entered = current != Py_None && PyTuple_GET_ITEM(current, 0) == (PyObject *)self;
    bool good = entered && set_current(st, PyTuple_GET_ITEM(current, 1));
    Py_DECREF(current);
    if (!entered)
        return PyErr_Format(PyExc_RuntimeError, "the runtime is not active; enter it with `with` "
                            "first");
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *runtime_seed(PyRuntime *self, PyObject *seed)
{
    uint64_t number = PyLong_AsUnsignedLongLongMask(seed);
    if (PyErr_Occurred())
        return NULL;
    cfx_runtime_seed(self->rt, number);
    Py_RETURN_NONE;
}

static PyObject *runtime_peak(PyRuntime *self, PyObject *unused)
{
    cfx_error err = {0};
    cfx_peak peak = {0};
    cfx_status status;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = cfx_runtime_peak(self->rt, &peak, &err);
    Py_END_ALLOW_THREADS
    if (status != CFX_OK)
        return raise_cfx(&err);
    return Py_BuildValue("{s:s,s:I,s:d,s:d}", "isa", cfx_isa_name(peak.isa), "threads",
                         peak.threads, "gflops", peak.gflops, "gbytes", peak.gbytes);
}

static PyObject *runtime_threads(PyRuntime *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(cfx_runtime_threads(self->rt));
}

static PyObject *runtime_isa(PyRuntime *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(cfx_isa_name(cfx_runtime_isa(self->rt)));
}

static PyObject *runtime_repr(PyRuntime *self)
{
    return PyUnicode_FromFormat("Runtime(threads=%u, isa='%s')", cfx_runtime_threads(self->rt),
                                cfx_isa_name(cfx_runtime_isa(self->rt)));
}

/* _profiled(threads, isa): a runtime that keeps a profile of what it computes. */
static PyObject *runtime_profiled(PyObject *type, PyObject *args)
{
    cfx_runtime_options options = {0};
    PyObject *isa;
    if (!PyArg_ParseTuple(args, "IO:_profiled", &options.threads, &isa) ||
        !read_isa(isa, &options))
        return NULL;
    return make((PyTypeObject *)type, options, true);
}

/* _profile(kind): what was measured since the last call, as text: 0 a table, 1 JSON, 2 a trace; or
 * None, which only forgets it. */
static PyObject *runtime_profile(PyRuntime *self, PyObject *kind)
{
    cfx_error err = {0};
    cfx_buffer text;
    if (!self->profile)
        return PyErr_Format(PyExc_ValueError, "the runtime keeps no profile");
    if (kind == Py_None) {
        cfx_profile_clear(self->profile);
        Py_RETURN_NONE;
    }
    const long format = PyLong_AsLong(kind);
    if (format == -1 && PyErr_Occurred())
        return NULL;
    cfx_buffer_init(&text, NULL);
    PyObject *object = NULL;
    if (cfx_profile_print(self->profile, (cfx_profile_format)format, cfx_buffer_sink(&text),
                          &err) == CFX_OK)
        object = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "replace");
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    return object;
}

static PyMethodDef methods[] = {
    {"_profiled", (PyCFunction)runtime_profiled, METH_VARARGS | METH_CLASS, NULL},
    {"_profile", (PyCFunction)runtime_profile, METH_O, NULL},
    {"manual_seed", (PyCFunction)runtime_seed, METH_O,
     SIGNED("manual_seed($self, seed, /)", "Random numbers from here on follow this seed.")},
    {"peak", (PyCFunction)runtime_peak, METH_NOARGS,
     SIGNED("peak($self, /)", "What its threads can do at best, measured now: `gflops` of float32 "
            "multiply-adds, `gbytes` a second from memory.")},
    {"__enter__", (PyCFunction)runtime_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)runtime_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"threads", (getter)runtime_threads, NULL, "How many threads compute.", NULL},
    {"isa", (getter)runtime_isa, NULL, "What the kernels use of the machine.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, SIGNED("Runtime(*, threads=0, seed=0, reference=False, isa=None)",
                       "What computing needs; `with` makes it the one that computes.\n\n"
                       "threads: 0 for as many as the process may use. reference: the plain "
                       "kernels, in one thread.\nisa: use at most 'plain', 'avx2', 'avx512' or "
                       "'neon'.")},
    {Py_tp_new, runtime_new},
    {Py_tp_repr, runtime_repr},
    {Py_tp_dealloc, runtime_dealloc},
    {Py_tp_traverse, runtime_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};

PyType_Spec runtime_spec = {
    .name = "cfx._core.Runtime",
    .basicsize = sizeof(PyRuntime),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
