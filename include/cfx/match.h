/* match.h - finds patterns in a graph and replaces them.
 *
 * A pattern is a graph. Its placeholders match anything; its calls and get_attr nodes must match
 * exactly. Values that the pattern returns may have users outside the match; intermediate values
 * may not:
 *
 *     pattern                                              replacement
 *     %a = placeholder[target=a]()                         %a = placeholder[target=a]()
 *     %n = placeholder[target=n]()                         %n = placeholder[target=n]()
 *     %mul = call_function[target=torch.mul](%a, %n)       %f = call_function[target=my.f](%a, %n)
 *     %add = call_function[target=torch.add](%mul, 1)      output(%f)
 *     output(%add)
 *
 * What counts as equal (as in torch.fx, unless an option says otherwise):
 *   - Calls: same opcode, same target, same number of arguments, same keywords in the same order.
 *     If only the number of arguments or the keywords differ, `bind` is asked to bring the
 *     arguments of both into one order.
 *   - A placeholder binds a node, a literal or a whole container. If it occurs again, it must bind
 *     an equal value (1, 1.0 and True are equal, 0.0 and -0.0 are not). Two nodes of the pattern
 *     never match the same node of the graph.
 *   - Literals: same kind and equal. 0.0 and -0.0 differ, because a call can give different results
 *     for them (torch.fx takes them for equal); nan does not equal nan.
 *   - A list matches a tuple with matching items, and a tuple a list, as in torch.fx. (torch.fx
 *     never matches a dict or slice that contains a node; here they are compared item by item.)
 *   - get_attr: as `same_attr` decides; without it, the same path. call_module: the same path.
 *   - Names, types, locations and metadata are ignored.
 *
 * Which matches are found: the *anchors* of a pattern are the nodes that it returns and that have
 * no other user in it. Each node of the graph that could be the first anchor is tried in graph
 * order, then each that could be the second, and so on. A match that shares a node with an earlier
 * one (not counting what placeholders bind) is dropped, so the first match wins; among several
 * patterns, the earlier one in the array wins. A match is also dropped if a node outside it both
 * depends on one of its results and feeds one of its inputs: replacing it would create a cycle.
 *
 * All matches are found first, then all are replaced. Replacements are not searched again, so
 * replacing a pattern by something that contains it terminates.
 *
 * Cost: linear in the graph for a fixed pattern. Candidates come from the graph's index of callees,
 * so a pattern that does not occur costs almost nothing, even among a hundred of them. Two cases
 * can cost more:
 *   - Several anchors: each further one is searched among the users of the nodes bound so far, or,
 *     if it is connected to none of them, among all calls of the same callee. An attempt fails with
 *     CFX_E_LIMIT after CFX_MATCH_STEPS comparisons.
 *   - A result that is used before the last input is computed: the nodes that this input depends on
 *     are searched, back to that use. Such searches may overlap, and no linear algorithm is known.
 *     After CFX_MATCH_WALK steps for each node of the graph, further matches of this kind are
 *     skipped.
 */
#ifndef CFX_MATCH_H
#define CFX_MATCH_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits: comparisons for one candidate of the first anchor, and swaps of commutative operands for
 * one candidate (a candidate that needs more swaps is skipped); and search steps for each node of
 * the graph. */
#define CFX_MATCH_STEPS 100000000
#define CFX_MATCH_SWAPS 10000
#define CFX_MATCH_WALK 64

typedef struct cfx_match_options {
    bool match_output;       /* the output node is part of the pattern */
    bool match_placeholder;  /* placeholders match only placeholders */
    bool ignore_literals;    /* a literal of the pattern matches anything */
    bool overlaps;           /* keep matches that share nodes, or that would create a cycle */
    bool regions;            /* also search the regions of the graph */

    /* All matches will be replaced together. Also drops a match if replacing it would create a
     * cycle through earlier matches, when each of these becomes one call whose results all depend
     * on all its inputs. */
    bool jointly;

    /* A placeholder with a target like "*xs" that is an item of a list or tuple binds any number of
     * items, as a tuple. Each list or tuple may contain one. In the replacement it expands to these
     * items. */
    bool variadic;

    /* Calls of the same operator (ops.h) match however they are spelled, if their arguments match
     * parameter by parameter. An omitted argument equals the row's default; an omitted stride of a
     * pooling equals its kernel_size. One integer equals a list of equal integers where the row
     * takes a list. Calls of modules with one argument in the graph also match (see `modules`):
     * their attributes supply the other parameters (kernel_size, p, train). Excluded are modules
     * with weights, which a replacement could not use, modules with state, and modules that work in
     * place. */
    bool any_spelling;

    /* `a + b` matches `b + a`: calls with two arguments whose operator is commutative. The first
     * order that matches is final: the other is not tried if a later anchor then fails. */
    bool commutative;

    /* Take effects into account; torch.fx does not. The nodes of a match become one call, placed
     * after the last of them, or before the first user of a result if that comes earlier. A match
     * is dropped
     *   - if one of its nodes would have to move past a call that may write to what the node reads,
     *     or that may read or write what the node writes (cfx_node_each_touch; values that may
     *     alias count as one, and so do all values from outside the graph);
     *   - if a node that writes, and another that reads or writes the same value, are in a
     *     different order than in the pattern;
     *   - or if inputs would have to move past any call that writes. */
    bool strict;

    /* The modules that the graph's paths name, or NULL if they are unknown. Without them, modules
     * have no other spelling, and `strict` assumes the worst of every call of a module. */
    const cfx_module_tree *modules;

    /* A node whose name contains this text matches any anchor, whatever it calls; NULL: none. */
    const char *node_name;

    /* `same_attr` decides whether the get_attr node `n` of the graph matches `p` of the pattern: 1,
     * 0, or -1 with the host's exception pending. `bind` sets *args to the arguments of a call by
     * position, without those that are absent, as a floating tuple of n's graph; or leaves it
     * INVALID if it cannot. Either may be NULL. They may read the graphs but not edit them. */
    int (*same_attr)(void *ctx, cfx_node *p, cfx_node *n);
    cfx_status (*bind)(void *ctx, cfx_node *n, cfx_value *args, cfx_error *err);
    void *ctx;
} cfx_match_options;

