/* For language bindings and back ends; may change between versions.
 *
 * embed/split.h - splits graphs: extracts a part as a graph of its own, splits a graph into parts
 * that a base graph calls, and cuts a graph into balanced stages. The source graph is never
 * changed.
 */
#ifndef CFX_EMBED_SPLIT_H
#define CFX_EMBED_SPLIT_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one part ------------------------------------------------------------------------------ */

enum {
    CFX_PART_NAME_BY_TARGET = 1,  /* name calls after their targets; else they keep names */
    CFX_PART_NUMBER_INPUTS = 2,   /* placeholders are arg_0, arg_1, ...; else as the nodes */
    CFX_PART_TUPLE = 4,           /* return a tuple even for one value */
    CFX_PART_FLAT_PATHS = 8       /* call "a_b" for the module "a.b"; "a_b_1" if that is used */
};

/* What to extract: `nodes` of one graph, in graph order, without the output. */
typedef struct cfx_extract_options {
    cfx_node *const *nodes;
    size_t n;
    cfx_node *const *inputs;   /* NULL: all values read from outside, in order of first read */
    size_t n_inputs;
    cfx_node *const *outputs;  /* NULL: all values used outside, in the order of the nodes */
    size_t n_outputs;
    cfx_node_map *map;         /* receives the copies of nodes and inputs; may be NULL */
    unsigned flags;            /* CFX_PART_... */
} cfx_extract_options;

/* The result. `graph` has a placeholder for each input, then copies of the nodes (with their types,
 * locations and module stacks), and returns the outputs: one directly, several as a tuple, none as
 * (). The arrays hold nodes of the source graph. */
typedef struct cfx_subgraph {
    cfx_graph *graph;
    cfx_node **inputs, **outputs;
    cfx_node **origins;  /* the source of each node of `graph`, in order; or NULL */
    size_t n_inputs, n_outputs, n_origins;
} cfx_subgraph;

/* Extracts nodes into *part; free it with cfx_subgraph_free. The new graph has the host and the
 * allocator of `g`; regions are copied. CFX_E_GRAPH if a node does not belong to `g`, is an output,
 * occurs twice or is out of order, or if one reads a value that is neither in `nodes` nor in the
 * given inputs. O(nodes and their edges); if outputs are NULL, also their users. */
CFX_API cfx_status cfx_graph_extract(cfx_graph *g, const cfx_extract_options *what,
                                     cfx_subgraph *part, cfx_error *err);
CFX_API void cfx_subgraph_free(cfx_subgraph *part);

/* ---- splitting into parts ------------------------------------------------------------------- */

/* The base: placeholders, the output, and get_attr nodes unless they are copied. */
#define CFX_SPLIT_BASE SIZE_MAX

enum {  /* in addition to CFX_PART_... */
    CFX_SPLIT_KEEP_ORDER = 16,   /* call parts in numeric order, as far as dependences allow */
    CFX_SPLIT_FIXED_ORDER = 32,  /* the same, but fail if dependences do not allow it */
    CFX_SPLIT_COPY_ATTRS = 64    /* each part reads its own attributes; else the base does */
};

typedef struct cfx_split_options {
    const size_t *parts;       /* the part of each node of the graph, in order; ignored for
                                  placeholders, get_attr nodes and outputs */
    const char *const *names;  /* of the parts: the paths by which the base calls them */
    size_t n;                  /* number of parts */
    unsigned flags;            /* CFX_PART_..., CFX_SPLIT_... */
} cfx_split_options;

/* `value` is computed in the part `from` (CFX_SPLIT_BASE: an input of the graph) and read in the
 * part `to` (CFX_SPLIT_BASE: returned by the graph). */
typedef struct cfx_cut {
    cfx_node *value;
    size_t from, to;
} cfx_cut;

