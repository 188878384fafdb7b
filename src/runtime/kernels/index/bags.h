/* bags.h - bags of rows of a table that is not made of floats. (embedding_bag.c) */
#ifndef CFXI_INDEX_BAGS_H
#define CFXI_INDEX_BAGS_H

#include "runtime/runtime_impl.h"

/* Elements [from, from + n) of a row of a table, as floats. */
typedef void cfxi_index_row_fn(const void *table, int64_t row, int64_t from, int64_t n, float *to);

/* Result 0 of a call with the arguments of embedding_bag, whose weight is only a header of the
 * table's sizes. */
cfx_status cfxi_index_bags(cfxi_call *c, cfxi_index_row_fn *row, const void *table);

#endif
