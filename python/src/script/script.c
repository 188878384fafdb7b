/* script.c - evaluations of programs from their source: _evaluate, and what belongs to one.
 *
 * The evaluator and the world live while a tracer runs (trace_hooks.c), so that what is called as a
 * trace would call it finds everything hooked.
 */
#include "scripting.h"

/* ---- life ---------------------------------------------------------------------------------- */

static cfx_object *world_wrap(void *ctx, cfx_script_function *f, cfx_error *err)
{
    return script_result(ctx, script_function_new(ctx, f), err);
}

static PyScript *script_new(PyObject *module, PyTracer *t, PyObject *mode)
{
    module_state *st = PyModule_GetState(module);
    PyScript *w = alloc_quietly((PyTypeObject *)st->ScriptType);
    if (!w)
        return NULL;
    w->st = st;
    w->module = Py_NewRef(module);
    w->tracer = (PyTracer *)Py_NewRef((PyObject *)t);
    w->mode = Py_NewRef(mode);
    w->sources = PyList_New(0);
    w->kept = PyList_New(0);
    w->aside = PyDict_New();
    w->flags = PyDict_New();
    w->cached = PyDict_New();
    w->begun = PyDict_New();
    w->outside = PyDict_New();
    w->spaces = PyDict_New();
    w->defs = PyDict_New();
    w->classes = PySet_New(NULL);
    w->world.ctx = w;
    w->world.callee = script_callee;
    w->world.call = script_world_call;
    w->world.wrap = world_wrap;
    script_change_entries(&w->world);
    script_stale_entries(&w->world);
    script_object_entries(&w->world);
    script_operate_entries(&w->world);
    script_attribute_entries(&w->world);
    script_graph_entries(&w->world);
    script_raise_entries(&w->world);
    if (PyErr_Occurred())
        Py_CLEAR(w);
    return w;
}

/* Ends an evaluation: what is left are the sources of functions that somebody may still hold. */
static void script_end(PyScript *w)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    cfx_evaluator *ev = w->ev;
    PyTracer *t = w->tracer;
    while (w->n_scopes > 0)
        scope_pop(t, w->scopes[--w->n_scopes]);
    PyMem_Free(w->scopes);
    w->scopes = NULL;
    w->ev = NULL;
    cfx_evaluator_free(ev);
    if (t) {
        t->script = NULL;
        t->here = 0;
    }
    w->tracer = NULL;
#define X(name) Py_CLEAR(w->name);
    SCRIPT_OBJECTS(X)
#undef X
    Py_XDECREF((PyObject *)t);
    PyErr_Restore(type, value, traceback);
}

static void script_dealloc(PyScript *w)
{
    PyTypeObject *type = Py_TYPE(w);
    if (w->tracer)
        script_end(w);
    Py_XDECREF(w->sources);
    Py_XDECREF(w->module);
    type->tp_free(w);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "An evaluation of a program from its source."},
    {Py_tp_dealloc, script_dealloc},
    {0, NULL},
};

