/* graph.h - the graph: nodes of six opcodes on a list, their uses, editing, checking, text.
 *
 * A graph owns its nodes; a `cfx_node *` is borrowed and stays valid until the node is erased and
 * nothing pins it (see cfx_iter and cfx_node_pin), or the graph is freed. A graph, its regions and
 * its nodes are used by one thread at a time; different graphs are independent. But several threads
 * may clone one at once (cfx_graph_clone), while nobody uses it otherwise.
 *
 * An edit that fails leaves the graph as it was, and the values it was given with their owner:
 * what was floating still is.
 */
#ifndef CFX_GRAPH_H
#define CFX_GRAPH_H

#include <cfx/host.h>
#include <cfx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_opcode {
#define CFX_OPCODE(id, name, target) CFX_OP_##id,
#include <cfx/opcode.def>
#undef CFX_OPCODE
    CFX_OPCODE_COUNT
} cfx_opcode;

CFX_API const char *cfx_opcode_name(cfx_opcode op);               /* "call_function" */
CFX_API bool cfx_opcode_parse(const char *name, cfx_opcode *op);  /* false if unknown */

/* ---- the graph ----------------------------------------------------------------------------- */

/* A new, empty graph with one reference. Both pointers are kept and may be NULL. */
CFX_API cfx_graph *cfx_graph_new(const cfx_allocator *allocator, const cfx_host *host,
                                 cfx_error *err);
CFX_API cfx_graph *cfx_graph_retain(cfx_graph *g);
CFX_API void cfx_graph_release(cfx_graph *g);  /* NULL is allowed */

/* What the graph was made with; the host may be NULL. */
CFX_API const cfx_host *cfx_graph_host(const cfx_graph *g);
CFX_API const cfx_allocator *cfx_graph_allocator(const cfx_graph *g);
CFX_API size_t cfx_graph_size(const cfx_graph *g);         /* number of nodes */
CFX_API size_t cfx_graph_memory(const cfx_graph *g);       /* bytes held, regions not counted */
CFX_API cfx_graph *cfx_graph_parent(const cfx_graph *g);   /* whose region it is, or NULL */
CFX_API uint64_t cfx_graph_version(const cfx_graph *g);    /* grows with every edit */

/* One pointer for the embedding language (its object for this graph). */
CFX_API void *cfx_graph_binding(const cfx_graph *g);
CFX_API void cfx_graph_set_binding(cfx_graph *g, void *binding);

/* Calls `fn` once for each distinct host object and bound region that `g` holds a reference to. */
CFX_API int cfx_graph_visit_hosts(cfx_graph *g, int (*fn)(void *object, void *ctx), void *ctx);

/* Whether `g`, or a graph that it is a region of, is being printed, compared, checked or generated
 * from: code of the host that runs meanwhile may read it, but edits fail with CFX_E_GRAPH. */
CFX_API bool cfx_graph_is_frozen(const cfx_graph *g);

/* Erases every node and lets go of every value; does nothing to a frozen graph. Iterators and
 * pinned nodes stay valid. */
CFX_API void cfx_graph_clear(cfx_graph *g);

/* ---- creating nodes ------------------------------------------------------------------------ */

/* What a call names. `object` wins if it is not NULL (call_function only, needs a host). */
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

/* Creates a node at the insertion point and returns it. `name` is a wish, made a unique identifier
 * (see cfx_namespace_create); NULL derives it from the target. `args` is a TUPLE or INVALID for
 * none, `kwargs` a DICT with string keys or INVALID for none, `type` any value without nodes or
 * INVALID: so look at what a constructor returned before it gets here. */
CFX_API cfx_node *cfx_graph_create(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_value args,
                                   cfx_value kwargs, const char *name, cfx_value type,
                                   cfx_error *err);

/* The common cases, for C programs. `args` is an array of `n` values. */
CFX_API cfx_node *cfx_graph_placeholder(cfx_graph *g, const char *name, cfx_error *err);
CFX_API cfx_node *cfx_graph_get_attr(cfx_graph *g, const char *path, cfx_error *err);
CFX_API cfx_node *cfx_graph_call(cfx_graph *g, cfx_opcode op, const char *target,
                                 const cfx_value *args, size_t n, const cfx_kwarg *kwargs,
                                 size_t n_kwargs, cfx_error *err);
