/* bag_sums_neon.c - sums of rows, for NEON. */
#pragma GCC optimize("O2")
#include "bag_sums.h"

#if defined(__aarch64__)
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "bag_sums_vector.h"
#endif
