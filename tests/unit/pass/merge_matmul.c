/* merge_matmul.c - tests of src/pass/merge_matmul.c beyond tests/golden/opt. */
#include "check.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/embed/partition.h>
#include <cfx/pass.h>
#include <time.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static size_t count(const cfx_graph *g, const char *target)
{
    size_t n = 0;
    for (const cfx_node *node = cfx_graph_first(g); node; node = cfx_node_next(node))
        n += cfx_node_op(node) == CFX_OP_CALL_FUNCTION &&
             strcmp(cfx_node_target(node, NULL, NULL), target) == 0;
    return n;
}

#define MATMUL "call_function[target=torch.matmul]"

/* How many products are left of a program that begins with inputs x, y and w. */
static size_t left(const char *program)
{
    char text[1024];
    snprintf(text, sizeof text, "graph(): %%x = placeholder[target=x]() %%y = placeholder[target=y]"
             "() %%w = placeholder[target=w]() %s", program);
    cfx_graph *g = parse(text, NULL, NULL);
    bool changed = false;
    if (!CHECK(g))
        return 0;
    size_t before = count(g, "torch.matmul");
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("merge_matmul"), g, NULL, NULL, &changed,
                                      NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    size_t after = count(g, "torch.matmul");
    CHECK(changed == (before != after));
    cfx_graph_release(g);
    return after;
}

TEST(which_products_are_merged)
{
    CHECK_INT_EQ(1, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%y, %w) output((%a, %b))"));
    /* one is used before the operand of the other is there */
    CHECK_INT_EQ(1, left("%a = " MATMUL "(%x, %w) %r = call_function[target=torch.relu](%a) "
                         "%s = call_function[target=torch.relu](%y) %b = " MATMUL "(%s, %w) "
                         "output((%r, %b))"));
    CHECK_INT_EQ(2, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%a, %w) output(%b)"));
    CHECK_INT_EQ(2, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%a, %w) %c = " MATMUL
                         "(%y, %w) output((%b, %c))"));
    CHECK_INT_EQ(2, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%y, %x) output((%a, %b))"));
    CHECK_INT_EQ(1, left("%u = get_attr[target=u]() %v = get_attr[target=u]() %a = " MATMUL
                         "(%x, %u) %b = " MATMUL "(%y, %v) output((%a, %b))"));
}

/* Merging both pairs would make them wait for each other. */
TEST(pairs_that_cross)
{
    CHECK_INT_EQ(4, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%y, %x) %c = " MATMUL
                         "(%b, %w) %d = " MATMUL "(%a, %x) output((%c, %d))"));
}

TEST(nothing_passes_a_write)
{
    CHECK_INT_EQ(2, left("%a = " MATMUL "(%x, %w) %z = call_method[target=add_](%y, 1) %b = "
                         MATMUL "(%y, %w) output((%a, %z, %b))"));
    CHECK_INT_EQ(1, left("%a = " MATMUL "(%x, %w) %b = " MATMUL "(%y, %w) %z = call_method"
                         "[target=add_](%y, 1) output((%a, %z, %b))"));
}

TEST(effects_keep_their_order)
{
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() %w = placeholder[target=w]() %a = "
                         MATMUL "(%x, %w) %r = call_function[target=torch.rand_like](%a) "
                         "%s = call_function[target=torch.rand_like](%x) %b = " MATMUL "(%x, %w) "
                         "output((%a, %b, %r, %s))", NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_merge_matmul(g, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(1, count(g, "torch.matmul"));
    CHECK(cfx_node_before(cfx_graph_find(g, "r"), cfx_graph_find(g, "s")));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(how_far_back_to_look)
{
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() %y = placeholder[target=y]() "
                         "%a = call_function[target=f](%y) %b = call_function[target=f](%a) "
                         "output(%b)", NULL, NULL);
    cfx_node *x = cfx_graph_find(g, "x");
    cfx_node *b = cfx_graph_find(g, "b");
    CHECK_INT_EQ(1, cfx_node_may_depend_on(b, x, 0, NULL));
    CHECK_INT_EQ(1, cfx_node_may_depend_on(b, x, 1, NULL));
    CHECK_INT_EQ(0, cfx_node_may_depend_on(b, x, 2, NULL));
    CHECK_INT_EQ(0, cfx_node_may_depend_on(b, x, SIZE_MAX, NULL));
    CHECK_INT_EQ(1, cfx_node_may_depend_on(b, cfx_graph_find(g, "y"), 9, NULL));
    CHECK_INT_EQ(1, cfx_node_may_depend_on(x, x, 0, NULL));
    CHECK_INT_EQ(0, cfx_node_may_depend_on(x, b, 0, NULL));
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    static const char text[] =
        "graph(): %x = placeholder[target=x]() %w = get_attr[target=w]() %a = " MATMUL "(%x, %w) "
        "%r = call_function[target=torch.relu](%a) %w_1 = get_attr[target=w]() "
        "%b = " MATMUL "(%x, %w_1) output((%r, %b))";
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(text, a, &err);
    (void)arg;
    if (g) {
        cfxi_pass_merge_matmul(g, NULL, NULL, NULL, &err);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}

/* A search for each pair would take hours. */
TEST(a_large_graph)
{
    enum { PRODUCTS = 100000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value w = cfx_value_node(cfx_graph_placeholder(g, "w", NULL));
    cfx_value last = x;
    for (int i = 0; i < PRODUCTS; i++) {
        cfx_value pair[] = {i % 2 ? x : last, w};
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.matmul", pair, 2, NULL, 0,
                                     NULL);
        last = i % 2 ? last : cfx_value_node(n);
    }
    cfx_graph_output(g, last, NULL);
    clock_t start = clock();
    CHECK_INT_EQ(CFX_OK, cfxi_pass_merge_matmul(g, NULL, NULL, NULL, NULL));
    CHECK(clock() - start < 10 * CLOCKS_PER_SEC);
    CHECK_INT_EQ(PRODUCTS / 2, count(g, "torch.matmul"));
    cfx_graph_release(g);
}
