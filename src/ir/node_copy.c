/* node_copy.c - maps from nodes to values, and copying nodes from one graph into another. */
#include "graph_impl.h"

/* ---- maps ---------------------------------------------------------------------------------- */

typedef struct map_entry {
    const cfx_node *key;  /* NULL: free */
    cfx_value value;      /* INVALID: taken out again */
} map_entry;

struct cfx_node_map {
    const cfx_allocator *allocator;
    map_entry *entries;
    size_t used;
    size_t capacity;  /* a power of two, or 0 */
};

cfx_node_map *cfx_node_map_new(const cfx_allocator *allocator, cfx_error *err)
{
    cfx_node_map *map = cfxi_base_alloc(allocator, sizeof *map);
    if (!map) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *map = (cfx_node_map){.allocator = allocator};
    return map;
}

void cfx_node_map_free(cfx_node_map *map)
{
    if (!map)
        return;
    cfxi_base_free(map->allocator, map->entries, map->capacity * sizeof *map->entries);
    cfxi_base_free(map->allocator, map, sizeof *map);
}

/* The entry of `key`, or the free one where it belongs. */
static map_entry *entry_of(const cfx_node_map *map, const cfx_node *key)
{
    size_t mask = map->capacity - 1;
    size_t at = cfxi_base_hash_pointer(key) & mask;
    while (map->entries[at].key && map->entries[at].key != key)
        at = (at + 1) & mask;
    return &map->entries[at];
}

static bool grow_map(cfx_node_map *map, size_t capacity)
{
    size_t bytes;
    map_entry *entries = NULL;
    if (cfxi_base_mul_size(capacity, sizeof *entries, 0, &bytes))
        entries = cfxi_base_alloc(map->allocator, bytes);
    if (!entries)
        return false;
    memset(entries, 0, bytes);
    cfx_node_map old = *map;
    map->entries = entries;
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].key)
            *entry_of(map, old.entries[i].key) = old.entries[i];
    cfxi_base_free(map->allocator, old.entries, old.capacity * sizeof *old.entries);
    return true;
}

bool cfxi_ir_node_map_reserve(cfx_node_map *map, size_t more)
{
    size_t capacity = map->capacity ? map->capacity : 16;
    while ((map->used + more) > capacity / 2)
        capacity *= 2;
    return capacity == map->capacity || grow_map(map, capacity);
}

cfx_status cfx_node_map_set(cfx_node_map *map, const cfx_node *key, cfx_value v, cfx_error *err)
{
    map_entry *entry = map->capacity ? entry_of(map, key) : NULL;
    if (!entry || !entry->key) {
        if (!cfxi_ir_node_map_reserve(map, 1))
            return cfxi_base_nomem(err);
        entry = entry_of(map, key);
        entry->key = key;
        map->used++;
    }
    entry->value = v;
    return CFX_OK;
}

cfx_value cfx_node_map_get(const cfx_node_map *map, const cfx_node *key)
{
    return map->capacity ? entry_of(map, key)->value : cfx_value_invalid();
}

/* ---- one node ------------------------------------------------------------------------------ */

/* The scope of `g` that has the same chain of paths and types; 0 with *err set if it fails. */
static uint32_t copy_scope(cfx_graph *g, const cfx_graph *src, uint32_t scope, cfx_error *err)
{
    uint32_t chain[CFX_MAX_DEPTH];
    size_t n = 0;
    if (g == src)
        return scope;
    for (uint32_t at = scope; at; at = cfx_graph_stack_outer(src, at)) {
        if (n == CFX_MAX_DEPTH) {
            cfx_error_set(err, CFX_E_LIMIT, "scopes nest more than %d deep", CFX_MAX_DEPTH);
            return 0;
        }
        chain[n++] = at;
    }
    uint32_t result = 0;
    while (n > 0) {
        n--;
        result = cfx_graph_intern_stack(
            g, result, cfx_graph_stack_path(src, chain[n]), cfx_graph_stack_type(src, chain[n]),
            g->host == src->host ? cfx_graph_stack_object(src, chain[n]) : NULL, err);
        if (!result)
            return 0;
    }
    return result;
}

/* What a copy is made of, all in the terms of the new graph. */
typedef struct node_parts {
    cfx_target target;
    cfx_value args, kwargs, type;
    uint32_t scope;
    uint32_t location;
} node_parts;

