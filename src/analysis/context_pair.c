/* context_pair.c - calls that enter and leave a context of PyTorch: no_grad, autocast and so on. */
#include "ir/graph_impl.h"

#include <cfx/embed/context.h>

static const struct {
    const char *opens, *leaves;
} pairs[] = {
    [CFX_CONTEXT_GRAD] = {"torch.is_grad_enabled", "torch._C._set_grad_enabled"},
    [CFX_CONTEXT_INFERENCE] = {"torch.autograd.grad_mode._enter_inference_mode",
                               "torch.autograd.grad_mode._exit_inference_mode"},
    [CFX_CONTEXT_AUTOCAST] = {"torch.amp.autocast_mode._enter_autocast",
                              "torch.amp.autocast_mode._exit_autocast"},
    [CFX_CONTEXT_KERNELS] = {"cfx._glue.contexts.enter_kernels", "cfx._glue.contexts.exit_kernels"},
};

static bool calls(const cfx_node *n, const char *function)
{
    cfx_error ignored = {0};
    const char *target =
        cfx_node_op(n) == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, &ignored) : NULL;
    return target && strcmp(target, function) == 0;
}

cfx_context_kind cfx_node_leaves_context(const cfx_node *n, cfx_node **opens)
{
    const cfx_value v = cfx_node_num_args(n) == 1 ? cfx_node_arg(n, 0) : cfx_value_none();
    if (opens)
        *opens = NULL;
    if (v.kind != CFX_KIND_NODE || cfx_node_op(n) != CFX_OP_CALL_FUNCTION || n->kwargs)
        return CFX_CONTEXT_NONE;
    for (int kind = CFX_CONTEXT_GRAD; kind <= CFX_CONTEXT_KERNELS; kind++) {
        if (!calls(n, pairs[kind].leaves) || !calls(v.as.node, pairs[kind].opens))
            continue;
        if (opens)
            *opens = v.as.node;
        return (cfx_context_kind)kind;
    }
    return CFX_CONTEXT_NONE;
}

/* Whether the node behind `opens` sets whether there are gradients. */
static bool sets_mode(const cfx_node *opens)
{
    const cfx_node *n = cfx_node_next(opens);
    return n && calls(n, pairs[CFX_CONTEXT_GRAD].leaves) && cfx_node_num_args(n) == 1 &&
           !cfx_node_leaves_context(n, NULL);
}

cfx_node *cfx_node_context_end(const cfx_node *opens, cfx_context_kind *kind)
{
    cfx_node *end = NULL;
    *kind = CFX_CONTEXT_NONE;
    if (cfx_node_op(opens) != CFX_OP_CALL_FUNCTION || opens->kwargs)
        return NULL;
    for (const cfx_use *use = cfx_node_first_use(opens); use; use = cfx_use_next(use)) {
        cfx_node *user = cfx_use_user(use);
        const cfx_context_kind found = cfx_node_leaves_context(user, NULL);
        if (!found)
            continue;
        if (end || user->graph != opens->graph || (found == CFX_CONTEXT_GRAD && !sets_mode(opens)))
            return NULL;
        end = user;
        *kind = found;
    }
    return end;
}
