/* rules.c - which rule a call has. A configuration is told by its `host`. */
#include "quantize/quantize_impl.h"

#include "check.h"
#include "graph_fixture.h"
#include "modules_fixture.h"
#include "test_alloc.h"

static char marks[16];

static cfx_qconfig config(int i) { return (cfx_qconfig){.host = &marks[i]}; }

/* The number of the configuration; -1: float. */
static int found(const cfx_qrules *r, cfxi_quantize_call call)
{
    cfx_error err = {0};
    const cfx_qconfig *c = NULL;
    CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_find(r, &call, &c, &err));
    return c ? (int)((char *)c->host - marks) : -1;
}

static int of_module(const cfx_qrules *r, const char *path, const char *type, size_t index)
{
    return found(r, (cfxi_quantize_call){.op = CFX_OP_CALL_MODULE, .type = type, .path = path,
                                         .index = index});
}

static int of_function(const cfx_qrules *r, const char *path, const char *around, const char *type,
                       size_t index)
{
    return found(r, (cfxi_quantize_call){.op = CFX_OP_CALL_FUNCTION, .type = type, .path = path,
                                         .around = around, .index = index});
}

static cfx_status fill(cfx_qrules *r, cfx_error *err)
{
    cfx_qconfig c[8];
    for (int i = 0; i < 8; i++)
        c[i] = config(i);
    cfx_status s = cfx_qrules_set_global(r, &c[0], err);
    s = s ? s : cfx_qrules_set_type(r, "torch.nn.Conv2d", &c[1], err);
    s = s ? s : cfx_qrules_set_regex(r, "layer1\\.[0-9]+", &c[2], err);
    s = s ? s : cfx_qrules_set_name(r, "layer2", &c[3], err);
    s = s ? s : cfx_qrules_set_order(r, "layer2", "nn.Conv2d", 1, &c[4], err);
    s = s ? s : cfx_qrules_set_name(r, "layer2.1", NULL, err);
    s = s ? s : cfx_qrules_set_type(r, "F.relu", &c[5], err);
    return s ? s : cfx_qrules_set_type(r, "sigmoid", &c[6], err);
}

TEST(the_most_particular_rule_wins)
{
    cfx_error err = {0};
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    REQUIRE(fill(r, &err) == CFX_OK);
    CHECK_INT_EQ(0, of_module(r, "fc", "torch.nn.Linear", 0));
    CHECK_INT_EQ(1, of_module(r, "conv", "torch.nn.modules.conv.Conv2d", 0));
    CHECK_INT_EQ(2, of_module(r, "layer1.12.conv", "torch.nn.Conv2d", 0));
    CHECK_INT_EQ(1, of_module(r, "layer1.x", "torch.nn.Conv2d", 0));
    CHECK_INT_EQ(1, of_module(r, "more.layer1.1", "torch.nn.Conv2d", 0));
    CHECK_INT_EQ(3, of_module(r, "layer2.0", "torch.nn.Conv2d", 0));
    CHECK_INT_EQ(4, of_module(r, "layer2.0", "torch.nn.Conv2d", 1));
    CHECK_INT_EQ(3, of_module(r, "layer2.0.conv", "torch.nn.Conv2d", 1));
    CHECK_INT_EQ(-1, of_module(r, "layer2.1.conv", "torch.nn.Conv2d", 0));
    CHECK_INT_EQ(1, of_module(r, "layer22", "torch.nn.Conv2d", 0));
    cfx_qrules_free(r);
}

