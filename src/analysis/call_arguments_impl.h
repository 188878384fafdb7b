/* call_arguments_impl.h - the arguments of a call by the parameters of what it calls. */
#ifndef CFXI_CALL_ARGUMENTS_IMPL_H
#define CFXI_CALL_ARGUMENTS_IMPL_H

#include "ops/ops_impl.h"
#include "analysis_impl.h"

enum { CFXI_MOST_PARAMS = 28 };  /* as the runtime has room for */

/* The arguments of a call in the order of its spelling's parameters; INVALID where none is given.
 * */
typedef struct cfxi_binding {
    cfxi_spelled_param params[CFXI_MOST_PARAMS];
    cfx_value values[CFXI_MOST_PARAMS];
    size_t n;
    bool own;  /* see cfxi_ops_node_spelled_param */
} cfxi_binding;

/* False if the call is not in the table, or its arguments do not fit the row's parameters: loose
 * numbers for a list, another overload, too many. (call_arguments.c) */
bool cfxi_analysis_bind(const cfx_node *n, cfxi_binding *binding);

/* Which nodes are known to give a tensor: by their types, or because a function of torch whose row
 * returns one does, or a method or sign that is applied to one. (call_arguments.c) */
typedef struct cfxi_tensors {
    cfx_node_map *known;
    const cfx_module_tree *modules;
    bool inputs;  /* take inputs and attributes for tensors */
} cfxi_tensors;

cfx_status cfxi_analysis_tensors_begin(cfxi_tensors *t, cfx_graph *g,
                                       const cfx_module_tree *modules, bool inputs, cfx_error *err);
/* Looks at a node that has been added since. Asks the host: freeze the graph meanwhile. */
cfx_status cfxi_analysis_tensors_note(cfxi_tensors *t, cfx_node *n, cfx_error *err);
void cfxi_analysis_tensors_end(cfxi_tensors *t);
bool cfxi_analysis_is_tensor(const cfxi_tensors *t, cfx_value v);
/* Whether `n` calls the operator of its row for certain: a function of torch, or a method or sign
 * whose first argument is a tensor. */
bool cfxi_analysis_is_torch_call(const cfxi_tensors *t, const cfx_node *n);
/* *type becomes the type of what it gives, as the schema writes it ("Tensor", "int"); NULL if that
 * is not known. Good until *result is. */
cfx_status cfxi_analysis_result_type(const cfxi_tensors *t, const cfx_node *n,
                                     cfx_schema_param *result, const char **type, cfx_error *err);

#endif
