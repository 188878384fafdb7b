/* use.c - use edges: who uses whom, kept in step with the arguments.
 *
 * A node's edges to what it uses are one array; each edge is also on the circular list of what it
 * points at. New arguments are prepared first (all that can fail) and committed then.
 */
#include "walk_impl.h"

/* ---- marks --------------------------------------------------------------------------------- */

uint32_t cfxi_ir_graph_stamp(cfx_graph *g, uint32_t n)
{
    if (g->stamp > UINT32_MAX - n - 1) {
        for (cfx_node *node = g->root.next; node != &g->root; node = node->next)
            node->mark = 0;
        g->stamp = 1;
    }
    uint32_t stamp = g->stamp;
    g->stamp += n ? n : 1;
    return stamp;
}

uint32_t cfxi_ir_graph_number(cfx_graph *g)
{
    uint32_t stamp = cfxi_ir_graph_stamp(g, (uint32_t)g->size);
    uint32_t mark = stamp;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        n->mark = mark++;
    return stamp;
}

/* ---- walking arguments --------------------------------------------------------------------- */

enum { FEW = 16, MOST_USES = 1 << 30 };  /* uses in the arguments of one node */

static cfx_status count_leaf(const cfx_graph *g, cfx_value v, uint32_t *total, cfx_error *err)
{
    if (!cfxi_ir_is_plain(v))
        CFX_TRY(cfxi_ir_value_check(g, v, err));
    *total += v.kind == CFX_KIND_NODE;
    if (*total > MOST_USES)
        return cfx_error_set(err, CFX_E_LIMIT, "the arguments of one node refer to nodes more than "
                             "%d times", MOST_USES);
    return CFX_OK;
}

/* Most arguments hold no containers: the functions below begin a walk only for those that do. */
static void walk_rest(cfxi_walk *w, const cfx_graph *g, const cfx_seq *seq, uint32_t i)
{
    cfxi_ir_walk_begin(w, g->allocator);
    cfxi_ir_walk_items(w, CFX_KIND_TUPLE, seq->items + i, seq->size - i);
}

static cfx_status count_deep(const cfx_graph *g, const cfx_seq *seq, uint32_t i, uint32_t *total,
                             cfx_error *err)
{
    cfxi_walk w;
    cfx_status status = CFX_OK;
    walk_rest(&w, g, seq, i);
    for (cfx_value v; status == CFX_OK && cfxi_ir_walk_leaf(&w, &v);)
        status = count_leaf(g, v, total, err);
    const cfx_status walked = cfxi_ir_walk_end(&w, status == CFX_OK ? err : NULL);
    return status == CFX_OK ? walked : status;
}

static cfx_status count_nodes(const cfx_graph *g, const cfx_seq *seq, uint32_t *total,
                              cfx_error *err)
{
    for (uint32_t i = 0; i < seq->size; i++) {
        if (cfxi_ir_is_seq(seq->items[i]))
            return count_deep(g, seq, i, total, err);
        CFX_TRY(count_leaf(g, seq->items[i], total, err));
    }
    return CFX_OK;
}

/* Adds to *n how many distinct nodes there are; marks them. */
static cfx_status count_distinct(const cfx_graph *g, const cfx_seq *seq, uint32_t stamp,
                                 uint32_t *n, cfx_error *err)
{
    cfxi_walk w;
    walk_rest(&w, g, seq, 0);
    for (cfx_value v; cfxi_ir_walk_leaf(&w, &v);) {
        if (v.kind != CFX_KIND_NODE)
            continue;
        *n += v.as.node->mark != stamp;
        v.as.node->mark = stamp;
    }
    return cfxi_ir_walk_end(&w, err);
}

/* Counts a node on its edge. Marks number the distinct ones: from `stamp` on, `n` so far. */
static inline void fill_edge(cfx_node *def, uint32_t stamp, cfx_use *edges, uint32_t *n)
{
    if (def->mark < stamp) {
        def->mark = stamp + *n;
        edges[(*n)++] = (cfx_use){.def = def};
    }
    edges[def->mark - stamp].count++;
}

