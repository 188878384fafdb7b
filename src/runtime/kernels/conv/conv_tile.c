/* conv_tile.c - the inner loop of convolution: a tile of the output, eight channels by up to 48
 * places, kept in registers while the taps go by. */
#include "conv_impl.h"

/* ---- plain --------------------------------------------------------------------------------- */

static void tile_plain(const cfxi_tile *t)
{
    float sum[CFXI_TILE_ROWS][CFXI_TILE_COLUMNS];
    for (int r = 0; r < t->rows; r++)
        for (int j = 0; j < t->columns; j++)
            sum[r][j] = t->bias[r];
    for (int64_t i = 0; i < t->k; i++) {
        const float *a = t->a + i * CFXI_TILE_ROWS;
        const float *b = t->b + t->offset[i];
        for (int r = 0; r < t->rows; r++)
            for (int j = 0; j < t->columns; j++)
                sum[r][j] += a[r] * b[j];
    }
    for (int r = 0; r < t->rows; r++)
        memcpy(t->c + r * t->c_row, sum[r], (size_t)t->columns * sizeof(float));
}

static void row_plain(const cfxi_tile *t)
{
    for (int j = 0; j < t->columns; j++)
        t->c[j] = t->bias[0];
    for (int64_t i = 0; i < t->k; i++) {
        const float a = t->a[i];
        const float *b = t->b + t->offset[i];
        for (int j = 0; j < t->columns; j++)
            t->c[j] += a * b[j];
    }
}

static void pack_plain(float *to, const float *from, int64_t row, int64_t begin, int64_t k)
{
    for (int64_t i = begin; i < k; i++)
        for (int r = 0; r < CFXI_TILE_ROWS; r++)
            to[i * CFXI_TILE_ROWS + r] = from[r * row + i];
}

static void pack_all_plain(float *to, const float *from, int64_t row, int64_t k)
{
    pack_plain(to, from, row, 0, k);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* ---- AVX-512: 24 sums, three vectors of places --------------------------------------------- */

#define TARGET512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))

#define BEGIN512(r)                                                                                \
    __m512 x##r = _mm512_set1_ps(t->bias[r]);                                                      \
    __m512 y##r = x##r;                                                                            \
    __m512 z##r = x##r;
#define STEP512(r)                                                                                 \
    {                                                                                              \
        const __m512 w = _mm512_set1_ps(a[r]);                                                     \
        x##r = _mm512_fmadd_ps(w, b0, x##r);                                                       \
        if (vectors > 1)                                                                           \
            y##r = _mm512_fmadd_ps(w, b1, y##r);                                                   \
        if (vectors > 2)                                                                           \
            z##r = _mm512_fmadd_ps(w, b2, z##r);                                                   \
    }
#define END512(r)                                                                                  \
    if (r < t->rows) {                                                                             \
        float *c = t->c + r * t->c_row;                                                            \
        _mm512_mask_storeu_ps(c, vectors == 1 ? last : full, x##r);                                \
        if (vectors > 1)                                                                           \
            _mm512_mask_storeu_ps(c + 16, vectors == 2 ? last : full, y##r);                       \
        if (vectors > 2)                                                                           \
            _mm512_mask_storeu_ps(c + 32, last, z##r);                                             \
    }

TARGET512 static inline __attribute__((always_inline)) void tile512(const cfxi_tile *t,
                                                                    const int vectors)
{
    const __mmask16 full = (__mmask16)0xffff;
    const __mmask16 last = (__mmask16)(0xffffu >> (16 * vectors - t->columns));
    const float *a = t->a;
    EACH_ROW(BEGIN512)
    for (int64_t i = 0; i < t->k; i++, a += CFXI_TILE_ROWS) {
        const float *b = t->b + t->offset[i];
        const __m512 b0 = _mm512_maskz_loadu_ps(vectors == 1 ? last : full, b);
        const __m512 b1 = vectors > 1 ? _mm512_maskz_loadu_ps(vectors == 2 ? last : full, b + 16)
                                      : b0;
        const __m512 b2 = vectors > 2 ? _mm512_maskz_loadu_ps(last, b + 32) : b0;
        EACH_ROW(STEP512)
    }
    EACH_ROW(END512)
}

TARGET512 static void tile_avx512(const cfxi_tile *t)
{
    if (t->columns > 32)
        tile512(t, 3);
    else if (t->columns > 16)
        tile512(t, 2);
    else
        tile512(t, 1);
}

/* Up to 64 places: the sums hide the latency of each other. */
TARGET512 static inline __attribute__((always_inline)) void row512(const cfxi_tile *t, int64_t j,
                                                                   const int vectors)
{
    const int64_t left = t->columns - j < 64 ? t->columns - j : 64;
    const uint64_t mask = ~(uint64_t)0 >> (64 - left);
    const __mmask16 m0 = (__mmask16)mask, m1 = (__mmask16)(mask >> 16);
    const __mmask16 m2 = (__mmask16)(mask >> 32), m3 = (__mmask16)(mask >> 48);
    __m512 s0 = _mm512_set1_ps(t->bias[0]), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t i = 0; i < t->k; i++) {
        const float *b = t->b + t->offset[i] + j;
        const __m512 w = _mm512_set1_ps(t->a[i]);
        s0 = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(m0, b), s0);
        if (vectors > 1)
            s1 = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(m1, b + 16), s1);
        if (vectors > 2)
            s2 = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(m2, b + 32), s2);
        if (vectors > 2)
            s3 = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(m3, b + 48), s3);
    }
    _mm512_mask_storeu_ps(t->c + j, m0, s0);
    if (vectors > 1)
        _mm512_mask_storeu_ps(t->c + j + 16, m1, s1);
    if (vectors > 2)
        _mm512_mask_storeu_ps(t->c + j + 32, m2, s2);
    if (vectors > 2)
        _mm512_mask_storeu_ps(t->c + j + 48, m3, s3);
}

