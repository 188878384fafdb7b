/* match.c - tests of src/match: finding patterns, replacing them, saying why not. */
#include "check.h"
#include "test_alloc.h"
#include "ir/graph_impl.h"
#include "match/match_impl.h"

#include <cfx/match.h>

/* ---- short forms --------------------------------------------------------------------------- */

#define X "  %x = placeholder[target=x]()\n  %y = placeholder[target=y]()\n"
#define CALL(name, target, args) "  %" name " = call_function[target=" target "](" args ")\n"
#define OUT(value) "  output(" value ")\n"

static cfx_graph *parse_with(const cfx_allocator *a, const char *body)
{
    char text[4096];
    cfx_error err = {.status = CFX_OK};
    snprintf(text, sizeof text, "graph():\n%s", body);
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, &err);
    if (!g && err.status != CFX_E_NOMEM)
        printf("    %s\n", err.message);
    return g;
}

static cfx_graph *parse(const char *body) { return parse_with(NULL, body); }

/* What a match binds, as text: "mul=mul a=x n=2; ..." */
static void write_value(cfx_buffer *out, cfx_graph *g, cfx_value v)
{
    cfxi_ir_value_repr(g, v, cfx_buffer_sink(out), NULL);
}

static void write_match(cfx_buffer *out, const cfx_match *match)
{
    for (size_t i = 0; i < match->n_bound; i++) {
        const char *name = cfx_node_name(match->bound[i].node, NULL);
        cfx_buffer_append(out, i ? " " : "", i ? 1 : 0);
        cfx_buffer_append(out, name, strlen(name));
        cfx_buffer_append(out, "=", 1);
        write_value(out, match->graph, match->bound[i].value);
    }
}

static bool check_found(const char *want, const char *graph, const char *pattern,
                        const cfx_match_options *opts, const char *file, int line)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer out;
    cfx_graph *g = parse(graph);
    cfx_graph *p = parse(pattern);
    cfx_buffer_init(&out, NULL);
    cfx_matches *found = cfx_matches_find(g, &p, 1, opts, &err);
    for (size_t i = 0; found && i < cfx_matches_size(found); i++) {
        cfx_buffer_append(&out, i ? "; " : "", i ? 2 : 0);
        write_match(&out, cfx_matches_get(found, i));
    }
    bool same = check_str(want, found ? out.data : err.message, file, line, "what was found");
    cfx_matches_free(found);
    cfx_buffer_free(&out);
    cfx_graph_release(p);
    cfx_graph_release(g);
    return same;
}
#define FOUND(want, graph, pattern) \
    check_found(want, X graph, pattern, NULL, __FILE__, __LINE__)
#define FOUND_WITH(want, graph, pattern, ...)                                      \
    do {                                                                           \
        const cfx_match_options with = {__VA_ARGS__};                              \
        check_found(want, X graph, pattern, &with, __FILE__, __LINE__);            \
    } while (0)

#define A "  %a = placeholder[target=a]()\n"
#define B A "  %b = placeholder[target=b]()\n"

/* ---- what is found ------------------------------------------------------------------------- */

#define SIGMOIDS                                                                          \
    CALL("s0", "torch.sigmoid", "%x") CALL("s1", "torch.sigmoid", "%s0")                  \
    CALL("s2", "torch.sigmoid", "%s1") CALL("s3", "torch.sigmoid", "%s2") OUT("%s3")
#define TWO_SIGMOIDS                                                                      \
    A CALL("p", "torch.sigmoid", "%a") CALL("q", "torch.sigmoid", "%p") OUT("%q")

TEST(the_first_of_overlapping_matches_wins)
{
    FOUND("q=s1 p=s0 a=x; q=s3 p=s2 a=s1", SIGMOIDS, TWO_SIGMOIDS);
    FOUND_WITH("q=s1 p=s0 a=x; q=s2 p=s1 a=s0; q=s3 p=s2 a=s1", SIGMOIDS, TWO_SIGMOIDS,
               .overlaps = true);
}

TEST(outputs_and_placeholders_can_belong_to_the_pattern)
{
    FOUND_WITH("output=output q=s3 p=s2 a=s1", SIGMOIDS, TWO_SIGMOIDS, .match_output = true);
    FOUND_WITH("q=s1 p=s0 a=x", SIGMOIDS, TWO_SIGMOIDS, .match_placeholder = true);
}

TEST(a_placeholder_binds_nodes_literals_and_containers)
{
    const char *any = B CALL("f", "f", "%a, %b") OUT("%f");
    FOUND("f=f a=x b=2", CALL("f", "f", "%x, 2") OUT("%f"), any);
    FOUND("f=f a=[x, 1] b=(y,)", CALL("f", "f", "[%x, 1], (%y,)") OUT("%f"), any);
    FOUND("", CALL("f", "f", "%x, %x") OUT("%f"), any);
    FOUND("f=f a=1 b=1", CALL("f", "f", "1, 1") OUT("%f"), any);
}

TEST(a_placeholder_stands_for_one_thing)
{
    const char *same = A CALL("f", "f", "%a, %a") OUT("%f");
    FOUND("f=f a=x", CALL("f", "f", "%x, %x") OUT("%f"), same);
    FOUND("", CALL("f", "f", "%x, %y") OUT("%f"), same);
    FOUND("f=f a=1", CALL("f", "f", "1, 1.0") OUT("%f"), same);
    FOUND("f=f a=True", CALL("f", "f", "True, 1") OUT("%f"), same);
    FOUND("", CALL("f", "f", "1, 2") OUT("%f"), same);
    FOUND("", CALL("f", "f", "0.0, -0.0") OUT("%f"), same);
    FOUND("", CALL("f", "f", "[%x], (%x,)") OUT("%f"), same);
}

/* Whether f(%x, graph) is found by f(%a, pattern). */
#define LITERAL(want, graph, pattern) \
    FOUND(want ? "f=f a=x" : "", CALL("f", "f", "%x, " graph) OUT("%f"), \
          A CALL("f", "f", "%a, " pattern) OUT("%f"))

