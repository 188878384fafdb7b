/* infer.c - types and shapes through graphs: symbols, branches, loops; and their text. */
#include <cfx/cfx.h>

#include "check.h"
#include "test_alloc.h"

typedef struct job {
    cfx_dims *dims;
    cfx_buffer text;
} job;

static cfx_status note(void *ctx, const char *node, cfx_datum result)
{
    job *j = ctx;
    cfx_buffer_append(&j->text, node, strlen(node));
    cfx_buffer_append(&j->text, " ", 1);
    cfx_datum_print(result, j->dims, cfx_buffer_sink(&j->text), NULL);
    return cfx_buffer_append(&j->text, "\n", 1);
}

/* What each node gives, and the assumptions; or the message. */
static const char *inferred(const char *graph, const char *const *inputs)
{
    static char out[4000];
    cfx_error err = {0};
    job j = {.dims = cfx_dims_new(NULL, &err)};
    cfx_datum args[8];
    size_t n = 0;
    cfx_buffer_init(&j.text, NULL);
    for (; inputs[n]; n++)
        args[n] = cfx_datum_parse(j.dims, inputs[n], strlen(inputs[n]), NULL, &err);
    cfx_graph *g = cfx_graph_parse(graph, strlen(graph), NULL, NULL, &err);
    cfx_program *p = g ? cfx_program_new(g, NULL, NULL, &err) : NULL;
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    if (p) {
        cfx_datum result = cfx_program_infer(p, rt, j.dims, args, n, note, &j, &err);
        if (result.kind != CFX_DATUM_INVALID)
            cfx_dims_print_assumptions(j.dims, cfx_buffer_sink(&j.text), NULL, &err);
        cfx_datum_release(result);
    }
    snprintf(out, sizeof out, "%s", err.status ? err.message : j.text.data);
    while (n > 0)
        cfx_datum_release(args[--n]);
    cfx_runtime_free(rt);
    cfx_program_free(p);
    cfx_graph_release(g);
    cfx_buffer_free(&j.text);
    cfx_dims_free(j.dims);
    return out;
}

TEST(symbols_flow)
{
    static const char *const inputs[] = {"float32[N, 3]", "[M, 3]", NULL};
    CHECK_STR_EQ("x float32[N, 3]\ny float32[M, 3]\na float32[N, 3]\nn 3*N\nN == M\n",
                 inferred("graph():\n"
                          "  %x = placeholder[target=x]()\n"
                          "  %y = placeholder[target=y]()\n"
                          "  %a = call_function[target=cfx.ops.add](%x, %y)\n"
                          "  %n = call_function[target=cfx.ops.numel](%a)\n"
                          "  output(%n)\n", inputs));
}

TEST(slices_count_from_either_end)
{
    static const char *const inputs[] = {"float32[N]", "K", NULL};
    CHECK_STR_EQ("x float32[N]\nk K\na float32[min(N, K)]\nm -K\nb float32[N - max(N - K, 0)]\n"
                 "s int64[]\ni u0\nc float32[u1]\n",
        inferred("graph():\n"
                 "  %x = placeholder[target=x]()\n"
                 "  %k = placeholder[target=k]()\n"
                 "  %a = call_function[target=cfx.ops.getitem](%x, slice(None, %k, None))\n"
                 "  %m = call_function[target=cfx.ops.neg](%k)\n"
                 "  %b = call_function[target=cfx.ops.getitem](%x, slice(%m, None, None))\n"
                 "  %s = call_function[target=cfx.ops.argmin](%x)\n"
                 "  %i = call_function[target=cfx.ops.item](%s)\n"
                 "  %c = call_function[target=cfx.ops.getitem](%x, slice(None, %i, None))\n"
                 "  output(%c)\n", inputs));
}

TEST(branches_are_joined)
{
    static const char *const inputs[] = {"bool[]", "float32[N, 3]", NULL};
    const char *text = inferred(
        "graph():\n"
        "  %p = placeholder[target=p]()\n"
        "  %x = placeholder[target=x]()\n"
        "  %c = call_function[target=cfx.ops.cond](%p, graph {\n"
        "    %a = placeholder[target=a]()\n"
        "    %r = call_function[target=cfx.ops.relu](%a)\n"
        "    output(%r)\n"
        "  }, graph {\n"
        "    %a = placeholder[target=a]()\n"
        "    %s = call_function[target=cfx.ops.cat]([%a, %a])\n"
        "    output(%s)\n"
        "  }, [%x])\n"
        "  output(%c)\n", inputs);
    CHECK_STR_EQ("p bool[]\nx float32[N, 3]\nc/a float32[N, 3]\nc/r float32[N, 3]\n"
                 "c/a float32[N, 3]\nc/s float32[2*N, 3]\nc float32[u0, 3]\n", text);
}

