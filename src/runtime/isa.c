/* isa.c - what the processor has, as far as kernels ask: the one place that finds out. */
#define _GNU_SOURCE  /* syscall */
#include "isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

cfx_isa cfxi_rt_isa_of_machine(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return CFX_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
        return CFX_ISA_AVX2;
#elif defined(__aarch64__)
    return CFX_ISA_NEON;
#endif
    return CFX_ISA_PLAIN;
}

cfx_isa cfxi_rt_isa_at_most(cfx_isa limit)
{
    const cfx_isa best = cfxi_rt_isa_of_machine();
    if (limit >= best)
        return best;
    return best == CFX_ISA_NEON ? CFX_ISA_PLAIN : limit;  /* others are of other machines */
}

#if defined(__x86_64__)
/* Whether the system saves the registers of tiles, and lets this process use them. Asking again is
 * cheap, and changes nothing. */
static bool may_use_tiles(void)
{
#if defined(__linux__)
    enum { TILE_STATE = 3 << 17, ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATE) == TILE_STATE &&
           syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

cfxi_bf16 cfxi_rt_bf16(const cfx_runtime *rt)
{
    cfxi_bf16 found = CFXI_BF16_NONE;
#if defined(__x86_64__)
    enum { AVX512_BF16 = 1 << 5, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    if (rt->isa != CFX_ISA_AVX512 || rt->most_bf16 == CFXI_BF16_NONE ||
        !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & AVX512_BF16))
        return CFXI_BF16_NONE;
    found = CFXI_BF16_DOTS;
    if (rt->most_bf16 >= CFXI_BF16_TILES && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
        (d & AMX_BF16) && (d & AMX_TILE) && may_use_tiles())
        found = CFXI_BF16_TILES;
#else
    (void)rt;
#endif
    return found;
}

cfxi_int8 cfxi_rt_int8(const cfx_runtime *rt)
{
    cfxi_int8 found = CFXI_INT8_NONE;
#if defined(__x86_64__)
    enum { AVX_VNNI = 1 << 4, AVX512_VNNI = 1 << 11, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
    unsigned a, b, first, features, tiles;
    if (rt->isa == CFX_ISA_PLAIN || rt->most_int8 == CFXI_INT8_NONE ||
        !__get_cpuid_count(7, 0, &a, &b, &features, &tiles))
        return CFXI_INT8_NONE;
    if (rt->isa == CFX_ISA_AVX2)
        return __get_cpuid_count(7, 1, &first, &b, &features, &tiles) && (first & AVX_VNNI)
                   ? CFXI_INT8_DOTS : CFXI_INT8_NONE;
    if (!(features & AVX512_VNNI))
        return CFXI_INT8_NONE;
    found = CFXI_INT8_DOTS;
    if (rt->most_int8 >= CFXI_INT8_TILES && (tiles & AMX_INT8) && (tiles & AMX_TILE) &&
        may_use_tiles())
        found = CFXI_INT8_TILES;
#else
    (void)rt;
#endif
    return found;
}
