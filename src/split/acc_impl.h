/* acc_impl.h - what the steps of a split for an accelerator share. */
#ifndef CFXI_ACC_IMPL_H
#define CFXI_ACC_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/partition.h>

/* A graph by positions, and a list of positions for each of its nodes: what it needs, or who waits
 * for it. A list may name a position several times. */
typedef struct cfxi_acc {
    cfx_graph *g;
    size_t n;
    uint32_t stamp;         /* the mark of the first node */
    cfx_node **nodes;
    uint32_t *head, *tail;  /* by position: the first and the last cell of its list */
    cfxi_vec cells;         /* of cfxi_acc_cell */
    cfxi_arena arena;       /* for arrays by position */
    cfx_error *err;
} cfxi_acc;

typedef struct cfxi_acc_cell {
    uint32_t node;
    uint32_t next;  /* CFX_NO_PART at the end */
} cfxi_acc_cell;

/* Numbers the nodes; cfxi_split_acc_done also after a failure. */
cfx_status cfxi_split_acc_init(cfxi_acc *acc, cfx_graph *g, cfx_error *err);
void cfxi_split_acc_done(cfxi_acc *acc);

/* The position of a node; CFX_NO_PART if it is not in the graph. */
static inline uint32_t cfxi_split_acc_at(const cfxi_acc *acc, const cfx_node *n)
{
    const uint32_t i = n->mark - acc->stamp;
    return i < acc->n && acc->nodes[i] == n ? i : CFX_NO_PART;
}

static inline const cfxi_acc_cell *cfxi_split_acc_cell(const cfxi_acc *acc, uint32_t i)
{
    return i == CFX_NO_PART ? NULL : (const cfxi_acc_cell *)acc->cells.data + i;
}
#define CFXI_ACC_EACH(acc, cell, of)                                                               \
    for (const cfxi_acc_cell *cell = cfxi_split_acc_cell(acc, (acc)->head[of]); cell;              \
         cell = cfxi_split_acc_cell(acc, (cell)->next))

/* Appends `to` to the list of `of`. */
cfx_status cfxi_split_acc_add(cfxi_acc *acc, uint32_t of, uint32_t to);
/* Fills the lists from pairs, `backwards` those of the second node; pairs with a node that is not
 * in the graph are left out. For NULL: the calls that each call reads. */
cfx_status cfxi_split_acc_load(cfxi_acc *acc, const cfx_need *pairs, size_t n, bool backwards);

/* Gives the lists what cfx_graph_fuse_needs adds. (acc_needs.c) */
cfx_status cfxi_split_acc_fuse(cfxi_acc *acc, const uint32_t *groups);

#endif
