/* lift_attrs.c - gives the branches of cond what they read as operands.
 *
 *     before                                        after
 *     %c = call_function[target=cfx.cond](%p,       %w = get_attr[target=w]()
 *         graph {                                   %c = call_function[target=cfx.cond](%p,
 *           %a = placeholder[target=a]()                graph {
 *           %w = get_attr[target=w]()                     %a = placeholder[target=a]()
 *           %mul = call_method[target=mul](%a, %w)        %w_1 = placeholder[target=w_1]()
 *           output(%mul)                                  %mul = call_method[target=mul](%a, %w_1)
 *         }, ..., (%x,))                                  output(%mul)
 *                                                       }, ..., (%x, %w))
 *
 * Needs: nothing. A cond is left alone if its regions are passed by keyword, are used elsewhere,
 * or have other inputs than one for each operand.
 * Keeps: names, order and locations of all other nodes. Loops keep what they read: it would become
 * a part of their state and of their result.
 *
 * Inner regions first, so that a path climbs from cond to cond. Linear in nodes and edges.
 */
#include "analysis/analysis_impl.h"
#include "ir/walk_impl.h"
#include "pass_impl.h"

enum { PRED, THEN, OTHERWISE, OPERANDS, COND_ARGS, BRANCHES = 2 };

/* One cond. Each path has a reader in the graph, and an input in each branch. */
typedef struct lift_job {
    cfx_node *cond;
    cfx_graph *branch[BRANCHES];  /* both may be the same: then n is 1 */
    size_t n;
    cfxi_vec paths;               /* of cfx_node *: the first get_attr of each path in a branch */
    cfxi_vec made;                /* of cfx_node *: readers, then the inputs of each branch */
    cfx_error *err;
} lift_job;

static cfx_node *at(const cfxi_vec *nodes, size_t i) { return ((cfx_node **)nodes->data)[i]; }

static cfx_status push(lift_job *job, cfxi_vec *nodes, cfx_node *n)
{
    return cfxi_analysis_nodes_push(nodes, n, job->cond->graph->allocator, job->err);
}

/* ---- whether a cond can be changed --------------------------------------------------------- */

static bool fits(cfx_graph *branch, size_t operands)
{
    size_t inputs = 0;
    for (const cfx_node *n = branch->root.next; n != &branch->root; n = n->next) {
        if (n->op != CFX_OP_PLACEHOLDER)
            continue;
        const char *name = cfx_node_target(n, NULL, NULL);
        inputs++;
        if (!name || name[0] == '*')
            return false;
    }
    return inputs == operands;
}

static bool may_lift(lift_job *job, const cfx_node_map *uses)
{
    const cfx_value operands = cfx_node_arg(job->cond, OPERANDS);
    size_t n_operands;
    cfx_value_items(operands, &n_operands);
    for (size_t i = 0; i < BRANCHES; i++)
        job->branch[i] = cfx_value_graph(cfx_node_arg(job->cond, THEN + i));
    if (!job->branch[0] || !job->branch[1] || job->cond->kwargs ||
        cfx_node_num_args(job->cond) > COND_ARGS ||
        (operands.kind != CFX_KIND_TUPLE && operands.kind != CFX_KIND_LIST))
        return false;
    job->n = job->branch[0] == job->branch[1] ? 1 : BRANCHES;
    for (size_t i = 0; i < job->n; i++) {
        cfx_value times = cfx_node_map_get(uses, cfx_graph_root(job->branch[i]));
        if (times.as.i != (job->n == 1 ? 2 : 1) || !fits(job->branch[i], n_operands))
            return false;
    }
    return true;
}

/* ---- changing it --------------------------------------------------------------------------- */

static cfx_target path_of(const cfx_node *n)
{
    cfx_target path = {0};
    path.name = cfx_node_target(n, &path.size, NULL);  /* never fails: it is no host object */
    return path;
}

/* Any one will do. */
static cfx_status stop_at_first(void *found, cfx_node *n)
{
    *(cfx_node **)found = n;
    return CFX_E_HOST;
}

static cfx_node *reader_in(cfx_graph *branch, const cfx_node *like)
{
    cfx_target path = path_of(like);
    cfx_node *found = NULL;
    (void)cfx_graph_find_nodes(branch, CFX_OP_GET_ATTR, &path, stop_at_first, &found);
    return found;
}

