/* peak_avx512.c - multiply-adds and reads, with vectors of 16 floats. */
#pragma GCC optimize("O2", "fp-contract=fast")
#include "peak.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"

#include "peak_vector.h"
#endif
