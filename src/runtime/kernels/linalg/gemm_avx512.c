/* gemm_avx512.c - the inner loops of matrix products, 16 floats or 8 doubles at a time. */
#include "gemm_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#define COLUMNS 2
#define ROWS 12  /* 24 sums of 32 registers */
#include "gemm_types.h"
#endif
