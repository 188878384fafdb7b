/* relayout.c - tests of src/pass/relayout.c. */
#include "check.h"
#include "test_alloc.h"
#include "text_tools.h"

#include <cfx/embed/pass.h>
#include <cfx/pass.h>

static const char text[] =
    "graph(): %x = placeholder[target=x]() %c = call_module[target=c](%x) "
    "%r = call_function[target=good](%c) %t = call_function[target=bad](%r) "
    "%s = call_function[target=good](%t, %t) %a = call_function[target=maybe](%t, %s) "
    "%b = call_function[target=maybe](%t, %x) output((%r, %a, %b))";

typedef struct choice {
    int parts, refuse, fail, nodes, starts, ends;
    bool edited;
} choice;

static int supports(void *ctx, cfx_node *n)
{
    const char *name = cfx_node_target(n, NULL, NULL);
    choice *c = ctx;
    if (c->fail > 1)
        return -1;
    return strcmp(name, "bad") == 0 ? 0 : strcmp(name, "maybe") == 0 ? 2 : 1;
}

static int choose(void *ctx, const cfx_layout_part *part)
{
    choice *c = ctx;
    c->parts++;
    c->nodes += (int)part->n_nodes;
    c->starts += (int)part->n_starts;
    c->ends += (int)part->n_ends;
    c->edited = cfx_graph_erase(cfx_node_graph(part->nodes[0]), part->nodes[0], NULL) == CFX_OK;
    return c->fail ? -1 : c->parts != c->refuse;
}

static cfx_status run(cfx_graph *g, choice *c, bool *changed, cfx_error *err)
{
    const cfx_relayout_options how = {"enter", "leave", supports, choose, c};
    return cfx_graph_relayout(g, &how, changed, err);
}

static cfx_graph *parse(const char *source)
{
    return cfx_graph_parse(source, strlen(source), NULL, NULL, NULL);
}

TEST(conversions_stand_at_the_ends_of_parts)
{
    choice c = {0};
    bool changed = false;
    cfx_graph *g = parse(text);
    CHECK_INT_EQ(CFX_OK, run(g, &c, &changed, NULL));
    CHECK(changed && !c.edited);
    CHECK_INT_EQ(2, c.parts);
    CHECK_STR_EQ("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %enter = call_method[target=enter](%x)\n"
                 "  %c = call_module[target=c](%enter)\n"
                 "  %r = call_function[target=good](%c)\n"
                 "  %leave = call_method[target=leave](%r)\n"
                 "  %t = call_function[target=bad](%leave)\n"
                 "  %enter_1 = call_method[target=enter](%t)\n"
                 "  %s = call_function[target=good](%enter_1, %enter_1)\n"
                 "  %enter_2 = call_method[target=enter](%t)\n"
                 "  %a = call_function[target=maybe](%enter_2, %s)\n"
                 "  %leave_1 = call_method[target=leave](%a)\n"
                 "  %b = call_function[target=maybe](%t, %x)\n"
                 "  output((%leave, %leave_1, %b))\n", text_of(g));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(parts_that_are_not_chosen_are_as_before)
{
    choice c = {.refuse = 2};
    cfx_graph *g = parse(text);
    CHECK_INT_EQ(CFX_OK, run(g, &c, NULL, NULL));
    CHECK_INT_EQ(4, c.nodes);
    CHECK_INT_EQ(3, c.starts);
    CHECK_INT_EQ(2, c.ends);
    CHECK(strstr(text_of(g), "%s = call_function[target=good](%t, %t)"));
    CHECK(strstr(text_of(g), "output((%leave, %a, %b))"));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(failures_leave_the_graph_as_it_was)
{
    for (int fail = 1; fail <= 2; fail++) {
        choice c = {.fail = fail};
        cfx_error err = {.status = CFX_OK};
        cfx_graph *g = parse("graph(): %x = placeholder[target=x]() %r = call_function[target=good]"
                             "(%x) output(%r)");
        CHECK_INT_EQ(CFX_E_HOST, run(g, &c, NULL, &err));
        CHECK_INT_EQ(CFX_E_HOST, err.status);
        CHECK_INT_EQ(3, cfx_graph_size(g));
        cfx_graph_release(g);
    }
}

/* A module has one layout only. */
TEST(calls_of_one_module_are_one_part)
{
    choice c = {0};
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() %a = call_module[target=m](%x) "
                         "%t = call_function[target=bad](%a) %b = call_module[target=m](%t) "
                         "output(%b)");
    CHECK_INT_EQ(CFX_OK, run(g, &c, NULL, NULL));
    CHECK_INT_EQ(1, c.parts);
    CHECK_INT_EQ(2, c.ends);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    choice c = {.refuse = 1};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, &err);
    (void)arg;
    if (g) {
        run(g, &c, NULL, &err);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 8);
}
