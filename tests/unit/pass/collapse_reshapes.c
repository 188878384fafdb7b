/* collapse_reshapes.c - tests of src/pass/collapse_reshapes.c beyond tests/golden/opt. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/pass.h>

static const char text[] =
    "graph(): %x = placeholder[target=x]() %a = call_method[target=reshape](%x, 2, 3, 4) "
    "%b = call_function[target=torch.ops.aten.view.default](%a, [2, 12]) "
    "%t = call_method[target=t](%b) %u = call_function[target=torch.t](%t) "
    "%c = call_function[target=cfx.cond](%u, graph { %y = placeholder[target=y]() "
    "%v = call_method[target=view](%y, 6) %w = call_method[target=view](%v, 3, 2) output(%w) }, "
    "graph { %y = placeholder[target=y]() output(%y) }, (%u,)) output((%c, %u))";

static cfx_status run(cfx_graph *g, bool *changed, cfx_error *err)
{
    return cfx_pass_run(cfx_pass_find("collapse_reshapes"), g, NULL, NULL, changed, err);
}

/* How many nodes are left of a graph; -1 if a second run changed something. */
static int left(const char *ir, bool expect_change)
{
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, NULL);
    bool changed = !expect_change;
    bool again = true;
    if (!CHECK(g != NULL))
        return -1;
    CHECK_INT_EQ(CFX_OK, run(g, &changed, NULL));
    CHECK_INT_EQ(expect_change, changed);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, run(g, &again, NULL));
    int n = again ? -1 : (int)cfx_graph_size(g);
    cfx_graph_release(g);
    return n;
}

TEST(finds_its_work_in_one_run)
{
    CHECK_INT_EQ(4, left(text, true));
    CHECK_INT_EQ(1, left("graph(): output(None)", false));
}

/* A write to one name of a memory counts for all: two reads of an attribute are the same tensor. */
TEST(writes_elsewhere)
{
#define CHAIN "%a = call_method[target=view](%x, 4) %b = call_method[target=view](%a, 2, 2) "
    static const char before[] = "graph(): %i = placeholder[target=i]() ";
    static const struct {
        const char *body;
        int left;
        bool changed;
    } rows[] = {
        {"%x = get_attr[target=w]() " CHAIN "output(%b)", 4, true},
        {"%x = get_attr[target=w]() " CHAIN "%y = get_attr[target=w]() "
         "%z = call_method[target=add_](%y, 1) output(%b)", 7, false},
        {"%x = call_method[target=clone](%i) " CHAIN "%z = call_method[target=add_](%i, 1) "
         "output(%b)", 5, true},
        {"%x = call_method[target=clone](%i) %s = call_method[target=t](%x) " CHAIN
         "%z = call_method[target=squeeze_](%s) output(%b)", 7, false},
        {"%x = call_method[target=clone](%i) " CHAIN
         "%z = call_function[target=mine.update_](%b) output(%b)", 6, false},
        {"%x = get_attr[target=w]() " CHAIN
         "%z = call_function[target=mine.update_](%i) output(%b)", 6, false},
    };
    char ir[1024];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(ir, sizeof ir, "%s%s", before, rows[i].body);
        CHECK_INT_EQ(rows[i].left, left(ir, rows[i].changed));
    }
}

/* Nodes that do not stand behind what they read, even in a circle, are left alone. */
TEST(disorder)
{
    static const char ir[] = "graph(): %x = placeholder[target=x]() "
        "%a = call_method[target=view](%x, 4) %b = call_method[target=view](%a, 2, 2) output(%b)";
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, NULL);
    cfx_node *a = g ? cfx_graph_find(g, "a") : NULL;
    bool changed = true;
    REQUIRE(a);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(a, 0, cfx_value_node(cfx_graph_find(g, "b")), NULL));
    CHECK_INT_EQ(CFX_OK, run(g, &changed, NULL));
    CHECK(!changed);
    cfx_graph_release(g);
}

TEST(long_chain)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value args[] = {cfx_value_node(cfx_graph_placeholder(g, "x", NULL)), cfx_value_int(-1)};
    for (int i = 0; i < 100000; i++)
        args[0] = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_METHOD, i % 2 ? "view" : "reshape",
                                                args, 2, NULL, 0, NULL));
    for (int i = 0; i < 100000; i++)
        args[0] =
            cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_METHOD, "t", args, 1, NULL, 0, NULL));
    cfx_graph_output(g, args[0], NULL);
    CHECK_INT_EQ(CFX_OK, run(g, NULL, NULL));
    CHECK_INT_EQ(3, cfx_graph_size(g));
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, &err);
    (void)arg;
    if (g && run(g, NULL, &err) != CFX_OK) {  /* half changed, but valid */
        ((test_alloc *)a->ctx)->fail_at = TEST_ALLOC_NEVER;
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}
