/* clone.c - tests of src/ir/clone.c and src/ir/node_copy.c: copies of graphs and nodes, node
 * maps. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/graph.h>
#include <cfx/embed/host.h>

/* ---- maps ---------------------------------------------------------------------------------- */

TEST(map_keeps_what_was_set)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    enum { N = 500 };
    cfx_node *nodes[N];
    for (int i = 0; i < N; i++) {
        nodes[i] = cfx_graph_placeholder(g, "x", NULL);
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_map_get(map, nodes[i]).kind);
        CHECK_INT_EQ(CFX_OK, cfx_node_map_set(map, nodes[i], cfx_value_int(i), NULL));
    }
    cfx_node_map_set(map, nodes[7], cfx_value_int(-7), NULL);
    cfx_node_map_set(map, nodes[8], cfx_value_invalid(), NULL);
    for (int i = 0; i < N; i++) {
        cfx_value v = cfx_node_map_get(map, nodes[i]);
        if (i == 8)
            CHECK_INT_EQ(CFX_KIND_INVALID, v.kind);
        else
            CHECK_INT_EQ(i == 7 ? -7 : i, v.as.i);
    }
    cfx_node_map_free(map);
    cfx_node_map_free(NULL);
    cfx_graph_release(g);
}

/* ---- clone --------------------------------------------------------------------------------- */

TEST(clone_is_the_same_graph)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    REQUIRE(g);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_graph *copy = cfx_graph_clone(g, map, NULL);
    REQUIRE(copy);
    CHECK(cfx_graph_equal(g, copy, false));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(copy, NULL, NULL, NULL));
    CHECK_INT_EQ(cfx_graph_size(g), cfx_graph_size(copy));
    const cfx_node *m = cfx_graph_first(copy);
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), m = cfx_node_next(m)) {
        CHECK(cfx_node_map_get(map, n).as.node == m);
        CHECK_STR_EQ(cfx_node_name(n, NULL), cfx_node_name(m, NULL));
        CHECK_INT_EQ(cfx_node_module_stack(n), cfx_node_module_stack(m));
        CHECK_INT_EQ(cfx_node_line(n), cfx_node_line(m));
        CHECK(cfx_node_binding(m) == NULL);
    }
    CHECK_INT_EQ(cfx_graph_memory(g) > 0, 1);
    cfx_node_map_free(map);
    cfx_graph_release(g);  /* the copy stands alone */
    CHECK_STR_EQ("model.py", cfx_node_file(cfx_graph_find(copy, "relu")));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(copy, NULL, NULL, NULL));
    cfx_graph_release(copy);
}

TEST(clone_of_an_empty_graph)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    REQUIRE(copy);
    CHECK_INT_EQ(0, cfx_graph_size(copy));
    CHECK(cfx_graph_placeholder(copy, "x", NULL) != NULL);
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

/* A copy counts names from those it has: an erased node's name is free again, as in a deepcopy of
 * torch.fx. */
TEST(clone_counts_names_anew)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value arg = cfx_value_node(x);
    for (int i = 0; i < 3; i++)
        cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0, NULL);
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    arg = cfx_value_node(cfx_graph_first(copy));
    cfx_node *n = cfx_graph_call(copy, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0, NULL);
    CHECK_STR_EQ("relu_2", cfx_node_name(n, NULL));
    arg = cfx_value_node(x);
    n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0, NULL);
    CHECK_STR_EQ("relu_3", cfx_node_name(n, NULL));
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

