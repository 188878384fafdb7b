/* peak_neon.c - multiply-adds and reads, with vectors of 4 floats. */
#pragma GCC optimize("O2", "fp-contract=fast")
#include "peak.h"

#if defined(__aarch64__)
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "peak_vector.h"
#endif
