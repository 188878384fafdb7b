/* tiles_avx2.c - tiles of up to 12 vectors of 8: a panel is two of them. */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#define MOST_PANELS 4
#define MOST_ROWS {6, 3, 0, 1}
#define FORMS(X)                                                                                   \
    X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6) X(2, 1) X(2, 2) X(2, 3) X(4, 1)
#include "tiles_vector.h"
#endif
