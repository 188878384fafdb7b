/* location.c - where nodes come from: source lines and module scopes, each stored once. */
#include "graph_impl.h"

#include <stdio.h>

typedef struct location_key {
    const char *file;
    size_t size;
    uint32_t line;
} location_key;

static uint32_t hash_location(const cfx_graph *g, const location_key *key)
{
    return (uint32_t)cfxi_base_hash_mix(
        cfxi_base_hash_keyed(&g->names.key, key->file, key->size), key->line);
}

static uint32_t location_hash(const void *item)
{
    return ((const cfxi_location *)item)->hash;
}

static bool same_location(const void *item, const void *key, size_t size)
{
    const cfxi_location *location = item;
    const location_key *wanted = key;
    (void)size;
    return location->line == wanted->line && location->file->size == wanted->size &&
           memcmp(location->file->data, wanted->file, wanted->size) == 0;
}

/* Makes room for one more entry of a table and of the vector that numbers them; false if memory is
 * out. */
static bool reserve_entry(cfx_graph *g, cfxi_hash_set *table, cfxi_vec *vec, cfxi_hash_fn *hash_of)
{
    return cfxi_base_set_reserve(table, hash_of, g->allocator) &&
           cfxi_base_vec_reserve(vec, 1, sizeof(void *), g->allocator) && vec->size < UINT32_MAX;
}

static uint32_t add_entry(cfxi_hash_set *table, cfxi_vec *vec, uint32_t hash, void *entry)
{
    cfxi_base_set_insert(table, hash, entry);
    ((void **)vec->data)[vec->size] = entry;
    return (uint32_t)++vec->size;
}

static cfxi_location *find_location(cfx_graph *g, const location_key *key)
{
    uint32_t hash = hash_location(g, key);
    return cfxi_base_set_find(&g->location_table, hash, same_location, key, 0);
}

/* `file` is shared with the location of line 0, or made anew for it. */
static cfxi_location *add_location(cfx_graph *g, const location_key *key, cfx_str *file)
{
    cfxi_location *location = NULL;
    if (!reserve_entry(g, &g->location_table, &g->locations, location_hash))
        return NULL;
    bool own = file == NULL;
    if (own)
        file = cfxi_ir_str_new(&g->arena, key->file, key->size);
    if (file)
        location = cfxi_base_arena_alloc(&g->arena, sizeof *location);
    if (!location) {
        if (own)
            cfxi_ir_str_free(&g->arena, file);
        return NULL;
    }
    *location = (cfxi_location){.file = file, .line = key->line, .hash = hash_location(g, key)};
    location->number = add_entry(&g->location_table, &g->locations, location->hash, location);
    return location;
}

uint32_t cfx_graph_intern_location(cfx_graph *g, const char *file, uint32_t line, cfx_error *err)
{
    location_key key = {file, strlen(file), line};
    location_key whole = {file, key.size, 0};
    const cfxi_location *location = find_location(g, &key);
    if (location)
        return location->number;
    if (!cfxi_base_utf8_valid(file, key.size)) {
        cfx_error_set(err, CFX_E_VALUE, "a file name must be UTF-8");
        return 0;
    }
    const cfxi_location *owner = find_location(g, &whole);
    if (!owner)
        owner = add_location(g, &whole, NULL);
    if (owner)
        location = line == 0 ? owner : add_location(g, &key, owner->file);
    if (!location)
        cfxi_base_nomem(err);
    return location ? location->number : 0;
}

cfx_status cfx_node_set_location(cfx_node *n, const char *file, uint32_t line, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    uint32_t number = file ? cfx_graph_intern_location(n->graph, file, line, &why) : 0;
    if (why.status != CFX_OK) {
        if (err)
            *err = why;
        return why.status;
    }
    n->location = number;
    return CFX_OK;
}

void cfx_node_set_location_id(cfx_node *n, uint32_t location)
{
    n->location = location <= n->graph->locations.size ? location : 0;
}

const char *cfx_node_file(const cfx_node *n)
{
    const cfxi_location *location = cfxi_ir_location_of(n);
    return location ? location->file->data : NULL;
}

uint32_t cfx_node_line(const cfx_node *n)
{
    const cfxi_location *location = cfxi_ir_location_of(n);
    return location ? location->line : 0;
}

/* ---- scopes -------------------------------------------------------------------------------- */

typedef struct scope_key {
    const char *path;
    const char *type;
    void *object;
    uint32_t parent;
} scope_key;

static void *object_of(const cfxi_scope *scope)
{
    return scope->object ? scope->object->object : NULL;
}

static uint32_t hash_scope(const cfx_graph *g, const scope_key *key)
{
    const cfxi_hash_key *with = &g->names.key;
    uint64_t hash = cfxi_base_hash_keyed(with, key->path, strlen(key->path));
    hash = cfxi_base_hash_mix(hash, cfxi_base_hash_keyed(with, key->type, strlen(key->type)));
    return (uint32_t)cfxi_base_hash_mix(hash, key->parent);
}

