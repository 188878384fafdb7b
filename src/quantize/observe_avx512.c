/* observe_avx512.c - what is seen of elements, with vectors of 16 floats. */
#pragma GCC optimize("O2")
#include "observe.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"

#include "observe_vector.h"
#endif
