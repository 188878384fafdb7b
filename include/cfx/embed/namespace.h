/* For language bindings and back ends; may change between versions.
 *
 * embed/namespace.h - unique names, by the rules of torch.fx.
 */
#ifndef CFX_EMBED_NAMESPACE_H
#define CFX_EMBED_NAMESPACE_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The set of used names. A requested name is cleaned first: every run of invalid characters becomes
 * '_', a leading digit gets a '_' before it, "" becomes "_unnamed". If the name is used, a keyword
 * or a builtin, the next free number is appended. Amortised O(length). */
typedef struct cfx_namespace cfx_namespace;

/* An empty namespace; NULL with CFX_E_NOMEM. */
CFX_API cfx_namespace *cfx_namespace_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_namespace_free(cfx_namespace *ns);
/* A graph's namespace: borrowed. */
CFX_API cfx_namespace *cfx_graph_namespace(cfx_graph *g);

/* Creates a unique name from `wish` and adds it: borrowed until the namespace is freed; NULL with
 * *err set. `allow_reserved` accepts keywords and builtins as they are, for a global that *is* that
 * builtin. */
CFX_API const char *cfx_namespace_create(cfx_namespace *ns, const char *wish, size_t size,
                                         bool allow_reserved, cfx_error *err);
/* Adds exactly this name, without cleaning it. Does nothing if it is already used. */
CFX_API cfx_status cfx_namespace_add(cfx_namespace *ns, const char *name, size_t size,
                                     cfx_error *err);
CFX_API bool cfx_namespace_has(const cfx_namespace *ns, const char *name, size_t size);
/* Iterates over the names, in no particular order; NULL after the last. Start with *cursor at 0,
 * and add no name in between. `size` may be NULL. */
CFX_API const char *cfx_namespace_each(const cfx_namespace *ns, size_t *cursor, size_t *size);

/* Whether a name is a keyword, a builtin, or a global of generated code. */
CFX_API bool cfx_name_is_reserved(const char *name, size_t size);
/* Whether a qualified name leads to what is known to run code, to import modules or to reach files:
 * `builtins.exec`, `os.system`, `torch.load`, `torch.os.remove`. Text from a file must not bring
 * such a function in; a user who wants it passes the function itself. */
CFX_API bool cfx_name_runs_code(const char *name, size_t size);
/* Appends "foo_bar" for "FooBar": an underscore between a lower-case and an upper-case letter, then
 * all in lower case. Fails with CFX_E_NOMEM. */
CFX_API cfx_status cfx_name_to_snake_case(const char *name, size_t size, cfx_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
