/* clone.c - a copy of a whole graph in an arena of its own.
 *
 * The source is valid, so nothing is checked again: structs are filled in directly, and marks
 * number the nodes, so that finding a copy is one array access. Use lists are copied, not derived
 * from the arguments, because their order is visible. Linear in nodes and edges; what counts is
 * how often the nodes pass through the caches, so nearly all is done in one walk.
 */
#include "callee_impl.h"
#include "walk_impl.h"

typedef struct cloner {
    cfx_graph *src, *dst;
    cfx_node **nodes;       /* the copies, by position */
    const cfx_node **pending;  /* those of `src` whose use lists are yet to be made */
    size_t n_pending;
    bool shared_names;      /* a node has been met that does not own its name */
    uint32_t stamp;
    uint32_t *locations;    /* by number in `src`: the number in `dst`, 0 if not copied yet */
    size_t n_nodes, n_locations;
    cfx_node_map *regions;  /* refs of regions in `src` to their copies' values */
    size_t at;              /* in the references of `src`: the regions before it are copied */
    cfx_ref *region;        /* of `src`: the one that is being copied, by the next cloner inwards */
    struct cloner *outer;   /* that copies the graph this one is a region of, or NULL */
    cfx_node_map *map;
    cfx_error *err;
    cfxi_walk walk;         /* containers that are half copied: into the array that a frame owns */
} cloner;

static cfx_node *copy_of(const cloner *c, const cfx_node *n)
{
    return c->nodes[n->mark - c->stamp];
}

/* ---- values -------------------------------------------------------------------------------- */

/* The copy's holder has one count of whatever these return. */

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

/* A string, a host value or a region. */
static cfx_status copy_leaf(cloner *c, cfx_value v, cfx_value *copy)
{
    *copy = v;
    if (cfxi_ir_is_str(v)) {
        copy->as.str = cfxi_ir_str_new(&c->dst->arena, v.as.str->data, v.as.str->size);
        if (!copy->as.str)
            return cfxi_base_nomem(c->err);
        copy->as.str->refs = 1;
    } else if (v.kind == CFX_KIND_HOST) {
        return copy_ref(c, v.as.ref, &copy->as.ref);
    } else if (v.kind == CFX_KIND_GRAPH) {
        *copy = cfx_node_map_get(c->regions, (const cfx_node *)v.as.ref);
        cfxi_ir_value_hold(*copy);
    }
    return CFX_OK;
}

static cfx_seq *new_seq(cloner *c, uint32_t size)
{
    cfx_seq *seq = cfxi_base_arena_alloc(&c->dst->arena, sizeof *seq + size * sizeof *seq->items);
    if (!seq) {
        cfxi_base_nomem(c->err);
        return NULL;
    }
    seq->refs = 1;
    seq->size = size;
    return seq;
}

/* Copies items *i, ... up to a container. */
static inline cfx_status copy_flat(cloner *c, const cfx_value *items, uint32_t n, cfx_value *to,
                                   uint32_t *i)
{
    for (; *i < n; ++*i) {
        cfx_value v = items[*i];
        if (cfxi_ir_is_seq(v))
            return CFX_OK;
        if (v.kind == CFX_KIND_NODE)
            v.as.node = copy_of(c, v.as.node);
        else if (v.kind >= CFX_KIND_STR)
            CFX_TRY(copy_leaf(c, v, &v));
        to[*i] = v;
    }
    return CFX_OK;
}

/* The copy of a container, its items still to be copied. */
static cfx_status open_copy(cloner *c, cfx_value v, cfx_value *copy)
{
    *copy = v;
    copy->as.seq = new_seq(c, v.as.seq->size);
    cfxi_walk_frame *f = copy->as.seq ? cfxi_ir_walk_into(&c->walk, v) : NULL;
    if (!f)
        return cfxi_base_nomem(c->err);
    f->own.data = copy->as.seq->items;
    return CFX_OK;
}

/* Copies the items of all containers that are open. */
static cfx_status copy_open(cloner *c)
{
    for (cfxi_walk_frame *f; (f = cfxi_ir_walk_top(&c->walk)) != NULL;) {
        cfx_value *to = f->own.data;
        CFX_TRY(copy_flat(c, f->items, f->n, to, &f->i));
        if (f->i == f->n) {
            cfxi_ir_walk_pop(&c->walk);
            continue;
        }
        const uint32_t i = f->i++;
        CFX_TRY(open_copy(c, f->items[i], &to[i]));
    }
    return CFX_OK;
}

static cfx_seq *copy_seq(cloner *c, const cfx_seq *seq, cfx_status *status)
{
    uint32_t i = 0;
    cfx_seq *copy = new_seq(c, seq->size);
    *status = copy ? copy_flat(c, seq->items, seq->size, copy->items, &i) : CFX_E_NOMEM;
    if (*status != CFX_OK || i == seq->size)
        return copy;
    cfxi_walk_frame *f = cfxi_ir_walk_items(&c->walk, CFX_KIND_TUPLE, seq->items, seq->size);
    if (!f) {
        *status = cfxi_base_nomem(c->err);
        return copy;
    }
    f->i = i;
    f->own.data = copy->items;
    *status = copy_open(c);
    return copy;
}

