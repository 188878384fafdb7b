/* For language bindings and back ends; may change between versions.
 *
 * embed/namespace.h - unique names, as torch.fx makes them.
 */
#ifndef CFX_EMBED_NAMESPACE_H
#define CFX_EMBED_NAMESPACE_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names that are taken. A wish is cleaned (every run of other characters becomes '_', a leading
 * digit gets a '_' before it, "" becomes "_unnamed"). If it is taken, a keyword or a builtin, the
 * next free number is appended. Amortised O(length). */
typedef struct cfx_namespace cfx_namespace;

/* Empty; NULL with CFX_E_NOMEM. */
CFX_API cfx_namespace *cfx_namespace_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_namespace_free(cfx_namespace *ns);
/* The names that are taken in a graph: borrowed. */
CFX_API cfx_namespace *cfx_graph_namespace(cfx_graph *g);

/* Makes a name from a wish and takes it: borrowed until the namespace is freed; NULL with *err set.
 * `allow_reserved` accepts keywords and builtins as they are, for a global that *is* that builtin.
 */
CFX_API const char *cfx_namespace_create(cfx_namespace *ns, const char *wish, size_t size,
                                         bool allow_reserved, cfx_error *err);
/* Takes exactly this name, whatever it looks like. Does nothing if it is taken. */
CFX_API cfx_status cfx_namespace_add(cfx_namespace *ns, const char *name, size_t size,
                                     cfx_error *err);
CFX_API bool cfx_namespace_has(const cfx_namespace *ns, const char *name, size_t size);
/* The names that are taken, one by one and in no order; NULL after the last. Start with *cursor at
 * 0, and take no name in between. `size` may be NULL. */
CFX_API const char *cfx_namespace_each(const cfx_namespace *ns, size_t *cursor, size_t *size);

/* Whether it is a keyword, a builtin, or a global of generated code. */
CFX_API bool cfx_name_is_reserved(const char *name, size_t size);
/* Appends "foo_bar" for "FooBar": an underscore between a lower-case and an upper-case letter, then
 * all in lower case. Fails with CFX_E_NOMEM. */
CFX_API cfx_status cfx_name_to_snake_case(const char *name, size_t size, cfx_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
