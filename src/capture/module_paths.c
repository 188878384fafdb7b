/* module_paths.c - where the modules and tensors of a tree are: their paths below the root. */
#include "capture_impl.h"

#include <stdio.h>

cfxi_path *cfxi_capture_places_find(const cfxi_places *places, const void *object)
{
    return cfxi_base_pointers_get(&places->table, object);
}

cfx_status cfxi_capture_places_add(cfxi_places *places, const void *object, const char *path,
                                   const char *name, cfx_error *err)
{
    const cfx_allocator *allocator = places->allocator;
    const size_t before = strlen(path);
    const size_t size = before + 1 + strlen(name) + 1;
    if (cfxi_capture_places_find(places, object))
        return CFX_OK;
    cfxi_path *p = cfxi_base_alloc(allocator, sizeof *p);
    char *text = p ? cfxi_base_alloc(allocator, size) : NULL;
    if (text) {
        snprintf(text, size, "%s%s%s", path, before && name[0] ? "." : "", name);
        *p = (cfxi_path){.path = text, .size = size};
        if (cfxi_base_pointers_set(&places->table, object, p, allocator))
            return CFX_OK;
    }
    cfxi_base_free(allocator, text, size);
    cfxi_base_free(allocator, p, sizeof *p);
    return cfxi_base_nomem(err);
}

static cfx_status add_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    cfxi_places *places = ctx;
    CFX_TRY(cfxi_capture_places_add(places, m, path, "", err));
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind != CFXI_MEMBER_CHILD && e->value.kind == CFX_DATUM_TENSOR)
            CFX_TRY(cfxi_capture_places_add(places, e->value.as.tensor, path, e->name, err));
    }
    return CFX_OK;
}

cfx_status cfxi_capture_places_fill(cfxi_places *places, cfx_module *root, cfx_error *err)
{
    if (!places->allocator)
        places->allocator = root->allocator;
    return cfxi_capture_module_each(root, add_module, places, err);
}

void cfxi_capture_places_free(cfxi_places *places)
{
    size_t at = 0;
    for (cfxi_path *p; (p = cfxi_base_pointers_next(&places->table, &at)) != NULL;)
        cfxi_base_free(places->allocator, p->path, p->size);
    cfxi_base_pointers_free_all(&places->table, sizeof(cfxi_path), places->allocator);
}