TEST(literals_are_compared_as_torch_fx_does_but_for_signs_of_zero)
{
    LITERAL(true, "1", "1");
    LITERAL(false, "1", "1.0");
    LITERAL(false, "1", "True");
    LITERAL(false, "0.0", "-0.0");
    LITERAL(true, "-0.0", "-0.0");
    LITERAL(false, "nan", "nan");
    LITERAL(true, "\"s\"", "\"s\"");
    LITERAL(false, "\"s\"", "\"t\"");
    LITERAL(true, "None", "None");
    LITERAL(false, "%y", "1");
    LITERAL(true, "[1, (2,)]", "(1, [2])");
    LITERAL(false, "[0.0]", "(-0.0,)");
    LITERAL(false, "[1, 2]", "[1]");
    LITERAL(true, "{\"k\": 1, \"l\": 2}", "{\"l\": 2, \"k\": 1}");
    LITERAL(false, "{\"k\": 1}", "{\"k\": 2}");
    LITERAL(false, "{\"k\": 1}", "{\"l\": 1}");
    LITERAL(true, "slice(None, 1, None)", "slice(None, 1, None)");
    LITERAL(false, "slice(None, 1, None)", "slice(None, 2, None)");
    LITERAL(true, "set(1, 2)", "set(2, 1)");
}

TEST(placeholders_are_found_inside_containers)
{
    FOUND("f=f a=x b=y", CALL("f", "f", "[%x, (%y, 1)]") OUT("%f"),
          B CALL("f", "f", "[%a, (%b, 1)]") OUT("%f"));
    FOUND("f=f b=y a=x", CALL("f", "f", "{\"k\": %x, \"l\": %y}") OUT("%f"),
          B CALL("f", "f", "{\"l\": %b, \"k\": %a}") OUT("%f"));
    FOUND("f=f a=x b=y", CALL("f", "f", "slice(%x, %y, None)") OUT("%f"),
          B CALL("f", "f", "slice(%a, %b, None)") OUT("%f"));
}

TEST(literals_can_be_ignored)
{
    FOUND_WITH("f=f a=x", CALL("f", "f", "%x, %y, [2]") OUT("%f"),
               A CALL("f", "f", "%a, 1, 5") OUT("%f"), .ignore_literals = true);
    FOUND_WITH("", CALL("f", "f", "%x, [1, 2]") OUT("%f"),
               A CALL("f", "f", "%a, [1]") OUT("%f"), .ignore_literals = true);
}

TEST(keywords_must_be_the_same_in_the_same_order)
{
    const char *pattern = A CALL("f", "f", "%a, k=1, l=2") OUT("%f");
    FOUND("f=f a=x", CALL("f", "f", "%x, k=1, l=2") OUT("%f"), pattern);
    FOUND("", CALL("f", "f", "%x, l=2, k=1") OUT("%f"), pattern);
    FOUND("", CALL("f", "f", "%x, k=1, l=3") OUT("%f"), pattern);
    FOUND("", CALL("f", "f", "%x, 1, l=2") OUT("%f"), pattern);
}

TEST(the_target_and_the_opcode_count)
{
    FOUND("", "  %m = call_method[target=neg](%x)\n" OUT("%m"),
          A CALL("neg", "neg", "%a") OUT("%neg"));
    FOUND("m=m a=x", "  %m = call_module[target=l.0](%x)\n" OUT("%m"),
          A "  %m = call_module[target=l.0](%a)\n" OUT("%m"));
    FOUND("", "  %m = call_module[target=l.0](%x)\n" OUT("%m"),
          A "  %m = call_module[target=l.1](%a)\n" OUT("%m"));
    FOUND("f=f a=x w=w", "  %w = get_attr[target=w]()\n" CALL("f", "f", "%x, %w") OUT("%f"),
          A "  %w = get_attr[target=w]()\n" CALL("f", "f", "%a, %w") OUT("%f"));
}

TEST(inner_nodes_may_not_be_used_outside)
{
    const char *pattern = A CALL("n", "neg", "%a") CALL("r", "relu", "%n") OUT("%r");
    FOUND("", CALL("n", "neg", "%x") CALL("r", "relu", "%n") OUT("(%r, %n)"), pattern);
    FOUND("r=r n=n a=x", CALL("n", "neg", "%x") CALL("r", "relu", "%n") OUT("(%r, %r)"), pattern);
    FOUND("r=r n=n a=x", CALL("n", "neg", "%x") CALL("r", "relu", "%n") OUT("(%r, %n)"),
          A CALL("n", "neg", "%a") CALL("r", "relu", "%n") OUT("(%n, %r)"));
}

#define PAIRS                                                                                  \
    CALL("r", "relu", "%x") CALL("n", "neg", "%x") CALL("r1", "relu", "%y")                     \
    CALL("n1", "neg", "%y") CALL("r2", "relu", "%y") OUT("(%r, %n, %r1, %n1, %r2)")

TEST(several_outputs_are_found_in_every_combination)
{
    const char *joined = A CALL("p", "relu", "%a") CALL("q", "neg", "%a") OUT("(%p, %q)");
    const char *apart = B CALL("p", "relu", "%a") CALL("q", "neg", "%b") OUT("(%p, %q)");
    FOUND("p=r a=x q=n; p=r1 a=y q=n1", PAIRS, joined);
    FOUND("p=r a=x q=n1 b=y; p=r1 a=y q=n b=x", PAIRS, apart);
    FOUND_WITH("p=r a=x q=n; p=r1 a=y q=n1; p=r2 a=y q=n1", PAIRS, joined, .overlaps = true);
}

TEST(an_anchor_is_found_through_a_chain_of_users)
{
    FOUND("p=r c=c a=x q=n t=t",
          CALL("c", "cos", "%x") CALL("r", "relu", "%c") CALL("u", "tanh", "%c")
              CALL("t", "sin", "%c") CALL("n", "neg", "%t") OUT("(%r, %n, %u)"),
          A CALL("c", "cos", "%a") CALL("p", "relu", "%c") CALL("t", "sin", "%c")
              CALL("q", "neg", "%t") OUT("(%p, %q, %c)"));
}

TEST(nothing_may_stand_between)
{
    const char *pattern = B CALL("n", "neg", "%a") CALL("s", "add", "%n, %b") OUT("(%s, %n)");
    FOUND("", CALL("n", "neg", "%x") CALL("t", "tanh", "%n") CALL("s", "add", "%n, %t") OUT("%s"),
          pattern);
    FOUND("", CALL("n", "neg", "%x") CALL("t", "tanh", "%n") CALL("u", "exp", "%t")
          CALL("s", "add", "%n, %u") OUT("%s"), pattern);
    FOUND("s=s n=n a=x b=t", CALL("n", "neg", "%x") CALL("t", "tanh", "%y") CALL("u", "exp", "%n")
          CALL("s", "add", "%n, %t") OUT("(%s, %u)"), pattern);
    FOUND("", CALL("n", "neg", "%x") CALL("t", "tanh", "%n") CALL("s", "add", "%n, %t") OUT("%s"),
          B CALL("n", "neg", "%a") CALL("s", "add", "%n, %b") OUT("%s"));
}

