/* observer_impl.h - what an observer has seen, and the steps from a tensor to a scale. */
#ifndef CFXI_OBSERVER_IMPL_H
#define CFXI_OBSERVER_IMPL_H

#include "observe.h"
#include "quantize_impl.h"
#include "tensor/tensor_impl.h"

struct cfx_observer {
    const cfx_allocator *allocator;
    cfx_quantize_spec spec;
    const cfxi_observes *loops;
    cfx_isa isa;
    int64_t seen, not_finite;
    int64_t calls;      /* that had a finite element */

    /* One range for the tensor, each channel or each group; INFINITY and -INFINITY: nothing was
     * seen of it. Four arrays in one block: `low`, `high` of all calls, `now_` of this one. */
    size_t n;           /* ranges; 0: not known yet */
    size_t groups;      /* in each channel; 0 if they are not kept by group */
    float *low, *high, *now_low, *now_high;

    float *histogram;   /* of all calls; NULL if its kind has none */
    float *fresh;       /* of one call; behind it room for another */
    uint32_t *counts;   /* of cfxi_bins */
};

static inline bool cfxi_quantize_observer_has_histogram(const cfx_quantize_spec *spec)
{
    return spec->observer == CFX_OBSERVE_HISTOGRAM || spec->observer == CFX_OBSERVE_PERCENTILE;
}
/* Counts stop at the greatest number: a state may come with any. */
static inline void cfxi_quantize_observer_count(int64_t *count, int64_t more)
{
    if (__builtin_add_overflow(*count, more, count))
        *count = INT64_MAX;
}
/* Whether it keeps ranges at all. */
static inline bool cfxi_quantize_observer_has_ranges(const cfx_quantize_spec *spec)
{
    return spec->observer != CFX_OBSERVE_NOTHING && spec->observer != CFX_OBSERVE_FIXED &&
           spec->dtype != CFX_DTYPE_FLOAT16;
}

/* Makes `n` ranges, all empty, unless there are as many already: CFX_E_SHAPE if there are others.
 * CFX_E_NOMEM. (observer.c) */
cfx_status cfxi_quantize_observer_size(cfx_observer *o, size_t n, size_t groups, cfx_error *err);

/* ---- elements (observer_walk.c) ------------------------------------------------------------- */

/* Some elements of a tensor: dimensions in the order of memory, the innermost last, without
 * negative strides and dimensions of one element. */
typedef struct cfxi_part {
    const char *data;
    cfx_dtype dtype;
    size_t ndim;
    int64_t size[CFX_MAX_DIMS];
    int64_t stride[CFX_MAX_DIMS];
} cfxi_part;

/* All of it; where it is at `index` of dimension `axis`; a line of n elements. */
cfxi_part cfxi_quantize_part(const cfx_tensor *t);
cfxi_part cfxi_quantize_part_at(const cfx_tensor *t, size_t axis, int64_t index);
cfxi_part cfxi_quantize_part_line(const char *data, cfx_dtype dtype, int64_t n, int64_t stride);

/* Calls `fn` with all elements of a part, which has some, as float32, some thousands at a time, in
 * the order of memory. */
typedef void cfxi_elements_fn(void *ctx, const float *x, int64_t n);
void cfxi_quantize_walk(const cfxi_part *p, cfx_isa isa, cfxi_elements_fn *fn, void *ctx);

/* Widens `range` to the finite ones of some elements; returns how many are not finite. */
int64_t cfxi_quantize_range(const cfxi_observes *loops, const float *x, int64_t n, float range[2]);

/* ---- ranges and histograms (observer_range.c, observer_histogram.c, observer_search.c) ------ */

/* A call, of a tensor with elements. CFX_E_SHAPE if its channels do not fit; CFX_E_NOMEM. */
cfx_status cfxi_quantize_observe_ranges(cfx_observer *o, const cfx_tensor *t, cfx_error *err);
void cfxi_quantize_observe_histogram(cfx_observer *o, const cfx_tensor *t);

/* What `from` has seen, too. Both have seen something, and as many ranges. */
void cfxi_quantize_merge_ranges(cfx_observer *o, const cfx_observer *from);
void cfxi_quantize_merge_histogram(cfx_observer *o, const cfx_observer *from);

/* The part of the histogram's range that loses least; and the one without the outermost
 * elements. */
void cfxi_quantize_search(const cfx_observer *o, float range[2]);
void cfxi_quantize_percentile(const cfx_observer *o, float range[2]);

#endif
