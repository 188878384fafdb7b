/* effect.h - effects of a call besides its result: reads, writes, randomness.
 *
 * All passes ask one model of effects. It knows operators by their rows and the arguments of the
 * call; modules by the rows of their classes, their settings and `training`, or by their graph if
 * they were captured; other functions and methods by their names and by what the host says.
 * Calls that nothing is known about are taken for what torch.fx takes them for; the option `strict`
 * of a pass takes them for impure.
 *
 * Three functions, from the coarsest to the finest:
 *   - cfx_node_is_impure: must dead-code elimination keep the node?
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
 * outputs; for calls that draw random numbers, write, report or check something; for functions and
 * modules that the host calls impure; and for operators with a region that contains such a node.
 * What modules do is not looked up; see cfx_node_effect. The host's answer for a function is
 * cached. Returns 1, 0, or -1 with the host's exception pending. */
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
 * The effect of a module is the strongest of it and all modules below it in `modules` (may be
 * NULL):
 *   - WRITES with `inplace` or `_is_impure`; if it is a norm in training that tracks statistics, an
 *     embedding with max_norm, an observer; or if it was captured and its graph writes to something
 *     that is visible outside;
 *   - ALONE if it draws random numbers: dropout in training with p > 0, attention and recurrent
 *     layers with dropout in training, fractional pooling; or if nothing is known about it;
 *   - NONE if it is another class of torch.nn.
 * Without `modules`, a module WRITES if the host calls it impure, and is ALONE otherwise.
 * Placeholders and outputs are ALONE. Fails with CFX_E_NOMEM, or if the host or `modules` fails. */
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

/* Calls `fn` for each placeholder of `g`, in order, whose memory a call of `g` may write to: to the
 * input itself or to a view of it. That two inputs may share memory is not taken into account, nor
 * what an unknown callee may write to that is not an argument. Stops at the first status other than
 * CFX_OK and returns it. Linear in nodes and edges. */
CFX_API cfx_status cfx_graph_each_written_input(cfx_graph *g, const cfx_module_tree *modules,
                                                cfx_node_fn *fn, void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
