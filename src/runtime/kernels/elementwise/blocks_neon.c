/* blocks_neon.c - element-wise functions of float, four at a time. */
#include "blocks.h"

#if defined(__aarch64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#define STORE_COMPARED(op, a, b, to) store_compared(COMPARED(op, a, b), to)

static inline __attribute__((always_inline)) void store_compared(uint32x4_t mask, uint8_t *to)
{
    const uint16x4_t words = vmovn_u32(mask);
    const uint8x8_t bytes = vand_u8(vmovn_u16(vcombine_u16(words, words)), vdup_n_u8(1));
    memcpy(to, &bytes, LANES);
}

#include "blocks_vector.h"
#endif
