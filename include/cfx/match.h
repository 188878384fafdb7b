/* match.h - finding a pattern in a graph, and putting something else in its place.
 *
 * A pattern is a graph. Its placeholders stand for anything; its calls and get_attrs must be found
 * as they are; what it returns may be used by others, all else may not:
 *
 *     pattern                                              replacement
 *     %a = placeholder[target=a]()                         %a = placeholder[target=a]()
 *     %n = placeholder[target=n]()                         %n = placeholder[target=n]()
 *     %mul = call_function[target=torch.mul](%a, %n)       %f = call_function[target=my.f](%a, %n)
 *     %add = call_function[target=torch.add](%mul, 1)      output(%f)
 *     output(%add)
 *
 * What is the same (as in torch.fx, unless an option says otherwise):
 *   - Calls: same opcode, same target, as many arguments, the same keywords in the same order. If
 *     only the last two differ, `bind` is asked for the arguments of both in one order.
 *   - A placeholder binds a node, a literal or a whole container. Bound again, it must be the same
 *     (1, 1.0 and True are). Two nodes of the pattern are never the same node of the graph.
 *   - Literals: same kind, and equal as Python says: 0.0 is -0.0, nan is not nan. Lists and tuples
 *     count as one kind. (torch.fx never matches a dict or a slice with a node in it: here they
 *     are compared part by part.)
 *   - get_attr: as `same_attr` says; without it, the same path. call_module: the same path.
 *   - Names, types, locations and metadata do not matter.
 *
 * Which matches: the *anchors* of a pattern are what it returns and nobody in it uses. Each node
 * of the graph that could be the first anchor is tried in the order of the graph, then each that
 * could be the second, and so on. A match that shares a node with an earlier one (not counting
 * what placeholders bind) is dropped, so the first one wins; of several patterns, the one that
 * comes first in the array wins. A match is also dropped if something outside it stands between:
 * computed from one of its results, and an input of it.
 *
 * All matches are found in the graph as it is, then all are replaced. What a replacement brings in
 * is not searched again, so replacing a pattern by something that contains it terminates.
 *
 * Cost: linear in the graph for a fixed pattern. The candidates come from the graph's lists of
 * callees, so that a pattern that is not there costs nothing to speak of, nor do a hundred of them.
 * One thing can cost more: several anchors (each further one is looked for among the users of what
 * is bound already; one that hangs on nothing, among all its callees). An attempt ends with
 * CFX_E_LIMIT after CFX_MATCH_STEPS comparisons. If a result is used before the last input is
 * computed, what that input is computed from is searched, back to that use. Such stretches may
 * overlap, and no way is known that is linear then; after CFX_MATCH_WALK steps for each node of the
 * graph, further matches of this kind are left out.
 */
#ifndef CFX_MATCH_H
#define CFX_MATCH_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* So many comparisons are made at most for one candidate of the first anchor, and so often are
 * operands swapped that commute: a candidate that needs more is left out. */
#define CFX_MATCH_STEPS 100000000
#define CFX_MATCH_SWAPS 10000
#define CFX_MATCH_WALK 64

typedef struct cfx_match_options {
    bool match_output;       /* the output belongs to the pattern, too */
    bool match_placeholder;  /* placeholders match placeholders only */
    bool ignore_literals;    /* a literal of the pattern stands for anything */
    bool overlaps;           /* keep matches that share nodes, or that something stands between */
    bool regions;            /* search the regions of the graph, too */

    /* All matches are to be replaced: those are dropped, too, that would wait for themselves by way
     * of earlier matches, when each of these is one thing whose results all need all its inputs. */
    bool jointly;

    /* A placeholder with a target like "*xs", as an item of a list or tuple, binds any number of
     * items: a tuple of them. It may stand once in each. In a replacement it stands for them. */
    bool variadic;

    /* Calls that the operator table (ops.h) knows by the same row are the same, however they are
     * spelled, if their arguments are, parameter by parameter. What one leaves out is what the row
     * says its default is; a pooling's stride, its kernel_size. One integer is as good as several
     * of the same where the row takes several. In the graph also calls of modules (see `modules`)
     * with one argument: their attributes are the other parameters (kernel_size, p, train). Not
     * those with weights, which a replacement could not use; nor with a state, nor in place. */
    bool any_spelling;

    /* `a + b` is `b + a`: calls with two arguments whose row says that they commute. The first way
     * that fits counts: it is not tried again if another anchor then does not fit. */
    bool commutative;

    /* Take effects into account, which torch.fx does not. The nodes of a match become one, which
     * stands behind the last of them, or before the first user of a result if that comes earlier. A
     * match is dropped if one of its nodes would have to pass a call for that which may write to
     * what it reads, or read or write what it writes (cfx_node_each_touch; values that may share
     * memory count as one, and so do all that come from outside the graph); or if a node that
     * writes, and another one that reads or writes the same, come in another order than in the
     * pattern; or if inputs would have to be moved over anything that writes. */
    bool strict;

    /* What the paths of the graph lead to; NULL if that is not known: then modules have no other
     * spelling, and `strict` trusts nobody that calls one. */
    const cfx_module_tree *modules;

    /* A node whose name contains this may be any anchor, whatever it calls; NULL for none. */
    const char *node_name;

    /* The first may say that a node `n` of the graph does for `p` of the pattern: 1, 0, or -1 with
     * the host's exception. The second gives a call's arguments by position and without what is
     * absent, as a tuple of n's graph (floating); or leaves *args INVALID if it knows none. Either
     * may be NULL. They can read the graphs but not edit them. */
    int (*same_attr)(void *ctx, cfx_node *p, cfx_node *n);
    cfx_status (*bind)(void *ctx, cfx_node *n, cfx_value *args, cfx_error *err);
    void *ctx;
} cfx_match_options;

