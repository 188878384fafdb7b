/* correspond.c - which nodes of two graphs stand for each other.
 *
 *     a                                                 b, after a pass
 *     %x = placeholder[target=x]()             ------   %x = placeholder[target=x]()
 *     %a = call_function[target=torch.neg](%x) ------   %n = call_function[target=torch.neg](%x)
 *     %b = call_function[target=torch.exp](%a) - uses - %c = call_function[target=torch.sin](%n)
 *     output(%b)                               ------   output(%c)
 *
 * Needs: nothing; nodes that are used before they are defined find no partner by structure.
 * Keeps: everything.
 *
 * Each node has a hash of what it computes (`down`: opcode, target and arguments, for nodes their
 * hashes), and one of how its value is used (`up`: for each use the target of the user, which of
 * its arguments it is, and the user's own `up`). A round sorts the nodes of one graph that are
 * still alone into a table by some of these, and lets those of the other look up a partner. Five
 * rounds and three walks over all arguments. A hash has 64 bits, and is trusted.
 */
#include "correspond_impl.h"
#include "ir/walk_impl.h"

const char *cfx_pairing_name(cfx_pairing how)
{
    static const char *const names[] = {"structure", "name", "uses", "retargeted", "operand",
                                        "none"};
    return (unsigned)how <= CFX_PAIR_NONE ? names[how] : NULL;
}

typedef cfxi_twin entry;
typedef cfxi_twins side;

/* ---- hashes -------------------------------------------------------------------------------- */

static uint64_t down_of(const cfxi_hasher *c, const cfx_node *n)
{
    const entry *e = cfxi_check_twin_of(c->ctx, n);
    return e ? e->down : 0;
}

static cfx_status hash_down(side *s, cfx_error *err)
{
    cfxi_hasher c = {.graph = s->graph, .err = err, .node = down_of, .ctx = s,
                     .shape_only = true, .by_identity = true};
    uint64_t inputs = 0;
    for (size_t i = 0; i < s->n && c.status == CFX_OK; i++) {
        entry *e = &s->entries[i];
        const cfx_node *n = e->node;
        e->name = cfxi_base_hash_bytes(n->name->data, n->name->size);
        e->callee = cfxi_ir_hash_ref(&c, cfxi_base_hash_mix(0, n->op), n->callee->ref);
        e->down = cfxi_ir_hash_items(&c, e->callee, n->args);
        e->down = cfxi_ir_hash_items(&c, e->down, n->kwargs);
        if (n->op == CFX_OP_PLACEHOLDER)
            e->down = cfxi_base_hash_mix(CFX_OP_PLACEHOLDER, ++inputs);
    }
    return c.status;
}

/* The uses of one node's arguments. */
typedef struct use_walk {
    const side *side;
    uint64_t user;   /* what uses them */
    uint64_t place;  /* the number of the next argument that is a node */
} use_walk;

static cfx_status add_use(void *ctx, cfx_node *n)
{
    use_walk *walk = ctx;
    entry *e = cfxi_check_twin_of(walk->side, n);
    walk->place++;
    if (e)
        e->up += cfxi_base_hash_mix(walk->user, walk->place);
    return CFX_OK;
}

static void hash_up(const side *s)
{
    for (size_t i = s->n; i-- > 0;) {
        const entry *e = &s->entries[i];
        use_walk walk = {.side = s, .user = cfxi_base_hash_mix(e->callee, e->up)};
        (void)cfx_value_each_node(cfx_node_args(e->node), add_use, &walk);
        (void)cfx_value_each_node(cfx_node_kwargs(e->node), add_use, &walk);
    }
}

/* ---- rounds -------------------------------------------------------------------------------- */

typedef uint64_t key_fn(const entry *e);  /* 0 takes no part */

static bool is_call(const entry *e)
{
    return e->node->op != CFX_OP_PLACEHOLDER && e->node->op != CFX_OP_OUTPUT;
}
static uint64_t by_structure_and_name(const entry *e)
{
    return cfxi_base_hash_mix(e->down, e->name);
}
static uint64_t by_structure(const entry *e) { return e->down; }
static uint64_t by_callee_and_name(const entry *e)
{
    return cfxi_base_hash_mix(e->callee, e->name);
}
static uint64_t by_uses(const entry *e) { return is_call(e) ? e->up : 0; }
static uint64_t by_name(const entry *e) { return is_call(e) ? e->name : 0; }

