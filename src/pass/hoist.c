/* hoist.c - takes out of regions what need not be in them.
 *
 *     before                                            after
 *     %x = placeholder[target=x]()                      %x = placeholder[target=x]()
 *     %l = call_function[target=cfx.for_loop](9,        %e = call_function[target=torch.exp](%x)
 *         graph {                                       %l = call_function[target=cfx.for_loop](9,
 *           %i = placeholder[target=i]()                    graph {
 *           %s = placeholder[target=s]()                      %i = placeholder[target=i]()
 *           %x = placeholder[target=x]()                      %s = placeholder[target=s]()
 *           %e = call_function[target=torch.exp](%x)          %x = placeholder[target=x]()
 *           %m = call_function[target=torch.mul](%s, %e)      %e = placeholder[target=e]()
 *           output((%m, %x))                                  %m = call_method[target=mul](%s, %e)
 *         }, (%x, %x))                                        output((%m, %x, %e))
 *                                                           }, (%x, %x, %e))
 *
 * Calls in a loop that depend on nothing that changes go before it; what they give is handed to the
 * loop as state that never changes, which is what a loop has for operands. And whoever takes a
 * result that is only handed through (state that never changes, an operand or a literal that both
 * branches return) takes it from where it came from.
 *
 * A call leaves a loop only if it would have been run anyway: from the test of a while_loop, and
 * from the body of a loop that is known to run once at least. From other bodies only what cannot
 * fail on a tensor goes (exp, dim, clone, ...), since it may now be run in vain. Whatever has an
 * effect stays, as does all in a loop that writes, or whose result is used as a whole (it would be
 * a longer one); and if anything writes in the whole graph, what the loop may return stays: there
 * it makes something new in each turn.
 *
 * Needs: a graph that cfx_graph_lint accepts.
 * Keeps: names (as far as they are free), locations and the order of effects.
 *
 * Inner regions first, so that code climbs out of several loops; again, as long as something does,
 * since less may be shared then. Each time linear in nodes and edges, except that the effect of an
 * operator is found by looking at its regions.
 */
#include "analysis/alias_impl.h"
#include "analysis/call_arguments_impl.h"
#include "resolve_impl.h"
#include "analysis/splice_impl.h"
#include "pass_impl.h"

typedef struct hoist_job {
    cfxi_effect_model model;
    bool writes;   /* something in the whole graph does */
    bool changed;
    cfxi_vec taken;  /* of cfx_node *: users that only took what was handed through */
    cfx_error *err;
} hoist_job;

/* ---- what is handed through ---------------------------------------------------------------- */

/* What a result of region i is in the graph outside, if it is an operand or a literal; else
 * INVALID. `inputs` has the numbers of inputs. */
static cfx_value outside_of(const cfxi_control *c, const cfx_node_map *inputs, cfx_value v)
{
    if (v.kind == CFX_KIND_NODE) {
        const cfx_value k = cfx_node_map_get(inputs, v.as.node);
        v = k.kind == CFX_KIND_INT ? c->operands[k.as.i] : cfx_value_invalid();
        return v.kind == CFX_KIND_NODE || cfxi_analysis_is_constant(v) ? v : cfx_value_invalid();
    }
    const bool simple = cfxi_ir_is_plain(v) && !cfxi_ir_is_seq(v) && !cfxi_ir_is_str(v);
    return simple ? v : cfx_value_invalid();
}

/* Result k, if it can be had without the branch or loop; else INVALID. */
static cfx_value passed_through(const cfxi_control *c, const cfx_node_map *inputs, size_t k)
{
    const size_t body = cfxi_analysis_control_body(c);
    const cfx_value last = cfxi_analysis_control_result(c, body, k);
    if (cfxi_analysis_control_is_loop(c)) {
        const cfx_value from = last.kind == CFX_KIND_NODE ? cfx_node_map_get(inputs, last.as.node)
                                                          : cfx_value_invalid();
        const bool kept = from.kind == CFX_KIND_INT && (size_t)from.as.i == k;
        return kept ? outside_of(c, inputs, last) : cfx_value_invalid();
    }
    const cfx_value first = outside_of(c, inputs, cfxi_analysis_control_result(c, 0, k));
    const cfx_value second = outside_of(c, inputs, last);
    const cfxi_same how = {.floats = CFXI_FLOATS_TEXT};
    return first.kind != CFX_KIND_INVALID && cfxi_ir_same_value(&how, first, second)
               ? first : cfx_value_invalid();
}

