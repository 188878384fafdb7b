/* transpose_neon.c - matrices turned over, with vectors of 4 floats. */
#pragma GCC optimize("O2")
#include "transpose.h"

#if defined(__aarch64__)
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "transpose_vector.h"
#endif
