/* tiles_neon.c - tiles of up to 24 vectors of 4: a panel is four of them. */
#include "tiles.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#define MOST_PANELS 4
#define MOST_ROWS {6, 3, 2, 1}
#define FORMS(X)                                                                                   \
    X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6) X(2, 1) X(2, 2) X(2, 3) X(3, 1) X(3, 2) X(4, 1)
#include "tiles_vector.h"
#endif