/* The rest of the items, from the first container on: apart, so that the usual call needs no walk
 * on its stack. */
static cfx_status fill_deep(const cfx_graph *g, const cfx_seq *seq, uint32_t i, uint32_t stamp,
                            cfx_use *edges, uint32_t *n, cfx_error *err)
{
    cfxi_walk w;
    walk_rest(&w, g, seq, i);
    for (cfx_value v; cfxi_ir_walk_leaf(&w, &v);)
        if (v.kind == CFX_KIND_NODE)
            fill_edge(v.as.node, stamp, edges, n);
    return cfxi_ir_walk_end(&w, err);
}

static cfx_status fill_edges(const cfx_graph *g, const cfx_seq *seq, uint32_t stamp,
                             cfx_use *edges, uint32_t *n, cfx_error *err)
{
    for (uint32_t i = 0; i < seq->size; i++) {
        if (cfxi_ir_is_seq(seq->items[i]))
            return fill_deep(g, seq, i, stamp, edges, n, err);
        if (seq->items[i].kind == CFX_KIND_NODE)
            fill_edge(seq->items[i].as.node, stamp, edges, n);
    }
    return CFX_OK;
}

/* ---- the use list -------------------------------------------------------------------------- */

static void link_edge(cfx_use *edge)
{
    cfx_node *def = edge->def;
    cfx_use *first = def->users;
    if (first) {
        edge->prev = first->prev;
        edge->next = first;
        first->prev->next = edge;
        first->prev = edge;
    } else {
        edge->prev = edge->next = edge;
        def->users = edge;
    }
    def->n_users++;
}

static void unlink_edge(cfx_use *edge)
{
    cfx_node *def = edge->def;
    if (edge->next == edge) {
        def->users = NULL;
    } else {
        edge->prev->next = edge->next;
        edge->next->prev = edge->prev;
        if (def->users == edge)
            def->users = edge->next;
    }
    def->n_users--;
}

/* `to` takes the place of `from` on the list. */
static void move_edge(cfx_use *from, cfx_use *to)
{
    bool alone = from->next == from;
    to->prev = alone ? to : from->prev;
    to->next = alone ? to : from->next;
    to->prev->next = to;
    to->next->prev = to;
    if (from->def->users == from)
        from->def->users = to;
}

/* ---- changing arguments -------------------------------------------------------------------- */

static cfx_status check_kwargs(cfx_value kwargs, cfx_error *err)
{
    const cfx_value *items = kwargs.as.seq->items;
    for (size_t i = 0; i < kwargs.as.seq->size; i += 2)
        if (items[i].kind != CFX_KIND_STR)
            return cfx_error_set(err, CFX_E_TYPE, "the keys of kwargs must be strings, not %s",
                                 cfx_kind_name(items[i].kind));
    return CFX_OK;
}

static cfx_status check_shape(const cfx_graph *g, cfx_value args, cfx_value kwargs, cfx_error *err)
{
    if (!cfxi_ir_is_plain(args))
        CFX_TRY(cfxi_ir_value_check(g, args, err));
    if (!cfxi_ir_is_plain(kwargs))
        CFX_TRY(cfxi_ir_value_check(g, kwargs, err));
    if (args.kind != CFX_KIND_TUPLE)
        return cfx_error_set(err, CFX_E_TYPE, "args must be a tuple, not %s",
                             cfx_kind_name(args.kind));
    if (kwargs.kind != CFX_KIND_DICT)
        return cfx_error_set(err, CFX_E_TYPE, "kwargs must be a dict, not %s",
                             cfx_kind_name(kwargs.kind));
    return check_kwargs(kwargs, err);
}

static void free_inputs(cfx_graph *g, cfx_use *inputs, uint32_t n)
{
    cfxi_base_arena_free(&g->arena, inputs, n * sizeof *inputs);
}

