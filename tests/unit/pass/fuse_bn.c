/* fuse_bn.c - tests of src/pass/fuse_*.c, src/analysis/module_users.c. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"
#include "text_tools.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static const char by_modules[] =
    "graph(): %x = placeholder[target=x]() %conv = call_module[target=conv](%x) "
    "%bn = call_module[target=bn](%conv) %relu = call_function[target=torch.relu](%bn) "
    "output(%relu)";
static const char by_functions[] =
    "graph(): %x = placeholder[target=x]() %w = get_attr[target=conv.weight]() "
    "%m = get_attr[target=bn.running_mean]() %v = get_attr[target=bn.running_var]() "
    "%conv = call_function[target=torch.conv2d](%x, %w, None, 1) "
    "%bn = call_function[target=torch.nn.functional.batch_norm](%conv, %m, %v, eps=0.5) "
    "output(%bn)";

enum { MEAN = 3, VAR = 4, GAMMA = 5, BETA = 6, WEIGHT = 7, BIAS = 8 };

static void put_norm(fake_tree *tree, const char *class_name)
{
    fake_module(tree, "bn", class_name, NULL);
    fake_attr(tree, "bn.training", cfx_value_bool(false));
    fake_attr(tree, "bn.eps", cfx_value_float(0));
    fake_tensor(tree, "bn.running_mean", MEAN, 1);
    fake_tensor(tree, "bn.running_var", VAR, 1);
    fake_tensor(tree, "bn.weight", GAMMA, 1);
    fake_tensor(tree, "bn.bias", BETA, 1);
}

static void put_conv(fake_tree *tree, const char *class_name, int rank)
{
    fake_module(tree, "conv", class_name, NULL);
    fake_tensor(tree, "conv.weight", WEIGHT, rank);
    fake_tensor(tree, "conv.bias", BIAS, 1);
    fake_attr(tree, "conv.groups", cfx_value_int(1));
}

static fake_tree usual_tree(void)
{
    fake_tree tree = {0};
    put_conv(&tree, "torch.nn.Conv2d", 4);
    put_norm(&tree, "torch.nn.BatchNorm2d");
    return tree;
}

static bool run(const char *text, fake_tree *tree)
{
    const cfx_module_tree modules = fake_modules(tree);
    bool changed = false;
    cfx_graph *g = parse(text, NULL, NULL);
    if (!CHECK(g))
        return false;
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("fuse_bn"), g, &modules, NULL, &changed, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK(changed == (cfx_graph_find(g, "bn") == NULL));
    cfx_graph_release(g);
    return changed;
}

static const double factor = GAMMA / 2.0;  /* by the square root of VAR */

TEST(modules)
{
    fake_tree tree = usual_tree();
    CHECK(run(by_modules, &tree));
    CHECK(fake_number(&tree, "conv.weight") == WEIGHT * factor);
    CHECK(fake_number(&tree, "conv.bias") == (BIAS - MEAN) * factor + BETA);
    CHECK(isnan(fake_number(&tree, "conv_fused.weight")));
}

TEST(every_kind_of_layer)
{
    static const struct {
        const char *layer, *norm;
        int rank;
        bool fits;
    } cases[] = {
        {"torch.nn.Conv1d", "torch.nn.BatchNorm1d", 3, true},
        {"torch.nn.Conv3d", "torch.nn.BatchNorm3d", 5, true},
        {"torch.nn.ConvTranspose2d", "torch.nn.BatchNorm2d", 4, true},
        {"torch.nn.Linear", "torch.nn.BatchNorm1d", 2, true},
        {"torch.nn.Conv2d", "torch.nn.SyncBatchNorm", 4, true},
        {"torch.nn.Linear", "torch.nn.BatchNorm2d", 2, false},
        {"torch.nn.Conv2d", "torch.nn.BatchNorm1d", 4, false},
        {"torch.nn.Conv2d", "torch.nn.BatchNorm2d", 3, false},
        {"torch.nn.Conv2d", "torch.nn.InstanceNorm2d", 4, false},
        {"mine.Conv2d", "torch.nn.BatchNorm2d", 4, false},
        {"", "torch.nn.BatchNorm2d", 4, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_tree tree = {0};
        put_conv(&tree, cases[i].layer, cases[i].rank);
        put_norm(&tree, cases[i].norm);
        CHECK(run(by_modules, &tree) == cases[i].fits);
        CHECK(fake_number(&tree, "conv.weight") == (cases[i].fits ? WEIGHT * factor : WEIGHT));
    }
}

TEST(without_bias_gamma_or_beta)
{
    fake_tree tree = usual_tree();
    fake_attr(&tree, "conv.bias", cfx_value_none());
    fake_attr(&tree, "bn.weight", cfx_value_none());
    fake_attr(&tree, "bn.bias", cfx_value_none());
    CHECK(run(by_modules, &tree));
    CHECK(fake_number(&tree, "conv.weight") == WEIGHT / 2.0);
    CHECK(fake_number(&tree, "conv.bias") == -MEAN / 2.0);
}

TEST(functions_get_weights_of_their_own)
{
    fake_tree tree = usual_tree();
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = parse(by_functions, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_fuse_bn(g, &modules, NULL, NULL, NULL));
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %conv_weight_fused = get_attr[target=conv.weight_fused]()\n"
                 "  %conv_weight_fused_bias = get_attr[target=conv.weight_fused_bias]()\n"
                 "  %conv = call_function[target=torch.conv2d](%x, %conv_weight_fused, "
                 "%conv_weight_fused_bias, 1)\n"
                 "  output(%conv)\n", text_of(g));
    CHECK(fake_number(&tree, "conv.weight") == WEIGHT);
    CHECK(fabs(fake_number(&tree, "conv.weight_fused") - WEIGHT / sqrt(VAR + 0.5)) < 1e-12);
    cfx_graph_release(g);
}

