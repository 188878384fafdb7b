/* bytes_avx512.c - tiles of 8-bit integers for machines with AVX-512, but nothing for bytes. */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"

#define MADD(a, b) ((VI)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))

#define NAME "avx512"
#define BYTES ISA(cfxi_tiles_bytes)
#define MOST_PANELS 4
#define MOST_ROWS {14, 10, 6, 4}
#define ROWS_4(X, n) X(n, 1) X(n, 2) X(n, 3) X(n, 4)
#define ROWS_6(X, n) ROWS_4(X, n) X(n, 5) X(n, 6)
#define ROWS_10(X, n) ROWS_6(X, n) X(n, 7) X(n, 8) X(n, 9) X(n, 10)
#define FORMS(X)                                                                                   \
    ROWS_10(X, 1) X(1, 11) X(1, 12) X(1, 13) X(1, 14) ROWS_10(X, 2) ROWS_6(X, 3) ROWS_4(X, 4)
#include "bytes_vector.h"
#endif
