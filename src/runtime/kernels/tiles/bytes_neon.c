/* bytes_neon.c - tiles of 8-bit integers, multiplied as 16-bit ones. */
#include "tiles.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2")
#define NEON
#define LANES 4
#include "runtime/vector.h"

INLINE VI MADD(VI a, VI b)
{
    const int16x8_t x = (int16x8_t)a;
    const int16x8_t y = (int16x8_t)b;
    return (VI)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}

#define NAME "neon"
#define BYTES ISA(cfxi_tiles_bytes)
#define MOST_PANELS 2
#define MOST_ROWS {4, 2}
#define FORMS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(2, 1) X(2, 2)
#include "bytes_vector.h"
#endif
