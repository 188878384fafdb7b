/* package.h - .cfx files: what executable.c and onnx_save.c ask of package.c. */
#ifndef PYCFX_PACKAGE_H
#define PYCFX_PACKAGE_H

#include "base/pycfx.h"

#include <cfx/package.h>

/* Opens a path, or bytes, of which `view` (all zero before) is then held: the caller releases it
 * after the package. NULL with an exception or with *err set. */
cfx_package *package_open(PyObject *source, const cfx_package_options *options, Py_buffer *view,
                          cfx_error *err);
/* The texts of a dict, borrowed from it: an array that the caller frees (PyMem_Free); NULL with an
 * exception. */
cfx_package_part *package_parts(PyObject *texts);

#endif
