/* recycle.c - large blocks that wait for the next who asks: which, how many, and until when. */
#include "base/recycle.h"

#include "test_alloc.h"

#include <cfx/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

static atomic_long blocks, bytes;

static void *counting_alloc(void *ctx, size_t size)
{
    (void)ctx;
    atomic_fetch_add(&blocks, 1);
    atomic_fetch_add(&bytes, (long)size);
    return malloc(size);
}

static void counting_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    atomic_fetch_sub(&blocks, 1);
    atomic_fetch_sub(&bytes, (long)size);
    free(p);
}

static const cfx_allocator counting = {counting_alloc, counting_free, NULL};

TEST(a_block_comes_back)
{
    const cfx_allocator *r = cfxi_base_recycler_new(&counting, NULL);
    void *first = cfxi_base_alloc(r, 1000000);
    cfxi_base_free(r, first, 1000000);
    CHECK((cfxi_base_recycler_kept(r) > 0) == KEEPS);
    void *again = cfxi_base_alloc(r, 1000100);  /* a little larger, as a cache that has grown */
    CHECK(!KEEPS || again == first);
    cfxi_base_free(r, again, 1000100);
    cfxi_base_recycler_close(r);
    CHECK(atomic_load(&blocks) == 0 && atomic_load(&bytes) == 0);
}

/* Each size gets a block that is large enough, and gives back as many bytes as it took. */
TEST(sizes)
{
    const cfx_allocator *r = cfxi_base_recycler_new(&counting, NULL);
    for (int log2 = 0; log2 < 24; log2++)
        for (int off = -1; off <= 1; off++) {
            const size_t size = ((size_t)1 << log2) + (size_t)(off + 1);
            char *p = cfxi_base_alloc(r, size);
            memset(p, 1, size);
            cfxi_base_free(r, p, size);
        }
    cfxi_base_recycler_close(r);
    CHECK(atomic_load(&blocks) == 0 && atomic_load(&bytes) == 0);
}

/* As many bytes wait as are in use, besides a few. */
TEST(not_all_wait)
{
    enum { MANY = 40, SIZE = 1 << 20 };
    void *all[MANY];
    const cfx_allocator *r = cfxi_base_recycler_new(&counting, NULL);
    for (int i = 0; i < MANY; i++)
        all[i] = cfxi_base_alloc(r, SIZE);
    for (int i = 0; i < MANY; i++)
        cfxi_base_free(r, all[i], SIZE);
    CHECK(cfxi_base_recycler_kept(r) <= (size_t)SIZE * MANY / 2);
    cfxi_base_recycler_close(r);
    CHECK(atomic_load(&blocks) == 0);
}

TEST(a_block_outlives_its_runtime)
{
    const int64_t size = 1 << 20;
    const cfx_runtime_options options = {.allocator = &counting, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    CHECK(cfx_runtime_allocator(rt) == &counting);
    cfx_tensor *x = cfx_tensor_new(CFX_DTYPE_FLOAT32, &size, 1, &counting, NULL);
    const cfx_datum arg = cfx_datum_tensor(x);
    const cfx_datum y = cfx_operator_run(rt, CFX_OPID_relu, &arg, 1, NULL);
    cfx_runtime_free(rt);
    CHECK(y.kind == CFX_DATUM_TENSOR && cfx_tensor_numel(y.as.tensor) == size);
    CHECK(atomic_load(&blocks) > 0);
    cfx_datum_release(y);
    cfx_tensor_release(x);
    CHECK(atomic_load(&blocks) == 0 && atomic_load(&bytes) == 0);
}

static void *take_and_give(void *ctx)
{
    const cfx_allocator *r = ctx;
    for (int i = 0; i < 2000; i++) {
        const size_t size = (size_t)70000 + (size_t)(i % 7) * 30000;
        char *p = cfxi_base_alloc(r, size);
        p[0] = (char)i;
        p[size - 1] = (char)i;
        cfxi_base_free(r, p, size);
    }
    return NULL;
}

TEST(threads_take_and_give)
{
    pthread_t others[4];
    const cfx_allocator *r = cfxi_base_recycler_new(&counting, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&others[i], NULL, take_and_give, (void *)(uintptr_t)r);
    for (int i = 0; i < 4; i++)
        pthread_join(others[i], NULL);
    cfxi_base_recycler_close(r);
    CHECK(atomic_load(&blocks) == 0 && atomic_load(&bytes) == 0);
}
