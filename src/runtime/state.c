/* state.c - tensors by dotted name, in the order in which they were first set. */
#include "runtime_impl.h"

typedef struct entry {
    char *name;
    size_t size;
    cfx_tensor *tensor;
} entry;

struct cfx_state {
    const cfx_allocator *allocator;
    cfxi_vec entries;
};

cfx_state *cfx_state_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_allocator(allocator);
    cfx_state *s = cfxi_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_nomem(err);
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
        entry *e = (entry *)s->entries.data + i;
        cfx_tensor_release(e->tensor);
        cfxi_free(s->allocator, e->name, e->size + 1);
    }
    cfxi_vec_free(&s->entries, sizeof(entry), s->allocator);
    cfxi_free(s->allocator, s, sizeof *s);
}

static entry *find(const cfx_state *s, const char *name)
{
    for (size_t i = 0; i < s->entries.size; i++) {
        entry *e = (entry *)s->entries.data + i;
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

cfx_status cfx_state_set(cfx_state *s, const char *name, cfx_tensor *t, cfx_error *err)
{
    entry *e = find(s, name);
    const size_t size = strlen(name);
    if (!e) {
        char *copy = cfxi_alloc(s->allocator, size + 1);
        if (!copy || !cfxi_vec_reserve(&s->entries, 1, sizeof *e, s->allocator)) {
            if (copy)
                cfxi_free(s->allocator, copy, size + 1);
            return cfxi_nomem(err);
        }
        memcpy(copy, name, size + 1);
        e = (entry *)s->entries.data + s->entries.size++;
        *e = (entry){copy, size, NULL};
    }
    cfx_tensor_retain(t);
    cfx_tensor_release(e->tensor);
    e->tensor = t;
    return CFX_OK;
}

cfx_tensor *cfx_state_get(const cfx_state *s, const char *name)
{
    const entry *e = find(s, name);
    return e ? e->tensor : NULL;
}

size_t cfx_state_size(const cfx_state *s) { return s->entries.size; }

const char *cfx_state_at(const cfx_state *s, size_t i, cfx_tensor **t)
{
    if (i >= s->entries.size)
        return NULL;
    const entry *e = (const entry *)s->entries.data + i;
    if (t)
        *t = e->tensor;
    return e->name;
}
