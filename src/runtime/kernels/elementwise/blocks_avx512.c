/* blocks_avx512.c - element-wise functions of float, sixteen at a time. */
#include "blocks.h"

#if defined(__x86_64__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define LANES 16
#include "runtime/vector.h"

#define STORE_COMPARED(op, a, b, to)                                                               \
    _mm_storeu_si128((__m128i *)(to), _mm_maskz_set1_epi8(_mm512_cmp_ps_mask(a, b, op), 1))

#include "blocks_vector.h"
#endif
