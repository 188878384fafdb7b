/* lift_params.c - tests of src/pass/lift_params.c. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"
#include "text_tools.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static const char two_readers[] =
    "graph(): %x = placeholder[target=x](3) %w = get_attr[target=fc.weight]() "
    "%n = get_attr[target=n]() %v = get_attr[target=v]() %w_1 = get_attr[target=fc.weight]() "
    "%a = call_function[target=f](%x, %w, %n) %b = call_function[target=g](%a, %v, %w_1) "
    "output(%b)";

static void fill(fake_tree *tree)
{
    fake_module(tree, "fc", "torch.nn.Linear", NULL);
    fake_tensor(tree, "fc.weight", 0.5, 2);
    fake_tensor(tree, "v", 1, 1);
    fake_attr(tree, "n", cfx_value_int(3));
}

typedef struct path_list {
    char text[128];
} path_list;

static cfx_status note(void *ctx, const char *path, cfx_error *err)
{
    path_list *list = ctx;
    (void)err;
    strcat(strcat(list->text, path), " ");
    return CFX_OK;
}

TEST(readers_of_tensors_become_the_first_inputs)
{
    fake_tree tree = {0};
    fill(&tree);
    const cfx_module_tree modules = fake_modules(&tree);
    path_list paths = {""};
    const cfx_lift_params_options opts = {note, &paths};
    bool changed = false;
    cfx_graph *g = cfx_graph_parse(two_readers, strlen(two_readers), NULL, NULL, NULL);
    REQUIRE(g);
    const cfx_node *w = cfx_graph_find(g, "w");
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("lift_params"), g, &modules, &opts, &changed,
                                      NULL));
    CHECK(changed);
    CHECK_STR_EQ("fc.weight v ", paths.text);
    CHECK(cfx_graph_first(g) == w);  /* the same node, its binding and its users */
    CHECK_INT_EQ(CFX_OP_PLACEHOLDER, cfx_node_op(w));
    CHECK_STR_EQ("w", cfx_node_target(w, NULL, NULL));
    CHECK_INT_EQ(2, cfx_node_num_users(w));
    CHECK_STR_EQ("v", cfx_node_name(cfx_node_next(w), NULL));
    CHECK(cfx_graph_find(g, "w_1") == NULL);
    CHECK_INT_EQ(CFX_OP_GET_ATTR, cfx_node_op(cfx_graph_find(g, "n")));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfxi_pass_lift_params(g, &modules, NULL, &changed, NULL);
    CHECK(!changed);
    cfx_graph_release(g);
}

TEST(without_modules_nothing_is_lifted)
{
    bool changed = true;
    cfx_graph *g = cfx_graph_parse(two_readers, strlen(two_readers), NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_lift_params(g, NULL, NULL, &changed, NULL));
    CHECK(!changed);
    cfx_graph_release(g);
}

TEST(the_first_inputs_are_read_again)
{
    static const char *const names[] = {"fc.weight", "v"};
    static const char text[] = "graph(): %w = placeholder[target=w]() %v = placeholder[target=v](1)"
                               " %x = placeholder[target=x]() %f = call_function[target=f](%w, %v,"
                               " %x) output(%f)";
    fake_tree tree = {0};
    fill(&tree);
    const cfx_module_tree modules = fake_modules(&tree);
    const cfx_unlift_params_options opts = {names, 2};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("unlift_params"), g, &modules, &opts, NULL,
                                      NULL));
    CHECK_STR_EQ("x", cfx_node_name(cfx_graph_first(g), NULL));
    const cfx_node *w = cfx_node_next(cfx_graph_first(g));
    CHECK_STR_EQ("fc.weight", cfx_node_target(w, NULL, NULL));
    CHECK_INT_EQ(CFX_OP_GET_ATTR, cfx_node_op(w));
    CHECK_STR_EQ("v", cfx_node_target(cfx_node_next(w), NULL, NULL));
    CHECK_INT_EQ(0, cfx_node_num_args(cfx_node_next(w)));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(paths_that_do_not_fit_are_refused_before_a_change)
{
    static const char *const names[] = {"fc.weight", "nothing"};
    static const char text[] = "graph(): %w = placeholder[target=w]() %v = placeholder[target=v]() "
                               "output((%w, %v))";
    fake_tree tree = {0};
    fill(&tree);
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    cfx_unlift_params_options opts = {names, 2};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_pass_unlift_params(g, &modules, &opts, NULL, &err));
    CHECK(strstr(err.message, "'nothing'"));
    opts.n = 3;
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_pass_unlift_params(g, NULL, &opts, NULL, &err));
    CHECK(strstr(err.message, "2 inputs"));
    CHECK_INT_EQ(CFX_OP_PLACEHOLDER, cfx_node_op(cfx_graph_first(g)));
    CHECK_INT_EQ(CFX_OK, cfxi_pass_unlift_params(g, NULL, NULL, NULL, NULL));
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    static const char *const names[] = {"fc.weight", "v"};
    const cfx_unlift_params_options back = {names, 2};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(two_readers, strlen(two_readers), a, NULL, &err);
    if (g && cfxi_pass_lift_params(g, arg, NULL, NULL, &err) == CFX_OK)
        cfxi_pass_unlift_params(g, arg, &back, NULL, &err);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    fake_tree tree = {0};
    fill(&tree);
    cfx_module_tree modules = fake_modules(&tree);
    CHECK(test_oom_sweep(body, &modules) > 10);
}
