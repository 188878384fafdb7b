/* splice_impl.h - putting the nodes of a graph in the place of a call (splice.c). */
#ifndef CFXI_SPLICE_IMPL_H
#define CFXI_SPLICE_IMPL_H

#include "analysis_impl.h"

/* Told of every node that was copied; may be NULL. */
typedef cfx_status cfxi_copied_fn(void *ctx, cfx_node *from, cfx_node *copy, cfx_error *err);

/* Copies `src` before `at`, of another graph; `map` has what its inputs are there. *result, which
 * the caller owns, is what it gives. If it fails, the copies are erased again. */
cfx_status cfxi_analysis_splice(cfx_node *at, cfx_graph *src, cfx_node_map *map,
                                cfxi_copied_fn *copied, void *ctx, cfx_value *result,
                                cfx_error *err);

/* Erases what nobody uses between `before` and `at`. */
void cfxi_analysis_unsplice(cfx_node *at, const cfx_node *before);

/* Lets the users of a call use `result` instead, which is of its graph; those that only take an
 * item of it are noted in `taken` (of cfx_node *), as their users use the item itself. */
cfx_status cfxi_analysis_splice_result(cfx_node *call, cfx_value result, cfxi_vec *taken,
                                       cfx_error *err);

/* Erases those that nobody uses any more, at the end: a walk may stand before one, and an open
 * iterator is to keep them readable. */
cfx_status cfxi_analysis_erase_taken(cfxi_vec *taken, cfx_error *err);

#endif
