/* normalize.c - spells calls of the operators in the table in one way.
 *
 *     before                                           after
 *     %x = placeholder[target=x]()                     %x = placeholder[target=x]()
 *     %a = call_function[target=torch.exp](%x)         %a = call_function[target=torch.exp](%x)
 *     %b = call_method[target=add](%a, other=%x)       %b = call_function[target=torch.add](%a, %x)
 *     %c = call_function[target=operator.mul](%b, 2)   %c = call_function[target=torch.mul](%b, 2)
 *     output(%c)                                       output(%c)
 *
 * Needs: nothing.
 * Keeps: names, order, users and locations; calls whose arguments do not fit the row of the table.
 *
 * Arguments: those that can be given by position are, up to the first that is left out; the others
 * follow by keyword in the order of the parameters. Where the spelling has the row's defaults, an
 * argument at the end that is one of them goes. Operators: methods, overloads and signs become the
 * first function of torch that the row has, if their first argument is known to be a tensor (see
 * annotate.c). Options ask for one of both only.
 *
 * Linear in nodes and edges.
 */
#include "respell_impl.h"
#include "analysis/call_arguments_impl.h"
#include "pass_impl.h"

typedef struct normalize_job {
    const cfx_module_tree *modules;
    cfx_normalize_options opts;
    bool changed;
} normalize_job;

/* ---- defaults ------------------------------------------------------------------------------ */

/* Whether `v` is exactly what the schema writes as the default. */
static bool is_default(const cfx_node *n, const cfxi_binding *b, size_t i)
{
    cfx_schema_param param;
    char digits[CFXI_NUMBER_SIZE];
    const cfx_value v = b->values[i];
    if (b->own || !cfx_operator_param(cfx_node_operator(n), b->params[i].param, &param) ||
        param.value.size == 0)
        return false;
    switch (v.kind) {
    case CFX_KIND_NONE:
        return cfxi_ops_text_is(param.value, "None", 4);
    case CFX_KIND_BOOL:
        return cfxi_ops_text_is(param.value, v.as.b ? "True" : "False", v.as.b ? 4 : 5);
    case CFX_KIND_INT:
        return cfxi_ops_text_is(param.value, digits, cfxi_base_format_int(v.as.i, digits));
    default:
        return false;
    }
}

/* ---- arguments ----------------------------------------------------------------------------- */

static bool is_given(const cfxi_binding *b, size_t i)
{
    return b->values[i].kind != CFX_KIND_INVALID;
}

/* Takes off defaults: keywords wherever they are, positions at the end. */
static void drop_defaults(const cfx_node *n, cfxi_binding *b)
{
    bool end = true;
    for (size_t i = b->n; i-- > 1;) {
        if (!is_given(b, i))
            continue;
        if (is_default(n, b, i) && (b->params[i].keyword_only || end))
            b->values[i] = cfx_value_invalid();
        else
            end = end && b->params[i].keyword_only;
    }
}

static cfx_status set_arguments(cfx_node *n, const cfxi_binding *b, bool *changed, cfx_error *err)
{
    cfx_graph *g = n->graph;
    cfx_value rest[2 * CFXI_MOST_PARAMS];
    size_t positions = 0;
    size_t k = 0;
    while (positions < b->n && is_given(b, positions) && !b->params[positions].keyword_only)
        positions++;
    for (size_t i = positions; i < b->n; i++)
        if (is_given(b, i)) {
            rest[k++] = cfx_value_str(g, b->params[i].name.text, b->params[i].name.size, err);
            rest[k++] = b->values[i];
        }
    cfx_value args = cfx_value_tuple(g, b->values, positions, err);
    cfx_value kwargs = cfx_value_seq(g, CFX_KIND_DICT, rest, k, err);
    cfx_status status = CFX_E_NOMEM;
    if (args.kind != CFX_KIND_INVALID && kwargs.kind != CFX_KIND_INVALID) {
        bool same = cfx_value_equal(args, cfx_node_args(n)) &&
                    cfx_value_equal(kwargs, cfx_node_kwargs(n));
        status = same ? CFX_OK : cfx_node_set_args_kwargs(n, args, kwargs, err);
        *changed = *changed || (!same && status == CFX_OK);
        if (!same && status == CFX_OK)
            return CFX_OK;
    } else {
        for (size_t i = 0; i < k; i += 2)
            cfx_value_discard(g, rest[i]);
    }
    cfx_value_discard(g, args);
    cfx_value_discard(g, kwargs);
    return status;
}

