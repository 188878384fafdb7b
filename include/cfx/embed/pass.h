/* For language bindings and back ends; may change between versions.
 *
 * embed/pass.h - option structs of passes, memory layouts, the order of passes, and regions as
 * modules.
 *
 * cfx_pass_run takes one of these structs as `opts`. All zero is equivalent to NULL, unless a
 * comment says otherwise. docs/passes.md describes the passes. Callbacks may read the graph but not
 * edit it; if one returns an int, -1 stops the pass with CFX_E_HOST.
 */
#ifndef CFX_EMBED_PASS_H
#define CFX_EMBED_PASS_H

#include <cfx/effect.h>
#include <cfx/pass.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ------------------------------------------------------------------------------- */

typedef struct cfx_annotate_options {
    bool inputs_are_tensors;  /* assume that inputs and attributes without a type are tensors */
} cfx_annotate_options;

/* Options `strict`: functions, methods and modules that nothing is known about may do anything.
 * Otherwise they are taken for what torch.fx takes them for: they can be dropped, and functions and
 * methods can also be merged and moved. */

typedef struct cfx_collapse_reshapes_options {
    bool strict;
} cfx_collapse_reshapes_options;

typedef struct cfx_const_fold_options {
    bool strict;
} cfx_const_fold_options;

typedef struct cfx_cse_options {
    /* Whether a node is never merged with another: 1 or 0. Called for every node except
     * placeholders and outputs; may be NULL. */
    int (*keep)(void *ctx, cfx_node *n);
    void *ctx;
    bool like_torch_fx;  /* also merge calls of modules that nothing is known about */
    bool strict;
} cfx_cse_options;

typedef struct cfx_dce_options {
    /* Overrides which nodes must be kept: 1 keeps a node, 0 erases it if unused. Called for every
     * node, used or not, including placeholders and outputs (twice, if there are regions). */
    int (*is_impure)(void *ctx, cfx_node *n);
    void *ctx;
    bool like_torch_fx;  /* like torch.fx's eliminate_dead_code, also erase unused in-place calls,
                            even if their writes are visible elsewhere */
    bool strict;
} cfx_dce_options;

typedef struct cfx_functionalize_options {
    bool same_dtypes;  /* the caller guarantees that no operand changes the dtype of a result */
    /* Called for each in-place call that stays, with the reason; may be NULL. A status other than
     * CFX_OK stops the pass. */
    cfx_status (*left)(void *ctx, cfx_node *n, const char *why, cfx_error *err);
    void *ctx;
    bool strict;
} cfx_functionalize_options;

typedef struct cfx_hoist_options {
    bool strict;
} cfx_hoist_options;

typedef struct cfx_inline_options {
    /* Called for every node and its copy; may be NULL. A status other than CFX_OK stops the
     * pass. */
    cfx_status (*copied)(void *ctx, cfx_node *from, cfx_node *to, cfx_error *err);
    void *ctx;
} cfx_inline_options;

typedef struct cfx_lift_params_options {
    /* Called with the path of each new input, in order; may be NULL. */
    cfx_status (*lifted)(void *ctx, const char *path, cfx_error *err);
    void *ctx;
} cfx_lift_params_options;

/* The paths of the first `n` inputs, which become reads of these paths. Checked before any change:
 * CFX_E_VALUE if there are fewer inputs, or if `modules` has nothing at a path. */
typedef struct cfx_unlift_params_options {
    const char *const *paths;
    size_t n;
} cfx_unlift_params_options;

typedef struct cfx_merge_matmul_options {
    const cfx_target *split;  /* a function split(result, inputs); NULL: torch.split, with sizes */
    bool strict;
} cfx_merge_matmul_options;

typedef struct cfx_normalize_options {
    bool args_only;           /* normalize arguments only; keep targets */
    bool operators_only;      /* normalize targets only; keep arguments */
    bool inputs_are_tensors;  /* as for annotate */
} cfx_normalize_options;

typedef struct cfx_reinplace_options {
    /* Whether the result of `n` has the dtype and sizes of `x`, and no two elements of `x` overlap:
     * 1 or 0. NULL: true only for operators that always preserve them. */
    int (*fits)(void *ctx, cfx_node *n, cfx_node *x);
    /* Whether two values hold the same elements, of any shape, in the same memory or in copies of
     * it. NULL: only if they are the same node. */
    bool (*same_elements)(void *ctx, cfx_node *a, cfx_node *b);
    void *ctx;
    bool strict;
} cfx_reinplace_options;

typedef struct cfx_remove_dropout_options {
    bool training;  /* also remove torch.nn.Dropout modules (of exactly that class) in training
                       mode, as torch.fx.experimental.optimization does */
} cfx_remove_dropout_options;

typedef struct cfx_toposort_options {
    bool breadth_first;  /* take the node that became ready first, as torch.fx's legalize_graph
                            does; else the first ready node on the list */
} cfx_toposort_options;

/* NULL: 16 iterations and 1,000 nodes. */
typedef struct cfx_unroll_options {
    size_t max_turns;
    size_t max_nodes;
    bool strict;
} cfx_unroll_options;

/* ---- memory layouts ------------------------------------------------------------------------- */