static uint32_t scope_hash(const void *item)
{
    return ((const cfxi_scope *)item)->hash;
}

static bool same_scope(const void *item, const void *key, size_t size)
{
    const cfxi_scope *scope = item;
    const scope_key *wanted = key;
    (void)size;
    return scope->parent == wanted->parent && object_of(scope) == wanted->object &&
           strcmp(scope->path->data, wanted->path) == 0 &&
           strcmp(scope->type->data, wanted->type) == 0;
}

static cfxi_scope *add_scope(cfx_graph *g, const scope_key *key, uint32_t hash, cfx_error *err)
{
    if (!reserve_entry(g, &g->scope_table, &g->scopes, scope_hash)) {
        cfxi_base_nomem(err);
        return NULL;
    }
    cfx_str *path = cfxi_ir_str_new(&g->arena, key->path, strlen(key->path));
    cfx_str *type = cfxi_ir_str_new(&g->arena, key->type, strlen(key->type));
    cfxi_scope *scope = path && type ? cfxi_base_arena_alloc(&g->arena, sizeof *scope) : NULL;
    if (!scope)
        cfxi_base_nomem(err);
    cfx_ref *object = scope && key->object ? cfxi_ir_ref_object(g, key->object, err) : NULL;
    if (!scope || (key->object && !object)) {
        cfxi_ir_str_free(&g->arena, path);
        cfxi_ir_str_free(&g->arena, type);
        if (scope)
            cfxi_base_arena_free(&g->arena, scope, sizeof *scope);
        return NULL;
    }
    if (object)
        object->refs++;
    *scope = (cfxi_scope){.path = path, .type = type, .object = object, .parent = key->parent,
                           .hash = hash};
    scope->number = add_entry(&g->scope_table, &g->scopes, hash, scope);
    return scope;
}

uint32_t cfx_graph_intern_stack(cfx_graph *g, uint32_t parent, const char *path, const char *type,
                                void *object, cfx_error *err)
{
    scope_key key = {path ? path : "", type ? type : "", object, parent};
    if (parent > g->scopes.size) {
        cfx_error_set(err, CFX_E_VALUE, "the graph has no scope %u", parent);
        return 0;
    }
    if (!cfxi_base_utf8_valid(key.path, strlen(key.path)) ||
        !cfxi_base_utf8_valid(key.type, strlen(key.type))) {
        cfx_error_set(err, CFX_E_VALUE, "the path and type of a scope must be UTF-8 text");
        return 0;
    }
    uint32_t hash = hash_scope(g, &key);
    cfxi_scope *scope = cfxi_base_set_find(&g->scope_table, hash, same_scope, &key, 0);
    if (!scope)
        scope = add_scope(g, &key, hash, err);
    return scope ? scope->number : 0;
}

uint32_t cfx_graph_stack_outer(const cfx_graph *g, uint32_t scope)
{
    const cfxi_scope *entry = cfxi_ir_scope_at(g, scope);
    return entry ? entry->parent : 0;
}

const char *cfx_graph_stack_path(const cfx_graph *g, uint32_t scope)
{
    const cfxi_scope *entry = cfxi_ir_scope_at(g, scope);
    return entry ? entry->path->data : NULL;
}

const char *cfx_graph_stack_type(const cfx_graph *g, uint32_t scope)
{
    const cfxi_scope *entry = cfxi_ir_scope_at(g, scope);
    return entry ? entry->type->data : NULL;
}

void *cfx_graph_stack_object(const cfx_graph *g, uint32_t scope)
{
    const cfxi_scope *entry = cfxi_ir_scope_at(g, scope);
    return entry ? object_of(entry) : NULL;
}

void cfxi_ir_scopes_let_go(cfx_graph *g)
{
    for (size_t i = 0; i < g->scopes.size; i++) {
        cfxi_scope *scope = ((cfxi_scope **)g->scopes.data)[i];
        if (scope->object)
            cfxi_ir_ref_drop(g, scope->object);
        scope->object = NULL;
    }
}

uint32_t cfx_node_module_stack(const cfx_node *n) { return n->scope; }

void cfx_node_set_module_stack(cfx_node *n, uint32_t scope)
{
    n->scope = scope <= n->graph->scopes.size ? scope : 0;
}

const char *cfxi_ir_where(const cfx_node *n, char out[CFXI_WHERE_SIZE])
{
    const cfxi_location *at = cfxi_ir_location_of(n);
    out[0] = '\0';
    if (at)
        snprintf(out, CFXI_WHERE_SIZE, " (%.80s:%u)", at->file->data, at->line);
    return out;
}
