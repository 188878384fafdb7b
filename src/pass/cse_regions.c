/* cse_regions.c - what a region computes again: common sub-expressions across its border.
 *
 *     before                                              after
 *     %e = call_function[target=torch.exp](%x)            %e = call_function[target=torch.exp](%x)
 *     %c = call_function[target=cfx.cond](%p,             %c = call_function[target=cfx.cond](%p,
 *         graph {                                             graph {
 *           %a = placeholder[target=a]()                        %a = placeholder[target=a]()
 *           %f = call_function[target=torch.exp](%a)            %e = placeholder[target=e]()
 *           output(%f)                                          output(%e)
 *         }, ..., (%x,))                                      }, ..., (%x, %e))
 *
 * A region refers to nothing outside, so the value becomes a further operand, or state of a loop
 * that never changes: that costs less than any call, but more than reading an attribute, which
 * stays. Only values that were computed anyhow before the branch or loop, of inputs that are
 * operands or never change; and nothing at all if anything in the whole graph writes.
 */
#include "cse_impl.h"

#include <cfx/embed/ops.h>

/* ---- equal regions ------------------------------------------------------------------------- */

typedef struct content {
    cfx_ref *ref;
    uint64_t hash;
} content;

static bool same_content(const void *item, const void *key, size_t size)
{
    const content *a = item;
    const content *b = key;
    (void)size;
    return a->hash == b->hash && cfxi_ir_region_equal(a->ref->region, b->ref->region);
}

static uint32_t hash_of_content(const void *item)
{
    const uint64_t h = ((const content *)item)->hash;
    return (uint32_t)(h ^ (h >> 32));
}

/* *found becomes the first region with the content of `ref`. */
static cfx_status find_first(cfx_graph *g, cfxi_hash_set *table, cfx_ref *ref, cfx_ref **found,
                             cfx_error *err)
{
    content c = {ref, 0};
    CFX_TRY(cfxi_ir_region_hash(ref->region, &c.hash, err));
    content *first = cfxi_base_set_find(table, hash_of_content(&c), same_content, &c, 0);
    if (!first) {
        if (!cfxi_base_set_reserve(table, hash_of_content, g->allocator) ||
            !(first = cfxi_base_alloc(g->allocator, sizeof *first)))
            return cfxi_base_nomem(err);
        *first = c;
        cfxi_base_set_insert(table, hash_of_content(first), first);
    }
    *found = first->ref;
    return CFX_OK;
}

/* Maps the entries of regions to that of the first one with the same content. The host may be
 * asked, so the graph is frozen, and its marks are not in use. */
