/* transpose_avx512.c - matrices turned over, with vectors of 16 floats. */
#pragma GCC optimize("O2")
#include "transpose.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"

#include "transpose_vector.h"
#endif
