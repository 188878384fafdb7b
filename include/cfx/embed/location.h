/* For language bindings and back ends; may change between versions.
 *
 * embed/location.h - numbered locations, and the module stacks of nodes.
 */
#ifndef CFX_EMBED_LOCATION_H
#define CFX_EMBED_LOCATION_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- locations ----------------------------------------------------------------------------- */

/* Numbers a (file, line) pair within its graph, from 1; 0 means none. Saves time if the same
 * locations are set repeatedly. Returns 0 with *err set on failure. */
CFX_API uint32_t cfx_graph_intern_location(cfx_graph *g, const char *file, uint32_t line,
                                           cfx_error *err);
CFX_API void cfx_node_set_location_id(cfx_node *n, uint32_t location);

/* ---- module stacks ------------------------------------------------------------------------- */

/* A module stack is a chain of nested module calls: torch.fx's nn_module_stack. Each entry has a
 * path ("layers.0"; "layers.0@1" for the second call of the same module), a class ("nn.Linear") and
 * the enclosing entry, `outer` (0: none). `object` is the host's object for the class, or NULL; the
 * graph and its copies hold a reference to it. Entries are numbered from 1 in each graph, and equal
 * (outer, path, type, object) have equal numbers. Returns 0 with *err set on failure. */
CFX_API uint32_t cfx_graph_intern_stack(cfx_graph *g, uint32_t outer, const char *path,
                                        const char *type, void *object, cfx_error *err);
/* The fields of an entry. Texts and the object are borrowed; the object may be NULL. */
CFX_API uint32_t cfx_graph_stack_outer(const cfx_graph *g, uint32_t stack);
CFX_API const char *cfx_graph_stack_path(const cfx_graph *g, uint32_t stack);
CFX_API const char *cfx_graph_stack_type(const cfx_graph *g, uint32_t stack);
CFX_API void *cfx_graph_stack_object(const cfx_graph *g, uint32_t stack);

/* The innermost entry of a node's stack; 0 if it has none. */
CFX_API uint32_t cfx_node_module_stack(const cfx_node *n);
CFX_API void cfx_node_set_module_stack(cfx_node *n, uint32_t stack);

#ifdef __cplusplus
}
#endif
#endif
