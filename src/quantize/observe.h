/* observe.h - loops that look at elements, for each instruction set (observe_vector.h). */
#ifndef CFXI_OBSERVE_H
#define CFXI_OBSERVE_H

#include "runtime/isa.h"

/* Neighbours that fall into one bin, as zeros do, count beside each other: none waits until the
 * other has been counted. */
enum { CFXI_COUNTERS = 4 };

/* The bins that elements fall into: bin i of n has those x for which the whole part of
 * (x - low) * n / width is i; the greatest element falls into the last. */
typedef struct cfxi_bins {
    float low, width;
    int32_t n;
    uint32_t *counts;  /* CFXI_COUNTERS of each */
} cfxi_bins;

typedef struct cfxi_observes {
    /* Sets range[0] and range[1] to the least and the greatest of n > 0 elements. False if one of
     * them is not finite: the range means nothing then. */
    bool (*range)(const float *x, int64_t n, float range[2]);
    /* The same of n columns of a matrix, whose rows are `stride` floats apart, together with what
     * `low` and `high` have already. Leaves out what is not finite, and returns how many. */
    int64_t (*columns)(const float *x, int64_t rows, int64_t stride, int64_t n, float *low,
                       float *high);
    /* Counts n finite elements, which lie within the bins. */
    void (*count)(const float *x, int64_t n, const cfxi_bins *bins);
} cfxi_observes;

CFXI_ISA_TABLES(cfxi_observes, cfxi_quantize_observes)

const cfxi_observes *cfxi_quantize_observes_of(cfx_isa isa);  /* (observer_walk.c) */

#endif
