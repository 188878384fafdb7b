/* node.h - reads and edits one node: its target, arguments, users, name, type and location.
 *
 * The graph creates and erases nodes (graph.h). Everything returned here is borrowed: the values
 * and texts of a node live until the node is edited.
 */
#ifndef CFX_NODE_H
#define CFX_NODE_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ------------------------------------------------------------------------------- */

/* These cannot fail. */
CFX_API cfx_graph *cfx_node_graph(const cfx_node *n);
CFX_API cfx_opcode cfx_node_op(const cfx_node *n);
/* NUL-terminated; *size (may be NULL) receives its length. */
CFX_API const char *cfx_node_name(const cfx_node *n, size_t *size);

/* Neighbours on the graph's list; NULL past the end. */
CFX_API cfx_node *cfx_node_next(const cfx_node *n);
CFX_API cfx_node *cfx_node_prev(const cfx_node *n);
/* Whether `a` comes before `b` in the graph they share. O(1). */
CFX_API bool cfx_node_before(const cfx_node *a, const cfx_node *b);

/* The name of the target: a path, a method, or the qualified name of a function. For a host object
 * the host is asked once, and the answer is cached; NULL with *err set if the object has no name.
 * `size` may be NULL. */
CFX_API const char *cfx_node_target(const cfx_node *n, size_t *size, cfx_error *err);

/* A TUPLE and a DICT; either may be empty. */
CFX_API cfx_value cfx_node_args(const cfx_node *n);
CFX_API cfx_value cfx_node_kwargs(const cfx_node *n);
CFX_API size_t cfx_node_num_args(const cfx_node *n);
/* One argument, by position or by keyword; INVALID if there is none. */
CFX_API cfx_value cfx_node_arg(const cfx_node *n, size_t i);
CFX_API cfx_value cfx_node_kwarg(const cfx_node *n, const char *key);
/* The annotated type; INVALID if there is none. */
CFX_API cfx_value cfx_node_type(const cfx_node *n);

/* The user's source file and line; NULL and 0 if unknown. */
CFX_API const char *cfx_node_file(const cfx_node *n);
CFX_API uint32_t cfx_node_line(const cfx_node *n);

/* Writes one node as torch.fx's format_node does. Fails if the sink or the host fails. */
CFX_API cfx_status cfx_node_print(cfx_node *n, cfx_sink out, cfx_error *err);

/* ---- uses ---------------------------------------------------------------------------------- */

/* The distinct nodes that `n` reads, in the order of its args and kwargs. `i` must be less than the
 * number of inputs. */
CFX_API size_t cfx_node_num_inputs(const cfx_node *n);
CFX_API cfx_node *cfx_node_input(const cfx_node *n, size_t i);

/* The distinct nodes that read `n`, in the order in which they became users. Assigning the
 * arguments of a user moves it to the end:
 *
 *     for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
 *         visit(cfx_use_user(u));
 *
 * Do not edit the graph during such a loop. */
typedef struct cfx_use cfx_use;
CFX_API size_t cfx_node_num_users(const cfx_node *n);
CFX_API const cfx_use *cfx_node_first_use(const cfx_node *n);  /* NULL if it has no users */
CFX_API const cfx_use *cfx_use_next(const cfx_use *use);       /* NULL after the last */
CFX_API cfx_node *cfx_use_user(const cfx_use *use);
/* Whether `user` reads `def`. Searches the shorter of the two lists. */
CFX_API bool cfx_node_uses(const cfx_node *user, const cfx_node *def);

/* ---- editing ------------------------------------------------------------------------------- */

/* These return CFX_OK, or a status with *err set and the node unchanged. Values must belong to the
 * graph of the node: CFX_E_GRAPH otherwise. */

/* Assign all arguments (a TUPLE), all keyword arguments (a DICT with string keys), or one of them.
 * CFX_E_INDEX for an argument that the node does not have; a new keyword is added. */
CFX_API cfx_status cfx_node_set_args(cfx_node *n, cfx_value args, cfx_error *err);
CFX_API cfx_status cfx_node_set_kwargs(cfx_node *n, cfx_value kwargs, cfx_error *err);
CFX_API cfx_status cfx_node_set_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_node_set_kwarg(cfx_node *n, const char *key, cfx_value v, cfx_error *err);
/* Assigns the target: what the node calls or reads. */
CFX_API cfx_status cfx_node_set_target(cfx_node *n, cfx_target target, cfx_error *err);
/* INVALID removes the type. */
CFX_API cfx_status cfx_node_set_type(cfx_node *n, cfx_value type, cfx_error *err);
/* `file` is copied; NULL and 0 remove the location. */
CFX_API cfx_status cfx_node_set_location(cfx_node *n, const char *file, uint32_t line,
                                         cfx_error *err);
/* Renames `n`; `wish` is made a unique identifier. */
CFX_API cfx_status cfx_node_rename(cfx_node *n, const char *wish, cfx_error *err);

/* Moves `x` directly before `n` (prepend) or after it (append), like the methods of torch.fx's
 * nodes. Moving a node next to itself does nothing. CFX_E_GRAPH if either node is erased, or if
 * they belong to different graphs. */
CFX_API cfx_status cfx_node_prepend(cfx_node *n, cfx_node *x, cfx_error *err);
CFX_API cfx_status cfx_node_append(cfx_node *n, cfx_node *x, cfx_error *err);

/* Makes the users of `old` use `with` instead: a node or any other value of the graph. `filter`
 * (may be NULL) is called for each user, in order and before any change: 1 replaces the use, 0
 * keeps it, -1 stops with CFX_E_HOST. `changed` (may be NULL) is called for each user that was
 * changed. An erased node has no users: nothing happens. Linear in the uses. */
typedef int cfx_use_filter(void *ctx, cfx_node *user);
CFX_API cfx_status cfx_node_replace_uses(cfx_node *old, cfx_value with, cfx_use_filter *filter,
                                         void (*changed)(void *ctx, cfx_node *user), void *ctx,
                                         cfx_error *err);

/* Replaces `old` by `with` in the arguments of `n` only; an erased node has no inputs. */
CFX_API cfx_status cfx_node_replace_input(cfx_node *n, cfx_node *old, cfx_value with,
                                          cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
