/* dict.c - dicts and sets: entries in the order in which they came, and an index over them. */
#include "world_impl.h"

cfx_object *cfxi_world_dict_object(cfxi_world *w, cfxi_type type, cfx_error *err)
{
    return cfxi_world_object_new(w, type, err);
}

void cfxi_world_dict_clear(cfx_object *d)
{
    cfxi_world *w = d->world;
    cfxi_entry *entries = d->as.dict.entries;
    const size_t used = d->as.dict.used;
    const size_t capacity = d->as.dict.capacity;
    cfxi_world_free(w, d->as.dict.slots, d->as.dict.num_slots * sizeof *d->as.dict.slots);
    memset(&d->as.dict, 0, sizeof d->as.dict);
    for (size_t i = 0; i < used; i++) {
        cfxi_world_unref(entries[i].key);
        cfxi_world_unref(entries[i].value);
    }
    cfxi_world_free(w, entries, capacity * sizeof *entries);
}

/* ---- the index ----------------------------------------------------------------------------- */

static void index_entry(cfx_object *d, size_t i)
{
    const size_t mask = d->as.dict.num_slots - 1;
    size_t at = d->as.dict.entries[i].hash & mask;
    while (d->as.dict.slots[at])
        at = (at + 1) & mask;
    d->as.dict.slots[at] = (uint32_t)(i + 1);
}

/* Room for one more: entries that were removed go, and the index is made anew. */
static cfx_status make_room(cfx_object *d, cfx_error *err)
{
    cfxi_world *w = d->world;
    if (d->as.dict.used < d->as.dict.capacity)
        return CFX_OK;
    size_t capacity = 8;
    while (capacity < d->as.dict.n + d->as.dict.n / 2 + 1)
        capacity *= 2;
    if (capacity > UINT32_MAX / 4)
        return cfxi_base_nomem(err);
    cfxi_entry *entries = cfxi_world_alloc(w, capacity * sizeof *entries, err);
    uint32_t *slots = entries ? cfxi_world_alloc(w, capacity * 2 * sizeof *slots, err) : NULL;
    if (!slots) {
        cfxi_world_free(w, entries, capacity * sizeof *entries);
        return CFX_E_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < d->as.dict.used; i++)
        if (d->as.dict.entries[i].key)
            entries[n++] = d->as.dict.entries[i];
    cfxi_world_free(w, d->as.dict.entries, d->as.dict.capacity * sizeof *entries);
    cfxi_world_free(w, d->as.dict.slots, d->as.dict.num_slots * sizeof *slots);
    memset(slots, 0, capacity * 2 * sizeof *slots);
    d->as.dict.entries = entries;
    d->as.dict.slots = slots;
    d->as.dict.used = n;
    d->as.dict.capacity = capacity;
    d->as.dict.num_slots = capacity * 2;
    for (size_t i = 0; i < n; i++)
        index_entry(d, i);
    return CFX_OK;
}

/* *found: the entry of the key, or NULL. */
static cfx_status find(cfx_object *d, cfx_object *key, uint32_t hash, cfxi_entry **found,
                       cfx_error *err)
{
    const size_t mask = d->as.dict.num_slots - 1;
    *found = NULL;
    if (!d->as.dict.num_slots)
        return CFX_OK;
    for (size_t at = hash & mask; d->as.dict.slots[at]; at = (at + 1) & mask) {
        cfxi_entry *e = &d->as.dict.entries[d->as.dict.slots[at] - 1];
        if (!e->key || e->hash != hash)
            continue;
        const int same = e->key == key ? 1 : cfxi_world_equal(d->world, e->key, key, err);
        if (same < 0)
            return err->status;
        if (same) {
            *found = e;
            return CFX_OK;
        }
    }
    return CFX_OK;
}

/* ---- reading and writing ------------------------------------------------------------------- */

cfx_status cfxi_world_dict_find(cfx_object *d, cfx_object *key, cfx_object **value, cfx_error *err)
{
    uint32_t hash;
    cfxi_entry *e;
    *value = NULL;
    CFX_TRY(cfxi_world_hash(d->world, key, &hash, err));
    CFX_TRY(find(d, key, hash, &e, err));
    if (e)
        *value = e->value ? e->value : e->key;
    return CFX_OK;
}

