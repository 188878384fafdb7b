/* resolve_impl.h - branches and loops whose outcome is known. (resolve.c) */
#ifndef CFXI_RESOLVE_IMPL_H
#define CFXI_RESOLVE_IMPL_H

#include "analysis/effects_impl.h"
#include "analysis/known_values_impl.h"

typedef struct cfxi_resolver {
    cfxi_effect_model *model;
    size_t max_count;      /* loops that run more often stay */
    size_t max_nodes;      /* as do those that would become more nodes */
    cfx_node_map *truths;  /* nodes of which it is known whether they are true */
    bool changed;
    bool spliced;          /* something was put in a place: look again at what stands there now */
    bool any;              /* likewise, in any region: what is around it may have no effect now */
} cfxi_resolver;

/* Puts in the places of branches and loops of `g` what they come down to, and gives regions what is
 * known of their inputs; `truths` then has that of predicates. Regions are left to the caller, but
 * go on with the same resolver. */
cfx_status cfxi_pass_resolve(cfxi_resolver *r, cfx_graph *g, cfx_error *err);

#endif
