/* reinplace.c - lets calls write their results into memory that nobody needs any more.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %y = call_function[target=torch.exp](%x)        %y = call_function[target=torch.exp](%x)
 *     %relu = call_function[target=torch.relu](%y)    %relu = call_function[target=torch.relu_](%y)
 *     output(%relu)                                   output(%y)
 *
 * Needs: a graph that cfx_graph_lint accepts. Gradients cannot be computed through the result, and
 * dce, which takes unused in-place calls for dead as torch.fx does, must not run afterwards.
 * Keeps: names, order and locations. A call is changed if its first operand fits the result (same
 * dtype and sizes: the host's `fits` says so; without it, only operators that always keep them are
 * changed), is no memory from outside the graph, shares none with the other operands, and nothing
 * that shares its memory is used later.
 *
 * Later uses by a scatter that only puts the result back to where its operand came from do not
 * count: the scatter goes, and its base takes its place. A scatter whose base is not used later
 * becomes a view of the base and a copy_ into it.
 *
 * Linear in nodes and edges, but for what shares memory with the base of a scatter: that is looked
 * through for each call that could be changed.
 */
#include "respell_impl.h"
#include "pass_impl.h"

#include <stdlib.h>

typedef struct reinplace_job {
    cfxi_aliases aliases;
    cfx_node **nodes;   /* by place */
    const cfx_reinplace_options *opts;
    cfxi_vec scatters;  /* of cfx_node *: those that go with the current call */
    bool changed;
} reinplace_job;

static uint32_t place(const reinplace_job *job, const cfx_node *n)
{
    return cfxi_analysis_alias_place(&job->aliases, n);
}

static bool shares(const reinplace_job *job, const cfx_node *a, const cfx_node *b)
{
    return cfxi_analysis_alias_set(&job->aliases, a) == cfxi_analysis_alias_set(&job->aliases, b);
}

/* ---- whether the operand fits -------------------------------------------------------------- */

/* Operators whose result has the dtype and sizes of the operand, whatever these are, or fail. */
static bool always_fits(cfx_operator op)
{
    switch (op) {
    case CFX_OPID_relu:
    case CFX_OPID_relu6:
    case CFX_OPID_leaky_relu:
    case CFX_OPID_elu:
    case CFX_OPID_selu:
    case CFX_OPID_celu:
    case CFX_OPID_silu:
    case CFX_OPID_mish:
    case CFX_OPID_hardtanh:
    case CFX_OPID_hardswish:
    case CFX_OPID_hardsigmoid:
    case CFX_OPID_neg:
    case CFX_OPID_floor:
    case CFX_OPID_ceil:
    case CFX_OPID_round:
    case CFX_OPID_trunc:
        return true;
    default:
        return false;
    }
}

/* Without a host that knows: a value that is an expanded view cannot be written to. */
static bool is_own_tensor(const cfx_node *x)
{
    cfx_schema_param result;
    const cfx_operator op = cfx_node_operator(x);
    return op && cfx_operator_result(op, 0, &result) && cfx_operator_num_results(op) == 1 &&
           strcmp(result.type, "Tensor") == 0 && (!result.alias || cfxi_analysis_written(x, NULL));
}

static cfx_status ask(const reinplace_job *job, cfx_node *n, cfx_node *x, bool *fits,
                      cfx_error *err)
{
    if (!job->opts || !job->opts->fits) {
        *fits = is_own_tensor(x) && always_fits(cfx_node_operator(n));
        return CFX_OK;
    }
    cfxi_ir_graph_freeze(job->aliases.graph);
    int answer = job->opts->fits(job->opts->ctx, n, x);
    cfxi_ir_graph_thaw(job->aliases.graph);
    *fits = answer > 0;
    return answer < 0 ? cfx_error_set(err, CFX_E_HOST, "could not tell whether the result of node "
                                      "%%%s fits into %%%s", n->name->data, x->name->data)
                      : CFX_OK;
}

static bool same_elements(const reinplace_job *job, cfx_node *a, cfx_node *b)
{
    if (a == b)
        return true;
    if (!job->opts || !job->opts->same_elements)
        return false;
    cfxi_ir_graph_freeze(job->aliases.graph);
    bool same = job->opts->same_elements(job->opts->ctx, a, b);
    cfxi_ir_graph_thaw(job->aliases.graph);
    return same;
}

