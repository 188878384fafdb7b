/* graph.h - graphs: create, walk, edit, compare, check, print and parse them.
 *
 * A graph is a list of nodes of six opcodes, as in torch.fx. It owns its nodes: a `cfx_node *` is
 * borrowed, and stays valid until the node is erased or the graph is freed. (An open cfx_iter keeps
 * erased nodes readable.) node.h reads and edits single nodes.
 *
 * Only one thread at a time may use a graph, its regions and its nodes; different graphs are
 * independent. Several threads may clone one graph at once, as long as no thread changes it.
 *
 * An edit that fails leaves the graph unchanged and does not take ownership of the values it was
 * given: floating ones are still floating.
 */
#ifndef CFX_GRAPH_H
#define CFX_GRAPH_H

#include <cfx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_host cfx_host;          /* embed/host.h; C programs pass NULL */
typedef struct cfx_node_map cfx_node_map;  /* embed/copy.h; C programs pass NULL */

typedef enum cfx_opcode {
#define CFX_OPCODE(id, name, target) CFX_OP_##id,
#include <cfx/opcode.def>
#undef CFX_OPCODE
    CFX_OPCODE_COUNT
} cfx_opcode;

/* "call_function"; static text. */
CFX_API const char *cfx_opcode_name(cfx_opcode op);

/* ---- graphs -------------------------------------------------------------------------------- */

/* A new, empty graph; the caller gets one reference. Both pointers may be NULL; otherwise they must
 * outlive the graph. NULL with CFX_E_NOMEM. */
CFX_API cfx_graph *cfx_graph_new(const cfx_allocator *allocator, const cfx_host *host,
                                 cfx_error *err);
/* Takes one more reference, and returns `g`. */
CFX_API cfx_graph *cfx_graph_retain(cfx_graph *g);
/* Drops one reference; the last one frees the graph. NULL is allowed. */
CFX_API void cfx_graph_release(cfx_graph *g);

/* The allocator that the graph was made with. */
CFX_API const cfx_allocator *cfx_graph_allocator(const cfx_graph *g);
/* The number of nodes. */
CFX_API size_t cfx_graph_size(const cfx_graph *g);
/* The graph whose region `g` is, borrowed; NULL if it is not a region. */
CFX_API cfx_graph *cfx_graph_parent(const cfx_graph *g);

/* A copy with the same names, order, types, locations and module stacks, and with the host and
 * allocator of `g`. Memory of erased nodes is not copied. `map` (may be NULL) receives the copy of
 * each node. The caller gets one reference; NULL with *err set on failure. */
CFX_API cfx_graph *cfx_graph_clone(cfx_graph *g, cfx_node_map *map, cfx_error *err);

/* Whether both have the same nodes in the same order: opcodes, targets, arguments, types, regions.
 * Unless `shape_only`, also the same names, locations and module stacks. */
CFX_API bool cfx_graph_equal(const cfx_graph *a, const cfx_graph *b, bool shape_only);

/* ---- creating nodes ------------------------------------------------------------------------ */

/* What a node calls or reads: a function, a method, or the path of a module or attribute. `object`
 * is for graphs with a host, and only for call_function: if it is not NULL, it takes precedence. */
typedef struct cfx_target {
    void *object;
    const char *name;
    size_t size;  /* of `name`, in bytes */
} cfx_target;

/* A keyword argument. */
typedef struct cfx_kwarg {
    const char *name;
    cfx_value value;
} cfx_kwarg;

/* The common cases. Each creates a node at the insertion point and returns it borrowed, or NULL
 * with *err set. `args` is an array of `n` values, `kwargs` one of `n_kwargs`; both may be NULL if
 * they are empty. */
CFX_API cfx_node *cfx_graph_placeholder(cfx_graph *g, const char *name, cfx_error *err);
CFX_API cfx_node *cfx_graph_get_attr(cfx_graph *g, const char *path, cfx_error *err);
CFX_API cfx_node *cfx_graph_call(cfx_graph *g, cfx_opcode op, const char *target,
                                 const cfx_value *args, size_t n, const cfx_kwarg *kwargs,
                                 size_t n_kwargs, cfx_error *err);
CFX_API cfx_node *cfx_graph_output(cfx_graph *g, cfx_value result, cfx_error *err);

/* The general case. `args` is a TUPLE, `kwargs` a DICT with string keys, `type` any value without
 * nodes. INVALID means none, so check the result of a constructor before you pass it here. `name`
 * is made a unique identifier; NULL derives it from the target. */
CFX_API cfx_node *cfx_graph_create(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_value args,
                                   cfx_value kwargs, const char *name, cfx_value type,
                                   cfx_error *err);

