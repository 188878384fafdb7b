/* cse.c - common sub-expression elimination: computes once what is computed twice.
 *
 *     before                                            after
 *     %x = placeholder[target=x]()                      %x = placeholder[target=x]()
 *     %a = call_function[target=torch.add](%x, 1)       %a = call_function[target=torch.add](%x, 1)
 *     %b = call_function[target=torch.add](%x, 1)       %c = call_function[target=torch.neg](%a)
 *     %c = call_function[target=torch.neg](%a)          output((%c, %c))
 *     %d = call_function[target=torch.neg](%b)
 *     output((%c, %d))
 *
 * Needs: a graph that cfx_graph_lint accepts.
 * Keeps: names, order, types and locations of all nodes that stay: the first of each kind. Calls
 * with an effect (effect.c) all stay. A call that writes keeps two things apart: what was read
 * before it from what is read after it; and the results that may be written to from all others,
 * since two fresh tensors with the same content are not one. What may be meant is found by classes:
 * values that may share memory are in one (argument_effects.c), and all that comes from outside
 * (placeholders, attributes, what a call gives of which nothing is known) is in one more. What the
 * graph returns counts as read only, what a region returns does if nothing writes.
 *
 * Value numbering: one walk to ask for effects; if anything writes, one to ask for operators and
 * two for the classes; one forwards that looks each node up by its target and the numbers of its
 * arguments; one that gives each user its new arguments. Linear in nodes and edges (but for the
 * inverse Ackermann function of the classes), except that the effect of an operator is found by
 * looking at its regions, once on each level that they nest; and a graph with regions is gone
 * through again as long as something is merged.
 *
 * Regions are compared by what they compute, and what was computed before a branch or loop is not
 * computed in its regions again (cse_regions.c).
 */
#include "cse_impl.h"
#include "pass_impl.h"

/* A node, by its place in the graph. */
typedef struct entry {
    cfx_node *node;
    struct entry *leader;  /* the first node that computes the same: itself, if there is none */
    uint32_t hash;
    uint32_t epoch;        /* how many calls before it write to what it reads */
    uint32_t parent;       /* in the tree of its class; the root's is its own number */
    uint32_t writes;       /* root: how many calls before the current node write to the class */
    uint16_t op;           /* a cfx_operator; only asked for if something writes */
    uint8_t effect;        /* a cfx_effect */
    bool written;          /* root: some call may write to the class */
} entry;

typedef struct numbering {
    cfx_graph *graph;
    entry *entries;    /* one for each node, and a last one for what comes from outside */
    size_t n;
    const cfx_library *library;
    bool writes;       /* something does: the classes are known */
    uint32_t stamp;    /* nodes are numbered by their marks */
    cfxi_hash_set table;  /* of the entries that later ones can be replaced by */
    cfx_node_map *regions;  /* the first with the same content: see cfxi_pass_cse_name_regions */
    size_t merged;
} numbering;

static entry *entry_of(const numbering *v, const cfx_node *n)
{
    return &v->entries[n->mark - v->stamp];
}

/* ---- effects ------------------------------------------------------------------------------- */

/* The host may run any code, so the graph is frozen meanwhile. */
static cfx_status find_effects(cfxi_cse_job *job, numbering *v, cfx_error *err)
{
    cfx_status status = CFX_OK;
    entry *e = v->entries;
    cfxi_ir_graph_freeze(v->graph);
    for (cfx_node *n = v->graph->root.next; n != &v->graph->root && status == CFX_OK; n = n->next) {
        cfx_effect effect = CFX_EFFECT_NONE;
        status = cfxi_analysis_node_effect(n, job->modules, job->opts, &effect, err);
        *e = (entry){.node = n, .leader = e, .effect = (uint8_t)effect,
                     .parent = (uint32_t)(e - v->entries)};
        job->writes = job->writes || effect == CFX_EFFECT_WRITES;
        e++;
    }
    cfxi_ir_graph_thaw(v->graph);
    return status;
}

/* Likewise: modules are asked for their classes. */
static cfx_status find_operators(const cfxi_cse_job *job, numbering *v, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_ir_graph_freeze(v->graph);
    for (size_t i = 0; i < v->n && status == CFX_OK; i++) {
        cfx_operator op;
        status = cfx_node_operator_of(v->entries[i].node, job->modules, &op, err);
        v->entries[i].op = (uint16_t)op;
    }
    cfxi_ir_graph_thaw(v->graph);
    return status;
}

/* ---- classes of values that may share memory ----------------------------------------------- */

