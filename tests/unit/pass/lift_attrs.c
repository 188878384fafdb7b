/* lift_attrs.c - tests of src/pass/lift_attrs.c beyond tests/golden/opt/lift_attrs.ir. */
#include "check.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static bool run(cfx_graph *g)
{
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("lift_attrs"), g, NULL, NULL, &changed, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    return changed;
}

#define BRANCH(name) "graph { %a = placeholder[target=a]() %w = get_attr[target=" name "]() \
    %f = call_function[target=f](%a, %w) output(%f) }"
#define COND(then, otherwise) "graph(): %x = placeholder[target=x]() %c = call_function" \
    "[target=cfx.cond](%x, " then ", " otherwise ", (%x,)) output(%c)"

TEST(a_second_run_changes_nothing)
{
    cfx_graph *g = parse(COND(BRANCH("u.v"), BRANCH("w")), NULL, NULL);
    CHECK(run(g));
    CHECK_INT_EQ(5, cfx_graph_size(g));
    CHECK(!run(g));
    cfx_graph_release(g);
}

TEST(graphs_without_regions_are_left_alone)
{
    cfx_graph *g = parse("graph(): %w = get_attr[target=w]() output(%w)", NULL, NULL);
    CHECK(!run(g));
    cfx_graph_release(g);
}

/* One region as both branches is changed once; as the branch of two conds, not at all. */
TEST(regions_that_are_used_twice)
{
    for (int conds = 1; conds <= 2; conds++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_graph *region = parse("graph(): " "%a = placeholder[target=a]() "
                                  "%w = get_attr[target=w]() output((%a, %w))", NULL, NULL);
        cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
        cfx_value branch = cfx_value_region(g, region, NULL);
        for (int i = 0; i < conds; i++) {
            cfx_value args[] = {x, branch, branch, cfx_value_tuple(g, &x, 1, NULL)};
            cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.cond", args, 4, NULL, 0, NULL);
        }
        cfx_graph_output(g, x, NULL);
        CHECK(run(g) == (conds == 1));
        CHECK_INT_EQ(3, cfx_graph_size(region));
        CHECK((cfx_graph_find(region, "w") == NULL) == (conds == 1));
        cfx_graph_release(region);
        cfx_graph_release(g);
    }
}

TEST(the_insertion_point_stays)
{
    cfx_graph *g = parse(COND(BRANCH("w"), BRANCH("w")), NULL, NULL);
    cfx_graph_set_insert_point(g, (cfx_insert_point){cfx_graph_first(g), true}, NULL);
    CHECK(run(g));
    CHECK(cfx_graph_insert_point(g).node == cfx_graph_first(g));
    CHECK(cfx_graph_insert_point(g).after);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(COND(BRANCH("u.v"), BRANCH("w")), a, &err);
    (void)arg;
    if (g)
        cfxi_pass_lift_attrs(g, NULL, NULL, NULL, &err);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}
