/* named.c - data by name. */
#include "named_impl.h"

typedef struct entry {
    uint32_t hash;
    cfx_datum value;
    char name[];  /* terminated */
} entry;

static entry *entry_at(const cfxi_named *d, size_t i) { return ((entry **)d->entries.data)[i]; }

static uint32_t entry_hash(const void *item) { return ((const entry *)item)->hash; }

static bool same_name(const void *item, const void *key, size_t size)
{
    const entry *e = item;
    return strncmp(e->name, key, size) == 0 && e->name[size] == '\0';
}

static entry *find(const cfxi_named *d, const char *name, uint32_t *hash)
{
    size_t size = strlen(name);
    *hash = cfxi_base_hash_keyed(&d->key, name, size);
    return cfxi_base_set_find(&d->table, *hash, same_name, name, size);
}

cfxi_named cfxi_rt_named_new(const cfx_allocator *allocator)
{
    return (cfxi_named){.allocator = allocator, .key = cfxi_base_hash_key_new(allocator)};
}

cfx_status cfxi_rt_named_set(cfxi_named *d, const char *name, cfx_datum value, cfx_error *err)
{
    uint32_t hash;
    entry *e = find(d, name, &hash);
    if (e) {
        const cfx_datum old = e->value;
        e->value = cfx_datum_retain(value);
        cfx_datum_release(old);
        return CFX_OK;
    }
    size_t size = strlen(name) + 1;
    if (!cfxi_base_set_reserve(&d->table, entry_hash, d->allocator) ||
        !cfxi_base_vec_reserve(&d->entries, 1, sizeof e, d->allocator) ||
        !(e = cfxi_base_alloc(d->allocator, sizeof *e + size)))
        return cfxi_base_nomem(err);
    *e = (entry){.hash = hash, .value = cfx_datum_retain(value)};
    memcpy(e->name, name, size);
    ((entry **)d->entries.data)[d->entries.size++] = e;
    cfxi_base_set_insert(&d->table, hash, e);
    return CFX_OK;
}

cfx_datum cfxi_rt_named_get(const cfxi_named *d, const char *name)
{
    uint32_t hash;
    const entry *e = find(d, name, &hash);
    return e ? e->value : cfx_datum_invalid();
}

const char *cfxi_rt_named_entry(const cfxi_named *d, size_t i, cfx_datum *value)
{
    if (i >= d->entries.size)
        return NULL;
    entry *e = entry_at(d, i);
    if (value)
        *value = e->value;
    return e->name;
}

void cfxi_rt_named_free(cfxi_named *d)
{
    for (size_t i = 0; i < d->entries.size; i++) {
        entry *e = entry_at(d, i);
        cfx_datum_release(e->value);
        cfxi_base_free(d->allocator, e, sizeof *e + strlen(e->name) + 1);
    }
    cfxi_base_set_free(&d->table, d->allocator);
    cfxi_base_vec_free(&d->entries, sizeof(entry *), d->allocator);
}
