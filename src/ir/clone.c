/* clone.c - a copy of a whole graph in an arena of its own.
 *
 * The source is valid, so nothing is checked again: structs are filled in directly, and marks
 * number the nodes, so that finding a copy is one array access. Use lists are copied, not derived
 * from the arguments, because their order is visible. Linear in nodes and edges; what counts is
 * how often the nodes pass through the caches, so nearly all is done in one walk.
 */
#include "callee_impl.h"

typedef struct cloner {
    cfx_graph *src, *dst;
    cfx_node **nodes;       /* the copies, by position */
    const cfx_node **pending;  /* those of `src` whose use lists are yet to be made */
    size_t n_pending;
    bool shared_names;      /* a node has been met that does not own its name */
    uint32_t stamp;
    uint32_t *locations;    /* by number in `src`: the number in `dst`, 0 if not copied yet */
    cfx_node_map *regions;  /* refs of regions in `src` to their copies' values */
    cfx_node_map *map;
    cfx_error *err;
} cloner;

static cfx_node *copy_of(const cloner *c, const cfx_node *n)
{
    return c->nodes[n->mark - c->stamp];
}

/* ---- values -------------------------------------------------------------------------------- */

/* The copy's holder has one count of whatever these return. */
static cfx_status copy_value(cloner *c, cfx_value v, cfx_value *copy);

static cfx_seq *copy_seq(cloner *c, const cfx_seq *seq, cfx_status *status)
{
    cfx_seq *copy =
        cfxi_base_arena_alloc(&c->dst->arena, sizeof *seq + seq->size * sizeof *seq->items);
    if (!copy) {
        *status = cfxi_base_nomem(c->err);
        return NULL;
    }
    copy->refs = 1;
    copy->size = seq->size;
    for (uint32_t i = 0; i < seq->size && *status == CFX_OK; i++) {
        cfx_value v = seq->items[i];
        if (v.kind == CFX_KIND_NODE)
            v.as.node = copy_of(c, v.as.node);
        else if (v.kind >= CFX_KIND_STR)
            *status = copy_value(c, v, &v);
        copy->items[i] = v;
    }
    return copy;
}

/* What the host has told about an object need not be asked again. */
static cfx_status copy_ref_name(cloner *c, const cfx_ref *ref, cfx_ref *copy)
{
    if (ref->name && !copy->name)
        copy->name = cfxi_ir_str_new(&c->dst->arena, ref->name->data, ref->name->size);
    return ref->name && !copy->name ? cfxi_base_nomem(c->err) : CFX_OK;
}

static cfx_status copy_ref(cloner *c, cfx_ref *ref, cfx_ref **copy)
{
    *copy = cfxi_ir_ref_copy(c->dst, c->src, ref, c->err);
    if (!*copy)
        return c->err->status;
    ++(*copy)->refs;
    return copy_ref_name(c, ref, *copy);
}

static cfx_status copy_value(cloner *c, cfx_value v, cfx_value *copy)
{
    cfx_status status = CFX_OK;
    *copy = v;
    if (v.kind == CFX_KIND_NODE) {
        copy->as.node = copy_of(c, v.as.node);
    } else if (cfxi_ir_is_seq(v)) {
        copy->as.seq = copy_seq(c, v.as.seq, &status);
    } else if (cfxi_ir_is_str(v)) {
        copy->as.str = cfxi_ir_str_new(&c->dst->arena, v.as.str->data, v.as.str->size);
        if (!copy->as.str)
            return cfxi_base_nomem(c->err);
        copy->as.str->refs = 1;
    } else if (v.kind == CFX_KIND_HOST) {
        status = copy_ref(c, v.as.ref, &copy->as.ref);
    } else if (v.kind == CFX_KIND_GRAPH) {
        *copy = cfx_node_map_get(c->regions, (const cfx_node *)v.as.ref);
        cfxi_ir_value_hold(*copy);
    }
    return status;
}

/* Regions come first: the host may be asked to bind them, and whatever it does then, it must not
 * meet marks that are in use. */
static cfx_status copy_regions(cloner *c)
{
    size_t at = 0;
    cfx_ref *ref;
    while ((ref = cfxi_ir_table_next(&c->src->refs_table, &at))) {
        if (ref->kind != CFXI_REF_REGION || ref->refs == 0)
            continue;
        cfx_graph *copy = cfx_graph_clone(ref->region, c->map, c->err);
        if (!copy)
            return c->err->status;
        cfx_value v = cfx_value_region(c->dst, copy, c->err);
        cfx_graph_release(copy);
        if (v.kind == CFX_KIND_INVALID)
            return c->err->status;
        CFX_TRY(cfx_node_map_set(c->regions, (const cfx_node *)ref, v, c->err));
    }
    return CFX_OK;
}

/* ---- scopes, locations, callees ------------------------------------------------------------ */

