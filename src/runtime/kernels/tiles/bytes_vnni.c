/* bytes_vnni.c - tiles of 8-bit integers by AVX512_VNNI, which adds products of four to a sum. */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("avx512vnni")

#define DOT(sum, a, b) ((VI)_mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b)))

#define NAME "avx512_vnni"
#define BYTES cfxi_tiles_bytes_vnni
#define MOST_PANELS 8
#define MOST_ROWS {14, 14, 9, 7, 0, 0, 0, 3}
#define ROWS_3(X, n) X(n, 1) X(n, 2) X(n, 3)
#define ROWS_7(X, n) ROWS_3(X, n) X(n, 4) X(n, 5) X(n, 6) X(n, 7)
#define ROWS_9(X, n) ROWS_7(X, n) X(n, 8) X(n, 9)
#define ROWS_14(X, n) ROWS_9(X, n) X(n, 10) X(n, 11) X(n, 12) X(n, 13) X(n, 14)
#define FORMS(X) ROWS_14(X, 1) ROWS_14(X, 2) ROWS_9(X, 3) ROWS_7(X, 4) ROWS_3(X, 8)
#include "bytes_vector.h"
#endif
