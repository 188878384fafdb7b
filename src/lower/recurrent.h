/* recurrent.h - a recurrent module alone, in a graph that is not lowered. (lower_rnn.c) */
#ifndef CFXI_LOWER_RECURRENT_H
#define CFXI_LOWER_RECURRENT_H

#include <cfx/tree.h>

/* Makes the call of a recurrent layer or cell, of row `op`, one of the function, with its weights;
 * all in PyTorch's words, for graphs that run there. */
cfx_status cfxi_lower_recurrent(cfx_graph *g, const cfx_module_tree *modules, cfx_node *n,
                                cfx_operator op, cfx_error *err);

#endif
