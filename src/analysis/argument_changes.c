/* argument_changes.c - new arguments for several nodes, all of them or none: see
 * control_flow_impl.h. */
#include "control_flow_impl.h"

static cfx_status prepare(cfxi_changes *changes, cfx_node *n, cfx_value args, cfx_value kwargs,
                          cfx_error *err)
{
    CFX_TRY(cfxi_ir_graph_begin_edit(n->graph, err));
    if (!cfxi_base_vec_reserve(&changes->all, 1, sizeof(cfxi_arg_change), changes->allocator))
        return cfxi_base_nomem(err);
    cfxi_arg_change *change = (cfxi_arg_change *)changes->all.data + changes->all.size;
    CFX_TRY(cfxi_ir_args_prepare(change, n, args, kwargs, err));
    changes->all.size++;
    return CFX_OK;
}

cfx_status cfxi_analysis_changes_add(cfxi_changes *changes, cfx_node *n, cfx_value args,
                                     cfx_value kwargs, cfx_error *err)
{
    cfx_status status = CFX_E_NOMEM;
    if (args.kind != CFX_KIND_INVALID && kwargs.kind != CFX_KIND_INVALID)
        status = prepare(changes, n, args, kwargs, err);
    if (status == CFX_OK)
        return CFX_OK;
    cfx_value_discard(n->graph, args);
    cfx_value_discard(n->graph, kwargs);
    return status;
}

/* A copy of the arguments in which one is another. */
static cfx_value with_item(cfx_graph *g, cfx_kind kind, const cfx_seq *seq, size_t at, cfx_value v,
                           cfx_error *err)
{
    const size_t bytes = seq->size * sizeof v;
    cfx_value *items = cfxi_base_alloc(g->allocator, bytes);
    if (!items) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    memcpy(items, seq->items, bytes);
    items[at] = v;
    cfx_value all = cfx_value_seq(g, kind, items, seq->size, err);
    cfxi_base_free(g->allocator, items, bytes);
    return all;
}

static size_t find_key(const cfx_seq *kwargs, const char *keyword)
{
    for (uint32_t i = 0; kwargs && i + 1 < kwargs->size; i += 2)
        if (strcmp(kwargs->items[i].as.str->data, keyword) == 0)
            return i;
    return SIZE_MAX;
}

cfx_status cfxi_analysis_changes_add_arg(cfxi_changes *changes, cfx_node *n, size_t i,
                                         const char *keyword, cfx_value v, cfx_error *err)
{
    cfx_graph *g = n->graph;
    const bool positional = i < cfx_node_num_args(n);
    const size_t key = positional ? 0 : find_key(n->kwargs, keyword);
    if (v.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    if (!positional && key == SIZE_MAX)
        return cfx_error_set(err, CFX_E_INDEX, "node %%%s has no argument '%s'", n->name->data,
                             keyword);
    cfx_value args = positional ? with_item(g, CFX_KIND_TUPLE, n->args, i, v, err)
                                : cfx_node_args(n);
    cfx_value kwargs = positional ? cfx_node_kwargs(n)
                                  : with_item(g, CFX_KIND_DICT, n->kwargs, key + 1, v, err);
    if ((positional ? args : kwargs).kind == CFX_KIND_INVALID)
        cfx_value_discard(g, v);
    return cfxi_analysis_changes_add(changes, n, args, kwargs, err);
}

cfx_status cfxi_analysis_changes_end(cfxi_changes *changes, cfx_status status)
{
    cfxi_arg_change *all = changes->all.data;
    for (size_t i = 0; i < changes->all.size; i++) {
        if (status == CFX_OK) {
            cfxi_ir_args_commit(&all[i]);
            continue;
        }
        cfxi_ir_args_abandon(&all[i]);
        cfx_value_discard(all[i].node->graph, all[i].args);
        cfx_value_discard(all[i].node->graph, all[i].kwargs);
    }
    for (size_t i = 0; i < changes->all.size; i++)
        cfxi_ir_graph_settle(all[i].node->graph);
    cfxi_base_vec_free(&changes->all, sizeof *all, changes->allocator);
    return status;
}
