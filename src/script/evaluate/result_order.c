/* result_order.c - which result of a branch comes first, and which state of a loop.
 *
 * The order in which a program assigns its variables is its own affair. So that programs which do
 * the same give the same graph, the order is one that can be read off the nodes: what is computed
 * comes as it is computed, what came in as it is first used, then literals. The code that is
 * written of a graph assigns in another order than the one it was captured from; captured again, it
 * gives this graph.
 */
#include "graph_control_impl.h"

#include <stdlib.h>

/* What a value is sorted by. */
typedef struct key {
    int group;
    int64_t rank;
    cfx_value literal;
} key;

enum { MOST_KEYS = 3 };

typedef struct item {
    key keys[MOST_KEYS];
    size_t at;  /* where it was: what is equal stays as it is */
} item;

/* ---- ranks --------------------------------------------------------------------------------- */

static bool rank_node(cfx_evaluator *ev, cfx_node_map *ranks, const cfx_node *n, int64_t *next)
{
    return cfx_node_map_get(ranks, n).kind != CFX_KIND_INVALID ||
           cfx_node_map_set(ranks, n, cfx_value_int((*next)++), ev->err) == CFX_OK;
}

/* Numbers the nodes of a span, and what they read where they first do. Those that come in otherwise
 * are not numbered by where they stand: `inputs` of them, the first of the span. */
static bool rank_span(cfx_evaluator *ev, cfx_node_map *ranks, const cfxi_span *s, int64_t *next)
{
    for (cfx_node *n = cfx_node_next(s->first); n && n != s->last; n = cfx_node_next(n)) {
        for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
            if (!rank_node(ev, ranks, cfx_node_input(n, i), next))
                return false;
        if (cfx_node_op(n) != CFX_OP_PLACEHOLDER && !rank_node(ev, ranks, n, next))
            return false;
    }
    return true;
}

static int64_t rank_of(const cfx_node_map *ranks, const cfx_node *n)
{
    const cfx_value rank = cfx_node_map_get(ranks, n);
    return rank.kind == CFX_KIND_INT ? rank.as.i : INT64_MAX;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static int order_of(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare_text(cfx_value a, cfx_value b)
{
    size_t n_a, n_b;
    const char *in_a = cfx_value_text(a, &n_a);
    const char *in_b = cfx_value_text(b, &n_b);
    const int order = memcmp(in_a, in_b, n_a < n_b ? n_a : n_b);
    return order ? order : order_of((int64_t)n_a, (int64_t)n_b);
}

/* Of literals; all others are alike. */
static int compare_literals(cfx_value a, cfx_value b)
{
    if (a.kind != b.kind)
        return order_of(a.kind, b.kind);
    if (a.kind == CFX_KIND_BOOL)
        return order_of(a.as.b, b.as.b);
    if (a.kind == CFX_KIND_INT)
        return order_of(a.as.i, b.as.i);
    if (a.kind == CFX_KIND_FLOAT)
        return (a.as.f > b.as.f) - (a.as.f < b.as.f);
    return a.kind == CFX_KIND_STR ? compare_text(a, b) : 0;
}

static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    for (size_t i = 0; i < MOST_KEYS; i++) {
        int order = order_of(x->keys[i].group, y->keys[i].group);
        if (!order)
            order = order_of(x->keys[i].rank, y->keys[i].rank);
        if (!order)
            order = compare_literals(x->keys[i].literal, y->keys[i].literal);
        if (order)
            return order;
    }
    return x->at < y->at ? -1 : 1;
}

static bool sort(cfx_evaluator *ev, item *items, size_t n, size_t **order)
{
    *order = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof **order);
    if (!*order)
        return false;
    qsort(items, n, sizeof *items, compare_items);
    for (size_t i = 0; i < n; i++)
        (*order)[i] = items[i].at;
    return true;
}

/* ---- branches and loops -------------------------------------------------------------------- */

enum { FIRST, SECOND, LAST };

/* A value of a branch: computed in it, come in, or a literal. */
static key key_of_result(const cfx_node_map *ranks, const cfxi_span *s, cfx_value v)
{
    if (v.kind != CFX_KIND_NODE)
        return (key){.group = LAST, .literal = v};
    const bool own = cfx_node_before(s->first, v.as.node);
    return (key){.group = own ? FIRST : SECOND, .rank = rank_of(ranks, v.as.node)};
}

bool cfxi_eval_order_results(cfx_evaluator *ev, const cfxi_span *const *sides,
                             cfx_value *const *results, size_t n, size_t **order)
{
    int64_t next = 0;
    cfx_node_map *ranks = cfx_node_map_new(ev->allocator, ev->err);
    item *items = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *items);
    bool fine = ranks && items && rank_span(ev, ranks, sides[0], &next) &&
                rank_span(ev, ranks, sides[1], &next);
    for (size_t i = 0; fine && i < n; i++) {
        items[i] = (item){.at = i};
        for (size_t k = 0; k < 2; k++)
            items[i].keys[k] = key_of_result(ranks, sides[k], results[k][i]);
    }
    fine = fine && sort(ev, items, n, order);
    cfx_node_map_free(ranks);
    return fine;
}

/* What a value of the state becomes in a round: another one of them, something computed, or a
 * literal. */
static item item_of_state(const cfx_node_map *ranks, const cfx_node *input, cfx_value next,
                          size_t at)
{
    const cfx_node *n = next.kind == CFX_KIND_NODE ? next.as.node : NULL;
    const bool computed = n && cfx_node_op(n) != CFX_OP_PLACEHOLDER;
    item made = {.at = at};
    made.keys[0] = (key){.group = !n ? LAST : computed ? SECOND : FIRST,
                         .rank = computed ? rank_of(ranks, n) : 0};
    made.keys[1].rank = rank_of(ranks, input);
    if (n)
        made.keys[2].rank = rank_of(ranks, n);
    else
        made.keys[2].literal = next;
    return made;
}

bool cfxi_eval_order_state(cfx_evaluator *ev, const cfxi_span *test, const cfxi_span *body,
                           cfx_node *const *inputs, const cfx_value *next, size_t n, size_t **order)
{
    int64_t rank = 0;
    cfx_node_map *ranks = cfx_node_map_new(ev->allocator, ev->err);
    item *items = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *items);
    bool fine = ranks && items && rank_span(ev, ranks, body, &rank) &&
                (!test || rank_span(ev, ranks, test, &rank));
    for (size_t i = 0; fine && i < n; i++)
        items[i] = item_of_state(ranks, inputs[i], next[i], i);
    fine = fine && sort(ev, items, n, order);
    cfx_node_map_free(ranks);
    return fine;
}
