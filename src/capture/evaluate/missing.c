/* missing.c - stands in for parts of the evaluator that are not there yet. */
#include "evaluate_impl.h"
#define MISSING __attribute__((weak))
#pragma GCC diagnostic ignored "-Wunused-parameter"
MISSING bool cfxi_assign(cfx_evaluator *ev, const cfxi_ast *target, cfx_object *v)
{
    return false;
}
MISSING cfx_object * cfxi_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    return NULL;
}
MISSING cfx_object * cfxi_call_method(cfx_evaluator *ev, cfx_object *o, const char *name, cfx_call_args args)
{
    return NULL;
}
MISSING cfx_object * cfxi_comprehend(cfx_evaluator *ev, const cfxi_ast *comprehension)
{
    return NULL;
}
MISSING cfx_object * cfxi_eval_call(cfx_evaluator *ev, const cfxi_Call *c)
{
    return NULL;
}
MISSING cfxi_flow cfxi_exec_block(cfx_evaluator *ev, cfxi_ast_list statements)
{
    return CFXI_FLOW_FAIL;
}
MISSING cfx_object * cfxi_function(cfx_evaluator *ev, const cfxi_ast *def_or_lambda)
{
    return NULL;
}
MISSING cfxi_truth cfxi_truth_of(cfx_evaluator *ev, cfx_object **o)
{
    return -1;
}
