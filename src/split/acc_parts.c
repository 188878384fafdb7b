/* acc_parts.c - calls in parts that alternate between an accelerator and elsewhere.
 *
 * A part has all calls of its kind that can run by then: so there are as few parts as can be if
 * the first kind is right. Then parts that are too small are given up.
 */
#include "acc_impl.h"

typedef struct parts_job {
    cfxi_acc *acc;        /* its lists: who waits for a call */
    const unsigned char *flags;
    uint32_t *missing;    /* by position: how many calls it waits for */
    uint32_t *ready[2];   /* positions of calls that can run, elsewhere and accelerated */
    size_t n_ready[2];
    cfx_node **nodes;     /* the answer */
    size_t n_nodes;
} parts_job;

static void make_ready(parts_job *job, uint32_t i)
{
    const int kind = (job->flags[i] & CFX_FUSION_ACC) != 0;
    job->ready[kind][job->n_ready[kind]++] = i;
}

/* All that can run now of one kind, and what can run then. */
static void take_part(parts_job *job, int kind)
{
    for (size_t k = 0; k < job->n_ready[kind]; k++) {
        const uint32_t i = job->ready[kind][k];
        job->nodes[job->n_nodes++] = job->acc->nodes[i];
        CFXI_ACC_EACH(job->acc, cell, i)
            if (--job->missing[cell->node] == 0)
                make_ready(job, cell->node);
    }
    job->n_ready[kind] = 0;
}

static cfx_status report_cycle(const parts_job *job)
{
    for (size_t i = 0; i < job->acc->n; i++)
        if (job->missing[i] > 0)
            return cfx_error_set(job->acc->err, CFX_E_GRAPH, "calls need each other: node %%%s "
                                 "waits for one that waits for it",
                                 job->acc->nodes[i]->name->data);
    return CFX_OK;
}

static cfx_status take_parts(parts_job *job, cfx_acc_part *parts, size_t *n)
{
    const cfxi_acc *acc = job->acc;
    for (size_t i = 0; i < acc->n; i++)
        CFXI_ACC_EACH(acc, cell, i)
            job->missing[cell->node]++;
    for (size_t i = 0; i < acc->n; i++)
        if (cfxi_ir_is_call(acc->nodes[i]) && job->missing[i] == 0)
            make_ready(job, (uint32_t)i);
    for (int kind = job->n_ready[0] == 0; job->n_ready[kind] > 0; kind = !kind) {
        take_part(job, kind);
        parts[(*n)++] = (cfx_acc_part){job->n_nodes, kind};
    }
    return report_cycle(job);
}

/* `needs` are those of the lists; they may only name calls. */
static cfx_status make_parts(cfxi_acc *needs, const unsigned char *flags, cfx_node **nodes,
                             cfx_acc_part *parts, size_t *n, cfx_error *err)
{
    cfxi_acc waiting;
    parts_job job = {.acc = &waiting, .flags = flags, .nodes = nodes};
    cfx_status status = cfxi_split_acc_init(&waiting, needs->g, err);
    for (uint32_t i = 0; status == CFX_OK && i < needs->n; i++)
        CFXI_ACC_EACH(needs, cell, i)
            if (status == CFX_OK && cfxi_ir_is_call(needs->nodes[i]) &&
                cfxi_ir_is_call(needs->nodes[cell->node]))
                status = cfxi_split_acc_add(&waiting, cell->node, i);
    if (status == CFX_OK) {
        job.missing = cfxi_base_arena_zeros(&waiting.arena, waiting.n, sizeof *job.missing);
        for (int k = 0; k < 2; k++)
            job.ready[k] = cfxi_base_arena_zeros(&waiting.arena, waiting.n, sizeof *job.ready[k]);
        status = job.missing && job.ready[0] && job.ready[1] ? take_parts(&job, parts, n)
                                                             : cfxi_base_nomem(err);
    }
    cfxi_split_acc_done(&waiting);
    return status;
}

