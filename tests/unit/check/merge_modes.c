/* merge_modes.c - tests of src/check: one graph from two that differ in the modes of modules. */
#include "check.h"
#include "test_alloc.h"
#include "text_tools.h"

#include <cfx/embed/check.h>
#include <string.h>

static cfx_graph *parsed(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static const char *const paths[] = {"", "inner"};

/* Merges two graphs of modules "" and "inner": flags has a row for each setting. */
static bool merge(cfx_graph *a, cfx_graph *b, const bool *flags, size_t n_settings)
{
    const cfx_mode_table modes = {paths, 2, flags, n_settings};
    bool good = false;
    cfx_error err = {.status = CFX_OK};
    if (!CHECK_INT_EQ(CFX_OK, cfx_graph_merge_modes(a, b, &modes, &good, &err)))
        printf("    %s\n", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(a, NULL, NULL, &err));
    return good;
}

#define BODY(call) "graph():\n  %x = placeholder[target=x]()\n" call "  output(%y)\n"
#define DROP(p, flag) "  %y = call_function[target=F.dropout](%x, " p ", training=" flag ")\n"

static const char *merged(const char *one, const char *two, const bool *flags, size_t n_settings)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *a = parsed(one, NULL, &err);
    cfx_graph *b = parsed(two, NULL, &err);
    const char *before = a ? text_of(a) : "";
    if (!CHECK(a && b))
        printf("    %s\n", err.message);
    const bool good = a && b && merge(a, b, flags, n_settings);
    const char *text = a ? text_of(a) : "";
    if (!good)
        CHECK_STR_EQ(before, text);
    cfx_graph_release(a);
    cfx_graph_release(b);
    return good ? text : "two graphs";
}

static const bool both[] = {true, true, false, false};

TEST(a_bool_that_differs_is_a_flag)
{
    CHECK_STR_EQ(BODY("  %training = get_attr[target=training]()\n" DROP("0.5", "%training")),
                 merged(BODY(DROP("0.5", "True")), BODY(DROP("0.5", "False")), both, 2));
    CHECK_STR_EQ(BODY("  %training = get_attr[target=training]()\n"
                      "  %not_ = call_function[target=operator.not_](%training)\n"
                      DROP("0.5", "%not_")),
                 merged(BODY(DROP("0.5", "False")), BODY(DROP("0.5", "True")), both, 2));
}

TEST(graphs_that_are_equal_need_no_flag)
{
    CHECK_STR_EQ(BODY(DROP("0.5", "True")),
                 merged(BODY(DROP("0.5", "True")), BODY(DROP("0.5", "True")), both, 2));
}

TEST(a_number_that_differs_is_a_branch)
{
    const char *text = merged(BODY("  %y = call_method[target=f](%x, [0.5, 1], p=2)\n"),
                              BODY("  %y = call_method[target=f](%x, [0.0, 1], p=3)\n"), both, 2);
    CHECK(strstr(text, "%cond = call_function[target=cfx.cond](%training, graph") != NULL);
    CHECK(strstr(text, "%p = call_function[target=cfx.cond](%training, graph") != NULL);
    CHECK(strstr(text, "call_method[target=f](%x, [%cond, 1], p=%p)") != NULL);
    CHECK(strstr(text, "output(0.5)") && strstr(text, "output(0.0)") && strstr(text, "output(3)"));
}

TEST(a_third_setting_tells_whose_flag_it_is)
{
    const bool flags[] = {true, true, false, false, true, false};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *a = parsed(BODY(DROP("0.5", "True")), NULL, &err);
    cfx_graph *off = parsed(BODY(DROP("0.25", "False")), NULL, &err);
    cfx_graph *mixed = parsed(BODY(DROP("0.5", "False")), NULL, &err);
    CHECK(merge(a, off, flags, 2) && merge(a, mixed, flags, 3));
    const char *text = text_of(a);
    CHECK(strstr(text, "get_attr[target=inner.training]()") != NULL);
    CHECK(strstr(text, "training=%inner_training") != NULL);
    CHECK(strstr(text, "cfx.cond](%training, ") != NULL);  /* of p */
    CHECK_INT_EQ(6, cfx_graph_size(a));
    CHECK(merge(a, mixed, flags, 3) && strcmp(text, text_of(a)) == 0);  /* known already */
    cfx_graph_release(a);
    cfx_graph_release(off);
    cfx_graph_release(mixed);
}

