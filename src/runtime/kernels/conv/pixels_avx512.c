/* pixels_avx512.c - rows of channels combined, in vectors of sixteen. */
#include "pixels.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "no-trapping-math")
#define LANES 16
#include "runtime/vector.h"

#include "pixels_vector.h"
#endif
