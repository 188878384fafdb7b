/* resolve.c - branches and loops whose way is known, put in their places.
 *
 *     a cond whose predicate is a literal       the branch that is taken
 *     a cond in a branch of a cond with the     likewise: its predicate is known there
 *     same predicate, or its opposite
 *     a loop whose count is known               its body, as often as it is run
 *     a while_loop whose tests can be computed  likewise
 *
 * One walk forwards over a graph, in which what was put in a place is met next: numbers are folded
 * on the way, so that a state that counts becomes literals, and tests and predicates that hang on
 * it are known. What is known of a region's inputs is given to it: literals are put in the places
 * of inputs that are operands or state that never changes.
 *
 * A literal list stays one value: it is not put in two places, since something might change it.
 */
#include "resolve_impl.h"
#include "analysis/splice_impl.h"

/* One walk. */
typedef struct walk_job {
    cfxi_resolver *r;
    cfxi_vec taken;  /* of cfx_node *: see cfxi_analysis_splice_result */
    cfx_error *err;
} walk_job;

static bool is_literal(cfx_value v)
{
    return cfxi_ir_is_plain(v) && v.kind != CFX_KIND_NODE && cfxi_analysis_is_constant(v);
}

static cfx_status stop(void *ctx, cfx_node *n)
{
    (void)ctx;
    (void)n;
    return CFX_E_HOST;  /* any one will do */
}

static bool has_nodes(cfx_value v) { return cfx_value_each_node(v, stop, NULL) != CFX_OK; }

static cfxi_truth3 truth_of(const cfxi_resolver *r, cfx_value v)
{
    const cfx_value known = v.kind == CFX_KIND_NODE ? cfx_node_map_get(r->truths, v.as.node) : v;
    return cfxi_analysis_known_truth(known);
}

/* ---- how many nodes that would be ---------------------------------------------------------- */

static size_t add_size(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

static size_t times_size(size_t a, size_t b)
{
    size_t product;
    return cfxi_base_mul_size(a, b, 0, &product) ? product : SIZE_MAX;
}

/* Of a region, once the loops in it that can be taken apart are. */
static size_t size_of(const cfxi_resolver *r, const cfx_graph *region)
{
    size_t size = 0;
    for (cfx_node *n = region->root.next; n != &region->root; n = n->next) {
        cfxi_control c;
        size_t trips = SIZE_MAX;
        size = add_size(size, n->op != CFX_OP_PLACEHOLDER && n->op != CFX_OP_OUTPUT);
        if (!cfxi_analysis_control_of(n, &c))
            continue;
        if (c.op == CFX_OPID_for_loop)
            (void)cfxi_analysis_known_trips(&c, r->max_count, &trips, NULL);
        for (size_t i = 0; i < c.n_regions; i++) {
            const size_t inner = size_of(r, c.regions[i]);
            size = add_size(size, trips == SIZE_MAX ? inner : times_size(trips, inner));
        }
    }
    return size;
}

static bool is_small(const cfxi_resolver *r, const cfxi_control *c, size_t trips)
{
    return trips <= 1 ||
           times_size(trips, size_of(r, c->regions[cfxi_analysis_control_body(c)])) <= r->max_nodes;
}

/* ---- putting in their places --------------------------------------------------------------- */

/* Whether each value can go where the input of the region is read, and the result where the call's
 * is: a list can if it is one place. */
static bool can_bind(const cfxi_control *c, size_t i, const cfx_value *values)
{
    const cfx_node *n = cfxi_analysis_control_input(c, i, 0);
    for (size_t k = 0; k < c->n; k++, n = cfxi_ir_next_input(c->regions[i], n)) {
        const bool once = n->n_users == 0 || (n->n_users == 1 && n->users->count == 1);
        if (values[k].kind != CFX_KIND_NODE && !once && !cfxi_analysis_is_constant(values[k]))
            return false;
    }
    return true;
}

static bool are_constant(cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        if (!cfxi_analysis_is_constant(items[i]))
            return false;
    return v.kind == CFX_KIND_LIST || cfxi_analysis_is_constant(v);
}

/* A list that a branch returns can be taken from, but is not made twice. */
static bool can_give(const cfxi_control *c, size_t i)
{
    const cfx_value v = cfx_node_arg(c->outputs[i], 0);
    const bool once = c->node->n_users == 1 && c->node->users->count == 1;
    if (v.kind == CFX_KIND_LIST && !once)
        for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use))
            if (cfxi_analysis_control_taken(c, use->user) == SIZE_MAX)
                return false;
    return are_constant(v);
}

