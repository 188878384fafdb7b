/* liveness_impl.h - what of a graph and its regions anybody needs (liveness.c). */
#ifndef CFXI_LIVENESS_IMPL_H
#define CFXI_LIVENESS_IMPL_H

#include "control_flow_impl.h"

/* What is known of a branch or loop. */
typedef struct cfxi_live_control {
    cfxi_control c;
    bool *results;  /* which are needed; of a loop: which state is */
} cfxi_live_control;

/* A node that is needed, or a result of a branch or loop. */
typedef struct cfxi_need {
    cfx_node *node;
    size_t result;  /* SIZE_MAX: the node */
} cfxi_need;

typedef struct cfxi_live {
    const cfx_allocator *allocator;
    cfx_node_map *seen;      /* nodes that are needed */
    cfx_node_map *numbers;   /* of branches, loops and the roots of their regions: which it is */
    cfx_node_map *inputs;    /* of inputs of those regions: which operand; < 0: none */
    cfxi_vec controls;       /* of cfxi_live_control */
    cfxi_vec todo;           /* of cfxi_need: found, but not what they need themselves */
    cfx_error *err;
} cfxi_live;

/* Whether a node is needed even if nothing reads it: for its effects. Asked with the graph
 * frozen. */
typedef cfx_status cfxi_live_root_fn(void *ctx, cfx_node *n, bool *root, cfx_error *err);

/* Finds what is needed in `g` and its regions. Linear in nodes and edges. End it even if it fails.
 */
cfx_status cfxi_analysis_live_begin(cfxi_live *live, cfx_graph *g, cfxi_live_root_fn *root,
                                    void *ctx, cfx_error *err);
void cfxi_analysis_live_end(cfxi_live *live);

/* What is known of `n`; NULL if it is not a branch or loop, or if all of it is needed. Read its
 * `c` anew (cfxi_analysis_control_of): the graph may have been changed since. */
const cfxi_live_control *cfxi_analysis_live_find(const cfxi_live *live, const cfx_node *n);

#endif