TARGET512 static void row_avx512(const cfxi_tile *t)
{
    int64_t j = 0;
    for (; t->columns - j > 32; j += 64)
        row512(t, j, 4);
    for (; j < t->columns; j += 32) {
        if (t->columns - j > 16)
            row512(t, j, 2);
        else
            row512(t, j, 1);
    }
}

/* ---- AVX2: four rows by 24 places ---------------------------------------------------------- */

#define TARGET256 __attribute__((target("avx2,fma")))

/* The first n of eight lanes; n may be any number. */
TARGET256 static inline __m256i lanes(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n), lane);
}

#define EACH_ROW4(X) X(0) X(1) X(2) X(3)
#define BEGIN256(r)                                                                                \
    __m256 x##r = _mm256_set1_ps(t->bias[row + r]);                                                \
    __m256 y##r = x##r;                                                                            \
    __m256 z##r = x##r;
#define STEP256(r)                                                                                 \
    {                                                                                              \
        const __m256 w = _mm256_broadcast_ss(a + r);                                               \
        x##r = _mm256_fmadd_ps(w, b0, x##r);                                                       \
        y##r = _mm256_fmadd_ps(w, b1, y##r);                                                       \
        z##r = _mm256_fmadd_ps(w, b2, z##r);                                                       \
    }
