/* inline.c - tests of src/pass/inline.c. */
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

static const char outer[] =
    "graph(): %x = placeholder[target=x]() %block = call_module[target=block](%x) @ model.py:7 "
    "%neg = call_function[target=torch.neg](%block) output(%neg)";
static const char inner[] =
    "graph(): %a = placeholder[target=a]() %scale = placeholder[target=scale](2.0) "
    "%w = get_attr[target=w]() %fc = call_module[target=fc](%a) @ block.py:3 "
    "%mul = call_function[target=torch.mul](%fc, %w, %scale) output(%mul)";

TEST(nodes_of_the_module_take_the_place_of_the_call)
{
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = parse(outer, NULL, NULL);
    cfx_graph *sub = parse(inner, NULL, NULL);
    bool changed = false;
    fake_module(&tree, "block", "Block", sub);
    uint32_t scope = cfx_graph_intern_stack(g, 0, "block", "Block", NULL, NULL);
    cfx_node_set_module_stack(cfx_graph_find(g, "block"), scope);
    uint32_t inside = cfx_graph_intern_stack(sub, 0, "fc", "Linear", NULL, NULL);
    cfx_node_set_module_stack(cfx_graph_find(sub, "fc"), inside);
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("inline"), g, &modules, NULL, &changed, NULL));
    CHECK(changed);
    CHECK_STR_EQ("graph():\n"
                 "    %x : [num_users=1] = placeholder[target=x]\n"
                 "    %w : [num_users=1] = get_attr[target=block.w]\n"
                 "    %fc : [num_users=1] = call_module[target=block.fc](args = (%x,), "
                 "kwargs = {})\n"
                 "    %mul : [num_users=1] = call_function[target=torch.mul](args = (%fc, %w, "
                 "2.0), kwargs = {})\n"
                 "    %neg : [num_users=1] = call_function[target=torch.neg](args = (%mul,), "
                 "kwargs = {})\n"
                 "    return neg", printed(g));
    const cfx_node *fc = cfx_graph_find(g, "fc");
    CHECK_STR_EQ("block.py", cfx_node_file(fc));
    CHECK_STR_EQ("block.fc", cfx_graph_stack_path(g, cfx_node_module_stack(fc)));
    CHECK_INT_EQ(scope, cfx_graph_stack_outer(g, cfx_node_module_stack(fc)));
    CHECK_INT_EQ(scope, cfx_node_module_stack(cfx_graph_find(g, "mul")));
    CHECK_INT_EQ(6, cfx_graph_size(sub));
    cfx_graph_release(g);
    cfx_graph_release(sub);
}

TEST(modules_in_modules_and_in_regions)
{
    static const char top[] =
        "graph(): %x = placeholder[target=x]() %a = call_module[target=a](%x) %c = call_function"
        "[target=cfx.cond](%x, graph { %p = placeholder[target=p]() %q = call_module[target=a](%p) "
        "output(%q) }, graph { %p = placeholder[target=p]() output(%p) }, (%x,)) output((%a, %c))";
    static const char middle[] = "graph(): %y = placeholder[target=y]() %b = call_module[target=b]"
                                 "(y=%y) output(%b)";
    static const char leaf[] = "graph(): %y = placeholder[target=y]() %w = get_attr[target=w]() "
                               "output((%y, %w))";
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = parse(top, NULL, NULL);
    cfx_graph *a = parse(middle, NULL, NULL);
    cfx_graph *b = parse(leaf, NULL, NULL);
    fake_module(&tree, "a", "A", a);
    fake_module(&tree, "a.b", "B", b);
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("inline"), g, &modules, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK(strstr(text_of(g), "%w = get_attr[target=a.b.w]()\n"));
    CHECK(strstr(text_of(g), "    %w = get_attr[target=a.b.w]()\n"));
    CHECK(strstr(text_of(g), "output(((%x, %w), %c))"));
    CHECK(!strstr(text_of(g), "call_module"));
    cfx_graph_release(g);
    cfx_graph_release(a);
    cfx_graph_release(b);
}

