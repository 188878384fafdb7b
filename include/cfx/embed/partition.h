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

typedef enum cfx_boundary_kind {
    CFX_BOUNDARY_INPUT,   /* a node outside that is an argument inside: not inside of a list, by
                             keyword or a get_attr node, as in torch.fx */
    CFX_BOUNDARY_OUTPUT,  /* a node inside that somebody outside uses */
    CFX_BOUNDARY_PARAM,   /* a get_attr node inside */
    CFX_BOUNDARY_COUNT
} cfx_boundary_kind;

typedef cfx_status cfx_boundary_fn(void *ctx, cfx_boundary_kind kind, cfx_node *n);

/* Calls `fn` for the boundary of `n` nodes of one graph: inputs, each once in the order in which
 * they are read, then outputs and get_attr nodes in the order of the nodes. Stops at the first
 * status that is not CFX_OK and returns it. Linear in the nodes and their edges. */
CFX_API cfx_status cfx_nodes_boundary(cfx_node *const *nodes, size_t n, cfx_boundary_fn *fn,
                                      void *ctx, cfx_error *err);

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

/* ---- parts for an accelerator ------------------------------------------------------------- */

/* The arrays `flags` and `groups` have an entry for each node of the graph in their order: flags as
 * above, and numbers of groups as cfx_graph_fusion_groups gives them. */

/* Takes CFX_FUSION_ACC from nodes that would get values other than tensors from nodes without it:
 * from the users of such values and, if those give such values, too, from their users, and so on.
 * The walk starts at all calls without CFX_FUSION_ACC whose values are not tensors or, unless it is
 * NULL, at the `n` nodes of `from`, whatever they give. Then calls `dropped` (may be NULL) for each
 * node that lost the flag, in the order in which it was found; a status that is not CFX_OK stops
 * and is returned. O(nodes + edges). */
CFX_API cfx_status cfx_graph_drop_non_tensor_inputs(cfx_graph *g, unsigned char *flags,
                                                    cfx_node *const *from, size_t n,
                                                    cfx_node_fn *dropped, void *ctx,
                                                    cfx_error *err);
/* Likewise from nodes that would give values other than tensors to nodes without the flag; and from
 * those that would then get some. */
CFX_API cfx_status cfx_graph_drop_non_tensor_outputs(cfx_graph *g, unsigned char *flags,
                                                     cfx_node_fn *dropped, void *ctx,
                                                     cfx_error *err);

/* `node` needs the value of `needs`; or, in a list of users, is used by it. */
typedef struct cfx_need {
    cfx_node *node, *needs;
} cfx_need;

typedef cfx_status cfx_need_fn(void *ctx, cfx_node *node, cfx_node *needs);

/* What calls need so that the calls of a group can run together: all that a member needs from
 * outside, and calls that use one member need all. Groups are taken in the order of their numbers,
 * each with what the ones before it added. `needs` is what is needed without groups (NULL: all
 * calls that calls read); pairs with a node that is not in `g` are ignored. Calls `fn` for each
 * pair that this adds, in the order of the nodes; a status that is not CFX_OK stops and is
 * returned. Linear in nodes, edges and the pairs before and after. */
CFX_API cfx_status cfx_graph_fuse_needs(cfx_graph *g, const uint32_t *groups,
                                        const cfx_need *needs, size_t n, cfx_need_fn *fn, void *ctx,
                                        cfx_error *err);
/* Who uses calls, if groups are to run together: who has a member as a user has the whole group,
 * and all members of a group have the users of the group, without its members. `users` is what is
 * used without groups (NULL: by all calls). Calls `fn` for each pair of the result. */
CFX_API cfx_status cfx_graph_fuse_users(cfx_graph *g, const uint32_t *groups,
                                        const cfx_need *users, size_t n, cfx_need_fn *fn, void *ctx,
                                        cfx_error *err);

/* One of several parts that run one after the other, whose nodes lie in one array: those from the
 * end of the part before it. */
typedef struct cfx_acc_part {
    size_t end;
    bool acc;  /* the accelerator runs it */
} cfx_acc_part;

/* Puts all calls into parts that alternate between the accelerator (calls with CFX_FUSION_ACC) and
 * elsewhere. A part has all calls of its kind whose needs are in it or in parts before it, in the
 * order in which that became so; the first part is not accelerated if any call without the flag can
 * run at once. `needs` as for cfx_graph_fuse_needs. `nodes` and `parts` have room for as many as
 * `g` has nodes; *n receives the number of parts. CFX_E_GRAPH if calls need each other. Linear in
 * nodes and needs. */
CFX_API cfx_status cfx_graph_acc_parts(cfx_graph *g, const unsigned char *flags,
                                       const cfx_need *needs, size_t n_needs, cfx_node **nodes,
                                       cfx_acc_part *parts, size_t *n, cfx_error *err);

/* Moves calls whose values are not tensors out of accelerated parts: to the one other part that
 * uses the value, together with the calls of their own part that use it, unless two other parts or
 * a node that is in no part would use what moves. Rewrites both arrays; a part may become empty.
 * CFX_E_GRAPH if a node is in two parts. Linear but for the calls that move along, which are walked
 * for each node that could move. */
CFX_API cfx_status cfx_graph_move_non_tensors(cfx_graph *g, const unsigned char *flags,
                                              cfx_node **nodes, cfx_acc_part *parts, size_t n,
                                              cfx_error *err);

/* Adds to a part, whose nodes `inside` marks, calls with CFX_FUSION_ACC that it reads and whose
 * users are all in it, again and again, each with its group (`groups` may be NULL). `from` are
 * the calls that the part reads at first; `users` is who uses calls (NULL: all calls that do).
 * Linear in nodes, edges and pairs. */
CFX_API cfx_status cfx_graph_extend_acc(cfx_graph *g, const unsigned char *flags,
                                        const uint32_t *groups, const cfx_need *users,
                                        size_t n_users, cfx_node *const *from, size_t n_from,
                                        bool *inside, cfx_error *err);

typedef struct cfx_acc_options {
    /* Asked once for each call, in order: 1, 0, or -1 to stop with CFX_E_HOST. They can read the
     * graph but not edit it. */
    int (*supported)(void *ctx, cfx_node *n);
    int (*is_tensor)(void *ctx, cfx_node *n);  /* NULL: all values are tensors */
    void *ctx;
    size_t min_size;        /* an accelerated part with fewer calls runs elsewhere */
    bool allow_non_tensor;  /* other values may cross between parts */
    bool skip_fusion;       /* they may cross between parts of the accelerator */
    bool move_non_tensors;  /* as cfx_graph_move_non_tensors does */
} cfx_acc_options;

/* Splits a graph for an accelerator, as torch.fx's splitter does: the functions above, one after
 * the other. `nodes` and `parts` as for cfx_graph_acc_parts; cfx_graph_split makes graphs of the
 * parts. CFX_E_GRAPH if a node stands before what it uses. */
CFX_API cfx_status cfx_graph_split_acc(cfx_graph *g, const cfx_acc_options *opts, cfx_node **nodes,
                                       cfx_acc_part *parts, size_t *n, cfx_error *err);

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
