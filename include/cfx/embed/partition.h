/* For language bindings and back ends; may change between versions.
 *
 * embed/partition.h - partitions a graph: proposes sets of nodes to fuse, and fuses them.
 *
 * A part is a set of nodes of one graph. Parts can be fused if the graph stays acyclic when each
 * part becomes a single node: no value may leave a part and come back to it.
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
    /* Whether a node may be in a part. Called once for each node, from the last to the first.
     * Returns 1, 0, or -1 to stop with CFX_E_HOST. It may read the graph but not edit it. */
    int (*supported)(void *ctx, cfx_node *n);
    void *ctx;
    bool connected;  /* each part must be connected by the values its nodes pass */
    bool in_order;   /* no call may move past another: parts are runs of nodes in their order */
} cfx_partition_options;

/* Stores the number of its part, or CFX_NO_PART, for each node of `g`, in order, in `parts`, which
 * has one entry per node. *n receives the number of parts.
 *
 * Every supported node is in a part, and all parts can be fused together. Without `connected` their
 * number is minimal: it is the largest number of supported runs on any path through the graph that
 * alternates between supported and unsupported nodes. A node is in the last part that it can be in.
 * With `connected`, no two parts that pass a value to each other could be merged (but see
 * partition_connected.c for graphs that would take too long). With `in_order` a part is a run of
 * supported nodes with nothing between them but placeholders and get_attr nodes: for graphs whose
 * calls write to one another's values, or draw random numbers; `connected` is then ignored.
 *
 * operator.getitem nodes stay with the value they take an item of, if the value has no other users:
 * they join its part whether they are supported or not, and are in no part if the value is in none.
 * So a call that returns several values is never separated from them.
 *
 * Parts are numbered in torch.fx's order. CFX_E_GRAPH if a node comes before one of its inputs. The
 * regions of a node belong to it and are not searched. Without `connected` O(nodes + edges). */
CFX_API cfx_status cfx_graph_partition(cfx_graph *g, const cfx_partition_options *opts,
                                       uint32_t *parts, size_t *n, cfx_error *err);

/* Finds the transparent nodes at the boundary of a part: those with no opaque node of the part
 * before them, or none after them. `nodes` are the `n` nodes of the part in order. On entry
 * transparent[i] says whether a node is transparent; on return, whether it is also at the boundary.
 * Linear in the nodes and their edges. */
CFX_API void cfx_nodes_find_boundary(cfx_node *const *nodes, size_t n, bool *transparent);

typedef enum cfx_boundary_kind {
    CFX_BOUNDARY_INPUT,   /* a node outside that is an argument inside; as in torch.fx, not in a
                             list, not by keyword, and not a get_attr node */
    CFX_BOUNDARY_OUTPUT,  /* a node inside with a user outside */
    CFX_BOUNDARY_PARAM,   /* a get_attr node inside */
    CFX_BOUNDARY_COUNT
} cfx_boundary_kind;

typedef cfx_status cfx_boundary_fn(void *ctx, cfx_boundary_kind kind, cfx_node *n);

/* Calls `fn` for the boundary of `n` nodes of one graph: first the inputs, each once, in the order
 * in which they are read; then outputs and get_attr nodes in the order of the nodes. Stops at the
 * first status other than CFX_OK and returns it. Linear in the nodes and their edges. */
CFX_API cfx_status cfx_nodes_boundary(cfx_node *const *nodes, size_t n, cfx_boundary_fn *fn,
                                      void *ctx, cfx_error *err);

/* ---- fusing -------------------------------------------------------------------------------- */

/* Checks that all parts can be fused together. `parts` is as cfx_graph_partition fills it, with
 * numbers less than `n`. The nodes may be in any order. CFX_E_GRAPH if not; the message names a
 * node of a part and a node outside that it uses and that depends on the part. O(nodes + edges). */
CFX_API cfx_status cfx_graph_check_parts(cfx_graph *g, const uint32_t *parts, size_t n,
                                         cfx_error *err);

/* A call that replaces a part. cfx_graph_extract provides the arrays. */
typedef struct cfx_fused {
    const char *path;          /* of the module to call */
    cfx_node *const *inputs;   /* its arguments */
    size_t n_inputs;
    cfx_node *const *outputs;  /* its results: one directly, several as a tuple */
    size_t n_outputs;
    bool tuple;                /* return a tuple even for one value */
    cfx_node *after;           /* insert the call after this node; NULL: after the last output */
} cfx_fused;

