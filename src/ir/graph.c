/* graph.c - the life of a graph: creation, the list of nodes, erasing, iteration, hooks. */
#include "callee_impl.h"

_Static_assert(CFX_OPCODE_COUNT == 6, "six opcodes, for ever: new behaviour is a row of ops.def");

/* ---- opcodes ------------------------------------------------------------------------------- */

static const char *const opcode_names[CFX_OPCODE_COUNT] = {
#define CFX_OPCODE(id, name, target) name,
#include <cfx/opcode.def>
#undef CFX_OPCODE
};

const char *cfx_opcode_name(cfx_opcode op)
{
    return (unsigned)op < CFX_OPCODE_COUNT ? opcode_names[op] : "unknown";
}

bool cfx_opcode_parse(const char *name, cfx_opcode *op)
{
    for (int i = 0; i < CFX_OPCODE_COUNT; i++) {
        if (strcmp(name, opcode_names[i]) == 0) {
            *op = (cfx_opcode)i;
            return true;
        }
    }
    return false;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void init(cfx_graph *g, const cfx_allocator *allocator, const cfx_host *host)
{
    memset(g, 0, sizeof *g);
    atomic_init(&g->refs, 1);
    g->allocator = allocator;
    g->host = host;
    g->root.graph = g;
    g->root.prev = g->root.next = &g->root;
    g->root.op = CFX_OPCODE_COUNT;
    g->stamp = 1;
    g->next_hook = 1;
    cfxi_base_arena_init(&g->arena, allocator);
    cfxi_ir_namespace_init(&g->names, &g->arena);
    g->empty = cfxi_base_arena_alloc(&g->arena, sizeof *g->empty);
    if (g->empty)
        *g->empty = (cfx_seq){.refs = 1};
}

cfx_graph *cfx_graph_new(const cfx_allocator *allocator, const cfx_host *host, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_graph *g = cfxi_base_alloc(allocator, sizeof *g);
    if (g)
        init(g, allocator, host);
    if (g && g->empty && cfxi_base_lock_new(&g->cloning))
        return g;
    if (g)
        cfxi_base_arena_release(&g->arena);
    cfxi_base_free(allocator, g, sizeof *g);
    cfxi_base_nomem(err);
    return NULL;
}

cfx_graph *cfx_graph_retain(cfx_graph *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

/* Letting go may run the host's code, which must not find a way back into this graph. */
static void let_go_of_refs(cfx_graph *g)
{
    size_t at = 0;
    for (cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;)
        if (ref->region && ref->region->parent == g)
            ref->region->parent = NULL;
    at = 0;
    for (cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;) {
        if (ref->object)
            g->host->release(g->host->ctx, ref->object);
        else if (ref->region)
            cfx_graph_release(ref->region);
    }
}

void cfx_graph_release(cfx_graph *g)
{
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    const cfx_allocator *allocator = g->allocator;
    let_go_of_refs(g);
    cfxi_base_set_free(&g->refs_table, allocator);
    cfxi_base_set_free(&g->location_table, allocator);
    cfxi_base_set_free(&g->scope_table, allocator);
    cfxi_base_vec_free(&g->locations, sizeof(cfxi_location *), allocator);
    cfxi_base_vec_free(&g->scopes, sizeof(cfxi_scope *), allocator);
    cfxi_base_vec_free(&g->hooks, sizeof(cfxi_hook), allocator);
    cfxi_ir_namespace_release(&g->names);
    cfxi_base_arena_release(&g->arena);
    cfxi_base_lock_free(&g->cloning);
    cfxi_base_free(allocator, g, sizeof *g);
}

/* ---- reading and editing ------------------------------------------------------------------- */

bool cfx_graph_is_frozen(const cfx_graph *g)
{
    while (g && g->readers == 0)
        g = g->parent;
    return g != NULL;
}

void cfx_graph_on_edit(cfx_graph *g, cfx_edit_fn *fn, void *ctx)
{
    g->on_edit = fn;
    g->on_edit_ctx = ctx;
}

/* Tells those who wait for an edit of `g` or of a graph that it is a region of. */
static void announce_edit(cfx_graph *g)
{
    for (; g; g = g->parent) {
        cfx_edit_fn *fn = g->on_edit;
        if (!fn)
            continue;
        g->on_edit = NULL;
        cfxi_ir_graph_freeze(g);
        fn(g->on_edit_ctx, g);
        cfxi_ir_graph_thaw(g);
    }
}

cfx_status cfxi_ir_graph_begin_edit(cfx_graph *g, cfx_error *err)
{
    if (cfx_graph_is_frozen(g))
        return cfx_error_set(err, CFX_E_GRAPH, "the graph cannot be edited while it is being "
                             "printed, compared or checked");
    announce_edit(g);
    return CFX_OK;
}

/* ---- the list ------------------------------------------------------------------------------ */

void cfxi_ir_list_insert(cfx_node *before, cfx_node *n)
{
    n->prev = before->prev;
    n->next = before;
    before->prev->next = n;
    before->prev = n;
    cfxi_ir_order_assign(n);
}

void cfxi_ir_list_remove(cfx_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
}

cfx_node *cfxi_ir_insert_before(const cfx_graph *g)
{
    cfx_node *root = (cfx_node *)(uintptr_t)&g->root;
    cfx_node *at = g->insert.node ? g->insert.node : root;
    return g->insert.after ? at->next : at;
}

cfx_insert_point cfx_graph_insert_point(const cfx_graph *g) { return g->insert; }

cfx_status cfx_graph_set_insert_point(cfx_graph *g, cfx_insert_point at, cfx_error *err)
{
    if (at.node && at.node->graph != g)
        return cfx_error_set(err, CFX_E_GRAPH, "the insertion point is a node of another graph");
    if (at.node && cfxi_ir_node_erased(at.node))
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s was erased; choose a node that is still "
                             "in the graph as insertion point", at.node->name->data);
    if (at.node == &g->root)
        at.node = NULL;
    g->insert = at;
    return CFX_OK;
}

/* Keeps the insertion point in place when the node it refers to leaves the list. */
static void move_insert_point_off(cfx_graph *g, const cfx_node *n)
{
    if (g->insert.node != n)
        return;
    cfx_node *at = g->insert.after ? n->prev : n->next;
    g->insert.node = at == &g->root ? NULL : at;
}

/* ---- erasing ------------------------------------------------------------------------------- */

static bool has_args(const cfx_node *n) { return n->args || n->kwargs; }

static void drop_args(cfx_node *n)
{
    cfx_seq *empty = n->graph->empty;
    cfxi_arg_change none = {.node = n, .args = cfxi_ir_seq_value(CFX_KIND_TUPLE, empty, 0),
                            .kwargs = cfxi_ir_seq_value(CFX_KIND_DICT, empty, 0)};
    cfxi_ir_args_commit(&none);
}

/* Leaves a node that is erased the literals among its arguments, for whoever has pinned it; nothing
 * if memory is out. */
static void keep_literals(cfx_node *n)
{
    cfxi_arg_change bare;
    cfx_graph *g = n->graph;
    const bool settling = g->settling;
    g->settling = true;  /* the host's code must wait until the node is off the list */
    cfx_value args = cfxi_ir_value_bare(g, cfx_node_args(n), NULL);
    cfx_value kwargs = cfx_value_invalid();
    if (args.kind != CFX_KIND_INVALID)
        kwargs = cfxi_ir_value_bare(g, cfx_node_kwargs(n), NULL);
    if (kwargs.kind != CFX_KIND_INVALID &&
        cfxi_ir_args_prepare(&bare, n, args, kwargs, NULL) == CFX_OK) {
        cfxi_ir_args_commit(&bare);
    } else {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
        drop_args(n);
    }
    g->settling = settling;
}

static void recycle(cfx_graph *g, cfx_node *n)
{
    cfxi_callee *callee = n->callee;
    if (has_args(n))
        drop_args(n);
    if (n->ext) {
        cfxi_ir_value_drop(g, n->ext->type);
        cfxi_base_arena_free(&g->arena, n->ext, sizeof *n->ext);
    }
    callee->count--;
    cfxi_ir_callee_tidy(g, callee);
    cfxi_base_arena_free(&g->arena, n, sizeof *n);
}

/* Erased nodes are recycled together, once nothing can reach any of them: an erased node still
 * points at its old neighbours, which may be erased as well. */
static void drain_limbo(cfx_graph *g)
{
    while (g->limbo && g->open_iters == 0 && g->dead_pins == 0) {
        cfx_node *n = g->limbo;
        g->limbo = n->same_next;
        recycle(g, n);
    }
}

void cfxi_ir_node_erase(cfx_node *n)
{
    cfx_graph *g = n->graph;
    if (n->pins > 0 && has_args(n))
        keep_literals(n);
    else
        drop_args(n);
    move_insert_point_off(g, n);
    cfxi_ir_list_remove(n);
    cfxi_ir_callee_unlist(n);
    if (n->name->owner == n)
        n->name->owner = NULL;
    n->flags |= CFXI_NODE_ERASED;
    g->dead_pins += n->pins > 0;
    n->same_next = g->limbo;
    g->limbo = n;
    if (n->binding && g->host && g->host->unbind) {
        n->same_prev = g->unbound;
        g->unbound = n;
    }
    g->size--;
    g->version++;
}

static cfx_status check_erase(cfx_graph *g, const cfx_node *n, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    if (n->graph != g)
        return cfx_error_set(err, CFX_E_GRAPH, "Attempting to remove %s from wrong graph!",
                             cfxi_ir_node_is_root(n) ? "root" : n->name->data);
    if (cfxi_ir_node_is_root(n))
        return cfx_error_set(err, CFX_E_GRAPH, "the root of a graph cannot be erased");
    if (cfxi_ir_node_erased(n))
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s has already been erased", n->name->data);
    CFX_TRY(cfxi_ir_graph_begin_edit(g, err));
    if (n->n_users == 0)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_GRAPH, "Tried to erase Node %s but it still had %u users in "
                         "the graph, the first being %s; replace its uses first",
                         n->name->data, n->n_users, n->users->user->name->data);
}

