/* match.c - comparing a pattern with a place in a graph.
 *
 * From an anchor backwards, because a node has many users but its arguments are what they are: a
 * list of goals (this value of the pattern, that value of the graph) is worked off, each node adds
 * the goals for its arguments in front. No recursion: a pattern may be a million nodes deep. What
 * is bound is written on a trail, so that it can be taken back.
 */
#include "match_impl.h"

/* ---- what is bound ------------------------------------------------------------------------- */

size_t cfxi_match_search_taken_by(const cfxi_search *s, const cfx_node *n)
{
    const size_t *place = cfxi_base_map_find(&s->taken, n, sizeof *place);
    return place ? *place : SIZE_MAX;
}

static void bind(cfxi_search *s, size_t place, cfx_value v)
{
    s->bound[place] = v;
    ((size_t *)s->trail.data)[s->trail.size++] = place;  /* as long as the pattern */
    if (v.kind == CFX_KIND_NODE) {
        size_t *by = cfxi_base_map_add(&s->taken, v.as.node, sizeof *by, s->graph->allocator);
        *by = place;  /* there is room for all that the pattern has */
    }
}

void cfxi_match_search_undo(cfxi_search *s, size_t n)
{
    while (s->trail.size > n) {
        size_t place = ((size_t *)s->trail.data)[--s->trail.size];
        if (s->bound[place].kind == CFX_KIND_NODE)
            cfxi_base_map_remove(&s->taken, s->bound[place].as.node, sizeof(size_t));
        s->bound[place] = cfx_value_invalid();
    }
}

cfx_status cfxi_match_search_keep(cfxi_search *s, cfx_graph *g, cfx_value v)
{
    if (!cfxi_base_vec_reserve(&s->held, 1, sizeof(cfxi_held), s->graph->allocator)) {
        cfx_value_discard(g, v);
        return cfxi_base_nomem(s->err);
    }
    ((cfxi_held *)s->held.data)[s->held.size++] = (cfxi_held){g, cfx_value_retain(v)};
    return CFX_OK;
}

/* ---- goals --------------------------------------------------------------------------------- */

static bool stop(cfxi_search *s, cfx_status status)
{
    s->status = status;
    return false;
}

static cfxi_goal *goal_at(const cfxi_search *s, int32_t i)
{
    return &((cfxi_goal *)s->goals.data)[i];
}

/* Adds a goal in front of *list. */
bool cfxi_match_search_push(cfxi_search *s, int32_t *list, cfxi_goal goal)
{
    if (s->goals.size >= INT32_MAX)
        return stop(s, cfx_error_set(s->err, CFX_E_LIMIT, "the pattern is too large"));
    if (!cfxi_base_vec_reserve(&s->goals, 1, sizeof goal, s->graph->allocator))
        return stop(s, cfxi_base_nomem(s->err));
    goal.next = *list;
    *list = (int32_t)s->goals.size;
    *goal_at(s, (int32_t)s->goals.size++) = goal;
    return true;
}

static bool is_list(cfx_value v) { return v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE; }

/* The place in the pattern of a `*xs` among the items, or SIZE_MAX. */
static size_t star_among(const cfxi_search *s, const cfx_value *items, size_t n, size_t *at)
{
    for (*at = 0; s->opts->variadic && *at < n; ++*at) {
        if (items[*at].kind != CFX_KIND_NODE)
            continue;
        size_t place = cfxi_match_pattern_place(s->pattern, items[*at].as.node);
        if (s->pattern->flags[place] & CFXI_PAT_STAR)
            return place;
    }
    return SIZE_MAX;
}

/* Items that must be the same one by one. `like` says whose they are. */
static bool push_items(cfxi_search *s, int32_t *list, const cfx_value *p, const cfx_value *g,
                       size_t n, cfxi_goal like)
{
    for (size_t i = n; i-- > 0;) {
        cfxi_goal goal = like;
        goal.p = p[i];
        goal.g = g[i];
        goal.index = like.index + (uint32_t)i;
        if (!cfxi_match_search_push(s, list, goal))
            return false;
    }
    return true;
}

/* Items with a `*xs` at `star`, which takes as many of the graph's as the others leave. */
static bool push_starred(cfxi_search *s, int32_t *list, const cfx_value *p, size_t np,
                         const cfx_value *g, size_t ng, size_t star, cfxi_goal like)
{
    size_t behind = np - star - 1;
    cfx_value taken = cfx_value_tuple(s->graph, g + star, ng - behind - star, s->err);
    if (taken.kind == CFX_KIND_INVALID)
        return stop(s, CFX_E_NOMEM);
    cfx_status status = cfxi_match_search_keep(s, s->graph, taken);
    if (status != CFX_OK)
        return stop(s, status);
    cfxi_goal tail = like;
    cfxi_goal goal = like;
    tail.index += (uint32_t)star + 1;
    goal.index += (uint32_t)star;
    goal.p = p[star];
    goal.g = taken;
    return push_items(s, list, p + star + 1, g + ng - behind, behind, tail) &&
           cfxi_match_search_push(s, list, goal) && push_items(s, list, p, g, star, like);
}