/* ---- scatters that put a result back ------------------------------------------------------- */

/* Whether the arguments of the view are those of the scatter behind its `src`. */
static bool same_arguments(const cfx_node *view, const cfx_node *scatter)
{
    const size_t n = cfx_node_num_args(view);
    if (cfx_node_num_args(scatter) != n + 1 ||
        !cfx_value_equal(cfx_node_kwargs(view), cfx_node_kwargs(scatter)))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!cfx_value_equal(cfx_node_arg(view, i), cfx_node_arg(scatter, i + 1)))
            return false;
    return true;
}

static cfx_node *node_arg(const cfx_node *n, size_t i)
{
    const cfx_value v = cfx_node_arg(n, i);
    return v.kind == CFX_KIND_NODE ? v.as.node : NULL;
}

/* What the source of a scatter was before: the operand of the call, or the base of a scatter that
 * goes; NULL if it is neither, or only a part of it. */
static cfx_node *origin(const reinplace_job *job, cfx_node *n, cfx_node *x, cfx_node *src)
{
    if (src && shares(job, src, n))
        return same_elements(job, src, n) ? x : NULL;
    for (size_t i = 0; src && i < job->scatters.size; i++) {
        cfx_node *scatter = ((cfx_node **)job->scatters.data)[i];
        if (shares(job, src, scatter))
            return same_elements(job, src, scatter) ? node_arg(scatter, 0) : NULL;
    }
    return NULL;
}

/* Whether `scatter` puts the result of `n` to where `x` is a view of already. */
static bool puts_back(const reinplace_job *job, cfx_node *n, cfx_node *x, cfx_node *scatter)
{
    const cfxi_aliases *a = &job->aliases;
    cfx_node *base = node_arg(scatter, 0);
    cfx_node *from = origin(job, n, x, node_arg(scatter, 1));
    const uint32_t first = place(job, x);
    uint32_t at = first;
    if (!from)
        return false;
    do {
        cfx_node *view = job->nodes[at];
        if (view && cfx_node_operator(view) == cfxi_analysis_is_scatter(scatter) &&
            same_arguments(view, scatter) && node_arg(view, 0) &&
            same_elements(job, node_arg(view, 0), base) && same_elements(job, view, from))
            return true;
        at = a->sets[at].next;
    } while (at != first);
    return false;
}

static cfx_status collect_of(reinplace_job *job, cfx_node *n, cfx_node *member, cfx_error *err)
{
    for (const cfx_use *use = cfx_node_first_use(member); use; use = cfx_use_next(use)) {
        cfx_node *user = use->user;
        if (!cfxi_analysis_is_scatter(user) || node_arg(user, 0) != member ||
            place(job, user) <= place(job, n))
            continue;
        CFX_TRY(cfxi_analysis_nodes_push(&job->scatters, user, job->aliases.graph->allocator, err));
    }
    return CFX_OK;
}

/* Collects the later scatters into what shares memory with `x`; whether all of them can go. */
static cfx_status find_scatters(reinplace_job *job, cfx_node *n, cfx_node *x, bool *all,
                                cfx_error *err)
{
    const uint32_t first = place(job, x);
    uint32_t at = first;
    job->scatters.size = 0;
    *all = true;
    if (!cfxi_analysis_alias_set(&job->aliases, x)->scattered)
        return CFX_OK;
    do {
        if (job->nodes[at])
            CFX_TRY(collect_of(job, n, job->nodes[at], err));
        at = job->aliases.sets[at].next;
    } while (at != first);
    const size_t n_scatters = job->scatters.size;
    if (n_scatters > 1)
        qsort(job->scatters.data, n_scatters, sizeof(cfx_node *), cfxi_analysis_compare_order);
    for (job->scatters.size = 0; *all && job->scatters.size < n_scatters; job->scatters.size++)
        *all = puts_back(job, n, x, ((cfx_node **)job->scatters.data)[job->scatters.size]);
    job->scatters.size = n_scatters;
    return CFX_OK;
}

/* ---- changing a call ----------------------------------------------------------------------- */

