/* map_impl.h - the hash map and the hash set that every room uses: open addressing, linear probing.
 *
 * cfxi_hash_map has pointers as keys and keeps its values in the table. cfxi_hash_set holds items
 * that hash and compare themselves, or the numbers of entries in an array: an array with a set of
 * numbers is a map that keeps the order of insertion.
 */
#ifndef CFXI_BASE_MAP_IMPL_H
#define CFXI_BASE_MAP_IMPL_H

#include <cfx/base.h>

/* ---- hashing (alloc.c) --------------------------------------------------------------------- */

/* The same in every process: hashes end up in files and golden tests. */
uint64_t cfxi_base_hash_bytes(const void *data, size_t size);

/* Names that a file chose are hashed with a key that it cannot know: see keyed_hash.c. */
typedef struct cfxi_hash_key {
    uint64_t a, b;
} cfxi_hash_key;
/* A new key for a table; `table` is any address that belongs to it. */
cfxi_hash_key cfxi_base_hash_key_new(const void *table);
uint32_t cfxi_base_hash_keyed(const cfxi_hash_key *key, const void *data, size_t size);

static inline uint64_t cfxi_base_hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ (h >> 32);
}

static inline uint32_t cfxi_base_hash_pointer(const void *p)
{
    return (uint32_t)(((uint64_t)(uintptr_t)p >> 3) * 0x9e3779b97f4a7c15u >> 32);
}

/* ---- maps (map.c) -------------------------------------------------------------------------- */

/* A map from pointers to values of one size, which is the same in all calls for a map and a
 * multiple of 8. {0} is an empty map; NULL is not a key. */
typedef struct cfxi_hash_map {
    void *entries;    /* of a key and its value; a key of NULL is free */
    size_t n;
    size_t capacity;  /* a power of two, or 0; at most half of it is used */
} cfxi_hash_map;

void *cfxi_base_map_look(const cfxi_hash_map *map, const void *key, size_t value_size);
/* The value of `key`, or NULL. It moves when the map changes. */
static inline void *cfxi_base_map_find(const cfxi_hash_map *map, const void *key, size_t value_size)
{
    return map->n > 0 ? cfxi_base_map_look(map, key, value_size) : NULL;
}
/* The value of `key`, which is all zeros if it is new; NULL if memory is out: the map is then as it
 * was. */
void *cfxi_base_map_add(cfxi_hash_map *map, const void *key, size_t value_size,
                        const cfx_allocator *allocator);
/* Makes room for `more` further keys: adding them cannot fail. False if memory is out. */
bool cfxi_base_map_reserve(cfxi_hash_map *map, size_t more, size_t value_size,
                           const cfx_allocator *allocator);
void cfxi_base_map_remove(cfxi_hash_map *map, const void *key, size_t value_size);
/* Values in no order, from *at = 0; NULL at the end. The map must not change meanwhile. */
void *cfxi_base_map_next(const cfxi_hash_map *map, size_t *at, size_t value_size);
void cfxi_base_map_free(cfxi_hash_map *map, size_t value_size, const cfx_allocator *allocator);

/* Maps whose values are pointers. NULL stands for a key that is not there. */
typedef cfxi_hash_map cfxi_pointers;

static inline void *cfxi_base_pointers_get(const cfxi_pointers *map, const void *key)
{
    void **value = cfxi_base_map_find(map, key, sizeof(void *));
    return value ? *value : NULL;
}
/* Puts a value in; NULL takes it out, which never fails. False if memory is out. */
bool cfxi_base_pointers_set(cfxi_pointers *map, const void *key, void *value,
                            const cfx_allocator *allocator);
/* Values in no order, from *at = 0; NULL at the end. The map must not change meanwhile. */
static inline void *cfxi_base_pointers_next(const cfxi_pointers *map, size_t *at)
{
    void **value = cfxi_base_map_next(map, at, sizeof(void *));
    return value ? *value : NULL;
}
static inline void cfxi_base_pointers_free(cfxi_pointers *map, const cfx_allocator *allocator)
{
    cfxi_base_map_free(map, sizeof(void *), allocator);
}
/* And the values, each of `size` bytes. */
void cfxi_base_pointers_free_all(cfxi_pointers *map, size_t size, const cfx_allocator *allocator);

