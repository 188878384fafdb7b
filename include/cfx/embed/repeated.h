/* For language bindings and back ends; may change between versions.
 *
 * embed/repeated.h - parts of a graph that do the same: the layers of a model.
 *
 * Two parts do the same if their nodes, taken in order, have the same opcodes and targets, the same
 * literals, the same classes of modules, the same wiring inside, get the same pattern of values
 * from outside and give the same nodes out. Names, the words of assertions, and the parameters that
 * get_attr nodes and modules stand for may differ. Parts are compared by a hash of 64 bits, the
 * same in every process.
 */
#ifndef CFX_EMBED_REPEATED_H
#define CFX_EMBED_REPEATED_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_repeats cfx_repeats;

typedef struct cfx_repeat_options {
    size_t min_nodes;   /* of a part; 0 means 2 */
    size_t min_copies;  /* 0 means 2 */
} cfx_repeat_options;

/* Groups of parts that do the same, no node in two of them: always the group that covers most nodes
 * first, and of those the one with the smallest parts. If nodes have module stacks, a part is what
 * one module call holds (a block of a transformer); otherwise a run of consecutive nodes.
 * Regions have groups of their own. `opts` may be NULL. The graph is only read; the result knows
 * its nodes by their pointers. NULL with *err set if it fails.
 *
 * O(nodes * depth of stacks); without stacks O(nodes * log(nodes)), where a graph in which very
 * many runs repeat (64 visits of each node were not enough to compare them) may get fewer groups.
 * */
CFX_API cfx_repeats *cfx_graph_find_repeated(cfx_graph *g, const cfx_module_tree *modules,
                                             const cfx_repeat_options *opts, cfx_error *err);
CFX_API void cfx_repeats_free(cfx_repeats *repeats);  /* NULL is allowed */

/* How many groups were found, and how many copies each has (0 past the last). */
CFX_API size_t cfx_repeats_num_groups(const cfx_repeats *repeats);
CFX_API size_t cfx_repeats_num_copies(const cfx_repeats *repeats, size_t group);
CFX_API size_t cfx_repeats_num_nodes(const cfx_repeats *repeats, size_t group);  /* of each copy */
CFX_API cfx_node *cfx_repeats_node(const cfx_repeats *repeats, size_t group, size_t copy, size_t i);
/* The path of the module call that a copy is, borrowed from the graph; NULL without stacks. */
CFX_API const char *cfx_repeats_path(const cfx_repeats *repeats, size_t group, size_t copy);

#ifdef __cplusplus
}
#endif
#endif
