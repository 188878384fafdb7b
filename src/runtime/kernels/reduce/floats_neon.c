/* floats_neon.c - loops over floats, four at a time. */
#include "reduce_impl.h"

#if defined(__aarch64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "floats.h"
#endif
