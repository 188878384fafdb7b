/* legalize_names.c - tests of src/pass/legalize_names.c: names that only a program can set. */
#include "check.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/pass.h>

static bool run(cfx_graph *g)
{
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_legalize_names(g, NULL, NULL, &changed, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    return changed;
}

static cfx_node *named(cfx_graph *g, const char *name, cfx_error *err)
{
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", NULL, 0, NULL, 0, err);
    return n && cfx_node_set_name(n, name, strlen(name), err) == CFX_OK ? n : NULL;
}

TEST(only_bad_names_change)
{
    static const char *const wishes[] = {"good", "a b", "1st", "", "if", "print", "good", "x.y"};
    static const char *const want[] = {"good", "a_b", "_1st", "_unnamed", "if_1", "print_1",
                                       "good_1", "x_y"};
    cfx_node *nodes[8];
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < 8; i++)
        nodes[i] = named(g, wishes[i], NULL);
    CHECK(run(g));
    for (size_t i = 0; i < 8; i++)
        CHECK_STR_EQ(want[i], cfx_node_name(nodes[i], NULL));
    CHECK(!run(g));
    cfx_graph_release(g);
}

/* The owner of a name keeps it; among those without one, the first does. */
TEST(who_keeps_a_name)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *thief = named(g, "taken", NULL);
    cfx_node *twin = named(g, "taken", NULL);
    cfx_node *owner = cfx_graph_placeholder(g, "own", NULL);
    cfx_node *other = named(g, "own", NULL);
    cfx_node_prepend(cfx_graph_first(g), owner, NULL);
    CHECK(run(g));
    CHECK_STR_EQ("taken", cfx_node_name(thief, NULL));
    CHECK_STR_EQ("taken_1", cfx_node_name(twin, NULL));
    CHECK_STR_EQ("own", cfx_node_name(owner, NULL));
    CHECK_STR_EQ("own_1", cfx_node_name(other, NULL));
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    if (g && named(g, "if", &err) && named(g, "x", &err) && named(g, "x", &err))
        cfxi_pass_legalize_names(g, NULL, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 3);
}
