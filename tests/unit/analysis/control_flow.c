/* control_flow.c - tests of src/analysis/control_flow.c and of the passes on branches and loops,
 * beyond tests/golden/opt: memory that runs out, regions that are shared, arguments by keyword. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <stdlib.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static bool run(cfx_graph *g, const char *pass)
{
    bool changed = false;
    cfx_error err = {.status = CFX_OK};
    if (!CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find(pass), g, NULL, NULL, &changed, &err)) ||
        !CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, &err)))
        printf("    %s: %s\n", pass, err.message);
    return changed;
}

static bool text_is(cfx_graph *g, const char *expected)
{
    cfx_graph *other = parse(expected, NULL, NULL);
    const bool same = other && cfx_graph_equal(g, other, true);
    if (!same) {
        cfx_buffer text;
        cfx_buffer_init(&text, NULL);
        cfx_graph_text(g, cfx_buffer_sink(&text), NULL);
        printf("    got %s", text.data);
        cfx_buffer_free(&text);
    }
    cfx_graph_release(other);
    return same;
}

/* Something for every pass to do: results, state and operands that nobody needs, the same computed
 * outside, in a branch and in a loop, a predicate that is known, loops of a known count. */
static const char program[] =
    "graph(): %p = placeholder[target=p]() %x = placeholder[target=x]() "
    "%exp = call_function[target=torch.exp](%x) %dead = call_function[target=torch.sin](%x) "
    "%c = call_function[target=cfx.cond](%p, graph { "
    "  %p = placeholder[target=p]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
    "  %exp = call_function[target=torch.exp](%a) "
    "  %in = call_function[target=cfx.cond](%p, graph { %a = placeholder[target=a]() "
    "      %neg = call_function[target=torch.neg](%a) output((%neg, 1)) }, "
    "    graph { %a = placeholder[target=a]() output((%a, 2)) }, (%a,)) "
    "  %g = call_function[target=operator.getitem](%in, 0) "
    "  output((%exp, %b, %g)) }, graph { "
    "  %p = placeholder[target=p]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
    "  output((%a, %b, %a)) }, (%p, %x, %dead)) "
    "%c0 = call_function[target=operator.getitem](%c, 0) "
    "%c2 = call_function[target=operator.getitem](%c, 2) "
    "%l = call_function[target=cfx.for_loop](3, graph { "
    "  %i = placeholder[target=i]() %s = placeholder[target=s]() %t = placeholder[target=t]() "
    "  %u = placeholder[target=u]() "
    "  %exp = call_function[target=torch.exp](%u) %add = call_function[target=torch.add](%s, %exp) "
    "  %cos = call_function[target=torch.cos](%u) "
    "  %mul = call_function[target=torch.mul](%add, %cos) "
    "  %more = call_function[target=operator.add](%t, %i) "
    "  output((%mul, %more, %u)) }, (%c0, 0, %x)) "
    "%l0 = call_function[target=operator.getitem](%l, 0) "
    "%w = call_function[target=cfx.while_loop](graph { "
    "  %k = placeholder[target=k]() %v = placeholder[target=v]() "
    "  %lt = call_function[target=operator.lt](%k, 2) output(%lt) }, graph { "
    "  %k = placeholder[target=k]() %v = placeholder[target=v]() "
    "  %k1 = call_function[target=operator.add](%k, 1) "
    "  %v1 = call_function[target=torch.neg](%v) output((%k1, %v1)) }, (0, %l0)) "
    "%w1 = call_function[target=operator.getitem](%w, 1) "
    "%never = call_function[target=cfx.for_loop](0, graph { "
    "  %i = placeholder[target=i]() %s = placeholder[target=s]() output((%s,)) }, (%w1,)) "
    "%n0 = call_function[target=operator.getitem](%never, 0) "
    "%t = call_function[target=cfx.cond](True, graph { %a = placeholder[target=a]() "
    "  %tan = call_function[target=torch.tan](%a) output(%tan) }, graph { "
    "  %a = placeholder[target=a]() output(%a) }, operands=(%n0,)) "
    "output((%exp, %c2, %t))";

static cfx_status run_in(const cfx_allocator *a, void *pass)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(program, a, &err);
    if (!g)
        return err.status;
    const cfx_status status = cfx_pass_run(cfx_pass_find(pass), g, NULL, NULL, NULL, &err);
    if (status != CFX_OK) {
        ((test_alloc *)a->ctx)->fail_at = TEST_ALLOC_NEVER;
        if (!CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, &err)))
            printf("    %s: %s\n", (const char *)pass, err.message);
    }
    cfx_graph_release(g);
    return status;
}

