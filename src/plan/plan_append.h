/* plan_append.h - tensors with room behind them: a cache that grows by cat in each run.
 *
 *     %k = cat([%past, %new], 2)       writes the rows of %new behind those of %past
 *
 * The result of such a cat lies in memory for more rows than it has: its strides are those of a
 * tensor with all of them. The next cat, given that very tensor, takes the rows that follow, and
 * its result is another tensor over the same memory. Rows are given away once: the memory knows how
 * many of them are taken, and a cat that is given a tensor with fewer rows copies it into memory of
 * its own. So no row that somebody can see is ever written again.
 *
 * Memory is found by its address, as long as it lives: whatever tensor begins there, of whatever
 * library, keeps it alive.
 */
#ifndef CFXI_PLAN_APPEND_H
#define CFXI_PLAN_APPEND_H

#include "plan_impl.h"

/* All such memory of a program. It lives as long as the program and the tensors do. */
typedef struct cfxi_appender cfxi_appender;

cfxi_appender *cfxi_plan_appender_new(const cfx_allocator *allocator, cfx_error *err);
cfxi_appender *cfxi_plan_appender_retain(cfxi_appender *a);
void cfxi_plan_appender_release(cfxi_appender *a);  /* NULL is allowed */
/* What a cat of these arguments gives: the caller's. INVALID without an error if it is not one that
 * grows: of tensors of one type, the first longer than the others together. Else INVALID with *err
 * set. */
cfx_datum cfxi_plan_append(cfxi_appender *a, cfx_runtime *rt, const cfx_datum *args, size_t n,
                           cfx_error *err);

#endif