TEST(a_name_makes_any_node_an_anchor)
{
    FOUND_WITH("p=my a=x", CALL("my", "tanh", "%x") OUT("%my"), A CALL("p", "neg", "%a") OUT("%p"),
               .node_name = "m");
    FOUND_WITH("", CALL("my", "tanh", "%x") OUT("%my"), A CALL("p", "neg", "%a") OUT("%p"),
               .node_name = "s");
}

TEST(alternatives_for_a_target)
{
    const char *pattern = A CALL("p", "cfx.any_of", "(&relu, &gelu, \".sigmoid\"), %a")
        CALL("q", "neg", "%p") OUT("%q");
    FOUND("q=n p=g a=x; q=m p=s a=y", CALL("g", "gelu", "%x") CALL("n", "neg", "%g")
          "  %s = call_method[target=sigmoid](%y)\n" CALL("m", "neg", "%s") OUT("(%n, %m)"),
          pattern);
    FOUND("", CALL("g", "sigmoid", "%x") CALL("n", "neg", "%g") OUT("%n"), pattern);
    FOUND("p=r a=x; p=s a=r", CALL("r", "relu", "%x") "  %s = call_method[target=sigmoid](%r)\n"
          OUT("%s"), A CALL("p", "cfx.any_of", "(&relu, \".sigmoid\"), %a") OUT("%p"));
}

#define XS A "  %xs = placeholder[target=*xs]()\n"

TEST(a_starred_placeholder_binds_any_number_of_items)
{
    FOUND_WITH("c=c a=x xs=(y, 1)", CALL("c", "cat", "[%x, %y, 1], 0") OUT("%c"),
               XS CALL("c", "cat", "[%a, %xs], 0") OUT("%c"), .variadic = true);
    FOUND_WITH("c=c xs=(x,) a=y", CALL("c", "cat", "[%x, %y], 0") OUT("%c"),
               XS CALL("c", "cat", "[%xs, %a], 0") OUT("%c"), .variadic = true);
    FOUND_WITH("c=c a=x xs=()", CALL("c", "cat", "[%x], 0") OUT("%c"),
               XS CALL("c", "cat", "[%a, %xs], 0") OUT("%c"), .variadic = true);
    FOUND_WITH("", CALL("c", "cat", "[], 0") OUT("%c"),
               XS CALL("c", "cat", "[%a, %xs], 0") OUT("%c"), .variadic = true);
    FOUND_WITH("c=c a=x xs=(y, 0)", CALL("c", "cat", "%x, %y, 0") OUT("%c"),
               XS CALL("c", "cat", "%a, %xs") OUT("%c"), .variadic = true);
}

#define WRITE "  %w = call_method[target=add_](%x, 1)\n"

TEST(strict_matches_respect_writes)
{
    const char *pattern = A CALL("n", "torch.neg", "%a") CALL("r", "torch.relu", "%n") OUT("%r");
    FOUND("r=r n=n a=x", CALL("n", "torch.neg", "%x") WRITE CALL("r", "torch.relu", "%n")
          OUT("%r"), pattern);
    FOUND_WITH("", CALL("n", "torch.neg", "%x") WRITE CALL("r", "torch.relu", "%n") OUT("%r"),
               pattern, .strict = true);
    FOUND_WITH("r=r n=n a=x", WRITE CALL("n", "torch.neg", "%x") CALL("r", "torch.relu", "%n")
               OUT("%r"), pattern, .strict = true);
    FOUND_WITH("", CALL("m", "torch.relu_", "%x") CALL("c", "torch.cos", "%x")
               CALL("r", "torch.abs", "%m") OUT("(%r, %c)"),
               A CALL("m", "torch.relu_", "%a") CALL("r", "torch.abs", "%m") OUT("%r"),
               .strict = true);
}

TEST(strict_matches_let_writes_pass_that_concern_others)
{
    const char *pattern = A CALL("n", "torch.neg", "%a") CALL("r", "torch.relu", "%n") OUT("%r");
    const char *writes = A CALL("m", "torch.relu_", "%a") CALL("r", "torch.abs", "%m") OUT("%r");
    /* To a new tensor, to a view of one that is read, and by somebody who is not known. */
    FOUND_WITH("r=r n=n a=c", CALL("c", "torch.cos", "%x") CALL("d", "torch.cos", "%x")
               CALL("n", "torch.neg", "%c") CALL("w", "torch.relu_", "%d")
               CALL("r", "torch.relu", "%n") OUT("(%r, %w)"), pattern, .strict = true);
    FOUND_WITH("", CALL("c", "torch.cos", "%x") CALL("d", "torch.t", "%c")
               CALL("n", "torch.neg", "%c") CALL("w", "torch.relu_", "%d")
               CALL("r", "torch.relu", "%n") OUT("(%r, %w)"), pattern, .strict = true);
    FOUND_WITH("", CALL("n", "torch.neg", "%x") CALL("w", "torch.relu_", "%y")
               CALL("r", "torch.relu", "%n") OUT("(%r, %w)"), pattern, .strict = true);
    /* Reads of something else may stand between a write and its user. */
    FOUND_WITH("r=r m=m a=d", CALL("d", "torch.cos", "%x") CALL("m", "torch.relu_", "%d")
               CALL("c", "torch.cos", "%x") CALL("r", "torch.abs", "%m") OUT("(%r, %c)"),
               writes, .strict = true);
    FOUND_WITH("", CALL("d", "torch.cos", "%x") CALL("e", "torch.t", "%d")
               CALL("m", "torch.relu_", "%d") CALL("c", "torch.cos", "%e")
               CALL("r", "torch.abs", "%m") OUT("(%r, %c)"), writes, .strict = true);
}

TEST(strict_matches_write_in_the_order_of_the_pattern)
{
    const char *pattern = A CALL("s", "torch.sin", "%a") CALL("m", "torch.relu_", "%a")
                          CALL("r", "torch.add", "%s, %m") OUT("%r");
    FOUND_WITH("r=r s=s a=d m=m", CALL("d", "torch.cos", "%x") CALL("s", "torch.sin", "%d")
               CALL("m", "torch.relu_", "%d") CALL("r", "torch.add", "%s, %m") OUT("%r"),
               pattern, .strict = true);
    FOUND_WITH("", CALL("d", "torch.cos", "%x") CALL("m", "torch.relu_", "%d")
               CALL("s", "torch.sin", "%d") CALL("r", "torch.add", "%s, %m") OUT("%r"),
               pattern, .strict = true);
}