TEST(clone_counts_from_numbered_names)
{
    static const char *const want[] = {"x", "x_3", "x_4", "x_5"};
    static const char *const wishes[] = {"x", "x", "x_2", "x"};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x5 = cfx_graph_placeholder(g, "x_5", NULL);
    cfx_graph_erase(g, x5, NULL);
    cfx_graph_placeholder(g, "x_2", NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        cfx_node *n = cfx_graph_placeholder(copy, wishes[i], NULL);
        CHECK_STR_EQ(want[i], cfx_node_name(n, NULL));
    }
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

TEST(clone_keeps_names_set_by_hand)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = cfx_graph_placeholder(g, "a", NULL);
    cfx_node *b = cfx_graph_placeholder(g, "b", NULL);
    cfx_graph_placeholder(g, "c", NULL);
    cfx_node_set_name(a, "c", 1, NULL);
    cfx_node_set_name(b, "a b", 3, NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    REQUIRE(copy);
    CHECK(cfx_graph_equal(g, copy, false));
    CHECK_STR_EQ("c", cfx_node_name(cfx_graph_first(copy), NULL));
    CHECK_STR_EQ("a b", cfx_node_name(cfx_node_next(cfx_graph_first(copy)), NULL));
    CHECK_STR_EQ("c", cfx_node_name(cfx_graph_last(copy), NULL));
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

/* Assigning arguments moves a user to the end; that order is copied. */
TEST(clone_keeps_the_order_of_users)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *a = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.a", &x, 1, NULL, 0, NULL);
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.b", &x, 1, NULL, 0, NULL);
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.c", &x, 1, NULL, 0, NULL);
    cfx_node_set_args(a, cfx_node_args(a), NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    const cfx_use *use = cfx_node_first_use(cfx_graph_first(copy));
    CHECK_STR_EQ("b", cfx_node_name(cfx_use_user(use), NULL));
    use = cfx_use_next(use);
    CHECK_STR_EQ("c", cfx_node_name(cfx_use_user(use), NULL));
    use = cfx_use_next(use);
    CHECK_STR_EQ("a", cfx_node_name(cfx_use_user(use), NULL));
    CHECK(cfx_use_next(use) == NULL);
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

/* A definition behind its only user, and one behind several. */
TEST(clone_of_a_graph_out_of_order)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value y = cfx_value_node(cfx_graph_placeholder(g, "y", NULL));
    cfx_value both[] = {x, y};
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.a", both, 2, NULL, 0, NULL);
    cfx_node *b = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.b", &x, 1, NULL, 0, NULL);
    cfx_node_append(b, x.as.node, NULL);
    cfx_node_append(b, y.as.node, NULL);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    REQUIRE(copy);
    CHECK(cfx_graph_equal(g, copy, false));
    CHECK_INT_EQ(1, cfx_node_num_users(cfx_graph_find(copy, "y")));
    CHECK_INT_EQ(2, cfx_node_num_users(cfx_graph_find(copy, "x")));
    CHECK_STR_EQ("a", cfx_node_name(cfx_use_user(cfx_node_first_use(cfx_graph_find(copy, "y"))),
                                    NULL));
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

TEST(clone_copies_regions_three_deep_and_shares_as_before)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    REQUIRE(g);
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    REQUIRE(copy);
    CHECK(cfx_graph_equal(g, copy, false));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(copy, NULL, NULL, NULL));
    cfx_graph *at = g;
    cfx_graph *at_copy = copy;
    for (int depth = 0; depth < 3; depth++) {
        const cfx_node *n = cfx_graph_find(at, "cond");
        const cfx_node *m = cfx_graph_find(at_copy, "cond");
        REQUIRE(n && m);
        CHECK(cfx_value_graph(cfx_node_arg(m, 1)) == cfx_value_graph(cfx_node_arg(m, 2)));
        at = cfx_value_graph(cfx_node_arg(n, 1));
        at_copy = cfx_value_graph(cfx_node_arg(m, 1));
        CHECK(at != at_copy && cfx_graph_parent(at_copy) != cfx_graph_parent(at));
    }
    cfx_graph_release(g);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(copy, NULL, NULL, NULL));
    cfx_graph_release(copy);
}

TEST(clone_leaves_erased_nodes_behind)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_iter it;  /* keeps what is erased in limbo */
    cfx_iter_begin(&it, g, false);
    cfx_value arg = cfx_value_int(1);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "only.here", &arg, 1, NULL, 0, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_erase(g, n, NULL));
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    REQUIRE(copy);
    CHECK(cfx_graph_equal(g, copy, false));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(copy, NULL, NULL, NULL));
    cfx_iter_end(&it);
    cfx_graph_release(copy);
    cfx_graph_release(g);
}

