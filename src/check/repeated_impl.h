/* repeated_impl.h - what the two ways to find repeated parts share. */
#ifndef CFXI_REPEATED_IMPL_H
#define CFXI_REPEATED_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/repeated.h>

/* One graph, its nodes by position. */
typedef struct cfxi_repeat_job {
    cfx_graph *graph;
    const cfx_module_tree *modules;
    size_t min_nodes, min_copies;
    cfx_repeats *found;
    size_t n;
    cfx_node **nodes;
    uint64_t *tokens;   /* what a node is, but for who it uses; of inputs and outputs unique */
    uint32_t *epoch;    /* by position: the last part it was seen in, or from; and there ... */
    uint32_t *local;    /* ... its place in the part, or its number among what comes from outside */
    uint32_t part;      /* the current epoch */
    bool *covered;      /* it is in a group */
    uint32_t stamp;     /* nodes are numbered by their marks */
    cfx_error *err;
} cfxi_repeat_job;

/* The hash of the part that the nodes at these positions, in ascending order, are. */
uint64_t cfxi_check_part_hash(cfxi_repeat_job *job, const uint32_t *positions, size_t n);

int cfxi_check_compare_positions(const void *a, const void *b);  /* for qsort */

/* Adds a group of `copies` parts of `n` nodes: their positions one after the other; `scopes` has
 * the number of the scope of each, or is NULL. Marks them as covered. */
cfx_status cfxi_check_repeats_add(cfxi_repeat_job *job, const uint32_t *positions, size_t n,
                                  const uint32_t *scopes, size_t copies);

/* Finds groups of runs of consecutive nodes. (repeated_runs.c) */
cfx_status cfxi_check_find_runs(cfxi_repeat_job *job);

/* The hash of the part of `g` that these nodes are; CFX_E_GRAPH if one of them is not of `g`.
 * `modules` tells the classes of modules. If it is NULL, module stacks do (for a call_module whose
 * stack ends with its own path); else the last word of the path counts. (repeated.c) */
cfx_status cfxi_check_nodes_hash(cfx_graph *g, cfx_node *const *nodes, size_t n,
                                 const cfx_module_tree *modules, uint64_t *hash, cfx_error *err);

#endif
