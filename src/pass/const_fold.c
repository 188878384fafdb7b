/* const_fold.c - computes now what depends on literals and attributes only.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %n = call_function[target=operator.mul](2, 3)   %v = call_method[target=view](%x, 6)
 *     %v = call_method[target=view](%x, %n)           %_folded_0 = get_attr[target=_folded_0]()
 *     %w = get_attr[target=w]()                       %y = call_method[target=add](%v, %_folded_0)
 *     %s = call_function[target=torch.exp](%w)        output(%y)
 *     %y = call_method[target=add](%v, %s)
 *     output(%y)
 *
 * Needs: nodes in topological order; modules for all but numbers.
 * Keeps: names, order and locations of remaining nodes; every effect. A value that was folded no
 * longer follows its attributes: for inference.
 *
 * All is computed before anything is changed. Attributes that nobody reads any more stay in the
 * module, but their get_attr goes. Linear in nodes and edges. Branches and loops whose way is known
 * then give way to what they come down to (resolve.c), which is looked at again. Regions are done
 * likewise, and all of it again if any gave way, since less may write then.
 */
#include "analysis/alias_impl.h"
#include "analysis/call_arguments_impl.h"
#include "resolve_impl.h"
#include "analysis/module_users_impl.h"
#include "pass_impl.h"

#include <stdio.h>

typedef struct fold_job {
    cfx_graph *g;
    const cfx_module_tree *modules;
    cfxi_effect_model *model;
    const cfxi_survey *survey;  /* of the graph and its regions, if there are modules */
    cfxi_aliases aliases;    /* likewise, of this graph */
    cfx_node_map *values;    /* of nodes that are known */
    cfxi_vec folded;         /* of cfx_node *: calls that have been computed, in their order */
    cfxi_vec readers;        /* of cfx_node *: get_attr nodes that they read */
    cfxi_resolver *resolver;
    size_t next;             /* number of the next attribute to be tried */
    bool changed;
    cfx_error *err;
} fold_job;

/* ---- values -------------------------------------------------------------------------------- */

/* Keeps a floating value until the end of the job, and its node on a list. */
static cfx_status note(fold_job *job, cfxi_vec *nodes, cfx_node *n, cfx_value v)
{
    if (!cfxi_base_vec_reserve(nodes, 1, sizeof n, job->g->allocator) ||
        cfx_node_map_set(job->values, n, v, NULL) != CFX_OK) {
        cfx_value_discard(job->g, v);
        return cfxi_base_nomem(job->err);
    }
    cfx_value_retain(v);
    ((cfx_node **)nodes->data)[nodes->size++] = n;
    return CFX_OK;
}

/* The value of an argument: a literal, or what is known of a node; INVALID if nothing is. */
static cfx_value value_of(const fold_job *job, cfx_value arg)
{
    return arg.kind == CFX_KIND_NODE ? cfx_node_map_get(job->values, arg.as.node) : arg;
}

static cfx_status is_node(void *ctx, cfx_node *n)
{
    (void)ctx;
    (void)n;
    return CFX_E_HOST;  /* any one will do */
}

enum { MAX_ARGS = 16 };

/* The values of the arguments; false if one is not known, or a container with nodes. */
static bool take_args(const fold_job *job, const cfx_node *n, cfx_value *args, size_t *count)
{
    *count = cfx_node_num_args(n);
    if (n->kwargs || *count == 0 || *count > MAX_ARGS)
        return false;
    for (size_t i = 0; i < *count; i++) {
        args[i] = value_of(job, cfx_node_arg(n, i));
        bool container = args[i].kind != CFX_KIND_HOST &&
                         cfx_value_each_node(args[i], is_node, NULL) != CFX_OK;
        if (args[i].kind == CFX_KIND_INVALID || args[i].kind == CFX_KIND_GRAPH || container)
            return false;
    }
    return true;
}

/* ---- computing ----------------------------------------------------------------------------- */

static cfx_status compute_scalar(fold_job *job, cfx_node *n, const cfx_value *args, size_t count,
                                 cfx_value *v)
{
    cfx_error why = {.status = CFX_OK};
    const char *name = cfx_node_target(n, NULL, &why);
    if (name)
        *v = cfxi_analysis_scalar_call(name, args, count);
    else if (why.status != CFX_E_KEY) {  /* a function without a name is none of them */
        if (job->err)
            *job->err = why;
        return why.status;
    }
    return CFX_OK;
}

