/* codegen.c - Python source from a graph: the core writes, cfx/_glue/codegen.py answers its
 * questions.
 *
 * The Python side of one run is an object, the job. Its attributes named in HOOKS are functions, or
 * None where the core's default will do; they are fetched once, so that a plain graph costs no call
 * of Python for each node. `names` is a dict with the names of the globals that are known before.
 * While the run lasts the job has three functions more: job_methods.
 */
#include "base/pycfx.h"

#define HOOKS(X)                                                                                \
    X(begin) X(value) X(annotation) X(comment) X(remark) X(output) X(signature) X(transform)

typedef struct code_run {
    PyGraph *graph;
    code_names names;
    PyObject *handle;   /* capsule around this struct, for the functions that the job gets */
    bool shows_names;   /* this run told the graph's nodes to show their generated names */
#define X(name) PyObject *name;
    HOOKS(X)
#undef X
} code_run;

static const char running[] = "cfx._core.code_run";
static const char finished[] = "cfx._core.code_run (finished)";

static cfx_status failed(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "Python raised an exception");
}

/* ---- questions of the core ----------------------------------------------------------------- */

/* Writes what a hook returned, a reference that is given up; None writes nothing. */
static cfx_status write_answer(PyObject *answer, const char *hook, cfx_sink out, cfx_error *err)
{
    cfx_status status = CFX_OK;
    if (!answer)
        return failed(err);
    if (answer != Py_None && !PyUnicode_Check(answer)) {
        PyErr_Format(PyExc_TypeError, "%s must return a str, got %R", hook,
                     (PyObject *)Py_TYPE(answer));
        status = failed(err);
    } else if (answer != Py_None) {
        status = write_str(answer, out, err);
    }
    Py_DECREF(answer);
    return status;
}

static cfx_status begin(void *ctx, cfx_pycode *gen, cfx_error *err)
{
    code_run *run = ctx;
    run->names.gen = gen;
    if (!run->graph->code) {
        run->graph->code = gen;
        run->shows_names = true;
    }
    if (!run->begin)
        return CFX_OK;
    PyObject *answer = PyObject_CallNoArgs(run->begin);
    Py_XDECREF(answer);
    return answer ? CFX_OK : failed(err);
}

static cfx_status target(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    return write_answer(code_target(&run->names, object), "target", out, err);
}

static cfx_status value(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    return write_answer(PyObject_CallOneArg(run->value, object), "value", out, err);
}

static cfx_status type(void *ctx, cfx_pycode *gen, cfx_value v, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    PyObject *object = value_to_py(run->graph, v);
    PyObject *answer = object ? code_type(&run->names, object) : NULL;
    Py_XDECREF(object);
    return write_answer(answer, "type", out, err);
}

static cfx_status ask_of_node(PyObject *hook, const char *name, cfx_node *n, cfx_sink out,
                              cfx_error *err)
{
    PyObject *node = node_wrap(cfx_graph_binding(cfx_node_graph(n)), n);
    PyObject *answer = node ? PyObject_CallOneArg(hook, node) : NULL;
    Py_XDECREF(node);
    return write_answer(answer, name, out, err);
}

static PyObject *meta_of(cfx_node *n)
{
    PyNode *node = cfx_node_binding(n);
    return node ? node->meta : NULL;
}

static cfx_status annotation(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    if (!meta_of(n))
        return CFX_OK;
    return ask_of_node(run->annotation, "annotation", n, out, err);
}

static cfx_status comment(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    return ask_of_node(run->comment, "comment", n, out, err);
}

static cfx_status remark(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    if (!meta_of(n))
        return CFX_OK;
    return ask_of_node(run->remark, "remark", n, out, err);
}

static cfx_status output(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    return ask_of_node(run->output, "generate_output", n, out, err);
}

static int is_wrapped(void *ctx, cfx_node *n)
{
    (void)ctx;
    PyObject *meta = meta_of(n);
    PyObject *mark = meta ? PyDict_GetItemString(meta, "is_wrapped") : NULL;
    return mark ? PyObject_IsTrue(mark) : 0;
}