typedef struct cfx_split_result {
    cfx_subgraph base;  /* calls the parts: call_module, and operator.getitem for tuples */
    cfx_subgraph *parts;  /* by number; a part without nodes has an empty graph */
    size_t *order;    /* the numbers of the parts, in the order of the calls */
    size_t n;
    cfx_cut *cuts;    /* each (value, to) once, in the order of the first reader */
    size_t n_cuts;
} cfx_split_result;

/* Splits `g` into parts and a base that calls them. The inputs of a part are in the order in which
 * its nodes first read them, its results in the order in which they are first read outside. Without
 * an order flag, parts are called in the order of torch.fx's split_module: depth first, and what
 * can be called last goes first. But if something in the graph writes to its arguments,
 * CFX_SPLIT_KEEP_ORDER applies.
 *
 * Modes that hold for a stretch of the graph hold in each of its parts: a part that begins after a
 * call of torch._C._set_grad_enabled begins with a copy of that call, and autocast is entered and
 * left in each part. The parts must then be consecutive: CFX_E_VALUE if a node returns to an
 * earlier part.
 *
 * CFX_E_GRAPH if parts depend on each other's results (the message names the nodes); CFX_E_INDEX if
 * a number is not less than `n`. On failure nothing is allocated. O(nodes + edges); with
 * CFX_SPLIT_KEEP_ORDER, times the logarithm of the number of parts. */
CFX_API cfx_status cfx_graph_split(cfx_graph *g, const cfx_split_options *what,
                                   cfx_split_result *result, cfx_error *err);
CFX_API void cfx_split_result_free(cfx_split_result *result);

/* ---- splitting off constants ---------------------------------------------------------------- */

typedef struct cfx_constants_options {
    int (*skip)(void *ctx, cfx_node *n);  /* may be NULL: 1 if the constant `n` should not be
                                             folded; 0; -1 stops with CFX_E_HOST */
    void *ctx;
    const char *path;                     /* of the attribute that holds the results */
    const cfx_module_tree *modules;       /* may be NULL: then the host is asked about modules */
    bool strict;                          /* calls that nothing is known about stay */
} cfx_constants_options;

/* Splits off what depends only on attributes and literals. `constants` computes it; `rest` does
 * what `g` does, but reads the results at `path`: one directly, several by operator.getitem. In
 * both, modules have flat paths (CFX_PART_FLAT_PATHS).
 *
 * Excluded are calls with an effect (cfx_node_effect), and everything that depends on an attribute
 * that one of those writes to. Modules that nothing is known about are assumed to be stateless, as
 * in torch.fx, unless `strict` is set.
 *
 * If there are no constants, both parts are empty (their graph is NULL). The graph is frozen while
 * `skip` runs. O(nodes + edges). */
CFX_API cfx_status cfx_graph_split_constants(cfx_graph *g, const cfx_constants_options *what,
                                             cfx_subgraph *constants, cfx_subgraph *rest,
                                             cfx_error *err);

/* ---- stages -------------------------------------------------------------------------------- */

typedef struct cfx_stages_options {
    size_t n;             /* number of stages, at least 1 */
    const double *costs;  /* of each node in order, finite and not negative; NULL: 1 each */
    const double *sizes;  /* of its value in bytes, also finite and not negative; NULL: 1 */
} cfx_stages_options;

/* Cuts the calls of `g`, in graph order, into at most `n` stages and minimises the largest cost of
 * a stage. Among these cuts it chooses one that the fewest bytes cross (a value crosses each cut
 * between its call and its last user). parts[i] becomes the stage of a call, and CFX_SPLIT_BASE for
 * other nodes, as cfx_graph_split expects. *largest (may be NULL) receives the largest cost.
 * CFX_E_VALUE if `n`, a cost or a size is out of range.
 *
 * For the cost: O(nodes + edges), plus `n` times a logarithm of the nodes. For the bytes: time and
 * memory for each possible position of each cut, at most nodes times `n`. */
CFX_API cfx_status cfx_graph_stages(cfx_graph *g, const cfx_stages_options *what, size_t *parts,
                                    double *largest, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
