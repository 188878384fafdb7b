/* convert_neon.c - conversions of element types, with vectors of 4 floats. */
#pragma GCC optimize("O3", "no-trapping-math")
#include "convert.h"

#if defined(__aarch64__)
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "convert_vector.h"
#endif