cfx_status cfxi_pass_cse_name_regions(cfx_graph *g, cfx_node_map *first, cfx_error *err)
{
    cfxi_hash_set table = {0};
    cfx_status status = CFX_OK;
    size_t at = 0;
    cfxi_ir_graph_freeze(g);
    for (cfx_ref *ref;
         status == CFX_OK && (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;) {
        cfx_ref *found = ref;
        if (ref->kind != CFXI_REF_REGION || ref->refs == 0)
            continue;
        status = find_first(g, &table, ref, &found, err);
        if (status == CFX_OK)
            status = cfx_node_map_set(first, (const cfx_node *)ref,
                                      cfx_value_int((int64_t)(uintptr_t)found), err);
    }
    cfxi_ir_graph_thaw(g);
    at = 0;
    for (content *c; (c = cfxi_base_set_next(&table, &at)) != NULL;)
        cfxi_base_free(g->allocator, c, sizeof *c);
    cfxi_base_set_free(&table, g->allocator);
    return status;
}

/* ---- calls that are the same on both sides ------------------------------------------------- */

typedef struct available {
    cfx_node *node;
    uint32_t hash;
} available;

typedef struct border_job {
    cfxi_cse_job *all;
    cfx_graph *graph;
    cfxi_hash_set table;       /* of `available`: calls before the node that is looked at */
    cfx_node_map *outside;  /* nodes of regions: the values that they have outside */
    cfx_node_map *firsts;   /* those values: the first node of the region that has them */
    cfxi_vec found;         /* of cfx_node *: calls in regions that need not be */
    const cfxi_control *control;  /* that is looked at */
    cfx_error *err;
} border_job;

static uint64_t hash_leaf(const cfx_node_map *outside, cfx_value v);

static uint64_t hash_items(const cfx_node_map *outside, uint64_t h, const cfx_seq *seq)
{
    for (uint32_t i = 0; seq && i < seq->size; i++)
        h = cfxi_base_hash_mix(h, hash_leaf(outside, seq->items[i]));
    return cfxi_base_hash_mix(h, seq ? seq->size : 0);
}

/* Host objects and texts are left to the comparison. */
static uint64_t hash_leaf(const cfx_node_map *outside, cfx_value v)
{
    if (v.kind == CFX_KIND_NODE && outside)
        v = cfx_node_map_get(outside, v.as.node);
    const uint64_t h = cfxi_base_hash_mix(0, v.kind);
    if (cfxi_ir_is_seq(v))
        return hash_items(outside, h, v.as.seq);
    if (v.kind == CFX_KIND_NODE)
        return cfxi_base_hash_mix(h, (uintptr_t)v.as.node);
    return v.kind == CFX_KIND_INT || v.kind == CFX_KIND_BOOL
               ? cfxi_base_hash_mix(h, (uint64_t)v.as.i)
               : h;
}

static uint32_t hash_call(const cfx_node *n, const cfx_node_map *outside)
{
    uint64_t h = cfxi_base_hash_mix(n->op, (uint64_t)cfx_node_operator(n));
    h = hash_items(outside, hash_items(outside, h, n->args), n->kwargs);
    return (uint32_t)(h ^ (h >> 32));
}

static uint32_t hash_of_available(const void *item) { return ((const available *)item)->hash; }

/* A node outside, and one inside. */
static bool same_outside(const void *ctx, const cfx_node *a, const cfx_node *b)
{
    const cfx_value v = cfx_node_map_get(ctx, b);
    return v.kind == CFX_KIND_NODE && v.as.node == a;
}

static bool same_target(const cfx_node *a, const cfx_node *b)
{
    const cfx_ref *x = a->callee->ref;
    const cfx_ref *y = b->callee->ref;
    if (a->op != b->op || x->kind != y->kind)
        return false;
    if (x->kind == CFXI_REF_OBJECT)
        return x->object == y->object;
    return x->name->size == y->name->size &&
           memcmp(x->name->data, y->name->data, x->name->size) == 0;
}

typedef struct wanted {
    const cfx_node *node;
    const cfx_node_map *outside;
} wanted;

static bool same_call(const void *item, const void *key, size_t size)
{
    const cfx_node *a = ((const available *)item)->node;
    const wanted *w = key;
    const cfxi_same how = {.node = same_outside, .ctx = w->outside, .floats = CFXI_FLOATS_BITS};
    (void)size;
    return !cfxi_ir_node_erased(a) && same_target(a, w->node) &&
           cfxi_ir_same_items(&how, a->args, w->node->args) &&
           cfxi_ir_same_items(&how, a->kwargs, w->node->kwargs);
}

/* A call whose result is always the same for the same arguments. */
static cfx_status is_plain(const border_job *job, cfx_node *n, bool *plain)
{
    unsigned does;
    *plain = n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD;
    if (!*plain || cfx_operator_regions(cfx_node_operator(n)) > 0) {
        *plain = false;
        return CFX_OK;
    }
    bool apart = true;
    CFX_TRY(cfxi_analysis_does(&job->all->model, n, &does, job->err));
    CFX_TRY(cfxi_pass_cse_is_apart(job->all, n, does, &apart, job->err));
    *plain = !apart;
    return CFX_OK;
}

static cfx_status make_available(border_job *job, cfx_node *n)
{
    bool plain;
    CFX_TRY(is_plain(job, n, &plain));
    if (!plain)
        return CFX_OK;
    available *a = cfxi_base_alloc(job->graph->allocator, sizeof *a);
    if (!a || !cfxi_base_set_reserve(&job->table, hash_of_available, job->graph->allocator)) {
        cfxi_base_free(job->graph->allocator, a, sizeof *a);
        return cfxi_base_nomem(job->err);
    }
    *a = (available){n, hash_call(n, NULL)};
    cfxi_base_set_insert(&job->table, a->hash, a);
    return CFX_OK;
}

/* ---- one branch or loop -------------------------------------------------------------------- */

/* Notes what an input is outside. */
static cfx_status bind_input(void *ctx, cfx_node *n, size_t k)
{
    const border_job *job = ctx;
    const cfx_value v = job->control->operands[k];
    return v.kind == CFX_KIND_NODE ? cfx_node_map_set(job->outside, n, v, job->err) : CFX_OK;
}

static bool is_read(const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (use->user->op != CFX_OP_OUTPUT)
            return true;
    return false;
}

/* The same value under two inputs is read from the first. What the output hands on stays. */
static cfx_status read_once(border_job *job, const cfxi_control *c, size_t i)
{
    cfx_node *n = cfxi_analysis_control_input(c, i, 0);
    for (size_t k = 0; k < c->n; k++, n = cfxi_ir_next_input(c->regions[i], n)) {
        const cfx_value v = cfx_node_map_get(job->outside, n);
        if (v.kind != CFX_KIND_NODE)
            continue;
        const cfx_value first = cfx_node_map_get(job->firsts, v.as.node);
        if (first.kind != CFX_KIND_NODE) {
            CFX_TRY(cfx_node_map_set(job->firsts, v.as.node, cfx_value_node(n), job->err));
        } else if (is_read(n)) {
            CFX_TRY(
                cfx_node_replace_uses(n, first, cfxi_analysis_is_not_output, NULL, NULL, job->err));
            job->all->changed = true;
        }
    }
    return CFX_OK;
}

static bool all_outside(const border_job *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (cfx_node_map_get(job->outside, n->inputs[i].def).kind != CFX_KIND_NODE)
            return false;
    return n->n_inputs > 0;
}

/* What `n`, of a region, computes is `known` outside, too: it gives way to a node of the region
 * that has it, or, if `may_add`, to an input that is to be added. */
static cfx_status give_way(border_job *job, cfx_node *n, cfx_node *known, bool may_add)
{
    const cfx_value first = cfx_node_map_get(job->firsts, known);
    if (first.kind == CFX_KIND_NODE) {
        CFX_TRY(cfx_node_replace_uses(n, first, NULL, NULL, NULL, job->err));
        job->all->changed = true;
        return cfx_graph_erase(n->graph, n, job->err);
    }
    CFX_TRY(cfx_node_map_set(job->outside, n, cfx_value_node(known), job->err));
    if (!may_add)
        return CFX_OK;
    CFX_TRY(cfx_node_map_set(job->firsts, known, cfx_value_node(n), job->err));
    return cfxi_analysis_nodes_push(&job->found, n, n->graph->allocator, job->err);
}

static cfx_status find_in_region(border_job *job, cfx_graph *region, bool may_add)
{
    for (cfx_node *n = region->root.next, *next; n != &region->root; n = next) {
        bool plain = false;
        const wanted w = {n, job->outside};
        next = n->next;
        if (all_outside(job, n))
            CFX_TRY(is_plain(job, n, &plain));
        const available *a = plain ? cfxi_base_set_find(&job->table, hash_call(n, job->outside),
                                                        same_call, &w, 0) : NULL;
        if (a)
            CFX_TRY(give_way(job, n, a->node, may_add));
    }
    return CFX_OK;
}

static cfx_status hand_in(border_job *job, cfxi_control *c)
{
    cfx_node **found = job->found.data;
    CFX_TRY(cfxi_analysis_control_hand_in(c, found, job->found.size, job->outside, job->err));
    job->all->changed = true;
    for (size_t k = job->found.size; k > 0; k--)
        CFX_TRY(cfx_graph_erase(found[k - 1]->graph, found[k - 1], job->err));
    return CFX_OK;
}

static cfx_status cross_into(border_job *job, const cfxi_control *c, size_t i, bool may_add)
{
    cfx_iter pin;
    job->firsts = cfx_node_map_new(job->graph->allocator, job->err);
    if (!job->firsts)
        return CFX_E_NOMEM;
    cfx_iter_begin(&pin, c->regions[i], false);
    job->control = c;
    cfx_status status = cfxi_analysis_control_each_kept(c, i, bind_input, job);
    if (status == CFX_OK)
        status = read_once(job, c, i);
    if (status == CFX_OK)
        status = find_in_region(job, c->regions[i], may_add);
    cfx_iter_end(&pin);
    cfx_node_map_free(job->firsts);
    return status;
}

static cfx_status cross(border_job *job, cfxi_control *c)
{
    const bool may_add = !cfxi_analysis_control_is_loop(c) || cfxi_analysis_control_is_apart(c);
    job->found.size = 0;
    for (size_t i = 0; i < c->n_regions; i++)
        CFX_TRY(cross_into(job, c, i, may_add));
    return job->found.size > 0 ? hand_in(job, c) : CFX_OK;
}

static cfx_status cross_all(border_job *job)
{
    for (cfx_node *n = job->graph->root.next; n != &job->graph->root; n = n->next) {
        cfxi_control c;
        if (cfxi_analysis_control_of(n, &c) && cfxi_analysis_control_is_alone(&c))
            CFX_TRY(cross(job, &c));
        CFX_TRY(make_available(job, n));
    }
    return CFX_OK;
}

cfx_status cfxi_pass_cse_regions(cfxi_cse_job *all, cfx_graph *g, cfx_error *err)
{
    if (all->writes || !cfxi_analysis_has_regions(g))
        return CFX_OK;
    border_job job = {.all = all, .graph = g, .err = err,
                      .outside = cfx_node_map_new(g->allocator, err)};
    cfx_iter pin;  /* what a hook erases stays readable */
    cfx_iter_begin(&pin, g, false);
    cfx_status status = job.outside ? cross_all(&job) : CFX_E_NOMEM;
    cfx_iter_end(&pin);
    size_t at = 0;
    for (available *a; (a = cfxi_base_set_next(&job.table, &at)) != NULL;)
        cfxi_base_free(g->allocator, a, sizeof *a);
    cfxi_base_set_free(&job.table, g->allocator);
    cfxi_base_vec_free(&job.found, sizeof(cfx_node *), g->allocator);
    cfx_node_map_free(job.outside);
    return status;
}
