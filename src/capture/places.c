/* places.c - where the modules and tensors of a tree are: their paths below the root. */
#include "capture_impl.h"

#include <stdio.h>

static uint32_t hash_of(const void *item)
{
    return cfxi_hash_pointer(((const cfxi_place *)item)->object);
}

static bool is_same(const void *item, const void *key, size_t size)
{
    (void)size;
    return ((const cfxi_place *)item)->object == key;
}

cfxi_place *cfxi_places_find(const cfxi_places *places, const void *object)
{
    return cfxi_table_find(&places->table, cfxi_hash_pointer(object), is_same, object, 0);
}

cfx_status cfxi_places_add(cfxi_places *places, const void *object, const char *path,
                           const char *name, cfx_error *err)
{
    const size_t before = strlen(path);
    const size_t size = before + 1 + strlen(name) + 1;
    if (cfxi_places_find(places, object))
        return CFX_OK;
    cfxi_place *p = cfxi_table_reserve(&places->table, hash_of, places->allocator)
                        ? cfxi_alloc(places->allocator, sizeof *p) : NULL;
    char *text = p ? cfxi_alloc(places->allocator, size) : NULL;
    if (!text) {
        cfxi_free(places->allocator, p, sizeof *p);
        return cfxi_nomem(err);
    }
    snprintf(text, size, "%s%s%s", path, before && name[0] ? "." : "", name);
    *p = (cfxi_place){.object = object, .path = text, .size = size};
    cfxi_table_insert(&places->table, cfxi_hash_pointer(object), p);
    return CFX_OK;
}

static cfx_status add_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    cfxi_places *places = ctx;
    CFX_TRY(cfxi_places_add(places, m, path, "", err));
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_member_at(m, i);
        if (e->kind != CFXI_MEMBER_CHILD && e->value.kind == CFX_DATUM_TENSOR)
            CFX_TRY(cfxi_places_add(places, e->value.as.tensor, path, e->name, err));
    }
    return CFX_OK;
}

cfx_status cfxi_places_fill(cfxi_places *places, cfx_module *root, cfx_error *err)
{
    if (!places->allocator)
        places->allocator = root->allocator;
    return cfxi_module_each(root, add_module, places, err);
}

void cfxi_places_free(cfxi_places *places)
{
    size_t at = 0;
    for (cfxi_place *p; (p = cfxi_table_next(&places->table, &at)) != NULL;) {
        cfxi_free(places->allocator, p->path, p->size);
        cfxi_free(places->allocator, p, sizeof *p);
    }
    cfxi_table_free(&places->table, places->allocator);
}
