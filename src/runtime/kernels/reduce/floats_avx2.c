/* floats_avx2.c - loops over floats, eight at a time. */
#include "reduce_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define LANES 8
#include "runtime/vector.h"

#include "floats.h"
#endif