/* Inserts the call and makes all users of the outputs use its results instead; if it returns a
 * tuple, one operator.getitem per result extracts them. `made` (may be NULL) receives these nodes,
 * or the call if it returns one value. `getitem` is their target. The nodes of the part stay; the
 * caller erases them, from the last to the first. (Even within the part, users of an output now use
 * the result.) Returns the call, borrowed. NULL with *err set: if the call could not be created,
 * nothing has changed; if a use could not be replaced, some have been. Linear in the uses of the
 * outputs. */
CFX_API cfx_node *cfx_graph_insert_fused(cfx_graph *g, const cfx_fused *call, cfx_target getitem,
                                         cfx_node **made, cfx_error *err);

/* ---- values that must not cross ----------------------------------------------------------- */

enum { CFX_FUSION_ACC = 1, CFX_FUSION_TENSOR = 2 };

/* Finds groups of nodes that must stay together because they pass each other values that are not
 * tensors. `flags` says for each node, in order, whether an accelerator may run it and whether its
 * value is a tensor; `groups` receives the number of its group, or CFX_NO_PART. A group has two or
 * more nodes, all accelerated, and includes every accelerated node on a path between two of them.
 * CFX_E_GRAPH if a node comes before one of its inputs. Linear in nodes and edges, except that for
 * each group the nodes between its first and its last are visited, and again when groups merge. */
CFX_API cfx_status cfx_graph_fusion_groups(cfx_graph *g, const unsigned char *flags,
                                           uint32_t *groups, size_t *n, cfx_error *err);

/* ---- parts for an accelerator ------------------------------------------------------------- */

/* The arrays `flags` and `groups` have one entry for each node of the graph, in order: flags as
 * above, and group numbers as from cfx_graph_fusion_groups. */

/* Clears CFX_FUSION_ACC on nodes that would receive values other than tensors from nodes without
 * it: on the users of such values and, if these also produce such values, on their users, and so
 * on. The search starts at all calls without CFX_FUSION_ACC whose values are not tensors or, if
 * `from` is not NULL, at its `n` nodes, whatever they produce. Then calls `dropped` (may be NULL)
 * for each node that lost the flag, in the order of discovery; a status other than CFX_OK stops and
 * is returned. O(nodes + edges). */
CFX_API cfx_status cfx_graph_drop_non_tensor_inputs(cfx_graph *g, unsigned char *flags,
                                                    cfx_node *const *from, size_t n,
                                                    cfx_node_fn *dropped, void *ctx,
                                                    cfx_error *err);
/* Clears it on nodes that would pass values other than tensors to nodes without the flag, and on
 * nodes that would then receive such values. */
CFX_API cfx_status cfx_graph_drop_non_tensor_outputs(cfx_graph *g, unsigned char *flags,
                                                     cfx_node_fn *dropped, void *ctx,
                                                     cfx_error *err);

/* `node` needs the value of `needs`; in a list of users, `node` is used by `needs`. */
typedef struct cfx_need {
    cfx_node *node, *needs;
} cfx_need;

typedef cfx_status cfx_need_fn(void *ctx, cfx_node *node, cfx_node *needs);

/* Computes what calls need if the calls of each group run together: every member needs what any
 * member needs from outside, and a call that uses one member needs all of them. Groups are
 * processed in the order of their numbers, each with the additions of the previous ones. `needs`
 * are the needs without groups (NULL: all calls that calls read); pairs with a node that is not in
 * `g` are ignored. Calls `fn` for each added pair, in the order of the nodes; a status other than
 * CFX_OK stops and is returned. Linear in nodes, edges and the pairs before and after. */
CFX_API cfx_status cfx_graph_fuse_needs(cfx_graph *g, const uint32_t *groups,
                                        const cfx_need *needs, size_t n, cfx_need_fn *fn, void *ctx,
                                        cfx_error *err);
/* Computes the users of calls if groups run together: a call that a member uses is used by the
 * whole group, and every member has the users of the whole group, without its members. `users` are
 * the users without groups (NULL: all calls that use it). Calls `fn` for each pair of the
 * result. */
CFX_API cfx_status cfx_graph_fuse_users(cfx_graph *g, const uint32_t *groups,
                                        const cfx_need *users, size_t n, cfx_need_fn *fn, void *ctx,
                                        cfx_error *err);

