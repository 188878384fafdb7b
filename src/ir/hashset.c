/* hashset.c - open addressing over pointers to items that hash themselves. */
#include "graph_impl.h"

static const char tombstone = 0;  /* its address marks a slot whose item was removed */
#define TOMBSTONE ((void *)(uintptr_t)&tombstone)

void *cfxi_table_find(const cfxi_table *t, uint32_t hash, cfxi_same_fn *same, const void *key,
                      size_t size)
{
    if (!t->capacity)
        return NULL;
    size_t mask = t->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        void *item = t->slots[i];
        if (!item)
            return NULL;
        if (item != TOMBSTONE && same(item, key, size))
            return item;
    }
}

bool cfxi_table_reserve(cfxi_table *t, cfxi_hash_fn *hash_of, const cfx_allocator *allocator)
{
    if ((t->used + 1) * 4 <= t->capacity * 3)
        return true;
    size_t capacity = t->capacity ? t->capacity : 8;
    while ((t->size + 1) * 2 > capacity)
        capacity *= 2;
    void **slots = cfxi_alloc(allocator, capacity * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0, capacity * sizeof *slots);
    for (size_t i = 0; i < t->capacity; i++) {
        void *item = t->slots[i];
        if (!item || item == TOMBSTONE)
            continue;
        size_t at = hash_of(item) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = item;
    }
    cfxi_free(allocator, t->slots, t->capacity * sizeof *t->slots);
    *t = (cfxi_table){slots, t->size, t->size, capacity};
    return true;
}

bool cfxi_table_presize(cfxi_table *t, size_t n, const cfx_allocator *allocator)
{
    size_t capacity = 8;
    while (n * 2 > capacity)
        capacity *= 2;
    t->slots = cfxi_alloc(allocator, capacity * sizeof *t->slots);
    if (!t->slots)
        return false;
    memset(t->slots, 0, capacity * sizeof *t->slots);
    t->capacity = capacity;
    return true;
}

void cfxi_table_insert(cfxi_table *t, uint32_t hash, void *item)
{
    size_t mask = t->capacity - 1;
    size_t i = hash & mask;
    while (t->slots[i] && t->slots[i] != TOMBSTONE)
        i = (i + 1) & mask;
    t->used += t->slots[i] == NULL;
    t->size++;
    t->slots[i] = item;
}

void cfxi_table_remove(cfxi_table *t, uint32_t hash, const void *item)
{
    size_t mask = t->capacity - 1;
    for (size_t i = hash & mask; t->slots[i]; i = (i + 1) & mask) {
        if (t->slots[i] != item)
            continue;
        t->slots[i] = TOMBSTONE;
        t->size--;
        return;
    }
}

void cfxi_table_free(cfxi_table *t, const cfx_allocator *allocator)
{
    cfxi_free(allocator, t->slots, t->capacity * sizeof *t->slots);
    *t = (cfxi_table){0};
}

void *cfxi_table_next(const cfxi_table *t, size_t *at)
{
    while (*at < t->capacity) {
        void *item = t->slots[(*at)++];
        if (item && item != TOMBSTONE)
            return item;
    }
    return NULL;
}