TEST(functions_and_methods_are_told_apart)
{
    cfx_error err = {0};
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    const cfx_qconfig block = config(7), row = config(8);
    REQUIRE(fill(r, &err) == CFX_OK);
    CHECK_INT_EQ(5, of_function(r, "", NULL, "torch.nn.functional.relu", 0));
    CHECK_INT_EQ(0, of_function(r, "", NULL, "torch.relu", 0));
    CHECK_INT_EQ(0, of_function(r, "", NULL, "torch.sigmoid", 0));
    const cfxi_quantize_call method = {.op = CFX_OP_CALL_METHOD, .type = "sigmoid", .path = ""};
    CHECK_INT_EQ(6, found(r, method));
    /* the class around it says more than the function */
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "my.Block", &block, &err));
    CHECK_INT_EQ(7, of_function(r, "block", "my.Block", "torch.nn.functional.relu", 0));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "cfx.ops.sigmoid", &row, &err));
    CHECK_INT_EQ(8, of_function(r, "", NULL, "torch.sigmoid", 0));
    CHECK_INT_EQ(8, of_module(r, "act", "torch.nn.Sigmoid", 0));
    CHECK_INT_EQ(6, found(r, method));
    CHECK_INT_EQ(0, of_function(r, "", NULL, NULL, 0));
    cfx_qrules_free(r);
}

TEST(a_later_rule_replaces_an_earlier_one)
{
    cfx_error err = {0};
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    const cfx_qconfig a = config(1), b = config(2);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_regex(r, "f.", &a, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_regex(r, "fc", &b, &err));
    CHECK_INT_EQ(1, of_module(r, "fc", NULL, 0));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_regex(r, "f.", NULL, &err));
    CHECK_INT_EQ(-1, of_module(r, "fc", NULL, 0));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "nn.Linear", &a, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "torch.nn.Linear", &b, &err));
    CHECK_INT_EQ(2, of_module(r, "x", "nn.Linear", 0));
    cfx_qrules_free(r);
}

TEST(expressions_that_libc_does_not_take)
{
    cfx_error err = {0};
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    char deep[200];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    CHECK_INT_EQ(CFX_E_SYNTAX, cfx_qrules_set_regex(r, "a[", NULL, &err));
    CHECK_STR_EQ("'a[' is not a regular expression of POSIX", strtok(err.message, ":"));
    CHECK_INT_EQ(CFX_E_SYNTAX, cfx_qrules_set_regex(r, "(a)\\1", NULL, &err));
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_qrules_set_regex(r, deep, NULL, &err));
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_qrules_set_regex(r, "((a{100}){100})", NULL, &err));
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_qrules_set_regex(r, "a{99999999999999999999}", NULL, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_regex(r, "a{2,500}\\{9999\\}", NULL, &err));
    err.status = CFX_OK;
    CHECK_INT_EQ(CFX_E_VALUE, cfx_qrules_set_regex(r, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_qrules_set_type(r, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_qrules_set_order(r, "a", NULL, 0, NULL, &err));
    cfx_qrules_free(r);
    cfx_qrules_free(NULL);
}

static cfx_status by_length(void *ctx, const char *regex, const char *name, bool *matches,
                            cfx_error *err)
{
    ++*(int *)ctx;
    *matches = strlen(regex) == strlen(name);
    return name[0] == '!' ? cfx_error_set(err, CFX_E_HOST, "it failed") : CFX_OK;
}

TEST(a_matcher_of_the_host)
{
    cfx_error err = {0};
    int calls = 0;
    const cfx_qconfig c = config(3), *none = &c;
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_matcher(r, by_length, &calls, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_regex(r, "(?!", &c, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_qrules_set_matcher(r, NULL, NULL, &err));
    CHECK_INT_EQ(3, of_module(r, "abc", NULL, 0));
    CHECK_INT_EQ(-1, of_module(r, "abcd", NULL, 0));
    const cfxi_quantize_call bad = {.op = CFX_OP_CALL_MODULE, .path = "!"};
    err.status = CFX_OK;
    CHECK_INT_EQ(CFX_E_HOST, cfxi_quantize_rules_find(r, &bad, &none, &err));
    CHECK(none == NULL);
    CHECK_STR_EQ("it failed", err.message);
    CHECK_INT_EQ(3, calls);
    cfx_qrules_free(r);
}

TEST(nodes_are_looked_up_with_their_place)
{
    cfx_error err = {0};
    fake_tree tree = {0};
    fake_module(&tree, "a.fc", "torch.nn.Linear", NULL);
    fake_module(&tree, "a.fc2", "torch.nn.Linear", NULL);
    fake_module(&tree, "a", "my.Block", NULL);
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = NULL;
    const char *text = "graph():\n"
                       "  %x = placeholder[target=x]()\n"
                       "  %w = get_attr[target=a.weight]()\n"
                       "  %fc = call_module[target=a.fc](%x)\n"
                       "  %fc2 = call_module[target=a.fc2](%fc)\n"
                       "  %r = call_function[target=torch.relu](%fc2)\n"
                       "  %s = call_method[target=sigmoid](%r)\n"
                       "  output(%s)\n";
    g = cfx_graph_parse(text, strlen(text), NULL, NULL, &err);
    REQUIRE(g != NULL);
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    const cfx_qconfig one = config(1), two = config(2), three = config(3), four = config(4);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_order(r, "a", "nn.Linear", 1, &one, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "torch.relu", &two, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "sigmoid", &three, &err));
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_type(r, "my.Block", &four, &err));
    cfxi_quantize_order order = cfxi_quantize_order_new(NULL);
    const int want[] = {-1, 4, -1, 1, 2, 3, -1};
    size_t i = 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), i++) {
        const cfx_qconfig *c = NULL;
        CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_node(r, n, NULL, &modules, &order, &c, &err));
        CHECK_INT_EQ(want[i], c ? (char *)c->host - marks : -1);
    }
    CHECK_INT_EQ(7, i);
    cfxi_quantize_order_free(&order);
    cfx_qrules_free(r);
    cfx_graph_release(g);
}

