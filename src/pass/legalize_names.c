/* legalize_names.c - gives every node a name that generated code can use.
 *
 *     before (names set by hand)                      after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %if = call_function[target=torch.neg](%x)       %if_1 = call_function[target=torch.neg](%x)
 *     %a b = call_function[target=torch.abs](%if)     %a_b = call_function[target=torch.abs](%if_1)
 *     %x = call_function[target=torch.exp](%a b)      %x_1 = call_function[target=torch.exp](%a_b)
 *     output(%x)                                      output(%x_1)
 *
 * Needs: nothing.
 * Keeps: every name that is an identifier, no keyword or builtin, and no other node's; of two nodes
 * with one name, the one that was given it by the graph, else the first. Targets of placeholders,
 * order, arguments and locations. Regions have names of their own.
 *
 * Linear in nodes and the length of names.
 */
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

/* The nodes to rename; found first, since a new name changes who has a right to the old one. */
static cfx_status find_bad(cfx_graph *g, cfxi_vec *bad, cfx_error *err)
{
    cfx_node_map *names = NULL;
    cfx_status status = CFX_OK;
    for (cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next) {
        const cfx_node *rival = NULL;
        status = cfxi_ir_name_rival(n, &names, &rival, err);
        if (status != CFX_OK ||
            (!rival && cfxi_ir_name_is_legal(n->name->data, n->name->size)))
            continue;
        status = cfxi_analysis_nodes_push(bad, n, g->allocator, err);
    }
    cfx_node_map_free(names);
    return status;
}

static cfx_status rename_one(cfx_node *n, cfx_error *err)
{
    const cfxi_name *old = n->name;
    const char *name = cfx_namespace_create(&n->graph->names, old->data, old->size, false, err);
    return name ? cfx_node_set_name(n, name, strlen(name), err) : CFX_E_NOMEM;
}

/* A name that was set by hand is not taken yet: a new one could be the same. */
static cfx_status take_all(cfx_graph *g, cfx_error *err)
{
    CFX_TRY(cfxi_ir_graph_begin_edit(g, err));
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        CFX_TRY(cfx_namespace_add(&g->names, n->name->data, n->name->size, err));
    return CFX_OK;
}

static cfx_status legalize(cfx_graph *g, void *changed, cfx_error *err)
{
    cfxi_vec bad = {0};
    cfx_status status = find_bad(g, &bad, err);
    if (status == CFX_OK && bad.size > 0)
        status = take_all(g, err);
    for (size_t i = 0; i < bad.size && status == CFX_OK; i++) {
        status = rename_one(((cfx_node **)bad.data)[i], err);
        *(bool *)changed = *(bool *)changed || status == CFX_OK;
    }
    cfxi_base_vec_free(&bad, sizeof(cfx_node *), g->allocator);
    return status == CFX_OK ? cfxi_analysis_each_region(g, legalize, changed, err) : status;
}

cfx_status cfxi_pass_legalize_names(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                    bool *changed, cfx_error *err)
{
    (void)modules;
    (void)opts;
    bool any = false;
    cfx_status status = legalize(g, &any, err);
    if (changed)
        *changed = any;
    return status;
}