/* A clone relies on it: nodes in a type would have no use edges. */
TEST(types_hold_no_nodes)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_node *x = cfx_graph_first(g);
    cfx_value node = cfx_value_node(x);
    cfx_value list = cfx_value_list(g, &node, 1, NULL);
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_type(x, list, &err));
    CHECK_STR_EQ("the type of a node cannot hold a node (%x)", err.message);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_type(x, node, NULL));
    cfx_target t = {.name = "y", .size = 1};
    CHECK(!cfx_graph_create(g, CFX_OP_PLACEHOLDER, t, cfx_value_invalid(), cfx_value_invalid(),
                            NULL, list, NULL));
    cfx_graph_release(g);
}

/* ---- copying nodes ------------------------------------------------------------------------- */

static cfx_value to_seven(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)ctx;
    (void)n;
    (void)err;
    return cfx_value_int(7);
}

static cfx_value to_failure(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)ctx;
    (void)n;
    cfx_error_set(err, CFX_E_KEY, "no such node");
    return cfx_value_invalid();
}

TEST(copy_node_takes_all_of_it)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    const cfx_node *relu = cfx_graph_find(g, "relu");
    cfx_node *copy = cfx_graph_copy_node(h, relu, to_seven, NULL, NULL);
    REQUIRE(copy);
    CHECK_STR_EQ("relu", cfx_node_name(copy, NULL));
    CHECK_STR_EQ("torch.relu", cfx_node_target(copy, NULL, NULL));
    CHECK_INT_EQ(7, cfx_node_arg(copy, 0).as.i);
    CHECK_STR_EQ("model.py", cfx_node_file(copy));
    CHECK_INT_EQ(12, cfx_node_line(copy));
    CHECK_STR_EQ("layers.0", cfx_graph_stack_path(h, cfx_node_module_stack(copy)));
    CHECK_STR_EQ("net",
                 cfx_graph_stack_path(h, cfx_graph_stack_outer(h, cfx_node_module_stack(copy))));
    CHECK_INT_EQ(CFX_KIND_HOST, cfx_node_type(copy).kind);
    copy = cfx_graph_copy_node(h, relu, to_seven, NULL, NULL);
    CHECK_STR_EQ("relu_1", cfx_node_name(copy, NULL));
    cfx_graph_release(g);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(h, NULL, NULL, NULL));
    cfx_graph_release(h);
}

TEST(copy_node_hands_on_what_the_callback_says)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_error err = {.status = CFX_OK};
    CHECK(!cfx_graph_copy_node(g, cfx_graph_find(g, "relu"), to_failure, NULL, &err));
    CHECK_INT_EQ(CFX_E_KEY, err.status);
    CHECK_STR_EQ("no such node", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* Takes the arguments away from the node that is being copied, or the node itself. */
static cfx_value to_ruin(void *ctx, cfx_node *n, cfx_error *err)
{
    cfx_node *victim = ctx;
    cfx_value none = cfx_value_tuple(cfx_node_graph(n), NULL, 0, err);
    cfx_node_set_args_kwargs(victim, none, cfx_node_kwargs(victim), err);
    if (cfx_node_num_users(victim) == 0 && !cfx_node_is_erased(victim))
        cfx_graph_erase(cfx_node_graph(n), victim, NULL);
    return cfx_value_node(n);
}

TEST(copy_node_survives_a_callback_that_edits)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (int erase = 0; erase < 2; erase++) {
        cfx_value inner[] = {x, cfx_value_int(1)};
        cfx_value args[] = {x, cfx_value_list(g, inner, 2, NULL), x};
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_METHOD, "m", args, 3, NULL, 0, NULL);
        cfx_value use = cfx_value_node(n);
        if (!erase)
            REQUIRE(cfx_graph_call(g, CFX_OP_CALL_METHOD, "user", &use, 1, NULL, 0, NULL));
        cfx_error err = {.status = CFX_OK};
        cfx_node *copy = cfx_graph_copy_node(g, n, to_ruin, n, &err);
        REQUIRE(copy);
        CHECK_INT_EQ(3, cfx_node_num_args(copy));
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
}

