/* plan_peak.h - how many bytes live at each step, and whether a memory can be a part of another
 * without that more of them ever live at once than before.
 *
 * Counted before steps are fused: an estimate, which has more intermediate results than the plan.
 */
#ifndef CFXI_PLAN_PEAK_H
#define CFXI_PLAN_PEAK_H

#include "plan_impl.h"

typedef struct cfxi_peak {
    const cfxi_plan *plan;
    const bool *outside;  /* by memory: it is not of the arena */
    size_t leaves;     /* a power of two, at least the number of steps */
    int64_t *most;     /* a tree: below each node, less what was added above it */
    int64_t *added;    /* to all steps below each node */
    uint32_t *first;   /* by memory: the steps that it lives for; CFXI_NONE: none */
    uint32_t *last;
    int64_t limit;
    uint32_t part, whole;        /* the last that were joined, */
    uint32_t was_first, was_last; /* and how long the whole lived before */
} cfxi_peak;

/* False if memory is out; to be freed all the same. */
bool cfxi_plan_peak_new(cfxi_peak *p, const cfxi_plan *plan, const bool *outside);
void cfxi_plan_peak_free(cfxi_peak *p);
/* A step reads or writes a memory. */
void cfxi_plan_peak_touch(cfxi_peak *p, uint32_t memory, uint32_t step);
/* After the last touch. */
void cfxi_plan_peak_begin(cfxi_peak *p);
/* Makes `part` live in `whole`, unless the peak would grow: then false, and nothing is changed. */
bool cfxi_plan_peak_join(cfxi_peak *p, uint32_t part, uint32_t whole);
void cfxi_plan_peak_undo(cfxi_peak *p);  /* the last one */

#endif
