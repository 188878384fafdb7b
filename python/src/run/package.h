/* package.h - .cfx files: what executable.c asks of package.c. */
#ifndef PYCFX_PACKAGE_H
#define PYCFX_PACKAGE_H

#include "base/pycfx.h"

#include <cfx/package.h>

/* Opens a path, or bytes, of which `view` (all zero before) is then held: the caller releases it
 * after the package. NULL with an exception or with *err set. */
cfx_package *package_open(PyObject *source, const cfx_package_options *options, Py_buffer *view,
                          cfx_error *err);

#endif
