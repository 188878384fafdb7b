/* For language bindings and back ends; may change between versions.
 *
 * embed/quantize.h - which configuration each node of a graph has.
 */
#ifndef CFX_EMBED_QUANTIZE_H
#define CFX_EMBED_QUANTIZE_H

#include <cfx/quantize.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives a node that calls or reads something, and its configuration: borrowed from the rules,
 * NULL if it stays float. */
typedef cfx_status cfx_qconfig_fn(void *ctx, const cfx_node *n, const cfx_qconfig *config,
                                  cfx_error *err);
/* Calls `fn` with the nodes of a graph, in order, but not with placeholders and outputs. Nodes of
 * regions belong to graphs of their own. `modules` may be NULL: then classes are not known. Fails
 * as the rules' matcher, the modules or `fn` do, or with CFX_E_NOMEM. */
CFX_API cfx_status cfx_qrules_each(const cfx_qrules *r, const cfx_graph *g,
                                   const cfx_module_tree *modules, cfx_qconfig_fn *fn, void *ctx,
                                   cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