TEST(what_is_left_alone)
{
    static const struct {
        const char *path;  /* set to this */
        cfx_value value;
    } cases[] = {
        {"bn.training", {.kind = CFX_KIND_BOOL, .as.b = true}},
        {"bn.running_mean", {.kind = CFX_KIND_NONE}},
        {"bn.running_var", {.kind = CFX_KIND_NONE}},
        {"conv.weight", {.kind = CFX_KIND_INT, .as.i = 3}},
        {"conv.weight", {.kind = CFX_KIND_NONE}},
        {"conv.groups", {.kind = CFX_KIND_NONE}},
        {"bn.eps", {.kind = CFX_KIND_NONE}},
        {"conv.weight.dtype", {.kind = CFX_KIND_DTYPE, .as.i = CFX_DTYPE_INT8}},
        {"bn.weight.shape", {.kind = CFX_KIND_NONE}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_tree tree = usual_tree();
        fake_attr(&tree, cases[i].path, cases[i].value);
        CHECK(!run(by_modules, &tree));
    }
    bool changed = true;
    cfx_graph *g = parse(by_modules, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_fuse_bn(g, NULL, NULL, &changed, NULL));
    CHECK(!changed);
    cfx_graph_release(g);
}

/* Whoever else sees the layer, its module or its weights. */
TEST(layers_that_others_see)
{
    static const char *const graphs[] = {
        "%y = call_function[target=f](%conv) output((%bn, %y))",
        "%conv_1 = call_module[target=conv](%bn) output(%conv_1)",
        "%w = get_attr[target=conv.weight]() output((%bn, %w))",
        "%c = call_function[target=cfx.cond](%x, graph { %p = placeholder[target=p]() %q = "
        "call_module[target=conv](%p) output(%q) }, graph { %p = placeholder[target=p]() "
        "output(%p) }, (%x,)) output((%bn, %c))",
        "%m = get_attr[target=bn.running_mean]() %n = call_method[target=add_](%m, 1) "
        "output((%bn, %n))",
        "%m = get_attr[target=bn.running_mean]() %v = call_method[target=view](%m, -1) "
        "%n = call_method[target=add_](%v, 1) output((%bn, %n))",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char text[1024];
        fake_tree tree = usual_tree();
        snprintf(text, sizeof text, "graph(): %%x = placeholder[target=x]() %%conv = call_module"
                 "[target=conv](%%x) %%bn = call_module[target=bn](%%conv) %s", graphs[i]);
        CHECK(!run(text, &tree));
    }
}

TEST(arguments_that_are_not_known)
{
    static const char *const norms[] = {
        "(%conv, %m, %v, training=True)", "(%conv, %m, %v, training=%x)",
        "(%conv, %x, %v, training=False)", "(%conv, None, %v, training=False)",
        "(%conv, %m, %v, eps=%x, training=False)", "(%x, %m, %v, weight=%conv, training=False)",
    };
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        char text[1024];
        fake_tree tree = usual_tree();
        snprintf(text, sizeof text, "graph(): %%x = placeholder[target=x]() %%w = get_attr[target="
                 "conv.weight]() %%m = get_attr[target=bn.running_mean]() %%v = get_attr[target="
                 "bn.running_var]() %%conv = call_function[target=torch.conv2d](%%x, %%w) %%bn = "
                 "call_function[target=torch.nn.functional.batch_norm]%s output(%%bn)", norms[i]);
        CHECK(!run(text, &tree));
    }
}

/* If a weight cannot be computed or set, the model is as it was. */
TEST(failures_change_nothing)
{
    for (int i = 1; i <= 9; i++) {
        fake_tree tree = usual_tree();
        const cfx_module_tree modules = fake_modules(&tree);
        cfx_error err = {.status = CFX_OK};
        tree.fail_call = i < 9 ? i : 0;
        tree.fail_set = i < 9 ? NULL : ".bias";
        cfx_graph *g = parse(by_modules, NULL, NULL);
        CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_fuse_bn(g, &modules, NULL, NULL, &err));
        CHECK_INT_EQ(CFX_E_HOST, err.status);
        CHECK(cfx_graph_find(g, "bn") != NULL);
        CHECK(fake_number(&tree, "conv.weight") == WEIGHT);
        CHECK(isnan(fake_number(&tree, "conv_fused.weight")));
        cfx_graph_release(g);
    }
}

static cfx_status body(const cfx_allocator *a, void *text)
{
    fake_tree tree = usual_tree();
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(text, a, &err);
    if (g) {
        cfxi_pass_fuse_bn(g, &modules, NULL, NULL, &err);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)by_modules) > 10);
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)by_functions) > 10);
}
