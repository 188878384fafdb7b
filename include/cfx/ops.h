/* ops.h - the operator table: what a call_function target means, whatever it is spelled. */
#ifndef CFX_OPS_H
#define CFX_OPS_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_operator {
    CFX_OPID_NONE,  /* not in the table */
#define CFX_OPERATOR(id, name, regions) CFX_OPID_##id,
#include <cfx/ops.def>
#undef CFX_OPERATOR
    CFX_OPERATOR_COUNT
} cfx_operator;

CFX_API const char *cfx_operator_name(cfx_operator op);           /* "cfx.cond"; NULL for NONE */
CFX_API cfx_operator cfx_operator_parse(const char *name);        /* NONE if it is in no row */
CFX_API size_t cfx_operator_regions(cfx_operator op);             /* how many regions it takes */

/* The operator that a node calls; NONE for other opcodes and for targets outside the table. */
CFX_API cfx_operator cfx_node_operator(const cfx_node *n);

#ifdef __cplusplus
}
#endif
#endif