static cfx_status normalize_args(normalize_job *job, cfx_node *n, cfx_error *err)
{
    cfxi_binding b;
    if (!cfxi_analysis_bind(n, &b) || !is_given(&b, 0))
        return CFX_OK;
    drop_defaults(n, &b);
    return set_arguments(n, &b, &job->changed, err);
}

/* ---- operators ----------------------------------------------------------------------------- */

/* The first function of torch itself in the row; false if there is none, or `n` calls it. */
static bool canonical(const cfx_node *n, char name[CFX_SPELLING_SIZE])
{
    cfx_spelling kind;
    const cfx_str *now = n->op == CFX_OP_CALL_FUNCTION ? n->callee->ref->name : NULL;
    for (size_t i = 0; cfx_operator_spelling(cfx_node_operator(n), i, name, &kind); i++)
        if (kind == CFX_SPELLING_FUNCTION && strncmp(name, "torch.", 6) == 0 &&
            strchr(name + 6, '.') == NULL && !cfxi_ops_spelling_has_params(name))
            return !now || strcmp(now->data, name) != 0;
    return false;
}

static cfx_status normalize_operator(normalize_job *job, const cfxi_tensors *t, cfx_node *n,
                                     cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    cfx_target target;
    cfx_value keep;
    cfx_error own;
    cfxi_binding b;
    err = cfxi_base_error_or(err, &own);
    const cfx_str *now = n->op == CFX_OP_CALL_FUNCTION ? n->callee->ref->name : NULL;
    if (!cfx_node_operator(n) || (now && strncmp(now->data, "torch.nn.", 9) == 0) ||
        !cfxi_analysis_is_tensor(t, cfx_node_arg(n, 0)) || !canonical(n, name) ||
        !cfxi_analysis_bind(n, &b) || b.own)
        return CFX_OK;
    bool known = cfxi_pass_find_target(n->graph, name, &target, &keep, err);
    cfx_status status = keep.kind == CFX_KIND_INVALID ? err->status : CFX_OK;
    if (known && n->op != CFX_OP_CALL_FUNCTION)
        status = cfx_node_set_op(n, CFX_OP_CALL_FUNCTION, err);
    if (known && status == CFX_OK)
        status = cfx_node_set_target(n, target, err);
    job->changed = job->changed || (known && status == CFX_OK);
    cfx_value_discard(n->graph, keep);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status normalize(cfx_graph *g, void *ctx, cfx_error *err)
{
    normalize_job *job = ctx;
    cfxi_tensors tensors;
    cfx_iter it;  /* the host is asked for functions, and may run any code */
    cfx_status status = cfxi_analysis_tensors_begin(&tensors, g, job->modules,
                                                    job->opts.inputs_are_tensors, err);
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        if (n->op != CFX_OP_CALL_FUNCTION && n->op != CFX_OP_CALL_METHOD)
            continue;
        if (!job->opts.args_only)
            status = normalize_operator(job, &tensors, n, err);
        if (status == CFX_OK && !job->opts.operators_only &&
            cfxi_analysis_is_torch_call(&tensors, n))
            status = normalize_args(job, n, err);
    }
    cfx_iter_end(&it);
    cfxi_analysis_tensors_end(&tensors);
    return status == CFX_OK ? cfxi_analysis_each_region(g, normalize, ctx, err) : status;
}

cfx_status cfxi_pass_normalize(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                               bool *changed, cfx_error *err)
{
    normalize_job job = {.modules = modules};
    if (opts)
        job.opts = *(const cfx_normalize_options *)opts;
    cfx_status status = normalize(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
