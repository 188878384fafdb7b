/* bags.h - bags of rows of a table that is not made of floats. (embedding_bag.c) */
#ifndef CFXI_INDEX_BAGS_H
#define CFXI_INDEX_BAGS_H

#include "runtime/runtime_impl.h"

typedef struct cfxi_index_table {
    /* Elements [from, from + n) of a row, as floats. */
    void (*row)(const void *table, int64_t row, int64_t from, int64_t n, float *to);
    void (*fetch)(const void *table, int64_t row);  /* into the cache: it is read soon */
    const void *table;
} cfxi_index_table;

/* The beginning of a row of a matrix, into the cache: tables are large, and what is read of them
 * is anywhere. (gcc takes a function that only fetches for one without effects, and drops calls of
 * it that are not inlined at once.) */
__attribute__((always_inline)) static inline void cfxi_index_fetch(const cfx_tensor *t, int64_t row)
{
    enum { LINE = 64, MOST = 1024 };
    const int64_t bytes = t->ndim > 1 ? t->size[1] * t->stride[1] : 1;
    const char *at = t->data + row * t->stride[0];
    for (int64_t i = 0; i < bytes && i < MOST; i += LINE)
        __builtin_prefetch(at + i);
}

/* Result 0 of a call with the arguments of embedding_bag, whose weight is only a header of the
 * table's sizes. */
cfx_status cfxi_index_bags(cfxi_call *c, const cfxi_index_table *table);

#endif
