/* python_ops.c - arithmetic and comparison rows on Python's numbers and containers. */
#include "runtime_impl.h"

cfx_status cfxi_python_call(cfxi_call *c, bool *handled)
{
    (void)c;
    *handled = false;
    return CFX_OK;
}