/* ---- matches -------------------------------------------------------------------------------- */

typedef struct cfx_match_binding {
    cfx_node *node;   /* of the pattern */
    cfx_value value;  /* a node, or what a placeholder is bound to */
} cfx_match_binding;

/* One match. Everything in it is borrowed from the cfx_matches. */
typedef struct cfx_match {
    size_t pattern;            /* its index in the array of patterns */
    cfx_graph *graph;          /* the graph, or a region of it */
    const cfx_match_binding *bound;  /* in the order of comparison */
    size_t n_bound;
    const cfx_value *inputs;   /* bindings of the placeholders, in their order */
    size_t n_inputs;
    const cfx_value *outputs;  /* what it returns, each node once; values for placeholders */
    size_t n_outputs;
    cfx_node *const *made;     /* set by cfx_matches_replace: the nodes of the replacement, */
    size_t n_made;
    const cfx_value *results;  /* and what replaced each output */
} cfx_match;

typedef struct cfx_matches cfx_matches;

/* Finds patterns[0..n) in `g`. The caller frees the result; nodes erased before that stay readable
 * until then. NULL with *err set: CFX_E_VALUE if a pattern is empty; CFX_E_GRAPH if it has no
 * output, or a node without users and without an effect; CFX_E_KEY if there is a match but a
 * placeholder of the pattern is unused. */
CFX_API cfx_matches *cfx_matches_find(cfx_graph *g, cfx_graph *const *patterns, size_t n,
                                      const cfx_match_options *opts, cfx_error *err);
CFX_API void cfx_matches_free(cfx_matches *matches);  /* NULL is allowed */
CFX_API size_t cfx_matches_size(const cfx_matches *matches);
CFX_API const cfx_match *cfx_matches_get(const cfx_matches *matches, size_t i);
/* Drops each match i with keep[i] false, so that it will not be replaced. The others keep their
 * order. Linear in the number of matches. */
CFX_API void cfx_matches_keep(cfx_matches *matches, const bool *keep);

/* ---- replacing ------------------------------------------------------------------------------ */

/* Replaces match i by a copy of replacements[i]. The array has cfx_matches_size entries; a graph
 * may occur in it many times. The placeholders of a replacement are bound as those of the pattern;
 * its results replace those of the pattern, one by one; the matched nodes are erased. Each copied
 * node keeps the location and module stack of its original or, if unset, takes those of the match's
 * first anchor. The copy goes before the first user of a result (inputs that are computed later are
 * moved there), or after the match if there is no user. Afterwards, inputs that an earlier
 * replacement changed are the new nodes.
 *
 * Checked before any change: CFX_E_VALUE if a replacement has a different number of inputs or
 * outputs than the pattern, has no output, or is the graph itself; CFX_E_GRAPH if a matched node
 * has been erased. A later failure (memory, a hook, matches that depend on each other: see
 * `jointly`) leaves a valid graph in which some matches may have been replaced. */
CFX_API cfx_status cfx_matches_replace(cfx_matches *matches, cfx_graph *const *replacements,
                                       cfx_error *err);

/* ---- near misses ---------------------------------------------------------------------------- */

/* A place where a pattern almost matched. */
typedef struct cfx_miss {
    size_t pattern;
    size_t n_bound;           /* how many of its nodes matched, */
    size_t n_nodes;           /* of how many, without the output */
    bool complete;            /* all matched, but `node` prevents the replacement */
    const cfx_node *anchor;   /* the candidate in the graph; NULL if there is none */
    const cfx_node *node;     /* where it failed in the graph; NULL if there is no candidate */
    const cfx_node *wanted;   /* the node of the pattern */
    char reason[200];         /* "kwargs['dim']: the pattern has 1, the graph 2" */
} cfx_miss;

/* Searches as cfx_matches_find does. For each candidate of the first anchor that does not become a
 * match, the attempt that got furthest counts. Keeps the `max` best of these, best first (ties: the
 * first found). *n receives their number. */
CFX_API cfx_status cfx_matches_explain(cfx_graph *g, cfx_graph *const *patterns, size_t n_patterns,
                                       const cfx_match_options *opts, cfx_miss *misses, size_t max,
                                       size_t *n, cfx_error *err);
/* One line: "model.py:3: %mul is not %add of the pattern (2 of 4 nodes matched): ..." */
CFX_API cfx_status cfx_miss_print(const cfx_miss *miss, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