cfx_status cfx_graph_erase(cfx_graph *g, cfx_node *n, cfx_error *err)
{
    CFX_TRY(check_erase(g, n, err));
    if (g->hooks.size) {
        CFX_TRY(cfxi_ir_run_hooks(g, CFX_HOOK_ERASE, n, cfx_value_invalid(), NULL, err));
        CFX_TRY(check_erase(g, n, err));  /* a hook may have edited the graph */
    }
    cfxi_ir_node_erase(n);
    drain_limbo(g);
    cfxi_ir_graph_settle(g);
    return CFX_OK;
}

void cfx_graph_clear(cfx_graph *g)
{
    if (cfxi_ir_graph_begin_edit(g, NULL) != CFX_OK)
        return;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        drop_args(n);
    while (g->root.next != &g->root)
        cfxi_ir_node_erase(g->root.next);
    drain_limbo(g);
    for (cfx_node *n = g->limbo; n; n = n->same_next) {
        drop_args(n);
        cfxi_ir_node_set_type(n, cfx_value_invalid());
    }
    cfxi_ir_scopes_let_go(g);
    cfxi_ir_graph_settle(g);
}

void cfx_node_pin(cfx_node *n)
{
    if (n->pins < CFXI_MAX_PINS)
        n->pins++;
    n->graph->dead_pins += n->pins == 1 && cfxi_ir_node_erased(n);
}

