/* For language bindings and back ends; may change between versions.
 *
 * embed/effect.h - a callback for effects, and the effects of modules.
 */
#ifndef CFX_EMBED_EFFECT_H
#define CFX_EMBED_EFFECT_H

#include <cfx/effect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A callback that knows more about the effects of nodes than cfx_node_effect. `effect` returns a
 * cfx_effect, or -1 to stop with CFX_E_HOST. */
typedef struct cfx_effect_opinion {
    int (*effect)(void *ctx, cfx_node *n);
    void *ctx;
} cfx_effect_opinion;

/* *effect becomes the effect of calling the module at `path`: the strongest effect of it and all
 * modules below it. A module WRITES if its `inplace` or `_is_impure` is true. It is ALONE if its
 * class, or a base class, draws random numbers or keeps statistics and the module is in training
 * mode (in either mode, if the class also does so in evaluation). Other classes are unknown and
 * assumed to have no effect, as in torch.fx. `g` holds the values of attributes. Linear in the
 * modules below it. */
CFX_API cfx_status cfx_module_tree_effect(const cfx_module_tree *modules, cfx_graph *g,
                                          const char *path, cfx_effect *effect, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
