/* map.c - tests of the hash map against plain arrays. */
#include "test_alloc.h"

#include "base/base_impl.h"

enum { N = 300 };

static int64_t keys[N];
static char values[N];

TEST(random_operations_agree_with_an_array)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    void *expected[N] = {NULL};
    cfxi_pointers map = {0};
    uint64_t seed = 1;
    for (int step = 0; step < 30000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t i = (size_t)(seed >> 33) % N;
        void *value = (seed >> 20) % 3 ? &values[(seed >> 40) % N] : NULL;
        if (!CHECK(cfxi_base_pointers_get(&map, &keys[i]) == expected[i]))
            break;
        REQUIRE(cfxi_base_pointers_set(&map, &keys[i], value, &a));
        expected[i] = value;
    }
    size_t live = 0;
    size_t seen = 0;
    size_t at = 0;
    for (size_t i = 0; i < N; i++)
        live += expected[i] != NULL;
    while (cfxi_base_pointers_next(&map, &at))
        seen++;
    CHECK_INT_EQ(live, seen);
    cfxi_base_pointers_free(&map, &a);
    CHECK(!cfxi_base_pointers_get(&map, &keys[0]));
    test_alloc_check(&ta);
}

TEST(what_was_taken_out_makes_room)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_pointers map = {0};
    for (size_t i = 0; i < 100000; i++) {
        const void *key = (const void *)(8 * (i + 1));
        REQUIRE(cfxi_base_pointers_set(&map, key, &values[0], &a));
        REQUIRE(cfxi_base_pointers_set(&map, key, NULL, &a));
    }
    CHECK_INT_EQ(16, map.capacity);
    cfxi_base_pointers_free(&map, &a);
    test_alloc_check(&ta);
}

TEST(taking_out_needs_no_memory)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_pointers map = {0};
    for (size_t i = 0; i < 8; i++)  /* as many as there is room for */
        REQUIRE(cfxi_base_pointers_set(&map, &keys[i], &values[i], &a));
    ta.fail_at = 0;
    CHECK(!cfxi_base_pointers_set(&map, &keys[8], &values[8], &a));
    CHECK(!cfxi_base_pointers_get(&map, &keys[8]));
    CHECK(cfxi_base_pointers_set(&map, &keys[8], NULL, &a));
    CHECK(cfxi_base_pointers_set(&map, &keys[3], NULL, &a));
    CHECK(!cfxi_base_pointers_get(&map, &keys[3]));
    CHECK(cfxi_base_pointers_get(&map, &keys[4]) == &values[4]);
    cfxi_base_pointers_free(&map, &a);
    test_alloc_check(&ta);
}

static cfx_status fill(const cfx_allocator *a, void *arg)
{
    cfxi_pointers map = {0};
    cfx_status status = CFX_OK;
    (void)arg;
    for (size_t i = 0; i < N && status == CFX_OK; i++) {
        int *item = cfxi_base_alloc(a, sizeof *item);
        if (item && cfxi_base_pointers_set(&map, &keys[i], item, a))
            continue;
        cfxi_base_free(a, item, sizeof *item);
        status = CFX_E_NOMEM;
    }
    cfxi_base_pointers_free_all(&map, sizeof(int), a);
    return status;
}

TEST(out_of_memory_leaks_no_items) { CHECK(test_oom_sweep(fill, NULL) > N); }

/* ---- values of other sizes ----------------------------------------------------------------- */

typedef struct wide {
    uint64_t a, b, c;
} wide;

TEST(wide_values_move_with_their_keys)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    uint64_t expected[N] = {0};
    cfxi_hash_map map = {0};
    uint64_t seed = 7;
    for (uint64_t step = 1; step < 30000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t i = (size_t)(seed >> 33) % N;
        const wide *value = cfxi_base_map_find(&map, &keys[i], sizeof *value);
        if (!CHECK(expected[i] ? value && value->a == expected[i] && value->c == ~expected[i]
                               : !value))
            break;
        if (value && seed >> 63) {
            cfxi_base_map_remove(&map, &keys[i], sizeof *value);
            expected[i] = 0;
            continue;
        }
        wide *there = cfxi_base_map_add(&map, &keys[i], sizeof *there, &a);
        REQUIRE(there);
        CHECK(expected[i] || (there->a == 0 && there->b == 0 && there->c == 0));
        *there = (wide){step, 0, ~step};
        expected[i] = step;
    }
    size_t live = 0;
    size_t at = 0;
    for (size_t i = 0; i < N; i++)
        live += expected[i] != 0;
    CHECK_INT_EQ(live, map.n);
    for (; cfxi_base_map_next(&map, &at, sizeof(wide)); live--)
        ;
    CHECK_INT_EQ(0, live);
    cfxi_base_map_free(&map, sizeof(wide), &a);
    test_alloc_check(&ta);
}

TEST(reserved_keys_cannot_fail)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_hash_map map = {0};
    REQUIRE(cfxi_base_map_reserve(&map, N, sizeof(size_t), &a));
    ta.fail_at = 0;
    for (size_t i = 0; i < N; i++)
        CHECK(cfxi_base_map_add(&map, &keys[i], sizeof(size_t), &a));
    cfxi_base_map_free(&map, sizeof(size_t), &a);
    test_alloc_check(&ta);
}

TEST(a_size_that_overflows_is_out_of_memory)
{
    cfxi_hash_map map = {0};
    CHECK(!cfxi_base_map_reserve(&map, SIZE_MAX, sizeof(wide), NULL));
    CHECK(!cfxi_base_map_reserve(&map, SIZE_MAX / 4, sizeof(wide), NULL));
    CHECK(!map.entries);
}
