/* syntax_api.c - Python source parsed by the core: a door for tests. */
#include "base/pycfx.h"

/* As raise_cfx, but the place is in the source rather than in the text of a graph. */
static PyObject *raise_syntax(const cfx_error *err)
{
    if (err->status != CFX_E_SYNTAX || err->line == 0)
        return raise_cfx(err);
    PyObject *message = str_from_utf8(err->message, strlen(err->message));
    PyObject *args = message ? Py_BuildValue("(N(sIIO))", message, "<source>", err->line,
                                             err->column, Py_None) : NULL;
    if (args)
        PyErr_SetObject(PyExc_SyntaxError, args);
    Py_XDECREF(args);
    return NULL;
}

static PyObject *py_syntax_dump(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", "python", "joined_positions", "dump", NULL};
    const char *source;
    Py_ssize_t size;
    int python = PY_MINOR_VERSION;
    int joined = 1;
    int wanted = 1;
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#|$ipp:_syntax_dump", names, &source,
                                     &size, &python, &joined, &wanted))
        return NULL;
    const cfx_syntax_style style = {python, joined};
    cfx_buffer_init(&text, NULL);
    const cfx_sink sink = cfx_buffer_sink(&text);
    if (cfx_syntax_dump(source, (size_t)size, &style, wanted ? &sink : NULL, &err) == CFX_OK)
        result = str_from_utf8(text.data, text.size);
    else
        raise_syntax(&err);
    cfx_buffer_free(&text);
    return result;
}

PyMethodDef syntax_functions[] = {
    {"_syntax_dump", (PyCFunction)(void (*)(void))py_syntax_dump, METH_VARARGS | METH_KEYWORDS,
     SIGNED("_syntax_dump($module, /, source, *, python=..., joined_positions=True, dump=True)",
            "What ast.dump(ast.parse(source), include_attributes=True) gives, without `ast`.\n"
            "`python` is the minor version whose ast.dump is meant, by default this one. Without\n"
            "joined_positions, nodes inside f-strings have none; without dump, the source is only\n"
            "parsed.")},
    {NULL, NULL, 0, NULL},
};