static entry *root_of(const numbering *v, uint32_t i)
{
    entry *all = v->entries;
    while (all[i].parent != i) {
        all[i].parent = all[all[i].parent].parent;
        i = all[i].parent;
    }
    return &all[i];
}

static entry *class_of(const numbering *v, const cfx_node *n)
{
    return root_of(v, n->mark - v->stamp);
}

static entry *outside(const numbering *v) { return root_of(v, (uint32_t)v->n); }

/* The older root stays one: trees are flat enough, as paths are halved. */
static void join(const numbering *v, uint32_t i, uint32_t k)
{
    const uint32_t a = (uint32_t)(root_of(v, i) - v->entries);
    const uint32_t b = (uint32_t)(root_of(v, k) - v->entries);
    v->entries[a > b ? a : b].parent = a > b ? b : a;
}

typedef struct toucher {
    const numbering *v;
    const entry *by;  /* who touches */
} toucher;

static cfx_status join_shared(void *ctx, cfx_node *input, unsigned touch)
{
    const toucher *t = ctx;
    if (touch & CFX_TOUCH_SHARES)
        join(t->v, (uint32_t)(t->by - t->v->entries), input->mark - t->v->stamp);
    return CFX_OK;
}

static cfx_status mark_written(void *ctx, cfx_node *input, unsigned touch)
{
    const toucher *t = ctx;
    if (touch & CFX_TOUCH_WRITES)
        class_of(t->v, input)->written = true;
    return CFX_OK;
}

static cfx_status count_write(void *ctx, cfx_node *input, unsigned touch)
{
    const toucher *t = ctx;
    if (touch & CFX_TOUCH_WRITES)
        class_of(t->v, input)->writes++;
    return CFX_OK;
}

static bool is_opaque(const numbering *v, const entry *e)
{
    return cfxi_analysis_is_opaque(e->node, (cfx_operator)e->op, v->library, (cfx_effect)e->effect);
}

static void each_touch(const numbering *v, const entry *e, cfx_touch_fn *fn)
{
    toucher t = {.v = v, .by = e};
    cfxi_analysis_node_touches(e->node, (cfx_operator)e->op, v->library, (cfx_effect)e->effect, fn,
                               &t);
}

static void join_classes(const numbering *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->node->op == CFX_OP_OUTPUT)
            continue;
        each_touch(v, e, join_shared);
        if (is_opaque(v, e))  /* so is whatever is no call */
            join(v, i, (uint32_t)v->n);
    }
}

static void mark_returned(const numbering *v, const cfx_node *output)
{
    for (uint32_t k = 0; k < output->n_inputs; k++)
        class_of(v, output->inputs[k].def)->written = true;
}

static void find_written(const numbering *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->node->op == CFX_OP_OUTPUT && v->graph->parent)
            mark_returned(v, e->node);
        if (e->effect != CFX_EFFECT_WRITES)
            continue;
        each_touch(v, e, mark_written);
        if (is_opaque(v, e))
            outside(v)->written = true;
    }
}

/* Whoever is replaced must read the same as its leader: equal arguments are of the same classes, so
 * that a sum tells whether any of them was written to in between. */
static uint32_t reads_of(const numbering *v, const entry *e)
{
    uint32_t writes = outside(v)->writes * is_opaque(v, e);
    for (uint32_t k = 0; k < e->node->n_inputs; k++)
        writes += class_of(v, e->node->inputs[k].def)->writes;
    return writes;
}

/* ---- hashing and comparing ----------------------------------------------------------------- */

static int64_t first_region(const numbering *v, const cfx_ref *ref)
{
    return cfx_node_map_get(v->regions, (const cfx_node *)ref).as.i;
}

static bool same_region(const void *ctx, const cfx_ref *a, const cfx_ref *b)
{
    return first_region(ctx, a) == first_region(ctx, b);
}

static uint64_t hash_value(const numbering *v, cfx_value a);

static uint64_t hash_items(const numbering *v, uint64_t h, const cfx_seq *seq)
{
    for (uint32_t i = 0; seq && i < seq->size; i++)
        h = cfxi_base_hash_mix(h, hash_value(v, seq->items[i]));
    return cfxi_base_hash_mix(h, seq ? seq->size : 0);
}

