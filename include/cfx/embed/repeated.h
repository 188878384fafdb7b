/* For language bindings and back ends; may change between versions.
 *
 * embed/repeated.h - finds repeated parts of a graph, such as the layers of a model.
 *
 * Two parts are equal if their nodes, in order, have the same opcodes and targets, the same
 * literals, the same module classes and the same internal wiring, and if they read the same pattern
 * of values from outside and return the same nodes. Names, the text of assertions, and the
 * parameters behind get_attr nodes and modules may differ. Parts are compared by a 64-bit hash that
 * is the same in every process.
 */
#ifndef CFX_EMBED_REPEATED_H
#define CFX_EMBED_REPEATED_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_repeats cfx_repeats;

typedef struct cfx_repeat_options {
    size_t min_nodes;   /* per part; 0 means 2 */
    size_t min_copies;  /* 0 means 2 */
} cfx_repeat_options;

/* Finds disjoint groups of equal parts, greedily: the group that covers the most nodes first, and
 * among equals the one with the smallest parts. If nodes have module stacks, a part is the body of
 * one module call (a block of a transformer); otherwise it is a run of consecutive nodes. Regions
 * have groups of their own. `opts` may be NULL. The graph is only read; the result refers to its
 * nodes by pointer. The caller frees the result; NULL with *err set.
 *
 * O(nodes * depth of stacks); without stacks O(nodes * log(nodes)). Without stacks, a graph with
 * very many repeated runs (more than 64 visits of each node to compare them) may get fewer
 * groups. */
CFX_API cfx_repeats *cfx_graph_find_repeated(cfx_graph *g, const cfx_module_tree *modules,
                                             const cfx_repeat_options *opts, cfx_error *err);
CFX_API void cfx_repeats_free(cfx_repeats *repeats);  /* NULL is allowed */

/* The number of groups, and of copies in each (0 past the last). */
CFX_API size_t cfx_repeats_num_groups(const cfx_repeats *repeats);
CFX_API size_t cfx_repeats_num_copies(const cfx_repeats *repeats, size_t group);
CFX_API size_t cfx_repeats_num_nodes(const cfx_repeats *repeats, size_t group);  /* per copy */
CFX_API cfx_node *cfx_repeats_node(const cfx_repeats *repeats, size_t group, size_t copy, size_t i);
/* The path of the module call of a copy, borrowed from the graph; NULL without stacks. */
CFX_API const char *cfx_repeats_path(const cfx_repeats *repeats, size_t group, size_t copy);

#ifdef __cplusplus
}
#endif
#endif
