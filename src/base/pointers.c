/* pointers.c - a map of pointers to pointers: open addressing over pairs. */
#include "base_impl.h"

struct cfxi_pair {
    const void *key;  /* NULL: free */
    void *value;      /* NULL: taken out again; the pair goes when the map grows */
};

/* The pair of `key`, or the free one where it belongs. */
static struct cfxi_pair *pair_of(const cfxi_pointers *map, const void *key)
{
    const size_t mask = map->capacity - 1;
    size_t i = cfxi_base_hash_pointer(key) & mask;
    while (map->pairs[i].key && map->pairs[i].key != key)
        i = (i + 1) & mask;
    return &map->pairs[i];
}

void *cfxi_base_pointers_look(const cfxi_pointers *map, const void *key)
{
    return pair_of(map, key)->value;
}

void *cfxi_base_pointers_next(const cfxi_pointers *map, size_t *at)
{
    while (*at < map->capacity) {
        void *value = map->pairs[(*at)++].value;
        if (value)
            return value;
    }
    return NULL;
}

/* Makes room for one more; what was taken out is forgotten. */
static bool grow(cfxi_pointers *map, const cfx_allocator *allocator)
{
    cfxi_pointers more = {.capacity = 16};
    size_t live = 0;
    size_t bytes;
    for (size_t at = 0; cfxi_base_pointers_next(map, &at);)
        live++;
    while (3 * (live + 1) > more.capacity)
        more.capacity *= 2;
    if (cfxi_base_mul_size(more.capacity, sizeof *more.pairs, 0, &bytes))
        more.pairs = cfxi_base_alloc(allocator, bytes);
    if (!more.pairs)
        return false;
    memset(more.pairs, 0, bytes);
    for (size_t i = 0; i < map->capacity; i++)
        if (map->pairs[i].value)
            *pair_of(&more, map->pairs[i].key) = map->pairs[i];
    more.n = live;
    cfxi_base_pointers_free(map, allocator);
    *map = more;
    return true;
}

bool cfxi_base_pointers_set(cfxi_pointers *map, const void *key, void *value,
                            const cfx_allocator *allocator)
{
    struct cfxi_pair *pair = map->n > 0 ? pair_of(map, key) : NULL;
    if (!pair || !pair->key) {
        if (!value)
            return true;
        if (2 * (map->n + 1) > map->capacity && !grow(map, allocator))
            return false;
        pair = pair_of(map, key);
        map->n++;
    }
    *pair = (struct cfxi_pair){key, value};
    return true;
}

void cfxi_base_pointers_free(cfxi_pointers *map, const cfx_allocator *allocator)
{
    cfxi_base_free(allocator, map->pairs, map->capacity * sizeof *map->pairs);
    *map = (cfxi_pointers){0};
}

void cfxi_base_pointers_free_all(cfxi_pointers *map, size_t size, const cfx_allocator *allocator)
{
    size_t at = 0;
    for (void *value; (value = cfxi_base_pointers_next(map, &at)) != NULL;)
        cfxi_base_free(allocator, value, size);
    cfxi_base_pointers_free(map, allocator);
}
