/* pass_table.c - the table of passes: running one with options by name. */
#include "check.h"

#include <cfx/pass.h>

static const char loop[] =
    "graph(): %x = placeholder[target=x]() %l = call_function[target=cfx.for_loop](5, graph {"
    " %i = placeholder[target=i]() %a = placeholder[target=a]()"
    " %add = call_function[target=operator.add](%a, %i) output((%add,)) }, (%x,))"
    " %r = call_function[target=operator.getitem](%l, 0) output(%r)";

static cfx_status run(const char *pass, const cfx_pass_setting *settings, size_t n, bool *changed,
                      cfx_error *err)
{
    cfx_graph *g = cfx_graph_parse(loop, sizeof loop - 1, NULL, NULL, NULL);
    *changed = false;
    const cfx_status status = cfx_pass_run_with(cfx_pass_find(pass), g, NULL, settings, n, changed,
                                                err);
    cfx_graph_release(g);
    return status;
}

TEST(options_by_name)
{
    bool changed;
    CHECK_INT_EQ(CFX_OK, run("unroll", NULL, 0, &changed, NULL));
    CHECK(changed);
    CHECK_INT_EQ(CFX_OK, run("unroll", &(cfx_pass_setting){"max_turns", 4}, 1, &changed, NULL));
    CHECK(!changed);
    CHECK_INT_EQ(CFX_OK, run("unroll", &(cfx_pass_setting){"max_turns", 5}, 1, &changed, NULL));
    CHECK(changed);
    const cfx_pass_setting both[] = {{"max_turns", UINT64_MAX}, {"max_nodes", 2}};
    CHECK_INT_EQ(CFX_OK, run("unroll", both, 2, &changed, NULL));
    CHECK(!changed);
}

TEST(wrong_options)
{
    bool changed;
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_KEY, run("unroll", &(cfx_pass_setting){"limit", 4}, 1, &changed, &err));
    CHECK_STR_EQ("the pass unroll has no option 'limit'", err.message);
    CHECK_INT_EQ(CFX_E_VALUE, run("dce", &(cfx_pass_setting){"like_torch_fx", 2}, 1, &changed,
                                  &err));
    CHECK_STR_EQ("the option like_torch_fx of the pass dce is a flag: 0 or 1", err.message);
    CHECK_INT_EQ(CFX_E_KEY, run("cse", &(cfx_pass_setting){"x", 0}, 1, &changed, NULL));
    CHECK(!changed);
    CHECK(cfx_pass_run_with(NULL, NULL, NULL, NULL, 0, NULL, &err) != CFX_OK);
}

TEST(every_option_is_of_a_pass)
{
    size_t n = 0;
    const cfx_pass_option *option;
    for (size_t i = 0; cfx_pass_get(i); i++)
        for (size_t k = 0; (option = cfx_pass_get_option(cfx_pass_get(i), k)) != NULL; k++, n++) {
            CHECK_STR_EQ(cfx_pass_get(i)->name, option->pass);
            CHECK(!option->is_flag || option->default_value < 2);
        }
    CHECK_INT_EQ(10, n);
    CHECK(!cfx_pass_get_option(NULL, 0));
}
