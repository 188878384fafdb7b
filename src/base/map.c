/* map.c - a map with pointers as keys: open addressing over pairs of a key and a value.
 *
 * What is removed leaves no trace: the entries behind it move up, so a map that many keys come to
 * and leave stays as small as it ever had to be.
 */
#include "base_impl.h"

typedef struct map_entry {
    const void *key;
    char value[];
} map_entry;

enum { LEAST_CAPACITY = 16 };

static size_t entry_size(size_t value_size) { return sizeof(map_entry) + value_size; }

static map_entry *entry_at(const cfxi_hash_map *map, size_t i, size_t value_size)
{
    return (map_entry *)((char *)map->entries + i * entry_size(value_size));
}

/* Where `key` is, or the free place where it belongs. */
static size_t place_of(const cfxi_hash_map *map, const void *key, size_t value_size)
{
    const size_t mask = map->capacity - 1;
    size_t i = cfxi_base_hash_pointer(key) & mask;
    for (const map_entry *e; (e = entry_at(map, i, value_size))->key && e->key != key;)
        i = (i + 1) & mask;
    return i;
}

void *cfxi_base_map_look(const cfxi_hash_map *map, const void *key, size_t value_size)
{
    map_entry *e = entry_at(map, place_of(map, key, value_size), value_size);
    return e->key ? e->value : NULL;
}

static bool grow(cfxi_hash_map *map, size_t capacity, size_t value_size,
                 const cfx_allocator *allocator)
{
    cfxi_hash_map more = {.n = map->n, .capacity = capacity};
    const size_t each = entry_size(value_size);
    size_t bytes;
    if (cfxi_base_mul_size(capacity, each, 0, &bytes))
        more.entries = cfxi_base_alloc(allocator, bytes);
    if (!more.entries)
        return false;
    memset(more.entries, 0, bytes);
    for (size_t i = 0; i < map->capacity; i++) {
        const map_entry *e = entry_at(map, i, value_size);
        if (e->key)
            memcpy(entry_at(&more, place_of(&more, e->key, value_size), value_size), e, each);
    }
    cfxi_base_map_free(map, value_size, allocator);
    *map = more;
    return true;
}

bool cfxi_base_map_reserve(cfxi_hash_map *map, size_t more, size_t value_size,
                           const cfx_allocator *allocator)
{
    size_t capacity = map->capacity ? map->capacity : LEAST_CAPACITY;
    size_t needed;
    if (!cfxi_base_mul_size(more, 1, map->n, &needed) || needed > SIZE_MAX / 4)
        return false;
    while (needed > capacity / 2)
        capacity *= 2;
    return capacity == map->capacity || grow(map, capacity, value_size, allocator);
}

void *cfxi_base_map_add(cfxi_hash_map *map, const void *key, size_t value_size,
                        const cfx_allocator *allocator)
{
    void *there = cfxi_base_map_find(map, key, value_size);
    if (there)
        return there;
    if (2 * (map->n + 1) > map->capacity && !cfxi_base_map_reserve(map, 1, value_size, allocator))
        return NULL;
    map_entry *e = entry_at(map, place_of(map, key, value_size), value_size);
    e->key = key;
    map->n++;
    return e->value;
}

void cfxi_base_map_remove(cfxi_hash_map *map, const void *key, size_t value_size)
{
    const size_t mask = map->capacity - 1;
    if (!cfxi_base_map_find(map, key, value_size))
        return;
    size_t gap = place_of(map, key, value_size);
    for (size_t i = gap;;) {
        i = (i + 1) & mask;
        const map_entry *e = entry_at(map, i, value_size);
        if (!e->key)
            break;
        const size_t home = cfxi_base_hash_pointer(e->key) & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;  /* a search for it does not pass the gap */
        memcpy(entry_at(map, gap, value_size), e, entry_size(value_size));
        gap = i;
    }
    memset(entry_at(map, gap, value_size), 0, entry_size(value_size));
    map->n--;
}

void *cfxi_base_map_next(const cfxi_hash_map *map, size_t *at, size_t value_size)
{
    while (*at < map->capacity) {
        map_entry *e = entry_at(map, (*at)++, value_size);
        if (e->key)
            return e->value;
    }
    return NULL;
}

void cfxi_base_map_free(cfxi_hash_map *map, size_t value_size, const cfx_allocator *allocator)
{
    cfxi_base_free(allocator, map->entries, map->capacity * entry_size(value_size));
    *map = (cfxi_hash_map){0};
}

/* ---- values that are pointers -------------------------------------------------------------- */

bool cfxi_base_pointers_set(cfxi_pointers *map, const void *key, void *value,
                            const cfx_allocator *allocator)
{
    if (!value) {
        cfxi_base_map_remove(map, key, sizeof value);
        return true;
    }
    void **place = cfxi_base_map_add(map, key, sizeof value, allocator);
    if (place)
        *place = value;
    return place != NULL;
}

void cfxi_base_pointers_free_all(cfxi_pointers *map, size_t size, const cfx_allocator *allocator)
{
    size_t at = 0;
    for (void *value; (value = cfxi_base_pointers_next(map, &at)) != NULL;)
        cfxi_base_free(allocator, value, size);
    cfxi_base_pointers_free(map, allocator);
}