/* Unless it is known which way is taken. */
TEST(branches_that_do_not_fit)
{
    static const char *const predicates[] = {"bool[]", "True", "0"};
    static const char *const results[] = {"one path returns float32[N, 3], another bool[N, 3]",
                                          "\nc float32[N, 3]\n", "\nc bool[N, 3]\n"};
    for (size_t i = 0; i < 3; i++) {
        const char *const inputs[] = {predicates[i], "float32[N, 3]", NULL};
        const char *text = inferred(
            "graph():\n"
            "  %p = placeholder[target=p]()\n"
            "  %x = placeholder[target=x]()\n"
            "  %c = call_function[target=cfx.ops.cond](%p, graph {\n"
            "    %a = placeholder[target=a]()\n"
            "    output(%a)\n"
            "  }, graph {\n"
            "    %a = placeholder[target=a]()\n"
            "    %s = call_function[target=cfx.ops.eq](%a, %a)\n"
            "    output(%s)\n"
            "  }, [%x])\n"
            "  output(%c)\n", inputs);
        if (!CHECK(strstr(text, results[i]) != NULL))
            printf("    %s\n", text);
    }
}

static const char *of_loop(const char *loop, const char *count)
{
    char text[2000];
    const char *const inputs[] = {"float32[N]", "[M]", "[K]", count, NULL};
    snprintf(text, sizeof text, "graph():\n"
             "  %%x = placeholder[target=x]()\n  %%y = placeholder[target=y]()\n"
             "  %%z = placeholder[target=z]()\n  %%n = placeholder[target=n]()\n"
             "  %%l = call_function[target=cfx.ops.%s\n  output(%%l)\n", loop);
    const char *all = inferred(text, inputs);
    const char *last = strstr(all, "\nl ");
    return last ? last + 1 : all;
}

/* What changes from turn to turn is not known, unless it is known how many there are. */
TEST(loops_of_known_counts)
{
    static const char loop[] =
        "for_loop](%n, graph { %i = placeholder[target=i]() %a = placeholder[target=a]() "
        "%b = placeholder[target=b]() %c = placeholder[target=c]() %d = placeholder[target=d]() "
        "%s = call_function[target=cfx.ops.cat]([%a, %c]) output((%s, %a, %c, %b)) }, "
        "[%x, %x, %z, %x])";
    CHECK_STR_EQ("l (float32[u1], float32[u2], float32[K], float32[u3])\n", of_loop(loop, "C"));
    CHECK_STR_EQ("l (float32[N + 4*K], float32[N + 3*K], float32[K], float32[N + 2*K])\n",
                 of_loop(loop, "4"));
    CHECK_STR_EQ("l (float32[N], float32[N], float32[K], float32[N])\n", of_loop(loop, "0"));
    CHECK_STR_EQ("l (float32[N], float32[N], float32[K], float32[N])\n", of_loop(loop, "-3"));
    CHECK(strstr(of_loop(loop, "17"), "float32[u") != NULL);
}

/* A state may become a tensor, if it is known when. */
TEST(state_that_changes_its_type)
{
    static const char loop[] =
        "for_loop](%n, graph { %i = placeholder[target=i]() %a = placeholder[target=a]() "
        "%z = placeholder[target=z]() %s = call_function[target=cfx.ops.add](%a, %z) "
        "output((%s, %z)) }, (0, %z))";
    CHECK_STR_EQ("l (float32[K], float32[K])\n", of_loop(loop, "3"));
    CHECK(strstr(of_loop(loop, "C"), "one path returns int, another float32[K]") != NULL);
}

/* A float that becomes unknown in the first turn makes an integer unknown in the second. */
TEST(numbers_reach_a_fixed_point)
{
    static const char loop[] =
        "for_loop](%n, graph { %i = placeholder[target=i]() %f = placeholder[target=f]() "
        "%k = placeholder[target=k]() %b = placeholder[target=b]() "
        "%g = call_function[target=cfx.ops.add](%f, 1.0) "
        "%h = call_function[target=cfx.ops.lt](%f, 0.5) "
        "%m = call_function[target=cfx.ops.cond](%b, graph { output(1) }, graph { output(2) }) "
        "output((%g, %m, %h)) }, (0.0, 1, True))";
    CHECK_STR_EQ("l (?, u2, ?)\n", of_loop(loop, "C"));
}

TEST(texts_cannot_be_joined)
{
    static const char loop[] =
        "for_loop](%n, graph { %i = placeholder[target=i]() %a = placeholder[target=a]() "
        "output((\"two\",)) }, (\"one\",))";
    CHECK(strstr(of_loop(loop, "C"), "one path returns str, another str") != NULL);
    CHECK_STR_EQ("l ('two',)\n", of_loop(loop, "2"));
}