TEST(copy_into_maps_inputs_and_returns_the_result)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *mine = cfx_graph_placeholder(h, "mine", NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_node_map_set(map, cfx_graph_first(g), cfx_value_node(mine), NULL);
    cfx_value result = cfx_value_none();
    cfx_node *output = NULL;
    CHECK_INT_EQ(CFX_OK, cfx_graph_copy_from(h, g, map, &result, &output, NULL));
    CHECK(output == cfx_graph_last(g));
    CHECK_INT_EQ(cfx_graph_size(g) - 1, cfx_graph_size(h));
    CHECK(cfx_node_input(cfx_graph_find(h, "relu"), 0) == mine);
    CHECK_INT_EQ(CFX_KIND_TUPLE, result.kind);
    CHECK(cfx_graph_output(h, result, NULL) != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(h, NULL, NULL, NULL));
    cfx_node_map_free(map);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

/* As torch.fx's graph_copy: an output that is in the map is passed over, and with it the end. */
TEST(copy_into_without_an_output)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_value arg = cfx_value_node(cfx_graph_first(g));
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.neg", &arg, 1, NULL, 0, NULL);
    cfx_node_map_set(map, cfx_node_prev(cfx_graph_last(g)), cfx_value_none(), NULL);
    cfx_value result = cfx_value_none();
    CHECK_INT_EQ(CFX_OK, cfx_graph_copy_from(h, g, map, &result, NULL, NULL));
    CHECK_INT_EQ(CFX_KIND_INVALID, result.kind);
    CHECK(cfx_graph_find(h, "neg") != NULL);
    cfx_node_map_free(map);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

TEST(copy_into_takes_back_what_it_copied)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_node_append(cfx_node_prev(cfx_graph_last(g)), cfx_graph_find(g, "relu"), NULL);
    cfx_value result = cfx_value_none();
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_KEY, cfx_graph_copy_from(h, g, map, &result, NULL, &err));
    CHECK(strstr(err.message, "%relu, which has not been copied") != NULL);
    CHECK_INT_EQ(0, cfx_graph_size(h));
    CHECK_INT_EQ(CFX_KIND_NONE, result.kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_map_get(map, cfx_graph_first(g)).kind);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(h, NULL, NULL, NULL));
    cfx_node_map_free(map);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

TEST(copy_into_itself)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    size_t size = cfx_graph_size(g);
    cfx_insert_point at = {cfx_graph_last(g), false};
    cfx_value result;
    cfx_graph_set_insert_point(g, at, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_copy_from(g, g, map, &result, NULL, NULL));
    CHECK_INT_EQ(2 * size - 1, cfx_graph_size(g));
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_node_map_free(map);
    cfx_graph_release(g);
}

/* ---- running out of memory ----------------------------------------------------------------- */

static cfx_status clone_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = nested_graph(a, &err, 3);
    cfx_node_map *map = g ? cfx_node_map_new(a, &err) : NULL;
    cfx_graph *copy = map ? cfx_graph_clone(g, map, &err) : NULL;
    (void)arg;
    if (copy)
        CHECK(cfx_graph_equal(g, copy, false));
    else if (g)
        CHECK(err.status == CFX_E_NOMEM);
    cfx_graph_release(copy);
    cfx_node_map_free(map);
    cfx_graph_release(g);
    return err.status;
}

TEST(clone_out_of_memory)
{
    CHECK(test_oom_sweep(clone_body, NULL) > 20);
}

static cfx_status copy_into_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = nested_graph(a, &err, 3);
    cfx_graph *h = g ? cfx_graph_new(a, NULL, &err) : NULL;
    cfx_node_map *map = h ? cfx_node_map_new(a, &err) : NULL;
    cfx_value result;
    (void)arg;
    if (map && cfx_graph_copy_from(h, g, map, &result, NULL, &err) != CFX_OK)
        CHECK_INT_EQ(0, cfx_graph_size(h));
    cfx_node_map_free(map);
    cfx_graph_release(h);
    cfx_graph_release(g);
    return err.status;
}

TEST(copy_into_out_of_memory)
{
    CHECK(test_oom_sweep(copy_into_body, NULL) > 20);
}
