/* repeated.c - tests of src/check/repeated.c and runs.c: parts of a graph that do the same. */
#include "check.h"
#include "test_alloc.h"
#include "check/repeated_impl.h"

#include <cfx/embed/repeated.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* "2x3 a b c|d e f; ...": copies x nodes, and the names of the nodes of each copy. */
static const char *found_in(cfx_graph *g, const cfx_repeat_options *opts)
{
    static char text[1024];
    size_t used = 0;
    cfx_repeats *r = cfx_graph_find_repeated(g, NULL, opts, NULL);
    text[0] = '\0';
    for (size_t i = 0; r && i < cfx_repeats_num_groups(r); i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zux%zu", i ? "; " : "",
                                 cfx_repeats_num_copies(r, i), cfx_repeats_num_nodes(r, i));
        for (size_t c = 0; c < cfx_repeats_num_copies(r, i); c++)
            for (size_t k = 0; k < cfx_repeats_num_nodes(r, i) && used < sizeof text; k++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                         k || !c ? " " : "|",
                                         cfx_node_name(cfx_repeats_node(r, i, c, k), NULL));
    }
    cfx_repeats_free(r);
    return r ? text : "failed";
}

static const char *found(const char *text, const cfx_repeat_options *opts)
{
    cfx_graph *g = parse(text, NULL, NULL);
    const char *result = g ? found_in(g, opts) : "bad text";
    cfx_graph_release(g);
    return result;
}

#define F(name, args) "%" name " = call_function[target=f](" args ") "
#define G(name, args) "%" name " = call_function[target=g](" args ") "
#define IN(name, target, arg, path, type) "%" name " = call_module[target=" target "](" arg ")" \
    "  @ m.py:1 in " path "(" type ") > " target "(nn.Linear)\n"
#define X "%x = placeholder[target=x]()\n"

/* ---- runs ---------------------------------------------------------------------------------- */

TEST(layers_in_a_row)
{
    CHECK_STR_EQ("3x2 a b|c d|e h",
                 found("graph(): " X F("a", "%x, 1") G("b", "%a, %x") F("c", "%b, 1")
                       G("d", "%c, %b") F("e", "%d, 1") G("h", "%e, %d") "output(%h)", NULL));
}

TEST(literals_and_targets_count)
{
    CHECK_STR_EQ("", found("graph(): " X F("a", "%x, 1") G("b", "%a") F("c", "%b, 2")
                           G("d", "%c") "output(%d)", NULL));
    CHECK_STR_EQ("", found("graph(): " X F("a", "%x, k=1") G("b", "%a") F("c", "%b, j=1")
                           G("d", "%c") "output(%d)", NULL));
}

/* %d uses its own %c twice, %b uses %x: the same tokens, another wiring. */
TEST(wiring_counts)
{
    CHECK_STR_EQ("", found("graph(): " X F("a", "%x") G("b", "%a, %x") F("c", "%b")
                           G("d", "%c, %c") "output(%d)", NULL));
}

/* %a is returned, too: taken together the first copy gives out two values. */
TEST(what_is_used_outside_counts)
{
    CHECK_STR_EQ("", found("graph(): " X F("a", "%x") G("b", "%a") F("c", "%b") G("d", "%c")
                           "output((%a, %d))", NULL));
}

TEST(what_lies_between_does_not)
{
    CHECK_STR_EQ("2x2 a b|c d", found("graph(): " X F("a", "%x") G("b", "%a")
                                      "%m = call_method[target=h](%b) " F("c", "%m") G("d", "%c")
                                      "output(%d)", NULL));
}

TEST(the_shortest_that_covers_most)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value last = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (int i = 0; i < 60; i++)
        last = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, i % 3 ? "f" : "g", &last, 1,
                                             NULL, 0, NULL));
    cfx_graph_output(g, last, NULL);
    cfx_repeats *r = cfx_graph_find_repeated(g, NULL, NULL, NULL);
    REQUIRE(r && cfx_repeats_num_groups(r) == 1);
    CHECK_INT_EQ(20, cfx_repeats_num_copies(r, 0));
    CHECK_INT_EQ(3, cfx_repeats_num_nodes(r, 0));
    CHECK(cfx_repeats_path(r, 0, 0) == NULL);
    cfx_repeats_free(r);
    cfx_graph_release(g);
}

TEST(limits)
{
    static const char *const text = "graph(): " X F("a", "%x") F("b", "%a") F("c", "%b")
                                    F("d", "%c") "output(%d)";
    CHECK_STR_EQ("2x2 a b|c d", found(text, NULL));
    CHECK_STR_EQ("4x1 a|b|c|d", found(text, &(cfx_repeat_options){1, 2}));
    CHECK_STR_EQ("", found(text, &(cfx_repeat_options){2, 3}));
    CHECK_STR_EQ("", found("graph(): output(1)", NULL));
    CHECK_STR_EQ("", found("graph():", NULL));
}