CFX_API cfx_node *cfx_graph_output(cfx_graph *g, cfx_value result, cfx_error *err);

/* Where the next nodes go: before `n`, or directly after it (several nodes created after the same
 * node end up in reverse order, as in torch.fx). NULL: before = at the end, after = at the start.
 * If that node is erased, the place stays. */
typedef struct cfx_insert_point {
    cfx_node *node;
    bool after;
} cfx_insert_point;
CFX_API cfx_insert_point cfx_graph_insert_point(const cfx_graph *g);
CFX_API cfx_status cfx_graph_set_insert_point(cfx_graph *g, cfx_insert_point at, cfx_error *err);

/* ---- reading nodes ------------------------------------------------------------------------- */

CFX_API cfx_node *cfx_graph_first(const cfx_graph *g);  /* NULL if empty */
CFX_API cfx_node *cfx_graph_last(const cfx_graph *g);
CFX_API cfx_node *cfx_node_next(const cfx_node *n);     /* NULL after the last */
CFX_API cfx_node *cfx_node_prev(const cfx_node *n);
CFX_API cfx_node *cfx_graph_find(const cfx_graph *g, const char *name);  /* by its name, or NULL */
/* The list's sentinel, for hosts whose users see it: only move, next and prev make sense on it. */
CFX_API cfx_node *cfx_graph_root(cfx_graph *g);

/* These cannot fail, and can be asked of an erased node that is pinned, too. */
CFX_API cfx_graph *cfx_node_graph(const cfx_node *n);
CFX_API cfx_opcode cfx_node_op(const cfx_node *n);
CFX_API const char *cfx_node_name(const cfx_node *n, size_t *size);  /* size may be NULL */
CFX_API bool cfx_node_is_erased(const cfx_node *n);

/* The target's name: a path, a method, or the qualified name of a function. For a host object the
 * host is asked once and the answer kept; NULL with *err set if it has no name. */
CFX_API const char *cfx_node_target(const cfx_node *n, size_t *size, cfx_error *err);
CFX_API void *cfx_node_target_object(const cfx_node *n);  /* NULL if the target is a name */
CFX_API bool cfx_node_same_target(const cfx_node *a, const cfx_node *b);  /* of one graph */

CFX_API cfx_value cfx_node_args(const cfx_node *n);    /* a TUPLE, borrowed (may be empty) */
CFX_API cfx_value cfx_node_kwargs(const cfx_node *n);  /* a DICT, borrowed (may be empty) */
CFX_API cfx_value cfx_node_type(const cfx_node *n);    /* INVALID if it has none */
CFX_API size_t cfx_node_num_args(const cfx_node *n);
CFX_API cfx_value cfx_node_arg(const cfx_node *n, size_t i);           /* INVALID if too large */
CFX_API cfx_value cfx_node_kwarg(const cfx_node *n, const char *key);   /* INVALID if absent */

/* True if `a` stands before `b` in their graph: O(1). */
CFX_API bool cfx_node_before(const cfx_node *a, const cfx_node *b);
CFX_API uint64_t cfx_node_order(const cfx_node *n);  /* grows along the list; changes with edits */

/* Where the user wrote it: file and line, and the chain of modules it was called in. */
CFX_API cfx_status cfx_node_set_location(cfx_node *n, const char *file, uint32_t line,
                                         cfx_error *err);
CFX_API const char *cfx_node_file(const cfx_node *n);  /* NULL if unknown */
CFX_API uint32_t cfx_node_line(const cfx_node *n);     /* 0 if unknown */
/* For whoever sets the same locations again and again: each (file, line) has a number in its
 * graph, from 1 on; 0 is none. Returns 0 with *err set if it fails. */
