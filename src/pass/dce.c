/* dce.c - dead-code elimination: erases nodes that nobody uses and that have no effect.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %relu = call_function[target=torch.relu](%x)    %relu = call_function[target=torch.relu](%x)
 *     %neg = call_function[target=torch.neg](%relu)   output(%relu)
 *     %abs = call_function[target=torch.abs](%neg)
 *     output(%relu)
 *
 * Needs: a graph that cfx_graph_lint accepts.
 * Keeps: names, order, locations and arguments of all nodes that stay; placeholders; what writes to
 * an argument, unless torch.fx's rule is asked for, by which in-place methods ("add_") and
 * functions (operator.iadd) are pure.
 *
 * One walk backwards: when a node is met, whatever uses it has been erased if it could be. Linear
 * in nodes and edges. Branches and loops that stay lose what nobody needs of them (liveness.c):
 * results of a branch that are not taken, state of a loop that feeds only itself, operands that no
 * region reads. Then their regions are treated likewise. A loop without effects goes, if nobody
 * needs its result, though it might never have ended: as in C, loops are taken to end.
 */
#include "analysis/effects_impl.h"
#include "analysis/liveness_impl.h"
#include "pass_impl.h"

typedef struct sweep_job {
    const cfx_dce_options *opts;
    cfxi_effect_model model;
    cfxi_live live;       /* if there are regions */
    cfx_node_map *done;   /* the roots of regions that have been swept */
    bool changed;
} sweep_job;

/* An operator counts on the inputs and the output of its regions, whatever the caller thinks. */
static bool is_end_of_region(const cfx_node *n)
{
    return n->graph->parent && (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT);
}

static cfx_status could_not_tell(const cfx_node *n, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an effect",
                         n->name->data);
}

/* Whether a node has to stay, whoever uses it. */
static cfx_status is_needed(cfx_node *n, sweep_job *job, bool *needed, cfx_error *err)
{
    const cfx_dce_options *opts = job->opts;
    if (opts && opts->is_impure) {
        const int answer = opts->is_impure(opts->ctx, n);
        *needed = answer > 0;
        return answer < 0 ? could_not_tell(n, err) : CFX_OK;
    }
    unsigned does;
    CFX_TRY(cfxi_analysis_does(&job->model, n, &does, err));
    *needed = cfxi_analysis_must_stay(does, opts && opts->like_torch_fx);
    return CFX_OK;
}

static cfx_status is_root(void *ctx, cfx_node *n, bool *root, cfx_error *err)
{
    return is_needed(n, ctx, root, err);
}

/* The caller's opinion is asked of every node, and may give it users. */
static cfx_status must_keep(cfx_node *n, sweep_job *job, bool *keep, cfx_error *err)
{
    *keep = n->n_users > 0 || is_end_of_region(n);
    if (!*keep || (job->opts && job->opts->is_impure))
        CFX_TRY(is_needed(n, job, keep, err));
    *keep = *keep || n->n_users > 0 || is_end_of_region(n);
    return CFX_OK;
}

/* ---- branches and loops -------------------------------------------------------------------- */

static cfx_status sweep_all(cfx_graph *g, void *ctx, cfx_error *err);

/* Whether every user takes a result that is needed. */
static bool takes_needed(const cfxi_control *c, const bool *results)
{
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use)) {
        const size_t k = cfxi_analysis_control_taken(c, use->user);
        if (k == SIZE_MAX || !results[k])
            return false;
    }
    return true;
}

static bool all_of(const bool *flags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!flags[i])
            return false;
    return true;
}

/* A result that is one value cannot be dropped, but need not be computed. */
static cfx_status give_nothing(cfxi_control *c, bool *changed, cfx_error *err)
{
    for (size_t i = 0; i < c->n_regions; i++) {
        if (cfx_node_arg(c->outputs[i], 0).kind == CFX_KIND_NONE)
            continue;
        CFX_TRY(cfxi_analysis_control_set_output(c, i, cfx_value_none(), err));
        *changed = true;
    }
    return CFX_OK;
}

static cfx_status drop_results(cfxi_control *c, const bool *results, bool *changed, cfx_error *err)
{
    bool handed = false;
    if (all_of(results, c->n_results) || !takes_needed(c, results))
        return CFX_OK;
    if (c->whole)
        return give_nothing(c, changed, err);
    if (cfxi_analysis_control_is_loop(c)) {
        CFX_TRY(cfxi_analysis_control_hand_on(c, results, &handed, err));
        *changed = *changed || handed;
        return CFX_OK;
    }
    *changed = true;
    return cfxi_analysis_control_drop_results(c, results, err);
}

