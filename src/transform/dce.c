/* dce.c - dead-code elimination: erases nodes that nobody uses and that have no effect.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %relu = call_function[target=torch.relu](%x)    %relu = call_function[target=torch.relu](%x)
 *     %neg = call_function[target=torch.neg](%relu)   output(%relu)
 *     %abs = call_function[target=torch.abs](%neg)
 *     output(%relu)
 *
 * Needs: a graph that cfx_graph_lint accepts.
 * Keeps: names, order, locations and arguments of all nodes that stay; placeholders; the inputs
 * and outputs of regions. In-place methods ("add_") count as pure, as they do in torch.fx.
 *
 * One walk backwards: when a node is met, whatever uses it has been erased if it could be. Linear
 * in nodes and edges. Regions of the nodes that stay are treated likewise.
 */
#include "transform_impl.h"

typedef struct sweep_job {
    const cfx_dce_options *opts;
    const cfx_library *library;
    bool changed;
} sweep_job;

/* An operator counts on the inputs and the output of its regions, whatever the caller thinks. */
static bool is_end_of_region(const cfx_node *n)
{
    return n->graph->parent && (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT);
}

/* 1 keep, 0 erase, -1 failed. */
static int must_keep(cfx_node *n, const sweep_job *job)
{
    const cfx_dce_options *opts = job->opts;
    if (opts && opts->is_impure) {
        int answer = opts->is_impure(opts->ctx, n);
        return answer == 0 && (n->n_users > 0 || is_end_of_region(n)) ? 1 : answer;
    }
    return n->n_users > 0 ? 1 : cfxi_node_must_stay(n, job->library);
}

static cfx_status sweep(cfx_graph *g, sweep_job *job, cfx_error *err)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        int keep = must_keep(n, job);
        if (keep > 0)
            continue;
        if (keep < 0)
            status = cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an "
                                   "effect", n->name->data);
        else
            status = cfx_graph_erase(g, n, err);
        job->changed = job->changed || status == CFX_OK;
    }
    cfx_iter_end(&it);
    return status;
}

static cfx_status sweep_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    sweep_job *job = ctx;
    CFX_TRY(sweep(g, job, err));
    return cfxi_each_region(g, sweep_all, job, err);
}

cfx_status cfx_pass_dce(cfx_graph *g, const cfx_modules *modules, const void *opts, bool *changed,
                        cfx_error *err)
{
    sweep_job job = {.opts = opts, .library = cfxi_library_of(modules)};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = sweep_all(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
