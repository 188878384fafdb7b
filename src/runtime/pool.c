/* pool.c - the threads that share a kernel's work. */
#include "runtime_impl.h"

struct cfxi_pool {
    const cfx_allocator *allocator;
    unsigned threads;
};

cfxi_pool *cfxi_pool_new(unsigned threads, const cfx_allocator *allocator, cfx_error *err)
{
    cfxi_pool *pool = cfxi_alloc(allocator, sizeof *pool);
    if (!pool)
        cfxi_nomem(err);
    else
        *pool = (cfxi_pool){allocator, threads};
    return pool;
}

void cfxi_pool_free(cfxi_pool *pool)
{
    if (pool)
        cfxi_free(pool->allocator, pool, sizeof *pool);
}

unsigned cfxi_pool_threads(const cfxi_pool *pool) { return pool ? pool->threads : 1; }

void cfxi_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_range_fn *fn, void *ctx)
{
    (void)rt;
    (void)grain;
    if (n > 0)
        fn(ctx, 0, n);
}
