/* dots_bf16.c - tiles of bfloat16 by AVX512_BF16, which adds products of pairs to a sum. */
#include "dots.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("avx512bf16")

#define DOT(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))

static void round_elements(int64_t n, const float *from, void *to)
{
    char *out = to;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const __m512bh both = _mm512_cvtne2ps_pbh(LOAD(from + i + LANES), LOAD(from + i));
        memcpy(out + 2 * i, &both, sizeof both);
    }
    for (; i < n; i += LANES) {
        const int64_t some = n - i < LANES ? n - i : LANES;
        const __m256bh one = _mm512_cvtneps_pbh(some < LANES ? LOAD_SOME(from + i, some)
                                                             : LOAD(from + i));
        memcpy(out + 2 * i, &one, (size_t)some * 2);
    }
}

#define PAIRS
#define NAME "avx512_bf16"
#define DOTS cfxi_tiles_dots_bf16
#define MOST_PANELS 8
#define MOST_ROWS {14, 14, 9, 7, 0, 0, 0, 3}
#define ROWS_3(X, n) X(n, 1) X(n, 2) X(n, 3)
#define ROWS_7(X, n) ROWS_3(X, n) X(n, 4) X(n, 5) X(n, 6) X(n, 7)
#define ROWS_9(X, n) ROWS_7(X, n) X(n, 8) X(n, 9)
#define ROWS_14(X, n) ROWS_9(X, n) X(n, 10) X(n, 11) X(n, 12) X(n, 13) X(n, 14)
#define FORMS(X) ROWS_14(X, 1) ROWS_14(X, 2) ROWS_9(X, 3) ROWS_7(X, 4) ROWS_3(X, 8)
#include "dots_vector.h"
#endif