/* Lets go of a taken item, or of the whole result of a branch. */
static cfx_status take_elsewhere(hoist_job *job, const cfxi_control *c, const cfx_node_map *inputs,
                                 cfx_node *user)
{
    const size_t k = c->whole ? 0 : cfxi_analysis_control_taken(c, user);
    const cfx_value v = k == SIZE_MAX ? cfx_value_invalid() : passed_through(c, inputs, k);
    cfx_node *old = c->whole ? c->node : user;
    if (v.kind == CFX_KIND_INVALID || old->n_users == 0)
        return CFX_OK;
    job->changed = true;
    if (!c->whole)
        CFX_TRY(cfxi_analysis_nodes_push(&job->taken, user, user->graph->allocator, job->err));
    return cfx_node_replace_uses(old, v, NULL, NULL, NULL, job->err);
}

static cfx_status pass_by(hoist_job *job, const cfxi_control *c)
{
    const cfx_node *n = c->node;
    cfxi_vec users = {0};
    cfx_node_map *inputs = n->n_users ? cfx_node_map_new(n->graph->allocator, job->err) : NULL;
    cfx_status status = inputs || n->n_users == 0 ? CFX_OK : CFX_E_NOMEM;
    for (const cfx_use *use = cfx_node_first_use(n); use && status == CFX_OK;
         use = cfx_use_next(use))
        status = cfxi_analysis_nodes_push(&users, use->user, n->graph->allocator, job->err);
    if (status == CFX_OK && users.size > 0)
        status = cfxi_analysis_control_number_inputs(c, inputs, job->err);
    for (size_t i = 0; status == CFX_OK && i < users.size; i++)
        status = take_elsewhere(job, c, inputs, ((cfx_node **)users.data)[i]);
    cfxi_base_vec_free(&users, sizeof(cfx_node *), n->graph->allocator);
    cfx_node_map_free(inputs);
    return status;
}

/* ---- what does not change in a loop -------------------------------------------------------- */

/* One loop. */
typedef struct loop_job {
    hoist_job *all;
    cfxi_control *c;
    cfxi_tensors *tensors;  /* of the graph outside */
    cfx_node_map *outside;        /* nodes of regions that never change: what they are outside */
    cfx_node_map *escapes;        /* nodes that the loop may return, if anything writes */
    cfxi_vec moved;               /* of cfx_node *: calls and reads that have copies outside */
    cfxi_vec handed;              /* likewise: those that others in the loop read */
    bool sure;                    /* the body is run at least once */
} loop_job;

/* Calls that give something for any tensor. */
static bool cannot_fail(const loop_job *job, const cfx_node *n)
{
    cfx_value x = cfx_node_arg(n, 0);
    switch (cfx_node_operator(n)) {
    case CFX_OPID_exp:
    case CFX_OPID_sin:
    case CFX_OPID_cos:
    case CFX_OPID_tanh:
    case CFX_OPID_sigmoid:
    case CFX_OPID_dim:
    case CFX_OPID_numel:
    case CFX_OPID_clone:
    case CFX_OPID_detach:
        break;
    default:
        return false;
    }
    if (cfx_node_num_args(n) != 1 || n->kwargs || x.kind != CFX_KIND_NODE)
        return false;
    x = cfx_node_map_get(job->outside, x.as.node);
    return x.kind == CFX_KIND_NODE && cfxi_analysis_is_tensor(job->tensors, x);
}

static bool never_changes(const loop_job *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (cfx_node_map_get(job->outside, n->inputs[i].def).kind == CFX_KIND_INVALID)
            return false;
    return true;
}

static cfx_status may_move(const loop_job *job, cfx_node *n, bool sure, bool *may)
{
    cfx_effect effect = CFX_EFFECT_WRITES;
    *may = (n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD) &&
           never_changes(job, n) && (sure || cannot_fail(job, n)) &&
           cfx_node_map_get(job->escapes, n).kind == CFX_KIND_INVALID;
    if (!*may)
        return CFX_OK;
    cfx_status status = cfxi_analysis_effect(&job->all->model, n, &effect, job->all->err);
    *may = effect == CFX_EFFECT_NONE;
    return status;
}

static cfx_value found_outside(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)err;
    return cfx_node_map_get(ctx, n);
}

static cfx_status move_out(loop_job *job, cfx_node *n)
{
    cfx_graph *g = job->c->node->graph;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    cfx_error *err = job->all->err;
    CFX_TRY(cfx_graph_set_insert_point(g, (cfx_insert_point){job->c->node, false}, err));
    cfx_node *copy = cfx_graph_copy_node(g, n, found_outside, job->outside, err);
    cfx_graph_set_insert_point(g, old, NULL);
    if (!copy)
        return CFX_E_NOMEM;
    CFX_TRY(cfx_node_map_set(job->outside, n, cfx_value_node(copy), err));
    cfxi_ir_graph_freeze(g);
    cfx_status status = cfxi_analysis_tensors_note(job->tensors, copy, err);
    cfxi_ir_graph_thaw(g);
    CFX_TRY(status);
    return cfxi_analysis_nodes_push(&job->moved, n, g->allocator, err);
}

