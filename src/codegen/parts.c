/* parts.c - the modules, parameters and buffers that a graph names, parents before children. */
#include "parts.h"

#include "../ops/ops_impl.h"
#include "../transform/transform_impl.h"

/* ---- by path ------------------------------------------------------------------------------- */

static uint32_t hash_path(const char *path, size_t size)
{
    return (uint32_t)cfxi_hash_bytes(path, size);
}

static uint32_t hash_of(const void *item)
{
    const cfxi_part *part = item;
    return hash_path(part->path, strlen(part->path));
}

static bool has_path(const void *item, const void *key, size_t size)
{
    const cfxi_part *part = item;
    return strncmp(part->path, key, size) == 0 && part->path[size] == '\0';
}

static cfxi_part *find(const cfxi_parts *parts, const char *path, size_t size)
{
    return cfxi_table_find(&parts->table, hash_path(path, size), has_path, path, size);
}

/* The part at path[:size], made if need be; NULL if memory is out. */
static cfxi_part *part_at(cfxi_parts *parts, const char *path, size_t size, const cfx_node *n)
{
    cfxi_part *part = find(parts, path, size);
    if (part)
        return part;
    size_t last = size;
    while (last > 0 && path[last - 1] != '.')
        last--;
    cfxi_part *parent = last > 0 ? part_at(parts, path, last - 1, n) : NULL;
    part = cfxi_arena_zeros(&parts->arena, 1, sizeof *part);
    char *copy = cfxi_arena_zeros(&parts->arena, size + 1, 1);
    if ((last > 0 && !parent) || !part || !copy ||
        !cfxi_vec_reserve(&parts->list, 1, sizeof part, parts->allocator) ||
        !cfxi_table_reserve(&parts->table, hash_of, parts->allocator))
        return NULL;
    if (parent && parent->kind == CFXI_PART_VALUE)
        parent->kind = CFXI_PART_HOLDER;  /* read as a whole by a node that nobody uses */
    memcpy(copy, path, size);
    *part = (cfxi_part){.parent = parent, .path = copy, .name = copy + last, .node = n};
    ((cfxi_part **)parts->list.data)[parts->list.size++] = part;
    cfxi_table_insert(&parts->table, hash_path(path, size), part);
    return part;
}

/* ---- the graph ----------------------------------------------------------------------------- */

/* How deep a path may be: it is followed by a call for each name. */
enum { MOST_NAMES = 500 };

static cfx_status check_path(const cfx_node *n, const cfx_str *path, cfx_error *err)
{
    size_t names = 1;
    bool empty = path->size == 0;
    for (size_t i = 0; i < path->size; i++) {
        names += path->data[i] == '.';
        empty = empty || (path->data[i] == '.' && (i == 0 || i + 1 == path->size ||
                                                   path->data[i - 1] == '.'));
    }
    if (!empty && names <= MOST_NAMES && strlen(path->data) == path->size)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_VALUE, "'%.200s' cannot be the path of a module or a parameter "
                         "(node %%%.60s)", path->data, n->name->data);
}

static cfx_status collect(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_parts *parts = ctx;
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        if (n->op != CFX_OP_GET_ATTR && n->op != CFX_OP_CALL_MODULE)
            continue;
        const cfx_str *path = n->callee->ref->name;
        CFX_TRY(check_path(n, path, err));
        cfxi_part *part = part_at(parts, path->data, path->size, n);
        if (!part)
            return cfxi_nomem(err);
        if (n->op == CFX_OP_CALL_MODULE)
            part->kind = CFXI_PART_MODULE;
        else if (part->node == n)
            part->kind = CFXI_PART_VALUE;
    }
    return cfxi_each_region(g, collect, parts, err);
}

/* Leaves out what is below a called module. Parents come first, so their fate is known. */
static void drop_covered(cfxi_parts *parts)
{
    size_t kept = 0;
    for (size_t i = 0; i < parts->list.size; i++) {
        cfxi_part *part = cfxi_part_at(parts, i);
        const cfxi_part *parent = part->parent;
        if (parent && (parent->kind == CFXI_PART_MODULE || parent->label))
            part->label = "";
        else
            ((cfxi_part **)parts->list.data)[kept++] = part;
    }
    parts->list.size = kept;
}

static uint32_t hash_twin(const void *item)
{
    return cfxi_hash_pointer(((const cfxi_part *)item)->label);
}

static bool is_twin(const void *item, const void *key, size_t size)
{
    (void)size;
    return (const void *)((const cfxi_part *)item)->label == key;
}

/* A module under two names is made once. The labels hold identities meanwhile. */
static cfx_status find_twins(cfxi_parts *parts, const cfx_modules *modules, cfx_error *err)
{
    cfxi_table seen = {0};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < parts->list.size; i++) {
        cfxi_part *part = cfxi_part_at(parts, i);
        const void *id = part->kind == CFXI_PART_MODULE
                             ? modules->identity(modules->ctx, part->path) : NULL;
        if (!id)
            continue;
        const uint32_t hash = cfxi_hash_pointer(id);
        part->label = id;
        part->twin = cfxi_table_find(&seen, hash, is_twin, id, 0);
        if (!part->twin && cfxi_table_reserve(&seen, hash_twin, parts->allocator))
            cfxi_table_insert(&seen, hash, part);
        else if (!part->twin)
            status = cfxi_nomem(err);
    }
    cfxi_table_free(&seen, parts->allocator);
    for (size_t i = 0; i < parts->list.size; i++)
        cfxi_part_at(parts, i)->label = NULL;
    return status;
}

cfx_status cfxi_parts_collect(cfxi_parts *parts, cfx_graph *g, const cfx_modules *modules,
                              cfx_error *err)
{
    *parts = (cfxi_parts){.allocator = g->allocator};
    cfxi_arena_init(&parts->arena, g->allocator);
    CFX_TRY(collect(g, parts, err));
    drop_covered(parts);
    return modules && modules->identity ? find_twins(parts, modules, err) : CFX_OK;
}

void cfxi_parts_free(cfxi_parts *parts)
{
    cfxi_table_free(&parts->table, parts->allocator);
    cfxi_vec_free(&parts->list, sizeof(cfxi_part *), parts->allocator);
    cfxi_arena_release(&parts->arena);
}
