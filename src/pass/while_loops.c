/* while_loops.c - counted loops as while loops, for who knows no others.
 *
 *     before                                            after
 *     %l = call_function[target=cfx.for_loop](%n,       %l = call_function[target=cfx.while_loop](
 *         graph {                                           graph {
 *           %i = placeholder[target=i]()                      %i = placeholder[target=i]()
 *           %s = placeholder[target=s]()                      %s = placeholder[target=s]()
 *           %m = call_function[target=torch.mul](%s, %i)      %n = placeholder[target=n]()
 *           output((%m,))                                     %lt = ...operator.lt](%i, %n)
 *         }, (%x,))                                           output(%lt)
 *     %r = ...operator.getitem](%l, 0)                      }, graph {
 *                                                             ...
 *                                                             %add = ...operator.add](%i, 1)
 *                                                             output((%add, %m, %n))
 *                                                           }, (0, %x, %n))
 *                                                       %r = ...operator.getitem](%l, 1)
 *
 * The index is the first of the state; a count that is no literal is the last, and never changes.
 * Whoever uses the result as a whole gets a slice of the new one. A loop whose count is no number
 * stays.
 *
 * Needs: nodes in topological order.
 * Keeps: names, order and locations; every effect.
 *
 * Inner regions first; linear in nodes and edges.
 */
#include "analysis/control_flow_impl.h"
#include "pass_impl.h"

/* A loop that is being made of another one. */
typedef struct new_loop {
    const cfxi_control *old;
    cfx_value count;
    bool carried;            /* the count is: it is a node */
    cfx_graph *test, *body;
} new_loop;

static const char *count_name(const new_loop *l)
{
    return l->carried ? l->count.as.node->name->data : "count";
}

/* The output of the body: the next index, what it gave, and the count. */
static cfx_status finish_body(new_loop *l, cfx_node *index, cfx_node *count, cfx_error *err)
{
    cfx_graph *g = l->body;
    cfx_node *output = g->root.prev;
    size_t n;
    const cfx_value *items = cfx_value_items(cfx_node_arg(output, 0), &n);
    cfx_value *all = cfxi_base_alloc(g->allocator, (n + 2) * sizeof *all);
    const cfx_value one[] = {cfx_value_node(index), cfx_value_int(1)};
    cfx_node *next = NULL;
    if (!all)
        return cfxi_base_nomem(err);
    cfx_status status = cfx_graph_set_insert_point(g, (cfx_insert_point){output, false}, err);
    if (status == CFX_OK && !(next = cfxi_analysis_add_function(g, "operator.add", one, 2, err)))
        status = CFX_E_NOMEM;
    if (status == CFX_OK) {
        all[0] = cfx_value_node(next);
        memcpy(all + 1, items, n * sizeof *all);
        all[n + 1] = cfx_value_node(count);
        const cfx_value tuple = cfx_value_tuple(g, all, n + 1 + l->carried, err);
        status = tuple.kind == CFX_KIND_INVALID ? CFX_E_NOMEM : cfx_node_set_arg(output, 0, tuple,
                                                                                 err);
    }
    cfxi_base_free(g->allocator, all, (n + 2) * sizeof *all);
    return status;
}

/* A copy of the body that also counts. */
static cfx_status make_body(new_loop *l, cfx_error *err)
{
    cfx_node *count = NULL;
    l->body = cfx_graph_clone(l->old->regions[0], NULL, err);
    if (!l->body)
        return CFX_E_NOMEM;
    cfx_node *first = l->body->root.next;
    if (l->carried) {
        cfx_node *calls = first;
        while (calls->op == CFX_OP_PLACEHOLDER)
            calls = calls->next;
        CFX_TRY(cfx_graph_set_insert_point(l->body, (cfx_insert_point){calls, false}, err));
        count = cfx_graph_placeholder(l->body, count_name(l), err);
        if (!count)
            return CFX_E_NOMEM;
        const cfx_target own = {.name = count->name->data, .size = count->name->size};
        CFX_TRY(cfx_node_set_target(count, own, err));  /* another input may have the first name */
    }
    return finish_body(l, first, count, err);
}

/* Whether the index is below the count; the same inputs as the body has. */
static cfx_status make_test(new_loop *l, cfx_error *err)
{
    cfx_node *first = NULL, *last = NULL;
    l->test = cfx_graph_new(l->body->allocator, l->body->host, err);
    if (!l->test)
        return CFX_E_NOMEM;
    for (cfx_node *in = cfxi_ir_next_input(l->body, NULL); in;
         in = cfxi_ir_next_input(l->body, in)) {
        last = cfx_graph_placeholder(l->test, in->name->data, err);
        first = first ? first : last;
        if (!last)
            return CFX_E_NOMEM;
    }
    const cfx_value args[] = {cfx_value_node(first), l->carried ? cfx_value_node(last) : l->count};
    cfx_node *less = cfxi_analysis_add_function(l->test, "operator.lt", args, 2, err);
    return less && cfx_graph_output(l->test, cfx_value_node(less), err) ? CFX_OK : CFX_E_NOMEM;
}

/* What it begins with; floating, INVALID if memory is out. */
static cfx_value make_state(const new_loop *l, cfx_error *err)
{
    cfx_graph *g = l->old->node->graph;
    const size_t n = l->old->n;
    cfx_value *all = cfxi_base_alloc(g->allocator, (n + 2) * sizeof *all);
    if (!all) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    all[0] = cfx_value_int(0);
    memcpy(all + 1, l->old->operands, n * sizeof *all);
    all[n + 1] = l->count;
    const cfx_value state = cfx_value_tuple(g, all, n + 1 + l->carried, err);
    cfxi_base_free(g->allocator, all, (n + 2) * sizeof *all);
    return state;
}

