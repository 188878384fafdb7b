/* For language bindings and back ends; may change between versions.
 *
 * embed/hook.h - callbacks on edits of a graph.
 */
#ifndef CFX_EMBED_HOOK_H
#define CFX_EMBED_HOOK_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hook is called after a node is created, before a node is erased, or for each user whose use of
 * `n` is being replaced by `with`. A status other than CFX_OK makes the edit fail; a new node is
 * then removed again, unless a hook has given it users. Hooks run in the order of registration and
 * must not change the graph's list of hooks. Returns an id > 0 for cfx_graph_remove_hook, or 0 with
 * *err set. */
typedef enum cfx_hook_kind { CFX_HOOK_CREATE, CFX_HOOK_ERASE, CFX_HOOK_REPLACE } cfx_hook_kind;
typedef cfx_status cfx_hook_fn(void *ctx, cfx_node *n, cfx_value with, cfx_node *user,
                               cfx_error *err);
CFX_API uint32_t cfx_graph_add_hook(cfx_graph *g, cfx_hook_kind kind, cfx_hook_fn *fn, void *ctx,
                                    cfx_error *err);
/* False if there is no hook of this id. */
CFX_API bool cfx_graph_remove_hook(cfx_graph *g, uint32_t id);

/* Calls `fn` once, just before the next edit of `g` or of one of its regions, for deferred work
 * that needs the graph as it is now. The graph is frozen meanwhile: `fn` can read it but not edit
 * it. A graph has one such callback; a new one replaces it, NULL removes it. Freeing the graph is
 * not an edit. */
typedef void cfx_edit_fn(void *ctx, cfx_graph *g);
CFX_API void cfx_graph_on_edit(cfx_graph *g, cfx_edit_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
