/* equal.c - tests of src/ir/equal.c: comparing values and graphs, hashing. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/graph.h>
#include <cfx/embed/host.h>

#include <math.h>

/* ---- values -------------------------------------------------------------------------------- */

TEST(scalars_compare_by_kind_and_content)
{
    CHECK(cfx_value_equal(cfx_value_int(1), cfx_value_int(1)));
    CHECK(!cfx_value_equal(cfx_value_int(1), cfx_value_int(2)));
    CHECK(!cfx_value_equal(cfx_value_int(1), cfx_value_bool(true)));
    CHECK(!cfx_value_equal(cfx_value_int(1), cfx_value_float(1.0)));
    CHECK(cfx_value_equal(cfx_value_none(), cfx_value_none()));
    CHECK(!cfx_value_equal(cfx_value_none(), cfx_value_ellipsis()));
    CHECK(!cfx_value_equal(cfx_value_bool(true), cfx_value_bool(false)));
    CHECK(!cfx_value_equal(cfx_value_dtype(CFX_DTYPE_INT8), cfx_value_dtype(CFX_DTYPE_INT16)));
    CHECK(!cfx_value_equal(cfx_value_float(0.0), cfx_value_float(-0.0)));
    CHECK(cfx_value_equal(cfx_value_float(NAN), cfx_value_float(-NAN)));
}

TEST(containers_compare_item_by_item)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    CHECK(cfx_value_equal(sample_value(g, x, NULL), sample_value(g, x, NULL)));
    CHECK(!cfx_value_equal(sample_value(g, x, NULL), sample_value(g, y, NULL)));
    cfx_value a[] = {cfx_value_int(1), text_value(g, "b", NULL), cfx_value_int(3)};
    cfx_value b[] = {cfx_value_int(3), cfx_value_int(1), text_value(g, "b", NULL)};
    cfx_value twice[] = {cfx_value_int(3), cfx_value_int(3), cfx_value_int(1)};
    CHECK(!cfx_value_equal(cfx_value_list(g, a, 3, NULL), cfx_value_list(g, b, 3, NULL)));
    CHECK(!cfx_value_equal(cfx_value_list(g, a, 3, NULL), cfx_value_tuple(g, a, 3, NULL)));
    CHECK(!cfx_value_equal(cfx_value_list(g, a, 3, NULL), cfx_value_list(g, a, 2, NULL)));
    CHECK(cfx_value_equal(cfx_value_seq(g, CFX_KIND_SET, a, 3, NULL),
                          cfx_value_seq(g, CFX_KIND_SET, b, 3, NULL)));
    CHECK(!cfx_value_equal(cfx_value_seq(g, CFX_KIND_SET, a, 3, NULL),
                           cfx_value_seq(g, CFX_KIND_SET, twice, 3, NULL)));
    CHECK(!cfx_value_equal(cfx_value_seq(g, CFX_KIND_SET, twice, 3, NULL),
                           cfx_value_seq(g, CFX_KIND_SET, a, 3, NULL)));
    CHECK(!cfx_value_equal(cfx_value_bytes(g, "b", 1, NULL), text_value(g, "b", NULL)));
    cfx_graph_release(g);
}

/* ---- a host -------------------------------------------------------------------------------- */

/* Objects are integers; the negative ones have no name. */
static int object_one = 1;
static int object_two = 2;
static int object_two_again = 2;
static int object_nameless = -1;
static int object_other_nameless = -2;
static int object_bad = 99;

static void host_count(void *ctx, void *object)
{
    (void)ctx;
    (void)object;
}

static cfx_status host_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    int number = *(int *)object;
    char name[16];
    (void)ctx;
    if (number == 99)
        return cfx_error_set(err, CFX_E_HOST, "raised");
    if (number < 0)
        return cfx_error_set(err, CFX_E_KEY, "no name");
    return out.write(out.ctx, name, (size_t)snprintf(name, sizeof name, "obj.n%d", number));
}

static int host_equal(void *ctx, void *a, void *b)
{
    (void)ctx;
    return *(int *)a == *(int *)b;
}

static const cfx_host test_host = {
    .retain = host_count, .release = host_count, .repr = host_name, .qualified_name = host_name,
    .name_hint = host_name, .equal = host_equal,
};

static cfx_graph *host_graph(int *target, int *arg)
{
    cfx_graph *g = cfx_graph_new(NULL, &test_host, NULL);
    cfx_value value = cfx_value_host(g, arg, NULL);
    cfx_target t = {.object = target};
    cfx_graph_create(g, CFX_OP_CALL_FUNCTION, t, cfx_value_tuple(g, &value, 1, NULL),
                     cfx_value_invalid(), "n", cfx_value_invalid(), NULL);
    return g;
}