TEST(what_no_flag_tells_apart_stays)
{
    const bool flags[] = {true, true, false, false, true, false};
    const bool same[] = {true, false, true, false};
    cfx_error err = {.status = CFX_OK};
    CHECK_STR_EQ("two graphs",
                 merged(BODY(DROP("1", "True")), BODY(DROP("2", "True")), same, 2));
    cfx_graph *a = parsed(BODY(DROP("1", "True")), NULL, &err);
    cfx_graph *mixed = parsed(BODY(DROP("3", "True")), NULL, &err);
    CHECK(merge(a, a, flags, 2) && !merge(a, mixed, (const bool[]){1, 1, 0, 0, 0, 0}, 3));
    CHECK(merge(a, mixed, flags, 3) == false);  /* inner is off in the second setting as well */
    cfx_graph_release(a);
    cfx_graph_release(mixed);
}

TEST(other_differences_stay_two_graphs)
{
    const char *base = BODY(DROP("0.5", "True"));
    const char *const others[] = {
        BODY("  %y = call_function[target=F.alpha_dropout](%x, 0.5, training=True)\n"),
        BODY("  %y = call_method[target=F.dropout](%x, 0.5, training=True)\n"),
        BODY("  %y = call_function[target=F.dropout](%x, 0.5, inplace=True)\n"),
        BODY("  %y = call_function[target=F.dropout](%x, 0.5, 1, training=True)\n"),
        BODY("  %y = call_function[target=F.dropout](%x, \"half\", training=True)\n"),
        BODY("  %y = call_function[target=F.dropout](%x, None, training=True)\n"),
        BODY("  %y = call_function[target=F.dropout](%x, [0.5], training=True)\n"),
        BODY("  %z = call_function[target=torch.relu](%x)\n" DROP("0.5", "True")),
        "graph():\n  %x = placeholder[target=x]()\n" DROP("0.5", "True") "  output(%x)\n",
        "graph():\n  %x = placeholder[target=x]()\n" DROP("0.5", "True") "  output(1)\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_STR_EQ("two graphs", merged(base, others[i], both, 2));
        CHECK_STR_EQ("two graphs", merged(others[i], base, both, 2));
    }
    const char *set = BODY("  %m = get_attr[target=inner]()\n"
                           "  %s = call_function[target=builtins.setattr](%m, \"training\", True)\n"
                           DROP("0.5", "True"));
    CHECK_STR_EQ("two graphs", merged(set, set, both, 2));
}

TEST(one_setting_is_too_few)
{
    cfx_error err = {.status = CFX_OK};
    bool good = true;
    cfx_graph *a = parsed(BODY(DROP("0.5", "True")), NULL, &err);
    const cfx_mode_table modes = {paths, 2, both, 1};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_merge_modes(a, a, &modes, &good, &err));
    CHECK(!good);
    cfx_graph_release(a);
}

static cfx_status merge_all(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    bool good = false;
    const cfx_mode_table modes = {paths, 2, both, 2};
    (void)arg;
    cfx_graph *one = parsed(BODY(DROP("[1, 0.5]", "False")), a, &err);
    cfx_graph *two = one ? parsed(BODY(DROP("[1, 0.25]", "True")), a, &err) : NULL;
    if (two && cfx_graph_merge_modes(one, two, &modes, &good, &err) == CFX_OK)
        CHECK(good);
    cfx_graph_release(one);
    cfx_graph_release(two);
    return err.status;
}

TEST(merging_runs_out_of_memory)
{
    CHECK(test_oom_sweep(merge_all, NULL) > 1);
}
