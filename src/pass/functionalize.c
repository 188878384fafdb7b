/* functionalize.c - replaces in-place calls by calls that return something new.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %y = call_function[target=torch.exp](%x)        %y = call_function[target=torch.exp](%x)
 *     %relu_ = call_method[target=relu_](%y)          %relu_ = call_method[target=relu](%y)
 *     %neg = call_method[target=neg](%y)              %neg = call_method[target=neg](%relu_)
 *     output(%neg)                                    output(%neg)
 *
 * Needs: a graph that cfx_graph_lint accepts.
 * Keeps: names, order and locations; what cannot be proved to be private: a call stays as it is if
 * it may write to an input, an attribute or anything that an unknown call has seen, or if a view of
 * what it writes to is used later. The option `left` is told of each and why.
 *
 * An in-place call gives its result the dtype of what it writes to, the other may promote: so after
 * a call with further operands that may be tensors a type_as follows, unless `same_dtypes` promises
 * that all are of one dtype.
 *
 * One walk: each node is given the latest versions of what it uses, then it is looked at. Linear in
 * nodes and edges.
 */
#include "ops/ops_impl.h"
#include "respell_impl.h"
#include "pass_impl.h"

typedef struct function_job {
    cfxi_aliases aliases;
    const cfx_functionalize_options *opts;
    cfx_node **version;  /* by place of an object: its latest value, or NULL */
    bool changed;
} function_job;

static cfx_node *latest(const function_job *job, cfx_node *n)
{
    cfx_node *v =
        job->version[job->aliases.sets[cfxi_analysis_alias_place(&job->aliases, n)].object];
    return v ? v : n;
}

static cfx_value map_latest(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)err;
    return cfx_value_node(latest(ctx, n));
}

static cfx_status update_args(function_job *job, cfx_node *n, cfx_error *err)
{
    cfx_graph *g = n->graph;
    bool any = false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        any = any || latest(job, n->inputs[i].def) != n->inputs[i].def;
    if (!any)
        return CFX_OK;
    cfx_value args = cfx_value_map(g, g, cfx_node_args(n), map_latest, job, err);
    cfx_value kwargs = args.kind == CFX_KIND_INVALID
                           ? args : cfx_value_map(g, g, cfx_node_kwargs(n), map_latest, job, err);
    cfx_status status = kwargs.kind == CFX_KIND_INVALID
                            ? CFX_E_NOMEM : cfx_node_set_args_kwargs(n, args, kwargs, err);
    if (status != CFX_OK) {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
    }
    return status;
}

/* ---- one call ------------------------------------------------------------------------------ */

/* Why the call must go on writing to `x`; NULL if it need not. */
static const char *reason(const function_job *job, const cfx_node *n, const cfx_node *x)
{
    const cfxi_aliases *a = &job->aliases;
    if (cfxi_analysis_alias_set(a, x)->outside)
        return "the tensor it writes to may be visible outside the graph";
    if (cfxi_analysis_alias_last_other(a, x) > 1 + cfxi_analysis_alias_place(a, n))
        return "an alias of the tensor it writes to is used later";
    return NULL;
}

/* Where a function of torch.nn.functional takes its `inplace`; SIZE_MAX if it has none. */
static size_t flag_place(const cfx_node *n)
{
    cfxi_spelled_param param;
    for (size_t i = 0; cfxi_ops_node_spelled_param(n, i, &param, NULL); i++)
        if (cfxi_ops_text_is(param.name, "inplace", 7))
            return i;
    return SIZE_MAX;
}

/* The keyword arguments without `inplace`; INVALID with *err set. */
static cfx_value other_kwargs(const cfx_node *n, cfx_error *err)
{
    cfx_graph *g = n->graph;
    size_t size, k = 0;
    const cfx_value *items = cfx_value_items(cfx_node_kwargs(n), &size);
    cfx_value *kept = cfxi_base_alloc(g->allocator, size * sizeof *kept);
    for (size_t i = 0; kept && i < size; i += 2) {
        if (strcmp(cfx_value_text(items[i], NULL), "inplace") == 0)
            continue;
        kept[k++] = items[i];
        kept[k++] = items[i + 1];
    }
    if (!kept)
        cfxi_base_nomem(err);
    cfx_value dict = kept ? cfx_value_seq(g, CFX_KIND_DICT, kept, k, err) : cfx_value_invalid();
    cfxi_base_free(g->allocator, kept, size * sizeof *kept);
    return dict;
}

