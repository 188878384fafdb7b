/* correspond_impl.h - the pairs of nodes of two graphs, all at once. */
#ifndef CFXI_CORRESPOND_IMPL_H
#define CFXI_CORRESPOND_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/check.h>

/* A node of one of two graphs, and its partner. */
typedef struct cfxi_twin {
    cfx_node *node;
    struct cfxi_twin *twin;  /* of the other graph; NULL while it is alone */
    struct cfxi_twin *next;  /* with the same key, in their order; later for who is told */
    struct cfxi_twin *last;  /* of the first: the end of that list */
    uint64_t down, up;
    uint64_t callee;         /* opcode and target */
    uint64_t name;
    uint64_t key;            /* in this round; later for who is told */
    cfx_pairing how;
} cfxi_twin;

typedef struct cfxi_twins {
    cfx_graph *graph;
    cfxi_twin *entries;
    size_t n;
    uint32_t stamp;  /* nodes are numbered by their marks */
} cfxi_twins;

/* NULL for a node that is not on the list. The host, asked for a name, may have numbered the nodes
 * anew, so nothing is taken for granted. */
static inline cfxi_twin *cfxi_check_twin_of(const cfxi_twins *s, const cfx_node *n)
{
    const size_t at = (size_t)n->mark - s->stamp;
    return n->graph == s->graph && at < s->n && s->entries[at].node == n ? &s->entries[at] : NULL;
}

/* Whether it has a partner of its own; else it is alone, or something stands in for it. */
static inline bool cfxi_check_has_twin(const cfxi_twin *e)
{
    return e->twin && e->how != CFX_PAIR_OPERAND;
}

/* Pairs the nodes of two graphs, not those of their regions, and calls `fn` once. Both graphs are
 * frozen meanwhile. Hands on what it returns. */
typedef cfx_status cfxi_paired_fn(void *ctx, cfxi_twins *a, cfxi_twins *b);
cfx_status cfxi_check_pair_graphs(cfx_graph *a, cfx_graph *b, cfxi_paired_fn *fn, void *ctx,
                                  cfx_error *err);

/* The i-th region among the arguments of a node, or NULL; and how many regions two nodes have in
 * common: 0 unless they have as many. */
cfx_graph *cfxi_check_twin_region(const cfx_node *n, size_t i);
size_t cfxi_check_twin_regions(const cfx_node *a, const cfx_node *b);

#endif
