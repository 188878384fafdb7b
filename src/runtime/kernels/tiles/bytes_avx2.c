/* bytes_avx2.c - tiles of 8-bit integers for machines that multiply 16-bit ones exactly. (Products
 * of bytes are added up in 16 bits there, which may be too few.) */
#include "tiles.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 8
#include "runtime/vector.h"

#define MADD(a, b) ((VI)_mm256_madd_epi16((__m256i)(a), (__m256i)(b)))

#define NAME "avx2"
#define BYTES ISA(cfxi_tiles_bytes)
#define MOST_PANELS 2
#define MOST_ROWS {4, 2}
#define FORMS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(2, 1) X(2, 2)
#include "bytes_vector.h"
#endif
