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
 * and outputs of regions; what writes to an argument, unless torch.fx's rule is asked for, by which
 * in-place methods ("add_") and functions (operator.iadd) are pure.
 *
 * One walk backwards: when a node is met, whatever uses it has been erased if it could be. Linear
 * in nodes and edges. Regions of the nodes that stay are treated likewise.
 */
#include "transform_impl.h"

typedef struct sweep_job {
    const cfx_dce_options *opts;
    const cfx_modules *modules;
    bool changed;
} sweep_job;

/* An operator counts on the inputs and the output of its regions, whatever the caller thinks. */
static bool is_end_of_region(const cfx_node *n)
{
    return n->graph->parent && (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT);
}

static cfx_status could_not_tell(const cfx_node *n, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an effect",
                         n->name->data);
}

static cfx_status must_keep(cfx_node *n, const sweep_job *job, bool *keep, cfx_error *err)
{
    const cfx_dce_options *opts = job->opts;
    int answer;
    if (opts && opts->is_impure) {
        answer = opts->is_impure(opts->ctx, n);
        if (answer == 0)
            answer = n->n_users > 0 || is_end_of_region(n);
    } else {
        answer = n->n_users > 0 ? 1 : cfxi_node_must_stay(n, cfxi_library_of(job->modules));
    }
    *keep = answer > 0;
    if (answer < 0)
        return could_not_tell(n, err);
    if (*keep || (opts && (opts->is_impure || opts->like_torch_fx)))
        return CFX_OK;
    cfx_effect effect;
    CFX_TRY(cfx_node_effect(n, job->modules, &effect, err));
    *keep = effect == CFX_EFFECT_WRITES;
    return CFX_OK;
}

static cfx_status sweep(cfx_graph *g, sweep_job *job, cfx_error *err)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        bool keep;
        status = must_keep(n, job, &keep, err);
        if (status != CFX_OK || keep)
            continue;
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
    sweep_job job = {.opts = opts, .modules = modules};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = sweep_all(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
