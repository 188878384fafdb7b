/* regions.c - the regions of a graph, one by one. */
#include "analysis_impl.h"

static cfx_status collect(cfx_graph *g, cfxi_vec *regions, cfx_error *err)
{
    size_t at = 0;
    for (cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;) {
        if (ref->kind != CFXI_REF_REGION || ref->refs == 0)
            continue;
        if (!cfxi_base_vec_reserve(regions, 1, sizeof(cfx_graph *), g->allocator))
            return cfxi_base_nomem(err);
        ((cfx_graph **)regions->data)[regions->size++] = cfx_graph_retain(ref->region);
    }
    return CFX_OK;
}

bool cfxi_analysis_has_regions(const cfx_graph *g)
{
    size_t at = 0;
    for (const cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;)
        if (ref->kind == CFXI_REF_REGION && ref->refs > 0)
            return true;
    return false;
}

cfx_status cfxi_analysis_each_region(cfx_graph *g, cfxi_region_fn *fn, void *ctx, cfx_error *err)
{
    cfxi_vec regions = {0};
    cfx_status status = collect(g, &regions, err);
    for (size_t i = 0; i < regions.size; i++) {
        cfx_graph *region = ((cfx_graph **)regions.data)[i];
        if (status == CFX_OK)
            status = fn(region, ctx, err);
        cfx_graph_release(region);
    }
    cfxi_base_vec_free(&regions, sizeof(cfx_graph *), g->allocator);
    return status;
}
