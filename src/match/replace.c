/* replace.c - puts replacements in the place of matches.
 *
 *     before                                            after (relu(neg(x)) replaced by f(x))
 *     %x = placeholder[target=x]()                      %x = placeholder[target=x]()
 *     %neg = call_function[target=torch.neg](%x)        %f = call_function[target=my.f](%x)
 *     %relu = call_function[target=torch.relu](%neg)    %add = call_function[target=my.g](%f, 1)
 *     %add = call_function[target=my.g](%relu, 1)       output(%add)
 *     output(%add)
 *
 * Keeps: names, order and locations of all other nodes, but for inputs of a match that are computed
 * after a first user of its results: those, and what they need, are moved before it.
 *
 * One match after the other; what an input has become by then is looked up. Linear in the matches,
 * what is copied and the users of the results, and in what is moved, which the search has bounded.
 */
#include "match_impl.h"

#include <stdlib.h>

/* What stays the same for all matches. */
typedef struct replace_job {
    cfx_matches *matches;
    cfx_node_map *replaced;  /* a node of the graph to what has taken its place */
    cfx_node_map *copies;    /* a node of a replacement to its value in the graph */
    cfx_error *err;
} replace_job;

/* ---- checking ------------------------------------------------------------------------------ */

/* What a replacement returns: `n` values, each `step` behind the other. The items of a list or
 * tuple, the values of a dict, or one value. */
typedef struct results {
    cfx_value one;
    const cfx_value *items;
    size_t n, step;
} results;

static void read_results(const cfx_graph *r, results *all)
{
    all->one = cfx_node_arg(cfxi_match_pattern_output(r), 0);
    all->items = &all->one;
    all->n = all->step = 1;
    if (all->one.kind == CFX_KIND_TUPLE || all->one.kind == CFX_KIND_LIST)
        all->items = cfx_value_items(all->one, &all->n);
    if (all->one.kind != CFX_KIND_DICT)
        return;
    all->items = cfx_value_items(all->one, &all->n) + 1;
    all->n /= 2;
    all->step = 2;
}

static bool is_inside(const cfx_match_binding *b)
{
    return b->node->op != CFX_OP_PLACEHOLDER && b->node->op != CFX_OP_OUTPUT;
}

static cfx_status check_one(const cfx_match *match, cfx_graph *r, cfx_error *err)
{
    results all;
    size_t n = 0;
    size_t inside = 0;
    if (r == match->graph)
        return cfx_error_set(err, CFX_E_VALUE, "the replacement is the graph that is being "
                             "changed; pass a copy of it");
    const cfx_node *last = NULL;
    for (const cfx_node *at = r->root.next; at != &r->root; at = at->next) {
        n += at->op == CFX_OP_PLACEHOLDER;
        last = at->op == CFX_OP_PLACEHOLDER ? at : last;
    }
    if (n != match->n_inputs)
        return cfx_error_set(err, CFX_E_VALUE, "Placeholder count mismatch: %zu vs %zu: the "
                             "replacement must take as many inputs as the pattern (number %zu); "
                             "its last input is %s", match->n_inputs, n, match->pattern,
                             last ? last->name->data : "missing");
    if (!cfxi_match_pattern_output(r) || cfx_node_num_args(cfxi_match_pattern_output(r)) == 0)
        return cfx_error_set(err, CFX_E_VALUE, "the replacement returns nothing; add an output");
    read_results(r, &all);
    if (all.n != match->n_outputs)
        return cfx_error_set(err, CFX_E_VALUE, "Returning nodes count mismatch: %zu vs %zu: the "
                             "replacement must return one value for each node that the pattern "
                             "returns", match->n_outputs, all.n);
    for (size_t i = 0; i < match->n_bound; i++)
        inside += is_inside(&match->bound[i]);
    return inside > 0 ? CFX_OK
                      : cfx_error_set(err, CFX_E_VALUE, "the pattern has no calls, so there is "
                                      "nothing to replace");
}

static cfx_status see_erased(void *ctx, cfx_node *n)
{
    if (!cfxi_ir_node_erased(n))
        return CFX_OK;
    *(cfx_node **)ctx = n;
    return CFX_E_GRAPH;
}