/* ---- sets (set.c) -------------------------------------------------------------------------- */

/* A set of pointers to items that know how to hash and compare themselves. {0} is an empty set; a
 * small one allocates nothing.
 *
 * Items are aligned to 8 bytes, so three bits of a slot are free: they hold bits of the item's hash
 * that its place in the table does not tell. A search looks at one in eight of the items that it
 * passes by, and each of those looks would be a cache miss. */
enum { CFXI_FEW_SLOTS = 8, CFXI_TAG_BITS = 3, CFXI_TAG_MASK = (1 << CFXI_TAG_BITS) - 1 };
typedef struct cfxi_hash_set {
    uintptr_t *slots; /* an item and its tag; 0: free; CFXI_TAG_MASK: removed. NULL: `few` */
    size_t size;      /* items */
    size_t used;      /* slots that are not free */
    size_t capacity;  /* a power of two, or 0 */
    uintptr_t few[CFXI_FEW_SLOTS];
} cfxi_hash_set;

/* Whether the item is the one that `key` (and `size`, for the use of the caller) describes. */
typedef bool cfxi_same_fn(const void *item, const void *key, size_t size);
typedef uint32_t cfxi_hash_fn(const void *item);

static inline const uintptr_t *cfxi_base_set_slots(const cfxi_hash_set *set)
{
    return set->slots ? set->slots : set->few;
}

/* The item for which `same` holds, or NULL. Inline, so that `same` is. */
static inline void *cfxi_base_set_find(const cfxi_hash_set *set, uint32_t hash, cfxi_same_fn *same,
                                       const void *key, size_t size)
{
    const size_t mask = set->capacity - 1;
    const uintptr_t *slots = cfxi_base_set_slots(set);
    const uintptr_t tag = hash >> (32 - CFXI_TAG_BITS);
    if (!set->capacity)
        return NULL;
    for (size_t i = hash & mask; slots[i]; i = (i + 1) & mask) {
        void *item = (void *)(slots[i] & ~(uintptr_t)CFXI_TAG_MASK);
        if ((slots[i] & CFXI_TAG_MASK) == tag && item && same(item, key, size))
            return item;
    }
    return NULL;
}
/* Makes room for one more; false if memory is out. `hash_of` re-hashes the items. */
bool cfxi_base_set_reserve(cfxi_hash_set *set, cfxi_hash_fn *hash_of,
                           const cfx_allocator *allocator);
/* Makes room for `n` items in an empty set. */
bool cfxi_base_set_presize(cfxi_hash_set *set, size_t n, const cfx_allocator *allocator);
/* Adds an item that is not there; there must be room. */
void cfxi_base_set_insert(cfxi_hash_set *set, uint32_t hash, const void *item);
/* Takes out this very item. */
void cfxi_base_set_remove(cfxi_hash_set *set, uint32_t hash, const void *item);
void cfxi_base_set_clear(cfxi_hash_set *set);  /* the room stays */
void cfxi_base_set_free(cfxi_hash_set *set, const cfx_allocator *allocator);
size_t cfxi_base_set_bytes(const cfxi_hash_set *set);  /* that it has allocated */
/* Items in no order, from *at = 0; NULL at the end. */
void *cfxi_base_set_next(const cfxi_hash_set *set, size_t *at);

/* The number of an array's entry as an item, and back. */
static inline void *cfxi_base_set_item(size_t number)
{
    return (void *)((uintptr_t)(number + 1) << CFXI_TAG_BITS);
}
static inline size_t cfxi_base_set_number(const void *item)
{
    return ((uintptr_t)item >> CFXI_TAG_BITS) - 1;
}
/* cfxi_base_set_reserve for numbers: `hashes` is the hash in entry 0, and the next one is `stride`
 * bytes behind it. */
bool cfxi_base_set_reserve_numbers(cfxi_hash_set *set, const uint32_t *hashes, size_t stride,
                                   const cfx_allocator *allocator);

#endif
