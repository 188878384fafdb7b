/* resolve_impl.h - branches and loops whose way is known (resolve.c), and the values that tell it
 * (known.c). */
#ifndef CFXI_RESOLVE_IMPL_H
#define CFXI_RESOLVE_IMPL_H

#include "control_impl.h"

typedef enum cfxi_truth3 { CFXI_IS_FALSE, CFXI_IS_TRUE, CFXI_NOT_KNOWN } cfxi_truth3;

/* ---- values (known.c) ----------------------------------------------------------------------- */

/* What Python's bool() gives for a literal. */
cfxi_truth3 cfxi_known_truth(cfx_value literal);

/* Whether two places that a literal is put in get the same: not of a list, which one of them might
 * change. */
bool cfxi_is_constant(cfx_value v);

/* What a call gives, if its arguments are literals and it is a function of `operator`; INVALID if
 * that is not known. A host may be asked for its name. */
cfx_value cfxi_call_known(const cfx_node *n);

/* How often the body of a loop is run: up to `most`, or SIZE_MAX if that is not known or more. */
cfx_status cfxi_known_trips(const cfxi_control *c, size_t most, size_t *trips, cfx_error *err);

/* Whether a while_loop is known to run once at least. */
cfx_status cfxi_known_first(const cfxi_control *c, bool *runs, cfx_error *err);

/* ---- branches and loops (resolve.c) --------------------------------------------------------- */

typedef struct cfxi_resolver {
    const cfx_modules *modules;
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
cfx_status cfxi_resolve(cfxi_resolver *r, cfx_graph *g, cfx_error *err);

#endif