static PyObject *list_of_texts(const cfx_pycode_text *texts, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = str_from_utf8(texts[i].data, texts[i].size);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static cfx_status signature(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params, size_t n,
                            cfx_pycode_text returns, cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    PyObject *list = list_of_texts(params, n);
    PyObject *text = list ? str_from_utf8(returns.data, returns.size) : NULL;
    PyObject *answer = NULL;
    if (text)
        answer = PyObject_CallFunctionObjArgs(run->signature, list, text, NULL);
    Py_XDECREF(list);
    Py_XDECREF(text);
    return write_answer(answer, "gen_fn_def", out, err);
}

static cfx_status transform(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                            cfx_sink out, cfx_error *err)
{
    (void)gen;
    code_run *run = ctx;
    PyObject *list = list_of_texts(pieces, n);
    PyObject *body = list ? PyObject_CallOneArg(run->transform, list) : NULL;
    PyObject *text = body ? PyUnicode_Join(run->graph->st->str_empty, body) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(body);
    return write_answer(text, "transform", out, err);
}

/* ---- questions of the job ------------------------------------------------------------------ */

static code_run *run_of(PyObject *handle)
{
    if (PyCapsule_IsValid(handle, running))
        return PyCapsule_GetPointer(handle, running);
    PyErr_SetString(PyExc_RuntimeError, "this works only while the code is being generated");
    return NULL;
}

/* add_global(object, wish): the name of a new global, which may be a reserved word. The job keeps
 * the object alive. */
static PyObject *add_global(PyObject *handle, PyObject *args)
{
    PyObject *object, *wish;
    code_run *run = run_of(handle);
    if (!run || !PyArg_ParseTuple(args, "OU:add_global", &object, &wish))
        return NULL;
    return code_add_global(&run->names, wish, object, true);
}

/* global_for(wish, object): the name of the global that stands for the object. */
static PyObject *global_for(PyObject *handle, PyObject *args)
{
    PyObject *wish, *object;
    code_run *run = run_of(handle);
    if (!run || !PyArg_ParseTuple(args, "UO:global_for", &wish, &object))
        return NULL;
    return code_global(&run->names, wish, object);
}

/* expression(value): how the value is written among the arguments of a call. */
static PyObject *expression(PyObject *handle, PyObject *object)
{
    cfx_error err = {0};
    cfx_buffer out;
    PyObject *text = NULL;
    code_run *run = run_of(handle);
    cfx_value v = run ? value_from_py(run->graph, object) : cfx_value_invalid();
    if (v.kind == CFX_KIND_INVALID)
        return NULL;
    cfx_buffer_init(&out, NULL);
    if (cfx_pycode_value(run->names.gen, v, cfx_buffer_sink(&out), &err) == CFX_OK)
        text = str_from_utf8(out.data, out.size);
    else
        raise_cfx(&err);
    cfx_buffer_free(&out);
    cfx_value_discard(run->graph->g, v);
    return text;
}

static PyMethodDef job_methods[] = {
    {"add_global", add_global, METH_VARARGS, NULL},
    {"global_for", global_for, METH_VARARGS, NULL},
    {"expression", expression, METH_O, NULL},
};

static bool equip_job(code_run *run, PyObject *job)
{
    for (size_t i = 0; i < sizeof job_methods / sizeof *job_methods; i++) {
        PyObject *function = PyCFunction_New(&job_methods[i], run->handle);
        int done = function ? PyObject_SetAttrString(job, job_methods[i].ml_name, function) : -1;
        Py_XDECREF(function);
        if (done < 0)
            return false;
    }
    return true;
}

/* ---- a run --------------------------------------------------------------------------------- */

/* A hook, or NULL for None; false with an exception. */
static bool fetch_hook(PyObject *job, const char *name, PyObject **hook)
{
    *hook = PyObject_GetAttrString(job, name);
    if (*hook == Py_None)
        Py_CLEAR(*hook);
    return !PyErr_Occurred();
}

static bool run_begin(code_run *run, PyObject *job)
{
    run->handle = PyCapsule_New(run, running, NULL);
    run->names.st = run->graph->st;
    run->names.known = PyObject_GetAttrString(job, "names");
    if (!run->handle || !run->names.known || !equip_job(run, job))
        return false;
    if (!PyDict_Check(run->names.known)) {
        PyErr_SetString(PyExc_TypeError, "the names of a job must be a dict");
        return false;
    }
#define X(name)                                                                                    \
    if (!fetch_hook(job, #name, &run->name))                                                       \
        return false;
    HOOKS(X)
#undef X
    return true;
}

static void run_end(code_run *run)
{
    if (run->handle)
        PyCapsule_SetName(run->handle, finished);
    if (run->shows_names)
        run->graph->code = NULL;
    Py_XDECREF(run->handle);
    Py_XDECREF(run->names.known);
#define X(name) Py_XDECREF(run->name);
    HOOKS(X)
#undef X
}

static void set_callbacks(const code_run *run, cfx_pycode_options *options)
{
    options->begin = begin;
    options->is_wrapped = is_wrapped;
    options->target = target;
    options->value = run->value ? value : NULL;
    options->type = type;
    options->annotation = run->annotation ? annotation : NULL;
    options->comment = run->comment ? comment : NULL;
    options->remark = run->remark ? remark : NULL;
    options->output = run->output ? output : NULL;
    options->signature = run->signature ? signature : NULL;
    options->transform = run->transform ? transform : NULL;
}

/* ---- the result ---------------------------------------------------------------------------- */

static int fill_globals(const code_run *run, PyObject *globals, const cfx_pycode_result *result)
{
    for (size_t i = 0; i < result->n_globals; i++) {
        const cfx_pycode_name *global = &result->globals[i];
        PyObject *object = Py_XNewRef((PyObject *)global->object);
        if (!object)  /* known by name only */
            object = name_object(run->graph->st, global->qualified, strlen(global->qualified));
        int done = object ? PyDict_SetItemString(globals, global->name, object) : -1;
        Py_XDECREF(object);
        if (done < 0)
            return -1;
    }
    return 0;
}

/* {line: number of its node, or None} */
static PyObject *line_map(const cfx_pycode_result *result)
{
    PyObject *map = PyDict_New();
    PyObject *node = NULL;
    uint32_t current = 0;
    for (size_t i = 0; map && i < result->n_lines; i++) {
        if (!node || result->line_nodes[i] != current) {
            current = result->line_nodes[i];
            Py_XSETREF(node, current == CFX_PYCODE_NO_NODE ? Py_NewRef(Py_None)
                                                           : PyLong_FromUnsignedLong(current));
        }
        PyObject *line = PyLong_FromSize_t(result->first_line + i);
        if (!node || !line || PyDict_SetItem(map, line, node) < 0)
            Py_CLEAR(map);
        Py_XDECREF(line);
    }
    Py_XDECREF(node);
    return map;
}

static PyObject *to_tuple(const code_run *run, PyObject *globals, const cfx_pycode_result *result)
{
    if (fill_globals(run, globals, result) < 0)
        return NULL;
    PyObject *source = str_from_utf8(result->source.data, result->source.size);
    PyObject *lines = source ? line_map(result) : NULL;
    if (!lines) {
        Py_XDECREF(source);
        return NULL;
    }
    return Py_BuildValue("(NNk)", source, lines, (unsigned long)result->prologue_start);
}

PyDoc_STRVAR(generate_doc,
"_generate(graph, job, root, function, globals, expanded_def, record_func, colored, /)\n--\n\n"
"(source, line map, prologue start) of the graph's function; adds its globals to the dict.");

static PyObject *generate(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    cfx_error err = {0};
    cfx_pycode_result result;
    PyObject *graph = NULL;
    PyObject *job = NULL;
    PyObject *globals = NULL;
    PyObject *code = NULL;
    cfx_pycode_options options = {0};
    int expanded_def = 0;
    int record_func = 0;
    int colored = 0;
    if (!PyArg_ParseTuple(args, "O!OssO!ppp:_generate", st->GraphType, &graph, &job, &options.root,
                          &options.function, &PyDict_Type, &globals, &expanded_def, &record_func,
                          &colored))
        return NULL;
    code_run run = {.graph = (PyGraph *)graph};
    options.expanded_def = expanded_def;
    options.record_func = record_func;
    options.colored = colored;
    options.ctx = &run;
    if (run_begin(&run, job)) {
        set_callbacks(&run, &options);
        if (cfx_codegen_python(run.graph->g, &options, &result, &err) == CFX_OK) {
            code = to_tuple(&run, globals, &result);
            cfx_pycode_free(&result);
        } else {
            raise_cfx(&err);
        }
    }
    run_end(&run);
    return code;
}

/* ---- the default head ---------------------------------------------------------------------- */

static bool texts_of_list(PyObject *list, cfx_pycode_text *texts)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        Py_ssize_t size;
        texts[i].data = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(list, i), &size);
        if (!texts[i].data)
            return false;
        texts[i].size = (size_t)size;
    }
    return true;
}

