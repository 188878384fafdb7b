/* For language bindings and back ends; may change between versions.
 *
 * embed/effect.h - a second opinion on effects.
 */
#ifndef CFX_EMBED_EFFECT_H
#define CFX_EMBED_EFFECT_H

#include <cfx/effect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A callback that says more about the effects of nodes than cfx_node_effect knows: `effect` returns
 * a cfx_effect, or -1 to stop with CFX_E_HOST. */
typedef struct cfx_effect_opinion {
    int (*effect)(void *ctx, cfx_node *n);
    void *ctx;
} cfx_effect_opinion;

/* What calling the module at `path` does, the worst of it and of all modules below it: it WRITES if
 * its `inplace` or `_is_impure` is true; it is ALONE if its class, or one that it derives from,
 * draws random numbers or keeps statistics while it trains (always, if it does so in evaluation,
 * too); of other classes nothing is known, and they are taken to have no effect, as in torch.fx.
 * `g` is for the values of attributes. Linear in the modules below it. */
CFX_API cfx_status cfx_module_tree_effect(const cfx_module_tree *modules, cfx_graph *g,
                                          const char *path, cfx_effect *effect, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
