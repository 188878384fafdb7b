/* blocks_avx2.c - element-wise functions of float, eight at a time. */
#include "blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2,fma")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

#define W 8
#define V __m256
typedef int32_t vector_of_int __attribute__((vector_size(32)));
#define VI vector_of_int
typedef uint32_t vector_of_unsigned __attribute__((vector_size(32)));
#define VU vector_of_unsigned
#define TABLE cfxi_elementwise_blocks_avx2
#define FMA _mm256_fmadd_ps
#define MAX _mm256_max_ps
#define MIN _mm256_min_ps
#define AND _mm256_and_ps
#define XOR _mm256_xor_ps
#define SELECT(op, a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, op))
#define NEAREST(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define INT(x) ((VI)_mm256_cvtps_epi32(x))
#define FLOAT(x) _mm256_cvtepi32_ps((__m256i)(x))
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SET _mm256_set1_ps
#define VI_SET(x) ((VI)_mm256_set1_epi32(x))

/* In two steps, so that results below the normal range come out right. */
static inline __attribute__((always_inline)) V scale(V p, V n)
{
    VI whole = INT(n);
    VI half = whole >> 1;
    V first = (V)((half + VI_SET(127)) << 23);
    V second = (V)((whole - half + VI_SET(127)) << 23);
    return p * first * second;
}
#define SCALE scale
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