/* How often input k is read, but for handing it on. */
static void note_reads(const cfxi_control *c, const bool *results, bool *keep)
{
    const bool loop = cfxi_analysis_control_is_loop(c);
    for (size_t i = 0; i < c->n_regions; i++) {
        const bool body = loop && i == cfxi_analysis_control_body(c);
        const cfx_node *n = cfxi_analysis_control_input(c, i, 0);
        for (size_t k = 0; k < c->n; k++, n = cfxi_ir_next_input(c->regions[i], n)) {
            const bool handed_on = body && !results[k] && n->n_users == 1 &&
                                   n->users->user == c->outputs[i] && n->users->count == 1;
            keep[k] = keep[k] || (n->n_users > 0 && !handed_on);
        }
    }
}

static cfx_status drop_inputs(cfxi_control *c, const bool *results, bool *changed, cfx_error *err)
{
    const cfx_allocator *allocator = c->node->graph->allocator;
    const size_t n = c->n;
    bool *keep = n > 0 ? cfxi_base_alloc(allocator, n) : NULL;
    if (n > 0 && !keep)
        return cfxi_base_nomem(err);
    for (size_t k = 0; k < n; k++)
        keep[k] = cfxi_analysis_control_is_loop(c) && results[k];
    note_reads(c, results, keep);
    cfx_status status = CFX_OK;
    if (!all_of(keep, n) && (!cfxi_analysis_control_is_loop(c) || takes_needed(c, results))) {
        status = cfxi_analysis_control_drop_inputs(c, keep, err);
        *changed = true;
    }
    cfxi_base_free(allocator, keep, n);
    return status;
}

static cfx_status sweep_control(sweep_job *job, cfx_node *n, cfx_error *err)
{
    cfxi_control c;
    const cfxi_live_control *known = cfxi_analysis_live_find(&job->live, n);
    if (!known || !cfxi_analysis_control_of(n, &c) || !cfxi_analysis_control_is_alone(&c) ||
        c.n_results != known->c.n_results)
        return CFX_OK;
    CFX_TRY(drop_results(&c, known->results, &job->changed, err));
    for (size_t i = 0; i < c.n_regions; i++) {
        CFX_TRY(cfx_node_map_set(job->done, &c.regions[i]->root, cfx_value_int(1), err));
        CFX_TRY(sweep_all(c.regions[i], job, err));
    }
    if (!cfxi_analysis_control_of(n, &c) || c.n > known->c.n)
        return CFX_OK;
    return drop_inputs(&c, known->results, &job->changed, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status sweep(cfx_graph *g, sweep_job *job, cfx_error *err)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        bool keep;
        status = must_keep(n, job, &keep, err);
        if (status == CFX_OK && keep && job->done)
            status = sweep_control(job, n, err);
        if (status != CFX_OK || keep)
            continue;
        status = cfx_graph_erase(g, n, err);
        job->changed = job->changed || status == CFX_OK;
    }
    cfx_iter_end(&it);
    return status;
}

static cfx_status sweep_region(cfx_graph *g, void *ctx, cfx_error *err)
{
    const sweep_job *job = ctx;
    const bool done = cfx_node_map_get(job->done, &g->root).kind != CFX_KIND_INVALID;
    return done ? CFX_OK : sweep_all(g, ctx, err);
}

static cfx_status sweep_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    sweep_job *job = ctx;
    CFX_TRY(sweep(g, job, err));
    return job->done ? cfxi_analysis_each_region(g, sweep_region, job, err) : CFX_OK;
}

static cfx_status sweep_with_regions(cfx_graph *g, sweep_job *job, cfx_error *err)
{
    cfx_status status = CFX_E_NOMEM;
    if ((job->done = cfx_node_map_new(g->allocator, err)) != NULL)
        status = cfxi_analysis_live_begin(&job->live, g, is_root, job, err);
    if (status == CFX_OK)
        status = sweep_all(g, job, err);
    cfxi_analysis_live_end(&job->live);
    cfx_node_map_free(job->done);
    return status;
}

cfx_status cfxi_pass_dce(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                         bool *changed, cfx_error *err)
{
    const cfx_dce_options *o = opts;
    sweep_job job = {.opts = o, .model = {.modules = modules, .strict = o && o->strict}};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = cfxi_analysis_has_regions(g) ? sweep_with_regions(g, &job, err)
                                            : sweep_all(g, &job, err);
    cfxi_analysis_model_end(&job.model);
    if (changed)
        *changed = job.changed;
    return status;
}