TEST(memory_runs_out)
{
    static const char *const passes[] = {"const_fold", "cse", "dce", "hoist", "unroll"};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (!CHECK(test_oom_sweep(run_in, (void *)(uintptr_t)passes[i]) > 50))
            printf("    %s\n", passes[i]);
}

TEST(every_pass_once_and_no_more)
{
    static const char *const passes[] = {"const_fold", "cse", "dce", "hoist", "unroll"};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        cfx_graph *g = parse(program, NULL, NULL);
        if (!CHECK(g && run(g, passes[i])) || !CHECK(!run(g, passes[i])))
            printf("    %s\n", passes[i]);
        cfx_graph_release(g);
    }
}

/* ---- dce ----------------------------------------------------------------------------------- */

TEST(arguments_by_keyword)
{
    cfx_graph *g = parse(
        "graph(): %x = placeholder[target=x]() %y = placeholder[target=y]() "
        "%l = call_function[target=cfx.for_loop](%x, state=(%y, 2), body=graph { "
        "  %i = placeholder[target=i]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
        "  output((%a, %b)) }) "
        "%r = call_function[target=operator.getitem](%l, 1) output(%r)", NULL, NULL);
    CHECK(run(g, "dce"));
    CHECK(text_is(g,
        "graph(): %x = placeholder[target=x]() %y = placeholder[target=y]() "
        "%l = call_function[target=cfx.for_loop](%x, state=(2,), body=graph { "
        "  %i = placeholder[target=i]() %b = placeholder[target=b]() output((%b,)) }) "
        "%r = call_function[target=operator.getitem](%l, 0) output(%r)"));
    cfx_graph_release(g);
}

/* A region that two calls have stays as it is. */
TEST(regions_of_two)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *region = parse("graph(): %a = placeholder[target=a]() %b = placeholder[target=b]() "
                              "output((%a, 1))", NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value results[2];
    cfx_value branch = cfx_value_region(g, region, NULL);
    for (int i = 0; i < 2; i++) {
        const cfx_value pair[] = {x, x};
        const cfx_value args[] = {x, branch, branch, cfx_value_tuple(g, pair, 2, NULL)};
        const cfx_value taken[] = {
            cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.cond", args, 4, NULL, 0,
                                          NULL)), cfx_value_int(i)};
        results[i] = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "operator.getitem",
                                                   taken, 2, NULL, 0, NULL));
    }
    cfx_graph_output(g, cfx_value_tuple(g, results, 2, NULL), NULL);
    CHECK(!run(g, "dce"));
    CHECK_INT_EQ(3, cfx_graph_size(region));
    cfx_graph_release(region);
    cfx_graph_release(g);
}

/* Whoever reads the whole result needs all of it; so do operands that are a node. */
TEST(results_that_are_read_whole)
{
    static const char *const texts[] = {
        "graph(): %x = placeholder[target=x]() %l = call_function[target=cfx.for_loop](%x, graph { "
        "%i = placeholder[target=i]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
        "output((%b, %a)) }, (%x, 1)) %r = call_function[target=operator.getitem](%l, 0) "
        "output((%r, %l))",
        "graph(): %x = placeholder[target=x]() %l = call_function[target=cfx.for_loop](2, graph { "
        "%i = placeholder[target=i]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
        "output((%a, %b)) }, %x) %r = call_function[target=operator.getitem](%l, 0) output(%r)",
        "graph(): %x = placeholder[target=x]() %l = call_function[target=cfx.for_loop](2, graph { "
        "%i = placeholder[target=i]() %a = placeholder[target=a]() %b = placeholder[target=b]() "
        "output((%a, %b)) }, (1, 2)) %r = call_function[target=operator.getitem](%l, %x) "
        "output(%r)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cfx_graph *g = parse(texts[i], NULL, NULL);
        CHECK(!run(g, "dce"));
        CHECK(text_is(g, texts[i]));
        cfx_graph_release(g);
    }
}

/* Not by recursion: each loop needs the whole result of the one before. */
TEST(long_chains_of_loops)
{
    enum { LENGTH = 20000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value last = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (int i = 0; i < LENGTH; i++) {
        cfx_graph *body = cfx_graph_new(NULL, NULL, NULL);
        cfx_graph_placeholder(body, "i", NULL);
        cfx_value a = cfx_value_node(cfx_graph_placeholder(body, "a", NULL));
        cfx_graph_output(body, cfx_value_tuple(body, &a, 1, NULL), NULL);
        const cfx_value args[] = {cfx_value_int(3), cfx_value_region(g, body, NULL),
                                  cfx_value_tuple(g, &last, 1, NULL)};
        last = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.for_loop", args, 3, NULL,
                                             0, NULL));
        cfx_graph_release(body);
    }
    cfx_graph_output(g, last, NULL);
    CHECK(!run(g, "dce"));
    CHECK_INT_EQ(LENGTH + 2, cfx_graph_size(g));
    cfx_graph_release(g);
}

