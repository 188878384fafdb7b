/* keyed.c - hash tables of items that are found by an address. */
#include "capture_impl.h"

static uint32_t hash_of(const void *item)
{
    return cfxi_hash_pointer(((const cfxi_keyed *)item)->key);
}

static bool is_same(const void *item, const void *key, size_t size)
{
    (void)size;
    return ((const cfxi_keyed *)item)->key == key;
}

void *cfxi_keyed_find(const cfxi_table *t, const void *key)
{
    return cfxi_table_find(t, cfxi_hash_pointer(key), is_same, key, 0);
}

bool cfxi_keyed_add(cfxi_table *t, void *item, const cfx_allocator *allocator)
{
    if (!cfxi_table_reserve(t, hash_of, allocator))
        return false;
    cfxi_table_insert(t, hash_of(item), item);
    return true;
}

void cfxi_keyed_free(cfxi_table *t, size_t size, const cfx_allocator *allocator)
{
    size_t at = 0;
    for (void *item; (item = cfxi_table_next(t, &at)) != NULL;)
        cfxi_free(allocator, item, size);
    cfxi_table_free(t, allocator);
}
