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

/* The contexts of PyTorch that a graph enters and leaves by calls:
 *
 *     %before = torch.is_grad_enabled()                     with torch.no_grad():
 *     torch._C._set_grad_enabled(False)
 *     ...                                                       ...
 *     torch._C._set_grad_enabled(%before)
 *
 * and inference mode and autocast, each with one call that enters and one that leaves. */
typedef enum cfx_context_kind {
    CFX_CONTEXT_NONE,
    CFX_CONTEXT_GRAD,
    CFX_CONTEXT_INFERENCE,
    CFX_CONTEXT_AUTOCAST
} cfx_context_kind;

/* The kind of the context that `n` leaves. *opens (may be NULL) becomes the node whose value `n`
 * takes: the call of torch.is_grad_enabled, or the call that entered. NONE, and *opens is NULL: `n`
 * does not leave a context. */
CFX_API cfx_context_kind cfx_node_leaves_context(const cfx_node *n, cfx_node **opens);
/* The node that leaves the context that `opens` (see above) opens: in the same graph and after it;
 * NULL if there is none, or more than one. For GRAD, the node after `opens` sets the mode. */
CFX_API cfx_node *cfx_node_context_end(const cfx_node *opens, cfx_context_kind *kind);

#ifdef __cplusplus
}
#endif
#endif