/* Gives back the room that nodes which are used several times do not need. */
static cfx_use *trim(cfx_graph *g, cfx_use *edges, uint32_t room, uint32_t n)
{
    cfx_use *fitting = cfxi_base_arena_alloc(&g->arena, n * sizeof *edges);
    if (fitting)
        memcpy(fitting, edges, n * sizeof *edges);
    free_inputs(g, edges, room);
    return fitting;
}

/* The edges for new arguments that mention `total` nodes; the first `change->kept` of them are for
 * what is used already. */
static cfx_status prepare_edges(cfxi_arg_change *change, uint32_t total, cfx_error *err)
{
    const cfx_node *n = change->node;
    cfx_graph *g = n->graph;
    if (total > FEW) {  /* containers can be shared: there may be far fewer nodes */
        uint32_t seen = cfxi_ir_graph_stamp(g, 1);
        total = 0;
        CFX_TRY(count_distinct(g, change->args.as.seq, seen, &total, err));
        CFX_TRY(count_distinct(g, change->kwargs.as.seq, seen, &total, err));
    }
    uint32_t room = change->kept + total;
    uint32_t stamp = cfxi_ir_graph_stamp(g, room);
    cfx_use *edges = cfxi_base_arena_alloc(&g->arena, room * sizeof *edges);
    if (!edges)
        return cfxi_base_nomem(err);
    for (; change->n_inputs < change->kept; change->n_inputs++) {
        cfx_node *def = n->inputs[change->n_inputs].def;
        def->mark = stamp + change->n_inputs;
        edges[change->n_inputs] = (cfx_use){.def = def};
    }
    cfx_status status = fill_edges(g, change->args.as.seq, stamp, edges, &change->n_inputs, err);
    if (change->kwargs.as.seq->size && status == CFX_OK)
        status = fill_edges(g, change->kwargs.as.seq, stamp, edges, &change->n_inputs, err);
    if (status != CFX_OK) {
        free_inputs(g, edges, room);
        return status;
    }
    if (change->n_inputs < room)
        edges = trim(g, edges, room, change->n_inputs);
    change->inputs = edges;
    return edges ? CFX_OK : cfxi_base_nomem(err);
}

/* An empty container may have no array. */
static cfx_value with_array(const cfx_graph *g, cfx_value v)
{
    if (cfxi_ir_is_seq(v) && !v.as.seq)
        v.as.seq = g->empty;
    return v;
}

static cfx_status prepare(cfxi_arg_change *change, cfx_node *n, cfx_value args, cfx_value kwargs,
                          uint32_t kept, cfx_error *err)
{
    uint32_t total = 0;
    args = with_array(n->graph, args);
    kwargs = with_array(n->graph, kwargs);
    CFX_TRY(check_shape(n->graph, args, kwargs, err));
    CFX_TRY(count_nodes(n->graph, args.as.seq, &total, err));
    if (kwargs.as.seq->size)
        CFX_TRY(count_nodes(n->graph, kwargs.as.seq, &total, err));
    *change = (cfxi_arg_change){.node = n, .args = args, .kwargs = kwargs, .kept = kept};
    if (total > 0)
        CFX_TRY(prepare_edges(change, total, err));
    args.as.seq->refs += args.as.seq->size > 0;
    kwargs.as.seq->refs += kwargs.as.seq->size > 0;
    return CFX_OK;
}

cfx_status cfxi_ir_args_prepare(cfxi_arg_change *change, cfx_node *n, cfx_value args,
                                cfx_value kwargs, cfx_error *err)
{
    return prepare(change, n, args, kwargs, 0, err);
}

cfx_status cfxi_ir_args_prepare_more(cfxi_arg_change *change, cfx_node *n, cfx_value args,
                                     cfx_error *err)
{
    return prepare(change, n, args, cfx_node_kwargs(n), n->n_inputs, err);
}

