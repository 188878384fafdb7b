/* For language bindings and back ends; may change between versions.
 *
 * embed/graph.h - graphs and nodes in detail: order, versions, pins, hashes, rare values.
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
/* Bytes held, without regions. */
CFX_API size_t cfx_graph_memory(const cfx_graph *g);
/* Grows with every edit. */
CFX_API uint64_t cfx_graph_version(const cfx_graph *g);
/* The sentinel of the node list, for hosts whose users see it. Only cfx_node_next, cfx_node_prev,
 * cfx_node_prepend and cfx_node_append accept it. */
CFX_API cfx_node *cfx_graph_root(cfx_graph *g);

/* Whether `g`, or a graph that it is a region of, is being printed, compared, checked or generated
 * from. The host's code may read it meanwhile, but edits fail with CFX_E_GRAPH. */
CFX_API bool cfx_graph_is_frozen(const cfx_graph *g);

/* Erases all nodes and releases all values; does nothing to a frozen graph. Iterators and pinned
 * nodes stay valid. */
CFX_API void cfx_graph_clear(cfx_graph *g);

/* Graphs that cfx_graph_equal calls equal (with the same `shape_only`) have equal hashes, in every
 * process. Host objects that only the host calls equal count by their names. */
CFX_API cfx_status cfx_graph_hash(cfx_graph *g, bool shape_only, uint64_t *hash, cfx_error *err);

/* Calls `fn` for each node that is used, with the last of its users on the list: its value is dead
 * after that one. Users come from the last to the first, the inputs of each in order. Stops at the
 * first status that is not CFX_OK and returns it. `fn` must not edit the graph. O(nodes + edges).
 */
typedef cfx_status cfx_last_use_fn(void *ctx, cfx_node *user, cfx_node *def);
CFX_API cfx_status cfx_graph_each_last_use(cfx_graph *g, cfx_last_use_fn *fn, void *ctx);

/* ---- nodes --------------------------------------------------------------------------------- */

/* A pinned node stays readable after it is erased, and so does all that follows it on the list.
 * Every pin needs an unpin; but a node that was pinned three times at once stays pinned. */
CFX_API void cfx_node_pin(cfx_node *n);
CFX_API void cfx_node_unpin(cfx_node *n);
/* May be asked of a pinned node. */
CFX_API bool cfx_node_is_erased(const cfx_node *n);

/* A number that grows along the list; edits may change it. */
CFX_API uint64_t cfx_node_order(const cfx_node *n);

/* The host's object for the target: borrowed; NULL if the target is a name. */
CFX_API void *cfx_node_target_object(const cfx_node *n);
/* Whether two nodes of one graph have the same target. */
CFX_API bool cfx_node_same_target(const cfx_node *a, const cfx_node *b);

/* The use edge from `def` to `user`; NULL if there is none. Takes the shorter of the two lists. */
CFX_API const cfx_use *cfx_node_find_use(const cfx_node *user, const cfx_node *def);
/* How often the definition stands in the user's arguments. */
CFX_API uint32_t cfx_use_count(const cfx_use *use);

/* Assigns args and kwargs in one edit. */
CFX_API cfx_status cfx_node_set_args_kwargs(cfx_node *n, cfx_value args, cfx_value kwargs,
                                            cfx_error *err);
/* Inserts an argument. Unlike every other assignment it leaves `n` at its place among the users of
 * what it reads, and the new input comes last, as in torch.fx. */
CFX_API cfx_status cfx_node_insert_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_node_set_op(cfx_node *n, cfx_opcode op, cfx_error *err);
/* Sets the name exactly as it is, without a check, as an assignment to `name` does in torch.fx. The
 * verifier reports what is wrong with it. */
CFX_API cfx_status cfx_node_set_name(cfx_node *n, const char *name, size_t size, cfx_error *err);

/* Writes a node as in the IR text, on one line, without its location and newline: for messages. A
 * region is written as "graph {...}". */
CFX_API cfx_status cfx_node_text(cfx_node *n, cfx_sink out, cfx_error *err);

/* ---- values -------------------------------------------------------------------------------- */

/* Further constructors, with the contract of those in value.h. */
CFX_API cfx_value cfx_value_bytes(cfx_graph *g, const void *data, size_t size, cfx_error *err);
CFX_API cfx_value cfx_value_complex(cfx_graph *g, double re, double im, cfx_error *err);
/* An integer from its decimal digits, with an optional '-': an INT if it fits, else a BIGINT. */
CFX_API cfx_value cfx_value_integer(cfx_graph *g, const char *digits, size_t size, cfx_error *err);

/* Calls `fn` for each node in `v`, left to right. It descends into containers, not into regions.
 * Stops at the first status that is not CFX_OK and returns it. */
CFX_API cfx_status cfx_value_each_node(cfx_value v, cfx_node_fn *fn, void *ctx);

/* "strided" and "channels_last"; static texts. */
CFX_API const char *cfx_layout_name(cfx_layout layout);
CFX_API const char *cfx_memory_format_name(cfx_memory_format f);

/* ---- places in a text ---------------------------------------------------------------------- */

/* Where the nodes of a text stand in it. */
typedef struct cfx_text_places cfx_text_places;
typedef struct cfx_text_place {
    size_t offset;  /* in bytes: of the node's '%', or of the word output */
    uint32_t line;  /* both counted from 1 */
    uint32_t column;
} cfx_text_place;

/* Parses as cfx_graph_parse does, and sets *places (NULL if it fails), which is the caller's to
 * free. It knows the nodes of the graph and of its regions while they exist. */
CFX_API cfx_graph *cfx_graph_parse_places(const char *text, size_t size,
                                          const cfx_allocator *allocator, const cfx_host *host,
                                          cfx_text_places **places, cfx_error *err);
/* Where `n` stands; false if it does not come from the text. Not for several threads at once. */
CFX_API bool cfx_text_places_find(cfx_text_places *places, const cfx_node *n, cfx_text_place *out);
CFX_API void cfx_text_places_free(cfx_text_places *places);

#ifdef __cplusplus
}
#endif
#endif
