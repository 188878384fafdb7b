/* partition_impl.h - what partition.c and partition_connected.c share. */
#ifndef CFXI_PARTITION_IMPL_H
#define CFXI_PARTITION_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/partition.h>

/* Arrays have an entry for each node, in their order. */
typedef struct cfxi_partition {
    cfx_graph *graph;
    size_t n;
    uint32_t stamp;      /* the mark of the first node */
    bool *supported;
    bool *takes_item;    /* operator.getitem with a constant index */
    uint32_t *level;     /* see partition.c */
    uint32_t *parent;    /* groups: a forest; a root is its own parent */
    uint32_t *size;      /* of the group, at its root */
    uint32_t *scratch;
} cfxi_partition;

static inline uint32_t cfxi_split_partition_at(const cfxi_partition *job, const cfx_node *n)
{
    return n->mark - job->stamp;
}

uint32_t cfxi_split_partition_root(cfxi_partition *job, uint32_t i);
void cfxi_split_partition_join(cfxi_partition *job, uint32_t a, uint32_t b);

/* Joins the groups of nodes that use each other. (partition_connected.c) */
cfx_status cfxi_split_partition_connected(cfxi_partition *job, cfx_error *err);

#endif
