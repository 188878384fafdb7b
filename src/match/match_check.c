/* match_check.c - whether what was found can be taken out: nobody outside uses its inner nodes, and
 * nothing outside stands between its nodes.
 */
#include "match_impl.h"

static size_t place_at(const cfxi_search *s, size_t i) { return ((size_t *)s->trail.data)[i]; }

bool cfxi_match_search_inside(const cfxi_search *s, const cfx_node *n)
{
    size_t place = cfxi_match_search_taken_by(s, n);
    return place != SIZE_MAX && !cfxi_match_is_input(s->pattern, place);
}

static bool is_contained(cfxi_search *s, size_t place)
{
    const cfx_node *n = s->bound[place].as.node;
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
        if (!cfxi_match_search_inside(s, use->user))
            return cfxi_match_miss_way(s, n, "it has a user outside the "
                                  "match: %%%s", use->user->name->data);
    return true;
}

/* ---- where it lies ------------------------------------------------------------------------- */

static void see_inputs(const cfxi_search *s, const cfx_node *n, cfxi_match_span *span)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_node *input = n->inputs[i].def;
        if ((!span->last_input || input->order > span->last_input->order) &&
            !cfxi_match_search_inside(s, input))
            span->last_input = input;
    }
}

static void see_users(const cfxi_search *s, const cfx_node *n, cfxi_match_span *span)
{
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
        if ((!span->first_user || use->user->order < span->first_user->order) &&
            !cfxi_match_search_inside(s, use->user))
            span->first_user = use->user;
}

static cfxi_match_span span_of(const cfxi_search *s)
{
    cfxi_match_span span = {NULL, NULL, NULL};
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = place_at(s, i);
        const cfx_node *n = s->bound[place].as.node;
        if (cfxi_match_is_input(s->pattern, place))
            continue;
        if (!span.last || n->order > span.last->order)
            span.last = n;
        see_inputs(s, n, &span);
        if (s->pattern->flags[place] & CFXI_PAT_RETURNED)
            see_users(s, n, &span);
    }
    return span;
}

/* ---- nothing in between -------------------------------------------------------------------- */

/* A walk from the inputs of the match to what they are computed from. Earlier matches count as
 * one node if all will be replaced.
 *
 * It ends at `first`. What depends on the match stands behind a user of one of its results, and so
 * on; only by way of a match that is early can it stand before what it depends on, and then it
 * stands behind the first user of that. So nothing before all these can depend on the match. */
typedef struct walk {
    cfxi_search *s;
    uint64_t first;
    uint32_t stamp;
    cfxi_vec todo;  /* of cfx_node * */
} walk;

static bool is_too_far(walk *w)
{
    w->s->result->steps++;
    return ++w->s->early->steps / CFX_MATCH_WALK > w->s->graph->size;
}

static bool push(walk *w, cfx_node *n)
{
    if (!cfxi_base_vec_reserve(&w->todo, 1, sizeof n, w->s->graph->allocator)) {
        w->s->status = cfxi_base_nomem(w->s->err);
        return false;
    }
    n->mark = w->stamp;
    ((cfx_node **)w->todo.data)[w->todo.size++] = n;
    return true;
}

/* All nodes of an earlier match. */
static bool push_match(walk *w, size_t number)
{
    const cfx_match *match = cfx_matches_get(w->s->result, number);
    for (size_t i = 0; i < match->n_bound; i++) {
        cfx_node *n = match->bound[i].value.as.node;
        if (match->bound[i].node->op != CFX_OP_PLACEHOLDER && n->mark != w->stamp && !push(w, n))
            return false;
    }
    return true;
}

static bool visit(walk *w, cfx_node *n, const cfx_node *from)
{
    if (n->mark == w->stamp)
        return true;
    if (is_too_far(w))
        return cfxi_match_miss_way(w->s, from, "too many nodes lie between the nodes of the match "
                              "to check it for a cycle");
    cfx_value match = cfx_node_map_get(w->s->result->used, n);
    if (match.kind == CFX_KIND_INT && w->s->opts->jointly)
        return push_match(w, (size_t)match.as.i);
    return n->order < w->first || push(w, n);
}

/* Goes on with the inputs of what was reached, until there is nothing left. */
static bool walk_on(walk *w)
{
    while (w->todo.size > 0) {
        const cfx_node *n = ((cfx_node **)w->todo.data)[--w->todo.size];
        for (uint32_t i = 0; i < n->n_inputs; i++) {
            cfx_node *input = n->inputs[i].def;
            if (cfxi_match_search_inside(w->s, input))
                return cfxi_match_miss_way(w->s, n, "it depends on the match and the match depends "
                                      "on it: it uses %%%s", input->name->data);
            if (!visit(w, input, n))
                return false;
        }
    }
    return true;
}

static bool walk_back(walk *w)
{
    const cfxi_search *s = w->s;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = place_at(s, i);
        const cfx_node *n = s->bound[place].as.node;
        for (uint32_t k = 0; !cfxi_match_is_input(s->pattern, place) && k < n->n_inputs; k++)
            if (!cfxi_match_search_inside(s, n->inputs[k].def) && !visit(w, n->inputs[k].def, n))
                return false;
    }
    return walk_on(w);
}

/* Whether nothing can come back to a match that is not early itself: everything that depends on it
 * stands behind it, unless it gets before it by way of an early one. */
static bool is_clear(const cfxi_match_span *span, const cfxi_early *early)
{
    return early->first_user > early->last || !span->first_user || !span->last ||
           span->first_user->order > early->last || span->last->order < early->first_user;
}

/* Whether nothing that depends on the match feeds it. The host is not called meanwhile, so that
 * marks can be used. */
static bool is_convex(cfxi_search *s, const cfxi_match_span *span)
{
    cfxi_early *early = s->early;
    const bool own = cfxi_match_is_early(span);
    if (!own && is_clear(span, early))
        return true;
    walk w = {.s = s, .first = span->first_user->order, .stamp = cfxi_ir_graph_stamp(s->graph, 1)};
    if (early->first_user < w.first)
        w.first = early->first_user;
    bool right = walk_back(&w);
    cfxi_base_vec_free(&w.todo, sizeof(cfx_node *), s->graph->allocator);
    return right;
}

static void note_early(cfxi_early *early, const cfxi_match_span *span)
{
    if (!cfxi_match_is_early(span))
        return;
    if (span->first_user->order < early->first_user)
        early->first_user = span->first_user->order;
    if (span->last->order > early->last)
        early->last = span->last->order;
}

bool cfxi_match_search_check(cfxi_search *s)
{
    const cfxi_pattern *p = s->pattern;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = place_at(s, i);
        bool open = cfxi_match_is_input(p, place) || p->nodes[place] == p->output ||
                    (p->flags[place] & CFXI_PAT_RETURNED);
        if (!open && !is_contained(s, place))
            return false;
    }
    if (s->opts->overlaps && !s->effects)
        return true;
    const cfxi_match_span span = span_of(s);
    if ((!s->opts->overlaps && !is_convex(s, &span)) ||
        (s->effects && span.last && !cfxi_match_search_keeps_effects(s, &span)))
        return false;
    if (s->opts->jointly)
        note_early(s->early, &span);
    return true;
}