#define END256(r)                                                                                  \
    if (row + r < t->rows) {                                                                       \
        float *c = t->c + (row + r) * t->c_row + column;                                           \
        _mm256_maskstore_ps(c, m0, x##r);                                                          \
        _mm256_maskstore_ps(c + 8, m1, y##r);                                                      \
        _mm256_maskstore_ps(c + 16, m2, z##r);                                                     \
    }

TARGET256 static inline __attribute__((always_inline)) void
tile256(const cfxi_tile *t, int row, int column, const bool whole)
{
    const __m256i m0 = lanes(t->columns - column), m1 = lanes(t->columns - column - 8);
    const __m256i m2 = lanes(t->columns - column - 16);
    const float *a = t->a + row;
    EACH_ROW4(BEGIN256)
    for (int64_t i = 0; i < t->k; i++, a += CFXI_TILE_ROWS) {
        const float *b = t->b + t->offset[i] + column;
        const __m256 b0 = whole ? _mm256_loadu_ps(b) : _mm256_maskload_ps(b, m0);
        const __m256 b1 = whole ? _mm256_loadu_ps(b + 8) : _mm256_maskload_ps(b + 8, m1);
        const __m256 b2 = whole ? _mm256_loadu_ps(b + 16) : _mm256_maskload_ps(b + 16, m2);
        EACH_ROW4(STEP256)
    }
    EACH_ROW4(END256)
}

TARGET256 static void tile_avx2(const cfxi_tile *t)
{
    for (int row = 0; row < t->rows; row += 4)
        for (int column = 0; column < t->columns; column += 24) {
            if (column + 24 <= t->columns)
                tile256(t, row, column, true);
            else
                tile256(t, row, column, false);
        }
}

/* Eight columns of eight rows at a time, turned over: pairs, fours, halves. */
TARGET256 static void pack_avx2(float *to, const float *from, int64_t row, int64_t k)
{
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) {
        __m256 v[8];
        __m256 w[8];
        for (int r = 0; r < 8; r++)
            v[r] = _mm256_loadu_ps(from + r * row + i);
        for (int r = 0; r < 8; r += 2) {
            w[r] = _mm256_unpacklo_ps(v[r], v[r + 1]);
            w[r + 1] = _mm256_unpackhi_ps(v[r], v[r + 1]);
        }
        for (int r = 0; r < 8; r += 4)
            for (int h = 0; h < 2; h++) {
                v[r + 2 * h] = _mm256_shuffle_ps(w[r + h], w[r + 2 + h], 0x44);
                v[r + 2 * h + 1] = _mm256_shuffle_ps(w[r + h], w[r + 2 + h], 0xee);
            }
        for (int r = 0; r < 4; r++) {
            _mm256_storeu_ps(to + (i + r) * 8, _mm256_permute2f128_ps(v[r], v[r + 4], 0x20));
            _mm256_storeu_ps(to + (i + 4 + r) * 8, _mm256_permute2f128_ps(v[r], v[r + 4], 0x31));
        }
    }
    pack_plain(to, from, row, i, k);
}

TARGET256 static void row_avx2(const cfxi_tile *t)
{
    for (int64_t j = 0; j < t->columns; j += 16) {
        const __m256i m0 = lanes(t->columns - j), m1 = lanes(t->columns - j - 8);
        __m256 s0 = _mm256_set1_ps(t->bias[0]), s1 = s0;
        for (int64_t i = 0; i < t->k; i++) {
            const float *b = t->b + t->offset[i] + j;
            const __m256 w = _mm256_broadcast_ss(t->a + i);
            s0 = _mm256_fmadd_ps(w, _mm256_maskload_ps(b, m0), s0);
            s1 = _mm256_fmadd_ps(w, _mm256_maskload_ps(b + 8, m1), s1);
        }
        _mm256_maskstore_ps(t->c + j, m0, s0);
        _mm256_maskstore_ps(t->c + j + 8, m1, s1);
    }
}
#endif

/* ---- choosing ------------------------------------------------------------------------------ */

cfxi_tile_fn *cfxi_conv_tile_for(cfx_isa isa)
{
#if defined(__x86_64__)
    if (isa >= CFX_ISA_AVX512)
        return tile_avx512;
    if (isa == CFX_ISA_AVX2)
        return tile_avx2;
#endif
    (void)isa;
    return tile_plain;
}

cfxi_tile_fn *cfxi_conv_tile_row_for(cfx_isa isa)
{
#if defined(__x86_64__)
    if (isa >= CFX_ISA_AVX512)
        return row_avx512;
    if (isa == CFX_ISA_AVX2)
        return row_avx2;
#endif
    (void)isa;
    return row_plain;
}

cfxi_tile_pack_fn *cfxi_conv_tile_pack_for(cfx_isa isa)
{
#if defined(__x86_64__)
    if (isa >= CFX_ISA_AVX2)
        return pack_avx2;
#endif
    (void)isa;
    return pack_all_plain;
}
