/* set.c - open addressing over items that hash themselves, or over numbers of entries. */
#include "base_impl.h"

enum { AHEAD = 16, REMOVED = CFXI_TAG_MASK };

static uintptr_t *slots_of(cfxi_hash_set *set) { return set->slots ? set->slots : set->few; }

size_t cfxi_base_set_bytes(const cfxi_hash_set *set)
{
    return set->slots ? set->capacity * sizeof *set->slots : 0;
}

static uintptr_t tagged(const void *item, uint32_t hash)
{
    return (uintptr_t)item | (hash >> (32 - CFXI_TAG_BITS));
}

static void *item_of(uintptr_t slot) { return (void *)(slot & ~(uintptr_t)CFXI_TAG_MASK); }

/* How the items hash: each by itself, or by what stands in their entries. */
typedef struct hashing {
    cfxi_hash_fn *hash_of;
    const char *first;
    size_t stride;
} hashing;

static uint32_t hash_item(const hashing *by, const void *item)
{
    uint32_t hash;
    if (by->hash_of)
        return by->hash_of(item);
    memcpy(&hash, by->first + cfxi_base_set_number(item) * by->stride, sizeof hash);
    return hash;
}

static void place(uintptr_t *slots, size_t capacity, uint32_t hash, const void *item)
{
    size_t i = hash & (capacity - 1);
    while (slots[i])
        i = (i + 1) & (capacity - 1);
    slots[i] = tagged(item, hash);
}

static bool resize(cfxi_hash_set *set, size_t capacity, const hashing *by,
                   const cfx_allocator *allocator)
{
    size_t bytes;
    uintptr_t *slots = NULL;
    if (capacity == CFXI_FEW_SLOTS && set->capacity == 0) {
        memset(set->few, 0, sizeof set->few);
        set->capacity = capacity;
        return true;
    }
    if (cfxi_base_mul_size(capacity, sizeof *slots, 0, &bytes))
        slots = cfxi_base_alloc(allocator, bytes);
    if (!slots)
        return false;
    memset(slots, 0, bytes);
    const uintptr_t *old = slots_of(set);
    for (size_t i = 0; i < set->capacity; i++) {
        void *item = item_of(old[i]);
        if (i + AHEAD < set->capacity)  /* items lie all over memory */
            __builtin_prefetch(item_of(old[i + AHEAD]));
        if (item)
            place(slots, capacity, hash_item(by, item), item);
    }
    cfxi_base_free(allocator, set->slots, cfxi_base_set_bytes(set));
    set->slots = slots;
    set->used = set->size;
    set->capacity = capacity;
    return true;
}

static bool reserve(cfxi_hash_set *set, const hashing *by, const cfx_allocator *allocator)
{
    if ((set->used + 1) * 4 <= set->capacity * 3)
        return true;
    size_t capacity = set->capacity ? set->capacity : CFXI_FEW_SLOTS;
    while ((set->size + 1) * 2 > capacity)
        capacity *= 2;
    return resize(set, capacity, by, allocator);
}

bool cfxi_base_set_reserve(cfxi_hash_set *set, cfxi_hash_fn *hash_of,
                           const cfx_allocator *allocator)
{
    const hashing by = {.hash_of = hash_of};
    return reserve(set, &by, allocator);
}

bool cfxi_base_set_reserve_numbers(cfxi_hash_set *set, const uint32_t *hashes, size_t stride,
                                   const cfx_allocator *allocator)
{
    const hashing by = {.first = (const char *)hashes, .stride = stride};
    return set->used < SIZE_MAX >> (CFXI_TAG_BITS + 1) && reserve(set, &by, allocator);
}

bool cfxi_base_set_presize(cfxi_hash_set *set, size_t n, const cfx_allocator *allocator)
{
    size_t capacity = CFXI_FEW_SLOTS;
    if (n > SIZE_MAX / 16)
        return false;
    while ((n + 1) * 4 > capacity * 3)
        capacity *= 2;
    return resize(set, capacity, NULL, allocator);
}

void cfxi_base_set_insert(cfxi_hash_set *set, uint32_t hash, const void *item)
{
    const size_t mask = set->capacity - 1;
    size_t i = hash & mask;
    uintptr_t *slots = slots_of(set);
    while (item_of(slots[i]))
        i = (i + 1) & mask;
    set->used += slots[i] == 0;
    set->size++;
    slots[i] = tagged(item, hash);
}

void cfxi_base_set_remove(cfxi_hash_set *set, uint32_t hash, const void *item)
{
    const size_t mask = set->capacity - 1;
    uintptr_t *slots = slots_of(set);
    for (size_t i = hash & mask; slots[i]; i = (i + 1) & mask) {
        if (slots[i] != tagged(item, hash))
            continue;
        slots[i] = REMOVED;
        set->size--;
        return;
    }
}

void cfxi_base_set_clear(cfxi_hash_set *set)
{
    memset(slots_of(set), 0, set->capacity * sizeof *set->slots);
    set->size = set->used = 0;
}

void cfxi_base_set_free(cfxi_hash_set *set, const cfx_allocator *allocator)
{
    cfxi_base_free(allocator, set->slots, cfxi_base_set_bytes(set));
    *set = (cfxi_hash_set){0};
}

void *cfxi_base_set_next(const cfxi_hash_set *set, size_t *at)
{
    while (*at < set->capacity) {
        void *item = item_of(cfxi_base_set_slots(set)[(*at)++]);
        if (item)
            return item;
    }
    return NULL;
}
