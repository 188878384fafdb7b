/* plan_groups.h - who reads what, and element-wise steps that can be computed together.
 *
 * An element-wise step in float32 is a function on blocks. A group is a set of such steps, of one
 * shape and layout, whose results nobody else reads but that of the last one: it can be computed
 * block by block, as one step, or as a part of the product that gives its input.
 */
#ifndef CFXI_PLAN_GROUPS_H
#define CFXI_PLAN_GROUPS_H

#include "plan_impl.h"

/* A step as a function on blocks; args[i] is the number of a tensor, CFXI_NONE for numbers[i]. */
typedef struct cfxi_element {
    bool known;          /* it is one */
    uint32_t group;      /* that it is in; CFXI_NONE */
    cfxi_fn fn;
    size_t n;
    uint32_t args[3];
    float numbers[3];
    cfxi_scalars s;
} cfxi_element;

typedef struct cfxi_group {
    size_t n;
    uint32_t steps[CFXI_CHAIN_OPS];  /* in order: the last one gives the result */
    bool taken;                      /* became a part of another step */
} cfxi_group;

typedef struct cfxi_groups {
    const cfxi_plan *plan;
    uint32_t *first_reader;  /* by memory, and one more: where its readers begin */
    uint32_t *readers;       /* steps; CFXI_NONE: it is returned */
    size_t num_readers;
    uint32_t *writer;        /* by memory: the step that gives it; CFXI_NONE */
    cfxi_element *elements;  /* by step */
    cfxi_vec groups;         /* of cfxi_group */
} cfxi_groups;

cfx_status cfxi_plan_groups_find(cfxi_groups *g, const cfxi_plan *plan, cfx_runtime *rt,
                                 cfx_error *err);
void cfxi_plan_groups_free(cfxi_groups *g);

static inline cfxi_group *cfxi_plan_group(const cfxi_groups *g, size_t i)
{
    return &((cfxi_group *)g->groups.data)[i];
}
/* The only step that reads the memory of a tensor; CFXI_NONE if there is another, or none. */
uint32_t cfxi_plan_only_reader(const cfxi_groups *g, uint32_t tensor);
/* The step that gives a tensor of the plan exactly as it lies, and nothing else, if `reader` is all
 * that reads it; else CFXI_NONE. `t` may be NULL. */
uint32_t cfxi_plan_only_giver(const cfxi_groups *g, const cfx_tensor *t, uint32_t reader);
/* The only group that reads the memory of a tensor, likewise. */
uint32_t cfxi_plan_only_group(const cfxi_groups *g, uint32_t tensor);

/* A group as a chain. inputs[] become the numbers of its input tensors; `x` (or CFXI_NONE) is the
 * tensor whose memory is input 0. False if there are too many. */
bool cfxi_plan_group_chain(const cfxi_groups *g, const cfxi_group *group, uint32_t x,
                           cfxi_chain *chain, uint32_t inputs[CFXI_CHAIN_INPUTS]);

/* ---- steps that are something together ----------------------------------------------------- */

/* Makes attention that is written out one step. (plan_attention.c) */
cfx_status cfxi_plan_fuse_attention(cfxi_plan *plan, const cfxi_groups *groups, cfx_error *err);
/* Likewise norms. (plan_norm.c) */
cfx_status cfxi_plan_fuse_norms(cfxi_plan *plan, const cfxi_groups *groups, cfx_error *err);

#endif