/* The node's uses go over to `by`, whose memory it is from now on. */
static cfx_status hand_over(reinplace_job *job, cfx_node *n, cfx_node *by, cfx_error *err)
{
    CFX_TRY(cfx_node_replace_uses(n, cfx_value_node(by), NULL, NULL, NULL, err));
    cfxi_analysis_alias_union(&job->aliases, by, n);
    return CFX_OK;
}

static cfx_status erase(reinplace_job *job, cfx_node *n, cfx_error *err)
{
    job->nodes[place(job, n)] = NULL;
    return cfx_graph_erase(n->graph, n, err);
}

static cfx_status drop_scatters(reinplace_job *job, cfx_error *err)
{
    for (size_t i = 0; i < job->scatters.size; i++) {
        cfx_node *scatter = ((cfx_node **)job->scatters.data)[i];
        CFX_TRY(hand_over(job, scatter, node_arg(scatter, 0), err));
        CFX_TRY(erase(job, scatter, err));
    }
    return CFX_OK;
}

/* A call of an overload before `n`; NULL with *err set. */
static cfx_node *add_call(reinplace_job *job, cfx_node *n, cfx_target target, const cfx_value *args,
                          size_t n_args, cfx_error *err)
{
    cfx_graph *g = n->graph;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    if (cfx_graph_set_insert_point(g, (cfx_insert_point){n, false}, err) != CFX_OK)
        return NULL;
    cfx_node *made = cfxi_analysis_add_call(g, CFX_OP_CALL_FUNCTION, target, args, n_args, err);
    cfx_graph_set_insert_point(g, old, NULL);
    if (!made)
        return NULL;
    cfxi_analysis_place_like(made, n);
    return cfxi_analysis_take_place(&job->aliases, made, n, err) == CFX_OK ? made : NULL;
}

enum { MOST_ARGS = 8 };

/* %s = select(%base, ...), copy_(%s, %src) in the place of select_scatter(%base, %src, ...). */
static cfx_status add_part(reinplace_job *job, cfx_node *n, cfx_target take, cfx_target copy,
                           cfx_error *err)
{
    cfx_value args[MOST_ARGS];
    const size_t count = cfx_node_num_args(n);
    cfx_node *base = node_arg(n, 0);
    args[0] = cfx_value_node(base);
    for (size_t i = 2; i < count; i++)
        args[i - 1] = cfx_node_arg(n, i);
    cfx_node *view = add_call(job, n, take, args, count - 1, err);
    if (!view)
        return err->status;
    if (n->kwargs)
        CFX_TRY(cfx_node_set_kwargs(view, cfx_node_kwargs(n), err));
    const cfx_value pair[] = {cfx_value_node(view), cfx_node_arg(n, 1)};
    if (!add_call(job, n, copy, pair, 2, err))
        return err->status;
    CFX_TRY(hand_over(job, n, base, err));
    return erase(job, n, err);
}

/* *done is false, and nothing has changed, if the host does not know one of the overloads. */
static cfx_status write_part(reinplace_job *job, cfx_node *n, bool *done, cfx_error *err)
{
    const cfx_operator ops[] = {cfxi_analysis_is_scatter(n), CFX_OPID_copy_};
    char names[2][CFX_SPELLING_SIZE];
    cfx_value keep[2] = {cfx_value_invalid(), cfx_value_invalid()};
    cfx_target targets[2];
    cfx_error own;
    cfx_status status = CFX_OK;
    err = cfxi_base_error_or(err, &own);
    *done = cfx_node_num_args(n) >= 2 && cfx_node_num_args(n) <= MOST_ARGS;
    for (size_t i = 0; i < 2 && *done && status == CFX_OK; i++) {
        const bool spelled = cfxi_pass_overload_of(ops[i], names[i]);
        *done = spelled && cfxi_pass_find_target(n->graph, names[i], &targets[i], &keep[i], err);
        if (spelled && keep[i].kind == CFX_KIND_INVALID)
            status = err->status;
    }
    if (*done && status == CFX_OK)
        status = add_part(job, n, targets[0], targets[1], err);
    cfx_value_discard(n->graph, keep[0]);
    cfx_value_discard(n->graph, keep[1]);
    return status;
}

