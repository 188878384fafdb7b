/* hashset.c - open addressing over pointers to items that hash themselves.
 *
 * Items are aligned to 8 bytes, so three bits of a slot are free: they hold bits of the item's hash
 * that its place in the table does not tell. A search looks at one in eight of the items that it
 * passes by, and each of those looks would be a cache miss.
 */
#include "graph_impl.h"

enum { TAG_BITS = 3, TAG_MASK = (1 << TAG_BITS) - 1, AHEAD = 16 };

static const uint64_t tombstone = 0;  /* its address marks a slot whose item was removed */

static uintptr_t *slots_of(const cfxi_table *t)
{
    return t->slots ? t->slots : (uintptr_t *)(uintptr_t)t->few;
}

size_t cfxi_ir_table_bytes(const cfxi_table *t)
{
    return t->slots ? t->capacity * sizeof *t->slots : 0;
}

static uintptr_t tagged(const void *item, uint32_t hash)
{
    return (uintptr_t)item | (hash >> (32 - TAG_BITS));
}

static void *item_of(uintptr_t slot) { return (void *)(slot & ~(uintptr_t)TAG_MASK); }
static bool is_item(uintptr_t slot) { return slot && slot != (uintptr_t)&tombstone; }

void *cfxi_ir_table_find(const cfxi_table *t, uint32_t hash, cfxi_same_fn *same, const void *key,
                         size_t size)
{
    if (!t->capacity)
        return NULL;
    size_t mask = t->capacity - 1;
    const uintptr_t *slots = slots_of(t);
    uintptr_t tag = tagged(NULL, hash);
    for (size_t i = hash & mask; slots[i]; i = (i + 1) & mask) {
        uintptr_t slot = slots[i];
        if ((slot & TAG_MASK) == tag && is_item(slot) && same(item_of(slot), key, size))
            return item_of(slot);
    }
    return NULL;
}

static void place(uintptr_t *slots, size_t capacity, uint32_t hash, const void *item)
{
    size_t i = hash & (capacity - 1);
    while (slots[i])
        i = (i + 1) & (capacity - 1);
    slots[i] = tagged(item, hash);
}

static bool resize(cfxi_table *t, size_t capacity, cfxi_hash_fn *hash_of,
                   const cfx_allocator *allocator)
{
    size_t bytes;
    uintptr_t *slots = NULL;
    if (capacity == CFXI_FEW_SLOTS && t->capacity == 0) {
        memset(t->few, 0, sizeof t->few);
        t->capacity = capacity;
        return true;
    }
    if (cfxi_base_mul_size(capacity, sizeof *slots, 0, &bytes))
        slots = cfxi_base_alloc(allocator, bytes);
    if (!slots)
        return false;
    memset(slots, 0, bytes);
    const uintptr_t *old = slots_of(t);
    for (size_t i = 0; i < t->capacity; i++) {
        void *item = is_item(old[i]) ? item_of(old[i]) : NULL;
        if (i + AHEAD < t->capacity)  /* items lie all over memory */
            __builtin_prefetch(item_of(old[i + AHEAD]));
        if (item)
            place(slots, capacity, hash_of(item), item);
    }
    cfxi_base_free(allocator, t->slots, cfxi_ir_table_bytes(t));
    t->slots = slots;
    t->used = t->size;
    t->capacity = capacity;
    return true;
}

bool cfxi_ir_table_reserve(cfxi_table *t, cfxi_hash_fn *hash_of, const cfx_allocator *allocator)
{
    if ((t->used + 1) * 4 <= t->capacity * 3)
        return true;
    size_t capacity = t->capacity ? t->capacity : CFXI_FEW_SLOTS;
    while ((t->size + 1) * 2 > capacity)
        capacity *= 2;
    return resize(t, capacity, hash_of, allocator);
}

bool cfxi_ir_table_presize(cfxi_table *t, size_t n, const cfx_allocator *allocator)
{
    size_t capacity = CFXI_FEW_SLOTS;
    while ((n + 1) * 4 > capacity * 3)
        capacity *= 2;
    return resize(t, capacity, NULL, allocator);
}

void cfxi_ir_table_insert(cfxi_table *t, uint32_t hash, void *item)
{
    size_t mask = t->capacity - 1;
    size_t i = hash & mask;
    uintptr_t *slots = slots_of(t);
    while (is_item(slots[i]))
        i = (i + 1) & mask;
    t->used += slots[i] == 0;
    t->size++;
    slots[i] = tagged(item, hash);
}

void cfxi_ir_table_remove(cfxi_table *t, uint32_t hash, const void *item)
{
    size_t mask = t->capacity - 1;
    uintptr_t *slots = slots_of(t);
    for (size_t i = hash & mask; slots[i]; i = (i + 1) & mask) {
        if (slots[i] != tagged(item, hash))
            continue;
        slots[i] = (uintptr_t)&tombstone;
        t->size--;
        return;
    }
}

void cfxi_ir_table_free(cfxi_table *t, const cfx_allocator *allocator)
{
    cfxi_base_free(allocator, t->slots, cfxi_ir_table_bytes(t));
    *t = (cfxi_table){0};
}

void *cfxi_ir_table_next(const cfxi_table *t, size_t *at)
{
    while (*at < t->capacity) {
        uintptr_t slot = slots_of(t)[(*at)++];
        if (is_item(slot))
            return item_of(slot);
    }
    return NULL;
}
