/* written_inputs.c - which inputs of a graph its calls write to. */
#include "alias_impl.h"

static bool note_write(void *ctx, uint32_t channel, bool writes)
{
    bool *written = ctx;
    written[channel] = written[channel] || writes;
    return true;
}

static cfx_status note_writes(cfxi_aliases *a, bool *written, cfx_error *err)
{
    cfx_graph *g = a->graph;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        unsigned does;
        CFX_TRY(cfxi_analysis_does(a->model, n, &does, err));
        if (does & CFXI_WRITES_ANY)
            cfxi_analysis_each_channel(a, n, does, note_write, written);
    }
    return CFX_OK;
}

static cfx_status tell_inputs(cfxi_aliases *a, const bool *written, cfx_node_fn *fn, void *ctx)
{
    cfx_status status = CFX_OK;
    cfx_graph *g = a->graph;
    for (cfx_node *n = g->root.next; status == CFX_OK && n != &g->root; n = n->next)
        if (n->op == CFX_OP_PLACEHOLDER && written[cfxi_analysis_alias_set(a, n) - a->sets])
            status = fn(ctx, n);
    return status;
}

static cfx_status find_written(cfxi_aliases *a, cfx_node_fn *fn, void *ctx, cfx_error *err)
{
    const cfx_allocator *allocator = a->graph->allocator;
    const size_t size = a->n + CFXI_CHANNEL_COUNT;
    CFX_TRY(cfxi_analysis_alias_join_all(a, err));
    bool *written = cfxi_base_alloc(allocator, size);
    if (!written)
        return cfxi_base_nomem(err);
    memset(written, 0, size);
    cfx_status status = note_writes(a, written, err);
    if (status == CFX_OK)
        status = tell_inputs(a, written, fn, ctx);
    cfxi_base_free(allocator, written, size);
    return status;
}

cfx_status cfx_graph_each_written_input(cfx_graph *g, const cfx_module_tree *modules,
                                        cfx_node_fn *fn, void *ctx, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    cfxi_effect_model m = {.modules = cfxi_analysis_modules_or_null(modules)};
    cfxi_aliases a;
    cfx_status status = cfxi_analysis_aliases_begin(&a, g, &m, CFXI_USES_ALL, err);
    if (status == CFX_OK)
        status = find_written(&a, fn, ctx, err);
    cfxi_analysis_aliases_end(&a);
    cfxi_analysis_model_end(&m);
    return status;
}
