/* reach.c - what can be reached from nodes, along uses or along inputs; and the edges of a part. */
#include <cfx/embed/partition.h>

#include "analysis/analysis_impl.h"

typedef struct reach_job {
    cfx_graph *graph;
    uint32_t seen;
    cfxi_vec nodes;  /* of cfx_node *: reached, nearest first; the walk goes on from each in turn */
    cfx_error *err;
} reach_job;

static cfx_status reach(reach_job *job, cfx_node *n)
{
    if (n->mark == job->seen)
        return CFX_OK;
    n->mark = job->seen;
    return cfxi_analysis_nodes_push(&job->nodes, n, job->graph->allocator, job->err);
}

static cfx_status reach_from(reach_job *job, const cfx_node *n, bool down)
{
    for (uint32_t i = 0; !down && i < n->n_inputs; i++)
        CFX_TRY(reach(job, n->inputs[i].def));
    const cfx_use *use = down ? cfx_node_first_use(n) : NULL;
    for (; use; use = cfx_use_next(use))
        CFX_TRY(reach(job, use->user));
    return CFX_OK;
}

cfx_status cfx_graph_each_reached(cfx_graph *g, cfx_node *const *from, size_t n, bool down,
                                  cfx_node_fn *fn, void *ctx, cfx_error *err)
{
    reach_job job = {.graph = g, .seen = cfxi_ir_graph_stamp(g, 1), .err = err};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = reach_from(&job, from[i], down);
    for (size_t i = 0; status == CFX_OK && i < job.nodes.size; i++)
        status = reach_from(&job, ((cfx_node **)job.nodes.data)[i], down);
    for (size_t i = 0; status == CFX_OK && i < job.nodes.size; i++)
        status = fn(ctx, ((cfx_node **)job.nodes.data)[i]);
    cfxi_base_vec_free(&job.nodes, sizeof(cfx_node *), g->allocator);
    return status;
}

int cfx_node_may_depend_on(cfx_node *a, const cfx_node *b, size_t search_depth, cfx_error *err)
{
    reach_job job = {.graph = a->graph, .seen = cfxi_ir_graph_stamp(a->graph, 1), .err = err};
    cfx_status status = reach(&job, a);
    size_t end = 1;  /* of those that are as far away as the one at hand */
    bool may = false;
    for (size_t i = 0; status == CFX_OK && !may && i < job.nodes.size; i++) {
        const cfx_node *n = ((cfx_node **)job.nodes.data)[i];
        if (i == end) {
            search_depth--;
            end = job.nodes.size;
        }
        may = n == b || (n->n_inputs > 0 && search_depth == 0);
        if (!may)
            status = reach_from(&job, n, false);
    }
    cfxi_base_vec_free(&job.nodes, sizeof(cfx_node *), a->graph->allocator);
    return status == CFX_OK ? may : -1;
}

/* ---- the edges of a part ------------------------------------------------------------------- */

enum { OUTSIDE, BEHIND, BEFORE, MARKS };

static bool has_marked_input(const cfx_node *n, uint32_t mark)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i].def->mark == mark)
            return true;
    return false;
}

static bool has_marked_user(const cfx_node *n, uint32_t mark)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (use->user->mark == mark)
            return true;
    return false;
}

void cfx_nodes_find_boundary(cfx_node *const *nodes, size_t n, bool *transparent)
{
    if (n == 0)
        return;
    const uint32_t stamp = cfxi_ir_graph_stamp(nodes[0]->graph, MARKS);
    for (size_t i = 0; i < n; i++)
        nodes[i]->mark = stamp + OUTSIDE;
    for (size_t i = 0; i < n; i++)
        if (!transparent[i] || has_marked_input(nodes[i], stamp + BEHIND))
            nodes[i]->mark = stamp + BEHIND;
    for (size_t i = n; i-- > 0;) {
        bool opaque = !transparent[i], behind = nodes[i]->mark == stamp + BEHIND;
        transparent[i] = !behind;
        nodes[i]->mark = stamp + OUTSIDE;
        if (!opaque && !has_marked_user(nodes[i], stamp + BEFORE))
            transparent[i] = true;
        else
            nodes[i]->mark = stamp + BEFORE;
    }
}

/* ---- the boundary of a set of nodes -------------------------------------------------------- */

enum { MEMBER, INPUT, BOUNDARY_MARKS };

typedef struct boundary_job {
    cfx_graph *graph;
    uint32_t stamp;
    cfxi_vec lists[CFX_BOUNDARY_COUNT];  /* of cfx_node * */
    cfx_error *err;
} boundary_job;

static cfx_status put(boundary_job *job, cfx_boundary_kind kind, cfx_node *n)
{
    return cfxi_analysis_nodes_push(&job->lists[kind], n, job->graph->allocator, job->err);
}

static cfx_status add_boundary(boundary_job *job, cfx_node *n)
{
    for (uint32_t i = 0; n->args && i < n->args->size; i++) {
        const cfx_value v = n->args->items[i];
        if (v.kind != CFX_KIND_NODE || v.as.node->op == CFX_OP_GET_ATTR ||
            v.as.node->mark - job->stamp < BOUNDARY_MARKS)
            continue;
        v.as.node->mark = job->stamp + INPUT;
        CFX_TRY(put(job, CFX_BOUNDARY_INPUT, v.as.node));
    }
    if (n->op == CFX_OP_GET_ATTR)
        CFX_TRY(put(job, CFX_BOUNDARY_PARAM, n));
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (use->user->mark != job->stamp + MEMBER)
            return put(job, CFX_BOUNDARY_OUTPUT, n);
    return CFX_OK;
}

cfx_status cfx_nodes_boundary(cfx_node *const *nodes, size_t n, cfx_boundary_fn *fn, void *ctx,
                              cfx_error *err)
{
    if (n == 0)
        return CFX_OK;
    cfx_graph *g = nodes[0]->graph;
    boundary_job job = {.graph = g, .stamp = cfxi_ir_graph_stamp(g, BOUNDARY_MARKS), .err = err};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < n; i++)
        nodes[i]->mark = job.stamp + MEMBER;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = add_boundary(&job, nodes[i]);
    for (int kind = 0; kind < CFX_BOUNDARY_COUNT; kind++) {
        cfx_node **list = job.lists[kind].data;
        for (size_t i = 0; status == CFX_OK && i < job.lists[kind].size; i++)
            status = fn(ctx, (cfx_boundary_kind)kind, list[i]);
        cfxi_base_vec_free(&job.lists[kind], sizeof(cfx_node *), g->allocator);
    }
    return status;
}