static uint32_t fold(uint64_t key) { return (uint32_t)(key ^ (key >> 32)); }
static uint32_t hash_of_entry(const void *item) { return fold(((const entry *)item)->key); }
static bool same_key(const void *item, const void *key, size_t size)
{
    (void)size;
    return ((const entry *)item)->key == *(const uint64_t *)key;
}

static cfx_status add_to_table(cfxi_hash_set *table, entry *e, const cfx_allocator *allocator,
                               cfx_error *err)
{
    entry *first = cfxi_base_set_find(table, fold(e->key), same_key, &e->key, 0);
    e->next = NULL;
    e->last = e;
    if (first) {
        first->last->next = e;
        first->last = e;
        return CFX_OK;
    }
    if (!cfxi_base_set_reserve(table, hash_of_entry, allocator))
        return cfxi_base_nomem(err);
    cfxi_base_set_insert(table, fold(e->key), e);
    return CFX_OK;
}

/* Those that are taken stay on their list, behind its first: each is passed by once. */
static entry *take_from_table(const cfxi_hash_set *table, uint64_t key)
{
    entry *first = cfxi_base_set_find(table, fold(key), same_key, &key, 0);
    if (!first || !first->twin)
        return first;
    entry *found = first->next;
    if (found)
        first->next = found->next;
    return found;
}

static void make_pair(entry *a, entry *b, cfx_pairing how)
{
    a->twin = b;
    b->twin = a;
    a->how = b->how = how;
}

static cfx_status match_round(const side *a, const side *b, key_fn *key, cfx_pairing how,
                              cfx_error *err)
{
    cfxi_hash_set table = {0};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < b->n && status == CFX_OK; i++) {
        entry *e = &b->entries[i];
        e->key = e->twin ? 0 : key(e);
        if (e->key)
            status = add_to_table(&table, e, b->graph->allocator, err);
    }
    for (size_t i = 0; i < a->n && status == CFX_OK && table.size > 0; i++) {
        entry *e = &a->entries[i];
        const uint64_t wanted = e->twin ? 0 : key(e);
        entry *found = wanted ? take_from_table(&table, wanted) : NULL;
        if (found)
            make_pair(e, found, how);
    }
    cfxi_base_set_free(&table, b->graph->allocator);
    return status;
}

/* What is still alone in `a` has a stand-in: what the partner of a user reads in its place. */
static void find_stand_ins(const side *a, const side *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const entry *user = &a->entries[i];
        if (!user->twin || user->how == CFX_PAIR_OPERAND ||
            user->node->n_inputs != user->twin->node->n_inputs)
            continue;
        for (uint32_t k = 0; k < user->node->n_inputs; k++) {
            entry *e = cfxi_check_twin_of(a, user->node->inputs[k].def);
            if (e && !e->twin) {
                e->twin = cfxi_check_twin_of(b, user->twin->node->inputs[k].def);
                e->how = e->twin ? CFX_PAIR_OPERAND : CFX_PAIR_NONE;
            }
        }
    }
}

static entry *last_output(const side *s)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->entries[i].node->op == CFX_OP_OUTPUT)
            return &s->entries[i];
    return NULL;
}

static cfx_status match_all(const side *a, const side *b, cfx_error *err)
{
    static const struct {
        key_fn *key;
        cfx_pairing how;
    } rounds[] = {
        {by_structure_and_name, CFX_PAIR_STRUCTURE},
        {by_structure, CFX_PAIR_STRUCTURE},
        {by_callee_and_name, CFX_PAIR_NAME},
        {by_uses, CFX_PAIR_USES},
        {by_name, CFX_PAIR_RETARGETED},
    };
    entry *ends[] = {last_output(a), last_output(b)};
    if (ends[0] && ends[1])
        make_pair(ends[0], ends[1],
                  ends[0]->down == ends[1]->down ? CFX_PAIR_STRUCTURE : CFX_PAIR_USES);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++)
        CFX_TRY(match_round(a, b, rounds[i].key, rounds[i].how, err));
    find_stand_ins(a, b);
    return CFX_OK;
}

/* ---- telling ------------------------------------------------------------------------------- */

typedef struct report {
    cfx_pair_fn *fn;
    void *ctx;
    cfx_error *err;
} report;

static cfx_status tell(void *ctx, side *a, side *b);

/* The region that comes behind `skip` others, once it is found. */
typedef struct nth_region {
    size_t skip;
    cfx_graph *found;
} nth_region;

static cfx_status find_nth(cfx_graph *region, void *ctx, cfx_error *err)
{
    nth_region *nth = ctx;
    (void)err;
    if (!nth->found && nth->skip-- == 0)
        nth->found = region;
    return CFX_OK;
}

