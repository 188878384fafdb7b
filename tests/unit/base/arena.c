/* arena.c - tests of bump allocation and its free lists. */
#include "test_alloc.h"

#include "base/base_impl.h"

TEST(blocks_are_aligned_and_apart)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_arena arena;
    cfxi_base_arena_init(&arena, &a);
    enum { N = 2000 };
    static unsigned char *blocks[N];
    static size_t sizes[N];
    for (size_t i = 0; i < N; i++) {
        sizes[i] = i * 7 % (2 * CFXI_ARENA_LARGE);
        blocks[i] = cfxi_base_arena_alloc(&arena, sizes[i]);
        REQUIRE(blocks[i]);
        CHECK_INT_EQ(0, (uintptr_t)blocks[i] % 8);
        memset(blocks[i], (int)(i & 0xff), sizes[i]);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < sizes[i]; k += 97)
            if (!CHECK_INT_EQ(i & 0xff, blocks[i][k]))
                return;
    CHECK(arena.bytes == ta.live_bytes);
    cfxi_base_arena_release(&arena);
    CHECK_INT_EQ(0, arena.bytes);
    test_alloc_check(&ta);
}

/* Every size at both ends of every class comes back from its own free list. */
TEST(freed_blocks_are_reused)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_arena arena;
    cfxi_base_arena_init(&arena, &a);
    for (size_t size = 0; size <= CFXI_ARENA_LARGE; size++) {
        void *p = cfxi_base_arena_alloc(&arena, size);
        REQUIRE(p);
        memset(p, 0xee, size);
        cfxi_base_arena_free(&arena, p, size);
        void *q = cfxi_base_arena_alloc(&arena, size);
        CHECK(p == q);
        cfxi_base_arena_free(&arena, q, size);
    }
    cfxi_base_arena_free(&arena, NULL, 10);
    const size_t bytes = arena.bytes;
    for (size_t i = 0; i < 100000; i++) {
        const size_t size = i * 31 % CFXI_ARENA_LARGE;
        void *p = cfxi_base_arena_alloc(&arena, size);
        REQUIRE(p);
        cfxi_base_arena_free(&arena, p, size);
    }
    CHECK(arena.bytes == bytes);
    cfxi_base_arena_release(&arena);
    test_alloc_check(&ta);
}

TEST(large_blocks_go_back)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_arena arena;
    cfxi_base_arena_init(&arena, &a);
    void *p[5];
    for (size_t i = 0; i < 5; i++)
        REQUIRE((p[i] = cfxi_base_arena_alloc(&arena, CFXI_ARENA_LARGE + 1 + i)));
    CHECK(arena.bytes == ta.live_bytes);
    cfxi_base_arena_free(&arena, p[2], CFXI_ARENA_LARGE + 3); /* middle, first, last of the list */
    cfxi_base_arena_free(&arena, p[4], CFXI_ARENA_LARGE + 5);
    cfxi_base_arena_free(&arena, p[0], CFXI_ARENA_LARGE + 1);
    CHECK_INT_EQ(2, ta.live_blocks);
    CHECK(arena.bytes == ta.live_bytes);
    CHECK(!cfxi_base_arena_alloc(&arena, SIZE_MAX - 8));
    cfxi_base_arena_release(&arena);
    test_alloc_check(&ta);
}

/* A small graph must not cost a whole chunk. */
TEST(chunks_grow_gently)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_arena arena;
    cfxi_base_arena_init(&arena, &a);
    CHECK_INT_EQ(0, ta.live_bytes);
    size_t used = 0;
    for (int i = 0; i < 20000; i++) {
        REQUIRE(cfxi_base_arena_alloc(&arena, 64));
        used += 64;
        if (arena.bytes > 2 * used + CFXI_ARENA_CHUNK / 16 ||
            arena.bytes > used + used / 64 + CFXI_ARENA_CHUNK + 4096)
            return (void)CHECK(arena.bytes <= used);
    }
    cfxi_base_arena_release(&arena);
    test_alloc_check(&ta);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfxi_arena arena;
    cfx_status status = CFX_OK;
    (void)arg;
    cfxi_base_arena_init(&arena, a);
    for (size_t i = 0; i < 60 && status == CFX_OK; i++)
        if (!cfxi_base_arena_alloc(&arena, i * 300))
            status = CFX_E_NOMEM;
    cfxi_base_arena_release(&arena);
    return status;
}

TEST(arena_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 10); }

TEST(an_arena_is_an_allocator)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_arena arena;
    cfxi_base_arena_init(&arena, &a);
    const cfx_allocator inside = cfxi_base_arena_allocator(&arena);
    void *block = cfxi_base_alloc(&inside, 40);
    REQUIRE(block);
    cfxi_base_free(&inside, block, 40);
    CHECK(cfxi_base_alloc(&inside, 40) == block);
    cfxi_base_arena_release(&arena);
    test_alloc_check(&ta);
}