/* Whoever decided about the matches, or a hook, may have edited the graph. */
static cfx_status check_alive(const cfx_match *match, cfx_error *err)
{
    cfx_node *n = NULL;
    for (size_t i = 0; i < match->n_bound; i++)
        if (cfx_value_each_node(match->bound[i].value, see_erased, &n) != CFX_OK)
            return cfx_error_set(err, CFX_E_GRAPH, "node %%%s of a match was erased before the "
                                 "match was replaced; do not edit the graph in between",
                                 n->name->data);
    return CFX_OK;
}

/* Each replacement is linted once, unless they alternate. */
static cfx_status check_all(const cfx_matches *m, cfx_graph *const *replacements, cfx_error *err)
{
    for (size_t i = 0; i < m->items.size; i++) {
        cfx_graph *r = replacements[i];
        if (i == 0 || r != replacements[i - 1])
            CFX_TRY(cfx_graph_lint(r, NULL, NULL, err));
        CFX_TRY(check_one(cfx_matches_get(m, i), r, err));
        CFX_TRY(check_alive(cfx_matches_get(m, i), err));
    }
    return CFX_OK;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static cfx_status hold(replace_job *job, cfx_graph *g, cfx_value v)
{
    cfxi_vec *held = &job->matches->held;
    if (v.kind == CFX_KIND_NODE)
        return CFX_OK;
    if (!cfxi_base_vec_reserve(held, 1, sizeof(cfxi_held), job->matches->allocator)) {
        cfx_value_discard(g, v);
        return cfxi_base_nomem(job->err);
    }
    ((cfxi_held *)held->data)[held->size++] = (cfxi_held){g, cfx_value_retain(v)};
    return CFX_OK;
}

/* What a node has become. A replacement may give back an input that is itself replaced later, so
 * the way may be long: it is shortened for the next. */
static cfx_value now(void *ctx, cfx_node *n, cfx_error *err)
{
    replace_job *job = ctx;
    cfx_value last = cfx_value_node(n);
    cfx_value v;
    while (last.kind == CFX_KIND_NODE &&
           (v = cfx_node_map_get(job->replaced, last.as.node)).kind != CFX_KIND_INVALID)
        last = v;
    for (cfx_node *at = n; last.kind != CFX_KIND_NODE || at != last.as.node;) {
        v = cfx_node_map_get(job->replaced, at);
        if (v.kind != CFX_KIND_NODE)
            break;
        cfx_node_map_set(job->replaced, at, last, err);  /* it has an entry: cannot fail */
        at = v.as.node;
    }
    return last;
}

static cfx_status renew(replace_job *job, cfx_graph *g, cfx_value *v)
{
    cfx_value fresh = cfx_value_map(g, g, *v, now, job, job->err);
    if (fresh.kind == CFX_KIND_INVALID)
        return job->err->status;
    if (fresh.kind == v->kind && fresh.as.i == v->as.i)
        return CFX_OK;
    *v = fresh;
    return hold(job, g, fresh);
}

static cfx_status renew_inputs(replace_job *job, cfx_match *match)
{
    cfx_value *inputs = (cfx_value *)(uintptr_t)match->inputs;
    cfx_match_binding *bound = (cfx_match_binding *)(uintptr_t)match->bound;
    for (size_t i = 0; i < match->n_inputs; i++)
        CFX_TRY(renew(job, match->graph, &inputs[i]));
    for (size_t i = 0; i < match->n_bound; i++)
        if (bound[i].node->op == CFX_OP_PLACEHOLDER)
            CFX_TRY(renew(job, match->graph, &bound[i].value));
    return CFX_OK;
}

/* ---- the place ----------------------------------------------------------------------------- */

enum { INSIDE, LATE, MARKS };

typedef struct place {
    uint32_t stamp;
    cfx_node *first_user;   /* of a result, outside; or NULL */
    cfx_node *last_inside;
    cfx_node *last_input;   /* or NULL */
} place;

static cfx_status see_input(void *ctx, cfx_node *n)
{
    place *at = ctx;
    if (!at->last_input || n->order > at->last_input->order)
        at->last_input = n;
    return CFX_OK;
}

static void see_users(const cfx_node *n, place *at)
{
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use)) {
        cfx_node *user = use->user;
        bool outside = user->mark != at->stamp + INSIDE;
        if (outside && (!at->first_user || user->order < at->first_user->order))
            at->first_user = user;
    }
}

