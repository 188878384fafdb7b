/* For language bindings and back ends; may change between versions.
 *
 * embed/check.h - two versions of a program: which nodes stand for each other, which one is to
 * blame when their results differ, and the smallest program that shows it.
 *
 * The core does not run anything here: whoever runs both versions says which values agree.
 */
#ifndef CFX_EMBED_CHECK_H
#define CFX_EMBED_CHECK_H

#include <cfx/embed/split.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why two nodes are taken for the same, from the surest to the weakest reason. */
typedef enum cfx_pairing {
    CFX_PAIR_STRUCTURE,  /* they compute the same from the same inputs */
    CFX_PAIR_NAME,       /* the same name, opcode and target; the arguments may differ */
    CFX_PAIR_USES,       /* their values are used in the same way by what follows */
    CFX_PAIR_RETARGETED,/* the same name alone: the target differs */
    CFX_PAIR_OPERAND,    /* it is gone; the partner of a user of it reads this one in its place */
    CFX_PAIR_NONE
} cfx_pairing;
CFX_API const char *cfx_pairing_name(cfx_pairing how);  /* "structure" */

/* Pairs the nodes of two graphs; each has at most one partner, except that a node of `b` can stand
 * in for others (CFX_PAIR_OPERAND). Calls `fn` for each node of `a` in
 * their order, with its partner or NULL, then for each node of `b` that has none, with `a` NULL.
 * Right after a pair whose nodes have as many regions it goes on with the nodes of the first of
 * both, then of the second, and so on.
 *
 * Each reason is tried on all nodes that are still alone before the next one is. Two nodes compute
 * the same if they have the same opcode, target and arguments, where their arguments do; inputs by
 * their number, modules and attributes by their paths. Among several that would do, one of the
 * same name goes first, then the first. Outputs are each other's partner whatever they return. Host
 * objects without a qualified name count by identity.
 *
 * Stops at the first status that is not CFX_OK and returns it. `fn` can read both graphs but not
 * edit them. Linear in nodes and edges. */
typedef cfx_status cfx_pair_fn(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how);
CFX_API cfx_status cfx_graph_correspond(cfx_graph *a, cfx_graph *b, cfx_pair_fn *fn, void *ctx,
                                        cfx_error *err);

/* What differs between two nodes that stand for each other. */
typedef enum cfx_change_flag {
    CFX_CHANGE_NAME = 1,
    CFX_CHANGE_OPCODE = 2,
    CFX_CHANGE_TARGET = 4,
    CFX_CHANGE_ARGS = 8,     /* where the arguments' partners are the same, so are the arguments */
    CFX_CHANGE_KWARGS = 16,
    CFX_CHANGE_TYPE = 32,
    CFX_CHANGE_MOVED = 64    /* it stands elsewhere among the nodes that both graphs have */
} cfx_change_flag;
/* The name of a flag, by its bit: "name" for 0; NULL past the last. */
CFX_API const char *cfx_change_flag_name(unsigned bit);

/* One node of two graphs: new if `a` is NULL, gone if `b` is, else `flags` say what differs. */
typedef struct cfx_change {
    cfx_node *a, *b;
    unsigned flags;   /* cfx_change_flag or'ed */
    unsigned depth;   /* in how many regions it is */
    cfx_node *owner;  /* the node of the first graph whose region it is in; NULL: in none */
    size_t region;    /* which of its regions, from 0 */
} cfx_change;

/* Tells of every node of both graphs what became of it, nodes that are the same in both included
 * (`flags` is 0 then): in the order of `a`, and what is new before what follows it in `b`. Pairs
 * are those of cfx_graph_correspond without stand-ins: a node keeps its partner under another name.
 * As few nodes as possible count as moved. Locations and module stacks are not compared. Regions of
 * a pair follow it, if both have as many; otherwise the arguments differ.
 *
 * Stops at the first status that is not CFX_OK and returns it. `fn` can read both graphs but not
 * edit them. O(n log n) in the nodes, linear in the edges. */
typedef cfx_status cfx_change_fn(void *ctx, const cfx_change *change);
CFX_API cfx_status cfx_graph_diff(cfx_graph *a, cfx_graph *b, cfx_change_fn *fn, void *ctx,
                                  cfx_error *err);

/* What is known of a node's value. */
typedef enum cfx_verdict {
    CFX_VERDICT_UNKNOWN,  /* it has no partner */
    CFX_VERDICT_RIGHT,
    CFX_VERDICT_WRONG
} cfx_verdict;

/* The first node with a wrong value from which wrong values spread to the end: to an output or a
 * call that writes, on a way on which no value is right. So a convolution that took in what
 * followed it is not to blame if what comes then is right again. Before it goes a call that writes
 * and that nobody reads, if it is unknown: the other version lacks it. NULL if there is none.
 * `verdict` is asked once for each node; it can read the graph but not edit it. -1 from it stops
 * with CFX_E_HOST. Linear in nodes and edges. */
typedef int cfx_verdict_fn(void *ctx, cfx_node *n);
CFX_API cfx_status cfx_graph_blame(cfx_graph *g, cfx_verdict_fn *verdict, void *ctx,
                                   cfx_node **culprit, cfx_error *err);

/* The smallest part of `g` for which `test` answers 1: it still fails. 0 is fine, -1 stops with
 * CFX_E_HOST. A part is what cfx_graph_extract makes of some nodes: what they read from outside are
 * its inputs, whose values the test has to know. No single node can be left out of the result; but
 * after `max_tests` the best so far is taken. CFX_E_VALUE if all nodes together do not fail. `test`
 * can read `g` but not edit it. Fills *part, which cfx_subgraph_free empties. */
typedef int cfx_subgraph_test_fn(void *ctx, const cfx_subgraph *part);
CFX_API cfx_status cfx_graph_minimize(cfx_graph *g, cfx_subgraph_test_fn *test, void *ctx,
                                      size_t max_tests, cfx_subgraph *part, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