/* False if there are too few or too many. */
static bool push_list(cfxi_search *s, int32_t *list, const cfx_value *p, size_t np,
                      const cfx_value *g, size_t ng, cfxi_goal like)
{
    size_t star;
    if (star_among(s, p, np, &star) == SIZE_MAX)
        return np == ng && push_items(s, list, p, g, np, like);
    return ng + 1 >= np && push_starred(s, list, p, np, g, ng, star, like);
}

/* ---- values -------------------------------------------------------------------------------- */

static bool same_literal(cfx_value p, cfx_value g)
{
    const cfxi_same how = {.floats = CFXI_FLOATS_BITS, .shape_only = true};
    return cfxi_ir_same_value(&how, p, g);
}

/* What a placeholder is bound to, and what it would be bound to now: as Python's == has it, but for
 * the sign of zero. */
static bool same_again(cfx_value a, cfx_value b)
{
    const cfxi_same how = {.floats = CFXI_FLOATS_BITS, .numbers = true, .shape_only = true};
    return cfxi_ir_same_value(&how, a, b);
}

/* Dicts are the same in any order. */
static bool push_dict(cfxi_search *s, int32_t *list, const cfxi_goal *goal, cfxi_goal like)
{
    size_t np, ng;
    const cfx_value *p = cfx_value_items(goal->p, &np);
    const cfx_value *g = cfx_value_items(goal->g, &ng);
    if (np != ng)
        return cfxi_match_miss_values(s, goal);
    for (size_t i = np; i > 0; i -= 2) {
        size_t k = 0;
        while (k < ng && !same_literal(p[i - 2], g[k]))
            k += 2;
        if (k == ng)
            return cfxi_match_miss_values(s, goal);
        like.p = p[i - 1];
        like.g = g[k + 1];
        like.index = (uint32_t)(i - 1);
        if (!cfxi_match_search_push(s, list, like))
            return false;
    }
    return true;
}

/* Two values, of which the pattern's is no node. */
static bool unify_value(cfxi_search *s, int32_t at, int32_t *list)
{
    const cfxi_goal goal = *goal_at(s, at);
    cfxi_goal like = {.pn = goal.pn, .gn = goal.gn, .parent = at};
    bool lists = is_list(goal.p) && is_list(goal.g);
    if (s->opts->ignore_literals && !lists)
        return true;
    if (lists || (goal.p.kind == goal.g.kind && (goal.p.kind == CFX_KIND_SLICE ||
                                                 goal.p.kind == CFX_KIND_NAMEDTUPLE))) {
        size_t np, ng;
        const cfx_value *p = cfx_value_items(goal.p, &np);
        const cfx_value *g = cfx_value_items(goal.g, &ng);
        bool fits = push_list(s, list, p, np, g, ng, like);
        return fits || (s->status == CFX_OK && cfxi_match_miss_values(s, &goal));
    }
    if (goal.p.kind == CFX_KIND_DICT && goal.g.kind == CFX_KIND_DICT)
        return push_dict(s, list, &goal, like);
    return same_literal(goal.p, goal.g) || cfxi_match_miss_values(s, &goal);
}

/* ---- arguments ----------------------------------------------------------------------------- */

static bool same_keys(const cfx_seq *p, const cfx_seq *g)
{
    uint32_t n = p ? p->size : 0;
    if (n != (g ? g->size : 0))
        return false;
    for (uint32_t i = 0; i < n; i += 2)
        if (!same_literal(p->items[i], g->items[i]))
            return false;
    return true;
}

/* The arguments of both in one order, as whoever knows the callee has it. */
static bool push_bound(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn, cfxi_goal like)
{
    cfx_node *both[] = {pn, gn};
    cfx_value args[] = {cfx_value_invalid(), cfx_value_invalid()};
    for (int i = 0; i < 2; i++) {
        cfx_status status = s->opts->bind ? s->opts->bind(s->opts->ctx, both[i], &args[i], s->err)
                                          : CFX_OK;
        if (status == CFX_OK && args[i].kind == CFX_KIND_INVALID)
            return cfxi_match_miss_arguments(s, pn, gn);
        if (status == CFX_OK)
            status = cfxi_match_search_keep(s, both[i]->graph, args[i]);
        if (status != CFX_OK)
            return stop(s, cfxi_base_failed(s->err, status));
    }
    size_t np, ng;
    const cfx_value *p = cfx_value_items(args[0], &np);
    const cfx_value *g = cfx_value_items(args[1], &ng);
    bool fits = push_list(s, list, p, np, g, ng, like);
    return fits || (s->status == CFX_OK &&
                    cfxi_match_miss_node(s, pn, gn, "the pattern has %zu arguments, the graph %zu",
                                         np, ng));
}