static bool same_hosts(int *target_a, int *arg_a, int *target_b, int *arg_b, bool *same_hash)
{
    cfx_graph *a = host_graph(target_a, arg_a);
    cfx_graph *b = host_graph(target_b, arg_b);
    bool same = cfx_graph_equal(a, b, false);
    uint64_t x = 0;
    uint64_t y = 0;
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(a, false, &x, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(b, false, &y, NULL));
    *same_hash = x == y;
    cfx_graph_release(a);
    cfx_graph_release(b);
    return same;
}

TEST(host_objects_compare_by_identity_or_by_the_host)
{
    bool hash;
    CHECK(same_hosts(&object_one, &object_two, &object_one, &object_two_again, &hash));
    CHECK(hash);
    CHECK(!same_hosts(&object_one, &object_two, &object_two, &object_two, &hash));
    CHECK(!hash);
    CHECK(!same_hosts(&object_one, &object_nameless, &object_one, &object_other_nameless, &hash));
    CHECK(hash);  /* a hash may fall together */
}

TEST(a_name_stands_for_the_object_that_has_it)
{
    cfx_graph *g = cfx_graph_new(NULL, &test_host, NULL);
    cfx_value name = cfx_value_name(g, "obj.n1", 6, NULL);
    CHECK(cfx_value_equal(name, cfx_value_host(g, &object_one, NULL)));
    CHECK(cfx_value_equal(cfx_value_host(g, &object_one, NULL), name));
    CHECK(!cfx_value_equal(name, cfx_value_host(g, &object_two, NULL)));
    CHECK(!cfx_value_equal(name, cfx_value_host(g, &object_nameless, NULL)));
    CHECK(!cfx_value_equal(cfx_value_host(g, &object_nameless, NULL), name));
    cfx_graph_release(g);
}

TEST(a_host_that_fails_makes_the_hash_fail)
{
    cfx_graph *g = host_graph(&object_one, &object_bad);
    uint64_t hash = 42;
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_hash(g, false, &hash, &err));
    CHECK_STR_EQ("raised", err.message);
    CHECK_INT_EQ(42, hash);
    cfx_graph_release(g);
}

/* ---- graphs -------------------------------------------------------------------------------- */

typedef void change_fn(cfx_graph *g, cfx_node *relu);

static void change_name(cfx_graph *g, cfx_node *n)
{
    (void)g;
    cfx_node_rename(n, "other", NULL);
}
static void change_line(cfx_graph *g, cfx_node *n)
{
    (void)g;
    cfx_node_set_location(n, "model.py", 13, NULL);
}
static void change_scope(cfx_graph *g, cfx_node *n)
{
    cfx_node_set_module_stack(n, cfx_graph_stack_outer(g, cfx_node_module_stack(n)));
}
static void change_type(cfx_graph *g, cfx_node *n)
{
    (void)g;
    cfx_node_set_type(n, cfx_value_invalid(), NULL);
}
static void change_target(cfx_graph *g, cfx_node *n)
{
    cfx_target t = {.name = "torch.neg", .size = 9};
    (void)g;
    cfx_node_set_target(n, t, NULL);
}
static void change_arg(cfx_graph *g, cfx_node *n)
{
    (void)g;
    cfx_node_set_arg(n, 0, cfx_value_none(), NULL);
}
static void change_kwarg(cfx_graph *g, cfx_node *n)
{
    (void)n;
    cfx_node_set_kwarg(cfx_graph_find(g, "mod"), "dim", cfx_value_node(cfx_graph_find(g, "relu")),
                       NULL);
}
static void change_region(cfx_graph *g, cfx_node *n)
{
    cfx_graph *region = cfx_value_graph(cfx_node_arg(cfx_graph_find(g, "cond"), 1));
    region = cfx_value_graph(cfx_node_arg(cfx_graph_find(region, "cond"), 1));
    (void)n;
    cfx_node_set_arg(cfx_graph_find(region, "relu"), 0, cfx_value_none(), NULL);
}

