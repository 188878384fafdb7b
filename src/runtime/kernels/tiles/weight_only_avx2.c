/* weight_only_avx2.c - products with weights of 8 or 4 bits, with AVX2. */
#include "weight_only.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#define COLUMNS 32
#define WIDE_ROWS 2
#define MOST_ROWS 5
#define FEW_ROWS 16
#define FORMS(X) X(1) X(2) X(3) X(4) X(5)
#include "weight_only_vector.h"
#endif
