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
#include "../ir/graph_impl.h"

#include <cfx/pass.h>

/* An operator counts on the inputs and the output of its regions, whatever the caller thinks. */
static bool is_end_of_region(const cfx_node *n)
{
    return n->graph->parent && (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT);
}

/* 1 keep, 0 erase, -1 failed. */
static int must_keep(cfx_node *n, const cfx_dce_options *opts)
{
    if (opts && opts->is_impure) {
        int answer = opts->is_impure(opts->ctx, n);
        return answer == 0 && (n->n_users > 0 || is_end_of_region(n)) ? 1 : answer;
    }
    return n->n_users > 0 ? 1 : cfx_node_is_impure(n);
}

static cfx_status sweep(cfx_graph *g, const cfx_dce_options *opts, bool *changed, cfx_error *err)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        int keep = must_keep(n, opts);
        if (keep > 0)
            continue;
        if (keep < 0)
            status = cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an "
                                   "effect", n->name->data);
        else
            status = cfx_graph_erase(g, n, err);
        *changed = *changed || status == CFX_OK;
    }
    cfx_iter_end(&it);
    return status;
}

static cfx_status sweep_all(cfx_graph *g, const cfx_dce_options *opts, bool *changed,
                            cfx_error *err);

/* Sweeping calls back into the host, which may do anything to the table of references, so regions
 * are collected and held first. */
static cfx_status sweep_regions(cfx_graph *g, const cfx_dce_options *opts, bool *changed,
                                cfx_error *err)
{
    cfxi_vec regions = {0};
    cfx_status status = CFX_OK;
    size_t at = 0;
    for (cfx_ref *ref; (ref = cfxi_table_next(&g->refs_table, &at)) != NULL;) {
        if (ref->kind != CFXI_REF_REGION || ref->refs == 0)
            continue;
        if (!cfxi_vec_reserve(&regions, 1, sizeof(cfx_graph *), g->allocator)) {
            status = cfxi_nomem(err);
            break;
        }
        ((cfx_graph **)regions.data)[regions.size++] = cfx_graph_retain(ref->region);
    }
    for (size_t i = 0; i < regions.size; i++) {
        cfx_graph *region = ((cfx_graph **)regions.data)[i];
        if (status == CFX_OK)
            status = sweep_all(region, opts, changed, err);
        cfx_graph_release(region);
    }
    cfxi_vec_free(&regions, sizeof(cfx_graph *), g->allocator);
    return status;
}

static cfx_status sweep_all(cfx_graph *g, const cfx_dce_options *opts, bool *changed,
                            cfx_error *err)
{
    CFX_TRY(sweep(g, opts, changed, err));
    return sweep_regions(g, opts, changed, err);
}

cfx_status cfx_pass_dce(cfx_graph *g, const void *opts, bool *changed, cfx_error *err)
{
    bool any = false;
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = sweep_all(g, opts, &any, err);
    if (changed)
        *changed = any;
    return status;
}
