/* complete.c - graphs in any form of the table of generators: _generate_form, _generators. */
#include "graph/graph_methods.h"

/* The text that a generator makes. */
static PyObject *run_generator(const cfx_generator *generator, cfx_graph *g,
                               const cfx_generate_options *options)
{
    cfx_error err = {0};
    cfx_buffer text;
    PyObject *result = NULL;
    cfx_buffer_init(&text, NULL);
    cfx_status status = cfx_generate(generator, g, options, cfx_buffer_sink(&text), &err);
    if (status == CFX_OK && !PyErr_Occurred())
        result = PyUnicode_DecodeUTF8(text.data ? text.data : "", (Py_ssize_t)text.size,
                                      "surrogatepass");
    else
        raise_cfx(&err);
    cfx_buffer_free(&text);
    return result;
}

/* _generate_form(graph, root or None, name, class name or None, width, scopes) */
static PyObject *py_generate(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *graph, *root;
    const char *name;
    Py_ssize_t width;
    int scopes;
    module_view view = {0};
    cfx_generate_options options = {0};
    if (!PyArg_ParseTuple(args, "OOsznp:_generate_form", &graph, &root, &name, &options.class_name,
                          &width, &scopes))
        return NULL;
    if (!is_graph(st, graph))
        return PyErr_Format(PyExc_TypeError, "expected a Graph, got %s", Py_TYPE(graph)->tp_name);
    const cfx_generator *generator = cfx_generator_find(name);
    if (!generator)
        return PyErr_Format(PyExc_ValueError, "there is no generator '%s'; cfx.generators() lists "
                            "them", name);
    options.width = width > 0 ? (size_t)width : 0;
    options.module_stacks = scopes;
    const bool has_root = root != Py_None && generator->flags & CFX_GENERATOR_MODULES;
    if (has_root && !modules_over(st, root, &view))
        return NULL;
    options.modules = has_root ? &view.table : NULL;
    PyObject *result = run_generator(generator, ((PyGraph *)graph)->g, &options);
    if (has_root)
        modules_done(&view);
    return result;
}

/* The options that a generator takes, as their names in Python. */
static PyObject *taken_by(const cfx_generator *generator)
{
    static const struct {
        unsigned flag;
        const char *name;
    } known[] = {{CFX_GENERATOR_CLASS, "class_name"},
                 {CFX_GENERATOR_WIDTH, "width"},
                 {CFX_GENERATOR_SCOPES, "scopes"}};
    PyObject *set = PyFrozenSet_New(NULL);
    for (size_t i = 0; set && i < sizeof known / sizeof *known; i++) {
        if (!(generator->flags & known[i].flag))
            continue;
        PyObject *name = PyUnicode_FromString(known[i].name);
        if (!name || PySet_Add(set, name) < 0)
            Py_CLEAR(set);
        Py_XDECREF(name);
    }
    return set;
}

/* [(name, extension, summary, options), ...] in the order of the table. */
static PyObject *py_generators(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && cfx_generator_get(i); i++) {
        const cfx_generator *g = cfx_generator_get(i);
        PyObject *row = Py_BuildValue("(sssN)", g->name, g->extension, g->summary, taken_by(g));
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

PyMethodDef complete_functions[] = {
    {"_generate_form", py_generate, METH_VARARGS, NULL},
    {"_generators", py_generators, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
