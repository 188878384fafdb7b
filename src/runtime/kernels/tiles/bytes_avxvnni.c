/* bytes_avxvnni.c - tiles of 8-bit integers by AVX_VNNI, which machines without AVX-512 have. */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 8
#include "runtime/vector.h"
#pragma GCC target("avxvnni")

#define DOT(sum, a, b)                                                                             \
    ((VI)_mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(a), (__m256i)(b)))

#define NAME "avx_vnni"
#define BYTES cfxi_tiles_bytes_avxvnni
#define MOST_PANELS 4
#define MOST_ROWS {6, 3, 0, 1}
#define FORMS(X)                                                                                   \
    X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6) X(2, 1) X(2, 2) X(2, 3) X(4, 1)
#include "bytes_vector.h"
#endif
