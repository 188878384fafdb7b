/* command.c - the command cfx from Python: `python -m cfx`. */
#include "base/pycfx.h"
#include "cli/command.h"

/* The words as C strings, borrowed from the tuple of bytes `encoded`, which it fills; NULL with an
 * exception. */
static char **c_words(PyObject *words, PyObject *encoded, Py_ssize_t n)
{
    char **argv = PyMem_Calloc((size_t)n + 1, sizeof *argv);
    if (!argv)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; argv && i < n; i++) {
        PyObject *bytes = NULL;
        if (!PyUnicode_FSConverter(PySequence_Fast_GET_ITEM(words, i), &bytes)) {
            PyMem_Free(argv);
            return NULL;
        }
        PyTuple_SET_ITEM(encoded, i, bytes);
        argv[i] = PyBytes_AS_STRING(bytes);
    }
    return argv;
}

static PyObject *py_command(PyObject *module, PyObject *arg)
{
    (void)module;
    PyObject *words = PySequence_Fast(arg, "the words of a command must be a list of strings");
    const Py_ssize_t n = words ? PySequence_Fast_GET_SIZE(words) : 0;
    PyObject *encoded = words ? PyTuple_New(n) : NULL;
    char **argv = encoded ? c_words(words, encoded, n) : NULL;
    PyObject *code = argv ? PyLong_FromLong(cli_command((int)n, argv)) : NULL;
    PyMem_Free(argv);
    Py_XDECREF(encoded);
    Py_XDECREF(words);
    return code;
}

PyMethodDef command_functions[] = {
    {"_command", py_command, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