TEST(strict_matches_move_no_input_over_a_write)
{
    const char *pattern = B CALL("n", "torch.neg", "%a") CALL("s", "torch.add", "%n, %b")
                          OUT("(%n, %s)");
    const char *want = "s=s n=n a=x b=c";
    FOUND_WITH(want, CALL("n", "torch.neg", "%x") CALL("u", "torch.tanh", "%n")
               CALL("c", "torch.cos", "%y") CALL("s", "torch.add", "%n, %c") OUT("(%u, %s)"),
               pattern, .strict = true);
    FOUND_WITH("", CALL("n", "torch.neg", "%x") CALL("u", "torch.tanh", "%n") WRITE
               CALL("c", "torch.cos", "%y") CALL("s", "torch.add", "%n, %c") OUT("(%u, %s)"),
               pattern, .strict = true);
}

TEST(one_operator_has_many_spellings)
{
    FOUND_WITH("r=r a=x", "  %r = call_method[target=relu](%x)\n" OUT("%r"),
               A CALL("r", "torch.nn.functional.relu", "%a") OUT("%r"), .any_spelling = true);
    FOUND_WITH("s=s a=x b=1", "  %s = call_method[target=sum](%x, dim=1)\n" OUT("%s"),
               B CALL("s", "torch.ops.aten.sum.dim_IntList", "%a, %b, False") OUT("%s"),
               .any_spelling = true);
    FOUND_WITH("s=s a=x b=y", CALL("s", "operator.add", "%x, %y") OUT("%s"),
               B CALL("s", "torch.add", "%a, %b, alpha=1") OUT("%s"), .any_spelling = true);
    FOUND_WITH("", CALL("s", "operator.add", "%x, %y") OUT("%s"),
               B CALL("s", "torch.add", "%a, %b, alpha=2") OUT("%s"), .any_spelling = true);
    FOUND_WITH("", CALL("s", "torch.nn.functional.relu", "%x, True") OUT("%s"),
               A CALL("s", "torch.relu", "%a") OUT("%s"), .any_spelling = true);
    FOUND("", CALL("s", "operator.add", "%x, %y") OUT("%s"),
          B CALL("s", "torch.add", "%a, %b") OUT("%s"));
}

TEST(operands_that_commute_can_be_swapped)
{
    const char *pattern = B CALL("m", "torch.mul", "%a, 2") CALL("s", "torch.add", "%m, %b")
        OUT("%s");
    FOUND_WITH("s=s m=m a=x b=y", CALL("m", "torch.mul", "2, %x") CALL("s", "torch.add", "%y, %m")
               OUT("%s"), pattern, .commutative = true);
    FOUND("", CALL("m", "torch.mul", "2, %x") CALL("s", "torch.add", "%y, %m") OUT("%s"), pattern);
    FOUND_WITH("", CALL("s", "torch.sub", "2, %x") OUT("%s"),
               A CALL("s", "torch.sub", "%a, 2") OUT("%s"), .commutative = true);
    FOUND_WITH("s=s m=m a=x b=y", CALL("m", "operator.mul", "2, %x")
               "  %s = call_method[target=add](%y, %m)\n" OUT("%s"), pattern, .commutative = true,
               .any_spelling = true);
}

/* (a * 1) + ((a * 1) + ...): each level can be swapped in two ways, and none fits. */
TEST(swapping_is_bounded)
{
    cfx_graph *graphs[2];
    for (int i = 0; i < 2; i++) {
        cfx_graph *g = graphs[i] = cfx_graph_new(NULL, NULL, NULL);
        cfx_value v = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
        cfx_value w = i ? cfx_value_int(7) : cfx_value_node(cfx_graph_placeholder(g, "y", NULL));
        for (int k = 0; k < 60; k++) {
            cfx_value both[] = {v, v};
            if (k == 0)
                both[1] = w;
            v = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", both, 2, NULL,
                                              0, NULL));
        }
        cfx_graph_output(g, v, NULL);
    }
    const cfx_match_options opts = {.commutative = true};
    cfx_matches *found = cfx_matches_find(graphs[0], &graphs[1], 1, &opts, NULL);
    CHECK_INT_EQ(0, cfx_matches_size(found));
    cfx_matches_free(found);
    cfx_graph_release(graphs[0]);
    cfx_graph_release(graphs[1]);
}

/* ---- bad patterns -------------------------------------------------------------------------- */

TEST(bad_patterns_are_refused)
{
    FOUND("SubgraphMatcher cannot be initialized with an empty pattern", OUT("%x"), "");
    FOUND("SubgraphMatcher cannot be initialized with an pattern with dead code: node %n is "
          "unused; return it or remove it",
          OUT("%x"), A CALL("n", "neg", "%a") OUT("%a"));
    FOUND("the pattern returns nothing; add an output", OUT("%x"), A);
    FOUND("placeholder %b of the pattern is never used, so it matches nothing; use it or remove it",
          CALL("n", "neg", "%x") OUT("%n"), B CALL("n", "neg", "%a") OUT("%n"));
    FOUND("", CALL("n", "abs", "%x") OUT("%n"), B CALL("n", "neg", "%a") OUT("%n"));
}

/* ---- replacing ----------------------------------------------------------------------------- */

static void check_replaced(const char *want, const char *graph, const char *pattern,
                           const char *replacement, const cfx_match_options *opts,
                           const char *file, int line)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer out;
    cfx_graph *g = parse(graph);
    cfx_graph *p = parse(pattern);
    cfx_graph *r = parse(replacement);
    cfx_graph *rs[64];
    for (size_t i = 0; i < 64; i++)
        rs[i] = r;
    cfx_buffer_init(&out, NULL);
    cfx_matches *found = cfx_matches_find(g, &p, 1, opts, &err);
    cfx_status status = found ? cfx_matches_replace(found, rs, &err) : err.status;
    check_int(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL), file, line, "verify");
    cfx_graph_text(g, cfx_buffer_sink(&out), NULL);
    if (status != CFX_OK)
        check_str(want, err.message, file, line, "the error");
    else
        check_str(want, out.data + strlen("graph():\n" X), file, line, "the graph");
    cfx_matches_free(found);
    cfx_buffer_free(&out);
    cfx_graph_release(r);
    cfx_graph_release(p);
    cfx_graph_release(g);
}
#define REPLACED(want, graph, pattern, replacement) \
    check_replaced(want, X graph, pattern, replacement, NULL, __FILE__, __LINE__)

TEST(back_to_back_matches_are_replaced)
{
    REPLACED(CALL("neg", "neg", "%x") CALL("neg_1", "neg", "%neg") OUT("%neg_1"), SIGMOIDS,
             TWO_SIGMOIDS, A CALL("neg", "neg", "%a") OUT("%neg"));
}

/* n1 and a1 are one match, n2 and a2 another: each would need a result of the other one. */
#define CROSSED                                                                       \
    CALL("n1", "neg", "%x") CALL("n2", "neg", "%y") CALL("a1", "add", "%n2, %x")      \
    CALL("a2", "add", "%n1, %y") OUT("(%n1, %a1, %n2, %a2)")