TEST(a_call_inside_of_a_module_has_its_path)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, &err);
    cfx_node *x = cfx_graph_placeholder(g, "x", &err);
    const cfx_value arg = cfx_value_node(x);
    cfx_node *relu = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0, &err);
    REQUIRE(relu != NULL);
    const uint32_t stack = cfx_graph_intern_stack(g, 0, "layers.0@1", "my.Block", NULL, &err);
    cfx_node_set_module_stack(relu, stack);
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    const cfx_qconfig one = config(1), two = config(2);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_name(r, "layers.0", &one, &err));
    cfxi_quantize_order order = cfxi_quantize_order_new(NULL);
    const cfx_qconfig *c = NULL;
    CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_node(r, relu, NULL, NULL, &order, &c, &err));
    CHECK(c && c->host == one.host);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_order(r, "layers.0", "torch.relu", 1, &two, &err));
    CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_node(r, relu, NULL, NULL, &order, &c, &err));
    CHECK(c && c->host == two.host);
    cfxi_quantize_order_free(&order);
    cfx_qrules_free(r);
    cfx_graph_release(g);
}

TEST(the_rule_of_a_type_alone)
{
    cfx_error err = {0};
    cfx_qrules *r = cfx_qrules_new(NULL, &err);
    const cfx_qconfig *c = NULL;
    bool has = true;
    REQUIRE(fill(r, &err) == CFX_OK);
    CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_of_type(r, "nn.Linear", &has, &c, &err));
    CHECK(!has && !c);
    CHECK_INT_EQ(CFX_OK, cfxi_quantize_rules_of_type(r, "nn.Conv2d", &has, &c, &err));
    CHECK(has && c && c->host == &marks[1]);
    cfx_qrules_free(r);
}

static cfx_status all_of_it(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const cfx_qconfig *c = NULL;
    (void)arg;
    cfx_qrules *r = cfx_qrules_new(a, &err);
    if (!r)
        return err.status;
    cfxi_quantize_order order = cfxi_quantize_order_new(a);
    cfxi_quantize_call call = {.op = CFX_OP_CALL_MODULE, .type = "nn.Conv2d", .path = "a.b.c"};
    cfx_status status = fill(r, &err);
    status = status ? status : cfxi_quantize_order_count(&order, &call, &err);
    status = status ? status : cfxi_quantize_rules_find(r, &call, &c, &err);
    cfxi_quantize_order_free(&order);
    cfx_qrules_free(r);
    return status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(all_of_it, NULL) > 20); }
