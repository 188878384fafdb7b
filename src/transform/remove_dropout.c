/* remove_dropout.c - takes out dropout that drops nothing.
 *
 *     before                                        after
 *     %x = placeholder[target=x]()                  %x = placeholder[target=x]()
 *     %drop = call_module[target=drop](%x)          %relu = call_function[target=torch.relu](%x)
 *     %relu = call_function[target=torch.relu](%drop)
 *     output(%relu)                                 output(%relu)
 *
 * Needs: the modules, for what is a module. pass.h says what counts.
 * Keeps: names, order and locations of all nodes that stay. Where dropout does nothing it returns
 * its input itself, so nothing changes in what shares memory with what.
 *
 * Linear in nodes and edges.
 */
#include "transform_impl.h"

typedef struct dropout_job {
    const cfx_modules *modules;
    bool training;
    bool changed;
} dropout_job;

/* 1 if the module at `path` is not training, 0 if it may be, -1 with *err set. */
static int module_is_inert(const cfx_node *n, const cfx_modules *modules, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfx_buffer path;
    cfx_value v = cfx_invalid();
    const cfx_str *name = n->callee->ref->name;
    cfx_buffer_init(&path, n->graph->allocator);
    if (cfx_buffer_append(&path, name->data, name->size) == CFX_OK &&
        cfx_buffer_append(&path, ".training", strlen(".training")) == CFX_OK)
        v = modules->get(modules->ctx, n->graph, path.data, &why);
    else
        cfxi_nomem(&why);
    cfx_buffer_free(&path);
    cfx_value_discard(n->graph, v);
    if (v.kind != CFX_KIND_INVALID || why.status == CFX_E_KEY)
        return v.kind == CFX_KIND_BOOL && !v.as.b;
    if (err)
        *err = why;
    return -1;
}

static bool is_dropout(cfx_operator op)
{
    if (cfx_operator_functional(op) != CFX_OPID_NONE)
        op = cfx_operator_functional(op);
    return op == CFX_OPID_dropout || op == CFX_OPID_alpha_dropout ||
           op == CFX_OPID_feature_dropout || op == CFX_OPID_feature_alpha_dropout;
}

/* Whether a call does nothing, or is to be taken out all the same: 1, 0, or -1 with *err set. */
static int is_needless(const dropout_job *job, const cfx_node *n, cfx_operator op, cfx_error *err)
{
    if (n->op != CFX_OP_CALL_MODULE) {
        cfx_value train = cfx_node_operand(n, "train");
        return train.kind == CFX_KIND_BOOL && !train.as.b;
    }
    return job->training && op == CFX_OPID_dropout ? 1 : module_is_inert(n, job->modules, err);
}

static cfx_value input_of(const cfx_node *n)
{
    cfx_value v = cfx_node_arg(n, 0);
    if (v.kind == CFX_KIND_INVALID)
        v = cfx_node_kwarg(n, "input");
    return v;
}

static cfx_status take_out(cfx_node *n, cfx_error *err)
{
    CFX_TRY(cfx_node_replace_uses(n, input_of(n), NULL, NULL, NULL, err));
    return cfx_graph_erase(n->graph, n, err);
}

static cfx_status visit(dropout_job *job, cfx_node *n, cfx_error *err)
{
    cfx_operator op;
    CFX_TRY(cfxi_node_operator_of(n, job->modules, &op, err));
    if (!is_dropout(op) || input_of(n).kind != CFX_KIND_NODE)
        return CFX_OK;
    int needless = is_needless(job, n, op, err);
    if (needless <= 0 || cfxi_node_erased(n))
        return needless < 0 ? (err ? err->status : CFX_E_HOST) : CFX_OK;
    job->changed = true;
    return take_out(n, err);
}

static cfx_status visit_all(cfx_graph *g, void *job, cfx_error *err)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = visit(job, n, err);
    cfx_iter_end(&it);
    return status == CFX_OK ? cfxi_each_region(g, visit_all, job, err) : status;
}

cfx_status cfx_pass_remove_dropout(cfx_graph *g, const cfx_modules *modules, const void *opts,
                                   bool *changed, cfx_error *err)
{
    const cfx_remove_dropout_options *o = opts;
    dropout_job job = {.modules = modules, .training = o && o->training};
    cfx_status status = visit_all(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