TEST(matches_that_would_wait_for_each_other_are_not_both_replaced)
{
    const char *pattern = B CALL("n", "neg", "%a") CALL("s", "add", "%b, %a") OUT("(%n, %s)");
    const char *made = B CALL("f", "f", "%a, %b") CALL("g", "g", "%f") OUT("(%f, %g)");
    const cfx_match_options jointly = {.jointly = true};
    FOUND("n=n1 a=x s=a1 b=n2; n=n2 a=y s=a2 b=n1", CROSSED, pattern);
    check_replaced(CALL("n2", "neg", "%y") CALL("f", "f", "%x, %n2") CALL("g", "g", "%f")
                   CALL("a2", "add", "%f, %y") OUT("(%f, %g, %n2, %a2)"), X CROSSED, pattern, made,
                   &jointly, __FILE__, __LINE__);
    REPLACED("the match at node %a2 and another match depend on each other; replace one pattern "
             "after the other",
             CROSSED, pattern, made);
}

/* Three in a ring, of which none is used before its own inputs. */
TEST(a_ring_of_matches_is_broken)
{
    FOUND_WITH("n=n1 a=1 s=a1 b=n2; n=n2 a=2 s=a2 b=n3",
               CALL("n1", "neg", "1") CALL("n2", "neg", "2") CALL("n3", "neg", "3")
               CALL("a1", "add", "%n2, 1") CALL("a2", "add", "%n3, 2") CALL("a3", "add", "%n1, 3")
               OUT("(%a1, %a2, %a3)"),
               B CALL("n", "neg", "%a") CALL("s", "add", "%b, %a") OUT("(%n, %s)"),
               .jointly = true);
}

TEST(a_replacement_can_return_a_dict)
{
    REPLACED(CALL("r", "r", "%x") CALL("t", "t", "%x") OUT("{\"k\": %r, \"l\": %t}"),
             CALL("p", "p", "%x") CALL("q", "q", "%x") OUT("{\"k\": %p, \"l\": %q}"),
             A CALL("p", "p", "%a") CALL("q", "q", "%a") OUT("{\"k\": %p, \"l\": %q}"),
             A CALL("r", "r", "%a") CALL("t", "t", "%a") OUT("{\"k\": %r, \"l\": %t}"));
}

TEST(what_a_replacement_brings_in_is_not_searched)
{
    REPLACED(CALL("s", "s", "%x") CALL("t", "s", "%s") CALL("s_1", "s", "%t")
             CALL("t_1", "s", "%s_1") OUT("%t_1"),
             CALL("p", "s", "%x") CALL("q", "s", "%p") OUT("%q"),
             A CALL("p", "s", "%a") OUT("%p"),
             A CALL("s", "s", "%a") CALL("t", "s", "%s") OUT("%t"));
}

TEST(a_replacement_is_not_the_graph_itself)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(X SIGMOIDS);
    cfx_graph *p = parse(A CALL("p", "torch.sigmoid", "%a") OUT("%p"));
    cfx_matches *found = cfx_matches_find(g, &p, 1, NULL, NULL);
    cfx_graph *rs[] = {g, g, g, g};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_matches_replace(found, rs, &err));
    CHECK_STR_EQ("the replacement is the graph that is being changed; pass a copy of it",
                 err.message);
    CHECK_INT_EQ(7, cfx_graph_size(g));
    cfx_matches_free(found);
    cfx_graph_release(p);
    cfx_graph_release(g);
}

TEST(a_replacement_can_be_its_input)
{
    REPLACED(OUT("%x"), SIGMOIDS, A CALL("p", "torch.sigmoid", "%a") OUT("%p"), A OUT("%a"));
}

TEST(a_replacement_can_be_a_literal)
{
    REPLACED(CALL("g", "g", "2") OUT("%g"), CALL("f", "f", "%x, 2") CALL("g", "g", "%f") OUT("%g"),
             B CALL("p", "f", "%a, %b") OUT("%p"), B OUT("%b"));
}

TEST(inputs_in_containers_follow_earlier_replacements)
{
    REPLACED(CALL("st", "stack", "[%x, %y]") CALL("st_1", "stack", "[%st, %y]") OUT("%st_1"),
             CALL("c", "cat", "[%x, %y]") CALL("d", "cat", "[%c, %y]") OUT("%d"),
             A CALL("p", "cat", "%a") OUT("%p"), A CALL("st", "stack", "%a") OUT("%st"));
}

TEST(a_replacement_stands_before_the_first_user)
{
    REPLACED(CALL("d", "d", "%y") CALL("f", "f", "%x") CALL("h", "h", "%x") CALL("t", "t", "%f")
             OUT("(%t, %h, %d)"),
             CALL("r", "r", "%x") CALL("d", "d", "%y") CALL("n", "n", "%x") CALL("t", "t", "%r")
             OUT("(%t, %n, %d)"),
             A CALL("r", "r", "%a") CALL("n", "n", "%a") OUT("(%r, %n)"),
             A CALL("f", "f", "%a") CALL("h", "h", "%a") OUT("(%f, %h)"));
}

TEST(inputs_that_come_late_are_moved)
{
    REPLACED(CALL("d", "d", "%y") CALL("s", "s", "%x, %d") CALL("m", "m", "%x, %d")
             CALL("t", "t", "%s") CALL("u", "u", "%t") OUT("(%u, %m)"),
             CALL("r", "r", "%x") CALL("t", "t", "%r") CALL("u", "u", "%t") CALL("d", "d", "%y")
             CALL("n", "n", "%d") OUT("(%u, %n)"),
             B CALL("r", "r", "%a") CALL("n", "n", "%b") OUT("(%r, %n)"),
             B CALL("s", "s", "%a, %b") CALL("m", "m", "%a, %b") OUT("(%s, %m)"));
}

TEST(an_unused_result_is_replaced_behind_the_match)
{
    REPLACED(CALL("f", "f", "%x") CALL("e", "e", "%y") OUT("%e"),
             CALL("n", "n", "%x") CALL("e", "e", "%y") OUT("%e"),
             A CALL("n", "n", "%a") OUT("%n"), A CALL("f", "f", "%a") OUT("%f"));
}

TEST(starred_inputs_are_spliced)
{
    const cfx_match_options opts = {.variadic = true};
    check_replaced(CALL("s", "stack", "[1, %x, %y, 2], %x, %y") OUT("%s"),
                   X CALL("c", "cat", "[%x, %y]") OUT("%c"),
                   "  %xs = placeholder[target=*xs]()\n" CALL("c", "cat", "[%xs]") OUT("%c"),
                   "  %xs = placeholder[target=*xs]()\n"
                   CALL("s", "stack", "[1, %xs, 2], %xs") OUT("%s"), &opts, __FILE__, __LINE__);
}

