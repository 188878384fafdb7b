/* lower.c - lowering: modules, attributes, what is refused, want of memory. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/lower.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* The text of `text` lowered; freed by the next call. */
static const char *lowered(const char *text, const cfx_module_tree *modules)
{
    static cfx_buffer out;
    cfx_error err = {0};
    cfx_graph *g = parse(text, NULL, &err);
    if (out.data)
        cfx_buffer_free(&out);
    cfx_buffer_init(&out, NULL);
    if (!g || cfx_graph_lower(g, modules, NULL, &err) != CFX_OK)
        cfx_buffer_append(&out, err.message, strlen(err.message));
    else
        cfx_graph_text(g, cfx_buffer_sink(&out), &err);
    cfx_graph_release(g);
    return out.data;
}

/* Tensors as what they are in a host: objects. */
static cfx_value get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    const fake_entry *e = fake_find(ctx, path, strlen(path));
    return e && e->rank > 0 ? cfx_value_name(g, "a.tensor", 8, err) : fake_get(ctx, g, path, err);
}

static cfx_module_tree modules_of(fake_tree *tree)
{
    cfx_module_tree modules = fake_modules(tree);
    modules.get = get;
    return modules;
}

static void add_layers(fake_tree *tree)
{
    fake_module(tree, "fc", "torch.nn.Linear", NULL);
    fake_tensor(tree, "fc.weight", 0.5, 2);
    fake_attr(tree, "fc.bias", cfx_value_none());
    fake_module(tree, "bn", "torch.nn.BatchNorm1d", NULL);
    fake_tensor(tree, "bn.weight", 1, 1);
    fake_tensor(tree, "bn.bias", 1, 1);
    fake_tensor(tree, "bn.running_mean", 1, 1);
    fake_tensor(tree, "bn.running_var", 1, 1);
    fake_attr(tree, "bn.training", cfx_value_bool(false));
    fake_attr(tree, "bn.track_running_stats", cfx_value_bool(true));
    fake_attr(tree, "bn.momentum", cfx_value_float(0.25));
    fake_attr(tree, "bn.eps", cfx_value_float(0.5));
    fake_module(tree, "act", "torch.nn.ReLU", NULL);
    fake_attr(tree, "act.inplace", cfx_value_bool(true));
}

static const char layers[] = "graph():\n"
                             "  %x = placeholder[target=x]()\n"
                             "  %fc = call_module[target=fc](%x)\n"
                             "  %bn = call_module[target=bn](%fc)\n"
                             "  %act = call_module[target=act](input=%bn)\n"
                             "  output(%act)\n";

static const char *neg_stays(void *ctx, const cfx_node *n)
{
    (void)ctx;
    return strcmp(cfx_node_name(n, NULL), "b") == 0 ? "it is asked to stay" : NULL;
}

static cfx_status copy_reason(void *ctx, const cfx_node *n, const char *why)
{
    (void)ctx;
    (void)n;
    CHECK_STR_EQ("torch.neg(a): it is asked to stay (node %b)", why);
    return CFX_OK;
}

TEST(calls_can_stay)
{
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %a = call_method[target=relu](%x)\n"
                               "  %b = call_function[target=torch.neg](%a)\n"
                               "  output(%b)\n";
    const cfx_lower_options options = {.partial = true, .stay = neg_stays, .each = copy_reason};
    cfx_graph *g = parse(text, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_lower(g, NULL, &options, NULL));
    CHECK_STR_EQ("torch.neg", cfx_node_target(cfx_graph_find(g, "b"), NULL, NULL));
    CHECK_STR_EQ("cfx.ops.relu", cfx_node_target(cfx_graph_find(g, "a"), NULL, NULL));
    cfx_graph_release(g);
}

TEST(a_part_can_be_lowered)
{
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %a = call_method[target=relu](%x)\n"
                               "  %b = call_function[target=my.function](%a)\n"
                               "  %c = call_function[target=torch.neg](%b)\n"
                               "  output(%c)\n";
    const cfx_lower_options options = {.partial = true};
    cfx_error err = {0};
    cfx_buffer out;
    cfx_graph *g = parse(text, NULL, &err);
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_lower(g, NULL, &options, &err));
    cfx_graph_text(g, cfx_buffer_sink(&out), &err);
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %a = call_function[target=cfx.ops.relu](%x)\n"
                 "  %b = call_function[target=my.function](%a)\n"
                 "  %c = call_function[target=cfx.ops.neg](%b)\n"
                 "  output(%c)\n", out.data);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
}

