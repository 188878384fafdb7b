/* test_alloc.h - an allocator that counts, catches leaks and wrong sizes, and fails on demand.
 *
 *     test_alloc ta;
 *     const cfx_allocator a = test_alloc_init(&ta);
 *     ...
 *     test_alloc_check(&ta);             (fails the test on a leak or a wrong free)
 *
 * test_oom_sweep() runs a function again and again while the first, second, ... allocation fails.
 */
#ifndef CFX_TESTS_TEST_ALLOC_H
#define CFX_TESTS_TEST_ALLOC_H

#include "check.h"

#include <cfx/base.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define TEST_ALLOC_NEVER SIZE_MAX

typedef struct test_alloc {
    atomic_size_t live_bytes;
    atomic_size_t live_blocks;
    atomic_size_t peak_bytes; /* the most that was live; right if one thread allocates */
    atomic_size_t count; /* allocations asked for so far */
    atomic_size_t errors; /* frees of a wrong size or of a foreign pointer */
    size_t fail_at; /* this allocation (counted from 0) and all later ones fail */
} test_alloc;

/* Sits before each block; 16 bytes, so the block keeps malloc's alignment of 16. */
typedef struct test_block {
    size_t size;
    uint64_t tag;
} test_block;

#define TEST_BLOCK_LIVE 0x6cfbb10c6cfbb10cu
#define TEST_BLOCK_DEAD 0xdeadb10cdeadb10cu

static inline void *test_alloc_alloc(void *ctx, size_t size)
{
    test_alloc *ta = ctx;
    if (atomic_fetch_add(&ta->count, 1) >= ta->fail_at || size > SIZE_MAX - sizeof(test_block))
        return NULL;
    test_block *b = malloc(sizeof *b + size);
    if (!b)
        return NULL;
    b->size = size;
    b->tag = TEST_BLOCK_LIVE;
    memset(b + 1, 0xa5, size); /* reading before writing shows */
    const size_t live = atomic_fetch_add(&ta->live_bytes, size) + size;
    if (live > ta->peak_bytes)
        ta->peak_bytes = live;
    atomic_fetch_add(&ta->live_blocks, 1);
    return b + 1;
}

static inline void test_alloc_free(void *ctx, void *ptr, size_t size)
{
    test_alloc *ta = ctx;
    if (!ptr)
        return;
    test_block *b = (test_block *)ptr - 1;
    if (b->tag != TEST_BLOCK_LIVE) {
        printf("free of %p, which is not a live block\n", ptr);
        atomic_fetch_add(&ta->errors, 1);
        return;
    }
    if (b->size != size) {
        printf("free of %p with size %zu, allocated with %zu\n", ptr, size, b->size);
        atomic_fetch_add(&ta->errors, 1);
    }
    atomic_fetch_sub(&ta->live_bytes, b->size);
    atomic_fetch_sub(&ta->live_blocks, 1);
    b->tag = TEST_BLOCK_DEAD;
    memset(ptr, 0x5a, b->size);
    free(b);
}

/* Returns an allocator over `ta`, which must outlive it; set ta->fail_at to make it fail. */
static inline cfx_allocator test_alloc_init(test_alloc *ta)
{
    atomic_init(&ta->live_bytes, 0);
    atomic_init(&ta->live_blocks, 0);
    atomic_init(&ta->peak_bytes, 0);
    atomic_init(&ta->count, 0);
    atomic_init(&ta->errors, 0);
    ta->fail_at = TEST_ALLOC_NEVER;
    const cfx_allocator a = {test_alloc_alloc, test_alloc_free, ta};
    return a;
}

/* Fails the running test if blocks are still live or if a free was wrong. */
#define test_alloc_check(ta) test_alloc_check_at(ta, __FILE__, __LINE__)
static inline bool test_alloc_check_at(test_alloc *ta, const char *file, int line)
{
    const bool blocks = check_int(0, (long long)ta->live_blocks, file, line, "blocks still live");
    const bool bytes = check_int(0, (long long)ta->live_bytes, file, line, "bytes still live");
    const bool errors = check_int(0, (long long)ta->errors, file, line, "wrong frees");
    return blocks && bytes && errors;
}

/* The body of a sweep: does its work with `a`, frees all of it, and returns how it went. */
typedef cfx_status test_oom_fn(const cfx_allocator *a, void *arg);

/* Lets allocation 0, 1, 2, ... and all after it fail until `body` has enough; every run must
 * leave nothing behind, and every short one return CFX_E_NOMEM. Returns how many were short. */
static inline size_t test_oom_sweep(test_oom_fn *body, void *arg)
{
    for (size_t n = 0;; n++) {
        test_alloc ta;
        const cfx_allocator a = test_alloc_init(&ta);
        ta.fail_at = n;
        const cfx_status status = body(&a, arg);
        const bool clean = test_alloc_check(&ta);
        const bool short_of_memory = ta.count > n;
        const bool right = CHECK_INT_EQ(short_of_memory ? CFX_E_NOMEM : CFX_OK, status);
        if (!clean || !right)
            printf("    with allocation %zu failing\n", n);
        if (!clean || !right || !short_of_memory)
            return n;
    }
}

#endif
