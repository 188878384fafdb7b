/* weight_only_avx512.c - products with weights of 8 or 4 bits, with AVX-512. */
#include "weight_only.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#define COLUMNS 64
#define WIDE_ROWS 4
#define MOST_ROWS 8
#define FEW_ROWS 96
#define FORMS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#include "weight_only_vector.h"
#endif