/* The paths that the branches read, each once, in the order of their first readers. */
static cfx_status find_paths(lift_job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        cfx_graph *branch = job->branch[i];
        uint32_t seen = cfxi_ir_graph_stamp(branch, 1);
        for (cfx_node *n = branch->root.next; n != &branch->root; n = n->next) {
            if (n->op != CFX_OP_GET_ATTR || n->mark == seen ||
                (i > 0 && reader_in(job->branch[0], n)))
                continue;
            CFX_TRY(push(job, &job->paths, n));
            for (cfx_node *same = n->callee->first; same->mark != seen; same = same->same_next)
                same->mark = seen;
        }
    }
    return CFX_OK;
}

/* Before the first node of a branch that is no input. */
static cfx_status make_inputs(lift_job *job, cfx_graph *branch)
{
    const cfx_value none = cfx_value_none();
    cfx_insert_point old = cfx_graph_insert_point(branch);
    cfx_insert_point here = {branch->root.next, false};
    cfx_value defaults = cfx_value_invalid();
    cfx_status status = CFX_OK;
    for (; here.node->op == CFX_OP_PLACEHOLDER && !cfxi_ir_node_is_root(here.node);
         here.node = here.node->next)
        if (here.node->args)  /* after an input with a default, Python wants all to have one */
            defaults = none;
    if (cfxi_ir_node_is_root(here.node))
        here.node = NULL;
    CFX_TRY(cfx_graph_set_insert_point(branch, here, job->err));
    for (size_t i = 0; status == CFX_OK && i < job->paths.size; i++) {
        cfx_target path = path_of(at(&job->paths, i));
        cfx_value args = defaults.kind == CFX_KIND_INVALID
                             ? defaults : cfx_value_tuple(branch, &none, 1, job->err);
        cfx_node *n = cfx_graph_create(branch, CFX_OP_PLACEHOLDER, path, args, cfx_value_invalid(),
                                       NULL, cfx_value_invalid(), job->err);
        cfx_target target = {.name = n ? n->name->data : NULL, .size = n ? n->name->size : 0};
        status = n ? push(job, &job->made, n) : CFX_E_NOMEM;
        if (status == CFX_OK)
            status = cfx_node_set_target(n, target, job->err);
    }
    cfx_graph_set_insert_point(branch, old, NULL);
    return status;
}

static cfx_status make_readers(lift_job *job)
{
    cfx_graph *g = job->cond->graph;
    cfx_insert_point old = cfx_graph_insert_point(g);
    cfx_status status = cfx_graph_set_insert_point(g, (cfx_insert_point){job->cond, false},
                                                   job->err);
    for (size_t i = 0; status == CFX_OK && i < job->paths.size; i++) {
        cfx_node *n =
            cfx_graph_create(g, CFX_OP_GET_ATTR, path_of(at(&job->paths, i)), cfx_value_invalid(),
                             cfx_value_invalid(), NULL, cfx_value_invalid(), job->err);
        status = n ? push(job, &job->made, n) : CFX_E_NOMEM;
    }
    cfx_graph_set_insert_point(g, old, NULL);
    return status;
}

static cfx_status add_operands(lift_job *job)
{
    cfx_graph *g = job->cond->graph;
    cfx_value args[COND_ARGS];
    cfx_value old = cfx_node_arg(job->cond, OPERANDS);
    size_t n;
    const cfx_value *items = cfx_value_items(old, &n);
    cfxi_vec all = {0};
    if (!cfxi_base_vec_reserve(&all, n + job->paths.size, sizeof *items, g->allocator))
        return cfxi_base_nomem(job->err);
    for (size_t i = 0; i < n + job->paths.size; i++)
        ((cfx_value *)all.data)[i] = i < n ? items[i] : cfx_value_node(at(&job->made, i - n));
    for (size_t i = 0; i < OPERANDS; i++)
        args[i] = cfx_node_arg(job->cond, i);
    args[OPERANDS] = cfx_value_seq(g, (cfx_kind)old.kind, all.data, n + job->paths.size, job->err);
    cfxi_base_vec_free(&all, sizeof *items, g->allocator);
    cfx_value tuple = cfx_value_tuple(g, args, COND_ARGS, job->err);
    if (tuple.kind == CFX_KIND_INVALID) {
        cfx_value_discard(g, args[OPERANDS]);
        return CFX_E_NOMEM;
    }
    cfx_status status = cfx_node_set_args(job->cond, tuple, job->err);
    if (status != CFX_OK)
        cfx_value_discard(g, tuple);
    return status;
}

