/* observe_avx2.c - what is seen of elements, with vectors of 8 floats. */
#pragma GCC optimize("O2")
#include "observe.h"

#if defined(__x86_64__)
#define LANES 8
#include "runtime/vector.h"

#include "observe_vector.h"
#endif
