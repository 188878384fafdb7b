/* For language bindings and back ends; may change between versions.
 *
 * embed/context.h - contexts of PyTorch that a graph enters and leaves by calls.
 */
#ifndef CFX_EMBED_CONTEXT_H
#define CFX_EMBED_CONTEXT_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A context is two or three calls:
 *
 *     %before = torch.is_grad_enabled()                     with torch.no_grad():
 *     torch._C._set_grad_enabled(False)
 *     ...                                                       ...
 *     torch._C._set_grad_enabled(%before)
 *
 * The others have one call that enters and one that leaves. */
typedef enum cfx_context_kind {
    CFX_CONTEXT_NONE,
    CFX_CONTEXT_GRAD,
    CFX_CONTEXT_INFERENCE,
    CFX_CONTEXT_AUTOCAST,
    CFX_CONTEXT_KERNELS  /* torch.nn.attention.sdpa_kernel */
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