/* Makes one branch use its new inputs, the `inputs` first of which stands at this place. */
static cfx_status use_inputs(lift_job *job, cfx_graph *branch, size_t inputs)
{
    for (size_t i = 0; i < job->paths.size; i++) {
        cfx_node *n;
        while ((n = reader_in(branch, at(&job->made, i))) != NULL) {
            cfx_value input = cfx_value_node(at(&job->made, inputs + i));
            CFX_TRY(cfx_node_replace_uses(n, input, NULL, NULL, NULL, job->err));
            CFX_TRY(cfx_graph_erase(branch, n, job->err));
        }
    }
    return CFX_OK;
}

static cfx_status lift(lift_job *job, bool *changed)
{
    CFX_TRY(find_paths(job));
    if (job->paths.size == 0)
        return CFX_OK;
    cfx_status status = make_readers(job);
    for (size_t i = 0; status == CFX_OK && i < job->n; i++)
        status = make_inputs(job, job->branch[i]);
    if (status == CFX_OK)
        status = add_operands(job);
    if (status != CFX_OK) {
        while (job->made.size > 0) {
            cfx_node *n = at(&job->made, --job->made.size);
            cfx_graph_erase(n->graph, n, NULL);
        }
        return status;
    }
    *changed = true;
    for (size_t i = 0; status == CFX_OK && i < job->n; i++)
        status = use_inputs(job, job->branch[i], (i + 1) * job->paths.size);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

static cfx_status lift_all(cfx_graph *g, bool *changed, cfx_error *err);

/* Counts how often each region is an argument; the first time its own regions are seen to. */
typedef struct visitor {
    cfx_node_map *uses;
    bool *changed;
} visitor;

static cfx_status visit_region(cfx_graph *region, void *ctx, cfx_error *err)
{
    const visitor *v = ctx;
    cfx_value times = cfx_node_map_get(v->uses, cfx_graph_root(region));
    bool first = times.kind != CFX_KIND_INT;
    CFX_TRY(cfx_node_map_set(v->uses, cfx_graph_root(region),
                             cfx_value_int(first ? 1 : times.as.i + 1), err));
    return first ? lift_all(region, v->changed, err) : CFX_OK;
}

static cfx_status visit(cfx_graph *g, cfx_node_map *uses, bool *changed, cfx_error *err)
{
    visitor v = {uses, changed};
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        CFX_TRY(cfxi_ir_each_region(cfx_node_args(n), visit_region, &v, err));
        CFX_TRY(cfxi_ir_each_region(cfx_node_kwargs(n), visit_region, &v, err));
    }
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        lift_job job = {.cond = n, .err = err};
        if (cfx_node_operator(n) != CFX_OPID_cond || !may_lift(&job, uses))
            continue;
        cfx_status status = lift(&job, changed);
        cfxi_base_vec_free(&job.paths, sizeof(cfx_node *), g->allocator);
        cfxi_base_vec_free(&job.made, sizeof(cfx_node *), g->allocator);
        CFX_TRY(status);
    }
    return CFX_OK;
}

static cfx_status lift_all(cfx_graph *g, bool *changed, cfx_error *err)
{
    if (!cfxi_analysis_has_regions(g))
        return CFX_OK;
    cfx_node_map *uses = cfx_node_map_new(g->allocator, err);
    if (!uses)
        return CFX_E_NOMEM;
    cfx_status status = visit(g, uses, changed, err);
    cfx_node_map_free(uses);
    return status;
}

cfx_status cfxi_pass_lift_attrs(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                bool *changed, cfx_error *err)
{
    (void)modules;
    (void)opts;
    bool any = false;
    cfx_status status = lift_all(g, &any, err);
    if (changed)
        *changed = any;
    return status;
}