/* Whether nothing is lost if the test of a loop is not run. */
static cfx_status is_idle(const cfxi_resolver *r, const cfx_graph *test, bool *idle, cfx_error *err)
{
    *idle = true;
    for (cfx_node *n = test->root.next; *idle && n != &test->root; n = n->next) {
        cfx_effect effect = CFX_EFFECT_NONE;
        if (n->op != CFX_OP_PLACEHOLDER && n->op != CFX_OP_OUTPUT)
            CFX_TRY(cfxi_analysis_effect(r->model, n, &effect, err));
        *idle = effect == CFX_EFFECT_NONE;
    }
    return CFX_OK;
}

/* How often a loop runs, if it can be taken apart; else SIZE_MAX. */
static cfx_status turns_of(const cfxi_resolver *r, const cfxi_control *c, size_t *trips,
                           cfx_error *err)
{
    const size_t body = cfxi_analysis_control_body(c);
    bool idle = true;
    *trips = SIZE_MAX;
    if (c->op == CFX_OPID_while_loop)
        CFX_TRY(is_idle(r, c->regions[0], &idle, err));
    if (!idle || !can_bind(c, body, c->operands))
        return CFX_OK;
    CFX_TRY(cfxi_analysis_known_trips(c, r->max_count, trips, err));
    if (*trips != SIZE_MAX &&
        (!are_constant(*trips ? cfx_node_arg(c->outputs[body], 0) : c->container) ||
         !is_small(r, c, *trips)))
        *trips = SIZE_MAX;
    return CFX_OK;
}

/* One copy of region i; `values` are what its inputs are, and become what it gives if it is the
 * body of a loop. They are owned. */
static cfx_status put_copy(const cfxi_control *c, size_t i, int64_t index,
                           const cfx_value *values, cfx_value *result, cfx_error *err)
{
    cfx_graph *g = c->node->graph;
    cfx_graph *region = c->regions[i];
    cfx_node_map *map = cfx_node_map_new(g->allocator, err);
    cfx_status status = map ? CFX_OK : CFX_E_NOMEM;
    cfx_node *n = cfxi_ir_next_input(region, NULL);
    if (status == CFX_OK && cfxi_analysis_control_extra(c) > 0) {
        status = cfx_node_map_set(map, n, cfx_value_int(index), err);
        n = cfxi_ir_next_input(region, n);
    }
    for (size_t k = 0; status == CFX_OK && k < c->n; k++, n = cfxi_ir_next_input(region, n))
        status = cfx_node_map_set(map, n, values[k], err);
    if (status == CFX_OK)
        status = cfxi_analysis_splice(c->node, region, map, NULL, NULL, result, err);
    cfx_node_map_free(map);
    return status;
}

/* The call has given way to `result`. */
static cfx_status finish(walk_job *job, cfx_node *call, cfx_value result)
{
    CFX_TRY(cfxi_analysis_splice_result(call, result, &job->taken, job->err));
    CFX_TRY(cfx_graph_erase(call->graph, call, job->err));
    job->r->changed = job->r->spliced = job->r->any = true;
    return CFX_OK;
}

static cfx_status take_branch(walk_job *job, const cfxi_control *c, size_t i)
{
    cfx_graph *g = c->node->graph;
    cfx_value result = cfx_value_invalid();
    CFX_TRY(put_copy(c, i, 0, c->operands, &result, job->err));
    cfx_status status = finish(job, c->node, result);
    cfx_value_release(g, result);
    return status;
}

