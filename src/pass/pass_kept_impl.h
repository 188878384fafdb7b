/* pass_kept_impl.h - checks of debug builds: a pass keeps what its row says. */
#ifndef CFXI_PASS_KEPT_IMPL_H
#define CFXI_PASS_KEPT_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/pass.h>

/* Runs a pass, then verifies the graph, if it was well formed before, and compares the nodes of the
 * graph with what they were. Fails with CFX_E_GRAPH if the pass broke the promise of its row. */
cfx_status cfxi_pass_run_checked(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                                 const void *opts, bool *changed, cfx_error *err);

#endif
