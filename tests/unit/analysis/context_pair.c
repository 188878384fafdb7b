/* context_pair.c - tests of src/analysis/context_pair.c. */
#include "check.h"

#include <cfx/embed/context.h>
#include <cfx/graph.h>

static cfx_node *call(cfx_graph *g, const char *function, cfx_value arg)
{
    const size_t n = arg.kind != CFX_KIND_INVALID;
    cfx_node *node = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, function, &arg, n, NULL, 0, NULL);
    CHECK(node);
    return node;
}

static const char set_mode[] = "torch._C._set_grad_enabled";

TEST(gradients)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_context_kind kind;
    cfx_node *opens;
    cfx_node *before = call(g, "torch.is_grad_enabled", cfx_value_invalid());
    cfx_node *off = call(g, set_mode, cfx_value_bool(false));
    CHECK(!cfx_node_context_end(before, &kind));
    cfx_node *end = call(g, set_mode, cfx_value_node(before));
    CHECK(cfx_node_context_end(before, &kind) == end);
    CHECK_INT_EQ(CFX_CONTEXT_GRAD, kind);
    CHECK_INT_EQ(CFX_CONTEXT_GRAD, cfx_node_leaves_context(end, &opens));
    CHECK(opens == before);
    CHECK_INT_EQ(CFX_CONTEXT_NONE, cfx_node_leaves_context(off, &opens));
    CHECK(!opens);
    call(g, set_mode, cfx_value_node(before));  /* left twice: by hand */
    CHECK(!cfx_node_context_end(before, &kind));
    cfx_graph_release(g);
}

/* A question that nothing follows that sets the mode is no beginning. */
TEST(question_alone)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_context_kind kind;
    cfx_node *before = call(g, "torch.is_grad_enabled", cfx_value_invalid());
    call(g, "torch.neg", cfx_value_node(before));
    call(g, set_mode, cfx_value_node(before));
    CHECK(!cfx_node_context_end(before, &kind));
    cfx_graph_release(g);
}

TEST(other_kinds)
{
    static const struct {
        const char *enter, *leave;
        cfx_context_kind kind;
    } rows[] = {
        {"torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast",
         CFX_CONTEXT_AUTOCAST},
        {"torch.autograd.grad_mode._enter_inference_mode",
         "torch.autograd.grad_mode._exit_inference_mode", CFX_CONTEXT_INFERENCE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_context_kind kind;
        cfx_node *enter = call(g, rows[i].enter, cfx_value_bool(true));
        cfx_node *leave = call(g, rows[i].leave, cfx_value_node(enter));
        CHECK(cfx_node_context_end(enter, &kind) == leave);
        CHECK_INT_EQ(rows[i].kind, kind);
        cfx_node *other = call(g, rows[1 - i].leave, cfx_value_node(enter));
        CHECK_INT_EQ(CFX_CONTEXT_NONE, cfx_node_leaves_context(other, NULL));
        cfx_graph_release(g);
    }
}
