/* plan_join.h - what is put together: cat, stack, and pad with a constant.
 *
 * An item of a join has a place in its result: an offset, and the strides of the result. An item
 * that nobody else has to see elsewhere is written there by the step that gives it: its memory is a
 * part of the result's, `part_of`, and every header over it has the strides of its place. The
 * kernel of the join copies what lies elsewhere, so that a join whose items are all in place, and
 * which has no border to fill, is no step at all. It stays in the list until steps are fused:
 * it is what reads the items, and what gives the result.
 *
 * Joins of joins are one memory: a list that grows by an item in each layer is written once. */
#ifndef CFXI_PLAN_JOIN_H
#define CFXI_PLAN_JOIN_H

#include "plan_impl.h"

typedef struct cfxi_join {
    const cfx_tensor *out;
    const cfx_datum *items;
    size_t n;
    size_t dim;       /* cat, stack: of the result */
    bool stacks;      /* items have no such dimension */
    bool pads;        /* one item, */
    const cfx_datum *border;  /* and how far it is from the edges: the last dimension first, */
    size_t borders;           /* before and after */
} cfxi_join;

/* Where an item belongs: strides in bytes, for its own dimensions. */
typedef struct cfxi_part {
    cfx_tensor *item;
    int64_t offset;   /* from the first element of the result */
    int64_t stride[CFX_MAX_DIMS];
} cfxi_part;

/* Whether a step is a join of planned memory. */
bool cfxi_plan_join_of(const cfxi_step *s, cfxi_join *join);
/* The place of the next item; `at` counts them, and `offset` is where it begins: both from 0. False
 * after the last. */
bool cfxi_plan_next_part(const cfxi_join *join, size_t *at, int64_t *offset, cfxi_part *part);

#endif