TEST(modules_become_rows_with_weights)
{
    fake_tree tree = {0};
    add_layers(&tree);
    const cfx_module_tree modules = modules_of(&tree);
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %fc_weight = get_attr[target=fc.weight]()\n"
                 "  %fc = call_function[target=cfx.ops.linear](%x, %fc_weight)\n"
                 "  %bn_running_mean = get_attr[target=bn.running_mean]()\n"
                 "  %bn_running_var = get_attr[target=bn.running_var]()\n"
                 "  %bn_weight = get_attr[target=bn.weight]()\n"
                 "  %bn_bias = get_attr[target=bn.bias]()\n"
                 "  %bn = call_function[target=cfx.ops.batch_norm](%fc, %bn_weight, %bn_bias, "
                 "%bn_running_mean, %bn_running_var, False, 0.25, 0.5, False)\n"
                 "  %act = call_function[target=cfx.ops.relu_](%bn)\n"
                 "  output(%act)\n", lowered(layers, &modules));
}

TEST(numbers_that_are_read_become_constants)
{
    fake_tree tree = {0};
    fake_attr(&tree, "scale", cfx_value_float(2));
    fake_tensor(&tree, "w", 1, 1);
    const cfx_module_tree modules = modules_of(&tree);
    CHECK_STR_EQ("graph():\n"
                 "  %w = get_attr[target=w]()\n"
                 "  %mul = call_function[target=cfx.ops.mul](%w, 2.0)\n"
                 "  output(%mul)\n",
                 lowered("graph():\n"
                         "  %s = get_attr[target=scale]()\n"
                         "  %w = get_attr[target=w]()\n"
                         "  %mul = call_function[target=operator.mul](%w, %s)\n"
                         "  output(%mul)\n", &modules));
}

TEST(captured_modules_are_inlined)
{
    cfx_error err = {0};
    cfx_graph *inner = parse("graph():\n"
                             "  %a = placeholder[target=a]()\n"
                             "  %r = call_method[target=relu](%a)\n"
                             "  output(%r)\n", NULL, &err);
    fake_tree tree = {0};
    fake_module(&tree, "sub", "mine.Sub", inner);
    const cfx_module_tree modules = modules_of(&tree);
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %r = call_function[target=cfx.ops.relu](%x)\n"
                 "  output(%r)\n",
                 lowered("graph():\n"
                         "  %x = placeholder[target=x]()\n"
                         "  %s = call_module[target=sub](%x)\n"
                         "  output(%s)\n", &modules));
    cfx_graph_release(inner);
}

/* ---- calls that stay ----------------------------------------------------------------------- */

static bool is_linear(void *ctx, const cfx_node *n, const char *class_name)
{
    const char *called = cfx_node_target(n, NULL, NULL);
    return strcmp(called, ctx) == 0 && strcmp(class_name, "torch.nn.Linear") == 0;
}

TEST(calls_of_modules_can_stay)
{
    cfx_error err = {0};
    cfx_buffer out;
    fake_tree tree = {0};
    add_layers(&tree);
    const cfx_module_tree modules = modules_of(&tree);
    const cfx_lower_options options = {.keep = is_linear, .ctx = "fc"};
    cfx_graph *g = parse("graph():\n"
                         "  %x = placeholder[target=x]()\n"
                         "  %fc = call_module[target=fc](%x)\n"
                         "  %m = call_function[target=torch.max](%fc, %x)\n"
                         "  %act = call_module[target=act](%m)\n"
                         "  output(%act)\n", NULL, &err);
    REQUIRE(g != NULL);
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_lower(g, &modules, &options, &err));
    CHECK_INT_EQ(CFX_OK, cfx_graph_text(g, cfx_buffer_sink(&out), &err));
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %fc = call_module[target=fc](%x)\n"
                 "  %m = call_function[target=cfx.ops.maximum](%fc, %x)\n"
                 "  %act = call_function[target=cfx.ops.relu_](%m)\n"
                 "  output(%act)\n", out.data);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
}

/* ---- what is in the way -------------------------------------------------------------------- */

static cfx_status collect(void *ctx, const cfx_node *n, const char *why)
{
    cfx_buffer *out = ctx;
    (void)n;
    cfx_buffer_append(out, why, strlen(why));
    return cfx_buffer_append(out, "\n", 1);
}

TEST(everything_in_the_way_is_told)
{
    cfx_error err = {0};
    cfx_buffer out;
    fake_tree tree = {0};
    fake_module(&tree, "own", "mine.Layer", NULL);
    const cfx_module_tree modules = modules_of(&tree);
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %a = call_function[target=mine.f](%x, k=1)  @ model.py:7\n"
                               "  %b = call_method[target=relu](%a, 3)\n"
                               "  %c = call_module[target=own](%b)\n"
                               "  %d = get_attr[target=gone]()\n"
                               "  output((%c, %d))\n";
    cfx_graph *g = parse(text, NULL, &err);
    REQUIRE(g != NULL);
    cfx_buffer_init(&out, NULL);
    const cfx_lower_options options = {.each = collect, .ctx = &out};
    CHECK_INT_EQ(CFX_E_TYPE, cfx_graph_lower(g, &modules, &options, &err));
    CHECK_STR_EQ("model.py:7: mine.f(x, k=1): 'mine.f' is not in the operator table (node %a)\n"
                 "a.relu(3): too many arguments: expected at most 1, got 2 (node %b)\n"
                 "self.own(b): the class mine.Layer is not in the operator table (node %c)\n"
                 "gone: the module has no attribute 'gone' (node %d)\n", out.data);
    CHECK_STR_EQ("model.py:7: mine.f(x, k=1): 'mine.f' is not in the operator table (node %a); "
                 "and 3 more", err.message);
    cfx_buffer_free(&out);
    cfx_graph_text(g, cfx_buffer_sink(&out), &err);
    CHECK_STR_EQ(text, out.data);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
}