TEST(regions_are_searched_on_demand)
{
    const cfx_match_options opts = {.regions = true};
    const char *pattern = A CALL("n", "neg", "%a") OUT("%n");
    const char *replacement = A CALL("p", "abs", "%a") OUT("%p");
    const char *graph = X "  %cond = call_function[target=cfx.cond](%x, graph {\n"
        "    %a = placeholder[target=a]()\n    %n = call_function[target=neg](%a)\n"
        "    output(%n)\n  }, graph {\n    %a = placeholder[target=a]()\n    output(%a)\n"
        "  }, (%y,))\n" OUT("%cond");
    cfx_graph *g = parse(graph);
    cfx_graph *p = parse(pattern);
    cfx_graph *r = parse(replacement);
    REQUIRE(g && p && r);
    cfx_matches *found = cfx_matches_find(g, &p, 1, NULL, NULL);
    CHECK_INT_EQ(0, cfx_matches_size(found));
    cfx_matches_free(found);
    found = cfx_matches_find(g, &p, 1, &opts, NULL);
    REQUIRE(cfx_matches_size(found) == 1);
    CHECK(cfx_graph_parent(cfx_matches_get(found, 0)->graph) == g);
    CHECK_INT_EQ(CFX_OK, cfx_matches_replace(found, &r, NULL));
    CHECK_INT_EQ(1, cfx_matches_get(found, 0)->n_made);
    CHECK_STR_EQ("abs", cfx_node_target(cfx_matches_get(found, 0)->made[0], NULL, NULL));
    cfx_matches_free(found);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(r);
    cfx_graph_release(p);
    cfx_graph_release(g);
}

TEST(copies_have_the_place_of_the_match)
{
    cfx_graph *g = parse(X "  %n = call_function[target=neg](%x)  @ model.py:7\n" OUT("%n"));
    cfx_graph *p = parse(A CALL("n", "neg", "%a") OUT("%n"));
    cfx_graph *r = parse(A CALL("s", "sin", "%a")
                         "  %f = call_function[target=f](%s)  @ new.py:3\n" OUT("%f"));
    REQUIRE(g && p && r);
    cfx_matches *found = cfx_matches_find(g, &p, 1, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_matches_replace(found, &r, NULL));
    const cfx_match *match = cfx_matches_get(found, 0);
    REQUIRE(match->n_made == 2);
    CHECK_STR_EQ("model.py", cfx_node_file(match->made[0]));
    CHECK_INT_EQ(7, cfx_node_line(match->made[0]));
    CHECK_STR_EQ("new.py", cfx_node_file(match->made[1]));
    CHECK(cfx_node_is_erased(match->bound[0].value.as.node));
    cfx_matches_free(found);
    cfx_graph_release(r);
    cfx_graph_release(p);
    cfx_graph_release(g);
}

#define NEG CALL("n", "neg", "%x") OUT("%n")

TEST(misfits_leave_the_graph_alone)
{
    const char *pattern = A CALL("n", "neg", "%a") OUT("%n");
    REPLACED("Placeholder count mismatch: 1 vs 2: the replacement must take as many inputs as the "
             "pattern (number 0); its last input is b",
             NEG, pattern, B CALL("f", "f", "%a, %b") OUT("%f"));
    REPLACED("Returning nodes count mismatch: 1 vs 2: the replacement must return one value for "
             "each node that the pattern returns", NEG, pattern, A OUT("(%a, %a)"));
    REPLACED("the replacement returns nothing; add an output", NEG, pattern, A);
    REPLACED("the pattern has no calls, so there is nothing to replace", NEG, A OUT("%a"),
             A OUT("%a"));
}

TEST(a_match_that_was_erased_is_not_replaced)
{
    cfx_graph *g = parse(X CALL("n", "neg", "%x") OUT("%x"));
    cfx_graph *p = parse(A CALL("n", "neg", "%a") OUT("%n"));
    cfx_matches *found = cfx_matches_find(g, &p, 1, NULL, NULL);
    REQUIRE(cfx_matches_size(found) == 1);
    CHECK_INT_EQ(CFX_OK, cfx_graph_erase(g, cfx_graph_find(g, "n"), NULL));
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_matches_replace(found, &p, &err));
    CHECK_STR_EQ("node %n of a match was erased before the match was replaced; do not edit the "
                 "graph in between",
                 err.message);
    cfx_matches_free(found);
    cfx_graph_release(p);
    cfx_graph_release(g);
}

/* ---- many patterns, long graphs ------------------------------------------------------------ */

TEST(the_first_pattern_wins)
{
    cfx_graph *g = parse(X CALL("n", "neg", "%x") CALL("r", "relu", "%n") CALL("m", "neg", "%r")
                         OUT("%m"));
    cfx_graph *ps[] = {parse(A CALL("n", "neg", "%a") CALL("r", "relu", "%n") OUT("%r")),
                       parse(A CALL("n", "neg", "%a") OUT("%n"))};
    cfx_matches *found = cfx_matches_find(g, ps, 2, NULL, NULL);
    REQUIRE(cfx_matches_size(found) == 2);
    CHECK_INT_EQ(0, cfx_matches_get(found, 0)->pattern);
    CHECK_INT_EQ(1, cfx_matches_get(found, 1)->pattern);
    CHECK_STR_EQ("m", cfx_node_name(cfx_matches_get(found, 1)->bound[0].value.as.node, NULL));
    cfx_matches_keep(found, (const bool[]){false, true});
    CHECK_INT_EQ(1, cfx_matches_size(found));
    CHECK_INT_EQ(1, cfx_matches_get(found, 0)->pattern);
    CHECK(!cfx_matches_get(found, 1));
    cfx_matches_free(found);
    cfx_graph_release(ps[0]);
    cfx_graph_release(ps[1]);
    cfx_graph_release(g);
}

/* x, then `n` calls of neg one on the other. */
static cfx_graph *chain(size_t n)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (size_t i = 0; i < n; i++)
        x = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "neg", &x, 1, NULL, 0, NULL));
    cfx_graph_output(g, x, NULL);
    return g;
}

TEST(a_pattern_may_be_very_deep)
{
    cfx_graph *g = chain(200000);
    cfx_graph *p = cfx_graph_clone(g, NULL, NULL);
    const cfx_match_options opts = {.match_output = true};
    cfx_matches *found = cfx_matches_find(g, &p, 1, &opts, NULL);
    CHECK_INT_EQ(1, cfx_matches_size(found));
    CHECK_INT_EQ(200002, cfx_matches_get(found, 0)->n_bound);
    cfx_matches_free(found);
    cfx_graph_release(p);
    cfx_graph_release(g);
}

