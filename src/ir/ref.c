/* ref.c - the host objects, names and regions that a graph refers to, each held once. */
#include "graph_impl.h"

static bool same_object(const void *item, const void *key, size_t size)
{
    const cfx_ref *ref = item;
    (void)size;
    return ref->kind == CFXI_REF_OBJECT && ref->object == key;
}

static bool same_name(const void *item, const void *key, size_t size)
{
    const cfx_ref *ref = item;
    return ref->kind == CFXI_REF_NAME && ref->name->size == size &&
           memcmp(ref->name->data, key, size) == 0;
}

static bool same_region(const void *item, const void *key, size_t size)
{
    const cfx_ref *ref = item;
    (void)size;
    return ref->kind == CFXI_REF_REGION && ref->region == key;
}

static uint32_t hash_of(const void *item)
{
    return ((const cfx_ref *)item)->hash;
}

/* A new entry with no holder yet; the caller fills in what it refers to. */
static cfx_ref *new_ref(cfx_graph *g, cfxi_ref_kind kind, uint32_t hash, cfx_error *err)
{
    cfx_ref *ref = NULL;
    if (cfxi_base_set_reserve(&g->refs_table, hash_of, g->allocator))
        ref = cfxi_base_arena_alloc(&g->arena, sizeof *ref);
    if (!ref) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *ref = (cfx_ref){.graph = g, .kind = (uint8_t)kind, .hash = hash};
    return ref;
}

cfx_ref *cfxi_ir_ref_object(cfx_graph *g, void *object, cfx_error *err)
{
    if (!g->host || !object) {
        cfx_error_set(err, CFX_E_TYPE, "this graph has no host, so it cannot hold a host object; "
                      "use a qualified name instead");
        return NULL;
    }
    uint32_t hash = cfxi_base_hash_pointer(object);
    cfx_ref *ref = cfxi_ir_ref_find(g, (cfx_target){.object = object});
    if (ref)
        return ref;
    ref = new_ref(g, CFXI_REF_OBJECT, hash, err);
    if (!ref)
        return NULL;
    ref->object = object;
    g->host->retain(g->host->ctx, object);
    cfxi_base_set_insert(&g->refs_table, hash, ref);
    return ref;
}

cfx_ref *cfxi_ir_ref_name(cfx_graph *g, const char *name, size_t size, cfx_error *err)
{
    uint32_t hash = cfxi_base_hash_keyed(&g->names.key, name, size);
    cfx_ref *ref = cfxi_base_set_find(&g->refs_table, hash, same_name, name, size);
    if (ref)
        return ref;
    if (!cfxi_base_utf8_valid(name, size)) {
        cfx_error_set(err, CFX_E_VALUE, "a target must be UTF-8 text");
        return NULL;
    }
    ref = new_ref(g, CFXI_REF_NAME, hash, err);
    if (!ref)
        return NULL;
    ref->name = cfxi_ir_str_new(&g->arena, name, size);
    if (!ref->name) {
        cfxi_base_arena_free(&g->arena, ref, sizeof *ref);
        cfxi_base_nomem(err);
        return NULL;
    }
    cfxi_base_set_insert(&g->refs_table, hash, ref);
    return ref;
}

cfx_ref *cfxi_ir_ref_find(const cfx_graph *g, cfx_target target)
{
    if (target.object)
        return cfxi_base_set_find(&g->refs_table, cfxi_base_hash_pointer(target.object),
                                  same_object, target.object, 0);
    if (!target.name)
        return NULL;
    return cfxi_base_set_find(&g->refs_table,
                              cfxi_base_hash_keyed(&g->names.key, target.name, target.size),
                              same_name, target.name, target.size);
}

/* ---- regions ------------------------------------------------------------------------------- */

static cfx_status check_region(const cfx_graph *g, const cfx_graph *region, cfx_error *err)
{
    uint32_t above = 0;
    if (!region)
        return cfx_error_set(err, CFX_E_VALUE, "the region value has no graph");
    for (const cfx_graph *up = g; up; up = up->parent, above++)
        if (up == region)
            return cfx_error_set(err, CFX_E_GRAPH, "a graph cannot be a region of itself");
    if (region->parent && region->parent != g)
        return cfx_error_set(err, CFX_E_GRAPH, "the graph is already a region of another graph; "
                             "clone it first");
    if (above + region->height + 1 > CFX_MAX_REGION_DEPTH)
        return cfx_error_set(err, CFX_E_LIMIT, "regions nest more than %d deep",
                             CFX_MAX_REGION_DEPTH);
    return CFX_OK;
}

static void adopt(cfx_graph *g, cfx_graph *region)
{
    region->parent = g;
    uint32_t height = region->height + 1;
    for (cfx_graph *up = g; up; up = up->parent, height++)
        if (up->height < height)
            up->height = height;
}

static cfx_ref *find_region(const cfx_graph *g, const cfx_graph *region)
{
    return cfxi_base_set_find(&g->refs_table, cfxi_base_hash_pointer(region), same_region, region,
                              0);
}

