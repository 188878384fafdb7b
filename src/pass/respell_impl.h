/* respell_impl.h - calls respelled: another operator in the place of one. */
#ifndef CFXI_RESPELL_IMPL_H
#define CFXI_RESPELL_IMPL_H

#include "analysis/alias_impl.h"

#include <cfx/embed/ops.h>

/* Makes `n` call `op`, spelled as it was: a method for a method, an overload of the same name, a
 * function of the same module; a function may become a method (`torch.add`, `add_`). *done is
 * false, and nothing has changed, if there is no such spelling or the host does not know it.
 * (respell.c) */
cfx_status cfxi_pass_respell(cfx_node *n, cfx_operator op, bool *done, cfx_error *err);

/* Whether a call is spelled cfx.ops.NAME, as lowering writes rows. */
bool cfxi_pass_is_lowered(const cfx_node *n);

/* Writes the first overload of `op` ("torch.ops.aten.select.int"); false if it has none. */
bool cfxi_pass_overload_of(cfx_operator op, char out[CFX_SPELLING_SIZE]);

/* The target of this qualified name: an object of the host if it has one. False if the host does
 * not know it. The value (floating) is the caller's to discard. */
bool cfxi_pass_find_target(cfx_graph *g, const char *name, cfx_target *target, cfx_value *keep,
                           cfx_error *err);

#endif
