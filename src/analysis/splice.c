/* splice.c - putting the nodes of a graph in the place of a call: see splice_impl.h. */
#include "splice_impl.h"

/* ---- nodes --------------------------------------------------------------------------------- */

static cfx_status tell(cfx_graph *src, const cfx_node_map *map, cfxi_copied_fn *copied, void *ctx,
                       cfx_error *err)
{
    for (cfx_node *n = src->root.next; copied && n != &src->root; n = n->next) {
        const cfx_value copy = cfx_node_map_get(map, n);
        if (n->op == CFX_OP_OUTPUT)
            break;
        if (n->op != CFX_OP_PLACEHOLDER && copy.kind == CFX_KIND_NODE)
            CFX_TRY(copied(ctx, n, copy.as.node, err));
    }
    return CFX_OK;
}

void cfxi_analysis_unsplice(cfx_node *at, const cfx_node *before)
{
    while (at->prev != before && at->prev->n_users == 0 &&
           cfx_graph_erase(at->graph, at->prev, NULL) == CFX_OK) {
    }
}

cfx_status cfxi_analysis_splice(cfx_node *at, cfx_graph *src, cfx_node_map *map,
                                cfxi_copied_fn *copied, void *ctx, cfx_value *result,
                                cfx_error *err)
{
    cfx_graph *g = at->graph;
    const cfx_node *before = at->prev;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    *result = cfx_value_invalid();
    CFX_TRY(cfx_graph_set_insert_point(g, (cfx_insert_point){at, false}, err));
    cfx_status status = cfx_graph_copy_from(g, src, map, result, NULL, err);
    cfx_graph_set_insert_point(g, old, NULL);
    CFX_TRY(status);
    *result = cfx_value_retain(*result);
    status = tell(src, map, copied, ctx, err);
    if (status == CFX_OK)
        return CFX_OK;
    cfx_value_release(g, *result);
    *result = cfx_value_invalid();
    cfxi_analysis_unsplice(at, before);
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

/* The item of `result` that a user of the call takes and does no more; INVALID if it does. */
static cfx_value item_for(cfx_node *user, cfx_value result)
{
    return cfxi_analysis_is_getitem(user) ? cfxi_ir_seq_item(result, cfx_node_arg(user, 1))
                                          : cfx_value_invalid();
}

static cfx_status take_items(cfx_node *call, cfx_value result, cfxi_vec *taken, cfx_error *err)
{
    const size_t first = taken->size;
    if (result.kind != CFX_KIND_TUPLE && result.kind != CFX_KIND_LIST)
        return CFX_OK;
    if (!cfxi_base_vec_reserve(taken, call->n_users, sizeof(cfx_node *), call->graph->allocator))
        return cfxi_base_nomem(err);
    for (const cfx_use *use = cfx_node_first_use(call); use; use = cfx_use_next(use))
        if (item_for(use->user, result).kind != CFX_KIND_INVALID)
            ((cfx_node **)taken->data)[taken->size++] = use->user;
    for (size_t i = first; i < taken->size; i++) {
        cfx_node *user = ((cfx_node **)taken->data)[i];
        CFX_TRY(cfx_node_replace_uses(user, item_for(user, result), NULL, NULL, NULL, err));
    }
    return CFX_OK;
}

cfx_status cfxi_analysis_splice_result(cfx_node *call, cfx_value result, cfxi_vec *taken,
                                       cfx_error *err)
{
    const cfx_graph *g = call->graph;
    if (g->nameless && call->name != g->nameless && result.kind == CFX_KIND_NODE &&
        result.as.node->op != CFX_OP_PLACEHOLDER)  /* it is what the name was given for */
        CFX_TRY(cfx_node_set_name(result.as.node, call->name->data, call->name->size, err));
    CFX_TRY(take_items(call, result, taken, err));
    return call->n_users == 0 ? CFX_OK
                              : cfx_node_replace_uses(call, result, NULL, NULL, NULL, err);
}

cfx_status cfxi_analysis_erase_taken(cfxi_vec *taken, cfx_error *err)
{
    while (taken->size > 0) {
        cfx_node *n = ((cfx_node **)taken->data)[--taken->size];
        if (!cfxi_ir_node_erased(n) && n->n_users == 0)
            CFX_TRY(cfx_graph_erase(n->graph, n, err));
    }
    return CFX_OK;
}