/* A part of a graph that can compute in another memory layout: its nodes, in order, and the
 * conversions of its inputs and results. */
typedef struct cfx_layout_part {
    cfx_node *const *nodes, *const *starts, *const *ends;
    size_t n_nodes, n_starts, n_ends;
} cfx_layout_part;

typedef struct cfx_relayout_options {
    const char *enter, *leave;  /* methods that convert to the layout and back */
    /* Called for each call: 1 if it takes and returns the layout, 2 if it does so when one of its
     * inputs has it, 0 if it does not. */
    int (*supports)(void *ctx, cfx_node *n);
    /* Called for each part, with its conversions already inserted: 1 keeps it, 0 undoes it. */
    int (*choose)(void *ctx, const cfx_layout_part *part);
    void *ctx;
} cfx_relayout_options;

/* Converts the chosen parts to another layout. Nodes that are connected by values, or by calls of
 * the same module, form one part. Regions are not changed. About linear in nodes and edges. */
CFX_API cfx_status cfx_graph_relayout(cfx_graph *g, const cfx_relayout_options *how, bool *changed,
                                      cfx_error *err);

/* ---- flags of passes ----------------------------------------------------------------------- */

/* The names of single bits: "ordered" for bit CFX_PASS_NEED_BIT_ORDERED; NULL past the end. */
CFX_API const char *cfx_pass_need_name(unsigned bit);
CFX_API const char *cfx_pass_keep_name(unsigned bit);
/* ---- the order of passes -------------------------------------------------------------------- */

/* Whether the item at index `a` of a list may come before the one at index `b`: 1, 0, or -1 to stop
 * with CFX_E_HOST. */
typedef int cfx_order_fn(void *ctx, size_t a, size_t b);

/* Checks that `n` items are in a permitted order: compares each item with all later ones, up to the
 * first violation. CFX_E_GRAPH then; *first and *second (may be NULL) receive the indices of the
 * two items. */
CFX_API cfx_status cfx_order_check(size_t n, cfx_order_fn *allows, void *ctx, size_t *first,
                                   size_t *second, cfx_error *err);
/* Finds a permitted order, close to the given one. `order`, which has `n` entries, receives the
 * indices. CFX_E_GRAPH if there is none: `order` then begins with the *sorted indices that could be
 * sorted, followed by those that are in a cycle or depend on one. Compares all pairs: O(n * n).
 * `allocator` may be NULL. */
CFX_API cfx_status cfx_order_sort(size_t n, cfx_order_fn *allows, void *ctx, size_t *order,
                                  size_t *sorted, const cfx_allocator *allocator, cfx_error *err);

/* The item at index `before` must come before the one at index `after`. */
typedef struct cfx_order_pair {
    size_t before, after;
} cfx_order_pair;

/* Like cfx_order_sort, for constraints given as pairs: O(n + n_pairs). CFX_E_INDEX if an index is
 * out of range. */
CFX_API cfx_status cfx_order_sort_pairs(size_t n, const cfx_order_pair *pairs, size_t n_pairs,
                                        size_t *order, size_t *sorted,
                                        const cfx_allocator *allocator, cfx_error *err);

/* The pass named `before` must come before all passes named `after`. */
typedef struct cfx_pass_constraint {
    const char *before, *after;
} cfx_pass_constraint;

/* Sorts passes in place, like cfx_order_sort; a pass may occur more than once. CFX_E_GRAPH, before
 * any change, if no order satisfies all constraints; the message names a pass. */
CFX_API cfx_status cfx_passes_sort(const cfx_pass **passes, size_t n,
                                   const cfx_pass_constraint *constraints, size_t n_constraints,
                                   const cfx_allocator *allocator, cfx_error *err);

/* ---- regions as modules --------------------------------------------------------------------- */

/* A region that was turned into a module. */
typedef struct cfx_region {
    cfx_graph *graph;        /* borrowed: retain it to keep it */
    cfx_graph *copied_from;  /* the region that it copies, node for node; or NULL */
} cfx_region;

/* Each callback may be NULL. `is_taken` tells whether a path is in use: 1, 0, or -1 to stop with
 * CFX_E_HOST. `outlined` receives each path and its region; a status other than CFX_OK stops.
 * `target` returns the new target for an operator; {0} keeps the old one. */
typedef struct cfx_outline {
    int (*is_taken)(void *ctx, const char *path);
    cfx_status (*outlined)(void *ctx, const char *path, const cfx_region *region, cfx_error *err);
    cfx_target (*target)(void *ctx, cfx_operator op);
    void *ctx;
} cfx_outline;

/* Rewrites the operators with regions in `g` to torch's form: get_attr nodes read the regions as
 * modules, at paths such as "true_graph_0". Nodes that share a region share the get_attr node.
 * Trailing state of a while_loop that its body passes through unchanged, and that is not used after
 * the loop, becomes an extra argument; the module is then a copy of the body without it. Calls that
 * torch's operators would reject, because a literal is passed or returned, keep cfx's form and
 * target, with get_attr nodes. Nested regions are not changed. CFX_E_GRAPH if regions are passed by
 * keyword. After a failure some calls may already have been changed. O(nodes + edges). */
CFX_API cfx_status cfx_graph_outline(cfx_graph *g, const cfx_outline *how, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
