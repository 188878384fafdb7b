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
 * longer follows its attributes: for inference. Tensors that are new at each call stay so if they
 * are written to, or if the graph returns them.
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
    cfx_graph *root;
    cfxi_survey *survey;     /* of the graph and its regions, begun when an attribute is read */
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

enum { MAX_ARGS = 16 };

/* Numbers for the arguments of a function of `operator`; false if one is not known. */
static bool take_numbers(const fold_job *job, const cfx_node *n, cfx_value *args, size_t *count)
{
    *count = cfx_node_num_args(n);
    if (n->kwargs || *count == 0 || *count > MAX_ARGS)
        return false;
    for (size_t i = 0; i < *count; i++) {
        args[i] = value_of(job, cfx_node_arg(n, i));
        if (args[i].kind == CFX_KIND_INVALID)
            return false;
    }
    return true;
}

static bool are_inputs_known(const fold_job *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (cfx_node_map_get(job->values, n->inputs[i].def).kind == CFX_KIND_INVALID)
            return false;
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

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Tensors are objects of the host. Without any, operator.add is not the operator of the table; but
 * torch.zeros(2) is. */
static bool is_of_table(const fold_job *job, const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    if (n->op == CFX_OP_CALL_METHOD)
        return value_of(job, cfx_node_arg(n, 0)).kind == CFX_KIND_HOST;
    if (name && (has_prefix(name->data, "torch.") || has_prefix(name->data, "cfx.ops.")))
        return true;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (cfx_node_map_get(job->values, n->inputs[i].def).kind == CFX_KIND_HOST)
            return true;
    return false;
}

/* What is in them is not known. */
static bool is_uninitialized(cfx_operator op)
{
    const char *name = cfx_operator_name(op);
    return strncmp(name, "empty", 5) == 0 || strncmp(name, "new_empty", 9) == 0;
}

static cfx_value known_value(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)err;
    return cfx_node_map_get(((const fold_job *)ctx)->values, n);
}

/* x.reshape(2, 3) has its list in a row. Takes a copy of the values; false if a number is in the
 * place of a list and others than numbers follow it. */
static bool pack_list(const fold_job *job, const cfx_node *n, cfx_operator op, cfx_value *args,
                      size_t *count)
{
    cfx_schema_param param;
    const size_t last = *count;
    for (size_t i = 0; i < last; i++) {
        if (args[i].kind != CFX_KIND_INT || !cfx_operator_param(op, i, &param) ||
            strcmp(param.type, "int[]") != 0)
            continue;
        for (size_t k = i; k < last; k++)
            if (args[k].kind != CFX_KIND_INT)
                return false;
        args[i] = cfx_value_tuple(job->g, args + i, last - i, job->err);
        *count = i + 1;
        return args[i].kind != CFX_KIND_INVALID && (n->op == CFX_OP_CALL_METHOD || i == 0);
    }
    return true;
}

/* The arguments in the order of the row, as far as they are given; false if they cannot be put so:
 * one is missing in between that is not None. */
static bool take_row(const fold_job *job, const cfx_node *n, cfx_operator op, cfx_value *args,
                     size_t *count)
{
    cfxi_binding b;
    cfx_schema_param param;
    *count = cfx_node_num_args(n);
    if (!n->kwargs && *count > 0 && *count <= MAX_ARGS) {
        for (size_t i = 0; i < *count; i++)
            args[i] = value_of(job, n->args->items[i]);
        const size_t loose = *count;
        if (!pack_list(job, n, op, args, count))
            return false;
        if (*count < loose)
            return true;
    }
    *count = 0;
    if (!cfxi_analysis_bind(n, &b))
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (b.values[i].kind == CFX_KIND_INVALID)
            continue;
        const size_t at = b.params[i].param;
        if (at >= MAX_ARGS)
            return false;
        for (; *count <= at; (*count)++)
            args[*count] = cfx_value_invalid();
        args[at] = value_of(job, b.values[i]);
        if (!cfxi_ir_is_plain(args[at]) && args[at].kind != CFX_KIND_HOST)
            return false;  /* a container with nodes */
    }
    for (size_t i = 0; i < *count; i++) {
        const bool none = args[i].kind == CFX_KIND_INVALID;
        if (none && !(cfx_operator_param(op, i, &param) &&
                      cfxi_ops_text_is_word(param.value, "None")))
            return false;
        args[i] = none ? cfx_value_none() : args[i];
    }
    return true;
}

