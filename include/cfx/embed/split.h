/* For language bindings and back ends; may change between versions.
 *
 * embed/split.h - taking graphs apart: a part of a graph as a graph of its own, a graph cut into
 * parts that a base calls, and a cut into balanced stages. The source is read, never changed.
 */
#ifndef CFX_EMBED_SPLIT_H
#define CFX_EMBED_SPLIT_H

#include <cfx/node.h>

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
typedef struct cfx_extract_options {
    cfx_node *const *nodes;
    size_t n;
    cfx_node *const *inputs;   /* NULL: all that the nodes read from outside, as first read */
    size_t n_inputs;
    cfx_node *const *outputs;  /* NULL: all that is used outside, in the order of the nodes */
    size_t n_outputs;
    cfx_node_map *map;         /* or NULL: receives nodes and inputs with what they have become */
    unsigned flags;            /* CFX_PART_... */
} cfx_extract_options;

/* The result: `graph` has a placeholder for each input, then copies of the nodes (types, locations
 * and stacks kept), and returns the outputs: one as it is, several as a tuple, none as (). The
 * arrays hold nodes of the source. */
typedef struct cfx_subgraph {
    cfx_graph *graph;
    cfx_node **inputs, **outputs;
    cfx_node **origins;  /* what each node of `graph`, in order, stands for; NULL if nothing */
    size_t n_inputs, n_outputs, n_origins;
} cfx_subgraph;

/* Fills *part, which cfx_subgraph_free empties. The new graph has the host and the allocator of
 * `g`; region values are copied. CFX_E_GRAPH if a node is not of `g`, is an output, stands twice
 * or out of order, or if one reads what is neither among the nodes nor among given inputs.
 * O(nodes and their edges); with outputs to be found, also their users. */
CFX_API cfx_status cfx_graph_extract(cfx_graph *g, const cfx_extract_options *what,
                                     cfx_subgraph *part, cfx_error *err);
CFX_API void cfx_subgraph_free(cfx_subgraph *part);

/* ---- a graph cut into parts ---------------------------------------------------------------- */

/* The part of what is in none: placeholders, the output, and get_attr unless it is copied. */
#define CFX_SPLIT_BASE SIZE_MAX

enum {  /* besides CFX_PART_... */
    CFX_SPLIT_KEEP_ORDER = 16,   /* call the parts by their numbers, as far as the data allow it */
    CFX_SPLIT_FIXED_ORDER = 32,  /* likewise, and fail if they do not */
    CFX_SPLIT_COPY_ATTRS = 64    /* each part reads its attributes itself; else the base does */
};

typedef struct cfx_split_options {
    const size_t *parts;       /* the number of its part for each node of the graph, in order;
                                  those of placeholders, get_attr and outputs are not looked at */
    const char *const *names;  /* of the parts: the paths at which the base calls them */
    size_t n;                  /* how many parts */
    unsigned flags;            /* CFX_PART_..., CFX_SPLIT_... */
} cfx_split_options;

/* `value` is computed in the part `from` (CFX_SPLIT_BASE: given to the graph) and read in the part
 * `to` (CFX_SPLIT_BASE: returned by the graph). */
typedef struct cfx_cut {
    cfx_node *value;
    size_t from, to;
} cfx_cut;

typedef struct cfx_split_result {
    cfx_subgraph base;  /* calls the parts: call_module, and operator.getitem for several values */
    cfx_subgraph *parts;  /* by number; a part without nodes has an empty graph */
    size_t *order;    /* the numbers of the parts as the base calls them */
    size_t n;
    cfx_cut *cuts;    /* each (value, to) once, in the order of the first reader */
    size_t n_cuts;
} cfx_split_result;

/* Cuts `g` into parts and a base that calls them. A part has its inputs in the order in which its
 * nodes first read them, and returns its values in the order in which they are first read outside.
 * Without an order flag, parts are called in an order in which torch.fx's split_module calls them:
 * depth first, what can be called last goes first; but if something in the graph writes to its
 * arguments, as with CFX_SPLIT_KEEP_ORDER.
 *
 * What is set for a stretch of the graph holds in each part of it: a part that begins behind a call
 * of torch._C._set_grad_enabled begins with a copy of it, and autocast is entered and left in each
 * part. The parts must follow one another then: CFX_E_VALUE if a node goes back to an earlier one.
 *
 * CFX_E_GRAPH if parts need each other's results, with the nodes in question; CFX_E_INDEX if a
 * number is not below `n`. Nothing is left behind then. O(nodes + edges); with CFX_SPLIT_KEEP_ORDER
 * times the logarithm of the number of parts. */
CFX_API cfx_status cfx_graph_split(cfx_graph *g, const cfx_split_options *what,
                                   cfx_split_result *result, cfx_error *err);
CFX_API void cfx_split_result_free(cfx_split_result *result);

/* ---- what can be computed beforehand ------------------------------------------------------- */

typedef struct cfx_constants_options {
    int (*skip)(void *ctx, cfx_node *n);  /* or NULL: 1 if `n`, which could be computed beforehand,
                                             shall not be; 0; -1 stops with CFX_E_HOST */
    void *ctx;
    const char *path;                     /* of the attribute that holds the results */
} cfx_constants_options;

/* Cuts off what depends on nothing but attributes and literals: `constants` computes it, and `rest`
 * does what `g` does with the results that it reads at `path`: one as it is, several by
 * operator.getitem. In both, modules have flat paths (CFX_PART_FLAT_PATHS).
 *
 * Left out is what must not be dropped (cfx_node_is_impure), functions and methods with an effect
 * (cfx_node_effect), and whatever depends on an attribute that one of those writes to. Modules that
 * the host does not call impure count as without a state, as in torch.fx.
 *
 * If nothing is to be computed beforehand, both parts are empty (their graph is NULL). The graph is
 * frozen while `skip` is asked. O(nodes + edges). */
CFX_API cfx_status cfx_graph_split_constants(cfx_graph *g, const cfx_constants_options *what,
                                             cfx_subgraph *constants, cfx_subgraph *rest,
                                             cfx_error *err);

/* ---- stages -------------------------------------------------------------------------------- */

typedef struct cfx_stages_options {
    size_t n;             /* how many stages, at least 1 */
    const double *costs;  /* of each node in order, finite and not negative; NULL: 1 each */
    const double *sizes;  /* of its value in bytes, likewise; NULL: 1 */
} cfx_stages_options;

/* Cuts the calls of `g`, in the order in which they stand, into at most `n` stages whose largest
 * cost is as small as it can be; among those cuts, takes one that fewest bytes cross (a value
 * crosses each cut between its call and the last call that uses it). parts[i], for each node in
 * order, becomes the stage of a call, and CFX_SPLIT_BASE for other nodes: fit for cfx_graph_split.
 * *largest (may be NULL) is the largest cost. CFX_E_VALUE if a number is not as it must be.
 *
 * O(nodes + edges) for numbers and `n` times a logarithm of the nodes for the cost; for the bytes,
 * time and memory for each place at which each cut could be, at most nodes times `n`. */
CFX_API cfx_status cfx_graph_stages(cfx_graph *g, const cfx_stages_options *what, size_t *parts,
                                    double *largest, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