PyType_Spec script_spec = {
    .name = "cfx._core.Script",
    .basicsize = sizeof(PyScript),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* ---- evaluating ---------------------------------------------------------------------------- */

/* Calls body(), which calls _script_call; then what the program assigned to modules is kept. */
static PyObject *run(PyScript *w, PyObject *body)
{
    cfx_error err = {0};
    PyObject *result = PyObject_CallNoArgs(body);
    if (result && cfx_evaluator_finish(w->ev, &err) != CFX_OK) {
        Py_CLEAR(result);
        script_raise(w, &err);
    }
    if (result && script_check_caches(w, &err) < 0) {
        Py_CLEAR(result);
        if (!PyErr_Occurred())
            script_raise_error(w->st, &err);
    }
    return result;
}

/* Says whether a flag was read, and where evaluation ended. An exception that is set stays. */
static void tell_mode(PyScript *w, PyObject **result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *where = Py_BuildValue("(zI)", w->file, (unsigned)w->line);
    const int failed =
        !where || PyObject_SetAttrString(w->mode, "where", where) < 0 ||
        PyObject_SetAttrString(w->mode, "reads_flags", w->reads_flags ? Py_True : Py_False) < 0;
    Py_XDECREF(where);
    if (failed) {
        Py_CLEAR(*result);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return;
    }
    PyErr_Restore(type, value, traceback);
}

/* _evaluate(tracer, body, mode, most_calls, most_rounds, training): body(), with an evaluator that
 * records in the tracer's graph. `mode` is torch's: it calls _script_torch, and is told whether a
 * flag was read that `training` (PyScript.training) does not fix, and the last place. */
static PyObject *evaluate(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    cfx_script_options options = {0};
    cfx_error err = {0};
    PyObject *tracer, *body, *mode;
    int training;
    if (!PyArg_ParseTuple(args, "O!OOIIi:_evaluate", st->TracerType, &tracer, &body, &mode,
                          &options.most_calls, &options.most_rounds, &training))
        return NULL;
    PyTracer *t = (PyTracer *)tracer;
    if (t->script || !t->graph || !is_graph(st, t->graph))
        return PyErr_Format(PyExc_RuntimeError, "this tracer has no graph, or is already "
                            "evaluating a program");
    PyScript *w = script_new(module, t, mode);
    if (!w)
        return NULL;
    w->training = training;
    w->flag = cfx_graph_last(((PyGraph *)t->graph)->g);
    w->ev = cfx_evaluator_new(&w->world, ((PyGraph *)t->graph)->g, &options, &err);
    PyObject *result = NULL;
    if (w->ev) {
        t->script = w;
        result = run(w, body);
        tell_mode(w, &result);
    } else {
        raise_cfx(&err);
    }
    script_end(w);
    Py_DECREF((PyObject *)w);
    return result;
}

/* What is to be captured must have a source, if it is the user's: -1 with an exception. */
static int check_source(PyScript *w, PyObject *function)
{
    cfx_error err = {0};
    PyObject *f = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
    PyCodeObject *code = PyFunction_Check(f) ? (PyCodeObject *)PyFunction_GET_CODE(f) : NULL;
    if (!code || script_is_users(w->st, code->co_filename) == 0 || script_def(w, f, &err))
        return 0;
    if (PyErr_Occurred())
        return -1;
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *what = "has no source that can be read, or shares its line with other lambdas; put "
                       "each into a line of its own, in a file";
    if (file && file[0] == '<')
        what = "has no source: Python did not keep the text; put it into a file and import that, "
               "or use IPython, Jupyter or the prompt of Python 3.13 or newer, which keep what is "
               "typed. For text that exec runs, compile it under a name of its own and put its "
               "lines into linecache.cache";
    PyErr_Clear();  /* the name is not UTF-8 */
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        what = "is a generator or a coroutine, which cannot be captured; return a list or a tuple "
               "instead";
    const char *name = PyUnicode_AsUTF8(code->co_name);
    if (err.status == CFX_OK)
        cfx_error_set(&err, CFX_E_UNSUPPORTED, "%s:%d: '%s' %s", file ? file : "?",
                      code->co_firstlineno, name ? name : "?", what);
    PyErr_Clear();
    script_raise(w, &err);
    return -1;
}

/* _script_call(tracer, function, args, kwargs): evaluates a call, while _evaluate runs. */
static PyObject *py_script_call(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *tracer, *function, *call_args, *kwargs;
    if (!PyArg_ParseTuple(args, "O!OO!O!:_script_call", st->TracerType, &tracer, &function,
                          &PyTuple_Type, &call_args, &PyDict_Type, &kwargs))
        return NULL;
    PyScript *w = ((PyTracer *)tracer)->script;
    if (!w)
        return PyErr_Format(PyExc_RuntimeError, "this tracer is not evaluating a program");
    if (check_source(w, function) < 0)
        return NULL;
    return script_call(w, function, ((PyTupleObject *)call_args)->ob_item,
                       PyTuple_GET_SIZE(call_args), kwargs);
}

PyObject *script_call_module(PyScript *w, PyObject *module, PyObject *args, PyObject *kwargs)
{
    w->calling = module;
    return script_call(w, module, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), kwargs);
}