/* One of several parts that run in sequence. The nodes of all parts are in one array; those of a
 * part begin where the previous part ends. */
typedef struct cfx_acc_part {
    size_t end;
    bool acc;  /* it runs on the accelerator */
} cfx_acc_part;

/* Assigns all calls to parts that alternate between the accelerator (calls with CFX_FUSION_ACC) and
 * the rest. A part has all calls of its kind whose needs are in it or in earlier parts, in the
 * order in which they became ready. The first part is not accelerated if any call without the flag
 * is ready at the start. `needs` as for cfx_graph_fuse_needs. `nodes` and `parts` have room for one
 * entry per node of `g`; *n receives the number of parts. CFX_E_GRAPH if calls need each other.
 * Linear in nodes and needs. */
CFX_API cfx_status cfx_graph_acc_parts(cfx_graph *g, const unsigned char *flags,
                                       const cfx_need *needs, size_t n_needs, cfx_node **nodes,
                                       cfx_acc_part *parts, size_t *n, cfx_error *err);

/* Moves calls whose values are not tensors out of accelerated parts, to the one other part that
 * uses the value, together with the calls of their own part that use it. A call stays if two other
 * parts, or a node that is in no part, would use what moves. Rewrites both arrays; a part may
 * become empty. CFX_E_GRAPH if a node is in two parts. Linear, except for the calls that move
 * along, which are visited for each node that could move. */
CFX_API cfx_status cfx_graph_move_non_tensors(cfx_graph *g, const unsigned char *flags,
                                              cfx_node **nodes, cfx_acc_part *parts, size_t n,
                                              cfx_error *err);

/* Extends a part, whose nodes `inside` marks, by calls with CFX_FUSION_ACC that it reads and whose
 * users are all in it, repeatedly, each with its group (`groups` may be NULL). `from` are the calls
 * that the part reads initially; `users` are the users of calls (NULL: all calls that use them).
 * Linear in nodes, edges and pairs. */
CFX_API cfx_status cfx_graph_extend_acc(cfx_graph *g, const unsigned char *flags,
                                        const uint32_t *groups, const cfx_need *users,
                                        size_t n_users, cfx_node *const *from, size_t n_from,
                                        bool *inside, cfx_error *err);

typedef struct cfx_acc_options {
    /* Called once for each call, in order: 1, 0, or -1 to stop with CFX_E_HOST. They may read the
     * graph but not edit it. */
    int (*supported)(void *ctx, cfx_node *n);
    int (*is_tensor)(void *ctx, cfx_node *n);  /* NULL: all values are tensors */
    void *ctx;
    size_t min_size;        /* an accelerated part with fewer calls is not accelerated */
    bool allow_non_tensor;  /* other values may cross between parts */
    bool skip_fusion;       /* other values may cross between accelerated parts */
    bool move_non_tensors;  /* as cfx_graph_move_non_tensors does */
} cfx_acc_options;

/* Splits a graph for an accelerator as torch.fx's splitter does, with the functions above in
 * sequence. `nodes` and `parts` as for cfx_graph_acc_parts; cfx_graph_split makes graphs of the
 * parts. CFX_E_GRAPH if a node comes before one of its inputs. */
CFX_API cfx_status cfx_graph_split_acc(cfx_graph *g, const cfx_acc_options *opts, cfx_node **nodes,
                                       cfx_acc_part *parts, size_t *n, cfx_error *err);

/* ---- walks --------------------------------------------------------------------------------- */

/* Calls `fn` once for each node that is reachable from one of `from` along uses (`down`) or along
 * inputs, nearest first. A start node is included only if it is reachable from another one. Stops
 * at the first status other than CFX_OK and returns it. `fn` must not edit the graph. Linear in the
 * nodes reached and their edges. */
CFX_API cfx_status cfx_graph_each_reached(cfx_graph *g, cfx_node *const *from, size_t n, bool down,
                                          cfx_node_fn *fn, void *ctx, cfx_error *err);

/* Whether `a` is `b` or depends on it (both of one graph), searching at most `search_depth` steps
 * back. 1 if it does, or if the search was not deep enough to tell; 0 if it certainly does not; -1
 * with *err set. Linear in the nodes visited. */
CFX_API int cfx_node_may_depend_on(cfx_node *a, const cfx_node *b, size_t search_depth,
                                   cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
