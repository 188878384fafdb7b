/* set.c - tests of the hash set against a plain list of flags. */
#include "test_alloc.h"

#include "base/base_impl.h"

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

static void *find(const cfxi_hash_set *t, const item *i)
{
    return cfxi_base_set_find(t, i->hash, same, &i->key, 0);
}

static bool add(cfxi_hash_set *t, item *i, const cfx_allocator *a)
{
    if (!cfxi_base_set_reserve(t, hash_of, a))
        return false;
    cfxi_base_set_insert(t, i->hash, i);
    return true;
}

static void random_operations(uint32_t hash_mask)
{
    enum { N = 300 };
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    static item items[N];
    bool in[N] = {false};
    cfxi_hash_set t = {0};
    size_t live = 0;
    uint64_t seed = 1;
    for (unsigned i = 0; i < N; i++)
        items[i] = (item){i, (uint32_t)cfxi_base_hash_bytes(&i, sizeof i) & hash_mask};
    for (int step = 0; step < 60000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const unsigned i = (unsigned)(seed >> 33) % N;
        CHECK((find(&t, &items[i]) == &items[i]) == in[i]);
        if (in[i])
            cfxi_base_set_remove(&t, items[i].hash, &items[i]);
        else
            REQUIRE(add(&t, &items[i], &a));
        in[i] = !in[i];
        live += in[i] ? 1 : (size_t)-1;
        if (!CHECK_INT_EQ(live, t.size))
            break;
    }
    size_t at = 0;
    size_t seen = 0;
    for (item *i; (i = cfxi_base_set_next(&t, &at)) != NULL; seen++)
        CHECK(in[i->key]);
    CHECK_INT_EQ(live, seen);
    CHECK(t.capacity <= 2048); /* what was removed makes room again */
    cfxi_base_set_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(random_operations) { random_operations(UINT32_MAX); }
TEST(random_operations_that_collide) { random_operations(3); }

TEST(empty_table)
{
    cfxi_hash_set t = {0};
    item i = {1, 1};
    size_t at = 0;
    CHECK(!find(&t, &i));
    CHECK(!cfxi_base_set_next(&t, &at));
    cfxi_base_set_free(&t, NULL);
}

/* Adding and removing for ever neither grows the table nor fills it with what is gone. */
TEST(churn_is_flat)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_hash_set t = {0};
    static item items[4096];
    for (unsigned k = 0; k < 200000; k++) {
        item *i = &items[k % 4096];
        *i = (item){k, (uint32_t)cfxi_base_hash_bytes(&k, sizeof k)};
        REQUIRE(add(&t, i, &a));
        cfxi_base_set_remove(&t, i->hash, i);
    }
    CHECK_INT_EQ(8, t.capacity);
    cfxi_base_set_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(reserve_survives_failure)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_hash_set t = {0};
    static item items[100];
    for (unsigned k = 0; k < 100; k++)
        items[k] = (item){k, k};
    for (unsigned k = 0; k < 6; k++)
        REQUIRE(add(&t, &items[k], &a));
    ta.fail_at = ta.count;
    CHECK(!add(&t, &items[6], &a));
    for (unsigned k = 0; k < 6; k++)
        CHECK(find(&t, &items[k]) == &items[k]);
    cfxi_base_set_free(&t, &a);
    test_alloc_check(&ta);
}

TEST(presize_makes_room)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfxi_hash_set t = {0};
    static item items[1000];
    REQUIRE(cfxi_base_set_presize(&t, 1000, &a));
    for (unsigned k = 0; k < 1000; k++) {
        items[k] = (item){k, k * 2654435761u};
        REQUIRE(add(&t, &items[k], &a));
    }
    CHECK_INT_EQ(1, ta.count);
    cfxi_base_set_free(&t, &a);
    test_alloc_check(&ta);
}

/* ---- numbers of entries -------------------------------------------------------------------- */

typedef struct numbered {
    uint32_t hash;
    char text[12];
} numbered;

enum { ENTRIES = 500 };

typedef struct array {
    numbered *entries;
    size_t n;
    cfxi_hash_set numbers;
} array;

typedef struct wanted {
    const numbered *entries;
    const char *text;
} wanted;

static bool has_text(const void *p, const void *key, size_t size)
{
    const wanted *w = key;
    (void)size;
    return strcmp(w->entries[cfxi_base_set_number(p)].text, w->text) == 0;
}

static uint32_t hash_text(const char *text)
{
    return (uint32_t)cfxi_base_hash_bytes(text, strlen(text));
}

static size_t number_of(const array *a, const char *text)
{
    const wanted w = {a->entries, text};
    const void *found = cfxi_base_set_find(&a->numbers, hash_text(text), has_text, &w, 0);
    return found ? cfxi_base_set_number(found) : SIZE_MAX;
}

static bool add_text(array *a, size_t i, const cfx_allocator *allocator)
{
    numbered *e = &a->entries[a->n];
    if (!cfxi_base_set_reserve_numbers(&a->numbers, &a->entries->hash, sizeof *e, allocator))
        return false;
    snprintf(e->text, sizeof e->text, "%zu", i);
    e->hash = hash_text(e->text);
    cfxi_base_set_insert(&a->numbers, e->hash, cfxi_base_set_item(a->n++));
    return true;
}

static cfx_status fill_numbers(const cfx_allocator *allocator, void *arg)
{
    static numbered entries[ENTRIES];
    array a = {.entries = entries};
    cfx_status status = CFX_OK;
    (void)arg;
    for (size_t i = 0; i < ENTRIES && status == CFX_OK; i++)
        status = add_text(&a, i, allocator) ? CFX_OK : CFX_E_NOMEM;
    for (size_t i = 0; i < a.n; i++)
        CHECK_INT_EQ(i, number_of(&a, entries[i].text));
    CHECK_INT_EQ(SIZE_MAX, number_of(&a, "none"));
    cfxi_base_set_free(&a.numbers, allocator);
    return status;
}

TEST(numbers_find_entries_of_an_array) { CHECK(test_oom_sweep(fill_numbers, NULL) > 5); }

TEST(a_few_numbers_need_no_memory)
{
    test_alloc ta;
    const cfx_allocator allocator = test_alloc_init(&ta);
    numbered entries[6];
    array a = {.entries = entries};
    for (size_t i = 0; i < 6; i++)
        REQUIRE(add_text(&a, i, &allocator));
    CHECK_INT_EQ(0, ta.count);
    test_alloc_check(&ta);
}

TEST(clearing_keeps_the_room)
{
    test_alloc ta;
    const cfx_allocator allocator = test_alloc_init(&ta);
    static numbered entries[100];
    array a = {.entries = entries};
    for (size_t i = 0; i < 100; i++)
        REQUIRE(add_text(&a, i, &allocator));
    const size_t count = ta.count;
    cfxi_base_set_clear(&a.numbers);
    CHECK_INT_EQ(SIZE_MAX, number_of(&a, "7"));
    a.n = 0;
    for (size_t i = 100; i > 0; i--)
        REQUIRE(add_text(&a, i - 1, &allocator));
    CHECK_INT_EQ(92, number_of(&a, "7"));
    CHECK_INT_EQ(count, ta.count);
    cfxi_base_set_free(&a.numbers, &allocator);
    test_alloc_check(&ta);
}

TEST(a_size_that_overflows_is_out_of_memory)
{
    cfxi_hash_set set = {0};
    CHECK(!cfxi_base_set_presize(&set, SIZE_MAX / 2, NULL));
    CHECK_INT_EQ(0, set.capacity);
}