/* All turns one after the other; *state is a tuple or list, owned. */
static cfx_status put_turns(const cfxi_control *c, size_t trips, cfx_value *state, cfx_error *err)
{
    const size_t body = cfxi_analysis_control_body(c);
    for (size_t i = 0; i < trips; i++) {
        cfx_value next = cfx_value_invalid();
        CFX_TRY(put_copy(c, body, (int64_t)i, cfx_value_items(*state, NULL), &next, err));
        cfx_value_release(c->node->graph, *state);
        *state = next;
    }
    return CFX_OK;
}

/* The result of a loop is a tuple, whatever its state stands in. */
static cfx_value as_tuple(cfx_graph *g, cfx_value state, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(state, &n);
    return cfx_value_retain(cfx_value_tuple(g, items, n, err));
}

static cfx_status take_turns(walk_job *job, const cfxi_control *c, size_t trips)
{
    cfx_graph *g = c->node->graph;
    const cfx_node *before = c->node->prev;
    cfx_value state = cfx_value_retain(c->container);
    cfx_status status = put_turns(c, trips, &state, job->err);
    cfx_value result = status == CFX_OK ? as_tuple(g, state, job->err) : cfx_value_invalid();
    cfx_value_release(g, state);
    if (status == CFX_OK)
        status = result.kind == CFX_KIND_INVALID ? CFX_E_NOMEM : finish(job, c->node, result);
    else
        cfxi_analysis_unsplice(c->node, before);
    cfx_value_release(g, result);
    return status;
}

/* ---- what regions are given ---------------------------------------------------------------- */

static cfx_status note_truth(const cfxi_resolver *r, const cfx_node *n, cfxi_truth3 truth,
                             cfx_error *err)
{
    return truth == CFXI_NOT_KNOWN
               ? CFX_OK
               : cfx_node_map_set(r->truths, n, cfx_value_bool(truth == CFXI_IS_TRUE), err);
}

/* State that is handed on counts as a use of its input, but must stay one: else it would be seen as
 * state that changes (cfxi_analysis_is_not_output). */
static bool is_only_handed_on(const cfx_node *input)
{
    return input->n_users == 1 && input->users->user->op == CFX_OP_OUTPUT;
}