/* An operator has a few regions at most, so each is searched from the start. */
cfx_graph *cfxi_check_twin_region(const cfx_node *n, size_t i)
{
    nth_region nth = {.skip = i};
    cfxi_ir_each_region(cfx_node_args(n), find_nth, &nth, NULL);
    cfxi_ir_each_region(cfx_node_kwargs(n), find_nth, &nth, NULL);
    return nth.found;
}

size_t cfxi_check_twin_regions(const cfx_node *a, const cfx_node *b)
{
    size_t n = 0;
    if (a->graph->height == 0 || b->graph->height == 0)
        return 0;
    while (cfxi_check_twin_region(a, n))
        n++;
    return (n > 0 && !cfxi_check_twin_region(b, n - 1)) || cfxi_check_twin_region(b, n) ? 0 : n;
}

static cfx_status tell_pair(const report *to, cfx_node *a, cfx_node *b, cfx_pairing how)
{
    cfx_status status = to->fn(to->ctx, a, b, how);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(to->err, status);
}

static cfx_status tell_regions(const cfx_node *a, const cfx_node *b, report *to)
{
    const size_t n = cfxi_check_twin_regions(a, b);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(cfxi_check_pair_graphs(cfxi_check_twin_region(a, i), cfxi_check_twin_region(b, i),
                                       tell, to, to->err));
    return CFX_OK;
}

static cfx_status tell(void *ctx, side *a, side *b)
{
    report *to = ctx;
    for (size_t i = 0; i < a->n; i++) {
        const entry *e = &a->entries[i];
        CFX_TRY(tell_pair(to, e->node, e->twin ? e->twin->node : NULL, e->how));
        if (cfxi_check_has_twin(e))
            CFX_TRY(tell_regions(e->node, e->twin->node, to));
    }
    for (size_t i = 0; i < b->n; i++)
        if (!b->entries[i].twin)
            CFX_TRY(tell_pair(to, NULL, b->entries[i].node, CFX_PAIR_NONE));
    return CFX_OK;
}

/* ---- both ---------------------------------------------------------------------------------- */

static bool side_init(side *s, cfx_graph *g, uint32_t stamp)
{
    size_t bytes;
    entry *entries = NULL;
    if (cfxi_base_mul_size(g->size, sizeof *entries, sizeof *entries, &bytes))
        entries = cfxi_base_alloc(g->allocator, bytes);
    *s = (side){.graph = g, .entries = entries, .n = g->size, .stamp = stamp};
    if (!entries)
        return false;
    entry *e = entries;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        *e++ = (entry){.node = n, .how = CFX_PAIR_NONE};
    return true;
}

static void side_free(side *s)
{
    cfxi_base_free(s->graph->allocator, s->entries, (s->n + 1) * sizeof *s->entries);
}

static cfx_status pair_sides(side *a, side *b, cfxi_paired_fn *fn, void *ctx, cfx_error *err)
{
    CFX_TRY(hash_down(a, err));
    CFX_TRY(hash_down(b, err));
    hash_up(a);
    hash_up(b);
    CFX_TRY(match_all(a, b, err));
    return fn(ctx, a, b);
}

/* A graph can be compared with itself: then both sides share its numbers. */
cfx_status cfxi_check_pair_graphs(cfx_graph *a, cfx_graph *b, cfxi_paired_fn *fn, void *ctx,
                                  cfx_error *err)
{
    side sides[2];
    const uint32_t stamp = cfxi_ir_graph_number(a);
    if (!side_init(&sides[0], a, stamp))
        return cfxi_base_nomem(err);
    cfx_status status = CFX_OK;
    if (!side_init(&sides[1], b, a == b ? stamp : cfxi_ir_graph_number(b)))
        status = cfxi_base_nomem(err);
    cfxi_ir_graph_freeze(a);
    cfxi_ir_graph_freeze(b);
    if (status == CFX_OK) {
        status = pair_sides(&sides[0], &sides[1], fn, ctx, err);
        side_free(&sides[1]);
    }
    cfxi_ir_graph_thaw(b);
    cfxi_ir_graph_thaw(a);
    side_free(&sides[0]);
    return status;
}

cfx_status cfx_graph_correspond(cfx_graph *a, cfx_graph *b, cfx_pair_fn *fn, void *ctx,
                                cfx_error *err)
{
    report to = {fn, ctx, err};
    return cfxi_check_pair_graphs(a, b, tell, &to, err);
}