static place find_place(const cfx_match *match)
{
    place at = {.stamp = cfxi_ir_graph_stamp(match->graph, MARKS)};
    for (size_t i = 0; i < match->n_bound; i++) {
        cfx_node *n = match->bound[i].value.as.node;
        if (!is_inside(&match->bound[i]))
            continue;
        n->mark = at.stamp + INSIDE;
        if (!at.last_inside || n->order > at.last_inside->order)
            at.last_inside = n;
    }
    for (size_t i = 0; i < match->n_outputs; i++)
        if (match->outputs[i].kind == CFX_KIND_NODE &&
            match->outputs[i].as.node->mark == at.stamp + INSIDE)
            see_users(match->outputs[i].as.node, &at);
    for (size_t i = 0; i < match->n_inputs; i++)
        cfx_value_each_node(match->inputs[i], see_input, &at);
    return at;
}

/* What the inputs of a match are computed from, behind its first user. */
typedef struct late {
    const place *at;
    cfxi_vec nodes;  /* of cfx_node * */
    const cfx_allocator *allocator;
} late;

static cfx_status add_late(void *ctx, cfx_node *n)
{
    late *l = ctx;
    if (n->mark == l->at->stamp + INSIDE)
        return CFX_E_GRAPH;
    if (n->mark == l->at->stamp + LATE || n->order < l->at->first_user->order)
        return CFX_OK;
    if (!cfxi_base_vec_reserve(&l->nodes, 1, sizeof n, l->allocator))
        return CFX_E_NOMEM;
    n->mark = l->at->stamp + LATE;
    ((cfx_node **)l->nodes.data)[l->nodes.size++] = n;
    return CFX_OK;
}

/* The search has left out matches that wait for themselves; but a match that gives back one of its
 * inputs may have changed who waits for whom. */
static cfx_status find_late(const cfx_match *match, late *l, cfx_error *err)
{
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < match->n_inputs && status == CFX_OK; i++)
        status = cfx_value_each_node(match->inputs[i], add_late, l);
    for (size_t i = 0; i < l->nodes.size && status == CFX_OK; i++) {
        const cfx_node *n = ((cfx_node **)l->nodes.data)[i];
        for (uint32_t k = 0; k < n->n_inputs && status == CFX_OK; k++)
            status = add_late(l, n->inputs[k].def);
    }
    if (status == CFX_E_GRAPH)
        return cfx_error_set(err, status, "the match at node %%%s and another match depend on each "
                             "other; replace one pattern after the other",
                             l->at->last_inside->name->data);
    return status == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

/* Moves what the inputs need before the first user of a result. */
static cfx_status bring_inputs(const cfx_match *match, const place *at, cfx_error *err)
{
    late l = {.at = at, .allocator = match->graph->allocator};
    cfx_status status = find_late(match, &l, err);
    cfx_node **nodes = l.nodes.data;
    if (l.nodes.size > 1)
        qsort(nodes, l.nodes.size, sizeof *nodes, cfxi_analysis_compare_order);
    for (size_t i = 0; i < l.nodes.size && status == CFX_OK; i++)
        status = cfx_node_prepend(at->first_user, nodes[i], err);
    cfxi_base_vec_free(&l.nodes, sizeof *nodes, l.allocator);
    return status;
}

/* The node before which the replacement goes; NULL for the end. */
static cfx_status choose_place(const cfx_match *match, bool strict, cfx_node **before,
                               cfx_error *err)
{
    place at = find_place(match);
    cfx_node *behind = at.last_inside->next;
    *before = at.first_user;
    if (!*before ||
        (strict && behind->order < at.first_user->order && !cfxi_ir_node_is_root(behind)))
        *before = cfxi_ir_node_is_root(behind) ? NULL : behind;
    if (!at.first_user || !at.last_input || at.last_input->order < at.first_user->order)
        return CFX_OK;
    return bring_inputs(match, &at, err);
}

/* ---- copying ------------------------------------------------------------------------------- */

static cfx_value copy_of(void *ctx, cfx_node *n, cfx_error *err)
{
    const replace_job *job = ctx;
    (void)err;
    return cfx_node_map_get(job->copies, n);
}

static bool is_star(cfx_value v)
{
    return v.kind == CFX_KIND_NODE && cfxi_match_is_star(v.as.node);
}

