/* bytes_store.h - what becomes of sums of bytes: floats, or bytes again. Included after vector.h
 * and bytes.h.
 */
#if LANES == 4 && !defined(NEON)
#include <math.h>

INLINE V EXACT_FMA(V a, V b, V c)  /* machines without FMA round once, too */
{
    return (V){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
               fmaf(a[3], b[3], c[3])};
}
INLINE V TO_FLOAT(VI x) { return __builtin_convertvector(x, V); }
INLINE VI TO_INT(V x) { return INT(NEAREST(x)); }
#else
#define EXACT_FMA FMA
#define TO_FLOAT FLOAT
#define TO_INT(x) INT(NEAREST(x))
#endif

#if LANES >= 8
#undef TO_INT
#define TO_INT INT  /* rounds to the nearest */
#endif

/* n bytes at `from`, at most LANES, as numbers. */
INLINE VI load_bytes(const uint8_t *from, bool is_signed, int64_t n)
{
#if LANES == 16
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    const __m128i x = n < LANES ? _mm_maskz_loadu_epi8(some, from)
                                : _mm_loadu_si128((const void *)from);
    return is_signed ? (VI)_mm512_cvtepi8_epi32(x) : (VI)_mm512_cvtepu8_epi32(x);
#elif LANES == 8
    uint64_t bytes = 0;
    if (n < LANES)
        memcpy(&bytes, from, (size_t)n);
    else
        memcpy(&bytes, from, LANES);
    const __m128i x = _mm_cvtsi64_si128((long long)bytes);
    return is_signed ? (VI)_mm256_cvtepi8_epi32(x) : (VI)_mm256_cvtepu8_epi32(x);
#else
    VI x = {0};
    UNROLL for (int i = 0; i < LANES; i++)
        if (i < n)
            x[i] = is_signed ? (int8_t)from[i] : from[i];
    return x;
#endif
}

/* The lowest byte of n numbers, at most LANES. */
INLINE void store_bytes(uint8_t *to, VI x, int64_t n)
{
#if LANES == 16
    const __m128i bytes = _mm512_cvtepi32_epi8((__m512i)x);
    if (n < LANES)
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << n) - 1), bytes);
    else
        _mm_storeu_si128((void *)to, bytes);
#elif LANES == 8
    const __m256i lowest = _mm256_shuffle_epi8(
        (__m256i)x, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(lowest),
                                            _mm256_extracti128_si256(lowest, 1));
    const long long bytes = _mm_cvtsi128_si64(both);
    if (n < LANES)
        memcpy(to, &bytes, (size_t)n);
    else
        memcpy(to, &bytes, LANES);
#else
    UNROLL for (int i = 0; i < LANES; i++)
        if (i < n)
            to[i] = (uint8_t)x[i];
#endif
}

INLINE void interleave_some(const uint8_t *from, int64_t plane, VI flip, uint8_t *to, int64_t n)
{
    const VI all = (load_bytes(from, false, n) | load_bytes(from + plane, false, n) << 8 |
                    load_bytes(from + 2 * plane, false, n) << 16) ^ flip;
    memcpy(to, &all, (size_t)(n * CFXI_STEP));
}

INLINE void interleave_planes(int64_t n, const uint8_t *from, int64_t plane, uint8_t flip,
                              uint8_t *to)
{
    const VI flips = VI_SET(flip * 0x10101);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        interleave_some(from + i, plane, flips, to + i * CFXI_STEP, LANES);
    if (i < n)
        interleave_some(from + i, plane, flips, to + i * CFXI_STEP, n - i);
}

/* From tile to tile, of so many rows. */
INLINE void go_down(cfxi_byte_tile *t, int rows)
{
    t->a += rows * t->a_row;
    t->c = (char *)t->c + rows * t->c_row * (t->end->to_float ? (int64_t)sizeof(float) : 1);
    if (t->b_zero)
        t->a_sums += rows;
    if (t->end->adds)
        t->other += rows * t->other_row;
    t->next += t->next_step * t->count * ((t->k + CFXI_STEP - 1) / CFXI_STEP);
}

/* The numbers of an end, as vectors. */
typedef struct ends {
    V low, high, low2, high2, own_factor, other_factor;
    VI zero, zero2, shift, other_zero;
} ends;

INLINE ends ends_of(const cfxi_byte_end *e)
{
    ends s = {.low = SET(e->low), .high = SET(e->high), .zero = VI_SET(e->zero)};
    if (e->adds) {
        s.low2 = SET(e->low2);
        s.high2 = SET(e->high2);
        s.own_factor = SET(e->own_factor);
        s.other_factor = SET(e->other_factor);
        s.zero2 = VI_SET(e->zero2);
        s.shift = VI_SET(e->zero - e->own_zero);
        s.other_zero = VI_SET(e->other_zero);
    }
    return s;
}

/* NaN becomes low. */
INLINE VI rounded(V r, V low, V high)
{
    return TO_INT(MIN(MAX(r, low), high));
}

/* r, in whole numbers with their zero point, and perhaps the sum with n others. */
INLINE VI ended(V r, const ends *s, bool adds, const cfxi_byte_end *e, const uint8_t *other,
                int64_t n)
{
    const VI q = rounded(r, s->low, s->high);
    if (!adds)
        return q + s->zero;
    const V own = TO_FLOAT(q + s->shift);
    const V others = TO_FLOAT(load_bytes(other, e->other_signed, n) - s->other_zero);
    const V sum = e->other_first ? EXACT_FMA(others, s->other_factor, own * s->own_factor)
                                 : EXACT_FMA(own, s->own_factor, others * s->other_factor);
    return rounded(sum, s->low2, s->high2) + s->zero2;
}