static cfx_status call_row(fold_job *job, cfx_node *n, cfx_operator op, cfx_value *v,
                           cfx_error *why)
{
    cfx_value args[MAX_ARGS];
    size_t count = 0;
    if (take_row(job, n, op, args, &count))
        *v = job->modules->call(job->modules->ctx, job->g, op, args, count, why);
    else
        why->status = CFX_E_UNSUPPORTED;
    for (size_t i = 0; i < count; i++)
        if (args[i].kind == CFX_KIND_TUPLE)
            cfx_value_discard(job->g, args[i]);  /* a list that was made for it */
    return CFX_OK;
}

static cfx_status evaluate(fold_job *job, cfx_node *n, cfx_value *v, cfx_error *why)
{
    const cfx_module_tree *m = job->modules;
    cfx_graph *g = job->g;
    cfx_value args = cfx_value_map(g, g, cfx_node_args(n), known_value, job, job->err);
    cfx_value kwargs = args.kind == CFX_KIND_INVALID
                           ? args : cfx_value_map(g, g, cfx_node_kwargs(n), known_value, job,
                                                  job->err);
    if (kwargs.kind != CFX_KIND_INVALID)
        *v = m->evaluate(m->ctx, g, n, args, kwargs, why);
    cfx_value_discard(g, args);
    cfx_value_discard(g, kwargs);
    return kwargs.kind == CFX_KIND_INVALID ? cfxi_base_nomem(job->err) : CFX_OK;
}

static cfx_status compute_operator(fold_job *job, cfx_node *n, cfx_value *v)
{
    cfx_error why = {.status = CFX_OK};
    cfx_effect effect;
    const cfx_operator op = job->modules ? cfx_node_operator(n) : CFX_OPID_NONE;
    if (op == CFX_OPID_NONE || cfx_operator_regions(op) > 0 || is_uninitialized(op) ||
        !is_of_table(job, n))
        return CFX_OK;
    CFX_TRY(cfxi_analysis_effect(job->model, n, &effect, job->err));
    if (effect != CFX_EFFECT_NONE)
        return CFX_OK;
    CFX_TRY(job->modules->evaluate ? evaluate(job, n, v, &why) : call_row(job, n, op, v, &why));
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
    if (is_written(job, n) || !are_inputs_known(job, n))
        return CFX_OK;
    if (n->op == CFX_OP_CALL_FUNCTION && take_numbers(job, n, args, &count))
        CFX_TRY(compute_scalar(job, n, args, count, &v));
    if (v.kind == CFX_KIND_INVALID)
        CFX_TRY(compute_operator(job, n, &v));
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
    if (!job->modules || cfxi_ir_is_flag(n) || is_written(job, n))
        return CFX_OK;  /* a flag is the caller's to switch */
    if (!job->survey->model)
        CFX_TRY(cfxi_analysis_survey_begin(job->survey, job->root, job->model, job->err));
    if (job->survey->wrote_any ||
        cfxi_analysis_survey_find(job->survey, path).written)
        return CFX_OK;
    CFX_TRY(cfxi_ops_module_attr(job->modules, job->g, path, "", &v, job->err));
    if (v.kind == CFX_KIND_INVALID)  /* what is missing is found out when it is needed */
        return CFX_OK;
    return note(job, &job->readers, n, v);
}

/* A new tensor that the graph returns belongs to the caller, who may write to it. */
static void mark_returned(const fold_job *job)
{
    const cfx_node *output = job->g->root.prev;
    if (output->op != CFX_OP_OUTPUT)
        return;
    for (uint32_t i = 0; i < output->n_inputs; i++) {
        cfxi_alias *set = cfxi_analysis_alias_set(&job->aliases, output->inputs[i].def);
        set->returned = !set->outside;
    }
}

static cfx_status note_writes(fold_job *job)
{
    CFX_TRY(
        cfxi_analysis_aliases_begin(&job->aliases, job->g, job->model, CFXI_USES_ALL, job->err));
    CFX_TRY(cfxi_analysis_aliases_note_writes(&job->aliases, job->err));
    mark_returned(job);
    return CFX_OK;
}

