/* match_check.c - whether what was found can be taken out: nobody outside uses its inner nodes, and
 * nothing outside stands between its nodes.
 */
#include "match_impl.h"

#include <stdlib.h>

static size_t place_at(const cfxi_search *s, size_t i) { return ((size_t *)s->trail.data)[i]; }

/* Whether `n` is one of the matched calls, not what a placeholder is bound to. */
static bool is_inside(const cfxi_search *s, const cfx_node *n)
{
    size_t place = cfxi_search_taken_by(s, n);
    return place != SIZE_MAX && !cfxi_is_input(s->pattern, place);
}

static bool is_contained(cfxi_search *s, size_t place)
{
    const cfx_node *n = s->bound[place].as.node;
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
        if (!is_inside(s, use->user))
            return cfxi_miss_node(s, s->pattern->nodes[place], n, "it has a user outside the "
                                  "match: %%%s", use->user->name->data);
    return true;
}

/* ---- nothing in between -------------------------------------------------------------------- */

/* The last of the matched calls. */
static const cfx_node *last_inside(const cfxi_search *s)
{
    const cfx_node *last = NULL;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = place_at(s, i);
        const cfx_node *n = s->bound[place].as.node;
        if (!cfxi_is_input(s->pattern, place) && (!last || n->order > last->order))
            last = n;
    }
    return last;
}

/* The nodes outside, before the last one inside, that depend on the match. */
typedef struct between {
    cfxi_search *s;
    const cfx_node *last;
    cfx_node_map *seen;
    cfxi_vec todo;  /* of const cfx_node * */
} between;

static bool reach(between *b, const cfx_node *n)
{
    if (n->order > b->last->order || is_inside(b->s, n) ||
        cfx_node_map_get(b->seen, n).kind != CFX_KIND_INVALID)
        return true;
    b->s->status = cfx_node_map_set(b->seen, n, cfx_none(), b->s->err);
    if (b->s->status == CFX_OK &&
        !cfxi_vec_reserve(&b->todo, 1, sizeof n, b->s->graph->allocator))
        b->s->status = cfxi_nomem(b->s->err);
    if (b->s->status != CFX_OK)
        return false;
    ((const cfx_node **)b->todo.data)[b->todo.size++] = n;
    return true;
}

static bool reach_users(between *b, const cfx_node *n)
{
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
        if (!reach(b, use->user))
            return false;
    return true;
}

/* False if something that depends on the match feeds it. */
static bool walk_between(between *b)
{
    while (b->todo.size > 0) {
        const cfx_node *n = ((const cfx_node **)b->todo.data)[--b->todo.size];
        for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
            if (is_inside(b->s, use->user))
                return cfxi_miss_node(b->s, b->s->pattern->outputs[0], n, "it depends on the match "
                                      "and is an input of it, through %%%s", use->user->name->data);
        if (!reach_users(b, n))
            return false;
    }
    return true;
}

static bool is_early(const cfxi_search *s, const cfx_node *n, const cfx_node *last)
{
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use))
        if (use->user->order < last->order && !is_inside(s, use->user))
            return true;
    return false;
}

static bool is_convex(cfxi_search *s)
{
    const cfxi_pattern *p = s->pattern;
    between b = {.s = s, .last = last_inside(s)};
    bool right = true;
    for (size_t i = 0; right && b.last && i < p->n_outputs; i++) {
        const cfx_value v = s->bound[cfxi_pattern_place(p, p->outputs[i])];
        if (v.kind != CFX_KIND_NODE || !is_inside(s, v.as.node) ||
            !is_early(s, v.as.node, b.last))
            continue;
        if (!b.seen)
            b.seen = cfx_node_map_new(s->graph->allocator, s->err);
        if (!b.seen)
            s->status = CFX_E_NOMEM;
        right = b.seen && reach_users(&b, v.as.node) && walk_between(&b);
    }
    cfx_node_map_free(b.seen);
    cfxi_vec_free(&b.todo, sizeof(cfx_node *), s->graph->allocator);
    return right;
}

/* ---- effects ------------------------------------------------------------------------------- */

static bool effect_of(cfxi_search *s, cfx_node *n, cfx_effect *effect)
{
    s->status = cfx_node_effect(n, effect, s->err);
    return s->status == CFX_OK;
}

/* What stands between the nodes inside[0..n), in the order of the graph. */
static bool is_undisturbed(cfxi_search *s, cfx_node *const *inside, size_t n)
{
    cfx_effect effect;
    const cfx_node *writer = NULL;
    size_t last_place = 0;
    size_t next = 0;
    for (cfx_node *at = inside[0]; next < n; at = at->next) {
        size_t place = cfxi_search_taken_by(s, at);
        bool mine = at == inside[next];
        next += mine;
        if (at->op == CFX_OP_PLACEHOLDER || at->op == CFX_OP_GET_ATTR || at->op == CFX_OP_OUTPUT)
            continue;
        if (!effect_of(s, at, &effect))
            return false;
        if (!mine && effect == CFX_EFFECT_WRITES)
            return cfxi_miss_node(s, s->pattern->outputs[0], at, "it may write to what the match "
                                  "reads, and stands between its nodes");
        if (!mine && writer)
            return cfxi_miss_node(s, s->pattern->outputs[0], at, "it may read what %%%s of the "
                                  "match writes, and stands between its nodes",
                                  writer->name->data);
        if (!mine || effect != CFX_EFFECT_WRITES)
            continue;
        if (writer && place < last_place)
            return cfxi_miss_node(s, s->pattern->nodes[place], at, "it writes after %%%s, in the "
                                  "pattern before", writer->name->data);
        writer = at;
        last_place = place;
    }
    return true;
}

/* The stretch is walked: strict matching is not linear if matches are wound into one another. */
static bool keeps_effects(cfxi_search *s)
{
    const size_t bytes = s->trail.size * sizeof(cfx_node *);
    cfx_node **inside = cfxi_alloc(s->graph->allocator, bytes);
    size_t n = 0;
    if (!inside) {
        s->status = cfxi_nomem(s->err);
        return false;
    }
    for (size_t i = 0; i < s->trail.size; i++)
        if (!cfxi_is_input(s->pattern, place_at(s, i)))
            inside[n++] = s->bound[place_at(s, i)].as.node;
    qsort(inside, n, sizeof *inside, cfxi_compare_order);
    bool right = n == 0 || is_undisturbed(s, inside, n);
    cfxi_free(s->graph->allocator, inside, bytes);
    return right;
}

bool cfxi_search_check(cfxi_search *s)
{
    const cfxi_pattern *p = s->pattern;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = place_at(s, i);
        bool open = cfxi_is_input(p, place) || p->nodes[place] == p->output ||
                    (p->flags[place] & CFXI_PAT_RETURNED);
        if (!open && !is_contained(s, place))
            return false;
    }
    return (s->opts->overlaps || is_convex(s)) && (!s->opts->strict || keeps_effects(s));
}
