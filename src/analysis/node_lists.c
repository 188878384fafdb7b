/* node_lists.c - what passes do with nodes all the time: keep lists of them, and add some. */
#include "analysis_impl.h"

cfx_status cfxi_analysis_nodes_push(cfxi_vec *nodes, cfx_node *n, const cfx_allocator *allocator,
                                    cfx_error *err)
{
    if (!cfxi_base_vec_reserve(nodes, 1, sizeof n, allocator))
        return cfxi_base_nomem(err);
    ((cfx_node **)nodes->data)[nodes->size++] = n;
    return CFX_OK;
}

int cfxi_analysis_compare_order(const void *a, const void *b)
{
    uint64_t x = (*(cfx_node *const *)a)->order;
    uint64_t y = (*(cfx_node *const *)b)->order;
    return (x > y) - (x < y);
}

/* ---- adding nodes -------------------------------------------------------------------------- */

cfx_node *cfxi_analysis_add_call(cfx_graph *g, cfx_opcode op, cfx_target target,
                                 const cfx_value *args, size_t n, cfx_error *err)
{
    cfx_value tuple = cfx_value_tuple(g, args, n, err);
    if (tuple.kind == CFX_KIND_INVALID)
        return NULL;
    cfx_node *call =
        cfx_graph_create(g, op, target, tuple, cfx_value_invalid(), NULL, cfx_value_invalid(), err);
    if (!call)
        cfx_value_discard(g, tuple);
    return call;
}

cfx_node *cfxi_analysis_add_function(cfx_graph *g, const char *name, const cfx_value *args,
                                     size_t n, cfx_error *err)
{
    const size_t size = strlen(name);
    cfx_value function = cfx_value_retain(cfx_value_name(g, name, size, err));
    if (function.kind == CFX_KIND_INVALID)
        return NULL;
    const cfx_target target = {.object = cfx_value_object(function), .name = name, .size = size};
    cfx_node *call = cfxi_analysis_add_call(g, CFX_OP_CALL_FUNCTION, target, args, n, err);
    cfx_value_release(g, function);
    return call;
}

cfx_node *cfxi_analysis_add_getitem(cfx_graph *g, cfx_node *n, size_t i, cfx_error *err)
{
    const cfx_value args[] = {cfx_value_node(n), cfx_value_int((int64_t)i)};
    return cfxi_analysis_add_function(g, "operator.getitem", args, 2, err);
}

cfx_node *cfxi_analysis_add_reader(cfx_node *before, const char *path, cfx_error *err)
{
    cfx_graph *g = before->graph;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    if (cfx_graph_set_insert_point(g, (cfx_insert_point){before, false}, err) != CFX_OK)
        return NULL;
    cfx_node *n = cfx_graph_get_attr(g, path, err);
    cfx_graph_set_insert_point(g, old, NULL);
    if (n)
        cfxi_analysis_place_like(n, before);
    return n;
}

/* ---- replacing inputs ---------------------------------------------------------------------- */

static cfx_value instead_of(void *map, cfx_node *n, cfx_error *err)
{
    cfx_value v = cfx_node_map_get(map, n);
    (void)err;
    return v.kind == CFX_KIND_INVALID ? cfx_value_node(n) : v;
}

/* Whether `n` uses what is to be replaced; hooks hear of each such use. */
static cfx_status announce(cfx_node *n, const cfx_node_map *instead, bool *any, cfx_error *err)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        cfx_value v = cfx_node_map_get(instead, n->inputs[i].def);
        if (v.kind == CFX_KIND_INVALID)
            continue;
        *any = true;
        CFX_TRY(cfxi_ir_run_hooks(n->graph, CFX_HOOK_REPLACE, n->inputs[i].def, v, n, err));
    }
    return CFX_OK;
}

cfx_status cfxi_analysis_replace_inputs(cfx_node *n, cfx_node_map *instead, cfx_error *err)
{
    cfx_graph *g = n->graph;
    bool any = false;
    CFX_TRY(announce(n, instead, &any, err));
    if (!any)
        return CFX_OK;
    cfx_value args = cfx_value_map(g, g, cfx_node_args(n), instead_of, instead, err);
    cfx_value kwargs = cfx_value_map(g, g, cfx_node_kwargs(n), instead_of, instead, err);
    cfx_status status = CFX_E_NOMEM;
    if (args.kind != CFX_KIND_INVALID && kwargs.kind != CFX_KIND_INVALID)
        status = cfx_node_set_args_kwargs(n, args, kwargs, err);
    if (status != CFX_OK) {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
    }
    return status;
}
