/* effect.h - what a call does beside computing its result.
 *
 * Three questions, from the coarsest to the finest: must it be kept though nobody uses it
 * (cfx_node_is_impure: what torch.fx asks), what does it do to the world (cfx_node_effect), and
 * what does it do to each of its arguments (cfx_node_each_touch).
 */
#ifndef CFX_EFFECT_H
#define CFX_EFFECT_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether dead-code elimination must keep `n` though nobody uses it: placeholders, outputs, what
 * the host says of a function or module, what torch.fx says of a function known by its name alone,
 * and operators with a region in which something must be kept. The host's answer for a function is
 * kept. 1, 0, or -1 with the host's exception. */
CFX_API int cfx_node_is_impure(cfx_node *n);

/* What a call does to the world, as far as computing it once or twice makes a difference. */
typedef enum cfx_effect {
    CFX_EFFECT_NONE,   /* nothing: the same call on the same values gives the same */
    CFX_EFFECT_ALONE,  /* every call counts: random numbers, assertions, modules with a state */
    CFX_EFFECT_WRITES  /* it may change its arguments, or what later calls see */
} cfx_effect;

/* The effect of a node: of an operator of the table by its row (what it writes to; random numbers
 * and statistics, if its arguments do not rule them out: dropout with training=False has none); of
 * other functions and methods by their names; by an `out` or `inplace` among the arguments; by what
 * the host says (cfx_node_is_impure); of operators of the library that `modules` has by their
 * schemas and flags; and of operators with regions by what is in them. A module
 * WRITES if its host calls it impure, or if `modules` (may be NULL) has it with inplace=True; else
 * it is ALONE: it may have a state, but is trusted not to change its arguments. Placeholders and
 * outputs are ALONE. */
CFX_API cfx_status cfx_node_effect(cfx_node *n, const cfx_module_tree *modules, cfx_effect *effect,
                                   cfx_error *err);

/* What a call may do to a node among its arguments, beside reading it. */
typedef enum cfx_touch {
    CFX_TOUCH_WRITES = 1,  /* it changes the value */
    CFX_TOUCH_SHARES = 2   /* its result may be that value, or a part or view of it */
} cfx_touch;

/* Calls `fn` for each node in the arguments of `n` (in their order, containers descended; a node as
 * often as it stands there) with what `n` may do to it, a cfx_touch or several or 0. Of operators
 * of the table the row says it, with `out` and `inplace` counted; modules are known by their class
 * (`modules` may be NULL). Whoever is not known shares everything, and if its effect is WRITES
 * writes to everything, and maybe to what is not among its arguments. Stops at the first status
 * that is not CFX_OK and returns it. */
typedef cfx_status cfx_touch_fn(void *ctx, cfx_node *input, unsigned touch);
CFX_API cfx_status cfx_node_each_touch(cfx_node *n, const cfx_module_tree *modules,
                                       cfx_touch_fn *fn, void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
