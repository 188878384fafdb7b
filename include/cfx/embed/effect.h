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

#ifdef __cplusplus
}
#endif
#endif