static uint64_t hash_value(const numbering *v, cfx_value a)
{
    uint64_t h = cfxi_base_hash_mix(0, a.kind);
    if (cfxi_ir_is_seq(a))
        return hash_items(v, h, a.as.seq);
    if (cfxi_ir_is_str(a))
        return cfxi_base_hash_mix(h, cfxi_base_hash_bytes(a.as.str->data, a.as.str->size));
    switch (a.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_NONE:
    case CFX_KIND_ELLIPSIS:
        return h;
    case CFX_KIND_BOOL:
        return cfxi_base_hash_mix(h, a.as.b);
    case CFX_KIND_NODE:
        return cfxi_base_hash_mix(h, (uint64_t)(entry_of(v, a.as.node)->leader - v->entries));
    case CFX_KIND_GRAPH:
        return cfxi_base_hash_mix(h, (uint64_t)first_region(v, a.as.ref));
    case CFX_KIND_HOST:
        return cfxi_base_hash_mix(h, (uintptr_t)a.as.ref);
    default:
        return cfxi_base_hash_mix(h, (uint64_t)a.as.i);
    }
}

static uint32_t hash_node(const numbering *v, const cfx_node *n, uint32_t epoch)
{
    uint64_t h = cfxi_base_hash_mix(epoch, (uintptr_t)n->callee);
    h = hash_items(v, hash_items(v, h, n->args), n->kwargs);
    return (uint32_t)(h ^ (h >> 32));
}

static bool same_leader(const void *ctx, const cfx_node *a, const cfx_node *b)
{
    return entry_of(ctx, a)->leader == entry_of(ctx, b)->leader;
}

/* The callee is the opcode and the target. */
static bool same_entry(const void *item, const void *key, size_t size)
{
    const entry *a = item;
    const numbering *v = key;
    const entry *b = &v->entries[size];
    const cfxi_same how = {.node = same_leader, .region = same_region, .ctx = v,
                           .floats = CFXI_FLOATS_BITS, .exact = true};
    return a->hash == b->hash && a->epoch == b->epoch && a->node->callee == b->node->callee &&
           cfxi_ir_same_items(&how, a->node->args, b->node->args) &&
           cfxi_ir_same_items(&how, a->node->kwargs, b->node->kwargs);
}

static uint32_t hash_of_entry(const void *item) { return ((const entry *)item)->hash; }

/* ---- numbering ----------------------------------------------------------------------------- */

/* An attribute is the same object each time it is read, also if it is written to. */
static bool may_merge(const numbering *v, const entry *e, size_t i)
{
    if (e->effect != CFX_EFFECT_NONE)
        return false;
    return !v->writes || e->node->op == CFX_OP_GET_ATTR || !root_of(v, (uint32_t)i)->written;
}

static void pass_write(const numbering *v, const entry *e, uint32_t *all)
{
    if (e->effect != CFX_EFFECT_WRITES)
        return;
    each_touch(v, e, count_write);
    outside(v)->writes += is_opaque(v, e);
    *all += (cfx_operator_flags((cfx_operator)e->op) & CFX_OPERATOR_GLOBAL) != 0;
}

static cfx_status find_leaders(numbering *v, cfx_error *err)
{
    uint32_t all = 0;  /* calls that change how every later one runs */
    for (size_t i = 0; i < v->n; i++) {
        entry *e = &v->entries[i];
        if (v->writes)
            pass_write(v, e, &all);
        if (!may_merge(v, e, i))
            continue;
        e->epoch = v->writes ? all + reads_of(v, e) : 0;
        e->hash = hash_node(v, e->node, e->epoch);
        entry *first = cfxi_base_set_find(&v->table, e->hash, same_entry, v, i);
        if (first) {
            e->leader = first;
            v->merged++;
        } else if (cfxi_base_set_reserve(&v->table, hash_of_entry, v->graph->allocator)) {
            cfxi_base_set_insert(&v->table, e->hash, e);
        } else {
            return cfxi_base_nomem(err);
        }
    }
    return CFX_OK;
}

/* ---- merging ------------------------------------------------------------------------------- */

/* From here on hooks may run, which may number nodes for themselves: so a map, not the marks. */
static cfx_value leader_of(void *map, cfx_node *n, cfx_error *err)
{
    cfx_value leader = cfx_node_map_get(map, n);
    (void)err;
    return leader.kind == CFX_KIND_INVALID ? cfx_value_node(n) : leader;
}

/* Whether `n` uses what is to be replaced; hooks hear of each such use. */
static cfx_status announce(cfx_node *n, const cfx_node_map *leaders, bool *any, cfx_error *err)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        cfx_value leader = cfx_node_map_get(leaders, n->inputs[i].def);
        if (leader.kind == CFX_KIND_INVALID)
            continue;
        *any = true;
        CFX_TRY(cfxi_ir_run_hooks(n->graph, CFX_HOOK_REPLACE, n->inputs[i].def, leader, n, err));
    }
    return CFX_OK;
}

