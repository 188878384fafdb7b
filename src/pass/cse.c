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
 * since two fresh tensors with the same content are not one. Which values those are is found by
 * what shares memory, and by the state that modules read and write (alias_impl.h). What the graph
 * returns counts as read only, what a region returns does if nothing writes.
 *
 * Value numbering: one walk to ask for effects; if anything writes, two for what shares memory; one
 * forwards that looks each node up by its target and the numbers of its arguments; one that gives
 * each user its new arguments. Linear in nodes and edges (but for the inverse Ackermann function of
 * the sets), except that the effect of an operator is found by looking at its regions, once on each
 * level that they nest; and a graph with regions is gone through again as long as something is
 * merged.
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
    uint8_t does;          /* flags of cfxi_does */
    bool apart;            /* it has an effect, or is to be kept: it is never merged */
} entry;

typedef struct numbering {
    cfx_graph *graph;
    entry *entries;    /* one for each node */
    size_t n;
    bool writes;       /* something does: these are known */
    cfxi_aliases aliases;
    uint32_t *counts;  /* by channel: how many calls before the current one write to it */
    bool *written;     /* by channel: whether any call does */
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

cfx_status cfxi_pass_cse_is_apart(const cfxi_cse_job *job, cfx_node *n, unsigned does, bool *apart,
                                  cfx_error *err)
{
    const cfx_cse_options *opts = job->opts;
    if (opts && opts->like_torch_fx)
        does &= ~(unsigned)CFXI_UNKNOWN;
    *apart = cfxi_analysis_kind(n, does) != CFX_EFFECT_NONE;
    if (!opts || !opts->keep || n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
        return CFX_OK;
    cfxi_ir_graph_freeze(n->graph);
    const int kept = opts->keep(opts->ctx, n);
    cfxi_ir_graph_thaw(n->graph);
    *apart = *apart || kept > 0;
    return kept < 0 ? cfx_error_set(err, CFX_E_HOST, "could not tell whether to merge node %%%s",
                                    n->name->data) : CFX_OK;
}

/* The host may run any code, so the graph is frozen meanwhile. */
static cfx_status find_effects(cfxi_cse_job *job, numbering *v, cfx_error *err)
{
    cfx_status status = CFX_OK;
    entry *e = v->entries;
    cfxi_ir_graph_freeze(v->graph);
    for (cfx_node *n = v->graph->root.next; n != &v->graph->root && status == CFX_OK; n = n->next) {
        unsigned does = 0;
        status = cfxi_analysis_does(&job->model, n, &does, err);
        *e = (entry){.node = n, .leader = e, .does = (uint8_t)does};
        if (status == CFX_OK)
            status = cfxi_pass_cse_is_apart(job, n, does, &e->apart, err);
        job->writes = job->writes || (does & CFXI_WRITES_ANY);
        e++;
    }
    cfxi_ir_graph_thaw(v->graph);
    return status;
}

/* ---- reads and writes ---------------------------------------------------------------------- */

static bool mark_written(void *ctx, uint32_t channel, bool writes)
{
    const numbering *v = ctx;
    v->written[channel] = v->written[channel] || writes;
    return true;
}

static void mark_returned(const numbering *v, const cfx_node *output)
{
    for (uint32_t k = 0; k < output->n_inputs; k++) {
        const cfxi_alias *set = cfxi_analysis_alias_set(&v->aliases, output->inputs[k].def);
        v->written[set - v->aliases.sets] = true;
    }
}

static cfx_status find_written(cfxi_cse_job *job, numbering *v, cfx_error *err)
{
    const size_t n = v->n + CFXI_CHANNEL_COUNT;
    v->counts = cfxi_base_alloc(v->graph->allocator, n * sizeof *v->counts);
    v->written = cfxi_base_alloc(v->graph->allocator, n);
    if (!v->counts || !v->written)
        return cfxi_base_nomem(err);
    memset(v->counts, 0, n * sizeof *v->counts);
    memset(v->written, 0, n);
    CFX_TRY(cfxi_analysis_aliases_begin(&v->aliases, v->graph, &job->model, CFXI_USES_ALL, err));
    CFX_TRY(cfxi_analysis_alias_join_all(&v->aliases, err));
    cfxi_ir_graph_freeze(v->graph);  /* the tree is asked for memory */
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->node->op == CFX_OP_OUTPUT && v->graph->parent)
            mark_returned(v, e->node);
        if (e->does & CFXI_WRITES_ANY)
            cfxi_analysis_each_channel(&v->aliases, e->node, e->does, mark_written, v);
    }
    cfxi_ir_graph_thaw(v->graph);
    return CFX_OK;
}

