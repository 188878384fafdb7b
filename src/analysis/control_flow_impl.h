/* control_flow_impl.h - branches and loops as passes see them: what goes in, what comes out, and
 * how both are changed.
 *
 *     cond(pred, then, otherwise, operands)   operand k is input k of both branches
 *     while_loop(test, body, state)           state k is input k of both, and result k of the body
 *     for_loop(count, body, state)            state k is input k + 1 of the body, and its result k
 *
 * Whether a loop may change state k is seen in its body: state that comes back as it went in, which
 * is what a loop has instead of operands, does not (cfxi_analysis_control_each_kept).
 */
#ifndef CFXI_CONTROL_FLOW_IMPL_H
#define CFXI_CONTROL_FLOW_IMPL_H

#include "analysis_impl.h"

enum { CFXI_MAX_REGIONS = 2 };

typedef struct cfxi_control {
    cfx_node *node;
    const cfxi_region_form *form;                  /* where its arguments stand */
    cfx_operator op;                        /* cond, while_loop or for_loop */
    cfx_graph *regions[CFXI_MAX_REGIONS];   /* in the order of the arguments */
    cfx_node *outputs[CFXI_MAX_REGIONS];    /* of the regions */
    size_t n_regions;
    size_t n;                               /* how many operands, or state */
    const cfx_value *operands;              /* borrowed from the arguments, as all of this is */
    cfx_value container;                    /* the tuple or list that they stand in */
    size_t n_results;                       /* how many items the result has; of a cond whose */
    bool whole;                             /* branches give no tuples of one size: 1, itself */
} cfxi_control;

/* False if `n` is not a branch or loop, or if its inputs and results are not visible: its operands
 * are a node, or its regions do not have one input for each operand and one output. */
bool cfxi_analysis_control_of(cfx_node *n, cfxi_control *c);

static inline bool cfxi_analysis_control_is_loop(const cfxi_control *c)
{
    return c->op != CFX_OPID_cond;
}

/* The region that computes the results: the body of a loop, the i-th branch of a cond. */
static inline size_t cfxi_analysis_control_body(const cfxi_control *c) { return c->n_regions - 1; }

/* How many inputs region i has before those for the operands. */
static inline size_t cfxi_analysis_control_extra(const cfxi_control *c)
{
    return c->op == CFX_OPID_for_loop;
}

/* Input k of region i; linear in k. */
cfx_node *cfxi_analysis_control_input(const cfxi_control *c, size_t i, size_t k);
/* What a cond or a for_loop decides by: its predicate, its count. INVALID if that is missing. */
static inline cfx_value cfxi_analysis_control_subject(const cfxi_control *c)
{
    return cfxi_ir_region_arg(c->form, c->node, 0);
}
/* Calls `fn` for each input of region i that is always operand k: all of a branch, and of a loop
 * those of state that never changes. It may not erase other inputs. */
typedef cfx_status cfxi_kept_fn(void *ctx, cfx_node *input, size_t k);
cfx_status cfxi_analysis_control_each_kept(const cfxi_control *c, size_t i, cfxi_kept_fn *fn,
                                           void *ctx);
/* Maps the inputs of all regions to the numbers of their operands; but not the index of a loop. */
cfx_status cfxi_analysis_control_number_inputs(const cfxi_control *c, cfx_node_map *inputs,
                                               cfx_error *err);
/* What region i gives as result k; of the test of a loop, what it gives. */
cfx_value cfxi_analysis_control_result(const cfxi_control *c, size_t i, size_t k);
/* The number of the result that `user`, of this node, takes and does no more; SIZE_MAX if it does
 * more, or not only that. */
size_t cfxi_analysis_control_taken(const cfxi_control *c, const cfx_node *user);
/* Whether all users do that; then results can be added and dropped. */
bool cfxi_analysis_control_is_apart(const cfxi_control *c);
/* For cfx_node_replace_uses: what an output hands on stays. */
int cfxi_analysis_is_not_output(void *ctx, cfx_node *user);

/* Whether its regions belong to it alone. A region that is shared must not be changed. */
bool cfxi_analysis_control_is_alone(const cfxi_control *c);

/* ---- changing it --------------------------------------------------------------------------- */

/* These are for a node that is alone, and update `c`. `keep` has one item for each. If memory runs
 * out, nothing has changed. */

/* Drops the results that are not kept, which nobody may take any more, and renumbers the others'
 * users. All users must be such as cfxi_analysis_control_taken knows. For cond only. */
cfx_status cfxi_analysis_control_drop_results(cfxi_control *c, const bool *keep, cfx_error *err);
/* Drops operands that no region reads; of a loop, state that is only handed on and that nobody
 * takes: its results are dropped with it. */
cfx_status cfxi_analysis_control_drop_inputs(cfxi_control *c, const bool *keep, cfx_error *err);
/* Lets inputs that are added take the places of nodes of its regions, which have the same values as
 * those that `outside` maps them to. The nodes stay, without users. */
cfx_status cfxi_analysis_control_hand_in(cfxi_control *c, cfx_node *const *nodes, size_t n,
                                         const cfx_node_map *outside, cfx_error *err);
/* Lets the body of a loop hand on what is not to be kept of the state as it is; *changed tells
 * whether it did not yet. */
cfx_status cfxi_analysis_control_hand_on(cfxi_control *c, const bool *keep, bool *changed,
                                         cfx_error *err);
/* Lets region i give `v`, floating, which is taken over also if it fails. */
cfx_status cfxi_analysis_control_set_output(cfxi_control *c, size_t i, cfx_value v, cfx_error *err);

/* ---- changing several nodes at once -------------------------------------------------------- */

/* New arguments for nodes, each once, which are then all assigned or none. */
typedef struct cfxi_changes {
    cfxi_vec all;  /* of cfxi_arg_change */
    const cfx_allocator *allocator;
} cfxi_changes;

/* Takes floating values over, also if it fails; `args` or `kwargs` may be INVALID, then *err says
 * why, or be what the node has. */
cfx_status cfxi_analysis_changes_add(cfxi_changes *changes, cfx_node *n, cfx_value args,
                                     cfx_value kwargs, cfx_error *err);
/* Likewise, of one argument by its position, or by its keyword if there are not so many. */
cfx_status cfxi_analysis_changes_add_arg(cfxi_changes *changes, cfx_node *n, size_t i,
                                         const char *keyword, cfx_value v, cfx_error *err);
/* Assigns all of it if `status` is CFX_OK, else nothing; returns `status`. Frees `changes`. */
cfx_status cfxi_analysis_changes_end(cfxi_changes *changes, cfx_status status);

#endif
