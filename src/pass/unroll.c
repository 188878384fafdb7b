/* unroll.c - puts the turns of short loops one after the other.
 *
 *     before                                            after
 *     %x = placeholder[target=x]()                      %x = placeholder[target=x]()
 *     %l = call_function[target=cfx.for_loop](2,        %m = call_function[target=torch.mul](%x, 0)
 *         graph {                                       %n = call_function[target=torch.mul](%m, 1)
 *           %i = placeholder[target=i]()                output(%n)
 *           %a = placeholder[target=a]()
 *           %m = call_function[target=torch.mul](%a, %i)
 *           output((%m,))
 *         }, (%x,))
 *     %r = call_function[target=operator.getitem](%l, 0)
 *     output(%r)
 *
 * Needs: nodes in topological order.
 * Keeps: names (as far as they are free), order and locations; every effect, in its order.
 *
 * A for_loop with a literal for its count, and a while_loop whose tests are computed from numbers
 * that it starts with. Numbers are folded on the way, so that what hangs on the index is known, and
 * branches whose predicate becomes known give way to the branch that is taken (resolve.c). Loops in
 * loops: the outer one comes first, counted with what the inner ones will become. Regions that stay
 * are done likewise. Linear in the nodes and edges of the result.
 */
#include "resolve_impl.h"
#include "pass_impl.h"

enum { MOST_TURNS = 16, MOST_NODES = 1000 };

static cfx_status unroll(cfx_graph *g, void *resolver, cfx_error *err)
{
    CFX_TRY(cfxi_pass_resolve(resolver, g, err));
    return cfxi_analysis_each_region(g, unroll, resolver, err);
}

cfx_status cfxi_pass_unroll(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                            bool *changed, cfx_error *err)
{
    const cfx_unroll_options *limits = opts;
    cfxi_effect_model model = {.modules = modules, .strict = limits && limits->strict};
    cfxi_resolver r = {.model = &model,
                       .max_count = limits ? limits->max_turns : MOST_TURNS,
                       .max_nodes = limits ? limits->max_nodes : MOST_NODES,
                       .truths = cfx_node_map_new(g->allocator, err)};
    cfx_status status = r.truths ? CFX_OK : CFX_E_NOMEM;
    do {  /* again if something gave way: less may write then */
        r.any = false;
        if (status == CFX_OK)
            status = unroll(g, &r, err);
    } while (r.any && status == CFX_OK);
    cfx_node_map_free(r.truths);
    cfxi_analysis_model_end(&model);
    if (changed)
        *changed = r.changed;
    return status;
}
