/* floats_avx512.c - loops over floats, sixteen at a time. */
#include "reduce_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define LANES 16
#include "runtime/vector.h"

#include "floats.h"
#endif