/* All its arguments at once: one by one would be quadratic in a list of many. */
static cfx_status give_leaders(cfx_node *n, cfx_node_map *leaders, cfx_error *err)
{
    cfx_graph *g = n->graph;
    bool any = false;
    CFX_TRY(announce(n, leaders, &any, err));
    if (!any)
        return CFX_OK;
    cfx_value args = cfx_value_map(g, g, cfx_node_args(n), leader_of, leaders, err);
    cfx_value kwargs = cfx_value_map(g, g, cfx_node_kwargs(n), leader_of, leaders, err);
    cfx_status status = CFX_E_NOMEM;
    if (args.kind != CFX_KIND_INVALID && kwargs.kind != CFX_KIND_INVALID)
        status = cfx_node_set_args_kwargs(n, args, kwargs, err);
    if (status != CFX_OK) {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
    }
    return status;
}

static cfx_status fill_map(const numbering *v, cfx_node_map *leaders, cfx_error *err)
{
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->leader != e)
            CFX_TRY(cfx_node_map_set(leaders, e->node, cfx_value_node(e->leader->node), err));
    }
    return CFX_OK;
}

/* What goes keeps its arguments until then, so it goes from the end. */
static cfx_status merge(const numbering *v, cfx_node_map *leaders, bool *changed, cfx_error *err)
{
    CFX_TRY(fill_map(v, leaders, err));
    *changed = true;
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->leader == e && !cfxi_ir_node_erased(e->node))
            CFX_TRY(give_leaders(e->node, leaders, err));
    }
    for (size_t i = v->n; i-- > 0;) {
        const entry *e = &v->entries[i];
        if (e->leader != e && !cfxi_ir_node_erased(e->node))
            CFX_TRY(cfx_graph_erase(v->graph, e->node, err));
    }
    return CFX_OK;
}

static cfx_status merge_held(const numbering *v, bool *changed, cfx_error *err)
{
    cfx_iter pin;  /* what a hook erases stays readable */
    cfx_node_map *leaders = cfx_node_map_new(v->graph->allocator, err);
    if (!leaders)
        return CFX_E_NOMEM;
    cfx_iter_begin(&pin, v->graph, false);
    cfx_status status = merge(v, leaders, changed, err);
    cfx_iter_end(&pin);
    cfx_node_map_free(leaders);
    return status;
}

static cfx_status number(cfxi_cse_job *job, numbering *v, cfx_error *err)
{
    CFX_TRY(find_effects(job, v, err));
    v->writes = job->writes;
    if (v->writes)
        CFX_TRY(find_operators(job, v, err));
    CFX_TRY(cfxi_pass_cse_name_regions(v->graph, v->regions, err));
    v->stamp = cfxi_ir_graph_number(v->graph);
    if (v->writes) {
        join_classes(v);
        find_written(v);
    }
    CFX_TRY(find_leaders(v, err));
    return v->merged > 0 ? merge_held(v, &job->changed, err) : CFX_OK;
}

static cfx_status eliminate(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_cse_job *job = ctx;
    numbering v = {.graph = g, .n = g->size, .library = cfxi_analysis_library_of(job->modules)};
    const size_t bytes = (v.n + 1) * sizeof *v.entries;
    v.entries = cfxi_base_alloc(g->allocator, bytes);
    if (!v.entries)
        return cfxi_base_nomem(err);
    v.entries[v.n] = (entry){.parent = (uint32_t)v.n};
    v.regions = cfx_node_map_new(g->allocator, err);
    cfx_status status = v.regions ? number(job, &v, err) : CFX_E_NOMEM;
    cfxi_base_set_free(&v.table, g->allocator);
    cfx_node_map_free(v.regions);
    cfxi_base_free(g->allocator, v.entries, bytes);
    if (status == CFX_OK)
        status = cfxi_pass_cse_regions(job, g, err);
    return status == CFX_OK ? cfxi_analysis_each_region(g, eliminate, job, err) : status;
}

/* What is merged in a graph may make regions equal, and what is merged in regions may make them. */
cfx_status cfxi_pass_cse(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                         bool *changed, cfx_error *err)
{
    cfxi_cse_job job = {.opts = opts, .modules = modules};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status;
    bool any = false;
    do {
        job.changed = false;
        status = eliminate(g, &job, err);
        any = any || job.changed;
    } while (job.changed && status == CFX_OK && cfxi_analysis_has_regions(g));
    if (changed)
        *changed = any;
    return status;
}
