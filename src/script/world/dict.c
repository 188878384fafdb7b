/* dict.c - dicts and sets: entries in the order in which they came, and an index over them. */
#include "world_impl.h"

cfx_object *cfxi_world_dict_object(cfxi_world *w, cfxi_type type, cfx_error *err)
{
    return cfxi_world_object_new(w, type, err);
}

static void free_index(cfxi_world *w, cfxi_hash_set *index)
{
    if (index)
        cfxi_base_set_free(index, w->allocator);
    cfxi_world_free(w, index, sizeof *index);
}

void cfxi_world_dict_clear(cfx_object *d)
{
    cfxi_world *w = d->world;
    cfxi_entry *entries = d->as.dict.entries;
    const size_t used = d->as.dict.used;
    const size_t capacity = d->as.dict.capacity;
    d->version++;
    free_index(w, d->as.dict.index);
    memset(&d->as.dict, 0, sizeof d->as.dict);
    for (size_t i = 0; i < used; i++) {
        cfxi_world_unref(entries[i].key);
        cfxi_world_unref(entries[i].value);
    }
    cfxi_world_free(w, entries, capacity * sizeof *entries);
}

/* ---- the index ----------------------------------------------------------------------------- */

/* Twice the room for entries; those that were removed go, so the others get new numbers. */
static cfx_status grow_entries(cfx_object *d, cfx_error *err)
{
    size_t capacity = 8;
    size_t n = 0;
    while (capacity < d->as.dict.n + d->as.dict.n / 2 + 1)
        capacity *= 2;
    if (capacity > UINT32_MAX / 4)
        return cfxi_base_nomem(err);
    cfxi_entry *entries = cfxi_world_alloc(d->world, capacity * sizeof *entries, err);
    if (!entries)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < d->as.dict.used; i++)
        if (d->as.dict.entries[i].key)
            entries[n++] = d->as.dict.entries[i];
    if (n < d->as.dict.used) {
        cfxi_base_set_clear(d->as.dict.index);
        for (size_t i = 0; i < n; i++)
            cfxi_base_set_insert(d->as.dict.index, entries[i].hash, cfxi_base_set_item(i));
    }
    cfxi_world_free(d->world, d->as.dict.entries, d->as.dict.capacity * sizeof *entries);
    d->as.dict.entries = entries;
    d->as.dict.used = n;
    d->as.dict.capacity = capacity;
    return CFX_OK;
}

/* Room for one more entry. */
static cfx_status make_room(cfx_object *d, cfx_error *err)
{
    if (!d->as.dict.index) {
        cfxi_hash_set *index = cfxi_world_alloc(d->world, sizeof *index, err);
        if (!index)
            return CFX_E_NOMEM;
        *index = (cfxi_hash_set){0};
        d->as.dict.index = index;
    }
    if (d->as.dict.used == d->as.dict.capacity)
        CFX_TRY(grow_entries(d, err));
    return cfxi_base_set_reserve_numbers(d->as.dict.index, &d->as.dict.entries->hash,
                                         sizeof *d->as.dict.entries, d->world->allocator)
               ? CFX_OK
               : cfxi_base_nomem(err);
}

typedef struct wanted_key {
    const cfx_object *dict;
    cfx_object *key;
    uint32_t hash;
    bool changed;       /* the dict was, by what compared */
    cfx_status status;
    cfx_error *err;
} wanted_key;

/* Comparing may run the user's code. If it fails or changes the dict, the search ends here. */
static bool is_wanted(const void *item, const void *key, size_t size)
{
    wanted_key *wanted = (wanted_key *)(uintptr_t)key;
    const cfx_object *d = wanted->dict;
    const cfxi_entry *e = &d->as.dict.entries[cfxi_base_set_number(item)];
    (void)size;
    if (e->hash != wanted->hash)
        return false;
    if (e->key == wanted->key)
        return true;
    const cfxi_hash_set *index = d->as.dict.index;
    const uintptr_t *slots = index->slots;
    const size_t used = d->as.dict.used;
    const size_t n = d->as.dict.n;
    cfx_object *own = cfxi_world_ref(e->key);
    const int same = cfxi_world_equal(d->world, own, wanted->key, wanted->err);
    cfxi_world_unref(own);
    wanted->status = same < 0 ? wanted->err->status : CFX_OK;
    wanted->changed = d->as.dict.index != index || index->slots != slots ||
                      d->as.dict.used != used || d->as.dict.n != n;
    return same != 0 || wanted->changed;
}

/* *found: the entry of the key, or NULL. */
static cfx_status find(cfx_object *d, cfx_object *key, uint32_t hash, cfxi_entry **found,
                       cfx_error *err)
{
    wanted_key wanted = {.dict = d, .key = key, .hash = hash, .err = err};
    const void *item = NULL;
    *found = NULL;
    do {
        wanted.changed = false;
        if (d->as.dict.index)
            item = cfxi_base_set_find(d->as.dict.index, hash, is_wanted, &wanted, 0);
    } while (wanted.changed && wanted.status == CFX_OK);
    if (item && wanted.status == CFX_OK)
        *found = &d->as.dict.entries[cfxi_base_set_number(item)];
    return wanted.status;
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
    d->version++;
    if (e) {
        cfx_object *old = e->value;
        e->value = cfxi_world_ref(value);
        cfxi_world_unref(old);
        return CFX_OK;
    }
    CFX_TRY(make_room(d, err));
    d->as.dict.entries[d->as.dict.used] =
        (cfxi_entry){cfxi_world_ref(key), cfxi_world_ref(value), hash};
    cfxi_base_set_insert(d->as.dict.index, hash, cfxi_base_set_item(d->as.dict.used++));
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
    const size_t number = (size_t)(e - d->as.dict.entries);
    cfxi_base_set_remove(d->as.dict.index, hash, cfxi_base_set_item(number));
    e->key = e->value = NULL;
    d->as.dict.n--;
    d->version++;
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

typedef struct wanted_text {
    const cfxi_entry *entries;
    const char *text;
    uint32_t hash;
} wanted_text;

static bool is_text(const void *item, const void *key, size_t size)
{
    const wanted_text *wanted = key;
    const cfxi_entry *e = &wanted->entries[cfxi_base_set_number(item)];
    return e->hash == wanted->hash && e->key->type == CFXI_TYPE_STR &&
           e->key->as.text.size == size && memcmp(e->key->as.text.data, wanted->text, size) == 0;
}

cfx_object *cfxi_world_dict_get(const cfx_object *d, const char *name)
{
    const size_t size = strlen(name);
    if (!d || !d->as.dict.index)
        return NULL;
    const wanted_text wanted = {d->as.dict.entries, name, hash_text(name, size)};
    const void *item = cfxi_base_set_find(d->as.dict.index, wanted.hash, is_text, &wanted, size);
    return item ? d->as.dict.entries[cfxi_base_set_number(item)].value : NULL;
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
