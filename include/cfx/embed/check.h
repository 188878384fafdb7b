/* For language bindings and back ends; may change between versions.
 *
 * embed/check.h - compares two versions of a program: pairs their nodes, finds the node that makes
 * their results differ, and reduces the program to the smallest part that still fails.
 *
 * The core does not run anything here: the caller runs both versions and reports which values
 * agree.
 */
#ifndef CFX_EMBED_CHECK_H
#define CFX_EMBED_CHECK_H

#include <cfx/embed/split.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why two nodes are paired, from the strongest to the weakest reason. */
typedef enum cfx_pairing {
    CFX_PAIR_STRUCTURE,  /* they compute the same from the same inputs */
    CFX_PAIR_NAME,       /* the same name, opcode and target; the arguments may differ */
    CFX_PAIR_USES,       /* their users use them in the same way */
    CFX_PAIR_RETARGETED,/* the same name, but a different target */
    CFX_PAIR_OPERAND,    /* the node is gone; its user's partner reads this one instead */
    CFX_PAIR_NONE
} cfx_pairing;
CFX_API const char *cfx_pairing_name(cfx_pairing how);  /* "structure" */

/* Pairs the nodes of two graphs. Each node has at most one partner, except that a node of `b` can
 * stand in for several (CFX_PAIR_OPERAND). Calls `fn` for each node of `a` in order, with its
 * partner or NULL, then for each node of `b` without a partner, with `a` NULL. If two paired nodes
 * have the same number of regions, the nodes of their regions follow right after them, region by
 * region.
 *
 * Each kind of pairing is tried on all nodes that are still unpaired before the next one. Two nodes
 * have the same structure if they have the same opcode and target, and arguments that are equal or
 * paired; inputs compare by their number, modules and attributes by their paths. Among several
 * candidates, one with the same name is preferred, then the first. Outputs are always paired,
 * whatever they return. Host objects without a qualified name compare by identity.
 *
 * Stops at the first status other than CFX_OK and returns it. `fn` may read both graphs but not
 * edit them. Linear in nodes and edges. */
typedef cfx_status cfx_pair_fn(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how);
CFX_API cfx_status cfx_graph_correspond(cfx_graph *a, cfx_graph *b, cfx_pair_fn *fn, void *ctx,
                                        cfx_error *err);

/* What differs between two paired nodes. */
typedef enum cfx_change_flag {
    CFX_CHANGE_NAME = 1,
    CFX_CHANGE_OPCODE = 2,
    CFX_CHANGE_TARGET = 4,
    CFX_CHANGE_ARGS = 8,     /* paired arguments count as equal */
    CFX_CHANGE_KWARGS = 16,
    CFX_CHANGE_TYPE = 32,
    CFX_CHANGE_MOVED = 64    /* its position among the paired nodes differs */
} cfx_change_flag;
/* The name of a flag, by its bit: "name" for 0; NULL past the last. */
CFX_API const char *cfx_change_flag_name(unsigned bit);

/* One node in two graphs: new if `a` is NULL, removed if `b` is NULL; otherwise `flags` say what
 * differs. */
typedef struct cfx_change {
    cfx_node *a, *b;
    unsigned flags;   /* cfx_change_flag or'ed */
    unsigned depth;   /* the number of enclosing regions */
    cfx_node *owner;  /* the node of the first graph whose region contains it; or NULL */
    size_t region;    /* which of its regions, from 0 */
} cfx_change;

/* Calls `fn` for every node of both graphs, including unchanged ones (`flags` is 0): in the order
 * of `a`, with new nodes before the nodes they precede in `b`. Pairs are those of
 * cfx_graph_correspond without stand-ins, so a renamed node keeps its partner. As few nodes as
 * possible count as moved. Locations and module stacks are not compared. The regions of a pair
 * follow it if both have the same number; otherwise the arguments differ.
 *
 * Stops at the first status other than CFX_OK and returns it. `fn` may read both graphs but not
 * edit them. O(n log n) in the nodes, linear in the edges. */
typedef cfx_status cfx_change_fn(void *ctx, const cfx_change *change);
CFX_API cfx_status cfx_graph_diff(cfx_graph *a, cfx_graph *b, cfx_change_fn *fn, void *ctx,
                                  cfx_error *err);

/* What is known about a node's value. */
typedef enum cfx_verdict {
    CFX_VERDICT_UNKNOWN,  /* it has no partner */
    CFX_VERDICT_RIGHT,
    CFX_VERDICT_WRONG
} cfx_verdict;

/* *culprit becomes the first node with a wrong value that reaches the end: an output, or a call
 * that writes, along a path with no right value on it. So a convolution that absorbed the operation
 * after it is not blamed if the values after that are right again. An unknown call that writes and
 * has no users takes precedence: the other version lacks it. NULL if there is no such node.
 * `verdict` is called once for each node and returns a cfx_verdict; it may read the graph but not
 * edit it. -1 from it stops with CFX_E_HOST. Linear in nodes and edges. */
typedef int cfx_verdict_fn(void *ctx, cfx_node *n);
CFX_API cfx_status cfx_graph_blame(cfx_graph *g, cfx_verdict_fn *verdict, void *ctx,
                                   cfx_node **culprit, cfx_error *err);

/* Finds a minimal part of `g` that still fails. `test` returns 1 if a part fails, 0 if it does not,
 * -1 to stop with CFX_E_HOST. A part is what cfx_graph_extract makes of some nodes; the values it
 * reads from outside are its inputs, and the test must know them. No single node can be removed
 * from the result; after `max_tests` tests the best part so far is returned. CFX_E_VALUE if all
 * nodes together do not fail. `test` may read `g` but not edit it. Fills *part; free it with
 * cfx_subgraph_free. */
typedef int cfx_subgraph_test_fn(void *ctx, const cfx_subgraph *part);
CFX_API cfx_status cfx_graph_minimize(cfx_graph *g, cfx_subgraph_test_fn *test, void *ctx,
                                      size_t max_tests, cfx_subgraph *part, cfx_error *err);

/* ---- modes ---------------------------------------------------------------------------------- */

/* Flags `training` of modules, in several settings: flags[s * n_paths + i] is that of paths[i] in
 * setting s. The path of the root is "". */
typedef struct cfx_mode_table {
    const char *const *paths;
    size_t n_paths;
    const bool *flags;
    size_t n_settings;
} cfx_mode_table;

/* Merges `other` into `g`. Both were captured from one program: `g` holds for all settings of the
 * table but the last, `other` for the last. Afterwards `g` holds for all of them. A literal (a bool
 * or a number) in which they differ becomes what a flag decides: the flag itself, its opposite, or
 * a cfx.cond with a literal each way. The flag is one that tells the values apart in all settings,
 * preferably that of the module whose code made the call (its module stack). Flags and such
 * choices that the graphs already have are taken for what they are in each setting.
 *
 * *merged is false, and `g` unchanged, if the graphs differ in anything else, or set a flag. After
 * a failure `g` may have been changed in part, but still holds for what it held for. Names,
 * locations and module stacks are not compared. O(nodes + edges + literals that differ * modules).
 */
CFX_API cfx_status cfx_graph_merge_modes(cfx_graph *g, cfx_graph *other,
                                         const cfx_mode_table *modes, bool *merged, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
