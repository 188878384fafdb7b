/* written_inputs.c - which inputs a graph writes to: directly, through views, in no other way. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/effect.h>

static const char text[] = "graph():\n"
                           "  %w = placeholder[target=w]()\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %y = placeholder[target=y]()\n"
                           "  %z = placeholder[target=z]()\n"
                           "  %a = call_method[target=add_](%x, %w)\n"
                           "  %t = call_method[target=t](%y)\n"
                           "  %r = call_function[target=torch.select](%t, 0, 1)\n"
                           "  %m = call_method[target=mul_](%r, 2)\n"
                           "  %c = call_function[target=torch.clone](%z)\n"
                           "  %d = call_method[target=add_](%c, 1)\n"
                           "  output((%a, %m, %d))\n";

static cfx_status note(void *ctx, cfx_node *n)
{
    strcat(ctx, cfx_node_name(n, NULL));
    return CFX_OK;
}

static cfx_status stop(void *ctx, cfx_node *n)
{
    (void)note(ctx, n);
    return CFX_E_VALUE;
}

TEST(inputs_that_are_written_to)
{
    char names[16] = "";
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_each_written_input(g, NULL, note, names, NULL));
    CHECK_STR_EQ("xy", names);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_each_written_input(g, NULL, stop, names, NULL));
    CHECK_STR_EQ("xyx", names);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_each_written_input(NULL, NULL, note, names, NULL));
    cfx_graph_release(g);
}

static cfx_status find(const cfx_allocator *a, void *ctx)
{
    char names[16] = "";
    cfx_error err = {0};
    (void)ctx;
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, &err);
    if (g && cfx_graph_each_written_input(g, NULL, note, names, &err) == CFX_OK)
        CHECK_STR_EQ("xy", names);
    cfx_graph_release(g);
    return err.status;
}

TEST(want_of_memory) { CHECK(test_oom_sweep(find, NULL) > 3); }
