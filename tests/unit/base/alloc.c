/* alloc.c - tests of the default allocator, growing arrays and hashing. */
#include "test_alloc.h"

#include "base/base_impl.h"

TEST(null_means_malloc)
{
    const cfx_allocator *a = cfxi_base_allocator(NULL);
    REQUIRE(a && a->alloc && a->free);
    CHECK(cfxi_base_allocator(a) == a);
    void *p = cfxi_base_alloc(NULL, 100);
    REQUIRE(p);
    memset(p, 1, 100);
    cfxi_base_free(NULL, p, 100);
    cfxi_base_free(NULL, NULL, 0);
}

TEST(no_bytes_are_one_byte)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    void *p = cfxi_base_alloc(&a, 0);
    CHECK(p != NULL);
    CHECK_INT_EQ(1, ta.live_bytes);
    cfxi_base_free(&a, p, 0);
    cfxi_base_free(&a, NULL, 7);
    test_alloc_check(&ta);
}

TEST(sizes_are_checked)
{
    size_t out = 0;
    CHECK(cfxi_base_mul_size(3, 5, 2, &out));
    CHECK_INT_EQ(17, out);
    CHECK(!cfxi_base_mul_size(SIZE_MAX / 2, 3, 0, &out));
    CHECK(!cfxi_base_mul_size(SIZE_MAX, 1, 1, &out));
}

TEST(vec_grows)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_vec vec = {0};
    for (int i = 0; i < 1000; i++) {
        REQUIRE(cfxi_base_vec_reserve(&vec, 1, sizeof(int), &a));
        ((int *)vec.data)[vec.size++] = i;
    }
    for (int i = 0; i < 1000; i++)
        CHECK_INT_EQ(i, ((int *)vec.data)[i]);
    CHECK(ta.count < 12); /* it doubles */
    REQUIRE(cfxi_base_vec_reserve(&vec, 5000, sizeof(int), &a));
    CHECK(vec.capacity >= 6000);
    cfxi_base_vec_free(&vec, sizeof(int), &a);
    CHECK(!vec.data && !vec.size && !vec.capacity);
    test_alloc_check(&ta);
}

TEST(vec_survives_failure)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_vec vec = {0};
    REQUIRE(cfxi_base_vec_reserve(&vec, 8, sizeof(int), &a));
    ((int *)vec.data)[vec.size++] = 42;
    ta.fail_at = ta.count;
    CHECK(!cfxi_base_vec_reserve(&vec, 8, sizeof(int), &a));
    CHECK(!cfxi_base_vec_reserve(&vec, SIZE_MAX, sizeof(int), &a));
    CHECK(!cfxi_base_vec_reserve(&vec, SIZE_MAX / 2, sizeof(int), &a));
    CHECK_INT_EQ(42, ((int *)vec.data)[0]);
    cfxi_base_vec_free(&vec, sizeof(int), &a);
    test_alloc_check(&ta);
}

/* Hashes end up in files: these numbers may not change. */
TEST(hashes_are_stable)
{
    CHECK(cfxi_base_hash_bytes("", 0) == 0xa48858c0e2603b1au);
    CHECK(cfxi_base_hash_bytes("relu_1", 6) == 0x1d2509454c191ff8u);
    CHECK(cfxi_base_hash_bytes("torch.nn.functional.relu", 24) == 0xcb6c05b4ffedb333u);
    const char text[] = "relu_12345 and some more bytes";
    uint64_t seen[sizeof text];
    for (size_t n = 0; n < sizeof text; n++) {
        seen[n] = cfxi_base_hash_bytes(text, n);
        CHECK(seen[n] == cfxi_base_hash_bytes(text, n));
        for (size_t i = 0; i < n; i++)
            CHECK(seen[i] != seen[n]);
    }
    CHECK(cfxi_base_hash_mix(1, 2) != cfxi_base_hash_mix(2, 1));
}

/* Consecutive names and addresses must not pile up in a table. */
TEST(hashes_spread)
{
    enum { SLOTS = 1 << 14, ITEMS = SLOTS / 2 };
    static unsigned char names[SLOTS];
    static unsigned char pointers[SLOTS];
    unsigned most_names = 0;
    unsigned most_pointers = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        char text[32];
        const int n = snprintf(text, sizeof text, "relu_%u", i);
        unsigned char *at = &names[cfxi_base_hash_bytes(text, (size_t)n) & (SLOTS - 1)];
        most_names = ++*at > most_names ? *at : most_names;
        const void *pointer = (void *)(uintptr_t)(0x7f0000000000 + i * 64);
        at = &pointers[cfxi_base_hash_pointer(pointer) & (SLOTS - 1)];
        most_pointers = ++*at > most_pointers ? *at : most_pointers;
    }
    CHECK(most_names <= 9);
    CHECK(most_pointers <= 9);
}