/* Where new nodes go: before `node`, or directly after it (several nodes created after the same one
 * end up in reverse order, as in torch.fx). With a NULL node, before means the end of the graph and
 * after its start. If the node is erased, the position stays. */
typedef struct cfx_insert_point {
    cfx_node *node;
    bool after;
} cfx_insert_point;
CFX_API cfx_insert_point cfx_graph_insert_point(const cfx_graph *g);
/* CFX_E_GRAPH if the node is erased or belongs to another graph. */
CFX_API cfx_status cfx_graph_set_insert_point(cfx_graph *g, cfx_insert_point at, cfx_error *err);

/* Removes `n` from its graph. CFX_E_GRAPH if it has users, is already erased, or belongs to another
 * graph. Its name is not reused. */
CFX_API cfx_status cfx_graph_erase(cfx_graph *g, cfx_node *n, cfx_error *err);

/* ---- finding nodes ------------------------------------------------------------------------- */

/* Ends of the list; NULL if the graph is empty. cfx_node_next and cfx_node_prev walk it. */
CFX_API cfx_node *cfx_graph_first(const cfx_graph *g);
CFX_API cfx_node *cfx_graph_last(const cfx_graph *g);
/* The node of this name; NULL if there is none. */
CFX_API cfx_node *cfx_graph_find(const cfx_graph *g, const char *name);

/* Calls `fn` for each node with this opcode, and with this target unless `target` is NULL, in no
 * particular order. Stops at the first status that is not CFX_OK and returns it. `fn` must not edit
 * the graph. O(nodes found). */
typedef cfx_status cfx_node_fn(void *ctx, cfx_node *n);
CFX_API cfx_status cfx_graph_find_nodes(cfx_graph *g, cfx_opcode op, const cfx_target *target,
                                        cfx_node_fn *fn, void *ctx);

/* Walks the list while it changes: sees nodes that are inserted ahead, skips erased ones, and
 * follows the current node if it is moved. Every begin needs an end: an open iterator keeps erased
 * nodes in memory. */
typedef struct cfx_iter {
    cfx_graph *graph;
    cfx_node *current;
    bool reverse;
} cfx_iter;
CFX_API void cfx_iter_begin(cfx_iter *it, cfx_graph *g, bool reverse);
/* The next node; NULL at the end, after which the iteration starts over. */
CFX_API cfx_node *cfx_iter_next(cfx_iter *it);
CFX_API void cfx_iter_end(cfx_iter *it);

/* ---- checking ------------------------------------------------------------------------------ */

/* Called for each problem; `n` is NULL if the problem does not concern a single node. */
typedef void cfx_finding_fn(void *ctx, const cfx_node *n, const char *message);

/* Checks that names are unique identifiers, that targets and arguments are well formed, that every
 * value is defined before it is used, that placeholders come first and the output last, that the
 * regions of cond, while_loop and for_loop have the right inputs and outputs, and that the internal
 * use lists are consistent. Reports every finding to `report` (may be NULL), then fails once, with
 * the first. */
CFX_API cfx_status cfx_graph_verify(cfx_graph *g, cfx_finding_fn *report, void *ctx,
                                    cfx_error *err);

/* The subset that torch.fx's lint checks: unique names, targets, definitions before uses; and
 * regions. Late placeholders and nodes after the output are allowed. */
CFX_API cfx_status cfx_graph_lint(cfx_graph *g, cfx_finding_fn *report, void *ctx, cfx_error *err);

/* ---- text ---------------------------------------------------------------------------------- */

/* Writes torch.fx's str(graph), byte for byte. This and the functions below fail if the sink or the
 * host fails. */
CFX_API cfx_status cfx_graph_print(cfx_graph *g, cfx_sink out, cfx_error *err);

/* Writes torch.fx's print_tabular: opcode, name, target, args, kwargs. If `width` is not 0, long
 * cells are truncated so that no line is wider. */
CFX_API cfx_status cfx_graph_table(cfx_graph *g, size_t width, cfx_sink out, cfx_error *err);

/* Writes the lossless IR text (docs/ir.md). A host object without a qualified name is an error that
 * names the node. */
CFX_API cfx_status cfx_graph_text(cfx_graph *g, cfx_sink out, cfx_error *err);

/* Parses IR text. The caller gets one reference. NULL with *err set: CFX_E_SYNTAX gives the line
 * and column, and the message shows the line with a caret. */
CFX_API cfx_graph *cfx_graph_parse(const char *text, size_t size, const cfx_allocator *allocator,
                                   const cfx_host *host, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
