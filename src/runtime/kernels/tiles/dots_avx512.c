/* dots_avx512.c - tiles of bfloat16 for machines with AVX-512, but nothing for bfloat16. */
#include "dots.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#include "dots_round.h"

#define NAME "avx512"
#define DOTS ISA(cfxi_tiles_dots)
#define MOST_PANELS 4
#define MOST_ROWS {14, 12, 8, 5}
#define ROWS_5(X, n) X(n, 1) X(n, 2) X(n, 3) X(n, 4) X(n, 5)
#define ROWS_8(X, n) ROWS_5(X, n) X(n, 6) X(n, 7) X(n, 8)
#define ROWS_12(X, n) ROWS_8(X, n) X(n, 9) X(n, 10) X(n, 11) X(n, 12)
#define FORMS(X) ROWS_12(X, 1) X(1, 13) X(1, 14) ROWS_12(X, 2) ROWS_8(X, 3) ROWS_5(X, 4)
#include "dots_vector.h"
#endif