CFX_API uint32_t cfx_graph_location(cfx_graph *g, const char *file, uint32_t line, cfx_error *err);
CFX_API void cfx_node_set_location_number(cfx_node *n, uint32_t location);

/* A scope is a module call inside another: its path ("layers.0"; "layers.0@1" for the second call
 * of the same module) and its class ("nn.Linear"). `object` is the host's object for the class, or
 * NULL: the graph holds a reference to it, and copies do. Scopes are numbered from 1 in each graph;
 * 0 is none. The same (parent, path, type, object) is the same scope. Returns 0 with *err set if it
 * fails. */
CFX_API uint32_t cfx_graph_scope(cfx_graph *g, uint32_t parent, const char *path, const char *type,
                                 void *object, cfx_error *err);
CFX_API uint32_t cfx_scope_parent(const cfx_graph *g, uint32_t scope);
CFX_API const char *cfx_scope_path(const cfx_graph *g, uint32_t scope);
CFX_API const char *cfx_scope_type(const cfx_graph *g, uint32_t scope);
CFX_API void *cfx_scope_object(const cfx_graph *g, uint32_t scope);  /* NULL if it has none */
CFX_API uint32_t cfx_node_scope(const cfx_node *n);
CFX_API void cfx_node_set_scope(cfx_node *n, uint32_t scope);

/* One pointer for the embedding language (its object for this node); NULL at first. */
CFX_API void *cfx_node_binding(const cfx_node *n);
CFX_API void cfx_node_set_binding(cfx_node *n, void *binding);

/* Whether args or kwargs were assigned since the last call: for bindings that cache them. */
CFX_API bool cfx_node_args_changed(cfx_node *n);

/* A pinned node stays readable after it is erased, and so does all that follows it on the list.
 * Every pin needs an unpin; but a node that was pinned three times at once stays pinned. */
CFX_API void cfx_node_pin(cfx_node *n);
CFX_API void cfx_node_unpin(cfx_node *n);

/* ---- uses ---------------------------------------------------------------------------------- */

/* One use edge per distinct (definition, user) pair. Users come in the order in which they began
 * to use the node; assigning new arguments to a user moves it to the end. */
CFX_API size_t cfx_node_num_users(const cfx_node *n);
CFX_API size_t cfx_node_num_inputs(const cfx_node *n);
/* Distinct, in the order of args and kwargs; but what cfx_node_insert_arg brings in comes last, as
 * in torch.fx. */
CFX_API cfx_node *cfx_node_input(const cfx_node *n, size_t i);

typedef struct cfx_use cfx_use;
CFX_API const cfx_use *cfx_node_first_use(const cfx_node *n);                  /* NULL if unused */
CFX_API const cfx_use *cfx_use_next(const cfx_use *use);                       /* NULL at the end */
CFX_API const cfx_use *cfx_node_last_use(const cfx_node *n);
CFX_API const cfx_use *cfx_use_prev(const cfx_use *use);
CFX_API cfx_node *cfx_use_user(const cfx_use *use);
CFX_API uint32_t cfx_use_count(const cfx_use *use);  /* how often it stands in the arguments */
/* NULL if `user` does not use `def`. O(min of both lists), as is cfx_node_uses. */
CFX_API const cfx_use *cfx_node_find_use(const cfx_node *user, const cfx_node *def);
CFX_API bool cfx_node_uses(const cfx_node *user, const cfx_node *def);

/* Calls `fn` for each node that is used, with the last of its users on the list, after which its
 * value is dead: users from the last to the first, and the inputs of each in their order. Stops at
 * the first status that is not CFX_OK and returns it. Do not edit the graph inside `fn`. O(nodes +
 * edges). */
typedef cfx_status cfx_last_use_fn(void *ctx, cfx_node *user, cfx_node *def);
CFX_API cfx_status cfx_graph_each_last_use(cfx_graph *g, cfx_last_use_fn *fn, void *ctx);

/* ---- iteration while the list changes ------------------------------------------------------ */

/* Walks the list as it is at each step: nodes inserted ahead are seen, erased ones are skipped,
 * and if the current node is moved the walk goes on from its new place. Begin and end must pair:
 * an open iterator pins erased nodes. */