static bool map_part(cfx_graph *g, const cfx_node *n, cfx_value from, cfx_value *to, bool move,
                     cfx_map_fn *fn, void *ctx, cfx_error *err)
{
    if (from.kind == CFX_KIND_INVALID || (cfxi_ir_is_seq(from) && !from.as.seq))
        return true;  /* none, or an empty tuple: the copy has none either */
    cfxi_ir_value_hold(from);  /* `fn` may run any code, which may replace it */
    *to = cfxi_ir_value_map(g, n->graph, from, move, fn, ctx, err);
    if (to->kind == from.kind && to->as.i == from.as.i)
        cfxi_ir_value_unhold(from);  /* nothing to map: the copy has the same one */
    else
        cfxi_ir_value_drop(n->graph, from);
    return to->kind != CFX_KIND_INVALID;
}

static bool copy_target(cfx_graph *g, const cfx_node *n, const char *path, cfx_target *target,
                        cfx_error *err)
{
    cfx_ref *ref = n->callee->ref;
    if (path) {
        *target = (cfx_target){.name = path, .size = strlen(path)};
        return true;
    }
    if (g->host == n->graph->host && ref->kind == CFXI_REF_OBJECT) {
        *target = (cfx_target){.object = ref->object};
        return true;
    }
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, ref, err);
    if (!name)
        return false;
    *target = (cfx_target){.name = name->data, .size = name->size};
    return true;
}

static bool copy_place(cfx_graph *g, const cfx_node *n, node_parts *parts, cfx_error *err)
{
    if (n->scope) {
        parts->scope = copy_scope(g, n->graph, n->scope, err);
        if (!parts->scope)
            return false;
    }
    if (n->location) {
        parts->location = cfx_graph_intern_location(g, cfx_node_file(n), cfx_node_line(n), err);
        if (!parts->location)
            return false;
    }
    return true;
}

/* Recycles what map_part made, where nobody holds it. */
static void discard_parts(cfx_graph *g, const node_parts *parts)
{
    cfx_value_discard(g, parts->args);
    cfx_value_discard(g, parts->kwargs);
    cfx_value_discard(g, parts->type);
}

cfx_node *cfxi_ir_graph_copy_as(cfx_graph *g, const cfx_node *n, const cfxi_copy_as *as,
                                cfx_map_fn *fn, void *ctx, cfx_error *err)
{
    node_parts p = {
        .args = cfx_value_invalid(), .kwargs = cfx_value_invalid(), .type = cfx_value_invalid()};
    cfx_node *copy = NULL;
    const cfx_opcode op = as->placeholder ? CFX_OP_PLACEHOLDER : (cfx_opcode)n->op;
    cfx_iter pin;  /* `fn` may erase `n` */
    cfx_iter_begin(&pin, n->graph, false);
    const bool move = as->move;
    if ((as->placeholder || (map_part(g, n, cfx_node_args(n), &p.args, move, fn, ctx, err) &&
                             map_part(g, n, cfx_node_kwargs(n), &p.kwargs, move, fn, ctx, err))) &&
        map_part(g, n, cfx_node_type(n), &p.type, move, fn, ctx, err) &&
        copy_place(g, n, &p, err) && copy_target(g, n, as->path, &p.target, err))
        copy = cfx_graph_create(g, op, p.target, p.args, p.kwargs, as->name, p.type, err);
    if (copy) {
        copy->scope = p.scope;
        copy->location = p.location;
    } else {
        discard_parts(g, &p);
    }
    cfx_iter_end(&pin);
    return copy;
}

cfx_node *cfx_graph_copy_node(cfx_graph *g, const cfx_node *n, cfx_map_fn *fn, void *ctx,
                              cfx_error *err)
{
    const cfxi_copy_as as = {.name = n->name->data};
    return cfxi_ir_graph_copy_as(g, n, &as, fn, ctx, err);
}

/* ---- the nodes of a graph ------------------------------------------------------------------ */

typedef struct copier {
    cfx_node_map *map;
    const cfx_node *user;  /* whose arguments are being mapped */
} copier;

static cfx_value look_up(void *ctx, cfx_node *n, cfx_error *err)
{
    const copier *c = ctx;
    cfx_value v = cfx_node_map_get(c->map, n);
    if (v.kind == CFX_KIND_INVALID)
        cfx_error_set(err, CFX_E_KEY, "node %%%s uses %%%s, which has not been copied; put its "
                      "replacement into the map, or define it before it is used",
                      c->user->name->data, n->name->data);
    return v;
}

