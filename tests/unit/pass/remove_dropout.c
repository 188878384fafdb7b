/* remove_dropout.c - tests of src/pass/remove_dropout.c beyond tests/golden/opt. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static const char text[] =
    "graph(): %x = placeholder[target=x]() %d = call_module[target=d](%x) "
    "%e = call_module[target=e](input=%d) %f = call_function[target=torch.nn.functional.dropout]"
    "(%e, 0.5, False) output(%f)";

static cfx_graph *parse(const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static fake_tree tree_of(const char *d, bool training)
{
    fake_tree tree = {0};
    fake_module(&tree, "d", d, NULL);
    fake_attr(&tree, "d.training", cfx_value_bool(training));
    fake_module(&tree, "e", "torch.nn.Dropout2d", NULL);
    fake_attr(&tree, "e.training", cfx_value_bool(training));
    return tree;
}

static size_t left(const char *d, bool training, const cfx_remove_dropout_options *opts)
{
    fake_tree tree = tree_of(d, training);
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = parse(NULL, NULL);
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("remove_dropout"), g, &modules, opts, &changed,
                                      NULL));
    CHECK(changed);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    size_t n = cfx_graph_size(g) - 2;
    cfx_graph_release(g);
    return n;
}

TEST(what_drops_nothing_goes)
{
    CHECK_INT_EQ(0, left("torch.nn.Dropout", false, NULL));
    CHECK_INT_EQ(2, left("torch.nn.Dropout", true, NULL));
    CHECK_INT_EQ(1, left("mine.Dropout", false, NULL));
    CHECK_INT_EQ(1, left("", false, NULL));
}

TEST(as_torch_fx_does)
{
    const cfx_remove_dropout_options opts = {.training = true};
    CHECK_INT_EQ(1, left("torch.nn.Dropout", true, &opts));
    CHECK_INT_EQ(2, left("torch.nn.AlphaDropout", true, &opts));
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    fake_tree tree = tree_of("torch.nn.Dropout", false);
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(a, &err);
    (void)arg;
    if (g)
        cfxi_pass_remove_dropout(g, &modules, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 4);
}
