/* remove_dropout.c - takes out dropout that drops nothing.
 *
 *     before                                        after
 *     %x = placeholder[target=x]()                  %x = placeholder[target=x]()
 *     %drop = call_module[target=drop](%x)          %relu = call_function[target=torch.relu](%x)
 *     %relu = call_function[target=torch.relu](%drop)
 *     output(%relu)                                 output(%relu)
 *
 * Needs: the modules, for what is a module. Removed are modules that are not training, and
 * functions whose `training` is given as False; with the option `training` also modules of
 * torch.nn.Dropout itself that are training.
 * Keeps: names, order and locations of all nodes that stay. Where dropout does nothing it returns
 * its input itself, so nothing changes in what shares memory with what.
 *
 * Linear in nodes and edges.
 */
#include "ops/ops_impl.h"
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

typedef struct dropout_job {
    const cfx_module_tree *modules;
    bool training;
    bool changed;
} dropout_job;

/* Whether the module that `n` calls is certainly not training. */
static cfx_status module_is_inert(const cfx_node *n, const cfx_module_tree *modules, bool *inert,
                                  cfx_error *err)
{
    cfx_value v;
    CFX_TRY(
        cfxi_ops_module_attr(modules, n->graph, n->callee->ref->name->data, "training", &v, err));
    *inert = v.kind == CFX_KIND_BOOL && !v.as.b;
    cfx_value_discard(n->graph, v);
    return CFX_OK;
}

static bool is_dropout(cfx_operator op)
{
    if (cfx_operator_functional(op) != CFX_OPID_NONE)
        op = cfx_operator_functional(op);
    return op == CFX_OPID_dropout || op == CFX_OPID_alpha_dropout ||
           op == CFX_OPID_feature_dropout || op == CFX_OPID_feature_alpha_dropout;
}

/* Whether a call does nothing, or is to be taken out all the same. */
static cfx_status is_needless(const dropout_job *job, const cfx_node *n, cfx_operator op,
                              bool *needless, cfx_error *err)
{
    if (n->op == CFX_OP_CALL_MODULE) {
        *needless = job->training && op == CFX_OPID_dropout;
        return *needless ? CFX_OK : module_is_inert(n, job->modules, needless, err);
    }
    cfx_value train = cfx_node_operand(n, "train");
    *needless = train.kind == CFX_KIND_BOOL && !train.as.b;
    return CFX_OK;
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
    bool needless;
    CFX_TRY(cfx_node_operator_of(n, job->modules, &op, err));
    if (!is_dropout(op) || input_of(n).kind != CFX_KIND_NODE)
        return CFX_OK;
    CFX_TRY(is_needless(job, n, op, &needless, err));
    if (!needless || cfxi_ir_node_erased(n))  /* the host may have run any code */
        return CFX_OK;
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
    return status == CFX_OK ? cfxi_analysis_each_region(g, visit_all, job, err) : status;
}

cfx_status cfxi_pass_remove_dropout(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                    bool *changed, cfx_error *err)
{
    const cfx_remove_dropout_options *o = opts;
    dropout_job job = {.modules = modules, .training = o && o->training};
    cfx_status status = visit_all(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
