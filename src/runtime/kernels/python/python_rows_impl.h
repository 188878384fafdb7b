/* python_rows_impl.h - results and iterables of the rows that are Python's functions.
 * (python_rows.c) */
#ifndef CFXI_PYTHON_ROWS_IMPL_H
#define CFXI_PYTHON_ROWS_IMPL_H

#include "runtime/python_impl.h"

/* Result 0 is `d`, taken over; INVALID has failed. */
cfx_status cfxi_python_give(cfxi_call *c, cfx_datum d);
/* What an iterable gives: a list or tuple, owned by the caller; INVALID has failed. */
cfx_datum cfxi_python_items(cfxi_call *c, cfx_datum d);

#endif
