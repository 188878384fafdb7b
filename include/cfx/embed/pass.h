/* For language bindings and back ends; may change between versions.
 *
 * embed/pass.h - the option structs of passes, and a change of memory layout.
 *
 * cfx_pass_run takes one of these structs as `opts`. All zero is what NULL means, unless a comment
 * says otherwise. docs/passes.md says what the passes do. Callbacks can read the graph but not edit
 * it; where one returns an int, -1 stops the pass with CFX_E_HOST.
 */
#ifndef CFX_EMBED_PASS_H
#define CFX_EMBED_PASS_H

#include <cfx/embed/effect.h>
#include <cfx/pass.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ------------------------------------------------------------------------------- */

typedef struct cfx_annotate_options {
    bool inputs_are_tensors;  /* inputs and attributes without a type are taken for tensors */
} cfx_annotate_options;

/* `effect` is asked for every node except placeholders and outputs. The stronger of its answer and
 * cfx_node_effect counts; for a call_module that is not in place, its answer alone. */
typedef cfx_effect_opinion cfx_cse_options;

typedef struct cfx_dce_options {
    /* Overrides what must be kept: 1 keep, 0 erase if unused. Asked for every node, used or not,
     * even for placeholders and outputs (twice, if there are regions). */
    int (*is_impure)(void *ctx, cfx_node *n);
    void *ctx;
    bool like_torch_fx;  /* also erases unused in-place calls, though others may see the write, as
                            torch.fx's eliminate_dead_code does */
} cfx_dce_options;

typedef struct cfx_functionalize_options {
    bool same_dtypes;  /* the caller promises that no operand changes the dtype of a result */
    /* Told of each in-place call that stays, and why; may be NULL. A status that is not CFX_OK
     * stops the pass. */
    cfx_status (*left)(void *ctx, cfx_node *n, const char *why, cfx_error *err);
    void *ctx;
} cfx_functionalize_options;

typedef struct cfx_inline_options {
    /* Told of every node and its copy; may be NULL. A status that is not CFX_OK stops the pass. */
    cfx_status (*copied)(void *ctx, cfx_node *from, cfx_node *to, cfx_error *err);
    void *ctx;
} cfx_inline_options;

typedef struct cfx_lift_params_options {
    /* Told the path of each new input, in order; may be NULL. */
    cfx_status (*lifted)(void *ctx, const char *path, cfx_error *err);
    void *ctx;
} cfx_lift_params_options;

/* The first `n` inputs read these paths. Before any change: CFX_E_VALUE if there are fewer inputs,
 * or `modules` has nothing at a path. */
typedef struct cfx_unlift_params_options {
    const char *const *paths;
    size_t n;
} cfx_unlift_params_options;

typedef struct cfx_merge_matmul_options {
    const cfx_target *split;  /* a function split(result, inputs); NULL: torch.split, with sizes */
} cfx_merge_matmul_options;

typedef struct cfx_normalize_options {
    bool args_only;           /* arguments only: targets stay */
    bool operators_only;      /* targets only: arguments stay */
    bool inputs_are_tensors;  /* as for annotate */
} cfx_normalize_options;

typedef struct cfx_reinplace_options {
    /* Whether the result of `n` has the dtype and sizes of `x`, and `x` has no element twice: 1 or
     * 0. NULL: true only for operators that always keep them. */
    int (*fits)(void *ctx, cfx_node *n, cfx_node *x);
    /* Whether two values hold the same elements, in one memory or in copies of it, of whatever
     * sizes. NULL: only if they are the same node. */
    bool (*same_elements)(void *ctx, cfx_node *a, cfx_node *b);
    void *ctx;
} cfx_reinplace_options;

typedef struct cfx_remove_dropout_options {
    bool training;  /* also modules of torch.nn.Dropout itself that are training, as
                       torch.fx.experimental.optimization does */
} cfx_remove_dropout_options;

typedef struct cfx_toposort_options {
    bool breadth_first;  /* the node that was ready first, as in torch.fx's legalize_graph; else the
                            first on the list of those that are ready */
} cfx_toposort_options;

/* NULL: 16 iterations and 1,000 nodes. */
typedef struct cfx_unroll_options {
    size_t max_turns;
    size_t max_nodes;
} cfx_unroll_options;

/* ---- memory layouts ------------------------------------------------------------------------- */

/* A part of a graph that can compute in another memory layout: its nodes, in order, and the
 * conversions of its inputs and of its results. */
typedef struct cfx_layout_part {
    cfx_node *const *nodes, *const *starts, *const *ends;
    size_t n_nodes, n_starts, n_ends;
} cfx_layout_part;