/* ---- const_fold and unroll ----------------------------------------------------------------- */

/* A list is one object: it does not become two, nor does an endless loop go on for ever here. */
TEST(what_is_not_resolved)
{
    static const char *const texts[] = {
        "graph(): %c = call_function[target=cfx.cond](True, graph { %a = placeholder[target=a]() "
        "%b = call_method[target=append](%a, 1) output(%a) }, graph { "
        "%a = placeholder[target=a]() output(%a) }, ([1, 2],)) output(%c)",
        "graph(): %c = call_function[target=cfx.cond](True, graph { output([1, 2]) }, "
        "graph { output([1]) }, ()) %b = call_method[target=append](%c, 1) output(%c)",
        "graph(): %l = call_function[target=cfx.while_loop](graph { %a = placeholder[target=a]() "
        "output(True) }, graph { %a = placeholder[target=a]() output((%a,)) }, (0,)) output(%l)",
        "graph(): %l = call_function[target=cfx.while_loop](graph { %a = placeholder[target=a]() "
        "%r = call_function[target=torch.rand](2) output(False) }, graph { "
        "%a = placeholder[target=a]() output((%a,)) }, (0,)) output(%l)",
        "graph(): %l = call_function[target=cfx.for_loop](2, graph { %i = placeholder[target=i]() "
        "%a = placeholder[target=a]() output(([%i],)) }, (0,)) output(%l)",
        "graph(): %l = call_function[target=cfx.for_loop](17, graph { %i = placeholder[target=i]() "
        "%a = placeholder[target=a]() %n = call_function[target=torch.neg](%a) output((%n,)) }, "
        "(0,)) output(%l)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cfx_graph *g = parse(texts[i], NULL, NULL);
        CHECK(!run(g, "const_fold"));
        CHECK(!run(g, "unroll"));
        CHECK(text_is(g, texts[i]));
        cfx_graph_release(g);
    }
}

/* What a writing branch makes of its predicate is not known inside. */
TEST(predicates_that_are_written_to)
{
    static const char *const inner = "graph(): %p = placeholder[target=p]() "
        "%c = call_function[target=cfx.cond](%p, graph { %p = placeholder[target=p]() %s "
        "%d = call_function[target=cfx.cond](%p, graph { output(1) }, graph { output(2) }, ()) "
        "output(%d) }, graph { %p = placeholder[target=p]() output(%p) }, (%p,)) output(%c)";
    for (int writes = 0; writes < 2; writes++) {
        char text[1024];
        char *at = strstr(inner, "%s");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - inner), inner,
                 writes ? "%w = call_method[target=zero_](%p) " : "", at + 2);
        cfx_graph *g = parse(text, NULL, NULL);
        CHECK(run(g, "const_fold") == !writes);
        cfx_graph_release(g);
    }
}

static const char nested[] =
    "graph(): %x = placeholder[target=x]() %l = call_function[target=cfx.for_loop](4, graph { "
    "%i = placeholder[target=i]() %a = placeholder[target=a]() "
    "%m = call_function[target=cfx.for_loop](5, graph { %k = placeholder[target=k]() "
    "%b = placeholder[target=b]() %n = call_function[target=torch.neg](%b) output((%n,)) }, (%a,)) "
    "%r = call_function[target=operator.getitem](%m, 0) output((%r,)) }, (%x,)) "
    "%s = call_function[target=operator.getitem](%l, 0) output(%s)";

/* The limits count what all loops together become. */
TEST(limits_of_unroll)
{
    static const struct {
        size_t turns, nodes, size;
    } rows[] = {{4, 1000, 10}, {5, 1000, 22}, {5, 19, 4}, {3, 1000, 4}, {0, 1000, 4}, {5, 20, 22}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_graph *g = parse(nested, NULL, NULL);
        const cfx_unroll_options limits = {.max_turns = rows[i].turns,
                                           .max_nodes = rows[i].nodes};
        bool changed = false;
        CHECK_INT_EQ(CFX_OK, cfxi_pass_unroll(g, NULL, &limits, &changed, NULL));
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
        if (!CHECK_INT_EQ((long long)rows[i].size, (long long)cfx_graph_size(g)))
            printf("    row %zu\n", i);
        cfx_graph_release(g);
    }
}
