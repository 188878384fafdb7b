/* toposort.c - tests of src/pass/toposort.c beyond tests/golden/opt/toposort*.ir. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static bool sorts(cfx_graph *g, bool breadth_first)
{
    bool changed = false;
    const cfx_toposort_options options = {breadth_first};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_toposort(g, NULL, &options, &changed, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    return changed;
}

#define CALL(name, args) "%" name " = call_function[target=f](" args ") "

TEST(of_the_ready_nodes_the_first_comes_first)
{
    cfx_graph *g = parse("graph(): " CALL("p", "%q") CALL("r", "") CALL("q", "") CALL("s", "%r")
                         "output((%p, %s))", NULL, NULL);
    CHECK(sorts(g, false));
    CHECK_STR_EQ("r q p s output", node_names(g));
    CHECK(!sorts(g, false));
    cfx_graph_release(g);
}

/* As torch.fx's legalize_graph: whatever is ready at the start, then users in their order. */
TEST(breadth_first)
{
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() " CALL("a", "%x") CALL("b", "%a")
                         CALL("c", "%x") CALL("e", "") "output((%b, %c))", NULL, NULL);
    CHECK(!sorts(g, false));
    CHECK(sorts(g, true));
    CHECK_STR_EQ("x e a c b output", node_names(g));
    CHECK(!sorts(g, true));
    cfx_graph_release(g);
}

TEST(an_empty_graph)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK(!sorts(g, false) && !sorts(g, true));
    cfx_graph_release(g);
}

TEST(a_cycle_changes_nothing)
{
    static const char *const text =
        "graph(): " CALL("late", "%early") CALL("early", "")
        "%l = call_function[target=cfx.for_loop](3, graph { " CALL("a", "%b") CALL("b", "%a")
        "output(%b) }, ()) output(%l)";
    cfx_error err = {.status = CFX_OK};
    bool changed = false;
    cfx_graph *g = parse(text, NULL, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfxi_pass_toposort(g, NULL, NULL, &changed, &err));
    CHECK_STR_EQ("Input graph has cycles: %a uses %b uses %a; change an argument of one of them to "
                 "break the cycle",
                 err.message);
    CHECK_STR_EQ("late early l output", node_names(g));
    cfx_graph_release(g);
}

/* A message has room for a few nodes: the rest of a long cycle is dots. */
TEST(a_long_cycle)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *first = NULL;
    cfx_value last = cfx_value_none();
    for (int i = 0; i < 1000; i++) {
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "some_function_with_a_long_name",
                                     &last, 1, NULL, 0, NULL);
        first = first ? first : n;
        last = cfx_value_node(n);
    }
    cfx_node_set_arg(first, 0, last, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfxi_pass_toposort(g, NULL, NULL, NULL, &err));
    CHECK(strstr(err.message, "... uses %some_function") != NULL);
    CHECK(strstr(err.message, "to break the cycle") != NULL);
    cfx_graph_release(g);
}

/* More nodes than one word of positions on each of three levels, all the wrong way round. */
TEST(a_long_chain_backwards)
{
    enum { N = 300000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (int i = 0; i < N; i++)
        cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", NULL, 0, NULL, 0, NULL);
    for (cfx_node *n = cfx_graph_first(g); cfx_node_next(n); n = cfx_node_next(n)) {
        cfx_value next = cfx_value_node(cfx_node_next(n));
        cfx_value args = cfx_value_tuple(g, &next, 1, NULL);
        cfx_node_set_args(n, args, NULL);
    }
    const cfx_node *first = cfx_graph_first(g);
    CHECK(sorts(g, false));
    CHECK(cfx_graph_last(g) == first);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    (void)arg;
    cfx_graph *g = parse("graph(): " CALL("p", "%q") CALL("q", "") "%l = call_function"
                         "[target=cfx.for_loop](3, graph { " CALL("p", "%q") CALL("q", "")
                         "output(%p) }, ()) output(%l)", a, &err);
    if (g)
        cfxi_pass_toposort(g, NULL, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 4);
}
