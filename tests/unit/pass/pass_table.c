/* pass_table.c - the table of passes: running one with options by name. */
#include "check.h"
#include "pass/pass_kept_impl.h"

#include <cfx/embed/pass.h>
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
    CHECK_STR_EQ("the option like_torch_fx of the pass dce is a flag; it must be 0 or 1",
                 err.message);
    CHECK_INT_EQ(CFX_E_KEY, run("cse", &(cfx_pass_setting){"x", 0}, 1, &changed, NULL));
    CHECK(!changed);
    CHECK(cfx_pass_run_with(NULL, NULL, NULL, NULL, 0, NULL, &err) != CFX_OK);
}

TEST(words_of_flags)
{
    char words[CFX_PASS_WORDS_SIZE];
    CHECK_STR_EQ("nothing", cfx_pass_needs_words(0, words));
    CHECK_STR_EQ("nothing", cfx_pass_keeps_words(0, words));
    CHECK_STR_EQ("a graph that lint accepts; the modules",
                 cfx_pass_needs_words(CFX_PASS_NEEDS_MODULES | CFX_PASS_NEEDS_LINTED, words));
    const unsigned some = CFX_PASS_KEEPS_NAMES | CFX_PASS_KEEPS_ORDER | CFX_PASS_KEEPS_LOCATIONS;
    CHECK_STR_EQ("names, order and locations of the nodes that stay",
                 cfx_pass_keeps_words(some, words));
    CHECK_STR_EQ("names of all nodes; the inputs and the output",
                 cfx_pass_keeps_words(CFX_PASS_KEEPS_NAMES | CFX_PASS_KEEPS_NODES |
                                      CFX_PASS_KEEPS_INPUTS, words));
    CHECK_STR_EQ("every node", cfx_pass_keeps_words(CFX_PASS_KEEPS_NODES, words));
    CHECK_STR_EQ("ORDERED", cfx_pass_need_name(CFX_PASS_NEED_BIT_ORDERED));
    CHECK(!cfx_pass_need_name(CFX_PASS_NEED_COUNT) && !cfx_pass_keep_name(CFX_PASS_KEEP_COUNT));
    for (size_t i = 0; cfx_pass_get(i); i++)  /* none is cut */
        CHECK(strlen(cfx_pass_keeps_words(cfx_pass_get(i)->keeps, words)) < sizeof words - 1);
}

/* Swaps the first two nodes and renames one. */
static cfx_status meddle(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                         bool *changed, cfx_error *err)
{
    (void)modules, (void)opts, (void)changed;
    cfx_node *first = cfx_graph_first(g);
    cfx_node *second = cfx_node_next(first);
    CHECK_INT_EQ(CFX_OK, cfx_node_prepend(first, second, err));
    return cfx_node_set_name(second, "other", 5, err);
}

TEST(what_a_pass_keeps_is_checked)
{
    static const struct {
        unsigned keeps;
        const char *message;
    } cases[] = {
        {CFX_PASS_KEEPS_LOCATIONS | CFX_PASS_KEEPS_NODES | CFX_PASS_KEEPS_TYPES, ""},
        {CFX_PASS_KEEPS_ORDER,
         "the pass meddle did not keep the order, as its row in pass.def says (node %y)"},
        {CFX_PASS_KEEPS_NAMES,
         "the pass meddle did not keep names, as its row in pass.def says (node %y)"},
    };
    const char text[] = "graph(): %x = placeholder[target=x]() %y = placeholder[target=y]()"
                        " output((%x, %y))";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cfx_pass pass = {"meddle", "", 0, cases[i].keeps, meddle};
        cfx_error err = {.status = CFX_OK};
        cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, NULL);
        cfxi_pass_run_checked(&pass, g, NULL, NULL, NULL, &err);
        CHECK_STR_EQ(cases[i].message, err.message);
        cfx_graph_release(g);
    }
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
    CHECK_INT_EQ(19, n);
    CHECK(!cfx_pass_get_option(NULL, 0));
}

TEST(lists_of_passes)
{
    const char *list = " cse, unroll=4 ,dce:like_torch_fx,unroll:max_nodes=9:max_turns=2";
    const char *const names[] = {"cse", "unroll", "dce", "unroll"};
    const size_t settings[] = {0, 1, 1, 2};
    cfx_pass_step step;
    cfx_error err = {0};
    for (size_t i = 0; i < 4; i++) {
        REQUIRE(cfx_pass_list_next(&list, &step, &err) == CFX_OK);
        CHECK_STR_EQ(names[i], step.pass->name);
        CHECK_INT_EQ((int64_t)settings[i], (int64_t)step.n);
    }
    CHECK_STR_EQ("", list);
    CHECK_INT_EQ(2, (int64_t)step.settings[1].value);
}

static void check_list(const char *list, cfx_status status, const char *message)
{
    cfx_pass_step step;
    cfx_error err = {0};
    CHECK_INT_EQ(status, cfx_pass_list_next(&list, &step, &err));
    CHECK_STR_EQ(message, err.message);
}

TEST(mistakes_in_lists_of_passes)
{
    char longer[300];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    check_list("", CFX_E_KEY, "there is no pass ''");
    check_list("cse,", CFX_E_SYNTAX, "the list of passes ends with a comma");
    check_list("cse , ", CFX_E_SYNTAX, "the list of passes ends with a comma");
    check_list("cze", CFX_E_KEY, "there is no pass 'cze'; did you mean cse?");
    check_list("fuse_bn=1", CFX_E_KEY, "the pass fuse_bn has no options");
    check_list("unroll:=1", CFX_E_KEY, "the pass unroll has no option ''; it has max_turns, "
                                       "max_nodes, strict");
    check_list("unroll=", CFX_E_VALUE, "the option max_turns of the pass unroll is a number, "
                                       "not ''");
    check_list("unroll=-1", CFX_E_VALUE, "the option max_turns of the pass unroll is a number, "
                                         "not '-1'");
    check_list("unroll=99999999999999999999999", CFX_E_VALUE,
               "the option max_turns of the pass unroll is a number, not "
               "'99999999999999999999999'");
    check_list("unroll=1:max_turns=1:max_turns=1:max_turns=1:max_turns=1:max_turns=1:max_turns=1:"
               "max_turns=1:max_turns=1", CFX_E_LIMIT, "more than 8 options for the pass unroll");
    check_list(longer, CFX_E_LIMIT, "a pass with its options has at most 200 characters");
}
