/* minimize.c - tests of src/check/minimize.c: the smallest part that still fails. */
#include "check.h"
#include "graph_test.h"

#include <cfx/embed/check.h>

/* A chain of calls "f", with "bad" at the places given; an end of -1. */
static cfx_graph *chain(const cfx_allocator *a, int n, const int *bad, cfx_error *err)
{
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_node *last = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    for (int i = 0; last && i < n; i++) {
        cfx_value arg = cfx_value_node(last);
        const char *target = *bad == i ? "bad" : "f";
        bad += *bad == i;
        last = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, &arg, 1, NULL, 0, err);
    }
    if (last && cfx_graph_output(g, cfx_value_node(last), err))
        return g;
    cfx_graph_release(g);
    return NULL;
}

typedef struct counting {
    int needed;  /* so many calls of "bad" make it fail */
    int tests;
    int stop_at;
} counting;

static int has_bad(void *ctx, const cfx_subgraph *part)
{
    counting *c = ctx;
    int found = 0;
    for (const cfx_node *n = cfx_graph_first(part->graph); n; n = cfx_node_next(n))
        found += cfx_node_op(n) == CFX_OP_CALL_FUNCTION &&
                 strcmp(cfx_node_target(n, NULL, NULL), "bad") == 0;
    return ++c->tests == c->stop_at ? -1 : found >= c->needed;
}

TEST(one_bad_node_is_all_that_is_left)
{
    cfx_graph *g = chain(NULL, 1000, (const int[]){617, -1}, NULL);
    counting c = {.needed = 1};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_OK, cfx_graph_minimize(g, has_bad, &c, 1000, &part, NULL));
    CHECK_STR_EQ("f_616 bad output", list_names(part.graph));
    CHECK_INT_EQ(1, part.n_inputs);
    CHECK_STR_EQ("f_616", cfx_node_name(part.inputs[0], NULL));
    CHECK(part.inputs[0] == cfx_node_input(cfx_graph_find(g, "bad"), 0));
    CHECK(c.tests < 40);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(part.graph, NULL, NULL, NULL));
    CHECK(!cfx_graph_is_frozen(g));
    cfx_subgraph_free(&part);
    cfx_graph_release(g);
}

TEST(several_that_are_needed_stay)
{
    cfx_graph *g = chain(NULL, 300, (const int[]){0, 150, 299, -1}, NULL);
    counting c = {.needed = 3};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_OK, cfx_graph_minimize(g, has_bad, &c, 1000, &part, NULL));
    CHECK_STR_EQ("x f_148 f_296 bad bad_1 bad_2 output", list_names(part.graph));
    cfx_subgraph_free(&part);
    cfx_graph_release(g);
}

TEST(the_number_of_tests_is_limited)
{
    cfx_graph *g = chain(NULL, 100, (const int[]){50, -1}, NULL);
    counting c = {.needed = 1};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_OK, cfx_graph_minimize(g, has_bad, &c, 4, &part, NULL));
    CHECK_INT_EQ(4, c.tests);
    CHECK(cfx_graph_size(part.graph) > 3 && cfx_graph_size(part.graph) < 102);
    cfx_subgraph_free(&part);
    c.tests = 0;
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_minimize(g, has_bad, &c, 0, &part, NULL));
    CHECK_INT_EQ(0, c.tests);
    cfx_graph_release(g);
}

TEST(a_graph_that_does_not_fail_is_an_error)
{
    cfx_graph *g = chain(NULL, 10, (const int[]){-1}, NULL);
    counting c = {.needed = 1};
    cfx_error err = {.status = CFX_OK};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_minimize(g, has_bad, &c, 100, &part, &err));
    CHECK(strstr(err.message, "does not fail") && part.graph == NULL);
    CHECK_INT_EQ(1, c.tests);
    cfx_graph_release(g);
}

TEST(a_test_that_fails_stops)
{
    cfx_graph *g = chain(NULL, 10, (const int[]){3, -1}, NULL);
    counting c = {.needed = 1, .stop_at = 3};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_minimize(g, has_bad, &c, 100, &part, NULL));
    CHECK(c.tests == 3 && part.graph == NULL && !cfx_graph_is_frozen(g));
    cfx_graph_release(g);
}

static cfx_status minimize_all(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = chain(a, 6, (const int[]){2, -1}, &err);
    counting c = {.needed = 1};
    cfx_subgraph part;
    (void)arg;
    if (g && cfx_graph_minimize(g, has_bad, &c, 100, &part, &err) == CFX_OK)
        cfx_subgraph_free(&part);
    cfx_graph_release(g);
    return err.status;
}

TEST(minimize_runs_out_of_memory)
{
    CHECK(test_oom_sweep(minimize_all, NULL) > 10);
}
