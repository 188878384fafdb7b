/* blocks_avx2.c - element-wise functions of float, eight at a time. */
#include "blocks.h"

#if defined(__x86_64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define LANES 8
#include "runtime/vector.h"

#define STORE_COMPARED(op, a, b, to) store_compared(_mm256_cmp_ps(a, b, op), to)

static inline __attribute__((always_inline)) void store_compared(V mask, uint8_t *to)
{
    __m256i bits = _mm256_castps_si256(mask);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(bits),
                                    _mm256_extracti128_si256(bits, 1));
    __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
    _mm_storel_epi64((__m128i *)to, bytes);
}

#include "blocks_vector.h"
#endif