/* `n` matches wound into one another: first all f(x), then a chain of `n` calls on all of them
 * (each uses one), then all g(f, y), where y is computed after the first use of any f, in `depth`
 * steps. */
static cfx_graph *wound(size_t n, bool writes, size_t depth)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value *firsts = malloc(n * sizeof *firsts);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value at = x;
    for (size_t i = 0; i < n; i++)
        firsts[i] = cfx_value_node(
            cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.cos", &x, 1, NULL, 0, NULL));
    for (size_t i = 0; i < 2 * n; i++) {
        const cfx_value args[] = {at, i < n ? firsts[i] : at};
        at = cfx_value_node(
            cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", args, 2, NULL, 0, NULL));
        if (writes && i % 2)
            cfx_graph_call(g, CFX_OP_CALL_METHOD, "add_", &at, 1, NULL, 0, NULL);
    }
    cfx_value y = x;
    for (size_t i = 0; i < depth; i++)
        y = cfx_value_node(
            cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.sin", &y, 1, NULL, 0, NULL));
    for (size_t i = 0; i < n; i++) {
        const cfx_value args[] = {firsts[i], y};
        firsts[i] = cfx_value_node(
            cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.mul", args, 2, NULL, 0, NULL));
    }
    cfx_graph_output(g, cfx_value_list(g, firsts, n, NULL), NULL);
    free(firsts);
    return g;
}

static size_t steps_of(size_t n, bool strict, size_t depth, size_t *n_found)
{
    const cfx_match_options opts = {.jointly = true, .strict = strict};
    cfx_graph *g = wound(n, strict, depth);
    cfx_graph *p = parse(B CALL("f", "torch.cos", "%a") CALL("g", "torch.mul", "%f, %b")
                         OUT("(%f, %g)"));
    cfx_matches *found = cfx_matches_find(g, &p, 1, &opts, NULL);
    size_t steps = cfxi_match_steps(found);
    *n_found = cfx_matches_size(found);
    cfx_matches_free(found);
    cfx_graph_release(p);
    cfx_graph_release(g);
    return steps;
}

TEST(matches_wound_into_one_another_take_steps_in_proportion)
{
    size_t found, more;
    size_t few = steps_of(500, false, 1, &found);
    size_t many = steps_of(5000, false, 1, &more);
    CHECK_INT_EQ(500, found);
    CHECK_INT_EQ(5000, more);
    CHECK(few > 500 && many < 11 * few);
    few = steps_of(500, true, 1, &found);
    many = steps_of(5000, true, 1, &more);
    CHECK(few > 500 && many < 11 * few);
}

/* Each match would have to look at all that y is computed from. */
TEST(looking_between_the_nodes_of_matches_has_a_limit)
{
    size_t found, more;
    size_t few = steps_of(500, false, 500, &found);
    size_t many = steps_of(5000, false, 5000, &more);
    CHECK(found > 0 && more > 0 && more < 5000);
    CHECK(few < 500 * 6 * (CFX_MATCH_WALK + 4) && many < 5000 * 6 * (CFX_MATCH_WALK + 4));
}

/* ---- why not ------------------------------------------------------------------------------- */

static void check_miss(const char *want, const char *graph, const char *pattern, const char *file,
                       int line)
{
    cfx_miss misses[3];
    size_t n;
    cfx_buffer out;
    cfx_graph *g = parse(graph);
    cfx_graph *p = parse(pattern);
    cfx_buffer_init(&out, NULL);
    check_int(CFX_OK, cfx_matches_explain(g, &p, 1, NULL, misses, 3, &n, NULL), file, line,
              "explain");
    for (size_t i = 0; i < n; i++) {
        cfx_miss_print(&misses[i], cfx_buffer_sink(&out), NULL);
        cfx_buffer_append(&out, "\n", 1);
    }
    check_str(want, out.data, file, line, "the misses");
    cfx_buffer_free(&out);
    cfx_graph_release(p);
    cfx_graph_release(g);
}
#define MISSES(want, graph, pattern) check_miss(want, X graph, pattern, __FILE__, __LINE__)

TEST(the_nearest_misses_come_first)
{
    MISSES("m.py:3: %s is not %s of the pattern (3 of 3 nodes matched): kwargs['dim']: the "
           "pattern has 1, the graph 2\n"
           "%t is not %s of the pattern (1 of 3 nodes matched): args[0]: the pattern has %n "
           "(call_function neg), the graph %x (placeholder x)\n",
           CALL("n", "neg", "%x") "  %s = call_function[target=sum](%n, dim=2)  @ m.py:3\n"
           CALL("t", "sum", "%x, dim=1") OUT("(%s, %t)"),
           A CALL("n", "neg", "%a") CALL("s", "sum", "%n, dim=1") OUT("%s"));
}

TEST(misses_say_which_constraint_failed)
{
    MISSES(
        "the pattern was found at %r, but %n prevents the match: it has a user outside the match: "
        "%output\n",
        CALL("n", "neg", "%x") CALL("r", "relu", "%n") OUT("(%n, %r)"),
        A CALL("n", "neg", "%a") CALL("r", "relu", "%n") OUT("%r"));
    MISSES("%n of the pattern was not found: no node of the graph calls neg\n",
           CALL("r", "relu", "%x") OUT("%r"), A CALL("n", "neg", "%a") OUT("%n"));
    MISSES("%f is not %f of the pattern (1 of 2 nodes matched): args[0][1]: the pattern has 2, the "
           "graph 3\n",
           CALL("f", "f", "[1, 3], %x") OUT("%f"), A CALL("f", "f", "[1, 2], %a") OUT("%f"));
    MISSES("%f is not %f of the pattern (1 of 2 nodes matched): the pattern passes 1 positional "
           "arguments, the graph 2\n",
           CALL("f", "f", "%x, 1") OUT("%f"), A CALL("f", "f", "%a") OUT("%f"));
    MISSES("%f is not %f of the pattern (1 of 2 nodes matched): only the graph passes the keyword "
           "'k'\n",
           CALL("f", "f", "%x, k=1") OUT("%f"), A CALL("f", "f", "%a") OUT("%f"));
    MISSES("%x is not %b of the pattern (2 of 3 nodes matched): it is already matched to %a\n",
           CALL("f", "f", "%x, %x") OUT("%f"), B CALL("f", "f", "%a, %b") OUT("%f"));
}

TEST(each_candidate_has_one_miss)
{
    /* The second anchor fails at two places; a match has none. */
    MISSES("%d is not %d of the pattern (4 of 4 nodes matched): args[1]: the pattern has 1, the "
           "graph 2\n",
           CALL("n", "neg", "%x") CALL("c", "cos", "%n") CALL("d", "sin", "%n, 2")
           CALL("e", "sin", "%n, 3") CALL("m", "neg", "%y") CALL("f", "cos", "%m")
           CALL("g", "sin", "%m, 1") OUT("(%n, %c, %d, %e, %m, %f, %g)"),
           A CALL("n", "neg", "%a") CALL("c", "cos", "%n") CALL("d", "sin", "%n, 1")
           OUT("(%n, %c, %d)"));
}

TEST(misses_point_to_other_spellings)
{
    MISSES("%r is not %r of the pattern (0 of 2 nodes matched): it calls the same operator, relu, "
           "under another name: see any_spelling\n",
           "  %r = call_method[target=relu](%x)\n" OUT("%r"),
           A CALL("r", "torch.relu", "%a") OUT("%r"));
    MISSES("%n is not %n of the pattern (1 of 3 nodes matched): args[0]: the pattern has %r "
           "(call_function torch.relu), the graph %r (call_method relu); they are the same "
           "operator: see any_spelling\n",
           "  %r = call_method[target=relu](%x)\n" CALL("n", "neg", "%r") OUT("%n"),
           A CALL("r", "torch.relu", "%a") CALL("n", "neg", "%r") OUT("%n"));
}

/* ---- short of memory ----------------------------------------------------------------------- */

static cfx_status replace_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_match_options opts = {.variadic = true, .strict = true, .regions = true};
    cfx_graph *g = parse_with(a, X CALL("n", "neg", "%x") CALL("t", "tanh", "%n")
                              CALL("c", "cat", "[%n, %y, 1], 2") CALL("u", "exp", "%c")
                              CALL("n_1", "neg", "%u") CALL("c_1", "cat", "[%n_1, %c], 3")
                              OUT("(%t, %c_1)"));
    cfx_graph *p = parse_with(a, B "  %xs = placeholder[target=*xs]()\n" CALL("n", "neg", "%a")
                              CALL("c", "cat", "[%n, %xs], %b") OUT("(%n, %c)"));
    cfx_graph *r = parse_with(a, B "  %xs = placeholder[target=*xs]()\n"
                              CALL("s", "stack", "[%a, %xs, %b]") OUT("(%s, %a)"));
    cfx_graph *rs[] = {r, r};
    (void)arg;
    cfx_status status = CFX_E_NOMEM;
    if (g && p && r) {
        cfx_matches *found = cfx_matches_find(g, &p, 1, &opts, &err);
        status = found ? CFX_OK : err.status;
        if (found) {
            CHECK_INT_EQ(2, cfx_matches_size(found));
            status = cfx_matches_replace(found, rs, &err);
        }
        cfx_matches_free(found);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(r);
    cfx_graph_release(p);
    cfx_graph_release(g);
    return status;
}

/* Every module is a pooling with a kernel_size of 2. */
static cfx_status pool_class(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)path;
    (void)err;
    return out.write(out.ctx, "torch.nn.MaxPool2d", 18);
}

static cfx_value pool_attribute(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    const cfx_value two[] = {cfx_value_int(2), cfx_value_int(2)};
    (void)ctx;
    if (strcmp(path, "pool.kernel_size") == 0)
        return cfx_value_tuple(g, two, 2, err);
    cfx_error_set(err, CFX_E_KEY, "there is no %s", path);
    return cfx_value_invalid();
}

static const cfx_module_tree pools = {.class_name = pool_class, .get = pool_attribute};

#define POOL "  %p = call_module[target=pool](%x)\n"

TEST(modules_are_spellings)
{
    FOUND_WITH("m=p a=x", POOL OUT("%p"), A CALL("m", "torch.max_pool2d", "%a, 2") OUT("%m"),
               .any_spelling = true, .modules = &pools);
    FOUND_WITH("m=p a=x b=(2, 2)", POOL OUT("%p"),
               B CALL("m", "torch.max_pool2d", "%a, %b, [2, 2]") OUT("%m"), .any_spelling = true,
               .modules = &pools);
    FOUND_WITH("", POOL OUT("%p"), A CALL("m", "torch.max_pool2d", "%a, 2, 1") OUT("%m"),
               .any_spelling = true, .modules = &pools);
    FOUND_WITH("", POOL OUT("%p"), A CALL("m", "torch.max_pool2d", "%a, 2") OUT("%m"),
               .any_spelling = true);
}

static cfx_status find_body(const cfx_allocator *a, const cfx_match_options *opts,
                            const char *graph, const char *pattern, size_t want)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse_with(a, graph);
    cfx_graph *p = g ? parse_with(a, pattern) : NULL;
    cfx_matches *found = p ? cfx_matches_find(g, &p, 1, opts, &err) : NULL;
    cfx_status status = !p ? CFX_E_NOMEM : found ? CFX_OK : err.status;
    if (found)
        CHECK_INT_EQ(want, cfx_matches_size(found));
    cfx_matches_free(found);
    cfx_graph_release(p);
    cfx_graph_release(g);
    return status;
}

/* A call that writes, results that are used early, and matches that need each other. */
static cfx_status strict_body(const cfx_allocator *a, void *arg)
{
    const cfx_match_options opts = {.strict = true, .jointly = true};
    (void)arg;
    return find_body(a, &opts, X CALL("n1", "torch.neg", "%x") CALL("n2", "torch.neg", "%y")
                     CALL("a1", "torch.add", "%n2, %x") CALL("a2", "torch.add", "%n1, %y") WRITE
                     CALL("u", "torch.sin", "%a2") CALL("n3", "torch.neg", "%u")
                     CALL("v", "torch.sin", "%n3") CALL("a3", "torch.add", "%x, %u")
                     OUT("(%n1, %a1, %n2, %a2, %v, %a3)"),
                     B CALL("n", "torch.neg", "%a") CALL("s", "torch.add", "%b, %a")
                     OUT("(%n, %s)"), 2);
}

static cfx_status module_body(const cfx_allocator *a, void *arg)
{
    const cfx_match_options opts = {.any_spelling = true, .modules = &pools};
    (void)arg;
    return find_body(a, &opts, X POOL OUT("%p"),
                     A CALL("m", "torch.max_pool2d", "%a, 2") OUT("%m"), 1);
}

TEST(running_out_of_memory_leaves_no_trace)
{
    CHECK(test_oom_sweep(replace_body, NULL) > 20);
    CHECK(test_oom_sweep(strict_body, NULL) > 20);
    CHECK(test_oom_sweep(module_body, NULL) > 20);
}