PyDoc_STRVAR(signature_doc,
"_signature(function, params, returns, expanded, /)\n--\n\n"
"`def function(self, x) -> T:`; expanded puts each parameter on its own line.");

static PyObject *default_signature(PyObject *module, PyObject *args)
{
    (void)module;
    cfx_error err = {0};
    cfx_buffer out;
    const char *function = NULL;
    PyObject *list = NULL;
    PyObject *text = NULL;
    cfx_pycode_text returns = {NULL, 0};
    Py_ssize_t returns_size = 0;
    int expanded = 0;
    if (!PyArg_ParseTuple(args, "sO!s#p:_signature", &function, &PyList_Type, &list, &returns.data,
                          &returns_size, &expanded))
        return NULL;
    returns.size = (size_t)returns_size;
    size_t n = (size_t)PyList_GET_SIZE(list);
    cfx_pycode_text *params = PyMem_New(cfx_pycode_text, n ? n : 1);
    if (!params)
        return PyErr_NoMemory();
    cfx_buffer_init(&out, NULL);
    if (texts_of_list(list, params)) {
        if (cfx_pycode_signature(function, params, n, returns, expanded, cfx_buffer_sink(&out),
                                 &err) == CFX_OK)
            text = str_from_utf8(out.data, out.size);
        else
            raise_cfx(&err);
    }
    cfx_buffer_free(&out);
    PyMem_Free(params);
    return text;
}

