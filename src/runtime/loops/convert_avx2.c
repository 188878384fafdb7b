/* convert_avx2.c - conversions of element types, with vectors of 8 floats. */
#pragma GCC optimize("O3", "no-trapping-math")
#include "convert.h"

#if defined(__x86_64__)
#define LANES 8
#include "runtime/vector.h"

#include "convert_vector.h"
#endif
