/* comparison.h - two versions of a graph, as Python compares them. */
#ifndef PYCFX_COMPARISON_H
#define PYCFX_COMPARISON_H

#include "base/pycfx.h"

extern PyType_Spec comparison_spec;
extern PyType_Spec correction_spec;

#endif