/* The values of the keywords; the index is that of the key among the arguments. */
static bool push_kwargs(cfxi_search *s, int32_t *list, const cfx_node *pn, const cfx_node *gn,
                        cfxi_goal like)
{
    for (uint32_t i = pn->kwargs ? pn->kwargs->size : 0; i > 0; i -= 2) {
        like.p = pn->kwargs->items[i - 1];
        like.g = gn->kwargs->items[i - 1];
        like.index = (uint32_t)cfx_node_num_args(pn) + i / 2 - 1;
        if (!cfxi_match_search_push(s, list, like))
            return false;
    }
    return true;
}

static bool push_args(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn, uint8_t flags)
{
    cfxi_goal like = {.pn = pn, .gn = gn, .parent = -1};
    size_t skip = flags & CFXI_PAT_ANY_OF ? 1 : 0;  /* the targets */
    const cfx_value *p = pn->args ? pn->args->items + skip : NULL;
    const cfx_value *g = gn->args ? gn->args->items : NULL;
    size_t np = cfx_node_num_args(pn) - skip;
    size_t ng = cfx_node_num_args(gn);
    size_t star;
    bool enough = star_among(s, p, np, &star) == SIZE_MAX ? np == ng : ng + 1 >= np;
    if (!enough || !same_keys(pn->kwargs, gn->kwargs))
        return push_bound(s, list, pn, gn, like);
    like.index = (uint32_t)skip;
    return push_kwargs(s, list, pn, gn, like) && push_list(s, list, p, np, g, ng, like);
}

/* ---- operands that may be swapped ---------------------------------------------------------- */

static bool commutes(const cfxi_search *s, const cfx_node *pn, const cfx_node *gn)
{
    return s->opts->commutative && !pn->kwargs && !gn->kwargs && cfx_node_num_args(pn) == 2 &&
           cfx_node_num_args(gn) == 2 &&
           (cfx_operator_flags(cfx_node_operator(pn)) & CFX_OPERATOR_COMMUTES);
}

static bool push_pair(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn, bool swap)
{
    for (uint32_t i = 2; i-- > 0;) {
        cfxi_goal goal = {.p = pn->args->items[i], .g = gn->args->items[swap ? 1 - i : i],
                          .pn = pn, .gn = gn, .parent = -1, .index = i};
        if (!cfxi_match_search_push(s, list, goal))
            return false;
    }
    return true;
}

/* As they stand, and notes that they can be swapped. */
static bool push_either(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn)
{
    if (!cfxi_base_vec_reserve(&s->choices, 1, sizeof(cfxi_choice), s->graph->allocator))
        return stop(s, cfxi_base_nomem(s->err));
    ((cfxi_choice *)s->choices.data)[s->choices.size++] =
        (cfxi_choice){.pn = pn, .gn = gn, .next = *list, .trail = s->trail.size};
    return push_pair(s, list, pn, gn, false);
}

