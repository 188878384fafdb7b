/* keyed_hash.c - the hash of names that come from files: SipHash-1-3 under a key of the table's.
 *
 * Whoever writes a file chooses its names. With a hash that is known they could all be made to
 * collide, and a table of n names would take n * n steps to fill. Nothing that is written depends
 * on the key: tables are searched with it, and their contents listed in an order of their own.
 */
#include "base_impl.h"

#include <time.h>

/* Spreads what is known of a number over all of its bits. */
static uint64_t spread(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

cfxi_hash_key cfxi_base_hash_key_new(const void *table)
{
    struct timespec now = {0};
    cfxi_hash_key key;
    clock_gettime(CLOCK_MONOTONIC, &now);
    key.a = spread((uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30) ^ (uintptr_t)table;
    key.b = spread(key.a ^ (uintptr_t)&now) + (uintptr_t)&cfxi_base_hash_key_new;
    key.a = spread(key.a + key.b);
    return key;
}

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t turn_left(uint64_t v, int n) { return v << n | v >> (64 - n); }

static inline void mix_once(sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = turn_left(s->v1, 13) ^ s->v0;
    s->v3 = turn_left(s->v3, 16) ^ s->v2;
    s->v0 = turn_left(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = turn_left(s->v1, 17) ^ s->v2;
    s->v3 = turn_left(s->v3, 21) ^ s->v0;
    s->v2 = turn_left(s->v2, 32);
}

static inline void take_word(sip *s, uint64_t word)
{
    s->v3 ^= word;
    mix_once(s);
    s->v0 ^= word;
}

uint32_t cfxi_base_hash_keyed(const cfxi_hash_key *key, const void *data, size_t size)
{
    const unsigned char *p = data;
    uint64_t last = (uint64_t)size << 56;
    uint64_t word;
    sip s = {key->a ^ 0x736f6d6570736575u, key->b ^ 0x646f72616e646f6du,
             key->a ^ 0x6c7967656e657261u, key->b ^ 0x7465646279746573u};
    for (; size >= 8; p += 8, size -= 8) {
        memcpy(&word, p, sizeof word);
        take_word(&s, word);
    }
    for (size_t i = 0; i < size; i++)
        last |= (uint64_t)p[i] << 8 * i;
    take_word(&s, last);
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix_once(&s);
    word = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    return (uint32_t)(word ^ word >> 32);
}
