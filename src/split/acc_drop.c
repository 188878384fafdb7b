/* acc_drop.c - which calls an accelerator cannot run because of values that are not tensors.
 *
 *     %n = call_method[target=size](%x, 0)          runs elsewhere, not a tensor
 *     %v = call_method[target=view](%y, %n)         dropped: it would get %n from elsewhere
 */
#include "acc_impl.h"

typedef struct drop_job {
    cfxi_acc acc;
    unsigned char *flags;
    bool both_ways;    /* also drops who passes such values to nodes that run elsewhere */
    cfxi_vec work;     /* of cfx_node *: the users of these are dropped */
    cfxi_vec dropped;  /* of cfx_node * */
} drop_job;

static cfx_status push(drop_job *job, cfxi_vec *list, cfx_node *n)
{
    return cfxi_analysis_nodes_push(list, n, job->acc.g->allocator, job->acc.err);
}

static cfx_status drop(drop_job *job, cfx_node *n, uint32_t i)
{
    job->flags[i] &= (unsigned char)~CFX_FUSION_ACC;
    CFX_TRY(push(job, &job->dropped, n));
    return job->flags[i] & CFX_FUSION_TENSOR ? CFX_OK : push(job, &job->work, n);
}

/* `n` runs elsewhere: drops the accelerated nodes that pass it something else than tensors. What
 * those read is looked at when their turn in `work` comes, for the sake of deep graphs. */
static cfx_status drop_givers(drop_job *job, const cfx_node *n)
{
    for (uint32_t k = 0; job->both_ways && k < n->n_inputs; k++) {
        cfx_node *def = n->inputs[k].def;
        const uint32_t i = cfxi_split_acc_at(&job->acc, def);
        if ((job->flags[i] & (CFX_FUSION_ACC | CFX_FUSION_TENSOR)) == CFX_FUSION_ACC)
            CFX_TRY(drop(job, def, i));
    }
    return CFX_OK;
}

static cfx_status drop_users(drop_job *job, const cfx_node *n)
{
    CFX_TRY(drop_givers(job, n));
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const uint32_t i = cfxi_split_acc_at(&job->acc, use->user);
        if (!(job->flags[i] & CFX_FUSION_ACC))
            continue;
        CFX_TRY(drop(job, use->user, i));
        CFX_TRY(drop_givers(job, use->user));
    }
    return CFX_OK;
}

/* Where the walk begins: at nodes that run elsewhere. */
static cfx_status find_work(drop_job *job)
{
    for (size_t i = 0; i < job->acc.n; i++) {
        cfx_node *n = job->acc.nodes[i];
        if (job->flags[i] & CFX_FUSION_ACC)
            continue;
        CFX_TRY(drop_givers(job, n));
        if (!job->both_ways && cfxi_ir_is_call(n) && !(job->flags[i] & CFX_FUSION_TENSOR))
            CFX_TRY(push(job, &job->work, n));
    }
    return CFX_OK;
}

static cfx_status take_work(drop_job *job, cfx_node *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cfxi_split_acc_at(&job->acc, from[i]) != CFX_NO_PART)
            CFX_TRY(push(job, &job->work, from[i]));
    return CFX_OK;
}

static cfx_status drop_all(drop_job *job, cfx_graph *g, cfx_node *const *from, size_t n,
                           cfx_node_fn *dropped, void *ctx, cfx_error *err)
{
    cfx_status status = cfxi_split_acc_init(&job->acc, g, err);
    if (status == CFX_OK)
        status = from ? take_work(job, from, n) : find_work(job);
    for (size_t i = 0; status == CFX_OK && i < job->work.size; i++)
        status = drop_users(job, ((cfx_node **)job->work.data)[i]);
    cfxi_ir_graph_freeze(g);
    for (size_t i = 0; dropped && status == CFX_OK && i < job->dropped.size; i++)
        status = dropped(ctx, ((cfx_node **)job->dropped.data)[i]);
    cfxi_ir_graph_thaw(g);
    cfxi_base_vec_free(&job->work, sizeof(cfx_node *), g->allocator);
    cfxi_base_vec_free(&job->dropped, sizeof(cfx_node *), g->allocator);
    cfxi_split_acc_done(&job->acc);
    return status;
}

cfx_status cfx_graph_drop_non_tensor_inputs(cfx_graph *g, unsigned char *flags,
                                            cfx_node *const *from, size_t n, cfx_node_fn *dropped,
                                            void *ctx, cfx_error *err)
{
    drop_job job = {.flags = flags};
    return drop_all(&job, g, from, n, dropped, ctx, err);
}

cfx_status cfx_graph_drop_non_tensor_outputs(cfx_graph *g, unsigned char *flags,
                                             cfx_node_fn *dropped, void *ctx, cfx_error *err)
{
    drop_job job = {.flags = flags, .both_ways = true};
    return drop_all(&job, g, NULL, 0, dropped, ctx, err);
}
