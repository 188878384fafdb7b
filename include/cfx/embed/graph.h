/* For language bindings and back ends; may change between versions.
 *
 * embed/graph.h - graphs and nodes in detail: order, versions, pins, hashes, less common values.
 */
#ifndef CFX_EMBED_GRAPH_H
#define CFX_EMBED_GRAPH_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs -------------------------------------------------------------------------------- */

/* The opcode of a name ("call_function"); false if there is none. */
CFX_API bool cfx_opcode_parse(const char *name, cfx_opcode *op);

/* The host that the graph was made with; may be NULL. */
CFX_API const cfx_host *cfx_graph_host(const cfx_graph *g);
/* Bytes allocated, not counting regions. */
CFX_API size_t cfx_graph_memory(const cfx_graph *g);
/* Increases with every edit. */
CFX_API uint64_t cfx_graph_version(const cfx_graph *g);
/* The sentinel of the node list, for hosts that expose it to users. Only cfx_node_next,
 * cfx_node_prev, cfx_node_prepend and cfx_node_append accept it. */
CFX_API cfx_node *cfx_graph_root(cfx_graph *g);

/* Whether `g`, or a graph that contains it as a region, is being printed, compared, checked or
 * generated from. The host's code may read it meanwhile, but edits fail with CFX_E_GRAPH. */
CFX_API bool cfx_graph_is_frozen(const cfx_graph *g);

/* Erases all nodes and releases all values; does nothing to a frozen graph. Iterators and pinned
 * nodes stay valid. */
CFX_API void cfx_graph_clear(cfx_graph *g);

/* A hash that is the same in every process. Graphs that are equal by cfx_graph_equal (with the same
 * `shape_only`) have equal hashes. Host objects that only the host considers equal are hashed by
 * their names. */
CFX_API cfx_status cfx_graph_hash(cfx_graph *g, bool shape_only, uint64_t *hash, cfx_error *err);

/* Calls `fn` for each node that has users, with its last user on the list: the value is dead after
 * that node. Users are visited from the last to the first, the inputs of each in order. Stops at
 * the first status other than CFX_OK and returns it. `fn` must not edit the graph. O(nodes +
 * edges). */
typedef cfx_status cfx_last_use_fn(void *ctx, cfx_node *user, cfx_node *def);
CFX_API cfx_status cfx_graph_each_last_use(cfx_graph *g, cfx_last_use_fn *fn, void *ctx);

/* ---- nodes --------------------------------------------------------------------------------- */

/* A pinned node stays readable after it is erased, as do all nodes after it on the list. It keeps
 * the literals among its arguments; nodes and regions in them become None, as in torch.fx. Every
 * pin needs an unpin; but a node that was pinned three times at once stays pinned forever. */
CFX_API void cfx_node_pin(cfx_node *n);
CFX_API void cfx_node_unpin(cfx_node *n);
/* Also valid for a pinned node that was erased. */
CFX_API bool cfx_node_is_erased(const cfx_node *n);

/* A number that increases along the list; edits may change it. */
CFX_API uint64_t cfx_node_order(const cfx_node *n);

/* The host's object for the target: borrowed; NULL if the target is only a name. */
CFX_API void *cfx_node_target_object(const cfx_node *n);
/* Whether two nodes of one graph have the same target. */
CFX_API bool cfx_node_same_target(const cfx_node *a, const cfx_node *b);

/* The use edge from `def` to `user`; NULL if there is none. Searches the shorter of the two
 * lists. */
CFX_API const cfx_use *cfx_node_find_use(const cfx_node *user, const cfx_node *def);
/* How often the definition occurs in the user's arguments. */
CFX_API uint32_t cfx_use_count(const cfx_use *use);

/* Assigns args and kwargs in one edit. */
CFX_API cfx_status cfx_node_set_args_kwargs(cfx_node *n, cfx_value args, cfx_value kwargs,
                                            cfx_error *err);
/* Inserts an argument. Unlike every other assignment it keeps the position of `n` among the users
 * of its inputs, and the new input comes last, as in torch.fx. */
CFX_API cfx_status cfx_node_insert_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_node_set_op(cfx_node *n, cfx_opcode op, cfx_error *err);
/* Sets the name as given, without a check, like an assignment to `name` in torch.fx. The verifier
 * reports names that are not valid. */
CFX_API cfx_status cfx_node_set_name(cfx_node *n, const char *name, size_t size, cfx_error *err);

/* Writes a node as in the IR text, on one line, without its location and newline; for messages. A
 * region is written as "graph {...}". */
CFX_API cfx_status cfx_node_text(cfx_node *n, cfx_sink out, cfx_error *err);

/* ---- values -------------------------------------------------------------------------------- */

/* More constructors, with the same contract as those in value.h. */
CFX_API cfx_value cfx_value_bytes(cfx_graph *g, const void *data, size_t size, cfx_error *err);
CFX_API cfx_value cfx_value_complex(cfx_graph *g, double re, double im, cfx_error *err);
/* An integer from its decimal digits, with an optional '-': an INT if it fits, else a BIGINT. */
CFX_API cfx_value cfx_value_integer(cfx_graph *g, const char *digits, size_t size, cfx_error *err);

/* Calls `fn` for each node in `v`, left to right, including those in containers but not those in
 * regions. Stops at the first status other than CFX_OK and returns it. */
CFX_API cfx_status cfx_value_each_node(cfx_value v, cfx_node_fn *fn, void *ctx);

/* "strided" and "channels_last"; static texts. */
CFX_API const char *cfx_layout_name(cfx_layout layout);
CFX_API const char *cfx_memory_format_name(cfx_memory_format f);

/* ---- positions in a text -------------------------------------------------------------------- */

/* The positions of the nodes in a text. */
typedef struct cfx_text_places cfx_text_places;
typedef struct cfx_text_place {
    size_t offset;  /* in bytes, of the node's '%' or of the word output */
    uint32_t line;  /* both from 1 */
    uint32_t column;
} cfx_text_place;

/* Parses like cfx_graph_parse, and sets *places (NULL on failure), which the caller frees. It
 * covers the nodes of the graph and of its regions, as long as they exist. */
CFX_API cfx_graph *cfx_graph_parse_places(const char *text, size_t size,
                                          const cfx_allocator *allocator, const cfx_host *host,
                                          cfx_text_places **places, cfx_error *err);
/* The position of `n`; false if it does not come from the text. Not thread-safe. */
CFX_API bool cfx_text_places_find(cfx_text_places *places, const cfx_node *n, cfx_text_place *out);
CFX_API void cfx_text_places_free(cfx_text_places *places);

#ifdef __cplusplus
}
#endif
#endif