/* Copies `n` unless the map has it; *output receives an output node, which is not copied. */
static cfx_status copy_one(cfx_graph *g, copier *c, cfx_node *n, cfx_node **output, cfx_error *err)
{
    c->user = n;
    if (cfxi_ir_node_erased(n) || cfx_node_map_get(c->map, n).kind != CFX_KIND_INVALID)
        return CFX_OK;
    if (n->op == CFX_OP_OUTPUT) {
        *output = n;
        return CFX_OK;
    }
    if (!cfxi_ir_node_map_reserve(c->map, 1))
        return cfxi_base_nomem(err);
    cfx_error why = {.status = CFX_OK};
    cfx_node *copy = cfx_graph_copy_node(g, n, look_up, c, &why);
    if (copy)
        return cfx_node_map_set(c->map, n, cfx_value_node(copy), err);
    if (err)
        *err = why;
    return why.status;
}

static cfx_status map_result(cfx_graph *g, copier *c, cfx_node *output, cfx_value *result,
                             cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfx_value v = cfx_node_arg(output, 0);
    *result = v.kind == CFX_KIND_INVALID ? cfx_value_none()
                                         : cfx_value_map(g, output->graph, v, look_up, c, &why);
    if (result->kind != CFX_KIND_INVALID)
        return CFX_OK;
    if (err)
        *err = why;
    return why.status;
}

/* Takes the copies of nodes[0..n) back, last first. One that an erase hook insists on stays. */
static void take_back(cfx_graph *g, cfx_node_map *map, cfx_node *const *nodes,
                      const bool *known, size_t n)
{
    while (n > 0) {
        n--;
        cfx_value v = known[n] ? cfx_value_invalid() : cfx_node_map_get(map, nodes[n]);
        if (v.kind == CFX_KIND_INVALID)
            continue;
        cfx_graph_erase(g, v.as.node, NULL);
        cfx_node_map_set(map, nodes[n], cfx_value_invalid(),
                         NULL); /* it has an entry: cannot fail */
    }
}

/* The nodes as they are now: `g` may be `src`, and hooks may edit it. */
static void take_snapshot(const cfx_graph *src, const cfx_node_map *map, cfx_node **nodes,
                          bool *known)
{
    size_t i = 0;
    for (cfx_node *n = src->root.next; n != &src->root; n = n->next, i++) {
        nodes[i] = n;
        known[i] = cfx_node_map_get(map, n).kind != CFX_KIND_INVALID;
    }
}

static cfx_status copy_nodes(cfx_graph *g, copier *c, cfx_node *const *nodes, size_t n,
                             cfx_node **end, size_t *done, cfx_error *err)
{
    for (*done = 0; *done < n && !*end; ++*done)
        CFX_TRY(copy_one(g, c, nodes[*done], end, err));
    return CFX_OK;
}

cfx_status cfx_graph_copy_from(cfx_graph *g, cfx_graph *src, cfx_node_map *map, cfx_value *result,
                               cfx_node **output, cfx_error *err)
{
    size_t n = src->size;
    size_t bytes = n * (sizeof(cfx_node *) + sizeof(bool));
    cfx_node **nodes = cfxi_base_alloc(g->allocator, bytes);
    if (!nodes)
        return cfxi_base_nomem(err);
    bool *known = (bool *)(nodes + n);
    take_snapshot(src, map, nodes, known);
    copier c = {.map = map};
    cfx_node *end = NULL;
    size_t done;
    cfx_value value = cfx_value_invalid();
    cfx_iter keep;  /* keeps nodes readable that a hook erases */
    cfx_iter_begin(&keep, src, false);
    cfx_status status = copy_nodes(g, &c, nodes, n, &end, &done, err);
    if (status == CFX_OK && end)
        status = map_result(g, &c, end, &value, err);
    if (status != CFX_OK)
        take_back(g, map, nodes, known, done);
    cfx_iter_end(&keep);
    cfxi_base_free(g->allocator, nodes, bytes);
    if (status != CFX_OK)
        return status;
    *result = value;
    if (output)
        *output = end;
    return CFX_OK;
}
