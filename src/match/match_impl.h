/* match_impl.h - what the files of the matcher share: a pattern, a search, its result. */
#ifndef CFXI_MATCH_IMPL_H
#define CFXI_MATCH_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/match.h>

/* ---- a pattern made ready (pattern.c) ------------------------------------------------------ */

enum { CFXI_PAT_RETURNED = 1, CFXI_PAT_STAR = 2, CFXI_PAT_ANY_OF = 4 };

/* How to find candidates for an anchor from what is bound before: the users of the users ... of a
 * node that an earlier anchor depends on, too. Empty if there is none. */
typedef struct cfxi_trail_to {
    cfx_node **steps;  /* the shared node, ..., the anchor */
    size_t n;
} cfxi_trail_to;

typedef struct cfxi_pattern {
    cfx_graph *graph;
    size_t number;        /* its place in the caller's array */
    cfx_node **nodes;     /* by position */
    uint8_t *flags;       /* likewise */
    size_t n;
    cfx_node_map *places; /* node to position: marks would not survive what the host does */
    cfx_node *output;
    cfx_node **anchors;
    cfxi_trail_to *ways;  /* to each anchor */
    size_t n_anchors;
    cfx_node **outputs;   /* what is returned, each once */
    size_t n_outputs;
    size_t n_inputs;
    cfxi_arena arena;     /* of all of it */
} cfxi_pattern;

cfx_status cfxi_match_pattern_open(cfxi_pattern *p, cfx_graph *graph, size_t number,
                                   const cfx_match_options *opts, cfx_error *err);
void cfxi_match_pattern_close(cfxi_pattern *p);

/* The output of a pattern or replacement, or NULL; whether a placeholder is one like `*xs`. */
cfx_node *cfxi_match_pattern_output(const cfx_graph *g);
bool cfxi_match_is_star(const cfx_node *n);

static inline size_t cfxi_match_pattern_place(const cfxi_pattern *p, const cfx_node *n)
{
    return (size_t)cfx_node_map_get(p->places, n).as.i;
}

/* ---- the result (matches.c) ---------------------------------------------------------------- */

/* A graph that has been searched: its erased nodes stay readable. */
typedef struct cfxi_searched {
    cfx_iter pin;
    cfx_graph *graph;
} cfxi_searched;

/* A value made for a match, which holds it. */
typedef struct cfxi_held {
    cfx_graph *graph;
    cfx_value value;
} cfxi_held;

struct cfx_matches {
    const cfx_allocator *allocator;
    cfx_match_options opts;
    cfxi_vec items;     /* of cfx_match */
    cfxi_vec searched;  /* of cfxi_searched */
    cfxi_vec held;      /* of cfxi_held */
    cfx_node_map *used; /* the nodes of matches, but for what placeholders bind: which match */
    size_t steps;
    cfxi_arena arena;
};

/* ---- what must not be mixed up (match_check.c, match_effects.c) ---------------------------- */

/* The matches of a graph so far that have a result which is used before their last node. */
typedef struct cfxi_early {
    uint64_t first_user, last;  /* the first and last of all, by order: first_user > last if none */
    size_t steps;               /* what looking between nodes has cost */
} cfxi_early;

/* Who writes to what in a graph. */
typedef struct cfxi_effects cfxi_effects;

/* NULL in *effects if no node of the graph writes or draws random numbers. */
cfx_status cfxi_match_effects_new(cfx_graph *g, const cfx_module_tree *modules,
                                  cfxi_effects **effects, cfx_error *err);
void cfxi_match_effects_free(cfxi_effects *e);

/* ---- a search (match.c) -------------------------------------------------------------------- */

enum { CFXI_GOAL_OPERAND = -2 };

/* Something of the pattern that must be found to be the same as something of the graph. */
typedef struct cfxi_goal {
    cfx_value p, g;
    const cfx_node *pn, *gn;  /* whose arguments these are; NULL for an anchor */
    int32_t next;             /* what is to be compared afterwards, or -1 */
    int32_t parent;           /* the goal whose item this is, -1 if it is an argument, or OPERAND */
    uint32_t index;           /* which item or argument; keywords come after the others; or which
                               * parameter of the operator */
} cfxi_goal;

/* A commutative call whose operands have been compared in one order only. */
typedef struct cfxi_choice {
    cfx_node *pn, *gn;
    int32_t next;    /* what was to be compared afterwards */
    size_t trail;
} cfxi_choice;