/* An attribute can be read anywhere; it is where something that moves reads it. */
static cfx_status move_readers(loop_job *job, cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        cfx_node *def = n->inputs[i].def;
        if (def->op == CFX_OP_GET_ATTR &&
            cfx_node_map_get(job->outside, def).kind == CFX_KIND_NONE)
            CFX_TRY(move_out(job, def));
    }
    return CFX_OK;
}

static cfx_status move_region(loop_job *job, size_t i)
{
    cfx_graph *region = job->c->regions[i];
    const bool sure = job->sure || i != cfxi_analysis_control_body(job->c);
    for (cfx_node *n = region->root.next; n != &region->root; n = n->next) {
        bool may;
        if (n->op == CFX_OP_GET_ATTR)
            CFX_TRY(cfx_node_map_set(job->outside, n, cfx_value_none(), job->all->err));
        CFX_TRY(may_move(job, n, sure, &may));
        if (!may)
            continue;
        CFX_TRY(move_readers(job, n));
        CFX_TRY(move_out(job, n));
    }
    return CFX_OK;
}

/* ---- handing it in ------------------------------------------------------------------------- */

static bool is_moved(const loop_job *job, const cfx_node *n)
{
    return n->op != CFX_OP_PLACEHOLDER &&
           cfx_node_map_get(job->outside, n).kind == CFX_KIND_NODE;
}

static bool is_read_inside(const loop_job *job, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!is_moved(job, use->user))
            return true;
    return false;
}

static cfx_status find_handed(loop_job *job)
{
    for (size_t i = 0; i < job->moved.size; i++) {
        cfx_node *n = ((cfx_node **)job->moved.data)[i];
        if (n->op != CFX_OP_GET_ATTR && is_read_inside(job, n))
            CFX_TRY(cfxi_analysis_nodes_push(&job->handed, n, n->graph->allocator, job->all->err));
    }
    return CFX_OK;
}

static cfx_status erase_moved(const loop_job *job)
{
    for (size_t i = job->moved.size; i > 0; i--) {
        cfx_node *n = ((cfx_node **)job->moved.data)[i - 1];
        if (n->n_users == 0)
            CFX_TRY(cfx_graph_erase(n->graph, n, job->all->err));
    }
    return CFX_OK;
}

/* ---- one loop ------------------------------------------------------------------------------ */

static cfx_status note_kept(void *ctx, cfx_node *n, size_t k)
{
    const loop_job *job = ctx;
    const cfx_value v = job->c->operands[k];
    return v.kind == CFX_KIND_NODE || cfxi_analysis_is_constant(v)
               ? cfx_node_map_set(job->outside, n, v, job->all->err) : CFX_OK;
}

static cfx_status mark_escapes(const loop_job *job, const cfxi_aliases *aliases, cfx_graph *region)
{
    const cfx_node *output = region->root.prev;
    for (uint32_t i = 0; i < output->n_inputs; i++)
        cfxi_analysis_alias_set(aliases, output->inputs[i].def)->written = true;
    for (cfx_node *n = region->root.next; n != &region->root; n = n->next)
        if (cfxi_analysis_alias_set(aliases, n)->written)
            CFX_TRY(cfx_node_map_set(job->escapes, n, cfx_value_none(), job->all->err));
    return CFX_OK;
}

/* What may share its memory with what the body returns. */
static cfx_status find_escapes(const loop_job *job)
{
    cfx_graph *region = job->c->regions[cfxi_analysis_control_body(job->c)];
    cfxi_aliases aliases;
    cfx_error *err = job->all->err;
    cfx_status status =
        cfxi_analysis_aliases_begin(&aliases, region, &job->all->model, CFXI_USES_ALL, err);
    for (cfx_node *n = region->root.next; status == CFX_OK && n != &region->root; n = n->next)
        status = cfxi_analysis_alias_join(&aliases, n, err);
    if (status == CFX_OK)
        status = mark_escapes(job, &aliases, region);
    cfxi_analysis_aliases_end(&aliases);
    return status;
}

/* Whether a loop is known to run once at least. */
static cfx_status runs(const cfxi_control *c, bool *sure, cfx_error *err)
{
    const cfx_value count = cfxi_analysis_control_subject(c);
    *sure = count.kind == CFX_KIND_INT && count.as.i > 0;
    return c->op == CFX_OPID_while_loop ? cfxi_analysis_known_first(c, sure, err) : CFX_OK;
}