/* _script_plainly(module): the next assignment to an attribute of the module does not ask its
 * class. */
static PyObject *py_script_plainly(PyObject *module, PyObject *of)
{
    PyScript *w = script_in_charge(PyModule_GetState(module));
    if (w)
        w->assigning = of;
    Py_RETURN_NONE;
}

/* _script_specials(): the qualified names of the functions that the evaluator carries out itself,
 * in the order of their numbers. */
static PyObject *py_specials(PyObject *module, PyObject *unused)
{
    static const char *const names[] = {
#define CFX_SPECIAL(id, name) name,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    };
    (void)module;
    (void)unused;
    return interned_names(names, CFX_SPECIALS);
}

/* _script_policy(): of policy.def: [(qualified name, rule)] of what is recorded, "math.*" before
 * functions of math, and the names of facts. */
static PyObject *py_policy(PyObject *module, PyObject *unused)
{
    static const struct {
        const char *name;
        int rule;
    } rows[] = {
#define CFX_CALL(name, recorded, changes) {name, CFX_RULE_##recorded},
#include <cfx/embed/policy.def>
    };
    static const char *const facts[] = {
#define CFX_FACT(name) name,
#include <cfx/embed/policy.def>
    };
    const size_t n = sizeof rows / sizeof *rows;
    PyObject *list = PyList_New(0);
    PyObject *names = interned_names(facts, sizeof facts / sizeof *facts);
    (void)module;
    (void)unused;
    for (size_t i = 0; list && i < n; i++) {
        if (rows[i].rule == CFX_RULE_NEVER)
            continue;
        PyObject *row = Py_BuildValue("si", rows[i].name, rows[i].rule);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    PyObject *both = list && names ? PyTuple_Pack(2, list, names) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(names);
    return both;
}

/* _script_tidy(graph): puts a graph in order that has just been captured. */
static PyObject *py_script_tidy(PyObject *module, PyObject *graph)
{
    cfx_error err = {0};
    module_state *st = PyModule_GetState(module);
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "_script_tidy takes a Graph");
    if (cfx_script_tidy_graph(((PyGraph *)graph)->g, &err) != CFX_OK)
        return script_raise_error(st, &err);
    Py_RETURN_NONE;
}

/* _script_name(graph, last): names the nodes behind one, after an evaluation. */
static PyObject *py_script_name(PyObject *module, PyObject *args)
{
    cfx_error err = {0};
    module_state *st = PyModule_GetState(module);
    PyObject *graph, *last;
    if (!PyArg_ParseTuple(args, "O!O!:_script_name", st->GraphType, &graph, st->NodeType, &last))
        return NULL;
    if (cfx_script_name_graph(((PyGraph *)graph)->g, ((PyNode *)last)->n, &err) != CFX_OK)
        return script_raise_error(st, &err);
    Py_RETURN_NONE;
}

PyMethodDef script_functions[] = {
    {"_evaluate", evaluate, METH_VARARGS, NULL},
    {"_script_call", py_script_call, METH_VARARGS, NULL},
    {"_script_tidy", py_script_tidy, METH_O, NULL},
    {"_script_name", py_script_name, METH_VARARGS, NULL},
    {"_script_torch", (PyCFunction)(void (*)(void))script_torch, METH_FASTCALL, NULL},
    {"_script_recall", (PyCFunction)(void (*)(void))script_recall, METH_FASTCALL, NULL},
    {"_script_remember", (PyCFunction)(void (*)(void))script_remember, METH_FASTCALL, NULL},
    {"_script_plainly", py_script_plainly, METH_O, NULL},
    {"_script_specials", py_specials, METH_NOARGS, NULL},
    {"_script_policy", py_policy, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
