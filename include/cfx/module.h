/* module.h - the tree of modules that get_attr and call_module name, as the embedding language has
 * it: over nn.Module in Python, over modules of its own in C.
 *
 * The core keeps no mirror of it that could go stale: passes ask through this table. Paths are
 * dotted ("layer1.0.conv"); "" is the root. Attributes and tensors come as values of the graph that
 * asks, floating (cfx_value_discard what is not used): numbers, bools, None, strings and tuples of
 * them as themselves; tensors, modules and everything else as HOST values.
 */
#ifndef CFX_MODULE_H
#define CFX_MODULE_H

#include <cfx/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cfx_library;

typedef struct cfx_module_tree {
    void *ctx;

    /* Writes the public name of the class of the module at `path`: "torch.nn.Conv2d". A class
     * derived from it has its own name: it may compute anything. So may a module with hooks or with
     * a `forward` of its own, for which nothing is written. CFX_E_KEY if there is none. */
    cfx_status (*class_name)(void *ctx, const char *path, cfx_sink out, cfx_error *err);

    /* An address that two paths have in common only if they lead to the same object; NULL if there
     * is none. */
    const void *(*identity)(void *ctx, const char *path);

    /* The attribute at `path` ("bn1.eps", "fc.weight"); INVALID with CFX_E_KEY if there is none. */
    cfx_value (*get)(void *ctx, cfx_graph *g, const char *path, cfx_error *err);

    /* Sets the attribute at `path`; modules on the way there are made, or copied if others may have
     * them, too: nobody but this tree sees a change. A tensor in the place of a
     * parameter becomes a parameter (of which None may stand there), elsewhere a buffer. */
    cfx_status (*set)(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err);

    /* Deletes the attribute or module at `path`; CFX_E_KEY if there is none. */
    cfx_status (*remove)(void *ctx, const char *path, cfx_error *err);

    /* Puts a copy of the module at `from` at `to` (which may be the same path): its attributes can
     * be set without changing whoever shares the original. Tensors are shared. */
    cfx_status (*copy)(void *ctx, const char *from, const char *to, cfx_error *err);

    /* The graph of the module at `path` if it was captured, too, and calling it does no more than
     * the graph says, inputs in order: borrowed; else NULL. */
    cfx_graph *(*graph)(void *ctx, const char *path);

    /* Computes an operator now, on values of `g`; INVALID with *err set if it fails. */
    cfx_value (*call)(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args, size_t n,
                      cfx_error *err);

    /* The operators of one's own that the graph may call (library.h): borrowed; or NULL. A table
     * that has nothing else, {.library = lib}, says nothing of modules: as NULL does. */
    const struct cfx_library *library;
} cfx_module_tree;

/* *op becomes the operator that a node calls, as cfx_node_operator says; of a call_module that of
 * its class, NONE if `modules` is NULL, the class is not in the table, or there is no such module.
 * Only the class decides: what it computes depends on its attributes, too ("inplace", "training").
 * Fails if the host does, or memory is out. */
CFX_API cfx_status cfx_node_operator_of(const cfx_node *n, const cfx_module_tree *modules,
                                        cfx_operator *op, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
