/* outline.c - regions as modules: a get_attr node reads what an operator takes.
 *
 *     before                                            after
 *     %c = call_function[target=cfx.cond](%p,           %true_graph_0 = get_attr[...]()
 *         graph { ... }, graph { ... }, (%x,))          %false_graph_0 = get_attr[...]()
 *                                                       %c = call_function[target=cfx.cond](%p,
 *                                                           %true_graph_0, %false_graph_0, (%x,))
 *
 * The form that torch has for them. Its while_loop also wants state that the body hands on
 * unchanged, and nobody reads afterwards, as additional inputs.
 *
 * Keeps: names, order and locations of all other nodes; regions inside regions.
 */
#include "analysis/analysis_impl.h"

#include <cfx/embed/ops.h>
#include <cfx/embed/pass.h>
#include <cfx/pass.h>

#include <stdio.h>

/* How the arguments of an operator lie, and what torch.export calls the modules. */
typedef struct region_form {
    unsigned args;
    unsigned first;
    unsigned regions;
    const char *names[2];
} region_form;

static const region_form forms[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_cond] = {4, 1, 2, {"true_graph", "false_graph"}},
    [CFX_OPID_while_loop] = {3, 0, 2, {"while_loop_cond_graph", "while_loop_body_graph"}},
    [CFX_OPID_for_loop] = {3, 1, 1, {"for_loop_body_graph"}},
};
enum { MAX_ARGS = 4, BODY = 1, STATE = 2, ADDITIONAL = 3, PATH_SIZE = 64 };

typedef struct outline_job {
    cfx_graph *g;
    const cfx_outline *how;
    cfxi_pointers readers;  /* by region: its get_attr node */
    cfxi_vec regions;       /* of cfx_graph *: held, so that no address comes twice */
    unsigned next[CFX_OPERATOR_COUNT][2];  /* number of the next path of each name */
    cfx_error *err;  /* not NULL */
} outline_job;

static bool is_items(cfx_value v) { return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST; }

/* What a region returns; INVALID if it returns nothing. */
static cfx_value result_of(const cfx_graph *region)
{
    const cfx_node *last = cfx_graph_last(region);
    return last && last->op == CFX_OP_OUTPUT ? cfx_node_arg(last, 0) : cfx_value_invalid();
}

/* ---- the state of a loop ------------------------------------------------------------------- */

/* How many items of a loop's result its users read: each of them takes one, counted from the
 * start; else all. */
static size_t items_read(const cfx_node *n, size_t all)
{
    size_t most = 0;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const cfx_node *user = cfx_use_user(use);
        const char *target = cfx_node_target(user, NULL, NULL);
        cfx_value item = cfx_node_arg(user, 1);
        bool takes = target && user->op == CFX_OP_CALL_FUNCTION &&
                     (strcmp(target, "operator.getitem") == 0 ||
                      strcmp(target, "_operator.getitem") == 0);
        if (!takes || item.kind != CFX_KIND_INT || item.as.i < 0 || (size_t)item.as.i >= all)
            return all;
        most = (size_t)item.as.i + 1 > most ? (size_t)item.as.i + 1 : most;
    }
    return most;
}

/* How much of a loop's state must be state. At least one value stays. */
static size_t state_kept(const cfx_node *n)
{
    size_t size, results, inputs = 0, kept = 0;
    cfx_value_items(cfx_node_arg(n, STATE), &size);
    const cfx_graph *body = cfx_value_graph(cfx_node_arg(n, BODY));
    const cfx_value result = result_of(body);
    const cfx_value *items = cfx_value_items(result, &results);
    const size_t least = items_read(n, size);
    if (!is_items(result) || !is_items(cfx_node_arg(n, STATE)) || results != size)
        return size;
    for (const cfx_node *in = cfx_graph_first(body); in && in->op == CFX_OP_PLACEHOLDER;
         in = cfx_node_next(in), inputs++)
        if (inputs < size && (items[inputs].kind != CFX_KIND_NODE || items[inputs].as.node != in))
            kept = inputs + 1;
    kept = kept > least ? kept : least;
    return inputs != size ? size : kept > 0 || size == 0 ? kept : 1;
}

static bool is_shorter(const cfx_node *n, size_t kept)
{
    size_t size;
    cfx_value_items(cfx_node_arg(n, STATE), &size);
    return kept < size;
}

