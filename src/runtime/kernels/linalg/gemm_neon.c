/* gemm_neon.c - the inner loops of matrix products, 4 floats or 2 doubles at a time. */
#include "gemm_impl.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#define COLUMNS 2
#define ROWS 12  /* 24 sums of 32 registers */
#include "gemm_types.h"
#endif