cfx_status cfx_graph_acc_parts(cfx_graph *g, const unsigned char *flags, const cfx_need *needs,
                               size_t n_needs, cfx_node **nodes, cfx_acc_part *parts, size_t *n,
                               cfx_error *err)
{
    cfxi_acc acc;
    *n = 0;
    cfx_status status = cfxi_split_acc_init(&acc, g, err);
    if (status == CFX_OK)
        status = cfxi_split_acc_load(&acc, needs, n_needs, false);
    if (status == CFX_OK)
        status = make_parts(&acc, flags, nodes, parts, n, err);
    cfxi_split_acc_done(&acc);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int ask(const cfx_acc_options *opts, int (*fn)(void *ctx, cfx_node *n), cfx_node *n,
               unsigned char flag, unsigned char *flags)
{
    int answer = fn ? fn(opts->ctx, n) : 1;
    *flags |= answer > 0 ? flag : 0;
    return answer;
}

static cfx_status read_flags(cfx_graph *g, const cfx_acc_options *opts, unsigned char *flags,
                             cfx_error *err)
{
    size_t i = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, i++) {
        flags[i] = 0;
        if (cfxi_ir_is_call(n) &&
            (ask(opts, opts->supported, n, CFX_FUSION_ACC, &flags[i]) < 0 ||
             ask(opts, opts->is_tensor, n, CFX_FUSION_TENSOR, &flags[i]) < 0))
            return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s can be "
                                 "accelerated, or whether its value is a tensor", n->name->data);
    }
    return CFX_OK;
}

/* Gives up accelerated parts that are too small: what runs elsewhere becomes one part. */
static size_t merge_small(cfx_acc_part *parts, size_t n, size_t least)
{
    size_t kept = 0, start = 0;
    for (size_t i = 0; i < n; i++) {
        const cfx_acc_part part = {parts[i].end, parts[i].acc && parts[i].end - start >= least};
        start = part.end;
        if (kept > 0 && !part.acc && !parts[kept - 1].acc)
            kept--;
        parts[kept++] = part;
    }
    return kept;
}

static cfx_status fuse_and_part(cfx_graph *g, const cfx_acc_options *opts,
                                const unsigned char *flags, uint32_t *groups, cfx_node **nodes,
                                cfx_acc_part *parts, size_t *n, cfx_error *err)
{
    cfxi_acc acc;
    size_t n_groups = 0;
    if (!opts->skip_fusion)
        CFX_TRY(cfx_graph_fusion_groups(g, flags, groups, &n_groups, err));
    cfx_status status = cfxi_split_acc_init(&acc, g, err);
    if (status == CFX_OK)
        status = cfxi_split_acc_load(&acc, NULL, 0, false);
    if (status == CFX_OK && n_groups > 0)
        status = cfxi_split_acc_fuse(&acc, groups);
    if (status == CFX_OK)
        status = make_parts(&acc, flags, nodes, parts, n, err);
    cfxi_split_acc_done(&acc);
    if (status == CFX_OK && opts->move_non_tensors)
        status = cfx_graph_move_non_tensors(g, flags, nodes, parts, *n, err);
    if (status == CFX_OK)
        *n = merge_small(parts, *n, opts->min_size);
    return status;
}

cfx_status cfx_graph_split_acc(cfx_graph *g, const cfx_acc_options *opts, cfx_node **nodes,
                               cfx_acc_part *parts, size_t *n, cfx_error *err)
{
    const size_t bytes = g->size * (sizeof(uint32_t) + 1) + 1;
    uint32_t *groups = cfxi_base_alloc(g->allocator, bytes);
    unsigned char *flags = (unsigned char *)(groups + (groups ? g->size : 0));
    *n = 0;
    if (!groups)
        return cfxi_base_nomem(err);
    cfxi_ir_graph_freeze(g);
    cfx_status status = read_flags(g, opts, flags, err);
    cfxi_ir_graph_thaw(g);
    if (status == CFX_OK && !opts->allow_non_tensor)
        status = cfx_graph_drop_non_tensor_inputs(g, flags, NULL, 0, NULL, NULL, err);
    if (status == CFX_OK && !opts->allow_non_tensor)
        status = cfx_graph_drop_non_tensor_outputs(g, flags, NULL, NULL, err);
    if (status == CFX_OK)
        status = fuse_and_part(g, opts, flags, groups, nodes, parts, n, err);
    cfxi_base_free(g->allocator, groups, bytes);
    return status;
}