/* The first `n` items of a tuple or list, floating. */
static cfx_value head(cfx_graph *g, cfx_value v, size_t n, cfx_error *err)
{
    size_t size;
    return cfx_value_seq(g, (cfx_kind)v.kind, cfx_value_items(v, &size), n, err);
}

/* A copy of a loop's body that returns only the first `kept` values; the body may be used by
 * another loop. */
static cfx_graph *shortened(cfx_graph *body, size_t kept, cfx_error *err)
{
    cfx_graph *copy = cfx_graph_clone(body, NULL, err);
    if (!copy)
        return NULL;
    cfx_value result = head(copy, result_of(copy), kept, err);
    if (result.kind != CFX_KIND_INVALID &&
        cfx_node_set_arg(cfx_graph_last(copy), 0, result, err) == CFX_OK)
        return copy;
    cfx_graph_release(copy);
    return NULL;
}

/* args[STATE] becomes two arguments. */
static bool split_state(cfx_graph *g, cfx_value *args, size_t kept, cfx_error *err)
{
    size_t size;
    const cfx_value *items = cfx_value_items(args[STATE], &size);
    const size_t more = kept < size ? size - kept : 0;
    args[ADDITIONAL] = cfx_value_tuple(g, more ? items + kept : NULL, more, err);
    if (more)
        args[STATE] = head(g, args[STATE], kept, err);
    return args[STATE].kind != CFX_KIND_INVALID && args[ADDITIONAL].kind != CFX_KIND_INVALID;
}

/* ---- regions to get_attr nodes ------------------------------------------------------------- */

static cfx_status find_path(outline_job *job, cfx_operator op, unsigned i, char path[PATH_SIZE])
{
    int taken;
    do {
        snprintf(path, PATH_SIZE, "%s_%u", forms[op].names[i], job->next[op][i]++);
        taken = job->how->is_taken ? job->how->is_taken(job->how->ctx, path) : 0;
    } while (taken > 0);
    if (taken == 0)
        return CFX_OK;
    return cfx_error_set(job->err, CFX_E_HOST, "could not tell whether the path '%s' is in use",
                         path);
}

/* A get_attr node before `n`, for a region that has none. */
static cfx_status make_reader(outline_job *job, cfx_node *n, const cfx_region *region,
                              cfx_operator op, unsigned i, cfx_node **reader)
{
    char path[PATH_SIZE];
    const cfx_allocator *allocator = job->g->allocator;
    CFX_TRY(find_path(job, op, i, path));
    CFX_TRY(cfx_graph_set_insert_point(job->g, (cfx_insert_point){n, false}, job->err));
    *reader = cfx_graph_get_attr(job->g, path, job->err);
    if (!*reader)
        return job->err->status;
    cfx_node_set_module_stack(*reader, cfx_node_module_stack(n));
    if (!cfxi_base_pointers_set(&job->readers, region->graph, *reader, allocator) ||
        !cfxi_base_vec_reserve(&job->regions, 1, sizeof(cfx_graph *), allocator))
        return cfxi_base_nomem(job->err);
    ((cfx_graph **)job->regions.data)[job->regions.size++] = cfx_graph_retain(region->graph);
    if (!job->how->outlined)
        return CFX_OK;
    cfx_status status = job->how->outlined(job->how->ctx, path, region, job->err);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(job->err, status);
}

static cfx_status check_form(const cfx_node *n, const region_form *form, cfx_error *err)
{
    size_t n_kwargs;
    cfx_value_items(cfx_node_kwargs(n), &n_kwargs);
    if (n_kwargs > 0 || cfx_node_num_args(n) != form->args)
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s must pass all arguments of an operator "
                             "with regions by position", n->name->data);
    for (unsigned i = 0; i < form->regions; i++)
        if (cfx_node_arg(n, form->first + i).kind != CFX_KIND_GRAPH)
            return cfx_error_set(err, CFX_E_GRAPH, "node %%%s has something that is not a graph "
                                 "in the place of a region", n->name->data);
    return CFX_OK;
}

/* The get_attr node for a region. A loop's body returns the first `kept` values of its state. Hooks
 * run when the node is made, and may change or erase `n`. */
