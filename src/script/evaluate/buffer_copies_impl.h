/* buffer_copies_impl.h - buffers that are assigned to: buffer_copies.c. Apart from
 * evaluate_impl.h, whose tree has names that sets of aliases have, too. */
#ifndef CFXI_BUFFER_COPIES_IMPL_H
#define CFXI_BUFFER_COPIES_IMPL_H

#include <cfx/node.h>

/* Whether the value of a node may share memory with another one. */
bool cfxi_eval_may_share(const cfx_node *n);

/* The value that `n` is, written to in place perhaps: x of x += 1. */
const cfx_node *cfxi_eval_tensor_of(const cfx_node *n);
/* The attribute that a value is, written to in place perhaps: self.state += x. NULL: none. */
const char *cfxi_eval_attribute_of(const cfx_node *n);

/* Copies results that the nodes from g->kept on would change. */
cfx_status cfxi_eval_keep_apart(cfx_graph *g, cfx_error *err);

#endif
