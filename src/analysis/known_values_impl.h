/* known_values_impl.h - what is known of a graph without running it: literals, trip counts. */
#ifndef CFXI_KNOWN_VALUES_IMPL_H
#define CFXI_KNOWN_VALUES_IMPL_H

#include "control_flow_impl.h"

typedef enum cfxi_truth3 { CFXI_IS_FALSE, CFXI_IS_TRUE, CFXI_NOT_KNOWN } cfxi_truth3;

/* What Python's bool() gives for a literal. */
cfxi_truth3 cfxi_analysis_known_truth(cfx_value literal);

/* Whether two places that a literal is put in get the same: not of a list, which one of them might
 * change. */
bool cfxi_analysis_is_constant(cfx_value v);

/* What a call gives, if its arguments are literals and it is a function of `operator`; INVALID if
 * that is not known. A host may be asked for its name. */
cfx_value cfxi_analysis_call_known(const cfx_node *n);

/* How often the body of a loop is run: up to `most`, or SIZE_MAX if that is not known or more. */
cfx_status cfxi_analysis_known_trips(const cfxi_control *c, size_t most, size_t *trips,
                                     cfx_error *err);

/* Whether a while_loop is known to run once at least. */
cfx_status cfxi_analysis_known_first(const cfxi_control *c, bool *runs, cfx_error *err);

#endif
