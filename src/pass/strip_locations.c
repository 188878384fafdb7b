/* strip_locations.c - forgets where in the user's program the nodes come from.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()  @ net.py:3        %x = placeholder[target=x]()
 *     output(%x)  @ net.py:4 in fc(torch.nn.Linear)   output(%x)
 *
 * For graphs that leave the house: files, lines and scopes say how the program around is organized.
 *
 * Needs: nothing.
 * Keeps: everything but locations and scopes. Linear in nodes.
 */
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

static cfx_status strip(cfx_graph *g, void *changed, cfx_error *err)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        if (!n->location && !n->scope)
            continue;
        cfx_node_set_location_id(n, 0);
        cfx_node_set_module_stack(n, 0);
        *(bool *)changed = true;
    }
    return cfxi_analysis_each_region(g, strip, changed, err);
}

cfx_status cfxi_pass_strip_locations(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                     bool *changed, cfx_error *err)
{
    (void)modules;
    (void)opts;
    bool any = false;
    cfx_status status = strip(g, &any, err);
    if (changed)
        *changed = any;
    return status;
}
