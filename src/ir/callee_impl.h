/* callee_impl.h - the entries that nodes with one opcode and target share; used by src/ir alone. */
#ifndef CFXI_CALLEE_IMPL_H
#define CFXI_CALLEE_IMPL_H

#include "graph_impl.h"

/* The entry for a target, made if need be; NULL with *err set. An entry without nodes must be
 * tidied away. */
cfxi_callee *cfxi_ir_callee_get(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_error *err);
cfxi_callee *cfxi_ir_callee_of_ref(cfx_graph *g, cfx_opcode op, cfx_ref *ref, cfx_error *err);
void cfxi_ir_callee_tidy(cfx_graph *g, cfxi_callee *callee);  /* frees it if it counts no node */

/* Puts a node on the entry's list and count; takes it off the list (the count stays, so that an
 * erased node can still tell its target). */
void cfxi_ir_callee_add(cfxi_callee *callee, cfx_node *n);
void cfxi_ir_callee_unlist(cfx_node *n);

/* Finds out what nodes with this callee are called. The host may be asked, and run any code: the
 * entry must count something, so that it stays. */
cfx_status cfxi_ir_callee_ask(cfx_graph *g, cfxi_callee *callee, cfx_error *err);
/* The next free name for a node with this callee, which has been asked. */
cfxi_name *cfxi_ir_callee_name(cfx_graph *g, cfxi_callee *callee, cfx_error *err);

#endif