/* ---- what was found ------------------------------------------------------------------------ */

typedef struct cfx_match_binding {
    cfx_node *node;   /* of the pattern */
    cfx_value value;  /* a node, or what a placeholder stands for */
} cfx_match_binding;

/* One match. Everything belongs to the cfx_matches. */
typedef struct cfx_match {
    size_t pattern;            /* which one, by its place in the array */
    cfx_graph *graph;          /* the graph, or a region of it */
    const cfx_match_binding *bound;  /* in the order in which they were compared */
    size_t n_bound;
    const cfx_value *inputs;   /* what the placeholders are bound to, in their order */
    size_t n_inputs;
    const cfx_value *outputs;  /* what is returned, each node once; values if placeholders are */
    size_t n_outputs;
    cfx_node *const *made;     /* by cfx_matches_replace: the nodes of the replacement, */
    size_t n_made;
    const cfx_value *results;  /* and what has taken the place of each output */
} cfx_match;

typedef struct cfx_matches cfx_matches;

/* Finds all patterns[0..n) in `g`; NULL with *err set. CFX_E_VALUE if a pattern is empty,
 * CFX_E_GRAPH if it has no output or a node that nobody uses and that has no effect, CFX_E_KEY if
 * there is a match but a placeholder of the pattern is used nowhere. Nodes that are erased stay
 * readable until cfx_matches_free. */
CFX_API cfx_matches *cfx_matches_find(cfx_graph *g, cfx_graph *const *patterns, size_t n,
                                      const cfx_match_options *opts, cfx_error *err);
CFX_API void cfx_matches_free(cfx_matches *matches);  /* NULL is allowed */
CFX_API size_t cfx_matches_size(const cfx_matches *matches);
CFX_API const cfx_match *cfx_matches_get(const cfx_matches *matches, size_t i);
/* Forgets the matches `i` of which keep[i] is false: they will not be replaced. The others keep
 * their order. Linear, however many go. */
CFX_API void cfx_matches_keep(cfx_matches *matches, const bool *keep);

/* ---- putting something else in its place --------------------------------------------------- */

/* Puts a copy of replacements[i] in the place of match i (all of them, so that the array has
 * cfx_matches_size entries; a graph may be in it many times). Its placeholders are what those of
 * the pattern are bound to; what it returns replaces what the pattern returns, one by one; the
 * matched nodes are erased. A copy has its original's location and module stack or, if unset,
 * those of the match's first anchor; it stands before the first user of a result (if the inputs are
 * computed later than that, they are moved there), or behind the match if nobody uses one.
 * Afterwards the inputs that an earlier replacement changed are the new ones.
 *
 * Before the first change: CFX_E_VALUE if a replacement has another number of inputs or outputs
 * than the pattern, or no output, or is the graph itself; CFX_E_GRAPH if a matched node has been
 * erased. If it fails later (memory, a hook, matches that wait for each other: see `jointly`), the
 * graph is valid, but some matches may have been replaced. */
CFX_API cfx_status cfx_matches_replace(cfx_matches *matches, cfx_graph *const *replacements,
                                       cfx_error *err);

/* ---- why not ------------------------------------------------------------------------------- */

/* A place where a pattern was nearly found. */
typedef struct cfx_miss {
    size_t pattern;
    size_t n_bound;           /* so many of its nodes had been found by then, */
    size_t n_nodes;           /* of so many, without the output */
    bool complete;            /* all were found, but `node` is in the way */
    const cfx_node *anchor;   /* of the graph: the candidate; NULL if there is none */
    const cfx_node *node;     /* of the graph: where it failed; NULL if there is no candidate */
    const cfx_node *wanted;   /* of the pattern */
    char reason[200];         /* "kwargs['dim']: the pattern has 1, the graph 2" */
} cfx_miss;

/* Searches as cfx_matches_find does. Of each candidate for the first anchor that is no match in the
 * end, the attempt counts that came furthest; the `max` best of these are kept, best first (of
 * equals the first found). *n receives how many there are. */
CFX_API cfx_status cfx_matches_explain(cfx_graph *g, cfx_graph *const *patterns, size_t n_patterns,
                                       const cfx_match_options *opts, cfx_miss *misses, size_t max,
                                       size_t *n, cfx_error *err);
/* One line: "model.py:3: %mul is not %add of the pattern (2 of 4 nodes matched): ..." */
CFX_API cfx_status cfx_miss_print(const cfx_miss *miss, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
