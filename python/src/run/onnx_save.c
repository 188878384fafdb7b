/* onnx_save.c - ONNX files for Python (cfx/onnx.py): texts and tensors of a model go out. */
#include "run/package.h"

#include <cfx/onnx.h>

/* What cannot be written: (where, node, operator, why), in a list. */
static void note(void *ctx, const cfx_onnx_finding *f)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *row = PyErr_Occurred() ? NULL : Py_BuildValue("(ssss)", f->where, f->node, f->op,
                                                            f->why);
    if (row)
        PyList_Append(ctx, row);  /* an exception stays, and is raised at the end */
    Py_XDECREF(row);
    PyGILState_Release(gil);
}

static cfx_status save_contents(const char *path, const cfx_package_contents *contents,
                                const cfx_onnx_write_options *options, cfx_error *err)
{
    cfx_package *p = cfx_package_new(contents, NULL, err);
    const cfx_status status = p ? cfx_onnx_save(p, path, options, err) : err->status;
    cfx_package_free(p);
    return status;
}

/* _save_onnx(path, model, {name: text}, {name: tensor}, opset, external) -> what could not be
 * written; nothing was, if there is any. */
static PyObject *save_onnx(PyObject *module, PyObject *args)
{
    PyObject *path, *texts, *tensors;
    const char *model;
    int opset, external;
    cfx_error err = {0};
    arrays_seen seen = {0};
    if (!PyArg_ParseTuple(args, "O&sO!Oip:_save_onnx", PyUnicode_FSConverter, &path, &model,
                          &PyDict_Type, &texts, &tensors, &opset, &external))
        return NULL;
    PyObject *findings = PyList_New(0);
    cfx_package_part *parts = findings ? package_parts(texts) : NULL;
    cfx_state *state = parts ? state_from_py(PyModule_GetState(module), tensors, &seen) : NULL;
    cfx_status status = CFX_E_HOST;
    if (state) {
        const cfx_package_contents contents = {
            .model = model, .parts = parts, .num_parts = (size_t)PyDict_GET_SIZE(texts),
            .weights = state};
        const cfx_onnx_write_options options = {.opset = opset, .external = external,
                                                .each = note, .ctx = findings};
        Py_BEGIN_ALLOW_THREADS
        status = save_contents(PyBytes_AS_STRING(path), &contents, &options, &err);
        Py_END_ALLOW_THREADS
    }
    cfx_state_free(state);
    PyMem_Free(parts);
    Py_DECREF(path);
    const bool told = findings && PyList_GET_SIZE(findings) > 0;
    if (!PyErr_Occurred() && (status == CFX_OK || (status == CFX_E_UNSUPPORTED && told)))
        return findings;
    Py_XDECREF(findings);
    return PyErr_Occurred() ? NULL : raise_cfx(&err);
}

PyMethodDef onnx_save_functions[] = {
    {"_save_onnx", save_onnx, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