static cfx_status stop(void *ctx, const cfx_node *n, const char *why)
{
    (void)ctx;
    (void)n;
    (void)why;
    return CFX_E_LIMIT;
}

TEST(a_callback_can_stop_it)
{
    cfx_error err = {0};
    cfx_graph *g = parse("graph():\n  %a = call_function[target=f]()\n  output(%a)\n", NULL, &err);
    REQUIRE(g != NULL);
    const cfx_lower_options stopping = {.each = stop};
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_graph_lower(g, NULL, &stopping, &err));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_graph_lower(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* ---- want of memory ------------------------------------------------------------------------ */

static cfx_status lower_with(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    fake_tree tree = {0};
    add_layers(&tree);
    const cfx_module_tree modules = modules_of(&tree);
    cfx_graph *g = parse(arg, a, &err);
    if (g)
        cfx_graph_lower(g, &modules, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    char text[sizeof layers + 200];
    snprintf(text, sizeof text, "%s", layers);
    CHECK(test_oom_sweep(lower_with, text) > 10);
    snprintf(text, sizeof text, "graph():\n"
             "  %%x = placeholder[target=x]()\n"
             "  %%v = call_method[target=view](%%x, 2, 3)\n"
             "  %%s = call_function[target=torch.max](%%v, %%x)\n"
             "  %%o = call_function[target=torch.exp](%%v, out=%%x)\n"
             "  %%e = call_method[target=new_empty](%%x, [0])\n"
             "  %%z = call_function[target=torch.zeros]([2], out=%%e)\n"
             "  %%m = call_function[target=torch.max](%%x, 1, out=(%%e, %%z))\n"
             "  output(%%o)\n");
    test_oom_sweep(lower_with, text);
}

/* ---- regions ------------------------------------------------------------------------------- */

/* What is passed to a region, and what it gives, tells which row a call means: max of a tensor and
 * a number is another than that of two tensors; lists are joined, and stacked. */
static const char with_regions[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %c = call_function[target=cfx.cond](%x, graph {\n"
    "      %a = placeholder[target=a]()\n"
    "      %n = placeholder[target=n]()\n"
    "      %max = call_function[target=torch.max](%a, %n)\n"
    "      output((1, %a))\n"
    "    }, graph {\n"
    "      %a = placeholder[target=a]()\n"
    "      %n = placeholder[target=n]()\n"
    "      output((2, %a))\n"
    "    }, (%x, 0))\n"
    "  %n = call_function[target=operator.getitem](%c, 0)\n"
    "  %y = call_function[target=operator.getitem](%c, 1)\n"
    "  %other = call_function[target=torch.max](%y, %n)\n"
    "  %l = call_function[target=cfx.for_loop](3, graph {\n"
    "      %i = placeholder[target=i]()\n"
    "      %out = placeholder[target=out]()\n"
    "      %a = placeholder[target=a]()\n"
    "      %both = call_function[target=torch.max](%a, %a)\n"
    "      %add = call_function[target=operator.add](%out, [%both])\n"
    "      output((%add, %a))\n"
    "    }, ([], %y))\n"
    "  %all = call_function[target=operator.getitem](%l, 0)\n"
    "  %stack = call_function[target=torch.stack](%all)\n"
    "  output(%stack)\n";

TEST(regions_tell_what_values_are)
{
    const char *text = lowered(with_regions, NULL);
    CHECK(strstr(text, "%max = call_function[target=cfx.ops.max_dim](%a, %n"));
    CHECK(strstr(text, "%other = call_function[target=cfx.ops.max_dim](%y, %n"));
    CHECK(strstr(text, "%both = call_function[target=cfx.ops.maximum](%a, %a"));
    CHECK(strstr(text, "%add = call_function[target=cfx.ops.add](%out, [%both]"));
    if (!CHECK(strstr(text, "%stack = call_function[target=cfx.ops.stack](%all")))
        printf("    %s\n", text);
}

static cfx_status lower_regions(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_graph *g = parse(arg, a, &err);
    if (g)
        cfx_graph_lower(g, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(regions_without_memory)
{
    CHECK(test_oom_sweep(lower_regions, (void *)(uintptr_t)with_regions) > 10);
}