/* Whether anything depends on attributes and literals only: in most graphs nothing does, and what
 * they write to need not be found out. */
static bool has_candidates(const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (n->op == CFX_OP_GET_ATTR || (cfxi_ir_is_call(n) && n->n_inputs == 0))
            return true;
    return false;
}

static cfx_status compute_all(fold_job *job)
{
    if (!has_candidates(job->g))
        return CFX_OK;
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

/* Whether a tensor is among the items of a value: it could be stored nowhere. */
static bool holds_object(cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == CFX_KIND_HOST || holds_object(items[i]))
            return true;
    return false;
}

/* Whether a call can be replaced by its value: not if that must be another at each call. */
static bool is_replaceable(const fold_job *job, const cfx_node *n, cfx_value v)
{
    if (v.kind == CFX_KIND_HOST)
        return !cfxi_analysis_alias_set(&job->aliases, n)->returned;
    return !holds_object(v);
}

/* Puts what is to be read instead of `n` into `instead`. */
static cfx_status prepare(fold_job *job, cfx_node *n, cfx_node_map *instead)
{
    cfx_value v = cfx_node_map_get(job->values, n);
    if (!is_read_by_others(job, n) || !is_replaceable(job, n, v))
        return CFX_OK;
    if (v.kind == CFX_KIND_HOST)
        CFX_TRY(make_reader(job, n, v, &v));
    job->changed = true;
    return cfx_node_map_set(instead, n, v, job->err);
}

static cfx_status replace(fold_job *job, cfx_node_map *instead)
{
    for (size_t i = 0; i < job->folded.size; i++)
        CFX_TRY(prepare(job, ((cfx_node **)job->folded.data)[i], instead));
    for (cfx_node *n = job->g->root.next, *next; n != &job->g->root; n = next) {
        next = n->next;
        if (!is_known(job, n))
            CFX_TRY(cfxi_analysis_replace_inputs(n, instead, job->err));
    }
    return CFX_OK;
}

static cfx_status erase_unused(fold_job *job, const cfxi_vec *nodes)
{
    for (size_t i = nodes->size; i > 0; i--) {
        cfx_node *n = ((cfx_node **)nodes->data)[i - 1];
        if (n->n_users > 0 || cfxi_ir_node_erased(n))
            continue;
        CFX_TRY(cfx_graph_erase(job->g, n, job->err));
        job->changed = true;
    }
    return CFX_OK;
}

static cfx_status replace_all(fold_job *job)
{
    cfx_iter it;  /* keeps erased nodes readable: hooks may run */
    cfx_status status;
    if (job->folded.size == 0)
        return CFX_OK;
    cfx_node_map *instead = cfx_node_map_new(job->g->allocator, job->err);
    if (!instead)
        return CFX_E_NOMEM;
    cfx_iter_begin(&it, job->g, false);
    status = replace(job, instead);
    if (status == CFX_OK)
        status = erase_unused(job, &job->folded);
    if (status == CFX_OK && job->folded.size > 0)
        status = erase_unused(job, &job->readers);
    cfx_iter_end(&it);
    cfx_node_map_free(instead);
    return status;
}

static void release_values(const fold_job *job, const cfxi_vec *nodes)
{
    for (size_t i = 0; i < nodes->size; i++)
        cfx_value_release(job->g, cfx_node_map_get(job->values, ((cfx_node **)nodes->data)[i]));
}

static cfx_status fold_once(cfx_graph *g, fold_job *all, cfx_error *err)
{
    fold_job job = {.g = g, .modules = all->modules, .model = all->model,
                    .survey = all->survey, .root = all->root, .next = all->next, .err = err};
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
    fold_job all = {.modules = modules, .model = &model, .root = g, .survey = &survey,
                    .resolver = &resolver};
    cfx_status status = resolver.truths ? CFX_OK : CFX_E_NOMEM;
    do {
        resolver.any = false;
        if (status == CFX_OK)
            status = fold(g, &all, err);
        if (survey.model)
            cfxi_analysis_survey_end(&survey);
        survey = (cfxi_survey){0};
    } while (resolver.any && status == CFX_OK);
    cfxi_analysis_model_end(&model);
    cfx_node_map_free(resolver.truths);
    if (changed)
        *changed = all.changed || resolver.changed;
    return status;
}
