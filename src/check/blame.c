/* blame.c - the first node from which wrong values spread to the end.
 *
 *     %c = call_module[target=conv](%x)      wrong: it took in %b, and so it should
 *     %b = call_module[target=bn](%c)        unknown: erased in the other graph
 *     %r = call_function[target=relu](%b)    right
 *     %s = call_function[target=sum](%r)     wrong: the culprit
 *     output(%s)                             wrong
 *
 * Needs: nothing. Keeps: everything.
 *
 * Backwards: a node whose value is not right taints the end if it is an output, may write to what
 * others read, or is read by one that does. The earliest such node with a wrong value is to blame;
 * or a call before it that only writes, and of which the other graph has none.
 */
#include "analysis/effects_impl.h"

#include <cfx/embed/check.h>

static cfx_status is_end(cfx_node *n, bool *end, cfx_error *err)
{
    cfx_effect effect = CFX_EFFECT_NONE;
    if (n->op != CFX_OP_OUTPUT && n->op != CFX_OP_PLACEHOLDER)
        CFX_TRY(cfx_node_effect(n, NULL, &effect, err));
    *end = n->op == CFX_OP_OUTPUT || effect == CFX_EFFECT_WRITES;
    return CFX_OK;
}

/* Nodes in their order, and whether each taints the end. */
typedef struct blame_job {
    cfx_graph *graph;
    cfx_node **nodes;
    uint8_t *verdicts;
    bool *ends;
    bool *taints;
} blame_job;

/* All that the host is asked, before marks number the nodes: it may number them for itself. */
static cfx_status ask_all(const blame_job *job, cfx_verdict_fn *verdict, void *ctx, cfx_error *err)
{
    size_t i = 0;
    for (cfx_node *n = job->graph->root.next; n != &job->graph->root; n = n->next, i++) {
        const int answer = verdict(ctx, n);
        if (answer < 0)
            return cfxi_base_failed(err, CFX_E_HOST);
        job->nodes[i] = n;
        job->verdicts[i] = (uint8_t)answer;
        job->ends[i] = job->taints[i] = false;
        if (answer != CFX_VERDICT_RIGHT)
            CFX_TRY(is_end(n, &job->ends[i], err));
    }
    return CFX_OK;
}

static cfx_node *find_culprit(const blame_job *job)
{
    cfx_node *culprit = NULL;
    const uint32_t stamp = cfxi_ir_graph_number(job->graph);
    for (size_t i = job->graph->size; i-- > 0;) {
        const cfx_node *n = job->nodes[i];
        if (job->verdicts[i] == CFX_VERDICT_RIGHT || !(job->ends[i] || job->taints[i]))
            continue;
        if (job->verdicts[i] == CFX_VERDICT_WRONG || (culprit && n->n_users == 0))
            culprit = job->nodes[i];
        for (uint32_t k = 0; k < n->n_inputs; k++)
            job->taints[n->inputs[k].def->mark - stamp] = true;
    }
    return culprit;
}

cfx_status cfx_graph_blame(cfx_graph *g, cfx_verdict_fn *verdict, void *ctx, cfx_node **culprit,
                           cfx_error *err)
{
    const size_t each = sizeof(cfx_node *) + sizeof(uint8_t) + 2 * sizeof(bool);
    size_t bytes;
    blame_job job = {.graph = g};
    *culprit = NULL;
    if (cfxi_base_mul_size(g->size + 1, each, 0, &bytes))
        job.nodes = cfxi_base_alloc(g->allocator, bytes);
    if (!job.nodes)
        return cfxi_base_nomem(err);
    job.verdicts = (uint8_t *)(job.nodes + g->size + 1);
    job.ends = (bool *)(job.verdicts + g->size + 1);
    job.taints = job.ends + g->size + 1;
    cfxi_ir_graph_freeze(g);
    cfx_status status = ask_all(&job, verdict, ctx, err);
    if (status == CFX_OK)
        *culprit = find_culprit(&job);
    cfxi_ir_graph_thaw(g);
    cfxi_base_free(g->allocator, job.nodes, bytes);
    return status;
}
