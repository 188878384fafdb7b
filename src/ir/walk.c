/* walk.c - the stack behind a walk, and the walk over regions. */
#include "walk_impl.h"

_Static_assert(CFX_KIND_COUNT <= 32, "a set of kinds fits into 32 bits");
_Static_assert(sizeof(cfxi_walk_frame) <= 48, "a walk holds several of them on the C stack");

bool cfxi_ir_walk_grow(cfxi_walk *w)
{
    size_t bytes;
    cfxi_walk_frame *frames = NULL;
    if (w->capacity <= UINT32_MAX / 2 &&
        cfxi_base_mul_size(w->capacity, 2 * sizeof *frames, 0, &bytes))
        frames = cfxi_base_alloc(w->allocator, bytes);
    if (!frames) {
        w->status = CFX_E_NOMEM;
        return false;
    }
    memcpy(frames, w->frames, w->depth * sizeof *frames);
    if (w->frames != w->few)
        cfxi_base_free(w->allocator, w->frames, w->capacity * sizeof *frames);
    w->frames = frames;
    w->capacity *= 2;
    return true;
}

cfx_status cfxi_ir_walk_end(cfxi_walk *w, cfx_error *err)
{
    if (w->frames != w->few)
        cfxi_base_free(w->allocator, w->frames, w->capacity * sizeof *w->frames);
    w->frames = w->few;
    w->depth = 0;
    w->capacity = CFXI_WALK_FEW;
    return w->status == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

bool cfxi_ir_value_has(cfx_value v, uint32_t kinds)
{
    bool found = false;
    cfxi_walk w;
    cfxi_walk_frame *f;
    cfxi_ir_walk_begin(&w, NULL);
    cfxi_ir_walk_items(&w, CFX_KIND_TUPLE, &v, 1);
    for (cfxi_walk_event e; !found && (e = cfxi_ir_walk_next(&w, &f)) != CFXI_WALK_END;) {
        if (e == CFXI_WALK_LEAVE)
            continue;
        const cfx_value item = f->items[f->i - 1];
        found = kinds & CFXI_KIND_BIT(item.kind);
        if (cfxi_ir_is_seq(item))
            cfxi_ir_walk_into(&w, item);
    }
    return cfxi_ir_walk_end(&w, NULL) != CFX_OK || found;
}

cfx_status cfxi_ir_each_region(cfx_value v,
                               cfx_status (*fn)(cfx_graph *region, void *ctx, cfx_error *err),
                               void *ctx, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_walk w;
    cfxi_ir_walk_begin(&w, NULL);
    cfxi_ir_walk_items(&w, CFX_KIND_TUPLE, &v, 1);
    for (cfx_value leaf; status == CFX_OK && cfxi_ir_walk_leaf(&w, &leaf);)
        if (leaf.kind == CFX_KIND_GRAPH)
            status = fn(leaf.as.ref->region, ctx, err);
    const cfx_status walked = cfxi_ir_walk_end(&w, status == CFX_OK ? err : NULL);
    return status == CFX_OK ? walked : status;
}

void cfxi_ir_regions_begin(cfxi_region_walk *w, cfx_graph *g)
{
    w->above[0].graph = g;
    w->above[0].at = SIZE_MAX;  /* not handed out yet */
    w->depth = 1;
}

cfx_graph *cfxi_ir_regions_next(cfxi_region_walk *w)
{
    while (w->depth > 0) {
        cfx_graph *g = w->above[w->depth - 1].graph;
        size_t *at = &w->above[w->depth - 1].at;
        if (*at == SIZE_MAX) {
            *at = 0;
            return g;
        }
        const cfx_ref *ref = cfxi_base_set_next(&g->refs_table, at);
        if (!ref) {
            w->depth--;
        } else if (ref->kind == CFXI_REF_REGION && ref->refs > 0 && ref->region->parent == g &&
                   w->depth <= CFX_MAX_REGION_DEPTH) {
            w->above[w->depth].graph = ref->region;
            w->above[w->depth++].at = SIZE_MAX;
        }
    }
    return NULL;
}
