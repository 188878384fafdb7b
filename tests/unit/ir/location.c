/* location.c - tests of source locations and scopes. */
#include "graph_test.h"

TEST(locations)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    CHECK(!cfx_node_file(n) && cfx_node_line(n) == 0);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_location(n, "m\xc3\xb6""del.py", 12, NULL));
    CHECK_STR_EQ("m\xc3\xb6""del.py", cfx_node_file(n));
    CHECK_INT_EQ(12, cfx_node_line(n));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_location(n, "other.py", 0, NULL));
    CHECK_STR_EQ("other.py", cfx_node_file(n));
    CHECK_INT_EQ(0, cfx_node_line(n));
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_location(n, "\xff.py", 3, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_location(n, "\xff.py", 3, NULL));
    CHECK_STR_EQ("other.py", cfx_node_file(n));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_location(n, NULL, 5, NULL));
    CHECK(!cfx_node_file(n) && cfx_node_line(n) == 0);
    cfx_graph_release(g);
}

TEST(a_location_is_stored_once)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = cfx_graph_placeholder(g, "a", NULL);
    cfx_node *b = cfx_graph_placeholder(g, "b", NULL);
    for (uint32_t line = 1; line < 100; line++)
        cfx_node_set_location(a, "model.py", line, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_location(b, "model.py", 99, NULL));
    CHECK(cfx_node_file(a) == cfx_node_file(b)); /* the same text */
    const size_t memory = cfx_graph_memory(g);
    for (uint32_t i = 0; i < 100000; i++)
        cfx_node_set_location(a, "model.py", i % 100, NULL);
    CHECK_INT_EQ(memory, cfx_graph_memory(g));
    cfx_graph_release(g);
}

TEST(scopes)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    cfx_error err = {0};
    const uint32_t outer = cfx_graph_intern_stack(g, 0, "layers.0", "nn.Sequential", NULL, &err);
    const uint32_t inner = cfx_graph_intern_stack(g, outer, "layers.0.1", "nn.Linear", NULL, &err);
    CHECK(outer == 1 && inner == 2);
    CHECK_INT_EQ(inner, cfx_graph_intern_stack(g, outer, "layers.0.1", "nn.Linear", NULL, &err));
    CHECK_INT_EQ(3, cfx_graph_intern_stack(g, 0, "layers.0.1", "nn.Linear", NULL, &err));
    CHECK_INT_EQ(4, cfx_graph_intern_stack(g, outer, "layers.0.1", NULL, NULL, &err));
    CHECK_INT_EQ(4, cfx_graph_intern_stack(g, outer, "layers.0.1", "", NULL, &err));
    CHECK_INT_EQ(5, cfx_graph_intern_stack(g, 0, NULL, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_OK, err.status);
    CHECK_INT_EQ(outer, cfx_graph_stack_outer(g, inner));
    CHECK_STR_EQ("layers.0.1", cfx_graph_stack_path(g, inner));
    CHECK_STR_EQ("nn.Linear", cfx_graph_stack_type(g, inner));
    CHECK(cfx_graph_stack_outer(g, 0) == 0 && !cfx_graph_stack_path(g, 0) &&
          !cfx_graph_stack_type(g, 6));
    CHECK_INT_EQ(0, cfx_graph_intern_stack(g, 99, "a", "b", NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    err = (cfx_error){0};
    CHECK_INT_EQ(0, cfx_graph_intern_stack(g, 0, "\xff", "b", NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    CHECK_INT_EQ(0, cfx_graph_intern_stack(g, 0, "a", "\xff", NULL, NULL));
    CHECK_INT_EQ(0, cfx_node_module_stack(n));
    cfx_node_set_module_stack(n, inner);
    CHECK_INT_EQ(inner, cfx_node_module_stack(n));
    cfx_node_set_module_stack(n, 77); /* unknown: none */
    CHECK_INT_EQ(0, cfx_node_module_stack(n));
    cfx_graph_release(g);
}

TEST(locations_by_number)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    cfx_error err = {0};
    const uint32_t first = cfx_graph_intern_location(g, "model.py", 7, &err);
    CHECK(first != 0 && first == cfx_graph_intern_location(g, "model.py", 7, &err));
    CHECK(first != cfx_graph_intern_location(g, "model.py", 8, &err));
    cfx_node_set_location_id(n, first);
    CHECK_STR_EQ("model.py", cfx_node_file(n));
    CHECK_INT_EQ(7, cfx_node_line(n));
    cfx_node_set_location_id(n, 99); /* unknown: none */
    CHECK(!cfx_node_file(n));
    CHECK_INT_EQ(0, cfx_graph_intern_location(g, "\xff", 1, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_graph_release(g);
}

TEST(scopes_hold_the_objects_of_their_classes)
{
    fake_host h = {0};
    cfx_host host = fake_host_table(&h);
    fake_object linear = {.name = "nn.Linear", .refs = 1};
    fake_object twin = {.name = "nn.Linear", .refs = 1};
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    const uint32_t a = cfx_graph_intern_stack(g, 0, "a", "nn.Linear", &linear, NULL);
    const uint32_t b = cfx_graph_intern_stack(g, 0, "b", "nn.Linear", &linear, NULL);
    CHECK_INT_EQ(2, linear.refs); /* one reference, whoever uses it */
    CHECK(a != b && a == cfx_graph_intern_stack(g, 0, "a", "nn.Linear", &linear, NULL));
    CHECK(a !=
          cfx_graph_intern_stack(g, 0, "a", "nn.Linear", &twin, NULL)); /* the name is not enough */
    CHECK(a != cfx_graph_intern_stack(g, 0, "a", "nn.Linear", NULL, NULL));
    CHECK(cfx_graph_stack_object(g, a) == &linear && !cfx_graph_stack_object(g, 0));
    cfx_node_set_module_stack(n, a);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    CHECK(cfx_graph_stack_object(copy, cfx_node_module_stack(cfx_graph_first(copy))) == &linear);
    CHECK_INT_EQ(3, linear.refs);
    CHECK(cfx_graph_equal(g, copy, false));
    cfx_graph_release(copy);
    cfx_graph_clear(g);
    CHECK_INT_EQ(1, linear.refs);
    CHECK_STR_EQ("nn.Linear", cfx_graph_stack_type(g, a)); /* the name stays */
    CHECK(!cfx_graph_stack_object(g, a));
    cfx_graph_release(g);
    CHECK_INT_EQ(1, twin.refs);
    g = cfx_graph_new(NULL, NULL, NULL);
    cfx_error err = {0};
    CHECK_INT_EQ(0, cfx_graph_intern_stack(g, 0, "a", "nn.Linear", &linear, &err)); /* no host */
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    cfx_graph_release(g);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    cfx_node *n = g ? cfx_graph_placeholder(g, "x", &err) : NULL;
    uint32_t scope = 0;
    for (uint32_t i = 0; n && i < 200 && err.status == CFX_OK; i++) {
        char text[64];
        static dump_text before, after;
        snprintf(text, sizeof text, "some/longer/path/to/file_%u.py", i / 3);
        dump_graph(&before, g);
        if (cfx_node_set_location(n, text, i, &err) != CFX_OK) {
            dump_graph(&after, g);
            CHECK_STR_EQ(before.data, after.data);
            break;
        }
        const uint32_t next = cfx_graph_intern_stack(g, scope, text, "Type", NULL, &err);
        CHECK((next == 0) == (err.status != CFX_OK));
        cfx_node_set_module_stack(n, scope = next);
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(locations_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 20); }