/* Scopes keep their numbers. */
static cfx_status copy_scopes(cloner *c)
{
    for (uint32_t i = 1; i <= c->src->scopes.size; i++) {
        const cfx_graph *src = c->src;
        if (!cfx_graph_intern_stack(c->dst, cfx_graph_stack_outer(src, i),
                                    cfx_graph_stack_path(src, i), cfx_graph_stack_type(src, i),
                                    cfx_graph_stack_object(src, i), c->err))
            return c->err->status;
    }
    return CFX_OK;
}

/* Locations that no node has any more are left behind. */
static cfx_status copy_location(cloner *c, const cfx_node *n, cfx_node *copy)
{
    uint32_t *number = &c->locations[n->location - 1];
    if (!*number) {
        const cfxi_location *at = cfxi_ir_location_of(n);
        *number = cfx_graph_intern_location(c->dst, at->file->data, at->line, c->err);
        if (!*number)
            return c->err->status;
    }
    copy->location = *number;
    return CFX_OK;
}

/* Each callee knows its copy as its `twin` meanwhile. */
static cfx_status copy_callee(cloner *c, cfxi_callee *callee)
{
    const cfx_ref *ref = callee->ref;
    cfx_target target = {.object = ref->object};
    if (!ref->object)
        target = (cfx_target){.name = ref->name->data, .size = ref->name->size};
    callee->twin = cfxi_ir_callee_get(c->dst, (cfx_opcode)callee->op, target, c->err);
    if (!callee->twin)
        return c->err->status;
    callee->twin->impure = callee->impure;
    callee->twin->row = callee->row;
    callee->twin->form = callee->form;
    return copy_ref_name(c, ref, callee->twin->ref);
}