/* `v` is a copy of `from` in which a `*xs` has become a tuple: its items take its place. */
static cfx_value splice(cfx_graph *g, cfx_value from, cfx_value v, cfx_error *err)
{
    size_t n, more;
    const cfx_value *items = cfx_value_items(v, &n);
    const cfx_value *old = cfx_value_items(from, &n);
    cfxi_vec all = {0};
    if (!items || !old)
        return v;
    for (size_t i = 0; i < n; i++) {
        cfx_value one = is_star(old[i]) ? items[i] : splice(g, old[i], items[i], err);
        const cfx_value *add = is_star(old[i]) ? cfx_value_items(one, &more) : &one;
        more = add == &one ? 1 : more;
        if (one.kind == CFX_KIND_INVALID ||
            !cfxi_base_vec_reserve(&all, more, sizeof one, g->allocator)) {
            cfxi_base_vec_free(&all, sizeof one, g->allocator);
            cfxi_base_nomem(err);
            return cfx_value_invalid();
        }
        if (more > 0)
            memcpy((cfx_value *)all.data + all.size, add, more * sizeof one);
        all.size += more;
    }
    v = cfx_value_seq(g, (cfx_kind)v.kind, all.data, all.size, err);
    cfxi_base_vec_free(&all, sizeof v, g->allocator);
    return v;
}

static bool has_star(const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (cfxi_match_is_star(n->inputs[i].def))
            return true;
    return false;
}

