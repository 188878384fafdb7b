/* runtime.c - the runtime: what the machine has, scratch memory. */
#include "runtime_impl.h"

#include <unistd.h>

const char *cfx_isa_name(cfx_isa isa)
{
    switch (isa) {
    case CFX_ISA_PLAIN: return "plain";
    case CFX_ISA_AVX2: return "avx2";
    case CFX_ISA_AVX512: return "avx512";
    case CFX_ISA_COUNT: break;
    }
    return "unknown";
}

static cfx_isa machine_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return CFX_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
        return CFX_ISA_AVX2;
#endif
    return CFX_ISA_PLAIN;
}

static unsigned machine_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

cfx_runtime *cfx_runtime_new(const cfx_runtime_options *options, cfx_error *err)
{
    const cfx_runtime_options defaults = {0};
    const cfx_runtime_options *o = options ? options : &defaults;
    const cfx_allocator *allocator = cfxi_allocator(o->allocator);
    cfx_runtime *rt = cfxi_alloc(allocator, sizeof *rt);
    if (!rt) {
        cfxi_nomem(err);
        return NULL;
    }
    memset(rt, 0, sizeof *rt);
    rt->allocator = allocator;
    rt->reference = o->reference;
    rt->isa = o->reference ? CFX_ISA_PLAIN : machine_isa();
    if (o->limit_isa && o->isa < rt->isa)
        rt->isa = o->isa;
    atomic_init(&rt->seed, o->seed);
    unsigned threads = o->reference ? 1 : o->threads ? o->threads : machine_threads();
    if (threads > 1 && !(rt->pool = cfxi_pool_new(threads, allocator, err))) {
        cfx_runtime_free(rt);
        return NULL;
    }
    return rt;
}

void cfx_runtime_free(cfx_runtime *rt)
{
    if (!rt)
        return;
    cfxi_pool_free(rt->pool);
    cfxi_signatures_free(rt);
    cfxi_free(rt->allocator, rt, sizeof *rt);
}

unsigned cfx_runtime_threads(const cfx_runtime *rt) { return cfxi_pool_threads(rt->pool); }
cfx_isa cfx_runtime_isa(const cfx_runtime *rt) { return rt->isa; }

void cfx_runtime_seed(cfx_runtime *rt, uint64_t seed)
{
    atomic_store(&rt->seed, seed);
    atomic_store(&rt->drawn, 0);
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* The size of the block stands before the memory that is handed out. */
void *cfxi_scratch(cfx_runtime *rt, size_t size)
{
    size_t block;
    if (!cfxi_mul_size(size, 1, 2 * CFXI_ALIGN, &block))
        return NULL;
    char *raw = cfxi_alloc(rt->allocator, block);
    if (!raw)
        return NULL;
    uintptr_t first = ((uintptr_t)raw + 2 * CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
    size_t *head = (size_t *)first - 2;
    head[0] = block;
    head[1] = first - (uintptr_t)raw;
    return (void *)first;
}

void cfxi_scratch_free(cfx_runtime *rt, void *scratch)
{
    if (!scratch)
        return;
    size_t *head = (size_t *)scratch - 2;
    cfxi_free(rt->allocator, (char *)scratch - head[1], head[0]);
}