static cfx_status copy_callees(cloner *c)
{
    for (int op = 0; op < CFX_OPCODE_COUNT; op++)
        for (cfxi_callee *callee = c->src->callees[op]; callee; callee = callee->next)
            if (callee->first)  /* else only erased nodes have it */
                CFX_TRY(copy_callee(c, callee));
    return CFX_OK;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Room for every node, so that arguments can point at nodes that come later. */
static cfx_status number_nodes(cloner *c)
{
    c->stamp = cfxi_ir_graph_stamp(c->src, (uint32_t)c->src->size);
    uint32_t i = 0;
    for (cfx_node *n = c->src->root.next; n != &c->src->root; n = n->next, i++) {
        n->mark = c->stamp + i;
        c->nodes[i] = cfxi_base_arena_alloc(&c->dst->arena, sizeof *n);
        if (!c->nodes[i])
            return cfxi_base_nomem(c->err);
    }
    return CFX_OK;
}

/* A single use, the common case, makes a list of one at once; other lists have to wait. */
static cfx_status copy_inputs(cloner *c, const cfx_node *n, cfx_node *copy)
{
    cfx_use *edge = cfxi_base_arena_alloc(&c->dst->arena, n->n_inputs * sizeof *edge);
    if (!edge)
        return cfxi_base_nomem(c->err);
    copy->inputs = edge;
    copy->n_inputs = n->n_inputs;
    for (uint32_t i = 0; i < n->n_inputs; i++, edge++) {
        const cfx_node *def = n->inputs[i].def;
        *edge = (cfx_use){.def = copy_of(c, def), .user = copy, .prev = edge, .next = edge,
                          .count = n->inputs[i].count};
        if (def->n_users == 1 && def->mark < n->mark)
            edge->def->users = edge;
        else if (def->n_users == 1)
            c->pending[c->n_pending++] = def;
    }
    return CFX_OK;
}

static cfx_status copy_type(cloner *c, const cfx_node *n, cfx_node *copy)
{
    copy->ext = cfxi_base_arena_alloc(&c->dst->arena, sizeof *copy->ext);
    if (!copy->ext)
        return cfxi_base_nomem(c->err);
    copy->ext->type = cfx_value_invalid();
    return copy_value(c, n->ext->type, &copy->ext->type);
}

static cfx_status copy_args(cloner *c, const cfx_node *n, cfx_node *copy)
{
    cfx_status status = CFX_OK;
    if (n->args)
        copy->args = copy_seq(c, n->args, &status);
    if (n->kwargs && status == CFX_OK)
        copy->kwargs = copy_seq(c, n->kwargs, &status);
    if (n->n_inputs && status == CFX_OK)
        status = copy_inputs(c, n, copy);
    return status;
}

/* Names that were given by hand may be on several nodes, of which one at most owns it. As long as
 * every node owns its name, it cannot be taken. */
static cfx_status copy_name(cloner *c, const cfx_node *n, cfx_node *copy)
{
    const cfxi_name *from = n->name;
    c->shared_names = c->shared_names || from->owner != n;
    cfxi_name *name = cfxi_ir_namespace_keep(&c->dst->names, from->data, from->size,
                                             !c->shared_names, c->err);
    if (!name)
        return c->err->status;
    if (!name->owner)
        name->owner = copy;
    copy->name = name;
    return CFX_OK;
}

/* Fills in a node and puts it on the lists. */
static cfx_status copy_node(cloner *c, const cfx_node *n, cfx_node *copy)
{
    cfx_graph *g = c->dst;
    *copy = *n;  /* order, scope, depth and number of users stay; faster than clearing it */
    copy->graph = g;
    copy->args = copy->kwargs = NULL;
    copy->ext = NULL;
    copy->inputs = copy->users = NULL;
    copy->binding = NULL;
    copy->n_inputs = copy->mark = copy->location = 0;
    copy->flags = 0;
    copy->pins = 0;
    CFX_TRY(copy_name(c, n, copy));
    copy->prev = g->root.prev;
    copy->next = &g->root;
    copy->prev->next = copy;
    g->root.prev = copy;
    g->size++;
    cfxi_ir_callee_add(n->callee->twin, copy);
    if (n->n_users > 1)
        c->pending[c->n_pending++] = n;
    CFX_TRY(copy_args(c, n, copy));
    if (n->ext)
        CFX_TRY(copy_type(c, n, copy));
    return n->location ? copy_location(c, n, copy) : CFX_OK;
}

/* The list of `copy`'s uses, in the order that they have in the source. */
static void copy_users(const cloner *c, const cfx_node *n, cfx_node *copy)
{
    const cfx_use *use = n->users;
    cfx_use *last = NULL;
    for (uint32_t i = 0; i < n->n_users; i++, use = use->next) {
        cfx_use *edge = &copy_of(c, use->user)->inputs[use - use->user->inputs];
        edge->prev = last;
        if (last)
            last->next = edge;
        else
            copy->users = edge;
        last = edge;
    }
    last->next = copy->users;
    copy->users->prev = last;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status fill_map(const cloner *c)
{
    if (!cfxi_ir_node_map_reserve(c->map, c->src->size))
        return cfxi_base_nomem(c->err);
    cfx_node *const *copy = c->nodes;
    for (const cfx_node *n = c->src->root.next; n != &c->src->root; n = n->next)
        CFX_TRY(cfx_node_map_set(c->map, n, cfx_value_node(*copy++), c->err));
    return CFX_OK;
}

static cfx_status copy_nodes(cloner *c)
{
    const cfx_graph *src = c->src;
    CFX_TRY(copy_callees(c));
    CFX_TRY(number_nodes(c));
    cfx_node *const *copy = c->nodes;
    for (const cfx_node *n = src->root.next; n != &src->root; n = n->next)
        CFX_TRY(copy_node(c, n, *copy++));
    for (size_t i = 0; i < c->n_pending; i++)
        copy_users(c, c->pending[i], c->nodes[c->pending[i]->mark - c->stamp]);
    return c->map ? fill_map(c) : CFX_OK;
}

static cfx_status clone_into(cloner *c)
{
    if (!cfxi_ir_table_presize(&c->dst->names.names, c->src->size, c->dst->allocator))
        return cfxi_base_nomem(c->err);
    CFX_TRY(copy_regions(c));
    CFX_TRY(copy_scopes(c));
    pthread_mutex_lock(&c->src->cloning);
    const cfx_status status = copy_nodes(c);
    pthread_mutex_unlock(&c->src->cloning);
    return status;
}

cfx_graph *cfx_graph_clone(cfx_graph *g, cfx_node_map *map, cfx_error *err)
{
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    cfx_error why = {.status = CFX_OK};
    cloner c = {.src = g, .map = map, .err = &why};
    const cfx_allocator *allocator = g->allocator;
    size_t node_bytes = g->size * (sizeof *c.nodes + sizeof *c.pending);
    size_t location_bytes = g->locations.size * sizeof *c.locations;
    cfx_status status = CFX_E_NOMEM;
    c.dst = cfx_graph_new(allocator, g->host, &why);
    c.regions = cfx_node_map_new(allocator, &why);
    c.nodes = cfxi_base_alloc(allocator, node_bytes);
    c.locations = cfxi_base_alloc(allocator, location_bytes);
    if (c.dst && c.regions && c.nodes && c.locations) {
        memset(c.locations, 0, location_bytes);
        c.pending = (const cfx_node **)(c.nodes + g->size);
        status = clone_into(&c);
    }
    cfxi_base_free(allocator, c.locations, location_bytes);
    cfxi_base_free(allocator, c.nodes, node_bytes);
    cfx_node_map_free(c.regions);
    if (status == CFX_OK)
        return c.dst;
    cfx_graph_release(c.dst);
    if (why.status == CFX_OK)
        cfxi_base_nomem(&why);
    if (err)
        *err = why;
    return NULL;
}