typedef struct cfx_relayout_options {
    const char *enter, *leave;  /* methods that convert to the layout and back */
    /* Asked for each call: 1 it takes and returns the layout, 2 it does if one of its inputs has
     * it, 0 it does not. */
    int (*supports)(void *ctx, cfx_node *n);
    /* Asked for each part, with its conversions in place: 1 keep it, 0 undo it. */
    int (*choose)(void *ctx, const cfx_layout_part *part);
    void *ctx;
} cfx_relayout_options;

/* Lets the parts that are chosen compute in another layout. Nodes that are connected by values, or
 * by calls of the same module, are one part. Regions are left alone. About linear in nodes and
 * edges. */
CFX_API cfx_status cfx_graph_relayout(cfx_graph *g, const cfx_relayout_options *how, bool *changed,
                                      cfx_error *err);

/* ---- flags of passes ----------------------------------------------------------------------- */

/* The names of single bits: "ordered" for bit CFX_PASS_NEED_BIT_ORDERED; NULL past the end. */
CFX_API const char *cfx_pass_need_name(unsigned bit);
CFX_API const char *cfx_pass_keep_name(unsigned bit);
/* ---- the order of passes -------------------------------------------------------------------- */

/* Whether the item at place `a` of a list may come before the one at place `b`: 1, 0, or -1 to stop
 * with CFX_E_HOST. */
typedef int cfx_order_fn(void *ctx, size_t a, size_t b);

/* Whether `n` items are in an order that is allowed: asks about each item and all behind it, until
 * one may not be so. CFX_E_GRAPH then, with *first and *second (may be NULL), the places of the
 * two. */
CFX_API cfx_status cfx_order_check(size_t n, cfx_order_fn *allows, void *ctx, size_t *first,
                                   size_t *second, cfx_error *err);
/* Finds an order that is allowed, near the one that is given: `order`, which has room for `n`,
 * receives the places. If there is none: CFX_E_GRAPH; `order` has *sorted places that could be
 * sorted, and behind them those in a cycle, or behind one. Asks about all pairs: O(n * n).
 * `allocator` may be NULL. */
CFX_API cfx_status cfx_order_sort(size_t n, cfx_order_fn *allows, void *ctx, size_t *order,
                                  size_t *sorted, const cfx_allocator *allocator, cfx_error *err);

/* The item at place `before` must come before the one at place `after`. */
typedef struct cfx_order_pair {
    size_t before, after;
} cfx_order_pair;

/* Like cfx_order_sort, for constraints that are pairs: O(n + n_pairs). CFX_E_INDEX if a pair names
 * a place that is not there. */
CFX_API cfx_status cfx_order_sort_pairs(size_t n, const cfx_order_pair *pairs, size_t n_pairs,
                                        size_t *order, size_t *sorted,
                                        const cfx_allocator *allocator, cfx_error *err);

/* The pass called `before` must come before all called `after`. */
typedef struct cfx_pass_constraint {
    const char *before, *after;
} cfx_pass_constraint;

/* Sorts passes, which may stand there more than once, as cfx_order_sort does. CFX_E_GRAPH, before
 * any change, if no order fits all constraints; it names a pass. */
CFX_API cfx_status cfx_passes_sort(const cfx_pass **passes, size_t n,
                                   const cfx_pass_constraint *constraints, size_t n_constraints,
                                   const cfx_allocator *allocator, cfx_error *err);

/* ---- regions as modules --------------------------------------------------------------------- */

/* A region that has become a module. */
typedef struct cfx_region {
    cfx_graph *graph;        /* borrowed: retain it to keep it */
    cfx_graph *copied_from;  /* the region that it is a copy of, node for node; or NULL */
} cfx_region;

/* All of these may be NULL. `is_taken` tells whether a path is in use: 1, 0, or -1 to stop with
 * CFX_E_HOST. `outlined` is told each path with the region that is to be found there; a status that
 * is not CFX_OK stops. `target` is what the operator is called by from then on; {0}: as before. */
typedef struct cfx_outline {
    int (*is_taken)(void *ctx, const char *path);
    cfx_status (*outlined)(void *ctx, const char *path, const cfx_region *region, cfx_error *err);
    cfx_target (*target)(void *ctx, cfx_operator op);
    void *ctx;
} cfx_outline;

/* Brings the operators with regions of `g` into the form that torch has for them: get_attr nodes
 * read the regions as modules, at paths such as "true_graph_0". Nodes that have a region in common
 * have its reader in common. State of a while_loop that its body hands on unchanged, at the end,
 * and that nobody reads afterwards becomes a further argument, and a copy of the body without it is
 * the module. Calls that torch's operators would refuse, because of a literal that is passed or
 * returned, keep cfx's form and target with get_attr nodes. Regions inside regions stay as they
 * are. CFX_E_GRAPH if regions are passed by keyword. If it fails, some calls may have been changed
 * already. O(nodes + edges). */
CFX_API cfx_status cfx_graph_outline(cfx_graph *g, const cfx_outline *how, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
