/* byte_rows_neon.c - rows of 8-bit integers with NEON. */
#include "byte_rows.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2")
#define NEON
#define LANES 4
#include "runtime/vector.h"

enum { WHOLE = 16 };  /* bytes of a vector */

#define LOOK_UP
static void look_up(int64_t n, const uint8_t table[256], const uint8_t *x, uint8_t *to)
{
    uint8x16x4_t part[4];
    for (int k = 0; k < 4; k++)
        part[k] = vld1q_u8_x4(table + 64 * k);
    int64_t i = 0;
    for (; i + WHOLE <= n; i += WHOLE) {
        const uint8x16_t at = vld1q_u8(x + i);
        uint8x16_t found = vqtbl4q_u8(part[0], at);
        for (int k = 1; k < 4; k++)
            found = vqtbx4q_u8(found, part[k], vsubq_u8(at, vdupq_n_u8((uint8_t)(64 * k))));
        vst1q_u8(to + i, found);
    }
    for (; i < n; i++)
        to[i] = table[x[i]];
}

#include "byte_rows_vector.h"
#endif
