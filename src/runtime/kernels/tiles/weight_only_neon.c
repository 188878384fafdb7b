/* weight_only_neon.c - products with weights of 8 or 4 bits, with NEON. */
#include "weight_only.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#define COLUMNS 32
#define WIDE_ROWS 2
#define MOST_ROWS 5
#define FEW_ROWS 16
#define FORMS(X) X(1) X(2) X(3) X(4) X(5)
#include "weight_only_vector.h"
#endif
