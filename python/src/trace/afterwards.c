/* afterwards.c - a call, and what has to happen after it, however it ends.
 *
 * A signal or another thread may raise an exception at any instruction of Python, those of a
 * `finally` included; not in C. So what is put back after a capture is put back from here.
 */
#include "trace.h"

/* An interrupt may come while things are put back; what fails as often as this fails by itself. */
enum { MOST_ATTEMPTS = 100 };

/* _afterwards(body, after): what body() gives or raises, once after(error) has returned; `error` is
 * the exception of body(), or None. An after() that raises is called again, and must be able to
 * begin anew; an exception of its own comes out if body() has none. */
static PyObject *afterwards(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *body, *after;
    if (!PyArg_ParseTuple(args, "OO:_afterwards", &body, &after))
        return NULL;
    PyObject *result = PyObject_CallNoArgs(body);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type) {
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback)
            PyException_SetTraceback(value, traceback);
    }
    PyObject *error = value ? value : Py_None;  /* borrowed */
    PyObject *done = PyObject_CallOneArg(after, error);
    for (int i = 1; !done && i < MOST_ATTEMPTS; i++) {
        if (type)
            PyErr_Clear();  /* what ended body() is what the caller gets to see */
        else
            PyErr_Fetch(&type, &value, &traceback);
        done = PyObject_CallOneArg(after, error);
    }
    if (!done && type)
        PyErr_WriteUnraisable(after);
    Py_XDECREF(done);
    if (type)
        PyErr_Restore(type, value, traceback);
    if (PyErr_Occurred())
        Py_CLEAR(result);
    return result;
}

PyMethodDef afterwards_functions[] = {
    {"_afterwards", afterwards, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