void cfx_node_unpin(cfx_node *n)
{
    cfx_graph *g = n->graph;
    if (n->pins == 0 || n->pins == CFXI_MAX_PINS)
        return;
    n->pins--;
    if (n->pins == 0 && cfxi_ir_node_erased(n)) {
        g->dead_pins--;
        if (has_args(n))
            drop_args(n);  /* now: the node itself may have to wait for others */
        drain_limbo(g);
        cfxi_ir_graph_settle(g);
    }
}

/* ---- iteration ----------------------------------------------------------------------------- */

void cfx_iter_begin(cfx_iter *it, cfx_graph *g, bool reverse)
{
    *it = (cfx_iter){g, &g->root, reverse};
    g->open_iters++;
}

cfx_node *cfx_iter_next(cfx_iter *it)
{
    cfx_node *n = it->current;
    do
        n = it->reverse ? n->prev : n->next;
    while (cfxi_ir_node_erased(n));
    it->current = n;
    return cfxi_ir_node_is_root(n) ? NULL : n;
}

void cfx_iter_end(cfx_iter *it)
{
    cfx_graph *g = it->graph;
    if (!g)
        return;
    it->graph = NULL;
    g->open_iters--;
    drain_limbo(g);
    cfxi_ir_graph_settle(g);
}

