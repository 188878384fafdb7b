/* pixels_neon.c - rows of channels combined, in vectors of four. */
#include "pixels.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "no-trapping-math")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "pixels_vector.h"
#endif
