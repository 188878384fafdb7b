/* depthwise_vnni.c - lines of depthwise convolutions by AVX512_VNNI: depthwise_vnni.h. */
#include "depthwise_vnni.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2")
#define LANES 16
#include "runtime/vector.h"
#pragma GCC target("avx512vnni")

enum { VECTORS = CFXI_BLOCK_VECTORS, MOST_PIXELS = 6 };
typedef __m512i sums_of_block[MOST_PIXELS][VECTORS];

/* A column of four lines; what is not `inside` of the image is zero points. */
INLINE void load_column(const cfxi_byte_block *t, __mmask64 there, bool inside,
                        const uint8_t *const at[CFXI_BLOCK_LINES], __m512i x[VECTORS])
{
    __m512i line[CFXI_BLOCK_LINES];
    if (!inside) {
        UNROLL for (int v = 0; v < VECTORS; v++)
            x[v] = _mm512_set1_epi8((char)t->x_zero);
        return;
    }
    UNROLL for (int r = 0; r < CFXI_BLOCK_LINES; r++)
        line[r] = _mm512_maskz_loadu_epi8(there, at[r]);
    const __m512i first = _mm512_unpacklo_epi8(line[0], line[1]);
    const __m512i second = _mm512_unpackhi_epi8(line[0], line[1]);
    const __m512i third = _mm512_unpacklo_epi8(line[2], line[3]);
    const __m512i fourth = _mm512_unpackhi_epi8(line[2], line[3]);
    x[0] = _mm512_unpacklo_epi16(first, third);
    x[1] = _mm512_unpackhi_epi16(first, third);
    x[2] = _mm512_unpacklo_epi16(second, fourth);
    x[3] = _mm512_unpackhi_epi16(second, fourth);
}

/* The numbers of an end: high without the zero point, low with it. */
typedef struct limits {
    __m512 high;
    __m512i low, zero;  /* 16 bits each */
    bool is_signed;
} limits;

INLINE limits limits_of(const cfxi_byte_end *e)
{
    const int low = (int)e->low + e->zero;
    return (limits){_mm512_set1_ps(e->high), _mm512_set1_epi16((short)low),
                    _mm512_set1_epi16((short)e->zero), low < 0};
}

/* Half of the channels of some pixels, in 16 bits. What is not a number becomes the least integer,
 * and packing keeps that below every limit. */
INLINE void end_half(int pixels, const cfxi_byte_block *t, const limits *s, sums_of_block sums,
                     int first, __m512i half[MOST_PIXELS])
{
    __m512 factor[2];
    __m512 bias[2];
    UNROLL for (int i = 0; i < 2; i++) {
        factor[i] = _mm512_loadu_ps(t->factor + (first + i) * LANES);
        bias[i] = _mm512_loadu_ps(t->bias + (first + i) * LANES);
    }
    UNROLL for (int k = 0; k < pixels; k++) {
        __m512i q[2];
        UNROLL for (int i = 0; i < 2; i++) {
            const __m512 r = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[k][first + i]), factor[i],
                                             bias[i]);
            q[i] = _mm512_cvtps_epi32(_mm512_min_ps(s->high, r));
        }
        half[k] = _mm512_max_epi16(_mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), s->zero),
                                   s->low);
    }
}

/* Four vectors of numbers for each pixel, in the order of channels. */
INLINE void store_pixels(int pixels, const cfxi_byte_block *t, __mmask64 there, sums_of_block sums,
                         int64_t i)
{
    const limits s = limits_of(t->end);
    __m512i first[MOST_PIXELS];
    __m512i second[MOST_PIXELS];
    end_half(pixels, t, &s, sums, 0, first);
    end_half(pixels, t, &s, sums, 2, second);
    UNROLL for (int k = 0; k < pixels; k++)
        _mm512_mask_storeu_epi8(t->y + (i + k) * t->y_pixel, there,
                                s.is_signed ? _mm512_packs_epi16(first[k], second[k])
                                            : _mm512_packus_epi16(first[k], second[k]));
}

