/* gemm_avx2.c - the inner loops of matrix products, 8 floats or 4 doubles at a time. */
#include "gemm_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#define COLUMNS 2
#define ROWS 6  /* 12 sums of 16 registers */
#include "gemm_types.h"
#endif
