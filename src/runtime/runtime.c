/* runtime.c - the runtime: what the machine has, scratch memory. */
#include "isa.h"
#include "library_impl.h"
#include "pool_impl.h"

#include "base/recycle.h"

#include <time.h>

const char *cfx_isa_name(cfx_isa isa)
{
    switch (isa) {
    case CFX_ISA_PLAIN: return "plain";
    case CFX_ISA_AVX2: return "avx2";
    case CFX_ISA_AVX512: return "avx512";
    case CFX_ISA_NEON: return "neon";
    case CFX_ISA_COUNT: break;
    }
    return "unknown";
}

const char *cfx_precision_name(cfx_precision precision)
{
    switch (precision) {
    case CFX_PRECISION_FLOAT32: return "float32";
    case CFX_PRECISION_BF16: return "bf16";
    case CFX_PRECISION_COUNT: break;
    }
    return "unknown";
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Blocks that were given back wait for the next who asks, by powers of two of their size: a fresh
 * large one costs a page fault for every 4 KiB, and a run that allocates nothing cannot wait for
 * another thread's. A slot is taken and filled by exchanging pointers, so threads need no lock. */
enum {
#if defined(__SANITIZE_ADDRESS__)
    SMALLEST_KEPT = 15,  /* small blocks have the size that was asked for: who goes beyond it is
                            seen */
#else
    SMALLEST_KEPT = 8,
#endif
    LARGEST_KEPT = 24,   /* 16 MiB */
    LARGEST_OFTEN = 21   /* up to 2 MiB a block for each of some threads, above one */
};
_Static_assert((int)LARGEST_KEPT < (int)CFXI_SCRATCH_SIZES, "each size class has a place");

/* What stands before the memory that is handed out. */
typedef struct scratch_head {
    size_t block;     /* bytes from the allocator */
    uint32_t offset;  /* of the memory in it */
    uint32_t log2;    /* size class; 0: not kept */
} scratch_head;

static unsigned size_class(size_t size)
{
    unsigned k = 8;  /* 256 bytes */
    while (k <= LARGEST_KEPT && size > (size_t)1 << k)
        k++;
    return k >= SMALLEST_KEPT && k <= LARGEST_KEPT ? k : 0;
}

static unsigned slots_of(unsigned class)
{
    return class <= LARGEST_OFTEN ? CFXI_SCRATCH_SLOTS : 1;
}

void *cfxi_rt_scratch(cfx_runtime *rt, size_t size)
{
    size_t block;
    unsigned class = size_class(size);
    for (unsigned i = 0; class && i < slots_of(class); i++) {
        void *kept = atomic_load_explicit(&rt->scratch[class][i], memory_order_relaxed)
                         ? atomic_exchange(&rt->scratch[class][i], NULL) : NULL;
        if (kept)
            return kept;
    }
    if (!cfxi_base_mul_size(class ? (size_t)1 << class : size, 1, 2 * CFXI_ALIGN, &block))
        return NULL;
    char *raw = cfxi_base_alloc(rt->allocator, block);
    if (!raw)
        return NULL;
    uintptr_t first = ((uintptr_t)raw + 2 * CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
    scratch_head *head = (scratch_head *)first - 1;
    *head = (scratch_head){block, (uint32_t)(first - (uintptr_t)raw), class};
    return (void *)first;
}

static void scratch_drop(cfx_runtime *rt, void *scratch)
{
    const scratch_head *head = (scratch_head *)scratch - 1;
    cfxi_base_free(rt->allocator, (char *)scratch - head->offset, head->block);
}

void cfxi_rt_scratch_free(cfx_runtime *rt, void *scratch)
{
    if (!scratch)
        return;
    unsigned class = ((scratch_head *)scratch - 1)->log2;
    for (unsigned i = 0; class && i < slots_of(class); i++) {
        void *empty = NULL;
        if (atomic_compare_exchange_strong(&rt->scratch[class][i], &empty, scratch))
            return;
    }
    scratch_drop(rt, scratch);
}

static void scratch_drop_all(cfx_runtime *rt)
{
    for (size_t k = 0; k < CFXI_SCRATCH_SIZES; k++)
        for (size_t i = 0; i < CFXI_SCRATCH_SLOTS; i++) {
            void *kept = atomic_load(&rt->scratch[k][i]);
            if (kept)
                scratch_drop(rt, kept);
        }
}

/* ---- life ---------------------------------------------------------------------------------- */

/* None for one thread. */
static cfx_status make_pool(cfx_runtime *rt, unsigned threads, cfx_error *err)
{
    cfxi_pool_options o = {.threads = threads};
    if (threads == 1)
        return CFX_OK;
    o.cores = cfxi_rt_cores();
    if (threads == 0)
        o.threads = o.cores;
    if (o.threads > 1 && !(rt->pool = cfxi_rt_pool_new(rt, &o, err)))
        return CFX_E_NOMEM;
    return CFX_OK;
}

cfx_runtime *cfx_runtime_new(const cfx_runtime_options *options, cfx_error *err)
{
    const cfx_runtime_options defaults = {0};
    const cfx_runtime_options *o = options ? options : &defaults;
    const cfx_allocator *allocator = cfxi_base_allocator(o->allocator);
    cfx_runtime *rt = cfxi_base_alloc(allocator, sizeof *rt);
    if (!rt) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memset(rt, 0, sizeof *rt);
    rt->allocator = cfxi_base_recycler_new(allocator, err);
    if (!rt->allocator) {
        cfxi_base_free(allocator, rt, sizeof *rt);
        return NULL;
    }
    rt->reference = o->reference;
    rt->isa = o->reference ? CFX_ISA_PLAIN
                           : cfxi_rt_isa_at_most(o->limit_isa ? o->isa : CFX_ISA_COUNT);
    rt->most_bf16 = CFXI_BF16_TILES;
    rt->most_int8 = CFXI_INT8_TILES;
    rt->library = cfx_library_retain(o->library);
    rt->interrupted = o->interrupted;
    rt->interrupted_ctx = o->interrupted_ctx;
    rt->print = o->print;
    rt->step = o->step;
    rt->step_ctx = o->step_ctx;
    atomic_init(&rt->seed, o->seed);
    if (!o->reference && make_pool(rt, o->threads, err) != CFX_OK) {
        cfx_runtime_free(rt);
        return NULL;
    }
    return rt;
}

void cfx_runtime_free(cfx_runtime *rt)
{
    if (!rt)
        return;
    cfxi_rt_pool_free(rt->pool);
    cfxi_rt_signatures_free(rt);
    scratch_drop_all(rt);
    cfx_library_release(rt->library);
    const cfx_allocator *recycler = rt->allocator;
    cfxi_base_free(cfxi_base_recycler_from(recycler), rt, sizeof *rt);
    cfxi_base_recycler_close(recycler);
}

unsigned cfx_runtime_threads(const cfx_runtime *rt) { return cfxi_rt_pool_threads(rt->pool); }
cfx_isa cfx_runtime_isa(const cfx_runtime *rt) { return rt->isa; }
const cfx_allocator *cfx_runtime_allocator(const cfx_runtime *rt)
{
    return cfxi_base_recycler_from(rt->allocator);
}
const cfx_library *cfxi_rt_library(const cfx_runtime *rt) { return rt->library; }

void cfx_runtime_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfx_range_fn *fn, void *ctx)
{
    cfxi_rt_parallel(rt, n, grain, fn, ctx);
}

/* ---- who is told what was computed --------------------------------------------------------- */

uint64_t cfxi_rt_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cfxi_rt_tell_step(const cfx_runtime *rt, cfx_step step)
{
    step.end = cfxi_rt_clock();
    rt->step(rt->step_ctx, &step);
}

uint64_t cfxi_rt_bytes_of(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    uint64_t bytes = d.kind == CFX_DATUM_TENSOR
                         ? (uint64_t)cfxi_tensor_numel(d.as.tensor) *
                               cfxi_tensor_itemsize(d.as.tensor) : 0;
    for (size_t i = 0; i < n; i++)
        bytes += cfxi_rt_bytes_of(items[i]);
    return bytes;
}

cfx_status cfxi_rt_go_on(const cfx_runtime *rt, cfx_error *err)
{
    if (!rt->interrupted || !rt->interrupted(rt->interrupted_ctx))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_INTERRUPTED, "the run was interrupted");
}

void cfx_runtime_seed(cfx_runtime *rt, uint64_t seed)
{
    atomic_store(&rt->seed, seed);
    atomic_store(&rt->drawn, 0);
}
