/* blocks_avx512.c - element-wise functions of float, sixteen at a time. */
#include "blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

#define W 16
#define V __m512
typedef int32_t vector_of_int __attribute__((vector_size(64)));
#define VI vector_of_int
typedef uint32_t vector_of_unsigned __attribute__((vector_size(64)));
#define VU vector_of_unsigned
#define TABLE cfxi_elementwise_blocks_avx512
#define FMA _mm512_fmadd_ps
#define MAX _mm512_max_ps
#define MIN _mm512_min_ps
#define AND _mm512_and_ps
#define XOR _mm512_xor_ps
#define SELECT(op, a, b, x, y) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, op), y, x)
#define NEAREST(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define INT(x) ((VI)_mm512_cvtps_epi32(x))
#define FLOAT(x) _mm512_cvtepi32_ps((__m512i)(x))
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SET _mm512_set1_ps
#define VI_SET(x) ((VI)_mm512_set1_epi32(x))
#define SCALE _mm512_scalef_ps
#define STORE_COMPARED(op, a, b, to)                                                               \
    _mm_storeu_si128((__m128i *)(to), _mm_maskz_set1_epi8(_mm512_cmp_ps_mask(a, b, op), 1))

#include "blocks_vector.h"
#endif
