/* checksum.c - CRC-32, as zip archives have it, and SHA-256.
 *
 * Both are plain tables and rounds, eight bytes at a time for the CRC. A model is hashed when it is
 * saved, so the instructions that some processors have for SHA-256 are used: they are much faster.
 */
#include "format_impl.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_SHA_INSTRUCTIONS 1
#include <immintrin.h>
#endif

/* ---- CRC-32 -------------------------------------------------------------------------------- */

void cfxi_format_crc_init(cfxi_crc *crc)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        crc->row[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++) {
            const uint32_t before = crc->row[k - 1][i];
            crc->row[k][i] = crc->row[0][before & 0xff] ^ before >> 8;
        }
}

uint32_t cfxi_format_crc_more(const cfxi_crc *crc, uint32_t sum, const void *data, size_t size)
{
    const unsigned char *p = data;
    uint32_t c = sum ^ 0xffffffffu;
    for (; size >= 8; size -= 8, p += 8) {
        const uint32_t low = c ^ (uint32_t)cfxi_format_little((const char *)p, 4);
        const uint32_t high = (uint32_t)cfxi_format_little((const char *)p + 4, 4);
        c = crc->row[7][low & 0xff] ^ crc->row[6][low >> 8 & 0xff] ^
            crc->row[5][low >> 16 & 0xff] ^ crc->row[4][low >> 24] ^ crc->row[3][high & 0xff] ^
            crc->row[2][high >> 8 & 0xff] ^ crc->row[1][high >> 16 & 0xff] ^
            crc->row[0][high >> 24];
    }
    for (; size > 0; size--)
        c = crc->row[0][(c ^ *p++) & 0xff] ^ c >> 8;
    return c ^ 0xffffffffu;
}

/* ---- SHA-256 ------------------------------------------------------------------------------- */

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn_right(uint32_t v, int n) { return v >> n | v << (32 - n); }

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void hash_blocks(uint32_t state[8], const unsigned char *p, size_t blocks)
{
    uint32_t w[64];
    for (; blocks > 0; blocks--, p += 64) {
        for (int i = 0; i < 16; i++)
            w[i] = big_endian(p + 4 * i);
        for (int i = 16; i < 64; i++) {
            const uint32_t a = w[i - 15];
            const uint32_t b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (turn_right(a, 7) ^ turn_right(a, 18) ^ a >> 3) +
                   (turn_right(b, 17) ^ turn_right(b, 19) ^ b >> 10);
        }
        uint32_t s[8];
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            const uint32_t e = s[4];
            const uint32_t a = s[0];
            const uint32_t one = s[7] + rounds[i] + w[i] + ((e & s[5]) ^ (~e & s[6])) +
                                 (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25));
            const uint32_t two = ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2])) +
                                 (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if HAVE_SHA_INSTRUCTIONS

/* The same with instructions for it: the state is held as two vectors, ABEF and CDGH. */
__attribute__((target("sha,sse4.1")))
static void hash_blocks_fast(uint32_t state[8], const unsigned char *p, size_t blocks)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; blocks > 0; blocks--, p += 64) {
        __m128i w[4];
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), order);
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i % 4];
            if (i >= 4) {  /* four more words, of the sixteen before them */
                const __m128i last = w[(i + 3) % 4];
                __m128i next = _mm_sha256msg1_epu32(*now, w[(i + 1) % 4]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
                *now = _mm_sha256msg2_epu32(next, last);
            }
            __m128i k = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(rounds + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#endif

static void hash_all(uint32_t state[8], const unsigned char *p, size_t blocks)
{
#if HAVE_SHA_INSTRUCTIONS
    if (__builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1")) {
        hash_blocks_fast(state, p, blocks);
        return;
    }
#endif
    hash_blocks(state, p, blocks);
}

void cfxi_format_sha256_begin(cfxi_sha256 *h)
{
    /* The first 32 bits of the fractions of the square roots of the first 8 primes. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *h = (cfxi_sha256){.size = 0};
    memcpy(h->state, start, sizeof start);
}

void cfxi_format_sha256_more(cfxi_sha256 *h, const void *data, size_t size)
{
    const unsigned char *p = data;
    const size_t have = h->size % 64;
    h->size += size;
    if (have) {
        const size_t take = size < 64 - have ? size : 64 - have;
        memcpy(h->block + have, p, take);
        p += take;
        size -= take;
        if (have + take < 64)
            return;
        hash_all(h->state, h->block, 1);
    }
    hash_all(h->state, p, size / 64);
    if (size % 64)
        memcpy(h->block, p + size / 64 * 64, size % 64);
}

void cfxi_format_sha256_end(cfxi_sha256 *h, char out[65])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char padding[64] = {0x80};
    unsigned char length[8];
    const uint64_t bits = h->size * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    cfxi_format_sha256_more(h, padding, 1 + (119 - h->size % 64) % 64);
    cfxi_format_sha256_more(h, length, 8);
    for (int i = 0; i < 64; i++)
        out[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