/* Takes `inplace` off the arguments; where others follow it, turns it off. */
static cfx_status drop_flag(cfx_node *n, cfx_error *err)
{
    cfx_graph *g = n->graph;
    const size_t at = flag_place(n), args = cfx_node_num_args(n);
    if (at < args && at + 1 < args)
        return cfx_node_set_arg(n, at, cfx_value_bool(false), err);
    cfx_value tuple = cfx_value_tuple(g, cfx_value_items(cfx_node_args(n), NULL),
                                      at < args ? at : args, err);
    cfx_value dict = other_kwargs(n, err);
    cfx_status status = CFX_E_NOMEM;
    if (tuple.kind != CFX_KIND_INVALID && dict.kind != CFX_KIND_INVALID)
        status = cfx_node_set_args_kwargs(n, tuple, dict, err);
    if (status != CFX_OK) {
        cfx_value_discard(g, tuple);
        cfx_value_discard(g, dict);
    }
    return status;
}

static bool may_promote(const function_job *job, const cfx_node *n)
{
    return !(job->opts && job->opts->same_dtypes) && n->n_inputs > 1;
}

/* %t = type_as(%n, %x) behind `n`; it has the place of `n`. */
static cfx_node *add_cast(function_job *job, cfx_node *n, cfx_node *x, cfx_error *err)
{
    cfx_graph *g = n->graph;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    const cfx_value args[] = {cfx_value_node(n), cfx_value_node(x)};
    if (cfx_graph_set_insert_point(g, (cfx_insert_point){n, true}, err) != CFX_OK)
        return NULL;
    cfx_node *t = cfxi_pass_is_lowered(n)
                      ? cfxi_analysis_add_function(g, "cfx.ops.type_as", args, 2, err)
                      : cfx_graph_call(g, CFX_OP_CALL_METHOD, "type_as", args, 2, NULL, 0, err);
    cfx_graph_set_insert_point(g, old, NULL);
    if (!t || cfxi_analysis_take_place(&job->aliases, t, n, err) != CFX_OK)
        return NULL;
    cfxi_analysis_place_like(t, n);
    return t;
}

static cfx_status tell_left(const function_job *job, cfx_node *n, const char *why, cfx_error *err)
{
    if (!job->opts || !job->opts->left)
        return CFX_OK;
    cfxi_ir_graph_freeze(n->graph);
    cfx_status status = job->opts->left(job->opts->ctx, n, why, err);
    cfxi_ir_graph_thaw(n->graph);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(err, status);
}

static cfx_status convert(function_job *job, cfx_node *n, cfx_operator op, cfx_error *err)
{
    bool done = true;
    cfx_node *x = n->args->items[0].as.node;
    const uint32_t object = job->aliases.sets[cfxi_analysis_alias_place(&job->aliases, n)].object;
    if (cfx_node_operator(n) == op)
        CFX_TRY(drop_flag(n, err));
    else
        CFX_TRY(cfxi_pass_respell(n, op, &done, err));
    if (!done)
        return tell_left(job, n, "the operator has no out-of-place form", err);
    job->changed = true;
    cfx_node *value = may_promote(job, n) ? add_cast(job, n, x, err) : n;
    if (!value)
        return CFX_E_NOMEM;
    job->version[object] = value;
    return CFX_OK;
}

static cfx_status visit(function_job *job, cfx_node *n, cfx_error *err)
{
    cfx_operator op;
    const cfx_node *x = cfxi_analysis_written(n, &op);
    const char *why = x ? reason(job, n, x) : NULL;
    CFX_TRY(cfxi_analysis_alias_join(&job->aliases, n, err));
    CFX_TRY(update_args(job, n, err));
    if (x && !why)
        return convert(job, n, op, err);
    return x ? tell_left(job, n, why, err) : CFX_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status functionalize(cfx_graph *g, function_job *job, cfx_error *err)
{
    const size_t size = (g->size + 1) * sizeof *job->version;
    cfx_status status =
        cfxi_analysis_aliases_begin(&job->aliases, g, job->aliases.model, CFXI_USES_ALL, err);
    job->version = cfxi_base_alloc(g->allocator, size);
    if (!job->version)
        status = cfxi_base_nomem(err);
    else
        memset(job->version, 0, size);
    cfx_iter pin;  /* what a hook erases stays readable */
    cfx_iter_begin(&pin, g, false);
    for (cfx_node *n = g->root.next, *next; n != &g->root && status == CFX_OK; n = next) {
        next = n->next;  /* behind a cast that may be made */
        if (!cfxi_ir_node_erased(n))
            status = visit(job, n, err);
    }
    cfx_iter_end(&pin);
    cfxi_base_free(g->allocator, job->version, size);
    cfxi_analysis_aliases_end(&job->aliases);
    return status;
}

static cfx_status functionalize_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    if (g->size > 0)
        CFX_TRY(functionalize(g, ctx, err));
    return cfxi_analysis_each_region(g, functionalize_all, ctx, err);
}

cfx_status cfxi_pass_functionalize(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                   bool *changed, cfx_error *err)
{
    const cfx_functionalize_options *o = opts;
    cfxi_effect_model model = {.modules = modules, .strict = o && o->strict};
    function_job job = {.aliases.model = &model, .opts = o};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = functionalize_all(g, &job, err);
    cfxi_analysis_model_end(&model);
    if (changed)
        *changed = job.changed;
    return status;
}