/* Tensors are objects of the host. Without any, operator.add is not the operator of the table. */
static bool has_object(const cfx_value *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (args[i].kind == CFX_KIND_HOST)
            return true;
    return false;
}

/* Whether the arguments are those of the row, in its order: x.reshape(2, 3) has no list. */
static bool fits_row(const cfx_node *n, size_t count)
{
    cfxi_binding b;
    if (!cfxi_analysis_bind(n, &b))
        return false;
    for (size_t i = 0; i < count; i++)
        if (b.params[i].param != i)
            return false;
    return true;
}

static cfx_status compute_operator(fold_job *job, cfx_node *n, const cfx_value *args,
                                   size_t count, cfx_value *v)
{
    cfx_error why = {.status = CFX_OK};
    cfx_effect effect;
    cfx_operator op = job->modules ? cfx_node_operator(n) : CFX_OPID_NONE;
    if (op == CFX_OPID_NONE || cfx_operator_regions(op) > 0 || !has_object(args, count) ||
        !fits_row(n, count))
        return CFX_OK;
    CFX_TRY(cfxi_analysis_effect(job->model, n, &effect, job->err));
    if (effect != CFX_EFFECT_NONE)
        return CFX_OK;
    *v = job->modules->call(job->modules->ctx, job->g, op, args, count, &why);
    if (v->kind != CFX_KIND_INVALID || why.status == CFX_E_UNSUPPORTED)
        return CFX_OK;
    return cfx_error_set(job->err, why.status, "%s (while folding node %%%s)", why.message,
                         n->name->data);
}

static bool is_written(const fold_job *job, const cfx_node *n)
{
    return job->modules && cfxi_analysis_alias_set(&job->aliases, n)->written;
}

static cfx_status compute(fold_job *job, cfx_node *n)
{
    cfx_value args[MAX_ARGS];
    size_t count;
    cfx_value v = cfx_value_invalid();
    if (is_written(job, n) || !take_args(job, n, args, &count))
        return CFX_OK;
    if (n->op == CFX_OP_CALL_FUNCTION)
        CFX_TRY(compute_scalar(job, n, args, count, &v));
    if (v.kind == CFX_KIND_INVALID)
        CFX_TRY(compute_operator(job, n, args, count, &v));
    if (v.kind == CFX_KIND_INVALID)
        return CFX_OK;
    return note(job, &job->folded, n, v);
}

/* What a call of this graph or another writes to is not the same before and after. The survey has
 * what others do to the object; aliases, what this graph does to whatever shares its memory. */
static cfx_status read_attr(fold_job *job, cfx_node *n)
{
    cfx_value v;
    const char *path = n->callee->ref->name->data;
    if (!job->modules || is_written(job, n) || job->survey->wrote_any ||
        cfxi_analysis_survey_find(job->survey, path).written)
        return CFX_OK;
    CFX_TRY(cfxi_ops_module_attr(job->modules, job->g, path, "", &v, job->err));
    if (v.kind == CFX_KIND_INVALID)  /* what is missing is found out when it is needed */
        return CFX_OK;
    return note(job, &job->readers, n, v);
}

static cfx_status note_writes(fold_job *job)
{
    CFX_TRY(
        cfxi_analysis_aliases_begin(&job->aliases, job->g, job->model, CFXI_USES_ALL, job->err));
    return cfxi_analysis_aliases_note_writes(&job->aliases, job->err);
}

static cfx_status compute_all(fold_job *job)
{
    cfx_status status = job->modules && job->g->size > 0 ? note_writes(job) : CFX_OK;
    for (cfx_node *n = job->g->root.next; status == CFX_OK && n != &job->g->root; n = n->next) {
        if (n->op == CFX_OP_GET_ATTR)
            status = read_attr(job, n);
        else if (n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD)
            status = compute(job, n);
    }
    return status;
}

/* ---- replacing ----------------------------------------------------------------------------- */

static bool is_known(const fold_job *job, const cfx_node *n)
{
    return cfx_node_map_get(job->values, n).kind != CFX_KIND_INVALID;
}

static bool is_read_by_others(const fold_job *job, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!is_known(job, use->user))
            return true;
    return false;
}

/* Stores a value as a new attribute, and reads it where `n` stands. */
static cfx_status make_reader(fold_job *job, cfx_node *n, cfx_value v, cfx_value *reader)
{
    const cfx_module_tree *m = job->modules;
    char path[40];
    do
        snprintf(path, sizeof path, "_folded_%zu", job->next++);
    while (m->identity(m->ctx, path) != NULL);
    CFX_TRY(m->set(m->ctx, job->g, path, v, job->err));
    cfx_node *made = cfxi_analysis_add_reader(n, path, job->err);
    if (!made)
        return CFX_E_NOMEM;
    *reader = cfx_value_node(made);
    return CFX_OK;
}

