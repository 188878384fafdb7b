/* cse_impl.h - what the files of common sub-expression elimination share. */
#ifndef CFXI_CSE_IMPL_H
#define CFXI_CSE_IMPL_H

#include "analysis/alias_impl.h"
#include "analysis/control_flow_impl.h"

#include <cfx/embed/pass.h>
#include <cfx/pass.h>

/* What stays the same for a graph and its regions. */
typedef struct cfxi_cse_job {
    const cfx_cse_options *opts;
    cfxi_effect_model model;
    bool writes;   /* something in the whole graph does */
    bool changed;
} cfxi_cse_job;

/* Whether a node that does `does` is never merged: it has an effect, or the caller keeps it. Asks
 * the caller, with the graph frozen. (cse.c) */
cfx_status cfxi_pass_cse_is_apart(const cfxi_cse_job *job, cfx_node *n, unsigned does, bool *apart,
                                  cfx_error *err);

/* Lets the regions of branches and loops in `g` take what was computed before them instead of
 * computing it again, and take each value once. (cse_regions.c) */
cfx_status cfxi_pass_cse_regions(cfxi_cse_job *job, cfx_graph *g, cfx_error *err);

/* The regions of a graph, told apart by what they compute. (cse_regions.c) */
cfx_status cfxi_pass_cse_name_regions(cfx_graph *g, cfx_node_map *first, cfx_error *err);

#endif
