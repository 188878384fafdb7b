/* fuse_parts.c - parts of a graph as single calls: whether that can be, and putting in the call.
 *
 *     before, {%mul, %relu}                          after
 *     %x = placeholder[target=x]()                   %x = placeholder[target=x]()
 *     %mul = call_method[target=mul](%x, 2)          %fused_0 = call_module[target=fused_0](%x)
 *     %relu = call_function[target=torch.relu](%mul) output(%fused_0)
 *     output(%relu)
 *
 * Parts can be fused if the graph in which each is one unit can be put in order: it is taken apart
 * unit by unit, always one whose inputs are gone. Linear in nodes and edges.
 */
#include <cfx/embed/partition.h>

#include "analysis/analysis_impl.h"

/* ---- whether it can be --------------------------------------------------------------------- */

/* Units are numbered: parts first, then a unit for each node. */
typedef struct check_job {
    cfx_graph *graph;
    const uint32_t *parts;
    size_t n, size;
    uint32_t stamp;
    cfx_node **nodes;
    uint32_t *first;    /* by unit: its first node, or CFX_NO_PART */
    uint32_t *next;     /* by node: the next of its unit, or CFX_NO_PART */
    uint32_t *missing;  /* by unit: uses of values that are not there yet */
    uint32_t *ready;    /* units whose values are there, those before `done` taken */
    size_t n_ready;
    size_t n_units;     /* that have nodes */
} check_job;

static uint32_t unit_of(const check_job *job, const cfx_node *n)
{
    uint32_t i = n->mark - job->stamp;
    return job->parts[i] == CFX_NO_PART ? (uint32_t)job->n + i : job->parts[i];
}

static void count_missing(check_job *job)
{
    size_t i = job->size;
    for (cfx_node *n = job->graph->root.prev; n != &job->graph->root; n = n->prev) {
        uint32_t unit = unit_of(job, n);
        job->nodes[--i] = n;
        job->n_units += job->first[unit] == CFX_NO_PART;
        job->next[i] = job->first[unit];
        job->first[unit] = (uint32_t)i;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            job->missing[unit] += unit_of(job, n->inputs[k].def) != unit;
    }
}

static void tell_users(check_job *job, uint32_t unit)
{
    for (uint32_t i = job->first[unit]; i != CFX_NO_PART; i = job->next[i])
        for (const cfx_use *use = cfx_node_first_use(job->nodes[i]); use;
             use = cfx_use_next(use)) {
            uint32_t user = unit_of(job, use->user);
            if (user != unit && --job->missing[user] == 0)
                job->ready[job->n_ready++] = user;
        }
}

/* A node of `unit` with an input whose unit is stuck, too: a stuck unit has one. */
static cfx_node *stuck_input(const check_job *job, uint32_t unit, cfx_node **user)
{
    for (uint32_t i = job->first[unit]; i != CFX_NO_PART; i = job->next[i])
        for (uint32_t k = 0; k < job->nodes[i]->n_inputs; k++) {
            cfx_node *def = job->nodes[i]->inputs[k].def;
            uint32_t other = unit_of(job, def);
            if (other != unit && job->missing[other] > 0) {
                *user = job->nodes[i];
                return def;
            }
        }
    return NULL;
}

enum { SEEN = UINT32_MAX };  /* uses that are missing: there are fewer */

/* From a stuck unit back along stuck units, until one comes again: that one is on a cycle. To blame
 * is a unit of several nodes; without any, the graph itself has a cycle. Each is looked at twice at
 * most. */
static cfx_status report_cycle(check_job *job, cfx_error *err)
{
    uint32_t unit = 0;
    cfx_node *user = NULL;
    char where[CFXI_WHERE_SIZE];
    while (job->first[unit] == CFX_NO_PART || job->missing[unit] == 0)
        unit++;
    for (; job->missing[unit] != SEEN; unit = unit_of(job, stuck_input(job, unit, &user)))
        job->missing[unit] = SEEN;
    const uint32_t first = unit;
    while (job->next[job->first[unit]] == CFX_NO_PART) {
        unit = unit_of(job, stuck_input(job, unit, &user));
        if (unit == first)
            break;
    }
    const cfx_node *def = stuck_input(job, unit, &user);
    return cfx_error_set(err, CFX_E_GRAPH, "Invalid partition, found dependency cycles: %%%s%s "
                         "uses %%%s, which needs a result of the partition that %%%s is in",
                         user->name->data, cfxi_ir_where(user, where), def->name->data,
                         user->name->data);
}

static cfx_status check(check_job *job, cfx_error *err)
{
    const size_t units = job->n + job->size;
    job->stamp = cfxi_ir_graph_number(job->graph);
    for (size_t i = 0; i < units; i++) {
        job->first[i] = CFX_NO_PART;
        job->missing[i] = 0;
    }
    count_missing(job);
    for (size_t i = 0; i < units; i++)
        if (job->first[i] != CFX_NO_PART && job->missing[i] == 0)
            job->ready[job->n_ready++] = (uint32_t)i;
    for (size_t done = 0; done < job->n_ready; done++)
        tell_users(job, job->ready[done]);
    return job->n_ready == job->n_units ? CFX_OK : report_cycle(job, err);
}

