/* lift_params.c - passes what a graph reads from its module as inputs.
 *
 *     before                                       after (paths: "fc.weight")
 *     %x = placeholder[target=x]()                 %w = placeholder[target=w]()
 *     %w = get_attr[target=fc.weight]()            %x = placeholder[target=x]()
 *     %w_1 = get_attr[target=fc.weight]()          %mul = call_method[target=mul](%x, %w)
 *     %mul = call_method[target=mul](%x, %w)       %add = call_method[target=add](%mul, %w)
 *     %add = call_method[target=add](%mul, %w_1)   output(%add)
 *     output(%add)
 *
 * Needs: the modules, to tell tensors from other attributes.
 * Keeps: nodes are changed in place, so names, locations, users and whatever is bound to them stay.
 * The new inputs come first: inputs with defaults or for any number of arguments can follow.
 *
 * Linear in nodes and edges.
 */
#include "ops/ops_impl.h"
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

/* The first reader of each path. */
static cfx_status find_readers(cfx_graph *g, cfxi_vec *readers, cfx_error *err)
{
    const uint32_t seen = cfxi_ir_graph_stamp(g, 1);
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        if (n->op != CFX_OP_GET_ATTR || n->mark == seen)
            continue;
        CFX_TRY(cfxi_analysis_nodes_push(readers, n, g->allocator, err));
        for (cfx_node *same = n; same->mark != seen; same = same->same_next)
            same->mark = seen;
    }
    return CFX_OK;
}

/* Leaves those that read tensors. The host may run any code, so the graph is frozen meanwhile, and
 * marks are no longer in use. */
static cfx_status keep_tensors(cfx_graph *g, const cfx_module_tree *modules, cfxi_vec *readers,
                               cfx_error *err)
{
    cfx_node **nodes = readers->data;
    cfx_status status = CFX_OK;
    size_t kept = 0;
    cfxi_ir_graph_freeze(g);
    for (size_t i = 0; i < readers->size && status == CFX_OK; i++) {
        cfx_value dtype;
        status = cfxi_ops_module_attr(modules, g, nodes[i]->callee->ref->name->data, "dtype",
                                      &dtype, err);
        cfx_value_discard(g, dtype);
        if (dtype.kind == CFX_KIND_DTYPE)
            nodes[kept++] = nodes[i];
    }
    cfxi_ir_graph_thaw(g);
    readers->size = kept;
    return status;
}

/* Makes all other readers of the same path use `n`, which stands before them. */
static cfx_status merge_readers(cfx_node *n, cfx_error *err)
{
    while (n->same_next != n) {
        cfx_node *other = n->same_next;
        CFX_TRY(cfx_node_replace_uses(other, cfx_value_node(n), NULL, NULL, NULL, err));
        CFX_TRY(cfx_graph_erase(n->graph, other, err));
    }
    return CFX_OK;
}

/* Makes `n` an input behind `last`, or the first one if that is NULL. */
static cfx_status make_input(cfx_node *n, cfx_node *last, cfx_error *err)
{
    const cfx_target target = {.name = n->name->data, .size = n->name->size};
    CFX_TRY(last ? cfx_node_append(last, n, err)
                 : cfx_node_prepend(n->graph->root.next, n, err));
    CFX_TRY(merge_readers(n, err));
    CFX_TRY(cfx_node_set_op(n, CFX_OP_PLACEHOLDER, err));
    return cfx_node_set_target(n, target, err);
}

static cfx_status tell(const cfx_lift_params_options *opts, const cfxi_vec *readers, cfx_error *err)
{
    for (size_t i = 0; opts && opts->lifted && i < readers->size; i++) {
        const cfx_node *n = ((cfx_node **)readers->data)[i];
        cfx_status status = opts->lifted(opts->ctx, n->callee->ref->name->data, err);
        if (status != CFX_OK)
            return cfxi_base_failed(err, status);
    }
    return CFX_OK;
}

static cfx_status lift(cfx_graph *g, const cfxi_vec *readers, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_node *last = NULL;
    cfx_iter pin;  /* hooks may erase what is still to be lifted: that fails then */
    cfx_iter_begin(&pin, g, false);
    for (size_t i = 0; i < readers->size && status == CFX_OK; i++) {
        cfx_node *n = ((cfx_node **)readers->data)[i];
        status = make_input(n, last, err);
        last = n;
    }
    cfx_iter_end(&pin);
    return status;
}

cfx_status cfxi_pass_lift_params(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                 bool *changed, cfx_error *err)
{
    cfxi_vec readers = {0};
    bool any = false;
    cfx_status status = CFX_OK;
    modules = cfxi_analysis_modules_or_null(modules);
    if (modules)
        status = cfxi_pass_lift_attrs(g, modules, NULL, &any, err);
    if (modules && status == CFX_OK)
        status = find_readers(g, &readers, err);
    if (status == CFX_OK)
        status = keep_tensors(g, modules, &readers, err);
    if (status == CFX_OK)
        status = tell(opts, &readers, err);
    any = any || readers.size > 0;
    if (status == CFX_OK)
        status = lift(g, &readers, err);
    cfxi_base_vec_free(&readers, sizeof(cfx_node *), g->allocator);
    if (changed)
        *changed = any;
    return status;
}
