/* For language bindings and back ends; may change between versions.
 *
 * embed/copy.h - copying nodes and values between graphs.
 */
#ifndef CFX_EMBED_COPY_H
#define CFX_EMBED_COPY_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A map from nodes to values. The values are borrowed from the graph they belong to. */
CFX_API cfx_node_map *cfx_node_map_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_node_map_free(cfx_node_map *map);
CFX_API cfx_status cfx_node_map_set(cfx_node_map *map, const cfx_node *key, cfx_value v,
                                    cfx_error *err);
/* INVALID if the node is not in the map. */
CFX_API cfx_value cfx_node_map_get(const cfx_node_map *map, const cfx_node *key);

/* Returns the value that replaces a node; INVALID, with *err set, stops the copy. */
typedef cfx_value cfx_map_fn(void *ctx, cfx_node *n, cfx_error *err);

/* Rebuilds `v`, a value of `src`, for the graph `dst`, with every node replaced by the result of
 * `fn`. If both are the same graph, regions and unchanged containers are shared; otherwise they are
 * copied. The result is floating. On failure the caller discards the values that `fn` has returned
 * so far: they may be in use elsewhere. */
CFX_API cfx_value cfx_value_map(cfx_graph *dst, cfx_graph *src, cfx_value v, cfx_map_fn *fn,
                                void *ctx, cfx_error *err);

/* Copies `n`, a node of any graph, into `g` at its insertion point, with its arguments mapped by
 * `fn`. Returns the copy, borrowed; NULL with *err set. */
CFX_API cfx_node *cfx_graph_copy_node(cfx_graph *g, const cfx_node *n, cfx_map_fn *fn, void *ctx,
                                      cfx_error *err);

/* Copies the nodes of `src`, up to its output, into `g`. Nodes that are already in `map` are not
 * copied. *result receives the output's value mapped to `g`, floating (INVALID if `src` has no
 * output); *output (may be NULL) receives the output node of `src`, or NULL. On failure the nodes
 * copied so far are erased. */
CFX_API cfx_status cfx_graph_copy_from(cfx_graph *g, cfx_graph *src, cfx_node_map *map,
                                       cfx_value *result, cfx_node **output, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