static cfx_status splice_args(cfx_node *copy, const cfx_node *n, cfx_error *err)
{
    cfx_graph *g = copy->graph;
    cfx_value args = splice(g, cfx_node_args(n), cfx_node_args(copy), err);
    if (args.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    cfx_status status = cfx_node_set_args(copy, args, err);
    if (status != CFX_OK)
        cfx_value_discard(g, args);
    return status;
}

/* A copy belongs where the match was, unless its original says where it comes from. */
static void place_copy(cfx_node *copy, const cfx_match *match)
{
    const cfx_node *anchor = match->bound[0].value.as.node;
    if (!copy->location)
        copy->location = anchor->location;
    if (!copy->scope)
        copy->scope = anchor->scope;
}

static cfx_status copy_nodes(replace_job *job, cfx_match *match, cfx_graph *r, cfx_node **made)
{
    size_t inputs = 0;
    cfx_error *err = job->err;
    for (cfx_node *n = r->root.next; n != &r->root && n->op != CFX_OP_OUTPUT; n = n->next) {
        cfx_value v;
        if (n->op == CFX_OP_PLACEHOLDER) {
            v = match->inputs[inputs++];
        } else {
            cfx_node *copy = cfx_graph_copy_node(match->graph, n, copy_of, job, err);
            if (!copy)
                return err->status;
            made[match->n_made++] = copy;
            place_copy(copy, match);
            if (job->matches->opts.variadic && has_star(n))
                CFX_TRY(splice_args(copy, n, err));
            v = cfx_value_node(copy);
        }
        CFX_TRY(cfx_node_map_set(job->copies, n, v, err));
    }
    return CFX_OK;
}

static cfx_status copy_replacement(replace_job *job, cfx_match *match, cfx_graph *r)
{
    cfx_graph *g = match->graph;
    cfx_node *before;
    CFX_TRY(choose_place(match, job->matches->opts.strict, &before, job->err));
    cfx_node **made = cfxi_base_arena_alloc(&job->matches->arena, (r->size + 1) * sizeof *made);
    if (!made)
        return cfxi_base_nomem(job->err);
    match->made = made;
    cfx_insert_point old = cfx_graph_insert_point(g);
    CFX_TRY(cfx_graph_set_insert_point(g, (cfx_insert_point){before, false}, job->err));
    cfx_status status = copy_nodes(job, match, r, made);
    while (status != CFX_OK && match->n_made > 0)
        cfx_graph_erase(g, made[--match->n_made], NULL);
    cfx_graph_set_insert_point(g, old, NULL);
    return status;
}

/* ---- taking the match out ------------------------------------------------------------------ */

static const cfx_match_binding *binding_of(const cfx_match *match, const cfx_node *n)
{
    for (size_t i = 0; i < match->n_bound; i++)
        if (is_inside(&match->bound[i]) && match->bound[i].value.as.node == n)
            return &match->bound[i];
    return NULL;
}

/* Matched nodes keep what they use: they may stand before the replacement, and go anyway. */
static int is_outside(void *ctx, cfx_node *user) { return !binding_of(ctx, user); }

/* Who uses a value that the match only takes and gives back: what stands behind the replacement. */
static int stands_behind(void *ctx, cfx_node *user)
{
    const cfx_match *match = ctx;
    const cfx_node *last = match->n_made > 0 ? match->made[match->n_made - 1]
                                             : match->bound[0].value.as.node;
    return user->order > last->order && is_outside(ctx, user);
}

static cfx_status give_result(replace_job *job, cfx_match *match, size_t i, cfx_value with)
{
    const cfx_value old = match->outputs[i];
    CFX_TRY(hold(job, match->graph, with));
    if (old.kind != CFX_KIND_NODE || cfxi_ir_node_erased(old.as.node) ||
        (with.kind == CFX_KIND_NODE && with.as.node == old.as.node))
        return CFX_OK;
    const cfx_match_binding *own = binding_of(match, old.as.node);
    if (!own)
        return cfx_node_replace_uses(old.as.node, with, stands_behind, NULL, match, job->err);
    CFX_TRY(cfx_node_map_set(job->replaced, old.as.node, with, job->err));
    return cfx_node_replace_uses(old.as.node, with, own->node->n_users > 1 ? is_outside : NULL,
                                 NULL, match, job->err);
}

static cfx_status give_results(replace_job *job, cfx_match *match, const cfx_graph *r)
{
    results all;
    read_results(r, &all);
    cfx_value *given = cfxi_base_arena_alloc(&job->matches->arena, (all.n + 1) * sizeof *given);
    if (!given)
        return cfxi_base_nomem(job->err);
    for (size_t i = 0; i < all.n; i++) {
        cfx_value with = cfx_value_map(match->graph, (cfx_graph *)(uintptr_t)r,
                                       all.items[i * all.step], copy_of, job, job->err);
        if (with.kind == CFX_KIND_INVALID)
            return job->err->status;
        given[i] = with;
        CFX_TRY(give_result(job, match, i, with));
    }
    match->results = given;
    return CFX_OK;
}

/* Last first: the users of a node are gone when it is its turn. One that a hook has given another
 * user stays. */
static cfx_status erase_match(replace_job *job, const cfx_match *match)
{
    const cfx_allocator *allocator = job->matches->allocator;
    const size_t bytes = match->n_bound * sizeof(cfx_node *);
    cfx_node **nodes = cfxi_base_alloc(allocator, bytes);
    cfx_status status = nodes ? CFX_OK : cfxi_base_nomem(job->err);
    size_t n = 0;
    for (size_t i = 0; nodes && i < match->n_bound; i++)
        if (is_inside(&match->bound[i]) && !cfxi_ir_node_erased(match->bound[i].value.as.node))
            nodes[n++] = match->bound[i].value.as.node;
    if (n > 1)
        qsort(nodes, n, sizeof *nodes, cfxi_analysis_compare_order);
    while (n-- > 0 && status == CFX_OK)
        if (nodes[n]->n_users == 0 && !cfxi_ir_node_erased(nodes[n]))
            status = cfx_graph_erase(match->graph, nodes[n], job->err);
    cfxi_base_free(allocator, nodes, bytes);
    return status;
}

static cfx_status replace_one(replace_job *job, cfx_match *match, cfx_graph *r)
{
    CFX_TRY(renew_inputs(job, match));
    CFX_TRY(check_alive(match, job->err));
    CFX_TRY(copy_replacement(job, match, r));
    CFX_TRY(give_results(job, match, r));
    return erase_match(job, match);
}

cfx_status cfx_matches_replace(cfx_matches *matches, cfx_graph *const *replacements,
                               cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(matches, "search result", err));
    CFX_TRY(check_all(matches, replacements, err));
    replace_job job = {.matches = matches, .err = err};
    cfx_status status = CFX_OK;
    job.replaced = cfx_node_map_new(matches->allocator, err);
    job.copies = job.replaced ? cfx_node_map_new(matches->allocator, err) : NULL;
    if (!job.copies)
        status = CFX_E_NOMEM;
    for (size_t i = 0; i < matches->items.size && status == CFX_OK; i++) {
        cfx_match *match = &((cfx_match *)matches->items.data)[i];
        /* Whoever waits for an edit is called now, not while marks are in use. */
        status = cfxi_ir_graph_begin_edit(match->graph, err);
        if (status == CFX_OK)
            status = replace_one(&job, match, replacements[i]);
    }
    cfx_node_map_free(job.copies);
    cfx_node_map_free(job.replaced);
    return status;
}
