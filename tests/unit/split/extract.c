/* extract.c - tests of src/split/extract.c. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/graph.h>
#include <cfx/embed/split.h>

static const char source[] =
    "graph(): %x: &int = placeholder[target=x](1) %w = get_attr[target=a.w]() "
    "%mul = call_method[target=mul](%x, %w) "
    "%lin = call_module[target=a.b](%mul) %lin2 = call_module[target=a_b](%lin) "
    "%relu = call_function[target=f](%lin2, k=[%w, %x]) output((%relu, %mul))";

enum { N = 7, MAX = 8 };

static cfx_graph *parse(const cfx_allocator *a, cfx_node **nodes, cfx_error *err)
{
    cfx_graph *g = cfx_graph_parse(source, strlen(source), a, NULL, err);
    size_t i = 0;
    for (cfx_node *n = g ? cfx_graph_first(g) : NULL; n; n = cfx_node_next(n))
        nodes[i++] = n;
    return g;
}

static void check_text(cfx_graph *g, const char *expected)
{
    cfx_graph *want = cfx_graph_parse(expected, strlen(expected), NULL, NULL, NULL);
    CHECK(want != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK(cfx_graph_equal(want, g, false));
    cfx_graph_release(want);
}

TEST(inputs_come_as_they_are_first_read_and_outputs_in_order)
{
    cfx_node *n[MAX];
    cfx_subgraph part;
    cfx_graph *g = parse(NULL, n, NULL);
    const cfx_extract_options what = {.nodes = n + 2, .n = 4};
    cfx_node_set_location(n[2], "model.py", 3, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(g, &what, &part, NULL));
    CHECK_INT_EQ(3, cfx_node_line(cfx_graph_find(part.graph, "mul")));
    cfx_node_set_location(cfx_graph_find(part.graph, "mul"), NULL, 0, NULL);
    check_text(part.graph,
               "graph(): %x: &int = placeholder[target=x]() %w = placeholder[target=w]() "
               "%mul = call_method[target=mul](%x, %w) %lin = call_module[target=a.b](%mul) "
               "%lin2 = call_module[target=a_b](%lin) "
               "%relu = call_function[target=f](%lin2, k=[%w, %x]) output((%mul, %relu))");
    CHECK_INT_EQ(2, part.n_inputs);
    CHECK(part.inputs[0] == n[0] && part.inputs[1] == n[1]);
    CHECK(part.n_outputs == 2 && part.outputs[0] == n[2] && part.outputs[1] == n[5]);
    CHECK(part.n_origins == 7 && part.origins[3] == n[3] && part.origins[6] == NULL);
    cfx_subgraph_free(&part);
    cfx_subgraph_free(&part);  /* twice is once */
    cfx_graph_release(g);
}

TEST(names_paths_and_tuples_can_be_made_anew)
{
    cfx_node *n[MAX];
    cfx_subgraph part;
    cfx_graph *g = parse(NULL, n, NULL);
    cfx_extract_options what = {.nodes = n + 3, .n = 2, .flags = CFX_PART_NAME_BY_TARGET |
                                CFX_PART_NUMBER_INPUTS | CFX_PART_TUPLE | CFX_PART_FLAT_PATHS};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(g, &what, &part, NULL));
    check_text(part.graph, "graph(): %arg_0 = placeholder[target=arg_0]() "
               "%a_b = call_module[target=a_b](%arg_0) "
               "%a_b_1 = call_module[target=a_b_1](%a_b) output((%a_b_1,))");
    cfx_subgraph_free(&part);
    what = (cfx_extract_options){.nodes = n, .n = 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(g, &what, &part, NULL));
    check_text(part.graph, "graph(): output(())");
    cfx_subgraph_free(&part);
    cfx_graph_release(g);
}

