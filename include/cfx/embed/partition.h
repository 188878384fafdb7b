/* For language bindings and back ends; may change between versions.
 *
 * embed/partition.h - which nodes can become one call each, and making them one.
 *
 * A part is a set of nodes of one graph. Parts can be fused if, with each of them as a single node,
 * the graph still has no cycle: no value may leave a part and come back to it.
 */
#ifndef CFX_EMBED_PARTITION_H
#define CFX_EMBED_PARTITION_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CFX_NO_PART UINT32_MAX

/* ---- proposing parts ----------------------------------------------------------------------- */

typedef struct cfx_partition_options {
    /* Whether a node may be in a part: asked once for each node, from the last to the first. 1, 0,
     * or -1 to stop with CFX_E_HOST. It can read the graph but not edit it. */
    int (*supported)(void *ctx, cfx_node *n);
    void *ctx;
    bool connected;  /* only nodes that pass each other values, perhaps by way of others in it */
} cfx_partition_options;

/* Fills `parts`, which has room for a number for each node of `g` in their order: that of its part,
 * or CFX_NO_PART. *n receives how many parts there are.
 *
 * All supported nodes are in a part, and all parts can be fused. Without `connected` they are as
 * few as there can be: so many as supported nodes lie on the way through the graph that changes
 * most often between supported and unsupported. A node is in the last part that it can be in.
 * With `connected`, no two parts that pass each other a value could be one (but see
 * partition_connected.c for graphs that would take long).
 *
 * What takes an item out of a value (operator.getitem) goes with the value if that is used by such
 * calls only: into its part whether it is supported or not, and into none if the value is in none.
 * So a call that returns several values is never cut off from them.
 *
 * Parts are numbered as torch.fx lists them. CFX_E_GRAPH if a node stands before what it uses. The
 * regions of a node are a part of it: they are not looked into. Without `connected`
 * O(nodes + edges). */
CFX_API cfx_status cfx_graph_partition(cfx_graph *g, const cfx_partition_options *opts,
                                       uint32_t *parts, size_t *n, cfx_error *err);

/* Of `n` nodes of a part in their order, finds those at its edges that are transparent: that no
 * opaque node of the part comes before, or none behind. `transparent[i]` says whether a node is,
 * and is set to whether it is at an edge. Linear in the nodes and their edges. */
CFX_API void cfx_nodes_find_boundary(cfx_node *const *nodes, size_t n, bool *transparent);

/* ---- fusing -------------------------------------------------------------------------------- */

/* Whether all parts can be fused at once; `parts` as cfx_graph_partition fills it, with numbers
 * below `n`. The nodes may stand in any order. If not: CFX_E_GRAPH, with a node of a part and what
 * it uses outside, which in turn needs the part. O(nodes + edges). */
CFX_API cfx_status cfx_graph_check_parts(cfx_graph *g, const uint32_t *parts, size_t n,
                                         cfx_error *err);

/* A call that takes the place of a part: see cfx_graph_extract for one that gives the arrays. */
typedef struct cfx_fused {
    const char *path;          /* of the module to be called */
    cfx_node *const *inputs;   /* its arguments */
    size_t n_inputs;
    cfx_node *const *outputs;  /* what it returns: one as it is, several as a tuple */
    size_t n_outputs;
    bool tuple;                /* it returns a tuple even of one value */
    cfx_node *after;           /* the call goes behind this node; NULL: behind the last output */
} cfx_fused;

/* Adds the call, and makes everybody use its results instead of the outputs; if it returns a tuple,
 * one operator.getitem for each takes them out of it. `made` (may be NULL) receives these, or the
 * call if it returns one value. `getitem` is the target of such calls. The nodes of the part stay;
 * they are to be erased, from the last to the first: even among them, who used an output uses the
 * result now. Returns the call, borrowed; NULL with *err set: if the call could not be made nothing
 * has changed, if a use could not be replaced some have been. Linear in the outputs' uses. */
CFX_API cfx_node *cfx_graph_insert_fused(cfx_graph *g, const cfx_fused *call, cfx_target getitem,
                                         cfx_node **made, cfx_error *err);

/* ---- values that must not cross ----------------------------------------------------------- */

enum { CFX_FUSION_ACC = 1, CFX_FUSION_TENSOR = 2 };

/* Groups of nodes that must stay together because they pass each other values that are no tensors.
 * `flags` says of each node, in their order, whether an accelerator may run it and whether its
 * value is a tensor; `groups` receives the number of its group, or CFX_NO_PART. A group is of
 * accelerated nodes only, of two or more, and with each way from one of them to another all
 * accelerated nodes on it. CFX_E_GRAPH if a node stands before what it uses. Linear in nodes and
 * edges but for the last: for each group the nodes between its first and its last are walked,
 * again if groups have become one. */
CFX_API cfx_status cfx_graph_fusion_groups(cfx_graph *g, const unsigned char *flags,
                                           uint32_t *groups, size_t *n, cfx_error *err);

/* ---- walks --------------------------------------------------------------------------------- */

/* Calls `fn` once for each node that is reached from one of `from` along uses (`down`) or along
 * inputs; the nodes it starts from only if they are reached from another. Nearest first. Stops at
 * the first status that is not CFX_OK and returns it. Do not edit the graph inside `fn`. Linear in
 * what is reached and its edges. */
CFX_API cfx_status cfx_graph_each_reached(cfx_graph *g, cfx_node *const *from, size_t n, bool down,
                                          cfx_node_fn *fn, void *ctx, cfx_error *err);

/* Whether `a` is computed from `b`, both of one graph, or is it, as far as can be told by going at
 * most `search_depth` steps back: 1 also if that is not far enough, 0 if it is certainly not, -1
 * with *err set. Linear in what is seen. */
CFX_API int cfx_node_may_depend_on(cfx_node *a, const cfx_node *b, size_t search_depth,
                                   cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