/* ---- signs --------------------------------------------------------------------------------- */

typedef struct operator_row {
    const char *name, *format;
    enum { REFLECTABLE, PLAIN, IN_PLACE, N_KINDS } kind;
} operator_row;

#define FORMAT_INFIX(sign) "{}" sign "{}"
#define FORMAT_GETITEM(sign) "{}[{}]"
#define FORMAT_SETITEM(sign) "{}[{}] = {}"
/* torch.fx has three dicts; the order of each is that of the rows here. */
static const operator_row operators[] = {
#define CFX_SIGN_BINARY(id, sign, function, ...) {function, "{} " sign " {}", REFLECTABLE},
#define CFX_SIGN_COMPARE(id, sign, function, ...) {function, "{} " sign " {}", PLAIN},
#define CFX_SIGN_OTHER(function, form, sign, kind) {function, FORMAT_##form(sign), kind},
#include <cfx/embed/sign.def>
#define CFX_SIGN_UNARY(id, sign, function, ast) {function, sign "{}", PLAIN},
#include <cfx/embed/sign.def>
};
static const operator_row in_place_operators[] = {
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, precedence, place, ...)              \
    [place] = {in_place, "{} " sign "= {}", IN_PLACE},
#include <cfx/embed/sign.def>
};

static int add_formats(PyObject *const *dicts, const operator_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PyObject *format = PyUnicode_FromString(rows[i].format);
        if (!format || PyDict_SetItemString(dicts[rows[i].kind], rows[i].name, format) < 0) {
            Py_XDECREF(format);
            return -1;
        }
        Py_DECREF(format);
    }
    return 0;
}

static PyObject *operator_formats(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *dicts[N_KINDS] = {PyDict_New(), PyDict_New(), PyDict_New()};
    PyObject *result = NULL;
    if (dicts[0] && dicts[1] && dicts[2])
        result = PyTuple_Pack(N_KINDS, dicts[0], dicts[1], dicts[2]);
    if (result &&
        (add_formats(dicts, in_place_operators, Py_ARRAY_LENGTH(in_place_operators)) < 0 ||
         add_formats(dicts, operators, Py_ARRAY_LENGTH(operators)) < 0))
        Py_CLEAR(result);
    for (int i = 0; i < N_KINDS; i++)
        Py_XDECREF(dicts[i]);
    return result;
}

PyMethodDef codegen_functions[] = {
    {"_operator_formats", operator_formats, METH_NOARGS,
     PyDoc_STR("How operators are written: {name: format} of those that have a reflected method, "
               "of others, and of those that assign.")},
    {"_generate", generate, METH_VARARGS, generate_doc},
    {"_signature", default_signature, METH_VARARGS, signature_doc},
    {NULL, NULL, 0, NULL},
};
