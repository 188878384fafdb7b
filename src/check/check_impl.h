/* check_impl.h - what the files of src/check share. */
#ifndef CFXI_CHECK_IMPL_H
#define CFXI_CHECK_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/ops.h>

/* What a call computes, for people: the operator's name, which *op becomes too; else (NONE) the
 * class of a module, if the module stack tells it, or the target. (stats.c) */
const char *cfxi_check_callee(const cfx_node *n, size_t *size, cfx_operator *op);

#endif
