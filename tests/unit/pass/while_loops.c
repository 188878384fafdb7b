/* while_loops.c - tests of src/pass/while_loops.c beyond tests/golden/opt. */
#include "check.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static const char text[] =
    "graph(): %x = placeholder[target=x]() %n = placeholder[target=n]()"
    " %l = call_function[target=cfx.for_loop](%n, graph {"
    " %i = placeholder[target=i]() %n = placeholder[target=n]()"
    " %add = call_function[target=operator.add](%n, %i) output((%add,)) }, (%x,))"
    " %k = call_function[target=cfx.for_loop](\"a\", graph { %i = placeholder[target=i]()"
    " output(()) }, ())"
    " %m = call_function[target=cfx.for_loop](count=3, body=graph { %i = placeholder[target=i]()"
    " %s = placeholder[target=s]() output((%s,)) }, state=(%l,))"
    " %r = call_function[target=operator.getitem](%m, 0) output((%r, %l))";

static cfx_status run(const cfx_allocator *a, void *size)
{
    cfx_error err = {0};
    bool changed = false;
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, a, NULL, &err);
    cfx_status status = g ? cfxi_pass_while_loops(g, NULL, NULL, &changed, &err) : err.status;
    if (!a)  /* which would need memory, too */
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    if (status == CFX_OK && size) {
        *(size_t *)size = cfx_graph_size(g);
        CHECK(changed);
    }
    cfx_graph_release(g);
    return status;
}

TEST(kinds_of_counts)
{
    size_t size = 0;
    CHECK_INT_EQ(CFX_OK, run(NULL, &size));
    CHECK_INT_EQ(8, size);  /* one more: what reads the first as a whole gets a slice */
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_while_loops(g, NULL, NULL, NULL, NULL));
    CHECK_STR_EQ("cfx.while_loop", cfx_node_target(cfx_graph_find(g, "l"), NULL, NULL));
    CHECK_STR_EQ("cfx.for_loop", cfx_node_target(cfx_graph_find(g, "k"), NULL, NULL));
    CHECK_STR_EQ("cfx.while_loop", cfx_node_target(cfx_graph_find(g, "m"), NULL, NULL));
    cfx_graph_release(g);
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(run, NULL) > 20);
}
