/* gemm_plain.c - the inner loops of matrix products in portable C. */
#include "gemm_impl.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#define COLUMNS 2
#define ROWS 4  /* 8 sums, for 16 registers of 16 bytes */
#include "gemm_types.h"