TEST(given_inputs_and_outputs_and_a_map)
{
    cfx_node *n[MAX];
    cfx_subgraph part;
    cfx_graph *g = parse(NULL, n, NULL);
    cfx_node *in[] = {n[1], n[4], n[0]};
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    const cfx_extract_options what = {.nodes = n + 5,
                                      .n = 1,
                                      .inputs = in,
                                      .n_inputs = 3,
                                      .outputs = in,
                                      .n_outputs = 1,
                                      .map = map};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(g, &what, &part, NULL));
    check_text(part.graph, "graph(): %w = placeholder[target=w]() "
               "%lin2 = placeholder[target=lin2]() %x: &int = placeholder[target=x]() "
               "%relu = call_function[target=f](%lin2, k=[%w, %x]) output(%w)");
    CHECK(cfx_node_map_get(map, n[5]).as.node == cfx_graph_find(part.graph, "relu"));
    CHECK(cfx_node_map_get(map, n[1]).as.node == cfx_graph_first(part.graph));
    cfx_node_map_free(map);
    cfx_subgraph_free(&part);
    cfx_graph_release(g);
}

static void refuses(cfx_graph *g, const cfx_extract_options *what, const char *why)
{
    cfx_error err = {.status = CFX_OK};
    cfx_subgraph part;
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_extract(g, what, &part, &err));
    CHECK(strstr(err.message, why) != NULL);
    CHECK(part.graph == NULL);
}

TEST(what_cannot_be_taken_out)
{
    cfx_node *n[MAX], *other[MAX];
    cfx_graph *g = parse(NULL, n, NULL);
    cfx_graph *h = parse(NULL, other, NULL);
    cfx_node *wrong_order[] = {n[3], n[2]};
    cfx_node *twice[] = {n[3], n[3]};
    refuses(g, &(cfx_extract_options){.nodes = other, .n = 1}, "%x is not in this graph");
    refuses(g, &(cfx_extract_options){.nodes = n + 6, .n = 1}, "%output is an output");
    refuses(g, &(cfx_extract_options){.nodes = wrong_order, .n = 2}, "%mul does not come after");
    refuses(g, &(cfx_extract_options){.nodes = twice, .n = 2}, "pass each node once");
    refuses(g, &(cfx_extract_options){.nodes = n + 2, .n = 1, .inputs = n, .n_inputs = 1},
            "%mul reads %w, which is neither");
    refuses(g, &(cfx_extract_options){.nodes = n + 2, .n = 1, .inputs = n + 2, .n_inputs = 1},
            "%mul cannot be an input");
    refuses(g, &(cfx_extract_options){.nodes = n + 2, .n = 1, .outputs = n + 3, .n_outputs = 1},
            "%lin cannot be an output");
    cfx_graph_release(h);
    cfx_graph_release(g);
}

/* The marks of two graphs that have gone through the same are the same. */
TEST(nodes_of_another_graph_are_told_whatever_their_marks)
{
    cfx_node *n[MAX], *other[MAX];
    cfx_subgraph part;
    cfx_graph *g = parse(NULL, n, NULL);
    cfx_graph *h = parse(NULL, other, NULL);
    cfx_node *root[] = {cfx_graph_root(g)};
    const cfx_extract_options what = {.nodes = other + 2, .n = 2};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(h, &what, &part, NULL));
    cfx_subgraph_free(&part);
    refuses(g, &(cfx_extract_options){.nodes = n + 2, .n = 2, .outputs = other + 2, .n_outputs = 1},
            "%mul cannot be an output");
    refuses(g, &(cfx_extract_options){.nodes = root, .n = 1}, "is not in this graph");
    cfx_graph_release(h);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_node *n[MAX];
    cfx_subgraph part;
    cfx_graph *g = parse(a, n, &err);
    (void)arg;
    const cfx_extract_options what = {.nodes = n + 2, .n = 4, .flags = CFX_PART_FLAT_PATHS};
    if (g && cfx_graph_extract(g, &what, &part, &err) == CFX_OK)
        cfx_subgraph_free(&part);
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(body, NULL) > 20); }

TEST(a_long_chain)
{
    enum { LENGTH = 1000000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node **nodes = malloc(LENGTH * sizeof *nodes);
    cfx_value v = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (size_t i = 0; i < LENGTH; i++) {
        nodes[i] = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &v, 1, NULL, 0, NULL);
        v = cfx_value_node(nodes[i]);
    }
    cfx_graph_output(g, v, NULL);
    cfx_subgraph part;
    const cfx_extract_options what = {.nodes = nodes, .n = LENGTH};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extract(g, &what, &part, NULL));
    CHECK_INT_EQ(LENGTH + 2, cfx_graph_size(part.graph));
    cfx_subgraph_free(&part);
    free(nodes);
    cfx_graph_release(g);
}