/* Goes back to the last call whose operands have not been swapped yet; false if there is none. */
static bool retry(cfxi_search *s, int32_t *list)
{
    if (s->status != CFX_OK || s->choices.size == 0 || ++s->swaps > CFX_MATCH_SWAPS)
        return false;
    const cfxi_choice last = ((cfxi_choice *)s->choices.data)[--s->choices.size];
    cfxi_match_search_undo(s, last.trail);
    *list = last.next;
    return push_pair(s, list, last.pn, last.gn, true);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* One of the targets of a `cfx.any_of`: a function, or ".name" for a method. */
static bool is_target(cfx_value target, const cfx_node *n)
{
    if (n->op == CFX_OP_CALL_FUNCTION)
        return target.kind == CFX_KIND_HOST && cfxi_ir_same_ref(target.as.ref, n->callee->ref);
    if (n->op != CFX_OP_CALL_METHOD || target.kind != CFX_KIND_STR)
        return false;
    return target.as.str->data[0] == '.' &&
           strcmp(target.as.str->data + 1, n->callee->ref->name->data) == 0;
}

static bool is_any_of(const cfx_node *p, const cfx_node *n)
{
    size_t count;
    const cfx_value *targets = cfx_value_items(cfx_node_arg(p, 0), &count);
    for (size_t i = 0; i < count; i++)
        if (is_target(targets[i], n))
            return true;
    return false;
}

int cfxi_match_search_fits(cfxi_search *s, const cfx_node *p, cfx_node *n)
{
    if (p->op == CFX_OP_PLACEHOLDER)
        return !s->opts->match_placeholder || n->op == CFX_OP_PLACEHOLDER;
    if (s->pattern->flags[cfxi_match_pattern_place(s->pattern, p)] & CFXI_PAT_ANY_OF)
        return is_any_of(p, n);
    if (cfxi_match_same_operator(s, p, n) != CFX_OPID_NONE)
        return 1;
    if (s->status != CFX_OK)
        return -1;
    if (p->op != n->op)
        return 0;
    if (p->op == CFX_OP_OUTPUT)
        return 1;
    if (p->op != CFX_OP_GET_ATTR || !s->opts->same_attr)
        return cfxi_ir_same_ref(p->callee->ref, n->callee->ref);
    int same = s->opts->same_attr(s->opts->ctx, (cfx_node *)(uintptr_t)p, n);
    if (same < 0)
        stop(s, cfx_error_set(s->err, CFX_E_HOST, "the attribute of %%%s could not be compared",
                              n->name->data));
    return same;
}

/* Whether `n` may be bound to it at all. */
static bool is_free(cfxi_search *s, size_t place, cfx_node *n)
{
    const cfxi_pattern *p = s->pattern;
    size_t other = cfxi_match_search_taken_by(s, n);
    if (other != SIZE_MAX)
        return cfxi_match_miss_node(s, p->nodes[place], n, "it is already matched to %%%s",
                                    p->nodes[other]->name->data);
    if (s->opts->overlaps || cfxi_match_is_input(p, place))
        return true;
    if (cfx_node_map_get(s->result->used, n).kind == CFX_KIND_INVALID)
        return true;
    return cfxi_match_miss_node(s, p->nodes[place], n, "it belongs to another match");
}

/* A node of the pattern and whatever the graph has there. `named` is for anchors. */
static bool unify_node(cfxi_search *s, const cfxi_goal *goal, int32_t *list, bool named)
{
    cfx_node *pn = goal->p.as.node;
    size_t place = cfxi_match_pattern_place(s->pattern, pn);
    bool literal = goal->g.kind != CFX_KIND_NODE;
    if (s->bound[place].kind != CFX_KIND_INVALID)
        return (literal && s->opts->ignore_literals) || same_again(s->bound[place], goal->g) ||
               cfxi_match_miss_values(s, goal);
    if (literal) {
        if (pn->op != CFX_OP_PLACEHOLDER || s->opts->match_placeholder)
            return cfxi_match_miss_values(s, goal);
        bind(s, place, goal->g);
        return true;
    }
    cfx_node *n = goal->g.as.node;
    if (!is_free(s, place, n))
        return false;
    int fits = named ? 1 : cfxi_match_search_fits(s, pn, n);
    if (fits <= 0)
        return fits == 0 && cfxi_match_miss_values(s, goal);
    bind(s, place, goal->g);
    if (pn->op == CFX_OP_PLACEHOLDER)
        return true;
    if (commutes(s, pn, n))
        return push_either(s, list, pn, n);
    cfx_operator row = cfxi_match_same_operator(s, pn, n);
    if (s->status != CFX_OK)
        return false;
    return row == CFX_OPID_NONE ? push_args(s, list, pn, n, s->pattern->flags[place])
                                : cfxi_match_push_operands(s, list, pn, n, row);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool is_named(const cfxi_search *s, const cfx_node *n)
{
    return s->opts->node_name && s->opts->node_name[0] && strstr(n->name->data, s->opts->node_name);
}

bool cfxi_match_search_unify(cfxi_search *s, cfx_node *anchor, cfx_node *n)
{
    int32_t list = -1;
    s->goals.size = s->choices.size = 0;
    cfxi_goal first = {.p = cfx_value_node(anchor), .g = cfx_value_node(n), .parent = -1};
    if (!unify_node(s, &first, &list, is_named(s, n)))
        return false;
    while (list >= 0) {
        const cfxi_goal goal = *goal_at(s, list);
        int32_t at = list;
        s->result->steps++;
        if (++s->steps > CFX_MATCH_STEPS)
            return stop(s, cfx_error_set(s->err, CFX_E_LIMIT, "the pattern matches in too many "
                                         "ways at node %%%s; give it fewer unconnected outputs",
                                         n->name->data));
        list = goal.next;
        bool same = goal.p.kind == CFX_KIND_NODE ? unify_node(s, &goal, &list, false)
                                                 : unify_value(s, at, &list);
        if (!same && !retry(s, &list))
            return false;
    }
    return true;
}