static cfx_status copy_value(cloner *c, cfx_value v, cfx_value *copy)
{
    if (cfxi_ir_is_seq(v)) {
        CFX_TRY(open_copy(c, v, copy));
        return copy_open(c);
    }
    *copy = v;
    if (v.kind == CFX_KIND_NODE)
        copy->as.node = copy_of(c, v.as.node);
    return v.kind == CFX_KIND_NODE ? CFX_OK : copy_leaf(c, v, copy);
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
    callee->twin->does = callee->does;
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

/* Regions come first: the host may be asked to bind them, and whatever it does then, it must not
 * meet marks that are in use. The next one to copy; NULL if all are. */
static cfx_ref *next_region(cloner *c)
{
    cfx_ref *ref;
    while ((ref = cfxi_base_set_next(&c->src->refs_table, &c->at)) != NULL)
        if (ref->kind == CFXI_REF_REGION && ref->refs > 0)
            break;
    return ref;
}

static cfx_status add_region(cloner *c, cfx_graph *copy)
{
    cfx_value v = cfx_value_region(c->dst, copy, c->err);
    cfx_graph_release(copy);
    if (v.kind == CFX_KIND_INVALID)
        return c->err->status;
    return cfx_node_map_set(c->regions, (const cfx_node *)c->region, v, c->err);
}

static cfx_status copy_rest(cloner *c)
{
    CFX_TRY(copy_scopes(c));
    cfxi_base_lock_take(&c->src->cloning);  /* marks and twins that a fork left are set anew */
    const cfx_status status = copy_nodes(c);
    cfxi_base_lock_leave(&c->src->cloning);
    return status;
}

static size_t node_bytes(const cloner *c)
{
    return c->n_nodes * (sizeof *c->nodes + sizeof *c->pending);
}

static cfx_status cloner_begin(cloner *c, cfx_graph *g, cfx_node_map *map, cfx_error *err)
{
    const cfx_allocator *allocator = g->allocator;
    *c = (cloner){.src = g, .map = map, .err = err, .n_nodes = g->size,
                  .n_locations = g->locations.size};
    cfxi_ir_walk_begin(&c->walk, allocator);
    c->dst = cfx_graph_new(allocator, g->host, err);
    c->regions = cfx_node_map_new(allocator, err);
    c->nodes = cfxi_base_alloc(allocator, node_bytes(c));
    c->locations = cfxi_base_alloc(allocator, c->n_locations * sizeof *c->locations);
    if (!c->dst || !c->regions || !c->nodes || !c->locations ||
        !cfxi_base_set_presize(&c->dst->names.names, g->size, allocator))
        return cfxi_base_nomem(err);
    memset(c->locations, 0, c->n_locations * sizeof *c->locations);
    c->pending = (const cfx_node **)(c->nodes + g->size);
    return CFX_OK;
}

/* Frees all but the copy, which is handed over; NULL, and it is released, if that has failed. */
static cfx_graph *cloner_end(cloner *c, cfx_status status)
{
    const cfx_allocator *allocator = c->src->allocator;
    cfxi_base_free(allocator, c->locations, c->n_locations * sizeof *c->locations);
    cfxi_base_free(allocator, c->nodes, node_bytes(c));
    cfx_node_map_free(c->regions);
    cfxi_ir_walk_end(&c->walk, NULL);
    if (status != CFX_OK)
        cfx_graph_release(c->dst);
    return status == CFX_OK ? c->dst : NULL;
}

/* Begins the copy of a region of the graph that `c` copies; it is on top of the stack then. */
static cfx_status push_cloner(cloner **c, cfx_ref *ref)
{
    const cfx_allocator *allocator = ref->region->allocator;
    cloner *inner = cfxi_base_alloc(allocator, sizeof *inner);
    if (!inner)
        return cfxi_base_nomem((*c)->err);
    cloner *outer = *c;
    outer->region = ref;
    *c = inner;
    const cfx_status status = cloner_begin(inner, ref->region, outer->map, outer->err);
    inner->outer = outer;
    return status;
}

/* Ends the copy on top of the stack, which is not the outermost. */
static cfx_graph *pop_cloner(cloner **c, cfx_status status)
{
    cloner *inner = *c;
    const cfx_allocator *allocator = inner->src->allocator;
    cfx_graph *copy = cloner_end(inner, status);
    *c = inner->outer;
    cfxi_base_free(allocator, inner, sizeof *inner);
    return copy;
}

/* A region is copied before the graph that it is in. */
static cfx_status clone_all(cloner **c)
{
    for (;;) {
        cfx_ref *ref = next_region(*c);
        if (ref) {
            CFX_TRY(push_cloner(c, ref));
            continue;
        }
        CFX_TRY(copy_rest(*c));
        if (!(*c)->outer)
            return CFX_OK;
        cfx_graph *copy = pop_cloner(c, CFX_OK);
        CFX_TRY(add_region(*c, copy));
    }
}

cfx_graph *cfx_graph_clone(cfx_graph *g, cfx_node_map *map, cfx_error *err)
{
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    cfx_error why = {.status = CFX_OK};
    cloner first;
    cloner *c = &first;
    cfx_status status = cloner_begin(&first, g, map, &why);
    if (status == CFX_OK)
        status = clone_all(&c);
    while (c != &first)
        pop_cloner(&c, status);
    cfx_graph *copy = cloner_end(&first, status);
    if (!copy && err)
        *err = why;
    return copy;
}
