/* named_members.c - the modules, parameters and buffers that a graph names, parents before
 * children. */
#include "named_members.h"

#include "ops/ops_impl.h"
#include "analysis/analysis_impl.h"

/* ---- by path ------------------------------------------------------------------------------- */

static uint32_t hash_path(const cfxi_parts *parts, const char *path, size_t size)
{
    return cfxi_base_hash_keyed(&parts->graph->names.key, path, size);
}

static uint32_t hash_of(const void *item)
{
    return ((const cfxi_part *)item)->hash;
}

static bool has_path(const void *item, const void *key, size_t size)
{
    const cfxi_part *part = item;
    return strncmp(part->path, key, size) == 0 && part->path[size] == '\0';
}

cfxi_part *cfxi_emit_parts_find(const cfxi_parts *parts, const char *path, size_t size)
{
    return cfxi_base_set_find(&parts->table, hash_path(parts, path, size), has_path, path, size);
}

/* The part at path[:size], made if need be; NULL if memory is out. */
static cfxi_part *part_at(cfxi_parts *parts, const char *path, size_t size, const cfx_node *n)
{
    cfxi_part *part = cfxi_emit_parts_find(parts, path, size);
    if (part)
        return part;
    size_t last = size;
    while (last > 0 && path[last - 1] != '.')
        last--;
    cfxi_part *parent = last > 0 ? part_at(parts, path, last - 1, n) : NULL;
    part = cfxi_base_arena_zeros(&parts->arena, 1, sizeof *part);
    char *copy = cfxi_base_arena_zeros(&parts->arena, size + 1, 1);
    if ((last > 0 && !parent) || !part || !copy ||
        !cfxi_base_vec_reserve(&parts->list, 1, sizeof part, parts->allocator) ||
        !cfxi_base_set_reserve(&parts->table, hash_of, parts->allocator))
        return NULL;
    if (parent && parent->kind == CFXI_PART_VALUE)
        parent->kind = CFXI_PART_HOLDER;  /* read as a whole by a node that nobody uses */
    memcpy(copy, path, size);
    *part = (cfxi_part){.parent = parent, .path = copy, .name = copy + last, .node = n,
                         .hash = hash_path(parts, path, size)};
    ((cfxi_part **)parts->list.data)[parts->list.size++] = part;
    cfxi_base_set_insert(&parts->table, part->hash, part);
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
    return cfx_error_set(err, CFX_E_VALUE, "'%.200s' is not a valid path of a module or parameter "
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
            return cfxi_base_nomem(err);
        if (n->op == CFX_OP_CALL_MODULE)
            part->kind = CFXI_PART_MODULE;
        else if (part->node == n)
            part->kind = CFXI_PART_VALUE;
    }
    return cfxi_analysis_each_region(g, collect, parts, err);
}

/* Leaves out what is below a called module. Parents come first, so their fate is known. */
static void drop_covered(cfxi_parts *parts)
{
    size_t kept = 0;
    for (size_t i = 0; i < parts->list.size; i++) {
        cfxi_part *part = cfxi_emit_part_at(parts, i);
        const cfxi_part *parent = part->parent;
        if (parent && (parent->kind == CFXI_PART_MODULE || parent->label))
            part->label = "";
        else
            ((cfxi_part **)parts->list.data)[kept++] = part;
    }
    parts->list.size = kept;
}

/* ---- what is under two names --------------------------------------------------------------- */

/* Who has a module or a tensor first. */
typedef struct holder {
    const cfxi_part *part;
    const char *inside;  /* the name of a parameter of the part; "" if it is the part itself */
} holder;

/* Who has had the object; if nobody, the part has it from now on, and *first is NULL. */
static cfx_status hold(cfxi_parts *parts, cfxi_pointers *seen, const void *object,
                       const cfxi_part *part, const char *inside, const holder **first,
                       cfx_error *err)
{
    *first = cfxi_base_pointers_get(seen, object);
    if (*first)
        return CFX_OK;
    holder *h = cfxi_base_arena_zeros(&parts->arena, 1, sizeof *h);
    if (!h || !cfxi_base_pointers_set(seen, object, h, parts->allocator))
        return cfxi_base_nomem(err);
    *h = (holder){part, inside};
    return CFX_OK;
}

/* *id becomes what a tensor is known by; NULL if there is none at path.name. (None is no tensor: it
 * is the same everywhere.) */
