/* effect.h - effects of a call besides its result: reads, writes, randomness.
 *
 * Three functions, from the coarsest to the finest:
 *   - cfx_node_is_impure: must dead-code elimination keep the node? This is torch.fx's question.
 *   - cfx_node_effect: may the call be merged, repeated or moved?
 *   - cfx_node_each_touch: which arguments does the call write to or alias?
 */
#ifndef CFX_EFFECT_H
#define CFX_EFFECT_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether dead-code elimination must keep `n` even if it has no users. True for placeholders and
 * outputs; for functions and modules that the host calls impure; for functions known only by name
 * that torch.fx calls impure; and for operators with a region that contains such a node. The host's
 * answer for a function is cached. Returns 1, 0, or -1 with the host's exception pending. */
CFX_API int cfx_node_is_impure(cfx_node *n);

/* The effect of a call, as far as it matters whether the call runs once or twice. */
typedef enum cfx_effect {
    CFX_EFFECT_NONE,   /* none: the same operands give the same result */
    CFX_EFFECT_ALONE,  /* each call counts: random numbers, assertions, modules with state */
    CFX_EFFECT_WRITES  /* it may change its arguments, or something later calls read */
} cfx_effect;

/* *effect becomes the effect of a node, from:
 *   - the row of its operator: what it writes to, and random numbers and statistics unless the
 *     arguments rule them out (dropout with training=False has no effect);
 *   - the name, for other functions and methods;
 *   - an `out` or `inplace` argument;
 *   - the host's answer (cfx_node_is_impure);
 *   - the schema and flags, for operators of the library that `modules` has;
 *   - the contents of its regions.
 *
 * A module WRITES if the host calls it impure, or if `modules` (may be NULL) has it with
 * inplace=True. Any other module is ALONE: it may have state, but is trusted not to change its
 * arguments. Placeholders and outputs are ALONE. Fails with CFX_E_NOMEM, or if the host or
 * `modules` fails. */
CFX_API cfx_status cfx_node_effect(cfx_node *n, const cfx_module_tree *modules, cfx_effect *effect,
                                   cfx_error *err);

/* What a call may do to an argument besides reading it. */
typedef enum cfx_touch {
    CFX_TOUCH_WRITES = 1,  /* writes to the value */
    CFX_TOUCH_SHARES = 2   /* its result may alias the value: be it, a part of it, or a view */
} cfx_touch;

/* Calls `fn` for each node in the arguments of `n`, in order and including containers, once per
 * occurrence. `touch` is what `n` may do to it: cfx_touch flags or'ed, or 0. The row decides for
 * operators of the table, together with `out` and `inplace`; the class decides for modules
 * (`modules` may be NULL). An unknown callee may alias every argument; if its effect is WRITES, it
 * may also write to every argument, and to values that are not arguments. Stops at the first status
 * other than CFX_OK and returns it. */
typedef cfx_status cfx_touch_fn(void *ctx, cfx_node *input, unsigned touch);
CFX_API cfx_status cfx_node_each_touch(cfx_node *n, const cfx_module_tree *modules,
                                       cfx_touch_fn *fn, void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