static cfx_status change(reinplace_job *job, cfx_node *n, cfx_node *x, cfx_error *err)
{
    bool done = false;
    if (cfxi_analysis_is_scatter(n)) {
        CFX_TRY(write_part(job, n, &done, err));
    } else {
        CFX_TRY(cfxi_pass_respell(n, cfx_operator_in_place(cfx_node_operator(n)), &done, err));
        if (done)
            CFX_TRY(hand_over(job, n, x, err));
    }
    job->changed = job->changed || done;
    return done ? drop_scatters(job, err) : CFX_OK;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Whether another operand shares memory with `x` so that writing could disturb reading. An operator
 * that goes element by element has read each when it writes it; but as torch.fx, which trusts no
 * kernel that far, leave the same node given twice alone. */
static bool is_disturbed(const reinplace_job *job, const cfx_node *n, cfx_node *x)
{
    const bool elementwise = cfx_operator_flags(cfx_node_operator(n)) & CFX_OPERATOR_ELEMENTWISE;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_use *use = &n->inputs[i];
        if (use->def == x ? use->count > 1
                          : shares(job, use->def, x) &&
                                !(elementwise && same_elements(job, use->def, x)))
            return true;
    }
    return false;
}

static cfx_status visit(reinplace_job *job, cfx_node *n, cfx_error *err)
{
    const cfx_operator op = cfx_node_operator(n);
    cfx_node *x = op ? node_arg(n, 0) : NULL;
    bool scatter = cfxi_analysis_is_scatter(n) != CFX_OPID_NONE;
    bool good = false;
    if (!x || (!scatter && (!cfx_operator_in_place(op) || cfxi_analysis_is_view(n))) ||
        cfxi_analysis_arguments_write(n) || cfxi_analysis_alias_set(&job->aliases, x)->outside ||
        cfxi_analysis_alias_set(&job->aliases, x)->last > 1 + place(job, n) ||
        is_disturbed(job, n, x))
        return CFX_OK;
    if (scatter && strncmp(n->callee->ref->name->data, "torch.ops.", 10) != 0)
        return CFX_OK;  /* made for graphs of overloads, where all results are tensors */
    CFX_TRY(ask(job, n, x, &good, err));
    if (good)
        CFX_TRY(find_scatters(job, n, x, &good, err));
    return good ? change(job, n, x, err) : CFX_OK;
}

static cfx_status reinplace(cfx_graph *g, reinplace_job *job, cfx_error *err)
{
    const size_t n = g->size;
    size_t at = 0;
    cfx_iter hold;  /* what is erased stays what it was: it has a place */
    cfx_iter_begin(&hold, g, false);
    cfx_status status =
        cfxi_analysis_aliases_begin(&job->aliases, g, job->aliases.model, CFXI_USES_REAL, err);
    job->nodes = cfxi_base_alloc(g->allocator, n * sizeof *job->nodes);
    if (!job->nodes)
        status = cfxi_base_nomem(err);
    for (cfx_node *node = g->root.next; node != &g->root && status == CFX_OK; node = node->next) {
        job->nodes[at++] = node;
        status = cfxi_analysis_alias_join(&job->aliases, node, err);
    }
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        if (job->nodes[i])
            status = visit(job, job->nodes[i], err);
    cfxi_base_free(g->allocator, job->nodes, n * sizeof *job->nodes);
    cfxi_base_vec_free(&job->scatters, sizeof(cfx_node *), g->allocator);
    cfxi_analysis_aliases_end(&job->aliases);
    cfx_iter_end(&hold);
    return status;
}

static cfx_status reinplace_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    if (g->size > 0)
        CFX_TRY(reinplace(g, ctx, err));
    return cfxi_analysis_each_region(g, reinplace_all, ctx, err);
}

cfx_status cfxi_pass_reinplace(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                               bool *changed, cfx_error *err)
{
    const cfx_reinplace_options *o = opts;
    cfxi_effect_model model = {.modules = modules, .strict = o && o->strict};
    reinplace_job job = {.aliases.model = &model, .opts = o};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = reinplace_all(g, &job, err);
    cfxi_analysis_model_end(&model);
    if (changed)
        *changed = job.changed;
    return status;
}
