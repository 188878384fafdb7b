/* byte_rows_avx2.c - rows of 8-bit integers with AVX2. */
#include "byte_rows.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 8
#include "runtime/vector.h"

#include "byte_rows_vector.h"
#endif
