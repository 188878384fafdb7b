/* split.h - taking graphs apart: a part of a graph as a graph of its own, a graph cut into parts
 * that a base calls, and a cut into balanced stages. The source is read, never changed.
 */
#ifndef CFX_SPLIT_H
#define CFX_SPLIT_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one part ------------------------------------------------------------------------------ */

enum {
    CFX_PART_NAME_BY_TARGET = 1,  /* calls are named after their targets; else they keep names */
    CFX_PART_NUMBER_INPUTS = 2,   /* placeholders are arg_0, arg_1, ...; else named as the nodes */
    CFX_PART_TUPLE = 4,           /* returns a tuple even of one value */
    CFX_PART_FLAT_PATHS = 8       /* calls "a_b" for the module "a.b"; "a_b_1" if that is taken */
};

/* What is to become a graph: `nodes` of one graph in the order in which they stand there, no
 * output among them. */
typedef struct cfx_extract {
    cfx_node *const *nodes;
    size_t n;
    cfx_node *const *inputs;   /* NULL: all that the nodes read from outside, as first read */
    size_t n_inputs;
    cfx_node *const *outputs;  /* NULL: all that is used outside, in the order of the nodes */
    size_t n_outputs;
    cfx_node_map *map;         /* or NULL: receives nodes and inputs with what they have become */
    unsigned flags;            /* CFX_PART_... */
} cfx_extract;

/* The result: `graph` has a placeholder for each input, then copies of the nodes (types, locations
 * and scopes kept), and returns the outputs: one as it is, several as a tuple, none as (). The
 * arrays hold nodes of the source. */
typedef struct cfx_part {
    cfx_graph *graph;
    cfx_node **inputs, **outputs;
    cfx_node **origins;  /* what each node of `graph`, in order, stands for; NULL if nothing */
    size_t n_inputs, n_outputs, n_origins;
} cfx_part;

/* Fills *part, which cfx_part_free empties. The new graph has the host and the allocator of `g`;
 * region values are copied. CFX_E_GRAPH if a node is not of `g`, is an output, stands twice or out
 * of order, or if one reads what is neither among the nodes nor among given inputs. O(nodes and
 * their edges); with outputs to be found, also their users. */
CFX_API cfx_status cfx_graph_extract(cfx_graph *g, const cfx_extract *what, cfx_part *part,
                                     cfx_error *err);
CFX_API void cfx_part_free(cfx_part *part);

#ifdef __cplusplus
}
#endif
#endif