typedef struct cfx_iter {
    cfx_graph *graph;
    cfx_node *current;
    bool reverse;
} cfx_iter;
CFX_API void cfx_iter_begin(cfx_iter *it, cfx_graph *g, bool reverse);
CFX_API cfx_node *cfx_iter_next(cfx_iter *it);  /* NULL at the end; then it starts again */
CFX_API void cfx_iter_end(cfx_iter *it);

/* All nodes of an opcode, and of a target unless `target` is NULL, in no particular order: calls
 * `fn` for each; O(found). Do not edit the graph inside `fn`. */
CFX_API cfx_status cfx_graph_each_of(cfx_graph *g, cfx_opcode op, const cfx_target *target,
                                     cfx_node_fn *fn, void *ctx);

/* ---- editing ------------------------------------------------------------------------------- */

/* Assigning arguments: `args` is a TUPLE, `kwargs` a DICT with string keys, of this graph. `n`
 * moves to the end of the users of what it reads. CFX_E_INDEX for an argument that it does not
 * have. */
CFX_API cfx_status cfx_node_set_args(cfx_node *n, cfx_value args, cfx_error *err);
CFX_API cfx_status cfx_node_set_kwargs(cfx_node *n, cfx_value kwargs, cfx_error *err);
CFX_API cfx_status cfx_node_set_args_kwargs(cfx_node *n, cfx_value args, cfx_value kwargs,
                                            cfx_error *err);