/* The entry for a region that has none; `object` is the host's for it, or NULL. */
static cfx_ref *add_region(cfx_graph *g, cfx_graph *region, void *object, cfx_error *err)
{
    cfx_ref *ref = new_ref(g, CFXI_REF_REGION, cfxi_base_hash_pointer(region), err);
    if (!ref)
        return NULL;
    ref->region = region;
    ref->object = object;
    if (!object)
        cfx_graph_retain(region);
    adopt(g, region);
    cfxi_base_set_insert(&g->refs_table, ref->hash, ref);
    return ref;
}

cfx_ref *cfxi_ir_ref_region(cfx_graph *g, cfx_graph *region, cfx_error *err)
{
    if (check_region(g, region, err) != CFX_OK)
        return NULL;
    cfx_ref *ref = find_region(g, region);
    if (ref || !g->host || !g->host->bind_region)
        return ref ? ref : add_region(g, region, NULL, err);
    void *object = g->host->bind_region(g->host->ctx, region);
    if (!object) {
        cfx_error_set(err, CFX_E_HOST, "the host failed to create an object for the region");
        return NULL;
    }
    if (check_region(g, region, err) == CFX_OK) {  /* the host may have run any code */
        ref = find_region(g, region);
        if (!ref && (ref = add_region(g, region, object, err)))
            return ref;
    }
    g->host->release(g->host->ctx, object);
    return ref;
}

/* ---- letting go ---------------------------------------------------------------------------- */

/* The host's `release` may run any code, even code that edits this graph, so it must not be called
 * in the middle of an edit: entries wait on a list until the edit has settled. */
void cfxi_ir_ref_discard(cfx_graph *g, cfx_ref *ref)
{
    if (ref->refs > 0 || ref->floating > 0 || ref->dying)
        return;
    ref->dying = true;
    ref->next_dead = g->dead_refs;
    g->dead_refs = ref;
}

void cfxi_ir_ref_drop(cfx_graph *g, cfx_ref *ref)
{
    ref->refs--;
    cfxi_ir_ref_discard(g, ref);
}

static void let_go(cfx_graph *g, cfx_ref *ref)
{
    const cfx_host *host = g->host;
    void *object = ref->object;
    cfx_graph *region = ref->region;
    cfxi_base_set_remove(&g->refs_table, ref->hash, ref);
    cfxi_ir_str_free(&g->arena, ref->name);
    cfxi_base_arena_free(&g->arena, ref, sizeof *ref);
    if (region && region->parent == g)  /* else it was handed over */
        region->parent = NULL;
    if (object)
        host->release(host->ctx, object);
    else if (region)
        cfx_graph_release(region);
}

static void unbind_next(cfx_graph *g)
{
    cfx_node *n = g->unbound;
    g->unbound = n->same_prev;
    n->same_prev = NULL;
    g->host->unbind(g->host->ctx, n->binding);
}

static void let_go_of_next(cfx_graph *g)
{
    cfx_ref *ref = g->dead_refs;
    g->dead_refs = ref->next_dead;
    ref->dying = false;
    if (ref->refs == 0 && ref->floating == 0)  /* somebody may have taken it up again */
        let_go(g, ref);
}

/* What is let go of may edit the graph and so come here again: the outer call does all the work,
 * so that a million objects that hang on one another do not nest a million calls. */
void cfxi_ir_graph_settle(cfx_graph *g)
{
    if (g->settling || (!g->unbound && !g->dead_refs))
        return;
    g->settling = true;
    cfx_graph_retain(g);
    while (g->unbound || g->dead_refs) {
        if (g->unbound)
            unbind_next(g);
        else
            let_go_of_next(g);
    }
    g->settling = false;
    cfx_graph_release(g);
}

/* ---- names --------------------------------------------------------------------------------- */

static cfx_status ask_name(cfx_graph *g, cfx_ref *ref, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, g->allocator);
    cfx_status status = g->host->qualified_name(g->host->ctx, ref->object, cfx_buffer_sink(&text),
                                                err);
    if (status != CFX_OK)
        cfxi_base_failed(err, status);
    else if (!cfxi_base_utf8_valid(text.data, text.size))
        status = cfx_error_set(err, CFX_E_VALUE, "the host returned a name that is not UTF-8");
    else if (!ref->name && !(ref->name = cfxi_ir_str_new(&g->arena, text.data, text.size)))
        status = cfxi_base_nomem(err);
    cfx_buffer_free(&text);
    return status;
}

const cfx_str *cfxi_ir_ref_qualified_name(cfx_graph *g, cfx_ref *ref, cfx_error *err)
{
    if (ref->name || ref->kind != CFXI_REF_OBJECT)
        return ref->name;
    ref->refs++;  /* the host may run any code */
    cfx_status status = ask_name(g, ref, err);
    if (ref->refs > 1 || ref->floating > 0) {
        ref->refs--;
        return status == CFX_OK ? ref->name : NULL;
    }
    if (status == CFX_OK)
        cfx_error_set(err, CFX_E_GRAPH, "a host object was released while its name was being read");
    cfxi_ir_ref_drop(g, ref);
    cfxi_ir_graph_settle(g);
    return NULL;
}

int cfx_graph_visit_hosts(cfx_graph *g, int (*fn)(void *object, void *ctx), void *ctx)
{
    size_t at = 0;
    for (cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;) {
        int stop = ref->object ? fn(ref->object, ctx) : 0;
        if (stop)
            return stop;
    }
    return 0;
}