/* ---- hooks --------------------------------------------------------------------------------- */

uint32_t cfx_graph_add_hook(cfx_graph *g, cfx_hook_kind kind, cfx_hook_fn *fn, void *ctx,
                            cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&g->hooks, 1, sizeof(cfxi_hook), g->allocator)) {
        cfxi_base_nomem(err);
        return 0;
    }
    cfxi_hook *hooks = g->hooks.data;
    hooks[g->hooks.size++] = (cfxi_hook){fn, ctx, g->next_hook, kind};
    return g->next_hook++;
}

bool cfx_graph_remove_hook(cfx_graph *g, uint32_t id)
{
    cfxi_hook *hooks = g->hooks.data;
    for (size_t i = 0; i < g->hooks.size; i++) {
        if (hooks[i].id != id)
            continue;
        memmove(&hooks[i], &hooks[i + 1], (--g->hooks.size - i) * sizeof *hooks);
        return true;
    }
    return false;
}

cfx_status cfxi_ir_run_hooks(cfx_graph *g, cfx_hook_kind kind, cfx_node *n, cfx_value with,
                             cfx_node *user, cfx_error *err)
{
    cfx_status status = CFX_OK;
    g->open_iters++;  /* what a hook erases stays readable for us */
    for (size_t i = 0; i < g->hooks.size && status == CFX_OK; i++) {
        cfxi_hook hook = ((cfxi_hook *)g->hooks.data)[i];
        if (hook.kind == kind)
            status = hook.fn(hook.ctx, n, with, user, err);
    }
    g->open_iters--;
    return status == CFX_OK ? status : cfxi_base_failed(err, status);
}

/* ---- reading ------------------------------------------------------------------------------- */

const cfx_host *cfx_graph_host(const cfx_graph *g) { return g->host; }
const cfx_allocator *cfx_graph_allocator(const cfx_graph *g) { return g->allocator; }
size_t cfx_graph_size(const cfx_graph *g) { return g ? g->size : 0; }
cfx_graph *cfx_graph_parent(const cfx_graph *g) { return g->parent; }
uint64_t cfx_graph_version(const cfx_graph *g) { return g->version; }
void *cfx_graph_binding(const cfx_graph *g) { return g->binding; }
void cfx_graph_set_binding(cfx_graph *g, void *binding) { g->binding = binding; }

size_t cfx_graph_memory(const cfx_graph *g)
{
    const cfxi_hash_set *const tables[] = {&g->refs_table, &g->location_table, &g->scope_table,
                                        &g->names.names, &g->names.bases};
    size_t bytes = sizeof *g + g->arena.bytes + g->hooks.capacity * sizeof(cfxi_hook) +
                   (g->locations.capacity + g->scopes.capacity) * sizeof(void *);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        bytes += cfxi_base_set_bytes(tables[i]);
    return bytes;
}

static cfx_node *unless_root(cfx_node *n) { return cfxi_ir_node_is_root(n) ? NULL : n; }

cfx_node *cfx_graph_first(const cfx_graph *g) { return unless_root(g->root.next); }
cfx_node *cfx_graph_last(const cfx_graph *g) { return unless_root(g->root.prev); }
cfx_node *cfx_node_next(const cfx_node *n) { return unless_root(n->next); }
cfx_node *cfx_node_prev(const cfx_node *n) { return unless_root(n->prev); }
cfx_node *cfx_graph_root(cfx_graph *g) { return &g->root; }

cfx_node *cfx_graph_find(const cfx_graph *g, const char *name)
{
    const cfxi_name *entry = cfxi_ir_namespace_find(&g->names, name, strlen(name));
    return entry ? entry->owner : NULL;
}