/* Some neighbouring pixels, from number i on. */
INLINE void tile(int pixels, int places, int step, const cfxi_byte_block *t, __mmask64 there,
                 int64_t i)
{
    const int64_t from = t->left + i * step;
    const int8_t *w = t->w;
    sums_of_block sums;
    UNROLL for (int v = 0; v < VECTORS; v++)
        UNROLL for (int k = 0; k < pixels; k++)
            sums[k][v] = _mm512_loadu_si512(t->first + v * LANES);
    for (int64_t g = 0; g * CFXI_BLOCK_LINES < t->lines; g++, w += places * VECTORS * CFXI_BLOCK) {
        const uint8_t *at[CFXI_BLOCK_LINES];
        const int64_t *columns = t->x_column + g * CFXI_BLOCK_LINES;
        UNROLL for (int r = 0; r < CFXI_BLOCK_LINES; r++)
            at[r] = t->x[g * CFXI_BLOCK_LINES + r] + from * columns[r];
        UNROLL for (int j = 0; j < (pixels - 1) * step + places; j++) {
            __m512i x[VECTORS];
            load_column(t, there, from + j >= 0 && from + j < t->columns, at, x);
            UNROLL for (int r = 0; r < CFXI_BLOCK_LINES; r++)
                at[r] += columns[r];
            __asm__("" : "+r"(w));  /* weights are read again: registers have the sums */
            UNROLL for (int k = 0; k < pixels; k++)
                if (j >= k * step && j < k * step + places)
                    UNROLL for (int v = 0; v < VECTORS; v++)
                        sums[k][v] = _mm512_dpbusd_epi32(
                            sums[k][v], x[v],
                            _mm512_loadu_si512(w + ((j - k * step) * VECTORS + v) * CFXI_BLOCK));
        }
    }
    store_pixels(pixels, t, there, sums, i);
}

typedef void tile_fn(const cfxi_byte_block *t, __mmask64 there, int64_t i);

/* X(pixels, places, step) */
#define TILES(X, places, step)                                                                     \
    X(6, places, step) X(4, places, step) X(2, places, step) X(1, places, step)
#define X(pixels, places, step)                                                                    \
    static void tile_##pixels##_##places##_##step(const cfxi_byte_block *t, __mmask64 there,       \
                                                  int64_t i)                                       \
    {                                                                                              \
        tile(pixels, places, step, t, there, i);                                                   \
    }
TILES(X, 3, 1) TILES(X, 3, 2) TILES(X, 5, 1) TILES(X, 5, 2) TILES(X, 7, 1) TILES(X, 7, 2)
#undef X

/* By number of pixels. */
typedef tile_fn *const tiles_of_window[MOST_PIXELS + 1];

static tiles_of_window *tiles_for(const cfxi_byte_block *t)
{
#define X(pixels, places, step) [pixels] = tile_##pixels##_##places##_##step,
    static tiles_of_window all[3][2] = {{{TILES(X, 3, 1)}, {TILES(X, 3, 2)}},
                                        {{TILES(X, 5, 1)}, {TILES(X, 5, 2)}},
                                        {{TILES(X, 7, 1)}, {TILES(X, 7, 2)}}};
#undef X
    return &all[(t->places - 3) / 2][t->step - 1];
}

void cfxi_depthwise_vnni_line(const cfxi_byte_block *t)
{
    tiles_of_window *tiles = tiles_for(t);
    const __mmask64 there =
        t->channels < CFXI_BLOCK ? ((__mmask64)1 << t->channels) - 1 : ~(__mmask64)0;
    for (int64_t i = 0, n; i < t->pixels; i += n) {
        const int64_t left = t->pixels - i;
        n = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        (*tiles)[n](t, there, i);
    }
}
#else
void cfxi_depthwise_vnni_line(const cfxi_byte_block *t) { (void)t; }
#endif
