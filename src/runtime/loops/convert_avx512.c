/* convert_avx512.c - conversions of element types, with vectors of 16 floats. */
#pragma GCC optimize("O3", "no-trapping-math")
#include "convert.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"

#include "convert_vector.h"
#endif
