/* sort_impl.h - lanes in order: what sort, topk, median, mode, quantile and unique share. */
#ifndef CFXI_SORT_IMPL_H
#define CFXI_SORT_IMPL_H

#include "reduce_impl.h"

/* An element's rank among all of its type, as a number, and its place in the lane. NaN is greatest;
 * -0 and 0 are the same. */
typedef struct cfxi_ranked {
    uint64_t key;
    int64_t index;
} cfxi_ranked;

/* The keys of n elements `stride` bytes apart; those of the reverse order if `descending`. */
void cfxi_reduce_rank(cfx_runtime *rt, cfxi_ranked *out, cfx_dtype dtype, const char *at,
                      int64_t stride, int64_t n, bool descending);
/* By key; equal keys stay in the order they have. `spare` has room for n, too; the sorted elements
 * are where the result says: in either. */
cfxi_ranked *cfxi_reduce_sort_ranked(cfxi_ranked *x, cfxi_ranked *spare, int64_t n);
/* Whether a key that cfxi_reduce_rank gave is that of NaN. */
bool cfxi_reduce_key_is_nan(cfx_dtype dtype, uint64_t key);
/* Bytes of scratch for a lane of n elements and its spare; false if they do not fit. */
static inline bool cfxi_reduce_ranked_size(int64_t n, size_t *size)
{
    return cfxi_base_mul_size((size_t)n, 2 * sizeof(cfxi_ranked), 0, size);
}

#endif