/* All alike, and two kinds in random order: minutes if it took more than n log n. */
TEST(long_graphs)
{
    uint64_t state = 1;
    for (int mixed = 0; mixed < 2; mixed++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_value last = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
        for (int i = 0; i < 100000; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            last = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION,
                                                 mixed && state >> 63 ? "f" : "g", &last, 1, NULL,
                                                 0, NULL));
        }
        cfx_graph_output(g, last, NULL);
        cfx_repeats *r = cfx_graph_find_repeated(g, NULL, NULL, NULL);
        REQUIRE(r && cfx_repeats_num_groups(r) >= 1);
        CHECK_INT_EQ(2, cfx_repeats_num_nodes(r, 0));
        CHECK(mixed || cfx_repeats_num_copies(r, 0) == 50000);
        cfx_repeats_free(r);
        cfx_graph_release(g);
    }
}

/* ---- scopes -------------------------------------------------------------------------------- */

static const char *const layers = "graph():\n" X
    IN("a", "l0.p", "%x", "l0", "Layer") IN("b", "l0.q", "%a", "l0", "Layer")
    IN("c", "l1.p", "%b", "l1", "Layer") IN("d", "l1.q", "%c", "l1", "Layer") "output(%d)";

TEST(modules)
{
    cfx_graph *g = parse(layers, NULL, NULL);
    REQUIRE(g != NULL);
    CHECK_STR_EQ("2x2 a b|c d", found_in(g, NULL));
    cfx_repeats *r = cfx_graph_find_repeated(g, NULL, NULL, NULL);
    CHECK_STR_EQ("l0", cfx_repeats_path(r, 0, 0));
    CHECK_STR_EQ("l1", cfx_repeats_path(r, 0, 1));
    cfx_repeats_free(r);
    cfx_graph_release(g);
}

/* The classes of modules: of l1.q it is another. */
static cfx_status class_name(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    (void)err;
    if (ctx)
        return *(cfx_status *)ctx;
    const char *name = strcmp(path, "l1.q") == 0 ? "torch.nn.ReLU" : "torch.nn.Linear";
    return out.write(out.ctx, name, strlen(name));
}

TEST(classes_of_modules_count)
{
    cfx_status status = CFX_E_HOST;
    cfx_module_tree modules = {.class_name = class_name};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(layers, NULL, NULL);
    cfx_repeats *r = cfx_graph_find_repeated(g, &modules, NULL, NULL);
    REQUIRE(r != NULL);
    CHECK_INT_EQ(0, cfx_repeats_num_groups(r));
    cfx_repeats_free(r);
    modules.ctx = &status;
    CHECK(cfx_graph_find_repeated(g, &modules, NULL, &err) == NULL);
    status = CFX_E_KEY;  /* then the last word of the path has to do */
    r = cfx_graph_find_repeated(g, &modules, NULL, NULL);
    REQUIRE(r != NULL);
    CHECK_INT_EQ(1, cfx_repeats_num_groups(r));
    cfx_repeats_free(r);
    cfx_graph_release(g);
}

TEST(regions_have_groups_of_their_own)
{
    CHECK_STR_EQ("2x2 a b|c d", found("graph(): " X "%l = call_function[target=cfx.for_loop](3, "
                                      "graph { %i = placeholder[target=i]() " X F("a", "%x")
                                      G("b", "%a") F("c", "%b") G("d", "%c") "output((%d,)) }, "
                                      "(%x,)) output(%l)", NULL));
}

/* ---- the hash of some nodes ---------------------------------------------------------------- */

TEST(hash_of_nodes)
{
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t c = 0;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(layers, NULL, NULL);
    cfx_graph *other = parse(layers, NULL, NULL);
    cfx_node *first[] = {cfx_graph_find(g, "b"), cfx_graph_find(g, "a")};
    cfx_node *second[] = {cfx_graph_find(g, "c"), cfx_graph_find(g, "d")};
    cfx_node *across[] = {cfx_graph_find(g, "b"), cfx_graph_find(g, "d")};
    cfx_node *foreign[] = {cfx_graph_find(other, "a")};
    CHECK_INT_EQ(CFX_OK, cfxi_check_nodes_hash(g, first, 2, NULL, &a, NULL));
    CHECK_INT_EQ(CFX_OK, cfxi_check_nodes_hash(g, second, 2, NULL, &b, NULL));
    CHECK_INT_EQ(CFX_OK, cfxi_check_nodes_hash(g, across, 2, NULL, &c, NULL));
    CHECK(a == b && a != c);
    CHECK_INT_EQ(CFX_E_GRAPH, cfxi_check_nodes_hash(g, foreign, 1, NULL, &c, &err));
    CHECK_STR_EQ("node %a is not in this graph", err.message);
    cfx_graph_release(g);
    cfx_graph_release(other);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(arg, a, &err);
    uint64_t hash;
    if (g) {
        cfx_node *nodes[] = {cfx_graph_first(g)};
        cfx_repeats_free(cfx_graph_find_repeated(g, NULL, NULL, &err));
        if (err.status == CFX_OK)
            cfxi_check_nodes_hash(g, nodes, 1, NULL, &hash, &err);
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)layers) > 12);
    CHECK(test_oom_sweep(body, "graph(): " X F("a", "%x") G("b", "%a") F("c", "%b") G("d", "%c")
                         "output(%d)") > 12);
}