static void check_change(change_fn *change, bool shape_differs)
{
    cfx_graph *g = nested_graph(NULL, NULL, 2);
    cfx_graph *h = nested_graph(NULL, NULL, 2);
    uint64_t before = 0, after = 0, before_shape = 0, after_shape = 0;
    CHECK(cfx_graph_equal(g, h, false));
    cfx_graph_hash(h, false, &before, NULL);
    cfx_graph_hash(h, true, &before_shape, NULL);
    change(h, cfx_graph_find(h, "relu"));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(h, false, &after, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(h, true, &after_shape, NULL));
    CHECK(!cfx_graph_equal(g, h, false));
    CHECK(!cfx_graph_equal(h, g, false));
    CHECK(before != after);
    CHECK_INT_EQ(!shape_differs, cfx_graph_equal(g, h, true));
    CHECK_INT_EQ(!shape_differs, before_shape == after_shape);
    cfx_graph_release(g);
    cfx_graph_release(h);
}

TEST(graphs_differ_in_whatever_changed)
{
    check_change(change_name, false);
    check_change(change_line, false);
    check_change(change_scope, false);
    check_change(change_type, true);
    check_change(change_target, true);
    check_change(change_arg, true);
    check_change(change_kwarg, true);
    check_change(change_region, true);
}

TEST(graphs_of_different_size)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = sample_graph(NULL, NULL);
    CHECK(cfx_graph_equal(g, g, false));
    cfx_graph_erase(h, cfx_graph_last(h), NULL);
    CHECK(!cfx_graph_equal(g, h, true));
    cfx_graph_release(g);
    cfx_graph_release(h);
}

/* Scopes have other numbers in another graph, but are the same chains. */
TEST(scopes_compare_as_chains)
{
    cfx_graph *g = sample_graph(NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    uint64_t x = 0, y = 0;
    CHECK(cfx_graph_intern_stack(h, 0, "first", "First", NULL, NULL) == 1);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_value result;
    CHECK_INT_EQ(CFX_OK, cfx_graph_copy_from(h, g, map, &result, NULL, NULL));
    cfx_graph_output(h, result, NULL);
    CHECK(cfx_node_module_stack(cfx_graph_find(h, "relu")) !=
          cfx_node_module_stack(cfx_graph_find(g, "relu")));
    CHECK(cfx_graph_equal(g, h, false));
    cfx_graph_hash(g, false, &x, NULL);
    cfx_graph_hash(h, false, &y, NULL);
    CHECK(x == y);
    cfx_node_map_free(map);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

/* The hash ends up in files: it may not depend on the process, and changes deliberately only. */
TEST(the_hash_is_the_same_in_every_process)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    uint64_t hash = 0;
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(g, false, &hash, NULL));
    CHECK_INT_EQ(-8591521872941359126, hash);
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(g, true, &hash, NULL));
    CHECK_INT_EQ(3167642358282293966, hash);
    cfx_graph_release(g);
}

static cfx_status hash_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = nested_graph(a, &err, 3);
    uint64_t hash;
    (void)arg;
    if (g)
        cfx_graph_hash(g, false, &hash, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(hash_out_of_memory)
{
    CHECK(test_oom_sweep(hash_body, NULL) > 10);
}

static cfx_status hash_host_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(a, &test_host, &err);
    cfx_value v = g ? cfx_value_host(g, &object_two, &err) : cfx_value_invalid();
    uint64_t hash;
    (void)arg;
    if (v.kind != CFX_KIND_INVALID &&
        cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f.f", &v, 1, NULL, 0, &err))
        cfx_graph_hash(g, false, &hash, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(hash_out_of_memory_asking_the_host)
{
    CHECK(test_oom_sweep(hash_host_body, NULL) > 2);
}

/* What the inputs of a region are called is seen by nobody; those of a graph are passed by name. */
TEST(inputs_of_regions_by_place)
{
    static const char *const names[] = {"a", "b"};
    cfx_graph *g[2];
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text, "graph(): %%l = call_function[target=cfx.for_loop](3, graph { "
                 "%%i = placeholder[target=i]() %%%s = placeholder[target=%s]() output((%%%s,)) }, "
                 "(1,)) output(%%l)", names[i], names[i], names[i]);
        g[i] = cfx_graph_parse(text, strlen(text), NULL, NULL, NULL);
        CHECK_INT_EQ(CFX_OK, cfx_graph_hash(g[i], true, &hash[i], NULL));
    }
    CHECK(cfx_graph_equal(g[0], g[1], true) && hash[0] == hash[1]);
    CHECK(!cfx_graph_equal(g[0], g[1], false));
    cfx_graph *body = cfx_value_graph(cfx_node_arg(cfx_graph_first(g[0]), 1));
    CHECK(!cfx_graph_equal(body, cfx_value_graph(cfx_node_arg(cfx_graph_first(g[1]), 1)), true));
    cfx_graph_release(g[0]);
    cfx_graph_release(g[1]);
}