typedef struct cfxi_search {
    const cfxi_pattern *pattern;
    cfx_graph *graph;
    cfx_matches *result;
    const cfx_match_options *opts;
    cfx_error *err;
    cfx_status status;     /* what stopped it */

    cfx_value *bound;      /* by position in the pattern; INVALID if it is not bound */
    cfxi_vec trail;        /* of size_t: positions, as they were bound */
    cfxi_hash_map taken;        /* from nodes that something is bound to: size_t, the position */
    cfxi_vec goals;        /* of cfxi_goal */
    cfxi_vec choices;      /* of cfxi_choice */
    cfxi_vec held;         /* of cfxi_held: what `bind` made for this attempt */
    size_t swaps;
    size_t steps;

    cfxi_early *early;
    const cfxi_effects *effects;  /* NULL unless they count, and something writes */

    cfx_miss *misses;      /* NULL unless an explanation is wanted */
    size_t max_misses;
    size_t *n_misses;
    cfx_miss near;         /* of the candidate that is being tried; `wanted` is NULL if none */
} cfxi_search;

/* Which position `n` is bound to, or SIZE_MAX. */
size_t cfxi_match_search_taken_by(const cfxi_search *s, const cfx_node *n);
static inline bool cfxi_match_is_input(const cfxi_pattern *p, size_t place)
{
    return p->nodes[place]->op == CFX_OP_PLACEHOLDER;
}

/* Whether `n` can be the node `p` of the pattern, as far as it itself goes: 1, 0; or -1 with the
 * search's status. */
int cfxi_match_search_fits(cfxi_search *s, const cfx_node *p, cfx_node *n);
/* Compares all that depends on it. */
bool cfxi_match_search_unify(cfxi_search *s, cfx_node *anchor, cfx_node *n);
/* Takes back all but the first `n` bindings. */
void cfxi_match_search_undo(cfxi_search *s, size_t n);
cfx_status cfxi_match_search_keep(cfxi_search *s, cfx_graph *g, cfx_value v);

/* What is the same however it is spelled (match_spelling.c): the operator of two calls, NONE if
 * they call different ones, or if it cannot be told (see the search's status); and their
 * arguments as goals, by the parameters of its row. `p` is no call of a module. */
cfx_operator cfxi_match_same_operator(cfxi_search *s, const cfx_node *p, const cfx_node *n);
bool cfxi_match_push_operands(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn,
                              cfx_operator op);
bool cfxi_match_search_push(cfxi_search *s, int32_t *list, cfxi_goal goal);  /* false: see status */

/* Whether what is bound now is a match (match_check.c). */
bool cfxi_match_search_check(cfxi_search *s);

/* Where a match lies. */
typedef struct cfxi_match_span {
    const cfx_node *last;        /* of the matched calls; NULL if there is none */
    const cfx_node *first_user;  /* of a result, outside; or NULL */
    const cfx_node *last_input;  /* outside; or NULL */
} cfxi_match_span;

static inline bool cfxi_match_is_early(const cfxi_match_span *span)
{
    return span->first_user && span->last && span->first_user->order < span->last->order;
}

/* Whether the match can stand in one place without changing what anybody reads.
 * (match_effects.c) */
bool cfxi_match_search_keeps_effects(cfxi_search *s, const cfxi_match_span *span);
/* Whether `n` is one of the matched calls, not what a placeholder is bound to. (match_check.c) */
bool cfxi_match_search_inside(const cfxi_search *s, const cfx_node *n);

/* Says that another candidate is tried from now on, NULL for none: what is known of the last one is
 * kept, unless that was a `match`. (match_explain.c) */
void cfxi_match_miss_begin(cfxi_search *s, const cfx_node *candidate, bool match);
/* There is no candidate: says whether one is spelled otherwise. */
void cfxi_match_miss_none(cfxi_search *s, const cfx_node *anchor);

/* Notes why an attempt failed; false, for the caller to return: two values differ, calls
 * have other arguments, a node is in the way of all that was found, or cannot be `wanted`. */
bool cfxi_match_miss_values(cfxi_search *s, const cfxi_goal *goal);
bool cfxi_match_miss_arguments(cfxi_search *s, const cfx_node *pn, const cfx_node *gn);
bool cfxi_match_miss_way(cfxi_search *s, const cfx_node *n, const char *format, ...)
    CFX_PRINTF(3, 4);
bool cfxi_match_miss_node(cfxi_search *s, const cfx_node *wanted, const cfx_node *n,
                          const char *format, ...) CFX_PRINTF(4, 5);

/* How many steps the search took: comparisons, and nodes and edges that were walked. (matches.c) */
size_t cfxi_match_steps(const cfx_matches *matches);

/* Whether a graph can be a pattern: what cfx_matches_find checks first. (pattern.c) */
cfx_status cfxi_match_check_pattern(cfx_graph *pattern, cfx_error *err);

#endif
