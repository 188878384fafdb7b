/* lower.h - from what a program says to what computes: a graph in operators of the table.
 *
 * Whatever a call is spelled (torch.max(x, 1), x.max(dim=1), torch.ops.aten.max.dim(x, 1), a module
 * of torch.nn), it becomes one call_function whose target is a row, `cfx.ops.max_dim`, with one
 * argument for each parameter up to the last that is not its default. Weights become get_attr
 * nodes:
 *
 *     %fc = call_module[target=fc](%x)
 *         =>
 *     %fc_weight = get_attr[target=fc.weight]()
 *     %fc_bias = get_attr[target=fc.bias]()
 *     %fc = call_function[target=cfx.ops.linear](%x, %fc_weight, %fc_bias)
 *
 * Such a graph runs in C (runtime.h), without the language it was written in.
 */
#ifndef CFX_LOWER_H
#define CFX_LOWER_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Told of each node that cannot be lowered: which call, where the user wrote it, and why. `n` is a
 * node of a copy; it and `why` are valid during the call. A status other than CFX_OK ends it. */
typedef cfx_status cfx_lower_fn(void *ctx, const cfx_node *n, const char *why);

/* Whether a call of a module stays as it is; `class_name` is its class ("torch.nn.Linear"). */
typedef bool cfx_keep_fn(void *ctx, const cfx_node *n, const char *class_name);

/* All zero: everything is lowered. */
typedef struct cfx_lower_options {
    cfx_lower_fn *each;  /* or NULL */
    cfx_keep_fn *keep;   /* NULL: none stays. For generators that write modules as modules */
    void *ctx;           /* for both */
} cfx_lower_options;

/* Lowers `g` and its regions in place. `modules` says of which class the modules are that it calls
 * (NULL: it calls none); `options` may be NULL. Calls of operators of its library (library.h) keep
 * their targets; their arguments are bound by the schema, and those behind a '*' may stand by
 * position, too. Every node that cannot be lowered is told to `each`; then it fails once, with
 * CFX_E_TYPE and the first of them, and `g` is as it was. Modules that were captured, too, are put
 * in the place of their calls, whatever `keep` says. */
CFX_API cfx_status cfx_graph_lower(cfx_graph *g, const cfx_module_tree *modules,
                                   const cfx_lower_options *options, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
