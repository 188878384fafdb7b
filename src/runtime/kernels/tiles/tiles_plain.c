/* tiles_plain.c - tiles in portable C: vectors of 4, a panel is four of them. */
#include "tiles.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#define MOST_PANELS 2
#define MOST_ROWS {3, 1}
#define FORMS(X) X(1, 1) X(1, 2) X(1, 3) X(2, 1)
#include "tiles_vector.h"
