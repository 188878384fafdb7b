/* missing.c - stands in for parts of the evaluator that are not there yet. */
#include "evaluate_impl.h"
#define MISSING __attribute__((weak))
#pragma GCC diagnostic ignored "-Wunused-parameter"
MISSING cfxi_flow cfxi_assert(cfx_evaluator *ev, const cfxi_Assert *a)
{
    return CFXI_FLOW_FAIL;
}
MISSING cfx_object * cfxi_call_special(cfx_evaluator *ev, cfx_special which, cfx_object *f, cfx_call_args args)
{
    return NULL;
}
MISSING cfxi_flow cfxi_match(cfx_evaluator *ev, const cfxi_Match *m)
{
    return CFXI_FLOW_FAIL;
}
MISSING cfxi_flow cfxi_raise(cfx_evaluator *ev, const cfxi_Raise *r)
{
    return CFXI_FLOW_FAIL;
}
MISSING cfxi_flow cfxi_try(cfx_evaluator *ev, const cfxi_Try *t)
{
    return CFXI_FLOW_FAIL;
}
MISSING cfxi_flow cfxi_with(cfx_evaluator *ev, const cfxi_With *w)
{
    return CFXI_FLOW_FAIL;
}
