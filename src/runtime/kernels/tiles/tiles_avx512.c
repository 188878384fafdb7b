/* tiles_avx512.c - tiles of up to 28 vectors of 16; the other registers are for the operands. */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#define MOST_PANELS 8
#define MOST_ROWS {14, 14, 9, 6, 0, 0, 0, 3}
#define ROWS_3(X, n) X(n, 1) X(n, 2) X(n, 3)
#define ROWS_6(X, n) ROWS_3(X, n) X(n, 4) X(n, 5) X(n, 6)
#define ROWS_9(X, n) ROWS_6(X, n) X(n, 7) X(n, 8) X(n, 9)
#define ROWS_14(X, n) ROWS_9(X, n) X(n, 10) X(n, 11) X(n, 12) X(n, 13) X(n, 14)
#define FORMS(X) ROWS_14(X, 1) ROWS_14(X, 2) ROWS_9(X, 3) ROWS_6(X, 4) ROWS_3(X, 8)
#include "tiles_vector.h"
#endif
