/* pointers.c - a map of pointers to pointers. */
#include "evaluate_impl.h"

static size_t find(const cfxi_pointers *map, const void *key)
{
    size_t i = cfxi_hash_pointer(key);
    for (;; i++)
        if (!map->keys[i & (map->capacity - 1)] || map->keys[i & (map->capacity - 1)] == key)
            return i & (map->capacity - 1);
}

void *cfxi_pointers_get(const cfxi_pointers *map, const void *key)
{
    return map->n > 0 ? map->values[find(map, key)] : NULL;
}

static bool grow(cfxi_pointers *map, const cfx_allocator *allocator)
{
    cfxi_pointers more = {.n = map->n, .capacity = map->capacity ? 2 * map->capacity : 16};
    const size_t bytes = more.capacity * sizeof(void *);
    more.keys = cfxi_alloc(allocator, bytes);
    more.values = more.keys ? cfxi_alloc(allocator, bytes) : NULL;
    if (!more.values) {
        cfxi_free(allocator, more.keys, bytes);
        return false;
    }
    memset(more.keys, 0, bytes);
    memset(more.values, 0, bytes);
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->keys[i])
            continue;
        const size_t at = find(&more, map->keys[i]);
        more.keys[at] = map->keys[i];
        more.values[at] = map->values[i];
    }
    cfxi_pointers_free(map, allocator);
    *map = more;
    return true;
}

/* What is taken out keeps its key: maps live for one evaluation, and are small. */
bool cfxi_pointers_set(cfxi_pointers *map, const void *key, void *value,
                       const cfx_allocator *allocator)
{
    if (2 * (map->n + 1) > map->capacity && !grow(map, allocator))
        return false;
    const size_t at = find(map, key);
    map->n += !map->keys[at];
    map->keys[at] = key;
    map->values[at] = value;
    return true;
}

void cfxi_pointers_free(cfxi_pointers *map, const cfx_allocator *allocator)
{
    cfxi_free(allocator, map->keys, map->capacity * sizeof(void *));
    cfxi_free(allocator, map->values, map->capacity * sizeof(void *));
    *map = (cfxi_pointers){0};
}
