/* fuse.c - layers and the batch-norms behind them as one, before observers are put between.
 *
 * For inference that is the pass fuse_bn. What else counts as one (fusions.def) stays two calls:
 * preparing observes nothing between them.
 */
#include "prepare_impl.h"

#include <cfx/pass.h>

cfx_status cfx_graph_fuse_layers(cfx_graph *g, const cfx_module_tree *modules, bool *changed,
                                 cfx_error *err)
{
    return cfx_pass_run(cfx_pass_find("fuse_bn"), g, modules, NULL, changed, err);
}
