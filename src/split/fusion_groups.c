/* fusion_groups.c - nodes that must run together: they pass each other other values than tensors.
 *
 *     %n = call_method[target=size](%x, 0)             accelerated, no tensor    group 0
 *     %m = call_function[target=operator.mul](%n, 2)   accelerated, no tensor    group 0
 *     %s = call_function[target=torch.sin](%x)         accelerated
 *     %v = call_method[target=view](%s, %m)            accelerated               group 0
 *
 * A value that is no tensor joins its node and all accelerated users. If a way leads out of a group
 * and back into it, what lies on it joins, too: else the group and that could need each other.
 */
#include "partition_impl.h"

enum { FROM = 1, TO = 2 };  /* whether a way leads here from the group, and from here to it */

typedef struct group_job {
    cfxi_partition base;  /* `supported`: accelerated */
    cfx_node **nodes;
    uint32_t *last;       /* by root: its last node */
    unsigned char *ways;
    bool changed;
} group_job;

static cfx_status join_users(group_job *job, const unsigned char *flags, cfx_error *err)
{
    for (size_t i = 0; i < job->base.n; i++) {
        const cfx_use *use = cfx_node_first_use(job->nodes[i]);
        for (; use; use = cfx_use_next(use)) {
            uint32_t user = cfxi_split_partition_at(&job->base, use->user);
            if (user <= i)
                return cfx_error_set(err, CFX_E_GRAPH, "node %%%s comes before %%%s, which it "
                                     "uses; run the toposort pass first",
                                     use->user->name->data, job->nodes[i]->name->data);
            if (job->base.supported[i] && job->base.supported[user] &&
                !(flags[i] & CFX_FUSION_TENSOR))
                cfxi_split_partition_join(&job->base, (uint32_t)i, user);
        }
    }
    return CFX_OK;
}

static bool is_member(group_job *job, uint32_t i, uint32_t root)
{
    return job->base.supported[i] && cfxi_split_partition_root(&job->base, i) == root;
}

/* From the first node of a group to its last. */
static void find_ways(group_job *job, uint32_t first, uint32_t last, uint32_t root)
{
    for (uint32_t i = first; i <= last; i++) {
        const cfx_node *n = job->nodes[i];
        job->ways[i] = 0;
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            uint32_t def = cfxi_split_partition_at(&job->base, n->inputs[k].def);
            if (def >= first && (is_member(job, def, root) || (job->ways[def] & FROM)))
                job->ways[i] |= FROM;
        }
    }
    for (uint32_t i = last + 1; i-- > first;) {
        const cfx_use *use = cfx_node_first_use(job->nodes[i]);
        for (; use; use = cfx_use_next(use)) {
            uint32_t user = cfxi_split_partition_at(&job->base, use->user);
            if (user <= last && (is_member(job, user, root) || (job->ways[user] & TO)))
                job->ways[i] |= TO;
        }
    }
}

static void close_group(group_job *job, uint32_t first, uint32_t last)
{
    uint32_t root = cfxi_split_partition_root(&job->base, first);
    find_ways(job, first, last, root);
    for (uint32_t i = first; i <= last; i++)
        if (job->ways[i] == (FROM | TO) && job->base.supported[i] && !is_member(job, i, root)) {
            cfxi_split_partition_join(&job->base, first, i);
            root = cfxi_split_partition_root(&job->base, first);
            job->changed = true;
        }
}

/* Once around all groups; those that join one another are gone around again. */
static void close_groups(group_job *job)
{
    const size_t n = job->base.n;
    do {
        job->changed = false;
        for (size_t i = 0; i < n; i++)
            if (job->base.supported[i])
                job->last[cfxi_split_partition_root(&job->base, (uint32_t)i)] = (uint32_t)i;
        for (size_t i = 0; i < n; i++)
            job->base.scratch[i] = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t root = cfxi_split_partition_root(&job->base, (uint32_t)i);
            if (!job->base.supported[i] || job->base.size[root] < 2 || job->base.scratch[root])
                continue;
            job->base.scratch[root] = 1;
            close_group(job, (uint32_t)i, job->last[root]);
            job->base.scratch[cfxi_split_partition_root(&job->base, (uint32_t)i)] = 1;
        }
    } while (job->changed);
}

static size_t number_groups(group_job *job, uint32_t *groups)
{
    uint32_t next = 0;
    for (size_t i = 0; i < job->base.n; i++)
        job->base.scratch[i] = CFX_NO_PART;
    for (size_t i = 0; i < job->base.n; i++) {
        uint32_t root = cfxi_split_partition_root(&job->base, (uint32_t)i);
        groups[i] = CFX_NO_PART;
        if (!job->base.supported[i] || job->base.size[root] < 2)
            continue;
        if (job->base.scratch[root] == CFX_NO_PART)
            job->base.scratch[root] = next++;
        groups[i] = job->base.scratch[root];
    }
    return next;
}

static cfx_status find_groups(group_job *job, const unsigned char *flags, uint32_t *groups,
                              size_t *n, cfx_error *err)
{
    size_t i = 0;
    job->base.stamp = cfxi_ir_graph_number(job->base.graph);
    for (cfx_node *node = job->base.graph->root.next; i < job->base.n; node = node->next, i++) {
        job->nodes[i] = node;
        job->base.supported[i] = (flags[i] & CFX_FUSION_ACC) != 0;
        job->base.parent[i] = (uint32_t)i;
        job->base.size[i] = 1;
    }
    CFX_TRY(join_users(job, flags, err));
    close_groups(job);
    *n = number_groups(job, groups);
    return CFX_OK;
}

cfx_status cfx_graph_fusion_groups(cfx_graph *g, const unsigned char *flags, uint32_t *groups,
                                   size_t *n, cfx_error *err)
{
    const size_t size = g->size, each = sizeof(cfx_node *) + 4 * sizeof(uint32_t) + 2;
    group_job job = {.base = {.graph = g, .n = size}};
    *n = 0;
    if (size == 0)
        return CFX_OK;
    char *block = cfxi_base_alloc(g->allocator, size * each);
    if (!block)
        return cfxi_base_nomem(err);
    job.nodes = (cfx_node **)(void *)block;
    job.base.parent = (uint32_t *)(void *)(job.nodes + size);
    job.base.size = job.base.parent + size;
    job.base.scratch = job.base.size + size;
    job.last = job.base.scratch + size;
    job.base.supported = (bool *)(void *)(job.last + size);
    job.ways = (unsigned char *)(void *)(job.base.supported + size);
    cfx_status status = find_groups(&job, flags, groups, n, err);
    cfxi_base_free(g->allocator, block, size * each);
    return status;
}
