/* tree.h - the modules and attributes that the get_attr and call_module nodes of a graph name.
 *
 * A cfx_module_tree is a table of callbacks. Passes, lowering and generators call it and keep no
 * copies that could go stale. In Python it stands for an nn.Module, in C for a cfx_module
 * (cfx_module_as_tree in capture.h). Most C programs never fill in one of their own, except
 *
 *     cfx_module_tree tree = {.library = lib};
 *
 * for a graph that calls custom operators and no modules.
 *
 * Paths are dotted ("layer1.0.conv"); "" is the root. Attributes and tensors are returned as
 * floating values of the calling graph (use cfx_value_discard for those you do not need): numbers,
 * bools, None, strings and tuples of them as themselves; tensors, modules and everything else as
 * HOST values.
 */
#ifndef CFX_TREE_H
#define CFX_TREE_H

#include <cfx/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cfx_library;

/* Receives a name. A status other than CFX_OK stops the caller, which returns it. */
typedef cfx_status cfx_name_fn(void *ctx, const char *name, cfx_error *err);

/* Later versions only append fields. Set unused fields to 0, as an initializer does. A table
 * without callbacks is equivalent to NULL: nothing is known about modules. */
typedef struct cfx_module_tree {
    void *ctx;

    /* Writes the public name of the class of the module at `path`: "torch.nn.Conv2d". A derived
     * class has its own name, because it may compute something else. Writes nothing for a module
     * with hooks, or with a `forward` of its own. CFX_E_KEY if there is no such module. */
    cfx_status (*class_name)(void *ctx, const char *path, cfx_sink out, cfx_error *err);

    /* An address that two paths share only if they lead to the same object; NULL if there is no
     * such object. */
    const void *(*identity)(void *ctx, const char *path);

    /* The attribute at `path` ("bn1.eps", "fc.weight"), a new value in `g` that is the caller's;
     * INVALID with CFX_E_KEY if there is none. */
    cfx_value (*get)(void *ctx, cfx_graph *g, const char *path, cfx_error *err);

    /* Sets the attribute at `path`. Missing modules along the path are created. Modules that may be
     * shared are copied first, so that only this tree changes. A tensor that replaces a parameter
     * (or a parameter that is None) becomes a parameter; any other tensor becomes a buffer. */
    cfx_status (*set)(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err);

    /* Deletes the attribute or module at `path`; CFX_E_KEY if there is none. */
    cfx_status (*remove)(void *ctx, const char *path, cfx_error *err);

    /* Places a copy of the module at `from` at `to`, which may be the same path. Setting attributes
     * of the copy does not affect the original. Tensors are shared. */
    cfx_status (*copy)(void *ctx, const char *from, const char *to, cfx_error *err);

    /* The graph of the module at `path`, borrowed, if that module was captured too and calling it
     * does exactly what the graph says, with its inputs in order. NULL otherwise. */
    cfx_graph *(*graph)(void *ctx, const char *path);

    /* Computes an operator now, on values of `g`; INVALID with *err set if it fails. */
    cfx_value (*call)(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args, size_t n,
                      cfx_error *err);

    /* Calls `fn` with the public names of the class of the module at `path` and of all its base
     * classes, even if the module has hooks. NULL: only class_name is known. */
    cfx_status (*each_class)(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err);

    /* Calls `fn` with the names of the children of the module at `path`. NULL: it has none. */
    cfx_status (*each_child)(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err);

    /* Custom operators that the graph may call (library.h): borrowed; may be NULL. */
    const struct cfx_library *library;

    /* An address that the tensors at two paths have in common if they may share memory, and only
     * then; NULL if there is no tensor at `path`, or its memory is not known. NULL: attributes may
     * all be one memory. */
    const void *(*memory)(void *ctx, const char *path);

    /* Computes the call of a function or method now, on values of `g`: `args` is a tuple, `kwargs`
     * a dict. INVALID with *err set if it fails; CFX_E_UNSUPPORTED if it cannot be computed now.
     * NULL: `call` is used, if the arguments can be put in the order of the operator's row. */
    cfx_value (*evaluate)(void *ctx, cfx_graph *g, const cfx_node *n, cfx_value args,
                          cfx_value kwargs, cfx_error *err);
} cfx_module_tree;

/* Sets *op to the operator that a node calls: as cfx_node_operator does, and for a call_module the
 * operator of its class. NONE if `modules` is NULL, if there is no such module, or if its class is
 * not in the table. What the module computes also depends on its attributes ("inplace",
 * "training"). Fails with CFX_E_NOMEM, or if the tree fails. */
CFX_API cfx_status cfx_node_operator_of(const cfx_node *n, const cfx_module_tree *modules,
                                        cfx_operator *op, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