static cfx_status reader_of(outline_job *job, cfx_node *n, cfx_operator op, unsigned i, size_t kept,
                            cfx_value *value)
{
    cfx_status status = CFX_OK;
    CFX_TRY(check_form(n, &forms[op], job->err));
    const bool shorter = op == CFX_OPID_while_loop && i == BODY && is_shorter(n, kept);
    cfx_graph *own = cfx_graph_retain(cfx_value_graph(cfx_node_arg(n, forms[op].first + i)));
    cfx_region region = {own, NULL};
    if (shorter)
        region = (cfx_region){shortened(own, kept, job->err), own};
    cfx_node *reader = region.graph ? cfxi_base_pointers_get(&job->readers, region.graph) : NULL;
    if (!region.graph)
        status = job->err->status;
    else if (!reader)
        status = make_reader(job, n, &region, op, i, &reader);
    if (shorter)
        cfx_graph_release(region.graph);
    cfx_graph_release(own);
    *value = status == CFX_OK ? cfx_value_node(reader) : cfx_value_invalid();
    return status;
}

/* Whether there is a literal that torch's operators do not take, or give: they know tensors and
 * integers. A bool is passed, and None is given. */
static bool has_other(cfx_value v, cfx_kind allowed)
{
    size_t size;
    const cfx_value *items = cfx_value_items(v, &size);
    for (size_t i = 0; is_items(v) && i < size; i++)
        if (items[i].kind != CFX_KIND_NODE && items[i].kind != CFX_KIND_INT &&
            items[i].kind != allowed)
            return true;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_BOOL || v.kind == CFX_KIND_STR;
}

/* Whether torch's operator refuses what is passed or given. The call then stays cfx's, which runs
 * modules as well. */
static bool is_refused(const cfx_node *n, const region_form *form)
{
    if (has_other(cfx_node_arg(n, form->args - 1), CFX_KIND_BOOL))
        return true;
    const unsigned first = form->first + (form->first == 0);  /* a test gives a bool */
    for (unsigned i = first; i < form->first + form->regions; i++)
        if (has_other(result_of(cfx_value_graph(cfx_node_arg(n, i))), CFX_KIND_NONE))
            return true;
    return false;
}

static cfx_status set_call(outline_job *job, cfx_node *n, const cfx_value *args, size_t n_args,
                           cfx_target target)
{
    cfx_value all = cfx_value_tuple(job->g, args, n_args, job->err);
    if (all.kind == CFX_KIND_INVALID)
        return job->err->status;
    CFX_TRY(cfx_node_set_args(n, all, job->err));
    return target.object || target.name ? cfx_node_set_target(n, target, job->err) : CFX_OK;
}

static cfx_status outline_node(outline_job *job, cfx_node *n, cfx_operator op)
{
    cfx_value args[MAX_ARGS];
    cfx_value readers[2];
    const region_form *form = &forms[op];
    cfx_target target = {NULL, NULL, 0};
    CFX_TRY(check_form(n, form, job->err));
    const bool stays = is_refused(n, form);
    const bool loop = op == CFX_OPID_while_loop && !stays;
    const size_t kept = loop ? state_kept(n) : SIZE_MAX;
    for (unsigned i = 0; i < form->regions; i++)
        CFX_TRY(reader_of(job, n, op, i, kept, &readers[i]));
    if (!stays && job->how->target)
        target = job->how->target(job->how->ctx, op);
    for (unsigned i = 0; i < form->args; i++)  /* callbacks may have changed them */
        args[i] = cfx_node_arg(n, i);
    memcpy(args + form->first, readers, form->regions * sizeof *readers);
    if (loop && !split_state(job->g, args, kept, job->err))
        return job->err->status;
    return set_call(job, n, args, form->args + loop, target);
}

cfx_status cfx_graph_outline(cfx_graph *g, const cfx_outline *how, cfx_error *err)
{
    cfx_iter it;
    cfx_error own;
    cfx_status status = CFX_OK;
    outline_job job = {.g = g, .how = how, .err = cfxi_base_error_or(err, &own)};
    const cfx_insert_point old = cfx_graph_insert_point(g);
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_operator op = cfx_node_operator(n);
        if (cfx_operator_regions(op) > 0)
            status = outline_node(&job, n, op);
    }
    cfx_iter_end(&it);
    cfx_graph_set_insert_point(g, old, NULL);
    for (size_t i = 0; i < job.regions.size; i++)
        cfx_graph_release(((cfx_graph **)job.regions.data)[i]);
    cfxi_base_vec_free(&job.regions, sizeof(cfx_graph *), g->allocator);
    cfxi_base_pointers_free(&job.readers, g->allocator);
    return status;
}
