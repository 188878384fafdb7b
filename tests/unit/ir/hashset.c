/* hashset.c - tests of the hash set against a plain list of flags. */
#include "test_alloc.h"

#include "ir/graph_impl.h"

typedef struct item {
    unsigned key;
    uint32_t hash;
} item;

static bool same(const void *p, const void *key, size_t size)
{
    (void)size;
    return ((const item *)p)->key == *(const unsigned *)key;
}

static uint32_t hash_of(const void *p) { return ((const item *)p)->hash; }

static void *find(const cfxi_table *t, const item *i)
{
    return cfxi_ir_table_find(t, i->hash, same, &i->key, 0);
}

static bool add(cfxi_table *t, item *i, const cfx_allocator *a)
{
    if (!cfxi_ir_table_reserve(t, hash_of, a))
        return false;
    cfxi_ir_table_insert(t, i->hash, i);
    return true;
}

static void random_operations(uint32_t hash_mask)
{
    enum { N = 300 };
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    static item items[N];
    bool in[N] = {false};
    cfxi_table t = {0};
    size_t live = 0;
    uint64_t seed = 1;
    for (unsigned i = 0; i < N; i++)
        items[i] = (item){i, (uint32_t)cfxi_base_hash_bytes(&i, sizeof i) & hash_mask};
    for (int step = 0; step < 60000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const unsigned i = (unsigned)(seed >> 33) % N;
        CHECK((find(&t, &items[i]) == &items[i]) == in[i]);
        if (in[i])
            cfxi_ir_table_remove(&t, items[i].hash, &items[i]);
        else
            REQUIRE(add(&t, &items[i], &a));
        in[i] = !in[i];
        live += in[i] ? 1 : (size_t)-1;
        if (!CHECK_INT_EQ(live, t.size))
            break;
    }
    size_t at = 0;
    size_t seen = 0;
    for (item *i; (i = cfxi_ir_table_next(&t, &at)) != NULL; seen++)
        CHECK(in[i->key]);
    CHECK_INT_EQ(live, seen);
    CHECK(t.capacity <= 2048); /* what was removed makes room again */
    cfxi_ir_table_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(random_operations) { random_operations(UINT32_MAX); }
TEST(random_operations_that_collide) { random_operations(3); }

TEST(empty_table)
{
    cfxi_table t = {0};
    item i = {1, 1};
    size_t at = 0;
    CHECK(!find(&t, &i));
    CHECK(!cfxi_ir_table_next(&t, &at));
    cfxi_ir_table_free(&t, NULL);
}

/* Adding and removing for ever neither grows the table nor fills it with what is gone. */
TEST(churn_is_flat)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_table t = {0};
    static item items[4096];
    for (unsigned k = 0; k < 200000; k++) {
        item *i = &items[k % 4096];
        *i = (item){k, (uint32_t)cfxi_base_hash_bytes(&k, sizeof k)};
        REQUIRE(add(&t, i, &a));
        cfxi_ir_table_remove(&t, i->hash, i);
    }
    CHECK_INT_EQ(8, t.capacity);
    cfxi_ir_table_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(reserve_survives_failure)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_table t = {0};
    static item items[100];
    for (unsigned k = 0; k < 100; k++)
        items[k] = (item){k, k};
    for (unsigned k = 0; k < 6; k++)
        REQUIRE(add(&t, &items[k], &a));
    ta.fail_at = ta.count;
    CHECK(!add(&t, &items[6], &a));
    for (unsigned k = 0; k < 6; k++)
        CHECK(find(&t, &items[k]) == &items[k]);
    cfxi_ir_table_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(presize_makes_room)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_table t = {0};
    static item items[1000];
    REQUIRE(cfxi_ir_table_presize(&t, 1000, &a));
    for (unsigned k = 0; k < 1000; k++) {
        items[k] = (item){k, k * 2654435761u};
        REQUIRE(add(&t, &items[k], &a));
    }
    CHECK_INT_EQ(1, ta.count);
    cfxi_ir_table_free(&t, &a);
    test_alloc_check(&ta);
}