TEST(items_of_a_tuple_are_taken)
{
    static const char top[] =
        "graph(): %x = placeholder[target=x]() %m = call_module[target=m](%x) "
        "%i = call_function[target=_operator.getitem](%m, 1) "
        "%j = call_function[target=_operator.getitem](%m, 7) output((%i, %j))";
    static const char pair[] = "graph(): %y = placeholder[target=y]() %f = call_function[target=f]"
                               "(%y) output((%y, %f))";
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *g = parse(top, NULL, NULL);
    cfx_graph *sub = parse(pair, NULL, NULL);
    fake_module(&tree, "m", "M", sub);
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("inline"), g, &modules, NULL, NULL, NULL));
    CHECK(strstr(printed(g), "return (f, j)"));
    CHECK(strstr(printed(g), "getitem](args = ((%x, %f), 7)"));
    cfx_graph_release(g);
    cfx_graph_release(sub);
}

/* What does not fit is left for Python to complain about. */
TEST(calls_that_do_not_fit_are_left_alone)
{
    static const char *const graphs[] = {
        "graph(): %a = placeholder[target=a]() %b = placeholder[target=b]() output(%a)",
        "graph(): %a = placeholder[target=*a]() output(%a)",
        "graph(): %f = call_function[target=f]() output(%f)",
        "graph(): %a = placeholder[target=a]()",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        fake_tree tree = {0};
        const cfx_module_tree modules = fake_modules(&tree);
        bool changed = true;
        cfx_graph *g = parse(outer, NULL, NULL);
        cfx_graph *sub = parse(graphs[i], NULL, NULL);
        fake_module(&tree, "block", "Block", sub);
        CHECK_INT_EQ(CFX_OK, cfxi_pass_inline(g, &modules, NULL, &changed, NULL));
        CHECK(!changed);
        CHECK_INT_EQ(CFX_OK, cfxi_pass_inline(g, NULL, NULL, &changed, NULL));
        cfx_graph_release(g);
        cfx_graph_release(sub);
    }
}

TEST(a_module_that_contains_itself_is_refused_before_a_change)
{
    static const char self[] = "graph(): %a = placeholder[target=a]() %b = call_module"
                               "[target=block](%a) @ block.py:9 output(%b)";
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(outer, NULL, NULL);
    cfx_graph *sub = parse(self, NULL, NULL);
    fake_module(&tree, "block", "Block", sub);
    fake_module(&tree, "block.block", "Block", sub);
    const uint64_t version = cfx_graph_version(g);
    CHECK_INT_EQ(CFX_E_LIMIT, cfxi_pass_inline(g, &modules, NULL, NULL, &err));
    CHECK_STR_EQ(
        "block.py:9: the module 'block.block' calls itself and cannot be inlined (node %b)",
        err.message);
    CHECK_INT_EQ(version, cfx_graph_version(g));
    cfx_graph_release(g);
    cfx_graph_release(sub);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    cfx_graph *sub = parse(inner, a, &err);
    cfx_graph *g = sub ? parse(outer, a, &err) : NULL;
    (void)arg;
    fake_module(&tree, "block", "Block", sub);
    if (g && cfx_graph_intern_stack(g, 0, "block", "Block", NULL, &err)) {
        cfx_node_set_module_stack(cfx_graph_find(g, "block"), 1);
        cfxi_pass_inline(g, &modules, NULL, NULL, &err);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    cfx_graph_release(sub);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}

TEST(a_long_chain_of_calls)
{
    enum { CALLS = 20000 };
    fake_tree tree = {0};
    const cfx_module_tree modules = fake_modules(&tree);
    cfx_graph *sub = parse("graph(): %a = placeholder[target=a]() %f = call_function[target=f](%a) "
                           "output(%f)", NULL, NULL);
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (int i = 0; i < CALLS; i++)
        x = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_MODULE, "m", &x, 1, NULL, 0, NULL));
    cfx_graph_output(g, x, NULL);
    fake_module(&tree, "m", "M", sub);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_inline(g, &modules, NULL, NULL, NULL));
    CHECK_INT_EQ(CALLS + 2, cfx_graph_size(g));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    cfx_graph_release(sub);
}
