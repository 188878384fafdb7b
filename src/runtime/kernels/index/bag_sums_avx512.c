/* bag_sums_avx512.c - sums of rows, for AVX-512. */
#pragma GCC optimize("O2")
#include "bag_sums.h"

#if defined(__x86_64__)
#define LANES 16
#include "runtime/vector.h"

#include "bag_sums_vector.h"
#endif