CFX_API cfx_status cfx_node_set_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err);
/* Unlike every other assignment, this leaves `n` at its place among the users. */
CFX_API cfx_status cfx_node_insert_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_node_set_kwarg(cfx_node *n, const char *key, cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_node_set_target(cfx_node *n, cfx_target target, cfx_error *err);
CFX_API cfx_status cfx_node_set_op(cfx_node *n, cfx_opcode op, cfx_error *err);
CFX_API cfx_status cfx_node_set_type(cfx_node *n, cfx_value type, cfx_error *err);

/* Gives `n` a new name: made unique (cfx_node_rename), or exactly as it is (cfx_node_set_name:
 * no check, as torch.fx's assignment to `name`; the verifier reports what is wrong with it). */
CFX_API cfx_status cfx_node_rename(cfx_node *n, const char *wish, cfx_error *err);
CFX_API cfx_status cfx_node_set_name(cfx_node *n, const char *name, size_t size, cfx_error *err);

/* Moves `n` directly before or after `at`, both of one graph. Moving a node next to itself does
 * nothing. CFX_E_GRAPH if either is erased or they are of different graphs. */
CFX_API cfx_status cfx_node_move_before(cfx_node *at, cfx_node *n, cfx_error *err);
CFX_API cfx_status cfx_node_move_after(cfx_node *at, cfx_node *n, cfx_error *err);

/* Takes `n` off its graph. CFX_E_GRAPH if it has users, was erased before, or is not of `g`.
 * The name stays taken. */
CFX_API cfx_status cfx_graph_erase(cfx_graph *g, cfx_node *n, cfx_error *err);

/* Makes every user of `old` use `with` instead, except those for which `keep` answers 0 (all, if
 * `keep` is NULL; -1 stops with CFX_E_HOST before anything has changed). Users are asked and
 * changed in their order. Each changed user is reported to `changed` (may be NULL). Linear in the
 * uses. `with` may be any value of the graph; replacing a node by itself re-orders its users. */
typedef int cfx_use_filter(void *ctx, cfx_node *user);
CFX_API cfx_status cfx_node_replace_uses(cfx_node *old, cfx_value with, cfx_use_filter *filter,
                                         void (*changed)(void *ctx, cfx_node *user), void *ctx,
                                         cfx_error *err);

/* Replaces `old` by `with` in the arguments of `n` alone. */
CFX_API cfx_status cfx_node_replace_input(cfx_node *n, cfx_node *old, cfx_value with,
                                          cfx_error *err);

/* ---- hooks --------------------------------------------------------------------------------- */

/* Called after a node was created, before one is erased, and for each user whose use of `n` is
 * being replaced by `with`. A status that is not CFX_OK makes the edit fail; a created node is
 * then taken back, unless a hook has given it users. Hooks are called in the order of registration
 * and may not edit the graph's hook list. Returns an id > 0 for cfx_graph_remove_hook, or 0 with
 * *err set. */
typedef enum cfx_hook_kind { CFX_HOOK_CREATE, CFX_HOOK_ERASE, CFX_HOOK_REPLACE } cfx_hook_kind;
typedef cfx_status cfx_hook_fn(void *ctx, cfx_node *n, cfx_value with, cfx_node *user,
                               cfx_error *err);
CFX_API uint32_t cfx_graph_add_hook(cfx_graph *g, cfx_hook_kind kind, cfx_hook_fn *fn, void *ctx,
                                    cfx_error *err);
CFX_API bool cfx_graph_remove_hook(cfx_graph *g, uint32_t id);

/* Calls `fn` once, just before the next edit of `g` or of a region in it: whoever has put off work
 * on the graph as it is now does it then. `fn` can read the graph but not edit it: it is frozen. A
 * graph has one such callback: this replaces it, NULL removes it. Freeing the graph is no edit. */
typedef void cfx_edit_fn(void *ctx, cfx_graph *g);
CFX_API void cfx_graph_on_edit(cfx_graph *g, cfx_edit_fn *fn, void *ctx);

/* ---- names --------------------------------------------------------------------------------- */

/* The names that are taken in one scope, as torch.fx counts them: a wish is cleaned (every run of
 * other characters becomes '_', a leading digit gets a '_', "" becomes "_unnamed"), and if it is
 * taken, a keyword or a builtin, the next free number is appended. Amortised O(length). */
typedef struct cfx_namespace cfx_namespace;
CFX_API cfx_namespace *cfx_namespace_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_namespace_free(cfx_namespace *ns);
/* The name, borrowed until the namespace is freed; NULL with *err set. `allow_reserved` accepts
 * keywords and builtins as they are (for a global that *is* that builtin). */
CFX_API const char *cfx_namespace_create(cfx_namespace *ns, const char *wish, size_t size,
                                         bool allow_reserved, cfx_error *err);
/* Takes exactly this name, whatever it looks like; nothing happens if it is taken. */
CFX_API cfx_status cfx_namespace_add(cfx_namespace *ns, const char *name, size_t size,
                                     cfx_error *err);
/* The names that are taken, one by one and in no order; NULL after the last. Start with *cursor
 * at 0, and take no name in between. `size` may be NULL. */
CFX_API const char *cfx_namespace_each(const cfx_namespace *ns, size_t *cursor, size_t *size);
CFX_API bool cfx_namespace_has(const cfx_namespace *ns, const char *name, size_t size);
CFX_API bool cfx_name_is_reserved(const char *name, size_t size);  /* keyword, builtin, global */
CFX_API cfx_namespace *cfx_graph_namespace(cfx_graph *g);          /* borrowed */
/* "FooBar" to "foo_bar": an underscore between a lower- and an upper-case letter, then lower. */
CFX_API cfx_status cfx_snake_case(const char *name, size_t size, cfx_buffer *out);

/* ---- whole graphs -------------------------------------------------------------------------- */

/* A map from nodes to values, for copies. Values are borrowed from the graph they belong to. */
typedef struct cfx_node_map cfx_node_map;
CFX_API cfx_node_map *cfx_node_map_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_node_map_free(cfx_node_map *map);
CFX_API cfx_status cfx_node_map_set(cfx_node_map *map, const cfx_node *key, cfx_value v,
                                    cfx_error *err);
CFX_API cfx_value cfx_node_map_get(const cfx_node_map *map, const cfx_node *key);  /* or INVALID */

/* A copy with the same names, order, types, locations and scopes, in a fresh arena: it is also the
 * compactor. Nodes of both graphs correspond in order; `map` (may be NULL) receives every pair.
 * The copy has the same host and allocator, no bindings and no hooks. */
CFX_API cfx_graph *cfx_graph_clone(cfx_graph *g, cfx_node_map *map, cfx_error *err);

/* Copies `n` of any graph into `g` at its insertion point, its arguments mapped by `fn`. */
CFX_API cfx_node *cfx_graph_copy_node(cfx_graph *g, const cfx_node *n, cfx_map_fn *fn, void *ctx,
                                      cfx_error *err);

/* Copies the nodes of `src` up to its output into `g`; nodes already in `map` are not copied.
 * *result receives the output's value mapped to `g`, floating (INVALID if `src` has no output);
 * *output the output node of `src` or NULL (may be NULL). If it fails, the nodes copied so far
 * are erased again. */
CFX_API cfx_status cfx_graph_copy_into(cfx_graph *g, cfx_graph *src, cfx_node_map *map,
                                       cfx_value *result, cfx_node **output, cfx_error *err);

/* Same nodes in the same order: opcodes, targets, arguments, types, regions; and names, locations,
 * scopes and what the inputs of regions are called unless `shape_only`; false if memory is out. */
CFX_API bool cfx_graph_equal(const cfx_graph *a, const cfx_graph *b, bool shape_only);
/* Equal graphs (in the sense of `shape_only`) have equal hashes, in any process; but host objects
 * that only the host calls equal count by their names. */
CFX_API cfx_status cfx_graph_hash(cfx_graph *g, bool shape_only, uint64_t *hash, cfx_error *err);

/* ---- checking ------------------------------------------------------------------------------ */

/* Checks names (unique, identifiers), targets, that every argument is defined before it is used in
 * this graph, placeholders first and one output last where there is one, regions (the right number
 * of them for cond, while_loop and for_loop, with fitting inputs and outputs), and that the
 * use edges, counts and order labels agree with the arguments. Reports every finding, then fails
 * once with the first. `report` may be NULL. */
typedef void cfx_finding_fn(void *ctx, const cfx_node *n, const char *message);
CFX_API cfx_status cfx_graph_verify(cfx_graph *g, cfx_finding_fn *report, void *ctx,
                                    cfx_error *err);

/* What torch.fx's lint checks of that, which is less: unique names, targets, definitions before
 * uses; also regions. A graph may have late placeholders, or nodes behind its output. */
CFX_API cfx_status cfx_graph_lint(cfx_graph *g, cfx_finding_fn *report, void *ctx, cfx_error *err);

/* ---- text ---------------------------------------------------------------------------------- */

/* torch.fx's str(graph), byte for byte; one node as torch.fx's format_node gives it. */
CFX_API cfx_status cfx_graph_print(cfx_graph *g, cfx_sink out, cfx_error *err);
CFX_API cfx_status cfx_node_print(cfx_node *n, cfx_sink out, cfx_error *err);

/* One value as torch.fx prints it in str(graph): `%x`, 1, 'text', (%a, [1, 2]). */
CFX_API cfx_status cfx_value_print(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err);

/* One value as Python's repr would give it, nodes by their names: x, 1, 'text', (a, [1, 2]). */
CFX_API cfx_status cfx_value_repr(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err);

/* torch.fx's print_tabular: opcode, name, target, args, kwargs. `width` > 0 cuts long cells so
 * that no line is wider; 0 never cuts. */
CFX_API cfx_status cfx_graph_table(cfx_graph *g, size_t width, cfx_sink out, cfx_error *err);

/* The lossless IR text (docs/ir.md), and back. A host value without a qualified name is an error
 * that names the node. A text error has the line, the column, the line itself and a caret. */
CFX_API cfx_status cfx_graph_text(cfx_graph *g, cfx_sink out, cfx_error *err);
/* One node as it stands there, on one line, without its location and newline: for messages. A
 * region is written as "graph {...}". */
CFX_API cfx_status cfx_node_text(cfx_node *n, cfx_sink out, cfx_error *err);
CFX_API cfx_graph *cfx_graph_parse(const char *text, size_t size, const cfx_allocator *allocator,
                                   const cfx_host *host, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
