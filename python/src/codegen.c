#include "pycfx.h"
PyMethodDef codegen_functions[] = {{NULL, NULL, 0, NULL}};