cfx_status cfx_graph_check_parts(cfx_graph *g, const uint32_t *parts, size_t n, cfx_error *err)
{
    check_job job = {.graph = g, .parts = parts, .n = n, .size = g->size};
    const size_t numbers = (n + g->size) * 3 + g->size;
    if (g->size == 0)
        return CFX_OK;
    uint32_t *arrays = cfxi_base_alloc(g->allocator, numbers * sizeof *arrays);
    job.nodes = cfxi_base_alloc(g->allocator, g->size * sizeof *job.nodes);
    cfx_status status = arrays && job.nodes ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK) {
        job.first = arrays;
        job.missing = job.first + n + g->size;
        job.ready = job.missing + n + g->size;
        job.next = job.ready + n + g->size;
        status = check(&job, err);
    }
    cfxi_base_free(g->allocator, arrays, numbers * sizeof *arrays);
    cfxi_base_free(g->allocator, job.nodes, g->size * sizeof *job.nodes);
    return status;
}

/* ---- the call ------------------------------------------------------------------------------ */

static cfx_node *add_module_call(cfx_graph *g, const cfx_fused *call, cfx_error *err)
{
    const cfx_target path = {.name = call->path, .size = strlen(call->path)};
    cfx_value *items = cfxi_base_alloc(g->allocator, call->n_inputs * sizeof *items);
    if (!items) {
        cfxi_base_nomem(err);
        return NULL;
    }
    for (size_t i = 0; i < call->n_inputs; i++)
        items[i] = cfx_value_node(call->inputs[i]);
    cfx_node *n = cfxi_analysis_add_call(g, CFX_OP_CALL_MODULE, path, items, call->n_inputs, err);
    cfxi_base_free(g->allocator, items, call->n_inputs * sizeof *items);
    return n;
}

/* The call, and what takes the values out of it: `made` has room for them. */
static cfx_node *make_call(cfx_graph *g, const cfx_fused *call, cfx_target getitem,
                           cfx_node **made, cfx_error *err)
{
    cfx_node *n = add_module_call(g, call, err);
    if (!n || (call->n_outputs <= 1 && !call->tuple)) {
        if (n && call->n_outputs == 1)
            made[0] = n;
        return n;
    }
    for (size_t i = 0; i < call->n_outputs; i++) {
        cfx_value pair[] = {cfx_value_node(n), cfx_value_int((int64_t)i)};
        made[i] = cfxi_analysis_add_call(g, CFX_OP_CALL_FUNCTION, getitem, pair, 2, err);
        if (!made[i]) {
            while (i-- > 0)
                cfx_graph_erase(g, made[i], NULL);
            cfx_graph_erase(g, n, NULL);
            return NULL;
        }
    }
    return n;
}

static int is_other(void *call, cfx_node *user) { return user != call; }

static cfx_status use_results(const cfx_fused *call, cfx_node *n, cfx_node **made, cfx_error *err)
{
    for (size_t i = 0; i < call->n_outputs; i++)
        CFX_TRY(cfx_node_replace_uses(call->outputs[i], cfx_value_node(made[i]), is_other, NULL, n,
                                      err));
    return CFX_OK;
}

static cfx_node *last_of(const cfx_fused *call)
{
    cfx_node *last = call->n_outputs > 0 ? call->outputs[0] : NULL;
    for (size_t i = 1; i < call->n_outputs; i++)
        if (cfx_node_before(last, call->outputs[i]))
            last = call->outputs[i];
    return last;
}

cfx_node *cfx_graph_insert_fused(cfx_graph *g, const cfx_fused *call, cfx_target getitem,
                                 cfx_node **made, cfx_error *err)
{
    const size_t room = call->n_outputs * sizeof *made;
    for (size_t i = 0; i < call->n_outputs; i++)
        if (call->outputs[i]->graph != g || cfxi_ir_node_erased(call->outputs[i])) {
            cfx_error_set(err, CFX_E_GRAPH, "node %%%s, which a call should replace, is not in "
                          "this graph", call->outputs[i]->name->data);
            return NULL;
        }
    cfx_node **results = made ? made : cfxi_base_alloc(g->allocator, room);
    if (!results) {
        cfxi_base_nomem(err);
        return NULL;
    }
    const cfx_insert_point old = cfx_graph_insert_point(g);
    cfx_node *after = call->after ? call->after : last_of(call);
    /* in front of what follows: nodes created behind one and the same node come in reverse */
    cfx_node *next = after ? after->next : g->root.next;
    const cfx_insert_point here = {cfxi_ir_node_is_root(next) ? NULL : next, false};
    cfx_node *n = NULL;
    if (cfx_graph_set_insert_point(g, here, err) == CFX_OK)
        n = make_call(g, call, getitem, results, err);
    cfx_graph_set_insert_point(g, old, NULL);
    if (n && use_results(call, n, results, err) != CFX_OK)
        n = NULL;
    if (results != made)
        cfxi_base_free(g->allocator, results, room);
    return n;
}
