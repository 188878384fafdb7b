/* weight_only_plain.c - products with weights of 8 or 4 bits in portable C. */
#include "weight_only.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#define COLUMNS 16
#define WIDE_ROWS 2
#define MOST_ROWS 4
#define FEW_ROWS 8
#define FORMS(X) X(1) X(2) X(3) X(4)
#include "weight_only_vector.h"
