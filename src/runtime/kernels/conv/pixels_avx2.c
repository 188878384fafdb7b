/* pixels_avx2.c - rows of channels combined, in vectors of eight. */
#include "pixels.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "no-trapping-math")
#define LANES 8
#include "runtime/vector.h"

#include "pixels_vector.h"
#endif
