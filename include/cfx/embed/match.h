/* For language bindings and back ends; may change between versions.
 *
 * embed/match.h - the anchors of a pattern.
 */
#ifndef CFX_EMBED_MATCH_H
#define CFX_EMBED_MATCH_H

#include <cfx/match.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The anchors of a pattern (match.h), in the order in which its output mentions them. Stores the
 * first `max` of them in `anchors`; *n receives their total number. `opts` may be NULL. */
CFX_API cfx_status cfx_pattern_anchors(cfx_graph *pattern, const cfx_match_options *opts,
                                       cfx_node **anchors, size_t max, size_t *n, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