static cfx_status move_all(loop_job *job)
{
    CFX_TRY(runs(job->c, &job->sure, job->all->err));
    for (size_t i = 0; i < job->c->n_regions; i++)
        CFX_TRY(cfxi_analysis_control_each_kept(job->c, i, note_kept, job));
    if (job->all->writes)
        CFX_TRY(find_escapes(job));
    for (size_t i = 0; i < job->c->n_regions; i++)
        CFX_TRY(move_region(job, i));
    if (job->moved.size == 0)
        return CFX_OK;
    job->all->changed = true;
    CFX_TRY(find_handed(job));
    CFX_TRY(cfxi_analysis_control_hand_in(job->c, job->handed.data, job->handed.size, job->outside,
                                          job->all->err));
    return erase_moved(job);
}

static cfx_status hoist_loop(hoist_job *all, cfxi_control *c, cfxi_tensors *tensors)
{
    const cfx_allocator *allocator = c->node->graph->allocator;
    loop_job job = {.all = all, .c = c, .tensors = tensors};
    cfx_effect effect = CFX_EFFECT_WRITES;
    cfx_status status = cfxi_analysis_effect(&all->model, c->node, &effect, all->err);
    if (status != CFX_OK || effect == CFX_EFFECT_WRITES || !cfxi_analysis_control_is_apart(c))
        return status;
    job.outside = cfx_node_map_new(allocator, all->err);
    job.escapes = job.outside ? cfx_node_map_new(allocator, all->err) : NULL;
    status = job.escapes ? move_all(&job) : CFX_E_NOMEM;
    cfx_node_map_free(job.outside);
    cfx_node_map_free(job.escapes);
    cfxi_base_vec_free(&job.moved, sizeof(cfx_node *), allocator);
    cfxi_base_vec_free(&job.handed, sizeof(cfx_node *), allocator);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status hoist_node(hoist_job *job, cfx_node *n, cfxi_tensors *tensors)
{
    cfxi_control c;
    if (!cfxi_analysis_control_of(n, &c) || !cfxi_analysis_control_is_alone(&c))
        return CFX_OK;
    CFX_TRY(pass_by(job, &c));
    return cfxi_analysis_control_is_loop(&c) ? hoist_loop(job, &c, tensors) : CFX_OK;
}

static cfx_status hoist_nodes(hoist_job *job, cfx_graph *g)
{
    cfxi_tensors tensors;
    cfx_iter it;
    cfx_status status = cfxi_analysis_tensors_begin(&tensors, g, job->model.modules, false,
                                                    job->err);
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = hoist_node(job, n, &tensors);
    if (status == CFX_OK)
        status = cfxi_analysis_erase_taken(&job->taken, job->err);
    cfx_iter_end(&it);
    cfxi_base_vec_free(&job->taken, sizeof(cfx_node *), g->allocator);
    job->taken = (cfxi_vec){0};
    cfxi_analysis_tensors_end(&tensors);
    return status;
}

static cfx_status hoist(cfx_graph *g, void *ctx, cfx_error *err)
{
    if (!cfxi_analysis_has_regions(g))
        return CFX_OK;
    CFX_TRY(cfxi_analysis_each_region(g, hoist, ctx, err));
    return hoist_nodes(ctx, g);
}

static cfx_status find_writes(cfx_graph *g, hoist_job *job)
{
    cfx_status status = CFX_OK;
    cfxi_ir_graph_freeze(g);
    for (cfx_node *n = g->root.next; status == CFX_OK && n != &g->root; n = n->next) {
        cfx_effect effect;
        status = cfxi_analysis_effect(&job->model, n, &effect, job->err);
        job->writes = job->writes || (status == CFX_OK && effect == CFX_EFFECT_WRITES);
    }
    cfxi_ir_graph_thaw(g);
    return status;
}

cfx_status cfxi_pass_hoist(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                           bool *changed, cfx_error *err)
{
    const cfx_hoist_options *o = opts;
    hoist_job job = {.model = {.modules = modules, .strict = o && o->strict}, .err = err};
    CFX_TRY(cfx_graph_lint(g, NULL, NULL, err));
    cfx_status status = cfxi_analysis_has_regions(g) ? find_writes(g, &job) : CFX_OK;
    bool any = false;
    do {
        job.changed = false;
        if (status == CFX_OK)
            status = hoist(g, &job, err);
        any = any || job.changed;
    } while (job.changed && status == CFX_OK);
    cfxi_analysis_model_end(&job.model);
    if (changed)
        *changed = any;
    return status;
}
