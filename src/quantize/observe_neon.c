/* observe_neon.c - what is seen of elements, with vectors of 4 floats. */
#pragma GCC optimize("O2")
#include "observe.h"

#if defined(__aarch64__)
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "observe_vector.h"
#endif