static cfx_status set_hashed(cfx_object *d, cfx_object *key, uint32_t hash, cfx_object *value,
                             cfx_error *err)
{
    cfxi_entry *e;
    CFX_TRY(find(d, key, hash, &e, err));
    if (e) {
        cfx_object *old = e->value;
        e->value = cfxi_world_ref(value);
        cfxi_world_unref(old);
        return CFX_OK;
    }
    CFX_TRY(make_room(d, err));
    d->as.dict.entries[d->as.dict.used] =
        (cfxi_entry){cfxi_world_ref(key), cfxi_world_ref(value), hash};
    index_entry(d, d->as.dict.used++);
    d->as.dict.n++;
    return CFX_OK;
}

cfx_status cfxi_world_dict_set(cfx_object *d, cfx_object *key, cfx_object *value, cfx_error *err)
{
    uint32_t hash;
    CFX_TRY(cfxi_world_hash(d->world, key, &hash, err));
    return set_hashed(d, key, hash, value, err);
}

cfx_status cfxi_world_dict_remove(cfx_object *d, cfx_object *key, cfx_object **removed,
                                  cfx_error *err)
{
    uint32_t hash;
    cfxi_entry *e;
    if (removed)
        *removed = NULL;
    CFX_TRY(cfxi_world_hash(d->world, key, &hash, err));
    CFX_TRY(find(d, key, hash, &e, err));
    if (!e)
        return CFX_OK;
    const cfxi_entry gone = *e;
    e->key = e->value = NULL;
    d->as.dict.n--;
    if (removed)
        *removed = cfxi_world_ref(gone.value ? gone.value : gone.key);
    cfxi_world_unref(gone.key);
    cfxi_world_unref(gone.value);
    return CFX_OK;
}

bool cfxi_world_dict_next(const cfx_object *d, size_t *at, cfx_object **key, cfx_object **value)
{
    for (; *at < d->as.dict.used; ++*at) {
        const cfxi_entry *e = &d->as.dict.entries[*at];
        if (!e->key)
            continue;
        ++*at;
        *key = e->key;
        if (value)
            *value = e->value;
        return true;
    }
    return false;
}

cfx_status cfxi_world_dict_update(cfx_object *d, cfx_object *from, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    for (size_t at = 0; cfxi_world_dict_next(from, &at, &key, &value);)
        CFX_TRY(cfxi_world_dict_set(d, key, value, err));
    return CFX_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

static uint32_t hash_text(const char *text, size_t size)
{
    return (uint32_t)cfxi_base_hash_bytes(text, size);
}

cfx_object *cfxi_world_dict_get(const cfx_object *d, const char *name)
{
    const size_t size = strlen(name);
    if (!d || !d->as.dict.num_slots)
        return NULL;
    const uint32_t hash = hash_text(name, size);
    const size_t mask = d->as.dict.num_slots - 1;
    for (size_t at = hash & mask; d->as.dict.slots[at]; at = (at + 1) & mask) {
        const cfxi_entry *e = &d->as.dict.entries[d->as.dict.slots[at] - 1];
        if (e->key && e->hash == hash && e->key->type == CFXI_TYPE_STR &&
            e->key->as.text.size == size && memcmp(e->key->as.text.data, name, size) == 0)
            return e->value;
    }
    return NULL;
}

cfx_status cfxi_world_dict_drop(cfx_object *d, const char *name, bool *there, cfx_error *err)
{
    cfx_object *key = cfxi_world_str(d->world, name, err);
    cfx_object *old = NULL;
    cfx_status status = key ? cfxi_world_dict_remove(d, key, &old, err) : err->status;
    *there = old != NULL;
    cfxi_world_unref(old);
    cfxi_world_unref(key);
    return status;
}

cfx_status cfxi_world_dict_put(cfx_object *d, const char *name, cfx_object *value, cfx_error *err)
{
    cfx_object *key = cfxi_world_str(d->world, name, err);
    if (!key)
        return CFX_E_NOMEM;
    cfx_status status = set_hashed(d, key, hash_text(name, key->as.text.size), value, err);
    cfxi_world_unref(key);
    return status;
}
