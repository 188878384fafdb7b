/* peak_avx2.c - multiply-adds and reads, with vectors of 8 floats. */
#pragma GCC optimize("O2", "fp-contract=fast")
#include "peak.h"

#if defined(__x86_64__)
#define LANES 8
#include "runtime/vector.h"

#include "peak_vector.h"
#endif