/* The test of a while_loop is followed, too: what is wrong in it is found, and it may be known. */
TEST(tests_of_loops)
{
    static const char wrong[] =
        "while_loop](graph { %a = placeholder[target=a]() "
        "%m = call_function[target=cfx.ops.mm](%a, %a) output(%m) }, "
        "graph { %a = placeholder[target=a]() output((%a,)) }, (%x,))";
    static const char counts[] =
        "while_loop](graph { %i = placeholder[target=i]() %a = placeholder[target=a]() "
        "%t = call_function[target=cfx.ops.lt](%i, %STOP) output(%t) }, "
        "graph { %i = placeholder[target=i]() %a = placeholder[target=a]() "
        "%k = call_function[target=cfx.ops.add](%i, 1) "
        "%s = call_function[target=cfx.ops.cat]([%a, %a]) output((%k, %s)) }, (0, %x))";
    CHECK(strstr(of_loop(wrong, "1"), "mm") != NULL);
    char text[600];
    const char *at = strstr(counts, "%STOP");
    snprintf(text, sizeof text, "%.*s2%s", (int)(at - counts), counts, at + 5);
    CHECK_STR_EQ("l (2, float32[4*N])\n", of_loop(text, "1"));
    snprintf(text, sizeof text, "%.*s99%s", (int)(at - counts), counts, at + 5);
    CHECK(strstr(of_loop(text, "1"), "l (u") != NULL);
}

/* ---- lists that regions write to ----------------------------------------------------------- */

#define FIRST_TWO(name, region)                                                                    \
    "  %" name " = " region "\n"                                                                   \
    "  %f = call_function[target=cfx.ops.getitem](%l, 0)\n"                                        \
    "  %g = call_function[target=cfx.ops.getitem](%l, 1)\n"                                        \
    "  output((%f, %g))\n"
#define WRITES(size)                                                                               \
    "graph {\n"                                                                                    \
    "      %x = placeholder[target=x]()\n"                                                         \
    "      %l = placeholder[target=l]()\n"                                                         \
    "      %z = call_function[target=cfx.ops.slice](%x, 1, 0, " size ")\n"                         \
    "      %s = call_function[target=cfx.ops.setitem](%l, 0, %z)\n"                                \
    "      output(None)\n"                                                                         \
    "    }"
#define LEAVES                                                                                     \
    "graph {\n"                                                                                    \
    "      %x = placeholder[target=x]()\n"                                                         \
    "      %l = placeholder[target=l]()\n"                                                         \
    "      output(None)\n"                                                                         \
    "    }"
#define SHORTENS                                                                                   \
    "graph {\n"                                                                                    \
    "      %x = placeholder[target=x]()\n"                                                         \
    "      %l = placeholder[target=l]()\n"                                                         \
    "      %s = call_function[target=cfx.ops.delitem](%l, 0)\n"                                    \
    "      output(None)\n"                                                                         \
    "    }"
#define COND(then, otherwise)                                                                      \
    "graph():\n"                                                                                   \
    "  %x = placeholder[target=x]()\n"                                                             \
    "  %p = placeholder[target=p]()\n"                                                             \
    "  %l = call_function[target=cfx.ops.list]((%x, %x))\n"                                \
    FIRST_TWO("c", "call_function[target=cfx.ops.cond](%p, " then ", " otherwise ", (%x, %l))")

TEST(lists_that_branches_write_are_joined)
{
    static const char *const unknown[] = {"float32[N, 4]", "bool[]", NULL};
    static const char *const yes[] = {"float32[N, 4]", "True", NULL};
    static const char *const no[] = {"float32[N, 4]", "False", NULL};
    const char *end = "f float32[N, u0]\ng float32[N, 4]\n";
    CHECK(strstr(inferred(COND(WRITES("1"), WRITES("2")), unknown), end) != NULL);
    CHECK(strstr(inferred(COND(WRITES("1"), LEAVES), unknown), end) != NULL);
    CHECK(strstr(inferred(COND(LEAVES, WRITES("2")), unknown), end) != NULL);
    CHECK(strstr(inferred(COND(SHORTENS, LEAVES), unknown),
                 "cond: after one path a list has 1 items, after another 2") != NULL);
    end = "f float32[N, 2]\ng float32[N, 4]\n";
    CHECK(strstr(inferred(COND(WRITES("2"), WRITES("2")), unknown), end) != NULL);
    CHECK(strstr(inferred(COND(WRITES("2"), WRITES("1")), yes), end) != NULL);
    CHECK(strstr(inferred(COND(WRITES("1"), WRITES("2")), no), end) != NULL);
}