static void switch_edges(cfx_node *n, cfx_use *inputs, uint32_t n_inputs, uint32_t kept)
{
    for (uint32_t i = 0; i < kept; i++)
        move_edge(&n->inputs[i], &inputs[i]);
    for (uint32_t i = kept; i < n->n_inputs; i++)
        unlink_edge(&n->inputs[i]);
    free_inputs(n->graph, n->inputs, n->n_inputs);
    n->inputs = inputs;
    n->n_inputs = n_inputs;
    for (uint32_t i = 0; i < n_inputs; i++) {
        n->inputs[i].user = n;
        if (i >= kept)
            link_edge(&n->inputs[i]);
    }
}

/* A node needs no array for no arguments, and does not hold one. */
static cfx_seq *stored(cfx_value v) { return v.as.seq->size ? v.as.seq : NULL; }

void cfxi_ir_args_commit(cfxi_arg_change *change)
{
    cfx_node *n = change->node;
    cfx_graph *g = n->graph;
    cfx_seq *old_args = n->args;
    cfx_seq *old_kwargs = n->kwargs;
    switch_edges(n, change->inputs, change->n_inputs, change->kept);
    n->args = stored(change->args);
    n->kwargs = stored(change->kwargs);
    n->args_depth = change->args.pad & 0xfff;
    n->kwargs_depth = change->kwargs.pad & 0xfff;
    n->flags |= CFXI_NODE_ARGS_CHANGED;
    if (old_args)
        cfxi_ir_value_drop(g, cfxi_ir_seq_value(CFX_KIND_TUPLE, old_args, 0));
    if (old_kwargs)
        cfxi_ir_value_drop(g, cfxi_ir_seq_value(CFX_KIND_DICT, old_kwargs, 0));
    g->version++;
}

void cfxi_ir_args_abandon(cfxi_arg_change *change)
{
    free_inputs(change->node->graph, change->inputs, change->n_inputs);
    change->args.as.seq->refs -= change->args.as.seq->size > 0;
    change->kwargs.as.seq->refs -= change->kwargs.as.seq->size > 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

bool cfx_node_args_changed(cfx_node *n)
{
    bool changed = n->flags & CFXI_NODE_ARGS_CHANGED;
    n->flags &= ~(uint32_t)CFXI_NODE_ARGS_CHANGED & 0x3;
    return changed;
}

size_t cfx_node_num_users(const cfx_node *n) { return n->n_users; }
size_t cfx_node_num_inputs(const cfx_node *n) { return n->n_inputs; }

cfx_node *cfx_node_input(const cfx_node *n, size_t i)
{
    return i < n->n_inputs ? n->inputs[i].def : NULL;
}

const cfx_use *cfx_node_first_use(const cfx_node *n) { return n->users; }

const cfx_use *cfx_use_next(const cfx_use *use)
{
    return use->next == use->def->users ? NULL : use->next;
}

cfx_node *cfx_use_user(const cfx_use *use) { return use->user; }
uint32_t cfx_use_count(const cfx_use *use) { return use->count; }

const cfx_use *cfx_node_find_use(const cfx_node *user, const cfx_node *def)
{
    if (user->n_inputs <= def->n_users) {
        for (uint32_t i = 0; i < user->n_inputs; i++)
            if (user->inputs[i].def == def)
                return &user->inputs[i];
        return NULL;
    }
    for (const cfx_use *use = def->users; use; use = cfx_use_next(use))
        if (use->user == user)
            return use;
    return NULL;
}

bool cfx_node_uses(const cfx_node *user, const cfx_node *def)
{
    return cfx_node_find_use(user, def) != NULL;
}

cfx_status cfx_graph_each_last_use(cfx_graph *g, cfx_last_use_fn *fn, void *ctx)
{
    const uint32_t stamp = cfxi_ir_graph_stamp(g, 1);
    for (cfx_node *n = g->root.prev; n != &g->root; n = n->prev) {
        for (uint32_t i = 0; i < n->n_inputs; i++) {
            cfx_node *def = n->inputs[i].def;
            if (def->mark == stamp)
                continue;
            def->mark = stamp;
            CFX_TRY(fn(ctx, n, def));
        }
    }
    return CFX_OK;
}
