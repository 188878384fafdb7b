/* random.c - random numbers as a function of (seed, position): Philox4x32-10.
 *
 * J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). A
 * block of four 32-bit numbers is a keyed bijection of its 128-bit number, so any thread can draw
 * any part of a sequence. One block gives two numbers of 64 bits, or two normal ones.
 */
#include "runtime_impl.h"

#include <math.h>

enum { ROUNDS = 10 };

void cfxi_rt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * x[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
        memcpy(x, next, sizeof x);
        k[0] += 0x9E3779B9u;  /* the golden ratio, and the square root of 3 less 1 */
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, x, sizeof x);
}

/* The two numbers of 64 bits of a block. */
static void draw(cfxi_random r, uint64_t block, uint64_t out[2])
{
    uint64_t number = r.first + block;
    const uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)r.seed, (uint32_t)(r.seed >> 32)};
    uint32_t x[4];
    cfxi_rt_philox(counter, key, x);
    out[0] = (uint64_t)x[1] << 32 | x[0];
    out[1] = (uint64_t)x[3] << 32 | x[2];
}

cfxi_random cfxi_rt_random_reserve(cfx_runtime *rt, int64_t n)
{
    uint64_t blocks = n > 0 ? ((uint64_t)n + 1) / 2 : 0;
    return (cfxi_random){atomic_load(&rt->seed), atomic_fetch_add(&rt->drawn, blocks)};
}

uint64_t cfxi_rt_random_bits(cfxi_random r, int64_t i)
{
    uint64_t two[2];
    draw(r, (uint64_t)i / 2, two);
    return two[(uint64_t)i % 2];
}

double cfxi_rt_random_uniform(cfxi_random r, int64_t i)
{
    return (double)(cfxi_rt_random_bits(r, i) >> 11) * 0x1p-53;
}

/* Box and Muller: the numbers 2k and 2k + 1 are the two coordinates of one point. */
double cfxi_rt_random_normal(cfxi_random r, int64_t i)
{
    const double turn = 6.283185307179586476925;
    uint64_t two[2];
    draw(r, (uint64_t)i / 2, two);
    double u = ((double)(two[0] >> 11) + 1) * 0x1p-53;  /* in (0, 1]: its logarithm is finite */
    double angle = (double)(two[1] >> 11) * 0x1p-53 * turn;
    return sqrt(-2 * log(u)) * (i % 2 ? sin(angle) : cos(angle));
}

cfx_draws cfx_runtime_draw(cfx_runtime *rt, int64_t n) { return cfxi_rt_random_reserve(rt, n); }
uint64_t cfx_draws_bits(cfx_draws r, int64_t i) { return cfxi_rt_random_bits(r, i); }
double cfx_draws_uniform(cfx_draws r, int64_t i) { return cfxi_rt_random_uniform(r, i); }
double cfx_draws_normal(cfx_draws r, int64_t i) { return cfxi_rt_random_normal(r, i); }
