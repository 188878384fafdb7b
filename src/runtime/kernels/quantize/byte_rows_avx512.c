/* byte_rows_avx512.c - rows of 8-bit integers with AVX-512; tables by AVX512_VBMI, where there is
 * that. */
#include "byte_rows.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"

enum { WHOLE = 64 };  /* bytes of a vector */

/* As many whole vectors as there are. */
static __attribute__((target("avx512vbmi"))) int64_t look_up_vectors(int64_t n,
                                                                    const uint8_t table[256],
                                                                    const uint8_t *x, uint8_t *to)
{
    const __m512i a = _mm512_loadu_si512(table);
    const __m512i b = _mm512_loadu_si512(table + 64);
    const __m512i c = _mm512_loadu_si512(table + 128);
    const __m512i d = _mm512_loadu_si512(table + 192);
    int64_t i = 0;
    for (; i + WHOLE <= n; i += WHOLE) {
        const __m512i at = _mm512_loadu_si512(x + i);
        const __m512i low = _mm512_permutex2var_epi8(a, at, b);
        const __m512i high = _mm512_permutex2var_epi8(c, at, d);
        _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
    return i;
}

#define LOOK_UP
static void look_up(int64_t n, const uint8_t table[256], const uint8_t *x, uint8_t *to)
{
    int64_t i = __builtin_cpu_supports("avx512vbmi") ? look_up_vectors(n, table, x, to) : 0;
    for (; i < n; i++)
        to[i] = table[x[i]];
}

#include "byte_rows_vector.h"
#endif