static void end_written(numbering *v)
{
    const size_t n = v->n + CFXI_CHANNEL_COUNT;
    if (v->aliases.graph)
        cfxi_analysis_aliases_end(&v->aliases);
    cfxi_base_free(v->graph->allocator, v->counts, n * sizeof *v->counts);
    cfxi_base_free(v->graph->allocator, v->written, n);
}

typedef struct channel_sum {
    const numbering *v;
    uint32_t sum;
} channel_sum;

static bool add_count(void *ctx, uint32_t channel, bool writes)
{
    channel_sum *job = ctx;
    (void)writes;
    job->sum += job->v->counts[channel];
    return true;
}

/* Whoever is replaced must read the same as its leader: equal calls read the same channels, so that
 * a sum tells whether any of them was written to in between. */
static uint32_t reads_of(const numbering *v, const entry *e)
{
    channel_sum job = {v, 0};
    cfxi_analysis_each_channel(&v->aliases, e->node, e->does, add_count, &job);
    return job.sum;
}

static bool count_write(void *ctx, uint32_t channel, bool writes)
{
    const numbering *v = ctx;
    v->counts[channel] += writes;
    return true;
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
static bool may_merge(const numbering *v, const entry *e)
{
    if (e->apart)
        return false;
    return !v->writes || e->node->op == CFX_OP_GET_ATTR ||
           !cfxi_analysis_is_disturbed(&v->aliases, e->node, v->written);
}

static void pass_write(numbering *v, const entry *e, uint32_t *all)
{
    if (!(e->does & CFXI_WRITES_ANY))
        return;
    cfxi_analysis_each_channel(&v->aliases, e->node, e->does, count_write, v);
    *all += (cfx_operator_flags(cfx_node_operator(e->node)) & CFX_OPERATOR_GLOBAL) != 0;
}

static cfx_status find_leaders(numbering *v, cfx_error *err)
{
    uint32_t all = 0;  /* calls that change how every later one runs */
    v->stamp = cfxi_ir_graph_number(v->graph);
    for (size_t i = 0; i < v->n; i++) {
        entry *e = &v->entries[i];
        if (v->writes)
            pass_write(v, e, &all);
        if (!may_merge(v, e))
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

static cfx_status fill_map(const numbering *v, cfx_node_map *leaders, cfx_error *err)
{
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->leader != e)
            CFX_TRY(cfx_node_map_set(leaders, e->node, cfx_value_node(e->leader->node), err));
    }
    return CFX_OK;
}

/* Hooks may run, which may number nodes for themselves: so a map, not the marks. What goes keeps
 * its arguments until then, so it goes from the end. */
static cfx_status merge(const numbering *v, cfx_node_map *leaders, bool *changed, cfx_error *err)
{
    CFX_TRY(fill_map(v, leaders, err));
    *changed = true;
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (e->leader == e && !cfxi_ir_node_erased(e->node))
            CFX_TRY(cfxi_analysis_replace_inputs(e->node, leaders, err));
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
        CFX_TRY(find_written(job, v, err));
    CFX_TRY(cfxi_pass_cse_name_regions(v->graph, v->regions, err));
    CFX_TRY(find_leaders(v, err));
    return v->merged > 0 ? merge_held(v, &job->changed, err) : CFX_OK;
}

static cfx_status eliminate(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_cse_job *job = ctx;
    numbering v = {.graph = g, .n = g->size};
    const size_t bytes = (v.n + 1) * sizeof *v.entries;
    v.entries = cfxi_base_alloc(g->allocator, bytes);
    if (!v.entries)
        return cfxi_base_nomem(err);
    v.regions = cfx_node_map_new(g->allocator, err);
    cfx_status status = v.regions ? number(job, &v, err) : CFX_E_NOMEM;
    end_written(&v);
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
    const cfx_cse_options *o = opts;
    cfxi_cse_job job = {.opts = o, .model = {.modules = modules, .strict = o && o->strict}};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status;
    bool any = false;
    do {
        job.changed = false;
        status = eliminate(g, &job, err);
        any = any || job.changed;
    } while (job.changed && status == CFX_OK && cfxi_analysis_has_regions(g));
    cfxi_analysis_model_end(&job.model);
    if (changed)
        *changed = any;
    return status;
}