static cfx_status replace(fold_job *job, cfx_node *n)
{
    cfx_value v = cfx_node_map_get(job->values, n);
    if (!is_read_by_others(job, n))
        return CFX_OK;
    if (v.kind == CFX_KIND_HOST)
        CFX_TRY(make_reader(job, n, v, &v));
    return cfx_node_replace_uses(n, v, NULL, NULL, NULL, job->err);
}

static cfx_status erase_unused(fold_job *job, const cfxi_vec *nodes)
{
    for (size_t i = nodes->size; i > 0; i--) {
        cfx_node *n = ((cfx_node **)nodes->data)[i - 1];
        if (n->n_users == 0)
            CFX_TRY(cfx_graph_erase(job->g, n, job->err));
    }
    return CFX_OK;
}

static cfx_status replace_all(fold_job *job)
{
    cfx_iter it;  /* keeps erased nodes readable: hooks may run */
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, false);
    job->changed = job->changed || job->folded.size > 0;
    for (size_t i = 0; status == CFX_OK && i < job->folded.size; i++)
        status = replace(job, ((cfx_node **)job->folded.data)[i]);
    if (status == CFX_OK)
        status = erase_unused(job, &job->folded);
    if (status == CFX_OK && job->folded.size > 0)
        status = erase_unused(job, &job->readers);
    cfx_iter_end(&it);
    return status;
}

static void release_values(const fold_job *job, const cfxi_vec *nodes)
{
    for (size_t i = 0; i < nodes->size; i++)
        cfx_value_release(job->g, cfx_node_map_get(job->values, ((cfx_node **)nodes->data)[i]));
}

static cfx_status fold_once(cfx_graph *g, fold_job *all, cfx_error *err)
{
    fold_job job = {.g = g, .modules = all->modules, .model = all->model, .survey = all->survey,
                    .next = all->next, .err = err};
    job.values = cfx_node_map_new(g->allocator, err);
    if (!job.values)
        return CFX_E_NOMEM;
    cfxi_ir_graph_freeze(g);
    cfx_status status = compute_all(&job);
    cfxi_ir_graph_thaw(g);
    if (status == CFX_OK)
        status = replace_all(&job);
    if (job.aliases.graph)
        cfxi_analysis_aliases_end(&job.aliases);
    release_values(&job, &job.folded);
    release_values(&job, &job.readers);
    cfx_node_map_free(job.values);
    cfxi_base_vec_free(&job.folded, sizeof(cfx_node *), g->allocator);
    cfxi_base_vec_free(&job.readers, sizeof(cfx_node *), g->allocator);
    all->changed = all->changed || job.changed;
    all->next = job.next;
    return status;
}

static cfx_status fold(cfx_graph *g, void *ctx, cfx_error *err)
{
    fold_job *all = ctx;
    do {
        all->resolver->spliced = false;
        CFX_TRY(fold_once(g, all, err));
        CFX_TRY(cfxi_pass_resolve(all->resolver, g, err));
    } while (all->resolver->spliced);
    return cfxi_analysis_each_region(g, fold, all, err);
}

cfx_status cfxi_pass_const_fold(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                bool *changed, cfx_error *err)
{
    const cfx_const_fold_options *o = opts;
    cfxi_survey survey = {0};
    modules = cfxi_analysis_modules_or_null(modules);
    cfxi_effect_model model = {.modules = modules, .strict = o && o->strict};
    cfxi_resolver resolver = {.model = &model, .max_count = 1,
                              .truths = cfx_node_map_new(g->allocator, err)};
    fold_job all = {.modules = modules, .model = &model, .survey = &survey, .resolver = &resolver};
    cfx_status status = resolver.truths ? CFX_OK : CFX_E_NOMEM;
    if (status == CFX_OK && modules)
        status = cfxi_analysis_survey_begin(&survey, g, &model, err);
    do {
        resolver.any = false;
        if (status == CFX_OK)
            status = fold(g, &all, err);
    } while (resolver.any && status == CFX_OK);
    cfxi_analysis_survey_end(&survey);
    cfxi_analysis_model_end(&model);
    cfx_node_map_free(resolver.truths);
    if (changed)
        *changed = all.changed || resolver.changed;
    return status;
}