static cfx_node *make_call(const new_loop *l, cfx_error *err)
{
    cfx_node *old = l->old->node;
    cfx_graph *g = old->graph;
    const cfx_insert_point was = cfx_graph_insert_point(g);
    cfx_value args[3] = {cfx_value_retain(cfx_value_region(g, l->test, err)), cfx_value_invalid(),
                         cfx_value_invalid()};
    if (args[0].kind != CFX_KIND_INVALID)
        args[1] = cfx_value_retain(cfx_value_region(g, l->body, err));
    if (args[1].kind != CFX_KIND_INVALID)
        args[2] = cfx_value_retain(make_state(l, err));
    cfx_node *made = NULL;
    if (args[2].kind != CFX_KIND_INVALID &&
        cfx_graph_set_insert_point(g, (cfx_insert_point){old, false}, err) == CFX_OK)
        made = cfxi_analysis_add_function(g, "cfx.while_loop", args, 3, err);
    for (size_t i = 0; i < 3; i++)
        cfx_value_release(g, args[i]);
    if (made)
        cfxi_analysis_place_like(made, old);
    cfx_graph_set_insert_point(g, was, NULL);
    return made;
}

/* ---- its users ----------------------------------------------------------------------------- */

/* The items of the result that it had before, for who wants all of them. */
static cfx_node *old_results(const cfxi_control *c, cfx_node *made, cfx_error *err)
{
    cfx_graph *g = made->graph;
    const cfx_insert_point was = cfx_graph_insert_point(g);
    const cfx_value slice = cfx_value_retain(cfx_value_slice(
        g, cfx_value_int(1), cfx_value_int((int64_t)c->n_results + 1), cfx_value_none(), err));
    const cfx_value args[] = {cfx_value_node(made), slice};
    cfx_node *all = NULL;
    if (slice.kind != CFX_KIND_INVALID &&
        cfx_graph_set_insert_point(g, (cfx_insert_point){c->node, false}, err) == CFX_OK)
        all = cfxi_analysis_add_function(g, "operator.getitem", args, 2, err);
    cfx_value_release(g, slice);
    cfx_graph_set_insert_point(g, was, NULL);
    return all;
}

/* Lets the users of the old loop use the new one. */
static cfx_status hand_over(const cfxi_control *c, cfx_node *made, cfx_error *err)
{
    cfxi_changes changes = {.allocator = made->graph->allocator};
    cfx_status status = CFX_OK;
    cfx_node *all = NULL;
    if (!cfxi_analysis_control_is_apart(c) && !(all = old_results(c, made, err)))
        return CFX_E_NOMEM;
    for (const cfx_use *use = cfx_node_first_use(c->node); use && status == CFX_OK && !all;
         use = cfx_use_next(use)) {
        const int64_t k = (int64_t)cfxi_analysis_control_taken(c, use->user) + 1;
        const cfx_value args[] = {cfx_value_node(made), cfx_value_int(k)};
        status = cfxi_analysis_changes_add(&changes, use->user,
                                           cfx_value_tuple(made->graph, args, 2, err),
                                           cfx_node_kwargs(use->user), err);
    }
    CFX_TRY(cfxi_analysis_changes_end(&changes, status));
    return all ? cfx_node_replace_uses(c->node, cfx_value_node(all), NULL, NULL, NULL, err)
               : CFX_OK;
}

static cfx_value count_of(const cfx_node *n)
{
    const cfx_value count = cfx_node_arg(n, 0);
    return count.kind == CFX_KIND_INVALID ? cfx_node_kwarg(n, "count") : count;
}

static cfx_status convert(const cfxi_control *c, cfx_error *err)
{
    const cfx_value count = count_of(c->node);
    new_loop l = {.old = c, .count = count, .carried = count.kind == CFX_KIND_NODE};
    cfx_node *made = NULL;
    cfx_status status = make_body(&l, err);
    if (status == CFX_OK)
        status = make_test(&l, err);
    if (status == CFX_OK && !(made = make_call(&l, err)))
        status = CFX_E_NOMEM;
    cfx_graph_release(l.test);
    cfx_graph_release(l.body);
    if (status == CFX_OK)
        status = hand_over(c, made, err);
    const cfxi_name *name = c->node->name;
    if (status == CFX_OK)
        status = cfx_graph_erase(c->node->graph, c->node, err);
    return status == CFX_OK ? cfx_node_set_name(made, name->data, name->size, err) : status;
}

static cfx_status visit(cfx_graph *g, void *ctx, cfx_error *err)
{
    bool *changed = ctx;
    cfxi_control c;
    CFX_TRY(cfxi_analysis_each_region(g, visit, ctx, err));
    for (cfx_node *n = g->root.next, *next; n != &g->root; n = next) {
        next = n->next;
        if (!cfxi_analysis_control_of(n, &c) || c.op != CFX_OPID_for_loop ||
            (count_of(n).kind != CFX_KIND_NODE && count_of(n).kind != CFX_KIND_INT))
            continue;
        CFX_TRY(convert(&c, err));
        *changed = true;
    }
    return CFX_OK;
}

cfx_status cfxi_pass_while_loops(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                 bool *changed, cfx_error *err)
{
    bool any = false;
    (void)modules;
    (void)opts;
    const cfx_status status = visit(g, &any, err);
    if (changed)
        *changed = any;
    return status;
}