static cfx_status tensor_id(const cfxi_parts *parts, const cfx_module_tree *modules,
                            const char *path, const char *name, const void **id, cfx_error *err)
{
    cfx_buffer full;
    cfx_value dtype = cfx_value_invalid();
    *id = NULL;
    cfx_buffer_init(&full, parts->allocator);
    cfx_buffer_append(&full, path, strlen(path));
    cfx_buffer_append(&full, ".", name[0] != '\0');
    cfx_status status =
        cfx_buffer_append(&full, name, strlen(name)) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK)
        status = cfxi_ops_module_attr(modules, parts->graph, full.data, "dtype", &dtype, err);
    if (status == CFX_OK && dtype.kind == CFX_KIND_DTYPE)
        *id = modules->identity(modules->ctx, full.data);
    cfx_buffer_free(&full);
    return status;
}

/* Those that people tie: an embedding with the layer that undoes it. */
static const char *const tied_names[] = {"weight", "bias", "in_proj_weight", "in_proj_bias",
                                         "out_proj.weight", "out_proj.bias"};

static cfx_status find_ties(cfxi_parts *parts, cfxi_pointers *seen, const cfx_module_tree *modules,
                            cfxi_part *part, cfx_error *err)
{
    cfxi_tie **end = &part->ties;
    for (size_t i = 0; i < sizeof tied_names / sizeof *tied_names; i++) {
        const holder *first = NULL;
        const void *id;
        CFX_TRY(tensor_id(parts, modules, part->path, tied_names[i], &id, err));
        if (id)
            CFX_TRY(hold(parts, seen, id, part, tied_names[i], &first, err));
        if (!first)
            continue;
        cfxi_tie *tie = cfxi_base_arena_zeros(&parts->arena, 1, sizeof *tie);
        if (!tie)
            return cfxi_base_nomem(err);
        *tie = (cfxi_tie){.name = tied_names[i], .twin = first->part, .inside = first->inside};
        *end = tie;
        end = &tie->next;
    }
    return CFX_OK;
}

static cfx_status find_twin(cfxi_parts *parts, cfxi_pointers *seen, const cfx_module_tree *modules,
                            cfxi_part *part, cfx_error *err)
{
    const holder *first = NULL;
    const void *id = NULL;
    if (part->kind == CFXI_PART_MODULE)
        id = modules->identity(modules->ctx, part->path);
    else if (part->kind == CFXI_PART_VALUE)
        CFX_TRY(tensor_id(parts, modules, part->path, "", &id, err));
    if (id)
        CFX_TRY(hold(parts, seen, id, part, "", &first, err));
    part->twin = first ? first->part : NULL;
    part->inside = first ? first->inside : "";
    if (part->kind == CFXI_PART_MODULE && !first)
        return find_ties(parts, seen, modules, part, err);
    return CFX_OK;
}

/* A module or a tensor under two names is made once. */
static cfx_status find_twins(cfxi_parts *parts, const cfx_module_tree *modules, cfx_error *err)
{
    cfxi_pointers seen = {0};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < parts->list.size; i++)
        status = find_twin(parts, &seen, modules, cfxi_emit_part_at(parts, i), err);
    cfxi_base_pointers_free(&seen, parts->allocator);
    return status;
}

cfx_status cfxi_emit_parts_collect(cfxi_parts *parts, cfx_graph *g, const cfx_module_tree *modules,
                                   cfx_error *err)
{
    *parts = (cfxi_parts){.allocator = g->allocator, .graph = g};
    cfxi_base_arena_init(&parts->arena, g->allocator);
    CFX_TRY(collect(g, parts, err));
    drop_covered(parts);
    return modules && modules->identity ? find_twins(parts, modules, err) : CFX_OK;
}

void cfxi_emit_parts_free(cfxi_parts *parts)
{
    cfxi_base_set_free(&parts->table, parts->allocator);
    cfxi_base_vec_free(&parts->list, sizeof(cfxi_part *), parts->allocator);
    cfxi_base_arena_release(&parts->arena);
}

/* ---- facts of modules ---------------------------------------------------------------------- */

/* The attribute of what a path leads to, if it is a bool; else `otherwise`. */
static cfx_status ask_bool(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                           const char *name, bool otherwise, bool *answer, cfx_error *err)
{
    cfx_value flag;
    CFX_TRY(cfxi_ops_module_attr(modules, g, path, name, &flag, err));
    *answer = flag.kind == CFX_KIND_BOOL ? flag.as.b : otherwise;
    cfx_value_discard(g, flag);
    return CFX_OK;
}

cfx_status cfxi_emit_is_training(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                 bool *answer, cfx_error *err)
{
    return ask_bool(modules, g, path, "training", true, answer, err);
}

cfx_status cfxi_emit_is_buffer(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                               bool *answer, cfx_error *err)
{
    CFX_TRY(ask_bool(modules, g, path, "requires_grad", true, answer, err));
    *answer = !*answer;
    return CFX_OK;
}