/* An input that is always `v`; but what is `handed_on` stays an input there. */
static cfx_status give_literal(cfxi_resolver *r, const cfxi_control *c, cfx_node *input,
                               cfx_value v, bool handed_on, cfx_error *err)
{
    if (input->n_users == 0 || (handed_on && is_only_handed_on(input)) || !is_literal(v) ||
        has_nodes(v))
        return CFX_OK;
    cfx_value copy = cfx_value_map(input->graph, c->node->graph, v, NULL, NULL, err);
    if (copy.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    cfx_status status = cfx_node_replace_uses(
        input, copy, handed_on ? cfxi_analysis_is_not_output : NULL, NULL, NULL, err);
    if (status == CFX_OK)
        r->changed = true;
    else
        cfx_value_discard(input->graph, copy);
    return status;
}

typedef struct giving {
    cfxi_resolver *r;
    const cfxi_control *c;
    size_t region;
    bool writes;
    cfx_error *err;
} giving;

/* What is known of operand k is known of the input. */
static cfx_status give_input(void *ctx, cfx_node *n, size_t k)
{
    const giving *g = ctx;
    const cfxi_control *c = g->c;
    const bool loop = cfxi_analysis_control_is_loop(c);
    const cfx_value v = c->operands[k];
    const cfx_value pred = loop ? cfx_value_invalid() : cfxi_analysis_control_subject(c);
    CFX_TRY(
        give_literal(g->r, c, n, v, loop && g->region == cfxi_analysis_control_body(c), g->err));
    if (g->writes)
        return CFX_OK;
    CFX_TRY(note_truth(g->r, n, truth_of(g->r, v), g->err));
    if (v.kind == CFX_KIND_NODE && pred.kind == CFX_KIND_NODE && v.as.node == pred.as.node)
        CFX_TRY(note_truth(g->r, n, g->region == 0 ? CFXI_IS_TRUE : CFXI_IS_FALSE, g->err));
    return CFX_OK;
}

static cfx_status give_regions(cfxi_resolver *r, cfxi_control *c, cfx_error *err)
{
    cfx_effect effect;
    if (!cfxi_analysis_control_is_alone(c))
        return CFX_OK;
    cfx_status status = cfxi_analysis_effect(r->model, c->node, &effect, err);
    for (size_t i = 0; status == CFX_OK && i < c->n_regions; i++)
        status = cfxi_analysis_control_each_kept(
            c, i, give_input, &(giving){r, c, i, effect == CFX_EFFECT_WRITES, err});
    return status;
}

/* ---- the walk ------------------------------------------------------------------------------ */

/* Numbers, items of tuples, and `not` of what is known to be true or false. */
static cfx_status fold_node(walk_job *job, cfx_node *n)
{
    cfx_value v = cfxi_analysis_call_known(n);
    const char *name = n->op == CFX_OP_CALL_FUNCTION && cfx_node_num_args(n) == 1
                           ? cfx_node_target(n, NULL, NULL) : NULL;
    if (name && v.kind == CFX_KIND_INVALID && !n->kwargs &&
        (strcmp(name, "operator.not_") == 0 || strcmp(name, "_operator.not_") == 0)) {
        const cfxi_truth3 of = truth_of(job->r, cfx_node_arg(n, 0));
        v = of == CFXI_NOT_KNOWN ? v : cfx_value_bool(of == CFXI_IS_FALSE);
    }
    if (v.kind == CFX_KIND_INVALID || !cfxi_analysis_is_constant(v))
        return CFX_OK;
    cfx_value_retain(v);
    cfx_status status = cfx_node_replace_uses(n, v, NULL, NULL, NULL, job->err);
    if (status == CFX_OK)
        status = cfx_graph_erase(n->graph, n, job->err);
    cfx_value_release(n->graph, v);
    job->r->changed = true;
    return status;
}

static cfx_status visit(walk_job *job, cfx_node *n)
{
    cfxi_control c;
    size_t trips = SIZE_MAX;
    if (!cfxi_analysis_control_of(n, &c))
        return fold_node(job, n);
    const cfxi_truth3 way = c.op == CFX_OPID_cond
                                ? truth_of(job->r, cfxi_analysis_control_subject(&c))
                                : CFXI_NOT_KNOWN;
    const size_t region = way == CFXI_IS_FALSE;
    if (way != CFXI_NOT_KNOWN && can_bind(&c, region, c.operands) && can_give(&c, region))
        return take_branch(job, &c, region);
    if (c.op != CFX_OPID_cond)
        CFX_TRY(turns_of(job->r, &c, &trips, job->err));
    if (trips != SIZE_MAX)
        return take_turns(job, &c, trips);
    return give_regions(job->r, &c, job->err);
}

static cfx_status walk(walk_job *job, cfx_graph *g)
{
    cfx_node *n = g->root.next;
    while (n != &g->root) {
        cfx_node *before = n->prev;
        cfx_node *next = n->next;
        const bool spliced = job->r->spliced;
        job->r->spliced = false;
        cfx_status status = cfxi_ir_node_erased(n) ? CFX_OK : visit(job, n);
        if (job->r->spliced)  /* go through what stands there now */
            next = before->next;
        job->r->spliced = job->r->spliced || spliced;
        CFX_TRY(status);
        n = next;
    }
    return CFX_OK;
}

cfx_status cfxi_pass_resolve(cfxi_resolver *r, cfx_graph *g, cfx_error *err)
{
    walk_job job = {.r = r, .err = err};
    cfx_iter pin;  /* what is erased stays readable */
    if (!cfxi_analysis_has_regions(g))
        return CFX_OK;
    cfx_iter_begin(&pin, g, false);
    cfx_status status = walk(&job, g);
    if (status == CFX_OK)
        status = cfxi_analysis_erase_taken(&job.taken, err);
    cfx_iter_end(&pin);
    cfxi_base_vec_free(&job.taken, sizeof(cfx_node *), g->allocator);
    return status;
}