TEST(lists_that_loops_write)
{
    static const char *const counts[] = {"0", "1", "3", "20", "K"};
    static const char *const firsts[] = {"N", "2*N", "8*N", "u1", "u1"};
    static const char *const graph =
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %n = placeholder[target=n]()\n"
        "  %l = call_function[target=cfx.ops.list]((%x, %x))\n"
        FIRST_TWO("loop", "call_function[target=cfx.ops.for_loop](%n, graph {\n"
        "      %i = placeholder[target=i]()\n"
        "      %l = placeholder[target=l]()\n"
        "      %a = call_function[target=cfx.ops.getitem](%l, 0)\n"
        "      %b = call_function[target=cfx.ops.cat]([%a, %a])\n"
        "      %s = call_function[target=cfx.ops.setitem](%l, 0, %b)\n"
        "      output((%l,))\n"
        "    }, (%l,))");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char want[80];
        const char *const inputs[] = {"float32[N, 4]", counts[i], NULL};
        snprintf(want, sizeof want, "\nf float32[%s, 4]\ng float32[N, 4]\n", firsts[i]);
        const char *got = inferred(graph, inputs);
        if (!CHECK(strstr(got, want) != NULL))
            printf("    %s turns gave %s\n", counts[i], got);
    }
}

TEST(texts_of_values)
{
    static const char *const good[][2] = {
        {"float32[2, 3]", "float32[2, 3]"}, {" int64[ ] ", "int64[]"}, {"[N]", "float32[N]"},
        {"torch.bool[max(N, 4), N//2]", "bool[max(N, 4), N//2]"}, {"N + 1", "N + 1"},
        {"7", "7"}, {"-2", "-2"}, {"1.5", "1.5"}, {"True", "True"}, {"None", "None"},
    };
    static const char *const bad[] = {"", "float32[2", "float99[2]", "float32[2,]", "float32[,]",
                                      "x y", "[1,1,1,1,1,1,1,1,1]", "float32[-1]", "qint8[2]"};
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        text.size = 0;
        cfx_datum d = cfx_datum_parse(dims, good[i][0], strlen(good[i][0]), NULL, &err);
        cfx_datum_print(d, dims, cfx_buffer_sink(&text), &err);
        CHECK_STR_EQ(good[i][1], text.data);
        cfx_datum_release(d);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (cfx_error){0};
        cfx_datum d = cfx_datum_parse(dims, bad[i], strlen(bad[i]), NULL, &err);
        if (!CHECK(d.kind == CFX_DATUM_INVALID && err.status != CFX_OK))
            printf("    %s\n", bad[i]);
        cfx_datum_release(d);
    }
    cfx_buffer_free(&text);
    cfx_dims_free(dims);
}

/* What follows from a bool or float that nobody knows is not known either. */
TEST(unknown_numbers_stay_unknown)
{
    static const char *const inputs[] = {"bool[]", "float32[]", NULL};
    const char *told = inferred("graph():\n"
                                "  %p = placeholder[target=p]()\n"
                                "  %q = placeholder[target=q]()\n"
                                "  %b = call_function[target=cfx.ops.item](%p)\n"
                                "  %f = call_function[target=cfx.ops.item](%q)\n"
                                "  %sum = call_function[target=cfx.ops.add](%b, 1)\n"
                                "  %same = call_function[target=cfx.ops.eq](%b, 0)\n"
                                "  %less = call_function[target=cfx.ops.lt](%b, 1)\n"
                                "  %plus = call_function[target=cfx.ops.positive](%b)\n"
                                "  %size = call_function[target=cfx.ops.abs](%f)\n"
                                "  %dicts = call_function[target=cfx.ops.eq]({\"a\": %f, \"b\": 1},"
                                " {\"a\": 2.0, \"b\": 1})\n"
                                "  output((%sum, %same, %less, %plus, %size, %dicts))\n", inputs);
    CHECK_STR_EQ("p bool[]\nq float32[]\nb ?\nf ?\nsum ?\nsame ?\nless ?\n"
                 "plus ?\nsize ?\ndicts ?\n", told);
    static const char *const integer[] = {"int64[]", NULL};
    told = inferred("graph():\n"
                    "  %p = placeholder[target=p]()\n"
                    "  %i = call_function[target=cfx.ops.item](%p)\n"
                    "  %bits = call_function[target=cfx.ops.bitwise_and](%i, 3)\n"
                    "  %more = call_function[target=cfx.ops.add](%bits, 1)\n"
                    "  %less = call_function[target=cfx.ops.add](-1, %bits)\n"
                    "  %minus = call_function[target=cfx.ops.mul](%bits, -1)\n"
                    "  output((%more, %less, %minus))\n", integer);
    CHECK_STR_EQ("p int64[]\ni u0\nbits ?\nmore ?\nless ?\nminus ?\n", told);
}
