/* state.c - tensors by name: the parameters and buffers of a model. */
#include "ir/graph_impl.h"
#include "runtime_impl.h"

typedef struct entry {
    uint32_t hash;
    cfx_tensor *tensor;
    char name[];  /* terminated */
} entry;

struct cfx_state {
    const cfx_allocator *allocator;
    cfxi_table table;
    cfxi_vec entries;  /* entry *, in the order of their first set */
};

static entry *entry_at(const cfx_state *s, size_t i) { return ((entry **)s->entries.data)[i]; }

static uint32_t entry_hash(const void *item) { return ((const entry *)item)->hash; }

static bool same_name(const void *item, const void *key, size_t size)
{
    const entry *e = item;
    return strncmp(e->name, key, size) == 0 && e->name[size] == '\0';
}

static entry *find(const cfx_state *s, const char *name, uint32_t *hash)
{
    size_t size = strlen(name);
    *hash = (uint32_t)cfxi_base_hash_bytes(name, size);
    return cfxi_ir_table_find(&s->table, *hash, same_name, name, size);
}

cfx_state *cfx_state_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_state *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfx_state){.allocator = allocator};
    return s;
}

void cfx_state_free(cfx_state *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entries.size; i++) {
        entry *e = entry_at(s, i);
        cfx_tensor_release(e->tensor);
        cfxi_base_free(s->allocator, e, sizeof *e + strlen(e->name) + 1);
    }
    cfxi_ir_table_free(&s->table, s->allocator);
    cfxi_base_vec_free(&s->entries, sizeof(entry *), s->allocator);
    cfxi_base_free(s->allocator, s, sizeof *s);
}

cfx_status cfx_state_set(cfx_state *s, const char *name, cfx_tensor *t, cfx_error *err)
{
    uint32_t hash;
    CFX_TRY(cfxi_base_expect(s, "state", err));
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    entry *e = find(s, name, &hash);
    if (e) {
        cfx_tensor *old = e->tensor;
        e->tensor = cfx_tensor_retain(t);
        cfx_tensor_release(old);
        return CFX_OK;
    }
    size_t size = strlen(name) + 1;
    if (!cfxi_ir_table_reserve(&s->table, entry_hash, s->allocator) ||
        !cfxi_base_vec_reserve(&s->entries, 1, sizeof e, s->allocator) ||
        !(e = cfxi_base_alloc(s->allocator, sizeof *e + size)))
        return cfxi_base_nomem(err);
    *e = (entry){.hash = hash, .tensor = cfx_tensor_retain(t)};
    memcpy(e->name, name, size);
    ((entry **)s->entries.data)[s->entries.size++] = e;
    cfxi_ir_table_insert(&s->table, hash, e);
    return CFX_OK;
}

cfx_tensor *cfx_state_get(const cfx_state *s, const char *name)
{
    uint32_t hash;
    const entry *e = s ? find(s, name, &hash) : NULL;
    return e ? e->tensor : NULL;
}

size_t cfx_state_size(const cfx_state *s) { return s->entries.size; }

const char *cfx_state_entry(const cfx_state *s, size_t i, cfx_tensor **t)
{
    if (i >= s->entries.size)
        return NULL;
    entry *e = entry_at(s, i);
    if (t)
        *t = e->tensor;
    return e->name;
}
