/* lower.h - lowering: rewrites a graph into operators of the table, which can run in C.
 *
 * However a call is spelled (torch.max(x, 1), x.max(dim=1), torch.ops.aten.max.dim(x, 1), a module
 * of torch.nn), it becomes one call_function whose target is a row of the table, `cfx.ops.max_dim`,
 * with one argument for each parameter up to the last that is not its default. Weights become
 * get_attr nodes:
 *
 *     %fc = call_module[target=fc](%x)
 *         =>
 *     %fc_weight = get_attr[target=fc.weight]()
 *     %fc_bias = get_attr[target=fc.bias]()
 *     %fc = call_function[target=cfx.ops.linear](%x, %fc_weight, %fc_bias)
 *
 * A lowered graph runs in C (runtime.h), without the language it was written in.
 */
#ifndef CFX_LOWER_H
#define CFX_LOWER_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each node that cannot be lowered, with the call, the user's location and the reason.
 * `n` is a node of a copy; `n` and `why` are valid only during the call. A status other than CFX_OK
 * stops lowering. */
typedef cfx_status cfx_lower_fn(void *ctx, const cfx_node *n, const char *why);

/* Whether to keep a call_module node as it is; `class_name` is the class of the module
 * ("torch.nn.Linear"). */
typedef bool cfx_keep_fn(void *ctx, const cfx_node *n, const char *class_name);

/* Why a node is to stay as it is, though it could be lowered; NULL: lower it. The text is valid
 * until the next call. */
typedef const char *cfx_stay_fn(void *ctx, const cfx_node *n);

/* All zero: lower everything. */
typedef struct cfx_lower_options {
    cfx_lower_fn *each;  /* or NULL */
    cfx_keep_fn *keep;   /* NULL: keep none. For generators that write modules as modules */
    cfx_stay_fn *stay;   /* or NULL. What stays is reported to `each`; for use with `partial` */
    void *ctx;           /* for all callbacks */
    /* Read a tensor that is at several paths (tied weights) by the first of them, for weights that
     * are stored by path: what is written to it is then read everywhere. */
    bool join_tied;
    /* Leave what cannot be lowered as it is, and succeed: for who infers sizes (cfx_guards_settle)
     * and can do with a part. */
    bool partial;
} cfx_lower_options;

/* Lowers `g` and its regions in place. `modules` gives the classes of the modules that `g` calls
 * (NULL: it calls none); `options` may be NULL. Calls of custom operators (`modules->library`) keep
 * their targets; their arguments are bound by the schema, and keyword-only ones may become
 * positional. Calls of modules that were captured themselves are inlined, regardless of `keep`.
 * Every node that cannot be lowered is reported to `each`; then the function fails once, with
 * CFX_E_TYPE and the first of them, and leaves `g` unchanged. */
CFX_API cfx_status cfx_graph_lower(cfx_graph *g, const cfx_module_tree *modules,
                                   const cfx_lower_options *options, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
